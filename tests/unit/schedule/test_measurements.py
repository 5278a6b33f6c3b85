# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of pairs that share no end, and the partners of suspects."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.measurements import Task, again, orders, steps

NODES = st.integers(0, 9).map(lambda number: [f"n{name}" for name in range(number)])


@given(st.lists(NODES, min_size=1, max_size=3), st.sampled_from(["parallel", "serial"]), st.sampled_from(["one", "both", "at_once"]))
def test_everybody_meets_everybody_of_its_rail_and_nobody_is_asked_twice_at_once(rails, order, directions):
    made = list(steps(dict(enumerate(rails)), Bandwidth(rails=order, directions=directions)))
    for step in made:
        ends = [end for task in step for end in task.pair]
        assert len(ends) == len(set(ends))
        assert order == "parallel" or len({task.rail for task in step}) == 1
    tasks = [order for step in made for task in step for order in orders(task, Bandwidth(directions=directions))]
    wanted = [(rail, pair) for rail, nodes in enumerate(rails) for pair in itertools.combinations(nodes, 2)]
    assert sorted(tasks, key=str) == sorted(set(tasks), key=str)
    assert len(tasks) == len(wanted) * (2 if directions == "both" else 1)
    assert {(task.rail, *sorted((task.client, task.server))) for task in tasks} == {(rail, *sorted(pair)) for rail, pair in wanted}


def test_quick_is_so_many_rounds():
    assert len(list(steps({0: ["a", "b", "c", "d"]}, Bandwidth(rounds=1, directions="one")))) == 1


def pair(one, other, rail=0):
    return frozenset(((rail, one), (rail, other)))


def test_a_suspect_gets_a_partner_that_passed_and_that_it_has_not_met():
    passed, failed = {pair("a", "b"), pair("a", "b", 1)}, {pair("c", "d"), pair("c", "d", 1)}
    zero, one = ((Task(rail, "c", "a"), Task(rail, "d", "b")) for rail in (0, 1))
    assert again(passed, failed, Bandwidth()) == (zero + one,)
    assert again(passed, failed, Bandwidth(rails="serial")) == (zero, one)


@pytest.mark.parametrize(
    ("passed", "failed"),
    [
        # nobody failed; nobody passed, as with two nodes; a suspect that failed with two that pass is clear; so is a path between two that pass
        ({pair("a", "b")}, set()),
        (set(), {pair("a", "b")}),
        ({pair("a", "b"), pair("a", "d")}, {pair("c", "a"), pair("c", "b")}),
        ({pair("a", "b"), pair("c", "d")}, {pair("a", "c")}),
        # the partner that is left is of another rail
        ({pair("a", "b", 1)}, {pair("c", "d")}),
    ],
)
def test_when_no_more_can_be_told(passed, failed):
    assert again(passed, failed, Bandwidth()) == ()


@given(st.sets(st.sampled_from("abcdefg"), max_size=3))
def test_it_ends_with_each_broken_node_told_as_far_as_partners_go(broken):
    nodes = "abcdefg"
    passed, failed = {pair("a", "b")} - {pair("a", "b")}, set()

    def measure(tasks):
        for task in tasks:
            (failed if {task.client, task.server} & broken else passed).add(task.pair)

    for step in steps({0: list(nodes)}, Bandwidth(rounds=1, directions="one")):
        measure(step)
    looks = 0
    while True:
        found = again(passed, failed, Bandwidth(directions="one"))
        if not found:
            break
        looks += 1
        assert looks < 20
        for step in found:
            measure(step)
    good = {end for one in passed for end in one}
    for end in {end for one in failed for end in one} - good:
        assert end[1] in broken or not good
