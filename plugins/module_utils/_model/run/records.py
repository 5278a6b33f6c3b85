# SPDX-License-Identifier: GPL-3.0-or-later

"""Records: what a stage of a run left behind for the stages after it, and for the report."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import typing

from ..base.escape import lines as indented
from ..base.load import to_data
from ..base.text import plain
from .facts import FactCount
from .findings import FAIL, PASS, SKIPPED, STAGES, UNKNOWN, WARN, Finding, Gate, Judged, Waiver

OPEN: typing.Final = "open"
CLOSED: typing.Final = "closed"
#: check mode only: what this stage looks at would first have to be made, so its findings neither open nor close the
#: gate
PENDING: typing.Final = "pending"
#: what a reader is told in place of the state of a gate
OUTCOMES = {OPEN: "passed", CLOSED: "stopped here", PENDING: "waits for what would be made"}
#: of a stage behind one that stopped, and of what is judged beside the stages
NOT_RUN, NOT_PASSED = "not run", "not passed"
#: of a stage that the intent does not ask for: its gate is open, and it has proven nothing
UNASKED = "not asked for"
#: the one finding of such a stage, which passes
_UNASKED_BY = ("collectives.wanted",)

#: goes up when a field of Record changes its meaning
RECORD_SCHEMA = 2
#: lines of changes on a terminal
MOST_CHANGES = 100
#: findings with one cause that a terminal shows one by one; of more, it names the first of these
MOST_ALIKE = 3
#: causes of warnings that a terminal shows; more of them are counted
MOST_WARNINGS = 3


@dataclasses.dataclass(frozen=True)
class Record:
    """One stage of one run.

    :ivar stage: name out of STAGES
    :ivar run: identity of the run; a record of another run is never counted
    :ivar started: UTC, ISO 8601
    :ivar finished: UTC, ISO 8601
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar gate: open, closed or pending
    :ivar judged: findings with the waivers that cover them
    :ivar changes: what the stage made, in check mode what it would make; one line of text each
    :ivar waivers: all waivers of the intent, also those that nothing needed
    :ivar facts: by how many facts of each kind it was judged; they lie in the folder of the report
    :ivar closed_by: the earlier stage whose gate was closed, for a stage that did not run
    :ivar intent: the intent that the stage was judged by, as plain data; None when it could not be read, or the stage
        did not run
    :ivar error: what failed, when the role of the stage failed
    """

    stage: str
    run: str
    started: str
    finished: str
    check_mode: bool
    gate: typing.Literal["open", "closed", "pending"]
    judged: tuple[Judged, ...]
    changes: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    facts: tuple[FactCount, ...] = ()
    closed_by: typing.Optional[str] = None
    intent: typing.Any = None
    error: typing.Optional[str] = None
    schema: int = RECORD_SCHEMA

    @property
    def is_unasked(self) -> bool:
        """Return whether the intent asks for nothing of the stage."""
        return (
            tuple(item.finding.check for item in self.judged) in [(name,) for name in _UNASKED_BY]
            and self.judged[0].finding.status == PASS
        )

    def closing(self) -> tuple[Finding, ...]:
        return Gate(self.gate == OPEN, self.judged).closing()


def compute_duration(record: Record) -> typing.Optional[float]:
    """Return the seconds from its start to its end; None where it does not say. Never negative: a clock may be set back
    in between."""
    try:
        span = datetime.datetime.fromisoformat(record.finished) - datetime.datetime.fromisoformat(record.started)
    except (TypeError, ValueError):
        return None
    return max(0.0, span.total_seconds())


def contradiction(record: Record) -> str:
    """Return a contradiction in a record, in one sentence; empty when it holds together. Files get edited, and put
    together by hand."""
    may_be_open = bool(record.judged) and not any(item.closes for item in record.judged)
    return "" if (record.gate == OPEN) == may_be_open else f"its gate says {record.gate}, and its findings do not"


def count_findings(judged: typing.Iterable[Judged]) -> dict[str, int]:
    """Count the findings of each status; what a waiver covers is counted as ``waived`` and nowhere else."""
    result = {PASS: 0, FAIL: 0, UNKNOWN: 0, SKIPPED: 0, "warn": 0, "waived": 0}
    for item in judged:
        result["waived" if item.waiver else item.finding.status] += 1
    return result


def count_passes(judged: typing.Iterable[Judged]) -> dict[str, int]:
    """Count the findings of each check that pass, in the order of the checks."""
    return dict(collections.Counter(item.finding.check for item in judged if item.finding.status == PASS))


def describe(record: Record) -> list[str]:
    """Return the judgement over a stage, as lines for a terminal: one line of counts, what was changed or would be,
    then what is not a pass.

    A cause that many have is said once. Warnings of more than ``MOST_WARNINGS`` causes are one line: they close no
    gate.
    """
    parts = [
        f"{number} {name}" for name, number in count_findings(record.judged).items() if number and not record.is_unasked
    ]
    mode = " (check mode)" if record.check_mode else ""
    lines = [f"{record.stage}: {', '.join(parts) or 'nothing was checked'} - {outcome(record)}{mode}"]
    lines += [f"{'would be' if record.check_mode else 'changed'}: {change}" for change in record.changes[:MOST_CHANGES]]
    if len(record.changes) > MOST_CHANGES:
        lines.append(f"and {len(record.changes) - MOST_CHANGES} more changes, all of which are in the record")
    causes = _group_alike_findings(record.judged)
    warned = [alike for alike in causes if _is_unwaived_warning(alike)]
    for alike in (
        causes if len(warned) <= MOST_WARNINGS else [alike for alike in causes if not _is_unwaived_warning(alike)]
    ):
        for same in [alike] if len(alike) > MOST_ALIKE else [[item] for item in alike]:
            lines += _describe_findings(same)
    if len(warned) > MOST_WARNINGS:
        lines.append(_summarize_warnings(warned, record.stage))
    return [indented(plain(line)) for line in lines]


def outcome(record: Record) -> str:
    """Return what came of a stage, or of what was judged beside the stages, as a reader is told it."""
    if record.closed_by:
        return NOT_RUN
    if record.is_unasked:
        return UNASKED
    if record.gate == CLOSED and record.stage not in STAGES:
        return NOT_PASSED
    return OUTCOMES[record.gate]


def passed_over(stage: str, number: int) -> str:
    """Say that stages were not run, in one line.

    :param stage: whose gate is closed
    :param number: of the stages after it
    """
    return f"{number} stage{'' if number == 1 else 's'} {NOT_RUN}: the run stopped at stage {stage}"


def _group_alike_findings(judged: typing.Iterable[Judged]) -> list[list[Judged]]:
    """Group the findings that did not pass: those together that differ only in subject and value."""
    found: dict[tuple[typing.Optional[Waiver], str, str, str, str], list[Judged]] = {}
    for item in judged:
        finding = item.finding
        if finding.status != PASS:
            found.setdefault((item.waiver, finding.status, finding.check, finding.why, finding.remedy), []).append(item)
    return list(found.values())


def _is_unwaived_warning(alike: typing.Sequence[Judged]) -> bool:
    return alike[0].finding.status == WARN and alike[0].waiver is None


def _summarize_warnings(warned: typing.Sequence[typing.Sequence[Judged]], stage: str) -> str:
    """Warnings by check, and where they are in full."""
    numbers: dict[str, int] = {}
    for alike in warned:
        numbers[alike[0].finding.check] = numbers.get(alike[0].finding.check, 0) + len(alike)
    of_each = ", ".join(f"{number} {check}" for check, number in numbers.items())
    return (
        f"[{WARN}] {sum(numbers.values())} warnings ({of_each}): the report has them in full, and so has"
        f" stages/{stage}.jsonl beside it"
    )


def _describe_findings(same: typing.Sequence[Judged]) -> typing.Iterator[str]:
    finding, waiver = same[0].finding, same[0].waiver
    subjects = ", ".join(item.finding.subject for item in same[:MOST_ALIKE])
    more = f" and {len(same) - MOST_ALIKE} more, all of which are in the record" if len(same) > MOST_ALIKE else ""
    yield f"[{f'waived {finding.status}' if waiver else finding.status}] {finding.check} on {subjects}{more}"
    if finding.measured or finding.expected:
        which = f" ({finding.subject})" if len(same) > 1 else ""
        yield f"    measured {finding.measured or '-'}{which}; expected {finding.expected or '-'}"
    yield f"    why: {finding.why}"
    yield f"    waiver: {waiver.reason}" if waiver else f"    do: {finding.remedy}"


def make_record_data(record: Record) -> dict[str, typing.Any]:
    """Return the record as JSON can hold it; ``load(Record, data)`` takes it back."""
    return {str(key): value for key, value in to_data(record).items()}
