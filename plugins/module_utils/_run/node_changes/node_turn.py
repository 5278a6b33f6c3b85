# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of a roll on one node: set, drain, reset, wait, verify. The progress is stored in an annotation of the node
(its mark), so that the next run can continue.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._analysis.controllers.control_plane import explain_why_kept
from ..._analysis.controllers.gate import explain_upgrade
from ..._model.base.errors import RdmaError
from ..._model.base.marks import MANAGER
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.node_roll import (
    Mark,
    NodeDifference,
    NodeDifferences,
    NodeOutcome,
    NodeStep,
    OutcomeState,
    RollPlan,
)
from ..._model.kubernetes.objects import ClusterNode
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster as Api
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.patience import AWAY
from ..._observe.kubernetes.shell import Clock
from ..._observe.redfish.bmc import BmcError
from ..._parse.kubernetes import core
from ..._parse.kubernetes.roll_mark import ANNOTATION, is_kept, parse_mark
from ..._plan.node_firmware import FIRMWARE
from ..._plan.node_roll import CORDONED, UNCORDON, explain_turns, explain_why_not_again
from ..._plan.node_sources import KERNEL
from ..._render.node.roll_mark import mark_node
from .drain import Drain, NodeFailed, NotDrained
from .node_sources import Sources
from .roll_cluster import RollClusterReader

Say = typing.Callable[[str], None]
#: causes after which nobody knows whether a BMC took a reset
_UNKNOWN = ("closed", "timeout", "busy")
#: times that a node is drained which takes pods again before it is reset
_DRAINS = 3
#: where to look for why something did not take
_WHERE = {
    "BIOS": "Check the log of the BMC and the BIOS setup screen of the node.",
    KERNEL: "Check /proc/cmdline of the node and the entries of its boot loader.",
    FIRMWARE: "Check mstconfig -e query on the node; some HCAs apply a setting only after a power loss.",
}


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


@dataclasses.dataclass(frozen=True)
class RollLimits:
    """The time limits of a roll, in seconds.

    :ivar look: time between two reads of a node
    :ivar drain: limit until all pods are gone
    :ivar back: limit from the reset until the node is Ready
    :ivar settle: limit until a BMC reports the result of the reset, which some report late
    :ivar grace: if an earlier run has ordered a reset and the node has not rebooted after this time, the reset is
        ordered again. A Node stays Ready for 40 s after its kubelet has stopped
    :ivar whole: limit until the next node may begin. It includes the time until etcd has all of its members again,
        which takes 120 s and more on OpenShift
    :ivar operator: limit until another operator is done with a node that the roll has reset, for example the SR-IOV
        operator, which may reboot the node once more
    :ivar api: limit for which the API server may be unreachable in each step of the roll
    """

    look: float = 5.0
    drain: float = 1800.0
    back: float = 1800.0
    settle: float = 120.0
    grace: float = 120.0
    whole: float = 600.0
    operator: float = 3600.0
    api: float = AWAY


#: for who has no reason for others
USUAL = RollLimits()


