# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of a report, independent of its format: the state of each stage, and the verdict. The modules below
``formats`` render it.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.run.check_ids import PAGES
from ..._model.run.facts import Resume
from ..._model.run.findings import STAGES, Finding, Judged, Waiver, pattern_matches
from ..._model.run.link_errors import EarlierErrors
from ..._model.run.records import CLOSED, OPEN, PENDING, Record, compute_duration, count_findings
from ..markup.text import one_line
from .first_cause import count_statuses, find_first_cause, is_behind, is_refusal, name_cause
from .inputs import FactSource, ReportFacts, no_facts

GREEN = "GREEN"
NOT_GREEN = "NOT GREEN"
CHECK_MODE = "CHECK MODE"

#: of a stage without a record of this run
MISSING = "missing"
STALE = "stale"
UNREADABLE = "unreadable"


@dataclasses.dataclass(frozen=True)
class StageReport:
    """The result of one stage in the report.

    :ivar name: name of the stage
    :ivar state: state of the gate, which lets later stages run: open, closed or pending; skipped if an earlier gate was
        closed; missing, stale or unreadable if there is no record of this run
    :ivar record: record of this run; None if there is none
    :ivar note: sentence about a stage without a record of this run, one that did not run, or one whose record was kept
        when the run was resumed; otherwise empty
    """

    name: str
    state: str
    record: typing.Optional[Record] = None
    note: str = ""

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        return count_findings(self.record.judged if self.record else ())

    @property
    def seconds(self) -> typing.Optional[float]:
        """Return the duration of the stage in seconds. Return None if there is no record, or its times are invalid."""
        return None if self.record is None else compute_duration(self.record)


@dataclasses.dataclass(frozen=True)
class UsedWaiver:
    """A waiver of the intent, with the findings that it covered.

    :ivar covered: findings that did not close a gate because of the waiver
    :ivar idle: for a waiver that covered no finding, the stages whose checks it could cover and that did not run to
        their end. If this is empty as well, the waiver is not needed
    """

    waiver: Waiver
    covered: tuple[Finding, ...]
    idle: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Since:
    """The changes since the previous run.

    :ivar run: ID of the previous run
    :ivar started: start of the previous run; UTC, ISO 8601; empty if the two runs cannot be compared
    :ivar count: number of differences
    :ivar lines: first differences, one line each
    :ivar error: reason why the two runs cannot be compared; empty if they were compared
    """

    run: str
    started: str
    count: int = 0
    lines: tuple[str, ...] = ()
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """The content of a report, independent of its format.

    :ivar run: ID of the run; empty if no run has left a record
    :ivar created: time of the report
    :ivar verdict: GREEN, with the number of waived findings if there are any; NOT GREEN; or CHECK MODE
    :ivar success: whether ansible-playbook must exit with code 0: GREEN, or check mode in which each stage is open or
        pending
    :ivar summary: verdict in one line, without the path of the report
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar stages: results of all stages, in their order
    :ivar waivers: waivers of the intent with their effect
    :ivar versions: versions of the software that created the report, by name
    :ivar facts: function that gets the name of a stage and the names of facts, and returns these facts by name
    :ivar since: changes since the previous run; None if no earlier run is kept
    :ivar errors: error counters that the kept runs have read
    :ivar pages: address of the explanation of a finding, with the placeholder ``{page}`` for the page
    :ivar about: description of the run as texts by label: cluster, nodes, fabrics, and the user who started the run
    """

    run: str
    created: str
    verdict: str
    success: bool
    summary: str
    check_mode: bool
    stages: tuple[StageReport, ...]
    waivers: tuple[UsedWaiver, ...]
    versions: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    facts: FactSource = no_facts
    since: typing.Optional[Since] = None
    errors: EarlierErrors = dataclasses.field(default_factory=EarlierErrors)
    pages: str = PAGES
    about: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def green(self) -> bool:
        return self.success and not self.check_mode

    @property
    def waived(self) -> int:
        """Return the number of findings that waivers cover."""
        return self.counts["waived"]

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        return {name: sum(stage.counts[name] for stage in self.asked) for name in count_findings(())}

    @functools.cached_property
    def seen(self) -> ReportFacts:
        """Return the facts of the run as typed objects. All report formats use the same object, so that each fact is
        loaded once.
        """
        return ReportFacts(self.facts)

    @property
    def records(self) -> dict[str, Record]:
        """Return the records of this run, by stage."""
        return {stage.name: stage.record for stage in self.stages if stage.record}

    @property
    def asked(self) -> tuple[StageReport, ...]:
        """Return the reports of the stages, without those stages that the intent does not request."""
        return tuple(stage for stage in self.stages if stage.record is None or not stage.record.is_unasked)

    @property
    def seconds(self) -> float:
        """Return the duration of all stages together, in seconds. A stage with an unknown duration counts as 0."""
        return sum(stage.seconds or 0.0 for stage in self.stages)

    def head(self) -> dict[str, str]:
        """Return the header of the report as texts by label: cluster, nodes, fabrics, user, ID and start of the run,
        and versions. An unknown part is left out, or is shown as ``unknown``.
        """
        started = min((stage.record.started for stage in self.stages if stage.record), default="unknown")
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return {
            **self.about,
            "Run": f"{self.run or 'unknown'}, started {started}",
            **({"Versions": versions} if versions else {}),
        }

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(change for stage in self.stages if stage.record for change in stage.record.changes)


