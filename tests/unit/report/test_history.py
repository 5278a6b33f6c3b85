# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    STAGES,
    Finding,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._store.evidence import pack
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import keep_run, list_kept
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import write_record
from ansible_collections.linerate.rdma.plugins.modules.report import write_report

MOMENT = "2026-01-02T03:04:05+00:00"
FAIL = Finding(
    "fabric.one_master",
    "compute",
    "fail",
    "2 masters",
    "1 master",
    "Two subnet managers claim the fabric.",
    "Stop one.",
)


def run_of(number: int) -> str:
    return f"20260102T0304{number:02d}Z-aaaaaa"


def a_run(
    folder: pathlib.Path,
    number: int,
    firmware: str = "28.39.1002",
    *findings: Finding,
    check_mode: bool = False,
    keep: int = 3,
) -> typing.Any:
    """A run in the folder of the report, up to its report; its answer."""
    run = run_of(number)
    facts = FactFolder(str(folder), run)
    facts.begin(RunStart(run, MOMENT, check_mode, ("worker-1",), (), versions={"linerate.rdma": "1.0.0"}))
    # begun in a moment of its own: files tell by their times of which run they are
    moment = 1_700_000_000 + 100 * number
    os.utime(folder / "run.json", (moment, moment))
    facts.write("hcas", "worker-1", {"hcas": [{"name": "mlx5_0", "firmware": firmware}], "errors": []})
    for stage in STAGES:
        gate = judge(
            findings if stage == "fabric" and findings else [build_pass(f"{stage}.fine", "worker-1", "1", "1")]
        )
        write_record(
            str(folder / "stages"),
            Record(stage, run, MOMENT, MOMENT, check_mode, "open" if gate.open else "closed", gate.judged),
        )
    return write_report({"run": run, "report_dir": str(folder), "keep": keep}, "2.19.4")


def since(folder: pathlib.Path) -> typing.Any:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))["since"]


def test_a_first_run_has_none_before_it(tmp_path: pathlib.Path) -> None:
    assert a_run(tmp_path, 1)["removed"] == []
    assert since(tmp_path) is None and "Changes since the previous run" not in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    assert list_kept(str(tmp_path)) == [run_of(1)] and os.readlink(tmp_path / "runs" / "latest") == run_of(1)


def test_what_changed_is_said_and_the_oldest_goes(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    a_run(tmp_path, 2)
    assert since(tmp_path)["count"] == 0
    assert "No changes in the intent, nodes, HCAs, cables, stages or findings." in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )

    a_run(tmp_path, 3, "28.41.1000", FAIL)
    told = since(tmp_path)
    assert told["run"] == run_of(2) and told["error"] == ""
    assert "worker-1: mlx5_0 firmware: 28.39.1002 -> 28.41.1000" in told["lines"]
    assert "stage fabric: fabric.one_master on compute: absent -> fail" in told["lines"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        "28.39.1002 -&gt; 28.41.1000" in page
        and 'href="difference.html"' in page
        and (tmp_path / "difference.html").is_file()
    )

    assert a_run(tmp_path, 4)["removed"] == [run_of(1)]
    assert list_kept(str(tmp_path)) == [run_of(2), run_of(3), run_of(4)] and os.readlink(
        tmp_path / "runs" / "latest"
    ) == run_of(4)


