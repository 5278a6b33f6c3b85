# SPDX-License-Identifier: GPL-3.0-or-later

"""Find slow links by the measured rates of the paths over them.

A path carries the rate of its slowest link, so the best path over a link proves a minimum for that link. A link is a
candidate for the cause of a slow path unless other paths prove that it can carry more. A link that is the only
candidate, by at least two readings, is slow. Links that the readings cannot distinguish are reported together. A single
low reading accuses no link.

The limits depend on the measured noise: readings of good paths scatter, and the more they scatter, the less they prove.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import typing

from .link_coverage_rounds import Test
from .paths import PathTable
from .rate_shares import GOOD, SLOW, Measured, Reading, compute_rate_shares

#: in standard deviations of the noise: to accuse, and to clear
ACCUSE, CLEAR = 5.0, 3.5
#: what may speak against a link that is accused, in the same
_CONTRARY = 2.0
#: a link that is cleared did better by this much at least, as a share of what it should do
_BETTER = 0.05
#: noise above which one reading says little of a way
NOISY = 0.04
#: to make a switch out of its links: to this many neighbours
_SWITCH_NEIGHBOURS = 3
#: of the ways through it, when the others are measured again; and how often these are
_MOSTLY, _ENOUGH = 0.8, 3


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The conclusions about the links after the readings.

    :ivar noise: standard deviation of a reading, as a share; with few readings an upper limit
    :ivar measured: readings of each test, by the indices of its two ends
    :ivar good: indices of the link directions that are on a good path
    :ivar slow: rate of each slow link direction as a share of the usual rate, by its index
    :ivar switches: GUIDs of the switches whose links are all slow, so that the switch is the cause, or each of its
        links
    :ivar candidates: indices of the link directions that may be the cause of a slow path, by the test of this path, for
        the slow paths that ``slow`` and ``switches`` do not explain
    :ivar sets: candidates of paths that were slow twice: at least one direction of each set is slow, and the readings
        cannot distinguish them yet
    :ivar pairs: tests that were slow twice although each of their links is good on other paths
    :ivar doubtful: tests that are slow so far, possibly by chance
    :ivar again: tests that were not slow and that alone contradict the suspicion of a whole switch
    :ivar known: whether there were enough readings to estimate the noise
    """

    noise: float
    measured: dict[Test, Measured]
    good: frozenset[int]
    slow: dict[int, float]
    switches: tuple[str, ...]
    candidates: dict[Test, frozenset[int]]
    sets: tuple[frozenset[int], ...]
    pairs: tuple[Test, ...]
    doubtful: tuple[Test, ...]
    again: tuple[Test, ...]
    known: bool = True


def locate_slow_links(
    ways: PathTable, readings: typing.Iterable[Reading], floor_share: typing.Optional[float] = None
) -> Evidence:
    """Return the conclusions from the readings. Readings of tests whose path is unknown are left out.

    :param ways: paths between the ends
    :param readings: measurements, including repetitions
    :param floor_share: share of the rate of its slowest link that a path should carry at least. If the usual rate of a
        class is below SLOW of that, all paths of the class are slow
    """
    measured, noise, known = compute_rate_shares(ways, readings, floor_share)
    over: dict[int, list[Measured]] = {}
    for item in measured.values():
        for number in item.way:
            over.setdefault(number, []).append(item)
    good = frozenset(number for number, items in over.items() if any(item.good for item in items))
    low = [item for item in measured.values() if item.slow]
    candidates = {item.test: _find_causes(item, over, noise) for item in low}
    slow = _find_accused(candidates, measured, noise)
    left = {test: numbers for test, numbers in candidates.items() if not numbers & slow.keys()}
    switches, again = _find_switches(ways, measured, left, noise)
    of_switches = {
        number
        for guid in switches
        for number in over
        if guid in (ways.directions[number].source, ways.directions[number].target)
    }
    left = {test: numbers for test, numbers in left.items() if not of_switches & set(measured[test].way)}
    slow = {number: share for number, share in slow.items() if number not in of_switches}
    twice = {test: numbers for test, numbers in left.items() if _is_reliably_slow([measured[test]], noise)}
    sets = {numbers for numbers in twice.values() if numbers}
    return Evidence(
        noise,
        measured,
        good,
        slow,
        switches,
        left,
        tuple(sorted((one for one in sets if not any(other < one for other in sets)), key=sorted)),
        tuple(test for test, numbers in twice.items() if not numbers),
        tuple(test for test in left if test not in twice),
        again,
        known,
    )


