# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks as a new user calls them: with an inventory that has localhost, with options that only list, step by step,
and without what they need. No cluster and no node."""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOKS = sorted(path for path in (ROOT / "playbooks").glob("*.yml"))
INTERPRETER = "{{ hostvars['localhost'].ansible_python_interpreter | default(ansible_playbook_python) }}"
#: what no kubeconfig and no Python of the machine can be taken for
NONE = "/no/such"


def play(folder: pathlib.Path, *arguments: str, answers: str = "", **environment: str) -> tuple[int, str]:
    """Exit code and output of ansible-playbook without a cluster, on one line."""
    theirs = ("ANSIBLE_", "K8S_AUTH_", "KUBE")
    everything = {
        **{key: value for key, value in os.environ.items() if not key.startswith(theirs)},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(folder),
        **environment,
    }
    program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
        pathlib.Path(sys.executable).parent / "ansible-playbook"
    )
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=everything,
        capture_output=True,
        text=True,
        input=answers,
        timeout=300,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def plays_on_localhost() -> typing.Iterator[tuple[str, dict[str, typing.Any]]]:
    for path in PLAYBOOKS:
        for found in yaml.safe_load(path.read_text(encoding="utf-8")):
            there = found.get("hosts", "")
            if there == "localhost" or ("lookup('linerate.rdma.invocation'" in there and found["tasks"]):
                yield f"{path.name}: {found['name']}", found


def tasks_of(data: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
    for task in data or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part))


def test_each_play_on_localhost_runs_by_the_python_that_runs_ansible() -> None:
    found = dict(plays_on_localhost())
    assert len(found) > 12
    wrong = [
        name
        for name, one in found.items()
        if (one.get("connection"), one.get("vars", {}).get("ansible_python_interpreter")) != ("local", INTERPRETER)
    ]
    assert wrong == []


def is_of_controller(name: str) -> bool:
    """Return whether an action does its work itself, and so asks no connection."""
    if not (ROOT / f"plugins/action/{name}.py").exists():
        return False
    plugin = importlib.import_module(f"ansible_collections.linerate.rdma.plugins.action.{name}")
    return issubclass(plugin.ActionModule, ControllerAction)


def test_each_module_that_is_delegated_to_localhost_runs_as_in_a_play_there() -> None:
    """Ansible reaches a localhost of the inventory by ssh. An action of the controller, which starts no module, needs
    neither; one that shows the progress of its module does."""
    seen = 0
    for path in sorted((ROOT / "roles").glob("*/tasks/*.yml")):
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            ours = [key.rpartition(".")[2] for key in task if key.startswith("linerate.rdma.")]
            if task.get("delegate_to") == "localhost" and not is_of_controller(ours[0]):
                seen += 1
                given = task.get("vars", {})
                assert given.get("ansible_connection") == "local", task["name"]
                assert given.get("ansible_python_interpreter") == INTERPRETER, task["name"]
    assert seen >= 10


@pytest.mark.processes
def test_an_inventory_with_localhost_alone_ends_with_the_verdict(tmp_path: pathlib.Path) -> None:
    code, said = play(tmp_path, "-i", "localhost,", "linerate.rdma.site", ANSIBLE_PYTHON_INTERPRETER=f"{NONE}/python")
    assert code == 2 and NONE not in said and "NOT LEFT CLEAN" not in said, said
    assert (
        "linerate.rdma: NOT GREEN - stage validate: 3 fail (validate.api_server: No API server is configured" in said
    ), said
    last = said.rpartition("linerate.rdma: NOT GREEN - ")[2]
    assert "Specify a kubeconfig with export KUBECONFIG=FILE" in last and "; and 2 more) - report: " in last, last


@pytest.mark.processes
def test_the_last_line_says_what_to_do_about_an_intent(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts.ini").write_text("[rdma_nodes]\nworker-1\n", encoding="utf-8")
    for given, done in (
        (
            (),
            "(validate.intent on rdma_fabrics: missing. Generate an intent from the nodes: ansible-playbook",
        ),
        (
            ("-e", "operators_instal=true"),
            "(validate.variables on operators_instal: unknown variable. Rename the variable to operators_install.",
        ),
    ):
        code, said = play(tmp_path, "-i", "hosts.ini", "linerate.rdma.validate", *given)
        assert code == 2 and done in said.rpartition("linerate.rdma: NOT GREEN - stage validate: ")[2], said


@pytest.mark.processes
def test_the_python_that_an_inventory_names_for_localhost_counts(tmp_path: pathlib.Path) -> None:
    host = {"all": {"hosts": {"localhost": {"ansible_python_interpreter": f"{NONE}/python"}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(host), encoding="utf-8")
    code, said = play(tmp_path, "-i", "hosts.yml", "linerate.rdma.report")
    assert code == 2 and f"{NONE}/python" in said, said


@pytest.mark.processes
@pytest.mark.parametrize("option", ["--list-tags", "--list-tasks", "--list-hosts", "--syntax-check"])
def test_each_playbook_can_be_listed(option: str, tmp_path: pathlib.Path) -> None:
    names = [path.stem for path in PLAYBOOKS]
    code, said = play(tmp_path, "-i", "localhost,", *(f"linerate.rdma.{name}" for name in names), option)
    assert code == 0 and "ERROR" not in said, said
    told = re.findall(r"playbook: \S*?(\w+)(?:\.yml)? ", f"{said} ")
    assert told == names, said
    assert not (tmp_path / "build").exists()


@pytest.mark.processes
def test_a_run_step_by_step_ends_as_any_other_and_one_without_steps_proves_nothing(tmp_path: pathlib.Path) -> None:
    given = ("-i", "localhost,", "linerate.rdma.validate", "--step")
    code, said = play(tmp_path, *given, answers="n\n" * 200)
    assert code == 0 and "linerate.rdma: " not in said and not (tmp_path / "build").exists(), said
    code, said = play(tmp_path, *given, answers="y\n" * 200)
    assert code == 2 and "linerate.rdma: NOT GREEN - stage validate: " in said, said


@pytest.mark.processes
@pytest.mark.parametrize(
    ("playbook", "given", "said"),
    [
        ("propose", (), "the group rdma_nodes is empty. Read the nodes from the cluster: run echo 'plugin: linerate"),
        (
            "images",
            ("-e", "operators_by=helm"),
            "rdma_fabrics is not given; expected the intent: -i with the inventory",
        ),
        ("teardown", (), "rdma_fabrics is not given, and nothing was begun; expected the intent that was applied"),
        (
            "teardown",
            ("-e", '{"rdma_fabrics": []}'),
            "rdma_fabrics is empty, and nothing was begun; expected the intent",
        ),
        ("teardown", ("-e", '{"rdma_fabrics": null}'), "rdma_fabrics is empty, and nothing was begun"),
        ("teardown", ("-e", '{"rdma_fabrics": {"name": "a"}}'), "rdma_fabrics is no list, and nothing was begun"),
        ("awx_approval", (), "linerate_rdma is not given; expected the result of a plan"),
        ("fabric", ("-e", "rdma_from=fabrik"), "msg: 'stage fabric: rdma_from is 'fabrik', which is not a stage"),
    ],
)
def test_what_is_missing_is_the_last_message(
    playbook: str, given: tuple[str, ...], said: str, tmp_path: pathlib.Path
) -> None:
    """With Ansible's own output, which names the task alone."""
    code, output = play(tmp_path, "-i", "localhost,", f"linerate.rdma.{playbook}", *given)
    assert code == 2 and said in output.rpartition("fatal: ")[2].replace("''", "'"), output
