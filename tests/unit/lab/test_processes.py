# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes of the lab: real ones, in no namespace of their own. And workers that end while they boot."""

from __future__ import annotations

import os
import pathlib
import signal
import types
import typing

import pytest

from dev.steps import StepError
from lab import description, objects, workers
from lab.processes import Processes, wait_until


@pytest.fixture
def processes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Processes:
    """Without a network namespace, which only root can make: 'ip netns exec NAME' does nothing but run the command."""
    tool = tmp_path / "bin/ip"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return Processes(tmp_path, "nowhere")


def _ended(processes: Processes, name: str) -> str:
    assert wait_until(lambda: not processes.alive(name), 10, 0.01)
    with pytest.raises(StepError) as error:
        processes.check(name)
    return str(error.value)


@pytest.mark.parametrize(
    ("code", "how"), [("exit 3", "with exit code 3"), ("exit 0", "with exit code 0"), ("kill -ABRT $$", "by SIGABRT")]
)
def test_how_it_ended_and_its_last_words(processes: Processes, code: str, how: str) -> None:
    processes.start("guest", ["sh", "-c", f"echo no tap; {code}"])
    assert _ended(processes, "guest") == f"guest has ended {how}; its last output:\nno tap"


def test_end_of_another_programs_process(processes: Processes) -> None:
    """Who did not start it cannot know its exit code; its output is there all the same."""
    pid = processes.start("guest", ["sh", "-c", "echo ready; exec sleep 60"])
    assert wait_until(lambda: "ready" in processes.log("guest"), 10, 0.01)
    other = Processes(processes.records.parent, "nowhere")
    other.check("guest")
    os.kill(pid, signal.SIGKILL)
    assert _ended(other, "guest") == "guest has ended; its last output:\nready"
    assert _ended(processes, "guest").startswith("guest has ended by SIGKILL;")


class Nodes:
    """What the API server tells of the workers: all are Ready, as booted now."""

    def __init__(self, names: typing.Sequence[str]) -> None:
        ready = types.SimpleNamespace(type="Ready", status="True")
        self.items = [
            types.SimpleNamespace(
                metadata=types.SimpleNamespace(name=name),
                status=types.SimpleNamespace(nodeInfo=types.SimpleNamespace(bootID="1"), conditions=[ready]),
            )
            for name in names
        ]
        self.resources = self

    def get(self, **_kind: str) -> Nodes:
        return self


@pytest.mark.parametrize("deaths", range(4))
def test_worker_that_ends_while_it_boots(
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
    deaths: int,
) -> None:
    """It is started again, twice, and each time is told; then its last words are the error."""
    lab = description.read()
    monkeypatch.setattr(objects, "client", lambda path: Nodes([worker.name for worker in lab.workers]))
    monkeypatch.setattr(workers, "_boot_id", lambda agent, _asked: "1" if processes.alive(agent.name) else None)
    starts: list[str] = []

    def start(worker: description.Worker) -> None:
        starts.append(worker.name)
        dies = worker == lab.workers[0] and starts.count(worker.name) <= deaths
        processes.start(worker.name, ["sh", "-c", "echo Kernel panic" if dies else "exec sleep 60"])
        assert not dies or wait_until(lambda: not processes.alive(worker.name), 10, 0.01)

    authority = typing.cast(typing.Any, types.SimpleNamespace(path=lambda name: tmp_path / name))
    for worker in lab.workers:
        start(worker)
    try:
        if deaths < workers.STARTS:
            workers.wait_ready(processes, lab.workers, authority, start)
        else:
            with pytest.raises(StepError, match="worker-1 has ended with exit code 0; its last output:\nKernel panic"):
                workers.wait_ready(processes, lab.workers, authority, start)
    finally:
        processes.stop(*processes.names())
    assert starts.count("worker-1") == min(deaths + 1, workers.STARTS)
    assert starts.count("worker-2") == 1
    assert capsys.readouterr().out.count("Kernel panic\nworker-1 is started again") == min(deaths, workers.STARTS - 1)
