# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of progress about the states of nodes and operators, with a limit for those that change without end."""

from __future__ import annotations

import dataclasses
import typing

#: lines about one thing, and seconds between two lines about it from then on. A node that is rolled has some ten states
MOST_OF_ONE, PAUSE = 30, 60.0


@dataclasses.dataclass
class _LastLine:
    """The last line that was reported about one node or operator.

    :ivar number: number of lines that were reported about it
    :ivar at: seconds after the start at which the last line was reported
    """

    line: str
    number: int = 0
    at: float = 0.0


class StateLines:
    """Reports a line whenever the state of one of several things has changed.

    The cause of a change may be a node or a tenant, which can change it again and again. So from ``MOST_OF_ONE`` lines
    about one thing on, the next one comes after a pause, with the state at that time.

    :param say: reports a line of progress
    :param pause: seconds between two lines about one thing from then on
    """

    def __init__(self, say: typing.Callable[[str], None], pause: float = PAUSE) -> None:
        self._say = say
        self._pause = pause
        self._lines: dict[typing.Hashable, _LastLine] = {}

    def expect(self, key: typing.Hashable, line: str) -> None:
        """Take this line as said already."""
        self._lines[key] = _LastLine(line)

    def tell(self, key: typing.Hashable, line: str, seconds: float, ends: bool = False) -> None:
        """Report the state of one thing if it differs from the one that was said last.

        :param seconds: seconds since the start
        :param ends: whether it is the last state, which is reported in any case
        """
        last = self._lines.setdefault(key, _LastLine(""))
        if last.line == line or (last.number >= MOST_OF_ONE and seconds - last.at < self._pause and not ends):
            return
        last.line, last.at = line, seconds
        last.number += 1
        self._say(f"{seconds:.0f} s  {line}")
