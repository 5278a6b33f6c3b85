# SPDX-License-Identifier: GPL-3.0-or-later

"""Functions common to all stages: decide whether a stage may start, and judge its findings. The functions are pure;
modules read and write the records.
"""

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
from .mended import is_left_unmeasured, may_resolve
from .stages import TABLE
from .validate import check as validate

#: the API server, by RBAC, and a module that names the file with the right
_DENIED = re.compile(r"forbidden: User |docs/rbac/")


@dataclasses.dataclass(frozen=True)
class RawIntent:
    """The three variables of the intent as the user gave them. They are not loaded yet and may be invalid.

    :ivar fabrics: value of ``rdma_fabrics``
    :ivar waivers: value of ``rdma_waivers``
    :ivar cluster: value of ``rdma_cluster``
    """

    fabrics: typing.Any
    waivers: typing.Any = None
    cluster: typing.Any = None

    def intent(self) -> Intent:
        """Return the intent, loaded from the values that the user wrote.

        :raises IntentError: a value is not what the schema of the intent allows
        """
        return parse_intent(self.fabrics, self.waivers, self.cluster)

    def variables(self) -> dict[str, typing.Any]:
        """Return the value of each variable by its name, in the order in which stage validate sorts its findings."""
        return {"rdma_fabrics": self.fabrics, "rdma_waivers": self.waivers, "rdma_cluster": self.cluster}


@dataclasses.dataclass(frozen=True)
class StageContext:
    """The stage that is judged, with its run and the records of earlier stages.

    :ivar stage: name of the stage
    :ivar run: identity of the run
    :ivar started: start of the stage, UTC, ISO 8601
    :ivar finished: end of the stage, UTC, ISO 8601
    :ivar check_mode: whether ansible-playbook runs with --check
    :ivar records: records by stage; only those of this run
    """

    stage: str
    run: str
    started: str
    finished: str
    check_mode: bool
    records: dict[str, Record]

    def waits_for(self) -> set[str]:
        """Return the earlier stages that would change something, if the run is in check mode.

        This stage then observes a state without these changes. Return an empty set outside of check mode.
        """
        return {
            record.stage
            for record in self.records.values()
            if self.check_mode and record.changes and _is_before(record.stage, self.stage)
        }


def collect_validate_facts(start: RunStart) -> validate.Facts:
    """Return the facts of stage validate that the start of a run stores. They suffice to validate the intent for a
    stage that runs alone, without an inventory, cluster or controller.

    :param start: data with which the run started
    """
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
    """Return None if the stage may start, else the record that explains why it may not.

    A stage does not start if the gate of an earlier stage is closed. A stage that runs alone must not change a host for
    an invalid intent, so the intent is validated here if stage ``validate`` did not run. Stage ``validate`` itself does
    not start if a variable name is misspelled or a variable has an invalid value.

    :param context: the stage that is judged
    :param raw: values of the public variables (rdma_fabrics, ...), as the user wrote them
    :param facts: facts of stage validate
    """
    if context.stage == "validate":
        return judge_validate(context, raw, facts) if validate.has_invalid_variables(facts) else None
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
    """Run the check of a stage on its facts, judge the findings by the waivers, and return the record of the stage.

    :param context: name, run, times and check mode of the stage
    :param raw: values of the public variables (rdma_fabrics, ...), as the user wrote them
    :param facts: plain data from which the stage's class ``Facts`` is loaded
    :param changes: changes that the stage made, or would make in check mode, one text each
    :param counts: number of facts that were read and that are missing, one item for each kind of fact
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
        findings = (
            Finding(
                f"{context.stage}.error",
                f"stage {context.stage}",
                FAIL,
                f"{error.path}: {error.seen}",
                error.expected,
                "The role of the stage collected data in a form that the check of the stage cannot read.",
                "This is a defect of linerate.rdma, not of your cluster. Report it with this text.",
            ),
        )
    return make_record(context, findings, intent.waivers, changes, tuple(counts), to_data(intent))


def _report_refused(stage: str, error: IntentError, raw: RawIntent, facts: typing.Any) -> typing.Sequence[Finding]:
    """Return the findings of a stage whose intent could not be loaded. Stage validate also judges those parts of the
    intent that could be loaded; other stages report only the errors.

    :param stage: name of the stage
    :param error: why the intent could not be loaded
    :param raw: values of the public variables (rdma_fabrics, ...), as the user wrote them
    :param facts: plain data of the facts of the stage
    """
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
    """Validate the intent in place of the stage that is about to start, and return the record of that stage.

    The findings keep their ``validate.*`` ids.

    :param context: the stage that the record is for
    :param raw: values of the public variables (rdma_fabrics, ...), as the user wrote them
    :param facts: facts of stage validate
    """
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


def judge_error(context: StageContext, raw: RawIntent, error: str, known: typing.Optional[Finding] = None) -> Record:
    """Return the record of a stage whose role failed in a task.

    In check mode the gate may be pending, since a change of an earlier stage may resolve the failure. If the API server
    denied access, the gate is closed in any case.

    :param context: the stage that is judged
    :param raw: values of the public variables (rdma_fabrics, ...), as the user wrote them
    :param error: name of the failed task and its message, as one text
    :param known: finding on the error; None if a task failed
    """
    why = "A task of the stage failed, so the rest of the stage was not checked."
    if context.waits_for():
        why += " In check mode, the task may have required changes that an earlier stage would make."
    remedy = f"Correct the cause of the error under 'measured', then run stage {context.stage} again."
    cause = explain(error)
    if cause is not None:
        # Helm, say, passes on what the API server said
        why, remedy = f"{cause.why} {why}", f"{cause.remedy} Then run stage {context.stage} again."
    finding = known or _report_error(context.stage, error, why, remedy)
    try:
        waivers = raw.intent().waivers
    except IntentError:
        waivers = ()
    record = dataclasses.replace(make_record(context, (finding,), waivers), error=error)
    # no change of a run gives a right
    return dataclasses.replace(record, gate=CLOSED) if _DENIED.search(error) else record


def _make_skipped_record(context: StageContext, closed_by: str) -> Record:
    why = (
        f"Stage {closed_by} has findings that stop the run. This stage depends on the results of stage {closed_by},"
        f" which"
        " could not be verified."
    )
    finding = Finding(
        f"{context.stage}.run",
        f"stage {context.stage}",
        SKIPPED,
        "not run",
        "run",
        why,
        (
            f"Follow the remedies of the findings of stage {closed_by}, then run stages {closed_by} and"
            f" {context.stage} again."
        ),
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
    """Judge the findings of a stage, and return its record. In check mode a closed gate becomes pending if changes that
    the run would make, or its measurements, can resolve all findings that close it.

    :param context: the stage that is judged
    :param findings: findings of the stage
    :param waivers: waivers of the intent
    :param changes: changes that the stage made, or would make in check mode
    :param facts: number of facts that were read and that are missing, one item for each kind of fact
    :param intent: the loaded intent, which the record stores; None if it could not be loaded
    """
    gate = judge(findings, waivers)
    state: typing.Literal["open", "closed", "pending"] = OPEN if gate.open else CLOSED
    changed = {*context.waits_for(), *([context.stage] if changes else ())}
    closing = tuple(gate.closing())
    resolvable = all(is_left_unmeasured(finding) or may_resolve(finding, changed, changes) for finding in closing)
    if context.check_mode and closing and resolvable:
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
    return Finding(f"{stage}.error", f"stage {stage}", FAIL, measured, "no failed task", why, remedy)


def _is_before(stage: str, other: str) -> bool:
    return STAGES.index(stage) < STAGES.index(other)
