# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cable each port of a topology has: one. Where a topology tells two of one port, two devices have one GUID, or
somebody made a cable up.

Every stage takes the cable that is told first, and stage fabric fails. Who tells of thousands of cables at one port
would have ways planned over each.
"""

from __future__ import annotations

import typing

from .fabric import Link, LinkEnd, Topology

#: a GUID and the number of the port; of the GUID of a port, which has no other port, ANY
Port = tuple[str, int]
ANY = -1


class Cables(typing.NamedTuple):
    """The cables of a topology.

    :ivar links: those whose ports have no other cable that was told before
    :ivar doubled: by port that is told with several cables the far end of each, in the order of the topology
    """

    links: tuple[Link, ...]
    doubled: typing.Mapping[Port, tuple[LinkEnd, ...]]


def take_cables(topology: Topology) -> Cables:
    """Take one cable for each port: the one that is told first."""
    taken: set[Port] = set()
    suspects: set[Port] = set()
    links = []
    for link in topology.links:
        ports = {*list_ports(link.a), *list_ports(link.b)}
        if taken.isdisjoint(ports):
            links.append(link)
            taken |= ports
        else:
            suspects |= ports
    told: dict[Port, list[LinkEnd]] = {}
    for link in topology.links if suspects else ():
        for near, far in ((link.a, link.b), (link.b, link.a)):
            for port in list_ports(near):
                if port in suspects:
                    told.setdefault(port, []).append(far)
    return Cables(tuple(links), {port: tuple(ends) for port, ends in told.items() if len(ends) > 1})


def list_ports(end: LinkEnd) -> tuple[Port, ...]:
    """Name what has one cable: a port of a switch; a port of any other node by its node, and by its own GUID whatever
    its number."""
    if end.kind == "Switch":
        return ((end.guid, end.port),)
    return ((end.guid, end.port), (end.port_guid or end.guid, ANY))
