# SPDX-License-Identifier: GPL-3.0-or-later

"""HCAs of a node, as sysfs reports them. Created by _observe and _parse, read by _check and _render.

Units: rates in Gb/s (decimal), speeds of PCIe in GT/s. GUIDs are 0x and 16 hex digits in lower case; PCI addresses are
dddd:bb:dd.f in lower case.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import Device, HardwareAddress, Interface, PciAddress, PciId, RdmaDevice
from ..boundary.fabric import (
    MOST_PKEYS,
    Guid,
    Lanes,
    Lid,
    LinkGbps,
    LinkLanes,
    Payload,
    PcieSpeed,
    PKey,
    PortNumber,
    QueuePair,
)
from ..boundary.form import Bound
from ..boundary.kubernetes import Uid
from ..boundary.numbers import DevPort, Messages, Mtu, NumaNode, RateMbps, Vfs, Vlan, VlanQos
from ..boundary.words import Version, Word

#: of the network on a node: 16 HCAs with 254 VFs each are 4,080. All checks go through them, and some once for each
MOST_FUNCTIONS = 4096
FUNCTIONS = Bound("functions of the network on a node", MOST_FUNCTIONS)
#: of an RDMA device: the number of a port has 8 bits, and 0 is none
MOST_PORTS = 255
PORTS = Bound("ports of a device", MOST_PORTS)
#: of one function; subfunctions and VLANs may be on it
NETDEVS = Bound("network interfaces of a function", 4096)
UPPERS = Bound("interfaces above a network interface", 4096)
#: of a device or a port that nobody has given one
NO_GUID = "0x0000000000000000"


@dataclasses.dataclass(frozen=True)
class PcieLink:
    """A PCIe link. Speeds are in GT/s and widths in lanes. A value is None if sysfs does not have it.

    :ivar current_speed: speed to which the link has trained
    :ivar current_width: width to which the link has trained
    :ivar max_speed: highest speed of the card
    :ivar max_width: highest width of the card
    :ivar slot_speed: highest speed of the port above the card: the slot, or a PCIe switch
    :ivar slot_width: highest width of that port
    :ivar payload: current MaxPayload, in bytes; None if the configuration space cannot be read
    :ivar payload_could: largest MaxPayload that the card and the port above it support
    """

    current_speed: typing.Optional[PcieSpeed] = None
    current_width: typing.Optional[Lanes] = None
    max_speed: typing.Optional[PcieSpeed] = None
    max_width: typing.Optional[Lanes] = None
    slot_speed: typing.Optional[PcieSpeed] = None
    slot_width: typing.Optional[Lanes] = None
    payload: typing.Optional[Payload] = None
    payload_could: typing.Optional[Payload] = None


def compute_pcie_gbps(speed: float, width: int) -> float:
    """Return the rate of a PCIe link in each direction, less its encoding, in Gb/s.

    Encoding: 8b/10b below 8 GT/s, 128b/130b up to 32 GT/s (PCI Express Base Specification 5.0, 4.2); from 64 GT/s on
    flits with 236 of 256 bytes for packets (6.0, 4.2.3).

    :param speed: speed of a lane in GT/s
    :param width: number of lanes of the link
    """
    return speed * width * (0.8 if speed < 8 else 128 / 130 if speed < 64 else 236 / 256)


@dataclasses.dataclass(frozen=True)
class PciFunction:
    """A PCI function that is a network controller or has an RDMA device.

    :ivar address: PCI address
    :ivar vendor: PCI vendor id, four hex digits
    :ivar device: PCI device id, four hex digits
    :ivar device_class: first four hex digits of the class: 0207 InfiniBand, 0200 Ethernet
    :ivar driver: name of the bound kernel driver; None without one
    :ivar numa_node: NUMA node of the function; None if the platform does not report it (-1)
    :ivar link: PCIe link between the function and the port above it
    """

    address: PciAddress
    vendor: PciId
    device: PciId
    device_class: PciId
    driver: typing.Optional[Word] = None
    numa_node: typing.Optional[NumaNode] = None
    link: PcieLink = PcieLink()


@dataclasses.dataclass(frozen=True)
class Netdev:
    """A network interface of an HCA.

    :ivar mtu: MTU in bytes; IPoIB in datagram mode has 4 less than its multicast group
    :ivar state: operational state of the kernel: up, down, dormant ...; None if not read
    :ivar port_guid: GUID of the port, from the 20-byte IPoIB hardware address; None on Ethernet
    :ivar subnet_prefix: upper half of the port's GID, from the IPoIB hardware address; None on Ethernet
    :ivar queue_pair: number of the queue pair, from the IPoIB hardware address; None on Ethernet
    :ivar port: port number of the RDMA device
    :ivar bond: name of the bond to which it belongs; None for none
    :ivar bridge: name of the bridge of which it or a VLAN on it is a port, ovs-system for Open vSwitch; None for none
    :ivar speed_gbps: rate of an Ethernet link in Gb/s; None without a link, or if the driver does not report it
    :ivar supported_gbps: highest rate in Gb/s that the port supports, by ethtool; None if not reported
    :ivar partner_gbps: highest rate in Gb/s that the link partner advertises, with autonegotiation; None if not
        reported
    :ivar uppers: names of the interfaces above it at any distance: VLANs, bonds and bridges, also bridges of a VLAN
    """

    name: Interface
    hardware_address: HardwareAddress
    mtu: typing.Optional[Mtu] = None
    state: typing.Optional[Word] = None
    port_guid: typing.Optional[Guid] = None
    subnet_prefix: typing.Optional[Guid] = None
    queue_pair: typing.Optional[QueuePair] = None
    port: typing.Optional[DevPort] = None
    bond: typing.Optional[Interface] = None
    speed_gbps: typing.Optional[LinkGbps] = None
    supported_gbps: typing.Optional[LinkGbps] = None
    partner_gbps: typing.Optional[LinkGbps] = None
    bridge: typing.Optional[Interface] = None
    uppers: typing.Annotated[tuple[Interface, ...], UPPERS] = ()


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of an RDMA device.

    :ivar number: port number of the RDMA device, from 1
    :ivar state: DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER or NOP
    :ivar physical_state: Polling, Disabled, LinkUp...
    :ivar link_layer: InfiniBand or Ethernet
    :ivar rate_gbps: width x speed, in Gb/s
    :ivar width: number of lanes
    :ivar speed: name of the speed: EDR, HDR, NDR...
    :ivar lid: LID of the port; None if it has none (0)
    :ivar sm_lid: LID of the subnet manager; None if none has assigned one (0)
    :ivar guid: InfiniBand only: the lower half of the first GID
    :ivar pkeys: partition keys that are set, 0xffff: full member of the default partition
    :ivar mtu: largest MTU of its network interfaces, in bytes; None without one, since sysfs has no file for the MTU of
        the port itself
    """

    ONCE = ("number",)

    number: PortNumber
    state: typing.Optional[Word] = None
    physical_state: typing.Optional[Word] = None
    link_layer: typing.Optional[Word] = None
    rate_gbps: typing.Optional[LinkGbps] = None
    width: typing.Optional[LinkLanes] = None
    speed: typing.Optional[Word] = None
    lid: typing.Optional[Lid] = None
    sm_lid: typing.Optional[Lid] = None
    guid: typing.Optional[Guid] = None
    pkeys: typing.Annotated[tuple[PKey, ...], Bound("partition keys", MOST_PKEYS)] = ()
    mtu: typing.Optional[Mtu] = None

    @property
    def linked(self) -> bool:
        """Return whether the port may have a link: its physical state is LinkUp or was not read."""
        return self.physical_state in (None, "LinkUp")


