# SPDX-License-Identifier: GPL-3.0-or-later

"""When is a fabric's network ready on a node, and if it is not: what is missing, and can waiting help? Pure; the loop
is in _run/cluster/wait_for_network.py.

The order of the questions is the order in which the operator works: policy seen, interface selected, VFs made, resource
offered. Each question trusts only what belongs to this policy: ``Succeeded`` may be older than the policy, and the VFs
are there some seconds before the kubelet offers them.
"""

from __future__ import annotations

import dataclasses
import math
import typing

from ..._model.kubernetes.disruption import NodePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.wait import SyncNode
from ..._model.operators.sriov_operator import NodeState, Policy, WantedInterface
from ..._parse.kubernetes.pod_state import PodState
from ..controllers.budgets import find_held_pods
from ..controllers.device_plugin import why_not_offered
from ..controllers.sriov_operator import (
    Turn,
    describe,
    explain_what_holds_back,
    find_machine_pool,
    find_pools,
    find_wanted_by,
    list_changes,
    nearest_match,
    rolls,
    selects,
    takes_node,
    turn_of,
)
from ..controllers.sync_errors import add_cause, explain
from .plain_network import find_first_missing
from .state import ClusterState, Judgement, Target

# Named predicates on resources


def unseen(policy: Policy, state: NodeState, addresses: typing.Iterable[str]) -> str:
    """In what the node's wanted state differs from the policy, in words; empty when the operator has written all of the
    policy into it."""
    wanted = {item.address: item for item in state.wanted}
    functions = {item.address: item for item in state.interfaces}
    for address in addresses:
        if address not in wanted:
            return f"{address} is not in it"
        said = _differs(find_wanted_by(policy, functions[address]), wanted[address])
        if said:
            return f"{address} {said}"
    return ""


def _differs(asked: WantedInterface, wanted: WantedInterface) -> str:
    (group,) = asked.groups
    mine = next((item for item in wanted.groups if item.policy == group.policy), None)
    if mine is None:
        return f"is wanted by {', '.join(wanted.policies) or 'no policy'} instead"
    # of several policies on one function the larger number and MTU count
    pairs: tuple[tuple[str, typing.Any, typing.Any, bool], ...] = (
        (
            "numVfs",
            wanted.vfs_count,
            asked.vfs_count,
            wanted.vfs_count < asked.vfs_count or (len(wanted.groups) == 1 and wanted.vfs_count > asked.vfs_count),
        ),
        ("mtu", wanted.mtu, asked.mtu, wanted.mtu < asked.mtu or (len(wanted.groups) == 1 and wanted.mtu > asked.mtu)),
        (
            "linkType",
            wanted.link_type,
            asked.link_type,
            len(wanted.groups) == 1 and wanted.link_type.upper() != asked.link_type.upper(),
        ),
        ("resourceName", mine.resource, group.resource, mine.resource != group.resource),
        ("deviceType", mine.device_type, group.device_type, mine.device_type != group.device_type),
        ("isRdma", mine.rdma, group.rdma, mine.rdma != group.rdma),
        ("mtu of the virtual functions", mine.mtu, group.mtu, mine.mtu != group.mtu),
        (
            "vfRange",
            f"{mine.first}-{mine.last}",
            f"{group.first}-{group.last}",
            (mine.first, mine.last) != (group.first, group.last),
        ),
    )
    return "; ".join(
        f"{what} is {seen}, the policy asks for {asked_for}" for what, seen, asked_for, other in pairs if other
    )


def unmade(state: NodeState, addresses: typing.Iterable[str]) -> str:
    """Describe what the config daemon's report lacks of the node's desired state; empty when nothing."""
    wanted = {item.address: item for item in state.wanted}
    made = {interface.address: interface for interface in state.interfaces}
    if state.wanted_rdma_mode and state.rdma_mode and state.wanted_rdma_mode != state.rdma_mode:
        return f"RDMA mode {state.rdma_mode} -> {state.wanted_rdma_mode}"
    for address in addresses:
        missing = list(list_changes(wanted[address], made[address]))
        if len(made[address].vfs) < wanted[address].vfs_count:
            missing.append(f"{len(made[address].vfs)} of {wanted[address].vfs_count} virtual functions are reported")
        if missing:
            return f"{address} {'; '.join(missing)}"
    return ""


