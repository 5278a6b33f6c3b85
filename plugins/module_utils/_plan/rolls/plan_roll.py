# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a roll: the resets by which all nodes get their desired settings, with one reboot of each node, in waves that
leave enough nodes available. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.control_plane import describe_shape, list_control_plane
from ..._analysis.controllers.drains.health_checks import list_watching
from ..._analysis.controllers.drains.room import find_room
from ..._analysis.controllers.machine_configs.pools import find_machine_pool
from ..._analysis.disruption.machine_config import Machines
from ..._model.base.phrases import describe_unread_remedy
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.node_roll import NodeDifferences, NodeStep, RollPlan
from .blockers import add_node_blockers, add_pool_blockers
from .machine_roll import add_rolls, read_held
from .node_steps import goes_down, plan_node_step
from .plan_text import describe_reset_reasons
from .roll_cluster import RollCluster

_RIGHTS = "Grant the user of the kubeconfig the right to list these objects (docs/rbac/look.yml)"


def plan_roll(
    seen: typing.Mapping[str, NodeDifferences],
    cluster: RollCluster,
    intent: ClusterIntent,
    inventory: typing.Optional[typing.Iterable[str]] = None,
) -> RollPlan:
    """Return the plan of a roll. Each node that needs a reset gets a step. A node that cannot be reset now gets the
    reason in its step and is not reset. If the intent does not allow the resets, or their effect is not known, the plan
    as a whole is refused.

    :param seen: differences of each node from its desired settings, from all sources (such as BIOS and firmware)
        together
    :param inventory: names of the nodes; by default those of ``seen``
    """
    known = {node.name: node for node in cluster.nodes}
    names = tuple(seen if inventory is None else inventory)
    # a node of which nobody knows anything has a step while its MachineConfigPool reboots it
    every = tuple(
        plan_node_step(name, seen.get(name, NodeDifferences()), known.get(name), cluster, names)
        for name in names
        if name in seen or name in known
    )
    machines = Machines(
        cluster.configs, cluster.kubelets, cluster.machine_pools, cluster.nodes, cluster.pods, cluster.budgets
    )
    every, pools = add_rolls(every, machines, cluster.paused_by_others)
    awaited = {step.node for step in every if step.is_due and step.phase != "begin"}
    every = tuple(
        add_node_blockers(step, known[step.node], cluster, intent, names, awaited) if goes_down(step) else step
        for step in every
    )
    every, pools = read_held(every, tuple(add_pool_blockers(roll, cluster, intent, names) for roll in pools))
    # of what a run began and nobody asks for any more its end is left
    steps = [step for step in every if step.node in seen or step.pool or step.also or step.node in cluster.marks]
    resets = [step for step in steps if step.goes]
    control = frozenset(node.name for node in list_control_plane(cluster.nodes))
    shapes = describe_shape(cluster.nodes, [step.node for step in resets])
    # those of a pool that is under way are away for it
    ours = {step.node for step in steps if step.goes or (step.pool and step.phase == "wait")}
    free = find_room(cluster, intent, names, ours | _find_awaiting(cluster))
    most, limit, left = free.most, free.limit, free.left
    if resets and intent.disruption != "reboot":
        told = join_first([f"{step.node} ({describe_reset_reasons(step)})" for step in resets], 5)
        refusal = (
            f"rdma_cluster.disruption is {intent.disruption}, but these nodes require a drain and a reset: {told}. "
        )
        refusal += "When the nodes may be rebooted, set rdma_cluster.disruption to reboot, then rerun."
        return RollPlan(tuple(steps), most, limit, refusal)
    missing = {kind: why for kind, why in cluster.unread.items() if kind in ("Pod", "PodDisruptionBudget")}
    if resets and missing:
        told = "; ".join(f"{kind}: {why}" for kind, why in missing.items())
        refusal = (
            f"The effects of a drain on the pods are unknown ({told})."
            f" {describe_unread_remedy(missing.values(), _RIGHTS)}."
        )
        return RollPlan(tuple(steps), most, limit, refusal)
    if resets and free.refusal:
        return RollPlan(tuple(steps), most, limit, free.refusal)
    limit += f"; {len(free.away)} already unavailable" if free.away and resets else ""
    watchers = (
        [list_watching(known[step.node], cluster.health_checks) for step in resets]
        if intent.pause_health_checks
        else []
    )
    pauses = tuple(check for check in cluster.health_checks if any(check in found for found in watchers))
    waves = _order_in_waves(steps, max(1, left), control)
    return RollPlan(waves, max(1, left), limit, rolls=pools, most=most, shape=shapes, pauses=pauses)


def _find_awaiting(cluster: RollCluster) -> set[str]:
    """Return the names of the nodes that the machine config operator is about to take down in a MachineConfigPool in
    which an earlier roll marked a node. The operator may itself wait until this roll releases the marked node. If these
    nodes counted as unavailable, the plan would be refused and the marked node never released. They are counted later,
    in :func:`choose_turn`, before it lets another node go down.
    """
    marked = (node for node in cluster.nodes if node.name in cluster.marks)
    held = {pool.name for node in marked if (pool := find_machine_pool(node, cluster.machine_pools)) is not None}
    turns = (turn for turn in cluster.all_turns if turn.operator == "machine_config" and turn.pool in held)
    return {name for turn in turns for name in turn.nodes}


def _order_in_waves(
    steps: typing.Sequence[NodeStep], at_once: int, control: typing.Container[str]
) -> tuple[NodeStep, ...]:
    """Return the steps in the same order. A step whose node is reset by a BMC gets the number of its wave; the nodes of
    a wave are reset together. Nodes that an earlier run has already reset are in the first waves, because they are down
    already. A wave has at most one control-plane node.

    :param at_once: maximum number of nodes of a wave
    :param control: names of the control-plane nodes
    """
    resets = [step for step in steps if step.goes and not step.pool]
    number, size, has_control = 1, 0, False
    waves: dict[str, int] = {}
    for step in sorted(resets, key=lambda step: step.phase != "wait"):
        mine = step.node in control
        if size == at_once or (mine and has_control):
            number, size, has_control = number + 1, 0, False
        waves[step.node], size, has_control = number, size + 1, has_control or mine
    return tuple(dataclasses.replace(step, wave=waves[step.node]) if step.node in waves else step for step in steps)
