# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of the probe, a script that runs in a pod, and find the RDMA device of the pod's virtual function.

In the shared RDMA namespace mode a pod sees the devices of all pods on its node. The device is therefore found by the
PCI address that the device plugin set in the environment, or by the network interface of the attachment. Its position
in a list is never used.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.base.text import join_first
from ..._model.boundary.devices import INTERFACE, PCI_ADDRESS, RDMA_DEVICE, Interface, PciAddress, RdmaDevice
from ..._model.boundary.fabric import LANES, LINK_GBPS, PCIE_SPEED, LinkGbps
from ..._model.boundary.numbers import NUMA_NODE
from ..._model.boundary.words import Word
from ..._model.node.hca import compute_pcie_gbps
from ..limits import decode_json

_RATE = re.compile(r"^(?P<gbps>[0-9]{1,9}(?:\.[0-9]{1,9})?) Gb/sec")
#: ranges and CPUs of one list: no kernel is built for more than 8,192 CPUs; and CPUs of all lists of a pod
_MOST_RANGES, _MOST_CPUS, _MOST_IN_ALL = 512, 65_536, 1 << 20
_CPUS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_NUMA = re.compile(r"[0-9]{1,4}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", re.ASCII)
_WIDTH = re.compile(r"^\s*[0-9]{1,3}\s*$", re.ASCII)
_SPEED = re.compile(r"^(?P<gts>[0-9]{1,9}(?:\.[0-9]{1,9})?) GT/s")


class ProbeError(RdmaError):
    """The error for a virtual function that does not have exactly one RDMA device. The message names the interface and
    the devices that were found.
    """


class Binding(typing.NamedTuple):
    """The CPUs to which taskset binds a measurement tool.

    :ivar cpus: CPU list for taskset, such as ``0-3,8``; empty if the tool is not bound
    :ivar text: description of the binding, or the reason why the tool is not bound
    :ivar far: whether the tool cannot run on any CPU of the function's NUMA node
    """

    cpus: str
    text: str
    far: bool = False


