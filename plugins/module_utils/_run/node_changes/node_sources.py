# SPDX-License-Identifier: GPL-3.0-or-later

"""What may differ on nodes and is set before their reset: all of it together, as a roll sees it."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.node_roll import Mark, NodeDifference, NodeDifferences


class Source(typing.Protocol):
    """Something that may differ on nodes and is set before a reset.

    :ivar live: a look shows the node as it is now. Otherwise it shows what was seen before the roll, and nothing of
        what came of a reset
    :ivar of_pools: it is asked of the nodes of MachineConfigPools as well, which have it by a MachineConfig otherwise
    """

    live: bool
    of_pools: bool

    def look(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, NodeDifferences]:
        """Return the present differences; without the nodes that the source does not know."""

    def set(self, node: str) -> str:
        """Set what differs; what was done in words. Again it does nothing.

        :raises RdmaError: nothing was set
        """


class Sources:
    """All of them.

    :ivar unproven: nodes of which only a look by others shows what came of a reset
    """

    def __init__(self, sources: typing.Iterable[Source]) -> None:
        self._sources = tuple(sources)
        self._pooled: typing.Container[str] = ()
        self._ridden: typing.Mapping[str, Mark] = {}
        self.unproven: set[str] = set()

    def know(self, pooled: typing.Container[str], ridden: typing.Mapping[str, Mark]) -> None:
        """Take what was read of the cluster.

        :param pooled: nodes of MachineConfigPools
        :param ridden: what was noted at nodes that their MachineConfigPool has rebooted since
        """
        self._pooled, self._ridden = pooled, ridden

    def look(self, nodes: typing.Iterable[str], live_only: bool = False) -> dict[str, NodeDifferences]:
        """Return the present differences, in the order of the nodes; without those that no source knows."""
        named, found = tuple(nodes), typing.cast(dict[str, NodeDifferences], {})
        for source in (source for source in self._sources if source.live or not live_only):
            for node, shown in source.look(
                [node for node in named if source.of_pools or node not in self._pooled or node in self._ridden]
            ).items():
                seen = shown if source.of_pools or node not in self._pooled else _of_ridden(shown, self._ridden[node])
                found[node] = found.get(node, NodeDifferences()) + seen
                if not source.live and (seen.differences or seen.error or seen.blind):
                    self.unproven.add(node)
        return {node: found[node] for node in named if node in found}

    def set(self, name: str) -> list[str]:
        """Set what differs, at each source; what was done in words.

        :raises RdmaError: not all was set
        """
        return [done for source in self._sources for done in [source.set(name)] if done]

    def hidden(self, name: str) -> tuple[NodeDifference, ...]:
        """Return the differences that a MachineConfig sets, so that only the node itself shows that they are in
        force."""
        found = [source.look([name]).get(name, NodeDifferences()) for source in self._sources if not source.of_pools]
        if any(seen.differences or seen.error for seen in found):
            self.unproven.add(name)
        return tuple(one for seen in found for one in seen.differences)


def _of_ridden(seen: NodeDifferences, noted: Mark) -> NodeDifferences:
    """Of what its MachineConfig sets: what it was rebooted for. What else differs is a matter of the next roll of its
    pool."""
    return dataclasses.replace(
        seen, differences=tuple(one for one in seen.differences if one.identity in noted.differences), refusals=()
    )
