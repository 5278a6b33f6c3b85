# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the settings of VFs in each layer: MTU, and the settings of the network for the VF of a pod. Part of stage
virtual_functions.

Each cause names the component that is wrong: the intent, the operator (its desired state of the node), the config
daemon (its work and its report), the kernel (sysfs), the CNI plugin, the subnet manager. A setting that a component
does not show is reported as unknown.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.mtus import find_usual_mtus, list_other_nodes
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.kubernetes.measuring import BY_LIMIT
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.node.hca import Hca, ObservedHcas, VfAdministration
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .function_reports import FunctionReports
from .ip_link import format_mtu_command, name_interface


def compare_mtus(fabric: Fabric, functions: typing.Iterable[FunctionReports]) -> typing.Iterator[Finding]:
    """Compare the MTU of the VFs without pods between nodes, and yield findings of status ``unknown`` on the nodes
    whose MTU differs from that of most nodes. Yield nothing if the intent sets an MTU, which another check compares.

    :param functions: reports on the physical functions of the fabric on all nodes
    """
    nodes: dict[str, set[int]] = {}
    for layers in functions:
        mtus = {netdev.mtu for vf in layers.vfs for netdev in vf.netdevs}
        nodes.setdefault(layers.node, set()).update(mtu for mtu in mtus if mtu is not None)
    usual = find_usual_mtus(nodes)
    if fabric.mtu is not None or usual is None:
        return
    for node, others in list_other_nodes(nodes, usual).items():
        why = (
            "The VFs of this node have another MTU than those of most nodes, because the intent sets no MTU and"
            " the VFs keep that of their physical function. Packets that are larger than the smaller MTU are"
            " dropped without an error."
        )
        remedy = (
            f"Set mtu of fabric '{fabric.name}' in the intent, then run stages network and virtual_functions again."
        )
        yield Finding(
            "virtual_functions.mtu",
            f"{fabric.name} {node} MTU",
            UNKNOWN,
            f"MTU {join_first(sorted(map(str, others)), 4)} of the free VFs",
            f"MTU {join_first(sorted(map(str, usual)), 4)}, as on most nodes",
            why,
            remedy,
        )


