# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the VFs of a physical function as devices: one network driver, RDMA devices, and a report of the operator that
agrees with sysfs. Check ids: ``virtual_functions.driver``, ``virtual_functions.report``,
``virtual_functions.rdma_device``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet import vendors
from ..._model.base.text import folded
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from . import desired
from .function_reports import FunctionReports


def check_driver(layers: FunctionReports) -> Finding:
    drivers = sorted({(vf.pci.driver if vf.pci else None) or "none" for vf in layers.vfs})
    expected = "one network driver"
    if len(drivers) == 1 and drivers[0] not in ("none", "vfio-pci"):
        return ok("virtual_functions.driver", layers.subject, drivers[0], expected)
    bare = [vf.name for vf in layers.vfs if vf.pci is None or vf.pci.driver in (None, "vfio-pci")]
    why = (
        f"Kernel: these functions have no network driver: {folded(bare, 8)}."
        if bare
        else "Kernel: the virtual functions of one physical function have different drivers."
    )
    remedy = vendors.load_driver(layers.vfs)
    return Finding("virtual_functions.driver", layers.subject, FAIL, folded(drivers, 8), expected, why, remedy)


def check_report(layers: FunctionReports) -> Finding:
    """Check that kernel and operator report the same functions, with the same drivers, and that the operator wants the
    settings of the fabric."""
    in_kernel = {vf.pci.address: vf.pci.driver for vf in layers.vfs if vf.pci}
    reported = {vf.address: vf.driver or None for vf in (layers.reported.vfs if layers.reported else ())}
    measured = f"sysfs {len(in_kernel)}, operator {len(reported)}, both {len(in_kernel.keys() & reported.keys())}"
    expected = "the same PCI addresses and drivers"
    if layers.unread:
        why = f"The report of the operator is unknown: {layers.unread}."
        return Finding(
            "virtual_functions.report",
            layers.subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Check the kubeconfig and the rights of its user, then run stage virtual_functions again.",
        )
    if in_kernel == reported:
        return _check_desired(layers, measured, expected)
    differing = [
        f"{address} ({_describe_driver(in_kernel, address)} in the kernel, {_describe_driver(reported, address)} in the"
        " report)"
        for address in sorted(in_kernel.keys() | reported.keys())
        if address not in in_kernel or address not in reported or in_kernel[address] != reported[address]
    ]
    why = f"Config daemon: its report and the kernel differ in these functions: {', '.join(differing[:8])}."
    remedy = "Run stage virtual_functions again. If the finding remains, read the log of the config daemon on the node."
    return Finding("virtual_functions.report", layers.subject, FAIL, measured, expected, why, remedy)


def _check_desired(layers: FunctionReports, measured: str, expected: str) -> Finding:
    expected = f"{expected}, desired settings as in the intent"
    differences = desired.list_differences(layers)
    if not differences:
        return ok("virtual_functions.report", layers.subject, measured, expected)
    why = (
        "Operator: its desired state of the node contains different settings for this function:"
        f" {folded(differences, 8)}. The next sync of the operator, or the next boot of the node, changes the"
        " functions."
    )
    remedy = (
        "Check which policies select this function: kubectl get sriovnetworknodepolicies -A -o yaml. Correct or delete"
        " the policy that does not belong to this fabric, then run stage network again."
    )
    measured = f"{measured}; {folded(differences, 8)}"
    return Finding("virtual_functions.report", layers.subject, FAIL, measured, expected, why, remedy)


def _describe_driver(drivers: typing.Mapping[str, typing.Optional[str]], address: str) -> str:
    return drivers[address] or "no driver" if address in drivers else "absent"


def check_rdma(layers: FunctionReports) -> Finding:
    without = [vf for vf in layers.vfs if not vf.rdma_device and not (vf.held and vf.held.rdma_device)]
    measured, expected = (
        f"{len(layers.vfs) - len(without)} of {len(layers.vfs)}",
        f"{len(layers.vfs)} of {len(layers.vfs)} with an RDMA device",
    )
    if not without:
        return ok("virtual_functions.rdma_device", layers.subject, measured, expected)
    names = ", ".join(vf.name for vf in without[:8])
    if layers.exclusive and not any(vf.netdevs for vf in without):
        why = (
            "Kernel: in RDMA mode exclusive, the RDMA device of a VF moves into the pod together with the VF. Therefore"
            f" these VFs show no RDMA device on the node: {names}."
        )
        remedy = (
            "If pods are running on this network, no action is needed. Otherwise run rdma dev on the node. Stage"
            " bandwidth tests whether the VFs work."
        )
        # in this mode a CNI plugin moves a VF into a pod with its RDMA device, so a VF whose interface was seen in a
        # pod has one
        unexplained = len(without) == len(layers.vfs) and not all(vf.held for vf in without)
        return Finding(
            "virtual_functions.rdma_device",
            layers.subject,
            UNKNOWN if unexplained else WARN,
            measured,
            expected,
            why,
            remedy,
        )
    why = f"Kernel: the driver has created no RDMA device for these functions: {names}."
    remedy = f"{vendors.load_rdma(without)} If these functions have no RDMA, set rdma: false in the fabric."
    return Finding("virtual_functions.rdma_device", layers.subject, FAIL, measured, expected, why, remedy)
