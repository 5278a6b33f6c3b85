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
