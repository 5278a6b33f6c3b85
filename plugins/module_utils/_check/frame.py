# SPDX-License-Identifier: GPL-3.0-or-later

"""The frame around the stages: may a stage start, and what does its check say. Pure; modules read and write the
records."""

from __future__ import annotations

import dataclasses
import re
import typing

from .._model.base.load import load, to_data
from .._model.base.load_error import LoadError
from .._model.intent.intent import Intent
from .._model.run.facts import FactCount, RunStart
from .._model.run.findings import FAIL, SKIPPED, STAGES, Finding, Waiver, judge
from .._model.run.records import CLOSED, OPEN, PENDING, Record
from .._parse.intent import IntentError, parse_intent
from .._parse.kubernetes.refusal import explain
from .blamed import collect_findings
from .mended import may_mend
from .stages import TABLE
from .validate import check as validate

#: the API server, by RBAC, and a module that names the file with the right
_DENIED = re.compile(r"forbidden: User |docs/rbac/")


@dataclasses.dataclass(frozen=True)
class RawIntent:
    """The user's variables, as they came. Not loaded yet: they may be wrong."""

    fabrics: typing.Any
    waivers: typing.Any = None
    cluster: typing.Any = None

    def intent(self) -> Intent:
        """:raises IntentError: they don't fit the schema"""
        return parse_intent(self.fabrics, self.waivers, self.cluster)

    def variables(self) -> dict[str, typing.Any]:
        """Return the variables by their names, in the order in which they are judged: which file each of them comes
        from is not known here."""
        return {"rdma_fabrics": self.fabrics, "rdma_waivers": self.waivers, "rdma_cluster": self.cluster}


@dataclasses.dataclass(frozen=True)
class StageContext:
    """The place and time at which a stage is judged.

    :ivar records: of this run only
    """

    stage: str
    run: str
    started: str
    finished: str
    check_mode: bool
    records: dict[str, Record]

    def waits_for(self) -> set[str]:
        """Return the earlier stages that, in check mode, would first have to make something."""
        return {
            record.stage
            for record in self.records.values()
            if self.check_mode and record.changes and _is_before(record.stage, self.stage)
        }


def collect_ground(start: RunStart) -> validate.Facts:
    """Return the facts by which the intent is judged where stage validate itself did not run."""
    return validate.Facts(
        start.nodes,
        start.variables,
        images=start.images,
        strict_images=start.strict_images,
        mistyped=start.mistyped,
        origins=start.origins,
        inventory_error=start.inventory_error,
        inventory_kind=start.inventory_kind,
        inventory_where=start.inventory_where,
    )


def may_start(context: StageContext, raw: RawIntent, facts: validate.Facts) -> typing.Optional[Record]:
    """Return None if the stage may start, else the record that explains why not.

    A stage that runs alone must not touch a host for an intent that is wrong, so the intent is judged here if
    ``validate`` did not do it in this run. Stage ``validate`` itself asks nobody while a variable is misspelt.
    """
    if context.stage == "validate":
        return judge_validate(context, raw, facts) if validate.misnamed(facts) else None
    closed = [
        stage
        for stage in STAGES
        if _is_before(stage, context.stage) and stage in context.records and context.records[stage].gate == CLOSED
    ]
    if closed:
        return _make_skipped_record(context, closed[0])
    if "validate" in context.records:
        return None
    record = judge_validate(context, raw, facts)
    return record if record.gate == CLOSED else None


def judge_stage(
    context: StageContext,
    raw: RawIntent,
    facts: typing.Any,
    changes: typing.Sequence[str] = (),
    counts: typing.Sequence[FactCount] = (),
) -> Record:
    """Run the stage's check over its facts and judge the findings.

    :param facts: plain data for the stage's ``Facts``
    :param changes: what the stage made, or would make in check mode
    :param counts: how many facts of each kind these are
    """
    facts_class, check = TABLE[context.stage]
    try:
        intent = raw.intent()
    except IntentError as error:
        return make_record(context, _report_refused(context.stage, error, raw, facts), ())
    try:
        loaded = load(facts_class, facts, f"{context.stage}_facts")
        findings = collect_findings(context.stage, lambda known: check(intent, known), loaded)
        if context.stage == "validate":
            findings = validate.sort_findings(findings, raw.variables(), loaded.origins)
    except LoadError as error:
        why = f"The role of the stage gathered facts that its check can't read: {error}."
        findings = (
            _report_error(
                context.stage,
                str(error),
                why,
                "This is a mistake in the collection, not in your cluster: please report it with this text.",
            ),
        )
    return make_record(context, findings, intent.waivers, changes, tuple(counts), to_data(intent))


