# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of VFs, layer by layer: MTU, link state, GUIDs, and what the network sets for the VF of a pod. Part of stage
virtual_functions.

Each cause begins with the layer that is wrong: Intent, Operator (what it wants of the node), Config daemon (what it has
done and reports), Kernel (what sysfs shows), Device plugin. What a layer can't show is said, and never passes.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.node.hca import NO_GUID, Hca, NodeHcas, ObservedHcas, VfAdministration
from ..._model.operators.sriov_operator import NodeState, StateInterface, WantedInterface
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok

#: what the CNI plugin writes for a link state of the network, as sysfs shows it
_POLICIES = {"auto": "Follow", "enable": "Up", "disable": "Down"}
#: what a VF has before somebody gives it a GUID, and what no port may have
_ONES = "0xffffffffffffffff"
_NO_GUIDS = (NO_GUID, _ONES)


@dataclasses.dataclass(frozen=True)
class FunctionReports:
    """The reports of each layer on one physical function.

    :ivar vfs: virtual functions in sysfs
    :ivar state: of the node; None when the operator has none, or when that is not known
    :ivar unread: why it is not known whether the operator has a state; empty when it is known
    """

    fabric: Fabric
    node: str
    hca: Hca
    vfs: tuple[Hca, ...]
    state: typing.Optional[NodeState]
    unread: str = ""

    @property
    def address(self) -> str:
        return self.hca.pci.address if self.hca.pci else ""

    @property
    def subject(self) -> str:
        return f"{self.fabric.name} {self.node} {self.hca.name} {self.address}".strip()

    @property
    def desired(self) -> typing.Optional[WantedInterface]:
        """Return the operator's desired state of the function."""
        return next((item for item in self.state.wanted if item.address == self.address), None) if self.state else None

    @property
    def reported(self) -> typing.Optional[StateInterface]:
        """Return the config daemon's report on the function."""
        return (
            next((item for item in self.state.interfaces if item.address == self.address), None) if self.state else None
        )

    @property
    def in_pods(self) -> tuple[Hca, ...]:
        """VFs without a network interface on the node: a pod has it, or there is none."""
        return tuple(vf for vf in self.vfs if not vf.netdevs)

    @property
    def hidden(self) -> tuple[Hca, ...]:
        """VFs whose network interface was seen nowhere: not on the node, and not in a pod of it."""
        return tuple(vf for vf in self.vfs if not vf.all_netdevs)

    @property
    def exclusive(self) -> bool:
        """Return whether an RDMA device goes into a pod with its interface. Where the config daemon does not report it,
        the VFs show it: free ones have one, these not."""
        mode = self.state.rdma_mode if self.state else ""
        return mode == "exclusive" or (
            not mode
            and any(vf.rdma_device and vf.netdevs for vf in self.vfs)
            and all(vf.held for vf in self.vfs if not vf.rdma_device)
        )


