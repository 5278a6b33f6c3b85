# SPDX-License-Identifier: GPL-3.0-or-later

"""Output of an ibping client (infiniband-diags/ibping.c).

Only the loss line is read: its exit code is 0 even when all is lost, and its times are wrong by a factor of ten and
more in every version.

The library below it sends a packet up to three times before it counts as lost, so three of a hundred messages can be
missing and the loss line says 0 %. With -e it tells on stderr of each time that it sends one again [rdma-core
libibmad/rpc.c _do_madrpc]; those lines are counted.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError

_HEADER = re.compile(r"^--- .*\(Lid ([0-9]{1,6})\) ibping statistics ---$", re.MULTILINE | re.ASCII)
_COUNTS = re.compile(
    r"^([0-9]{1,10}) packets transmitted, ([0-9]{1,10}) received, [0-9]{1,3}% packet loss, time [0-9]+ ms$",
    re.MULTILINE | re.ASCII,
)
_RESENT = re.compile(r"^ibwarn: \[[0-9]+\] _do_madrpc: retry [0-9]+ \(timeout [0-9]+ ms\)$", re.MULTILINE | re.ASCII)


class Counts(typing.NamedTuple):
    """lid: whom it pinged; transmitted and received: packets."""

    lid: int
    transmitted: int
    received: int


def parse(text: str) -> Counts:
    """Parse the statistics at the end of a run.

    :raises ParseError: none, as when it was killed; more than one; nothing transmitted; more received than transmitted
    """
    headers = _HEADER.findall(text)
    lines = _COUNTS.findall(text)
    if len(headers) != 1 or len(lines) != 1:
        raise ParseError(
            "ibping",
            text.strip()[-200:],
            "one line '5 packets transmitted, 5 received, 0% packet loss, ...' under its header",
        )
    transmitted, received = (int(item) for item in lines[0])
    if not 0 <= received <= transmitted or transmitted == 0:
        raise ParseError("ibping", f"{transmitted} packets transmitted, {received} received", "a count that can be")
    return Counts(int(headers[0]), transmitted, received)


def count_resent(stderr: str) -> int:
    """Count the packets that were sent again, from the stderr of ``ibping -e``. Any text is accepted."""
    return len(_RESENT.findall(stderr))
