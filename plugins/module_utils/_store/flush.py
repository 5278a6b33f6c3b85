# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the files of folders to the disk. A machine that its BMC resets loses what only its memory has: a boot
configuration that was written seconds before is then empty or an old one.
"""

from __future__ import annotations

import os
import stat
import typing

from .files import FileError


def flush_folders(folders: typing.Iterable[str]) -> None:
    """Write the regular files in folders, and the names in these folders, to the disk. A folder that does not exist is
    left out, as are folders in it.

    :param folders: paths of the folders
    :raises FileError: a file or a folder cannot be written to the disk
    """
    for folder in folders:
        if not os.path.isdir(folder):
            continue
        for path in (*sorted(os.path.join(folder, name) for name in os.listdir(folder)), folder):
            _flush(path)


def _flush(path: str) -> None:
    try:
        # without O_NONBLOCK, a FIFO would wait for a writer
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        # a link to nothing, or a file that went meanwhile
        return
    except OSError as error:
        raise _name_failure(path, error) from error
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            os.fsync(handle)
    except OSError as error:
        raise _name_failure(path, error) from error
    finally:
        os.close(handle)


def _name_failure(path: str, error: OSError) -> FileError:
    return FileError(
        f"{path} could not be written to the disk: {error.strerror}",
        "Read the kernel log of the machine (dmesg) for errors of its disk, and correct the cause. Run sync there"
        " before the machine boots. Then rerun",
    )
