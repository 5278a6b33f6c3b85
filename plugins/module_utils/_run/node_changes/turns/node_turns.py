# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of a roll on one node: set, drain, reset, wait, verify. The progress is stored in an annotation of the node
(its mark), so that the next run can continue.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ...._model.base.errors import RdmaError
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.node_roll import Mark, NodeDifference, NodeOutcome, NodeStep, OutcomeState
from ...._model.kubernetes.objects import ClusterNode
from ...._model.run.lease import LeaseLost
from ...._observe.kubernetes.client import Cluster as Api
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.shell import Clock
from ...._parse.kubernetes.roll_mark import find_keep_value, is_kept
from ..drain import Drain, NodeFailed, NotDrained
from ..node_sources import Sources
from ..roll_cluster import RollClusterReader
from .node_marks import NodeMarks
from .node_resets import NodeResets, NotReset, PowerControl
from .roll_limits import CurrentRoll, RollInterrupt, RollLimits, Say
from .settings_check import SettingsCheck, not_taken

#: times that a node is drained which takes pods again before it is reset
_DRAINS = 3


@contextlib.contextmanager
def _as_not_drained() -> typing.Iterator[None]:
    """Return a context manager that converts each error of a drain to NotDrained, so that only the drained node is left
    out of the roll.

    :raises LeaseLost: another run changes the cluster
    :raises NotDrained: pods do not leave the node, or cannot be read
    """
    try:
        yield
    except LeaseLost:
        raise
    except RdmaError as error:
        raise NotDrained(error.seen, error.remedy) from error


