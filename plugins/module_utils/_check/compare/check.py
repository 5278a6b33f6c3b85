# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage compare: compare the results of the same job or test on each network, and recommend a network for
a training job. Check ids: ``compare.*``.

A ``Measure`` is one job or test, such as the bandwidth between pods or the speed of a training job. Only its figures
for the same number of nodes are compared. advice.py contains the recommendations, as rules.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._model.base.phrases import count_of
from ..._model.intent.comparison import FabricBandwidth, Figure, Measure
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_kind
from ..._model.measurement.bandwidth import BandwidthFacts
from ..._model.measurement.collectives import LatencyFigures, StepFigures
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .advice import Advice, list_measure_advice
from .noise import compute_noise, describe_fault_remedy, describe_noise_remedy
from .scaling import CLOSE, ScalingRow, figure_of, is_usable, list_rows

#: measures whose figures stage bandwidth measured, with whether both directions were measured at once
_BANDWIDTHS = {
    "bandwidth of a pair of pods": False,
    "bandwidth of a pair of pods, both directions at once": True,
}
#: steps of a collective whose groups use all rails of several nodes, the ones that come later first
_WHOLE = ("all", "across leaves", "a leaf")


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar bandwidth: bandwidth of the fabrics with figures; None when stage bandwidth did not run before
    :ivar collectives: figures that stage collectives has proven, step by step; None when it did not run before
    :ivar latencies: latencies of small messages that stage collectives has proven
    """

    bandwidth: typing.Optional[tuple[FabricBandwidth, ...]] = None
    collectives: typing.Optional[tuple[StepFigures, ...]] = None
    latencies: tuple[LatencyFigures, ...] = ()


@dataclasses.dataclass(frozen=True)
class Compared:
    """One job or test with its figures on each network, and the recommendations that they justify. It is used by the
    check and the report.

    :ivar measure: the job or test
    :ivar rows: figures of that job or test, one for each number of nodes, with speed-up and efficiency
    :ivar advice: recommendations that the figures justify
    :ivar asked: whether the intent contains the job or test (``rdma_cluster.measures``); otherwise a stage measured it
    """

    measure: Measure
    rows: tuple[ScalingRow, ...]
    advice: tuple[Advice, ...]
    asked: bool = False


def list_bandwidths(seen: BandwidthFacts) -> tuple[FabricBandwidth, ...]:
    """Return the number, minimum, median and maximum of the bandwidths measured on each fabric. Repeated measurements
    of a suspect are left out.

    :param seen: answer of rdma_bandwidth
    """
    found: dict[str, list[float]] = {}
    over = {pair.fabric: pair.transport for pair in seen.pairs}
    for pair in seen.pairs:
        # a figure beside a failure is none
        if pair.average_gbps is not None and is_usable(pair.average_gbps) and not pair.failure and not pair.again:
            found.setdefault(pair.fabric, []).append(pair.average_gbps)
    return tuple(
        FabricBandwidth(name, len(values), min(values), statistics.median(values), max(values), over[name])
        for name, values in found.items()
    )


def compare_measures(intent: Intent, facts: Facts) -> tuple[Compared, ...]:
    """Return each job or test with its figures and the recommendations that they justify. Those that the stages
    bandwidth and collectives measured come before those of the intent.
    """
    kinds = {fabric.name: find_kind(fabric) for fabric in intent.fabrics}
    own = tuple(_add_measured(measure, intent, facts) for measure in intent.cluster.measures)
    result = []
    for measure, asked in (
        *((measure, False) for measure in (*_list_measures(intent, facts), *_derive_proven_measures(intent, facts))),
        *((measure, True) for measure in own),
    ):
        worked_out = list_rows(measure, kinds)
        result.append(Compared(measure, worked_out, list_measure_advice(measure, worked_out), asked))
    return tuple(result)


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage compare: on each fabric, and on each job or test its figures, their scaling over
    nodes, the recommended network, and further recommendations.
    """
    findings = [_check_bandwidth(fabric, facts) for fabric in intent.fabrics]
    # the pod network is there to be compared with, also where the intent names it
    ours = {fabric.name for fabric in intent.fabrics if find_kind(fabric) != "pod_network"}
    for item in compare_measures(intent, facts):
        if item.asked:
            findings += [_check_figures(fabric, item) for fabric in intent.fabrics]
            findings += _check_scaling(item, ours)
        findings.append(_check_choice(item, ours, facts))
        findings += [_check_advice(item.measure, advice, ours) for advice in item.advice]
    return tuple(findings)


