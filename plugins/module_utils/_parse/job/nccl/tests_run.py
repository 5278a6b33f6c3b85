# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of a program of nccl-tests: its parameters, its ranks, and the rows of its table.

The process of rank 0 writes a row in three pieces: the columns from size to root, the figures out of place, and the
figures in place. A row counts if all its pieces were read and are consistent. The algorithm bandwidth must be the bytes
divided by the time, and the bus bandwidth at most twice the algorithm bandwidth.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ...._model.base.phrases import count_of
from ...._model.job.nccl_tests import NcclTestFigure, NcclTestRank, NcclTestRow, NcclTests
from .tests_row import WITH_ITERATIONS, OpenRow, TableColumns

#: rows, ranks and errors of a run
MOST_ROWS, MOST_RANKS, _ERRORS = 2000, 4096, 20
#: words of a launcher that may precede a row
_BEFORE = 12
#: largest factor from algorithm to bus bandwidth: all_reduce on very many ranks
_FACTOR = 2.0
#: largest difference between the mean of the rows and the average of the summary, as a part of the mean
_MEAN = 0.02
#: tests whose bytes of the table are not those of the algorithm bandwidth
_OWN_BYTES = ("hypercube", "alltoallv")
#: a size, with the text that a launcher may write right before it: "[1,0]<stdout>:1048576000000"
_SIZE = re.compile(r"(?:\S{0,200}[\]>:|])?([0-9]{1,15})")
_COUNT = re.compile(r"[0-9]{1,15}")
TYPE = re.compile(r"[a-z][a-z0-9_]{1,15}")
ROOT = re.compile(r"-?[0-9]{1,7}")
#: the average of a slow network has six digits behind its zeros: 0.00964234
NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:e[+-][0-9]{2})?")
_DAY, _CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_PARAMETERS = re.compile(
    r"# nThread [0-9]{1,6} nGpus [0-9]{1,6} minBytes ([0-9]{1,15}) maxBytes ([0-9]{1,15}) step:"
    r" ([0-9]{1,15})\((factor|bytes)\) .{1,300}"
)
_VERSION = re.compile(r"# nccl-tests version (\S{1,40}) nccl-headers=[0-9]{1,9} nccl-library=([0-9]{1,9})")
_STARTING = re.compile(r"# Collective test starting: (\S{1,100})")
_CONCLUDED = re.compile(r"# Collective test concluded: (\S{1,100})")
_RANK = re.compile(
    r"# {1,4}Rank {1,8}([0-9]{1,7})(?: Group {1,8}([0-9]{1,7}))? Pid {1,10}([0-9]{1,10}) on {1,20}(\S{1,253}) device"
    r" {1,4}([0-9]{1,4}) "
    r"\[([0-9a-fA-Fx:.]{1,20})\] (.{1,100})"
)
_REDUCED = re.compile(r"# Reducing maxBytes to ([0-9]{1,15}) due to memory limitation")
_BOUNDS = re.compile(r"# Out of bounds values {0,20}: ([0-9]{1,10}) (OK|FAILED)")
_AVERAGE = re.compile(r"# Avg bus bandwidth {0,20}: (\S{1,20})(?: (?:OK|FAILED))?")


