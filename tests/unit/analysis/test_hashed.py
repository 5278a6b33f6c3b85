# SPDX-License-Identifier: GPL-3.0-or-later

"""Localisation where switches send each flow over one of their links by a hash, flows that meet on a link share it, and
figures scatter."""

from __future__ import annotations

import collections
import itertools
import random
import typing
import zlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import (
    Turn,
    cover_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.localization import (
    Evidence,
    locate_slow_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rate_shares import Reading
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.suspect_rounds import SuspectRoundPlanner
from tests.unit import roce_fabric
from tests.unit.check.test_ethernet_routes import made

LEAVES, HOSTS, SPINES = 4, 8, 8
#: of a host or a leaf: its number, the spine of an uplink, and whether it is the direction down from the fabric
Link = tuple[str, int, int, bool]


class Draw:
    """One fabric with some links that carry half.

    :ivar taken: links that any flow of the rounds took
    """

    def __init__(
        self, seed: int, noise: float, slow: typing.Callable[[random.Random], set[Link]], pinned: bool = True
    ) -> None:
        self._random, self._noise, self._pinned = random.Random(seed), noise, pinned
        self._salt, self._count = self._random.random(), itertools.count()
        ways, why = made(roce_fabric.fabric(LEAVES, HOSTS))
        assert ways is not None, why
        self.ways: PathTable = ways
        self.slow = slow(self._random)
        self.taken: set[Link] = set()

    def _links(self, source: int, target: int) -> list[Link]:
        near, far = source // HOSTS, target // HOSTS
        links = [("host", source, 0, False), ("host", target, 0, True)]
        if near != far:
            spine = (
                zlib.crc32(f"{self._salt} {source} {target} {0 if self._pinned else next(self._count)}".encode())
                % SPINES
            )
            links += [("leaf", near, spine, False), ("leaf", far, spine, True)]
        return links

    def measured(self, turn: Turn) -> list[Reading]:
        """All tests of a turn at once."""
        paths = {test: self._links(*test) for test in turn}
        flows = collections.Counter(link for path in paths.values() for link in path)
        self.taken |= flows.keys()
        shares = {
            test: min((0.5 if link in self.slow else 1.0) / flows[link] for link in path)
            for test, path in paths.items()
        }
        return [Reading(test, 390.0 * share * self._random.gauss(1.0, self._noise)) for test, share in shares.items()]

    def evidence(self) -> Evidence:
        readings = [
            reading for item in cover_links(self.ways).rounds for turn in item.turns for reading in self.measured(turn)
        ]
        narrowing = SuspectRoundPlanner(self.ways)
        while True:
            found = locate_slow_links(self.ways, readings)
            further = narrowing.next(found)
            if further is None:
                return found
            readings += [reading for turn in further.turns for reading in self.measured(turn)]

    def accused(self, found: Evidence) -> set[frozenset[Link]]:
        """For each accusation, the links that it may mean."""
        result = set()
        for number in found.slow:
            if number in self.ways.flows:
                source, target = (end // HOSTS for end in self.ways.flows[number])
                result.add(
                    frozenset(
                        ("leaf", leaf, spine, down)
                        for spine in range(SPINES)
                        for leaf, down in ((source, False), (target, True))
                    )
                )
            else:
                end = self.ways.end_of(number)
                down = self.ways.directions[number].source in self.ways.switches
                assert end is not None
                result.add(frozenset([("host", self.ways.ends.index(end), 0, down)]))
        return result


def none(_random: random.Random) -> set[Link]:
    return set()


def host(chance: random.Random) -> set[Link]:
    number = chance.randrange(LEAVES * HOSTS)
    return {("host", number, 0, False), ("host", number, 0, True)}


def uplinks(chance: random.Random) -> set[Link]:
    return {("leaf", chance.randrange(LEAVES), chance.randrange(SPINES), chance.random() < 0.5) for _number in range(2)}


@pytest.mark.parametrize("noise", [0.03, 0.08])
@pytest.mark.parametrize("slow", [none, host, uplinks])
def test_what_a_pinned_flow_met_is_found_and_nobody_else_is_accused(
    slow: typing.Callable[[random.Random], set[Link]], noise: float
) -> None:
    found_at_all = 0
    for seed in range(6):
        draw = Draw(seed, noise, slow)
        evidence = draw.evidence()
        accused = draw.accused(evidence)
        assert all(meant & draw.slow for meant in accused), seed
        # a link that no flow took can't be found, and each of the others is meant by some accusation
        assert {link for link in draw.slow & draw.taken if not any(link in meant for meant in accused)} == set(), seed
        assert not (evidence.switches or evidence.pairs or evidence.doubtful), seed
        found_at_all += len(accused)
    assert bool(found_at_all) == (slow is not none)


def test_where_flows_are_not_pinned_nobody_innocent_is_accused_either() -> None:
    for seed in range(6):
        draw = Draw(seed, 0.03, uplinks, pinned=False)
        assert all(meant & draw.slow for meant in draw.accused(draw.evidence())), seed


def test_no_more_flows_than_that_lead_from_a_leaf_to_another_one() -> None:
    ways, why = made(roce_fabric.fabric(2, 80))
    assert ways is not None, why
    first, between = cover_links(ways).rounds
    assert len(first.turns) == 2 and len(between.turns) == 2 * 64 and all(len(turn) == 1 for turn in between.turns)
