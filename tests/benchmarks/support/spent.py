# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a command costs: its own time, and the processor time of all that it starts."""

from __future__ import annotations

import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import time
import typing

#: prctl(2): orphans become children of this process, and their time is known once they have ended
PR_SET_CHILD_SUBREAPER = 36
#: seconds of a command
LIMIT = 600


class Spent(typing.NamedTuple):
    """:ivar wall: seconds until the command ended
    :ivar processor: seconds, user and system, of the command, of its children, and of what it left running
    """

    wall: float
    processor: float


def run(
    command: typing.Sequence[str], folder: pathlib.Path, environment: typing.Mapping[str, str]
) -> tuple[Spent, str]:
    """Run a command, and end what it leaves behind: ssh's connections that are kept open.

    :param folder: in which it runs
    :returns: what it cost, and its stdout
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    known, start, before = _children(), time.monotonic(), _processor()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    wall = time.monotonic() - start
    for left in _children() - known:
        os.kill(left, signal.SIGTERM)
        os.waitpid(left, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 0)
    if done.returncode:
        raise SystemExit(
            f"'{' '.join(command)[:200]}' ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}"
        )
    return Spent(wall, _processor() - before), done.stdout


def _children() -> set[int]:
    return {int(word) for word in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
