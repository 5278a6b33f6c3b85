# SPDX-License-Identifier: GPL-3.0-or-later

"""The section of one stage on the page of a report: its findings, its figures and drawings, and its record."""

from __future__ import annotations

import typing

from ..._check.sources import SOURCES, OfCluster
from ..._model.base.errors import wrap_unforeseen
from ..._model.run.records import CLOSED, NOT_RUN, OUTCOMES, PENDING, UNASKED, Record
from ..content import collective_figures as collectives
from ..content import comparisons, drawing, grid, link_errors, operators, plans
from ..content import trends as over_time
from ..content.exhibits import (
    Charts,
    Undrawable,
    judge_collectives,
    list_steps_over_runs,
    over_runs,
    read_comparisons,
    read_error_history,
    read_plan,
)
from ..content.finding_groups import make_groups
from ..content.inputs import ReportFacts
from ..content.listing import render_listing, render_passes
from ..content.pair_matrices import list_matrices
from ..content.topology import make_drawing as drawing_of
from ..content.verdict import Report, StageReport
from ..markup.markup import Html, join_content, render_element
from .data import record_path

_OF_CLUSTER = {
    source.kind for fields in SOURCES.values() for source in fields.values() if isinstance(source, OfCluster)
}
_STATE_WORDS = {
    **OUTCOMES,
    # a chip is narrow
    PENDING: "waits",
    "skipped": NOT_RUN,
    "missing": NOT_RUN,
    "stale": "not run in this run",
    "unreadable": "record unreadable",
}


def describe_outcome(stage: StageReport) -> str:
    """Return the state of the gate of a stage as a short text, such as ``waits``. A stage that the intent does not
    request has a text of its own.
    """
    return UNASKED if stage.record is not None and stage.record.is_unasked else _STATE_WORDS[stage.state]


def render_stage(stage: StageReport, report: Report, seen: ReportFacts, known: Charts) -> Html:
    """Render the section of a stage on the page: its outcome, figures, findings and changes. For a stage without a
    record of this run, render only its outcome and its note.

    :param seen: facts of the run, from which figures are computed
    :param known: charts of the InfiniBand fabrics, by name
    """
    record = stage.record
    seconds = "" if stage.seconds is None else f", {stage.seconds:.1f} s"
    title = render_element(
        "h2",
        stage.name.replace("_", " "),
        " ",
        render_element("span", f"{describe_outcome(stage)}{seconds}", class_="state"),
    )
    if record is None:
        return render_element(
            "section", title, render_element("p", stage.note), id=stage.name, class_=f"card stage {stage.state}"
        )
    # pictures first where all is well; else the words that say what is not
    parts = (
        render_element("div", *_render_figures(stage, report, seen, known), class_="figures"),
        join_content(*render_listing(make_groups(record.judged), report.pages)),
    )
    return render_element(
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
        planned = read_plan(stage.record, seen) if stage.name == "network" else None
        if planned is not None:
            yield plans.render_figure(planned)
        # what is wrong before what is well
        yield from map(grid.render_figure, sorted(list_matrices(stage.record, seen, known), key=grid.is_well))
        if stage.name == "bandwidth":
            found, runs = over_runs(stage.record, seen)
            yield from [over_time.render_figure(found, runs)] if found else []
        if stage.name == "collectives":
            yield from _render_collectives(stage.record, seen)
        yield from map(
            comparisons.render_figure, read_comparisons(stage.record, seen) if stage.name == "compare" else ()
        )
    except Undrawable as error:
        yield render_element("p", str(error), class_="more")
    except Exception as error:
        # one figure, which may be made of what one node printed, does not cost the report
        why = wrap_unforeseen(error, f"the figures of stage {stage.name}")
        yield render_element("p", f"A figure of this stage could not be drawn: {why}.", class_="more")


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
    return render_element("p", "All findings, including passes: ", render_element("a", path, href=path), class_="more")


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
        name = render_element("a", f"facts/{item.kind}", href=href) if item.seen else f"facts/{item.kind}"
        items.append(render_element("li", name, f": {item.seen} seen{missing}"))
    return render_element(
        "details", render_element("summary", "Facts of this stage"), render_element("ul", *items), class_="facts"
    )
