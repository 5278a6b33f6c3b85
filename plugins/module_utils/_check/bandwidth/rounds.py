# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the planned rounds match the intent, and that each HCA was measured. Check ids: ``bandwidth.rounds``,
``bandwidth.measured``.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.schedule.measurements import by_links, count_all_rounds
from ..._model.base.phrases import count_of, format_clause, format_duration, format_estimate
from ..._model.base.text import format_percent, join_first
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import RdmaPod, RoundPlan
from ..._model.measurement.pairs import End, PairResult
from ..._model.run.findings import UNKNOWN, WARN, Finding, build_pass
from .causes import explain_cause, name_ends
from .pairs import on_rail


def check_rounds(fabric: Fabric, plan: typing.Optional[RoundPlan], nodes: int) -> list[Finding]:
    """Compare the number of planned rounds with the rounds that the intent asks for: all of them, or those that use
    each link. The list is empty without a plan.

    :param plan: rounds as planned before the pods were started; None if they were not planned
    :param nodes: number of nodes that take part
    """
    if plan is None:
        return []
    took = f"{format_estimate(plan.seconds)}, at most {format_duration(plan.most_seconds)}"
    asked, all_rounds, by_link = _count_wanted_rounds(fabric, nodes), count_all_rounds(nodes), by_links(fabric, nodes)
    measured = (
        f"{plan.rounds} of {all_rounds} rounds, {took}" if plan.cover is None else f"{describe_cover(plan)}, {took}"
    )
    expected = "all rounds: each node is measured with each other node"
    if by_link:
        expected = "rounds that use each link in both directions, then rounds with suspects only"
    elif isinstance(fabric.bandwidth.rounds, int):
        expected = f"the number of rounds in the intent: {asked}"
    few = plan.rounds < asked if asked is not None else by_link and not plan.why
    if few if plan.cover is None else not by_link:
        why = "The intent has changed since the measurement, so the rounds that it requires were not measured."
        return [
            Finding(
                "bandwidth.rounds",
                fabric.name,
                UNKNOWN,
                measured,
                expected,
                why,
                "Run stage bandwidth again with the current intent.",
            )
        ]
    if plan.cover is not None or asked is not None or plan.rounds >= all_rounds:
        return [build_pass("bandwidth.rounds", fabric.name, measured, expected)]
    why = (
        "All rounds would take longer than the time that is planned for the stage. Each node was measured with"
        f" {plan.rounds} other node{'s' if plan.rounds != 1 else ''}. These pairs are spread evenly over all nodes,"
        " so a slow node is found as well."
    )
    if plan.why:
        why += (
            f" Rounds that use each link could not be planned because the paths are unknown: {format_clause(plan.why)}."
        )
    remedy = (
        "No action is required if this is sufficient. To measure each node with each other node, set"
        f" bandwidth.rounds of the fabric to {all_rounds}, then run stage bandwidth again. It then takes longer."
    )
    return [Finding("bandwidth.rounds", fabric.name, WARN, measured, expected, why, remedy)]


def _count_wanted_rounds(fabric: Fabric, nodes: int) -> typing.Optional[int]:
    """Return the number of rounds for which the intent asks, at most all rounds.

    Return None if the time of the stage determines the number, or if the intent asks for rounds that use each link.

    :param nodes: number of nodes that take part
    """
    wanted = fabric.bandwidth.rounds
    if wanted == "all":
        return count_all_rounds(nodes)
    return min(wanted, count_all_rounds(nodes)) if isinstance(wanted, int) else None


def describe_cover(plan: RoundPlan) -> str:
    """Return the number of planned rounds as text, and the share of the links that they use.

    Without a plan by links, the text has the number of rounds only.
    """
    cover = plan.cover
    if cover is None or not cover.directions:
        return count_of(plan.rounds, "round")
    of = "the nodes' cables" if cover.spread else "links"
    rails = f", {cover.between_rails} of them between the rails of each host," if cover.between_rails else ""
    share = f"{format_percent(cover.covered, cover.directions)} % of {cover.directions / 2:g} {of} in both directions"
    return (
        f"{count_of(plan.rounds, 'round')} of {cover.tests} tests{rails} over"
        f" {share}{'; its rails are apart' if cover.apart else ''}"
    )


