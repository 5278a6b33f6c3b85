# SPDX-License-Identifier: GPL-3.0-or-later

"""What the programs of nccl-tests and rccl-tests print (all_reduce_perf and the others): a table for a reader, or JSON
(option -J).

Format: [src NVIDIA/nccl-tests v2.0.0 to v2.19.6: src/common.cu, src/util.cu]. The names of the columns tell what a row
has.

The process of rank 0 writes a row in three pieces: size to root, figures out of place, figures in place. With
NCCL_DEBUG=INFO a line of NCCL follows each piece without an end of line between them, and others come before the next
piece. A row counts when all its pieces are there and agree: bytes by time are the algorithm bandwidth, and no factor
from there to the bus bandwidth is above 2.

One pass, line by line; what is kept is bounded.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.job.nccl_tests import NcclTestFigure, NcclTestRank, NcclTestRow, NcclTests

#: signs of a line that are looked at, and signs of a JSON document
_LONGEST, _LONGEST_JSON = 2000, 1 << 22
#: runs, rows of a run, ranks of a run, errors of a run
_RUNS, _ROWS, _RANKS, _ERRORS = 64, 2000, 4096, 20
#: lines and pieces of tests that are read, and signs that the shortest of them has
_MOST, _SHORTEST = 20_000, 20
#: words that may stand before a row: those of a launcher
_BEFORE = 12
#: words of the figures of one place, with option -I
_WITH_ITERATIONS = 8
#: largest factor from algorithm to bus bandwidth: all_reduce on very many ranks
_FACTOR = 2.0
#: how far the mean of the rows may be from the average of the summary
_MEAN = 0.02
#: tests whose bytes of the table are not those of the algorithm bandwidth
_OWN_BYTES = ("hypercube", "alltoallv")

#: of a size, with what a launcher may put right before it: "[1,0]<stdout>:1048576000000"
_SIZE = re.compile(r"(?:\S{0,200}[\]>:|])?([0-9]{1,15})")
_COUNT = re.compile(r"[0-9]{1,15}")
_TYPE = re.compile(r"[a-z][a-z0-9_]{1,15}")
_ROOT = re.compile(r"-?[0-9]{1,7}")
#: the average of a slow network has six digits behind its zeros: 0.00964234
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:e[+-][0-9]{2})?")
#: the last word of a piece, with the host of the line of NCCL that follows it
_GLUED = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[+-][0-9]{2})?|N/A)([A-Za-z_][A-Za-z0-9_-]{0,252})?")
_STAMP = re.compile(r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]{8,20}\] ")
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

#: what the lines of a test begin with that are read; that of the columns among them
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
#: what a line of a failure has in it
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
#: what a launcher puts before a line of a failure
_TAG = re.compile(r"\[[0-9]{1,9},[0-9]{1,9}\]<std(?:out|err)>: ?")


def parse(lines: typing.Iterable[str]) -> tuple[NcclTests, ...]:
    """Return the runs that lines show, in their order; none where nothing is of nccl-tests.

    :param lines: with their ends, as a file gives them; a line without its end is left out
    """
    reader = NcclTestsReader()
    for line in lines:
        reader.read(line)
    return reader.runs()


def parse_text(text: str) -> tuple[NcclTests, ...]:
    """Return the same of a text."""
    return parse(io.StringIO(text, newline="\n"))


def parse_json(text: str) -> NcclTests:
    """Return the run that a document of option -J holds. Its list of the environment is not looked at.

    :raises ParseError: no whole JSON object, or not one of nccl-tests
    """
    try:
        data = json.loads(text) if len(text) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        data = None
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("results"), list)
        or not isinstance(data.get("config"), dict)
    ):
        raise ParseError("nccl-tests", text, "a whole JSON object of option -J, with config and results")
    config, run = data["config"], _Run()
    program = data.get("args")
    run.collective = _collective(_word(program[0])) if isinstance(program, list) and program else ""
    run.library = _release(_whole(data.get("nccl_version")) or 0)
    devices = config.get("devices")
    run.ranks = list(filter(None, map(_parse_json_rank, devices[:_RANKS] if isinstance(devices, list) else ())))
    least, most, factor, step = (
        _whole(config.get(name)) for name in ("minimum_bytes", "maximum_bytes", "step_factor", "step_bytes")
    )
    if least is not None and most is not None and (factor or step):
        run.span = (least, most, factor or step or 0, bool(factor))
    for item in data["results"][: _ROWS + 1]:
        run.cpu_time = run.cpu_time or (
            isinstance(item, dict) and any("cpu_time" in part for part in item.values() if isinstance(part, dict))
        )
        run.add(_parse_json_row(item))
    # misspelt before 2.17.9
    bounds, average = data.get("out_of_bounds"), data.get("average_bus_bandwidth", data.get("average_bus_bandwidith"))
    count = _whole(bounds.get("count")) if isinstance(bounds, dict) else None
    run.bounds = {count} if count is not None else set()
    mean = _real(average.get("bandwidth", average.get("bandwidith"))) if isinstance(average, dict) else None
    run.averages = {mean} if mean is not None else set()
    run.starting, run.concluded = True, bool(_word(data.get("end_time")))
    for error in data["errors"] if isinstance(data.get("errors"), list) else ():
        run.fail(_word(error))
    return run.freeze()


class NcclTestsReader:
    """Takes a log line by line, so that another parser can read the same lines."""

    def __init__(self) -> None:
        self._runs: list[typing.Union[_Run, NcclTests]] = []
        self._run: typing.Optional[_Run] = None
        self._read = 0

    def watch(self, lines: typing.Iterable[str]) -> typing.Iterator[str]:
        """Give the lines on as they are, and read each."""
        for line in lines:
            self.read(line)
            yield line

    def read(self, line: str) -> None:
        """Take one line with its end."""
        if len(line) < _SHORTEST:
            return
        place = line.find(" NCCL ", 0, _LONGEST)
        # "Test NCCL failure" is of the test itself
        if place >= 0 and not line.startswith(_NCCL_FAILURE, place):
            # two spaces stand between the columns of a row, and none in what NCCL writes before its messages
            if self._run is not None and self._run.columns is not None and "  " in line[:place]:
                words = _before_nccl(line[:place], self._run.hosts)
                if words and self._may(self._run):
                    self._run.piece(words)
        elif line.startswith('{"version":') and '"nccl_version":' in line:
            self._json(line)
        elif len(line) <= _LONGEST and line.endswith("\n"):
            self._own(line)

    def _own(self, line: str) -> None:
        """Take a line that is none of NCCL's."""
        begin = line.find("# ")
        if begin >= 0 and line.startswith(_COMMENTS, begin):
            text = line[begin:].rstrip()
            if text.startswith(_BEGINS):
                self._begin(text)
            if self._run is not None and self._may(self._run):
                self._run.comment(text)
        elif self._run is None:
            return
        elif ("ailure " in line or "nvalid " in line or "imeout " in line) and any(word in line for word in _FAILURES):
            self._run.fail(_TAG.sub("", line.strip()))
        elif self._run.columns is not None and "  " in line and self._may(self._run):
            self._run.piece(line.split())

    def _may(self, run: _Run) -> bool:
        """Return whether one more line or piece is read; a run that loses one is not whole."""
        self._read += 1
        run.overrun = run.overrun or self._read > _MOST
        return self._read <= _MOST

    def runs(self) -> tuple[NcclTests, ...]:
        """Return the runs so far, 64 at most."""
        return tuple(run.freeze() if isinstance(run, _Run) else run for run in self._runs)

    def _begin(self, text: str) -> None:
        word = next(word for word in _BEGINS if text.startswith(word))
        if self._run is None or word in self._run.begun or self._run.titled:
            self._run = None
            if len(self._runs) >= _RUNS or self._read >= _MOST:
                return
            self._run = _Run()
            self._runs.append(self._run)
        self._run.begun.add(word)

    def _json(self, line: str) -> None:
        if len(self._runs) < _RUNS:
            try:
                self._runs.append(parse_json(line))
            except ParseError:
                return


