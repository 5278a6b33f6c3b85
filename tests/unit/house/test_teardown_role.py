# SPDX-License-Identifier: GPL-3.0-or-later

"""The role teardown under a real ansible-playbook: what it keeps of nodes that are lost on the way, and what it hands
over at its end."""

from __future__ import annotations

import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.filter.host import make_containerd_drop_in
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"
FABRIC: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 1},
    "virtual_functions": 1,
    "resource_name": "mlx_compute",
    "network": {"name": "net-compute", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "100.64.0.0/24"},
}


def torn_down(folder: pathlib.Path, phase: str) -> tuple[int, str]:
    """Exit code and output of the role's last part.

    :param phase: how the wait for the end of the virtual functions ended on the one node
    """
    facts = FactFolder(str(folder / "report"), RUN)
    facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, ("worker-1",), fabrics=[FABRIC]))
    node = {"fabric": "compute", "node": "worker-1", "phase": phase, "detail": "0000:01:00.0 has 4"}
    facts.write(
        "sync",
        value={
            "sync": {
                "finished": phase == "ready",
                "timed_out": phase != "ready",
                "waited_seconds": 1.0,
                "nodes": [node],
            }
        },
    )
    for kind in ("objects_removed", "namespaces_removed"):
        facts.write(
            kind,
            value={
                "applied": [{"kind": "Namespace", "name": kind, "namespace": "", "fabric": "", "action": "deleted"}]
            },
        )
    for kind in ("maps_removed", "admission_removed", "olm_removed"):
        facts.write(kind, value={"applied": []})
    facts.write("operators_left", value={"operators": {}})
    facts.write("rolls", value={"rolls": []})
    facts.write("drop_in", "worker-1", {"state": "absent"})
    facts.write("kernel_arguments_left", "worker-1", {"arguments": []})
    shutil.copytree(ROOT / "roles" / "teardown", folder / "roles" / "teardown")
    (folder / "roles" / "teardown" / "tasks" / "cluster.yml").write_text("[]", encoding="utf-8")
    (play,) = [
        item
        for item in yaml.safe_load((ROOT / "playbooks/teardown.yml").read_text(encoding="utf-8"))
        if "prove" in item["name"]
    ]
    play["tasks"][0]["ansible.builtin.import_role"]["name"] = "teardown"
    play["vars"] = {
        "teardown_begun": {"report_dir": facts.report_dir, "run": RUN, "holder": "a test", "by_pods": False},
        "rdma_fabrics": [FABRIC],
        "ansible_python_interpreter": sys.executable,
    }
    (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    return played(folder)


def played(folder: pathlib.Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of play.yml in the folder, with the role that lies there."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(folder / "roles"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_SHOW_CUSTOM_STATS": "true",
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), str(folder / "play.yml"), *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("phase", "verdict", "fails"), [("ready", "COMPLETE", False), ("waiting", "NOT COMPLETE", True)]
)
def test_what_a_teardown_came_to_is_handed_over(tmp_path: pathlib.Path, phase: str, verdict: str, fails: bool) -> None:
    code, output = torn_down(tmp_path, phase)
    assert bool(code) is fails, output
    # the text is wrapped
    handed_over = " ".join(output.partition("CUSTOM STATS:")[2].split())
    assert (
        "linerate_rdma: " in handed_over
        and f"verdict: {verdict}" in handed_over
        and f"{verdict} - teardown: " in handed_over
    ), output[-1500:]
    assert ("(teardown.virtual_functions on compute worker-1)" in handed_over) is fails
    # whatever came of it, nobody is kept out of the cluster
    assert "Let go of the cluster" in output


OWN_DROP_IN = make_containerd_drop_in({"host": {"memlock": {"by": "containerd", "limit_gib": 8}}})["content"]
#: what each module answers on a node, in place of the module itself
ANSWERS: typing.Mapping[str, dict[str, typing.Any]] = {
    "ansible.builtin.stat": {"changed": False, "stat": {"exists": True}},
    "ansible.builtin.slurp": {"changed": False, "content": base64.b64encode(OWN_DROP_IN.encode()).decode()},
    "ansible.builtin.copy": {"changed": False, "state": "file"},
    "ansible.builtin.file": {"changed": True, "state": "absent"},
    "ansible.builtin.systemd_service": {"changed": True, "state": "started"},
    "linerate.rdma.kernel_arguments": {"changed": True, "arguments": []},
}
#: by node: the module at which it is lost, and what the judgement says of its drop-in and its kernel arguments
LOST: typing.Mapping[str, tuple[str, str, str]] = {
    "first": ("ansible.builtin.stat", "unknown", "pass"),
    "read": ("ansible.builtin.slurp", "unknown", "pass"),
    "emptied": ("ansible.builtin.copy", "unknown", "pass"),
    "removed": ("ansible.builtin.file", "unknown", "pass"),
    "second": ("ansible.builtin.systemd_service", "unknown", "pass"),
    "third": ("linerate.rdma.kernel_arguments", "pass", "unknown"),
    "odd": ("", "pass", "unknown"),
}
LOSSY = """
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local
DOCUMENTATION = "name: lossy\\nshort_description: never there\\ndescription: [never there]\\nauthor: [nobody]\\n"
class Connection(Local):
    def exec_command(self, *words, **options):
        raise AnsibleConnectionFailure("No route to host")
"""


