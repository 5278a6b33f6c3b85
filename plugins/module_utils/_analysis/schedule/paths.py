# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the links that a packet takes from one HCA port to another, from the topology and the forwarding tables. The
two directions of a link are separate.

Ends (HCA ports) and directions of links are numbers here, since a large fabric has thousands of both. ``PathTable``
provides their names.
"""

from __future__ import annotations

import typing

from ..._model.infiniband.cables import take_cables
from ..._model.infiniband.fabric import LANE_GBPS, Link, LinkEnd, Topology
from ..._model.infiniband.forwarding import ForwardingTable
from .leaf_pods import group_leaves
from .link_directions import Cable, Direction, End

#: no way is longer; a table that sends in a circle is
_MOST_LINKS = 32
#: numbers of directions, in the order of the way
Way = tuple[int, ...]
#: of a way: the rate of its slower end, that of its slowest link, 0 where it is not known, and how many links it has
Kind = tuple[float, float, int]
_Port = tuple[str, int]


class PathTable:
    """The paths between the HCA ports (ends) of one fabric. Ends and link directions are identified by their index in
    ``ends`` and ``directions``.

    :ivar ends: HCA ports that take part. Everywhere else an end is an index in this list
    :ivar directions: link directions, the real ones first. Everywhere else a direction is an index in this list. The
        two directions of a link are an even index and the next one. Links to HCAs that take no part are left out
    :ivar leaves: indices in ``ends`` of the HCA ports on each leaf, by the GUID of the leaf
    :ivar pods: GUIDs of the leaves that reach each other through a switch one level above, by pod. Two levels of
        switches form one pod
    :ivar switches: GUIDs of the switches
    :ivar spread: why the links between two leaves on a path are unknown; empty if they are known
    :ivar cables: cables of the ends, by the GUID of the HCA port; empty on InfiniBand
    :ivar hashed: whether the switches send each flow over one link between two leaves, by a hash of their own. The
        result of one flow is then no evidence about the link of another flow
    :ivar flows: indices in ``ends`` of both ends of the flow that a placeholder for the links between two leaves
        represents, by the index of the placeholder in ``directions``; only if ``hashed``
    :ivar real: number of directions that are not placeholders
    :ivar across: whether ends of different rails may be measured with each other, if the tables lead from one to the
        other
    """

    def __init__(
        self,
        topology: Topology,
        tables: typing.Iterable[ForwardingTable],
        ends: typing.Iterable[End],
        spread: str = "",
        cables: typing.Optional[typing.Mapping[str, Cable]] = None,
        across: bool = False,
    ) -> None:
        """Build the table from the topology and the forwarding tables.

        :param tables: forwarding tables of the switches
        :param ends: ports that take part
        :param spread: why the tables do not determine the path: adaptive routing, or flows that switches spread by a
            hash of their own
        :param cables: cables of the ends, by the GUID of the HCA port, on Ethernet; None on InfiniBand
        :param across: whether ends of different rails may be measured with each other
        """
        self.ends = tuple(ends)
        self.spread = spread
        self.across = across
        self.cables = cables or {}
        self.hashed = cables is not None
        self.flows: dict[int, tuple[int, int]] = {}
        self.directions: list[Direction] = []
        self.leaves: dict[str, list[int]] = {}
        self._tables = {table.guid: table for table in tables}
        self._names = {node.guid: node.called for node in topology.nodes}
        self._end_of = {end.guid: number for number, end in enumerate(self.ends)}
        self._numbers = {(end.rail, end.node): number for number, end in enumerate(self.ends)}
        self.switches = {node.guid for node in topology.nodes if node.kind == "Switch"}
        self._out: dict[_Port, int] = {}
        self._up = [-1] * len(self.ends)
        for link in take_cables(topology).links:
            self._add(link)
        for number, up in enumerate(self._up):
            if up >= 0:
                self.leaves.setdefault(self.directions[up].target, []).append(number)
        self.real = len(self.directions)
        #: directions that lead to a switch
        self._into: dict[str, list[int]] = {}
        for number, direction in enumerate(self.directions):
            self._into.setdefault(direction.target, []).append(number)
        self.pods = self._pods()
        self._ways: dict[tuple[int, int], typing.Union[Way, str]] = {}
        self._kinds: dict[Way, Kind] = {}
        self._passed: dict[Way, frozenset[str]] = {}
        self._between: dict[typing.Hashable, int] = {}
        self._leads: dict[tuple[int, int], bool] = {}
        self._feeders: dict[tuple[str, int], tuple[int, ...]] = {}
        self._over: dict[int, tuple[list[tuple[int, int]], typing.Iterator[tuple[int, int]]]] = {}

    def _add(self, link: Link) -> None:
        """Add both directions of a link with their rate. Leave out a link to an unknown device."""
        near, far = _port(link.a), _port(link.b)
        if any(guid not in self.switches and guid not in self._end_of for guid, _number in (near, far)):
            return
        gbps = link.width * LANE_GBPS[link.speed] if link.width and link.speed in LANE_GBPS else None
        gbps = next((self.cables[guid].gbps for guid, _number in (near, far) if guid in self.cables), gbps)
        for one, other in ((near, far), (far, near)):
            self._out[one] = len(self.directions)
            if one[0] in self._end_of and other[0] in self.switches:
                self._up[self._end_of[one[0]]] = len(self.directions)
            self.directions.append(Direction(*one, *other, gbps))

    def _pods(self) -> tuple[tuple[str, ...], ...]:
        """Return the pods, each as the GUIDs of its leaves. If the topology above the leaves is unknown, all leaves are
        one pod.
        """
        if self.hashed:
            return (tuple(self.leaves),)
        return group_leaves(
            {
                leaf: {self.directions[number].source for number in self._into[leaf]} & self.switches
                for leaf in self.leaves
            }
        )

    def test(
        self, rail: int, source: str, target: str, target_rail: typing.Optional[int] = None
    ) -> typing.Optional[tuple[int, int]]:
        """Return the indices in ``ends`` of the sending and the receiving HCA port. Return None if one of the nodes has
        no port on its rail.

        :param rail: rail of the source
        :param source: name of the node that sends
        :param target: name of the node that receives
        :param target_rail: rail of the target; None for the same rail
        """
        pair = (
            self._numbers.get((rail, source)),
            self._numbers.get((rail if target_rail is None else target_rail, target)),
        )
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])

    def may(self, source: int, target: int) -> bool:
        """Return whether two ends may be measured with each other: they are on the same rail, or rails may be measured
        with each other and a path leads from one end to the other.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        return self.ends[source].rail == self.ends[target].rail or (self.across and self.leads(source, target))

    def leads(self, source: int, target: int) -> bool:
        """Return whether the forwarding tables lead from one end to another, which some do not between rails.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        if not self.spread:
            return self.way(source, target) is not None
        if (source, target) not in self._leads:
            self._leads[source, target] = not isinstance(self._by_tables(source, target), str)
        return self._leads[source, target]

    def end_of(self, number: int) -> typing.Optional[End]:
        """Return the HCA port at one side of a link, or None for a link between two switches.

        :param number: index in ``PathTable.directions`` of one direction of a link
        """
        direction = self.directions[number]
        found = self._end_of.get(direction.source, self._end_of.get(direction.target))
        return None if found is None else self.ends[found]

    def leaf(self, end: int) -> typing.Optional[str]:
        """Return the GUID of the switch to which an end is cabled, or None if the topology shows no switch.

        :param end: index of the HCA port in ``PathTable.ends``
        """
        return self.directions[self._up[end]].target if self._up[end] >= 0 else None

    def up(self, end: int) -> int:
        """Return the index in ``directions`` of the direction from an HCA port to its leaf, or -1 if no leaf is known.

        :param end: index of the HCA port in ``PathTable.ends``
        """
        return self._up[end]

    def down(self, end: int) -> int:
        """Return the index in ``directions`` of the direction from the leaf of an HCA port to the port.

        :param end: index of the HCA port in ``PathTable.ends``
        """
        return self._up[end] ^ 1

    def way(self, source: int, target: int) -> typing.Optional[Way]:
        """Return the indices in ``directions`` of the path from one HCA port to another; None if it is unknown.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        found = self._find_way(source, target)
        return None if isinstance(found, str) else found

    def why_not(self, source: int, target: int) -> str:
        """Return why the path from one end to another is unknown; empty if it is known.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        found = self._find_way(source, target)
        return found if isinstance(found, str) else ""

    def _find_way(self, source: int, target: int) -> typing.Union[Way, str]:
        found = self._ways.get((source, target))
        if found is None:
            found = self._ways[source, target] = self._compute_way(source, target)
        return found

    def _compute_way(self, source: int, target: int) -> typing.Union[Way, str]:
        """Return the links from one end to another one by leaves or forwarding tables, or why they are unknown."""
        near, far = self.leaf(source), self.leaf(target)
        if near is None or far is None or not self.spread:
            return self._by_tables(source, target)
        if near == far:
            return (self._up[source], self.down(target))
        # of a hash each flow has a link of its own
        key = (source, target) if self.hashed else (near, far)
        if key not in self._between:
            self._between[key] = len(self.directions)
            if self.hashed:
                self.flows[len(self.directions)] = (source, target)
            self.directions.append(Direction(near, 0, far, 0, None, True))
        return (self._up[source], self._between[key], self.down(target))

    def _by_tables(self, source: int, target: int) -> typing.Union[Way, str]:
        """Return the links from one end to another one by forwarding tables, or why the tables do not lead there."""
        near, far = self.leaf(source), self.leaf(target)
        if near is None or far is None:
            return f"the topology shows no switch at the cable of {self.ends[source if near is None else target].node}"
        lid, at = self.ends[target].lid, near
        way = [self._up[source]]
        while len(way) < _MOST_LINKS:
            table = self._tables.get(at)
            port = table.port(lid) if table else None
            if port is None:
                return (
                    f"the forwarding table of {self._names[at]} contains no port for LID {lid} of"
                    f" {self.ends[target].node}"
                )
            number = self._out.get((at, port))
            if number is None:
                return (
                    f"{self._names[at]} forwards packets for LID {lid} of {self.ends[target].node} to its port {port},"
                    " where the topology shows no link"
                )
            way.append(number)
            at = self.directions[number].target
            if at == self.ends[target].guid:
                return tuple(way)
            if at not in self.switches:
                return f"packets for LID {lid} of {self.ends[target].node} arrive at {self.name_of(at)}"
        return f"packets for LID {lid} of {self.ends[target].node} loop through {self._names[at]}"

    def kind(self, source: int, target: int) -> Kind:
        """Return the class of a known path, whose paths have comparable rates: the rate of its slower end and of its
        slowest link in Gb/s, and its number of links.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        way = self.way(source, target) or ()
        found = self._kinds.get(way)
        if found is None:
            rates = [self.directions[number].gbps or 0.0 for number in way]
            found = self._kinds[way] = (min(rates[0], rates[-1]), min(rates), len(rates))
        return found

    def passed(self, source: int, target: int) -> frozenset[str]:
        """Return the GUIDs of the switches on the path from one HCA port to another.

        :param source: index of the sending HCA port in ``PathTable.ends``
        :param target: index of the receiving HCA port in ``PathTable.ends``
        """
        way = self.way(source, target) or ()
        found = self._passed.get(way)
        if found is None:
            found = self._passed[way] = frozenset(self.directions[number].source for number in way) & self.switches
        return found

    def over(self, number: int) -> typing.Iterator[tuple[int, int]]:
        """Yield the tests, as indices of the sending and receiving HCA port, whose paths use a link direction. Each
        receiver comes once before any receiver comes with a second sender.

        :param number: index in ``PathTable.directions`` of one direction of a link
        """
        # a suspect is looked at in each round, and mostly the first ones will do: what was found is kept
        found, more = self._over.setdefault(number, ([], self._pairs_over(number)))
        place = 0
        while True:
            while place < len(found):
                yield found[place]
                place += 1
            pair = next(more, None)
            if pair is None:
                return
            found.append(pair)

    def _pairs_over(self, number: int) -> typing.Iterator[tuple[int, int]]:
        """Yield the pairs of ends, as sender and receiver, whose packets may use a direction of a link."""
        direction = self.directions[number]
        if number in self.flows:
            yield self.flows[number]
            return
        if direction.between:
            yield from (
                (source, target) for target in self.leaves[direction.target] for source in self.leaves[direction.source]
            )
            return
        if direction.target in self._end_of:
            targets = [self._end_of[direction.target]]
        elif direction.source in self._end_of or self.spread:
            targets = list(range(len(self.ends)))
        else:
            table = self._tables.get(direction.source)
            targets = [
                end for end, known in enumerate(self.ends) if table and table.port(known.lid) == direction.source_port
            ]
        if direction.source in self._end_of:
            source = self._end_of[direction.source]
            yield from ((source, target) for target in targets if target != source)
            return
        feeders = {target: self.feeders(direction.source, target) for target in targets}
        for place in range(max(map(len, feeders.values()), default=0)):
            for index, (target, sources) in enumerate(feeders.items()):
                if place < len(sources):
                    # not all targets with the first end of a leaf
                    source = sources[(place + 7 * index) % len(sources)]
                    if source != target:
                        yield source, target

    def feeders(self, switch: str, target: int, most: int = _MOST_LINKS) -> tuple[int, ...]:
        """Return the indices of the HCA ports whose paths to a target pass through a switch. If the paths between
        leaves are unknown, all ports are returned.

        :param switch: GUID of the switch
        :param target: index of the receiving HCA port in ``PathTable.ends``
        :param most: maximum number of links before the switch; a longer path does not exist
        """
        if self.spread:
            return tuple(range(len(self.ends)))
        key = (switch, target)
        if key not in self._feeders:
            self._feeders[key] = ()
            found: list[int] = []
            for number in self._into.get(switch, ()):
                near = self.directions[number].source
                if near in self._end_of:
                    found.append(self._end_of[near])
                    continue
                table = self._tables.get(near)
                if most and table and table.port(self.ends[target].lid) == self.directions[number].source_port:
                    found += self.feeders(near, target, most - 1)
            # a topology that tells a link twice would double the ends with each step
            self._feeders[key] = tuple(dict.fromkeys(found))
        return self._feeders[key]

    def name_of(self, guid: str) -> str:
        """Return a device as text: a switch by its name, and an HCA port as ``NODE rail NUMBER``.

        :param guid: GUID of the switch or of the HCA port
        """
        if guid in self._end_of:
            end = self.ends[self._end_of[guid]]
            return f"{end.node} rail {end.rail}"
        return self._names.get(guid, guid)

    def name(self, number: int) -> str:
        """Return a link direction as text: 'leaf01 port 33 to spine00 port 2'.

        :param number: index in ``PathTable.directions`` of one direction of a link
        """
        it = self.directions[number]
        if it.between:
            return f"from {self.name_of(it.source)} to {self.name_of(it.target)}, over an unknown link"
        ends = ((it.source, it.source_port), (it.target, it.target_port))
        named = next((self.cables[guid].port for guid in (it.source, it.target) if guid in self.cables), None)
        ports = [
            f" port {port if named is None else named}" if guid in self.switches and named != "" else ""
            for guid, port in ends
        ]
        return " to ".join(self.name_of(guid) + port for (guid, _port), port in zip(ends, ports))


def _port(end: LinkEnd) -> _Port:
    """Return the GUID and the port number of an end of a link: for a switch its own GUID, for an HCA the GUID of its
    port.
    """
    return (end.guid if end.kind == "Switch" else end.port_guid or end.guid), end.port
