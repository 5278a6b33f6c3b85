# SPDX-License-Identifier: GPL-3.0-or-later

"""What a stage that no report follows hands over: the form is the report's, and it is never green."""

from __future__ import annotations

import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import judge_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

FAILS = Finding("network.ready", "compute", "fail", "1", "2", "one is not there", "wait for it")
FINE = Finding("network.ready", "storage", "pass")
WAIVER = {"check": "network.ready", "reason": "on order"}

Told = dict[str, typing.Any]


class Judge(typing.Protocol):
    """Judges stage network by what its check shall find."""

    def __call__(
        self,
        *findings: Finding,
        check_mode: bool = False,
        changes: typing.Sequence[str] = (),
        waivers: typing.Sequence[Told] = (),
    ) -> Told: ...


@pytest.fixture
def judge(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, fabrics: typing.Any) -> Judge:
    def judged(
        *findings: Finding,
        check_mode: bool = False,
        changes: typing.Sequence[str] = (),
        waivers: typing.Sequence[Told] = (),
    ) -> Told:
        monkeypatch.setitem(TABLE, "network", (TABLE["network"][0], lambda _intent, _facts: findings))
        folder = FactFolder(str(tmp_path), "run-1")
        folder.begin(RunStart("run-1", "2026-01-02T03:04:05+00:00", check_mode, ("worker-1",), fabrics=fabrics()))
        options = {
            "stage": "network",
            "fabrics": fabrics(),
            "waivers": waivers,
            "cluster": None,
            "error": None,
            "changes": changes,
        }
        stats: Told = judge_facts({**options, "report_dir": str(tmp_path)}, folder, check_mode)["stats"]
        return stats

    return judged


def test_an_open_gate_is_not_green(judge: Judge, tmp_path: pathlib.Path) -> None:
    told = judge(FINE)
    assert (told["verdict"], told["green"], told["first"], told["plan"]) == ("PASSED", False, None, "")
    assert told["summary"] == "PASSED - stage network: 1 pass"
    assert told["counts"]["pass"] == 1 and pathlib.Path(told["report"]) == tmp_path / "stages" / "network.jsonl"


def test_what_is_waived_is_said(judge: Judge) -> None:
    told = judge(FINE, FAILS, waivers=[WAIVER])
    assert told["verdict"] == "PASSED, 1 WAIVED" and told["counts"]["waived"] == 1 and told["green"] is False


def test_a_closed_gate_names_its_first_cause(judge: Judge) -> None:
    told = judge(FINE, FAILS)
    assert told["verdict"] == "NOT GREEN" and told["summary"].startswith(
        "NOT GREEN - stage network: 1 fail (network.ready on compute"
    )
    assert told["first"] == {
        "check": "network.ready",
        "subject": "compute",
        "status": "fail",
        "why": "one is not there",
        "remedy": "wait for it",
    }


def test_check_mode_has_the_plan(judge: Judge) -> None:
    told = judge(FINE, check_mode=True, changes=["policy compute would be created"])
    assert (
        told["verdict"] == "CHECK MODE" and told["changes"] == 1 and "- policy compute would be created" in told["plan"]
    )
    assert told["summary"] == "CHECK MODE - stage network: 1 pass - passed (check mode)"


def test_its_keys_are_those_of_a_whole_run(judge: Judge, tmp_path: pathlib.Path) -> None:
    alone = judge(FINE)
    assert set(rejudge_run(str(tmp_path), "", {}, "2.19.0")["stats"]) == set(alone)
