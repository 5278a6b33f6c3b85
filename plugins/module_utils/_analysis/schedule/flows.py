# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the flow label of a test, for switches that choose one of several links by a hash of the flow. RoCE v2
packets of different flows between the same two addresses differ only in their UDP source port.

perftest sets the flow label of its queue pairs by ``--flow_label``, since release 23.10 (its commit 69bc866). The
kernel drivers compute the UDP source port from it (rdma_flow_label_to_udp_sport of Linux 5.8). Without a flow label
they derive the port from the numbers of the queue pairs, which change with each run.
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
    """Return the flow label of all tests from one node to another, so that repeated tests take the same path. The label
    is never 0, which would mean no label.

    :param rail: rail of the test
    :param source: name of the node that sends
    :param target: name of the node that receives
    :param other: number of an additional flow between them; 0 for the first flow
    """
    return (zlib.crc32(f"{rail} {source} {target}{f' {other}' if other else ''}".encode()) & ((1 << _BITS) - 1)) or 1


def compute_udp_port(label: int) -> int:
    """Return the UDP source port that the kernel drivers compute from a flow label.

    :param label: flow label of the queue pair
    """
    return _FIRST_PORT | ((label & 0x3FFF) ^ (label >> 14))


def not_of_label(drivers: typing.Iterable[str]) -> list[str]:
    """Return, of these drivers, those that are not known to compute the UDP source port from the flow label.

    :param drivers: names of kernel drivers
    """
    return sorted(set(drivers) - PORT_OF_LABEL)
