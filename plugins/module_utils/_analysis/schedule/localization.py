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
from .paths import Kind, PathTable, Way

#: of the median of its class: a way below is slow, one at or above GOOD is good, one between is neither
SLOW, GOOD = 0.90, 0.95
#: in standard deviations of the noise: to accuse, and to clear
ACCUSE, CLEAR = 5.0, 3.5
#: what may speak against a link that is accused, in the same
_CONTRARY = 2.0
#: a link that is cleared did better by this much at least, as a share of what it should do
_BETTER = 0.05
#: noise above which one reading says little of a way
NOISY = 0.04
#: noise is never taken for less: what is measured varies by more than a few readings show
_LEAST_NOISE = 0.01
#: ways of a class from which a median says what is usual, and their part of the ways between ends of the same rate and
#: distance
_FEW, _PART = 8, 0.25
#: to make a switch out of its links: to this many neighbours
_SWITCH_NEIGHBOURS = 3
#: of the ways through it, when the others are measured again; and how often these are
_MOSTLY, _ENOUGH = 0.8, 3
#: readings above what is usual by that many standard deviations are no noise, when they are that many of all, and that
#: many
_ABOVE, _MANY, _SOME = 3.5, 0.15, 3
#: what the median of the distances of a class tells of its noise, in degrees of freedom for each reading
_MEDIAN_TELLS = 0.37
#: the noise is taken for that much more, in units of 1 / sqrt(degrees of freedom): few readings may lie close together
#: by chance
_UNSURE = 2.0
#: degrees of freedom below which tests are repeated to know the noise
_KNOWN = 60.0


@dataclasses.dataclass(frozen=True)
class Reading:
    """The bandwidth of one test.

    :ivar test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
    :ivar gbps: bandwidth in Gb/s; None if the test failed, which counts as 0
    """

    test: Test
    gbps: typing.Optional[float]


@dataclasses.dataclass
class Measured:
    """All readings of one path, as shares of the usual rate of its class. A class contains the paths with the same
    rates and the same number of links.

    :ivar test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
    :ivar way: indices in ``PathTable.directions`` of the link directions on the path
    :ivar shares: readings as shares of the usual rate
    :ivar unsure: standard deviation of the usual rate, as a share
    :ivar share: mean of the readings
    :ivar slow: whether ``share`` is below SLOW
    :ivar good: whether ``share`` is at least GOOD
    """

    test: Test
    way: Way
    shares: typing.Sequence[float]
    unsure: float = 0.0
    # asked for a hundred times by way: made once
    share: float = dataclasses.field(init=False)
    slow: bool = dataclasses.field(init=False)
    good: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.share = sum(self.shares) / len(self.shares)
        self.slow = self.share < SLOW
        self.good = self.share >= GOOD


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
    measured, noise, known = _compute_rate_shares(ways, readings, floor_share)
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


def _compute_rate_shares(
    ways: PathTable, readings: typing.Iterable[Reading], floor_share: typing.Optional[float]
) -> tuple[dict[Test, Measured], float, bool]:
    """Return three values: the readings by test, as shares of the usual rate of their class; the standard deviation of
    a reading (noise), as a share; and whether there are enough readings to determine the noise.

    :param ways: paths between the ports
    :param floor_share: share of the rate of its slowest link that a path should carry at least; None without a floor
    """
    figures: dict[Test, list[float]] = {}
    for reading in readings:
        values = figures.get(reading.test)
        if values is not None:
            values.append(reading.gbps or 0.0)
        elif ways.way(*reading.test) is not None:
            figures[reading.test] = [reading.gbps or 0.0]
    classes: dict[Kind, list[Test]] = {}
    for test in figures:
        classes.setdefault(ways.kind(*test), []).append(test)
    repeated, freedom = _compute_repeat_deviation(figures.values())
    scales = {
        kind: _find_usual([(sum(figures[test]) / len(figures[test]), len(figures[test])) for test in tests], repeated)
        for kind, tests in classes.items()
    }
    weight = sum(len(tests) for tests in classes.values() if len(tests) >= _FEW)
    apart = (
        sum(len(tests) * scales[kind].spread for kind, tests in classes.items() if len(tests) >= _FEW) / weight
        if weight
        else 0.0
    )
    told = freedom + _MEDIAN_TELLS * weight
    noise = (
        math.sqrt((freedom * repeated**2 + _MEDIAN_TELLS * weight * apart**2) / told) * (1 + _UNSURE / math.sqrt(told))
        if told
        else 0.0
    )
    noise = max(_LEAST_NOISE, noise)
    measured = {}
    for kind, (usual, count) in _compute_norms(classes, scales).items():
        floor = (floor_share or 0.0) * kind[1]
        # by the median of so many
        norm, unsure = (floor, 0.0) if usual < SLOW * floor else (usual, 1.25 * noise / math.sqrt(count))
        for test in classes[kind] if norm > 0 else ():
            measured[test] = Measured(test, ways.way(*test) or (), [value / norm for value in figures[test]], unsure)
    return measured, noise, told >= _KNOWN


