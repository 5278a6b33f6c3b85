# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes that another operator drains, or will drain in its next turn: the SR-IOV network operator, the driver
upgrades of NVIDIA's operators, NVIDIA's NIC configuration operator, and the machine config operator. Between two turns
of such an operator no node is cordoned. Each of these operators limits only its own nodes, and does not know those of
the others. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.text import parse_number
from ...._model.kubernetes.disruption import MachinePool, NodePool, PoolPlan
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import NodeState
from ..machine_configs.pools import find_machine_pool
from ..machine_configs.rules import find_at_once, is_changing_image
from ..sriov.drains import turn_of

Operator = typing.Literal["sriov", "nic_configuration", "nic_driver", "gpu_driver", "machine_config"]
#: operator and pool within which nodes wait for each other
Queue = tuple[Operator, str]

_IDLE = ("", "Idle")
#: labels of a node, by driver [k8s-operator-libs pkg/upgrade/consts.go UpgradeStateLabelKeyFmt,
#: UpgradeSkipNodeLabelKeyFmt]
_DRIVERS: tuple[tuple[str, Operator], ...] = (("gpu", "gpu_driver"), ("ofed", "nic_driver"))
_UPGRADE, _SKIP = "nvidia.com/{}-driver-upgrade-state", "nvidia.com/{}-driver-upgrade.skip"
#: states in which the operator does not take the node down
_ENDED = ("", "upgrade-done", "upgrade-failed")
_NAMES: typing.Mapping[Operator, str] = {
    "sriov": "the SR-IOV operator",
    "nic_configuration": "NVIDIA's NIC configuration operator",
    "nic_driver": "NVIDIA's network operator",
    "gpu_driver": "the GPU operator",
    "machine_config": "the machine config operator",
}


class CardTurns(PoolPlan):
    """The nodes that NVIDIA's NIC configuration operator reboots for its templates, as a plan with the same fields as
    the plan of a pool.
    """


@dataclasses.dataclass(frozen=True)
class OperatorTurns:
    """The nodes that an operator drains or reboots now or in its next turns. The operator takes them down one group
    after the other, so these nodes wait for each other.

    :ivar operator: operator that takes the nodes down
    :ivar nodes: reason why the operator takes each node down, as text, by node
    :ivar at_once: maximum number of nodes that the operator takes down at the same time; None for no limit, or if the
        limit is not known
    :ivar pool: SriovNetworkPoolConfig or MachineConfigPool of the nodes; empty for the default pool of the SR-IOV
        operator, and for operators without pools
    :ivar reboots: names of the nodes that the operator reboots or may reboot
    :ivar begun: names of the nodes that the operator drains or reboots now, which it counts in ``at_once``
    """

    operator: Operator
    nodes: typing.Mapping[str, str]
    at_once: typing.Optional[int] = None
    pool: str = ""
    reboots: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()

    @property
    def queue(self) -> Queue:
        """The operator and the pool within which the nodes wait for each other."""
        return self.operator, self.pool

    def __str__(self) -> str:
        kind = "MachineConfigPool" if self.operator == "machine_config" else "SriovNetworkPoolConfig"
        return f"{_NAMES[self.operator]}{f' ({kind} {self.pool})' if self.pool else ''}"


def find_queue(roll: PoolPlan) -> typing.Optional[Queue]:
    """Return the operator and the pool within which the nodes of a plan wait for each other. Return None if the
    operator takes down all nodes of the plan without such an order.
    """
    if isinstance(roll, CardTurns):
        return "nic_configuration", ""
    if roll.machines:
        return "machine_config", roll.name
    if roll.undrained or roll.driver == "remove":
        return None
    if roll.driver:
        return ("gpu_driver" if roll.driver == "reload" else "nic_driver"), ""
    return "sriov", roll.name


def count_down(at_once: typing.Optional[int], names: typing.Sized) -> int:
    """Return how many of the nodes an operator takes down at the same time.

    :param at_once: limit of the operator; None for no limit
    :param names: nodes that it takes down
    """
    return len(names) if at_once is None else min(at_once, len(names))


def find_turns(
    nodes: typing.Sequence[ClusterNode],
    states: typing.Iterable[NodeState] = (),
    cards: typing.Iterable[tuple[str, str]] = (),
    pools: typing.Optional[typing.Sequence[NodePool]] = (),
    operations: typing.Optional[int] = 1,
) -> tuple[OperatorTurns, ...]:
    """Return the nodes that other operators drain or reboot, or will in their next turns.

    :param nodes: nodes of the cluster
    :param states: SriovNetworkNodeStates of the operator
    :param cards: node of each NicDevice, and why NVIDIA's NIC configuration operator reboots it; empty if it does not
    :param pools: SriovNetworkPoolConfigs of the operator; None if they are not known
    :param operations: maximum number of nodes that NVIDIA's maintenance operator takes down at the same time; None for
        no limit, or if it is not known
    """
    found: list[OperatorTurns] = []
    told = {
        node: f"NVIDIA's NIC configuration operator reboots it or waits for its turn ({why})"
        for node, why in cards
        if why
    }
    # these operators cordon a node at the begin of its turn
    cordoned = frozenset(node.name for node in nodes if node.unschedulable)
    if told:
        begun = cordoned & told.keys()
        found.append(OperatorTurns("nic_configuration", told, operations, reboots=frozenset(told), begun=begun))
    for driver, operator in _DRIVERS:
        upgraded = {}
        for node in nodes:
            state = node.labels.get(_UPGRADE.format(driver), "")
            skipped = state == "upgrade-required" and node.labels.get(_SKIP.format(driver)) == "true"
            if state not in _ENDED and not skipped:
                upgraded[node.name] = (
                    f"NVIDIA's operator upgrades its driver (label {_UPGRADE.format(driver)}: {state})"
                )
        found += [OperatorTurns(operator, upgraded, begun=cordoned & upgraded.keys())] if upgraded else []
    return (*found, *_find_sriov_turns(nodes, states, pools))


