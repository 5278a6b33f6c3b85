# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes have another MTU than the others, where the intent does not say which one is meant."""

from __future__ import annotations

import collections
import typing


def find_usual_mtus(nodes: typing.Mapping[str, typing.AbstractSet[int]]) -> typing.Optional[frozenset[int]]:
    """Return the MTUs that most nodes have; of several that are as frequent the largest. None where no node shows any.

    :param nodes: MTUs of the interfaces of each node, in bytes
    """
    counts = collections.Counter(frozenset(mtus) for mtus in nodes.values() if mtus)
    return max(counts, key=lambda mtus: (counts[mtus], max(mtus)), default=None)


def list_other_nodes(nodes: typing.Mapping[str, typing.AbstractSet[int]]) -> dict[str, frozenset[int]]:
    """Return the nodes of which no interface has an MTU that the interfaces of most nodes have, each with its own. A
    node that shows none is left out.

    :param nodes: MTUs of the interfaces of each node, in bytes
    """
    usual = find_usual_mtus(nodes)
    return {name: frozenset(mtus) for name, mtus in nodes.items() if mtus and usual and usual.isdisjoint(mtus)}
