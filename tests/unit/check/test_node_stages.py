# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of the stages discover, reachability and platform: what is right passes, each fault has its own finding,
nothing is dropped."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import (
    find_candidates,
    resolve_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform import check as platform
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability import check as reachability
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import ObservedSubnets, SeenSubnet
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    ObservedPings,
    ObservedServers,
    Ping,
    PingServer,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.clock import NodeClock, ObservedClock
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    HeldParts,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
    Sriov,
    SriovAbsence,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Identity
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    Acs,
    NodePlatform,
    ObservedPlatform,
    PciEvidence,
    SriovCapability,
    VfMemory,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, judge
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

Findings = tuple[Finding, ...]


def one(findings: Findings, check: str, subject: str = "") -> Finding:
    """The only finding of a check whose subject holds a text."""
    found = [finding for finding in findings if finding.check == check and subject in finding.subject]
    assert len(found) == 1, [
        (finding.check, finding.subject, finding.status) for finding in findings if finding.check == check
    ]
    return found[0]


def statuses(findings: Findings) -> set[str]:
    return {finding.status for finding in findings}


def run(stage: typing.Any, facts: typing.Any, intent: typing.Optional[Intent] = None) -> Findings:
    """Run a check on facts that went the way of the data: out as JSON and in again."""
    answer: Findings = stage.check(intent or world.intent(), load(stage.Facts, to_data(facts), "facts"))
    return answer


# discover


def discovered(**nodes: typing.Any) -> discover.Facts:
    base = {"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(world.node(2))}
    seen = {**base, **{name.replace("_", "-"): value for name, value in nodes.items()}}
    return discover.Facts(seen, dict.fromkeys(seen, ObservedClock(NodeClock(10.5, True, 0.01, 10.0, 11.0))))


def test_discover_passes_on_what_the_intent_asks_for() -> None:
    findings = run(discover, discovered())
    assert statuses(findings) == {"pass"} and judge(findings).open
    assert "6 InfiniBand HCAs" in one(findings, "discover.hcas", "worker-1 compute").measured
    assert "eth1" in one(findings, "discover.hcas", "worker-2 storage").measured
    assert one(findings, "discover.port", "worker-1 mlx5_4").measured == "ACTIVE, LinkUp, 400 Gb/s (4X NDR), LID 20"
    assert one(findings, "discover.guids").measured == "12 port GUIDs and 12 node GUIDs, all different"
    assert one(findings, "discover.descriptions").measured == "12 descriptions, all different"
    assert one(findings, "discover.driver", "worker-1 mlx5_0").measured == "mlx5_core, mlx5_0"
    assert one(findings, "discover.sriov", "worker-1 eth1").measured == "at most 7 VFs"
    assert one(findings, "discover.fleet", "worker-2").measured == "6 InfiniBand HCAs"


def test_discover_without_nodes_or_answers_is_unknown() -> None:
    assert one(run(discover, discover.Facts()), "discover.node").status == "unknown"
    findings = run(discover, discovered(worker_2=ObservedHcas(error="unreachable: No route to host")))
    node = one(findings, "discover.node", "worker-2")
    assert node.status == "unknown" and "No route to host" in node.why
    assert not judge(findings).open


@pytest.mark.parametrize(
    ("port", "measured", "remedy"),
    [
        ({"state": "DOWN", "physical_state": "Polling"}, "DOWN, Polling", "cable"),
        ({"state": "DOWN", "physical_state": "Disabled"}, "DOWN, Disabled", "Run ibportstate LID 1 enable as root"),
        ({"state": "INIT", "sm_lid": None, "lid": None}, "no subnet manager", "Start a subnet manager"),
        ({"state": "ARMED"}, "ARMED, LinkUp", "log of the subnet manager"),
        ({"state": "DOWN", "physical_state": "LinkErrorRecovery"}, "LinkErrorRecovery", "replace the cable"),
        ({"lid": None}, "LID 0", "If ibstat on the node still shows LID 0"),
    ],
)
def test_discover_names_a_bad_port_as_what_it_is(port: dict[str, typing.Any], measured: str, remedy: str) -> None:
    """Six HCAs, of which four are needed: one bad port may be on no fabric of the intent; three can't be spared."""
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_0=world.hca(1, 0, **port)))))
    spare = one(findings, "discover.port", "worker-1 mlx5_0")
    assert (
        spare.status == "warn"
        and measured in spare.measured
        and remedy in spare.remedy
        and "this HCA may belong to no fabric of the intent" in spare.why
    )
    bad = {f"mlx5_{index}": world.hca(1, index, **port) for index in (0, 1, 4)}
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, **bad))))
    assert {one(findings, "discover.port", f"worker-1 {name}").status for name in bad} == {"fail"}


def test_discover_unread_state_is_unknown_and_not_down() -> None:
    bad = {f"mlx5_{index}": world.hca(1, index, state=None) for index in (0, 1, 4)}
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, **bad))))
    assert one(findings, "discover.port", "worker-1 mlx5_0").status == "unknown"


def test_discover_counts_and_says_what_is_missing() -> None:
    gone = {f"mlx5_{index}": None for index in (0, 1, 2)}
    few = one(
        run(discover, discovered(worker_1=ObservedHcas(world.node(1, **gone)))), "discover.hcas", "worker-1 compute"
    )
    assert few.status == "fail" and "lspci" in few.remedy
    bare = dataclasses.replace(
        world.hca(1, 0),
        rdma_device=None,
        ports=(),
        name="0000:3c:00.0",
        pci=PciFunction("0000:3c:00.0", "15b3", "1021", "0207"),
    )
    driverless = one(
        run(discover, discovered(worker_1=ObservedHcas(world.node(1, **{**gone, "mlx5_0": bare})))),
        "discover.hcas",
        "worker-1 compute",
    )
    assert "no driver" in driverless.why and "0000:3c:00.0" in driverless.why
    ethernet = {f"mlx5_{index}": world.hca(1, index, link_layer="Ethernet") for index in (0, 1, 2)}
    switched = one(
        run(discover, discovered(worker_1=ObservedHcas(world.node(1, **ethernet)))), "discover.hcas", "worker-1 compute"
    )
    assert "Ethernet" in switched.why and "LINK_TYPE" in switched.remedy


@pytest.mark.parametrize(
    ("change", "check", "status"),
    [
        ({"pci": None}, "discover.hcas", "fail"),
        ({"netdevs": ()}, "discover.port", "warn"),
        ({"netdevs": (dataclasses.replace(world.igb().netdevs[0], state="down"),)}, "discover.port", "warn"),
        ({"pci": dataclasses.replace(world.igb().pci, driver=None)}, "discover.driver", "fail"),  # type: ignore[type-var]
        ({"pci": dataclasses.replace(world.igb().pci, driver="vfio-pci")}, "discover.driver", "fail"),  # type: ignore[type-var]
        ({"sriov": None}, "discover.sriov", "fail"),
        ({"physical_function": "0000:01:00.0"}, "discover.hcas", "fail"),
    ],
)
def test_discover_judges_an_ethernet_nic(change: dict[str, typing.Any], check: str, status: str) -> None:
    findings = run(
        discover,
        discovered(worker_1=ObservedHcas(world.node(1, eth1=world.igb(**change)))),
        world.intent(world.storage()),
    )
    assert one(findings, check, "worker-1").status == status


