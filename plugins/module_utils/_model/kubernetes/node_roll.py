# SPDX-License-Identifier: GPL-3.0-or-later

"""One plan for all that reboots nodes: what differs on each node, what that needs, in which waves, and what became of
it."""

from __future__ import annotations

import dataclasses
import hashlib
import typing

from ..boundary.kubernetes import ObjectName, Uid
from .control_plane import HealthCheck
from .disruption import PoolPlan

#: what makes a wanted value true. power_cycle: the power is taken away
Needs = typing.Literal["nothing", "reboot", "power_cycle"]
#: set: a value that needs no reset. reboot and power_cycle come after a drain. unknown: nobody knows what differs
StepAction = typing.Literal["nothing", "set", "reboot", "power_cycle", "unknown"]
#: where a node is taken up. wait: it was reset and is not back, or the roll of its MachineConfigPool is not through.
#: finish: it is back, or was never reset and has nothing left to do
Phase = typing.Literal["begin", "wait", "finish"]
#: left: the roll ended before its turn. blocked: something is in its way. nothing: it is as wanted. unproven: it was
#: reset and is back, and who looks at nodes has to look again before anybody knows whether that helped
OutcomeState = typing.Literal["nothing", "planned", "done", "failed", "blocked", "left", "unknown", "unproven"]