def _report_refused(stage: str, error: IntentError, raw: RawIntent, facts: typing.Any) -> typing.Sequence[Finding]:
    """Return findings of a stage whose intent could not be loaded. That it means something is for validate alone to
    say."""
    if stage != "validate":
        return validate.refuse(error.problems, stage)
    try:
        seen = load(validate.Facts, facts, "validate_facts")
    except LoadError:
        return validate.refuse(error.problems, stage)
    return validate.sort_findings(
        validate.report_mistakes(error.problems, error.partial, seen), raw.variables(), seen.origins
    )


def judge_validate(context: StageContext, raw: RawIntent, facts: validate.Facts) -> Record:
    """Judge the intent on behalf of any stage; findings keep their ``validate.*`` ids."""
    try:
        intent = raw.intent()
    except IntentError as error:
        return make_record(
            context,
            validate.sort_findings(
                validate.report_mistakes(error.problems, error.partial, facts), raw.variables(), facts.origins
            ),
        )
    return make_record(
        context, validate.sort_findings(validate.check(intent, facts), raw.variables(), facts.origins), intent.waivers
    )


def judge_error(context: StageContext, raw: RawIntent, error: str) -> Record:
    """Return the record of a stage whose role failed.

    :param error: what failed, in one text: the task and its message
    """
    why = "A task of the stage failed, so nothing after it was looked at."
    if context.waits_for():
        why += " In check mode it may have missed what an earlier stage would make."
    remedy = "Read the text beside 'measured', correct its cause, and run the stage again."
    cause = explain(error)
    if cause is not None:
        # Helm, say, passes on what the API server said
        why, remedy = f"{cause.why} {why}", f"{cause.remedy} Then run the stage again."
    finding = _report_error(context.stage, error, why, remedy)
    try:
        waivers = raw.intent().waivers
    except IntentError:
        waivers = ()
    record = dataclasses.replace(make_record(context, (finding,), waivers), error=error)
    # no change of a run gives a right
    return dataclasses.replace(record, gate=CLOSED) if _DENIED.search(error) else record


def _make_skipped_record(context: StageContext, closed_by: str) -> Record:
    why = f"The gate of stage {closed_by} is closed: what it could not prove is what this stage builds on."
    finding = Finding(
        f"{context.stage}.run",
        f"stage {context.stage}",
        SKIPPED,
        "not run",
        "run",
        why,
        f"Correct what stage {closed_by} found, then run again.",
    )
    # no waiver may cover it: a stage that did not run has proven nothing
    return dataclasses.replace(make_record(context, (finding,), ()), closed_by=closed_by)


def make_record(
    context: StageContext,
    findings: typing.Sequence[Finding],
    waivers: typing.Sequence[Waiver] = (),
    changes: typing.Sequence[str] = (),
    facts: tuple[FactCount, ...] = (),
    intent: typing.Any = None,
) -> Record:
    """Return the findings of a stage, judged."""
    gate = judge(findings, waivers)
    state: typing.Literal["open", "closed", "pending"] = OPEN if gate.open else CLOSED
    changed = {*context.waits_for(), *([context.stage] if changes else ())} if context.check_mode else set()
    if not gate.open and changed and all(may_mend(finding, changed) for finding in gate.closing()):
        state = PENDING
    return Record(
        stage=context.stage,
        run=context.run,
        started=context.started,
        finished=context.finished,
        check_mode=context.check_mode,
        gate=state,
        judged=gate.judged,
        changes=tuple(changes),
        waivers=tuple(waivers),
        facts=facts,
        intent=intent,
    )


def _report_error(stage: str, measured: str, why: str, remedy: str) -> Finding:
    return Finding(f"{stage}.error", f"stage {stage}", FAIL, measured, "no task fails", why, remedy)


def _is_before(stage: str, other: str) -> bool:
    return STAGES.index(stage) < STAGES.index(other)
