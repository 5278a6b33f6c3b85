# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the reasons why a roll must not take a node down, and the pods that its drain evicts. Pure."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.budgets import find_held_pods
from ..._analysis.controllers.drains.control_plane import is_control_plane, list_control_plane
from ..._analysis.controllers.drains.drain import list_drain_blockers
from ..._analysis.controllers.drains.gate import (
    explain_too_many,
    explain_upgrade,
    list_node_blockers,
    list_pool_blockers,
)
from ..._analysis.controllers.drains.room import explain_unread_turns, find_rebooted_control
from ..._analysis.controllers.sriov.drains import is_evicted
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import PoolPlan
from ..._model.kubernetes.node_roll import NodeStep
from ..._model.kubernetes.objects import ClusterNode
from .roll_cluster import RollCluster


def add_node_blockers(
    step: NodeStep,
    node: ClusterNode,
    cluster: RollCluster,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    awaited: typing.Container[str],
) -> NodeStep:
    """Return a step that reboots its node with two additions: the pods that the drain evicts, and the reasons against
    taking the node down now (its blockers).

    :param node: the node of the step
    :param cluster: present state of the cluster
    :param inventory: names of the nodes of the inventory
    :param awaited: names of the nodes whose reset an earlier run has begun
    """
    going = [pod for pod in cluster.list_pods(node.name) if is_evicted(pod, True, "")]
    lost = tuple(f"{pod.namespace}/{pod.name}" for pod in going if not pod.owner and not pod.ended)
    blockers = list(filter(None, (explain_not_ready(node),)))
    if not node.boot_id:
        blockers.append(
            "the kubelet of the node does not report a boot ID, so a reset could not be verified. Restart the kubelet."
        )
    elif node.boot_id == cluster.own_boot and not step.pool:
        # the machine config operator goes on without this run, and uncordons the node. A copied boot ID keeps only the
        # node that copies it from its reset
        blockers.append(
            "ansible-playbook runs on this node (its machine has the same boot ID), so the reset would end the run, and"
            " the node would stay cordoned. Run the playbook on a machine that is not reset, such as another node."
        )
    blockers += list_drain_blockers(going, intent.drain)
    blockers += list_node_blockers(node, cluster, intent, intent.pause_health_checks, awaited)
    # a node whose reset an earlier run has begun waits for the same upgrade
    busy = cluster.in_the_way(node, inventory)
    blockers += filter(None, (explain_upgrade(cluster), _explain_too_many(step, node, cluster), busy))
    # the machine config operator cordons a node that it reboots
    blockers += filter(None, ("" if busy else cluster.explain_cordon(node),))
    if not step.pool:
        blockers += filter(None, (explain_taken(node.name, cluster),))
    if cluster.marks.get(node.name) is None:
        # a node that was begun waits for them instead: its own drain may be what they lack
        blockers += [
            f"{held}. Allow an eviction, for example with one more replica, then rerun."
            for held in find_held_pods(going, True, "", cluster.budget_index)
        ]
    return dataclasses.replace(
        step, pods=tuple(f"{pod.namespace}/{pod.name}" for pod in going), lost=lost, blockers=tuple(blockers)
    )


def explain_not_ready(node: ClusterNode) -> str:
    """Return that a node is not Ready, with the remedy. Return an empty text if it is."""
    if node.ready:
        return ""
    return (
        f"the node is not Ready ({node.not_ready or 'the kubelet reports no reason'}). Make the node Ready first:"
        f" kubectl describe node {node.name}."
    )


def explain_taken(node: str, cluster: RollCluster) -> str:
    """Return the reason, with a remedy, why a BMC must not reset a node: another operator takes the node down, or
    reboots another control-plane node while this node is one. Return an empty text if the BMC may reset the node.
    """
    unread = explain_unread_turns(cluster)
    if unread:
        return unread
    why = cluster.taken.get(node, "")
    if why:
        return f"{why}. Wait until the operator is done with the node, then rerun."
    if not any(one.name == node for one in list_control_plane(cluster.nodes)):
        return ""
    for turn in cluster.all_turns:
        for name in sorted(find_rebooted_control(turn, cluster)):
            return (
                f"the node is a control-plane node, and {turn} reboots the control-plane node {name}"
                f" ({turn.nodes[name]}). Wait until the operator is done with that node, then rerun."
            )
    return ""


def add_pool_blockers(
    roll: PoolPlan, cluster: RollCluster, intent: ClusterIntent, inventory: typing.Container[str]
) -> PoolPlan:
    """Return the planned roll of a MachineConfigPool with further reasons against it, besides those in the steps of its
    nodes: limits of the intent, and reasons against taking down nodes of the pool that are not in the inventory. The
    roll reboots these nodes as well.

    :param inventory: names of the nodes of the inventory
    """
    found = list(list_pool_blockers(roll, intent))
    for node in (node for node in cluster.nodes if node.name in roll.nodes and node.name not in inventory):
        alone = NodeStep(node.name, "reboot", pool=roll.name)
        found += (
            f"{node.name} (not in the inventory): {why}"
            for why in add_node_blockers(alone, node, cluster, intent, inventory, ()).blockers
        )
    return dataclasses.replace(roll, blockers=(*roll.blockers, *found))


def _explain_too_many(step: NodeStep, node: ClusterNode, cluster: RollCluster) -> str:
    """Return the reason why the MachineConfigPool of a control-plane node must not be rolled: its roll reboots more
    than one control-plane node at the same time. Return an empty text if the pool may be rolled, or if no pool reboots
    the node.
    """
    pool = next((pool for pool in cluster.machine_pools if step.pool and pool.name == step.pool), None)
    return explain_too_many(pool, is_control_plane(node, cluster.nodes)) if pool is not None else ""
