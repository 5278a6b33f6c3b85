# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage tuning sets, under a real ansible-playbook: by a played Node Tuning Operator, by a stand-in for the role kernel_settings, and without either."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.node_tuning import NAMESPACE, TUNED
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, on_this_machine
from ansible_collections.linerate.rdma.tests.unit.plan.test_tuning_settings import FABRIC
from ansible_collections.linerate.rdma.tests.unit.run.test_set_tuning import NODES, World, node, profile

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / "build" / "collections"
RUN = "20260102T030405Z-aaaaaa"
#: says what it was given, and that it has changed something
STAND_IN = [
    {
        "name": "Leave the variables",
        "ansible.builtin.copy": {"content": "{{ {'sysctl': kernel_settings_sysctl, 'sysfs': kernel_settings_sysfs} | to_json }}", "dest": "{{ fake_mark }}"},
    },
    {"name": "Say that it has changed", "ansible.builtin.set_fact": {"__kernel_settings_changed": True}},
]


class Api(World):
    """Says what it is as well; the operator acts at once."""

    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)

    def write(self, method: str, path: str, body: typing.Any, dry_run: bool = False) -> typing.Any:
        answer = super().write(method, path, body, dry_run)
        if body.get("kind") == "Tuned" and not dry_run:
            for name in NODES:
                self.put("Profile", profile(name, TUNED, TUNED, body["spec"]["profile"][0]["data"]), NAMESPACE)
        return answer


class Site:
    """:ivar mark: what the stand-in for the role has left"""

    def __init__(self, folder: pathlib.Path, world: World) -> None:
        self.folder, self.world, self.mark = folder, world, folder / "mark"
        self.facts = FactFolder(str(folder / "report"), RUN)
        self.facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, NODES, (), by_pods=("worker-2",)))
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": {"rdma_nodes": {"hosts": dict.fromkeys(NODES, host)}}}}), encoding="utf-8")
        FakeApi.write_kubeconfig(world.url, folder, "x")

    def with_the_role(self) -> None:
        tasks = self.folder / "collections/ansible_collections/fedora/linux_system_roles/roles/kernel_settings/tasks"
        tasks.mkdir(parents=True)
        (tasks / "main.yml").write_text(yaml.safe_dump(STAND_IN), encoding="utf-8")

    def play(self, *arguments: str) -> str:
        """The play of playbooks/tuning.yml, as if its stage had begun."""
        (play,) = [item for item in yaml.safe_load((ROOT / "playbooks/tuning.yml").read_text(encoding="utf-8")) if "tasks" in item]
        play["module_defaults"] = {
            "group/linerate.rdma.facts": {"facts_dir": str(self.folder / "report"), "run": RUN},
            "group/linerate.rdma.cluster": {"kubeconfig": str(self.folder / "kubeconfig")},
            "group/linerate.rdma.lease": {"holder": "a test"},
        }
        play["tasks"] = play["tasks"][1:]
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        variables = {"rdma_fabrics": [FABRIC], "rdma_cluster": {"tuning": {"set": True}}, "fake_mark": str(self.mark), "tuning_wait_seconds": 20}
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": f"{COLLECTIONS}:{self.folder / 'collections'}",
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        command = [program, "-i", "hosts.yml", "play.yml", "-e", json.dumps(variables), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
        return done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: pathlib.Path) -> typing.Iterator[Site]:
    world = Api()
    world.serve("Lease", [], "default")
    world.put("Node", on_this_machine(node("worker-1")))
    world.start()
    yield Site(tmp_path, world)
    world.stop()


def test_a_tuned_is_made_once_and_the_nodes_are_looked_at_again(site: Site) -> None:
    said = site.play()
    made = site.world.tuned()
    assert made is not None, said
    assert site.facts.value("node_tuning")["changes"] == ["created Tuned linerate-rdma"], said
    assert all(site.facts.has("tuning", name) for name in NODES), said
    assert not site.mark.exists()

    again = site.play()
    assert site.facts.value("node_tuning")["changes"] == [] and site.world.tuned() == made, again


def test_the_role_sets_the_node_that_is_reached_by_ssh_and_no_other(site: Site) -> None:
    site.world.known = False
    site.with_the_role()
    said = site.play()
    assert site.mark.exists(), said
    given = json.loads(site.mark.read_text(encoding="utf-8"))
    assert {"name": "vm.min_free_kbytes", "value": ">65536"} in given["sysctl"] and given["sysfs"][0]["value"] == "performance"
    fact = site.facts.read("kernel_settings", "worker-1")
    assert fact is not None and fact.value == {"changes": ["kernel_settings on worker-1"]}, said
    assert site.facts.read("kernel_settings", "worker-2") is None
    assert site.facts.has("tuning", "worker-1") and not site.facts.has("tuning", "worker-2"), said


def test_without_the_collection_the_command_is_kept_as_the_cause(site: Site) -> None:
    site.world.known = False
    said = site.play()
    fact = site.facts.read("kernel_settings", "worker-1")
    assert fact is not None and fact.error is not None, said
    assert "ansible-galaxy collection install fedora.linux_system_roles" in fact.error
