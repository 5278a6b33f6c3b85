# SPDX-License-Identifier: GPL-3.0-or-later

"""Split the output of the shell in a pod into the output and the exit code of each command.

After the output of each command the shell prints a line ``@linerate <number>-<token> <exit code>``. Commands have
consecutive numbers. A command begins only after the previous one has ended. The output of the shell before the first
command ends with ``@linerate 0 0``.

A tool may print bytes that its peer on another node chose. So the token is unguessable. The client sends it with each
command on stdin of the shell, and it is on no command line and in no environment.
"""

from __future__ import annotations

import re
import typing

from ..limits import MIB

MARK = "@linerate"
#: bytes of what a command printed. perftest's table of all sizes has 4 kB, the JSON of iperf3 with its streams and
#: seconds 300 kB
MOST_BYTES = 4 * MIB
#: bytes of a line that ends a command, at most, with a token of 32 characters
_LONGEST = 96


class Stream:
    """The output of the shell, received in pieces of any size. Each byte is scanned once. No method raises an error.

    The output of earlier commands is discarded. Output of the current command beyond ``most`` bytes is discarded too,
    and ``overflowed`` is set.

    :param token: unguessable text of letters and digits in the end mark of each command except command 0
    :param most: maximum output of one command in bytes
    :ivar exit_code: exit code of the current command; None if the command has not ended, or has printed too much
    :ivar overflowed: whether the current command has printed more than the maximum. Its further output is ignored
    """

    def __init__(self, token: str, most: int = MOST_BYTES) -> None:
        self._token = token
        self._most = most
        self._data = bytearray()
        self._number = 0
        self._end = self._end_of(0)
        #: whether the command before the present one has ended
        self._begun = True
        self._searched = 0
        self._stop: typing.Optional[int] = None
        self.exit_code: typing.Optional[int] = None
        self.overflowed = False

    @property
    def number(self) -> int:
        """Return the number of the current command. Command 0 is the start of the shell itself."""
        return self._number

    def begin(self) -> str:
        """Make the next command the current command, also if the previous command has not ended yet.

        :returns: name of the new current command for its end mark, which consists of its number and the token
        """
        if self.exit_code is not None and self._begun:
            found = self._end.search(self._data, self._stop or 0)
            del self._data[: found.end() if found else 0]
        else:
            # the shell ends the one before it, and what that still prints comes first
            self._begun = False
        self._number += 1
        self._end = self._end_of(self._number)
        self._searched, self._stop, self.exit_code, self.overflowed = 0, None, None, False
        self._search_output()
        return self._name_of(self._number)

    def feed(self, data: bytes) -> None:
        """Process bytes that were received from the shell. They are ignored if the current command has already printed
        too much.
        """
        if data and not self.overflowed:
            self._data += data
            self._search_output()

    def _search_output(self) -> None:
        """Search the data for the begin and the end of the output of the command, and drop the data before and after
        them. More than ``most`` bytes of output are an overflow.
        """
        if not self._begun:
            found = self._end_of(self._number - 1).search(self._data)
            del self._data[: found.end() if found else -_LONGEST]
            self._begun = found is not None
        if self._begun and self.exit_code is None:
            found = self._end.search(self._data, max(0, self._searched - _LONGEST))
            self._searched = len(self._data)
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
        """Return the output of the current command so far, decoded as UTF-8. Return an empty string until the output of
        the command begins.
        """
        return self._data[: self._stop].decode(errors="replace") if self._begun else ""

    def find(self, text: str, start: int = 0) -> int:
        """Return the position in bytes of the first occurrence of a text in the output of the current command. Return
        -1 if the text is not found.

        :param start: number of bytes of the output that were searched before
        """
        return self._data.find(text.encode(), max(0, start - len(text.encode())), self._stop) if self._begun else -1

    @property
    def size(self) -> int:
        """Return the number of bytes that the current command has printed so far, at most the maximum that is kept."""
        return (len(self._data) if self._stop is None else self._stop) if self._begun else 0

    def _name_of(self, number: int) -> str:
        return f"{number}-{self._token}" if number else "0"

    def _end_of(self, number: int) -> typing.Pattern[bytes]:
        return re.compile(rb"\n%s %s ([0-9]{1,3})\n" % (MARK.encode(), re.escape(self._name_of(number)).encode()))
