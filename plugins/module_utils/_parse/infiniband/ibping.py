# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of an ibping client (infiniband-diags/ibping.c).

Only the loss line is read. The exit code of ibping is 0 even if all packets are lost, and its times are wrong by a
factor of ten or more in all versions.

The library of ibping sends a packet up to three times before it counts the packet as lost. The loss line can therefore
report 0 % although packets were lost and sent again. With ``-e`` the library reports each repetition on stderr
[rdma-core libibmad/rpc.c _do_madrpc]. Those lines are counted.
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
    """The packet counts of one run of ibping.

    :ivar lid: LID that was pinged
    :ivar transmitted: number of packets that were sent
    :ivar received: number of packets that were answered
    """

    lid: int
    transmitted: int
    received: int


def parse(text: str) -> Counts:
    """Parse the statistics that a client of ibping prints at the end of a run.

    :raises ParseError: the text has no statistics, as when ibping was killed, or more than one; no packet was
        transmitted; or more packets were received than transmitted
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
        raise ParseError(
            "ibping",
            f"{transmitted} packets transmitted, {received} received",
            "at least one transmitted packet, and at most as many received packets",
        )
    return Counts(int(headers[0]), transmitted, received)


def count_resent(stderr: str) -> int:
    """Return the number of packets that were sent again, from the stderr of ``ibping -e``. Lines of any other form are
    ignored.
    """
    return len(_RESENT.findall(stderr))
