# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the VFs of a physical function as devices: one network driver, RDMA devices, and a report of the operator that
agrees with sysfs. Check ids: ``virtual_functions.driver``, ``virtual_functions.report``,
``virtual_functions.rdma_device``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet import vendors
from ..._model.base.marks import INTENT_LABEL, SELECTOR
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import Hca
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from . import desired, unread
from .function_reports import FunctionReports
from .ip_link import format_each


def check_driver(layers: FunctionReports) -> Finding:
    drivers = sorted({(vf.pci.driver if vf.pci else None) or "no driver" for vf in layers.vfs})
    expected = "the same network driver for all VFs"
    if len(drivers) == 1 and drivers[0] not in ("no driver", "vfio-pci"):
        return build_pass("virtual_functions.driver", layers.subject, drivers[0], expected)
    bare = [vf for vf in layers.vfs if vf.pci is None or vf.pci.driver in (None, "vfio-pci")]
    why, remedy = _explain_drivers(layers.node, bare)
    measured = f"drivers of {count_of(len(layers.vfs), 'VF')}: {join_first(drivers, 8)}"
    if bare:
        names = [_describe_bare_vf(vf) for vf in bare]
        measured = f"{len(bare)} of {count_of(len(layers.vfs), 'VF')} without a network driver: {join_first(names, 8)}"
    return Finding("virtual_functions.driver", layers.subject, FAIL, measured, expected, why, remedy)


def _describe_bare_vf(vf: Hca) -> str:
    if vf.pci is None:
        return f"{vf.name} (no driver)"
    address = f"{vf.pci.address}, " if vf.pci.address != vf.name else ""
    return f"{vf.name} ({address}{vf.pci.driver or 'no driver'})"


def _explain_drivers(node: str, bare: typing.Sequence[Hca]) -> tuple[str, str]:
    """Return the cause and the remedy if the VFs of a function do not all have the same network driver.

    :param bare: VFs without a network driver; empty if the VFs have several network drivers
    """
    if not bare:
        return (
            "The operator binds all VFs of a function to the same driver. Other software on the node has bound some of"
            " these VFs to another driver.",
            f"Run driverctl list-overrides on {node}, and remove the override of each VF of this finding"
            " (driverctl unset-override ADDRESS). If it lists none, run kubectl get sriovnetworknodepolicies -A"
            " -o yaml, and set the same deviceType in all policies that select this physical function. Then run"
            " stage virtual_functions again.",
        )
    names = join_first([vf.name for vf in bare], 8)
    if all(vf.pci is not None and vf.pci.driver == "vfio-pci" for vf in bare):
        return (
            f"The driver vfio-pci, which is for virtual machines and user-space programs, is bound to {names}."
            " Pods get no network interface from a VF with this driver.",
            f"Run driverctl list-overrides on {node}, and remove the override of each VF"
            f" ({format_each(bare, 'driverctl unset-override ADDRESS')}). If it lists none, run kubectl get"
            " sriovnetworknodepolicies -A -o yaml, and ask the owner of the policy with deviceType: vfio-pci to"
            " change it. Then run stage virtual_functions again.",
        )
    return (
        f"No driver is bound to {names}: its module is not loaded, automatic binding is off (sriov_drivers_autoprobe of"
        " the physical function contains 0), or the driver failed.",
        f"Work as root on {node}. {vendors.load_driver(bare)} If the driver is loaded already, bind each VF:"
        f" {format_each(bare, 'echo ADDRESS > /sys/bus/pci/drivers_probe')}. Then run stage virtual_functions"
        " again.",
    )


