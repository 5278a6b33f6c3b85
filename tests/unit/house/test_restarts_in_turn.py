# SPDX-License-Identifier: GPL-3.0-or-later

"""Restarts of services on nodes: one node after the other, and no further one after a failure."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
NODES = ("worker-1", "worker-2", "worker-3", "worker-4")
#: fails if it runs on two nodes at once, and on the node that it is to fail on
MODULE = """#!/usr/bin/python
import os
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"folder": {}, "node": {}, "fails": {}})
folder, node = module.params["folder"], module.params["node"]
busy = os.open(os.path.join(folder, "busy"), os.O_CREAT | os.O_EXCL)
open(os.path.join(folder, "ran-" + node), "w").close()
os.unlink(os.path.join(folder, "busy"))
if node == module.params["fails"]:
    module.fail_json(msg="job failed")
module.exit_json(changed=True)
"""


def play(folder: pathlib.Path, fails: str) -> tuple[list[str], str]:
    """Return the nodes on which the module ran, and the output."""
    (folder / "library").mkdir()
    (folder / "library/restart.py").write_text(MODULE, encoding="utf-8")
    options = {"folder": str(folder), "node": "{{ inventory_hostname }}", "fails": fails}
    task = {
        "linerate.rdma.on_node": {"module": "restart", "in_turn": "service", "run": "run-1", "options": options},
        "throttle": 1,
    }
    plays = [{"hosts": "nodes", "gather_facts": False, "ignore_errors": True, "tasks": [task]}]
    (folder / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"all": {"children": {"nodes": {"hosts": dict.fromkeys(NODES, host)}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "--forks", "4"]
    done = subprocess.run(
        [*command, "-i", "hosts.yml", "play.yml"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return sorted(path.name.partition("-")[2] for path in folder.glob("ran-*")), done.stdout + done.stderr


@pytest.mark.processes
def test_restart_that_fails_is_not_tried_on_further_nodes(tmp_path: pathlib.Path) -> None:
    ran, said = play(tmp_path, "worker-2")
    assert ran == ["worker-1", "worker-2"], said
    assert "job failed" in said, said
    for node in ("worker-3", "worker-4"):
        assert re.search(rf"fatal: \[{node}\].*because it failed on worker-2 before", said), said


@pytest.mark.processes
def test_restart_that_succeeds_runs_on_all_nodes(tmp_path: pathlib.Path) -> None:
    ran, said = play(tmp_path, "")
    assert ran == [*NODES] and "fatal" not in said, said


def _list_tasks(tasks: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
    for task in tasks or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from _list_tasks(task.get(part))


def test_each_restart_on_nodes_is_in_turn() -> None:
    found = [
        task
        for path in sorted(ROOT.glob("roles/*/tasks/*.yml"))
        for task in _list_tasks(yaml.safe_load(path.read_text(encoding="utf-8")))
        if (task.get("linerate.rdma.on_node") or {}).get("module", "").endswith(("systemd_service", "service"))
        and task["linerate.rdma.on_node"]["options"] != {"daemon_reload": True}
    ]
    assert len(found) == 2
    asked = [(task["throttle"], task["linerate.rdma.on_node"]) for task in found]
    ways = [(throttle, task["in_turn"], task["restarts_containerd"]) for throttle, task in asked]
    assert ways == [(1, "containerd", True)] * 2


def test_drop_in_without_a_restart_does_not_stay() -> None:
    (part,) = (
        task
        for task in yaml.safe_load((ROOT / "roles/host/tasks/observe.yml").read_text(encoding="utf-8"))
        if "block" in task
    )
    (restart,) = (task for task in part["block"] if "Restart containerd" in task["name"])
    removal = part["rescue"][-1]
    assert removal["linerate.rdma.on_node"]["options"]["state"] == "absent"
    (reload,) = (task for task in part["block"] if task["name"].startswith("Have systemd read"))
    failed = f"{restart['register']} | default({{}}) is failed"
    unread = f"({reload['register']} | default({{}}) is failed and host_written is changed)"
    assert removal["when"] == [f"{failed} or {unread}", "not host_drop_in.used"]


def test_systemd_reads_its_files_again_only_where_no_container_loses_its_gpus() -> None:
    found = [
        task["linerate.rdma.on_node"]
        for path in sorted(ROOT.glob("roles/*/tasks/*.yml"))
        for task in _list_tasks(yaml.safe_load(path.read_text(encoding="utf-8")))
        if "daemon_reload" in ((task.get("linerate.rdma.on_node") or {}).get("options") or {})
    ]
    assert len(found) == 3
    assert all(asked.get("reloads_systemd") or asked.get("restarts_containerd") for asked in found)
