# SPDX-License-Identifier: GPL-3.0-or-later

"""Pair the leaves of a fabric whose links between leaves are unknown: those that the other rounds leave out, and on
Ethernet each leaf with each other leaf. A leaf, or a pair of leaves, without a path has no other sign there.
"""

from __future__ import annotations

import collections
import itertools
import typing

from .paths import PathTable
from .rounds import iterate_rounds

#: flows from a leaf to another one, where each takes one of the links between them by a hash, at most
MOST_FLOWS = 64
#: partners of an end that are looked at
_LOOKS = 64
#: ends of each leaf of a rail
Leaves = typing.Sequence[typing.Sequence[int]]
#: two ends
Pair = tuple[int, int]
#: rail, and the GUIDs of two leaves in order
LeafPair = tuple[int, str, str]


def pair_lonely_leaves(ways: PathTable, groups: typing.Sequence[Leaves], pairs: typing.Iterable[Pair]) -> list[Pair]:
    """Return pairs of the ends of those leaves that no pair leaves, such as the last one of an odd number of leaves,
    with ends of other leaves of the same rail. The result is empty if the links between the leaves are known: rounds
    for uncovered links then use each of them.

    :param ways: paths between the ports
    :param groups: ends of each leaf, for each rail
    :param pairs: pairs of ends that are measured
    """
    if not ways.spread:
        return []
    met = {end for one, other in pairs if ways.leaf(one) != ways.leaf(other) for end in (one, other)}
    result: list[Pair] = []
    for leaves in groups:
        for place, leaf in enumerate(leaves):
            if met.intersection(leaf):
                continue
            others = [end for other in (*leaves[:place], *leaves[place + 1 :]) for end in other]
            for end in leaf:
                partner = next((one for one in others[:_LOOKS] if may_both(ways, end, one)), None)
                if partner is not None:
                    others.remove(partner)
                    result.append((end, partner))
                    met.update((end, partner))
    return result


def pair_each_leaf(ways: PathTable, groups: typing.Sequence[Leaves], tests: typing.Iterable[Pair]) -> list[list[Pair]]:
    """Return steps of pairs of ends, for those pairs of leaves between which no test runs: one end of each leaf, which
    take turns. In a step, an end of each leaf and rail occurs at most once. If there are more than ``MOST_FLOWS``
    turns, some pairs of leaves are left out. Ports whose leaf is unknown are left out as well.

    :param ways: paths between the ports
    :param groups: ends of each leaf, for each rail
    :param tests: tests of earlier rounds
    """
    crossed = {_of_rail(ways.ends[one].rail, ways.leaf(one) or "", ways.leaf(other) or "") for one, other in tests}
    known = [[leaf for leaf in leaves if not _is_unheard(ways, leaf[0])] for leaves in groups]
    # of the rails on one leaf, one after the other has its turn
    rails = collections.Counter(ways.leaf(leaf[0]) for leaves in known for leaf in leaves)
    most = max(1, MOST_FLOWS // max(rails.values(), default=1))
    steps: list[list[Pair]] = []
    for together in itertools.zip_longest(*(iterate_rounds(leaves, most) for leaves in known), fillvalue=()):
        number = len(steps)
        pairs = [(near[number % len(near)], far[number % len(far)]) for pairs in together for near, far in pairs]
        steps.append(
            [
                (one, other)
                for one, other in pairs
                if _of_rail(ways.ends[one].rail, ways.leaf(one) or "", ways.leaf(other) or "") not in crossed
                and may_both(ways, one, other)
            ]
        )
    return steps


def may_both(ways: PathTable, one: int, other: int) -> bool:
    """Return whether two ends may be measured with each other in both directions, and both paths are known."""
    return all(ways.may(*test) and ways.way(*test) is not None for test in ((one, other), (other, one)))


def _is_unheard(ways: PathTable, end: int) -> bool:
    cable = ways.cables.get(ways.ends[end].guid)
    return cable is not None and bool(cable.unheard)


def find_uncrossed_leaves(ways: PathTable, tests: typing.Iterable[Pair]) -> tuple[tuple[LeafPair, ...], int]:
    """Return the pairs of leaves between which no test ran, and the number of all pairs of leaves that have ports of
    the same rail. Ports whose leaf is unknown are left out.

    :param ways: paths between the ports
    :param tests: sending and receiving end of each test
    """
    leaves: dict[int, dict[str, None]] = {}
    for leaf, ends in ways.leaves.items():
        for end in ends:
            if not _is_unheard(ways, end):
                leaves.setdefault(ways.ends[end].rail, {})[leaf] = None
    every = {_of_rail(rail, *pair) for rail, names in leaves.items() for pair in itertools.combinations(names, 2)}
    crossed = {
        _of_rail(ways.ends[one].rail, ways.leaf(one) or "", ways.leaf(other) or "")
        for one, other in tests
        if ways.ends[one].rail == ways.ends[other].rail
    }
    return tuple(sorted(every - crossed)), len(every)


def _of_rail(rail: int, one: str, other: str) -> LeafPair:
    return rail, min(one, other), max(one, other)
