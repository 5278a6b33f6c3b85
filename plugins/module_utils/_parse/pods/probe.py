# SPDX-License-Identifier: GPL-3.0-or-later

"""What the probe in a pod printed (see _render/commands.py) to the RDMA device on the pod's virtual function.

In the shared RDMA namespace mode a pod sees the devices of all pods of its node: the device is found by the PCI address that the device
plugin put into the environment, or by the netdev of the attachment; never by its place in a list.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.errors import ParseError, RdmaError
from ..._model.hca import pcie_gbps
from ..limits import decode_json

_RATE = re.compile(r"^(?P<gbps>[0-9]+(?:\.[0-9]+)?) Gb/sec")
# five digits: more CPUs than that has no machine, and a range of them costs nothing
_CPUS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_WIDTH = re.compile(r"^\s*[0-9]{1,3}\s*$", re.ASCII)
_SPEED = re.compile(r"^(?P<gts>[0-9]+(?:\.[0-9]+)?) GT/s")


class ProbeError(RdmaError):
    """No RDMA device on the virtual function. The message says where it was looked for and what is there instead."""


class Binding(typing.NamedTuple):
    """:ivar cpus: as taskset reads them; empty where it cannot be bound
    :ivar text: what it is bound to, or why it is not
    :ivar far: it may run on none of the CPUs of the function's NUMA node
    """

    cpus: str
    text: str
    far: bool = False


@dataclasses.dataclass(frozen=True)
class Probe:
    """:ivar addresses: PCI addresses that the device plugin gave to the pod (PCIDEVICE_*)
    :ivar pci_devices: RDMA devices of a PCI address, by sysfs
    :ivar links: netdev of each RDMA device, by ``rdma -j link``
    :ivar rates: of each RDMA device's port 1, in Gb/s
    :ivar functions: PCI address of the physical function of each virtual one
    :ivar missing: tools that the image lacks
    :ivar pcie: of the PCI address, or of its physical function: speed x width, less the encoding, in Gb/s
    """

    addresses: typing.Tuple[str, ...]
    pci_devices: typing.Dict[str, typing.Tuple[str, ...]]
    links: typing.Dict[str, str]
    rates: typing.Dict[str, float]
    pcie: typing.Dict[str, float]
    functions: typing.Dict[str, str]
    missing: typing.Tuple[str, ...]
    _numa: typing.Dict[str, str]
    _local: typing.Dict[str, typing.FrozenSet[int]]
    _allowed: typing.FrozenSet[int]

    def binding(self, address: str) -> Binding:
        """The CPUs of the function's NUMA node that the pod may run on."""
        node, local = self._numa.get(address, "-1"), self._local.get(address, frozenset())
        if not node.isdigit() or not local:
            return Binding("", "not bound to a NUMA node: sysfs names none")
        cpus = _ranges(local & self._allowed)
        if not cpus:
            text = f"on other CPUs ({_ranges(self._allowed) or 'not known'}) than those of the HCA's NUMA node {node} ({_ranges(local)})"
            return Binding("", text, bool(self._allowed))
        if "taskset" in self.missing:
            return Binding("", "not bound to a NUMA node: the image has no taskset")
        return Binding(cpus, f"on CPUs {cpus} of NUMA node {node}")

    def near(self, address: str) -> typing.Optional[bool]:
        """Whether the tool runs on CPUs of the function's NUMA node, to which taskset binds it where it can; None where that is not known."""
        local = self._local.get(address, frozenset())
        if not self._numa.get(address, "-1").isdigit() or not local or not self._allowed:
            return None
        if not local & self._allowed:
            return False
        return True if "taskset" not in self.missing or self._allowed <= local else None

    def device(self, interface: str, resource_address: typing.Optional[str] = None) -> str:
        """The RDMA device of the attachment ``interface``.

        :param resource_address: PCI address of the attachment from network-status, where multus says it
        :raises ProbeError: none, or more than one
        """
        addresses = (resource_address,) if resource_address else self.addresses
        by_pci = [device for address in addresses for device in self.pci_devices.get(address, ())]
        if len(by_pci) == 1:
            return by_pci[0]
        by_netdev = [device for device, netdev in self.links.items() if netdev == interface]
        if len(by_netdev) == 1:
            return by_netdev[0]
        seen = ", ".join(f"{device} on {netdev or 'no netdev'}" for device, netdev in sorted(self.links.items())) or "none"
        if len(by_netdev) > 1 or len(by_pci) > 1:
            raise ProbeError(f"more than one RDMA device on {interface}: {', '.join(sorted(by_pci or by_netdev))}")
        raise ProbeError(f"no RDMA device on {interface} ({', '.join(addresses) or 'no PCIDEVICE_* in the environment'}); RDMA devices in sight: {seen}")


