# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI configuration space, as sysfs hands it out (``config``): why a function has no SR-IOV, and the size of its packets.

Layout: PCI Express Base Specification, 7.6 (extended capabilities: a list that begins at 0x100; each header has a 16 bit id, a 4 bit version and
the 12 bit offset of the next one) and 9.3.3 (SR-IOV capability, id 0x0010; TotalVFs is the 16 bit word at offset 0x0e). 7.5.3 (PCI Express
capability, id 0x10 in the list that the byte at 0x34 begins: bits 2:0 of Device Capabilities, at offset 4, are the largest payload that is supported,
bits 7:5 of Device Control, at offset 8, the one that is set; 0 is 128 bytes, 5 is 4096).
"""

from __future__ import annotations

import struct
import typing

from ..._model.hca import SriovAbsence

#: what everyone may read; the rest needs CAP_SYS_ADMIN
_PUBLIC = 64
#: bytes that every function has; the rest is for extended capabilities
CONVENTIONAL = 256
_WHOLE = 4096
_SRIOV = 0x0010
_TOTAL_VFS = 0x0E
_NO_ANSWER = 0xFFFFFFFF
_STATUS, _HAS_CAPABILITIES, _FIRST_CAPABILITY = 0x06, 0x10, 0x34
_PCI_EXPRESS = 0x10
_MOST_PAYLOAD_CODE = 5


class Payload(typing.NamedTuple):
    """MaxPayload of a function in bytes: what is set, and the largest that it supports."""

    current: int
    supported: int


def payload(space: bytes) -> typing.Optional[Payload]:
    """MaxPayload of a function with this configuration space; None when too little of it can be read to tell."""
    if len(space) <= _PUBLIC or not space[_STATUS] & _HAS_CAPABILITIES:
        return None
    place = space[_FIRST_CAPABILITY] & ~3
    # bounded: the list of a broken space may lead in circles
    for _step in range(CONVENTIONAL // 4):
        if place < _PUBLIC or place + 10 > min(len(space), CONVENTIONAL):
            return None
        if space[place] == _PCI_EXPRESS:
            supported, current = space[place + 4] & 7, space[place + 8] >> 5
            return Payload(128 << current, 128 << supported) if max(supported, current) <= _MOST_PAYLOAD_CODE else None
        place = space[place + 1] & ~3
    return None


def sriov_absence(space: bytes) -> typing.Optional[SriovAbsence]:
    """Why the kernel shows no SR-IOV files for a function with this configuration space; None when too little of it can be read to tell."""
    if len(space) <= _PUBLIC:
        return None
    if len(space) <= CONVENTIONAL:
        return "hidden"
    place = CONVENTIONAL
    # bounded: the list of a broken space may lead in circles
    for _step in range(_WHOLE // 4):
        if place + 4 > len(space):
            return None
        (header,) = struct.unpack_from("<I", space, place)
        if header == _NO_ANSWER:
            return "hidden" if place == CONVENTIONAL else None
        if header & 0xFFFF == _SRIOV:
            if place + _TOTAL_VFS + 2 > len(space):
                return None
            (total,) = struct.unpack_from("<H", space, place + _TOTAL_VFS)
            return "unused" if total else "off"
        place = header >> 20 & ~3
        if place == 0:
            return "off"
        if place <= CONVENTIONAL:
            return None
    return None
