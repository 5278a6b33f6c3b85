# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import dataclasses
import datetime
import hashlib
import html
import html.parser
import json
import pathlib
import re
import typing
from xml.etree import ElementTree

import hypothesis
import hypothesis.strategies as some
import jsonschema
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    NodePlan,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import address_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    STAGES,
    Finding,
    Judged,
    Waiver,
    build_pass,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import FREE, Holder, Lease, LeaseHeld
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._report.content import finding_groups, listing
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import (
    Report,
    build_report,
    list_times,
    make_stats,
    verdict_line,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.approval import plan_text
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.brief import render_markdown
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.data import render_json
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.junit import render_junit
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.metrics import render_metrics
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._report.markup.style import STYLE
from ansible_collections.linerate.rdma.plugins.module_utils._report.markup.text import escape_plain
from ansible_collections.linerate.rdma.plugins.module_utils._store.fact_file import format_now
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import write_record
from ansible_collections.linerate.rdma.plugins.modules.report import write_report
from ansible_collections.linerate.rdma.tests.unit.limit import limited
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, records

RUN = "20260102T030405Z-aaaaaa"
OLD = "20260101T030405Z-bbbbbb"
NOW = "2026-01-02T03:10:00+00:00"
FAIL = Finding(
    "fabric.one_master",
    "compute",
    "fail",
    "2 masters",
    "1 master",
    "Two subnet managers claim the fabric.",
    "Stop one.",
)
UNKNOWN = Finding(
    "platform.bios", "worker-1", "unknown", "not read", "SR-IOV on", "The node has no BMC.", "Ask the BMC."
)
WARN = Finding("network.route", "storage", "warn", "default route", "none", "It steals traffic.", "Remove it.")
WAIVER = Waiver("platform.bios", "the lab has no BMC")
HCAS = (FactCount("hcas", 1, 0),)
HOSTILE = "<script>alert('x')</script>\"&\x00\x1b[31m\ud800 {{ 1 }} ]]>"


def record(stage: str, *findings: Finding, waivers: typing.Sequence[Waiver] = (), **rest: typing.Any) -> Record:
    gate = judge(findings or [build_pass(f"{stage}.fine", "worker-1", "1", "1")], waivers)
    values: dict[str, typing.Any] = {
        "stage": stage,
        "run": RUN,
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:04:25+00:00",
        "check_mode": False,
        "gate": "open" if gate.open else "closed",
        "judged": gate.judged,
        "waivers": tuple(waivers),
    }
    return Record(**{**values, **rest})


def all_open(*others: Record) -> dict[str, Record]:
    return {**{stage: record(stage) for stage in STAGES}, **{other.stage: other for other in others}}


def report(
    *others: Record,
    unreadable: typing.Optional[dict[str, str]] = None,
    without: typing.Sequence[str] = (),
    run: str = RUN,
) -> Report:
    records = {stage: item for stage, item in all_open(*others).items() if stage not in without}
    return build_report(records, unreadable or {}, run, NOW)


def test_green_needs_every_stage() -> None:
    whole = report()
    assert (whole.verdict, whole.success) == ("GREEN", True)
    assert (
        verdict_line(whole, "/x/report.html")
        == f"linerate.rdma: GREEN - {len(STAGES)} stages, {len(STAGES)} findings pass - report: /x/report.html"
    )


def test_green_names_waivers_and_warnings() -> None:
    waived = report(
        record("platform", UNKNOWN, waivers=[WAIVER]), record("network", WARN, build_pass("network.made", "storage"))
    )
    assert waived.summary == f"GREEN, 1 WAIVED - {len(STAGES)} stages, {len(STAGES) - 1} findings pass, 1 warn"
    assert (waived.verdict, waived.green, waived.success, waived.waived) == ("GREEN, 1 WAIVED", True, True, 1)


def test_green_is_the_word_of_a_run_that_waived_nothing_alone() -> None:
    unused = report(record("platform", waivers=[WAIVER]))
    assert (unused.verdict, unused.waived) == ("GREEN", 0)
    waived = report(record("platform", UNKNOWN, UNKNOWN, waivers=[WAIVER]))
    data = json.loads(render_json(waived))
    assert (data["verdict"], data["green"], data["waived"], data["success"]) == ("GREEN, 2 WAIVED", True, 2, True)
    closed = json.loads(render_json(report(record("fabric", FAIL), record("platform", UNKNOWN, waivers=[WAIVER]))))
    assert (closed["verdict"], closed["green"], closed["waived"]) == ("NOT GREEN", False, 1)
    suites = ElementTree.fromstring(render_junit(waived))
    said = {
        suite.get("name"): {item.get("name"): item.get("value") for item in suite.iter("property")} for suite in suites
    }
    assert (said["platform"]["waived"], said["fabric"]["waived"], said["fabric"]["verdict"]) == (
        "2",
        "0",
        "GREEN, 2 WAIVED",
    )
    tones = {
        made.verdict: re.search(r'<header class="(\w+)"', render_html(made))
        for made in (report(), waived, report(record("fabric", FAIL)))
    }
    assert {verdict: tone and tone.group(1) for verdict, tone in tones.items()} == {
        "GREEN": "good",
        "GREEN, 2 WAIVED": "waived",
        "NOT GREEN": "bad",
    }
    assert "<h1>GREEN, 2 WAIVED</h1>" in render_html(waived)


def test_the_head_says_what_was_looked_at_and_a_cause_comes_with_measured_and_expected() -> None:
    typo = Finding(
        "validate.intent",
        "rdma_fabrics[0].mut",
        "fail",
        "unknown key",
        "mtu (did you mean 'mtu'?)",
        "why",
        "correct it",
    )
    made = dataclasses.replace(
        report(record("validate", typo)),
        about={"Cluster": "kubeconfig k v1.34.4", "Nodes": "12", "Fabrics": "compute, storage"},
    )
    head = render_html(made).partition("<main")[0]
    for name, value in made.about.items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in head
    assert RUN in head and "Read on" not in head
    steps, _after = next_steps(made)
    assert "unknown key" in steps and "did you mean" in steps and steps.index("unknown key") < steps.index("correct it")


def test_a_green_head_leads_to_warnings_and_waivers() -> None:
    assert "Read on" not in render_html(report())
    warned = render_html(report(record("tuning", Finding("tuning.rows", "worker-1", "warn", why="x", remedy="y"))))
    assert '1 warnings: <a href="#tuning">1 in tuning</a>' in warned.partition("<main")[0]


def test_verdict_of_a_folder_without_records_says_how_to_get_them() -> None:
    assert report(without=STAGES).summary == (
        "NOT GREEN - no stage was run in this folder. Run linerate.rdma.site, or set rdma_report_dir to the folder of a"
        " run"
    )
    assert report(without=STAGES[1:]).summary.startswith("NOT GREEN - stages ")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_did_not_run_is_never_green(stage: str) -> None:
    assert report(without=[stage]).summary == f"NOT GREEN - stage {stage}: not run"
    assert not report(record(stage, run=OLD)).success
    assert not report(unreadable={stage: "x.json can't be read"}).success
    assert not report(record(stage, gate="closed", judged=())).success
    assert not report(record(stage, gate="pending")).success, (
        "a pending gate outside check mode is a mistake, not a pass"
    )


def test_nothing_at_all_is_not_green() -> None:
    empty = build_report({}, {}, "", NOW)
    assert not empty.success and empty.summary.startswith("NOT GREEN - no stage was run in this folder")


def test_first_closed_gate_is_in_the_verdict_line() -> None:
    second = Finding("fabric.standby", "compute", "unknown", why="x", remedy="y")
    closed = report(record("fabric", FAIL, second), record("network", FAIL, closed_by="fabric"))
    assert closed.summary == "NOT GREEN - stage fabric: 1 fail, 1 unknown (fabric.one_master on compute and 1 more)"
    assert {stage.name: stage.state for stage in closed.stages}["network"] == "skipped"


def test_what_a_failed_task_said_is_in_the_verdict_line() -> None:
    said = "Start an observer: rdma_observers_image is not set. Name it: -e rdma_observers_image=..."
    error = Finding("fabric.error", "stage fabric", "fail", said, "no task fails", "x", "y")
    assert report(record("fabric", error)).summary == f"NOT GREEN - stage fabric: 1 fail (fabric.error: {said})"
    absent = Finding("validate.api_server", "API server", "fail", why="the file does not exist", remedy="y")
    assert report(record("validate", absent)).summary.endswith("(validate.api_server: the file does not exist. y)")
    wrong = Finding("validate.names", "rdma_fabrics[0]", "fail", why="x", remedy="Rename it.")
    assert report(record("validate", wrong, absent)).summary.endswith(
        "(validate.api_server: the file does not exist. y; and 1 more)"
    )
    assert report(record("validate", wrong)).summary.endswith("(validate.names on rdma_fabrics[0]: Rename it)")
    said = "(validate.intent on a: 'rebot' (did you mean 'reboot'?). Correct a)"
    value = "one of: none, drain, reboot (did you mean 'reboot'?)"
    mistyped = Finding("validate.intent", "a", "fail", "'rebot'", value, why="x", remedy="Correct a.")
    assert report(record("validate", mistyped)).summary.endswith(said)
    library = Finding("validate.library", "controller", "fail", "no library", "x", why="x", remedy="Install it.")
    assert report(record("validate", mistyped, library)).summary.endswith(
        "(validate.library on controller: no library. Install it; and 1 more)"
    )
    nodes = Finding("validate.nodes", "inventory", "fail", why="x", remedy="y")
    both = report(record("validate", nodes, absent)).summary
    assert both.endswith("(validate.api_server: the file does not exist. y; and 1 more)")
    much = dataclasses.replace(error, measured="x" * 9000)
    assert len(report(record("fabric", much)).summary) < 900


def test_suspect_is_named_before_the_pairs_that_it_explains() -> None:
    pair, suspect = (Finding(check, check, "fail", why="x", remedy="y") for check in ("fabric.pair", "fabric.suspect"))
    closed = report(record("fabric", pair, suspect))
    assert closed.summary.endswith("(fabric.suspect on fabric.suspect and 1 more)")
    text = render_html(closed)
    assert 0 < text.index("<code>fabric.suspect</code>") < text.index("<code>fabric.pair</code>")


def next_steps(made: Report) -> tuple[str, str]:
    """The numbered steps, and what follows them in their section."""
    section = render_html(made).partition("What to do next")[2].partition("</section>")[0]
    steps, _end, after = section.partition("</ol>")
    return steps, after


@pytest.mark.parametrize("check", ["validate.api_server", "validate.library"])
def test_step_of_an_api_server_without_answer_is_the_first_one_as_in_the_verdict(check: str) -> None:
    """A proposal of the missing intent needs the API server as well."""
    intent = Finding("validate.intent", "rdma_fabrics", "fail", why="It is missing.", remedy="Run propose.")
    behind = Finding(check, "API server", "fail", why="Connection refused.", remedy="Check the kubeconfig")
    closed = report(record("validate", intent, behind))
    assert closed.summary.startswith(f"NOT GREEN - stage validate: 2 fail ({check}")
    steps, _after = next_steps(closed)
    assert 0 < steps.index(f"<code>{check}</code>") < steps.index("<code>validate.intent</code>")


def test_pairs_that_a_suspect_explains_are_no_steps_of_their_own() -> None:
    suspect = Finding("fabric.suspect", "worker-3 mlx5_1", "fail", why="All of it failed.", remedy="Seat its cable.")
    pairs = [
        Finding(
            "fabric.pair", f"worker-{number}", "fail", why="Slow.", remedy="See fabric.suspect for the end at fault."
        )
        for number in range(3)
    ]
    steps, after = next_steps(report(record("fabric", *pairs, suspect)))
    assert steps.count("<li>") == 1 and "Seat its cable." in steps and "fabric.pair" not in steps
    assert "3 findings that follow from these" in after and "fabric.pair" in after
    steps, after = next_steps(report(record("fabric", *pairs)))
    assert "See fabric.suspect" in steps and not after.strip("</div>"), "without a suspect they are all that there is"


def test_what_leads_to_another_finding_is_no_step_of_its_own() -> None:
    pair = Finding("reachability.pair", "node-1 -> node-2", "fail", why="Lost.", remedy="Trace the route.")
    port = Finding(
        "reachability.port",
        "node-1",
        "fail",
        why="Packets are lost.",
        remedy="See the findings reachability.pair of this port.",
    )
    steps, after = next_steps(report(record("reachability", pair, port)))
    assert (
        "reachability.pair" in steps
        and "reachability.port" not in steps
        and "1 finding that follows from these" in after
    )
    circle = dataclasses.replace(pair, remedy="See reachability.port.")
    steps, after = next_steps(report(record("reachability", circle, port)))
    assert steps.count("<li>") == 2, "of two that lead to each other none is lost"


def test_a_remedy_leads_to_a_check_by_its_whole_name() -> None:
    pair = Finding("reachability.pair", "node-1 -> node-2", "fail", why="Lost.", remedy="Trace the route.")
    port = Finding(
        "reachability.port", "node-1", "fail", why="Packets are lost.", remedy="See the finding reachability.pairs."
    )
    steps, _after = next_steps(report(record("reachability", pair, port)))
    assert steps.count("<li>") == 2, "reachability.pairs is not reachability.pair"


def test_causes_of_very_many_checks_cost_no_more_than_there_are() -> None:
    count = 20_000
    found = [
        Finding(f"fabric.x{number}", "compute", "fail", why="w", remedy=f"See fabric.x{number + 1}.")
        for number in range(count)
    ]
    with limited("the list of next steps"):
        text = listing.render_next_steps({"fabric": finding_groups.make_groups(map(Judged, found))})
    assert (
        text.count("Do: ") == 1
        and f"See fabric.x{count}." in text
        and f"{count - 1} findings that follow from these" in text
    )


def test_a_remedy_names_each_link_once() -> None:
    steps, _after = next_steps(build_report(records(World(cut=(0, 1))).records, {}, "", NOW))
    assert steps.count("leaf-0-1 port 40 ") == 1 and steps.count("the switch at which ibtracert stops") == 1


def test_a_closed_stage_says_what_is_wrong_before_its_pictures() -> None:
    made = records(World(slow=3))
    slow, well = (
        render_html(build_report(one.records, {}, "", "", facts=one.source)) for one in (made, records(World()))
    )
    section = slow.partition('id="bandwidth"')[2].partition("</section>")[0]
    assert 0 < section.index("bandwidth.suspect") < section.index("<figure>")
    # one rail of four is ill
    assert section.index("<figure><figcaption><b>compute, rail 1") < section.index("<figure><details><summary>")
    assert section.count("<figure><details>") == 3
    assert well.count("<figure><details>") == 8 and "; lowest 384, median 388, best 392" in well


def test_a_remedy_is_said_once_whatever_asks_for_it() -> None:
    one, other = (
        Finding(f"fabric.{name}", name, "fail", why=f"{name} is wrong.", remedy="Seat the cable of worker-1.")
        for name in ("link", "errors")
    )
    steps, _after = next_steps(report(record("fabric", one, other, FAIL)))
    assert steps.count("Seat the cable of worker-1.") == 1 and steps.count("<li>") == 2
    assert "link is wrong." in steps and "errors is wrong." in steps and FAIL.remedy in steps


def test_what_was_not_tried_is_folded_under_what_is_wrong() -> None:
    skipped = Finding(
        "fabric.errors", "compute", "skipped", why="There is no topology.", remedy="Mend the subnet manager first."
    )
    steps, after = next_steps(report(record("fabric", FAIL, skipped)))
    assert (
        "fabric.errors" not in steps
        and "1 finding that was skipped because of these" in after
        and "There is no topology." in after
    )
    alone, after = next_steps(report(record("fabric", skipped), record("platform", UNKNOWN)))
    assert "Mend the subnet manager first." in alone and "skipped because of these" not in after


def test_findings_of_one_cause_are_one_entry_and_boxes_filter_without_a_script() -> None:
    same = [
        Finding("fabric.node", f"node-{number}", "unknown", "no answer", why="No ssh.", remedy="Make it answer.")
        for number in range(250)
    ]
    text = render_html(report(record("fabric", *same)))
    page = Page(text)
    said = " ".join(page.text)
    assert said.count("Make it answer.") == 2, "once among the next steps, once in its stage"
    assert "node-0" in said and "and 249 more" in said and "and 150 more, all of them in report.json" in said
    assert page.tags.count("input") == 6 and 'id="show-unknown"' in text and "#show-unknown:not(:checked)" in STYLE


def test_older_runs_are_named_and_never_counted() -> None:
    mixed = report(record("bandwidth", FAIL, run=OLD))
    stage = next(stage for stage in mixed.stages if stage.name == "bandwidth")
    assert (stage.state, stage.record) == ("stale", None) and OLD in stage.note
    assert mixed.counts["fail"] == 0
    assert mixed.summary == ("NOT GREEN - stage bandwidth: not run in this run; only the record of an older run exists")


def test_newest_run_is_taken_when_none_is_given() -> None:
    assert report(record("bandwidth", run=OLD), run="").run == RUN


def test_check_mode_is_never_green() -> None:
    clean = build_report({stage: record(stage, check_mode=True) for stage in STAGES}, {}, RUN, NOW)
    assert (clean.verdict, clean.success) == ("CHECK MODE", True)
    assert clean.summary == "check mode: 0 changes would be made, nothing is verified"
    records = {stage: record(stage, check_mode=True) for stage in STAGES}
    records["operators"] = record("operators", check_mode=True, changes=("a",))
    records["network"] = record("network", FAIL, check_mode=True, changes=("b", "c"), gate="pending")
    pending = build_report(records, {}, RUN, NOW)
    assert (
        pending.success
        and pending.summary == "check mode: 3 changes would be made (operators 1, network 2), nothing is verified"
    )
    records["fabric"] = record("fabric", FAIL, check_mode=True)
    assert not build_report(records, {}, RUN, NOW).success


class Page(html.parser.HTMLParser):
    """Elements and text of a page; refuses what is not closed."""

    VOID: typing.ClassVar[set[str]] = {"meta", "input"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, typing.Optional[str]]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def test_html_shows_the_verdict_the_cause_and_the_way_on() -> None:
    page = Page(render_html(report(record("fabric", FAIL, facts=HCAS), record("platform", UNKNOWN, waivers=[WAIVER]))))
    text = " ".join(page.text)
    assert page.open == []
    for said in (
        "NOT GREEN",
        "2 masters",
        "1 master",
        FAIL.why,
        FAIL.remedy,
        "Not verified by this run",
        WAIVER.reason,
        "waived",
    ):
        assert said in text, said
    assert text.index("NOT GREEN") < text.index(FAIL.remedy)


def test_stages_that_were_not_run_for_one_reason_are_one_line() -> None:
    skipped = [
        record(name, Finding(f"{name}.run", name, "skipped", why="x", remedy="y"), closed_by="fabric")
        for name in ("compare", "training")
    ]
    text = " ".join(Page(render_html(report(record("fabric", FAIL), *skipped))).text)
    assert "compare, training : Not run: the run stopped at stage fabric." in text, text


def test_html_is_one_file_and_runs_nothing() -> None:
    page = Page(render_html(report(record("fabric", FAIL, facts=HCAS))))
    beside = r"#.*|stages/[a-z_]+\.jsonl|facts/[a-z_]+/(cluster\.json)?|report\.(json|xml|prom|md)"
    assert {link for link in page.links if not re.fullmatch(beside, link)} == {address_of(FAIL.check)}
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    text = render_html(report())
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert html.escape(f"default-src 'none'; style-src 'sha256-{digest}'") in text, (
        "the browser must take the style sheet, and nothing else"
    )
    assert f"<style>{STYLE}</style>" in text and " style=" not in text


def test_each_finding_leads_to_what_it_means() -> None:
    made = report(record("fabric", FAIL), record("platform", UNKNOWN, waivers=[WAIVER]))
    own = dataclasses.replace(made, pages="https://docs.example/{page}.html")
    for each, wanted in (
        (made, [address_of(FAIL.check), address_of(UNKNOWN.check)]),
        (own, [f"https://docs.example/{item.check}.html" for item in (FAIL, UNKNOWN)]),
    ):
        # what closes the gate is told twice: as a step, and at its stage
        links = [link for link in Page(render_html(each)).links if link.startswith("https:")]
        assert sorted(links) == sorted([wanted[0], *wanted])
        assert json.loads(render_json(each))["pages"] == dict(zip((FAIL.check, UNKNOWN.check), wanted))
    assert json.loads(render_json(report()))["pages"] == {}


def hostile(text: str) -> Report:
    bad = Finding("fabric.one_master", text, "fail", text, text, text, text)
    waived = Finding("platform.bios", text, "unknown", text, text, text, text)
    return report(
        record("fabric", bad, facts=(FactCount(text, 1, 1),), changes=(text,)),
        record("platform", waived, waivers=[Waiver("platform.*", text)]),
        unreadable={"network": text},
    )


def tags(text: str) -> list[str]:
    return Page(render_html(hostile(text))).tags


def test_hostile_text_stays_text() -> None:
    assert "script" not in tags(HOSTILE)
    assert tags(HOSTILE) == tags("harmless")
    ElementTree.fromstring(render_junit(hostile(HOSTILE)))
    assert json.loads(render_json(hostile(HOSTILE)))["stages"][2]["findings"][0]["subject"] == HOSTILE


@hypothesis.given(some.text(min_size=1, max_size=60))
def test_any_text_stays_text(text: str) -> None:
    assert tags(text) == tags("harmless")
    suites = ElementTree.fromstring(render_junit(hostile(text)))
    assert [suite.get("name") for suite in suites] == list(STAGES)
    json.loads(render_json(hostile(text)))


def test_no_secret_in_any_format() -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
    leaky = report(
        record(
            "fabric",
            Finding("fabric.sm", token, "fail", token, token, token, token),
            facts=(FactCount(token, 1, 0),),
            changes=("client-key-data: QUJD",),
        )
    )
    for render in (render_html, render_json, render_junit, render_metrics, render_markdown):
        assert token not in render(leaky) and "QUJD" not in render(leaky)


@pytest.mark.parametrize("host", ["controller-1", "c" * 200, "c" * 2000])
def test_last_line_has_the_whole_command_by_which_a_held_lease_ends(host: str) -> None:
    holder = Holder("20260102T030405Z-aaaaaa", host, "4242/1767322800")
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    held = LeaseHeld(Lease(holder, since=moment, renewed=moment, doing="custom_resources"), moment)
    error = Finding("network.error", "stage network", "fail", f"Hold the cluster: {held}", "no task fails", "x", "y")
    said = report(record("network", error)).summary
    assert said.startswith("NOT GREEN - stage network: 1 fail (network.error: Hold the cluster: run 20260102T030405Z")
    assert FREE in said and len(said) < 900


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("worker\u202e1-\u2066x", "worker\\u202e1-\\u2066x"),
        ("a\x00b\x1b[31mc\x9b", "a\\x00b\\x1b[31mc\\x9b"),
        ("\ud800\U000e0041\u200b", "\\ud800\\U000e0041\\u200b"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("Wörker-1 \u05d0 \u4e2d \U0001f600", "Wörker-1 \u05d0 \u4e2d \U0001f600"),
    ],
)
def test_what_a_reader_would_not_see_is_made_visible(text: str, seen: str) -> None:
    assert escape_plain(text) == seen


