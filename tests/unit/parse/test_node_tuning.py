# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of OpenShift's Node Tuning Operator."""

from __future__ import annotations

import pathlib
import typing

import hypothesis
import hypothesis.strategies as some
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.node_tuning import (
    explain_invalid,
    node_profile,
    parse_recommendations,
    selected_nodes,
)

FIXTURE = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes/node-tuning.yaml"
ITEMS = {
    (item["kind"], item["metadata"]["name"]): item
    for item in yaml.safe_load(FIXTURE.read_text(encoding="utf-8"))["items"]
}


def test_a_profile_that_is_applied() -> None:
    found = node_profile(ITEMS["Profile", "worker-1"])
    assert (found.node, found.wanted, found.active) == ("worker-1", "openshift-node", "openshift-node")
    assert (found.current, found.applied, found.degraded) == (True, True, False)
    # the operator hands over what it makes itself, and its own profile is in the image
    assert found.data is None


def test_a_profile_with_an_error_says_it() -> None:
    found = node_profile(ITEMS["Profile", "worker-2"])
    assert found.degraded and found.message.endswith("Failed to set sysctl parameter 'vm.min_free_kbyte'")
    assert found.data == "[main]\ninclude=openshift-node\n"


def test_conditions_of_before_are_not_of_now() -> None:
    found = node_profile(ITEMS["Profile", "worker-3"])
    assert (found.wanted, found.active, found.current, found.applied) == (
        "linerate-rdma",
        "openshift-node",
        False,
        False,
    )


def test_an_older_operator_does_not_say_what_its_conditions_are_about() -> None:
    item = ITEMS["Profile", "worker-1"]
    status = {key: value for key, value in item["status"].items() if key != "observedGeneration"}
    assert node_profile({**item, "status": status}).current


def test_a_profile_without_a_status_is_not_applied() -> None:
    found = node_profile({"metadata": {"name": "worker-9"}, "spec": {}})
    assert (found.wanted, found.active, found.applied) == ("", "", False)


def test_tuneds() -> None:
    assert (
        explain_invalid(ITEMS["Tuned", "default"]) == ""
        and explain_invalid(ITEMS["Tuned", "linerate-rdma"]) == "duplicate profile linerate-rdma"
    )
    found = [parse_recommendations(ITEMS["Tuned", name]) for name in ("default", "linerate-rdma")]
    assert [{entry.profile: entry.priority for entry in entries} for entries in found] == [
        {"openshift-control-plane": 30, "openshift-node": 40},
        {"linerate-rdma": 10},
    ]


def test_recommendations_of_a_tuned() -> None:
    control, worker = parse_recommendations(ITEMS["Tuned", "default"])
    assert control.matches == (
        {"node-role.kubernetes.io/control-plane": None},
        {"node-role.kubernetes.io/infra": None},
    )
    assert (worker.profile, worker.priority, worker.matches, worker.pool_labels) == ("openshift-node", 40, ({},), {})


def test_conditions_within_conditions_hold_together() -> None:
    inner = [{"label": "b"}, {"label": "a", "value": "2"}, {"label": "a"}, {"label": "c", "type": "pod"}]
    entry = {"profile": "p", "priority": 25, "match": [{"label": "a", "value": "1", "match": inner}]}
    (found,) = parse_recommendations({"metadata": {"name": "t"}, "spec": {"recommend": [entry]}})
    assert found.matches == ({"a": "1", "b": None}, {"a": "1"})


def test_conditions_that_are_nested_too_deep_are_an_error() -> None:
    match: list[typing.Any] = []
    for _level in range(40):
        match = [{"label": "a", "match": match}]
    entry = {"profile": "p", "priority": 25, "match": match}
    with pytest.raises(ResourceError, match="more than 32 levels"):
        parse_recommendations({"metadata": {"name": "t"}, "spec": {"recommend": [entry]}})


def test_a_performance_profile() -> None:
    assert selected_nodes(ITEMS["PerformanceProfile", "gpu"]) == {"node-role.kubernetes.io/worker": ""}


@pytest.mark.parametrize(
    "wrong",
    [{"spec": ["x"]}, {"status": {"conditions": "x"}}, {"status": {"observedGeneration": "x"}}, {"metadata": {}}],
)
def test_another_shape_is_an_error(wrong: dict[str, typing.Any]) -> None:
    with pytest.raises(ResourceError):
        node_profile({**ITEMS["Profile", "worker-1"], **wrong})


@hypothesis.given(some.text(), some.text(), some.booleans(), some.integers(0, 10), some.integers(0, 10))
def test_what_is_written_is_read(wanted: str, active: str, applied: bool, seen: int, generation: int) -> None:
    status = {
        "tunedProfile": active,
        "observedGeneration": seen,
        "conditions": [{"type": "Applied", "status": str(applied)}],
    }
    item = {
        "metadata": {"name": "a", "generation": generation},
        "spec": {"config": {"tunedProfile": wanted}},
        "status": status,
    }
    found = node_profile(item)
    assert (found.wanted, found.active, found.applied, found.current) == (wanted, active, applied, seen >= generation)
