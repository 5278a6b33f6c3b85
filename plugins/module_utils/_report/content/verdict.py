# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a run, before it has a format: which stage stands where, and the verdict. Formats are in page, data and
junit."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.run.check_ids import PAGES
from ..._model.run.facts import Resume
from ..._model.run.findings import SKIPPED, STAGES, Finding, Judged, Waiver, matches
from ..._model.run.link_errors import EarlierErrors
from ..._model.run.records import CLOSED, OPEN, PENDING, Record, compute_duration, count_findings
from ..markup.text import one_line, short
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
    """One stage in the report.

    :ivar state: open, closed or pending; skipped when an earlier gate was closed; missing, stale or unreadable without
        a record of this run
    :ivar record: of this run, or None
    :ivar note: one sentence where there is no record of this run, where it did not run, or where it was kept when the
        run went on
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
        """Duration; None without a record."""
        return None if self.record is None else compute_duration(self.record)


@dataclasses.dataclass(frozen=True)
class UsedWaiver:
    """A waiver of the intent and what it covered.

    :ivar idle: of a waiver that covered nothing: the stages whose checks it could cover and that did not run to their
        end; without any, nobody needs it
    """

    waiver: Waiver
    covered: tuple[Finding, ...]
    idle: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Since:
    """The changes since the run before.

    :ivar run: the run before
    :ivar started: when that one began; UTC, ISO 8601
    :ivar count: of the differences
    :ivar lines: the first of them
    :ivar error: why the two can't be compared; empty when they were
    """

    run: str
    started: str
    count: int = 0
    lines: tuple[str, ...] = ()
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """All that a report says.

    :ivar verdict: GREEN, with the number of findings that waivers cover if there are any; NOT GREEN; or CHECK MODE
    :ivar success: whether ansible-playbook should end with 0: GREEN, or a check mode that found nothing wrong
    :ivar summary: the verdict in one line, without the path of the report
    :ivar versions: of what made the report, by name
    :ivar facts: where the figures come from
    :ivar since: what changed since the run before; None where none is kept
    :ivar errors: error counters that the kept runs before this one have read
    :ivar about: what was looked at, in words by what it is: cluster, nodes, fabrics, and who ran it
    :ivar pages: address of what explains a finding, with ``{page}`` for its name
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
        """Return how many findings waivers cover."""
        return self.counts["waived"]

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        return {name: sum(stage.counts[name] for stage in self.asked) for name in count_findings(())}

    @functools.cached_property
    def seen(self) -> ReportFacts:
        """Return the facts, which each format shows a part of."""
        return ReportFacts(self.facts)

    @property
    def records(self) -> dict[str, Record]:
        """Of this run, by stage."""
        return {stage.name: stage.record for stage in self.stages if stage.record}

    @property
    def asked(self) -> tuple[StageReport, ...]:
        """Return the stages without those that the intent does not ask for."""
        return tuple(stage for stage in self.stages if stage.record is None or not stage.record.is_unasked)

    @property
    def seconds(self) -> float:
        """Of all stages together."""
        return sum(stage.seconds or 0.0 for stage in self.stages)

    def head(self) -> dict[str, str]:
        """Return what the verdict is about, in words by what it is: cluster, nodes, fabrics, who ran it, when, and with
        which versions."""
        started = min((stage.record.started for stage in self.stages if stage.record), default="unknown")
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return {
            **self.about,
            "Run": f"{self.run or 'unknown'}, begun {started}",
            **({"Versions": versions} if versions else {}),
        }

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(change for stage in self.stages if stage.record for change in stage.record.changes)


def build(
    records: typing.Mapping[str, Record],
    unreadable: typing.Mapping[str, str],
    run: str,
    created: str,
    versions: typing.Optional[typing.Mapping[str, str]] = None,
    facts: FactSource = no_facts,
    resumes: typing.Sequence[Resume] = (),
) -> Report:
    """Put the records of one run together and judge the whole.

    :param records: by stage, of whatever run; those of another run are named and never counted
    :param unreadable: by stage, why its record could not be read
    :param run: identity of the run; empty for the newest one there is a record of
    :param resumes: when the run was gone on with, and where
    """
    run = run or newest(records)
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


def newest(records: typing.Mapping[str, Record]) -> str:
    """Identity of the newest run that left a record; empty when none did."""
    return max((record.run for record in records.values()), default="")


def verdict_line(report: Report, path: str) -> str:
    """Return the last word of a run, on one line."""
    return one_line(f"linerate.rdma: {report.summary} - report: {path}")


def make_stats(report: Report, path: str, plan: str = "") -> dict[str, typing.Any]:
    """Return the data of this run for whatever runs after it, such as a job of a workflow or a notification. Its size
    does not grow with the fleet.

    :param path: of the report
    :param plan: of a run in check mode, as text
    """
    return {
        "verdict": report.verdict,
        "green": report.green,
        "run": report.run,
        "counts": dict(report.counts),
        "changes": len(report.changes),
        "summary": one_line(report.summary),
        "first": find_first_cause(
            finding for stage in report.stages if stage.state == CLOSED for finding in closing(stage)
        ),
        "plan": plan,
        "report": path,
    }