def check_report(layers: FunctionReports) -> Finding:
    """Compare the VFs and their drivers in sysfs with those that the config daemon reports, and the settings that the
    operator requests with those of the fabric.

    :param layers: reports of kernel, operator and config daemon on one physical function
    """
    in_kernel = {vf.pci.address: vf.pci.driver for vf in layers.vfs if vf.pci}
    reported = {vf.address: vf.driver or None for vf in (layers.reported.vfs if layers.reported else ())}
    expected = "every VF with the same PCI address and driver in sysfs and in the report of the config daemon"
    if layers.unread:
        return unread.report_unread(
            "virtual_functions.report", layers.subject, layers.unread, "report of the config daemon not read", expected
        )
    if in_kernel == reported:
        return _check_desired(layers, f"{count_of(len(in_kernel), 'VF')}, the same in sysfs and in the report")
    differing = [
        f"{address or 'no PCI address'} ({_describe_driver(in_kernel, address)} in sysfs,"
        f" {_describe_driver(reported, address)} in the report)"
        for address in sorted(in_kernel.keys() | reported.keys())
        if address not in in_kernel or address not in reported or in_kernel[address] != reported[address]
    ]
    measured = f"{count_of(len(differing), 'VF')} with a difference: {join_first(differing, 8)}"
    if layers.reported is None:
        why = "The config daemon does not report this physical function in the SriovNetworkNodeState of the node."
        remedy = (
            "Follow the remedy of the finding virtual_functions.count of this function, then run stage"
            " virtual_functions again."
        )
        return Finding("virtual_functions.report", layers.subject, FAIL, measured, expected, why, remedy)
    why = (
        "The report of the config daemon is older than the present state in sysfs: the VFs or their drivers were"
        " changed after it."
    )
    remedy = (
        "Run stage virtual_functions again. If the finding remains, delete the pod of the config daemon on"
        f" {layers.node}, so that it reports the VFs again: kubectl delete pod -A -l"
        f" app=sriov-network-config-daemon --field-selector spec.nodeName={layers.node}. Then run the stage once"
        " more."
    )
    return Finding("virtual_functions.report", layers.subject, FAIL, measured, expected, why, remedy)


def _check_desired(layers: FunctionReports, measured: str) -> Finding:
    """Compare the settings that the operator requests for a physical function with those of the intent.

    :param layers: reports of kernel, operator and config daemon on one physical function
    :param measured: VFs of the function as text, for the passed finding
    """
    differences = desired.list_differences(layers)
    if not differences:
        expected = "the same VFs in sysfs and in the report, and the settings of the intent requested by the operator"
        return build_pass("virtual_functions.report", layers.subject, measured, expected)
    expected = f"requested by the operator: the settings of the fabric '{layers.fabric.name}' in the intent"
    why = (
        "The operator takes these settings from the SriovNetworkNodePolicies that select the function, and applies them"
        " at its next sync or at the next boot of the node. A policy was changed, or another policy selects the"
        " function."
    )
    remedy = (
        "Run kubectl get sriovnetworknodepolicies -A -o yaml. If a policy that selects this function lacks the"
        f" label {SELECTOR}, or names another intent in the label {INTENT_LABEL}, ask its owner to change it."
        " Then run stages network and virtual_functions again: stage network writes the policy of this intent."
    )
    measured = f"requested by the operator: {join_first(differences, 8, '; ')}"
    return Finding("virtual_functions.report", layers.subject, FAIL, measured, expected, why, remedy)


def _describe_driver(drivers: typing.Mapping[str, typing.Optional[str]], address: str) -> str:
    return drivers[address] or "no driver" if address in drivers else "absent"


def check_rdma(layers: FunctionReports) -> Finding:
    without = [vf for vf in layers.vfs if not vf.rdma_device and not (vf.held and vf.held.rdma_device)]
    measured, expected = (
        f"{len(layers.vfs) - len(without)} of {count_of(len(layers.vfs), 'VF')} with an RDMA device",
        f"{len(layers.vfs)} of {count_of(len(layers.vfs), 'VF')} with an RDMA device",
    )
    if not without:
        return build_pass("virtual_functions.rdma_device", layers.subject, measured, expected)
    names = join_first([vf.name for vf in without], 8)
    if layers.exclusive and not any(vf.netdevs for vf in without):
        why = (
            f"The node shows no RDMA device for {count_of(len(without), 'VF')}: {names}. In RDMA mode exclusive,"
            " a VF and its RDMA device move into the pod together, so these VFs may now be in pods."
        )
        remedy = (
            f"Run kubectl get pods -A -o wide --field-selector spec.nodeName={layers.node}. If pods with a VF of this"
            " network run there, end them or wait for their end, and run stage virtual_functions again: it then finds"
            " the RDMA device of each VF. If no such pod runs there, the VFs have no RDMA device: load their RDMA"
            f" driver as root on {layers.node} (modprobe mlx5_ib for NVIDIA), then run stage virtual_functions again."
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
    why = f"The driver has created no RDMA device for {count_of(len(without), 'VF')}: {names}."
    remedy = vendors.load_rdma(without)
    remedy = f"Work as root on {layers.node}. {remedy}"
    if not is_infiniband(layers.fabric):
        remedy += f" If the NIC has no RDMA, set rdma: false in the fabric '{layers.fabric.name}'."
    remedy += " Then run stage virtual_functions again."
    return Finding("virtual_functions.rdma_device", layers.subject, FAIL, measured, expected, why, remedy)
