# SPDX-License-Identifier: GPL-3.0-or-later

"""What the shell in a pod prints (see _render/measurement/commands.py) to the output and the exit code of each command
that it ran.

Behind the output of each command comes a line of its own, ``@linerate <number> <exit code>``. Commands have consecutive
numbers, and none begins before the one before it has ended.
"""

from __future__ import annotations

import re
import typing

from ..limits import MIB

MARK = "@linerate"
#: bytes of what a command printed. perftest's table of all sizes has 4 kB, the JSON of iperf3 with its streams and
#: seconds 300 kB
MOST_BYTES = 4 * MIB
#: bytes of a line that ends a command, at most
_LONGEST = 64


class Stream:
    """The output of the shell, in pieces of any size; each byte is read once. Never raises.

    What the commands before the present one printed is forgotten. So is what is more than ``most`` bytes of the present
    one, and ``overflowed`` says so.

    :param most: bytes of what one command prints
    :ivar exit_code: of the present command; None while it runs, or has not begun
    :ivar overflowed: whether the present command printed more than is kept; it is not read any further then
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._data = bytearray()
        self._number = 0
        self._end = _end_of(0)
        #: whether the command before the present one has ended
        self._begun = True
        self._looked = 0
        self._stop: typing.Optional[int] = None
        self.exit_code: typing.Optional[int] = None
        self.overflowed = False

    @property
    def number(self) -> int:
        """Return the number of the present command; the shell's own greeting is command 0."""
        return self._number

    def begin(self) -> int:
        """The next command is the present one.

        :returns: its number
        """
        if self.exit_code is not None and self._begun:
            found = self._end.search(self._data, self._stop or 0)
            del self._data[: found.end() if found else 0]
        else:
            # the shell ends the one before it, and what that still prints comes first
            self._begun = False
        self._number += 1
        self._end = _end_of(self._number)
        self._looked, self._stop, self.exit_code, self.overflowed = 0, None, None, False
        self._look()
        return self._number

    def feed(self, data: bytes) -> None:
        """Take what came."""
        if data and not self.overflowed:
            self._data += data
            self._look()

    def _look(self) -> None:
        if not self._begun:
            found = _end_of(self._number - 1).search(self._data)
            del self._data[: found.end() if found else -_LONGEST]
            self._begun = found is not None
        if self._begun and self.exit_code is None:
            found = self._end.search(self._data, max(0, self._looked - _LONGEST))
            self._looked = len(self._data)
            if found is not None:
                self._stop, self.exit_code = found.start(), int(found[1])
        if (len(self._data) if self._stop is None else self._stop) > self._most:
            self.overflowed, self.exit_code, self._stop = True, None, None
            del self._data[self._most :]
        elif self._stop is not None:
            # nothing that belongs to a command comes behind its end
            del self._data[self._stop + _LONGEST :]

    @property
    def text(self) -> str:
        """Return the output of the present command so far."""
        return self._data[: self._stop].decode(errors="replace") if self._begun else ""

    def find(self, text: str, start: int = 0) -> int:
        """Find the first place of a text in what the present command printed, -1 where it is not.

        :param start: place from which on nobody has looked for it
        """
        return self._data.find(text.encode(), max(0, start - len(text.encode())), self._stop) if self._begun else -1

    @property
    def size(self) -> int:
        """Bytes that the present command printed up to now."""
        return (len(self._data) if self._stop is None else self._stop) if self._begun else 0


def _end_of(number: int) -> typing.Pattern[bytes]:
    return re.compile(rb"\n%s %d ([0-9]{1,3})\n" % (MARK.encode(), number))
