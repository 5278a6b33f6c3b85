# SPDX-License-Identifier: GPL-3.0-or-later

"""What the look at the nodes has shown, for who rolls nodes. It was set for the next boot before, and only the next
look tells what came of it."""

from __future__ import annotations

import typing

from ..._model.kubernetes.node_roll import NodeDifferences


class ObservedSource:
    """A source that knows what was seen, and nothing later.

    :param seen: by node
    :param of_pools: see Source of node_roll
    """

    live = False

    def __init__(self, seen: typing.Mapping[str, NodeDifferences], of_pools: bool = True) -> None:
        self._seen, self.of_pools = dict(seen), of_pools

    def __bool__(self) -> bool:
        return bool(self._seen)

    def look(self, nodes: typing.Iterable[str]) -> dict[str, NodeDifferences]:
        """Return the differences at the time of the observation."""
        return {node: self._seen[node] for node in nodes if node in self._seen}

    def set(self, node: str) -> str:
        """Nothing: it is set on the node itself, before the roll."""
        return ""
