# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes nodes to their desired settings with one reset each: set, drain, reset, wait, verify. Nodes are processed in
waves, one wave after the other.

The progress and the boot id before the reset are stored in an annotation of the node (its mark), so that the next run
can continue a killed one. A node is reset only while it still has that boot id, and never again for a setting that did
not take effect. The first node that fails ends the roll, and the nodes after it are not changed. A node whose pods do
not leave is skipped, because tenants create these pods. Nodes that the machine config operator reboots anyway use that
reboot (see pool_reboot.py), and no BMC resets a node at the same time.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.controllers.machine_configs.pools import find_machine_pool
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.node_roll import NodeOutcome, NodeRoll, NodeStep, RollPlan
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster as Api
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.patience import PatientCluster
from ..._observe.kubernetes.shell import Clock
from ..._observe.kubernetes.whose_scope import learn_scope
from ..._observe.process import many
from ..._plan.rolls.node_steps import choose_action
from ..._plan.rolls.plan_roll import plan_roll
from ..._plan.rolls.plan_text import describe_step
from ..._plan.rolls.roll_cluster import RollCluster
from ..._plan.rolls.turns import choose_turn
from ..._plan.scope import build_scope
from .health_checks import HealthChecks
from .machine_configs.paused_pools import PoolView, find_paused_pools
from .machine_configs.pool_reboot import PoolReboot, Work, describe_reboot
from .node_sources import Source, Sources
from .roll_cluster import RollClusterReader
from .turns.node_resets import PowerControl
from .turns.node_turns import NodeTurns
from .turns.roll_limits import USUAL, RollInterrupt, RollLimits, Say
from .turns.settings_check import not_taken

#: times the limit of a drain that nodes may take together which are then left out, since their pods do not go
MOST_DRAINS = 2