def test_whoever_runs_next_is_told_the_verdict_and_its_first_cause() -> None:
    told = make_stats(
        report(record("validate"), record("fabric", FAIL, dataclasses.replace(FAIL, subject="storage"))),
        "/x/report.html",
    )
    assert (
        told["verdict"] == "NOT GREEN"
        and told["green"] is False
        and told["report"] == "/x/report.html"
        and told["run"] == RUN
    )
    assert told["first"] == {
        "check": "fabric.one_master",
        "subject": "compute",
        "status": "fail",
        "why": FAIL.why,
        "remedy": "Stop one.",
    }
    assert told["counts"]["fail"] == 2 and "fabric.one_master" in told["summary"]
    green = make_stats(report(*(record(stage) for stage in STAGES)), "/x/report.html")
    assert green["first"] is None and green["green"] is True and green["counts"]["pass"] == len(STAGES)


@pytest.mark.parametrize("check_mode", [True, False])
def test_last_line_has_cause_and_remedy_of_an_object_that_was_refused(check_mode: bool) -> None:
    refused = Finding(
        "network.policy_accepted", "storage", "fail", "refused: it is of ada", "accepted", "Of ada.", "Ask its owner."
    )
    held = dataclasses.replace(refused, check="network.lint_overlap")
    for finding in (refused, held):
        said = report(record("network", finding, FAIL, check_mode=check_mode)).summary
        assert f"({finding.check} on storage: refused: it is of ada. Ask its owner; and 1 more)" in said


