# SPDX-License-Identifier: GPL-3.0-or-later

"""Lock a folder for the life of a process, so that a process in another container or on another machine that shares the
folder can see that it is in use.

The lock is the one of flock(2) on a file in the folder. Linux makes it a lock of fcntl(2) on NFS. A task of Ansible is
a short process, so a keeper in the background holds the lock until ansible-playbook ends. The keeper inherits the open
file, to which such a lock belongs. The kernel releases it, however the keeper ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import time
import typing

from .command import make_environment

#: name of the file in the folder. It stays, because another process may already wait for the lock of a removed file
LOCK = ".run.lock"
#: seconds between two attempts to lock
_PAUSE = 0.05
#: seconds in which a keeper starts
_START = 60
#: of flock: another open file has the lock
_HELD = (errno.EAGAIN, errno.EACCES)
#: first process of a keeper. It ends when the second one watches the process, so that a task is no parent of it
_KEEPER = """
import os, select, sys, time
number = int(sys.argv[1])
try:
    watched = os.pidfd_open(number)
except ProcessLookupError:
    sys.exit()
except (AttributeError, OSError):
    watched = None
if os.fork():
    os._exit(0)
if watched is not None:
    select.select([watched], [], [])
    os._exit(0)
while True:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        os._exit(0)
    time.sleep(1)
"""


class LockOutcome(typing.NamedTuple):
    """The outcome of an attempt to lock a folder. With both defaults, the folder is locked.

    :ivar held: whether another process has the lock
    :ivar error: reason why the folder cannot be locked; empty otherwise
    """

    held: bool = False
    error: str = ""


def lock_folder(folder: str, pid: int, wait: float = 0) -> LockOutcome:
    """Lock a folder until a process ends, and return the outcome. Create the folder if it does not exist.

    :param pid: ID of the process until whose end the folder stays locked
    :param wait: longest wait in seconds for a lock that another process has; 0 for one attempt
    """
    try:
        os.makedirs(folder, exist_ok=True)
        file = _open_lock_file(os.path.join(folder, LOCK))
    except OSError as error:
        return LockOutcome(error=error.strerror or str(error))
    try:
        if not _take_lock(file, wait):
            return LockOutcome(held=True)
        _start_keeper(file, pid)
    except (OSError, subprocess.SubprocessError) as error:
        return LockOutcome(error=getattr(error, "strerror", None) or str(error))
    finally:
        os.close(file)
    return LockOutcome()


def _open_lock_file(path: str) -> int:
    """Open a lock file, create it if it is missing, and return its file descriptor. The file is opened for writing,
    because NFS locks only such a file. If it belongs to another user, it is opened for reading, which is sufficient on
    other file systems.

    :raises OSError: the file cannot be opened
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(PermissionError):
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    return os.open(path, os.O_RDONLY | flags)


def _take_lock(file: int, wait: float) -> bool:
    """Lock an open file with flock(2). Return whether the lock was taken before the end of the wait.

    :param file: file descriptor
    :param wait: longest wait in seconds; 0 for one attempt
    :raises OSError: the file system has no locks
    """
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                raise
        else:
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE)


def _start_keeper(file: int, pid: int) -> None:
    """Start a process that keeps a file open until another process ends. It is connected neither to the terminal nor to
    the pipes of its caller.

    :param file: file descriptor of the open file
    :param pid: process ID of the other process
    :raises OSError: the keeper could not be started
    :raises subprocess.SubprocessError: the keeper failed, or did not start within a minute
    """
    argv = (sys.executable, "-I", "-S", "-c", _KEEPER, str(pid))
    subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(file,),
        env=make_environment(),
        cwd="/",
        start_new_session=True,
        timeout=_START,
        check=True,
    )