@dataclasses.dataclass
class _Columns:
    """The positions of the columns, by their names.

    :ivar keys: between type and time: redop, root
    :ivar width: words of the figures of one place
    :ivar places: 2 where figures are there out of place and in place
    :ivar largest_error: the fourth is the largest error, and no number of wrong values
    """

    keys: tuple[str, ...]
    width: int
    places: int
    largest_error: bool


@dataclasses.dataclass
class _Open:
    """A row of which not all pieces are there."""

    size: int
    count: int
    type: str
    keys: dict[str, str]
    words: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Run:
    """A run while it is read.

    :ivar columns: from the line of their names to the end of the run
    :ivar titled: that line was there
    :ivar overrun: more of it is there than is read
    """

    begun: set[str] = dataclasses.field(default_factory=set)
    columns: typing.Optional[_Columns] = None
    titled: bool = False
    overrun: bool = False
    open: typing.Optional[_Open] = None
    cpu_time: bool = False
    starting: bool = False
    concluded: bool = False
    collective: str = ""
    version: str = ""
    library: str = ""
    span: typing.Optional[tuple[int, int, int, bool]] = None
    ranks: list[NcclTestRank] = dataclasses.field(default_factory=list)
    hosts: set[str] = dataclasses.field(default_factory=set)
    rows: list[NcclTestRow] = dataclasses.field(default_factory=list)
    unfinished: list[int] = dataclasses.field(default_factory=list)
    bounds: set[int] = dataclasses.field(default_factory=set)
    averages: set[float] = dataclasses.field(default_factory=set)
    errors: dict[str, None] = dataclasses.field(default_factory=dict)
    torn: int = 0

    def comment(self, text: str) -> None:
        """Take a line that begins as one of the test's."""
        if text.startswith("#       size "):
            self._title(text.split())
        elif text.startswith(("#  Rank ", "#   Rank ")):
            self._rank(text)
        elif text.startswith(("# Out of bounds", "# Avg bus")):
            self._summary(text)
        else:
            self._frame(text)

    def _frame(self, text: str) -> None:
        """Take what stands before the table or behind it."""
        parameters, reduced, version = _PARAMETERS.fullmatch(text), _REDUCED.fullmatch(text), _VERSION.fullmatch(text)
        starting, concluded = _STARTING.fullmatch(text), _CONCLUDED.fullmatch(text)
        if parameters:
            self.span = int(parameters[1]), int(parameters[2]), int(parameters[3]), parameters[4] == "factor"
        elif reduced and self.span is not None:
            self.span = min(self.span[0], int(reduced[1])), int(reduced[1]), self.span[2], self.span[3]
        elif version:
            self.version, self.library = version[1], _release(int(version[2]))
        elif starting:
            self.starting, self.collective = True, _collective(starting[1])
        elif concluded:
            # the word of another test is none of its own
            self.concluded = _collective(concluded[1]) == self.collective
            self.close()
            self.columns = None

    def _rank(self, text: str) -> None:
        rank = _RANK.fullmatch(text) if len(self.ranks) < _RANKS else None
        if rank:
            number, group, pid, host, gpu, bus_id, model = rank.groups()
            self.ranks.append(NcclTestRank(int(number), int(group or 0), int(pid), host, int(gpu), bus_id, model))
            self.hosts.add(host.partition(".")[0])

    def _summary(self, text: str) -> None:
        self.close()
        bounds, average = _BOUNDS.fullmatch(text), _AVERAGE.fullmatch(text)
        if bounds and len(self.bounds) < 2:
            self.bounds.add(int(bounds[1]))
            # word and number say the same
            self.torn += (int(bounds[1]) > 0) != (bounds[2] == "FAILED")
        elif average and _NUMBER.fullmatch(average[1]) and len(self.averages) < 2:
            self.averages.add(float(average[1]))

    def _title(self, words: typing.Sequence[str]) -> None:
        """Take the names of the columns."""
        if words[1:4] != ["size", "count", "type"] or "algbw" not in words:
            return
        first = words.index("algbw") - 1
        keys, places = tuple(words[4:first]), words.count("algbw")
        if len(set(keys)) == len(keys) and set(keys) <= {"redop", "root"} and places <= 2:
            self.titled, self.cpu_time = True, words[first] == "cputime"
            self.columns = _Columns(keys, _WITH_ITERATIONS if "i_min" in words else 4, places, "error" in words)

    def piece(self, words: typing.Sequence[str]) -> None:
        """Take a row or a piece of one."""
        if self.columns is None:
            return
        if len(words) > 2 and _DAY.fullmatch(words[-2]) and _CLOCK.fullmatch(words[-1]):
            words = words[:-2]
        for place in range(2, min(len(words), _BEFORE)):
            size = _SIZE.fullmatch(words[place - 2])
            if size and _COUNT.fullmatch(words[place - 1]) and _TYPE.fullmatch(words[place]):
                self.close()
                rest = words[place + 1 :]
                # alltoall of versions before 2.13 has the column, and nothing in it
                blank = "redop" in self.columns.keys and rest and not _TYPE.fullmatch(rest[0])
                keys = dict(zip(self.columns.keys, ["none", *rest] if blank else rest))
                if (
                    len(keys) == len(self.columns.keys)
                    and _TYPE.fullmatch(keys.get("redop", "none"))
                    and _ROOT.fullmatch(keys.get("root", "-1"))
                ):
                    self.open = _Open(int(size[1]), int(words[place - 1]), words[place], keys)
                    self._figures(rest[len(keys) - bool(blank) :])
                return
        if self.open is not None:
            # words of a launcher may stand before it
            first = next((place for place, word in enumerate(words) if _NUMBER.fullmatch(word)), len(words))
            self._figures(words[first:])

    def _figures(self, words: typing.Sequence[str]) -> None:
        if self.open is None or self.columns is None or not words or len(words) % self.columns.width:
            return
        if not all(_NUMBER.fullmatch(word) or word == "N/A" for word in words):
            return
        self.open.words += words
        if len(self.open.words) >= self.columns.width * self.columns.places:
            row, self.open = self.open, None
            self.add(self._row(row, self.columns))

    def _row(self, row: _Open, columns: _Columns) -> typing.Optional[NcclTestRow]:
        width = columns.width
        if len(row.words) != width * columns.places:
            return None
        figures = [
            _parse_figure(row.words[start : start + width], columns.largest_error)
            for start in range(0, len(row.words), width)
        ]
        if None in figures:
            return None
        operation = row.keys.get("redop", "none")
        return NcclTestRow(
            row.size,
            row.count,
            row.type,
            "" if operation == "none" else operation,
            _root(row.keys.get("root", "-1")),
            figures[0] if columns.places == 2 else None,
            figures[-1],
        )

    def add(self, row: typing.Optional[NcclTestRow]) -> None:
        """Take a row whose figures agree; any other is torn."""
        if row is None or not (self.cpu_time or all(_agree(row, figure, self.collective) for figure in row.figures)):
            self.torn += 1
        elif len(self.rows) < _ROWS:
            self.rows.append(row)
        else:
            self.overrun = True

    def close(self) -> None:
        """End a row that is open: its pieces are lost."""
        if self.open is not None and len(self.unfinished) < _ROWS:
            self.unfinished.append(self.open.size)
        self.open = None

    def fail(self, text: str) -> None:
        """Take what says that something failed."""
        if text and len(self.errors) < _ERRORS:
            self.errors[text[:300]] = None

    def freeze(self) -> NcclTests:
        self.close()
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
            tuple(self._lacks(announced, bounds, average, concluded)),
        )

    def _lacks(
        self,
        announced: typing.Optional[int],
        bounds: typing.Optional[int],
        average: typing.Optional[float],
        concluded: bool,
    ) -> typing.Iterator[str]:
        for error in tuple(self.errors)[:1]:
            yield f"the test failed: {error}"
        if self.overrun:
            yield "more of it is in the log than is read"
        if self.unfinished:
            yield f"the row of {self.unfinished[0]} bytes was begun and not ended"
        if self.torn:
            yield f"{self.torn} rows or summaries are torn or contradict themselves"
        if not self.rows:
            yield "no whole row is there"
        elif len({(row.size_bytes, row.type, row.operation, row.root) for row in self.rows}) < len(self.rows):
            # all ranks of a job write into one text
            yield (
                "rows of one size, type, operation and root are there more than once: another rank or program has"
                " printed some"
            )
        elif announced and len(self.rows) % announced:
            yield (
                f"{len(self.rows)} rows are there, and the test announced {announced} for each type, operation and root"
            )
        if bounds is None or average is None:
            yield "its summary is not there, or there are two that differ"
        elif self.rows and not self.cpu_time:
            buses = [figure.bus_gbs for row in self.rows for figure in row.figures]
            mean = sum(buses) / len(buses)
            if abs(mean - average) > _MEAN * mean + 0.01:
                yield f"the mean of the rows is not the {average:g} GB/s of its summary"
        if not concluded:
            yield "its end is not there"


