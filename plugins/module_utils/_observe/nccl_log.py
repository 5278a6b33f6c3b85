# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Logs as files: any number, of any size, in a bounded amount of memory."""

from __future__ import annotations

import typing

from .._model.errors import RdmaError

#: characters of a line; NCCL writes 1024 at most, and what stands before them is short
_LONGEST = 65536


def read_lines(paths: typing.Sequence[str]) -> typing.Iterator[str]:
    """The lines of all files, one after the other, with their ends; of a line that is too long only the end of it is there, and is empty.

    :raises RdmaError: a file can't be read
    """
    for path in paths:
        try:
            # a log is what any program wrote, so no byte of it may end the reading
            with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
                yield from _lines(file)
        except OSError as error:
            raise RdmaError(f"{path} can't be read: {error.strerror}", "Name a log that is on the controller") from error


def _lines(file: typing.TextIO) -> typing.Iterator[str]:
    rest = False
    for line in iter(lambda: file.readline(_LONGEST), ""):
        ends = line.endswith("\n")
        if rest or (not ends and len(line) == _LONGEST):
            if ends:
                yield "\n"
            rest = not ends
        else:
            yield line
