# SPDX-License-Identifier: GPL-3.0-or-later

"""Leaves between which the links are unknown: each one is crossed, and on Ethernet each with each other one."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.leaf_rounds import find_uncrossed_leaves
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import cover_links
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree, rail_tree
from tests.unit import roce_fabric
from tests.unit.analysis.test_covering import assert_fair
from tests.unit.check.test_ethernet_routes import of

UNSET = "the intent does not set routing"


def leaves_apart(ways: PathTable) -> set[str]:
    """Leaves that no test leaves, or that no test enters."""
    tests = [test for item in cover_links(ways).rounds for test in item.tests]
    crossing = [test for test in tests if ways.leaf(test[0]) != ways.leaf(test[1])]
    return {
        leaf for leaf in ways.leaves for place in (0, 1) if leaf not in {ways.leaf(test[place]) for test in crossing}
    }


@pytest.mark.parametrize("leaves", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("spread", ["", UNSET])
def test_no_leaf_is_left_out(leaves: int, spread: str) -> None:
    """An odd number has no halves, and where switches choose, no round for uncovered links comes after it."""
    ways = fat_tree(leaves, 4, 8, spread=spread)
    assert leaves_apart(ways) == set()
    assert_fair(ways, cover_links(ways))


def test_all_ends_of_the_last_leaf_load_its_uplinks_together() -> None:
    ways = fat_tree(3, 4, 8, spread=UNSET)
    last = set(list(ways.leaves.values())[-1])
    most = max(
        len([test for test in turn if len(last.intersection(test)) == 1])
        for item in cover_links(ways).rounds
        for turn in item.turns
    )
    assert most == 8


def test_no_unit_of_leaves_is_left_out() -> None:
    """Of rails with a leaf for each in three units, each rail has three leaves."""
    ways = rail_tree(4, 8, 4, 3, spread=UNSET)
    assert leaves_apart(ways) == set()
    assert_fair(ways, cover_links(ways))


@pytest.mark.parametrize(("leaves", "hosts"), [(2, 10), (3, 8), (4, 8), (5, 4), (7, 3), (8, 16), (9, 1)])
def test_on_ethernet_each_leaf_meets_each_other_in_both_directions(leaves: int, hosts: int) -> None:
    """A pair of leaves without a path (VXLAN, a missing route) is seen by its own tests alone."""
    ways = of(roce_fabric.fabric(leaves, hosts))
    found = cover_links(ways)
    tests = [test for item in found.rounds for test in item.tests]
    assert {(ways.leaf(one), ways.leaf(other)) for one, other in tests if ways.leaf(one) != ways.leaf(other)} == set(
        itertools.permutations(ways.leaves, 2)
    )
    assert find_uncrossed_leaves(ways, tests) == ((), leaves * (leaves - 1) // 2)
    assert_fair(ways, found)
    assert len(tests) == len(set(tests))
    for turn in (turn for item in found.rounds for turn in item.turns):
        crossing = [test for test in turn if ways.leaf(test[0]) != ways.leaf(test[1])]
        assert len({ways.leaf(test[0]) for test in crossing}) == len({ways.leaf(test[1]) for test in crossing})
        assert len({ways.leaf(test[0]) for test in crossing}) == len(crossing)


def test_of_more_leaves_than_there_are_turns_for_the_rest_is_told() -> None:
    ways = of(roce_fabric.fabric(80, 1))
    found = cover_links(ways)
    missing, every = find_uncrossed_leaves(ways, [test for item in found.rounds for test in item.tests])
    assert every == 80 * 79 // 2 and 0 < len(missing) < every / 4
    assert leaves_apart(ways) == set()


def test_ports_that_hear_no_switch_are_no_leaves_to_pair() -> None:
    seen = roce_fabric.fabric(3, 4)
    deaf = {f"node-{number}": roce_fabric.neighbours() for number in (2, 3, 4, 7)}
    ways = of(seen._replace(neighbours={**seen.neighbours, **deaf}))
    assert len(ways.leaves) == 3 + len(deaf)
    tests = [test for item in cover_links(ways).rounds for test in item.tests]
    assert find_uncrossed_leaves(ways, tests) == ((), 3)
