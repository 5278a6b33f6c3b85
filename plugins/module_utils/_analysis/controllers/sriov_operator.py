# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the effects of policies in the SR-IOV network operator: the nodes and functions that they select, the desired
state of each function, the changes that it requires, the pool in which a node is drained, and the pods that a drain
evicts. Pure. The rules are those of the operator's source, release 1.6.0. Each function cites its rule.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import parse_number
from ..._model.kubernetes.disruption import ClusterPod, LabelSelector, MachinePool, NodePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, Policy, StateInterface, VfGroup, WantedInterface

#: drivers for user space; any other one is a netdevice [pkg/vars/vars.go DpdkDrivers]
_DPDK = ("igb_uio", "vfio-pci", "uio_pci_generic")
_NO_GUID = "0000:0000:0000:0000"
MELLANOX = "15b3"


# Selection


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


def labels_match(selector: typing.Optional[LabelSelector], labels: typing.Mapping[str, str]) -> bool:
    """Return whether a label selector of the Kubernetes API selects these labels. None selects nothing, and an empty
    selector selects everything.
    """
    if selector is None:
        return False
    tests = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, values: key in labels,
        "DoesNotExist": lambda key, values: key not in labels,
    }
    return all(labels.get(key) == value for key, value in selector.labels.items()) and all(
        wanted.operator in tests and tests[wanted.operator](wanted.key, wanted.values)
        for wanted in selector.expressions
    )


# What is wanted of each function


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


def list_changes(wanted: WantedInterface, interface: StateInterface) -> tuple[str, ...]:
    """Return the differences between a function and its desired state, as text; empty if there are no differences. Only
    the first difference of its virtual functions is listed. [api/v1/helper.go NeedToUpdateSriov]

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    found = list_function_changes(wanted, interface)
    if interface.admin_state == "down":
        found.append("link down -> up")
    # one virtual function speaks for the others
    return (*found, *itertools.islice(_vf_changes(wanted, interface), 1))


def list_function_changes(wanted: WantedInterface, interface: StateInterface) -> list[str]:
    """Return the changes of a physical function itself, as text. Its link may be interrupted during these changes:
    _analysis/disruption/link_users.py describes what each of them does.

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    found = []
    # a larger MTU than the wanted one stays
    if wanted.mtu > (interface.mtu or 0):
        found.append(f"MTU {interface.mtu or 0} -> {wanted.mtu}")
    if (wanted.eswitch_mode or "legacy") != (interface.eswitch_mode or "legacy"):
        found.append(f"eSwitch mode {interface.eswitch_mode or 'legacy'} -> {wanted.eswitch_mode or 'legacy'}")
    if wanted.vfs_count != interface.vfs_count:
        found.append(f"virtual functions {interface.vfs_count} -> {wanted.vfs_count}")
    return found


def _vf_changes(wanted: WantedInterface, interface: StateInterface) -> typing.Iterator[str]:
    """Yield the differences between the virtual functions of a physical function and their desired state, as text.

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    infiniband = (interface.link_type or "").upper() == "IB"
    for vf in interface.vfs:
        group = next((group for group in wanted.groups if group.first <= vf.index <= group.last), None)
        if group is None:
            continue
        kept = group.device_type not in ("", "netdevice")
        if not vf.driver or (kept and vf.driver != group.device_type) or (not kept and vf.driver in _DPDK):
            yield f"driver of virtual function {vf.index} {vf.driver or 'none'} -> {group.device_type or 'netdevice'}"
        elif not kept and vf.mtu and group.mtu and vf.mtu != group.mtu:
            yield f"MTU of virtual function {vf.index} {vf.mtu} -> {group.mtu}"
        elif not kept and (infiniband or group.rdma) and vf.guid == _NO_GUID:
            yield f"virtual function {vf.index} has no GUID"


def count_firmware_functions(
    wanted: typing.Iterable[WantedInterface], interfaces: typing.Iterable[StateInterface]
) -> dict[str, int]:
    """Return the number of virtual functions that the operator writes into the firmware of Mellanox NICs (NUM_OF_VFS),
    by the PCI address of each physical function that it configures. It leaves the firmware of NICs alone whose policy
    is externallyManaged. [pkg/vendors/mellanox/mellanox.go HandleTotalVfs]

    :param wanted: desired state of the physical functions of a node
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    wishes, totals = {item.address: item for item in wanted}, {}
    for interface in interfaces:
        wish = wishes.get(interface.address)
        if interface.vendor != MELLANOX or wish is None or wish.external:
            continue
        other = wishes.get(interface.address[:-1] + ("1" if interface.address.endswith("0") else "0"))
        totals[interface.address] = max(wish.vfs_count, other.vfs_count if other else 0)
    return totals


