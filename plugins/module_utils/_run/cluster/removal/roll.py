# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the reasons why the nodes that the SR-IOV network operator drains or reboots for a removal must not go down now,
or must not lose their virtual functions. They are those for which stage network does not apply its objects.
"""

from __future__ import annotations

import typing

from ...._analysis.controllers.drains.gate import list_roll_blockers
from ...._analysis.controllers.machine_configs.pools import find_machine_pool
from ...._analysis.controllers.sriov.drains import Turn, find_pools, list_drain_refusals, turn_of
from ...._analysis.controllers.sriov.policies import takes_node
from ...._model.base.text import join_first
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.disruption import NodePool, OperatorSettings, PoolPlan
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import NodeState, Policy
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._observe.operators.sriov_operator import find_namespace
from ...._parse.kubernetes import core
from ...._parse.kubernetes.resource import name_of, read_namespace
from ...._parse.operators import machine_config, sriov_operator
from ...node_changes.drain_blockers import read_drain_blockers
from ...node_changes.gate import read_gate_inputs
from ...node_changes.health_checks import HealthChecks
from ...node_changes.read_turns import TurnReader
from .functions import RemovedFunctions, explain_firmware, explain_losses, explain_uplinks
from .known_uses import KnownUses

#: nodes that a message names
_NAMED = 10
_POOL = "SriovNetworkPoolConfig"
_NO_DRAIN = "disableDrain is true: the operator drains no node, and nodes do not wait for each other"


def list_removal_blockers(
    cluster: Cluster,
    policies: typing.Sequence[Resource],
    pools: typing.Sequence[Resource],
    intent: ClusterIntent,
    known: typing.Optional[KnownUses] = None,
) -> tuple[str, ...]:
    """Return the reasons why the nodes that the SR-IOV operator takes down for a removal must not go down now, or must
    not lose their virtual functions, each as text with its remedy. Return an empty tuple if there are no reasons. All
    nodes that a removed object selects count.

    :param policies: SriovNetworkNodePolicies that the removal takes
    :param pools: SriovNetworkPoolConfigs that the removal takes
    :param intent: settings of the intent that all fabrics share
    :param known: uses of NICs by the nodes themselves; None if they are not known
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    if not policies and not pools:
        return ()
    nodes = tuple(map(core.parse_node, cluster.list("Node").items))
    place = find_namespace(cluster, intent.operator_namespace)
    policies, pools = (_select_place(items, place) for items in (policies, pools))
    if not policies and not pools:
        return ()
    every = tuple(map(sriov_operator.node_pool, _list_served(cluster, _POOL, place)))
    settings = _read_settings(cluster, place)
    # of an operator in an unknown namespace, a tenant may have created the settings
    spares = bool(place) and settings.disable_drain
    removed = [pool for pool in every if _is_taken(pool, pools)]
    taken = tuple(map(sriov_operator.parse_policy, policies))
    selected = [node for node in nodes if any(takes_node(policy, node) for policy in taken)]
    rebooted = {node.name for node in nodes if find_pools(node, removed)}
    if settings.mode == "systemd":
        # the operator applies every change at boot
        rebooted |= {node.name for node in selected}
    drained = set() if spares else {node.name for node in selected} - rebooted
    functions = RemovedFunctions(
        selected,
        taken,
        _list_left(cluster, place, taken),
        _read_states(cluster, place),
        rebooted,
        not settings.disable_drain,
    )
    known = known or KnownUses()
    lost = (
        *explain_losses(cluster, functions, intent.resource_prefix, known),
        *explain_uplinks(functions, known),
        *explain_firmware(functions, place, settings),
    )
    rolls = _plan_rolls([node for node in nodes if node.name in rebooted | drained], every, nodes, settings)
    if not rolls:
        return lost
    checks = HealthChecks(cluster, lambda _line: None)
    stand = read_gate_inputs(cluster, nodes, checks=checks, turns=TurnReader(cluster, place))
    pools_of_machines = tuple(map(machine_config.machine_pool, _list_served(cluster, "MachineConfigPool", "")))
    found = list_roll_blockers(rolls, drained, stand, pools_of_machines, intent, ())
    undone = [
        f"{node.name}: {why}."
        for node in nodes
        if node.name in rebooted | drained and not settings.disable_drain
        for why in list_drain_refusals(
            node, find_machine_pool(node, pools_of_machines), functions.states.get(node.name)
        )
    ]
    evicted = {} if settings.disable_drain else {name: name in rebooted for name in sorted(rebooted | drained)}
    return (
        *_explain_unpermitted(rebooted, intent),
        *lost,
        *found,
        *undone,
        *read_drain_blockers(cluster, evicted, intent),
    )