def _find_causes(slow: Measured, over: typing.Mapping[int, typing.Sequence[Measured]], noise: float) -> frozenset[int]:
    """Return the directions of links that may be the cause of a slow path, as indices in ``PathTable.directions``.
    These are the directions that the readings do not clearly contradict. If a single direction remains, and the
    readings contradict this one to some degree too, the limit of the contradiction is raised, so that further
    directions may remain.

    :param slow: readings of the slow path
    :param over: measured paths over each direction
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    against = {number: _compute_link_evidence(number, slow, over, noise) for number in slow.way}
    left = frozenset(number for number, doubt in against.items() if doubt < CLEAR)
    if len(left) == 1 and against[next(iter(left))] > _CONTRARY:
        return frozenset(number for number, doubt in against.items() if doubt < ACCUSE + 1)
    return left


def _compute_link_evidence(
    number: int, slow: Measured, over: typing.Mapping[int, typing.Sequence[Measured]], noise: float
) -> float:
    """Return how strongly the readings contradict that a link is the cause of a slow path, in standard deviations.

    If the link is the cause, no path over it carries more than the slow path. The value is the misfit between this
    assumption and all readings over the link, by least squares, with the share that fits best.

    :param number: index in ``PathTable.directions`` of one direction of the link
    :param slow: readings of the slow path
    :param over: measured paths over each direction
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    better = sorted(((item.share, len(item.shares)) for item in over[number] if item.share > slow.share), reverse=True)
    count, square = len(slow.shares) * slow.share, len(slow.shares) * slow.share**2
    apart = float(len(slow.shares))
    used, readings, total = 0, 0, 0.0
    for share, times in better:
        if count and share * count <= square:
            break
        count, square, apart = count + times * share, square + times * share**2, apart + times
        used, readings, total = used + 1, readings + times, total + times * share
    if not used or total / readings < max(slow.share + _BETTER, min(GOOD, slow.share + 2 * _BETTER)):
        return 0.0
    # Fisher's approximation of what chance makes of the misfit
    doubt = math.sqrt(2 * (apart - count**2 / square)) / noise - math.sqrt(2 * used - 1)
    # that two slow ways have two causes is less likely than that one of them is good
    return doubt if total / readings >= SLOW else doubt - (ACCUSE - CLEAR)


def _find_accused(
    candidates: typing.Mapping[Test, typing.AbstractSet[int]], measured: typing.Mapping[Test, Measured], noise: float
) -> dict[int, float]:
    """Return the links that are the only candidate of slow paths, with their rates as shares of the usual rate.

    :param candidates: indices of the link directions that may be the cause of a slow path, by the test of this path
    :param measured: readings of each test (indices of two HCA ports in ``PathTable.ends``)
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    alone: dict[int, list[Measured]] = {}
    for test, numbers in candidates.items():
        if len(numbers) == 1:
            alone.setdefault(next(iter(numbers)), []).append(measured[test])
    return {number: _compute_mean(items) for number, items in alone.items() if _is_reliably_slow(items, noise)}


def _compute_mean(items: typing.Sequence[Measured]) -> float:
    return statistics.fmean(share for item in items for share in item.shares)


def _is_reliably_slow(items: typing.Sequence[Measured], noise: float) -> bool:
    """Return whether these paths were slow at least twice, and not by chance. The lowest reading is left out, since it
    may be the reason why the paths were measured again.

    :param items: readings of the paths
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    rest = sorted(share for item in items for share in item.shares)[1:]
    if not rest:
        return False
    share = statistics.fmean(rest)
    doubt = math.sqrt(noise**2 / len(rest) + max(item.unsure for item in items) ** 2)
    return share < SLOW and _compute_mean(items) < SLOW and 1 - share >= ACCUSE * doubt