def firmware_changes(
    wanted: typing.Iterable[WantedInterface], interfaces: typing.Iterable[StateInterface]
) -> typing.Iterator[str]:
    """Yield the changes that the operator writes into the firmware of Mellanox NICs, which need a reboot.
    [pkg/vendors/mellanox/mellanox.go HandleTotalVfs, HandleLinkType]

    The two ports of a NIC share NUM_OF_VFS, so the larger of their desired values counts. sriov_totalvfs shows the
    present value of the firmware.

    :param wanted: desired state of the physical functions of a node
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    wishes, seen = {item.address: item for item in wanted}, tuple(interfaces)
    totals = count_firmware_functions(wishes.values(), seen)
    for interface in (interface for interface in seen if interface.address in totals):
        wish, total = wishes[interface.address], totals[interface.address]
        if interface.total_vfs != total:
            yield f"{interface.address} firmware NUM_OF_VFS {interface.total_vfs} -> {total}"
        if wish.link_type and interface.link_type and wish.link_type.upper() != interface.link_type.upper():
            yield f"{interface.address} firmware LINK_TYPE {interface.link_type} -> {wish.link_type.upper()}"


# Drains


@dataclasses.dataclass(frozen=True)
class Turn:
    """The limits on the number of nodes that the operator drains at the same time, for one node.

    :ivar pool: name of its SriovNetworkPoolConfig; empty for the operator's default
    :ivar size: number of nodes in the pool
    :ivar at_once: maximum number of nodes that are drained at the same time; None for no limit
    :ivar limit: source of ``at_once``, as text
    :ivar blocked: why the node is never drained; empty if it will be
    """

    pool: str
    size: int
    at_once: typing.Optional[int]
    limit: str
    blocked: str = ""


def find_pools(node: ClusterNode, pools: typing.Iterable[NodePool]) -> tuple[NodePool, ...]:
    """Return the SriovNetworkPoolConfigs that select a node. The operator treats more than one as an error.

    :param pools: SriovNetworkPoolConfigs of the cluster
    """
    return tuple(pool for pool in pools if not pool.offload and labels_match(pool.selector, node.labels))


def turn_of(node: ClusterNode, pools: typing.Sequence[NodePool], nodes: typing.Iterable[ClusterNode]) -> Turn:
    """Return the limits on the drain of a node, from its SriovNetworkPoolConfig or the operator's default.
    [controllers/drain_controller_helper.go findNodePoolConfig, tryDrainNode; api/v1/helper.go MaxUnavailable]

    :param pools: SriovNetworkPoolConfigs of the cluster
    :param nodes: nodes of the cluster
    """
    mine = find_pools(node, pools)
    if len(mine) > 1:
        names = ", ".join(pool.name for pool in mine)
        return Turn(
            mine[0].name,
            0,
            0,
            "",
            f"the node matches more than one SriovNetworkPoolConfig ({names}), and the operator rejects that",
        )
    if not mine:
        size = sum(not find_pools(other, pools) for other in nodes)
        return Turn(
            "", size, 1, "the default of the operator for nodes without a SriovNetworkPoolConfig is 1 node at a time"
        )
    (pool,) = mine
    size = sum(labels_match(pool.selector, other.labels) for other in nodes)
    at_once, error = _count_at_once(pool.max_unavailable, size)
    limit = (
        f"maxUnavailable of SriovNetworkPoolConfig {pool.name} is"
        f" {pool.max_unavailable or 'not set, so there is no limit'}"
    )
    if error or at_once == 0:
        blocked = error or (
            f"{limit}, which allows 0 of {size} nodes: the operator rounds percentages down, so it never drains a node"
        )
        return Turn(pool.name, size, 0, limit, blocked)
    return Turn(pool.name, size, at_once, limit)


def _count_at_once(text: typing.Optional[str], size: int) -> tuple[typing.Optional[int], str]:
    if text is None:
        return None, ""
    number = parse_number(text[:-1] if text.endswith("%") else text)
    if number is None or (text.endswith("%") and not 1 <= number <= 100):
        return 0, f"maxUnavailable is '{text}', but the operator accepts only a number or 1% to 100%"
    return (number * size // 100 if text.endswith("%") else number), ""


def is_evicted(pod: ClusterPod, full: bool, prefix: str) -> bool:
    """Return whether a drain evicts the pod from its node. A drain before a reboot evicts every pod. Any other drain
    evicts only pods that request virtual functions. Static pods and pods of DaemonSets always remain.
    [pkg/drain/drainer.go]

    :param full: whether the node is drained for a reboot
    :param prefix: prefix of the resources of virtual functions
    """
    if pod.mirror or pod.owner == "DaemonSet":
        return False
    return full or any(name.startswith(prefix) for name in pod.requests)


def describe_pool(pool: MachinePool) -> str:
    """Describe how many machines of a MachineConfigPool have its desired MachineConfig."""
    return (
        f"MachineConfigPool {pool.name} has {pool.updated} of {pool.machines} machines on"
        f" {pool.wanted_config or 'its MachineConfig'}"
    )


def explain_what_holds_back(pool: MachinePool) -> str:
    """Return why the operator drains no node of a MachineConfigPool and will not do so without help, as text: the pool
    is degraded or paused while its nodes wait for a new MachineConfig. Return an empty text if neither is the case. The
    operator waits until all nodes of the pool have the MachineConfig of the pool. [pkg/platforms/openshift/openshift.go
    OpenshiftBeforeDrainNode]
    """
    if pool.wanted_config == pool.current_config or (pool.paused and pool.paused_by_operator):
        return ""
    stand = describe_pool(pool)
    if pool.conditions.get("Degraded") == "True":
        return f"{stand} and is degraded ({count_of(pool.degraded, 'machine')}): {pool.message or 'no reason reported'}"
    if pool.paused:
        return f"{stand} and is paused, so it makes no progress"
    return ""


def list_drain_refusals(
    node: ClusterNode, pool: typing.Optional[MachinePool], state: typing.Optional[NodeState]
) -> tuple[str, ...]:
    """Return the reasons why the operator must not drain a node, each with the remedy.

    The operator ends the protections of other users after it has drained the node: it unpauses the MachineConfigPool
    and uncordons the node. [pkg/orchestrator/openshift/openshift.go BeforeDrainNode, AfterCompleteDrainNode;
    pkg/drain/drainer.go CompleteDrainNode]

    If NVIDIA's maintenance operator drains for it, no SriovNetworkPoolConfig limits the number of nodes, and all pods
    are evicted, those without a controller and with emptyDir data too. [Mellanox/network-operator
    controllers/drain_controller.go, pkg/drain/drain_requestor.go setDefaultNodeMaintenance]

    :param pool: MachineConfigPool of the node; None if it has none
    :param state: SriovNetworkNodeState of the node; None if it has none
    """
    found = []
    if state is not None and state.external_drainer:
        found.append(
            "NVIDIA's maintenance operator drains this node for the SR-IOV operator (annotation"
            f" sriovnetwork.openshift.io/use-external-drainer of SriovNetworkNodeState {node.name}). It evicts all"
            " pods, also those without a controller, and no SriovNetworkPoolConfig limits it. Let the SR-IOV operator"
            " drain: install the Helm chart of NVIDIA's network operator with"
            " operator.maintenanceOperator.useDrainControllerRequestor=false"
        )
    if pool is not None and pool.paused and not pool.paused_by_operator and not pool.paused_by_us:
        found.append(
            f"MachineConfigPool {pool.name} is paused by a user or another program, and the SR-IOV operator unpauses it"
            " after it has drained the node. When the reason of the pause is gone, unpause the pool: oc patch"
            f' machineconfigpool {pool.name} --type merge -p \'{{"spec":{{"paused":false}}}}\''
        )
    if node.unschedulable and (state is None or state.current_state in ("", "Idle")):
        found.append(
            "the node is cordoned by a user or another program, and the SR-IOV operator uncordons it after it has"
            f" drained the node. When the reason of the cordon is gone, uncordon it: kubectl uncordon {node.name}"
        )
    return tuple(found)


def find_machine_pool(node: ClusterNode, pools: typing.Iterable[MachinePool]) -> typing.Optional[MachinePool]:
    """Return the MachineConfigPool that manages a node, or None if no pool selects it. A custom pool takes precedence
    over the pool ``worker``.

    :param pools: MachineConfigPools of the cluster
    """
    mine = sorted(
        (pool for pool in pools if labels_match(pool.selector, node.labels)), key=lambda pool: pool.name == "worker"
    )
    return mine[0] if mine else None


def pool_may_roll(pool: MachinePool, node: ClusterNode) -> bool:
    """Return whether the pool may currently give this node another MachineConfig, which reboots it. A paused or
    degraded pool does not.

    A pool reports that it is updating as long as any of its nodes is NotReady or cordoned, for whatever reason.
    Therefore the MachineConfig of the node itself decides whether the node is done. [machine-config-operator
    pkg/controller/node/status.go calculateStatus]
    """
    if node.machine_config and node.machine_config == pool.wanted_config:
        return False
    under_way = pool.conditions.get("Updating") == "True" or pool.wanted_config != pool.current_config
    return under_way and not pool.paused and pool.conditions.get("Degraded") != "True"
