# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that goes on at a stage: what is kept, what is refused, and that nothing of what is run again is left."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app import frame
from ansible_collections.linerate.rdma.plugins.module_utils._check import resume, sources
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.version import COLLECTION_VERSION
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import Fact, Resume, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    STAGES,
    Finding,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._store.fact_file import format_now
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records, write_record

WISHES: dict[str, typing.Any] = {
    "fabrics": [{"name": "compute", "virtual_functions": 8}],
    "waivers": None,
    "cluster": {"operator_namespace": "sriov"},
}
START = RunStart(
    "run-1",
    "2026-01-02T03:00:00+00:00",
    nodes=("worker-1", "worker-2"),
    versions={resume.COLLECTION: COLLECTION_VERSION},
    **WISHES,
)
SAME = resume.Invocation(COLLECTION_VERSION)


def record(stage: str, **changes: typing.Any) -> Record:
    judged = judge([build_pass(f"{stage}.fine", "all")]).judged
    return dataclasses.replace(
        Record(stage, "run-1", "2026-01-02T03:04:05+00:00", "2026-01-02T03:05:05+00:00", False, "open", judged),
        **changes,
    )


def records(*stages: str, **changes: typing.Any) -> dict[str, Record]:
    return {stage: record(stage, **changes.get(stage, {})) for stage in stages or STAGES}


def test_a_run_may_go_on() -> None:
    resume.check_stage("network", "validate", False)
    resume.check_run(START, records(), "network", {**WISHES, "waivers": []}, ("worker-2", "worker-1"), SAME)
    resume.check_age(records(), "network", 3600, "2026-01-02T04:04:05+00:00")
    resume.check_age(
        records(discover={"started": "2026-01-02T05:00:00+00:00"}), "discover", 1, "2026-01-02T04:04:05+00:00"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("netwrok", "validate", False),
            "rdma_from is 'netwrok', which is not a stage; expected one of: validate, .*did you mean 'network'",
        ),
        (("network", "host", False), "first stage of this invocation is host.*rdma_from=host"),
        (("network", "validate", True), "rdma_from and --check"),
    ],
)
def test_where_no_run_goes_on(arguments: typing.Any, said: str) -> None:
    with pytest.raises(resume.ResumeError, match=said):
        resume.check_stage(*arguments)


@pytest.mark.parametrize(
    ("start", "left", "wishes", "nodes", "said"),
    [
        (
            {},
            records("validate", "discover"),
            {},
            START.nodes,
            "run run-1 has no record of stage fabric, which comes before network: the folder has no readable record",
        ),
        (
            {},
            records(fabric={"run": "run-0"}),
            {},
            START.nodes,
            "no record of stage fabric.*the record in the folder belongs to run run-0",
        ),
        (
            {},
            records(fabric={"gate": "closed"}),
            {},
            START.nodes,
            "gate of stage fabric, which comes before network, is closed.*rdma_from=fabric",
        ),
        ({}, records(fabric={"check_mode": True}), {}, START.nodes, r"stage fabric.*is open \(check mode\)"),
        ({"check_mode": True}, records(), {}, START.nodes, "run run-1 was in check mode"),
        (
            {},
            records(),
            {"waivers": [{"check": "*", "reason": "so"}]},
            START.nodes,
            "rdma_waivers differs from the start of run run-1",
        ),
        ({}, records(), {"fabrics": [], "cluster": None}, START.nodes, "rdma_fabrics and rdma_cluster differ from"),
        ({}, records(), {}, ("worker-1",), "the group rdma_nodes differs"),
        (
            {"versions": {"linerate.rdma": "0.1.0"}},
            records(),
            {},
            START.nodes,
            "started with linerate.rdma 0.1.0.*rules",
        ),
        ({"versions": {}}, records(), {}, START.nodes, "of an unknown version"),
        ({"strict_images": True}, records(), {}, START.nodes, "rdma_strict_images differs"),
        ({"images": {"rdma_observers_image": "x"}}, records(), {}, START.nodes, "rdma_observers_image differs"),
    ],
)
def test_what_is_in_the_way(
    start: typing.Any, left: typing.Any, wishes: typing.Any, nodes: typing.Any, said: str
) -> None:
    with pytest.raises(resume.ResumeError, match=said):
        resume.check_run(dataclasses.replace(START, **start), left, "network", {**WISHES, **wishes}, nodes, SAME)


