# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a run again from the files in its folder alone, and compare two runs."""

from __future__ import annotations

import os
import typing

from .._check.frame import RawIntent
from .._check.rejudge import is_observation_only, judge_again
from .._check.stages import find_form
from .._model.base.errors import RdmaError
from .._model.base.load import load
from .._model.measurement.collectives import LatencyFigures, StepFigures
from .._model.run.facts import RunStart, intent_checksum
from .._model.run.findings import STAGES
from .._model.run.records import Record, describe_record
from .._report.content.verdict import Since
from .._report.difference.runs import (
    COLLECTIVES,
    COMPARED,
    RunDifference,
    describe_differences,
    find_differences,
    find_record_differences,
)
from .._report.difference.snapshot import Snapshot
from .._report.formats.difference_page import difference_html, difference_json
from .._report.formats.signature import SignedEvidence, render_signature
from .._store.evidence import JUDGED
from .._store.facts import FactFolder
from .._store.files import FileError, base_of, remove_file, write_text
from .._store.records import read_records, remove_record, write_record
from .._store.run_start import read_start
from .folder import read_facts
from .frame import cut_lines, records_dir
from .publish import FORMATS, publish, report_of

Data = dict[str, typing.Any]


def start_of(report_dir: str, variable: str = "rdma_report_dir") -> RunStart:
    """Return the start record of the run in a folder: its ID, its nodes and its variables.

    :param report_dir: folder of the run
    :param variable: name of the Ansible variable in which the user sets this folder, for the error message
    :raises FileError: the folder contains no run, or the record is invalid
    """
    start = read_start(report_dir)
    if start is None:
        remedy = f"Set {variable} to the folder of a run, which contains run.json, facts and stages"
        raise FileError(f"{os.path.abspath(report_dir)} contains no run: it has no run.json", remedy)
    return start


def rejudge_run(report_dir: str, target: str, wishes: Data, ansible_version: str) -> Data:
    """Judge a run again, and write the new records and the new report into a separate folder.

    :param report_dir: folder of the run; nothing in it changes outside of ``target``
    :param target: folder for records and report; empty for the folder ``judged`` in ``report_dir``
    :param wishes: intent to judge by, with the keys ``fabrics``, ``waivers`` and ``cluster``. For a value that is
        missing or None, that of the run is used. The key ``applied`` is False for an intent that is not applied yet
    :param ansible_version: version of ansible-core that judges, for the report
    :returns: the result of the module ``judge``
    :raises FileError: the folder contains no run, ``target`` is the folder of a run, or a file cannot be read or
        written
    """
    start = start_of(report_dir)
    target = os.path.abspath(target or os.path.join(report_dir, JUDGED))
    if os.path.realpath(target) == os.path.realpath(report_dir):
        raise FileError(
            f"{target} is the folder of the run itself; a new judgment in this folder would overwrite the records of"
            " the run",
            "Set rdma_judged_dir to a different folder",
        )
    below = base_of(target, report_dir)
    # a link below the folder of the run is refused by name where files are removed and written
    if (below == target or not os.path.islink(target)) and read_start(target) is not None:
        raise FileError(
            f"{target} is the folder of a different run; a new judgment in this folder would overwrite the records of"
            " that run",
            "Set rdma_judged_dir to a folder without run.json",
        )
    _remove_old_reports(target, below)
    folder = FactFolder(report_dir, start.run)
    records, unreadable = read_records(records_dir(report_dir))
    of_run = {stage: record for stage, record in records.items() if record.run == start.run}
    chosen = {
        name: getattr(start, name) if wishes.get(name) is None else wishes[name]
        for name in ("fabrics", "waivers", "cluster")
    }
    applied = wishes.get("applied") is not False

    def refused(stage: str) -> typing.Sequence[str]:
        """Return the facts that could not be used since the last call of this function, each as a text with the reason.

        :param stage: name of the stage for which the facts were read
        """
        found, folder.refused = folder.refused, []
        return found

    def facts(stage: str) -> typing.Any:
        """Return the facts by which a stage is judged, and the number of facts of each kind. If any part of the intent
        is not that of the run, the positions in the files of the run's own intent (``origins``) are left out.
        """
        found, counts = read_facts(folder, stage)
        own = all(wishes.get(name) is None for name in chosen)
        return (found if own else {name: value for name, value in found.items() if name != "origins"}), counts

    judged = judge_again(start, of_run, RawIntent(**chosen), facts, applied, refused)
    for record in judged.values():
        write_record(records_dir(target), record, below, len(start.nodes))
    # a record of another run is no part of this one, and is named as in the report of the run itself
    answer = publish(folder, target, {**records, **judged}, unreadable, _read_versions(start, ansible_version))
    # as they are in their files, where both may be cut alike; and what was not judged differs from nothing
    written, _unreadable = read_records(records_dir(target), len(start.nodes))
    both = (
        {stage: record for stage, record in side.items() if applied or is_observation_only(stage)}
        for side in (of_run, {stage: written.get(stage, record) for stage, record in judged.items()})
    )
    found = find_record_differences(*both)
    told = [
        {"stage": stage, "gate": record.gate, "lines": _describe_record(record)} for stage, record in judged.items()
    ]
    return {
        **answer,
        "run": start.run,
        "report_dir": target,
        "same": not found,
        "lines": describe_differences(found),
        "stages": told,
    }