def draining(state: NodeState) -> bool:
    """Return whether the node is being drained or waits for its turn."""
    return state.desired_state not in ("", "Idle") or state.current_state not in ("", "Idle")


# The judgement


def judge(targets: typing.Iterable[Target], world: ClusterState) -> tuple[Judgement, ...]:
    """Judge the progress of each node of each fabric."""
    turns = DrainTurns(world)
    return tuple(judge_node(target, name, world, turns) for target in targets for name in target.nodes)


class DrainTurns:
    """The turns of a world's nodes. Nodes of the same pools have the same turn, and a pool is counted once."""

    def __init__(self, world: ClusterState) -> None:
        self._nodes = tuple(world.nodes.values())
        self._pools = tuple(world.pools.values())
        self._known: dict[tuple[str, ...], Turn] = {}

    def of(self, node: ClusterNode) -> Turn:
        key = tuple(pool.name for pool in find_pools(node, self._pools))
        if key not in self._known:
            self._known[key] = turn_of(node, self._pools, self._nodes)
        return self._known[key]


#: boots, and losses, from which on a node that gets no further is in a loop: one boot is what the operator may need
BOOTS, LOSSES = 2, 3


def judge_node(target: Target, name: str, world: ClusterState, turns: typing.Optional[DrainTurns] = None) -> Judgement:
    """Judge the progress of one node of one fabric: the first thing that is missing, or that it goes round in
    circles."""
    judgement = _judge_node(target, name, world, turns or DrainTurns(world))
    history, node = world.histories.get(name), world.nodes.get(name)
    if history is None or node is None or judgement.node.phase != "waiting":
        return judgement
    machines = find_machine_pool(node, world.machine_pools.values())
    since = f"since the operator last changed what it wants of it (generation {history.generation})"
    if history.boots >= BOOTS and not (machines and rolls(machines, node)):
        detail = f"the node booted {history.boots} times {since} and got no further: {judgement.node.detail}"
        remedy = (
            "Stop the loop: pause the policy or the SriovNetworkPoolConfig, and see why the wish does not outlast a"
            " boot (firmware, kernel arguments)."
        )
        return _failed(target, name, detail, remedy)
    if history.losses >= LOSSES:
        detail = f"the node went from Ready to NotReady {history.losses} times {since}: {judgement.node.detail}"
        return _failed(target, name, detail, "See the kubelet of the node, and its management network.")
    return judgement


def _judge_node(target: Target, name: str, world: ClusterState, turns: DrainTurns) -> Judgement:
    if world.unread:
        return _waiting(
            target, name, "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(world.unread.items()))
        )
    node = world.nodes.get(name)
    if node is None:
        seen = ", ".join(sorted(world.nodes)) or "none"
        return _failed(
            target,
            name,
            f"the cluster has no node {name}; it has: {seen}",
            "Name the inventory's hosts as the cluster names its nodes.",
        )
    if not target.functions:
        return _judge_attached(target, node, world)
    policies = [world.policies[policy] for policy in target.policies if policy in world.policies]
    if not policies:
        detail = (
            f"there is no policy {' or '.join(target.policies) or 'of this fabric'}: nothing asks for virtual functions"
            " here"
        )
        return _failed(target, name, detail, "See why the API server did not take the policy.")
    mine = [policy for policy in policies if takes_node(policy, node)]
    if not mine:
        selector = ", ".join(f"{key}={value}" for key, value in sorted(policies[0].node_selector.items()))
        return _failed(
            target,
            name,
            f"the node does not carry the policy's label {selector}",
            "See the stage operators: it says why the label is absent.",
        )
    state = world.states.get(name)
    if state is None:
        detail = "the operator has made no SriovNetworkNodeState for the node"
        return _waiting(target, name, f"{detail}{_readiness(node)}", "node_lost" if not node.ready else "not_seen")
    return _judge_state(target, node, state, mine[0], world, turns)


