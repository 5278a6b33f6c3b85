# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the properties that the queue pairs of a fabric should have: the MTU, and on Ethernet the GID index of RoCE
v1, which they should not use.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from .vendors import VENDORS

#: of queue pairs, in bytes
_MTUS = (4096, 2048, 1024, 512, 256)
#: bytes of an interface's MTU that are not data: the kernel counts the headers of RoCE so [src iboe_get_mtu], and those
#: of IPoIB
_ROCE_HEADERS, _IPOIB_HEADER = 96, -4
#: GID index of the link-local address on Ethernet
ROCE_V1_INDEX = 0
#: PCI IDs of the vendors whose NICs have RoCE v1 at this index
ROCE_V1_VENDORS = frozenset(vendor.pci for vendor in VENDORS if vendor.has_roce_v1)


def find_least_mtu(fabrics: typing.Sequence[Fabric]) -> typing.Optional[int]:
    """Return the largest MTU of queue pairs, in bytes, that fits into the interface MTU of every fabric. Return None if
    the intent sets no MTU for one of them, or a smaller one than any queue pair can use.

    :param fabrics: fabrics that the queue pairs may use
    """
    least: typing.Optional[int] = None
    for fabric in fabrics:
        if fabric.mtu is None:
            return None
        room = fabric.mtu - (_IPOIB_HEADER if is_infiniband(fabric) else _ROCE_HEADERS)
        fits = next((mtu for mtu in _MTUS if mtu <= room), None)
        if fits is None:
            return None
        least = fits if least is None else min(least, fits)
    return least
