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
#: ways of a class from which a median says what is usual
_FEW = 8
#: to make a switch out of its links: this many of them, to this many neighbours
_SWITCH_LINKS, _SWITCH_NEIGHBOURS = 4, 3


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
    :ivar doubtful: tests that were slow once and not looked at again
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
    switches = _switches(ways, measured, left, noise)
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
    )


def _shares(ways: Ways, readings: typing.Iterable[Reading]) -> typing.Tuple[typing.Dict[Test, Measured], float]:
    """The readings by test, as shares of the median of their class, and the noise."""
    figures: typing.Dict[Test, typing.List[float]] = {}
    for reading in readings:
        if ways.way(*reading.test) is not None:
            figures.setdefault(reading.test, []).append(reading.gbps or 0.0)
    classes: typing.Dict[typing.Tuple[float, int], typing.List[float]] = {}
    kinds: typing.Dict[Test, typing.Tuple[float, int]] = {}
    for test, values in figures.items():
        kinds[test] = _kind(ways, test)
        classes.setdefault(kinds[test], []).append(values[0])
    usual = {kind: statistics.median(values) for kind, values in classes.items()}
    for kind, values in classes.items():
        others = [other for other in classes if len(classes[other]) >= _FEW and other[0] and kind[0]]
        if len(values) < _FEW and others:
            # too few to say what is usual: what others of the same distance do, or of another, in proportion to the rate
            _same, _size, near = max((other[1] == kind[1], len(classes[other]), other) for other in others)
            usual[kind] = usual[near] * kind[0] / near[0]
    measured = {}
    for test, values in figures.items():
        way, norm = ways.way(*test), usual[kinds[test]]
        if way is not None and norm > 0:
            measured[test] = Measured(test, way, [value / norm for value in values])
    apart = [abs(item.shares[0] - 1) for item in measured.values()]
    # of a normal distribution, half of the readings are within 0.6745 standard deviations
    noise = max(_LEAST_NOISE, statistics.median(apart) / 0.6745) if apart else _LEAST_NOISE
    return measured, noise


def _kind(ways: Ways, test: Test) -> typing.Tuple[float, int]:
    """Rate of the slower end, 0 where it is not known, and length of the way."""
    way = ways.way(*test) or ()
    rates = [ways.directions[number].gbps for number in (way[0], way[-1])] if way else []
    return min((rate or 0.0 for rate in rates), default=0.0), len(way)


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


def _most(share: float, item: Measured, noise: float) -> float:
    """Below which a way is as slow as the others over the same switch, whose share is given."""
    return max(SLOW, share + CLEAR * noise * share / len(item.shares) ** 0.5) if noise > NOISY else SLOW


def _switches(
    ways: Ways, measured: typing.Mapping[Test, Measured], left: typing.Mapping[Test, typing.AbstractSet[int]], noise: float
) -> typing.Tuple[str, ...]:
    """Switches that are slow as a whole: no way through them is anything else, over enough of their links."""
    through: typing.Dict[str, typing.Set[Test]] = {}
    for test in left:
        for number in measured[test].way:
            for guid in (ways.directions[number].source, ways.directions[number].target):
                if guid in ways.switches:
                    through.setdefault(guid, set()).add(test)
    suspects = {guid for guid, tests in through.items() if len(tests) >= _SWITCH_NEIGHBOURS}
    everything: typing.Dict[str, typing.List[Measured]] = {guid: [] for guid in suspects}
    for item in measured.values():
        for guid in {ways.directions[number].source for number in item.way} & suspects:
            everything[guid].append(item)
    whole = []
    for guid, items in everything.items():
        links = {number for item in items for number in item.way if guid in (ways.directions[number].source, ways.directions[number].target)}
        neighbours = {end for number in links for end in (ways.directions[number].source, ways.directions[number].target)} - {guid}
        if len(links) < _SWITCH_LINKS or len(neighbours) < _SWITCH_NEIGHBOURS:
            continue
        shares = [share for item in items for share in item.shares]
        if _below(shares, noise) and all(item.share < _most(sum(shares) / len(shares), item, noise) for item in items):
            whole.append(guid)
    # one that explains no more than another does is not accused beside it
    result: typing.List[str] = []
    for guid in sorted(whole, key=lambda guid: (-len(through[guid]), guid)):
        rivals = [other for other in whole if other != guid and through[other] >= through[guid]]
        if not rivals and not any(through[guid] <= through[other] for other in result):
            result.append(guid)
    return tuple(result)