def build_report(
    records: typing.Mapping[str, Record],
    unreadable: typing.Mapping[str, str],
    run: str,
    created: str,
    versions: typing.Optional[typing.Mapping[str, str]] = None,
    facts: FactSource = no_facts,
    resumes: typing.Sequence[Resume] = (),
) -> Report:
    """Build the report of one run from its records, with its verdict.

    :param records: records of stages by stage. Records of another run are noted, but do not contribute to the verdict
    :param unreadable: reason why a record could not be read, by stage
    :param run: ID of the run; empty for the newest run that left a record
    :param created: time of the report
    :param versions: versions of the software that creates the report, by name; None if there are none
    :param facts: function that gets the name of a stage and the names of facts, and returns these facts by name
    :param resumes: times at which the run was resumed, each with the stage
    """
    run = run or find_newest_run(records)
    stages = tuple(
        _note_resumed_stage(_build_stage_report(name, records.get(name), unreadable.get(name), run), resumes)
        for name in STAGES
    )
    check_mode = any(stage.record.check_mode for stage in stages if stage.record)
    closed = any(stage.state not in ("open", PENDING) for stage in stages)
    if check_mode:
        verdict, success = CHECK_MODE, not closed
    else:
        success = all(stage.state == "open" for stage in stages)
        verdict = _format_green_verdict(stages) if success else NOT_GREEN
    report = Report(
        run, created, verdict, success, "", check_mode, stages, _list_used_waivers(stages), versions or {}, facts
    )
    return dataclasses.replace(report, summary=_summarize_report(report))


def find_newest_run(records: typing.Mapping[str, Record]) -> str:
    """Return the id of the newest run that left a record. Return an empty text if there are no records."""
    return max((record.run for record in records.values()), default="")


def verdict_line(report: Report, path: str) -> str:
    """Return the final message of a run: summary and path of the report, on one line."""
    return one_line(f"linerate.rdma: {report.summary} - report: {path}")


def make_stats(report: Report, path: str, plan: str = "") -> dict[str, typing.Any]:
    """Return the result of this run as data for later jobs of a workflow or for a notification. Its size does not
    depend on the number of nodes.

    :param path: path of the report
    :param plan: plan of a run in check mode, as text; empty if there is none
    """
    return {
        "verdict": report.verdict,
        "green": report.green,
        "run": report.run,
        "counts": dict(report.counts),
        "changes": len(report.changes),
        "summary": one_line(report.summary),
        "first": find_first_cause(
            finding for stage in report.stages if stage.state == CLOSED for finding in list_closing(stage)
        ),
        "plan": plan,
        "report": path,
    }


def list_times(report: Report) -> list[str]:
    """Return a line with the duration in seconds for each stage that was not skipped, and a line with the total
    duration. A stage with an unknown duration is left out.
    """
    spent = [
        (stage.name, stage.seconds) for stage in report.stages if stage.seconds is not None and stage.state != "skipped"
    ]
    return [f"{name:<20} {seconds:9.1f} s" for name, seconds in (*spent, ("total", report.seconds))]


def list_closing(stage: StageReport) -> tuple[Finding, ...]:
    return stage.record.closing() if stage.record else ()


def label_finding(judged: Judged) -> str:
    """Return the label of a finding: its status, or ``waived`` if a waiver covers it."""
    return "waived" if judged.waiver else judged.finding.status


def _build_stage_report(
    name: str, record: typing.Optional[Record], unreadable: typing.Optional[str], run: str
) -> StageReport:
    if unreadable is not None:
        return StageReport(name, UNREADABLE, note=unreadable)
    if record is None:
        return StageReport(name, MISSING, note="This stage was not run.")
    if record.run != run:
        return StageReport(
            name,
            STALE,
            note=f"Not run in this run. The record of run {record.run} (finished {record.finished}) is not counted.",
        )
    if record.closed_by:
        return StageReport(name, "skipped", record, f"Not run: the run stopped at stage {record.closed_by}.")
    return StageReport(name, record.gate, record)


