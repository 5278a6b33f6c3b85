# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the properties that the queue pairs of a fabric should have: the MTU, and on Ethernet the GID index of RoCE
v1, which they should not use.
"""

from __future__ import annotations

import typing

from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import is_infiniband
from ..vendors import VENDORS

#: of queue pairs, in bytes
_MTUS = (4096, 2048, 1024, 512, 256)
#: bytes of an interface's MTU that are not data: the kernel counts the headers of RoCE so [src iboe_get_mtu], and those
#: of IPoIB
_ROCE_HEADERS, _IPOIB_HEADER = 96, -4
#: bytes that a packet of RoCE v2 takes of the link beside its data: preamble, Ethernet, CRC and gap (8, 14, 4, 12),
#: UDP, BTH and ICRC (8, 12, 4) [IEEE 802.3; IBTA A17]. Then those of a VLAN tag, and of IPv4 and IPv6
_ROCE_OVERHEAD, _VLAN_TAG, _IPV4, _IPV6 = 62, 4, 20, 40
#: PCI IDs of the vendors whose NICs have GIDs of RoCE v1
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


def compute_data_share(packet_bytes: int, vlan: bool, ipv6: bool) -> float:
    """Return the share of an Ethernet link that packets of RoCE v2 leave for data, between 0 and 1.

    :param packet_bytes: data of a packet in bytes, which is the MTU of the queue pair
    :param vlan: whether packets have a VLAN tag
    :param ipv6: whether packets have a header of IPv6 instead of IPv4
    """
    headers = _ROCE_OVERHEAD + (_VLAN_TAG if vlan else 0) + (_IPV6 if ipv6 else _IPV4)
    return packet_bytes / (packet_bytes + headers)


def is_index_of_roce_v1(index: int) -> bool:
    """Return whether a GID index on Ethernet belongs to RoCE v1. This holds for drivers that support both versions.

    For each address of an interface, the kernel adds two GIDs: first that of RoCE v1, then that of RoCE v2. The
    link-local address gets the indexes 0 and 1. The kernel also removes both GIDs of an address together, so even
    indexes always belong to RoCE v1 [src linux drivers/infiniband/core/cache.c ib_cache_gid_set_default_gid;
    roce_gid_mgmt.c update_gid].
    """
    return index % 2 == 0
