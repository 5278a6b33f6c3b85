# SPDX-License-Identifier: GPL-3.0-or-later

"""A fact of a stranger's folder has no more bytes than a run would write: one node those that it may answer, a cluster
as many as its nodes explain. A larger one is refused by name before it is read."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import compare_folders, rejudge_run
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import ObservedFirmware
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import CLUSTER, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse import limits
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, MOST_OF_A_TEXT, decode_json
from ansible_collections.linerate.rdma.plugins.module_utils._store import facts, run_start
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
RUN, TIME = "20260102T030405Z-000001", "2026-01-02T03:04:05+00:00"
LIMITS = [
    ("firmware", "node-1", 2, 4 * MIB, "the fact firmware of one node"),
    ("hcas_after_network", "node-1", 2, 8 * MIB, "the fact hcas_after_network of one node"),
    ("pings", "node-1", 2, 16 * MIB, "the fact pings of one node"),
    ("topologies", "node-1", 2, 64 * MIB, "a fabric"),
    ("operators", CLUSTER, 2, 32 * MIB + 2 * 65536, "a fact of the cluster in a run of 2 nodes"),
    ("operators", CLUSTER, 10_000, 128 * MIB, "a fact of the cluster in a run of 10000 nodes"),
]


def begun(folder: pathlib.Path, nodes: int) -> FactFolder:
    run = FactFolder(str(folder), RUN)
    run.begin(RunStart(RUN, TIME, nodes=tuple(f"node-{number + 1}" for number in range(nodes))))
    return run


@pytest.mark.parametrize(("kind", "node", "nodes", "most", "of_what"), LIMITS)
def test_a_larger_fact_is_refused_by_name_and_size(
    tmp_path: pathlib.Path, kind: str, node: str, nodes: int, most: int, of_what: str
) -> None:
    run = begun(tmp_path, nodes)
    path = run.write(kind, node, 1)
    os.truncate(path, most + 1)
    with pytest.raises(
        FileError, match=f"{path} could not be read: it has {most + 1} bytes; the limit is {most} for"
    ) as no:
        run.read(kind, node)
    assert of_what in str(no.value) and "Check the source of the folder" in no.value.remedy


def test_a_run_keeps_no_fact_that_it_would_refuse(tmp_path: pathlib.Path) -> None:
    run = begun(tmp_path, 1)
    run.write("firmware", "node-1", {"said": ["x" * 60_000] * 300})
    fact = run.read("firmware", "node-1")
    assert fact is not None and fact.error is not None
    assert (
        "the limit is 4194303 for the fact firmware of one node. Its largest part is said with 18000901 bytes"
    ) in fact.error
    run.write("operators", value={"said": ["x" * 60_000] * 300})
    assert len(run.value("operators")["said"]) == 300


def test_the_states_of_ten_thousand_nodes_are_kept(tmp_path: pathlib.Path) -> None:
    """12 KiB for a node with eight virtual functions on each of eight rails."""
    most, _of_what = begun(tmp_path, 10_000).limit("operators")
    assert most >= 10_000 * 12 * 1024


def padded(folder: pathlib.Path, kind: str, sizes: dict[str, int]) -> FactFolder:
    """Facts of nodes whose files have so many bytes."""
    run = begun(folder, len(sizes))
    for node, size in sizes.items():
        with open(run.write(kind, node, {"hcas": []}), "a", encoding="utf-8") as stream:
            stream.write(" " * size)
    return run


def test_the_largest_facts_of_a_kind_are_errors_where_all_together_are_too_large(tmp_path: pathlib.Path) -> None:
    """20 files of 16 MiB each, which an archive of 2 MB may hold, were all in memory at once."""
    sizes = {f"node-{number}": 15 * MIB if number > 17 else 100 for number in range(1, 21)}
    run = padded(tmp_path, "pings", sizes)
    found = run.of_nodes("pings", sizes)
    assert [node for node, item in found.items() if item["error"] is not None] == ["node-18", "node-19"]
    assert (
        found["node-18"]["error"]
        .partition(" for all of them together")[2]
        .startswith(", and this fact is one of the largest with 157")
    )
    assert "the facts pings of 20 nodes have 4719" in found["node-18"]["error"] and len(run.refused) == 2
    assert found["node-20"]["value"] == found["node-1"]["value"] == {"hcas": []}


def test_what_one_node_may_answer_is_read_beside_the_facts_of_the_others(tmp_path: pathlib.Path) -> None:
    sizes = {"node-1": 8 * MIB - 1000, **{f"node-{number}": 200 * 1024 for number in range(2, 9)}}
    found = padded(tmp_path, "hcas", sizes).of_nodes("hcas", sizes)
    assert all(item["error"] is None for item in found.values())


def test_a_fleet_with_many_virtual_functions_is_read(tmp_path: pathlib.Path) -> None:
    """Each of 200 nodes has eight rails with 64 virtual functions on each."""
    fact = json.loads((SCENARIO / "facts" / "hcas" / "node-1.json").read_text(encoding="utf-8"))
    run = begun(tmp_path, 200)
    nodes = run.start().nodes
    for node in nodes:
        os.truncate(run.write("hcas", node, {"hcas": []}), 8 * 65 * len(json.dumps(fact["value"]["hcas"][-1])))
    assert run.find_excess("hcas", nodes) == {}


def test_facts_of_before_a_reset_are_left_out_for_the_largest_nodes_alone(tmp_path: pathlib.Path) -> None:
    sizes = {f"node-{number}": 6 * MIB if number > 16 else 100 for number in range(1, 20)}
    run = padded(tmp_path, "hcas_before_reset", {**sizes, "node-20": 7 * MIB})
    found = read_facts(run, "platform", ("before",))[0]["before"]
    # a node whose facts have no HCA is unknown
    assert set(found) == {*sizes, "node-20"} and found["node-20"] == {"hcas": []}
    assert len(run.refused) == 1 and "node-20.json was not read: " in run.refused[0]


def test_a_plan_of_more_than_all_nodes_may_have_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    sizes = {f"node-{number}": 15 * MIB for number in range(1, 4)}
    run = padded(tmp_path, "ping_plan", sizes)
    with pytest.raises(FileError, match="ping_plan of 3 nodes have 4718"):
        read_facts(run, "reachability", ("plan",))


@pytest.mark.parametrize("kind", ["platform", "topologies"])
def test_a_comparison_takes_little_memory_for_a_huge_fact(tmp_path: pathlib.Path, kind: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SCENARIO, folder)
    path = folder / "facts" / kind / "node-1.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    with path.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps({**data, "value": "@"}).replace('"@"', '{"more":"'))
        stream.writelines("x" * MIB for _part in range(120))
        stream.write('"}}')
    # what is made once for each type
    rejudge_run(str(SCENARIO), str(tmp_path / "other"), {}, "2.19.0")
    tracemalloc.start()
    try:
        answer = compare_folders(str(SCENARIO), str(folder))
        judged = rejudge_run(str(folder), str(tmp_path / "judged"), {}, "2.19.0")
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * MIB
    assert any("; the limit is " in line for line in answer["lines"]) and not judged["green"]


def test_one_wide_character_does_not_make_four_bytes_of_each(tmp_path: pathlib.Path) -> None:
    """A large file has ASCII alone, as a run writes it."""
    run = begun(tmp_path, 2)
    path = pathlib.Path(run.write("operators", value="@"))
    text = path.read_text(encoding="utf-8")
    words = json.dumps(["x" * 65536] * 257)
    path.write_text(text.replace('"@"', words), encoding="utf-8")
    assert len(run.value("operators")) == 257
    path.write_text(text.replace('"@"', words.replace("x", "\U0001f600", 1)), encoding="utf-8")
    with pytest.raises(FileError, match="bytes with non-ASCII characters, which a run writes as"):
        run.value("operators")


@pytest.mark.parametrize("form", ['["%s"]', '{"%s": 1}'])
def test_one_text_is_no_whole_answer(form: str) -> None:
    with pytest.raises(ParseError, match=f"{MOST_OF_A_TEXT + 1} characters") as refused:
        decode_json(form % ("x" * (MOST_OF_A_TEXT + 1)), "a file", 16 * MIB)
    assert len(str(refused.value)) < 500
    assert decode_json(form % ("x" * MOST_OF_A_TEXT), "a file", 16 * MIB)


@pytest.mark.parametrize("text", ["x", '"', "\\", "\ud800", "\u20ac"])
@pytest.mark.parametrize(
    ("kind", "node", "place"),
    [("operators", CLUSTER, "value"), ("operators", CLUSTER, "key"), ("topologies", "node-1", "value")],
)
def test_one_text_takes_no_other_part_of_a_fact(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, text: str, kind: str, node: str, place: str
) -> None:
    # the true limit takes seconds
    most = 32_768
    monkeypatch.setattr(limits, "MOST_OF_A_TEXT", most)
    monkeypatch.setattr(facts, "MOST_OF_A_TEXT", most)
    run = begun(tmp_path, 4)
    long = text * (most + 1)
    run.write(kind, node, {"a": {long: 1} if place == "key" else [long], "b": "of another node"})
    fact = run.read(kind, node)
    assert fact is not None and fact.error is None and fact.value["b"] == "of another node"
    (kept,) = fact.value["a"]
    assert kept.startswith(text if text != "\ud800" else "\\ud800") and len(kept) <= most


def test_a_text_of_as_many_characters_as_are_read_is_kept(tmp_path: pathlib.Path) -> None:
    run = begun(tmp_path, 4)
    run.write("operators", value=["x" * (MOST_OF_A_TEXT - 100)])
    assert run.value("operators") == ["x" * (MOST_OF_A_TEXT - 100)]


def test_halves_of_a_pair_are_found_without_a_copy_of_the_data() -> None:
    words = '["\\ud83d\\ude00' + '","\\\\ud800","'.join("x" * 65536 for _part in range(160)) + '"%s]'
    tracemalloc.start()
    try:
        decode_json(words % "", "a file", 16 * MIB)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * len(words)
    with pytest.raises(ParseError, match="half of a surrogate pair"):
        decode_json(words % ',{"\\ud800":1}', "a file", 16 * MIB)


FIRMWARE = {
    "lists in a place": {"hcas": [{"address": "0000:10:00.0", "psid": [[]] * 110_000}]},
    "keys in a place": {
        "hcas": [{"address": "0000:10:00.0", "stored": {f"{number:x}": 1 for number in range(230_000)}}]
    },
    "settings": {
        "hcas": [
            {"address": f"0000:{number:02x}:00.0", "settings": [{"name": f"S{item}"} for item in range(8000)]}
            for number in range(14)
        ]
    },
}


@pytest.mark.parametrize("value", FIRMWARE.values(), ids=FIRMWARE)
def test_whatever_is_in_the_place_of_a_value_takes_little_memory(
    tmp_path: pathlib.Path, value: dict[str, typing.Any]
) -> None:
    """As many values as an answer may have took 390 MiB."""
    run = begun(tmp_path, 1)
    run.write("firmware", "node-1", {"hcas": value["hcas"] * 5})
    assert "for the fact firmware of one node" in run.of_nodes("firmware", ("node-1",))["node-1"]["error"]
    run.write("firmware", "node-1", value)
    assert run.of_nodes("firmware", ("node-1",))["node-1"]["error"] is None
    tracemalloc.start()
    try:
        found = load(dict[str, ObservedFirmware], run.of_nodes("firmware", ("node-1",)), "firmware")
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found["node-1"].value is not None or "its output is not valid: value.hcas" in found["node-1"].error
    assert peak < 96 * MIB, peak / MIB


@pytest.mark.parametrize("node", ["node-1", CLUSTER])
def test_a_number_that_no_reader_takes_is_an_error_of_its_fact(tmp_path: pathlib.Path, node: str) -> None:
    folder = FactFolder(str(tmp_path), "run")
    for value in (10**70, [{"a": 10**64}]):
        folder.write("nic_firmware", node, value={"hcas": value})
        fact = folder.read("nic_firmware", node)
        assert fact is not None and fact.value is None and "more than 64 digits" in (fact.error or "")
    folder.write("nic_firmware", node, value={"hcas": 10**63, "digest": "1" * 65})
    fact = folder.read("nic_firmware", node)
    assert fact is not None and fact.value == {"hcas": 10**63, "digest": "1" * 65}


@pytest.mark.parametrize(("node", "most"), [(CLUSTER, 32 * MIB + 2 * 65536), ("node-1", (4 + 16) * MIB)])
def test_facts_of_invented_kinds_are_not_read_beyond_what_one_fact_may_have(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, node: str, most: int
) -> None:
    run = begun(tmp_path, 2)
    size = 4 * MIB - 1
    for number in range(20):
        os.truncate(run.write(f"k{number}", node, 1), size + (number == 7))
    read: list[int] = []

    def counted(path: str, *_limits: typing.Any) -> None:
        read.append(os.lstat(path).st_size)

    monkeypatch.setattr(facts, "read_json", counted)
    monkeypatch.setattr(run, "_nodes", 2)
    values, errors = run.all_of(node)
    assert not values and most - size <= sum(read) <= most and len(read) + len(errors) == 20
    assert "is one of the largest" in errors["k7"]


def test_a_folder_of_invented_kinds_is_refused(tmp_path: pathlib.Path) -> None:
    run = begun(tmp_path, 2)
    for number in range(facts._MOST_KINDS + 1):
        (tmp_path / "facts" / f"k{number}").mkdir(parents=True)
    with pytest.raises(FileError, match="501 kinds of facts; the limit is 500"):
        run.all_of("node-1")


@pytest.mark.parametrize("node", [CLUSTER, "node-1"])
def test_a_number_of_any_sign_that_is_written_is_read_again(tmp_path: pathlib.Path, node: str) -> None:
    run = begun(tmp_path, 2)
    for number in (10**64 - 1, 1 - 10**64):
        run.write("operators", node, {"a": number})
        fact = run.read("operators", node)
        assert fact is not None and fact.value == {"a": number}
    for number in (10**64, -(10**64)):
        run.write("operators", node, {"a": number})
        fact = run.read("operators", node)
        assert fact is not None and "a number of more than 64 digits" in str(fact.error)


def test_no_node_has_the_name_of_the_facts_of_the_cluster(tmp_path: pathlib.Path) -> None:
    start = RunStart(RUN, TIME, nodes=("node-1", CLUSTER))
    with pytest.raises(FileError, match="which is reserved for the facts of the cluster") as refused:
        FactFolder(str(tmp_path), RUN).begin(start)
    assert "another name" in refused.value.remedy
    begun(tmp_path, 1)
    path = tmp_path / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"node-1"', f'"{CLUSTER}"'), encoding="utf-8")
    with pytest.raises(FileError, match="which is reserved for the facts of the cluster"):
        run_start.read_start(str(tmp_path))
