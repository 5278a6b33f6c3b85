# SPDX-License-Identifier: GPL-3.0-or-later

"""platform.roll: each outcome of a roll, and a roll that nobody knows the end of."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.roll import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeOutcome,
    NodeStep,
    RollPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import BY_ADDRESS

PLAN = RollPlan((NodeStep("worker-1", "reboot"),))


def status(planned: typing.Optional[RollPlan], outcomes: typing.Any, error: str = "") -> list[tuple[str, str]]:
    found = list(check(planned, outcomes, error))
    assert all(one.status == "pass" or (one.why and one.remedy) for one in found)
    return [(one.subject, one.status) for one in found]


def test_nobody_asked_for_one() -> None:
    assert status(None, None) == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("done", "pass"),
        ("nothing", "pass"),
        ("failed", "fail"),
        ("blocked", "fail"),
        ("left", "fail"),
        ("unknown", "unknown"),
        ("planned", "unknown"),
    ],
)
def test_each_outcome(state: typing.Any, expected: str) -> None:
    assert status(PLAN, (NodeOutcome("worker-1", state, "It did not come back"),)) == [("worker-1", expected)]


def test_a_failed_change_names_its_settings() -> None:
    differences = (NodeDifference("BIOS", "SriovGlobalEnable", "Disabled", "Enabled"),)
    plan = RollPlan((NodeStep("worker-1", "reboot", differences),))
    (found,) = check(plan, (NodeOutcome("worker-1", "failed", "It did not come back"),), "")
    assert found.measured == "change of the settings failed"
    assert found.expected == "settings of the intent active on the node: BIOS SriovGlobalEnable Enabled"


def test_result_without_a_node_has_a_subject() -> None:
    assert status(PLAN, (NodeOutcome("worker-1", "done"), NodeOutcome("", "failed", "It did not come back"))) == [
        ("worker-1", "pass"),
        ("node without a name", "fail"),
    ]


def test_half_of_it_is_unknown() -> None:
    assert status(PLAN, ()) == [("worker-1", "unknown")]
    assert status(PLAN, None) == status(None, ()) == [("cluster", "unknown")]
    assert status(RollPlan(), (), "it did not complete") == [("cluster", "unknown")]


def test_refused() -> None:
    assert status(RollPlan(PLAN.steps, refusal="rdma_cluster.disruption is drain."), ()) == [("cluster", "fail")]


def test_template_without_serial_numbers_is_a_warning() -> None:
    steps = (NodeStep("worker-1", "nothing", notes=(f"NicConfigurationTemplate t {BY_ADDRESS}, because",)),)
    found = list(check(RollPlan(steps), (NodeOutcome("worker-1", "nothing"),), ""))
    assert [(one.subject, one.status) for one in found] == [("worker-1", "pass"), ("NicConfigurationTemplate", "warn")]
    assert "the NicDevices of worker-1 report no serial number" in found[1].why and "stage platform" in found[1].remedy
    assert status(
        RollPlan((NodeStep("worker-1", "nothing", notes=("x",)),)), (NodeOutcome("worker-1", "nothing"),)
    ) == [("worker-1", "pass")]


def test_nothing_to_roll() -> None:
    assert status(RollPlan(), ()) == [("cluster", "pass")]


DONE, FAILED = NodeOutcome("worker-1", "done"), NodeOutcome("worker-1", "failed", "It did not come back")
OTHER = NodeOutcome("worker-9", "failed", "It did not come back")


@pytest.mark.parametrize(
    ("planned", "outcomes", "expected"),
    [
        # an outcome without a step
        (PLAN, (DONE, OTHER), [("worker-1", "pass"), ("worker-9", "fail")]),
        (PLAN, (DONE, NodeOutcome("worker-9", "done")), [("worker-1", "pass"), ("worker-9", "unknown")]),
        (RollPlan(), (OTHER,), [("worker-9", "fail")]),
        (RollPlan(), (NodeOutcome("worker-9", "nothing"),), [("worker-9", "unknown")]),
        # two of one node, in any order
        (PLAN, (FAILED, DONE), [("worker-1", "fail")]),
        (PLAN, (DONE, FAILED), [("worker-1", "fail")]),
        (PLAN, (DONE, DONE), [("worker-1", "unknown")]),
        (RollPlan((*PLAN.steps, *PLAN.steps)), (DONE,), [("worker-1", "unknown")]),
    ],
)
def test_steps_and_outcomes_match_one_to_one(planned: RollPlan, outcomes: typing.Any, expected: typing.Any) -> None:
    assert status(planned, outcomes) == expected
