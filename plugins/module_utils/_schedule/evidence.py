# SPDX-License-Identifier: GPL-3.0-or-later

"""Which links are slow, from what the ways over them carried.

A way carries what its slowest link does, so a link can do at least what the best way over it did. A link is a candidate for a slow way unless other ways
show that it can do better; a link that is the only candidate, by two readings at least, is what is slow. What can not be told apart stays together, and
what one low reading says alone is nobody's fault.

The limits are those of the noise that is seen: readings of good ways scatter, and what they prove depends on by how much.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import typing

from .covering import Test
from .ways import Way, Ways

#: of the median of its class: a way below is slow, one at or above GOOD is good, one between is neither
SLOW, GOOD = 0.90, 0.95
#: in standard deviations of the noise: to accuse, and to clear
ACCUSE, CLEAR = 5.0, 3.5
#: a link that is cleared did better by this much at least, as a share of what it should do
_BETTER = 0.05
#: noise above which one reading says little of a way
NOISY = 0.04
#: noise is never taken for less: what is measured varies by more than a few readings show
_LEAST_NOISE = 0.01
#: ways of a class from which a median says what is usual, and their part of the ways between ends of the same rate and distance
_FEW, _PART = 8, 0.25
#: to make a switch out of its links: this many of them, to this many neighbours
_SWITCH_LINKS, _SWITCH_NEIGHBOURS = 4, 3
#: of the ways through it, when the others are measured again; and how often these are
_MOSTLY, _ENOUGH = 0.8, 3
#: readings above what is usual by that many standard deviations are no noise, when they are that many of all
_ABOVE, _MANY = 5.0, 0.15


#: of a way: the rate of its slower end, that of its slowest link, 0 where it is not known, and how many links it has
_Kind = typing.Tuple[float, float, int]


@dataclasses.dataclass(frozen=True)
class Reading:
    """What one test measured. gbps: None when it failed, which is as slow as can be."""

    test: Test
    gbps: typing.Optional[float]


@dataclasses.dataclass
class Measured:
    """All readings of one way, as shares of what is usual in its class."""

    test: Test
    way: Way
    shares: typing.List[float]

    @property
    def share(self) -> float:
        return sum(self.shares) / len(self.shares)

    @property
    def slow(self) -> bool:
        return self.share < SLOW

    @property
    def good(self) -> bool:
        return self.share >= GOOD


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What is known after the readings.

    :ivar noise: standard deviation of a reading, as a share
    :ivar good: directions on a good way
    :ivar slow: directions that are slow, with what they do as a share of what is usual
    :ivar switches: GUIDs of the switches all of whose links are slow, so that it is the switch, or each link of it
    :ivar candidates: for each slow way that is not explained by these, the directions that may be the cause
    :ivar sets: of those whose way was slow twice: directions of which at least one is slow, and that can not be told apart yet
    :ivar pairs: tests that were slow twice although each link of theirs is good elsewhere
    :ivar doubtful: tests that are slow so far, and that may be so by chance
    :ivar again: tests that were not slow, and that alone speak against a whole switch
    """

    noise: float
    measured: typing.Dict[Test, Measured]
    good: typing.FrozenSet[int]
    slow: typing.Dict[int, float]
    switches: typing.Tuple[str, ...]
    candidates: typing.Dict[Test, typing.FrozenSet[int]]
    sets: typing.Tuple[typing.FrozenSet[int], ...]
    pairs: typing.Tuple[Test, ...]
    doubtful: typing.Tuple[Test, ...]
    again: typing.Tuple[Test, ...]


def weigh(ways: Ways, readings: typing.Iterable[Reading]) -> Evidence:
    """What the readings prove. Those of tests whose way is not known are left out."""
    measured, noise = _shares(ways, readings)
    over: typing.Dict[int, typing.List[Measured]] = {}
    for item in measured.values():
        for number in item.way:
            over.setdefault(number, []).append(item)
    good = frozenset(number for number, items in over.items() if any(item.good for item in items))
    low = [item for item in measured.values() if item.slow]
    candidates = {item.test: frozenset(number for number in item.way if not _cleared(number, item, over, noise)) for item in low}
    slow = _accused(candidates, measured, noise)
    left = {test: numbers for test, numbers in candidates.items() if not numbers & slow.keys()}
    switches, again = _switches(ways, measured, left, noise)
    of_switches = {number for guid in switches for number in over if guid in (ways.directions[number].source, ways.directions[number].target)}
    left = {test: numbers for test, numbers in left.items() if not of_switches & set(measured[test].way)}
    slow = {number: share for number, share in slow.items() if number not in of_switches}
    twice = {test: numbers for test, numbers in left.items() if _below(measured[test].shares, noise)}
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
    )


