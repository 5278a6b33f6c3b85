# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies MachineConfigs and KubeletConfigs such that each node reboots only once: it pauses the MachineConfigPools,
applies all objects, and unpauses the pools.

A pool that another user has paused is not changed. An annotation with the name of the intent marks a pool that the
collection has paused. If the run is stopped, the next run unpauses it. A teardown unpauses only pools of its intent.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.controllers.machine_configs.rules import find_rendered_configs, has_unrendered_config, is_current
from ...._model.base.marks import DEFAULT_INTENT, INTENT_LABEL, MANAGER, replace_labels
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.apply import AppliedObject
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.host import HostConfig, KubeletStatus, Roll
from ...._model.kubernetes.scope import Scope
from ...._model.operators.olm import RetainedObject
from ...._observe.kubernetes import machines
from ...._observe.kubernetes.apply import apply_all
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.outcome import Outcome, has_our_label
from ...._observe.kubernetes.shell import Clock
from ...._parse.kubernetes.resource import labels_of, name_of
from ...._parse.operators import machine_config
from ..drain import NodeFailed
from ..gate import PoolGate
from .paused_pools import PoolView, explain_by, explain_unrecorded
from .render_waits import LOOK, RenderWaits
from .retained_objects import explain_stay, find_other_pauses, retain_object, retain_pause, retain_unrecorded
from .roll_progress import describe_roll, explain_stuck_pool, find_nodes_outside_run, update_roll