def test_an_interface_that_goes_into_pods_may_be_down_and_a_virtio_nic_has_no_pcie_link() -> None:
    vnic = dataclasses.replace(
        world.storage(netdev=("vnic0",), vendor=None, device=None),
        name="vnic",
        profile="host_device",
        virtual_functions=0,
        resource_name="",
        rdma=False,
    )
    virtio = PciFunction("0000:00:03.0", "1af4", "1000", "0200", "virtio-pci")
    nic = dataclasses.replace(
        world.igb(), name="vnic0", pci=virtio, sriov=None, netdevs=(Netdev("vnic0", "52:54:00:98:00:01", 1500, "down"),)
    )
    findings = run(
        discover,
        discovered(worker_1=ObservedHcas(world.node(1, vnic0=nic)), worker_2=ObservedHcas(world.node(2, vnic0=nic))),
        world.intent(vnic),
    )
    assert one(findings, "discover.port", "worker-1 vnic0").status == "pass"
    assert [finding.subject for finding in findings if finding.check == "discover.pcie"] == []
    macvlan = dataclasses.replace(vnic, profile="macvlan")
    findings = run(
        discover,
        discovered(worker_1=ObservedHcas(world.node(1, vnic0=nic)), worker_2=ObservedHcas(world.node(2, vnic0=nic))),
        world.intent(macvlan),
    )
    assert one(findings, "discover.port", "worker-1 vnic0").status == "warn"


def test_an_interface_that_a_pod_has_is_counted_by_the_name_that_it_had() -> None:
    vnic = dataclasses.replace(
        world.storage(netdev=("vnic0",), vendor=None, device=None),
        name="vnic",
        profile="host_device",
        virtual_functions=0,
        resource_name="",
        rdma=False,
    )
    virtio = PciFunction("0000:00:03.0", "1af4", "1000", "0200", "virtio-pci")
    taken = HeldParts((Netdev("net1", "52:54:00:98:00:01", 1500, "up"),), ("vnic0",))
    nic = dataclasses.replace(world.igb(), name="vnic0", pci=virtio, sriov=None, netdevs=(), held=taken)
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, vnic0=nic))), world.intent(vnic))
    assert [
        one(findings, check, "worker-1").status for check in ("discover.hcas", "discover.driver", "discover.port")
    ] == ["pass"] * 3
    assert one(findings, "discover.port", "worker-1").measured == "in a pod: net1 up"
    # nobody kept its name: it may be the one, and nothing else is
    unnamed = dataclasses.replace(nic, held=dataclasses.replace(taken, names=()))
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, vnic0=unnamed))), world.intent(vnic))
    found = one(findings, "discover.hcas", "worker-1")
    assert (found.status, "select.pci" in found.remedy) == ("warn", True)
    # one that is another's, or that nobody has, is missing as before
    for other in (
        dataclasses.replace(nic, held=dataclasses.replace(taken, names=("vnic7",))),
        dataclasses.replace(nic, held=None),
    ):
        findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, vnic0=other))), world.intent(vnic))
        assert one(findings, "discover.hcas", "worker-1").status == "fail"
    # a fabric whose interface stays on the node has lost it
    macvlan = dataclasses.replace(vnic, profile="macvlan")
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, vnic0=nic))), world.intent(macvlan))
    assert one(findings, "discover.port", "worker-1").status == "warn"


def test_an_hca_that_a_pod_has_in_exclusive_mode_is_no_missing_one() -> None:
    free = world.hca(1, 0)
    lost = dataclasses.replace(free, rdma_device=None, netdevs=(), ports=(), node_guid=None)
    taken = dataclasses.replace(lost, held=HeldParts(free.netdevs, (), "mlx5_0", free.node_guid, free.ports))
    intent = world.intent(world.fabric(hcas_per_node=6))
    for hca, status in ((taken, "pass"), (lost, "fail")):
        findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_0=hca))), intent)
        assert one(findings, "discover.hcas", "worker-1").status == status
        assert one(findings, "discover.driver", "worker-1 mlx5_0").status == status


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("0000:3C:00.0", "pass", ""),
        ("0000:3c:00.1", "fail", "did you mean '0000:3c:00.0'"),
        (
            "0000:01:00.0",
            "fail",
            "The function does not match another selector of the fabric: vendor 15b3, but the function has 8086",
        ),
        (
            "0000:9c:00.0",
            "fail",
            "The link layer of the function does not match the profile sriov_infiniband: Ethernet",
        ),
    ],
)
def test_discover_compares_a_list_of_addresses_with_the_node(address: str, status: str, text: str) -> None:
    node = world.node(1, mlx5_3=world.hca(1, 3, link_layer="Ethernet"))
    findings = run(
        discover,
        discovered(worker_1=ObservedHcas(node)),
        world.intent(world.fabric(pci=(address,), vendor="15b3", hcas_per_node=1)),
    )
    finding = one(findings, "discover.select", "worker-1")
    assert finding.status == status and text in finding.why


def test_discover_names_a_listed_virtual_function() -> None:
    node = world.node(1, mlx5_0=dataclasses.replace(world.hca(1, 0), physical_function="0000:4d:00.0"))
    findings = run(
        discover,
        discovered(worker_1=ObservedHcas(node)),
        world.intent(world.fabric(pci=("0000:3c:00.0",), hcas_per_node=1)),
    )
    assert one(findings, "discover.select", "worker-1").measured == "a virtual function"


def test_discover_warns_of_a_narrow_slot_and_of_unread_files() -> None:
    link = dataclasses.replace(world.LINK, current_width=8)
    slow = dataclasses.replace(world.hca(1, 0), pci=dataclasses.replace(world.hca(1, 0).pci, link=link))  # type: ignore[type-var]
    node = NodeHcas(world.node(1, mlx5_0=slow).hcas, ("/sys/x: Invalid argument",))
    findings = run(discover, discovered(worker_1=ObservedHcas(node)))
    assert (
        one(findings, "discover.pcie", "worker-1 mlx5_0").status,
        one(findings, "discover.pcie", "worker-1 mlx5_0").measured,
    ) == ("warn", "PCIe link 32 GT/s x8")
    assert one(findings, "discover.read", "worker-1").status == "warn"


def test_discover_finds_a_guid_that_two_hcas_have() -> None:
    twin = world.node(2, mlx5_0=world.hca(2, 0, guid=plain_guid(1, 0, 1)))
    finding = one(run(discover, discovered(worker_2=ObservedHcas(twin))), "discover.guids")
    assert finding.status == "fail" and finding.subject == f"port GUID {plain_guid(1, 0, 1)}"
    assert finding.measured == "on 2 ports: worker-1 mlx5_0 port 1, worker-2 mlx5_0 port 1"
    twin = world.node(2, mlx5_0=dataclasses.replace(world.hca(2, 0), node_guid=plain_guid(1, 0)))
    finding = one(run(discover, discovered(worker_2=ObservedHcas(twin))), "discover.guids")
    assert finding.status == "fail" and finding.subject == f"node GUID {plain_guid(1, 0)}"


