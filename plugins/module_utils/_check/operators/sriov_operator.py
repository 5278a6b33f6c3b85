# SPDX-License-Identifier: GPL-3.0-or-later

"""The SR-IOV network operator: one is installed, and its pods, its configuration and its config daemons work. Check
ids: ``operators.single``, ``operators.olm``, ``operators.version``, ``operators.ready``, ``operators.pods``,
``operators.resource_prefix``, ``operators.config``, ``operators.daemon``, ``operators.rollout``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.image_pull import Keys, explain, is_image_pull_message
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NO_OPERATOR, OperatorFacts, OperatorInstallation
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

#: pods with a warning of their own; the config daemons of a thousand nodes may have one cause
_TROUBLES = 20


def check_installation(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    found = seen.installations
    expected = f"one, in namespace {cluster.operator_namespace or seen.namespace}"
    measured = (
        "; ".join(
            f"{item.deployment.namespace}/{item.deployment.name} ({item.origin}, {item.version or 'no version'})"
            for item in found
        )
        or NO_OPERATOR
    )
    if not found:
        why = "No Deployment in the cluster runs the SR-IOV network operator."
        why += " OLM has it in hand; see operators.olm." if seen.olm else ""
        remedy = "Install it: operators_install with operators_sriov_chart, or OLM on OpenShift."
        return [Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)]
    if len(found) > 1:
        why = (
            "Two operators change the same nodes, each undoing what the other did. NVIDIA's network operator brings one"
            " of its own."
        )
        remedy = "Remove one: helm uninstall, or sriovNetworkOperator.enabled=false in NVIDIA's chart."
        return [
            Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy),
            *_check_each(cluster, seen),
        ]
    one = found[0]
    if one.deployment.namespace != (cluster.operator_namespace or seen.namespace):
        why = "The operator obeys only policies in its own namespace."
        remedy = f"Remove rdma_cluster.operator_namespace, or set it to {one.deployment.namespace}."
        single = Finding("operators.single", "SR-IOV network operator", FAIL, measured, expected, why, remedy)
    else:
        single = ok("operators.single", "SR-IOV network operator", measured, expected)
    return [single, _check_version(one, seen), _check_ready(one, seen), _check_prefix(cluster, one)]


def _check_each(cluster: ClusterIntent, seen: OperatorFacts) -> list[Finding]:
    """Judge each of several installations that is to run; all of them where none is."""
    running = [one for one in seen.installations if one.deployment.wanted] or seen.installations
    findings = []
    for one in running:
        prefix = _check_prefix(cluster, one)
        subject = f"{prefix.subject} of {one.deployment.namespace}/{one.deployment.name}"
        findings += [_check_ready(one, seen), dataclasses.replace(prefix, subject=subject)]
    return findings


def check_olm(seen: OperatorFacts) -> list[Finding]:
    """Check the progress of OLM if it installs the operator. Only a ClusterServiceVersion in phase Succeeded counts as
    an installation.
    """
    findings = []
    if not seen.olm and any(one.origin == "olm" for one in seen.installations):
        why = "The operator's Deployment belongs to OLM, and its ClusterServiceVersion was not seen in its namespace."
        findings.append(
            Finding(
                "operators.olm",
                "OLM",
                UNKNOWN,
                "not seen",
                "Succeeded",
                why,
                "Correct the namespace, or give the user the right to list them.",
            )
        )
    for item in seen.olm:
        subject, expected = (
            f"{item.kind} {item.namespace}/{item.name}",
            "Succeeded" if item.kind == "ClusterServiceVersion" else "installed, no condition",
        )
        measured = ", ".join(part for part in (item.phase or "no state yet", item.version) if part)
        good = item.phase == "Succeeded" if item.kind == "ClusterServiceVersion" else bool(item.version)
        why = f"OLM says: {item.message or 'nothing yet'}."
        remedy = (
            f"kubectl -n {item.namespace} describe {item.kind.lower()} {item.name}; approve its InstallPlan where"
            " approval is manual."
        )
        if good and (item.kind == "ClusterServiceVersion" or not item.message):
            findings.append(ok("operators.olm", subject, measured, expected))
        else:
            findings.append(Finding("operators.olm", subject, WARN if good else FAIL, measured, expected, why, remedy))
    return findings


def _check_version(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    version = one.version or next(
        (item.version for item in seen.olm if item.kind == "ClusterServiceVersion" and item.phase == "Succeeded"), ""
    )
    if version:
        return ok("operators.version", "SR-IOV network operator", version, "known")
    why = "Neither its labels, nor RELEASE_VERSION, nor the image's tag say which version it is."
    return Finding(
        "operators.version",
        "SR-IOV network operator",
        WARN,
        ", ".join(one.deployment.images),
        "known",
        why,
        "Use an image with a version tag.",
    )


def _check_ready(one: OperatorInstallation, seen: OperatorFacts) -> Finding:
    work = one.deployment
    measured, expected = (
        f"{work.ready} of {work.wanted} pods available",
        f"{max(1, work.wanted)} of {max(1, work.wanted)} pods available",
    )
    if work.ready >= work.wanted > 0:
        return ok("operators.ready", f"Deployment {work.namespace}/{work.name}", measured, expected)
    remedy = f"kubectl -n {work.namespace} describe deployment {work.name}; its pods' events name the cause."
    if work.wanted and work.ready:
        # one pod leads, and the others replace it when it ends
        why = f"One pod is enough to act on policies, and the others would replace it.{_describe_pods(seen, work.name)}"
        return Finding(
            "operators.ready", f"Deployment {work.namespace}/{work.name}", WARN, measured, expected, why, remedy
        )
    why = (
        "No pod of the Deployment's present template is available: the operator does not run, or its new pod has not"
        " replaced the old one."
        if work.wanted
        else "The operator is scaled to 0."
    )
    why += _describe_pods(seen, work.name)
    return Finding("operators.ready", f"Deployment {work.namespace}/{work.name}", FAIL, measured, expected, why, remedy)


def check_pods(seen: OperatorFacts) -> typing.Iterator[Finding]:
    """Report the pods of the operator that are not ready, on any node.

    They are warnings: the Deployment and the config daemon of each node have findings of their own, and other stages
    prove that the webhooks and device plugins work.
    """
    expected = "each pod is ready"
    for trouble in seen.troubles[:_TROUBLES]:
        name, _colon, detail = trouble.partition(": ")
        why = "A part of the operator fails or is still starting. It need not be one that your nodes depend on."
        remedy = f"kubectl -n {seen.namespace} describe pod {name}"
        if is_image_pull_message(detail):
            owner = f"what owns pod {name}"
            keys = Keys(
                f"the image of {owner}", f"imagePullPolicy of {owner}", "its imagePullSecrets", seen.namespace, remedy
            )
            cause, remedy = explain(detail, keys)
            why = f"{cause} {why}"
        yield Finding("operators.pods", f"Pod {name}", WARN, detail, expected, why, remedy)
    if not seen.troubles:
        yield ok("operators.pods", f"namespace {seen.namespace}", expected, expected)
    elif len(seen.troubles) > _TROUBLES:
        measured = f"{len(seen.troubles) - _TROUBLES} more are not ready"
        remedy = f"kubectl -n {seen.namespace} get pods"
        yield Finding(
            "operators.pods", f"namespace {seen.namespace}", WARN, measured, expected, "See the first ones.", remedy
        )


def _describe_pods(seen: OperatorFacts, name: str) -> str:
    """Return the messages of up to three failing pods of a workload; empty if there are none."""
    found = [trouble for trouble in seen.troubles if trouble.startswith(name)]
    return f" Its pods: {'; '.join(found[:3])}." if found else ""


def list_missing(cluster: ClusterIntent, seen: OperatorFacts, nodes: typing.Iterable[str]) -> tuple[str, ...]:
    """Return the parts of the operator that are missing for these nodes, followed by its pods that are not ready; the
    stage waits for them. Return an empty tuple if everything is ready.

    Nodes without the label of the node selector are ignored, since this wait does not set labels.

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
        return ok("operators.resource_prefix", subject, one.resource_prefix, expected)
    if not one.resource_prefix:
        why = "The operator's Deployment names no RESOURCE_PREFIX."
        return Finding(
            "operators.resource_prefix",
            subject,
            WARN,
            "not said",
            expected,
            why,
            "Compare with the resources in kubectl describe node.",
        )
    why = "Pods would ask for a resource that no node offers."
    return Finding(
        "operators.resource_prefix",
        subject,
        FAIL,
        one.resource_prefix,
        expected,
        why,
        f"Set rdma_cluster.resource_prefix to {one.resource_prefix}.",
    )


