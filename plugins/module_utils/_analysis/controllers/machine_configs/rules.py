# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute which MachineConfigPool takes which configuration, by the rules of OpenShift's machine config operator. Each
function cites its rule. Pure.
"""

from __future__ import annotations

import typing

from ...._model.kubernetes.disruption import Budget, ClusterPod, LabelSelector, MachinePool
from ...._model.kubernetes.host import CRIO_FILE, ROLE_LABEL, HostConfig
from ...._model.kubernetes.objects import ClusterNode
from ..drains.budgets import BudgetIndex, find_held_pods
from ..label_selectors import labels_match
from .pools import describe_pool, find_machine_pool

Names = typing.Container[str]


def find_at_once(text: typing.Optional[str], size: int) -> typing.Optional[int]:
    """Return the number of nodes that may be unavailable at the same time, at least 1. Return None if the text is
    neither a number nor a percentage. Percentages are rounded down.

    [machine-config-operator pkg/controller/node/node_controller.go maxUnavailable]

    :param text: maxUnavailable of the pool; None if not set, which means 1
    :param size: number of nodes
    """
    if text is None:
        return 1
    number = text[:-1] if text.endswith("%") else text
    if not number.isascii() or not number.isdigit():
        return None
    return max(1, int(number) * size // 100 if text.endswith("%") else int(number))


def collect_made_configs(config: HostConfig, pools: typing.Iterable[MachinePool]) -> dict[str, dict[str, str]]:
    """Return the labels of the MachineConfigs that result from a configuration, by name of the MachineConfig.

    For a MachineConfig, the result is itself. For a KubeletConfig, the operator generates one MachineConfig for each
    pool that its selector matches, with the name of the pool as its role. A selector without requirements matches no
    pool. [machine-config-operator pkg/controller/kubelet-config getPoolsForKubeletConfig, getManagedKubeletConfigKey]

    :param config: MachineConfig or KubeletConfig
    :param pools: MachineConfigPools of the cluster
    """
    if config.kind == "MachineConfig":
        return {config.name: config.labels}
    selected = [
        pool.name for pool in pools if config.selector != LabelSelector() and labels_match(config.selector, pool.labels)
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
    """Return the names of the MachineConfigs that result from a configuration and that a pool applies. A custom pool
    also applies the MachineConfigs of the role worker.

    :param config: MachineConfig or KubeletConfig
    :param pools: MachineConfigPools of the cluster
    """
    return tuple(
        name
        for name, labels in collect_made_configs(config, pools).items()
        if labels_match(pool.config_selector, labels)
    )


def has_unrendered_config(pool: MachinePool, config: HostConfig, pools: typing.Iterable[MachinePool]) -> bool:
    """Return whether the operator has not yet rendered an existing MachineConfig into the desired configuration of a
    pool. Such a pool rolls soon, even if its status reports it as up to date.

    :param config: MachineConfig or KubeletConfig
    :param pools: MachineConfigPools of the cluster
    """
    return (
        config.kind == "MachineConfig"
        and config.there
        and not set(find_rendered_configs(pool, config, pools)) <= set(pool.sources)
    )


def find_conflicting_configs(
    pool: MachinePool, config: HostConfig, others: typing.Iterable[HostConfig], pools: typing.Sequence[MachinePool]
) -> tuple[str, ...]:
    """Return why a configuration conflicts with others of a pool, as one text per conflict. Each KubeletConfig becomes
    the complete configuration file of the kubelet, so that only one of several is effective. The file with the limit of
    locked memory replaces all limits that CRI-O has from earlier files.

    [machine-config-operator pkg/controller/kubelet-config generateKubeletIgnFiles, pkg/controller/common
    MergeMachineConfigs]

    :param config: MachineConfig or KubeletConfig
    :param others: other KubeletConfigs of the cluster, and the present MachineConfig of each pool that would lose
        limits of CRI-O
    :param pools: MachineConfigPools of the cluster
    """
    if config.kind == "MachineConfig" and CRIO_FILE in config.what and find_rendered_configs(pool, config, pools):
        return tuple(
            (
                f"MachineConfig {config.name} would remove limits of CRI-O that MachineConfigPool {pool.name} has now"
                f" (default_ulimits in {other.name}): {other.what}. Add them to rdma_cluster.host.memlock.ulimits, or"
                " remove them from the MachineConfig that sets them"
            )
            for other in others
            if (other.kind, other.name) == ("MachineConfig", pool.wanted_config)
        )
    if config.kind != "KubeletConfig" or not find_rendered_configs(pool, config, pools):
        return ()
    return tuple(
        (
            f"MachineConfigPool {pool.name} also selects KubeletConfig {other.name}, and a node applies the settings of"
            " only one of them"
        )
        for other in others
        if other.kind == "KubeletConfig" and find_rendered_configs(pool, other, pools)
    )


def is_current(pool: MachinePool) -> bool:
    """Return whether all machines of a MachineConfigPool have the desired configuration of the pool. Return False for a
    pool whose configuration is not rendered yet.
    """
    return (
        bool(pool.wanted_config)
        and pool.current_config == pool.wanted_config
        and pool.updated == pool.machines
        and pool.conditions.get("Updating") != "True"
    )


def is_changing_image(pool: MachinePool) -> bool:
    """Return whether the operator changes the image of the nodes of a pool, but not their MachineConfig: the pool has a
    MachineOSConfig. Which nodes have the new image already is not known. [OpenShift, image mode;
    machine-config-operator pkg/controller/node/status.go calculateStatus]
    """
    return (
        bool(pool.wanted_config)
        and pool.wanted_config == pool.current_config
        and pool.updated < pool.machines
        and pool.conditions.get("Updating") == "True"
    )


def find_outdated_nodes_outside_run(
    pool: MachinePool,
    pools: typing.Iterable[MachinePool],
    nodes: typing.Iterable[ClusterNode],
    inventory: typing.Container[str],
) -> typing.Optional[tuple[ClusterNode, ...]]:
    """Return the nodes of a pool that are not in the inventory and do not have the desired MachineConfig of the pool.
    Return None if a node of the inventory does not have it either, or if no node of the inventory is in the pool.

    :param pools: MachineConfigPools of the cluster
    :param inventory: names of the nodes of the inventory
    """
    members = _list_members(pool, pools, nodes)
    late = tuple(node for node in members if node.machine_config != pool.wanted_config)
    ours = any(node.name in inventory for node in members) and not any(node.name in inventory for node in late)
    return late if ours else None


def find_outdated_nodes(
    pool: MachinePool, pools: typing.Iterable[MachinePool], nodes: typing.Iterable[ClusterNode]
) -> tuple[ClusterNode, ...]:
    """Return the nodes of a pool that do not have the desired MachineConfig of the pool.

    :param pools: MachineConfigPools of the cluster
    """
    return tuple(node for node in _list_members(pool, pools, nodes) if node.machine_config != pool.wanted_config)


def _list_members(
    pool: MachinePool, pools: typing.Iterable[MachinePool], nodes: typing.Iterable[ClusterNode]
) -> list[ClusterNode]:
    pools = tuple(pools)
    return [node for node in nodes if (mine := find_machine_pool(node, pools)) is not None and mine.name == pool.name]


def waits_for(
    late: typing.Iterable[ClusterNode], pods: typing.Iterable[ClusterPod], budgets: typing.Sequence[Budget]
) -> tuple[str, ...]:
    """Return the reasons that keep nodes from their MachineConfig, each with its remedy: a node is NotReady, or a
    PodDisruptionBudget blocks its drain. A node that only waits for its turn gets no reason.

    :param late: nodes that do not have the desired MachineConfig of their pool
    :param pods: pods of all namespaces
    :param budgets: PodDisruptionBudgets of all namespaces
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
                f"node {node.name} is NotReady and does not recover"
                f" ({node.not_ready or 'its kubelet reports no reason'}): check its console"
            )
        elif held:
            said.append(
                f"node {node.name} is not drained: {'; '.join(held[:3])}: let the PodDisruptionBudget allow an eviction"
                " (one more replica), or delete the pod"
            )
    return tuple(said)


