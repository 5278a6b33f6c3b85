# SPDX-License-Identifier: GPL-3.0-or-later

"""Leave out the hosts and files of NCCL's log whose lines are not of one run of a job, and report them. Check ids:
``training.log``, ``training.ranks``.
"""

from __future__ import annotations

import dataclasses
import json
import typing

from ...._model.base.load import to_data
from ...._model.base.phrases import format_clause
from ...._model.base.text import join_first
from ...._model.job.nccl import HOLE, NOT_READ, TOGETHER, NcclLeftOut, NcclLog
from ...._model.run.findings import UNKNOWN, Finding
from ...._parse.limits import BYTES_A_VALUE, count_values

#: of one host, or of one file of several: processes, and ranks in all their communicators. 16 GPUs that are in 255
#: communicators each have as many
MOST_RANKS = 4096
#: remedy for a file that was not read, by words of the reason
_UNREAD = {
    TOGETHER: "Set training_logs to fewer or shorter logs, such as those of one run of the job.",
    HOLE: "Let the job write its log to a new file, and set training_logs to this file.",
}
_ONE_RUN = (
    "Set training_logs to the log of one run of the job. If it already is of one run, find the program in this"
    " pod that writes lines like those of NCCL, and run the job without this program."
)
_READABLE = "Copy the log of the pod to a regular file on the controller, and set training_logs to this file."


def leave_out_forged(log: NcclLog) -> tuple[NcclLog, tuple[Finding, ...]]:
    """Remove the lines of hosts and files that name more than ``MOST_RANKS`` processes and ranks.

    Return the remaining log, and a finding on each removed host or file.

    Any pod of a job can write into the log. Without this limit, one pod could invent communicators and flood the report
    with findings.
    """
    sources = _find_sources(log)
    ranks = [(rank.host, rank.pid) for communicator in log.communicators for rank in communicator.ranks]
    counts: dict[str, int] = {}
    for host, pid in (*sources, *ranks):
        for source in sources.get((host, pid), (host,)):
            counts[source] = counts.get(source, 0) + 1
    forged = {source: count for source, count in counts.items() if count > MOST_RANKS}
    if not forged:
        return log, ()
    return _exclude_processes(log, forged.keys()), tuple(
        _report_forged(source, count) for source, count in forged.items()
    )


def leave_out_large(log: NcclLog, most_bytes: int) -> tuple[NcclLog, dict[str, typing.Any]]:
    """Limit the size of a log so that it can be stored as a fact.

    Return the smaller log, and the same log as plain data.

    The hosts and files with the most data are removed until the remaining data fits, and are named in ``left_out`` of
    the log.

    :param most_bytes: size limit of the data as JSON, in bytes
    """
    data = to_data(log)
    sizes: dict[str, int] = {}
    sources = _find_sources(log)
    ranks = [rank for communicator in data["communicators"] for rank in communicator["ranks"]]
    for part in (*data["processes"], *ranks):
        text = json.dumps(part)
        size = max(len(text), count_values(text) * BYTES_A_VALUE)
        for source in sources.get((part["host"], part["pid"]), (part["host"],)):
            sizes[source] = sizes.get(source, 0) + size
    left, total = {}, sum(sizes.values())
    for source in sorted(sizes, key=lambda name: -sizes[name]):
        if total <= most_bytes:
            break
        left[source] = sizes[source]
        total -= sizes[source]
    if not left:
        return log, data
    gone = [
        NcclLeftOut(
            source, why=f"its lines take {size} bytes, and those of all hosts together may take {most_bytes} bytes"
        )
        for source, size in left.items()
    ]
    kept = dataclasses.replace(_exclude_processes(log, left.keys()), left_out=(*log.left_out, *gone))
    return kept, to_data(kept)


def _find_sources(log: NcclLog) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return the sources of the lines of each process, by its host and process number.

    The sources are the files with such lines, or the host if the log does not name files.
    """
    return {(process.host, process.pid): process.files or (process.host,) for process in log.processes}


def _exclude_processes(log: NcclLog, left: typing.AbstractSet[str]) -> NcclLog:
    """Return the log without processes and ranks whose lines come from given sources.

    Communicators without a remaining rank are left out as well.

    :param left: sources to exclude: files, or hosts if the log does not name files
    """
    sources = _find_sources(log)

    def is_kept(process: tuple[str, int]) -> bool:
        return left.isdisjoint(sources.get(process, process[:1]))

    communicators = [
        dataclasses.replace(
            communicator, ranks=tuple(rank for rank in communicator.ranks if is_kept((rank.host, rank.pid)))
        )
        for communicator in log.communicators
    ]
    processes = tuple(process for process in log.processes if is_kept((process.host, process.pid)))
    return dataclasses.replace(
        log, processes=processes, communicators=tuple(item for item in communicators if item.ranks)
    )


def report_left_out(item: NcclLeftOut) -> Finding:
    """Return the finding that the lines of a host or file were not judged, with the reason."""
    hosts = f", with lines of {join_first(item.hosts)}" if item.hosts else ""
    reason = format_clause(item.why, "There are more lines than the stage judges of one host or file")
    why = (
        f"{_begin(reason)}. NCCL writes fewer lines in one run: the log covers several runs, or a program in the pod"
        " writes lines that look like those of NCCL. The other hosts and files were judged."
    )
    measured = f"too many NCCL lines, none of them judged{hosts}"
    remedy = _ONE_RUN
    if item.why.startswith(NOT_READ):
        reason = format_clause(item.why[len(NOT_READ) :])
        measured, why = f"not read{hosts}", f"{_begin(reason)}. The other files were judged."
        remedy = next((text for words, text in _UNREAD.items() if words in reason), _READABLE)
    return Finding("training.log", item.source, UNKNOWN, measured, "only the NCCL lines of one run", why, remedy)


def _begin(text: str) -> str:
    """Return a reason with a capital letter, as the beginning of a sentence.

    A reason that begins with a path or a name is returned unchanged, since the case of its letters matters.
    """
    return f"{text[:1].upper()}{text[1:]}" if text.startswith((TOGETHER, "its ", "no ")) else text


def _report_forged(source: str, count: int) -> Finding:
    why = (
        "No pod has so many ranks: the log covers several runs, or a program in the pod writes lines that look like"
        " those of NCCL. No line of this host or file was judged."
    )
    remedy = _ONE_RUN
    return Finding(
        "training.ranks",
        source,
        UNKNOWN,
        f"{count} processes and ranks",
        f"at most {MOST_RANKS} processes and ranks",
        why,
        remedy,
    )
