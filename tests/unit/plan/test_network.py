# SPDX-License-Identifier: GPL-3.0-or-later

"""From intent and facts to the objects of the fabrics, to what speaks against them, and to what must come of them."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, PciFunction
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    InterfaceNetwork,
    NodePlatform,
    ObservedPlatform,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
    Policy,
    StateInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan import network
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_answers import NodeAnswers

Data = dict[str, typing.Any]

FABRIC: Data = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 4,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
MACVLAN: Data = {
    "name": "fast",
    "profile": "macvlan",
    "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
    "network": {"name": "fast", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.83.0.0/24"},
}
SHARED: Data = {
    **MACVLAN,
    "name": "roce",
    "profile": "rdma_shared",
    "resource_name": "shared",
    "network": {"name": "roce", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.84.0.0/24"},
}
PODS: Data = {"name": "pods", "profile": "pod_network", "network": {"namespace": "test"}}
POLICY: Data = {
    "kind": "SriovNetworkNodePolicy",
    "name": "linerate-storage",
    "namespace": "ops",
    "fabric": "storage",
    "action": "created",
}
NIC = Hca(
    "eth1", pci=PciFunction("0000:01:00.0", "8086", "10c9", "0200", "igb"), netdevs=(Netdev("eth1", "aa", 1500, "up"),)
)
NOTHING = NodeAnswers({}, {})
FREE = AddressFacts((), pods=1)


def operators(functions: int) -> OperatorFacts:
    """What the operator reports of a node whose card can make so many virtual functions."""
    label = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
    igb = StateInterface("eth1", "0000:01:00.0", "8086", "10c9", "igb", "ETH", 1500, functions)
    return OperatorFacts(
        (),
        (),
        (),
        (ClusterNode("worker-1", label, True),),
        (NodeState("worker-1", interfaces=(igb,)),),
        namespace="ops",
    )


def plan(
    fabrics: typing.Sequence[Data],
    seen: typing.Optional[OperatorFacts] = None,
    answers: NodeAnswers = NOTHING,
    addresses: AddressFacts = FREE,
    waivers: typing.Any = None,
    cluster: typing.Any = None,
) -> network.NetworkPlan:
    return network.plan(
        parse_intent(list(fabrics), waivers, cluster), ["worker-1"], answers, addresses, seen or operators(8)
    )


def kinds(planned: network.NetworkPlan) -> list[str]:
    return [item["object"]["kind"] for item in planned.objects]


def targets(
    fabrics: typing.Sequence[Data], applied: typing.Sequence[Data], cluster: typing.Any = None, every: bool = False
) -> typing.Any:
    outcomes = load(tuple[AppliedObject, ...], list(applied), "applied")
    return to_data(network.list_targets(parse_intent(list(fabrics), None, cluster), ["a"], outcomes, every))


def test_objects_carry_their_fabric() -> None:
    planned = plan([{**FABRIC, "rdma": False}], answers=NodeAnswers({"worker-1": NodeHcas((NIC,))}, {}))
    assert [(item["fabric"], item["object"]["kind"]) for item in planned.objects] == [
        ("", "Namespace"),
        ("storage", "SriovNetworkNodePolicy"),
        ("storage", "SriovNetwork"),
    ]
    # the operator obeys what is where it was seen
    assert [item["object"]["metadata"].get("namespace") for item in planned.objects] == [None, "ops", "ops"]
    data = to_data(planned)
    assert json.loads(json.dumps(data)) == data
    assert planned.hosts == () and planned.unmade == {} and planned.lint.held == {}


def test_a_fabric_on_the_default_route_is_held_back_and_the_plan_of_drains_knows_the_nic() -> None:
    answers = NodeAnswers({"worker-1": NodeHcas((NIC,))}, {})

    def render(waivers: typing.Any, *uplinks: str) -> network.NetworkPlan:
        platform = NodePlatform(kernel="6.8.0", machine="x86_64", functions=(), uplinks=uplinks)
        intent = parse_intent([{**FABRIC, "rdma": False}], waivers)
        platforms = {"worker-1": ObservedPlatform(platform, None)}
        return network.plan(intent, ["worker-1"], answers, FREE, operators(8), platforms)

    held = render(None, "eth1")
    assert held.lint.held.keys() == {"storage"} and "carries the default route" in held.lint.held["storage"]
    waiver = {"check": "network.lint_uplink", "subject": "storage *", "reason": "console at hand"}
    assert render([waiver], "eth1").lint.held == {} == render(None, "eth0").lint.held
    used = {"eth1": "the default route of the node", "0000:01:00.0": "the default route of the node"}
    assert render([waiver], "eth1").in_use == {"worker-1": used}


def test_a_fabric_on_an_address_of_the_node_beside_another_default_route_is_held_back() -> None:
    answers = NodeAnswers({"worker-1": NodeHcas((NIC,))}, {})
    networks = (InterfaceNetwork("eth1", "172.31.0.0/24"), InterfaceNetwork("eth0", "192.0.2.0/24"))
    platform = NodePlatform(kernel="6.8.0", machine="x86_64", functions=(), uplinks=("eth0",), networks=networks)

    def render(address: str) -> network.NetworkPlan:
        taken = (UsedNetwork("node", f"{address}/32", "node worker-1", node="worker-1"),)
        intent, platforms = parse_intent([{**FABRIC, "rdma": False}]), {"worker-1": ObservedPlatform(platform, None)}
        return network.plan(intent, ["worker-1"], answers, AddressFacts(taken), operators(8), platforms)

    assert "carries the address of the node 172.31.0.5" in render("172.31.0.5").lint.held["storage"]
    free = render("192.0.2.5")
    assert free.lint.held == {} and free.in_use["worker-1"]["eth1"] == "the network 172.31.0.0/24"


@pytest.mark.parametrize("taking", ["by name", "from a pool", "passthru"])
def test_a_fabric_whose_pods_take_the_interface_of_the_default_route_is_not_applied(taking: str) -> None:
    answers = NodeAnswers({"worker-1": NodeHcas((NIC,))}, {})
    wanted: Data = {
        "name": "storage",
        "profile": "macvlan" if taking == "passthru" else "host_device",
        "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
        "network": {"namespace": "t", "name": "n", **({"mode": "passthru"} if taking == "passthru" else {})},
        "ipam": {"type": "whereabouts", "range": "10.9.0.0/16"},
        **({"resource_name": "storage_pf"} if taking == "from a pool" else {}),
    }

    def render(uplink: str) -> network.NetworkPlan:
        platform = NodePlatform(kernel="6.8.0", machine="x86_64", functions=(), uplinks=(uplink,))
        intent, platforms = (
            parse_intent([wanted], None, {"disruption": "none"}),
            {"worker-1": ObservedPlatform(platform, None)},
        )
        return network.plan(intent, ["worker-1"], answers, FREE, operators(8), platforms)

    held = render("eth1")
    assert "carries the default route" in held.lint.held["storage"] and held.objects == ()
    free = render("eth0")
    assert free.lint.held == {} and kinds(free)


def test_members_of_nodes_that_answered() -> None:
    answers = NodeAnswers({"worker-1": NodeHcas((NIC,))}, {})
    functions = network._list_functions(parse_intent([FABRIC]), answers, ["worker-1", "worker-2"], ())
    assert functions == {"storage": {"worker-1": ("0000:01:00.0",), "worker-2": ()}}


def test_a_node_whose_hcas_were_not_read_gets_no_policy_with_the_addresses_of_the_others() -> None:
    """Another model of server may have an HCA of another fabric at these addresses."""
    answers, both = NodeAnswers({"worker-1": NodeHcas((NIC,))}, {}), ["worker-1", "worker-2"]

    wanted = {**FABRIC, "rdma": False}

    def render(seen: OperatorFacts, waivers: typing.Any = None) -> list[Data]:
        made = network.plan(parse_intent([wanted], waivers), both, answers, FREE, seen).objects
        return [item["object"] for item in made if item["object"]["kind"] == "SriovNetworkNodePolicy"]

    seen = operators(8)
    (first,), (state,) = seen.nodes, seen.states
    hosts = [ClusterNode(name, {**first.labels, "kubernetes.io/hostname": name}, True) for name in both]
    seen = dataclasses.replace(seen, nodes=tuple(hosts), states=(state, dataclasses.replace(state, node="worker-2")))
    planned = network.plan(parse_intent([wanted]), both, answers, FREE, seen)
    assert render(seen) == [] and "storage worker-2" in planned.lint.held["storage"]
    (why,) = [item.why for item in planned.lint.findings if item.subject == "storage worker-2" and item.why]
    assert "the PCI addresses of its HCAs on the fabric are unknown" in why
    # on request
    waivers = [{"check": "network.lint_select", "subject": "storage worker-2", "reason": "worker-2 is being repaired"}]
    (alone,) = render(seen, waivers)
    assert alone["metadata"]["name"] == "linerate-storage-worker-1"
    assert alone["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "worker-1"
    # a run that read every node has applied one policy for all of them
    common = Policy("linerate-storage", "igb", 4, root_devices=("0000:01:00.0",))
    (kept,) = render(dataclasses.replace(seen, policies=(common,)))
    assert kept["metadata"]["name"] == common.name and "kubernetes.io/hostname" not in kept["spec"]["nodeSelector"]
    # and another one was for other addresses
    other = dataclasses.replace(common, root_devices=("0000:02:00.0",))
    assert render(dataclasses.replace(seen, policies=(other,)), waivers) == [alone]


def test_what_reboots_nodes_is_apart() -> None:
    host = {"host": {"memlock": {"by": "machine_config", "limit_gib": 8}}}
    planned = plan([FABRIC], cluster=host)
    assert [(item["fabric"], item["object"]["kind"]) for item in planned.hosts] == [
        ("", "MachineConfig")
    ] and "MachineConfig" not in kinds(planned)


def test_nothing_is_written_for_a_fabric_whose_addresses_are_in_use() -> None:
    services = AddressFacts((UsedNetwork("services", "10.0.0.0/16", "ServiceCIDR kubernetes"),), pods=1)
    fabric = {**FABRIC, "rdma": False}
    planned = plan([fabric], addresses=services)
    assert planned.objects == ()
    assert "ServiceCIDR kubernetes" in planned.unmade["storage"]
    waived = plan(
        [fabric], addresses=services, waivers=[{"check": "network.address_overlap", "reason": "it is routed there"}]
    )
    assert kinds(waived) == ["Namespace", "SriovNetworkNodePolicy", "SriovNetwork"]


def test_a_fabric_that_can_t_come_to_anything_is_held_back_unless_waived() -> None:
    fabric = {**FABRIC, "rdma": False}
    linted = plan([fabric], operators(3))
    assert linted.objects == ()
    assert "numVfs(4) in CR linerate-storage exceed the maximum allowed value(3)" in linted.lint.held["storage"]
    waived = plan(
        [fabric], operators(3), waivers=[{"check": "network.lint_functions", "reason": "the webhook decides"}]
    )
    assert kinds(waived) == ["Namespace", "SriovNetworkNodePolicy", "SriovNetwork"] and waived.lint.held == {}
    assert waived.lint.findings == linted.lint.findings


def test_what_fabrics_share_is_written_without_those_that_are_held_back() -> None:
    fabrics = [
        MACVLAN,
        SHARED,
        {**SHARED, "name": "other", "resource_name": "other", "network": {"name": "other", "namespace": "test"}},
    ]
    seen, answers = OperatorFacts((), (), (), ()), NodeAnswers({"worker-1": NodeHcas((NIC,))}, {})
    linted = plan(fabrics, seen, answers)
    # without an RDMA device nothing can be shared
    assert set(linted.lint.held) == {"roce", "other"}
    assert kinds(linted) == ["Namespace", "NetworkAttachmentDefinition"]
    waived = plan(
        fabrics,
        seen,
        answers,
        waivers=[{"check": "network.lint_rdma", "subject": "roce*", "reason": "the driver comes later"}],
    )
    assert kinds(waived) == ["Namespace", "NicClusterPolicy", "NetworkAttachmentDefinition", "MacvlanNetwork"]
    config = json.loads(waived.objects[1]["object"]["spec"]["rdmaSharedDevicePlugin"]["config"])
    assert [item["resourceName"] for item in config["configList"]] == ["shared"]


def test_targets_of_networks_without_virtual_functions() -> None:
    applied: list[Data] = [
        {
            "kind": "NetworkAttachmentDefinition",
            "name": "fast",
            "namespace": "test",
            "fabric": "fast",
            "action": "created",
        },
        {"kind": "MacvlanNetwork", "name": "roce", "fabric": "roce", "action": "created"},
    ]
    fast, roce, baseline = targets([MACVLAN, SHARED, PODS], applied)
    assert (fast["resource"], fast["attachment"], fast["objects"]) == ("", "test/fast", [])
    assert fast["plugin"] == {
        "type": "macvlan",
        "master": "eth1",
        "mode": "bridge",
        "ipam": {"type": "whereabouts", "range": "10.83.0.0/24"},
    }
    assert (roce["resource"], roce["objects"]) == (
        "rdma/shared",
        ["NicClusterPolicy nic-cluster-policy", "MacvlanNetwork roce"],
    )
    assert (baseline["attachment"], baseline["predicates"]) == ("", ["ready"])
    refused = [{**applied[0], "action": "refused"}, applied[1]]
    assert [target["fabric"] for target in targets([MACVLAN, SHARED], refused)] == ["roce"]
    # on the way back only virtual functions are waited for
    assert targets([MACVLAN, SHARED, PODS], applied, every=True) == []


def test_targets_of_accepted_policies() -> None:
    (target,) = targets([FABRIC], [POLICY], {"resource_prefix": "nvidia.com"})
    assert target == {
        "fabric": "storage",
        "policies": ["linerate-storage"],
        "resource": "nvidia.com/igb",
        "attachment": "test/net",
        "nodes": ["a"],
        "hcas_per_node": 1,
        "predicates": ["virtual_functions"],
        "objects": [],
        "plugin": {},
        "pool": "",
        "offers": 4,
        "exact": False,
    }


def test_nothing_is_waited_for_where_the_policy_was_refused_or_never_made() -> None:
    assert targets([FABRIC], [{**POLICY, "action": "refused"}]) == []
    assert targets([FABRIC], []) == []
    (target,) = targets([FABRIC], [], every=True)
    assert target["policies"] == []


def test_a_wrong_intent_names_its_path() -> None:
    with pytest.raises(IntentError, match=r"rdma_fabrics\[0\].virtual_functions"):
        plan([{**FABRIC, "virtual_functions": "four"}])


RUNS, LACKS, UNREAD = (
    ObservedPlatform(NodePlatform("6.1", "x86_64", arguments))
    for arguments in (("pci=realloc", "iommu=pt"), ("iommu=on",), None)
)
POOLED = dataclasses.replace(
    operators(8), nodes=(ClusterNode("worker-1", {}, True, machine_config="rendered-worker-1"),)
)


@pytest.mark.parametrize(
    ("seen", "platforms", "made"),
    [
        # a node that has booted with them, and no machine config operator
        (operators(8), {"worker-1": RUNS}, []),
        (operators(8), {"worker-1": RUNS, "of-somebody-else": LACKS}, []),
        (operators(8), {"worker-1": LACKS}, ["MachineConfig"]),
        (operators(8), {"worker-1": UNREAD}, ["MachineConfig"]),
        (operators(8), {"worker-1": ObservedPlatform(error="was not asked")}, ["MachineConfig"]),
        (operators(8), {"worker-1": ObservedPlatform()}, ["MachineConfig"]),
        (operators(8), {}, ["MachineConfig"]),
        (POOLED, {"worker-1": RUNS}, ["MachineConfig"]),
    ],
)
def test_kernel_arguments_that_run_need_no_machine_config_where_no_node_has_one(
    seen: OperatorFacts, platforms: dict[str, ObservedPlatform], made: list[str]
) -> None:
    intent = parse_intent([FABRIC], None, {"host": {"kernel_arguments": ["iommu=pt"]}})
    planned = network.plan(intent, ["worker-1"], NOTHING, FREE, seen, platforms)
    assert [item["object"]["kind"] for item in planned.hosts] == made