@dataclasses.dataclass
class NcclTestsRun:
    """A run of a program of nccl-tests, with the contents of the lines that were read so far.

    :ivar begun: beginnings of the comment lines before the table that were read
    :ivar columns: layout of the table; None before the line with the names of the columns, and after the end of the run
    :ivar titled: whether the line with the names of the columns was read
    :ivar overrun: whether the log has more lines of the run than the limit
    :ivar open: table line that is not complete yet; None if the last table line is complete
    :ivar cpu_time: whether the figures are times of the CPU instead of the GPU
    :ivar starting: whether the line about the start of the collective was read
    :ivar concluded: whether the line about the end of the collective was read
    :ivar collective: name of the collective, such as ``all_reduce``; empty if not known
    :ivar version: version of nccl-tests; empty if not known
    :ivar library: release of NCCL; empty if not known
    :ivar span: smallest size and largest size in bytes, step, and whether the step is a factor; None before the line of
        the parameters
    :ivar reduced: largest size to which the program reduced the requested one, in bytes; None if it did not
    :ivar ranks: ranks that the program listed
    :ivar hosts: names of the hosts of these ranks, without their domains
    :ivar rows: complete lines of the table, one for each message size
    :ivar unfinished: message sizes in bytes of table lines that were not completed
    :ivar bounds: different numbers of values out of bounds, as the summary prints them
    :ivar averages: different average bus bandwidths in GB/s, as the summary prints them
    :ivar errors: lines of failures; the values are None
    :ivar torn: number of table lines and summaries that are incomplete or contradict themselves
    """

    begun: set[str] = dataclasses.field(default_factory=set)
    columns: typing.Optional[TableColumns] = None
    titled: bool = False
    overrun: bool = False
    open: typing.Optional[OpenRow] = None
    cpu_time: bool = False
    starting: bool = False
    concluded: bool = False
    collective: str = ""
    version: str = ""
    library: str = ""
    span: typing.Optional[tuple[int, int, int, bool]] = None
    reduced: typing.Optional[int] = None
    ranks: list[NcclTestRank] = dataclasses.field(default_factory=list)
    hosts: set[str] = dataclasses.field(default_factory=set)
    rows: list[NcclTestRow] = dataclasses.field(default_factory=list)
    unfinished: list[int] = dataclasses.field(default_factory=list)
    bounds: set[int] = dataclasses.field(default_factory=set)
    averages: set[float] = dataclasses.field(default_factory=set)
    errors: dict[str, None] = dataclasses.field(default_factory=dict)
    torn: int = 0

    def set_program(self, program: str) -> None:
        """Set the collective, such as ``all_reduce``, from the path of the program, such as ``./all_reduce_perf``."""
        self.collective = _find_collective(program)

    def set_library(self, number: int) -> None:
        """Set the release of NCCL from its version number, such as 22809 for 2.28.9. 0 means that the release is
        unknown.
        """
        self.library = _format_release(number)

    def read_comment(self, text: str) -> None:
        """Read a line that begins with ``#``: the names of the columns, a rank, the summary, or another line before or
        after the table. A line of any other form is ignored.

        :param text: line without its end
        """
        if text.startswith("#       size "):
            self._read_columns(text.split())
        elif text.startswith(("#  Rank ", "#   Rank ")):
            self._read_rank(text)
        elif text.startswith(("# Out of bounds", "# Avg bus")):
            self._read_summary(text)
        else:
            self._read_frame(text)

    def _read_frame(self, text: str) -> None:
        """Read a line before or after the table: the parameters, the versions, the start or the end of the run. A line
        of any other form is ignored.
        """
        parameters, reduced, version = _PARAMETERS.fullmatch(text), _REDUCED.fullmatch(text), _VERSION.fullmatch(text)
        starting, concluded = _STARTING.fullmatch(text), _CONCLUDED.fullmatch(text)
        if parameters:
            self.span = int(parameters[1]), int(parameters[2]), int(parameters[3]), parameters[4] == "factor"
        elif reduced and self.span is not None:
            self.reduced = int(reduced[1])
            self.span = min(self.span[0], self.reduced), self.reduced, self.span[2], self.span[3]
        elif version:
            self.version = version[1]
            self.set_library(int(version[2]))
        elif starting:
            self.starting = True
            self.set_program(starting[1])
        elif concluded:
            # the end of another test is not the end of this one
            self.concluded = _find_collective(concluded[1]) == self.collective
            self.end_row()
            self.columns = None

    def _read_rank(self, text: str) -> None:
        """Read a line about a rank, and keep the rank and its host. A rank beyond the limit is left out."""
        rank = _RANK.fullmatch(text) if len(self.ranks) < MOST_RANKS else None
        if rank:
            number, group, pid, host, gpu, bus_id, model = rank.groups()
            self.ranks.append(NcclTestRank(int(number), int(group or 0), int(pid), host, int(gpu), bus_id, model))
            self.hosts.add(host.partition(".")[0])

    def _read_summary(self, text: str) -> None:
        """Read a line of the summary: the number of values out of bounds, or the average bus bandwidth. A line that
        contradicts itself counts as torn.
        """
        self.end_row()
        bounds, average = _BOUNDS.fullmatch(text), _AVERAGE.fullmatch(text)
        if bounds and len(self.bounds) < 2:
            self.bounds.add(int(bounds[1]))
            # word and number say the same
            self.torn += (int(bounds[1]) > 0) != (bounds[2] == "FAILED")
        elif average and NUMBER.fullmatch(average[1]) and len(self.averages) < 2:
            self.averages.add(float(average[1]))

    def _read_columns(self, words: typing.Sequence[str]) -> None:
        """Derive the layout of the table from the names of its columns. A line with other columns than expected is
        ignored.

        :param words: words of the line with the names of the columns
        """
        if words[1:4] != ["size", "count", "type"] or "algbw" not in words:
            return
        first = words.index("algbw") - 1
        keys, places = tuple(words[4:first]), words.count("algbw")
        if len(set(keys)) == len(keys) and set(keys) <= {"redop", "root"} and places <= 2:
            self.titled, self.cpu_time = True, words[first] == "cputime"
            self.columns = TableColumns(keys, WITH_ITERATIONS if "i_min" in words else 4, places, "error" in words)

    def read_piece(self, words: typing.Sequence[str]) -> None:
        """Read a table line, or one of the three pieces in which nccl-tests prints it. Words of another form are
        ignored, and so are all words before the names of the columns.

        :param words: words of a line of the log
        """
        if self.columns is None:
            return
        if len(words) > 2 and _DAY.fullmatch(words[-2]) and _CLOCK.fullmatch(words[-1]):
            words = words[:-2]
        for place in range(2, min(len(words), _BEFORE)):
            size = _SIZE.fullmatch(words[place - 2])
            if size and _COUNT.fullmatch(words[place - 1]) and TYPE.fullmatch(words[place]):
                self.end_row()
                rest = words[place + 1 :]
                # alltoall of versions before 2.13 has the column, and nothing in it
                blank = "redop" in self.columns.keys and rest and not TYPE.fullmatch(rest[0])
                keys = dict(zip(self.columns.keys, ["none", *rest] if blank else rest))
                if (
                    len(keys) == len(self.columns.keys)
                    and TYPE.fullmatch(keys.get("redop", "none"))
                    and ROOT.fullmatch(keys.get("root", "-1"))
                ):
                    self.open = OpenRow(int(size[1]), int(words[place - 1]), words[place], keys)
                    self._add_figures(rest[len(keys) - bool(blank) :])
                return
        if self.open is not None:
            # words of a launcher may stand before it
            first = next((place for place, word in enumerate(words) if NUMBER.fullmatch(word)), len(words))
            self._add_figures(words[first:])

    def _add_figures(self, words: typing.Sequence[str]) -> None:
        """Add columns to the open row. A complete row is built and kept. Columns of another form are left out.

        :param words: columns of one line
        """
        if self.open is None or self.columns is None or not words or len(words) % self.columns.width:
            return
        if not all(NUMBER.fullmatch(word) or word == "N/A" for word in words):
            return
        self.open.words += words
        if len(self.open.words) >= self.columns.width * self.columns.places:
            row, self.open = self.open, None
            self.add_row(row.build(self.columns))

    def add_row(self, row: typing.Optional[NcclTestRow]) -> None:
        """Add a line to the table if its figures are consistent. Otherwise count it as torn.

        :param row: parsed table line; None if its words could not be parsed, which also counts as torn
        """
        if row is None or not (
            self.cpu_time or all(_is_consistent(row, figure, self.collective) for figure in row.figures)
        ):
            self.torn += 1
        elif len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        else:
            self.overrun = True

    def end_row(self) -> None:
        """Record the message size of the table line that is not complete yet as unfinished, because its end is missing
        in the log. Do nothing if the last table line is complete.
        """
        if self.open is not None and len(self.unfinished) < MOST_ROWS:
            self.unfinished.append(self.open.size)
        self.open = None

    def add_error(self, text: str) -> None:
        """Add the line of a failure, cut to 300 characters. Lines beyond the limit of 20 are ignored."""
        if text and len(self.errors) < _ERRORS:
            self.errors[text[:300]] = None

    def build_run(self) -> NcclTests:
        """Return the run in the form in which it is stored as a fact, with the reasons why it is incomplete. A table
        line that is not complete yet counts as unfinished.
        """
        self.end_row()
        average = next(iter(self.averages)) if len(self.averages) == 1 else None
        bounds = next(iter(self.bounds)) if len(self.bounds) == 1 else None
        announced = _parse_rows(self.span)
        concluded = self.concluded if self.starting else bool(self.averages)
        return NcclTests(
            self.collective,
            self.version,
            self.library,
            tuple(self.ranks),
            announced,
            self.cpu_time,
            tuple(self.rows),
            tuple(self.unfinished),
            bounds,
            average,
            concluded,
            tuple(self.errors),
            self.torn,
            tuple(self._list_faults(announced, bounds, average, concluded)),
            reduced_bytes=self.reduced,
        )

    def _list_faults(
        self,
        announced: typing.Optional[int],
        bounds: typing.Optional[int],
        average: typing.Optional[float],
        concluded: bool,
    ) -> typing.Iterator[str]:
        """Yield the reasons why the output of the run is not that of one complete test.

        :param announced: number of rows of each type, operation and root, as the head announces it; None if unknown
        :param bounds: number of values out of bounds in the summary; None without a unique one
        :param average: average bus bandwidth in the summary, in GB/s; None without a unique one
        :param concluded: whether the output has its end
        """
        for error in tuple(self.errors)[:1]:
            yield f"the test failed: {error}"
        if self.overrun:
            yield "the log of the run is longer than this collection reads"
        if self.unfinished:
            yield f"the row of {self.unfinished[0]} bytes is incomplete"
        if self.torn:
            yield (
                f"{count_of(self.torn, 'row or summary is', 'rows or summaries are')} incomplete, or"
                f" {'contradicts itself' if self.torn == 1 else 'contradict themselves'}"
            )
        if not self.rows:
            yield "the output contains no complete row"
        elif len({(row.size_bytes, row.type, row.operation, row.root) for row in self.rows}) < len(self.rows):
            # all ranks of a job write into one text
            yield (
                "several rows have the same size, type, operation and root, so another rank or program printed some of"
                " them"
            )
        elif announced and len(self.rows) % announced:
            yield (
                f"the output contains {count_of(len(self.rows), 'row')}, but the test announced {announced} for each"
                " type, operation and root"
            )
        if bounds is None or average is None:
            yield "the summary is missing, or the output contains different summaries"
        elif self.rows and not self.cpu_time:
            buses = [figure.bus_gbs for row in self.rows for figure in row.figures]
            mean = sum(buses) / len(buses)
            if abs(mean - average) > _MEAN * mean + 0.01:
                yield f"the mean of the rows is not the {average:g} GB/s of the summary"
        if not concluded:
            yield "the end of the output is missing"