def list_begun_upgrades(nodes: typing.Iterable[ClusterNode], names: typing.Container[str]) -> tuple[str, ...]:
    """Return the reasons why the driver of NVIDIA's network operator must not be removed now, each with its node and
    the remedy: the operator upgrades the driver of the node. Without the driver in its policy, the operator removes its
    label and does not uncordon the node. [Mellanox/network-operator controllers/upgrade_controller.go
    cleanupUpgradeResources]

    :param nodes: nodes of the cluster
    :param names: names of the nodes that lose the driver
    """
    label = _UPGRADE.format("ofed")
    states = {node.name: node.labels.get(label, "") for node in nodes if node.name in names}
    return tuple(
        f"{name}: NVIDIA's network operator upgrades its driver (label {label}: {state}), and the node would stay"
        f" cordoned. Wait until kubectl get node {name} -L {label} shows upgrade-done. If the upgrade hangs, move"
        " the pods that block the drain."
        for name, state in sorted(states.items())
        # a node that waits for its turn is not cordoned yet
        if state not in (*_ENDED, "upgrade-required")
    )


def _find_sriov_turns(
    nodes: typing.Sequence[ClusterNode],
    states: typing.Iterable[NodeState],
    pools: typing.Optional[typing.Sequence[NodePool]],
) -> list[OperatorTurns]:
    known = {node.name: node for node in nodes}
    limits: dict[str, typing.Optional[int]] = {}
    waiting: dict[str, dict[str, str]] = {}
    reboots, begun = set(), set()
    for one in states:
        if one.desired_state in _IDLE and one.current_state in _IDLE:
            continue
        pool, limit = "", None
        if pools is not None and one.node in known:
            turn = turn_of(known[one.node], pools, nodes)
            # another drainer than the operator knows no pools
            pool, limit = turn.pool, None if one.external_drainer else turn.at_once
        limits[pool] = limit if pool not in limits or limits[pool] is not None else None
        waiting.setdefault(pool, {})[one.node] = (
            "the SR-IOV operator drains it or waits for its turn (SriovNetworkNodeState: desired-state"
            f" {one.desired_state or 'not set'}, current-state {one.current_state or 'not set'})"
        )
        if one.desired_state != "Drain_Required":
            reboots.add(one.node)
        if one.current_state not in _IDLE:
            begun.add(one.node)
    return [
        OperatorTurns(
            "sriov", told, limits[pool], pool, frozenset(reboots & told.keys()), frozenset(begun & told.keys())
        )
        for pool, told in waiting.items()
    ]


def find_machine_turns(
    nodes: typing.Sequence[ClusterNode], pools: typing.Sequence[MachinePool]
) -> tuple[OperatorTurns, ...]:
    """Return the nodes that the machine config operator reboots, or will in its next turns: those of a pool that is not
    paused, and whose MachineConfig is not that of the pool, or all of a pool that changes its image.

    :param nodes: nodes of the cluster
    :param pools: MachineConfigPools of the cluster; none if the cluster is not OpenShift
    """
    members: dict[str, list[ClusterNode]] = {}
    for node in nodes if pools else ():
        pool = find_machine_pool(node, pools)
        if pool is not None:
            members.setdefault(pool.name, []).append(node)
    found = []
    for pool in pools:
        mine = members.get(pool.name, [])
        late = [node for node in mine if node.machine_config != pool.wanted_config]
        late = mine if not late and is_changing_image(pool) else late
        if pool.paused or not late:
            continue
        told = {
            node.name: f"the machine config operator may reboot the node for MachineConfigPool {pool.name}"
            for node in late
        }
        begun = frozenset(node.name for node in late if node.unschedulable or not node.machine_config)
        at_once = find_at_once(pool.max_unavailable, len(mine))
        found.append(OperatorTurns("machine_config", told, at_once, pool.name, frozenset(told), begun))
    return tuple(found)


def count_operations(values: typing.Sequence[str], size: int) -> tuple[typing.Optional[int], str]:
    """Return two values: the number of nodes that NVIDIA's maintenance operator takes down at the same time, and the
    origin of that number as text. The number is None for no limit, and for an invalid value. The operator takes a
    percentage of all nodes of the cluster, and rounds up. [maintenance-operator
    api/v1alpha1/maintenanceoperatorconfig_types.go, internal/controller/nodemaintenancescheduler_controller.go
    getMaxOperations]

    :param values: value of maxParallelOperations, as written, in each MaintenanceOperatorConfig that the operator may
        use; empty for an object that does not set it. The highest number counts
    :param size: number of nodes of the cluster
    """
    found = [(_count_operations(value, size), value) for value in values] or [(1, "")]
    at_once, value = max(found, key=lambda one: size + 1 if one[0] is None else one[0])
    where = "maxParallelOperations of the MaintenanceOperatorConfig is"
    if not value:
        return at_once, f"{where} not set, which is 1"
    unlimited = ", so there is no limit" if value == "0" else ", which is not valid" if at_once is None else ""
    return at_once, f"{where} {value}{unlimited}"


def _count_operations(value: str, size: int) -> typing.Optional[int]:
    """Return the number of nodes that a single value of maxParallelOperations permits. An empty value means 1. Return
    None for no limit (``0``), and for an invalid value.

    :param value: number or percentage, as written in the object
    :param size: number of nodes of the cluster
    """
    if not value:
        return 1
    number = parse_number(value[:-1] if value.endswith("%") else value)
    if not number:
        return None
    return -(-number * size // 100) if value.endswith("%") else number
