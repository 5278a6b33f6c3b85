# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that the SR-IOV operator makes without a drain, and the pods with virtual functions that its drains leave."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import check_plan, may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Disruption
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import Policy
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE, NOW, OBJECTS, Cluster

Data = dict[str, typing.Any]

(POD,) = OBJECTS["Pod"]
STATE: Data = next(item for item in OBJECTS["SriovNetworkNodeState"] if item["metadata"]["name"] == "kl-a")
(PF,) = STATE["status"]["interfaces"]
BARE: Data = {
    **STATE,
    "spec": {},
    "status": {**STATE["status"], "interfaces": [{**{k: v for k, v in PF.items() if k != "Vfs"}, "numVfs": 0}]},
}
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
OPERATOR: Data = {"kind": "SriovOperatorConfig", "metadata": {"name": "default"}, "spec": {}}
UNDRAINED: Data = {**OPERATOR, "spec": {"disableDrain": True}}
NO_CLAIMS = ApiError(404, "NotFound", "x", "GET")
ROUTE = {"kl-a": {PF["pciAddress"]: "the default route of the node"}}
RENAMED = dataclasses.replace(NOW, resource_name="rails")


class WithFields(Cluster):
    def __init__(self, **changes: typing.Any) -> None:
        super().__init__(**{"NicClusterPolicy": NO_CLAIMS, **changes})

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        # as the real client does, so that an invalid namespace is refused
        path_of(kind, namespace)
        return super().list(kind, namespace, selector)


def pod(owner: str = "Job", **resources: str) -> Data:
    """A pod with the virtual function of the fixture, by a resource of another name."""
    made: Data = copy.deepcopy(POD)
    made["spec"]["containers"][0]["resources"] = {"limits": resources, "requests": resources}
    made["metadata"]["ownerReferences"] = [{"kind": owner, "name": "x", "uid": "u", "controller": True}]
    return made


def claiming() -> Data:
    made = pod()
    del made["metadata"]["annotations"]
    made["spec"]["resourceClaims"] = [{"name": "vf", "resourceClaimName": "vf-0"}]
    return made


def read(policy: Policy, used: typing.Any = None, **objects: typing.Any) -> DisruptionPlan:
    everything = {"ResourceClaim": NO_CLAIMS, "ResourceClaimTemplate": NO_CLAIMS, "SriovOperatorConfig": (OPERATOR,)}
    cluster = typing.cast(Api, WithFields(**{**everything, **objects}))
    return read_plan(cluster, "ops", RenderedObjects((policy,)), ("kl-a",), ClusterIntent(), used)


def judge(planned: DisruptionPlan, check: str, disruption: Disruption = "drain") -> Finding:
    (found,) = [
        one
        for one in check_plan(ClusterIntent(disruption=disruption), planned, ("kl-a",))
        if one.check == check and one.subject == "kl-a"
    ]
    return found


@pytest.mark.parametrize(
    "user",
    [pod(**{"nvidia.com/hostdev": "1"}), claiming(), pod("DaemonSet", **{"openshift.io/igbvf": "1"})],
    ids=["another device plugin", "a ResourceClaim", "a DaemonSet"],
)
def test_a_pod_with_a_function_that_the_drain_leaves_blocks_the_change(user: Data) -> None:
    planned = read(MORE, Pod=(user,))
    found = judge(planned, "network.drain")
    assert found.status == "fail" and "evicts only pods that request a resource of openshift.io" in found.measured
    assert "default/op-a" in found.measured and "lose their network devices" in found.why
    assert "A DaemonSet creates its pods again: change its nodeSelector" in found.measured
    assert not may_go_on(ClusterIntent(), planned, ("kl-a",))
    # it loses the function all the same where nothing is drained
    undrained = read(MORE, Pod=(user,), SriovOperatorConfig=(UNDRAINED,))
    assert undrained.nodes[0].pods == ("default/op-a",)


def test_a_pod_without_such_a_function_blocks_nothing() -> None:
    other = pod(**{"nvidia.com/hostdev": "1"})
    other["metadata"]["annotations"][NETWORK_STATUS] = other["metadata"]["annotations"][NETWORK_STATUS].replace(
        "0000:01:10.0", "0000:81:10.0"
    )
    ended = {**pod(**{"nvidia.com/hostdev": "1"}), "status": {"phase": "Succeeded"}}
    for user in (other, ended, POD):
        blockers = read(MORE, Pod=(user,)).nodes[0].blockers
        assert not any("lose their network devices" in why for why in blockers), user


