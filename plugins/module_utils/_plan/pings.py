# SPDX-License-Identifier: GPL-3.0-or-later

"""Who pings whom in stage reachability: the members of the InfiniBand fabrics, rail by rail."""

from __future__ import annotations

import typing

from .._model.intent import Intent
from .._model.profiles import is_infiniband
from .._model.reachability import PingPlan, PingSchedule
from .._schedule.pings import Endpoint, plan, schedule
from .observed import Observed


def ping_schedule(intent: Intent, ground: Observed, most_rounds: typing.Optional[int], parallel: int, limit_seconds: int, forks: int) -> PingSchedule:
    """The plan of each node that could be asked. A fabric that can't be made out is not in it; the stage reports it as not measured.

    :param most_rounds: most partners for each port; None: every port meets every other one of its rail
    :param parallel: destinations that a node pings at once
    :param limit_seconds: for one destination
    :param forks: nodes that Ansible works on at once
    """
    rails: typing.Dict[typing.Tuple[str, int], typing.Dict[str, Endpoint]] = {}
    for fabric in intent.fabrics:
        if is_infiniband(fabric):
            for node, members in ground.members(fabric).members.items():
                for member in members:
                    if member.hca.rdma_device is not None and member.port is not None and member.port.lid is not None:
                        rails.setdefault((fabric.name, member.rail), {})[node] = Endpoint(member.hca.rdma_device, member.port.number, member.port.lid)
    planned = plan(rails.values(), most_rounds)
    return schedule({name: planned.get(name, PingPlan()) for name in ground.hcas}, parallel, limit_seconds, forks)