def _describe_record(record: Record) -> typing.Sequence[str]:
    """Return the lines that describe the record of a stage. A stage that did not run because an earlier gate was closed
    gets only one line.
    """
    return cut_lines(describe_record(record)[: 1 if record.closed_by else None])


def write_pages(report_dir: str, ansible_version: str) -> None:
    """Write the report pages of a run again from its facts and records. These do not change. It is used for a folder
    from an unpacked archive, whose report pages cannot be trusted.

    :param report_dir: folder of the run
    :param ansible_version: version of ansible-core that writes the report, for its page
    :raises FileError: the folder contains no run, or a file cannot be read or written
    """
    start = start_of(report_dir)
    records, unreadable = read_records(records_dir(report_dir))
    publish(FactFolder(report_dir, start.run), report_dir, records, unreadable, _read_versions(start, ansible_version))


def _read_versions(start: RunStart, ansible_version: str) -> dict[str, str]:
    return {
        "ansible-core": ansible_version,
        **{f"{name} of the run": version for name, version in start.versions.items()},
    }


def sign_sheet(report_dir: str, sheet: str, archive: str, sha256: str, parties: typing.Mapping[str, str]) -> None:
    """Write the acceptance sheet of a run, a page that two parties sign.

    :param report_dir: folder of the run
    :param sheet: path of the page to write
    :param archive: file name of the evidence archive
    :param sha256: checksum of the archive
    :param parties: names of ``customer``, ``cluster`` and ``contractor``; an empty name becomes a blank line
    :raises FileError: a file cannot be read or written
    """
    start = start_of(report_dir)
    records, unreadable = read_records(records_dir(report_dir))
    report = report_of(FactFolder(report_dir, start.run), records, unreadable, start.versions)
    page = render_signature(
        report, SignedEvidence(archive, sha256, intent_checksum(start), len(start.nodes), **parties)
    )
    write_text(sheet, page, base_of(os.path.dirname(sheet), report_dir))


def read_snapshot(report_dir: str, variable: str = "rdma_report_dir") -> Snapshot:
    """Return the results of a run that a comparison with another run needs. A fact that cannot be read becomes an error
    of its node. Records and figures that cannot be read are listed in the field ``unread``.

    :param report_dir: folder of the run
    :param variable: name of the Ansible variable in which the user sets this folder, for the error message
    :raises FileError: the folder contains no run
    """
    start = start_of(report_dir, variable)
    folder = FactFolder(report_dir, start.run)
    facts = {}
    for kind in (*COMPARED, "topologies"):
        there = [node for node in start.nodes if os.path.lexists(folder.path(kind, node))]
        asked = folder.of_nodes(kind, there)
        # a file that an older run left is no look of this one
        facts[kind] = {
            node: item for node, item in asked.items() if not (item["error"] or "").startswith("was not asked")
        }
        form = find_form(kind)
        if form is not None:
            facts[kind] = {node: _of_this_form(form, f"{kind} of {node}", item) for node, item in facts[kind].items()}
    records, unread = read_records(records_dir(report_dir))
    records = {stage: record for stage, record in records.items() if record.run == start.run}
    latencies: tuple[LatencyFigures, ...] = ()
    try:
        collectives, latencies = _read_collectives(folder)
    except RdmaError as error:
        collectives, unread[COLLECTIVES] = None, str(error)
    return Snapshot(start, facts, records, collectives, unread, latencies)


