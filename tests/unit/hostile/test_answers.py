# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of a node that are larger than any, and what a node says beside them, under a real ansible-playbook and by
each way to a node."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import subprocess
import sys
import types
import typing

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.action import fabric_info, node_info
from ansible_collections.linerate.rdma.plugins.connection import pod
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Answer, Container
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec import Limits
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, MOST_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import limit_answers, remove_junk
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = str(ROOT / "build" / "collections")
PLAYBOOK = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
    pathlib.Path(sys.executable).with_name("ansible-playbook")
)
BASE: typing.Any = ActionBase
EVIL = "\x1b[2J\u202elinerate.rdma: GREEN"


def play(folder: pathlib.Path, module: str, **more: typing.Any) -> str:
    """What ansible-playbook prints of a task on worker-1 with a module of this text."""
    (folder / "library").mkdir()
    (folder / "library" / "hostile.py").write_text(f"#!/usr/bin/python\n{module}\n", encoding="utf-8")
    tasks = [
        {"linerate.rdma.on_node": {"module": "hostile"}, "register": "said", **more},
        {"ansible.builtin.debug": {"var": "said.msg"}},
    ]
    (folder / "plays.yml").write_text(
        yaml.safe_dump([{"hosts": "worker-1", "gather_facts": False, "tasks": tasks}]), encoding="utf-8"
    )
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"worker-1": host}}}), encoding="utf-8")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment = {
        **ours,
        "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
        "HOME": str(folder),
        "PYTHONIOENCODING": "utf-8",
        "LC_ALL": "C.UTF-8",
    }
    command = [PLAYBOOK, "-i", str(folder / "hosts.yml"), str(folder / "plays.yml")]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.processes
def test_what_a_node_says_behind_its_answer_drives_no_terminal(tmp_path: pathlib.Path) -> None:
    output = play(tmp_path, f"import json\nprint(json.dumps({{'msg': 'fine'}}))\nprint({EVIL!r})\nprint('{{')\n")
    assert "junk after the JSON data" in output and '"said.msg": "fine"' in output
    assert "\x1b" not in output and "\u202e" not in output and "\\u202e" in output


@pytest.mark.processes
def test_an_answer_that_is_too_large_is_the_error_of_its_node(tmp_path: pathlib.Path) -> None:
    output = play(tmp_path, "print('{\"msg\": \"' + 'x' * (17 * 2**20) + '\"}')", ignore_unreachable=True)
    assert (
        "worker-1 sent a response of 17825" in output and "expected at most 131072" in output and "xxxxx" not in output
    )


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('{"a": "\u202e"}\n', '{"a": "\u202e"}\n'),
        ('motd \x1b\n{"a":\n 1}\r\nlost \x1b[2J\nagain\u202e', '{"a":\n 1}\r\nlost \\x1b[2J\nagain\\u202e'),
        ('motd {\r [{"a": 1}\x85x', ' [{"a": 1}\x85x'),
        ('lost }\n{"a": 1 \x1b', '{"a": 1 \\x1b'),
        ('{"a": 1}\n} \x1b\n', '{"a": 1}\n} \\x1b\n'),
        ("\x1b", "\\x1b"),
        ("", ""),
    ],
)
def test_what_stands_around_the_json_is_dropped_or_escaped_and_nothing_else(output: str, expected: str) -> None:
    assert remove_junk(output) == expected


@pytest.mark.parametrize("line", ["a\n", "\n", "} x", "\x1b\n"])
def test_lines_without_json_are_cut(line: str) -> None:
    """ansible-core goes through all lines that it is given."""
    assert remove_junk(line * 9000).endswith(f"... ({len(line) * 9000} characters)")
    assert remove_junk(line * 9000 + '\n{"a": 1}') == '{"a": 1}'


class Flood(ObserverAction):
    """An observer on a node that prints ``size`` bytes."""

    MODULE = "linerate.rdma.node_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"hcas": "hcas"}

    def __init__(self, size: int, folder: pathlib.Path) -> None:
        self._connection: typing.Any = types.SimpleNamespace(
            exec_command=lambda _command: (0, b"x" * size, b""), most_output=1
        )
        self._task: typing.Any = types.SimpleNamespace(
            args={"facts_dir": str(folder), "run": "run-1"}, async_val=0, check_mode=False, environment=None, diff=False
        )
        self.allowed = 0

    def _execute_module(self, *_arguments: typing.Any, **_options: typing.Any) -> dict[str, typing.Any]:
        self.allowed = self._connection.most_output
        _rc, said, _stderr = self._connection.exec_command("python")
        return {"hcas": {"size": len(said)}}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_arguments: {})


