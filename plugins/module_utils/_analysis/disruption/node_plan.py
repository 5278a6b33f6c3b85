# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effect of the fabrics' policies on one node: whether the SR-IOV operator drains or reboots it, why, and
which pods lose their virtual functions.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import Action, ClusterPod, FunctionHolder, NodePlan, NodePool, OperatorSettings
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, Policy, StateInterface, WantedInterface
from ..controllers.drains.budgets import find_held_pods
from ..controllers.drains.drain import explain_function_holders
from ..controllers.machine_configs.pools import find_machine_pool
from ..controllers.sriov.card_firmware import writes_firmware
from ..controllers.sriov.changes import firmware_changes, list_changes
from ..controllers.sriov.drains import explain_what_holds_back, find_pools, is_evicted, list_drain_refusals
from ..controllers.sriov.policies import find_wanted
from .function_use import (
    Evicts,
    Rename,
    add_undrained_users,
    describe_configuration,
    list_disturbed_functions,
    list_left_users,
    list_link_losses,
    list_renames,
    list_users,
)
from .link_users import LinkUsers, add_link_users, changes_functions, find_link_users, list_claims
from .live_state import Live


def plan_node(
    node: typing.Optional[ClusterNode], name: str, live: Live, policies: tuple[Policy, ...], listed: bool, prefix: str
) -> NodePlan:
    """Return the predicted effect of the policies on a node. It is ``unknown`` if the state of the node is not known.

    :param node: the node; None if the cluster does not have it
    :param name: name of the node
    :param live: present state of the cluster
    :param policies: all policies, with those of the fabrics
    :param listed: whether the node is in the inventory
    :param prefix: prefix of the device plugin's resources
    """
    state = live.states.get(name)
    if node is None or state is None or not state.sync_status:
        missing = (
            "the cluster has no node with this name"
            if node is None
            else "the config daemon of the operator has not reported the state of the node"
        )
        return NodePlan(name, "unknown", (missing,), listed=listed)
    wanted = find_wanted(policies, node, state)
    pool = next(iter(find_pools(node, live.pools)), NodePool(""))
    reboots = _find_reboots(wanted, state, pool, live.settings)
    drains = tuple(_list_disturbances(wanted, state))
    renames = list_renames(wanted, state)
    in_use, holders = live.in_use.get(name, {}), None if live.holders is None else live.holders.get(name, ())
    losses = list_link_losses(wanted, state, in_use)
    links = find_link_users(wanted, state, in_use, holders, live.uppers.get(name))
    users = _find_rename_users(renames, live, name, prefix)
    held = bool(renames) and (users is None or bool(users))
    action: Action = (
        "reboot"
        if reboots
        else "drain"
        if drains or held or losses or links.reasons
        else "configure"
        if _normalize_interfaces(wanted) != _normalize_interfaces(state.wanted)
        else "nothing"
    )
    doubts = () if action in ("nothing", "reboot") else _list_doubts(wanted, state, links, live, name)
    if action == "configure":
        reasons = describe_configuration(wanted, state, renames)
        return NodePlan(name, action, reasons, pool=pool.name, listed=listed, doubts=doubts)
    reasons = (*reboots, *drains, *losses, *links.reasons, *(rename.text for rename in renames if held))
    undrained = action == "drain" and not drains
    planned = NodePlan(
        name,
        action,
        reasons,
        pool=pool.name,
        listed=listed,
        undrained=undrained,
        loses_link=bool(losses),
        doubts=doubts,
    )
    if undrained:
        return add_link_users(add_undrained_users(planned, renames if held else (), users), links)
    lost = list_disturbed_functions(wanted, state)
    if action == "reboot":
        return add_pods(planned, node, live, prefix, lost)
    return add_link_users(add_pods(planned, node, live, prefix, lost), links) if action == "drain" else planned


def _list_doubts(
    wanted: typing.Sequence[WantedInterface], state: NodeState, links: LinkUsers, live: Live, node: str
) -> tuple[str, ...]:
    """Return the uses that the change of a node may disturb, without proof, as text: those of physical functions,
    virtual functions that annotations of pods name, and the fact that the pods could not be read.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param links: uses of physical functions that change
    :param node: name of the node
    """
    claims = list_claims((live.holders or {}).get(node, ()), list_disturbed_functions(wanted, state))
    unread = "Pod" in live.unread and changes_functions(wanted, state)
    return (*links.doubts, *claims, *((f"the pods could not be read: {live.unread['Pod']}",) if unread else ()))


