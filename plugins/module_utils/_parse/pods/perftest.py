# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the text output of perftest's tools (ib_write_bw, ib_read_bw, ib_send_bw, ib_write_lat), versions 4.4 to 26.04,
into measurements.

The text is parsed instead of the JSON file. The JSON file is invalid before 24.01.0-0.38, has only the last size of a
sweep, and has no unit. Row format, from perftest's ``RESULT_LINE`` and captures of 4.5 and 25.01: at least five
columns, separated by blanks and tabs, ``#bytes #iterations peak average MsgRate``. Values below 0.1 have six decimals,
others two. Some options add columns.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.boundary.fabric import GBPS
from ..._model.boundary.form import Range
from ..._model.boundary.numbers import COUNT, LATENCY, MTU
from ..._model.measurement.pairs import ROWS

#: 1 MiB/s in Gb/s. The columns "MB/sec" (before 24.07) and "MiB/sec" are both 2^20 bytes per second
GBPS_PER_MIBPS = 1048576 * 8 / 1e9

_HEADER = re.compile(
    r"^\s*#bytes\s+#iterations\s+BW peak\[(?P<unit>[A-Za-z]+)/sec\]\s+BW average\[(?P=unit)/sec\]\s+MsgRate\[Mpps\]"
)
_ROW = re.compile(
    r"^\s*(?P<bytes>[0-9]{1,18})\s+(?P<iterations>[0-9]{1,18})\s+(?P<peak>\S+)\s+(?P<average>\S+)\s+(?P<rate>\S+)(?:\s+\S+)*\s*$"
)
_LATENCY_HEADER = re.compile(
    r"^\s*#bytes\s+#iterations\s+t_min\[usec\]\s+t_max\[usec\]\s+t_typical\[usec\]\s+t_avg\[usec\]"
)
_LATENCY_COLUMNS, _NUMBER = 9, re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
# bounded: a name may hold blanks, and one without an end would be looked at from each of its letters to the end of the
# line
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_*. -]{0,80}): (\S[^\t]*)")
_WHOLE = re.compile(r"([0-9]{1,10})(?:\[B\])?", re.ASCII)
_RULE = re.compile(r"^\s*-{20,}\s*$")
#: of the time that a measurement by time takes at least, which clocks may differ by; and of an average in Gb/s, which
#: perftest rounds to two digits behind the point, or to six below 0.1
_CLOCKS, _ROUNDING, _ROUNDING_OF_LITTLE, _LITTLE = 0.95, 0.005, 5e-7, 0.1
#: characters of a line that is of the tool, and lines before the table that may be parameters: there are 30 of them,
#: and the patterns take long over others
_LONGEST, _MOST_LINES = 500, 1000


class PerftestError(RdmaError):
    """The error for a text that is not a result of a perftest tool. The message names the missing or invalid line or
    value, and quotes the text.
    """


@dataclasses.dataclass(frozen=True)
class PerftestRow:
    """One line of perftest's bandwidth table: the figures for one message size.

    :ivar message_bytes: message size in bytes
    :ivar iterations: number of measured messages
    :ivar average_gbps: average bandwidth in Gb/s (decimal)
    :ivar peak_gbps: highest bandwidth in Gb/s; None if perftest did not measure it (with -D it prints zero), or if the
        value exceeds that of any link
    :ivar message_rate: messages per second, in millions
    """

    message_bytes: int
    iterations: int
    average_gbps: float
    peak_gbps: typing.Optional[float]
    message_rate: float