def find_first_cause(findings: typing.Iterable[Finding]) -> typing.Optional[dict[str, str]]:
    """Return the first of the findings that close a gate, as data; None when there is none."""
    finding = next(iter(findings), None)
    return (
        {name: short(getattr(finding, name)) for name in ("check", "subject", "status", "why", "remedy")}
        if finding
        else None
    )


def list_times(report: Report) -> list[str]:
    """Return the time of each stage: a line for each stage of this run that was not passed over, and their sum."""
    spent = [
        (stage.name, stage.seconds) for stage in report.stages if stage.seconds is not None and stage.state != "skipped"
    ]
    return [f"{name:<20} {seconds:9.1f} s" for name, seconds in (*spent, ("total", report.seconds))]


def closing(stage: StageReport) -> tuple[Finding, ...]:
    return stage.record.closing() if stage.record else ()


def label(judged: Judged) -> str:
    """Return the label of a finding: its status, or ``waived``."""
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
            note=f"Not run this time. What is left of run {record.run} (finished {record.finished}) is not counted.",
        )
    if record.closed_by:
        return StageReport(name, "skipped", record, f"Not run: the run stopped at stage {record.closed_by}.")
    return StageReport(name, record.gate, record)


def _format_green_verdict(stages: typing.Iterable[StageReport]) -> str:
    """Green for the gates; what waivers cover is proven by nobody, so a reader must see it before all else."""
    waived = sum(stage.counts["waived"] for stage in stages)
    return f"{GREEN}, {waived} WAIVED" if waived else GREEN


def _note_resumed_stage(stage: StageReport, resumes: typing.Sequence[Resume]) -> StageReport:
    """A stage that was not run again when the run went on says so."""
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
        f"Kept from {stage.record.finished}: the run went on at stage {last.stage} at {last.time}, and this stage was"
        " not run again."
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
    """Return whether the stage's check saw facts. In check mode some may not have been made yet."""
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
    return tuple(stage for stage in idle if matches(pattern, stage))


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
    return f"{text}, nothing is proven" if report.success else f"{text}, and {_first_obstacle(report)}"


def _first_obstacle(report: Report) -> str:
    """Return the first obstacle: the first closed gate, else the first stage without an answer."""
    for stage in report.stages:
        if stage.state == CLOSED:
            findings = closing(stage)
            if not findings:
                return f"stage {stage.name}: nothing was checked"
            names = [f"{status_count} {status}" for status, status_count in _count_statuses(findings).items()]
            first = next(filter(_is_behind, findings), findings[0])
            comma = ";" if first.check.startswith("validate.") else ""
            more = f"{comma} and {len(findings) - 1} more" if len(findings) > 1 else ""
            return f"stage {stage.name}: {', '.join(names)} ({_name_cause(first)}{more})"
    for stage in report.stages:
        if stage.state not in ("open", PENDING):
            without = [item.name for item in report.stages if item.state == stage.state]
            return f"{'stages' if len(without) > 1 else 'stage'} {', '.join(without)}: {_ABSENT[stage.state]}"
    return "no stage was run"


def _is_behind(finding: Finding) -> bool:
    """Return whether a finding is what is behind the others of its stage: a suspect, or an API server that gives no
    answer, which gives no nodes either."""
    return finding.check.endswith(".suspect") or (finding.check == "validate.api_server" and finding.status != SKIPPED)


#: characters of what a failed task said, or of a remedy, that are in the verdict
_MOST_OF_A_TASK = 400


def _name_cause(finding: Finding) -> str:
    """Return the finding as the verdict names it. What a failed task said is its cause, and so is why the API server
    did not answer or the inventory gave no nodes; the subjects of these say nothing. What stage validate finds has its
    remedy there as well: a new user has no report yet."""
    if finding.check.endswith(".error"):
        return f"{finding.check}: {short(finding.measured, _MOST_OF_A_TASK)}"
    if not finding.check.startswith("validate."):
        return f"{finding.check} on {finding.subject}"
    remedy = short(finding.remedy.rstrip("."), _MOST_OF_A_TASK)
    if finding.check in ("validate.api_server", "validate.nodes"):
        return f"{finding.check}: {short(finding.why.rstrip('.'), _MOST_OF_A_TASK)}. {remedy}"
    return f"{finding.check} on {finding.subject}{f': {remedy}' if remedy else ''}"


_ABSENT = {
    MISSING: "not run",
    STALE: "not run this time, only an older run's record is there",
    UNREADABLE: "the record can't be read",
    "skipped": "not run",
}


def _count_statuses(findings: typing.Iterable[Finding]) -> dict[str, int]:
    result: dict[str, int] = {}
    for finding in findings:
        result[finding.status] = result.get(finding.status, 0) + 1
    return result
