# SPDX-License-Identifier: GPL-3.0-or-later

"""Read any number of log files of any size in a limited amount of memory."""

from __future__ import annotations

import collections
import io
import os
import time
import typing

from .._model.base.errors import RdmaError, SourceRefused
from .._model.job.nccl import HOLE, TOGETHER
from .._parse.job.nccl.log_reader import is_document
from .files import open_file

#: characters that are read at once, and most of a line: NCCL writes 1024 at most, and what stands before them is short
_PIECE = 1 << 18
#: bytes of a log. One of 16 GiB has 100 million lines, which NCCL does not write with NCCL_DEBUG=INFO
_MOST_OF_A_LOG = 16 << 30
#: characters of a file in which the first line is looked for that is not empty
_MOST_OF_A_BEGINNING = 1 << 24
#: characters and lines of all logs that are read together, and seconds of the CPU that they take with their parser,
#: which reads up to a million lines in a second
_MOST_OF_ALL, _MOST_LINES, _MOST_SECONDS = 64 << 30, 200_000_000, 1800.0
#: a file with as many NUL characters in a row has a hole: it costs its owner no space on a disk, and has no end
_HOLE = "\0" * (1 << 16)


class _Left:
    """The limits that remain for logs that are read together.

    :ivar characters: number of characters that may still be read
    :ivar lines: number of lines that may still be read
    :ivar end: CPU time of this thread, in seconds, after which nothing more is read
    """

    def __init__(self) -> None:
        self.characters, self.lines, self.end = _MOST_OF_ALL, _MOST_LINES, time.thread_time() + _MOST_SECONDS

    def take(self, path: str, piece: str) -> None:
        """Subtract the size of a piece of a log from the limits that remain.

        :param path: path of the log, for messages
        :param piece: text of the piece
        :raises SourceRefused: the piece has a hole (a long sequence of NUL characters), or all logs together are too
            large or take too long
        """
        if time.thread_time() > self.end:
            raise SourceRefused(
                f"{TOGETHER} take more than {_MOST_SECONDS:.0f} s of CPU time, so the rest of {path} was not read",
                "Set training_logs to fewer or shorter logs",
            )
        self.characters -= len(piece)
        self.lines -= piece.count("\n")
        if min(self.characters, self.lines) < 0:
            raise SourceRefused(
                f"{TOGETHER} have more than {_MOST_OF_ALL} characters or {_MOST_LINES} lines, so the rest of"
                f" {path} was not read",
                "Set training_logs to fewer or shorter logs",
            )
        if _HOLE in piece:
            raise SourceRefused(
                f"{path} has {len(_HOLE)} {HOLE}, so the rest of it was not read",
                "Let the job write its log to a new file, and set training_logs to this file",
            )


def read_lines(paths: typing.Sequence[str]) -> typing.Iterator[str]:
    """Yield the lines of all files, one file after the other, with their line ends. A line that is too long (more than
    about 256 Ki characters) becomes an empty line.

    A user who can write into the folder of the logs can put any kind of file there. A file that is not a regular file
    is therefore not read: a FIFO or a device may have no end, and a link may lead to a file that its creator must not
    read.

    :param paths: paths of the log files
    :raises RdmaError: a file does not exist
    :raises SourceRefused: a file cannot be read, is not a regular file, or is too large
    """
    yield from _read_all(paths, _Left())


def _read_all(paths: typing.Sequence[str], left: _Left) -> typing.Iterator[str]:
    for path in paths:
        yield from _read_lines_of(path, left=left)


def read_files(paths: typing.Sequence[str]) -> typing.Iterator[tuple[str, typing.Iterator[str]]]:
    """Yield the name and the lines of each file, one file after the other. The name includes the folders if another
    file has the same name. The lines have their ends, and a line that is too long becomes an empty line.

    :param paths: paths of the log files
    :raises RdmaError: raised by the iterator of lines if a file cannot be read
    """
    paths = list(dict.fromkeys(paths))
    names = collections.Counter(map(os.path.basename, paths))
    left = _Left()
    for path in paths:
        name = os.path.basename(path)
        yield (name if names[name] == 1 else path), _read_all([path], left)


def has_several_logs(paths: typing.Sequence[str]) -> bool:
    """Return whether more than one of the files is the log of a pod rather than a JSON document of nccl-tests. A path
    that is given twice counts once. A file that is refused, because it cannot be read or is not a regular file, counts
    as a log.

    :param paths: paths of log files or JSON documents
    :raises RdmaError: a file does not exist
    """
    found = 0
    for path in dict.fromkeys(paths):
        try:
            lines = _read_lines_of(path, _MOST_OF_A_BEGINNING)
            first = next((line for line in lines if not line.isspace()), "")
        except SourceRefused:
            first = ""
        found += not is_document(first)
    return found > 1


def _read_lines_of(
    path: str, most: typing.Optional[int] = None, left: typing.Optional[_Left] = None
) -> typing.Iterator[str]:
    """Yield the lines of a file, with their ends.

    :param most: number of characters after which the reading ends; None for a file of at most ``_MOST_OF_A_LOG``
    :param left: remaining limits of all logs together; None for a file that is read alone
    :raises RdmaError: the file does not exist
    :raises SourceRefused: the file cannot be read, is not a regular file, or is too large
    """
    try:
        stream = open_file(path, most=_MOST_OF_A_LOG, of_what="a log of a job")
    except RdmaError as error:
        raise SourceRefused(error.seen, error.remedy) from error
    if stream is None:
        raise RdmaError(
            f"{path} could not be read: No such file or directory",
            "Set training_logs to logs that are on the controller",
        )
    # a log is what any program wrote, so no byte of it may end the reading
    with io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="\n") as file:
        try:
            yield from _read_bounded_lines(file, path, most, left or _Left())
        except OSError as error:
            raise SourceRefused(f"{path} could not be read: {error.strerror}") from error


def _read_bounded_lines(
    file: typing.TextIO, path: str, most: typing.Optional[int], together: _Left
) -> typing.Iterator[str]:
    """Yield the lines of an open file, which is read in pieces. Reading line by line takes twice as long, and a broken
    log may consist of a single line.

    :param path: path of the file, for messages
    :param most: number of characters after which the reading ends; None for a file of at most ``_MOST_OF_A_LOG``
    :param together: remaining limits of all logs together
    :raises SourceRefused: the file has grown beyond _MOST_OF_A_LOG while it was read, has a hole (a long sequence of
        NUL characters), or all logs together are too large or take too long
    """
    rest, skip, left = "", False, _MOST_OF_A_LOG if most is None else most
    for piece in iter(lambda: file.read(_PIECE), ""):
        left -= len(piece)
        if left < 0 and most is None:
            raise SourceRefused(f"{path} grew beyond {_MOST_OF_A_LOG} bytes while it was being read")
        if left < 0:
            return
        together.take(path, piece)
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