@dataclasses.dataclass(frozen=True)
class NodeDifference:
    """A difference between a node and its desired state.

    :ivar source: what it is of: ``BIOS``, ``kernel argument``
    :ivar now: in words, as wanted is
    :ivar how: what is done about it, in words
    """

    source: str
    key: str
    now: str
    wanted: str
    needs: Needs = "reboot"
    how: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.key} {self.wanted} (now {self.now})"

    @property
    def identity(self) -> str:
        """Return the same in each run that wants the same, whatever the node has now."""
        return hashlib.sha256("\0".join((self.source, self.key, self.wanted)).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class NodeDifferences:
    """The report of a source on one node.

    :ivar refusals: why something that differs can't be set, each with what to do
    :ivar error: why it is not known what differs
    :ivar blind: why something can't be seen that may differ; it counts only for a node that was reset, and has to show
        what came of it
    :ivar unset: what differs and is not set, so that a reset would not help; it counts only for a node that was reset
        for it
    :ivar notes: what else happens to the node, or is left alone, in words
    :ivar boots: ids of the boots in which that was seen; empty where it holds of now
    """

    differences: tuple[NodeDifference, ...] = ()
    refusals: tuple[str, ...] = ()
    error: str = ""
    boots: tuple[str, ...] = ()
    blind: str = ""
    unset: tuple[NodeDifference, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: NodeDifferences) -> NodeDifferences:
        error, blind = (
            "; ".join(filter(None, pair)) for pair in ((self.error, other.error), (self.blind, other.blind))
        )
        differences, refusals, boots = (
            self.differences + other.differences,
            self.refusals + other.refusals,
            self.boots + other.boots,
        )
        return NodeDifferences(
            differences, refusals, error, boots, blind, self.unset + other.unset, self.notes + other.notes
        )


@dataclasses.dataclass(frozen=True)
class Mark:
    """The note of a roll at a node, so that the next run continues where one was killed.

    :ivar differences: identities of what it is about
    :ivar boot: id of the boot before the reset
    :ivar cordoned: by the roll, so that it is the roll that uncordons it
    :ivar reset: a reset was ordered, or is about to be. Whether it came, the id of the boot tells
    :ivar pool: MachineConfigPool whose roll is to reboot it; empty where its BMC is
    """

    differences: tuple[str, ...] = ()
    boot: Uid = ""
    cordoned: bool = False
    reset: bool = False
    pool: ObjectName = ""


@dataclasses.dataclass(frozen=True)
class NodeStep:
    """The planned step of one node, and its reason.

    :ivar pods: namespace/name of those that the drain takes from the node
    :ivar lost: those of them that nothing makes again
    :ivar blockers: why it is not done now, each with what to do
    :ivar wave: its number from 1; 0 where it has no turn
    :ivar untaken: differences for which the node was reset already; it is not reset again for them
    :ivar pool: MachineConfigPool whose roll reboots it, in place of its BMC; empty where none does
    :ivar reasons: what else the roll of a pool is for, in words
    :ivar also: MachineConfigPool whose roll reboots it as well, after what is done here; empty where none does
    :ivar notes: what else happens to the node, or is left alone, in words
    """

    node: str
    action: StepAction
    differences: tuple[NodeDifference, ...] = ()
    phase: Phase = "begin"
    pods: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    wave: int = 0
    untaken: tuple[NodeDifference, ...] = ()
    pool: str = ""
    reasons: tuple[str, ...] = ()
    also: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Return whether the roll changes the node."""
        return not self.blockers and (
            self.phase != "begin" or (self.action in ("set", "reboot", "power_cycle") and not self.untaken)
        )

    @property
    def goes(self) -> bool:
        """Return whether the node is away for a while."""
        return self.is_due and self.action in ("reboot", "power_cycle") and self.phase != "finish"


@dataclasses.dataclass(frozen=True)
class RollPlan:
    """:ivar at_once: nodes that may be away at the same time
    :ivar limit: where that is from, in words
    :ivar refusal: why nothing at all is done, with what to do
    :ivar rolls: MachineConfigPools that are let go, or were by a run that ended, and reboot their nodes
    :ivar most: nodes that may be away at the same time, with those that are away already
    :ivar shape: what the resets mean for a cluster that has no control-plane node to spare, in words
    :ivar pauses: health checks that would remediate a node of the plan, and are paused meanwhile
    """

    steps: tuple[NodeStep, ...] = ()
    at_once: int = 1
    limit: str = ""
    refusal: str = ""
    rolls: tuple[PoolPlan, ...] = ()
    most: int = 1
    shape: tuple[str, ...] = ()
    pauses: tuple[HealthCheck, ...] = ()

    @property
    def rides(self) -> tuple[NodeStep, ...]:
        """Return the nodes that the roll of their MachineConfigPool reboots, all of them with one roll."""
        return tuple(step for step in self.steps if step.pool and step.is_due)

    @property
    def waves(self) -> tuple[tuple[NodeStep, ...], ...]:
        """Return the waves: the nodes of one wave are done together."""
        numbers = sorted({step.wave for step in self.steps if step.wave})
        return tuple(tuple(step for step in self.steps if step.wave == number) for number in numbers)


@dataclasses.dataclass(frozen=True)
class NodeOutcome:
    """The outcome of one node.

    :ivar why: of any state but done and nothing
    :ivar did: what was done, in words
    """

    node: str
    state: OutcomeState
    why: str = ""
    remedy: str = ""
    did: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def was_reset(self) -> bool:
        """Return whether the node was reset, so that what it had before must be there again."""
        return self.state == "unproven" or any(word.startswith("reset") for word in self.did)


@dataclasses.dataclass(frozen=True)
class NodeRoll:
    """Answer of node_roll.

    :ivar error: why it did not end
    :ivar changes: one line for each node that was changed, or would be
    """

    plan: RollPlan = RollPlan()
    outcomes: tuple[NodeOutcome, ...] = ()
    error: str = ""
    changes: tuple[str, ...] = ()


def proven(before: NodeRoll, later: NodeRoll) -> NodeRoll:
    """Return a roll, with what a look after its resets has shown of the nodes that nobody had looked at. Of the others
    nothing changes."""
    found = {outcome.node: outcome for outcome in later.outcomes}

    def of(one: NodeOutcome) -> NodeOutcome:
        shown = found.get(one.node)
        if one.state != "unproven" or shown is None:
            return one
        # it was reset, and what was seen since is as wanted: nothing to do is done
        state: OutcomeState = "done" if shown.state == "nothing" else shown.state
        return dataclasses.replace(shown, state=state, did=one.did + shown.did, seconds=one.seconds + shown.seconds)

    return dataclasses.replace(before, outcomes=tuple(of(one) for one in before.outcomes))
