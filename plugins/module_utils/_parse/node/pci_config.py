# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the PCI configuration space from the sysfs file ``config``: the SR-IOV capability of a function or the reason
why it is missing, ACS, the payload and read request sizes, and the buses below a bridge.

Layout: PCI Express Base Specification, 7.6 (extended capabilities: a list that begins at 0x100; each header has a 16
bit id, a 4 bit version and the 12 bit offset of the next one), 7.7.11 (ACS, id 0x000d: capability at offset 4, control
at 6) and 9.3.3 (SR-IOV, id 0x0010: control at offset 0x08, of which bit 4 is ARI Capable Hierarchy, InitialVFs at 0x0c,
TotalVFs, NumVFs, First VF Offset at 0x14, VF Stride, six VF BARs from 0x24 on). 7.5.1.3 (bridges, type 1 in the byte at
0x0e: secondary and subordinate bus number in the bytes at 0x19 and 0x1a). 7.5.3 (PCI Express capability, id 0x10 in the
list whose first offset is in the byte at 0x34: bits 2:0 of Device Capabilities, at offset 4, are the largest supported
payload, bits 7:5 of Device Control, at offset 8, the configured one; 0 is 128 bytes, 5 is 4096. Bits 14:12 are the
largest read request in the same code, and bit 4 enables relaxed ordering of writes).
"""

from __future__ import annotations

import struct
import typing

from ..._model.node.hca import SriovAbsence
from ..._model.node.platform import Acs, SriovCapability

#: what everyone may read; the rest needs CAP_SYS_ADMIN
_PUBLIC = 64
#: bytes that every function has; the rest is for extended capabilities
CONVENTIONAL = 256
_WHOLE = 4096
_SRIOV, _ACS = 0x0010, 0x000D
_CONTROL, _INITIAL_VFS, _TOTAL_VFS, _OFFSET, _VF_BARS, _END_OF_SRIOV = 0x08, 0x0C, 0x0E, 0x14, 0x24, 0x3C
_ARI_HIERARCHY = 0x10
#: of a BAR: it is of I/O ports; its type; the type of 64 bits, which takes the next BAR, too
_IO, _TYPE, _WIDE = 1, 6, 4
_HEADER_TYPE, _BRIDGE, _SECONDARY, _SUBORDINATE = 0x0E, 1, 0x19, 0x1A
_NO_ANSWER = b"\xff" * 4
_NOWHERE = 0
_STATUS, _HAS_CAPABILITIES, _FIRST_CAPABILITY = 0x06, 0x10, 0x34
_PCI_EXPRESS = 0x10
_MOST_PAYLOAD_CODE = 5
_RELAXED_ORDERING = 0x10
#: of ACS: P2P Request Redirect and P2P Completion Redirect
_REDIRECTS = 0x0C


class Payload(typing.NamedTuple):
    """The MaxPayload of a PCI function.

    :ivar current: the configured value in bytes
    :ivar supported: the largest value that the function supports, in bytes
    """

    current: int
    supported: int


class Requests(typing.NamedTuple):
    """Settings of the DMA requests of a PCI function.

    :ivar read_bytes: largest read request in bytes (MaxReadReq)
    :ivar relaxed_ordering: whether the writes of the function may be reordered
    """

    read_bytes: int
    relaxed_ordering: bool


def parse_payload(space: bytes) -> typing.Optional[Payload]:
    """Return the MaxPayload of a function from its configuration space. Return None if the function has no PCI Express
    capability, too little of it can be read, or a value is reserved.
    """
    place = _find_pci_express(space)
    if place is None:
        return None
    supported, current = space[place + 4] & 7, space[place + 8] >> 5
    return Payload(128 << current, 128 << supported) if max(supported, current) <= _MOST_PAYLOAD_CODE else None


def parse_requests(space: bytes) -> typing.Optional[Requests]:
    """Return the largest read request and the ordering of writes of a function from its configuration space. Return
    None if the function has no PCI Express capability, too little of the space can be read, or the size is reserved.
    """
    place = _find_pci_express(space)
    if place is None:
        return None
    (control,) = struct.unpack_from("<H", space, place + 8)
    code = control >> 12 & 7
    return Requests(128 << code, bool(control & _RELAXED_ORDERING)) if code <= _MOST_PAYLOAD_CODE else None


def _find_pci_express(space: bytes) -> typing.Optional[int]:
    """Return the offset of the PCI Express capability in the configuration space. Return None if the function has no
    such capability, or too little of the space can be read.
    """
    if len(space) <= _PUBLIC or not space[_STATUS] & _HAS_CAPABILITIES:
        return None
    place = space[_FIRST_CAPABILITY] & ~3
    # bounded: the list of a broken space may lead in circles
    for _step in range(CONVENTIONAL // 4):
        if place < _PUBLIC or place + 10 > min(len(space), CONVENTIONAL):
            return None
        if space[place] == _PCI_EXPRESS:
            return place
        place = space[place + 1] & ~3
    return None


def parse_sriov_absence(space: bytes) -> typing.Optional[SriovAbsence]:
    """Return the reason why the kernel has no SR-IOV files for a function: ``hidden`` if the extended configuration
    space cannot be accessed, ``off`` if the function offers no VFs, ``unused`` if the function offers VFs and the
    kernel does not use them. Return None if too little of the configuration space can be read to decide.
    """
    if len(space) <= _PUBLIC:
        return None
    if len(space) <= CONVENTIONAL or space[CONVENTIONAL : CONVENTIONAL + 4] == _NO_ANSWER:
        return "hidden"
    place = _find_extended_capability(space, _SRIOV)
    if place == _NOWHERE:
        return "off"
    if place is None or place + _TOTAL_VFS + 2 > len(space):
        return None
    (total,) = struct.unpack_from("<H", space, place + _TOTAL_VFS)
    return "unused" if total else "off"


def parse_sriov(space: bytes) -> typing.Optional[SriovCapability]:
    """Return the SR-IOV capability of a function from its configuration space. Return None if the function has no such
    capability, too little of the space can be read, or the registers of its VF BARs are invalid.
    """
    place = _find_extended_capability(space, _SRIOV)
    if not place or place + _END_OF_SRIOV > len(space):
        return None
    (control,) = struct.unpack_from("<H", space, place + _CONTROL)
    initial, total, current = struct.unpack_from("<HHH", space, place + _INITIAL_VFS)
    offset, stride = struct.unpack_from("<HH", space, place + _OFFSET)
    bars = _parse_memory_bars(struct.unpack_from("<6I", space, place + _VF_BARS))
    return (
        None
        if bars is None
        else SriovCapability(initial, total, current, offset, stride, bool(control & _ARI_HIERARCHY), bars)
    )


def _parse_memory_bars(registers: typing.Sequence[int]) -> typing.Optional[tuple[int, ...]]:
    """Return the indexes of the VF memory BARs that exist, from their registers. A BAR without an address is recognized
    by its type bits, which hardware fixes. Only a 32-bit BAR that is not prefetchable cannot be recognized, because its
    type bits are 0. Return None if a register is that of an I/O BAR. No VF has an I/O BAR, so the registers are
    invalid.

    :param registers: values of the six VF BAR registers
    """
    found: list[int] = []
    number = 0
    while number < len(registers):
        register = registers[number]
        if register & _IO:
            return None
        if register:
            found.append(number)
        number += 2 if register & _TYPE == _WIDE else 1
    return tuple(found)


def parse_acs(space: bytes) -> typing.Optional[Acs]:
    """Return the Access Control Services of a port from its configuration space. Return None if the port does not have
    this capability, or too little of the space can be read. :func:`acs_redirects` distinguishes these two cases.
    """
    place = _find_extended_capability(space, _ACS)
    if not place or place + 8 > len(space):
        return None
    return Acs(*struct.unpack_from("<HH", space, place + 4))


def acs_redirects(space: bytes) -> typing.Optional[bool]:
    """Return whether a port sends packets between functions below it to the root complex, so that GPU and HCA do not
    communicate through the nearest switch.

    Return False if the port does not have Access Control Services. Return None if too little of its configuration space
    can be read.
    """
    place = _find_extended_capability(space, _ACS)
    if place == _NOWHERE:
        return False
    found = parse_acs(space)
    return None if found is None else bool(found.control & _REDIRECTS)


def parse_last_bus(space: bytes) -> typing.Optional[int]:
    """Return the last bus number below a bridge from the first 64 bytes of its configuration space, which every user
    may read. Return None if the function is not a bridge or its bus numbers are not configured.
    """
    if len(space) < _PUBLIC or space[_HEADER_TYPE] & 0x7F != _BRIDGE:
        return None
    return space[_SUBORDINATE] if 0 < space[_SECONDARY] <= space[_SUBORDINATE] else None


def _find_extended_capability(space: bytes, wanted: int) -> typing.Optional[int]:
    """Return the offset of an extended capability in the configuration space of a PCI function. Return _NOWHERE if the
    function does not have this capability. Return None if this is unknown, because the list of capabilities cannot be
    read to its end.

    :param wanted: ID of the capability
    """
    place = CONVENTIONAL
    # bounded: the list of a broken space may lead in circles
    for _step in range(_WHOLE // 4):
        if place + 4 > len(space) or space[place : place + 4] == _NO_ANSWER:
            return None
        (header,) = struct.unpack_from("<I", space, place)
        if header & 0xFFFF == wanted:
            return place
        place = header >> 20 & ~3
        if place == 0:
            return _NOWHERE
        if place <= CONVENTIONAL:
            return None
    return None