def check_mtu(layers: FunctionReports) -> Finding:
    """Check that the physical function and its VFs have the MTU of the intent. Without an MTU in the intent, check that
    the kernel, the report and the desired state of the operator agree.

    :param layers: reports of kernel, operator and config daemon on the physical function
    """
    check, wanted, reported = "virtual_functions.mtu", layers.fabric.mtu, layers.reported
    own, others = _find_mtu(layers.hca), {vf.name: _find_mtu(vf) for vf in layers.vfs if vf.all_netdevs}
    shown = join_first(sorted({str(value or "not read") for value in others.values()}), 8) or "not read"
    # the names of VFs without an interface follow at the end
    of_vfs = "" if layers.hidden and not others else f", of its VFs {shown}"
    measured = (
        f"MTU of the physical function {own or 'not read'}{of_vfs}, in the report of the config daemon"
        f" {reported.mtu if reported and reported.mtu else 'none'}"
    )
    expected = f"MTU {wanted} for all of them" if wanted else "one MTU for all of them"
    if own is None:
        why = (
            "The physical function has no network interface on the node. The interface is in a pod or in another"
            " network namespace, or its driver is not loaded."
        )
        remedy = (
            f"On {layers.node}, load the driver of the interface: modprobe ib_ipoib."
            if is_infiniband(layers.fabric)
            else ""
        )
        remedy = (
            f"{remedy} On {layers.node}, run ip link, and search other network namespaces with lsns -t net and"
            f" nsenter -t PID -n ip link. If a pod or a network namespace has the interface of {layers.hca.name},"
            " end it: the kernel then returns the interface. If none has it, correct the error of its driver in"
            " dmesg. Then run stage virtual_functions again."
        ).strip()
        return Finding(check, layers.subject, UNKNOWN if wanted else WARN, measured, expected, why, remedy)
    if reported is not None and reported.mtu and reported.mtu != own:
        why = "The MTU of the physical function was changed after the config daemon reported it."
        command = f"ip link set {name_interface(layers.hca)} mtu {wanted}"
        set_back = f"Run on {layers.node}, as root: {command}. " if wanted and own != wanted else ""
        remedy = (
            f"{set_back}Run stage virtual_functions again. If the finding remains, delete the pod of the config"
            f" daemon on {layers.node}, so that it reports the MTU again: kubectl delete pod -A -l"
            f" app=sriov-network-config-daemon --field-selector spec.nodeName={layers.node}. Then run the stage"
            " once more."
        )
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    desired = layers.desired.mtu if layers.desired else 0
    # an MTU that changes at the daemon's next sync or the node's next boot is wrong; the daemon itself only raises an
    # MTU
    if own >= (wanted or 0) and layers.desired is not None and (desired > own or desired < (wanted or 0)):
        why = (
            "The operator will raise the MTU at its next sync, while pods use the function."
            if desired > own
            else "The operator will not restore this MTU after the next boot of the node."
        )
        remedy = (
            "Compare mtu of all policies that select this function: kubectl get sriovnetworknodepolicies -A -o yaml."
            " If a policy of another owner selects the function, ask the owner to change it. Then run stages network"
            " and virtual_functions again."
        )
        measured = f"{measured}, requested by the operator {desired or 'none'}"
        return Finding(check, layers.subject, FAIL, measured, f"{expected}, also requested", why, remedy)
    if wanted is None:
        return _compare_with_physical(check, layers, own, measured, expected)
    in_pods = {vf.name for vf in layers.in_pods}
    wrong = [name for name, value in others.items() if value != wanted and name not in in_pods]
    smaller = [name for name, value in others.items() if value != wanted and name in in_pods]
    if own >= wanted and smaller and not wrong:
        why = (
            f"{count_of(len(smaller), 'VF in a pod has', 'VFs in pods have')} a different MTU:"
            f" {join_first(smaller, 8)}. The CNI plugin sets the MTU that the network of the pod names. Free VFs have"
            " the correct MTU."
        )
        remedy = (
            "Compare mtu in the NetworkAttachmentDefinition of these pods with mtu of the fabric"
            f" '{layers.fabric.name}'. Correct it and recreate the pods, which keep their MTU until then. Then run"
            " stage virtual_functions again."
        )
        return Finding(check, layers.subject, WARN, measured, expected, why, remedy)
    if own >= wanted and not wrong:
        return _check_seen(check, layers, measured, expected)
    if desired != wanted:
        why, remedy = (
            f"The operator requests {f'the MTU {desired}' if desired else 'no MTU'} for this function, not {wanted}.",
            "Compare mtu of all policies that select this function: kubectl get sriovnetworknodepolicies -A -o yaml."
            " If a policy of another owner selects the function, ask the owner to change it. Then run stages network"
            " and virtual_functions again.",
        )
    elif own < wanted:
        why, remedy = (
            f"The operator requests the MTU {desired}, and the config daemon has not set it.",
            f"Read the log of the config daemon on {layers.node} (kubectl get pods -A -l"
            f" app=sriov-network-config-daemon --field-selector spec.nodeName={layers.node} lists its pod for"
            " kubectl logs): it contains the error of the driver for this MTU. Correct the error, then run"
            " stages network and virtual_functions again.",
        )
    else:
        if all(others[name] is None for name in wrong):
            why = f"The MTU of {count_of(len(wrong), 'VF')} could not be read from sysfs: {join_first(wrong, 8)}."
            remedy = (
                f"Run ip link show on {layers.node} as root. If a VF has another MTU than {wanted}, run ip link"
                f" set dev INTERFACE mtu {wanted} there. Then run stage virtual_functions again."
            )
            return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
        why = f"{count_of(len(wrong), 'VF keeps', 'VFs keep')} the MTU that the last pod set: {join_first(wrong, 8)}."
        remedy = (
            f"Run on {layers.node}, as root:"
            f" {format_mtu_command((vf for vf in layers.vfs if vf.name in wrong), wanted)}. Then run stage"
            " virtual_functions again."
        )
    return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)


def _compare_with_physical(check: str, layers: FunctionReports, own: int, measured: str, expected: str) -> Finding:
    """Compare the MTU of the free VFs with that of their physical function, for an intent without an MTU. Another MTU
    is a warning on Ethernet, where the MTU of the interface limits the packets of RDMA too. On InfiniBand, the subnet
    manager limits them.

    :param check: check id of the finding
    :param layers: reports of kernel, operator and config daemon on the physical function
    :param own: MTU of the physical function, in bytes
    :param measured: MTUs of the interfaces that were found, as text
    :param expected: expected MTU, as text
    """
    free = {vf.name: _find_mtu(vf) for vf in layers.vfs if vf.netdevs}
    others = [name for name, value in free.items() if value not in (None, own)]
    if is_infiniband(layers.fabric) or not others:
        return build_pass(check, layers.subject, measured, expected)
    why = (
        f"{count_of(len(others), 'free VF has', 'free VFs have')} another MTU than the physical function:"
        f" {join_first(others, 8)}. The intent specifies no MTU, so the operator sets none, and a VF starts with the"
        " MTU of its driver. The MTU of the VF limits the packets of the pods."
    )
    remedy = (
        f"Set mtu of fabric '{layers.fabric.name}' in the intent to the MTU of the network, then run stages network and"
        " virtual_functions again."
    )
    return Finding(check, layers.subject, WARN, measured, expected, why, remedy)


def _find_mtu(hca: Hca) -> typing.Optional[int]:
    return max((netdev.mtu for netdev in hca.all_netdevs if netdev.mtu is not None), default=None)


