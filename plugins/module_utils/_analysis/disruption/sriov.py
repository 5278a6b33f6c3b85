# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effects of the fabrics' policies before they are applied: the nodes that the SR-IOV operator drains or
reboots, the reasons, the number of groups that go down one after the other, and the blockers.

The rules of the operator are in _analysis/controllers/sriov. node_plan.py predicts the change of one node.
_run/node_changes/read_disruption_plan.py reads the cluster, and judge_plan.py judges the plan.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import DisruptionPlan, MachinePool, NodePlan, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import Policy
from ..controllers.drains.gate import list_pauses, list_roll_blockers
from ..controllers.drains.room import GateInputs
from ..controllers.sriov.drains import Turn, turn_of
from ..controllers.sriov.policies import find_wanted
from .firmware_blockers import FirmwareWriters, add_firmware_blockers
from .live_state import Live
from .machine_config import Machines, merge
from .node_plan import plan_node

Names = typing.Container[str]


#: remark for the node that runs the playbook
_OWN_NODE = (
    "ansible-playbook runs on this node: a reboot ends the run, and so does a drain if it runs in a pod. Run the"
    " playbook on another machine, or run stage network again after the node is back"
)


def plan(live: Live, rendered: typing.Iterable[Policy], inventory: typing.Iterable[str], prefix: str) -> DisruptionPlan:
    """Return the drains and reboots that the operator will perform after the policies of the fabrics are applied.

    :param live: present state of the cluster
    :param rendered: policies of the fabrics, which replace policies of the same name in the cluster
    :param inventory: names of the nodes of the run. Every other node with a SriovNetworkNodeState is planned as well
    :param prefix: prefix of the device plugin's resources
    """
    policies = {policy.name: policy for policy in (*live.policies, *rendered)}
    listed = tuple(inventory)
    known = {node.name: node for node in live.nodes}
    writers = FirmwareWriters(live.namespace, live.settings, live.cards)
    nodes = []
    for name in dict.fromkeys((*listed, *(name for name in known if name in live.states))):
        node, every = known.get(name), tuple(policies.values())
        planned_node = plan_node(node, name, live, every, name in listed, prefix)
        wanted = functools.partial(find_wanted, every)
        nodes.append(add_firmware_blockers(planned_node, node, live.states.get(name), wanted, writers))
    planned = DisruptionPlan(
        tuple(nodes), list_pools(nodes, known, live), not live.settings.disable_drain, dict(live.unread)
    )
    return merge(
        planned,
        Machines(live.host_configs, live.kubelet_configs, live.machine_pools, live.nodes, live.pods, live.budgets),
    )


def add_gate(
    planned: DisruptionPlan,
    stand: GateInputs,
    machine_pools: typing.Iterable[MachinePool],
    cluster: ClusterIntent,
    inventory: Names,
) -> DisruptionPlan:
    """Return the plan with the reasons why its nodes must not go down now, and with the health checks to pause.

    :param planned: predicted drains and reboots
    :param stand: state of the cluster on which the gate depends
    :param machine_pools: MachineConfigPools of the cluster
    :param cluster: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    """
    # a node that loses its link is as unreachable as one that reboots
    drained = {node.node for node in planned.nodes if node.action == "drain" and not node.loses_link}
    # without a drain, a node that does not reboot remains available
    drains = {pool: planned.drains or pool.machines or pool.undrained for pool in planned.pools}
    drains.update({pool: pool.driver != "remove" for pool in planned.pools if pool.driver})
    turns = (
        dataclasses.replace(pool, nodes=tuple(name for name in pool.nodes if drains[pool] or name not in drained))
        for pool in planned.pools
    )
    rolls = [turn for turn in turns if turn.nodes]
    found = list_roll_blockers(rolls, drained, stand, machine_pools, cluster, inventory)
    nodes = tuple(
        dataclasses.replace(node, reasons=(*node.reasons, _OWN_NODE))
        if node.node == stand.own_node and node.action in ("drain", "reboot")
        else node
        for node in planned.nodes
    )
    pauses = tuple(map(str, list_pauses(rolls, stand, cluster)))
    return dataclasses.replace(planned, nodes=nodes, closed=found, pauses=pauses)


def make_untouched_plan(
    inventory: typing.Iterable[str], unread: typing.Optional[typing.Mapping[str, str]] = None
) -> DisruptionPlan:
    """Return a plan in which no node changes, for fabrics that do not use the SR-IOV network operator. The operator
    need not be installed.

    :param inventory: names of the nodes of the inventory
    :param unread: reason for each kind of object that could not be read, by kind
    """
    return DisruptionPlan(tuple(NodePlan(name, "nothing") for name in inventory), unread=dict(unread or {}))


def list_configured(nodes: typing.Iterable[NodePlan]) -> tuple[str, ...]:
    """Return the names of the nodes that change without a drain or reboot. Nodes whose change is unknown are not among
    them.
    """
    return tuple(node.node for node in nodes if node.action == "configure")


def list_disturbed(nodes: typing.Iterable[NodePlan]) -> tuple[str, ...]:
    """Return the names of the nodes that the plan drains or reboots."""
    return tuple(node.node for node in nodes if node.action in ("drain", "reboot"))


def list_pools(
    nodes: typing.Sequence[NodePlan], known: typing.Mapping[str, ClusterNode], live: Live
) -> tuple[PoolPlan, ...]:
    """Return the order in which the operator drains or reboots nodes, by SriovNetworkPoolConfig.

    :param nodes: plans of the nodes
    :param known: nodes of the cluster, by name
    :param live: present state of the cluster
    """
    alone = tuple(node.node for node in nodes if node.undrained and node.loses_link)
    undrained = {node.node for node in nodes if node.undrained}
    names = tuple(name for name in list_disturbed(nodes) if name not in undrained)
    limit = "the operator creates the first virtual functions of a NIC without a drain, on all nodes at the same time"
    at_once = (PoolPlan("", alone, len(alone), 1, limit, undrained=True),) if alone else ()
    if not names:
        return at_once
    if live.settings.disable_drain:
        limit = "disableDrain is true: the operator cordons and drains no node, and nodes do not wait for each other"
        return (*at_once, PoolPlan("", names, None, 1, limit))
    groups: dict[str, list[str]] = {}
    turns: dict[str, Turn] = {}
    blocked: dict[str, dict[str, None]] = {}
    for name in names:
        turn = turn_of(known[name], live.pools, known.values())
        groups.setdefault(turn.pool, []).append(name)
        turns.setdefault(turn.pool, turn)
        blocked.setdefault(turn.pool, {}).update({turn.blocked: None} if turn.blocked else {})
    turned = (_plan_pool(turns[pool], tuple(members), tuple(blocked[pool])) for pool, members in groups.items())
    return (*at_once, *turned)


def _plan_pool(turn: Turn, nodes: tuple[str, ...], blockers: tuple[str, ...]) -> PoolPlan:
    waves = None if blockers else 1 if turn.at_once is None else -(-len(nodes) // turn.at_once)
    return PoolPlan(turn.pool, nodes, turn.at_once, waves, turn.limit, blockers)
