# SPDX-License-Identifier: GPL-3.0-or-later

"""The SR-IOV network operator: one is installed, and its pods and its configuration work. Check ids:
``operators.single``, ``operators.olm``, ``operators.version``, ``operators.ready``, ``operators.pods``,
``operators.resource_prefix``, ``operators.config``. config_daemon.py checks its config daemons.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import Keys, explain, is_image_pull_message
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import ClusterIntent
from ..._model.operators.sriov_operator import NO_OPERATOR, OperatorFacts, OperatorInstallation
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .config_daemon import check_daemon, check_rollout, describe_pods

#: pods with a warning of their own; the config daemons of a thousand nodes may have one cause
_TROUBLES = 20


def check_installation(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    found = seen.installations
    expected = f"one installation, in namespace {cluster.operator_namespace or seen.namespace}"
    measured = (
        "; ".join(
            f"{item.deployment.namespace or 'no namespace'}/{item.deployment.name} ({item.origin},"
            f" {item.version or 'no version'})"
            for item in found
        )
        or NO_OPERATOR
    )
    if not found:
        why = "Without the SR-IOV network operator, the nodes get no virtual functions."
        why += " OLM has objects for the operator; see the findings operators.olm." if seen.olm else ""
        remedy = "Install the operator as the finding operators.needed describes, then run stage operators again."
        return [Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)]
    if len(found) > 1:
        why = (
            "Two operators change the same nodes, and each reverts the changes of the other. NVIDIA's network operator"
            " also installs an SR-IOV network operator."
        )
        remedy = (
            "Remove one of them: run helm uninstall, or set sriovNetworkOperator.enabled=false in NVIDIA's chart. Then"
            " run stage operators again."
        )
        return [
            Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy),
            *_check_each(cluster, seen),
        ]
    one = found[0]
    namespace = one.deployment.namespace
    if not namespace:
        why = (
            "The stored facts of the run contain the Deployment of the operator without its namespace, so they"
            " are damaged."
        )
        remedy = "Run stage operators again, which reads the Deployment again."
        single = Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)
    elif namespace != (cluster.operator_namespace or seen.namespace):
        why = f"The operator runs in namespace {namespace}, and it applies only policies in its own namespace."
        remedy = f"Remove rdma_cluster.operator_namespace, or set it to {namespace}. Then run stage operators again."
        single = Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)
    else:
        single = build_pass("operators.single", "SR-IOV network operator", measured, expected)
    return [single, _check_version(one, seen), _check_ready(one, seen), _check_prefix(cluster, one)]


def _check_each(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    """Check each of several installations of the SR-IOV operator for ready pods and the resource prefix.

    Installations without pods are left out if another installation has pods.

    :param cluster: settings of the intent that all fabrics share
    :param seen: result of the module sriov_operator_info: the operator and its objects
    """
    running = [one for one in seen.installations if one.deployment.wanted] or seen.installations
    findings = []
    for one in running:
        prefix = _check_prefix(cluster, one)
        subject = f"{prefix.subject} of {one.deployment.namespace}/{one.deployment.name}"
        findings += [_check_ready(one, seen), dataclasses.replace(prefix, subject=subject)]
    return findings


def check_olm(seen: OperatorFacts) -> list[Finding]:
    """Return a finding on each object of OLM for the SR-IOV operator: its ClusterServiceVersion must be in phase
    Succeeded. The list is empty if OLM does not install the operator.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    """
    findings = []
    if not seen.olm and any(one.origin == "olm" for one in seen.installations):
        why = (
            "The Deployment of the operator belongs to OLM, but no ClusterServiceVersion of the operator was found in"
            " its namespace."
        )
        findings.append(
            Finding(
                "operators.olm",
                "OLM",
                UNKNOWN,
                "no ClusterServiceVersion found",
                "a ClusterServiceVersion in phase Succeeded",
                why,
                "Run kubectl get clusterserviceversions -A. If it is forbidden, run kubectl apply -f docs/rbac/look.yml"
                " as an admin of the cluster, in the folder of the collection linerate.rdma. If it lists the operator"
                " in another namespace, set rdma_cluster.operator_namespace to this namespace. Then run stage operators"
                " again.",
            )
        )
    for item in seen.olm:
        subject, expected = (
            f"{item.kind} {item.namespace}/{item.name}",
            "Succeeded" if item.kind == "ClusterServiceVersion" else "installed, no problem condition",
        )
        measured = ", ".join(part for part in (item.phase or "no state yet", item.version) if part)
        good = item.phase == "Succeeded" if item.kind == "ClusterServiceVersion" else bool(item.version)
        why = (
            f"OLM reports: {format_clause(item.message)}."
            if item.message
            else "OLM has reported no progress of the installation: it has not started it, or waits for an approval."
        )
        place = f"-n {item.namespace}" if item.namespace else "-A"
        remedy = (
            f"Run kubectl {place} describe {item.kind.lower()} {item.name}, and correct the cause in its conditions. If"
            f" kubectl {place} get installplans shows APPROVED false, approve the plan: kubectl {place} patch"
            ' installplan PLAN --type merge -p \'{"spec":{"approved":true}}\'. Then run stage operators again.'
        )
        if good and (item.kind == "ClusterServiceVersion" or not item.message):
            findings.append(build_pass("operators.olm", subject, measured, expected))
        else:
            findings.append(Finding("operators.olm", subject, WARN if good else FAIL, measured, expected, why, remedy))
    return findings


def _check_version(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    version = one.version or next(
        (item.version for item in seen.olm if item.kind == "ClusterServiceVersion" and item.phase == "Succeeded"), ""
    )
    if version:
        return build_pass("operators.version", "SR-IOV network operator", version, "a known version")
    why = (
        "The version shows which fields of a policy the operator supports. The Deployment has no version that"
        " linerate.rdma can read: not in its label app.kubernetes.io/version, in its variable RELEASE_VERSION, or in"
        " the tag of its first image."
    )
    return Finding(
        "operators.version",
        "SR-IOV network operator",
        WARN,
        f"no version read, image {', '.join(one.deployment.images) or 'unknown'}",
        "a known version",
        why,
        f"Run kubectl -n {one.deployment.namespace} set env deployment/{one.deployment.name} RELEASE_VERSION=VERSION"
        " with the version that you installed. Then run stage operators again.",
    )


def _check_ready(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    work = one.deployment
    measured, expected = (
        f"{work.ready} of {work.wanted} pods available",
        f"{max(1, work.wanted)} of {max(1, work.wanted)} pods available",
    )
    if work.ready >= work.wanted > 0:
        return build_pass("operators.ready", f"Deployment {work.namespace}/{work.name}", measured, expected)
    remedy = (
        f"Run kubectl -n {work.namespace} get pods, then kubectl -n {work.namespace} describe pod POD for each pod of"
        f" {work.name} that is not ready, and correct the cause that its events show. If a pod is missing, the events"
        f" of kubectl -n {work.namespace} describe replicaset show the cause. Then run stage operators again."
    )
    if work.wanted and work.ready:
        # one pod leads, and the others replace it when it ends
        why = (
            "One pod is enough to apply policies, but"
            f" {'no other pod' if work.ready == 1 else 'fewer pods than intended'} can take over if it fails."
            f"{describe_pods(seen, work.name)}"
        )
        return Finding(
            "operators.ready", f"Deployment {work.namespace}/{work.name}", WARN, measured, expected, why, remedy
        )
    why = (
        "No pod of the operator in its current version is available, so the operator applies no policy."
        if work.wanted
        else "A user or a tool scaled the Deployment of the operator to 0, so the operator applies no policy."
    )
    why += describe_pods(seen, work.name)
    if not work.wanted:
        scale = f"kubectl -n {work.namespace} scale deployment {work.name} --replicas=1"
        remedy = f"Run {scale}, then run stage operators again."
    return Finding("operators.ready", f"Deployment {work.namespace}/{work.name}", FAIL, measured, expected, why, remedy)


def check_pods(seen: OperatorFacts) -> typing.Iterator[Finding]:
    """Warn about each pod of the SR-IOV operator that is not ready, on any node.

    The Deployment and the config daemon of each node have findings of their own, and other stages prove that the
    webhooks and device plugins work.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    """
    expected = "all pods ready"
    for trouble in seen.troubles[:_TROUBLES]:
        name, _colon, detail = trouble.partition(": ")
        why = (
            "A component of the operator is not ready. If it runs on a node outside of the inventory, your nodes do not"
            " depend on it."
        )
        remedy = (
            f"Run kubectl -n {seen.namespace} describe pod {name}, and correct the cause in its events. Then run stage"
            " operators again."
        )
        if is_image_pull_message(detail):
            owner = f"the owner of pod {name}"
            keys = Keys(
                f"the image of {owner}",
                f"imagePullPolicy of {owner}",
                "the imagePullSecrets of this owner",
                seen.namespace,
                f"kubectl -n {seen.namespace} describe pod {name}",
            )
            cause, remedy = explain(detail, keys)
            remedy = remedy if "run stage" in remedy else f"{remedy.rstrip('. ')}. Then run stage operators again."
            why = f"{cause} {why}"
        yield Finding("operators.pods", f"Pod {name}", WARN, detail or "not ready", expected, why, remedy)
    if not seen.troubles:
        yield build_pass("operators.pods", f"namespace {seen.namespace}", expected, expected)
    elif len(seen.troubles) > _TROUBLES:
        measured = (
            f"{len(seen.troubles)} pods not ready, {len(seen.troubles) - _TROUBLES} without a finding of their own"
        )
        remedy = (
            f"Run kubectl -n {seen.namespace} get pods, and correct the causes of all pods that are not ready. Then run"
            " stage operators again."
        )
        yield Finding(
            "operators.pods",
            f"namespace {seen.namespace}",
            WARN,
            measured,
            expected,
            f"The other findings operators.pods name the first {_TROUBLES} pods. So many pods usually have one cause.",
            remedy,
        )


def list_missing(cluster: ClusterIntent, seen: OperatorFacts, nodes: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the parts of the operator that are missing for these nodes, followed by its pods that are not ready; the
    stage waits for them. Return an empty tuple if everything is ready.

    Nodes without the label of the node selector are ignored, since this wait does not set labels.

    :param cluster: settings of the intent that all fabrics share
    :param seen: result of the module sriov_operator_info: the operator and its objects
    :param nodes: names of the nodes that take part
    """
    labelled = [
        node
        for node in seen.nodes
        if node.name in set(nodes)
        and all(node.labels.get(key) == value for key, value in cluster.node_selector.items())
    ]
    findings = [
        *check_installation(cluster, seen),
        check_config(seen),
        *(check_daemon(seen, node) for node in labelled),
        *check_rollout(seen, {node.name for node in labelled}),
    ]
    lines = [f"{finding.subject}: {finding.measured}" for finding in findings if finding.status == FAIL]
    return (*lines, *seen.troubles) if lines else ()