def test_discover_leaves_the_guids_of_virtual_functions_to_their_stage() -> None:
    virtual = dataclasses.replace(world.hca(1, 0), name="mlx5_9", physical_function="0000:3c:00.0")
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_9=virtual))))
    assert one(findings, "discover.guids").status == "pass" and one(findings, "discover.descriptions").status == "pass"


@pytest.mark.parametrize("description", ["MT4129 ConnectX7   Mellanox Technologies", '"; rm -rf /\n{{ 7*7 }}', ""])
def test_discover_warns_of_one_description_for_two_hcas(description: str) -> None:
    twin = dataclasses.replace(world.hca(1, 1), node_description=description)
    node = world.node(1, mlx5_0=dataclasses.replace(world.hca(1, 0), node_description=description), mlx5_1=twin)
    finding = one(run(discover, discovered(worker_1=ObservedHcas(node))), "discover.descriptions")
    measured = f"2 HCAs with node description {description!r}: worker-1 mlx5_0, worker-1 mlx5_1"
    assert (finding.status, finding.subject, finding.measured) == ("warn", "worker-1 mlx5_0", measured)
    assert "rdma-ndd" in finding.remedy


DRIVERLESS = dataclasses.replace(
    world.hca(1, 0),
    name="0000:3c:00.0",
    rdma_device=None,
    ports=(),
    pci=PciFunction("0000:3c:00.0", "15b3", "1021", "0207"),
)


@pytest.mark.parametrize(
    ("bare", "status", "measured", "text"),
    [
        (
            DRIVERLESS,
            "fail",
            "no driver",
            "The driver for 15b3:1021 is not loaded, or it failed for the function 0000:3c:00.0",
        ),
        (
            dataclasses.replace(DRIVERLESS, unread=("driver",)),
            "unknown",
            "driver not read",
            "so it is unknown which driver the function has",
        ),
        (
            dataclasses.replace(
                DRIVERLESS, pci=dataclasses.replace(typing.cast(PciFunction, DRIVERLESS.pci), driver="mlx5_core")
            ),
            "fail",
            "driver mlx5_core, no RDMA device",
            "The RDMA driver of the NIC is not loaded",
        ),
        (
            dataclasses.replace(
                DRIVERLESS, pci=dataclasses.replace(typing.cast(PciFunction, DRIVERLESS.pci), driver="vfio-pci")
            ),
            "fail",
            "driver vfio-pci",
            "vfio-pci gives the function to a virtual machine",
        ),
    ],
)
def test_discover_names_a_function_that_the_kernel_does_not_drive(
    bare: typing.Any, status: str, measured: str, text: str
) -> None:
    """With five other HCAs it can be spared; with three of four it can't."""
    spared = one(
        run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_0=bare)))),
        "discover.driver",
        "worker-1 0000:3c:00.0",
    )
    assert (spared.status, spared.measured) == ("warn", measured) and text in spared.why
    node = world.node(1, mlx5_0=bare, mlx5_1=None, mlx5_2=None)
    assert (
        one(run(discover, discovered(worker_1=ObservedHcas(node))), "discover.driver", "worker-1 0000:3c:00.0").status
        == status
    )


def test_discover_takes_a_bond_for_what_it_is() -> None:
    """The second function of a bond has no RDMA device of its own: the bond's stands for it."""
    bonded = (dataclasses.replace(world.igb().netdevs[0], bond="bond0"),)
    first = world.igb(name="mlx5_bond_0", rdma_device="mlx5_bond_0", netdevs=bonded)
    second = world.igb(
        name="ens1f1",
        netdevs=bonded,
        pci=dataclasses.replace(typing.cast(PciFunction, world.igb().pci), address="0000:01:00.1"),
    )
    intent = world.intent(dataclasses.replace(world.storage(hcas_per_node=2), rdma=True))
    nodes = {"worker-1": ObservedHcas(world.node(1, eth1=first, ens1f1=second))}
    assert (
        one(run(discover, discover.Facts(nodes), intent), "discover.driver", "ens1f1").measured
        == "igb, in a bond with mlx5_bond_0"
    )
    alone = dataclasses.replace(second, netdevs=(dataclasses.replace(bonded[0], bond=None),))
    nodes = {"worker-1": ObservedHcas(world.node(1, eth1=first, ens1f1=alone))}
    assert one(run(discover, discover.Facts(nodes), intent), "discover.driver", "ens1f1").status == "fail"


@pytest.mark.parametrize(
    ("change", "measured", "layer"),
    [
        ({"sriov": None}, "no VFs offered: no file sriov_totalvfs", "in the BIOS or in the firmware"),
        (
            {"sriov": None, "sriov_absence": "hidden"},
            "no VFs offered: no file sriov_totalvfs",
            "The BIOS hides it, or the node is a virtual machine",
        ),
        (
            {"sriov": None, "sriov_absence": "off"},
            "no VFs offered: no file sriov_totalvfs",
            "disabled in the firmware of the NIC",
        ),
        (
            {"sriov": None, "sriov_absence": "unused"},
            "no VFs offered: no file sriov_totalvfs",
            "the kernel or the BIOS does not support them",
        ),
        ({"sriov": Sriov(0, 0)}, "0 VFs offered (sriov_totalvfs)", "The firmware of the function"),
        (
            {"sriov": Sriov(None, 0)},
            "number of offered VFs not read (sriov_totalvfs)",
            "unknown how many VFs the function offers",
        ),
    ],
)
def test_discover_names_the_layer_without_sriov(change: dict[str, typing.Any], measured: str, layer: str) -> None:
    lame = {f"mlx5_{index}": dataclasses.replace(world.hca(1, index), **change) for index in (0, 1, 4)}
    spared = one(
        run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_0=lame["mlx5_0"])))),
        "discover.sriov",
        "worker-1 mlx5_0",
    )
    assert (spared.status, spared.measured) == ("warn", measured) and layer in spared.why
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, **lame))))
    needed = one(findings, "discover.sriov", "worker-1 mlx5_4")
    assert (
        needed.status == ("unknown" if measured == "number of offered VFs not read (sriov_totalvfs)" else "fail")
        and not judge(findings).open
    )


def test_discover_misses_an_hca_that_the_other_node_has() -> None:
    findings = run(discover, discovered(worker_1=ObservedHcas(world.node(1, mlx5_0=None))))
    missing = one(findings, "discover.fleet", "worker-1")
    assert missing.status == "warn" and "0000:3c:00.0" in missing.why
    assert one(findings, "discover.fleet", "worker-2").status == "pass"


# membership

NODES = {"worker-1": world.node(1), "worker-2": world.node(2)}
SUBNETS = {"worker-1": world.subnets(), "worker-2": world.subnets()}


def names(membership: typing.Any, node: str) -> list[str]:
    return [member.hca.name for member in membership.members[node]]


def test_the_manager_that_a_port_sees_decides() -> None:
    four, two = (
        resolve_members(world.fabric(), NODES, SUBNETS),
        resolve_members(world.fabric(hcas_per_node=2), NODES, SUBNETS),
    )
    assert four.subnet_managers == (world.MASTERS[1].guid,) and names(four, "worker-2") == [
        "mlx5_0",
        "mlx5_1",
        "mlx5_4",
        "mlx5_5",
    ]
    assert [member.rail for member in four.members["worker-1"]] == [0, 1, 2, 3]
    assert two.subnet_managers == (world.MASTERS[2].guid,) and names(two, "worker-1") == ["mlx5_2", "mlx5_3"]


