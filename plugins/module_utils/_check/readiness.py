# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""When is a fabric's network ready on a node, and if it is not: what is missing, and can waiting help? Pure; the loop is in _run/sync.py.

The order of the questions is the order in which the operator works: policy seen, interface selected, VFs made, resource offered. Each
question trusts only what belongs to this policy: ``Succeeded`` may be older than the policy, and the VFs are there some seconds before
the kubelet offers them.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.cluster import ClusterNode, NodeState, Policy, SyncNode
from .operator_rules import nearest_match, selects, takes_node


@dataclasses.dataclass(frozen=True)
class Target:
    """One fabric that is waited for.

    :ivar policies: names of its SriovNetworkNodePolicies
    :ivar resource: extended resource with its prefix
    :ivar attachment: namespace/name of its NetworkAttachmentDefinition
    :ivar nodes: names of the nodes that must get there
    :ivar hcas_per_node: physical functions that each node must have
    """

    fabric: str
    policies: typing.Tuple[str, ...]
    resource: str
    attachment: str
    nodes: typing.Tuple[str, ...]
    hcas_per_node: int


@dataclasses.dataclass(frozen=True)
class World:
    """What the API server shows, by name.

    :ivar attachments: namespace/name of the NetworkAttachmentDefinitions
    :ivar budgets: PodDisruptionBudgets that allow no eviction now, namespace/name
    :ivar unread: kinds that were not listed yet, each with the reason
    """

    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: typing.Mapping[str, Policy] = dataclasses.field(default_factory=dict)
    attachments: typing.FrozenSet[str] = frozenset()
    budgets: typing.Tuple[str, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """:ivar suspect: a state that may still pass by itself, but not for ever; see ``Patience``. Empty: wait without limit of its own"""

    node: SyncNode
    suspect: str = ""


# Named predicates on resources


def policy_seen(policy: Policy, state: NodeState, addresses: typing.Iterable[str]) -> bool:
    """Whether the operator has written this policy, with its number of VFs, into the node's wanted state for each of the addresses."""
    wanted = {item.address: item for item in state.wanted}
    return all(address in wanted and policy.name in wanted[address].policies and wanted[address].vfs_count >= policy.vfs_count for address in addresses)


def vfs_made(policy: Policy, state: NodeState, addresses: typing.Iterable[str]) -> bool:
    """Whether the config daemon reports the VFs of each address, and each VF by its own."""
    made = {interface.address: interface for interface in state.interfaces}
    return all(made[address].vfs_count >= policy.vfs_count and len(made[address].vfs) >= policy.vfs_count for address in addresses)


def draining(state: NodeState) -> bool:
    """Whether the node is being drained or waits for its turn."""
    return state.desired_state not in ("", "Idle") or state.current_state not in ("", "Idle")


# The judgement


def judge(targets: typing.Iterable[Target], world: World) -> typing.Tuple[Judgement, ...]:
    """Where each node of each fabric stands."""
    return tuple(judge_node(target, name, world) for target in targets for name in target.nodes)


def judge_node(target: Target, name: str, world: World) -> Judgement:
    """Where one node of one fabric stands: the first thing that is missing."""
    if world.unread:
        return _waiting(target, name, "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(world.unread.items())))
    node = world.nodes.get(name)
    if node is None:
        seen = ", ".join(sorted(world.nodes)) or "none"
        return _failed(target, name, f"the cluster has no node {name}; it has: {seen}", "Name the inventory's hosts as the cluster names its nodes.")
    policies = [world.policies[policy] for policy in target.policies if policy in world.policies]
    if not policies:
        detail = f"there is no policy {' or '.join(target.policies) or 'of this fabric'}: nothing asks for virtual functions here"
        return _failed(target, name, detail, "See why the API server did not take the policy.")
    mine = [policy for policy in policies if takes_node(policy, node)]
    if not mine:
        selector = ", ".join(f"{key}={value}" for key, value in sorted(policies[0].node_selector.items()))
        return _failed(target, name, f"the node does not carry the policy's label {selector}", "See the stage operators: it says why the label is absent.")
    state = world.states.get(name)
    if state is None:
        return _waiting(target, name, "the operator has made no SriovNetworkNodeState for the node", "node_lost" if not node.ready else "")
    return _judge_state(target, node, state, mine[0], world)


def _judge_state(target: Target, node: ClusterNode, state: NodeState, policy: Policy, world: World) -> Judgement:
    name = node.name
    if not state.interfaces:
        return _waiting(target, name, "the config daemon has not reported the node's interfaces yet")
    matched = tuple(interface.address for interface in state.interfaces if selects(policy, interface))
    if len(matched) != target.hcas_per_node:
        return _wrong_selection(target, name, state, policy, matched)
    suspect = "" if node.ready else "node_lost"
    ready = "" if node.ready else "; the node is NotReady"
    if not policy_seen(policy, state, matched):
        return _waiting(target, name, f"the operator has not put policy {policy.name} into the node's wanted state yet{ready}", suspect, matched)
    if state.sync_status == "Failed":
        detail = f"the config daemon failed: {state.last_sync_error or 'it gave no reason'}"
        return _waiting(target, name, detail, "sync_failed", matched)
    if draining(state):
        detail = f"the node is drained first (wanted {state.desired_state or 'nothing'}, now {state.current_state or 'nothing'})"
        if world.budgets:
            detail += f"; no eviction is allowed by: {', '.join(world.budgets)}"
        # a node that waits for its turn does so for as long as the others need
        suspect = "drain_blocked" if state.current_state == "Draining" else ""
        return _waiting(target, name, detail, suspect if node.ready else "node_lost", matched)
    if state.sync_status != "Succeeded":
        return _waiting(target, name, f"the config daemon works (syncStatus {state.sync_status or 'not set'}){ready}", suspect, matched)
    if not vfs_made(policy, state, matched):
        return _waiting(target, name, f"syncStatus is Succeeded, but the virtual functions are not there: it is older than the policy{ready}", suspect, matched)
    return _judge_offer(target, node, policy, matched, world)


def _judge_offer(target: Target, node: ClusterNode, policy: Policy, matched: typing.Tuple[str, ...], world: World) -> Judgement:
    wanted = policy.vfs_count * len(matched)
    offered = node.allocatable.get(target.resource)
    if offered != wanted:
        detail = f"the virtual functions are there, but the node offers {offered if offered is not None else 'no'} {target.resource} of {wanted}"
        return _waiting(target, node.name, detail, "not_offered" if node.ready else "node_lost", matched, offered)
    if not node.ready:
        return _waiting(target, node.name, "the node is NotReady", "node_lost", matched, offered)
    if target.attachment not in world.attachments:
        return _waiting(target, node.name, f"the operator has not made the NetworkAttachmentDefinition {target.attachment}", "no_attachment", matched, offered)
    detail = f"{offered} {target.resource} on {len(matched)} physical functions"
    return Judgement(SyncNode(target.fabric, node.name, "ready", detail, matched=matched, allocatable=offered))


def _wrong_selection(target: Target, name: str, state: NodeState, policy: Policy, matched: typing.Tuple[str, ...]) -> Judgement:
    if not matched:
        detail = f"no interface of the node is selected by policy {policy.name}: {nearest_match(policy, state)}"
    else:
        detail = f"policy {policy.name} selects {len(matched)} physical functions ({', '.join(matched)}), the intent says {target.hcas_per_node}"
        rest = [interface for interface in state.interfaces if interface.address not in matched]
        if rest and len(matched) < target.hcas_per_node:
            detail += f"; {nearest_match(policy, dataclasses.replace(state, interfaces=tuple(rest)))}"
    remedy = "Correct select and hcas_per_node of the fabric, or see why the config daemon does not report the function (no SR-IOV in firmware, not supported)."
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, remedy, matched), "wrong_selection")


