# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effects of new MachineConfigs and KubeletConfigs on the nodes: which MachineConfigPool drains and reboots
which nodes, in how many waves, and which conditions block it.

The rules are those of OpenShift's machine config operator. Each function cites its rule. The result becomes part of the
plan of stage network, which sriov.py begins.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import Budget, ClusterPod, DisruptionPlan, MachinePool, NodePlan, PoolPlan
from ..._model.kubernetes.host import HostConfig, KubeletStatus, Roll
from ..._model.kubernetes.objects import ClusterNode
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..controllers.budgets import PodsOfCluster, find_held_pods
from ..controllers.machine_config_operator import (
    find_at_once,
    find_conflicting_configs,
    find_rendered_configs,
    is_current,
)
from ..controllers.sriov_operator import describe_pool, find_machine_pool, is_evicted

_LOG_OF_CONTROLLER = "oc logs -n openshift-machine-config-operator deployment/machine-config-controller"
_IN_FORCE = "accepted by the machine config operator, and applied on all machines of its pools"


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
            nodes[node.name] = _add_pool_reboot(
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


def _add_pool_reboot(node: NodePlan, pool: MachinePool, reasons: tuple[str, ...], machines: Machines) -> NodePlan:
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


def check_plan(rolls: typing.Iterable[Roll], error: str, check: str = "network.roll") -> typing.Iterator[Finding]:
    """Yield a finding for each MachineConfigPool on whether all of its machines got the new configuration in a single
    roll, and one failed finding if the configuration was not rendered.

    :param rolls: observed roll of each pool
    :param error: why the new configuration was not rendered; empty if it was
    :param check: check id of the findings
    """
    expected, again = "all machines on the new configuration, updated once", _describe_rerun(check)
    if error:
        why = (
            f"The machine config operator did not render the new configuration: {format_clause(error)}. The pools were"
            " unpaused nevertheless, so that no pool stays paused."
        )
        yield Finding(
            check,
            "MachineConfigPools",
            FAIL,
            "new configuration not rendered",
            expected,
            why,
            f"Read the log: {_LOG_OF_CONTROLLER}. Correct the cause, then {again}.",
        )
    for roll in rolls:
        subject, measured = (
            f"MachineConfigPool {roll.pool}",
            f"{roll.updated} of {count_of(roll.machines, 'machine')} on {roll.config or 'no configuration'}, updated"
            f" {'once' if roll.rolls == 1 else f'{roll.rolls} times'}",
        )
        if roll.error:
            why = f"Not all nodes of the pool reached the new configuration: {format_clause(roll.error)}."
            remedy = (
                f"Run oc describe machineconfigpool {roll.pool}, and read the log of the machine-config-daemon on the"
                f" node that makes no progress. Correct the cause, then {again}."
            )
            yield Finding(check, subject, FAIL, f"{measured}, update failed", expected, why, remedy)
        elif not roll.updated <= roll.machines <= roll.updated + len(roll.others):
            why = (
                "The waiting time of the run ended before all machines of the pool had the new configuration. A"
                " degraded node or a blocked drain stops a pool."
            )
            yield Finding(
                check,
                subject,
                FAIL,
                measured,
                expected,
                why,
                f"Run oc describe machineconfigpool {roll.pool}. If it shows a degraded node or a blocked drain,"
                f" correct this. Otherwise wait until oc get machineconfigpool {roll.pool} shows UPDATED True. Then"
                f" {again}.",
            )
        elif roll.rolls > 1:
            why = (
                "Another program gave the pool a different configuration during the update, so nodes rebooted more than"
                " once."
            )
            yield Finding(
                check,
                subject,
                FAIL,
                measured,
                expected,
                why,
                "Find the program that changes MachineConfigs (oc get machineconfig --sort-by"
                f" .metadata.creationTimestamp --show-managed-fields), and stop it. Then {again}.",
            )
        elif roll.others:
            why = (
                "Each node of the inventory has the new configuration. These other nodes of the pool do not have it:"
                f" {join_first(roll.others, 20)}."
            )
            yield Finding(
                check,
                subject,
                WARN,
                f"{measured}; {count_of(len(roll.others), 'other node')} not updated",
                expected,
                why,
                "Run oc describe node for each of these nodes: a NotReady node applies no configuration. Repair or"
                f" remove it, then {again}.",
            )
        else:
            yield build_pass(check, subject, measured, expected)


def report_not_rolled(
    planned: typing.Optional[DisruptionPlan], rolls: typing.Iterable[Roll], check: str = "network.roll"
) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` for each pool whose planned roll was not observed, for each pool that has
    fewer machines than planned, and for each pool whose plan contradicts the plans of its nodes.

    :param planned: predicted drains and reboots; None yields no finding
    :param rolls: observed roll of each pool
    :param check: check id of the findings
    """
    if planned is None:
        return
    rolls = tuple(rolls)
    seen = {roll.pool for roll in rolls}
    machines = {roll.pool: roll.machines for roll in rolls if not roll.error}
    members = {pool.name: pool.nodes for pool in planned.pools if pool.machines}
    by_nodes: dict[str, set[str]] = {}
    for node in planned.nodes:
        if node.rolled_by:
            by_nodes.setdefault(node.rolled_by, set()).add(node.node)
    unknown = {node.node for node in planned.nodes if node.action == "unknown"}
    again = _describe_rerun(check)
    expected = "all machines on the new configuration, after 1 roll"
    for name in dict.fromkeys((*members, *by_nodes)):
        subject = f"MachineConfigPool {name}"
        if name not in seen:
            why = "The new MachineConfigs update this pool, but the run ended before it waited for the update."
            wait = f"Wait until oc get machineconfigpool {name} shows UPDATED True, then {again}."
            yield Finding(check, subject, UNKNOWN, "update not observed", expected, why, wait)
        nodes = len(members.get(name, ()))
        if machines.get(name, nodes) < nodes:
            why = (
                f"The pool had {count_of(nodes, 'node')} before the update, and some of them have left it since."
                " Whether they have the new configuration is unknown."
            )
            left = f"Give the nodes the labels that the pool selects (oc get nodes --show-labels), then {again}."
            measured = f"{count_of(machines[name], 'machine')} in the pool"
            yield Finding(check, subject, UNKNOWN, measured, f"{count_of(nodes, 'machine')}, updated once", why, left)
        odd = sorted((by_nodes.get(name, set()) ^ set(members.get(name, ()))) - unknown)
        if odd:
            why = (
                "The stored result contradicts itself: the list of the nodes that the pool updates and the entries of"
                f" these nodes differ: {join_first(odd)}."
            )
            remedy = f"{again[0].upper()}{again[1:]}, so that the list and the entries are computed anew."
            yield Finding(check, subject, UNKNOWN, "nodes of the pool not determined", expected, why, remedy)


def _describe_rerun(check: str) -> str:
    """Return the instruction to run again the stage, or the teardown, to which a check belongs.

    :param check: check id, which begins with the name of its stage
    """
    stage = check.partition(".")[0]
    return "run the teardown again" if stage == "teardown" else f"run stage {stage} again"


def _describe_behind(pool: MachinePool, config: HostConfig, stand: KubeletStatus) -> str:
    """Return why the machines of a pool do not have a KubeletConfig yet, as a clause for a finding.

    :param config: KubeletConfig that the machines of the pool should have
    :param stand: status of the KubeletConfigs of the cluster
    """
    missing = set(find_rendered_configs(pool, config, stand.pools)) - set(pool.sources)
    if is_current(pool) and missing:
        return (
            f"the configuration {pool.wanted_config} of MachineConfigPool {pool.name} does not contain"
            f" {join_first(sorted(missing))}"
        )
    return describe_pool(pool)


def check_kubelet(stand: typing.Optional[KubeletStatus], check_mode: bool) -> typing.Iterator[Finding]:
    """Yield for each KubeletConfig of the intent whether the machine config operator accepted it and all machines of
    its pools run it. This includes KubeletConfigs that this run did not change.

    :param stand: status of the KubeletConfigs; None if they were not read, which results in an unknown finding
    :param check_mode: whether the run is in check mode
    """
    stand = stand or KubeletStatus()
    if stand.error or not stand.wanted:
        why = (
            "The KubeletConfigs and MachineConfigPools were not read:"
            f" {format_clause(stand.error, 'the run ended before it read them')}."
        )
        remedy = "Run stage network again."
        if stand.error:
            remedy = (
                "If the error reports a missing right, run kubectl apply -f docs/rbac/look.yml as an admin of the"
                " cluster. Otherwise check the API server with kubectl cluster-info. Then run stage network again."
            )
        yield Finding("network.kubelet", "KubeletConfig", UNKNOWN, "not read", _IN_FORCE, why, remedy)
    for config in stand.wanted:
        yield _check_kubelet(config, stand, check_mode)


def _check_kubelet(config: HostConfig, stand: KubeletStatus, check_mode: bool) -> Finding:
    check, subject = "network.kubelet", f"KubeletConfig {config.name}"
    pools = [pool for pool in stand.pools if find_rendered_configs(pool, config, stand.pools)]
    clashes = [text for pool in pools for text in find_conflicting_configs(pool, config, stand.others, stand.pools)]
    behind = [
        pool
        for pool in pools
        if not (
            (is_current(pool) or pool.name in stand.reached)
            and set(find_rendered_configs(pool, config, stand.pools)) <= set(pool.sources)
        )
    ]
    if not config.there:
        why = (
            "The run had --check, so it applied no KubeletConfig."
            if check_mode
            else "The run did not apply the KubeletConfig, or another program changed or deleted it since."
        )
        remedy = (
            f"Run oc get kubeletconfig {config.name} -o yaml --show-managed-fields. If it exists and managedFields"
            " lists another program, change the settings in that program. If the run was refused, correct the findings"
            " network.disruption, network.drain and network.object_accepted. Then run stage network again without"
            " --check."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "the cluster has no KubeletConfig of this name with the settings of the intent",
            _IN_FORCE,
            why,
            remedy,
        )
    if config.refusal is None:
        why = (
            "The machine config operator has not reported whether it accepts the current generation of the"
            " KubeletConfig."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "no condition for its current generation",
            _IN_FORCE,
            why,
            f"Read the log: {_LOG_OF_CONTROLLER}. Correct the cause, then run stage network again.",
        )
    if config.refusal:
        why = (
            "The machine config operator rejected the KubeletConfig, so the kubelets keep their previous settings. The"
            " message of the operator is under 'measured'."
        )
        return Finding(
            check,
            subject,
            FAIL,
            f"Failure: {config.refusal}",
            _IN_FORCE,
            why,
            "Correct the setting that the message names, then run stage network again.",
        )
    if clashes or not pools:
        measured = (
            ("accepted, but another KubeletConfig selects the same pool")
            if clashes
            else "accepted, but no pool selected"
        )
        why = f"{'; '.join(clashes) or 'No MachineConfigPool has the labels that the KubeletConfig selects'}."
        remedy = (
            "Put all settings into one KubeletConfig, then run stage network again."
            if clashes
            else "Give the pool the labels of rdma_cluster.host.kubelet.pool_labels (oc label machineconfigpool"
            " POOL KEY=VALUE),"
            " then run stage network again."
        )
        return Finding(check, subject, FAIL, measured, _IN_FORCE, why, remedy)
    if behind:
        why = (
            "Not all machines have the configuration yet:"
            f" {'; '.join(_describe_behind(pool, config, stand) for pool in behind)}."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            "accepted, rollout in progress",
            _IN_FORCE,
            why,
            "Wait for the update of the MachineConfigPool (oc get machineconfigpool), or unpause it and repair its"
            " degraded machines. Then run stage network again.",
        )
    which = "all machines" if all(map(is_current, pools)) else "all machines of the inventory, but not all machines,"
    return build_pass(
        check, subject, f"{config.what}: on {which} of {', '.join(pool.name for pool in pools)}", _IN_FORCE
    )
