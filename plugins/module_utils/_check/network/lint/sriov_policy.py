# SPDX-License-Identifier: GPL-3.0-or-later

"""What would become of a policy, said before it is applied: what the operator's webhook refuses, and what it takes and
the node can't do.

The webhook is switched off in many clusters (the chart's default), and it looks at the policy alone. So each of its
rules is here [sriov-network-operator v1.6.0 pkg/webhook/validate.go, in its own words], and beside them what its config
daemon and device plugin make of the policy [pkg/host/internal/sriov/sriov.go, pkg/vendors/mellanox,
controllers/sriovnetworknodepolicy_controller.go]. Only what is certain is an objection; the rest is a warning, and the
API server's dry run has the last word. What a policy costs (drains, reboots, firmware that the operator writes) is the
plan's to say. Pure.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing

from ...._model.hca import Hca, NodeHcas, PciFunction
from ...._model.intent import ClusterIntent
from ...._model.kubernetes import ClusterNode
from ...._model.nvidia import NicPolicy
from ...._model.sriov_operator import NodeState, OperatorFacts, Policy, StateInterface, SupportedNic
from ...controllers.sriov_operator import MELLANOX, find_wanted_by, nearest_match, selects
from ...fleet.vendors import load_rdma

#: ids of the findings
POLICY, SELECT, FUNCTIONS = "network.lint_policy", "network.lint_select", "network.lint_functions"
OVERLAP, LINK, RDMA = "network.lint_overlap", "network.lint_link", "network.lint_rdma"
OPERATOR = "network.lint_operator"
INTEL = "8086"
#: the operator raises NUM_OF_VFS of a Mellanox NIC by itself, up to this
MELLANOX_MOST_VFS = 128
#: from here on the kernel's answer about an InfiniBand PF outgrows netlink's buffer [sriov-network-operator pull
#: requests 1021, 1025]
INFINIBAND_MANY_VFS = 16
#: highest MTU of a driver in bytes [Linux 6.12 drivers/net/ethernet, max_mtu]; that of mlx5_core depends on the port,
#: so it is not here
_DRIVER_MTU = {"igb": 9216, "ixgbe": 9710, "i40e": 9702, "ice": 9702, "bnxt_en": 9500}
#: drivers whose VFs have no RDMA device, whatever module is loaded
_DRIVERS_WITHOUT_RDMA = ("igb", "ixgbe")
#: IPoIB takes 4 bytes of the largest InfiniBand MTU, 4096; with the default partition of 2048 it is 2044
_IPOIB_MTU = 2044

_RESOURCE = re.compile(r"[a-zA-Z0-9_]+")
_RANGE = re.compile(r"([^#]*)#([0-9]{1,9})-([0-9]{1,9})")
_LIST = "supported-nic-ids"

Where = typing.Literal["webhook", "node", "nowhere"]


@dataclasses.dataclass(frozen=True)
class ClusterBefore:
    """The state of the cluster before the policy is applied.

    :ivar policies: the others that will be in force beside it, by name
    :ivar supported: NICs that the operator supports; None when that is not known
    :ivar hcas: what each node itself shows; may be empty
    :ivar rdma_mode: that the nodes will get; empty: they keep the one that they have
    :ivar nic_policies: NicClusterPolicies that are there
    """

    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: typing.Mapping[str, Policy] = dataclasses.field(default_factory=dict)
    supported: typing.Optional[tuple[SupportedNic, ...]] = None
    hcas: typing.Mapping[str, NodeHcas] = dataclasses.field(default_factory=dict)
    rdma_mode: str = ""
    nic_policies: tuple[NicPolicy, ...] = ()

    @functools.cached_property
    def _labelled(self) -> typing.Mapping[tuple[str, str], set[str]]:
        """Return the names of the nodes with a label. A thousand nodes may have a policy each, and nobody wants a
        million comparisons."""
        found: dict[tuple[str, str], set[str]] = {}
        for node in self.nodes.values():
            for label in node.labels.items():
                found.setdefault(label, set()).add(node.name)
        return found

    def taken_by(self, policy: Policy) -> tuple[ClusterNode, ...]:
        """Return the nodes that the policy's nodeSelector takes; an empty one takes all."""
        if not policy.node_selector:
            return tuple(self.nodes.values())
        names = set.intersection(*(self._labelled.get(label, set()) for label in policy.node_selector.items()))
        return tuple(self.nodes[name] for name in sorted(names))

    @functools.cached_property
    def policies_on(self) -> typing.Mapping[str, tuple[Policy, ...]]:
        """Return the policies that take a node, by its name."""
        found: dict[str, list[Policy]] = {}
        for policy in self.policies.values():
            for node in self.taken_by(policy):
                found.setdefault(node.name, []).append(policy)
        return {name: tuple(policies) for name, policies in found.items()}