def _check_prefix(cluster: ClusterIntent, one: OperatorInstallation) -> Finding:
    subject, expected = "resource prefix", cluster.resource_prefix
    if one.resource_prefix == expected:
        return build_pass("operators.resource_prefix", subject, one.resource_prefix, expected)
    if not one.resource_prefix:
        why = (
            "The Deployment of the operator does not set RESOURCE_PREFIX, so the prefix of the resources is unknown. If"
            " it is a different prefix, pods request a resource that does not exist."
        )
        return Finding(
            "operators.resource_prefix",
            subject,
            WARN,
            "not set",
            expected,
            why,
            "Run kubectl describe node for a node with virtual functions, and read the names of its resources. If"
            f" they begin with another prefix than {expected}/, set rdma_cluster.resource_prefix to that prefix."
            " Then run stage operators again.",
        )
    why = (
        f"The operator names its resources {one.resource_prefix}/..., but the pods of this run would request"
        f" {expected}/..., which no node offers."
    )
    return Finding(
        "operators.resource_prefix",
        subject,
        FAIL,
        one.resource_prefix,
        expected,
        why,
        f"Set rdma_cluster.resource_prefix to {one.resource_prefix}, then run stage operators again.",
    )


def check_config(seen: OperatorFacts) -> Finding:
    subject, expected = "SriovOperatorConfig default", f"an object default in namespace {seen.namespace}"
    if seen.namespace in seen.configs:
        return build_pass("operators.config", subject, ", ".join(seen.configs), expected)
    why = (
        "Without the SriovOperatorConfig, the operator starts no config daemon. The operator uses only the object"
        " 'default' in its own namespace."
    )
    by_hand = (
        "create it with kubectl apply (apiVersion: sriovnetwork.openshift.io/v1, kind: SriovOperatorConfig, name:"
        f" default, namespace: {seen.namespace})."
    )
    remedy = (
        "Set sriovOperatorConfig.deploy=true in the values of the operator's Helm chart. Without the chart,"
        f" {by_hand} Then run stage operators again."
    )
    if seen.configs:
        remedy = (
            f"If the operator runs in namespace {seen.configs[0]}, set rdma_cluster.operator_namespace to it."
            f" Otherwise {by_hand} Then run stage operators again."
        )
    return Finding(
        "operators.config",
        subject,
        FAIL,
        f"only in namespace {', '.join(seen.configs)}" if seen.configs else "SriovOperatorConfig absent",
        expected,
        why,
        remedy,
    )
