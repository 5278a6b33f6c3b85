# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that use a physical function itself, before the SR-IOV operator creates its first virtual functions, raises its
MTU or changes its eSwitch mode.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import check_plan, may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Disruption
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import Policy
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.pod_networks import PodNetworks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE, NOW, OBJECTS
from ansible_collections.linerate.rdma.tests.unit.run.test_undrained_changes import (
    BARE,
    NETWORK_STATUS,
    NO_CLAIMS,
    OPERATOR,
    PF,
    Data,
    WithFields,
    pod,
)

NAMES = tuple(f"kl-{letter}" for letter in "abcdefgh")
JUMBO = dataclasses.replace(NOW, mtu=9000)
SWITCHDEV = dataclasses.replace(NOW, eswitch_mode="switchdev")
SHARED = {"rdma/shared_a": "1"}
(NODE,) = OBJECTS["Node"]


def world(
    policy: Policy,
    pods: typing.Sequence[Data],
    used: typing.Any = None,
    state: Data = BARE,
    uppers: typing.Sequence[str] = (),
    **objects: typing.Any,
) -> DisruptionPlan:
    """The plan for eight nodes with one physical function each."""
    everything: Data = {
        "Node": tuple({**NODE, "metadata": {**NODE["metadata"], "name": name}} for name in NAMES),
        "SriovNetworkNodeState": tuple({**state, "metadata": {**state["metadata"], "name": name}} for name in NAMES),
        "Pod": tuple(pods),
        "SriovOperatorConfig": (OPERATOR,),
        "ResourceClaim": NO_CLAIMS,
        "ResourceClaimTemplate": NO_CLAIMS,
    }
    cluster = typing.cast(Api, WithFields(**{**everything, **objects}))
    above = {name: {PF["pciAddress"]: uppers} for name in NAMES}
    return read_plan(cluster, "ops", RenderedObjects((policy,)), NAMES, ClusterIntent(), used or {}, uppers=above)


def attached(device: typing.Optional[str] = None, network: typing.Any = "train/net", **resources: str) -> list[Data]:
    """A pod on each node with a secondary network."""
    made = []
    for name in NAMES:
        one = pod(**resources)
        one["metadata"]["name"], one["spec"]["nodeName"] = f"train-{name}", name
        entry: Data = {"name": network, "interface": "net1", "ips": ["10.9.0.5"]}
        if device:
            entry["device-info"] = {"type": "pci", "version": "1.1.0", "pci": {"pci-address": device}}
        one["metadata"]["annotations"] = {NETWORK_STATUS: json.dumps([entry])}
        made.append(one)
    return made


def on_host(owner: str = "Job", **resources: str) -> list[Data]:
    made = []
    for name in NAMES:
        one = pod(owner, **resources)
        one["metadata"]["name"], one["spec"]["nodeName"] = f"train-{name}", name
        one["spec"]["hostNetwork"] = True
        del one["metadata"]["annotations"]
        made.append(one)
    return made


def network(**config: str) -> Data:
    text = json.dumps({"cniVersion": "0.3.1", "name": "net", **config})
    return {"metadata": {"name": "net", "namespace": "train"}, "spec": {"config": text}}


def shared_by(**selectors: list[str]) -> Data:
    config = json.dumps({"configList": [{"resourceName": "shared_a", "selectors": selectors}]})
    return {"metadata": {"name": "nic-cluster-policy"}, "spec": {"rdmaSharedDevicePlugin": {"config": config}}}


def judge(planned: DisruptionPlan, disruption: Disruption, check: str = "network.disruption") -> Finding:
    (found,) = [
        one
        for one in check_plan(ClusterIntent(disruption=disruption), planned, NAMES)
        if one.check == check and one.subject == "kl-c"
    ]
    return found


USERS: list[typing.Any] = [
    pytest.param(attached(PF["pciAddress"], **SHARED), {}, id="the PCI address in network-status"),
    pytest.param(
        attached(),
        {"NetworkAttachmentDefinition": (network(type="macvlan", master=PF["name"]),)},
        id="the master of a macvlan",
    ),
    pytest.param(
        attached(),
        {"NetworkAttachmentDefinition": (network(type="ipvlan", master=f"{PF['name']}.100"),)},
        id="a VLAN as the master",
    ),
    pytest.param(
        attached(),
        {"NetworkAttachmentDefinition": (network(type="host-device", pciBusID=PF["pciAddress"]),)},
        id="host-device",
    ),
    pytest.param(
        on_host(**SHARED), {"NicClusterPolicy": (shared_by(ifNames=[PF["name"]]),)}, id="a shared device plugin"
    ),
]