def parse(text: str) -> Probe:
    """Parse the probe's lines ``<word> <rest>``; unknown lines are left out. Never raises: what is missing shows when it is asked for."""
    addresses: typing.List[str] = []
    pci_devices: typing.Dict[str, typing.List[str]] = {}
    links: typing.Dict[str, str] = {}
    rates: typing.Dict[str, float] = {}
    speeds: typing.Dict[str, float] = {}
    widths: typing.Dict[str, int] = {}
    functions: typing.Dict[str, str] = {}
    numa: typing.Dict[str, str] = {}
    local: typing.Dict[str, typing.FrozenSet[int]] = {}
    allowed: typing.FrozenSet[int] = frozenset()
    missing: typing.List[str] = []
    for line in text.splitlines():
        word, _blank, rest = line.partition(" ")
        if word == "env":
            addresses.extend(item.lower() for item in rest.partition("=")[2].split(",") if item)
        elif word == "rdma":
            links.update(_links(rest))
        elif word == "missing":
            missing.append(rest.strip())
        elif word == "allowed":
            allowed = _cpus(rest)
        elif word in ("pci", "speed", "width", "rate", "physfn", "numa", "cpus"):
            key, _blank, value = rest.partition(" ")
            if word == "physfn":
                functions[key.lower()] = value.strip().lower()
            elif word == "numa":
                numa[key.lower()] = value.strip()
            elif word == "cpus":
                local[key.lower()] = _cpus(value)
            elif word == "pci":
                pci_devices.setdefault(key.lower(), []).append(value.strip())
            elif word == "width" and _WIDTH.match(value):
                widths[key.lower()] = int(value)
            else:
                match = (_RATE if word == "rate" else _SPEED).match(value)
                if match:
                    (rates if word == "rate" else speeds)[key if word == "rate" else key.lower()] = float(match.group(1))
    return Probe(
        addresses=tuple(dict.fromkeys(addresses)),
        pci_devices={address: tuple(devices) for address, devices in pci_devices.items()},
        links=links,
        rates=rates,
        pcie={address: pcie_gbps(speed, widths[address]) for address, speed in speeds.items() if widths.get(address)},
        functions=functions,
        missing=tuple(missing),
        _numa=numa,
        _local=local,
        _allowed=allowed,
    )


def _cpus(text: str) -> typing.FrozenSet[int]:
    """A list of CPUs as the kernel writes it: 0-3,8. Nothing of a list that is none is trusted."""
    found: typing.Set[int] = set()
    for item in text.strip().split(","):
        match = _CPUS.fullmatch(item)
        if match is None:
            return frozenset()
        first = int(match.group(1))
        found.update(range(first, int(match.group(2) or first) + 1))
    return frozenset(found)


def _ranges(cpus: typing.AbstractSet[int]) -> str:
    """The same text for a set of CPUs."""
    starts = sorted(cpu for cpu in cpus if cpu - 1 not in cpus)
    ends = sorted(cpu for cpu in cpus if cpu + 1 not in cpus)
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in zip(starts, ends))


def _links(text: str) -> typing.Dict[str, str]:
    """``rdma -j link`` in one line: a list of ports with ifname and, on Ethernet, netdev. Broken JSON is no link."""
    try:
        entries = decode_json(text, "rdma -j link", unique=False)
    except ParseError:
        return {}
    if not isinstance(entries, list):
        return {}
    return {str(entry["ifname"]): str(entry.get("netdev", "")) for entry in entries if isinstance(entry, dict) and entry.get("ifname")}