def under_way(
    pool: MachinePool,
    node: ClusterNode,
    pools: typing.Iterable[MachinePool],
    nodes: typing.Iterable[ClusterNode],
    inventory: Names,
) -> bool:
    """Return whether the operator is currently applying a MachineConfig to this node of the pool, or to another node of
    the inventory. A paused pool applies none.

    If all nodes of the inventory in the pool are up to date, outdated nodes outside of the inventory do not count.

    :param pools: MachineConfigPools of the cluster
    :param inventory: names of the nodes of the inventory
    """
    if pool.paused:
        return False
    late = node.machine_config != pool.wanted_config or is_changing_image(pool)
    return late or (
        pool.wanted_config != pool.current_config
        and find_outdated_nodes_outside_run(pool, pools, nodes, inventory) is None
    )


def find_rollout_blocker(
    node: ClusterNode, pools: typing.Sequence[MachinePool], nodes: typing.Iterable[ClusterNode], inventory: Names
) -> tuple[str, str]:
    """Return why a node must not be reset now by another tool than its MachineConfigPool, and the remedy. Both are
    empty if the node is in no pool, or if its pool is neither degraded, paused nor rolling.

    :param pools: MachineConfigPools of the cluster
    :param inventory: names of the nodes of the inventory
    """
    pool = find_machine_pool(node, pools)
    if pool is None:
        return "", ""
    if pool.conditions.get("Degraded") == "True":
        remedy = f"Repair the pool first: oc describe machineconfigpool {pool.name}"
        return f"{describe_pool(pool)} and is degraded: {pool.message or 'no reason reported'}", remedy
    if pool.paused and not pool.paused_by_us:
        who = "the SR-IOV operator" if pool.paused_by_operator else "a user or another program"
        return (
            f"MachineConfigPool {pool.name} is paused by {who}",
            f"When the reason of the pause is gone, unpause the pool: oc patch machineconfigpool {pool.name} --type"
            ' merge -p \'{"spec":{"paused":false}}\'',
        )
    # a pool that we have paused is let go by whoever holds the Lease; a node that had begun goes on all the same
    if under_way(pool, node, pools, nodes, inventory) or (pool.paused and not node.machine_config):
        return (
            f"{describe_pool(pool)}, so it may reboot the node",
            f"Wait until the pool is updated: oc get machineconfigpool {pool.name}",
        )
    return "", ""
