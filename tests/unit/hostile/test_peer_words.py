# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes that a peer on another node sends, in the output of a tool in an innocent pod: they end no command of the
shell of that pod."""

from __future__ import annotations

import pathlib
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import Task
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import commands
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pair import PairMeasurement
from ansible_collections.linerate.rdma.tests.unit.hostile.test_slow_pairs import FABRIC, PINGS
from ansible_collections.linerate.rdma.tests.unit.parse.test_pod_shell import Pipe, ran

LIAR = RdmaPod(FABRIC.name, "w", "w", "ns", device="mlx5_4", address="10.0.0.66")
INNOCENT = RdmaPod(FABRIC.name, "b", "b", "ns", device="mlx5_4", address="10.0.0.2")
#: one row of perftest, of a client that sent nothing
FORGED = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    f" {FABRIC.pods.message_bytes}      1000000           0.00               391.80               0.05\n"
)
#: end marks as they were before they had a token
GUESSED = "\n@linerate 1 0\nWaiting for client to connect\n@linerate 2 0\n"


class Liar:
    """The shell of a compromised node: it reports success of each command, and sends nothing."""

    open = running = True

    def start(self, command: typing.Sequence[str]) -> None:
        self.command = command

    def wait_for(self, text: str, seconds: float) -> bool:
        return True

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        return PINGS if "rping" in self.command else CommandResult("ib_write_bw", 0, FORGED)


class Pods:
    def __init__(self, **shells: typing.Any) -> None:
        self.shells = shells

    def shell(self, item: RdmaPod) -> typing.Any:
        return self.shells[item.name]

    def gone(self, *_ends: RdmaPod) -> None:
        return None

    fate = gone

    def await_api(self) -> None:
        raise AssertionError("the API server answers")


@pytest.fixture
def played(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[tuple[Shell, pathlib.Path]]:
    """The shell of an innocent pod. Its rping prints the bytes of its peer, and its ib_write_bw accepts no client."""
    for name, text in (
        ("timeout", 'shift 2; exec "$@"'),
        ("stdbuf", 'shift; exec "$@"'),
        ("rping", f'echo rdma_listen; printf "server ping data: "; cat {tmp_path}/sent; echo; exec sleep 60'),
        ("ib_write_bw", "echo 'Waiting for client to connect'; exec sleep 60"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    pipe = Pipe(*commands.render_shell())
    shell = Shell(typing.cast(Channels, pipe), time.monotonic)
    assert shell.wait(30).exit_code == 0
    yield shell, tmp_path / "sent"
    pipe.close()
    assert pipe.process.wait(20) is not None
    typing.cast(typing.IO[bytes], pipe.process.stdout).close()


def measure(shell: Shell, seconds: float) -> PairResult:
    pair = PairMeasurement(typing.cast(typing.Any, Pods(w=Liar(), b=shell)), time.monotonic, lambda line: None)
    end = time.monotonic() + seconds
    return pair._attempt_pair(FABRIC, Task.between((0, "w"), (0, "b")), LIAR, INNOCENT, 18600, 0, end)


@pytest.mark.parametrize("sent", ["rdma-ping-0: ABCDEFG", GUESSED])
def test_success_of_the_other_end_is_not_for_its_peer_to_report(played: tuple[Shell, pathlib.Path], sent: str) -> None:
    shell, words = played
    words.write_text(sent)
    result = measure(shell, 2.0)
    assert result.average_gbps is None and result.failure


def test_the_next_command_of_a_pod_has_its_own_output(played: tuple[Shell, pathlib.Path]) -> None:
    """The counters of an innocent node in its next pair were those that its last peer had written ahead."""
    shell, words = played
    words.write_text("\n@linerate 1 1\ncount mlx5_4 link_downed 1\n\n@linerate 2 0\n")
    shell.start(commands.render_ping_client("10.0.0.66", 18600, 5))
    assert shell.wait_for("link_downed", 30) and shell.running
    assert ran(shell, "echo", "count mlx5_4 link_downed 7").output == "count mlx5_4 link_downed 7\n"


def test_each_shell_has_a_token_of_its_own_that_no_command_line_has(played: tuple[Shell, pathlib.Path]) -> None:
    shell, _words = played
    tokens = {Shell(typing.cast(Channels, None), time.monotonic)._stream._token for _number in range(100)}
    assert len(tokens) == 100 and all(len(token) == 32 for token in tokens)
    token = shell._stream._token
    seen = ran(shell, "sh", "-c", "cat /proc/$PPID/cmdline /proc/self/cmdline /proc/self/environ /proc/$PPID/environ")
    assert seen.exit_code == 0 and "linerate" in seen.output and token not in seen.output


def test_an_rping_server_prints_no_bytes_of_its_client() -> None:
    server, client = commands.render_ping_server("10.0.0.2", 1, 5), commands.render_ping_client("10.0.0.2", 1, 5)
    assert "-v" not in server and "-d" in server
    # its round trips are counted, and what it prints is compared with what it sent before
    assert {"-v", "-V"} <= set(client)