def cluster_before(seen: OperatorFacts, hcas: typing.Mapping[str, NodeHcas], cluster: ClusterIntent) -> ClusterBefore:
    """Return the same, out of the answer of sriov_operator_info."""
    return ClusterBefore(
        {node.name: node for node in seen.nodes},
        {state.node: state for state in seen.states},
        {policy.name: policy for policy in seen.policies},
        seen.supported_nics,
        hcas,
        (cluster.node_pool and cluster.node_pool.rdma_mode) or "",
        seen.nic_policies,
    )


@dataclasses.dataclass(frozen=True)
class Objection:
    """One rule that the policy breaks.

    :ivar check: id of the finding
    :ivar where: who stops it: the webhook; the node, after the API server took it; or nobody, and somebody will be
        surprised
    :ivar measured: the webhook's own words, where it is the one
    :ivar node: empty when the policy alone is at fault
    :ivar function: netdev or PCI address of the physical function; empty when it is about the node
    """

    check: str
    where: Where
    measured: str
    expected: str
    why: str
    remedy: str
    node: str = ""
    function: str = ""


def objections(policy: Policy, world: ClusterBefore) -> tuple[Objection, ...]:
    """Return all that speaks against a policy on the nodes that it takes."""
    nodes = world.taken_by(policy)
    found = [*_of_policy(policy, world), *_selection(policy, nodes, world), *_beside(policy, nodes, world)]
    for node in nodes:
        for interface in selected(policy, world.states.get(node.name), world):
            objects = [
                *_functions(policy, interface),
                *_link(policy, interface),
                *_rdma(policy, interface, world.hcas.get(node.name)),
            ]
            found += [
                dataclasses.replace(item, node=node.name, function=interface.name or interface.address)
                for item in objects
            ]
    return tuple(found)


# The policy by itself


def _of_policy(policy: Policy, world: ClusterBefore) -> typing.Iterator[Objection]:
    if not _RESOURCE.fullmatch(policy.resource_name):
        text = f'resource name "{policy.resource_name}" contains invalid characters'
        why = "Operators up to 1.6 and OpenShift's take only letters, digits and underscores."
        yield Objection(
            POLICY, "webhook", text, "letters, digits and underscores", why, "Correct resource_name of the fabric."
        )
    if not (policy.vendor or policy.device or policy.pf_names or policy.root_devices or policy.net_filter):
        text = (
            "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined"
            f" in nicSelector in CR {policy.name}"
        )
        yield Objection(
            POLICY,
            "webhook",
            text,
            "a nicSelector",
            "Nothing says which NICs are meant.",
            "Add pci, netdev, or vendor and device to select.",
        )
    yield from _supported(policy, world.supported)
    for written in policy.pf_names:
        yield from _range(policy, written)
    # of an InfiniBand policy the webhook itself makes an RDMA one
    if policy.device_type == "vfio-pci" and (policy.rdma or policy.link_type.upper() == "IB"):
        why = "A function that is given to vfio-pci has no RDMA device on the host."
        yield Objection(
            POLICY,
            "webhook",
            "'deviceType: vfio-pci' conflicts with 'isRdma: true'",
            "netdevice",
            why,
            "Use one of the two.",
        )
    if policy.eswitch_mode == "switchdev" and policy.link_type.upper() not in ("", "ETH"):
        text = "'eSwitchMode: switchdev' can be used only with ethernet links"
        yield Objection(
            POLICY, "webhook", text, "legacy", "An InfiniBand HCA has no such switch.", "Remove eSwitchMode."
        )
    if policy.vdpa_type and policy.device_type not in ("", "netdevice"):
        text = f"'deviceType: {policy.device_type}' conflicts with '{policy.vdpa_type}'"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "netdevice",
            "vDPA is made on top of the kernel's own driver.",
            "Remove vdpaType, or use netdevice.",
        )
    if policy.vdpa_type and policy.eswitch_mode != "switchdev":
        text = "vdpa requires the device to be configured in switchdev mode"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "switchdev",
            "vDPA devices hang on the switch of the NIC.",
            "Remove vdpaType, or use switchdev.",
        )


