# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that frame each stage: begin a run, decide whether a stage may start, and judge it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import secrets
import statistics
import typing

from .._check.frame import RawIntent, StageContext, collect_validate_facts, judge_error, judge_stage, may_start
from .._check.resume import (
    COLLECTION,
    REBOOTS,
    Invocation,
    ResumeError,
    check_age,
    check_boots,
    check_facts,
    check_run,
    check_stage,
    explain_unproven_cluster,
    list_kept_kinds,
    list_seen_kinds,
    list_stages_before,
)
from .._check.sources import observes_again, observes_nodes
from .._model.base.tags import is_selected
from .._model.base.version import COLLECTION_VERSION
from .._model.run.fact_kinds import list_kinds_for_observers, list_sources
from .._model.run.facts import CLUSTER, Fact, Resume, RunStart
from .._model.run.findings import STAGES
from .._model.run.records import (
    CLOSED,
    OPEN,
    OUTCOMES,
    Record,
    compute_duration,
    describe_outcome,
    describe_record,
    passed_over,
)
from .._report.content.verdict import build_report, make_stats
from .._report.formats.approval import plan_text
from .._store.fact_file import format_now
from .._store.facts import FactFolder
from .._store.files import FileError
from .._store.history import find_folder, list_kept
from .._store.records import read_head, read_heads, read_records, remove_record, write_record
from .._store.run_start import read_start
from .folder import list_changes, list_rolled_nodes_to_read, list_unread_kinds, read_facts
from .same_cluster import read_run_uid

#: options of both modules of the frame; their documentation is the fragment linerate.rdma._options.frame
FRAME_SPEC: dict[str, typing.Any] = {
    "stage": {"type": "str", "required": True, "choices": list(STAGES)},
    "run": {"type": "str"},
    # raw: the intent's own loader names the path of what is wrong; Ansible's conversion would hide it
    "fabrics": {"type": "raw"},
    "waivers": {"type": "raw"},
    "cluster": {"type": "raw"},
    "report_dir": {"type": "path", "required": True},
}
#: lines of a judgement on a terminal; the record has all
MOST_LINES = 400
#: the verdict over a stage that has no report after it and passed. Only a run of all stages is ever green
STAGE_PASSED = "PASSED"

Data = dict[str, typing.Any]