def _is_consistent(row: NcclTestRow, figure: NcclTestFigure, collective: str) -> bool:
    """Return whether a table line contains figures that are consistent: the algorithm bandwidth is the bytes divided by
    the time, within the rounding of the printed digits, and the bus bandwidth is at most twice the algorithm bandwidth.
    For collectives with their own definition of bytes, only the second condition is checked.

    :param row: table line with the message size
    :param figure: time and bandwidths, out of place or in place
    :param collective: name of the collective, such as ``all_reduce``; empty if not known
    """
    error = max(0.0051, 0.0051 * max(figure.algorithm_gbs, figure.bus_gbs))
    if figure.bus_gbs > _FACTOR * figure.algorithm_gbs + 3 * error:
        return False
    if not figure.time_us:
        # nothing is moved in no time
        return not figure.algorithm_gbs and not figure.bus_gbs
    if collective in _OWN_BYTES:
        return True
    # two decimals below 1000 us, and five digits above
    rounding = max(0.0051, figure.time_us * 5e-5)
    highest = row.size_bytes / max(figure.time_us - rounding, 1e-9) / 1000 + error
    lowest = row.size_bytes / (figure.time_us + rounding) / 1000 - error
    # until 2020 the algorithm bandwidth of all_gather was less by (ranks - 1) / ranks, and those versions do not say
    # which test they are
    return lowest * (1.0 if collective else 0.49) <= figure.algorithm_gbs <= highest


