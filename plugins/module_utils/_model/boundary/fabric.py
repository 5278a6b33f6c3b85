# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats and ranges of identifiers and quantities of an InfiniBand fabric. [InfiniBand Architecture Specification 1.5,
volume 1, 4.1]
"""

from __future__ import annotations

import re
import typing

from .form import Bound, Form, Range, make_pattern

_GUID = re.compile(r"0x[0-9a-f]{16}", re.ASCII)
_PKEY = re.compile(r"0x[0-9a-f]{1,4}", re.ASCII)

GUID = Form("a GUID: 0x and 16 hexadecimal digits", "0xb83fd20300e00000", 18, make_pattern(_GUID))
#: of the table of a port: mlx5 has 128 (PartitionCap of smpquery nodeinfo)
MOST_PKEYS = 1024
PKEY = Form("a partition key", "0xffff", 6, make_pattern(_PKEY))
#: unicast; 0xc000 and above are groups
LID = Range("a LID", 1, 0xBFFF)
PORT = Range("a port number", 0, 255)
#: of a switch, and a number of ports, as ibnetdiscover writes it, in three digits; the largest real one has 8 bits
#: [14.2.5.3 NodeInfo]
SWITCH_PORT = Range("a port number of a switch", 0, 999)
#: of a port that nobody has given one it is 0
ANY_LID = Range("a 16-bit LID", 0, 0xFFFF)
#: 4 bits, and 32 [14.2.5.13 SMInfo]
SM_PRIORITY, SM_ACTIVITY = (
    Range("the priority of a subnet manager", 0, 15),
    Range("the activity count of a subnet manager", 0, 2**32 - 1),
)
#: 24 bits [3.5.3]
QUEUE_PAIR = Range("the number of a queue pair", 0, 2**24 - 1)
#: a slot of PCIe 7.0 x16 has 2,048, a port of XDR 800
GBPS = Range("a rate in Gb/s", 0, 10_000)

#: a domain of NVLink reaches some 1,000
BUS_GBS = Range("a bandwidth in GB/s", 0, 100_000)
#: the slowest of Ethernet has 10 Mb/s
LINK_GBPS = Range("the rate of a link in Gb/s", 0.01, 10_000)
PCIE_SPEED = Range("the speed of a PCIe lane in GT/s", 2.5, 1024)
LANES = Range("a number of PCIe lanes", 1, 32)
#: 3 bits [14.2.5.6 PortInfo]
LMC = Range("a LID mask count", 0, 7)
#: as ibnetdiscover writes it, in two digits
WIDTH = Range("the number of lanes of a link", 0, 99)
PACKETS = Range("a number of packets", 0, 1_000_000_000)
PAYLOAD = Range("the payload of a PCIe packet in bytes", 128, 4096)

#: of one fabric: 10,000 nodes with 8 HCAs each have 100,000 links (tests/benchmarks/topology.py)
FABRIC_NODES, LINKS, FABRIC_PORTS = (
    Bound("nodes of a fabric", 1 << 19),
    Bound("links of a fabric", 1 << 20),
    Bound("ports of a fabric", 1 << 21),
)
SWITCHES = Bound("switches of a fabric", 1 << 16)
#: of one port; PortCounters and PortCountersExtended have 60 [16.1.3.5, 16.1.4.11]
COUNTERS = Bound("counters of a port", 1024)

Guid = typing.Annotated[str, GUID]
PKey = typing.Annotated[str, PKEY]
Lid = typing.Annotated[int, LID]
Lmc = typing.Annotated[int, LMC]
LinkLanes = typing.Annotated[int, WIDTH]
Packets = typing.Annotated[int, PACKETS]
AnyLid = typing.Annotated[int, ANY_LID]
PortNumber = typing.Annotated[int, PORT]
SwitchPort = typing.Annotated[int, SWITCH_PORT]
SmPriority = typing.Annotated[int, SM_PRIORITY]
SmActivity = typing.Annotated[int, SM_ACTIVITY]
QueuePair = typing.Annotated[int, QUEUE_PAIR]
Gbps = typing.Annotated[float, GBPS]
BusGbs = typing.Annotated[float, BUS_GBS]
LinkGbps = typing.Annotated[float, LINK_GBPS]
PcieSpeed = typing.Annotated[float, PCIE_SPEED]
Lanes = typing.Annotated[int, LANES]
Payload = typing.Annotated[int, PAYLOAD]