def _compute_repeat_deviation(figures: typing.Iterable[typing.Sequence[float]]) -> tuple[float, float]:
    """Return the standard deviation of repeated measurements of the same path, as a share, and its degrees of freedom.

    :param figures: readings of each path, in Gb/s
    """
    total, freedom = 0.0, 0
    for values in figures:
        if len(values) < 2:
            continue
        middle = statistics.fmean(values)
        if middle > 0:
            total += sum((value / middle - 1) ** 2 for value in values)
            freedom += len(values) - 1
    return (math.sqrt(total / freedom) if freedom else 0.0), float(freedom)


@dataclasses.dataclass(frozen=True)
class _Scale:
    """The usual rate of a class of paths, which is that of the paths that are not slow.

    :ivar usual: rate in Gb/s
    :ivar spread: standard deviation of the rates, as a share of ``usual``
    :ivar readings: number of readings
    """

    usual: float
    spread: float
    readings: int


def _find_usual(values: typing.Sequence[tuple[float, int]], noise: float) -> _Scale:
    """Return the usual rate of the paths that are not slow. With few values it is their median.

    Half of all paths may be slow, for example if some leaves are. The paths that are not slow have similar rates, so
    the densest third of all values belongs to them. If many paths carry much more than that third, it consists of paths
    with a common fault, and the search continues above it.

    :param values: mean of each path, and the number of its readings
    :param noise: standard deviation of repeated measurements, as a share
    """
    rest = sorted(values)
    while len(rest) >= _FEW or (len(rest) < len(values) and len(rest) >= _SOME):
        size = max(2, -(-len(rest) // 3))
        begin = min(range(len(rest) - size + 1), key=lambda place: rest[place + size - 1][0] - rest[place][0])
        middle = statistics.median(value for value, _readings in rest[begin : begin + size])
        # a third of a normal distribution is within 0.43 standard deviations; the densest of a few is so by chance
        spread = (rest[begin + size - 1][0] - rest[begin][0]) / 0.86 * (1 + 3 / math.sqrt(len(rest)))
        spread = max(spread, max(noise, _LEAST_NOISE) * middle)
        above = [item for item in rest if item[0] > middle + _ABOVE * spread]
        if len(above) >= max(_SOME, _MANY * len(values)):
            rest = above
            continue
        near = [item for item in rest if abs(item[0] - middle) <= 2.5 * spread]
        usual = statistics.median(value for value, _readings in near)
        # of a normal distribution, half is within 0.6745 standard deviations
        apart = (
            statistics.median(abs(value - usual) for value, _readings in near) / 0.6745 / usual if usual > 0 else 0.0
        )
        return _Scale(usual, apart, sum(readings for _value, readings in near))
    return _Scale(statistics.median(value for value, _readings in rest), 0.0, len(rest))


def _compute_norms(
    classes: typing.Mapping[Kind, typing.Sequence[Test]], scales: typing.Mapping[Kind, _Scale]
) -> dict[Kind, tuple[float, int]]:
    """Return the usual rate of each class, and its number of readings. A small class has no usual rate of its own: the
    rate of another class applies, in proportion to the rate of the ends. A class that is slower than shorter paths of
    the same rates has none either, because most of its paths are slow.

    :param classes: tests of each class
    :param scales: rate of the paths of each class that are not slow, from the readings of this class alone
    """
    alike: dict[tuple[float, int], int] = {}
    for kind, tests in classes.items():
        alike[kind[0], kind[2]] = alike.get((kind[0], kind[2]), 0) + len(tests)
    large = [kind for kind, tests in classes.items() if len(tests) >= max(_FEW, _PART * alike[kind[0], kind[2]])]
    usual = {kind: (scale.usual, scale.readings) for kind, scale in scales.items()}
    for kind in large:
        shorter = [usual[other] for other in large if other[:2] == kind[:2] and usual[kind][0] < SLOW * usual[other][0]]
        usual[kind] = max([usual[kind], *shorter])
    for kind in classes:
        others = [other for other in large if other[0] and kind[0]]
        if kind not in large and others:
            _same, _size, near = max(
                ((other[0] == kind[0], other[2] == kind[2]), len(classes[other]), other) for other in others
            )
            usual[kind] = usual[near][0] * kind[0] / near[0], usual[near][1]
    return usual


def _find_causes(slow: Measured, over: typing.Mapping[int, typing.Sequence[Measured]], noise: float) -> frozenset[int]:
    """Return the directions of links that may be the cause of a slow path. If only one remains and the readings also
    contradict that one, further directions are added again.

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
