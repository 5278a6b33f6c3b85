# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage virtual_functions: each disagreement names the layer that is wrong."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions.ip_link import (
    format_command,
    format_mtu_command,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ObservedSubnets,
    ObservedTopologies,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    HeldParts,
    LinkPolicy,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
    Sriov,
    VfAdministration,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
    StateInterface,
    StateVf,
    VfGroup,
    WantedInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRIC: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 2,
    "resource_name": "igb",
    "rdma": False,
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
INTENT = parse_intent([FABRIC])
PF = "0000:01:00.0"
ADDRESSES = ("0000:01:10.0", "0000:01:10.2")
PHYSICAL = Hca(
    "eth1",
    pci=PciFunction(PF, "8086", "10c9", "0200", "igb"),
    netdevs=(Netdev("eth1", "52:54:00:88:00:01", 1500, "up"),),
    sriov=Sriov(7, 2),
)


def virtual(
    address: str,
    driver: typing.Optional[str] = "igbvf",
    rdma: typing.Optional[str] = None,
    mtu: typing.Optional[int] = 1500,
) -> Hca:
    """``mtu=None``: its network interface is in a pod."""
    own = f"2e:4a:de:30:{address[-4:-2]}:0{address[-1]}"
    netdevs = (Netdev(f"v{address[-1]}", own, mtu, "down"),) if mtu else ()
    return Hca(
        address,
        rdma_device=rdma,
        netdevs=netdevs,
        pci=PciFunction(address, "8086", "10ca", "0200", driver),
        physical_function=PF,
    )


def making(count: int) -> Hca:
    """The physical function, of which the kernel has made so many VFs."""
    return dataclasses.replace(PHYSICAL, sriov=Sriov(7, count))


VIRTUAL = tuple(virtual(address) for address in ADDRESSES)
STATE = NodeState(
    "worker-1",
    (WantedInterface(PF, 2, "eth1", (VfGroup("linerate-storage", "igb", last=1),)),),
    (
        StateInterface(
            "eth1",
            PF,
            "8086",
            "10c9",
            "igb",
            "ETH",
            1500,
            7,
            2,
            tuple(StateVf(index, address, "igbvf") for index, address in enumerate(ADDRESSES)),
        ),
    ),
    "Succeeded",
)


def facts(
    physical: Hca = PHYSICAL,
    vfs: tuple[Hca, ...] = VIRTUAL,
    state: typing.Optional[NodeState] = STATE,
    offered: typing.Optional[int] = 2,
) -> Facts:
    node = ClusterNode(
        "worker-1", {}, True, False, {"openshift.io/igb": offered} if offered is not None else {}, "boot-1"
    )
    operators = OperatorFacts((), (), (), (node,), (state,) if state else ())
    return Facts({"worker-1": ObservedHcas(NodeHcas((physical, *vfs), boot="boot-1"))}, {}, operators)


def found(given: Facts, name: str, intent: Intent = INTENT) -> Finding:
    (finding,) = [finding for finding in check(intent, given) if finding.check == f"virtual_functions.{name}"]
    return finding


def interface(**changes: typing.Any) -> NodeState:
    return dataclasses.replace(STATE, interfaces=(dataclasses.replace(STATE.interfaces[0], **changes),))


def wanted(**changes: typing.Any) -> NodeState:
    return dataclasses.replace(STATE, wanted=(dataclasses.replace(STATE.wanted[0], **changes),))


def test_all_agree() -> None:
    findings = check(INTENT, facts())
    assert {finding.status for finding in findings} == {"pass"}
    assert [finding.check.split(".")[1] for finding in findings] == [
        "members",
        "count",
        "driver",
        "report",
        "mtu",
        "allocatable",
        "sync",
        "hardware_addresses",
        "free_settings",
        "machine",
    ]


@pytest.mark.parametrize(
    ("state", "status", "text"),
    [
        ({"sync_status": "Failed", "last_sync_error": "no such device"}, "fail", "no such device"),
        ({"sync_status": "InProgress"}, "unknown", "is still changing the virtual functions"),
        ({"sync_status": ""}, "unknown", "has not done so on this node"),
        ({"desired_state": "Reboot_Required", "current_state": "Idle"}, "unknown", "drains or reboots this node"),
        ({"desired_state": "Idle", "current_state": "Draining"}, "unknown", "drains or reboots this node"),
    ],
)
def test_a_node_that_the_operator_is_not_through_with_is_no_pass(
    state: dict[str, typing.Any], status: str, text: str
) -> None:
    """All layers agree for now."""
    sync = found(facts(state=dataclasses.replace(STATE, **state)), "sync")
    assert sync.status == status and text in sync.why


@pytest.mark.parametrize(
    ("error", "why", "remedy"),
    [
        (
            (
                "cannot configure sriov interfaces: write /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs: no space left"
                " on device"
            ),
            "no interrupt vectors (MSI-X) left for its virtual functions",
            "msix_vec_per_pf_max",
        ),
        (
            "mellanox device detected when in lockdown mode",
            "The kernel of the node is locked down, for example by secure boot.",
            "disablePlugins",
        ),
        (
            "can't set eSwitch mode to [switchdev] on device [0101:00:00.0]: invalid argument",
            "The driver rejected the eSwitch mode",
            "keep eSwitchMode at legacy",
        ),
        (
            "cannot config SRIOV device: NumVfs (50) is larger than TotalVfs (0)",
            "SR-IOV is disabled in the BIOS or",
            "which enable SR-IOV in both",
        ),
        (
            "cannot config SRIOV device: NumVfs (50) is larger than TotalVfs (8)",
            "requests more virtual functions",
            "Lower virtual_functions",
        ),
        (
            "write /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs: numerical result out of range",
            "requests more virtual functions",
            "Lower virtual_functions",
        ),
        (
            "write /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs: cannot allocate memory",
            "no address space left for the BARs",
            "pci=realloc",
        ),
        (
            "write /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs: device or resource busy",
            "A different number of virtual functions already exists",
            "remove them: echo 0",
        ),
        (
            "write /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs: operation not supported",
            "The driver rejected the creation of the virtual functions",
            "dmesg",
        ),
        (
            (
                "interface 0000:3b:00.0 required a change in the TotalVfs but the policy is externally managed failing:"
                " firmware TotalVf 0 requested TotalVf 8"
            ),
            "The policy is externallyManaged",
            "remove externallyManaged",
        ),
        (
            (
                "checkExternallyManagedPF(): number of request virtual functions 8 is not equal to configured virtual"
                " functions 4 but the policy is configured as ExternallyManaged for device 0000:3b:00.0"
            ),
            "The policy is externallyManaged",
            "remove externallyManaged",
        ),
        (
            "mellanox-plugin OnNodeStateChange(): Unknown link type: Unknown",
            "The link type of the port differs from the policy",
            "LINK_TYPE_P1",
        ),
        (
            "no guid allocation found for VF id: 4 on pf 0000:3b:00.0",
            "The GUID file on the node does not match",
            "/etc/sriov-operator/infiniband/guids",
        ),
    ],
)
def test_an_error_of_the_config_daemon_has_a_cause_and_a_remedy_of_its_own(error: str, why: str, remedy: str) -> None:
    sync = found(facts(state=dataclasses.replace(STATE, sync_status="Failed", last_sync_error=error)), "sync")
    assert sync.status == "fail" and error in sync.why and why in sync.why and remedy in sync.remedy


def test_a_remedy_for_the_config_daemon_has_the_address_of_the_function() -> None:
    error = (
        "cannot configure sriov interfaces: write /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs: no space left on"
        " device"
    )
    sync = found(facts(state=dataclasses.replace(STATE, sync_status="Failed", last_sync_error=error)), "sync")
    assert (
        "devlink dev param set pci/0000:17:00.0 name msix_vec_per_pf_max" in sync.remedy
        and "ADDRESS" not in sync.remedy
    )
    # of two functions neither is chosen
    sync = found(
        facts(
            state=dataclasses.replace(STATE, sync_status="Failed", last_sync_error=f"{error}; 0000:17:00.1 likewise")
        ),
        "sync",
    )
    assert "pci/ADDRESS" in sync.remedy


def test_an_unknown_error_of_the_config_daemon_leads_to_its_log() -> None:
    sync = found(facts(state=dataclasses.replace(STATE, sync_status="Failed", last_sync_error="something new")), "sync")
    assert (
        sync.why == "The config daemon could not configure the node: something new."
        and "kubectl get pods -A -l app=sriov-network-config-daemon --field-selector spec.nodeName=worker-1"
        in sync.remedy
    )


def test_what_the_operator_will_make_counts_beside_what_is_there() -> None:
    """Two VFs are there and reported, and another policy wants one."""
    count = found(facts(state=wanted(vfs_count=1)), "count")
    assert count.status == "fail" and "requested by the operator: 1" in count.measured and "priority" in count.why


def test_files_that_could_not_be_read_are_told() -> None:
    given = facts()
    node = dataclasses.replace(
        typing.cast(NodeHcas, given.nodes["worker-1"].value), errors=("/sys/x: Input/output error",)
    )
    read = found(dataclasses.replace(given, nodes={"worker-1": ObservedHcas(node)}), "read")
    assert read.status == "warn" and "/sys/x: Input/output error" in read.why


def test_facts_survive_the_way_through_ansible() -> None:
    assert load(Facts, to_data(facts()), "facts") == facts()


