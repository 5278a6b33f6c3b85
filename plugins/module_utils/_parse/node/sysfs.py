# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the contents of sysfs files. Forms: Linux 6.12 drivers/infiniband/core/sysfs.c, drivers/pci/pci-sysfs.c, and
the forms of older kernels.

Each function takes the contents of one file without the last newline. Parsers raise ParseError if the text has an
unknown form.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.devices import PCI_ADDRESS
from ..._model.boundary.fabric import LANES, LINK_GBPS, PCIE_SPEED
from ..._model.boundary.words import WORD
from ..._model.node.hca import LinkPolicy
from ..._model.node.platform import VfMemory

_ENUM = re.compile(r"\A[0-9]+: ([A-Za-z_ <>]+)\Z")
_RATE = re.compile(r"\A([0-9]{1,9}(?:\.[0-9]{1,9})?) Gb/sec \(([0-9]{1,4})X(?: ([A-Z]+[0-9]*))?\)\Z")
_PCIE_SPEED = re.compile(r"\A([0-9]{1,9}(?:\.[0-9]{1,9})?) GT/s(?: PCIe)?\Z")
_GUID = re.compile(r"\A[0-9a-f]{4}(?::[0-9a-f]{4}){3}\Z")
_GID = re.compile(r"\A[0-9a-f]{4}(?::[0-9a-f]{4}){7}\Z")
_GUID_OF_BYTES = re.compile(r"\A[0-9a-f]{2}(?::[0-9a-f]{2}){7}\Z")
_HARDWARE_ADDRESS_20 = re.compile(r"\A[0-9a-f]{2}(?::[0-9a-f]{2}){19}\Z")
_HEX = re.compile(r"\A0x[0-9a-f]+\Z")
_DECIMAL = re.compile(r"\A-?[0-9]{1,18}\Z")

#: controller, physical function, and its VF or subfunction (net/core/devlink/port.c,
#: __devlink_port_phys_port_name_get); hpf: of a DPU's host (mlx5 5.2); a number alone: mlx5 before 4.20
_REPRESENTOR = re.compile(r"\A(?:(?:c[0-9]+)?pf[0-9]+(?:vf[0-9]+|sf[0-9]+|hpf)?|[0-9]+)\Z")

_LINK_POLICIES: tuple[LinkPolicy, ...] = typing.get_args(LinkPolicy)

#: a line of ``resource``: start, end and flags
_RESOURCE = re.compile(r"\A0x([0-9a-f]{16}) 0x([0-9a-f]{16}) 0x([0-9a-f]{16})\Z")
#: lines of it: six BARs and the ROM, then, with CONFIG_PCI_IOV, the BARs of VFs (include/linux/pci.h,
#: PCI_IOV_RESOURCES)
_OWN_RESOURCES, _VF_RESOURCES = 7, 6
#: IORESOURCE_MEM; IORESOURCE_DISABLED and IORESOURCE_UNSET (include/linux/ioport.h)
_MEMORY, _NOT_PLACED = 0x200, 0x3000_0000

#: ARPHRD_INFINIBAND in /sys/class/net/*/type
IPOIB_TYPE = 32


class Rate(typing.NamedTuple):
    """The contents of the file ``rate`` of a port.

    :ivar gbps: rate in Gb/s as the kernel prints it: signaling rate for SDR to QDR, data rate for faster links
    :ivar width: number of lanes
    :ivar speed: name of the speed, such as NDR; None if an old kernel does not print it
    """

    gbps: float
    width: int
    speed: typing.Optional[str]


def parse_number(text: str) -> int:
    """Parse a decimal number, which may be negative, such as the contents of ``numa_node``, ``mtu`` or
    ``sriov_totalvfs``.

    :raises ParseError: the text is not such a number
    """
    if not _DECIMAL.match(text):
        raise ParseError("sysfs", text, "a decimal number")
    return int(text)


def parse_hexadecimal(text: str) -> int:
    """Parse a hexadecimal number of the form ``0x1``, such as the contents of ``lid``, ``vendor`` or ``class``.

    :raises ParseError: the text does not have this form
    """
    if not _HEX.match(text):
        raise ParseError("sysfs", text, "a number of the form 0x1")
    return int(text, 16)