def check_mtu(layers: FunctionReports) -> Finding:
    """Check that physical and virtual functions have the MTU of the intent; without one, that kernel and report
    agree."""
    check, wanted, reported = "virtual_functions.mtu", layers.fabric.mtu, layers.reported
    own, others = _mtu(layers.hca), {vf.name: _mtu(vf) for vf in layers.vfs if vf.all_netdevs}
    shown = folded(sorted({str(value) for value in others.values()}), 8) or "not seen"
    measured = f"PF {own or 'not seen'}, VFs {shown}, report {reported.mtu if reported and reported.mtu else 'none'}"
    if own is None:
        why = "Kernel: the physical function has no network interface here, so its MTU is not seen."
        remedy = (
            "Look for the interface on the node: ip link, then ip netns for another network namespace. On InfiniBand"
            " load its driver: modprobe ib_ipoib."
        )
        return Finding(
            check,
            layers.subject,
            UNKNOWN if wanted else WARN,
            measured,
            f"{wanted or 'any, the same in each layer'}",
            why,
            remedy,
        )
    if reported is not None and reported.mtu and reported.mtu != own:
        why = (
            f"Config daemon: it reports an MTU of {reported.mtu}, and the kernel has {own}; somebody changed it since."
        )
        remedy = "Run the stage again; if it stays, see the config daemon's log."
        return Finding(check, layers.subject, FAIL, measured, f"{wanted or own} in each layer", why, remedy)
    desired = layers.desired.mtu if layers.desired else 0
    expected = f"{wanted} in each layer" if wanted else "any, the same in each layer"
    # what is right today, and wrong after the daemon's next look or the node's next boot, is not right; the daemon
    # itself only raises an MTU
    if own >= (wanted or 0) and layers.desired is not None and (desired > own or desired < (wanted or 0)):
        what = "it will change under the pods that use it" if desired > own else "nobody sets it again after a boot"
        why = f"Operator: it wants {desired or 'no MTU'} of this function, and the kernel has {own}: {what}."
        remedy = (
            "See which policies select this function: kubectl get sriovnetworknodepolicies -A -o yaml; then run the"
            " stage network again."
        )
        return Finding(check, layers.subject, FAIL, f"{measured}, wanted {desired}", expected, why, remedy)
    if wanted is None:
        return ok(check, layers.subject, measured, expected)
    in_pods = {vf.name for vf in layers.in_pods}
    wrong = [name for name, value in others.items() if value != wanted and name not in in_pods]
    smaller = [name for name, value in others.items() if value != wanted and name in in_pods]
    if own >= wanted and smaller and not wrong:
        why = (
            f"CNI plugin: pods have these VFs with another MTU: {', '.join(smaller[:8])}. Their own network may ask for"
            " it; free VFs have the right one."
        )
        remedy = (
            f"Compare mtu in their NetworkAttachmentDefinition with that of the fabric '{layers.fabric.name}'; pods"
            " keep theirs until they are made anew."
        )
        return Finding(check, layers.subject, WARN, measured, expected, why, remedy)
    if own >= wanted and not wrong:
        return _check_seen(check, layers, measured, expected, "their MTU")
    if desired != wanted:
        why, remedy = (
            f"Operator: it wants {desired or 'no MTU'} of this function.",
            "See the stage network: the API server must take our policy, and no other policy may select this function.",
        )
    elif own < wanted:
        why, remedy = (
            f"Config daemon: it was told {desired} and the physical function has {own}.",
            "Read the config daemon's log, which has the driver's answer to this MTU.",
        )
    else:
        why = (
            f"Kernel: the physical function has it, and these have not: {', '.join(wrong[:8])}. A VF keeps what the"
            " last pod has set."
        )
        remedy = (
            "Set it on the node (ip link set ... mtu ...), or delete the config daemon's pod there, so that it sets it"
            " anew."
        )
    return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)


def _mtu(hca: Hca) -> typing.Optional[int]:
    return max((netdev.mtu for netdev in hca.all_netdevs if netdev.mtu is not None), default=None)


def _check_seen(check: str, layers: FunctionReports, measured: str, expected: str, what: str) -> Finding:
    """Return a pass over the VFs that could be looked at; what is in pods was not."""
    hidden = layers.hidden
    if not hidden:
        return ok(check, layers.subject, measured, expected)
    why = (
        f"Kernel: {len(hidden)} of {len(layers.vfs)} VFs show no network interface on the node or in a pod of it, so"
        f" {what} is not seen."
    )
    remedy = (
        "No action if pods are running on this network. Otherwise see virtual_functions.driver. Stage bandwidth shows"
        " whether they work."
    )
    return Finding(
        check, layers.subject, UNKNOWN if len(hidden) == len(layers.vfs) else WARN, measured, expected, why, remedy
    )


