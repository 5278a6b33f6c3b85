# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a BIOS setting against what is wanted: values in the vendors' words, what waits, what can't be
written."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted, list_states
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import (
    KEYS,
    STATES,
    BiosAttribute,
    BiosJob,
    BiosSetting,
    BiosState,
    BiosValue,
    NodeBios,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.values import value_matches

ON_OFF = (BiosValue("Enabled", "Enabled"), BiosValue("Disabled", "Disabled"))
BIOS = NodeBios("Dell Inc.", "PowerEdge R750", "1.8.2", registry="/registry", jobs=(), lockdown=False)


def judged(wanted: typing.Any, *attributes: BiosAttribute, key: str = "sriov", **bios: typing.Any) -> BiosState:
    setting = BiosSetting(typing.cast(typing.Any, key), attributes, ("SR-?IOV",))
    (one,) = list_states(dataclasses.replace(BIOS, settings=(setting,), **bios), find_wanted({key: wanted}))
    return one


def switch(current: typing.Any, **other: typing.Any) -> BiosAttribute:
    return BiosAttribute(**{"name": "Sriov", "current": current, "allowed": ON_OFF, **other})


@pytest.mark.parametrize(
    ("current", "pending", "read_only", "state"),
    [
        ("Enabled", None, "", "ok"),
        ("Enabled", None, "lockdown", "ok"),
        ("Disabled", None, "", "wrong"),
        ("Disabled", None, "lockdown", "read_only"),
        ("Disabled", "Enabled", "", "pending"),
        ("Disabled", "Enabled", "job", "pending"),
        ("Enabled", "Disabled", "", "wrong"),
        ("Enabled", "Disabled", "job", "read_only"),
        ("Enable", "Enabled", "", "ok"),
        ("Auto", None, "", "unknown"),
        ("Auto", "Enabled", "", "pending"),
        ("Auto", "Disabled", "", "wrong"),
        ("Enabled", "Auto", "", "unknown"),
        ("Disabled", "Auto", "", "wrong"),
        (None, None, "", "unknown"),
    ],
)
def test_state_of_one_attribute(current: typing.Any, pending: typing.Any, read_only: str, state: str) -> None:
    one = judged(True, switch(current, pending=pending, read_only=read_only))
    assert one.state == state and bool(one.why) == (state != "ok")


def test_the_worst_attribute_is_the_settings() -> None:
    both = judged(True, switch("Enabled", name="A"), switch("Disabled", name="B"), switch("Auto", name="C"))
    assert (both.state, both.why, both.measured) == (
        "wrong",
        "B: the value is Disabled, not on",
        "A Enabled, B Disabled, C Auto",
    )


def test_a_job_is_named_where_it_holds_the_setting() -> None:
    jobs = (BiosJob("JID_1", "Scheduled"),)
    assert judged(True, switch("Disabled", pending="Enabled"), jobs=jobs).job == "JID_1"
    assert judged(True, switch("Enabled"), jobs=jobs).job == ""


def test_a_value_that_the_attribute_does_not_know() -> None:
    profile = BiosAttribute(
        "SysProfile", "Custom", allowed=(BiosValue("Custom", "Custom"), BiosValue("PerfOptimized", "Performance"))
    )
    workload = BiosAttribute(
        "WorkloadProfile",
        "NotConfigured",
        allowed=(BiosValue("NotConfigured", "Not Configured"), BiosValue("HpcProfile", "HPC Profile")),
    )
    one = judged(["MaximumPerformance", "performance"], profile, workload, key="profile")
    assert (one.state, one.why) == ("wrong", "SysProfile: the value is Custom, not MaximumPerformance or performance")
    neither = judged("Turbo", profile, workload, key="profile")
    assert (
        neither.state == "wrong" and "does not support that value; allowed values: Custom, PerfOptimized" in neither.why
    )
    assert (
        judged("Performance", dataclasses.replace(profile, current="PerfOptimized"), workload, key="profile").state
        == "ok"
    )


def test_nothing_found_says_what_was_looked_for() -> None:
    assert judged(True).why == "No such attribute in the registry /registry. Searched for: SR-?IOV."
    assert "registry is missing (404)" in judged(True, registry="", registry_error="404").why
    (one,) = list_states(BIOS, find_wanted({"smt": True}))
    assert one.state == "unknown" and "was not requested" in one.why


def test_what_waits_was_not_read() -> None:
    assert (
        judged(True, switch("Enabled"), pending_error="the settings object could not be read: 500").state == "unknown"
    )
    assert judged(True, switch("Disabled"), pending_error="the settings object could not be read: 500").state == "wrong"


@pytest.mark.parametrize(
    "wanted", [{"sr_iov": True}, {"sriov": None}, {"sriov": []}, {"sriov": {}}, {"sriov": [[]]}, {"sriov": " "}]
)
def test_what_is_wanted_must_be_something(wanted: dict[str, typing.Any]) -> None:
    with pytest.raises(RdmaError, match="wanted"):
        find_wanted(wanted)


@pytest.mark.parametrize(
    ("key", "wanted", "value", "label", "answer"),
    [
        ("sriov", True, "Enable", "1", True),
        ("sriov", "on", "Yes", None, True),
        ("sriov", "off", False, None, True),
        ("sriov", 1, "Enabled", None, True),
        ("smt", False, "Enable", "0", False),
        ("smt", True, "0", "Enable", True),
        ("smt", True, "Auto", "255", None),
        ("smt", True, None, None, None),
        ("numa_per_socket", 1, "NPS1", None, True),
        ("numa_per_socket", "NPS4", "NPS1", None, False),
        ("numa_per_socket", 1, "Disabled", "Disabled", True),
        ("numa_per_socket", 2, "2-Way", "2-Way Clustering", True),
        ("numa_per_socket", 2, "Enable SNC2 (2-clusters)", "2", True),
        ("numa_per_socket", 1, "OneMemoryDomainPerSocket", None, True),
        ("numa_per_socket", 4, "Enabled", None, None),
        ("numa_per_socket", 1, "Auto", None, None),
        ("max_read_request", 4096, "4096B", "5", True),
        ("max_read_request", 4096, "4096 Bytes", None, True),
        ("max_read_request", 4096, "Auto", "7", None),
        ("max_read_request", "auto", "AUTO", "AUTO", True),
        ("c_states", False, "NoCStates", None, True),
        ("c_states", False, "C0/C1 state", "0", True),
        ("c_states", "C2 state", "C0/C1 state", "0", False),
        ("c_states", True, "Autonomous", None, None),
        ("profile", "performance", "PerfOptimized", "Performance", True),
    ],
)
def test_values_in_the_words_of_vendors(
    key: str, wanted: typing.Any, value: typing.Any, label: typing.Any, answer: typing.Optional[bool]
) -> None:
    assert value_matches(key, [wanted], value, label) is answer


VALUES = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.sampled_from(["Enabled", "Disable", "Auto", "NPS1", "4096B", "0", "1"])
    | some.text(max_size=8)
)


