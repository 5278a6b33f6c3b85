# SPDX-License-Identifier: GPL-3.0-or-later

"""Find services of a node by the names of their processes."""

from __future__ import annotations

import os
import typing

from ...._parse.node import tuning as parse
from ..sysfs_reader import SysfsReader

#: bytes of a file of a process, whose command line is the longest
_MOST = 65536


def list_processes(proc: SysfsReader, names: typing.Container[str]) -> typing.Iterator[tuple[str, str]]:
    """Yield the id and the name of each process of the node that has one of several names. Processes are found by the
    names that the kernel stores.

    Any user can give any name to a process, so only processes of root outside of containers count. The mount namespace
    of a process does not show that it is outside of containers, because systemd units have private mount namespaces.
    The path of its program does not either, because some distributions have one program for several tools.

    :param proc: reader of the procfs of the node
    :param names: names of the services
    """
    for pid in proc.names(""):
        name = read_process_file(proc, pid, "comm").rstrip("\n") if pid.isdigit() else ""
        if name and name in names and parse.is_of_node(read_process_file(proc, pid, "status")):
            yield pid, name


def read_process_file(proc: SysfsReader, pid: str, name: str) -> str:
    """Return the text of a file of a process. Return an empty string if it cannot be read. Errors are not recorded,
    because thousands of processes start and end meanwhile.

    :param proc: reader of the procfs of the node
    :param pid: process ID
    :param name: name of the file in the folder of the process
    """
    try:
        with open(os.path.join(proc.folder, pid, name), "rb", buffering=0) as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
