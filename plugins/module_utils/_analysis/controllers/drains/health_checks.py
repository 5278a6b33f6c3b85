# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the MachineHealthChecks and NodeHealthChecks that would remediate a node while a roll keeps it down. Pure."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.phrases import describe_unread_remedy
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.control_plane import HealthCheck, Machine
from ...._model.kubernetes.objects import ClusterNode
from ..label_selectors import labels_match

#: what to do about one, where the roll can pause it
HOW = (
    "Set rdma_cluster.pause_health_checks: true to pause the health check until the node is back, or pause it manually."
    " Then run the stage again"
)
_RIGHTS = "Give the user of the kubeconfig the right to list these kinds"
#: kind of the Machines of Cluster API, which may be in another cluster than their nodes
CAPI_MACHINE = "Machine.cluster.x-k8s.io"
#: API groups that a cluster may serve: kind of the health check, and of what it selects
BY_GROUP: dict[str, tuple[str, str]] = {
    "machine.openshift.io": ("MachineHealthCheck.machine.openshift.io", "Machine.machine.openshift.io"),
    "cluster.x-k8s.io": ("MachineHealthCheck.cluster.x-k8s.io", CAPI_MACHINE),
    "remediation.medik8s.io": ("NodeHealthCheck", "Node"),
}


def of_machines(check: HealthCheck, machines: typing.Optional[typing.Iterable[Machine]]) -> HealthCheck:
    """Return a MachineHealthCheck with the names of the nodes that it watches, which are those of the selected
    Machines. The check is returned unchanged, which means all nodes, if the Machines could not be read or a selected
    Machine names no node.

    :param machines: Machines of all namespaces; None if they could not be read
    """
    if machines is None:
        return check
    mine = [
        one
        for one in machines
        if one.namespace == check.namespace and (check.selector is None or labels_match(check.selector, one.labels))
    ]
    return (
        check
        if any(not one.node for one in mine)
        else dataclasses.replace(check, nodes=tuple(one.node for one in mine))
    )


def of_nodes(check: HealthCheck, nodes: typing.Iterable[ClusterNode]) -> HealthCheck:
    """Return a NodeHealthCheck with the names of the nodes that its selector matches."""
    return dataclasses.replace(
        check,
        nodes=tuple(one.name for one in nodes if check.selector is None or labels_match(check.selector, one.labels)),
    )


def list_watching(node: ClusterNode, checks: typing.Iterable[HealthCheck]) -> tuple[HealthCheck, ...]:
    """Return the health checks that watch a node, or possibly watch it. A check that was paused outside of this
    collection is left out.

    :param checks: health checks, each with the nodes that it watches
    """
    return tuple(check for check in checks if check.watches(node.name) and (check.ours or not check.paused))


def find_machines_elsewhere(
    nodes: typing.Iterable[ClusterNode], machines: typing.Optional[typing.Iterable[Machine]]
) -> frozenset[str]:
    """Return the names of the nodes whose Machines of Cluster API are not in this cluster. They are in the management
    cluster, and so are the MachineHealthChecks that watch them.

    :param machines: Machines of Cluster API of all namespaces of this cluster; None if they could not be read, so that
        each node with a Machine counts
    """
    here = {machine.node for machine in machines or ()}
    return frozenset(node.name for node in nodes if node.machine and node.name not in here)


def explain_elsewhere(node: ClusterNode, elsewhere: typing.Container[str], intent: ClusterIntent) -> str:
    """Return why a node must not go down because of health checks in another cluster, with the remedy. Return an empty
    text if it has no Machine there, or if the intent says that they are paused.

    :param elsewhere: names of the nodes whose Machines are in another cluster
    :param intent: settings of the intent that all fabrics share
    """
    if node.name not in elsewhere or intent.management_cluster_paused:
        return ""
    return (
        f"it is the Machine {node.machine} of Cluster API, which is not in this cluster, so it is unknown whether a"
        " MachineHealthCheck of the management cluster would reprovision the node while it is down. Pause it there"
        " (kubectl annotate machinehealthcheck -n NAMESPACE NAME cluster.x-k8s.io/paused=), set"
        " rdma_cluster.management_cluster_paused: true, and run the stage again."
    )


def explain_remediation_risk(
    node: ClusterNode,
    checks: typing.Iterable[HealthCheck],
    unread: typing.Mapping[str, str],
    allowed: bool,
    how: str = HOW,
) -> tuple[str, ...]:
    """Return the reasons for which a node must not be reset because of health checks, each with its remedy; empty if no
    health check would remediate the node.

    :param checks: health checks, each with the nodes that it watches
    :param unread: reason for each kind of health check that could not be read, by kind
    :param allowed: whether the roll may pause health checks
    :param how: remedy for a health check that the roll does not pause
    """
    kinds = [kind for kind, _selected in BY_GROUP.values() if kind in unread]
    if kinds:
        told = "; ".join(f"{kind}: {unread[kind]}" for kind in kinds)
        return (
            (
                f"it could not be determined whether a health check would remediate the node while it is down ({told})."
                f" {describe_unread_remedy([unread[kind] for kind in kinds], _RIGHTS)}."
            ),
        )
    found = list_watching(node, checks) if not allowed else ()
    if not found:
        return ()
    names = ", ".join(map(str, found[:3]))
    return (f"{names} would remediate the node while it is down, and could reboot or reprovision it. {how}.",)