@pytest.mark.parametrize(("pods", "objects"), USERS)
def test_pods_on_a_physical_function_whose_mtu_changes_count_as_a_drain(pods: typing.Any, objects: Data) -> None:
    planned = world(JUMBO, pods, **objects)
    assert {(node.action, node.undrained, node.loses_link) for node in planned.nodes} == {("drain", True, False)}
    refused, allowed = judge(planned, "none"), judge(planned, "drain")
    assert refused.status == "fail" and "MTU 1500 -> 9000" in refused.measured
    assert allowed.status == "warn" and "default/train-kl-c" in allowed.why
    assert not may_go_on(ClusterIntent(disruption="none"), planned, NAMES)
    assert may_go_on(ClusterIntent(), planned, NAMES)


@pytest.mark.parametrize(("pods", "objects"), USERS)
def test_first_functions_without_an_mtu_are_a_warning_with_the_pods(pods: typing.Any, objects: Data) -> None:
    """The operator sets no link down, and the driver keeps the link of the physical function."""
    planned = world(NOW, pods, **objects)
    assert {node.action for node in planned.nodes} == {"configure"}
    found = judge(planned, "none")
    assert found.status == "warn" and "pod default/train-kl-c uses" in found.why
    assert may_go_on(ClusterIntent(disruption="none"), planned, NAMES)


@pytest.mark.parametrize(("pods", "objects"), USERS)
def test_another_eswitch_mode_takes_the_devices_of_the_pods(pods: typing.Any, objects: Data) -> None:
    planned = world(SWITCHDEV, pods, **objects)
    found = judge(planned, "drain", "network.drain")
    assert "would lose their network devices" in found.measured and "default/train-kl-c" in found.measured
    assert not may_go_on(ClusterIntent(), planned, NAMES)


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        (on_host(**SHARED), "requests rdma/shared_a and may use"),
        (on_host(**{"nvidia.com/gpu": "8"}), "is on the host network with nvidia.com/gpu and may use"),
        (attached(PF["pciAddress"], **{"nvidia.com/gpu": "8"}), "its network does not exist"),
    ],
    ids=["a plugin without a policy", "the host network", "an annotation alone"],
)
def test_pods_that_may_use_a_physical_function_are_named_and_refuse_nothing(pods: typing.Any, words: str) -> None:
    planned = world(JUMBO, pods)
    assert {node.action for node in planned.nodes} == {"configure"}
    found = judge(planned, "none")
    assert found.status == "warn" and words in found.why and "default/train-kl-c" in found.why
    assert may_go_on(ClusterIntent(disruption="none"), planned, NAMES)


def test_files_of_rdma_on_the_host_network_are_named() -> None:
    pods = on_host()
    for one in pods:
        one["spec"]["volumes"] = [{"name": "rdma", "hostPath": {"path": "/dev/infiniband"}}]
    assert "on the host network with /dev/infiniband" in judge(world(JUMBO, pods), "none").why


@pytest.mark.parametrize(
    ("pods", "objects"),
    [
        pytest.param(on_host("DaemonSet"), {}, id="DaemonSets of the host network"),
        pytest.param(attached(), {}, id="a network that does not exist"),
        pytest.param(
            attached(), {"NetworkAttachmentDefinition": (network(type="macvlan", master="eno1"),)}, id="another master"
        ),
        pytest.param(
            attached(**SHARED),
            {"NicClusterPolicy": (shared_by(ifNames=["ens9f0"]),)},
            id="a shared resource of another NIC",
        ),
        pytest.param(attached("0000:e1:00.0", **{"nvidia.com/hostdev": "1"}), {}, id="another PCI address"),
    ],
)
def test_pods_beside_the_physical_function_say_nothing(pods: typing.Any, objects: Data) -> None:
    found = judge(world(JUMBO, pods, **objects), "none")
    assert found.status == "pass" and "train-" not in found.why


def test_a_second_run_asks_no_pods_and_changes_nothing() -> None:
    (there,) = [item for item in OBJECTS["SriovNetworkNodeState"] if item["metadata"]["name"] == "kl-a"]
    planned = world(NOW, attached(PF["pciAddress"], **SHARED), state=there)
    assert {node.action for node in planned.nodes} == {"nothing"} and not any(node.doubts for node in planned.nodes)


