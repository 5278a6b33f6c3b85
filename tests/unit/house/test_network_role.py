# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of stage network under a real ansible-playbook, in which a played module notes each step and answers in the
place of the modules: what is applied, and what becomes of the paused MachineConfigPools, if the gate closes between the
plan and the apply.
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

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
OWN = "linerate.rdma."
#: answers, which a test may replace; of several, each call takes the next
ANSWERS: dict[str, list[dict[str, typing.Any]]] = {
    "network_objects": [{"hosts": 1}],
    "sriov_plan": [{"allowed": True, "counts": {"lines": 2}}],
    "machine_config_roll": [{"paused": ["worker"], "changed": True}, {"changed": True}],
    "custom_resources": [{"changed": True}],
}
MODULE = """
import json
from ansible.module_utils.basic import AnsibleModule

options = {"step": {"type": "str"}, "folder": {"type": "path"}, "given": {"type": "dict"}}
module = AnsibleModule(options, supports_check_mode=True)
place, step = module.params["folder"], module.params["step"]
with open(place + "/steps.json") as file:
    steps = json.load(file)
with open(place + "/answers.json") as file:
    answers = json.load(file).get(step, [{}])
number = sum(done[0] == step for done in steps)
with open(place + "/steps.json", "w") as file:
    json.dump([*steps, (step, module.check_mode, {**module.params["given"], "shows": module._diff})], file)
module.exit_json(**answers[min(number, len(answers) - 1)])
"""


def play(folder: pathlib.Path, *arguments: str, **answers: list[dict[str, typing.Any]]) -> list[typing.Any]:
    """Play the steps, and return each as its module, whether it was in check mode, and its arguments."""

    def played(task: dict[str, typing.Any]) -> dict[str, typing.Any]:
        found = {
            key: [played(item) for item in value] if key in ("block", "always") else value
            for key, value in task.items()
        }
        for key in [key for key in found if key.startswith(OWN)]:
            given = {"step": key[len(OWN) :], "folder": str(folder), "given": found.pop(key) or {}}
            found["played"] = given
        return found

    tasks = yaml.safe_load((ROOT / "roles/network/tasks/main.yml").read_text(encoding="utf-8"))
    variables = {
        "rdma_fabrics": [],
        "rdma_cluster": {},
        "rdma_waivers": [],
        "network_namespace": "sriov",
        "network_wait_seconds": 1,
        "ansible_python_interpreter": sys.executable,
    }
    steps = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [played(task) for task in tasks]}
    (folder / "library").mkdir()
    (folder / "library" / "played.py").write_text(MODULE, encoding="utf-8")
    (folder / "play.yml").write_text(yaml.safe_dump([steps]), encoding="utf-8")
    (folder / "answers.json").write_text(json.dumps({**ANSWERS, **answers}), encoding="utf-8")
    (folder / "steps.json").write_text("[]", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).parent / "ansible-playbook"
    )
    done = subprocess.run(
        [program, "-i", "localhost,", "-c", "local", "play.yml", *arguments],
        cwd=folder,
        env={**environment, "ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_LOCALHOST_WARNING": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads((folder / "steps.json").read_text(encoding="utf-8")))


def mode_of(steps: typing.Sequence[typing.Any], name: str) -> list[bool]:
    return [check_mode for step, check_mode, _given in steps if step == name]


@pytest.mark.parametrize("allowed", [True, False])
def test_the_gate_is_asked_again_between_the_pools_and_the_objects(tmp_path: pathlib.Path, allowed: bool) -> None:
    again = {"allowed": allowed, "counts": {"lines": 2}}
    steps = play(tmp_path, sriov_plan=[*ANSWERS["sriov_plan"], again])
    names = [step for step, _check_mode, _given in steps]
    first, second = (place for place, name in enumerate(names) if name == "sriov_plan")
    assert first < names.index("machine_config_roll") < second == names.index("custom_resources") - 1
    assert {**steps[first][2], "again": True} == steps[second][2]
    # what is refused stays at its dry run, and the pools that were paused stay so, each with the reason
    assert mode_of(steps, "custom_resources") == mode_of(steps, "sriov_sync") == [not allowed]
    assert mode_of(steps, "machine_config_roll") == [False, False]
    assert steps[-2][2]["state"] == "released" and steps[-2][2]["pools"] == ["worker"]
    assert bool(steps[-2][2]["refusal"]) is not allowed


@pytest.mark.parametrize(
    ("arguments", "plan", "check_mode"),
    [
        ((), {"allowed": False, "counts": {"lines": 2}}, True),
        ((), {"allowed": True, "counts": {"lines": 0}}, False),
        (("--check",), {"allowed": True, "counts": {"lines": 2}}, True),
    ],
    ids=["refused", "no node goes down", "check mode"],
)
def test_the_gate_is_asked_once_for_a_change_that_takes_no_node_down(
    tmp_path: pathlib.Path, arguments: tuple[str, ...], plan: dict[str, typing.Any], check_mode: bool
) -> None:
    steps = play(tmp_path, *arguments, sriov_plan=[plan])
    assert len(mode_of(steps, "sriov_plan")) == 1
    assert mode_of(steps, "custom_resources") == mode_of(steps, "sriov_sync") == [check_mode]


@pytest.mark.parametrize(
    ("arguments", "plan", "shows"),
    [
        (("--diff",), {"allowed": True}, True),
        (("--diff",), {"allowed": False, "forbidden": True}, False),
        (("--diff",), {"allowed": False, "forbidden": False}, False),
        (("--check", "--diff"), {"allowed": False, "forbidden": True}, False),
        # an operator that check mode does not install
        (("--check", "--diff"), {"allowed": False, "forbidden": False}, True),
        ((), {"allowed": True}, False),
    ],
)
def test_diff_shows_no_change_of_what_the_plan_refuses(
    tmp_path: pathlib.Path, arguments: tuple[str, ...], plan: dict[str, typing.Any], shows: bool
) -> None:
    steps = play(tmp_path, *arguments, sriov_plan=[{**plan, "counts": {"lines": 0}}])
    assert [given["shows"] for step, _check_mode, given in steps if step == "custom_resources"] == [shows]