@pytest.mark.parametrize("moment", ["2026-01-02T04:04:06+00:00", "2026-01-02T03:00:00+00:00"])
def test_what_is_too_old_or_of_the_future(moment: str) -> None:
    with pytest.raises(
        resume.ResumeError,
        match=r"the age of the data of stage discover is .* s .*0 to 3600 s \(rdma_facts_max_age\)",
    ):
        resume.check_age(records(), "network", 3600, moment)
    with pytest.raises(
        resume.ResumeError, match=r"the data of stage fabric has the time 'soon', which is not a valid time"
    ):
        resume.check_age(records(fabric={"started": "soon"}), "network", 3600, "2026-01-02T03:05:00+00:00")


def test_what_is_run_again_leaves_nothing(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(START)
    for kind in ("hcas", "hcas_after_network"):
        folder.write(kind, "worker-1", {"hcas": []})
    for kind in ("operators", "vantage_points", "sync", "bandwidth"):
        folder.write(kind, value={"operators": []})
    moment = datetime.datetime.now(datetime.timezone.utc).isoformat()
    for item in records().values():
        write_record(str(tmp_path / "stages"), dataclasses.replace(item, started=moment))
    options = {
        **WISHES,
        "stage": "validate",
        "resume_from": "network",
        "facts_max_age": 60,
        "report_dir": str(tmp_path),
    }
    again = frame.resume_run(options, START.nodes, False)
    assert set(read_records(str(tmp_path / "stages"))[0]) == set(resume.list_stages_before("network"))
    assert [kind for kind in ("operators", "vantage_points", "sync", "bandwidth") if again.has(kind)] == [
        "operators",
        "vantage_points",
    ]
    assert not again.has("hcas_after_network", "worker-1")
    # stage network compares the ranges of the fabrics with the networks of the hosts
    assert not again.has("hcas", "worker-1")
    assert (again.run, [item.stage for item in again.start().resumes]) == ("run-1", ["network"])
    kept = frame.begin_stage(options, again, False)
    assert (kept["go"], kept["gate"], kept["look"]) == (
        False,
        "open",
        [],
    ) and "validate: kept from 2026-01-02T03:05:05" in kept["lines"][0]
    assert [
        item.stage
        for item in frame.resume_run({**options, "resume_from": "operators"}, START.nodes, False).start().resumes
    ] == ["network", "operators"]


@pytest.mark.parametrize(
    ("tags", "passed"),
    [(["all"], list(STAGES[3:])), (["fabric", "platform", "report"], ["platform"]), (["fabric", "report"], [])],
)
def test_the_stages_behind_a_closed_gate_have_a_record_if_the_tags_run_them(
    tmp_path: pathlib.Path, fabrics: typing.Any, tags: list[str], passed: list[str]
) -> None:
    folder, options = (
        FactFolder(str(tmp_path), "run-1"),
        {**WISHES, "fabrics": fabrics(), "stage": "fabric", "resume_from": "", "report_dir": str(tmp_path)},
    )
    folder.begin(START)
    red = judge([Finding("fabric.one_master", "compute", "fail", why="so", remedy="do")]).judged
    for item in records(*resume.list_stages_before("reachability"), fabric={"gate": "closed", "judged": red}).values():
        write_record(str(tmp_path / "stages"), item)
    answer = frame.pass_over(options, folder, False, tags, [])
    assert answer["stages"] == passed
    numbers = {11: "11 stages", 1: "1 stage", 0: ""}[len(passed)]
    assert answer["lines"] == ([f"{numbers} not run: the run stopped at stage fabric"] if passed else [])
    written = read_records(str(tmp_path / "stages"))[0]
    assert {name: (written[name].closed_by, written[name].gate) for name in passed} == dict.fromkeys(
        passed, ("fabric", "closed")
    )
    assert set(written) == {*resume.list_stages_before("reachability"), *passed}


def test_no_run_and_a_damaged_record_are_said(tmp_path: pathlib.Path) -> None:
    options = {**WISHES, "stage": "validate", "resume_from": "fabric", "facts_max_age": 60, "report_dir": str(tmp_path)}
    with pytest.raises(resume.ResumeError, match=r"contains no run that could be resumed: it has no run\.json"):
        frame.resume_run(options, START.nodes, False)
    FactFolder(str(tmp_path), "run-1").begin(START)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "discover.jsonl").write_text("torn", encoding="utf-8")
    with pytest.raises(resume.ResumeError, match=r"discover\.jsonl could not be read"):
        frame.resume_run(options, START.nodes, False)


