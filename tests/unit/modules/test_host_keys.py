# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose host keys ssh does not check, by all ways in which Ansible turns that off."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.plugin_utils import _host_keys

OFF = "-o StrictHostKeyChecking=no"


def count(*nodes: dict[str, typing.Any]) -> int:
    hosts = {f"worker-{number}": node for number, node in enumerate(nodes)}
    return _host_keys.count_unchecked_hosts(hosts)


@pytest.mark.parametrize(
    ("node", "unchecked"),
    [
        ({}, False),
        ({"ansible_host_key_checking": False}, True),
        ({"ansible_ssh_host_key_checking": "no"}, True),
        # the first of them counts
        ({"ansible_ssh_host_key_checking": True, "ansible_host_key_checking": False}, False),
        ({"ansible_ssh_common_args": f"-C {OFF}"}, True),
        ({"ansible_ssh_extra_args": "-o 'StrictHostKeyChecking off'"}, True),
        ({"ansible_ssh_args": "-o StrictHostKeyChecking=accept-new"}, False),
        ({"ansible_ssh_args": OFF, "ansible_connection": "linerate.rdma.pod"}, False),
        ({"ansible_host_key_checking": False, "ansible_connection": "local"}, False),
        # what is not known is not checked
        ({"ansible_host_key_checking": "{{ checked }}"}, True),
        ({"ansible_ssh_common_args": "{{ arguments }}"}, True),
        ({"ansible_connection": "{{ connection }}"}, True),
        # ssh takes the first value
        ({"ansible_ssh_args": "-o StrictHostKeyChecking=yes", "ansible_host_key_checking": False}, False),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/dev/null"}, True),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=none"}, True),
        # keys in the file of the machine, and of no other file
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null"}, False),
        ({"ansible_ssh_common_args": "-o HostKeyAlias=worker-0"}, False),
        ({"ansible_connection": "paramiko", "ansible_host_key_checking": False}, True),
        ({"ansible_connection": "paramiko", "ansible_paramiko_host_key_checking": "no"}, True),
        ({"ansible_connection": "paramiko", "ansible_ssh_common_args": OFF}, False),
        ({"ansible_connection": "ansible.netcommon.libssh", "ansible_libssh_host_key_checking": False}, True),
        ({"ansible_connection": "ansible.netcommon.libssh"}, False),
    ],
)
def test_variables_of_a_node_decide(node: dict[str, typing.Any], unchecked: bool) -> None:
    assert count(node, {}) == unchecked


@pytest.mark.parametrize(
    ("name", "written", "value", "unchecked"),
    [
        ("ansible_connection", "{{ 'ssh' }}", "ssh", True),
        ("ansible_connection", "{{ way }}", "local", False),
        ("ansible_host_key_checking", "{{ checked }}", False, True),
        ("ansible_host_key_checking", "{{ checked }}", True, False),
        ("ansible_host_key_checking", "{{ checked }}", "{{ checked }}", True),
        ("ansible_ssh_common_args", "-o StrictHostKeyChecking={{ check }}", OFF, True),
        ("ansible_ssh_common_args", "-o StrictHostKeyChecking={{ check }}", "-o StrictHostKeyChecking=yes", False),
    ],
)
def test_templates_are_evaluated(name: str, written: str, value: typing.Any, unchecked: bool) -> None:
    node = {"ansible_host_key_checking": False} if name == "ansible_connection" else {}
    assert _host_keys.count_unchecked_hosts({"a": {**node, name: written}}, {"a": {name: value}}) == unchecked


@pytest.mark.parametrize(
    ("lines", "unchecked"),
    [
        ("Host *\n  StrictHostKeyChecking no\n", True),
        ("StrictHostKeyChecking accept-new\nUserKnownHostsFile /dev/null\n", True),
        ("Host bastion\n  StrictHostKeyChecking no\n", False),
        ("StrictHostKeyChecking yes\n", False),
    ],
)
def test_a_file_of_ssh_decides(tmp_path: pathlib.Path, lines: str, unchecked: bool) -> None:
    (tmp_path / "more").write_text(lines, encoding="utf-8")
    (tmp_path / "config").write_text(f"Include {tmp_path}/more\n", encoding="utf-8")
    nodes = [
        {"ansible_host": f"192.0.2.{number}", "ansible_ssh_common_args": f"-F {tmp_path}/config"} for number in range(3)
    ]
    assert count(*nodes) == 3 * unchecked


