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

    :ivar mtu: in bytes; IPoIB in datagram mode has 4 less than its multicast group
    :ivar port_guid: from the 20-byte IPoIB hardware address (row S1.1); None on Ethernet
    :ivar subnet_prefix: the same: upper half of the port's GID
    :ivar queue_pair: the same
    :ivar port: number of the RDMA device's port that it is on
    :ivar bond: the bond that it is a part of
    """

    name: str
    hardware_address: str
    mtu: typing.Optional[int] = None
    state: typing.Optional[str] = None
    port_guid: typing.Optional[str] = None
    subnet_prefix: typing.Optional[str] = None
    queue_pair: typing.Optional[int] = None
    port: typing.Optional[int] = None
    bond: typing.Optional[str] = None


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
    :ivar guid: InfiniBand only: the lower half of the first GID
    :ivar pkeys: partition keys that are set, 0xffff: full member of the default partition
    :ivar mtu: largest of its network interfaces, in bytes; None without one: sysfs has no file for the MTU of the port itself
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
    pkeys: typing.Tuple[str, ...] = ()
    mtu: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Sriov:
    """SR-IOV files of a physical function; None where the file is absent (off in firmware, or no capability)."""

    total: typing.Optional[int] = None
    current: typing.Optional[int] = None


#: why a physical function has no SR-IOV files, as its PCI configuration space shows it:
#: hidden: the space ends after 256 bytes, so a bridge or the BIOS hides all extended capabilities;
#: off: the function offers no SR-IOV capability, or one with 0 VFs: switched off in its firmware, or it never had one;
#: unused: it offers VFs, and the kernel does not take them up
SriovAbsence = typing.Literal["hidden", "off", "unused"]


@dataclasses.dataclass(frozen=True)
class VfAdministration:
    """What the physical function has set for a VF. None where neither ``ip link`` nor sysfs shows it; only NVIDIA's own driver packages
    (MLNX_OFED, DOCA) show GUIDs and link policy in sysfs.

    :ivar link_policy: Follow, Up or Down
    :ivar vlan: VLAN id, and ``vlan_qos`` its priority; 0 is none
    :ivar min_tx_rate: in Mb/s, like ``max_tx_rate``; 0 is no limit
    """

    node_guid: typing.Optional[str] = None
    port_guid: typing.Optional[str] = None
    link_policy: typing.Optional[str] = None
    vlan: typing.Optional[int] = None
    vlan_qos: typing.Optional[int] = None
    trust: typing.Optional[bool] = None
    spoof_check: typing.Optional[bool] = None
    min_tx_rate: typing.Optional[int] = None
    max_tx_rate: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Hca:
    """One PCI function of the network, physical or virtual, or an RDMA device without one.

    :ivar name: RDMA device (mlx5_0), else the netdev, else the PCI address: what a reader calls it
    :ivar rdma_device: None where there is none
    :ivar physical_function: PCI address of the PF, for a VF
    :ivar vf_index: for a VF
    :ivar administration: for a VF, where anything shows it
    :ivar sriov_absence: for a physical function without SR-IOV files, where its configuration space can be read (as root)
    :ivar unread: files that are there but could not be read or understood (``ports/1/state``); their values are None, and unknown
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
    administration: typing.Optional[VfAdministration] = None
    sriov_absence: typing.Optional[SriovAbsence] = None
    unread: typing.Tuple[str, ...] = ()

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

    def carrier(self, hca: Hca) -> typing.Optional[Hca]:
        """The HCA with an RDMA device that stands for this function too, because both are parts of one bond (RoCE); None when there is none."""
        bonds = {netdev.bond for netdev in hca.netdevs if netdev.bond}
        others = (other for other in self.hcas if other.rdma_device and any(netdev.bond in bonds for netdev in other.netdevs))
        return None if hca.rdma_device else next(others, None)


@dataclasses.dataclass(frozen=True)
class SubnetManager:
    """One subnet manager as an SMInfo answer shows it. state: MASTER, STANDBY, DISCOVER or NOTACT."""

    lid: int
    guid: str
    state: str
    priority: int
    activity: int


@dataclasses.dataclass(frozen=True)
class LostManager:
    """What is left of a subnet manager that does not answer: the port that was its.

    :ivar lid: the LID that the asking port still has for its manager
    :ivar description: node description at that LID; None when nothing answers there
    :ivar is_manager: whether that port still says that a manager runs on it (IsSM bit); None when nothing answers there
    """

    lid: int
    description: typing.Optional[str] = None
    is_manager: typing.Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class SeenSubnet:
    """What one port says of its subnet.

    :ivar master: what sminfo answered: the subnet manager that gave this port its LID, whatever its state
    :ivar error: why there is no answer: the tool's own text, or the state of the port. A subnet without a manager is such a fact
    :ivar silent: the question went out and nobody answered; False with an error means that it could not be asked
    :ivar lost: of a silent subnet, where its manager was; None when the port has no LID of one
    """

    rdma_device: str
    port: int
    master: typing.Optional[SubnetManager] = None
    error: typing.Optional[str] = None
    silent: bool = False
    lost: typing.Optional[LostManager] = None

    @property
    def cut_off(self) -> bool:
        """Nobody answers, not even the port where the manager was: that one is gone, or the way to it."""
        return self.lost is not None and self.lost.description is None


