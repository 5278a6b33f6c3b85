# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of perftest's bandwidth tools (ib_write_bw, ib_read_bw, ib_send_bw), versions 4.4 to 26.04, to measurements.

The text is parsed, not the JSON file: that is invalid before 24.01.0-0.38, holds only the last size of a sweep and has
no unit. Row format, from perftest's ``RESULT_LINE`` and seen in captures of 4.5 and 25.01: at least five columns, split
by blanks and tabs, ``#bytes #iterations peak average MsgRate``; values below 0.1 print six decimals, others two.
Further columns follow with some options.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.boundary.fabric import GBPS
from ..._model.measurement.bandwidth import ROWS

#: 1 MiB/s in Gb/s. The columns "MB/sec" (before 24.07) and "MiB/sec" are both 2^20 bytes per second
GBPS_PER_MIBPS = 1048576 * 8 / 1e9

_HEADER = re.compile(
    r"^\s*#bytes\s+#iterations\s+BW peak\[(?P<unit>[A-Za-z]+)/sec\]\s+BW average\[(?P=unit)/sec\]\s+MsgRate\[Mpps\]"
)
_ROW = re.compile(
    r"^\s*(?P<bytes>[0-9]{1,18})\s+(?P<iterations>[0-9]{1,18})\s+(?P<peak>\S+)\s+(?P<average>\S+)\s+(?P<rate>\S+)(?:\s+\S+)*\s*$"
)
# bounded: a name may hold blanks, and one without an end would be looked at from each of its letters to the end of the
# line
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_*. -]{0,80}): (\S[^\t]*)")
_RULE = re.compile(r"^\s*-{20,}\s*$")
#: characters of a line that is of the tool, and lines before the table that may be parameters: there are 30 of them,
#: and the patterns take long over others
_LONGEST, _MOST_LINES = 500, 1000


class PerftestError(RdmaError):
    """Text that is no result of a bandwidth tool. The message says what was missing, and quotes what was seen."""


@dataclasses.dataclass(frozen=True)
class PerftestRow:
    """One row of the table: sizes in bytes, bandwidth in Gb/s (decimal), rate in million messages per second.

    :ivar peak_gbps: None where perftest did not measure it (with -D it prints zero), and where no link has it
    """

    message_bytes: int
    iterations: int
    average_gbps: float
    peak_gbps: typing.Optional[float]
    message_rate: float


@dataclasses.dataclass(frozen=True)
class PerftestReport:
    """The output of one run.

    :ivar parameters: header lines, ``Device``: ``mlx5_16``, ``Link type``: ``IB``
    :ivar rows: in their order, one for each message size
    """

    parameters: dict[str, str]
    rows: tuple[PerftestRow, ...]

    @property
    def largest(self) -> PerftestRow:
        """Return the row of the largest message, which is the one to judge."""
        return max(self.rows, key=lambda row: row.message_bytes)


def parse(text: str) -> PerftestReport:
    """Parse what a client printed (noise between the lines does no harm).

    :raises PerftestError: no table, no complete row, several rows of one size, or a value that is no measurement: zero,
        negative, inf, nan or more than any link has, or of no message. Those come with exit code 0 when the CPU's clock
        is unstable
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
        raise PerftestError(f"rows of {twice[0]} bytes say {figures[:200]}; expected one row for each size, of one run")
    if not ROWS.fits(rows):
        raise PerftestError(f"a table of {len(rows)} rows; expected {ROWS.expected}")
    if not rows:
        last = next(
            (line.strip() for line in reversed(text.splitlines()) if line.strip() and not _RULE.match(line)), ""
        )
        raise PerftestError(f"no row of a bandwidth table; the last line was '{last[:200]}'" if last else "no output")
    return PerftestReport(parameters, tuple(rows))


def _parse_row(match: typing.Match[str], unit: str, line: str) -> PerftestRow:
    factors = {"Gb": 1.0, "MB": GBPS_PER_MIBPS, "MiB": GBPS_PER_MIBPS}
    if unit not in factors:
        raise PerftestError(f"bandwidth in unknown unit '{unit}/sec'; expected Gb, MB or MiB")
    try:
        peak, average, rate = (float(match.group(name)) for name in ("peak", "average", "rate"))
    except ValueError:
        raise PerftestError(f"no number in the row '{line.strip()[:200]}'") from None
    if average <= 0 or not GBPS.fits(average * factors[unit]) or not math.isfinite(rate):
        raise PerftestError(
            f"an average of {match.group('average')} {unit}/sec is no measurement, in the row '{line.strip()[:200]}'"
        )
    iterations = int(match.group("iterations"))
    if iterations < 1:
        raise PerftestError(f"an average of no message is no measurement, in the row '{line.strip()[:200]}'")
    known = peak > 0 and GBPS.fits(peak * factors[unit])
    return PerftestRow(
        int(match.group("bytes")), iterations, average * factors[unit], peak * factors[unit] if known else None, rate
    )
