# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder that molecule's scenario judges: what a run on a healthy fleet leaves today, and the intent beside it."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run, start_of

from .folder import SCENARIO

INTENT = yaml.safe_load((SCENARIO.parent / "vars" / "intent.yml").read_text(encoding="utf-8"))
ANEW = "the folder is of an older form; make it anew: build/venv/bin/python -m tests.unit.truth.folder"


def judge(target: pathlib.Path, **wishes: typing.Any) -> dict[str, typing.Any]:
    return rejudge_run(str(SCENARIO), str(target), wishes, "2.19.0")


def test_the_folder_is_what_a_run_of_today_leaves(tmp_path: pathlib.Path) -> None:
    answer = judge(tmp_path)
    assert (answer["verdict"], answer["lines"]) == ("GREEN", []), ANEW


def test_its_intent_is_the_one_that_the_run_was_of(tmp_path: pathlib.Path) -> None:
    answer = judge(tmp_path, fabrics=INTENT["rdma_fabrics"], cluster=INTENT["rdma_cluster"])
    assert (
        answer["verdict"] == "GREEN" and INTENT["rdma_fabrics"][0]["name"] == start_of(str(SCENARIO)).fabrics[0]["name"]
    ), answer["line"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"virtual_functions": 2}, None),
        ({"virtual_functions": 99}, "platform.sriov"),
        ({"select": {"subnet_manager": "any", "hcas_per_node": 3}}, "discover.hcas"),
    ],
)
def test_an_intent_that_was_not_applied_is_judged_by_what_does_not_depend_on_it(
    tmp_path: pathlib.Path, change: typing.Any, found: typing.Optional[str]
) -> None:
    fabrics = [{**INTENT["rdma_fabrics"][0], **change}]
    answer = judge(tmp_path, fabrics=fabrics, cluster=INTENT["rdma_cluster"], applied=False)
    assert (answer["verdict"], answer["green"], answer["success"]) == ("CHECK MODE", False, found is None), answer[
        "line"
    ]
    assert (answer["stats"]["first"] or {}).get("check") == found
    assert not judge(tmp_path, fabrics=fabrics, cluster=INTENT["rdma_cluster"])["success"], (
        "judged as if it had been applied, it is not there"
    )