def test_an_observer_whose_node_says_too_much_leaves_an_error_in_the_place_of_its_fact(tmp_path: pathlib.Path) -> None:
    observer = Flood(MOST_ANSWER + 1, tmp_path)
    with pytest.raises(AnsibleConnectionFailure):
        observer.run(task_vars={"inventory_hostname": "worker-1"})
    fact = FactFolder(str(tmp_path), "run-1").of_nodes("hcas", ["worker-1"])["worker-1"]
    assert fact["value"] is None and fact["error"].startswith(
        f"unreachable: worker-1 sent a response of {MOST_ANSWER + 1} bytes"
    )
    # the pod's connection stops there itself, and neither knows of it afterwards
    assert observer.allowed == MOST_ANSWER and observer._connection.most_output == 1
    assert Flood(MOST_ANSWER, tmp_path).run(task_vars={"inventory_hostname": "worker-1"})["counts"] == {"hcas": 1}


class TaskTimeoutError(BaseException):
    """As ansible-core raises it in the middle of a task."""


class Dripping(Flood):
    """Its node never ends an answer."""

    def __init__(self, folder: pathlib.Path, seconds: int) -> None:
        super().__init__(0, folder)
        self._task.timeout, self._task.name = seconds, "Look at the node"
        self._connection.exec_command, self.asked = self.drip, 0

    def drip(self, *_words: typing.Any, **_options: typing.Any) -> tuple[int, bytes, bytes]:
        self.asked += 1
        raise TaskTimeoutError


@pytest.mark.parametrize(("seconds", "again"), [(900, False), (60, True)])
def test_a_node_that_held_a_task_up_until_its_time_was_over_is_not_asked_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, seconds: int, again: bool
) -> None:
    """Each task is a process of its own: what they all know lies in the folder of the ansible-playbook."""
    monkeypatch.setattr("ansible.constants.DEFAULT_LOCAL_TMP", str(tmp_path))
    first, second, other = Dripping(tmp_path, seconds), Dripping(tmp_path, seconds), Flood(1, tmp_path)
    with pytest.raises(TaskTimeoutError):
        first.run(task_vars={"inventory_hostname": "worker-1"})
    with pytest.raises(TaskTimeoutError if again else AnsibleConnectionFailure):
        second.run(task_vars={"inventory_hostname": "worker-1"})
    assert (first.asked, second.asked) == (1, int(again))
    assert other.run(task_vars={"inventory_hostname": "worker-2"})["counts"] == {"hcas": 1}
    if not again:
        fact = FactFolder(str(tmp_path), "run-1").of_nodes("hcas", ["worker-1"])["worker-1"]
        assert fact["value"] is None and fact["error"].startswith(
            "unreachable: it is not queried any more in this run, because it did not complete the task 'Look at"
        )
        assert "within 900 s. Check its load, its disks and its login shell" in fact["error"]


def test_a_fabric_may_be_larger_than_what_any_other_node_answers() -> None:
    assert (node_info.ActionModule.MOST_BYTES, fabric_info.ActionModule.MOST_BYTES) == (16 * MIB, 64 * MIB)


def test_a_command_in_a_pod_has_the_limit_of_an_answer_and_a_file_that_of_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    asked: list[int] = []

    def run(
        _cluster: typing.Any, _container: Container, _command: typing.Sequence[str], _stdin: bytes, limits: Limits
    ) -> Answer:
        asked.append(limits.output)
        return Answer(0, b"", b"")

    monkeypatch.setattr(pod, "run", run)
    connection = object.__new__(pod.Connection)
    connection._connected, connection._cluster, connection._credentials = (
        True,
        typing.cast(typing.Any, 1),
        typing.cast(typing.Any, 1),
    )
    options: typing.Mapping[str, typing.Any] = {
        "connect_timeout": 1.0,
        "exec_timeout": 1.0,
        "namespace": "x",
        "pod": "p",
        "container": "",
    }
    monkeypatch.setattr(pod.Connection, "get_option", lambda _self, name: options.get(name))
    monkeypatch.setattr("ansible.plugins.connection.ConnectionBase.exec_command", lambda *_words, **_options: None)
    connection.become = None
    action = types.SimpleNamespace(_connection=connection, _parse_returned_data=dict)
    connection.exec_command("true")
    with limit_answers(action, "worker-1", 64 * MIB):
        connection.exec_command("true")
    connection.fetch_file("/a", str(tmp_path / "a"))
    assert asked == [16 * MIB, 64 * MIB, 256 * MIB]
    assert json.loads(json.dumps(action._parse_returned_data())) == {}


