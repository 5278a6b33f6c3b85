# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a physical function cannot create virtual functions, and name the responsible layer, such as the BIOS or
the firmware. All stages that find such a function use this explanation.
"""

from __future__ import annotations

import typing

from ..._model.node.hca import Hca, SriovAbsence
from . import vendors

_CAUSES: typing.Mapping[typing.Optional[SriovAbsence], tuple[str, str]] = {
    "hidden": (
        (
            "The PCI configuration space of the function ends after 256 bytes, so SR-IOV is not visible. The BIOS hides"
            " it, or the node is a virtual machine."
        ),
        (
            "Drain the node, enable SR-IOV in its BIOS, and MMCONFIG and ARI if the BIOS offers them, then reboot"
            " the node. In a virtual machine, no function can create VFs: use a profile without VFs."
        ),
    ),
    "off": (
        "SR-IOV is disabled in the firmware of the NIC: the function offers no VFs in its PCI configuration space.",
        "{enable} If the NIC does not support SR-IOV, use a profile without VFs.",
    ),
    "unused": (
        "The function offers VFs in its PCI configuration space, but the kernel or the BIOS does not support them.",
        (
            "Drain the node, enable SR-IOV in its BIOS so that it reserves space for VFs, and boot a kernel with"
            " CONFIG_PCI_IOV. If the function still offers no VFs, correct the error that dmesg shows for it."
        ),
    ),
    None: (
        "SR-IOV is disabled in the BIOS or in the firmware of the NIC, or the function does not support it.",
        (
            "Run {lspci} as root on the node. If it shows Single Root I/O Virtualization, drain the node, enable"
            " SR-IOV in its BIOS and reboot it. Otherwise {disabled} If lspci still does not show it, the NIC"
            " does not support SR-IOV: use a profile without VFs."
        ),
    ),
}


def explain_no_sriov(hca: Hca) -> tuple[str, str]:
    """Return the cause why a physical function cannot create virtual functions, and the remedy. The cause names the
    responsible layer.
    """
    cause, remedy = _CAUSES[hca.sriov_absence]
    enable = vendors.enable_functions(hca)
    lspci = f"lspci -vvv -s {hca.pci.address}" if hca.pci else "lspci -vvv"
    return cause, (
        remedy.replace("{enable}", enable)
        .replace("{disabled}", f"{enable[:1].lower()}{enable[1:]}")
        .replace("{lspci}", lspci)
    )