def link_state(layers: FunctionReports) -> typing.Optional[Finding]:
    """Check that the links of the VFs can come up; None where the intent asks for nothing and nothing can be seen.

    The CNI plugin sets the link state when a pod takes the VF, and only when the network names one; until then an
    InfiniBand VF has the driver's default, which is down [src ib-sriov-cni pkg/sriov/sriov.go].
    """
    check, wanted = "virtual_functions.link_state", layers.fabric.network.link_state
    policies = {
        vf.name: vf.administration.link_policy
        for vf in layers.vfs
        if vf.administration and vf.administration.link_policy
    }
    states = {vf.name: port.state for vf in layers.vfs for port in vf.all_ports[:1] if port.state is not None}
    counted = _counts(policies.values()) or "not shown by the driver"
    measured = f"policy {counted}" + (f", ports {_counts(value or '' for value in states.values())}" if states else "")
    expected = f"link_state {wanted}, set when a pod takes the VF" if wanted else "links that come up by themselves"
    unserved = [vf.name for vf in layers.vfs if _unserved(layers.hca, vf)]
    if unserved:
        why = (
            "Subnet manager: the links of these VFs are up, and it leaves their ports as they are, as one does that"
            f" serves no VFs: {', '.join(unserved[:8])}."
        )
        remedy = (
            "Have the master serve VFs: virt_enabled 2 in its opensm.conf (the opensm of NVIDIA's packages can; another"
            " opensm has no such option), or virtualization in UFM or in the switch. If it does already, its log has"
            " these GUIDs."
        )
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    down = [name for name in policies or states if (policies or states)[name] in ("Down", "DOWN")]
    if wanted is None:
        if down and is_infiniband(layers.fabric):
            why = (
                "Intent: it names no network.link_state, so nothing brings up the links of these VFs:"
                f" {', '.join(down[:8])}."
            )
            remedy = (
                f"Set network.link_state: enable in the fabric '{layers.fabric.name}'; its subnet manager must serve"
                " VFs (opensm: virt_enabled 2)."
            )
            return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
        if len(policies or states) == len(layers.vfs) and not down:
            return ok(check, layers.subject, measured, expected)
        if not is_infiniband(layers.fabric) and not policies:
            return None
    held = {vf.name for vf in layers.in_pods} - {vf.name for vf in _idle(layers)}
    late = [name for name, policy in policies.items() if wanted and name in held and policy != _POLICIES[wanted]]
    if late:
        why = (
            f"CNI plugin: pods have these VFs, and it has not set their link state to {wanted}, or somebody has changed"
            " it since: "
        )
        why += f"{', '.join(late[:8])}."
        remedy = (
            f"Check that the NetworkAttachmentDefinition '{layers.fabric.network.name}' names link_state. Pods that are"
            " older must be made anew. "
        )
        remedy += f"By hand: ip link set PF vf NUMBER state {wanted}."
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    if len(policies) == len(layers.vfs):
        return ok(check, layers.subject, measured, expected)
    why = "Kernel: neither sysfs nor ip link shows the link state of these VFs, so nothing is proven of it here."
    remedy = (
        "Run ip link show for the physical function on the node, as root. Stage bandwidth shows whether the links come"
        " up in pods."
    )
    return Finding(check, layers.subject, WARN, measured, expected, why, remedy)


def check_idle(layers: FunctionReports) -> typing.Optional[Finding]:
    """Say which VFs are in a network namespace in which nothing runs; None where there are none."""
    lost = [(vf.name, vf.held.idle or "") for vf in _idle(layers) if vf.held]
    if not lost:
        return None
    names = ", ".join(f"{name} in {namespace}" for name, namespace in lost[:8])
    why = (
        f"Kernel: these VFs are in network namespaces in which nothing runs: {names}. A pod that just starts or"
        " restarts has them, or one that crashed and is gone: then no CNI plugin gave them back, the kubelet counts"
        " them as free, and the next pod that is to get one fails."
    )
    remedy = (
        f"Look for pods that start or crash: kubectl get pods -A -o wide --field-selector spec.nodeName={layers.node}."
        f" If none has this network, give the VFs back on the node: ip netns delete {lost[0][1]}; then run the stage"
        " again."
    )
    return Finding(
        "virtual_functions.stuck",
        layers.subject,
        WARN,
        f"{len(lost)} of {len(layers.vfs)} VFs",
        "VFs on the node or in pods that run",
        why,
        remedy,
    )


def _idle(layers: FunctionReports) -> list[Hca]:
    return [vf for vf in layers.vfs if vf.held and vf.held.idle]


def _unserved(physical: Hca, vf: Hca) -> bool:
    """Return whether nothing but the subnet manager keeps the port of a VF down: its link is up, as is the port of the
    HCA, and it has GUIDs.

    [k8s-rdma-sriov-dev-plugin issue 26: DOWN, LinkUp; Mellanox/network-operator issue 249: the same, base LID 65535]
    """
    ports = [port for port in vf.all_ports if port.link_layer == "InfiniBand"]
    if not ports or not any(port.state == "ACTIVE" for port in physical.all_ports):
        return False
    if _guid(vf) in (None, *_NO_GUIDS) or ports[0].guid in _NO_GUIDS:
        return False
    policy = vf.administration.link_policy if vf.administration else None
    # nobody may have let the link of one that is DOWN come up, where the policy is not shown
    waits = ("INIT", "ARMED") if policy is None else ("DOWN", "INIT", "ARMED")
    return policy != "Down" and ports[0].physical_state == "LinkUp" and ports[0].state in waits


def _counts(values: typing.Iterable[str]) -> str:
    """``4 Down, 4 Up``"""
    return folded([f"{count} {value}" for value, count in sorted(collections.Counter(values).items())], 8)


