# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether nodes are permitted to go down now. This gate applies to resets by a BMC, to reboots by the machine
config operator, and to drains and reboots by the SR-IOV operator. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.control_plane import EtcdMember, HealthCheck
from ..._model.kubernetes.disruption import MachinePool, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from .control_plane import explain_why_kept, is_control_plane
from .health_checks import HOW, explain_remediation_risk, list_watching

#: names of the MachineConfigPools of control-plane nodes
_CONTROL = ("master", "control-plane")
#: remedy for an operator that changes all nodes of a policy at the same time
_LABEL_FEWER = (
    "Exclude the NICs under 'measured' of network.disruption from select of the fabric, or give the label in"
    " rdma_cluster.node_selector to at most {most} further node at a time, and run stage network after each"
)


@dataclasses.dataclass(frozen=True)
class GateInputs:
    """The state of the cluster on which the gate depends.

    :ivar nodes: nodes of the cluster
    :ivar unread: reason for each kind that could not be read, by kind; ``etcd`` represents the pods of etcd
    :ivar etcd: members of etcd
    :ivar health_checks: MachineHealthChecks and NodeHealthChecks of the cluster
    :ivar upgrade: message of an upgrade of OpenShift that is in progress; empty if none is
    :ivar taken: nodes that another operator drains, or will drain in its next turn, each with the reason as text
    """

    nodes: tuple[ClusterNode, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    etcd: tuple[EtcdMember, ...] = ()
    health_checks: tuple[HealthCheck, ...] = ()
    upgrade: str = ""
    taken: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Room:
    """The number of nodes that may be unavailable at the same time.

    :ivar most: maximum number, including the nodes that are unavailable already
    :ivar limit: source of the maximum, as text
    :ivar away: names of the nodes that are NotReady or cordoned, or that another operator takes down
    :ivar taken: those of them that another operator takes down, each with the reason as text
    """

    most: int
    limit: str
    away: tuple[str, ...] = ()
    taken: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def left(self) -> int:
        """Return the number of further nodes that are permitted to go down. It is 0 or negative if no node is."""
        return self.most - len(self.away)

    @property
    def refusal(self) -> str:
        """Return why no further node is permitted to go down, with the remedy; empty if a node is."""
        if self.left > 0:
            return ""
        busy = [name for name in self.away if name in self.taken]
        if busy:
            told = "; ".join(f"{name}: {self.taken[name]}" for name in busy[:5])
            return (
                f"{told}. These nodes count as unavailable, so no other node may go down ({self.limit}). Wait until the"
                " operators are done with them, or raise max_unavailable."
            )
        who = ", ".join(self.away[:5])
        return (
            f"{who}: NotReady or cordoned, so no other node may go down ({self.limit}). Restore these nodes first, or"
            " raise max_unavailable."
        )


def find_room(
    stand: GateInputs, intent: ClusterIntent, inventory: typing.Container[str], going: typing.Container[str]
) -> Room:
    """Return the maximum number of unavailable nodes, and the nodes that are unavailable already.

    :param stand: state of the cluster
    :param intent: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    :param going: names of the nodes that are about to go down, which do not count as unavailable
    """
    most, limit = find_most(intent)
    away = (
        node.name
        for node in list_counted_nodes(stand.nodes, inventory, intent)
        if node.name not in going and (not node.ready or node.unschedulable or node.name in stand.taken)
    )
    return Room(most, limit, tuple(away), stand.taken)


def find_most(intent: ClusterIntent) -> tuple[int, str]:
    """Return the number of nodes that may be down at the same time, and its source as text. It applies to resets by a
    BMC and to the nodes that operators take down.

    :param intent: settings of the intent that all fabrics share
    """
    if intent.node_pool is None:
        return 1, "1 node at a time, because rdma_cluster.node_pool is not set"
    most = intent.node_pool.max_unavailable
    return most, f"rdma_cluster.node_pool.max_unavailable is {most}"


def list_counted_nodes(
    nodes: typing.Iterable[ClusterNode], inventory: typing.Container[str], intent: ClusterIntent
) -> tuple[ClusterNode, ...]:
    """Return the nodes to which max_unavailable applies: the nodes of the inventory, and the nodes that the node
    selector of the intent matches.

    :param inventory: names of the nodes of the inventory
    :param intent: settings of the intent that all fabrics share
    """
    return tuple(
        node for node in nodes if node.name in inventory or intent.node_selector.items() <= node.labels.items()
    )


def explain_upgrade(stand: GateInputs) -> str:
    """Return why no node may go down because of an upgrade of OpenShift, with the remedy; empty if none is in progress.
    The upgrade drains and reboots nodes itself, and does not know which nodes are down for another reason.

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
    same time. Empty if it may be rolled.

    :param control: whether the pool has a control-plane node. A pool that is named ``master`` or ``control-plane``
        counts as one that has
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
    known, pools = {node.name: node for node in stand.nodes}, {pool.name: pool for pool in machine_pools}
    going = {name for roll in rolls for name in roll.nodes}
    found = [find_room(stand, intent, inventory, going).refusal, explain_upgrade(stand)] if going else []
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
            found += [
                f"{node.name}: {why}"
                for why in list_node_blockers(node, stand, roll.machines and intent.pause_health_checks, how=how)
            ]
    for labels in control.values():
        if len(labels) > 1:
            found.append(
                f"{' and '.join(labels)} contain control-plane nodes, and each of these pools would take one down at"
                " the same time. Let only one of them proceed at a time."
            )
    return tuple(dict.fromkeys(filter(None, found)))


def list_pool_blockers(roll: PoolPlan, intent: ClusterIntent) -> tuple[str, ...]:
    """Return the reason why a pool must not roll, with its remedy: it takes down more nodes at the same time than the
    intent permits. The result is empty if it may roll. One node is never too many.

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
    if roll.machines:
        return f"MachineConfigPool {roll.name}"
    if roll.undrained:
        return "the SR-IOV operator"
    if roll.driver == "reload":
        return "the GPU operator"
    if roll.driver:
        return "NVIDIA's network operator"
    return f"SriovNetworkPoolConfig {roll.name}" if roll.name else "the default pool of the SR-IOV operator"
