# SPDX-License-Identifier: GPL-3.0-or-later

"""Which MachineConfigPool takes what, by the rules of OpenShift's machine config operator, named with each of them.
Pure."""

from __future__ import annotations

import typing

from ..._model.kubernetes.disruption import Budget, ClusterPod, LabelSelector, MachinePool
from ..._model.kubernetes.host import ROLE_LABEL, HostConfig
from ..._model.kubernetes.objects import ClusterNode
from .budgets import BudgetIndex, find_held_pods
from .sriov_operator import describe, find_machine_pool, matches

Names = typing.Container[str]


def collect_made_configs(config: HostConfig, pools: typing.Iterable[MachinePool]) -> dict[str, dict[str, str]]:
    """Return the names and labels of the MachineConfigs that stand for it: a MachineConfig itself; of a KubeletConfig
    one for each pool that its selector takes, with the pool's name for a role. A selector without requirements takes
    none.

    [machine-config-operator pkg/controller/kubelet-config getPoolsForKubeletConfig, getManagedKubeletConfigKey]
    """
    if config.kind == "MachineConfig":
        return {config.name: config.labels}
    selected = [
        pool.name for pool in pools if config.selector != LabelSelector() and matches(config.selector, pool.labels)
    ]
    prefixes = {f"99-{name}-generated-kubelet": name for name in selected}
    # another KubeletConfig of the pool gets the name with a number behind it
    return {
        next((item for item in config.generated if item.startswith(prefix)), prefix): {ROLE_LABEL: name}
        for prefix, name in prefixes.items()
    }


def find_rendered_configs(
    pool: MachinePool, config: HostConfig, pools: typing.Iterable[MachinePool]
) -> tuple[str, ...]:
    """Return the names of the MachineConfigs that a pool takes of what reboots machines; a pool of the user's own takes
    those of the role worker as well."""
    return tuple(
        name for name, labels in collect_made_configs(config, pools).items() if matches(pool.config_selector, labels)
    )


def unrendered(pool: MachinePool, config: HostConfig, pools: typing.Iterable[MachinePool]) -> bool:
    """Return whether a MachineConfig that is there is still to come into what the pool wants: the pool rolls then,
    however idle it looks."""
    return (
        config.kind == "MachineConfig"
        and config.there
        and not set(find_rendered_configs(pool, config, pools)) <= set(pool.sources)
    )


def find_conflicting_configs(
    pool: MachinePool, config: HostConfig, others: typing.Iterable[HostConfig], pools: typing.Sequence[MachinePool]
) -> tuple[str, ...]:
    """Return why a pool can't have a KubeletConfig beside others, in words: each becomes the kubelet's whole file, so
    that all but one are lost.

    [machine-config-operator pkg/controller/kubelet-config generateKubeletIgnFiles, pkg/controller/common
    MergeMachineConfigs]
    """
    if config.kind != "KubeletConfig" or not find_rendered_configs(pool, config, pools):
        return ()
    return tuple(
        f"MachineConfigPool {pool.name} takes KubeletConfig {other.name} as well, and a node has the settings of one of"
        " them alone"
        for other in others
        if find_rendered_configs(pool, other, pools)
    )


def current(pool: MachinePool) -> bool:
    """Return whether all machines of a MachineConfigPool have the configuration that it wants."""
    return (
        pool.current_config == pool.wanted_config
        and pool.updated == pool.machines
        and pool.conditions.get("Updating") != "True"
    )


def find_outdated_nodes_outside_run(
    pool: MachinePool,
    pools: typing.Iterable[MachinePool],
    nodes: typing.Iterable[ClusterNode],
    inventory: typing.Container[str],
) -> typing.Optional[tuple[ClusterNode, ...]]:
    """Return the nodes of a pool that are not ours and have not the MachineConfig that it wants. None while one of ours
    has not, or none of ours is in it."""
    members = _list_members(pool, pools, nodes)
    late = tuple(node for node in members if node.machine_config != pool.wanted_config)
    ours = any(node.name in inventory for node in members) and not any(node.name in inventory for node in late)
    return late if ours else None