def check_settings(
    fabric: Fabric, node: str, pods: typing.Sequence[RdmaPod], held: ObservedHcas, others: typing.Sequence[Hca] = ()
) -> Finding:
    """Check that the VFs of our pods on a node were set as the network asks.

    The CNI plugin sets them when a pod takes the VF and takes them back when the pod goes, so a VF that no pod has
    proves nothing. [sriov-cni pkg/sriov/sriov.go ApplyVFConfig, ResetVFConfig]

    :param held: answer of node_info while the pods had them
    :param others: VFs of the fabric that other pods have. One of them that is set as asked proves it too; one that is
        not may be on a network of its own
    """
    wanted = fabric.network.vf_settings
    check, subject, expected = "virtual_functions.settings", f"{fabric.name} {node}", _words(wanted)
    vfs = {hca.pci.address: hca for hca in (held.value.hcas if held.value else ()) if hca.pci}
    taken = [vfs[pod.pci] for pod in pods if pod.pci in vfs]
    alike = [
        vf for vf in others if all(getattr(vf.administration, name, None) == value for name, value in wanted.items())
    ]
    if not taken and alike:
        return ok(check, subject, f"{folded([vf.name for vf in alike])}, which other pods have: {expected}", expected)
    if not taken:
        reason = (
            next((pod.error for pod in pods if pod.error), held.error) or "no pod of ours has one that the node shows"
        )
        why = f"CNI plugin: it sets them when a pod takes a virtual function, and nothing was seen of that: {reason}."
        remedy = (
            "See the events of the pod, and whether other pods have all the virtual functions; then run the stage"
            " again."
        )
        return Finding(check, subject, UNKNOWN, "not seen", expected, why, remedy)
    shown = {vf.name: {name: getattr(vf.administration or VfAdministration(), name) for name in wanted} for vf in taken}
    measured = "; ".join(f"{name}: {_words(values)}" for name, values in shown.items())
    if all(values == wanted for values in shown.values()):
        return ok(check, subject, measured, expected)
    if any(value not in (None, wanted[name]) for values in shown.values() for name, value in values.items()):
        why = "CNI plugin: a pod has the virtual function, and its physical function has something else set for it."
        remedy = (
            f"Check that the NetworkAttachmentDefinition '{fabric.network.name}' names it, and read the log of multus"
            " on the node."
        )
        return Finding(check, subject, FAIL, measured, expected, why, remedy)
    why = "Kernel: ip link does not show all of it, since the driver does not tell or the tool is not there."
    return Finding(
        check,
        subject,
        UNKNOWN,
        measured,
        expected,
        why,
        "Install iproute2 on the node, and read ip link show there while a pod has the virtual function.",
    )


def _words(values: typing.Mapping[str, typing.Union[int, bool, None]]) -> str:
    """``vlan 100, trust on``"""
    return ", ".join(f"{name} {_word(value)}" for name, value in values.items())