@dataclasses.dataclass(frozen=True)
class Sriov:
    """The values of the SR-IOV files of a physical function in sysfs. A value is None if the file is absent, because
    SR-IOV is off in the firmware or the function has no such capability.

    :ivar total: number of VFs that it offers (sriov_totalvfs)
    :ivar current: number of VFs that exist (sriov_numvfs)
    """

    total: typing.Optional[Vfs] = None
    current: typing.Optional[Vfs] = None


#: why a physical function has no SR-IOV files, as its PCI configuration space shows it:
#: hidden: the space ends after 256 bytes, so a bridge or the BIOS hides all extended capabilities;
#: off: the function offers no SR-IOV capability, or one with 0 VFs: switched off in its firmware, or it never had one;
#: unused: it offers VFs, and the kernel does not take them up
SriovAbsence = typing.Literal["hidden", "off", "unused"]
#: what the port of a VF does: as that of the physical function, or always the same
LinkPolicy = typing.Literal["Follow", "Up", "Down"]


@dataclasses.dataclass(frozen=True)
class VfAdministration:
    """The settings of a VF in its physical function. A field is None if neither ``ip link`` nor sysfs reports the
    setting. Only NVIDIA's own driver packages (MLNX_OFED, DOCA) have GUIDs and link policy in sysfs.

    :ivar node_guid: node GUID of the VF
    :ivar port_guid: port GUID of the VF
    :ivar link_policy: link state that the physical function imposes on the VF
    :ivar vlan: VLAN id; 0 is none
    :ivar vlan_qos: 802.1p priority in the VLAN tag
    :ivar trust: whether the VF is trusted
    :ivar spoof_check: whether the NIC drops packets of the VF with another source MAC address
    :ivar min_tx_rate: guaranteed transmit rate in Mb/s; 0 for none
    :ivar max_tx_rate: highest transmit rate in Mb/s; 0 for no limit
    """

    node_guid: typing.Optional[Guid] = None
    port_guid: typing.Optional[Guid] = None
    link_policy: typing.Optional[LinkPolicy] = None
    vlan: typing.Optional[Vlan] = None
    vlan_qos: typing.Optional[VlanQos] = None
    trust: typing.Optional[bool] = None
    spoof_check: typing.Optional[bool] = None
    min_tx_rate: typing.Optional[RateMbps] = None
    max_tx_rate: typing.Optional[RateMbps] = None


