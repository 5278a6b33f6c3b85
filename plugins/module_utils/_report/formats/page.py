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
from ..content.finding_groups import LABELS, collect_closing_groups
from ..content.inputs import ReportFacts
from ..content.listing import MOST_GROUPS, render_next_steps
from ..content.verdict import Report, UsedWaiver
from ..markup.markup import Html, join_content, render_document, render_element
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
    return render_document(
        f"linerate.rdma: {report.summary}",
        STYLE,
        render_element("a", "Skip to the findings", href="#findings", class_="skip"),
        _render_header(report, sheets is not None),
        _render_main(report, seen, known, sheets),
        _render_footer(report, seen),
    )


def _render_header(report: Report, with_nodes: bool) -> Html:
    tone = "bad" if not report.success else "neutral" if report.check_mode else "waived" if report.waived else "good"
    # the summary starts with the verdict, which the heading says already
    summary = report.summary.partition(" - ")[2] or report.summary
    return render_element(
        "header",
        render_element("p", "linerate.rdma", class_="brand"),
        render_element("h1", report.verdict),
        render_element("p", summary, class_="summary"),
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
    links = [render_element("a", words, href=place) for words, place in (*warned, *waived)]
    lead = f"See also: {report.counts['warn']} warnings: " if warned else "See also: "
    return (
        render_element("p", lead, *[part for link in links for part in (link, " ")], class_="more") if links else None
    )


def _describe_scope(report: Report) -> Html:
    """Render the header of the report: cluster, nodes, fabrics, user, run and versions. It comes first, because it
    tells a reader of an archived report which run this is.
    """
    return render_element(
        "dl",
        *[
            render_element("div", render_element("dt", name), render_element("dd", value))
            for name, value in report.head().items()
        ],
        class_="about",
    )


def _render_stage_strip(report: Report, with_nodes: bool) -> Html:
    """Render a navigation bar with all stages and the nodes. Each entry links to its section.

    :param with_nodes: whether the page has a section of the nodes
    """
    chips = []
    for stage in report.stages:
        words = (render_element("span", stage.name.replace("_", " ")), render_element("small", describe_outcome(stage)))
        chips.append(render_element("li", render_element("a", *words, href=f"#{stage.name}"), class_=stage.state))
    if with_nodes:
        chips.append(
            render_element(
                "li",
                render_element(
                    "a", render_element("span", "nodes"), render_element("small", "sheets and groups"), href="#nodes"
                ),
            )
        )
    return render_element("nav", render_element("ol", *chips), aria_label="Stages")


def _collect_fabric_charts(report: Report, seen: ReportFacts) -> Charts:
    try:
        return collect_charts(next((stage.record for stage in report.stages if stage.name == "fabric"), None), seen)
    except Undrawable:
        # its own section says so
        return {}


def _render_main(report: Report, seen: ReportFacts, known: Charts, sheets: typing.Optional[Html]) -> Html:
    return render_element(
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
    """Render the section of the nodes. If the facts cannot be shown, the section contains the reason. Return None if
    this run has not observed any node.
    """
    try:
        found = nodes.build_nodes(report.records, seen, known)
    except Undrawable as error:
        return render_element(
            "section",
            render_element("h2", "nodes"),
            render_element("p", str(error), class_="more"),
            id="nodes",
            class_="card stage",
        )
    return node_page.render_section(found) if found is not None else None


def _render_status_filter(report: Report) -> Html:
    """Render a checkbox for each status. The style sheet hides the findings of an unchecked status, so that no script
    is needed.
    """
    boxes = []
    for name in LABELS:
        count = report.counts[name]
        box = render_element("input", type="checkbox", id=f"show-{name}", checked=True)
        boxes.append(
            render_element(
                "label",
                box,
                render_element("b", str(count)),
                f" {name}",
                class_=f"tile {name}" if count else f"tile {name} none",
            )
        )
    return render_element("fieldset", render_element("legend", "Findings shown"), *boxes, class_="filter")


def _render_attention(report: Report) -> typing.Optional[Html]:
    found = collect_closing_groups(report)
    if not any(found.values()):
        return None
    return render_element(
        "section", render_element("h2", "What to do next"), render_next_steps(found, report.pages), class_="card"
    )


def _render_since(report: Report) -> typing.Optional[Html]:
    """Render the changes since the previous run, which is usually the first question after a failure. Return None if no
    earlier run is kept.
    """
    since = report.since
    if since is None:
        return None
    title, before = (
        render_element("h2", "Changes since the previous run"),
        render_element("small", f"run {since.run}{f', {since.started}' if since.started else ''}"),
    )
    if since.error:
        return render_element(
            "section",
            title,
            render_element("p", f"The two runs could not be compared: {since.error}"),
            before,
            class_="card",
        )
    if not since.count:
        return render_element(
            "section",
            title,
            render_element("p", "No changes in the intent, nodes, HCAs, cables, stages or findings."),
            before,
            class_="card",
        )
    shown = since.lines[:_MOST_SINCE]
    words = (
        f"all {since.count} differences"
        if since.count > len(shown)
        else f"{since.count} difference{'' if since.count == 1 else 's'} side by side"
    )
    lines = render_element("ul", *[render_element("li", render_element("bdi", line)) for line in shown])
    return render_element(
        "section",
        title,
        lines,
        render_element("p", render_element("a", words, href="difference.html"), class_="more"),
        before,
        class_="card",
    )


def _render_not_proven(report: Report) -> typing.Optional[Html]:
    """Render the section about results that this run does not prove: waived findings, stages that did not run, and
    check mode. Return None if there is nothing of this kind and the intent has no waivers.
    """
    lines = []
    if report.check_mode:
        lines.append(
            render_element(
                "li",
                "This run was in check mode: no objects were created, so nothing that requires them could be measured.",
            )
        )
    # what stopped a run, stopped all the stages after it
    noted: dict[str, list[str]] = {}
    for stage in report.stages:
        noted.setdefault(stage.note, []).append(stage.name)
    lines += [
        render_element("li", render_element("b", ", ".join(names)), f": {note}")
        for note, names in noted.items()
        if note
    ]
    if not lines and not report.waivers:
        return None
    waivers = render_element("ul", *map(_render_waiver, report.waivers), class_="waivers") if report.waivers else None
    return render_element(
        "section",
        render_element("h2", "Not verified by this run"),
        render_element("ul", *lines) if lines else None,
        (
            render_element(
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
    on = None if used.waiver.subject == "*" else join_content(" on ", render_element("bdi", used.waiver.subject))
    value = (
        None if used.waiver.measured == "*" else join_content(" measured ", render_element("bdi", used.waiver.measured))
    )
    reason = render_element("p", used.waiver.reason, class_="reason")
    selector = render_element("p", render_element("code", used.waiver.check), on, value)
    if not used.covered:
        return render_element(
            "li", reason, selector, render_element("p", render_element("em", _explain_unused_waiver(used)))
        )
    causes: dict[tuple[str, str], list[str]] = {}
    for finding in used.covered:
        causes.setdefault((finding.check, finding.why), []).append(finding.subject)
    items = [
        render_element("li", render_element("code", check), f": {why}", render_element("small", ", ".join(names)))
        for (check, why), names in list(causes.items())[:MOST_GROUPS]
    ]
    if len(causes) > MOST_GROUPS:
        items.append(render_element("li", f"and {len(causes) - MOST_GROUPS} more causes, all of them in report.json"))
    covered = f"covers {len(used.covered)} finding{'' if len(used.covered) == 1 else 's'}"
    return render_element(
        "li",
        reason,
        selector,
        render_element("details", render_element("summary", covered), render_element("ul", *items)),
    )


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
                render_element("h3", stage.name.replace("_", " ")),
                render_element("ul", *[render_element("li", text) for text in (*changes[:_MOST_CHANGES], *more)]),
            ]
    return render_element("section", render_element("h2", title), *parts, class_="card")


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
    files = [render_element("a", name, href=name) for name in ("report.json", "report.xml", "report.prom", "report.md")]
    return render_element(
        "footer",
        render_element(
            "dl",
            *[render_element("div", render_element("dt", name), render_element("dd", value)) for name, value in rows],
        ),
        render_element(
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
