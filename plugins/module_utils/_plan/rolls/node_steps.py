# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the step of one node of a roll, from the differences of its settings and from the record of an earlier reset.
Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.machine_configs.pools import find_machine_pool
from ..._analysis.controllers.machine_configs.rules import under_way
from ..._model.kubernetes.node_roll import Mark, Needs, NodeDifference, NodeDifferences, NodeStep, StepAction
from ..._model.kubernetes.objects import ClusterNode
from ..._parse.kubernetes.roll_mark import ANNOTATION
from .roll_cluster import RollCluster

_RANK: dict[Needs, int] = {"nothing": 0, "reboot": 1, "power_cycle": 2}
_ACTIONS: tuple[StepAction, ...] = ("set", "reboot", "power_cycle")
_BROKEN = f"The annotation {ANNOTATION} of the node could not be read, so it is unknown whether the node was reset"


def choose_action(differences: typing.Sequence[NodeDifference]) -> StepAction:
    """Return the action that corrects all of these differences of a node: the most disruptive one that any of them
    needs, or ``nothing`` if there are none.
    """
    return _ACTIONS[max(_RANK[one.needs] for one in differences)] if differences else "nothing"


def list_untaken(
    differences: typing.Iterable[NodeDifference], mark: typing.Optional[Mark], boot: str
) -> tuple[NodeDifference, ...]:
    """Return the differences that a reset did not correct: they are recorded in the mark, and the node has booted
    since.

    :param mark: record of the earlier reset; None if there was none
    :param boot: id of the current boot; empty if not known
    """
    if mark is None or not mark.reset or not boot or boot == mark.boot:
        return ()
    return tuple(one for one in differences if one.needs != "nothing" and one.identity in mark.differences)


def plan_node_step(
    name: str,
    seen: NodeDifferences,
    node: typing.Optional[ClusterNode],
    cluster: RollCluster,
    inventory: typing.Container[str],
) -> NodeStep:
    """Return the step of one node, before the state of the cluster is judged.

    :param name: name of the node
    :param seen: differences of the node from its desired settings
    :param node: the node; None if the cluster does not have it
    :param cluster: present state of the cluster
    :param inventory: names of the nodes of the inventory
    """
    differences = seen.differences
    step = NodeStep(name, choose_action(differences), differences, notes=seen.notes)
    if node is None:
        return _add_blockers(
            step, "unknown", "the cluster has no node with this name. Use the name that the node has in the cluster"
        )
    broken = name in cluster.marks and cluster.marks[name] is None
    if broken and (differences or node.unschedulable):
        return _add_blockers(
            step,
            step.action,
            f"{_BROKEN}. Check the annotation, then remove it: kubectl annotate node {name} {ANNOTATION}-",
        )
    mark = cluster.marks.get(name)
    if mark is not None and mark.reset and mark.pool:
        pool = find_machine_pool(node, cluster.machine_pools)
        if pool is not None and under_way(pool, node, cluster.machine_pools, cluster.nodes, inventory):
            return dataclasses.replace(step, action="reboot", phase="wait", pool=pool.name)
        # a pool that has nothing to do has not rebooted it, and will not
        mark = dataclasses.replace(mark, reset=node.boot_id != mark.boot)
    if mark is not None and mark.reset and (node.boot_id == mark.boot or not node.ready):
        # whatever its BMC says meanwhile: that is looked at when it is back
        return dataclasses.replace(
            step, action="power_cycle" if step.action == "power_cycle" else "reboot", phase="wait"
        )
    if node.boot_id and any(boot != node.boot_id for boot in seen.boots):
        return _add_blockers(
            step,
            "unknown",
            "the node has rebooted since this run read its settings, so the present differences are unknown. Start a"
            " new run, which reads the settings again",
        )
    if seen.error:
        return _add_blockers(step, "unknown", f"{seen.error.rstrip('.')}. The differences are unknown")
    if mark is not None and mark.reset and not mark.cordoned and seen.blind:
        return _add_blockers(
            step, "unknown", f"{seen.blind.rstrip('.')}. It is unknown whether the reset applied the settings"
        )
    again = list_untaken((*differences, *seen.unset), mark, node.boot_id)
    if mark is not None and not differences and not again:
        return dataclasses.replace(step, phase="finish")
    if again:
        return dataclasses.replace(
            step, untaken=again, phase="finish" if mark is not None and mark.cordoned else "begin"
        )
    if seen.refusals:
        return _add_blockers(step, step.action, *seen.refusals)
    return step


def _add_blockers(step: NodeStep, action: StepAction, *why: str) -> NodeStep:
    return dataclasses.replace(
        step, action=action, blockers=tuple(one if one.endswith(".") else f"{one}." for one in why)
    )


def goes_down(step: NodeStep) -> bool:
    """Return whether a roll step begins now and includes the drain and the reboot of its node, either by its BMC or by
    the machine config operator.
    """
    return step.is_due and step.phase == "begin" and step.action in ("reboot", "power_cycle")
