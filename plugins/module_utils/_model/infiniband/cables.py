# SPDX-License-Identifier: GPL-3.0-or-later

"""Selection of one cable per port in a topology. If a topology has several cables at one port, two devices have the
same GUID or the topology was forged.

Every stage uses the first listed cable, and stage ``fabric`` fails. Without this selection, a forged topology with
thousands of cables at one port would cause a path computation for each of them.
"""

from __future__ import annotations

import typing

from .fabric import Link, LinkEnd, Topology

#: a GUID and the number of the port; of the GUID of a port, which has no other port, ANY
Port = tuple[str, int]
ANY = -1


class Cables(typing.NamedTuple):
    """The cables of a topology, with at most one at each port.

    :ivar links: links whose ports have no earlier cable in the topology
    :ivar doubled: far ends of the cables of a port that has several, in the order of the topology, by port
    """

    links: tuple[Link, ...]
    doubled: typing.Mapping[Port, tuple[LinkEnd, ...]]


def take_cables(topology: Topology) -> Cables:
    """Return the topology's cables with only the first listed one at each port, and the ports that have several."""
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
    """Return the identities of the port at a link end. If two cables have an identity in common, they are at the same
    port. A port of a switch has one identity: GUID and port number. A port of any other node has two: node GUID with
    port number, and port GUID with ``ANY``.
    """
    if end.kind == "Switch":
        return ((end.guid, end.port),)
    return ((end.guid, end.port), (end.port_guid or end.guid, ANY))
