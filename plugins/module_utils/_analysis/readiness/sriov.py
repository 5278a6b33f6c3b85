# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether a fabric's network is ready on a node, which condition is not met, and whether waiting can help. The
loop that waits is in _run/cluster/wait_for_network.py.

The conditions are judged in the order in which the operator works: it has read the policy, selected the interface, and
created the VFs, and the kubelet offers the resource. Only data that belongs to this policy counts: ``Succeeded`` may be
older than the policy, and the VFs exist some seconds before the kubelet offers them.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.kubernetes.disruption import NodePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.wait import SyncNode
from ..._model.operators.sriov_operator import NodeState, Policy
from ..._parse.kubernetes.pod_state import PodState
from ..controllers.machine_configs.pools import describe_pool, find_machine_pool, pool_may_roll
from ..controllers.sriov.device_plugin import why_not_offered
from ..controllers.sriov.drains import find_pools
from ..controllers.sriov.policies import nearest_match, policy_selects, takes_node
from ..controllers.sriov.sync_errors import add_cause, explain
from .plain_network import find_first_missing
from .sriov_drain import DrainTurns, describe_drain, is_draining
from .sriov_judgements import describe_node_readiness, make_failed_judgement, make_waiting_judgement
from .sriov_state import describe_unmade, describe_unwritten
from .state import ClusterState, Judgement, Target


def judge(targets: typing.Iterable[Target], observed: ClusterState) -> tuple[Judgement, ...]:
    """Return for each fabric and each of its nodes whether the network is ready on the node, and for what the node
    waits otherwise.

    :param targets: fabrics for which the run waits
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    turns = DrainTurns(observed)
    return tuple(judge_node(target, name, observed, turns) for target in targets for name in target.nodes)


#: boots, and losses, from which on a node without progress is in a loop: the operator may need one boot
BOOTS, LOSSES = 2, 3


def judge_node(
    target: Target, name: str, observed: ClusterState, turns: typing.Optional[DrainTurns] = None
) -> Judgement:
    """Return the judgment of one node of one fabric: the first condition that is not met, or a failure if the node
    boots or becomes NotReady repeatedly without progress.

    :param target: fabric for which the run waits
    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    :param turns: drain limits of the nodes; None to compute them
    """
    judgement = _judge_node(target, name, observed, turns or DrainTurns(observed))
    history, node = observed.histories.get(name), observed.nodes.get(name)
    if history is None or node is None or judgement.node.phase != "waiting":
        return judgement
    machines = find_machine_pool(node, observed.machine_pools.values())
    since = f"since the operator last changed the desired state of the node (generation {history.generation})"
    if history.boots >= BOOTS and not (machines and pool_may_roll(machines, node)):
        detail = f"the node booted {history.boots} times {since} and made no progress: {judgement.node.detail}"
        remedy = (
            "Stop the reboots: delete the policy, and read the log of the config daemon for the setting that does not"
            " survive a reboot (firmware, kernel arguments)."
        )
        return make_failed_judgement(target, name, detail, remedy)
    if history.losses >= LOSSES:
        detail = f"the node changed from Ready to NotReady {history.losses} times {since}: {judgement.node.detail}"
        return make_failed_judgement(
            target,
            name,
            detail,
            "Read the log of the kubelet of the node (journalctl -u kubelet), and check its management network.",
        )
    return judgement


def _judge_node(target: Target, name: str, observed: ClusterState, turns: DrainTurns) -> Judgement:
    """Return the judgment of one node of one fabric, without its history: the first condition that is not met, from the
    objects that were read to the desired state of the operator.

    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    if observed.unread:
        return make_waiting_judgement(
            target,
            name,
            "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(observed.unread.items())),
        )
    node = observed.nodes.get(name)
    if node is None:
        seen = ", ".join(sorted(observed.nodes)) or "none"
        return make_failed_judgement(
            target,
            name,
            f"the cluster has no node {name}; its nodes are: {seen}",
            "Give the hosts of the inventory the node names that kubectl get nodes lists.",
        )
    if not target.functions:
        return _judge_attached(target, node, observed)
    policies = [observed.policies[policy] for policy in target.policies if policy in observed.policies]
    if not policies:
        detail = (
            f"policy {' or '.join(target.policies) or 'of this fabric'} does not exist, so no policy requests virtual"
            " functions here"
        )
        return make_failed_judgement(
            target,
            name,
            detail,
            "Follow the remedy of the finding network.policy_accepted of the policy.",
        )
    mine = [policy for policy in policies if takes_node(policy, node)]
    if not mine:
        selector = ", ".join(f"{key}={value}" for key, value in sorted(policies[0].node_selector.items()))
        return make_failed_judgement(
            target,
            name,
            f"the node does not have the label {selector} of the policy",
            "Follow the remedy of the finding operators.label of the node, which contains the cause.",
        )
    state = observed.states.get(name)
    if state is None:
        detail = "the operator has not created a SriovNetworkNodeState for the node"
        return make_waiting_judgement(
            target, name, f"{detail}{describe_node_readiness(node)}", "node_lost" if not node.ready else "not_seen"
        )
    return _judge_state(target, node, state, mine[0], observed, turns)


