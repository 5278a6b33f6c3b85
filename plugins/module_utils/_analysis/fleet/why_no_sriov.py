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
            f"BIOS or virtual machine: {_ABSENT}, and the function's configuration space ends after 256 bytes, so"
            " SR-IOV can't be seen through it."
        ),
        (
            "Switch on SR-IOV, and MMCONFIG or ARI where it is named, in the BIOS. A virtual machine gets VFs, not a"
            " physical function to split."
        ),
    ),
    "off": (
        f"Firmware: {_ABSENT}, and the function offers no VFs in its configuration space.",
        "{enable} A card without SR-IOV can't be used here.",
    ),
    "unused": (
        f"Kernel or BIOS: {_ABSENT}, although the function offers VFs in its configuration space.",
        (
            "Boot a kernel with CONFIG_PCI_IOV, switch on SR-IOV in the BIOS so that it leaves room for VFs, and see"
            " dmesg for this function."
        ),
    ),
    None: (
        f"BIOS or firmware: {_ABSENT}, so SR-IOV is off in one of them, or the function has no such capability.",
        (
            "Run lspci -vvv as root on the node. Where it shows Single Root I/O Virtualization, switch SR-IOV on in the"
            " BIOS, and reboot. Else: {enable}"
        ),
    ),
}


def why(hca: Hca) -> tuple[str, str]:
    """Return the cause why a physical function cannot create virtual functions, and the remedy. The cause begins with
    the name of the layer.
    """
    cause, remedy = _CAUSES[hca.sriov_absence]
    return cause, remedy.replace("{enable}", vendors.enable_functions(hca))