def _shares(ways: Ways, readings: typing.Iterable[Reading]) -> typing.Tuple[typing.Dict[Test, Measured], float]:
    """The readings by test, as shares of the median of their class, and the noise."""
    figures: typing.Dict[Test, typing.List[float]] = {}
    for reading in readings:
        if ways.way(*reading.test) is not None:
            figures.setdefault(reading.test, []).append(reading.gbps or 0.0)
    classes: typing.Dict[_Kind, typing.List[float]] = {}
    kinds: typing.Dict[Test, _Kind] = {}
    for test, values in figures.items():
        kinds[test] = _kind(ways, test)
        classes.setdefault(kinds[test], []).append(values[0])
    scales = {kind: _usual(values) for kind, values in classes.items()}
    usual = _norms(classes, scales)
    measured = {}
    for test, values in figures.items():
        way, norm = ways.way(*test), usual[kinds[test]]
        if way is not None and norm > 0:
            measured[test] = Measured(test, way, [value / norm for value in values])
    scattered = [(len(classes[kind]), spread) for kind, (_usual_one, spread) in scales.items() if len(classes[kind]) >= _FEW]
    weight = sum(count for count, _spread in scattered)
    noise = sum(count * spread for count, spread in scattered) / weight if weight else 0.0
    return measured, max(_LEAST_NOISE, noise)


