# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads which drivers of NVIDIA's operators the objects of a run, or the upgrade of an operator, would restart."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.operator_turns import count_operations
from ..._model.operators.drivers import NIC_OF_NODES, OF_NICS, DriverChange, OperatorUpgrade
from ..._model.operators.operators import GPU, NETWORK
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.resource import labels_of, name_of
from ..._parse.operators.drivers import driver_selector
from ..._parse.operators.gpu_driver import parse_gpu_driver_change, parse_gpu_driver_creation, parse_gpu_driver_upgrade
from ..._parse.operators.maintenance_operator import NAME, parse_parallel_operations
from ..._parse.operators.nic_driver import list_kept_out, parse_driver_change, parse_driver_upgrade


class DriverReader(typing.Protocol):
    """A reader of Kubernetes objects that goes on if a kind cannot be read, and records the reason.

    :ivar unread: reason for each kind that could not be read, by kind
    """

    unread: dict[str, str]

    def items(self, kind: str, namespace: str = "") -> tuple[Resource, ...]:
        """Return the objects of a kind; an empty tuple if they cannot be read."""

    def read_nodes(self) -> tuple[Resource, ...]:
        """Return the nodes of the cluster; an empty tuple if they cannot be read."""

    def is_whole(self, kind: str, item: Resource) -> bool:
        """Return whether an object has more than its metadata. If it has not, record the reason."""


def read_driver_change(reader: DriverReader, nic_policies: typing.Sequence[Resource]) -> typing.Optional[DriverChange]:
    """Return how the rendered NicClusterPolicy changes the driver that NVIDIA's network operator loads. Return None if
    it changes nothing, or if the current policy cannot be read.

    :param reader: reader of the cluster, which records kinds that cannot be read
    :param nic_policies: rendered NicClusterPolicies
    """
    for wanted in nic_policies:
        there = next((item for item in reader.items("NicClusterPolicy") if name_of(item) == name_of(wanted)), None)
        if "NicClusterPolicy" in reader.unread:
            # its driver is unknown, not absent
            continue
        if there is not None and not reader.is_whole("NicClusterPolicy", there):
            continue
        change = parse_driver_change(wanted, there)
        if change is not None:
            kept_out = list_kept_out(reader.read_nodes(), there)
            return _limit_by_operations(reader, dataclasses.replace(change, kept_out=kept_out))
    return None


def _limit_by_operations(reader: DriverReader, change: DriverChange) -> DriverChange:
    """Return the change of a driver with the limit of NVIDIA's maintenance operator, if that is higher. Where the Helm
    chart of the network operator has ``operator.maintenanceOperator.useRequestor``, it is the only limit.
    [k8s-operator-libs pkg/upgrade/upgrade_requestor.go ProcessUpgradeRequiredNodes]
    """
    found = [item for item in reader.items("MaintenanceOperatorConfig") if name_of(item) == NAME]
    if change.action != "load" or not found or change.at_once is None:
        return change
    at_once, limit = count_operations([parse_parallel_operations(item) for item in found], len(reader.read_nodes()))
    if at_once is not None and at_once <= change.at_once:
        return change
    return dataclasses.replace(change, at_once=at_once, limit=limit)


def read_gpu_driver_change(reader: DriverReader) -> typing.Optional[DriverChange]:
    """Return the restart of the GPU driver that enabling nvidia-peermem causes. Return None if nothing changes, if the
    ClusterPolicy cannot be read, or if there is not exactly one, because stage host then changes nothing.

    :param reader: reader of the cluster, which records kinds that cannot be read
    """
    found = reader.items("ClusterPolicy")
    if len(found) != 1 or not reader.is_whole("ClusterPolicy", found[0]):
        return None
    return parse_gpu_driver_change(found[0])


def list_upgraded_drivers(reader: DriverReader, upgrade: OperatorUpgrade) -> tuple[DriverChange, ...]:
    """Return the changes of drivers that an upgrade of an operator causes: of the NicClusterPolicy and of each
    NicNodePolicy, or of the ClusterPolicy. The result is empty for an operator without
    a driver, and if its policies cannot be read.

    :param reader: reader of the cluster, which records kinds that cannot be read
    """
    if upgrade.creates:
        created = parse_gpu_driver_creation(reader.read_nodes(), upgrade)
        return (created,) if created is not None else ()
    kinds = {GPU: ("ClusterPolicy",), NETWORK: OF_NICS}.get(upgrade.operator, ())
    policies = [(kind, item) for kind in kinds for item in reader.items(kind) if reader.is_whole(kind, item)]
    if upgrade.operator == GPU:
        return tuple(filter(None, (parse_gpu_driver_upgrade(policy, upgrade) for _kind, policy in policies)))
    found = []
    for kind, policy in policies:
        change = parse_driver_upgrade(policy, upgrade, kind)
        if change is not None:
            selector = driver_selector(policy).items() if kind == NIC_OF_NODES else {}.items()
            nodes = reader.read_nodes()
            others = (name_of(node) for node in nodes if not selector <= labels_of(node).items())
            kept_out = tuple(dict.fromkeys((*list_kept_out(nodes, policy), *others)))
            found.append(_limit_by_operations(reader, dataclasses.replace(change, kept_out=kept_out)))
    return tuple(found)
