# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes the settings of nodes that their MachineConfigPool reboots anyway. Settings that wait in the BIOS of these
nodes take effect with that reboot, and no BMC resets them.

First the values are set on all nodes, and the nodes are marked. An error there leaves the pools unchanged. Then all
MachineConfigs are applied while the pools are paused, and the pools are unpaused once. If a run is killed, the state of
the pool shows how to continue: if the pool rolls, the next run waits for it; if it has no change, no node was rebooted.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.errors import RdmaError
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.disruption import PoolPlan
from ...._model.kubernetes.host import Roll
from ...._model.kubernetes.node_roll import Mark, NodeDifference, NodeOutcome, NodeStep
from ...._model.kubernetes.objects import ClusterNode
from ...._model.run.lease import LeaseLost
from ...._observe.kubernetes import machines
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.shell import Clock
from ...._observe.kubernetes.whose_scope import learn_scope
from ...._observe.process import many
from ...._plan.scope import build_scope
from ..drain import NodeFailed
from ..gate import PoolGate
from .pool_roller import PoolRoller as Pools
from .render_waits import RENDER

#: nodes that are worked on at the same time
_PARALLEL = 32
_WAIT = (
    "Rerun: the run waits for the node, and the BMC does not reset it. Check oc describe machineconfigpool, and the"
    " machine-config-daemon on the node"
)


class Work(typing.NamedTuple):
    """The functions by which the client of a pool reboot reads and changes a single node.

    :ivar node: function that gets the name of a node, and returns the node and its mark (None without a mark)
    :ivar mark: function with the arguments of ``NodeMarks.mark``, which sets or removes the mark of a node
    :ivar set: function that gets the name of a node, sets the values that differ, and returns the changes as text
    :ivar hidden: function that gets the name of a node, and returns the differences that a MachineConfig corrects and
        that only an observation of the node shows
    :ivar end: function that gets the step of a node, its mark and a list for the actions. It finishes a node that is
        Ready after its reboot, and returns False if it is not proven yet that its settings are the desired ones
    """

    node: typing.Callable[[str], tuple[ClusterNode, typing.Optional[Mark]]]
    mark: typing.Callable[..., None]
    set: typing.Callable[[str], list[str]]
    hidden: typing.Callable[[str], tuple[NodeDifference, ...]]
    end: typing.Callable[[NodeStep, Mark, list[str]], bool]


def describe_reboot(pool: str) -> str:
    """Return a text about the reboot of a node by its MachineConfigPool, for the list of actions on the node.

    :param pool: name of the pool
    """
    return f"reset by the machine config operator (MachineConfigPool {pool})"


class _Stopped(RdmaError):
    """Raised if the user asked the run to stop while it waits for pools. The machine config operator continues its
    rolls by itself.
    """


