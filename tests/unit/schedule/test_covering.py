# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways by the forwarding tables, and the rounds that cover all links of a fabric: on fat trees that are made up, with the tables that min hop would compute."""

from __future__ import annotations

import collections

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.text import percent
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.covering import Cover, cover
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.ways import Ways
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree, tree


def assert_fair(ways: Ways, found: Cover) -> None:
    """In a turn an end sends or receives once, and no link carries two flows in one direction."""
    for turn in (turn for item in found.rounds for turn in item.turns):
        used = [end for test in turn for end in test]
        assert len(used) == len(set(used)), turn
        carried = collections.Counter(link for test in turn for link in ways.way(*test) or () if not ways.directions[link].between)
        assert not carried or max(carried.values()) == 1, turn


@hypothesis.given(leaves=some.integers(2, 6), spines=some.integers(1, 4), more=some.integers(0, 3))
@hypothesis.settings(max_examples=25, deadline=None)
def test_all_links_are_covered_in_both_directions_where_hosts_are_enough(leaves: int, spines: int, more: int) -> None:
    ways = fat_tree(leaves, spines, max(2, spines) + more)
    found = cover(ways)
    assert found.uncovered == () and len(found.covered) == found.links == ways.real
    assert_fair(ways, found)
    assert found.covered == {link for item in found.rounds for test in item.tests for link in ways.way(*test) or ()}


def test_a_fleet_takes_a_few_rounds_and_not_one_for_each_host() -> None:
    ways = fat_tree(8, 8, 8)
    found = cover(ways)
    assert found.uncovered == ()
    # each host sends and receives inside of its leaf and out of it; all pairs would be 63 rounds
    assert len(found.rounds) <= 4 and found.tests <= 4 * len(ways.ends)
    assert found.rounds[0].why == "inside of each leaf"
    assert all(ways.leaf(source) == ways.leaf(target) for source, target in found.rounds[0].tests)


def test_a_link_that_nothing_is_sent_over_is_named_and_not_counted() -> None:
    # one host on each leaf: of four uplinks the tables use one a direction
    ways = fat_tree(3, 4, 1)
    found = cover(ways)
    assert 0 < len(found.covered) < found.links and len(found.uncovered) == found.links - len(found.covered)
    assert any(ways.name(link).startswith("leaf-0 port") and "spine-3" in ways.name(link) for link in found.uncovered)


def test_the_way_is_that_of_the_tables() -> None:
    ways = fat_tree(3, 2, 2)
    names = [ways.name(link) for link in ways.way(0, 3) or ()]
    assert names == ["node-1 rail 0 to leaf-0 port 1", "leaf-0 port 4 to spine-1 port 1", "spine-1 port 2 to leaf-1 port 4", "leaf-1 port 2 to node-4 rail 0"]
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
    assert [known.name(link) for link in way][1] == "between leaf-0 and leaf-1, on the way there"
    assert len(way) == 3 and len(known.way(0, 1) or ()) == 2


@pytest.mark.parametrize("across_rails", [True, False])
def test_ends_of_different_rails_are_paired_only_where_that_is_allowed(across_rails: bool) -> None:
    """One leaf a rail: no way of one rail leads over a spine."""
    ways = tree([4, 4], 4, rails=2)
    found = cover(ways, across_rails)
    assert_fair(ways, found)
    crossing = [test for item in found.rounds for test in item.tests if ways.ends[test[0]].rail != ways.ends[test[1]].rail]
    assert bool(crossing) == across_rails
    assert bool(found.uncovered) == (not across_rails)


def test_three_levels_are_covered_where_the_tables_lead() -> None:
    ways = tree([6] * 8, 3, pods=2, cores=4)
    found = cover(ways)
    assert_fair(ways, found)
    assert len(ways.pods) == 2 and [len(pod) for pod in ways.pods] == [4, 4]
    assert any(item.why == "between pods" for item in found.rounds)
    usable = {link for source in range(len(ways.ends)) for target in range(len(ways.ends)) if source != target for link in ways.way(source, target) or ()}
    assert found.covered == usable


def test_where_switches_choose_the_cables_of_the_ends_are_covered_and_nobody_looks_for_more() -> None:
    """A link between two switches is on no way that is known: to look for one through each pair of ends took longer than to measure all."""
    ways = fat_tree(16, 16, 16, spread="adaptive routing is on")
    first = cover(ways)
    assert first.uncovered == () and first.links == 2 * len(ways.ends) and len(first.rounds) == 2


def test_a_hundred_per_cent_are_said_of_all_alone() -> None:
    assert [percent(*pair) for pair in ((4096, 4096), (4095, 4096), (1, 3), (0, 0))] == ["100", "99.9", "33.3", "100"]