def test_the_report_says_what_was_kept() -> None:
    report = build_report(records(), {}, "run-1", format_now(), resumes=[Resume("fabric", "2026-01-02T04:00:00+00:00")])
    assert report.verdict == "GREEN"
    assert [stage.name for stage in report.stages if "the run was resumed at stage fabric" in stage.note] == [
        "validate",
        "discover",
    ]


def test_a_run_may_go_on_at_the_stage_that_begins() -> None:
    resume.check_stage("network", "network", False)
    with pytest.raises(resume.ResumeError):
        resume.check_stage("network", "virtual_functions", False)


@pytest.mark.parametrize(("seconds", "good"), [(-61, False), (-60, True), (0, True), (100, True), (101, False)])
def test_what_was_seen_may_be_as_old_as_the_limit_and_a_minute_of_the_future(seconds: int, good: bool) -> None:
    began = datetime.datetime.fromisoformat("2026-01-02T03:04:05+00:00")
    moment = (began + datetime.timedelta(seconds=seconds)).isoformat()
    if good:
        resume.check_age(records(), "network", 100, moment)
    else:
        with pytest.raises(resume.ResumeError):
            resume.check_age(records(), "network", 100, moment)


def test_what_earlier_stages_changed_is_kept() -> None:
    kept = resume.list_kept_kinds("network")
    assert "operator_namespace" in kept and not {"disruption", "applied"} & kept
    assert {"disruption", "applied", "roll_prepared"} <= resume.list_kept_kinds("virtual_functions")


def test_facts_of_several_kinds_are_kept_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sources.SOURCES, "discover", {"joined": sources.Joined(("one", "two"), "applied")})
    assert {"one", "two"} <= resume.list_kept_kinds("fabric")


@pytest.mark.parametrize("asked", [True, False])
def test_who_looks_again_has_observers_though_all_was_seen(
    tmp_path: pathlib.Path, asked: bool, fabrics: typing.Any
) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    wishes = {"fabrics": fabrics(), "waivers": None, "cluster": {"tuning": {"set": asked}}}
    folder.begin(dataclasses.replace(START, by_pods=START.nodes, **wishes))
    for node in START.nodes:
        for kind in ("hcas", "tuning"):
            folder.write(kind, node, {})
    for item in records(*resume.list_stages_before("tuning")).values():
        write_record(str(tmp_path / "stages"), item)
    begun = frame.begin_stage(
        {**wishes, "stage": "tuning", "resume_from": "", "report_dir": str(tmp_path)}, folder, False
    )
    assert (begun["go"], begun["look"], begun["observers"]) == (True, [], asked), begun["lines"]


