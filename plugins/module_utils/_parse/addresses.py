# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Address ranges as whereabouts reads them.

Sources: whereabouts 0.9 README and pkg/iphelpers: usable are network + 1 to broadcast - 1; ``a-b/len`` is a range inside a network;
range_start and range_end outside the usable range are ignored in silence there, so they are refused here.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing

Address = typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = typing.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# shorter prefixes than these hold more than any site's private networks: a typing mistake, such as /1 for /24
_SHORTEST_PREFIX = {4: 8, 6: 32}
_EXAMPLE = "a network with its prefix, such as 10.0.0.0/24"


class RangeError(ValueError):
    """A range that can't be used.

    :ivar field: key of the ipam mapping that is wrong
    :ivar seen: its value
    :ivar expected: what would be right
    :ivar why: cause
    :ivar remedy: next step
    """

    def __init__(self, field: str, seen: str, expected: str, why: str, remedy: str) -> None:
        super().__init__(f"{field} '{seen}': {why}")
        self.field = field
        self.seen = seen
        self.expected = expected
        self.why = why
        self.remedy = remedy


@dataclasses.dataclass(frozen=True)
class Pool:
    """What pods can get.

    :ivar network: the network that all addresses are in
    :ivar first: lowest address that is handed out
    :ivar last: highest address that is handed out
    :ivar excluded: closed intervals of integers inside first..last, sorted, without overlap
    """

    network: Network
    first: Address
    last: Address
    excluded: typing.Tuple[typing.Tuple[int, int], ...] = ()

    @property
    def capacity(self) -> int:
        """Number of addresses for pods."""
        return int(self.last) - int(self.first) + 1 - sum(high - low + 1 for low, high in self.excluded)

    def on_network(self, address: str) -> bool:
        """Whether ``address`` is a host address of the network; False for what is no address."""
        parsed = _address_or_none(address)
        if parsed is None or parsed.version != self.network.version:
            return False
        return parsed in self.network and parsed not in (self.network.network_address, self.network.broadcast_address)

    def hands_out(self, address: str) -> bool:
        """Whether a pod may get ``address``."""
        parsed = _address_or_none(address)
        if parsed is None or parsed.version != self.network.version or not int(self.first) <= int(parsed) <= int(self.last):
            return False
        return not any(low <= int(parsed) <= high for low, high in self.excluded)


def parse_range(text: str, start: typing.Optional[str] = None, end: typing.Optional[str] = None, exclude: typing.Sequence[str] = ()) -> Pool:
    """Read the range keys of an ipam mapping.

    :param text: ``range``: ``10.0.0.0/24``, or ``10.0.0.10-10.0.0.20/24``
    :param start: ``range_start``
    :param end: ``range_end``
    :param exclude: networks and single addresses
    :raises RangeError: with the key that is wrong
    """
    inner, network = _split(text)
    if network.num_addresses < 4:
        raise RangeError("range", text, "a prefix that leaves host addresses", "A network of this size has no address for a pod.", "Use a wider network.")
    first, last = network.network_address + 1, network.broadcast_address - 1
    if inner is not None:
        first, last = _bounded("range", inner[0], network, first, last), _bounded("range", inner[1], network, first, last)
    if start is not None:
        first = _bounded("range_start", start, network, first, last)
    if end is not None:
        last = _bounded("range_end", end, network, first, last)
    if int(first) > int(last):
        field = "range_end" if end else "range"
        raise RangeError(field, end or text, f"an address from {first} up", "The range ends before it starts.", "Swap or correct the two.")
    return Pool(network, first, last, _excluded(exclude, int(first), int(last), network.version))


def _split(text: str) -> typing.Tuple[typing.Optional[typing.Tuple[str, str]], Network]:
    low, dash, rest = text.partition("-")
    inner = None
    body = text
    if dash:
        high, slash, prefix = rest.partition("/")
        inner, body = (low, high), f"{high}{slash}{prefix}"
    if "/" not in text:
        raise RangeError("range", text, _EXAMPLE, "Without a prefix nobody knows the size of the network.", "Add the prefix.")
    try:
        interface = ipaddress.ip_interface(body)
    except ValueError as error:
        raise RangeError("range", text, _EXAMPLE, f"It can't be read: {error}.", "Correct it.") from error
    network = interface.network
    if network.prefixlen < _SHORTEST_PREFIX[network.version]:
        why = f"/{network.prefixlen} is {network}: {network.num_addresses} addresses, most of them other people's. Pods would lose their way to them."
        expected = f"a prefix of /{_SHORTEST_PREFIX[network.version]} or longer"
        raise RangeError("range", text, expected, why, "Write the network that you mean, such as 100.100.100.0/24.")
    if inner is None and interface.ip != network.network_address:
        why = f"Bits are set beyond the prefix, so two readers may take it for two networks; whereabouts takes {network}."
        raise RangeError("range", text, str(network), why, f"Write {network} if you mean it; to start at {interface.ip} use range_start.")
    return inner, network


def _bounded(field: str, text: str, network: Network, first: Address, last: Address) -> Address:
    address = _address_or_none(text)
    if address is None:
        raise RangeError(field, text, f"an address in {network}", "It is no IP address.", "Correct it.")
    if address.version != network.version or not int(first) <= int(address) <= int(last):
        why = "whereabouts ignores it in silence and hands out addresses of the whole network."
        raise RangeError(field, text, f"an address from {first} to {last}", why, "Correct it, or correct range.")
    return address


def _excluded(items: typing.Sequence[str], first: int, last: int, version: int) -> typing.Tuple[typing.Tuple[int, int], ...]:
    intervals = []
    for index, item in enumerate(items):
        try:
            network = ipaddress.ip_network(item, strict=False)
        except ValueError as error:
            raise RangeError(f"exclude[{index}]", item, "a network or an address", f"It can't be read: {error}.", "Correct it.") from error
        if network.version != version:
            raise RangeError(f"exclude[{index}]", item, f"IPv{version}", "The range is of the other IP version.", "Correct it.")
        low, high = max(first, int(network.network_address)), min(last, int(network.broadcast_address))
        if low <= high:
            intervals.append((low, high))
    merged: typing.List[typing.Tuple[int, int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _address_or_none(text: str) -> typing.Optional[Address]:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None
