# SPDX-License-Identifier: GPL-3.0-or-later

"""A question about disruption that the intent does not heed is refused: a proof that may disturb nobody must not reboot
a node."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.disruption_override import (
    build_reference,
    check_override,
)

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("asked", "cluster"),
    [
        (None, {"disruption": "reboot"}),
        ("", {"disruption": "reboot"}),
        ("drain", None),
        ("drain", {}),
        ("none", {"disruption": "none"}),
    ],
)
def test_who_asks_for_what_the_intent_says_goes_on(asked: typing.Any, cluster: typing.Any) -> None:
    check_override(asked, cluster)


@pytest.mark.parametrize(
    ("asked", "cluster"),
    [("none", {"disruption": "reboot"}), ("none", None), ("reboot", {}), ("none", "no mapping"), ("maybe", {})],
)
def test_who_asks_for_something_else_is_refused(asked: str, cluster: typing.Any) -> None:
    with pytest.raises(RdmaError, match="rdma_disruption"):
        check_override(asked, cluster)


def test_a_job_template_overrides_the_answer_of_a_survey() -> None:
    check_override("reboot", {"disruption": "none"}, "none")
    with pytest.raises(RdmaError, match="rdma_disruption_of_job is 'none'"):
        check_override("reboot", {"disruption": "reboot"}, "none")
    with pytest.raises(RdmaError, match="rdma_disruption_of_job is 'maybe'"):
        check_override("", {}, "maybe")


STAGE: typing.Mapping[str, typing.Any] = types.MappingProxyType({"linerate.rdma.stage_begin": {"stage": "validate"}})
TEARDOWN: typing.Mapping[str, typing.Any] = types.MappingProxyType({"linerate.rdma.run_begin": {"all_nodes": True}})


def begin(
    folder: pathlib.Path, disruption: str, begun: typing.Mapping[str, typing.Any] = STAGE, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A stage begins, and no more: as in each play that begins one.

    :param begun: the task that begins it, or a teardown
    """
    given = {"fabrics": [], "cluster": "{{ rdma_cluster }}", "report_dir": "report"}
    task = {name: {**options, **given} for name, options in begun.items()}
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": [task]}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    (folder / "extra.json").write_text(
        json.dumps({"rdma_disruption": "none", **variables, "rdma_cluster": {"disruption": disruption}}),
        encoding="utf-8",
    )
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "play.yml", "-e", "@extra.json"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "RDMA_"))}
    everything = {**environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "false"}
    return subprocess.run(command, cwd=folder, env=everything, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("task", [STAGE, TEARDOWN], ids=["stage", "teardown"])
def test_a_run_begins_only_with_an_intent_that_refers_to_it(
    tmp_path: pathlib.Path, task: typing.Mapping[str, typing.Any]
) -> None:
    refused = begin(tmp_path, "reboot", task)
    assert refused.returncode != 0 and "rdma_disruption is 'none'" in refused.stdout + refused.stderr
    assert not (tmp_path / "report" / "run.json").exists()
    begun = begin(tmp_path, build_reference("reboot"), task)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert json.loads((tmp_path / "report" / "run.json").read_text(encoding="utf-8"))["cluster"] == {
        "disruption": "none"
    }


@pytest.mark.parametrize(
    ("variables", "disruption"),
    [
        ({"rdma_disruption": "reboot", "rdma_disruption_of_job": "none"}, "none"),
        ({"rdma_disruption": "", "rdma_disruption_of_job": ""}, "drain"),
    ],
)
def test_what_a_job_template_sets_is_what_the_intent_of_a_run_says(
    tmp_path: pathlib.Path, variables: dict[str, str], disruption: str
) -> None:
    begun = begin(tmp_path, build_reference("drain"), STAGE, **variables)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert json.loads((tmp_path / "report" / "run.json").read_text(encoding="utf-8"))["cluster"] == {
        "disruption": disruption
    }