@pytest.mark.parametrize("stage", ["validate", "discover"])
def test_the_first_stage_that_looks_starts_from_nothing(tmp_path: pathlib.Path, stage: str) -> None:
    """Whatever the age of the folder is: no fact of a node or of the cluster is left for it."""
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(START)
    kinds = {"hcas", "clock", "platform", "firmware", "tuning", "subnets", "topologies", "bios", "neighbours"}
    for kind in kinds:
        folder.write(kind, "worker-1", {})
    for kind in ("vantage_points", "bmcs", "operators"):
        folder.write(kind, value={})
    for item in records().values():
        write_record(str(tmp_path / "stages"), dataclasses.replace(item, started="2025-02-02T03:04:05+00:00"))
    options = {**WISHES, "stage": "validate", "resume_from": stage, "facts_max_age": 60, "report_dir": str(tmp_path)}
    again = frame.resume_run(options, START.nodes, False)
    assert not [kind for kind in kinds if again.has(kind, "worker-1")]
    assert not [kind for kind in ("vantage_points", "bmcs", "operators") if again.has(kind)]


def test_what_a_stage_is_judged_by_is_looked_at_again_where_the_run_goes_on() -> None:
    """A cable that was mended is seen when the run goes on at stage fabric, although stage discover was judged by the
    HCAs as well."""
    assert "clock" in resume.list_kept_kinds("fabric") and not {
        "hcas",
        "subnets",
        "topologies",
        "vantage_points",
        "platform",
    } & resume.list_kept_kinds("fabric")
    assert {"topologies", "vantage_points"} <= resume.list_kept_kinds("platform") and not {
        "hcas",
        "subnets",
        "platform",
    } & resume.list_kept_kinds("platform")
    assert {"platform", "hcas_after_network"} <= resume.list_kept_kinds("bandwidth")
    assert not {"hcas", "subnets", "topologies", "vantage_points"} & resume.list_kept_kinds("bandwidth")
    assert resume.list_kept_kinds("validate") == set() and "controller" in resume.list_kept_kinds("discover")


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "validate"])
def test_what_is_looked_at_again_is_asked_of_the_nodes(tmp_path: pathlib.Path, stage: str, fabrics: typing.Any) -> None:
    wishes = {"fabrics": fabrics(), "waivers": None, "cluster": None}
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(dataclasses.replace(START, **wishes))
    kinds = {source.kind for source in sources.SHARED}
    for kind in kinds:
        for node in START.nodes:
            folder.write(kind, node, {})
    folder.write("vantage_points", value=list(START.nodes))
    for item in records().values():
        write_record(str(tmp_path / "stages"), dataclasses.replace(item, started=format_now()))
    options = {**wishes, "stage": stage, "resume_from": stage, "facts_max_age": 60, "report_dir": str(tmp_path)}
    again = frame.resume_run(options, START.nodes, False)
    begun = frame.begin_stage(options, again, False)
    judged_by = {source.kind for source in sources.SHARED if source in sources.SOURCES[stage].values()}
    assert judged_by <= set(begun["look"]) and (begun["go"] or not judged_by), begun["lines"]


