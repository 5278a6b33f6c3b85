# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the measurement rounds of stage bandwidth: which pairs are measured at the same time, and for how long."""

from __future__ import annotations

from ..._analysis.schedule.link_coverage_rounds import cover_links
from ..._analysis.schedule.measurements import by_links, cover_plan, round_plan
from ..._check.bandwidth.facts import NOTHING, Facts, find_limits
from ..._check.bandwidth.results import find_paths_between
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import RoundPlan
from .measuring_plan import Plan


def plan_rounds(plan: Plan, seen: Facts = NOTHING) -> tuple[RoundPlan, ...]:
    """Return the measurement rounds of each fabric with their durations, in the order of the fabrics. The pairs of a
    round are measured at the same time.

    :param plan: fabrics, nodes and settings of the measurement
    :param seen: facts from which the paths between nodes are known; without them, the rounds are not chosen by links
    """
    return tuple(_plan_rounds_of(plan, fabric, seen) for fabric in plan.fabrics)


def _plan_rounds_of(plan: Plan, fabric: Fabric, seen: Facts) -> RoundPlan:
    why = ""
    if by_links(fabric, len(plan.nodes)):
        ways, why = find_paths_between(fabric, seen)
        if ways is not None:
            rates = find_limits(fabric, seen, ()).own_rates()
            return cover_plan(fabric, ways, cover_links(ways, rates), plan.parallel)
    return round_plan(fabric, len(plan.nodes), plan.parallel, why)
