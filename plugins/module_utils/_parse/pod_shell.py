# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What the shell in a pod prints (see _render/commands.py) to the output and the exit code of each command that it ran.

The shell writes ``@linerate begin <number>`` and ``@linerate end <number> <exit code>``, each on a line of its own, around a command's output:
to both streams, since nothing orders one against the other on their way.
"""

from __future__ import annotations

import dataclasses
import re
import typing

MARK = "@linerate"


@dataclasses.dataclass(frozen=True)
class Part:
    """One command's part of a stream.

    :ivar text: what it printed up to now
    :ivar exit_code: None while it runs
    """

    text: str
    exit_code: typing.Optional[int] = None


def part(stream: str, number: int) -> Part:
    """The part of the command with that number. Never raises; a command that has not begun has printed nothing."""
    _before, begun, rest = stream.partition(f"\n{MARK} begin {number}\n")
    match = re.search(rf"\n{MARK} end {number} ([0-9]{{1,3}})\n", rest, re.ASCII) if begun else None
    return Part(rest[: match.start()], int(match.group(1))) if match else Part(rest)
