# SPDX-License-Identifier: GPL-3.0-or-later

"""Identify a process of this machine, and find out whether it still runs. A process ID is reused, but its combination
with boot ID, PID namespace and start time is unique.
"""

from __future__ import annotations

import os
import typing

#: of the number of a process; others may write it into a Lease
_MOST_DIGITS = 10


def read_identity(pid: int, proc: str = "/proc") -> str:
    """Return the identity of a process as text: boot ID, PID namespace, process ID and start time, separated by
    slashes. A part that the system does not provide is empty.

    :param pid: process ID
    :param proc: folder in which procfs is mounted
    """
    return "/".join((*_read_boot_and_namespace(proc), str(pid), _read_start_ticks(pid, proc)))


def is_alive(name: str, proc: str = "/proc") -> typing.Optional[bool]:
    """Return whether the process with an identity still runs. Return None if this cannot be determined: the identity is
    malformed or incomplete, the process belongs to another boot, machine or container, or the system has no procfs.

    :param name: identity that ``read_identity`` returned, maybe on another machine
    :param proc: folder in which procfs is mounted
    """
    boot, _slash, rest = name.partition("/")
    namespace, _slash, rest = rest.partition("/")
    number, _slash, start = rest.partition("/")
    is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    if not (boot and namespace and start and is_number) or (boot, namespace) != _read_boot_and_namespace(proc):
        return None
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        # of somebody else: procfs may hide it (hidepid), and then its start is not known
        pass
    now = _read_start_ticks(int(number), proc)
    return now == start if now else None


def read_boot_id(proc: str = "/proc") -> str:
    """Return the ID of this boot of this machine, which is the same in its containers. Return an empty text if it
    cannot be read.

    :param proc: folder in which procfs is mounted
    """
    return _read_boot_and_namespace(proc)[0]


def _read_boot_and_namespace(proc: str) -> tuple[str, str]:
    """Return the ID of this boot, and the number of the PID namespace of this process. Both are empty if one of them
    cannot be read.

    :param proc: folder in which procfs is mounted
    """
    try:
        return _read_text_file(os.path.join(proc, "sys/kernel/random/boot_id")), os.readlink(
            os.path.join(proc, "self/ns/pid")
        ).strip("pid:[]")
    except OSError:
        return "", ""


def _read_start_ticks(pid: int, proc: str) -> str:
    """Return the start of a process in clock ticks since boot [proc_pid_stat(5), field 22]. Return ``ended`` for a
    zombie, and an empty text if the process does not exist or its file cannot be read.

    :param pid: process ID
    :param proc: folder in which procfs is mounted
    """
    try:
        fields = _read_text_file(os.path.join(proc, str(pid), "stat")).rpartition(")")[2].split()
    except OSError:
        return ""
    if len(fields) < 20:
        return ""
    # what has ended and was not waited for starts nothing any more
    return "ended" if fields[0] in ("Z", "X") else fields[19]


def _read_text_file(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
