# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a roll: the resets by which all nodes get their desired settings, with one reboot of each node, in waves that
leave enough nodes available. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.controllers.budgets import PodsOfCluster, find_held_pods
from .._analysis.controllers.control_plane import describe_shape, explain_why_kept, is_control_plane, list_control_plane
from .._analysis.controllers.drain import list_drain_blockers
from .._analysis.controllers.gate import (
    explain_too_many,
    explain_upgrade,
    list_node_blockers,
    list_pool_blockers,
)
from .._analysis.controllers.health_checks import list_watching
from .._analysis.controllers.machine_config_operator import find_rollout_blocker, under_way
from .._analysis.controllers.room import (
    GateInputs,
    explain_unread_turns,
    find_rebooted_control,
    find_room,
)
from .._analysis.controllers.sriov_operator import find_machine_pool, is_evicted
from .._analysis.disruption.machine_config import Machines
from .._model.base.text import join_first
from .._model.intent.intent import ClusterIntent
from .._model.kubernetes.control_plane import HealthCheck
from .._model.kubernetes.disruption import Budget, ClusterPod, PoolPlan
from .._model.kubernetes.host import HOST_KINDS, HostConfig
from .._model.kubernetes.node_roll import Mark, Needs, NodeDifference, NodeDifferences, NodeStep, RollPlan, StepAction
from .._model.kubernetes.objects import ClusterNode
from .._parse.kubernetes.roll_mark import ANNOTATION
from .machine_roll import add_rolls, read_held

_RANK: dict[Needs, int] = {"nothing": 0, "reboot": 1, "power_cycle": 2}
_ACTIONS: tuple[StepAction, ...] = ("set", "reboot", "power_cycle")
#: why a node is not taken down that another client has cordoned, such as an admin, kured or Cluster API
CORDONED = "the node is cordoned, but not by this roll, so the roll neither resets nor uncordons it"
UNCORDON = "When the work on the node is done, uncordon it, then rerun: kubectl uncordon {node}"
_BROKEN = f"The annotation {ANNOTATION} of the node could not be read, so it is unknown whether the node was reset"


