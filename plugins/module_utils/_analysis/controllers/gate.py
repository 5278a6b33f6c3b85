# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether nodes are permitted to go down now. This gate applies to resets by a BMC, to reboots by the machine
config operator, and to drains and reboots by the SR-IOV operator. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.control_plane import HealthCheck
from ..._model.kubernetes.disruption import MachinePool, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from .control_plane import explain_why_kept, is_control_plane, list_control_plane
from .health_checks import HOW, explain_remediation_risk, list_watching
from .operator_turns import CardTurns, OperatorTurns, count_down, find_queue
from .room import (
    GateInputs,
    explain_unread_turns,
    find_most,
    find_rebooted_control,
    find_room,
    list_counted_nodes,
    list_waiting,
)
from .sriov_operator import find_machine_pool

#: names of the MachineConfigPools of control-plane nodes
_CONTROL = ("master", "control-plane")
#: remedy for an operator that changes all nodes of a policy at the same time
_LABEL_FEWER = (
    "Exclude the NICs under 'measured' of network.disruption from select of the fabric, or give the label in"
    " rdma_cluster.node_selector to at most {most} further node at a time, and run stage network after each"
)

#: turns of operators, each with the names of its nodes that go down without regard to the plans
_TurnsOfOthers = list[tuple[OperatorTurns, set[str]]]


def explain_upgrade(stand: GateInputs) -> str:
    """Return why no node of the cluster may go down, with the remedy: an upgrade of OpenShift is in progress, or it is
    unknown whether one is. Return an empty text if no upgrade is in progress. An upgrade drains and reboots nodes
    itself, without regard to nodes that are down for another reason.

    :param stand: state of the cluster
    """
    if "ClusterVersion" in stand.unread:
        return (
            "whether an upgrade of OpenShift is in progress is unknown (ClusterVersion:"
            f" {stand.unread['ClusterVersion']}). Give the user of the kubeconfig the rights in docs/rbac/look.yml."
        )
    if not stand.upgrade:
        return ""
    return (
        f"an upgrade of OpenShift is in progress, which drains and reboots nodes itself (ClusterVersion version:"
        f" {stand.upgrade.rstrip('.')}). Wait until 'oc get clusterversion version' shows False in the column"
        " PROGRESSING."
    )


def list_node_blockers(
    node: ClusterNode, stand: GateInputs, may_pause: bool, awaited: typing.Container[str] = (), how: str = HOW
) -> tuple[str, ...]:
    """Return the reasons why a node must not go down now, each with its remedy: etcd would lose its quorum, or a health
    check would remediate the node. An upgrade in progress is a reason for the whole cluster: see ``explain_upgrade``.

    :param stand: state of the cluster
    :param may_pause: whether health checks are paused for the node
    :param awaited: names of nodes that this roll has taken down, and that return before this node goes down
    :param how: remedy for a health check
    """
    kept = explain_why_kept(node, stand.nodes, stand.etcd, stand.unread.get("etcd", ""), awaited)
    return (
        *([kept] if kept else []),
        *explain_remediation_risk(node, stand.health_checks, stand.unread, may_pause, how),
    )


def explain_too_many(pool: MachinePool, control: bool) -> str:
    """Return why a MachineConfigPool of control-plane nodes must not be rolled: it reboots more than one of them at the
    same time. Return an empty text if it may be rolled.

    :param control: whether the pool contains a control-plane node. For a pool with the name ``master`` or
        ``control-plane`` this is assumed
    """
    if not (control or pool.name in _CONTROL) or pool.max_unavailable in (None, "1"):
        return ""
    how = f'oc patch machineconfigpool {pool.name} --type merge -p \'{{"spec":{{"maxUnavailable":1}}}}\''
    return (
        f"MachineConfigPool {pool.name} reboots {pool.max_unavailable} control-plane nodes at the same time. Set its"
        f" maxUnavailable to 1: {how}."
    )


