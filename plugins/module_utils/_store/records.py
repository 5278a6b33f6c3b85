# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write records. A record is the result of one stage in one file, with the summary (its head) in the first
line and a finding in each further line.

A reader that only needs the result of a stage reads one line, regardless of the number of findings.
"""

from __future__ import annotations

import dataclasses
import os
import typing

from .._model.base.load import load
from .._model.base.load_error import LoadError
from .._model.base.plausible import wrong_schema, wrong_time
from .._model.base.redact import redact
from .._model.base.text import cut_texts
from .._model.run.facts import RunStart
from .._model.run.findings import MOST_WAIVERS, STAGES, Judged
from .._model.run.records import RECORD_SCHEMA, Record, find_contradiction, limit_findings, make_record_data
from .._parse.limits import MIB
from .fact_file import read_clock
from .files import FileError, decode_file_json, json_of, open_regular, remove_file, write_text
from .run_start import read_start

#: bytes of a record, and of a line of it: the head with its intent, or a finding
_MOST_BYTES = 512 * MIB
_MOST_OF_A_LINE = 16 * MIB
#: findings of a stage: 5,000 nodes with all of theirs are a third of it
_MOST_FINDINGS = 1_000_000
#: findings of all records together, and bytes of them, and the same for each node of the run. One node with 4,096
#: functions has some 16,000 findings in a stage, and one with eight rails some 200 in all of them
_FINDINGS_OF_ALL, _FINDINGS_OF_A_NODE = 150_000, 5000
_BYTES_OF_ALL, _BYTES_OF_A_NODE = 256 * MIB, MIB
#: part of these that one record may have, and part that each other stage without a record keeps for its own
_SHARE, _RESERVE = 2, 64
#: characters of a text of a finding where it is written, the first of these with which the record can be read again.
#: JSON takes 12 bytes at most for one of them, and a finding with its waiver has 9 texts: of the first, a line has its
#: place in _MOST_OF_A_LINE; of the last, that is 5,000 nodes with 100 each
_MOST_TEXTS = (64 * 1024, 4096, 256)


@dataclasses.dataclass
class _Budget:
    """The limits that remain for the records of a folder that are read next. They protect the memory, because all
    records and all pages of the report are held in it together.

    :ivar findings: number of findings that may still be read
    :ivar size: number of bytes that may still be read
    :ivar nodes: number of nodes of the run, for the message
    """

    findings: int
    size: int
    nodes: int

    def take(self, path: str, findings: int, size: int) -> None:
        """Subtract the findings and the size of a record from the limits that remain.

        :param path: path of the record, for the message
        :param findings: number of findings of the record
        :param size: size of the record in bytes
        :raises FileError: the record exceeds the remaining limits
        """
        for number, left, what in ((findings, self.findings, "findings"), (size, self.size, "bytes")):
            if number > left:
                raise FileError(
                    f"{path} could not be read: it has {number} {what}, but only {left} remain of the limit for all"
                    f" stages of a run of {self.nodes} nodes",
                    "Check the source of the folder",
                )
        self.findings -= findings
        self.size -= size


def _make_budget(directory: str, nodes: typing.Optional[int]) -> _Budget:
    """Return the limits for all records in a folder together. They grow with the number of nodes.

    :param directory: folder of the records
    :param nodes: number of nodes of the run; None to read it from run.json beside the folder, where a missing file
        means 0
    """
    if nodes is None:
        start = _read_start_beside(directory)
        nodes = 0 if start is None else len(start.nodes)
    return _Budget(_FINDINGS_OF_ALL + _FINDINGS_OF_A_NODE * nodes, _BYTES_OF_ALL + _BYTES_OF_A_NODE * nodes, nodes)


def _read_start_beside(directory: str) -> typing.Optional[RunStart]:
    try:
        return read_start(os.path.dirname(directory))
    except FileError:
        return None


def _make_room(directory: str, record: Record, nodes: typing.Optional[int]) -> _Budget:
    """Return the limits of findings and bytes for a new record. They leave enough space that all records of its run can
    be read together, including those of later stages, which do not exist yet.

    :param directory: folder of the records
    :param record: record that is written next
    :param nodes: number of nodes of the run; None to read it from run.json beside the folder
    """
    budget = _make_budget(directory, nodes)
    findings, size = budget.findings // _SHARE, budget.size // _SHARE
    reserve = budget.findings // _RESERVE, budget.size // _RESERVE
    for stage in STAGES:
        if stage != record.stage:
            taken = _measure(_get_record_path(directory, stage), stage, record.run) or reserve
            budget.findings -= taken[0]
            budget.size -= taken[1]
    return _Budget(min(findings, budget.findings), min(size, budget.size), budget.nodes)


def _measure(path: str, stage: str, run: str) -> typing.Optional[tuple[int, int]]:
    """Return two numbers: the findings of a record, and its size in bytes. Return None if the record does not exist,
    cannot be read, or belongs to another run.

    :param path: path of the record
    :param stage: name of the stage of the record
    :param run: id of the run to which the record must belong
    """
    try:
        with _open_record(path) as stream:
            if stream is None:
                return None
            found, findings = _load_head(_decode_line(stream.readline(_MOST_OF_A_LINE + 1), path, 1), stage)
            return (_number_of(findings), os.fstat(stream.fileno()).st_size) if found.run == run else None
    except (FileError, LoadError):
        return None


def write_record(directory: str, record: Record, below: str = "", nodes: typing.Optional[int] = None) -> str:
    """Write ``<directory>/<stage>.jsonl`` atomically, so that an interrupted run leaves no partial file. A record that
    is too large to be read again, together with the other records in the folder, is reduced: texts of findings are
    truncated, with their full length appended, and the last of many findings are replaced by one finding with their
    number.

    :param below: folder that the user named, below which no link is followed; if empty, the parent folder of
        ``directory``
    :param nodes: number of nodes of the run; None: those of the run.json beside ``directory``
    :returns: path of the file
    :raises FileError: the folder or the file cannot be written, or the record exceeds the limits of reading
    """
    path = _get_record_path(directory, record.stage)
    lines = _render_record_lines(path, record, _make_room(directory, record, nodes))
    write_text(path, "".join(lines), below or os.path.dirname(directory))
    return path


def _render_record_lines(path: str, record: Record, room: _Budget) -> list[str]:
    """Return the lines of a record: the head, and one line for each finding.

    :param path: path of the record, for the message
    :param room: limits for the record
    :raises FileError: the lines exceed the limits of reading, even if texts are truncated and findings are replaced by
        their number
    """
    most = max(1, min(_MOST_FINDINGS, room.findings))
    while most > 0:
        kept = limit_findings(record.judged, most)
        lines = _render_lines(dataclasses.replace(record, judged=kept), min(_MOST_BYTES, room.size))
        if lines and len(kept) <= most:
            return lines
        most = min(most, len(kept)) // 2
    raise FileError(
        f"{path} could not be written: its head, its {len(record.judged)} findings and the other records beside it"
        " exceed the limit for reading"
    )


def _render_lines(record: Record, most_bytes: int) -> list[str]:
    """Return the lines of a record, with its texts truncated if necessary. Return an empty list if the lines are too
    large even then.

    :param most_bytes: limit of all lines together
    """
    data = redact(make_record_data(record))
    judged = data.pop("judged")
    head = f"{json_of({**data, 'findings': len(judged)})}\n"
    if len(head) <= _MOST_OF_A_LINE:
        for most in _MOST_TEXTS:
            lines = [head, *(f"{json_of(cut_texts(item, most))}\n" for item in judged)]
            if sum(map(len, lines)) <= most_bytes:
                return lines
    return []


def read_records(directory: str, nodes: typing.Optional[int] = None) -> tuple[dict[str, Record], dict[str, str]]:
    """Read all records in a folder, of any run. The records of the run in the run.json beside it are read first. Those
    of other runs share the limits that remain.

    :param directory: folder of the records
    :param nodes: number of nodes of the run; None to read it from run.json beside ``directory``
    :returns: records by stage; and errors by stage for files that could not be read
    """
    budget, start, heads = _make_budget(directory, nodes), _read_start_beside(directory), read_heads(directory)
    others = [stage for stage, head in heads.items() if start is not None and head.run != start.run]
    stages = sorted(STAGES, key=lambda stage: stage in others)
    return _read_all(directory, lambda path, stage: _read_record(path, stage, budget), stages)


def read_heads(directory: str) -> dict[str, Record]:
    """Return all records in a folder without their findings, by stage. A record that cannot be read is left out.

    :param directory: folder of the records
    """
    return _read_all(directory, _read_head)[0]


def read_head(directory: str, stage: str) -> typing.Optional[Record]:
    """Return the record of one stage without its findings. Return None if it does not exist or cannot be read.

    :param directory: folder of the records
    """
    try:
        return _read_head(_get_record_path(directory, stage), stage)
    except (FileError, LoadError):
        return None


def remove_record(directory: str, stage: str, below: str = "") -> None:
    """Remove the record of a stage if it exists.

    :param directory: folder of the records
    :param below: folder below which no link is followed; if empty, the parent folder of ``directory``
    :raises FileError: the file cannot be removed
    """
    remove_file(_get_record_path(directory, stage), below or os.path.dirname(directory))


def _get_record_path(directory: str, stage: str) -> str:
    return os.path.join(directory, f"{stage}.jsonl")


def _read_all(
    directory: str,
    read: typing.Callable[[str, str], typing.Optional[Record]],
    stages: typing.Sequence[str] = STAGES,
) -> tuple[dict[str, Record], dict[str, str]]:
    records: dict[str, Record] = {}
    unreadable: dict[str, str] = {}
    for stage in stages:
        path = _get_record_path(directory, stage)
        try:
            found = read(path, stage)
        except FileError as error:
            unreadable[stage] = str(error)
        except LoadError as error:
            unreadable[stage] = f"{path} could not be read: {error}"
        else:
            if found is not None:
                records[stage] = found
    return records, unreadable


def _read_head(path: str, stage: str) -> typing.Optional[Record]:
    with _open_record(path) as stream:
        return (
            None
            if stream is None
            else _load_head(_decode_line(stream.readline(_MOST_OF_A_LINE + 1), path, 1), stage)[0]
        )


def _read_record(path: str, stage: str, budget: _Budget) -> typing.Optional[Record]:
    """Read the record of one stage. Return None if it does not exist.

    :param budget: remaining limits of all records together
    :raises FileError: the file cannot be read, is not valid JSON, or exceeds the remaining limits
    :raises LoadError: the record belongs to another stage, has another schema, is truncated, or contradicts itself
    """
    with _open_record(path) as stream:
        if stream is None:
            return None
        head = stream.readline(_MOST_OF_A_LINE + 1)
        record, findings = _load_head(_decode_line(head, path, 1) if head else None, stage)
        budget.take(path, _number_of(findings), os.fstat(stream.fileno()).st_size)
        record = dataclasses.replace(record, judged=tuple(_read_findings(stream, path, stage, findings)))
    wrong = find_contradiction(record)
    if wrong:
        raise LoadError(stage, wrong, "an unmodified record of a run")
    return record


def _number_of(findings: typing.Any) -> int:
    """Return the number of findings in the head of a record. Return 0 for an invalid number, which is reported when the
    findings are read.

    :param findings: value in the head
    """
    return findings if isinstance(findings, int) and 0 <= findings <= _MOST_FINDINGS else 0


def _open_record(path: str) -> typing.ContextManager[typing.Optional[typing.BinaryIO]]:
    return open_regular(path, os.path.dirname(os.path.dirname(path)), _MOST_BYTES)


def _decode_line(line: bytes, path: str, number: int) -> typing.Any:
    return decode_file_json(line, path, f"line {number}", _MOST_OF_A_LINE)


def _read_findings(stream: typing.BinaryIO, path: str, stage: str, findings: typing.Any) -> typing.Iterator[Judged]:
    """Yield the findings of a record one at a time. Each is loaded before the next line is read.

    :param stream: file of the record, after its first line
    :param stage: name of the stage, for messages
    :param findings: number of findings according to the first line
    :raises LoadError: a finding is malformed, or the number of findings differs from the head
    """
    if not isinstance(findings, int) or isinstance(findings, bool) or not 0 <= findings <= _MOST_FINDINGS:
        raise LoadError(f"{stage}.findings", f"{findings!r:.100}", f"a number of at most {_MOST_FINDINGS}")
    for number in range(findings + 1):
        line = stream.readline(_MOST_OF_A_LINE + 1)
        if bool(line) != (number < findings):
            raise LoadError(
                f"{stage}.findings", f"{'more than ' if line else ''}{number}", f"{findings}, the number in its head"
            )
        if line:
            judged: Judged = load(Judged, _decode_line(line, path, number + 2), f"{stage}.judged[{number}]")
            yield judged


def _load_head(head: typing.Any, stage: str) -> tuple[Record, typing.Any]:
    """Return two values: the record without its findings, and the number of findings according to its first line.

    :param head: data of the first line
    :param stage: name of the stage that the record must have
    :raises LoadError: the head is malformed, or belongs to another stage or schema
    """
    if not isinstance(head, dict):
        raise LoadError(stage, "no mapping in the first line", "the head of a record")
    # first of all: the fields of another schema may be unknown here, and that would be a riddle to the reader
    wrong, _remedy = wrong_schema(head, RECORD_SCHEMA)
    if wrong:
        raise LoadError(stage, wrong.partition("; ")[0], f"schema {RECORD_SCHEMA}")
    findings = head.pop("findings", None)
    waivers = head.get("waivers")
    if isinstance(waivers, list) and len(waivers) > MOST_WAIVERS:
        raise LoadError(f"{stage}.waivers", f"{len(waivers)} waivers", f"at most {MOST_WAIVERS}")
    record: Record = load(Record, {**head, "judged": ()}, stage)
    if record.stage != stage:
        raise LoadError("stage", f"'{record.stage}'", f"'{stage}'")
    implausible = next(filter(None, (wrong_time(text, read_clock()) for text in (record.started, record.finished))), "")
    if implausible:
        raise LoadError(stage, implausible, "a time of a run")
    return record, findings
