# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the cluster objects whose changes reboot machines: the MachineConfigs and KubeletConfigs of the collection, all
other KubeletConfigs, and the MachineConfigPools.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.marks import SELECTOR
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.host import HOST_KINDS, HostConfig, KubeletStatus
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators import machine_config
from .client import Cluster
from .errors import ApiError
from .kinds import Resource, group_of
from .outcome import has_our_label

#: names that the collection gives MachineConfigs, for any role
_OWN_NAME = re.compile(r"99-.+-linerate-(memlock|kernel-arguments)")


@dataclasses.dataclass(frozen=True)
class LabelledConfigs:
    """The MachineConfigs and KubeletConfigs of the cluster that have the label of the collection.

    :ivar objects: the objects, as the API server sends them
    :ivar unread: errors of reads that the API server refused, so that objects may be missing
    """

    objects: tuple[Resource, ...] = ()
    unread: tuple[str, ...] = ()


def find_labelled(cluster: Cluster, known: typing.Iterable[Resource] = ()) -> LabelledConfigs:
    """Return the MachineConfigs and KubeletConfigs with the label of the collection, without those of ``known`` and
    without those with an owner.

    On a cluster without the machine config operator, only its API group is requested, because the API server refuses a
    user with few rights to list a kind that it does not know.

    :param known: objects that are left out by their kind and name
    :raises ApiError: the API server cannot be reached
    """
    names = {(str(item.get("kind")), name_of(item)) for item in known}
    found: list[Resource] = []
    unread: list[str] = []
    try:
        kinds = HOST_KINDS if cluster.serves(group_of(HOST_KINDS[0])) else ()
    except ApiError as error:
        if error.status == 0:
            raise
        return LabelledConfigs(unread=(error.seen,))
    for kind in kinds:
        try:
            items = cluster.list(kind, selector=SELECTOR).items
        except ApiError as error:
            if error.absent:
                continue
            if error.status != 403 or kind != "MachineConfig":
                _note_unread(error, unread)
                continue
            # other MachineConfigs may hold secrets, so few users may list them; the pools name those that they use
            items = _find_rendered_own(cluster, {name for _kind, name in names}, unread)
        mine = (item for item in items if not item["metadata"].get("ownerReferences"))
        found += [{**item, "kind": kind} for item in mine if (kind, name_of(item)) not in names]
    return LabelledConfigs(tuple(found), tuple(unread))


def _find_rendered_own(cluster: Cluster, known: typing.Container[str], unread: list[str]) -> tuple[Resource, ...]:
    """Return the MachineConfigs with the label of the collection that a MachineConfigPool uses. They are found by the
    form of the names that the collection gives. A MachineConfig that no pool uses has no effect on a node, and is left
    out.

    :param known: names of MachineConfigs that are left out
    :param unread: list to which refused reads are added
    :raises ApiError: the API server cannot be reached
    """
    found: list[Resource] = []
    try:
        pools = read_machine_pools(cluster)
    except ApiError as error:
        _note_unread(error, unread)
        return ()
    for name in sorted({name for pool in pools for name in pool.sources if _OWN_NAME.fullmatch(name)}):
        try:
            live = (
                None if name in known else find_object(cluster, {"kind": "MachineConfig", "metadata": {"name": name}})
            )
        except ApiError as error:
            _note_unread(error, unread)
            continue
        found += [live] if live is not None and has_our_label(live) else []
    return tuple(found)


def _note_unread(error: ApiError, unread: list[str]) -> None:
    if error.status == 0:
        raise error
    unread.append(error.seen)


def find_object(cluster: Cluster, wanted: Resource) -> typing.Optional[Resource]:
    """Return the object in the cluster that has the kind and name of ``wanted``, which must be cluster-scoped. Return
    None if it does not exist.

    :raises ApiError: the API server refuses, or cannot be reached
    """
    try:
        return cluster.get(str(wanted["kind"]), "", name_of(wanted))
    except ApiError as error:
        if error.absent:
            return None
        raise


def read_host_config(cluster: Cluster, wanted: Resource) -> HostConfig:
    """Return the comparison of a rendered MachineConfig or KubeletConfig with the object of the same name in the
    cluster, which may not exist.

    :param wanted: the rendered object
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return machine_config.host_config(wanted, find_object(cluster, wanted))


def read_machine_pools(cluster: Cluster) -> tuple[MachinePool, ...]:
    """Return all MachineConfigPools of the cluster, parsed.

    :raises ApiError: the server refuses, or cannot be reached
    """
    return tuple(map(machine_config.machine_pool, cluster.list("MachineConfigPool").items))


def select_others(items: typing.Iterable[Resource], wanted: typing.Iterable[Resource]) -> tuple[HostConfig, ...]:
    """Return the KubeletConfigs of the cluster that the collection does not render, parsed.

    :param items: all KubeletConfigs of the cluster
    :param wanted: KubeletConfigs that the collection renders
    """
    mine = {name_of(config) for config in wanted}
    return tuple(machine_config.host_config(item, item) for item in items if name_of(item) not in mine)


def read_kubelet_status(cluster: Cluster, configs: typing.Iterable[Resource]) -> KubeletStatus:
    """Return the state of those of the given objects that are KubeletConfigs, of all other KubeletConfigs, and of the
    MachineConfigPools. If no given object is a KubeletConfig, the result is empty, and the API server is not contacted.
    A refusal is stored in ``error``.

    :param configs: objects that the intent requires, of any kind
    :raises ApiError: the server cannot be reached
    """
    wanted = [config for config in configs if config["kind"] == "KubeletConfig"]
    if not wanted:
        return KubeletStatus()
    try:
        found = tuple(read_host_config(cluster, config) for config in wanted)
        return KubeletStatus(
            found, select_others(cluster.list("KubeletConfig").items, wanted), read_machine_pools(cluster)
        )
    except ApiError as error:
        if error.status == 0:
            raise
        return KubeletStatus(error=error.text)