def list_roll_blockers(
    rolls: typing.Sequence[PoolPlan],
    drained: typing.Container[str],
    stand: GateInputs,
    machine_pools: typing.Iterable[MachinePool],
    intent: ClusterIntent,
    inventory: typing.Container[str],
) -> tuple[str, ...]:
    """Return the reasons why the nodes of these plans must not go down now, each with its remedy; empty if they may go
    down.

    :param rolls: nodes that an operator will drain or reboot, by pool. Plans of the machine config operator are
        reboots, before which health checks may be paused
    :param drained: names of nodes that are drained but not rebooted. Their kubelet, and with it etcd, continues to run
    :param stand: state of the cluster
    :param machine_pools: MachineConfigPools of the cluster
    :param intent: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    """
    machine_pools = tuple(machine_pools)
    stand = dataclasses.replace(stand, machine_pools=machine_pools)
    known, pools = {node.name: node for node in stand.nodes}, {pool.name: pool for pool in machine_pools}
    going = {name for roll in rolls for name in roll.nodes}
    others = _find_turns_of_others(rolls, stand)
    found = []
    if going:
        waiting = list_waiting(rolls, stand)
        down = _find_down_nodes(rolls, known) - waiting
        # the operator counts only the nodes that it drains itself: it drains the next one beside a node that is down
        leaving = going - down or going
        # so does another operator that has the same nodes
        theirs = {name for _turn, names in others for name in names}
        room = find_room(stand, intent, inventory, (leaving | waiting) - theirs).refusal
        sums = _explain_sum(rolls, others, stand, intent, inventory)
        found = [room or sums, explain_unread_turns(stand), explain_upgrade(stand)]
    control: dict[bool, list[str]] = {True: [], False: []}
    for roll in rolls:
        rebooted = [known[name] for name in roll.nodes if name in known and name not in drained]
        mine = [node.name for node in rebooted if is_control_plane(node, stand.nodes)]
        control[roll.machines] += [_describe_pool(roll)] if mine else []
        if roll.machines and roll.name in pools:
            found.append(explain_too_many(pools[roll.name], bool(mine)))
        elif len(mine) > 1 and roll.at_once != 1:
            how = _LABEL_FEWER.format(most=1) if roll.undrained else "Set its maxUnavailable to 1"
            found.append(
                f"{_describe_pool(roll)} allows more than one control-plane node to go down at the same time"
                f" ({roll.limit}). {how}."
            )
        found += list_pool_blockers(roll, intent)
        how = (
            HOW if roll.machines else "Pause the health check manually until the node is back, then run the stage again"
        )
        for node in rebooted:
            if not roll.machines:
                found.append(_explain_own_boot(node, roll, stand))
            found += [
                f"{node.name}: {why}"
                for why in list_node_blockers(node, stand, roll.machines and intent.pause_health_checks, how=how)
            ]
    labelled = [label for labels in control.values() for label in labels]
    found.append(_explain_control_turns(rolls, labelled, others, stand))
    for labels in control.values():
        if len(labels) > 1:
            found.append(
                f"{' and '.join(labels)} contain control-plane nodes, and each of these pools would take one down at"
                " the same time. Let only one of them proceed at a time."
            )
    return tuple(dict.fromkeys(filter(None, found)))


def _find_down_nodes(rolls: typing.Iterable[PoolPlan], known: typing.Mapping[str, ClusterNode]) -> set[str]:
    """Return the names of the nodes of plans that are NotReady or cordoned now. Plans of the machine config operator
    are ignored, because that operator counts such nodes itself. [machine-config-operator pkg/controller/node/status.go
    getUnavailableMachines]

    :param rolls: nodes that an operator will drain or reboot, by pool
    :param known: nodes of the cluster, by name
    """
    nodes = [known[name] for roll in rolls if not roll.machines for name in roll.nodes if name in known]
    return {node.name for node in nodes if not node.ready or node.unschedulable}


def _find_turns_of_others(rolls: typing.Sequence[PoolPlan], stand: GateInputs) -> _TurnsOfOthers:
    """Return the turns of operators that are not part of the plans, each with the names of those of its nodes that go
    down independently of the plans. The SR-IOV operator and the machine config operator wait for each other on a node,
    so a node of a plan of one of them is left out of the turns of the other. [sriov-network-operator
    pkg/platforms/openshift/openshift.go]

    :param rolls: nodes that an operator will drain or reboot, by pool
    :param stand: state of the cluster
    """
    queues, pair = set(map(find_queue, rolls)), {"sriov", "machine_config"}
    going = {name for roll in rolls for name in roll.nodes}
    waits = bool(pair & {queue[0] for queue in queues if queue})
    return [
        (turn, turn.nodes.keys() - (going if waits and turn.operator in pair else set()))
        for turn in stand.all_turns
        if turn.queue not in queues
    ]


