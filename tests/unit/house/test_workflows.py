# SPDX-License-Identifier: GPL-3.0-or-later

"""The workflows of this repository: least permissions, the runner of the lab runs no code of a pull request, and the
linters read each of them."""

from __future__ import annotations

import pathlib
import re
import typing

import pytest
import yaml

from dev import lint, sanity

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*"))
EXAMPLE = ROOT / "docs/examples/ci/github.yml"
CI = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
USES = re.compile(r"uses: (\S+)")


def commands_of(job: dict[str, typing.Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_linters_read_each_workflow() -> None:
    read = lint.CI_FILES["vendor.github-workflows"]
    assert WORKFLOWS and {path.relative_to(ROOT).as_posix() for path in [*WORKFLOWS, EXAMPLE]} == set(read)
    for paths in lint.CI_FILES.values():
        assert all((ROOT / path).is_file() for path in paths)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_only_reads_the_repository_and_ends_in_time(path: pathlib.Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job and 0 < job["timeout-minutes"] <= 90
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_pins_actions_as_the_example_of_the_documentation_does(path: pathlib.Path) -> None:
    used = dict(use.split("@") for use in USES.findall(path.read_text(encoding="utf-8")))
    shown = dict(use.split("@") for use in USES.findall(EXAMPLE.read_text(encoding="utf-8")))
    assert all(re.fullmatch(r"v\d+|[0-9a-f]{40}", version) for version in used.values())
    common = set(used) & set(shown)
    assert common and {name: used[name] for name in common} == {name: shown[name] for name in common}


def test_runner_of_the_lab_runs_by_schedule_and_by_hand_only() -> None:
    own = {name for name, job in CI["jobs"].items() if "self-hosted" in job["runs-on"]}
    assert own == {"test"}
    assert set(re.findall(r"github\.event_name == '(\w+)'", CI["jobs"]["test"]["if"])) == {
        "schedule",
        "workflow_dispatch",
    }
    # YAML 1.1 reads the key 'on' as true
    assert "pull_request_target" not in CI[True] and {"pull_request", "push", "schedule"} <= set(CI[True])


def test_pull_requests_run_make_check_and_ansible_test_of_each_release() -> None:
    for name in ("check", "sanity"):
        assert "if" not in CI["jobs"][name]
    assert commands_of(CI["jobs"]["check"]) == ["make check"]
    assert CI["jobs"]["sanity"]["strategy"]["matrix"]["release"] == sorted(
        {invocation.release for invocation in sanity.INVOCATIONS}
    )
    assert commands_of(CI["jobs"]["test"]) == [".ci/run"]
    assert "exec make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
