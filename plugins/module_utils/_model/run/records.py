# SPDX-License-Identifier: GPL-3.0-or-later

"""Records: the result of each stage of a run. Later stages and the report read them."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import typing

from ..base.escape import escape_lines as indented
from ..base.load import to_data
from ..base.phrases import count_of
from ..base.text import cut_plain
from .facts import FactCount
from .findings import FAIL, PASS, SKIPPED, STAGES, UNKNOWN, WARN, Finding, Gate, Judged, Waiver

OPEN: typing.Final = "open"
CLOSED: typing.Final = "closed"
#: check mode only: what this stage looks at would first have to be made, so its findings neither open nor close the
#: gate
PENDING: typing.Final = "pending"
#: what a reader is told in place of the state of a gate
OUTCOMES = {OPEN: "passed", CLOSED: "stopped here", PENDING: "decided by a run without --check"}
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

#: check, status and waiver of a finding
_Kind = tuple[str, str, typing.Optional[Waiver]]


@dataclasses.dataclass(frozen=True)
class Record:
    """The result of one stage of one run.

    :ivar stage: name of the stage
    :ivar run: identity of the run; a record of another run is never used
    :ivar started: start of the stage in UTC, in the format of ISO 8601
    :ivar finished: end of the stage in UTC, in the format of ISO 8601
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar gate: whether later stages may run: open, closed, or pending if that is not decided yet
    :ivar judged: findings of the stage, each with the waiver that covers it
    :ivar changes: changes that the stage made, or would make in check mode; one line of text each
    :ivar waivers: all waivers of the intent, including unused ones
    :ivar facts: number of the facts of each kind on which the findings are based; the facts themselves are in the
        folder of the report
    :ivar closed_by: earlier stage whose closed gate prevented this stage; None if no gate prevented it
    :ivar intent: intent on which the findings are based, as plain data; None if it could not be read, or the stage did
        not run
    :ivar error: failure of the stage's role; None if the role did not fail
    :ivar schema: version of the format of this file
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
        """Return whether the stage did nothing because the intent does not request it."""
        return (
            tuple(item.finding.check for item in self.judged) in [(name,) for name in _UNASKED_BY]
            and self.judged[0].finding.status == PASS
        )

    def closing(self) -> tuple[Finding, ...]:
        return Gate(self.gate == OPEN, self.judged).closing()


def compute_duration(record: Record) -> typing.Optional[float]:
    """Return the duration of the stage in seconds, or None if a time is missing or invalid. It is never negative, even
    if the clock was set back meanwhile.
    """
    try:
        span = datetime.datetime.fromisoformat(record.finished) - datetime.datetime.fromisoformat(record.started)
    except (TypeError, ValueError):
        return None
    return max(0.0, span.total_seconds())


def find_contradiction(record: Record) -> str:
    """Return a contradiction in a record as a sentence, or an empty text if it is consistent. Files may have been
    edited or assembled by hand.
    """
    may_be_open = bool(record.judged) and not any(item.closes for item in record.judged)
    return "" if (record.gate == OPEN) == may_be_open else f"its gate is {record.gate}, which contradicts its findings"