def _word(value: typing.Union[int, bool, None]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not shown" if value is None else str(value)


def check_guids(layers: FunctionReports) -> Finding:
    """Check that each InfiniBand VF has a GUID, the same in each layer."""
    check, expected = "virtual_functions.guids", "a GUID for each VF, the same in each layer"
    nameless = [vf.name for vf in layers.vfs if _guid(vf) is None]
    measured = f"{len(layers.vfs) - len(nameless)} of {len(layers.vfs)} seen"
    zero = [vf for vf in layers.vfs if _guid(vf) in _NO_GUIDS or any(port.guid in _NO_GUIDS for port in vf.all_ports)]
    if zero:
        given = [vf.name for vf in zero if vf.administration and vf.administration.node_guid not in (None, *_NO_GUIDS)]
        names = ", ".join(vf.name for vf in zero[:8])
        if given:
            why = (
                "Kernel: the physical function has GUIDs for these, and their driver has not read them:"
                f" {', '.join(given[:8])}."
            )
            remedy = (
                "Unbind these VFs from mlx5_core and bind them again; the config daemon does that when it is restarted"
                " on the node."
            )
        elif all(_ONES in (_guid(vf), *(port.guid for port in vf.all_ports)) for vf in zero):
            why = (
                f"CNI plugin: it has set the GUIDs of {names} to ones, as ib-sriov-cni does when a pod goes whose VF"
                " had none before. Pods on them fail."
            )
            remedy = (
                "Give them GUIDs (ip link set PF vf NUMBER node_guid and port_guid, then unbind the VF from mlx5_core"
                " and bind it), or make the VFs anew. The config daemon's log says why they had none before that pod."
            )
        else:
            why = f"Config daemon: it has given no GUID to {names}. Pods on them fail with 'GUID is not valid'."
            remedy = (
                "Read the config daemon's log. Where the node has /etc/sriov-operator/infiniband/guids, it must have"
                " enough GUIDs."
            )
        return Finding(
            check, layers.subject, FAIL, f"{len(zero)} of {len(layers.vfs)} without GUID", expected, why, remedy
        )
    unlike = [
        vf.name
        for vf in layers.vfs
        if vf.administration and vf.node_guid and vf.administration.node_guid not in (None, vf.node_guid)
    ]
    if unlike:
        why = (
            "Kernel: the physical function was given other GUIDs since the driver took these VFs:"
            f" {', '.join(unlike[:8])}."
        )
        remedy = "Unbind these VFs from mlx5_core and bind them again."
        return Finding(check, layers.subject, FAIL, f"{len(unlike)} of {len(layers.vfs)} differ", expected, why, remedy)
    reported = {vf.address: vf.guid for vf in layers.reported.vfs if vf.guid} if layers.reported else {}
    stale = [
        vf.name
        for vf in layers.vfs
        if vf.pci and vf.node_guid and not _same(reported.get(vf.pci.address), vf.node_guid)
    ]
    if stale:
        why = (
            f"Config daemon: its report has other GUIDs than the kernel for {', '.join(stale[:8])}; they were changed"
            " since: by hand, by ib-kubernetes, "
        )
        why += "or by a CNI plugin that failed after it had set them and did not give them back."
        remedy = "Run the stage again; if it stays, delete the config daemon's pod on the node, so that it looks again."
        return Finding(check, layers.subject, FAIL, f"{len(stale)} of {len(layers.vfs)} stale", expected, why, remedy)
    if nameless:
        why = (
            "Kernel: these VFs show no RDMA device on the node or in a pod of it, and ip link shows no GUID of theirs:"
            f" {', '.join(nameless[:8])}."
        )
        return Finding(
            check,
            layers.subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "See the finding virtual_functions.rdma_device of this function.",
        )
    return ok(check, layers.subject, measured, expected)


def _guid(vf: Hca) -> typing.Optional[str]:
    """GUID of a VF: of its RDMA device, else of its interface in a pod, else what the physical function has set; None
    where none of them is seen."""
    if vf.node_guid is not None or vf.rdma_device is not None:
        return vf.node_guid
    parts = vf.held
    shown = (parts.node_guid, *(netdev.port_guid for netdev in parts.netdevs)) if parts else ()
    set_for = (vf.administration.node_guid, vf.administration.port_guid) if vf.administration else ()
    return next((guid for guid in (*shown, *set_for) if guid is not None), None)


def _same(reported: typing.Optional[str], guid: str) -> bool:
    """Return whether the report means this GUID, or none. It writes the bytes the wrong way round [src
    vishvananda/netlink rdma_link_linux.go; sample k8snetworkplumbingwg/sriov-network-operator issue 1046]."""
    if reported is None:
        return True
    octets = reported.lower().split(":")
    return guid in ("0x" + "".join(octets), "0x" + "".join(reversed(octets)))


def check_duplicate_guids(nodes: typing.Mapping[str, NodeHcas]) -> list[Finding]:
    """Find VFs that have the GUID of another function, anywhere in the fleet. Duplicates among physical functions are
    stage discover's business."""
    owners: dict[str, dict[str, bool]] = {}
    for name, node in nodes.items():
        for hca in node.hcas:
            infiniband = any(port.link_layer == "InfiniBand" for port in hca.all_ports) or (
                hca.pci is not None and hca.pci.device_class == "0207"
            )
            if infiniband:
                for guid in (_guid(hca), *(port.guid for port in hca.all_ports)):
                    if guid is not None and guid not in _NO_GUIDS:
                        owners.setdefault(guid, {})[f"{name} {hca.name}"] = hca.is_virtual
    findings = []
    for guid, functions in sorted(owners.items()):
        if len(functions) > 1 and any(functions.values()):
            why = (
                f"Config daemon: it was given, or made up, one GUID for {', '.join(list(functions)[:8])}. The subnet"
                " manager can't tell them apart."
            )
            remedy = "Give each node its own /etc/sriov-operator/infiniband/guids, or none; then make the VFs anew."
            findings.append(
                Finding("virtual_functions.guids", guid, FAIL, f"{len(functions)} functions", "1 function", why, remedy)
            )
    virtual = [guid for guid, functions in owners.items() if any(functions.values())]
    if virtual and not findings:
        findings.append(
            ok("virtual_functions.guids", "all nodes", f"{len(virtual)} GUIDs of VFs, all different", "all different")
        )
    return findings
