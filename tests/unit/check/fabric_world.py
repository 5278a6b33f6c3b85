# SPDX-License-Identifier: GPL-3.0-or-later

"""Two workers with the six HCAs of row S1.6 on two fabrics, as facts, to be bent by the tests of several stages."""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ManagerPort,
    SeenCapabilities,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    PcieLink,
    PciFunction,
    Port,
    Sriov,
)
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import SIX_HCAS, plain_guid

LINK = PcieLink(32.0, 16, 32.0, 16)
MASTERS = {
    1: SubnetManager(1, "0xe89e491ff5d50001", "MASTER", 15, 100),
    2: SubnetManager(1, "0xe89e491ff5d50002", "MASTER", 15, 100),
}
STANDBYS = {
    1: SubnetManager(2, "0xe89e491ff5d50011", "STANDBY", 3, 9),
    2: SubnetManager(2, "0xe89e491ff5d50012", "STANDBY", 3, 9),
}
NODES = {"worker-1": 1, "worker-2": 2}


def hca(node: int, index: int, **port: typing.Any) -> Hca:
    """HCA ``index`` of row S1.6 on a node; keywords change its port."""
    device, netdev, address, _fabric = SIX_HCAS[index]
    base = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", 16 * node + index, 1, plain_guid(node, index, 1))
    return Hca(
        name=device,
        rdma_device=device,
        netdevs=(Netdev(netdev, "00:00", 4092, "up", plain_guid(node, index, 1)),),
        pci=PciFunction(address, "15b3", "1021", "0207", "mlx5_core", 0, LINK),
        node_guid=plain_guid(node, index),
        node_description=f"worker-{node} {device}",
        ports=(dataclasses.replace(base, **port),),
        sriov=Sriov(16, 0),
    )


def igb(number: int = 1, **changes: typing.Any) -> Hca:
    """The Ethernet NIC of a worker."""
    pci = PciFunction("0000:01:00.0", "8086", "10c9", "0200", "igb", None, PcieLink(2.5, 1, 2.5, 1))
    return dataclasses.replace(
        Hca("eth1", netdevs=(Netdev("eth1", f"52:54:00:88:00:{number:02}", 1500, "up"),), pci=pci, sriov=Sriov(7, 0)),
        **changes,
    )


def node(number: int, **hcas: typing.Optional[Hca]) -> NodeHcas:
    """A worker; ``mlx5_0=None`` takes an HCA away, another value replaces it."""
    members = {item[0]: hca(number, index) for index, item in enumerate(SIX_HCAS)}
    members["eth1"] = igb(number)
    members.update(hcas)  # type: ignore[arg-type]
    return NodeHcas(tuple(value for value in members.values() if value is not None))


def subnets(**seen: SeenSubnet) -> tuple[SeenSubnet, ...]:
    """What a worker's ports see; a keyword replaces what one device sees."""
    return tuple(
        seen.get(device, SeenSubnet(device, 1, MASTERS[fabric])) for device, _netdev, _address, fabric in SIX_HCAS
    )


def managers(fabric: int = 1, **changes: typing.Any) -> SeenManagers:
    """Both managers of a fabric answer, and the master sweeps; keywords change that."""
    ports = tuple(ManagerPort(manager.lid, manager) for manager in (MASTERS[fabric], STANDBYS[fabric]))
    return dataclasses.replace(SeenManagers(ports, None, MASTERS[fabric].guid, 100, 120, 10.0, True), **changes)


def errors(
    first: typing.Sequence[PortErrors] = (), later: typing.Sequence[PortErrors] = (), failures: int = 0
) -> SeenErrors:
    """Two readings of the error counters, 10 s apart."""
    return SeenErrors(ErrorReport(tuple(first), 65), ErrorReport(tuple(later), 65, failures), 10.0)


def topology(fabric: int = 1, without: typing.Sequence[str] = (), more: typing.Sequence[FabricNode] = ()) -> Topology:
    """One leaf with the HCAs of both workers on a fabric; ``without`` leaves out port GUIDs."""
    leaf = FabricNode("Switch", "0x0000000000000100", "MF0;leaf00:MQM9700/U1", 65, 1)
    nodes = [leaf]
    links: list[Link] = []
    for number in NODES.values():
        for index, item in enumerate(SIX_HCAS):
            if item[3] == fabric and plain_guid(number, index, 1) not in without:
                nodes.append(FabricNode("Ca", plain_guid(number, index), f"worker-{number} {item[0]}", 1))
                end = LinkEnd("Ca", plain_guid(number, index), 1, 16 * number + index, plain_guid(number, index, 1))
                links.append(Link(LinkEnd("Switch", leaf.guid, len(links) + 1, 1), end, 4, "NDR"))
    return Topology((*nodes, *more), tuple(links))


def seen_topologies(
    seen: typing.Optional[Topology] = None, error: typing.Optional[str] = None, **changes: typing.Any
) -> tuple[SeenTopology, ...]:
    """What worker-1 sees from its two vantage points; keywords change what it sees of fabric 1."""
    good = SeenTopology("mlx5_0", 1, topology(1), None, managers(1), SeenCapabilities(links=16), errors())
    first = dataclasses.replace(good, **{"topology": None if error else seen or topology(1), "error": error, **changes})
    second = dataclasses.replace(good, rdma_device="mlx5_2", topology=topology(2), managers=managers(2))
    return (first, second)


def fabric(
    name: str = "compute", profile: str = "sriov_infiniband", virtual_functions: int = 8, **select: typing.Any
) -> Fabric:
    """A fabric of the intent; keywords are those of ``select``."""
    values = {"hcas_per_node": 4, "subnet_manager": ("any",), **select}
    ipam = Ipam("whereabouts", "100.100.0.0/22")
    return Fabric(name, profile, Network("test", name), Select(**values), virtual_functions, name, ipam)  # type: ignore[arg-type]


def storage(**select: typing.Any) -> Fabric:
    """The Ethernet fabric of the intent; an igb has no RDMA device."""
    values = {"hcas_per_node": 1, "subnet_manager": (), "vendor": "8086", "device": "10c9", **select}
    return dataclasses.replace(fabric("storage", "sriov_ethernet", 4, **values), rdma=False)


def intent(*fabrics: Fabric) -> Intent:
    """Both fabrics, unless others are given."""
    return Intent(fabrics or (fabric(), storage()))
