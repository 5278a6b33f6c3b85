# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of the probe, a script that runs in an observer, a pod with access to its host. It prints the
current state of an HCA and its virtual functions on the host.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.addresses import ADDRESS, HOST_ADDRESS
from ..._model.boundary.devices import INTERFACE, PCI_ADDRESS, RDMA_DEVICE, PciAddress, RdmaDevice
from ..._model.boundary.devices import Interface as DeviceName
from ..._model.node.hca import VfAdministration
from ..limits import decode_json
from ..node.ip_link import MOST_LINKS, parse_vf_settings
from .probe import Probe, ProbeError, parse

_NUMBER = re.compile(r"[0-9]{1,5}", re.ASCII)
#: virtual functions of a port: its capability has 16 bits for them, and no HCA has a tenth of that
_MOST_FUNCTIONS = 4_096
_THROTTLED = re.compile(r"^nr_throttled ([0-9]{1,18})$", re.ASCII | re.MULTILINE)
Interface = typing.Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]


@dataclasses.dataclass(frozen=True)
class PodHost:
    """An HCA and its virtual functions on the host of a pod.

    :ivar probe: RDMA devices, CPUs and tools, as the script reports them on the host; they cover all functions of the
        HCA
    :ivar functions: PCI address of each virtual function, by number of the virtual function
    :ivar netdevs: network interfaces of each function in the host's network namespace, by PCI address of the function
    :ivar active: RDMA devices whose port is active
    :ivar rnics: RDMA devices of iWARP, which can connect only over rdma_cm
    :ivar settings: settings that the physical function applies to each virtual function, by number of the virtual
        function
    :ivar addresses: addresses of each network interface with their prefix lengths, by name of the interface
    """

    probe: Probe
    functions: dict[int, PciAddress]
    netdevs: dict[PciAddress, tuple[DeviceName, ...]]
    active: frozenset[RdmaDevice]
    rnics: frozenset[RdmaDevice]
    settings: dict[int, VfAdministration]
    addresses: dict[DeviceName, tuple[Interface, ...]]

    def device(self, function: str) -> str:
        """Return the name of the RDMA device of a function in the host's namespaces.

        :param function: PCI address of the function
        :raises RdmaError: the function has no network interface on the host, or not exactly one RDMA device
        """
        netdevs = self.netdevs.get(function, ())
        if not netdevs:
            raise ProbeError(
                f"{function} has no network interface on the host: a pod uses it, or another driver is bound to it"
            )
        return self.probe.device(netdevs[0], function)

    def free(self, taken: typing.Container[str]) -> tuple[str, ...]:
        """Return the PCI addresses of the virtual functions that have exactly one RDMA device in the host's namespaces
        and are not in ``taken``. Functions with an active port come first, each group in the order of the numbers of
        the functions.

        :param taken: functions that pods of linerate.rdma use
        """
        found = []
        for _number, function in sorted(self.functions.items()):
            netdevs = self.netdevs.get(function, ())
            devices = self.probe.find_devices(netdevs[0], function) if netdevs else ()
            if len(devices) == 1 and function not in taken:
                found.append((devices[0] not in self.active, function))
        return tuple(function for _inactive, function in sorted(found, key=lambda item: item[0]))

    def administration(self, function: str) -> VfAdministration:
        """Return the settings that the physical function applies to a virtual function. Return empty settings if they
        are unknown.

        :param function: PCI address of the virtual function
        """
        number = next((number for number, address in self.functions.items() if address == function), -1)
        return self.settings.get(number, VfAdministration())

    def address(self, function: str) -> typing.Optional[str]:
        """Return an address of a function's interface to which other hosts can connect. Return an IPv4 address if the
        interface has one, otherwise an IPv6 address, and None if it has neither.

        :param function: PCI address of the function
        """
        found = [
            item
            for netdev in self.netdevs.get(function, ())
            for item in self.addresses.get(netdev, ())
            if HOST_ADDRESS.fits(str(item.ip))
        ]
        return next((str(item.ip) for item in sorted(found, key=lambda item: item.version)), None)

    def leads(self, function: str, address: str) -> bool:
        """Return whether packets to an IP address certainly leave the host through the interfaces of a function. This
        is the case if at least one interface of the host has an address in the network of ``address``, and all such
        interfaces belong to the function.

        :param function: PCI address of the function
        :param address: IP address of the other host
        """
        wanted = ipaddress.ip_address(address)
        leading = {netdev for netdev, own in self.addresses.items() if any(wanted in item.network for item in own)}
        return bool(leading) and leading <= set(self.netdevs.get(function, ()))


