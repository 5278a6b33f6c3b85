# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose host keys ssh does not check, by all ways in which Ansible turns that off."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
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
        ({"ansible_host_key_checking": "{{ checked }}"}, False),
    ],
)
def test_variables_of_a_node_decide(node: dict[str, typing.Any], unchecked: bool) -> None:
    assert count(node, {}) == unchecked


@pytest.mark.processes
@pytest.mark.parametrize(
    ("setting", "unchecked"),
    [
        ({}, 0),
        # as AWX does
        ({"ANSIBLE_HOST_KEY_CHECKING": "False"}, 2),
        ({"ANSIBLE_SSH_HOST_KEY_CHECKING": "0"}, 2),
        ({"ANSIBLE_SSH_COMMON_ARGS": OFF}, 2),
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
    assert (finding.status, finding.measured) == ("warn", "2 of 2 nodes without a check") and judged(0) == []
    assert "ANSIBLE_HOST_KEY_CHECKING in 'Settings, Job settings, Extra" in finding.remedy
