# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the JSON of an iperf3 client (``-J``), versions 3.7 to 3.18, into a bandwidth.

The exit code is not reliable. Up to at least 3.12, a client that cannot connect, or whose server was killed, writes
``error`` into its JSON and exits with 0. The bytes that the receiver counted are used, because the sender also counts
bytes that are still in its buffers.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.boundary.fabric import GBPS

#: sums over all streams, as received: one direction, and the way back of ``--bidir``
_SUMS = ("sum_received", "sum_received_bidir_reverse")
#: of a figure; the tool rounds the seconds
_ODD = 0.05
# lines are not taken apart: there may be millions of them
_BEGIN = re.compile(r"^[ \t]*(\{)[ \t\r]*$", re.MULTILINE)


class Iperf3Error(RdmaError):
    """The error for a text that is not a result of iperf3. The message names the missing or invalid key, and quotes the
    text.
    """


@dataclasses.dataclass(frozen=True)
class Iperf3Report:
    """The result of one run of an iperf3 client.

    :ivar average_gbps: average over the whole test, all streams and both directions together, in Gb/s (decimal)
    :ivar streams: number of streams that ran at the same time in one direction
    """

    average_gbps: float
    streams: int


def parse(text: str) -> Iperf3Report:
    """Parse the JSON output of an iperf3 client. Lines before and after the JSON are ignored.

    :raises Iperf3Error: there is no JSON, it contains an error or no sum of received bytes, or a rate is invalid or
        contradicts its bytes and seconds
    """
    data = _find_json_object(text)
    if data is None:
        last = text.rstrip().rpartition("\n")[2].strip()
        raise Iperf3Error(f"no JSON output of iperf3; the last line was '{last[:200]}'" if last else "no output")
    if data.get("error"):
        raise Iperf3Error(str(data["error"])[:300])
    end, start = data.get("end"), data.get("start")
    sums = [end[name] for name in _SUMS if isinstance(end.get(name), dict)] if isinstance(end, dict) else []
    if not sums or not isinstance(start, dict):
        raise Iperf3Error("the JSON output of iperf3 has no sum of received data; expected end.sum_received")
    for item in sums:
        _require_consistent_rate(item)
    connected = start.get("connected")
    streams = len(connected) if isinstance(connected, list) else 0
    total = sum(_convert_to_gbps(item.get("bits_per_second")) for item in sums)
    if not GBPS.fits(total):
        raise Iperf3Error(f"bits_per_second is {total:g} Gb/s in total, which is not a valid measurement")
    return Iperf3Report(total, max(1, streams // len(sums)))


def find_error(text: str) -> str:
    """Return the error that an iperf3 client reports in its JSON output, at most 300 characters. Return an empty string
    if it reports none, or if there is no JSON.
    """
    data = _find_json_object(text)
    return str(data.get("error") or "")[:300] if data is not None else ""


def _convert_to_gbps(value: typing.Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise Iperf3Error(f"bits_per_second is {str(value)[:40]}, which is not a valid measurement")
    return float(value) / 1e9


def _require_consistent_rate(item: dict[str, typing.Any]) -> None:
    """Verify that a rate equals its bytes divided by its seconds. Nothing is verified if one of the three values is
    missing.

    :param item: sum of iperf3's JSON, with ``bits_per_second``, ``bytes`` and ``seconds``
    :raises Iperf3Error: the rate differs by more than 5 %
    """
    figures = [item.get(name) for name in ("bits_per_second", "bytes", "seconds")]
    rate, sent, seconds = (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
        for value in figures
    )
    if not all(map(math.isfinite, (rate, sent, seconds))):
        return
    if abs(rate * seconds - 8 * sent) > _ODD * 8 * abs(sent):
        raise Iperf3Error(f"bits_per_second is {rate:g}, which contradicts {sent:.0f} bytes in {seconds:g} s")


def _find_json_object(text: str) -> typing.Optional[dict[str, typing.Any]]:
    """Return the JSON object in the output of iperf3, whose opening brace is on a line of its own. Return None if there
    is no valid JSON object.
    """
    begin = _BEGIN.search(text)
    if begin is None:
        return None
    try:
        data, _end = json.JSONDecoder().raw_decode(text, begin.start(1))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
