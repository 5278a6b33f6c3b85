# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways by the forwarding tables, and the rounds that cover all links of a fabric: on fat trees that are made up, with
the tables that min hop would compute."""

from __future__ import annotations

import collections
import random

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.coverage import (
    Coverage,
    compute_coverage,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import (
    Cover,
    cover_links,
    has_separate_rails,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_directions import End
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import format_percent
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import UNTOLD, ForwardingTable
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree, parts, rail_parts, rail_tree, tree


def assert_fair(ways: PathTable, found: Cover) -> None:
    """In a turn an end sends or receives once, and no link carries two flows in one direction."""
    for turn in (turn for item in found.rounds for turn in item.turns):
        used = [end for test in turn for end in test]
        assert len(used) == len(set(used)), turn
        carried = collections.Counter(
            link for test in turn for link in ways.way(*test) or () if not ways.directions[link].between
        )
        assert not carried or max(carried.values()) == 1, turn


def use_of(ways: PathTable, found: Cover) -> Coverage:
    """What the rounds use."""
    return compute_coverage(ways, (test for item in found.rounds for test in item.tests))


@hypothesis.given(leaves=some.integers(2, 6), spines=some.integers(1, 4), more=some.integers(0, 3))
@hypothesis.settings(max_examples=examples(25), deadline=None)
def test_all_links_are_covered_in_both_directions_where_hosts_are_enough(leaves: int, spines: int, more: int) -> None:
    ways = fat_tree(leaves, spines, max(2, spines) + more)
    found = cover_links(ways)
    used = use_of(ways, found)
    assert used.missing == used.unused == () and len(found.covered) == ways.real
    assert_fair(ways, found)
    assert found.covered == {link for item in found.rounds for test in item.tests for link in ways.way(*test) or ()}


@hypothesis.given(
    leaves=some.lists(
        some.lists(some.sampled_from((100.0, 200.0, 400.0)), min_size=1, max_size=6), min_size=1, max_size=4
    ),
    spines=some.integers(1, 3),
    unknown=some.booleans(),
)
@hypothesis.settings(max_examples=examples(60), deadline=None)
def test_each_end_meets_one_of_at_least_its_rate_where_its_rail_has_one(
    leaves: list[list[float]], spines: int, unknown: bool
) -> None:
    """A pair shows what its slower end carries: the same fabric without rates is covered as well."""
    ways = tree(list(map(len, leaves)), spines, spread="adaptive routing is on" if unknown else "")
    of_ends = [rate for leaf in leaves for rate in leaf]
    rates = {(end.rail, end.node): rate for end, rate in zip(ways.ends, of_ends)}
    found, plain = cover_links(ways, rates), cover_links(ways)
    assert_fair(ways, found)
    assert use_of(ways, found).missing == use_of(ways, plain).missing
    met = dict.fromkeys(range(len(of_ends)), 0.0)
    for one, other in (test for item in found.rounds for test in item.tests):
        met[one], met[other] = max(met[one], of_ends[other]), max(met[other], of_ends[one])
    for end, rate in enumerate(of_ends):
        best = max((other for place, other in enumerate(of_ends) if place != end), default=0.0)
        assert met[end] >= min(rate, best), (end, rate, best)


def test_where_all_rates_are_equal_or_unknown_the_rounds_are_the_same() -> None:
    ways = tree([3, 4, 5], 2)
    ends = [(end.rail, end.node) for end in ways.ends]
    plain = cover_links(ways).rounds
    assert cover_links(ways, dict.fromkeys(ends, 400.0)).rounds == cover_links(ways, {}).rounds == plain
    assert "between ends of equal rate" not in {item.why for item in plain}


def test_a_fleet_takes_a_few_rounds_and_not_one_for_each_host() -> None:
    ways = fat_tree(8, 8, 8)
    found = cover_links(ways)
    assert use_of(ways, found).missing == use_of(ways, found).unused == ()
    # each host sends and receives inside of its leaf and out of it; all pairs would be 63 rounds
    assert len(found.rounds) <= 4 and found.tests <= 4 * len(ways.ends)
    assert found.rounds[0].why == "inside each leaf"
    assert all(ways.leaf(source) == ways.leaf(target) for source, target in found.rounds[0].tests)


def test_a_link_that_nothing_is_sent_over_is_named_and_not_counted() -> None:
    # one host on each leaf: of four uplinks the tables use one a direction
    ways = fat_tree(3, 4, 1)
    used = use_of(ways, cover_links(ways))
    assert used.missing == () and 0 < used.usable < ways.real == used.usable + len(used.unused)
    assert any(ways.name(link).startswith("leaf-0 port") and "spine-3" in ways.name(link) for link in used.unused)


def test_the_way_is_that_of_the_tables() -> None:
    ways = fat_tree(3, 2, 2)
    names = [ways.name(link) for link in ways.way(0, 3) or ()]
    assert names == [
        "node-1 rail 0 to leaf-0 port 1",
        "leaf-0 port 4 to spine-1 port 1",
        "spine-1 port 2 to leaf-1 port 4",
        "leaf-1 port 2 to node-4 rail 0",
    ]
    assert [ways.directions[link].gbps for link in ways.way(0, 3) or ()] == [400.0] * 4
    assert (0, 3) in set(ways.over((ways.way(0, 3) or ())[1]))


def test_a_way_that_the_tables_do_not_tell_is_not_made_up() -> None:
    ways = fat_tree(2, 2, 2, lost=(0, 3))
    assert ways.way(0, 2) is None and "leaf-0" in ways.why_not(0, 2) and "LID 3" in ways.why_not(0, 2)
    assert ways.way(2, 0) is not None and ways.why_not(2, 0) == ""


@pytest.mark.parametrize("tables", [True, False])
def test_where_switches_choose_the_way_links_between_leaves_are_not_told_apart(tables: bool) -> None:
    known = fat_tree(3, 2, 2, spread="adaptive routing is on")
    if not tables:
        known._tables.clear()
    way = known.way(0, 2) or ()
    assert [known.name(link) for link in way][1] == "from leaf-0 to leaf-1, over an unknown link"
    assert len(way) == 3 and len(known.way(0, 1) or ()) == 2


@pytest.mark.parametrize("across", [True, False])
def test_ends_of_different_rails_are_paired_only_where_that_is_allowed(across: bool) -> None:
    """One leaf a rail: no way of one rail leads over a spine. No node has two rails here, so that what is left is
    measured between nodes."""
    ways = tree([4, 4], 4, rails=2, across=across)
    found = cover_links(ways)
    assert_fair(ways, found)
    assert [item.why for item in found.rounds][1:] == ["links that no earlier round used"] * across
    assert bool(crossing(ways, found)) == across
    assert bool(use_of(ways, found).unused) == (not across) and not use_of(ways, found).missing


def crossing(ways: PathTable, found: Cover) -> list[tuple[int, int]]:
    """Tests between rails."""
    return [test for item in found.rounds for test in item.tests if ways.ends[test[0]].rail != ways.ends[test[1]].rail]


@pytest.mark.parametrize("units", [1, 2])
def test_where_rails_share_spines_there_is_a_round_between_the_rails_of_each_host(units: int) -> None:
    ways = rail_tree(4, 8, 4, units)
    found = cover_links(ways)
    assert_fair(ways, found)
    (between,) = [item for item in found.rounds if item.why == "between the rails of each host"]
    # all hosts at once, each end once in each direction
    assert [len(turn) for turn in between.turns] == [4 * 4 * units] * 2
    for source, target in between.tests:
        assert ways.ends[source].node == ways.ends[target].node and len(ways.way(source, target) or ()) == 4
    assert sorted(end for test in between.tests for end in test) == sorted(2 * list(range(len(ways.ends))))
    assert use_of(ways, found).missing == use_of(ways, found).unused == () and not has_separate_rails(ways)
    # with one leaf a rail, nothing but this round goes over the spines
    plain = rail_tree(4, 8, 4, units, across=False)
    without = cover_links(plain)
    assert len(found.rounds) == len(without.rounds) + 1
    assert len(use_of(plain, without).unused) == (2 * 8 * 4 if units == 1 else 0)


@hypothesis.given(
    hosts=some.integers(2, 5),
    rails=some.integers(2, 8),
    spines=some.integers(1, 5),
    units=some.integers(1, 3),
    seed=some.integers(0, 99),
)
@hypothesis.settings(max_examples=examples(40), deadline=None)
def test_no_direction_is_used_twice_in_a_turn_whatever_the_tables(
    hosts: int, rails: int, spines: int, units: int, seed: int
) -> None:
    """What goes up takes a spine that a draw chose, so that flows meet."""
    topology, tables, ends = rail_parts(hosts, rails, spines, units)
    draw = random.Random(seed)
    for number in range(rails * units):
        ports = bytearray(tables[number].ports)
        for lid in range(1, len(ports)):
            if ports[lid] > hosts:
                ports[lid] = hosts + 1 + draw.randrange(spines)
        tables[number] = ForwardingTable(tables[number].guid, bytes(ports))
    ways = PathTable(topology, tables, ends, across=True)
    found = cover_links(ways)
    assert_fair(ways, found)
    usable = {
        link
        for source in range(len(ends))
        for target in range(len(ends))
        if source != target
        for link in ways.way(source, target) or ()
    }
    assert found.covered == usable or len([item for item in found.rounds if item.why.startswith("links")]) == 8
    used = use_of(ways, found)
    assert used.covered == found.covered and used.usable == len(usable)


@pytest.mark.parametrize("spread", ["", "adaptive routing is on"])
def test_rails_that_nothing_is_routed_between_are_left_alone(spread: str) -> None:
    ways, plain = (
        rail_tree(4, 8, 4, 2, apart=True, spread=spread),
        rail_tree(4, 8, 4, 2, apart=True, spread=spread, across=False),
    )
    assert has_separate_rails(ways) and not has_separate_rails(plain)
    assert not crossing(ways, cover_links(ways)) and cover_links(ways).rounds == cover_links(plain).rounds
    assert use_of(ways, cover_links(ways)) == use_of(plain, cover_links(plain))


def test_rails_on_one_leaf_have_nothing_to_tell_that_a_round_inside_of_it_does_not() -> None:
    """All HCAs of a host on one leaf: what goes from one to the other passes no spine."""
    topology, tables, ends = parts([8, 8], 4)
    ways = PathTable(
        topology,
        tables,
        [End(f"host-{number // 2}", number % 2, end.guid, end.lid) for number, end in enumerate(ends)],
        across=True,
    )
    assert "between the rails of each host" not in [
        item.why for item in cover_links(ways).rounds
    ] and not has_separate_rails(ways)


def test_rails_that_share_leaves_by_twos_are_paired_with_those_of_the_other_leaf() -> None:
    """Even rails on one leaf, odd ones on the other: half of all pairings would stay inside."""
    topology, tables, ends = parts([8, 8], 4)
    made = [
        End(f"host-{number % 8 // 4}", 2 * (number % 4) + number // 8, end.guid, end.lid)
        for number, end in enumerate(ends)
    ]
    ways = PathTable(topology, tables, made, across=True)
    (between,) = [item for item in cover_links(ways).rounds if item.why == "between the rails of each host"]
    assert between.tests and all(ways.leaf(source) != ways.leaf(target) for source, target in between.tests)


def test_where_switches_choose_the_way_rails_are_measured_with_each_other_if_the_tables_lead_there() -> None:
    known = rail_tree(4, 4, 4, spread="adaptive routing is on")
    assert len(crossing(known, cover_links(known))) == 2 * 2 * 4
    topology, _tables, ends = rail_parts(4, 4, 4)
    blind = PathTable(topology, (), ends, "its forwarding tables were not read", across=True)
    assert not crossing(blind, cover_links(blind))


def test_three_levels_are_covered_where_the_tables_lead() -> None:
    ways = tree([6] * 8, 3, pods=2, cores=4)
    found = cover_links(ways)
    assert_fair(ways, found)
    assert len(ways.pods) == 2 and [len(pod) for pod in ways.pods] == [4, 4]
    assert any(item.why == "between pods" for item in found.rounds)
    usable = {
        link
        for source in range(len(ways.ends))
        for target in range(len(ways.ends))
        if source != target
        for link in ways.way(source, target) or ()
    }
    assert found.covered == usable


def test_where_switches_choose_the_cables_of_the_ends_are_covered_and_nobody_looks_for_more() -> None:
    """A link between two switches is on no way that is known: to look for one through each pair of ends took longer
    than to measure all."""
    ways = fat_tree(16, 16, 16, spread="adaptive routing is on")
    first = cover_links(ways)
    used = use_of(ways, first)
    assert used.missing == () and len(used.covered) == 2 * len(ways.ends) and len(first.rounds) == 2


def test_a_hundred_per_cent_are_said_of_all_alone() -> None:
    assert [format_percent(*pair) for pair in ((4096, 4096), (4095, 4096), (1, 3), (0, 0))] == [
        "100",
        "99.9",
        "33.3",
        "100",
    ]


def test_a_topology_that_tells_each_link_many_times_is_no_longer_way() -> None:
    """A row of switches, each link of which a node tells twice: the ends behind it would double with each step."""
    row = [FabricNode("Switch", f"0x{number:016x}", f"switch-{number}", 65, 100 + number) for number in range(1, 1500)]
    near, far = End("host-1", 0, "0xa1", 1), End("host-2", 0, "0xa2", 2)
    cables = [
        Link(LinkEnd("Ca", end.guid, 1, end.lid, end.guid), LinkEnd("Switch", top.guid, 3, top.lid), 4, "NDR")
        for end, top in ((near, row[0]), (far, row[-1]))
    ]
    links = [
        Link(LinkEnd("Switch", one.guid, 1, one.lid), LinkEnd("Switch", other.guid, 2, other.lid), 4, "NDR")
        for one, other in zip(row, row[1:])
    ]
    tables = [ForwardingTable(node.guid, bytes((UNTOLD, 2, 1))) for node in row]
    ways = PathTable(Topology(tuple(row), (*cables, *links, *links)), tables, (near, far))
    assert ways.feeders(row[30].guid, 1) == (0,)
    # no way has so many links; the target's own cable leads here as well
    assert ways.feeders(row[-1].guid, 1) == (1,)


def test_an_end_has_one_cable_whatever_a_node_tells() -> None:
    """A node that tells of a cable from its HCA to each of thousands of switches would have rounds planned for each of
    them."""
    topology, tables, ends = parts([4, 4], 2)
    known = PathTable(topology, tables, ends)
    made_up = [FabricNode("Switch", f"0x{0xF00000 + number:016x}", "made up", 65, 900) for number in range(5000)]
    cables = [
        Link(LinkEnd("Ca", ends[0].guid, 2 + number, 1, ends[0].guid), LinkEnd("Switch", node.guid, 1), 4, "NDR")
        for number, node in enumerate(made_up)
    ]
    ways = PathTable(Topology((*topology.nodes, *made_up), (*topology.links, *cables)), tables, ends)
    assert len(ways.directions) == len(known.directions) and ways.leaves == known.leaves