def find_outdated_nodes(
    pool: MachinePool, pools: typing.Iterable[MachinePool], nodes: typing.Iterable[ClusterNode]
) -> tuple[ClusterNode, ...]:
    """Return the nodes of a pool that have not the MachineConfig that it wants."""
    return tuple(node for node in _list_members(pool, pools, nodes) if node.machine_config != pool.wanted_config)


def _list_members(
    pool: MachinePool, pools: typing.Iterable[MachinePool], nodes: typing.Iterable[ClusterNode]
) -> list[ClusterNode]:
    pools = tuple(pools)
    return [node for node in nodes if (mine := find_machine_pool(node, pools)) is not None and mine.name == pool.name]


def waits_for(
    late: typing.Iterable[ClusterNode], pods: typing.Iterable[ClusterPod], budgets: typing.Sequence[Budget]
) -> tuple[str, ...]:
    """Return the reasons that keep nodes from their MachineConfig, each with what to do: they are away, or a budget
    blocks their drain.

    :param late: nodes as ``behind`` has them; those that wait for their turn are in it, and of them nothing is said
    :param pods: of all namespaces
    """
    said, pods, index = [], tuple(pods), BudgetIndex(budgets)
    for node in late:
        held = (
            find_held_pods((pod for pod in pods if pod.node == node.name), True, "", index)
            if node.unschedulable
            else ()
        )
        if not node.ready:
            said.append(
                f"node {node.name} is NotReady and does not come back ({node.not_ready or 'its kubelet says nothing'}):"
                " see its console"
            )
        elif held:
            said.append(
                f"node {node.name} is not drained: {'; '.join(held[:3])}: let it allow one (a replica more), or end"
                " the pod"
            )
    return tuple(said)


def under_way(
    pool: MachinePool,
    node: ClusterNode,
    pools: typing.Iterable[MachinePool],
    nodes: typing.Iterable[ClusterNode],
    inventory: Names,
) -> bool:
    """Return whether the operator brings this node of the pool, or another one of the inventory, to a MachineConfig
    just now.

    Nodes of others that have not got what their pool wants are in nobody's way, once all of the inventory have.
    """
    if pool.paused:
        return False
    late = node.machine_config != pool.wanted_config
    return late or (
        pool.wanted_config != pool.current_config
        and find_outdated_nodes_outside_run(pool, pools, nodes, inventory) is None
    )


def find_rollout_blocker(
    node: ClusterNode, pools: typing.Sequence[MachinePool], nodes: typing.Iterable[ClusterNode], inventory: Names
) -> tuple[str, str]:
    """Return why nobody else may reboot a node now, and what to do; empty where no pool takes it, or its pool has
    nothing to do and nobody holds it."""
    pool = find_machine_pool(node, pools)
    if pool is None:
        return "", ""
    if pool.conditions.get("Degraded") == "True":
        remedy = f"Repair it first: oc describe machineconfigpool {pool.name}"
        return f"{describe(pool)} and is degraded: {pool.message or 'it gives no reason'}", remedy
    if pool.paused and not pool.paused_by_us:
        who = "the SR-IOV operator" if pool.paused_by_operator else "somebody else"
        return (
            f"MachineConfigPool {pool.name} is paused by {who}",
            f"See why, and let it go on: oc get machineconfigpool {pool.name} -o yaml",
        )
    # a pool that we have paused is let go by whoever holds the Lease; a node that had begun goes on all the same
    if under_way(pool, node, pools, nodes, inventory) or (pool.paused and not node.machine_config):
        return (
            f"{describe(pool)}, and may reboot the node",
            f"Wait until it is through: oc get machineconfigpool {pool.name}",
        )
    return "", ""