def _list_measures(intent: Intent, facts: Facts) -> typing.Iterator[Measure]:
    """Yield the bandwidths that stage bandwidth measured, as jobs to compare. A bandwidth in both directions at once is
    the sum of both, so it is compared separately.
    """
    seen = {item.fabric: item for item in facts.bandwidth or ()}
    for name, at_once in _BANDWIDTHS.items():
        figures = tuple(
            Figure(fabric.name, 2, seen[fabric.name].median)
            for fabric in intent.fabrics
            if fabric.name in seen and (fabric.bandwidth.directions == "at_once") == at_once
        )
        if figures:
            yield Measure(name, "Gb/s", figures, per_node=True)


def _list_figures(
    collective: str, intent: Intent, facts: Facts, kinds: typing.Sequence[str] = _WHOLE
) -> tuple[Figure, ...]:
    """Return the figures that stage collectives has proven for a collective: the median of the groups with each number
    of nodes. Where several steps have the same number of nodes, the first of ``kinds`` counts.

    :param collective: name of the collective
    :param kinds: steps whose figures are returned; by default those of groups with all rails
    """
    names = {fabric.name for fabric in intent.fabrics}
    found: dict[tuple[str, int], Figure] = {}
    for kind in kinds:
        for step in facts.collectives or ():
            if step.test == collective and step.kind == kind and step.fabric in names:
                found.setdefault((step.fabric, step.nodes), Figure(step.fabric, step.nodes, step.median))
    return tuple(found.values())


def _derive_proven_measures(intent: Intent, facts: Facts) -> typing.Iterator[Measure]:
    """Yield the results of stage collectives in the form of entries of ``rdma_cluster.measures``: for each proven
    collective its bus bandwidth with all rails, of one rail and in a soak, and the latency of its small messages. The
    bandwidth with all rails is left out if an entry of ``rdma_cluster.measures`` has this collective.
    """
    claimed = {measure.collective for measure in intent.cluster.measures}
    for collective in dict.fromkeys(step.test for step in facts.collectives or ()):
        for kinds, words in ((_WHOLE, ""), (("two nodes",), " of one rail"), (("soak",), " in a soak")):
            figures = _list_figures(collective, intent, facts, kinds)
            if figures and (kinds is not _WHOLE or collective not in claimed):
                yield Measure(f"bus bandwidth of {collective}{words}", "GB/s", figures, per_node=True)
    fabrics = {fabric.name for fabric in intent.fabrics}
    for collective in dict.fromkeys(item.test for item in facts.latencies):
        figures = tuple(
            Figure(item.fabric, 2, item.median)
            for item in facts.latencies
            if item.test == collective and item.fabric in fabrics
        )
        if figures:
            name = f"latency of small messages of {collective}"
            yield Measure(name, "us", figures, better="less", per_node=True)


def _add_measured(measure: Measure, intent: Intent, facts: Facts) -> Measure:
    """Return an entry of ``rdma_cluster.measures`` with the figures that stage collectives has proven for its
    collective. A proven figure replaces a figure of the intent for the same network and number of nodes.

    :param measure: entry of ``rdma_cluster.measures``
    """
    if measure.collective is None:
        return measure
    found = _list_figures(measure.collective, intent, facts)
    places = {(figure.network, figure.nodes) for figure in found}
    typed = tuple(figure for figure in measure.figures if (figure.network, figure.nodes) not in places)
    return dataclasses.replace(measure, figures=(*typed, *found))


