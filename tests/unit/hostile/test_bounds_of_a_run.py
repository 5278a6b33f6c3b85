# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run begins with may be a stranger's: how many nodes, variables and waivers it names is bounded, and more are
refused before anything is judged."""

from __future__ import annotations

import json
import pathlib
import shutil
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run, write_pages
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nccl_variables import KNOWN, OTHERS
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import (
    MOST_HINTS,
    MOST_KNOWN,
    Hints,
    LoadError,
    suggest_nearest,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import load_all
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import CHECKS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    MOST_PATTERN,
    MOST_WAIVERS,
    Finding,
    Waiver,
    judge,
    pattern_matches,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records
from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
FABRIC = {
    "name": "a",
    "profile": "sriov_infiniband",
    "select": {"hcas_per_node": 1},
    "network": {"name": "a", "namespace": "a"},
}
TIME = "2026-01-02T03:04:05+00:00"
#: seconds of processor time; without bounds it is minutes
LIMIT = 30
WAIVER = {"check": "platform.bios", "reason": "no BMC"}
BOUNDS = [
    ("nodes", 20_000, [f"n{number}" for number in range(20_001)]),
    ("by_pods", 20_000, [f"n{number}" for number in range(20_001)]),
    ("variables", 1000, [f"rdma_{number}" for number in range(1001)]),
    ("waivers", 1000, [WAIVER] * 1001),
    ("images", 1000, {f"rdma_{number}_image": "x" for number in range(1001)}),
    ("resumes", 1000, [{"stage": "fabric", "time": TIME}] * 1001),
    ("versions", 100, {str(number): "1" for number in range(101)}),
]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of a green run."""
    shutil.copytree(SCENARIO, tmp_path / "run")
    return tmp_path / "run"


