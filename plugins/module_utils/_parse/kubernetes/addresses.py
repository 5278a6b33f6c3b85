# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse address ranges as whereabouts and nv-ipam interpret them.

whereabouts uses the addresses from network + 1 to broadcast - 1. ``a-b/len`` is a range inside a network and overrides
range_start and range_end. whereabouts silently ignores a range_start or range_end outside the usable addresses, so such
values are rejected here. [whereabouts 0.9 README, pkg/iphelpers and pkg/config]

nv-ipam cuts an IPPool into blocks of equal size from network + 1 on, and a CIDRPool into networks of equal prefix
length. Each node gets one block, and a block that is excluded as a whole is skipped. [nvidia-k8s-ipam
api/v1alpha1/{helpers,*_validate}.go, pkg/ipam-controller/allocator]
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing

from ..._model.base.text import plain
from ..._model.boundary.addresses import ADDRESS
from ..._model.boundary.form import shown

Address = typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = typing.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# shorter prefixes than these hold more than any site's private networks: a typing mistake, such as /1 for /24
_SHORTEST_PREFIX = {4: 8, 6: 32}
_LONGEST_REASON = 500
_EXAMPLE = "a network with its prefix, such as 10.0.0.0/24"


class RangeError(ValueError):
    """Raised if an address range of the intent is invalid.

    :ivar field: key of the ipam mapping that is wrong
    :ivar seen: value of the key
    :ivar expected: description of a valid value
    :ivar why: reason why the value is invalid
    :ivar remedy: next step for the user
    """

    def __init__(self, field: str, seen: str, expected: str, why: str, remedy: str) -> None:
        # the standard library repeats in its words what it can't read
        self.field, self.seen, self.why = field, shown(seen), plain(why, _LONGEST_REASON)
        super().__init__(f"{self.field} '{self.seen}': {self.why}")
        self.expected = expected
        self.remedy = remedy


