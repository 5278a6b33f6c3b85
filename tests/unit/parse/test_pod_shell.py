# SPDX-License-Identifier: GPL-3.0-or-later

"""The shell in the pods: its own text under a real sh, and what is read from its streams."""

from __future__ import annotations

import io
import selectors
import subprocess
import time
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.shell import Part, part
from ansible_collections.linerate.rdma.plugins.module_utils._render import commands


class Pipe:
    """Joins a Shell to a process, as the API server joins it to one in a container."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.selector = selectors.DefaultSelector()
        self.selector.register(typing.cast(typing.IO[bytes], self.process.stdout), selectors.EVENT_READ, 1)
        self.came: typing.Dict[int, bytes] = {}
        self.lost = ""

    @property
    def open(self) -> bool:
        return bool(self.selector.get_map())

    def update(self, seconds: float) -> None:
        for key, _events in self.selector.select(seconds):
            data = typing.cast(io.BufferedReader, key.fileobj).read1()
            self.came[key.data] = self.came.get(key.data, b"") + data
            if not data:
                self.selector.unregister(key.fileobj)

    def take(self, channel: int) -> bytes:
        return self.came.pop(channel, b"")

    def write(self, data: bytes) -> None:
        stdin = typing.cast(typing.IO[bytes], self.process.stdin)
        stdin.write(data)
        stdin.flush()

    def close(self) -> None:
        typing.cast(typing.IO[bytes], self.process.stdin).close()


@pytest.fixture
def shell() -> typing.Iterator[Shell]:
    pipe = Pipe(*commands.shell())
    yield Shell(typing.cast(Channels, pipe), time.monotonic)
    pipe.close()
    assert pipe.process.wait(20) is not None
    typing.cast(typing.IO[bytes], pipe.process.stdout).close()


def ran(shell: Shell, *command: str) -> CommandResult:
    shell.start(command)
    return shell.wait(30)


def test_it_tells_of_its_pod_first(shell: Shell) -> None:
    greeting = shell.wait(30)
    assert (greeting.exit_code, greeting.error) == (0, "")
    assert "allowed " in greeting.output


def test_commands_one_after_the_other(shell: Shell) -> None:
    shell.wait(30)
    result = ran(shell, "sh", "-c", "echo 'two  words'; echo $1 >&2; exit 3", "x", "it's")
    assert (result.exit_code, result.output) == (3, "two  words\nit's\n")
    assert ran(shell, "true").exit_code == 0
    # no newline at the end is kept as it is
    assert ran(shell, "printf", "%s", "last").output == "last"


def test_a_missing_tool_is_127(shell: Shell) -> None:
    result = ran(shell, "no-such-tool")
    assert result.exit_code == 127
    assert "no-such-tool" in result.output


def test_a_command_finds_no_stdin(shell: Shell) -> None:
    # or a tool would eat the commands that follow
    assert ran(shell, "cat").exit_code == 0
    assert ran(shell, "echo", "on").output == "on\n"


def test_who_starts_a_command_ends_the_one_before_it(shell: Shell) -> None:
    shell.start(("timeout", "600", "sh", "-c", "echo up; exec sleep 600"))
    assert shell.wait_for("up", 30)
    assert shell.running
    shell.start(("echo", "next"))
    result = shell.wait(30)
    assert (result.exit_code, result.output) == (0, "next\n")


def test_what_runs_ends_with_the_connection() -> None:
    pipe = Pipe(*commands.shell())
    shell = Shell(typing.cast(Channels, pipe), time.monotonic)
    shell.start(("timeout", "600", "sh", "-c", "echo up; exec sleep 600"))
    assert shell.wait_for("up", 30)
    shell.close()
    assert pipe.process.wait(20) is not None
    while pipe.open:
        # the stream ends only when nobody holds it any more
        pipe.update(20)


def test_parts() -> None:
    assert part("", 0) == Part("")
    assert part("abc", 0) == Part("abc")
    assert part("abc\n\n@linerate 0 124\n", 0) == Part("abc\n", 124)
    assert part("abc\n@linerate 0 0\n", 1) == Part("")
    assert part("abc", 1) == Part("")
    # cut in the middle of the line that ends it
    assert part("abc\n@linerate 0 1", 0).exit_code is None


@given(
    st.text(alphabet=st.characters(blacklist_characters="@")),
    st.text(alphabet=st.characters(blacklist_characters="@")),
    st.integers(1, 99),
    st.integers(0, 255),
)
def test_any_output_comes_back_as_it_was(before: str, text: str, number: int, code: int) -> None:
    stream = f"{before}\n@linerate {number - 1} 0\n{text}"
    assert part(stream, number) == Part(text)
    assert part(f"{stream}\n@linerate {number} {code}\n", number) == Part(text, code)
