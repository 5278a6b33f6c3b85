# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds how far MachineConfigPools are with their roll, and what stops them."""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.controllers.machine_configs.pools import describe_pool
from ...._analysis.controllers.machine_configs.rules import (
    find_outdated_nodes,
    find_outdated_nodes_outside_run,
    is_current,
    waits_for,
)
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.host import Roll
from ...._model.kubernetes.objects import ClusterNode
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._parse.kubernetes.core import parse_budget, parse_node, parse_pod

#: of the nodes that a roll waits for, those that are named
_NAMED = 5


def find_nodes_outside_run(
    cluster: Cluster, name: str, seen: typing.Mapping[str, MachinePool], inventory: typing.Container[str]
) -> typing.Optional[tuple[ClusterNode, ...]]:
    """Return the nodes of a pool that are not in the inventory and do not have the desired MachineConfig of the pool.
    Return None if the pool does not exist, has no such node, or waits for a node of the inventory, and without an
    inventory.

    :param cluster: client of the API server
    :param name: name of the pool
    :param seen: all pools, by name
    :param inventory: names of the nodes of the run
    :raises ApiError: the nodes cannot be read
    """
    if name not in seen or is_current(seen[name]) or not inventory:
        return None
    return find_outdated_nodes_outside_run(
        seen[name], seen.values(), map(parse_node, cluster.list("Node").items), inventory
    )


def explain_stuck_pool(cluster: Cluster, name: str, seen: typing.Mapping[str, MachinePool], limit: float) -> str:
    """Return a message about a pool that did not finish its roll in time, with the nodes, pods and
    PodDisruptionBudgets that block it.

    :param cluster: client of the API server
    :param name: name of the pool
    :param seen: all pools, by name
    :param limit: duration of the wait, in seconds
    :raises ApiError: the API server cannot be reached
    """
    stand = f"{describe_pool(seen[name])} after {limit:.0f} s"
    try:
        late = find_outdated_nodes(seen[name], seen.values(), map(parse_node, cluster.list("Node").items))
        away = [node.name for node in late if node.unschedulable]
        pods = [parse_pod(item) for node in away for item in cluster.pages("Pod", fields=f"spec.nodeName={node}")]
        budgets = tuple(map(parse_budget, cluster.pages("PodDisruptionBudget"))) if pods else ()
    except ApiError as error:
        if error.status == 0:
            raise
        return f"{stand}; the node that the pool waits for could not be determined: {error.text}"
    return "; ".join((stand, *waits_for(late, pods, budgets)[:_NAMED]))


def update_roll(roll: Roll, pool: typing.Optional[MachinePool], now: float) -> Roll:
    """Return a roll as it is after another look at its pool.

    :param roll: the roll so far
    :param pool: the pool as it is now; None if it no longer exists
    :param now: time since the beginning of the wait, in seconds
    """
    if pool is None:
        return dataclasses.replace(roll, seconds=now, error="the MachineConfigPool no longer exists")
    # each configuration that the nodes are given is a roll; a pool that has it before it is let go had nothing to roll
    new = pool.wanted_config != roll.config and (bool(roll.config) or not is_current(pool))
    error = (
        f"{describe_pool(pool)} and is degraded: {pool.message or 'the pool reports no reason'}"
        if pool.conditions.get("Degraded") == "True"
        else ""
    )
    return dataclasses.replace(
        roll,
        rolls=roll.rolls + new,
        config=pool.wanted_config,
        machines=pool.machines,
        updated=pool.updated,
        seconds=now,
        error=error,
    )


def describe_roll(roll: Roll) -> str:
    """Return the progress of a roll as a line of text for the user."""
    how = roll.error or f"{roll.updated} of {roll.machines} machines on {roll.config}, rolls: {roll.rolls}"
    return f"MachineConfigPool {roll.pool}: {how} ({roll.seconds:.0f} s)"