def _judge_attached(target: Target, node: ClusterNode, world: ClusterState) -> Judgement:
    """The same for a network without virtual functions, where one list of questions is all."""
    offered = node.allocatable.get(target.resource)
    missing = find_first_missing(target, node.name, world)
    if missing is not None:
        return _waiting(target, node.name, missing.detail, missing.suspect, offered=offered)
    parts = [
        *target.objects,
        f"NetworkAttachmentDefinition {target.attachment}" if target.attachment else "",
        target.pool,
    ]
    detail = ", ".join(part for part in parts if part) or "nothing had to be made"
    return Judgement(SyncNode(target.fabric, node.name, "ready", detail, allocatable=offered))


def _judge_state(
    target: Target, node: ClusterNode, state: NodeState, policy: Policy, world: ClusterState, turns: DrainTurns
) -> Judgement:
    name = node.name
    if not state.interfaces:
        return _daemon(
            _waiting(target, name, f"the config daemon has not reported the node's interfaces yet{_readiness(node)}"),
            node,
            world,
            "sync_stuck",
        )
    matched = tuple(interface.address for interface in state.interfaces if selects(policy, interface))
    if len(matched) != target.hcas_per_node:
        return _wrong_selection(target, name, state, policy, matched)
    pool = next(iter(find_pools(node, world.pools.values())), NodePool(""))
    missing = unseen(policy, state, matched)
    if pool.rdma_mode and pool.rdma_mode != state.wanted_rdma_mode:
        missing = (
            f"RDMA mode is {state.wanted_rdma_mode or 'not set'}, SriovNetworkPoolConfig {pool.name} asks for"
            f" {pool.rdma_mode}"
        )
    if missing:
        detail = (
            f"the operator has not put policy {policy.name} into the node's wanted state yet:"
            f" {missing}{_readiness(node)}"
        )
        return _waiting(target, name, detail, "not_seen" if node.ready else "node_lost", matched)
    if state.sync_status == "Failed":
        return _sync_failed(target, name, state, world, matched)
    if draining(state):
        detail, suspect = _describe_drain(target, node, state, world, turns)
        return _waiting(target, name, f"{detail}{_readiness(node)}", suspect, matched)
    if state.sync_status != "Succeeded":
        detail = f"the config daemon works (syncStatus {state.sync_status or 'not set'}){_readiness(node)}"
        return _daemon(_waiting(target, name, detail, "", matched), node, world, "sync_stuck")
    missing = unmade(state, matched)
    if missing:
        detail = f"syncStatus is Succeeded, but it is older than the policy: {missing}{_readiness(node)}"
        return _daemon(_waiting(target, name, detail, "", matched), node, world, "sync_stuck")
    return _judge_offer(target, node, policy, matched, world)


def _sync_failed(
    target: Target, name: str, state: NodeState, world: ClusterState, matched: tuple[str, ...] = ()
) -> Judgement:
    """Return the judgement of a failed sync, with cause and remedy of its error. Release 1.6.0 reports it without its
    cause, which is in the log."""
    error = state.last_sync_error
    if explain(error) is None and explain(world.logs.get(name, "")) is not None:
        error = f"{error or 'it gave no reason'}; its log says: {world.logs[name]}"
    detail, remedy = add_cause(error)
    judgement = _waiting(target, name, f"the config daemon failed: {detail}", "sync_failed", matched)
    return dataclasses.replace(judgement, node=dataclasses.replace(judgement.node, remedy=remedy))


def _readiness(node: ClusterNode) -> str:
    return "" if node.ready else f"; the node is NotReady: {node.not_ready or 'no reason given'}"


def _describe_drain(
    target: Target, node: ClusterNode, state: NodeState, world: ClusterState, turns: DrainTurns
) -> tuple[str, str]:
    """Describe the progress of the drain of a node, and what is suspect about it."""
    reboots = state.desired_state == "Reboot_Required"
    what = "drained and rebooted" if reboots else "drained"
    detail = (
        f"the node is {what} first (wanted {state.desired_state or 'nothing'}, now {state.current_state or 'nothing'})"
    )
    machines = find_machine_pool(node, world.machine_pools.values())
    held_back = explain_what_holds_back(machines) if machines else ""
    if held_back:
        return f"{detail}; {held_back}", "pool_held"
    if machines and rolls(machines, node):
        return f"{detail}; {describe(machines)}", ""
    if state.current_state == "DrainComplete":
        return detail, "" if node.ready else "rebooting" if reboots else "node_lost"
    if not node.ready:
        return detail, "node_lost"
    if state.current_state != "Draining":
        turn = turns.of(node)
        # a node that waits for its turn does so for as long as the others need
        return (
            (f"{detail}; {turn.blocked}", "no_turn")
            if turn.blocked
            else (f"{detail}; it waits for its turn: {turn.limit}", "")
        )
    if "PodDisruptionBudget" in world.blind:
        return f"{detail}; PodDisruptionBudgets cannot be read: {world.blind['PodDisruptionBudget']}", "drain_blocked"
    held = find_held_pods(
        world.pods.get(node.name, ()), reboots, target.resource.partition("/")[0], tuple(world.budgets.values())
    )
    return (f"{detail}; {'; '.join(held)}", "drain_held") if held else (detail, "drain_blocked")