def test_two_fabrics_that_fit_are_not_guessed() -> None:
    same = tuple(
        dataclasses.replace(seen, master=world.MASTERS[1 if seen.rdma_device in ("mlx5_0", "mlx5_1", "mlx5_4") else 2])
        for seen in world.subnets()
    )
    contested = resolve_members(world.fabric(hcas_per_node=3), NODES, {"worker-1": same, "worker-2": same})
    assert not contested.resolved and contested.members == {}
    assert (
        all(master.guid in contested.remedy for master in world.MASTERS.values())
        and "select.subnet_manager" in contested.remedy
    )
    named = resolve_members(
        world.fabric(hcas_per_node=3, subnet_manager=(world.MASTERS[2].guid,)),
        NODES,
        {"worker-1": same, "worker-2": same},
    )
    assert names(named, "worker-1") == ["mlx5_2", "mlx5_3", "mlx5_5"]


def _report_master(guid: str, *devices: str) -> tuple[SeenSubnet, ...]:
    """Return the subnets of a node whose HCAs report another master."""
    return tuple(
        dataclasses.replace(seen, master=dataclasses.replace(seen.master, guid=guid))
        if seen.master is not None and (not devices or seen.rdma_device in devices)
        else seen
        for seen in world.subnets()
    )


@pytest.mark.parametrize(
    ("count", "liars", "clear"),
    [
        (3, ("0x00000000deadbeef",), True),
        # each reports another one, and most nodes report the same
        (5, ("0x00000000deadbeef", "0x00000000deadbee0"), True),
        (5, ("0x00000000deadbee1", "0x00000000deadbee2", "0x00000000deadbee3"), False),
        (16, ("0x00000000deadbeef", "0x00000000deadbeef"), False),
        # of two nodes, it is not known which one is wrong
        (2, ("0x00000000deadbeef",), False),
    ],
)
def test_single_node_with_another_subnet_manager_does_not_hide_the_fabric(
    count: int, liars: tuple[str, ...], clear: bool
) -> None:
    nodes = {f"n{number:02}": world.node(1) for number in range(count)}
    subnets = {name: world.subnets() for name in nodes}
    odd = dict(zip(sorted(nodes, reverse=True), liars))
    subnets |= {name: _report_master(guid, "mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5") for name, guid in odd.items()}
    membership = resolve_members(world.fabric(), nodes, subnets)
    assert membership.resolved is clear
    if not clear:
        assert "select.subnet_manager" in membership.remedy and all(name in membership.why for name in odd)
        return
    assert membership.subnet_managers == (world.MASTERS[1].guid,)
    assert {name for name in nodes if not membership.members[name]} == {*odd}
    assert all(
        [member.rail for member in membership.members[name]] == [0, 1, 2, 3] for name in nodes if name not in odd
    )


def test_single_node_with_another_subnet_manager_shifts_no_rail_of_another_node() -> None:
    """It claims that the slot of an HCA, whose port is down on worker-1, is on another fabric."""
    nodes = {f"worker-{number}": world.node(number) for number in (1, 2, 3, 4)}
    subnets = {name: world.subnets() for name in nodes}
    subnets["worker-1"] = world.subnets(mlx5_0=SeenSubnet("mlx5_0", 1, error="the port is DOWN"))
    subnets["worker-4"] = _report_master("0x00000000deadbeef", "mlx5_0")
    membership = resolve_members(world.fabric(subnet_manager=(world.MASTERS[1].guid,)), nodes, subnets)
    assert [(member.hca.name, member.rail) for member in membership.members["worker-1"]] == [
        ("mlx5_1", 1),
        ("mlx5_4", 2),
        ("mlx5_5", 3),
    ]


def test_a_missing_hca_leaves_a_gap_and_does_not_shift_the_rails() -> None:
    down = world.subnets(mlx5_0=SeenSubnet("mlx5_0", 1, error="the port is DOWN"))
    membership = resolve_members(world.fabric(), NODES, {"worker-1": down, "worker-2": world.subnets()})
    assert [(member.hca.name, member.rail) for member in membership.members["worker-1"]] == [
        ("mlx5_1", 1),
        ("mlx5_4", 2),
        ("mlx5_5", 3),
    ]
    assert len(membership.members["worker-2"]) == 4


def test_rails_of_unlike_nodes_go_by_name_and_then_by_place() -> None:
    def moved(item: typing.Any, place: int, name: typing.Optional[str] = None) -> typing.Any:
        return dataclasses.replace(
            item,
            pci=dataclasses.replace(item.pci, address=f"0000:{place:02x}:00.0"),
            rdma_device=name or item.rdma_device,
        )

    by_name = NodeHcas(tuple(moved(item, 9 - place) for place, item in enumerate(NODES["worker-2"].hcas[:2])))
    fabric_of_two = world.fabric(hcas_per_node=2, subnet_manager=(world.MASTERS[1].guid,))
    first = NodeHcas(NODES["worker-1"].hcas[:2])
    membership = resolve_members(fabric_of_two, {"worker-1": first, "worker-2": by_name}, SUBNETS)
    assert {member.hca.rdma_device: member.rail for member in membership.members["worker-2"]} == {
        "mlx5_0": 0,
        "mlx5_1": 1,
    }
    odd = NodeHcas(
        tuple(moved(item, 9 - place, f"odd{place}") for place, item in enumerate(NODES["worker-2"].hcas[:2]))
    )
    seen = tuple(dataclasses.replace(item, rdma_device=f"odd{place}") for place, item in enumerate(world.subnets()[:2]))
    membership = resolve_members(
        fabric_of_two, {"worker-1": first, "worker-2": odd}, {"worker-1": world.subnets(), "worker-2": seen}
    )
    assert {member.hca.rdma_device: member.rail for member in membership.members["worker-2"]} == {"odd1": 0, "odd0": 1}


def test_a_failover_of_listed_managers_changes_nothing() -> None:
    """The standby has another GUID. In the middle of it some ports see one, and some the other."""
    standby, master = world.STANDBYS[1], world.MASTERS[1]
    after = tuple(
        dataclasses.replace(seen, master=standby) if seen.master == master else seen for seen in world.subnets()
    )
    both = world.fabric(subnet_manager=(master.guid, standby.guid))
    expected = ["mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"]
    for first, second in (
        (world.subnets(), world.subnets()),
        (after, after),
        (after, world.subnets()),
        ((after[0], *world.subnets()[1:]), after),
    ):
        membership = resolve_members(both, NODES, {"worker-1": first, "worker-2": second})
        assert names(membership, "worker-1") == names(membership, "worker-2") == expected
        assert [member.rail for member in membership.members["worker-1"]] == [0, 1, 2, 3]
    alone = resolve_members(world.fabric(subnet_manager=(master.guid,)), NODES, {"worker-1": after, "worker-2": after})
    assert not alone.resolved and (
        standby.guid in alone.why and "list all subnet managers that can be the master" in alone.remedy
    )


