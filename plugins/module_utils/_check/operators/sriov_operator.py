# SPDX-License-Identifier: GPL-3.0-or-later

"""The SR-IOV network operator: one is installed, and its pods, its configuration and its config daemons work. Check
ids: ``operators.single``, ``operators.olm``, ``operators.version``, ``operators.ready``, ``operators.pods``,
``operators.resource_prefix``, ``operators.config``, ``operators.daemon``, ``operators.rollout``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import Keys, explain, is_image_pull_message
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NO_OPERATOR, OperatorFacts, OperatorInstallation
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

#: pods with a warning of their own; the config daemons of a thousand nodes may have one cause
_TROUBLES = 20


def check_installation(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    found = seen.installations
    expected = f"one installation, in namespace {cluster.operator_namespace or seen.namespace}"
    measured = (
        "; ".join(
            f"{item.deployment.namespace}/{item.deployment.name} ({item.origin}, {item.version or 'no version'})"
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
    if one.deployment.namespace != (cluster.operator_namespace or seen.namespace):
        why = (
            f"The operator runs in namespace {one.deployment.namespace}, and it applies only policies in its own"
            " namespace."
        )
        remedy = (
            f"Remove rdma_cluster.operator_namespace, or set it to {one.deployment.namespace}. Then run stage operators"
            " again."
        )
        single = Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)
    else:
        single = build_pass("operators.single", "SR-IOV network operator", measured, expected)
    return [single, _check_version(one, seen), _check_ready(one, seen), _check_prefix(cluster, one)]


def _check_each(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    """Check each of several installations of the SR-IOV operator for ready pods and the resource prefix. Installations
    without pods are left out if another one has pods.

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
    """Check that the ClusterServiceVersion of the SR-IOV operator is in phase Succeeded, if OLM installs the operator.

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
                " as an admin of the cluster. If it lists the operator in another namespace, set"
                " rdma_cluster.operator_namespace to this namespace. Then run stage operators again.",
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
        "The version shows which fields of a policy the operator supports. It is normally in a label of the Deployment,"
        " in its variable RELEASE_VERSION, or in the tag of its image."
    )
    return Finding(
        "operators.version",
        "SR-IOV network operator",
        WARN,
        f"version unknown, image {', '.join(one.deployment.images) or 'unknown'}",
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
            f"{_describe_pods(seen, work.name)}"
        )
        return Finding(
            "operators.ready", f"Deployment {work.namespace}/{work.name}", WARN, measured, expected, why, remedy
        )
    why = (
        "Until a pod of the current template of the Deployment is available, the operator applies no policy."
        if work.wanted
        else "A user or a tool scaled the Deployment of the operator to 0, so the operator applies no policy."
    )
    why += _describe_pods(seen, work.name)
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
                remedy,
            )
            cause, remedy = explain(detail, keys)
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


def _describe_pods(seen: OperatorFacts, name: str) -> str:
    """Return the messages of up to three failing pods of a workload; empty if there are none.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    :param name: name of the Deployment or DaemonSet
    """
    found = [trouble for trouble in seen.troubles if trouble.startswith(name)]
    return f" Pods that are not ready: {'; '.join(found[:3])}." if found else ""


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
            "Read the names of the resources with kubectl describe node NODE. If they have a different prefix, set"
            " rdma_cluster.resource_prefix to it. Then run stage operators again.",
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
    remedy = (
        f"Create the object in namespace {seen.namespace}, or set sriovOperatorConfig.deploy=true in the values of the"
        " operator's Helm chart. Then run stage operators again."
    )
    if seen.configs:
        remedy = (
            f"Create the object in namespace {seen.namespace}, or correct rdma_cluster.operator_namespace. Then run"
            " stage operators again."
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


def check_rollout(seen: OperatorFacts, nodes: typing.Collection[str]) -> typing.Iterator[Finding]:
    """Yield the findings on whether the DaemonSet of the config daemon has replaced the pods of its earlier
    generations, and on whether its image is of the operator's release. Yield nothing if there is no DaemonSet.

    :param seen: state of the operator
    :param nodes: names of the nodes that take part
    """
    daemon = seen.daemon
    if daemon is None:
        return
    subject = f"DaemonSet {daemon.namespace}/{daemon.name}"
    measured, expected = f"{daemon.ready} of {daemon.wanted} pods ready and up to date", "all pods ready and up to date"
    served = [node for node in daemon.nodes if node in nodes]
    remedy = (
        f"Wait for the rollout: kubectl -n {daemon.namespace} rollout status daemonset {daemon.name}. If it does not"
        f" end, run kubectl -n {daemon.namespace} describe daemonset {daemon.name}. Then run stage operators again."
    )
    if daemon.ready < len(served):
        why = (
            f"The config daemon is ready on {count_of(len(served), 'node')} of the inventory, but at most"
            f" {count_of(daemon.ready, 'pod is', 'pods are')} of"
            " the current template of the DaemonSet. The DaemonSet has not replaced the other pods yet."
        )
        yield Finding("operators.rollout", subject, FAIL, measured, expected, why, remedy)
    elif daemon.ready < daemon.wanted:
        why = (
            "The DaemonSet also counts pods on nodes outside of the inventory. On nodes of the inventory, the finding"
            " operators.daemon reports the pods that are not ready or not up to date."
        )
        yield Finding("operators.rollout", subject, WARN, measured, expected, why, remedy)
    else:
        yield build_pass("operators.rollout", subject, measured, expected)
    tags = {
        what: sorted({tag for tag in map(_find_tag, images) if tag})
        for what, images in (
            ("operator", [image for one in seen.installations for image in one.deployment.images[:1]]),
            ("config daemon", daemon.images[:1]),
        )
    }
    if all(tags.values()) and tags["operator"] != tags["config daemon"]:
        told = "; ".join(f"{what} {', '.join(found)}" for what, found in tags.items())
        why = (
            "The image of the config daemon is of a different release than the image of the operator. Both images must"
            " be of the same release."
        )
        remedy = (
            "Set both images to the same release in the values of the Helm chart (helm upgrade), or in the variable"
            " SRIOV_NETWORK_CONFIG_DAEMON_IMAGE of the operator. Then run stage operators again."
        )
        yield Finding("operators.rollout", f"image of {subject}", WARN, told, "one release", why, remedy)


def _name_deployment(seen: OperatorFacts) -> str:
    """Return the name of the Deployment of the operator in its namespace; that of the Helm chart if it is unknown."""
    names = [one.deployment.name for one in seen.installations if one.deployment.namespace == seen.namespace]
    return names[0] if names else "sriov-network-operator"


def _find_tag(image: str) -> str:
    """Return the tag of an image name. Return an empty text if the name has no tag, or has a digest.

    :param image: name of the image
    """
    return "" if "@" in image else image.rsplit("/", 1)[-1].partition(":")[2]


def check_daemon(seen: OperatorFacts, node: ClusterNode) -> Finding:
    daemon = seen.daemon
    if daemon is None:
        why = (
            "The operator creates the DaemonSet sriov-network-config-daemon when it runs and finds a"
            " SriovOperatorConfig. Without it, the nodes get no virtual functions."
        )
        measured, remedy = (
            "no DaemonSet",
            (
                "Correct the causes in the findings operators.single, operators.ready and operators.config, then run"
                " stage operators again."
            ),
        )
        if seen.says:
            measured = f"no DaemonSet; the operator reports: {seen.says}"
            why = (
                "The operator runs, but its sync of the SriovOperatorConfig fails, so it does not create the DaemonSet"
                " sriov-network-config-daemon."
            )
            remedy = (
                "Correct the cause that the operator reports under 'measured', usually a key of the"
                f" SriovOperatorConfig. The log of the operator contains it: kubectl -n {seen.namespace} logs"
                f" deployment/{_name_deployment(seen)}. Then run stage operators again."
            )
        return Finding("operators.daemon", node.name, FAIL, measured, "config daemon ready", why, remedy)
    expected = "config daemon ready, physical functions of the node reported"
    if node.name in daemon.nodes:
        # the webhook refuses a policy before the first report, since it knows no NIC yet
        if any(state.node == node.name and state.sync_status for state in seen.states):
            return build_pass("operators.daemon", node.name, expected, expected)
        why = (
            f"The SriovNetworkNodeState {node.name} has no syncStatus, and the operator refuses policies for a node"
            " whose functions it does not know. The config daemon writes the status after it starts."
        )
        remedy = (
            f"If the pod has just started, run stage operators again. Otherwise read its log: kubectl -n"
            f" {daemon.namespace} logs POD, with POD from kubectl -n {daemon.namespace} get pods -o wide"
            f" --field-selector"
            f" spec.nodeName={node.name}. Correct the error in it, then run stage operators again."
        )
        return Finding(
            "operators.daemon",
            node.name,
            FAIL,
            "config daemon ready, physical functions not reported",
            expected,
            why,
            remedy,
        )
    why = "Without a ready pod of the config daemon in its current version, the node gets no virtual functions."
    why += _describe_pods(seen, daemon.name)
    remedy = (
        f"Run kubectl -n {daemon.namespace} get pods -o wide --field-selector spec.nodeName={node.name}. If it lists no"
        " pod of the config daemon, correct configDaemonNodeSelector of the SriovOperatorConfig or the labels of the"
        " node. If the pod is not ready, correct the cause in its events (kubectl describe pod). If it is ready, delete"
        " it, so that the current version starts. Then run stage operators again."
    )
    return Finding(
        "operators.daemon",
        node.name,
        FAIL,
        f"config daemon not ready here; ready on: {join_first(daemon.nodes) or 'no node'}",
        expected,
        why,
        remedy,
    )