@pytest.mark.parametrize(
    ("given", "layer"),
    [
        (facts(dataclasses.replace(PHYSICAL, sriov=None), ()), "SR-IOV is disabled in the BIOS or in the firmware"),
        (
            facts(dataclasses.replace(PHYSICAL, sriov=None, sriov_absence="off"), ()),
            "SR-IOV is disabled in the firmware",
        ),
        (
            facts(dataclasses.replace(PHYSICAL, sriov=Sriov(None, 0)), ()),
            "The file sriov_totalvfs of the physical function exists, but reading it failed",
        ),
        (
            facts(dataclasses.replace(PHYSICAL, sriov=Sriov(1, 0)), ()),
            "The firmware of the function allows at most 1 virtual function",
        ),
        (facts(vfs=(), state=None), "The node has no SriovNetworkNodeState"),
        (
            facts(vfs=(), state=dataclasses.replace(STATE, interfaces=())),
            "The config daemon does not report this physical function",
        ),
        (
            facts(vfs=(), state=dataclasses.replace(interface(vfs_count=0, vfs=()), wanted=())),
            "No SriovNetworkNodePolicy selects this physical function",
        ),
        (
            facts(vfs=VIRTUAL[:1], state=wanted(vfs_count=1)),
            "The operator requests 1 VF for this function, and the fabric 'storage' requires 2",
        ),
        # sriov_numvfs says 2
        (facts(vfs=VIRTUAL[:1]), "The kernel has created 2 VFs (sriov_numvfs). 1 of these VFs is not on the PCI bus"),
        # the daemon says Succeeded and 2, the kernel has none
        (facts(making(0), vfs=()), "The VFs were removed or created after the config daemon reported them"),
        (
            facts(making(0), vfs=(), state=interface(vfs_count=0, vfs=())),
            "The config daemon has not created the VFs",
        ),
        (
            facts(state=interface(vfs_count=0, vfs=())),
            "The config daemon has not yet reported the VFs",
        ),
    ],
)
def test_the_wrong_layer_is_named(given: Facts, layer: str) -> None:
    finding = found(given, "count")
    assert finding.status == "fail"
    assert finding.why.startswith(layer)


@pytest.mark.parametrize("driver", [None, "vfio-pci"])
def test_driver(driver: typing.Optional[str]) -> None:
    finding = found(facts(vfs=(VIRTUAL[0], virtual(ADDRESSES[1], driver))), "driver")
    assert finding.status == "fail"
    assert ADDRESSES[1] in finding.why


def test_same_number_but_not_the_same_functions() -> None:
    other = dataclasses.replace(STATE.interfaces[0].vfs[1], address="0000:01:11.0")
    finding = found(facts(state=interface(vfs=(STATE.interfaces[0].vfs[0], other))), "report")
    assert finding.status == "fail"
    assert (
        "0000:01:10.2 (igbvf in sysfs, absent in the report), 0000:01:11.0 (absent in sysfs, igbvf in the"
        " report)" in finding.measured
    )


def test_same_functions_with_other_drivers() -> None:
    other = dataclasses.replace(STATE.interfaces[0].vfs[1], driver="vfio-pci")
    finding = found(facts(state=interface(vfs=(STATE.interfaces[0].vfs[0], other))), "report")
    assert finding.status == "fail"
    assert "0000:01:10.2 (igbvf in sysfs, vfio-pci in the report)" in finding.measured


@pytest.mark.parametrize("name", ["count", "report"])
@pytest.mark.parametrize(
    "operators", [None, OperatorFacts((), (), (), (), errors=("SriovNetworkNodeState: forbidden",))]
)
def test_an_operator_that_could_not_be_asked_is_not_one_without_a_state(
    operators: typing.Optional[OperatorFacts], name: str
) -> None:
    finding = found(dataclasses.replace(facts(), operators=operators), name)
    assert finding.status == "unknown"
    assert ("forbidden" if operators else "the run ended before") in finding.why and "not read" in finding.measured


@pytest.mark.parametrize(
    ("given", "layer"),
    [
        (
            facts(offered=None),
            "The device plugin does not run on the node, or its configuration does not contain this resource",
        ),
        (facts(offered=1), "The node has all 2 functions. The device plugin does not detect some of them"),
        (facts(offered=3), "The device plugin includes functions in this resource that do not belong to this fabric"),
        (facts(vfs=VIRTUAL[:1], offered=1), "The kernel of the node has 1 of the 2 virtual functions"),
        (
            facts(offered=None, state=wanted(groups=(VfGroup("theirs", "other"),))),
            "The operator assigns these functions to the resource other",
        ),
    ],
)
def test_allocatable_names_the_layer(given: Facts, layer: str) -> None:
    finding = found(given, "allocatable")
    assert finding.status == "fail"
    assert finding.why.startswith(layer)


def test_allocatable_under_another_prefix() -> None:
    given = facts(offered=None)
    node = dataclasses.replace(typing.cast(OperatorFacts, given.operators).nodes[0], allocatable={"nvidia.com/igb": 2})
    finding = found(
        dataclasses.replace(
            given, operators=dataclasses.replace(typing.cast(OperatorFacts, given.operators), nodes=(node,))
        ),
        "allocatable",
    )
    assert (
        finding.why.startswith("The cluster offers nvidia.com/igb")
        and "rdma_cluster.resource_prefix to nvidia.com" in finding.remedy
    )


def ask(**changes: typing.Union[dict[str, str], int]) -> Intent:
    return parse_intent([{**FABRIC, **changes}])


def sized(physical: typing.Optional[int] = 9000, *virtuals: typing.Optional[int]) -> tuple[Hca, tuple[Hca, ...]]:
    netdev = dataclasses.replace(PHYSICAL.netdevs[0], mtu=physical)
    vfs = tuple(virtual(address, mtu=mtu) for address, mtu in zip(ADDRESSES, virtuals or (9000, 9000)))
    return dataclasses.replace(PHYSICAL, netdevs=(netdev,) if physical else ()), vfs


def reported(mtu: int, told: int = 9000) -> NodeState:
    state = interface(mtu=mtu)
    return dataclasses.replace(state, wanted=(dataclasses.replace(state.wanted[0], mtu=told),))


@pytest.mark.parametrize(
    ("functions", "state", "status", "text"),
    [
        (sized(), reported(9000), "pass", ""),
        (
            sized(),
            reported(1500),
            "fail",
            "The MTU of the physical function was changed after the config daemon reported it",
        ),
        (sized(1500, 1500, 1500), reported(1500, 0), "fail", "The operator requests no MTU"),
        (
            sized(1500, 1500, 1500),
            reported(1500),
            "fail",
            "The operator requests the MTU 9000, and the config daemon has not set it",
        ),
        (
            sized(9000, 9000, 1500),
            reported(9000),
            "fail",
            "1 VF keeps the MTU that the last pod set: 0000:01:10.2",
        ),
        (sized(9000, 9000, None), reported(9000), "warn", "These VFs show no network interface, neither on"),
        (sized(9000, None, None), reported(9000), "unknown", "These VFs show no network interface, neither on"),
        (sized(None), reported(9000), "unknown", "The physical function has no network interface"),
    ],
)
def test_mtu_names_the_layer(functions: tuple[Hca, tuple[Hca, ...]], state: NodeState, status: str, text: str) -> None:
    finding = found(facts(*functions, state=state), "mtu", ask(mtu=9000))
    assert (finding.status, finding.why[: len(text)]) == (status, text)


@pytest.mark.parametrize(
    ("own", "told", "asked", "why"),
    [
        # the daemon raises an MTU at its next look, and never lowers one
        (
            9000,
            9216,
            9000,
            "The operator will raise the MTU at its next sync, while pods use the function",
        ),
        (
            1500,
            9000,
            None,
            "The operator will raise the MTU at its next sync, while pods use the function",
        ),
        (
            9000,
            1500,
            9000,
            "The operator will not restore this MTU after the next boot of the node",
        ),
        (9000, 0, 9000, "The operator will not restore this MTU after the next boot of the node"),
        (9000, 1500, None, ""),
    ],
)
def test_an_mtu_that_is_right_only_until_the_next_look_is_not_right(
    own: int, told: int, asked: typing.Optional[int], why: str
) -> None:
    intent = ask(mtu=asked) if asked else INTENT
    finding = found(facts(*sized(own, own, own), state=reported(own, told)), "mtu", intent)
    assert finding.status == ("fail" if why else "pass") and why in (finding.why or "")
    shown = f"MTU of the physical function {own}, of its VFs {own}, in the report of the config daemon {own}"
    assert finding.measured == (f"{shown}, requested by the operator {told or 'none'}" if why else shown)


def test_an_mtu_that_nobody_asks_for_is_compared_between_the_nodes() -> None:
    def look(*mtus: int, asked: typing.Optional[int] = None) -> list[tuple[str, str, str]]:
        nodes = {}
        for number, mtu in enumerate(mtus):
            vfs = tuple(virtual(address, mtu=value) for address, value in zip(ADDRESSES, (mtu, mtu)))
            nodes[f"n{number}"] = ObservedHcas(NodeHcas((PHYSICAL, *vfs)))
        found_ones = check(ask(mtu=asked) if asked else INTENT, Facts(nodes))
        return [(item.subject, item.status, item.measured) for item in found_ones if item.subject.endswith(" MTU")]

    assert look(9000, 9000) == []
    assert look(9000, 9000, 1500) == [("storage n2 MTU", "unknown", "MTU 1500 of the free VFs")]
    assert look(9000, 1500, asked=9000) == [], "each function is compared with the intent"


@pytest.mark.parametrize("of_vfs", [(1500, 1500), (9000, 1500), (1500, 9000)])
def test_free_vfs_with_another_mtu_than_their_function_are_a_warning_without_an_mtu(of_vfs: tuple[int, ...]) -> None:
    """The operator sets no MTU, so a job sends packets as small as its VF takes."""
    finding = found(facts(*sized(9000, *of_vfs), state=reported(9000, 0)), "mtu")
    assert finding.status == "warn" and "MTU of the physical function 9000, of its VFs 1500" in finding.measured
    assert "another MTU than the physical function" in finding.why and "Set mtu of fabric" in finding.remedy
    assert found(facts(*sized(9000, 9000, 9000), state=reported(9000, 0)), "mtu").status == "pass"


