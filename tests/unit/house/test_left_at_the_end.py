# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that gives no answer at the end of a run: the run fails, and its last line is the verdict all the same.
What never was in the cluster is not left there."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
import typing

import pytest
import yaml

from tests.unit.exec_server import DISCOVERY
from tests.unit.fake_api import FakeApi, Resource

from .conftest import make_fabrics

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]


#: by digest
IMAGE = f"registry.example.com/observer@sha256:{'0' * 64}"
STARTED_NOTHING = "Nothing was started in the cluster, and nothing has to be removed."


class Leases(FakeApi):
    """Gives the run its Lease, and goes away as the first observer comes."""

    def object(self, path: str) -> typing.Any:
        return DISCOVERY.get(path) or super().object(path)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if "/leases" not in path:
            threading.Thread(target=self.stop).start()
        return super().write(method, path, body, dry_run)


def play(folder: pathlib.Path, server: str, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, lines and all of the output of ansible-playbook with one node that is reached by a pod."""
    FakeApi.write_kubeconfig(server, folder, "t")
    hosts = {"worker-1": {"ansible_connection": "linerate.rdma.pod"}}
    inventory = {"all": {"children": {"rdma_nodes": {"hosts": hosts}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("K8S_AUTH_", "KUBE", "ANSIBLE_"))}
    environment = {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_STDOUT_CALLBACK": "linerate.rdma.stages",
        "KUBECONFIG": str(folder / "kubeconfig"),
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).with_name("ansible-playbook")
    )
    command = [program, "-i", "hosts.yml", "-e", f"ansible_python_interpreter={sys.executable}", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout.rstrip().splitlines(), done.stdout + done.stderr


@pytest.mark.parametrize("playbook", ["site", "discover"])
def test_a_run_that_started_nothing_has_nothing_left(tmp_path: pathlib.Path, playbook: str) -> None:
    code, lines, output = play(tmp_path, "https://127.0.0.1:1", f"linerate.rdma.{playbook}")
    first = f"cluster: kubeconfig kubeconfig in {tmp_path} (from KUBECONFIG), context fake, API server "
    assert lines[0] == f"{first}https://127.0.0.1:1", output
    stage = "validate" if playbook == "site" else "discover"
    assert lines[-1].startswith(f"linerate.rdma: NOT GREEN - stage {stage}: ") and code == 2
    # refused before it began to start observers: the verdict is the only failure
    assert "NOT LEFT CLEAN" not in output and STARTED_NOTHING not in output
    assert "Remove the observers" not in output


def test_proposal_that_could_start_nothing_has_nothing_left(tmp_path: pathlib.Path) -> None:
    variable = f"rdma_observers_image={IMAGE}"
    code, lines, output = play(tmp_path, "https://127.0.0.1:1", "linerate.rdma.propose", "-e", variable)
    assert code == 2 and "NOT LEFT CLEAN" not in output and STARTED_NOTHING in output
    (left,) = (line for line in lines if line.startswith("fatal: [localhost]: Remove the observers: "))
    assert "connection refused by https://127.0.0.1:1" in left


@pytest.mark.parametrize("playbook", ["discover", "propose"])
def test_verdict_is_the_last_line_where_observers_cannot_be_removed(tmp_path: pathlib.Path, playbook: str) -> None:
    """The run holds its Lease, and so there may be more of it."""
    api = Leases()
    api.serve("Lease", [], "default")
    api.start()
    given = {"rdma_fabrics": make_fabrics(), "rdma_observers_image": IMAGE}
    try:
        code, lines, output = play(tmp_path, api.url, f"linerate.rdma.{playbook}", "-e", json.dumps(given))
    finally:
        api.stop()
    assert code == 2 and STARTED_NOTHING not in output, output
    assert api.requests["post /apis/coordination.k8s.io/v1/namespaces/default/leases"] == 1
    if playbook == "discover":
        assert lines[-1].startswith("linerate.rdma: NOT GREEN - stage discover: ")
    assert "THE CLUSTER WAS NOT LEFT CLEAN" in lines[-1], output
