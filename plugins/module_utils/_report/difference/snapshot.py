# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of one run, for the comparison with another: its facts, records and figures, and the links in its
topologies.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.measurement.collectives import LatencyFigures, StepFigures
from ..._model.run.facts import RunStart
from ..._model.run.records import Record

Data = dict[str, typing.Any]
#: nodes without a topology that a line names
_MOST_UNREAD = 5


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The results of one run, for the comparison with another.

    :ivar start: ID, time, nodes and variables of the run
    :ivar facts: dictionaries with ``value`` and ``error``, of which one is None, by kind and node. The kinds are those
        of COMPARED, and topologies
    :ivar records: records of this run only, by stage
    :ivar collectives: proven figures by step; None if the stage measured no collectives
    :ivar unread: reason why a record or the figures of collectives could not be read, by stage or COLLECTIVES
    :ivar latencies: proven latencies of small messages; empty if the stage measured none
    """

    start: RunStart
    facts: typing.Mapping[str, typing.Mapping[str, Data]]
    records: typing.Mapping[str, Record]
    collectives: typing.Optional[tuple[StepFigures, ...]] = None
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    latencies: tuple[LatencyFigures, ...] = ()


#: GUID and number of a port
CableEnd = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class SeenCables:
    """The links in the topologies of all nodes of a run.

    :ivar seen: whether at least one node has a topology
    :ivar unread: errors of the nodes without a topology
    :ivar names: names of switches and hosts, by GUID
    :ivar links: width and speed of each link as text, such as ``4x NDR``, by the GUIDs and ports of its ends
    """

    seen: bool
    unread: tuple[str, ...]
    names: typing.Mapping[str, str]
    links: typing.Mapping[tuple[CableEnd, ...], str]

    @property
    def state(self) -> str:
        return (
            f"unknown: {'; '.join(self.unread[:_MOST_UNREAD])}"
            if self.unread
            else "seen"
            if self.seen
            else "not looked at"
        )

    @classmethod
    def collect(cls, run: Snapshot) -> SeenCables:
        unread: list[str] = []
        names: dict[str, str] = {}
        links: dict[tuple[CableEnd, ...], str] = {}
        seen = False
        for node, fact in run.facts.get("topologies", {}).items():
            unread += [f"{node}: {fact['error']}"] if fact["error"] else []
            for item in fact["value"] or ():
                topology = item.get("topology")
                if not topology:
                    unread += [f"{node} {item['rdma_device']}: {item['error']}"] if item.get("error") else []
                    continue
                seen = True
                names.update((each["guid"], each["description"] or each["guid"]) for each in topology["nodes"])
                for link in topology["links"]:
                    ends = tuple(sorted((end["guid"], end["port"]) for end in (link["a"], link["b"])))
                    links[ends] = f"{link['width'] or '?'}x {link['speed'] or '?'}"
        return cls(seen, tuple(unread), names, links)