def _supported(policy: Policy, supported: typing.Optional[tuple[SupportedNic, ...]]) -> typing.Iterator[Objection]:
    if supported is None:
        return
    if policy.vendor and not any(nic.vendor == policy.vendor for nic in supported):
        text = f"vendor {policy.vendor} is not supported"
    elif (
        policy.vendor
        and policy.device
        and not any((nic.vendor, nic.device) == (policy.vendor, policy.device) for nic in supported)
    ):
        text = f"vendor/device {policy.vendor}/{policy.device} is not supported"
    elif policy.device and not any(nic.device == policy.device for nic in supported):
        text = f"device {policy.device} is not supported"
    else:
        return
    expected = f"a NIC of the operator's ConfigMap {_LIST}"
    parents = sorted(
        {nic.device for nic in supported if nic.virtual_device == policy.device and policy.vendor in ("", nic.vendor)}
    )
    if parents:
        why = (
            f"{policy.device} is the id of virtual functions; a policy selects physical ones, and makes the virtual"
            " ones."
        )
        yield Objection(
            POLICY,
            "webhook",
            text,
            expected,
            why,
            f"Set select.device to that of the physical function: {' or '.join(parents)}.",
        )
    else:
        why = "The operator works only on NICs of its list, and its config daemon reports no others."
        yield Objection(
            POLICY,
            "webhook",
            text,
            expected,
            why,
            "Correct vendor and device, or add the NIC to supportedExtraNICs of the chart.",
        )


def _range(policy: Policy, written: str) -> typing.Iterator[Objection]:
    """``eth0#0-3``: some of the virtual functions of eth0."""
    if "#" not in written:
        return
    match = _RANGE.fullmatch(written)
    if match is None:
        text, why = f"failed to parse {written} PF name", "It is neither a name nor a name with a range."
    elif int(match[3]) < int(match[2]):
        text, why = (
            f"failed to parse {written} PF name nicSelector, end range shall not be smaller than start range",
            "The range ends before it starts.",
        )
    elif int(match[3]) >= policy.vfs_count:
        text = f"failed to parse {written} PF name nicSelector, end range exceeds the maximum VF index"
        why = f"{policy.vfs_count} virtual functions are numbered 0 to {policy.vfs_count - 1}."
    else:
        return
    yield Objection(
        POLICY,
        "webhook",
        text,
        f"eth0, or eth0#0-{max(0, policy.vfs_count - 1)}",
        why,
        "Correct the name in select.netdev.",
    )


# What it selects


def selected(policy: Policy, state: typing.Optional[NodeState], world: ClusterBefore) -> tuple[StateInterface, ...]:
    interfaces = state.interfaces if state is not None else ()
    return tuple(
        interface
        for interface in interfaces
        if selects(policy, interface) and _is_supported(interface.vendor, interface.device, world.supported)
    )


def _is_supported(vendor: str, device: str, supported: typing.Optional[tuple[SupportedNic, ...]]) -> bool:
    return supported is None or any((nic.vendor, nic.device) == (vendor, device) for nic in supported)