@dataclasses.dataclass(frozen=True)
class PerftestReport:
    """The output of one run of a bandwidth tool of perftest.

    :ivar parameters: values of the header lines by name, such as ``mlx5_16`` for ``Device`` and ``IB`` for ``Link
        type``
    :ivar rows: lines of the table in their order, one for each message size
    """

    parameters: dict[str, str]
    rows: tuple[PerftestRow, ...]

    @property
    def largest(self) -> PerftestRow:
        """Return the figures for the largest message size, on which findings are based."""
        return max(self.rows, key=lambda row: row.message_bytes)

    @property
    def packet_bytes(self) -> typing.Optional[int]:
        """Return the MTU of the port in bytes, by which queue pairs split messages into packets. Return None if the
        output does not report a valid MTU.
        """
        return self._read("Mtu", MTU)

    @property
    def gid_index(self) -> typing.Optional[int]:
        """Return the index of the GID from which the queue pairs send. Return None if the output does not report a
        valid index. Return None as well for connections over rdma_cm, because they use another GID than the printed
        one.
        """
        return None if self.parameters.get("Data ex. method") == "rdma_cm" else self._read("GID index", COUNT)

    def contradict(self, device: str, queue_pairs: int) -> str:
        """Compare the RDMA device and the number of queue pairs that perftest reports with the requested ones. Return a
        message with the difference. Return an empty string if there is none, or if perftest does not report them.

        :param device: requested RDMA device
        :param queue_pairs: requested number of queue pairs
        """
        there, many = self.parameters.get("Device", device), self.parameters.get("Number of qps", str(queue_pairs))
        if there == device and many == str(queue_pairs):
            return ""
        return (
            f"perftest reports Device {there[:64]}, Number of qps {many[:16]}; requested were Device {device}, Number"
            f" of qps {queue_pairs}"
        )

    def contradict_duration(self, seconds: int, opposite_gbps: float = 0.0) -> str:
        """Compare the messages of a measurement by time with its average. Return a message if the messages take less
        time at this average than perftest measured, otherwise an empty string.

        For a measurement in both directions at once, the average is the sum of both directions, and the messages are
        those of one direction (a capture of 4.5 and perftest's print_full_bw_report). The share of this direction is
        therefore at least the average minus what the opposite direction can carry.

        perftest leaves out a quarter of the time at the begin, and another at the end, each in whole seconds (captures
        of 4.5 and 25.01). It computes the average with the clock of the CPU, and ends by a timer of the kernel. If the
        clock is slow, the average is too high.

        :param seconds: requested duration in seconds (-D)
        :param opposite_gbps: highest bandwidth that the opposite direction can carry at the same time, in Gb/s; 0 for a
            measurement in one direction
        """
        row, least = self.largest, seconds - 2 * (seconds // 4)
        lowest = row.average_gbps - (_ROUNDING_OF_LITTLE if row.average_gbps < _LITTLE else _ROUNDING)
        own = lowest - opposite_gbps
        spent = row.iterations * row.message_bytes * 8 / (own * 1e9) if own > 0 else math.inf
        shown = f"{row.average_gbps - opposite_gbps:.2f} Gb/s"
        if spent >= _CLOCKS * least:
            return ""
        return (
            f"{row.iterations} messages of {row.message_bytes} bytes at {shown} take {spent:.2g} s,"
            f" but perftest measured for {least} s or more"
        )

    def contradict_messages(self, messages: int) -> str:
        """Compare the number of messages of each message size with the requested number. Return a message about the
        first size that has fewer messages, or an empty string if no size has fewer.

        :param messages: requested number of messages of each size
        """
        few = next((row for row in self.rows if row.iterations < messages), None)
        if few is None:
            return ""
        return f"{few.iterations} messages of {few.message_bytes} bytes were measured; {messages} were requested"

    def _read(self, name: str, values: Range) -> typing.Optional[int]:
        found = _WHOLE.fullmatch(self.parameters.get(name, ""))
        number = int(found.group(1)) if found else None
        return number if number is not None and values.fits(number) else None


def parse(text: str) -> PerftestReport:
    """Parse the bandwidth table that a client of perftest has printed. Lines that do not belong to the table or its
    header are ignored.

    :raises PerftestError: there is no table or no complete line in it, several lines have the same message size, or a
        value is not a measurement: zero, negative, inf, nan, more than the bandwidth of any link, or without messages.
        perftest prints such values with exit code 0 if the clock of the CPU is unstable
    """
    parameters: dict[str, str] = {}
    rows: list[PerftestRow] = []
    unit, looked = "", 0
    for line in text.splitlines():
        if len(line) > _LONGEST:
            # noise. A part of it is not looked at either: it might be a row, with another figure
            continue
        header = _HEADER.match(line)
        if header:
            unit = header.group("unit")
        elif not unit:
            looked += ": " in line
            if ": " in line and looked <= _MOST_LINES:
                parameters.update(
                    (key.strip(), value.strip()) for key, value in _FIELD.findall(line.replace("\t\t", "\t"))
                )
        elif _RULE.match(line):
            # the table ends here; a second one of the same run would start with its own header
            unit = ""
        else:
            row = _ROW.match(line)
            if row:
                rows.append(_parse_row(row, unit, line))
    twice = [size for size, count in collections.Counter(row.message_bytes for row in rows).items() if count > 1]
    if twice:
        figures = ", ".join(f"{row.average_gbps:.2f} Gb/s" for row in rows if row.message_bytes == twice[0])
        raise PerftestError(
            f"the rows of {twice[0]} bytes report {figures[:200]}; expected one row for each size, from one run"
        )
    if not ROWS.fits(rows):
        raise PerftestError(f"a table of {len(rows)} rows; expected {ROWS.expected}")
    if not rows:
        last = next(
            (line.strip() for line in reversed(text.splitlines()) if line.strip() and not _RULE.match(line)), ""
        )
        raise PerftestError(f"no row of a bandwidth table; the last line was '{last[:200]}'" if last else "no output")
    return PerftestReport(parameters, tuple(rows))


@dataclasses.dataclass(frozen=True)
class LatencyRow:
    """The line of ib_write_lat's table for one message size.

    :ivar message_bytes: message size in bytes
    :ivar iterations: number of measured messages
    :ivar typical_us: median latency in microseconds
    :ivar p99_us: latency in microseconds that 99 % of the messages do not exceed
    """

    message_bytes: int
    iterations: int
    typical_us: float
    p99_us: float


def parse_latency(text: str) -> LatencyRow:
    """Parse the table of an ib_write_lat client for one size: ``#bytes #iterations t_min t_max t_typical t_avg t_stdev
    99% 99.9%`` (``RESULT_FMT_LAT`` and ``REPORT_FMT_LAT`` of perftest's perftest_parameters.h).

    :raises PerftestError: the table does not have exactly one complete line, or a value is not a measurement
    """
    rows, table = [], False
    for line in text.splitlines():
        if len(line) > _LONGEST:
            continue
        words = line.split()
        if _LATENCY_HEADER.match(line):
            table = True
        elif table and _RULE.match(line):
            table = False
        elif table and len(words) == _LATENCY_COLUMNS and all(map(_NUMBER.fullmatch, words)):
            rows.append(words)
    if len(rows) != 1:
        last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        raise PerftestError(f"{len(rows)} rows of a latency table, expected one; the last line was '{last[:200]}'")
    size, iterations, _least, _most, typical, _average, _deviation, p99, _p999 = rows[0]
    row = LatencyRow(int(float(size)), int(float(iterations)), float(typical), float(p99))
    if row.iterations < 1 or not 0 < row.typical_us <= row.p99_us or not LATENCY.fits(row.p99_us):
        raise PerftestError(
            f"a median of {typical} us and a p99 of {p99} us over {iterations} messages is not a valid measurement"
        )
    return row


def _parse_row(match: typing.Match[str], unit: str, line: str) -> PerftestRow:
    """Return a row of the table of perftest, with bandwidths in Gb/s. The peak is None if perftest did not measure it.

    :param match: columns of the row
    :param unit: unit of the bandwidths: Gb, MB or MiB a second
    :param line: the row, for error messages
    :raises PerftestError: the unit is unknown, or the figures are not those of a measurement
    """
    factors = {"Gb": 1.0, "MB": GBPS_PER_MIBPS, "MiB": GBPS_PER_MIBPS}
    if unit not in factors:
        raise PerftestError(f"bandwidth in unknown unit '{unit}/sec'; expected Gb, MB or MiB")
    try:
        peak, average, rate = (float(match.group(name)) for name in ("peak", "average", "rate"))
    except ValueError:
        raise PerftestError(f"no number in the row '{line.strip()[:200]}'") from None
    if average <= 0 or not GBPS.fits(average * factors[unit]) or not math.isfinite(rate):
        raise PerftestError(
            f"an average of {match.group('average')} {unit}/sec is not a valid measurement, in the row"
            f" '{line.strip()[:200]}'"
        )
    iterations = int(match.group("iterations"))
    if iterations < 1:
        raise PerftestError(
            f"an average over no messages is not a valid measurement, in the row '{line.strip()[:200]}'"
        )
    known = peak > 0 and GBPS.fits(peak * factors[unit])
    return PerftestRow(
        int(match.group("bytes")), iterations, average * factors[unit], peak * factors[unit] if known else None, rate
    )
