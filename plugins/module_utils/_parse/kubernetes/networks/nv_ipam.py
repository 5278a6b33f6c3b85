# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the pools of nv-ipam, and compute their blocks.

nv-ipam cuts an IPPool into blocks of equal size from network + 1 on, and a CIDRPool into networks of equal prefix
length. Each node gets one block, and a block that is excluded as a whole is skipped. [nvidia-k8s-ipam
api/v1alpha1/{helpers,*_validate}.go, pkg/ipam-controller/allocator]
"""

from __future__ import annotations

import dataclasses
import typing

from .addresses import (
    EXAMPLE,
    Network,
    RangeError,
    address_or_none,
    is_between,
    merge_exclusions,
    parse_exclusion,
    split_range,
)


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The blocks of addresses of an nv-ipam pool. Each node gets one block.

    :ivar network: network that contains all blocks
    :ivar first: lowest address of the first block, as an integer
    :ivar last: highest address that a block may have, as an integer
    :ivar size: number of addresses of a block
    :ivar edges: number of addresses at the start, and at the end, of each block that no pod gets
    :ivar excluded: closed intervals of addresses as integers that no pod gets, sorted, not adjacent
    :ivar gateway: address of the gateway of all blocks as an integer, which no pod gets; None if the pool has no such
        gateway
    :ivar gateway_index: index of the address in each block that is the gateway of this block, and that no pod gets;
        None if the blocks have no gateways
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
        """Return whether ``address`` is in the range of addresses from which blocks are made. Excluded addresses are
        not treated differently. Return False for an invalid address.
        """
        return is_between(address, self.network, self.first, self.last)

    def excludes(self, address: str) -> bool:
        """Return whether ``address`` can be in a block, but is not assigned to pods, because it is excluded or is a
        gateway. Return False for an invalid address.

        The result is also False for the first and the last addresses of a block, although they are not assigned either.
        """
        parsed = address_or_none(address)
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
        """Return how many nodes get a block of the pool, and how many pods the smallest of these blocks can serve.

        :param nodes: number of nodes that request a block
        :returns: the number of nodes that get a block, at most ``nodes``; and the number of pod addresses in the block
            that has the fewest, 0 if no node gets a block
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
        """Return the number of addresses of a block that pods can get: without its edges, the exclusions and the
        gateway.

        :param start: first address of the block, as a number
        :param end: last address of the block, as a number
        """
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
    """Return the blocks of equal size in which an IPPool of nv-ipam distributes its addresses to nodes.

    :param text: network of the pool (``subnet``)
    :param size: number of addresses of each node (``perNodeBlockSize``)
    :param gateway: address of the gateway; None if there is none
    :param exclude: networks and single addresses inside of the subnet that no pod gets
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
    """Return the networks of equal size in which a CIDRPool of nv-ipam distributes its addresses to nodes.

    :param text: network of the pool (``cidr``)
    :param prefix: prefix length of each node's network (``perNodeNetworkPrefix``)
    :param gateway_index: index of the gateway in each node's network (``gatewayIndex``); None if there is none
    :param exclude: networks and single addresses inside of the network that no pod gets
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


def _parse_plain_network(text: str) -> Network:
    """Return the network of a pool.

    :raises RangeError: the text is no network, or has a first or last address
    """
    inner, network = split_range(text)
    if inner is not None:
        raise RangeError(
            "range",
            text,
            EXAMPLE,
            "nv-ipam does not support a first and last address, only networks.",
            "Write the network, and exclude the addresses that pods must not use.",
        )
    return network


def _parse_pool_exclusions(exclude: typing.Sequence[str], network: Network) -> tuple[tuple[int, int], ...]:
    """Return the exclusions of a pool of nv-ipam as closed intervals of addresses as integers, sorted and merged.

    :param exclude: networks and single addresses
    :param network: network of the pool
    :raises RangeError: an exclusion is invalid or outside of the pool. The webhook of nv-ipam rejects it, too
    """
    for index, item in enumerate(exclude):
        hole = parse_exclusion(item, index, network.version)
        if not (
            int(network.network_address) <= int(hole.network_address)
            and int(hole.broadcast_address) <= int(network.broadcast_address)
        ):
            why = "The webhook of nv-ipam rejects exclusions outside the pool."
            raise RangeError(f"exclude[{index}]", item, f"a part of {network}", why, "Correct or remove this entry.")
    return merge_exclusions(exclude, int(network.network_address), int(network.broadcast_address), network.version)


def _parse_gateway(text: str, network: Network) -> int:
    """Return the gateway of a pool as a number.

    :raises RangeError: the text is no address of the network
    """
    address = address_or_none(text)
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
