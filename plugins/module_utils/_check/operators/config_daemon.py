# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the config daemon of the SR-IOV network operator on each node, and the rollout of its DaemonSet. Check ids:
``operators.daemon``, ``operators.rollout``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import OperatorFacts
from ..._model.run.findings import FAIL, WARN, Finding, build_pass


def describe_pods(seen: OperatorFacts, name: str) -> str:
    """Return the messages of up to three failing pods of a workload; empty if there are none.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    :param name: name of the Deployment or DaemonSet
    """
    found = [trouble for trouble in seen.troubles if trouble.startswith(name)]
    return f" Pods that are not ready: {'; '.join(found[:3])}." if found else ""


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
        f" end, list the pods that are not ready: kubectl -n {daemon.namespace} get pods -o wide -l"
        " app=sriov-network-config-daemon. Correct the cause in their events (kubectl describe pod). Then run stage"
        " operators again."
    )
    if daemon.ready < len(served):
        why = (
            f"The config daemon is ready on {count_of(len(served), 'node')} of the inventory, but at most"
            f" {count_of(daemon.ready, 'pod runs', 'pods run')} its current version. The DaemonSet has not replaced"
            " the other pods yet."
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
        yield Finding(
            "operators.rollout",
            f"image of {subject}",
            WARN,
            told,
            "the config daemon and the operator of one release",
            why,
            remedy,
        )


def _name_deployment(seen: OperatorFacts) -> str:
    """Return the name of the Deployment of the operator in its namespace.

    If it is unknown, return the name that the Helm chart gives it.
    """
    names = [one.deployment.name for one in seen.installations if one.deployment.namespace == seen.namespace]
    return names[0] if names else "sriov-network-operator"


def _find_tag(image: str) -> str:
    """Return the tag of an image name. Return an empty text if the name has no tag, or has a digest.

    :param image: name of the image
    """
    return "" if "@" in image else image.rsplit("/", 1)[-1].partition(":")[2]


def check_daemon(seen: OperatorFacts, node: ClusterNode) -> Finding:
    """Return the finding on the config daemon of a node.

    It passes if the pod of the daemon is ready and the daemon has reported the physical functions of the node.
    """
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
    why = "The node has no ready pod of the config daemon in its current version, so it gets no virtual functions."
    why += describe_pods(seen, daemon.name)
    remedy = (
        f"Run kubectl -n {daemon.namespace} get pods -o wide --field-selector spec.nodeName={node.name}. If it lists"
        " no pod of the config daemon, correct configDaemonNodeSelector of the SriovOperatorConfig or the labels of"
        " the node. If the pod is not ready, correct the cause in its events (kubectl describe pod). If it is"
        " ready, it has an earlier version: delete it, so that the current version starts. Then run stage operators"
        " again."
    )
    return Finding(
        "operators.daemon",
        node.name,
        FAIL,
        f"config daemon not ready on this node; ready on: {join_first(daemon.nodes) or 'no node'}",
        expected,
        why,
        remedy,
    )