def test_the_only_server_of_its_model_keeps_its_rails_when_one_is_down() -> None:
    """Without a topology: the slots that may be of the fabric are known, also while a port is down."""
    odd = tuple(
        dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, address=f"0001{hca.pci.address[4:]}"))
        for hca in NODES["worker-2"].hcas
        if hca.pci
    )
    down = world.subnets(mlx5_1=SeenSubnet("mlx5_1", 1, error="the port is DOWN", linked=False))
    membership = resolve_members(
        world.fabric(),
        {"worker-1": NODES["worker-1"], "worker-2": NodeHcas(odd)},
        {"worker-1": world.subnets(), "worker-2": down},
    )
    assert [(member.hca.name, member.rail) for member in membership.members["worker-2"]] == [
        ("mlx5_0", 0),
        ("mlx5_4", 2),
        ("mlx5_5", 3),
    ]


def test_a_slot_that_two_models_share_is_counted_on_both_while_its_port_is_down() -> None:
    odd = tuple(
        (
            dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, address=f"0001{hca.pci.address[4:]}"))
            if hca.name != "mlx5_1"
            else hca
        )
        for hca in NODES["worker-2"].hcas
        if hca.pci
    )
    nodes = {"worker-1": NODES["worker-1"], "worker-2": NodeHcas(odd)}
    down = world.subnets(mlx5_1=SeenSubnet("mlx5_1", 1, error="the port is DOWN", linked=False))
    before, after = (
        {
            member.hca.name: member.rail
            for member in resolve_members(
                world.fabric(), nodes, {"worker-1": world.subnets(), "worker-2": seen}
            ).members["worker-2"]
        }
        for seen in (world.subnets(), down)
    )
    assert before.pop("mlx5_1") is not None and after == before


def test_the_group_that_fits_on_all_nodes_comes_before_one_that_fits_on_some() -> None:
    # of fabric 1 only two ports of worker-2 are up, which is as many as fabric 2 has everywhere
    down = {name: SeenSubnet(name, 1, error="the port is DOWN") for name in ("mlx5_4", "mlx5_5")}
    membership = resolve_members(
        world.fabric(hcas_per_node=2), NODES, {"worker-1": world.subnets(), "worker-2": world.subnets(**down)}
    )
    assert membership.resolved and membership.subnet_managers == (world.MASTERS[2].guid,)


def test_an_ethernet_fabric_takes_what_has_a_pci_address_and_no_infiniband() -> None:
    node = world.node(1, eth2=world.igb(name="eth2", pci=None))
    assert [hca.name for hca in find_candidates(world.storage(vendor=None, device=None), node)] == ["eth1"]


@pytest.mark.parametrize(
    "manager", [("any",), (), (world.MASTERS[1].guid,), ("0x0000000000000099", world.MASTERS[1].guid)]
)
def test_nothing_is_resolved_when_nobody_sees_a_manager(manager: tuple[str, ...]) -> None:
    silent = tuple(SeenSubnet(seen.rdma_device, 1, error="ended with 255") for seen in world.subnets())
    membership = resolve_members(world.fabric(subnet_manager=manager), NODES, {"worker-1": silent, "worker-2": silent})
    assert not membership.resolved and membership.why and membership.remedy


def test_virtual_functions_are_never_members() -> None:
    node = world.node(1, mlx5_1=dataclasses.replace(world.hca(1, 1), physical_function="0000:3c:00.0"))
    assert names(
        resolve_members(world.fabric(subnet_manager=(world.MASTERS[1].guid,)), {"worker-1": node}, SUBNETS), "worker-1"
    ) == ["mlx5_0", "mlx5_4", "mlx5_5"]


def test_selectors_decide_on_ethernet() -> None:
    assert names(resolve_members(world.storage(), NODES, {}), "worker-1") == ["eth1"]
    assert names(resolve_members(world.storage(netdev=("eth9",)), NODES, {}), "worker-1") == []


# reachability


def reached(lost: typing.Sequence[tuple[str, int]] = (), **changes: typing.Any) -> Findings:
    """Pings of a plan, all of which arrive but those to (node, LID)."""
    nodes = changes.get("nodes", NODES)
    members = {
        name: [
            member
            for member in resolve_members(world.fabric(), nodes, SUBNETS).members[name]
            if member.port and member.port.lid
        ]
        for name in nodes
    }
    rails: dict[int, dict[str, Endpoint]] = {}
    for name, list_of in members.items():
        for member in list_of:
            rails.setdefault(member.rail, {})[name] = Endpoint(
                str(member.hca.rdma_device), 1, typing.cast(int, typing.cast(Port, member.port).lid)
            )
    planned = plan(rails.values())
    pings = {
        name: ObservedPings(
            tuple(
                Ping(task.device, 1, lid, 20, 0 if (name, lid) in lost else 20)
                for task in part.clients
                for lid in task.lids
            ),
        )
        for name, part in planned.items()
    }
    servers = {
        name: ObservedServers(tuple(PingServer(port.device, port.port) for port in part.servers))
        for name, part in planned.items()
    }
    facts = reachability.Facts(
        nodes={name: ObservedHcas(value) for name, value in nodes.items()},
        subnets={name: ObservedSubnets(value) for name, value in SUBNETS.items()},
        plan=changes.get("plan", planned),
        servers={**servers, **changes.get("servers", {})},
        pings={**pings, **changes.get("pings", {})},
        stopped=servers,
    )
    return run(reachability, facts, changes.get("intent"))


def test_reachability_passes_both_ways_on_each_rail() -> None:
    findings = reached()
    assert statuses(findings) == {"pass"} and judge(findings).open
    pairs = [finding.subject for finding in findings if finding.check == "reachability.pair"]
    assert len(pairs) == 8
    assert (
        "compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0" in pairs
        and "compute rail 0 worker-2 mlx5_0 -> worker-1 mlx5_0" in pairs
    )
    assert (
        one(findings, "reachability.port", "rail 3 worker-2 mlx5_5").measured
        == "pings from this port: 1 of 1 without loss; pings to this port: 1 of 1 without loss"
    )
    assert "does not apply" in one(findings, "reachability.scope", "storage").measured


def test_loss_in_one_direction() -> None:
    findings = reached(lost=[("worker-1", 2 * 16)])
    pair = one(findings, "reachability.pair", "worker-1 mlx5_0 -> worker-2 mlx5_0")
    assert pair.status == "fail" and pair.measured.startswith("20 of 20 messages lost, 100 % (LID ")
    assert one(findings, "reachability.pair", "worker-2 mlx5_0 -> worker-1 mlx5_0").status == "pass"
    assert (
        "the ibping server of this port is the probable cause"
        in one(findings, "reachability.port", "worker-2 mlx5_0").why
    )
    assert not judge(findings).open


def test_a_few_lost_packets_are_a_failure() -> None:
    part = ObservedPings(
        tuple(
            Ping("mlx5_0", 1, 32, 20, 19) if lid == 32 else Ping(f"mlx5_{index}", 1, lid, 20, 20)
            for index, lid in ((0, 32), (1, 33), (4, 36), (5, 37))
        )
    )
    pair = one(reached(pings={"worker-1": part}), "reachability.pair", "worker-1 mlx5_0 ->")
    assert pair.status == "fail" and "1 of 20 messages lost, 5 %" in pair.measured


