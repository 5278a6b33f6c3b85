# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as one HTML page, for people. It loads nothing and runs no script. The style sheet alone filters the
findings.
"""

from __future__ import annotations

import typing

from ..content import nodes
from ..content.exhibits import (
    Charts,
    Undrawable,
    collect_charts,
    collect_versions,
)
from ..content.inputs import ReportFacts
from ..content.listing import (
    LABELS,
    MOST_GROUPS,
    collect_closing_groups,
    render_next_steps,
)
from ..content.verdict import Report, UsedWaiver
from ..markup.markup import Html, document, element, join
from ..markup.style import STYLE
from . import node_page
from .stage_section import describe_outcome, render_stage

# lines of what changed since the run before: the first screen is for them too
_MOST_SINCE = 8
# lines of changes of a stage
_MOST_CHANGES = 100


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
        words = (element("span", stage.name.replace("_", " ")), element("small", describe_outcome(stage)))
        chips.append(element("li", element("a", *words, href=f"#{stage.name}"), class_=stage.state))
    if with_nodes:
        chips.append(
            element("li", element("a", element("span", "nodes"), element("small", "sheets and groups"), href="#nodes"))
        )
    return element("nav", element("ol", *chips), aria_label="Stages")


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
        *[render_stage(stage, report, seen, known) for stage in report.stages],
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