def _judge_attached(target: Target, node: ClusterNode, observed: ClusterState) -> Judgement:
    """Return whether a network without virtual functions is ready on a node, and for what the node waits otherwise.

    :param target: fabric for which the run waits
    :param node: node that the judgment is about
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    offered = node.allocatable.get(target.resource)
    missing = find_first_missing(target, node.name, observed)
    if missing is not None:
        return make_waiting_judgement(target, node.name, missing.detail, missing.suspect, offered=offered)
    parts = [
        *target.objects,
        f"NetworkAttachmentDefinition {target.attachment}" if target.attachment else "",
        target.pool,
    ]
    detail = ", ".join(part for part in parts if part) or "no objects required"
    return Judgement(SyncNode(target.fabric, node.name, "ready", detail, allocatable=offered))


def _judge_state(
    target: Target, node: ClusterNode, state: NodeState, policy: Policy, observed: ClusterState, turns: DrainTurns
) -> Judgement:
    """Return the judgment of a node with a SriovNetworkNodeState: whether the operator has written the policy into it,
    and whether the config daemon has applied it.

    :param policy: the policy of the fabric that selects the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    name = node.name
    if not state.interfaces:
        return _add_daemon_state(
            make_waiting_judgement(
                target,
                name,
                f"the config daemon has not reported the interfaces of the node yet{describe_node_readiness(node)}",
            ),
            node,
            observed,
            "sync_stuck",
        )
    matched = tuple(interface.address for interface in state.interfaces if policy_selects(policy, interface))
    if len(matched) != target.hcas_per_node:
        return _wrong_selection(target, name, state, policy, matched)
    pool = next(iter(find_pools(node, observed.pools.values())), NodePool(""))
    missing = describe_unwritten(policy, state, matched)
    if pool.rdma_mode and pool.rdma_mode != state.wanted_rdma_mode:
        missing = (
            f"RDMA mode is {state.wanted_rdma_mode or 'not set'}, and SriovNetworkPoolConfig {pool.name} requires"
            f" {pool.rdma_mode}"
        )
    if missing:
        detail = (
            f"the operator has not written policy {policy.name} into the desired state of the node yet:"
            f" {missing}{describe_node_readiness(node)}"
        )
        return make_waiting_judgement(target, name, detail, "not_seen" if node.ready else "node_lost", matched)
    if state.sync_status == "Failed":
        return _sync_failed(target, name, state, observed, matched)
    if is_draining(state):
        detail, suspect = describe_drain(target, node, state, observed, turns)
        return make_waiting_judgement(target, name, f"{detail}{describe_node_readiness(node)}", suspect, matched)
    if state.sync_status != "Succeeded":
        detail = (
            f"the config daemon is working (syncStatus {state.sync_status or 'not set'}){describe_node_readiness(node)}"
        )
        return _add_daemon_state(
            make_waiting_judgement(target, name, detail, "", matched), node, observed, "sync_stuck"
        )
    missing = describe_unmade(state, matched)
    if missing:
        detail = (
            "syncStatus is Succeeded, but that status is older than the policy:"
            f" {missing}{describe_node_readiness(node)}"
        )
        return _add_daemon_state(
            make_waiting_judgement(target, name, detail, "", matched), node, observed, "sync_stuck"
        )
    return _judge_offer(target, node, policy, matched, observed)


