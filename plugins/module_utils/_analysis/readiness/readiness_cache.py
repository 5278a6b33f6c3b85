# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the same nodes repeatedly, and recompute only the judgments of nodes that changed. In a large cluster most
changes concern one node.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.objects import ClusterNode
from ..controllers.sriov.drains import Turn
from .sriov import judge_node
from .sriov_drain import DrainTurns
from .state import ClusterState, Judgement, Target

#: fields of a ClusterState that have an entry for each node, by its name
OF_NODES = ("nodes", "states", "histories", "pods", "logs", "parts", "daemons")
#: fields that all nodes share. A change makes new ones only of what it is about, but for the last three, which are
#: small
SHARED = ("policies", "attachments", "reports", "pools", "machine_pools", "budgets")
SMALL = ("unread", "blind", "stale")


class ReadinessCache:
    """A cache of the readiness of each node during one wait for the network. A judgment is computed again only if its
    input has changed.
    """

    def __init__(self, targets: typing.Iterable[Target]) -> None:
        self._targets = tuple(targets)
        self._shared: tuple[typing.Any, ...] = ()
        self._known: dict[tuple[int, str], tuple[tuple[typing.Any, ...], Judgement]] = {}

    def judge(self, observed: ClusterState) -> tuple[Judgement, ...]:
        """Return for each fabric and each of its nodes whether the network is ready on the node, and for what the node
        waits otherwise. Judgments whose objects have not changed are reused.

        :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
        """
        shared = (
            *(getattr(observed, name) for name in SHARED),
            *(dict(getattr(observed, name)) for name in SMALL),
            observed.daemons is None,
        )
        if not _is_unchanged(shared, self._shared):
            self._known.clear()
            self._shared = shared
        turns = _Counted(observed)
        of_nodes = [getattr(observed, name) or {} for name in OF_NODES]
        return tuple(
            self._judge_node_cached(number, target, name, observed, turns, of_nodes)
            for number, target in enumerate(self._targets)
            for name in target.nodes
        )

    def _judge_node_cached(
        self,
        number: int,
        target: Target,
        name: str,
        observed: ClusterState,
        turns: _Counted,
        of_nodes: typing.Sequence[typing.Mapping[str, typing.Any]],
    ) -> Judgement:
        """Return the judgment of one node of one fabric. The earlier judgment is returned if no object of the node has
        changed. A judgment that depends on other nodes is not kept.

        :param number: number of the target
        :param name: name of the node
        :param observed: objects of the API server that readiness depends on
        :param turns: turns of the drains, which count how often they were used
        :param of_nodes: objects of each kind, by name of the node
        """
        own = tuple([field.get(name) for field in of_nodes])
        known = self._known.get((number, name))
        # Python looks first whether they are the same objects, as those of most nodes are
        if known is not None and own == known[0]:
            return known[1]
        before = turns.asked
        judgement = judge_node(target, name, observed, turns)
        # a turn, a node that is not there, and a network without virtual functions depend on the other nodes as well
        if turns.asked == before and own[0] is not None and target.functions:
            self._known[number, name] = (own, judgement)
        else:
            self._known.pop((number, name), None)
        return judgement


class _Counted(DrainTurns):
    """The drain limits of the nodes, which counts how often they are requested. By that count the cache knows whether a
    judgment used the limits.
    """

    asked = 0

    def find_turn(self, node: ClusterNode) -> Turn:
        """Return the turn of a node, and count the call: a judgment that needs it depends on other nodes."""
        self.asked += 1
        return super().find_turn(node)


def _is_unchanged(one: typing.Sequence[typing.Any], other: typing.Sequence[typing.Any]) -> bool:
    """Return whether the input that the judgments of all nodes share is the same as before. Large fields must be the
    same objects, and small fields must have equal values.

    :param one: input of the previous judgments
    :param other: present input
    """
    objects = len(SHARED)
    return (
        len(one) == len(other)
        and all(mine is its for mine, its in zip(one[:objects], other[:objects]))
        and one[objects:] == other[objects:]
    )
