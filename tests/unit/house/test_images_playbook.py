# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbook images, and what stage operators asks of the mirror, under a real ansible-playbook: a stand-in for Helm, and
a registry over TLS."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.modules.test_ask_mirror import ALL, PODS, Site
from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import FABRIC
from ansible_collections.linerate.rdma.tests.unit.modules.test_images_info import HELM
from ansible_collections.linerate.rdma.tests.unit.registry_server import Registry

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"


def play(
    folder: pathlib.Path, playbook: pathlib.Path, variables: dict[str, typing.Any], *arguments: str
) -> tuple[int, str]:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    given = {
        "rdma_report_dir": str(folder / "report"),
        "operators_by": "helm",
        "operators_helm_binary": str(folder / "helm"),
        **variables,
    }
    host = ["-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}", "-e", json.dumps(given)]
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), str(playbook), *host, *arguments]
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
    return done.returncode, done.stdout + done.stderr


@pytest.mark.thorough
def test_the_list_is_written_once_and_anew_where_the_intent_changes(tmp_path: pathlib.Path) -> None:
    helm = tmp_path / "helm"
    helm.write_text(HELM.format(folder=tmp_path), encoding="utf-8")
    helm.chmod(0o755)
    images, playbook, variables = tmp_path / "report/images", ROOT / "playbooks/images.yml", {"rdma_fabrics": [FABRIC]}
    code, text = play(tmp_path, playbook, variables, "--check")
    assert code == 0 and "3 images, 2 charts" in text, text
    assert not images.exists()
    code, text = play(tmp_path, playbook, variables)
    assert code == 0 and "changed=2" in text, text
    code, text = play(tmp_path, playbook, variables)
    assert code == 0 and "changed=0" in text, text
    code, text = play(tmp_path, playbook, {**variables, "rdma_observers_image": "registry.example/observer:1"})
    assert code == 0 and "changed=1" in text, text
    assert yaml.safe_load((images / "skopeo-sync.yml").read_text(encoding="utf-8"))["registry.example"]["images"][
        "observer"
    ] == ["1"]
    # the files are there, and the run says that they are not all
    code, text = play(tmp_path, playbook, {**variables, "rdma_observers_image": "observer"})
    assert code == 2 and "The list is not complete: image observer of rdma_observers_image" in text, text
    assert "NOT COMPLETE" in (images / "skopeo-sync.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", [True, False])
def test_the_stage_asks_the_mirror(tmp_path: pathlib.Path, missing: bool) -> None:
    found = {name: tags for name, tags in ALL.items() if not (missing and name == "m/registry.example/tools")}
    site = Site(tmp_path, Registry(images=found), Certificates(tmp_path))
    facts = FactFolder(str(tmp_path / "report"), RUN)
    facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, ("a",), ()))
    role = {"name": "linerate.rdma.operators", "tasks_from": "mirror", "rolespec_validate": False}
    tasks = [
        {"ansible.builtin.import_role": role},
        {"ansible.builtin.debug": {"msg": "complete is {{ operators_mirror.complete }}"}},
    ]
    defaults = {"group/linerate.rdma.facts": {"facts_dir": str(tmp_path / "report"), "run": RUN}}
    plays = [
        {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": defaults,
            "tasks": tasks,
        }
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays), encoding="utf-8")
    variables = {
        "rdma_fabrics": [{**FABRIC, "pods": PODS}],
        "rdma_cluster": site.cluster,
        "operators_install": True,
        "operators_registry_ca": str(site.certificates.authority),
    }
    try:
        code, text = play(tmp_path, tmp_path / "play.yml", variables)
    finally:
        site.server.stop()
    assert code == 0 and f"complete is {not missing}" in text, text
    fact = facts.read("mirror")
    assert fact is not None and fact.value is not None
    states = {answer["source"]: answer["state"] for answer in fact.value["mirror"]["answers"]}
    assert states["registry.example/tools:1"] == ("missing" if missing else "there")
