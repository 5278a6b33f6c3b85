# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes records: one JSON file for each stage."""

from __future__ import annotations

import json
import os
import tempfile
import typing

from .._model.errors import RdmaError
from .._model.findings import STAGES
from .._model.load import LoadError, load
from .._model.records import RECORD_SCHEMA, Record, contradiction, record_data
from .._model.redact import redact


class RecordError(RdmaError):
    """A record or report that could not be written; names the file and the cause."""


def write_record(directory: str, record: Record) -> str:
    """Write ``<directory>/<stage>.json`` in one step, so that an interrupted run leaves no half of it.

    :returns: path of the file
    :raises RecordError: the folder or the file can't be written
    """
    path = os.path.join(directory, f"{record.stage}.json")
    write_text(path, json.dumps(redact(record_data(record)), indent=2, sort_keys=True) + "\n")
    return path


def write_text(path: str, text: str) -> None:
    """Write a file in one step; makes its folder.

    :raises RecordError: it can't be written
    """
    directory = os.path.dirname(path) or "."
    try:
        os.makedirs(directory, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".", suffix=".tmp")
        try:
            # a tool may print what is no text at all; half a report would be worse than an escape in it
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise RecordError(f"{path} can't be written: {error.strerror}", "Look whether there is room, and whether this user may write there") from error


def read_records(directory: str) -> typing.Tuple[typing.Dict[str, Record], typing.Dict[str, str]]:
    """All records of a folder, of whatever run.

    :returns: records by stage, and by stage why a file that is there could not be read
    """
    records: typing.Dict[str, Record] = {}
    unreadable: typing.Dict[str, str] = {}
    for stage in STAGES:
        path = os.path.join(directory, f"{stage}.json")
        try:
            records[stage] = _read(path, stage)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError, LoadError) as error:
            unreadable[stage] = f"{path} can't be read: {error}"
    return records, unreadable


def _read(path: str, stage: str) -> Record:
    """:raises ValueError: no record of this stage, one of a newer schema, or one that contradicts itself"""
    with open(path, encoding="utf-8") as stream:
        data = json.load(stream)
    schema = data.get("schema") if isinstance(data, dict) else None
    # first of all: the fields of a newer schema may be unknown here, and that would be a riddle to the reader
    if isinstance(schema, int) and schema > RECORD_SCHEMA:
        raise LoadError("schema", f"{schema}, of a newer version of linerate.rdma", f"{RECORD_SCHEMA} at most")
    record: Record = load(Record, data, stage)
    if record.stage != stage:
        raise LoadError("stage", f"'{record.stage}'", f"'{stage}'")
    wrong = contradiction(record)
    if wrong:
        raise LoadError(stage, wrong, "a record as a run left it")
    return record