def decoded(answer: typing.Any, text: typing.Optional[str] = None) -> dict[str, typing.Any]:
    """What an action gets of an answer of a node, as the installed ansible-core decodes it."""

    class Action(BASE):  # type: ignore[misc]
        def run(self, *_arguments: typing.Any, **_options: typing.Any) -> dict[str, typing.Any]:
            return {}

    connection = types.SimpleNamespace(exec_command=None, transport="local")
    action = Action(types.SimpleNamespace(async_val=0), connection, None, None, None, None)
    profile = ("legacy",) if "profile" in inspect.signature(BASE._parse_returned_data).parameters else ()
    with limit_answers(action, "worker-1"):
        found: dict[str, typing.Any] = action._parse_returned_data(
            {"stdout": json.dumps(answer) if text is None else text}, *profile
        )
    return found


def has_types() -> bool:
    """Whether the installed ansible-core makes objects of its own of the answer of a module."""
    return "profile" in inspect.signature(BASE._parse_returned_data).parameters


def list_kinds(value: typing.Any) -> set[type]:
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return {type(value)}.union(*map(list_kinds, parts))


PLAIN = {dict, list, str, int, float, bool, type(None)}
TAGS = [{"__ansible_type": "Deprecated", "msg": EVIL}]
TAGGED = {"__ansible_type": "_AnsibleTaggedStr", "value": "infinity", "tags": TAGS}


@pytest.mark.parametrize("escape", [False, True])
def test_no_text_of_a_node_has_a_tag(escape: bool) -> None:
    number = {"__ansible_type": "_AnsibleTaggedInt", "value": 7, "tags": TAGS}
    answer = {"rc": 0, "stdout": TAGGED, "deep": [{"a": TAGGED}], "number": number, "msg": TAGGED}
    text = json.dumps(answer)
    found = decoded(answer, text.replace("__ansible_type", "__\\u0061nsible_type") if escape else text)
    assert list_kinds(found) <= PLAIN
    if has_types():
        assert (found["stdout"], found["deep"], found["number"]) == ("infinity", [{"a": "infinity"}], 7)


@pytest.mark.skipif(not has_types(), reason="from ansible-core 2.19 on")
@pytest.mark.parametrize("key", ["foo", "msg", "warnings", "deprecations", "invocation"])
@pytest.mark.parametrize(
    "value",
    [
        {"__ansible_type": "Event", "msg": "x"},
        {"__ansible_type": "Deprecated", "msg": "x"},
        {"__ansible_type": "PluginType", "value": "module"},
        {"__ansible_type": "AnsibleSerializableDate", "iso8601": "2020-01-01"},
    ],
)
def test_an_object_of_ansible_core_in_an_odd_place_is_an_error_of_its_node(key: str, value: typing.Any) -> None:
    for placed in (value, [value], {"a": value}):
        with pytest.raises(
            AnsibleConnectionFailure, match=r"worker-1 sent (a value of type|JSON that is not a response of a module)"
        ):
            decoded({"rc": 0, key: placed})


@pytest.mark.skipif(not has_types(), reason="from ansible-core 2.19 on")
def test_a_warning_of_a_module_is_kept_without_tags() -> None:
    event = {"__ansible_type": "Event", "msg": TAGGED}
    found = decoded(
        {
            "rc": 1,
            "failed": True,
            "msg": "x",
            "warnings": [{"__ansible_type": "WarningSummary", "event": event}],
            "deprecations": [{"__ansible_type": "DeprecationSummary", "event": event}],
            "exception": {"__ansible_type": "ErrorSummary", "event": event},
        }
    )
    for item in (*found["warnings"], *found["deprecations"], found["exception"]):
        assert item.event.msg == "infinity" and item.event.msg.__class__ is str
