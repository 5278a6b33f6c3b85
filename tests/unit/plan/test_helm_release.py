# SPDX-License-Identifier: GPL-3.0-or-later

"""The upgrade of a Helm release: what it keeps, what it names, and when it is refused."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller, PolicyState
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.chart_versions import (
    find_chart_version,
    is_older,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    DriverPolicy,
    OperatorUpgrade,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import JobNeeds, OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.helm_release import (
    DesiredRelease,
    ReleasePlan,
    plan_release,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operators import (
    list_packages,
    list_releases,
)

ROLE, LOOK = pathlib.Path(__file__).resolve().parents[3] / "roles" / "operators", "release_look.yml"
FABRIC: dict[str, typing.Any] = {
    "name": "c",
    "profile": "sriov_ethernet",
    "rdma": True,
    "select": {"hcas_per_node": 1, "netdev": ["e"]},
    "virtual_functions": 4,
    "resource_name": "r",
    "network": {"namespace": "t", "name": "n"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}
WANTED = DesiredRelease("gpu-operator", "gpu", "gpu-operator", "v26.3.3", {"driver": {"rdma": {"enabled": True}}}, True)
THERE: dict[str, typing.Any] = {
    "status": "deployed",
    "chart": "gpu-operator-v26.3.3",
    "revision": "4",
    "updated": "2026-01-02 03:00:05.123456789 +0000 UTC",
    "values": {"driver": {"rdma": {"enabled": True}}},
}
OLDER = {**THERE, "chart": "gpu-operator-v26.3.0"}


def plan(
    there: dict[str, typing.Any],
    disruption: str = "drain",
    *,
    may_wait: bool = False,
    waited_for: typing.Optional[dict[str, typing.Any]] = None,
    **changes: typing.Any,
) -> ReleasePlan:
    """:param waited_for: what was there before the wait; None: the same, unless the run still may wait"""
    wanted = dataclasses.replace(WANTED, **changes)
    if waited_for is None and not may_wait:
        waited_for = there
    return plan_release(wanted, there, typing.cast(typing.Any, disruption), 300, may_wait, waited_for or {})


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_first_installation_and_equal_release_are_permitted(disruption: str) -> None:
    first = OperatorUpgrade(
        "gpu-operator", "chart v26.3.3", {"rdma": {"enabled": True}}, creates="cluster-policy", installs=True
    )
    assert plan({}, disruption) == ReleasePlan(dict(WANTED.values), True, upgrade=first)
    assert plan({}, disruption, drains=False) == ReleasePlan(dict(WANTED.values), True)
    assert plan(THERE, disruption) == ReleasePlan(THERE["values"], False)


@pytest.mark.parametrize("disruption", ["none", "drain", "reboot"])
def test_release_that_was_upgraded_since_is_not_downgraded(disruption: str) -> None:
    newer = {**THERE, "chart": "gpu-operator-v26.10.0-rc.1"}
    for drains in (True, False):
        with pytest.raises(RdmaError, match=r"gpu-operator/gpu has chart gpu-operator-v26.10.0-rc.1") as error:
            plan(newer, disruption, drains=drains)
        assert "set version v26.10.0-rc.1 in operators_charts.gpu-operator" in error.value.remedy
        with pytest.raises(RdmaError, match="which is newer than"):
            plan({**newer, "status": "failed", "revision": "1"}, disruption, drains=drains)
    begun = plan({**newer, "status": "failed", "revision": "1"}, disruption, serves=False)
    assert begun.needed and begun.other_chart


def test_version_without_v_is_the_version_of_the_chart() -> None:
    assert not plan(THERE, "none", version="26.3.3").needed
    assert plan(OLDER, version="26.3.3").other_chart and not plan(THERE, version="26.3.3").other_chart


@pytest.mark.parametrize(
    ("first", "second", "older"),
    [
        ("1.9.0", "1.10.0", True),
        ("v1.10.0", "1.9.9", False),
        ("1.0.0-rc.2", "1.0.0-rc.10", True),
        ("1.0.0-rc.1", "v1.0.0", True),
        ("1.0.0", "1.0.0-rc.1", False),
        ("1.0.0-alpha", "1.0.0-alpha.1", True),
        ("1.0.0-1", "1.0.0-alpha", True),
        ("1.0.0+a", "1.0.0+b", False),
        ("1.2", "1.2.1", True),
        ("~1.2", "9.0.0", False),
        ("1.2.3", "latest", False),
    ],
)
def test_versions_have_the_precedence_of_semver(first: str, second: str, older: bool) -> None:
    assert is_older(first, second) is older


@pytest.mark.parametrize(
    ("chart", "version"),
    [
        ("gpu-operator-v26.3.3", "v26.3.3"),
        ("node-feature-discovery-0.18.0-rc.1", "0.18.0-rc.1"),
        ("kueue-0.17.2+build.5", "0.17.2+build.5"),
        ("own-chart-1.2", "1.2"),
        ("", ""),
    ],
)
def test_version_is_read_from_the_chart_of_a_release(chart: str, version: str) -> None:
    assert find_chart_version(chart) == version


def test_values_of_an_admin_are_kept_and_need_no_upgrade() -> None:
    values: dict[str, typing.Any] = {
        "driver": {"version": "570.1", "rdma": {"enabled": True}},
        "toolkit": {"enabled": False},
    }
    assert plan({**THERE, "values": values}, "none") == ReleasePlan(values, False)
    found = plan({**OLDER, "values": values})
    assert (found.values, found.needed) == (values, True)
    values["driver"]["rdma"] = {"enabled": False}
    found = plan({**THERE, "values": values})
    assert found.values == {"driver": {"version": "570.1", "rdma": {"enabled": True}}, "toolkit": {"enabled": False}}
    assert found.summary == "values driver.rdma.enabled; can restart drivers and drain nodes"


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (OLDER, "chart gpu-operator-v26.3.0 -> v26.3.3"),
        ({**THERE, "values": None}, "values driver"),
        ({**THERE, "status": "failed"}, "revision 4 is failed"),
        ({**THERE, "status": "pending-upgrade", "updated": "2026-01-01 03:00:05 +0000 UTC"}, "is pending-upgrade"),
    ],
)
def test_upgrade_that_can_restart_drivers_is_refused_without_permission_and_named_with_it(
    there: dict[str, typing.Any], words: str
) -> None:
    with pytest.raises(RdmaError, match=r"rdma_cluster.disruption is none") as error:
        plan(there, "none")
    assert words in error.value.seen and "set rdma_cluster.disruption to drain" in error.value.remedy
    summary = plan(there).summary
    assert words in summary and "can restart drivers and drain nodes" in summary
    assert "drain" not in plan(there, "none", drains=False).summary


def test_texts_of_values_are_in_no_message() -> None:
    there = {**THERE, "values": {"driver": {"rdma": {"enabled": "hunter2"}}}}
    with pytest.raises(RdmaError) as error:
        plan(there, "none")
    assert "hunter2" not in str(error.value) + plan(there).summary


def test_first_installation_that_was_interrupted_goes_on() -> None:
    ended = {"updated": "2026-01-01 03:00:05 +0000 UTC", "revision": "1"}
    for state in ("pending-install", "failed"):
        there = {**THERE, **ended, "status": state, "values": {"operator": {"nodeSelector": {"a": "b"}}}}
        found = plan(there, "none", serves=False)
        assert (found.needed, found.values, "drain" in found.summary) == (True, WANTED.values, False)
        assert found.upgrade is not None and found.upgrade.installs


@pytest.mark.parametrize("state", ["pending-install", "failed"])
def test_first_installation_that_serves_is_upgraded_as_any_other(state: str) -> None:
    """Helm was killed while it waited, or a hook failed: the drivers of the operator are loaded."""
    values = {"driver": {"version": "570.1", "rdma": {"enabled": True}}}
    there = {**THERE, "updated": "2026-01-01 03:00:05 +0000 UTC", "revision": "1", "status": state, "values": values}
    same = plan(there, "none")
    assert (same.needed, same.values, "drain" in same.summary, same.upgrade) == (True, values, False, None)
    for other in (
        {**there, "chart": OLDER["chart"]},
        {**there, "values": {"driver": {"version": "570.1"}}},
    ):
        with pytest.raises(RdmaError, match="disruption is none"):
            plan(other, "none")
        found = plan(other)
        assert found.values == values and "can restart drivers and drain nodes" in found.summary


@pytest.mark.parametrize(
    ("seen", "serves"),
    [
        ({}, False),
        (
            {
                "controllers": (
                    Controller("gpu-operator", "gpu-operator/gpu-operator", "", 1, 0, "helm", "gpu-operator"),
                )
            },
            False,
        ),
        (
            {
                "controllers": (
                    Controller("gpu-operator", "gpu-operator/gpu-operator", "", 1, 1, "helm", "gpu-operator"),
                )
            },
            True,
        ),
        ({"configurations": (PolicyState("ClusterPolicy", "gpu", ""),)}, False),
        ({"configurations": (PolicyState("ClusterPolicy", "gpu", "notReady"),)}, True),
        ({"drivers": (DriverPolicy("ClusterPolicy", "gpu", ready=True),)}, True),
        ({"drivers": (DriverPolicy("NicClusterPolicy", "nic", ready=True),)}, False),
    ],
)
def test_operator_that_runs_or_has_run_serves(seen: dict[str, typing.Any], serves: bool) -> None:
    intent = parse_intent([FABRIC], None, {"host": {"gpudirect": "peermem"}})
    found = list_releases(intent, OperatorsSeen(made=("gpu-operator",), **seen), collect_requests({}, {}, []))
    assert {item.operator: item.serves for item in found}["gpu-operator"] is serves


def test_an_operator_with_webhooks_for_the_jobs_of_others_does_not_stay_if_it_fails() -> None:
    intent = parse_intent([FABRIC], None, {})
    seen = OperatorsSeen(job=JobNeeds("PyTorchJob", 0, "q"), install=True)
    found = list_releases(intent, seen, collect_requests({}, {}, []))
    assert {item.operator: item.guards for item in found if item.operator in ("kueue", "sriov-network-operator")} == {
        "kueue": True,
        "sriov-network-operator": False,
    }


@pytest.mark.parametrize("state", ["pending-install", "pending-upgrade", "pending-rollback"])
def test_revision_that_another_program_works_on_is_waited_for_and_then_refused(state: str) -> None:
    running = {**THERE, "status": state}
    # whatever its time says: Helm wrote it by the clock of another machine
    for updated in (running["updated"], "2020-01-01 00:00:00 +0000 UTC", "2027-01-01 00:00:00 +0000 UTC", "yesterday"):
        seen = {**running, "updated": updated}
        assert plan(seen, may_wait=True).wait_seconds == 300
        with pytest.raises(RdmaError, match=f"is {state}, by its record since {re.escape(updated)}"):
            plan(seen, waited_for={})
        over = plan(seen, waited_for={key: seen[key] for key in ("revision", "status", "updated")})
        assert (over.wait_seconds, over.needed) == (0, True)


@pytest.mark.parametrize(
    "before",
    [
        {"revision": "3", "updated": "2026-01-02 02:00:00 +0000 UTC", "status": "pending-upgrade"},
        {"revision": "4", "updated": "2026-01-02 02:00:00 +0000 UTC", "status": "pending-upgrade"},
        {"revision": "4", "updated": THERE["updated"], "status": "pending-install"},
    ],
    ids=["revision", "time", "state"],
)
def test_revision_that_changed_while_the_run_waited_is_not_taken_up(before: dict[str, typing.Any]) -> None:
    with pytest.raises(RdmaError, match="another program is possibly changing it"):
        plan({**THERE, "status": "pending-upgrade"}, waited_for=before)


def test_role_compares_the_revision_before_its_wait_with_the_one_after_it() -> None:
    tasks = yaml.safe_load((ROLE / "tasks" / "release.yml").read_text(encoding="utf-8"))
    looks = [task["vars"] for task in tasks if task.get("ansible.builtin.include_tasks", {}).get("file", "") == LOOK]
    assert [look["operators_waited_for"] for look in looks] == [{}, "{{ operators_unfinished }}"]
    names = [next((key for key in task if "." in key), "") for task in tasks]
    waits, keeps = names.index("ansible.builtin.wait_for"), names.index("ansible.builtin.set_fact", 1)
    assert "operators_unfinished" in tasks[keeps]["ansible.builtin.set_fact"] and keeps < waits
    assert tasks[waits]["ansible.builtin.wait_for"] == {"timeout": "{{ operators_plan.wait_seconds }}"}


@pytest.mark.parametrize(("disruption", "upgrade"), [("none", False), ("drain", True)])
def test_packages_of_driver_operators_are_not_upgraded_where_nothing_may_be_disturbed(
    disruption: str, upgrade: bool
) -> None:
    intent = parse_intent([FABRIC], None, {"disruption": disruption, "host": {"gpudirect": "peermem"}})
    found = list_packages(intent, OperatorsSeen(olm=True), collect_requests({}, {}, []))
    rows = {row["package"]: row["upgrade"] for row in found}
    assert rows["gpu-operator-certified"] is upgrade and rows["nfd"] is True
