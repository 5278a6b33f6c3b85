# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage bandwidth: each pair of nodes reaches its line rate, through pods, over RDMA. Check ids:
``bandwidth.*``.

The bandwidth of a pair has two floors. The first comes from the link: a fraction of the slowest rate that port, PCIe
and virtual function allow at both ends. It detects a fabric that is slow everywhere. The second comes from the other
pairs: a fraction (``line_rate.fleet_fraction``) of the best pair of the same rail whose links could carry the same
rate. It detects one slow node. The average column of perftest counts, never the peak.

If pods have no RDMA device, TCP is measured for stage compare. Processors limit TCP, so such a bandwidth fails only if
it is far below the best of its network, unless the intent sets a floor. A pair that fails accuses both of its ends.
``bandwidth.suspect`` names the end or the path that remains after the pairs that passed are taken into account.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.floors import Best, PairLimits, select_read_hcas
from ..._analysis.fleet.hca_locations import collect_possible_rates, find_topology_with_source
from ..._analysis.fleet.line_rates import LineRates
from ..._analysis.fleet.paths.routes import report_coverage
from ..._analysis.schedule.coverage import compute_coverage
from ..._analysis.schedule.measurements import by_links
from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import carries_rdma, carries_roce, list_rails
from ..._model.measurement.bandwidth import BandwidthFacts, PairLayers, RoundPlan
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import UNKNOWN, Finding
from .errors import check_errors
from .ethernet import describe_pinned, report_ports_without_lldp, report_uncrossed_leaves
from .facts import Facts, find_limits, find_membership, find_rates, locate_ends
from .latency import check_latencies
from .layers.check import check_layers
from .left_out import check_left_out
from .links import check_links
from .own_rates import check_own_rates
from .packets import check_packets
from .pairs import check_pair, list_verdicts, subject_of
from .pods import check_cleanup, check_pods
from .port_counters import Counted
from .rails import check_rails
from .results import choose_layer_tests_within, collect_evidence_within, find_paths_between, list_figures_within
from .rounds import check_directions, check_participation, check_rounds
from .routing import check_lids
from .slow_links import check_slow_links
from .suspects import check_suspects
from .trend import check_trend, check_unread


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage bandwidth: on rounds, links, pods, pairs, latencies, layers, suspects, the trend
    over kept runs, and pods that were not removed.
    """
    findings: list[Finding] = []
    seen = facts.bandwidth or BandwidthFacts((), ())
    nodes = {**select_read_hcas(facts.hcas), **select_read_hcas(facts.functions)}
    for fabric in intent.fabrics:
        pods = {(pod.rail, pod.node): pod for pod in seen.pods if pod.fabric == fabric.name}
        pairs = [pair for pair in seen.pairs if pair.fabric == fabric.name]
        plan = next((plan for plan in seen.plans if plan.fabric == fabric.name), None)
        membership = find_membership(fabric, facts)
        rates, why = find_rates(fabric, facts, pods.values())
        by_link = fabric.line_rate.floor_gbps is None and carries_rdma(fabric)
        ground = PairLimits(fabric, pods, rates, nodes)
        findings += check_rounds(fabric, plan, len(facts.nodes))
        findings += check_directions(fabric, pairs, plan)
        findings += check_links(fabric, facts.nodes, rates, why, facts.hcas, by_link)
        findings += check_rails(fabric, membership, facts.neighbours)
        for rail in list_rails(fabric):
            findings += check_pods(fabric, rail, pods, membership, facts)
            findings += check_participation(fabric, rail, facts.nodes, pods, pairs, plan)
        by_cover = plan is not None and plan.cover is not None and by_links(fabric, len(facts.nodes))
        findings += check_own_rates(ground, pairs, by_cover)
        best = ground.best(pairs)
        for pair in pairs:
            findings += check_pair(ground, pair, best)
        sound_pairs = [
            (subject_of(fabric, pair), pair) for pair in pairs if pair.is_comparable and not ground.doubt(pair)
        ]
        findings += check_trend(fabric.name, sound_pairs, facts.earlier)
        findings += check_packets(ground, pairs)
        findings += check_errors(ground, pairs)
        findings += _check_suspects(ground, pairs, plan, facts, rates)
        findings += check_left_out(fabric, pairs)
        latencies = [pair for pair in seen.latencies if pair.fabric == fabric.name]
        findings += check_latencies(fabric, pods.values(), latencies)
        findings += _check_layers(ground, pairs, best, seen, facts)
    findings += check_unread(facts.earlier)
    if facts.bandwidth is not None:
        findings.append(check_cleanup(seen))
    return tuple(findings)


def _check_layers(
    ground: PairLimits,
    pairs: typing.Sequence[PairResult],
    best: typing.Mapping[typing.Any, Best],
    seen: BandwidthFacts,
    facts: Facts,
) -> list[Finding]:
    """Return the findings on the layer at which pairs lose bandwidth.

    A pair gets a finding if it was measured layer by layer, or if the intent requests that and this run has not done
    it.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measured pairs of the fabric
    :param best: best pair of each group of comparable pairs, by the key of the group (``ground.kind``)
    :param seen: answer of rdma_bandwidth
    """
    fabric = ground.fabric
    looked = [item for item in seen.layers if item.fabric == fabric.name]
    keys = {(item.client_end, item.server_end) for item in looked}
    # where the intent does not set it, the run has decided
    for pair in choose_layer_tests_within(ground, pairs, fabric.bandwidth.layers or "none"):
        if (pair.client_end, pair.server_end) not in keys:
            why, suspect = "this run did not test the layers of this pair", fabric.bandwidth.layers == "suspects"
            looked.append(
                PairLayers(
                    fabric.name, pair.client, pair.server, pair.rail, suspect, why=why, server_rail=pair.server_rail
                )
            )

    def bound(pair: PairResult) -> typing.Optional[float]:
        own = best.get(ground.kind(pair))
        known = [ground.floor(pair)[0], own.average * fabric.line_rate.fleet_fraction if own is not None else None]
        return max((value for value in known if value is not None), default=None)

    subjects = [
        subject_of(
            fabric, PairResult(fabric.name, item.client, item.server, rail=item.rail, server_rail=item.server_rail)
        )
        for item in looked
    ]
    return check_layers(ground, list(zip(subjects, looked)), bound, facts.hcas)


def _check_suspects(
    ground: PairLimits,
    pairs: typing.Sequence[PairResult],
    plan: typing.Optional[RoundPlan],
    facts: Facts,
    rates: LineRates,
) -> list[Finding]:
    """Return the findings on slow links, or on the HCAs, nodes and leaves at fault.

    If the rounds were planned to use each link, the paths of the measurements show which links are slow. Otherwise the
    findings name the HCAs, nodes and leaves that failed pairs have in common.

    :param ground: bandwidth limits by which the pairs of the fabric are judged
    :param pairs: measured pairs of the fabric
    :param plan: rounds as planned; None without a plan
    :param rates: rates that the links of the HCAs can carry
    """
    fabric, where = ground.fabric, locate_ends(ground.fabric, facts)
    passed = list_verdicts(ground, pairs)
    if plan is None or plan.cover is None:
        blind = _report_unheard(fabric, facts, False) if plan is not None and by_links(fabric, len(facts.nodes)) else []
        return [*blind, *check_suspects(fabric, ground.pods, pairs, passed, where)]
    # the paths of all nodes, since the cable of a node without a pod is not known to be good
    ways, why = find_paths_between(fabric, facts)
    if ways is None:
        remedy = "Run stages discover, fabric and bandwidth again in one run."
        return [
            Finding(
                "bandwidth.coverage",
                fabric.name,
                UNKNOWN,
                "paths between the nodes unknown",
                "100 %: each link that these nodes use, in both directions",
                f"Without the paths, it is unknown which links were measured: {format_clause(why)}.",
                remedy,
            )
        ]
    figures = list_figures_within(ground, pairs)
    evidence = collect_evidence_within(ground, ways, pairs, figures)
    remedy = "Follow the remedies of the findings bandwidth.measured and bandwidth.pod of the nodes at these links."
    note = describe_pinned(fabric, ways, pairs) if ways.hashed else ""
    findings = [
        report_coverage("bandwidth.coverage", fabric, ways, compute_coverage(ways, evidence.measured), remedy, note)
    ]
    findings += report_uncrossed_leaves(fabric, ways, evidence.measured)
    findings += _report_unheard(fabric, facts, True)
    shown = find_topology_with_source(find_membership(fabric, facts), facts.topologies)[1]
    measured = facts.bandwidth.counted if facts.bandwidth is not None else ()
    counted = Counted(
        fabric,
        ways,
        [item for item in measured if item.fabric == fabric.name],
        collect_possible_rates(shown.capabilities if shown else None),
    )
    findings += check_slow_links(
        fabric, ways, evidence, where, rates, [ground.best_of(pair) for pair in pairs], counted
    )
    findings += counted.check_routing()
    findings += check_lids(fabric, ways, shown.topology.lmc if shown and shown.topology else None)
    if any(verdict is False and not figure for verdict, figure in zip(passed, figures)):
        # a pair without a figure has another cause than a slow link, so it is compared with the pairs that have one
        findings += check_suspects(
            fabric,
            ground.pods,
            pairs,
            [None if verdict is None else figure for verdict, figure in zip(passed, figures)],
            where,
        )
    return findings


def compute_floors(intent: Intent, facts: Facts) -> dict[str, tuple[float, ...]]:
    """Return the floors of the measured pairs of each fabric in Gb/s, by the name of the fabric.

    Pairs without a measured bandwidth, and pairs whose floor is unknown, are left out.
    """
    seen, result = facts.bandwidth or BandwidthFacts((), ()), {}
    for fabric in intent.fabrics:
        ground = find_limits(fabric, facts, seen.pods)
        of_pairs = [
            ground.floor(pair)[0] for pair in seen.pairs if pair.fabric == fabric.name and pair.average_gbps is not None
        ]
        result[fabric.name] = tuple(floor for floor in of_pairs if floor is not None)
    return result


def _report_unheard(fabric: Fabric, facts: Facts, covered: bool) -> list[Finding]:
    """Warn about ports of an Ethernet fabric with RDMA for which LLDP did not show the switch. The list is empty for
    InfiniBand, whose topology is read from the fabric itself, and for fabrics without RDMA.

    :param covered: whether the rounds were planned to use each link
    """
    if not carries_roce(fabric):
        return []
    return report_ports_without_lldp(
        "bandwidth.coverage", fabric, find_membership(fabric, facts), facts.neighbours, covered
    )
