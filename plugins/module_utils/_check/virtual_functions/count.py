# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the number of VFs of a physical function. If it is wrong, find the layer that causes it: intent, operator,
config daemon or kernel. Check id: ``virtual_functions.count``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.sync_errors import explain
from ..._analysis.fleet import vendors, why_no_sriov
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok
from .function_reports import FunctionReports


def check_count(layers: FunctionReports) -> Finding:
    wanted, in_kernel, desired, reported = (
        layers.fabric.virtual_functions,
        len(layers.vfs),
        layers.desired,
        layers.reported,
    )
    measured = (
        f"sysfs {in_kernel}, operator reports {reported.vfs_count if reported else 'nothing'}, operator wants"
        f" {desired.vfs_count if desired else 'nothing'}"
    )
    expected = f"{wanted} in each"
    if layers.unread:
        why = f"The kernel has {in_kernel}; whether the operator agrees is not known: {layers.unread}."
        return Finding(
            "virtual_functions.count",
            layers.subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Check the kubeconfig and the user's rights.",
        )
    if in_kernel == wanted and all(layer is not None and layer.vfs_count == wanted for layer in (reported, desired)):
        return ok("virtual_functions.count", layers.subject, measured, expected)
    why, remedy = _find_wrong_layer(
        layers, in_kernel, desired.vfs_count if desired else None, reported.vfs_count if reported else None
    )
    return Finding("virtual_functions.count", layers.subject, FAIL, measured, expected, why, remedy)


def _find_wrong_layer(
    layers: FunctionReports, in_kernel: int, desired: typing.Optional[int], reported: typing.Optional[int]
) -> tuple[str, str]:
    """Return the cause and the remedy of a wrong number of VFs: of the first layer, from the intent down to the kernel,
    whose number is wrong.

    :param in_kernel: number of VFs in sysfs
    :param desired: number that the operator requests; None if it requests none
    :param reported: number that the config daemon reports; None if it does not
    """
    wanted, sriov = layers.fabric.virtual_functions, layers.hca.sriov
    if sriov is None:
        return why_no_sriov.why(layers.hca)
    if sriov.total is None:
        return (
            "Kernel: sriov_totalvfs is there and could not be read.",
            f"Read it on {layers.node} by hand; see dmesg for this function.",
        )
    if sriov.total < wanted:
        return (
            f"Intent or firmware: the function has {sriov.total} virtual functions at most.",
            f"{vendors.more_functions(layers.hca)} Or lower virtual_functions to {sriov.total}.",
        )
    if layers.state is None:
        return (
            "Operator: it has no SriovNetworkNodeState for the node.",
            "See the findings operators.daemon and operators.label.",
        )
    if reported is None:
        return (
            "Config daemon: it does not report this function, which the kernel shows.",
            (
                "Add the NIC to the operator's list of supported NICs (ConfigMap supported-nic-ids) if it is not there,"
                " and read the config daemon's log."
            ),
        )
    if desired is None:
        return (
            "Operator: no policy reaches this function.",
            (
                "See network.policy_accepted: the API server must take the policy, and the policy must select this"
                " function."
            ),
        )
    if desired != wanted:
        return (
            f"Operator: it wants {desired} on this function, so another policy decides, or ours is not seen yet.",
            "Compare the policies' priority and nicSelector.",
        )
    if sriov.current == wanted and in_kernel != wanted:
        return (
            (
                f"Kernel: sriov_numvfs is {wanted}, and {in_kernel} functions are there: the others were removed from"
                " the PCI bus, or just come up."
            ),
            "Run the stage again; if it stays, see dmesg, and rescan the bus (echo 1 > /sys/bus/pci/rescan).",
        )
    if in_kernel != wanted and reported == wanted:
        return (
            "Config daemon: its report is not what the kernel shows; something changed the functions since.",
            "Delete the config daemon's pod on the node, so that it looks again.",
        )
    if in_kernel != wanted:
        known = explain(layers.state.last_sync_error)
        return (
            f"Config daemon: it was told {desired} and has not made them." + (f" {known[0]}" if known else ""),
            (
                f"{known[1] if known else 'Read the log of the config daemon.'} Last error:"
                f" {layers.state.last_sync_error or 'none'}."
            ),
        )
    return (
        "Config daemon: the kernel has them, its report is old.",
        "Run the stage again; if it stays, see the config daemon's log.",
    )
