# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the nodes of a wave that may be reset now, given the present state of the cluster. Pure."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.control_plane import explain_why_kept, is_control_plane
from ..._analysis.controllers.drains.gate import explain_upgrade
from ..._analysis.controllers.drains.room import explain_unread_turns, find_room
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.node_roll import NodeStep, RollPlan
from ..._model.kubernetes.objects import ClusterNode
from .blockers import add_node_blockers, explain_not_ready, explain_taken
from .roll_cluster import RollCluster


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
    down = {step.node: why for step in wave if step.node in known and (why := explain_not_ready(known[step.node]))}
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
            kept = explain_taken(step.node, cluster)
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
    blockers = add_node_blockers(anew, node, cluster, intent, inventory, ()).blockers
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
    why = explain_taken(node, cluster) or (room.refusal if busy else "")
    passes = not explain_unread_turns(cluster) and cluster.taken.keys() <= ours - {node}
    return why, passes


def _is_control(step: NodeStep, known: typing.Mapping[str, ClusterNode], cluster: RollCluster) -> bool:
    return step.node in known and is_control_plane(known[step.node], cluster.nodes)


def _explain_unfinished(cluster: RollCluster, finished: typing.Container[str]) -> str:
    """Return the reason, with a remedy, why the roll of a MachineConfigPool must not begin yet: another operator may
    still reboot a node that this roll has reset. Return an empty text if the roll may begin.

    :param finished: names of the nodes whose turn of this roll is over
    """
    turns = (turn for turn in cluster.turns if turn.operator != "machine_config")
    found = sorted((name, why) for turn in turns for name, why in turn.nodes.items() if name in finished)
    return f"{found[0][0]}: {found[0][1]}. Wait until the operator is done with the node, then rerun." if found else ""
