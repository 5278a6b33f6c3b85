# SPDX-License-Identifier: GPL-3.0-or-later

"""Which flow a test is, where switches choose one of several links by a hash of it: RoCE v2 packets differ from flow to
flow in their UDP source port alone.

perftest sets the flow label of its queue pairs by ``--flow_label``, from 23.10 on (its commit 69bc866). The kernel's
drivers make the port of it that ``udp_port`` says (rdma_flow_label_to_udp_sport of Linux 5.8). With no label they take
one from the numbers of the queue pairs, which each run has others of.
"""

from __future__ import annotations

import typing
import zlib

#: of a flow label
_BITS = 20
#: RoCE v2 uses the dynamic ports of RFC 6335
_FIRST_PORT = 0xC000
#: drivers of PCI functions whose part of RDMA makes a UDP source port of the flow label: mlx5 from Linux 5.8 on, irdma
#: from 5.18, hns, mana and ionic
PORT_OF_LABEL = frozenset(("mlx5_core", "ice", "hns3", "mana", "ionic"))


def compute_flow_label(rail: int, source: str, target: str, other: int = 0) -> int:
    """Return the label of all tests from one node to another, so that each takes the way that the first one took. 0
    would be none.

    :param other: number of a further flow of theirs
    """
    return (zlib.crc32(f"{rail} {source} {target}{f' {other}' if other else ''}".encode()) & ((1 << _BITS) - 1)) or 1


def compute_udp_port(label: int) -> int:
    """Return the UDP port that the kernel's drivers make of a label."""
    return _FIRST_PORT | ((label & 0x3FFF) ^ (label >> 14))


def not_of_label(drivers: typing.Iterable[str]) -> list[str]:
    """Return the drivers of which it is not known whether they make a port of the label."""
    return sorted(set(drivers) - PORT_OF_LABEL)
