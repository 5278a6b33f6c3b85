# SPDX-License-Identifier: GPL-3.0-or-later

"""Records that have more findings, or more bytes, than the nodes of their run explain: a stranger's folder, and stages
in which one node makes as many findings as it likes.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    STAGES,
    Finding,
    Waiver,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import (
    Record,
    find_contradiction,
    limit_findings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store import records
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records, write_record

RUN, TIME = "20260102T030405Z-000001", "2026-01-02T03:04:05+00:00"


def make_record(stage: str, findings: int, words: int = 1, run: str = RUN) -> Record:
    found = judge(
        [Finding("a.b", f"s{number}", "fail", "x" * words, why="why", remedy="do") for number in range(findings)]
    )
    return Record(stage, run, TIME, TIME, False, "closed", found.judged)


def begin(folder: pathlib.Path, nodes: int) -> str:
    FactFolder(str(folder), RUN).begin(RunStart(RUN, TIME, nodes=tuple(f"n{number}" for number in range(nodes))))
    (folder / "stages").mkdir()
    return str(folder / "stages")


def filled(folder: pathlib.Path, nodes: int, findings: int, words: int = 1) -> str:
    """A folder with a record of each stage."""
    stages = begin(folder, nodes)
    for stage in STAGES:
        write_record(stages, make_record(stage, findings, words))
    return stages


def set_findings(monkeypatch: pytest.MonkeyPatch, of_all: int, of_a_node: int) -> None:
    monkeypatch.setattr(records, "_FINDINGS_OF_ALL", of_all)
    monkeypatch.setattr(records, "_FINDINGS_OF_A_NODE", of_a_node)


def test_findings_of_all_stages_are_bounded_by_the_nodes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path, 2, 9)
    set_findings(monkeypatch, 10, 5)
    read, refused = read_records(folder)
    assert [len(record.judged) for record in read.values()] == [9, 9]
    assert list(read) == list(STAGES[:2]) and list(refused) == list(STAGES[2:])
    assert "it has 9 findings, but only 2 remain of the limit for all stages of a run of 2 nodes" in refused[STAGES[2]]


def test_a_negative_number_of_findings_makes_no_room(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path, 1, 9)
    set_findings(monkeypatch, 20, 0)
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
    sizes = [path.stat().st_size for path in pathlib.Path(folder).iterdir()]
    assert max(sizes) < 200_000 and sum(sizes) < 400_000
    read, refused = read_records(folder)
    lengths = {len(item.finding.measured) for record in read.values() for item in record.judged}
    more = len("... (20000 characters)")
    assert refused == {} and lengths == {20_000, 4096 + more, 256 + more}


def test_what_is_written_can_be_read_however_many_findings_each_stage_has(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_findings(monkeypatch, 900, 50)
    folder = begin(tmp_path, 2)
    for stage in STAGES:
        write_record(folder, make_record(stage, 5000))
    read, refused = read_records(folder)
    numbers = [len(record.judged) for record in read.values()]
    assert refused == {} and list(read) == list(STAGES) and sum(numbers) <= 1000
    assert numbers[0] == 500, "half of all"
    assert min(numbers) == 1000 // 64, "what each stage has whatever the others need"
    last = read["training"].judged
    assert [item.finding.subject for item in last] == [*(f"s{number}" for number in range(14)), "4986 more"]
    assert last[-1].closes and last[-1].finding.why == (
        "There are 4986 more findings of this check with this status than the record has room for. The first of them"
        " is on s14: why"
    )
    write_record(folder, make_record("training", 5000))
    assert read_records(folder)[0]["training"].judged == last, "a record that is replaced takes nothing"


def test_records_of_another_run_take_no_room_of_this_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(tmp_path, 1)
    for stage in STAGES:
        write_record(folder, make_record(stage, 90, run="20250102T030405Z-000001"))
    set_findings(monkeypatch, 100, 0)
    write_record(folder, make_record("training", 40))
    read, refused = read_records(folder)
    assert len(read["training"].judged) == 40 and list(refused) == list(STAGES[:-1])


def test_number_of_nodes_is_given_where_no_run_lies_beside_the_records(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_findings(monkeypatch, 64, 100)
    folder = str(tmp_path / "judged" / "stages")
    write_record(folder, make_record("fabric", 300), nodes=10)
    assert len(read_records(folder, 10)[0]["fabric"].judged) == 300
    assert "of a run of 0 nodes" in read_records(folder)[1]["fabric"]


@pytest.mark.parametrize("most", range(1, 12))
def test_limit_of_findings_never_opens_a_gate(most: int) -> None:
    found = [
        *(build_pass("a.b", f"p{number}") for number in range(20)),
        *(Finding("a.b", f"w{number}", "warn", why="why", remedy="do") for number in range(20)),
        *(Finding("a.c", f"u{number}", "unknown", why="why", remedy="do") for number in range(20)),
        Finding("a.d", "last", "fail", why="why", remedy="do"),
    ]
    for waivers in ([], [Waiver("a.c", "r")], [Waiver("a.[cd]", "r")]):
        gate = judge(found, waivers)
        kept = limit_findings(gate.judged, most)
        assert len(kept) == max(4, most)
        record = Record("fabric", RUN, TIME, TIME, False, "open" if gate.open else "closed", kept)
        assert find_contradiction(record) == ""
        kinds = [{(item.finding.check, item.finding.status, item.waiver) for item in of} for of in (gate.judged, kept)]
        assert kinds[0] == kinds[1] and kept[-1].finding.subject == "last", "what is alone is kept as it is"
    assert limit_findings(gate.judged, 61) == gate.judged and len(limit_findings(gate.judged, 60)) == 60