def test_an_mtu_that_nobody_asks_for_is_compared_between_the_layers() -> None:
    assert found(facts(), "mtu").status == "pass"
    assert found(facts(state=interface(mtu=9000)), "mtu").status == "fail"
    assert found(facts(*sized(None)), "mtu").status == "warn"


@pytest.mark.parametrize(("wish", "status"), [({}, None), ({"link_state": "enable"}, "warn")])
def test_the_link_state_of_an_ethernet_vf_is_not_seen(wish: dict[str, str], status: typing.Optional[str]) -> None:
    """igb shows nothing of it in sysfs; nothing is made of that where the intent asks for nothing."""
    findings = check(ask(network={**FABRIC["network"], **wish}), facts())
    assert [finding.status for finding in findings if finding.check == "virtual_functions.link_state"] == (
        [status] if status else []
    )


INFINIBAND: dict[str, typing.Any] = {
    **FABRIC,
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"hcas_per_node": 1},
    "rdma": True,
}
IB_PF = "0000:3c:00.0"
MASTER = SubnetManager(1, "0xe89e491ff5d50001", "MASTER", 15, 100)


def ib_vf(index: int, node: int = 1, **changes: typing.Any) -> Hca:
    guid = f"0x02000000000{node}000{index}"
    base = Hca(
        f"mlx5_{index + 1}",
        rdma_device=f"mlx5_{index + 1}",
        netdevs=(Netdev(f"ibp60s0v{index}", "00:00", 4092, "down"),),
        pci=PciFunction(f"0000:3c:00.{index + 1}", "15b3", "101e", "0207", "mlx5_core"),
        node_guid=guid,
        ports=(Port(1, "DOWN", "LinkUp", "InfiniBand", guid=guid),),
        physical_function=IB_PF,
        vf_index=index,
        administration=VfAdministration(guid, guid, "Down"),
    )
    return dataclasses.replace(base, **changes)


def ib_node(*vfs: Hca, node: int = 1, state: str = "ACTIVE") -> NodeHcas:
    port = Port(1, state, "LinkUp", "InfiniBand", 400.0, 4, "NDR", 4, 1, f"0xb83fd20300e{node}0001")
    pci = PciFunction(IB_PF, "15b3", "1021", "0207", "mlx5_core")
    netdevs = (Netdev("ibp60s0", "00:00", 4092, "up"),)
    return NodeHcas(
        (
            Hca(
                "mlx5_0",
                "mlx5_0",
                netdevs,
                pci,
                node_guid=f"0xb83fd20300e{node}0000",
                ports=(port,),
                sriov=Sriov(16, len(vfs)),
            ),
            *vfs,
        ),
        boot="boot-1",
    )


def ib_facts(
    *vfs: Hca,
    guids: typing.Optional[dict[str, str]] = None,
    mode: str = "shared",
    more: tuple[Hca, ...] = (),
    port: str = "ACTIVE",
) -> Facts:
    """:param guids: as the config daemon reports them; :param more: VFs of a second node; :param port: state of the
    physical function's"""
    vfs = vfs or (ib_vf(0), ib_vf(1))
    said = tuple(
        StateVf(
            typing.cast(int, vf.vf_index),
            typing.cast(PciFunction, vf.pci).address,
            typing.cast(PciFunction, vf.pci).driver,
            guid=(guids or {}).get(vf.name),
        )
        for vf in vfs
    )
    interface = StateInterface("ibp60s0", IB_PF, "15b3", "1021", "mlx5_core", "IB", 4092, 16, len(vfs), said)
    state = NodeState(
        "worker-1",
        (WantedInterface(IB_PF, 2, groups=(VfGroup("linerate-compute", "igb", rdma=True, last=1),)),),
        (interface,),
        "Succeeded",
        rdma_mode=mode,
    )
    nodes = {"worker-1": ib_node(*vfs, state=port), **({"worker-2": ib_node(*more, node=2)} if more else {})}
    subnets = {name: ObservedSubnets((SeenSubnet("mlx5_0", 1, MASTER),)) for name in nodes}
    node = ClusterNode("worker-1", {}, True, False, {"openshift.io/igb": 2}, "boot-1")
    return Facts(
        {name: ObservedHcas(value) for name, value in nodes.items()},
        subnets,
        OperatorFacts((), (), (), (node,), (state,)),
    )


def of_hca(
    given: Facts, name: str, intent: typing.Optional[Intent] = None, subject: typing.Optional[str] = "compute worker-1"
) -> Finding:
    (finding,) = [
        item
        for item in check(intent or IB_INTENT, given)
        if item.check == f"virtual_functions.{name}" and item.subject.startswith(str(subject))
    ]
    return finding


def ib_intent(link_state: typing.Optional[str] = "enable") -> Intent:
    network = {**FABRIC["network"], **({"link_state": link_state} if link_state else {})}
    return parse_intent([{**INFINIBAND, "network": network}])


IB_INTENT = ib_intent()


def test_infiniband_vfs_that_agree() -> None:
    # the report writes the bytes of a GUID the wrong way round
    given = ib_facts(guids={"mlx5_1": "00:00:01:00:00:00:00:02", "mlx5_2": "02:00:00:00:00:01:00:01"})
    findings = check(IB_INTENT, given)
    assert {finding.status for finding in findings} == {"pass"}, [
        finding for finding in findings if finding.status != "pass"
    ]
    assert of_hca(given, "link_state").measured == "link state of the VFs: 2 Down; their ports: 2 DOWN"
    assert of_hca(given, "guids", subject="all nodes").measured == "2 GUIDs of VFs, all unique"


def test_a_guid_as_a_real_report_writes_it() -> None:
    """Sample of k8snetworkplumbingwg/sriov-network-operator issue 1046: the hardware address ends in
    32:bf:6d:c9:5e:13:bc:14."""
    guid = "0x32bf6dc95e13bc14"
    vf = ib_vf(
        0,
        node_guid=guid,
        ports=(Port(1, "DOWN", "LinkUp", "InfiniBand", guid=guid),),
        administration=VfAdministration(guid, guid, "Follow"),
    )
    assert of_hca(ib_facts(vf, ib_vf(1), guids={"mlx5_1": "14:bc:13:5e:c9:6d:bf:32"}), "guids").status == "pass"
    assert of_hca(ib_facts(vf, ib_vf(1), guids={"mlx5_1": "14:bc:13:5e:c9:6d:bf:33"}), "guids").status == "fail"


ZERO = "0x0000000000000000"
NOTHING = VfAdministration(ZERO, ZERO, "Down")
#: as ib-sriov-cni gives back a VF that had none before the pod
ONES = "0xffffffffffffffff"
GIVEN_BACK = VfAdministration(ONES, ONES, "Follow")
OUTDATED = "1 of 2 VFs with another GUID in the kernel than in the report of the config daemon: mlx5_2"


@pytest.mark.parametrize(
    ("vf", "guids", "measured", "text"),
    [
        (
            ib_vf(1, node_guid=ZERO, administration=NOTHING),
            {},
            "1 of 2 VFs without a valid GUID: mlx5_2",
            "The config daemon has assigned no GUID to these VFs",
        ),
        (
            ib_vf(1, node_guid=ZERO, administration=None),
            {},
            "1 of 2 VFs without a valid GUID: mlx5_2",
            "The config daemon has assigned no GUID to these VFs",
        ),
        (
            ib_vf(1, node_guid=ZERO),
            {},
            "1 of 2 VFs without a valid GUID: mlx5_2",
            "The physical function has GUIDs for these VFs, but the driver started the VFs before the GUIDs were set",
        ),
        (
            ib_vf(1, ports=(Port(1, "DOWN", "LinkUp", "InfiniBand", guid=ZERO),), administration=None),
            {},
            "1 of 2 VFs without a valid GUID: mlx5_2",
            "The config daemon has assigned no GUID to these VFs",
        ),
        (
            ib_vf(1, administration=VfAdministration("0x0200000000000099")),
            {},
            "1 of 2 VFs with another GUID in the RDMA device than in the physical function: mlx5_2",
            "The GUIDs of these VFs were changed in the physical function",
        ),
        (
            ib_vf(1),
            {"mlx5_2": "99:00:00:00:00:00:00:02"},
            OUTDATED,
            "The GUIDs were changed after the config daemon reported them",
        ),
        (
            ib_vf(1),
            {"mlx5_2": "no GUID at all"},
            OUTDATED,
            "The GUIDs were changed after the config daemon reported them",
        ),
        (
            ib_vf(1, node_guid=ONES, administration=GIVEN_BACK),
            {},
            "1 of 2 VFs without a valid GUID: mlx5_2",
            "The CNI plugin ib-sriov-cni has set the GUIDs of these VFs to ff:ff:ff:ff:ff:ff:ff:ff",
        ),
    ],
)
def test_guids_name_the_layer(vf: Hca, guids: dict[str, str], measured: str, text: str) -> None:
    finding = of_hca(ib_facts(ib_vf(0), vf, guids=guids), "guids")
    assert (finding.status, finding.measured) == ("fail", measured)
    assert finding.why.startswith(text)


