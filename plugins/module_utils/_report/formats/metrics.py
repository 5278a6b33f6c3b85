# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as OpenMetrics text, for monitoring systems: verdict, gates, findings, and the figures of each rail.

The number of samples grows only with the number of rails, since figures of nodes and pairs are in the report. The
textfile collector of Prometheus' node exporter can read ``report.prom`` too [OpenMetrics 1.0, section 'Text Format'].
"""

from __future__ import annotations

import datetime
import statistics
import typing

from ..._check.collectives.latency import summarize_latencies
from ..._model.base.errors import RdmaError
from ..._model.base.escape import label_names, label_value
from ..content.exhibits import Undrawable, judge_collectives
from ..content.verdict import Report
from ..markup.text import shorten_plain

#: labels and the value of each sample of a family
Samples = list[tuple[typing.Mapping[str, str], float]]


class Family(typing.NamedTuple):
    """A metric family of OpenMetrics with its samples.

    :ivar name: name without the suffix that its type requires
    :ivar type: type of the family, such as ``gauge`` or ``info``
    :ivar unit: unit, which is also the end of the name; empty for a number without a unit
    :ivar help: description for the HELP line
    :ivar samples: value of each sample with its labels
    """

    name: str
    type: str
    unit: str
    help: str
    samples: Samples


def render_metrics(report: Report) -> str:
    lines = []
    for family in _list_metric_families(report):
        if not family.samples:
            continue
        lines += [f"# TYPE {family.name} {family.type}"]
        lines += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
        lines += [f"# HELP {family.name} {_escape_label(family.help)}"]
        sample = f"{family.name}_info" if family.type == "info" else family.name
        lines += [f"{sample}{_format_labels(labels)} {value!r}" for labels, value in family.samples]
    return "\n".join([*lines, "# EOF", ""])


def _list_metric_families(report: Report) -> typing.Iterator[Family]:
    stages = [stage for stage in report.stages if stage.record]
    yield Family(
        "linerate_rdma_run",
        "info",
        "",
        "The run, and the software versions that created its report.",
        [({"run": report.run, "verdict": report.verdict, **_label_versions(report)}, 1)],
    )
    yield Family(
        "linerate_rdma_green",
        "gauge",
        "",
        "1 if every gate is open, with or without waivers.",
        [({}, float(report.green))],
    )
    yield Family(
        "linerate_rdma_check_mode",
        "gauge",
        "",
        "1 if the run was in check mode, so that it created no objects and measured nothing that requires them.",
        [({}, float(report.check_mode))],
    )
    yield Family(
        "linerate_rdma_changes",
        "gauge",
        "",
        "Changes that the run made, or would make in check mode.",
        [({}, float(len(report.changes)))],
    )
    gates: Samples = [({"stage": stage.name}, float(stage.state == "open")) for stage in report.stages]
    yield Family(
        "linerate_rdma_gate_open", "gauge", "", "1 if the gate of a stage is open; 0 also if it did not run.", gates
    )
    found: Samples = [
        ({"stage": stage.name, "status": name}, float(number))
        for stage in stages
        for name, number in stage.counts.items()
    ]
    yield Family(
        "linerate_rdma_findings",
        "gauge",
        "",
        "Findings of a stage by status; a finding that a waiver covers counts only as waived.",
        found,
    )
    spent: Samples = [({"stage": stage.name}, stage.seconds) for stage in stages if stage.seconds is not None]
    yield Family("linerate_rdma_stage_seconds", "gauge", "seconds", "Duration of a stage.", spent)
    yield Family(
        "linerate_rdma_finished_seconds",
        "gauge",
        "seconds",
        "Time at which the newest stage of the run ended, as a Unix timestamp.",
        _list_finish_samples(report),
    )
    pairs, figures = _collect_bandwidth_samples(report)
    yield Family(
        "linerate_rdma_pairs",
        "gauge",
        "",
        "Bandwidth measurements of a rail, or between rails, by whether they have a result.",
        pairs,
    )
    yield Family(
        "linerate_rdma_bandwidth_bits_per_second",
        "gauge",
        "bits_per_second",
        "Average bandwidth of the pairs of a rail, or between rails.",
        figures,
    )
    proven, latencies = _list_collective_samples(report)
    yield Family(
        "linerate_rdma_collective_bytes_per_second",
        "gauge",
        "bytes_per_second",
        "Bus bandwidth of groups whose transport is verified.",
        proven,
    )
    yield Family(
        "linerate_rdma_collective_latency_seconds",
        "gauge",
        "seconds",
        "Time of a small message between two nodes whose transport is proven: of the pairs, and the highest p99.",
        latencies,
    )


def _list_collective_samples(report: Report) -> tuple[Samples, Samples]:
    """Return two lists of samples: the bus bandwidths of the slowest and the fastest group for each step of each
    collective, in bytes per second, and the latencies of small messages, in seconds. Both are empty if the stage has no
    facts that load.
    """
    try:
        found = judge_collectives(report.records.get("collectives"), report.seen)
    except (RdmaError, Undrawable):
        return [], []
    groups: dict[tuple[str, str], list[float]] = {}
    for item in found.figures:
        groups.setdefault((item.collective, item.kind), []).append(item.bus_gbs)
    labelled = [({"collective": name, "step": kind}, values) for (name, kind), values in groups.items()]
    bandwidths: Samples = [
        ({**labels, "figure": which}, 1e9 * of(values))
        for labels, values in labelled
        for which, of in (("lowest", min), ("best", max))
    ]
    latencies: Samples = [
        ({"collective": times.test, "figure": which}, 1e-6 * value)
        for times in summarize_latencies("", found.latencies)
        for which, value in (
            ("best", times.best),
            ("median", times.median),
            ("highest", times.worst),
            ("p99", times.p99),
        )
        if value is not None
    ]
    return bandwidths, latencies


def _label_versions(report: Report) -> dict[str, str]:
    labels = label_names(report.versions, ("run", "verdict"))
    return {labels[name]: version for name, version in report.versions.items()}


def _list_finish_samples(report: Report) -> Samples:
    ends = []
    for record in report.records.values():
        try:
            ends.append(datetime.datetime.fromisoformat(record.finished).timestamp())
        except (TypeError, ValueError):
            continue
    return [({}, max(ends))] if ends else []


def _collect_bandwidth_samples(report: Report) -> tuple[Samples, Samples]:
    """Return two lists of samples of each rail: the numbers of measured and unmeasured pairs, and the lowest, median
    and best bandwidth in bits per second. Both are empty if the stage has no facts that load, and the HTML page shows
    the reason.
    """
    if "bandwidth" not in report.records or not report.records["bandwidth"].facts:
        return [], []
    try:
        observed = report.seen.of("bandwidth", ("bandwidth",)).bandwidth
    except RdmaError:
        return [], []
    rails: dict[tuple[str, bool, int], list[typing.Optional[float]]] = {}
    for pair in observed.pairs if observed else ():
        rails.setdefault((pair.fabric, pair.between_rails, 0 if pair.between_rails else pair.rail), []).append(
            pair.average_gbps
        )
    pairs: Samples = []
    figures: Samples = []
    for (fabric, between, rail), averages in sorted(rails.items()):
        labels, known = (
            {"fabric": fabric, "rail": "between" if between else str(rail)},
            [value for value in averages if value is not None],
        )
        pairs += [
            ({**labels, "measured": "yes"}, float(len(known))),
            ({**labels, "measured": "no"}, float(len(averages) - len(known))),
        ]
        for name, of in (("lowest", min), ("median", statistics.median), ("best", max)):
            figures += [({**labels, "figure": name}, 1e9 * of(known))] if known else []
    return pairs, figures


def _format_labels(labels: typing.Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels.items())
    return "{" + pairs + "}" if labels else ""


def _escape_label(text: str) -> str:
    return label_value(shorten_plain(text))