@dataclasses.dataclass(frozen=True)
class Pool:
    """The addresses that pods can get.

    :ivar network: network that contains all addresses
    :ivar first: lowest address that is assigned
    :ivar last: highest address that is assigned
    :ivar excluded: closed intervals of integers inside first..last, sorted, without overlap
    """

    network: Network
    first: Address
    last: Address
    excluded: tuple[tuple[int, int], ...] = ()

    @property
    def capacity(self) -> int:
        """Return the number of addresses that pods can get: those from the first to the last, less the excluded
        ones.
        """
        return int(self.last) - int(self.first) + 1 - sum(high - low + 1 for low, high in self.excluded)

    def on_network(self, address: str) -> bool:
        """Return whether ``address`` is a host address of the network; False for an invalid address."""
        parsed = _address_or_none(address)
        if parsed is None or parsed.version != self.network.version:
            return False
        return parsed in self.network and parsed not in (self.network.network_address, self.network.broadcast_address)

    def spans(self, address: str) -> bool:
        """Return whether ``address`` is between the first and the last address of the pool. An excluded address is,
        too.
        """
        return _is_between(address, self.network, int(self.first), int(self.last))

    def excludes(self, address: str) -> bool:
        """Return whether ``address`` is between the first and the last address of the pool, but excluded, so that no
        pod gets it.
        """
        return self.spans(address) and not self.hands_out(address)

    def hands_out(self, address: str) -> bool:
        """Return whether a pod may get ``address``."""
        parsed = _address_or_none(address)
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
    """Parse the range keys of an ipam mapping.

    :param text: ``range``: ``10.0.0.0/24``, or ``10.0.0.10-10.0.0.20/24``
    :param start: ``range_start``
    :param end: ``range_end``
    :param exclude: networks and single addresses
    :raises RangeError: a key is invalid. The error names the key
    """
    inner, network = _split_range(text)
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
    return Pool(network, first, last, _merge_exclusions(exclude, int(first), int(last), network.version))


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The blocks of addresses of an nv-ipam pool. Each node gets one block.

    :ivar network: network that contains all blocks
    :ivar first: lowest address of the first block, as an integer
    :ivar last: highest address that a block may have, as an integer
    :ivar size: number of addresses of a block
    :ivar edges: number of addresses at the start, and at the end, of each block that no pod gets
    :ivar excluded: closed intervals of integers that no pod gets, sorted, not adjacent
    :ivar gateway: address, as an integer, that no pod gets, because it is the gateway of all blocks; None for no such
        gateway
    :ivar gateway_index: index of the gateway in each block, an address that no pod gets; None for no such gateway
    """

    network: Network
    first: int
    last: int
    size: int
    edges: tuple[int, int] = (0, 0)
    excluded: tuple[tuple[int, int], ...] = ()
    gateway: typing.Optional[int] = None
    gateway_index: typing.Optional[int] = None

    def spans(self, address: str) -> bool:
        """Return whether ``address`` is in the range of addresses from which blocks are made, even if it is
        excluded.
        """
        return _is_between(address, self.network, self.first, self.last)

    def excludes(self, address: str) -> bool:
        """Return whether ``address`` can be in a block, but is not assigned to pods, because it is excluded or is the
        gateway.

        The first and the last addresses of a block, which are not assigned either, are not taken into account.
        """
        parsed = _address_or_none(address)
        if parsed is None or not self.spans(address):
            return False
        number = int(parsed)
        index = (number - self.first) % self.size
        return (
            number == self.gateway
            or index == self.gateway_index
            or any(low <= number <= high for low, high in self.excluded)
        )

    def share(self, nodes: int) -> tuple[int, int]:
        """Compute how many nodes get a block of the pool, and how many pods the poorest of them can serve.

        :param nodes: number of nodes that request a block
        :returns: the number of nodes, at most ``nodes``, that get a block; and the number of pod addresses in the
            smallest of these blocks, 0 if no node gets one
        """
        found, poorest, start = 0, self.size, self.first
        while found < nodes and start + self.size - 1 <= self.last:
            end = start + self.size - 1
            hole = next((high for low, high in self.excluded if low <= start and end <= high), None)
            if hole is not None:
                start = max(end + 1, self.first + (hole + 1 - self.first) // self.size * self.size)
                continue
            # a block of one address that is the gateway's is passed over as well
            if self.size > 1 or start != self.gateway:
                found, poorest = found + 1, min(poorest, self._count_usable_addresses(start, end))
            start = end + 1
        return found, poorest if found else 0

    def _count_usable_addresses(self, start: int, end: int) -> int:
        gateway = self.gateway if self.gateway_index is None else start + self.gateway_index
        start, end = start + self.edges[0], end - self.edges[1]
        holes = [(max(low, start), min(high, end)) for low, high in self.excluded if low <= end and high >= start]
        reserved = (
            gateway is not None and start <= gateway <= end and not any(low <= gateway <= high for low, high in holes)
        )
        return end - start + 1 - sum(high - low + 1 for low, high in holes) - reserved


def parse_blocks(
    text: str, size: int, gateway: typing.Optional[str] = None, exclude: typing.Sequence[str] = ()
) -> Blocks:
    """Parse an IPPool of nv-ipam.

    :param text: ``subnet``
    :param size: ``perNodeBlockSize``
    :param exclude: networks and single addresses inside of the subnet
    :raises RangeError: a value is invalid. The error names its key of the intent
    """
    network = _parse_plain_network(text)
    bits, start, end = network.max_prefixlen, int(network.network_address), int(network.broadcast_address)
    # point-to-point networks and single addresses are used as they are; IPv6 has no broadcast
    if network.prefixlen < bits - 1:
        start, end = start + 1, end - (network.version == 4)
    if not 1 <= size <= end - start + 1:
        why = "The operator's webhook rejects a block that is larger than its network."
        raise RangeError(
            "pool.per_node_block_size",
            str(size),
            f"1 to {end - start + 1}",
            why,
            "Correct this value, or enlarge range.",
        )
    return Blocks(
        network,
        start,
        end,
        size,
        excluded=_parse_pool_exclusions(exclude, network),
        gateway=None if gateway is None else _parse_gateway(gateway, network),
    )


def parse_networks(
    text: str, prefix: int, gateway_index: typing.Optional[int] = None, exclude: typing.Sequence[str] = ()
) -> Blocks:
    """Parse a CIDRPool of nv-ipam.

    :param text: ``cidr``
    :param prefix: ``perNodeNetworkPrefix``
    :param gateway_index: ``gatewayIndex``
    :param exclude: networks and single addresses inside of the network
    :raises RangeError: a value is invalid. The error names its key of the intent
    """
    network = _parse_plain_network(text)
    bits = network.max_prefixlen
    if not max(1, network.prefixlen) <= prefix <= bits:
        why = "Each node gets a network with this prefix from the network in range."
        raise RangeError(
            "pool.per_node_network_prefix",
            str(prefix),
            f"{max(1, network.prefixlen)} to {bits}",
            why,
            "Correct this value, or enlarge range.",
        )
    size = 1 << (bits - prefix)
    edges = (1, int(network.version == 4)) if prefix < bits - 1 else (0, 0)
    if gateway_index is not None and not edges[0] <= gateway_index <= size - 1 - edges[1]:
        why = (
            "The gateway index counts from the network address of each node's network, and must result in a host"
            " address of that network."
        )
        raise RangeError(
            "pool.gateway_index", str(gateway_index), f"{edges[0]} to {size - 1 - edges[1]}", why, "Use 1."
        )
    first, last = int(network.network_address), int(network.broadcast_address)
    return Blocks(
        network, first, last, size, edges, _parse_pool_exclusions(exclude, network), gateway_index=gateway_index
    )


def parse_network(text: str) -> Network:
    """Parse a network in CIDR form. Bits beyond the prefix are dropped, as CNI does with routes.

    :raises RangeError: the text is not a network
    """
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise RangeError("", text, _EXAMPLE, f"It could not be read: {error}.", "Correct this value.") from error


def is_address(text: str) -> bool:
    """Return whether ``text`` is an IPv4 or IPv6 address."""
    return _address_or_none(text) is not None


def _parse_plain_network(text: str) -> Network:
    inner, network = _split_range(text)
    if inner is not None:
        raise RangeError(
            "range",
            text,
            _EXAMPLE,
            "nv-ipam does not support a first and last address, only networks.",
            "Write the network, and exclude the addresses that pods must not use.",
        )
    return network


def _parse_pool_exclusions(exclude: typing.Sequence[str], network: Network) -> tuple[tuple[int, int], ...]:
    """Return the exclusions of a pool of nv-ipam as merged intervals.

    :raises RangeError: an exclusion is outside of the pool. The webhook of nv-ipam rejects it, too
    """
    for index, item in enumerate(exclude):
        hole = _parse_exclusion(item, index, network.version)
        if not (
            int(network.network_address) <= int(hole.network_address)
            and int(hole.broadcast_address) <= int(network.broadcast_address)
        ):
            why = "The webhook of nv-ipam rejects exclusions outside the pool."
            raise RangeError(f"exclude[{index}]", item, f"a part of {network}", why, "Correct or remove this entry.")
    return _merge_exclusions(exclude, int(network.network_address), int(network.broadcast_address), network.version)


def _parse_gateway(text: str, network: Network) -> int:
    address = _address_or_none(text)
    if address is None or address not in network:
        why = "The webhook of nv-ipam rejects a gateway outside the pool."
        raise RangeError(
            "gateway",
            text,
            f"an address in {network}",
            why,
            "Correct the gateway, or remove it: RDMA traffic in one subnet requires no gateway.",
        )
    return int(address)


def _split_range(text: str) -> tuple[typing.Optional[tuple[str, str]], Network]:
    low, dash, rest = text.partition("-")
    inner = None
    body = text
    if dash:
        high, slash, prefix = rest.partition("/")
        inner, body = (low, high), f"{high}{slash}{prefix}"
    if "/" not in text:
        raise RangeError(
            "range", text, _EXAMPLE, "Without a prefix, the size of the network is unknown.", "Add the prefix."
        )
    try:
        interface = ipaddress.ip_interface(body)
    except ValueError as error:
        raise RangeError("range", text, _EXAMPLE, f"It could not be read: {error}.", "Correct this value.") from error
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
    address = _address_or_none(text)
    if address is None:
        raise RangeError(field, text, f"an address in {network}", "It is not an IP address.", "Correct this value.")
    if address.version != network.version or not int(first) <= int(address) <= int(last):
        why = "whereabouts ignores it without an error and assigns addresses of the whole network."
        raise RangeError(
            field, text, f"an address from {first} to {last}", why, "Correct this value, or correct range."
        )
    return address


def _merge_exclusions(items: typing.Sequence[str], first: int, last: int, version: int) -> tuple[tuple[int, int], ...]:
    intervals = []
    for index, item in enumerate(items):
        network = _parse_exclusion(item, index, version)
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


def _parse_exclusion(item: str, index: int, version: int) -> Network:
    try:
        network = ipaddress.ip_network(item, strict=False)
    except ValueError as error:
        raise RangeError(
            f"exclude[{index}]",
            item,
            "a network or an address",
            f"It could not be read: {error}.",
            "Correct this value.",
        ) from error
    if network.version != version:
        raise RangeError(
            f"exclude[{index}]", item, f"IPv{version}", "The range has the other IP version.", "Correct this value."
        )
    return network


def _is_between(address: str, network: Network, first: int, last: int) -> bool:
    parsed = _address_or_none(address)
    return parsed is not None and parsed.version == network.version and first <= int(parsed) <= last


def _address_or_none(text: str) -> typing.Optional[Address]:
    found = ADDRESS.parse(text.strip())
    return None if found is None else ipaddress.ip_address(found)
