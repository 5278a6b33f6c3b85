# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for all changes that reboot nodes: the differences between each node and its desired state, the required
actions, the waves (groups of nodes that are processed together), and the outcomes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing

from ..base.text import cut_text
from ..boundary.kubernetes import LabelValue, ObjectName, Uid
from .control_plane import HealthCheck
from .disruption import PoolPlan

#: characters of a text of a node or its BMC in the plan
MOST_WORDS = 2000
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
    """A setting of a node that differs from its desired value.

    :ivar source: kind of the setting: ``BIOS``, ``kernel argument``
    :ivar key: name of the setting
    :ivar now: current value as text
    :ivar wanted: desired value as text
    :ivar needs: action that activates a new value: ``nothing``, a ``reboot``, or a ``power_cycle``
    :ivar how: action that the roll plans, in words
    """

    source: str
    key: str
    now: str
    wanted: str
    needs: Needs = "reboot"
    how: str = ""

    def __post_init__(self) -> None:
        """Truncate the current value, which the node or its BMC reports and which could be of any length."""
        object.__setattr__(self, "now", cut_text(self.now, MOST_WORDS))

    def __str__(self) -> str:
        return f"{self.source} {self.key} {self.wanted} (now {self.now})"

    @property
    def identity(self) -> str:
        """Return a hash of the desired setting. It is equal in all runs with the same desired setting, independent of
        the current value.
        """
        return hashlib.sha256("\0".join((self.source, self.key, self.wanted)).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class NodeDifferences:
    """The settings of one kind, such as BIOS settings, in which a node differs from its desired state.

    :ivar differences: the settings that differ
    :ivar refusals: why a difference cannot be corrected, each with a remedy
    :ivar error: why the differences are not known
    :ivar blind: why some settings cannot be observed; relevant only for a node that was reset and must prove the result
    :ivar unset: differences whose value is not stored, so that a reset would not help; relevant only for a node that
        was reset for them
    :ivar notes: further effects on the node, or settings that are left unchanged, in words
    :ivar boots: ids of the boots in which the differences were observed; empty if they apply to the current one
    """

    differences: tuple[NodeDifference, ...] = ()
    refusals: tuple[str, ...] = ()
    error: str = ""
    boots: tuple[str, ...] = ()
    blind: str = ""
    unset: tuple[NodeDifference, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Truncate the texts that a node or its BMC wrote, because one fact contains the differences of all nodes."""
        for name in ("error", "blind"):
            object.__setattr__(self, name, cut_text(getattr(self, name), MOST_WORDS))
        for name in ("refusals", "notes"):
            object.__setattr__(self, name, tuple(cut_text(text, MOST_WORDS) for text in getattr(self, name)))

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
    """The record that a roll leaves on a node, so that the next run continues after an interruption.

    :ivar differences: identities of the differences to correct
    :ivar boot: id of the boot before the reset
    :ivar cordoned: whether the roll cordoned the node, and so must uncordon it
    :ivar reset: whether a reset was ordered or is about to be ordered. A different boot id shows that it took place
    :ivar pool: MachineConfigPool whose roll reboots it; empty if its BMC does
    :ivar kept: whether the roll has told the cluster-autoscaler to keep the node, and so must undo it
    :ivar keep_before: value of the annotation of the cluster-autoscaler before that; empty if there was none
    """

    differences: tuple[str, ...] = ()
    boot: Uid = ""
    cordoned: bool = False
    reset: bool = False
    pool: ObjectName = ""
    kept: bool = False
    keep_before: LabelValue = ""


@dataclasses.dataclass(frozen=True)
class NodeStep:
    """The planned step of the roll for one node: its action, the differences that it corrects, and its effects on pods.

    :ivar action: ``nothing``, ``set`` (a value that needs no reset), ``reboot`` or ``power_cycle`` after a drain, or
        ``unknown`` if the differences are not known
    :ivar differences: differences that the step corrects
    :ivar phase: ``begin``; ``wait`` if an earlier run reset the node and it has not returned; ``finish`` if it has
        returned, or has nothing left to do
    :ivar pods: namespace/name of the pods that the drain evicts from the node
    :ivar lost: evicted pods that are not recreated
    :ivar blockers: why the step is not done now, each with a remedy
    :ivar wave: number of its wave (nodes that are processed together) from 1; 0 for none
    :ivar untaken: differences that remain after an earlier reset; the node is not reset again for them
    :ivar pool: MachineConfigPool whose roll reboots it, instead of its BMC; empty for none
    :ivar reasons: other reasons for the roll of the pool, in words
    :ivar also: MachineConfigPool whose roll reboots it again after this step; empty for none
    :ivar notes: further effects on the node, or settings that are left unchanged, in words
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
        """Return whether this roll works on the node: nothing blocks the step, and there is a change to make or an
        earlier one to finish.
        """
        return not self.blockers and (
            self.phase != "begin" or (self.action in ("set", "reboot", "power_cycle") and not self.untaken)
        )

    @property
    def goes(self) -> bool:
        """Return whether this roll makes the node unavailable for a while: it resets the node, or waits for the end of
        an earlier reset.
        """
        return self.is_due and self.action in ("reboot", "power_cycle") and self.phase != "finish"


@dataclasses.dataclass(frozen=True)
class RollPlan:
    """The plan of a roll: the step of each node, and how many nodes are reset at the same time.

    :ivar steps: step of each node
    :ivar at_once: maximum number of nodes that this roll may take down at the same time
    :ivar limit: origin of that number, in words
    :ivar refusal: why nothing at all is done, with a remedy
    :ivar rolls: MachineConfigPools that are resumed, or were by an earlier run, and reboot their nodes
    :ivar most: maximum number of nodes that may be down at the same time, including those that are down already
    :ivar shape: consequences of the resets for a cluster without a spare control-plane node, in words
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
        """Return the steps of nodes that the roll of their MachineConfigPool reboots, instead of their BMC. Only steps
        that this run works on are included.
        """
        return tuple(step for step in self.steps if step.pool and step.is_due)

    @property
    def waves(self) -> tuple[tuple[NodeStep, ...], ...]:
        """Return the waves in order. The nodes of one wave are processed together."""
        numbers = sorted({step.wave for step in self.steps if step.wave})
        return tuple(tuple(step for step in self.steps if step.wave == number) for number in numbers)


@dataclasses.dataclass(frozen=True)
class NodeOutcome:
    """The result of a roll for one node.

    :ivar node: name of the node
    :ivar state: ``nothing`` (already as desired), ``planned`` (check mode), ``done``, ``failed``, ``blocked``, ``left``
        (the roll ended before its turn), ``unknown``, or ``unproven`` (reset and back, but not observed again yet)
    :ivar why: reason of any state but done and nothing
    :ivar remedy: instruction to the user that resolves the cause
    :ivar did: performed actions, in words
    :ivar seconds: duration of the work on the node
    """

    node: str
    state: OutcomeState
    why: str = ""
    remedy: str = ""
    did: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def was_reset(self) -> bool:
        """Return whether the node was reset, so that its previous state must be verified."""
        return self.state == "unproven" or any(word.startswith("reset") for word in self.did)


@dataclasses.dataclass(frozen=True)
class NodeRoll:
    """The plan of a roll and its result for each node (node_roll).

    :ivar plan: steps and order of the nodes
    :ivar outcomes: result for each node; empty for a plan only
    :ivar error: why the roll did not complete; empty if it did
    :ivar changes: one line for each node that was changed, or would be
    """

    plan: RollPlan = RollPlan()
    outcomes: tuple[NodeOutcome, ...] = ()
    error: str = ""
    changes: tuple[str, ...] = ()


def prove_outcomes(before: NodeRoll, later: NodeRoll) -> NodeRoll:
    """Return a roll in which each ``unproven`` outcome is replaced by the result of observing the node after its reset.
    Other outcomes are unchanged.

    :param before: the roll that reset the nodes
    :param later: the roll that was computed from the observations after the resets
    """
    found = {outcome.node: outcome for outcome in later.outcomes}

    def of(one: NodeOutcome) -> NodeOutcome:
        shown = found.get(one.node)
        if one.state != "unproven" or shown is None:
            return one
        # it was reset, and what was seen since is as wanted: nothing to do is done
        state: OutcomeState = "done" if shown.state == "nothing" else shown.state
        return dataclasses.replace(shown, state=state, did=one.did + shown.did, seconds=one.seconds + shown.seconds)

    return dataclasses.replace(before, outcomes=tuple(of(one) for one in before.outcomes))
