# SPDX-License-Identifier: GPL-3.0-or-later

"""--limit under a real ansible-playbook: stage network plans for all nodes of the run, so it refuses to leave out some.
Stage platform: test_node_roll_action.py."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
REFUSED = "--limit excludes 1 of the nodes that stage network would change: worker-2. Nothing was changed"


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["--limit", "localhost,worker-1"], True),
        (["--limit", "all:!worker-2"], True),
        (["--limit", "localhost,worker-1", "--check"], False),
        (["--limit", "localhost,rdma_nodes"], False),
        ([], False),
    ],
)
def test_network_is_refused_if_a_limit_excludes_a_node(
    tmp_path: pathlib.Path, arguments: list[str], refused: bool
) -> None:
    names = ("worker-1", "worker-2")
    facts = FactFolder(str(tmp_path / "report"), "run-1")
    facts.begin(RunStart("run-1", "2026-01-02T03:04:05+00:00", False, names))
    inventory = {"all": {"hosts": {"localhost": {}}, "children": {"rdma_nodes": {"hosts": dict.fromkeys(names)}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    task = {"linerate.rdma.network_objects": {"facts_dir": facts.report_dir, "run": "run-1", "fabrics": []}}
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": [task]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "RDMA_"))}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "HOME": str(tmp_path)}
    program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "-i", "hosts.yml", "play.yml", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert (REFUSED in said) is refused, said
    # what comes next is the intent, which has no fabric
    assert done.returncode != 0 and ("rdma_fabrics: an empty list" in said) is not refused
