# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects that cannot be read keep nodes from going down. The reason names the cause, and the remedy is that of the
cause: rights where the API server refuses, and a later run where it is overloaded or cannot be reached."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.control_plane import (
    explain_why_kept,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.gate import explain_upgrade
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.health_checks import (
    explain_remediation_risk,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.room import (
    GateInputs,
    explain_unread_turns,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.unread import describe_unread
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.grace import SuspectTimer
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import Judgement
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import describe_unread_remedy
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.foreign import Kept
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_roll import plan_roll
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.roll_cluster import RollCluster
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers_namespace import NamespaceStays
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import read_gate_inputs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_turns import TurnReader

CONTROL = ClusterNode("c1", {"node-role.kubernetes.io/control-plane": ""}, ready=True, boot_id="b")
ERRORS = {
    "unreachable": ApiError(0, "Unreachable", "the API server did not respond: refused", "GET pods"),
    "throttled": ApiError(429, "TooManyRequests", "please try again later", "GET pods"),
    "failing": ApiError(503, "ServiceUnavailable", "etcdserver: leader changed", "GET pods"),
    "forbidden": ApiError(403, "Forbidden", "pods is forbidden", "GET pods"),
}
CAUSES = pytest.mark.parametrize(
    ("name", "cause", "remedy"),
    [
        ("unreachable", "the API server cannot be reached: the API server did not respond", "Check the network"),
        ("throttled", "overloaded (HTTP 429): please try again later", "Wait until the API server is less busy"),
        ("failing", "the API server failed (HTTP 503): etcdserver", "Check the API server (kubectl get --raw"),
        ("forbidden", "pods is forbidden", "the right"),
    ],
)


class Cluster:
    """A cluster whose pods, or objects of another kind, cannot be read."""

    def __init__(self, kind: str, error: ApiError) -> None:
        self.kind, self.error = kind, error

    def serves(self, _group: str) -> bool:
        return True

    def list(self, kind: str, *_place: str, **_more: str) -> Listing:
        if kind == self.kind:
            raise self.error
        return Listing((), "1")

    def pages(self, kind: str, *_place: str, **_more: str) -> typing.Iterator[typing.Any]:
        return iter(self.list(kind).items)


def check(told: str, name: str, cause: str, remedy: str) -> None:
    assert cause in told and remedy in told, told
    assert ("right" in told) is (name == "forbidden"), told


@CAUSES
def test_etcd_that_cannot_be_read_names_the_cause(name: str, cause: str, remedy: str) -> None:
    stand = read_gate_inputs(typing.cast(typing.Any, Cluster("Pod", ERRORS[name])), (CONTROL,))
    told = explain_why_kept(CONTROL, stand.nodes, stand.etcd, stand.unread["etcd"])
    assert "the members of etcd could not be read" in told
    check(told, name, cause, remedy)


@CAUSES
@pytest.mark.parametrize("kind", ["ClusterVersion", "NicDevice"])
def test_other_kinds_that_cannot_be_read_name_the_cause(kind: str, name: str, cause: str, remedy: str) -> None:
    cluster = typing.cast(typing.Any, Cluster(kind, ERRORS[name]))
    if name == "unreachable":
        with pytest.raises(ApiError, match="did not respond"):
            read_gate_inputs(cluster, (CONTROL,), turns=TurnReader(cluster, "ops"))
        return
    stand = read_gate_inputs(cluster, (CONTROL,), turns=TurnReader(cluster, "ops"))
    check(explain_upgrade(stand) or explain_unread_turns(stand), name, cause, remedy)


@CAUSES
def test_each_text_of_the_roll_has_the_remedy_of_the_cause(name: str, cause: str, remedy: str) -> None:
    why = ERRORS[name].no_answer
    kind = "MachineHealthCheck.cluster.x-k8s.io"
    check(explain_remediation_risk(CONTROL, (), {kind: why}, False)[0], name, cause, remedy)
    check(explain_unread_turns(GateInputs(unread={"SriovNetworkNodeState": why})), name, cause, remedy)
    pools = RollCluster(nodes=(CONTROL,), machines=frozenset({"c1"}), unread={"MachineConfigPool": why})
    check(pools.in_the_way(CONTROL, ()), name, cause, remedy)
    worker = ClusterNode("w1", {}, ready=True, boot_id="b")
    planned = plan_roll(
        {"w1": NodeDifferences((NodeDifference("BIOS", "SriovGlobalEnable", "Disabled", "Enabled", "reboot"),))},
        RollCluster(nodes=(worker,), unread={"Pod": why}),
        ClusterIntent(disruption="reboot"),
    )
    check(planned.refusal, name, cause, remedy)


def test_each_cause_among_several_has_its_step_once() -> None:
    reasons = [ERRORS[name].no_answer for name in ("throttled", "forbidden", "throttled", "forbidden")]
    told = describe_unread_remedy(reasons, "Give the right")
    assert told.count("Wait until") == 1 and told.count("Give the right") == 1 and not told.endswith(".")


@pytest.mark.parametrize("text", ["nodes: Too many requests, please try again later.", ERRORS["throttled"].no_answer])
def test_a_finding_on_unread_objects_names_the_throttling(text: str) -> None:
    finding = describe_unread("operators.read", "cluster", (text,), "Give the rights.")
    assert "wait until the API server is less busy" in finding.remedy
    assert "busy" not in describe_unread("operators.read", "cluster", ("nodes: forbidden",), "Give the rights.").remedy


@CAUSES
def test_a_wait_for_the_network_has_the_remedy_of_the_cause(name: str, cause: str, remedy: str) -> None:
    """The wait keeps the whole error, with the remedy of its own."""
    del cause
    node = SyncNode("a", "w1", "waiting", f"IPPool could not be read: {ERRORS[name].no_answer}")
    (found,) = SuspectTimer().apply((Judgement(node, "unread"),), 0.0)
    assert remedy.replace("the right", "the rights in docs/rbac") in found.remedy
    assert ("right" in found.remedy) is (name == "forbidden")
    throttled = dataclasses.replace(node, detail=f"IPPool could not be read: {ERRORS['throttled']}")
    (found,) = SuspectTimer().apply((Judgement(throttled, "unread"),), 0.0)
    assert "Wait until the API server is less busy" in found.remedy and "right" not in found.remedy


@pytest.mark.parametrize(
    ("error", "words"), [("pods: HTTP 429: Too many requests", "less busy"), ("pods", "the right to")]
)
def test_a_namespace_of_which_kinds_were_not_listed_has_the_remedy_of_the_cause(error: str, words: str) -> None:
    assert words in NamespaceStays("observers", Kept((), (error,))).remedy
