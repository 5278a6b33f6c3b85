# SPDX-License-Identifier: GPL-3.0-or-later

"""The acceptance sheet that two parties sign: one A4 page with the verdict, the figures of each fabric, the waivers,
and the checksum of the evidence archive.

The sheet is meant for paper. It is white even if the reader's system prefers dark colors. Its lists are limited to the
page, and refer to the report for the rest.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._check.bandwidth import check as bandwidth
from ..._check.collectives.group_verdict import GroupFigure
from ..._check.collectives.latency import summarize_latencies
from ..._model.measurement.collectives import LatencyFigures
from ..content.exhibits import Undrawable, collect_versions, judge_collectives, read_held
from ..content.verdict import Report, UsedWaiver
from ..markup.markup import Html, render_document, render_element

#: rows that fit on the sheet
MOST_FABRICS = 4
MOST_WAIVERS = 4
#: characters of a text in a line of its own, and in one of two columns
_MOST_CHARACTERS = 110
_MOST_IN_COLUMN = 44
_MOST_IN_TABLE = 28
_MOST_VERSIONS = 8

_STYLE = """
@page{size:A4;margin:14mm}
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0 auto;padding:6mm 0;max-width:182mm;background:#fff;color:#14191a;
font:9.5pt/1.3 system-ui,"Segoe UI",Roboto,"Helvetica Neue","Open Sans",sans-serif}
@media screen{body{padding:6mm 4mm}}
@media print{body{padding:0;font-size:9pt}}
header{display:flex;justify-content:space-between;gap:6mm;border-bottom:.6mm solid #14191a;padding-bottom:2mm}
header p{margin:0;color:#4a5558}
h1{margin:4mm 0 1mm;font-size:20pt;line-height:1.15}
h1.good{color:#17693f}h1.waived{color:#825500}h1.bad{color:#b3261e}
h2{margin:3mm 0 1mm;font-size:11pt}
p{margin:0 0 1mm;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:1fr 1fr;gap:1mm 8mm;margin:3mm 0 0}
dl div{display:grid;grid-template-columns:26mm 1fr;gap:2mm;min-width:0}
dt{color:#4a5558}
dt,dd,.text p{overflow-wrap:anywhere;display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;
  overflow:hidden}
.text p{margin:0}dd{margin:0;min-height:1.35em}
dd.blank{border-bottom:.2mm solid #14191a}
table{border-collapse:collapse;width:100%}
th,td{text-align:right;padding:.6mm 2mm;border-bottom:.2mm solid #b9c2bd;font-variant-numeric:tabular-nums;
  vertical-align:top}
td,thead th{white-space:nowrap}.text td{white-space:normal}.text td:first-child{width:36%}.text td:last-child{width:14%}
th:first-child,td:first-child{text-align:left;padding-left:0;overflow-wrap:anywhere}
thead th{color:#4a5558;font-weight:400}
.text td,.text th{text-align:left}
code{font:8.5pt/1.3 ui-monospace,Menlo,Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
.more,small{color:#4a5558;font-size:8.5pt}
.sign{display:grid;grid-template-columns:1fr 1fr;gap:10mm;margin-top:2mm;break-inside:avoid}
.sign div{border-top:.3mm solid #14191a;padding-top:1mm;margin-top:13mm}
.sign p{margin:0}
@media screen and (max-width:700px){dl,.sign{grid-template-columns:1fr}.sign{gap:0}table{font-size:9pt}}
"""


@dataclasses.dataclass(frozen=True)
class SignedEvidence:
    """The data of the acceptance sheet that are not part of the report.

    :ivar archive: file name of the evidence archive
    :ivar sha256: SHA-256 of the archive, in hexadecimal
    :ivar intent: SHA-256 of the intent, in hexadecimal
    :ivar nodes: number of nodes that took part
    :ivar customer: party that accepts; if empty, the sheet has a line to fill in by hand
    :ivar cluster: name of the cluster; if empty, the sheet has a line to fill in by hand
    :ivar contractor: party that delivers; if empty, the sheet has a line to fill in by hand
    """

    archive: str
    sha256: str
    intent: str
    nodes: int
    customer: str = ""
    cluster: str = ""
    contractor: str = ""


class Figures(typing.NamedTuple):
    """The bandwidth of the pairs of one fabric, in Gb/s.

    :ivar fabric: name of the fabric
    :ivar figures: measured averages, one for each pair with a result
    :ivar pairs: number of pairs that were to be measured
    :ivar floors: floors (least accepted values) of the figures, as far as they are known
    """

    fabric: str
    figures: tuple[float, ...]
    pairs: int
    floors: tuple[float, ...]


def render_signature(report: Report, evidence: SignedEvidence) -> str:
    """Render the acceptance sheet as a self-contained HTML page."""
    return render_document(
        f"Acceptance of run {report.run}",
        _STYLE,
        render_element(
            "header", render_element("p", "Acceptance of an RDMA network"), render_element("p", f"run {report.run}")
        ),
        render_element(
            "main",
            *_render_verdict(report),
            _render_parties(report, evidence),
            *_render_figures(report),
            *_render_collectives(report),
            *_render_waivers(report),
            *_read_versions(report),
            *_render_sums(evidence),
        ),
        _render_fields(evidence),
        dark=False,
    )


def build_figures(report: Report) -> tuple[Figures, ...]:
    """Return the bandwidth figures of each fabric, in the order of the intent. Return an empty tuple if stage bandwidth
    has no facts that load. The HTML report shows the reason.
    """
    try:
        loaded = read_held(report.records.get("bandwidth"), report.seen)
    except Undrawable:
        return ()
    if loaded is None:
        return ()
    intent, seen = loaded
    known = bandwidth.compute_floors(intent, seen)
    result = []
    for fabric in intent.fabrics:
        pairs = [pair for pair in (seen.bandwidth.pairs if seen.bandwidth else ()) if pair.fabric == fabric.name]
        averages = tuple(pair.average_gbps for pair in pairs if pair.average_gbps is not None)
        result.append(Figures(fabric.name, averages, len(pairs), known.get(fabric.name, ())))
    return tuple(result)


def _render_verdict(report: Report) -> typing.Iterator[Html]:
    tone = "bad" if not report.green else "waived" if report.waived else "good"
    yield render_element("h1", report.verdict, class_=tone)
    yield render_element("p", _shorten_text(report.summary.partition(" - ")[2] or report.summary))
    if not report.green:
        yield render_element(
            "p", render_element("b", "This run did not verify the network, so there is nothing to accept yet.")
        )


def _render_parties(report: Report, evidence: SignedEvidence) -> Html:
    records = report.records.values()
    begun, ended = (
        min((record.started for record in records), default=""),
        max((record.finished for record in records), default=""),
    )
    stages = sum(stage.state == "open" for stage in report.asked)
    rows = [
        ("Customer", evidence.customer),
        ("Cluster", evidence.cluster),
        ("Contractor", evidence.contractor),
        ("Nodes", str(evidence.nodes)),
        ("Measured", _format_period(begun, ended)),
        ("Stages passed", f"{stages} of {len(report.asked)}"),
    ]
    return render_element("dl", *[_render_row(name, value) for name, value in rows])


def _format_period(begun: str, ended: str) -> str:
    """Return a period as text to the minute, such as ``2026-01-31 10:00 to 11:30 UTC``. Return ``nothing`` if it has no
    start.

    :param begun: start of the period; UTC, ISO 8601; empty if it has none
    :param ended: end of the period; UTC, ISO 8601
    """
    if not begun:
        return "nothing"
    until = ended[11:16] if ended[:10] == begun[:10] else ended[:16].replace("T", " ")
    return f"{begun[:16].replace('T', ' ')} to {until} UTC"


def _render_row(name: str, value: str) -> Html:
    return render_element(
        "div",
        render_element("dt", name),
        render_element("dd", _shorten_text(value, _MOST_IN_COLUMN), class_=None if value else "blank"),
    )


def _render_figures(report: Report) -> typing.Iterator[Html]:
    yield render_element("h2", "Bandwidth between pods, Gb/s")
    found = build_figures(report)
    if not any(item.figures for item in found):
        yield render_element("p", "No pair has a measured bandwidth in this run.")
        return
    rows = [_render_figure(item) for item in found[:MOST_FABRICS]]
    head = render_element(
        "tr",
        *[
            render_element("th", name, scope="col")
            for name in ("Fabric", "Pairs measured", "Lowest", "Median", "Best", "Floor")
        ],
    )
    yield render_element("table", render_element("thead", head), render_element("tbody", *rows))
    if len(found) > MOST_FABRICS:
        yield render_element(
            "p", f"and {len(found) - MOST_FABRICS} more fabrics, all of them in report.html", class_="more"
        )


def _render_figure(item: Figures) -> Html:
    values = [_format_gbps(of(item.figures)) for of in (min, statistics.median, max)] if item.figures else ["-"] * 3
    floor = "unknown" if not item.floors else _format_gbps(min(item.floors))
    if item.floors and min(item.floors) != max(item.floors):
        floor = f"{floor} to {_format_gbps(max(item.floors))}"
    cells = [render_element("td", text) for text in (f"{len(item.figures)} of {item.pairs}", *values, floor)]
    return render_element("tr", render_element("th", _shorten_text(item.fabric, _MOST_IN_TABLE), scope="row"), *cells)


def _render_collectives(report: Report) -> typing.Iterator[Html]:
    """Yield the tables of the proven figures for each step of each collective, and of the latencies of small messages.
    Yield nothing if no figure is proven.
    """
    try:
        judged = judge_collectives(report.records.get("collectives"), report.seen)
    except Undrawable:
        return
    groups: dict[tuple[str, str], list[GroupFigure]] = {}
    for item in judged.figures:
        groups.setdefault((item.collective, item.kind), []).append(item)
    if not groups:
        return
    yield render_element("h2", "Verified collectives, GB/s")
    rows = []
    for (name, kind), items in groups.items():
        floors = [item.floor_gbs for item in items if item.floor_gbs is not None]
        values = [
            len(items),
            _format_gbps(min(item.bus_gbs for item in items)),
            _format_gbps(max(item.bus_gbs for item in items)),
            _format_gbps(max(floors)) if floors else "-",
        ]
        rows.append(
            render_element(
                "tr",
                render_element("th", f"{name}, {kind}", scope="row"),
                *[render_element("td", str(value)) for value in values],
            )
        )
    head = render_element(
        "tr", *[render_element("th", name, scope="col") for name in ("Step", "Groups", "Lowest", "Best", "Floor")]
    )
    yield render_element("table", render_element("thead", head), render_element("tbody", *rows))
    yield from _render_latencies(summarize_latencies("", judged.latencies))


def _render_latencies(found: typing.Sequence[LatencyFigures]) -> typing.Iterator[Html]:
    """Yield the heading and the table of the latencies of small messages. Yield nothing if there are none.

    :param found: latencies of each collective
    """
    if not found:
        return
    yield render_element("h2", "Latency of small messages between two nodes, us")
    rows = []
    for item in found:
        values = [str(item.pairs), *(f"{value:.1f}" for value in (item.best, item.median, item.worst))]
        values.append("-" if item.p99 is None else f"{item.p99:.1f}")
        cells = [render_element("td", value) for value in values]
        rows.append(render_element("tr", render_element("th", item.test, scope="row"), *cells))
    heads = ("Collective", "Pairs", "Lowest", "Median", "Highest", "p99")
    head = render_element("tr", *[render_element("th", name, scope="col") for name in heads])
    yield render_element("table", render_element("thead", head), render_element("tbody", *rows))


def _format_gbps(value: float) -> str:
    return f"{value:.1f}"


def _render_waivers(report: Report) -> typing.Iterator[Html]:
    used = sorted((item for item in report.waivers if item.covered), key=lambda item: -len(item.covered))
    yield render_element("h2", f"Not verified, but waived: {report.waived} finding{'' if report.waived == 1 else 's'}")
    if not used:
        yield render_element("p", "Nothing is waived.")
        return
    head = render_element("tr", *[render_element("th", name, scope="col") for name in ("Check", "Reason", "Findings")])
    yield render_element(
        "table",
        render_element("thead", head),
        render_element("tbody", *map(_render_waiver, used[:MOST_WAIVERS])),
        class_="text",
    )
    if len(used) > MOST_WAIVERS:
        count = sum(len(item.covered) for item in used[MOST_WAIVERS:])
        yield render_element(
            "p",
            f"and {len(used) - MOST_WAIVERS} more waivers with {count} findings, all of them in report.html",
            class_="more",
        )


def _render_waiver(used: UsedWaiver) -> Html:
    name = used.waiver.check if used.waiver.subject == "*" else f"{used.waiver.check} on {used.waiver.subject}"
    return render_element(
        "tr",
        render_element("td", render_element("p", render_element("code", _shorten_text(name, _MOST_IN_COLUMN)))),
        render_element("td", render_element("p", _shorten_text(used.waiver.reason))),
        render_element("td", str(len(used.covered))),
    )


def _read_versions(report: Report) -> typing.Iterator[Html]:
    yield render_element("h2", "Versions")
    rows = [*report.versions.items(), *collect_versions(report.records, report.seen).items()]
    yield render_element("dl", *[_render_row(name, value) for name, value in rows[:_MOST_VERSIONS]])


def _render_sums(evidence: SignedEvidence) -> typing.Iterator[Html]:
    yield render_element("h2", "Checksums (SHA-256)")
    yield render_element("p", "Intent: ", render_element("code", evidence.intent))
    name = _shorten_text(evidence.archive, _MOST_IN_COLUMN)
    yield render_element("p", "Evidence, ", name, ": ", render_element("code", evidence.sha256))
    command = (
        f"ansible-playbook linerate.rdma.evidence -e rdma_evidence={name} -e"
        f" rdma_evidence_sha256={evidence.sha256[:12]}..."
    )
    yield render_element(
        "p",
        "Verify the archive with sha256sum, or verify it and judge the run again with: ",
        render_element("code", command),
        class_="more",
    )


def _render_fields(evidence: SignedEvidence) -> Html:
    fields = [
        render_element(
            "div",
            render_element("p", f"{role}{f', {_shorten_text(name, _MOST_IN_COLUMN)}' if name else ''}"),
            render_element("small", "name, place, date, signature"),
        )
        for role, name in (("Contractor", evidence.contractor), ("Customer", evidence.customer))
    ]
    return render_element("section", *fields, class_="sign", aria_label="Signatures")


def _shorten_text(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
