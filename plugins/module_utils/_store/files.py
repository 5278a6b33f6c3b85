# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection keeps: written whole or not at all, and read with a cause when they can't be.

The folder of a run may come from a stranger. Each function takes with ``below`` the folder that the user named; no link
inside of it is followed, neither to read nor to write. Without ``below`` that is the folder of the file. What is read
is a regular file of bounded size: a FIFO or a device would never end.
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
    """A file that can't be written or read; names the file and the cause."""


def base_of(path: str, folder: str) -> str:
    """Return the ``below`` of what is written to the folder ``path``: ``folder`` if it is in that, else itself."""
    path, folder = os.path.abspath(path), os.path.abspath(folder)
    return folder if os.path.commonpath((path, folder)) == folder else path


def write_text(path: str, text: str, below: str = "") -> None:
    """Write a file in one step, so that an interrupted run leaves no half of it; makes its folder.

    :raises FileError: it can't be written
    """
    # a tool may print what is no text at all; half a report would be worse than an escape in it
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"), below)


def write_bytes(path: str, content: bytes, below: str = "") -> None:
    """The same with bytes.

    :raises FileError: it can't be written
    """
    write_parts(path, (content,), below)


def write_parts(path: str, parts: typing.Iterable[bytes], below: str = "") -> None:
    """The same with what need not fit into memory.

    :raises FileError: it can't be written
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
    """Write a file that is not there yet; makes its folder. A file that is there stays as it is, also one that came a
    moment ago.

    :raises FileError: it is there, or can't be written
    """
    with _translate_os_errors(path, "written"), _open_folder(path, below, make=True) as (folder, name):
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        except FileExistsError as error:
            raise FileError(
                f"{path} is there already, and no file is overwritten", "Name another file, or move this one away"
            ) from error
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise


def remove(path: str, below: str = "") -> None:
    """Remove a file, if it is there.

    :raises FileError: it can't be removed
    """
    with (
        contextlib.suppress(FileNotFoundError),
        _translate_os_errors(path, "removed"),
        _open_folder(path, below) as (folder, name),
    ):
        os.unlink(name, dir_fd=folder)


def list_names_in(path: str, below: str = "") -> list[str]:
    """Return the names in a folder, sorted; none where there is no such folder.

    :raises FileError: it can't be read
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
    """Refuse a folder in the folder of a run if it, or one on the way to it, is a link. One that is not there is none.

    :raises FileError: there is a link
    :raises OSError: it can't be looked at
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _open_folder(os.path.join(path, "any"), below):
        pass


def read_json(path: str, below: str = "", most: int = MOST_BYTES, of_what: str = "") -> typing.Any:
    """Return the plain data of a file; None when there is none.

    :param most: bytes that it may have
    :param of_what: what may have so many, for the message: ``a fact of one node``
    :raises FileError: it can't be read, is no regular file, too large, or no JSON that ``decode_json`` takes
    """
    with opened(path, below, most, of_what) as stream:
        return None if stream is None else decoded(_read_text(stream, path, most), path, most=most)


def _read_text(stream: typing.BinaryIO, path: str, most: int) -> typing.Union[str, bytes]:
    """Return what is in a file. Of a large one that is text, whose characters take a byte each; they would take four
    with one of them beyond Unicode's first 65,536.

    :raises FileError: it is large, and has other characters than ASCII
    """
    # as many bytes as are asked for are set aside at once
    content = stream.read(min(most, os.fstat(stream.fileno()).st_size) + 1)
    if len(content) <= MOST_ANSWER:
        return content
    if not content.isascii():
        raise _make_read_error(
            path, f"it has {len(content)} bytes with characters beyond ASCII, which a run writes as \\u and four digits"
        )
    return content.decode()


def json_of(data: typing.Any, indent: typing.Optional[int] = None, nan: bool = True) -> str:
    """Return plain data as JSON that ``read_json`` takes: half of a surrogate pair, which a tool may print, is there as
    the text of its escape.

    :raises ValueError: NaN or Infinity is in it, and ``nan`` is not set
    """
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(data, sort_keys=True, separators=separators, indent=indent, allow_nan=nan)
    if "\\ud" not in text:
        return text
    whole = _LONE.sub(
        lambda half: f"\\\\u{ord(half.group()):04x}", json.dumps(data, sort_keys=True, ensure_ascii=False)
    )
    return json.dumps(json.loads(whole), separators=separators, indent=indent)


def decoded(text: typing.Union[str, bytes], path: str, what: str = "it", most: int = MOST_BYTES) -> typing.Any:
    """Return the plain data of a file, or of a part of it.

    :param what: the part, for the message
    :raises FileError: it is too large, or no JSON that ``decode_json`` takes
    """
    try:
        return decode_json(text, what, most)
    except ParseError as error:
        raise FileError(f"{path} can't be read: {error}") from error


@contextlib.contextmanager
def opened(
    path: str, below: str = "", most: int = MOST_BYTES, of_what: str = ""
) -> typing.Iterator[typing.Optional[typing.BinaryIO]]:
    """Open a file to read it; None where there is none.

    :param most: bytes that it may have
    :param of_what: what may have so many, for the message
    :raises FileError: it can't be read, is no regular file, or too large
    """
    try:
        with _translate_os_errors(path, "read"):
            handle = _open_regular_file(path, below, most, of_what)
    except FileNotFoundError:
        yield None
        return
    with os.fdopen(handle, "rb") as stream, _translate_os_errors(path, "read"):
        yield stream


def read_bytes(path: str, below: str = "", most: int = MOST_BYTES) -> bytes:
    """Return what is in a file.

    :raises FileError: it is not there, can't be read, is no regular file, or too large
    """
    with opened(path, below, most) as stream:
        if stream is None:
            raise FileError(f"{path} can't be read: there is no such file", "Look whether it is there")
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
        f"it has {found.st_size} bytes; {most} are the most{f' for {of_what}' if of_what else ''}"
        if stat.S_ISREG(found.st_mode)
        else f"it is {_describe_file_kind(found)}; expected a regular file"
    )
    raise _make_read_error(path, seen)


def _make_read_error(path: str, seen: str) -> FileError:
    return FileError(f"{path} can't be read: {seen}", "Look where the folder comes from")


def _describe_file_kind(found: os.stat_result) -> str:
    return next((name for test, name in _KINDS if test(found.st_mode)), "a device")


@contextlib.contextmanager
def _translate_os_errors(path: str, done: str) -> typing.Iterator[None]:
    """Turn an error of the system into one that names the file. A file that is not there is the caller's to judge,
    unless it is to be written."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and done != "written":
            raise
        remedy = {
            "written": "Look whether there is room, and whether this user may write there",
            "removed": "Look whether this user may write there",
        }
        raise FileError(
            f"{path} can't be {done}: {error.strerror}", remedy.get(done, "Look whether this user may read there")
        ) from error
    except ValueError as error:
        # a name that no file system takes
        raise FileError(f"{path} can't be {done}: {error}") from error


@contextlib.contextmanager
def _open_folder(path: str, below: str, make: bool = False) -> typing.Iterator[tuple[int, str]]:
    """Open the folder of a file, from ``below`` down, without following a link.

    :returns: its descriptor, and the name of the file in it
    :raises FileError: a part of the path is a link, or the file is not below
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
                f"{path} is a link, and no link in the folder of a run is followed",
                "Look where the folder comes from; remove the link",
            ) from None
        raise


def _find_parts(path: str, below: str) -> list[str]:
    if not below:
        return [os.path.basename(os.path.abspath(path))]
    parts = os.path.relpath(path, below).split(os.sep)
    if os.pardir in parts:
        raise FileError(f"{path} is not below {below}", "Name a file in that folder")
    return parts
