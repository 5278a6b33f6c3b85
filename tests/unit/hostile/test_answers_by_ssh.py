# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node by ssh sends without end, or just in time: the ssh plugin of ansible-core is stopped at the limit, leaves
no program behind, and a node that takes the time of a run is not asked any more."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types
import typing

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader

from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB
from ansible_collections.linerate.rdma.plugins.plugin_utils import _held_up
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import limit_answers
from ansible_collections.linerate.rdma.tests.unit.limit import bounded


class TaskTimeoutError(BaseException):
    """As ansible-core raises it in the middle of a task."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.constants.DEFAULT_LOCAL_TMP", str(tmp_path))


def asking(script: str, timeout: int = 900) -> typing.Any:
    """An action whose node runs a script in place of ssh, by the plugin of ansible-core."""
    connection: typing.Any = connection_loader.get("ssh", PlayContext(), os.devnull)
    connection.set_options(direct={"host": "node-1"})
    connection.exec_command = lambda *_words, **_options: connection._bare_run(
        [b"/bin/sh", b"-c", script.encode()], b""
    )
    return types.SimpleNamespace(
        _connection=connection, _parse_returned_data=dict, _task=types.SimpleNamespace(timeout=timeout, name="Look")
    )


def plugin_of(action: typing.Any) -> typing.Any:
    return sys.modules[type(action._connection).__module__]


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_an_answer_without_end_stops_at_the_limit(stream: str) -> None:
    action = asking(f"cat /dev/zero{stream}")
    said = f"node-1 sent a response of more than {MIB} bytes"
    with bounded(5), pytest.raises(AnsibleConnectionFailure, match=said), limit_answers(action, "node-1", MIB):
        action._connection.exec_command("true")
    assert plugin_of(action).subprocess is subprocess


def test_an_answer_within_the_limit_comes_as_it_is() -> None:
    action = asking("head -c 900000 /dev/zero; echo end >&2; exit 3")
    with limit_answers(action, "node-1", MIB):
        assert action._connection.exec_command("true") == (3, bytes(900_000), b"end\n")


def test_no_program_stays_where_the_time_of_a_task_is_over() -> None:
    action = asking("sleep 600")
    started: list[typing.Any] = []

    def interrupted(*_words: typing.Any, **_options: typing.Any) -> typing.NoReturn:
        started.append(plugin_of(action).subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE))
        raise TaskTimeoutError

    action._connection.exec_command = interrupted
    with pytest.raises(TaskTimeoutError), limit_answers(action, "node-1", MIB):
        action._connection.exec_command("true")
    assert started[0].poll() is not None
    started[0].stdout.close()


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_a_node_that_ends_each_task_just_in_time_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(_held_up, "time", clock)
    action, asked = asking("true"), []

    def late(*_words: typing.Any, **_options: typing.Any) -> tuple[int, bytes, bytes]:
        asked.append(clock.now)
        clock.now += 890.0
        return 0, b"", b""

    for _task in range(12):
        action._connection.exec_command = late
        try:
            with limit_answers(action, "node-1", MIB):
                action._connection.exec_command("true")
        except AnsibleConnectionFailure as error:
            assert "because its tasks took 2670 s, and the limit for a run is 1800 s" in str(error)
    assert len(asked) == 3
    with limit_answers(action, "node-2", MIB):
        action._connection.exec_command("true")
    assert len(asked) == 4


@pytest.mark.parametrize("timeout", [0, 60, 36_000])
def test_tasks_with_a_time_of_their_own_are_not_counted(monkeypatch: pytest.MonkeyPatch, timeout: int) -> None:
    clock = Clock()
    monkeypatch.setattr(_held_up, "time", clock)
    action = asking("true", timeout)
    for _task in range(4):
        with limit_answers(action, "node-1", MIB):
            clock.now += 890.0
    assert _held_up.explain_why_not_asked("node-1") == ""