def _before_nccl(text: str, hosts: typing.AbstractSet[str]) -> list[str]:
    """Return the words of a piece that stands before a line of NCCL; none where it is not certain where the piece ends.

    :param text: up to the word NCCL: a piece, and host:pid:thread [gpu]
    """
    stamp = _STAMP.search(text)
    if stamp:
        return text[: stamp.start()].split()
    words = text.rpartition(" [")[0].rpartition(":")[0].rpartition(":")[0].split()
    if not words:
        return []
    last = words.pop()
    ends = {last[: -len(host)] for host in hosts if last.endswith(host)}
    ends = {end for end in ends if end == "N/A" or _NUMBER.fullmatch(end.lstrip("-"))}
    if not ends:
        glued = _GLUED.fullmatch(last)
        ends = {glued[1]} if glued and glued[2] else set()
    return [*words, *ends] if len(ends) == 1 else []


def _parse_figure(words: typing.Sequence[str], largest_error: bool) -> typing.Optional[NcclTestFigure]:
    if "N/A" in words[:3]:
        return None
    time, algorithm, bus = (float(word) for word in words[:3])
    checked = None if words[3] == "N/A" else float(words[3])
    if largest_error:
        return NcclTestFigure(time, algorithm, bus, None, checked)
    # of option -I: the fastest and the slowest iteration, that of 99 %, and the variation
    p99 = float(words[6]) if len(words) == _WITH_ITERATIONS and "N/A" not in words[4:] else None
    return NcclTestFigure(time, algorithm, bus, None if checked is None else int(checked), p99_us=p99)


