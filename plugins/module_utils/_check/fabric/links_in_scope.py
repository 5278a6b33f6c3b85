# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric: find the links of a topology that carry traffic of a fabric of the intent. The links of other tenants
are out of scope.
"""

from __future__ import annotations

import functools
import operator
import typing

from ..._analysis.fleet.hca_locations import End, end_of
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.infiniband.cables import take_cables
from ..._model.infiniband.error_counters import UnreadPort
from ..._model.infiniband.fabric import Link, Topology

#: number of the port in a query about all ports of a node
ALL_PORTS = 255


class LinksInScope:
    """The ports that matter to the fabric: those of its HCAs, and of the links between switches that its traffic may
    use.

    A switch that connects only HCAs of other tenants is out of scope, unless it is on a shortest path between two
    leaves of the fabric.

    :ivar ours: both ends of the links in scope
    :ivar leaves: GUIDs of the switches with HCAs of the fabric
    :ivar far: the other end of each end of a link
    """

    def __init__(self, membership: Membership, topology: Topology) -> None:
        ours = {
            member.port.guid for members in membership.members.values() for member in members if member.port is not None
        }
        inside = {node.guid for node in topology.nodes if node.aggregation}
        self.far: dict[End, End] = {}
        self._by_lid: dict[int, list[End]] = {}
        with_hcas: set[str] = set()
        with_ours: set[str] = set()
        between = []
        self.ours: set[End] = set()
        for link in take_cables(topology).links:
            a, b = end_of(link.a), end_of(link.b)
            mine = {a[0], b[0]} & ours
            self.far[a], self.far[b] = b, a
            for end, place in ((link.a, a), (link.b, b)):
                if end.lid is not None:
                    self._by_lid.setdefault(end.lid, []).append(place)
            if link.a.kind == link.b.kind == "Switch":
                between.append(link)
            else:
                switches = {end.guid for end in (link.a, link.b) if end.kind == "Switch"}
                if not {link.a.guid, link.b.guid} & inside:
                    with_hcas |= switches
                if mine:
                    with_ours |= switches
                    self.ours |= {a, b}
        self.leaves = with_ours
        # a leaf of others alone carries nothing of ours; a spine to which a storage node is cabled lies between our
        # leaves all the same
        foreign = with_hcas - with_ours
        foreign -= _list_switches_between(with_ours, foreign, between)
        for link in between:
            if not {link.a.guid, link.b.guid} & foreign:
                self.ours |= {end_of(link.a), end_of(link.b)}

    def ends_of(self, ports: typing.Iterable[UnreadPort]) -> set[End]:
        return {end for port in ports for end in self._by_lid.get(port.lid, ()) if port.port in (end[1], ALL_PORTS)}

    def knows(self, port: UnreadPort) -> bool:
        return bool(self.ends_of((port,)))


#: no way has more links, and no comparison of distances is longer: what is beyond them is taken for ours, which asks
#: more of it
_MOST_LINKS = 32
_MOST_COMPARED = 20_000_000
#: of 64 bits, for all distances: some 100 MB
_MOST_WORDS = 10_000_000


def _list_switches_between(leaves: set[str], asked: set[str], links: typing.Sequence[Link]) -> set[str]:
    """Return those of the switches ``asked`` that are on a shortest path between two leaves.

    If the computation would take too long, return all of them.

    Each leaf is represented by one bit, so that the paths from all leaves are computed at once: a large fabric has
    hundreds of leaves.

    :param leaves: GUIDs of the leaves
    :param asked: GUIDs of the switches to test
    :param links: links between switches
    """
    if not asked or len(leaves) < 2:
        return set()
    near: dict[str, set[str]] = {guid: set() for guid in (*leaves, *asked)}
    for link in links:
        near.setdefault(link.a.guid, set()).add(link.b.guid)
        near.setdefault(link.b.guid, set()).add(link.a.guid)
    order = sorted(leaves)
    bits = {leaf: 1 << number for number, leaf in enumerate(order)}
    # by number of steps the leaves that are so near, or nearer
    within = [{guid: bits.get(guid, 0) for guid in near}]
    words = 1 + len(order) // 64
    while len(within) < 2 or within[-1] != within[-2]:
        if len(within) > _MOST_LINKS or len(near) * len(within) * words > _MOST_WORDS:
            return set(asked)
        last = within[-1]
        within.append(
            {
                guid: functools.reduce(operator.or_, (last[other] for other in others), last[guid])
                for guid, others in near.items()
            }
        )
    if len(asked) * len(order) * len(within) * words > _MOST_COMPARED:
        return set(asked)
    return {guid for guid in asked if _is_on_shortest_path(guid, order, within)}


def _is_on_shortest_path(
    guid: str, order: typing.Sequence[str], within: typing.Sequence[typing.Mapping[str, int]]
) -> bool:
    """Return whether a switch is on a shortest path between two leaves: no path between them is shorter than the path
    through the switch.

    :param guid: GUID of the switch
    :param order: leaves in the order of their bits
    :param within: leaves that a switch reaches within a number of steps, as one bit for each leaf, by the number of
        steps and the GUID of the switch
    """
    at = [(steps, within[steps][guid] & ~within[steps - 1][guid]) for steps in range(1, len(within))]
    at = [(steps, leaves) for steps, leaves in at if leaves]
    for one, leaves in at:
        for number in _list_bit_numbers(leaves):
            nearer = [within[min(one + other, len(within)) - 1][order[number]] for other, _others in at]
            if any(others & ~less & ~(1 << number) for (_other, others), less in zip(at, nearer)):
                return True
    return False


def _list_bit_numbers(bits: int) -> typing.Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
