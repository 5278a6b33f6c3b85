# SPDX-License-Identifier: GPL-3.0-or-later

"""A shell in a container, over one connection to the API server. What it prints is parsed in _parse/pods/shell.py."""

from __future__ import annotations

import shlex
import typing

from ..._model.base.operand import one_line
from ..._model.kubernetes.objects import CommandResult
from ..._parse.kubernetes.core import status_message
from ..._parse.pods.framing import ERROR, STDERR, STDOUT
from ..._parse.pods.shell import MOST_BYTES, Stream
from .channels import Channels

Clock = typing.Callable[[], float]


class Shell:
    """A shell that runs in a container, one command after the other, over one connection. What it says by itself at
    first is its command 0."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._stream = Stream()
        #: bytes on the stream that was not asked for
        self._aside = 0
        self._begin("shell")

    def _begin(self, command: str) -> None:
        self._command = command
        self._started = self._clock()

    @property
    def open(self) -> bool:
        """Whether it takes a further command."""
        return self._channels.open

    @property
    def running(self) -> bool:
        """Whether its command runs."""
        return self.open and self._stream.exit_code is None

    def start(self, command: typing.Sequence[str]) -> None:
        """Start a command. The shell ends the one before it, if that still runs.

        :raises OperandError: a word has a control character. The protocol has one command a line, and no quotes of a
            shell keep a newline in its line
        """
        line = shlex.join(one_line(word, "a word of the command") for word in command)
        number = self._stream.begin()
        self._begin(line)
        self._channels.write(f"{number} {self._command}\n".encode())

    def _pump(self, seconds: float) -> None:
        self._channels.update(seconds)
        self._stream.feed(self._channels.take(STDOUT))
        # a kubelet may send it all the same
        self._aside += len(self._channels.take(STDERR))
        if self._stream.overflowed or self._aside > MOST_BYTES:
            # what else it prints is of no use, and would be as long
            self.close()

    def wait_for(self, text: str, seconds: float) -> bool:
        """Wait until the command printed ``text``, ended, or the time is over."""
        end = self._clock() + seconds
        looked = 0
        while True:
            found, looked = self._stream.find(text, looked) >= 0, self._stream.size
            if found or not self.running or self._clock() >= end:
                return found
            self._pump(max(0.0, min(1.0, end - self._clock())))

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        """Wait for the end of the command, at most ``seconds``; then the connection is closed and the result says so.

        :param lost: why the end is awaited no longer; empty as long as it is
        """
        end = self._clock() + seconds
        while self.running and self._clock() < end and not lost():
            self._pump(max(0.0, min(1.0, end - self._clock())))
        why = lost() if self.running else ""
        outside = self.running and not why
        if self.running:
            self.close()
        code = self._stream.exit_code
        return CommandResult(
            command=self._command,
            exit_code=code,
            output=self._stream.text,
            # of coreutils' timeout: 124, and 137 when it had to kill
            timed_out=outside or code in (124, 137),
            seconds=round(self._clock() - self._started, 3),
            error="" if code is not None or outside else why or self._farewell(),
        )

    def _farewell(self) -> str:
        """Why there is no exit code, in the words of the API server or of the kubelet: a Status on the error
        channel."""
        if self._stream.overflowed:
            return f"it printed more than {self._stream.size} bytes, and was left"
        if self._aside > MOST_BYTES:
            return f"more than {MOST_BYTES} bytes came on a stream that was not asked for, and it was left"
        if self._channels.lost:
            return f"the connection to the pod broke: {self._channels.lost}"
        return (
            "no exit code:"
            f" {status_message(self._channels.take(ERROR).decode(errors='replace'))[:300] or 'the connection ended'}"
        )

    def close(self) -> None:
        """Leave the shell. It ends with its stdin, what runs in it by its own limit, or both with their pod."""
        self._channels.close()