def _agree(row: NcclTestRow, figure: NcclTestFigure, collective: str) -> bool:
    """Return whether bytes by time are the algorithm bandwidth, as far as their digits go."""
    error = max(0.0051, 0.0051 * max(figure.algorithm_gbs, figure.bus_gbs))
    if figure.bus_gbs > _FACTOR * figure.algorithm_gbs + 3 * error:
        return False
    if collective in _OWN_BYTES or not figure.time_us:
        return True
    # two decimals below 1000 us, and five digits above
    rounding = max(0.0051, figure.time_us * 5e-5)
    highest = row.size_bytes / max(figure.time_us - rounding, 1e-9) / 1000 + error
    lowest = row.size_bytes / (figure.time_us + rounding) / 1000 - error
    # until 2020 the algorithm bandwidth of all_gather was less by (ranks - 1) / ranks, and those versions do not say
    # which test they are
    return lowest * (1.0 if collective else 0.49) <= figure.algorithm_gbs <= highest


def _parse_rows(span: typing.Optional[tuple[int, int, int, bool]]) -> typing.Optional[int]:
    """Return how many sizes there are; None where it is not known."""
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


def _collective(program: str) -> str:
    name = program.rpartition("/")[2]
    for end in (".exe", "_mpi", "_perf"):
        name = name[: -len(end)] if name.endswith(end) else name
    return name if re.fullmatch(r"[a-z_]{1,20}", name) else ""


