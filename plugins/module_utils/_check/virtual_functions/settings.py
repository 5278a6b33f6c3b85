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
from ..._model.base.phrases import clause
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
            "Kernel: the MTU of the virtual functions of this node differs from the MTU on the other nodes, and the"
            " intent does not specify an MTU. Packets that are larger than the smaller MTU are dropped without an"
            " error."
        )
        remedy = (
            f"Set mtu of fabric '{fabric.name}' in the intent, then run stages network and virtual_functions again."
        )
        yield Finding(
            "virtual_functions.mtu",
            f"{fabric.name} {node} MTU",
            UNKNOWN,
            folded(sorted(map(str, others)), 4),
            f"{folded(sorted(map(str, usual)), 4)}, as on most nodes",
            why,
            remedy,
        )


def check_mtu(layers: FunctionReports) -> Finding:
    """Check that the physical function and its VFs have the MTU of the intent. Without an MTU in the intent, check that
    the kernel, the report and the desired state of the operator agree.
    """
    check, wanted, reported = "virtual_functions.mtu", layers.fabric.mtu, layers.reported
    own, others = _find_mtu(layers.hca), {vf.name: _find_mtu(vf) for vf in layers.vfs if vf.all_netdevs}
    shown = folded(sorted({str(value or "unknown") for value in others.values()}), 8) or "not seen"
    measured = f"PF {own or 'not seen'}, VFs {shown}, report {reported.mtu if reported and reported.mtu else 'none'}"
    if own is None:
        why = (
            "Kernel: the physical function has no network interface in the network namespace of the node, so its MTU is"
            " unknown."
        )
        remedy = (
            "Search for the interface on the node with ip link, and in other network namespaces with ip netns. On"
            " InfiniBand, load the driver of the interface: modprobe ib_ipoib."
        )
        return Finding(
            check,
            layers.subject,
            UNKNOWN if wanted else WARN,
            measured,
            f"{wanted or 'any MTU, the same'} in each layer",
            why,
            remedy,
        )
    if reported is not None and reported.mtu and reported.mtu != own:
        why = (
            f"Config daemon: it reports an MTU of {reported.mtu}, but the kernel has {own}. The MTU was changed after"
            " the report."
        )
        remedy = (
            "Run stage virtual_functions again. If the finding remains, read the log of the config daemon on the node."
        )
        return Finding(check, layers.subject, FAIL, measured, f"{wanted or own} in each layer", why, remedy)
    desired = layers.desired.mtu if layers.desired else 0
    expected = f"{wanted} in each layer" if wanted else "any MTU, the same in each layer"
    # an MTU that changes at the daemon's next sync or the node's next boot is wrong; the daemon itself only raises an
    # MTU
    if own >= (wanted or 0) and layers.desired is not None and (desired > own or desired < (wanted or 0)):
        what = (
            ("the MTU will change while pods use the function")
            if desired > own
            else "the operator will not restore the MTU after a boot"
        )
        why = f"Operator: it requests {desired or 'no MTU'} for this function, but the kernel has {own}: {what}."
        remedy = (
            "Check which policies select this function: kubectl get sriovnetworknodepolicies -A -o yaml. Correct them,"
            " then run stage network again."
        )
        return Finding(check, layers.subject, FAIL, f"{measured}, requested {desired}", expected, why, remedy)
    if wanted is None:
        return ok(check, layers.subject, measured, expected)
    in_pods = {vf.name for vf in layers.in_pods}
    wrong = [name for name, value in others.items() if value != wanted and name not in in_pods]
    smaller = [name for name, value in others.items() if value != wanted and name in in_pods]
    if own >= wanted and smaller and not wrong:
        why = (
            f"CNI plugin: these VFs are in pods and have a different MTU: {', '.join(smaller[:8])}. The networks of"
            " these pods may set this MTU. Free VFs have the correct MTU."
        )
        remedy = (
            "Compare mtu in the NetworkAttachmentDefinition of these pods with mtu of the fabric"
            f" '{layers.fabric.name}'. Pods keep their MTU until they are recreated."
        )
        return Finding(check, layers.subject, WARN, measured, expected, why, remedy)
    if own >= wanted and not wrong:
        return _check_seen(check, layers, measured, expected, "their MTU")
    if desired != wanted:
        why, remedy = (
            f"Operator: it requests {desired or 'no MTU'} for this function.",
            (
                "See the findings of stage network: the API server must accept the policy of this collection, and no"
                " other policy may select this function."
            ),
        )
    elif own < wanted:
        why, remedy = (
            f"Config daemon: the operator requests {desired}, but the physical function has {own}.",
            "Read the log of the config daemon on the node: it contains the error of the driver for this MTU.",
        )
    else:
        why = (
            f"Kernel: the physical function has the correct MTU, but these VFs do not: {', '.join(wrong[:8])}. A VF"
            " keeps the MTU that its last pod set."
        )
        remedy = (
            "Set the MTU on the node (ip link set ... mtu ...), or delete the pod of the config daemon on the node, so"
            " that the daemon sets the MTU again."
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
        f"Kernel: {len(hidden)} of {len(layers.vfs)} VFs show no network interface on the node or in a pod on the node,"
        f" so {what} is unknown."
    )
    remedy = (
        "If pods are running on this network, no action is needed. Otherwise see the finding virtual_functions.driver."
        " Stage bandwidth tests whether the VFs work."
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
    expected = f"link_state {wanted}, set when a pod gets the VF" if wanted else "links that come up without a setting"
    unserved = [vf.name for vf in layers.vfs if _is_unserved(layers.hca, vf)]
    if unserved:
        why = (
            "Subnet manager: the links of these VFs are up, but the subnet manager does not activate their ports. A"
            f" subnet manager without support for VFs behaves this way: {', '.join(unserved[:8])}."
        )
        remedy = (
            "Enable support for VFs in the master subnet manager: set virt_enabled 2 in its opensm.conf (only the"
            " opensm of NVIDIA's packages has this option), or enable virtualization in UFM or in the switch. If it is"
            " enabled already, search the log of the subnet manager for these GUIDs."
        )
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    down = [name for name in policies or states if (policies or states)[name] in ("Down", "DOWN")]
    if wanted is None:
        if down and is_infiniband(layers.fabric):
            why = (
                "Intent: it does not set network.link_state, so the links of these VFs stay down:"
                f" {', '.join(down[:8])}."
            )
            remedy = (
                f"Set network.link_state: enable in the fabric '{layers.fabric.name}', then run stage network again."
                " The subnet manager must also support VFs (opensm: virt_enabled 2)."
            )
            return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
        disabled = [vf.name for vf in layers.vfs if vf.netdevs and policies.get(vf.name) == "Down"]
        if disabled:
            why = (
                "Kernel: the physical function disables the links of these free VFs, and the intent sets no"
                f" network.link_state, so no CNI plugin enables them: {folded(disabled, 8)}."
            )
            remedy = (
                "Run on the node: ip link set PF vf NUMBER state auto. Then find what disables the links. Or set"
                f" network.link_state: auto in the fabric '{layers.fabric.name}', then run stage network again."
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
            f"CNI plugin: it has not set the link state of these VFs in pods to {wanted}, or the link state was changed"
            " later: "
        )
        why += f"{', '.join(late[:8])}."
        remedy = (
            f"Check that the NetworkAttachmentDefinition '{layers.fabric.network.name}' sets link_state. Recreate the"
            " pods that are older than this setting. "
        )
        remedy += f"To set the link state manually, run on the node: ip link set PF vf NUMBER state {wanted}."
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    if len(policies) == len(layers.vfs):
        return ok(check, layers.subject, measured, expected)
    why = "Kernel: neither sysfs nor ip link shows the link state of these VFs, so it could not be verified."
    remedy = (
        "Run ip link show for the physical function on the node, as root. Stage bandwidth tests whether the links come"
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
        f"Kernel: these VFs are in network namespaces without processes: {names}. A pod that is starting or restarting"
        " may have them. Otherwise a pod crashed and no CNI plugin returned the VFs to the node. The kubelet then"
        " counts the VFs as free, and the next pod that gets one of them fails."
    )
    remedy = (
        "Search for pods that are starting or crashing: kubectl get pods -A -o wide --field-selector"
        f" spec.nodeName={layers.node}. If none of them uses this network, return the VFs to the node with ip netns"
        f" delete {lost[0][1]} on the node. Then run stage virtual_functions again."
    )
    return Finding(
        "virtual_functions.stuck",
        layers.subject,
        WARN,
        f"{len(lost)} of {len(layers.vfs)} VFs",
        "VFs on the node or in running pods",
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
        return ok(check, subject, f"{folded([vf.name for vf in alike])} in other pods: {expected}", expected)
    if not taken:
        reason = (
            next((pod.error for pod in pods if pod.error), held.error)
            or "the node shows no VF of a pod of this collection"
        )
        why = (
            "CNI plugin: it sets these values when a pod gets a virtual function. They could not be verified:"
            f" {clause(reason)}."
        )
        remedy = (
            "Correct the error under 'why', then run stage virtual_functions again."
            if held.error
            else (
                "Read the events of the pods of this collection, and check whether other pods hold all virtual"
                " functions. Then run stage"
                " virtual_functions again."
            )
        )
        return Finding(check, subject, UNKNOWN, "not verified", expected, why, remedy)
    shown = {vf.name: {name: getattr(vf.administration or VfAdministration(), name) for name in wanted} for vf in taken}
    measured = "; ".join(f"{name}: {_spell_settings(values)}" for name, values in shown.items())
    if all(values == wanted for values in shown.values()):
        return ok(check, subject, measured, expected)
    if any(value not in (None, wanted[name]) for values in shown.values() for name, value in values.items()):
        why = "CNI plugin: a pod has the virtual function, but the physical function has different settings for it."
        remedy = (
            f"Check that the NetworkAttachmentDefinition '{fabric.network.name}' contains these settings, and read the"
            " log of multus on the node."
        )
        return Finding(check, subject, FAIL, measured, expected, why, remedy)
    why = (
        "Kernel: ip link does not show all of these settings, because the driver does not report them or the tool is"
        " missing."
    )
    return Finding(
        check,
        subject,
        UNKNOWN,
        measured,
        expected,
        why,
        (
            "Install iproute2 on the node, and run ip link show on it while a pod has the virtual function. Then run"
            " stage virtual_functions again."
        ),
    )


def _spell_settings(values: typing.Mapping[str, typing.Union[int, bool, None]]) -> str:
    """Return settings as text, such as ``vlan 100, trust on``."""
    return ", ".join(f"{name} {_spell_value(value)}" for name, value in values.items())


def _spell_value(value: typing.Union[int, bool, None]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not shown" if value is None else str(value)
