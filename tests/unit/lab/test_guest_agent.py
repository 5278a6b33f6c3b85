# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's way into a worker, before a stand-in for QEMU's guest agent that really runs what it is told."""

from __future__ import annotations

import base64
import json
import pathlib
import socket
import subprocess
import threading
import typing

import pytest

from dev.steps import StepError
from lab.guest_agent import GuestAgent


class Agent:
    """One client at a time, as on a virtual serial port.

    :param rest: what an earlier client has left in the port
    """

    def __init__(self, path: pathlib.Path, rest: bytes = b"") -> None:
        self.rest, self.silent = rest, False
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.given: dict[int, bytes] = {}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            client, _address = self.listener.accept()
            with client, client.makefile("rb") as lines:
                client.sendall(self.rest)
                for line in lines:
                    if self.silent:
                        continue
                    if line.startswith(b"\xff"):
                        client.sendall(
                            b'{"error": {"class": "GenericError", "desc": "JSON parse error, stray \\ufffd"}}\n'
                        )
                    client.sendall(self.answer(**json.loads(line.lstrip(b"\xff"))))

    def answer(self, execute: str, arguments: dict[str, typing.Any]) -> bytes:
        if execute == "guest-sync-delimited":
            return b"\xff" + json.dumps({"return": arguments["id"]}).encode() + b"\n"
        if execute == "guest-exec":
            try:
                process = subprocess.Popen(
                    [arguments["path"], *arguments["arg"]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            except OSError as error:
                return (
                    json.dumps(
                        {
                            "error": {
                                "class": "GenericError",
                                "desc": f"Failed to execute child process: {error.strerror}",
                            }
                        }
                    ).encode()
                    + b"\n"
                )
            self.processes[process.pid] = process
            self.given[process.pid] = base64.b64decode(arguments.get("input-data", ""))
            return json.dumps({"return": {"pid": process.pid}}).encode() + b"\n"
        process = self.processes[arguments["pid"]]
        try:
            out, err = process.communicate(self.given.pop(process.pid, None), timeout=0.05)
        except subprocess.TimeoutExpired:
            return b'{"return": {"exited": false}}\n'
        ended = {"exitcode": process.returncode} if process.returncode >= 0 else {"signal": -process.returncode}
        said = {name: base64.b64encode(data).decode() for name, data in (("out-data", out), ("err-data", err)) if data}
        return json.dumps({"return": {"exited": True, **ended, **said}}).encode() + b"\n"


@pytest.fixture
def port(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "worker.agent"


@pytest.mark.parametrize("rest", [b"", b'{"return": {"pid": 7}}\n', b'n": 1}\n{"return"'])
def test_a_command_gets_its_input_and_gives_output_and_code(port: pathlib.Path, rest: bytes) -> None:
    Agent(port, rest)
    done = GuestAgent("worker-2", port).run(
        ["/bin/sh", "-c", "wc -c; echo no >&2; exit 3"], stdin=bytes(range(256)) * 1000
    )
    assert (done.code, done.output.strip(), done.errors) == (3, b"256000", b"no\n")


def test_a_script_that_must_end_well(port: pathlib.Path) -> None:
    Agent(port)
    agent = GuestAgent("worker-2", port)
    assert agent.check("echo $((6 * 7))") == "42\n"
    with pytest.raises(StepError, match=r"(?s)worker-2: a script ended with 4:\nhere\nthere"):
        agent.check("echo here; echo there >&2; exit 4")


def test_a_command_that_a_signal_ends(port: pathlib.Path) -> None:
    Agent(port)
    assert GuestAgent("worker-2", port).run(["/bin/sh", "-c", "kill -KILL $$"]).code == 128 + 9


def test_what_takes_too_long(port: pathlib.Path) -> None:
    Agent(port)
    with pytest.raises(StepError, match=r"worker-2: 'sleep 60' did not end within 0 s"):
        GuestAgent("worker-2", port).run(["sleep", "60"], limit=0.1)


def test_refusals_are_the_agents_own_words(port: pathlib.Path) -> None:
    Agent(port)
    with pytest.raises(StepError, match="refuses: Failed to execute child process: No such file"):
        GuestAgent("worker-2", port).run(["/no/such/program"])


def test_nobody_answers(port: pathlib.Path) -> None:
    with pytest.raises(StepError, match=r"its guest agent does not answer within 20 s: .*No such file"):
        GuestAgent("worker-2", port).run(["true"])
    Agent(port).silent = True
    with pytest.raises(StepError, match="does not answer within 0 s: timed out"):
        GuestAgent("worker-2", port).run(["true"], answer_seconds=0.2)
