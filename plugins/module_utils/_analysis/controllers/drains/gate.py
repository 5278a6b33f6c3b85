# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether nodes are permitted to go down now. This gate applies to resets by a BMC, to reboots by the machine
config operator, and to drains and reboots by the SR-IOV operator. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.phrases import describe_unread_remedy
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.control_plane import HealthCheck
from ...._model.kubernetes.disruption import MachinePool, PoolPlan
from ...._model.kubernetes.objects import ClusterNode
from ..machine_configs.pools import find_machine_pool
from .control_plane import explain_why_kept, is_control_plane
from .health_checks import HOW, explain_elsewhere, explain_remediation_risk, list_watching
from .operator_turns import CardTurns, OperatorTurns, Queue, count_down, find_queue
from .peak import find_peak
from .room import RIGHTS, GateInputs, explain_unread_turns, find_most, find_rebooted_control

#: names of the MachineConfigPools of control-plane nodes
_CONTROL = ("master", "control-plane")
#: remedy for an operator that changes all nodes of a policy at the same time
_LABEL_FEWER = (
    "Exclude the NICs under 'measured' of network.disruption from select of the fabric, or give the label in"
    " rdma_cluster.node_selector to at most {most} further node at a time, and run stage network after each"
)


def explain_upgrade(stand: GateInputs) -> str:
    """Return why no node of the cluster may go down, with the remedy: an upgrade of OpenShift is in progress, or it is
    unknown whether one is. Return an empty text if no upgrade is in progress. An upgrade drains and reboots nodes
    itself, without regard to nodes that are down for another reason.

    :param stand: state of the cluster
    """
    if "ClusterVersion" in stand.unread:
        return (
            "whether an upgrade of OpenShift is in progress is unknown (ClusterVersion:"
            f" {stand.unread['ClusterVersion']}). {describe_unread_remedy((stand.unread['ClusterVersion'],), RIGHTS)}."
        )
    if not stand.upgrade:
        return ""
    return (
        f"an upgrade of OpenShift is in progress, which drains and reboots nodes itself (ClusterVersion version:"
        f" {stand.upgrade.rstrip('.')}). Wait until 'oc get clusterversion version' shows False in the column"
        " PROGRESSING."
    )


