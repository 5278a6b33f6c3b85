# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stops what a node sends by ssh at a number of bytes, and ends the programs that a task leaves behind.

The ssh plugin of ansible-core collects all that comes, which takes the square of its length in CPU, and leaves its
``ssh`` running where the time of a task is over. Each task is done by a process of its own, so that nobody else's
programs are changed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import typing

from ansible.errors import AnsibleConnectionFailure

#: bytes of one read, and of all that is there at the moment
_PIECE, _BURST = 65536, 1024 * 1024
#: names of the connection plugins whose programs are bounded
_PLUGINS = ("ssh", "ansible.builtin.ssh")


class _Pipe:
    """The output of a program, which counts what is read."""

    def __init__(self, pipe: typing.Any, count: typing.Callable[[int], None]) -> None:
        self._pipe, self._count = pipe, count

    def read(self) -> typing.Optional[bytes]:
        """Read what is there, as a stream does that does not wait: None where nothing is, and nothing at the end.

        :raises AnsibleConnectionFailure: too much came
        """
        parts: list[bytes] = []
        while sum(map(len, parts)) < _BURST:
            try:
                part = os.read(self._pipe.fileno(), _PIECE)
            except BlockingIOError:
                return b"".join(parts) or None
            if not part:
                break
            self._count(len(part))
            parts.append(part)
        return b"".join(parts)

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._pipe, name)


class _Programs:
    """In place of the module ``subprocess``, for one connection plugin."""

    def __init__(self, node: str, most: int, start: typing.Callable[..., typing.Any]) -> None:
        self._node, self._most, self._start = node, most, start
        self._started: list[subprocess.Popen[bytes]] = []

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(subprocess, name)

    def Popen(self, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
        """Start a program whose output has so many bytes."""
        started: typing.Any = self._start(*arguments, **options)
        self._started.append(started)
        left = self._most

        def count(size: int) -> None:
            nonlocal left
            left -= size
            if left < 0:
                started.kill()
                raise AnsibleConnectionFailure(
                    f"{self._node} sent a response of more than {self._most} bytes: check what its Python and its"
                    " login shell print"
                )

        for name in ("stdout", "stderr"):
            pipe = getattr(started, name)
            if pipe is not None:
                setattr(started, name, _Pipe(pipe, count))
        return started

    def end(self) -> None:
        """End what still runs: a task whose time is over leaves it."""
        for started in self._started:
            if started.poll() is None:
                started.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.wait(5)


@contextlib.contextmanager
def bounded_ssh(connection: typing.Any, node: str, most: int) -> typing.Iterator[None]:
    """Bound what each program of the ssh plugin prints meanwhile; nothing with another plugin.

    :param most: bytes of one program, on both of its streams
    """
    name = getattr(connection, "transport", "")
    module: typing.Any = sys.modules.get(type(connection).__module__) if name in _PLUGINS else None
    if getattr(module, "subprocess", None) is not subprocess:
        # another plugin, or a task within a task, which has its bound
        yield
        return
    programs = _Programs(node, most, subprocess.Popen)
    module.subprocess = programs
    try:
        yield
    finally:
        module.subprocess = subprocess
        programs.end()