def _check_bandwidth(fabric: Fabric, facts: Facts) -> Finding:
    expected = "at least 1 pair with a measured bandwidth"
    found = next((item for item in facts.bandwidth or () if item.fabric == fabric.name), None)
    if found is not None:
        measured = (
            f"median {found.median:.4g} Gb/s over {found.transport} in {count_of(found.measured, 'measurement')}"
            f" ({found.worst:.4g} to {found.best:.4g} Gb/s)"
        )
        return build_pass("compare.figures", fabric.name, measured, expected)
    if facts.bandwidth is None:
        why, remedy = (
            "Stage bandwidth did not run before stage compare.",
            "Run both stages: ansible-playbook linerate.rdma.site --tags bandwidth,compare.",
        )
    else:
        why, remedy = (
            "Stage bandwidth ran, but no pair of this fabric passed its measurement.",
            (
                "Follow the remedies of the findings of stage bandwidth for this fabric, then run stages bandwidth and"
                " compare again."
            ),
        )
    return Finding("compare.figures", fabric.name, UNKNOWN, "0 pairs with a measured bandwidth", expected, why, remedy)


def _check_figures(fabric: Fabric, item: Compared) -> Finding:
    """Check that an entry of ``rdma_cluster.measures`` has a figure for this fabric.

    Without a figure, this fabric may be the best network, but cannot be recommended.

    :param item: entry of ``rdma_cluster.measures`` with its figures
    """
    subject, expected = f"{fabric.name}: {item.measure.name}", "at least 1 figure for this fabric"
    mine = [row for row in item.rows if row.network == fabric.name]
    if mine:
        return build_pass("compare.figures", subject, ", ".join(figure_of(item.measure, row) for row in mine), expected)
    why = (
        "rdma_cluster.measures has figures of this measure for other networks only, so the performance of the job on"
        " this fabric is not known."
    )
    remedy = (
        "Run the job on this fabric as well and add its figure to rdma_cluster.measures, then run stage compare again."
    )
    if item.measure.collective is not None:
        why = (
            "Stage collectives has not verified a group of several nodes with all rails on this fabric, and"
            " rdma_cluster.measures has no figure for this fabric."
        )
        remedy = (
            f"Set rdma_cluster.collectives.fabric: {fabric.name} in the intent, and run ansible-playbook"
            f" linerate.rdma.site"
            " --tags bandwidth,collectives,compare with at least three nodes."
        )
    return Finding("compare.figures", subject, UNKNOWN, "0 figures for this fabric", expected, why, remedy)


def _describe_fastest(measure: Measure) -> str:
    """Return the steps that measure a job on the fastest network."""
    return (
        f"Run it over the network that the finding compare.choice of '{measure.name}' shows as the fastest, and add the"
        f" result to 'figures' of '{measure.name}' in rdma_cluster.measures. Then run stage compare again."
    )


def _check_scaling(item: Compared, ours: typing.AbstractSet[str]) -> typing.Iterator[Finding]:
    measure = item.measure
    if measure.per_node:
        return
    if measure.single_node is None or not is_usable(measure.single_node):
        why = "The measure has no usable figure for one node, so it is unknown whether more nodes make the job faster."
        remedy = (
            "Run the job on one node and add the figure as single_node to the measure in rdma_cluster.measures. If the"
            " measure is a rate of each node, set per_node: true instead. Then run stage compare again."
        )
        yield Finding(
            "compare.scaling",
            measure.name,
            UNKNOWN,
            "no figure for one node",
            "a figure for one node (single_node)",
            why,
            remedy,
        )
        return
    for row in item.rows:
        subject = f"{measure.name}: {row.network} on {count_of(row.nodes, 'node')}"
        measured = (
            f"{figure_of(measure, row)}: {row.speed_up:.2f} times the speed of one node,"
            f" {_format_percent(row.efficiency)} of linear scaling"
        )
        expected = f"faster than on fewer nodes, at least {_format_percent(measure.enough)} of linear scaling"
        if row.slower_than is not None:
            why = (
                f"On this network, the job is faster on {count_of(row.slower_than, 'node')}: the nodes lose more time"
                " in waiting for each other than they save in computation."
            )
            remedy = f"Do not run this job on several nodes over {row.network}. {_describe_fastest(measure)}"
            # a network that the intent does not offer is there to be compared with, and may be as bad as it is
            yield Finding(
                "compare.scaling", subject, FAIL if row.network in ours else WARN, measured, expected, why, remedy
            )
        elif row.efficiency is not None and row.efficiency < measure.enough:
            why = (
                "The nodes spend a large part of the time waiting for this network, so the job gains little from more"
                " nodes."
            )
            yield Finding(
                "compare.scaling",
                subject,
                WARN,
                measured,
                expected,
                why,
                f"Run this job on fewer nodes. Or use a faster network. {_describe_fastest(measure)}",
            )
        else:
            yield build_pass("compare.scaling", subject, measured, expected)


