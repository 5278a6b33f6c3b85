# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease is lost between the writes on two nodes of one task, and a node leads to another machine, under a real
ansible-playbook."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.plugin_utils import _confirmed
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
    head = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(module.params["lease"], b"{}", head, method="DELETE"))
module.exit_json(changed=True)
"""


class Api(FakeApi):
    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr("ansible.constants.DEFAULT_LOCAL_TMP", str(tmp_path))


@pytest.fixture
def api() -> typing.Iterator[Api]:
    found = Api()
    found.serve("Lease", [], "default")
    found.serve("Node", [])
    found.start()
    yield found
    found.stop()


def play(
    folder: pathlib.Path, api: Api, *arguments: str, nodes: int = 2, **variables: typing.Any
) -> tuple[set[str], str]:
    """Which of so many nodes were written on, one after the other, and what was said.

    :param variables: of each node
    """
    FakeApi.write_kubeconfig(api.url, folder, "x")
    (folder / "library").mkdir()
    (folder / "library/writer.py").write_text(MODULE, encoding="utf-8")
    begun = "{{ hostvars.localhost.begun"
    held = {"facts_dir": "report", "run": begun + ".run }}", "holder": begun + ".holder }}", "kubeconfig": "kubeconfig"}
    options = {"mark": str(folder / "mark-") + "{{ inventory_hostname }}", "lease": api.url + LEASE}
    begin = [
        {"linerate.rdma.run_begin": {"report_dir": "report"}, "register": "begun", "check_mode": False},
        {"linerate.rdma.cluster_lease": held},
    ]
    writes = {"linerate.rdma.on_node": {"module": "writer", "writes": True, "options": options, **held}}
    plays = [
        {"hosts": "localhost", "gather_facts": False, "tasks": begin},
        {"hosts": "nodes", "gather_facts": False, "tasks": [writes]},
    ]
    (folder / "plays.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {"nodes": {"hosts": {f"worker-{number + 1}": {**host, **variables} for number in range(nodes)}}}
    (folder / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"hosts": {"localhost": host}, "children": groups}}), encoding="utf-8"
    )
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).parent / "ansible-playbook"
    )
    command = [program, "--forks", "1", "-i", "hosts.yml", "plays.yml", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return {path.name.partition("-")[2] for path in folder.glob("mark-*")}, done.stdout + done.stderr


def test_the_second_node_is_not_written_on_when_the_lease_was_lost_after_the_first(
    tmp_path: pathlib.Path, api: Api
) -> None:
    written, said = play(tmp_path, api)
    assert written == {"worker-1"}, said
    assert "fatal: [worker-2]" in said and "linerate-rdma" in said, said


def test_check_mode_asks_for_no_lease(tmp_path: pathlib.Path, api: Api) -> None:
    written, said = play(tmp_path, api, "--check")
    assert written == set() and "failed=0" in said and "fatal" not in said, said


OWN = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
ANOTHER = "3f1c7c9e-9a51-4a0a-8f0e-0d6a0f6b1c11"
OLD = "6a1d2b4c-7e58-4c1f-9d3a-51c0b2a4e8f7"


def node(name: str, boot: typing.Any, **info: typing.Any) -> dict[str, typing.Any]:
    return {"metadata": {"name": name, "uid": name}, "status": {"nodeInfo": {"bootID": boot, **info}}}


def test_a_machine_that_is_not_the_node_is_not_written_on(tmp_path: pathlib.Path, api: Api) -> None:
    """Each of both leads to this machine, as a node does that writes an address of another one into its status."""
    api.serve("Node", [node("worker-1", ANOTHER), node("worker-2", OWN.upper())])
    written, said = play(tmp_path, api)
    assert written == {"worker-2"}, said
    assert f"reports the boot ID {OWN}, but its kubelet reported the boot ID 3f1c7c9e" in said.replace("\n", " "), said


BARE = {"metadata": {"name": "worker-1", "uid": "x"}}
NO_BOOT: typing.Mapping[str, typing.Any] = {
    "empty": node("worker-1", ""),
    "no UUID": node("worker-1", "no-uuid"),
    "null": node("worker-1", None),
    "a list": node("worker-1", [OWN]),
    "all zeros": node("worker-1", "00000000-0000-0000-0000-000000000000"),
    "left out": {**BARE, "status": {"nodeInfo": {}}},
    "nodeInfo is null": {**BARE, "status": {"nodeInfo": None}},
    "status is null": {**BARE, "status": None},
    "no status": BARE,
}


@pytest.mark.parametrize(
    "told", [*NO_BOOT.values(), {**BARE, "status": {"nodeInfo": "x"}}], ids=[*NO_BOOT, "nodeInfo is a text"]
)
def test_a_kubelet_that_tells_no_boot_leads_to_no_write(told: dict[str, typing.Any], api: Api) -> None:
    api.serve("Node", [told])
    with pytest.raises(RdmaError, match=r"does not report a boot ID|nodeInfo is not a mapping"):
        _confirmed._require_same_machine(api.client(api.url), "worker-1", True, "run-1", shows(f"{OWN}\n"))


def test_a_kubelet_that_tells_no_boot_leads_to_no_write_of_a_play(tmp_path: pathlib.Path, api: Api) -> None:
    api.serve("Node", [NO_BOOT["nodeInfo is null"], node("worker-2", "")])
    written, said = play(tmp_path, api)
    assert not written, said
    assert (
        "the kubelet of worker-1 does not report a boot ID" in said
        and "the kubelet of worker-2 does not report a boot ID" in said
    ), said


def test_two_nodes_with_one_boot_are_not_written_on(tmp_path: pathlib.Path, api: Api) -> None:
    """A process without rights on worker-2 can read its boot ID, and the kubelet of worker-1 tells it as its own."""
    api.serve(
        "Node",
        [node("worker-1", OWN), node("b", OWN), {"metadata": {"name": "c", "uid": "c"}, "status": {"nodeInfo": 5}}],
    )
    written, said = play(tmp_path, api, nodes=1)
    assert not written and "the kubelets of worker-1, b report the same boot ID" in said, said


def test_a_node_that_left_the_cluster_after_the_inventory_was_read_is_not_written_on(
    tmp_path: pathlib.Path, api: Api
) -> None:
    written, said = play(tmp_path, api, nodes=1, rdma_listed_by_cluster=True)
    assert not written and "the cluster has no Node worker-1" in said, said


def test_a_host_of_an_admin_needs_no_node(tmp_path: pathlib.Path, api: Api) -> None:
    written, said = play(tmp_path, api, nodes=1)
    assert written == {"worker-1"}, said


def shows(text: typing.Any) -> _confirmed.Say:
    return lambda _command: {"rc": 0, "stdout": text}


@pytest.mark.parametrize(
    ("shown", "told", "right"),
    [
        ("00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-AABBCCDDEEFF", True),
        ("33221100-5544-7766-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff", True),
        ("4c4c4544-0035-3510-8054-c6c04f503347", "00112233-4455-6677-8899-aabbccddeeff", False),
        # nothing to compare: no root, none set, the ID of an operating system in its place
        ("", "00112233-4455-6677-8899-aabbccddeeff", True),
        ("cat: /sys/class/dmi/id/product_uuid: Permission denied", "00112233-4455-6677-8899-aabbccddeeff", True),
        ("03000200-0400-0500-0006-000700080009", "00112233-4455-6677-8899-aabbccddeeff", True),
        ("4c4c4544-0035-3510-8054-c6c04f503347", "0123456789abcdef0123456789abcdef", True),
        ("4c4c4544-0035-3510-8054-c6c04f503347", "", True),
    ],
)
def test_the_machine_is_compared_too_where_both_tell_it(shown: str, told: str, right: bool, api: Api) -> None:
    """The boot ID alone may be known to others."""
    api.serve("Node", [node("worker-1", OWN, systemUUID=told)])
    with contextlib.nullcontext() if right else pytest.raises(RdmaError, match="reports the UUID 4c4c4544"):
        _confirmed._require_same_machine(api.client(api.url), "worker-1", True, "run-1", shows(f"{OWN}\n{shown}\n"))


@pytest.mark.parametrize("text", [None, "", "\n", "no\nboot", f"\n{OWN}\n"])
def test_a_machine_that_shows_no_boot_is_not_written_on(text: typing.Any, api: Api) -> None:
    api.serve("Node", [node("worker-1", OWN)])
    with pytest.raises(RdmaError, match="reports no boot ID"):
        _confirmed._require_same_machine(api.client(api.url), "worker-1", True, "run-1", shows(text))


def test_the_boots_of_all_nodes_are_read_once_a_minute_and_those_of_each_run_alone(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node in question is always asked anew, so that it can't tell another boot meanwhile."""
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    cluster = api.client(api.url)

    def compare(run: str = "run-1") -> None:
        _confirmed._require_same_machine(cluster, "worker-1", True, run, shows(f"{OWN}\n"))

    def asked() -> int:
        return api.requests["list /api/v1/nodes"]

    api.serve("Node", [node("worker-1", OWN), node("b", ANOTHER)])
    compare()
    assert asked() == 2
    compare()
    assert asked() == 3
    compare("run-2")
    assert asked() == 5
    api.put("Node", node("b", OWN))
    compare()
    assert asked() == 6
    now[0] += 60
    with pytest.raises(RdmaError, match="the kubelets of worker-1, b report the same boot ID"):
        compare()


def test_a_kubelet_that_tells_the_new_boot_of_another_node_leads_to_no_write(api: Api) -> None:
    """The boots of all nodes were read before the other node booted, and worker-1 leads to its machine."""
    cluster = api.client(api.url)

    def compare(boot: str) -> None:
        _confirmed._require_same_machine(cluster, "worker-1", True, "run-1", shows(f"{boot}\n"))

    api.serve("Node", [node("worker-1", OWN), node("b", OLD)])
    compare(OWN)
    api.put("Node", node("b", ANOTHER))
    api.put("Node", node("worker-1", ANOTHER))
    with pytest.raises(RdmaError, match="the kubelets of worker-1, b report the same boot ID"):
        compare(ANOTHER)
    # a node that has booted itself
    api.put("Node", node("worker-1", OLD))
    compare(OLD)
    asked = api.requests["list /api/v1/nodes"]
    compare(OLD)
    assert api.requests["list /api/v1/nodes"] == asked + 1