def test_what_it_is_told_has_no_secret_and_does_not_grow() -> None:
    told = make_stats(
        report(
            record(
                "fabric",
                dataclasses.replace(FAIL, why="Authorization: Bearer abcdefghijklmnopqrstuvwxyz " + "x" * 9000),
            )
        ),
        "/x/report.html",
    )
    assert "abcdefghijklmnop" not in str(told) and len(str(told)) < 3000


def test_verdict_line_is_one_line_and_drives_no_terminal() -> None:
    line = verdict_line(
        report(record("fabric", Finding("fabric.sm", "a\nb\x1b[2J\u202e" + "x" * 9000, "fail", why="x", remedy="y"))),
        "/x/report.html",
    )
    assert "\n" not in line and "\x1b" not in line and "\u202e" not in line and len(line) < 3000
    assert line.startswith("linerate.rdma: NOT GREEN - stage fabric: 1 fail (fabric.sm on a\\nb\\x1b[2J")


@pytest.mark.parametrize(
    ("waiver", "without", "warned"),
    [
        (
            Waiver("platform.iommu", "a"),
            "",
            "The waiver for platform.iommu in rdma_waivers covered no finding",
        ),
        (
            Waiver("network.route", "a", "storage"),
            "",
            "The waiver for network.route on storage in rdma_waivers covered no",
        ),
        (Waiver("platform.bios", "the lab has no BMC", "worker-1"), "", ""),
        # whether it is needed is not known
        (Waiver("network.route", "a", "storage"), "network", ""),
    ],
)
def test_a_waiver_that_covered_nothing_is_warned_of(
    waiver: Waiver, without: str, warned: str, tmp_path: pathlib.Path
) -> None:
    for item in all_open(record("platform", UNKNOWN, waivers=[waiver])).values():
        if item.stage != without:
            write_record(str(tmp_path / "stages"), dataclasses.replace(item, intent={"fabrics": []}))
    result = write_report({"run": RUN, "report_dir": str(tmp_path), "keep": 0}, "2.19.4")
    warnings = result.get("warnings", [])
    assert (len(warnings) == 1 and warnings[0].startswith(warned)) if warned else warnings == []


