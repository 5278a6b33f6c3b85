# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What the probe in a pod printed (see _render/commands.py) to the RDMA device on the pod's virtual function.

In the shared RDMA namespace mode a pod sees the devices of all pods of its node: the device is found by the PCI address that the device
plugin put into the environment, or by the netdev of the attachment; never by its place in a list.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing

from .._model.errors import RdmaError

_RATE = re.compile(r"^(?P<gbps>[0-9]+(?:\.[0-9]+)?) Gb/sec")
_SPEED = re.compile(r"^(?P<gts>[0-9]+(?:\.[0-9]+)?) GT/s")


class ProbeError(RdmaError):
    """No RDMA device on the virtual function. The message says where it was looked for and what is there instead."""


@dataclasses.dataclass(frozen=True)
class Probe:
    """:ivar addresses: PCI addresses that the device plugin gave to the pod (PCIDEVICE_*)
    :ivar pci_devices: RDMA devices of a PCI address, by sysfs
    :ivar links: netdev of each RDMA device, by ``rdma -j link``
    :ivar rates: of each RDMA device's port 1, in Gb/s
    :ivar pcie: of the PCI address, or of its physical function: speed x width, less the encoding (8b/10b below 8 GT/s, 128b/130b from there on), in Gb/s
    """

    addresses: typing.Tuple[str, ...]
    pci_devices: typing.Dict[str, typing.Tuple[str, ...]]
    links: typing.Dict[str, str]
    rates: typing.Dict[str, float]
    pcie: typing.Dict[str, float]

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
    for line in text.splitlines():
        word, _blank, rest = line.partition(" ")
        if word == "env":
            addresses.extend(item.lower() for item in rest.partition("=")[2].split(",") if item)
        elif word == "rdma":
            links.update(_links(rest))
        elif word in ("pci", "speed", "width", "rate"):
            key, _blank, value = rest.partition(" ")
            if word == "pci":
                pci_devices.setdefault(key.lower(), []).append(value.strip())
            elif word == "width" and value.strip().isascii() and value.strip().isdigit():
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
        pcie={address: speed * widths[address] * (0.8 if speed < 8 else 128 / 130) for address, speed in speeds.items() if widths.get(address)},
    )


def _links(text: str) -> typing.Dict[str, str]:
    """``rdma -j link`` in one line: a list of ports with ifname and, on Ethernet, netdev. Broken JSON is no link."""
    try:
        entries = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(entries, list):
        return {}
    return {str(entry["ifname"]): str(entry.get("netdev", "")) for entry in entries if isinstance(entry, dict) and entry.get("ifname")}
