# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the neighbor table of the kernel (``ip -json neigh show``, iproute2 4.16 to 6.15), the interfaces of its
default routes and of its networks, and the addresses of the host.
"""

from __future__ import annotations

import ipaddress
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.devices import INTERFACE
from ..limits import decode_json

_TOOL, _FILE, _FILE_6 = "ip -json neigh show", "/proc/net/route", "/proc/net/ipv6_route"
_FILE_TRIE, _FILE_ADDRESSES_6 = "/proc/net/fib_trie", "/proc/net/if_inet6"
_HARDWARE_ADDRESS = re.compile(r"\A([0-9a-f]{2}:){5}[0-9a-f]{2}\Z")
_HEXADECIMAL = re.compile(r"\A[0-9a-f]{8}\Z")
_ADDRESS_6, _LENGTH_6 = re.compile(r"\A[0-9a-f]{32}\Z"), re.compile(r"\A[0-9a-f]{2}\Z")
#: RTF_REJECT: each network namespace has such a default route, on lo
_REJECT = 0x0200
#: set by hand, or by a program such as a network plugin: nobody was seen
_NOT_SEEN = ("PERMANENT", "NOARP", "FAILED", "INCOMPLETE", "NONE")


def parse_neighbours(text: str) -> dict[str, tuple[str, ...]]:
    """Return the Ethernet addresses of the neighbors that were seen on each network interface, sorted, by name of the
    interface. Neighbors with an InfiniBand address, and entries of a state in which no neighbor was seen, are left out.

    :param text: output of ``ip -json neighbour``
    :raises ParseError: the output has an unexpected form
    """
    entries = decode_json(text, _TOOL, unique=False)
    found: dict[str, set[str]] = {}
    for entry in _require_list(text, entries):
        name, address, states = (
            (entry.get(key) for key in ("dev", "lladdr", "state")) if isinstance(entry, dict) else (None, None, None)
        )
        if not INTERFACE.fits(name) or not isinstance(address, (str, type(None))):
            raise ParseError(_TOOL, str(entry), "an object with dev and lladdr")
        if (
            address
            and _HARDWARE_ADDRESS.match(address.lower())
            and not set(map(str, _require_list(text, states or []))) & set(_NOT_SEEN)
        ):
            found.setdefault(str(name), set()).add(address.lower())
    return {name: tuple(sorted(addresses)) for name, addresses in found.items()}


def parse_default_routes(text: str) -> tuple[str, ...]:
    """Return the interfaces of the IPv4 default routes in ``/proc/net/route``, each once (net/ipv4/fib_trie.c
    fib_route_seq_show).

    :raises ParseError: the text has an unexpected form
    """
    lines = text.splitlines()
    if not lines or lines[0].split()[:2] != ["Iface", "Destination"]:
        raise ParseError(_FILE, text, "a table that begins with Iface and Destination")
    found: dict[str, None] = {}
    for line in filter(str.strip, lines[1:]):
        fields = line.split()
        if len(fields) < 8:
            raise ParseError(_FILE, line, "8 columns or more")
        if fields[1] == fields[7] == "00000000":
            found[INTERFACE.of(fields[0], _FILE)] = None
    return tuple(found)


def parse_default_routes_6(text: str) -> tuple[str, ...]:
    """Return the interfaces of the IPv6 default routes in ``/proc/net/ipv6_route``, each once (net/ipv6/route.c
    ipv6_route_native_seq_show). Routes that reject all packets are left out.

    :raises ParseError: the text has an unexpected form
    """
    found: dict[str, None] = {}
    for line in filter(str.strip, text.splitlines()):
        fields = line.split()
        if len(fields) != 10 or not _HEXADECIMAL.match(fields[8]):
            raise ParseError(_FILE_6, line, "10 columns, the ninth hexadecimal")
        if fields[0] == "0" * 32 and fields[1] == "00" and not int(fields[8], 16) & _REJECT:
            found[INTERFACE.of(fields[9], _FILE_6)] = None
    return tuple(found)


def parse_networks(text: str) -> tuple[tuple[str, str], ...]:
    """Return the IPv4 routes without a gateway in ``/proc/net/route``, each once, as interface and network in CIDR
    form. They are the networks in which the interfaces have an address.

    :raises ParseError: the text has an unexpected form
    """
    found: dict[tuple[str, str], None] = {}
    for line in filter(str.strip, text.splitlines()[1:]):
        fields = line.split()
        if len(fields) < 8 or not all(_HEXADECIMAL.match(fields[at].lower()) for at in (1, 2, 7)):
            raise ParseError(_FILE, line, "8 columns or more, destination, gateway and mask hexadecimal")
        destination, gateway, mask = (ipaddress.IPv4Address(bytes.fromhex(fields[at])[::-1]) for at in (1, 2, 7))
        if int(gateway) or not int(mask):
            continue
        try:
            network = ipaddress.IPv4Network((int(destination), bin(int(mask)).count("1")))
        except ValueError:
            raise ParseError(_FILE, line, "a destination within its mask") from None
        found[INTERFACE.of(fields[0], _FILE), str(network)] = None
    return tuple(found)


def parse_networks_6(text: str) -> tuple[tuple[str, str], ...]:
    """Return the IPv6 routes without a gateway in ``/proc/net/ipv6_route``, each once, as interface and network in CIDR
    form. Default routes, and routes of multicast, loopback and link-local addresses, are left out.

    :raises ParseError: the text has an unexpected form
    """
    found: dict[tuple[str, str], None] = {}
    for line in filter(str.strip, text.splitlines()):
        fields = line.split()
        if len(fields) != 10 or not _ADDRESS_6.match(fields[0]) or not _LENGTH_6.match(fields[1]):
            raise ParseError(_FILE_6, line, "10 columns, of which the first two are a hexadecimal network")
        if not _HEXADECIMAL.match(fields[8]):
            raise ParseError(_FILE_6, line, "10 columns, the ninth hexadecimal")
        length, address = int(fields[1], 16), ipaddress.IPv6Address(int(fields[0], 16))
        local = address.is_link_local or address.is_multicast or address.is_loopback
        if not length or length > 128 or local or set(fields[4]) != {"0"} or int(fields[8], 16) & _REJECT:
            continue
        network = ipaddress.IPv6Network((int(address), length), strict=False)
        found[INTERFACE.of(fields[9], _FILE_6), str(network)] = None
    return tuple(found)


def parse_local_addresses(text: str) -> tuple[str, ...]:
    """Return the IPv4 addresses of the host in ``/proc/net/fib_trie``, each once: the leaves of the routing table with
    an entry of length 32 and type LOCAL (net/ipv4/fib_trie.c fib_trie_seq_show). Loopback addresses are left out.

    :raises ParseError: the text has an unexpected form
    """
    found: dict[str, None] = {}
    leaf: typing.Optional[ipaddress.IPv4Address] = None
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["|--"] and len(fields) == 2:
            leaf = _parse_address(line, fields[1])
        elif fields[:1] == ["/32"] and fields[2:3] == ["LOCAL"]:
            if leaf is None:
                raise ParseError(_FILE_TRIE, line, "a leaf |-- ADDRESS above the entry")
            if not leaf.is_loopback:
                found[str(leaf)] = None
    return tuple(found)


def _parse_address(line: str, text: str) -> ipaddress.IPv4Address:
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        raise ParseError(_FILE_TRIE, line, "a leaf with an IPv4 address") from None


def parse_local_addresses_6(text: str) -> tuple[str, ...]:
    """Return the IPv6 addresses of the host in ``/proc/net/if_inet6``, each once (net/ipv6/addrconf.c if6_seq_show).
    Loopback and link-local addresses are left out.

    :raises ParseError: the text has an unexpected form
    """
    found: dict[str, None] = {}
    for line in filter(str.strip, text.splitlines()):
        fields = line.split()
        if len(fields) != 6 or not _ADDRESS_6.match(fields[0]):
            raise ParseError(_FILE_ADDRESSES_6, line, "6 columns, the first of them a hexadecimal address")
        address = ipaddress.IPv6Address(int(fields[0], 16))
        if not address.is_loopback and not address.is_link_local:
            found[str(address)] = None
    return tuple(found)


def _require_list(text: str, value: typing.Any) -> list[typing.Any]:
    if not isinstance(value, list):
        raise ParseError(_TOOL, text, "a list")
    return value