def test_page_counts_facts_and_leads_to_where_they_lie(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=("worker-1", "worker-2")))
    folder.write("hcas", "worker-1", value={"hcas": ["x" * 100_000]})
    folder.write("hcas", "worker-2", error="No ssh.")
    folder.write("bandwidth", value={"bandwidth": None})
    seen = record("fabric", facts=(FactCount("hcas", 1, 1), FactCount("subnets", 0, 2), FactCount("bandwidth", 1, 0)))
    for item in all_open(seen).values():
        write_record(str(tmp_path / "stages"), item)
    write_report({"run": RUN, "report_dir": str(tmp_path), "keep": 0}, "2.19.4")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    said = " ".join(page.text)
    assert (
        "facts/hcas : 1 seen, 1 missing" in said
        and "facts/subnets: 0 seen, 2 missing" in said
        and "facts/bandwidth : 1 seen" in said
    )
    links = [link for link in page.links if not link.startswith("#")]
    assert {
        "facts/hcas/",
        "facts/bandwidth/cluster.json",
        "stages/fabric.jsonl",
        "stages/validate.jsonl",
        "report.json",
    } <= set(links)
    assert all((tmp_path / link).exists() for link in links)
    assert (tmp_path / "report.html").stat().st_size < 50_000, "facts are not repeated"


