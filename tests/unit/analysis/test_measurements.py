# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of pairs that share no end, and the partners of suspects."""

from __future__ import annotations

import itertools
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import (
    STAGE_SECONDS,
    Task,
    iterate_steps,
    list_orders,
    plan_retests,
    round_plan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Bandwidth, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

NODES = st.integers(0, 9).map(lambda number: [f"n{name}" for name in range(number)])


@given(
    st.lists(NODES, min_size=1, max_size=3),
    st.sampled_from(["parallel", "serial"]),
    st.sampled_from(["one", "both", "at_once"]),
)
def test_everybody_meets_everybody_of_its_rail_and_nobody_is_asked_twice_at_once(
    rails: list[list[str]],
    order: typing.Literal["parallel", "serial"],
    directions: typing.Literal["one", "both", "at_once"],
) -> None:
    made = list(iterate_steps(dict(enumerate(rails)), Bandwidth(rails=order, directions=directions)))
    for step in made:
        ends = [end for task in step for end in task.pair]
        assert len(ends) == len(set(ends))
        assert order == "parallel" or len({task.rail for task in step}) == 1
    tasks = [order for step in made for task in step for order in list_orders(task, Bandwidth(directions=directions))]
    wanted = [(rail, pair) for rail, nodes in enumerate(rails) for pair in itertools.combinations(nodes, 2)]
    assert sorted(tasks, key=str) == sorted(set(tasks), key=str)
    assert len(tasks) == len(wanted) * (2 if directions == "both" else 1)
    assert {(task.rail, *sorted((task.client, task.server))) for task in tasks} == {
        (rail, *sorted(pair)) for rail, pair in wanted
    }


def test_quick_is_so_many_rounds() -> None:
    assert len(list(iterate_steps({0: ["a", "b", "c", "d"]}, Bandwidth(directions="one"), 1))) == 1


@pytest.mark.parametrize("count", [3, 4, 5, 8, 9, 16])
def test_of_one_direction_each_end_is_client_and_server(count: int) -> None:
    """Else a slow transmitter, or a slow receiver, would be part of no figure."""
    rails = {rail: [f"n{number}" for number in range(count)] for rail in range(2)}
    tasks = [task for step in iterate_steps(rails, Bandwidth(directions="one")) for task in step]
    assert {task.client_end for task in tasks} == {task.server_end for task in tasks}
    assert len({task.client_end for task in tasks}) == 2 * count


def pair(one: str, other: str, rail: int = 0) -> frozenset[tuple[int, str]]:
    return frozenset(((rail, one), (rail, other)))


def test_a_pair_between_rails_has_both_of_them_in_each_direction() -> None:
    task = Task.between((0, "a"), (4, "a"))
    assert list_orders(task, Bandwidth(directions="both")) == (task, Task(4, "a", "a", 0)) and task.pair == {
        (0, "a"),
        (4, "a"),
    }
    # of one rail there is one way to say it
    assert (
        Task.between((1, "a"), (1, "b")) == Task(1, "a", "b")
        and not Task(1, "a", "b").between_rails
        and Task(1, "a", "b").server_end == (1, "b")
    )
    # an end that failed with its own host is tried with one of its rail
    assert plan_retests({pair("b", "c", 4)}, {task.pair}, Bandwidth()) == ((Task(4, "a", "b"),),)


def test_a_suspect_gets_a_partner_that_passed_and_that_it_has_not_met() -> None:
    passed, failed = {pair("a", "b"), pair("a", "b", 1)}, {pair("c", "d"), pair("c", "d", 1)}
    zero, one = ((Task(rail, "c", "a"), Task(rail, "d", "b")) for rail in (0, 1))
    assert plan_retests(passed, failed, Bandwidth()) == (zero + one,)
    assert plan_retests(passed, failed, Bandwidth(rails="serial")) == (zero, one)


@pytest.mark.parametrize(
    ("passed", "failed"),
    [
        # nobody failed; nobody passed, as with two nodes; a suspect that failed with two that pass is clear; so is a
        # path between two that pass
        ({pair("a", "b")}, set()),
        (set(), {pair("a", "b")}),
        ({pair("a", "b"), pair("a", "d")}, {pair("c", "a"), pair("c", "b")}),
        ({pair("a", "b"), pair("c", "d")}, {pair("a", "c")}),
        # the partner that is left is of another rail
        ({pair("a", "b", 1)}, {pair("c", "d")}),
    ],
)
def test_when_no_more_can_be_told(
    passed: set[frozenset[tuple[int, str]]], failed: set[frozenset[tuple[int, str]]]
) -> None:
    assert plan_retests(passed, failed, Bandwidth()) == ()


@given(st.sets(st.sampled_from("abcdefg"), max_size=3))
def test_it_ends_with_each_broken_node_told_as_far_as_partners_go(broken: set[str]) -> None:
    nodes = "abcdefg"
    passed, failed = {pair("a", "b")} - {pair("a", "b")}, {pair("a", "b")} - {pair("a", "b")}

    def measure(tasks: tuple[Task, ...]) -> None:
        for task in tasks:
            (failed if {task.client, task.server} & broken else passed).add(task.pair)

    for step in iterate_steps({0: list(nodes)}, Bandwidth(directions="one"), 1):
        measure(step)
    looks = 0
    while True:
        found = plan_retests(passed, failed, Bandwidth(directions="one"))
        if not found:
            break
        looks += 1
        assert looks < 20
        for step in found:
            measure(step)
    good = {end for one in passed for end in one}
    for end in {end for one in failed for end in one} - good:
        assert end[1] in broken or not good


def fabric(hcas: int = 1, **changes: dict[str, typing.Any]) -> Fabric:
    return parse_intent(
        [
            {
                "name": "compute",
                "profile": "sriov_infiniband",
                "select": {"hcas_per_node": hcas},
                "virtual_functions": 8,
                "resource_name": "mlx",
                "network": {"name": "ib", "namespace": "test"},
                "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
                **changes,
            }
        ]
    ).fabrics[0]


@given(
    st.integers(0, 3000),
    st.integers(1, 8),
    st.sampled_from(["parallel", "serial"]),
    st.sampled_from(["one", "both"]),
    st.integers(1, 600),
)
def test_rounds_that_fit_a_stage_and_a_life_that_lasts_longer(
    nodes: int, hcas: int, rails: str, directions: str, parallel: int
) -> None:
    wanted = {"rails": rails, "directions": directions}
    plan = round_plan(fabric(hcas, bandwidth=wanted), nodes, parallel)
    assert plan.all_rounds == (nodes - 1 + nodes % 2 if nodes > 1 else 0)
    assert min(1, plan.all_rounds) <= plan.rounds <= plan.all_rounds
    assert plan.seconds <= STAGE_SECONDS or plan.rounds == 1
    # no round more would fit
    assert plan.rounds == plan.all_rounds or plan.seconds * (plan.rounds + 1) > STAGE_SECONDS * plan.rounds
    assert plan.most_seconds > plan.seconds or not plan.rounds
    # who asks for all gets all, and pods that live for them
    asked = round_plan(fabric(hcas, bandwidth={**wanted, "rounds": 5000}), nodes, parallel)
    assert asked.rounds == asked.all_rounds and asked.most_seconds >= plan.most_seconds


def test_plans_of_known_size() -> None:
    # 1,024 nodes: 30 s a round of both directions
    plan = round_plan(fabric(), 1024, 512)
    assert (plan.rounds, plan.all_rounds, plan.seconds) == (480, 1023, 14400.0)
    assert round_plan(fabric(), 480, 512).rounds == 479
    assert round_plan(fabric(8), 16, 512).rounds == 15
    # with fewer connections at once a round takes as many turns
    assert round_plan(fabric(8, bandwidth={"rails": "parallel"}), 1024, 512).rounds == 60
    assert round_plan(fabric(bandwidth={"sweep": True}), 1024, 512).rounds < 480
