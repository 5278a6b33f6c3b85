# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe the plan of a roll as lines of text for the user. Pure."""

from __future__ import annotations

from ..._model.kubernetes.control_plane import HealthCheck
from ..._model.kubernetes.disruption import PoolPlan
from ..._model.kubernetes.node_roll import NodeStep, RollPlan
from ..._parse.kubernetes.roll_mark import ANNOTATION


def describe_plan(planned: RollPlan) -> tuple[str, ...]:
    """Return the plan as lines of text for the user: one line for each node that has a step, a blocker or a note, in
    the order of the waves, and lines for the MachineConfigPools that are rolled and the health checks that are paused.
    """
    told = sorted(
        (step for step in planned.steps if step.is_due or step.blockers or step.untaken or step.also or step.notes),
        key=lambda step: (step.wave == 0, step.wave),
    )
    pauses = (
        f"{check}: paused until {', '.join(_list_watched_nodes(check, planned))} is back" for check in planned.pauses
    )
    rolls = (_pool_line(pool) for pool in planned.rolls)
    # the machine config operator goes on by itself
    several = not planned.refusal and sum(step.goes and not step.pool for step in planned.steps) > 1
    end = (
        ["the roll ends at the first node that fails; a node whose pods cannot be evicted is skipped"]
        if several
        else []
    )
    return (
        *([planned.refusal] if planned.refusal else []),
        *planned.shape,
        *(describe_step(step) for step in told),
        *rolls,
        *pauses,
        *end,
    )


def _list_watched_nodes(check: HealthCheck, planned: RollPlan) -> list[str]:
    return [step.node for step in planned.steps if step.goes and check.watches(step.node)]


def _pool_line(pool: PoolPlan) -> str:
    return (
        f"MachineConfigPool {pool.name}: rolled once, {pool.at_once} at a time ({pool.limit}): {', '.join(pool.nodes)}"
    )


def describe_step(step: NodeStep) -> str:
    """Return one step of the plan, with its notes, as a line of text for the user."""
    return "; ".join((_describe_step(step), *step.notes))


def _describe_step(step: NodeStep) -> str:
    also = (
        f"; afterwards also rebooted by {_describe_pool_operator(step.also)}: {', '.join(step.reasons)}"
        if step.also
        else ""
    )
    if also and step.action == "power_cycle":
        also += " (this reboot is not a power cycle)"
    if step.untaken:
        return (
            f"{step.node}: no reset; an earlier reset did not apply {', '.join(map(str, step.untaken))}, so the node"
            f" is not reset again for these settings{also}"
        )
    if step.blockers:
        return f"{step.node}: left out: {'; '.join(step.blockers)}"
    if not step.is_due and not step.also:
        return f"{step.node}: no reset required"
    turn = f" (wave {step.wave})" if step.wave else ""
    pods = f", {len(step.pods)} pods evicted" if step.pods else ""
    if step.pool:
        does = (
            "wait until the node is back after its reboot"
            if step.phase == "wait"
            else "set, one reboot"
            if step.differences
            else "one reboot"
        )
        return f"{step.node}: {does} by {_describe_pool_operator(step.pool)}{pods}" + (
            f": {describe_reset_reasons(step)}" if step.differences or step.reasons else ""
        )
    what = {
        "set": "set",
        "reboot": f"set, drain, reset by its BMC{pods}",
        "power_cycle": f"set, drain, power cycle by its BMC{pods}",
    }
    taken_up = {
        "wait": "wait until the node is back after its reset",
        "finish": "finish the steps that an earlier run began",
    }.get(step.phase)
    # the kubelet of the node can write there too
    taken_up = f"{taken_up}, according to the annotation {ANNOTATION} of the node" if taken_up else None
    does = taken_up or what.get(step.action, "nothing" if step.also else "finish the steps that an earlier run began")
    return f"{step.node}{turn}: {does}" + (f": {describe_reset_reasons(step)}" if step.differences else "") + also


def _describe_pool_operator(pool: str) -> str:
    return f"the machine config operator (MachineConfigPool {pool})"


def describe_reset_reasons(step: NodeStep) -> str:
    """Return the reasons, as text, why a BMC resets the node of a step, or why its MachineConfigPool reboots
    the node.
    """
    return ", ".join(
        (
            *(f"{one}, {one.how}" if one.how else str(one) for one in step.differences),
            *(step.reasons if step.pool else ()),
        )
    )
