# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller is the machine that runs Ansible, whatever an inventory says: else a node would do what the run may
do, with its kubeconfig and passwords."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("connection", "begins"), [("ssh", False), ("linerate.rdma.pod", False), ("ansible.builtin.local", True)]
)
def test_a_run_begins_only_where_localhost_is_this_machine(
    tmp_path: pathlib.Path, connection: str, begins: bool
) -> None:
    task = {"linerate.rdma.stage_begin": {"stage": "validate", "fabrics": [], "report_dir": "report"}}
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": [task]}
    (tmp_path / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    variables = {"ansible_connection": connection, "ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"localhost": variables}}}), encoding="utf-8")
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.json", "play.yml"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "RDMA_"))}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    assert (done.returncode == 0) is begins, output
    assert begins or ("localhost is reached by the connection" in output and not (tmp_path / "report").exists()), output