@dataclasses.dataclass(frozen=True)
class HeldParts:
    """The interfaces and the RDMA device of an HCA that are in the network namespace of a pod, so that the node's sysfs
    does not show them.

    :ivar netdevs: network interfaces, by their names in that namespace
    :ivar names: their earlier names on the node, if the CNI plugin stores them
    :ivar rdma_device: RDMA device with its ``node_guid`` and ``ports``; only in exclusive mode, in which it moves with
        its interface
    :ivar idle: name of that namespace below /run/netns if it has no process; None if it has one
    """

    netdevs: typing.Annotated[tuple[Netdev, ...], NETDEVS] = ()
    names: typing.Annotated[tuple[Interface, ...], NETDEVS] = ()
    rdma_device: typing.Optional[RdmaDevice] = None
    node_guid: typing.Optional[Guid] = None
    ports: typing.Annotated[tuple[Port, ...], PORTS] = ()
    idle: typing.Optional[Word] = None


@dataclasses.dataclass(frozen=True)
class Hca:
    """A physical or virtual PCI function for the network with its interfaces and RDMA device, or an RDMA device that is
    not on PCI.

    :ivar name: name for messages: RDMA device (mlx5_0), else the netdev, else the PCI address
    :ivar rdma_device: name of the RDMA device; None if the function has none
    :ivar netdevs: network interfaces of the function on the node
    :ivar pci: PCI function; None for an RDMA device that is not on PCI
    :ivar node_guid: node GUID of the RDMA device
    :ivar node_description: node description of the RDMA device, which the subnet manager reads
    :ivar firmware: version of the running firmware
    :ivar board: PSID of the board
    :ivar hca_type: model as the driver names it, such as MT4129
    :ivar ports: ports of the RDMA device
    :ivar sriov: SR-IOV files of a physical function; None for a VF
    :ivar physical_function: PCI address of the PF, for a VF
    :ivar vf_index: index of a VF
    :ivar administration: settings of a VF in its PF, if they are readable
    :ivar sriov_absence: reason why a physical function has no SR-IOV files; None if its configuration space cannot be
        read (as root)
    :ivar held: parts that are in a pod; None if the node has all parts
    :ivar unread: existing files that could not be read or parsed (``ports/1/state``); their values are None and unknown
    """

    ONCE = ("name",)

    name: Device
    rdma_device: typing.Optional[RdmaDevice] = None
    netdevs: typing.Annotated[tuple[Netdev, ...], NETDEVS] = ()
    pci: typing.Optional[PciFunction] = None
    node_guid: typing.Optional[Guid] = None
    node_description: typing.Optional[str] = None
    firmware: typing.Optional[Version] = None
    board: typing.Optional[Word] = None
    hca_type: typing.Optional[Word] = None
    ports: typing.Annotated[tuple[Port, ...], PORTS] = ()
    sriov: typing.Optional[Sriov] = None
    physical_function: typing.Optional[PciAddress] = None
    vf_index: typing.Optional[Vfs] = None
    administration: typing.Optional[VfAdministration] = None
    sriov_absence: typing.Optional[SriovAbsence] = None
    held: typing.Optional[HeldParts] = None
    unread: Messages = ()

    @property
    def is_virtual(self) -> bool:
        return self.physical_function is not None

    @property
    def all_netdevs(self) -> tuple[Netdev, ...]:
        """Return the network interfaces of the HCA, including those that are in the network namespace of a pod."""
        return (*self.netdevs, *(self.held.netdevs if self.held else ()))

    @property
    def all_ports(self) -> tuple[Port, ...]:
        """Return the ports of the HCA, even if its RDMA device is in a pod."""
        return self.ports or (self.held.ports if self.held else ())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the network interfaces of the HCA on the node. For interfaces that are in a pod, return
        the names that they had on the node before.
        """
        return (*(netdev.name for netdev in self.netdevs), *(self.held.names if self.held else ()))


@dataclasses.dataclass(frozen=True)
class NodeHcas:
    """The HCAs of one node, as the module node_info returns them.

    :ivar hcas: HCAs of the node
    :ivar errors: failed reads, with the reason; an unread file never counts as absent
    :ivar boot: id of the boot in which the HCAs were read; None if it is not known
    """

    hcas: typing.Annotated[tuple[Hca, ...], FUNCTIONS]
    errors: Messages = ()
    boot: typing.Optional[Uid] = None

    @property
    def functions(self) -> tuple[Hca, ...]:
        """Return one HCA for each PCI function of the node. A function with several RDMA devices is represented by the
        first one.
        """
        found: dict[str, Hca] = {}
        for hca in self.hcas:
            if hca.pci is not None:
                found.setdefault(hca.pci.address, hca)
        return tuple(found.values())

    def at(self, address: typing.Optional[str]) -> typing.Optional[Hca]:
        """Return the HCA at a PCI address. Return None if the node has no HCA there, or if the address is None."""
        return next((hca for hca in self.hcas if hca.pci is not None and hca.pci.address == address), None)

    def carrier(self, hca: Hca) -> typing.Optional[Hca]:
        """Return the HCA whose RDMA device also serves another function, because both belong to one bond (RoCE). Return
        None if there is no such HCA, or if the function has an RDMA device of its own.

        :param hca: the function without an RDMA device
        """
        bonds = {netdev.bond for netdev in hca.netdevs if netdev.bond}
        if hca.rdma_device or not bonds:
            return None
        others = (
            other for other in self.hcas if other.rdma_device and any(netdev.bond in bonds for netdev in other.netdevs)
        )
        return next(others, None)


#: HCAs of one node (module node_info)
ObservedHcas = Observed[NodeHcas]
