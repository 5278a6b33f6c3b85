# SPDX-License-Identifier: GPL-3.0-or-later

"""A run judged again, without Ansible: what stays, what a waiver turns, and what nobody may judge."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app import again
from ansible_collections.linerate.rdma.plugins.module_utils._check import frame, rejudge
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record, describe_record
from ansible_collections.linerate.rdma.plugins.module_utils._store import records
from ansible_collections.linerate.rdma.plugins.module_utils._store.fact_file import format_now
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records, write_record

WAIVER = {"check": "fabric.one_master", "reason": "a fabric under test"}
FAILS = {
    "findings": [
        {"check": "fabric.one_master", "subject": "compute", "status": "fail", "why": "two", "remedy": "stop one"}
    ]
}
FINE = {"findings": [{"check": "fabric.one_master", "subject": "compute", "status": "pass"}]}
STAGES = ("validate", "discover", "fabric", "network", "host")


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts of the stages that the tests put into the table."""

    findings: tuple[Finding, ...] = ()


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages whose checks return what their facts say."""

    def check(_intent: Intent, facts: Facts) -> tuple[Finding, ...]:
        return facts.findings

    for name in STAGES[1:]:
        monkeypatch.setitem(TABLE, name, (Facts, check))


def start_of(fabrics: typing.Any, **changes: typing.Any) -> RunStart:
    return dataclasses.replace(
        RunStart(
            "run-1", "2026-01-02T03:04:05+00:00", nodes=("worker-1",), variables=("rdma_fabrics",), fabrics=fabrics
        ),
        **changes,
    )


Told = dict[str, typing.Any]


def evidence(told: Told) -> rejudge.Evidence:
    def facts(stage: str) -> tuple[typing.Any, tuple[FactCount, ...]]:
        if stage == "validate":
            return {"nodes": ["worker-1"]}, ()
        return told.get(stage, FINE), (FactCount("hcas", 1, 0),)

    return facts


def lived(
    start: RunStart, told: Told, wishes: frame.RawIntent, broken: str = "", changes: typing.Sequence[str] = ()
) -> dict[str, Record]:
    """The records that a run leaves, by the functions that a run calls."""
    records: dict[str, Record] = {}
    for stage in STAGES:
        context = frame.StageContext(
            stage, start.run, "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:06+00:00", start.check_mode, dict(records)
        )
        record = frame.may_start(context, wishes, validate.Facts(start.nodes, start.variables))
        if record is None and stage == broken:
            record = frame.judge_error(context, wishes, "Read the API: refused")
        facts, counts = evidence(told)(stage)
        records[stage] = record or frame.judge_stage(
            context, wishes, facts, changes if stage == "network" else (), counts
        )
    return records


@pytest.mark.parametrize("told", [{}, {"fabric": FAILS}, {"fabric": {"findings": []}}, {"host": FAILS}])
@pytest.mark.parametrize("waivers", [None, [WAIVER]])
@pytest.mark.parametrize("broken", ["", "discover", "network"])
@pytest.mark.parametrize("check_mode", [False, True])
def test_the_same_wishes_give_the_same_records(
    fabrics: typing.Any, told: Told, waivers: typing.Any, broken: str, check_mode: bool
) -> None:
    start, wishes = start_of(fabrics(), check_mode=check_mode), frame.RawIntent(fabrics(), waivers)
    records = lived(start, told, wishes, broken, ["policy storage was created"])
    assert rejudge.judge_again(start, records, wishes, evidence(told)) == records


def test_a_wrong_intent_gives_the_same_records(fabrics: typing.Any) -> None:
    for wrong in (fabrics(resource_name="mlx-compute"), fabrics(virtual_functions="8"), "compute"):
        start, wishes = start_of(wrong), frame.RawIntent(wrong)
        records = lived(start, {}, wishes)
        assert rejudge.judge_again(start, records, wishes, evidence({})) == records


def test_a_waiver_opens_a_gate_and_what_was_not_run_says_so(fabrics: typing.Any) -> None:
    start = start_of(fabrics())
    records = lived(start, {"fabric": FAILS}, frame.RawIntent(fabrics()))
    assert (records["fabric"].gate, records["network"].closed_by, records["host"].closed_by) == (
        "closed",
        "fabric",
        "fabric",
    )
    judged = rejudge.judge_again(
        start,
        records,
        frame.RawIntent(fabrics(), [WAIVER, {"check": "network.*", "reason": "I want green"}]),
        evidence({"fabric": FAILS}),
    )
    assert judged["fabric"].gate == "open"
    (item,) = judged["network"].judged
    assert (item.finding.check, item.finding.status, item.waiver, judged["network"].closed_by) == (
        "network.run",
        "skipped",
        None,
        None,
    )
    assert "findings of stage fabric prevented this stage from starting" in item.finding.why
    assert judged["host"].closed_by == "network"


def test_without_its_waiver_a_gate_closes_and_what_was_seen_behind_it_is_still_judged(fabrics: typing.Any) -> None:
    start = start_of(fabrics())
    records = lived(start, {"fabric": FAILS}, frame.RawIntent(fabrics(), [WAIVER]))
    judged = rejudge.judge_again(start, records, frame.RawIntent(fabrics()), evidence({"fabric": FAILS}))
    assert [judged[stage].gate for stage in STAGES] == ["open", "open", "closed", "open", "open"]


def test_a_wrong_intent_is_refused_before_a_check_gets_it(fabrics: typing.Any) -> None:
    start = start_of(fabrics())
    records = lived(start, {}, frame.RawIntent(fabrics()))
    judged = rejudge.judge_again(start, records, frame.RawIntent(fabrics(resource_name="mlx-compute")), evidence({}))
    assert [judged[stage].closed_by for stage in STAGES] == [None, *["validate"] * 4]
    del records["validate"]
    judged = rejudge.judge_again(start, records, frame.RawIntent(fabrics(resource_name="mlx-compute")), evidence({}))
    assert judged["discover"].judged[0].finding.check.startswith("validate.")


def test_what_is_missing_stays_missing_and_another_run_is_none(fabrics: typing.Any) -> None:
    start = start_of(fabrics())
    records = lived(start, {}, frame.RawIntent(fabrics()))
    del records["discover"]
    records["network"] = dataclasses.replace(records["network"], run="run-0")
    assert set(rejudge.judge_again(start, records, frame.RawIntent(fabrics()), evidence({}))) == {
        "validate",
        "fabric",
        "host",
    }


def test_facts_that_are_damaged_or_gone_are_an_error(fabrics: typing.Any) -> None:
    start = start_of(fabrics())
    records = lived(start, {}, frame.RawIntent(fabrics()))

    def torn(stage: str) -> typing.Any:
        if stage == "fabric":
            raise RdmaError("facts/hcas/worker-1.json can't be read")
        return evidence({})(stage)[0], (FactCount("hcas", 0, 1),) if stage == "network" else (FactCount("hcas", 1, 0),)

    judged = rejudge.judge_again(start, records, frame.RawIntent(fabrics()), torn)
    assert "worker-1.json can't be read" in judged["fabric"].judged[0].finding.measured
    assert "hcas of the cluster no longer exists in the folder" in judged["network"].judged[0].finding.measured
    assert [judged[stage].gate for stage in STAGES] == ["open", "open", "closed", "closed", "open"]


@pytest.mark.parametrize(
    ("before", "now", "fewer"),
    [
        # BIOS facts and the list of the BMCs that were asked are gone, or one of them can't be read
        ((FactCount("bios", 2, 0),), (), True),
        ((FactCount("bios", 2, 0),), (FactCount("bios", 1, 0),), True),
        ((FactCount("bios", 2, 0),), (FactCount("bios", 1, 1),), True),
        ((FactCount("bios", 0, 2),), (), True),
        ((FactCount("firmware", 2, 0),), (FactCount("firmware", 0, 2),), True),
        ((FactCount("hcas_before_reset", 1, 0),), (), True),
        ((FactCount("bios", 1, 1),), (FactCount("bios", 2, 0),), False),
        ((FactCount("bios", 1, 1),), (FactCount("bios", 1, 1), FactCount("firmware", 2, 0)), False),
        # a kind that another version of the collection judged by
        ((FactCount("of_old", 2, 0),), (), False),
    ],
)
def test_fewer_facts_than_the_run_was_judged_by_are_never_better(
    fabrics: typing.Any, monkeypatch: pytest.MonkeyPatch, before: typing.Any, now: typing.Any, fewer: bool
) -> None:
    monkeypatch.setitem(TABLE, "platform", TABLE["network"])
    start, wishes = start_of(fabrics()), frame.RawIntent(fabrics())
    context = frame.StageContext("platform", start.run, start.started, start.started, False, {})
    red = frame.judge_stage(context, wishes, FAILS, (), before)
    record = rejudge.judge_again(start, {"platform": red}, wishes, lambda stage: (FINE, now))["platform"]
    assert (record.gate, record.error is not None) == (("closed", True) if fewer else ("open", False))
    if fewer:
        finding = record.judged[0].finding
        assert re.search(rf"\bfacts/{before[0].kind} has [0-9]+ readable and [0-9]+ unreadable", finding.measured)
        assert "linerate.rdma.judge -e rdma_report_dir=" in finding.remedy and "A task of" not in finding.why
        # what closes the gate by itself says more
        kept = rejudge.judge_again(start, {"platform": red}, wishes, lambda stage: (FAILS, now))["platform"]
        assert kept.error is None and kept.judged[0].finding.check == "fabric.one_master"


def test_a_folder_is_judged_into_one_of_its_own(fabrics: typing.Any, tmp_path: pathlib.Path) -> None:
    start = start_of(fabrics(), started=format_now())
    FactFolder(str(tmp_path), start.run).begin(start)
    context = frame.StageContext("validate", start.run, format_now(), format_now(), False, {})
    judged = frame.judge_validate(context, frame.RawIntent(fabrics()), validate.Facts(("worker-1",)))
    write_record(str(tmp_path / "stages"), judged)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    answer = again.rejudge_run(str(tmp_path), "", {}, "2.19.4")
    assert (answer["verdict"], answer["success"], answer["report_dir"]) == (
        "NOT GREEN",
        False,
        str(tmp_path / "judged"),
    )
    assert all(path.read_bytes() == text for path, text in before.items()), "the evidence is not touched"
    assert set(read_records(str(tmp_path / "judged" / "stages"))[0]) == {"validate"}
    (told,) = answer["stages"]
    assert (told["stage"], told["gate"], told["lines"]) == ("validate", "open", describe_record(judged))
    (tmp_path / "stages" / "validate.jsonl").write_text("{}\n", encoding="utf-8")
    answer = again.rejudge_run(str(tmp_path), "", {}, "2.19.4")
    assert "the record could not be read" in answer["line"] and read_records(str(tmp_path / "judged" / "stages")) == (
        {},
        {},
    )
    with pytest.raises(FileError, match="the folder of the run itself"):
        again.rejudge_run(str(tmp_path), str(tmp_path), {}, "2.19.4")
    other = FactFolder(str(tmp_path / "other"), "run-2")
    other.begin(start_of(fabrics(), run="run-2", started=format_now()))
    with pytest.raises(FileError, match="is the folder of a different run"):
        again.rejudge_run(str(tmp_path), str(tmp_path / "other"), {}, "2.19.4")
    assert not (tmp_path / "other" / "stages").exists()
    with pytest.raises(
        FileError, match=r"contains no run: it has no run\.json\. Set rdma_report_dir to the folder of a run"
    ):
        again.rejudge_run(str(tmp_path / "nowhere"), "", {}, "2.19.4")


def test_a_record_that_was_cut_is_the_same_where_it_is_judged_again(
    fabrics: typing.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = start_of(fabrics(), started=format_now())
    FactFolder(str(tmp_path), start.run).begin(start)
    context = frame.StageContext("validate", start.run, format_now(), format_now(), False, {})
    judged = frame.judge_validate(context, frame.RawIntent(fabrics()), validate.Facts(("worker-1",)))
    judged = dataclasses.replace(judged, judged=judged.judged * 100)
    monkeypatch.setattr(rejudge, "judge_stage", lambda *_: judged)
    for name, most in (("ALL", 32), ("A_NODE", 64)):
        monkeypatch.setattr(records, f"_FINDINGS_OF_{name}", most)
    write_record(str(tmp_path / "stages"), judged)
    answer = again.rejudge_run(str(tmp_path), "", {}, "2.19.4")
    found = read_records(str(tmp_path / "judged" / "stages"), 1)[0]["validate"].judged
    assert (answer["lines"], answer["same"]) == ([], True) and len(found) == 48, "half of 32 + 64"


def alone(start: RunStart, fabrics: typing.Any, **changes: typing.Any) -> Record:
    """Stage discover that was run by itself, judged again."""
    old = dataclasses.replace(
        Record("discover", start.run, format_now(), format_now(), False, "open", ()), **{"intent": {}, **changes}
    )
    return rejudge.judge_again(start, {"discover": old}, frame.RawIntent(fabrics), evidence({"discover": FINE}))[
        "discover"
    ]


def test_a_stage_that_ran_alone_is_judged_by_itself_and_not_by_the_intent(fabrics: typing.Any) -> None:
    found = alone(start_of(fabrics()), fabrics())
    assert [(item.finding.check, item.finding.status) for item in found.judged] == [("fabric.one_master", "pass")]


def test_a_stage_that_ran_alone_is_refused_for_what_its_run_began_with(fabrics: typing.Any) -> None:
    for start in (start_of(fabrics(), nodes=()), start_of(fabrics(), variables=("rdma_waiver",))):
        for changes in ({}, {"intent": None}):
            found = alone(start, fabrics(), **changes)
            assert found.gate == "closed"
            assert {item.finding.check.partition(".")[0] for item in found.judged} == {"validate"}


def test_a_stage_that_was_not_run_alone_says_so(fabrics: typing.Any) -> None:
    found = alone(start_of(fabrics()), fabrics(), intent=None)
    assert [(item.finding.check, item.finding.subject, item.finding.status) for item in found.judged] == [
        ("discover.run", "stage discover", "skipped")
    ]


# The frame itself


def context(stage: str, *before: Record, check_mode: bool = False) -> frame.StageContext:
    return frame.StageContext(
        stage, "run-1", format_now(), format_now(), check_mode, {item.stage: item for item in before}
    )


def record(stage: str, gate: typing.Any = "open", **changes: typing.Any) -> Record:
    return dataclasses.replace(Record(stage, "run-1", format_now(), format_now(), False, gate, ()), **changes)


def test_a_stage_waits_for_what_earlier_stages_would_make_and_for_no_later_ones() -> None:
    fabric, network, host = (record(stage, changes=("made something",)) for stage in ("fabric", "network", "host"))
    assert context("network", fabric, check_mode=True).waits_for() == {"fabric"}
    assert not context("network", network, host, check_mode=True).waits_for()
    assert not context("network", fabric).waits_for()


def test_a_stage_is_kept_by_an_earlier_gate_and_not_by_its_own(fabrics: typing.Any) -> None:
    ground, wishes = validate.Facts(("worker-1",)), frame.RawIntent(fabrics())
    kept = frame.may_start(context("network", record("fabric", "closed")), wishes, ground)
    assert kept is not None and kept.closed_by == "fabric"
    for stage in ("network", "host"):
        assert frame.may_start(context("network", record(stage, "closed")), wishes, ground) is None


def test_an_intent_that_was_judged_in_this_run_is_not_judged_again() -> None:
    assert frame.may_start(context("network", record("validate")), frame.RawIntent("no list"), validate.Facts()) is None
    refused = frame.may_start(context("network"), frame.RawIntent("no list"), validate.Facts())
    assert refused is not None and refused.gate == "closed"


def test_an_error_is_of_its_stage_and_keeps_the_waivers(fabrics: typing.Any) -> None:
    found = frame.judge_error(context("host"), frame.RawIntent(fabrics(), [WAIVER]), "it broke")
    assert [(item.finding.check, item.finding.subject, item.finding.status, item.waiver) for item in found.judged] == [
        ("host.error", "stage host", "fail", None)
    ]
    assert (found.gate, found.error, [waiver.check for waiver in found.waivers]) == (
        "closed",
        "it broke",
        [WAIVER["check"]],
    )


def test_records_keep_the_waivers_and_the_cluster_that_they_were_judged_by(fabrics: typing.Any) -> None:
    wishes = frame.RawIntent(fabrics(), [WAIVER], {"wait_seconds": 77})
    assert wishes.intent().cluster.wait_seconds == 77
    assert [
        waiver.check
        for waiver in frame.judge_validate(context("validate"), wishes, validate.Facts(("worker-1",))).waivers
    ] == [WAIVER["check"]]
    found = frame.judge_stage(context("fabric"), wishes, FAILS)
    assert (found.gate, [waiver.check for waiver in found.waivers]) == ("open", [WAIVER["check"]])