def _check_choice(item: Compared, ours: typing.AbstractSet[str], facts: Facts) -> Finding:
    """Return the finding that recommends a network for jobs: the fastest network at the largest number of nodes for
    which at least two networks have a figure. If only one network was measured, the finding passes. If the pod network
    is faster by more than the measurements vary, the finding fails.

    :param item: job or test with the figures of each network
    :param ours: names of the fabrics of the intent
    """
    measure, expected = item.measure, "the fastest network is in rdma_fabrics"
    groups: dict[int, list[ScalingRow]] = {}
    for row in item.rows:
        groups.setdefault(row.nodes, []).append(row)
    if not groups:
        why, remedy = (
            "The measure has no plausible figure, so the networks cannot be compared.",
            "Measure again and correct the figures in rdma_cluster.measures, then run stage compare again.",
        )
        return Finding("compare.choice", measure.name, UNKNOWN, "no usable figure", expected, why, remedy)
    at_once = max(groups, key=lambda nodes: (len(groups[nodes]) > 1, nodes))
    ranked = sorted(groups[at_once], key=lambda row: -row.of_best)
    said = "; ".join(
        f"{row.network} {figure_of(measure, row)} ({_format_percent(row.of_best)} of the best)" for row in ranked
    )
    mine = [row for row in ranked if row.network in ours]
    if len(ranked) == 1:
        return build_pass("compare.choice", measure.name, f"{said}: no other network was measured", expected)
    if not mine or mine[0].of_best >= CLOSE:
        best = mine[0] if mine else ranked[0]
        return build_pass("compare.choice", measure.name, f"{best.network}; compared: {said}", expected)
    if ranked[0].kind == "pod_network":
        seen = {found.fabric: found for found in facts.bandwidth or ()} if measure.name in _BANDWIDTHS else {}
        least, noise = compute_noise(seen.get(mine[0].network), seen.get(ranked[0].network))
        why = (
            f"The pod network {ranked[0].network} is faster than {mine[0].network}, although {mine[0].network} has a"
            " NIC of its own."
        )
        if mine[0].of_best >= least:
            remedy = describe_noise_remedy(measure, _BANDWIDTHS)
            return Finding("compare.choice", measure.name, WARN, said, expected, f"{why} {noise}", remedy)
        cause = f"The job does not use {mine[0].network}, or this network has a fault."
        if measure.name in _BANDWIDTHS:
            cause = f"{mine[0].network} has a fault."
        remedy = describe_fault_remedy(measure, mine[0].network, _BANDWIDTHS)
        return Finding("compare.choice", measure.name, FAIL, said, expected, f"{why} {cause}", remedy)
    why = f"The intent has no fabric {ranked[0].network}, so jobs cannot use the fastest network."
    remedy = "To give this network to jobs, add it to rdma_fabrics with its profile, then run stage compare again."
    return Finding("compare.choice", measure.name, WARN, said, expected, why, remedy)


def _check_advice(measure: Measure, advice: Advice, ours: typing.AbstractSet[str]) -> Finding:
    subject = f"{measure.name}: {advice.rule}"
    if ours.isdisjoint(advice.against):
        return Finding("compare.advice", subject, PASS, advice.figures, advice.text, advice.reason)
    remedy = (
        f"{advice.text} The intent still offers {', '.join(advice.against)} to jobs: remove it from rdma_fabrics, or"
        " waive this finding with a reason. Then run stage compare again."
    )
    expected = f"rdma_fabrics without {', '.join(advice.against)}, which these figures do not recommend"
    return Finding("compare.advice", subject, WARN, advice.figures, expected, advice.reason, remedy)


def _format_percent(value: typing.Optional[float]) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