def _selection(policy: Policy, nodes: typing.Sequence[ClusterNode], world: ClusterBefore) -> typing.Iterator[Objection]:
    if not nodes:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(policy.node_selector.items()))
        why = f"No node of the cluster carries {labels}."
        text = f"no matched node is selected by the nodeSelector in CR {policy.name}"
        yield Objection(
            SELECT,
            "webhook",
            text,
            "one node at least",
            why,
            "See the stage operators: it says why the label is absent.",
        )
        return
    # where no node has reported anything yet, the webhook refuses every policy; that is no fault of this one
    reported = [
        world.states[node.name] for node in nodes if node.name in world.states and world.states[node.name].interfaces
    ]
    if reported and not any(selected(policy, state, world) for state in reported):
        why = (
            "No node reports a physical function that the policy takes; see the findings on the nodes for the nearest"
            " match."
        )
        text = f"no supported NIC is selected by the nicSelector in CR {policy.name}"
        yield Objection(SELECT, "webhook", text, "one physical function at least", why, "Correct select of the fabric.")


def why_not_selected(policy: Policy, state: NodeState, world: ClusterBefore) -> str:
    """Return why the policy selects no other physical function of a node: the nearest one, and those that the operator
    does not report."""
    chosen = selected(policy, state, world)
    rest = tuple(interface for interface in state.interfaces if interface not in chosen)
    lines = [f"{item.name} at {item.address} is not in the ConfigMap {_LIST}" for item in rest if selects(policy, item)]
    if rest and not lines:
        lines = [nearest_match(policy, dataclasses.replace(state, interfaces=rest))]
    reported = {interface.address for interface in state.interfaces}
    hcas = world.hcas.get(state.node)
    unseen: dict[str, list[str]] = {}
    for hca in hcas.hcas if hcas is not None else ():
        if (
            hca.pci is not None
            and not hca.is_virtual
            and hca.pci.address not in reported
            and _takes(policy, hca, hca.pci)
        ):
            unseen.setdefault(_why_unreported(hca, hca.pci, world), []).append(
                f"{hca.name} at {hca.pci.address} ({hca.pci.vendor}:{hca.pci.device})"
            )
    lines += [
        f"the node has {', '.join(names)}, which the operator does not report: {why}"
        for why, names in sorted(unseen.items())
    ]
    return "; ".join(lines) or "the operator reports no other interface of the node"


def _takes(policy: Policy, hca: Hca, pci: PciFunction) -> bool:
    """Return whether the policy would select this HCA if the operator reported it."""
    names = [netdev.name for netdev in hca.netdevs] or [""]
    return any(selects(policy, StateInterface(name, pci.address, pci.vendor, pci.device)) for name in names)


def _why_unreported(hca: Hca, pci: PciFunction, world: ClusterBefore) -> str:
    """Return the conditions of the config daemon, in its order. [pkg/host/internal/sriov/sriov.go,
    DiscoverSriovDevices]"""
    if not _is_supported(pci.vendor, pci.device, world.supported):
        return f"not in the ConfigMap {_LIST}"
    if pci.driver is None:
        return "no driver is bound"
    if not hca.netdevs:
        return "there is no network interface"
    return "the log of the config daemon on the node says why"


# What one physical function can do


