# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the tests to repeat with port counters read before and after. This is done where the bandwidth alone
identifies no single link.
"""

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
    """Return the slowest test for each conclusion that names no single link: a pair of leaves, links that cannot be
    distinguished, or a pair of ends. The slowest tests come first, and there are at most MOST_TESTS.

    :param ways: paths between the ports
    :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
    """
    groups = [frozenset((number,)) for number in evidence.slow if ways.directions[number].between]
    found = set(evidence.pairs)
    for numbers in (*groups, *evidence.sets):
        tests = [item for item in evidence.measured.values() if item.slow and numbers <= set(item.way)]
        if tests:
            found.add(min(tests, key=lambda item: (item.share, item.test)).test)
    return tuple(sorted(found, key=lambda test: (evidence.measured[test].share, test)))[:MOST_TESTS]


def list_probes(ways: PathTable, evidence: Evidence, taken: typing.Sequence[Test]) -> tuple[Test, ...]:
    """Return tests between leaves over good paths, each from another leaf, until two leaves in total are covered by
    them and by ``taken``. Their counters show whether the switches spread the packets of a flow over several links.

    :param ways: paths between the ports
    :param evidence: conclusions from all readings: slow links, good links, and the remaining suspects
    :param taken: tests that are repeated with counters already
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
    """Return the link directions from a leaf to other switches, as indices in ``PathTable.directions``.

    :param ways: paths between the ports
    :param leaf: GUID of the leaf
    """
    return tuple(
        number
        for number, it in enumerate(ways.directions[: ways.real])
        if it.source == leaf and it.target in ways.switches
    )


def list_ports(ways: PathTable, test: Test) -> tuple[Port, ...]:
    """Return both ports of each known link on the path of a test. For a test between leaves, add the ports of the
    uplinks of both leaves, so that the counters show the uplinks that it takes.

    :param ways: paths between the ports
    :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
    """
    leaves = [ways.leaf(end) for end in test]
    numbers = [number for number in ways.way(*test) or () if not ways.directions[number].between]
    if leaves[0] != leaves[1]:
        numbers += [number for leaf in leaves if leaf is not None for number in list_uplinks(ways, leaf)]
    ends = (
        ((it.source, it.source_port), (it.target, it.target_port))
        for it in (ways.directions[number] for number in numbers)
    )
    return tuple(dict.fromkeys(port for pair in ends for port in pair))
