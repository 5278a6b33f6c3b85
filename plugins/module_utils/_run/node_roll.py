# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings nodes to what is wanted of them, with one reset of each: set, drain, reset, wait, look again, wave after wave.

What is done so far is noted at the node, and which boot it was before: so a run that was killed is taken up again wherever that was. A node is reset
while its boot is that one, and never again for what did not take. The first node that fails ends the roll; those after it are untouched.
Nodes that the machine config operator reboots anyway take that reboot, see pool_ride.py, and no BMC resets a node beside it.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from .._check.controllers.control_plane import is_control_plane, keeps
from .._check.controllers.sriov_operator import machine_pool_of
from .._model.errors import ParseError, RdmaError
from .._model.host import HostConfig
from .._model.intent import ClusterIntent
from .._model.kubernetes import ClusterNode
from .._model.lease import LeaseLost
from .._model.node_roll import Difference, Mark, NodeOutcome, NodeRoll, NodeStep, OutcomeState, RollPlan, Seen
from .._observe import machines, many
from .._observe.kubernetes import ApiError, Clock, Resource
from .._observe.kubernetes import Cluster as Api
from .._observe.patience import AWAY, PatientCluster
from .._observe.redfish.bmc import BmcError
from .._parse.kubernetes import core, etcd, machine_config
from .._parse.kubernetes.resource import mapping_at, name_of
from .._parse.kubernetes.roll_mark import ANNOTATION, mark
from .._plan.node_firmware import FIRMWARE
from .._plan.node_roll import Cluster, action_of, line, plan, turn, why_not_again
from .._plan.node_sources import KERNEL
from .._render.roll_mark import marked
from .drain import Drain, NodeFailed
from .health_checks import HealthChecks
from .pool_ride import Ride, Work, rebooted_by

Say = typing.Callable[[str], None]
#: causes after which nobody knows whether a BMC took a reset
_UNKNOWN = ("closed", "timeout", "busy")
#: times that a node is drained which takes pods again before it is reset
_DRAINS = 3
#: where to look for why something did not take
_WHERE = {
    "BIOS": "See the log of its BMC, and its setup screen.",
    KERNEL: "See /proc/cmdline of the node, and the entries of its boot loader.",
    FIRMWARE: "See mstconfig -e query on the node; some HCAs take it only when the power is away.",
}


class Source(typing.Protocol):
    """Something that may differ on nodes and is set before a reset.

    :ivar live: a look shows the node as it is now. Otherwise it shows what was seen before the roll, and nothing of what came of a reset
    :ivar of_pools: it is asked of the nodes of MachineConfigPools as well, which have it by a MachineConfig otherwise
    """

    live: bool
    of_pools: bool

    def look(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, Seen]:
        """What differs now; without the nodes that it knows nothing of."""

    def set(self, node: str) -> str:
        """Set what differs; what was done in words. Again it does nothing.

        :raises RdmaError: nothing was set
        """


class Power(typing.Protocol):
    """Who resets nodes."""

    def prove(self, nodes: typing.Iterable[str]) -> typing.Mapping[str, Seen]:
        """Why it can't reset these nodes (refusals, with what to do), and what of its power over them is not proven (notes)."""

    def reset(self, node: str, power_cycle: bool) -> str:
        """Order it once; its kind.

        :raises BmcError: it was not taken, or nobody knows
        """


@dataclasses.dataclass(frozen=True)
class Limits:
    """Seconds.

    :ivar look: between two looks at a node
    :ivar drain: until all pods are gone
    :ivar back: from the reset until the node is Ready
    :ivar settle: that a BMC has until it tells what came of the reset: some tell it late
    :ivar api: that the API server may be away at each step
    :ivar grace: without a sign of a reset that was ordered by a run that ended, before it is ordered again. A kubelet is Ready for 40 s after it is gone
    """

    look: float = 5.0
    drain: float = 1800.0
    back: float = 1800.0
    settle: float = 120.0
    grace: float = 120.0
    api: float = AWAY