def test_a_server_that_did_not_start_is_the_cause() -> None:
    servers = {"worker-2": ObservedServers((PingServer("mlx5_0", 1, "ibping -S ended with 255: Failed to open"),))}
    pair = one(reached(lost=[("worker-1", 32)], servers=servers), "reachability.pair", "worker-1 mlx5_0 ->")
    assert pair.status == "fail" and "Failed to open" in pair.why and "ibping -S -C DEVICE" in pair.remedy


@pytest.mark.parametrize(
    "answer",
    [
        ObservedPings(error="unreachable: timed out"),
        ObservedPings(()),
        ObservedPings((Ping("mlx5_0", 1, 32, 0, 0, "killed"),)),
    ],
)
def test_a_pair_without_measurement_is_unknown(answer: ObservedPings) -> None:
    findings = reached(pings={"worker-1": answer})
    assert one(findings, "reachability.pair", "worker-1 mlx5_0 -> worker-2").status == "unknown"
    assert one(findings, "reachability.port", "rail 0 worker-1").status == "unknown"
    assert not judge(findings).open


def test_a_plan_with_nothing_in_it_proves_nothing() -> None:
    findings = reached(plan={})
    assert {finding.status for finding in findings if finding.check == "reachability.port"} == {
        "unknown"
    } and not judge(findings).open


def test_one_node_alone_proves_nothing() -> None:
    findings = reached(nodes={"worker-1": NODES["worker-1"]})
    port = one(findings, "reachability.port", "mlx5_0")
    assert port.status == "unknown" and "two nodes" in port.why


def test_a_port_without_lid_fails() -> None:
    nodes = {"worker-1": world.node(1, mlx5_0=world.hca(1, 0, lid=None)), "worker-2": NODES["worker-2"]}
    assert one(reached(nodes=nodes), "reachability.port", "worker-1 mlx5_0").status == "fail"


def test_a_fabric_that_is_not_known_is_not_measured() -> None:
    finding = one(reached(intent=world.intent(world.fabric(hcas_per_node=5))), "reachability.scope", "compute")
    assert finding.status == "unknown" and "hcas_per_node" in finding.remedy


def test_reachability_without_nodes_is_unknown() -> None:
    findings = run(reachability, reachability.Facts())
    assert one(findings, "reachability.node").status == "unknown" and not judge(findings).open


# platform


#: of a ConnectX-7 with one VF BAR of 64 bits, below a port that leads to its bus alone
OFFERS = SriovCapability(16, 16, 0, 1, 1, True, (0,))


def evidence(node: NodeHcas, **changes: typing.Any) -> NodePlatform:
    functions = tuple(proof(item) for item in node.hcas if item.pci)
    base = NodePlatform("6.12.95+deb12-amd64", "x86_64", ("intel_iommu=on",), ("dmar0",), 12, ("DMAR",), functions)
    return dataclasses.replace(base, **changes)


def proof(hca: Hca, **changes: typing.Any) -> PciEvidence:
    """What a node shows of a function whose VFs could be made."""
    assert hca.pci is not None
    sriov = hca.sriov or Sriov()
    seen = PciEvidence(hca.pci.address, hca.pci.driver, sriov.total, sriov.current, 7, None, hca.unread)
    offers = dataclasses.replace(OFFERS, current=sriov.current or 0)
    bus = int(hca.pci.address.split(":")[1], 16)
    return dataclasses.replace(
        seen, **{"capability": offers, "memory": VfMemory((0,)), "last_bus": bus, "acs": Acs(0x5F, 0x1D), **changes}
    )


#: of worker-1, by itself and by its BMC
IDENTITY = Identity("4c4c4544-0035-3510-8054-c6c04f503347", ("F54P1G3",))


def platforms(
    node: typing.Optional[NodeHcas] = None, intent: typing.Optional[Intent] = None, **changes: typing.Any
) -> Findings:
    first = node or NODES["worker-1"]
    facts = platform.Facts(
        bioses=changes.pop("bioses", {}),
        nodes={"worker-1": ObservedHcas(first)},
        subnets={"worker-1": ObservedSubnets(world.subnets())},
        platforms={
            "worker-1": (
                changes.pop("answer", None)
                or ObservedPlatform(dataclasses.replace(evidence(first, **changes), identity=IDENTITY))
            )
        },
    )
    return run(platform, facts, intent)


def test_a_node_that_proves_all_passes() -> None:
    findings = platforms()
    assert statuses(findings) == {"pass"} and judge(findings).open
    for check in ("platform.sriov", "platform.bios", "platform.firmware"):
        assert [finding.subject for finding in findings if finding.check == check] == [
            *(f"worker-1 mlx5_{index}" for index in (0, 1, 4, 5)),
            "worker-1 eth1",
        ], "the HCAs of the fabrics, and no other"
    assert (
        one(findings, "platform.bios", "mlx5_0").measured
        == "memory and bus numbers for 16 VFs, ARI on, ACS 0x001d at the port above"
    )


def bios_of(**changes: typing.Any) -> list[Finding]:
    """Findings about what the first HCA proves of the BIOS."""
    node = NODES["worker-1"]
    functions = (proof(node.hcas[0], **changes), *evidence(node).functions[1:])
    return [
        finding
        for finding in platforms(functions=functions)
        if finding.check == "platform.bios" and finding.subject == "worker-1 mlx5_0"
    ]


NO_CAPABILITY: dict[str, typing.Any] = {"capability": None, "acs": None}


@pytest.mark.parametrize(
    ("changes", "status", "measured", "why", "remedy"),
    [
        # VFs are proof enough, whatever else can't be read
        ({"sriov_current": 8, "memory": None, **NO_CAPABILITY}, "pass", "8 VFs exist", "", ""),
        (
            {"sriov_current": 2, "capability": dataclasses.replace(OFFERS, current=2)},
            "pass",
            "2 VFs exist, ARI on",
            "",
            "",
        ),
        (
            {"acs": Acs(0x5F, 0), "capability": dataclasses.replace(OFFERS, ari=False)},
            "pass",
            "ARI off, ACS off at the port above",
            "",
            "",
        ),
        ({"last_bus": None}, "pass", "memory and bus numbers", "", ""),
        # what did not fit
        (
            {"memory": VfMemory((), (0,))},
            "fail",
            "VF BAR 0 without memory",
            "The memory (MMIO) of 16 VFs",
            "Above 4G decoding",
        ),
        (
            {"memory": VfMemory((), (0, 3)), **NO_CAPABILITY},
            "fail",
            "VF BAR 0, 3 without memory",
            "did not fit",
            "pci=realloc",
        ),
        ({"memory": VfMemory()}, "fail", "VF BAR 0 without memory", "did not fit", "Above 4G decoding"),
        (
            {"memory": VfMemory((0,)), "capability": dataclasses.replace(OFFERS, bars=(0, 2))},
            "fail",
            "VF BAR 2",
            "did not fit",
            "Above 4G",
        ),
        (
            {"capability": dataclasses.replace(OFFERS, offset=256)},
            "fail",
            "bus 0x3d needed, buses up to 0x3c available",
            "VF 8 needs bus 0x3d",
            "enable ARI",
        ),
        (
            {"capability": dataclasses.replace(OFFERS, offset=128, stride=32)},
            "fail",
            "buses up to 0x3c available",
            "buses up to 0x3c",
            "enable ARI",
        ),
        # more are wanted than are there
        (
            {"sriov_current": 1, "capability": dataclasses.replace(OFFERS, current=1, offset=128, stride=32)},
            "fail",
            "buses up to 0x3c available",
            "VF 8 needs bus",
            "ARI",
        ),
        # nobody knows
        (NO_CAPABILITY, "unknown", "not verified", "only root can read", "lspci -vvv -s 0000:3c:00.0"),
        (
            {"memory": None},
            "unknown",
            "not verified",
            "does not report whether memory",
            "each Region below Single Root I/O Virtualization must have an address",
        ),
        (
            {"memory": VfMemory(), "capability": dataclasses.replace(OFFERS, bars=())},
            "unknown",
            "not verified",
            "report different VF BARs",
            "If a Region has none, drain the node, enable Above 4G decoding",
        ),
        ({"memory": VfMemory((0, 2))}, "unknown", "not verified", "report different VF BARs", "lspci"),
        (
            {"last_bus": None, "capability": dataclasses.replace(OFFERS, offset=256)},
            "unknown",
            "not verified",
            "need bus 0x3d, and no port",
            "lspci",
        ),
        (
            {"sriov_current": 8},
            "unknown",
            "8 VFs in the kernel, 0 VFs in the configuration space of the function",
            "reset the function while the kernel kept its number of VFs",
            "If they differ, drain and reboot the node.",
        ),
    ],
)
def test_what_the_node_proves_of_its_bios(
    changes: dict[str, typing.Any], status: str, measured: str, why: str, remedy: str
) -> None:
    (finding,) = bios_of(**changes)
    assert (finding.status, measured in finding.measured, why in finding.why, remedy in finding.remedy) == (
        status,
        True,
        True,
        True,
    ), finding


