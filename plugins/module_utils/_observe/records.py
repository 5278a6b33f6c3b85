# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes records: one file for each stage, with the head in its first line and a finding in each other one.

So whoever only has to know how a stage ended reads one line, however many findings there are.
"""

from __future__ import annotations

import json
import os
import typing

from .._model.findings import STAGES
from .._model.load import LoadError, load
from .._model.records import RECORD_SCHEMA, Record, contradiction, record_data
from .._model.redact import redact
from .files import write_text


def write_record(directory: str, record: Record) -> str:
    """Write ``<directory>/<stage>.jsonl`` in one step, so that an interrupted run leaves no half of it.

    :returns: path of the file
    :raises FileError: the folder or the file can't be written
    """
    path = os.path.join(directory, f"{record.stage}.jsonl")
    head = redact(record_data(record))
    judged = head.pop("judged")
    lines = [{**head, "findings": len(judged)}, *judged]
    write_text(path, "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines))
    return path


def read_records(directory: str) -> typing.Tuple[typing.Dict[str, Record], typing.Dict[str, str]]:
    """All records of a folder, of whatever run.

    :returns: records by stage, and by stage why a file that is there could not be read
    """
    return _read_all(directory, _read)


def read_heads(directory: str) -> typing.Dict[str, Record]:
    """The same without findings. A record that can't be read counts as none."""
    return _read_all(directory, _read_head)[0]


def read_head(directory: str, stage: str) -> typing.Optional[Record]:
    """That of one stage; None where there is none that can be read."""
    try:
        return _read_head(os.path.join(directory, f"{stage}.jsonl"), stage)
    except (OSError, ValueError, RecursionError, LoadError):
        return None


def _read_all(directory: str, read: typing.Callable[[str, str], Record]) -> typing.Tuple[typing.Dict[str, Record], typing.Dict[str, str]]:
    records: typing.Dict[str, Record] = {}
    unreadable: typing.Dict[str, str] = {}
    for stage in STAGES:
        path = os.path.join(directory, f"{stage}.jsonl")
        try:
            records[stage] = read(path, stage)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError, LoadError) as error:
            unreadable[stage] = f"{path} can't be read: {error}"
    return records, unreadable


def _read_head(path: str, stage: str) -> Record:
    with open(path, encoding="utf-8") as stream:
        return _load(json.loads(stream.readline()), [], stage)[0]


def _read(path: str, stage: str) -> Record:
    """:raises ValueError: no record of this stage, one of a newer schema, one that was cut off, or one that contradicts itself"""
    with open(path, encoding="utf-8") as stream:
        head, *judged = [json.loads(line) for line in stream] or [None]
    record, findings = _load(head, judged, stage)
    if findings != len(judged):
        raise LoadError(f"{stage}.findings", f"{len(judged)}", f"{findings}, as its head says")
    wrong = contradiction(record)
    if wrong:
        raise LoadError(stage, wrong, "a record as a run left it")
    return record


def _load(head: typing.Any, judged: typing.Sequence[typing.Any], stage: str) -> typing.Tuple[Record, typing.Any]:
    """The record, and how many findings its head promises."""
    if not isinstance(head, dict):
        raise LoadError(stage, "no mapping in the first line", "the head of a record")
    schema = head.get("schema")
    # first of all: the fields of a newer schema may be unknown here, and that would be a riddle to the reader
    if isinstance(schema, int) and schema > RECORD_SCHEMA:
        raise LoadError("schema", f"{schema}, of a newer version of linerate.rdma", f"{RECORD_SCHEMA} at most")
    findings = head.pop("findings", None)
    record: Record = load(Record, {**head, "judged": judged}, stage)
    if record.stage != stage:
        raise LoadError("stage", f"'{record.stage}'", f"'{stage}'")
    return record, findings
