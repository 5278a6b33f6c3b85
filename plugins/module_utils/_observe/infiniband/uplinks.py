# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the uplinks of a node, which are the interfaces of its default routes and the interfaces below them, and the
networks and addresses of its NICs.
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.base.errors import RdmaError
from ..._model.node.platform import ADDRESSES, NETWORKS, InterfaceNetwork
from ..._parse.node.neighbours import (
    parse_default_routes,
    parse_default_routes_6,
    parse_local_addresses,
    parse_local_addresses_6,
    parse_networks,
    parse_networks_6,
)
from ..node.routes import read_default_interfaces
from ..node.sysfs_reader import SysfsReader

_TABLES: tuple[tuple[str, typing.Callable[[str], tuple[str, ...]]], ...] = (
    ("route", parse_default_routes),
    ("ipv6_route", parse_default_routes_6),
)
_NETWORKS: tuple[tuple[str, typing.Callable[[str], tuple[tuple[str, str], ...]]], ...] = (
    ("route", parse_networks),
    ("ipv6_route", parse_networks_6),
)
_ADDRESSES: tuple[tuple[str, typing.Callable[[str], tuple[str, ...]]], ...] = (
    ("fib_trie", parse_local_addresses),
    ("if_inet6", parse_local_addresses_6),
)
_OPEN_VSWITCH = "ovs-system"
#: folder with the routing tables of the network namespace of this process
OWN_TABLES = "/proc/net"


def read_uplinks(tables: SysfsReader, readers: typing.Sequence[SysfsReader]) -> typing.Optional[tuple[str, ...]]:
    """Return the interfaces of the default routes, sorted. For a bond, bridge or VLAN, the interfaces below it are
    included. Return None if the routing tables could not be read.

    The tables in ``/proc/net`` show the first next hop of an IPv4 route only. So the kernel itself is asked as well,
    where the tables are those of this network namespace.

    :param tables: reader of the folder with the routing tables of the kernel, ``/proc/net``. A kernel without IPv6 has
        no table ``ipv6_route``
    :param readers: readers of sysfs
    """
    found_in = [tables.value(name, parser) for name, parser in _TABLES]
    if found_in[0] is None or any(name in tables.unread for name, _parser in _TABLES):
        return None
    waiting = [name for names in found_in for name in names or ()]
    if tables.folder == OWN_TABLES:
        try:
            waiting += read_default_interfaces()
        except RdmaError as error:
            tables.errors.append(f"{OWN_TABLES}: {error}")
            return None
    return _find_lower(waiting, readers)


def read_networks(
    tables: SysfsReader, readers: typing.Sequence[SysfsReader]
) -> typing.Optional[tuple[InterfaceNetwork, ...]]:
    """Return the network of each route over a NIC, in the order of the routing tables. For a route over a bond, bridge
    or VLAN, the NICs below it count. Return None if the routing tables could not be read. Interfaces of pods and other
    virtual interfaces are left out, and so are the results after the first ``NETWORKS.most``.

    :param tables: reader of the folder with the routing tables of the kernel, ``/proc/net``
    :param readers: readers of sysfs
    """
    found_in = [tables.value(name, parser) for name, parser in _NETWORKS]
    if found_in[0] is None or any(name in tables.unread for name, _parser in _NETWORKS):
        return None
    found: dict[InterfaceNetwork, None] = {}
    nics: dict[str, tuple[str, ...]] = {}
    for name, network in (item for routes in found_in for item in routes or ()):
        if name not in nics:
            below = _find_lower([name], readers)
            nics[name] = tuple(one for one in below if any("device" in _list_entries(one, [it]) for it in readers))
        found.update({InterfaceNetwork(nic, network): None for nic in nics[name]})
    return tuple(found)[: NETWORKS.most]


def read_addresses(
    tables: SysfsReader, networks: typing.Optional[typing.Sequence[InterfaceNetwork]]
) -> typing.Optional[tuple[str, ...]]:
    """Return the addresses of the node that are in networks of its NICs. Other addresses, such as those of services on
    a node with kube-proxy in mode ipvs, are left out, and so are the results after the first ``ADDRESSES.most``. Return
    None if the addresses or the networks could not be read.

    :param tables: reader of the folder ``/proc/net``. A kernel without IPv6 has no file ``if_inet6``
    :param networks: networks of the NICs; None if not read
    """
    found_in = [tables.value(name, parser) for name, parser in _ADDRESSES]
    if networks is None or found_in[0] is None or any(name in tables.unread for name, _parser in _ADDRESSES):
        return None
    known = [ipaddress.ip_network(name) for name in dict.fromkeys(item.network for item in networks)]
    addresses = [ipaddress.ip_address(text) for texts in found_in for text in texts or ()]
    inside = [item for item in addresses if any(item in network for network in known)]
    return tuple(dict.fromkeys(map(str, inside)))[: ADDRESSES.most]


def _list_entries(name: str, readers: typing.Sequence[SysfsReader]) -> list[str]:
    return [entry for one in readers for entry in one.names(f"class/net/{name}")]


def _find_lower(names: typing.Sequence[str], readers: typing.Sequence[SysfsReader]) -> tuple[str, ...]:
    """Return the given interfaces and the interfaces below them, sorted and without duplicates. Interfaces that sysfs
    does not show are left out.

    :param names: names of the interfaces
    :param readers: readers of sysfs
    """
    waiting = list(names)
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        entries = _list_entries(name, readers)
        if name in found or not entries:
            continue
        found[name] = None
        below = [entry[len("lower_") :] for entry in entries if entry.startswith("lower_")]
        # a bridge of Open vSwitch shows no ports of its own: all ports of all bridges are below this one
        waiting += below or ([] if "device" in entries else [_OPEN_VSWITCH])
    return tuple(sorted(found))
