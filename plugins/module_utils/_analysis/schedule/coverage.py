# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute which links the tests used, among all links on paths between the HCAs of a fabric."""

from __future__ import annotations

import dataclasses
import typing

from .link_coverage_rounds import Test
from .paths import PathTable


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The link directions that the tests used and did not use, as indices in ``PathTable.directions``. Placeholders for
    unknown links are left out.

    :ivar covered: directions on the path of at least one test
    :ivar missing: directions that no test used, although they are on the path between two HCA ports
    :ivar unused: directions that are on no path between two HCA ports
    """

    covered: frozenset[int]
    missing: tuple[int, ...]
    unused: tuple[int, ...]

    @property
    def usable(self) -> int:
        """Return the number of link directions on the paths between HCA ports, used or not."""
        return len(self.covered) + len(self.missing)


def compute_coverage(ways: PathTable, tests: typing.Iterable[Test]) -> Coverage:
    """Return the link directions that tests used, and those that they did not use.

    :param ways: paths between the ports
    :param tests: indices in ``PathTable.ends`` of the sending and the receiving HCA port of each test
    """
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
