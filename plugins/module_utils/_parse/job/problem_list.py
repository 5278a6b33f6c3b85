# SPDX-License-Identifier: GPL-3.0-or-later

"""The problems that a log shows. Each is listed once, with the number of its lines and its hosts."""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.job.nccl import NcclProblem
from .nccl.problem import classify, parse_completion

#: different warnings of unknown kinds that are kept; further ones are counted. Of problems of known kinds, further ones
#: are distinguished by their kind alone
_MOST = 1000
#: hosts that a problem names
_HOSTS = 20


class ProblemList:
    """The problems in a log. Each problem is listed once, with the number of its lines. The list is limited to 1000
    problems of known kinds and 1000 of unknown kinds.

    :ivar untold: number of lines with problems of unknown kinds that are not listed, because the list is full
    """

    def __init__(self) -> None:
        self.untold = 0
        self._known = 0
        self._problems: dict[tuple[str, str], NcclProblem] = {}

    def list_problems(self) -> tuple[NcclProblem, ...]:
        """Return the problems, in the order in which they first occur in the log."""
        return tuple(self._problems.values())

    def absorb(self, other: ProblemList, lines: int) -> None:
        """Add the problems of another list, which was made from the lines that follow in the log. Equal problems are
        counted together. The line numbers of the added problems are increased.

        :param lines: number of lines that precede the first line of ``other``
        """
        self.untold += other.untold
        for own, item in other._problems.items():
            kind = item.kind
            key = (kind, "") if kind and self._known >= _MOST and own not in self._problems else own
            seen = self._problems.get(key)
            if seen is not None:
                hosts = tuple(dict.fromkeys((*seen.hosts, *item.hosts)))[:_HOSTS]
                self._problems[key] = dataclasses.replace(seen, count=seen.count + item.count, hosts=hosts)
            elif kind or len(self._problems) - self._known < _MOST:
                self._known += bool(kind)
                self._problems[key] = dataclasses.replace(item, line=item.line + lines)
            else:
                self.untold += item.count

    def add_text(self, text: str, line: int, host: str = "", place: str = "", own: typing.Sequence[str] = ()) -> None:
        """Add a problem like :meth:`add`, after its kind was determined from its text.

        :param text: text of the problem in the log
        :param line: number of the line in the log
        :param host: host that wrote the line; empty if unknown
        :param place: position in the source code of NCCL that the line names; empty if the line names none
        :param own: addresses of the process that wrote the line. A failed completion whose peer has one of these
            addresses is listed separately
        """
        self.add(classify(text), text, line, host, place, own)

    def add(
        self, kind: str, text: str, line: int, host: str = "", place: str = "", own: typing.Sequence[str] = ()
    ) -> None:
        """Add a problem whose kind is known, or increase the number of its lines if it is in the list already.

        :param kind: kind of the problem; empty if unknown
        :param text: text of the problem in the log, of which 500 characters are stored
        :param line: number of the line in the log
        :param host: host that wrote the line; empty if unknown
        :param place: position in the source code of NCCL that the line names; empty if the line names none
        :param own: addresses of the process that wrote the line. A failed completion whose peer has one of these
            addresses is listed separately
        """
        short = text[:500]
        key = kind, kind or re.sub(r"[0-9]+|0x[0-9a-f]+", "#", short)
        failed = parse_completion(text) if kind == "completion" else None
        if failed is not None:
            # failed completions of one status are counted together, unless their causes differ
            key = kind, f"{failed.status} {bool(failed.peer) and failed.peer in own} {failed.crosses_subnets}"
        if kind and self._known >= _MOST and key not in self._problems:
            # a problem of a known kind is kept, however many others the log has
            key = kind, ""
        seen = self._problems.get(key)
        if seen is not None:
            hosts = seen.hosts if host in seen.hosts or not host or len(seen.hosts) >= _HOSTS else (*seen.hosts, host)
            self._problems[key] = dataclasses.replace(seen, count=seen.count + 1, hosts=hosts)
        elif kind or len(self._problems) - self._known < _MOST:
            self._known += bool(kind)
            self._problems[key] = NcclProblem(kind, short, place, (host,) if host else (), 1, line)
        else:
            self.untold += 1
