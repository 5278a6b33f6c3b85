# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect the processes, ranks, problems and endpoints of UCX from the lines of a log of NCCL, within limits of memory.
The forms of the lines and the sources are described in nccl_log.py.
"""

from __future__ import annotations

import itertools
import re
import typing

from ...._model.base.errors import ParseError
from ...._model.job.nccl import NOT_READ, NcclCommunicator, NcclLeftOut, NcclLog
from ...._model.job.ucx import UcxEndpoint
from ...pods import libibverbs
from .. import transports
from ..problem_list import ProblemList
from .memory import OF_PLACE, OF_PROCESS, OF_THREAD, LogTooLarge, MemoryBudget, SourceTooLarge
from .message import MessageReader
from .process import MOST_FILES, LogFile, LogProcess, LogRank, LogThread

_INFO, _WARN = " NCCL INFO ", " NCCL WARN "
#: 2.32 and later write ATTN. Advice on the message above has this level, and in 2.31 it is a warning
_ATTN, _ADVICE = " NCCL ATTN ", "HINT: "
_LEVELS = (_INFO, _WARN, _ATTN)
#: host, process and thread, behind any text; a GPU; and the place of a warning in the source
_HEAD = re.compile(
    r"(?:.*[\s\]>:|]|)([A-Za-z0-9_-]{1,253}):([0-9]{1,10}):([0-9]{1,10}) \[-?[0-9]{1,4}\](?: (\S+:[0-9]+)(?:"
    r" \(\S*\))?)?",
    re.DOTALL,
)
#: messages of programs around NCCL that are read as well
_AROUND = ("Watchdog caught", "Timeout at NCCL work", "remote process has exited")
#: the beginning of a document of nccl-tests, and a text in its only line; a document is not a log
_DOCUMENT, _IN_DOCUMENT = '{"version":', '"nccl_version":'


def is_document(line: str) -> bool:
    """Return whether a file with this first line is a JSON document of nccl-tests. Otherwise it is a log.

    :param line: first line of the file that is not empty
    """
    return line.startswith(_DOCUMENT) and _IN_DOCUMENT in line


#: kinds of endpoints of UCX that are kept
_MOST_ENDPOINTS = 1000


class _OtherHost(Exception):
    """The error for a line of a host whose lines are not used in the current file."""


class NcclLogReader:
    """A parser that collects the processes, ranks, problems and UCX endpoints of a job from the lines of its log, which
    may consist of several files.

    :ivar host: the only host whose lines in the current file are used; None for the lines of all hosts
    """

    def __init__(self, least: typing.Optional[int] = None, sources: typing.Literal["files", "hosts", ""] = "") -> None:
        """Create a reader that has not read a line yet.

        :param least: bytes of memory that the contents of a log of any length may use; None for the default
        :param sources: sources of which each is left out if it names more processes and ranks than one pod can have:
            ``files``, ``hosts``, or empty for no such limit
        """
        self._sources = sources
        self.host: typing.Optional[str] = None
        self._budget = MemoryBudget(least)
        self._left_out: dict[str, NcclLeftOut] = {}
        self._processes: dict[tuple[str, int], LogProcess] = {}
        self._threads: dict[str, LogThread] = {}
        self._messages = MessageReader(self._charge_memory_budget)
        self._problems = ProblemList()
        self._endpoints: dict[transports.EndpointLine, int] = {}
        self._more_endpoints = 0
        self._lines = self._nccl_lines = self._torn = 0
        self._cut = False
        self._file: typing.Optional[LogFile] = None
        self._logs = 0

    def begin_file(self, name: str, host: typing.Optional[str] = None) -> None:
        """End the current file, and begin the next one.

        :param name: name of the new file
        :param host: only host whose lines in this file are used; None for the lines of all hosts
        """
        self._end_file()
        self._file, self.host = LogFile(name), host
        # a thread writes into one file
        self._threads.clear()

    def _end_file(self) -> None:
        self._logs += self._file is not None and (bool(self._file.hosts) or not self._file.document)

    def read_lines(self, lines: typing.Iterable[str]) -> None:
        """Parse the lines of the current file, and add their contents to the result. Lines that are not from NCCL or
        UCX are ignored.

        :param lines: lines with their ends. A last line without an end was cut off and is not parsed
        :raises ParseError: the log names more threads, processes and ranks than a log of its length can name
        """
        file = self._file
        for line in lines:
            if file is not None and file.document is None and not line.isspace():
                file.document = is_document(line)
            self._lines += 1
            self._budget.characters += len(line)
            if line[-1:] != "\n":
                # the end of the line is missing, so its form cannot be recognized
                self._cut = True
                self._more_endpoints += transports.names_endpoint(line)
                continue
            before, info, message = line.partition(_INFO)
            if info:
                self._nccl_lines += 1
                if " NCCL " in message and any(level in message for level in _LEVELS):
                    self._torn += 1
                    continue
                write, parts = self._read_info, (before, message.rstrip())
            elif _WARN in line or _ATTN in line:
                self._nccl_lines += 1
                before, _warn, message = line.rstrip().partition(_WARN if _WARN in line else _ATTN)
                write, parts = self._read_warning, (before, message)
            elif "CCL version " in line:
                self._messages.read_bare_version(line.rstrip())
                continue
            elif any(word in line for word in _AROUND) or (
                "libibverbs: " in line and libibverbs.parse(line).kind is not None
            ):
                self._problems.add_text(line.strip(), self._lines)
                continue
            else:
                found = transports.parse(line)
                if found is not None:
                    self._problems.add(found.kind, line.strip(), self._lines)
                else:
                    self._keep_endpoint(line)
                continue
            try:
                write(*parts)
            except _OtherHost:
                # a file counts for its own host only
                self._nccl_lines -= 1
            except SourceTooLarge as error:
                self._leave_out(str(error))
                if self._sources == "files":
                    return

    def refuse_file(self, why: str) -> None:
        """Record that the current file could not be read to its end. If the limit applies to each file, its processes
        are removed.

        :param why: reason why the file could not be read
        """
        name = "" if self._file is None else self._file.name
        if self._sources == "files":
            self._leave_out(name)
        hosts = self._left_out[name].hosts if name in self._left_out else ()
        self._left_out[name] = NcclLeftOut(name, hosts, f"{NOT_READ}{why}")

    def absorb(self, part: NcclLogReader) -> None:
        """Add the contents that another reader has collected from the log of another host. A process that this reader
        has already seen is kept as it is.

        :param part: reader of the log of one host, which must not be used afterwards
        :raises ParseError: both logs together name more than logs of their length can name
        """
        part._end_file()
        part._file = None
        for key, process in part._processes.items():
            self._processes.setdefault(key, process)
        for version in part._messages.versions:
            self._messages.add_version(version)
        self._problems.absorb(part._problems, self._lines)
        for line, count in part._endpoints.items():
            if line in self._endpoints or len(self._endpoints) < _MOST_ENDPOINTS:
                self._endpoints[line] = self._endpoints.get(line, 0) + count
            else:
                self._more_endpoints += count
        self._more_endpoints += part._more_endpoints
        self._lines += part._lines
        self._nccl_lines += part._nccl_lines
        self._torn += part._torn
        self._cut = self._cut or part._cut
        self._logs += part._logs
        self._budget.characters += part._budget.characters
        self._charge_memory_budget(part._budget.kept, "")

    def build_log(self) -> NcclLog:
        """Return the processes, ranks, problems and UCX endpoints from all lines so far, in the form in which they are
        stored as a fact.
        """
        self._end_file()
        version = next(iter(self._messages.versions)) if len(self._messages.versions) == 1 else ""
        processes = [
            process
            for process in self._processes.values()
            if process.ranks or process.strays or process.devices or process.network
        ]
        communicators = self._name_communicators(processes)
        for ranks in communicators.values():
            LogRank.mark_unanswered(ranks)
        named = [
            NcclCommunicator(
                name, next(iter(ranks.values())).size, tuple(ranks[rank].build_rank() for rank in sorted(ranks))
            )
            for name, ranks in communicators.items()
        ]
        strays = tuple(rank.build_rank() for process in processes for _rank, rank in sorted(process.strays.items()))
        return NcclLog(
            tuple(self._messages.versions),
            tuple(process.build_process(version, self._logs > 1) for process in processes),
            (*named, *([NcclCommunicator("not known", None, strays)] if strays else [])),
            self._problems.list_problems(),
            self._lines,
            self._nccl_lines,
            self._torn,
            self._cut,
            self._problems.untold,
            tuple(self._left_out.values()),
            tuple(UcxEndpoint(*line, count) for line, count in self._endpoints.items()),
            self._more_endpoints,
        )

    def _keep_endpoint(self, text: str) -> None:
        """Count a line about an endpoint of UCX. Any other line is ignored, and so is a line of a host that is not used
        in the current file. Lines beyond the limit of different endpoints are only counted.

        :param text: line of the log
        """
        line = transports.parse_endpoint(text)
        if line is None:
            self._more_endpoints += transports.names_endpoint(text)
        elif self.host not in (None, line.host):
            return
        elif line in self._endpoints or len(self._endpoints) < _MOST_ENDPOINTS:
            self._endpoints[line] = self._endpoints.get(line, 0) + 1
        else:
            self._more_endpoints += 1

    @staticmethod
    def _name_communicators(processes: typing.Iterable[LogProcess]) -> dict[str, dict[int, LogRank]]:
        """Return the ranks of each communicator, by name of the communicator and rank number. If two processes have the
        same rank of a communicator, the job was restarted. The rank of the second process is then added to a
        communicator with ``again`` in its name, that of the third with ``again (2)``.
        """
        communicators: dict[str, dict[int, LogRank]] = {}
        times: dict[tuple[str, int], int] = {}
        for process in processes:
            for rank in process.ranks:
                started = times[rank.name, rank.rank] = times.get((rank.name, rank.rank), 0) + 1
                name = (
                    rank.name
                    if started == 1
                    else f"{rank.name} again"
                    if started == 2
                    else f"{rank.name} again ({started - 1})"
                )
                communicators.setdefault(name, {})[rank.rank] = rank
        return communicators

    def count_ranks(self) -> int:
        """Return the number of processes or the number of ranks so far, whichever is greater."""
        return max(len(self._processes), self._count_all_ranks())

    def _count_all_ranks(self) -> int:
        return sum(len(process.ranks) + len(process.strays) for process in self._processes.values())

    def _leave_out(self, source: str) -> None:
        """Remove all processes of a file or host that names more processes and ranks than a pod can have, and record
        that it was left out. Lines about these processes in other files are removed as well.

        :param source: name of the file or host
        """

        def is_of(process: LogProcess) -> bool:
            """Return whether a process wrote into the source: it ran on the host, or wrote into the file."""
            if self._sources == "hosts":
                return process.host == source
            return any(file.name == source for file in process.files or ())

        gone = [key for key, process in self._processes.items() if is_of(process)]
        named = () if self._sources == "hosts" else dict.fromkeys(host for host, _process in gone)
        hosts = tuple(itertools.islice(named, MOST_FILES))
        for key in gone:
            del self._processes[key]
        self._threads = {token: item for token, item in self._threads.items() if not is_of(item.process)}
        self._left_out[source] = NcclLeftOut(source, hosts, self._budget.release(source))

    def _charge_memory_budget(self, cost: int, host: str) -> None:
        """Add the memory of an item of the result to the amount in use, both in total and for the file or host that
        names the item.

        :param cost: bytes of memory
        :param host: name of the host of the process that the item belongs to
        :raises SourceTooLarge: the file or host names more processes and ranks than a pod can have
        :raises ParseError: the log names more than a log of its length, or any job, can name
        """
        source = None
        if self._sources:
            source = self._file.name if self._sources == "files" and self._file is not None else host
        try:
            self._budget.keep(cost, source)
        except LogTooLarge:
            ranks = self._count_all_ranks()
            named = f"{len(self._threads)} threads of {len(self._processes)} processes, and {ranks} ranks"
            expected = (
                "at most what NCCL logs for this many processes. A program of the job forges lines of NCCL. Provide"
                " the log of one job as NCCL wrote it"
            )
            seen = f"{self._budget.characters} characters up to line {self._lines} with {named}"
            raise ParseError("NCCL's log", seen, expected) from None

    def _read_info(self, before: str, message: str) -> None:
        """Read a line of level INFO, or count it as torn if its head has another form.

        :param before: head of the line
        :param message: rest of the line
        """
        thread = self._find_thread(before)
        if thread is None:
            self._torn += 1
        else:
            self._messages.read_message(thread, message)

    def _find_thread(self, before: str) -> typing.Optional[LogThread]:
        """Return the thread that wrote a line, which is added to the result if it is new. Return None if the text
        before the message is not a valid line head of NCCL, or if its host was left out.

        :param before: text of the line before the message
        :raises _OtherHost: the line is from another host than the only one whose lines are used in the file
        """
        token = before.rpartition(" [")[0].rpartition(" ")[2]
        thread = self._threads.get(token)
        if thread is None:
            head = self._parse_head(before)
            if head is None:
                return None
            key = head[1], int(head[2])
            if self._sources == "hosts" and head[1] in self._left_out:
                return None
            process = self._processes.get(key)
            if process is None:
                self._charge_memory_budget(OF_PROCESS, key[0])
                process = self._processes[key] = LogProcess(*key)
            self._charge_memory_budget(OF_THREAD, key[0])
            thread = self._threads[token] = LogThread(process)
            if self._file is not None:
                self._add_file(process, self._file)
        return thread

    def _parse_head(self, before: str) -> typing.Optional[re.Match[str]]:
        """Match the head of a line, which names the host, the process and the thread. Return None if the text is not a
        valid line head of NCCL.

        :param before: text of the line before the message
        :raises _OtherHost: the line is from another host than the only one whose lines are used in the file
        """
        head = _HEAD.fullmatch(before)
        if head is not None and self.host is not None and head[1] != self.host:
            raise _OtherHost
        return head

    def _add_file(self, process: LogProcess, file: LogFile) -> None:
        """Record that a file contains lines of a process.

        :raises ParseError: the log names more than a log of its length can name
        """
        places = process.files = process.files or []
        if not places or places[-1] is not file:
            places.append(file)
            file.hosts[process.host] = None
            self._charge_memory_budget(OF_PLACE, process.host)

    def _read_warning(self, before: str, message: str) -> None:
        """Read a line of level WARN: keep its text as a problem of its host. A line that contains another line, or
        whose head has another form, counts as torn. NCCL's advice is left out.

        :param before: head of the line
        :param message: rest of the line
        """
        head = self._parse_head(before)
        if head is None or any(level in message for level in _LEVELS):
            self._torn += 1
            return
        if message.startswith(_ADVICE):
            return
        process = self._processes.get((head[1], int(head[2])))
        if self._file is not None and head[1] not in self._file.hosts:
            # the host is counted like that of a line of level INFO, since any program can write this line
            self._file.hosts[head[1]] = None
            self._charge_memory_budget(OF_PLACE, head[1])
        own = (process.oob[1], process.bootstrap[1]) if process else ()
        self._problems.add_text(message, self._lines, head[1], head[4] or "", own)