class RollInterrupt:
    """A flag that all threads of a roll share. After an interruption, the roll changes nothing more and does not undo
    its changes. The next run continues it.

    :ivar over: whether the roll was interrupted
    """

    def __init__(self, sleep: typing.Callable[[float], None]) -> None:
        self._sleep, self.over = sleep, False

    def pause(self, seconds: float) -> None:
        """Sleep for a number of seconds, then raise an exception if the roll was interrupted.

        :raises KeyboardInterrupt: the roll was interrupted
        """
        self._sleep(seconds)
        self.check()

    def check(self) -> None:
        """Raise an exception if the roll was interrupted. Call this after each pause and before each change.

        :raises KeyboardInterrupt: the roll was interrupted
        """
        if self.over:
            raise KeyboardInterrupt


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

    :ivar intent: settings of the intent that all fabrics share
    :ivar inventory: names of the nodes of the run
    :ivar planned: the plan that is carried out
    :ivar finished: names of the nodes whose step of this roll is over
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
        self._cluster, self._reader, self._sources, self._power = cluster, reader, sources, power
        self._going, self._clock, self._say, self._limits = going, clock, say, limits
        self.planned, self.finished = RollPlan(), typing.cast(set[str], set())
        #: what this run has noted at nodes
        self._noted: dict[str, Mark] = {}
        self.begin(ClusterIntent(), ())

    def begin(self, intent: ClusterIntent, inventory: typing.Sequence[str]) -> None:
        """Set the intent and the inventory. Call this before a plan is made.

        :param intent: settings of the intent that all fabrics share
        :param inventory: names of the nodes of the run
        """
        self.intent, self.inventory = intent, tuple(inventory)
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
        except RdmaError as error:
            state, why, remedy = "failed", error.seen, error.remedy
        return NodeOutcome(step.node, state, why, remedy, tuple(did), self._clock() - begin)

    def _work(self, step: NodeStep, did: list[str]) -> bool:
        """Carry out the step of a node. Return False if it is not proven yet that its settings are the desired ones.

        :param step: step of the node
        :param did: list to which the actions are appended as text
        :raises RdmaError: the node could not be rolled, or its settings are not the desired ones
        """
        node, noted = self.node(step.node)
        if step.phase == "finish":
            self._finish_node(step, noted or Mark(), step.untaken, did)
        elif step.action == "set":
            did += self._sources.set(step.node)
            self._check_settings_taken(step, self._await_settled_settings(step.node))
        else:
            sure = True
            if step.phase == "begin" or noted is None:
                noted, sure = self._begin(step, node, noted, did)
            elif node.boot_id == noted.boot:
                # an earlier run has ordered the reset
                self._reader.begin_reset(node)
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
        left = self._await_settled_settings(step.node)
        if left.error:
            self._finish_node(step, noted, (), did, keep=True)
        self._check_settings_taken(step, left)
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
        kept = noted.kept if noted is not None else not is_kept(self._cluster.get("Node", "", step.node))
        cordoned = noted is not None and noted.cordoned
        mine = Mark(tuple(one.identity for one in step.differences), node.boot_id, cordoned, kept=kept)
        self.mark(step.node, mine)
        try:
            if node.unschedulable:
                self._require_own_cordon(step.node, mine, noted)
            did += self._sources.set(step.node)
            mine = self._cordon_node(step.node, mine, did)
            with _as_not_drained():
                self._drain.work(step.node, did)
            now, _noted = self.node(step.node)
            if now.boot_id != mine.boot:
                # somebody else has reset it meanwhile, which is as good
                return self._reset_noted(step.node, mine), True
            return self._reset_drained_node(step, self._reset_noted(step.node, mine), did)
        except LeaseLost:
            raise
        except RdmaError:
            self._undo(step.node, mine, did)
            raise

    def _cordon_node(self, name: str, mine: Mark, did: list[str]) -> Mark:
        """Cordon a node unless this roll has cordoned it already. Return its mark, which records the cordon.

        :param name: name of the node
        :param mine: mark of the node
        :param did: list to which the action is appended as text
        :raises NotDrained: another client has cordoned the node
        """
        node, noted = self.node(name)
        if node.unschedulable:
            return self._require_own_cordon(name, mine, noted)
        mine = dataclasses.replace(mine, cordoned=True)
        self.mark(name, mine, True)
        did.append("cordoned")
        return mine

    def _require_own_cordon(self, name: str, mine: Mark, noted: typing.Optional[Mark]) -> Mark:
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

    def _undo(self, name: str, mine: Mark, did: list[str]) -> None:
        """Remove the mark of a node that was not reset. If this roll cordoned the node, also uncordon it.

        :param name: name of the node
        :param mine: mark of the node, used if this run has not marked the node itself
        :param did: list to which the actions are appended as text
        """
        mine = self._noted.get(name, mine)
        self.mark(name, None, False if mine.cordoned else None, mine.kept)
        did += ["uncordoned"] if mine.cordoned else []

    def _reset_noted(self, name: str, mine: Mark) -> Mark:
        """Record the reset in the mark of a node, and return the changed mark. Call this before the reset is ordered:
        if the run is killed between the two, the next run finds the same boot id and concludes that no reset took
        place.

        :param name: name of the node
        :param mine: mark of the node
        """
        mine = dataclasses.replace(mine, reset=True)
        self.mark(name, mine)
        return mine

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
        :raises ApiError: the state of the node cannot be read
        """
        for _drain in range(_DRAINS):
            self._verify_reset_allowed(step)
            # nothing but the BMC is asked after this look
            node, noted = self.node(step.node)
            if node.boot_id != mine.boot:
                return mine, True
            if node.unschedulable:
                self._require_own_cordon(step.node, mine, noted)
            with _as_not_drained():
                is_empty = node.unschedulable and not self._drain.left(step.node)
            if is_empty:
                self._reader.begin_reset(node)
                return mine, self._order_reset(step, did)
            self._say(f"{step.node}: the node accepts pods again before its reset; it is cordoned and drained again")
            mine = self._cordon_node(step.node, mine, did)
            with _as_not_drained():
                self._drain.work(step.node, did)
        remedy = (
            "Find the component that uncordons the node or sets the nodeName of pods, then rerun: kubectl get pods -A"
            f" --field-selector spec.nodeName={step.node}"
        )
        raise NotDrained(f"the node was not reset: it still accepts pods after {_DRAINS} drains", remedy)

    def _may_go_again(self, step: NodeStep) -> None:
        """Verify that a reset may be ordered now which an earlier run has recorded in the mark of a node but which did
        not happen.

        :param step: step of the node
        :raises NodeFailed: the reset must not be ordered
        """
        why = explain_why_not_again(step, self._reader.read(), self.planned, self.intent, self.inventory, self.finished)
        if why:
            raise NodeFailed(
                "the reset that an earlier run recorded did not happen, and this run did not reset the node:"
                f" {why.rstrip('.')}",
                "Correct this, then rerun",
            )

    def _verify_reset_allowed(self, step: NodeStep) -> None:
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
            self._pause()

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
                why, passes = explain_turns(step.node, cluster, self.planned, self.intent, self.inventory)
            if why:
                return f"the node was drained but not reset: {why.rstrip('.')}", passes
            why = cluster.in_the_way(node, self.inventory)
            if why:
                return f"the node was not reset through its BMC: {why.rstrip('.')}", False
        return "", False

    def _order_reset(self, step: NodeStep, did: list[str]) -> bool:
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
                node, _noted = self.node(step.node)
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
                        self._undo(step.node, noted, did)
                        raise NodeFailed(
                            "the BMC did not accept the reset: the node is still up",
                            "Check the log of the BMC, then rerun",
                        )
                    if not ordered and not self._has_differences(step.node):
                        # nobody asks any more for what it was to be reset for
                        did.append("not reset: no setting differs any more")
                        return noted
                    if not ordered:
                        # the run that noted it was killed before it could order it
                        ordered, begin = True, self._clock()
                        try:
                            self._may_go_again(step)
                            noted, sure = self._reset_drained_node(step, noted, did)
                        except NodeFailed:
                            # nobody has ordered it, or it was lost
                            self._undo(step.node, noted, did)
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

    def _has_differences(self, name: str) -> bool:
        """Return whether settings of a node differ from the desired ones. Settings that cannot be read count as
        different.

        :param name: name of the node
        """
        seen = self._sources.look([name]).get(name, NodeDifferences())
        return bool(seen.differences or seen.error or seen.blind or seen.unset)

    def _await_settled_settings(self, name: str) -> NodeDifferences:
        """Return the differences of a node that remain after its reset, from sources that read the node. As long as
        there are any, read again until the limit ``settle``, because some BMCs report the result of a reset late.

        :param name: name of the node
        """
        end = self._clock() + self._limits.settle
        while True:
            seen = self._sources.look([name], live_only=True).get(name, NodeDifferences())
            if not (seen.error or seen.differences) or self._clock() >= end:
                return seen
            self._pause()

    def _check_settings_taken(self, step: NodeStep, seen: NodeDifferences) -> None:
        if seen.error:
            raise NodeFailed(
                f"it is unknown whether the node applied the settings: {seen.error}",
                "Restore the access to the BMC, then rerun: the node is not reset again",
            )
        if step.action == "set" and seen.differences:
            raise not_taken(step.node, seen.differences, "when they were set")

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
        stays = dataclasses.replace(noted, cordoned=False, kept=False) if left or keep else None
        self.mark(step.node, stays, False if noted.cordoned else None, noted.kept, over=True)
        did += ["uncordoned"] if noted.cordoned else []
        if left:
            raise not_taken(step.node, left, "at the reset")

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

    def _pause(self) -> None:
        self._going.pause(self._limits.look)

    def mark(
        self,
        name: str,
        noted: typing.Optional[Mark],
        unschedulable: typing.Optional[bool] = None,
        release: bool = False,
        over: bool = False,
    ) -> None:
        """Set or remove the mark of a node, and cordon or uncordon the node in the same request.

        :param name: name of the node
        :param noted: mark to set; None to remove the mark
        :param unschedulable: True to cordon, False to uncordon; None for no change
        :param release: whether the cluster-autoscaler may delete the node again
        :param over: whether the roll has released the node, so that the mark is only a record for the next run
        """
        self._going.check()
        if noted is not None:
            self._noted[name] = noted
        self._cluster.patch("Node", "", name, mark_node(noted, unschedulable, release, over), MANAGER)


def not_taken(name: str, left: typing.Sequence[NodeDifference], when: str) -> RdmaError:
    """Return the error that lists the settings of a node that did not take effect, with the remedy.

    :param name: name of the node
    :param left: settings that did not take effect
    :param when: event after which they should be in effect, such as ``at the reset``
    """
    told = ", ".join(map(str, left))
    where = " ".join(_WHERE[source] for source in dict.fromkeys(one.source for one in left) if source in _WHERE)
    remedy = (
        f"{where} The node is not reset again for these settings. To retry, remove the annotation, then rerun: kubectl"
        f" annotate node {name} {ANNOTATION}-"
    )
    return NodeFailed(f"the node did not apply these settings {when}: {told}", remedy.strip())
