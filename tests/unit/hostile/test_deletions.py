# SPDX-License-Identifier: GPL-3.0-or-later

"""Deletions by name: an object that others make under the name of one of ours must stay."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import find_config_uid

from .test_objects_not_read import Item, Server

ROOT = pathlib.Path(__file__).parents[3]
#: deletions of a role without a uid, with the reason
WITHOUT = {
    "Forget the revisions that did not come to an end of the release {{ operators_wanted.release }}": (
        "the API server compares the labels of Helm's own records of this release right before the deletion"
    )
}
K8S = "kubernetes.core.k8s"
LOG = """#!/usr/bin/python
# WANT_JSON
import json, sys
given = json.load(open(sys.argv[1]))
with open({path!r}, "a") as log:
    log.write(json.dumps(given) + "\\n")
print(json.dumps({{"changed": True}}))
"""
STAYS = {"subject": "Helm release ops/x", "why": "the namespace was not made by a run", "remedy": "helm uninstall"}

BUSY = {"subject": "SR-IOV network operator in ops", "why": "it drains w0", "remedy": "wait"}


def list_tasks(tasks: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
    for task in tasks or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from list_tasks(task.get(part))


def test_each_deletion_of_a_role_names_the_uid_of_its_object() -> None:
    found = {}
    for path in sorted((ROOT / "roles").glob("*/tasks/*.yml")):
        for task in list_tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            options = task.get(K8S) or {}
            if options.get("state") == "absent":
                found[task["name"]] = (options.get("delete_options") or {}).get("preconditions", {}).get("uid")
    assert [name for name, uid in found.items() if not uid] == list(WITHOUT) and len(found) > len(WITHOUT)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("uid", "stays", "by_olm", "busy", "asked"),
    [
        ("one", {}, [], [], ["one"]),
        # it still drains nodes
        ("one", {}, [], ["w0"], []),
        ("one", {}, ["ops"], ["w0"], []),
        ("one", STAYS, [], [], []),
        # a Subscription of the collection is the proof, and OLM has no Helm release
        ("one", STAYS, ["ops"], [], ["one"]),
        ("", STAYS, ["ops"], [], []),
        ("one", STAYS, ["elsewhere"], [], []),
    ],
    ids=[
        "Helm",
        "Helm amid its drains",
        "OLM amid its drains",
        "Helm of others",
        "OLM",
        "OLM without a configuration",
        "OLM elsewhere",
    ],
)
def test_configuration_of_an_operator_is_deleted_by_its_uid_where_a_run_installed_it(
    tmp_path: pathlib.Path,
    uid: str,
    stays: typing.Mapping[str, str],
    by_olm: list[str],
    busy: list[str],
    asked: list[str],
) -> None:
    """The role's own tasks, with a module that keeps its options in place of each module that asks a cluster."""
    for name in ("teardown", "operators"):
        shutil.copytree(ROOT / "roles" / name, tmp_path / "roles" / name)
    (tmp_path / "library").mkdir()
    log = tmp_path / "log"
    (tmp_path / "library" / "keep.py").write_text(LOG.format(path=str(log)), encoding="utf-8")
    path = tmp_path / "roles" / "teardown" / "tasks" / "operator.yml"
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))
    for task in tasks:
        for module in [key for key in task if key == K8S or key.startswith(("linerate.rdma.", "kubernetes.core."))]:
            task["keep"] = {**task.pop(module), "asked": module}
    path.write_text(yaml.safe_dump(tasks), encoding="utf-8")
    variables = {
        "ansible_python_interpreter": sys.executable,
        "operators_kubeconfig": os.devnull,
        "teardown_helm_binary": "helm",
        "teardown_before": {
            "namespace": "ops",
            "configs": ["ops"] if uid else [],
            "config_uid": uid,
            "release_stays": {},
            "users": [],
        },
        "teardown_settled": {"busy": busy, "stays": [BUSY] if busy else [], "release_stays": stays, "users": []},
        "teardown_olm": {"namespaces": by_olm},
        "teardown_sriov_release": "x",
        "teardown_wait_seconds": 1,
    }
    include = {"ansible.builtin.include_role": {"name": "teardown", "tasks_from": "operator"}}
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [include]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local"]
    command += ["-e", json.dumps(variables), str(tmp_path / "play.yml")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [item["delete_options"]["preconditions"]["uid"] for item in kept if item["asked"] == K8S] == asked
    told = [item["value"]["stays"] for item in kept if item["asked"] == "linerate.rdma.fact"]
    assert ([BUSY] in told) is (bool(busy) and not by_olm)
    # where OLM has installed it there is no release, and perhaps no Helm
    assert any(item["asked"] == "linerate.rdma.on_node" for item in kept) is ("ops" not in by_olm)


def make_config(namespace: str, name: str, uid: str) -> Item:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid}}


def test_uid_of_a_configuration_is_that_of_the_one_which_the_operator_reads() -> None:
    made = [make_config("ops", "other", "1"), make_config("tenant", "default", "2"), make_config("ops", "default", "3")]
    assert find_config_uid(Cluster(Server(sriovoperatorconfigs=made)), "ops") == "3"
    assert find_config_uid(Cluster(Server(sriovoperatorconfigs=made[:2])), "ops") == ""
    assert find_config_uid(Cluster(Server()), "ops") == ""