def test_a_guid_that_another_device_of_the_fabric_has() -> None:
    """A file of GUIDs that was copied from another cluster, or the port of the subnet manager."""
    given, guid = ib_facts(), str(ib_vf(0).node_guid)

    def shown(node: FabricNode, end: LinkEnd) -> Facts:
        switch = LinkEnd("Switch", "0x0300000000000001", 1)
        topology = Topology((node,), (Link(end, switch, 4, "NDR"),))
        seen = {"worker-1": ObservedTopologies((SeenTopology("mlx5_0", 1, topology),))}
        return dataclasses.replace(given, topologies=seen)

    other = FabricNode("Ca", "0x0900000000000001", "gpu-7 mlx5_0", 1)
    mine = dataclasses.replace(other, description="worker-1 mlx5_1")
    for facts_of in (
        shown(dataclasses.replace(other, guid=guid), LinkEnd("Ca", guid, 1)),
        shown(other, LinkEnd("Ca", other.guid, 1, port_guid=guid)),
    ):
        finding = of_hca(facts_of, "guids", subject=guid)
        assert (finding.status, finding.measured) == (
            "fail",
            "on worker-1 mlx5_1 and on gpu-7 mlx5_0 (Ca) in the topology",
        )
    for facts_of in (
        shown(other, LinkEnd("Ca", other.guid, 1, port_guid="0x0900000000000002")),
        # a topology that shows virtual functions
        shown(dataclasses.replace(mine, guid=guid), LinkEnd("Ca", guid, 1, port_guid=guid)),
    ):
        assert of_hca(facts_of, "guids", subject="all nodes").status == "pass"
    master = dataclasses.replace(MASTER, guid=guid)
    ports = {"worker-1": ObservedSubnets((SeenSubnet("mlx5_0", 1, MASTER), SeenSubnet("mlx5_9", 1, master)))}
    finding = of_hca(dataclasses.replace(given, subnets=ports), "guids", subject=guid)
    assert finding.measured == "on worker-1 mlx5_1 and on the master subnet manager"


def test_a_guid_that_two_vfs_of_the_fleet_have() -> None:
    twin = ib_vf(
        0, node_guid=ib_vf(0).node_guid, ports=(Port(1, "DOWN", "LinkUp", "InfiniBand", guid=ib_vf(0).node_guid),)
    )
    finding = of_hca(ib_facts(more=(twin, ib_vf(1, node=2))), "guids", subject=ib_vf(0).node_guid)
    assert (finding.status, finding.measured) == ("fail", "on 2 functions: worker-1 mlx5_1, worker-2 mlx5_1")


def taken_up(vf: Hca) -> Hca:
    """The subnet manager has made its port active."""
    held = (
        dataclasses.replace(vf.held, ports=tuple(dataclasses.replace(port, state="ACTIVE") for port in vf.held.ports))
        if vf.held
        else None
    )
    return dataclasses.replace(
        vf, ports=tuple(dataclasses.replace(port, state="ACTIVE") for port in vf.ports), held=held
    )


def policy(index: int, name: LinkPolicy, in_pod: bool = False) -> Hca:
    vf = ib_vf(
        index,
        administration=dataclasses.replace(
            typing.cast(VfAdministration, ib_vf(index).administration), link_policy=name
        ),
    )
    vf = vf if name == "Down" else taken_up(vf)
    return dataclasses.replace(vf, netdevs=()) if in_pod else vf


def unseen(index: int, state: typing.Optional[str]) -> Hca:
    return ib_vf(index, administration=None, ports=(dataclasses.replace(ib_vf(index).ports[0], state=state),))


@pytest.mark.parametrize(
    ("wish", "vfs", "status", "text"),
    [
        (
            None,
            (policy(0, "Down"), policy(1, "Up")),
            "fail",
            "The link of an InfiniBand VF is down until the CNI plugin sets its state, and the intent does not",
        ),
        (None, (policy(0, "Follow"), policy(1, "Up")), "pass", ""),
        (None, (unseen(0, "DOWN"), unseen(1, "ACTIVE")), "fail", "The link of an InfiniBand VF is down until"),
        (None, (unseen(0, "ACTIVE"), unseen(1, "ACTIVE")), "pass", ""),
        (None, (unseen(0, "ACTIVE"), unseen(1, None)), "warn", "Neither sysfs nor ip link"),
        ("enable", (policy(0, "Down"), policy(1, "Down")), "pass", ""),
        (
            "enable",
            (policy(0, "Down", in_pod=True), policy(1, "Down")),
            "fail",
            "These VFs are in pods, and the CNI plugin has not set their link state",
        ),
        ("auto", (policy(0, "Follow", in_pod=True), policy(1, "Down")), "pass", ""),
        ("enable", (unseen(0, "DOWN"), unseen(1, "DOWN")), "warn", "Neither sysfs nor ip link"),
    ],
)
def test_link_state_names_the_layer(wish: typing.Optional[str], vfs: tuple[Hca, Hca], status: str, text: str) -> None:
    finding = of_hca(ib_facts(*vfs), "link_state", ib_intent(wish))
    assert (finding.status, finding.why[: len(text)]) == (status, text)


def waiting(
    index: int,
    state: str,
    link_policy: typing.Optional[LinkPolicy] = "Follow",
    physical: str = "LinkUp",
    guid: typing.Optional[str] = None,
) -> Hca:
    """A VF whose port is not taken up.

    :param guid: in place of its own
    """
    vf = ib_vf(index)
    own = guid or typing.cast(str, vf.node_guid)
    port = dataclasses.replace(vf.ports[0], state=state, physical_state=physical, guid=own)
    return dataclasses.replace(
        vf,
        ports=(port,),
        node_guid=own,
        administration=VfAdministration(own, own, link_policy) if link_policy else None,
    )


@pytest.mark.parametrize(
    "vf",
    [waiting(0, "DOWN"), waiting(0, "INIT"), waiting(0, "INIT", "Up"), waiting(0, "ARMED"), waiting(0, "INIT", None)],
)
@pytest.mark.parametrize("wish", ["enable", None])
def test_a_subnet_manager_that_serves_no_vfs_is_named(vf: Hca, wish: typing.Optional[str]) -> None:
    finding = of_hca(ib_facts(vf, waiting(1, "ACTIVE"), port="ACTIVE"), "link_state", ib_intent(wish))
    assert finding.status == "fail"
    assert finding.why.startswith("The links of these VFs are up, but the subnet manager does not activate their ports")
    assert finding.measured == "ports of 1 of 2 VFs not ACTIVE: mlx5_1"
    assert "virt_enabled 2 in its opensm.conf" in finding.remedy


@pytest.mark.parametrize(
    ("vf", "port"),
    [
        (waiting(0, "ACTIVE"), "ACTIVE"),
        (waiting(0, "DOWN", "Down"), "ACTIVE"),
        # nobody may have let it come up
        (waiting(0, "DOWN", None), "ACTIVE"),
        (waiting(0, "DOWN", physical="Polling"), "ACTIVE"),
        # what keeps it down is told elsewhere
        (waiting(0, "INIT", guid="0x0000000000000000"), "ACTIVE"),
        (waiting(0, "INIT", guid="0xffffffffffffffff"), "ACTIVE"),
        (waiting(0, "INIT"), "INIT"),
    ],
)
def test_a_subnet_manager_is_not_blamed_for_what_others_keep_down(vf: Hca, port: str) -> None:
    finding = of_hca(ib_facts(vf, waiting(1, "ACTIVE"), port=port), "link_state")
    assert "Subnet manager" not in finding.why


@pytest.mark.parametrize(
    ("mode", "netdevs", "status"),
    [("shared", (), "fail"), ("exclusive", (), "warn"), ("exclusive", ib_vf(1).netdevs, "fail"), ("", (), "fail")],
)
def test_an_rdma_device_goes_into_a_pod_in_exclusive_mode_only(
    mode: str, netdevs: tuple[Netdev, ...], status: str
) -> None:
    bare = ib_vf(
        1, name="0000:3c:00.2", rdma_device=None, netdevs=netdevs, node_guid=None, ports=(), administration=None
    )
    given = ib_facts(ib_vf(0), bare, mode=mode)
    assert of_hca(given, "rdma_device").status == status
    assert of_hca(given, "guids").status == "unknown"


