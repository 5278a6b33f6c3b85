# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe a plan of drains and reboots as text."""

from __future__ import annotations

from ..._model.base.phrases import count_of
from ..._model.kubernetes.disruption import DisruptionPlan, NodePlan, PoolPlan
from .lost_pods import is_drained


def describe_plan(planned: DisruptionPlan) -> tuple[str, ...]:
    """Return the plan as text: one line for each node that is drained or rebooted, one for each pool, and one for each
    paused health check.

    :param planned: planned drains and reboots
    """
    nodes = [
        f"{node.title} {_describe_fate(node, planned)}: {'; '.join(node.reasons)}{_format_pod_count(node)}"
        for node in planned.nodes
        if node.action in ("drain", "reboot")
    ]
    pools = (f"{name_pool(pool)}: {describe_turns(pool)}" for pool in planned.pools)
    return (
        *nodes,
        *pools,
        *(f"{check}: paused while the nodes of MachineConfigPools reboot" for check in planned.pauses),
    )


def _format_pod_count(node: NodePlan) -> str:
    return f" ({count_of(len(node.pods), 'pod')})" if node.pods else ""


def _describe_fate(node: NodePlan, planned: DisruptionPlan) -> str:
    if node.driver == "remove":
        return "loses its driver, without a drain"
    drains = is_drained(node, planned)
    how = "" if drains else ", without a drain"
    return f"{'reboots' if node.action == 'reboot' else 'is drained' if drains else 'is changed'}{how}"


def name_pool(pool: PoolPlan) -> str:
    """Return the name of a pool as the subject of a finding, with its kind."""
    if pool.machines:
        return f"MachineConfigPool {pool.name}"
    if pool.undrained:
        return "NICs in use"
    if pool.driver == "reload":
        return f"driver of ClusterPolicy {pool.name}"
    if pool.driver:
        return f"driver of {pool.nic_policy}"
    return f"pool {pool.name}" if pool.name else "default pool"


def describe_turns(pool: PoolPlan) -> str:
    """Return as text in how many groups the nodes of a pool go down, or why they do not."""
    if pool.waves is None:
        return "; ".join(pool.blockers)
    at_once = "all at once" if pool.at_once is None else f"{pool.at_once} at a time"
    once = ", rolled once" if pool.machines else ""
    return f"{count_of(len(pool.nodes), 'node')}, {at_once}, in {count_of(pool.waves, 'wave')}{once}; {pool.limit}"
