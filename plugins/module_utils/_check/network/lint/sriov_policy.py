# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effect of a policy before it is applied: which policies the operator's webhook rejects, and which it
accepts although they fail on the node.

The webhook is disabled in many clusters (the default of the chart), and it sees only the policy. So this linter
contains each of its rules [sriov-network-operator v1.6.0 pkg/webhook/validate.go, with its messages], and the rules of
its config daemon and device plugin [pkg/host/internal/sriov/sriov.go, pkg/vendors/mellanox,
controllers/sriovnetworknodepolicy_controller.go]. A policy that certainly does not work is a failure, and any other
objection is a warning. The dry run of the API server decides last. The plan reports the cost of a policy: drains,
reboots, and firmware settings that the operator writes.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ...._analysis.controllers.sriov.policies import find_wanted_by, policy_selects
from ...._model.base.marks import DEFAULT_INTENT
from ...._model.base.phrases import count_of
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import Policy, StateInterface
from .policy_context import OVERLAP, ClusterBefore, Objection
from .policy_fields import check_fields
from .policy_functions import check_functions, check_link, check_rdma
from .policy_selection import check_selection, select_functions
from .policy_uplinks import check_uplinks

#: label by which a policy selects a single node
HOSTNAME = "kubernetes.io/hostname"
_RANGE = re.compile(r"([^#]*)#([0-9]{1,9})-([0-9]{1,9})")


def find_objections(policy: Policy, cluster_before: ClusterBefore) -> tuple[Objection, ...]:
    """Return all objections (violated rules) to a policy: to its fields, and to its effect on each node and physical
    function that it selects.

    :param policy: policy that would be applied
    :param cluster_before: state of the cluster before the policy is applied
    """
    nodes = cluster_before.nodes_selected_by(policy)
    found = [
        *check_fields(policy, cluster_before),
        *check_selection(policy, nodes, cluster_before),
        *_check_other_policies(policy, nodes, cluster_before),
    ]
    for node in nodes:
        interfaces = tuple(select_functions(policy, cluster_before.states.get(node.name), cluster_before))
        found += check_uplinks(policy, node.name, interfaces, cluster_before)
        for interface in interfaces:
            objects = [
                *check_functions(policy, interface),
                *check_link(policy, interface),
                *check_rdma(policy, interface, cluster_before.hcas.get(node.name)),
            ]
            found += [
                dataclasses.replace(item, node=node.name, function=interface.name or interface.address)
                for item in objects
            ]
    return tuple(found)


# What else is there


def _check_other_policies(
    policy: Policy, nodes: typing.Sequence[ClusterNode], cluster_before: ClusterBefore
) -> typing.Iterator[Objection]:
    together: dict[str, list[ClusterNode]] = {}
    for node in nodes:
        for other in cluster_before.policies_on.get(node.name, ()):
            if other.name != policy.name:
                together.setdefault(other.name, []).append(node)
    for name, shared in sorted(together.items()):
        other = cluster_before.policies[name]
        refused = _explain_refusal(policy, other)
        if refused:
            why = (
                f"The policy {other.name} (resource {other.resource_name}) is in force on {len(shared)} of the same"
                f" nodes. The webhook does not accept both policies.{_name_owner(policy, other)}"
            )
            remedy = _describe_removal(policy, other, len(cluster_before.nodes_selected_by(other)))
            yield Objection(OVERLAP, "webhook", refused, "virtual functions that no other policy requests", why, remedy)
            continue
        for node in shared:
            for interface in select_functions(policy, cluster_before.states.get(node.name), cluster_before):
                yield from (
                    dataclasses.replace(item, node=node.name) for item in _check_shared(policy, other, interface)
                )


def _describe_removal(policy: Policy, other: Policy, nodes: int) -> str:
    """Return the remedy for a policy that blocks another policy, with the effect of its deletion.

    :param policy: policy that would be applied
    :param other: policy in the cluster that the webhook does not accept beside it
    :param nodes: number of nodes that ``other`` selects
    """
    effect = (
        f"The deletion removes the virtual functions of {count_of(nodes, 'node')}: the operator drains each node and"
        " evicts the pods that use them, and a pod with a ResourceClaim loses its devices without an eviction"
    )
    delete = f"kubectl delete sriovnetworknodepolicy {other.name} -n NAMESPACE (the namespace of the operator)"
    if _is_of_another(policy, other):
        return (
            f"{_describe_owner_remedy(policy, other)} To use other virtual functions, exclude those of the policy"
            f" {other.name} from select of the fabric. Then run stage network again."
        )
    if _is_of_all_nodes(policy, other):
        return (
            f"The policy {other.name} is of the same fabric. An earlier run applied it to all nodes, because their NICs"
            " had equal PCI addresses, and now a node has other addresses. To keep the fabric as it is, remove the node"
            " with other addresses from the group rdma_nodes of the inventory, and remove from it the label in"
            " rdma_cluster.node_selector. Otherwise replace the policy by one for each node, at a time when all of"
            f" these nodes may be drained. {effect}. Stop the jobs first, then run {delete}. In both cases run stage"
            " network again."
        )
    return (
        f"If the policy {other.name} is needed, exclude its functions from select of the fabric. If it is not needed,"
        f" delete it at a time when these nodes may be drained. {effect}. Stop the jobs first, then run {delete}. In"
        " both cases run stage network again."
    )


