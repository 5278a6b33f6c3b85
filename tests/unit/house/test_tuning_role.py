# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage tuning sets, under a real ansible-playbook: by a played Node Tuning Operator, and without one by the
module kernel_settings, in check mode.

The node is this machine.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import NAMESPACE, TUNED
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.exec_server import DISCOVERY
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, on_this_machine
from ansible_collections.linerate.rdma.tests.unit.plan.test_tuning_settings import FABRIC
from ansible_collections.linerate.rdma.tests.unit.run.test_set_tuning import NODES, World, node, profile

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLLECTIONS = ROOT / "build" / "collections"
RUN = "20260102T030405Z-aaaaaa"


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
    def __init__(self, folder: pathlib.Path, world: World) -> None:
        self.folder, self.world = folder, world
        self.facts = FactFolder(str(folder / "report"), RUN)
        self.facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, NODES, (), by_pods=("worker-2",)))
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (folder / "hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": {"rdma_nodes": {"hosts": dict.fromkeys(NODES, host)}}}}),
            encoding="utf-8",
        )
        FakeApi.write_kubeconfig(world.url, folder, "x")

    def play(self, *arguments: str) -> str:
        """The play of playbooks/tuning.yml, as if its stage had begun."""
        (play,) = [
            item
            for item in yaml.safe_load((ROOT / "playbooks/tuning.yml").read_text(encoding="utf-8"))
            if "tasks" in item
        ]
        play["module_defaults"] = {
            "group/linerate.rdma.facts": {"facts_dir": str(self.folder / "report"), "run": RUN},
            "group/linerate.rdma.cluster": {"kubeconfig": str(self.folder / "kubeconfig")},
            "group/linerate.rdma.lease": {"holder": "a test"},
        }
        play["tasks"] = play["tasks"][1:]
        (self.folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        variables = {"rdma_fabrics": [FABRIC], "rdma_cluster": {"tuning": {"set": True}}, "tuning_wait_seconds": 20}
        environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))
            },
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        command = [program, "-i", "hosts.yml", "play.yml", "-e", json.dumps(variables), *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
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
    assert not site.facts.has("kernel_settings", "worker-1")

    again = site.play()
    assert site.facts.value("node_tuning")["changes"] == [] and site.world.tuned() == made, again


def test_the_module_sets_the_node_that_is_reached_by_ssh_and_no_other(site: Site) -> None:
    site.world.known = False
    said = site.play("--check")
    fact = site.facts.read("kernel_settings", "worker-1")
    assert fact is not None and fact.error is None, said
    assert (
        "wrote /etc/sysctl.d/90-linerate-rdma.conf" in fact.value["changes"]
        and not pathlib.Path("/etc/sysctl.d/90-linerate-rdma.conf").exists()
    )
    assert site.facts.read("kernel_settings", "worker-2") is None