def test_junit_maps_every_status() -> None:
    skipped = Finding("bandwidth.run", "stage bandwidth", "skipped", why="closed", remedy="open")
    made = report(
        record("fabric", FAIL, build_pass("fabric.topology", "compute")),
        record(
            "platform", UNKNOWN, Finding("platform.iommu", "worker-1", "unknown", why="x", remedy="y"), waivers=[WAIVER]
        ),
        record("network", WARN),
        record("bandwidth", skipped, closed_by="fabric"),
        without=["reachability"],
    )
    root = ElementTree.fromstring(render_junit(made))
    numbers = {
        suite.get("name"): tuple(int(suite.get(name) or 0) for name in ("tests", "failures", "errors", "skipped"))
        for suite in root
    }
    assert numbers["fabric"] == (2, 1, 0, 0)
    assert numbers["platform"] == (2, 0, 1, 1)
    assert numbers["network"] == (1, 0, 0, 0)
    assert numbers["bandwidth"] == (1, 0, 0, 1)
    assert numbers["reachability"] == (1, 0, 1, 0), "a stage that did not run must not look good in CI"
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == (str(len(STAGES) + 2), "1", "2")
    waived = root.find("testsuite[@name='platform']/testcase/skipped")
    assert waived is not None and waived.get("message") == "waived (unknown): the lab has no BMC"


