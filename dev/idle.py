# SPDX-License-Identifier: GPL-3.0-or-later

"""A group of processes that has what of the processors nobody else wants.

``nice`` and an autogroup weigh processes against each other, so that guests that want all of a processor lose some of
it. A control group with ``cpu.idle`` takes none of it. [kernel, Documentation/admin-guide/cgroup-v2.rst, cpu.idle;
cgroup v1 has the same file since 5.15]
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import typing

#: where groups are made: by the controller cpu of cgroup v1, and by cgroup v2
ROOTS = (pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup"))
#: moves itself into the group, so that all that it starts is in there as well
_MOVE = 'echo $$ > "$0" && exec "$@"'

Group = typing.Optional[pathlib.Path]


@contextlib.contextmanager
def idle_group(roots: typing.Iterable[pathlib.Path] = ROOTS) -> typing.Iterator[Group]:
    """Make a group, and remove it at the end; None where this user or this kernel can make none."""
    with contextlib.ExitStack() as stack:
        yield next((group for root in roots for group in [_made(root, stack)] if group), None)


def within(group: pathlib.Path, command: typing.Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs another one in the group."""
    return ("sh", "-c", _MOVE, str(group / "cgroup.procs"), *command)


def _made(root: pathlib.Path, stack: contextlib.ExitStack) -> Group:
    group = root / f"linerate-idle-{os.getpid()}"
    try:
        group.mkdir()
        stack.callback(_remove, group)
        # a folder that is none of control groups has no such files
        (group / "cpu.idle").read_text(encoding="ascii")
        (group / "cpu.idle").write_text("1", encoding="ascii")
    except OSError:
        return None
    return group


def _remove(group: pathlib.Path) -> None:
    # a process that has not ended yet keeps it: an empty group harms nobody
    with contextlib.suppress(OSError):
        group.rmdir()