def test_another_resource_name_of_functions_in_use_is_refused() -> None:
    planned = read(RENAMED)
    (node,) = planned.nodes
    assert (node.action, node.undrained, node.pods, planned.pools) == ("drain", True, ("default/op-a",), ())
    assert "resource igbvf -> rails" in " ".join(node.reasons)
    found = judge(planned, "network.drain")
    assert "would share their network devices" in found.measured and "default/op-a" in found.measured
    assert judge(planned, "network.disruption", "none").status == "fail"
    assert not may_go_on(ClusterIntent(), planned, ("kl-a",))


def test_another_resource_name_of_unused_functions_is_applied_and_named() -> None:
    planned = read(RENAMED, Pod=())
    (node,) = planned.nodes
    assert (node.action, node.undrained, node.blockers) == ("configure", False, ())
    measured = judge(planned, "network.disruption", "none").measured
    assert "resource igbvf -> rails, and no running pod uses them, without a drain" in measured
    assert "are created" not in measured
    assert may_go_on(ClusterIntent(disruption="none"), planned, ("kl-a",))


def test_another_resource_name_is_refused_where_the_pods_are_unknown() -> None:
    planned = read(RENAMED, Pod=ApiError(403, "Forbidden", "cannot list", "GET"))
    assert "could not be read" in judge(planned, "network.drain").measured
    assert not may_go_on(ClusterIntent(), planned, ("kl-a",))


def test_first_functions_of_a_nic_in_use_count_as_a_drain() -> None:
    jumbo = dataclasses.replace(NOW, mtu=9000)
    planned = read(jumbo, ROUTE, SriovNetworkNodeState=(BARE,), Pod=())
    (node,), (pool,) = planned.nodes, planned.pools
    assert (node.action, node.undrained, node.loses_link) == ("drain", True, True)
    assert (pool.undrained, pool.nodes, pool.at_once) == (True, ("kl-a",), 1)
    refused = judge(planned, "network.disruption", "none")
    assert refused.status == "fail" and "MTU 1500 -> 9000" in refused.measured
    assert "the default route of the node" in refused.measured
    allowed = judge(planned, "network.disruption")
    assert allowed.status == "warn" and "console" in allowed.remedy
    assert any("is changed, without a drain" in line for line in describe_plan(planned))
    assert not may_go_on(ClusterIntent(disruption="none"), planned, ("kl-a",))


def test_first_functions_of_a_free_nic_name_a_change_of_its_mtu() -> None:
    planned = read(dataclasses.replace(NOW, mtu=9000), {"kl-a": {}}, SriovNetworkNodeState=(BARE,))
    found = judge(planned, "network.disruption", "none")
    assert planned.nodes[0].action == "configure" and found.status == "pass"
    assert "virtual functions are created where none exist" in found.measured and "MTU 1500 -> 9000" in found.measured


@pytest.mark.parametrize("control", [False, True], ids=["workers", "control-plane nodes"])
def test_nics_in_use_of_more_nodes_than_the_intent_permits_close_the_gate(control: bool) -> None:
    labels = {"node-role.kubernetes.io/control-plane": ""} if control else {}
    (first,) = OBJECTS["Node"]
    names = ("kl-a", "kl-b", "kl-c")
    nodes = tuple(
        {**first, "metadata": {**first["metadata"], "name": name, "labels": {**first["metadata"]["labels"], **labels}}}
        for name in names
    )
    states = tuple({**BARE, "metadata": {**BARE["metadata"], "name": name}} for name in names)
    used = dict.fromkeys(names, ROUTE["kl-a"])
    everything: Data = {"Node": nodes, "SriovNetworkNodeState": states, "Pod": (), "SriovOperatorConfig": (OPERATOR,)}
    cluster = typing.cast(Api, WithFields(**everything))
    planned = read_plan(cluster, "ops", RenderedObjects((NOW,)), names, ClusterIntent(), used)
    told = " ".join(planned.closed)
    assert "changes 3 nodes at the same time" in told and "at most 1 further node at a time" in told
    assert ("allows more than one control-plane node" in told) is control
    assert not may_go_on(ClusterIntent(), planned, names)