def test_the_age_is_that_of_the_facts_whatever_the_records_say(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(START)
    for item in records().values():
        write_record(str(tmp_path / "stages"), dataclasses.replace(item, started=format_now()))
    folder.write("hcas", "worker-2", {"hcas": []})
    path = pathlib.Path(folder.path("hcas", "worker-2"))
    text = path.read_text(encoding="utf-8")
    time = text.partition('"time":"')[2].partition('"')[0]
    path.write_text(text.replace(time, "2025-02-02T03:04:05+00:00"), encoding="utf-8")
    options = {**WISHES, "stage": "validate", "resume_from": "fabric", "facts_max_age": 60, "report_dir": str(tmp_path)}
    with pytest.raises(resume.ResumeError, match=r"the age of the fact hcas of worker-2 is \d+ s .*expected 0 to 60 s"):
        frame.resume_run(options, START.nodes, False)
    assert folder.has("hcas", "worker-2") and len(read_records(str(tmp_path / "stages"))[0]) == len(STAGES), (
        "nothing was touched"
    )
    # it is looked at again anyway
    assert frame.resume_run({**options, "resume_from": "discover"}, START.nodes, False).run == "run-1"


@pytest.mark.parametrize(
    "then, now",
    [
        ("KUBECONFIG=/a, context a, API server https://a:6443", "KUBECONFIG=/b, context b, API server https://b:6443"),
        ("KUBECONFIG=/a, context a, API server https://a:6443", ""),
        ("", "rdma_kubeconfig=/a, API server https://a:6443"),
    ],
)
def test_a_run_does_not_go_on_at_another_cluster(then: str, now: str) -> None:
    started = dataclasses.replace(START, access=then)
    with pytest.raises(resume.ResumeError, match="this invocation uses") as refused:
        resume.check_run(
            started, records(), "network", WISHES, START.nodes, resume.Invocation(COLLECTION_VERSION, access=now)
        )
    assert "rdma_kubeconfig" in refused.value.remedy


def test_a_run_goes_on_at_its_cluster_by_another_kubeconfig() -> None:
    started = dataclasses.replace(
        START, access="KUBECONFIG=/a, context a, API server https://a:6443 (from K8S_AUTH_HOST)"
    )
    now = "rdma_kubeconfig=/b, context b, API server https://a:6443"
    resume.check_run(
        started, records(), "network", WISHES, START.nodes, resume.Invocation(COLLECTION_VERSION, access=now)
    )


SERVER = "/root/.kube/config, context prod, API server https://127.0.0.1:6443"


def go_on(folder: pathlib.Path, then: typing.Any, now: str, access: str = SERVER) -> list[str]:
    """Resume a run at stage network with the same URL of the API server, and return the warnings.

    :param then: value of the fact of stage validate about the cluster; None without the fact
    :param now: uid of the cluster of this invocation
    """
    facts = FactFolder(str(folder), "run-1")
    facts.begin(dataclasses.replace(START, access=access))
    if then is not None:
        facts.write("access", value=then)
    for item in records().values():
        write_record(str(folder / "stages"), dataclasses.replace(item, started=format_now()))
    options = {**WISHES, "stage": "validate", "resume_from": "network", "facts_max_age": 60, "report_dir": str(folder)}
    said: list[str] = []
    frame.resume_run(options, START.nodes, False, access=access, cluster_uid=now, warn=said.append)
    return said


def test_a_run_does_not_go_on_in_another_cluster_with_the_same_url(tmp_path: pathlib.Path) -> None:
    words = "namespace kube-system had the uid 1b2c, and now it has the uid 3d4e. Run all stages, without rdma_from"
    with pytest.raises(resume.ResumeError, match=words):
        go_on(tmp_path, {"rights": {}, "cluster_uid": "1b2c"}, "3d4e")
    assert FactFolder(str(tmp_path), "run-1").start().resumes == ()
    assert go_on(tmp_path, {"rights": {}, "cluster_uid": "1b2c"}, "1b2c") == []
    # and again: the fact of stage validate is kept
    assert go_on(tmp_path, None, "1b2c") == []


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ({"cluster_uid": "1b2c"}, "", "could not be read"),
        ({"cluster_uid": ""}, "1b2c", "is not in the facts of the run"),
        ({"cluster_uid": 7}, "1b2c", "is not in the facts of the run"),
        (None, "1b2c", "is not in the facts of the run"),
    ],
)
def test_a_cluster_without_a_known_uid_is_compared_by_its_url_with_a_warning(
    tmp_path: pathlib.Path, then: typing.Any, now: str, said: str
) -> None:
    (warning,) = go_on(tmp_path, then, now)
    assert said in warning and "URL of its API server only" in warning and "without rdma_from" in warning
    assert go_on(tmp_path, then, now, access="") == []


OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
REBOOT = {"plan": {"nodes": [{"node": "worker-1", "action": "reboot"}]}}