def new_run() -> str:
    """Return an ID for a new run. IDs sort by time, and two runs that begin in the same second get different IDs."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def records_dir(report_dir: str) -> str:
    """Return the path of the folder with the records of the stages: ``stages`` in the report folder."""
    return os.path.join(report_dir, "stages")


def start_run(options: Data, start: RunStart, ansible_version: str) -> FactFolder:
    """Begin a run: write its ID, its nodes and its variables into the folder of the report. Return this folder.

    :param options: options of the task that begins the run, as the user wrote them
    :param start: nodes and variables of the run; this function adds the ID, the time, the intent and the versions
    :param ansible_version: version of ansible-core, for the report
    :raises FileError: the folder cannot be written
    """
    folder = FactFolder(options["report_dir"], new_run())
    versions = {COLLECTION: COLLECTION_VERSION, "ansible-core": ansible_version}
    wishes = {name: options[name] for name in ("fabrics", "waivers", "cluster")}
    folder.begin(dataclasses.replace(start, run=folder.run, started=format_now(), versions=versions, **wishes))
    return folder


def resume_run(
    options: Data,
    nodes: typing.Sequence[str],
    check_mode: bool,
    strict_images: bool = False,
    images: typing.Optional[typing.Mapping[str, str]] = None,
    process: str = "",
    access: str = "",
    cluster_uid: str = "",
    boots: typing.Optional[typing.Mapping[str, str]] = None,
    warn: typing.Callable[[str], typing.Any] = lambda _text: None,
) -> FactFolder:
    """Continue the run in a folder at the stage that the option ``resume_from`` names. Remove the records and facts of
    that stage and of later stages.

    :param options: options of the module ``stage_begin``, as the user wrote them
    :param nodes: nodes of this invocation, which must be those of the run
    :param check_mode: whether this invocation runs in check mode
    :param strict_images: value of the variable rdma_strict_images in this invocation
    :param images: images that variables of this invocation name in addition to those of the intent, by variable; None
        if there are none
    :param process: identity of the ansible-playbook process of this invocation
    :param access: source of the credentials, context and API server of this invocation, as text
    :param cluster_uid: uid of the namespace kube-system of the cluster of this invocation; empty if it is not known
    :param boots: ID of the present boot of each node, as its kubelet reports it; None if they were not read
    :param warn: function that is called with the text of a warning for the user
    :returns: the folder of the run
    :raises ResumeError: the folder contains no run, or the run cannot be resumed by this invocation
    :raises FileError: the folder cannot be read or written
    """
    report_dir, resume_from = options["report_dir"], options["resume_from"]
    check_stage(resume_from, options["stage"], check_mode)
    start = read_start(report_dir)
    if start is None:
        raise ResumeError(
            f"rdma_from is {resume_from}, but {report_dir} contains no run that could be resumed: it has no run.json",
            "Run all stages first",
        )
    records, unreadable = read_records(records_dir(report_dir))
    damaged = [unreadable[stage] for stage in list_stages_before(resume_from) if stage in unreadable]
    if damaged:
        raise ResumeError(damaged[0], "Run all stages, without rdma_from")
    invocation = Invocation(COLLECTION_VERSION, strict_images, images or {}, access, cluster_uid)
    then = read_run_uid(FactFolder(report_dir, start.run), start)
    check_run(start, records, resume_from, options, tuple(map(str, nodes)), invocation, then)
    unproven = explain_unproven_cluster(access, then, cluster_uid) if list_stages_before(resume_from) else ""
    if unproven:
        warn(unproven)
    moment = format_now()
    check_age(records, resume_from, options["facts_max_age"], moment)
    folder, kept = FactFolder(report_dir, start.run), list_kept_kinds(resume_from)
    check_facts(_read_facts(folder, start, list_seen_kinds(resume_from)), options["facts_max_age"], moment)
    check_boots(_read_facts(folder, start, {*kept, *REBOOTS}), boots or {})
    for stage in STAGES[len(list_stages_before(resume_from)) :]:
        remove_record(records_dir(report_dir), stage)
    folder.resume(
        dataclasses.replace(
            start,
            resumes=(*start.resumes, Resume(resume_from, moment)),
            process=process,
            cluster_uid=then or cluster_uid,
        ),
        kept,
    )
    return folder


def _read_facts(folder: FactFolder, start: RunStart, kinds: typing.Iterable[str]) -> typing.Iterator[Fact]:
    """Yield the facts of the given kinds, of the cluster and of each node of the run, as far as they exist. Unreadable
    facts are skipped, because the stage that needs them reports the error.

    :param start: start record of the run
    """
    for kind in sorted(kinds):
        for node in (CLUSTER, *start.nodes):
            with contextlib.suppress(FileError):
                fact = folder.read(kind, node)
                if fact is not None:
                    yield fact


def begin_stage(options: Data, folder: FactFolder, check_mode: bool) -> Data:
    """Decide whether a stage may start, and which facts must be read from its nodes first. If the stage must not start,
    write a record with the reason.

    :param options: options of the module ``stage_begin``
    :param folder: fact folder of the run
    :returns: the result of the module
    :raises FileError: the folder cannot be read or written
    """
    if options["resume_from"] and options["stage"] in list_stages_before(options["resume_from"]):
        return _report_kept_stage(options, folder.run)
    context, start = _make_context(options, folder.run, check_mode), folder.start()
    record = may_start(context, _build_raw_intent(options), collect_validate_facts(start))
    unread = [] if record else list_unread_kinds(folder, options["stage"], _build_raw_intent(options).intent)
    rolled = [] if record else list_rolled_nodes_to_read(folder, options["stage"], _build_raw_intent(options).intent)
    asks = record is None and (
        bool(unread)
        or observes_nodes(options["stage"])
        or observes_again(options["stage"], _build_raw_intent(options).intent)
    )
    usual = _find_usual(options, folder.run, check_mode) if record is None else {}
    return {
        **_finish_stage_action(context, record, folder),
        **usual,
        **_describe_unread(unread),
        "look_after_roll": rolled,
        "observers": asks and bool(start.by_pods),
    }


def _describe_unread(kinds: typing.Sequence[str]) -> Data:
    """Return the keys of a module's result that list the facts to read: their kinds (``look``), the sources from which
    they are read, such as the nodes or the fabric (``look_at``), and the kinds that observer pods read
    (``look_by_observers``).

    :param kinds: kinds of facts that must still be read from the nodes
    """
    return {
        "look": list(kinds),
        "look_at": list_sources(kinds),
        "look_by_observers": list_kinds_for_observers(kinds),
    }


def pass_over(
    options: Data, folder: FactFolder, check_mode: bool, tags: typing.Collection[str], skip_tags: typing.Collection[str]
) -> Data:
    """Record all later stages as not run, because the gate of this stage is closed. The records are the same as if each
    stage had been started. Return the names of the stages that were not run (``stages``), and a line that reports them
    (``lines``), which is missing if there are none.

    :param options: options of the task, with the stage whose gate is closed
    :param tags: tags of the run; a stage that the tags exclude gets no record
    :param skip_tags: tags that the run skips
    :raises FileError: the folder cannot be read or written
    """
    later = [name for name in STAGES[STAGES.index(options["stage"]) + 1 :] if is_selected(name, tags, skip_tags)]
    answers = [begin_stage({**options, "stage": name, "resume_from": ""}, folder, check_mode) for name in later]
    passed = [answer["stage"] for answer in answers if not answer["go"]]
    return {"stages": passed, "lines": [passed_over(options["stage"], len(passed))] if passed else []}


def judge_facts(options: Data, folder: FactFolder, check_mode: bool) -> Data:
    """Judge a stage by the facts of this run, or by the error that ended it, and write its record.

    :param options: options of the module ``stage_gate``
    :returns: the result of the module
    :raises FileError: the folder cannot be read or written
    """
    context, raw, stage = _make_context(options, folder.run, check_mode), _build_raw_intent(options), options["stage"]
    if options["error"] is not None:
        record = judge_error(context, raw, options["error"])
    else:
        facts, counts = read_facts(folder, stage)
        changes = [*options["changes"], *list_changes(folder, stage)]
        record = judge_stage(context, raw, facts, changes, counts)
    return _finish_stage_action(context, record, folder)


def cut_lines(lines: list[str]) -> list[str]:
    """Return the lines of a judgment for a terminal: at most ``MOST_LINES`` lines and, if there are more, one line with
    the number of the omitted ones.
    """
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} more lines; the record contains all of them"]


def _report_kept_stage(options: Data, run: str) -> Data:
    """Return the result of the module ``stage_begin`` for a stage that a resumed run does not repeat. The stage does
    not start, and its earlier record remains valid.

    :param run: ID of the run
    """
    record = read_heads(records_dir(options["report_dir"]))[options["stage"]]
    line = (
        f"{record.stage}: kept from {record.finished}, the run resumes at stage {options['resume_from']} -"
        f" {describe_outcome(record)}"
    )
    return {
        "stage": record.stage,
        "run": run,
        "started": record.started,
        "go": False,
        "gate": record.gate,
        "lines": [line],
        **_describe_unread(()),
        "observers": False,
    }


def _find_usual(options: Data, run: str, check_mode: bool) -> Data:
    """Return the usual duration of a stage for its heading: the median over the kept earlier runs in seconds
    (``usual_seconds``), and the number of these runs (``usual_runs``). Only runs with the same check mode count in
    which the gate of the stage was not closed. Return an empty dictionary if there are none.

    :param options: options of the module ``stage_begin``
    :param run: ID of the current run
    """
    report_dir, stage = options["report_dir"], options["stage"]
    heads = (
        read_head(records_dir(find_folder(report_dir, name)), stage) for name in list_kept(report_dir) if name != run
    )
    done = [
        compute_duration(head)
        for head in heads
        if head is not None and head.check_mode is check_mode and head.gate != CLOSED
    ]
    seconds = [value for value in done if value is not None]
    return {"usual_seconds": round(statistics.median(seconds), 1), "usual_runs": len(seconds)} if seconds else {}


def _make_context(options: Data, run: str, check_mode: bool) -> StageContext:
    """Return the context in which a stage is judged: the run, the times, the check mode and the records of earlier
    stages. A record that cannot be read is left out. The report gives the reason and shows the stage of this record as
    not run.

    :param options: options of the module that begins or judges the stage
    """
    heads = read_heads(records_dir(options["report_dir"]))
    return StageContext(
        stage=options["stage"],
        run=run,
        started=options.get("started") or format_now(),
        finished=format_now(),
        check_mode=check_mode,
        records={stage: record for stage, record in heads.items() if record.run == run},
    )


def _build_raw_intent(options: Data) -> RawIntent:
    return RawIntent(options["fabrics"], options["waivers"], options["cluster"])


def _finish_stage_action(context: StageContext, record: typing.Optional[Record], folder: FactFolder) -> Data:
    """Write the record of a stage if there is one, and return the result of the task that begins or judges the stage.
    The result never contains ``changed``, because a record is not a change that the user requested.

    :param record: record of the stage; None if the stage starts
    :raises FileError: the record cannot be written
    """
    lines = cut_lines(describe_record(record)) if record else []
    result: Data = {
        "stage": context.stage,
        "run": context.run,
        "started": context.started,
        "go": record is None,
        "gate": record.gate if record else "open",
        "lines": lines,
    }
    if record:
        path = write_record(records_dir(folder.report_dir), record)
        result.update(path=path, stats=_build_stage_stats(record, folder, path))
    return result


def _build_stage_stats(record: Record, folder: FactFolder, path: str) -> Data:
    """Return the summary of a stage for later tasks, in the form in which the report summarizes a whole run.

    :param record: record of the stage
    :param path: path of the record, which replaces the path of the report page
    """
    of_run = build_report(
        {record.stage: record},
        {},
        record.run,
        record.finished,
        facts=lambda stage, parts: read_facts(folder, stage, parts)[0],
    )
    # the stages that were not run say nothing about this one
    alone = dataclasses.replace(of_run, stages=tuple(stage for stage in of_run.stages if stage.record))
    counts = describe_record(record)[0]
    if record.gate == OPEN and not record.check_mode:
        alone = dataclasses.replace(
            alone, verdict=f"{STAGE_PASSED}, {alone.waived} WAIVED" if alone.waived else STAGE_PASSED
        )
        # the verdict has the outcome already
        counts = counts.removesuffix(f" - {OUTCOMES[OPEN]}")
    if record.gate != CLOSED or record.closed_by:
        alone = dataclasses.replace(alone, summary=f"{alone.verdict} - stage {counts}")
    return make_stats(alone, path, plan_text(alone) if record.stage == "network" else "")