class NodeRoller:
    """A client that plans and carries out a roll of the nodes of one cluster.

    :param cluster: client of the API server
    :param sources: sources of the settings, such as the BIOS
    :param power: component that resets nodes
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :param stop: function that returns whether to end the roll before the next node
    :param limits: time limits of the roll
    :param hosts: desired MachineConfigs and KubeletConfigs, as they are rendered
    """

    def __init__(
        self,
        cluster: Api,
        sources: typing.Sequence[Source],
        power: PowerControl,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        stop: typing.Callable[[], bool] = lambda: False,
        limits: RollLimits = USUAL,
        hosts: typing.Sequence[Resource] = (),
    ) -> None:
        self._going = RollInterrupt(pause)
        self._cluster = PatientCluster(cluster, limits.api, clock, self._going.pause, say)
        self._checks, self._sources, self._power = HealthChecks(self._cluster, say), Sources(sources), power
        self._clock, self._sleep, self._say, self._stop, self._limits, self._hosts = (
            clock,
            pause,
            say,
            stop,
            limits,
            tuple(hosts),
        )
        self._reader = RollClusterReader(self._cluster, self._checks, self._hosts)
        self._turns = NodeTurns(self._cluster, self._reader, self._sources, power, self._going, clock, say, limits)

    def plan(self, nodes: typing.Iterable[str], intent: ClusterIntent) -> RollPlan:
        """Return the plan of the roll for the current state of the cluster: the step of each node, and their order.
        Nothing is changed.

        :param nodes: names of the nodes of the inventory
        :param intent: settings of the intent that all fabrics share
        :raises ApiError: the nodes cannot be listed
        :raises ResourceError: an object is malformed
        """
        self._reader.begin(intent)
        cluster, inventory = self._reader.read(), tuple(nodes)
        cluster = dataclasses.replace(cluster, paused_by_others=self._find_others_pauses(cluster, intent, inventory))
        self._turns.begin(intent, inventory)
        pooled = {
            node.name
            for node in cluster.nodes
            if node.machine_config or find_machine_pool(node, cluster.machine_pools) is not None
        }
        marks = ((node, cluster.marks.get(node.name)) for node in cluster.nodes)
        ridden = {
            node.name: noted
            for node, noted in marks
            if noted is not None and noted.pool and noted.reset and node.boot_id != noted.boot
        }
        self._sources.set_roll_state(pooled, ridden)
        seen = self._sources.look(inventory)
        # a reset that nobody could order is told before anything is touched
        for node, told in self._power.prove(
            [node for node, one in seen.items() if choose_action(one.differences) in ("reboot", "power_cycle")]
        ).items():
            seen[node] += told
        return plan_roll(seen, cluster, intent, inventory)

    def _find_others_pauses(
        self, cluster: RollCluster, intent: ClusterIntent, inventory: tuple[str, ...]
    ) -> frozenset[str]:
        """Return the names of the MachineConfigPools that interrupted runs of other intents left paused.

        :param cluster: state of the cluster
        :param intent: settings of the intent that all fabrics share
        :param inventory: names of the nodes of the run
        """
        if not any(pool.paused_by_us for pool in cluster.machine_pools):
            return frozenset()
        scope = learn_scope(self._cluster, build_scope((), intent, inventory))
        return frozenset(find_paused_pools(PoolView(self._cluster), scope).others)

    def prove(self, planned: RollPlan) -> NodeRoll:
        """Finish the nodes that an earlier run has reset: verify their settings by the latest observation, and remove
        their marks. Return the outcome of each node. No other step of the plan is started.

        :param planned: plan of the roll, with the steps of all nodes
        :raises LeaseLost: another run changes the cluster
        """
        later = ("other settings differ now. Rerun: the next run plans this change.",)
        steps = (
            step if not step.is_due or step.phase == "finish" else dataclasses.replace(step, blockers=later, wave=0)
            for step in planned.steps
        )
        return self.roll(dataclasses.replace(planned, steps=tuple(steps), refusal="", rolls=(), pauses=()))

    def roll(self, planned: RollPlan, check_mode: bool = False) -> NodeRoll:
        """Carry out the plan, and return the outcome of each node. If the plan is refused, nothing is changed.

        :param planned: plan of the roll, with the steps of all nodes
        :param check_mode: whether to change nothing, and return the planned outcomes
        :raises LeaseLost: another run changes the cluster
        :raises ApiError: the health checks cannot be paused
        :raises RdmaError: the first wave cannot begin, because the cluster cannot be read
        """
        self._turns.roll.planned, self._turns.roll.finished = planned, set()
        found = {step.node: _build_untouched_outcome(step, planned, check_mode) for step in planned.steps}
        if check_mode or planned.refusal:
            changes = () if planned.refusal else tuple(describe_step(step) for step in planned.steps if step.is_due)
            return NodeRoll(planned, tuple(found.values()), changes=changes)
        try:
            self._checks.pause(planned.pauses, self._turns.roll.intent.intent_name)
        except ApiError:
            # before anything is touched
            self._let_checks_go_on()
            raise
        try:
            self._run_waves(planned, found)
        except LeaseLost:
            # another run has the cluster by now, and lets them go on
            raise
        except Exception:
            self._let_checks_go_on()
            raise
        error = self._let_checks_go_on()
        changes = tuple(f"{one.node}: {', '.join(one.did)}" for one in found.values() if one.did)
        return NodeRoll(planned, tuple(found.values()), error, changes)

    def _run_waves(self, planned: RollPlan, found: dict[str, NodeOutcome]) -> None:
        """Run all waves, one after the other. Before each wave, determine again which of its nodes may go down now. The
        others form the next wave. After a failed node, the nodes of all further waves are left as they are.

        :param planned: plan of the roll
        :param found: outcomes by node, updated by this method
        """
        alone = tuple((step,) for step in planned.steps if step.is_due and not step.wave and not step.pool)
        rides = (planned.rides,) if planned.rides else ()
        # a pool that is under way has nodes away already
        first = rides and planned.rides[0].phase == "wait"
        stopped, begun, late = "", False, 0.0
        waves = collections.deque((*rides, *alone, *planned.waves) if first else (*alone, *planned.waves, *rides))
        while waves:
            every = wave = waves.popleft()
            stopped = stopped or ("The roll was stopped" if self._stop() else "")
            if not stopped:
                try:
                    wave, why = self._turn_of(every, planned)
                except LeaseLost:
                    raise
                except RdmaError as error:
                    if not begun:
                        raise
                    # what became of the nodes before is known, and is kept
                    wave, why = (), error.seen
                stopped = "" if wave else f"The roll ended because no further node may start ({why.rstrip('.')}),"
            if stopped:
                for step in every:
                    found[step.node] = NodeOutcome(
                        step.node,
                        "left",
                        f"{stopped} before the turn of this node",
                        "Rerun: the roll continues where it ended",
                    )
                continue
            rest = tuple(step for step in every if step not in wave)
            if rest:
                waves.appendleft(rest)
            also = {step: self._read_boot(step) for step in planned.steps if step.also} if wave[0].pool else {}
            begun = True
            for outcome in self._run_pool_reboot(wave, planned) if wave[0].pool else self._process_wave(wave):
                found[outcome.node] = outcome
                self._say(
                    f"{outcome.node}: {outcome.state}"
                    + (f": {outcome.why}" if outcome.why else "")
                    + f" ({outcome.seconds:.0f} s)"
                )
            self._turns.roll.finished |= {step.node for step in wave}
            for step, boot in also.items():
                found[step.node] = self._judge_boot(step, boot, found[step.node])
            failed = [step.node for step in wave if found[step.node].state == "failed"]
            stopped = f"The roll ended at {', '.join(failed)}" if failed else ""
            undrained = [found[step.node].seconds for step in wave if found[step.node].state == "blocked"]
            late += max(undrained, default=0.0)
            if undrained and late >= MOST_DRAINS * self._limits.drain:
                stopped = stopped or f"The roll ended after {late:.0f} s because nodes could not be drained,"

    def _read_boot(self, step: NodeStep) -> typing.Union[str, RdmaError]:
        """Return the boot id of a node, or the error if its Node cannot be read. A kubelet may make the Node too large
        to be read.

        :param step: step of the node
        :raises LeaseLost: another run changes the cluster
        """
        try:
            return self._turns.marks.boot_id(step.node)
        except LeaseLost:
            raise
        except RdmaError as error:
            return error

    def _judge_boot(self, step: NodeStep, before: typing.Union[str, RdmaError], outcome: NodeOutcome) -> NodeOutcome:
        """Return the outcome of a node, completed with the reboot that the roll of its MachineConfigPool has caused in
        addition, if there was one.

        :param step: step of the node, with the name of the pool
        :param before: boot id of the node before the roll, or the error that prevented its reading
        :param outcome: outcome of the node's own step
        :raises LeaseLost: another run changes the cluster
        """
        after = self._read_boot(step)
        for boot in (before, after):
            if isinstance(boot, RdmaError):
                why = f"it is unknown whether MachineConfigPool {step.also} rebooted the node: {boot.seen}"
                state = outcome.state if outcome.state in ("failed", "unknown") else "unproven"
                told = "; ".join(filter(None, (outcome.why, why)))
                return dataclasses.replace(outcome, state=state, why=told, remedy=outcome.remedy or boot.remedy)
        if after == before:
            return outcome
        return dataclasses.replace(outcome, did=(*outcome.did, describe_reboot(step.also)))

    def _turn_of(self, wave: typing.Sequence[NodeStep], planned: RollPlan) -> tuple[tuple[NodeStep, ...], str]:
        """Return two values: the nodes of a wave that may be taken down now, and the reason if these are not all of its
        nodes (empty otherwise).

        While no node may go down, wait until enough nodes are Ready and etcd has all of its members, at most for the
        limit ``whole`` of the roll. While an operator takes down a node that this roll has reset, the limit is
        ``operator``. After the limit, the result may have no nodes.

        :param wave: steps of the wave
        :param planned: plan of the roll
        """
        if not any(step.goes and step.phase == "begin" for step in wave):
            return tuple(wave), ""
        begin, told = self._clock(), ""
        end, last = begin + self._limits.whole, begin + max(self._limits.whole, self._limits.operator)
        while True:
            cluster, finished = self._reader.read(pods=False, members=True), self._turns.roll.finished
            going, why = choose_turn(
                wave, cluster, planned, self._turns.roll.intent, self._turns.roll.inventory, finished
            )
            now, busy = self._clock(), finished & cluster.taken.keys()
            if busy:
                # after the operator, the nodes have the whole limit again
                end = min(now + self._limits.whole, last)
            # the roll of a pool is for all of its nodes or for none
            whole = not wave[0].pool or len(going) == len(wave)
            if (going and whole) or now >= end:
                return (going if whole else ()), why
            if why != told:
                self._say(f"the next nodes wait at most {(last if busy else end) - now:.0f} s: {why}")
            told = why
            self._going.pause(self._limits.look)

    def _let_checks_go_on(self) -> str:
        """Resume the health checks that this run or a killed run has paused. The checks of a node that is not Ready
        again stay paused.

        :returns: reason why they could not be resumed; empty on success
        :raises LeaseLost: another run changes the cluster
        """
        try:
            self._checks.release_all()
        except LeaseLost:
            raise
        except RdmaError as error:
            return f"it is unknown whether every health check that this roll paused was resumed: {error.seen}"
        return ""

    def _process_wave(self, wave: typing.Sequence[NodeStep]) -> typing.Iterator[NodeOutcome]:
        """Carry out the steps of a wave at the same time, and yield the outcome of each node in the order of
        completion. An exception also ends the steps of the other nodes.

        :param wave: steps of the nodes
        :raises LeaseLost: another run changes the cluster
        """
        try:
            for _step, outcome in many.iterate_outcomes(self._turns.outcome, wave, len(wave), LeaseLost):
                if isinstance(outcome, LeaseLost):
                    raise outcome
                yield outcome
        except BaseException:
            self._going.over = True
            raise

    def _run_pool_reboot(self, steps: typing.Sequence[NodeStep], planned: RollPlan) -> typing.Iterator[NodeOutcome]:
        """Change the nodes that the machine config operator reboots, and yield the outcome of each node.

        :param steps: steps of these nodes
        :param planned: plan of the roll
        """
        work = Work(
            self._turns.marks.node, self._turns.marks.mark, self._sources.set, self._sources.hidden, self._turns.end
        )
        ride = PoolReboot(
            work,
            self._cluster,
            self._hosts,
            self._turns.roll.inventory,
            self._clock,
            self._sleep,
            self._say,
            self._stop,
            self._turns.roll.intent,
        )
        try:
            yield from ride.outcomes(steps, planned.rolls, self._limits.drain + self._limits.back)
        except BaseException:
            self._going.over = True
            raise


def _build_untouched_outcome(step: NodeStep, planned: RollPlan, check_mode: bool) -> NodeOutcome:
    """Return the outcome of a node before the roll has changed it: that of a plan in check mode, or of a node that the
    roll leaves as it is.

    :param step: step of the node
    :param planned: plan of the roll
    """
    if step.untaken:
        error = not_taken(step.node, step.untaken, "at the reset")
        return NodeOutcome(step.node, "failed", error.seen, error.remedy)
    if step.blockers:
        return NodeOutcome(step.node, "unknown" if step.action == "unknown" else "blocked", " ".join(step.blockers))
    if step.is_due:
        return NodeOutcome(step.node, "blocked" if planned.refusal else "planned", planned.refusal)
    return NodeOutcome(step.node, "nothing")