def _waiting(
    target: Target, name: str, detail: str, suspect: str = "", matched: typing.Tuple[str, ...] = (), offered: typing.Optional[int] = None
) -> Judgement:
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, matched=matched, allocatable=offered), suspect)


def _failed(target: Target, name: str, detail: str, remedy: str) -> Judgement:
    return Judgement(SyncNode(target.fabric, name, "failed", detail, remedy))


def judge_release(targets: typing.Iterable[Target], world: World) -> typing.Tuple[Judgement, ...]:
    """Where each node stands on the way back: no policy, nothing wanted of it, no virtual function, nothing offered."""
    return tuple(_judge_release(target, name, world) for target in targets for name in target.nodes)


def _judge_release(target: Target, name: str, world: World) -> Judgement:
    if world.unread:
        return _waiting(target, name, "; ".join(f"{kind} not read yet: {reason}" for kind, reason in sorted(world.unread.items())))
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
        held = [f"{item.address} has {item.vfs_count}" for item in state.interfaces if item.vfs_count and item.address not in others]
        if state.sync_status == "Failed":
            return _waiting(target, name, f"the config daemon failed: {state.last_sync_error or 'it gave no reason'}", "sync_failed")
        if held:
            return _waiting(target, name, f"virtual functions are still there: {', '.join(held)}", "vfs_left")
    if node is not None and node.allocatable.get(target.resource):
        return _waiting(target, name, f"the node still offers {node.allocatable[target.resource]} {target.resource}")
    return Judgement(SyncNode(target.fabric, name, "ready", f"no virtual function and no {target.resource}"))


