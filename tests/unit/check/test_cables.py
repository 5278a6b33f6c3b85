# SPDX-License-Identifier: GPL-3.0-or-later

"""A port has one cable: whoever asks takes the same one, and stage fabric tells of the others."""

from __future__ import annotations

import dataclasses

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hca_locations import collect_far_ends
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import Member, Membership
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_directions import End
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.links_in_scope import LinksInScope
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.names import FabricFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.topology import check_topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.cables import ANY, list_ports, take_cables
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

LEAVES = [FabricNode("Switch", f"0x{number:016x}", f"leaf-{number}", 65, number) for number in (1, 2, 3)]
HCA = world.hca(1, 0, guid="0x000000000a000001")
PORT = LinkEnd("Ca", "0x000000000a000001", 1, 9, "0x000000000a000001")
MEMBERSHIP = Membership("compute", (), {"worker-1": (Member(0, HCA, HCA.ports[0]),)})


def cabled(*links: tuple[LinkEnd, int, int]) -> Topology:
    """An HCA, and the leaves and their ports to which it is cabled."""
    made = [Link(end, LinkEnd("Switch", LEAVES[leaf - 1].guid, port, leaf), 4, "NDR") for end, leaf, port in links]
    return Topology((*LEAVES, FabricNode("Ca", PORT.guid, "worker-1 mlx5_0", 1)), tuple(made))


def told(topology: Topology) -> list[Finding]:
    findings = check_topology(world.fabric(), MEMBERSHIP, topology, None, FabricFacts({}, {}, {}))
    return [finding for finding in findings if finding.check == "fabric.guids"]


OTHER_NUMBER = dataclasses.replace(PORT, port=7)


def test_whoever_asks_takes_the_cable_that_is_told_first() -> None:
    for second in (PORT, OTHER_NUMBER):
        for first, other in ((1, 2), (2, 1)):
            topology = cabled((PORT, first, 4), (second, other, 5))
            leaf = LEAVES[first - 1].guid
            assert LinksInScope(MEMBERSHIP, topology).leaves == {leaf}
            assert collect_far_ends(topology)[PORT.guid][0].guid == leaf
            ways = PathTable(topology, (), [End("worker-1", 0, PORT.guid, 9)])
            assert ways.leaf(0) == leaf and len(ways.directions) == 2
            assert take_cables(topology).links == topology.links[:1]


def test_a_second_cable_is_told_with_its_cause_and_remedy() -> None:
    (finding,) = told(cabled((PORT, 1, 4), (PORT, 2, 5)))
    assert (finding.status, finding.subject, finding.measured) == ("fail", "worker-1 mlx5_0", "2 cables at this port")
    assert finding.why == (
        "The ports leaf-1 port 4 and leaf-2 port 5 each report port 1 of"
        " 0x000000000a000001 at the other end of their cable. Two devices have this GUID, or the node that"
        " reported the topology reports a cable that does not exist. The run uses the first"
        " of these cables."
    )
    assert "mstflint -d ADDRESS -guid" in finding.remedy and "put that node first in the inventory" in finding.remedy


def test_a_port_of_an_hca_has_one_cable_whatever_its_number() -> None:
    (finding,) = told(cabled((PORT, 1, 4), (OTHER_NUMBER, 2, 5)))
    assert (finding.status, finding.subject, finding.measured) == ("fail", "worker-1 mlx5_0", "2 cables at this port")
    assert (
        "leaf-1 port 4 and leaf-2 port 5 each report the port 0x000000000a000001 at the other end of their cable"
        in finding.why
    )


def test_a_port_of_a_switch_has_one_cable() -> None:
    twin = dataclasses.replace(PORT, guid="0x000000000a000002", port_guid="0x000000000a000002")
    (finding,) = told(cabled((PORT, 1, 4), (twin, 1, 4)))
    assert (finding.status, finding.subject, finding.measured) == ("fail", "leaf-1 port 4", "2 cables at this port")
    # a switch has no port with a GUID of its own, whatever is told
    one, other = (LinkEnd("Switch", LEAVES[0].guid, number, 1, LEAVES[0].guid) for number in (1, 2))
    assert not {*list_ports(one)} & {*list_ports(other)} and (PORT.port_guid, ANY) in list_ports(PORT)


def test_ports_with_one_cable_each_pass() -> None:
    assert [finding.status for finding in told(cabled((PORT, 1, 4)))] == ["pass"]


def test_cables_without_end_are_told_in_a_few_words() -> None:
    ends = [
        dataclasses.replace(PORT, guid=f"0x{number:016x}", port_guid=f"0x{number:016x}")
        for number in range(0xB000000, 0xB000000 + 100)
    ]
    findings = told(
        cabled(
            *((end, 1, port) for port, end in enumerate(ends, 1)), *((end, 2, port) for port, end in enumerate(ends, 1))
        )
    )
    assert {finding.status for finding in findings} == {"fail"} and len(findings) == 33
    assert (findings[-1].subject, findings[-1].measured) == ("compute cables", "100 ports with several cables")
    assert "the node that reported the topology reports cables that do not exist" in findings[-1].why
    (finding,) = told(cabled(*((PORT, 1 + number % 3, 1 + number // 3) for number in range(150))))
    assert (
        finding.measured == "150 cables at this port"
        and "and 142 more each report" in finding.why
        and len(finding.why) < 600
    )
