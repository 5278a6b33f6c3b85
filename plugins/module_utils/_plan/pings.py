# SPDX-License-Identifier: GPL-3.0-or-later

"""Who pings whom in stage reachability: the members of the InfiniBand fabrics, rail by rail."""

from __future__ import annotations

import typing

from .._analysis.fleet.routes import find_paths
from .._analysis.schedule.link_coverage_rounds import cover
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
    """Return the plan of each node that could be asked. A fabric that can't be made out is not in it; the stage reports
    it as not measured.

    Where not everybody meets everybody, the pairs come on top that use each link of the fabric, as far as the ways are
    known.

    :param most_rounds: most partners for each port, less those that come on top; None: every port meets every other one
        of its rail
    :param parallel: destinations that a node pings at once
    :param limit_seconds: for one destination
    :param forks: nodes that Ansible works on at once
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
    """Return, by rail, the pairs that use each link."""
    result: dict[int, list[Pair]] = {}
    if ways is not None:
        for source, target in (test for item in cover(ways).rounds for test in item.tests):
            result.setdefault(ways.ends[source].rail, []).append((ways.ends[source].node, ways.ends[target].node))
    return result
