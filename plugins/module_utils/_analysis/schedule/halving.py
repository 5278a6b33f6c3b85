# SPDX-License-Identifier: GPL-3.0-or-later

"""Which port, node, leaf, uplink or rail makes a collective slow: a slow group is halved until what is left can be
named, on all rails at the same time.

How each rail is searched is in rail_search.py; here their rounds and their results are put together, and the tests are
counted beforehand.
"""

from __future__ import annotations

import dataclasses
import typing

from .rail_search import MEETINGS, OF_LEAF, OF_RAIL, PAIRS, TWICE, RailSearch, RailTrial

__all__ = ("Halving", "Named", "RailTrial", "count_most_tests")


@dataclasses.dataclass(frozen=True)
class Named:
    """The component that is slow.

    :ivar nodes: on each of several rails
    :ivar ports: node and rail
    :ivar leaves: leaf and rail: between any two nodes of it
    :ivar uplinks: leaf and rail: fast within, slow to others
    :ivar rails: between any two nodes
    :ivar silent: ports of those that gave no figure, rather than a slow one
    :ivar undecided: rail, and nodes of which no more can be told: there is nobody to test them with, or tests
        contradict each other
    """

    nodes: tuple[str, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()
    leaves: tuple[tuple[str, int], ...] = ()
    uplinks: tuple[tuple[str, int], ...] = ()
    rails: tuple[int, ...] = ()
    silent: tuple[tuple[str, int], ...] = ()
    undecided: tuple[tuple[int, tuple[str, ...]], ...] = ()


def count_most_tests(nodes: int, leaves: int, rails: int, faults: int) -> int:
    """Count the tests that are made at most, before any of them has run.

    One a rail. For each fault two a halving, as many again as confirm it or look between leaves, and one of the rail
    without it. Where nobody is fast, pairs.

    :param faults: slow ports, leaves and uplinks of a rail, and slow rails; of a slow node each of its rails
    """
    halvings = max(0, nodes - 1).bit_length() + 1
    pairs = PAIRS + 2 * OF_LEAF + 2 * OF_RAIL
    return rails + faults * (2 * halvings + 4 * TWICE + pairs + 1) + min(faults, rails) * MEETINGS * (leaves // 2)


class Halving:
    """Gives the tests of a round and takes their results, in turn, until there are no more: all rails at the same
    time."""

    def __init__(
        self,
        leaves: typing.Mapping[str, typing.Sequence[str]],
        rails: typing.Sequence[int],
        group: typing.Optional[typing.Sequence[str]] = None,
        fast: typing.Optional[typing.Mapping[int, typing.Iterable[str]]] = None,
    ) -> None:
        """:param leaves: all nodes by leaf; in a fabric optimised for rails by the set of the leaves that they are on
        :param rails: that are looked at
        :param group: that is slow; None: all
        :param fast: by rail, nodes that are known to be fast
        :raises ValueError: fewer than two nodes, a node at two leaves, or no rail
        """
        leaf_of = {node: leaf for leaf, nodes in leaves.items() for node in nodes}
        members = list(leaf_of) if group is None else list(dict.fromkeys(group))
        if (
            len(members) < 2
            or len(leaf_of) != sum(map(len, leaves.values()))
            or not rails
            or not leaf_of.keys() >= set(members)
        ):
            raise ValueError("halving needs two nodes at least, each of one leaf, and a rail")
        self._members = members
        self._searches = [RailSearch(rail, leaf_of, members, (fast or {}).get(rail, ())) for rail in rails]

    def next(self) -> tuple[RailTrial, ...]:
        """Return the tests of the next round, which run at the same time: no port of a node is in two of them. None:
        all is told."""
        return tuple(trial for search in self._searches for trial in search.next())

    def take(self, results: typing.Mapping[RailTrial, typing.Optional[bool]]) -> None:
        """Take what a round told: whether a test was as fast as it must be; None, or left out, where it gave no
        figure."""
        for search in self._searches:
            search.take(results)

    def named(self) -> Named:
        """Return what is known to be slow by now."""
        hurt = [search for search in self._searches if not search.whole]
        everywhere = [node for node in self._members if len(hurt) > 1 and all(node in search.ports for search in hurt)]
        ports = [(node, search.rail) for search in hurt for node in search.ports if node not in everywhere]
        return Named(
            tuple(everywhere),
            tuple(sorted(ports)),
            tuple(sorted((leaf, search.rail) for search in hurt for leaf in search.leaves)),
            tuple(sorted((leaf, search.rail) for search in hurt for leaf in search.uplinks)),
            tuple(search.rail for search in self._searches if search.whole),
            tuple(sorted((node, search.rail) for search in hurt for node, silent in search.ports.items() if silent)),
            tuple((search.rail, nodes) for search in hurt for nodes in search.undecided),
        )
