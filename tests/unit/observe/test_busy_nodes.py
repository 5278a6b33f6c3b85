# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on which the SR-IOV operator is at work: a teardown keeps the operator until it has finished."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.busy_nodes import (
    find_busy_nodes,
    keep_busy_operator,
    wait_until_idle,
)

Data = dict[str, typing.Any]
TASKS = pathlib.Path(__file__).resolve().parents[3] / "roles/teardown/tasks"
STATE = "sriovnetwork.openshift.io/{}-state"


def state(node: str, wanted: str = "", present: str = "", sync: str = "Succeeded") -> Data:
    notes = {STATE.format(key): value for key, value in (("desired", wanted), ("current", present)) if value}
    metadata = {"name": node, "namespace": "ops", "annotations": notes}
    return {"kind": "SriovNetworkNodeState", "metadata": metadata, "spec": {}, "status": {"syncStatus": sync}}


class Api:
    """Lists of node states, one after the other: the last one remains."""

    def __init__(self, *rounds: typing.Union[typing.Sequence[Data], ApiError]) -> None:
        self.rounds = list(rounds)

    def list(self, kind: str, namespace: str = "") -> Listing:
        if kind == "Node":
            return Listing(tuple({"metadata": {"name": name}} for name in ("w0", "w1")), "1")
        assert (kind, namespace) == ("SriovNetworkNodeState", "ops")
        found = self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]
        if isinstance(found, ApiError):
            raise found
        return Listing(tuple(found), "1")


def client(*rounds: typing.Union[typing.Sequence[Data], ApiError]) -> Cluster:
    return typing.cast(Cluster, Api(*rounds))


@pytest.mark.parametrize(
    ("found", "busy"),
    [
        (state("w0", "Drain_Required", "Draining"), "w0 (desired-state Drain_Required, current-state Draining)"),
        (state("w0", "Drain_Required", "Idle"), "w0 (desired-state Drain_Required, current-state Idle)"),
        (state("w0", "Idle", "DrainComplete"), "w0 (desired-state Idle, current-state DrainComplete)"),
        (state("w0", "Reboot_Required"), "w0 (desired-state Reboot_Required, current-state not set)"),
        (state("w0", "Idle", "Idle", "InProgress"), "w0 (syncStatus InProgress)"),
    ],
)
def test_a_node_that_the_operator_drains_or_configures_is_busy(found: Data, busy: str) -> None:
    assert find_busy_nodes(client([found, state("w1", "Idle", "Idle")]), "ops") == (busy,)


@pytest.mark.parametrize(
    "found",
    [
        state("w0"),
        state("w0", "Idle", "Idle", "Failed"),
        state("w0", "Idle", "Idle", ""),
        state("gone", "Drain_Required", "Draining"),
        state("gone", sync="InProgress"),
    ],
)
def test_a_node_that_is_idle_or_has_left_the_cluster_is_not_busy(found: Data) -> None:
    assert find_busy_nodes(client([found]), "ops") == ()


def test_a_cluster_without_the_kind_has_no_busy_nodes_and_a_refusal_is_no_answer() -> None:
    assert find_busy_nodes(client(ApiError(404, "NotFound", "no such kind", "GET")), "ops") == ()
    with pytest.raises(ApiError):
        find_busy_nodes(client(ApiError(403, "Forbidden", "forbidden", "GET")), "ops")


def test_the_wait_ends_with_the_last_drain_or_with_its_limit() -> None:
    times: list[float] = [0.0]

    def pause(seconds: float) -> None:
        times.append(times[-1] + seconds)

    draining = [state("w0", "Drain_Required", "Draining")]
    assert wait_until_idle(client(draining, draining, [state("w0")]), "ops", 300, lambda: times[-1], pause) == ()
    assert times[-1] == 10.0
    times[:] = [0.0]
    (busy,) = wait_until_idle(client(draining), "ops", 300, lambda: times[-1], pause)
    assert busy.startswith("w0 ") and times[-1] == 300.0
    times[:] = [0.0]
    assert wait_until_idle(client(draining), "ops", 0, lambda: times[-1], pause) == (busy,) and times == [0.0]


def test_the_remedy_says_how_to_go_on() -> None:
    kept = keep_busy_operator("SR-IOV network operator in ops", "ops", ("w0 (syncStatus InProgress)",))
    assert kept.why == "the SR-IOV operator still drains or configures nodes: w0 (syncStatus InProgress)"
    assert "kubectl get -n ops sriovnetworknodestates" in kept.remedy and "teardown_operator: true" in kept.remedy


def test_the_teardown_waits_before_it_removes_the_operator_and_keeps_the_namespace_of_a_busy_one() -> None:
    tasks: list[Data] = yaml.safe_load((TASKS / "cluster.yml").read_text(encoding="utf-8"))
    names = [task["name"] for task in tasks]
    (wait,) = [task for task in tasks if task.get("register") == "teardown_settled"]
    options = wait["linerate.rdma.sriov_operator_info"]
    assert options["settle_seconds"] == "{{ teardown_wait_seconds }}" and wait["when"] == "teardown_operator | bool"
    assert options["release"] == "{{ teardown_sriov_release }}"
    assert names.index("Take back MachineConfigs and KubeletConfigs in one roll") < names.index(wait["name"])
    assert names.index(wait["name"]) < names.index("Take back the operator")
    (spaces,) = [task for task in tasks if task["name"].startswith("Take back the namespaces")]
    assert "teardown_settled.busy" in spaces["linerate.rdma.custom_resources"]["keep_namespaces"]
    removing = yaml.safe_load((TASKS / "operator.yml").read_text(encoding="utf-8"))
    for task in removing:
        if "kubernetes.core.helm" in task or "kubernetes.core.k8s" in task:
            assert "teardown_settled.busy | length == 0" in task["when"], task["name"]
            assert "teardown_settled.release_stays" in str(task["when"]), task["name"]
            assert "teardown_before.users" not in str(task["when"]), task["name"]
