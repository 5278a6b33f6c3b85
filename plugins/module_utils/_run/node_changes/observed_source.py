# SPDX-License-Identifier: GPL-3.0-or-later

"""A source of a roll that consists of earlier observations of the nodes. Its settings were written for the next boot
before the roll, and only the next observation shows their effect.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.node_roll import NodeDifferences


class ObservedSource:
    """A source that returns earlier observations and never newer ones.

    :param seen: differences by node
    :param of_pools: see ``Source`` of node_sources.py
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
        """Return an empty text. The values were set on the node itself before the roll."""
        return ""
