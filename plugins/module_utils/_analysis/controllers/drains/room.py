# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the nodes that are unavailable, or that operators take down, against the limit of the intent. Pure."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ...._model.base.phrases import describe_unread_remedy
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.control_plane import EtcdMember, HealthCheck
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.objects import ClusterNode
from .control_plane import list_control_plane
from .operator_turns import OperatorTurns, count_down, find_machine_turns

#: in place of a kind: the pods by which it is known whether the SR-IOV operator is done with a node after its reset
DAEMON = "Pod with the label app=sriov-network-config-daemon"
#: remedy if the user lacks the rights to read objects
RIGHTS = "Give the user of the kubeconfig the rights in docs/rbac/look.yml"
#: operators that drain nodes in turns, by the kind of the objects that show it
_TAKERS = {
    "SriovNetworkNodeState": "the SR-IOV operator",
    DAEMON: "the SR-IOV operator",
    "NicDevice": "NVIDIA's NIC configuration operator",
    "MachineConfigPool": "the machine config operator",
}


@dataclasses.dataclass(frozen=True)
class GateInputs:
    """The state of the cluster on which the gate depends.

    :ivar nodes: nodes of the cluster
    :ivar unread: reason for each kind that could not be read, by kind; ``etcd`` represents the pods of etcd
    :ivar etcd: members of etcd
    :ivar health_checks: MachineHealthChecks and NodeHealthChecks of the cluster
    :ivar machines_elsewhere: names of the nodes whose Machines, and the health checks of these, are in another cluster
    :ivar upgrade: message of an upgrade of OpenShift that is in progress; empty if none is
    :ivar turns: nodes that other operators drain or reboot, or will in their next turns, without those of the machine
        config operator
    :ivar machine_pools: MachineConfigPools of the cluster
    :ivar own_boot: boot ID of the machine that runs ansible-playbook; empty if it is not known
    """

    nodes: tuple[ClusterNode, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    etcd: tuple[EtcdMember, ...] = ()
    health_checks: tuple[HealthCheck, ...] = ()
    upgrade: str = ""
    turns: tuple[OperatorTurns, ...] = ()
    own_boot: str = ""
    machine_pools: tuple[MachinePool, ...] = ()
    machines_elsewhere: frozenset[str] = frozenset()

    @functools.cached_property
    def all_turns(self) -> tuple[OperatorTurns, ...]:
        """The nodes that other operators drain or reboot, or will in their next turns."""
        return (*self.turns, *find_machine_turns(self.nodes, self.machine_pools))

    @functools.cached_property
    def taken(self) -> dict[str, str]:
        """The nodes that other operators take down, each with the reason as text."""
        return {node: why for turn in self.all_turns for node, why in turn.nodes.items()}

    @property
    def has_machine_configs(self) -> bool:
        """Return whether the machine config operator manages nodes of the cluster. On another cluster, the API server
        may refuse MachineConfigPools that it does not serve.
        """
        return any(node.machine_config for node in self.nodes)

    @functools.cached_property
    def own_node(self) -> str:
        """The name of the node that runs ansible-playbook. It is empty if no node has the boot ID of that machine, or
        if several nodes report it: a compromised kubelet copies the boot ID of another node.
        """
        names = [node.name for node in self.nodes if node.boot_id and node.boot_id == self.own_boot]
        return names[0] if len(names) == 1 else ""


@dataclasses.dataclass(frozen=True)
class Room:
    """The number of nodes that may be unavailable at the same time.

    :ivar most: maximum number, including the nodes that are unavailable already
    :ivar limit: source of the maximum, as text
    :ivar away: names of the nodes that are NotReady or cordoned, or that another operator takes down
    :ivar taken: nodes that other operators take down, each with the reason as text
    :ivar number: number of the nodes in ``away`` that can be unavailable at the same time. It can be smaller than the
        length of ``away``, because an operator takes down no more nodes at a time than its limit
    """

    most: int
    limit: str
    away: tuple[str, ...] = ()
    taken: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    number: int = 0

    @property
    def left(self) -> int:
        """Return the number of further nodes that are permitted to go down. It is 0 or negative if no further node is
        permitted to.
        """
        return self.most - self.number

    @property
    def refusal(self) -> str:
        """Return why no further node is permitted to go down, with the remedy. Return an empty text if at least one
        more node is permitted to.
        """
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
    stand: GateInputs,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    going: typing.Container[str],
    cordoned: typing.Container[str] = (),
) -> Room:
    """Return the maximum number of unavailable nodes, and the nodes that are unavailable already.

    :param stand: state of the cluster
    :param intent: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    :param going: names of the nodes that are about to go down, which do not count as unavailable
    :param cordoned: names of the nodes that do not count as unavailable only because they are cordoned
    """
    most, limit = find_most(intent)
    counted = [node for node in list_counted_nodes(stand.nodes, inventory, intent) if node.name not in going]
    down = {node.name for node in counted if not node.ready or (node.unschedulable and node.name not in cordoned)}
    taken = stand.taken
    away = tuple(node.name for node in counted if node.name in down or node.name in taken)
    begun = {name for turn in stand.all_turns for name in turn.begun}
    # no operator counts a node that went down while it waits: it takes down the next one beside it
    dead = (set(away) & down) - begun
    turning = {name for name in away if name in taken} - dead
    at_once = 0
    for turn in stand.all_turns:
        mine = turning & turn.nodes.keys()
        at_once += max(count_down(turn.at_once, mine), len(mine & down))
    number = len(set(away) - turning) + min(at_once, len(turning))
    return Room(most, limit, away, taken, number)


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


def explain_unread_turns(stand: GateInputs) -> str:
    """Return why no node may go down because it is unknown which nodes other operators take down, with the remedy.
    Return an empty text if it is known.

    :param stand: state of the cluster
    """
    for kind, operator in _TAKERS.items():
        if kind in stand.unread and (kind != "MachineConfigPool" or stand.has_machine_configs):
            return (
                f"it is unknown whether {operator} drains nodes ({kind}: {stand.unread[kind]})."
                f" {describe_unread_remedy((stand.unread[kind],), RIGHTS)}."
            )
    return ""


def find_rebooted_control(turn: OperatorTurns, stand: GateInputs) -> frozenset[str]:
    """Return the names of the control-plane nodes that an operator reboots, or will in its next turns.

    :param stand: state of the cluster
    """
    return turn.reboots & {node.name for node in list_control_plane(stand.nodes)}
