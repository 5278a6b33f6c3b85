# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI configuration space, as sysfs hands it out (``config``): why a function has no SR-IOV.

Layout: PCI Express Base Specification, 7.6 (extended capabilities: a list that begins at 0x100; each header has a 16 bit id, a 4 bit version and
the 12 bit offset of the next one) and 9.3.3 (SR-IOV capability, id 0x0010; TotalVFs is the 16 bit word at offset 0x0e).
"""

from __future__ import annotations

import struct
import typing

from ..._model.hca import SriovAbsence

#: what everyone may read; the rest needs CAP_SYS_ADMIN
_PUBLIC = 64
_CONVENTIONAL = 256
_WHOLE = 4096
_SRIOV = 0x0010
_TOTAL_VFS = 0x0E
_NO_ANSWER = 0xFFFFFFFF


def sriov_absence(space: bytes) -> typing.Optional[SriovAbsence]:
    """Why the kernel shows no SR-IOV files for a function with this configuration space; None when too little of it can be read to tell."""
    if len(space) <= _PUBLIC:
        return None
    if len(space) <= _CONVENTIONAL:
        return "hidden"
    place = _CONVENTIONAL
    # bounded: the list of a broken space may lead in circles
    for _step in range(_WHOLE // 4):
        if place + 4 > len(space):
            return None
        (header,) = struct.unpack_from("<I", space, place)
        if header == _NO_ANSWER:
            return "hidden" if place == _CONVENTIONAL else None
        if header & 0xFFFF == _SRIOV:
            if place + _TOTAL_VFS + 2 > len(space):
                return None
            (total,) = struct.unpack_from("<H", space, place + _TOTAL_VFS)
            return "unused" if total else "off"
        place = header >> 20 & ~3
        if place == 0:
            return "off"
        if place <= _CONVENTIONAL:
            return None
    return None
