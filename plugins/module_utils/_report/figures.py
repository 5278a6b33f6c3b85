# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Figures of the report: numbers that are better seen than read."""

from __future__ import annotations

import dataclasses
import math
import re
import typing

from .._model.findings import PASS, Judged


@dataclasses.dataclass(frozen=True)
class Bar:
    """One measured value; ``floor`` in the same unit, None where there is none."""

    name: str
    value: float
    floor: typing.Optional[float]
    good: bool


@dataclasses.dataclass(frozen=True)
class Figure:
    """Bars of one unit."""

    title: str
    what: str
    unit: str
    bars: typing.Tuple[Bar, ...]


# a finding's own words: '373.64 Gb/s', 'at least 368 Gb/s'. Only the first number is taken
_RATE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e-?\d+)?) Gb/s")


def figures(stage: str, facts: typing.Any, judged: typing.Sequence[Judged]) -> typing.Tuple[Figure, ...]:
    """The figures of a stage. They are made from its findings, so they can't say anything else than its table."""
    if stage != "bandwidth":
        return ()
    bars = []
    for item in judged:
        if item.finding.check != "bandwidth.floor":
            continue
        value, floor = _rate(item.finding.measured), _rate(item.finding.expected)
        if value is not None and floor is not None:
            bars.append(Bar(item.finding.subject, value, floor, item.finding.status == PASS))
    return (Figure("Measured average against the floor", "Pair", "Gb/s", tuple(bars)),) if bars else ()


def _rate(text: str) -> typing.Optional[float]:
    match = _RATE.search(text)
    if match is None:
        return None
    value = float(match.group(1))
    return value if math.isfinite(value) else None