class NodeTurns:
    """A client that carries out the steps of a roll, each on one node.

    :ivar roll: the roll that is carried out
    :ivar marks: reader and writer of the marks of nodes
    """

    def __init__(
        self,
        cluster: Api,
        reader: RollClusterReader,
        sources: Sources,
        power: PowerControl,
        going: RollInterrupt,
        clock: Clock,
        say: Say,
        limits: RollLimits,
    ) -> None:
        self._cluster, self._reader, self._sources = cluster, reader, sources
        self._going, self._clock, self._say, self._limits = going, clock, say, limits
        self.roll, self.marks = CurrentRoll(), NodeMarks(cluster, going)
        self._resets = NodeResets(reader, power, self.roll, going, clock, say, limits)
        self._settings = SettingsCheck(sources, going, clock, limits)
        self.begin(ClusterIntent(), ())

    def begin(self, intent: ClusterIntent, inventory: typing.Sequence[str]) -> None:
        """Set the intent and the inventory. Call this before a plan is made.

        :param intent: settings of the intent that all fabrics share
        :param inventory: names of the nodes of the run
        """
        self.roll.intent, self.roll.inventory = intent, tuple(inventory)
        self._drain = Drain(self._cluster, self._clock, self._pause, self._say, self._limits.drain, intent.drain)

    def outcome(self, step: NodeStep) -> NodeOutcome:
        """Carry out the step of a node, and return its outcome. An error becomes the state of the outcome, such as
        ``failed``.

        :param step: step of the node
        :raises LeaseLost: another run changes the cluster
        """
        begin, did = self._clock(), typing.cast(list[str], [])
        state: OutcomeState = "done"
        why = remedy = ""
        try:
            if not self._work(step, did):
                state, why, remedy = (
                    "unproven",
                    "the node was reset, but its settings have not been verified since",
                    "Rerun: this collection verifies the settings and does not reset the node again",
                )
        except LeaseLost:
            raise
        except NotDrained as error:
            # pods are made by tenants: theirs keep their node out, and no other one
            state, why, remedy = (
                "blocked",
                f"left out because the node could not be drained: {error.seen}",
                error.remedy,
            )
        except NotReset as error:
            state, why, remedy = "blocked", error.seen, error.remedy
        except RdmaError as error:
            state, why, remedy = "failed", error.seen, error.remedy
        return NodeOutcome(step.node, state, why, remedy, tuple(did), self._clock() - begin)

    def _work(self, step: NodeStep, did: list[str]) -> bool:
        """Carry out the step of a node. Return False if it is not proven yet that its settings are the desired ones.

        :param step: step of the node
        :param did: list to which the actions are appended as text
        :raises RdmaError: the node could not be rolled, or its settings are not the desired ones
        """
        node, noted = self.marks.node(step.node)
        if step.phase == "finish":
            self._finish_node(step, noted or Mark(), step.untaken, did)
        elif step.action == "set":
            did += self._sources.set(step.node)
            self._settings.check_taken(step, self._settings.await_settled(step.node))
        else:
            sure = True
            if step.phase == "begin" or noted is None:
                noted, sure = self._begin(step, node, noted, did)
            elif node.boot_id == noted.boot:
                # an earlier run has ordered the reset
                self._reader.begin_reset(node, ordered=True)
            noted = self._wait_for_reboot(step, noted, did, sure)
            return self.end(step, noted, did)
        return True

    def end(self, step: NodeStep, noted: Mark, did: list[str]) -> bool:
        """Finish a node that is Ready after its reset: verify its settings, uncordon the node and remove its mark.
        Return False if it is not proven yet that its settings are the desired ones. The mark is then kept for the next
        run.

        :param step: step of the node
        :param noted: mark of the node
        :param did: list to which the actions are appended as text
        :raises RdmaError: the settings are not the desired ones, or cannot be read; the node is uncordoned nevertheless
        """
        left = self._settings.await_settled(step.node)
        if left.error:
            self._finish_node(step, noted, (), did, keep=True)
        self._settings.check_taken(step, left)
        unproven = step.node in self._sources.unproven
        self._finish_node(step, noted, left.differences, did, keep=unproven)
        return not unproven

    def _begin(
        self, step: NodeStep, node: ClusterNode, noted: typing.Optional[Mark], did: list[str]
    ) -> tuple[Mark, bool]:
        """Mark the node, set the values that differ, cordon and drain the node, and reset it. After an error before the
        reset, the mark and the cordon are removed. Values that were set in its BIOS stay, and wait for the next reset.

        :param step: step of the node
        :param node: the node as it was read
        :param noted: mark of an earlier run; None if the node has no mark
        :param did: list to which the actions are appended as text
        :returns: the mark of the node, and whether it is certain that the reset was accepted
        :raises RdmaError: the node was not reset
        """
        # a drained node is empty, and the cluster-autoscaler deletes the machines of empty nodes
        there = noted if noted is not None else self._read_keep(step.node)
        mine = Mark(
            tuple(one.identity for one in step.differences),
            node.boot_id,
            there.cordoned,
            kept=there.kept,
            keep_before=there.keep_before,
        )
        self.marks.mark(step.node, mine)
        try:
            if node.unschedulable:
                self.marks.require_own_cordon(step.node, mine, noted)
            did += self._sources.set(step.node)
            mine = self.marks.cordon_node(step.node, mine, did)
            with _as_not_drained():
                self._drain.work(step.node, did)
            now, _noted = self.marks.node(step.node)
            if now.boot_id != mine.boot:
                # somebody else has reset it meanwhile, which is as good
                return self.marks.record_reset(step.node, mine), True
            return self._reset_drained_node(step, self.marks.record_reset(step.node, mine), did)
        except LeaseLost:
            raise
        except RdmaError:
            self.marks.undo(step.node, mine, did)
            raise

    def _reset_drained_node(self, step: NodeStep, mine: Mark, did: list[str]) -> tuple[Mark, bool]:
        """Order the reset if no pod is left on the node. Otherwise drain the node again, at most ``_DRAINS`` times.
        Return the mark, and whether it is certain that the reset was accepted.

        A node that has already rebooted is not reset again, and a node that the machine config operator is about to
        reboot is never reset.

        :param step: step of the node
        :param mine: mark of the node
        :param did: list to which the actions are appended as text
        :raises BmcError: the BMC refused the reset
        :raises NodeFailed: the control plane does not tolerate the reset, or the machine config operator is about to
            reboot the node
        :raises NotDrained: pods do not leave, or new pods start on the node again and again
        :raises NotReset: the state of the SR-IOV operator on the node cannot be read
        :raises ApiError: the state of the node cannot be read
        """
        for _drain in range(_DRAINS):
            self._resets.verify_reset_allowed(step)
            # nothing but the BMC is asked after this look
            node, noted = self.marks.node(step.node)
            if node.boot_id != mine.boot:
                return mine, True
            if node.unschedulable:
                self.marks.require_own_cordon(step.node, mine, noted)
            with _as_not_drained():
                is_empty = node.unschedulable and not self._drain.left(step.node)
            if is_empty:
                self._resets.record_operators(node)
                return mine, self._resets.order_reset(step, did)
            self._say(f"{step.node}: the node accepts pods again before its reset; it is cordoned and drained again")
            mine = self.marks.cordon_node(step.node, mine, did)
            with _as_not_drained():
                self._drain.work(step.node, did)
        remedy = (
            "Find the component that uncordons the node or sets the nodeName of pods, then rerun: kubectl get pods -A"
            f" --field-selector spec.nodeName={step.node}"
        )
        raise NotDrained(f"the node was not reset: it still accepts pods after {_DRAINS} drains", remedy)

    def _wait_for_reboot(self, step: NodeStep, noted: Mark, did: list[str], sure: bool) -> Mark:
        """Wait until the node is Ready with another boot id, and return its mark. If an earlier run recorded the reset
        but the node still runs, order the reset now, unless no setting differs any more.

        :param step: step of the node
        :param noted: mark of the node
        :param did: list to which the actions are appended as text
        :param sure: whether the BMC is known to have accepted the reset
        :raises RdmaError: the node is not Ready after the limit, or the reset was not accepted
        """
        begin, told, ordered = self._clock(), "", step.phase == "begin"
        while True:
            now, words = self._clock() - begin, ""
            try:
                node, _noted = self.marks.node(step.node)
            except ApiError as error:
                # the API server may be on its way as well
                words = f"the API server does not report the node: {error.text}"
            else:
                again = node.boot_id not in ("", noted.boot)
                if again and node.ready:
                    return noted
                words = (
                    f"rebooted, not Ready: {node.not_ready}"
                    if again
                    else f"not Ready: {node.not_ready}"
                    if not node.ready
                    else "still up"
                )
                if not again and node.ready and now >= self._limits.grace:
                    if not sure:
                        self.marks.undo(step.node, noted, did)
                        raise NodeFailed(
                            "the BMC did not accept the reset: the node is still up",
                            "Check the log of the BMC, then rerun",
                        )
                    if not ordered and not self._settings.has_differences(step.node):
                        # nobody asks any more for what it was to be reset for
                        did.append("not reset: no setting differs any more")
                        return noted
                    if not ordered:
                        # the run that noted it was killed before it could order it
                        ordered, begin = True, self._clock()
                        try:
                            self._resets.verify_reset_again(step)
                            noted, sure = self._reset_drained_node(step, noted, did)
                        except NodeFailed:
                            # nobody has ordered it, or it was lost
                            self.marks.undo(step.node, noted, did)
                            raise
            if now >= self._limits.back:
                remedy = (
                    "Check the console of the node, then its kubelet. Rerun when the node is back: it is not reset"
                    f" again. The node is cordoned: kubectl uncordon {step.node}"
                )
                raise NodeFailed(f"the node is not back {now:.0f} s after its reset: {words}", remedy)
            if words != told:
                self._say(f"{step.node}: {words} ({now:.0f} s)")
            told = words
            self._pause()

    def _finish_node(
        self, step: NodeStep, noted: Mark, left: typing.Sequence[NodeDifference], did: list[str], keep: bool = False
    ) -> None:
        """Remove the mark of a node after its reset. If this roll cordoned the node, also uncordon it.

        The annotation of the mark is kept for the next run if the reset had no effect, or if its effect is not known.
        The label of the mark is always removed: the node is Ready, so its health checks may be resumed.

        :param step: step of the node
        :param noted: mark of the node
        :param left: differences that the reset did not correct
        :param did: list to which the actions are appended as text
        :param keep: whether the effect of the reset is not known
        :raises RdmaError: the reset did not correct all differences
        """
        stays = dataclasses.replace(noted, cordoned=False, kept=False, keep_before="") if left or keep else None
        self.marks.mark(step.node, stays, False if noted.cordoned else None, noted, over=True)
        did += ["uncordoned"] if noted.cordoned else []
        if left:
            raise not_taken(step.node, left, "at the reset")

    def _read_keep(self, name: str) -> Mark:
        """Return a mark that only says whether the cluster-autoscaler must be told to keep the node, and the value that
        its annotation has now.

        :raises ApiError: the node cannot be read
        """
        resource = self._cluster.get("Node", "", name)
        return Mark() if is_kept(resource) else Mark(kept=True, keep_before=find_keep_value(resource))

    def _pause(self) -> None:
        self._going.pause(self._limits.look)
