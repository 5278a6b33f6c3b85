# SPDX-License-Identifier: GPL-3.0-or-later

"""What reboots machines, as the cluster has it: our MachineConfigs and KubeletConfigs by name, everybody's
KubeletConfigs, the MachineConfigPools."""

from __future__ import annotations

import typing

from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.host import HostConfig, KubeletStatus
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators import machine_config
from .client import Cluster
from .errors import ApiError
from .kinds import Resource


def find(cluster: Cluster, wanted: Resource) -> typing.Optional[Resource]:
    """Return the object in the cluster; None where there is none.

    :raises ApiError: it may not be read
    """
    try:
        return cluster.get(str(wanted["kind"]), "", name_of(wanted))
    except ApiError as error:
        if error.absent:
            return None
        raise


def read_host_config(cluster: Cluster, wanted: Resource) -> HostConfig:
    """:raises ApiError: it may not be read"""
    return machine_config.host_config(wanted, find(cluster, wanted))


def read_machine_pools(cluster: Cluster) -> tuple[MachinePool, ...]:
    """:raises ApiError: they may not be read"""
    return tuple(map(machine_config.machine_pool, cluster.list("MachineConfigPool").items))


def others(items: typing.Iterable[Resource], wanted: typing.Iterable[Resource]) -> tuple[HostConfig, ...]:
    """KubeletConfigs that are none of the wanted ones."""
    mine = {name_of(config) for config in wanted}
    return tuple(machine_config.host_config(item, item) for item in items if name_of(item) not in mine)


def read_kubelet_status(cluster: Cluster, configs: typing.Iterable[Resource]) -> KubeletStatus:
    """Return the state of the KubeletConfigs among them. Without any, the cluster is not asked.

    :raises ApiError: the server cannot be reached
    """
    wanted = [config for config in configs if config["kind"] == "KubeletConfig"]
    if not wanted:
        return KubeletStatus()
    try:
        found = tuple(read_host_config(cluster, config) for config in wanted)
        return KubeletStatus(found, others(cluster.list("KubeletConfig").items, wanted), read_machine_pools(cluster))
    except ApiError as error:
        if error.status == 0:
            raise
        return KubeletStatus(error=error.text)
