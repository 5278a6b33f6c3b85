# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection keeps: written whole or not at all, and read with a cause when they can't be."""

from __future__ import annotations

import json
import os
import tempfile
import typing

from .._model.errors import RdmaError


class FileError(RdmaError):
    """A file that can't be written or read; names the file and the cause."""


def write_text(path: str, text: str) -> None:
    """Write a file in one step, so that an interrupted run leaves no half of it; makes its folder.

    :raises FileError: it can't be written
    """
    # a tool may print what is no text at all; half a report would be worse than an escape in it
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str, content: bytes) -> None:
    """The same with bytes.

    :raises FileError: it can't be written
    """
    directory = os.path.dirname(path) or "."
    try:
        os.makedirs(directory, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"{path} can't be written: {error.strerror}", "Look whether there is room, and whether this user may write there") from error


def write_new(path: str, text: str) -> None:
    """Write a file that is not there yet; makes its folder. A file that is there stays as it is, also one that came a moment ago.

    :raises FileError: it is there, or can't be written
    """
    folder = os.path.dirname(path) or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} can't be made: {error.strerror}", "Look whether there is room, and whether this user may write there") from error
    try:
        with open(path, "x", encoding="utf-8") as stream:
            try:
                stream.write(text)
                stream.flush()
            except BaseException:
                os.unlink(path)
                raise
    except FileExistsError as error:
        raise FileError(f"{path} is there already, and no file is overwritten", "Name another file, or move this one away") from error
    except OSError as error:
        raise FileError(f"{path} can't be written: {error.strerror}", "Look whether there is room, and whether this user may write there") from error


def remove(path: str) -> None:
    """Remove a file, if it is there.

    :raises FileError: it can't be removed
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"{path} can't be removed: {error.strerror}", "Look whether this user may write there") from error


def read_json(path: str) -> typing.Any:
    """Plain data of a file; None when there is none.

    :raises FileError: it can't be read, or is no JSON
    """
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} can't be read: {error}") from error
