# SPDX-License-Identifier: GPL-3.0-or-later

"""What the error counters of all links showed, run by run. A counter only ever rises: one that is lower than before was
cleared, or is another port's."""

from __future__ import annotations

import dataclasses
import typing

from ..infiniband.fabric import ErrorReport, SeenTopology, Topology

#: GUID of the switch, or of the port of a CA, and number of the port
End = tuple[str, int]
#: number of the port in a query about all ports of a node
_ALL_PORTS = 255


@dataclasses.dataclass(frozen=True)
class ErrorReading:
    """The last reading of a run.

    :ivar run: its name
    :ivar ends: of links whose counters were read, with what is not 0
    """

    run: str
    ends: typing.Mapping[End, typing.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class EarlierErrors:
    """Kept runs before this one.

    :ivar readings: the oldest first; those that read counters
    :ivar unread: those that can't be read, with the reason
    """

    readings: tuple[ErrorReading, ...] = ()
    unread: tuple[str, ...] = ()


def collect_readings(run: str, seen: typing.Iterable[SeenTopology]) -> ErrorReading:
    """Return the counters that a run read, through whatever ports. An end that gave no answer is not in it."""
    ends: dict[End, typing.Mapping[str, int]] = {}
    for one in seen:
        report = one.errors.later if one.errors is not None else None
        if one.topology is not None and report is not None:
            ends.update(_collect_answered_ends(one.topology, report))
    return ErrorReading(run, ends)


def compute_growth(
    before: typing.Mapping[str, int], later: typing.Mapping[str, int], names: typing.Container[str]
) -> int:
    """Return by how much counters of a port have risen. What one that was cleared meanwhile shows came since then.

    :param names: of the counters that count here
    """
    return sum(
        value - (before.get(name, 0) if before.get(name, 0) <= value else 0)
        for name, value in later.items()
        if name in names
    )


def _collect_answered_ends(topology: Topology, report: ErrorReport) -> dict[End, typing.Mapping[str, int]]:
    counted = {(port.guid, port.port): port.counters for port in report.ports}
    if report.failures > len(report.unread):
        # some gave no answer, and nobody knows which: any that shows nothing may be one of them
        return dict(counted)
    lids = {node.lid: node.guid for node in topology.nodes if node.lid is not None}
    silent = {(port.lid, port.port) for port in report.unread}
    of_nodes = {(lids.get(lid), port) for lid, port in silent}
    found: dict[End, typing.Mapping[str, int]] = {}
    for link in topology.links:
        for end in (link.a, link.b):
            asked = (end.port, _ALL_PORTS)
            if not any((end.lid, port) in silent or (end.guid, port) in of_nodes for port in asked):
                found[end.place] = counted.get(end.place, {})
    return found
