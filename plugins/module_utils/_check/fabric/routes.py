# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow the forwarding tables from each leaf to each HCA of the same rail. Check id: ``fabric.routes``.

A switch drops packets for a LID of which its table says nothing, also with adaptive routing. Stage bandwidth plans its
tests around such paths, and stage reachability tests only some of the pairs.
"""

from __future__ import annotations

import operator
import typing

from ..._analysis.fleet.hca_locations import End, end_of
from ..._analysis.fleet.hcas_of_fabric import Member, Membership
from ..._model.base.phrases import count_of, format_clause
from ..._model.infiniband.cables import take_cables
from ..._model.infiniband.fabric import LinkEnd, Topology
from ..._model.infiniband.forwarding import UNTOLD, SeenForwarding
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .bounded import limit_findings
from .names import Names

_CHECK, _EXPECTED = "fabric.routes", "a path from each leaf to each HCA of the same rail"
#: LIDs in a block of a table
_BLOCK = 64
#: dump_fts before rdma-core 63 leaves out larger numbers of ports, and the last LID if it is a multiple of 64
_MOST_PORTS = 127
#: what is wrong at the switch where a path ends
_Fault = typing.Literal["unread", "no port", "no link", "loop"]
_REMEDY = (
    "The subnet manager may have changed the routes during the stage. Wait a minute, then run stage fabric again. If"
    " the finding remains, run ibtracert SOURCE-LID DESTINATION-LID as root on a node of each leaf. SOURCE-LID is the"
    " LID of the port of that node (ibstat prints it as Base lid), and DESTINATION-LID is the LID under 'why'. If each"
    " ibtracert reaches the destination, the switches have the route, and you can waive this finding. Otherwise read"
    " the log of the subnet manager for errors of this switch (opensm: unable to set LFT block). At a time without"
    " jobs, restart the management agent of the switch, or the switch. Then run stage fabric again."
)


class _Stop(typing.NamedTuple):
    """The switch at which a path ends before it reaches the HCA, and the reason."""

    switch: str
    fault: _Fault


def check_routes(
    fabric: Fabric, membership: Membership, topology: Topology, forwarding: typing.Optional[SeenForwarding]
) -> list[Finding]:
    """Return a finding for each switch at which paths to HCAs of the fabric end, or a pass. The list is empty if the
    tables were not requested.

    The status is ``unknown`` if the tables do not tell the port, since the tool that reads them may have left it out.
    It is ``fail`` if a table leads packets astray; without static routing it is ``warn``, because switches that route
    adaptively may have further tables.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param forwarding: forwarding tables of the switches; None if they were not requested
    """
    if forwarding is None:
        return []
    if not forwarding.tables:
        why = (
            f"dump_fts failed: {format_clause(forwarding.error, 'it printed no table')}. So it is unknown whether"
            " the switches have a path to each HCA. Stage reachability tests the paths of some pairs."
        )
        remedy = (
            "Run time dump_fts -n as root on a node of the fabric. If it prints an error, correct it. If it"
            " takes longer than fabric_discovery_seconds, raise this setting. Then run stage fabric again."
        )
        return [Finding(_CHECK, fabric.name, WARN, "forwarding tables not read", _EXPECTED, why, remedy)]
    names, walk = Names(topology), _Walk(topology, forwarding)
    rails: dict[int, list[tuple[str, Member]]] = {}
    for node, members in membership.members.items():
        for member in members:
            if member.port is not None and member.port.lid and walk.leaf_of(member.port.guid):
                rails.setdefault(member.rail, []).append((node, member))
    stops: dict[_Stop, list[str]] = {}
    count = 0
    for ports in rails.values():
        leaves = list(dict.fromkeys(walk.leaf_of(member.port.guid) for _node, member in ports if member.port))
        count += len(ports)
        at_leaf: dict[str, list[tuple[int, str, str]]] = {}
        for node, member in ports:
            if member.port is not None:
                place = (member.port.lid or 0, member.port.guid or "", f"{node} {member.hca.name}")
                at_leaf.setdefault(walk.leaf_of(member.port.guid), []).append(place)
        for leaf, places in at_leaf.items():
            if walk.is_clear(leaves, leaf, {lid: guid for lid, guid, _name in places}):
                continue
            for lid, guid, name in places:
                for stop in walk.find_stops(leaves, lid, guid):
                    stops.setdefault(stop, []).append(f"LID {lid} of {name}")
    findings = limit_findings(fabric, [_report(fabric, names, stop, lids) for stop, lids in stops.items()], "switches")
    untold = f", {count_of(walk.untold, 'port')} not told by dump_fts" if walk.untold else ""
    return findings or [
        build_pass(_CHECK, fabric.name, f"paths to {count_of(count, 'LID')} of HCAs{untold}", _EXPECTED)
    ]


class _Walk:
    """The switches of a topology, their links and their tables.

    :ivar untold: entries that dump_fts may have left out, met on the paths
    """

    def __init__(self, topology: Topology, forwarding: SeenForwarding) -> None:
        """:param forwarding: forwarding tables of the switches"""
        self.untold = 0
        self._tables = {table.guid: table for table in forwarding.tables}
        self._large = {node.guid for node in topology.nodes if node.ports > _MOST_PORTS}
        self._far: dict[End, LinkEnd] = {}
        self._leaves: dict[str, str] = {}
        #: switches beyond the ports of each switch
        self._switches: dict[str, dict[int, str]] = {}
        for link in take_cables(topology).links:
            for near, far in ((link.a, link.b), (link.b, link.a)):
                if near.kind == "Switch":
                    self._far[end_of(near)] = far
                    if far.kind == "Switch" and near.port != UNTOLD:
                        self._switches.setdefault(near.guid, {})[near.port] = far.guid
                elif far.kind == "Switch" and near.port_guid:
                    self._leaves[near.port_guid] = far.guid

    def leaf_of(self, guid: typing.Optional[str]) -> str:
        """Return the GUID of the switch to which a port is cabled; empty if the topology shows no switch."""
        return self._leaves.get(guid or "", "")

    def is_clear(self, leaves: typing.Iterable[str], home: str, ports: typing.Mapping[int, str]) -> bool:
        """Return whether all paths from leaves to the ports on one leaf are right, whichever of the ports they lead to.
        A large fabric has millions of paths, and nearly all of them are answered here.

        :param leaves: GUIDs of switches
        :param home: GUID of the leaf of the ports
        :param ports: GUID of each port, by its LID
        """
        # with one index alone itemgetter returns no tuple
        pick = operator.itemgetter(*ports, next(iter(ports)))
        last = max(ports)
        steps: dict[str, set[str]] = {}
        ahead = [*leaves]
        while ahead:
            at = ahead.pop()
            if at in steps:
                continue
            table = self._tables.get(at)
            if table is None or table.unread or last >= len(table.ports):
                return False
            if at == home:
                far = [self._far.get((at, table.port(lid) or 0)) for lid in ports]
                if any(end is None or end.port_guid != guid for end, guid in zip(far, ports.values())):
                    return False
                steps[at] = set()
                continue
            beyond = self._switches.get(at, {})
            told = set(pick(table.ports))
            if not told <= beyond.keys():
                return False
            steps[at] = {beyond[port] for port in told}
            ahead += steps[at] - steps.keys()
        # without a circle, each switch leads to switches that lead to the leaf
        right: set[str] = set()
        while steps:
            more = [switch for switch, following in steps.items() if following <= right]
            if not more:
                return False
            right.update(more)
            for switch in more:
                del steps[switch]
        return True

    def find_stops(self, leaves: typing.Iterable[str], lid: int, guid: str) -> list[_Stop]:
        """Return where paths from leaves to a port end before they reach it, each place once.

        :param leaves: GUIDs of switches
        :param lid: LID of the port
        :param guid: GUID of the port
        """
        # a switch has one next switch for a LID: what is known of it holds for all paths through it
        known: dict[str, typing.Optional[_Stop]] = {}
        for leaf in leaves:
            at: str = leaf
            passed: dict[str, None] = {}
            found: typing.Optional[_Stop] = None
            while at not in known:
                if at in passed:
                    circle = list(passed)
                    found = _Stop(min(circle[circle.index(at) :]), "loop")
                    break
                passed[at] = None
                step = self._find_next(at, lid, guid)
                if not isinstance(step, str):
                    found = step
                    break
                at = step
            else:
                found = known[at]
            known.update(dict.fromkeys(passed, found))
        return list(dict.fromkeys(stop for stop in known.values() if stop is not None))

    def _find_next(self, switch: str, lid: int, guid: str) -> typing.Union[str, _Stop, None]:
        """Return the switch to which a switch sends packets for a LID, where and why the path ends, or None if the
        switch sends to the port itself or if dump_fts may have left out the entry.
        """
        table = self._tables.get(switch)
        if table is None or lid // _BLOCK in table.unread:
            return _Stop(switch, "unread")
        port = table.port(lid)
        if port is None:
            if switch in self._large or (lid % _BLOCK == 0 and lid == len(table.ports) - 1):
                self.untold += 1
                return None
            return _Stop(switch, "no port")
        far = self._far.get((switch, port))
        if far is None:
            return _Stop(switch, "no link")
        if far.kind == "Switch":
            return far.guid
        return None if far.port_guid == guid else _Stop(switch, "no link")


def _report(fabric: Fabric, names: Names, stop: _Stop, lids: typing.Sequence[str]) -> Finding:
    """Return the finding on the LIDs whose paths end at a switch.

    :param lids: LIDs with node and HCA, as text
    """
    name = names.node(stop.switch)
    first, count = lids[0], count_of(len(lids), "LID")
    measured = {
        "unread": f"forwarding table not read for {count}",
        "no port": f"no port for {count} in the forwarding table",
    }.get(stop.fault, f"no path to {count}")
    which = first if len(lids) == 1 else f"{count} (the first is {first})"
    if stop.fault in ("unread", "no port"):
        why = (
            f"The forwarding table of {name} was not read for {which}. Whether the switch has a path is unknown."
            if stop.fault == "unread"
            else f"The forwarding table of {name} contains no port for {which}. The switch drops packets for a LID"
            " without a port, also with adaptive routing."
        )
        return Finding(_CHECK, f"{name} {stop.fault}", UNKNOWN, measured, _EXPECTED, why, _REMEDY)
    why = (
        f"Packets for {which} loop through {name}."
        if stop.fault == "loop"
        else f"{name} sends packets for {which} to a port where the topology shows no link to a switch or to the HCA."
    )
    status: typing.Literal["fail", "warn"] = FAIL if fabric.routing == "static" else WARN
    return Finding(_CHECK, f"{name} {stop.fault}", status, measured, _EXPECTED, why, _REMEDY)
