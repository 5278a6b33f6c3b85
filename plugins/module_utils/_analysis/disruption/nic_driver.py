# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effects of a changed driver of NVIDIA's network operator or of the GPU operator on the nodes. The network
operator drains the nodes to load a driver, and removes a driver without a drain. The GPU operator evicts the pods that
use GPUs before it restarts its driver. Both do it on all nodes with their hardware, in the inventory or not. The result
becomes part of the plan of stage network, which sriov.py begins.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import ClusterPod, DisruptionPlan, NodePlan, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.drivers import DriverChange
from ..._model.operators.operators import GPU_DRIVER_LABEL, GPU_LABEL, GPU_RESOURCES, NFD_LABELS, NIC_LABEL
from ..controllers.drains.budgets import PodsOfCluster, find_held_pods
from ..controllers.label_selectors import labels_match
from ..controllers.sriov.drains import is_evicted
from .driver_links import DriverUses, add_driver_uses

_AT_ONCE = {"remove": "removes its driver from", "reload": "can restart its driver on"}


def list_driver_nodes(
    change: DriverChange, nodes: typing.Iterable[ClusterNode], inventory: typing.Container[str]
) -> tuple[str, ...]:
    """Return the names of the nodes on which the operator loads, restarts or removes the driver.

    For the driver of NICs, these are the nodes that node feature discovery has labelled for NVIDIA's NICs. If the
    driver is loaded, they include each node of the inventory without any label of node feature discovery, because the
    labels may follow. The decision is made for each node separately, because a kubelet can write these labels of its
    own Node only.

    :param change: change of the driver
    :param nodes: nodes of the cluster
    :param inventory: names of the nodes of the inventory
    """
    if change.nodes is not None:
        return change.nodes
    if change.action == "reload":
        # the operator sets both labels itself, so without them it runs no driver
        return tuple(
            node.name
            for node in nodes
            if node.labels.get(GPU_LABEL) == "true" and node.labels.get(GPU_DRIVER_LABEL) != "false"
        )
    known = [node for node in nodes if node.name not in change.kept_out]
    return tuple(node.name for node in known if _has_driver(node, change, inventory))


def _has_driver(node: ClusterNode, change: DriverChange, inventory: typing.Container[str]) -> bool:
    """Return whether the operator loads or removes the driver of NICs on a node. It does so on nodes with the label of
    NVIDIA's NICs. Before a driver is loaded, a node of the inventory without any label of node feature discovery counts
    too.

    :param inventory: names of the nodes of the inventory
    """
    if change.action == "load" and not any(key.startswith(NFD_LABELS) for key in node.labels):
        return node.name in inventory
    return node.labels.get(NIC_LABEL) == "true" and (
        not change.affinity or any(labels_match(term, node.labels) for term in change.affinity)
    )


def merge_driver(
    planned: DisruptionPlan,
    change: DriverChange,
    names: typing.Sequence[str],
    pods: PodsOfCluster,
    uses: DriverUses = None,
) -> DisruptionPlan:
    """Return the plan with the drains by NVIDIA's network operator or the GPU operator added. The plan is returned
    unchanged if no node has the driver.

    :param planned: plan of the drains and reboots by other operators
    :param change: change of the driver
    :param names: names of the nodes with the driver
    :param pods: pods and PodDisruptionBudgets of the cluster
    :param uses: for each node, what it uses a NIC with this driver for, by interface or PCI address; None if the driver
        of no NIC changes
    """
    if not names:
        return planned
    nodes = {node.node: node for node in planned.nodes}
    for name in names:
        node = nodes.get(name, NodePlan(name, "nothing", listed=False))
        known = node.action != "unknown"
        node = _add_driver(node, change, pods)
        nodes[name] = add_driver_uses(node, change.action, uses) if known else node
    most = change.at_once
    limit = change.limit or (
        f"maxParallelUpgrades is {0 if most is None else most}"
        if change.action == "load" or (change.action == "reload" and most is not None)
        else f"the operator {_AT_ONCE[change.action]} all nodes at the same time"
    )
    waves = 1 if most is None else -(-len(names) // most)
    turns = PoolPlan(change.policy, tuple(names), most, waves, limit, driver=change.action)
    return dataclasses.replace(planned, nodes=tuple(nodes.values()), pools=(*planned.pools, turns))


def _add_driver(node: NodePlan, change: DriverChange, pods: PodsOfCluster) -> NodePlan:
    if node.action == "unknown":
        return node
    reasons = (*node.reasons, change.reason)
    disturbed = node.action in ("drain", "reboot") and not node.undrained
    node = dataclasses.replace(node, undrained=False)
    if change.action == "remove":
        if disturbed:
            return dataclasses.replace(node, reasons=reasons)
        return dataclasses.replace(node, action="drain", reasons=reasons, driver="remove")
    going = [pod for pod in pods.list_pods(node.node) if is_evicted(pod, True, "") and _is_taken(pod, change)]
    named = {f"{pod.namespace}/{pod.name}": pod for pod in going}
    lost = [name for name, pod in named.items() if not pod.owner and not pod.ended]
    blockers = find_held_pods(going, True, "", pods.budget_index)
    return dataclasses.replace(
        node,
        action="reboot" if node.action == "reboot" else "drain",
        reasons=reasons,
        pods=tuple(dict.fromkeys((*node.pods, *named))),
        lost=tuple(dict.fromkeys((*node.lost, *lost))),
        blockers=tuple(dict.fromkeys((*node.blockers, *blockers))),
        driver=node.driver if disturbed and change.action == "reload" else change.action,
    )


def _is_taken(pod: ClusterPod, change: DriverChange) -> bool:
    """Return whether the operator evicts a pod of the node: the GPU operator only evicts pods that use GPUs. A pod that
    could not be read may use one.
    """
    if change.action != "reload" or change.all_pods or pod.unread:
        return True
    return any(name.startswith(GPU_RESOURCES) for name in pod.requests)
