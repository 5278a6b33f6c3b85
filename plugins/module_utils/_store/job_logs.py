# SPDX-License-Identifier: GPL-3.0-or-later

"""Read any number of log files of any size in a limited amount of memory."""

from __future__ import annotations

import collections
import io
import os
import typing

from .._model.base.errors import RdmaError
from .._parse.job.nccl_log import is_document

#: characters that are read at once, and most of a line: NCCL writes 1024 at most, and what stands before them is short
_PIECE = 1 << 18


def read_lines(paths: typing.Sequence[str]) -> typing.Iterator[str]:
    """Yield the lines of all files, one file after the other, with their line ends. A line that is too long becomes an
    empty line.

    :raises RdmaError: a file cannot be read
    """
    for path in paths:
        try:
            # a log is what any program wrote, so no byte of it may end the reading
            with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
                yield from _read_bounded_lines(file)
        except OSError as error:
            raise RdmaError(
                f"{path} can't be read: {error.strerror}", "Name a log that is on the controller"
            ) from error


def read_files(paths: typing.Sequence[str]) -> typing.Iterator[tuple[str, typing.Iterator[str]]]:
    """Yield the name and the lines of each file once. The name includes the folders if another file has the same name.
    The lines are those of ``read_lines``.

    :raises RdmaError: raised by the iterator of lines if a file cannot be read
    """
    paths = list(dict.fromkeys(paths))
    names = collections.Counter(map(os.path.basename, paths))
    for path in paths:
        name = os.path.basename(path)
        yield (name if names[name] == 1 else path), read_lines([path])


def has_several_logs(paths: typing.Sequence[str]) -> bool:
    """Return whether more than one of the files is a log, and not a JSON document of nccl-tests. Each log then belongs
    to one pod.

    :raises RdmaError: a file cannot be read
    """
    found = 0
    for path in dict.fromkeys(paths):
        first = next((line for line in read_lines([path]) if not line.isspace()), "")
        found += not is_document(first)
    return found > 1


def _read_bounded_lines(file: typing.TextIO) -> typing.Iterator[str]:
    """Yield the lines of a file, which is read in pieces. Reading line by line takes twice as long, and a broken log
    may consist of a single line.
    """
    rest, skip = "", False
    for piece in iter(lambda: file.read(_PIECE), ""):
        for line in io.StringIO(rest + piece, newline="\n"):
            if line[-1] != "\n":
                rest = line
            elif skip:
                rest, skip = "", False
                yield "\n"
            else:
                rest = ""
                yield line
        if len(rest) > _PIECE:
            rest, skip = "", True
    if rest and not skip:
        yield rest