def _daemon(judgement: Judgement, node: ClusterNode, world: ClusterState, suspect: str) -> Judgement:
    """With what is known of the config daemon, whose work the node waits for."""
    detail, remedy = judgement.node.detail, judgement.node.remedy
    _name, stand = (world.daemons or {}).get(node.name, ("", PodState("failed", "there is none on the node")))
    if not node.ready:
        suspect = "node_lost"
    elif world.daemons is not None and stand.phase != "ready":
        detail, suspect = f"{detail}; the config daemon's pod is not ready: {stand.detail}", "daemon_down"
    elif world.logs.get(node.name):
        error, remedy = add_cause(world.logs[node.name])
        detail, suspect = f"{detail}; its log says: {error}", "sync_failing"
    return dataclasses.replace(
        judgement, node=dataclasses.replace(judgement.node, detail=detail, remedy=remedy), suspect=suspect
    )


def _judge_offer(
    target: Target, node: ClusterNode, policy: Policy, matched: tuple[str, ...], world: ClusterState
) -> Judgement:
    wanted = policy.vfs_count * len(matched)
    offered = node.allocatable.get(target.resource)
    if offered != wanted:
        seen = offered if offered is not None else "no"
        detail = (
            f"the virtual functions are there, but the node offers {seen} {target.resource} of"
            f" {wanted}{_readiness(node)}"
        )
        if not node.ready:
            return _waiting(target, node.name, detail, "node_lost", matched, offered)
        why, remedy = why_not_offered(node, target.resource, wanted)
        return Judgement(
            SyncNode(target.fabric, node.name, "waiting", f"{detail}. {why}", remedy, matched, offered), "not_offered"
        )
    if not node.ready:
        return _waiting(target, node.name, f"all is there{_readiness(node)}", "node_lost", matched, offered)
    if target.attachment not in world.attachments:
        return _waiting(
            target,
            node.name,
            f"the operator has not made the NetworkAttachmentDefinition {target.attachment}",
            "no_attachment",
            matched,
            offered,
        )
    machines = find_machine_pool(node, world.machine_pools.values())
    if machines and rolls(machines, node):
        detail = f"all is there, but the node may reboot once more: {describe(machines)}"
        return _waiting(target, node.name, detail, "", matched, offered)
    detail = f"{offered} {target.resource} on {len(matched)} physical functions"
    return Judgement(SyncNode(target.fabric, node.name, "ready", detail, matched=matched, allocatable=offered))


def _wrong_selection(
    target: Target, name: str, state: NodeState, policy: Policy, matched: tuple[str, ...]
) -> Judgement:
    if not matched:
        detail = f"no interface of the node is selected by policy {policy.name}: {nearest_match(policy, state)}"
    else:
        detail = (
            f"policy {policy.name} selects {len(matched)} physical functions ({', '.join(matched)}), the intent says"
            f" {target.hcas_per_node}"
        )
        rest = [interface for interface in state.interfaces if interface.address not in matched]
        if rest and len(matched) < target.hcas_per_node:
            detail += f"; {nearest_match(policy, dataclasses.replace(state, interfaces=tuple(rest)))}"
    remedy = (
        "Correct select and hcas_per_node of the fabric, or see why the config daemon does not report the function (no"
        " SR-IOV in firmware, not supported)."
    )
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, remedy, matched), "wrong_selection")


