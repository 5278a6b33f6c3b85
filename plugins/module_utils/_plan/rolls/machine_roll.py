# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan which nodes are rebooted by the roll of their MachineConfigPool, so that other changes that need a reboot share
that reboot. Pure.

If the BIOS of a node differs from its desired settings, and the pool of the node gets new MachineConfigs of the
collection, the machine config operator reboots the nodes of the pool once for all these changes. The operator cannot
power cycle a node. All new MachineConfigs are rolled together, so a pool that has to wait delays the other pools.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.machine_configs.pools import find_machine_pool
from ..._analysis.controllers.machine_configs.rules import (
    find_conflicting_configs,
    find_rendered_configs,
    has_unrendered_config,
)
from ..._analysis.disruption.machine_config import Machines, roll_of
from ..._model.kubernetes.disruption import MachinePool, PoolPlan
from ..._model.kubernetes.node_roll import NodeStep

Steps = tuple[NodeStep, ...]
Rolls = tuple[PoolPlan, ...]


def add_rolls(
    steps: typing.Sequence[NodeStep], machines: Machines, paused_by_others: typing.Container[str] = ()
) -> tuple[Steps, Rolls]:
    """Add to each step the MachineConfigPool whose roll reboots the node. A step is unchanged if no such pool rolls.

    :param steps: steps of the nodes of the inventory, planned as if a BMC rebooted each node. A step that already has a
        pool waits for the roll of that pool that is in progress
    :param machines: nodes and pools of the cluster; ``configs`` are the MachineConfigs and KubeletConfigs to apply
    :param paused_by_others: names of the pools that interrupted runs of other intents left paused
    :returns: the steps, and the planned rolls of the pools
    """
    found = (find_machine_pool(node, machines.pools) for node in machines.nodes)
    pools = {node.name: pool for node, pool in zip(machines.nodes, found) if pool is not None}
    new = _collect_roll_reasons(machines, paused_by_others)
    waiting = {step.pool for step in steps if step.pool}
    if waiting:
        rolls = tuple(roll_of(pool, _list_members(pool, pools)) for pool in machines.pools if pool.name in waiting)
        return tuple(_plan_pool_wait(step, pools.get(step.node), waiting, new) for step in steps), rolls
    if not any(_needs_reboot(step) and _get_pool_name(pools.get(step.node)) in new for step in steps):
        return tuple(steps), ()
    rolls = tuple(
        roll_of(pool, _list_members(pool, pools), _find_rivals(pool, machines))
        for pool in machines.pools
        if pool.name in new and _list_members(pool, pools)
    )
    return tuple(_join_pool_roll(step, pools.get(step.node), new) for step in steps), rolls


def read_held(steps: Steps, rolls: Rolls) -> tuple[Steps, Rolls]:
    """Return the steps and rolls after the rolls of all MachineConfigPools were held back, if a node or a roll is
    blocked. If the remaining pools rolled now, the nodes would be rebooted twice. The result then has no rolls, and the
    steps of the nodes of these pools contain the reason. If nothing is blocked, or a roll is in progress already, both
    arguments are returned unchanged.
    """
    names = {roll.name for roll in rolls}
    mine = [step for step in steps if step.pool in names or step.also in names]
    if not mine or any(step.phase == "wait" for step in mine if step.pool):
        return steps, rolls
    why = [one.rstrip(".") for roll in rolls for one in roll.blockers] + [
        f"{step.node}: {one.rstrip('.')}" for step in mine for one in step.blockers
    ]
    if not why:
        return steps, rolls
    text = (
        f"MachineConfigPool {', '.join(sorted(names))} is not rolled now, so that no node is rebooted twice:"
        f" {'; '.join(why[:5])}."
    )
    return tuple(_hold_back_step(step, text) if step in mine else step for step in steps), ()


def _collect_roll_reasons(machines: Machines, paused_by_others: typing.Container[str]) -> dict[str, tuple[str, ...]]:
    """Return the reasons why pools will roll, by the name of the pool. The reasons are new MachineConfigs and
    KubeletConfigs, and an interrupted run that left the pool paused. A pool that only a run of another intent left
    paused is not rolled.
    """
    found = {}
    for pool in machines.pools:
        mine = [config for config in machines.configs if find_rendered_configs(pool, config, machines.pools)]
        new = [config for config in mine if not config.there or has_unrendered_config(pool, config, machines.pools)]
        reasons = [f"{config.kind} {config.name} ({config.what})" for config in new]
        if pool.paused_by_us and (reasons or pool.name not in paused_by_others):
            reasons.append(f"an interrupted run left MachineConfigPool {pool.name} paused")
        if reasons:
            found[pool.name] = tuple(reasons)
    return found


def _find_rivals(pool: MachinePool, machines: Machines) -> tuple[str, ...]:
    return tuple(
        text
        for config in machines.configs
        if not config.there
        for text in find_conflicting_configs(pool, config, machines.others, machines.pools)
    )


def _list_members(pool: MachinePool, pools: typing.Mapping[str, MachinePool]) -> tuple[str, ...]:
    return tuple(name for name, one in pools.items() if one.name == pool.name)


def _get_pool_name(pool: typing.Optional[MachinePool]) -> str:
    return "" if pool is None else pool.name


def _needs_reboot(step: NodeStep) -> bool:
    """Return whether a step begins with a reboot of the node, and no setting of the node remained wrong after an
    earlier reset.
    """
    return step.phase == "begin" and step.action == "reboot" and not step.untaken


def _join_pool_roll(
    step: NodeStep, pool: typing.Optional[MachinePool], new: typing.Mapping[str, tuple[str, ...]]
) -> NodeStep:
    if pool is None or pool.name not in new:
        return step
    if step.phase == "begin" and step.action in ("reboot", "nothing") and not step.untaken:
        return dataclasses.replace(step, action="reboot", pool=pool.name, reasons=new[pool.name])
    # a power cycle, or the end of what a run began: it comes before, and by itself
    return dataclasses.replace(step, also=pool.name, reasons=new[pool.name])


def _plan_pool_wait(
    step: NodeStep, pool: typing.Optional[MachinePool], waiting: typing.Container[str], new: typing.Container[str]
) -> NodeStep:
    if pool is None or step.pool or step.blockers:
        return step
    if pool.name in waiting:
        # the operator has it away, or will: no BMC resets it meanwhile
        return dataclasses.replace(step, action="reboot", phase="wait", pool=pool.name, untaken=())
    if _needs_reboot(step) and pool.name in new:
        return dataclasses.replace(
            step,
            blockers=(
                (
                    "an earlier run started the roll of a different MachineConfigPool, which is still in progress."
                    " Rerun when that roll is complete, so that the MachineConfigPool of this node is rolled."
                ),
            ),
        )
    return step


def _hold_back_step(step: NodeStep, text: str) -> NodeStep:
    alone = dataclasses.replace(step, pool="", also="", reasons=())
    if not step.pool or step.blockers:
        return alone
    if not step.differences:
        # only its pool would have taken it
        return dataclasses.replace(alone, action="nothing", pods=(), lost=())
    return dataclasses.replace(alone, blockers=(text,))
