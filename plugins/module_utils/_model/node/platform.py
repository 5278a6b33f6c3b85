# SPDX-License-Identifier: GPL-3.0-or-later

"""What BIOS, kernel and driver of a node say about SR-IOV and GPUs. PCI addresses are dddd:bb:dd.f in lower case."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
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
DEVICES = Bound("IOMMUs and their tables", 4096)


@dataclasses.dataclass(frozen=True)
class SriovCapability:
    """SR-IOV of a physical function in its PCI configuration space: what the firmware that runs offers, and how VFs are
    numbered.

    :ivar initial: InitialVFs; the kernel makes no VF where it is not ``total``
    :ivar total: TotalVFs; a driver may show less in sriov_totalvfs, as igb does
    :ivar current: NumVFs
    :ivar offset: from the function's own routing ID to that of its first VF, and ``stride`` from one VF to the next
    :ivar ari: the kernel has found ARI on the whole way to the function, so that one bus has room for 256 functions
    :ivar bars: numbers of the BARs that each VF has, 0 to 5; one of 64 bits counts by its first
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
    """The BARs of its VFs to which the kernel has given an address. Those that are in neither are not there, or were
    given up when nothing fitted.

    :ivar placed: numbers, 0 to 5
    :ivar unplaced: that are there, and have none
    """

    placed: typing.Annotated[tuple[Bar, ...], BARS] = ()
    unplaced: typing.Annotated[tuple[Bar, ...], BARS] = ()


@dataclasses.dataclass(frozen=True)
class Acs:
    """Access Control Services: what a port can do, and what is switched on (bit 2 and 3: packets of peers go up to the
    root complex)."""

    capability: AcsBits
    control: AcsBits


@dataclasses.dataclass(frozen=True)
class PciEvidence:
    """The evidence for SR-IOV that sysfs shows of a network function.

    :ivar sriov_total: None when the file is absent: SR-IOV is off in firmware or BIOS, or the function has no such
        capability
    :ivar iommu_group: None when the function is in none
    :ivar physical_function: PCI address of the PF, for a VF
    :ivar capability: for a PF; None where its configuration space has none, or can't be read (as root)
    :ivar memory: for a PF; None where the kernel does not show it
    :ivar last_bus: for a PF: the last bus number below the port above it; None where there is no such port
    :ivar acs: of the port above a PF; None where it has none, or can't be read (as root)
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
    """NVIDIA's driver on a node, as far as it decides how NICs reach the memory of GPUs.

    :ivar version: of the module nvidia
    :ivar open: its kernel modules are the open ones; None when it does not say
    :ivar peermem: the module nvidia_peermem is loaded
    :ivar peer_clients: that have registered with the RDMA core of OFED: nvidia-peermem, nv_mem
    :ivar ofed: version of mlx5_core, which only OFED's has; None with the kernel's own
    """

    version: typing.Optional[Version] = None
    open: typing.Optional[bool] = None
    peermem: bool = False
    peer_clients: typing.Annotated[tuple[Word, ...], CLIENTS] = ()
    ofed: typing.Optional[Version] = None


@dataclasses.dataclass(frozen=True)
class NodePlatform:
    """Answer of node_info for one node. None means: could not be read (see errors); empty means: read, and there is
    none.

    :ivar kernel_arguments: those of the kernel's command line that concern IOMMU and PCI, or were asked for; the others
        are none of our business
    :ivar iommu_devices: dmar0 (Intel, only while it translates), ivhd0 (AMD), smmu3... (Arm)
    :ivar iommu_groups: number of groups
    :ivar acpi_tables: those of DMAR, IVRS and IORT that the BIOS hands over
    :ivar machine: x86_64, aarch64...
    :ivar gpu: None where the module nvidia is not loaded
    :ivar boot: id of the boot in which all of it was seen
    :ivar signed_modules: the kernel loads only modules that are signed with a key it knows, as with secure boot; None
        where it does not say
    :ivar identity: what DMI calls the node; only root may read it
    :ivar uplinks: interfaces of the default routes, with what they are made of
    :ivar locked_down: None where the kernel does not say
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


#: platform of one node (module node_info)
ObservedPlatform = Observed[NodePlatform]