def parse_host(text: str, pf: str) -> PodHost:
    """Parse the lines that the probe prints on the host of a pod. Unknown and invalid lines are ignored. This function
    never raises an error, because a missing value is reported only when a caller needs it.

    :param text: output of the probe
    :param pf: PCI address of the physical function
    """
    functions: dict[int, str] = {}
    netdevs: dict[str, list[str]] = {}
    devices: dict[str, set[str]] = {"active": set(), "rnic": set()}
    settings: dict[str, dict[int, VfAdministration]] = {}
    addresses: dict[str, tuple[Interface, ...]] = {}
    for line in text.splitlines():
        word, _blank, rest = line.partition(" ")
        key, _blank, value = rest.partition(" ")
        value = value.strip()
        if word == "vf" and _NUMBER.fullmatch(key) and PCI_ADDRESS.fits(value):
            if len(functions) < _MOST_FUNCTIONS:
                functions[int(key)] = value.lower()
        elif word == "net" and PCI_ADDRESS.fits(key) and INTERFACE.fits(value):
            netdevs.setdefault(key.lower(), []).append(value)
        elif word in devices and RDMA_DEVICE.fits(rest.strip()):
            devices[word].add(rest.strip())
        elif word == "settings":
            try:
                settings = parse_vf_settings(rest)
            except ParseError:
                settings = {}
        elif word == "addresses":
            addresses = _list_addresses(rest)
    mine = next((settings[name] for name in netdevs.get(pf, ()) if name in settings), {})
    own = {key: tuple(names) for key, names in netdevs.items()}
    return PodHost(
        parse(text), functions, own, frozenset(devices["active"]), frozenset(devices["rnic"]), mine, addresses
    )


def _list_addresses(text: str) -> dict[str, tuple[Interface, ...]]:
    """Return the addresses of each interface from ``ip -json address show``, by name of the interface. Invalid
    addresses are left out, so that no connection to them is made. The result is empty if the text is not JSON.
    """
    try:
        links = decode_json(text, "ip -json address show", most_bytes=MOST_LINKS, unique=False)
    except ParseError:
        return {}
    found: dict[str, tuple[Interface, ...]] = {}
    for link in links if isinstance(links, list) else ():
        if not isinstance(link, dict) or not INTERFACE.fits(link.get("ifname")):
            continue
        own = link.get("addr_info")
        read = [_parse_ip_interface(item) for item in own if isinstance(item, dict)] if isinstance(own, list) else []
        found[link["ifname"]] = tuple(item for item in read if item is not None)
    return found


def _parse_ip_interface(item: dict[str, typing.Any]) -> typing.Optional[Interface]:
    """Return an address of an interface with its prefix length. Return None if it has another form.

    :param item: entry of ``addr_info`` in the output of ``ip -j address``
    """
    # the standard library takes any text for a zone
    if not ADDRESS.fits(item.get("local")):
        return None
    try:
        return ipaddress.ip_interface(f"{item.get('local')}/{item.get('prefixlen')}")
    except ValueError:
        return None


def parse_throttled(text: str) -> typing.Optional[int]:
    """Return the number of periods in which the CPUs of a container were throttled since it started, from ``cpu.stat``
    of its cgroup. Return None if the text has no such number.
    """
    match = _THROTTLED.search(text)
    return int(match.group(1)) if match else None
