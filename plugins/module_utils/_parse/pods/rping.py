# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of rping (librdmacm) to the number of round trips, and whether that is an end that its exit code hides."""

from __future__ import annotations

import dataclasses
import re
import typing

from .failure import Failure, Kind

_DATA = re.compile(r"^ping data: rdma-ping-(?P<number>[0-9]+): ")


@dataclasses.dataclass(frozen=True)
class Pings:
    """:ivar count: round trips that the client printed with -v, each with its own number, without a gap"""

    count: int


def parse(stdout: str) -> Pings:
    """Count the ``ping data`` lines of a client that ran with -v.

    A number that is missing or repeated ends the count: only an unbroken row from 0 is proof. Never raises; no such
    line is a count of 0.
    """
    count = 0
    for line in stdout.splitlines():
        match: typing.Optional[typing.Match[str]] = _DATA.match(line)
        if match and match.group("number") == str(count):
            count += 1
    return Pings(count)


def short(stdout: str, wanted: int) -> typing.Optional[Failure]:
    """Return the failure of a client that ended with 0 and made fewer round trips than it was asked for, None when it
    made them.

    rping's client returns 0 whenever the other end disconnected first, also before the first round trip
    (``rping_test_client`` of rdma-core's librdmacm/examples/rping.c: ``return (cb->state == DISCONNECTED) ? 0 : ret``).

    :param wanted: round trips
    """
    count = parse(stdout).count
    if count >= wanted:
        return None
    kind: Kind = "disconnected" if "DISCONNECT EVENT" in stdout else "no_measurement"
    return Failure(kind, f"{count} of {wanted} round trips, exit code 0: {tail(stdout)}"[:300])


def tail(text: str, lines: int = 3) -> str:
    """Return the last lines of what a tool printed that are not empty, as one line; of none, "nothing was printed"."""
    return (
        " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])[:200] or "nothing was printed"
    )
