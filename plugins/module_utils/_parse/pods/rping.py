# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the round trips in the output of rping (librdmacm), and find a failure that its exit code does not report."""

from __future__ import annotations

import dataclasses
import re
import typing

from .failure import Failure, Kind

_DATA = re.compile(r"^ping data: rdma-ping-(?P<number>[0-9]{1,12}): ")


@dataclasses.dataclass(frozen=True)
class Pings:
    """The round trips that a client of rping made.

    :ivar count: number of round trips that the client printed with -v, numbered from 0 without a gap
    """

    count: int


def parse(stdout: str) -> Pings:
    """Count the round trips (``ping data`` lines) in the output of a client of rping that ran with -v.

    The round trips are numbered. The count ends at a missing or repeated number, because only an unbroken sequence from
    0 is proof. The count is 0 if there are no round trips. This function never raises an error.

    :param stdout: standard output of the client
    """
    count = 0
    for line in stdout.splitlines():
        match: typing.Optional[typing.Match[str]] = _DATA.match(line)
        if match and match.group("number") == str(count):
            count += 1
    return Pings(count)


def detect_shortfall(stdout: str, wanted: int) -> typing.Optional[Failure]:
    """Return the failure of a client that exited with 0 after fewer round trips than requested. Return None if the
    client made all round trips.

    rping's client returns 0 whenever the other end disconnected first, even before the first round trip
    (``rping_test_client`` of rdma-core's librdmacm/examples/rping.c: ``return (cb->state == DISCONNECTED) ? 0 : ret``).

    :param stdout: standard output of the client
    :param wanted: requested number of round trips
    """
    count = parse(stdout).count
    if count >= wanted:
        return None
    kind: Kind = "disconnected" if "DISCONNECT EVENT" in stdout else "no_measurement"
    return Failure(kind, f"{count} of {wanted} round trips, exit code 0: {join_tail(stdout)}"[:300])


def join_tail(text: str, lines: int = 3) -> str:
    """Return the last lines of a tool's output that are not empty, joined by `` | `` and cut to 200 characters. Return
    "nothing was printed" if there are no such lines.

    :param lines: number of lines
    """
    return (
        " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])[:200] or "nothing was printed"
    )
