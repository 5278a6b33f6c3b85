# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write the files of the collection. A file is written completely or not at all, and a read error has a cause.

The folder of a run may come from an untrusted source. The parameter ``below`` is the folder that the user named, by
default the folder of the file. Links inside of it are not followed, neither to read nor to write. Only regular files of
limited size are read, because a FIFO or a device could be endless.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
import typing

from .._model.base.errors import ParseError, RdmaError
from .._parse.limits import MIB, MOST_ANSWER, decode_json

#: bytes of a file of a run, unless its reader says less
MOST_BYTES = 128 * MIB
# enough for a folder that is no more than passed through; not every system has it
_PASS = getattr(os, "O_PATH", os.O_RDONLY)
_LONE = re.compile("[\ud800-\udfff]")
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))


class FileError(RdmaError):
    """The error that a file cannot be written or read. The message names the file and the cause."""


def base_of(path: str, folder: str) -> str:
    """Return the folder below which no link is followed when files in the folder ``path`` are read or written:
    ``folder`` if it contains ``path``, otherwise ``path`` itself.
    """
    path, folder = os.path.abspath(path), os.path.abspath(folder)
    return folder if os.path.commonpath((path, folder)) == folder else path


def write_text(path: str, text: str, below: str = "") -> None:
    """Write a text file atomically, so that an interrupted run leaves no partial file. Create its folder if necessary.

    :param below: folder below which no link is followed; empty for the folder of the file
    :raises FileError: the file cannot be written
    """
    # a tool may print what is no text at all; half a report would be worse than an escape in it
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"), below)


def write_bytes(path: str, content: bytes, below: str = "") -> None:
    """Write a file of bytes atomically, so that an interrupted run leaves no partial file. Create its folder if
    necessary.

    :param below: folder below which no link is followed; empty for the folder of the file
    :raises FileError: the file cannot be written
    """
    write_parts(path, (content,), below)


def write_parts(path: str, parts: typing.Iterable[bytes], below: str = "") -> None:
    """Write a file atomically from parts, which need not fit into memory together. Create its folder if necessary.

    :param below: folder below which no link is followed; empty for the folder of the file
    :raises FileError: the file cannot be written
    """
    with _translate_os_errors(path, "written"), _open_folder(path, below, make=True) as (folder, name):
        temporary = f".{secrets.token_hex(8)}.tmp"
        # the umask of the user says who may read it
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(parts)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise


def write_new(path: str, text: str, below: str = "") -> None:
    """Write a file that does not exist yet. Create its folder if necessary. An existing file is never overwritten, even
    if it was created at the same time.

    :param below: folder below which no symbolic link is followed; empty for the folder of the file
    :raises FileError: the file exists, or cannot be written
    """
    with _translate_os_errors(path, "written"), _open_folder(path, below, make=True) as (folder, name):
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        except FileExistsError as error:
            raise FileError(
                f"{path} already exists, and no file is overwritten", "Set another file, or move this one away"
            ) from error
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise


def remove_file(path: str, below: str = "") -> None:
    """Remove a file. If it does not exist, do nothing.

    :param below: folder below which no symbolic link is followed; empty for the folder of the file
    :raises FileError: the file cannot be removed
    """
    with (
        contextlib.suppress(FileNotFoundError),
        _translate_os_errors(path, "removed"),
        _open_folder(path, below) as (folder, name),
    ):
        os.unlink(name, dir_fd=folder)


def list_names_in(path: str, below: str = "") -> list[str]:
    """Return the sorted names in a folder. Return an empty list if the folder does not exist.

    :param below: folder below which no symbolic link is followed; empty for ``path``
    :raises FileError: the folder cannot be read
    """
    with (
        contextlib.suppress(FileNotFoundError),
        _translate_os_errors(path, "read"),
        _open_folder(os.path.join(path, "any"), below or path) as (folder, _name),
    ):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            return sorted(os.listdir(handle))
        finally:
            os.close(handle)
    return []


