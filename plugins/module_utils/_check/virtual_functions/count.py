# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the number of VFs of a physical function. If it is wrong, find the layer that causes it: intent, operator,
config daemon or kernel. Check id: ``virtual_functions.count``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.sync_errors import explain
from ..._analysis.fleet import vendors, why_no_sriov
from ..._model.base.phrases import clause, count_of
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
        f"sysfs {in_kernel}, operator reports {reported.vfs_count if reported else 'nothing'}, operator requests"
        f" {desired.vfs_count if desired else 'nothing'}"
    )
    expected = f"{wanted} in each layer"
    if layers.unread:
        why = f"The kernel has {in_kernel} VFs. The number that the operator reports is unknown: {layers.unread}."
        return Finding(
            "virtual_functions.count",
            layers.subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Check the kubeconfig and the rights of its user, then run stage virtual_functions again.",
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
            "Kernel: sriov_totalvfs exists but could not be read.",
            (
                f"Read sriov_totalvfs of this function in sysfs on {layers.node}, and check dmesg for errors of this"
                " function."
            ),
        )
    if sriov.total < wanted:
        return (
            f"Intent or firmware: the function supports at most {count_of(sriov.total, 'virtual function')}.",
            f"{vendors.more_functions(layers.hca)} Or lower virtual_functions to {sriov.total}.",
        )
    if layers.state is None:
        return (
            "Operator: the node has no SriovNetworkNodeState.",
            "See the findings operators.daemon and operators.label.",
        )
    if reported is None:
        return (
            "Config daemon: it does not report this function, although the kernel shows it.",
            (
                "Add the NIC to the operator's list of supported NICs (ConfigMap supported-nic-ids) if the NIC is"
                " missing there, and read the log of the config daemon."
            ),
        )
    if desired is None:
        return (
            "Operator: no policy selects this function.",
            (
                "See the finding network.policy_accepted: the API server must accept the policy, and the policy must"
                " select this function."
            ),
        )
    if desired != wanted:
        return (
            (
                f"Operator: it requests {count_of(desired, 'virtual function')} on this function. Another"
                " policy takes precedence,"
                " or the operator has not processed the policy of this collection yet."
            ),
            "Compare priority and nicSelector of the policies: kubectl get sriovnetworknodepolicies -A -o yaml.",
        )
    if sriov.current == wanted and in_kernel != wanted:
        return (
            (
                f"Kernel: sriov_numvfs is {wanted}, but only"
                f" {count_of(in_kernel, 'virtual function exists', 'virtual functions exist')}."
                " The other functions"
                " were removed from the PCI bus, or are still starting."
            ),
            (
                "Run stage virtual_functions again. If the finding remains, check dmesg on the node, and rescan the PCI"
                " bus as root: echo 1 > /sys/bus/pci/rescan."
            ),
        )
    if in_kernel != wanted and reported == wanted:
        return (
            "Config daemon: its report differs from the kernel. The functions were changed after the report.",
            (
                "Delete the pod of the config daemon on the node, so that the daemon reads the functions again. Then"
                " run stage virtual_functions again."
            ),
        )
    if in_kernel != wanted:
        known = explain(layers.state.last_sync_error)
        return (
            (
                f"Config daemon: the operator requests {count_of(desired, 'virtual function')}, and the"
                " daemon has not created them."
            )
            + (f" {known[0]}" if known else ""),
            (
                f"{known[1] if known else 'Read the log of the config daemon.'} Last error:"
                f" {clause(layers.state.last_sync_error, 'none')}."
            ),
        )
    return (
        "Config daemon: the kernel has the virtual functions, but the report of the daemon is outdated.",
        "Run stage virtual_functions again. If the finding remains, read the log of the config daemon on the node.",
    )