def is_representor(text: str) -> bool:
    """Return whether a port is a representor, by the contents of its file ``phys_port_name``. Representors have names
    such as ``pf0vf3``, physical ports such as ``p0``.
    """
    return bool(_REPRESENTOR.match(text))


def parse_enumeration_name(text: str) -> str:
    """Return the name in a value of an enumeration: ``ACTIVE`` for ``4: ACTIVE``, ``Polling`` for ``2: Polling``.

    :raises ParseError: the text does not have this form
    """
    match = _ENUM.match(text)
    if not match:
        raise ParseError("sysfs", text, "of the form '4: ACTIVE'")
    return WORD.of(match.group(1), "sysfs")


def parse_rate(text: str) -> Rate:
    """Parse the contents of the file ``rate``, such as ``400 Gb/sec (4X NDR)``. Kernels before 4.x do not print the
    name of SDR: ``10 Gb/sec (4X)``.

    :raises ParseError: the text does not have this form, or the rate is out of range
    """
    match = _RATE.match(text)
    if not match or not LINK_GBPS.fits(float(match.group(1))):
        raise ParseError("sysfs", text, f"of the form '400 Gb/sec (4X NDR)', {LINK_GBPS.expected}")
    return Rate(float(match.group(1)), int(match.group(2)), match.group(3))


def parse_guid(text: str) -> str:
    """Return a GUID of the form ``b83f:d203:00e0:0000`` in the form ``0xb83fd20300e00000``.

    :raises ParseError: the text does not have the first form
    """
    if not _GUID.match(text):
        raise ParseError("sysfs", text, "a GUID of the form b83f:d203:00e0:0000")
    return "0x" + text.replace(":", "")


def port_guid_of_gid(text: str) -> str:
    """Return the lower half of a GID such as ``fe80:0000:0000:0000:b83f:d203:00e0:0001``, in the form
    ``0xb83fd20300e00001``. On InfiniBand this is the GUID of the port.

    :raises ParseError: the text is not a GID of this form
    """
    if not _GID.match(text):
        raise ParseError("sysfs", text, "a GID of eight groups of four hex digits")
    return "0x" + "".join(text.split(":")[4:])


class IpoibAddress(typing.NamedTuple):
    """The parts of an IPoIB hardware address of 20 bytes: 1 byte of flags, which is left out, 3 bytes of queue pair, 8
    bytes of subnet prefix, 8 bytes of port GUID.

    :ivar queue_pair: number of the queue pair
    :ivar subnet_prefix: hexadecimal text with ``0x``
    :ivar port_guid: hexadecimal text with ``0x``
    """

    queue_pair: int
    subnet_prefix: str
    port_guid: str


def parse_ipoib_address(text: str) -> IpoibAddress:
    """Parse an IPoIB hardware address of the form ``00:00:05:a9:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:f9:8f:86``.

    :raises ParseError: the text has an unexpected form
    """
    if not _HARDWARE_ADDRESS_20.match(text):
        raise ParseError("sysfs", text, "an IPoIB hardware address of 20 bytes")
    digits = text.replace(":", "")
    return IpoibAddress(int(digits[2:8], 16), f"0x{digits[8:24]}", f"0x{digits[24:]}")


def guid_of_bytes(text: str) -> str:
    """Return a GUID of the form ``00:11:22:33:44:55:66:77`` (sriov/0/node, sriov/0/port) in the form
    ``0x0011223344556677`` [src mlnx-ofa_kernel sriov_sysfs.c].

    :raises ParseError: the text does not have the first form
    """
    if not _GUID_OF_BYTES.match(text):
        raise ParseError("sysfs", text, "a GUID of the form 00:11:22:33:44:55:66:77")
    return "0x" + text.replace(":", "")


def link_policy(text: str) -> LinkPolicy:
    """Return the link policy of a VF after checking that the text (sriov/0/policy) is ``Follow``, ``Up`` or ``Down``
    [src mlnx-ofa_kernel sriov_sysfs.c].

    :raises ParseError: the text is not one of them
    """
    for policy in _LINK_POLICIES:
        if text == policy:
            return policy
    raise ParseError("sysfs", text, f"one of {', '.join(_LINK_POLICIES)}")