def test_an_argument_that_keeps_the_kernel_from_making_room_is_named() -> None:
    node = NODES["worker-1"]
    functions = (proof(node.hcas[0], memory=VfMemory()), *evidence(node).functions[1:])
    finding = one(platforms(functions=functions, kernel_arguments=("pci=realloc=off",)), "platform.bios", "mlx5_0")
    assert "Remove pci=realloc=off from the kernel arguments" in finding.remedy


@pytest.mark.parametrize(
    ("sriov", "absence", "check", "cause"),
    [
        (None, "hidden", "platform.bios", "The BIOS hides it, or the node is a virtual machine"),
        (None, "off", "platform.sriov", "disabled in the firmware of the NIC"),
        (None, None, "platform.sriov", "in the BIOS or in the firmware"),
        (Sriov(4, 0), None, "platform.sriov", "can create at most 4 VFs"),
        (Sriov(0, 0), None, "platform.sriov", "can create at most 0 VFs"),
    ],
)
def test_one_cause_is_told_once(
    sriov: typing.Optional[Sriov], absence: typing.Optional[SriovAbsence], check: str, cause: str
) -> None:
    """What platform.sriov says of the firmware, or platform.bios of a space that is cut short, no other check
    repeats."""
    node = world.node(1, mlx5_0=dataclasses.replace(world.hca(1, 0), sriov=sriov, sriov_absence=absence))
    wrong = [finding for finding in platforms(node) if finding.status != "pass"]
    assert [(finding.check, finding.subject, finding.status) for finding in wrong] == [
        (check, "worker-1 mlx5_0", "fail")
    ] and cause in wrong[0].why


@pytest.mark.parametrize("offered", [{"total": 4, "initial": 4}, {"initial": 8}])
def test_firmware_that_was_changed_under_the_kernel_fails(offered: dict[str, typing.Any]) -> None:
    node = NODES["worker-1"]
    functions = (proof(node.hcas[0], capability=dataclasses.replace(OFFERS, **offered)), *evidence(node).functions[1:])
    finding = one(platforms(functions=functions), "platform.firmware", "mlx5_0")
    assert finding.status == "fail" and "power-cycle" in finding.remedy


def firmware_of(*versions: typing.Optional[str], **changes: typing.Any) -> list[Finding]:
    """What is said of the firmware of mlx5_0, mlx5_1, mlx5_4 and mlx5_5 of one node."""
    names = ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5")
    hcas = {hca.name: hca for hca in NODES["worker-1"].hcas}
    fields = {"board": "MT_0000000838", **changes}
    node = world.node(
        1,
        **{name: dataclasses.replace(hcas[name], firmware=version, **fields) for name, version in zip(names, versions)},
    )
    return [
        finding for finding in platforms(node) if finding.check == "platform.firmware" and "mlx5" in finding.subject
    ]


def test_one_that_runs_another_firmware_than_its_model_is_named() -> None:
    new, old = "28.42.1000", "28.41.1000"
    alike = firmware_of(new, new, new, new)
    assert {finding.status for finding in alike} == {"pass"} and alike[
        0
    ].measured == f"16 VFs offered, firmware {new} (MT_0000000838), same as 4 of 4 of its model"
    assert "any stored settings, because they are not reported" in alike[0].expected
    odd = [finding for finding in firmware_of(old, old, new, old) if finding.status != "pass"]
    assert [(finding.subject, finding.status, finding.measured, finding.expected) for finding in odd] == [
        ("worker-1 mlx5_4", "warn", f"firmware {new}", f"firmware {old}")
    ]
    assert "3 of 4 HCAs" in odd[0].why and "0000:" in odd[0].remedy
    assert {finding.status for finding in firmware_of(new, None, new, None)} == {"pass"}, (
        "who shows no version is neither odd nor counted"
    )


def test_of_as_many_the_newer_firmware_is_the_usual_one() -> None:
    said = firmware_of("28.9.1000", "28.41.1000", "28.9.1000", "28.41.1000")
    assert [finding.status for finding in said] == ["warn", "pass", "warn", "pass"]


def test_firmware_that_can_t_be_read_is_no_other_firmware() -> None:
    assert {finding.status for finding in firmware_of(None, None, None, None, unread=("fw_ver",))} == {"warn"}


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"iommu_devices": (), "iommu_groups": 0}, "warn", "intel_iommu=on"),
        ({"iommu_devices": (), "iommu_groups": 0, "acpi_tables": ()}, "warn", "VT-d"),
        ({"iommu_groups": None}, "unknown", "/sys/kernel/iommu_groups"),
    ],
)
def test_platform_names_the_layer_without_iommu(change: dict[str, typing.Any], status: str, text: str) -> None:
    finding = one(platforms(**change), "platform.iommu")
    assert finding.status == status and text in finding.remedy


@pytest.mark.parametrize(
    ("sriov", "unread", "status", "text"),
    [
        (None, (), "fail", "SRIOV_EN"),
        (Sriov(4, 0), (), "fail", "NUM_OF_VFS"),
        (Sriov(8, 0), (), "pass", ""),
        (
            Sriov(None, 0),
            ("sriov_totalvfs",),
            "unknown",
            "run cat /sys/bus/pci/devices/0000:3c:00.0/sriov_totalvfs as root",
        ),
    ],
)
def test_platform_judges_each_physical_function(
    sriov: typing.Optional[Sriov], unread: tuple[str, ...], status: str, text: str
) -> None:
    node = world.node(1, mlx5_0=dataclasses.replace(world.hca(1, 0), sriov=sriov, unread=unread))
    finding = one(platforms(node), "platform.sriov", "mlx5_0")
    assert finding.status == status and text in finding.remedy