def _functions(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    wanted, total = policy.vfs_count, interface.total_vfs
    name = interface.name
    if wanted == 0:
        text = f"numVfs(0) in CR {policy.name} is not allowed"
        yield Objection(
            FUNCTIONS,
            "webhook",
            text,
            "1 at least",
            "A policy without virtual functions asks for nothing.",
            "Raise virtual_functions.",
        )
    most = MELLANOX_MOST_VFS if interface.vendor == MELLANOX else total
    if wanted > most:
        text = f"numVfs({wanted}) in CR {policy.name} exceed the maximum allowed value({most}) interface({name})"
        if interface.vendor in (INTEL, MELLANOX):
            where: Where = "webhook"
        else:
            where, text = "node", f"cannot config SRIOV device: NumVfs ({wanted}) is larger than TotalVfs ({total})"
        why = (
            "The physical function has no SR-IOV: it is off in BIOS or firmware."
            if total == 0
            else "The physical function can't make so many."
        )
        yield Objection(
            FUNCTIONS,
            where,
            text,
            f"{most} at most",
            why,
            "Lower virtual_functions, or raise what the firmware allows; see the stage platform.",
        )
    elif wanted >= INFINIBAND_MANY_VFS and interface.link_type == "IB":
        why = (
            "With so many virtual functions the kernel's answer about an InfiniBand PF outgrows netlink's buffer, and"
            " GUIDs can't be set: 'message too long'."
        )
        remedy = (
            f"Stay below {INFINIBAND_MANY_VFS} on each HCA, or make sure that the operator's release copes with it."
        )
        yield Objection(FUNCTIONS, "nowhere", f"{wanted} on InfiniBand", f"below {INFINIBAND_MANY_VFS}", why, remedy)
    if policy.external and wanted > interface.vfs_count:
        text = (
            f"numVfs({wanted}) in CR {policy.name} is higher than the virtual functions allocated for the PF externally"
            f" value({interface.vfs_count})"
        )
        why = "An externally managed policy makes no virtual functions; it only hands them out."
        yield Objection(
            FUNCTIONS,
            "webhook",
            text,
            f"{interface.vfs_count} at most",
            why,
            "Make them first, or let the operator make them.",
        )


def _link(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    seen, wanted = (interface.link_type or "").upper(), policy.link_type.upper()
    if wanted and seen and wanted != seen:
        if policy.external:
            text = (
                f"LinkType({policy.link_type}) in CR {policy.name} is not equal to the LinkType for the PF externally"
                f" value({seen})"
            )
            yield Objection(
                LINK,
                "webhook",
                text,
                seen,
                "The operator changes nothing on such a function.",
                "Use the profile of its link layer.",
            )
        else:
            why = (
                "The operator would write another LINK_TYPE into the firmware and reboot the node; with the cable as it"
                " is, the port then has no link."
                if interface.vendor == MELLANOX
                else (
                    "The device plugin offers only functions of the link layer that the policy names, so it would offer"
                    " none."
                )
            )
            remedy = (
                "Use the profile of the port's link layer (SriovIBNetwork on InfiniBand, SriovNetwork on Ethernet), or"
                " select other ports."
            )
            yield Objection(
                LINK, "node", f"a port of {seen}, the profile is for {wanted}", f"a port of {wanted}", why, remedy
            )
    if policy.vdpa_type and interface.vendor != MELLANOX:
        text = f"vendor({interface.vendor}) in CR {policy.name} not supported for vdpa interface({interface.name})"
        yield Objection(LINK, "webhook", text, MELLANOX, "Only Mellanox NICs do vDPA.", "Remove vdpaType.")
    yield from _mtu(policy, interface)


def _mtu(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    if not policy.mtu:
        return
    if policy.external and policy.mtu > (interface.mtu or 0):
        text = (
            f"MTU({policy.mtu}) in CR {policy.name} is higher than the MTU for the PF externally"
            f" value({interface.mtu or 0})"
        )
        yield Objection(
            LINK,
            "webhook",
            text,
            f"{interface.mtu or 0} bytes at most",
            "The operator changes nothing on such a function.",
            "Lower mtu.",
        )
        return
    most = _DRIVER_MTU.get(interface.driver or "")
    if most is not None and policy.mtu > most:
        why = f"The driver {interface.driver} takes at most {most} bytes, so the config daemon fails on the node."
        yield Objection(LINK, "node", f"mtu {policy.mtu}", f"{most} bytes at most", why, "Lower mtu of the fabric.")
    if interface.link_type == "IB" and policy.mtu > _IPOIB_MTU:
        why = (
            "On InfiniBand the subnet manager's partition sets the MTU, not the policy; above 2044 its partition must"
            " say mtu=5."
        )
        yield Objection(
            LINK,
            "nowhere",
            f"mtu {policy.mtu}",
            f"{_IPOIB_MTU} bytes at most",
            why,
            "Leave mtu out, or set the SM's partition first.",
        )


def _rdma(policy: Policy, interface: StateInterface, node: typing.Optional[NodeHcas]) -> typing.Iterator[Objection]:
    if not policy.rdma or policy.device_type == "vfio-pci":
        return
    if interface.driver in _DRIVERS_WITHOUT_RDMA:
        why = (
            f"The driver {interface.driver} has no RDMA, so the device plugin, which is asked for RDMA devices only,"
            " would offer none."
        )
        yield Objection(
            RDMA,
            "node",
            f"driver {interface.driver}",
            "a driver with RDMA",
            why,
            "Set rdma: false on the fabric, or select other NICs.",
        )
        return
    hcas = (
        [hca for hca in node.hcas if hca.pci is not None and hca.pci.address == interface.address]
        if node is not None
        else []
    )
    if hcas and not any(hca.rdma_device for hca in hcas):
        why = (
            "The physical function has no RDMA device now. Unless the driver's RDMA module is loaded, its virtual"
            " functions have none and are not offered."
        )
        remedy = f"{load_rdma(hcas)} Or set rdma: false on the fabric."
        yield Objection(RDMA, "nowhere", "no RDMA device", "an RDMA device", why, remedy)


# What else is there


def _beside(policy: Policy, nodes: typing.Sequence[ClusterNode], world: ClusterBefore) -> typing.Iterator[Objection]:
    together: dict[str, list[ClusterNode]] = {}
    for node in nodes:
        for other in world.policies_on.get(node.name, ()):
            if other.name != policy.name:
                together.setdefault(other.name, []).append(node)
    for name, shared in sorted(together.items()):
        other = world.policies[name]
        refused = _refused_beside(policy, other)
        if refused:
            why = (
                f"The policy {other.name} (resource {other.resource_name}) is in force on {len(shared)} of the same"
                " nodes; both can't be."
            )
            remedy = (
                f"Delete {other.name} if nothing needs it (kubectl delete sriovnetworknodepolicy {other.name}), or"
                " leave its functions out of select."
            )
            yield Objection(OVERLAP, "webhook", refused, "functions of its own", why, remedy)
            continue
        for node in shared:
            for interface in selected(policy, world.states.get(node.name), world):
                yield from (dataclasses.replace(item, node=node.name) for item in _shared(policy, other, interface))


def _refused_beside(policy: Policy, other: Policy) -> str:
    """Return the webhook's objection to two policies on one node; empty when there is none. It compares what is
    written, not what is selected."""
    mine, theirs = (tuple(map(_written_range, item.pf_names)) for item in (policy, other))
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


def _written_range(written: str) -> tuple[str, int, int]:
    """Name, first and last virtual function; -1 and -1 where none are named, as the webhook reads it."""
    match = _RANGE.fullmatch(written)
    return (match[1], int(match[2]), int(match[3])) if match else (written.partition("#")[0], -1, -1)


def _shared(policy: Policy, other: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    """Two policies on the same virtual functions, which the webhook does not see: one of them comes away
    empty-handed."""
    if other.net_filter or other.resource_name == policy.resource_name or not selects(other, interface):
        return
    (mine,), (theirs,) = find_wanted_by(policy, interface).groups, find_wanted_by(other, interface).groups
    if mine.last < theirs.first or mine.first > theirs.last:
        return
    measured = (
        f"functions {mine.first} to {mine.last} here, {theirs.first} to {theirs.last} in policy {other.name} (resource"
        f" {other.resource_name})"
    )
    why = (
        f"The operator gives functions that two policies ask for to one of them: priority {policy.priority} here,"
        f" {other.priority} there, the lower wins."
    )
    remedy = (
        f"Give each policy functions of its own ({interface.name}#0-3 and {interface.name}#4-7 in netdev), or delete"
        f" {other.name}."
    )
    yield Objection(
        OVERLAP, "node", measured, "functions of its own", why, remedy, function=interface.name or interface.address
    )