def check_directions(
    fabric: Fabric, pairs: typing.Sequence[PairResult], plan: typing.Optional[RoundPlan]
) -> list[Finding]:
    """Warn about HCAs that only sent or only received, if the intent asks for one direction of each pair. The list is
    empty for other intents, and if the rounds were planned to use each link in both directions.

    :param pairs: measured pairs of the fabric
    :param plan: rounds as planned; None without a plan
    """
    if fabric.bandwidth.directions != "one" or not pairs or (plan is not None and plan.cover is not None):
        return []
    subject, expected = f"{fabric.name} directions", "each HCA sends in one measurement and receives in another"
    senders, receivers = {pair.client_end for pair in pairs}, {pair.server_end for pair in pairs}
    mute, deaf = sorted(receivers - senders), sorted(senders - receivers)
    if not mute and not deaf:
        text = f"{count_of(len(senders), 'HCA')} sent and received"
        return [build_pass("bandwidth.rounds", subject, text, expected)]
    told = [
        f"{what}: {join_first([f'{node}{on_rail(fabric, rail)}' for rail, node in ends], 4)}"
        for what, ends in (("never sent", mute), ("never received", deaf))
        if ends
    ]
    why = (
        "The intent sets bandwidth.directions: one, and the rounds were too few for each HCA to both send and"
        " receive. A fault in the direction that was not measured is not noticed."
    )
    remedy = "Set bandwidth.directions of the fabric to both, then run stage bandwidth again."
    return [Finding("bandwidth.rounds", subject, WARN, "; ".join(told), expected, why, remedy)]


#: remedy for a node without a partner
_OTHERS = "Follow the remedies of the findings bandwidth.pod of the other nodes, then run stage bandwidth again."


def check_participation(
    fabric: Fabric,
    rail: int,
    nodes: typing.Sequence[str],
    pods: typing.Mapping[End, RdmaPod],
    pairs: typing.Sequence[PairResult],
    plan: typing.Optional[RoundPlan],
) -> list[Finding]:
    """Return a finding of status ``unknown`` for each node of a rail that has a usable pod but was not measured with
    another node, and for each rail with fewer than two nodes.

    :param rail: number of the rail
    :param nodes: names of the nodes that must take part
    :param pods: pods of the fabric, by rail and node
    :param pairs: measured pairs of the rail
    :param plan: rounds as planned; None without a plan
    """
    usable = [name for name in nodes if (rail, name) in pods and not pods[rail, name].error]
    if len(nodes) < 2:
        why = "A measurement needs two nodes, and the inventory has fewer."
        remedy = "Add a second node to the inventory group rdma_nodes, then run stage bandwidth again."
        return [
            Finding(
                "bandwidth.measured",
                f"{fabric.name}{on_rail(fabric, rail)}",
                UNKNOWN,
                "no pair",
                "at least one pair",
                why,
                remedy,
            )
        ]
    findings = []
    met: dict[End, set[End]] = collections.defaultdict(set)
    asked = _count_wanted_rounds(fabric, len(nodes))
    by_cover = plan is not None and plan.cover is not None and by_links(fabric, len(nodes))
    for pair in pairs:
        # rounds of pairs are within rails
        if pair.client_end != pair.server_end and (by_cover or not pair.between_rails):
            met[pair.client_end].add(pair.server_end)
            if fabric.bandwidth.directions != "both":
                met[pair.server_end].add(pair.client_end)
    # with an odd number of nodes, one pauses in each round, so that some nodes have one partner less
    partners = len(usable) - 1
    rounds = asked if asked is not None else plan.rounds if plan is not None and plan.cover is None else None
    if by_cover:
        # the links that the tests used count here, and bandwidth.coverage reports them
        partners = min(partners, 1)
    elif rounds is not None:
        partners = min(partners, max(1, rounds - len(usable) % 2))
    for name in nodes:
        subject = f"{fabric.name} {name}{on_rail(fabric, rail)}"
        expected = f"bandwidth with at least {count_of(max(1, partners), 'other node')}"
        if name not in usable:
            error = pods[rail, name].error if (rail, name) in pods else "no pod was started"
            why = f"The node has no usable pod: {format_clause(error)}."
            remedy = name_ends(explain_cause("pod", fabric)[1], [name], [])
            findings.append(
                Finding("bandwidth.measured", subject, UNKNOWN, "bandwidth with 0 other nodes", expected, why, remedy)
            )
        elif len(met[rail, name]) < max(1, partners):
            why, remedy = (
                explain_cause("not_run", fabric) if partners > 0 else ("No other node has a usable pod.", _OTHERS)
            )
            findings.append(
                Finding(
                    "bandwidth.measured",
                    subject,
                    UNKNOWN,
                    f"bandwidth with {count_of(len(met[rail, name]), 'other node')}",
                    expected,
                    why,
                    remedy,
                )
            )
    return findings