def on_nodes(folder: pathlib.Path) -> tuple[FactFolder, str]:
    """The facts that the role's part on nodes leaves, and its output, where each module is one that answers, and each
    node is lost at another one."""
    facts = FactFolder(str(folder / "report"), RUN)
    facts.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", False, tuple(LOST)))
    shutil.copytree(ROOT / "roles" / "teardown", folder / "roles" / "teardown")
    for name, text in (
        (
            "library/answer.py",
            (
                "#!/usr/bin/python\n# WANT_JSON\nimport json,"
                " sys\nprint(json.dumps(json.load(open(sys.argv[1]))['answer']))\n"
            ),
        ),
        ("connection_plugins/lossy.py", LOSSY),
    ):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text, encoding="utf-8")
    path = folder / "roles" / "teardown" / "tasks" / "nodes.yml"
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    for task in (task for part in listed for task in part.get("block", ())):
        asked = task.get("linerate.rdma.on_node")
        if asked is not None and asked["module"] in ANSWERS:
            answer = (
                f"{{{{ {{}} if inventory_hostname == 'odd' and {'arguments' in ANSWERS[asked['module']]} else"
                f" {ANSWERS[asked['module']]} }}}}"
            )
            task["vars"] = {"ansible_connection": f"{{{{ 'lossy' if lost_at == '{asked['module']}' else 'local' }}}}"}
            task["linerate.rdma.on_node"] = {"module": "answer", "options": {"answer": answer}}
    path.write_text(yaml.safe_dump(listed), encoding="utf-8")
    (play,) = [
        item
        for item in yaml.safe_load((ROOT / "playbooks/teardown.yml").read_text(encoding="utf-8"))
        if "on the nodes" in item["name"]
    ]
    play["tasks"][0]["ansible.builtin.import_role"]["name"] = "teardown"
    play["vars"] = {"rdma_fabrics": [FABRIC]}
    (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    begun = {"teardown_begun": {"report_dir": facts.report_dir, "run": RUN, "holder": "a test"}}
    nodes = {
        name: {"lost_at": lost, "ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        for name, (lost, *_statuses) in LOST.items()
    }
    hosts = {"all": {"hosts": {"localhost": begun}, "children": {"rdma_nodes": {"hosts": nodes}}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    code, output = played(folder, "-i", str(folder / "hosts.yml"))
    assert code == 0, output
    return facts, output


def test_a_node_that_is_lost_at_any_task_is_unknown(tmp_path: pathlib.Path) -> None:
    """The play goes on without it, and no rescue runs: what the task registered is judged by a key of its answer."""
    folder, output = on_nodes(tmp_path)
    found = {
        (item.check, item.subject): item
        for item in check(parse_intent([FABRIC]), load(Facts, read_facts(folder, "teardown")[0], "facts"))
    }
    statuses = {
        name: (found["teardown.drop_in", name].status, found["teardown.kernel_arguments", name].status) for name in LOST
    }
    assert statuses == {name: (drop_in, arguments) for name, (_lost, drop_in, arguments) in LOST.items()}
    lost_at = {
        "first": "",
        "read": "Read the drop-in: ",
        "emptied": "Empty the drop-in: ",
        "second": "Restart containerd without it: ",
        "removed": "Remove the drop-in: ",
    }
    for name, task in lost_at.items():
        assert (
            f"unreachable: {task}" in found["teardown.drop_in", name].why
            and "No route to host" in found["teardown.drop_in", name].why
        )
    # what is left on the node is what the next teardown restarts containerd for, also where it was emptied before
    of_removal = output.partition("Remove the drop-in of containerd's unit")[2].partition("TASK [")[0]
    assert sorted(re.findall(r"skipping: \[(\w+)\]", of_removal)) == ["emptied", "first", "read", "second"]
    assert sorted(re.findall(r"changed: \[(\w+)\]", of_removal)) == ["odd", "third"]
    assert (
        "No route to host" in found["teardown.drop_in", "second"].why
        and "No route to host" in found["teardown.kernel_arguments", "third"].why
    )
    assert "Run ansible third --become -m ansible.builtin.ping" in found["teardown.kernel_arguments", "third"].remedy


def test_machine_configs_are_taken_back_whatever_the_intent_names() -> None:
    tasks = yaml.safe_load((ROOT / "roles/teardown/tasks/cluster.yml").read_text(encoding="utf-8"))
    (roll,) = (task for task in tasks if "MachineConfigs and KubeletConfigs" in task["name"])
    (removed,) = roll["block"]
    assert removed["linerate.rdma.machine_config_roll"]["labelled"] is True
    assert [key for task in (roll, removed, *roll["always"]) for key in task if key == "when"] == []
