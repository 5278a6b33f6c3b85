# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as one HTML page, for people. It loads nothing and runs no script. The style sheet alone filters the
findings.
"""

from __future__ import annotations

import typing

from ..._check.sources import SOURCES, OfCluster
from ..._model.base.errors import wrap_unforeseen
from ..._model.run.records import CLOSED, NOT_RUN, OUTCOMES, PENDING, UNASKED, Record
from ..content import collective_figures as collectives
from ..content import comparisons, drawing, grid, link_errors, nodes, operators, plans
from ..content import trends as over_time
from ..content.exhibits import (
    Charts,
    Undrawable,
    collect_charts,
    collect_versions,
    compared,
    judge_collectives,
    list_matrices,
    list_steps_over_runs,
    over_runs,
    plan,
    read_error_history,
)
from ..content.inputs import ReportFacts
from ..content.listing import (
    LABELS,
    MOST_GROUPS,
    collect_closing_groups,
    make_groups,
    render_listing,
    render_next_steps,
    render_passes,
)
from ..content.topology import make_drawing as drawing_of
from ..content.verdict import Report, StageReport, UsedWaiver
from ..markup.markup import Html, document, element, join
from ..markup.style import STYLE
from . import node_page
from .data import record_path

_OF_CLUSTER = {
    source.kind for fields in SOURCES.values() for source in fields.values() if isinstance(source, OfCluster)
}
# lines of what changed since the run before: the first screen is for them too
_MOST_SINCE = 8
# lines of changes of a stage
_MOST_CHANGES = 100

_STATE_WORDS = {
    **OUTCOMES,
    # a chip is narrow
    PENDING: "waits",
    "skipped": NOT_RUN,
    "missing": NOT_RUN,
    "stale": "not run in this run",
    "unreadable": "record unreadable",
}


def render_html(report: Report) -> str:
    seen = report.seen
    known = _collect_fabric_charts(report, seen)
    sheets = _render_nodes(report, seen, known)
    return document(
        f"linerate.rdma: {report.summary}",
        STYLE,
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        _render_header(report, sheets is not None),
        _render_main(report, seen, known, sheets),
        _render_footer(report, seen),
    )


def _render_header(report: Report, with_nodes: bool) -> Html:
    tone = "bad" if not report.success else "neutral" if report.check_mode else "waived" if report.waived else "good"
    # the summary starts with the verdict, which the heading says already
    summary = report.summary.partition(" - ")[2] or report.summary
    return element(
        "header",
        element("p", "linerate.rdma", class_="brand"),
        element("h1", report.verdict),
        element("p", summary, class_="summary"),
        _render_not_passed(report),
        _describe_scope(report),
        _render_stage_strip(report, with_nodes),
        class_=tone,
    )


def _render_not_passed(report: Report) -> typing.Optional[Html]:
    """Render links to the warnings and the waived findings of a successful run. Return None if there are none, or if
    the run is not successful.
    """
    if not report.success:
        return None
    warned = [
        (f"{stage.counts['warn']} in {stage.name.replace('_', ' ')}", f"#{stage.name}")
        for stage in report.stages
        if stage.counts["warn"]
    ]
    waived = [(f"{report.waived} waived", "#not-proven")] if report.waived else []
    links = [element("a", words, href=place) for words, place in (*warned, *waived)]
    lead = f"See also: {report.counts['warn']} warnings: " if warned else "See also: "
    return element("p", lead, *[part for link in links for part in (link, " ")], class_="more") if links else None


def _describe_scope(report: Report) -> Html:
    """Render the header of the report: cluster, nodes, fabrics, user, run and versions. A reader of an archived report
    needs them first.
    """
    return element(
        "dl",
        *[element("div", element("dt", name), element("dd", value)) for name, value in report.head().items()],
        class_="about",
    )


def _render_stage_strip(report: Report, with_nodes: bool) -> Html:
    """Render a navigation bar with all stages and the nodes. Each entry links to its section."""
    chips = []
    for stage in report.stages:
        words = (element("span", stage.name.replace("_", " ")), element("small", _describe_outcome(stage)))
        chips.append(element("li", element("a", *words, href=f"#{stage.name}"), class_=stage.state))
    if with_nodes:
        chips.append(
            element("li", element("a", element("span", "nodes"), element("small", "sheets and groups"), href="#nodes"))
        )
    return element("nav", element("ol", *chips), aria_label="Stages")


def _describe_outcome(stage: StageReport) -> str:
    return UNASKED if stage.record is not None and stage.record.is_unasked else _STATE_WORDS[stage.state]


def _collect_fabric_charts(report: Report, seen: ReportFacts) -> Charts:
    try:
        return collect_charts(next((stage.record for stage in report.stages if stage.name == "fabric"), None), seen)
    except Undrawable:
        # its own section says so
        return {}


def _render_main(report: Report, seen: ReportFacts, known: Charts, sheets: typing.Optional[Html]) -> Html:
    return element(
        "main",
        _render_attention(report),
        _render_since(report),
        _render_not_proven(report),
        _render_changes(report),
        _render_status_filter(report),
        *[_render_stage(stage, report, seen, known) for stage in report.stages],
        sheets,
        id="findings",
    )


def _render_nodes(report: Report, seen: ReportFacts, known: Charts) -> typing.Optional[Html]:
    """Render the section of the nodes. Return None if this run has not observed any node."""
    try:
        found = nodes.nodes(report.records, seen, known)
    except Undrawable as error:
        return element(
            "section", element("h2", "nodes"), element("p", str(error), class_="more"), id="nodes", class_="card stage"
        )
    return node_page.render_section(found) if found is not None else None


def _render_status_filter(report: Report) -> Html:
    """Render a checkbox for each status. The style sheet hides the findings of an unchecked status, so that no script
    is needed.
    """
    boxes = []
    for name in LABELS:
        count = report.counts[name]
        box = element("input", type="checkbox", id=f"show-{name}", checked=True)
        boxes.append(
            element(
                "label",
                box,
                element("b", str(count)),
                f" {name}",
                class_=f"tile {name}" if count else f"tile {name} none",
            )
        )
    return element("fieldset", element("legend", "Findings shown"), *boxes, class_="filter")


def _render_attention(report: Report) -> typing.Optional[Html]:
    found = collect_closing_groups(report)
    if not any(found.values()):
        return None
    return element("section", element("h2", "What to do next"), render_next_steps(found, report.pages), class_="card")


def _render_since(report: Report) -> typing.Optional[Html]:
    """Render the changes since the previous run, which is usually the first question after a failure. Return None if no
    earlier run is kept.
    """
    since = report.since
    if since is None:
        return None
    title, before = (
        element("h2", "Changes since the previous run"),
        element("small", f"run {since.run}{f', {since.started}' if since.started else ''}"),
    )
    if since.error:
        return element(
            "section", title, element("p", f"The two runs could not be compared: {since.error}"), before, class_="card"
        )
    if not since.count:
        return element(
            "section",
            title,
            element("p", "No changes in the intent, nodes, HCAs, cables, stages or findings."),
            before,
            class_="card",
        )
    shown = since.lines[:_MOST_SINCE]
    words = (
        f"all {since.count} differences"
        if since.count > len(shown)
        else f"{since.count} difference{'' if since.count == 1 else 's'} side by side"
    )
    lines = element("ul", *[element("li", element("bdi", line)) for line in shown])
    return element(
        "section",
        title,
        lines,
        element("p", element("a", words, href="difference.html"), class_="more"),
        before,
        class_="card",
    )


def _render_not_proven(report: Report) -> typing.Optional[Html]:
    """Render the section about results that this run does not prove: waived findings, stages that did not run, and
    check mode. Return None if there are none.
    """
    lines = []
    if report.check_mode:
        lines.append(
            element(
                "li",
                "This run was in check mode: no objects were created, so nothing that requires them could be measured.",
            )
        )
    # what stopped a run, stopped all the stages after it
    noted: dict[str, list[str]] = {}
    for stage in report.stages:
        noted.setdefault(stage.note, []).append(stage.name)
    lines += [element("li", element("b", ", ".join(names)), f": {note}") for note, names in noted.items() if note]
    if not lines and not report.waivers:
        return None
    waivers = element("ul", *map(_render_waiver, report.waivers), class_="waivers") if report.waivers else None
    return element(
        "section",
        element("h2", "Not verified by this run"),
        element("ul", *lines) if lines else None,
        (
            element(
                "h3", f"{report.counts['waived'] or 'no'} finding{'' if report.counts['waived'] == 1 else 's'} waived"
            )
            if waivers
            else None
        ),
        waivers,
        id="not-proven",
        class_="card",
    )


def _render_waiver(used: UsedWaiver) -> Html:
    on = None if used.waiver.subject == "*" else join(" on ", element("bdi", used.waiver.subject))
    value = None if used.waiver.measured == "*" else join(" measured ", element("bdi", used.waiver.measured))
    reason = element("p", used.waiver.reason, class_="reason")
    selector = element("p", element("code", used.waiver.check), on, value)
    if not used.covered:
        return element("li", reason, selector, element("p", element("em", _explain_unused_waiver(used))))
    causes: dict[tuple[str, str], list[str]] = {}
    for finding in used.covered:
        causes.setdefault((finding.check, finding.why), []).append(finding.subject)
    items = [
        element("li", element("code", check), f": {why}", element("small", ", ".join(names)))
        for (check, why), names in list(causes.items())[:MOST_GROUPS]
    ]
    if len(causes) > MOST_GROUPS:
        items.append(element("li", f"and {len(causes) - MOST_GROUPS} more causes, all of them in report.json"))
    covered = f"covers {len(used.covered)} finding{'' if len(used.covered) == 1 else 's'}"
    return element("li", reason, selector, element("details", element("summary", covered), element("ul", *items)))


def _explain_unused_waiver(used: UsedWaiver) -> str:
    if not used.idle:
        return "The waiver covered no finding in this run and can be removed."
    return (
        f"It is unknown whether the waiver is needed: stage {', '.join(used.idle)} did not complete, or ran in check"
        " mode."
    )


def _render_changes(report: Report) -> typing.Optional[Html]:
    if not report.changes:
        return None
    title = "Changes that this run would make" if report.check_mode else "Changes of this run"
    parts = []
    for stage in report.stages:
        changes = stage.record.changes if stage.record else ()
        if changes:
            more = (
                [f"and {len(changes) - _MOST_CHANGES} more, all of them in report.json"]
                if len(changes) > _MOST_CHANGES
                else []
            )
            parts += [
                element("h3", stage.name.replace("_", " ")),
                element("ul", *[element("li", text) for text in (*changes[:_MOST_CHANGES], *more)]),
            ]
    return element("section", element("h2", title), *parts, class_="card")


def _render_stage(stage: StageReport, report: Report, seen: ReportFacts, known: Charts) -> Html:
    record = stage.record
    seconds = "" if stage.seconds is None else f", {stage.seconds:.1f} s"
    title = element(
        "h2", stage.name.replace("_", " "), " ", element("span", f"{_describe_outcome(stage)}{seconds}", class_="state")
    )
    if record is None:
        return element("section", title, element("p", stage.note), id=stage.name, class_=f"card stage {stage.state}")
    # pictures first where all is well; else the words that say what is not
    parts = (
        element("div", *_render_figures(stage, report, seen, known), class_="figures"),
        join(*render_listing(make_groups(record.judged), report.pages)),
    )
    return element(
        "section",
        title,
        *(reversed(parts) if stage.state == CLOSED else parts),
        render_passes(record.judged, record_path(record.stage)),
        _render_record(record),
        _render_facts(record),
        id=stage.name,
        class_=f"card stage {stage.state}",
    )


def _render_figures(stage: StageReport, report: Report, seen: ReportFacts, known: Charts) -> typing.Iterator[Html]:
    if stage.record is None:
        return
    if stage.name == "operators":
        needed = [item.finding for item in stage.record.judged if item.finding.check == "operators.needed"]
        yield from [operators.render_figure(needed)] if needed else []
    if stage.name == "fabric":
        judged = [item for other in report.stages if other.record for item in other.record.judged]
        yield from (drawing.render_figure(drawing_of(chart, judged)) for chart in known.values())
    try:
        counted = read_error_history(stage.record, seen, report.errors) if stage.name == "fabric" else None
        yield from [link_errors.render_figure(counted)] if counted is not None and counted.runs else []
        planned = plan(stage.record, seen) if stage.name == "network" else None
        if planned is not None:
            yield plans.render_figure(planned)
        # what is wrong before what is well
        yield from map(grid.render_figure, sorted(list_matrices(stage.record, seen, known), key=grid.is_well))
        if stage.name == "bandwidth":
            found, runs = over_runs(stage.record, seen)
            yield from [over_time.render_figure(found, runs)] if found else []
        if stage.name == "collectives":
            yield from _render_collectives(stage.record, seen)
        yield from map(comparisons.render_figure, compared(stage.record, seen) if stage.name == "compare" else ())
    except Undrawable as error:
        yield element("p", str(error), class_="more")
    except Exception as error:
        # one figure, which may be made of what one node printed, does not cost the report
        why = wrap_unforeseen(error, f"the figures of stage {stage.name}")
        yield element("p", f"A figure of this stage could not be drawn: {why}.", class_="more")


def _render_collectives(record: Record, seen: ReportFacts) -> typing.Iterator[Html]:
    """Yield a chart of the proven results of collectives, a chart of the latencies of pairs, and for both the changes
    over the runs.

    :param record: record of stage collectives
    :param seen: facts of the run
    :raises Undrawable: the facts do not load
    """
    proven = judge_collectives(record, seen)
    if proven.figures:
        yield collectives.render_figure(proven.figures)
    if proven.latencies:
        yield collectives.render_latencies(proven.latencies)
    if proven.figures or proven.latencies:
        steps, latencies, runs = list_steps_over_runs(record, seen, proven)
        yield from [over_time.render_figure(steps, runs, "Collectives")] if steps else []
        yield from [over_time.render_figure(latencies, runs, "Latency of small messages")] if latencies else []


def _render_record(record: Record) -> Html:
    """Render a link to the record of a stage, which contains all of its findings, including passes."""
    path = record_path(record.stage)
    return element("p", "All findings, including passes: ", element("a", path, href=path), class_="more")


def _render_facts(record: Record) -> typing.Optional[Html]:
    """Render the number of facts by which the stage was judged, with links to their folders. Return None if the record
    has no facts.
    """
    if not record.facts:
        return None
    items = []
    for item in record.facts:
        missing = f", {item.missing} missing" if item.missing else ""
        href = f"facts/{item.kind}/{'cluster.json' if item.kind in _OF_CLUSTER else ''}"
        # where nothing was seen there may be no such folder
        name = element("a", f"facts/{item.kind}", href=href) if item.seen else f"facts/{item.kind}"
        items.append(element("li", name, f": {item.seen} seen{missing}"))
    return element("details", element("summary", "Facts of this stage"), element("ul", *items), class_="facts")


def _render_footer(report: Report, seen: ReportFacts) -> Html:
    records = [stage.record for stage in report.stages if stage.record]
    rows = [
        ("Run", report.run or "unknown"),
        ("Started", min((record.started for record in records), default="unknown")),
        ("Report written", report.created),
        ("All stages together", f"{report.seconds:.1f} s"),
        *report.versions.items(),
        *collect_versions({stage.name: stage.record for stage in report.stages if stage.record}, seen).items(),
    ]
    files = [element("a", name, href=name) for name in ("report.json", "report.xml", "report.prom", "report.md")]
    return element(
        "footer",
        element("dl", *[element("div", element("dt", name), element("dd", value)) for name, value in rows]),
        element(
            "p",
            "This report for programs: ",
            files[0],
            ", as JUnit ",
            files[1],
            ", as OpenMetrics ",
            files[2],
            "; for chat and mail ",
            files[3],
            ".",
        ),
    )