# attributes and children as Jenkins allows them [xunit-plugin junit-10.xsd]; Ant, GitLab and Azure read these too
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time", "timestamp"}, {"properties", "testcase"}),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped", "system-out"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}


def test_junit_is_what_its_readers_allow() -> None:
    waived = record("platform", UNKNOWN, waivers=[WAIVER])
    root = ElementTree.fromstring(
        render_junit(report(record("fabric", FAIL), waived, record("network", WARN), without=["bandwidth"]))
    )
    for item in root.iter():
        attributes, children = JUNIT[item.tag]
        assert set(item.attrib) <= attributes and {child.tag for child in item} <= children
        assert re.fullmatch(r"\d+(\.\d+)?", item.get("time", "0"))
        if item.tag == "testsuite":
            assert {"name", "tests", "failures", "errors"} <= set(item.attrib)
            assert len(item.findall("testcase")) == int(item.attrib["tests"])


def test_stage_that_checked_nothing_is_an_error_in_junit() -> None:
    suite = ElementTree.fromstring(render_junit(report(record("fabric", gate="closed", judged=())))).find(
        "testsuite[@name='fabric']"
    )
    assert suite is not None and suite.get("errors") == "1"


def strict(schema: typing.Any) -> typing.Any:
    """The schema with all keys closed: a reader must live with new ones, and we must not write what it does not
    describe."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return (
        {**closed, "additionalProperties": schema.get("additionalProperties", False)}
        if isinstance(schema.get("properties"), dict)
        else closed
    )


def test_json_is_as_its_schema_says(root: pathlib.Path) -> None:
    schema = json.loads((root / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(strict(schema))
    broken = report(
        record("fabric", FAIL),
        record("platform", UNKNOWN, waivers=[WAIVER]),
        unreadable={"network": "torn"},
        without=["bandwidth"],
    )
    skipped = Finding("bandwidth.run", "stage bandwidth", "skipped", why="closed", remedy="open")
    late = report(record("fabric", FAIL), record("bandwidth", skipped, closed_by="fabric"), record("network", run=OLD))
    checked = build_report(
        {stage: record(stage, check_mode=True, changes=("a",)) for stage in STAGES}, {}, RUN, NOW, {"python": "3.11"}
    )
    for made in (report(), broken, late, checked, build_report({}, {}, "", NOW), hostile(HOSTILE)):
        validator.validate(json.loads(render_json(made)))


def test_json_holds_the_findings_and_names_the_record() -> None:
    data = json.loads(render_json(report(record("fabric", FAIL), record("platform", UNKNOWN, waivers=[WAIVER]))))
    assert data["schema"] == 2 and data["green"] is False
    stage = data["stages"][2]
    assert (
        stage["seconds"] == 20.0
        and stage["record"] == "stages/fabric.jsonl"
        and stage["findings"][0]["measured"] == "2 masters"
    )
    covered = [{"check": "platform.bios", "subject": "worker-1", "status": "unknown"}]
    assert data["waivers"] == [
        {
            "check": "platform.bios",
            "subject": "*",
            "measured": "*",
            "reason": "the lab has no BMC",
            "covers": 1,
            "covered": covered,
            "idle": [],
        }
    ]
    assert stage["passes"] == {}


def test_passes_are_counted_and_what_is_no_pass_is_kept() -> None:
    fine = [
        build_pass(f"fabric.{check}", f"node-{number}", "1", "1")
        for number in range(4000)
        for check in ("rate", "width")
    ]
    waived = [dataclasses.replace(UNKNOWN, subject=f"worker-{number}") for number in range(250)]
    made = report(
        record("fabric", *fine, WARN),
        record("platform", build_pass("platform.iommu", "worker-1"), *waived, waivers=[WAIVER]),
    )
    text, junit = render_json(made), render_junit(made)
    assert len(text) < 130_000 and len(junit) < 130_000
    data = json.loads(text)
    assert (
        data["stages"][2]["passes"] == {"fabric.rate": 4000, "fabric.width": 4000}
        and data["stages"][2]["counts"]["pass"] == 8000
    )
    assert [finding["status"] for finding in data["stages"][2]["findings"]] == ["warn"]
    assert data["stages"][4]["passes"] == {"platform.iommu": 1} and len(data["stages"][4]["findings"]) == 250
    assert data["waivers"][0]["covers"] == 250
    assert [item["subject"] for item in data["waivers"][0]["covered"]] == [f"worker-{number}" for number in range(100)]
    suite = ElementTree.fromstring(junit).find("testsuite[@name='fabric']")
    assert suite is not None and suite.get("tests") == "3" and suite.get("skipped") == "0"
    cases = {case.get("name"): case.findtext("system-out") for case in suite.iter("testcase")}
    assert (
        cases["fabric.rate"] == "4000 passed; stages/fabric.jsonl contains all of them"
        and "network.route on storage" in cases
    )
    assert "and 3975 more, all of them in stages/fabric.jsonl" in " ".join(Page(render_html(made)).text)


def test_large_report_is_small_and_what_it_leaves_out_is_in_the_records(tmp_path: pathlib.Path) -> None:
    made = records(World(nodes=64, rails=4, on_leaf=8))
    whole = build_report(made.records, {}, "", NOW, facts=made.source)
    data = json.loads(render_json(whole))
    for stage, item in made.records.items():
        write_record(str(tmp_path), item)
        kept = [
            json.loads(line)["finding"]
            for line in (tmp_path / f"{stage}.jsonl").read_text(encoding="utf-8").splitlines()[1:]
        ]
        said = next(found for found in data["stages"] if found["name"] == stage)
        assert (
            said["counts"]["pass"]
            == sum(said["passes"].values())
            == sum(finding["status"] == "pass" for finding in kept)
        )
        assert len(said["findings"]) == sum(finding["status"] != "pass" for finding in kept)
    assert sum(said["counts"]["pass"] for said in data["stages"]) > 5_000
    assert len(render_json(whole)) < 20_000 and len(render_junit(whole)) < 20_000


def test_waiver_that_covered_nothing_can_be_removed_only_where_its_stage_looked() -> None:
    removable, unknown = (
        "The waiver covered no finding in this run and can be removed.",
        "It is unknown whether the waiver is needed: stage platform did not complete, or ran in check mode.",
    )
    validated = record("validate", waivers=[WAIVER])
    for platform, said in (
        (record("platform", intent={}), removable),
        (record("platform", intent={}, check_mode=True), unknown),
        (record("platform", closed_by="discover"), unknown),
        (record("platform", intent={}, error="Read sysfs: denied"), unknown),
        (record("platform", intent={}, run="an older one"), unknown),
        (None, unknown),
    ):
        others = [validated, *([platform] if platform else [])]
        made = report(*others, without=() if platform else ("platform",))
        text = " ".join(Page(render_html(made)).text)
        assert said in text and (removable in text) == (said == removable), platform
        (waiver,) = json.loads(render_json(made))["waivers"]
        assert waiver["idle"] == ([] if said == removable else ["platform"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "could not be read"),
        (lambda text: text.replace('"schema":2', '"schema":3'), "of a newer version of linerate.rdma"),
        (
            lambda text: text.replace('"gate":"open"', '"gate":"closed"'),
            "its gate is closed, which contradicts its findings",
        ),
        (lambda text: text[: text.index("\n") + 1], "expected 1, the number in its head"),
        (lambda text: "", "no mapping in the first line"),
    ],
)
def test_report_is_written_over_a_damaged_record_and_is_not_green(
    change: typing.Callable[[str], str], said: str, tmp_path: pathlib.Path
) -> None:
    for item in all_open().values():
        write_record(str(tmp_path / "stages"), item)
    params = {"run": RUN, "report_dir": str(tmp_path), "keep": 0}
    assert write_report(params, "2.19.4")["verdict"] == "GREEN"
    path = tmp_path / "stages" / "network.jsonl"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    result = write_report(params, "2.19.4")
    assert (result["verdict"], result["success"]) == ("NOT GREEN", False)
    assert "stage network: the record could not be read" in result["line"]
    assert said in " ".join(Page((tmp_path / "report.html").read_text(encoding="utf-8")).text)
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert said in data["stages"][STAGES.index("network")]["note"] and data["versions"]["ansible-core"] == "2.19.4"
    assert ElementTree.parse(tmp_path / "report.xml").getroot().get("errors") == "1"


def test_where_the_time_went_is_a_line_a_stage_and_their_sum() -> None:
    fine: dict[str, typing.Any] = {
        "started": "2026-01-02T03:04:05.250+00:00",
        "finished": "2026-01-02T03:05:57.625+00:00",
    }
    made = report(record("bandwidth", **fine), record("network", started="yesterday"))
    spent = {line.split()[0]: line.split()[1:] for line in list_times(made)}
    # older records have whole seconds
    assert spent == {
        **{stage: ["20.0", "s"] for stage in STAGES if stage != "network"},
        "bandwidth": ["112.4", "s"],
        "total": ["352.4", "s"],
    }
    assert len({len(line) for line in list_times(made)}) == 1, "in columns"
    assert json.loads(render_json(made))["seconds"] == 352.375
    assert "passed, 112.4 s" in " ".join(Page(render_html(made)).text)
    assert list_times(build_report({}, {}, "", NOW))[-1].split() == ["total", "0.0", "s"]
    skipped = record(
        "compare", Finding("compare.run", "stage compare", "skipped", why="x", remedy="y"), closed_by="bandwidth"
    )
    assert "compare" not in "".join(list_times(report(skipped))), "it took none"


def test_now_is_utc_to_the_millisecond() -> None:
    before = datetime.datetime.now(datetime.timezone.utc)
    moment = datetime.datetime.fromisoformat(format_now())
    assert moment.utcoffset() == datetime.timedelta(0) and re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", format_now()
    )
    assert abs((moment - before).total_seconds()) < 5


def test_time_that_cannot_be_read_is_no_time() -> None:
    stage = report(record("fabric", started="yesterday")).stages[2]
    assert stage.seconds is None and "yesterday" not in render_html(report(record("fabric", started="yesterday")))


def test_the_plan_of_a_check_mode_is_text_for_whoever_approves_it() -> None:
    changes = tuple(f"NetworkAttachmentDefinition training/net-{index} {'x' * 90}" for index in range(300))
    pending = dataclasses.replace(record("network"), check_mode=True, changes=changes)
    text = plan_text(report(record("validate"), pending))
    assert (
        "The planned actions on the nodes are unknown: stage network did not complete its plan." in text
        and "Changes: 300" in text
        and "net-0 " in text
    )
    assert len(text) < 9000 and "see the report" in text
    assert plan_text(report(record("validate"))) == ""


def test_reasons_that_nodes_write_push_no_disturbed_node_out_of_the_plan() -> None:
    """Four unknown nodes with long texts took all 8,000 characters."""
    nodes = (
        *(NodePlan(f"worker-{number}", "unknown", (f"{number}{'x' * 4000}",)) for number in range(100)),
        NodePlan("worker-200", "reboot", ("firmware changes",)),
        NodePlan("worker-201", "drain", ("MTU",)),
    )
    planned = DisruptionPlan(nodes, (PoolPlan("", ("worker-200",), 1, 2, "the operator's default"),))
    pending = dataclasses.replace(
        record("network"), check_mode=True, facts=(FactCount("disruption", 1, 0),), intent={"fabrics": []}
    )
    seen = dataclasses.replace(
        report(record("validate"), pending), facts=lambda stage, parts: {"plan": to_data(planned)}
    )
    lines = plan_text(seen).splitlines()
    assert max(map(len, lines)) <= 200 and not any("... and more" in line for line in lines)
    for start in ("unknown: 100 nodes", "reboot: 1 node (worker-200)", "drain: 1 node (worker-201)"):
        assert any(line.startswith(start) for line in lines), start


def test_the_plan_names_the_worst_first_and_what_is_in_the_way() -> None:
    nodes = (
        NodePlan("worker-3", "nothing"),
        NodePlan("worker-1", "reboot", ("firmware changes",), blockers=("pod training/db has no room elsewhere",)),
        NodePlan("worker-2", "reboot", ("firmware changes",), blockers=("pod training/db has no room elsewhere",)),
    )
    planned = DisruptionPlan(nodes, (PoolPlan("", ("worker-1", "worker-2"), 1, 2, "the operator's default"),))
    pending = dataclasses.replace(
        record("network"), check_mode=True, facts=(FactCount("disruption", 1, 0),), intent={"fabrics": []}
    )
    seen = dataclasses.replace(
        report(record("validate"), pending), facts=lambda stage, parts: {"plan": to_data(planned)}
    )
    lines = plan_text(seen).splitlines()
    reboots, nothing = (
        next(index for index, line in enumerate(lines) if line.startswith(word))
        for word in ("reboot: 2 nodes", "nothing: 1 node ")
    )
    assert reboots < nothing and "worker-1, worker-2" in lines[reboots] and ", 2 BLOCKED (" in lines[reboots]
    (why,) = [line for line in lines if line.startswith("Why reboot (worker-1, worker-2): firmware changes")]
    assert "BLOCKED BY: pod training/db" in why
    assert any("2 waves" in line for line in lines)


def test_the_plan_marks_nodes_outside_of_the_inventory_and_names_the_driver_of_nvidia() -> None:
    why = (
        "driver of NVIDIA's network operator (NicClusterPolicy nic-cluster-policy, spec.ofedDriver): version 1 is new",
    )
    nodes = (
        NodePlan("worker-1", "drain", why, driver="load"),
        NodePlan("of-others", "drain", why, listed=False, driver="load"),
        NodePlan("worker-2", "drain", ("version 1 is removed",), driver="remove"),
    )
    turns = PoolPlan("nic-cluster-policy", ("worker-1", "of-others"), 1, 2, "maxParallelUpgrades is 1", driver="load")
    planned = DisruptionPlan(nodes, (turns,), drains=False)
    pending = dataclasses.replace(
        record("network"), check_mode=True, facts=(FactCount("disruption", 1, 0),), intent={"fabrics": []}
    )
    seen = dataclasses.replace(
        report(record("validate"), pending), facts=lambda stage, parts: {"plan": to_data(planned)}
    )
    lines = plan_text(seen).splitlines()
    assert "drain: 2 nodes, 1 not in the inventory (of-others (not in the inventory), worker-1)" in lines
    assert "driver removed without a drain: 1 node (worker-2)" in lines
    assert any(line.startswith("driver of NicClusterPolicy nic-cluster-policy: 2 nodes, 1 at once") for line in lines)
