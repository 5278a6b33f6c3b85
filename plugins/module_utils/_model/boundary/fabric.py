# SPDX-License-Identifier: GPL-3.0-or-later

"""What names ports in an InfiniBand fabric, and what can be true of them. [InfiniBand Architecture Specification 1.5, volume 1, 4.1]"""

from __future__ import annotations

import re
import typing

from .form import Form, Range, pattern

_GUID = re.compile(r"0x[0-9a-f]{16}", re.ASCII)
_PKEY = re.compile(r"0x[0-9a-f]{1,4}", re.ASCII)

GUID = Form("a GUID of 0x and 16 hexadecimal digits", "0xb83fd20300e00000", 18, pattern(_GUID))
#: of the table of a port: mlx5 has 128 (PartitionCap of smpquery nodeinfo)
MOST_PKEYS = 1024
PKEY = Form("a partition key", "0xffff", 6, pattern(_PKEY))
#: unicast; 0xc000 and above are groups
LID = Range("a LID", 1, 0xBFFF)
PORT = Range("a port", 0, 255)
#: a slot of PCIe 7.0 x16 has 2,048, a port of XDR 800
GBPS = Range("a rate in Gb/s", 0, 10_000)

#: the slowest of Ethernet has 10 Mb/s
LINK_GBPS = Range("the rate of a link in Gb/s", 0.01, 10_000)
PCIE_SPEED = Range("the speed of a PCIe lane in GT/s", 2.5, 1024)
LANES = Range("a number of PCIe lanes", 1, 32)
#: 3 bits
LMC = Range("a LID mask count", 0, 7)
#: as ibnetdiscover writes it, in two digits
WIDTH = Range("the lanes of a link", 0, 99)
PACKETS = Range("a number of packets", 0, 1_000_000_000)
#: counters have 64 bits at most
COUNT = Range("the value of a counter", 0, 2**64 - 1)
PAYLOAD = Range("the payload of a PCIe packet in bytes", 128, 4096)

Guid = typing.Annotated[str, GUID]
PKey = typing.Annotated[str, PKEY]
Lid = typing.Annotated[int, LID]
Lmc = typing.Annotated[int, LMC]
LinkLanes = typing.Annotated[int, WIDTH]
Packets = typing.Annotated[int, PACKETS]
Count = typing.Annotated[int, COUNT]
Gbps = typing.Annotated[float, GBPS]
LinkGbps = typing.Annotated[float, LINK_GBPS]
PcieSpeed = typing.Annotated[float, PCIE_SPEED]
Lanes = typing.Annotated[int, LANES]
Payload = typing.Annotated[int, PAYLOAD]
