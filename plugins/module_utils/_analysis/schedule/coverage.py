# SPDX-License-Identifier: GPL-3.0-or-later

"""Which links tests used, of those that the ends of a fabric can use at all."""

from __future__ import annotations

import dataclasses
import typing

from .link_coverage_rounds import Test
from .paths import PathTable


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Numbers of directions, of real links alone.

    :ivar covered: on the way of a test
    :ivar missing: not so, though there is a pair of ends whose way they are on
    :ivar unused: on no way from one end to another
    """

    covered: frozenset[int]
    missing: tuple[int, ...]
    unused: tuple[int, ...]

    @property
    def usable(self) -> int:
        return len(self.covered) + len(self.missing)


def compute_coverage(ways: PathTable, tests: typing.Iterable[Test]) -> Coverage:
    """Return the links that these tests use."""
    covered = {number for test in tests for number in ways.way(*test) or () if number < ways.real}
    missing, unused = [], []
    for number, direction in enumerate(ways.directions[: ways.real]):
        if number in covered:
            continue
        between_switches = direction.source in ways.switches and direction.target in ways.switches
        # where switches choose, it is on no way that is known
        if not (between_switches and ways.spread) and any(_list_uses(ways, test, number) for test in ways.over(number)):
            missing.append(number)
        else:
            unused.append(number)
    return Coverage(frozenset(covered), tuple(missing), tuple(unused))


def _list_uses(ways: PathTable, test: Test, number: int) -> bool:
    return ways.may(*test) and number in (ways.way(*test) or ())
