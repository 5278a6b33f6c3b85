# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the cluster objects whose changes reboot machines: the MachineConfigs and KubeletConfigs of the collection, all
other KubeletConfigs, and the MachineConfigPools.
"""

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
    """Return the object in the cluster that has the kind and name of ``wanted``. Return None if it does not exist.

    :raises ApiError: the API server refuses, or cannot be reached
    """
    try:
        return cluster.get(str(wanted["kind"]), "", name_of(wanted))
    except ApiError as error:
        if error.absent:
            return None
        raise


def read_host_config(cluster: Cluster, wanted: Resource) -> HostConfig:
    """Return a MachineConfig or KubeletConfig that the collection renders, compared with the object of the same name in
    the cluster.

    :param wanted: the rendered object
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return machine_config.host_config(wanted, find(cluster, wanted))


def read_machine_pools(cluster: Cluster) -> tuple[MachinePool, ...]:
    """Return all MachineConfigPools.

    :raises ApiError: the server refuses, or cannot be reached
    """
    return tuple(map(machine_config.machine_pool, cluster.list("MachineConfigPool").items))


def others(items: typing.Iterable[Resource], wanted: typing.Iterable[Resource]) -> tuple[HostConfig, ...]:
    """Return the KubeletConfigs of the cluster that the collection does not render.

    :param items: all KubeletConfigs of the cluster
    :param wanted: KubeletConfigs that the collection renders
    """
    mine = {name_of(config) for config in wanted}
    return tuple(machine_config.host_config(item, item) for item in items if name_of(item) not in mine)


def read_kubelet_status(cluster: Cluster, configs: typing.Iterable[Resource]) -> KubeletStatus:
    """Return the state of the KubeletConfigs among the given objects. If there are none, the API server is not
    contacted. A refusal is stored in ``error``.

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
