# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the PCI settings of HCAs and GPUs: their position, the bridges between them, their memory requests, and the CPUs
of their interrupts.
"""

from __future__ import annotations

import os
import typing

from ...._model.node.hca import Hca
from ...._parse.node import pci_config, pci_path
from ...._parse.node import sysfs as parse
from ...._parse.node.tuning import parse_cpu_list, parse_word
from ..sysfs_reader import SysfsReader
from .rows import Rows, reader_of

_DEVICES = "bus/pci/devices"
NVIDIA, _AMD, _HABANA = 0x10DE, 0x1002, 0x1DA3
#: PCI classes of the GPUs of each vendor: VGA and 3D controllers of NVIDIA; those and other display controllers (MI100,
#: MI200) and processing accelerators (MI300) of AMD; processing accelerators of Habana Labs (Gaudi)
_CLASSES = {NVIDIA: (0x0300, 0x0302), _AMD: (0x0300, 0x0302, 0x0380, 0x1200), _HABANA: (0x1200,)}
#: of ConnectX-8, a function of its own by which it reaches GPUs (Linux 6.12 drivers/infiniband/hw/mlx5/data_direct.c)
_MELLANOX, _DATA_DIRECT = 0x15B3, 0x2100
_CPUS, _NUMA_NODES = "devices/system/cpu", "devices/system/node"
_AS_ROOT = "only 64 bytes of the configuration space could be read; only root can read all of it"


class Function(typing.NamedTuple):
    """A PCI function, with the sysfs in which it was found.

    :ivar name: name of the function in tuning rows, such as that of its RDMA device; a GPU has its PCI address
    :ivar address: PCI address, such as ``0000:3c:00.0``
    :ivar sysfs: reader of the sysfs that has the function
    :ivar vendor: PCI vendor of a GPU; 0 for other functions
    """

    name: str
    address: str
    sysfs: SysfsReader
    vendor: int = 0

    @property
    def folder(self) -> str:
        return f"{_DEVICES}/{self.address}"

    @property
    def path(self) -> pci_path.Path:
        return pci_path.parse_path(os.path.realpath(os.path.join(self.sysfs.folder, self.folder)))


class PciHost(typing.NamedTuple):
    """The files of the node from which the PCI settings of its functions are read.

    :ivar sysfs: reader of the sysfs root that contains the CPUs
    :ivar proc: reader of procfs
    :ivar data_direct: whether an HCA of the node accesses GPUs through a separate Data Direct function
    """

    sysfs: SysfsReader
    proc: SysfsReader
    data_direct: bool = False


def has_data_direct(readers: typing.Iterable[SysfsReader]) -> bool:
    """Return whether an HCA of the node has a Data Direct function, a separate PCI function through which it accesses
    GPU memory.

    :param readers: readers of the sysfs roots
    """
    return any(
        reader.value(f"{_DEVICES}/{address}/vendor", parse.parse_hexadecimal) == _MELLANOX
        and reader.value(f"{_DEVICES}/{address}/device", parse.parse_hexadecimal) == _DATA_DIRECT
        for reader in readers
        for address in reader.names(_DEVICES)
    )


def list_functions(readers: typing.Sequence[SysfsReader], hcas: typing.Iterable[Hca]) -> list[Function]:
    """Return the physical functions that have an RDMA device, each with the sysfs that contains it, in the order of
    ``hcas``.

    :param readers: readers of the sysfs roots
    :param hcas: all network functions
    """
    with_pci = ((hca.name, hca.pci.address) for hca in hcas if hca.pci and hca.rdma_device and not hca.is_virtual)
    return [Function(name, address, reader_of(readers, f"{_DEVICES}/{address}")) for name, address in with_pci]


def list_gpus(rows: Rows, readers: typing.Sequence[SysfsReader]) -> list[Function]:
    """Return the PCI functions of the GPUs of NVIDIA and AMD and of Gaudi accelerators. Add the tuning rows with their
    models and their number to ``rows``.

    :param rows: collector of the tuning rows of the node
    :param readers: readers of the sysfs roots
    """
    found = []
    rows.absent("gpu_model")
    for reader in readers:
        before = len(reader.errors)
        for address in reader.names(_DEVICES):
            vendor = reader.value(f"{_DEVICES}/{address}/vendor", parse.parse_hexadecimal) or 0
            if vendor not in _CLASSES:
                continue
            kind = reader.value(f"{_DEVICES}/{address}/class", parse.parse_hexadecimal)
            if kind is not None and kind >> 8 in _CLASSES[vendor]:
                found.append(Function(address, address, reader, vendor))
                model = reader.value(f"{_DEVICES}/{address}/device", parse.parse_hexadecimal)
                if model is not None:
                    rows.add("gpu_model", f"{vendor:04x}:{model:04x}", address)
        if len(reader.errors) > before:
            rows.unread(reader.errors[before], "gpu_model")
    if found:
        rows.add("gpus", len(found))
    else:
        rows.absent("gpus")
    return found


def read(rows: Rows, host: PciHost, hcas: typing.Sequence[Function], cards: typing.Sequence[Function]) -> None:
    rows.absent(
        "pci_way", "hca_model", "hca_numa", "max_read_request", "max_payload", "iommu", "irq_locality", "irq_isolated"
    )
    rows.absent("relaxed_ordering", "relaxed_ordering_gpu", "relaxed_ordering_root", "numa_told")
    for function in (*cards, *hcas):
        rows.add("pci_way", " ".join((function.path.root, *function.path.functions)), function.name)
    _numa_told(rows, host.sysfs, (*cards, *hcas))
    isolated = _read_isolated_cpus(rows, host.sysfs)
    for hca in hcas:
        rows.file(
            "hca_model",
            hca.sysfs,
            f"{hca.folder}/device",
            lambda text: f"{parse.parse_hexadecimal(text):04x}",
            hca.name,
        )
        rows.file("hca_numa", hca.sysfs, f"{hca.folder}/numa_node", _format_numa_node, hca.name)
        rows.file("iommu", hca.sysfs, f"{hca.folder}/iommu_group/type", parse_word, hca.name)
        _read_pcie_requests(rows, hca)
        _read_interrupt_locality(rows, host.proc, hca, isolated)
    for port, sysfs in {hca.path.functions[0]: hca.sysfs for hca in hcas if len(hca.path.functions) > 1}.items():
        _read_relaxed_ordering(rows, "relaxed_ordering_root", Function(port, port, sysfs))
    rows.absent("gpu_numa", "gpu_link_width", "gpu_nic_path", "acs")
    for card in cards:
        rows.file("gpu_numa", card.sysfs, f"{card.folder}/numa_node", _format_numa_node, card.name)
        if card.vendor == NVIDIA:
            _read_relaxed_ordering(rows, "relaxed_ordering_gpu", card)
        _read_gpu_link_width(rows, card)
        _read_nearest_hca(rows, card, hcas, host.data_direct)


def _format_numa_node(text: str) -> str:
    node = parse.parse_numa_node(text)
    return "none" if node is None else str(node)


def _numa_told(rows: Rows, sysfs: SysfsReader, functions: typing.Iterable[Function]) -> None:
    """Add a tuning row to ``rows`` with a value for each function: ``yes`` if the BIOS reports its NUMA node, otherwise
    ``no``. On a machine with one NUMA node the functions get no value, because its BIOS need not report the node.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs root that contains the NUMA nodes
    :param functions: HCAs and GPUs
    """
    before = len(sysfs.errors)
    nodes = sysfs.value(f"{_NUMA_NODES}/has_cpu", parse_cpu_list)
    if len(sysfs.errors) > before:
        rows.unread(sysfs.errors[-1], "numa_told")
    for function in functions if len(nodes or ()) > 1 else ():
        rows.file(
            "numa_told",
            function.sysfs,
            f"{function.folder}/numa_node",
            lambda text: "no" if parse.parse_numa_node(text) is None else "yes",
            function.name,
        )


def _read_isolated_cpus(rows: Rows, sysfs: SysfsReader) -> typing.Optional[frozenset[int]]:
    """Return the numbers of the CPUs that the kernel isolates for jobs. If they cannot be read, mark the row
    ``irq_isolated`` as unread with the reason, and return None.

    :param rows: collector of the tuning rows of the node
    :param sysfs: reader of the sysfs root that contains the CPUs
    """
    before = len(sysfs.errors)
    found = [sysfs.value(f"{_CPUS}/{name}", parse_cpu_list) for name in ("isolated", "nohz_full")]
    if len(sysfs.errors) > before:
        rows.unread(sysfs.errors[-1], "irq_isolated")
        return None
    return frozenset().union(*(cpus or () for cpus in found))


def _read_space(rows: Rows, function: Function, least: int, *for_rows: str) -> typing.Optional[bytes]:
    """Return the PCI configuration space of a function. If no more than ``least`` bytes of it can be read, mark the
    given rows as unread with the reason, and return None.

    :param rows: collector of the tuning rows of the node
    :param function: PCI function
    :param least: number of bytes that every user can read; only root can read more
    :param for_rows: names of the tuning rows whose values come from the configuration space
    """
    before = len(function.sysfs.errors)
    space = function.sysfs.raw(f"{function.folder}/config")
    if space is None or len(space) <= least:
        why = (
            function.sysfs.errors[-1]
            if len(function.sysfs.errors) > before
            else f"{function.address}/config: {_AS_ROOT if space else 'is not there'}"
        )
        rows.unread(why, *for_rows)
        return None
    return space


def _read_pcie_requests(rows: Rows, hca: Function) -> None:
    of_requests = ("max_read_request", "relaxed_ordering", "max_payload")
    space = _read_space(rows, hca, 64, *of_requests)
    if space is None:
        return
    asks, sends = pci_config.parse_requests(space), pci_config.parse_payload(space)
    if asks is None or sends is None:
        rows.unread(f"the PCI Express capability in {hca.address}/config could not be read", *of_requests)
        return
    rows.add("max_read_request", asks.read_bytes, hca.name)
    rows.add("relaxed_ordering", "on" if asks.relaxed_ordering else "off", hca.name)
    rows.add("max_payload", sends.current, hca.name)


def _read_relaxed_ordering(rows: Rows, row: str, function: Function) -> None:
    space = _read_space(rows, function, 64, row)
    asks = None if space is None else pci_config.parse_requests(space)
    if asks is not None:
        rows.add(row, "on" if asks.relaxed_ordering else "off", function.name)
    elif space is not None:
        rows.unread(f"the PCI Express capability in {function.address}/config could not be read", row)


def _read_interrupt_locality(
    rows: Rows, proc: SysfsReader, hca: Function, isolated: typing.Optional[frozenset[int]]
) -> None:
    """Add two tuning rows about the interrupts of an HCA to ``rows``. The row ``irq_locality`` is ``local`` if all
    interrupts go to CPUs of the NUMA node of the HCA, otherwise ``remote``. The row ``irq_isolated`` is ``isolated`` if
    an interrupt goes to an isolated CPU, otherwise ``apart``.

    An HCA without interrupts gets no value. If a file cannot be read, both rows are marked as unread.

    :param rows: collector of the tuning rows of the node
    :param proc: reader of the procfs of the node
    :param hca: PCI function of the HCA
    :param isolated: CPUs that the kernel isolates for jobs; None if unknown
    """
    before = len(hca.sysfs.errors) + len(proc.errors)
    local = hca.sysfs.value(f"{hca.folder}/local_cpulist", parse_cpu_list)
    served: set[int] = set()
    for interrupt in hca.sysfs.names(f"{hca.folder}/msi_irqs"):
        for name in ("effective_affinity_list", "smp_affinity_list"):
            cpus = proc.value(f"irq/{interrupt}/{name}", parse_cpu_list)
            if cpus:
                served |= cpus
                break
    if len(hca.sysfs.errors) + len(proc.errors) > before:
        rows.unread((hca.sysfs.errors + proc.errors)[-1], "irq_locality", "irq_isolated")
        return
    if local and served:
        rows.add("irq_locality", "local" if served <= local else "remote", hca.name)
    if served and isolated is not None:
        rows.add("irq_isolated", "isolated" if served & isolated else "apart", hca.name)


def _read_gpu_link_width(rows: Rows, card: Function) -> None:
    """Add the tuning row with the PCIe link width of a GPU to ``rows``: ``full``, or text such as ``x8 of x16`` with
    the current and the possible lanes. The link speed is not added, because an idle GPU reduces it.

    :param rows: collector of the tuning rows of the node
    :param card: PCI function of the GPU
    """
    before = len(card.sysfs.errors)
    folder = _find_edge(card).folder
    current, most, slot = (
        card.sysfs.value(f"{folder}/{name}", parse.parse_pcie_width)
        for name in ("current_link_width", "max_link_width", "../max_link_width")
    )
    if len(card.sysfs.errors) > before:
        rows.unread(card.sysfs.errors[-1], "gpu_link_width")
    elif current and most:
        could = min(most, slot or most)
        rows.add("gpu_link_width", "full" if current >= could else f"x{current} of x{could}", card.address)


def _find_edge(card: Function) -> Function:
    """Return the function of a GPU that is in the slot: the GPU itself, or the upstream port of the PCIe switch on the
    card, which some GPUs of AMD have. The link behind that switch always has all lanes.

    :param card: PCI function of the GPU
    """
    edge = card
    for address in reversed(card.path.functions[:-1]) if card.vendor == _AMD else ():
        bridge = Function(address, address, card.sysfs, card.vendor)
        if card.sysfs.value(f"{bridge.folder}/vendor", parse.parse_hexadecimal) != _AMD:
            break
        edge = bridge
    return edge


def _read_nearest_hca(rows: Rows, card: Function, hcas: typing.Sequence[Function], data_direct: bool) -> None:
    """Add two tuning rows to ``rows``: the distance class of a GPU to its nearest HCA, and for each bridge between them
    whether it redirects packets to the host by ACS (``redirect``, ``direct`` or ``exempt``). Without HCAs nothing is
    added.

    :param rows: collector of the tuning rows of the node
    :param card: PCI function of the GPU
    :param hcas: PCI functions of the HCAs
    :param data_direct: whether an HCA of the node accesses GPUs through a separate Data Direct function, so that the
        packets take another path than between these functions
    """
    if not hcas:
        return
    node, mine = card.sysfs.value(f"{card.folder}/numa_node", parse.parse_number), card.path
    ways: list[tuple[int, int]] = []
    for hca in hcas:
        same = node == hca.sysfs.value(f"{hca.folder}/numa_node", parse.parse_number)
        ways.append((pci_path.DISTANCES.index(pci_path.measure_distance(mine, hca.path, same)), len(ways)))
    near, number = min(ways)
    rows.add("gpu_nic_path", pci_path.DISTANCES[near], f"{card.address} {hcas[number].name}")
    for address in pci_path.list_bridges_between(mine, hcas[number].path):
        if data_direct:
            rows.add("acs", "exempt", address)
            continue
        space = _read_space(rows, Function(address, address, card.sysfs), pci_config.CONVENTIONAL, "acs")
        if space is not None:
            redirects = pci_config.acs_redirects(space)
            if redirects is None:
                rows.unread(f"{address}/config: the extended capabilities could not be read completely", "acs")
            else:
                rows.add("acs", "redirect" if redirects else "direct", address)