def _waiting(
    target: Target,
    name: str,
    detail: str,
    suspect: str = "",
    matched: tuple[str, ...] = (),
    offered: typing.Optional[int] = None,
) -> Judgement:
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, matched=matched, allocatable=offered), suspect)


def _failed(target: Target, name: str, detail: str, remedy: str) -> Judgement:
    return Judgement(SyncNode(target.fabric, name, "failed", detail, remedy))


def judge_release(targets: typing.Iterable[Target], world: ClusterState) -> tuple[Judgement, ...]:
    """Judge the progress of each node back to its earlier state: no policy, nothing wanted of it, no virtual function,
    nothing offered."""
    turns = DrainTurns(world)
    return tuple(_judge_release(target, name, world, turns) for target in targets for name in target.nodes)


def _judge_release(target: Target, name: str, world: ClusterState, turns: DrainTurns) -> Judgement:
    if world.unread:
        return _waiting(
            target, name, "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(world.unread.items()))
        )
    left = [policy for policy in target.policies if policy in world.policies]
    if left:
        return _waiting(target, name, f"policy {', '.join(left)} is still there")
    state, node = world.states.get(name), world.nodes.get(name)
    if state is not None:
        wanted = [item.address for item in state.wanted if set(item.policies) & set(target.policies)]
        if wanted:
            return _waiting(target, name, f"the operator still wants virtual functions on {', '.join(wanted)}")
        # what other policies want stays; what nobody wants must be gone
        others = {item.address for item in state.wanted}
        held = [
            f"{item.address} has {item.vfs_count}"
            for item in state.interfaces
            if item.vfs_count and item.address not in others
        ]
        if state.sync_status == "Failed":
            return _sync_failed(target, name, state, world)
        if held and node is not None and draining(state):
            detail, suspect = _describe_drain(target, node, state, world, turns)
            return _waiting(target, name, f"{detail}{_readiness(node)}", suspect)
        if held:
            return _waiting(target, name, f"virtual functions are still there: {', '.join(held)}", "vfs_left")
    left_over = (
        (node.allocatable.get(target.resource) or node.unread.get(target.resource)) if node is not None else None
    )
    if left_over:
        return _waiting(target, name, f"the node still offers {left_over} {target.resource}")
    return Judgement(SyncNode(target.fabric, name, "ready", f"no virtual function and no {target.resource}"))


