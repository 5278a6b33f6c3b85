# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that takes a task by ssh and never ends its answer: each task on nodes has an end, its own or that of its
block or play, and the others go on."""

from __future__ import annotations

import pathlib
import typing

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: run on nodes, and wait for what these say
ON_NODES = {
    f"linerate.rdma.{name}"
    for name in ("on_node", "node_info", "ibping", "nic_firmware", "subnet_manager_info", "fabric_info")
}
#: by a file of tasks, the playbook whose play on nodes runs it, and no other play does
PLAYS = {
    "roles/discover/tasks/observe.yml": "stage_begin.yml",
    "roles/discover/tasks/neighbours.yml": "stage_begin.yml",
    "roles/fabric/tasks/observe.yml": "stage_begin.yml",
    "roles/host/tasks/observe.yml": "host.yml",
    "roles/host/tasks/runtime.yml": "host.yml",
    "roles/teardown/tasks/nodes.yml": "teardown.yml",
}
Task = dict[str, typing.Any]


def endless(tasks: typing.Iterable[Task], ends: bool) -> typing.Iterator[typing.Optional[str]]:
    """For each task on nodes its name where it has no end, else None."""
    for task in tasks:
        mine = ends or "timeout" in task
        for part in ("block", "rescue", "always"):
            yield from endless(task.get(part, ()), mine)
        role = task.get("ansible.builtin.include_role", {})
        if str((task.get("linerate.rdma.on_node") or {}).get("module", "")).startswith("kubernetes.core."):
            # on the controller
            continue
        if ON_NODES & {*task, role.get("name") if isinstance(role, dict) else None}:
            yield None if mine else task["name"]


def has_end(playbook: str) -> bool:
    plays = yaml.safe_load((ROOT / "playbooks" / playbook).read_text())
    return all("timeout" in play for play in plays if play.get("hosts") == "rdma_nodes")


def test_each_task_on_nodes_has_an_end() -> None:
    seen = 0
    for path in sorted(ROOT.glob("roles/*/tasks/*.yml")):
        name = path.relative_to(ROOT).as_posix()
        found = list(endless(yaml.safe_load(path.read_text()) or (), name in PLAYS and has_end(PLAYS[name])))
        seen += len(found)
        assert [task for task in found if task] == [], name
    # or the names above are not those of the roles any more
    assert seen >= 20