def _parse_rows(span: typing.Optional[tuple[int, int, int, bool]]) -> typing.Optional[int]:
    """Return the number of lines of a complete table: the number of message sizes from the smallest to the largest.
    Return None if it is unknown, or if the parameters are not valid.

    :param span: smallest size, largest size, step, and whether the step is a factor; None if the run did not print them
    """
    if span is None:
        return None
    least, most, step, by_factor = span
    if least > most or (by_factor and (least == 0 or step < 2)) or not step:
        return None
    if not by_factor:
        return (most - least) // step + 1
    count = 0
    while least <= most:
        count, least = count + 1, least * step
    return count


def _find_collective(program: str) -> str:
    name = program.rpartition("/")[2]
    for end in (".exe", "_mpi", "_perf"):
        name = name[: -len(end)] if name.endswith(end) else name
    return name if re.fullmatch(r"[a-z_]{1,20}", name) else ""


def _format_release(code: int) -> str:
    """Return the release of a version number of NCCL: 22809 is 2.28.9, and 2708 is 2.7.8. Return an empty string
    for 0.

    :param code: version number as ``ncclGetVersion`` returns it
    """
    if not code:
        return ""
    return (
        f"{code // 1000}.{code // 100 % 10}.{code % 100}"
        if code < 10000
        else f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    )
