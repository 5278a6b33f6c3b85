# SPDX-License-Identifier: GPL-3.0-or-later

"""What one node lists, however long: a finding names the first of it and counts the rest, and no other node's finding
grows with it."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover.check import Facts as DiscoverFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover.check import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import SeenSubnet, SubnetManager
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)

FABRIC = Fabric("ib0", "ipoib", network=Network("ib0"), select=Select(hcas_per_node=1))
#: characters of a finding's reason, of which each list has the first eight or sixteen
MOST = 2000


def hca(number: int, guid: str = "") -> Hca:
    address = f"0000:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
    guid = guid or f"0x{number + 1:016x}"
    return Hca(
        f"mlx5_{number}",
        rdma_device=f"mlx5_{number}",
        pci=PciFunction(address, "15b3", "1021", "0207"),
        ports=(Port(1, "ACTIVE", "LinkUp", "InfiniBand", guid=guid, lid=number + 1),),
    )


def discovered(**nodes: typing.Sequence[Hca]) -> dict[str, str]:
    """The reason of each finding, by check and subject."""
    facts = DiscoverFacts({name: ObservedHcas(NodeHcas(tuple(hcas))) for name, hcas in nodes.items()})
    return {
        f"{finding.check} {finding.subject}": finding.measured + finding.why
        for finding in discover(Intent((FABRIC,)), facts)
    }


def test_what_one_node_has_is_not_listed_at_each_other() -> None:
    found = discovered(evil=[hca(number) for number in range(3000)], other=[hca(4000)])
    assert (
        "Other nodes have an InfiniBand HCA at 0000:00:00.0, 0000:00:00.1, 0000:00:00.2"
        in found["discover.fleet other"]
    )
    assert "0000:00:00.7 and 2992 more, but this node does not." in found["discover.fleet other"]
    assert found["discover.hcas evil ib0"].startswith("3000 InfiniBand HCAs: mlx5_0 (0000:00:00.0), ")
    assert found["discover.hcas evil ib0"].endswith(" and 2984 more")
    assert max(map(len, found.values())) < MOST


def test_owners_of_one_guid_are_counted() -> None:
    found = discovered(evil=[hca(number, "0x0002c90300000001") for number in range(3000)], other=[hca(4000)])
    assert "mlx5_7 port 1 and 2992 more" in found["discover.guids port GUID 0x0002c90300000001"]


@pytest.mark.parametrize("wanted", [(), ("0x00000000000f0000",)])
def test_managers_that_a_node_makes_up_are_counted(wanted: tuple[str, ...]) -> None:
    node = NodeHcas(tuple(hca(number) for number in range(3000)))
    seen = [
        SeenSubnet(one.name, 1, SubnetManager(1, f"0x{number + 1:016x}", "MASTER", 1, 1))
        for number, one in enumerate(node.hcas)
    ]
    fabric = dataclasses.replace(FABRIC, select=Select(hcas_per_node=1, subnet_manager=wanted))
    membership = resolve_members(fabric, {"evil": node}, {"evil": seen})
    assert "and 2992 more" in membership.why
    assert len(membership.why) + len(membership.remedy) < MOST


@pytest.mark.parametrize(
    ("cls", "data", "words"),
    [
        (NodeHcas, {"hcas": [{"name": "a"}] * 4097}, "at most 4096 functions of the network on a node"),
        (Hca, {"name": "a", "ports": [{"number": 1}] * 256}, "at most 255 ports of a device"),
    ],
)
def test_what_no_node_has_is_refused(cls: typing.Any, data: typing.Any, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        load(cls, data)
