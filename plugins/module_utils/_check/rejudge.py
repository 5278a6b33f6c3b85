# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a stored run again: compute its records from its facts, with the same intent or another one. The functions are
pure; _app/again.py reads the folder.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.base.errors import RdmaError
from .._model.run.facts import FactCount, RunStart
from .._model.run.findings import FAIL, SKIPPED, STAGES, Finding
from .._model.run.records import CLOSED, Record
from .frame import (
    RawIntent,
    StageContext,
    collect_validate_facts,
    judge_error,
    judge_stage,
    judge_validate,
    make_record,
    may_start,
)
from .sources import SOURCES, list_kinds
from .validate import check as validate

#: the first stage that makes something of the intent, and looks at it
MAKES = "network"

#: refused facts that an error names
_MOST_UNREAD = 5
#: why the facts of a stage that could not be read were refused
Refused = typing.Callable[[str], typing.Sequence[str]]
#: the data of a stage's Facts, and how many facts they are; raises RdmaError where they can't be read
Evidence = typing.Callable[[str], tuple[typing.Any, tuple[FactCount, ...]]]


def judge_again(
    start: RunStart,
    records: typing.Mapping[str, Record],
    wishes: RawIntent,
    evidence: Evidence,
    applied: bool = True,
    refused: Refused = lambda stage: (),
) -> dict[str, Record]:
    """Return new records of the stages, in their order, from the records and facts of a run.

    - A stage whose role failed keeps its error, since its facts are incomplete.
    - A stage that did not run stays so. If it could start now, its record states that it was not observed.
    - A stage without a record of this run gets none.
    - If the intent was not applied, as in check mode, the facts from stage network on belong to another intent. These
      stages get a record that they are not judged, with or without an earlier record.

    :param start: data with which the run started
    :param records: records of the run, by stage
    :param wishes: intent by which the run is judged
    :param evidence: function that returns the facts of a stage and their counts
    :param applied: whether the run could have applied the intent
    :param refused: function that returns the facts of a stage that exist and cannot be read, called after ``evidence``.
        With such facts a gate that would open becomes an error
    """
    again: dict[str, Record] = {}
    for stage in STAGES:
        old = records.get(stage)
        if not (applied or is_observation_only(stage)):
            again[stage] = _make_unapplied_record(
                StageContext(stage, start.run, start.started, start.started, True, dict(again)), start, wishes
            )
        elif old is not None and old.run == start.run:
            context = StageContext(
                stage, old.run, old.started, old.finished, old.check_mode or not applied, dict(again)
            )
            again[stage] = _rejudge_stage(context, start, old, wishes, evidence, refused)
    return again


def is_observation_only(stage: str) -> bool:
    """Return whether a stage comes before those that apply the intent.

    The facts of such a stage do not depend on the intent.

    :param stage: name of the stage
    """
    return STAGES.index(stage) < STAGES.index(MAKES)


def was_run(record: Record) -> bool:
    """Return whether a stage was observed. Stage ``validate`` needs no observation, so the result is True for it.

    The record of any other stage has neither an error nor an intent if the stage was prevented from running.
    """
    return record.stage == "validate" or record.error is not None or record.intent is not None


def _rejudge_stage(
    context: StageContext, start: RunStart, old: Record, wishes: RawIntent, evidence: Evidence, refused: Refused
) -> Record:
    ground = collect_validate_facts(start)
    if not was_run(old):
        return may_start(context, wishes, ground) or _not_run(context, old)
    wrong = _find_intent_refusal(context, wishes, ground)
    if wrong is not None:
        return wrong
    if old.error is not None:
        return judge_error(context, wishes, old.error)
    try:
        facts, counts = evidence(context.stage)
    except RdmaError as error:
        return _judge_unread(context, wishes, str(error))
    lost = _format_lost_kinds(old.facts, counts)
    if lost:
        had = f"{lost} of the cluster no longer exists in the folder, but the run was judged with it"
        return _judge_unread(context, wishes, had)
    # what a run has made is there; it would not be made again
    changes = old.changes if old.check_mode or not context.check_mode else ()
    record = judge_stage(context, wishes, facts, changes, counts)
    unread = [*refused(context.stage), *_describe_missing_facts(context.stage, old.facts, counts)]
    if unread and record.gate != CLOSED:
        return _judge_unread(context, wishes, "; ".join(unread[:_MOST_UNREAD]))
    return record


