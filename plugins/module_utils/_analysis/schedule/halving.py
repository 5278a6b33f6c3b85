# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the port, node, leaf, uplink or rail that makes a collective slow. A slow group is halved, on all rails at the
same time, until the slow port, node, leaf, uplink or rail is found.

rail_search.py searches each rail. This module combines the rounds and the results of the rails, and counts the tests in
advance.
"""

from __future__ import annotations

import dataclasses
import typing

from .rail_search import MEETINGS, OF_LEAF, OF_RAIL, PAIRS, TWICE, RailSearch
from .rail_trials import RailTrial

__all__ = ("Halving", "Named", "RailTrial", "count_most_tests")


@dataclasses.dataclass(frozen=True)
class Named:
    """The nodes, ports, leaves, uplinks and rails that were found to be slow.

    :ivar nodes: nodes that are slow on each of several rails
    :ivar ports: node and rail
    :ivar leaves: leaf and rail; slow between any two nodes of the leaf
    :ivar uplinks: leaf and rail; fast inside of the leaf, slow to other leaves
    :ivar rails: rails that are slow between any two nodes
    :ivar silent: slow ports that gave no figure instead of a slow one, including ports of ``nodes``, as node and rail
    :ivar undecided: rail and nodes for which the cause remains unknown, because no node can be tested with them or
        tests contradict each other
    """

    nodes: tuple[str, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()
    leaves: tuple[tuple[str, int], ...] = ()
    uplinks: tuple[tuple[str, int], ...] = ()
    rails: tuple[int, ...] = ()
    silent: tuple[tuple[str, int], ...] = ()
    undecided: tuple[tuple[int, tuple[str, ...]], ...] = ()


def count_most_tests(nodes: int, leaves: int, rails: int, faults: int) -> int:
    """Return the maximum number of tests of a search, computed before any of them runs.

    Each rail needs one test. Each fault adds two tests for each halving, the tests that confirm it or search between
    leaves, one test of the rail without it, and the pairs that are tried if no node is known to be fast. Tests that
    pair leaves with each other are added for one fault of each rail.

    :param nodes: number of nodes
    :param leaves: number of leaves
    :param rails: number of rails
    :param faults: number of slow ports, leaves and uplinks on all rails, and of slow rails. A slow node counts once for
        each of its rails
    """
    halvings = max(0, nodes - 1).bit_length() + 1
    pairs = PAIRS + 2 * OF_LEAF + 2 * OF_RAIL
    return rails + faults * (2 * halvings + 4 * TWICE + pairs + 1) + min(faults, rails) * MEETINGS * (leaves // 2)


class Halving:
    """The search for slow ports, leaves and uplinks on all rails at the same time. ``next`` returns the tests of each
    round and ``take`` evaluates their results, until no test is left.
    """

    def __init__(
        self,
        leaves: typing.Mapping[str, typing.Sequence[str]],
        rails: typing.Sequence[int],
        group: typing.Optional[typing.Sequence[str]] = None,
        fast: typing.Optional[typing.Mapping[int, typing.Iterable[str]]] = None,
    ) -> None:
        """Begin a search for slow nodes on each rail.

        :param leaves: all nodes by leaf; in a rail-optimized fabric by the set of the leaves to which they are
            connected
        :param rails: rails that are searched
        :param group: names of the nodes of the slow group; None for all nodes
        :param fast: names of nodes that are known to be fast, by rail
        :raises ValueError: there are fewer than two nodes, a node has two leaves or none, or there is no rail
        """
        leaf_of = {node: leaf for leaf, nodes in leaves.items() for node in nodes}
        members = list(leaf_of) if group is None else list(dict.fromkeys(group))
        if (
            len(members) < 2
            or len(leaf_of) != sum(map(len, leaves.values()))
            or not rails
            or not leaf_of.keys() >= set(members)
        ):
            raise ValueError("halving needs at least two nodes, each on one leaf, and at least one rail")
        self._members = members
        self._searches = [RailSearch(rail, leaf_of, members, (fast or {}).get(rail, ())) for rail in rails]

    def next(self) -> tuple[RailTrial, ...]:
        """Return the tests of the next round, which run at the same time. No port of a node is in two of them. The
        result is empty if the search is done.
        """
        return tuple(trial for search in self._searches for trial in search.next())

    def take(self, results: typing.Mapping[RailTrial, typing.Optional[bool]]) -> None:
        """Evaluate the results of the tests that ``next`` returned last, and plan the following tests.

        :param results: True if the test was fast enough, False if not; None, or missing, if it gave no figure
        """
        for search in self._searches:
            search.take(results)

    def named(self) -> Named:
        """Return the nodes, ports, leaves, uplinks and rails that are known to be slow so far."""
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
