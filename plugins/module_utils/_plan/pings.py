# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of the pings of stage reachability: the members of each InfiniBand fabric ping each other, rail by rail."""

from __future__ import annotations

import typing

from .._analysis.fleet.paths.routes import find_paths
from .._analysis.schedule.link_coverage_rounds import cover_links
from .._analysis.schedule.paths import PathTable
from .._analysis.schedule.pings import Endpoint, Pair, plan, schedule
from .._model.intent.intent import Intent
from .._model.intent.profiles import is_infiniband
from .._model.measurement.reachability import PingPlan, PingSchedule
from .node_answers import NodeAnswers


def make_ping_schedule(
    intent: Intent,
    answers: NodeAnswers,
    most_rounds: typing.Optional[int],
    parallel: int,
    limit_seconds: int,
    forks: int,
) -> PingSchedule:
    """Return the pings of each node: the servers that run on it, and the destinations that its clients ping. A fabric
    whose members cannot be identified is left out, and the stage reports it as not measured.

    If the number of rounds is limited, pairs of nodes are added so that each link of the fabric whose paths are known
    is used.

    :param answers: facts of the nodes that answered
    :param most_rounds: maximum number of destinations of each port, without the added pairs. None if every port pings
        every other port of its rail
    :param parallel: number of destinations that a node pings at the same time
    :param limit_seconds: time limit for one destination, in seconds
    :param forks: number of nodes that Ansible works on at the same time
    """
    rails: dict[tuple[str, int], dict[str, Endpoint]] = {}
    members = {fabric.name: answers.members(fabric) for fabric in intent.fabrics if is_infiniband(fabric)}
    for name, membership in members.items():
        for node, its in membership.members.items():
            for member in its:
                if member.hca.rdma_device is not None and member.port is not None and member.port.lid is not None:
                    rails.setdefault((name, member.rail), {})[node] = Endpoint(
                        member.hca.rdma_device, member.port.number, member.port.lid
                    )
    fabrics = {fabric.name: fabric for fabric in intent.fabrics}
    covers: dict[str, dict[int, list[Pair]]] = {}

    def more(number: int) -> typing.Iterable[Pair]:
        name, rail = list(rails)[number]
        if name not in covers:
            covers[name] = _group_by_links(find_paths(fabrics[name], members[name], answers.topologies())[0])
        return covers[name].get(rail, ())

    planned = plan(rails.values(), most_rounds, more)
    return schedule({name: planned.get(name, PingPlan()) for name in answers.hcas}, parallel, limit_seconds, forks)


def _group_by_links(ways: typing.Optional[PathTable]) -> dict[int, list[Pair]]:
    """Return pairs of nodes whose paths together use each link of the fabric, by rail. Return an empty mapping if no
    paths are known.

    :param ways: paths between the ports of the fabric; None if not known
    """
    result: dict[int, list[Pair]] = {}
    if ways is not None:
        for source, target in (test for item in cover_links(ways).rounds for test in item.tests):
            result.setdefault(ways.ends[source].rail, []).append((ways.ends[source].node, ways.ends[target].node))
    return result