def _read_collectives(
    folder: FactFolder,
) -> tuple[typing.Optional[tuple[StepFigures, ...]], tuple[LatencyFigures, ...]]:
    """Return the measured figures of each step of the collectives, and the measured latencies. Return None and an empty
    tuple if the run has not measured collectives.

    :raises RdmaError: the fact cannot be read, or is an error
    """
    value = folder.value("collectives")
    if not isinstance(value, dict) or "steps" not in value:
        return None, ()
    steps: tuple[StepFigures, ...] = load(tuple[StepFigures, ...], value["steps"], "steps")
    latencies: tuple[LatencyFigures, ...] = load(tuple[LatencyFigures, ...], value.get("latencies", []), "latencies")
    return steps, latencies


def _of_this_form(form: type, what: str, fact: Data) -> Data:
    """Return a fact unchanged if it has the form that this version expects. Otherwise return an error in its place.

    :param form: type of the fact
    :param what: description of the fact, for the error
    :param fact: mapping with ``value`` and ``error``
    """
    error = load(form, fact, what).error
    return fact if error is None else {"value": None, "error": error}


def compare_folders(before_dir: str, report_dir: str) -> Data:
    """Compare two runs, and write the differences into the folder of the later run as JSON and HTML. Return the result
    of the module: the ids of both runs, the number of differences, their description in lines, and the paths of the
    files.

    :param before_dir: folder of the earlier run
    :param report_dir: folder of the later run
    :raises FileError: one of the folders contains no run, or the folder cannot be written
    """
    before, after = read_snapshot(before_dir, "rdma_before_dir"), read_snapshot(report_dir)
    found, paths = _write_differences(before, after, report_dir)
    return {
        "before": before.start.run,
        "after": after.start.run,
        "count": len(found),
        "lines": describe_differences(found),
        "paths": paths,
    }


def compare_with_kept(before_dir: str, report_dir: str) -> Since:
    """Compare a run with a kept earlier run, and write the differences into the folder of the later run. Return the ID
    and the start of the earlier run, and the number and the descriptions of the differences. If the earlier run cannot
    be compared, for example because another version wrote it, the result contains the reason instead.

    :param before_dir: folder of the earlier run
    :param report_dir: folder of the later run
    :raises FileError: the folder of the report cannot be written
    """
    run = os.path.basename(before_dir)
    try:
        before, after = read_snapshot(before_dir), read_snapshot(report_dir)
    except RdmaError as error:
        return Since(run, "", error=str(error))
    found, _paths = _write_differences(before, after, report_dir)
    return Since(run, before.start.started, len(found), tuple(describe_differences(found)))


def _write_differences(
    before: Snapshot, after: Snapshot, report_dir: str
) -> tuple[list[RunDifference], dict[str, str]]:
    """Write the differences between two runs as JSON and HTML.

    :param before: results of the earlier run
    :param after: results of the later run
    :param report_dir: folder for the files
    :returns: the differences, and the path of each file by its format
    """
    found = find_differences(before, after)
    paths = {name: os.path.join(os.path.abspath(report_dir), f"difference.{name}") for name in ("json", "html")}
    write_text(paths["json"], difference_json(before.start, after.start, found), report_dir)
    write_text(paths["html"], difference_html(before.start, after.start, found), report_dir)
    return found, paths


def _remove_old_reports(target: str, below: str) -> None:
    """Remove existing records and reports from the target folder, so that none of them is mistaken for the result of a
    judgment that ends early.

    :param target: folder for the new records and report
    :param below: folder below which files may be removed
    """
    for stage in STAGES:
        remove_record(records_dir(target), stage, below)
    names = [f"report.{name}" for name in FORMATS]
    # in a folder of the user's own it may belong to another run
    names += [f"difference.{name}" for name in ("html", "json")] if below != target else []
    for name in names:
        remove_file(os.path.join(target, name), below)