#: how long a suspect state may last before it is the end, in seconds, and what to do about it then
GRACE: typing.Dict[str, typing.Tuple[float, str]] = {
    # the daemon retries a failed sync at once, and a report of an older policy is replaced within seconds
    "sync_failed": (20.0, "Correct what the config daemon says; its log (pods sriov-network-config-daemon) has the whole story."),
    "wrong_selection": (10.0, "Correct select and hcas_per_node of the fabric."),
    "drain_blocked": (600.0, "Let the PodDisruptionBudget allow an eviction, or drain the node by hand."),
    "node_lost": (300.0, "Bring the node back: see its kubelet."),
    "not_offered": (180.0, "See the log of the pod sriov-device-plugin on the node, and the label sriovnetwork.openshift.io/device-plugin."),
    "unschedulable": (60.0, "See what the scheduler misses: the resource, CPU, memory or a taint."),
    "image": (60.0, "Correct pods.image and pods.image_pull_policy, or give the nodes access to the registry."),
    "container": (30.0, "Correct what the kubelet names."),
    "vfs_left": (120.0, "If somebody else made them, leave them; else see the config daemon's log."),
    "no_attachment": (60.0, "See the operator's log: does the namespace exist, and is the ipam text valid JSON?"),
}


class Patience:
    """Turns a suspect state that lasts too long into a failure. Time is given in, so that a test needs none."""

    def __init__(self, grace: typing.Optional[typing.Mapping[str, float]] = None) -> None:
        """:param grace: seconds for each suspect, instead of those of GRACE"""
        self._grace = {name: (grace or {}).get(name, seconds) for name, (seconds, _remedy) in GRACE.items()}
        self._since: typing.Dict[typing.Tuple[str, str], typing.Tuple[str, float]] = {}

    def apply(self, judgements: typing.Iterable[Judgement], now: float) -> typing.Tuple[SyncNode, ...]:
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
        if now - since < self._grace[judgement.suspect]:
            return node
        return dataclasses.replace(node, phase="failed", remedy=node.remedy or GRACE[judgement.suspect][1])

    def wake(self, now: float) -> typing.Optional[float]:
        """Seconds until the next suspect state is the end; None when there is none."""
        ends = [since + self._grace[suspect] - now for suspect, since in self._since.values()]
        return max(0.0, min(ends)) if ends else None