def check_config(seen: OperatorFacts) -> Finding:
    subject, expected = "SriovOperatorConfig default", f"in namespace {seen.namespace}"
    if seen.namespace in seen.configs:
        return ok("operators.config", subject, ", ".join(seen.configs), expected)
    why = (
        "Without it the operator starts no config daemon. Only the name 'default' in the operator's own namespace"
        " counts."
    )
    remedy = "Create it, or set sriovOperatorConfig.deploy=true in the chart's values."
    return Finding("operators.config", subject, FAIL, ", ".join(seen.configs) or "absent", expected, why, remedy)


def check_rollout(seen: OperatorFacts, nodes: typing.Collection[str]) -> typing.Iterator[Finding]:
    """Check that the DaemonSet of the config daemon has replaced all pods of its earlier generations, and that its
    image is of the operator's release. Nothing where there is no DaemonSet.

    :param nodes: that take part
    """
    daemon = seen.daemon
    if daemon is None:
        return
    subject = f"DaemonSet {daemon.namespace}/{daemon.name}"
    measured, expected = f"{daemon.ready} of {daemon.wanted} pods ready and up to date", "each pod"
    served = [node for node in daemon.nodes if node in nodes]
    remedy = f"kubectl -n {daemon.namespace} rollout status daemonset {daemon.name}; then run the stage again."
    if daemon.ready < len(served):
        why = (
            f"{len(served)} nodes of the inventory have a ready config daemon, and at most {daemon.ready} pods are of"
            " the DaemonSet's present template. The operator replaces the others, or can't."
        )
        yield Finding("operators.rollout", subject, FAIL, measured, expected, why, remedy)
    elif daemon.ready < daemon.wanted:
        why = (
            "Some pods are not ready, or are of an earlier template of the DaemonSet. Nodes of the inventory have a"
            " finding of their own; a pod on them may be of the earlier one."
        )
        yield Finding("operators.rollout", subject, WARN, measured, expected, why, remedy)
    else:
        yield ok("operators.rollout", subject, measured, expected)
    tags = {
        what: sorted({tag for tag in map(_find_tag, images) if tag})
        for what, images in (
            ("operator", [image for one in seen.installations for image in one.deployment.images[:1]]),
            ("config daemon", daemon.images[:1]),
        )
    }
    if all(tags.values()) and tags["operator"] != tags["config daemon"]:
        told = "; ".join(f"{what} {', '.join(found)}" for what, found in tags.items())
        why = "The config daemon's image is of another release than the operator's. They are made for each other."
        remedy = (
            "Set the images of one release in the chart's values (helm upgrade), or in the operator's variable"
            " SRIOV_NETWORK_CONFIG_DAEMON_IMAGE."
        )
        yield Finding("operators.rollout", f"image of {subject}", WARN, told, "one release", why, remedy)