def refuse_links(path: str, below: str) -> None:
    """Verify that neither a folder nor its parents below ``below`` are links. A folder that does not exist is accepted.

    :raises FileError: one of them is a link
    :raises OSError: the folder cannot be opened
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _open_folder(os.path.join(path, "any"), below):
        pass


def read_json(path: str, below: str = "", most: int = MOST_BYTES, of_what: str = "") -> typing.Any:
    """Return the plain data of a JSON file. Return None if the file does not exist.

    :param below: folder below which no link is followed; empty for the folder of the file
    :param most: limit in bytes
    :param of_what: kind of file to which the limit applies, for the message, such as ``a fact of one node``
    :raises FileError: the file cannot be read, is not a regular file, is too large, or is not valid JSON
    """
    with open_regular(path, below, most, of_what) as stream:
        return None if stream is None else decode_file_json(_read_text(stream, path, most), path, most=most)


def _read_text(stream: typing.BinaryIO, path: str, most: int) -> typing.Union[str, bytes]:
    """Read the content of a file. A small file is returned as bytes. A large file is returned as text and must contain
    only ASCII characters, because Python stores such a text with one byte for each character, and other texts with up
    to four.

    :param path: path of the file, for the message
    :param most: limit in bytes. One byte more is read, so that the caller sees an excess
    :raises FileError: the file is large, and has other characters than ASCII
    """
    # as many bytes as are asked for are set aside at once
    content = stream.read(min(most, os.fstat(stream.fileno()).st_size) + 1)
    if len(content) <= MOST_ANSWER:
        return content
    if not content.isascii():
        raise _make_read_error(
            path, f"it has {len(content)} bytes with non-ASCII characters, which a run writes as \\u and four digits"
        )
    return content.decode()


def json_of(data: typing.Any, indent: typing.Optional[int] = None, nan: bool = True) -> str:
    """Return plain data as JSON that the collection can read again. A lone surrogate, which a program may print,
    becomes the text of its escape sequence.

    :param indent: columns of each level; None for the most compact form
    :param nan: whether NaN and Infinity are allowed
    :raises ValueError: the data contains NaN or Infinity, and ``nan`` is False
    """
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(data, sort_keys=True, separators=separators, indent=indent, allow_nan=nan)
    if "\\ud" not in text:
        return text
    whole = _LONE.sub(
        lambda half: f"\\\\u{ord(half.group()):04x}", json.dumps(data, sort_keys=True, ensure_ascii=False)
    )
    return json.dumps(json.loads(whole), separators=separators, indent=indent)


def decode_file_json(text: typing.Union[str, bytes], path: str, what: str = "it", most: int = MOST_BYTES) -> typing.Any:
    """Return the data of JSON text that was read from a file.

    :param text: JSON text: the whole file, or one line of it
    :param path: path of the file, for the message
    :param what: name of the text, for the message
    :param most: maximum size in bytes
    :raises FileError: the text is too large, is not valid JSON, has a duplicate key, or nests too deeply
    """
    try:
        return decode_json(text, what, most)
    except ParseError as error:
        raise FileError(f"{path} could not be read: {error}") from error


def open_file(
    path: str, below: str = "", most: int = MOST_BYTES, of_what: str = ""
) -> typing.Optional[typing.BinaryIO]:
    """Open a regular file for reading.

    :param below: folder below which no link is followed; empty for the folder of the file
    :param most: maximum size in bytes
    :param of_what: kind of file to which the limit applies, for the message
    :returns: the stream; None if the file does not exist
    :raises FileError: the file cannot be read, is not a regular file, or is too large
    """
    try:
        with _translate_os_errors(path, "read"):
            return os.fdopen(_open_regular_file(path, below, most, of_what), "rb")
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def open_regular(
    path: str, below: str = "", most: int = MOST_BYTES, of_what: str = ""
) -> typing.Iterator[typing.Optional[typing.BinaryIO]]:
    """Open a regular file for reading, as a context. The stream is None if the file does not exist.

    :param below: folder below which no link is followed; empty for the folder of the file
    :param most: limit in bytes
    :param of_what: kind of file to which the limit applies, for the message
    :raises FileError: the file cannot be opened or read, is not a regular file, or is too large
    """
    stream = open_file(path, below, most, of_what)
    if stream is None:
        yield None
        return
    with stream, _translate_os_errors(path, "read"):
        yield stream


def read_bytes(path: str, below: str = "", most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    :param below: folder below which no symbolic link is followed; empty for the folder of the file
    :param most: maximum size in bytes
    :raises FileError: the file does not exist, cannot be read, is not a regular file, or is too large
    """
    with open_regular(path, below, most) as stream:
        if stream is None:
            raise FileError(f"{path} could not be read: the file does not exist", "Check that it exists")
        return stream.read(most)


