# SPDX-License-Identifier: GPL-3.0-or-later

"""Slow links that are drawn at random are found by the rounds, and nothing else is accused: simulated, with noise."""

from __future__ import annotations

import dataclasses
import random
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._schedule.covering import cover
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.evidence import Evidence, Reading, weigh
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.narrowing import Narrowing
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.ways import Ways
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree, guid

SIZE = 8
RATE = 400.0
#: a link that lost half of its lanes
SLOW_SHARE = 0.5


def found(ways: Ways, slow: typing.Collection[int], noise: float, draw: random.Random) -> typing.Tuple[Evidence, int]:
    """What all rounds together say of a fabric with these slow directions, and how many rounds these were."""
    readings: typing.List[Reading] = []

    def measure(tests: typing.Iterable[typing.Tuple[int, int]]) -> None:
        for test in tests:
            share = min(SLOW_SHARE if link in slow else 1.0 for link in ways.way(*test) or ())
            readings.append(Reading(test, RATE * share * draw.gauss(1, noise)))

    rounds = list(cover(ways).rounds)
    for item in rounds:
        measure(item.tests)
    narrowing = Narrowing(ways)
    while True:
        evidence = weigh(ways, readings)
        more = narrowing.next(evidence)
        if more is None:
            return evidence, len(rounds)
        rounds.append(more)
        assert len(rounds) < 50
        measure(more.tests)


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
@pytest.mark.parametrize(("kind", "count"), [("host", 1), ("host", 3), ("spine", 1), ("spine", 3)])
def test_slow_links_are_named_and_nobody_else(kind: str, count: int, noise: float) -> None:
    named = 0
    for seed in range(10):
        draw = random.Random(seed)
        ways = fat_tree(SIZE, SIZE, SIZE)
        hosts = {number for number, it in enumerate(ways.directions) if not {it.source, it.target} <= ways.switches}
        slow = set(draw.sample(sorted(hosts if kind == "host" else set(range(ways.real)) - hosts), count))
        evidence, _rounds = found(ways, slow, noise, draw)
        assert set(evidence.slow) <= slow and not evidence.switches, (seed, [ways.name(link) for link in set(evidence.slow) - slow])
        # what is not named is in a set that has the slow one
        assert all(one & slow for one in evidence.sets), seed
        named += len(evidence.slow)
    assert named >= 0.9 * 10 * count


def test_a_healthy_fabric_accuses_nobody() -> None:
    for seed in range(20):
        evidence, _rounds = found(fat_tree(SIZE, SIZE, SIZE), (), 0.03, random.Random(seed))
        assert not evidence.slow and not evidence.switches and not evidence.sets, seed


def test_a_slow_spine_is_one_cause_and_not_one_for_each_leaf() -> None:
    for seed in range(5):
        ways = fat_tree(SIZE, SIZE, SIZE)
        slow = {number for number, it in enumerate(ways.directions) if guid(2, 3) in (it.source, it.target)}
        evidence, _rounds = found(ways, slow, 0.03, random.Random(seed))
        assert evidence.switches == (guid(2, 3),) and not evidence.slow, seed


@pytest.mark.parametrize(("count", "noise"), [(1, 0.03), (3, 0.03), (1, 0.08), (3, 0.08)])
@pytest.mark.parametrize("layer", [1, 2])
def test_slow_switches_are_named_and_nobody_else_whatever_the_noise(layer: int, count: int, noise: float) -> None:
    """Three slow leaves of eight make more than half of all ways between leaves slow."""
    named = 0
    for seed in range(6):
        draw = random.Random(seed)
        ways = fat_tree(SIZE, SIZE, SIZE)
        switches = {guid(layer, number) for number in draw.sample(range(SIZE), count)}
        slow = {number for number, it in enumerate(ways.directions) if {it.source, it.target} & switches}
        evidence, _rounds = found(ways, slow, noise, draw)
        assert set(evidence.switches) <= switches and set(evidence.slow) <= slow and all(one & slow for one in evidence.sets), seed
        named += len(evidence.switches)
    assert named >= 0.8 * 6 * count


@pytest.mark.parametrize("kind", ["host", "spine"])
def test_of_many_slow_links_none_makes_its_switch_slow(kind: str) -> None:
    """Ten of a small fabric, by a noise that makes a tenth of all good readings look slow."""
    for seed in range(6):
        draw = random.Random(seed)
        ways = fat_tree(SIZE, SIZE, SIZE)
        hosts = {number for number, it in enumerate(ways.directions) if not {it.source, it.target} <= ways.switches}
        slow = set(draw.sample(sorted(hosts if kind == "host" else set(range(ways.real)) - hosts), 10))
        evidence, _rounds = found(ways, slow, 0.08, draw)
        assert not evidence.switches and set(evidence.slow) <= slow and all(one & slow for one in evidence.sets), seed


def test_links_that_came_up_slower_do_not_become_usual() -> None:
    """A spine whose links all run at half their speed: by the topology, these are a rate of their own."""
    ways = fat_tree(SIZE, SIZE, SIZE)
    slow = {number for number, it in enumerate(ways.directions) if guid(2, 3) in (it.source, it.target)}
    for number in slow:
        ways.directions[number] = dataclasses.replace(ways.directions[number], gbps=RATE / 2)
    assert found(ways, slow, 0.03, random.Random(1))[0].switches == (guid(2, 3),)


def test_a_fleet_whose_links_between_switches_are_all_slower_is_as_it_was_built() -> None:
    ways = fat_tree(SIZE, SIZE, SIZE)
    slow = {number for number, it in enumerate(ways.directions) if {it.source, it.target} <= ways.switches}
    for number in slow:
        ways.directions[number] = dataclasses.replace(ways.directions[number], gbps=RATE / 2)
    evidence, _rounds = found(ways, slow, 0.03, random.Random(1))
    assert not evidence.slow and not evidence.switches and not evidence.sets
