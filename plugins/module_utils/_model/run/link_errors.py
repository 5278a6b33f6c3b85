# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of all links, run by run. A counter never decreases by itself: one that is lower than before was
cleared, or belongs to another port.
"""

from __future__ import annotations

import dataclasses
import typing

from ..infiniband.error_counters import ErrorReport
from ..infiniband.fabric import SeenTopology, Topology

#: GUID of the switch, or of the port of a CA, and number of the port
End = tuple[str, int]
#: number of the port in a query about all ports of a node
_ALL_PORTS = 255


@dataclasses.dataclass(frozen=True)
class ErrorReading:
    """The error counters of all links, as one run last read them.

    :ivar run: name of the run
    :ivar ends: counters that are not 0, by link end; a link end whose counters are all 0 has an empty mapping
    """

    run: str
    ends: typing.Mapping[End, typing.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class EarlierErrors:
    """The error counters that earlier runs stored.

    :ivar readings: readings of the runs that read counters, the oldest first
    :ivar unread: runs whose results could not be read, each with the reason
    """

    readings: tuple[ErrorReading, ...] = ()
    unread: tuple[str, ...] = ()


def collect_readings(run: str, seen: typing.Iterable[SeenTopology]) -> ErrorReading:
    """Return the error counters of all ports that a run read. A port that did not answer is left out.

    :param run: name of the run
    :param seen: topologies that the run read, with the counters
    """
    ends: dict[End, typing.Mapping[str, int]] = {}
    for one in seen:
        report = one.errors.later if one.errors is not None else None
        if one.topology is not None and report is not None:
            ends.update(_collect_answered_ends(one.topology, report))
    return ErrorReading(run, ends)


def compute_growth(
    before: typing.Mapping[str, int], later: typing.Mapping[str, int], names: typing.Container[str]
) -> int:
    """Return the total increase of the error counters of a port between two readings. A counter that is lower in the
    later reading was cleared in between, and counts with its whole later value.

    :param before: values of the earlier reading, by counter
    :param later: values of the later reading, by counter
    :param names: names of the counters to add up
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
