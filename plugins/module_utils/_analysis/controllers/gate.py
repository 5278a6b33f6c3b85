# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether nodes may go down now: one gate, whoever takes them down (a BMC, the machine config operator, the SR-IOV
operator). Pure."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.control_plane import EtcdMember, HealthCheck
from ..._model.kubernetes.disruption import MachinePool, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from .control_plane import explain_why_kept, is_control_plane
from .health_checks import HOW, list_watching, remediates

#: names of the MachineConfigPools of control-plane nodes
_CONTROL = ("master", "control-plane")


@dataclasses.dataclass(frozen=True)
class GateInputs:
    """The cluster, as far as it decides that.

    :ivar unread: kinds that could not be read, and why; ``etcd`` for the pods of etcd
    :ivar etcd: members of etcd
    """

    nodes: tuple[ClusterNode, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    etcd: tuple[EtcdMember, ...] = ()
    health_checks: tuple[HealthCheck, ...] = ()


@dataclasses.dataclass(frozen=True)
class Room:
    """The number of nodes that may be away at the same time.

    :ivar most: with those that are away already
    :ivar limit: where that is from, in words
    :ivar away: nodes that are not Ready, or cordoned
    """

    most: int
    limit: str
    away: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """Return how many more may go."""
        return self.most - len(self.away)

    @property
    def refusal(self) -> str:
        """Return why none may go; empty where one may."""
        if self.left > 0:
            return ""
        who = ", ".join(self.away[:5])
        return (
            f"{who}: not Ready, or cordoned, so that no other node may go ({self.limit}). Bring them back first, or"
            " raise max_unavailable."
        )


def find_room(
    stand: GateInputs, intent: ClusterIntent, inventory: typing.Container[str], going: typing.Container[str]
) -> Room:
    """Return how many nodes may be away, and which ones are.

    :param going: names of those that go, which do not count as away
    """
    most = intent.node_pool.max_unavailable if intent.node_pool is not None else 1
    limit = (
        f"rdma_cluster.node_pool.max_unavailable is {most}"
        if intent.node_pool is not None
        else "1 at a time: rdma_cluster.node_pool is not set"
    )
    away = (
        node.name
        for node in list_counted_nodes(stand.nodes, inventory, intent)
        if node.name not in going and (not node.ready or node.unschedulable)
    )
    return Room(most, limit, tuple(away))


def list_counted_nodes(
    nodes: typing.Iterable[ClusterNode], inventory: typing.Container[str], intent: ClusterIntent
) -> tuple[ClusterNode, ...]:
    """Return the nodes of which max_unavailable says how many may be away: those of the inventory, and those that the
    node selector takes beside them."""
    return tuple(
        node for node in nodes if node.name in inventory or intent.node_selector.items() <= node.labels.items()
    )


def stays(
    node: ClusterNode, stand: GateInputs, may_pause: bool, awaited: typing.Container[str] = (), how: str = HOW
) -> tuple[str, ...]:
    """Return why a node may not go down now, in words, each with what to do: etcd does not bear it, or a health check
    would remediate it.

    :param may_pause: whether health checks are paused for it
    :param awaited: nodes that are away by this roll, and come back before its turn
    :param how: what to do about a health check
    """
    kept = explain_why_kept(node, stand.nodes, stand.etcd, stand.unread.get("etcd", ""), awaited)
    return (*([kept] if kept else []), *remediates(node, stand.health_checks, stand.unread, may_pause, how))


def explain_too_many(pool: MachinePool, control: bool) -> str:
    """Return why a MachineConfigPool of control-plane nodes is not rolled: it lets more than one of them go at the same
    time.

    :param control: whether it has a control-plane node; one that is called so has
    """
    if not (control or pool.name in _CONTROL) or pool.max_unavailable in (None, "1"):
        return ""
    how = f'oc patch machineconfigpool {pool.name} --type merge -p \'{{"spec":{{"maxUnavailable":1}}}}\''
    return (
        f"MachineConfigPool {pool.name} reboots {pool.max_unavailable} control-plane nodes at once. Let it reboot one:"
        f" {how}."
    )


def closed(
    rolls: typing.Sequence[PoolPlan],
    drained: typing.Container[str],
    stand: GateInputs,
    machine_pools: typing.Iterable[MachinePool],
    intent: ClusterIntent,
    inventory: typing.Container[str],
) -> tuple[str, ...]:
    """Return why the nodes of pools may not take their turns now, in words, each with what to do; empty where they may.

    :param rolls: turns that an operator gives to nodes. The machine config operator's are reboots, before which health
        checks may be paused
    :param drained: names of nodes that are drained only: their kubelet, and with it etcd, runs on
    """
    known, pools = {node.name: node for node in stand.nodes}, {pool.name: pool for pool in machine_pools}
    going = {name for roll in rolls for name in roll.nodes}
    found = [find_room(stand, intent, inventory, going).refusal] if going else []
    control: dict[bool, list[str]] = {True: [], False: []}
    for roll in rolls:
        rebooted = [known[name] for name in roll.nodes if name in known and name not in drained]
        mine = any(is_control_plane(node, stand.nodes) for node in rebooted)
        control[roll.machines] += [_describe_pool(roll)] if mine else []
        if roll.machines and roll.name in pools:
            found.append(explain_too_many(pools[roll.name], mine))
        elif mine and roll.at_once != 1:
            found.append(
                f"{_describe_pool(roll)} lets more than one control-plane node go at once ({roll.limit}). Give it a"
                " maxUnavailable of 1."
            )
        if intent.node_pool is not None and (roll.at_once is None or roll.at_once > intent.node_pool.max_unavailable):
            more = "all of its nodes" if roll.at_once is None else f"{roll.at_once} nodes"
            found.append(
                f"{_describe_pool(roll)} lets {more} go at once ({roll.limit}), and"
                " rdma_cluster.node_pool.max_unavailable is "
                f"{intent.node_pool.max_unavailable}. Give both the same number."
            )
        how = HOW if roll.machines else "Pause it yourself until the node is back, and run again"
        for node in rebooted:
            found += [
                f"{node.name}: {why}"
                for why in stays(node, stand, roll.machines and intent.pause_health_checks, how=how)
            ]
    for labels in control.values():
        if len(labels) > 1:
            found.append(
                f"{' and '.join(labels)} have control-plane nodes, and would each let one go at the same time. Let one"
                " of them go after the other."
            )
    return tuple(dict.fromkeys(filter(None, found)))


def list_pauses(rolls: typing.Iterable[PoolPlan], stand: GateInputs, intent: ClusterIntent) -> tuple[HealthCheck, ...]:
    """Return the health checks that are paused while MachineConfigPools roll."""
    names = {name for roll in rolls if roll.machines for name in roll.nodes} if intent.pause_health_checks else set()
    watchers = [list_watching(node, stand.health_checks) for node in stand.nodes if node.name in names]
    return tuple(check for check in stand.health_checks if any(check in found for found in watchers))


def _describe_pool(roll: PoolPlan) -> str:
    if roll.machines:
        return f"MachineConfigPool {roll.name}"
    return f"SriovNetworkPoolConfig {roll.name}" if roll.name else "the default pool of the SR-IOV operator"
