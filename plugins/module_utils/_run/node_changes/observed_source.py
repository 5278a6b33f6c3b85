# SPDX-License-Identifier: GPL-3.0-or-later

"""A source of node settings that returns observations from before the roll. The settings were written on the node for
its next boot, and only the next observation shows their effect.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.node_roll import NodeDifferences


class ObservedSource:
    """A source of node settings that always returns the same observations from before the roll.

    :param seen: observed differences, by node
    :param of_pools: whether the source also applies to nodes of MachineConfigPools
    """

    live = False

    def __init__(self, seen: typing.Mapping[str, NodeDifferences], of_pools: bool = True) -> None:
        self._seen, self.of_pools = dict(seen), of_pools

    def __bool__(self) -> bool:
        return bool(self._seen)

    def look(self, nodes: typing.Iterable[str]) -> dict[str, NodeDifferences]:
        """Return the differences as they were observed before the roll, by node. Nodes without an observation are left
        out.

        :param nodes: names of the nodes
        """
        return {node: self._seen[node] for node in nodes if node in self._seen}

    def set(self, node: str) -> str:
        """Return an empty text and change nothing, because the values were set on the node itself before the roll.

        :param node: name of the node
        """
        return ""
