# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the uplinks of a node: the interfaces of its default routes, and the interfaces below them."""

from __future__ import annotations

import typing

from ..._parse.node.neighbours import parse_default_routes, parse_default_routes_6
from ..node.sysfs_reader import SysfsReader

_TABLES: tuple[tuple[str, typing.Callable[[str], tuple[str, ...]]], ...] = (
    ("route", parse_default_routes),
    ("ipv6_route", parse_default_routes_6),
)
_OPEN_VSWITCH = "ovs-system"


def read_uplinks(tables: SysfsReader, readers: typing.Sequence[SysfsReader]) -> typing.Optional[tuple[str, ...]]:
    """Return the interfaces of the default routes and, if an interface is a bond, bridge or VLAN, the interfaces below
    it. Return None if the routing tables could not be read.

    :param tables: reader of the folder with the routing tables of the kernel, ``/proc/net``. A kernel without IPv6 has
        no table ``ipv6_route``
    :param readers: readers of sysfs
    """
    found_in = [tables.value(name, parser) for name, parser in _TABLES]
    if found_in[0] is None or any(name in tables.unread for name, _parser in _TABLES):
        return None
    waiting = [name for names in found_in for name in names or ()]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        entries = [entry for one in readers for entry in one.names(f"class/net/{name}")]
        if name in found or not entries:
            continue
        found[name] = None
        below = [entry[len("lower_") :] for entry in entries if entry.startswith("lower_")]
        # a bridge of Open vSwitch shows no ports of its own: all ports of all bridges are below this one
        waiting += below or ([] if "device" in entries else [_OPEN_VSWITCH])
    return tuple(sorted(found))
