# SPDX-License-Identifier: GPL-3.0-or-later

"""The edges of stage discover: where a count is just enough, what is left out on purpose, and what one HCA says when
the one before it had nothing to say."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover.ethernet import check_ethernet
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import count_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    HeldParts,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world


def discovered(intent: typing.Optional[Intent] = None, **nodes: NodeHcas) -> tuple[Finding, ...]:
    """Findings of worker-1 and worker-2, unless other nodes are given."""
    seen = nodes or {"worker_1": world.node(1), "worker_2": world.node(2)}
    return discover.check(
        intent or world.intent(),
        discover.Facts({name.replace("_", "-"): ObservedHcas(node) for name, node in seen.items()}),
    )


def told(findings: typing.Iterable[Finding], check: str, subject: str = "") -> list[tuple[str, str]]:
    """Subject and status of each finding of a check."""
    return [
        (finding.subject, finding.status)
        for finding in findings
        if finding.check == check and subject in finding.subject
    ]


def of_pci(hca: Hca, **changes: typing.Any) -> Hca:
    assert hca.pci is not None
    return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, **changes))


def test_an_answer_beside_an_error_is_no_answer() -> None:
    observed = ObservedHcas(world.node(1), "the module was killed")
    findings = discover.check(world.intent(), discover.Facts({"worker-1": observed}))
    assert told(findings, "discover.node") == [("worker-1", "unknown")]
    assert told(findings, "discover.hcas") == []


@pytest.mark.parametrize(
    ("expected", "status", "measured"),
    [(3, "fail", "2 nodes"), (2, "pass", "2 nodes"), (1, "warn", "2 nodes")],
)
def test_inventory_with_another_number_of_nodes_than_the_intent_expects_is_named(
    expected: int, status: str, measured: str
) -> None:
    """A node whose kubelet takes off its label is in no other finding."""
    intent = world.intent()
    cluster = dataclasses.replace(intent.cluster, nodes_expected=expected)
    (finding,) = [
        item
        for item in discovered(dataclasses.replace(intent, cluster=cluster))
        if (item.check, item.subject) == ("discover.nodes", "inventory")
    ]
    assert (finding.status, finding.measured, finding.expected) == (status, measured, count_of(expected, "node"))
    assert status == "pass" or "rdma_cluster.nodes_expected" in finding.remedy
    assert told(discovered(intent), "discover.nodes") == []


def test_no_node_at_all_is_fewer_than_expected() -> None:
    intent = world.intent()
    cluster = dataclasses.replace(intent.cluster, nodes_expected=2)
    findings = discover.check(dataclasses.replace(intent, cluster=cluster), discover.Facts())
    assert told(findings, "discover.nodes") == [("inventory", "fail")]


def test_fabrics_that_share_interfaces_stand_on_the_hcas_of_others() -> None:
    """Four HCAs with virtual functions and IPoIB on the same four are four, and two fabrics of their own are eight."""
    few = world.node(1, mlx5_4=None, mlx5_5=None)
    ipoib = dataclasses.replace(world.fabric("ipoib", "ipoib", 0), rdma=False)
    apart = world.fabric("second")
    assert told(discovered(world.intent(world.fabric(), ipoib), worker_1=few), "discover.hcas") == [
        ("worker-1 compute and ipoib", "pass")
    ]
    assert told(discovered(world.intent(world.fabric(), apart), worker_1=few), "discover.hcas") == [
        ("worker-1 compute and second", "fail")
    ]


@pytest.mark.parametrize(("needed", "status"), [(4, "warn"), (5, "fail")])
def test_a_bad_port_is_spared_as_long_as_exactly_enough_good_ones_are_left(needed: int, status: str) -> None:
    bad = {f"mlx5_{index}": world.hca(1, index, state="DOWN", physical_state="Polling") for index in (0, 1)}
    findings = discovered(world.intent(world.fabric(hcas_per_node=needed)), worker_1=world.node(1, **bad))
    assert [state for _subject, state in told(findings, "discover.port") if state != "pass"] == [status, status]


def test_file_of_a_port_that_was_not_read_has_the_name_of_the_rdma_device() -> None:
    """The name of an HCA may be another one, such as that of its network interface."""
    port = dataclasses.replace(world.hca(1, 0).ports[0], state=None)
    unread = dataclasses.replace(world.hca(1, 0), name="ibp1s0", ports=(port,))
    findings = discovered(world.intent(world.fabric()), worker_1=world.node(1, mlx5_0=unread))
    (finding,) = [item for item in findings if item.check == "discover.port" and "ibp1s0" in item.subject]
    assert "/sys/class/infiniband/mlx5_0/ports/1/state" in finding.remedy
    assert "/sys/class/infiniband/mlx5_0/ports/1/state" in finding.why and "ibp1s0/" not in finding.why


def test_the_ethernet_port_of_an_infiniband_hca_neither_counts_nor_has_a_finding() -> None:
    """Four of four are needed. The InfiniBand port of one is down, and its Ethernet port would do for one that is
    up."""

    def both(index: int, **port: typing.Any) -> Hca:
        first = world.hca(1, index, **port)
        second = dataclasses.replace(world.hca(1, index).ports[0], number=2, link_layer="Ethernet", lid=0, sm_lid=0)
        return dataclasses.replace(first, ports=(*first.ports, second))

    node = world.node(1, mlx5_4=None, mlx5_5=None, mlx5_0=both(0, state="DOWN", physical_state="Polling"))
    findings = discovered(world.intent(world.fabric()), worker_1=node)
    assert told(findings, "discover.port", "mlx5_0") == [("worker-1 mlx5_0 port 1", "fail")]


def test_sriov_is_asked_of_nobody_where_no_fabric_makes_virtual_functions() -> None:
    netdev = world.hca(1, 0).netdevs[0].name
    whole = dataclasses.replace(
        world.fabric("whole", "host_device", 0, netdev=(netdev,), hcas_per_node=1), resource_name=""
    )
    findings = discovered(world.intent(whole))
    assert told(findings, "discover.driver") == [("worker-1 mlx5_0", "pass"), ("worker-2 mlx5_0", "pass")]
    assert told(findings, "discover.sriov") == []
    assert len(told(discovered(world.intent(world.fabric())), "discover.sriov")) == 12


def test_an_rdma_device_without_a_pci_function_is_judged_like_any_other() -> None:
    soft = dataclasses.replace(world.hca(1, 0), name="siw0", rdma_device="siw0", pci=None)
    findings = discovered(world.intent(world.fabric()), worker_1=world.node(1, mlx5_0=soft), worker_2=world.node(2))
    assert told(findings, "discover.driver", "siw0") == [("worker-1 siw0", "pass")]
    assert told(findings, "discover.fleet") == [("worker-1", "pass"), ("worker-2", "pass")]


def test_a_port_whose_rate_was_not_read_is_active_all_the_same() -> None:
    findings = discovered(worker_1=world.node(1, mlx5_0=world.hca(1, 0, rate_gbps=None)))
    assert told(findings, "discover.port", "mlx5_0") == [("worker-1 mlx5_0 port 1", "pass")]


NAMELESS = dataclasses.replace(
    world.igb(name="vnic1", netdevs=(), sriov=None, held=HeldParts((Netdev("net1", "52:54:00:98:00:02", 1500, "up"),))),
    pci=PciFunction("0000:00:04.0", "1af4", "1000", "0200", "virtio-pci"),
)
VNIC = dataclasses.replace(
    NAMELESS, name="vnic0", netdevs=(Netdev("vnic0", "52:54:00:98:00:01", 1500, "up"),), held=None
)


def moving(profile: typing.Literal["host_device", "macvlan"] = "host_device", **select: typing.Any) -> Fabric:
    """A fabric whose pods get a whole interface."""
    values = {"vendor": None, "device": None, "netdev": ("vnic0",), **select}
    return dataclasses.replace(
        world.storage(**values), name="vnic", profile=profile, virtual_functions=0, resource_name="", rdma=False
    )


def test_a_function_without_a_name_matters_only_where_one_with_a_name_is_missing() -> None:
    enough = world.node(1, eth1=None, vnic0=VNIC, vnic1=NAMELESS)
    assert told(discovered(world.intent(moving()), worker_1=enough), "discover.hcas") == [("worker-1 vnic", "pass")]
    alone = world.node(1, eth1=None, vnic1=NAMELESS)
    assert told(discovered(world.intent(moving()), worker_1=alone), "discover.hcas") == [("worker-1 vnic", "warn")]


@pytest.mark.parametrize(
    "fabric",
    [
        pytest.param(moving("macvlan"), id="its interface stays on the node"),
        pytest.param(
            moving(netdev=(), vendor="1af4", hcas_per_node=2),
            id="no name is asked for, so that the one in the pod is counted already",
        ),
    ],
)
def test_a_function_in_a_pod_stands_for_no_other_one(fabric: Fabric) -> None:
    findings = discovered(world.intent(fabric), worker_1=world.node(1, eth1=None, vnic1=NAMELESS))
    assert told(findings, "discover.hcas") == [("worker-1 vnic", "fail")]


def test_an_interface_that_pods_may_get_must_be_there() -> None:
    gone = dataclasses.replace(NAMELESS, held=None)
    findings = discovered(world.intent(moving(netdev=(), vendor="1af4")), worker_1=world.node(1, eth1=None, vnic1=gone))
    assert told(findings, "discover.port", "vnic1") == [("worker-1 vnic1", "warn")]


def test_the_interface_of_a_nic_without_a_driver_is_not_asked_for() -> None:
    findings = discovered(
        world.intent(world.storage()), worker_1=world.node(1, eth1=of_pci(world.igb(netdevs=()), driver=None))
    )
    assert told(findings, "discover.driver") == [("worker-1 eth1", "fail")]
    assert told(findings, "discover.port") == []


def test_a_listed_virtual_function_fails() -> None:
    node = world.node(1, mlx5_0=dataclasses.replace(world.hca(1, 0), physical_function="0000:4d:00.0"))
    findings = discovered(world.intent(world.fabric(pci=("0000:3c:00.0",), hcas_per_node=1)), worker_1=node)
    assert told(findings, "discover.select") == [("worker-1 compute 0000:3c:00.0", "fail")]


@pytest.mark.parametrize("unread", ["current_speed", "current_width", "max_speed", "max_width"])
def test_a_pcie_link_that_is_not_known_is_a_warning_and_the_next_hca_is_judged(unread: str) -> None:
    mute = of_pci(world.hca(1, 0), link=dataclasses.replace(world.LINK, **{unread: None}))
    findings = discovered(world.intent(world.fabric()), worker_1=world.node(1, mlx5_0=mute))
    assert told(findings, "discover.pcie") == [
        ("worker-1 mlx5_0", "warn"),
        *((f"worker-1 mlx5_{index}", "pass") for index in range(1, 6)),
    ]


def test_a_nic_of_a_hypervisor_does_not_hide_the_slot_of_the_next_one() -> None:
    slow = of_pci(
        dataclasses.replace(VNIC, name="vnic1"), address="0000:00:05.0", driver="igb", link=PcieLink(2.5, 1, 2.5, 4)
    )
    findings = discovered(
        world.intent(moving(netdev=(), vendor="1af4", hcas_per_node=2)),
        worker_1=world.node(1, eth1=None, vnic0=VNIC, vnic1=slow),
    )
    assert told(findings, "discover.pcie") == [("worker-1 vnic1", "warn")]


@pytest.mark.parametrize(
    ("fabric", "nodes"),
    [
        pytest.param(world.storage(), (world.node(1), world.node(2)), id="no InfiniBand in the intent"),
        pytest.param(world.fabric(), (world.node(1),), id="one node"),
        pytest.param(world.fabric(), (NodeHcas(()), NodeHcas(())), id="no HCA anywhere"),
    ],
)
def test_nothing_is_said_of_a_fleet_where_there_is_nothing_to_compare(
    fabric: Fabric, nodes: typing.Sequence[NodeHcas]
) -> None:
    findings = discovered(world.intent(fabric), **{f"worker_{number}": node for number, node in enumerate(nodes, 1)})
    assert told(findings, "discover.fleet") == []


@pytest.mark.parametrize("guid", [None, "0x0000000000000000"])
def test_hcas_without_guids_are_no_twins(guid: typing.Optional[str]) -> None:
    bare = {f"mlx5_{index}": dataclasses.replace(world.hca(1, index, guid=guid), node_guid=guid) for index in (0, 1)}
    findings = discovered(world.intent(world.fabric()), worker_1=world.node(1, **bare))
    assert told(findings, "discover.guids") == [("all nodes", "pass")]


def test_hcas_whose_description_was_not_read_are_no_twins() -> None:
    mute = {f"mlx5_{index}": dataclasses.replace(world.hca(1, index), node_description=None) for index in (0, 1)}
    findings = discovered(world.intent(world.fabric()), worker_1=world.node(1, **mute))
    assert told(findings, "discover.descriptions") == [("all nodes", "pass")]


def on(numa: typing.Optional[int], number: int = 1) -> NodeHcas:
    """A worker whose mlx5_0 is on this NUMA node; the others are on node 0."""
    return world.node(number, mlx5_0=of_pci(world.hca(number, 0), numa_node=numa))


def test_an_hca_on_another_numa_node_than_its_like_is_named() -> None:
    (finding,) = [one for one in discovered(a=on(1), b=on(0, 2), c=on(0, 3)) if one.check == "discover.numa"]
    assert (finding.subject, finding.status, finding.measured, finding.expected) == (
        "a mlx5_0",
        "warn",
        "NUMA node 1",
        "NUMA node 0, as on comparable nodes",
    )
    assert finding.why.startswith("For the HCA at 0000:3c:00.0, the BIOS reports NUMA node 0 on 2 of 3 nodes.")
    assert "NPS (AMD) or SNC (Intel)" in finding.remedy


def test_of_two_nodes_neither_numa_node_is_the_usual_one() -> None:
    (finding,) = [one for one in discovered(a=on(1), b=on(0, 2)) if one.check == "discover.numa"]
    assert (finding.subject, finding.measured) == ("0000:3c:00.0", "NUMA node 0 on b, 1 on a")


@pytest.mark.parametrize("numa", [0, None])
def test_numa_nodes_that_agree_or_of_which_nothing_is_said_are_no_finding(numa: typing.Optional[int]) -> None:
    assert not told(discovered(a=on(numa), b=on(0, 2)), "discover.numa")


@pytest.mark.parametrize(
    ("device", "others", "named"),
    [
        # the NIC of the Ethernet fabric is what it should be
        ("1021", 0, False),
        # the selectors match one more than the fabric needs, so one of them was switched
        ("1021", 1, True),
        # ConnectX-6 Dx has no InfiniBand
        ("101d", 1, False),
    ],
)
def test_a_nic_that_belongs_on_ethernet_is_not_to_be_switched_to_infiniband(
    device: str, others: int, named: bool
) -> None:
    intent = world.intent()
    select = dataclasses.replace(intent.fabrics[0].select, hcas_per_node=1, subnet_manager=(), vendor="15b3")
    roce = dataclasses.replace(intent.fabrics[0], name="storage", profile="sriov_ethernet", select=select)
    bare = world.node(1, **{f"mlx5_{index}": None for index in (0, 1, 2)})
    nics = [
        dataclasses.replace(
            of_pci(world.hca(1, 0, link_layer="Ethernet"), address=f"0000:e{number}:00.0", device=device),
            name=f"roce_{number}",
        )
        for number in range(1 + others)
    ]
    node = dataclasses.replace(bare, hcas=(*bare.hcas, *nics))
    (finding,) = [
        one
        for one in discovered(dataclasses.replace(intent, fabrics=(*intent.fabrics, roce)), a=node)
        if one.check == "discover.hcas" and "InfiniBand" in one.measured
    ]
    assert finding.status == "fail"
    assert ("roce_0" in finding.why, "LINK_TYPE" in finding.remedy) == (named, named)
    assert named or "no other InfiniBand HCA on the PCI bus" in finding.why


def test_a_card_that_is_set_to_ethernet_is_named_where_others_have_infiniband() -> None:
    ethernet = world.hca(1, 0, link_layer="Ethernet", lid=None, sm_lid=None)
    (finding,) = [
        one
        for one in discovered(a=world.node(1, mlx5_0=ethernet), b=world.node(2))
        if (one.check, one.subject) == ("discover.fleet", "a")
    ]
    assert finding.status == "warn" and "This HCA is set to Ethernet: mlx5_0" in finding.why
    assert finding.remedy.startswith(
        "If a fabric of the intent uses this HCA, set its link type to InfiniBand on the node"
        " (mstconfig -d 0000:3c:00.0 set LINK_TYPE_P1=1), then drain and reboot the node."
    )


def test_each_port_of_a_nic_with_several_ports_is_judged() -> None:
    fabric = {
        "name": "compute",
        "profile": "rdma_shared",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "network": {"name": "compute", "namespace": "training"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        "resource_name": "shared",
    }
    (roce,) = parse_intent([fabric]).fabrics
    good = Port(1, "ACTIVE", "LinkUp", "Ethernet", 400.0)

    def judge(*ports: Port) -> list[tuple[str, str]]:
        nic = Hca(
            "mlx5_0",
            "mlx5_0",
            (Netdev("ens1", "aa:bb", 1500, "up"), Netdev("ens2", "aa:bc", 1500, "down")),
            PciFunction("0000:3c:00.0", "15b3", "1023", "0200", "mlx5_core"),
            ports=ports,
        )
        found = check_ethernet(roce, "a", NodeHcas((nic,)))
        return [(item.subject, item.status) for item in found if item.check == "discover.port"]

    assert judge(good) == [("a mlx5_0", "pass")]
    down = dataclasses.replace(good, number=12, state="DOWN", physical_state="Disabled")
    assert judge(good, down) == [("a mlx5_0", "pass"), ("a mlx5_0 port 1", "pass"), ("a mlx5_0 port 12", "unknown")]
    unread = dataclasses.replace(good, number=2, state=None)
    assert judge(good, unread)[2:] == [("a mlx5_0 port 2", "unknown")]
    # what is active is more than stage bandwidth measures
    several = [dataclasses.replace(good, number=number) for number in range(1, 13)]
    assert judge(*several)[-1] == ("a mlx5_0 ports", "warn")
    assert [status for _subject, status in judge(*several)[:-1]] == ["pass"] * 13