def _sync_failed(
    target: Target, name: str, state: NodeState, observed: ClusterState, matched: tuple[str, ...] = ()
) -> Judgement:
    """Return the judgment of a node on which the config daemon reports a failed sync, with the cause and the remedy. If
    the reported error names no cause, as in release 1.6.0, the cause is read from the log of the config daemon.

    :param target: fabric for which the run waits
    :param name: name of the node
    :param state: SriovNetworkNodeState of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    :param matched: physical functions that the policy selects
    """
    error = state.last_sync_error
    if explain(error) is None and explain(observed.logs.get(name, "")) is not None:
        error = f"{error or 'no reason reported'}; the log of the config daemon contains: {observed.logs[name]}"
    detail, remedy = add_cause(error)
    judgement = make_waiting_judgement(target, name, f"the config daemon failed: {detail}", "sync_failed", matched)
    return dataclasses.replace(judgement, node=dataclasses.replace(judgement.node, remedy=remedy))


def _add_daemon_state(judgement: Judgement, node: ClusterNode, observed: ClusterState, suspect: str) -> Judgement:
    """Return the judgment with the state of the node's config daemon added to its detail, and with the matching suspect
    state.

    :param judgement: judgment of a node that waits for its config daemon
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    :param suspect: suspect state of the node if the daemon's state is not the cause
    """
    detail, remedy = judgement.node.detail, judgement.node.remedy
    _name, stand = (observed.daemons or {}).get(node.name, ("", PodState("failed", "it does not exist on the node")))
    if not node.ready:
        suspect = "node_lost"
    elif observed.daemons is not None and stand.phase != "ready":
        detail, suspect = f"{detail}; the pod of the config daemon is not ready: {stand.detail}", "daemon_down"
    elif observed.logs.get(node.name):
        error, remedy = add_cause(observed.logs[node.name])
        detail, suspect = f"{detail}; the log of the config daemon contains: {error}", "sync_failing"
    return dataclasses.replace(
        judgement, node=dataclasses.replace(judgement.node, detail=detail, remedy=remedy), suspect=suspect
    )


