# SPDX-License-Identifier: GPL-3.0-or-later

"""Ranges of numbers from outside, and limits on the amount of data from one node. A limit is the architectural maximum,
or ten times the largest known value.

[Linux: Documentation/admin-guide/abi; PCIe: PCI Express Base Specification 5.0; IEEE 802.1Q-2018]
"""

from __future__ import annotations

import typing

from .form import Bound, Range

_BITS_16, _BITS_32, _BITS_64 = 2**16 - 1, 2**32 - 1, 2**64 - 1

#: things of a machine, a fabric or a cluster
COUNT = Range("a count", 0, 2**31 - 1)
COUNTER = Range("a 64-bit counter", 0, _BITS_64)
#: of a program's argument or a resource's limit; a kernel counts them in 64 bits
BYTES = Range("a number of bytes", 0, _BITS_64)
#: -1 stands for no limit
BYTES_OR_ALL = Range("a number of bytes, or -1 for no limit", -1, _BITS_64)
#: 32 bits [include/uapi/asm-generic/posix_types.h __kernel_uid32_t]
USER = Range("a user ID", 0, _BITS_32)
#: a run takes hours, and no wait of it a year
SECONDS = Range("a time in seconds", 0, 31_536_000)
#: of a message, in microseconds; a lost one is sent again after seconds
LATENCY = Range("a latency in us", 0, 1_000_000_000)
#: the kernel's last second [include/linux/ktime.h KTIME_SEC_MAX]
MOMENT = Range("seconds since 1970", 0, 9_223_372_036)
#: loopback has the most [drivers/net/loopback.c]
MTU = Range("an MTU in bytes", 0, 65_536)
#: 16 bits, counted from 1 [include/linux/netdevice.h dev_port]
DEV_PORT = Range("the port of a network interface", 0, _BITS_16 + 1)
#: 12 bits, and 3 [IEEE 802.1Q-2018, 9.6]
VLAN, VLAN_QOS = Range("a VLAN ID", 0, 4095), Range("a VLAN priority", 0, 7)
#: two octets of LLDP [IEEE 802.1Q-2018, D.2.1]
PORT_VLAN = Range("a VLAN ID that LLDP reports", 0, _BITS_16)
#: [include/uapi/linux/if_link.h ifla_vf_rate]
RATE_MBPS = Range("a rate in Mb/s", 0, _BITS_32)
#: 16 bits each [PCIe, 9.3.3]
VFS, ROUTING_ID = Range("a number of virtual functions", 0, _BITS_16), Range("a routing ID offset", 0, _BITS_16)
BUS, BAR = Range("the number of a PCI bus", 0, 255), Range("the number of a BAR", 0, 5)
#: [PCIe, 7.7.8.2]
ACS = Range("a 16-bit register", 0, _BITS_16)
#: [arch Kconfig, NODES_SHIFT: 10 at most]
NUMA_NODE = Range("the number of a NUMA node", 0, 1023)
#: a node has 16 HCAs of the network
RAIL = Range("the number of a rail", 0, 4095)
#: a 20-bit field of IPv6 [RFC 6437]
FLOW_LABEL = Range("a flow label", 0, 2**20 - 1)
TRAFFIC_CLASS = Range("a traffic class", 0, 255)

#: the collection reads some 50 kinds of objects
MOST_KINDS = 512
#: a node has some ten files of each function that it may fail to read
MOST_MESSAGES = 65_536

Count = typing.Annotated[int, COUNT]
Counter = typing.Annotated[int, COUNTER]
Bytes = typing.Annotated[int, BYTES]
BytesOrAll = typing.Annotated[int, BYTES_OR_ALL]
User = typing.Annotated[int, USER]
Seconds = typing.Annotated[float, SECONDS]
Latency = typing.Annotated[float, LATENCY]
Moment = typing.Annotated[float, MOMENT]
Mtu = typing.Annotated[int, MTU]
DevPort = typing.Annotated[int, DEV_PORT]
Vlan = typing.Annotated[int, VLAN]
VlanQos = typing.Annotated[int, VLAN_QOS]
PortVlan = typing.Annotated[int, PORT_VLAN]
RateMbps = typing.Annotated[int, RATE_MBPS]
Vfs = typing.Annotated[int, VFS]
RoutingId = typing.Annotated[int, ROUTING_ID]
Bus = typing.Annotated[int, BUS]
Bar = typing.Annotated[int, BAR]
AcsBits = typing.Annotated[int, ACS]
NumaNode = typing.Annotated[int, NUMA_NODE]
Rail = typing.Annotated[int, RAIL]
FlowLabel = typing.Annotated[int, FLOW_LABEL]
TrafficClass = typing.Annotated[int, TRAFFIC_CLASS]
#: of a node, for a reader
Messages = typing.Annotated[tuple[str, ...], Bound("messages", MOST_MESSAGES)]
