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

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.shell import Stream
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands


class Pipe:
    """Joins a Shell to a process, as the API server joins it to one in a container."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(typing.cast(typing.IO[bytes], self.process.stdout), selectors.EVENT_READ, 1)
        self.came: dict[int, bytes] = {}
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
    pipe = Pipe(*commands.render_shell())
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
    pipe = Pipe(*commands.render_shell())
    shell = Shell(typing.cast(Channels, pipe), time.monotonic)
    shell.start(("timeout", "600", "sh", "-c", "echo up; exec sleep 600"))
    assert shell.wait_for("up", 30)
    shell.close()
    assert pipe.process.wait(20) is not None
    while pipe.open:
        # the stream ends only when nobody holds it any more
        pipe.update(20)


def test_what_a_command_leaves_in_its_process_group_ends_with_it() -> None:
    pipe = Pipe(*commands.render_shell())
    shell = Shell(typing.cast(Channels, pipe), time.monotonic)
    # as `timeout` that a signal ends before it knows its child
    shell.start(("setsid", "sh", "-c", "sleep 600 & echo up; wait"))
    assert shell.wait_for("up", 30)
    shell.close()
    assert pipe.process.wait(20) is not None
    end = time.monotonic() + 20
    while pipe.open and time.monotonic() < end:
        pipe.update(1)
    assert not pipe.open


def part(text: str, commands: int = 0, pieces: int = 1) -> tuple[str, typing.Optional[int]]:
    """What a command printed, and how it ended, where all commands were started at once and the bytes came in pieces of
    one size."""
    stream = Stream("t0k")
    for _command in range(commands):
        stream.begin()
    raw = text.encode()
    for start in range(0, len(raw), pieces):
        stream.feed(raw[start : start + pieces])
    return stream.text, stream.exit_code


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_parts(pieces: int) -> None:
    assert part("", 0, pieces) == ("", None)
    assert part("abc", 0, pieces) == ("abc", None)
    assert part("abc\n\n@linerate 0 124\n", 0, pieces) == ("abc\n", 124)
    assert part("abc\n\n@linerate 0 124\nwhat comes behind it", 0, pieces) == ("abc\n", 124)
    assert part("abc\n@linerate 0 0\n", 1, pieces) == ("", None)
    assert part("abc", 1, pieces) == ("", None)
    # cut in the middle of the line that ends it
    assert part("abc\n@linerate 0 1", 0, pieces)[1] is None
    # the number of another command
    assert part("abc\n@linerate 1-t0k 0\n", 0, pieces)[1] is None


def test_a_command_begins_where_the_one_before_it_ended() -> None:
    stream = Stream("t0k")
    stream.feed(b"hello\n@linerate 0 0\n")
    assert (stream.begin(), stream.text, stream.exit_code) == ("1-t0k", "", None)
    stream.feed(b"first\n@linerate 1-t0k 7\n")
    assert (stream.text, stream.exit_code, stream.find("first"), stream.find("linerate")) == ("first", 7, 0, -1)
    stream.begin()
    stream.feed(b"sec")
    # one that still runs is ended by the shell
    stream.begin()
    stream.feed(b"ond\n@linerate 2-t0k 143\nth")
    assert (stream.number, stream.text, stream.exit_code) == (3, "th", None)
    stream.feed(b"ird\n@linerate 3-t0k 0\n")
    assert (stream.text, stream.exit_code) == ("third", 0)


def test_no_more_is_kept_than_a_command_may_print() -> None:
    stream = Stream("t0k", 100)
    stream.feed(b"x" * 101)
    assert (stream.overflowed, stream.size, stream.exit_code) == (True, 100, None)
    stream.feed(b"x\n@linerate 0 0\n")
    assert (stream.overflowed, stream.size, stream.exit_code) == (True, 100, None)
    stream = Stream("t0k", 100)
    stream.feed(b"x" * 101 + b"\n@linerate 0 0\n")
    assert stream.overflowed and stream.exit_code is None
    stream = Stream("t0k", 100)
    stream.begin()
    # of a command that nobody waits for any more nothing is kept
    stream.feed(b"x" * 1000)
    stream.feed(b"\n@linerate 0 0\n" + b"y" * 100 + b"\n@linerate 1-t0k 0\n")
    assert (stream.overflowed, stream.text, stream.exit_code) == (False, "y" * 100, 0)


@given(
    st.text(alphabet=st.characters(blacklist_characters="@", blacklist_categories=["Cs"])),
    st.text(alphabet=st.characters(blacklist_characters="@", blacklist_categories=["Cs"])),
    st.integers(1, 99),
    st.integers(0, 255),
    st.integers(1, 50),
)
def test_any_output_comes_back_as_it_was(before: str, text: str, number: int, code: int, pieces: int) -> None:
    earlier = f"{number - 1}-t0k" if number > 1 else "0"
    stream = f"{before}\n@linerate {earlier} 0\n{text}"
    assert part(stream, number, pieces) == (text, None)
    assert part(f"{stream}\n@linerate {number}-t0k {code}\n", number, pieces) == (text, code)
