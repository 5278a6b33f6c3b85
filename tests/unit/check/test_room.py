# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes without room for the measuring pods: told before a run changes anything, with the request that fits."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.measurement.pod_room import (
    fit_request,
    format_amount,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.room import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import (
    ControllerFacts,
    NodeRoom,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

GIB = 1 << 30
ROOM = NodeRoom("worker-1", 8000, 16 * GIB, 500, GIB, 1000, GIB)


def found(
    *rooms: NodeRoom,
    rails: int = 1,
    pods: typing.Optional[dict[str, str]] = None,
    by_pods: tuple[str, ...] = (),
    nodes: tuple[str, ...] = ("worker-1",),
    **changes: typing.Any,
) -> list[Finding]:
    intent = parse_intent(
        [
            {
                "name": "compute",
                "profile": "sriov_infiniband",
                "select": {"hcas_per_node": rails, "subnet_manager": "any"},
                "virtual_functions": 8,
                "resource_name": "mlx",
                "network": {"name": "ib", "namespace": "test"},
                "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
                "pods": pods or {},
            }
        ]
    )
    seen = ControllerFacts("python3", ("network", "bandwidth"), "32.0.1", "k", True, "v1.34.4", room=rooms)
    return list(check(intent, dataclasses.replace(seen, **changes), nodes, by_pods))


def test_a_node_with_room_is_in_one_pass() -> None:
    (finding,) = found(ROOM, dataclasses.replace(ROOM, node="worker-2"), nodes=("worker-1", "worker-2"))
    assert (finding.check, finding.status, finding.subject) == ("validate.room", "pass", "2 nodes")


def test_cpus_that_pods_which_stay_leave_too_few_fail_with_the_request_that_fits() -> None:
    small = NodeRoom("worker-1", 2000, 16 * GIB, 150)
    (finding,) = found(small)
    assert (finding.status, finding.subject) == ("fail", "worker-1")
    assert finding.measured == "1850m CPU free: Allocatable 2, less 150m that pods request"
    assert finding.expected == "at least 2 CPU free: 1 pod of stage bandwidth with 2 each (rdma_fabrics[0].pods.cpu)"
    assert 'Set rdma_fabrics[0].pods.cpu: "1" in the intent' in finding.remedy
    # with that request it passes
    assert [item.status for item in found(small, pods={"cpu": "1"})] == ["pass"]


def test_each_rail_has_a_pod_and_the_smallest_node_decides() -> None:
    small, large = NodeRoom("worker-1", 10_000, 64 * GIB), NodeRoom("worker-2", 14_000, 64 * GIB)
    findings = found(small, large, rails=8, nodes=("worker-1", "worker-2"))
    assert [(item.subject, item.status) for item in findings] == [("worker-1", "fail"), ("worker-2", "fail")]
    assert all('pods.cpu: "1"' in item.remedy and "at least 16 CPU free: 8 pods" in item.expected for item in findings)


def test_pods_that_may_end_are_a_warning() -> None:
    (finding,) = found(NodeRoom("worker-1", 8000, 16 * GIB, 500, 0, 7000))
    assert finding.status == "warn" and "Other pods request the rest now" in finding.why
    assert 'pods.cpu: "500m"' in finding.remedy


def test_memory_is_judged_as_cpus_are() -> None:
    (finding,) = found(NodeRoom("worker-1", 8000, GIB, 0, 300 << 20))
    assert (finding.status, finding.measured) == (
        "fail",
        "724Mi memory free: Allocatable 1Gi, less 300Mi that pods request",
    )
    assert 'pods.memory: "704Mi"' in finding.remedy


def test_an_observer_takes_room_too() -> None:
    exact = NodeRoom("worker-1", 2000, 16 * GIB)
    assert [item.status for item in found(exact)] == ["pass"]
    assert [item.status for item in found(exact, by_pods=("worker-1",))] == ["fail"]


def test_a_node_that_fits_nothing_names_no_value() -> None:
    (finding,) = found(NodeRoom("worker-1", 1000, 16 * GIB, 1000))
    assert finding.status == "fail" and "No usable value" in finding.remedy and 'cpu: "' not in finding.remedy
    (over,) = found(NodeRoom("worker-1", 1000, 16 * GIB, 3000))
    assert over.measured.startswith("0 CPU free"), "more is requested than there is"


def test_a_run_that_does_not_measure_is_only_warned() -> None:
    (finding,) = found(NodeRoom("worker-1", 1000, 16 * GIB), stages=("network",))
    assert finding.status == "warn"


def test_what_is_not_known_is_no_pass() -> None:
    (unread,) = found(ROOM, room=None, room_error="pods is forbidden")
    assert unread.status == "warn" and "pods is forbidden" in unread.why
    for room in (dataclasses.replace(ROOM, node="other"), dataclasses.replace(ROOM, cpu=None)):
        (finding,) = found(room)
        assert (finding.status, finding.subject) == ("warn", "worker-1")
    assert found(ROOM, server="") == found(ROOM, room=None) == [], "the API server was not asked"


def test_a_request_that_is_no_quantity_is_refused() -> None:
    (finding,) = found(ROOM, pods={"cpu": "two"})
    assert (finding.status, finding.subject) == ("fail", "rdma_fabrics[0].pods.cpu")
    assert "'two' is not a quantity" in finding.measured


@pytest.mark.parametrize(
    ("free", "pods", "cpu"),
    [(1999, 1, "1"), (2000, 1, "2"), (15_999, 8, "1"), (7999, 8, "900m"), (799, 8, ""), (-5, 1, ""), (150, 1, "100m")],
)
def test_a_request_that_fits(free: int, pods: int, cpu: str) -> None:
    assert fit_request(free, pods, "cpu") == cpu
    assert format_amount(1536 << 20, "memory") == "1536Mi" and format_amount(2 * GIB, "memory") == "2Gi"
