# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of the programs of nccl-tests and rccl-tests (all_reduce_perf and the others), as a table or as JSON
(option -J).

Format: [src NVIDIA/nccl-tests v2.0.0 to v2.19.6: src/common.cu, src/util.cu]. The names of the columns determine the
meaning of the words in a row.

With NCCL_DEBUG=INFO, a line of NCCL can follow each piece of a row without an end of line between them, and further
lines of NCCL precede the next piece. The output is read once, line by line, and the number of items that are kept is
limited.
"""

from __future__ import annotations

import io
import re
import typing

from ...._model.base.errors import ParseError
from ...._model.job.nccl_tests import NcclTests
from .tests_json import parse_json
from .tests_run import NUMBER, NcclTestsRun

#: characters of a line that are read
_LONGEST = 2000
#: runs of a log
_RUNS = 64
#: lines and pieces of tests that are read, and characters that the shortest of them has
_MOST, _SHORTEST = 20_000, 20
#: characters of a number of a row
_MOST_OF_A_NUMBER = 34

#: the last word of a piece, with the host of the line of NCCL that follows it
_GLUED = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[+-][0-9]{2})?|N/A)([A-Za-z_][A-Za-z0-9_-]{0,252})?")
_STAMP = re.compile(r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]{8,20}\] ")
#: beginnings of the lines of a test that are read, among them the line of the columns
_COMMENTS = (
    "# nccl-tests version ",
    "# Collective test ",
    "# nThread ",
    "#  Rank ",
    "#   Rank ",
    "# Reducing maxBytes ",
    "# Out of bounds values ",
    "# Avg bus bandwidth ",
    "#       size ",
)
_BEGINS = ("# nccl-tests version ", "# Collective test starting: ", "# nThread ")
#: texts in the line of a failure
_FAILURES = (
    "Test failure ",
    "Test CUDA failure ",
    "Test NCCL failure ",
    "Test timeout (",
    "Test hip failure ",
    "Invalid number of GPUs",
    "invalid size specified",
    "invalid sizes for",
)
_NCCL_FAILURE = " NCCL failure "
#: text that a launcher writes before the line of a failure
_TAG = re.compile(r"\[[0-9]{1,9},[0-9]{1,9}\]<std(?:out|err)>: ?")


def parse(lines: typing.Iterable[str]) -> tuple[NcclTests, ...]:
    """Parse the runs of nccl-tests in a log, in their order. The result is empty if no line is from nccl-tests.

    :param lines: the lines with their ends, as a file yields them. A line without its end is ignored
    """
    reader = NcclTestsReader()
    for line in lines:
        reader.read(line)
    return reader.runs()


def parse_text(text: str) -> tuple[NcclTests, ...]:
    """Parse the runs of nccl-tests in a text, in their order. The result is empty if no line is from nccl-tests."""
    return parse(io.StringIO(text, newline="\n"))


class NcclTestsReader:
    """A parser that collects the runs of nccl-tests from a log. It gets the log line by line, so that another parser
    can read the same lines.
    """

    def __init__(self) -> None:
        self._runs: list[typing.Union[NcclTestsRun, NcclTests]] = []
        self._run: typing.Optional[NcclTestsRun] = None
        self._read = 0

    def watch(self, lines: typing.Iterable[str]) -> typing.Iterator[str]:
        """Yield each line unchanged, after it was parsed as output of nccl-tests. Another reader of the log can consume
        the lines that this function yields.

        :param lines: lines of the log with their ends
        """
        for line in lines:
            self.read(line)
            yield line

    def read(self, line: str) -> None:
        """Parse one line of the log, and add its contents to the current run. A line that is not from nccl-tests, is
        too long or has no end is ignored.

        :param line: line with its end
        """
        if len(line) < _SHORTEST:
            return
        place = line.find(" NCCL ", 0, _LONGEST)
        # "Test NCCL failure" is of the test itself
        if place >= 0 and not line.startswith(_NCCL_FAILURE, place):
            # a row has two spaces between its columns, and the head of NCCL's messages has none
            if self._run is not None and self._run.columns is not None and "  " in line[:place]:
                words = _split_before_nccl(line[:place], self._run.hosts)
                if words and self._count_line(self._run):
                    self._run.read_piece(words)
        elif line.startswith('{"version":') and '"nccl_version":' in line:
            self._read_json(line)
        elif len(line) <= _LONGEST and line.endswith("\n"):
            self._read_line_of_test(line)

    def _read_line_of_test(self, line: str) -> None:
        """Parse a line that was not written by NCCL, and so may be written by nccl-tests. Any other line is ignored.

        :param line: line with its end
        """
        begin = line.find("# ")
        if begin >= 0 and line.startswith(_COMMENTS, begin):
            text = line[begin:].rstrip()
            if text.startswith(_BEGINS):
                self._begin_run(text)
            if self._run is not None and self._count_line(self._run):
                self._run.read_comment(text)
        elif self._run is None:
            return
        elif ("ailure " in line or "nvalid " in line or "imeout " in line) and any(word in line for word in _FAILURES):
            self._run.add_error(_TAG.sub("", line.strip()))
        elif self._run.columns is not None and "  " in line and self._count_line(self._run):
            self._run.read_piece(line.split())

    def _count_line(self, run: NcclTestsRun) -> bool:
        """Add 1 to the number of lines, or pieces of table lines, that were read. If the limit for all runs is
        exceeded, mark the run as incomplete.

        :returns: whether the line may be parsed, because the limit is not exceeded
        """
        self._read += 1
        run.overrun = run.overrun or self._read > _MOST
        return self._read <= _MOST

    def runs(self) -> tuple[NcclTests, ...]:
        """Return the results of the runs read so far, at most 64, including the run that has not ended."""
        return tuple(run.build_run() if isinstance(run, NcclTestsRun) else run for run in self._runs)

    def _begin_run(self, text: str) -> None:
        """Begin a run at a line of its head, unless the line belongs to the head of the current run. Beyond the limits,
        no run begins.

        :param text: line that begins with one of ``_BEGINS``
        """
        word = next(word for word in _BEGINS if text.startswith(word))
        if self._run is None or word in self._run.begun or self._run.titled:
            self._run = None
            if len(self._runs) >= _RUNS or self._read >= _MOST:
                return
            self._run = NcclTestsRun()
            self._runs.append(self._run)
        self._run.begun.add(word)

    def _read_json(self, line: str) -> None:
        """Read a run in JSON. A text that is no such run, or a run beyond the limit, is left out."""
        if len(self._runs) < _RUNS:
            try:
                self._runs.append(parse_json(line))
            except ParseError:
                return


def _split_before_nccl(text: str, hosts: typing.AbstractSet[str]) -> list[str]:
    """Return the words of the beginning of a table line that is followed by a message of NCCL on the same line. Return
    an empty list if it is not clear where the table line ends and the head of NCCL's message begins.

    :param text: text before the word NCCL: the beginning of the table line, followed by ``host:pid:thread [gpu]``
    :param hosts: names of the hosts of the job
    """
    stamp = _STAMP.search(text)
    if stamp:
        return text[: stamp.start()].split()
    words = text.rpartition(" [")[0].rpartition(":")[0].rpartition(":")[0].split()
    if not words:
        return []
    last = words.pop()
    ends = {last[:end] for end in range(min(len(last), _MOST_OF_A_NUMBER) + 1) if last[end:] in hosts}
    ends = {end for end in ends if end == "N/A" or NUMBER.fullmatch(end.lstrip("-"))}
    if not ends:
        glued = _GLUED.fullmatch(last)
        ends = {glued[1]} if glued and glued[2] else set()
    return [*words, *ends] if len(ends) == 1 else []
