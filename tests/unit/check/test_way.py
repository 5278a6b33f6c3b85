# SPDX-License-Identifier: GPL-3.0-or-later

"""Which links of a fabric with other tenants are those of ours."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.way import Way
from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.hcas_of_fabric import resolve
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import FabricNode, Link, LinkEnd, Topology, UnreadPort
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

SPINE = FabricNode("Switch", "0x00000000000000f0", "spine", 65, 90)


def fabric_of_tenants() -> Topology:
    """Our leaf and three of others below a spine; of the last one the only HCA is an aggregation node. Each second link is told from its other end."""
    ours = world.topology(1)
    nodes, links = [*ours.nodes, SPINE], [Link(link.b, link.a, link.width, link.speed) if place % 2 else link for place, link in enumerate(ours.links)]
    links.append(Link(LinkEnd("Switch", ours.nodes[0].guid, 60, 1), LinkEnd("Switch", SPINE.guid, 1, 90), 4, "NDR"))
    for number in (1, 2, 3):
        leaf, host = f"0x{0x900 + number:016x}", f"0x{0xA00 + number:016x}"
        nodes += [FabricNode("Switch", leaf, f"leaf of others {number}", 65, 200 + number), FabricNode("Ca", host, "x", 1, aggregation=number == 3)]
        links.append(Link(LinkEnd("Switch", leaf, 60, 200 + number), LinkEnd("Switch", SPINE.guid, 1 + number, 90), 4, "NDR"))
        links.append(Link(LinkEnd("Ca", host, 1, 300 + number, host), LinkEnd("Switch", leaf, 1, 200 + number), 4, "NDR"))
    return Topology(tuple(nodes), tuple(links))


def test_links_of_our_hcas_and_between_switches_that_may_carry_them_are_ours() -> None:
    membership = resolve(world.fabric(), {name: world.node(number) for name, number in world.NODES.items()}, {name: world.subnets() for name in world.NODES})
    topology = fabric_of_tenants()
    way, leaf = Way(membership, topology), topology.nodes[0].guid
    assert way.leaves == {leaf}
    ports = {member.port.guid for members in membership.members.values() for member in members if member.port}
    assert {end for end in way.ours if end[0] in ports} == {(guid, 1) for guid in ports}
    assert {(leaf, number) for number in range(1, 9)} | {(leaf, 60), (SPINE.guid, 1)} <= way.ours
    # two leaves carry HCAs of others alone; the third has none, and may be on the way
    for number, expected in ((1, False), (2, False), (3, True)):
        assert ((f"0x{0x900 + number:016x}", 60) in way.ours, (SPINE.guid, 1 + number) in way.ours) == (expected, expected)
        assert (f"0x{0x900 + number:016x}", 1) not in way.ours


def test_the_ends_that_a_query_was_about() -> None:
    membership = resolve(world.fabric(), {"worker-1": world.node(1)}, {"worker-1": world.subnets()})
    way = Way(membership, fabric_of_tenants())
    assert way.ends_of([UnreadPort(90, 2)]) == {(SPINE.guid, 2)}
    assert way.ends_of([UnreadPort(90, 255)]) == {(SPINE.guid, number) for number in (1, 2, 3, 4)}
    assert way.knows(UnreadPort(90, 2)) and not way.knows(UnreadPort(90, 9)) and not way.knows(UnreadPort(4711, 1))
    assert way.far[SPINE.guid, 2] == ("0x0000000000000901", 60)
