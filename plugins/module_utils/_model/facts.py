# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What is really there. Filled by _parse and _observe, read by _check and _render.

Units: rates in Gb/s (decimal), speeds of PCIe in GT/s, times in seconds. GUIDs are 0x and 16 hex digits in lower case;
PCI addresses are dddd:bb:dd.f in lower case.
"""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class PcieLink:
    """Speed in GT/s and width in lanes; None where sysfs does not say."""

    current_speed: typing.Optional[float] = None
    current_width: typing.Optional[int] = None
    max_speed: typing.Optional[float] = None
    max_width: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class PciFunction:
    """A PCI function that is a network controller or has an RDMA device.

    :ivar device_class: first four hex digits of the class: 0207 InfiniBand, 0200 Ethernet
    :ivar numa_node: None when the platform does not say (-1)
    """

    address: str
    vendor: str
    device: str
    device_class: str
    driver: typing.Optional[str] = None
    numa_node: typing.Optional[int] = None
    link: PcieLink = PcieLink()


@dataclasses.dataclass(frozen=True)
class Netdev:
    """A network interface of an HCA.

    :ivar port_guid: from the 20-byte IPoIB hardware address (row S1.1); None on Ethernet
    """

    name: str
    hardware_address: str
    mtu: typing.Optional[int] = None
    state: typing.Optional[str] = None
    port_guid: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of an RDMA device.

    :ivar state: DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER or NOP
    :ivar physical_state: Polling, Disabled, LinkUp...
    :ivar link_layer: InfiniBand or Ethernet
    :ivar rate_gbps: width x speed, in Gb/s
    :ivar width: lanes
    :ivar speed: name of the speed: EDR, HDR, NDR...
    :ivar lid: None when the port has none (0)
    :ivar sm_lid: None when no subnet manager gave one (0)
    """

    number: int
    state: typing.Optional[str] = None
    physical_state: typing.Optional[str] = None
    link_layer: typing.Optional[str] = None
    rate_gbps: typing.Optional[float] = None
    width: typing.Optional[int] = None
    speed: typing.Optional[str] = None
    lid: typing.Optional[int] = None
    sm_lid: typing.Optional[int] = None
    guid: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Sriov:
    """SR-IOV files of a physical function; None where the file is absent (off in firmware, or no capability)."""

    total: typing.Optional[int] = None
    current: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Hca:
    """One PCI function of the network, physical or virtual, or an RDMA device without one.

    :ivar name: RDMA device (mlx5_0), else the netdev, else the PCI address: what a reader calls it
    :ivar rdma_device: None where there is none
    :ivar physical_function: PCI address of the PF, for a VF
    :ivar vf_index: for a VF
    """

    name: str
    rdma_device: typing.Optional[str] = None
    netdevs: typing.Tuple[Netdev, ...] = ()
    pci: typing.Optional[PciFunction] = None
    node_guid: typing.Optional[str] = None
    node_description: typing.Optional[str] = None
    firmware: typing.Optional[str] = None
    board: typing.Optional[str] = None
    hca_type: typing.Optional[str] = None
    ports: typing.Tuple[Port, ...] = ()
    sriov: typing.Optional[Sriov] = None
    physical_function: typing.Optional[str] = None
    vf_index: typing.Optional[int] = None

    @property
    def is_virtual(self) -> bool:
        return self.physical_function is not None


@dataclasses.dataclass(frozen=True)
class NodeHcas:
    """Answer of hca_info for one node.

    :ivar errors: what could not be read, and why; an unread file is never taken for an absent one
    """

    hcas: typing.Tuple[Hca, ...]
    errors: typing.Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class SubnetManager:
    """One subnet manager as an SMInfo answer shows it. state: MASTER, STANDBY, DISCOVER or NOTACT."""

    lid: int
    guid: str
    state: str
    priority: int
    activity: int


@dataclasses.dataclass(frozen=True)
class SeenSubnet:
    """What one port says of its subnet.

    :ivar masters: what sminfo answered, at most one
    :ivar others: further subnet managers that the subnet administration knows (SMInfo records)
    :ivar activity_later: activity count of the same master at a second read, seconds later; None when it was not read
    :ivar error: text of the tool when it failed
    """

    rdma_device: str
    port: int
    master: typing.Optional[SubnetManager] = None
    others: typing.Tuple[SubnetManager, ...] = ()
    activity_later: typing.Optional[int] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class LinkEnd:
    """One end of a link. kind: Switch or Ca."""

    kind: str
    guid: str
    port: int
    description: str = ""
    lid: typing.Optional[int] = None
    port_guid: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Link:
    """A link between two ports; width in lanes, speed by its name."""

    a: LinkEnd
    b: LinkEnd
    width: int
    speed: str


@dataclasses.dataclass(frozen=True)
class FabricNode:
    """A switch or a CA of the topology."""

    kind: str
    guid: str
    description: str
    ports: int
    lid: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Topology:
    """What ibnetdiscover sees from one port. Each link is there once."""

    nodes: typing.Tuple[FabricNode, ...]
    links: typing.Tuple[Link, ...]


@dataclasses.dataclass(frozen=True)
class Ping:
    """One ibping run, client side.

    :ivar transmitted: packets
    :ivar received: packets; its own exit code and round-trip times say nothing (they are wrong in every version)
    """

    destination_lid: int
    transmitted: int
    received: int
    error: typing.Optional[str] = None
