# SPDX-License-Identifier: GPL-3.0-or-later

"""The frame around the stages, without Ansible: may a stage start, and what does the gate say."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check import frame, mended
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import CHECKS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record, describe_record

NODES = validate.Facts(nodes=("worker-1",))


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts of the stage that the tests put into the table."""

    findings: tuple[Finding, ...] = ()


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage whose check returns what its facts say."""

    def check(_intent: Intent, facts: Facts) -> tuple[Finding, ...]:
        return facts.findings

    for name in ("fabric", "network"):
        monkeypatch.setitem(TABLE, name, (Facts, check))


def finding(status: str, stage: str = "fabric") -> dict[str, str]:
    return {"check": f"{stage}.one_master", "subject": "compute", "status": status, "why": "so", "remedy": "do"}


def context(stage: str = "fabric", check_mode: bool = False, **records: Record) -> frame.StageContext:
    return frame.StageContext(
        stage, "run-1", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:06+00:00", check_mode, records
    )


def record(stage: str, gate: str = "open", **rest: typing.Any) -> Record:
    return Record(stage, "run-1", "", "", rest.pop("check_mode", False), typing.cast(typing.Any, gate), (), **rest)


def test_validate_always_starts() -> None:
    assert frame.may_start(context("validate"), frame.RawIntent(None), NODES) is None


def test_stage_after_open_gates_starts(fabrics: typing.Any) -> None:
    assert frame.may_start(context(validate=record("validate")), frame.RawIntent(fabrics()), NODES) is None


def test_stage_after_a_closed_gate_is_skipped_and_says_by_whom(fabrics: typing.Any) -> None:
    answer = frame.may_start(
        context(
            "network",
            validate=record("validate"),
            discover=record("discover", "closed"),
            fabric=record("fabric", "closed", closed_by="discover"),
        ),
        frame.RawIntent(fabrics(), [{"check": "network.*", "reason": "I want green"}]),
        NODES,
    )
    assert answer is not None and (answer.gate, answer.closed_by) == ("closed", "discover")
    assert [(item.finding.check, item.finding.status, item.waiver) for item in answer.judged] == [
        ("network.run", "skipped", None)
    ], "no waiver may cover it"


def test_later_gates_do_not_matter(fabrics: typing.Any) -> None:
    assert (
        frame.may_start(
            context(validate=record("validate"), network=record("network", "closed")), frame.RawIntent(fabrics()), NODES
        )
        is None
    )


def test_stage_alone_looks_at_the_intent_first(fabrics: typing.Any) -> None:
    assert frame.may_start(context(), frame.RawIntent(fabrics()), NODES) is None
    answer = frame.may_start(context(), frame.RawIntent(fabrics(resource_name="mlx-compute")), NODES)
    assert answer is not None and answer.stage == "fabric" and answer.gate == "closed"
    assert [item.finding.check for item in answer.judged if item.closes] == ["validate.names"]
    answer = frame.may_start(context(), frame.RawIntent(fabrics(virtual_functions="8")), NODES)
    assert answer is not None and [item.finding.subject for item in answer.judged] == [
        "rdma_fabrics[0].virtual_functions"
    ]


@pytest.mark.parametrize(
    ("statuses", "gate"),
    [
        (["pass"], "open"),
        (["pass", "warn"], "open"),
        (["pass", "fail"], "closed"),
        (["unknown"], "closed"),
        (["skipped"], "closed"),
        ([], "closed"),
    ],
)
def test_gate(fabrics: typing.Any, statuses: list[str], gate: str) -> None:
    facts = {"findings": [finding(status) for status in statuses]}
    assert frame.judge_stage(context(), frame.RawIntent(fabrics()), facts).gate == gate


def test_waiver_opens_the_gate(fabrics: typing.Any) -> None:
    raw = frame.RawIntent(fabrics(), [{"check": "fabric.one_master", "reason": "a spare fabric"}])
    answer = frame.judge_stage(context(), raw, {"findings": [finding("fail")]})
    assert answer.gate == "open" and answer.judged[0].waiver is not None


def test_facts_that_do_not_fit_close_the_gate_with_their_path(fabrics: typing.Any) -> None:
    (item,) = frame.judge_stage(context(), frame.RawIntent(fabrics()), {"findngs": []}).judged
    assert (item.finding.check, item.finding.status) == ("fabric.error", "fail")
    assert "fabric_facts.findngs: unknown key" in item.finding.measured


def test_wrong_intent_closes_the_gate() -> None:
    answer = frame.judge_stage(context(), frame.RawIntent("compute"), {})
    assert answer.gate == "closed" and answer.judged[0].finding.check == "fabric.intent"


def test_failure_closes_the_gate(fabrics: typing.Any) -> None:
    answer = frame.judge_error(context(), frame.RawIntent(fabrics()), "Read the API: connection refused")
    assert answer.gate == "closed" and answer.error == "Read the API: connection refused"
    assert answer.judged[0].finding.measured == "Read the API: connection refused"
    assert frame.judge_error(context(), frame.RawIntent(None), "x").gate == "closed"


def test_a_failure_for_want_of_a_webhook_names_it(fabrics: typing.Any) -> None:
    """As Helm passes it on, which a run lets install the operators."""
    said = (
        "Install or upgrade the release gpu-operator: Error: INSTALLATION FAILED: Internal error occurred: failed"
        ' calling webhook "webhook.cert-manager.io": failed to call webhook: Post'
        ' "https://cert-manager-webhook.cert-manager.svc:443/validate?timeout=30s": no endpoints available for service'
        ' "cert-manager-webhook"'
    )
    (item,) = frame.judge_error(context("operators"), frame.RawIntent(fabrics()), said).judged
    assert (item.finding.check, item.finding.measured) == ("operators.error", said)
    assert "Service cert-manager/cert-manager-webhook has no ready pod" in item.finding.why
    assert "kubectl -n cert-manager get endpointslices,pods" in item.finding.remedy and item.finding.remedy.endswith(
        "Then run stage operators again."
    )


def test_no_waiver_covers_a_stage_that_proved_nothing(fabrics: typing.Any) -> None:
    for check in ("fabric.*", "fabric.error", "fabric.e*", "fabric.[!x]*", "?abric.*"):
        raw = frame.RawIntent(fabrics(), [{"check": check, "reason": "I want green"}])
        failed = frame.judge_error(context(), raw, "Ask the fabric: connection refused")
        assert (failed.gate, failed.judged[0].waiver) == ("closed", None), check
        unreadable = frame.judge_stage(context(), raw, {"findngs": []})
        assert (unreadable.gate, unreadable.judged[0].waiver) == ("closed", None), check


def test_no_waiver_covers_a_wrong_intent(fabrics: typing.Any) -> None:
    """Not even the waiver that is what is wrong with it."""
    for check in ("validate.*", "validate.waivers", "validate.names", "v*.*"):
        raw = frame.RawIntent(fabrics(resource_name="mlx-compute"), [{"check": check, "reason": "I want green"}])
        answer = frame.judge_validate(context("validate"), raw, NODES)
        assert answer.gate == "closed" and not any(item.waiver for item in answer.judged), check


def test_check_mode_waits_for_what_would_be_made(fabrics: typing.Any) -> None:
    raw, failing = frame.RawIntent(fabrics()), {"findings": [finding("fail", "network")]}
    made = frame.judge_stage(context("network", check_mode=True), raw, failing, ["policy storage would be created"])
    assert made.gate == "pending" and made.changes == ("policy storage would be created",)
    # a later stage looks at what is not there yet: pending as well, also when its role failed
    later = context("virtual_functions", check_mode=True, network=made)
    assert frame.judge_error(later, raw, "no VF").gate == "pending"
    # with nothing to make, a failure is a failure in check mode too
    assert frame.judge_stage(context("network", check_mode=True), raw, failing).gate == "closed"
    # outside check mode, having made something excuses nothing
    assert frame.judge_stage(context("network"), raw, failing, ["policy storage was created"]).gate == "closed"


@pytest.mark.parametrize(
    ("stage", "made", "check", "status", "gate"),
    [
        # one sysctl that would change mends what it is about, and what is measured after it
        ("tuning", "tuning", "tuning.memory", "fail", "pending"),
        ("bandwidth", "tuning", "bandwidth.floor", "fail", "pending"),
        ("operators", "tuning", "operators.rights", "fail", "closed"),
        ("operators", "tuning", "operators.ready", "fail", "closed"),
        ("network", "tuning", "network.address_overlap", "fail", "closed"),
        ("network", "tuning", "network.intent", "fail", "closed"),
        ("virtual_functions", "tuning", "virtual_functions.count", "fail", "closed"),
        # no object that would be made gives rights, other ranges or another answer of the API server
        ("operators", "operators", "operators.rights", "fail", "closed"),
        ("operators", "operators", "operators.ready", "fail", "pending"),
        ("network", "network", "network.address_overlap", "fail", "closed"),
        ("network", "operators", "network.address_overlap", "unknown", "pending"),
        ("network", "network", "network.disruption", "fail", "closed"),
        ("network", "network", "network.policy_accepted", "fail", "closed"),
        ("network", "network", "network.policy_accepted", "unknown", "pending"),
        ("virtual_functions", "network", "virtual_functions.count", "fail", "pending"),
        ("virtual_functions", "network", "virtual_functions.run", "skipped", "pending"),
    ],
)
def test_check_mode_waits_for_what_the_changes_would_mend_and_for_nothing_else(
    stage: str, made: str, check: str, status: typing.Any, gate: str
) -> None:
    one = Finding(check, "cluster", status, "", "", "so", "do")
    before = {} if made == stage else {made: record(made, "pending", check_mode=True, changes=("a change",))}
    changes = ("a change",) if made == stage else ()
    assert frame.make_record(context(stage, check_mode=True, **before), [one], changes=changes).gate == gate
    # with what would be mended stands what would not
    other = Finding("network.address_overlap", "pods", "fail", "", "", "so", "do")
    assert frame.make_record(context(stage, check_mode=True, **before), [one, other], changes=changes).gate == "closed"


@pytest.mark.parametrize(
    ("stage", "check", "status", "gate"),
    [
        ("bandwidth", "bandwidth.pod", "unknown", "pending"),
        ("compare", "compare.figures", "unknown", "pending"),
        ("collectives", "collectives.started", "unknown", "pending"),
        # what is known in check mode, and what no measurement reads
        ("bandwidth", "bandwidth.pod", "fail", "closed"),
        ("bandwidth", "bandwidth.link", "unknown", "closed"),
        ("bandwidth", "bandwidth.run", "skipped", "closed"),
        ("virtual_functions", "virtual_functions.count", "unknown", "closed"),
        ("host", "host.memlock", "unknown", "closed"),
    ],
)
def test_check_mode_without_changes_leaves_measurements_to_a_run(
    stage: str, check: str, status: typing.Any, gate: str
) -> None:
    one = Finding(check, "worker-1", status, "", "", "so", "do")
    assert frame.make_record(context(stage, check_mode=True), [one]).gate == gate
    assert frame.make_record(context(stage), [one]).gate == "closed", "a run that measures has measured"


def test_check_mode_does_not_wait_with_a_plan_that_failed_for_other_changes(fabrics: typing.Any) -> None:
    raw, text = frame.RawIntent(fabrics()), "Plan what it will do to the nodes: '%' is not a valid name"
    tuned = record("tuning", "open", check_mode=True, changes=("a sysctl",))
    assert frame.judge_error(context("network", check_mode=True, tuning=tuned), raw, text).gate == "closed"
    installed = record("operators", "pending", check_mode=True, changes=("an operator",))
    waits = frame.judge_error(context("network", check_mode=True, operators=installed), raw, text)
    assert waits.gate == "pending" and any(text in line for line in describe_record(waits)), "its text is shown"


def test_check_mode_does_not_wait_for_rights(fabrics: typing.Any) -> None:
    made = record("network", "pending", check_mode=True, changes=("a change",))
    later, raw = context("virtual_functions", check_mode=True, network=made), frame.RawIntent(fabrics())
    denied = 'pods is forbidden: User "look" cannot create resource "pods" in API group "" in the namespace "training"'
    assert (frame.judge_error(later, raw, denied).gate, frame.judge_error(later, raw, "no VF").gate) == (
        "closed",
        "pending",
    )


def test_what_nothing_mends_is_a_finding() -> None:
    assert {*mended.NEVER, *mended.KNOWN} <= set(CHECKS)


def test_record_says_by_how_many_facts_it_was_judged(fabrics: typing.Any) -> None:
    counts = (FactCount("hcas", 2, 1), FactCount("subnets", 3, 0))
    assert (
        frame.judge_stage(context(), frame.RawIntent(fabrics()), {"findings": [finding("pass")]}, (), counts).facts
        == counts
    )


def test_every_stage_of_the_table_refuses_what_is_no_fact(fabrics: typing.Any) -> None:
    for name in TABLE:
        answer = frame.judge_stage(context(name), frame.RawIntent(fabrics()), {"no such key": 1})
        found = answer.judged[0].finding
        assert answer.gate == "closed" and found.check == f"{name}.error"
        assert found.measured.endswith("no such key: unknown key") and found.expected.startswith("one of: ")
        assert "no such key" not in found.why, "the cause doesn't repeat what was measured"
