# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats of IP addresses and networks. An address with a zone (``fe80::1%eth0``) is rejected: the zone is an interface
name, which the standard library does not validate.
"""

from __future__ import annotations

import ipaddress
import typing

from .form import Form

#: no text of an address, a prefix behind it, or a range of two is longer
_LONGEST = 100


def _build_address_reader(make: typing.Callable[[str], typing.Any]) -> typing.Callable[[str], typing.Optional[str]]:
    """Return a function that parses a text as an IP address or network and returns its shortest form, or None if the
    text is invalid.

    :param make: class or function of the module ``ipaddress``
    """

    def read(text: str) -> typing.Optional[str]:
        if "%" in text or not text.isascii():
            return None
        try:
            return str(make(text))
        except ValueError:
            return None

    return read


#: IPv6 addresses that lead to the IPv4 address in them: IPv4-compatible ones, those of NAT64 (RFC 6052, RFC 8215), of
#: Teredo and of 6to4
_EMBEDDED = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")))


def _parse_host_address(text: str) -> str:
    """Return an address in its shortest form. An IPv4 address mapped into IPv6 is returned as IPv4.

    :raises ValueError: the text is not an address, or not one that a node can have for other nodes (loopback,
        unspecified, multicast, link-local, broadcast). Other IPv6 addresses that embed an IPv4 address are rejected
        too, since they would hide the address of another node
    """
    found = ipaddress.ip_address(text)
    if isinstance(found, ipaddress.IPv6Address) and any(found in network for network in _EMBEDDED):
        raise ValueError(text)
    if (
        found.is_loopback
        or found.is_unspecified
        or found.is_multicast
        or found.is_link_local
        or found == ipaddress.IPv4Address("255.255.255.255")
    ):
        raise ValueError(text)
    mapped = getattr(found, "ipv4_mapped", None)
    return _parse_host_address(str(mapped)) if mapped is not None else str(found)


ADDRESS = Form("an IP address without a zone", "10.0.0.2", _LONGEST, _build_address_reader(ipaddress.ip_address))
#: loopback leads to whoever asks, which for a run is the controller
HOST_ADDRESS = Form(
    "an IP address that other machines can reach (not a loopback, link-local or multicast address)",
    "10.0.0.2",
    _LONGEST,
    _build_address_reader(_parse_host_address),
)
#: an address is the network of itself, and bits beyond the prefix are dropped, as CNI does
NETWORK_OF = Form(
    "an IP address, or a network with its prefix length",
    "10.0.0.0/24",
    _LONGEST,
    _build_address_reader(lambda text: ipaddress.ip_network(text, strict=False)),
)
NETWORK = Form("a network with its prefix length", "10.0.0.0/24", _LONGEST, _build_address_reader(ipaddress.ip_network))

Address = typing.Annotated[str, ADDRESS]
HostAddress = typing.Annotated[str, HOST_ADDRESS]
Network = typing.Annotated[str, NETWORK]
