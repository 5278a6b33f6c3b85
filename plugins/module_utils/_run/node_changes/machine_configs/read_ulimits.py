# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the default limits of containers that a MachineConfig with the limit of locked memory would replace."""

from __future__ import annotations

import typing

from ...._analysis.controllers.machine_configs.rules import find_rendered_configs
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.host import CRIO_FILE, HostConfig
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._parse.operators.crio import parse_ulimits


def read_lost_ulimits(
    cluster: Cluster,
    configs: typing.Iterable[HostConfig],
    pools: typing.Sequence[MachinePool],
    wanted: typing.Iterable[Resource],
) -> tuple[HostConfig, ...]:
    """Return the present configuration of each MachineConfigPool whose nodes would lose default limits of CRI-O, as a
    HostConfig with these limits as its text. Only pools that use a new or changed MachineConfig of the collection with
    such limits are considered.

    The rights of docs/rbac do not permit reading the configuration of a pool, because it contains secrets. A pool whose
    configuration cannot be read is left out, and the plan names the file that the collection replaces instead.

    :param configs: MachineConfigs and KubeletConfigs to apply, compared with the cluster
    :param pools: MachineConfigPools of the cluster
    :param wanted: the same MachineConfigs and KubeletConfigs, as they are rendered
    :raises ApiError: the API server cannot be reached
    :raises ResourceError: the configuration of a pool is malformed
    """
    new = [config for config in configs if not config.there and CRIO_FILE in config.what]
    ours = [entry for item in wanted if item["kind"] == "MachineConfig" for entry in parse_ulimits(item, own=True)]
    found = []
    for pool in pools:
        if not pool.wanted_config or not any(find_rendered_configs(pool, config, pools) for config in new):
            continue
        try:
            rendered = cluster.get("MachineConfig", "", pool.wanted_config)
        except ApiError as error:
            if error.status == 0:
                raise
            continue
        lost = _find_lost(parse_ulimits(rendered), ours)
        found += [HostConfig("MachineConfig", pool.wanted_config, ", ".join(lost))] if lost else []
    return tuple(found)


def _find_lost(before: typing.Iterable[str], after: typing.Iterable[str]) -> tuple[str, ...]:
    """Return those entries of CRI-O's ``default_ulimits``, such as ``nofile=1024:4096``, whose limit a later list does
    not set.

    :param before: entries that take effect now
    :param after: entries of the later list, which replaces them
    """
    named = {entry.partition("=")[0].strip().lower() for entry in after}
    return tuple(entry for entry in before if entry.partition("=")[0].strip().lower() not in named)
