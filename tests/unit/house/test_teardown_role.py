# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role teardown hands over at its end, under a real ansible-playbook; what it takes back before that is left out."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"
FABRIC: typing.Dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 1},
    "virtual_functions": 1,
    "resource_name": "mlx_compute",
    "network": {"name": "net-compute", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "100.64.0.0/24"},
}


def torn_down(folder: pathlib.Path, phase: str) -> typing.Tuple[int, str]:
    """Exit code and output of the role's last part.

    :param phase: how the wait for the end of the virtual functions ended on the one node
    """
    facts = FactFolder(str(folder / "report"), RUN)
    facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, ("worker-1",), fabrics=[FABRIC]))
    node = {"fabric": "compute", "node": "worker-1", "phase": phase, "detail": "0000:01:00.0 has 4"}
    facts.write("sync", value={"sync": {"finished": phase == "ready", "timed_out": phase != "ready", "waited_seconds": 1.0, "nodes": [node]}})
    for kind in ("objects_removed", "namespaces_removed"):
        facts.write(kind, value={"applied": [{"kind": "Namespace", "name": kind, "namespace": "", "fabric": "", "action": "deleted"}]})
    facts.write("drop_in", "worker-1", {"state": "absent"})
    shutil.copytree(ROOT / "roles" / "teardown", folder / "roles" / "teardown")
    (folder / "roles" / "teardown" / "tasks" / "cluster.yml").write_text("[]", encoding="utf-8")
    (play,) = [item for item in yaml.safe_load((ROOT / "playbooks/teardown.yml").read_text(encoding="utf-8")) if "prove" in item["name"]]
    play["tasks"][0]["ansible.builtin.import_role"]["name"] = "teardown"
    play["vars"] = {
        "teardown_begun": {"report_dir": facts.report_dir, "run": RUN, "holder": "a test", "by_pods": False},
        "rdma_fabrics": [FABRIC],
        "ansible_python_interpreter": sys.executable,
    }
    (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(folder / "roles"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_SHOW_CUSTOM_STATS": "true",
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), str(folder / "play.yml")]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize(("phase", "verdict", "fails"), [("ready", "COMPLETE", False), ("waiting", "NOT COMPLETE", True)])
def test_what_a_teardown_came_to_is_handed_over(tmp_path: pathlib.Path, phase: str, verdict: str, fails: bool) -> None:
    code, output = torn_down(tmp_path, phase)
    assert bool(code) is fails, output
    # the text is wrapped
    handed_over = " ".join(output.partition("CUSTOM STATS:")[2].split())
    assert "linerate_rdma: " in handed_over and f"verdict: {verdict}" in handed_over and f"{verdict} - teardown: " in handed_over, output[-1500:]
    assert ("(teardown.virtual_functions on compute worker-1)" in handed_over) is fails
    # whatever came of it, nobody is kept out of the cluster
    assert "Let go of the cluster" in output