def _judge_offer(
    target: Target, node: ClusterNode, policy: Policy, matched: tuple[str, ...], observed: ClusterState
) -> Judgement:
    """Return the judgment of a node on which the virtual functions exist: whether it offers them as a resource, and
    whether pods can be attached to the network.

    :param matched: PCI addresses of the physical functions that the policy selects
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    wanted = policy.vfs_count * len(matched)
    offered = node.allocatable.get(target.resource)
    if offered != wanted:
        seen = (
            f"offers {offered} {target.resource} instead of {wanted}"
            if offered is not None
            else f"does not offer {target.resource} (expected: {wanted})"
        )
        detail = f"the virtual functions exist, but the node {seen}{describe_node_readiness(node)}"
        if not node.ready:
            return make_waiting_judgement(target, node.name, detail, "node_lost", matched, offered)
        why, remedy = why_not_offered(node, target.resource, wanted)
        return Judgement(
            SyncNode(target.fabric, node.name, "waiting", f"{detail}. {why}", remedy, matched, offered), "not_offered"
        )
    if not node.ready:
        return make_waiting_judgement(
            target, node.name, f"all objects exist{describe_node_readiness(node)}", "node_lost", matched, offered
        )
    if target.attachment not in observed.attachments:
        return make_waiting_judgement(
            target,
            node.name,
            f"the operator has not created the NetworkAttachmentDefinition {target.attachment}",
            "no_attachment",
            matched,
            offered,
        )
    machines = find_machine_pool(node, observed.machine_pools.values())
    if machines and pool_may_roll(machines, node):
        detail = f"all objects exist, but the node may reboot once more: {describe_pool(machines)}"
        return make_waiting_judgement(target, node.name, detail, "", matched, offered)
    detail = f"{offered} {target.resource} on {count_of(len(matched), 'physical function')}"
    return Judgement(SyncNode(target.fabric, node.name, "ready", detail, matched=matched, allocatable=offered))


def _wrong_selection(
    target: Target, name: str, state: NodeState, policy: Policy, matched: tuple[str, ...]
) -> Judgement:
    """Return the judgment of a node on which the policy selects another number of physical functions than the intent
    requires.

    :param name: name of the node
    :param matched: PCI addresses of the physical functions that the policy selects
    """
    if not matched:
        detail = f"policy {policy.name} selects no interface of the node: {nearest_match(policy, state)}"
    else:
        detail = (
            f"policy {policy.name} selects {count_of(len(matched), 'physical function')} ({', '.join(matched)}), but"
            f" the intent requires {target.hcas_per_node}"
        )
        rest = [interface for interface in state.interfaces if interface.address not in matched]
        if rest and len(matched) < target.hcas_per_node:
            detail += f"; {nearest_match(policy, dataclasses.replace(state, interfaces=tuple(rest)))}"
    remedy = (
        "Correct select and hcas_per_node of the fabric. If the config daemon does not report the function, enable"
        " SR-IOV in its firmware (see stage platform), or add the NIC to supportedExtraNICs of the operator."
    )
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, remedy, matched), "wrong_selection")


def judge_release(targets: typing.Iterable[Target], observed: ClusterState) -> tuple[Judgement, ...]:
    """Return the judgment of each node while the fabrics are removed from it. The conditions are: no policy, no desired
    interface, no virtual function, no offered resource.

    :param targets: fabrics that are removed
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    turns = DrainTurns(observed)
    return tuple(_judge_release(target, name, observed, turns) for target in targets for name in target.nodes)


def _judge_release(target: Target, name: str, observed: ClusterState, turns: DrainTurns) -> Judgement:
    """Return the judgment of a node whose virtual functions of a fabric are removed: the first part that still exists.

    :param name: name of the node
    :param observed: objects of the API server that readiness depends on: nodes, policies, node states, pods
    """
    if observed.unread:
        return make_waiting_judgement(
            target,
            name,
            "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(observed.unread.items())),
        )
    left = [policy for policy in target.policies if policy in observed.policies]
    if left:
        return make_waiting_judgement(target, name, f"policy {', '.join(left)} still exists")
    state, node = observed.states.get(name), observed.nodes.get(name)
    if state is not None:
        wanted = [item.address for item in state.wanted if set(item.policies) & set(target.policies)]
        if wanted:
            return make_waiting_judgement(
                target,
                name,
                f"the desired state of the operator still contains virtual functions on {', '.join(wanted)}",
            )
        # functions that another policy wants remain; those without a policy must be removed
        others = {item.address for item in state.wanted}
        held = [
            f"{item.address} has {item.vfs_count}"
            for item in state.interfaces
            if item.vfs_count and item.address not in others
        ]
        if state.sync_status == "Failed":
            return _sync_failed(target, name, state, observed)
        if held and node is not None and is_draining(state):
            detail, suspect = describe_drain(target, node, state, observed, turns)
            return make_waiting_judgement(target, name, f"{detail}{describe_node_readiness(node)}", suspect)
        if held:
            return make_waiting_judgement(target, name, f"virtual functions still exist: {', '.join(held)}", "vfs_left")
    left_over = (
        (node.allocatable.get(target.resource) or node.unread.get(target.resource)) if node is not None else None
    )
    if left_over:
        return make_waiting_judgement(target, name, f"the node still offers {left_over} {target.resource}")
    return Judgement(SyncNode(target.fabric, name, "ready", f"no virtual function and no {target.resource}"))
