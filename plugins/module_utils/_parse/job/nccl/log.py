# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse a log that NCCL wrote with NCCL_DEBUG=INFO: the processes and ranks of the job, and the transport of each
channel.

RCCL, AMD's version of NCCL, writes the same forms. It adds a communicator to each channel, and has its own version
line.

Format: [src NVIDIA/nccl v2.8.4 to v2.30.7, and texts of the libraries of 2.31.2 and 2.32.3: src/debug.cc, src/init.cc,
src/transport/{net,p2p,shm,coll_net}.cc, net_ib, src/graph/{paths,rings}.cc]. Several processes write into one stream,
each with its own buffer, so lines can be interleaved or torn. A line counts only if it fits a form from its first to
its last character. A channel whose line is lost is missing from the result. Other programs write a prefix before a
line: kubectl logs, torchrun (``[default0]:``), mpirun (``[1,0]<stdout>:``), or a time.

The log is read once, line by line. The memory that the result needs grows with the number of ranks and channels, not
with the number of lines.
"""

from __future__ import annotations

import io
import typing

from ...._model.base.errors import ParseError, SourceRefused
from ...._model.job.nccl import NcclLog
from .log_reader import NcclLogReader
from .memory import OF_WHOLE_RANK


def parse(lines: typing.Iterable[str]) -> NcclLog:
    """Return the contents of a log of NCCL. The result is empty if the log has no line of NCCL.

    :param lines: lines with their ends, as a file yields them. A last line without an end was cut off and is ignored
    :raises ParseError: the log names more threads, processes, ranks, transports and devices than a log of its length
        can name
    """
    reader = NcclLogReader()
    reader.read_lines(lines)
    return reader.build_log()


def parse_files(
    files: typing.Iterable[tuple[str, typing.Iterable[str]]],
    sources: typing.Literal["files", "hosts", ""] = "",
) -> NcclLog:
    """Parse the log of a job that consists of several files. If more than one file is a log, each file is the log of
    one pod, and each process of the result lists the files that contain its lines.

    :param files: the name and the lines of each file. The lines have their ends, as a file yields them. All lines of a
        file are read before the next file is opened. A file that cannot be read to its end is left out
    :param sources: sources of which each is left out if its lines name more processes and ranks than one pod can have:
        ``files``, or ``hosts`` if all ranks write into one file. Empty for no such limit
    :raises ParseError: the log names more threads, processes, ranks, transports and devices than a log of its length
        can name
    """
    # a file whose lines raise SourceRefused is left out
    reader = NcclLogReader(sources=sources)
    for name, lines in files:
        reader.begin_file(name)
        try:
            reader.read_lines(lines)
        except SourceRefused as error:
            reader.refuse_file(error.seen)
    return reader.build_log()


def parse_text(text: str) -> NcclLog:
    """Parse a log of NCCL that is one text. The result is empty if the log has no line of NCCL.

    :raises ParseError: the log names more threads, processes, ranks, transports and devices than a log of its length
        can name
    """
    return parse(io.StringIO(text, newline="\n"))


class PodLogs:
    """The logs of the pods of one run, which are added one after the other and combined into one NcclLog. In the log of
    a pod, only the lines of the pod's own host are used.
    """

    def __init__(self) -> None:
        self._reader = NcclLogReader()

    def add(self, name: str, host: str, lines: typing.Iterable[str], ranks: int) -> bool:
        """Read the log of a pod, and add its contents to the result. The log is rejected, and the result stays
        unchanged, if the log names more processes or ranks than the pod has, or more transports and devices than a log
        of its length can name.

        :param name: name of the pod
        :param host: host name of the pod; lines of other hosts are ignored
        :param lines: lines of the log with their ends
        :param ranks: largest number of processes, and of ranks, that the pod can have
        :returns: False if the log was rejected
        :raises ParseError: all logs together name more than logs of their length can name
        """
        part = NcclLogReader(ranks * OF_WHOLE_RANK)
        part.begin_file(name, host)
        try:
            part.read_lines(lines)
        except ParseError:
            return False
        if part.count_ranks() > ranks:
            return False
        self._reader.absorb(part)
        return True

    def build_log(self) -> NcclLog:
        """Return the contents of all logs that were added, in the form in which they are stored as a fact. The result
        is empty if no log was added.
        """
        return self._reader.build_log()
