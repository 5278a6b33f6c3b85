# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups of collectives in their order: each step with proven nodes alone, what is slow named in the first step that
shows it, and the tests counted before."""

from __future__ import annotations

import collections
import random
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import (
    CollectiveGroup,
    CollectiveTests,
    Test,
    count_planned_tests,
    group_by_leaves,
    plan_steps,
    without_overlap,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.halving import Named, RailTrial
from ansible_collections.linerate.rdma.tests.unit.analysis.test_halving import Fleet, fleet


def climb(
    world: Fleet, inside: typing.Container[str] = (), shared: typing.Container[str] = ()
) -> tuple[CollectiveTests, typing.Counter[str]]:
    """Run all steps on a fleet.

    :param inside: nodes that are slow alone
    :param shared: nodes that are slow with all rails at once, and with each of them alone are not
    """
    made, counts = CollectiveTests(world.leaves, range(world.rails)), collections.Counter[str]()

    def run(test: Test) -> typing.Optional[bool]:
        if isinstance(test, RailTrial):
            return world.run(test)
        if len(test.nodes) == 1:
            return test.nodes[0] not in inside
        return all(
            world.run(RailTrial(rail, "part", test.nodes, test.nodes)) for rail in range(world.rails)
        ) and not any(node in shared for node in test.nodes)

    while tests := made.next():
        nodes = [node for test in tests for node in test.nodes if isinstance(test, CollectiveGroup)]
        assert len(set(nodes)) == len(nodes) and not any(node in made.left_out for node in nodes)
        counts.update(test.kind if isinstance(test, CollectiveGroup) else "trial" for test in tests)
        made.take({test: run(test) for test in tests})
    return made, counts


def test_the_steps_of_a_fleet() -> None:
    steps = {step.kind: step.rounds for step in plan_steps(fleet(2, 3, 8).leaves)}
    assert list(steps) == ["one node", "two nodes", "a leaf", "across leaves", "all"]
    assert [group.nodes for group in steps["one node"][0]] == [
        (f"node-0{leaf}-0{node}",) for leaf in range(2) for node in range(3)
    ]
    assert [[group.nodes for group in turn] for turn in steps["two nodes"]] == [
        [("node-00-00", "node-00-01"), ("node-01-00", "node-01-01")],
        [("node-00-02", "node-00-00"), ("node-01-02", "node-01-00")],
    ]
    assert [len(group.nodes) for group in steps["a leaf"][0]] == [3, 3]
    assert [group.nodes for group in steps["across leaves"][0]] == [
        (f"node-00-0{node}", f"node-01-0{node}") for node in range(3)
    ]
    assert [len(group.nodes) for group in steps["all"][0]] == [6]


@pytest.mark.parametrize(
    ("leaves", "kinds"),
    [
        ({}, []),
        ({"a": ["x"]}, ["one node"]),
        ({"a": ["x", "y"]}, ["one node", "two nodes"]),
        ({"a": ["x", "y", "z"]}, ["one node", "two nodes", "all"]),
        ({"a": ["x"], "b": ["y"]}, ["one node", "two nodes"]),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, ["one node", "two nodes", "all"]),
        ({"a": ["x", "y"], "b": ["z"]}, ["one node", "two nodes", "across leaves", "all"]),
    ],
)
def test_no_step_is_the_same_as_another(leaves: dict[str, list[str]], kinds: list[str]) -> None:
    steps = plan_steps(leaves)
    assert [step.kind for step in steps] == kinds
    paired = {
        node
        for step in steps
        if step.kind == "two nodes"
        for turn in step.rounds
        for group in turn
        for node in group.nodes
    }
    assert paired == {node for nodes in leaves.values() for node in nodes} or len(kinds) < 2


def test_leaves_of_a_fabric_optimised_for_rails() -> None:
    places = {f"node-{number}": {rail: f"leaf-{number // 2}-{rail}" for rail in range(2)} for number in range(4)}
    assert group_by_leaves(places) == {
        "leaf-0-0 + leaf-0-1": ("node-0", "node-1"),
        "leaf-1-0 + leaf-1-1": ("node-2", "node-3"),
    }
    assert group_by_leaves({"x": {0: "a", 1: "a"}, "y": {0: "a", 1: "a"}}) == {"a": ("x", "y")}
    describe_mistakes: tuple[dict[str, dict[int, str]], ...] = ({"x": {}}, {"x": {0: ""}})
    for wrong in describe_mistakes:
        with pytest.raises(ValueError, match="leaf of x is unknown"):
            group_by_leaves(wrong)


def test_groups_that_share_a_node_run_one_after_the_other() -> None:
    one, two, three = (CollectiveGroup("two nodes", nodes) for nodes in (("a", "b"), ("c", "d"), ("e", "a")))
    assert without_overlap((one, two, three)) == [[one, two], [three]] and without_overlap(()) == []


def test_a_node_of_two_leaves_and_no_rail_are_refused() -> None:
    with pytest.raises(ValueError, match="a node must belong to exactly one leaf"):
        plan_steps({"a": ["x"], "b": ["x"]})
    with pytest.raises(ValueError, match="needs at least one rail"):
        CollectiveTests({"a": ["x", "y"]}, [])


def test_nodes_with_one_gpu_are_not_tested_alone() -> None:
    """One rank sends nothing: its log has no channel that could be proven."""
    leaves = fleet(2, 3, 1).leaves
    assert [step.kind for step in plan_steps(leaves, 1)] == ["two nodes", "a leaf", "across leaves", "all"]
    assert "one node" not in count_planned_tests(leaves, 1, 1).tests
    made = CollectiveTests(leaves, [0], 1)
    while tests := made.next():
        assert all(len(test.nodes) > 1 for test in tests)
        made.take(dict.fromkeys(tests, True))
    assert made.proven == ["two nodes", "a leaf", "across leaves", "all"] and made.unproven == ()


def test_one_node_with_one_gpu_is_not_proven_by_nothing() -> None:
    made = CollectiveTests({"leaf": ["node"]}, [0], 1)
    while tests := made.next():
        made.take(dict.fromkeys(tests))
    assert made.proven == [] and made.unproven == ("one node",)


def test_what_is_announced_is_what_a_sound_fleet_takes() -> None:
    world = fleet(4, 5, 8)
    said = count_planned_tests(world.leaves, 8)
    made, counts = climb(world)
    assert (
        dict(counts) == said.tests == {"one node": 20, "two nodes": 12, "a leaf": 4, "across leaves": 5, "all": 1}
        and said.rounds == 6
    )
    assert (
        made.proven == list(said.tests) and made.unproven == () and not (made.named or made.together or made.left_out)
    )


def test_1024_nodes_take_few_tests() -> None:
    said = count_planned_tests(fleet(32, 32, 8).leaves, 8)
    assert (
        said.tests == {"one node": 1024, "two nodes": 512, "a leaf": 32, "across leaves": 32, "all": 1}
        and said.rounds == 5
    )
    # all pairs would be 523,776
    assert said.for_a_fault < 150


def test_a_node_that_is_slow_alone_takes_no_further_part() -> None:
    made, counts = climb(fleet(2, 4, 2), inside={"node-01-02"})
    assert made.together == [CollectiveGroup("one node", ("node-01-02",))] and made.left_out == {
        "node-01-02": "one node"
    }
    # it was run three times, and all steps without it
    assert counts["one node"] == 10 and made.unproven == () and made.named == {}


def test_a_slow_port_is_named_by_its_pair_and_a_third_node() -> None:
    made, _counts = climb(fleet(2, 4, 2, ports=frozenset({("node-01-02", 1)})))
    assert (
        made.named == {"two nodes": Named(ports=(("node-01-02", 1),))}
        and made.left_out == {"node-01-02": "two nodes"}
        and made.unproven == ()
    )


def test_a_slow_uplink_is_named_between_leaves() -> None:
    made, _counts = climb(fleet(4, 4, 2, uplinks=frozenset({("leaf-02", 1)})))
    assert made.named == {"across leaves": Named(uplinks=(("leaf-02", 1),))}
    assert (
        made.left_out == dict.fromkeys(fleet(4, 4, 2).leaves["leaf-02"], "across leaves") and made.proven[-1] == "all"
    )


def test_a_slow_rail_ends_the_climb() -> None:
    made, _counts = climb(fleet(4, 8, 2, bad_rails=frozenset({1})))
    assert made.named == {"two nodes": Named(rails=(1,))} and made.unproven == (
        "two nodes",
        "a leaf",
        "across leaves",
        "all",
    )


def test_rails_that_are_slow_only_together_are_never_proven() -> None:
    made, _counts = climb(fleet(2, 4, 2), shared={"node-01-02"})
    assert made.named == {} and made.together == [CollectiveGroup("two nodes", ("node-01-02", "node-01-03"))]
    assert made.left_out == {"node-01-02": "two nodes", "node-01-03": "two nodes"}


def test_results_that_are_missing_prove_nothing() -> None:
    made = CollectiveTests(fleet(2, 3, 2).leaves, [0, 1])
    while made.next():
        made.take({})
    assert made.proven == [] and set(made.left_out.values()) == {"one node"} and len(made.unproven) == 5


@pytest.mark.parametrize("seed", range(4))
def test_drawn_ports_of_a_fleet_are_named_in_the_first_step_with_a_network(seed: int) -> None:
    chance = random.Random(seed)
    world = fleet(6, 8, 4)
    world.ports = frozenset((chance.choice(list(world.leaf_of)), chance.randrange(4)) for _number in range(5))
    made, _counts = climb(world)
    assert set(made.named) == {"two nodes"} and set(made.named["two nodes"].ports) == world.ports
    assert set(made.left_out) == {node for node, _rail in world.ports}
    assert made.unproven == () and made.together == []
