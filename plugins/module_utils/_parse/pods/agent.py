# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the requests that mpirun makes in a pod. In place of ssh, mpirun starts a program of linerate.rdma that prints
each request as three lines.
"""

from __future__ import annotations

import dataclasses
import re

from ..._model.boundary.words import HOST, Host

_HEAD = re.compile(r"ask ([0-9]{1,9})", re.ASCII)
#: characters of the words of a daemon: its options, and the addresses of mpirun and of all nodes
_MOST_WORDS = 1 << 17


@dataclasses.dataclass(frozen=True)
class Request:
    """A request of mpirun to start a daemon in another pod.

    :ivar number: number of the request within the run of mpirun
    :ivar host: host name of the pod in which the daemon must run
    :ivar words: command line for the shell in that pod
    """

    number: int
    host: Host
    words: str


def parse_requests(text: str) -> tuple[Request, ...]:
    """Return the requests of mpirun in the output of a pod, in their order. A request whose three lines are incomplete
    or invalid is left out. This is safe, because mpirun ends by itself if a request is not answered. This function
    never raises an error.
    """
    lines = text.splitlines()
    found = []
    for place, line in enumerate(lines):
        head, rest = _HEAD.fullmatch(line), lines[place + 1 : place + 3]
        if head is not None and len(rest) == 2 and HOST.fits(rest[0]) and 0 < len(rest[1]) <= _MOST_WORDS:
            found.append(Request(int(head.group(1)), rest[0], rest[1]))
    return tuple(found)