def list_of_operator(
    cluster: Cluster, items: typing.Sequence[Resource], intent: typing.Optional[ClusterIntent]
) -> list[Resource]:
    """Return those of the objects that the SR-IOV network operator reads: the objects in its namespace, or all objects
    if its namespace is not known.

    :param items: SriovNetworkNodePolicies or SriovNetworkPoolConfigs
    :param intent: settings of the intent that all fabrics share; None if they are not known
    :raises ApiError: the API server cannot be reached
    """
    named = intent.operator_namespace if intent is not None else None
    return _select_place(items, find_namespace(cluster, named) if items else "")


def _select_place(items: typing.Sequence[Resource], place: str) -> list[Resource]:
    """Return the objects in a namespace. Objects in another namespace are left out, because a tenant may have created
    them with any label and field manager.

    :param items: objects of one kind
    :param place: name of the namespace; empty for all namespaces
    """
    return [item for item in items if place in ("", read_namespace(item))]


def _explain_unpermitted(rebooted: typing.Iterable[str], intent: ClusterIntent) -> tuple[str, ...]:
    """Return the reason why the intent does not permit reboots of nodes, with the remedy. Return an empty tuple if it
    permits them, or if no node reboots.

    :param rebooted: names of the nodes that reboot
    """
    if not rebooted or intent.disruption == "reboot":
        return ()
    return (
        f"{join_first(sorted(rebooted), _NAMED)}: the operator reboots these nodes, and rdma_cluster.disruption is"
        f" '{intent.disruption}'. If you permit this, set rdma_cluster.disruption: reboot.",
    )


def _is_taken(pool: NodePool, pools: typing.Iterable[Resource]) -> bool:
    """Return whether a removal takes a pool that sets the RDMA mode of its nodes. The operator then reboots these
    nodes.

    :param pool: SriovNetworkPoolConfig in the cluster
    :param pools: SriovNetworkPoolConfigs that the removal takes
    """
    return bool(pool.rdma_mode) and any(name_of(item) == pool.name for item in pools)


def _list_left(cluster: Cluster, place: str, removed: typing.Iterable[Policy]) -> list[Policy]:
    """Return the policies that remain in the namespace of the operator after a removal.

    :param place: name of the namespace; empty if it is not known, and then the result is empty
    :param removed: policies that the removal takes
    """
    gone = {policy.name for policy in removed}
    items = _list_served(cluster, "SriovNetworkNodePolicy", place) if place else ()
    return [policy for policy in map(sriov_operator.parse_policy, items) if policy.name not in gone]


def _read_states(cluster: Cluster, place: str) -> dict[str, NodeState]:
    """Return the SriovNetworkNodeStates in the namespace of the operator, by node.

    :param place: name of the namespace; empty if it is not known. The result is then empty, because a tenant can create
        states in another namespace
    """
    items = _list_served(cluster, "SriovNetworkNodeState", place) if place else ()
    return {state.node: state for state in map(sriov_operator.node_state, items)}


def _plan_rolls(
    going: typing.Sequence[ClusterNode],
    pools: typing.Sequence[NodePool],
    nodes: typing.Sequence[ClusterNode],
    settings: OperatorSettings,
) -> list[PoolPlan]:
    """Return the order in which nodes go down, one plan for each pool. Without drains, one plan has all nodes, because
    no node waits for another.

    :param going: nodes that go down
    :param pools: SriovNetworkPoolConfigs of the cluster
    :param nodes: nodes of the cluster
    :param settings: settings of the operator
    """
    if settings.disable_drain:
        return [PoolPlan("", tuple(node.name for node in going), None, 1, _NO_DRAIN)] if going else []
    turns: dict[str, Turn] = {}
    members: dict[str, list[str]] = {}
    for node in going:
        turn = turn_of(node, pools, nodes)
        turns[turn.pool] = turn
        members.setdefault(turn.pool, []).append(node.name)
    return [PoolPlan(pool, tuple(members[pool]), turn.at_once, None, turn.limit) for pool, turn in turns.items()]


def _read_settings(cluster: Cluster, place: str) -> OperatorSettings:
    """Return the settings of the SR-IOV operator. If several are found, the more disruptive value of each setting
    counts.

    :param place: namespace of the operator; empty if it is not known, and then the settings in all namespaces count
    """
    found = [
        sriov_operator.operator_settings(item)
        for item in _list_served(cluster, "SriovOperatorConfig", place)
        if name_of(item) == "default"
    ]
    mode = "systemd" if any(one.mode == "systemd" for one in found) else "daemon"
    # of an operator in an unknown namespace, a tenant may have created the settings
    disabled = found[0].disabled_plugins if place and found else ()
    return OperatorSettings(any(one.disable_drain for one in found), mode, disabled)


def _list_served(cluster: Cluster, kind: str, place: str) -> tuple[Resource, ...]:
    """Return the objects of a kind in a namespace. A kind that the API server does not serve has no objects.

    :param place: name of the namespace; empty for all namespaces
    """
    try:
        return cluster.list(kind, place).items
    except ApiError as error:
        if error.absent:
            return ()
        raise