def _usual(values: typing.Sequence[float]) -> typing.Tuple[float, float]:
    """What ways that are not slow carry: the median of those, and their standard deviation as a share of it; no more than the median of a few values.

    Half of all ways may be slow, as when some leaves are. Those that are not lie close together, so the densest third is theirs; where many carry
    much more than that, it was slow ways of one cause.
    """
    rest = sorted(values)
    while len(rest) >= _FEW:
        size = -(-len(rest) // 3)
        begin = min(range(len(rest) - size + 1), key=lambda place: rest[place + size - 1] - rest[place])
        middle = statistics.median(rest[begin : begin + size])
        # a third of a normal distribution is within 0.43 standard deviations
        spread = max((rest[begin + size - 1] - rest[begin]) / 0.86, _LEAST_NOISE * middle)
        above = [value for value in rest if value > middle + _ABOVE * spread]
        if len(above) >= max(_FEW, _MANY * len(values)):
            rest = above
            continue
        near = [value for value in rest if abs(value - middle) <= 2.5 * spread]
        usual = statistics.median(near)
        # of a normal distribution, half is within 0.6745 standard deviations
        return usual, statistics.median(abs(value - usual) for value in near) / 0.6745 / usual if usual > 0 else 0.0
    return statistics.median(rest), 0.0


def _kind(ways: Ways, test: Test) -> _Kind:
    rates = [ways.directions[number].gbps or 0.0 for number in ways.way(*test) or ()]
    return min(rates[0], rates[-1]), min(rates), len(rates)


def _norms(classes: typing.Mapping[_Kind, typing.Sequence[float]], scales: typing.Mapping[_Kind, typing.Tuple[float, float]]) -> typing.Dict[_Kind, float]:
    """What is usual in each class. A class that is small has no usual of its own: it should do what others do, in proportion to the rate of its ends. Nor
    has one that does less than shorter ways of the same rates: then most of its ways are slow.
    """
    alike: typing.Dict[typing.Tuple[float, int], int] = {}
    for kind, values in classes.items():
        alike[kind[0], kind[2]] = alike.get((kind[0], kind[2]), 0) + len(values)
    large = [kind for kind, values in classes.items() if len(values) >= max(_FEW, _PART * alike[kind[0], kind[2]])]
    usual = {kind: scales[kind][0] for kind in classes}
    for kind in classes:
        if kind in large:
            usual[kind] = max([usual[kind], *(usual[other] for other in large if other[:2] == kind[:2] and usual[kind] < SLOW * usual[other])])
    for kind in classes:
        others = [other for other in large if other[0] and kind[0]]
        if kind not in large and others:
            _same, _size, near = max(((other[0] == kind[0], other[2] == kind[2]), len(classes[other]), other) for other in others)
            usual[kind] = usual[near] * kind[0] / near[0]
    return usual


def _cleared(number: int, slow: Measured, over: typing.Mapping[int, typing.Sequence[Measured]], noise: float) -> bool:
    """Whether other ways over a link show that it can do better than a slow way did."""
    others = [item for item in over[number] if item is not slow and item.share >= max(slow.share + _BETTER, min(GOOD, slow.share + 2 * _BETTER))]
    if not others:
        return False
    count = sum(len(item.shares) for item in others)
    share = sum(sum(item.shares) for item in others) / count
    spread = noise * math.sqrt(share**2 / count + slow.share**2 / len(slow.shares))
    return share - slow.share >= CLEAR * spread


def _accused(candidates: typing.Mapping[Test, typing.AbstractSet[int]], measured: typing.Mapping[Test, Measured], noise: float) -> typing.Dict[int, float]:
    """The links that are the only candidate of slow ways, with what they do."""
    alone: typing.Dict[int, typing.List[float]] = {}
    for test, numbers in candidates.items():
        if len(numbers) == 1:
            alone.setdefault(next(iter(numbers)), []).extend(measured[test].shares)
    return {number: sum(shares) / len(shares) for number, shares in alone.items() if _below(shares, noise)}


def _below(shares: typing.Sequence[float], noise: float) -> bool:
    """Slow at least twice, and not by chance. The lowest reading is left out: it may be what called for the others."""
    rest = sorted(shares)[1:]
    if not rest:
        return False
    share = sum(rest) / len(rest)
    return share < SLOW and sum(shares) / len(shares) < SLOW and 1 - share >= ACCUSE * noise / len(rest) ** 0.5


def _switches(
    ways: Ways, measured: typing.Mapping[Test, Measured], left: typing.Mapping[Test, typing.AbstractSet[int]], noise: float
) -> typing.Tuple[typing.Tuple[str, ...], typing.Tuple[Test, ...]]:
    """Switches that are slow as a whole: no way through them is anything else, over enough of their links. The one that explains most comes first, and
    another is sought among what is left; two that explain the same are not told apart. With the tests that alone speak for a switch, once.
    """
    everything: typing.Dict[str, typing.List[Measured]] = {}
    for item in measured.values():
        for guid in {ways.directions[number].source for number in item.way} & ways.switches:
            everything.setdefault(guid, []).append(item)
    whole: typing.Dict[str, typing.Set[Test]] = {}
    again: typing.List[Test] = []
    for guid, items in everything.items():
        mine = {item.test for item in items if item.test in left}
        slow = sum(item.slow for item in items)
        shares = [share for item in items for share in item.shares]
        if len(mine) < _SWITCH_NEIGHBOURS or slow < _MOSTLY * len(items) or not _below(shares, noise):
            continue
        for_it = [item.test for item in items if not item.slow]
        if not for_it:
            whole[guid] = mine
        elif all(len(measured[test].shares) < _ENOUGH for test in for_it):
            again += for_it
    whole = {guid: tests for guid, tests in whole.items() if _wide(ways, measured, guid, tests)}
    result: typing.List[str] = []
    while whole:
        most = max(map(len, whole.values()))
        best = sorted(guid for guid, tests in whole.items() if len(tests) == most)
        chosen = [guid for guid in best if not any(other != guid and whole[other] == whole[guid] for other in best)]
        explained = whole[chosen[0]] if chosen else set().union(*(whole[guid] for guid in best))
        result += chosen[:1]
        whole = {guid: tests - explained for guid, tests in whole.items()}
        whole = {guid: tests for guid, tests in whole.items() if _wide(ways, measured, guid, tests)}
    return tuple(result), tuple(again)


def _wide(ways: Ways, measured: typing.Mapping[Test, Measured], guid: str, tests: typing.AbstractSet[Test]) -> bool:
    """Whether ways go over enough of the links of a switch to say something of all of it."""
    ends = [(ways.directions[number].source, ways.directions[number].target) for test in tests for number in measured[test].way]
    its = {pair for pair in ends if guid in pair}
    # a cable that all of them take explains them as well as the switch does
    cables = [{frozenset((ways.directions[number].source, ways.directions[number].target)) for number in measured[test].way} for test in tests]
    if not cables or set.intersection(*cables):
        return False
    return len(its) >= _SWITCH_LINKS and len({end for pair in its for end in pair}) > _SWITCH_NEIGHBOURS
