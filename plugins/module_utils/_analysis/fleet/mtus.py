# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes whose interfaces have another MTU than those of most nodes. It is used if the intent sets no MTU."""

from __future__ import annotations

import collections
import typing


def find_usual_mtus(nodes: typing.Mapping[str, typing.AbstractSet[int]]) -> typing.Optional[frozenset[int]]:
    """Return the set of MTUs that most nodes have. If several sets are equally frequent, return the one with the
    largest MTU. Return None if no node reports an MTU.

    :param nodes: MTUs of the interfaces of each node, in bytes
    """
    counts = collections.Counter(frozenset(mtus) for mtus in nodes.values() if mtus)
    return max(counts, key=lambda mtus: (counts[mtus], max(mtus)), default=None)


def list_other_nodes(
    nodes: typing.Mapping[str, typing.AbstractSet[int]], usual: typing.AbstractSet[int]
) -> dict[str, frozenset[int]]:
    """Return the nodes without an interface that has a usual MTU, each with its own MTUs in bytes. Nodes that report no
    MTU are left out.

    :param nodes: MTUs of the interfaces of each node, in bytes
    :param usual: MTUs that most nodes have, in bytes
    """
    return {name: frozenset(mtus) for name, mtus in nodes.items() if mtus and usual.isdisjoint(mtus)}


#: MTUs of the interfaces of a node in bytes, in ascending order, one for each interface
Mtus = tuple[int, ...]


def find_usual_list(nodes: typing.Mapping[str, Mtus]) -> Mtus:
    """Return the MTUs that most nodes have, in bytes, one for each interface. If several lists are equally frequent,
    return the one with the largest sum. Return an empty tuple if no node reports an MTU.

    :param nodes: MTUs of each node in bytes, one for each interface
    """
    counts = collections.Counter(mtus for mtus in nodes.values() if mtus)
    return max(counts, key=lambda mtus: (counts[mtus], sum(mtus), mtus), default=())


def list_differing_nodes(nodes: typing.Mapping[str, Mtus], usual: Mtus) -> dict[str, Mtus]:
    """Return the nodes with an MTU that the usual list does not contain, or contains less often, each with all of its
    MTUs. A node with fewer interfaces does not differ by that.

    :param nodes: MTUs of each node in bytes, one for each interface
    :param usual: MTUs that most nodes have, in bytes
    """
    rest = {name: collections.Counter(mtus) - collections.Counter(usual) for name, mtus in nodes.items()}
    return {name: mtus for name, mtus in nodes.items() if rest[name]}
