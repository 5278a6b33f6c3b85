# SPDX-License-Identifier: GPL-3.0-or-later

"""A shell in a container over one connection to the API server. _parse/pods/shell.py parses its output."""

from __future__ import annotations

import secrets
import shlex
import typing

from ..._model.base.operand import one_line
from ..._model.kubernetes.objects import CommandResult
from ..._parse.kubernetes.core import status_message
from ..._parse.pods.framing import ERROR, STDERR, STDOUT
from ..._parse.pods.shell import MOST_BYTES, Stream
from .exec.channels import Channels

Clock = typing.Callable[[], float]


class Shell:
    """A shell in a container that runs one command after the other over one connection. The output of the shell before
    the first command counts as the output of command 0.
    """

    def __init__(self, channels: Channels, clock: Clock, token: str = "") -> None:
        """Create the shell on an open connection. The shell must already have been started in the container.

        :param channels: channels of the exec in which the shell runs
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param token: unguessable letters and digits for the end mark of each command, so that the output of the command
            cannot contain the mark; empty for a random token
        """
        self._channels = channels
        self._clock = clock
        self._stream = Stream(token or secrets.token_hex(16))
        #: bytes on the stream that was not asked for
        self._aside = 0
        self._begin("shell")

    def _begin(self, command: str) -> None:
        self._command = command
        self._started = self._clock()

    @property
    def open(self) -> bool:
        """Return whether the connection is open and the shell can start another command."""
        return self._channels.open

    @property
    def running(self) -> bool:
        """Return whether a command is running."""
        return self.open and self._stream.exit_code is None

    def start(self, command: typing.Sequence[str]) -> None:
        """Start a command. The shell ends the previous command if it is still running.

        :param command: words of the command, without quoting
        :raises OperandError: a word contains a control character. The protocol has one command on each line, and
            quoting cannot keep a newline out of the line
        """
        line = shlex.join(one_line(word, "a word of the command") for word in command)
        name = self._stream.begin()
        self._begin(line)
        self._channels.write(f"{name} {self._command}\n".encode())

    def _receive_output(self, seconds: float) -> None:
        self._channels.update(seconds)
        self._stream.feed(self._channels.take(STDOUT))
        # a kubelet may send it all the same
        self._aside += len(self._channels.take(STDERR))
        if self._stream.overflowed or self._aside > MOST_BYTES:
            # what else it prints is of no use, and would be as long
            self.close()

    def wait_for(self, text: str, seconds: float) -> bool:
        """Wait until the current command has printed ``text``, has ended, or the time limit is over. Return whether it
        printed the text.

        :param text: text that the output of the command contains
        :param seconds: time limit in seconds
        """
        end = self._clock() + seconds
        looked = 0
        while True:
            found, looked = self._stream.find(text, looked) >= 0, self._stream.size
            if found or not self.running or self._clock() >= end:
                return found
            self._receive_output(max(0.0, min(1.0, end - self._clock())))

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        """Wait for the end of the current command, and return its result. If it still runs after ``seconds``, close the
        connection and return a result with ``timed_out``. If ``lost`` returns a reason, close the connection and return
        a result with this reason as its error.

        :param seconds: time limit in seconds
        :param lost: function that is called about once a second and returns the reason to stop waiting early, or an
            empty text to continue
        """
        end = self._clock() + seconds
        while self.running and self._clock() < end and not lost():
            self._receive_output(max(0.0, min(1.0, end - self._clock())))
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
            error="" if code is not None or outside else why or self._explain_missing_exit_code(),
        )

    def _explain_missing_exit_code(self) -> str:
        """Return the reason why a command has no exit code: it printed too much, the connection broke, or the API
        server or the kubelet sent a Status on the error channel.
        """
        if self._stream.overflowed:
            return f"it printed more than {self._stream.size} bytes, so the connection was closed"
        if self._aside > MOST_BYTES:
            return f"more than {MOST_BYTES} bytes arrived on an unexpected stream, so the connection was closed"
        if self._channels.lost:
            return f"the connection to the pod broke: {self._channels.lost}"
        return (
            "no exit code:"
            f" {status_message(self._channels.take(ERROR).decode(errors='replace'))[:300] or 'the connection ended'}"
        )

    def close(self) -> None:
        """Close the connection. The shell ends with its stdin. A running command ends by its own time limit or with the
        pod.
        """
        self._channels.close()