#: how long a suspect state may last before it is the end, in seconds, and what to do about it then
GRACE: dict[str, tuple[float, str]] = {
    # the daemon retries a failed sync at once, and a report of an older policy is replaced within seconds
    "sync_failed": (
        20.0,
        "Correct what the config daemon says; its log (pods sriov-network-config-daemon) has the whole story.",
    ),
    "wrong_selection": (10.0, "Correct select and hcas_per_node of the fabric."),
    "not_seen": (180.0, "See the operator's log: another policy may take the function, or the operator does not run."),
    # the daemon of release 1.6.0 repeats a sync that fails and does not report it; what is in its log is the cause
    "sync_failing": (60.0, "Correct what the config daemon's log says (pods sriov-network-config-daemon)."),
    "sync_stuck": (900.0, "See the log of the config daemon on the node (pods sriov-network-config-daemon)."),
    "daemon_down": (
        120.0,
        (
            "Bring the config daemon's pod back (DaemonSet sriov-network-config-daemon): without it nothing is made on"
            " the node."
        ),
    ),
    "drain_blocked": (
        600.0,
        "See the operator's log: it names the pods that it cannot evict. Or drain the node by hand.",
    ),
    # another replica may be about to start; after that nothing changes by itself
    "drain_held": (180.0, "Let the PodDisruptionBudget allow an eviction (one replica more), or end the pod."),
    "no_turn": (
        10.0,
        "Give maxUnavailable of the SriovNetworkPoolConfig a number of 1 at least, and each node one pool.",
    ),
    "pool_held": (60.0, "Bring the MachineConfigPool to its end: unpause it, or correct what degrades it."),
    # the control plane itself has waited for 40 s or more before it says NotReady
    "node_lost": (120.0, "Bring the node back: see its power, its kubelet and its management network."),
    # firmware and memory tests of a large machine
    "rebooting": (1800.0, "The node was rebooted and did not come back: see its console."),
    "not_offered": (
        180.0,
        (
            "See the log of the pod sriov-device-plugin on the node, and the label"
            " sriovnetwork.openshift.io/device-plugin."
        ),
    ),
    "unschedulable": (60.0, "See what the scheduler misses: the resource, CPU, memory or a taint."),
    "image": (60.0, "Correct pods.image and pods.image_pull_policy, or give the nodes access to the registry."),
    "container": (30.0, "Correct what the kubelet names."),
    "not_reported": (
        120.0,
        (
            "Read the log of NVIDIA's network operator (kubectl logs -n nvidia-network-operator"
            " deploy/nvidia-network-operator)."
        ),
    ),
    # a driver may be built on the node, for as long as that takes: only the limit of the wait ends this
    "part": (
        math.inf,
        "See the pods and the log of NVIDIA's network operator: kubectl get pods -n nvidia-network-operator -o wide",
    ),
    "part_image": (
        180.0,
        (
            "Give the node access to the registry, or name one that has the image"
            " (rdma_cluster.network_operator.repository) in a release that is there (version)."
        ),
    ),
    "part_container": (300.0, "Read the log of the pod that is named: kubectl logs -n nvidia-network-operator POD"),
    "part_unschedulable": (180.0, "See what the scheduler misses: CPU, memory or a taint of the node."),
    "no_nic_label": (
        180.0,
        (
            "Have node feature discovery on the node label vendors of NICs (sources.pci of its worker:"
            " deviceClassWhitelist with 02, deviceLabelFields: [vendor])."
        ),
    ),
    "state_error": (60.0, "Correct what the operator names; its log has the whole story."),
    "bad_attachment": (
        60.0,
        (
            "See who writes the NetworkAttachmentDefinition: its operator's log, or another tool. Then run the stage"
            " again."
        ),
    ),
    "no_share": (60.0, "See the log of the controller of nv-ipam, and the nodeSelector and size of the pool."),
    "not_shared": (
        300.0,
        "See the log of the device plugin on the node, and whether its selectors fit an interface there.",
    ),
    "unread": (10.0, "Give the user of the kubeconfig the rights of docs/rbac/look.yml."),
    "vfs_left": (120.0, "If somebody else made them, leave them; else see the config daemon's log."),
    "no_attachment": (60.0, "Read the operator's log. The namespace must exist, and the ipam text must be valid JSON."),
}


class SuspectTimer:
    """Turns a suspect state that lasts too long into a failure. Time is given in, so that a test needs none."""

    def __init__(self, grace: typing.Optional[typing.Mapping[str, float]] = None) -> None:
        """:param grace: seconds for each suspect, instead of those of GRACE"""
        self._grace = {name: (grace or {}).get(name, seconds) for name, (seconds, _remedy) in GRACE.items()}
        self._since: dict[tuple[str, str], tuple[str, float]] = {}
        #: a judgement, and its node with the remedy of its suspect: most judgements are the ones of the last time
        self._named: dict[tuple[str, str], tuple[Judgement, SyncNode]] = {}

    def apply(self, judgements: typing.Iterable[Judgement], now: float) -> tuple[SyncNode, ...]:
        """:param now: seconds of a monotonic clock"""
        return tuple(self._one(judgement, now) for judgement in judgements)

    def _one(self, judgement: Judgement, now: float) -> SyncNode:
        node, key = judgement.node, (judgement.node.fabric, judgement.node.node)
        if not judgement.suspect:
            self._since.pop(key, None)
            return node
        suspect, since = self._since.get(key, ("", now))
        if suspect != judgement.suspect:
            since = now
        self._since[key] = (judgement.suspect, since)
        # the remedy is known before the patience is over: a wait that is cut short by its own limit gives it as well
        known, named = self._named.get(key, (None, node))
        if known is not judgement:
            named = dataclasses.replace(node, remedy=node.remedy or GRACE[judgement.suspect][1])
            self._named[key] = (judgement, named)
        return named if now - since < self._grace[judgement.suspect] else dataclasses.replace(named, phase="failed")

    def wake(self, now: float) -> typing.Optional[float]:
        """Return the seconds until the next suspect state is the end; None when there is none."""
        ends = [since + self._grace[suspect] - now for suspect, since in self._since.values()]
        return max(0.0, min(ends)) if ends else None
