# SPDX-License-Identifier: GPL-3.0-or-later

"""What a teardown refuses because of nodes: the driver of NICs under pods, and nodes that must not go down now."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    DrainOptions,
    Intent,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import ClusterPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.scope import Scope
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.known_uses import KnownUses
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.reboots import find_ended_by_reboot
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import drain_blockers
from tests.unit.run.test_driver_plan import FABRIC, NIC, fields
from tests.unit.run.test_intents import SELECTOR, Api, intent_of, objects_of, scope_of

Item = dict[str, typing.Any]
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def node(name: str, **labels: str) -> Item:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": READY}


def gate(intent: Intent, *items: Item) -> None:
    named = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, operator_namespace="sriov"))
    api, removal = Api(*objects_of(named), *items), Removal(KINDS, SELECTOR, scope=scope_of(intent))
    # a run of stage network saw that the nodes use no NIC themselves
    idle = KnownUses({"a0": {}, "b0": {}})
    refuse_removal(typing.cast(Cluster, api), removal, intent.cluster.disruption, intent.cluster, idle)


def with_driver(**wanted: str) -> Intent:
    return parse_intent(
        [FABRIC], None, {"intent_name": "a", "node_selector": {"kind": "a"}, "network_operator": wanted}
    )


def pod(resource: str = "", place: str = "b0", owner: str = "Job", phase: str = "Running", **spec: typing.Any) -> Item:
    limits = {resource: "1"} if resource else {}
    metadata = {"name": "train", "namespace": "team-x", "labels": {}, "annotations": spec.pop("annotations", {})}
    return {
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [{"kind": owner, "name": "o", "uid": "u"}]},
        "spec": {"nodeName": place, "containers": [{"name": "c", "resources": {"limits": limits}}], **spec},
        "status": {"phase": phase},
    }


NODES = (node("a0", kind="a", **NIC), node("b0", kind="b", **NIC), node("plain", kind="a"))


@pytest.mark.parametrize(
    ("item", "refused"),
    [
        (pod("example.com/vf"), True),
        # no drain replaces the pods of a service
        (pod("rdma/rdma_shared", "a0", "StatefulSet"), True),
        (pod(annotations={"k8s.v1.cni.cncf.io/networks": "storage"}), True),
        (pod("nvidia.com/gpu", hostNetwork=True), True),
        (pod(resourceClaims=[{"name": "vf", "resourceClaimTemplateName": "vf"}]), True),
        (pod("nvidia.com/gpu"), False),
        (pod("devices.kubevirt.io/kvm"), False),
        (pod(hostNetwork=True), False),
        (pod("example.com/vf", phase="Succeeded"), False),
        (pod("example.com/vf", "plain"), False),
        (pod("example.com/vf", ""), False),
    ],
)
def test_driver_is_not_removed_from_under_pods_of_any_node(item: Item, refused: bool) -> None:
    if not refused:
        gate(with_driver(ofed_driver="doca3"), *NODES, item)
        return
    with pytest.raises(RdmaError, match=f"Pod team-x/train on {item['spec']['nodeName']}") as told:
        gate(with_driver(ofed_driver="doca3"), *NODES, item)
    assert "NicClusterPolicy nic-cluster-policy" in str(told.value) and "kubectl drain" in told.value.remedy
    gate(with_driver(), *NODES, item)


@pytest.mark.parametrize(
    ("name", "state", "refused"),
    [
        ("a0", "drain-required", True),
        ("b0", "cordon-required", True),
        ("a0", "upgrade-required", False),
        ("a0", "upgrade-done", False),
        ("plain", "drain-required", False),
    ],
)
def test_driver_is_not_removed_during_its_upgrade(name: str, state: str, refused: bool) -> None:
    """The operator would remove its label, and leave the node cordoned."""
    label = "nvidia.com/ofed-driver-upgrade-state"
    nodes = [{**item, "metadata": {**item["metadata"]}} for item in NODES]
    for item in nodes:
        if item["metadata"]["name"] == name:
            item["metadata"]["labels"] = {**item["metadata"]["labels"], label: state}
    if not refused:
        gate(with_driver(ofed_driver="doca3"), *nodes)
        return
    with pytest.raises(RdmaError, match=f"{name}: NVIDIA's network operator upgrades its driver") as told:
        gate(with_driver(ofed_driver="doca3"), *nodes)
    assert "No object of the cluster was removed" in told.value.seen and "run the teardown again" in told.value.remedy
    # the driver stays
    gate(with_driver(), *nodes)


@pytest.mark.parametrize(("ours", "refused"), [((), False), (("version",), False), (("image",), True)])
def test_driver_of_another_field_manager_stays(ours: tuple[str, ...], refused: bool) -> None:
    intent = with_driver(ofed_driver="doca3")
    (policy,) = (item for item in objects_of(intent) if item["kind"] == "NicClusterPolicy")
    policy["metadata"]["managedFields"] = [fields("helm", "version"), fields("linerate.rdma", *ours)]
    items = (*NODES, pod("example.com/vf"), policy)
    if not refused:
        gate(intent, *items)
        return
    with pytest.raises(RdmaError, match="Pod team-x/train"):
        gate(intent, *items)


POLICY = "SriovNetworkNodePolicy"
CHECK = {
    "kind": "NodeHealthCheck",
    "metadata": {"name": "nhc", "labels": {}},
    "spec": {"selector": {"matchLabels": {"kind": "a"}}},
}


UPGRADE: Item = {
    "kind": "ClusterVersion",
    "metadata": {"name": "version", "labels": {}},
    "status": {"conditions": [{"type": "Progressing", "status": "True", "message": "Working towards 4.20.3"}]},
}
#: as clusters without a device plugin give a pod its RDMA devices
VERBS: Item = {"volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]}
DEV: Item = {"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]}


@pytest.mark.parametrize(
    ("item", "counts"),
    [
        (pod("nvidia.com/gpu", **VERBS), True),
        (pod(hostNetwork=True, owner="DaemonSet", **VERBS), True),
        (pod(owner="StatefulSet", **DEV), True),
        (pod(containers=[{"name": "c", "securityContext": {"privileged": True}}]), True),
        # the pods of the driver and of CNI plugins
        (pod(owner="DaemonSet", **DEV), False),
        (pod(containers=[{"name": "c", "securityContext": {"privileged": True}}], owner="DaemonSet"), False),
        (pod(volumes=[{"name": "d", "hostPath": {"path": "/data"}}]), False),
    ],
)
def test_driver_is_not_removed_from_under_pods_that_open_the_devices_of_their_node(item: Item, counts: bool) -> None:
    if not counts:
        gate(with_driver(ofed_driver="doca3"), *NODES, item)
        return
    with pytest.raises(RdmaError, match="Pod team-x/train on b0") as told:
        gate(with_driver(ofed_driver="doca3"), *NODES, item)
    assert "A DaemonSet creates its pods again: change its nodeSelector" in told.value.remedy


def settings(namespace: str = "", **spec: typing.Any) -> Item:
    place = namespace or sriov().cluster.operator_namespace
    return {
        "kind": "SriovOperatorConfig",
        "metadata": {"name": "default", "namespace": place, "labels": {}},
        "spec": spec,
    }


def sriov(rdma_mode: str = "", most: int = 1, disruption: str = "reboot") -> Intent:
    pool = {"max_unavailable": most, **({"rdma_mode": rdma_mode} if rdma_mode else {})}
    return intent_of("compute", "a", disruption=disruption, node_pool=pool)


def anywhere() -> Intent:
    """Return an intent that does not name the namespace of the operator."""
    intent = sriov()
    return dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, operator_namespace=None))


def forged(kind: str = "a") -> Item:
    """Return a policy of a tenant with the label and the field manager of the collection."""
    (own,) = (item for item in objects_of(sriov()) if item["kind"] == POLICY)
    own["metadata"].update(namespace="team-x", uid="forged", name="theirs")
    own["spec"]["nodeSelector"] = {"kind": kind}
    return own


def operator() -> list[Item]:
    """Return the Deployment of the operator, and the ClusterRoleBinding that gives it rights."""
    container = {"name": "sriov-network-operator", "image": "o:1", "command": ["sriov-network-operator"]}
    metadata = {"name": "sriov-network-operator", "namespace": "sriov", "labels": {}}
    template = {"spec": {"serviceAccountName": "operator", "containers": [container]}}
    account = {"kind": "ServiceAccount", "namespace": "sriov", "name": "operator"}
    return [
        {"kind": "Deployment", "metadata": metadata, "spec": {"template": template}},
        {"kind": "ClusterRoleBinding", "metadata": {"name": "operator", "labels": {}}, "subjects": [account]},
    ]


@pytest.mark.parametrize(
    ("intent", "items", "why"),
    [
        (sriov("exclusive"), [CHECK], "a0: NodeHealthCheck nhc would remediate the node"),
        (sriov("exclusive"), [], ""),
        # a drain alone does not stop the kubelet
        (sriov(), [CHECK], ""),
        (sriov(), [CHECK, settings(configurationMode="systemd")], "a0: NodeHealthCheck nhc would remediate the node"),
        (sriov(disruption="drain"), [settings(configurationMode="systemd")], "rdma_cluster.disruption is 'drain'"),
        (sriov(disruption="drain"), [CHECK], ""),
        (
            sriov("exclusive"),
            [settings(disableDrain=True), node("a1", kind="a")],
            "all of its nodes to go down at the same time",
        ),
        (sriov("exclusive"), [settings(disableDrain=True)], ""),
        (sriov(), [settings(disableDrain=True)], ""),
        # the operator reads the one of its own namespace
        (sriov(), [UPGRADE, settings(), settings("team-x", disableDrain=True)], "Working towards 4.20.3"),
        # in the namespace of a policy whose label and field manager a tenant chose
        (sriov(), [UPGRADE, settings(), settings("team-x", disableDrain=True), forged()], "Working towards 4.20.3"),
        (sriov(), [forged("DOES-NOT-EXIST")], ""),
        # the namespace of the operator is not known
        (anywhere(), [UPGRADE, settings("a"), settings("b", disableDrain=True)], "Working towards 4.20.3"),
        (anywhere(), [settings("a"), settings("b")], ""),
        # its Deployment shows it
        (anywhere(), [UPGRADE, settings("team-x", disableDrain=True), *operator()], "Working towards 4.20.3"),
        (anywhere(), [UPGRADE, settings("team-x"), settings("sriov", disableDrain=True), *operator()], ""),
    ],
)
def test_nodes_that_must_not_go_down_end_the_teardown(intent: Intent, items: list[Item], why: str) -> None:
    if not why:
        gate(intent, node("a0", kind="a"), *items)
        return
    with pytest.raises(RdmaError, match=why) as told:
        gate(intent, node("a0", kind="a"), *items)
    assert "run the teardown again" in told.value.remedy


@pytest.mark.parametrize("config", ["r-2", ""])
def test_a_machine_config_pool_under_way_ends_the_teardown(config: str) -> None:
    """Its nodes are not those of the removed policy, but those of the intent."""
    pool: Item = {
        "kind": "MachineConfigPool",
        "metadata": {"name": "gpu", "labels": {}},
        "spec": {"nodeSelector": {"matchLabels": {"kind": "b"}}, "configuration": {"name": config}},
        "status": {"machineCount": 1, "updatedMachineCount": 0},
    }
    intent = sriov()
    named = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, operator_namespace="sriov"))
    api = typing.cast(Cluster, Api(*objects_of(named), node("a0", kind="a"), node("b0", kind="b"), pool))
    removal, every = (
        Removal(KINDS, SELECTOR, scope=scope_of(intent)),
        dataclasses.replace(named.cluster, node_selector={}),
    )
    if not config:
        refuse_removal(api, removal, every.disruption, every)
        return
    with pytest.raises(RdmaError, match="b0: the machine config operator may reboot the node"):
        refuse_removal(api, removal, every.disruption, every)


VF = "openshift.io/compute"
BUDGET: Item = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "quorum", "namespace": "team-x", "labels": {}},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}
SCRATCH: Item = {"volumes": [{"name": "s", "emptyDir": {}}]}


def owned(resource: str, **spec: typing.Any) -> Item:
    """A pod of a service on the node of the intent, which a drain evicts."""
    made = pod(resource, "a0", "StatefulSet", **spec)
    made["metadata"]["ownerReferences"][0]["controller"] = True
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"] = resources["limits"]
    return {**made, "metadata": {**made["metadata"], "uid": "u"}}


@pytest.mark.parametrize(
    ("intent", "items", "why"),
    [
        (sriov(), [owned(VF), BUDGET], "a0: pod team-x/train cannot be evicted because PodDisruptionBudget team-x/"),
        (sriov("exclusive"), [owned(""), BUDGET], "a0: pod team-x/train cannot be evicted because PodDisruptionBud"),
        (sriov(), [owned(VF, **SCRATCH)], "a0: the drain deletes the emptyDir data of these pods: team-x/train"),
        # a drain evicts the users of virtual functions alone
        (sriov(), [owned("", **SCRATCH), BUDGET], ""),
        (sriov(), [owned(VF), {**BUDGET, "metadata": {**BUDGET["metadata"], "namespace": "team-y"}}], ""),
        (
            sriov(),
            [owned(VF, **SCRATCH), BUDGET, settings(disableDrain=True)],
            "a0: these running pods would lose their n",
        ),
        (sriov(), [owned("", **SCRATCH), BUDGET, settings(disableDrain=True)], ""),
    ],
)
def test_pods_that_a_drain_would_lose_or_cannot_evict_end_the_teardown(
    intent: Intent, items: list[Item], why: str
) -> None:
    if not why:
        gate(intent, node("a0", kind="a"), *items)
        return
    with pytest.raises(RdmaError, match=why) as told:
        gate(intent, node("a0", kind="a"), *items)
    assert "run the teardown again" in told.value.remedy


def test_the_intent_permits_a_teardown_to_lose_pods() -> None:
    """A pod without a controller that holds no resource of the intent, before a reboot."""
    bare = {**owned("", **SCRATCH)}
    bare["metadata"] = {**bare["metadata"], "ownerReferences": []}
    with pytest.raises(RdmaError, match="a0: no controller recreates these pods: team-x/train") as told:
        gate(sriov("exclusive"), node("a0", kind="a"), bare)
    assert "rdma_cluster.drain.force: true" in str(told.value) and "platform" not in str(told.value)
    permitted = sriov("exclusive")
    drain = DrainOptions(delete_empty_dir_data=True, force=True)
    permitted = dataclasses.replace(permitted, cluster=dataclasses.replace(permitted.cluster, drain=drain))
    gate(permitted, node("a0", kind="a"), bare)


def test_a_pool_that_takes_more_nodes_down_than_the_intent_permits_ends_the_teardown() -> None:
    (there,) = (item for item in objects_of(sriov(most=2)) if item["kind"] == "SriovNetworkPoolConfig")
    with pytest.raises(RdmaError, match="allows 2 nodes to go down at the same time"):
        gate(sriov(most=1), node("a0", kind="a"), node("a1", kind="a"), there)


@pytest.mark.parametrize(("namespace", "ended"), [("openshift-etcd", 0), ("team-x", 1)])
def test_guard_pods_of_openshift_end_no_teardown(namespace: str, ended: int) -> None:
    guard = {**owned(""), "metadata": {"name": "etcd-guard-a0", "namespace": namespace, "uid": "u"}}
    found = find_ended_by_reboot(typing.cast(Cluster, Api(guard)), {"a0"}, Scope(), DrainOptions())
    assert len(found) == ended


def test_pods_are_looked_at_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    class Pods(tuple[ClusterPod, ...]):
        def __iter__(self) -> typing.Iterator[ClusterPod]:
            looks.append(len(self))
            return super().__iter__()

    pods = Pods(ClusterPod(f"p{number}", "n", f"a{number}", owner="Job") for number in range(3))
    monkeypatch.setattr(drain_blockers, "keep_pods", lambda *_asked: pods)
    nodes = {f"a{number}": True for number in range(3)}
    assert list(drain_blockers.read_drain_blockers(typing.cast(Cluster, Api()), nodes, ClusterIntent())) == []
    assert looks == [3]
