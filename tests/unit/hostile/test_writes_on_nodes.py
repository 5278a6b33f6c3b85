# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease is lost between the writes on two nodes of one task, and a node leads to another machine, under a real ansible-playbook."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/linerate-rdma"
#: writes, and then the Lease is gone
MODULE = """#!/usr/bin/python
import json, urllib.request
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"mark": {}, "lease": {}}, supports_check_mode=True)
if not module.check_mode:
    open(module.params["mark"], "w").close()
    urllib.request.urlopen(urllib.request.Request(module.params["lease"], b"{}", {"Content-Type": "application/json"}, method="DELETE"))
module.exit_json(changed=True)
"""


class Api(FakeApi):
    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)


@pytest.fixture
def api() -> typing.Iterator[Api]:
    found = Api()
    found.serve("Lease", [], "default")
    found.serve("Node", [])
    found.start()
    yield found
    found.stop()


def play(folder: pathlib.Path, api: Api, *arguments: str) -> typing.Tuple[typing.Set[str], str]:
    """Which of two nodes were written on, one after the other, and what was said."""
    FakeApi.write_kubeconfig(api.url, folder, "x")
    (folder / "library").mkdir()
    (folder / "library/writer.py").write_text(MODULE, encoding="utf-8")
    begun = "{{ hostvars.localhost.begun"
    held = {"facts_dir": "report", "run": begun + ".run }}", "holder": begun + ".holder }}", "kubeconfig": "kubeconfig"}
    options = {"mark": str(folder / "mark-") + "{{ inventory_hostname }}", "lease": api.url + LEASE}
    begin = [{"linerate.rdma.run_begin": {"report_dir": "report"}, "register": "begun", "check_mode": False}, {"linerate.rdma.cluster_lease": held}]
    writes = {"linerate.rdma.on_node": {"module": "writer", "writes": True, "options": options, **held}}
    plays = [
        {"hosts": "localhost", "gather_facts": False, "tasks": begin},
        {"hosts": "nodes", "gather_facts": False, "tasks": [writes]},
    ]
    (folder / "plays.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {"nodes": {"hosts": {"worker-1": host, "worker-2": host}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"localhost": host}, "children": groups}}), encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(pathlib.Path(sys.executable).parent / "ansible-playbook")
    command = [program, "--forks", "1", "-i", "hosts.yml", "plays.yml", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
    return {path.name.partition("-")[2] for path in folder.glob("mark-*")}, done.stdout + done.stderr


def test_the_second_node_is_not_written_on_when_the_lease_was_lost_after_the_first(tmp_path: pathlib.Path, api: Api) -> None:
    written, said = play(tmp_path, api)
    assert written == {"worker-1"}, said
    assert "fatal: [worker-2]" in said and "linerate-rdma" in said, said


def test_check_mode_asks_for_no_lease(tmp_path: pathlib.Path, api: Api) -> None:
    written, said = play(tmp_path, api, "--check")
    assert written == set() and "failed=0" in said and "fatal" not in said, said


def node(name: str, boot: str) -> typing.Dict[str, typing.Any]:
    return {"metadata": {"name": name, "uid": name}, "status": {"nodeInfo": {"bootID": boot}}}


def test_a_machine_that_is_not_the_node_is_not_written_on(tmp_path: pathlib.Path, api: Api) -> None:
    """Each of both leads to this machine, as a node does that writes an address of another one into its status."""
    own = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    api.serve("Node", [node("worker-1", "3f1c7c9e-9a51-4a0a-8f0e-0d6a0f6b1c11"), node("worker-2", own.upper())])
    written, said = play(tmp_path, api)
    assert written == {"worker-2"}, said
    assert f"shows the boot ID {own}, and its kubelet told 3f1c7c9e" in said.replace("\n", " "), said
