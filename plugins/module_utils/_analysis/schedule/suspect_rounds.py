# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan further rounds that test only suspected links. Each is tested over a path that is otherwise known to be good, as
long as this can distinguish the links that may be the cause.
"""

from __future__ import annotations

import typing

from .link_coverage_rounds import OccupiedLinks, Round, Test
from .localization import NOISY, Evidence
from .paths import PathTable
from .rate_shares import Measured

#: tests of a link over ways that are otherwise good, and over ways that only part it from other candidates, at most
_ALONE, _PARTING = 8, 2
#: turns of a round, and where one reading says little
_TURNS, MOST_TURNS = 2, 4
#: rounds, at most: what is not told by then is near the limit, and noise hides it
MOST_ROUNDS = 14
#: readings of one test, at most
_READINGS = 8
#: standard deviations below what is usual, of a slow way whose links are looked at one by one
_WORTH = 4.0
#: ways over a link that are looked at
_LOOKS = 400


class SuspectRoundPlanner:
    """A planner of the rounds that follow the first ones and narrow down the suspected links. It limits the number of
    tests of each link, so that the rounds end.
    """

    def __init__(self, ways: PathTable) -> None:
        self._ways = ways
        self._alone: dict[int, int] = {}
        self._parting: dict[int, int] = {}
        self._made = 0

    def next(self, evidence: Evidence) -> typing.Optional[Round]:
        """Return the next round, or None if no further test can add information or if ``MOST_ROUNDS`` rounds were
        planned.

        :param evidence: conclusions from all readings so far
        """
        if self._made == MOST_ROUNDS:
            return None
        self._made += 1
        targets = self._list_suspect_directions(evidence)
        turns = []
        asked: set[Test] = set()
        done: set[int] = set()
        for turn in range(_TURNS if evidence.noise <= NOISY else MOST_TURNS):
            taken = OccupiedLinks(self._ways)
            if evidence.noise > NOISY:
                # one reading more says little
                asked.clear()
                done = set() if turn % 2 == 0 else done
            self._repeat_doubtful_tests(evidence, taken, asked)
            for number in targets:
                if number not in done and self._add_direction_test(number, evidence, taken, asked):
                    done.add(number)
            if not evidence.known and taken.tests:
                self._fill_idle_ends(evidence, taken, asked)
            if taken.tests:
                turns.append(tuple(taken.tests))
        return Round("suspects, over paths that are otherwise good", tuple(turns)) if turns else None

    def _list_suspect_directions(self, evidence: Evidence) -> list[int]:
        """Return the directions on slow paths that are neither known to be good nor known to be slow. Those with the
        fewest other candidates come first.

        :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
        """
        rank: dict[int, int] = {}
        for test, numbers in evidence.candidates.items():
            if self._is_certainly_slow(evidence.measured[test], evidence):
                for number in numbers:
                    rank[number] = min(rank.get(number, len(numbers)), len(numbers))
        for number in {
            number
            for item in evidence.measured.values()
            if item.slow and self._is_certainly_slow(item, evidence)
            for number in item.way
        }:
            # hidden by a link that was found: it was on no good way yet
            if number not in evidence.good and number not in evidence.slow and not self._of_switch(number, evidence):
                rank.setdefault(number, _LOOKS)
        return sorted(rank, key=lambda number: (rank[number], number))

    def _of_switch(self, number: int, evidence: Evidence) -> bool:
        direction = self._ways.directions[number]
        return direction.source in evidence.switches or direction.target in evidence.switches

    def _is_certainly_slow(self, item: Measured, evidence: Evidence) -> bool:
        """Return whether a path is slow with enough certainty, compared with the noise, to test each of its links.

        :param item: readings of the path
        :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
        """
        count = len(item.shares)
        return evidence.noise <= NOISY or (count > 1 and 1 - item.share >= _WORTH * evidence.noise / count**0.5)

    def _repeat_doubtful_tests(self, evidence: Evidence, taken: OccupiedLinks, asked: set[Test]) -> None:
        """Add repetitions of tests that are not certain yet: slow paths that were measured once, slow paths that may be
        noise, and slow paths whose links are all good.

        :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
        :param taken: HCA ports and links that the tests of the round use already
        :param asked: tests of the round so far
        """
        for test, numbers in evidence.candidates.items():
            item = evidence.measured[test]
            count = len(item.shares)
            if count < _READINGS and (
                count < 2 or not numbers or not self._is_certainly_slow(item, evidence) or test in evidence.doubtful
            ):
                self._add_test_if_free(test, evidence, taken, asked)
        for test in evidence.again:
            self._add_test_if_free(test, evidence, taken, asked)

    def _fill_idle_ends(self, evidence: Evidence, taken: OccupiedLinks, asked: set[Test]) -> None:
        """Add repetitions of the tests with the fewest readings, for ends that are idle in this round. With few
        readings, neither the noise nor the usual rate can be estimated.

        :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
        :param taken: HCA ports and links that the tests of the round use already
        :param asked: tests of the round so far
        """
        for item in sorted(evidence.measured.values(), key=lambda item: len(item.shares)):
            self._add_test_if_free(item.test, evidence, taken, asked)

    def _add_test_if_free(self, test: Test, evidence: Evidence, taken: OccupiedLinks, asked: set[Test]) -> None:
        way = evidence.measured[test].way
        if test not in asked and taken.fits(test, way):
            taken.add(test, way)
            asked.add(test)

    def _add_direction_test(self, number: int, evidence: Evidence, taken: OccupiedLinks, asked: set[Test]) -> bool:
        """Add a test of one link direction over a path that is otherwise good, or else over a path without some of the
        other candidates. Return whether a test was added.

        :param number: index in ``PathTable.directions`` of one direction of a link
        :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
        :param taken: HCA ports and links that the tests of the round use already
        :param asked: tests of the round so far
        """
        rivals = [numbers for numbers in evidence.candidates.values() if number in numbers and len(numbers) > 1]
        best: typing.Optional[tuple[tuple[int, int], Test]] = None
        for looks, test in enumerate(self._ways.over(number)):
            if looks >= _LOOKS:
                break
            if test in asked or not (taken.free(test[0]) and taken.free(test[1])):
                continue
            way = self._ways.way(*test) if self._ways.may(*test) else None
            if way is None or number not in way or not taken.fits(test, way):
                continue
            others = sum(link != number and link not in evidence.good for link in way)
            if others and (test in evidence.measured or any(numbers <= set(way) for numbers in rivals)):
                continue
            known = evidence.measured.get(test)
            if known and len(known.shares) >= _READINGS:
                continue
            rank = (others, len(known.shares) if known else 0)
            if best is None or rank < best[0]:
                best = (rank, test)
            if rank == (0, 0):
                break
        if best is None:
            return False
        (others, _readings), test = best
        count, most = (self._parting, _PARTING) if others else (self._alone, _ALONE)
        if count.get(number, 0) >= most:
            return False
        count[number] = count.get(number, 0) + 1
        taken.add(test, self._ways.way(*test) or ())
        asked.add(test)
        return True