@pytest.mark.parametrize(
    ("locked_down", "vendor", "there", "status"),
    [
        (True, "15b3", 0, "warn"),
        # an operator without the plugin mellanox has made them
        (True, "15b3", 8, "pass"),
        (True, "14e4", 0, "pass"),
        (False, "15b3", 0, "pass"),
        (None, "15b3", 0, "pass"),
    ],
)
def test_platform_foresees_that_the_operator_refuses_a_kernel_that_is_locked_down(
    locked_down: typing.Optional[bool], vendor: str, there: int, status: str
) -> None:
    hca = world.hca(1, 0)
    assert hca.pci is not None
    node = world.node(
        1, mlx5_0=dataclasses.replace(hca, sriov=Sriov(8, there), pci=dataclasses.replace(hca.pci, vendor=vendor))
    )
    finding = one(platforms(node, locked_down=locked_down), "platform.sriov", "mlx5_0")
    assert finding.status == status
    if status == "warn":
        assert (
            "plugin mellanox of the operator then rejects every policy" in finding.why
            and '"disablePlugins": ["mellanox"]' in finding.remedy
        )
        assert f"mstconfig -d {hca.pci.address} set SRIOV_EN=1" in finding.remedy


def test_platform_without_driver_fails() -> None:
    node = world.node(1, eth1=world.igb(pci=dataclasses.replace(world.igb().pci, driver=None)))  # type: ignore[type-var]
    assert one(platforms(node), "platform.driver", "eth1").status == "fail"


def test_platform_without_answer_is_unknown() -> None:
    findings = platforms(answer=ObservedPlatform(error="failed: no python"))
    assert one(findings, "platform.node").status == "unknown" and "no python" in one(findings, "platform.node").why
    assert not judge(run(platform, platform.Facts())).open


def test_platform_of_an_unknown_fabric_is_unknown() -> None:
    assert one(platforms(intent=world.intent(world.fabric(hcas_per_node=5))), "platform.scope").status == "unknown"


def told(findings: Findings, *checks: str) -> list[tuple[str, str, str]]:
    """Check, subject and status of each finding of these checks."""
    return [(finding.check, finding.subject, finding.status) for finding in findings if finding.check in checks]


def test_platform_without_nodes_says_so() -> None:
    assert told(run(platform, platform.Facts()), "platform.node") == [("platform.node", "inventory", "unknown")]


@pytest.mark.parametrize(
    ("hcas", "seen"),
    [
        (ObservedHcas(error="unreachable"), None),
        (ObservedHcas(NODES["worker-1"], "the module was killed"), None),
        (ObservedHcas(), None),
        (None, ObservedPlatform(error="unreachable")),
        (None, ObservedPlatform(evidence(NODES["worker-1"]), "the module was killed")),
        (None, ObservedPlatform()),
    ],
)
def test_platform_knows_nothing_of_half_an_answer_and_judges_the_next_node(
    hcas: typing.Optional[ObservedHcas], seen: typing.Optional[ObservedPlatform]
) -> None:
    facts = platform.Facts(
        nodes={"worker-1": hcas or ObservedHcas(NODES["worker-1"]), "worker-2": ObservedHcas(NODES["worker-2"])},
        subnets={"worker-1": ObservedSubnets(world.subnets()), "worker-2": ObservedSubnets(world.subnets())},
        platforms={
            "worker-1": seen or ObservedPlatform(evidence(NODES["worker-1"])),
            "worker-2": ObservedPlatform(evidence(NODES["worker-2"])),
        },
    )
    findings = run(platform, facts)
    assert told(findings, "platform.node") == [
        ("platform.node", "worker-1", "unknown"),
        ("platform.node", "worker-2", "pass"),
    ]
    assert {
        subject.partition(" ")[0] for _check, subject, _status in told(findings, "platform.sriov", "platform.iommu")
    } == {"worker-2"}


@pytest.mark.parametrize(
    "seen", [ObservedSubnets(error="unreachable"), ObservedSubnets(world.subnets(), "the module was killed")]
)
def test_platform_takes_no_manager_from_a_node_that_did_not_answer(seen: ObservedSubnets) -> None:
    facts = platform.Facts(
        nodes={"worker-1": ObservedHcas(NODES["worker-1"])},
        subnets={"worker-1": seen},
        platforms={"worker-1": ObservedPlatform(evidence(NODES["worker-1"]))},
    )
    findings = run(platform, facts, world.intent(world.fabric()))
    assert told(findings, "platform.scope", "platform.sriov") == [("platform.scope", "compute", "unknown")]


def test_platform_asks_nothing_of_the_hcas_of_a_fabric_that_makes_no_functions() -> None:
    macvlan = dataclasses.replace(
        world.storage(netdev=("eth1",)), name="plain", profile="macvlan", virtual_functions=0, resource_name=""
    )
    findings = platforms(intent=world.intent(macvlan, world.fabric()))
    assert told(findings, "platform.scope") == [("platform.scope", "plain", "pass")]
    assert [subject for _check, subject, _status in told(findings, "platform.sriov")] == [
        f"worker-1 mlx5_{index}" for index in (0, 1, 4, 5)
    ]


def test_platform_warns_of_what_was_not_read() -> None:
    assert told(platforms(errors=("dmesg: no",)), "platform.node") == [
        ("platform.node", "worker-1", "pass"),
        ("platform.node", "worker-1", "warn"),
    ]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "pass"),
        # a translator that has no group, and groups of none
        ({"iommu_groups": 0}, "warn"),
        ({"iommu_devices": ()}, "warn"),
        ({"iommu_devices": None}, "unknown"),
        ({"iommu_groups": None}, "unknown"),
        ({"acpi_tables": None}, "unknown"),
        ({"kernel_arguments": None}, "pass"),
    ],
)
def test_platform_takes_an_iommu_for_proven_by_devices_and_groups(change: dict[str, typing.Any], status: str) -> None:
    assert told(platforms(**change), "platform.iommu") == [("platform.iommu", "worker-1", status)]


@pytest.mark.parametrize(
    ("driver", "status"),
    [("igb", "pass"), ("vfio-pci", "fail"), (None, "fail")],
)
def test_platform_asks_for_a_driver_that_makes_functions(driver: typing.Optional[str], status: str) -> None:
    pci = world.igb().pci
    assert pci is not None
    node = world.node(1, eth1=world.igb(pci=dataclasses.replace(pci, driver=driver)))
    assert told(platforms(node, world.intent(world.storage())), "platform.driver") == [
        ("platform.driver", "worker-1 eth1", status)
    ]


def test_platform_of_a_function_without_evidence_is_unknown() -> None:
    node = world.node(1)
    soft = dataclasses.replace(world.hca(1, 0), pci=None)
    for first, functions in ((node, ()), (world.node(1, mlx5_0=soft), evidence(node).functions)):
        findings = platforms(first, world.intent(world.fabric()), functions=functions)
        assert ("platform.sriov", "worker-1 mlx5_0", "unknown") in told(findings, "platform.sriov")
        assert "worker-1 mlx5_0" not in [subject for _check, subject, _status in told(findings, "platform.driver")]
