# SPDX-License-Identifier: GPL-3.0-or-later

"""Text of rping (librdmacm) to the number of round trips."""

from __future__ import annotations

import dataclasses
import re
import typing

_DATA = re.compile(r"^ping data: rdma-ping-(?P<number>[0-9]+): ")


@dataclasses.dataclass(frozen=True)
class Pings:
    """:ivar count: round trips that the client printed with -v, each with its own number, without a gap"""

    count: int


def parse(stdout: str) -> Pings:
    """Count the ``ping data`` lines of a client that ran with -v.

    A number that is missing or repeated ends the count: only an unbroken row from 0 is proof. Never raises; no such line is a count of 0.
    """
    count = 0
    for line in stdout.splitlines():
        match: typing.Optional[typing.Match[str]] = _DATA.match(line)
        if match and match.group("number") == str(count):
            count += 1
    return Pings(count)
