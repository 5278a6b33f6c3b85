# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocates private IPv4 networks that the cluster does not use."""

from __future__ import annotations

import bisect
import ipaddress
import typing

from ..._model.base.phrases import count_of
from ..._model.intent.proposal import Blank, Value
from ..._model.kubernetes.addresses import AddressFacts
from ..._model.node.platform import ObservedPlatform

# private networks (RFC 1918), those first that sites use least. Those of RFC 6598 (100.64.0.0/10) are left alone:
# OVN-Kubernetes has some of them inside, and no object of the cluster shows it
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("172.16.0.0/12", "10.0.0.0/8", "192.168.0.0/16")))
# of Docker's bridge, which no object of the cluster shows either
_DOCKER = ipaddress.IPv4Network("172.17.0.0/16")
# around the address of a node: how long the prefix of its network is, no object says
_AROUND_NODE = 16
_SMALLEST, _LARGEST = 24, 12


class Networks:
    """An allocator of private IPv4 networks that overlap neither the networks in use nor each other.

    :param addresses: networks that the cluster uses; None if they could not be read
    :param platforms: platform of each node, with the networks of its own interfaces; None if no node was asked
    """

    def __init__(
        self,
        addresses: typing.Optional[AddressFacts],
        platforms: typing.Optional[typing.Mapping[str, ObservedPlatform]] = None,
    ) -> None:
        self._addresses = addresses
        self._taken = [_DOCKER]
        self._known = 0
        # stage network refuses a range that overlaps one of them
        hosts = {text for item in (platforms or {}).values() for text in _list_host_networks(item)}
        of_hosts = [ipaddress.ip_network(text, strict=False) for text in hosts if _is_network(text)]
        self._taken += [network for network in of_hosts if isinstance(network, ipaddress.IPv4Network)]
        self._hosts = len(of_hosts)
        self._unread = sum(
            item.value is None or item.error is not None or item.value.networks is None
            for item in (platforms or {}).values()
        )
        for text, kind in _in_use(addresses):
            network = ipaddress.ip_network(text, strict=False) if _is_network(text) else None
            if isinstance(network, ipaddress.IPv4Network):
                self._known += 1
                wide = kind == "node" and network.prefixlen > _AROUND_NODE
                self._taken.append(network.supernet(new_prefix=_AROUND_NODE) if wide else network)

    def take(self, addresses: int, why: str) -> typing.Union[Value, Blank]:
        """Allocate a network with at least this number of addresses. If the networks in use are not known, or no
        network of this size is free, return a blank for the user to fill in.

        :param addresses: number of addresses
        :param why: purpose of the addresses, as a comment in the proposal
        """
        prefix = min(_SMALLEST, 32 - (addresses - 1).bit_length())
        if self._addresses is None or self._addresses.errors:
            seen = (
                f"could not be read: {'; '.join(self._addresses.errors)}" if self._addresses else "could not be queried"
            )
            return Blank(
                f"a private network of /{prefix} or larger that is not in use",
                f"the networks of the cluster {seen}. Required size: {why}",
            )
        found = self._find_free_network(prefix) if prefix >= _LARGEST else None
        if found is None:
            return Blank(
                f"a network of /{prefix} that is not in use",
                f"no private network of this size is free. Required size: {why}",
            )
        self._taken.append(found)
        pods = (
            ""
            if self._addresses.pods or any(item.kind == "pods" for item in self._addresses.taken)
            else " The pod network of the cluster is unknown."
        )
        beside = (
            f"does not overlap the {self._known} networks that the cluster uses{self._describe_hosts()}; verify that"
            f" the site does not use it outside of the cluster.{pods}{self._describe_unread()}"
        )
        return Value(str(found), f"size for {why}; {beside}")

    def _describe_hosts(self) -> str:
        return f" and the {count_of(self._hosts, 'network')} of the nodes' own interfaces" if self._hosts else ""

    def _describe_unread(self) -> str:
        return (
            f" The networks of the interfaces of {count_of(self._unread, 'node')} are unknown." if self._unread else ""
        )

    def _find_free_network(self, prefix: int) -> typing.Optional[ipaddress.IPv4Network]:
        """Return a free network with this prefix length. Return None if no private network of this size is free. Each
        private network is searched from its upper end down, because sites usually allocate from the lower end.
        """
        size = 1 << (32 - prefix)
        # without overlaps and in order: what a network meets first from above is the last that begins below its end.
        # Tenants may have taken a hundred thousand
        taken = [
            (int(item.network_address), int(item.broadcast_address))
            for item in ipaddress.collapse_addresses(self._taken)
        ]
        for private in _PRIVATE:
            start = int(private.broadcast_address) + 1 - size
            while start >= int(private.network_address):
                place = bisect.bisect_left(taken, (start + size,)) - 1
                if place < 0 or taken[place][1] < start:
                    return ipaddress.IPv4Network((start, prefix))
                start = min(taken[place][0], start) // size * size - size
        return None


def _list_host_networks(platform: ObservedPlatform) -> tuple[str, ...]:
    """Return the networks of a node's own interfaces, as text. Return nothing if they were not read."""
    if platform.value is None or platform.error is not None:
        return ()
    return tuple(item.network for item in platform.value.networks or ())


def _in_use(addresses: typing.Optional[AddressFacts]) -> typing.Iterator[tuple[str, str]]:
    if addresses is not None:
        yield from ((item.network, item.kind) for item in addresses.taken)
        yield from ((pool.network, "attachment") for pool in addresses.pools)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
