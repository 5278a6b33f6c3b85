# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.filter.collect import FilterModule, collect

HCAS = {"hcas": [{"name": "mlx5_0"}], "errors": []}


def one(result: typing.Any, **variables: typing.Any) -> dict[str, typing.Any]:
    return collect({"worker-1": {"discover_hcas": result, **variables}}, ["worker-1"], "discover_hcas", "hcas")[
        "worker-1"
    ]


def test_values_and_errors_by_host() -> None:
    hostvars = {
        "worker-1": {"discover_hcas": {"changed": False, "hcas": HCAS}},
        "worker-2": {"discover_hcas": {"unreachable": True, "msg": "No route to host"}},
        "spare": {"discover_hcas": {"hcas": HCAS}},
    }
    assert collect(hostvars, ["worker-1", "worker-2", "worker-3"], "discover_hcas", "hcas") == {
        "worker-1": {"value": HCAS, "error": None},
        "worker-2": {"value": None, "error": "unreachable: No route to host"},
        "worker-3": {"value": None, "error": "is not in the inventory"},
    }


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"failed": True, "msg": "sminfo is not installed", "hcas": HCAS}, "failed: sminfo is not installed"),
        (
            {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "python3: not found\n", "rc": 127},
            "failed: MODULE FAILURE; python3: not found",
        ),
        ({"failed": True}, "failed: no message"),
        ({"skipped": True, "false_condition": "x is defined"}, "was skipped: x is defined"),
        ({"skipped": True}, "was skipped: no reason given"),
        ({"changed": False, "hca": HCAS}, "the response of the module has no 'hcas'; it has: changed, hca"),
        ("text", "discover_hcas contains a string, not the result of a module"),
    ],
)
def test_no_bad_result_becomes_a_value(result: typing.Any, error: str) -> None:
    assert one(result) == {"value": None, "error": error}


def test_empty_answer_is_a_value_for_the_check_to_judge() -> None:
    assert one({"hcas": []}) == {"value": [], "error": None}
    assert one({"hcas": None}) == {"value": None, "error": None}


def test_host_that_was_not_asked_says_why() -> None:
    answers = collect(
        {"worker-1": {"another": 1}, "worker-2": {}}, ["worker-1", "worker-2"], "fabric_subnets", "subnets"
    )
    assert [("--limit" in answer["error"], "fabric_subnets" in answer["error"]) for answer in answers.values()] == [
        (True, True)
    ] * 2


@pytest.mark.parametrize(
    ("hostvars", "hosts", "said"),
    [
        ([], ["a"], "expected the variable hostvars"),
        ({}, "worker-1", "expected a list of host names"),
        ({}, None, "expected a list of host names"),
    ],
)
def test_wrong_use_is_refused(hostvars: typing.Any, hosts: typing.Any, said: str) -> None:
    with pytest.raises(AnsibleFilterError, match=said):
        collect(hostvars, hosts, "x", "y")


def test_name() -> None:
    assert FilterModule().filters() == {"collect": collect}


KEYS = some.sampled_from(["failed", "unreachable", "skipped", "hcas", "msg"])


@hypothesis.given(some.dictionaries(KEYS, some.none() | some.booleans() | some.text(max_size=5)))
def test_a_value_and_an_error_never_come_together(result: dict[str, typing.Any]) -> None:
    answer = one(result)
    assert set(answer) == {"value", "error"}
    assert answer["value"] is None or answer["error"] is None
    if result.get("failed") or result.get("unreachable") or result.get("skipped"):
        assert answer["error"]