def _explain_sum(
    rolls: typing.Sequence[PoolPlan],
    others: _TurnsOfOthers,
    stand: GateInputs,
    intent: ClusterIntent,
    inventory: typing.Container[str],
) -> str:
    """Return why the plans must not be carried out at the same time, or beside the turns of other operators, with the
    remedy: each operator limits only its own nodes, so together they may take down more nodes than the intent permits.
    Return an empty text if their sum is permitted.

    The SR-IOV operator waits for the MachineConfigPool of a node [sriov-network-operator
    pkg/platforms/openshift/openshift.go], so the numbers of these two operators are not added.

    :param rolls: nodes that an operator will drain or reboot, by pool
    :param others: turns of other operators, each with the names of its nodes
    :param inventory: names of the nodes of the inventory
    """
    counted = {node.name: node for node in list_counted_nodes(stand.nodes, inventory, intent)}
    rolling = {roll.name for roll in rolls if roll.machines}
    parts: dict[str, int] = {}
    awaits = {True: 0, False: 0}
    names: set[str] = set()
    for roll in rolls:
        queue = find_queue(roll)
        waiting = (name for turn in stand.all_turns if turn.queue == queue for name in turn.nodes)
        mine = {*roll.nodes, *waiting} & {*counted}
        number = count_down(roll.at_once, mine)
        names |= mine
        if not number:
            continue
        parts[_describe_pool(roll)] = number
        pools = (find_machine_pool(counted[name], stand.machine_pools) for name in mine)
        if roll.machines or (queue and queue[0] == "sriov" and all(pool and pool.name in rolling for pool in pools)):
            awaits[roll.machines] += number
            parts[_describe_pool(roll)] = 0
    busy = []
    for turn, theirs in others:
        mine = theirs & {*counted}
        if mine:
            parts[str(turn)] = parts.get(str(turn), 0) + count_down(turn.at_once, mine)
            names |= mine
            busy += [f"{name}: {turn.nodes[name]}" for name in sorted(mine)]
    total, (most, limit) = min(len(names), sum(parts.values()) + max(awaits.values())), find_most(intent)
    if len(parts) < 2 or total <= most or max(parts.values()) > most:
        return ""
    remedy = (
        f"Wait until the operator is done ({'; '.join(busy[:5])}), then rerun"
        if busy
        else f"Set rdma_cluster.node_pool.max_unavailable to {total}, then rerun"
        if all(roll.machines for roll in rolls)
        # a higher max_unavailable would become the limit of each of these operators
        else "Change only one of them in a run: restore the present settings of the others in the intent, run the"
        " stage, then change them one after the other"
    )
    return (
        f"{' and '.join(parts)} do not wait for each other, so together they may take down {total} nodes at the same"
        f" time, and the intent permits {most} ({limit}). {remedy}."
    )


def _explain_control_turns(
    rolls: typing.Sequence[PoolPlan], labels: typing.Sequence[str], others: _TurnsOfOthers, stand: GateInputs
) -> str:
    """Return why the plans must not reboot control-plane nodes now, with the remedy: another operator reboots a
    different control-plane node. Return an empty text if they may reboot them.

    :param rolls: nodes that an operator will drain or reboot, by pool
    :param labels: descriptions of the plans that reboot control-plane nodes
    :param others: turns of other operators, each with the names of its nodes
    """
    ours = {node.name for node in list_control_plane(stand.nodes)} & {name for roll in rolls for name in roll.nodes}
    for turn, names in others if labels else ():
        theirs = find_rebooted_control(turn, stand) & names
        if theirs and len(theirs | ours) > 1:
            name = min(theirs)
            return (
                f"{' and '.join(dict.fromkeys(labels))} would reboot control-plane nodes while {turn} reboots the"
                f" control-plane node {name} ({turn.nodes[name]}). Wait until that operator is done with the node, then"
                " rerun."
            )
    return ""