@hypothesis.given(some.sampled_from(KEYS), VALUES, VALUES, VALUES, some.booleans(), some.sampled_from(["", "lockdown"]))
def test_ok_is_only_what_is_right_and_stays_so(
    key: str, wanted: typing.Any, current: typing.Any, pending: typing.Any, known: bool, held: str
) -> None:
    hypothesis.assume(wanted is not None and str(wanted).strip())
    allowed = (BiosValue(str(current), "1"), BiosValue("Enabled", "0")) if known else ()
    one = judged(wanted, BiosAttribute("A", current, pending=pending, allowed=allowed, read_only=held), key=key)
    assert one.state in STATES and bool(one.why) == (one.state != "ok")
    labels = ["1"] if known and str(current) == current else [None]
    if one.state == "ok":
        assert current is not None and any(value_matches(key, [wanted], current, label) for label in labels)
    if one.state == "read_only":
        assert held
    if one.state == "pending":
        assert pending is not None


@hypothesis.given(some.sampled_from(KEYS), VALUES)
def test_an_automatic_value_is_never_on_or_off(key: str, label: typing.Any) -> None:
    assert value_matches(key, [True], "Auto", "255") is None and value_matches(key, [False], "Auto", "255") is None
    assert value_matches(key, [True], None, label) is None