def change(folder: pathlib.Path, **values: typing.Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


@pytest.mark.parametrize(("name", "most", "value"), BOUNDS, ids=[name for name, _most, _value in BOUNDS])
def test_more_than_a_run_may_begin_with_is_refused_by_name(
    folder: pathlib.Path, name: str, most: int, value: typing.Any
) -> None:
    change(folder, **{name: value})
    with pytest.raises(FileError, match=f"run.json: it names {most + 1} {name}; the limit is {most}") as refused:
        read_start(str(folder))
    assert refused.value.remedy == "Remove the file and run the stage again"
    change(folder, **{name: value[:-1] if isinstance(value, list) else dict(list(value.items())[:-1])})
    start = read_start(str(folder))
    assert start is not None and len(getattr(start, name)) == most


def test_nothing_of_it_is_judged(folder: pathlib.Path) -> None:
    change(
        folder, waivers=[{"check": "fabric.x*", "subject": f"*{number}*", "reason": "a b"} for number in range(30_000)]
    )
    with bounded(LIMIT), pytest.raises(FileError, match="it names 30000 waivers; the limit is 1000"):
        rejudge_run(str(folder), "", {}, "2.19.0")
    assert not (folder / "judged").exists()


def test_a_larger_file_is_refused_before_it_is_read(folder: pathlib.Path) -> None:
    change(folder, cluster={"x": "x" * (8 << 20)})
    with pytest.raises(FileError, match=r"run\.json could not be read: it has 83[0-9]+ bytes; the limit is 8388608"):
        read_start(str(folder))


def test_a_run_does_not_begin_with_more_than_can_be_read_again(tmp_path: pathlib.Path) -> None:
    run = FactFolder(str(tmp_path), "r")
    with pytest.raises(
        FileError, match=r"run\.json was not written: it names 20001 nodes; the limit is 20000"
    ) as refused:
        run.begin(RunStart("r", TIME, nodes=tuple(f"n{number}" for number in range(20_001))))
    assert refused.value.remedy == "Select fewer of them; nodes can be read in several runs, each with its own folder"
    with pytest.raises(FileError, match=r"was not written: it would have 83[0-9]+ bytes; the limit is 8388608"):
        run.begin(RunStart("r", TIME, cluster={"x": "x" * (8 << 20)}))
    assert list(tmp_path.iterdir()) == []
    run.begin(
        RunStart(
            "r",
            TIME,
            nodes=tuple(f"{number:063}" for number in range(20_000)),
            by_pods=tuple(f"{number:063}" for number in range(20_000)),
        )
    )
    assert len(run.start().nodes) == 20_000


def test_so_are_waivers_of_an_intent() -> None:
    with pytest.raises(IntentError, match=f"rdma_waivers: 1001 waivers; expected at most {MOST_WAIVERS}"):
        parse_intent([FABRIC], [WAIVER] * 1001)
    assert len(parse_intent([FABRIC], [WAIVER] * 1000).waivers) == 1000


def test_a_record_with_more_waivers_is_none(folder: pathlib.Path) -> None:
    path = folder / "stages" / "fabric.jsonl"
    head, *rest = path.read_text(encoding="utf-8").splitlines()
    path.write_text(
        "\n".join([json.dumps({**json.loads(head), "waivers": [WAIVER] * 1001}), *rest]) + "\n", encoding="utf-8"
    )
    records, unreadable = read_records(str(folder / "stages"))
    assert "fabric" not in records and "fabric.waivers: 1001 waivers; expected at most 1000" in unreadable["fabric"]
    write_pages(str(folder), "2.19.0")
    assert "1001 waivers" in (folder / "report.json").read_text(encoding="utf-8")


def test_waivers_of_other_checks_cost_nothing() -> None:
    findings = [
        Finding("bandwidth.floor", f"node-{number} -> node", "fail", "1", "2", "w", "r") for number in range(100_000)
    ]
    waivers = [Waiver(f"platform.x{number}*", "a b", f"*{number}*") for number in range(MOST_WAIVERS - 1)]
    covering = Waiver("bandwidth.*", "a b", "node-7*")
    with bounded(LIMIT):
        gate = judge(findings, [*waivers, covering])
    covered = [item.finding.subject for item in gate.judged if item.waiver == covering]
    assert len(covered) == 11_111 and not gate.open and "node-6 -> node" not in covered


def test_a_pattern_that_takes_long_to_read_covers_nothing_and_is_told() -> None:
    long = "[" * 300_000
    with bounded(LIMIT):
        findings = validate.check(
            parse_intent([FABRIC], [{"check": long, "reason": "a b"}, {**WAIVER, "subject": long}]),
            validate.Facts(("node-1",)),
        )
        assert not judge(
            [Finding("platform.bios", "[", "fail", "1", "2", "w", "r")], [Waiver("platform.bios", "a b", long)]
        ).open
    told = [item for item in findings if item.check == "validate.waivers"]
    assert [(item.subject, item.status) for item in told] == [
        ("rdma_waivers[0].check", "fail"),
        ("rdma_waivers[1].subject", "fail"),
    ]
    assert {(item.measured, item.expected, item.why, item.remedy) for item in told} == {
        (
            "300000 characters",
            f"at most {MOST_PATTERN} characters",
            "A pattern of this length matches no finding.",
            f"Shorten {path}: replace a part of it with *. Then run stage validate again.",
        )
        for path in ("rdma_waivers[0].check", "rdma_waivers[1].subject")
    }
    assert pattern_matches("x" * MOST_PATTERN, "x" * MOST_PATTERN) and not pattern_matches(
        "*" * (MOST_PATTERN + 1), "x"
    )


def test_the_nearest_check_is_looked_for_for_the_first_few_waivers() -> None:
    wrong = [{"check": "platfrom.bios", "reason": "no BMC"}] * 100
    findings = [
        item
        for item in validate.check(parse_intent([FABRIC], wrong), validate.Facts(("node-1",)))
        if item.check == "validate.waivers"
    ]
    assert ["did you mean 'platform.bios'?" in item.expected for item in findings] == [True] * MOST_HINTS + [False] * (
        100 - MOST_HINTS
    )
    assert all("ID of a check, such as platform.bios" in item.expected for item in findings)


def test_so_it_is_for_the_first_few_unknown_keys() -> None:
    found: tuple[LoadError, ...] = load_all(Record, {f"finishe{number}": 1 for number in range(100)})[1]
    unknown = [item for item in found if "finishe" in item.path]
    assert ["did you mean 'finished'?" in item.expected for item in unknown] == [True] * MOST_HINTS


def test_the_nearest_word_is_looked_for_where_that_takes_no_time() -> None:
    ours = {f"rdma_{number}" for number in range(MOST_KNOWN)}
    assert (
        suggest_nearest("rdma_399x", ours) == " (did you mean 'rdma_399'?)"
        and suggest_nearest("rdma_399x", ours | {"x"}) == ""
    )
    assert (
        suggest_nearest("x" * 65, ["x" * 64]) == ""
        and suggest_nearest("x" * 64, ["x" * 65, "x" * 63]) == f" (did you mean '{'x' * 63}'?)"
    )
    with bounded(LIMIT):
        assert suggest_nearest("ab" * 100_000, ["ba" * 100_000]) == ""
    hints = Hints()
    assert [bool(hints.nearest("fabrik", ["fabric"])) for _time in range(MOST_HINTS + 2)] == [True] * MOST_HINTS + [
        False
    ] * 2


def test_our_own_lists_are_short_enough_for_it() -> None:
    assert max(map(len, (KNOWN | OTHERS, CHECKS, validate.VARIABLES))) < MOST_KNOWN