def _judge_unread(context: StageContext, wishes: RawIntent, error: str) -> Record:
    """Return the record of a stage that is not judged again, because facts of the run are missing or unreadable.

    :param context: the stage that is judged
    :param wishes: intent by which the run is judged
    :param error: facts that are missing or unreadable
    """
    why = (
        "Files with facts of the run were removed or changed after the stage ran, or they cannot be read. Without these"
        " facts, the result could be better than that of the run, so the stage was not judged again."
    )
    remedy = (
        "Restore the subfolder facts of the folder of the run, for example from its archive, and run ansible-playbook"
        f" linerate.rdma.judge -e rdma_report_dir=FOLDER again. Or run stage {context.stage} again, which collects the"
        " facts anew."
    )
    measured, expected = f"Read the facts of the run: {error}", "the facts by which the run was judged"
    finding = Finding(f"{context.stage}.error", f"stage {context.stage}", FAIL, measured, expected, why, remedy)
    return judge_error(context, wishes, measured, finding)


def _find_intent_refusal(context: StageContext, wishes: RawIntent, ground: validate.Facts) -> typing.Optional[Record]:
    """Return the record that explains why a stage must not be judged by an invalid intent; None if the intent is valid.
    The check of a stage may rely on a valid intent.

    :param context: the stage that is judged
    :param wishes: intent by which the run is judged
    :param ground: facts of stage validate from the start of the run
    """
    if context.stage == "validate":
        return None
    if "validate" in context.records:
        return may_start(
            dataclasses.replace(context, records={"validate": context.records["validate"]}), wishes, ground
        )
    record = judge_validate(context, wishes, ground)
    return record if record.gate == CLOSED else None


def _make_unapplied_record(context: StageContext, start: RunStart, wishes: RawIntent) -> Record:
    """Return the record that a stage is not judged: it observes the results of an intent that was not applied yet.

    :param context: the stage that is judged
    :param start: data with which the run started
    :param wishes: intent by which the run is judged
    """
    refused = may_start(context, wishes, collect_validate_facts(start))
    if refused is not None:
        return refused
    why = (
        "The intent was not applied when the run collected its data, so the results of this stage do not apply to the"
        " intent."
    )
    remedy = "Apply the intent: ansible-playbook linerate.rdma.site. To list the changes first, add --check."
    finding = Finding(
        f"{context.stage}.run", f"stage {context.stage}", SKIPPED, "not checked", "applied intent", why, remedy
    )
    changes = (
        (
            (
                "all objects that stage network creates from the intent; ansible-playbook linerate.rdma.site"
                " --check lists them"
            ),
        )
        if context.stage == MAKES
        else ()
    )
    return make_record(context, (finding,), changes=changes)


def _not_run(context: StageContext, old: Record) -> Record:
    by = f"findings of stage {old.closed_by}" if old.closed_by else "errors in the intent"
    why = (
        f"In the run, {by} prevented this stage from starting. With the current intent and waivers the stage could"
        " start, but the run collected no data for it."
    )
    remedy = "Run the stage again with the current intent and the current waivers."
    finding = Finding(f"{context.stage}.run", f"stage {context.stage}", SKIPPED, "not run", "run", why, remedy)
    # no waiver may cover it: a stage that did not run has proven nothing
    return make_record(context, (finding,))


def _format_lost_kinds(before: typing.Iterable[FactCount], now: typing.Iterable[FactCount]) -> str:
    """Return, as text, the kinds of cluster facts by which the run was judged and which can no longer be read.

    The text is empty if all of them can be read.

    :param before: counts of facts when the run was judged
    :param now: counts of facts in the folder now
    """
    gone = {count.kind for count in now if (count.seen, count.missing) == (0, 1)}
    return ", ".join(count.kind for count in before if count.kind in gone and (count.seen, count.missing) == (1, 0))


def _describe_missing_facts(
    stage: str, before: typing.Iterable[FactCount], now: typing.Iterable[FactCount]
) -> list[str]:
    """Return one text for each kind of fact of which fewer can be read now than when the run was judged. Kinds that
    this version of the collection does not know are ignored.

    :param stage: name of the stage
    :param before: counts of facts when the run was judged
    :param now: counts of facts in the folder now
    """
    known, counts = list_kinds(SOURCES[stage].values()), {count.kind: count for count in now}
    found = []
    for count in before:
        left = counts.get(count.kind, FactCount(count.kind, 0, 0))
        if (count.kind in counts or count.kind in known) and (
            left.seen < count.seen or left.seen + left.missing < count.seen + count.missing
        ):
            had, has = (f"{one.seen} readable and {one.missing} unreadable facts" for one in (count, left))
            found.append(f"folder facts/{count.kind} has {has}, but had {had} when the run was judged")
    return found
