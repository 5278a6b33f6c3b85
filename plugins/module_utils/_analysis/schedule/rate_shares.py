# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the measured rates of paths with the usual rate of their class, and estimate the noise of the measurement.

Readings of good paths scatter, and the more they scatter, the less they prove.
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
#: noise is never taken for less: what is measured varies by more than a few readings show
_LEAST_NOISE = 0.01
#: ways of a class from which a median says what is usual, and their part of the ways between ends of the same rate and
#: distance
_FEW, _PART = 8, 0.25
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


def compute_rate_shares(
    ways: PathTable, readings: typing.Iterable[Reading], floor_share: typing.Optional[float]
) -> tuple[dict[Test, Measured], float, bool]:
    """Return three values: the readings by test, as shares of the usual rate of their class; the standard deviation of
    a reading (noise), as a share; and whether there are enough readings to determine the noise.

    :param ways: paths between the ports
    :param readings: measurements, including repetitions. Those whose path is unknown are left out
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
