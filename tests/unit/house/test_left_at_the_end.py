# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that gives no answer at the end of a run: the run fails, and its last line is the verdict all the
same."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import yaml

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_verdict_is_the_last_line_where_observers_cannot_be_removed(tmp_path: pathlib.Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config), encoding="utf-8")
    hosts = {"worker-1": {"ansible_connection": "linerate.rdma.pod"}}
    inventory = {"all": {"children": {"rdma_nodes": {"hosts": hosts}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("K8S_AUTH_", "KUBE", "ANSIBLE_"))}
    environment = {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_STDOUT_CALLBACK": "linerate.rdma.stages",
        "KUBECONFIG": str(tmp_path / "config"),
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).with_name("ansible-playbook")
    )
    command = [program, "-i", "hosts.yml", "-e", f"ansible_python_interpreter={sys.executable}", "linerate.rdma.site"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    lines = done.stdout.rstrip().splitlines()
    first = f"cluster: kubeconfig config in {tmp_path} (from KUBECONFIG), context x, API server https://127.0.0.1:1"
    assert lines[0] == first, done.stdout + done.stderr
    assert lines[-1].startswith("linerate.rdma: NOT GREEN - stage validate: ")
    assert lines[-1].endswith("/report.html - THE CLUSTER WAS NOT LEFT CLEAN, see above") and done.returncode == 2
    (left,) = (line for line in lines if line.startswith("fatal: [localhost]: Remove the observers: "))
    assert "connection refused by https://127.0.0.1:1" in left
