# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of progress about the states of nodes and operators, with a limit for those that change without end."""

from __future__ import annotations

import dataclasses
import typing

#: lines about one thing, and seconds between two lines about it from then on. A node that is rolled has some ten states
MOST_OF_ONE, PAUSE = 30, 60.0


@dataclasses.dataclass
class _LastLine:
    """The last line that was reported about a node or an operator.

    :ivar line: text of the line; empty if none was reported
    :ivar number: number of lines that were reported about it
    :ivar at: seconds after the start at which the last line was reported
    """

    line: str
    number: int = 0
    at: float = 0.0


class StateLines:
    """A reporter of progress: one line for each change of the state of a node or an operator.

    A node or a tenant can cause changes again and again. After ``MOST_OF_ONE`` lines about one node or operator,
    further lines about it are reported at most every ``pause`` seconds.

    :param say: function that shows a line of progress to the user
    :param pause: seconds between two such further lines
    """

    def __init__(self, say: typing.Callable[[str], None], pause: float = PAUSE) -> None:
        self._say = say
        self._pause = pause
        self._lines: dict[typing.Hashable, _LastLine] = {}

    def expect(self, key: typing.Hashable, line: str) -> None:
        """Store a line as the last one about a node or operator without reporting it, so that ``tell`` reports only a
        different line.

        :param key: identifies the node or operator
        :param line: the state, as text
        """
        self._lines[key] = _LastLine(line)

    def tell(self, key: typing.Hashable, line: str, seconds: float, ends: bool = False) -> None:
        """Report the state of a node or operator if it differs from the state that was reported last.

        :param key: identifies the node or operator
        :param line: the state, as text
        :param seconds: seconds since the start
        :param ends: whether this is the last state, which is reported even if the limits of lines are exceeded
        """
        last = self._lines.setdefault(key, _LastLine(""))
        if last.line == line or (last.number >= MOST_OF_ONE and seconds - last.at < self._pause and not ends):
            return
        last.line, last.at = line, seconds
        last.number += 1
        self._say(f"{seconds:.0f} s  {line}")
