# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of a stranger's folder that have more findings, or more bytes, than the nodes of its run explain."""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._store import records
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records, write_record

RUN, TIME = "20260102T030405Z-000001", "2026-01-02T03:04:05+00:00"


def filled(folder: pathlib.Path, nodes: int, findings: int, words: int = 1) -> str:
    """A folder with a record of each stage."""
    FactFolder(str(folder), RUN).begin(RunStart(RUN, TIME, nodes=tuple(f"n{number}" for number in range(nodes))))
    (folder / "stages").mkdir()
    found = judge(
        [Finding("a.b", f"s{number}", "fail", "x" * words, why="why", remedy="do") for number in range(findings)]
    )
    for stage in STAGES:
        write_record(str(folder / "stages"), Record(stage, RUN, TIME, TIME, False, "closed", found.judged))
    return str(folder / "stages")


def test_findings_of_all_stages_are_bounded_by_the_nodes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_FINDINGS_OF_ALL", 10)
    monkeypatch.setattr(records, "_FINDINGS_OF_A_NODE", 5)
    read, refused = read_records(filled(tmp_path, 2, 9))
    assert [len(record.judged) for record in read.values()] == [9, 9]
    assert list(read) == list(STAGES[:2]) and list(refused) == list(STAGES[2:])
    assert "it has 9 findings, but only 2 remain of the limit for all stages of a run of 2 nodes" in refused[STAGES[2]]


def test_a_negative_number_of_findings_makes_no_room(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_FINDINGS_OF_ALL", 20)
    monkeypatch.setattr(records, "_FINDINGS_OF_A_NODE", 0)
    folder = filled(tmp_path, 1, 9)
    path = pathlib.Path(folder, f"{STAGES[0]}.jsonl")
    head, *rest = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(head), "findings": -1000}), *rest]), encoding="utf-8")
    assert len(read_records(folder)[0]) == 2


def test_bytes_of_all_stages_are_bounded_by_the_nodes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path, 2, 9, 1000)
    size = pathlib.Path(folder, f"{STAGES[-1]}.jsonl").stat().st_size
    monkeypatch.setattr(records, "_BYTES_OF_ALL", size)
    monkeypatch.setattr(records, "_BYTES_OF_A_NODE", size)
    read, refused = read_records(folder)
    assert (
        2 <= len(read) <= 3 and len(read) + len(refused) == len(STAGES) and " bytes, but only " in refused[STAGES[-1]]
    )


def test_a_record_is_cut_to_its_share_where_it_is_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_BYTES_OF_ALL", 400_000)
    monkeypatch.setattr(records, "_BYTES_OF_A_NODE", 0)
    folder = filled(tmp_path, 1, 9, 20_000)
    assert max(path.stat().st_size for path in pathlib.Path(folder).iterdir()) < 100_000
    read, _refused = read_records(folder)
    lengths = {len(item.finding.measured) for record in read.values() for item in record.judged}
    assert lengths == {4096 + len("... (20000 characters)")}