@pytest.mark.parametrize(
    ("words", "unchecked"),
    [
        (OFF, True),
        ("-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=accept-new", True),
        ("-o UserKnownHostsFile=/dev/null", False),
        ("", False),
    ],
)
def test_arguments_decide_where_ssh_does_not_report_its_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, words: str, unchecked: bool
) -> None:
    for text in (None, "#!/bin/sh\nexit 255\n"):
        if text is not None:
            (tmp_path / "ssh").write_text(text, encoding="utf-8")
            (tmp_path / "ssh").chmod(0o755)
        monkeypatch.setattr(command, "search_path", lambda: str(tmp_path))
        assert count({"ansible_ssh_common_args": words}) == unchecked


def test_ssh_is_asked_once_for_nodes_that_differ_in_their_alias_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[typing.Sequence[str]] = []
    run = command.run

    def note(argv: typing.Sequence[str], seconds: float) -> typing.Any:
        asked.append(argv)
        return run(argv, seconds)

    monkeypatch.setattr(command, "run", note)
    assert count(*({"ansible_ssh_extra_args": f"-o HostKeyAlias=worker-{number}"} for number in range(50))) == 0
    assert len(asked) == 1
    # and a bound where all differ; the words of the others decide
    assert count(*({"ansible_ssh_extra_args": f"-p {number + 1} {OFF}"} for number in range(50))) == 50
    assert len(asked) < 40


def test_ssh_that_does_not_answer_delays_a_run_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of a Match block in the files of ssh may wait for a server."""
    now, limits = [0.0], []

    def wait(argv: typing.Sequence[str], seconds: float) -> typing.Any:
        limits.append(seconds)
        now[0] += seconds
        raise OSError("no answer")

    monkeypatch.setattr(command, "run", wait)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    # the words of the arguments decide
    assert count(*({"ansible_ssh_extra_args": f"-p {number + 1} {OFF}"} for number in range(50))) == 50
    assert sum(limits) <= 20 and len(limits) < 5


def test_a_host_that_is_no_word_is_no_option_of_ssh() -> None:
    assert count({"ansible_host": "-oProxyCommand=false", "ansible_ssh_common_args": OFF}) == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    ("setting", "unchecked"),
    [
        ({}, 0),
        # as AWX does
        ({"ANSIBLE_HOST_KEY_CHECKING": "False"}, 2),
        ({"ANSIBLE_SSH_HOST_KEY_CHECKING": "0"}, 2),
        ({"ANSIBLE_SSH_COMMON_ARGS": OFF}, 2),
        # it has no effect on ssh
        ({"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD": "1"}, 0),
        ({"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD": "1", "ANSIBLE_TRANSPORT": "paramiko"}, 2),
    ],
)
def test_settings_of_the_controller_decide(tmp_path: pathlib.Path, setting: dict[str, str], unchecked: int) -> None:
    hosts: dict[str, typing.Any] = {"a": {}, "b": {}, "c": {"ansible_connection": "local"}}
    script = f"from {_host_keys.__name__} import *; print(count_unchecked_hosts({hosts}))"
    mine = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment = {**mine, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), **setting}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{unchecked}\n", done.stderr


def test_such_nodes_are_a_warning_with_the_setting_of_awx() -> None:
    def judged(number: int) -> list[typing.Any]:
        found = check(Intent(()), Facts(("a", "b"), unchecked_hosts=number))
        return [item for item in found if item.check == "validate.host_keys"]

    (finding,) = judged(2)
    assert (finding.status, finding.measured) == (
        "warn",
        "check of the host key off or unknown for 2 of 2 nodes",
    ) and judged(0) == []
    assert "ANSIBLE_HOST_KEY_CHECKING in 'Settings, Job settings, Extra" in finding.remedy
