# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the report of a run in all formats."""

from __future__ import annotations

import dataclasses
import os
import platform
import typing

from .._model.base.text import join_first
from .._model.base.version import COLLECTION_VERSION
from .._model.run.check_ids import PAGES
from .._model.run.facts import RunStart
from .._model.run.link_errors import EarlierErrors
from .._model.run.records import Record
from .._report.content.verdict import Report, Since, build_report, list_times, make_stats, verdict_line
from .._report.formats.approval import plan_text
from .._report.formats.brief import render_markdown
from .._report.formats.data import render_json
from .._report.formats.junit import render_junit
from .._report.formats.metrics import render_metrics
from .._report.formats.page import render_html
from .._report.markup.text import one_line
from .._store.fact_file import format_now
from .._store.facts import FactFolder
from .._store.files import FileError, base_of, write_text
from .._store.run_start import read_start
from .folder import read_facts

FORMATS = {"html": render_html, "json": render_json, "xml": render_junit, "prom": render_metrics, "md": render_markdown}

Data = dict[str, typing.Any]
#: waivers without a finding that a run warns of, one by one
_MOST_WARNINGS = 10


def report_of(
    facts: FactFolder,
    records: typing.Mapping[str, Record],
    unreadable: typing.Mapping[str, str],
    versions: typing.Mapping[str, str],
) -> Report:
    """Build the report of a run as data, which is then rendered in several formats.

    :param facts: fact folder of the run, with its ID
    :param records: records of stages by stage. Records of another run are permitted, and the report marks them
    :param unreadable: reason why the record of a stage could not be read, by stage
    :param versions: software versions that the report shows, by name
    """
    start = read_start(facts.report_dir)
    resumes = start.resumes if start is not None and start.run == facts.run else ()
    report = build_report(
        records,
        unreadable,
        facts.run,
        format_now(),
        versions,
        lambda stage, parts: read_facts(facts, stage, parts)[0],
        resumes,
    )
    return (
        dataclasses.replace(report, about=_describe_scope(facts, start))
        if start is not None and start.run == facts.run
        else report
    )


def _describe_scope(facts: FactFolder, start: RunStart) -> Data:
    """Return the header of the report as texts by label: the cluster (``Cluster``), the number of nodes (``Nodes``),
    the fabrics (``Fabrics``), and the user of the run (``By``). An unknown cluster or user is left out. The intent is
    used as the user wrote it, and may be invalid.
    """
    fabrics = start.fabrics if isinstance(start.fabrics, (list, tuple)) else ()
    names = [str(fabric.get("name", "")) for fabric in fabrics if isinstance(fabric, dict)]
    about = {"Nodes": str(len(start.nodes)), "Fabrics": join_first(names) if names else "none"}
    try:
        seen = (facts.value("controller") or {}).get("controller") or {}
        # the run itself knows context and API server as well
        cluster = " ".join(filter(None, (start.access or str(seen.get("where") or ""), str(seen.get("server") or ""))))
    except (FileError, AttributeError):
        # the judgement names the file; here is only a head
        cluster = start.access
    return {**({"Cluster": cluster} if cluster else {}), **about, **({"By": start.by} if start.by else {})}


def publish(
    facts: FactFolder,
    target: str,
    records: typing.Mapping[str, Record],
    unreadable: typing.Mapping[str, str],
    versions: typing.Mapping[str, str],
    since: typing.Optional[Since] = None,
    pages: str = PAGES,
    errors: typing.Optional[EarlierErrors] = None,
) -> Data:
    """Write the report of a run in all formats.

    :param facts: fact folder of the run, with its ID
    :param target: folder for the report
    :param records: records of stages by stage. Records of another run are permitted, and the report marks them
    :param unreadable: reason why the record of a stage could not be read, by stage
    :param versions: versions of the calling software, by name
    :param since: differences from the previous run; None if no previous run was kept
    :param pages: URL template of the pages that explain findings; ``{page}`` is replaced by the name of the page
    :param errors: error counters that the earlier kept runs have read; None if there are none
    :returns: the result of the module ``report``: verdict, summary, statistics, changes and the paths of the files
    :raises FileError: a file cannot be written
    """
    everything = {"linerate.rdma": COLLECTION_VERSION, **versions, "python": platform.python_version()}
    report = dataclasses.replace(
        report_of(facts, records, unreadable, everything), since=since, pages=pages, errors=errors or EarlierErrors()
    )
    paths = {name: os.path.join(os.path.abspath(target), f"report.{name}") for name in FORMATS}
    for name, render in FORMATS.items():
        write_text(paths[name], render(report), base_of(target, facts.report_dir))
    unused = _describe_unused_waivers(report)
    return {
        **({"warnings": unused} if unused else {}),
        "verdict": report.verdict,
        "green": report.green,
        "waived": report.waived,
        "success": report.success,
        "line": verdict_line(report, paths["html"]),
        "stats": make_stats(report, paths["html"], plan_text(report)),
        "times": list_times(report),
        "counts": report.counts,
        "changes": list(report.changes),
        "paths": paths,
    }


def _describe_unused_waivers(report: Report) -> list[str]:
    """Return a warning for each waiver that covered no finding although all stages ran that it could apply to, at most
    ``_MOST_WARNINGS`` and a last one with the number of the others.

    :param report: report of the run
    """
    unused = [used.waiver for used in report.waivers if not used.covered and not used.idle]
    lines = [
        one_line(
            f"The waiver for {waiver.check}{'' if waiver.subject == '*' else f' on {waiver.subject}'} in rdma_waivers"
            " covered no finding of this run. Remove the waiver, or correct its check, subject and measured."
        )
        for waiver in unused[:_MOST_WARNINGS]
    ]
    more = len(unused) - _MOST_WARNINGS
    return [*lines, f"{more} more waivers covered no finding; the report lists them."] if more > 0 else lines
