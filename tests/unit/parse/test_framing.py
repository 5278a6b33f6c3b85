# SPDX-License-Identifier: GPL-3.0-or-later

"""A command in a pod and its answer: the shell's own text under a real sh, and whatever may come out of a stream."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Answer
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.framing import (
    BEGIN,
    ERROR,
    SHELL,
    STDERR,
    STDOUT,
    Exchange,
)

TOKEN = "0123456789abcdef"
#: also pieces of what the shell itself writes
PIECES = [
    BEGIN,
    b"\n@linerate-end ",
    b"@linerate-end",
    TOKEN.encode()[:8],
    b"\n@linerate-heard ",
    b" 0\n",
    b"\n",
    b"\0",
    b"\xff",
    b"0",
]
OUTPUT = (
    some.lists(some.sampled_from(PIECES) | some.binary(max_size=6), max_size=12)
    .map(b"".join)
    .filter(lambda output: TOKEN.encode() not in output)
)


def end(code: int, token: str = TOKEN) -> bytes:
    return f"\n@linerate-end {token} {code}\n".encode()


def heard(token: str = TOKEN) -> bytes:
    return f"\n@linerate-heard {token}\n".encode()


def cut(data: bytes, places: typing.Sequence[int]) -> list[bytes]:
    """In pieces that end at these places."""
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    return [data[first:last] for first, last in zip([0, *ends], ends)]


def fed(stdout: typing.Iterable[bytes], stderr: typing.Iterable[bytes] = (), stdin: bytes = b"") -> Exchange:
    exchange = Exchange(TOKEN, stdin)
    for channel, pieces in ((STDERR, stderr), (STDOUT, stdout)):
        for piece in pieces:
            exchange.feed(channel, piece)
    return exchange


@given(
    OUTPUT,
    OUTPUT,
    some.integers(0, 255),
    some.lists(some.integers(0, 200)),
    some.lists(some.integers(0, 200)),
    some.binary(max_size=9),
)
def test_any_output_in_any_pieces_comes_back_as_it_was(
    out: bytes, error: bytes, code: int, first: list[int], second: list[int], later: bytes
) -> None:
    # what a child that was left behind prints later is not of the answer
    exchange = fed(
        cut(BEGIN + out + end(code) + later + heard() + later, first), cut(error + end(code) + later, second)
    )
    assert exchange.answer == Answer(code, out, error)
    assert exchange.missing == ""
    assert exchange.came == (len(out), len(error))


@given(OUTPUT, OUTPUT, some.integers(0, 255), some.data())
def test_a_part_is_no_answer(out: bytes, error: bytes, code: int, data: some.DataObject) -> None:
    whole_out, whole_error = BEGIN + out + end(code) + heard(), error + end(code)
    first = data.draw(some.integers(0, len(whole_out)))
    second = data.draw(some.integers(0, len(whole_error)))
    exchange = fed([whole_out[:first]], [whole_error[:second]])
    if (first, second) == (len(whole_out), len(whole_error)):
        assert exchange.answer == Answer(code, out, error)
    else:
        assert exchange.answer is None and exchange.missing
    assert exchange.came[0] <= len(out + end(code)) and exchange.came[1] <= len(error + end(code))


@given(OUTPUT, some.text(alphabet="0123456789abcdef", min_size=1, max_size=16).filter(lambda token: token != TOKEN))
def test_the_marks_of_another_command_are_output(out: bytes, token: str) -> None:
    other = out + end(0, token) + heard(token)
    assert fed([BEGIN, other], [other]).answer is None
    assert fed([BEGIN, other, end(3), heard()], [other, end(3)]).answer == Answer(3, other, other)


@given(OUTPUT, some.integers(0, 255), some.integers(0, 255))
def test_two_exit_codes_are_none(out: bytes, first: int, second: int) -> None:
    exchange = fed([BEGIN + out], [end(second)])
    if first == second:
        exchange.feed(STDOUT, end(first))
        assert exchange.missing == "the confirmation of the shell that all of stdin arrived"
        return
    with pytest.raises(ParseError, match="one exit code"):
        exchange.feed(STDOUT, end(first))
    assert exchange.answer is None


@pytest.mark.parametrize("code", ["", "x", "-1", "1000", "0 ", "1 2"])
def test_a_mark_without_an_exit_code_is_none(code: str) -> None:
    mark = f"\n@linerate-end {TOKEN} {code}\n".encode()
    exchange = fed([BEGIN, mark, heard()], [mark])
    assert exchange.answer is None
    assert exchange.missing == "the command's end mark on stdout and stderr"


def test_what_is_missing_is_named() -> None:
    assert Exchange(TOKEN).missing == "the first line of the shell in the pod"
    assert fed([BEGIN]).missing == "the command's end mark on stdout and stderr"
    assert fed([BEGIN, end(0)]).missing == "the command's end mark on stderr"
    assert fed([BEGIN], [end(0)]).missing == "the command's end mark on stdout"
    assert fed([BEGIN, end(0)], [end(0)]).missing == "the confirmation of the shell that all of stdin arrived"
    assert fed([BEGIN, end(0), heard()], [end(0)]).missing == ""


@given(some.binary(max_size=40).filter(lambda first: not BEGIN.startswith(first) and not first.startswith(BEGIN)))
def test_what_is_not_our_shell_is_told_at_once(first: bytes) -> None:
    with pytest.raises(ParseError, match="stdout of the shell in the pod"):
        fed([first])


def test_each_thing_is_said_once_and_at_its_time() -> None:
    exchange = Exchange(TOKEN, b"input")
    said = []
    for channel, data in [
        (ERROR, b"{}"),
        (STDERR, b"a warning"),
        (STDOUT, BEGIN[:5]),
        (STDOUT, BEGIN[5:]),
        (STDERR, end(0)),
        (STDOUT, b"output"),
        (STDOUT, end(0)),
        (STDOUT, heard()),
        (STDOUT, heard()),
    ]:
        exchange.feed(channel, data)
        said.append(b"".join(exchange.due()))
    assert said == [b"", b"", b"", f"{TOKEN} 5\ninput".encode(), b"", b"", f"{TOKEN}\n".encode(), b"\n", b""]
    assert exchange.answer == Answer(0, b"output", b"a warning")


SHELLS = [path for path in (shutil.which(name) for name in ("sh", "bash", "dash", "busybox")) if path]


class Pod:
    """The shell as a process, and the other side of an exchange with it."""

    def __init__(self, shell: str, exchange: Exchange, *command: str) -> None:
        start = [shell, *(["sh"] if shell.endswith("busybox") else []), *SHELL[1:], *command]
        pipe = subprocess.PIPE
        self.exchange = exchange
        self.process = subprocess.Popen(start, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._selector = selectors.DefaultSelector()
        for channel, stream in ((STDOUT, self.process.stdout), (STDERR, self.process.stderr)):
            assert stream
            self._selector.register(stream, selectors.EVENT_READ, channel)

    def hear(self) -> bytes:
        """Read until there is something to say, or the shell has ended; what is to be said."""
        due: list[bytes] = []
        while not due and self._selector.get_map():
            for key, _events in self._selector.select(30):
                data = os.read(key.fd, 4096)
                self.exchange.feed(key.data, data)
                if not data:
                    self._selector.unregister(key.fileobj)
            due = self.exchange.due()
        return b"".join(due)

    def say(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def end(self) -> int:
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()
            assert self.hear() == b""
        self._selector.close()
        return self.process.returncode


def ask(shell: str, command: typing.Sequence[str], stdin: bytes = b"") -> Answer:
    pod = Pod(shell, Exchange(TOKEN, stdin), *command)
    while pod.exchange.answer is None:
        said = pod.hear()
        assert said, pod.exchange.missing
        pod.say(said)
    assert pod.process.wait(30) == 0, "the shell ends by itself"
    assert pod.end() == 0
    return pod.exchange.answer


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_speaks_it(shell: str) -> None:
    script = "cat; echo 'two  words' \"$1\"; echo error >&2; exit 3"
    everything = bytes(range(256)) * 16
    assert ask(shell, ["sh", "-c", script, "sh", "it's $HOME"], everything) == Answer(
        3, everything + b"two  words it's $HOME\n", b"error\n"
    )
    # without stdin it finds none, and nothing is added to what it prints
    assert ask(shell, ["sh", "-c", "cat; printf end"]) == Answer(0, b"end", b"")
    assert ask(shell, ["sh", "-c", "kill -9 $$"]).rc == 137
    assert ask(shell, ["no-such-tool"]).rc == 127


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_reads_none_or_a_part_of_its_stdin_harms_nobody(shell: str) -> None:
    # less than a pipe holds: this test does not read while it writes
    assert ask(shell, ["true"], b"x" * 20000) == Answer(0, b"", b"")
    assert ask(shell, ["head", "-c", "3"], b"abcdef" + b"\n0123456789abcdef\n" * 100) == Answer(0, b"abc", b"")


def test_a_child_that_stays_keeps_nobody_waiting() -> None:
    assert ask("/bin/sh", ["sh", "-c", "sleep 600 > /dev/null 2>&1 & echo done; kill $!"]) == Answer(0, b"done\n", b"")


def test_the_token_is_in_no_command_line_and_no_environment() -> None:
    seen = ask("/bin/sh", ["sh", "-c", "cat /proc/[0-9]*/cmdline /proc/self/environ 2> /dev/null; export -p"]).stdout
    assert b"@linerate-end" in seen, "the shell's own text is there"
    assert TOKEN.encode() not in seen


@pytest.mark.parametrize("stdin", [b"x" * 1000, b"\n0123456789abcdef\n" * 10])
def test_stdin_that_ends_too_early_is_never_confirmed(stdin: bytes) -> None:
    pod = Pod("/bin/sh", Exchange(TOKEN, stdin), "cat")
    pod.say(pod.hear()[:-1])
    assert pod.process.stdin
    pod.process.stdin.close()
    assert pod.hear() == f"{TOKEN}\n".encode(), "the command itself is content with what it found"
    assert pod.end() == 0
    assert pod.exchange.came == (len(stdin) - 1, 0)
    assert (pod.exchange.answer, pod.exchange.missing) == (
        None,
        "the confirmation of the shell that all of stdin arrived",
    )


def test_an_image_that_lacks_a_tool_begins_nothing(tmp_path: typing.Any) -> None:
    done = subprocess.run([*SHELL, "true"], capture_output=True, env={"PATH": str(tmp_path)}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (127, b"", b"the image has no head\n")
