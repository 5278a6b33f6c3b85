# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the MachineConfigPool of a node, and describe the progress of a pool. Pure."""

from __future__ import annotations

import typing

from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.objects import ClusterNode
from ..label_selectors import labels_match


def describe_pool(pool: MachinePool) -> str:
    """Describe how many machines of a MachineConfigPool have its desired MachineConfig."""
    return (
        f"MachineConfigPool {pool.name} has {pool.updated} of {pool.machines} machines on"
        f" {pool.wanted_config or 'its MachineConfig'}"
    )


def describe_unpause(name: str) -> str:
    """Return the command that unpauses a MachineConfigPool.

    :param name: name of the pool
    """
    return f'oc patch machineconfigpool {name} --type merge -p \'{{"spec":{{"paused":false}}}}\''


def find_machine_pool(node: ClusterNode, pools: typing.Iterable[MachinePool]) -> typing.Optional[MachinePool]:
    """Return the MachineConfigPool that manages a node, or None if no pool selects it. A custom pool takes precedence
    over the pool ``worker``.

    :param pools: MachineConfigPools of the cluster
    """
    mine = sorted(
        (pool for pool in pools if labels_match(pool.selector, node.labels)), key=lambda pool: pool.name == "worker"
    )
    return mine[0] if mine else None


def pool_may_roll(pool: MachinePool, node: ClusterNode) -> bool:
    """Return whether the pool may currently give this node another MachineConfig, which reboots it. A paused or
    degraded pool does not.

    A pool reports that it is updating as long as any of its nodes is NotReady or cordoned, for whatever reason.
    Therefore the MachineConfig of the node itself decides whether the node is done. [machine-config-operator
    pkg/controller/node/status.go calculateStatus]
    """
    if node.machine_config and node.machine_config == pool.wanted_config:
        return False
    under_way = pool.conditions.get("Updating") == "True" or pool.wanted_config != pool.current_config
    return under_way and not pool.paused and pool.conditions.get("Degraded") != "True"