def test_pods_that_can_not_be_read_are_a_warning() -> None:
    planned = world(JUMBO, (), Pod=ApiError(403, "Forbidden", "cannot list", "GET"))
    found = judge(planned, "none")
    assert found.status == "warn" and "the pods could not be read" in found.why


def test_a_network_of_the_node_counts_on_ethernet_and_is_named_on_infiniband() -> None:
    used = {name: {PF["pciAddress"]: "the network 10.9.0.0/24"} for name in NAMES}
    planned = world(JUMBO, (), used)
    assert {(node.action, node.undrained, node.loses_link) for node in planned.nodes} == {("drain", True, False)}
    assert "carries the network 10.9.0.0/24" in judge(planned, "none").measured
    ipoib = copy.deepcopy(BARE)
    ipoib["status"]["interfaces"][0]["linkType"] = "IB"
    for found in (judge(world(JUMBO, (), used, ipoib), "none"), judge(world(NOW, (), used), "none")):
        assert found.status == "warn" and "carries the network 10.9.0.0/24" in found.why


def claiming(annotated: str, **resources: str) -> Data:
    made = pod("ReplicaSet", **resources)
    entry = {"name": "x", "interface": "net1", "device-info": {"type": "pci", "pci": {"pci-address": annotated}}}
    made["metadata"]["annotations"] = {NETWORK_STATUS: json.dumps([entry])}
    return made


def test_the_annotation_of_a_pod_without_network_devices_refuses_nothing() -> None:
    function = PF["Vfs"][0]["pciAddress"]
    (there,) = [item for item in OBJECTS["SriovNetworkNodeState"] if item["metadata"]["name"] == "kl-a"]
    for resources in ({}, {"nvidia.com/gpu": "1"}):
        planned = world(MORE, (claiming(function, **resources),), state=there)
        assert may_go_on(ClusterIntent(), planned, NAMES) and not any(node.blockers for node in planned.nodes)
        assert {node.node for node in planned.nodes if node.doubts} == {"kl-a"}
        (warned,) = [one for one in check_plan(ClusterIntent(), planned, NAMES) if one.status == "warn"]
        assert warned.subject == "kl-a" and "the annotation of pod default/op-a names" in warned.why
    taken = world(MORE, (claiming(function, **{"nvidia.com/hostdev": "1"}),), state=there)
    assert [node.node for node in taken.nodes if node.blockers] == ["kl-a"]


def test_the_annotation_counts_if_its_network_exists_or_can_not_be_read() -> None:
    (there,) = [item for item in OBJECTS["SriovNetworkNodeState"] if item["metadata"]["name"] == "kl-a"]
    pods = attached(PF["Vfs"][0]["pciAddress"])[:1]
    for answer in ((network(type="host-device"),), ApiError(403, "Forbidden", "cannot list", "GET")):
        planned = world(MORE, pods, state=there, NetworkAttachmentDefinition=answer)
        assert [node.node for node in planned.nodes if node.blockers] == ["kl-a"]


@pytest.mark.parametrize("spec", [None, "x", {"config": "{"}, {"config": json.dumps({"type": "macvlan", "master": 7})}])
def test_a_network_of_another_form_names_no_device(spec: typing.Any) -> None:
    made = {"metadata": {"name": "net", "namespace": "train"}, "spec": spec}
    planned = world(JUMBO, attached(), NetworkAttachmentDefinition=(made,))
    assert judge(planned, "none").status == "pass"


@pytest.mark.parametrize(
    "name", ["%/x", "../x", "a b/x", "\u00e4/x", "x/../y", "train/%2e", "train/", "/x", 7, None, ["train/x"]]
)
def test_an_invalid_name_in_the_annotation_of_a_pod_is_a_network_that_does_not_exist(name: typing.Any) -> None:
    """Any user who may write a pod writes its annotation, and the plan of the other nodes must not depend on it."""
    planned = world(JUMBO, attached(PF["pciAddress"], network=name))
    assert {node.action for node in planned.nodes} == {"configure"}
    assert "its network does not exist" in judge(planned, "none").why
    assert may_go_on(ClusterIntent(disruption="none"), planned, NAMES)