@dataclasses.dataclass(frozen=True)
class ManagerPort:
    """A port with the IsSM bit, by the subnet administration, and what the manager there answered itself; or why it did not."""

    lid: int
    manager: typing.Optional[SubnetManager] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenManagers:
    """All subnet managers of a fabric, as seen from one port.

    :ivar error: why there are none, or why the count was not read; then what is here is what was read before
    :ivar master: GUID of the manager that this port sees
    :ivar activity_first: activity count of the master in its SMInfo record; None when it was not read
    :ivar activity_later: the same at a second read, ``activity_seconds`` later. Both come from the subnet administration, because each
        answer to sminfo itself raises the count
    :ivar others_refreshed: whether a record of another manager changed between the two looks: the master reads them when it sweeps, so this
        proves a sweep, while its own count also rises with each answer to a standby that polls it. None when there is no other manager
    """

    ports: typing.Tuple[ManagerPort, ...] = ()
    error: typing.Optional[str] = None
    master: typing.Optional[str] = None
    activity_first: typing.Optional[int] = None
    activity_later: typing.Optional[int] = None
    activity_seconds: typing.Optional[float] = None
    others_refreshed: typing.Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class LinkEnd:
    """One end of a link. kind: Switch, Ca or Router; its description is that of the FabricNode with this guid."""

    kind: str
    guid: str
    port: int
    lid: typing.Optional[int] = None
    port_guid: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Link:
    """A link between two ports; width in lanes, speed by its name; None where the tool prints question marks."""

    a: LinkEnd
    b: LinkEnd
    width: typing.Optional[int]
    speed: typing.Optional[str]


@dataclasses.dataclass(frozen=True)
class FabricNode:
    """A switch, a CA or a router of the topology.

    :ivar aggregation: a SHARP aggregation node: a CA inside a switch, and no HCA of a server
    """

    kind: str
    guid: str
    description: str
    ports: int
    lid: typing.Optional[int] = None
    aggregation: bool = False


@dataclasses.dataclass(frozen=True)
class Topology:
    """What ibnetdiscover sees from one port. Each link is there once."""

    nodes: typing.Tuple[FabricNode, ...]
    links: typing.Tuple[Link, ...]


@dataclasses.dataclass(frozen=True)
class SlowPort:
    """A port whose link runs below what both of its ends support.

    :ivar guid: of the switch, or of the port of a CA
    :ivar could_be: in the tool's words: ``12X``, ``106.25 Gbps``
    """

    guid: str
    port: int
    could_be: str


@dataclasses.dataclass(frozen=True)
class SeenCapabilities:
    """The links below their capability. links: how many links were compared, each counted at both of its ends. error: why none were."""

    slow: typing.Tuple[SlowPort, ...] = ()
    links: int = 0
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PortErrors:
    """Error counters of a port that are not 0, by their names in PortCounters (SymbolErrorCounter). guid: of the switch, or of the port of a CA."""

    guid: str
    port: int
    counters: typing.Dict[str, int]


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """One reading of the error counters of a whole fabric.

    :ivar ports: those with an error counted
    :ivar checked: number of ports that were read
    :ivar failures: queries without an answer: so many ports are not known
    """

    ports: typing.Tuple[PortErrors, ...]
    checked: int
    failures: int = 0


