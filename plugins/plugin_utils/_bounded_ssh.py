# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Limit the number of bytes that a node sends by ssh, and end the programs that a task leaves behind.

The ssh plugin of ansible-core collects all output, which takes CPU time that grows with the square of its length, and
does not end its ``ssh`` if the task exceeds its timeout. Each task runs in a process of its own, so that programs of
other tasks are not affected.
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
    """The output stream of a program, whose bytes are counted when they are read.

    :param pipe: the original stream, in non-blocking mode
    :param count: function that gets the number of bytes of each piece, and raises an error if the limit is exceeded
    """

    def __init__(self, pipe: typing.Any, count: typing.Callable[[int], None]) -> None:
        self._pipe, self._count = pipe, count

    def read(self) -> typing.Optional[bytes]:
        """Read the available bytes like a non-blocking stream. Return None if there are none yet, and empty bytes at
        the end of the output.

        :raises AnsibleConnectionFailure: the program has printed more than its limit
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
    """A replacement for the module ``subprocess`` in one connection plugin. It limits the output of each program, and
    keeps a list of the programs that it has started.

    :param node: name of the node, for messages
    :param most: maximum number of bytes that one program may print, on both of its streams together
    :param start: the original ``subprocess.Popen``
    """

    def __init__(self, node: str, most: int, start: typing.Callable[..., typing.Any]) -> None:
        self._node, self._most, self._start = node, most, start
        self._started: list[subprocess.Popen[bytes]] = []

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(subprocess, name)

    def Popen(self, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
        """Start a program, and return its ``subprocess.Popen``. If it prints more bytes than the limit, it is killed,
        and reading its output raises AnsibleConnectionFailure.
        """
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
        """Kill the started programs that still run, because the task that started them is over."""
        for started in self._started:
            if started.poll() is None:
                started.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.wait(5)


@contextlib.contextmanager
def bounded_ssh(connection: typing.Any, node: str, most: int) -> typing.Iterator[None]:
    """Provide a context in which the output of each program that the ssh plugin starts is limited. With another
    connection plugin, do nothing.

    :param connection: connection plugin of the task
    :param node: name of the node, for messages
    :param most: maximum number of bytes of one program, on both of its streams together
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