@dataclasses.dataclass(frozen=True)
class RollCluster(GateInputs, PodsOfCluster):
    """The state of the cluster from which a roll is planned.

    :ivar marks: record of an earlier roll, by node. None if the record cannot be read; nodes without a record are
        absent
    :ivar pods: pods that drains would evict
    :ivar budgets: PodDisruptionBudgets of these pods
    :ivar configs: MachineConfigs and KubeletConfigs to apply
    :ivar kubelets: existing objects that can conflict with ``configs``: KubeletConfigs that the collection does not
        manage, and the present MachineConfig of each pool that would lose limits of CRI-O
    :ivar machines: names of the nodes on which OpenShift's machine config operator runs a daemon
    :ivar paused_by_others: names of the MachineConfigPools that interrupted runs of other intents left paused
    """

    marks: typing.Mapping[str, typing.Optional[Mark]] = dataclasses.field(default_factory=dict)
    pods: tuple[ClusterPod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    configs: tuple[HostConfig, ...] = ()
    kubelets: tuple[HostConfig, ...] = ()
    machines: frozenset[str] = frozenset()
    paused_by_others: frozenset[str] = frozenset()

    @property
    def has_machine_configs(self) -> bool:
        """Whether the machine config operator manages nodes of the cluster, also while it changes all of them."""
        return bool(self.machines) or super().has_machine_configs

    @property
    def cordoned(self) -> frozenset[str]:
        """The names of the nodes that a roll has cordoned, according to their marks."""
        return frozenset(name for name, mark in self.marks.items() if mark is not None and mark.cordoned)

    def explain_cordon(self, node: ClusterNode) -> str:
        """Return why a roll must not take a node down because another client has cordoned it, with a remedy. Return an
        empty text if it may, or if an operator takes the node down, which cordons it too.
        """
        if not node.unschedulable or node.name in self.cordoned or node.name in self.taken:
            return ""
        return f"{CORDONED}. {UNCORDON.format(node=node.name)}."

    def in_the_way(self, node: ClusterNode, inventory: typing.Container[str]) -> str:
        """Return the reason why a node must not be reset by its BMC, with a remedy: the machine config operator reboots
        the node, or it is not known whether it does. Return an empty text if its BMC may reset it.

        :param inventory: names of the nodes of the inventory
        """
        kinds = [kind for kind in ("MachineConfigPool", *HOST_KINDS) if kind in self.unread]
        if kinds and node.name in self.machines:
            told = "; ".join(f"{kind}: {self.unread[kind]}" for kind in kinds)
            return (
                f"it is unknown whether the machine config operator reboots the node ({told}). Grant the user of the"
                " kubeconfig the rights of docs/rbac/look.yml."
            )
        why, remedy = find_rollout_blocker(node, self.machine_pools, self.nodes, inventory)
        return f"{why}. {remedy}." if why else ""


def plan_roll(
    seen: typing.Mapping[str, NodeDifferences],
    cluster: RollCluster,
    intent: ClusterIntent,
    inventory: typing.Optional[typing.Iterable[str]] = None,
) -> RollPlan:
    """Return the plan of a roll. Each node that needs a reset gets a step. A node that cannot be reset now gets the
    reason in its step and is not reset. If the intent does not allow the resets, or their effect is not known, the plan
    as a whole is refused.

    :param seen: differences of each node from its desired settings, from all sources (such as BIOS and firmware)
        together
    :param inventory: names of the nodes; by default those of ``seen``
    """
    known = {node.name: node for node in cluster.nodes}
    names = tuple(seen if inventory is None else inventory)
    # a node of which nobody knows anything has a step while its MachineConfigPool reboots it
    every = tuple(
        _plan_node_step(name, seen.get(name, NodeDifferences()), known.get(name), cluster, names)
        for name in names
        if name in seen or name in known
    )
    machines = Machines(
        cluster.configs, cluster.kubelets, cluster.machine_pools, cluster.nodes, cluster.pods, cluster.budgets
    )
    every, pools = add_rolls(every, machines, cluster.paused_by_others)
    awaited = {step.node for step in every if step.is_due and step.phase != "begin"}
    every = tuple(
        _looked_into(step, known[step.node], cluster, intent, names, awaited) if _goes_down(step) else step
        for step in every
    )
    every, pools = read_held(every, tuple(_find_pool_blockers(roll, cluster, intent, names) for roll in pools))
    # of what a run began and nobody asks for any more its end is left
    steps = [step for step in every if step.node in seen or step.pool or step.also or step.node in cluster.marks]
    resets = [step for step in steps if step.goes]
    control = frozenset(node.name for node in list_control_plane(cluster.nodes))
    shapes = describe_shape(cluster.nodes, [step.node for step in resets])
    # those of a pool that is under way are away for it
    ours = {step.node for step in steps if step.goes or (step.pool and step.phase == "wait")}
    free = find_room(cluster, intent, names, ours | _find_awaiting(cluster))
    most, limit, left = free.most, free.limit, free.left
    if resets and intent.disruption != "reboot":
        told = join_first([f"{step.node} ({_describe_reset_reasons(step)})" for step in resets], 5)
        refusal = (
            f"rdma_cluster.disruption is {intent.disruption}, but these nodes require a drain and a reset: {told}. "
        )
        refusal += "When the nodes may be rebooted, set rdma_cluster.disruption to reboot, then rerun."
        return RollPlan(tuple(steps), most, limit, refusal)
    missing = {kind: why for kind, why in cluster.unread.items() if kind in ("Pod", "PodDisruptionBudget")}
    if resets and missing:
        told = "; ".join(f"{kind}: {why}" for kind, why in missing.items())
        refusal = (
            f"The effects of a drain on the pods are unknown ({told}). Grant the user of the kubeconfig the right to"
            " list these objects (docs/rbac/look.yml)."
        )
        return RollPlan(tuple(steps), most, limit, refusal)
    if resets and free.refusal:
        return RollPlan(tuple(steps), most, limit, free.refusal)
    limit += f"; {len(free.away)} already unavailable" if free.away and resets else ""
    watchers = (
        [list_watching(known[step.node], cluster.health_checks) for step in resets]
        if intent.pause_health_checks
        else []
    )
    pauses = tuple(check for check in cluster.health_checks if any(check in found for found in watchers))
    waves = _order_in_waves(steps, max(1, left), control)
    return RollPlan(waves, max(1, left), limit, rolls=pools, most=most, shape=shapes, pauses=pauses)


def _find_awaiting(cluster: RollCluster) -> set[str]:
    """Return the names of the nodes that the machine config operator is about to take down in a MachineConfigPool in
    which an earlier roll marked a node. The operator may itself wait until this roll releases the marked node. If these
    nodes counted as unavailable, the plan would be refused and the marked node never released. They are counted later,
    in :func:`choose_turn`, before it lets another node go down.
    """
    marked = (node for node in cluster.nodes if node.name in cluster.marks)
    held = {pool.name for node in marked if (pool := find_machine_pool(node, cluster.machine_pools)) is not None}
    turns = (turn for turn in cluster.all_turns if turn.operator == "machine_config" and turn.pool in held)
    return {name for turn in turns for name in turn.nodes}


def choose_turn(
    wave: typing.Sequence[NodeStep],
    cluster: RollCluster,
    planned: RollPlan,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    finished: typing.Container[str] = (),
) -> tuple[tuple[NodeStep, ...], str]:
    """Return two values: the steps of the nodes of a wave that may be reset now, given the present state of the
    cluster; and the first reason why another node of the wave may not be reset, with a remedy. The reason is empty if
    all nodes may be reset.

    Nodes that are already being reset (phase ``wait``) continue. Further nodes are added until max_unavailable nodes
    are down, with at most one control-plane node at a time.

    :param wave: steps of the nodes that are reset together
    :param cluster: present state of the cluster, with an upgrade of OpenShift in progress, and with the members of etcd
        if the wave has a control-plane node
    :param planned: steps and order of all nodes of the roll
    :param inventory: names of the nodes of the inventory
    :param finished: names of the nodes whose turn of this roll is over. An operator may take them down because of their
        reset
    """
    known = {node.name: node for node in cluster.nodes}
    going = [step for step in wave if step.phase != "begin" or not step.goes]
    begun = {step.node for step in going}
    # a node that an earlier run has cordoned and that has a turn of its own is not away by that
    later = {step.node for step in planned.steps if step.goes and step.node not in finished} & cluster.cordoned
    foreign = {node.name: cordon for node in cluster.nodes if (cordon := cluster.explain_cordon(node))}
    # a node of the wave that went down by itself counts, and is not reset
    down = {step.node: why for step in wave if step.node in known and (why := _explain_not_ready(known[step.node]))}
    mine = {step.node for step in wave if step.node in begun or step.node not in {*cluster.taken, *foreign, *down}}
    free = find_room(cluster, intent, inventory, mine, later)
    room, control, why = (
        planned.most - free.number - len(going),
        any(_is_control(step, known, cluster) for step in going),
        "",
    )
    for step in (step for step in wave if step not in going):
        # the upgrade may have begun after the plan was made
        kept = explain_upgrade(cluster)
        if not kept and _is_control(step, known, cluster) and control:
            kept = "another control-plane node is reset first."
        if not kept and step.node in known:
            kept = explain_why_kept(known[step.node], cluster.nodes, cluster.etcd, cluster.unread.get("etcd", ""))
        if not kept and not step.pool:
            kept = _explain_taken(step.node, cluster)
        if not kept and step.pool:
            kept = _explain_unfinished(cluster, finished)
        kept = kept or foreign.get(step.node, "") or down.get(step.node, "")
        if not kept and not step.pool and room < 1:
            kept = (
                f"no further node may be reset ({planned.limit}), because {', '.join(free.away[:5]) or 'another node'}"
                " is not Ready or is cordoned. Make that node Ready and uncordon it first."
            )
            if any(name in cluster.taken for name in free.away):
                kept = free.refusal or kept
        if kept:
            why = why or f"{step.node}: {kept}"
            continue
        going.append(step)
        room, control = room - 1, (control or _is_control(step, known, cluster)) and not step.pool
    return tuple(step for step in wave if step in going), why


def explain_why_not_again(
    step: NodeStep,
    cluster: RollCluster,
    planned: RollPlan,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    finished: typing.Container[str] = (),
) -> str:
    """Return the reason why a node must not be reset again, although its mark records a reset that did not take place
    because the run was interrupted. Return an empty text if it may be reset. The state of the cluster may have
    changed since then, so all checks that precede a first reset are repeated.

    :param step: step of the node
    :param cluster: present state of the cluster, with pods and etcd
    :param planned: steps and order of all nodes of the roll
    :param inventory: names of the nodes of the inventory
    :param finished: names of the nodes whose turn of this roll is over
    """
    node = next((node for node in cluster.nodes if node.name == step.node), None)
    if node is None:
        return "the node does not exist in the cluster any more"
    anew = dataclasses.replace(step, phase="begin")
    away = {node.name for node in cluster.nodes if not node.ready or node.unschedulable}
    others = tuple(one for one in planned.steps if one.goes and one.phase == "wait" and one.node in away - {step.node})
    blockers = _looked_into(anew, node, cluster, intent, inventory, ()).blockers
    going, why = choose_turn((anew, *others), cluster, planned, intent, inventory, finished)
    return " ".join(blockers) or ("" if anew in going else why)


def explain_turns(
    node: str,
    cluster: RollCluster,
    planned: RollPlan,
    intent: ClusterIntent,
    inventory: typing.Container[str],
) -> tuple[str, bool]:
    """Return two values. The first is the reason, with a remedy, why a drained node must not be reset because of
    operators that take nodes down: an operator takes this node down, or operators take down as many nodes as may be
    unavailable. It is empty if the node may be reset. The second is whether waiting helps: True if the operators only
    take down other nodes that this roll resets.

    :param cluster: present state of the cluster
    :param planned: steps and order of all nodes of the roll
    :param inventory: names of the nodes of the inventory
    """
    # a node with a mark is reset at the same time as this one, and the cordon of another is not one of this roll
    ours = {step.node for step in planned.steps if step.goes}
    room = find_room(cluster, intent, inventory, (node,))
    busy = [name for name in room.away if name in cluster.taken]
    why = _explain_taken(node, cluster) or (room.refusal if busy else "")
    passes = not explain_unread_turns(cluster) and cluster.taken.keys() <= ours - {node}
    return why, passes


def _is_control(step: NodeStep, known: typing.Mapping[str, ClusterNode], cluster: RollCluster) -> bool:
    return step.node in known and is_control_plane(known[step.node], cluster.nodes)


def describe_plan(planned: RollPlan) -> tuple[str, ...]:
    """Return the plan as lines of text for the user: one line for each node that has a step, a blocker or a note, in
    the order of the waves, and lines for the MachineConfigPools that are rolled and the health checks that are paused.
    """
    told = sorted(
        (step for step in planned.steps if step.is_due or step.blockers or step.untaken or step.also or step.notes),
        key=lambda step: (step.wave == 0, step.wave),
    )
    pauses = (
        f"{check}: paused until {', '.join(_list_watched_nodes(check, planned))} is back" for check in planned.pauses
    )
    rolls = (_pool_line(pool) for pool in planned.rolls)
    # the machine config operator goes on by itself
    several = not planned.refusal and sum(step.goes and not step.pool for step in planned.steps) > 1
    end = (
        ["the roll ends at the first node that fails; a node whose pods cannot be evicted is skipped"]
        if several
        else []
    )
    return (
        *([planned.refusal] if planned.refusal else []),
        *planned.shape,
        *(describe_step(step) for step in told),
        *rolls,
        *pauses,
        *end,
    )


def _list_watched_nodes(check: HealthCheck, planned: RollPlan) -> list[str]:
    return [step.node for step in planned.steps if step.goes and check.watches(step.node)]


def _pool_line(pool: PoolPlan) -> str:
    return (
        f"MachineConfigPool {pool.name}: rolled once, {pool.at_once} at a time ({pool.limit}): {', '.join(pool.nodes)}"
    )


def describe_step(step: NodeStep) -> str:
    """Return one step of the plan, with its notes, as a line of text for the user."""
    return "; ".join((_describe_step(step), *step.notes))


def _describe_step(step: NodeStep) -> str:
    also = (
        f"; afterwards also rebooted by {_describe_pool_operator(step.also)}: {', '.join(step.reasons)}"
        if step.also
        else ""
    )
    if also and step.action == "power_cycle":
        also += " (this reboot is not a power cycle)"
    if step.untaken:
        return (
            f"{step.node}: no reset; an earlier reset did not apply {', '.join(map(str, step.untaken))}, so the node"
            f" is not reset again for these settings{also}"
        )
    if step.blockers:
        return f"{step.node}: left out: {'; '.join(step.blockers)}"
    if not step.is_due and not step.also:
        return f"{step.node}: no reset required"
    turn = f" (wave {step.wave})" if step.wave else ""
    pods = f", {len(step.pods)} pods evicted" if step.pods else ""
    if step.pool:
        does = (
            "wait until the node is back after its reboot"
            if step.phase == "wait"
            else "set, one reboot"
            if step.differences
            else "one reboot"
        )
        return f"{step.node}: {does} by {_describe_pool_operator(step.pool)}{pods}" + (
            f": {_describe_reset_reasons(step)}" if step.differences or step.reasons else ""
        )
    what = {
        "set": "set",
        "reboot": f"set, drain, reset by its BMC{pods}",
        "power_cycle": f"set, drain, power cycle by its BMC{pods}",
    }
    taken_up = {
        "wait": "wait until the node is back after its reset",
        "finish": "finish the steps that an earlier run began",
    }.get(step.phase)
    # the kubelet of the node can write there too
    taken_up = f"{taken_up}, according to the annotation {ANNOTATION} of the node" if taken_up else None
    does = taken_up or what.get(step.action, "nothing" if step.also else "finish the steps that an earlier run began")
    return f"{step.node}{turn}: {does}" + (f": {_describe_reset_reasons(step)}" if step.differences else "") + also


def _describe_pool_operator(pool: str) -> str:
    return f"the machine config operator (MachineConfigPool {pool})"


def _describe_reset_reasons(step: NodeStep) -> str:
    """Return the reasons, as text, why a BMC resets the node of a step, or why its MachineConfigPool reboots
    the node.
    """
    return ", ".join(
        (
            *(f"{one}, {one.how}" if one.how else str(one) for one in step.differences),
            *(step.reasons if step.pool else ()),
        )
    )


def choose_action(differences: typing.Sequence[NodeDifference]) -> StepAction:
    """Return the action that corrects all of these differences of a node: the most disruptive one that any of them
    needs, or ``nothing`` if there are none.
    """
    return _ACTIONS[max(_RANK[one.needs] for one in differences)] if differences else "nothing"


def list_untaken(
    differences: typing.Iterable[NodeDifference], mark: typing.Optional[Mark], boot: str
) -> tuple[NodeDifference, ...]:
    """Return the differences that a reset did not correct: they are recorded in the mark, and the node has booted
    since.

    :param mark: record of the earlier reset; None if there was none
    :param boot: id of the current boot; empty if not known
    """
    if mark is None or not mark.reset or not boot or boot == mark.boot:
        return ()
    return tuple(one for one in differences if one.needs != "nothing" and one.identity in mark.differences)


def _plan_node_step(
    name: str,
    seen: NodeDifferences,
    node: typing.Optional[ClusterNode],
    cluster: RollCluster,
    inventory: typing.Container[str],
) -> NodeStep:
    differences = seen.differences
    step = NodeStep(name, choose_action(differences), differences, notes=seen.notes)
    if node is None:
        return _add_blockers(
            step, "unknown", "the cluster has no node with this name. Use the name that the node has in the cluster"
        )
    broken = name in cluster.marks and cluster.marks[name] is None
    if broken and (differences or node.unschedulable):
        return _add_blockers(
            step,
            step.action,
            f"{_BROKEN}. Check the annotation, then remove it: kubectl annotate node {name} {ANNOTATION}-",
        )
    mark = cluster.marks.get(name)
    if mark is not None and mark.reset and mark.pool:
        pool = find_machine_pool(node, cluster.machine_pools)
        if pool is not None and under_way(pool, node, cluster.machine_pools, cluster.nodes, inventory):
            return dataclasses.replace(step, action="reboot", phase="wait", pool=pool.name)
        # a pool that has nothing to do has not rebooted it, and will not
        mark = dataclasses.replace(mark, reset=node.boot_id != mark.boot)
    if mark is not None and mark.reset and (node.boot_id == mark.boot or not node.ready):
        # whatever its BMC says meanwhile: that is looked at when it is back
        return dataclasses.replace(
            step, action="power_cycle" if step.action == "power_cycle" else "reboot", phase="wait"
        )
    if node.boot_id and any(boot != node.boot_id for boot in seen.boots):
        return _add_blockers(
            step,
            "unknown",
            "the node has rebooted since this run read its settings, so the present differences are unknown. Start a"
            " new run, which reads the settings again",
        )
    if seen.error:
        return _add_blockers(step, "unknown", f"{seen.error.rstrip('.')}. The differences are unknown")
    if mark is not None and mark.reset and not mark.cordoned and seen.blind:
        return _add_blockers(
            step, "unknown", f"{seen.blind.rstrip('.')}. It is unknown whether the reset applied the settings"
        )
    again = list_untaken((*differences, *seen.unset), mark, node.boot_id)
    if mark is not None and not differences and not again:
        return dataclasses.replace(step, phase="finish")
    if again:
        return dataclasses.replace(
            step, untaken=again, phase="finish" if mark is not None and mark.cordoned else "begin"
        )
    if seen.refusals:
        return _add_blockers(step, step.action, *seen.refusals)
    return step


def _add_blockers(step: NodeStep, action: StepAction, *why: str) -> NodeStep:
    return dataclasses.replace(
        step, action=action, blockers=tuple(one if one.endswith(".") else f"{one}." for one in why)
    )


def _goes_down(step: NodeStep) -> bool:
    """Return whether a roll step begins now and includes the drain and the reboot of its node, either by its BMC or by
    the machine config operator.
    """
    return step.is_due and step.phase == "begin" and step.action in ("reboot", "power_cycle")


def _looked_into(
    step: NodeStep,
    node: ClusterNode,
    cluster: RollCluster,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    awaited: typing.Container[str],
) -> NodeStep:
    """Return a step that reboots its node with two additions: the pods that the drain evicts, and the reasons against
    taking the node down now (its blockers).

    :param node: the node of the step
    :param cluster: present state of the cluster
    :param inventory: names of the nodes of the inventory
    :param awaited: names of the nodes whose reset an earlier run has begun
    """
    going = [pod for pod in cluster.list_pods(node.name) if is_evicted(pod, True, "")]
    lost = tuple(f"{pod.namespace}/{pod.name}" for pod in going if not pod.owner and not pod.ended)
    blockers = list(filter(None, (_explain_not_ready(node),)))
    if not node.boot_id:
        blockers.append(
            "the kubelet of the node does not report a boot ID, so a reset could not be verified. Restart the kubelet."
        )
    elif node.boot_id == cluster.own_boot and not step.pool:
        # the machine config operator goes on without this run, and uncordons the node. A copied boot ID keeps only the
        # node that copies it from its reset
        blockers.append(
            "ansible-playbook runs on this node (its machine has the same boot ID), so the reset would end the run, and"
            " the node would stay cordoned. Run the playbook on a machine that is not reset, such as another node."
        )
    blockers += list_drain_blockers(going, intent.drain)
    blockers += list_node_blockers(node, cluster, intent, intent.pause_health_checks, awaited)
    # a node whose reset an earlier run has begun waits for the same upgrade
    busy = cluster.in_the_way(node, inventory)
    blockers += filter(None, (explain_upgrade(cluster), _explain_too_many(step, node, cluster), busy))
    # the machine config operator cordons a node that it reboots
    blockers += filter(None, ("" if busy else cluster.explain_cordon(node),))
    if not step.pool:
        blockers += filter(None, (_explain_taken(node.name, cluster),))
    if cluster.marks.get(node.name) is None:
        # a node that was begun waits for them instead: its own drain may be what they lack
        blockers += [
            f"{held}. Allow an eviction, for example with one more replica, then rerun."
            for held in find_held_pods(going, True, "", cluster.budget_index)
        ]
    return dataclasses.replace(
        step, pods=tuple(f"{pod.namespace}/{pod.name}" for pod in going), lost=lost, blockers=tuple(blockers)
    )


def _explain_not_ready(node: ClusterNode) -> str:
    """Return that a node is not Ready, with the remedy. Return an empty text if it is."""
    if node.ready:
        return ""
    return (
        f"the node is not Ready ({node.not_ready or 'the kubelet reports no reason'}). Make the node Ready first:"
        f" kubectl describe node {node.name}."
    )


def _explain_taken(node: str, cluster: RollCluster) -> str:
    """Return the reason, with a remedy, why a BMC must not reset a node: another operator takes the node down, or
    reboots another control-plane node while this node is one. Return an empty text if the BMC may reset the node.
    """
    unread = explain_unread_turns(cluster)
    if unread:
        return unread
    why = cluster.taken.get(node, "")
    if why:
        return f"{why}. Wait until the operator is done with the node, then rerun."
    if not any(one.name == node for one in list_control_plane(cluster.nodes)):
        return ""
    for turn in cluster.all_turns:
        for name in sorted(find_rebooted_control(turn, cluster)):
            return (
                f"the node is a control-plane node, and {turn} reboots the control-plane node {name}"
                f" ({turn.nodes[name]}). Wait until the operator is done with that node, then rerun."
            )
    return ""


def _explain_unfinished(cluster: RollCluster, finished: typing.Container[str]) -> str:
    """Return the reason, with a remedy, why the roll of a MachineConfigPool must not begin yet: another operator may
    still reboot a node that this roll has reset. Return an empty text if the roll may begin.

    :param finished: names of the nodes whose turn of this roll is over
    """
    turns = (turn for turn in cluster.turns if turn.operator != "machine_config")
    found = sorted((name, why) for turn in turns for name, why in turn.nodes.items() if name in finished)
    return f"{found[0][0]}: {found[0][1]}. Wait until the operator is done with the node, then rerun." if found else ""


def _find_pool_blockers(
    roll: PoolPlan, cluster: RollCluster, intent: ClusterIntent, inventory: typing.Container[str]
) -> PoolPlan:
    """Return the planned roll of a MachineConfigPool with further reasons against it, besides those in the steps of its
    nodes: limits of the intent, and reasons against taking down nodes of the pool that are not in the inventory. The
    roll reboots these nodes as well.

    :param inventory: names of the nodes of the inventory
    """
    found = list(list_pool_blockers(roll, intent))
    for node in (node for node in cluster.nodes if node.name in roll.nodes and node.name not in inventory):
        alone = NodeStep(node.name, "reboot", pool=roll.name)
        found += (
            f"{node.name} (not in the inventory): {why}"
            for why in _looked_into(alone, node, cluster, intent, inventory, ()).blockers
        )
    return dataclasses.replace(roll, blockers=(*roll.blockers, *found))


def _explain_too_many(step: NodeStep, node: ClusterNode, cluster: RollCluster) -> str:
    """Return the reason why the MachineConfigPool of a control-plane node must not be rolled: its roll reboots more
    than one control-plane node at the same time. Return an empty text if the pool may be rolled, or if no pool reboots
    the node.
    """
    pool = next((pool for pool in cluster.machine_pools if step.pool and pool.name == step.pool), None)
    return explain_too_many(pool, is_control_plane(node, cluster.nodes)) if pool is not None else ""


def _order_in_waves(
    steps: typing.Sequence[NodeStep], at_once: int, control: typing.Container[str]
) -> tuple[NodeStep, ...]:
    """Return the steps in the same order. A step whose node is reset by a BMC gets the number of its wave; the nodes of
    a wave are reset together. Nodes that an earlier run has already reset are in the first waves, because they are down
    already. A wave has at most one control-plane node.

    :param at_once: maximum number of nodes of a wave
    :param control: names of the control-plane nodes
    """
    resets = [step for step in steps if step.goes and not step.pool]
    number, size, has_control = 1, 0, False
    waves: dict[str, int] = {}
    for step in sorted(resets, key=lambda step: step.phase != "wait"):
        mine = step.node in control
        if size == at_once or (mine and has_control):
            number, size, has_control = number + 1, 0, False
        waves[step.node], size, has_control = number, size + 1, has_control or mine
    return tuple(dataclasses.replace(step, wave=waves[step.node]) if step.node in waves else step for step in steps)
