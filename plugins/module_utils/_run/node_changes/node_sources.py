# SPDX-License-Identifier: GPL-3.0-or-later

"""The sources of node settings that are set before a reset, each with the current differences from the desired values,
combined for a roll.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.node_roll import Mark, NodeDifference, NodeDifferences


class Source(typing.Protocol):
    """The interface of a source of node settings, such as the BIOS. A source reports the differences from the desired
    values, and sets the values before a reset.

    :ivar live: whether ``look`` reads the node at the time of the call. If False, it returns an observation from before
        the roll, which does not show the effect of a reset
    :ivar of_pools: whether the source also applies to nodes of MachineConfigPools. If False, a MachineConfig sets these
        settings on such nodes
    """

    live: bool
    of_pools: bool

    def look(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, NodeDifferences]:
        """Return the differences from the desired values, by node. Nodes for which the source has no data are left out.

        :param nodes: names of the nodes
        """

    def set(self, node: str) -> str:
        """Set the values that differ, and return the changes as text; empty if there are none. A second call changes
        nothing.

        :param node: name of the node
        :raises RdmaError: nothing was set
        """


class Sources:
    """All sources of node settings of a roll (such as BIOS, kernel arguments and firmware), combined into one.

    :ivar unproven: names of the nodes for which only a later observation can show the effect of the reset
    """

    def __init__(self, sources: typing.Iterable[Source]) -> None:
        self._sources = tuple(sources)
        self._pooled: typing.Container[str] = ()
        self._ridden: typing.Mapping[str, Mark] = {}
        self.unproven: set[str] = set()

    def set_roll_state(self, pooled: typing.Container[str], ridden: typing.Mapping[str, Mark]) -> None:
        """Store the state of the cluster on which the sources depend.

        :param pooled: names of the nodes that are in a MachineConfigPool
        :param ridden: mark of each node that its MachineConfigPool has rebooted after the mark was set, by node
        """
        self._pooled, self._ridden = pooled, ridden

    def look(self, nodes: typing.Iterable[str], live_only: bool = False) -> dict[str, NodeDifferences]:
        """Return the differences of each node from its desired settings, by node in the order of the nodes. Nodes that
        no source knows are left out. A node whose differences come from an observation is added to ``unproven``.

        :param nodes: names of the nodes
        :param live_only: whether to use only sources that read the node at the time of the call
        """
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
        """Set the values that differ, at each source, and return the changes, one text for each source that changed
        something.

        :param name: name of the node
        :raises RdmaError: not all values were set
        """
        return [done for source in self._sources for done in [source.set(name)] if done]

    def hidden(self, name: str) -> tuple[NodeDifference, ...]:
        """Return the differences of a node that a MachineConfig corrects. Only a later observation of the node shows
        whether they are corrected. If there are any, or if they could not be read, the node is therefore added to
        ``unproven``.

        :param name: name of the node
        """
        found = [source.look([name]).get(name, NodeDifferences()) for source in self._sources if not source.of_pools]
        if any(seen.differences or seen.error for seen in found):
            self.unproven.add(name)
        return tuple(one for seen in found for one in seen.differences)


def _of_ridden(seen: NodeDifferences, noted: Mark) -> NodeDifferences:
    """Return only those differences for which the node was rebooted, as its mark lists them. The others belong to the
    next roll of its MachineConfigPool.

    :param seen: differences of the node that a MachineConfig corrects
    :param noted: mark of the node
    """
    return dataclasses.replace(
        seen, differences=tuple(one for one in seen.differences if one.identity in noted.differences), refusals=()
    )