@dataclasses.dataclass(frozen=True)
class SeenErrors:
    """Two readings, ``seconds`` apart. error: why one of them is missing."""

    first: typing.Optional[ErrorReport] = None
    later: typing.Optional[ErrorReport] = None
    seconds: float = 0.0
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenTopology:
    """What one port shows of its fabric.

    :ivar topology: None: see ``error``; then links and counters were not read either
    :ivar managers: None when the port was not asked for them; so for the others
    """

    rdma_device: str
    port: int
    topology: typing.Optional[Topology] = None
    error: typing.Optional[str] = None
    managers: typing.Optional[SeenManagers] = None
    capabilities: typing.Optional[SeenCapabilities] = None
    errors: typing.Optional[SeenErrors] = None


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the port of an HCA is.

    :ivar hca: its name as a reader calls it: the RDMA device where there is one
    :ivar rail: 0 for the first HCA of each node on the fabric, the same on every node
    :ivar leaf: description of the switch at the other end of its cable, the GUID of a nameless one; None when no topology shows it
    :ivar leaf_port: number of that switch's port; None as above
    """

    node: str
    hca: str
    rail: int
    leaf: typing.Optional[str] = None
    leaf_port: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Ping:
    """One ibping run, client side: from a port of this node to a LID.

    :ivar transmitted: packets
    :ivar received: packets; its own exit code and round-trip times say nothing (they are wrong in every version)
    :ivar resent: how often a packet was sent again because nothing had come back in time: a loss that ``received`` hides
    :ivar error: why nothing was measured; then the counts are 0 and mean nothing
    """

    rdma_device: str
    port: int
    destination_lid: int
    transmitted: int
    received: int
    error: typing.Optional[str] = None
    resent: int = 0

    @property
    def lost(self) -> int:
        """Messages without an answer: each packet that was given up, and each that was sent again."""
        return self.transmitted - self.received + self.resent

    @property
    def sent(self) -> int:
        """Messages, those that were sent again too."""
        return self.transmitted + self.resent


@dataclasses.dataclass(frozen=True)
class PingServer:
    """An ibping server on a port of this node. error: why it does not serve."""

    rdma_device: str
    port: int
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PortName:
    """A port of a node by its RDMA device, as the modules take it: mlx5_0, 1."""

    device: str
    port: int


@dataclasses.dataclass(frozen=True)
class PingTask:
    """What one port of a node shall ping, as the module ibping takes it."""

    device: str
    port: int
    lids: typing.Tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class PingPlan:
    """What one node does in stage reachability."""

    servers: typing.Tuple[PortName, ...] = ()
    clients: typing.Tuple[PingTask, ...] = ()


@dataclasses.dataclass(frozen=True)
class PingSchedule:
    """What all nodes do in stage reachability, and how long it takes.

    :ivar nodes: by node, for each node that was asked
    :ivar pairs: directions between two ports
    :ivar seconds: when nothing is lost, roughly
    :ivar most_seconds: when as much is lost as can be, with the servers' start. So long they must live
    """

    nodes: typing.Dict[str, PingPlan]
    pairs: int = 0
    seconds: int = 0
    most_seconds: int = 0


@dataclasses.dataclass(frozen=True)
class PciEvidence:
    """What sysfs shows of a network function, as evidence for SR-IOV.

    :ivar sriov_total: None when the file is absent: SR-IOV is off in firmware or BIOS, or the function has no such capability
    :ivar iommu_group: None when the function is in none
    :ivar physical_function: PCI address of the PF, for a VF
    """

    address: str
    driver: typing.Optional[str] = None
    sriov_total: typing.Optional[int] = None
    sriov_current: typing.Optional[int] = None
    iommu_group: typing.Optional[int] = None
    physical_function: typing.Optional[str] = None
    unread: typing.Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class GpuDriver:
    """NVIDIA's driver on a node, as far as it decides how NICs reach the memory of GPUs.

    :ivar version: of the module nvidia
    :ivar open: its kernel modules are the open ones; None when it does not say
    :ivar peermem: the module nvidia_peermem is loaded
    :ivar peer_clients: that have registered with the RDMA core of OFED: nvidia-peermem, nv_mem
    :ivar ofed: version of mlx5_core, which only OFED's has; None with the kernel's own
    """

    version: typing.Optional[str] = None
    open: typing.Optional[bool] = None
    peermem: bool = False
    peer_clients: typing.Tuple[str, ...] = ()
    ofed: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class NodePlatform:
    """Answer of sriov_platform_info for one node. None means: could not be read (see errors); empty means: read, and there is none.

    :ivar kernel_arguments: those of the kernel's command line that concern IOMMU and PCI; the others are none of our business
    :ivar iommu_devices: dmar0 (Intel, only while it translates), ivhd0 (AMD), smmu3... (Arm)
    :ivar iommu_groups: number of groups
    :ivar acpi_tables: those of DMAR, IVRS and IORT that the BIOS hands over
    :ivar machine: x86_64, aarch64...
    :ivar gpu: None where the module nvidia is not loaded
    """

    kernel: str
    machine: str
    kernel_arguments: typing.Optional[typing.Tuple[str, ...]] = None
    iommu_devices: typing.Optional[typing.Tuple[str, ...]] = None
    iommu_groups: typing.Optional[int] = None
    acpi_tables: typing.Optional[typing.Tuple[str, ...]] = None
    functions: typing.Tuple[PciEvidence, ...] = ()
    errors: typing.Tuple[str, ...] = ()
    gpu: typing.Optional[GpuDriver] = None


@dataclasses.dataclass(frozen=True)
class ObservedHcas:
    """hca_info of one node, or why there is no answer."""

    value: typing.Optional[NodeHcas] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedSubnets:
    """subnet_manager_info of one node, or why there is no answer."""

    value: typing.Optional[typing.Tuple[SeenSubnet, ...]] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedTopologies:
    """fabric_info of one node, or why there is no answer."""

    value: typing.Optional[typing.Tuple[SeenTopology, ...]] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedServers:
    """ibping servers of one node, or why there is no answer."""

    value: typing.Optional[typing.Tuple[PingServer, ...]] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedPings:
    """ibping clients of one node, or why there is no answer."""

    value: typing.Optional[typing.Tuple[Ping, ...]] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class ObservedPlatform:
    """sriov_platform_info of one node, or why there is no answer."""

    value: typing.Optional[NodePlatform] = None
    error: typing.Optional[str] = None