def _is_of_another(policy: Policy, other: Policy) -> bool:
    """Return whether the labels of two policies name two intents.

    The result is False if the other policy names no intent. Two intents that both have the default name cannot be
    distinguished.
    """
    return bool(other.intent) and other.intent != policy.intent


def _name_owner(policy: Policy, other: Policy) -> str:
    """Return a sentence that names the intent of another policy, with a space before it.

    The text is empty if the other policy belongs to this intent, or if its intent is not known.
    """
    return f" It belongs to the intent '{other.intent}'." if _is_of_another(policy, other) else ""


def _describe_owner_remedy(policy: Policy, other: Policy) -> str:
    """Return the first sentences of the remedy for a policy of another intent that requests the same functions."""
    return (
        f"The policy {other.name} belongs to the intent '{other.intent}', and this intent is"
        f" '{policy.intent or DEFAULT_INTENT}': ask its owner before you change or delete it. If both are the same"
        f" intent, set rdma_cluster.intent_name: {other.intent}, and use the names of fabrics of that intent."
    )


def _is_of_all_nodes(policy: Policy, other: Policy) -> bool:
    """Return whether a policy is for a single node, and the other policy is for all nodes of the same fabric."""
    selector = {key: value for key, value in policy.node_selector.items() if key != HOSTNAME}
    return (
        HOSTNAME in policy.node_selector
        and selector == other.node_selector
        and policy.resource_name == other.resource_name
        and policy.name.startswith(f"{other.name}-")
    )


def _explain_refusal(policy: Policy, other: Policy) -> str:
    """Return the message with which the webhook rejects a policy because of another policy on the same node.

    The text is empty if the webhook accepts both. The webhook compares the fields of the policies, not the functions
    that they select.

    :param policy: policy that would be applied
    :param other: another policy for the node
    """
    mine, theirs = (tuple(map(_parse_range, item.pf_names)) for item in (policy, other))
    pairs = [(a, b) for a in mine for b in theirs if a[0] == b[0]]
    for (name, first, last), (_name, other_first, other_last) in pairs[:1]:
        if policy.external != other.external:
            return f"externallyManage is inconsistent with existing policy {other.name}"
        if last >= other_first and first <= other_last:
            return (
                f"VF index range in {name if first < 0 else f'{name}#{first}-{last}'} is overlapped with existing"
                f" policy {other.name}"
            )
    for address in policy.root_devices:
        if address in other.root_devices:
            return f"root device {address} is overlapped with existing policy {other.name}"
    if policy.resource_name == other.resource_name and policy.exclude_topology != other.exclude_topology:
        return f"excludeTopology[{str(policy.exclude_topology).lower()}] field conflicts with policy [{other.name}]"
    return ""


def _parse_range(written: str) -> tuple[str, int, int]:
    """Split an entry of pfNames, such as ``ens1f0#0-3``, as the webhook does. Return three values: the interface name,
    and the indices of the first and the last virtual function. Both indices are -1 if the entry has no range.

    :param written: text of the entry
    """
    match = _RANGE.fullmatch(written)
    return (match[1], int(match[2]), int(match[3])) if match else (written.partition("#")[0], -1, -1)


def _check_shared(policy: Policy, other: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    """Yield an objection if two policies request the same virtual functions, or the same resource on one physical
    function, which the webhook does not detect. The operator gives the functions to only one of the policies.

    :param interface: physical function as the config daemon reports it
    """
    if other.net_filter or not policy_selects(other, interface):
        return
    (mine,), (theirs,) = find_wanted_by(policy, interface).groups, find_wanted_by(other, interface).groups
    same = mine.resource == theirs.resource
    if same and dataclasses.replace(theirs, policy=mine.policy) == mine:
        return
    if not same and (mine.last < theirs.first or mine.first > theirs.last):
        return
    measured = (
        f"virtual functions {mine.first} to {mine.last} in this policy, {theirs.first} to {theirs.last} in policy"
        f" {other.name} (resource {other.resource_name})"
    )
    wins = min((policy, other), key=lambda one: one.priority)
    reason = f"which has the lower priority value ({policy.priority} in this policy, {other.priority} in {other.name})"
    if policy.priority == other.priority:
        wins = max((policy, other), key=lambda one: one.name)
        reason = f"whose name sorts later, because both have the priority value {policy.priority}"
    loses = other if wins is policy else policy
    why = (
        "If two policies request the same virtual functions, the operator gives them to only one policy: to"
        f" {wins.name}, {reason}."
    )
    if same:
        why = (
            f"Both policies use the resource {policy.resource_name} on the same physical function. The operator creates"
            f" this resource from the virtual functions of only one policy: of {wins.name}, {reason}. It offers the"
            f" virtual functions of {loses.name} to no pod."
        )
    why += _name_owner(policy, other)
    separate = (
        f"Give each policy separate virtual functions ({interface.name}#0-3 and {interface.name}#4-7 in select.netdev)"
        f"{' and a resource_name of its own' if same else ''}"
    )
    remedy = (
        f"{_describe_owner_remedy(policy, other)} {separate}. Then run stage network again."
        if _is_of_another(policy, other)
        else f"{separate}, or delete the policy {other.name} at a time when its nodes may be drained. Then run stage"
        " network again."
    )
    yield Objection(
        OVERLAP,
        "node",
        measured,
        "virtual functions that no other policy requests",
        why,
        remedy,
        function=interface.name or interface.address,
    )