def parse_pcie_speed(text: str) -> typing.Optional[float]:
    """Return the speed of a PCI Express link in GT/s, from ``32.0 GT/s PCIe`` or, with older kernels, ``8 GT/s``.
    Return None for ``Unknown``, which virtual functions have.

    :raises ParseError: the text has another form, or the speed is out of range
    """
    if text.startswith("Unknown"):
        return None
    match = _PCIE_SPEED.match(text)
    if not match or not PCIE_SPEED.fits(float(match.group(1))):
        raise ParseError("sysfs", text, f"of the form '32.0 GT/s PCIe', {PCIE_SPEED.expected}")
    return float(match.group(1))


def parse_pcie_width(text: str) -> typing.Optional[int]:
    """Return the number of lanes of a PCI Express link. Return None for 0 and 255, which the kernel prints for an
    unknown link.

    :raises ParseError: the text is not a number of lanes
    """
    width = parse_number(text)
    if width in (0, 255):
        return None
    if not LANES.fits(width):
        raise ParseError("sysfs", text, LANES.expected)
    return width


def parse_numa_node(text: str) -> typing.Optional[int]:
    """Return the number of the NUMA node. Return None for -1, which means that the platform does not report the node.

    :raises ParseError: the text is not a decimal number
    """
    node = parse_number(text)
    return None if node < 0 else node


def pci_address_of_link(text: str) -> typing.Optional[str]:
    """Return the address of the PCI function to which an entry of a class folder belongs. The target of the entry's
    link contains the address, such as ``../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.2/net/net1``. Return None if
    the target is not below a PCI function.

    :param text: target of the link
    """
    return next((part for part in reversed(text.split("/")) if is_pci_address(part)), None)


def parse_switch(text: str) -> bool:
    """Return whether a boolean parameter of a kernel module is set: True for ``Y``, False for ``N``.

    :raises ParseError: the text is neither of them
    """
    if text not in ("Y", "N"):
        raise ParseError("sysfs", text, "Y or N")
    return text == "Y"


def locked_down(text: str) -> bool:
    """Return whether kernel lockdown is active, from the contents of securityfs, such as ``none [integrity]
    confidentiality``. The level in brackets is the active one [src Linux security/lockdown/lockdown.c].

    :raises ParseError: no known level is in brackets
    """
    match = re.search(r"\[([a-z]+)\]", text)
    if not match or match.group(1) not in ("none", "integrity", "confidentiality"):
        raise ParseError("sysfs", text, "of the form '[none] integrity confidentiality'")
    return match.group(1) != "none"


def is_pci_address(name: str) -> bool:
    """Return whether a text, such as the name of a folder, is the address of a PCI function in the form of sysfs, such
    as ``0000:3c:00.0``.
    """
    return PCI_ADDRESS.parse(name) == name


def parse_vf_memory(text: str) -> typing.Optional[VfMemory]:
    """Return the indexes of the VF BARs in the file ``resource`` of a physical function, of those with and of those
    without an address. Return None if the file has no lines for VF BARs, because the kernel was built without
    CONFIG_PCI_IOV.

    A BAR that did not fit has no address, is marked as not placed, or has a line of zeros like a BAR that does not
    exist. Kernels differ in this (setup-bus.c, setup-res.c).

    :raises ParseError: the text does not consist of 7 lines, or of 13 or more, with start, end and flags
    """
    matches = [_RESOURCE.match(line) for line in text.split("\n")]
    lines = [[int(item, 16) for item in match.groups()] for match in matches if match]
    if len(lines) < len(matches) or _OWN_RESOURCES != len(lines) < _OWN_RESOURCES + _VF_RESOURCES:
        raise ParseError("sysfs", text, "7 PCI resources, or 13 and more, each with start, end and flags")
    if len(lines) == _OWN_RESOURCES:
        return None
    placed, unplaced = [], []
    for number, (start, end, flags) in enumerate(lines[_OWN_RESOURCES : _OWN_RESOURCES + _VF_RESOURCES]):
        if flags & _MEMORY and not flags & _NOT_PLACED and 0 < start < end:
            placed.append(number)
        elif start or end or flags:
            unplaced.append(number)
    return VfMemory(tuple(placed), tuple(unplaced))