def list_node_blockers(
    node: ClusterNode,
    stand: GateInputs,
    intent: ClusterIntent,
    may_pause: bool,
    awaited: typing.Container[str] = (),
    how: str = HOW,
) -> tuple[str, ...]:
    """Return the reasons why a node must not go down now, each with its remedy: etcd would lose its quorum, or a health
    check would remediate the node. An upgrade in progress is a reason for the whole cluster: see ``explain_upgrade``.

    :param stand: state of the cluster
    :param intent: settings of the intent that all fabrics share
    :param may_pause: whether health checks are paused for the node
    :param awaited: names of nodes that this roll has taken down, and that return before this node goes down
    :param how: remedy for a health check
    """
    kept = explain_why_kept(node, stand.nodes, stand.etcd, stand.unread.get("etcd", ""), awaited)
    elsewhere = explain_elsewhere(node, stand.machines_elsewhere, intent)
    return (
        *filter(None, (kept, elsewhere)),
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
    peak = find_peak(rolls, stand, intent, inventory, _describe_pool)
    found = []
    if any(roll.nodes for roll in rolls):
        found = [peak.refusal, explain_unread_turns(stand), explain_upgrade(stand)]
    control: list[tuple[PoolPlan, frozenset[str]]] = []
    for roll in rolls:
        rebooted = [known[name] for name in roll.nodes if name in known and name not in drained]
        mine = frozenset(node.name for node in rebooted if is_control_plane(node, stand.nodes))
        control += [(roll, mine)] if mine else []
        waiting = [find_rebooted_control(turn, stand) for turn in stand.all_turns if turn.queue == find_queue(roll)]
        if roll.machines and roll.name in pools:
            found.append(explain_too_many(pools[roll.name], bool(mine)))
        elif mine and len(mine.union(*waiting)) > 1 and roll.at_once != 1:
            how = _LABEL_FEWER.format(most=1) if roll.undrained else "Set its maxUnavailable to 1"
            found.append(
                f"{_describe_pool(roll)} allows more than one control-plane node to go down at the same time"
                f" ({roll.limit}). {how}."
            )
        found += list_pool_blockers(roll, intent, peak.count_plan(roll))
        how = (
            HOW if roll.machines else "Pause the health check manually until the node is back, then run the stage again"
        )
        for node in rebooted:
            if not roll.machines:
                found.append(_explain_own_boot(node, roll, stand))
            found += [
                f"{node.name}: {why}"
                for why in list_node_blockers(
                    node, stand, intent, roll.machines and intent.pause_health_checks, how=how
                )
            ]
    found.append(_explain_control_turns(control, set(map(find_queue, rolls)), stand))
    for machines in (True, False):
        labels = [_describe_pool(roll) for roll, _names in control if roll.machines is machines]
        if len(labels) > 1:
            found.append(
                f"{' and '.join(labels)} contain control-plane nodes, and each of these pools would take one down at"
                " the same time. Let only one of them proceed at a time."
            )
    return tuple(dict.fromkeys(filter(None, found)))


def _explain_control_turns(
    control: typing.Sequence[tuple[PoolPlan, frozenset[str]]],
    queues: typing.Container[typing.Optional[Queue]],
    stand: GateInputs,
) -> str:
    """Return why the plans must not reboot control-plane nodes now, with the remedy: another operator reboots a
    different control-plane node. Return an empty text if they may reboot them.

    :param control: plans that reboot control-plane nodes, each with the names of these nodes
    :param queues: queues of all plans
    :param stand: state of the cluster
    """
    for turn in (turn for turn in stand.all_turns if turn.queue not in queues):
        plans = [(roll, names) for roll, names in control if not _wait_for_each_other(roll, turn, stand)]
        ours, theirs = frozenset[str]().union(*(names for _roll, names in plans)), find_rebooted_control(turn, stand)
        if ours and theirs and len(theirs | ours) > 1:
            name = min(theirs - ours or theirs)
            labels = dict.fromkeys(_describe_pool(roll) for roll, _names in plans)
            return (
                f"{' and '.join(labels)} would reboot control-plane nodes while {turn} reboots the control-plane node"
                f" {name} ({turn.nodes[name]}). Wait until that operator is done with the node, then rerun."
            )
    return ""


def _wait_for_each_other(roll: PoolPlan, turn: OperatorTurns, stand: GateInputs) -> bool:
    """Return whether the nodes of a plan and of the turns of another operator are never down at the same time: the
    SR-IOV operator and the machine config operator wait for each other within a MachineConfigPool. [sriov-network-
    operator pkg/platforms/openshift/openshift.go]
    """
    queue = find_queue(roll)
    if queue is None or {queue[0], turn.operator} != {"sriov", "machine_config"}:
        return False
    names = {*roll.nodes, *turn.nodes}
    pools = [find_machine_pool(node, stand.machine_pools) for node in stand.nodes if node.name in names]
    return len({pool.name if pool else "" for pool in pools}) == 1


def _explain_own_boot(node: ClusterNode, roll: PoolPlan, stand: GateInputs) -> str:
    """Return why an operator must not reboot a node, with the remedy: ansible-playbook runs on this node. Return an
    empty text if ansible-playbook runs on another machine, or if its node is unknown.
    """
    if node.name != stand.own_node:
        return ""
    return (
        f"{node.name}: ansible-playbook runs on this node (its machine has the same boot ID), and"
        f" {_describe_pool(roll)} reboots it, so the run would end before the other nodes are done. Run the playbook on"
        " a machine that is not rebooted, such as another node."
    )


def list_pool_blockers(roll: PoolPlan, intent: ClusterIntent, peak: int = 0) -> tuple[str, ...]:
    """Return the reason why a pool must not roll, with its remedy, as a tuple with one text: the operator takes down
    more nodes at the same time than the intent permits. The tuple is empty if the pool may roll. A single node is
    always permitted.

    :param roll: nodes that an operator will drain or reboot
    :param intent: settings of the intent that all fabrics share
    :param peak: number of nodes that can be down at the same time, with those that wait for the pool already
    """
    most, limit = find_most(intent)
    # a pool takes down no more nodes than it has in the plan, whatever its own limit is
    number = max(peak, count_down(roll.at_once, roll.nodes))
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
        return f"maxParallelUpgrades in spec.ofedDriver.upgradePolicy of {roll.nic_policy}"
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
        return "NVIDIA's network operator" + (f" ({roll.name})" if " " in roll.name else "")
    return f"SriovNetworkPoolConfig {roll.name}" if roll.name else "the default pool of the SR-IOV operator"
