# SPDX-License-Identifier: GPL-3.0-or-later

"""--limit under a real ansible-playbook: the stages network and platform and the teardown plan for all nodes of the
run, so they refuse to leave out some before their first write. node_roll itself: test_node_roll_action.py."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = ("worker-1", "worker-2")
REFUSED = "--limit excludes 1 of the nodes that {part} would change: worker-2. Nothing was changed"
EXCLUDES = ["--limit", "localhost,worker-1"]
LIMITS = [
    (EXCLUDES, True),
    (["--limit", "all:!worker-2"], True),
    ([*EXCLUDES, "--check"], False),
    (["--limit", "localhost,rdma_nodes"], False),
    ([], False),
]
TASK = {"fabrics": [], "facts_dir": "report", "run": "run-1"}


class Site:
    """Two nodes, a folder of the report, and ansible-playbook."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.facts = FactFolder(str(folder / "report"), "run-1")
        self.facts.begin(RunStart("run-1", "2026-01-02T03:04:05+00:00", False, NAMES))
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory = {
            "all": {"hosts": {"localhost": host}, "children": {"rdma_nodes": {"hosts": dict.fromkeys(NAMES, host)}}}
        }
        (folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")

    def play(self, play: dict[str, typing.Any], *arguments: str) -> tuple[int, str]:
        """Run a play, and return its exit code and its output in one line."""
        (self.folder / "play.yml").write_text(yaml.safe_dump([{"gather_facts": False, **play}]), encoding="utf-8")
        # no API server answers
        config = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "current-context": "c"}
        config["contexts"] = [{"name": "c", "context": {"cluster": "c", "user": ""}}]
        (self.folder / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "RDMA_", "K"))}
        environment = {
            **kept,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
        }
        done = subprocess.run(
            [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


def on_localhost(*tasks: dict[str, typing.Any]) -> dict[str, typing.Any]:
    return {"hosts": "localhost", "connection": "local", "tasks": list(tasks)}


@pytest.mark.parametrize(("arguments", "refused"), LIMITS)
def test_network_is_refused_if_a_limit_excludes_a_node(site: Site, arguments: list[str], refused: bool) -> None:
    code, said = site.play(on_localhost({"linerate.rdma.network_objects": TASK}), *arguments)
    assert (REFUSED.format(part="stage network") in said) is refused, said
    # what comes next is the intent, which has no fabric
    assert code != 0 and ("rdma_fabrics: an empty list" in said) is not refused


@pytest.mark.parametrize(("arguments", "refused"), LIMITS[1:4])
def test_firmware_plan_is_refused_if_a_limit_excludes_a_node(site: Site, arguments: list[str], refused: bool) -> None:
    code, said = site.play(on_localhost({"linerate.rdma.nic_firmware_plan": TASK}), *arguments)
    refusal = REFUSED.format(part="stage platform")
    fact = site.facts.read("nic_firmware_plan")
    assert code != 0 and (refusal in said) is refused, said
    assert fact is not None and (refusal in str(fact.error)) is refused


@pytest.mark.parametrize(("arguments", "refused"), [(EXCLUDES, True), (["--limit", "localhost,rdma_nodes"], False)])
def test_platform_sets_nothing_if_a_limit_excludes_a_node(site: Site, arguments: list[str], refused: bool) -> None:
    """The kernel arguments are the first write of the stage. Without a Lease, the module of a node is not started."""
    role = {"name": "linerate.rdma.platform", "tasks_from": "observe", "rolespec_validate": False}
    play = {
        "hosts": "rdma_nodes",
        "ignore_errors": True,
        "vars": {
            "platform_settle": True,
            "platform_nic_devices": False,
            "rdma_cluster": {"host": {"kernel_arguments": ["iommu=pt"]}, "disruption": "reboot"},
        },
        "module_defaults": {
            "group/linerate.rdma.facts": {"facts_dir": "report", "run": "run-1"},
            "group/linerate.rdma.lease": {"holder": "a test"},
        },
        "tasks": [{"ansible.builtin.import_role": role}],
    }
    _code, said = site.play(play, *arguments)
    refusal = REFUSED.format(part="stage platform")
    assert (refusal in said) is refused, said
    rolled = site.facts.value("node_roll")
    assert (refusal in rolled["error"]) is refused, rolled
    assert (site.facts.read("kernel_arguments", "worker-1") is None) is refused, said


@pytest.mark.parametrize(("arguments", "refused"), LIMITS[:4])
def test_teardown_is_not_begun_if_a_limit_excludes_a_node(site: Site, arguments: list[str], refused: bool) -> None:
    role = {"name": "linerate.rdma.teardown", "tasks_from": "begin"}
    play = {
        **on_localhost({"ansible.builtin.import_role": role}),
        "vars": {"rdma_fabrics": [], "teardown_report_dir": "torn"},
    }
    code, said = site.play(play, *arguments)
    assert (REFUSED.format(part="the teardown") in said) is refused, said
    assert (site.folder / "torn" / "run.json").exists() is not refused and (code != 0 or not refused)