def test_virtual_functions_of_one_node_are_judged_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each policy of its own, and none with an RDMA device: what is compared is counted."""
    compared: list[int] = []

    def compare(one: Hca, other: object) -> bool:
        compared.append(1)
        return one is other

    monkeypatch.setattr(Hca, "__eq__", compare)
    policies = [VfAdministration(link_policy=typing.cast(typing.Any, f"P{number:04}")) for number in range(300)]
    bare = [
        ib_vf(1, name=f"vf{number}", rdma_device=None, netdevs=(), node_guid=None, ports=(), administration=each)
        for number, each in enumerate(policies)
    ]
    given = ib_facts(ib_vf(0), *bare, mode="exclusive")
    assert of_hca(given, "rdma_device").measured == "1 of 301 VFs with an RDMA device"
    shown = ", ".join(f"vf{number} P{number:04}" for number in range(8))
    assert of_hca(given, "link_state").measured == f"link state of VFs in pods: {shown} and 292 more"
    assert len(compared) < 3000


def in_pod(index: int, mode: str = "exclusive", mtu: int = 4092) -> Hca:
    """A VF that the pod of a job has: its interface, and in exclusive mode its RDMA device, are in the pod's network
    namespace."""
    free = ib_vf(index)
    netdev = Netdev("net1", "00:00", mtu, "up", port_guid=free.node_guid)
    if mode == "shared":
        return dataclasses.replace(free, netdevs=(), held=HeldParts((netdev,)))
    parts = HeldParts((netdev,), (), free.rdma_device, free.node_guid, free.ports)
    return dataclasses.replace(
        free,
        name=typing.cast(PciFunction, free.pci).address,
        rdma_device=None,
        netdevs=(),
        node_guid=None,
        ports=(),
        held=parts,
    )


def test_a_node_whose_vfs_are_all_in_pods_is_as_good_as_an_idle_one() -> None:
    for mode in ("shared", "exclusive", ""):
        given = ib_facts(in_pod(0, mode or "exclusive"), ib_vf(1) if not mode else in_pod(1, mode), mode=mode)
        # set when a pod takes the VF
        vfs = [
            taken_up(
                dataclasses.replace(
                    hca,
                    administration=VfAdministration(
                        typing.cast(VfAdministration, hca.administration).node_guid, None, "Up"
                    ),
                )
            )
            for hca in typing.cast(NodeHcas, given.nodes["worker-1"].value).hcas[1:]
        ]
        given = dataclasses.replace(
            given,
            nodes={
                "worker-1": ObservedHcas(
                    NodeHcas((typing.cast(NodeHcas, given.nodes["worker-1"].value).hcas[0], *vfs), boot="boot-1")
                )
            },
        )
        intent = parse_intent([{**INFINIBAND, "mtu": 4092, "network": {**FABRIC["network"], "link_state": "enable"}}])
        assert given.operators is not None
        (asked,) = given.operators.states[0].wanted
        groups = (dataclasses.replace(asked.groups[0], mtu=4092),)
        told = dataclasses.replace(
            given.operators.states[0], wanted=(dataclasses.replace(asked, mtu=4092, groups=groups),)
        )
        given = dataclasses.replace(given, operators=dataclasses.replace(given.operators, states=(told,)))
        assert [(item.check, item.status, item.why) for item in check(intent, given) if item.status != "pass"] == [], (
            mode
        )
        assert of_hca(given, "guids", subject="all nodes").measured == "2 GUIDs of VFs, all unique", mode


def test_ethernet_vfs_in_pods_are_seen_there() -> None:
    def taken(index: int, mtu: int) -> Hca:
        return dataclasses.replace(
            virtual(ADDRESSES[index], mtu=None), held=HeldParts((Netdev("net1", "2e:4a", mtu, "up"),))
        )

    physical = sized()[0]
    assert (
        found(facts(physical, (taken(0, 9000), taken(1, 9000)), state=reported(9000)), "mtu", ask(mtu=9000)).status
        == "pass"
    )
    # a network of its own may ask for less; that is no fault of the node
    finding = found(facts(physical, (taken(0, 1500), taken(1, 9000)), state=reported(9000)), "mtu", ask(mtu=9000))
    assert finding.status == "warn" and finding.why.startswith("1 VF in a pod has a different MTU: ")
    assert {finding.status for finding in check(INTENT, facts(vfs=(taken(0, 1500), taken(1, 1500))))} == {"pass"}


def test_a_guid_of_a_vf_in_a_pod_is_read_where_it_is_shown() -> None:
    bare = dataclasses.replace(in_pod(1), held=None, administration=None)
    shown = {
        "the RDMA device in the pod": dataclasses.replace(bare, held=in_pod(1).held),
        "the interface in the pod": dataclasses.replace(
            bare, held=HeldParts(typing.cast(HeldParts, in_pod(1).held).netdevs)
        ),
        "ip link on the node": dataclasses.replace(bare, administration=VfAdministration(port_guid=ib_vf(1).node_guid)),
    }
    for where, vf in shown.items():
        assert of_hca(ib_facts(ib_vf(0), vf), "guids").status == "pass", where
        twin = ib_facts(ib_vf(0), vf, more=(ib_vf(1), ib_vf(2, node=2)))
        assert of_hca(twin, "guids", subject=ib_vf(1).node_guid).status == "fail", where
        zero = dataclasses.replace(vf, held=HeldParts((Netdev("net1", "00", port_guid=ZERO),)), administration=None)
        assert of_hca(ib_facts(ib_vf(0), zero), "guids").status == "fail", where
    assert of_hca(ib_facts(ib_vf(0), bare), "guids").status == "unknown"


def test_an_rdma_device_that_is_seen_nowhere_is_missed_unless_its_interface_is_in_a_pod() -> None:
    lost = [
        dataclasses.replace(in_pod(index), held=HeldParts(typing.cast(HeldParts, in_pod(index).held).netdevs))
        for index in (0, 1)
    ]
    assert of_hca(ib_facts(*lost, mode="exclusive"), "rdma_device").status == "warn"
    assert (
        of_hca(ib_facts(*(dataclasses.replace(vf, held=None) for vf in lost), mode="exclusive"), "rdma_device").status
        == "unknown"
    )
    # in shared mode it would be on the node
    assert of_hca(ib_facts(*lost, mode="shared"), "rdma_device").status == "fail"
    assert of_hca(ib_facts(*lost, mode=""), "rdma_device").status == "fail"


def test_rdma_device_where_the_fabric_asks_for_one() -> None:
    intent = parse_intent([{**FABRIC, "rdma": True}])
    assert found(facts(), "rdma_device", intent).status == "fail"
    given = facts(vfs=tuple(virtual(address, rdma=f"mlx5_{index}") for index, address in enumerate(ADDRESSES)))
    assert found(given, "rdma_device", intent).status == "pass"


def test_another_number_of_physical_functions() -> None:
    intent = parse_intent([{**FABRIC, "select": {**FABRIC["select"], "hcas_per_node": 2}}])
    finding = found(facts(), "members", intent)
    assert (finding.status, finding.measured, finding.expected) == (
        "fail",
        "1 physical function: eth1",
        "2 physical functions",
    )


def test_an_infiniband_fabric_that_is_not_known_is_unknown() -> None:
    intent = parse_intent([{**FABRIC, "profile": "sriov_infiniband"}])
    assert found(facts(), "members", intent).status == "unknown"


def test_a_silent_node_and_no_node_are_unknown() -> None:
    silent = dataclasses.replace(facts(), nodes={"worker-1": ObservedHcas(error="unreachable")})
    assert found(silent, "node").status == "unknown"
    assert "unreachable" in found(silent, "node").why
    assert found(dataclasses.replace(facts(), nodes={}), "node").status == "unknown"


def test_an_api_server_that_was_not_asked_is_unknown() -> None:
    assert found(dataclasses.replace(facts(), operators=None), "allocatable").status == "unknown"


# what the network sets for the VF of a pod

SET = {"vlan": 100, "vlan_qos": 2, "trust": True, "spoof_check": False, "max_tx_rate": 500}
SETTING = parse_intent([{**FABRIC, "network": {**FABRIC["network"], **SET}}])
ASKED = "vlan 100, vlan_qos 2, trust on, spoof_check off, max_tx_rate 500"
TAKEN = VfAdministration(vlan=100, vlan_qos=2, trust=True, spoof_check=False, min_tx_rate=0, max_tx_rate=500)
POD = RdmaPod("storage", "worker-1", "linerate-storage-worker-1", "test", pci=ADDRESSES[0])


def held(
    administration: typing.Optional[VfAdministration] = TAKEN,
    pods: tuple[RdmaPod, ...] = (POD,),
    error: typing.Optional[str] = None,
) -> Facts:
    """The first VF is in a pod, and this is set for it."""
    vfs = (dataclasses.replace(VIRTUAL[0], netdevs=(), administration=administration), VIRTUAL[1])
    seen = ObservedHcas(NodeHcas((PHYSICAL, *vfs), boot="boot-1")) if error is None else ObservedHcas(error=error)
    return dataclasses.replace(facts(), pods=pods, held={"worker-1": seen})


def test_settings_that_are_read_back() -> None:
    finding = found(held(), "settings", SETTING)
    assert (finding.status, finding.subject, finding.expected, finding.measured) == (
        "pass",
        "storage worker-1",
        ASKED,
        f"{ADDRESSES[0]}: {ASKED}",
    )
    assert load(Facts, to_data(held()), "facts") == held()


def test_what_the_network_leaves_to_the_driver_is_no_finding() -> None:
    assert not [finding for finding in check(INTENT, held()) if finding.check == "virtual_functions.settings"]


@pytest.mark.parametrize(
    ("changes", "measured"),
    [
        ({"vlan": 0}, "vlan 0,"),
        ({"trust": False}, "trust off"),
        ({"spoof_check": True}, "spoof_check on"),
        ({"max_tx_rate": 0}, "max_tx_rate 0"),
    ],
)
def test_another_setting_is_the_cni_plugins_fault(changes: dict[str, typing.Any], measured: str) -> None:
    finding = found(held(dataclasses.replace(TAKEN, **changes)), "settings", SETTING)
    assert (finding.status, finding.why[:14]) == ("fail", "The CNI plugin") and measured in finding.measured
    assert "NetworkAttachmentDefinition 'net'" in finding.why and "compare 'net' with network" in finding.remedy


@pytest.mark.parametrize("administration", [None, dataclasses.replace(TAKEN, trust=None)])
def test_a_setting_that_nobody_shows_is_not_proven(administration: typing.Optional[VfAdministration]) -> None:
    finding = found(held(administration), "settings", SETTING)
    assert (finding.status, finding.why[:39]) == (
        "unknown",
        "ip link on the node does not show these",
    ) and "trust not shown" in finding.measured


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            held(pods=(dataclasses.replace(POD, pci=None, error="Unschedulable: Insufficient openshift.io/igb"),)),
            "Insufficient openshift.io/igb",
        ),
        (held(error="unreachable: No route to host"), "No route to host"),
        (held(pods=()), "created no pod on this node"),
        (
            held(pods=(dataclasses.replace(POD, node="worker-2"),)),
            "created no pod on this node",
        ),
        (facts(), "the node was not queried"),
    ],
)
def test_without_a_pod_nothing_is_proven(given: Facts, reason: str) -> None:
    finding = found(given, "settings", SETTING)
    assert (finding.status, finding.measured) == ("unknown", "not read") and reason in finding.why


def test_a_vf_of_a_job_that_is_set_as_asked_proves_it_where_none_is_free() -> None:
    full = dataclasses.replace(POD, pci=None, error="Unschedulable: Insufficient openshift.io/igb")
    busy = [
        dataclasses.replace(
            virtual(address, mtu=None), held=HeldParts((Netdev("net1", "2e:4a", 1500, "up"),)), administration=TAKEN
        )
        for address in ADDRESSES
    ]
    given = dataclasses.replace(
        facts(vfs=tuple(busy)),
        pods=(full,),
        held={"worker-1": ObservedHcas(NodeHcas((PHYSICAL, *busy), boot="boot-1"))},
    )
    finding = found(given, "settings", SETTING)
    assert (finding.status, ADDRESSES[0] in finding.measured) == ("pass", True)
    # one on a network of its own proves nothing, and is no fault
    other = [dataclasses.replace(vf, administration=dataclasses.replace(TAKEN, vlan=7)) for vf in busy]
    assert (
        found(
            dataclasses.replace(given, nodes={"worker-1": ObservedHcas(NodeHcas((PHYSICAL, *other), boot="boot-1"))}),
            "settings",
            SETTING,
        ).status
        == "unknown"
    )


# several things at once


def statuses(findings: typing.Iterable[Finding], name: str) -> dict[str, str]:
    """The status of each subject of a check."""
    return {finding.subject: finding.status for finding in findings if finding.check == f"virtual_functions.{name}"}


def with_operators(given: Facts, **changes: typing.Any) -> Facts:
    return dataclasses.replace(
        given, operators=dataclasses.replace(typing.cast(OperatorFacts, given.operators), **changes)
    )


@pytest.mark.parametrize("answer", [ObservedHcas(), ObservedHcas(NodeHcas((PHYSICAL, *VIRTUAL)), "torn")])
def test_an_answer_that_is_empty_or_torn_is_none(answer: ObservedHcas) -> None:
    findings = check(INTENT, dataclasses.replace(facts(), nodes={"worker-1": answer}))
    assert {(finding.check, finding.status) for finding in findings} == {("virtual_functions.node", "unknown")}


def test_a_node_whose_ports_could_not_be_asked_leaves_the_others_as_they_are() -> None:
    given = ib_facts(more=(ib_vf(0, node=2), ib_vf(1, node=2)))
    for mute in (ObservedSubnets(error="unreachable"), ObservedSubnets()):
        findings = check(IB_INTENT, dataclasses.replace(given, subnets={**given.subnets, "worker-2": mute}))
        members = statuses(findings, "members")
        assert members.keys() == {"compute worker-1", "compute worker-2"}
        assert members["compute worker-1"] == "pass" and members["compute worker-2"] != "pass"


def test_a_fabric_that_is_not_judged_hides_none_behind_it() -> None:
    (fabric,) = INTENT.fabrics
    # of the first one the profile makes no VFs, of the second one no port sees a subnet manager
    baseline = dataclasses.replace(fabric, name="baseline", profile="pod_network")
    unknown = dataclasses.replace(fabric, name="compute", profile="sriov_infiniband")
    found_of = statuses(check(dataclasses.replace(INTENT, fabrics=(baseline, unknown, fabric)), facts()), "members")
    assert found_of == {"baseline": "pass", "compute": "unknown", "storage worker-1": "pass"}


def test_the_physical_functions_that_are_there_are_judged_whatever_their_number() -> None:
    intent = parse_intent([{**FABRIC, "select": {**FABRIC["select"], "hcas_per_node": 2}}])
    assert [finding.check.split(".")[1] for finding in check(intent, facts())] == [
        "members",
        "count",
        "driver",
        "report",
        "mtu",
        "allocatable",
        "sync",
        "hardware_addresses",
        "free_settings",
        "machine",
    ]
    findings = check(
        INTENT, dataclasses.replace(facts(), nodes={"worker-1": ObservedHcas(NodeHcas((), boot="boot-1"))})
    )
    assert [finding.check.split(".")[1] for finding in findings] == ["members", "allocatable", "machine"] and findings[
        0
    ].status == "fail"


def test_the_guids_of_an_infiniband_fabric_are_compared_beside_an_ethernet_one() -> None:
    ethernet = {
        **FABRIC,
        "resource_name": "eth",
        "network": {"name": "eth", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.1.0/24"},
    }
    findings = check(
        parse_intent([{**INFINIBAND, "network": {**FABRIC["network"], "link_state": "enable"}}, ethernet]), ib_facts()
    )
    assert statuses(findings, "guids")["all nodes"] == "pass"


def test_each_node_has_a_state_and_an_offer_of_its_own() -> None:
    """Worker-2 has what the intent says; worker-1, which is told first, has not."""
    given = facts(state=interface(vfs_count=0, vfs=()), offered=None)
    second = ClusterNode("worker-2", {}, True, False, {"openshift.io/igb": 2})
    nodes = {**given.nodes, "worker-2": given.nodes["worker-1"]}
    operators = typing.cast(OperatorFacts, given.operators)
    both = with_operators(
        dataclasses.replace(given, nodes=nodes),
        nodes=(*operators.nodes, second),
        states=(*operators.states, dataclasses.replace(STATE, node="worker-2")),
    )
    findings = check(INTENT, both)
    for name in ("count", "report", "allocatable"):
        assert sorted(statuses(findings, name).values()) == ["fail", "pass"], name
    one_state = with_operators(both, states=operators.states)
    assert statuses(check(INTENT, one_state), "sync") == {"storage worker-1": "pass"}


def test_a_state_that_was_read_counts_whatever_else_was_not() -> None:
    findings = check(INTENT, with_operators(facts(), errors=("SriovNetworkNodePolicy: forbidden",)))
    assert {finding.status for finding in findings} == {"pass"}


def test_each_physical_function_has_its_own_part_of_the_state() -> None:
    second, address = "0000:02:00.0", "0000:02:10.0"
    other = Hca(
        "eth2", pci=PciFunction(second, "8086", "10c9", "0200", "igb"), netdevs=PHYSICAL.netdevs, sriov=Sriov(7, 2)
    )
    vfs = tuple(dataclasses.replace(virtual(f"{address[:-1]}{number}"), physical_function=second) for number in (0, 2))
    state = dataclasses.replace(
        STATE,
        wanted=(*STATE.wanted, dataclasses.replace(STATE.wanted[0], address=second, vfs_count=1)),
        interfaces=(
            *STATE.interfaces,
            dataclasses.replace(
                STATE.interfaces[0],
                address=second,
                vfs=tuple(StateVf(place, vf.name, "igbvf") for place, vf in enumerate(vfs)),
            ),
        ),
    )
    given = dataclasses.replace(
        facts(state=state, offered=4),
        nodes={"worker-1": ObservedHcas(NodeHcas((PHYSICAL, *VIRTUAL, other, *vfs), boot="boot-1"))},
    )
    findings = check(parse_intent([{**FABRIC, "select": {**FABRIC["select"], "hcas_per_node": 2}}]), given)
    assert statuses(findings, "report") == {
        f"storage worker-1 eth1 {PF}": "pass",
        f"storage worker-1 eth2 {second}": "pass",
    }
    assert statuses(findings, "count") == {
        f"storage worker-1 eth1 {PF}": "pass",
        f"storage worker-1 eth2 {second}": "fail",
    }


def test_a_function_that_can_make_just_as_many_has_enough() -> None:
    count = found(
        facts(dataclasses.replace(PHYSICAL, sriov=Sriov(2, 0)), vfs=(), state=interface(vfs_count=0, vfs=())), "count"
    )
    assert count.why.startswith("The config daemon has not created the VFs") and "operator: 2" in count.measured


def test_a_vf_without_a_pci_function_has_no_driver_and_is_in_no_report() -> None:
    given = facts(vfs=(VIRTUAL[0], dataclasses.replace(VIRTUAL[1], pci=None)))
    assert (found(given, "driver").status, found(given, "report").status) == ("fail", "fail")


def test_an_offer_of_functions_that_nobody_wants_is_missing() -> None:
    assert found(facts(offered=None, state=dataclasses.replace(STATE, wanted=())), "allocatable").status == "fail"


def without_rdma(index: int, seen_in_pod: bool = False, free: bool = False) -> Hca:
    """A VF whose RDMA device is shown nowhere."""
    vf = dataclasses.replace(
        in_pod(index), held=HeldParts(typing.cast(HeldParts, in_pod(index).held).netdevs) if seen_in_pod else None
    )
    return dataclasses.replace(vf, netdevs=ib_vf(index).netdevs) if free else vf


@pytest.mark.parametrize(
    ("mode", "vfs", "status"),
    [
        # one of them is free, and would show its device on the node
        ("exclusive", (without_rdma(0, seen_in_pod=True), without_rdma(1, free=True)), "fail"),
        # of one of them nothing was seen
        ("exclusive", (without_rdma(0, seen_in_pod=True), without_rdma(1)), "unknown"),
        # the config daemon tells no mode: the free ones have a device, and those in pods have not
        ("", (ib_vf(0), without_rdma(1, seen_in_pod=True)), "warn"),
        ("", (ib_vf(0), without_rdma(1, seen_in_pod=True), without_rdma(2)), "fail"),
        # the device of one in a pod is on the node: shared
        ("", (in_pod(0, "shared"), without_rdma(1, seen_in_pod=True)), "fail"),
    ],
)
def test_an_rdma_device_that_is_not_shown_is_in_a_pod_only_where_all_of_them_can_be(
    mode: str, vfs: tuple[Hca, ...], status: str
) -> None:
    assert of_hca(ib_facts(*vfs, mode=mode), "rdma_device").status == status


def test_without_a_state_the_vfs_tell_the_mode() -> None:
    given = with_operators(ib_facts(ib_vf(0), without_rdma(1, seen_in_pod=True)), states=())
    assert of_hca(given, "rdma_device").status == "warn"


def test_a_function_with_several_interfaces_has_the_largest_mtu_of_them() -> None:
    """A child interface has a smaller one; one that was not read tells nothing."""
    physical, vfs = sized()
    for mtu in (1500, None):
        more = dataclasses.replace(
            physical, netdevs=(*physical.netdevs, Netdev("eth1.7", "52:54:00:88:00:01", mtu, "up"))
        )
        assert found(facts(more, vfs, state=reported(9000)), "mtu", ask(mtu=9000)).status == "pass"


def test_of_several_pods_each_must_have_what_was_asked() -> None:
    pods = (POD, dataclasses.replace(POD, pci=ADDRESSES[1]))
    for second, status in ((TAKEN, "pass"), (dataclasses.replace(TAKEN, vlan=7), "fail"), (None, "unknown")):
        vfs = [
            dataclasses.replace(vf, netdevs=(), administration=administration)
            for vf, administration in zip(VIRTUAL, (TAKEN, second))
        ]
        nameless = dataclasses.replace(PHYSICAL, name="eth9", pci=None)
        given = dataclasses.replace(
            facts(), pods=pods, held={"worker-1": ObservedHcas(NodeHcas((PHYSICAL, nameless, *vfs)))}
        )
        assert found(given, "settings", SETTING).status == status


def test_a_free_vf_that_is_set_as_asked_proves_nothing() -> None:
    """What the last pod has left is not what the next one gets."""
    free = tuple(dataclasses.replace(vf, administration=TAKEN) for vf in VIRTUAL)
    assert found(facts(vfs=free), "settings", SETTING).status == "unknown"


def test_a_guid_that_the_driver_does_not_show_is_not_that_of_the_administration() -> None:
    assert of_hca(ib_facts(ib_vf(0), ib_vf(1, node_guid=None)), "guids").status == "unknown"


@pytest.mark.parametrize("ports", [(), (Port(1, "ACTIVE", "LinkUp", "Ethernet"),)])
def test_guids_of_ethernet_functions_are_no_business_of_an_infiniband_fabric(ports: tuple[Port, ...]) -> None:
    given = ib_facts()
    node = typing.cast(NodeHcas, given.nodes["worker-1"].value)
    twins = tuple(dataclasses.replace(vf, node_guid="0x0000000000000abc", ports=ports) for vf in VIRTUAL)
    findings = check(
        IB_INTENT, dataclasses.replace(given, nodes={"worker-1": ObservedHcas(NodeHcas((*node.hcas, *twins)))})
    )
    assert statuses(findings, "guids")["all nodes"] == "pass" and "0x0000000000000abc" not in statuses(
        findings, "guids"
    )


def test_a_vf_with_the_guid_of_a_physical_function_is_told_and_nothing_passes_for_all() -> None:
    guid = "0xb83fd20300e10000"
    twin = ib_vf(
        1,
        node_guid=guid,
        ports=(Port(1, "DOWN", "LinkUp", "InfiniBand", guid=guid),),
        administration=VfAdministration(guid, guid, "Down"),
    )
    told = statuses(check(IB_INTENT, ib_facts(ib_vf(0), twin)), "guids")
    assert told[guid] == "fail" and "all nodes" not in told


def test_an_empty_guid_of_a_report_is_none() -> None:
    assert of_hca(ib_facts(guids={"mlx5_1": "", "mlx5_2": ""}), "guids").status == "pass"


def test_a_physical_function_without_an_address_has_no_vfs_and_no_part_of_the_state() -> None:
    given = ib_facts()
    hcas = typing.cast(NodeHcas, given.nodes["worker-1"].value).hcas
    bare = NodeHcas((dataclasses.replace(hcas[0], pci=None), *hcas[1:]))
    findings = check(IB_INTENT, dataclasses.replace(given, nodes={"worker-1": ObservedHcas(bare)}))
    assert statuses(findings, "count") == {"compute worker-1 mlx5_0": "fail"}


def test_without_vfs_no_guids_are_compared() -> None:
    given = ib_facts()
    findings = check(IB_INTENT, dataclasses.replace(given, nodes={"worker-1": ObservedHcas(ib_node())}))
    assert statuses(findings, "guids") == {}


def test_a_vf_in_a_namespace_in_which_nothing_runs_is_told() -> None:
    lost = policy(0, "Down", in_pod=True)
    parts = HeldParts((Netdev("net1", "00:00", 4092, "down", lost.node_guid),), idle="cni-5b0e")
    given = ib_facts(dataclasses.replace(lost, held=parts), ib_vf(1))
    finding = of_hca(given, "stuck")
    assert (finding.status, finding.subject, finding.measured) == (
        "warn",
        "compute worker-1 mlx5_0 0000:3c:00.0",
        "1 of 2 VFs in network namespaces without processes: mlx5_1 in cni-5b0e",
    )
    assert "spec.nodeName=worker-1" in finding.remedy
    assert "run on worker-1, as root, ip netns delete cni-5b0e." in finding.remedy
    # no pod has it whose link state somebody forgot
    assert of_hca(given, "link_state").status == "pass"
    assert not [
        item
        for item in check(IB_INTENT, ib_facts(in_pod(0, "shared"), ib_vf(1)))
        if item.check == "virtual_functions.stuck"
    ]


def desired(given: Facts, group: typing.Mapping[str, typing.Any], **changes: typing.Any) -> Facts:
    """What the operator wants of the function, changed, and what it wants of its group of VFs."""
    assert given.operators is not None
    (state,) = given.operators.states
    (wish,) = state.wanted
    groups = changes.pop("groups", (dataclasses.replace(wish.groups[0], **group),))
    told = dataclasses.replace(state, wanted=(dataclasses.replace(wish, groups=groups, **changes),))
    return dataclasses.replace(given, operators=dataclasses.replace(given.operators, states=(told,)))


@pytest.mark.parametrize(
    ("group", "changes", "words"),
    [
        ({"device_type": "vfio-pci"}, {}, "deviceType of policy linerate-compute is vfio-pci, not netdevice"),
        ({"rdma": False}, {}, "isRdma of policy linerate-compute is false, not true"),
        ({"resource": "theirs"}, {}, "resource name of its VFs is theirs, not igb"),
        ({}, {"groups": ()}, "resource name of its VFs is none, not igb"),
        ({"last": 0}, {}, "VFs 0-0 belong to the resource igb, not 0-1"),
        ({"first": 1, "last": 2**40}, {}, f"VFs 1-{2**40} belong to the resource igb, not 0-1"),
        ({"mtu": 2044}, {"mtu": 4092}, "mtu of policy linerate-compute is 2044, not 4092"),
        ({"mtu": 4092}, {"mtu": 4092, "link_type": "ETH"}, "linkType is ETH, not IB"),
        ({}, {"eswitch_mode": "switchdev"}, "eSwitchMode is switchdev, not legacy"),
        ({}, {"external": True}, "externallyManaged is true, so the operator creates no VFs after a boot"),
    ],
)
def test_what_the_operator_wants_is_judged_before_its_next_sync(
    group: dict[str, typing.Any], changes: dict[str, typing.Any], words: str
) -> None:
    intent = parse_intent([{**INFINIBAND, **({"mtu": 4092} if "mtu" in group else {})}])
    finding = of_hca(desired(ib_facts(), group, **changes), "report", intent)
    assert finding.status == "fail" and finding.measured == f"requested by the operator: {words}"
    assert (
        finding.why.startswith("The operator takes these settings from the SriovNetworkNodePolicies")
        and "sriovnetworknodepolicies" in finding.remedy
    )


def test_what_the_operator_wants_of_a_fabric_without_rdma() -> None:
    assert found(
        desired(facts(), {"device_type": "netdevice"}, link_type="eth", eswitch_mode="legacy"), "report"
    ).status == ("pass")
    finding = found(desired(facts(), {"rdma": True}, link_type="IB"), "report")
    assert finding.status == "fail" and "isRdma of policy linerate-storage is true, not false" in finding.measured
    assert "linkType is IB, not ETH" in finding.measured


@pytest.mark.parametrize(
    ("asked", "desired_mode", "mode", "words"),
    [
        (
            "exclusive",
            "shared",
            "shared",
            "the operator requests RDMA mode shared for the node; RDMA mode exclusive, as in rdma_cluster.node_pool",
        ),
        (
            "exclusive",
            "",
            "exclusive",
            "the operator requests no RDMA mode for the node; RDMA mode exclusive, as in rdma_cluster.node_pool",
        ),
        (
            "exclusive",
            "exclusive",
            "shared",
            "RDMA mode shared on the node; RDMA mode exclusive, which the operator requests",
        ),
        (
            "",
            "exclusive",
            "shared",
            "RDMA mode shared on the node; RDMA mode exclusive, which the operator requests",
        ),
        ("", "shared", "", ""),
        ("", "", "shared", ""),
        ("exclusive", "exclusive", "exclusive", ""),
    ],
)
def test_the_rdma_mode_that_the_operator_wants_of_a_node(asked: str, desired_mode: str, mode: str, words: str) -> None:
    pool = {"node_pool": {"max_unavailable": 1, "rdma_mode": asked}} if asked else {}
    intent = parse_intent([FABRIC], [], pool)
    state = dataclasses.replace(STATE, wanted_rdma_mode=desired_mode, rdma_mode=mode)
    finding = found(facts(state=state), "sync", intent)
    assert finding.status == ("fail" if words else "pass")
    assert words in f"{finding.measured}; {finding.expected}"


MAC = "2e:4a:de:30:10:02"
ON_THREE = "on 3 functions: worker-1 eth1, worker-1 0000:01:10.0, worker-1 0000:01:10.2"


def addressed(physical: str, *virtuals: str, in_pods: bool = False) -> Facts:
    """Functions with these MAC addresses."""
    netdevs = (dataclasses.replace(PHYSICAL.netdevs[0], hardware_address=physical),)
    vfs = []
    for vf, address in zip(VIRTUAL, virtuals):
        seen = (dataclasses.replace(vf.netdevs[0], hardware_address=address),)
        held = dataclasses.replace(vf, netdevs=(), held=HeldParts(seen))
        vfs.append(held if in_pods else dataclasses.replace(vf, netdevs=seen))
    return facts(dataclasses.replace(PHYSICAL, netdevs=netdevs), tuple(vfs))


@pytest.mark.parametrize(
    ("given", "owners"),
    [
        (addressed("52:54:00:88:00:01", "2e:4a:de:30:10:00", MAC), []),
        (
            addressed("52:54:00:88:00:01", MAC, MAC),
            ["on 2 functions: worker-1 0000:01:10.0, worker-1 0000:01:10.2"],
        ),
        (addressed(MAC, "2e:4a:de:30:10:00", MAC.upper()), ["on 2 functions: worker-1 eth1, worker-1 0000:01:10.2"]),
        (addressed(MAC, MAC, MAC), [ON_THREE]),
        # a pod may have both as the parts of a bond
        (addressed("52:54:00:88:00:01", MAC, MAC, in_pods=True), []),
        (addressed(MAC, MAC, MAC, in_pods=True), [ON_THREE]),
        # no address yet
        (addressed("52:54:00:88:00:01", "00:00:00:00:00:00", "00:00:00:00:00:00"), []),
    ],
)
def test_no_two_functions_have_one_mac_address(given: Facts, owners: list[str]) -> None:
    told = [item for item in check(INTENT, given) if item.check == "virtual_functions.hardware_addresses"]
    assert [item.measured for item in told if item.status == "fail"] == owners
    assert all(item.subject == f"storage {MAC}" for item in told if item.status == "fail")


def test_no_function_of_another_node_has_the_mac_address_of_a_vf() -> None:
    given = addressed("52:54:00:88:00:01", "2e:4a:de:30:10:00", MAC)
    other = addressed("52:54:00:88:00:02", "2e:4a:de:30:10:0a", MAC, in_pods=True)
    given = dataclasses.replace(given, nodes={**given.nodes, "worker-2": other.nodes["worker-1"]})
    (told,) = [item for item in check(INTENT, given) if item.check == "virtual_functions.hardware_addresses"]
    assert (told.status, told.measured) == (
        "fail",
        "on 2 functions: worker-1 0000:01:10.2, worker-2 0000:01:10.2",
    )


def administered(*administrations: VfAdministration, **of_network: typing.Any) -> tuple[Finding, ...]:
    """What is told of free VFs with these settings, of which the network of the fabric sets some."""
    given = facts(
        vfs=tuple(
            dataclasses.replace(vf, administration=administration)
            for vf, administration in zip(VIRTUAL, administrations)
        )
    )
    intent = parse_intent([{**FABRIC, "network": {**FABRIC["network"], **of_network}}])
    return tuple(
        item
        for item in check(intent, given)
        if item.check in ("virtual_functions.free_settings", "virtual_functions.link_state")
    )


USUAL = VfAdministration(link_policy="Follow", vlan=0, trust=False, spoof_check=True, min_tx_rate=0, max_tx_rate=0)


def test_free_vfs_are_free_of_limits_that_no_network_sets() -> None:
    """Stage bandwidth measures one VF of each HCA."""
    slow = dataclasses.replace(USUAL, max_tx_rate=100)
    assert [item.status for item in administered(USUAL, USUAL)] == ["pass", "pass"]
    (told,) = (item for item in administered(USUAL, slow) if item.status != "pass")
    assert (told.check, told.status, told.measured) == (
        "virtual_functions.free_settings",
        "fail",
        "1 of 2 VFs with a rate limit: 0000:01:10.2 100 Mb/s",
    )
    # all alike are as slow
    assert [item.status for item in administered(slow, slow)] == ["pass", "fail"]
    # the CNI plugin sets both rates where the network names one
    assert [item.status for item in administered(USUAL, slow, max_tx_rate=1000)] == ["pass", "pass"]


def test_a_rate_of_the_link_is_no_limit() -> None:
    netdev = dataclasses.replace(PHYSICAL.netdevs[0], speed_gbps=10.0)
    as_fast = tuple(
        dataclasses.replace(vf, administration=dataclasses.replace(USUAL, max_tx_rate=10_000)) for vf in VIRTUAL
    )
    given = facts(physical=dataclasses.replace(PHYSICAL, netdevs=(netdev,)), vfs=as_fast)
    assert found(given, "free_settings").status == "pass"


@pytest.mark.parametrize(
    ("change", "name", "told", "setting"),
    [
        ({"trust": True}, "trust", "trust is on (most have off)", "trust off"),
        ({"spoof_check": False}, "spoof_check", "spoof_check is on (most have off)", "spoofchk off"),
        ({"min_tx_rate": 50}, "min_tx_rate", "min_tx_rate is 50 (most have 0)", "min_tx_rate 0"),
    ],
)
def test_free_vfs_that_differ_from_the_others_are_warned_of(
    change: dict[str, typing.Any], name: str, told: str, setting: str
) -> None:
    findings = administered(USUAL, dataclasses.replace(USUAL, **change))
    (warned,) = (item for item in findings if item.status != "pass")
    assert warned.status == "warn" and told in warned.measured
    effect = {
        "trust": "may change the MAC address",
        "spoof_check": "drops packets",
        "min_tx_rate": "reserves for the VF",
    }
    assert effect[name] in warned.why
    assert f"ip link set eth1 vf NUMBER {setting}, with NUMBER from ip -d link show eth1" in warned.remedy
    assert f"Or set {name} under network of the fabric 'storage'" in warned.remedy
    wanted = {"trust": True, "spoof_check": True, "min_tx_rate": 10}[name]
    named = administered(USUAL, dataclasses.replace(USUAL, **change), **{name: wanted})
    assert [item.status for item in named] == ["pass", "pass"]


def test_a_link_that_the_physical_function_disables_stays_down_on_ethernet() -> None:
    disabled = dataclasses.replace(USUAL, link_policy="Down")
    (told,) = (item for item in administered(USUAL, disabled) if item.check == "virtual_functions.link_state")
    assert told.status == "fail" and "0000:01:10.2" in told.measured
    # the CNI plugin sets the state that the network names
    findings = administered(USUAL, disabled, link_state="enable")
    assert [item.status for item in findings] == ["pass", "pass"]


@pytest.mark.parametrize(
    ("numbers", "interfaces", "command"),
    [
        ((3,), ("eth1",), "ip link set eth1 vf 3 state auto"),
        ((10, 3), ("eth1",), "ip link set eth1 vf NUMBER state auto, for each NUMBER of 3, 10"),
        ((3, None), ("eth1",), "ip link set eth1 vf NUMBER state auto, with NUMBER from ip -d link show eth1"),
        ((3,), (), "ip link set PF vf 3 state auto"),
    ],
)
def test_command_on_a_vf_has_its_interface_and_number(
    numbers: tuple[typing.Optional[int], ...], interfaces: tuple[str, ...], command: str
) -> None:
    physical = dataclasses.replace(PHYSICAL, netdevs=tuple(Netdev(name, "") for name in interfaces))
    vfs = [dataclasses.replace(VIRTUAL[0], vf_index=number) for number in numbers]
    assert format_command(physical, vfs, "state auto") == command


@pytest.mark.parametrize(
    ("names", "command"),
    [
        (("eth7",), "ip link set dev eth7 mtu 9000"),
        (("eth7", "eth8"), "ip link set dev INTERFACE mtu 9000, for each INTERFACE of eth7, eth8"),
        ((), "ip link set dev INTERFACE mtu 9000"),
    ],
)
def test_command_on_the_mtu_has_the_interfaces(names: tuple[str, ...], command: str) -> None:
    vfs = [dataclasses.replace(VIRTUAL[0], netdevs=(Netdev(name, ""),)) for name in names]
    assert format_mtu_command(vfs, 9000) == command


def test_partition_keys_of_free_vfs_are_compared_in_one_state_of_the_port() -> None:
    def keys(index: int, state: str, *values: str) -> Hca:
        vf = ib_vf(index)
        return dataclasses.replace(vf, ports=(dataclasses.replace(vf.ports[0], state=state, pkeys=values),))

    given = ib_facts(keys(0, "DOWN", "0xffff"), keys(1, "DOWN", "0x7fff"))
    (told,) = [item for item in check(IB_INTENT, given) if item.check == "virtual_functions.free_settings"]
    assert told.status == "warn" and "partition keys of a port in state DOWN" in told.measured
    given = ib_facts(keys(0, "ACTIVE", "0xffff"), keys(1, "DOWN"))
    (told,) = [item for item in check(IB_INTENT, given) if item.check == "virtual_functions.free_settings"]
    assert told.status == "pass"


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        # stage bandwidth may measure the one that is a full member
        (("0xffff",), ("0x7fff",), [1]),
        # all alike do not reach each other
        (("0x7fff",), ("0x7fff",), [0, 1]),
        (("0x7fff", "0x0001"), ("0x7fff", "0x8001"), [0]),
        (("0x7fff", "0x8001"), ("0x7fff", "0x8001"), []),
        ((), ("0xffff",), None),
    ],
)
def test_free_vfs_that_are_only_limited_members_reach_each_other_in_no_partition(
    first: tuple[str, ...], second: tuple[str, ...], wrong: typing.Optional[list[int]]
) -> None:
    vfs = [
        dataclasses.replace(
            ib_vf(index), ports=(dataclasses.replace(ib_vf(index).ports[0], state="ACTIVE", pkeys=keys),)
        )
        for index, keys in enumerate((first, second))
    ]
    told = [item for item in check(IB_INTENT, ib_facts(*vfs)) if item.check == "virtual_functions.free_settings"]
    failed = [item for item in told if item.status == "fail"]
    if not wrong:
        assert not failed and [item.status for item in told] == (["warn"] if wrong is None else ["pass"])
        return
    (item,) = failed
    assert [place for place, vf in enumerate(vfs) if vf.name in item.measured] == wrong
    assert "drop each other's packets" in item.why and "ipoib : ALL=full" in item.remedy
    # a VF that is right is not accused of not being like the others
    assert [other for other in told if other is not item] == []