class Roller:
    """Rolls the nodes of one cluster.

    :param stop: whether to end before the next node
    :param hosts: MachineConfigs and KubeletConfigs that are wanted
    """

    def __init__(
        self,
        cluster: Api,
        sources: typing.Sequence[Source],
        power: Power,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        stop: typing.Callable[[], bool] = lambda: False,
        limits: Limits = Limits(),
        hosts: typing.Sequence[Resource] = (),
    ) -> None:
        self._cluster = PatientCluster(cluster, limits.api, clock, self._pause_for, say)
        self._sources, self._power = tuple(sources), power
        self._clock, self._sleep, self._say, self._stop, self._limits = clock, pause, say, stop, limits
        self._intent = ClusterIntent()
        self._drain = Drain(self._cluster, clock, self._pause, say, limits.drain, self._intent.drain)
        self._checks = HealthChecks(self._cluster, say)
        self._over = False
        self._hosts, self._inventory = tuple(hosts), typing.cast(typing.Tuple[str, ...], ())
        self._pooled: typing.Set[str] = set()
        #: what was noted at nodes that their MachineConfigPool has rebooted since
        self._ridden: typing.Dict[str, Mark] = {}
        self._unproven: typing.Set[str] = set()
        self._planned = RollPlan()
        #: what this run has noted at nodes
        self._noted: typing.Dict[str, Mark] = {}

    def plan(self, nodes: typing.Iterable[str], intent: ClusterIntent) -> RollPlan:
        """What is to be done now.

        :raises ApiError: the nodes can't be listed
        :raises ResourceError: an object that is none of its kind
        """
        cluster, self._inventory, self._intent = self._read(), tuple(nodes), intent
        self._drain = Drain(self._cluster, self._clock, self._pause, self._say, self._limits.drain, intent.drain)
        self._pooled = {node.name for node in cluster.nodes if node.machine_config or machine_pool_of(node, cluster.machine_pools) is not None}
        marks = ((node, cluster.marks.get(node.name)) for node in cluster.nodes)
        self._ridden = {node.name: noted for node, noted in marks if noted is not None and noted.pool and noted.reset and node.boot_id != noted.boot}
        seen = self._look(self._inventory)
        # a reset that nobody could order is told before anything is touched
        for node, told in self._power.prove([node for node, one in seen.items() if action_of(one.differences) in ("reboot", "power_cycle")]).items():
            seen[node] += told
        return plan(seen, cluster, intent, self._inventory)

    def prove(self, planned: RollPlan) -> NodeRoll:
        """Only what a look after the resets has shown: the end of nodes that were reset. Nothing is begun.

        :raises LeaseLost: another run changes the cluster
        """
        later = ("something else differs now. Run again: it is planned then.",)
        steps = (step if not step.is_due or step.phase == "finish" else dataclasses.replace(step, blockers=later, wave=0) for step in planned.steps)
        return self.roll(dataclasses.replace(planned, steps=tuple(steps), refusal="", rolls=(), pauses=()))

    def roll(self, planned: RollPlan, check_mode: bool = False) -> NodeRoll:
        """Do it, and what became of each node.

        :raises LeaseLost: another run changes the cluster
        """
        self._planned = planned
        found = {step.node: _untouched(step, planned, check_mode) for step in planned.steps}
        if check_mode or planned.refusal:
            changes = () if planned.refusal else tuple(line(step) for step in planned.steps if step.is_due)
            return NodeRoll(planned, tuple(found.values()), changes=changes)
        try:
            self._checks.pause(planned.pauses)
        except ApiError:
            # before anything is touched
            self._let_checks_go_on()
            raise
        self._run(planned, found)
        error = self._let_checks_go_on()
        changes = tuple(f"{one.node}: {', '.join(one.did)}" for one in found.values() if one.did)
        return NodeRoll(planned, tuple(found.values()), error, changes)

    def _run(self, planned: RollPlan, found: typing.Dict[str, NodeOutcome]) -> None:
        """All waves, one after the other. What may go is counted anew before each of them: what has no place now comes next.

        :param found: takes what became of each node
        """
        alone = tuple((step,) for step in planned.steps if step.is_due and not step.wave and not step.pool)
        rides = (planned.rides,) if planned.rides else ()
        # a pool that is under way has nodes away already
        first = rides and planned.rides[0].phase == "wait"
        stopped = ""
        waves = collections.deque((*rides, *alone, *planned.waves) if first else (*alone, *planned.waves, *rides))
        while waves:
            every = wave = waves.popleft()
            stopped = stopped or ("It was told to stop" if self._stop() else "")
            if not stopped:
                wave, why = self._turn_of(every, planned)
                stopped = "" if wave else f"The roll ended, since no further node may go ({why.rstrip('.')}),"
            if stopped:
                for step in every:
                    found[step.node] = NodeOutcome(step.node, "left", f"{stopped} before its turn", "Run again: it goes on where it ended")
                continue
            rest = tuple(step for step in every if step not in wave)
            if rest:
                waves.appendleft(rest)
            also = {step: self._node(step.node)[0].boot_id for step in planned.steps if step.also} if wave[0].pool else {}
            for outcome in self._ride(wave, planned) if wave[0].pool else self._outcomes(wave):
                found[outcome.node] = outcome
                self._say(f"{outcome.node}: {outcome.state}" + (f": {outcome.why}" if outcome.why else "") + f" ({outcome.seconds:.0f} s)")
            for step in (step for step, boot in also.items() if self._node(step.node)[0].boot_id != boot):
                found[step.node] = dataclasses.replace(found[step.node], did=(*found[step.node].did, rebooted_by(step.also)))
            failed = [step.node for step in wave if found[step.node].state == "failed"]
            stopped = f"The roll ended at {', '.join(failed)}" if failed else ""

    def _turn_of(self, wave: typing.Sequence[NodeStep], planned: RollPlan) -> typing.Tuple[typing.Tuple[NodeStep, ...], str]:
        """Who of a wave may go now, and why not all. While nobody may, a node that is about to be Ready again is waited for a little."""
        if not any(step.goes and step.phase == "begin" for step in wave):
            return tuple(wave), ""
        end = self._clock() + self._limits.grace
        while True:
            going, why = turn(wave, self._read(pods=False, members=True), planned, self._intent, self._inventory)
            # the roll of a pool is for all of its nodes or for none
            whole = not wave[0].pool or len(going) == len(wave)
            if (going and whole) or self._clock() >= end:
                return (going if whole else ()), why
            self._pause()

    def _let_checks_go_on(self) -> str:
        """The health checks that this run has paused, or one that was killed. Where a node is not back yet its own stay paused.

        :returns: why they could not be let go on; empty where all is well
        :raises LeaseLost: another run changes the cluster
        """
        try:
            self._checks.release_all()
        except LeaseLost:
            raise
        except RdmaError as error:
            return f"whether each health check that this roll has paused goes on is not known: {error.seen}"
        return ""

    def _outcomes(self, wave: typing.Sequence[NodeStep]) -> typing.Iterator[NodeOutcome]:
        """Those of a wave, whose nodes are worked on at the same time. When one of them ends the roll, the others go no further."""
        try:
            for _step, outcome in many.outcomes(self._turn, wave, len(wave), LeaseLost):
                if isinstance(outcome, LeaseLost):
                    raise outcome
                yield outcome
        except BaseException:
            self._over = True
            raise

    def _ride(self, steps: typing.Sequence[NodeStep], planned: RollPlan) -> typing.Iterator[NodeOutcome]:
        """Those that the machine config operator reboots."""
        work = Work(self._node, self._mark, self._set, self._hidden, self._end)
        ride = Ride(work, self._cluster, self._hosts, self._inventory, self._clock, self._sleep, self._say, self._stop)
        try:
            yield from ride.outcomes(steps, planned.rolls, self._limits.drain + self._limits.back)
        except BaseException:
            self._over = True
            raise

    # What there is

    def _look(self, nodes: typing.Iterable[str], live_only: bool = False) -> typing.Dict[str, Seen]:
        named, found = tuple(nodes), typing.cast(typing.Dict[str, Seen], {})
        for source in (source for source in self._sources if source.live or not live_only):
            for node, shown in source.look([node for node in named if source.of_pools or node not in self._pooled or node in self._ridden]).items():
                seen = shown if source.of_pools or node not in self._pooled else _of_ridden(shown, self._ridden[node])
                found[node] = found.get(node, Seen()) + seen
                if not source.live and (seen.differences or seen.error or seen.blind):
                    self._unproven.add(node)
        # in the order of the inventory
        return {node: found[node] for node in named if node in found}

    def _read(self, pods: bool = True, members: bool = False) -> Cluster:
        """:param pods: also what a drain asks, MachineConfigs, health checks and etcd
        :param members: also the members of etcd
        """
        resources = self._cluster.list("Node").items
        marks: typing.Dict[str, typing.Optional[Mark]] = {}
        for resource in resources:
            try:
                noted = mark(resource)
            except ParseError:
                marks[name_of(resource)] = None
                continue
            if noted is not None:
                marks[name_of(resource)] = noted
        unread: typing.Dict[str, str] = {}
        names = {name_of(resource) for resource in resources if f"{machine_config.DAEMON}currentConfig" in mapping_at(resource, "metadata", "annotations")}

        def items(kind: str, *place: str) -> typing.Tuple[Resource, ...]:
            try:
                return self._cluster.list(kind, *place).items
            except ApiError as error:
                if not error.absent:
                    unread[kind] = error.text
                return ()

        def host_config(wanted: Resource) -> HostConfig:
            """One that can't be read keeps BMCs from the nodes of pools."""
            try:
                return machines.host_config(self._cluster, wanted)
            except ApiError as error:
                unread[str(wanted["kind"])] = error.text
                return machine_config.host_config(wanted)

        nodes = tuple(map(core.node, resources))
        control = (pods or members) and any(is_control_plane(node) for node in nodes)
        etcds = [item for place in etcd.PODS for item in items("Pod", *place)] if control else []
        if "Pod" in unread:
            unread["etcd"] = unread["Pod"]
        checks, blind = self._checks.read(nodes) if pods else ((), {})
        unread.update(blind)
        pools = tuple(map(machine_config.machine_pool, items("MachineConfigPool")))
        configs = tuple(map(host_config, self._hosts)) if pools and pods else ()
        kubelet = any(config.kind == "KubeletConfig" and not config.there for config in configs)
        return Cluster(
            nodes=nodes,
            marks=marks,
            pods=tuple(map(core.pod, items("Pod"))) if pods else (),
            budgets=tuple(map(core.budget, items("PodDisruptionBudget"))) if pods else (),
            machine_pools=pools,
            unread=unread,
            configs=configs,
            kubelets=machines.others(items("KubeletConfig"), self._hosts) if kubelet else (),
            machines=frozenset(names),
            etcd=tuple(map(etcd.member, etcds)),
            health_checks=checks,
        )

    # One node

    def _turn(self, step: NodeStep) -> NodeOutcome:
        begin, did = self._clock(), typing.cast(typing.List[str], [])
        state: OutcomeState = "done"
        why = remedy = ""
        try:
            if not self._work(step, did):
                state, why, remedy = "unproven", "it was reset, and nobody has looked at it since", "Run again: it is looked at, and not reset again"
        except LeaseLost:
            raise
        except RdmaError as error:
            state, why, remedy = "failed", error.seen, error.remedy
        return NodeOutcome(step.node, state, why, remedy, tuple(did), self._clock() - begin)

    def _work(self, step: NodeStep, did: typing.List[str]) -> bool:
        """Whether it is known to be as wanted.

        :raises RdmaError: it is not
        """
        node, noted = self._node(step.node)
        if step.phase == "finish":
            self._finish(step, noted or Mark(), step.untaken, did)
        elif step.action == "set":
            did += self._set(step.node)
            self._check(step, self._settled(step.node))
        else:
            sure = True
            if step.phase == "begin" or noted is None:
                noted, sure = self._begin(step, node, noted, did)
            noted = self._wait(step, noted, did, sure)
            return self._end(step, noted, did)
        return True

    def _set(self, name: str) -> typing.List[str]:
        """Set what differs, at each source; what was done in words.

        :raises RdmaError: not all was set
        """
        return [done for source in self._sources for done in [source.set(name)] if done]

    def _hidden(self, name: str) -> typing.Tuple[Difference, ...]:
        """What a MachineConfig sets, so that only a look at the node shows that it took it."""
        found = [source.look([name]).get(name, Seen()) for source in self._sources if not source.of_pools]
        if any(seen.differences or seen.error for seen in found):
            self._unproven.add(name)
        return tuple(one for seen in found for one in seen.differences)

    def _end(self, step: NodeStep, noted: Mark, did: typing.List[str]) -> bool:
        """The end of a node that is back; whether it is known to be as wanted.

        :raises RdmaError: it is not
        """
        left = self._settled(step.node)
        if left.error:
            self._finish(step, noted, (), did, keep=True)
        self._check(step, left)
        unproven = step.node in self._unproven
        self._finish(step, noted, left.differences, did, keep=unproven)
        return not unproven

    def _begin(self, step: NodeStep, node: ClusterNode, noted: typing.Optional[Mark], did: typing.List[str]) -> typing.Tuple[Mark, bool]:
        """Up to the reset: the note, and whether it is sure that it was taken. What goes wrong before it leaves the node as it was,
        but for what waits in its BIOS.

        :raises RdmaError: it was not reset
        """
        mine = Mark(tuple(one.identity for one in step.differences), node.boot_id, noted is not None and noted.cordoned)
        self._mark(step.node, mine)
        try:
            did += self._set(step.node)
            mine = self._cordoned(node, mine, did)
            self._drain.work(step.node, did)
            now, _noted = self._node(step.node)
            if now.boot_id != mine.boot:
                # somebody else has reset it meanwhile, which is as good
                return self._reset_noted(step.node, mine), True
            return self._reset(step, self._reset_noted(step.node, mine), did)
        except LeaseLost:
            raise
        except RdmaError:
            self._undo(step.node, mine, did)
            raise

    def _cordoned(self, node: ClusterNode, mine: Mark, did: typing.List[str]) -> Mark:
        """The note of a node that takes no pods."""
        if node.unschedulable:
            return mine
        mine = dataclasses.replace(mine, cordoned=True)
        self._mark(node.name, mine, True)
        did.append("cordoned")
        return mine

    def _undo(self, name: str, mine: Mark, did: typing.List[str]) -> None:
        """A node that was not reset is as before."""
        mine = self._noted.get(name, mine)
        self._mark(name, None, False if mine.cordoned else None)
        did += ["uncordoned"] if mine.cordoned else []

    def _reset_noted(self, name: str, mine: Mark) -> Mark:
        """Before it is ordered: a run that is killed in between finds the same boot, and knows that it did not come."""
        mine = dataclasses.replace(mine, reset=True)
        self._mark(name, mine)
        return mine

    def _reset(self, step: NodeStep, mine: Mark, did: typing.List[str]) -> typing.Tuple[Mark, bool]:
        """Order it, when the node is still empty; the note, and whether it is sure that it was taken. Never beside the machine config operator.

        :raises BmcError: the BMC did not take it
        :raises NodeFailed: the control plane does not bear it, the machine config operator is about to reboot it, or it takes pods again and again
        :raises ApiError: whether it is can't be read
        """
        for _drain in range(_DRAINS):
            self._is_borne(step)
            # nothing but the BMC is asked after this look
            node, _noted = self._node(step.node)
            if node.boot_id != mine.boot:
                return mine, True
            if node.unschedulable and not self._drain.left(step.node):
                return mine, self._ordered(step, did)
            self._say(f"{step.node}: it takes pods again before its reset; it is cordoned and drained once more")
            mine = self._cordoned(node, mine, did)
            self._drain.work(step.node, did)
        remedy = f"Find out who uncordons it or gives its pods a nodeName, and run again: kubectl get pods -A --field-selector spec.nodeName={step.node}"
        raise NodeFailed(f"it was not reset: it takes pods again and again, after {_DRAINS} drains as well", remedy)

    def _may_go_again(self, step: NodeStep) -> None:
        """:raises NodeFailed: what was planned by a run that ended may not be done now"""
        why = why_not_again(step, self._read(), self._planned, self._intent, self._inventory)
        if why:
            raise NodeFailed(
                f"the reset that another run noted did not come, and it was not reset now: {why.rstrip('.')}", "Do what is said there, and run again"
            )

    def _is_borne(self, step: NodeStep) -> None:
        """A drain takes its time, and another control-plane node may have gone meanwhile, or a MachineConfigPool may have begun.

        :raises NodeFailed: its BMC may not reset it
        """
        cluster, remedy = self._read(pods=False, members=True), "Do what is said there, and run again: it is reset then"
        for node in (node for node in cluster.nodes if node.name == step.node):
            why = keeps(node, cluster.nodes, cluster.etcd, cluster.unread.get("etcd", ""))
            if why:
                raise NodeFailed(f"it was drained, and not reset: {why.rstrip('.')}", remedy)
            why = cluster.in_the_way(node, self._inventory)
            if why:
                raise NodeFailed(f"its BMC did not reset it: {why.rstrip('.')}", remedy)

    def _ordered(self, step: NodeStep, did: typing.List[str]) -> bool:
        """Whether it is sure that the BMC took it.

        :raises BmcError: it did not
        """
        self._go_on()
        try:
            kind = self._power.reset(step.node, step.action == "power_cycle")
        except BmcError as error:
            if error.cause not in _UNKNOWN:
                raise
            self._say(f"{step.node}: whether the BMC took the reset is not known ({error.what}); the node will show it")
            did.append("reset (not known whether taken)")
            return False
        did.append(f"reset ({kind})")
        return True

    def _wait(self, step: NodeStep, noted: Mark, did: typing.List[str], sure: bool) -> Mark:
        """Until it is Ready with another boot; the note.

        :param sure: whether the BMC took the reset
        :raises RdmaError: it is not, after the limit
        """
        begin, told, ordered = self._clock(), "", step.phase == "begin"
        while True:
            now, words = self._clock() - begin, ""
            try:
                node, _noted = self._node(step.node)
            except ApiError as error:
                # the API server may be on its way as well
                words = f"the API server does not tell of it: {error.text}"
            else:
                again = node.boot_id not in ("", noted.boot)
                if again and node.ready:
                    return noted
                words = f"booted anew, not Ready: {node.not_ready}" if again else f"not Ready: {node.not_ready}" if not node.ready else "still up"
                if not again and node.ready and now >= self._limits.grace:
                    if not sure:
                        self._undo(step.node, noted, did)
                        raise NodeFailed("its BMC did not take the reset: the node is still up", "See the log of the BMC, and run again")
                    if not ordered:
                        # the run that noted it was killed before it could order it
                        ordered, begin = True, self._clock()
                        try:
                            self._may_go_again(step)
                            noted, sure = self._reset(step, noted, did)
                        except NodeFailed:
                            # nobody has ordered it, or it was lost
                            self._undo(step.node, noted, did)
                            raise
            if now >= self._limits.back:
                remedy = f"See its console, then its kubelet. Run again when it is back: it is not reset again. It is cordoned: kubectl uncordon {step.node}"
                raise NodeFailed(f"not back {now:.0f} s after its reset: {words}", remedy)
            if words != told:
                self._say(f"{step.node}: {words} ({now:.0f} s)")
            told = words
            self._pause()

    def _settled(self, name: str) -> Seen:
        """What still differs, once the BMC has had its time."""
        end = self._clock() + self._limits.settle
        while True:
            seen = self._look([name], live_only=True).get(name, Seen())
            if not (seen.error or seen.differences) or self._clock() >= end:
                return seen
            self._pause()

    def _check(self, step: NodeStep, seen: Seen) -> None:
        if seen.error:
            raise NodeFailed(f"whether it took what was set is not known: {seen.error}", "Have the BMC answer, and run again: the node is not reset again")
        if step.action == "set" and seen.differences:
            raise _not_taken(step.node, seen.differences, "when it was set")

    def _finish(self, step: NodeStep, noted: Mark, left: typing.Sequence[Difference], did: typing.List[str], keep: bool = False) -> None:
        """The end of a node: it takes pods again, if it did before. The note stays where a reset did not help, or nobody knows.

        :raises RdmaError: it did not help
        """
        stays = dataclasses.replace(noted, cordoned=False) if left or keep else None
        self._mark(step.node, stays, False if noted.cordoned else None)
        did += ["uncordoned"] if noted.cordoned else []
        if left:
            raise _not_taken(step.node, left, "at the reset")

    def _node(self, name: str) -> typing.Tuple[ClusterNode, typing.Optional[Mark]]:
        resource = self._cluster.get("Node", "", name)
        return core.node(resource), mark(resource)

    def _pause(self) -> None:
        self._pause_for(self._limits.look)

    def _pause_for(self, seconds: float) -> None:
        self._sleep(seconds)
        self._go_on()

    def _go_on(self) -> None:
        """After each pause and before each change: of a roll that was interrupted nothing is done or undone any more, and the next run takes it up."""
        if self._over:
            raise KeyboardInterrupt

    def _mark(self, name: str, noted: typing.Optional[Mark], unschedulable: typing.Optional[bool] = None) -> None:
        self._go_on()
        if noted is not None:
            self._noted[name] = noted
        self._cluster.patch("Node", "", name, marked(noted, unschedulable))