def limit_findings(judged: typing.Sequence[Judged], most: int) -> tuple[Judged, ...]:
    """Return the findings if there are at most ``most``. Otherwise return the first findings of each check, status and
    waiver, and one finding in place of all remaining ones with the same check, status and waiver. So a gate that the
    findings close stays closed.

    The result has more than ``most`` findings only if there are more combinations of check, status and waiver.

    :param judged: findings of a stage
    :param most: number of findings above which the result is shortened
    """
    if len(judged) <= most:
        return tuple(judged)
    numbers = collections.Counter(map(_get_kind, judged))
    left, kept = most, {}
    for place, (kind, number) in enumerate(sorted(numbers.items(), key=lambda item: item[1])):
        kept[kind] = max(1, min(number, left // (len(numbers) - place)))
        left -= kept[kind]
    result: list[Judged] = []
    seen: collections.Counter[_Kind] = collections.Counter()
    for item in judged:
        kind = _get_kind(item)
        seen[kind] += 1
        rest = numbers[kind] - kept[kind]
        if seen[kind] < kept[kind] or not rest:
            result.append(item)
        elif seen[kind] == kept[kind]:
            result.append(dataclasses.replace(item, finding=_count_rest(item.finding, rest + 1)))
    return tuple(result)


def _get_kind(item: Judged) -> _Kind:
    return item.finding.check, item.finding.status, item.waiver


def _count_rest(first: Finding, number: int) -> Finding:
    """Return one finding that represents several findings with the same check and status, and has their number as its
    subject.

    :param first: first finding that is represented
    :param number: number of the findings that it represents
    """
    why = (
        f"There are {number} more findings of this check with this status than the record has room for. The first of"
        f" them is on {first.subject}: {first.why or 'it passed'}"
    )
    remedy = f"{first.remedy or 'Nothing is to be done.'} Then run the stage again, to see the others."
    return dataclasses.replace(first, subject=f"{number} more", why=why, remedy=remedy)


def count_findings(judged: typing.Iterable[Judged]) -> dict[str, int]:
    """Return the number of findings by status. A finding that a waiver covers is counted under ``waived`` instead of
    its status.

    :param judged: findings of a stage
    """
    result = {PASS: 0, FAIL: 0, UNKNOWN: 0, SKIPPED: 0, "warn": 0, "waived": 0}
    for item in judged:
        result["waived" if item.waiver else item.finding.status] += 1
    return result


def count_passes(judged: typing.Iterable[Judged]) -> dict[str, int]:
    """Return the number of passed findings of each check, in the order of the checks."""
    return dict(collections.Counter(item.finding.check for item in judged if item.finding.status == PASS))


def describe_record(record: Record) -> list[str]:
    """Return the result of a stage as lines for a terminal: a line of counts, the changes, then the findings that are
    not a pass.

    Findings with the same cause are combined. If warnings have more than ``MOST_WARNINGS`` causes, they are summarized
    in one line, since they do not close the gate. So are the findings of a stage in check mode whose changes may
    resolve them, because their remedies apply only if they remain after the changes. An error of a stage is shown.
    """
    parts = [
        f"{number} {name}" for name, number in count_findings(record.judged).items() if number and not record.is_unasked
    ]
    mode = " (check mode)" if record.check_mode else ""
    lines = [f"{record.stage}: {', '.join(parts) or 'nothing was checked'} - {describe_outcome(record)}{mode}"]
    lines += [f"{'would be' if record.check_mode else 'changed'}: {change}" for change in record.changes[:MOST_CHANGES]]
    if len(record.changes) > MOST_CHANGES:
        lines.append(f"and {len(record.changes) - MOST_CHANGES} more changes, which the record lists in full")
    causes = _group_alike_findings(record.judged)
    if record.gate == PENDING:
        waiting = [alike for alike in causes if _is_waiting(alike[0])]
        causes = [alike for alike in causes if alike not in waiting]
        lines += [_summarize_pending_findings(waiting, record.stage)] if waiting else []
    warned = [alike for alike in causes if _is_unwaived_warning(alike)]
    for alike in (
        causes if len(warned) <= MOST_WARNINGS else [alike for alike in causes if not _is_unwaived_warning(alike)]
    ):
        for same in [alike] if len(alike) > MOST_ALIKE else [[item] for item in alike]:
            lines += _describe_findings(same)
    if len(warned) > MOST_WARNINGS:
        lines.append(_summarize_warnings(warned, record.stage))
    return [indented(cut_plain(line)) for line in lines]


def describe_outcome(record: Record) -> str:
    """Return the outcome of a record in words for the user, such as that the stage did not run. The record may also
    belong to a check that is not one of STAGES.
    """
    if record.closed_by:
        return NOT_RUN
    if record.is_unasked:
        return UNASKED
    if record.gate == CLOSED and record.stage not in STAGES:
        return NOT_PASSED
    return OUTCOMES[record.gate]


def passed_over(stage: str, number: int) -> str:
    """Return a line for the terminal that reports how many stages did not run, and at which stage the run stopped.

    :param stage: stage whose closed gate stopped the run
    :param number: number of later stages that did not run
    """
    return f"{number} stage{'' if number == 1 else 's'} {NOT_RUN}: the run stopped at stage {stage}"


def _group_alike_findings(judged: typing.Iterable[Judged]) -> list[list[Judged]]:
    """Return the findings that did not pass in groups. All findings of a group have the same check, status, waiver,
    reason and remedy, and differ only in subject and value.
    """
    found: dict[tuple[typing.Optional[Waiver], str, str, str, str], list[Judged]] = {}
    for item in judged:
        finding = item.finding
        if finding.status != PASS:
            found.setdefault((item.waiver, finding.status, finding.check, finding.why, finding.remedy), []).append(item)
    return list(found.values())


def _is_unwaived_warning(alike: typing.Sequence[Judged]) -> bool:
    return alike[0].finding.status == WARN and alike[0].waiver is None


def _is_waiting(item: Judged) -> bool:
    """Return whether a finding of a pending stage may be summarized, because the changes of a run may resolve it.
    Warnings and waived findings are not summarized. Neither is the error of a failed stage: its text is the only trace
    of what the stage could not plan.
    """
    finding = item.finding
    return item.waiver is None and finding.status != WARN and not finding.check.endswith(".error")


def _summarize_warnings(warned: typing.Sequence[typing.Sequence[Judged]], stage: str) -> str:
    """Return one line with the number of warnings of each check, and the files that list them in full.

    :param warned: groups of warnings with the same cause
    :param stage: stage that the warnings belong to
    """
    return (
        f"[{WARN}] {_count_each_check(warned, 'warning')}: the report and stages/{stage}.jsonl beside it list"
        " them in full"
    )


def _summarize_pending_findings(waiting: typing.Sequence[typing.Sequence[Judged]], stage: str) -> str:
    """Return one line with the number of findings of each check that the changes of a run may resolve, and the files
    that list them in full.

    :param waiting: groups of findings with the same cause
    :param stage: stage that the findings belong to
    """
    return (
        f"[{PENDING}] {_count_each_check(waiting, 'finding')}: a run without --check decides them; the report"
        f" and stages/{stage}.jsonl beside it list them in full"
    )


def _count_each_check(causes: typing.Sequence[typing.Sequence[Judged]], noun: str) -> str:
    """Return the number of findings, and in brackets that of each check, such as ``3 warnings (1 tuning.cpu, 2
    tuning.rows)``.

    :param causes: groups of findings with the same cause
    :param noun: word for one finding
    """
    numbers: dict[str, int] = {}
    for alike in causes:
        numbers[alike[0].finding.check] = numbers.get(alike[0].finding.check, 0) + len(alike)
    of_each = ", ".join(f"{number} {check}" for check, number in numbers.items())
    return f"{count_of(sum(numbers.values()), noun)} ({of_each})"


def _describe_findings(same: typing.Sequence[Judged]) -> typing.Iterator[str]:
    finding, waiver = same[0].finding, same[0].waiver
    subjects = ", ".join(item.finding.subject for item in same[:MOST_ALIKE])
    more = f" and {len(same) - MOST_ALIKE} more, which the record lists in full" if len(same) > MOST_ALIKE else ""
    yield f"[{f'waived {finding.status}' if waiver else finding.status}] {finding.check} on {subjects}{more}"
    if finding.measured or finding.expected:
        which = f" ({finding.subject})" if len(same) > 1 else ""
        yield f"    measured {finding.measured or '-'}{which}; expected {finding.expected or '-'}"
    yield f"    why: {finding.why}"
    yield f"    waiver: {waiver.reason}" if waiver else f"    do: {finding.remedy}"


def make_record_data(record: Record) -> dict[str, typing.Any]:
    """Return the record as JSON data. ``load(Record, data)`` converts it back."""
    return {str(key): value for key, value in to_data(record).items()}
