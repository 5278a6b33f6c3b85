# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the number of VFs of a physical function. If it is wrong, find the layer that causes it: intent, operator,
config daemon or kernel. Check id: ``virtual_functions.count``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.sriov.sync_errors import explain
from ..._analysis.fleet import vendors, why_no_sriov
from ..._model.base.marks import INTENT_LABEL
from ..._model.base.phrases import count_of, format_clause
from ..._model.run.findings import FAIL, Finding, build_pass
from . import unread
from .function_reports import FunctionReports


def _read_log(node: str) -> str:
    """Return the instruction to read the log of the config daemon on a node.

    :param node: name of the node
    """
    return (
        f"Read the log of the config daemon on {node} (kubectl get pods -A -l app=sriov-network-config-daemon"
        f" --field-selector spec.nodeName={node} lists its pod for kubectl logs), and correct the error in it."
    )


def check_count(layers: FunctionReports) -> Finding:
    wanted, in_kernel, desired, reported = (
        layers.fabric.virtual_functions,
        len(layers.vfs),
        layers.desired,
        layers.reported,
    )
    measured = (
        f"VFs in sysfs: {in_kernel}, reported by the config daemon: {reported.vfs_count if reported else 'none'},"
        f" requested by the operator: {desired.vfs_count if desired else 'none'}"
    )
    expected = f"{count_of(wanted, 'VF')} in sysfs, reported and requested"
    if layers.unread:
        measured = f"VFs in sysfs: {in_kernel}, reported by the config daemon and requested by the operator: not read"
        return unread.report_unread("virtual_functions.count", layers.subject, layers.unread, measured, expected)
    if in_kernel == wanted and all(layer is not None and layer.vfs_count == wanted for layer in (reported, desired)):
        return build_pass("virtual_functions.count", layers.subject, measured, expected)
    why, remedy = _find_wrong_layer(
        layers, in_kernel, desired.vfs_count if desired else None, reported.vfs_count if reported else None
    )
    return Finding("virtual_functions.count", layers.subject, FAIL, measured, expected, why, remedy)


def _find_wrong_layer(
    layers: FunctionReports, in_kernel: int, desired: typing.Optional[int], reported: typing.Optional[int]
) -> tuple[str, str]:
    """Return the cause and the remedy of a wrong number of VFs: of the first layer, from the intent down to the kernel,
    whose number is wrong.

    :param layers: reports of kernel, operator and config daemon on the physical function
    :param in_kernel: number of VFs in sysfs
    :param desired: number that the operator requests; None if it requests no VFs for the function
    :param reported: number that the config daemon reports; None if it does not report the function
    """
    wanted, sriov = layers.fabric.virtual_functions, layers.hca.sriov
    if sriov is None:
        cause, remedy = why_no_sriov.explain_no_sriov(layers.hca)
        return cause, f"{remedy} Then run stages platform, network and virtual_functions again."
    if sriov.total is None:
        return (
            (
                "The file sriov_totalvfs of the physical function exists, but reading it failed. So the largest"
                " possible number of VFs is not known."
            ),
            f"Run cat /sys/bus/pci/devices/{layers.address}/sriov_totalvfs as root on {layers.node}, and search dmesg"
            " for errors of this function. Correct the error, then run stage virtual_functions again.",
        )
    if sriov.total < wanted:
        return (
            f"The firmware of the function allows at most {count_of(sriov.total, 'virtual function')}"
            " (sriov_totalvfs).",
            f"{vendors.more_functions(layers.hca)} Or lower virtual_functions of the fabric '{layers.fabric.name}' to"
            f" {sriov.total}. Then run stages network and virtual_functions again.",
        )
    if layers.state is None:
        return (
            "The node has no SriovNetworkNodeState. The SR-IOV operator creates one for each node on which its"
            " config daemon must run, and without it the config daemon creates no VFs.",
            "Run stage operators. Its finding operators.label of this node shows a missing label, and operators.daemon"
            " a missing pod of the config daemon. Correct them, then run stages network and virtual_functions again.",
        )
    if reported is None:
        return (
            "The config daemon does not report this physical function, although the kernel shows it. The config"
            " daemon ignores NICs that are not in the operator's list of supported NICs.",
            f"Run lspci -nn{f' -s {layers.address}' if layers.address else ''} on {layers.node}, and kubectl get"
            " configmaps -A --field-selector metadata.name=supported-nic-ids -o yaml. If the ConfigMap lacks the"
            " vendor and device ID of the NIC, add them. Otherwise correct the error in the log of the config"
            " daemon (kubectl get pods -A -l app=sriov-network-config-daemon --field-selector"
            f" spec.nodeName={layers.node} lists its pod for kubectl logs). Then run stage virtual_functions"
            " again.",
        )
    if desired is None:
        return (
            "No SriovNetworkNodePolicy selects this physical function, so the operator requests no VFs for it.",
            "Run stage network again: its finding network.policy_accepted shows whether the policy exists. If it"
            " passes, correct nicSelector or nodeSelector of the policy so that it selects this function: kubectl"
            " get sriovnetworknodepolicies -A -o yaml. Then run stage virtual_functions again.",
        )
    if desired != wanted:
        return (
            f"The operator requests {count_of(desired, 'VF')} for this function, and the fabric"
            f" '{layers.fabric.name}' requires {wanted}. If several policies select a function, the one with the lowest"
            " number in spec.priority decides.",
            "Compare numVfs, priority and nicSelector of the policies: kubectl get sriovnetworknodepolicies -A -o yaml."
            f" If another policy selects the function, ask its owner to change it: the label {INTENT_LABEL} names its"
            " intent. If only the policy of the fabric selects the function, the operator has not processed it yet, or"
            " the policy has not been applied. Then run stages network and virtual_functions again.",
        )
    if sriov.current == wanted and in_kernel != wanted:
        absent = count_of(wanted - in_kernel, "of these VFs is", "of these VFs are")
        return (
            f"The kernel has created {count_of(wanted, 'VF')} (sriov_numvfs)."
            + (
                f" {absent} not on the PCI bus: removed from the bus later, or still starting."
                if in_kernel < wanted
                else f" The PCI bus shows {in_kernel}: VFs were created or removed while the node was read."
            ),
            (
                f"Run stage virtual_functions again. If the finding remains, rescan the PCI bus on {layers.node}"
                " as root: echo 1 > /sys/bus/pci/rescan. If a VF still does not appear, correct the error that"
                " dmesg shows, and run the stage once more."
            ),
        )
    if in_kernel != wanted and reported == wanted:
        return (
            "The VFs were removed or created after the config daemon reported them, and not by the config daemon.",
            f"Delete the pod of the config daemon on {layers.node}, so that it creates and reports the VFs again:"
            " kubectl delete pod -A -l app=sriov-network-config-daemon --field-selector"
            f" spec.nodeName={layers.node}. Then run stage virtual_functions again.",
        )
    if in_kernel != wanted:
        known, error = explain(layers.state.last_sync_error), layers.state.last_sync_error
        reason = f" Its last error: {format_clause(error)}." if error else " It reports no error."
        return (
            f"The config daemon has not created the VFs.{reason}{f' {known[0]}' if known else ''}",
            f"{known[1] if known else _read_log(layers.node)} Then run stages network and virtual_functions again.",
        )
    log = _read_log(layers.node)
    return (
        "The config daemon has not yet reported the VFs that the kernel has now.",
        f"Run stage virtual_functions again. If the finding remains, {log[:1].lower()}{log[1:]} Then run the stage once"
        " more.",
    )