def _find_tag(image: str) -> str:
    """Return the tag of an image; empty where it has none, and where a digest says which one it is."""
    return "" if "@" in image else image.rsplit("/", 1)[-1].partition(":")[2]


def check_daemon(seen: OperatorFacts, node: ClusterNode) -> Finding:
    daemon = seen.daemon
    if daemon is None:
        why = (
            "The operator has not made the DaemonSet sriov-network-config-daemon: it waits for a SriovOperatorConfig,"
            " or does not run."
        )
        measured, remedy = "no DaemonSet", "See the findings on the operator above."
        if seen.says:
            measured = f"no DaemonSet; the operator says: {seen.says}"
            why = (
                "The operator runs, and its sync of the SriovOperatorConfig fails, so it makes no DaemonSet"
                " sriov-network-config-daemon."
            )
            remedy = (
                f"Correct what it names, mostly a key of the SriovOperatorConfig; its log: kubectl -n {seen.namespace}"
                " logs deployment/<operator>."
            )
        return Finding("operators.daemon", node.name, FAIL, measured, "config daemon ready", why, remedy)
    expected = "config daemon ready, with a report of the node's functions"
    if node.name in daemon.nodes:
        # the webhook refuses a policy before the first report, since it knows no NIC yet
        if any(state.node == node.name and state.sync_status for state in seen.states):
            return ok("operators.daemon", node.name, expected, expected)
        why = (
            "The config daemon runs, and its SriovNetworkNodeState has no status yet: it has not looked at the node, or"
            " cannot write."
        )
        remedy = (
            f"kubectl -n {daemon.namespace} get sriovnetworknodestates {node.name} -o yaml, and the log of the config"
            " daemon on the node."
        )
        return Finding("operators.daemon", node.name, FAIL, "config daemon ready, no report", expected, why, remedy)
    why = (
        "The config daemon makes the virtual functions, and it is not ready on the node: configDaemonNodeSelector"
        " leaves the node out, or its pod fails, or is of an earlier template of the DaemonSet."
    )
    why += _describe_pods(seen, daemon.name)
    remedy = f"kubectl -n {daemon.namespace} get pods -o wide; compare configDaemonNodeSelector with the node's labels."
    return Finding(
        "operators.daemon", node.name, FAIL, f"ready on: {', '.join(daemon.nodes) or 'no node'}", expected, why, remedy
    )
