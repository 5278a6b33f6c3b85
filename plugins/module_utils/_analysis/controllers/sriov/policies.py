# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute what the policies of the SR-IOV network operator select, and the desired state of each function that they
request. Pure. The rules are those of the operator's source, release 1.6.0. Each function cites its rule.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.text import parse_number
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import NodeState, Policy, StateInterface, VfGroup, WantedInterface


def policy_selects(policy: Policy, interface: StateInterface) -> bool:
    """Return whether the nicSelector of the policy selects this physical function. [api/v1/helper.go Selected]

    :param interface: physical function as the config daemon reports it
    """
    return not find_differences(policy, interface)


def find_differences(policy: Policy, interface: StateInterface) -> tuple[str, ...]:
    """Return the properties of a physical function that do not match the nicSelector of the policy, as text.

    :param interface: physical function as the config daemon reports it
    """
    # ens1f0#0-3 names a range of virtual functions of ens1f0
    names = tuple(name.partition("#")[0] for name in policy.pf_names)
    wishes: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("vendor", interface.vendor, (policy.vendor,) if policy.vendor else ()),
        ("deviceID", interface.device, (policy.device,) if policy.device else ()),
        ("rootDevices", interface.address, policy.root_devices),
        ("pfNames", interface.name, names),
    )
    return tuple(
        f"{field} is {seen or 'unknown'}, and the policy requires {' or '.join(allowed)}"
        for field, seen, allowed in wishes
        if allowed and seen not in allowed
    )


def nearest_match(policy: Policy, state: NodeState) -> str:
    """Describe the physical function of a node that differs least from the nicSelector of the policy, with its
    differences. The text is empty if the node has no physical functions.

    :param state: SriovNetworkNodeState of the node
    """
    if not state.interfaces:
        return ""
    near = min(state.interfaces, key=lambda interface: (len(find_differences(policy, interface)), interface.address))
    return (
        f"the closest match is {near.name or 'a function without a netdev'} at {near.address}"
        f" ({near.vendor}:{near.device}): {'; '.join(find_differences(policy, near))}"
    )


def takes_node(policy: Policy, node: ClusterNode) -> bool:
    """Return whether the policy's nodeSelector selects the node."""
    return all(node.labels.get(key) == value for key, value in policy.node_selector.items())


def find_wanted(policies: typing.Iterable[Policy], node: ClusterNode, state: NodeState) -> tuple[WantedInterface, ...]:
    """Return the desired state of the interfaces that the operator will write into the SriovNetworkNodeState of the
    node. [controllers/sriovnetworknodepolicy_controller.go, api/v1/helper.go Apply]

    Policies with a lower priority number are applied last and win.

    :param policies: SriovNetworkNodePolicies in the operator's namespace
    :param state: SriovNetworkNodeState of the node
    """
    wanted: dict[str, WantedInterface] = {}
    # "default" is a name of old releases that the operator passes over
    mine = [
        policy
        for policy in policies
        if policy.name != "default" and takes_node(policy, node) and _selects_something(policy) and policy.vfs_count
    ]
    previous = None
    for policy in sorted(mine, key=lambda policy: (-policy.priority, policy.name)):
        for interface in state.interfaces:
            if policy_selects(policy, interface):
                new = find_wanted_by(policy, interface)
                old = wanted.get(interface.address)
                wanted[interface.address] = _merge_interfaces(old, new, previous == policy.priority) if old else new
        previous = policy.priority
    return tuple(wanted.values())


def _selects_something(policy: Policy) -> bool:
    return bool(policy.vendor or policy.device or policy.root_devices or policy.pf_names)


def find_wanted_by(policy: Policy, interface: StateInterface) -> WantedInterface:
    """Return the desired state that one policy requests for a physical function that it selects.

    :param interface: physical function as the config daemon reports it
    """
    first, last = 0, policy.vfs_count - 1
    for name, mark, text in (name.partition("#") for name in policy.pf_names):
        low, _dash, high = text.partition("-")
        told = parse_number(low), parse_number(high)
        if name == interface.name and mark and told[0] is not None and told[1] is not None:
            first, last = told[0], told[1]
    group = VfGroup(policy.name, policy.resource_name, policy.device_type, policy.mtu, policy.rdma, first, last)
    return WantedInterface(
        interface.address,
        policy.vfs_count,
        interface.name,
        (group,),
        policy.mtu,
        policy.link_type,
        policy.eswitch_mode,
        policy.external,
    )


def _merge_interfaces(old: WantedInterface, new: WantedInterface, equal_priority: bool) -> WantedInterface:
    """Return the desired state of a physical function that two policies select. Groups of virtual functions that do not
    overlap are kept side by side. [api/v1/helper.go mergeConfigs]

    :param old: desired state of the policies that were applied before
    :param new: desired state of the next policy
    :param equal_priority: whether both policies have the same priority
    """
    (mine,) = new.groups
    others = tuple(
        group
        for group in old.groups
        if group.resource != mine.resource and not (group.first <= mine.last and mine.first <= group.last)
    )
    if not equal_priority and not others:
        return new
    return dataclasses.replace(
        new, groups=new.groups + others, mtu=max(new.mtu, old.mtu), vfs_count=max(new.vfs_count, old.vfs_count)
    )
