# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a physical function cannot create virtual functions, and name the responsible layer, such as the BIOS or
the firmware. All stages that find such a function use this explanation.
"""

from __future__ import annotations

import typing

from ..._model.node.hca import Hca, SriovAbsence
from . import vendors

_ABSENT = "sriov_totalvfs is absent"
_CAUSES: typing.Mapping[typing.Optional[SriovAbsence], tuple[str, str]] = {
    "hidden": (
        (
            f"BIOS or virtual machine: {_ABSENT}, and the configuration space of the function ends after 256 bytes, so"
            " SR-IOV is not visible."
        ),
        (
            "Enable SR-IOV in the BIOS, and MMCONFIG or ARI if the BIOS offers them. A virtual machine has VFs, and no"
            " physical function that can create VFs."
        ),
    ),
    "off": (
        f"Firmware: {_ABSENT}, and the function offers no VFs in its configuration space.",
        "{enable} A card without SR-IOV cannot be used here.",
    ),
    "unused": (
        f"Kernel or BIOS: {_ABSENT}, although the function offers VFs in its configuration space.",
        (
            "Boot a kernel with CONFIG_PCI_IOV, enable SR-IOV in the BIOS so that it reserves space for VFs, and read"
            " dmesg for this function."
        ),
    ),
    None: (
        f"BIOS or firmware: {_ABSENT}. SR-IOV is disabled in one of them, or the function does not support it.",
        (
            "Run lspci -vvv as root on the node. If it shows Single Root I/O Virtualization, enable SR-IOV in the BIOS"
            " and reboot the node. Otherwise {disabled}"
        ),
    ),
}


def why(hca: Hca) -> tuple[str, str]:
    """Return the cause why a physical function cannot create virtual functions, and the remedy. The cause begins with
    the name of the layer.
    """
    cause, remedy = _CAUSES[hca.sriov_absence]
    enable = vendors.enable_functions(hca)
    return cause, remedy.replace("{enable}", enable).replace("{disabled}", f"{enable[:1].lower()}{enable[1:]}")