class PoolReboot:
    """A client that rolls MachineConfigPools once, and sets other values on their nodes before, such as in the BIOS,
    which take effect with the same reboot.

    :param work: functions that read and change a single node
    :param cluster: client of the API server
    :param hosts: desired MachineConfigs and KubeletConfigs, as they are rendered
    :param inventory: names of the nodes of the run
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :param stop: function that returns whether to stop waiting
    :param intent: settings of the intent of the run; None: the default
    """

    def __init__(
        self,
        work: Work,
        cluster: Cluster,
        hosts: typing.Sequence[Resource],
        inventory: typing.Sequence[str],
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: typing.Callable[[str], None],
        stop: typing.Callable[[], bool],
        intent: typing.Optional[ClusterIntent] = None,
    ) -> None:
        self._work, self._cluster, self._hosts, self._inventory = work, cluster, tuple(hosts), tuple(inventory)
        self._clock, self._sleep, self._stop = clock, pause, stop
        mine = intent if intent is not None else ClusterIntent()
        gate, self._scope = (
            PoolGate(cluster, mine, self._inventory, say),
            learn_scope(cluster, build_scope((), mine, self._inventory)),
        )
        self._pools = Pools(cluster, clock, self._sleep_unless_stopped, say, gate, mine, self._scope)
        self._released = False
        self._did: dict[str, list[str]] = {}
        self._noted: dict[str, Mark] = {}
        self._rolls: dict[str, Roll] = {}
        self._wanted: dict[str, str] = {}
        self._unproven: set[str] = set()
        self._why = ""

    def outcomes(
        self, steps: typing.Sequence[NodeStep], rolls: typing.Sequence[PoolPlan], seconds: float
    ) -> typing.Iterator[NodeOutcome]:
        """Roll the MachineConfigPools once, and yield the outcome of each node of the steps. If a node fails before the
        roll, no pool rolls, and the other nodes are left as they are.

        :param steps: steps of the nodes of these pools, at least one
        :param rolls: planned rolls of the pools
        :param seconds: time limit in seconds for one wave of a pool
        :raises LeaseLost: another run changes the cluster
        """
        begin = self._clock()
        self._did = {step.node: [] for step in steps}
        limit = seconds * max((roll.waves or 1 for roll in rolls), default=1) + RENDER
        waits = steps[0].phase == "wait"
        if waits:
            failed = self._run_on_each_node(self._taken_up, steps)
        else:
            refused = self._find_dry_run_refusal()
            failed = (
                {step.node: refused for step in steps}
                if refused is not None
                else self._run_on_each_node(self._begin_node, steps)
            )
        if not failed:
            names = [roll.name for roll in rolls] if waits else self._apply_and_pause_pools()
            if names is None:
                failed = {
                    step.node: NodeFailed(
                        self._why, "Correct the error in this message, then rerun: no node was rebooted"
                    )
                    for step in steps
                }
            else:
                self._release_pools(names, limit)
                failed = self._run_on_each_node(self._finish_node, steps)
                yield from (self._build_outcome(step, failed.get(step.node), begin) for step in steps)
                return
        if not waits:
            failed.update(
                self._run_on_each_node(self._remove_mark, [step for step in steps if step.node in self._noted])
            )
        for step in steps:
            if step.node in failed:
                yield self._build_outcome(step, failed[step.node], begin)
            else:
                why = (
                    "The roll of the MachineConfigPool was not started because nodes failed:"
                    f" {', '.join(sorted(failed)[:5])}"
                )
                yield NodeOutcome(
                    step.node,
                    "left",
                    why,
                    "Rerun: the roll continues where it ended",
                    tuple(self._did[step.node]),
                    self._clock() - begin,
                )

    def _run_on_each_node(
        self, work: typing.Callable[[NodeStep], None], steps: typing.Sequence[NodeStep]
    ) -> dict[str, RdmaError]:
        """Call a function with the step of each node, several nodes at the same time. Return the errors that it raised,
        by node.

        :param work: function that gets the step of a node
        :param steps: steps of the nodes
        :raises LeaseLost: another run changes the cluster
        """
        found: dict[str, RdmaError] = {}
        for step, outcome in many.iterate_outcomes(work, steps, _PARALLEL, RdmaError):
            if isinstance(outcome, LeaseLost):
                raise outcome
            if isinstance(outcome, RdmaError):
                found[step.node] = outcome
        return found

    def _build_outcome(self, step: NodeStep, error: typing.Optional[RdmaError], begin: float) -> NodeOutcome:
        did, seconds = tuple(self._did[step.node]), self._clock() - begin
        if isinstance(error, _Stopped):
            return NodeOutcome(step.node, "left", error.seen, error.remedy, did, seconds)
        if error is not None:
            return NodeOutcome(step.node, "failed", error.seen, error.remedy, did, seconds)
        if step.node in self._unproven:
            return NodeOutcome(
                step.node,
                "unproven",
                "the node was rebooted, but its settings have not been verified since",
                "Rerun: this collection verifies the settings and does not reset the node again",
                did,
                seconds,
            )
        return NodeOutcome(step.node, "done", did=did, seconds=seconds)

    # Before the pools are touched

    def _find_dry_run_refusal(self) -> typing.Optional[RdmaError]:
        """Apply the objects in a dry run. Return the error if the API server would refuse an object. Return None
        otherwise.

        :raises LeaseLost: another run changes the cluster
        """
        try:
            outcomes = self._pools.prepare(self._hosts, True, self._scope).outcomes
        except LeaseLost:
            raise
        except RdmaError as error:
            return error
        told = "; ".join(
            f"{one.applied.kind} {one.applied.name}: {one.applied.refusal}"
            for one in outcomes
            if one.applied.action == "refused"
        )
        return (
            NodeFailed(
                f"the API server rejected {told}",
                "Correct the error in this message, then rerun: nothing was changed",
            )
            if told
            else None
        )

    def _begin_node(self, step: NodeStep) -> None:
        """Record in the mark of a node the differences that the reboot has to correct, and set the values that differ.
        Then record in the mark that the node is about to be rebooted.

        :param step: step of the node
        :raises RdmaError: the node cannot be marked, or a value cannot be set
        """
        node, noted = self._work.node(step.node)
        identities = tuple(one.identity for one in (*step.differences, *self._work.hidden(step.node)))
        mine = self._noted[step.node] = Mark(identities, node.boot_id, pool=step.pool)
        # the operator cordons it in its turn
        self._work.mark(step.node, mine, False if noted is not None and noted.cordoned else None, noted)
        self._did[step.node] += self._work.set(step.node)
        now, _noted = self._work.node(step.node)
        self._noted[step.node] = dataclasses.replace(mine, boot=now.boot_id, reset=True)
        self._work.mark(step.node, self._noted[step.node])

    def _taken_up(self, step: NodeStep) -> None:
        node, noted = self._work.node(step.node)
        self._noted[step.node] = noted or Mark((), node.boot_id, pool=step.pool)
        self._work.hidden(step.node)

    def _remove_mark(self, step: NodeStep) -> None:
        """Remove the mark of a node that was not rebooted. Values that were set in its BIOS wait for its next reboot.

        :param step: step of the node
        """
        self._work.mark(step.node, None)

    # The roll

    def _apply_and_pause_pools(self) -> typing.Optional[typing.Sequence[str]]:
        """Apply the objects, and return the names of the pools that were paused for them and must be unpaused. Return
        None if an object was refused and no pool was paused.

        After an error, return an empty tuple. The error is kept as the reason for the nodes, and pools that are marked
        as paused by the collection are unpaused later.

        :raises LeaseLost: another run changes the cluster
        """
        try:
            prepared = self._pools.prepare(self._hosts, False, self._scope)
        except LeaseLost:
            raise
        except RdmaError as error:
            # whatever it has paused says so by itself, and is let go
            self._why = str(error)
            return ()
        refused = [
            f"{one.applied.kind} {one.applied.name}: {one.applied.refusal}"
            for one in prepared.outcomes
            if one.applied.action == "refused"
        ]
        self._why = "; ".join(filter(None, (*refused, prepared.error)))
        return None if refused and not prepared.paused else prepared.paused

    def _release_pools(self, names: typing.Sequence[str], limit: float) -> None:
        self._released = True
        try:
            self._rolls = {roll.pool: roll for roll in self._pools.release(names, limit, self._inventory, self._scope)}
        except LeaseLost:
            raise
        except _Stopped as error:
            self._why = error.seen
        except RdmaError as error:
            self._why = "; ".join(filter(None, (self._why, str(error))))
        self._released = False
        try:
            self._wanted = {pool.name: pool.wanted_config for pool in machines.read_machine_pools(self._cluster)}
        except ApiError as error:
            self._why = self._why or error.text

    def _finish_node(self, step: NodeStep) -> None:
        """Finish a node after the roll of its pool: verify that it was rebooted to the new configuration and that its
        settings are the desired ones.

        :param step: step of the node
        :raises RdmaError: the node was not rebooted to its new configuration, or its settings are not the desired ones
        :raises _Stopped: the node is not finished, because the user asked the run to stop
        """
        node, _now = self._work.node(step.node)
        noted, did = self._noted[step.node], self._did[step.node]
        roll = self._rolls.get(step.pool, Roll(step.pool))
        rebooted, through = (
            node.boot_id not in ("", noted.boot),
            bool(node.machine_config) and node.machine_config == self._wanted.get(step.pool),
        )
        why = roll.error or self._why
        if not (node.ready and through) or (why and not rebooted):
            if self._stop():
                raise _Stopped(
                    "The roll was stopped, but the machine config operator continues",
                    "Rerun: the run waits for the node and does not reset it again",
                )
            raise NodeFailed(
                f"MachineConfigPool {step.pool} did not reboot the node to its new configuration:"
                f" {why or 'no reason is reported'}",
                _WAIT,
            )
        if rebooted:
            did.append(describe_reboot(step.pool))
        elif step.differences:
            self._work.mark(step.node, None)
            told = (
                f"MachineConfigPool {step.pool} applied its configuration to the node without a reboot, so the other"
                " settings still wait for a reset"
            )
            raise NodeFailed(told, "Rerun: the BMC then resets the node")
        if not self._work.end(step, noted, did):
            self._unproven.add(step.node)

    def _sleep_unless_stopped(self, seconds: float) -> None:
        self._sleep(seconds)
        if self._released and self._stop():
            raise _Stopped("The roll was stopped", "Rerun")
