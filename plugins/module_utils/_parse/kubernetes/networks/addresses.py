# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse networks and single addresses, and address ranges as whereabouts interprets them. The pools of nv-ipam are in
nv_ipam.py.

whereabouts uses the addresses from network + 1 to broadcast - 1. ``a-b/len`` is a range inside a network and overrides
range_start and range_end. whereabouts silently ignores a range_start or range_end outside the usable addresses, so such
values are rejected here. [whereabouts 0.9 README, pkg/iphelpers and pkg/config]
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing

from ...._model.base.text import cut_plain
from ...._model.boundary.addresses import ADDRESS
from ...._model.boundary.form import describe_rejected

Address = typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = typing.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# shorter prefixes than these hold more than any site's private networks: a typing mistake, such as /1 for /24
_SHORTEST_PREFIX = {4: 8, 6: 32}
_LONGEST_REASON = 500
EXAMPLE = "a network with its prefix, such as 10.0.0.0/24"


class RangeError(ValueError):
    """The error for an invalid address range in the intent.

    :ivar field: key of the ipam mapping whose value is invalid; empty if the value is not part of such a mapping
    :ivar seen: value of the key, shortened
    :ivar expected: description of a valid value
    :ivar why: reason why the value is invalid
    :ivar remedy: instruction to the user that resolves the cause
    """

    def __init__(self, field: str, seen: str, expected: str, why: str, remedy: str) -> None:
        # the standard library repeats in its words what it can't read
        self.field, self.seen, self.why = field, describe_rejected(seen), cut_plain(why, _LONGEST_REASON)
        super().__init__(f"{self.field} '{self.seen}': {self.why}")
        self.expected = expected
        self.remedy = remedy


@dataclasses.dataclass(frozen=True)
class Pool:
    """The addresses that pods can get.

    :ivar network: network that contains all addresses
    :ivar first: lowest address that is assigned
    :ivar last: highest address that is assigned
    :ivar excluded: closed intervals of addresses as integers, which lie between first and last, are sorted, and do not
        overlap
    """

    network: Network
    first: Address
    last: Address
    excluded: tuple[tuple[int, int], ...] = ()

    @property
    def capacity(self) -> int:
        """Return the number of addresses that pods can get: those from the first to the last address, minus the
        excluded addresses.
        """
        return int(self.last) - int(self.first) + 1 - sum(high - low + 1 for low, high in self.excluded)

    def on_network(self, address: str) -> bool:
        """Return whether ``address`` is a host address of the network. Return False for the network address, the
        broadcast address and an invalid address.
        """
        parsed = address_or_none(address)
        if parsed is None or parsed.version != self.network.version:
            return False
        return parsed in self.network and parsed not in (self.network.network_address, self.network.broadcast_address)

    def spans(self, address: str) -> bool:
        """Return whether ``address`` is between the first and the last address of the pool, inclusive. Excluded
        addresses are not treated differently. Return False for an invalid address.
        """
        return is_between(address, self.network, int(self.first), int(self.last))

    def excludes(self, address: str) -> bool:
        """Return whether ``address`` is between the first and the last address of the pool, but excluded, so that no
        pod gets it. Return False for an invalid address.
        """
        return self.spans(address) and not self.hands_out(address)

    def hands_out(self, address: str) -> bool:
        """Return whether a pod may get ``address``: it is between the first and the last address of the pool, and not
        excluded. Return False for an invalid address.
        """
        parsed = address_or_none(address)
        if (
            parsed is None
            or parsed.version != self.network.version
            or not int(self.first) <= int(parsed) <= int(self.last)
        ):
            return False
        return not any(low <= int(parsed) <= high for low, high in self.excluded)


def parse_range(
    text: str, start: typing.Optional[str] = None, end: typing.Optional[str] = None, exclude: typing.Sequence[str] = ()
) -> Pool:
    """Return the addresses that the range keys of an ipam mapping define.

    :param text: value of ``range``: ``10.0.0.0/24``, or ``10.0.0.10-10.0.0.20/24``
    :param start: first address (``range_start``); None if not set
    :param end: last address (``range_end``); None if not set
    :param exclude: networks and single addresses that pods do not get
    :raises RangeError: a key is invalid. The error names the key
    """
    inner, network = split_range(text)
    if network.num_addresses < 4:
        raise RangeError(
            "range",
            text,
            "a prefix that leaves host addresses",
            "A network of this size has no address for a pod.",
            "Use a larger network.",
        )
    for field, value in (("range_start", start), ("range_end", end)):
        if inner is not None and value is not None:
            why = "range contains its first and last address, and whereabouts uses those."
            raise RangeError(
                field,
                value,
                f"no {field} together with a range of the form a-b/prefix",
                why,
                "Use only one of the two forms.",
            )
    first, last = network.network_address + 1, network.broadcast_address - 1
    if inner is not None:
        first, last = (
            _parse_bounded_address("range", inner[0], network, first, last),
            _parse_bounded_address("range", inner[1], network, first, last),
        )
    if start is not None:
        first = _parse_bounded_address("range_start", start, network, first, last)
    if end is not None:
        last = _parse_bounded_address("range_end", end, network, first, last)
    if int(first) > int(last):
        field = "range_end" if end else "range"
        raise RangeError(
            field,
            end or text,
            f"an address of {first} or higher",
            "The range ends before it starts.",
            "Swap or correct the two addresses.",
        )
    return Pool(network, first, last, merge_exclusions(exclude, int(first), int(last), network.version))


