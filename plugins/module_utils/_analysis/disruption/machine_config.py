# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effects of new MachineConfigs and KubeletConfigs on the nodes: which MachineConfigPool drains and reboots
which nodes, in how many waves, and which conditions block it.

The rules are those of OpenShift's machine config operator. Each function cites its rule. The result becomes part of the
plan of stage network, which sriov.py begins.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.kubernetes.disruption import Budget, ClusterPod, DisruptionPlan, MachinePool, NodePlan, PoolPlan
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.objects import ClusterNode
from ..controllers.drains.budgets import PodsOfCluster, find_held_pods
from ..controllers.machine_configs.pools import describe_pool, find_machine_pool
from ..controllers.machine_configs.rules import find_at_once, find_conflicting_configs, find_rendered_configs
from ..controllers.sriov.drains import is_evicted


@dataclasses.dataclass(frozen=True)
class Machines(PodsOfCluster):
    """The configurations to apply and the objects of the cluster from which their effects are predicted.

    :ivar configs: MachineConfigs and KubeletConfigs to apply
    :ivar others: KubeletConfigs that the collection does not manage, and the present MachineConfig of each pool that
        would lose limits of CRI-O
    :ivar pools: MachineConfigPools of the cluster
    :ivar nodes: nodes of the cluster
    :ivar pods: pods of all namespaces
    :ivar budgets: PodDisruptionBudgets of all namespaces
    """

    configs: tuple[HostConfig, ...]
    others: tuple[HostConfig, ...]
    pools: tuple[MachinePool, ...]
    nodes: tuple[ClusterNode, ...]
    pods: tuple[ClusterPod, ...]
    budgets: tuple[Budget, ...]


def merge(planned: DisruptionPlan, machines: Machines) -> DisruptionPlan:
    """Return the plan with the drains and reboots by MachineConfigPools added. A pool rolls once if it applies at least
    one new configuration, whatever their number, or if an interrupted run left it paused.

    :param planned: plan of the SR-IOV operator's drains and reboots
    :param machines: configurations to apply, and objects of the cluster
    """
    new = [config for config in machines.configs if not config.there]
    nodes = {node.node: node for node in planned.nodes}
    pools = []
    missed = dict.fromkeys(nodes, new)
    for pool in machines.pools if machines.configs else ():
        mine = [config for config in new if find_rendered_configs(pool, config, machines.pools)]
        reasons = tuple(f"{config.kind} {config.name} ({config.what})" for config in mine)
        reasons += (
            (f"a run of linerate.rdma paused MachineConfigPool {pool.name} before {pool.wanted_config}",)
            if left_paused(pool)
            else ()
        )
        members = tuple(node for node in machines.nodes if reasons and find_machine_pool(node, machines.pools) == pool)
        for node in members:
            nodes[node.name] = add_pool_reboot(
                nodes.get(node.name, NodePlan(node.name, "nothing", listed=False)), pool, reasons, machines
            )
            missed[node.name] = [config for config in new if config not in mine]
        blocked = tuple(
            text for config in mine for text in find_conflicting_configs(pool, config, machines.others, machines.pools)
        )
        pools += [roll_of(pool, tuple(node.name for node in members), blocked)] if members else []
    if machines.pools:
        nodes.update(
            {
                name: _mark_unreached_node(node, missed[name])
                for name, node in nodes.items()
                if node.listed and missed[name]
            }
        )
    return dataclasses.replace(planned, nodes=tuple(nodes.values()), pools=(*pools, *planned.pools))


def left_paused(pool: MachinePool) -> bool:
    """Return whether an interrupted run has left the pool paused. The next run unpauses it, and the pool then rolls."""
    return pool.paused_by_us and pool.wanted_config != pool.current_config


def add_pool_reboot(node: NodePlan, pool: MachinePool, reasons: tuple[str, ...], machines: Machines) -> NodePlan:
    """Return the plan of a node with the reboot by its MachineConfigPool. A node whose plan is unknown is unchanged.

    :param reasons: the configurations, as text
    :param machines: objects of the cluster
    """
    if node.action == "unknown":
        return node
    here = [pod for pod in machines.list_pods(node.node) if is_evicted(pod, True, "")]
    # the SR-IOV operator waits for the pool before it touches the node [sriov-network-operator
    # pkg/platforms/openshift/openshift.go]
    later = (
        tuple(f"then, by the SR-IOV operator: {reason}" for reason in node.reasons)
        if node.action in ("drain", "reboot")
        else ()
    )
    names = {f"{pod.namespace}/{pod.name}": pod for pod in here}
    return dataclasses.replace(
        node,
        action="reboot",
        undrained=False,
        reasons=(*reasons, *later),
        pods=tuple(names),
        lost=tuple(name for name, pod in names.items() if not pod.owner and not pod.ended),
        blockers=tuple(dict.fromkeys((*find_held_pods(here, True, "", machines.budget_index), *node.blockers))),
        rolled_by=pool.name,
    )


def _mark_unreached_node(node: NodePlan, configs: typing.Sequence[HostConfig]) -> NodePlan:
    """Return the plan of the node with the action ``unknown``, because no MachineConfigPool applies these
    configurations to it. Without that, the missing configuration would show as a failure much later.

    :param configs: MachineConfigs and KubeletConfigs that no pool of the node applies
    """
    reasons = [
        f"no MachineConfigPool selects both the node and {config.kind} {config.name}; see rdma_cluster.host."
        + ("machine_role" if config.kind == "MachineConfig" else "kubelet.pool_labels")
        for config in configs
    ]
    return dataclasses.replace(node, action="unknown", reasons=tuple(reasons))


def roll_of(pool: MachinePool, nodes: tuple[str, ...], blocked: tuple[str, ...] = ()) -> PoolPlan:
    """Return the plan by which the machine config operator rolls these nodes of a pool.

    :param nodes: names of the nodes
    :param blocked: reasons that block the roll, besides the state of the pool
    """
    limit = f"maxUnavailable is {pool.max_unavailable or 'not set (default 1)'}"
    at_once = find_at_once(pool.max_unavailable, len(nodes))
    if at_once is None:
        wrong = f"maxUnavailable is '{pool.max_unavailable}', which is neither a number nor a percentage"
        return PoolPlan(pool.name, nodes, 0, None, limit, (wrong,), machines=True)
    blockers = (*_list_pool_blockers(pool), *blocked)
    return PoolPlan(
        pool.name, nodes, at_once, None if blockers else -(-len(nodes) // at_once), limit, blockers, machines=True
    )


def _list_pool_blockers(pool: MachinePool) -> typing.Iterator[str]:
    if pool.conditions.get("Degraded") == "True":
        yield (
            f"{describe_pool(pool)} and is degraded ({count_of(pool.degraded, 'machine')}):"
            f" {pool.message or 'no reason reported'}"
        )
    if pool.paused and not pool.paused_by_us:
        yield f"MachineConfigPool {pool.name} is paused by another program or user: unpause it first"
