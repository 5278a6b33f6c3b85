# SPDX-License-Identifier: GPL-3.0-or-later

"""Which links of a fabric with other tenants are those of ours."""

from __future__ import annotations

import dataclasses
import time
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import (
    Member,
    Membership,
    resolve_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.links_in_scope import LinksInScope
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.names import FabricFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.topology import check_topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import UnreadPort
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world

SPINE = FabricNode("Switch", "0x00000000000000f0", "spine", 65, 90)


def fabric_of_tenants() -> Topology:
    """Our leaf and three of others below a spine; of the last one the only HCA is an aggregation node. Each second link
    is told from its other end."""
    ours = world.topology(1)
    nodes, links = (
        [*ours.nodes, SPINE],
        [Link(link.b, link.a, link.width, link.speed) if place % 2 else link for place, link in enumerate(ours.links)],
    )
    links.append(Link(LinkEnd("Switch", ours.nodes[0].guid, 60, 1), LinkEnd("Switch", SPINE.guid, 1, 90), 4, "NDR"))
    for number in (1, 2, 3):
        leaf, host = f"0x{0x900 + number:016x}", f"0x{0xA00 + number:016x}"
        nodes += [
            FabricNode("Switch", leaf, f"leaf of others {number}", 65, 200 + number),
            FabricNode("Ca", host, "x", 1, aggregation=number == 3),
        ]
        links.append(
            Link(LinkEnd("Switch", leaf, 60, 200 + number), LinkEnd("Switch", SPINE.guid, 1 + number, 90), 4, "NDR")
        )
        links.append(
            Link(LinkEnd("Ca", host, 1, 300 + number, host), LinkEnd("Switch", leaf, 1, 200 + number), 4, "NDR")
        )
    return Topology(tuple(nodes), tuple(links))


def test_links_of_our_hcas_and_between_switches_that_may_carry_them_are_ours() -> None:
    membership = resolve_members(
        world.fabric(),
        {name: world.node(number) for name, number in world.NODES.items()},
        {name: world.subnets() for name in world.NODES},
    )
    topology = fabric_of_tenants()
    way, leaf = LinksInScope(membership, topology), topology.nodes[0].guid
    assert way.leaves == {leaf}
    ports = {member.port.guid for members in membership.members.values() for member in members if member.port}
    assert {end for end in way.ours if end[0] in ports} == {(guid, 1) for guid in ports}
    assert {(leaf, number) for number in range(1, 9)} | {(leaf, 60), (SPINE.guid, 1)} <= way.ours
    # two leaves carry HCAs of others alone; the third has none, and may be on the way
    for number, expected in ((1, False), (2, False), (3, True)):
        assert ((f"0x{0x900 + number:016x}", 60) in way.ours, (SPINE.guid, 1 + number) in way.ours) == (
            expected,
            expected,
        )
        assert (f"0x{0x900 + number:016x}", 1) not in way.ours


def test_the_ends_that_a_query_was_about() -> None:
    membership = resolve_members(world.fabric(), {"worker-1": world.node(1)}, {"worker-1": world.subnets()})
    way = LinksInScope(membership, fabric_of_tenants())
    assert way.ends_of([UnreadPort(90, 2)]) == {(SPINE.guid, 2)}
    assert way.ends_of([UnreadPort(90, 255)]) == {(SPINE.guid, number) for number in (1, 2, 3, 4)}
    assert way.knows(UnreadPort(90, 2)) and not way.knows(UnreadPort(90, 9)) and not way.knows(UnreadPort(4711, 1))
    assert way.far[SPINE.guid, 2] == ("0x0000000000000901", 60)


def switch(number: int) -> str:
    return f"0x{number:016x}"


def tree(
    *links: tuple[int, int], ours: typing.Sequence[int] = (), others: typing.Sequence[int] = ()
) -> tuple[LinksInScope, set[tuple[int, int]]]:
    """The way through such a fabric, and those of its links that are ours."""
    way = LinksInScope(*made_up(*links, ours=ours, others=others))
    return way, {link for link in links if (switch(link[0]), 100 + link[1]) in way.ours}


def made_up(
    *links: tuple[int, int], ours: typing.Sequence[int] = (), others: typing.Sequence[int] = ()
) -> tuple[Membership, Topology]:
    """Switches by their numbers with these links, below some of which are HCAs of ours, or of others."""
    nodes = [
        FabricNode("Switch", switch(number), f"switch-{number}", 65)
        for number in sorted({end for link in links for end in link})
    ]
    made = [
        Link(LinkEnd("Switch", switch(a), 100 + b), LinkEnd("Switch", switch(b), 100 + a), 4, "NDR") for a, b in links
    ]
    hcas = [world.hca(1, 0, guid=f"0x{0xA000000 + number:016x}") for number in ours]
    for place, (number, kind) in enumerate(
        [*((number, 0xA000000) for number in ours), *((number, 0xB000000) for number in others)]
    ):
        guid = f"0x{kind + number:016x}"
        nodes.append(FabricNode("Ca", guid, f"host-{place}", 1))
        made.append(Link(LinkEnd("Ca", guid, 1, None, guid), LinkEnd("Switch", switch(number), 1), 4, "NDR"))
    members = {f"worker-{place}": (Member(0, hca, hca.ports[0]),) for place, hca in enumerate(hcas)}
    return Membership("compute", (), members), Topology(tuple(nodes), tuple(made))


TWO_TIERS = ((1, 11), (1, 12), (2, 11), (2, 12), (3, 11), (3, 12))
#: two pods of two leaves and two switches above them, and two at the top
THREE_TIERS = (
    *((1, 11), (1, 12), (2, 11), (2, 12), (3, 13), (3, 14), (4, 13), (4, 14)),
    *((11, 21), (11, 22), (12, 21), (12, 22), (13, 21), (13, 22), (14, 21), (14, 22)),
)


def test_a_spine_to_which_others_are_cabled_lies_between_our_leaves() -> None:
    """A storage node, or the host of a subnet manager, at each spine; the third leaf is of others alone."""
    for others in ((11,), (11, 12), (3, 11, 12)):
        assert tree(*TWO_TIERS, ours=(1, 2), others=others)[1] == set(TWO_TIERS[: 4 if 3 in others else 6])
    # as a leaf of others
    assert tree(*TWO_TIERS, ours=(1, 2), others=(3,))[1] == set(TWO_TIERS[:4])
    # a leaf that is the only way between two of ours
    assert tree((1, 2), (2, 3), ours=(1, 3), others=(2,))[1] == {(1, 2), (2, 3)}


def test_at_the_top_of_three_tiers_only_what_leads_from_pod_to_pod_is_ours() -> None:
    assert tree(*THREE_TIERS, ours=(1, 4), others=(11, 12, 13, 14, 21, 22))[1] >= set(THREE_TIERS[8:])
    # ours are in one pod: nothing of theirs goes by the top, to which others are cabled
    assert tree(*THREE_TIERS, ours=(1, 2), others=(3, 4, 21, 22))[1] == {*THREE_TIERS[:4]}


def test_a_large_fabric_of_tenants_is_walked_in_time() -> None:
    leaves, spines = range(1000, 1400), range(2000, 2040)
    links = [(leaf, spine) for leaf in leaves for spine in spines]
    began = time.monotonic()
    _way, ours = tree(*links, ours=leaves[::2], others=(*leaves[1::2], *spines))
    assert len(ours) == 200 * 40 and time.monotonic() - began < 60


def test_a_long_row_of_switches_is_not_walked_to_its_end() -> None:
    """Switches of others in a row that no fabric has: what nobody can compare in time is taken for ours, so that its
    errors count."""
    row = [(number, number + 1) for number in range(1, 6000)]
    began = time.monotonic()
    assert tree(*row, ours=range(1, 6000, 2), others=range(2, 6001, 2))[1] == set(row)
    assert time.monotonic() - began < 30


def uplinks_of(links: typing.Sequence[tuple[int, int]], ours: typing.Sequence[int]) -> list[Finding]:
    membership, topology = made_up(*links, ours=ours)
    found = check_topology(world.fabric(), membership, topology, None, FabricFacts({}, {}, {}))
    return [finding for finding in found if finding.check == "fabric.uplinks"]


def test_leaves_that_a_node_makes_up_are_not_compared_each_with_each() -> None:
    """Each leaf shares switches with others than the leaf beside it does, and one has a link more than all."""
    leaves = 1000
    links = [
        (leaf, 100_000 + (leaf + step * step) % 100_000)
        for leaf in range(1, leaves + 1)
        for step in range(40 + (leaf == 1))
    ]
    began = time.monotonic()
    found = uplinks_of(links, range(1, leaves + 1))
    assert time.monotonic() - began < 30
    assert (found[-1].status, found[-1].subject) == ("unknown", "compute") and "uplinks: NUMBER" in found[-1].remedy


def test_many_pods_are_compared_each_in_itself() -> None:
    """A hundred pods of 16 leaves; each leaf that lost a link is told."""
    links = [
        (100 * pod + leaf, 100_000 + 100 * pod + top) for pod in range(1, 101) for leaf in range(16) for top in range(8)
    ]
    lost = {(1703, 101_702), (4204, 104_204)}
    found = uplinks_of([link for link in links if link not in lost], sorted({leaf for leaf, _top in links}))
    assert [(finding.status, finding.subject, finding.measured, finding.expected) for finding in found] == [
        ("fail", f"switch-{leaf}", "7 links to other switches", "8 links to other switches") for leaf in (1703, 4204)
    ]
    assert "Links to these switches are missing: switch-101702 (0 of 1)." in found[0].why


def test_leaves_that_a_port_of_ours_makes_by_many_cables_are_none() -> None:
    """A port has one cable. A node that tells of one to each of thousands of switches would cost gigabytes."""
    membership, topology = made_up((1, 2), ours=(1,))
    port = next(link.a for link in topology.links if link.a.kind == "Ca")
    more = [FabricNode("Switch", switch(number), f"switch-{number}", 65) for number in range(100, 16_100)]
    # by the same port, and by ports that it does not have
    cables = [
        Link(dataclasses.replace(port, port=1 if number % 2 else number), LinkEnd("Switch", node.guid, 1), 4, "NDR")
        for number, node in enumerate(more, start=2)
    ]
    row = [
        Link(LinkEnd("Switch", one.guid, 2), LinkEnd("Switch", other.guid, 3), 4, "NDR")
        for one, other in zip(more, more[1:])
    ]
    way = LinksInScope(membership, Topology((*topology.nodes, *more), (*topology.links, *cables, *row)))
    assert way.leaves == {switch(1)}


def test_a_fabric_of_more_distances_than_memory_holds_is_taken_for_ours() -> None:
    leaves = range(1, 4001)
    row = [(number, 10_000 + number) for number in leaves] + [(10_000 + number, 10_001 + number) for number in leaves]
    began = time.monotonic()
    assert tree(*row, ours=leaves, others=[10_000 + number for number in leaves])[1] == set(row)
    assert time.monotonic() - began < 30


def test_of_a_description_the_first_64_characters_are_told() -> None:
    """The IBA has no more. A node that makes one up would have it written into each finding about a link."""
    assert (
        FabricNode("Switch", "0x01", " leaf-1 ", 65).called == "leaf-1"
        and FabricNode("Switch", "0x01", " ", 65).called == "0x01"
    )
    assert FabricNode("Switch", "0x01", "x" * 60_000, 65).called == "x" * 64
