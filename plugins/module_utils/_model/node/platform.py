# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of SR-IOV and GPUs in BIOS, kernel and driver of a node. PCI addresses are dddd:bb:dd.f in lower case."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.addresses import Address, Network
from ..boundary.devices import Interface, PciAddress
from ..boundary.form import Bound
from ..boundary.kubernetes import Uid
from ..boundary.numbers import AcsBits, Bar, Bus, Count, Messages, RoutingId, Vfs
from ..boundary.words import Version, Word
from .hca import FUNCTIONS, NETDEVS
from .identity import Identity

BARS, CLIENTS = Bound("BARs of a function", 6), Bound("clients of the RDMA core", 256)
#: the kernel's command line has 2,048 bytes at most on x86 [arch/x86/include/asm/setup.h COMMAND_LINE_SIZE]
ARGUMENTS = Bound("arguments of a kernel", 4096)
#: Arm has an SMMU for some devices each
NETWORKS = Bound("networks of the NICs of a node", 4096)
ADDRESSES = Bound("addresses of a node in the networks of its NICs", 4096)
DEVICES = Bound("IOMMUs and their tables", 4096)


@dataclasses.dataclass(frozen=True)
class SriovCapability:
    """The SR-IOV capability of a physical function in its PCI configuration space: the limits of the running firmware,
    and the numbering of VFs.

    :ivar initial: InitialVFs; the kernel creates no VF if it differs from ``total``
    :ivar total: TotalVFs; a driver may report less in sriov_totalvfs, as igb does
    :ivar current: number of VFs that are enabled (NumVFs)
    :ivar offset: difference between the routing ID of the function and that of its first VF
    :ivar stride: difference between the routing IDs of two consecutive VFs
    :ivar ari: whether the kernel has found ARI on the whole path to the function, so that one bus has room for 256
        functions
    :ivar bars: numbers of the BARs of each VF, 0 to 5; a 64-bit BAR is listed by its first number
    """

    initial: Vfs
    total: Vfs
    current: Vfs
    offset: RoutingId
    stride: RoutingId
    ari: bool
    bars: typing.Annotated[tuple[Bar, ...], BARS]


@dataclasses.dataclass(frozen=True)
class VfMemory:
    """The numbers of the BARs of a PF's VFs, divided into those with and without an address assigned by the kernel. A
    BAR in neither list does not exist, or was dropped because it did not fit.

    :ivar placed: numbers with an address, 0 to 5
    :ivar unplaced: numbers without an address
    """

    placed: typing.Annotated[tuple[Bar, ...], BARS] = ()
    unplaced: typing.Annotated[tuple[Bar, ...], BARS] = ()


@dataclasses.dataclass(frozen=True)
class Acs:
    """The Access Control Services of a port. Bits 2 and 3 (request and completion redirect) send peer-to-peer packets
    to the root complex.

    :ivar capability: supported bits
    :ivar control: enabled bits
    """

    capability: AcsBits
    control: AcsBits


@dataclasses.dataclass(frozen=True)
class PciEvidence:
    """The SR-IOV properties of a network function in sysfs.

    :ivar address: PCI address
    :ivar driver: name of the bound kernel driver; None without one
    :ivar sriov_total: number of VFs that the firmware offers (sriov_totalvfs); None if the file is absent: SR-IOV is
        off in firmware or BIOS, or the function has no such capability
    :ivar sriov_current: number of VFs that exist; None if the file is absent
    :ivar iommu_group: number of the IOMMU group; None if the function is not in a group
    :ivar physical_function: PCI address of the PF, for a VF
    :ivar unread: files that could not be read; their values are None and unknown
    :ivar capability: SR-IOV capability of a PF; None if its configuration space has none, or cannot be read (as root)
    :ivar memory: memory ranges for the VFs of a PF; None if the kernel does not report them
    :ivar last_bus: last bus number below the port above a PF; None without such a port
    :ivar acs: ACS settings of the port above a PF; None if it has none, or if they cannot be read (as root)
    """

    ONCE = ("address",)

    address: PciAddress
    driver: typing.Optional[Word] = None
    sriov_total: typing.Optional[Vfs] = None
    sriov_current: typing.Optional[Vfs] = None
    iommu_group: typing.Optional[Count] = None
    physical_function: typing.Optional[PciAddress] = None
    unread: Messages = ()
    capability: typing.Optional[SriovCapability] = None
    memory: typing.Optional[VfMemory] = None
    last_bus: typing.Optional[Bus] = None
    acs: typing.Optional[Acs] = None