def test_a_kept_run_stays_as_it_was(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    first = tmp_path / "runs" / run_of(1)
    before = {path.relative_to(first): path.read_bytes() for path in first.rglob("*") if path.is_file()}
    assert {path.name for path in before} >= {
        "run.json",
        "report.html",
        "report.json",
        "report.xml",
        "report.prom",
        "report.md",
        "fabric.jsonl",
        "worker-1.json",
    }
    assert (first / "report.html").samefile(tmp_path / "report.html")
    a_run(tmp_path, 2, "28.41.1000", FAIL)
    assert {path.relative_to(first): path.read_bytes() for path in first.rglob("*") if path.is_file()} == before


def test_a_kept_run_can_be_judged_again_and_is_no_part_of_the_evidence(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    a_run(tmp_path, 2)
    answer = rejudge_run(str(tmp_path / "runs" / run_of(1)), str(tmp_path / "judged"), {}, "2.19.4")
    assert answer["run"] == run_of(1)
    sums = pack(str(tmp_path), str(tmp_path.parent / "evidence.tar.gz"), "evidence").sums
    assert not [name for name in sums if name.startswith("runs/")] and "report.prom" in sums


def test_what_an_older_run_left_is_not_kept_with_a_later_one(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    stray = tmp_path / "facts" / "hcas" / "worker-9.json"
    stray.write_text("{}", encoding="utf-8")
    os.utime(stray, (1_700_000_000, 1_700_000_000))
    a_run(tmp_path, 2)
    assert not (tmp_path / "runs" / run_of(2) / "facts" / "hcas" / "worker-9.json").exists()


def test_a_check_mode_is_compared_with_a_check_mode(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    a_run(tmp_path, 2, check_mode=True)
    assert since(tmp_path) is None
    a_run(tmp_path, 3)
    assert since(tmp_path)["run"] == run_of(1) and since(tmp_path)["count"] == 0


def test_a_run_that_goes_on_takes_its_own_place(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    a_run(tmp_path, 2, "28.39.1002", FAIL)
    a_run(tmp_path, 2)
    assert (
        list_kept(str(tmp_path)) == [run_of(1), run_of(2)]
        and since(tmp_path)["run"] == run_of(1)
        and since(tmp_path)["count"] == 0
    )
    assert json.loads((tmp_path / "runs" / run_of(2) / "report.json").read_text(encoding="utf-8"))["verdict"] == "GREEN"


def test_none_is_kept(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1, keep=0)
    a_run(tmp_path, 2, keep=0)
    assert since(tmp_path) is None and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("damage", ["{", '{"schema": 99}'])
def test_a_run_before_that_cannot_be_read_is_not_compared(damage: str, tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    path = tmp_path / "runs" / run_of(1) / "run.json"
    path.unlink()
    path.write_text(damage, encoding="utf-8")
    assert a_run(tmp_path, 2)["verdict"] == "GREEN"
    assert since(tmp_path) is None


def test_what_else_lies_there_stays(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / run_of(0)).symlink_to(outside)
    for number in range(1, 4):
        a_run(tmp_path, number, keep=1)
    assert (
        list_kept(str(tmp_path)) == [run_of(3)]
        and (tmp_path / "runs" / "mine").is_dir()
        and outside.is_dir()
        and (tmp_path / "runs" / run_of(0)).is_symlink()
    )


def test_a_file_system_without_links(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_paths: typing.Any, **_options: typing.Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    a_run(tmp_path, 1)
    first = tmp_path / "runs" / run_of(1) / "report.html"
    assert first.read_bytes() == (tmp_path / "report.html").read_bytes() and not first.samefile(
        tmp_path / "report.html"
    )


def test_no_room_is_told_with_the_way_out(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1, keep=0)
    (tmp_path / "runs").write_text("no folder", encoding="utf-8")
    with pytest.raises(FileError, match="could not be stored:") as told:
        keep_run(str(tmp_path), run_of(1), 3)
    assert "rdma_report_keep: 0" in told.value.remedy


def test_only_the_run_of_the_folder_is_kept(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1, keep=0)
    assert keep_run(str(tmp_path), run_of(7), 3) == [] and list_kept(str(tmp_path)) == []


def test_of_many_differences_the_first_are_on_the_page(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1)
    a_run(tmp_path, 2, "28.39.1002", *(dataclasses.replace(FAIL, subject=f"fabric-{number}") for number in range(40)))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"all {since(tmp_path)['count']} differences" in page and since(tmp_path)["count"] > 40
