# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's own way into a worker: QEMU's guest agent, over a virtual serial port. What is tested never uses it, and a
node without sshd has it as well.

Commands and answers are those of the agent's protocol: a line of JSON each. [QEMU docs/interop/qemu-ga-ref]
"""

from __future__ import annotations

import base64
import dataclasses
import json
import pathlib
import secrets
import socket
import time
import typing

from dev.steps import StepError

#: of the virtual serial port; the guest's udev starts the agent where it finds it
PORT = "org.qemu.guest_agent.0"
#: seconds for one answer; the agent itself answers at once
ANSWER_SECONDS = 20.0
_POLL_SECONDS = 0.1
#: what a client before this one has left half said ends here [QEMU qapi-schema guest-sync-delimited]
_DELIMITER = b"\xff"


@dataclasses.dataclass(frozen=True)
class Done:
    """A command that ended.

    :ivar code: its exit code; that of a command that a signal ended is 128 and the signal, as a shell says it
    """

    code: int
    output: bytes
    errors: bytes


class GuestAgent:
    """A worker's agent.

    :param socket_path: of the virtual serial port, on the host
    """

    def __init__(self, name: str, socket_path: pathlib.Path) -> None:
        self.name = name
        self.path = socket_path

    def run(
        self, argv: typing.Sequence[str], stdin: bytes = b"", limit: float = 60, answer_seconds: float = ANSWER_SECONDS
    ) -> Done:
        """Run a command as root.

        :param limit: seconds until it must have ended
        :param answer_seconds: that the agent itself may take for each answer
        :raises StepError: the agent does not answer or refuses, or the limit is reached
        """
        given = {"input-data": base64.b64encode(stdin).decode()} if stdin else {}
        started = self._ask(
            answer_seconds, "guest-exec", path=argv[0], arg=list(argv[1:]), **{"capture-output": True}, **given
        )
        deadline = time.monotonic() + limit
        while True:
            status = self._ask(answer_seconds, "guest-exec-status", pid=started["pid"])
            if status["exited"]:
                code = status["exitcode"] if "exitcode" in status else 128 + int(status["signal"])
                return Done(code, *(base64.b64decode(status.get(name, "")) for name in ("out-data", "err-data")))
            if time.monotonic() > deadline:
                raise StepError(
                    f"{self.name}: '{' '.join(argv)[:120]}' did not end within {limit:.0f} s",
                    f"look what it does: lab/on {self.name} ps -ef",
                )
            time.sleep(_POLL_SECONDS)

    def check(self, script: str, stdin: bytes = b"", limit: float = 60) -> str:
        """Output of a shell script that must end well.

        :raises StepError: as ``run``, or it ends with another exit code than 0
        """
        done = self.run(["/bin/sh", "-c", script], stdin, limit)
        if done.code != 0:
            said = (done.output[-2000:] + done.errors[-3000:]).decode(errors="replace").strip()
            raise StepError(
                f"{self.name}: a script ended with {done.code}:\n{said}\nthe script: {script[:400]}",
                "read the output above",
            )
        return done.output.decode(errors="replace")

    def _ask(self, seconds: float, command: str, **arguments: typing.Any) -> typing.Any:
        """One command on a connection of its own: the port takes one client at a time, and others wait their turn in
        between."""
        mark = secrets.randbelow(1 << 31)
        try:
            with socket.socket(socket.AF_UNIX) as port:
                port.settimeout(seconds)
                port.connect(str(self.path))
                answers = port.makefile("rb")
                port.sendall(_DELIMITER + _line("guest-sync-delimited", id=mark))
                while not self._synchronised(answers.readline(), mark):
                    pass
                port.sendall(_line(command, **arguments))
                return self._answer(answers.readline())
        except OSError as error:
            raise StepError(
                f"{self.name}: its guest agent does not answer within {seconds:.0f} s: {error}",
                "see 'make lab-status', and the worker's log in .lab/log",
            ) from error

    def _synchronised(self, line: bytes, mark: int) -> bool:
        """Whether the agent speaks to us; before that come answers to others, and its complaint about the delimiter,
        which is no JSON."""
        self._check(line)
        _before, delimiter, answer = line.rpartition(_DELIMITER)
        return bool(delimiter) and self._answer(answer) == mark

    def _answer(self, line: bytes) -> typing.Any:
        self._check(line)
        message = json.loads(line)
        if "error" in message:
            raise StepError(
                f"{self.name}: its guest agent refuses: {message['error'].get('desc')}",
                "compare with the documentation of qemu-ga",
            )
        return message.get("return")

    def _check(self, line: bytes) -> None:
        if not line:
            raise StepError(
                f"{self.name}: its guest agent has ended the connection",
                "see 'make lab-status', and the worker's log in .lab/log",
            )


def _line(command: str, **arguments: typing.Any) -> bytes:
    return json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n"
