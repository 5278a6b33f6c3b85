# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe the drain of a node by the SR-IOV network operator: whether it has begun, and why it is blocked."""

from __future__ import annotations

from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState
from ..controllers.drains.budgets import BudgetIndex, find_held_pods
from ..controllers.machine_configs.pools import describe_pool, find_machine_pool, pool_may_roll
from ..controllers.sriov.drains import Turn, explain_what_holds_back, find_pools, turn_of
from .state import ClusterState, Target


def is_draining(state: NodeState) -> bool:
    """Return whether the node is being drained or waits for its drain.

    :param state: SriovNetworkNodeState of the node
    """
    return state.desired_state not in ("", "Idle") or state.current_state not in ("", "Idle")


class DrainTurns:
    """The drain limits of the nodes of a cluster. Nodes with the same SriovNetworkPoolConfigs have the same limits, so
    these are computed only once.
    """

    def __init__(self, observed: ClusterState) -> None:
        self._nodes = tuple(observed.nodes.values())
        self._pools = tuple(observed.pools.values())
        self._known: dict[tuple[str, ...], Turn] = {}

    def find_turn(self, node: ClusterNode) -> Turn:
        """Return the limits on the drain of a node: its pool, and how many nodes of the pool may drain at a time."""
        key = tuple(pool.name for pool in find_pools(node, self._pools))
        if key not in self._known:
            self._known[key] = turn_of(node, self._pools, self._nodes)
        return self._known[key]


def describe_drain(
    target: Target, node: ClusterNode, state: NodeState, observed: ClusterState, turns: DrainTurns
) -> tuple[str, str]:
    """Return the progress of the drain of a node as text, and the name of its suspect state. The name is empty if the
    state may last without limit.

    :param target: fabric for which the run waits
    :param state: SriovNetworkNodeState of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    :param turns: drain limits of the nodes
    """
    reboots = state.desired_state == "Reboot_Required"
    what = "drained and rebooted" if reboots else "drained"
    detail = (
        f"the node is {what} first (desired state {state.desired_state or 'not set'}, current state"
        f" {state.current_state or 'not set'})"
    )
    machines = find_machine_pool(node, observed.machine_pools.values())
    held_back = explain_what_holds_back(machines) if machines else ""
    if held_back:
        return f"{detail}; {held_back}", "pool_held"
    if machines and pool_may_roll(machines, node):
        return f"{detail}; {describe_pool(machines)}", ""
    if state.current_state == "DrainComplete":
        return detail, "" if node.ready else "rebooting" if reboots else "node_lost"
    if not node.ready:
        return detail, "node_lost"
    if state.current_state != "Draining":
        turn = turns.find_turn(node)
        # a node waits for its turn as long as the other nodes need
        return (
            (f"{detail}; {turn.blocked}", "no_turn")
            if turn.blocked
            else (f"{detail}; the node waits for its turn: {turn.limit}", "")
        )
    if "PodDisruptionBudget" in observed.blind:
        return (
            f"{detail}; PodDisruptionBudgets could not be read: {observed.blind['PodDisruptionBudget']}"
        ), "drain_blocked"
    held = find_held_pods(
        observed.pods.get(node.name, ()),
        reboots,
        target.resource.partition("/")[0],
        BudgetIndex(observed.budgets.values()),
    )
    return (f"{detail}; {'; '.join(held)}", "drain_held") if held else (detail, "drain_blocked")
