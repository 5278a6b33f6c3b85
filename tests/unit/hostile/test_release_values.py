# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of a Helm release can be secrets of an admin: no output contains them, and a failure keeps its message."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.tests.unit.hostile.test_helm import HELM
from ansible_collections.linerate.rdma.tests.unit.modules.test_limit import ROOT, Site, on_localhost

TASKS = ROOT / "roles" / "operators" / "tasks"
SECRET = "hunter2hunter2"
RELEASE = {
    "name": "gpu-operator",
    "namespace": "gpu-operator",
    "revision": "4",
    "updated": "2026-01-02 03:04:05.0 +0000 UTC",
    "status": "deployed",
    "chart": "gpu-operator-v25.3.0",
    "app_version": "v25.3.0",
}


@pytest.mark.processes
@pytest.mark.parametrize("disruption", ["drain", "none"])
def test_values_of_a_release_are_in_no_output(tmp_path: pathlib.Path, disruption: str) -> None:
    site, helm = Site(tmp_path), tmp_path / "helm"
    text = HELM.format(python="/usr/bin/env python3", log=str(tmp_path / "log"), release=[RELEASE])
    helm.write_text(text.replace('"get": "{}"', f'"get": \'{{"ngc": {{"apiKey": "{SECRET}"}}}}\''), encoding="utf-8")
    helm.chmod(0o755)
    wanted = {
        # its upgrade changes nothing on nodes, so the plan asks no API server
        "operator": "node-feature-discovery",
        "release": "gpu-operator",
        "namespace": "gpu-operator",
        "chart": "gpu-operator",
        "version": "v26.3.3",
        "values": {},
        "drains": True,
    }
    variables = {
        "operators_wanted": wanted,
        "operators_version": "v26.3.3",
        "operators_may_wait": False,
        "operators_waited_for": {},
        "operators_wait_seconds": 300,
        "operators_helm_binary": str(helm),
        "operators_kubeconfig": str(tmp_path / "kubeconfig"),
        "operators_helm_environment": {},
        "rdma_cluster": {"disruption": disruption},
    }
    look = {"ansible.builtin.include_tasks": str(TASKS / "release_look.yml"), "vars": variables}
    known = {
        "ansible.builtin.debug": {
            "msg": "{{ operators_plan.summary }} {{ operators_plan['values'].ngc | length }} value"
        }
    }
    code, said = site.play(on_localhost(look, known), "-vvv")
    assert SECRET not in said
    if disruption == "none":
        assert code != 0 and "rdma_cluster.disruption is none" in said
    else:
        assert code == 0 and "can restart drivers and drain nodes 1 value" in said, said[-900:]


def test_each_task_that_gets_all_values_has_no_log_and_a_task_that_shows_its_failure() -> None:
    found = []
    for name in ("release_look.yml", "release.yml"):
        tasks: list[dict[str, typing.Any]] = yaml.safe_load((TASKS / name).read_text(encoding="utf-8"))
        for task, after in zip(tasks, [*tasks[1:], {}]):
            if {"operators_release", "operators_plan", "operators_of_chart", "operators_helm"} & {task.get("register")}:
                found.append(task["register"])
                assert (task.get("no_log"), task.get("failed_when")) == (True, False), task["name"]
                assert after["ansible.builtin.fail"]["msg"] == f"{{{{ {task['register']}.msg }}}}"
                assert after["when"] == f"{task['register']}.msg is defined"
    assert len(found) == 4
