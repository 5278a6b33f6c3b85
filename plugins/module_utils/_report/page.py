# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The report as one HTML file without anything from outside, for people."""

from __future__ import annotations

import json
import typing

from .._model.findings import PASS, Finding, Judged
from .._model.redact import redact, redact_text
from .figures import Figure, figures
from .markup import Html, element
from .style import STYLE
from .verdict import CHECK_MODE, GREEN, Report, StageReport, label

# a browser should open the report of a large cluster at once; the record has all of it
_MOST_FACTS = 200_000

_ORDER = {"fail": 0, "unknown": 1, "skipped": 2, "warn": 3, "waived": 4, "pass": 5}
_COUNT_NAMES = (("fail", "fail"), ("unknown", "unknown"), ("skipped", "skipped"), ("warn", "warn"), ("waived", "waived"), ("pass", "pass"))
_STATE_WORDS = {
    "open": "gate open",
    "closed": "gate closed",
    "pending": "gate pending",
    "skipped": "not run",
    "missing": "not run",
    "stale": "not run this time",
    "unreadable": "record can't be read",
}


def render_html(report: Report) -> str:
    page = element(
        "html",
        element(
            "head",
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            # nothing may be loaded or run, whatever a tool's output holds
            Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
            element("title", f"linerate.rdma: {report.verdict}"),
            element("style", Html(STYLE)),
        ),
        element(
            "body",
            _header(report),
            element("main", _strip(report), _attention(report), _not_proven(report), _changes(report), *[_stage(stage) for stage in report.stages]),
            element("footer", f"linerate.rdma. Run {report.run or 'unknown'}, report written {report.created}."),
        ),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{page}\n"


def _header(report: Report) -> Html:
    tone = {GREEN: "good", CHECK_MODE: "neutral"}.get(report.verdict, "bad")
    if report.verdict == CHECK_MODE and not report.success:
        tone = "bad"
    tiles = [element("li", element("b", str(report.counts[key])), f" {name}", class_=f"tile {key}") for key, name in _COUNT_NAMES]
    # the summary starts with the verdict, which the heading says already
    summary = _clean(report.summary).partition(" - ")[2] or _clean(report.summary)
    return element(
        "header",
        element("p", "linerate.rdma", class_="brand"),
        element("h1", report.verdict),
        element("p", summary, class_="summary"),
        element("ul", *tiles, class_="tiles"),
        class_=tone,
    )


def _strip(report: Report) -> Html:
    """All stages on one line; each leads to its section."""
    chips = []
    for stage in report.stages:
        words = (element("span", stage.name.replace("_", " ")), element("small", _STATE_WORDS[stage.state]))
        chips.append(element("li", element("a", *words, href=f"#{stage.name}"), class_=stage.state))
    return element("nav", element("ol", *chips), aria_label="Stages")


def _attention(report: Report) -> Html:
    items = [judged for stage in report.stages if stage.record and stage.state != "skipped" for judged in stage.record.judged if judged.closes]
    if not items:
        return Html("")
    return element("section", element("h2", "What to do next"), _table(items), class_="card")


def _not_proven(report: Report) -> Html:
    """Waivers, check mode, and stages that did not run: what a reader must not take this run for."""
    lines = []
    if report.check_mode:
        lines.append(element("li", "This run was in check mode: nothing was made, so nothing that stands on it could be measured."))
    lines += [element("li", element("b", stage.name), f": {_clean(stage.note)}") for stage in report.stages if stage.note]
    rows = []
    for used in report.waivers:
        what = element("ul", *_covered(used.covered)) if used.covered else element("em", "covered nothing; it can be removed")
        subject = None if used.waiver.subject == "*" else f" on {_clean(used.waiver.subject)}"
        selector = element("td", element("code", _clean(used.waiver.check)), subject)
        rows.append(element("tr", selector, element("td", _clean(used.waiver.reason)), element("td", what)))
    if not lines and not rows:
        return Html("")
    head = element("tr", element("th", "Waived check"), element("th", "Reason"), element("th", "Findings that it covers"))
    return element(
        "section",
        element("h2", "What this run does not prove"),
        element("ul", *lines) if lines else None,
        element("div", element("table", element("thead", head), element("tbody", *rows)), class_="scroll") if rows else None,
        class_="card",
    )


def _covered(findings: typing.Iterable[Finding]) -> typing.Iterator[Html]:
    """One line for each check and cause, with all of its subjects: a thousand nodes without a BMC are one thing to know."""
    subjects: typing.Dict[typing.Tuple[str, str], typing.List[str]] = {}
    for finding in findings:
        subjects.setdefault((finding.check, finding.why), []).append(finding.subject)
    for (check, why), names in subjects.items():
        yield element("li", element("code", check), f": {_clean(why)}", element("small", _clean(", ".join(names))))


def _changes(report: Report) -> Html:
    if not report.changes:
        return Html("")
    title = "What would be changed" if report.check_mode else "What this run changed"
    items = [element("li", element("b", stage.name), f": {_clean(change)}") for stage in report.stages if stage.record for change in stage.record.changes]
    return element("section", element("h2", title), element("ul", *items), class_="card")


def _stage(stage: StageReport) -> Html:
    record = stage.record
    seconds = "" if stage.seconds is None else f", {stage.seconds:.0f} s"
    title = element("h2", stage.name.replace("_", " "), " ", element("span", f"{_STATE_WORDS[stage.state]}{seconds}", class_="state"))
    if record is None:
        return element("section", title, element("p", _clean(stage.note)), id=stage.name, class_=f"card stage {stage.state}")
    special = [item for item in record.judged if label(item) != PASS]
    passes = [item for item in record.judged if label(item) == PASS]
    return element(
        "section",
        title,
        _table(special) if special else None,
        *[_figure(figure) for figure in figures(stage.name, record.facts, record.judged)],
        element("details", element("summary", f"{len(passes)} passed"), _table(passes), open=not special and len(passes) <= 12) if passes else None,
        _facts(stage.name, record.facts),
        id=stage.name,
        class_=f"card stage {stage.state}",
    )


def _table(items: typing.Sequence[Judged]) -> Html:
    with_cause = any(label(item) != PASS for item in items)
    names = ["", "Check", "Subject", "Measured", "Expected"] + (["Why, and what to do"] if with_cause else [])
    rows = [_row(item, with_cause) for item in sorted(items, key=lambda item: _ORDER[label(item)])]
    head = element("thead", element("tr", *[element("th", name) for name in names]))
    return element("div", element("table", head, element("tbody", *rows)), class_="scroll")


def _row(item: Judged, with_cause: bool) -> Html:
    finding = item.finding
    cells = [
        element("td", element("span", label(item), class_=f"badge {label(item)}")),
        element("td", element("code", finding.check)),
        *[element("td", _clean(text)) for text in (finding.subject, finding.measured, finding.expected)],
    ]
    return element("tr", *cells, _cause(finding, item) if with_cause else None)


def _cause(finding: Finding, item: Judged) -> Html:
    waiver = element("p", element("b", "Waived: "), _clean(item.waiver.reason)) if item.waiver else None
    remedy = element("p", element("b", "Do: "), _clean(finding.remedy)) if finding.remedy and not item.waiver else None
    return element("td", element("p", _clean(finding.why)) if finding.why else None, waiver, remedy)


def _figure(figure: Figure) -> Html:
    """Horizontal bars with the floor as a line, as far as figures are known; drawn with the style sheet alone."""
    top = max([item.value for item in figure.bars] + [item.floor or 0.0 for item in figure.bars]) or 1.0
    rows = []
    for item in figure.bars:
        floor = element("i", class_="floor", style=f"left:{_percent(item.floor, top)}") if item.floor is not None else None
        filled = element("span", class_="fill good" if item.good else "fill bad", style=f"width:{_percent(item.value, top)}")
        rows.append(
            element(
                "tr",
                element("th", _clean(item.name), scope="row"),
                element("td", element("div", filled, floor, class_="bar"), class_="wide"),
                element("td", f"{item.value:.4g}", class_="number"),
                element("td", "-" if item.floor is None else f"{item.floor:.4g}", class_="number"),
            )
        )
    head = element("tr", element("th", figure.what), element("th", ""), element("th", f"average, {figure.unit}"), element("th", f"floor, {figure.unit}"))
    return element("figure", element("figcaption", figure.title), element("table", element("thead", head), element("tbody", *rows)))


def _facts(name: str, facts: typing.Any) -> typing.Optional[Html]:
    if facts is None:
        return None
    text = json.dumps(redact(facts), indent=2, sort_keys=True, ensure_ascii=False)
    note = None
    if len(text) > _MOST_FACTS:
        note = element("p", f"The first {_MOST_FACTS} of {len(text)} characters; all of it is in stages/{name}.json beside this report.")
        text = text[:_MOST_FACTS]
    return element("details", element("summary", "Facts that were observed"), note, element("pre", text))


def _percent(value: float, top: float) -> str:
    return f"{max(0.0, min(100.0, 100.0 * value / top)):.2f}%"


def _clean(text: str) -> str:
    return redact_text(text)