def resume_after_boot(
    folder: pathlib.Path,
    boots: dict[str, str],
    stage: str = "virtual_functions",
    facts: typing.Iterable[tuple[str, str, typing.Any]] = (),
) -> None:
    """Resume a run at a stage, which read worker-1 in the boot ``OLD``, and then has these facts."""
    run = FactFolder(str(folder), "run-1")
    run.begin(START)
    for item in records().values():
        write_record(str(folder / "stages"), dataclasses.replace(item, started=format_now()))
    run.write("platform", "worker-1", value={"boot": OLD})
    run.write("hcas", "worker-1", value={"boot": OLD.upper()})
    run.write("hcas", "worker-2", value={"boot": None})
    for kind, node, value in facts:
        run.write(kind, node, value=value)
    options = {**WISHES, "stage": "validate", "resume_from": stage, "facts_max_age": 60, "report_dir": str(folder)}
    frame.resume_run(options, START.nodes, False, boots=boots)


@pytest.mark.parametrize("stage", ["tuning", "virtual_functions", "bandwidth"])
def test_facts_of_a_node_that_booted_since_are_not_kept(tmp_path: pathlib.Path, stage: str) -> None:
    with pytest.raises(resume.ResumeError, match=f"worker-1 booted since.*of boot {OLD}.*reports boot {NEW}") as raised:
        resume_after_boot(tmp_path, {"worker-1": NEW, "worker-2": NEW}, stage)
    assert raised.value.remedy == "Run all stages, without rdma_from"


@pytest.mark.parametrize(
    ("boots", "stage", "facts"),
    [
        ({"worker-1": OLD}, "network", ()),
        # a kubelet may report no boot, and the user may have no right to list nodes: the age decides
        ({}, "network", ()),
        # both are read again
        ({"worker-1": NEW}, "platform", ()),
        ({"worker-1": NEW}, "host", ()),
        # a later look proves the boot
        ({"worker-1": NEW}, "host", [("hcas_after_network", "worker-1", {"boot": NEW})]),
        # the run itself was to reboot it after that look
        ({"worker-1": NEW}, "network", [("disruption", "cluster", REBOOT)]),
        (
            {"worker-1": NEW},
            "network",
            [("node_roll", "cluster", {"outcomes": [{"node": "worker-1", "did": ["reset"]}]})],
        ),
    ],
)
def test_facts_of_the_present_boot_are_kept(
    tmp_path: pathlib.Path, boots: dict[str, str], stage: str, facts: list[tuple[str, str, typing.Any]]
) -> None:
    resume_after_boot(tmp_path, boots, stage, facts)
    assert FactFolder(str(tmp_path), "run-1").start().resumes[-1].stage == stage


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("disruption", {"plan": {"nodes": [{"node": "worker-1", "action": "drain"}, 7]}}),
        ("disruption", {"plan": {"nodes": [{"node": "worker-2", "action": "reboot"}]}}),
        ("disruption", []),
        ("node_roll", {"outcomes": [{"node": "worker-1", "did": ["cordoned"]}]}),
    ],
)
def test_what_does_not_reboot_a_node_excuses_no_boot(tmp_path: pathlib.Path, kind: str, value: typing.Any) -> None:
    with pytest.raises(resume.ResumeError, match="worker-1 booted since"):
        resume_after_boot(tmp_path, {"worker-1": NEW}, facts=[(kind, "cluster", value)])


def test_a_boot_after_the_reboot_of_the_run_counts() -> None:
    facts = [
        Fact("r", "2026-01-02T03:00:00+00:00", "cluster", "disruption", REBOOT),
        Fact("r", "2026-01-02T04:00:00+00:00", "worker-1", "hcas_after_network", {"boot": OLD}),
    ]
    with pytest.raises(resume.ResumeError, match="worker-1 booted since"):
        resume.check_boots(facts, {"worker-1": NEW})
