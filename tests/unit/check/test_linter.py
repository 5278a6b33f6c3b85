# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter: each way in which a policy can come to nothing is said before it is applied, and a good one is let
through."""

from __future__ import annotations

import dataclasses
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.check import (
    lint,
    lint_all,
    read_held,
    select_remaining,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.policy_context import (
    ClusterBefore,
    read_cluster_before,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.sriov_policy import find_objections
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, PciFunction
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.nvidia import NicPolicy
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
    Policy,
    StateInterface,
    SupportedNic,
    VfGroup,
    WantedInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Waiver

LABEL = {"rdma": "yes"}
IGB = StateInterface("eth1", "0000:01:00.0", "8086", "10c9", "igb", "ETH", 1500, 7)
MLX = StateInterface("ib0", "0000:3c:00.0", "15b3", "1021", "mlx5_core", "IB", 2044, 16)
BNX = StateInterface("eth4", "0000:05:00.0", "14e4", "16d7", "bnxt_en", "ETH", 1500, 8)
NICS = (
    SupportedNic("8086", "10c9", "10ca"),
    SupportedNic("15b3", "1021", "101e"),
    SupportedNic("14e4", "16d7", "16dc"),
)
WORLD = ClusterBefore(
    {"w1": ClusterNode("w1", LABEL, True)}, {"w1": NodeState("w1", interfaces=(IGB, MLX, BNX))}, {}, NICS
)

STORAGE = Policy("storage", "igb", 4, LABEL, "8086", "10c9", link_type="ETH", device_type="netdevice")
COMPUTE = Policy("compute", "mlx", 8, LABEL, "15b3", "1021", link_type="IB", device_type="netdevice", rdma=True)
BROADCOM = Policy("bnx", "bnx", 4, LABEL, pf_names=("eth4",), link_type="ETH", device_type="netdevice", rdma=True)

FABRIC = load(
    Fabric,
    {
        "name": "storage",
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 1},
        "virtual_functions": 4,
        "resource_name": "igb",
        "rdma": False,
        "network": {"name": "net", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    },
    "fabric",
)


Item = typing.TypeVar("Item", Policy, StateInterface, WantedInterface)


def changed(item: Item, **values: typing.Any) -> Item:
    return dataclasses.replace(item, **values)


def beside(*others: Policy) -> ClusterBefore:
    return dataclasses.replace(WORLD, policies={policy.name: policy for policy in others})


@pytest.mark.parametrize(
    "policy",
    [
        STORAGE,
        COMPUTE,
        BROADCOM,
        changed(STORAGE, pf_names=("eth1#0-3",)),
        changed(COMPUTE, vendor="", root_devices=(MLX.address,)),
    ],
)
def test_a_good_policy_has_nothing_against_it(policy: Policy) -> None:
    assert find_objections(policy, WORLD) == ()


@pytest.mark.parametrize(
    ("policy", "rule", "where", "text"),
    [
        (
            changed(STORAGE, resource_name="igb-vf"),
            "policy",
            "webhook",
            'resource name "igb-vf" contains invalid characters',
        ),
        (changed(STORAGE, vendor="1af4", device=""), "policy", "webhook", "vendor 1af4 is not supported"),
        (changed(STORAGE, device="1583"), "policy", "webhook", "vendor/device 8086/1583 is not supported"),
        (changed(STORAGE, vendor="", device="10ca"), "policy", "webhook", "device 10ca is not supported"),
        (changed(STORAGE, pf_names=("eth1#0-4",)), "policy", "webhook", "end range exceeds the maximum VF index"),
        (
            changed(STORAGE, pf_names=("eth1#3-0",)),
            "policy",
            "webhook",
            "end range shall not be smaller than start range",
        ),
        (changed(STORAGE, pf_names=("eth1#0",)), "policy", "webhook", "failed to parse eth1#0"),
        (
            changed(STORAGE, device_type="vfio-pci", rdma=True),
            "policy",
            "webhook",
            "'deviceType: vfio-pci' conflicts with 'isRdma: true'",
        ),
        (
            changed(COMPUTE, eswitch_mode="switchdev"),
            "policy",
            "webhook",
            "'eSwitchMode: switchdev' can be used only with ethernet links",
        ),
        (
            changed(COMPUTE, vdpa_type="vhost"),
            "policy",
            "webhook",
            "vdpa requires the device to be configured in switchdev mode",
        ),
        (
            changed(STORAGE, vdpa_type="vhost", eswitch_mode="switchdev"),
            "link",
            "webhook",
            "vendor(8086) in CR storage not supported for vdpa interface(eth1)",
        ),
        (
            changed(STORAGE, node_selector={"rdma": "no"}),
            "select",
            "webhook",
            "no matched node is selected by the nodeSelector in CR storage",
        ),
        (
            changed(STORAGE, pf_names=("eth9",)),
            "select",
            "webhook",
            "no supported NIC is selected by the nicSelector in CR storage",
        ),
        (changed(STORAGE, vfs_count=0), "functions", "webhook", "numVfs(0) in CR storage is not allowed"),
        (
            changed(STORAGE, vfs_count=8),
            "functions",
            "webhook",
            "numVfs(8) in CR storage exceed the maximum allowed value(7) interface(eth1)",
        ),
        (
            changed(COMPUTE, vfs_count=129),
            "functions",
            "webhook",
            "numVfs(129) in CR compute exceed the maximum allowed value(128) interface(ib0)",
        ),
        # the webhook knows only two vendors; the daemon says the rest
        (changed(BROADCOM, vfs_count=9), "functions", "node", "NumVfs (9) is larger than TotalVfs (8)"),
        (changed(COMPUTE, vfs_count=16), "functions", "nowhere", "16 virtual functions on InfiniBand"),
        (
            changed(STORAGE, external=True),
            "functions",
            "webhook",
            "higher than the virtual functions allocated for the PF externally value(0)",
        ),
        (changed(COMPUTE, link_type="ETH"), "link", "node", "port with link layer IB, profile for link layer ETH"),
        (changed(STORAGE, link_type="IB"), "link", "node", "port with link layer ETH, profile for link layer IB"),
        (changed(STORAGE, mtu=9217), "link", "node", "MTU 9217 bytes"),
        (changed(COMPUTE, mtu=4092), "link", "nowhere", "MTU 4092 bytes"),
        (changed(STORAGE, rdma=True), "rdma", "node", "driver igb"),
    ],
)
def test_each_rule(policy: Policy, rule: str, where: str, text: str) -> None:
    (found,) = [
        item for item in find_objections(policy, WORLD) if item.check != "network.lint_select" or rule == "select"
    ]
    assert (found.check, found.where) == (f"network.lint_{rule}", where)
    assert text in found.measured
    assert found.why and found.remedy


def test_a_policy_that_selects_nothing_in_particular() -> None:
    # it takes every NIC, so more than this rule speaks against it
    texts = [
        item.measured
        for item in find_objections(changed(STORAGE, vendor="", device="", link_type=""), WORLD)
        if item.check == "network.lint_policy"
    ]
    assert texts == [
        "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined in"
        " nicSelector in CR storage"
    ]


def test_the_id_of_a_virtual_function_leads_to_the_physical_one() -> None:
    found = find_objections(changed(STORAGE, device="10ca"), WORLD)[0]
    assert "10ca is the device ID of virtual functions" in found.why
    assert "10c9" in found.remedy


@pytest.mark.parametrize(
    ("policy", "other", "where", "text"),
    [
        # as the webhook compares them: what is written
        (
            changed(STORAGE, pf_names=("eth1",)),
            changed(STORAGE, name="old", pf_names=("eth1",)),
            "webhook",
            "VF index range in eth1 is overlapped with",
        ),
        (
            changed(STORAGE, pf_names=("eth1#0-3",)),
            changed(STORAGE, name="old", pf_names=("eth1#3-3",)),
            "webhook",
            "VF index range in eth1#0-3 is overlapped",
        ),
        (
            changed(STORAGE, root_devices=(IGB.address,)),
            changed(BROADCOM, root_devices=(IGB.address,)),
            "webhook",
            f"root device {IGB.address} is overlapped",
        ),
        (
            changed(STORAGE, pf_names=("eth1",)),
            changed(STORAGE, name="old", pf_names=("eth1",), external=True),
            "webhook",
            "externallyManage is inconsistent",
        ),
        (
            STORAGE,
            changed(BROADCOM, resource_name="igb", exclude_topology=True),
            "webhook",
            "excludeTopology[false] field conflicts with policy [bnx]",
        ),
        # as the operator makes of them: what is selected
        (
            STORAGE,
            changed(STORAGE, name="old", resource_name="old", pf_names=("eth1",), vendor=""),
            "node",
            "virtual functions 0 to 3 in this policy, 0 to 3 in policy old",
        ),
        (
            changed(STORAGE, pf_names=("eth1",)),
            changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#2-3",)),
            "node",
            "0 to 3 in this policy, 2 to 3 in policy old",
        ),
    ],
)
def test_two_policies_on_the_same_functions(policy: Policy, other: Policy, where: str, text: str) -> None:
    (found,) = find_objections(policy, beside(other))
    assert (found.check, found.where) == ("network.lint_overlap", where)
    assert text in found.measured


@pytest.mark.parametrize(
    ("policy", "other"),
    [
        (
            changed(STORAGE, pf_names=("eth1#0-1",)),
            changed(STORAGE, name="old", resource_name="old", pf_names=("eth1#2-3",)),
        ),
        (STORAGE, COMPUTE),
        (STORAGE, changed(STORAGE, name="elsewhere", resource_name="old", node_selector={"rdma": "no"})),
        # its own older self is no other policy
        (changed(STORAGE, root_devices=(IGB.address,)), changed(STORAGE, root_devices=(IGB.address,), vfs_count=2)),
        # nobody can tell here what a netFilter takes
        (STORAGE, changed(STORAGE, name="old", resource_name="old", net_filter="openstack/NetworkID:1")),
    ],
)
def test_policies_that_can_live_beside_each_other(policy: Policy, other: Policy) -> None:
    assert find_objections(policy, beside(other)) == ()


@pytest.mark.parametrize("ranges", [("", ""), ("#0-1", "#2-3")], ids=["the whole function", "ranges of it"])
def test_another_policy_with_the_same_resource_on_a_function_is_a_failure(ranges: tuple[str, str]) -> None:
    mine = changed(STORAGE, vfs_count=4, pf_names=(f"eth1{ranges[0]}",), vendor="8086")
    theirs = changed(STORAGE, name="theirs", vfs_count=7, pf_names=() if not ranges[1] else (f"eth1{ranges[1]}",))
    (found,) = find_objections(mine, beside(theirs))
    assert (found.check, found.where, found.function) == ("network.lint_overlap", "node", "eth1")
    assert "policy theirs (resource igb)" in found.measured
    assert "only one policy: of theirs, whose name sorts later" in found.why
    assert f"It offers the virtual functions of {mine.name} to no pod" in found.why
    assert "a resource_name of its own" in found.remedy


@pytest.mark.parametrize(
    "theirs",
    [
        changed(STORAGE, name="theirs", pf_names=("eth1",)),
        changed(STORAGE, name="theirs", resource_name="old", pf_names=(), vendor="8086"),
    ],
    ids=["for the webhook", "on the node"],
)
def test_policy_of_another_intent_is_left_to_its_owner(theirs: Policy) -> None:
    mine = changed(STORAGE, name="mine", pf_names=("eth1",), intent="ada")
    (found, *_others) = find_objections(mine, beside(dataclasses.replace(theirs, intent="infiniband-c692b2")))
    assert found.check == "network.lint_overlap" and "It belongs to the intent 'infiniband-c692b2'" in found.why
    assert "ask its owner" in found.remedy and "kubectl delete" not in found.remedy
    assert "If both are the same intent, set rdma_cluster.intent_name: infiniband-c692b2" in found.remedy
    (own, *_others) = find_objections(mine, beside(dataclasses.replace(theirs, intent="ada")))
    assert "ask its owner" not in own.remedy and "delete" in own.remedy and "It belongs to" not in own.why


def test_a_policy_that_asks_for_the_same_functions_in_the_same_way_takes_nothing() -> None:
    assert find_objections(STORAGE, beside(changed(STORAGE, name="theirs"))) == ()


def test_the_policy_of_all_nodes_of_the_fabric_is_removed_with_its_effect_in_mind() -> None:
    """A node of another model joins, so that each node needs a policy of its own."""
    common = changed(STORAGE, name="linerate-storage", root_devices=(IGB.address,))
    single = changed(common, name="linerate-storage-w1", node_selector={**LABEL, "kubernetes.io/hostname": "w1"})
    nodes = {name: ClusterNode(name, {**LABEL, "kubernetes.io/hostname": name}, True) for name in ("w1", "w2")}
    (found,) = find_objections(single, dataclasses.replace(beside(common), nodes=nodes))
    assert "remove the node with other addresses from the group rdma_nodes" in found.remedy
    assert "removes the virtual functions of 2 nodes: the operator drains each node and evicts the pods" in found.remedy
    assert found.remedy.index("Stop the jobs first") < found.remedy.index("kubectl delete sriovnetworknodepolicy")


def test_the_deletion_of_a_policy_of_others_names_the_drains() -> None:
    theirs = changed(STORAGE, name="old", pf_names=("eth1",))
    (found,) = find_objections(changed(STORAGE, pf_names=("eth1",)), beside(theirs))
    assert "removes the virtual functions of 1 node: the operator drains each node" in found.remedy
    assert "rdma_nodes" not in found.remedy


@pytest.mark.parametrize("key", ["eth1", IGB.address])
def test_a_policy_on_the_default_route_of_a_node_is_held_back_unless_a_waiver_covers_it(key: str) -> None:
    world = dataclasses.replace(WORLD, in_use={"w1": {key: "the default route of the node"}})
    findings = lint(FABRIC, (changed(STORAGE, mtu=9000),), world, ("w1",))
    (found,) = [one for one in findings if one.check == "network.lint_uplink"]
    assert (found.subject, found.status) == ("storage w1 eth1", "fail")
    assert "default route of the node; MTU 1500 -> 9000; virtual functions 0 -> 4" in found.measured
    assert "on all nodes at the same time, without a drain" in found.why and "select.pci" in found.remedy
    assert read_held({"storage": findings}, ()).keys() == {"storage"}
    assert not read_held({"storage": findings}, (Waiver("network.lint_uplink", "console", "storage w1 eth1"),))


def test_a_policy_on_an_address_of_a_node_is_held_back_and_names_how_the_other_nodes_go_on() -> None:
    world = dataclasses.replace(WORLD, in_use={"w1": {"eth1": "the address of the node 10.0.0.5"}})
    (found,) = [one for one in lint(FABRIC, (STORAGE,), world, ("w1",)) if one.check == "network.lint_uplink"]
    assert found.status == "fail" and "carries the address of the node 10.0.0.5" in found.measured
    assert "remove this label from the node and remove the node from the group rdma_nodes" in found.remedy


def test_a_function_that_does_not_change_or_serves_a_bond_or_a_network_may_be_selected() -> None:
    there = changed(IGB, vfs_count=4)
    for state, used in (
        (there, "the default route of the node"),
        (IGB, "the bond bond1"),
        (IGB, "the network 10.9.0.0/24"),
    ):
        world = dataclasses.replace(
            WORLD, states={"w1": NodeState("w1", interfaces=(state,))}, in_use={"w1": {"eth1": used}}
        )
        assert find_objections(STORAGE, world) == ()


def test_a_policy_that_no_longer_selects_the_default_route_is_held_back() -> None:
    """The operator resets the function: MTU, eSwitch mode and virtual functions of before."""
    there = changed(IGB, vfs_count=4, mtu=9000)
    before = WantedInterface(IGB.address, 4, groups=(VfGroup("storage", "igb", last=3),))
    narrower = changed(STORAGE, vendor="", pf_names=("eth4",))

    def find(wanted: WantedInterface, *others: Policy) -> list[Finding]:
        world = dataclasses.replace(
            beside(*others),
            states={"w1": NodeState("w1", (wanted,), (there, BNX))},
            in_use={"w1": {"eth1": "the default route of the node"}},
        )
        return [one for one in lint(FABRIC, (narrower,), world, ("w1",)) if one.check == "network.lint_uplink"]

    (found,) = find(before)
    assert (found.subject, found.status) == ("storage w1 eth1", "fail")
    assert "MTU 9000 -> that of before the policy" in found.measured and "no longer selects it" in found.why
    assert found.remedy.startswith("Keep the NIC in select of the fabric") and "rdma_waivers" in found.remedy
    assert find(changed(before, external=True)) == []
    assert find(changed(before, groups=(VfGroup("theirs", "igb", last=3),))) == []
    assert find(before, changed(STORAGE, name="another")) == []


@pytest.mark.parametrize("key", ["eth1", IGB.address])
def test_a_function_of_a_node_whose_networks_were_not_read_is_a_warning(key: str) -> None:
    world = dataclasses.replace(WORLD, in_use={"w1": {key: "networks that were not read"}})
    (found,) = [one for one in lint(FABRIC, (STORAGE,), world, ("w1",)) if one.check == "network.lint_uplink"]
    assert (found.subject, found.status) == ("storage w1 eth1", "warn")
    assert "unknown whether w1 has an address on the function" in found.measured and "ip -br addr on w1" in found.remedy
    there = changed(IGB, vfs_count=4)
    idle = dataclasses.replace(world, states={"w1": NodeState("w1", interfaces=(there,))})
    assert find_objections(STORAGE, idle) == ()


def test_a_node_whose_default_route_is_unknown_is_a_warning() -> None:
    (found,) = [
        one for one in lint(FABRIC, (STORAGE,), dataclasses.replace(WORLD, in_use={}), ("w1",)) if one.status == "warn"
    ]
    assert (found.check, found.subject) == ("network.lint_uplink", "storage w1")
    assert "unknown whether w1 uses" in found.measured and "ip route show default on w1" in found.remedy


def test_an_unknown_list_of_supported_nics_refuses_nothing() -> None:
    assert (
        find_objections(changed(STORAGE, device="1583"), dataclasses.replace(WORLD, supported=None))[0].check
        == "network.lint_select"
    )


def test_before_the_first_report_nothing_is_held_against_the_policy() -> None:
    assert find_objections(STORAGE, dataclasses.replace(WORLD, states={})) == ()
    findings = lint(FABRIC, (STORAGE,), dataclasses.replace(WORLD, states={}), ("w1",))
    # what nobody could look at is no pass
    assert {finding.check.partition("lint_")[2] for finding in findings if finding.status == "unknown"} == {
        "select",
        "functions",
        "overlap",
        "link",
        "rdma",
    }
    assert {finding.check for finding in findings if finding.status == "pass"} == {"network.lint_policy"}
    assert read_held({"storage": findings}, ()) == {}


def bad(findings: tuple[Finding, ...]) -> dict[tuple[str, str], Finding]:
    return {(finding.check, finding.subject): finding for finding in findings if finding.status != "pass"}


def test_findings_of_a_good_fabric() -> None:
    findings = lint(FABRIC, (STORAGE,), WORLD, ("w1",))
    assert bad(findings) == {}
    assert [(finding.check.partition("lint_")[2], finding.subject) for finding in findings] == [
        ("select", "storage w1"),
        *((rule, "storage") for rule in ("policy", "functions", "overlap", "link", "rdma")),
    ]
    assert (findings[0].measured, findings[2].measured) == ("eth1 at 0000:01:00.0", "satisfied on 1 of 1 node")


def test_no_nic_selected_names_the_nearest_and_what_the_operator_does_not_report() -> None:
    policy = changed(COMPUTE, device="1017")
    hcas = {
        "w1": NodeHcas(
            (
                Hca(
                    "mlx5_0",
                    netdevs=(Netdev("ib7", ""),),
                    pci=PciFunction("0000:70:00.0", "15b3", "1017", "0207", "mlx5_core"),
                ),
                Hca(
                    "mlx5_1",
                    netdevs=(Netdev("ib8", ""),),
                    pci=PciFunction("0000:80:00.0", "15b3", "1017", "0207", "mlx5_core"),
                    physical_function="0000:70:00.0",
                ),
            )
        )
    }
    found = bad(lint(FABRIC, (policy,), dataclasses.replace(WORLD, hcas=hcas), ("w1",)))
    why = found["network.lint_select", "storage w1"].why
    assert (
        "the closest match is ib0 at 0000:3c:00.0 (15b3:1021): deviceID is 1021, and the policy requires 1017"
    ) in why
    assert (
        "the operator does not report mlx5_0 at 0000:70:00.0 (15b3:1017) of the node: not in the"
        " ConfigMap supported-nic-ids"
    ) in why
    assert "mlx5_1" not in why
    assert (
        "no supported NIC is selected by the nicSelector in CR compute"
        in found["network.lint_select", "storage"].measured
    )


@pytest.mark.parametrize(
    ("hca", "why"),
    [
        (Hca("a", pci=PciFunction("0000:70:00.0", "15b3", "1021", "0207")), "no driver bound"),
        (
            Hca("a", pci=PciFunction("0000:70:00.0", "15b3", "1021", "0207", "mlx5_core")),
            "no network interface",
        ),
        (
            Hca(
                "a", netdevs=(Netdev("ib1", ""),), pci=PciFunction("0000:70:00.0", "15b3", "1021", "0207", "mlx5_core")
            ),
            "the log of the config daemon",
        ),
    ],
)
def test_why_the_operator_does_not_report_an_hca(hca: Hca, why: str) -> None:
    world = dataclasses.replace(WORLD, states={"w1": NodeState("w1", interfaces=(IGB,))}, hcas={"w1": NodeHcas((hca,))})
    assert why in bad(lint(FABRIC, (COMPUTE,), world, ("w1",)))["network.lint_select", "storage w1"].why


@pytest.mark.parametrize(
    ("policy", "nodes", "status", "measured"),
    [
        (
            changed(STORAGE, vendor="", device="", pf_names=("eth1", "eth4")),
            ("w1",),
            "fail",
            "eth1 at 0000:01:00.0, eth4 at 0000:05:00.0",
        ),
        (
            changed(STORAGE, node_selector={"rdma": "no"}),
            ("w1",),
            "fail",
            "0 physical functions: no policy selects the node",
        ),
        (STORAGE, ("w2",), "unknown", "node not in the cluster"),
    ],
)
def test_what_a_node_gets(policy: Policy, nodes: tuple[str, ...], status: str, measured: str) -> None:
    found = bad(lint(FABRIC, (policy,), WORLD, nodes))["network.lint_select", f"storage {nodes[0]}"]
    assert (found.status, found.measured) == (status, measured)


def test_a_function_without_rdma_device_is_a_warning() -> None:
    world = dataclasses.replace(
        WORLD, hcas={"w1": NodeHcas((Hca("eth4", pci=PciFunction(BNX.address, "14e4", "16d7", "0200", "bnxt_en")),))}
    )
    (found,) = bad(lint(FABRIC, (BROADCOM,), world, ("w1",))).values()
    assert (found.check, found.subject, found.status) == ("network.lint_rdma", "storage w1 eth4", "warn")


@pytest.mark.parametrize(
    ("mode", "plugins", "status"),
    [
        ("shared", ("rdma",), "fail"),
        ("exclusive", (), "fail"),
        ("exclusive", ("rdma",), None),
        ("shared", (), None),
        ("", ("rdma",), None),
    ],
)
def test_rdma_mode_and_plugin_go_together(mode: str, plugins: tuple[str, ...], status: typing.Optional[str]) -> None:
    fabric = dataclasses.replace(
        FABRIC,
        rdma=True,
        network=dataclasses.replace(FABRIC.network, meta_plugins=tuple({"type": name} for name in plugins)),
    )
    world = dataclasses.replace(WORLD, states={"w1": dataclasses.replace(WORLD.states["w1"], rdma_mode=mode)})
    found = bad(lint(fabric, (STORAGE,), world, ("w1",)))
    assert [finding.status for finding in found.values()] == ([status] if status else [])
    # what ib-sriov does by itself is not certain
    infiniband = bad(lint(dataclasses.replace(fabric, profile="sriov_infiniband"), (STORAGE,), world, ("w1",)))
    assert [finding.status for finding in infiniband.values()] == (
        [status.replace("fail", "warn") if mode == "exclusive" else status] if status else []
    )


def test_the_mode_that_the_nodes_will_get_counts() -> None:
    fabric = dataclasses.replace(FABRIC, network=dataclasses.replace(FABRIC.network, meta_plugins=({"type": "rdma"},)))
    shared = dataclasses.replace(WORLD, states={"w1": dataclasses.replace(WORLD.states["w1"], rdma_mode="shared")})
    assert bad(lint(fabric, (STORAGE,), dataclasses.replace(shared, rdma_mode="exclusive"), ("w1",))) == {}
    assert bad(lint(fabric, (STORAGE,), shared, ("w1",))) != {}


def test_what_fabrics_share_stays_where_one_of_them_does() -> None:
    objects = [{"fabric": "", "object": "namespace"}, {"fabric": "a", "object": "policy"}]
    assert select_remaining(objects, {}) == select_remaining(objects, {"b": "why"}) == objects
    assert select_remaining(objects, {"a": "why"}) == []


def test_a_failure_holds_the_fabric_back_and_a_waiver_lets_it_go() -> None:
    findings = {
        "storage": lint(FABRIC, (changed(STORAGE, vfs_count=8),), WORLD, ("w1",)),
        "other": lint(FABRIC, (STORAGE,), WORLD, ("w1",)),
    }
    assert read_held(findings, ()) == {
        "storage": (
            "1 finding network.lint_* failed, the first on storage w1 eth1: numVfs(8) in CR storage"
            " exceed the maximum allowed value(7) interface(eth1)"
        )
    }
    assert read_held(findings, (Waiver("network.lint_*", "the webhook decides", "storage*"),)) == {}


def test_policies_that_come_together_are_judged_together() -> None:
    other = dataclasses.replace(FABRIC, name="other", resource_name="other")
    policies = [
        ("storage", changed(STORAGE, root_devices=(IGB.address,))),
        ("other", changed(STORAGE, name="other", root_devices=(IGB.address,))),
    ]
    findings = lint_all((FABRIC, other), policies, WORLD, ("w1",))
    assert set(read_held(findings, ())) == {"storage", "other"}
    assert lint_all((FABRIC,), [], WORLD, ("w1",)) == {"storage": ()}


POLICIES = st.builds(
    Policy,
    name=st.sampled_from(["a", "b"]),
    resource_name=st.text(max_size=6),
    vfs_count=st.integers(0, 200),
    node_selector=st.sampled_from([LABEL, {}, {"rdma": "no"}]),
    vendor=st.sampled_from(["", "8086", "15b3", "ffff"]),
    device=st.sampled_from(["", "10c9", "1021", "10ca"]),
    root_devices=st.sampled_from([(), (IGB.address,), (MLX.address, BNX.address)]),
    pf_names=st.lists(
        st.sampled_from(["eth1", "eth1#0-3", "ib0#4-7"]) | st.text(alphabet="eth1#0-9", max_size=8), max_size=2
    ).map(tuple),
    mtu=st.integers(0, 70000),
    link_type=st.sampled_from(["", "ETH", "ib", "IB"]),
    device_type=st.sampled_from(["", "netdevice", "vfio-pci"]),
    rdma=st.booleans(),
    external=st.booleans(),
    net_filter=st.sampled_from(["", "openstack/NetworkID:1"]),
)


@given(POLICIES, POLICIES)
def test_any_two_policies_get_a_finding_on_each_node_and_never_a_crash(policy: Policy, other: Policy) -> None:
    findings = lint(FABRIC, (policy,), beside(other), ("w1", "w2"))
    assert [finding.subject for finding in findings if finding.check == "network.lint_select"][:2] == [
        "storage w1",
        "storage w2",
    ]
    # a node gets a pass only for what it really has
    passed = [finding for finding in findings if finding.check == "network.lint_select" and finding.status == "pass"]
    assert all(len(finding.measured.split(", ")) == FABRIC.select.hcas_per_node for finding in passed)


# Whom a finding accuses, and the edges of the rules


def told(findings: tuple[Finding, ...], *rules: str) -> list[tuple[str, ...]]:
    """Rule, subject and status of each finding."""
    found = [(item.check.partition("lint_")[2], item.subject, item.status) for item in findings]
    return [item for item in found if not rules or item[0] in rules]


def test_a_rule_that_is_broken_does_not_hold_as_well() -> None:
    findings = told(lint(FABRIC, (changed(STORAGE, vfs_count=8),), WORLD, ("w1",)))
    assert findings == [
        ("select", "storage w1", "pass"),
        ("functions", "storage w1 eth1", "fail"),
        *((rule, "storage", "pass") for rule in ("policy", "overlap", "link", "rdma")),
    ]


def test_a_fabric_is_not_held_back_for_the_policy_of_another() -> None:
    other = dataclasses.replace(FABRIC, name="other", resource_name="other")
    policies = [("storage", STORAGE), ("other", changed(BROADCOM, name="other", rdma=False, vfs_count=9))]
    findings = lint_all((FABRIC, other), policies, WORLD, ("w1",))
    assert set(read_held(findings, ())) == {"other"}
    assert {item.status for item in findings["storage"]} == {"pass"}


@pytest.mark.parametrize(
    ("policy", "nodes", "status"),
    [
        (changed(STORAGE, pf_names=("eth1", "eth4"), vendor="", device=""), ("w1",), "fail"),
        (changed(STORAGE, pf_names=("eth9",)), ("w1",), "fail"),
        (changed(STORAGE, node_selector={"rdma": "no"}), ("w1",), "fail"),
        (STORAGE, ("w2",), "unknown"),
        (STORAGE, ("w3",), "unknown"),
        (STORAGE, ("w1",), "pass"),
    ],
)
def test_what_is_selected_is_told_of_its_node(policy: Policy, nodes: tuple[str, ...], status: str) -> None:
    world = dataclasses.replace(WORLD, nodes={**WORLD.nodes, "w3": ClusterNode("w3", LABEL, True)})
    assert [item for item in told(lint(FABRIC, (policy,), world, nodes), "select") if item[1] != "storage"] == [
        ("select", f"storage {nodes[0]}", status)
    ]


def test_rules_of_nodes_that_nobody_reported_are_unknown_of_the_fabric() -> None:
    findings = told(
        lint(FABRIC, (STORAGE,), dataclasses.replace(WORLD, states={}), ("w1",)), "functions", "overlap", "link", "rdma"
    )
    assert findings == [(rule, "storage", "unknown") for rule in ("functions", "overlap", "link", "rdma")]


@pytest.mark.parametrize(
    ("rdma", "plugins", "mode", "expected"),
    [
        (True, (), "exclusive", [("rdma", "storage w1", "fail")]),
        (True, ({"type": "rdma"},), "shared", [("rdma", "storage w1", "fail")]),
        (False, ({"type": "rdma"},), "shared", [("rdma", "storage w1", "fail")]),
        # a fabric that asks for no RDMA does well in any mode
        (False, (), "exclusive", [("rdma", "storage", "pass")]),
        (False, (), "shared", [("rdma", "storage", "pass")]),
        (True, (), "shared", [("rdma", "storage", "pass")]),
    ],
)
def test_the_rdma_mode_is_told_of_its_node(
    rdma: bool, plugins: tuple[dict[str, str], ...], mode: str, expected: list[tuple[str, ...]]
) -> None:
    fabric = dataclasses.replace(FABRIC, rdma=rdma, network=dataclasses.replace(FABRIC.network, meta_plugins=plugins))
    world = dataclasses.replace(WORLD, states={"w1": dataclasses.replace(WORLD.states["w1"], rdma_mode=mode)})
    assert told(lint(fabric, (STORAGE,), world, ("w1",)), "rdma") == expected


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        (changed(STORAGE, vfs_count=7), []),
        (changed(STORAGE, vfs_count=1), []),
        (changed(COMPUTE, vfs_count=15), []),
        (changed(COMPUTE, vfs_count=128), ["functions"]),
        (changed(BROADCOM, vfs_count=8), []),
        (changed(STORAGE, mtu=9216), []),
        (changed(COMPUTE, mtu=2044), []),
        (changed(COMPUTE, mtu=2045), ["link"]),
        (changed(STORAGE, pf_names=("eth1#3-3",)), []),
        (changed(STORAGE, pf_names=("eth1#0-0",)), []),
        (changed(STORAGE, link_type=""), []),
        (changed(STORAGE, link_type="eth"), []),
        (changed(COMPUTE, link_type="ib"), []),
        (changed(STORAGE, eswitch_mode="switchdev"), []),
        (changed(STORAGE, eswitch_mode="switchdev", link_type=""), []),
        (changed(STORAGE, device_type="vfio-pci"), []),
        (changed(COMPUTE, device_type="vfio-pci", rdma=False), ["policy"]),
        (changed(COMPUTE, device_type="vfio-pci", rdma=False, link_type="ib"), ["policy"]),
        (
            changed(BROADCOM, vdpa_type="virtio", eswitch_mode="switchdev", device_type="vfio-pci", rdma=False),
            ["link", "policy"],
        ),
        (changed(BROADCOM, vdpa_type="virtio", eswitch_mode="switchdev", device_type=""), ["link"]),
        (changed(STORAGE, vendor="", device="", pf_names=("eth1",)), []),
        (changed(STORAGE, vendor="", device="", root_devices=(IGB.address,)), []),
        (changed(STORAGE, vendor="", device="10c9"), []),
        (changed(STORAGE, device=""), []),
        (changed(STORAGE, vendor="15b3", device="10c9"), ["policy", "select"]),
    ],
)
def test_the_last_policy_that_is_right_and_the_first_that_is_not(policy: Policy, rules: list[str]) -> None:
    assert sorted({item.check.partition("lint_")[2] for item in find_objections(policy, WORLD)}) == rules


@pytest.mark.parametrize(
    ("changes", "policy", "rules"),
    [
        ({"vfs_count": 4}, changed(STORAGE, external=True), []),
        ({"vfs_count": 3}, changed(STORAGE, external=True), ["functions"]),
        ({"vfs_count": 4, "mtu": 1500}, changed(STORAGE, external=True, mtu=1500), []),
        ({"vfs_count": 4, "mtu": 1500}, changed(STORAGE, external=True, mtu=1501), ["link"]),
        ({"vfs_count": 4, "mtu": None}, changed(STORAGE, external=True, mtu=1), ["link"]),
        ({"vfs_count": 4}, changed(STORAGE, external=True, link_type="IB"), ["link"]),
        ({"total_vfs": 0}, STORAGE, ["functions"]),
        ({"link_type": None}, changed(STORAGE, link_type="IB"), []),
        ({"link_type": "eth"}, STORAGE, []),
    ],
)
def test_what_the_function_itself_shows_counts(
    changes: dict[str, typing.Any], policy: Policy, rules: list[str]
) -> None:
    world = dataclasses.replace(
        WORLD, states={"w1": NodeState("w1", interfaces=(dataclasses.replace(IGB, **changes),))}
    )
    assert sorted({item.check.partition("lint_")[2] for item in find_objections(policy, world)}) == rules


@pytest.mark.parametrize(
    ("policy", "other", "met"),
    [
        (
            changed(STORAGE, pf_names=("eth1#0-1",)),
            changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#2-3",)),
            False,
        ),
        (
            changed(STORAGE, pf_names=("eth1#0-2",)),
            changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#2-3",)),
            True,
        ),
        (
            changed(STORAGE, pf_names=("eth1#2-3",)),
            changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#0-1",)),
            False,
        ),
        (
            changed(STORAGE, pf_names=("eth1#2-3",)),
            changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#0-2",)),
            True,
        ),
        # what is selected, not what is written
        (STORAGE, changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#4-5",), vfs_count=6), False),
        (STORAGE, changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#3-5",), vfs_count=6), True),
        (
            changed(STORAGE, pf_names=("eth1#4-5",), vfs_count=6),
            changed(STORAGE, name="old", resource_name="o", vendor="", device="", root_devices=(IGB.address,)),
            False,
        ),
        (
            changed(STORAGE, pf_names=("eth1#3-5",), vfs_count=6),
            changed(STORAGE, name="old", resource_name="o", vendor="", device="", root_devices=(IGB.address,)),
            True,
        ),
        (STORAGE, changed(STORAGE, name="old"), False),
        (STORAGE, changed(STORAGE, name="old", resource_name="o", net_filter="x"), False),
        (STORAGE, changed(STORAGE, name="old", resource_name="o", pf_names=("eth9",)), False),
        (STORAGE, changed(STORAGE, name="old", resource_name="o", node_selector={"rdma": "no"}), False),
        (changed(STORAGE, root_devices=(IGB.address,)), changed(BROADCOM, root_devices=(BNX.address,)), False),
        (STORAGE, changed(BROADCOM, exclude_topology=True), False),
    ],
)
def test_policies_meet_where_their_functions_do(policy: Policy, other: Policy, met: bool) -> None:
    found = [
        (item.node, item.function)
        for item in find_objections(policy, beside(other))
        if item.check == "network.lint_overlap"
    ]
    assert bool(found) == met
    assert not met or found[0] in (("", ""), ("w1", "eth1"))


def test_each_objection_is_told_of_the_node_and_the_function() -> None:
    two = dataclasses.replace(
        WORLD,
        nodes={**WORLD.nodes, "w2": ClusterNode("w2", LABEL, True)},
        states={**WORLD.states, "w2": NodeState("w2", interfaces=(changed(IGB, name=""),))},
    )
    found = find_objections(changed(STORAGE, vfs_count=8), two)
    assert [(item.node, item.function) for item in found] == [("w1", "eth1"), ("w2", "0000:01:00.0")]
    old = changed(STORAGE, name="old", resource_name="old", pf_names=("eth1",), vendor="")
    found = find_objections(STORAGE, dataclasses.replace(two, policies={"old": old}))
    assert [(item.check, item.node, item.function) for item in found] == [("network.lint_overlap", "w1", "eth1")]


def test_a_policy_is_right_as_long_as_one_node_reports_what_it_takes() -> None:
    states = {"w1": NodeState("w1", interfaces=(MLX,)), "w2": WORLD.states["w1"]}
    world = dataclasses.replace(
        WORLD, nodes={name: ClusterNode(name, LABEL, True) for name in ("w1", "w2")}, states=states
    )
    assert find_objections(STORAGE, world) == ()
    assert [
        item.check
        for item in find_objections(
            STORAGE, dataclasses.replace(world, states={"w1": states["w1"], "w2": NodeState("w2")})
        )
    ] == ["network.lint_select"]


@pytest.mark.parametrize(
    ("driver", "most"), [("igb", 9216), ("ixgbe", 9710), ("i40e", 9702), ("ice", 9702), ("bnxt_en", 9500)]
)
def test_each_driver_takes_its_own_mtu(driver: str, most: int) -> None:
    world = dataclasses.replace(
        WORLD, states={"w1": NodeState("w1", interfaces=(dataclasses.replace(IGB, driver=driver),))}
    )
    assert find_objections(changed(STORAGE, mtu=most), world) == ()
    assert [item.check for item in find_objections(changed(STORAGE, mtu=most + 1), world)] == ["network.lint_link"]


def test_a_nic_that_the_operator_does_not_support_is_not_selected() -> None:
    world = dataclasses.replace(WORLD, supported=NICS[1:])
    findings = told(
        lint(FABRIC, (changed(STORAGE, vendor="", device="", pf_names=("eth1",)),), world, ("w1",)), "select"
    )
    assert findings == [("select", "storage w1", "fail"), ("select", "storage", "fail")]


def test_the_rdma_device_of_another_function_is_none_of_this_one() -> None:
    bare = Hca("eth4", pci=PciFunction(BNX.address, "14e4", "16d7", "0200", "bnxt_en"))
    good = Hca("mlx5_0", "mlx5_0", pci=PciFunction(MLX.address, "15b3", "1021", "0207", "mlx5_core"))
    for hcas, found in (
        ((bare, good), ["network.lint_rdma"]),
        ((good,), []),
        ((Hca("soft"), bare), ["network.lint_rdma"]),
    ):
        assert [
            item.check for item in find_objections(BROADCOM, dataclasses.replace(WORLD, hcas={"w1": NodeHcas(hcas)}))
        ] == found


def test_a_policy_that_the_webhook_refuses_does_not_hide_the_next_one() -> None:
    first = changed(STORAGE, name="a", root_devices=(IGB.address,))
    second = changed(STORAGE, name="b", resource_name="b", vendor="", device="", pf_names=("eth1",))
    found = find_objections(changed(STORAGE, root_devices=(IGB.address,)), beside(first, second))
    assert [(item.node, item.function) for item in found] == [("", ""), ("w1", "eth1")]


def test_the_webhook_compares_what_is_written_of_one_name() -> None:
    """Other names are no overlap, and a name without a range is none with a name that has one."""
    assert (
        find_objections(changed(STORAGE, pf_names=("eth1#0-3",)), beside(changed(BROADCOM, pf_names=("eth4#0-3",))))
        == ()
    )
    whole = find_objections(
        changed(STORAGE, pf_names=("eth1",)),
        beside(changed(STORAGE, name="old", resource_name="o", pf_names=("eth1#0-1",))),
    )
    assert [(item.node, item.function) for item in whole] == [("w1", "eth1")]


def test_what_is_there_before_comes_from_what_was_seen_and_asked_for() -> None:
    policy = NicPolicy("nic-cluster-policy", "ready")
    seen = OperatorFacts(
        (),
        (),
        (),
        tuple(WORLD.nodes.values()),
        states=tuple(WORLD.states.values()),
        policies=(STORAGE,),
        supported_nics=NICS,
        nic_policies=(policy,),
    )
    hcas = {"w1": NodeHcas(())}
    for cluster, mode in ((ClusterIntent(), ""), (ClusterIntent(node_pool=DrainPool(1, "exclusive")), "exclusive")):
        assert read_cluster_before(seen, hcas, cluster) == ClusterBefore(
            WORLD.nodes, WORLD.states, {"storage": STORAGE}, NICS, hcas, mode, (policy,)
        )