def _check_seen(check: str, layers: FunctionReports, measured: str, expected: str) -> Finding:
    """Return a pass if the network interface of each VF was found on the node or in a pod. If some were not found,
    return a warning; if none was, return a finding of status unknown.

    :param check: check id of the finding
    :param layers: reports of kernel, operator and config daemon on the physical function
    :param measured: MTUs of the interfaces that were found, as text
    :param expected: expected MTU, as text
    """
    hidden = layers.hidden
    if not hidden:
        return build_pass(check, layers.subject, measured, expected)
    why = (
        "These VFs show no network interface, neither on the node nor in a pod on the node, so their MTU could not be"
        " read."
    )
    remedy = (
        "Run stage virtual_functions again: a pod that started during the run can have these VFs. If the finding"
        f" remains, run lspci -k on {layers.node}, and load the driver (modprobe) of a VF for which it shows no"
        " 'Kernel driver in use'. Then run the stage once more."
    )
    names = join_first([vf.name for vf in hidden], 8)
    measured = f"{measured}; MTU of {count_of(len(hidden), 'VF')} not read: {names}"
    return Finding(
        check, layers.subject, UNKNOWN if len(hidden) == len(layers.vfs) else WARN, measured, expected, why, remedy
    )


def check_settings(
    fabric: Fabric, node: str, pods: typing.Sequence[RdmaPod], held: ObservedHcas, others: typing.Sequence[Hca] = ()
) -> Finding:
    """Check that the VFs in the collection's own pods on a node have the settings that the network sets on VFs
    (``vf_settings``).

    The CNI plugin applies the settings when a pod gets the VF and resets them when the pod ends, so a VF without a pod
    proves nothing. [sriov-cni pkg/sriov/sriov.go ApplyVFConfig, ResetVFConfig]

    :param node: name of the node
    :param pods: pods of the collection on the fabric
    :param held: HCAs that node_info read while the pods had the VFs, or the error
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
        return build_pass(
            check, subject, f"{join_first([vf.name for vf in alike])} in other pods: {expected}", expected
        )
    if not taken:
        why, remedy = _explain_missing_pod(node, pods, held)
        return Finding(check, subject, UNKNOWN, "not read", expected, why, remedy)
    shown = {vf.name: {name: getattr(vf.administration or VfAdministration(), name) for name in wanted} for vf in taken}
    measured = "; ".join(f"{name}: {_spell_settings(values)}" for name, values in shown.items())
    if all(values == wanted for values in shown.values()):
        return build_pass(check, subject, measured, expected)
    if any(value not in (None, wanted[name]) for values in shown.values() for name, value in values.items()):
        why = (
            f"The CNI plugin has given the VF to a pod with other settings. The NetworkAttachmentDefinition"
            f" '{fabric.network.name}' contains other values, or the settings were changed on the node later."
        )
        remedy = (
            f"Run kubectl get network-attachment-definitions -A -o yaml, and compare '{fabric.network.name}' with"
            f" network of the fabric '{fabric.name}'. If it differs, run stage network again. Then run stage"
            " virtual_functions again."
        )
        return Finding(check, subject, FAIL, measured, expected, why, remedy)
    why = (
        "ip link on the node does not show these settings of the VF, so they were not verified: the driver does"
        " not report them, or iproute2 is not installed."
    )
    return Finding(
        check,
        subject,
        UNKNOWN,
        measured,
        expected,
        why,
        f"Run ip link show on {node} as root. If the command is missing, install iproute2 on"
        f" {node}, then run stage virtual_functions again. If it does not list the settings, the driver"
        " does not report them: waive this finding.",
    )


def _explain_missing_pod(node: str, pods: typing.Sequence[RdmaPod], held: ObservedHcas) -> tuple[str, str]:
    """Return the cause and the remedy for a node on which no VF was observed in a pod.

    :param node: name of the node
    :param pods: pods that the stage has created on the node
    :param held: HCAs that node_info read while these pods ran, or the error
    """
    tested = "The CNI plugin applies these settings when a pod gets a VF, so the stage creates a pod on each node."
    error = next((pod.error for pod in pods if pod.error), None)
    if any(pod.cause == BY_LIMIT for pod in pods):
        return (
            f"{tested} It created no pod on this node, because --limit excluded the node.",
            f"Run stage virtual_functions again, with {node} in --limit or without --limit.",
        )
    if error:
        return (
            f"{tested} This pod did not start: {format_clause(error)}.",
            f"Correct the error under 'why'. If other pods hold all VFs of {node} (kubectl describe node {node}),"
            " end one of them. Then run stage virtual_functions again.",
        )
    if held.error:
        return (
            f"{tested} The node was not read while the pod ran: {format_clause(held.error)}.",
            (
                f"Run ansible {node} --become -m linerate.rdma.node_info to see the error again, and correct it. Then"
                " run stage virtual_functions again."
            ),
        )
    if not pods:
        return (
            f"{tested} It created no pod on this node.",
            f"Check that {node} is Ready and schedulable (kubectl get node {node}), then run stage virtual_functions"
            " again.",
        )
    return (
        f"{tested} The node does not show the VF of this pod.",
        f"Run ip -d link show on {node} as root while a pod of this network runs there. Then run stage"
        " virtual_functions again.",
    )


def _spell_settings(values: typing.Mapping[str, typing.Union[int, bool, None]]) -> str:
    """Return settings as text, such as ``vlan 100, trust on``.

    :param values: value by name of the setting; None if unknown
    """
    return ", ".join(f"{name} {_spell_value(value)}" for name, value in values.items())


def _spell_value(value: typing.Union[int, bool, None]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not shown" if value is None else str(value)
