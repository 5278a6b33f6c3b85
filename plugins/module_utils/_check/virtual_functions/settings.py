# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the settings of VFs in each layer: MTU, link state, and the settings of the network for the VF of a pod. Part
of stage virtual_functions.

Each cause begins with the layer that is wrong: Intent, Operator (its desired state of the node), Config daemon (its
work and its report), Kernel (sysfs), CNI plugin, Subnet manager. A setting that a layer does not show is reported as
unknown.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.fleet.mtus import find_usual_mtus, list_other_nodes
from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.node.hca import Hca, ObservedHcas, VfAdministration
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .function_reports import FunctionReports
from .guids import NO_GUIDS, find_guid

#: the value in sysfs that the CNI plugin writes for a link state of the network
_POLICIES = {"auto": "Follow", "enable": "Up", "disable": "Down"}


def compare_mtus(fabric: Fabric, functions: typing.Iterable[FunctionReports]) -> typing.Iterator[Finding]:
    """Report the nodes whose free virtual functions have another MTU than those of the other nodes, where the intent
    names none."""
    nodes: dict[str, set[int]] = {}
    for layers in functions:
        mtus = {netdev.mtu for vf in layers.vfs for netdev in vf.netdevs}
        nodes.setdefault(layers.node, set()).update(mtu for mtu in mtus if mtu is not None)
    usual = find_usual_mtus(nodes)
    if fabric.mtu is not None or usual is None:
        return
    for node, others in list_other_nodes(nodes, usual).items():
        why = (
            "Kernel: the virtual functions of this node have another MTU than those of the other nodes, and the intent"
            " does not say which one is meant. Packets that are larger than the smaller MTU are dropped in silence."
        )
        remedy = f"Set mtu of fabric '{fabric.name}' in the intent, and run the stages network and virtual_functions."
        yield Finding(
            "virtual_functions.mtu",
            f"{fabric.name} {node} MTU",
            UNKNOWN,
            folded(sorted(map(str, others)), 4),
            f"{folded(sorted(map(str, usual)), 4)}, as most nodes have",
            why,
            remedy,
        )


def check_mtu(layers: FunctionReports) -> Finding:
    """Check that the physical function and its VFs have the MTU of the intent. Without an MTU in the intent, check that
    the kernel, the report and the desired state of the operator agree.
    """
    check, wanted, reported = "virtual_functions.mtu", layers.fabric.mtu, layers.reported
    own, others = _find_mtu(layers.hca), {vf.name: _find_mtu(vf) for vf in layers.vfs if vf.all_netdevs}
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
    # an MTU that changes at the daemon's next sync or the node's next boot is wrong; the daemon itself only raises an
    # MTU
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


def _find_mtu(hca: Hca) -> typing.Optional[int]:
    return max((netdev.mtu for netdev in hca.all_netdevs if netdev.mtu is not None), default=None)


def _check_seen(check: str, layers: FunctionReports, measured: str, expected: str, what: str) -> Finding:
    """Return a pass if the network interface of each VF was found on the node or in a pod. If some were not found,
    return a warning; if none was, return a finding of status unknown.

    :param what: property of the VFs that can't be checked without the interface
    """
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


def check_link_state(layers: FunctionReports) -> typing.Optional[Finding]:
    """Check that the links of the VFs can come up. Return None on Ethernet if the intent sets no link state and the
    driver shows none.

    The CNI plugin sets the link state when a pod gets the VF, and only if the network specifies one. Until then an
    InfiniBand VF has the default of the driver, which is down [src ib-sriov-cni pkg/sriov/sriov.go].
    """
    check, wanted = "virtual_functions.link_state", layers.fabric.network.link_state
    policies = {
        vf.name: vf.administration.link_policy
        for vf in layers.vfs
        if vf.administration and vf.administration.link_policy
    }
    states = {vf.name: port.state for vf in layers.vfs for port in vf.all_ports[:1] if port.state is not None}
    counted = _spell_counts(policies.values()) or "not shown by the driver"
    measured = f"policy {counted}" + (
        f", ports {_spell_counts(value or '' for value in states.values())}" if states else ""
    )
    expected = f"link_state {wanted}, set when a pod takes the VF" if wanted else "links that come up by themselves"
    unserved = [vf.name for vf in layers.vfs if _is_unserved(layers.hca, vf)]
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
    held = {vf.name for vf in layers.in_pods} - {vf.name for vf in _list_idle(layers)}
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
    """Report VFs whose interface is in a network namespace without processes, so that no pod uses it. Return None if
    there are none.
    """
    lost = [(vf.name, vf.held.idle or "") for vf in _list_idle(layers) if vf.held]
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


def _list_idle(layers: FunctionReports) -> list[Hca]:
    return [vf for vf in layers.vfs if vf.held and vf.held.idle]


def _is_unserved(physical: Hca, vf: Hca) -> bool:
    """Return whether only the subnet manager keeps the port of a VF from becoming active: the VF has GUIDs and its link
    is up, and a port of the HCA is active.

    [k8s-rdma-sriov-dev-plugin issue 26: DOWN, LinkUp; Mellanox/network-operator issue 249: the same, base LID 65535]

    :param physical: physical function of the VF
    """
    ports = [port for port in vf.all_ports if port.link_layer == "InfiniBand"]
    if not ports or not any(port.state == "ACTIVE" for port in physical.all_ports):
        return False
    if find_guid(vf) in (None, *NO_GUIDS) or ports[0].guid in NO_GUIDS:
        return False
    policy = vf.administration.link_policy if vf.administration else None
    # where the policy is not shown, the link of a port that is DOWN may be disabled
    waits = ("INIT", "ARMED") if policy is None else ("DOWN", "INIT", "ARMED")
    return policy != "Down" and ports[0].physical_state == "LinkUp" and ports[0].state in waits


def _spell_counts(values: typing.Iterable[str]) -> str:
    """Return each value with the number of its occurrences as text, such as ``4 Down, 4 Up``."""
    return folded([f"{count} {value}" for value, count in sorted(collections.Counter(values).items())], 8)


def check_settings(
    fabric: Fabric, node: str, pods: typing.Sequence[RdmaPod], held: ObservedHcas, others: typing.Sequence[Hca] = ()
) -> Finding:
    """Check that the VFs in the collection's own pods on a node have the settings of the network.

    The CNI plugin applies the settings when a pod gets the VF and resets them when the pod ends, so a VF without a pod
    proves nothing. [sriov-cni pkg/sriov/sriov.go ApplyVFConfig, ResetVFConfig]

    :param held: answer of node_info while the pods had the VFs
    :param others: VFs of the fabric in other pods. A VF with these settings proves them too. A VF without them may be
        on another network
    """
    wanted = fabric.network.vf_settings
    check, subject, expected = "virtual_functions.settings", f"{fabric.name} {node}", _spell_settings(wanted)
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
    measured = "; ".join(f"{name}: {_spell_settings(values)}" for name, values in shown.items())
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


def _spell_settings(values: typing.Mapping[str, typing.Union[int, bool, None]]) -> str:
    """Return settings as text, such as ``vlan 100, trust on``."""
    return ", ".join(f"{name} {_spell_value(value)}" for name, value in values.items())


def _spell_value(value: typing.Union[int, bool, None]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not shown" if value is None else str(value)
