# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that an HCA can create the VFs of its fabric: its driver, and the number of VFs that it supports. Check ids:
``platform.sriov``, ``platform.driver``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.sriov.sync_errors import LOCKED_DOWN
from ..._analysis.fleet import vendors
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.node.hca import Hca
from ..._model.node.platform import PciEvidence
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from . import bios
from .sriov_texts import describe_no_sriov, insert_count


def check(
    subject: str, fabric: Fabric, hca: Hca, function: typing.Optional[PciEvidence], locked_down: bool
) -> list[Finding]:
    """Check that the driver of an HCA can create VFs, and that the HCA supports as many as the fabric requires
    (sriov_totalvfs).

    :param subject: names of the node and of the HCA
    :param hca: HCA on the fabric
    :param function: SR-IOV properties of the HCA in sysfs; None if its PCI function is not known
    :param locked_down: whether the kernel of the node is locked down
    """
    expected = f"at least {count_of(fabric.virtual_functions, 'VF')} offered (sriov_totalvfs)"
    if function is None:
        node, _blank, device = subject.partition(" ")
        why = (
            f"The data of the node contains no PCI function of {device}, so it is unknown whether {device} can create"
            " VFs. It is a software device such as rxe, or the PCI bus of the node was not read completely."
        )
        return [
            Finding(
                "platform.sriov",
                subject,
                UNKNOWN,
                "no PCI function",
                expected,
                why,
                f"On {node}, run lspci -nn and readlink /sys/class/infiniband/{device}/device. If the device has no PCI"
                " function, exclude it with select of the fabric. Then run stages discover and platform again.",
            )
        ]
    findings = [] if bios.is_hidden(hca) else [_check_sriov(subject, fabric, hca, function, expected, locked_down)]
    if function.driver == "vfio-pci":
        why = (
            "The whole function is assigned to a virtual machine or to a user space program, so the node cannot create"
            " VFs on it."
        )
        remedy = (
            "Stop the program or the virtual machine that uses the function. Then return the function to the node:"
            f" run driverctl unset-override {function.address} on the node. Then run stage platform again."
        )
        findings.append(
            Finding(
                "platform.driver",
                subject,
                FAIL,
                f"driver {function.driver}",
                _describe_driver(hca),
                why,
                remedy,
            )
        )
    elif function.driver is None:
        why = (
            "A function without a driver creates no VFs. The driver is not loaded, or it failed to bind to the"
            f" function {function.address}."
        )
        findings.append(
            Finding(
                "platform.driver",
                subject,
                FAIL,
                "no driver",
                _describe_driver(hca),
                why,
                f"{vendors.load_driver([hca])} If dmesg shows an error of {function.address}, drain and power-cycle"
                " the node, and replace the card if the error remains. Then run stage platform again.",
            )
        )
    else:
        findings.append(build_pass("platform.driver", subject, f"driver {function.driver}", _describe_driver(hca)))
    return findings


def _describe_driver(hca: Hca) -> str:
    vendor = vendors.find_vendor(hca)
    return f"the network driver of the HCA{f', {vendor.drivers[0]}' if vendor else ''}"


def _check_sriov(
    subject: str, fabric: Fabric, hca: Hca, function: PciEvidence, expected: str, locked_down: bool
) -> Finding:
    if function.sriov_total is None:
        if "sriov_totalvfs" in function.unread:
            return Finding(
                "platform.sriov",
                subject,
                UNKNOWN,
                "number of offered VFs not read (sriov_totalvfs)",
                expected,
                "Reading the file sriov_totalvfs of the function failed, so it is unknown how many VFs the"
                " function offers.",
                f"On {subject.partition(' ')[0]}, run cat /sys/bus/pci/devices/{function.address}/sriov_totalvfs as"
                " root. If it prints an error, drain the node and reload the driver of the HCA. Then run stage"
                " platform again.",
            )
        return Finding(
            "platform.sriov",
            subject,
            FAIL,
            "no VFs offered: no file sriov_totalvfs",
            expected,
            *describe_no_sriov(hca, fabric),
        )
    measured = (
        f"{count_of(function.sriov_total, 'VF')} offered (sriov_totalvfs),"
        f" {function.sriov_current if function.sriov_current is not None else 'unknown number'} created"
    )
    if function.sriov_total < fabric.virtual_functions:
        why = (
            f"The function can create at most {function.sriov_total} VFs, but the fabric '{fabric.name}' requires"
            f" {fabric.virtual_functions} VFs."
        )
        remedy = (
            f"{insert_count(vendors.more_functions(hca), fabric)} Or reduce virtual_functions of the fabric. Then run"
            " stage platform again."
        )
        return Finding("platform.sriov", subject, FAIL, measured, expected, why, remedy)
    # where the functions are there, the operator has got over it
    if (
        locked_down
        and vendors.find_vendor(hca) is vendors.NVIDIA
        and (function.sriov_current or 0) < fabric.virtual_functions
    ):
        why, remedy = LOCKED_DOWN
        measured, expected = f"{measured}, kernel locked down", f"{expected}, kernel not locked down"
        remedy = f"{insert_count(remedy, fabric).replace('ADDRESS', function.address)} Then run stage platform again."
        return Finding("platform.sriov", subject, WARN, measured, expected, why, remedy)
    return build_pass("platform.sriov", subject, measured, expected)