@dataclasses.dataclass(frozen=True)
class GpuDriver:
    """The NVIDIA driver of a node, with the properties that determine how NICs access GPU memory.

    :ivar version: version of the module nvidia
    :ivar open: whether its kernel modules are the open ones; None if not known
    :ivar peermem: whether the module nvidia_peermem is loaded
    :ivar peer_clients: clients registered with OFED's RDMA core: nvidia-peermem, nv_mem
    :ivar ofed: version of mlx5_core, which only OFED's has; None with the kernel's own
    """

    version: typing.Optional[Version] = None
    open: typing.Optional[bool] = None
    peermem: bool = False
    peer_clients: typing.Annotated[tuple[Word, ...], CLIENTS] = ()
    ofed: typing.Optional[Version] = None


@dataclasses.dataclass(frozen=True)
class InterfaceNetwork:
    """A network that a node reaches directly over a NIC.

    :ivar interface: network interface of the NIC, also below a bond, a bridge or a VLAN
    :ivar network: network in CIDR form
    """

    interface: Interface
    network: Network


@dataclasses.dataclass(frozen=True)
class NodePlatform:
    """The state of SR-IOV, IOMMU, kernel and GPU driver of one node, as the module node_info returns it. None means
    that a value could not be read (see errors). Empty means that it was read and there is nothing.

    :ivar kernel: release of the running kernel
    :ivar machine: x86_64, aarch64...
    :ivar kernel_arguments: arguments of the kernel command line about IOMMU and PCI, and those that were requested
    :ivar iommu_devices: dmar0 (Intel, only while it translates), ivhd0 (AMD), smmu3... (Arm)
    :ivar iommu_groups: number of IOMMU groups
    :ivar acpi_tables: names of those of the tables DMAR, IVRS and IORT that the BIOS provides
    :ivar functions: SR-IOV properties of each network function
    :ivar errors: texts that name each failed read and its reason
    :ivar gpu: GPU driver of the node; None if the module nvidia is not loaded
    :ivar boot: id of the boot in which the platform was read
    :ivar signed_modules: whether the kernel loads only modules signed with a known key, as with secure boot; None if
        not known
    :ivar identity: identity of the node in DMI, which only root can read
    :ivar uplinks: interfaces of the default routes, and the interfaces below them
    :ivar networks: networks of the NICs, from the routes of the kernel without a gateway; None if not read
    :ivar addresses: addresses of the node itself in these networks, whatever interface has them; None if not read
    :ivar locked_down: whether kernel lockdown is active; None if the kernel does not report it
    """

    kernel: Version
    machine: Word
    kernel_arguments: typing.Optional[typing.Annotated[tuple[str, ...], ARGUMENTS]] = None
    iommu_devices: typing.Optional[typing.Annotated[tuple[Word, ...], DEVICES]] = None
    iommu_groups: typing.Optional[Count] = None
    acpi_tables: typing.Optional[typing.Annotated[tuple[Word, ...], DEVICES]] = None
    functions: typing.Annotated[tuple[PciEvidence, ...], FUNCTIONS] = ()
    errors: Messages = ()
    gpu: typing.Optional[GpuDriver] = None
    boot: typing.Optional[Uid] = None
    signed_modules: typing.Optional[bool] = None
    identity: Identity = dataclasses.field(default_factory=Identity)
    uplinks: typing.Optional[typing.Annotated[tuple[Interface, ...], NETDEVS]] = None
    locked_down: typing.Optional[bool] = None
    networks: typing.Optional[typing.Annotated[tuple[InterfaceNetwork, ...], NETWORKS]] = None
    addresses: typing.Optional[typing.Annotated[tuple[Address, ...], ADDRESSES]] = None


#: platform of one node (module node_info)
ObservedPlatform = Observed[NodePlatform]