Say = typing.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The state of the MachineConfigPools after the objects were applied or deleted, and before the pools are unpaused.

    :ivar outcomes: changes of the objects
    :ivar paused: names of the pools that must be unpaused
    :ivar error: reason why the configuration was not rendered in time; empty if it was. The pools must be unpaused in
        both cases
    :ivar stays: objects that were not deleted and pools that stay paused, each with the reason
    """

    outcomes: tuple[Outcome, ...]
    paused: tuple[str, ...] = ()
    error: str = ""
    stays: tuple[RetainedObject, ...] = ()


class PoolRoller:
    """A client that rolls the MachineConfigPools of one cluster to a new configuration.

    :param cluster: client of the API server
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :param gate: check whether pools may roll now; None if the caller has already verified it
    :param intent: settings of the intent of the run, of which the name and the node selector are used; None: the
        default intent
    :param scope: objects of the intent, as learnt from the cluster; None: they are derived from the name and the node
        selector of the intent
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        gate: typing.Optional[PoolGate] = None,
        intent: typing.Optional[ClusterIntent] = None,
        scope: typing.Optional[Scope] = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._sleep = pause
        self._say = say
        self._gate = gate
        mine = intent if intent is not None else ClusterIntent()
        self._intent = mine.intent_name or DEFAULT_INTENT
        self._scope = scope if scope is not None else Scope(self._intent, selector=dict(mine.node_selector))
        self._waits = RenderWaits(cluster, clock, pause)

    def prepare(
        self, configs: typing.Sequence[Resource], check_mode: bool, scope: typing.Optional[Scope] = None
    ) -> Prepared:
        """Apply objects such that each node reboots only once: pause the pools that use at least one object that is not
        applied yet, apply all objects, and wait until the pools have rendered them. Return the outcome of each object
        and the paused pools. Objects that a stopped run has applied but that are not rendered yet are awaited too.

        Each object gets a label by which the intent records that it needs the object, because intents with the same
        pool share the objects. No node reboots for a label.

        :param configs: MachineConfigs and KubeletConfigs to apply
        :param check_mode: whether nothing is changed
        :param scope: objects of the intent; a pool that a run of another intent left paused is not among the returned
            ones. None: all pools that the collection has paused are
        :raises ApiError: the API server cannot be reached, or refuses to pause a pool
        :raises NodeFailed: a pool may not roll now. Nothing was applied
        """
        mark = self._scope.user_label
        wanted = [("", replace_labels(config, {**config["metadata"].get("labels", {}), **mark})) for config in configs]
        planned = self._apply(wanted, True)
        if check_mode or any(outcome.applied.action == "refused" for outcome in planned):
            return Prepared(planned)
        pools = machines.read_machine_pools(self._cluster)
        changing = [
            config
            for config, outcome in zip(configs, planned)
            if _changes_nodes(outcome) or self._has_unrendered_pool(config, pools)
        ]
        if not changing:
            if any(outcome.changed for outcome in planned):
                # only labels, of which nothing is rendered
                planned = self._apply(wanted, False)
            # that a change of what was there before is rendered shows by time alone
            mine = [pool for pool in pools if pool.paused_by_us]
            others = find_other_pauses(PoolView(self._cluster), scope) if mine else {}
            left = {pool.name: dataclasses.replace(pool, wanted_config="") for pool in mine if pool.name not in others}
            late = (
                self._waits.await_rendered(
                    left, [machines.read_host_config(self._cluster, config) for config in configs], True
                )
                if left
                else ""
            )
            return Prepared(planned, tuple(left), late)
        before = self._pause([machine_config.host_config(config) for config in changing])
        outcomes = self._apply(wanted, False)
        names = {config["metadata"]["name"] for config in changing}
        self._say(f"{', '.join(sorted(names))} applied while {', '.join(before) or 'no MachineConfigPool'} is paused")
        accepted, refusal = self._waits.await_accepted(changing)
        late = self._waits.await_rendered(before, accepted, True)
        return Prepared(outcomes, tuple(before), "; ".join(filter(None, (refusal, late))))

    def _apply(self, wanted: typing.Sequence[tuple[str, Resource]], check_mode: bool) -> tuple[Outcome, ...]:
        return apply_all(
            self._cluster,
            wanted,
            check_mode,
            self._clock,
            self._sleep,
            scope=self._scope,
            explain_unrecorded=explain_by(self._cluster, self._scope),
        )

    def remove(
        self,
        configs: typing.Sequence[Resource],
        check_mode: bool,
        labelled: typing.Iterable[Resource] = (),
        scope: typing.Optional[Scope] = None,
    ) -> Prepared:
        """Delete objects of the collection such that each node reboots only once: pause the pools that use at least one
        of them, delete all, and wait until the pools have rendered a configuration without them. Return the outcomes
        and the paused pools.

        An object without the label of the collection, or of another intent, is not deleted, and no pool rolls for it. A
        pool that a run of another intent left paused stays paused, unless it uses a deleted object.

        :param configs: MachineConfigs and KubeletConfigs to delete, as they are rendered; those that do not exist are
            ignored
        :param check_mode: whether nothing is changed
        :param labelled: further objects to delete, as they are in the cluster
        :param scope: objects of the intent; None: all objects of the collection are deleted
        :raises ApiError: the API server cannot be reached, or refuses to read, pause or delete
        :raises NodeFailed: a pool may not roll now. Nothing was deleted
        """
        present = [
            live for live in (machines.find_object(self._cluster, config) for config in configs) if live is not None
        ]
        present += labelled
        view = PoolView(self._cluster)
        reasons = [explain_stay(live, scope) for live in present]
        unrecorded = [
            explain_unrecorded(view, live, scope) if scope is not None and not why else ""
            for live, why in zip(present, reasons)
        ]
        stays = tuple(retain_object(live, why, scope) for live, why in zip(present, reasons) if why)
        stays += tuple(retain_unrecorded(live, why) for live, why in zip(present, unrecorded) if why)
        reasons = [why or more for why, more in zip(reasons, unrecorded)]
        found = [live for live, why in zip(present, reasons) if not why]
        pauses = {name: retain_pause(name, why) for name, why in find_other_pauses(view, scope).items()}
        there = [machine_config.host_config(live, live) for live in found]
        outcomes = tuple(
            Outcome(AppliedObject(config.kind, config.name, "", action="deleted"), live)
            for config, live in zip(there, found)
        )
        if not check_mode and scope is not None:
            for live in (live for live, why in zip(present, reasons) if why and has_our_label(live)):
                self._leave_shared(live, scope)
        if check_mode or not there:
            return Prepared(outcomes, stays=(*stays, *pauses.values()))
        before = self._pause(there)
        for config, live in zip(there, found):
            self._cluster.delete(config.kind, "", config.name, only={"uid": live["metadata"]["uid"]})
        self._say(
            f"{', '.join(config.name for config in there)} deleted while {', '.join(before) or 'no MachineConfigPool'}"
            " is paused"
        )
        # a pool that takes a deleted object rolls, whoever has paused it
        stays += tuple(pause for name, pause in pauses.items() if name not in before)
        return Prepared(outcomes, tuple(before), self._waits.await_rendered(before, there, False), stays)

    def release(
        self,
        names: typing.Sequence[str],
        limit: float,
        inventory: typing.Container[str] = (),
        scope: typing.Optional[Scope] = None,
    ) -> tuple[Roll, ...]:
        """Unpause the pools that the collection has paused, wait until all of their nodes have the new configuration,
        and return the roll of each pool. Nodes outside of the inventory are not awaited if they are NotReady. If the
        pools may not roll now, they stay paused, and the rolls have this error; the next run unpauses them.

        :param names: names of the pools that this run has paused
        :param limit: longest wait in seconds
        :param inventory: names of the nodes of the run; empty: all nodes are awaited
        :param scope: objects of the intent; a pool that only a run of another intent left paused stays paused. None:
            all pools that the collection has paused are unpaused
        :raises ApiError: the API server cannot be reached
        """
        view = PoolView(self._cluster)
        pools, others = view.pools, find_other_pauses(view, scope)
        mine = [pool for pool in pools if pool.paused_by_us and (pool.name in names or pool.name not in others)]
        ours = [pool.name for pool in mine]
        rolling = [pool.name for pool in mine if not is_current(pool)]
        left = [name for name in ours if name not in names]
        rolls = {name: Roll(name) for name in (*names, *left)}
        if self._gate is None:
            return self._let_go(ours, rolls, limit, inventory)
        try:
            self._gate.ask(pools, rolling, rendered=True)
        except NodeFailed as error:
            return tuple(
                dataclasses.replace(roll, error=f"{error.seen}. The pool stays paused. {error.remedy}")
                for roll in rolls.values()
            )
        with self._gate.pause_pool_health_checks(pools, rolling):
            return self._let_go(ours, rolls, limit, inventory)

    def _let_go(
        self, ours: typing.Iterable[str], rolls: dict[str, Roll], limit: float, inventory: typing.Container[str]
    ) -> tuple[Roll, ...]:
        for name in ours:
            self._set_paused(name, False)
        begin = self._clock()
        waiting = dict(rolls)
        while waiting:
            seen = {pool.name: pool for pool in machines.read_machine_pools(self._cluster)}
            now = self._clock() - begin
            for name in tuple(waiting):
                rolls[name] = update_roll(rolls[name], seen.get(name), now)
                others = find_nodes_outside_run(self._cluster, name, seen, inventory)
                # where none at all is behind, the pool itself says so some seconds later [pkg/controller/node
                # updateDelay]
                if others and (now >= limit or rolls[name].error or not any(node.ready for node in others)):
                    rolls[name] = dataclasses.replace(rolls[name], error="", others=tuple(node.name for node in others))
                    del waiting[name]
                    self._say(describe_roll(rolls[name]))
                elif rolls[name].error or (name in seen and is_current(seen[name])):
                    del waiting[name]
                    self._say(describe_roll(rolls[name]))
            if waiting and now >= limit:
                return tuple(
                    dataclasses.replace(roll, error=explain_stuck_pool(self._cluster, name, seen, limit))
                    if name in waiting
                    else roll
                    for name, roll in rolls.items()
                )
            if waiting:
                self._sleep(LOOK)
        return tuple(rolls.values())

    def _leave_shared(self, live: Resource, scope: Scope) -> None:
        """Remove from an object that is not deleted the label by which the intent has recorded that it needs the
        object. If the object has the name of this intent and another intent needs it, it gets the name of the other
        intent.

        :param live: the object as it is in the cluster
        :param scope: objects of the intent
        """
        kind, labels = str(live["kind"]), labels_of(live)
        mine = {key: None for key in scope.user_label if key in labels}
        others = scope.find_other_users(kind, live)
        heir = (
            {INTENT_LABEL: min(others.values())}
            if others and labels.get(INTENT_LABEL, scope.intent) == scope.intent
            else {}
        )
        if mine or heir:
            self._cluster.patch(kind, "", name_of(live), {"metadata": {"labels": {**mine, **heir}}}, MANAGER)

    def kubelet(self, configs: typing.Sequence[Resource], inventory: typing.Container[str]) -> KubeletStatus:
        """Return the state of the KubeletConfigs among the objects. Its field ``reached`` has the names of those pools
        of which all nodes of the inventory have their target configuration, while other nodes do not.

        :param configs: MachineConfigs and KubeletConfigs of the intent
        :param inventory: names of the nodes of the run
        :raises ApiError: the API server cannot be reached
        """
        stand = machines.read_kubelet_status(self._cluster, configs)
        seen = {pool.name: pool for pool in stand.pools}
        return dataclasses.replace(
            stand,
            reached=tuple(
                name for name in seen if find_nodes_outside_run(self._cluster, name, seen, inventory) is not None
            ),
        )

    def _has_unrendered_pool(self, config: Resource, pools: typing.Sequence[MachinePool]) -> bool:
        seen = machines.read_host_config(self._cluster, config)
        return any(has_unrendered_config(pool, seen, pools) for pool in pools)

    def _pause(self, changing: typing.Sequence[HostConfig]) -> dict[str, MachinePool]:
        """Pause the pools that use at least one of the objects, and return their states before the pause, by name.
        Pools that another user has paused are left out.

        :param changing: MachineConfigs and KubeletConfigs that change
        :raises NodeFailed: a pool may not roll now. No pool was paused
        """
        pools = machines.read_machine_pools(self._cluster)
        mine = (pool for pool in pools if pool.paused_by_us or not pool.paused)
        before = {
            pool.name: pool for pool in mine if any(find_rendered_configs(pool, config, pools) for config in changing)
        }
        if self._gate is not None:
            self._gate.ask(pools, before)
        for name in before:
            self._set_paused(name, True)
        return before

    def _set_paused(self, name: str, paused: bool) -> None:
        """Pause or unpause a pool. An annotation with the name of the intent marks the pause, and is removed with it.

        :param name: name of the pool
        :param paused: True to pause, False to unpause
        """
        change = {
            "metadata": {"annotations": {machine_config.PAUSED_ANNOTATION: self._intent if paused else None}},
            "spec": {"paused": paused},
        }
        self._cluster.patch("MachineConfigPool", "", name, change, MANAGER)


def _changes_nodes(outcome: Outcome) -> bool:
    """Return whether an outcome changes more than the labels of an object, so that nodes get another configuration.

    :param outcome: planned or real outcome of a MachineConfig or KubeletConfig
    """
    before, after = outcome.before, outcome.after
    return outcome.changed and (before is None or after is None or before.get("spec") != after.get("spec"))