def _format_green_verdict(stages: typing.Iterable[StageReport]) -> str:
    """Return the verdict of a run whose gates are all open. It includes the number of waived findings, since these are
    not proven and must be visible.

    :param stages: results of all stages
    """
    waived = sum(stage.counts["waived"] for stage in stages)
    return f"{GREEN}, {waived} WAIVED" if waived else GREEN


def _note_resumed_stage(stage: StageReport, resumes: typing.Sequence[Resume]) -> StageReport:
    """Return a stage with a note that its record was kept, if its gate is open and it precedes the stage of the last of
    ``resumes``, which is the stage at which the run was resumed. Otherwise return it unchanged.
    """
    last = resumes[-1] if resumes else None
    # of a stage that is in no table nothing is known, and nothing is noted
    if (
        last is None
        or stage.state != "open"
        or stage.record is None
        or last.stage not in STAGES
        or STAGES.index(stage.name) >= STAGES.index(last.stage)
    ):
        return stage
    note = (
        f"Kept from {stage.record.finished}: the run was resumed at stage {last.stage} at {last.time}, and this stage"
        " was not run again."
    )
    return dataclasses.replace(stage, note=note)


def _list_used_waivers(stages: typing.Iterable[StageReport]) -> tuple[UsedWaiver, ...]:
    covered: dict[Waiver, list[Finding]] = {}
    for stage in stages:
        if stage.record:
            for waiver in stage.record.waivers:
                covered.setdefault(waiver, [])
            for item in stage.record.judged:
                if item.waiver:
                    covered.setdefault(item.waiver, []).append(item.finding)
    idle = [stage.name for stage in stages if not _has_checked_facts(stage)]
    return tuple(
        UsedWaiver(waiver, tuple(findings), () if findings else _list_idle_stages(waiver, idle))
        for waiver, findings in covered.items()
    )


def _has_checked_facts(stage: StageReport) -> bool:
    """Return whether the gate of a stage was decided on the facts of a valid intent. The result is False for a record
    of check mode, because some facts do not exist in check mode.
    """
    record = stage.record
    return (
        stage.state in (OPEN, CLOSED)
        and record is not None
        and record.intent is not None
        and record.error is None
        and not record.check_mode
    )


def _list_idle_stages(waiver: Waiver, idle: typing.Iterable[str]) -> tuple[str, ...]:
    pattern = waiver.check.partition(".")[0]
    return tuple(stage for stage in idle if pattern_matches(pattern, stage))


def _summarize_report(report: Report) -> str:
    if report.green:
        number = report.counts
        words = [f"{len(report.asked)} stages", f"{number['pass']} findings pass"]
        words += [f"{number['warn']} warn"] if number["warn"] else []
        return f"{report.verdict} - {', '.join(words)}"
    if report.check_mode:
        return _check_mode_summary(report)
    return f"{NOT_GREEN} - {_first_obstacle(report)}"


def _check_mode_summary(report: Report) -> str:
    number = len(report.changes)
    made = ", ".join(
        f"{stage.name} {len(stage.record.changes)}" for stage in report.stages if stage.record and stage.record.changes
    )
    text = f"check mode: {number} change{'' if number == 1 else 's'} would be made{f' ({made})' if made else ''}"
    return f"{text}, nothing is verified" if report.success else f"{text}, and {_first_obstacle(report)}"


def _first_obstacle(report: Report) -> str:
    """Return a text about the first closed gate with its first cause. If all gates are open or pending, the text is
    about the stages without a result.
    """
    if report.stages and all(stage.state == MISSING for stage in report.stages):
        return _NO_RECORDS
    for stage in report.stages:
        if stage.state == CLOSED:
            findings = list_closing(stage)
            if not findings:
                return f"stage {stage.name}: nothing was checked"
            names = [f"{status_count} {status}" for status, status_count in count_statuses(findings).items()]
            first = next(filter(is_behind, findings), findings[0])
            comma = ";" if first.check.startswith("validate.") or is_refusal(first) else ""
            more = f"{comma} and {len(findings) - 1} more" if len(findings) > 1 else ""
            return f"stage {stage.name}: {', '.join(names)} ({name_cause(first)}{more})"
    for stage in report.stages:
        if stage.state not in ("open", PENDING):
            without = [item.name for item in report.stages if item.state == stage.state]
            return f"{'stages' if len(without) > 1 else 'stage'} {', '.join(without)}: {_ABSENT[stage.state]}"
    return "no stage was run"


_NO_RECORDS = "no stage was run in this folder. Run linerate.rdma.site, or set rdma_report_dir to the folder of a run"
_ABSENT = {
    MISSING: "not run",
    STALE: "not run in this run; only the record of an older run exists",
    UNREADABLE: "the record could not be read",
    "skipped": "not run",
}