def _release(code: int) -> str:
    """Return the release of NCCL's number of a version: 22809 is 2.28.9, 2708 is 2.7.8."""
    if not code:
        return ""
    return (
        f"{code // 1000}.{code // 100 % 10}.{code % 100}"
        if code < 10000
        else f"{code // 10000}.{code // 100 % 100}.{code % 100}"
    )


def _root(word: str) -> typing.Optional[int]:
    return int(word) if int(word) >= 0 else None


def _word(value: typing.Any) -> str:
    return value[:300] if isinstance(value, str) else ""


def _whole(value: typing.Any) -> typing.Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def _real(value: typing.Any) -> typing.Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e15 else None


def _parse_json_rank(item: typing.Any) -> typing.Optional[NcclTestRank]:
    if not isinstance(item, dict):
        return None
    rank, group, pid, gpu = (_whole(item.get(name)) for name in ("rank", "group", "pid", "device"))
    host, bus_id, model = (_word(item.get(name)) for name in ("hostname", "device_hex", "device_info"))
    return (
        NcclTestRank(rank, group or 0, pid, host, gpu, bus_id, model)
        if rank is not None and pid is not None and gpu is not None and host
        else None
    )


def _parse_json_row(item: typing.Any) -> typing.Optional[NcclTestRow]:
    if not isinstance(item, dict):
        return None
    size, count = _whole(item.get("size")), _whole(item.get("count"))
    kind, operation, root = (_word(item.get(name)).strip() for name in ("type", "redop", "root"))
    if (
        size is None
        or count is None
        or not _TYPE.fullmatch(kind)
        or not _TYPE.fullmatch(operation)
        or not _ROOT.fullmatch(root)
    ):
        return None
    out, into = (_parse_json_figure(item.get(name)) for name in ("out_of_place", "in_place"))
    if into is None or (out is None and item.get("out_of_place") is not None):
        return None
    return NcclTestRow(size, count, kind, "" if operation == "none" else operation, _root(root), out, into)


def _parse_json_figure(item: typing.Any) -> typing.Optional[NcclTestFigure]:
    if not isinstance(item, dict):
        return None
    time, algorithm, bus = (
        _real(item.get("time", item.get("cpu_time"))),
        _real(item.get("alg_bw")),
        _real(item.get("bus_bw")),
    )
    wrong = _real(item.get("nwrong"))
    if time is None or algorithm is None or bus is None or (wrong is None and item.get("nwrong") is not None):
        return None
    return NcclTestFigure(time, algorithm, bus, None if wrong is None else int(wrong))