@dataclasses.dataclass(frozen=True)
class Probe:
    """The RDMA devices, the CPUs and the tools that a pod has.

    :ivar addresses: PCI addresses that the device plugin gave to the pod (PCIDEVICE_*)
    :ivar pci_devices: RDMA devices of each PCI address, from sysfs
    :ivar links: network interface of each RDMA device, from ``rdma -j link``; empty for a device without one
    :ivar rates: rate of port 1 of each RDMA device, in Gb/s
    :ivar pcie: bandwidth of the PCI Express link of each PCI address, or of its physical function, in Gb/s: speed x
        width, less the encoding
    :ivar functions: PCI address of the physical function, by that of the virtual function
    :ivar missing: tools that the image lacks
    """

    addresses: tuple[PciAddress, ...]
    pci_devices: dict[PciAddress, tuple[RdmaDevice, ...]]
    links: dict[RdmaDevice, Interface]
    rates: dict[RdmaDevice, LinkGbps]
    pcie: dict[PciAddress, LinkGbps]
    functions: dict[PciAddress, PciAddress]
    missing: tuple[Word, ...]
    _numa: dict[PciAddress, Word]
    _local: dict[PciAddress, frozenset[int]]
    _allowed: frozenset[int]

    def binding(self, address: str) -> Binding:
        """Return the CPUs of a function's NUMA node on which the pod may run, or the reason why a tool is not bound to
        such CPUs.

        :param address: PCI address of the function
        """
        node, local = self._numa.get(address, "-1"), self._local.get(address, frozenset())
        if not node.isdigit() or not local:
            return Binding("", "not bound to a NUMA node: sysfs reports none")
        cpus = _format_cpu_ranges(local & self._allowed)
        if not cpus:
            text = (
                f"on other CPUs ({_format_cpu_ranges(self._allowed) or 'not known'}) than those of the"
                f" HCA's NUMA node {node}"
                f" ({_format_cpu_ranges(local)})"
            )
            return Binding("", text, bool(self._allowed))
        if "taskset" in self.missing:
            return Binding("", "not bound to a NUMA node: the image has no taskset")
        return Binding(cpus, f"on CPUs {cpus} of NUMA node {node}")

    def numa_node(self, address: str) -> typing.Optional[int]:
        """Return the number of the NUMA node of a function. Return None if sysfs does not report a valid one.

        :param address: PCI address of the function
        """
        found = self._numa.get(address, "-1")
        return int(found) if found.isdigit() and NUMA_NODE.fits(int(found)) else None

    def near(self, address: str) -> typing.Optional[bool]:
        """Return whether a measurement tool in the pod runs on CPUs of the function's NUMA node, either because taskset
        binds it to them, or because the pod has no other CPUs. Return None if this is unknown.

        :param address: PCI address of the function
        """
        local = self._local.get(address, frozenset())
        if not self._numa.get(address, "-1").isdigit() or not local or not self._allowed:
            return None
        if not local & self._allowed:
            return False
        return True if "taskset" not in self.missing or self._allowed <= local else None

    @functools.cached_property
    def _by_netdev(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for device, netdev in self.links.items():
            found.setdefault(netdev, []).append(device)
        return {netdev: tuple(devices) for netdev, devices in found.items()}

    def find_devices(self, interface: str, resource_address: typing.Optional[str] = None) -> tuple[str, ...]:
        """Return the RDMA devices that may belong to an attachment of the pod. The PCI address decides if it has
        exactly one device. Otherwise the name of the interface decides if it has exactly one, or if no device has the
        PCI address. The result is empty if neither finds a device.

        :param interface: name of the attachment's interface in the pod
        :param resource_address: PCI address of the attachment; None to use the addresses that the device plugin gave to
            the pod
        """
        addresses = (resource_address,) if resource_address else self.addresses
        by_pci = tuple(device for address in addresses for device in self.pci_devices.get(address, ()))
        by_netdev = self._by_netdev.get(interface, ())
        return by_pci if len(by_pci) == 1 or (by_pci and len(by_netdev) != 1) else by_netdev

    def device(self, interface: str, resource_address: typing.Optional[str] = None) -> str:
        """Return the RDMA device of an attachment of the pod. Unlike :meth:`find_devices`, accept only a single device.

        :param interface: name of the attachment's interface in the pod
        :param resource_address: PCI address of the attachment from network-status; None if multus did not write one
        :raises ProbeError: there is no such device, or more than one
        """
        found = self.find_devices(interface, resource_address)
        if len(found) == 1:
            return found[0]
        if found:
            raise ProbeError(f"more than one RDMA device on {interface}: {join_first(sorted(found))}")
        addresses = (resource_address,) if resource_address else self.addresses
        seen = join_first([f"{device} on {netdev or 'no netdev'}" for device, netdev in sorted(self.links.items())])
        raise ProbeError(
            f"no RDMA device on {interface} ({join_first(addresses) or 'no PCIDEVICE_* in the environment'}); visible"
            f" RDMA devices: {seen or 'none'}"
        )


def parse(text: str) -> Probe:
    """Parse the lines ``<word> <rest>`` that the probe prints in a pod. Unknown lines and lines with invalid names are
    ignored. This function never raises an error, because a missing value is reported only when a caller needs it.
    """
    addresses: list[str] = []
    pci_devices: dict[str, list[str]] = {}
    links: dict[str, str] = {}
    rates: dict[str, float] = {}
    speeds: dict[str, float] = {}
    widths: dict[str, int] = {}
    functions: dict[str, str] = {}
    numa: dict[str, str] = {}
    local: dict[str, frozenset[int]] = {}
    allowed: frozenset[int] = frozenset()
    missing: list[str] = []
    verbs = {line[len("verbs ") :] for line in text.splitlines() if line.startswith("verbs ")}
    left = _MOST_IN_ALL
    for line in text.splitlines():
        word, _blank, rest = line.partition(" ")
        if word == "env":
            addresses.extend(item for item in map(PCI_ADDRESS.parse, rest.partition("=")[2].split(",")) if item)
        elif word == "rdma":
            links.update(_parse_links(rest))
        elif word == "missing":
            missing.extend(_TOOL.findall(rest))
        elif word == "allowed":
            allowed = allowed or _parse_cpus(rest)
        elif word in ("pci", "speed", "width", "rate", "physfn", "numa", "cpus"):
            name, _blank, value = rest.partition(" ")
            key, value = (RDMA_DEVICE if word == "rate" else PCI_ADDRESS).parse(name) or "", value.strip()
            if not key:
                continue
            if word == "physfn" and PCI_ADDRESS.fits(value):
                functions[key] = value.lower()
            elif word == "numa" and _NUMA.fullmatch(value):
                numa[key] = value
            elif word == "cpus":
                local[key] = _parse_cpus(value, left)
                left -= len(local[key])
            elif word == "pci" and RDMA_DEVICE.fits(value):
                pci_devices.setdefault(key, []).append(value)
            elif word == "width" and _WIDTH.match(value) and LANES.fits(int(value)):
                widths[key] = int(value)
            elif word in ("rate", "speed"):
                form, known, into = (_RATE, LINK_GBPS, rates) if word == "rate" else (_SPEED, PCIE_SPEED, speeds)
                match = form.match(value)
                if match and known.fits(float(match.group(1))):
                    into[key] = float(match.group(1))
    # the fastest lane as often as the widest slot has it is more than any slot has
    slots = {
        address: compute_pcie_gbps(speed, widths[address]) for address, speed in speeds.items() if widths.get(address)
    }
    return Probe(
        addresses=tuple(dict.fromkeys(addresses)),
        pci_devices={address: _leave_out_management(devices, verbs) for address, devices in pci_devices.items()},
        links=links,
        rates=rates,
        pcie={address: gbps for address, gbps in slots.items() if LINK_GBPS.fits(gbps)},
        functions=functions,
        missing=tuple(missing),
        _numa=numa,
        _local=local,
        _allowed=allowed,
    )


def _leave_out_management(devices: typing.Sequence[str], verbs: typing.AbstractSet[str]) -> tuple[str, ...]:
    """Return the RDMA devices of a function that have a device node for verbs. Return all devices if none of them has
    one. An HCA with several planes has a device for data and another that is only for management, such as ``smi1``.

    :param devices: names of all RDMA devices of the function
    :param verbs: names of the RDMA devices that have a device node for verbs
    """
    return tuple(device for device in devices if device in verbs or verbs.isdisjoint(devices))


def _parse_cpus(text: str, left: int = _MOST_IN_ALL) -> frozenset[int]:
    """Return the CPU numbers of a list as the kernel writes it, such as ``0-3,8``. Return an empty set if the list is
    invalid or too long.

    :param left: largest number of CPUs that the list may have
    """
    matches = [_CPUS.fullmatch(item) for item in text.strip().split(",", _MOST_RANGES)]
    spans = [
        range(int(match.group(1)), int(match.group(2) or match.group(1)) + 1) for match in matches if match is not None
    ]
    if len(spans) < len(matches) or len(spans) > _MOST_RANGES or sum(map(len, spans)) > min(_MOST_CPUS, left):
        return frozenset()
    return frozenset().union(*spans)


def _format_cpu_ranges(cpus: typing.AbstractSet[int]) -> str:
    """Return a set of CPU numbers as a list such as ``0-3,8``. Return an empty text for an empty set."""
    starts = sorted(cpu for cpu in cpus if cpu - 1 not in cpus)
    ends = sorted(cpu for cpu in cpus if cpu + 1 not in cpus)
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in zip(starts, ends))


def _parse_links(text: str) -> dict[str, str]:
    """Return the network interface of each RDMA device, by device, from the JSON of ``rdma -j link``: a list of ports
    with ifname and, on Ethernet, netdev. The interface is empty if the port has none. Return an empty mapping if the
    JSON is invalid.
    """
    try:
        entries = decode_json(text, "rdma -j link", unique=False)
    except ParseError:
        return {}
    if not isinstance(entries, list):
        return {}
    named = [entry for entry in entries if isinstance(entry, dict) and RDMA_DEVICE.fits(entry.get("ifname"))]
    return {entry["ifname"]: INTERFACE.parse(entry.get("netdev")) or "" for entry in named}
