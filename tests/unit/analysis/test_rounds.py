# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of disjoint pairs, and who pings whom."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan, schedule
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rounds import (
    iterate_rounds,
    turn_pairs,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.vantage import choose_vantage_points
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    LostManager,
    SeenSubnet,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PingPlan, PortName


@given(st.integers(min_value=0, max_value=33))
def test_everybody_meets_everybody_once_and_nobody_twice_in_a_round(count: int) -> None:
    made = list(iterate_rounds(range(count)))
    assert len(made) == (0 if count < 2 else count - 1 + count % 2)
    for pairs in made:
        taking_part = [item for pair in pairs for item in pair]
        assert len(taking_part) == len(set(taking_part)) == 2 * (count // 2)
    assert sorted(tuple(sorted(pair)) for pairs in made for pair in pairs) == list(
        itertools.combinations(range(count), 2)
    )


@given(st.integers(min_value=2, max_value=33), st.integers(min_value=0, max_value=40))
def test_a_limit_takes_some_of_the_rounds(count: int, most: int) -> None:
    every = list(iterate_rounds(range(count)))
    some = list(iterate_rounds(range(count), most))
    assert len(some) == min(most, len(every)) and [pairs for pairs in every if pairs in some] == some


def test_a_limit_lets_a_node_meet_others_from_everywhere() -> None:
    """Neighbours by name hang on one leaf: with 32 nodes a leaf, 31 partners are spread over all 32 leaves."""
    partners = [
        other
        for pairs in iterate_rounds(range(1024), 31)
        for pair in pairs
        if 500 in pair
        for other in pair
        if other != 500
    ]
    assert len({partner // 32 for partner in partners}) > 24


@given(st.integers(min_value=3, max_value=65), st.integers(min_value=0, max_value=40))
def test_turned_pairs_are_the_same_and_each_item_is_the_first_and_the_second(count: int, fewer: int) -> None:
    every = list(iterate_rounds(range(count)))
    turned = list(turn_pairs(every))
    assert [[{*pair} for pair in pairs] for pairs in turned] == [[{*pair} for pair in pairs] for pairs in every]
    first, second = ({pair[place] for pairs in turned for pair in pairs} for place in (0, 1))
    assert first == second == set(range(count))
    # a limit of rounds takes nothing from what the first ones say
    assert list(turn_pairs(every[:fewer])) == turned[:fewer]


def test_it_is_the_same_each_time() -> None:
    assert list(iterate_rounds(range(9))) == list(iterate_rounds(range(9)))


def test_a_limit_of_rounds_gives_every_port_as_many_partners() -> None:
    rails = [
        {f"node{node}": Endpoint(f"mlx5_{rail}", 1, 1 + node * 8 + rail) for node in range(100)} for rail in range(8)
    ]
    planned = plan(rails, most_rounds=31)
    assert all(len(task.lids) == 31 for part in planned.values() for task in part.clients)


def test_plan_pings_both_ways_on_the_same_rail_only() -> None:
    rails = [
        {"a": Endpoint("mlx5_0", 1, 10), "b": Endpoint("mlx5_0", 1, 20), "c": Endpoint("mlx5_0", 1, 30)},
        {"a": Endpoint("mlx5_1", 2, 11), "b": Endpoint("mlx5_1", 2, 21)},
    ]
    planned = plan(rails)
    assert planned["a"].servers == (PortName("mlx5_0", 1), PortName("mlx5_1", 2))
    assert {task.device: set(task.lids) for task in planned["a"].clients} == {"mlx5_0": {20, 30}, "mlx5_1": {21}}
    assert {task.device: set(task.lids) for task in planned["c"].clients} == {"mlx5_0": {10, 20}}


def test_a_port_without_partner_serves_and_pings_nobody() -> None:
    planned = plan([{"a": Endpoint("mlx5_0", 1, 10)}])
    assert planned["a"].servers == (PortName("mlx5_0", 1),) and planned["a"].clients == ()


@pytest.mark.parametrize(("most", "expected"), [(1, 1), (2, 2), (None, 5)])
def test_each_port_has_so_many_partners_at_most(most: int, expected: int) -> None:
    planned = plan([{f"n{node}": Endpoint("mlx5_0", 1, node + 1) for node in range(6)}], most)
    assert {len(part.clients[0].lids) for part in planned.values()} == {expected}


def test_the_servers_outlive_what_the_pings_can_take() -> None:
    rails = [
        {f"node{node}": Endpoint(f"mlx5_{rail}", 1, 1 + node * 8 + rail) for node in range(100)} for rail in range(8)
    ]
    made = schedule(plan(rails, most_rounds=31), parallel=8, limit_seconds=30, forks=50)
    assert made.pairs == 100 * 8 * 31 and len(made.nodes) == 100
    # 31 turns of 8 destinations, for 50 nodes and then for the other 50
    assert (made.seconds, made.most_seconds) == (2 * 31, 2 * (30 + 31 * 30))
    # a node that is slow to start its servers or its pings
    assert made.lifetime >= made.most_seconds + 600


@pytest.mark.parametrize("nodes", [{}, {"a": PingPlan()}])
def test_nothing_to_ping_takes_no_time(nodes: dict[str, PingPlan]) -> None:
    made = schedule(nodes, parallel=8, limit_seconds=30, forks=5)
    assert (made.pairs, made.seconds) == (0, 0) and made.most_seconds == 30 * len(nodes)


def test_one_port_looks_at_each_fabric() -> None:
    one, two = (SubnetManager(1, f"0x{index:016x}", "MASTER", 1, 1) for index in (1, 2))
    subnets = {
        "a": (
            SeenSubnet("mlx5_0", 1, error="no link"),
            SeenSubnet("mlx5_1", 1, master=one),
            SeenSubnet("mlx5_2", 1, master=one),
        ),
        "b": (SeenSubnet("mlx5_0", 1, master=one), SeenSubnet("mlx5_3", 1, master=two)),
        "c": (),
    }
    assert choose_vantage_points(subnets) == {"a": (PortName("mlx5_1", 1),), "b": (PortName("mlx5_3", 1),), "c": ()}


def test_a_port_that_lost_its_way_shows_the_part_that_was_cut_off() -> None:
    one = SubnetManager(1, "0x0000000000000001", "MASTER", 1, 1)
    away = [SeenSubnet(f"mlx5_{index}", 1, error="query", silent=True, lost=LostManager(7)) for index in range(8)]
    hung = SeenSubnet("mlx5_8", 1, error="query", silent=True, lost=LostManager(7, "sm-1 mlx5_0", True))
    planned = choose_vantage_points(
        {"a": (SeenSubnet("mlx5_9", 1, master=one), away[1], hung), "b": (away[1], *away[2:])}
    )
    assert planned == {
        "a": (PortName("mlx5_9", 1), PortName("mlx5_1", 1)),
        "b": tuple(PortName(f"mlx5_{index}", 1) for index in (2, 3, 4)),
    }