def _open_regular_file(path: str, below: str, most: int, of_what: str) -> int:
    with _open_folder(path, below) as (folder, name):
        # a FIFO is opened at once, and then refused
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _make_read_error(path, "it is a link; expected a regular file") from None
            raise
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_size <= most:
        return handle
    os.close(handle)
    seen = (
        f"it has {found.st_size} bytes; the limit is {most}{f' for {of_what}' if of_what else ''}"
        if stat.S_ISREG(found.st_mode)
        else f"it is {_describe_file_kind(found)}; expected a regular file"
    )
    raise _make_read_error(path, seen)


def _make_read_error(path: str, seen: str) -> FileError:
    return FileError(f"{path} could not be read: {seen}", "Check the source of the folder")


def _describe_file_kind(found: os.stat_result) -> str:
    return next((name for test, name in _KINDS if test(found.st_mode)), "a device")


@contextlib.contextmanager
def _translate_os_errors(path: str, done: str) -> typing.Iterator[None]:
    """Convert errors of the operating system to errors with the path of the file. FileNotFoundError is passed on to the
    caller, except for writes.

    :param done: operation: ``written``, ``removed`` or ``read``
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and done != "written":
            raise
        remedy = {
            "written": "Check that there is free space, and that this user may write there",
            "removed": "Check that this user may write there",
        }
        raise FileError(
            f"{path} could not be {done}: {error.strerror}", remedy.get(done, "Check that this user may read there")
        ) from error
    except ValueError as error:
        # a name that no file system takes
        raise FileError(f"{path} could not be {done}: {error}") from error


@contextlib.contextmanager
def _open_folder(path: str, below: str, make: bool = False) -> typing.Iterator[tuple[int, str]]:
    """Open the folder of a file, starting at ``below`` and without following links. Provide two values as a context:
    the file descriptor of the folder, and the name of the file in it.

    :param path: path of the file
    :param below: folder in which the walk starts; empty for the folder of the file
    :param make: whether missing folders are created
    :raises FileError: a part of the path is a link, or the file is not below ``below``
    :raises OSError: a folder cannot be opened or created
    """
    *parts, name = _find_parts(path, below)
    base = os.path.abspath(below) if below else os.path.dirname(os.path.abspath(path))
    if make:
        os.makedirs(base, exist_ok=True)
    handle = os.open(base, _PASS | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for place, part in enumerate(parts):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            deeper = _open_subfolder(handle, part, os.path.join(base, *parts[: place + 1]))
            os.close(handle)
            handle = deeper
        yield handle, name
    finally:
        os.close(handle)


def _open_subfolder(handle: int, part: str, path: str) -> int:
    try:
        return os.open(part, _PASS | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
    except OSError:
        if stat.S_ISLNK(os.lstat(part, dir_fd=handle).st_mode):
            raise FileError(
                f"{path} is a link, and links in the folder of a run are not followed",
                "Check the source of the folder; remove the link",
            ) from None
        raise


def _find_parts(path: str, below: str) -> list[str]:
    if not below:
        return [os.path.basename(os.path.abspath(path))]
    parts = os.path.relpath(path, below).split(os.sep)
    if os.pardir in parts:
        raise FileError(f"{path} is not below {below}", "Set a file in that folder")
    return parts
