# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tests are made once more with the counters of the ports on their way read before and after: where the figures
alone name no link."""

from __future__ import annotations

import typing

from .link_coverage_rounds import Test
from .localization import Evidence
from .paths import PathTable

#: tests of a fabric, one after the other; where more answers stop at several links, the slowest are looked at
MOST_TESTS = 6
#: tests between leaves that show how the switches route, of which one may have taken one uplink by chance
PROBES = 2

#: GUID of the switch, or of the port of an HCA, and number of the port
Port = tuple[str, int]


def choose_tests_to_count(ways: PathTable, evidence: Evidence) -> tuple[Test, ...]:
    """Return the slowest test of each answer that stops at a pair of leaves, at links that can't be told apart, or at a
    pair of ends; the slowest answers first."""
    groups = [frozenset((number,)) for number in evidence.slow if ways.directions[number].between]
    found = set(evidence.pairs)
    for numbers in (*groups, *evidence.sets):
        tests = [item for item in evidence.measured.values() if item.slow and numbers <= set(item.way)]
        if tests:
            found.add(min(tests, key=lambda item: (item.share, item.test)).test)
    return tuple(sorted(found, key=lambda test: (evidence.measured[test].share, test)))[:MOST_TESTS]


def list_probes(ways: PathTable, evidence: Evidence, taken: typing.Sequence[Test]) -> tuple[Test, ...]:
    """Tests between leaves over good ways, each from another leaf, that show how the switches route.

    :param taken: tests that are made with counters already
    """
    leaves = {ways.leaf(source) for source, target in taken if ways.leaf(source) != ways.leaf(target)}
    found: list[Test] = []
    for item in evidence.measured.values():
        near, far = (ways.leaf(end) for end in item.test)
        if len(leaves) >= PROBES:
            break
        if item.good and near != far and near not in leaves and item.test not in taken:
            found.append(item.test)
            leaves.add(near)
    return tuple(found)


def list_uplinks(ways: PathTable, leaf: str) -> tuple[int, ...]:
    """Return the directions from a leaf to other switches."""
    return tuple(
        number
        for number, it in enumerate(ways.directions[: ways.real])
        if it.source == leaf and it.target in ways.switches
    )


def list_ports(ways: PathTable, test: Test) -> tuple[Port, ...]:
    """Both ports of each link on the way of a test, as far as it is known, and of the uplinks of both leaves: which of
    them are taken is seen then."""
    leaves = [ways.leaf(end) for end in test]
    numbers = [number for number in ways.way(*test) or () if not ways.directions[number].between]
    if leaves[0] != leaves[1]:
        numbers += [number for leaf in leaves if leaf is not None for number in list_uplinks(ways, leaf)]
    ends = (
        ((it.source, it.source_port), (it.target, it.target_port))
        for it in (ways.directions[number] for number in numbers)
    )
    return tuple(dict.fromkeys(port for pair in ends for port in pair))
