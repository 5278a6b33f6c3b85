# SPDX-License-Identifier: GPL-3.0-or-later

"""Is set what the intent asks to be set: by the operator or by the role; and what was not asked for is not judged."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check as check_teardown
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts as TeardownFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.tuning.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import tuning as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import (
    NodeSetting,
    ObservedSettings,
    TuningSet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import Tuning
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, PASS, UNKNOWN, Finding
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, ROCE, Shape, healthy

from ..plan.test_tuning_settings import intent_of


def findings(shape: Shape, tuning: typing.Optional[Tuning] = None, **changes: typing.Any) -> dict[str, Finding]:
    """By subject, of a healthy fleet with other facts."""
    fleet = healthy(shape)
    facts: Facts = dataclasses.replace(fleet.of("tuning"), **changes)
    cluster = dataclasses.replace(fleet.intent.cluster, tuning=tuning or fleet.intent.cluster.tuning)
    return {
        item.subject: item
        for item in check(dataclasses.replace(fleet.intent, cluster=cluster), facts)
        if item.check == "tuning.set"
    }


def by_tuned(**nodes: NodeSetting) -> TuningSet:
    return TuningSet("tuned", {name.replace("_", "-"): seen for name, seen in nodes.items()})


def test_both_ways_pass() -> None:
    for shape in (PAIR, ROCE):
        assert {subject: item.status for subject, item in findings(shape).items()} == dict.fromkeys(shape.names, PASS)


def test_what_is_not_asked_for_is_not_judged() -> None:
    assert findings(ROCE, Tuning(), set=None) == {}


@pytest.mark.parametrize(
    ("found", "status", "says"),
    [
        (None, UNKNOWN, "returned no result"),
        (
            TuningSet("tuned", refusal="PerformanceProfile gpu tunes node-1", remedy="Put the lines"),
            FAIL,
            "PerformanceProfile gpu tunes node-1.",
        ),
        (TuningSet("nothing"), UNKNOWN, "The intent has rules for governor, idle_latency"),
    ],
)
def test_nothing_was_set(found: typing.Optional[TuningSet], status: str, says: str) -> None:
    (finding,) = findings(ROCE, set=found).values()
    assert (finding.subject, finding.status) == ("cluster", status) and says in finding.why and finding.remedy


def test_no_rule_is_nothing_to_set() -> None:
    (finding,) = findings(ROCE, Tuning("none", set=True), set=TuningSet("nothing")).values()
    assert finding.status == PASS


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (NodeSetting("stuck", "TuneD on it is degraded: x", "Correct it"), FAIL),
        (NodeSetting("coming", "slow", "Look"), FAIL),
        (NodeSetting("planned"), UNKNOWN),
    ],
)
def test_a_node_that_has_it_not(seen: NodeSetting, status: str) -> None:
    found = findings(ROCE, set=by_tuned(node_1=seen, node_2=NodeSetting("set")))
    assert (found["node-1"].status, found["node-2"].status) == (status, PASS)
    # of which nobody says anything
    assert found["node-3"].status == UNKNOWN


def test_a_dry_run_passes_with_what_it_would_set() -> None:
    found = findings(ROCE, set=TuningSet("tuned", dict.fromkeys(ROCE.names, NodeSetting("planned"))), check_mode=True)
    assert {(item.status, item.measured) for item in found.values()} == {(PASS, "dry run: would be applied")}


def test_nodes_that_are_reached_by_observers_are_told_that_nothing_can_be_set() -> None:
    first, *rest = PAIR.names
    found = findings(PAIR, by_pods=(first,))
    assert found[first].status == FAIL and "changes no settings" in found[first].why and "ssh" in found[first].remedy
    assert {found[name].status for name in rest} == {PASS}


def test_a_module_that_failed_or_did_not_run_is_not_known() -> None:
    first, second = PAIR.names[:2]
    found = findings(
        PAIR,
        kernel_settings={
            first: ObservedSettings(error="failed: Set what needs no reboot: vm.swappiness does not take 10")
        },
    )
    assert found[first].status == UNKNOWN and "does not take 10" in found[first].why
    assert (
        found[second].status == UNKNOWN and "no result of the module kernel_settings for this node" in found[second].why
    )


def test_settings_of_another_intent_are_a_failure_with_the_command() -> None:
    first = PAIR.names[0]
    why = "/etc/sysctl.d/90-linerate-rdma.conf belongs to the intent 'storage' and has other values"
    found = findings(PAIR, kernel_settings={first: ObservedSettings({"changes": [], "refusal": why})})[first]
    assert found.status == FAIL and "the intent 'storage'" in found.why
    assert "as root: rm -f /etc/sysctl.d/90-linerate-rdma.conf /etc/tmpfiles.d/linerate-rdma.conf." in found.remedy
    renamed = "sed -i 's/^# intent: .*/# intent: default-"
    assert (
        "after a change of intent_name or node_selector, run on each node" in found.remedy and renamed in found.remedy
    )
    assert found.remedy.endswith("Then run stage tuning again.")


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (ObservedSettings({"changes": ["removed /etc/sysctl.d/90-linerate-rdma.conf"]}), PASS),
        (ObservedSettings({"changes": []}), PASS),
        (ObservedSettings({}), UNKNOWN),
        (ObservedSettings(error="unreachable: timed out"), UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_the_teardown_says_whether_the_files_of_the_settings_are_gone(
    seen: typing.Optional[ObservedSettings], status: str
) -> None:
    facts = TeardownFacts(
        ("worker-1", "by-pod"), kernel_settings={"worker-1": seen} if seen else {}, by_pods=("by-pod",)
    )
    found = [item for item in check_teardown(intent_of(), facts) if item.check == "teardown.settings"]
    assert [(item.subject, item.status) for item in found] == [("worker-1", status)]


def test_what_tuned_would_run_or_misread_is_refused() -> None:
    wrong = validate.check(intent_of(expected={"governor": "${f:exec:reboot}", "thp": "always", "cpu_driver": "a b"}))
    assert [(item.subject, item.status) for item in wrong] == [("rdma_cluster.tuning.expected.governor", FAIL)]
