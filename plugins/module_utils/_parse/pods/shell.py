# SPDX-License-Identifier: GPL-3.0-or-later

"""What the shell in a pod prints (see _render/commands.py) to the output and the exit code of each command that it ran.

Behind the output of each command comes a line of its own, ``@linerate <number> <exit code>``. Commands have consecutive numbers, and none begins before
the one before it has ended.
"""

from __future__ import annotations

import dataclasses
import typing

MARK = "@linerate"


@dataclasses.dataclass(frozen=True)
class Part:
    """One command's part of the stream.

    :ivar text: what it printed up to now
    :ivar exit_code: None while it runs, or has not begun
    """

    text: str
    exit_code: typing.Optional[int] = None


def part(stream: str, number: int) -> Part:
    """The part of the command with that number. Never raises; a command that has not begun has printed nothing.

    :param stream: from the end of an earlier command on, or from the beginning for command 0
    """
    if number:
        stream = _split(stream, number - 1)[2]
    text, code, _rest = _split(stream, number)
    return Part(text, int(code) if code else None)


def _split(stream: str, number: int) -> typing.Tuple[str, str, str]:
    """The stream before the line that ends a command, the exit code in it, and the stream after it. Both are empty where that line is not there as yet."""
    before, mark, after = stream.partition(f"\n{MARK} {number} ")
    code, end, rest = after.partition("\n")
    return (before, code, rest) if mark and end and len(code) <= 3 and code.isascii() and code.isdigit() else (stream, "", "")
