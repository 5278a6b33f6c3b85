# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats of names that the kernel assigns: network interfaces, RDMA devices, PCI functions and hardware addresses.

They are stricter than the kernel [Linux net/core/dev.c dev_valid_name; rdma_user_ioctl_cmds.h IB_DEVICE_NAME_MAX],
which accepts ``{{x}}`` and ``$(id)`` as names of interfaces. No driver or network plugin creates such names, but root
on a node can.
"""

from __future__ import annotations

import re
import typing

from .form import Form, make_pattern

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,14}", re.ASCII)
_RDMA_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", re.ASCII)
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", re.ASCII)
_PCI_ID = re.compile(r"(0x)?[0-9a-f]{4}", re.ASCII)
#: Ethernet 6 bytes, EUI-64 8, IPoIB 20; the kernel holds up to 32 [include/linux/netdevice.h MAX_ADDR_LEN]
_HARDWARE_ADDRESS = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){0,31}", re.ASCII)


def _any_device(text: str) -> typing.Optional[str]:
    return next(
        (
            found
            for found in (RDMA_DEVICE.parse(text), INTERFACE.parse(text), PCI_ADDRESS.parse(text))
            if found is not None
        ),
        None,
    )


INTERFACE = Form(
    "the name of a network interface: up to 15 letters, digits and _.@+-", "ens1f0np0", 15, make_pattern(_INTERFACE)
)
RDMA_DEVICE = Form(
    "the name of an RDMA device: up to 63 letters, digits and _.-", "mlx5_0", 63, make_pattern(_RDMA_DEVICE)
)
#: a VMD's domain has more than four digits; who writes it in capitals means the same
PCI_ADDRESS = Form("a PCI address", "0000:3c:00.0", 16, lambda text: make_pattern(_PCI_ADDRESS)(text.lower()))
PCI_ID = Form("a PCI ID of four hexadecimal digits", "15b3", 6, lambda text: make_pattern(_PCI_ID)(text.lower()))
HARDWARE_ADDRESS = Form(
    "a hardware address of at most 32 bytes",
    "02:fc:00:00:00:05",
    95,
    lambda text: make_pattern(_HARDWARE_ADDRESS)(text.lower()),
)
#: what a reader calls an HCA
DEVICE = Form("the name of an RDMA device or of a network interface, or a PCI address", "mlx5_0", 63, _any_device)

Interface = typing.Annotated[str, INTERFACE]
RdmaDevice = typing.Annotated[str, RDMA_DEVICE]
PciAddress = typing.Annotated[str, PCI_ADDRESS]
PciId = typing.Annotated[str, PCI_ID]
HardwareAddress = typing.Annotated[str, HARDWARE_ADDRESS]
Device = typing.Annotated[str, DEVICE]


def assigned_address(address: str) -> str:
    """Return a hardware address in lower case. Return an empty string if all its bytes are 0: the driver has not set it
    yet, so it does not identify an interface.
    """
    return address.lower() if address.strip("0:") else ""