def parse_network(text: str) -> Network:
    """Parse a network in CIDR form, such as ``10.0.0.0/24``. Bits that are set beyond the prefix are dropped, as CNI
    does with routes.

    :raises RangeError: the text is not a network
    """
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise RangeError(
            "",
            text,
            EXAMPLE,
            f"The value is not a network or an address: {error}.",
            "Set the key to a value of the form under 'expected'.",
        ) from error


def is_address(text: str) -> bool:
    """Return whether ``text`` is an IPv4 or IPv6 address."""
    return address_or_none(text) is not None


def split_range(text: str) -> tuple[typing.Optional[tuple[str, str]], Network]:
    """Split the text of a range into two parts: its first and last address, and its network. The first part is None if
    the text names only a network.

    :raises RangeError: the text is not a range, its prefix is missing or too short, or a network has bits set after its
        prefix
    """
    low, dash, rest = text.partition("-")
    inner = None
    body = text
    if dash:
        high, slash, prefix = rest.partition("/")
        inner, body = (low, high), f"{high}{slash}{prefix}"
    if "/" not in text:
        raise RangeError(
            "range",
            text,
            EXAMPLE,
            "Without a prefix, the size of the network is unknown.",
            "Add the prefix, such as /24, to the value.",
        )
    try:
        interface = ipaddress.ip_interface(body)
    except ValueError as error:
        raise RangeError(
            "range",
            text,
            EXAMPLE,
            f"The value is not a network or an address: {error}.",
            "Set the key to a value of the form under 'expected'.",
        ) from error
    network = interface.network
    if network.prefixlen < _SHORTEST_PREFIX[network.version]:
        why = (
            f"/{network.prefixlen} is {network}: {network.num_addresses} addresses, most of them used by other hosts."
            " Pods could not reach those hosts."
        )
        expected = f"a prefix of /{_SHORTEST_PREFIX[network.version]} or longer"
        raise RangeError("range", text, expected, why, "Write the correct network, such as 100.100.100.0/24.")
    if inner is None and interface.ip != network.network_address:
        why = f"Bits are set after the prefix, so two programs may read it as two networks; whereabouts uses {network}."
        raise RangeError(
            "range",
            text,
            str(network),
            why,
            f"Write {network} if it is the correct network; to start at {interface.ip} use range_start.",
        )
    return inner, network


def _parse_bounded_address(field: str, text: str, network: Network, first: Address, last: Address) -> Address:
    """Return the first or last address of a range.

    :param field: key in the intent, for messages
    :param first: lowest address that is permitted
    :param last: highest address that is permitted
    :raises RangeError: the text is no address, or is out of these bounds
    """
    address = address_or_none(text)
    if address is None:
        raise RangeError(
            field,
            text,
            f"an address in {network}",
            "It is not an IP address.",
            "Set the key to a value of the form under 'expected'.",
        )
    if address.version != network.version or not int(first) <= int(address) <= int(last):
        why = "whereabouts ignores it without an error and assigns addresses of the whole network."
        raise RangeError(
            field, text, f"an address from {first} to {last}", why, "Correct this value, or correct range."
        )
    return address


def merge_exclusions(items: typing.Sequence[str], first: int, last: int, version: int) -> tuple[tuple[int, int], ...]:
    """Return networks and single addresses as closed intervals of integers, cut to first..last, sorted and merged.
    Items outside of first..last are left out.

    :param items: texts of networks and addresses
    :param first: lowest address as an integer
    :param last: highest address as an integer
    :param version: IP version that each item must have: 4 or 6
    :raises RangeError: an item is not a network or an address, or has another IP version
    """
    intervals = []
    for index, item in enumerate(items):
        network = parse_exclusion(item, index, version)
        low, high = max(first, int(network.network_address)), min(last, int(network.broadcast_address))
        if low <= high:
            intervals.append((low, high))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def parse_exclusion(item: str, index: int, version: int) -> Network:
    """Return an excluded network or address as a network.

    :param item: text of the entry
    :param index: index of the entry in ``exclude``, for the error
    :param version: IP version that the entry must have: 4 or 6
    :raises RangeError: the text is not a network or an address, or has another IP version
    """
    try:
        network = ipaddress.ip_network(item, strict=False)
    except ValueError as error:
        raise RangeError(
            f"exclude[{index}]",
            item,
            "a network or an address",
            f"The value is not a network or an address: {error}.",
            "Set the key to a value of the form under 'expected'.",
        ) from error
    if network.version != version:
        raise RangeError(
            f"exclude[{index}]",
            item,
            f"IPv{version}",
            "The range has the other IP version.",
            "Set the key to a value of the form under 'expected'.",
        )
    return network


def is_between(address: str, network: Network, first: int, last: int) -> bool:
    """Return whether ``address`` has the IP version of the network and is between two addresses, inclusive. Return
    False for an invalid address.

    :param first: first address as an integer
    :param last: last address as an integer
    """
    parsed = address_or_none(address)
    return parsed is not None and parsed.version == network.version and first <= int(parsed) <= last


def address_or_none(text: str) -> typing.Optional[Address]:
    """Parse an IPv4 or IPv6 address. Return None if the text is not an address."""
    found = ADDRESS.parse(text.strip())
    return None if found is None else ipaddress.ip_address(found)