def _explain_own_boot(node: ClusterNode, roll: PoolPlan, stand: GateInputs) -> str:
    """Return why an operator must not reboot a node, with the remedy: ansible-playbook runs on this node. Return an
    empty text if ansible-playbook runs on another machine, or if a boot ID is unknown.
    """
    if not node.boot_id or node.boot_id != stand.own_boot:
        return ""
    return (
        f"{node.name}: ansible-playbook runs on this node (its machine has the same boot ID), and"
        f" {_describe_pool(roll)} reboots it, so the run would end before the other nodes are done. Run the playbook on"
        " a machine that is not rebooted, such as another node."
    )


def list_pool_blockers(roll: PoolPlan, intent: ClusterIntent) -> tuple[str, ...]:
    """Return the reason why a pool must not roll, with its remedy, as a tuple with one text: the operator takes down
    more nodes at the same time than the intent permits. The tuple is empty if the pool may roll. A single node is
    always permitted.

    :param roll: nodes that an operator will drain or reboot
    :param intent: settings of the intent that all fabrics share
    """
    most, limit = find_most(intent)
    # a pool takes down no more nodes than it has in the plan, whatever its own limit is
    number = min(len(roll.nodes), len(roll.nodes) if roll.at_once is None else roll.at_once)
    if number <= most:
        return ()
    more = "all of its nodes" if roll.at_once is None else f"{roll.at_once} nodes"
    other = f"rdma_cluster.node_pool.max_unavailable to {number}"
    if roll.undrained:
        return (
            f"{_describe_pool(roll)} changes {more} at the same time ({roll.limit}), and the intent permits {most}"
            f" ({limit}). {_LABEL_FEWER.format(most=most)}, or set {other}.",
        )
    return (
        f"{_describe_pool(roll)} allows {more} to go down at the same time ({roll.limit}), and the intent permits"
        f" {most} ({limit}). Set {_name_limit(roll)} to {most}, or {other}.",
    )


def _name_limit(roll: PoolPlan) -> str:
    """Return the setting by which an operator limits the number of nodes that it takes down at the same time."""
    if isinstance(roll, CardTurns):
        return "spec.maxParallelOperations of the MaintenanceOperatorConfig default"
    if roll.machines:
        return f"spec.maxUnavailable of MachineConfigPool {roll.name}"
    if roll.driver == "reload":
        return f"autoUpgrade in spec.driver.upgradePolicy of ClusterPolicy {roll.name} to true, and maxParallelUpgrades"
    if roll.driver:
        return f"maxParallelUpgrades in spec.ofedDriver.upgradePolicy of NicClusterPolicy {roll.name}"
    if not roll.name:
        return "disableDrain of the SriovOperatorConfig to false, and maxUnavailable of the SriovNetworkPoolConfig"
    return f"spec.maxUnavailable of SriovNetworkPoolConfig {roll.name}"


def list_pauses(rolls: typing.Iterable[PoolPlan], stand: GateInputs, intent: ClusterIntent) -> tuple[HealthCheck, ...]:
    """Return the health checks to pause while MachineConfigPools roll. The result is empty if the intent does not
    permit pauses.

    :param rolls: nodes that the machine config operator will reboot, by pool
    :param stand: state of the cluster
    :param intent: settings of the intent that all fabrics share
    """
    names = {name for roll in rolls if roll.machines for name in roll.nodes} if intent.pause_health_checks else set()
    watchers = [list_watching(node, stand.health_checks) for node in stand.nodes if node.name in names]
    return tuple(check for check in stand.health_checks if any(check in found for found in watchers))


def _describe_pool(roll: PoolPlan) -> str:
    if isinstance(roll, CardTurns):
        return "NVIDIA's NIC configuration operator"
    if roll.machines:
        return f"MachineConfigPool {roll.name}"
    if roll.undrained:
        return "the SR-IOV operator"
    if roll.driver == "reload":
        return "the GPU operator"
    if roll.driver:
        return "NVIDIA's network operator"
    return f"SriovNetworkPoolConfig {roll.name}" if roll.name else "the default pool of the SR-IOV operator"
