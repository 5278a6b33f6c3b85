# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the marks of nodes, the annotations in which a roll stores its progress, and their cordons."""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.marks import MANAGER
from ...._model.kubernetes.node_roll import Mark
from ...._model.kubernetes.objects import ClusterNode
from ...._observe.kubernetes.client import Cluster as Api
from ...._parse.kubernetes import core
from ...._parse.kubernetes.roll_mark import parse_mark
from ...._plan.rolls.roll_cluster import CORDONED, UNCORDON
from ...._render.node.roll_mark import mark_node
from ..drain import NotDrained
from .roll_limits import RollInterrupt


class NodeMarks:
    """A client that reads and writes the marks and cordons of nodes.

    :param cluster: client of the API server
    :param going: flag that shows an interruption of the roll
    """

    def __init__(self, cluster: Api, going: RollInterrupt) -> None:
        self._cluster, self._going = cluster, going
        #: what this run has noted at nodes
        self._noted: dict[str, Mark] = {}

    def node(self, name: str) -> tuple[ClusterNode, typing.Optional[Mark]]:
        """Return the current state of a node, and the mark that a roll has set on it (None without a mark).

        :param name: name of the node
        :raises ParseError: the mark is invalid
        :raises ApiError: the node cannot be read
        """
        resource = self._cluster.get("Node", "", name)
        return core.parse_node(resource), parse_mark(resource)

    def boot_id(self, name: str) -> str:
        """Return the boot id of a node. Unlike ``node``, this does not fail if the mark of the node is invalid.

        :param name: name of the node
        :raises ApiError: the node cannot be read
        """
        return core.parse_node(self._cluster.get("Node", "", name)).boot_id

    def mark(
        self,
        name: str,
        noted: typing.Optional[Mark],
        unschedulable: typing.Optional[bool] = None,
        release: typing.Optional[Mark] = None,
        over: bool = False,
    ) -> None:
        """Set or remove the mark of a node, and cordon or uncordon the node in the same request.

        :param name: name of the node
        :param noted: mark to set; None to remove the mark
        :param unschedulable: True to cordon, False to uncordon; None for no change
        :param release: earlier mark of the node; the cluster-autoscaler may then delete the node again, if it could
            before that mark. None: no change
        :param over: whether the roll has released the node, so that the mark is only a record for the next run
        """
        self._going.check()
        if noted is not None:
            self._noted[name] = noted
        self._cluster.patch("Node", "", name, mark_node(noted, unschedulable, release, over), MANAGER)

    def cordon_node(self, name: str, mine: Mark, did: list[str]) -> Mark:
        """Cordon a node unless this roll has cordoned it already. Return its mark, which records the cordon.

        :param name: name of the node
        :param mine: mark of the node
        :param did: list to which the action is appended as text
        :raises NotDrained: another client has cordoned the node
        """
        node, noted = self.node(name)
        if node.unschedulable:
            return self.require_own_cordon(name, mine, noted)
        mine = dataclasses.replace(mine, cordoned=True)
        self.mark(name, mine, True)
        did.append("cordoned")
        return mine

    def require_own_cordon(self, name: str, mine: Mark, noted: typing.Optional[Mark]) -> Mark:
        """Verify that this roll has cordoned a cordoned node, and return its mark. An admin, kured or Cluster API may
        have cordoned it since the turn of the node began.

        :param name: name of the node
        :param mine: mark of the node
        :param noted: mark of the node as it was read with its cordon; None if it has none
        :raises NotDrained: another client has cordoned the node, which stays cordoned
        """
        if mine.cordoned and (noted is None or noted.cordoned):
            return mine
        self._noted[name] = dataclasses.replace(mine, cordoned=False)
        raise NotDrained(CORDONED, UNCORDON.format(node=name))

    def undo(self, name: str, mine: Mark, did: list[str]) -> None:
        """Remove the mark of a node that was not reset. If this roll cordoned the node, also uncordon it.

        :param name: name of the node
        :param mine: mark of the node, used if this run has not marked the node itself
        :param did: list to which the actions are appended as text
        """
        mine = self._noted.get(name, mine)
        self.mark(name, None, False if mine.cordoned else None, mine)
        did += ["uncordoned"] if mine.cordoned else []

    def record_reset(self, name: str, mine: Mark) -> Mark:
        """Record the reset in the mark of a node, and return the changed mark. Call this before the reset is ordered:
        if the run is killed between the two, the next run finds the same boot id and concludes that no reset took
        place.

        :param name: name of the node
        :param mine: mark of the node
        """
        mine = dataclasses.replace(mine, reset=True)
        self.mark(name, mine)
        return mine