def test_any_number_of_names_in_annotations_asks_for_one_list() -> None:
    asked: list[str] = []

    class Counted(WithFields):
        def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
            asked.extend([namespace] if kind == "NetworkAttachmentDefinition" else [])
            return super().list(kind, namespace, selector)

    networks = PodNetworks(
        typing.cast(Api, Counted(NetworkAttachmentDefinition=(network(type="macvlan", master="ens1"),)))
    )
    forged = pod()
    entries = [{"name": f"n{number}/x", "interface": "net1"} for number in range(300)]
    forged["metadata"]["annotations"] = {NETWORK_STATUS: json.dumps(entries)}
    for one in (forged, forged, attached()[0]):
        found = networks.read(one, False)
    assert asked == [""] and found.interfaces == ("ens1",)


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_pods_on_a_vlan_of_any_name_keep_the_eswitch_mode_of_its_nic(disruption: Disruption) -> None:
    """As netplan, nmstate and ifupdown name them: the name does not tell the NIC."""
    objects: dict[str, typing.Any] = {"NetworkAttachmentDefinition": (network(type="macvlan", master="vlan100"),)}
    planned = world(SWITCHDEV, attached(), uppers=("bond0", "vlan100"), **objects)
    assert not may_go_on(ClusterIntent(disruption=disruption), planned, NAMES)
    assert "train-" in " ".join(planned.nodes[0].blockers)
    free = world(SWITCHDEV, attached(), uppers=("vlan200",), **objects)
    assert may_go_on(ClusterIntent(disruption=disruption), free, NAMES) and not free.nodes[0].blockers


ON_BRIDGE = {name: {PF["pciAddress"]: "the bridge br1", PF["name"]: "the bridge br1"} for name in NAMES}
ON_OVS = {name: {PF["pciAddress"]: "the bridge ovs-system"} for name in NAMES}
BRIDGED: list[typing.Any] = [
    pytest.param(ON_BRIDGE, {"type": "bridge", "bridge": "br1"}, True, id="bridge"),
    pytest.param(ON_BRIDGE, {"type": "macvlan", "master": "br1.100"}, True, id="a macvlan over the bridge"),
    pytest.param(ON_OVS, {"type": "ovs", "bridge": "br-ext"}, True, id="Open vSwitch"),
    pytest.param(ON_BRIDGE, {"type": "bridge"}, False, id="another bridge, by default"),
    pytest.param(ON_BRIDGE, {"type": "ovs", "bridge": "br1"}, False, id="Open vSwitch beside a bridge"),
    pytest.param({}, {"type": "bridge", "bridge": "br1"}, False, id="no port of the bridge"),
]


@pytest.mark.parametrize("policy", [SWITCHDEV, JUMBO], ids=["eswitch", "mtu"])
@pytest.mark.parametrize(("used", "config", "counts"), BRIDGED)
def test_a_port_of_a_bridge_is_in_use_and_so_are_the_pods_of_networks_on_the_bridge(
    policy: Policy, used: typing.Any, config: dict[str, str], counts: bool
) -> None:
    planned = world(policy, attached(), used, NetworkAttachmentDefinition=(network(**config),))
    assert {node.action for node in planned.nodes} == {"drain" if used else "configure"}
    found = judge(planned, "none")
    assert found.status == ("fail" if used else "pass")
    assert ("is a port of the bridge" in found.measured) is bool(used)
    assert may_go_on(ClusterIntent(disruption="none"), planned, NAMES) is (not used)
    named = " ".join(" ".join((*node.pods, *node.blockers)) for node in planned.nodes)
    assert ("default/train-kl-c" in named) is counts


def test_a_port_of_a_bridge_that_nothing_interrupts_is_a_warning() -> None:
    planned = world(NOW, (), ON_BRIDGE)
    assert {node.action for node in planned.nodes} == {"configure"}
    found = judge(planned, "none")
    assert found.status == "warn" and f"{PF['name']} {PF['pciAddress']} is a port of the bridge br1" in found.why


@pytest.mark.parametrize("policy", [SWITCHDEV, JUMBO, NOW], ids=["eswitch", "mtu", "first functions"])
def test_networks_that_were_not_read_are_a_warning(policy: Policy) -> None:
    planned = world(policy, (), {name: {PF["pciAddress"]: "networks that were not read"} for name in NAMES})
    assert {node.action for node in planned.nodes} == {"configure"}
    found = judge(planned, "none")
    assert found.status == "warn" and "may carry networks that were not read" in found.why
