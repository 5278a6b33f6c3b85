# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import stat
import tempfile
import tracemalloc
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.redact import REDACTED, redact, redact_text
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    Finding,
    Waiver,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import (
    Record,
    count_findings,
    describe_outcome,
    describe_record,
    make_record_data,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB
from ansible_collections.linerate.rdma.plugins.module_utils._store import records as records_module
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError, write_text
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_heads, read_records, write_record

BIOS = Finding("platform.bios", "worker-1", "unknown", "not read", "SR-IOV on", "The node has no BMC.", "Ask the BMC.")
WAIVER = Waiver("platform.*", "the lab has no BMC")


def make_record(**changes: typing.Any) -> Record:
    gate = judge([build_pass("platform.iommu", "worker-1", "on", "on"), BIOS], [WAIVER])
    values: dict[str, typing.Any] = {
        "stage": "platform",
        "run": "20260102T030405Z-aaaaaa",
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:04:25+00:00",
        "check_mode": False,
        "gate": "open",
        "judged": gate.judged,
        "waivers": (WAIVER,),
        "facts": (FactCount("platform", 1, 0),),
        "intent": {"fabrics": [{"name": "compute"}]},
    }
    return Record(**{**values, **changes})


def file_of(record: typing.Optional[Record] = None, **head: typing.Any) -> str:
    """The text of a record's file; keywords change its head."""
    data = make_record_data(record or make_record())
    judged = data.pop("judged")
    return "".join(json.dumps(line) + "\n" for line in ({**data, "findings": len(judged), **head}, *judged))


def test_record_survives_the_file(tmp_path: pathlib.Path) -> None:
    record = make_record()
    path = write_record(str(tmp_path / "new" / "stages"), record)
    assert path == str(tmp_path / "new" / "stages" / "platform.jsonl")
    assert read_records(str(tmp_path / "new" / "stages")) == ({"platform": record}, {})
    assert os.listdir(tmp_path / "new" / "stages") == ["platform.jsonl"], "no temporary file is left"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644


def test_no_record_is_no_error(tmp_path: pathlib.Path) -> None:
    assert read_records(str(tmp_path / "nowhere")) == ({}, {}) and read_heads(str(tmp_path / "nowhere")) == {}


def test_head_is_read_without_the_findings(tmp_path: pathlib.Path) -> None:
    path = pathlib.Path(write_record(str(tmp_path), make_record()))
    with path.open("a", encoding="utf-8") as stream:
        stream.write("what comes after the first line is not looked at")
    assert read_heads(str(tmp_path)) == {"platform": make_record(judged=())}
    path.write_text("{", encoding="utf-8")
    assert read_heads(str(tmp_path)) == {}, "one that can't be read counts as none"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no mapping in the first line"),
        ('{"stage": "platf', "Unterminated string"),
        ("[]", "no mapping in the first line"),
        ('{"stage": "platform"}', "missing"),
        (file_of(stage="fabric"), "'fabric'; expected 'platform'"),
        (file_of(gate="ajar"), "'ajar'"),
        (file_of(extra=1), "unknown key"),
        (file_of(findings=3), "platform.findings: 2; expected 3, the number in its head"),
        (
            file_of().splitlines()[0] + "\n" + file_of().splitlines()[1] + "\n",
            "platform.findings: 1; expected 2, the number in its head",
        ),
        (file_of()[:-20], "could not be read:"),
        (file_of() + "[]\n", "platform.findings: more than 2; expected 2, the number in its head"),
        (file_of() + "\n", "more than 2"),
        (file_of(findings=3) + "[]\n", "platform.judged[2]"),
        (file_of(findings=3) + "\n", "Expecting value"),
        (file_of(findings=10**7) + "[]\n", "platform.findings: 10000000; expected a number of at most 1000000"),
        (file_of(findings=True), "platform.findings: True; expected a number"),
        (file_of(findings=None), "platform.findings: None; expected a number"),
        (file_of(findings=-1), "platform.findings: -1; expected a number"),
        ("\udcff\udcfe", "could not be read"),
        ("[" * 100_000, "nesting"),
        (file_of(schema=3, extra=1), "3, of a newer version of linerate.rdma; expected schema 2"),
        (file_of(make_record(judged=judge([BIOS]).judged)), "its gate is open, which contradicts its findings"),
        (file_of(make_record(judged=())), "its gate is open, which contradicts its findings"),
        (file_of(make_record(gate="closed")), "its gate is closed, which contradicts its findings"),
    ],
)
def test_broken_record_is_named_and_never_taken(tmp_path: pathlib.Path, text: str, said: str) -> None:
    (tmp_path / "platform.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
    records, unreadable = read_records(str(tmp_path))
    assert records == {}
    assert (
        list(unreadable) == ["platform"]
        and said in unreadable["platform"]
        and "platform.jsonl" in unreadable["platform"]
    )


@pytest.mark.parametrize("findings", [2, 100_000])
def test_lines_that_are_no_findings_are_not_held(tmp_path: pathlib.Path, findings: int) -> None:
    (tmp_path / "platform.jsonl").write_text(file_of(findings=findings) + '{"":{}}\n' * 100_000, encoding="utf-8")
    tracemalloc.start()
    try:
        records, unreadable = read_records(str(tmp_path))
        # all of them are 30 MiB
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert records == {} and list(unreadable) == ["platform"]


@hypothesis.given(some.integers(min_value=0), some.integers(min_value=0, max_value=255))
def test_damaged_record_is_never_taken_for_a_better_one(place: int, byte: int) -> None:
    """A byte is changed or the end is gone: the record is refused, or says what it said, or is of no green run."""
    whole = file_of(make_record(judged=judge([BIOS]).judged, gate="closed")).encode()
    place %= len(whole)
    with tempfile.TemporaryDirectory() as folder:
        for text in (whole[:place], whole[:place] + bytes([byte]) + whole[place + 1 :]):
            (pathlib.Path(folder) / "platform.jsonl").write_bytes(text)
            records, unreadable = read_records(folder)
            assert unreadable or records["platform"].gate == "closed"


def test_what_is_no_text_is_written_all_the_same(tmp_path: pathlib.Path) -> None:
    record = make_record(error="\udcff\x00 noise")
    write_record(str(tmp_path), record)
    expected = make_record(error="\\udcff\x00 noise")
    assert read_records(str(tmp_path))[0]["platform"] == expected, "half of a surrogate pair is there as its escape"
    write_text(str(tmp_path / "report.html"), "\udcff")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "\\udcff"


def test_what_could_not_be_read_again_is_cut_where_it_is_written(tmp_path: pathlib.Path) -> None:
    record = make_record(
        judged=judge(
            [
                Finding(
                    "platform.bios",
                    "worker-1",
                    "unknown",
                    "x" * 100_000,
                    why="\U0001f600" * (17 * MIB // 12),
                    remedy="Look.",
                )
            ]
        ).judged
    )
    write_record(str(tmp_path), dataclasses.replace(record, gate="closed"))
    records, unreadable = read_records(str(tmp_path))
    assert unreadable == {} and len(records["platform"].judged) == 1
    finding = records["platform"].judged[0].finding
    assert (finding.measured, finding.remedy) == (f"{'x' * 65_536}... (100000 characters)", "Look.")
    assert finding.why == f"{chr(0x1F600) * 65_536}... ({17 * MIB // 12} characters)"


def test_many_findings_are_cut_further_and_a_record_that_is_too_large_all_the_same_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        Finding("platform.bios", f"worker-{number}", "unknown", "x" * 5000, why="y" * 5000, remedy="Look.")
        for number in range(10)
    ]
    record = make_record(judged=judge(found).judged, gate="closed")
    write_record(str(tmp_path), record)
    assert read_records(str(tmp_path)) == ({"platform": record}, {}), "what fits is whole"
    monkeypatch.setattr(records_module, "_MOST_BYTES", 90_000)
    write_record(str(tmp_path), record)
    read, unreadable = read_records(str(tmp_path))
    assert unreadable == {} and {item.finding.measured for item in read["platform"].judged} == {
        f"{'x' * 4096}... (5000 characters)"
    }
    monkeypatch.setattr(records_module, "_MOST_BYTES", 1000)
    with pytest.raises(FileError, match=r"its 10 findings .* exceed the limit for reading"):
        write_record(str(tmp_path), record)


def test_folder_that_cannot_be_made_is_said(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileError, match=r"platform\.jsonl could not be written"):
        write_record(str(tmp_path / "file" / "stages"), make_record())


def test_counts_and_words() -> None:
    record = make_record()
    assert count_findings(record.judged) == {"pass": 1, "fail": 0, "unknown": 0, "skipped": 0, "warn": 0, "waived": 1}
    lines = describe_record(record)
    assert lines[0] == "platform: 1 pass, 1 waived - passed"
    assert "[waived unknown] platform.bios on worker-1" in lines
    assert "    waiver: the lab has no BMC" in lines


def test_changes_are_on_the_terminal_and_many_of_them_are_counted() -> None:
    many = tuple(f"created object {number}" for number in range(103))
    lines = describe_record(make_record(judged=(), changes=many))
    assert lines[1:3] == ["changed: created object 0", "changed: created object 1"]
    assert lines[-1] == "and 3 more changes, which the record lists in full"
    assert describe_record(make_record(judged=(), changes=many[:1], check_mode=True))[1] == "would be: created object 0"


def test_a_cause_that_many_have_is_said_once_on_the_terminal() -> None:
    def slow(number: int) -> Finding:
        return Finding(
            "discover.clock", f"worker-{number}", "warn", f"{number} s behind", "none", "no time service", "start one"
        )

    few = describe_record(make_record(judged=judge(map(slow, range(3))).judged))
    assert [line for line in few if line.startswith("[")] == [
        f"[warn] discover.clock on worker-{number}" for number in range(3)
    ]
    many = describe_record(make_record(judged=judge([*map(slow, range(1000)), BIOS]).judged, gate="closed"))
    assert many[1:5] == [
        ("[warn] discover.clock on worker-0, worker-1, worker-2 and 997 more, which the record lists in full"),
        "    measured 0 s behind (worker-0); expected none",
        "    why: no time service",
        "    do: start one",
    ]
    assert [line for line in many if line.startswith("[")][1:] == [f"[{BIOS.status}] {BIOS.check} on {BIOS.subject}"]


def test_warnings_of_many_causes_are_one_line_on_the_terminal() -> None:
    warned = [
        Finding(
            f"tuning.{'rows' if number else 'cpu'}", f"worker-{number}", "warn", "x", "y", f"cause {number}", "set it"
        )
        for number in range(15)
    ]
    assert describe_record(make_record(judged=judge([*warned, BIOS]).judged, gate="closed"))[1:] == [
        *describe_record(make_record(judged=judge([BIOS]).judged, gate="closed"))[1:],
        (
            "[warn] 15 warnings (1 tuning.cpu, 14 tuning.rows): the report and stages/platform.jsonl"
            " beside it list them in full"
        ),
    ]
    assert (
        sum(line.startswith("[warn]") for line in describe_record(make_record(judged=judge(warned[:3]).judged))) == 3
    ), "few of them are shown in full"


def test_findings_that_wait_for_the_changes_of_a_run_are_one_line_on_the_terminal() -> None:
    missing = [
        Finding("operators.daemon", f"worker-{number}", "fail", "no DaemonSet", "ready", "x", "y") for number in (1, 2)
    ]
    needed = Finding("operators.needed", "cluster", "unknown", "no Deployment", "one", "x", "y")
    warned = Finding("operators.multus", "multus", "warn", "no DaemonSet", "one", "x", "y")
    judged = judge([*missing, needed, warned]).judged
    changes = ("created Helm release sriov-network-operator 1.6.0",)
    record = make_record(judged=judged, gate="pending", check_mode=True, changes=changes)
    assert describe_record(record)[2:] == [
        (
            "[pending] 3 findings (2 operators.daemon, 1 operators.needed): a run without --check"
            " decides them; the report and stages/platform.jsonl beside it list them in full"
        ),
        "[warn] operators.multus on multus",
        "    measured no DaemonSet; expected one",
        "    why: x",
        "    do: y",
    ]
    closed = describe_record(make_record(judged=judged, gate="closed", check_mode=True, changes=changes))
    assert "[fail] operators.daemon on worker-1" in closed and "[unknown] operators.needed on cluster" in closed


def test_what_came_of_a_stage_is_told_without_gates() -> None:
    record = make_record()
    assert (
        describe_outcome(record) == "passed"
        and describe_outcome(dataclasses.replace(record, gate="pending")) == "decided by a run without --check"
    )
    closed = dataclasses.replace(record, gate="closed")
    assert (
        describe_outcome(closed) == "stopped here"
        and describe_outcome(dataclasses.replace(closed, closed_by="fabric")) == "not run"
    )
    assert describe_outcome(dataclasses.replace(closed, stage="job")) == "not passed", "no run stops at it"


def test_words_without_findings() -> None:
    assert describe_record(make_record(judged=(), gate="closed", check_mode=True)) == [
        "platform: nothing was checked - stopped here (check mode)"
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"token": "abc"}, {"token": REDACTED}),
        (
            {"users": [{"user": {"client-key-data": "QUJD", "name": "x"}}]},
            {"users": [{"user": {"client-key-data": REDACTED, "name": "x"}}]},
        ),
        ({"kubeconfig": {"a": "b"}}, {"kubeconfig": {"a": "b"}}),
        ({"kubeconfig": "apiVersion: v1"}, {"kubeconfig": REDACTED}),
        ({"m_key": "0x123"}, {"m_key": REDACTED}),
        # the field's own words stay
        ({"port_guid": "0x506b4b0300000001", "pkey": "0x7fff"}, {"port_guid": "0x506b4b0300000001", "pkey": "0x7fff"}),
        ({"tokens_seen": 3, "password": ""}, {"tokens_seen": 3, "password": ""}),
        ("Authorization: Bearer abcdefghijkl", f"Authorization: Bearer {REDACTED}"),
        ("mount -o username=a,password=geheim /x", f"mount -o username=a,password={REDACTED} /x"),
    ],
)
def test_redact(data: typing.Any, expected: typing.Any) -> None:
    assert redact(data) == expected


def test_private_keys_and_tokens_in_text() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
    token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
    text = redact_text(f"before {key} between {token} after; cut off: -----BEGIN PRIVATE KEY-----\nMIIE")
    assert text == f"before {REDACTED} between {REDACTED} after; cut off: {REDACTED}"


def test_no_secret_reaches_the_file(tmp_path: pathlib.Path) -> None:
    record = make_record(error="token: geheim-geheim", intent={"kubeconfig": "apiVersion: v1"})
    text = pathlib.Path(write_record(str(tmp_path), record)).read_text(encoding="utf-8")
    assert "geheim" not in text and "apiVersion" not in text
    head, *judged = map(json.loads, text.splitlines())
    assert head.pop("findings") == 2 and load(Record, {**head, "judged": judged}).judged == record.judged


@hypothesis.given(some.text(), some.text(max_size=20))
def test_redaction_is_stable_and_keeps_harmless_text(text: str, word: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    harmless = "".join(letter for letter in word if letter.isdigit())
    assert redact({"measured": harmless}) == {"measured": harmless}