def _find_rename_users(
    renames: typing.Sequence[Rename], live: Live, node: str, prefix: str
) -> typing.Optional[tuple[FunctionHolder, ...]]:
    """Return the pods that use virtual functions which get another resource name. Return None if they are unknown.

    :param renames: existing virtual functions that get another resource name
    :param node: name of the node
    :param prefix: prefix of the resources of virtual functions
    """
    if live.holders is None:
        return None
    addresses = frozenset(address for rename in renames for address in rename.addresses)
    resources = {f"{prefix}/{rename.resource}" for rename in renames}
    return list_users(live.holders.get(node, ()), addresses, resources)


def _list_disturbances(wanted: typing.Iterable[WantedInterface], state: NodeState) -> typing.Iterator[str]:
    """Yield the changes that remove or reset existing virtual functions. [pkg/plugins/generic/generic_plugin.go
    needToUpdateVFs]

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    """
    wishes = {item.address: item for item in wanted}
    ours = {item.address for item in state.wanted}
    for interface in state.interfaces:
        if not interface.vfs_count:
            continue
        if interface.address in wishes:
            why = "; ".join(list_changes(wishes[interface.address], interface))
            if why:
                yield f"{_name_interface(interface)} {why}"
        elif interface.address in ours:
            name = _name_interface(interface)
            yield f"{name}: no policy selects it any longer, virtual functions {interface.vfs_count} -> 0"


def _find_reboots(
    wanted: tuple[WantedInterface, ...], state: NodeState, pool: NodePool, settings: OperatorSettings
) -> tuple[str, ...]:
    """Return the reasons why the operator reboots the node; empty if it does not. [pkg/plugins/generic needRebootNode,
    pkg/plugins/mellanox OnNodeStateChange, pkg/daemon/daemon.go Reconcile]

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param pool: SriovNetworkPoolConfig of the node
    :param settings: SriovOperatorConfig of the operator
    """
    found: list[str] = []
    news = _normalize_interfaces(wanted) != _normalize_interfaces(state.wanted)
    if pool.rdma_mode != state.wanted_rdma_mode:
        found.append(
            f"RDMA mode {state.wanted_rdma_mode or 'not set'} -> {pool.rdma_mode or 'not set'} (a kernel argument)"
        )
    # where the operator has succeeded with the same wanted state, the firmware is right
    if writes_firmware(settings) and (news or state.sync_status != "Succeeded"):
        found += firmware_changes(wanted, state.interfaces)
    if settings.mode == "systemd" and news:
        found.append(
            "configurationMode is systemd: the operator applies every change at boot (on OpenShift by a MachineConfig)"
        )
    return tuple(found)


def _normalize_interfaces(wanted: typing.Iterable[WantedInterface]) -> frozenset[typing.Any]:
    """Return the desired state of the interfaces as a set for comparison. The names of the interfaces are left out,
    since they change with the eSwitch mode.

    :param wanted: desired state of the interfaces
    """
    return frozenset(
        (
            item.address,
            item.vfs_count,
            item.mtu,
            item.link_type.upper(),
            item.eswitch_mode or "legacy",
            item.external,
            frozenset(item.groups),
        )
        for item in wanted
    )


def _name_interface(interface: StateInterface) -> str:
    return f"{interface.name} {interface.address}".strip()


def add_pods(
    planned: NodePlan, node: ClusterNode, live: Live, prefix: str, functions: typing.Container[str]
) -> NodePlan:
    """Return the plan of a node with the pods that it evicts, and with those that lose virtual functions although the
    operator does not evict them.

    :param functions: PCI addresses of the virtual functions that the operator removes or resets
    """
    here = live.list_pods(node.name)
    full = planned.action == "reboot"
    evicts: Evicts = "all" if full and not live.settings.disable_drain else "functions"
    left = list_left_users((live.holders or {}).get(node.name, ()), functions, evicts, full)
    if live.settings.disable_drain:
        # without a drain no pod is evicted, and those with a virtual function lose it
        going = [_name_pod(pod) for pod in here if is_evicted(pod, False, prefix) and not pod.ended]
        return dataclasses.replace(planned, pods=(*going, *left))
    gone = [pod for pod in here if is_evicted(pod, full, prefix)]
    machines = find_machine_pool(node, live.machine_pools)
    held = explain_what_holds_back(machines) if machines else ""
    return dataclasses.replace(
        planned,
        pods=tuple(map(_name_pod, gone)),
        lost=tuple(_name_pod(pod) for pod in gone if not pod.owner and not pod.ended),
        blockers=(
            *find_held_pods(gone, full, prefix, live.budget_index),
            *filter(None, (explain_function_holders(left, prefix), held)),
            *(() if held else list_drain_refusals(node, machines, live.states.get(node.name))),
        ),
    )


def _name_pod(pod: ClusterPod) -> str:
    return f"{pod.namespace}/{pod.name}"
