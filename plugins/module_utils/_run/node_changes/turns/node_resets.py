# SPDX-License-Identifier: GPL-3.0-or-later

"""Verifies that a drained node may be reset, and orders the reset at its BMC."""

from __future__ import annotations

import typing

from ...._analysis.controllers.drains.control_plane import explain_why_kept
from ...._analysis.controllers.drains.gate import explain_upgrade
from ...._analysis.controllers.drains.room import RIGHTS
from ...._model.base.phrases import describe_unread_remedy
from ...._model.kubernetes.node_roll import NodeDifferences, NodeStep
from ...._model.kubernetes.objects import ClusterNode
from ...._observe.kubernetes.shell import Clock
from ...._observe.redfish.bmc import BmcError
from ...._plan.rolls.turns import explain_turns, explain_why_not_again
from ..drain import NodeFailed
from ..roll_cluster import RollClusterReader
from .roll_limits import CurrentRoll, RollInterrupt, RollLimits, Say

#: causes after which nobody knows whether a BMC took a reset
_UNKNOWN = ("closed", "timeout", "busy")


class NotReset(NodeFailed):
    """Raised if a drained node is left out of the roll. It was not reset, its cordon must be undone, and other nodes
    continue.
    """


class PowerControl(typing.Protocol):
    """The interface of a component that resets nodes, such as the client of their BMCs."""

    def prove(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, NodeDifferences]:
        """Determine whether each node can be reset. Nothing is changed.

        :param nodes: names of the nodes
        :returns: by node: ``refusals`` with the reasons why it cannot be reset, each with the remedy, and ``notes``
            with remarks, such as that it is not certain that a reset reaches this node
        """

    def reset(self, node: str, power_cycle: bool) -> str:
        """Order one reset of a node, and return the kind of reset that was ordered, such as ``ForceRestart``.

        :param node: name of the node
        :param power_cycle: True for a power cycle, False for a restart
        :raises BmcError: the reset was refused, or it is unknown whether it was accepted
        """


class NodeResets:
    """A client that verifies that drained nodes may be reset, and orders the resets.

    :param reader: reader of the state of the cluster
    :param power: component that resets nodes
    :param roll: the roll that is carried out
    :param going: flag that shows an interruption of the roll
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param say: function that shows a line of progress to the user
    :param limits: time limits of the roll
    """

    def __init__(
        self,
        reader: RollClusterReader,
        power: PowerControl,
        roll: CurrentRoll,
        going: RollInterrupt,
        clock: Clock,
        say: Say,
        limits: RollLimits,
    ) -> None:
        self._reader, self._power, self._roll = reader, power, roll
        self._going, self._clock, self._say, self._limits = going, clock, say, limits

    def verify_reset_again(self, step: NodeStep) -> None:
        """Verify that a reset may be ordered now which an earlier run has recorded in the mark of a node but which did
        not happen.

        :param step: step of the node
        :raises NodeFailed: the reset must not be ordered
        """
        why = explain_why_not_again(
            step, self._reader.read(), self._roll.planned, self._roll.intent, self._roll.inventory, self._roll.finished
        )
        if why:
            raise NodeFailed(
                "the reset that an earlier run recorded did not happen, and this run did not reset the node:"
                f" {why.rstrip('.')}",
                "Correct this, then rerun",
            )

    def verify_reset_allowed(self, step: NodeStep) -> None:
        """Verify, after the drain, that the cluster still tolerates the reset of the node. Since the drain began,
        another node of the control plane may have gone down, a MachineConfigPool may have begun to roll, an upgrade of
        OpenShift may have begun, or another operator may have begun to take nodes down.

        If an operator works on nodes that this roll has reset, wait until it is done with them, at most for the limit
        ``operator`` of the roll.

        :param step: step of the node
        :raises NodeFailed: the node must not be reset
        """
        end, told = self._clock() + self._limits.operator, ""
        while True:
            why, passes = self._explain_not_allowed(step)
            if not why:
                return
            if not passes or self._clock() >= end:
                raise NodeFailed(why, "Correct this, then rerun: the next run resets the node")
            if why != told:
                self._say(f"{step.node}: drained, waits at most {end - self._clock():.0f} s for its reset: {why}")
            told = why
            self._going.pause(self._limits.look)

    def _explain_not_allowed(self, step: NodeStep) -> tuple[str, bool]:
        """Return two values: the reason why a drained node must not be reset (empty if it may be reset), and whether
        this reason passes as soon as operators are done with nodes that this roll has reset.

        :param step: step of the node
        """
        cluster = self._reader.read(pods=False, members=True)
        for node in (node for node in cluster.nodes if node.name == step.node):
            passes = False
            why = explain_upgrade(cluster)
            why = why or explain_why_kept(node, cluster.nodes, cluster.etcd, cluster.unread.get("etcd", ""))
            if not why:
                why, passes = explain_turns(
                    step.node, cluster, self._roll.planned, self._roll.intent, self._roll.inventory
                )
            if why:
                return f"the node was drained but not reset: {why.rstrip('.')}", passes
            why = cluster.in_the_way(node, self._roll.inventory)
            if why:
                return f"the node was not reset through its BMC: {why.rstrip('.')}", False
        return "", False

    def record_operators(self, node: ClusterNode) -> None:
        """Record the state of the operators on a node immediately before its reset.

        :param node: node that is about to be reset
        :raises NotReset: the state cannot be read. After the reset, it would be unknown whether the SR-IOV operator
            reboots the node once more, so no other node could be reset
        :raises ApiError: the API server cannot be reached
        """
        why = self._reader.begin_reset(node)
        if why:
            raise NotReset(
                f"left out because the state of the SR-IOV operator on {node.name} could not be read immediately before"
                f" the reset, so it would be unknown afterwards whether the operator reboots the node too ({why})",
                f"{describe_unread_remedy((why,), RIGHTS)}. Then rerun: the next run resets {node.name}",
            )

    def order_reset(self, step: NodeStep, did: list[str]) -> bool:
        """Order the reset at the BMC of the node. Return True if the BMC accepted it, and False if this is unknown.

        :param step: step of the node
        :param did: list to which the action is appended as text
        :raises BmcError: the BMC refused the reset
        """
        self._going.check()
        try:
            kind = self._power.reset(step.node, step.action == "power_cycle")
        except BmcError as error:
            if error.cause not in _UNKNOWN:
                raise
            self._say(
                f"{step.node}: it is unknown whether the BMC accepted the reset ({error.what}); the boot ID of the"
                " node will show it"
            )
            did.append("reset (unknown whether accepted)")
            return False
        did.append(f"reset ({kind})")
        return True