def _of_ridden(seen: Seen, noted: Mark) -> Seen:
    """Of what its MachineConfig sets: what it was rebooted for. What else differs is a matter of the next roll of its pool."""
    return dataclasses.replace(seen, differences=tuple(one for one in seen.differences if one.identity in noted.differences), refusals=())


def _not_taken(name: str, left: typing.Sequence[Difference], when: str) -> RdmaError:
    told = ", ".join(map(str, left))
    where = " ".join(_WHERE[source] for source in dict.fromkeys(one.source for one in left) if source in _WHERE)
    remedy = f"{where} The node is not reset again for that. To have it tried once more: kubectl annotate node {name} {ANNOTATION}-"
    return NodeFailed(f"did not take {when}: {told}", remedy.strip())


def _untouched(step: NodeStep, planned: RollPlan, check_mode: bool) -> NodeOutcome:
    """What becomes of a node that nothing is done about."""
    if step.untaken:
        error = _not_taken(step.node, step.untaken, "at the reset")
        return NodeOutcome(step.node, "failed", error.seen, error.remedy)
    if step.blockers:
        return NodeOutcome(step.node, "unknown" if step.action == "unknown" else "blocked", " ".join(step.blockers))
    if step.is_due:
        return NodeOutcome(step.node, "blocked" if planned.refusal else "planned", planned.refusal)
    return NodeOutcome(step.node, "nothing")
