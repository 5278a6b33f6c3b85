# SPDX-License-Identifier: GPL-3.0-or-later

"""Slow links that are drawn at random are found by the rounds, and nothing else is accused: simulated, with noise."""

from __future__ import annotations

import dataclasses
import random
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import cover_links
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.localization import (
    Evidence,
    locate_slow_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rate_shares import Reading
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.suspect_rounds import SuspectRoundPlanner
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree, guid, rail_tree, tree

SIZE = 8
RATE = 400.0
#: a link that lost half of its lanes
SLOW_SHARE = 0.5
#: of the rate, what a way should carry
FLOOR = 0.9
#: fabrics where few ways lead over a link, or all of them over the same one
SHAPES: typing.Mapping[str, typing.Callable[[], PathTable]] = {
    "even": lambda: fat_tree(SIZE, SIZE, SIZE),
    "an odd number of leaves": lambda: fat_tree(5, 4, 6),
    "uneven leaves": lambda: tree([2, 7, 3, 5, 1, 6], 4),
    "one host on a leaf": lambda: fat_tree(8, 4, 1),
    "two hosts on a leaf": lambda: fat_tree(6, 2, 2),
    "few hosts and many spines": lambda: fat_tree(8, 8, 3),
    "two leaves": lambda: fat_tree(2, 3, 6),
    "three levels": lambda: tree([6] * 8, 3, pods=2, cores=4),
    "rails that share spines": lambda: rail_tree(4, 4, 4, units=2),
    "one leaf a rail": lambda: rail_tree(6, 4, 3),
}


def found(
    ways: PathTable,
    slow: typing.Mapping[int, float],
    noise: float,
    draw: random.Random,
    floor: typing.Optional[float] = None,
) -> tuple[Evidence, int]:
    """What all rounds together say of a fabric with these slow directions, and how many rounds these were.

    :param slow: what they carry, as a share
    """
    readings: list[Reading] = []

    def measure(tests: typing.Iterable[tuple[int, int]]) -> None:
        for test in tests:
            share = min(slow.get(link, 1.0) for link in ways.way(*test) or ())
            readings.append(Reading(test, RATE * share * max(0.0, draw.gauss(1, noise))))

    rounds = list(cover_links(ways).rounds)
    for item in rounds:
        measure(item.tests)
    narrowing = SuspectRoundPlanner(ways)
    while True:
        evidence = locate_slow_links(ways, readings, floor)
        more = narrowing.next(evidence)
        if more is None:
            return evidence, len(rounds)
        rounds.append(more)
        assert len(rounds) < 50
        measure(more.tests)


def directions_of(ways: PathTable, switch: str) -> set[int]:
    return {number for number, it in enumerate(ways.directions) if switch in (it.source, it.target)}


def cables_of_hosts(ways: PathTable) -> list[int]:
    """The first direction of each."""
    return sorted(ways.up(end) & ~1 for end in range(len(ways.ends)))


def cables_of_switches(ways: PathTable) -> list[int]:
    return sorted(set(range(0, ways.real, 2)) - set(cables_of_hosts(ways)))


def assert_nobody_is_wronged(
    ways: PathTable, evidence: Evidence, slow: typing.AbstractSet[int], switches: typing.AbstractSet[str] = frozenset()
) -> None:
    assert set(evidence.slow) <= slow, [ways.name(link) for link in set(evidence.slow) - slow]
    assert set(evidence.switches) <= switches, [ways.name_of(switch) for switch in evidence.switches]
    # what is not named is in a set that has the slow one
    assert all(one & slow for one in evidence.sets)


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
@pytest.mark.parametrize("shape", SHAPES)
def test_in_no_shape_is_anybody_wronged(shape: str, noise: float) -> None:
    """Faults of each kind, which carry what a draw says; where they can be named, most are, and where not, all are told
    of."""
    ways = SHAPES[shape]()
    covered = cover_links(ways).covered
    told = drawn = 0
    for seed in range(16):
        draw = random.Random(f"{shape} {noise} {seed}")
        switches: set[str] = set()
        slow: dict[int, float] = {}
        if seed % 4 < 3:
            for _number in range(1 + 2 * (seed % 4 == 2)):
                cable = draw.choice(
                    {0: cables_of_hosts, 1: cables_of_switches}.get(
                        seed % 4, draw.choice([cables_of_hosts, cables_of_switches])
                    )(ways)
                )
                slow.update(
                    dict.fromkeys(draw.choice([(cable,), (cable + 1,), (cable, cable + 1)]), draw.uniform(0.25, 0.8))
                )
        else:
            switches = {draw.choice(sorted(ways.switches))}
            slow = dict.fromkeys(directions_of(ways, *switches), draw.uniform(0.25, 0.8))
        evidence, _rounds = found(ways, slow, noise, draw, FLOOR)
        assert_nobody_is_wronged(ways, evidence, set(slow), switches)
        if covered & set(slow):
            drawn += 1
            told += bool(evidence.switches) or any(set(slow) & one for one in (evidence.slow.keys(), *evidence.sets))
    assert told >= drawn * (1 if noise < 0.08 else 0.9)


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
@pytest.mark.parametrize(("kind", "count"), [("host", 1), ("host", 3), ("spine", 1), ("spine", 3)])
def test_slow_links_are_named(kind: str, count: int, noise: float) -> None:
    named = 0
    ways = fat_tree(SIZE, SIZE, SIZE)
    cables = cables_of_hosts(ways) if kind == "host" else cables_of_switches(ways)
    for seed in range(10):
        draw = random.Random(seed)
        slow = dict.fromkeys((cable + draw.randrange(2) for cable in draw.sample(cables, count)), SLOW_SHARE)
        evidence, _rounds = found(ways, slow, noise, draw)
        assert_nobody_is_wronged(ways, evidence, set(slow))
        named += len(evidence.slow)
    assert named >= 0.95 * 10 * count


@pytest.mark.parametrize(("noise", "most"), [(0.03, 5), (0.08, 10)])
def test_few_rounds_are_enough(noise: float, most: int) -> None:
    ways = fat_tree(SIZE, SIZE, SIZE)
    rounds = []
    for seed in range(20):
        draw = random.Random(seed)
        rounds.append(found(ways, {draw.choice(cables_of_hosts(ways)): SLOW_SHARE}, noise, draw)[1])
    assert sorted(rounds)[17] <= most, rounds


@pytest.mark.parametrize("noise", [0.03, 0.08])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_healthy_fabric_accuses_nobody(shape: str, noise: float) -> None:
    ways = SHAPES[shape]()
    for seed in range(10):
        evidence, _rounds = found(ways, {}, noise, random.Random(seed), FLOOR)
        assert not evidence.slow and not evidence.switches and not evidence.sets, seed


@pytest.mark.parametrize(("count", "noise"), [(1, 0.03), (3, 0.03), (1, 0.08), (3, 0.08)])
@pytest.mark.parametrize("layer", [1, 2])
def test_slow_switches_are_named_and_nobody_else_whatever_the_noise(layer: int, count: int, noise: float) -> None:
    """Three slow leaves of eight make more than half of all ways between leaves slow."""
    named = 0
    ways = fat_tree(SIZE, SIZE, SIZE)
    for seed in range(6):
        draw = random.Random(seed)
        switches = {guid(layer, number) for number in draw.sample(range(SIZE), count)}
        slow = dict.fromkeys((number for switch in switches for number in directions_of(ways, switch)), SLOW_SHARE)
        evidence, _rounds = found(ways, slow, noise, draw)
        assert_nobody_is_wronged(ways, evidence, set(slow), switches)
        named += len(evidence.switches)
    assert named >= 0.9 * 6 * count


@pytest.mark.parametrize("kind", ["host", "spine"])
def test_of_many_slow_links_none_makes_its_switch_slow(kind: str) -> None:
    """Ten of a small fabric, by a noise that makes a tenth of all good readings look slow."""
    ways = fat_tree(SIZE, SIZE, SIZE)
    for seed in range(6):
        draw = random.Random(seed)
        slow = dict.fromkeys(
            draw.sample(cables_of_hosts(ways) if kind == "host" else cables_of_switches(ways), 10), SLOW_SHARE
        )
        evidence, _rounds = found(ways, slow, 0.08, draw)
        assert_nobody_is_wronged(ways, evidence, set(slow))


def test_a_cable_that_all_slow_ways_take_explains_them_as_well_as_its_switch() -> None:
    """The only host of a leaf: what is slow may be its cable, the leaf, or both directions of neither."""
    ways = tree([2, 7, 3, 5, 1, 6], 4)
    only = 17
    cable = {ways.up(only), ways.down(only)}
    evidence, _rounds = found(ways, dict.fromkeys(cable, 0.7), 0.0, random.Random(1))
    assert evidence.switches == ()
    told = set(evidence.slow).union(*evidence.sets)
    assert cable <= told
    assert_nobody_is_wronged(ways, evidence, cable)


def test_two_cables_of_a_leaf_with_two_hosts_are_not_told_apart_from_the_leaf() -> None:
    ways = fat_tree(6, 2, 2)
    cables = {number for end in (4, 5) for number in (ways.up(end), ways.down(end))}
    evidence, _rounds = found(ways, dict.fromkeys(cables, 0.5), 0.0, random.Random(1))
    assert evidence.switches == ()
    assert cables & set(evidence.slow).union(*evidence.sets)


def test_where_all_ways_of_a_length_are_slow_shorter_ones_show_it() -> None:
    """Of two leaves one is slow, and so is each way between them; or all of them lead over one slow spine."""
    ways = fat_tree(2, 3, 6)
    evidence, _rounds = found(ways, dict.fromkeys(directions_of(ways, guid(1, 1)), 0.6), 0.0, random.Random(1))
    assert evidence.switches == (guid(1, 1),)
    ways = tree([4] * 6, 1)
    evidence, _rounds = found(ways, dict.fromkeys(directions_of(ways, guid(2, 0)), 0.6), 0.0, random.Random(1))
    assert evidence.switches == (guid(2, 0),)


def test_what_is_slow_everywhere_is_told_by_the_floor_and_blamed_on_nobody() -> None:
    ways = fat_tree(8, 4, 1)
    slow = dict.fromkeys(directions_of(ways, guid(2, 0)), 0.6)
    assert not found(ways, slow, 0.0, random.Random(1))[0].sets
    evidence, _rounds = found(ways, slow, 0.0, random.Random(1), FLOOR)
    assert (
        not evidence.slow
        and not evidence.switches
        and evidence.sets
        and all(one & slow.keys() for one in evidence.sets)
    )


def test_links_that_came_up_slower_do_not_become_usual() -> None:
    """A spine whose links all run at half their speed: by the topology, these are a rate of their own."""
    ways = fat_tree(SIZE, SIZE, SIZE)
    slow = directions_of(ways, guid(2, 3))
    for number in slow:
        ways.directions[number] = dataclasses.replace(ways.directions[number], gbps=RATE / 2)
    assert found(ways, dict.fromkeys(slow, SLOW_SHARE), 0.03, random.Random(1))[0].switches == (guid(2, 3),)


@pytest.mark.parametrize("floor", [None, FLOOR])
def test_a_fleet_whose_links_between_switches_are_all_slower_is_as_it_was_built(floor: typing.Optional[float]) -> None:
    ways = fat_tree(SIZE, SIZE, SIZE)
    slow = {number for number, it in enumerate(ways.directions) if {it.source, it.target} <= ways.switches}
    for number in slow:
        ways.directions[number] = dataclasses.replace(ways.directions[number], gbps=RATE / 2)
    evidence, _rounds = found(ways, dict.fromkeys(slow, SLOW_SHARE), 0.03, random.Random(1), floor)
    assert not evidence.slow and not evidence.switches and not evidence.sets


@pytest.mark.parametrize("across_rails", [True, False])
def test_suspects_are_measured_between_rails_only_where_that_is_allowed(across_rails: bool) -> None:
    """Leaves of two rails in turn, which share the spines."""
    ways = tree([4] * 6, 4, rails=2, across=across_rails)
    # an uplink: there are few ways over it within a rail
    slow = {(ways.way(5, 20) or ())[1]: SLOW_SHARE}
    evidence, _rounds = found(ways, slow, 0.0, random.Random(1))
    assert set(evidence.slow) == set(slow)
    seen = {ways.ends[source].rail != ways.ends[target].rail for source, target in evidence.measured}
    assert seen == ({True, False} if across_rails else {False})


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_an_uplink_that_only_ways_between_rails_take_is_named(noise: float) -> None:
    """One leaf a rail, so that no way of one rail leads over a spine."""
    ways = rail_tree(8, 8, 8)
    cables = cables_of_switches(ways)
    for seed in range(6):
        draw = random.Random(seed)
        slow = dict.fromkeys((cable + draw.randrange(2) for cable in draw.sample(cables, 1 + seed % 3)), SLOW_SHARE)
        evidence, rounds = found(ways, slow, noise, draw)
        assert set(evidence.slow) == set(slow) and not evidence.switches and not evidence.sets and rounds <= 6, seed


def test_where_switches_choose_the_way_a_cable_of_a_host_is_still_named() -> None:
    ways = fat_tree(6, 4, 6, spread="adaptive routing is on")
    slow = {ways.up(7): SLOW_SHARE}
    evidence, _rounds = found(ways, slow, 0.03, random.Random(1))
    assert set(evidence.slow) == set(slow) and not evidence.switches and not evidence.sets