def _find_switches(
    ways: PathTable,
    measured: typing.Mapping[Test, Measured],
    left: typing.Mapping[Test, typing.AbstractSet[int]],
    noise: float,
) -> tuple[tuple[str, ...], tuple[Test, ...]]:
    """Return the switches that are slow as a whole, and the tests that alone contradict such a suspicion.

    A switch is slow if every path through it is slow, over enough of its links. The switch that explains most slow
    paths comes first, and the next one is sought among the remaining paths. Two switches that explain the same paths
    cannot be distinguished and are not reported. A test that alone contradicts is returned only while it has fewer than
    ``_ENOUGH`` readings.

    :param ways: paths between the ports
    :param measured: readings of each test (indices of two HCA ports in ``PathTable.ends``)
    :param left: slow paths that no single link explains, with their candidates
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    everything: dict[str, list[Measured]] = {}
    for item in measured.values():
        for guid in ways.passed(*item.test):
            everything.setdefault(guid, []).append(item)
    compared = any(not item.slow for item in measured.values())
    whole: dict[str, set[Test]] = {}
    again: list[Test] = []
    for guid, items in everything.items():
        slow = sum(item.slow for item in items)
        if slow < _MOSTLY * len(items):
            continue
        mine = {item.test for item in _find_highest(items, noise) if item.test in left}
        if len(mine) < _SWITCH_NEIGHBOURS or not _is_reliably_slow(items, noise):
            continue
        for_it = [item.test for item in items if not item.slow]
        # where everything is slow, nothing shows that it is not for another reason
        if not for_it and compared:
            whole[guid] = mine
        elif all(len(measured[test].shares) < _ENOUGH for test in for_it):
            again += for_it
    whole = {guid: tests for guid, tests in whole.items() if _can_judge_switch(ways, measured, guid, tests)}
    result: list[str] = []
    while whole:
        most = max(map(len, whole.values()))
        best = sorted(guid for guid, tests in whole.items() if len(tests) == most)
        chosen = [guid for guid in best if not any(other != guid and whole[other] == whole[guid] for other in best)]
        explained = whole[chosen[0]] if chosen else set().union(*(whole[guid] for guid in best))
        result += chosen[:1]
        whole = {guid: tests - explained for guid, tests in whole.items()}
        whole = {guid: tests for guid, tests in whole.items() if _can_judge_switch(ways, measured, guid, tests)}
    return tuple(result), tuple(again)


def _find_highest(items: typing.Sequence[Measured], noise: float) -> list[Measured]:
    """Return the paths whose rates equal that of the best path within the noise. A path with a lower rate has another
    cause, or a second cause.

    :param items: readings of the paths
    :param noise: standard deviation of a reading, as a share of the usual rate
    """
    best = max(items, key=lambda item: item.share)
    readings = {len(item.shares) for item in items}
    apart = {count: CLEAR * noise * best.share * math.sqrt(1 / count + 1 / len(best.shares)) for count in readings}
    return [item for item in items if best.share - item.share <= apart[len(item.shares)]]


def _can_judge_switch(
    ways: PathTable, measured: typing.Mapping[Test, Measured], guid: str, tests: typing.AbstractSet[Test]
) -> bool:
    """Return whether the paths use enough links of a switch to judge the whole switch, and neither two cables nor
    another switch explain them as well.

    :param ways: paths between the ports
    :param measured: readings of each test (indices of two HCA ports in ``PathTable.ends``)
    :param guid: GUID of the switch
    :param tests: tests whose paths pass through the switch
    """
    taken = [measured[test] for test in tests]
    if not taken or frozenset.intersection(*(ways.passed(*item.test) for item in taken)) - {guid}:
        return False
    cables = [
        {frozenset((ways.directions[number].source, ways.directions[number].target)) for number in item.way}
        for item in taken
    ]
    for first in cables[0]:
        without = [its for its in cables if first not in its]
        if not without or set.intersection(*without):
            return False
    its = {cable for way in cables for cable in way if guid in cable}
    return len({end for cable in its for end in cable}) > _SWITCH_NEIGHBOURS
