# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage fabric: what is right passes, each fault has its own finding, and ten thousand hosts stay
readable."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import bounded
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.counter_classes import CLASSES
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import count_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
    UnreadPort,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    LostManager,
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SlowPort,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, judge
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

Findings = tuple[Finding, ...]
NODES = {"worker-1": world.node(1), "worker-2": world.node(2)}
SUBNETS = {"worker-1": world.subnets(), "worker-2": world.subnets()}
LEAF = "0x0000000000000100"


def one(findings: Findings, check: str, subject: str = "") -> Finding:
    """The only finding of a check whose subject holds a text."""
    found = [finding for finding in findings if finding.check == check and subject in finding.subject]
    assert len(found) == 1, [
        (finding.check, finding.subject, finding.status) for finding in findings if finding.check == check
    ]
    return found[0]


def statuses(findings: Findings) -> set[str]:
    return {finding.status for finding in findings}


def fabrics(intent: typing.Optional[Intent] = None, **changes: typing.Any) -> Findings:
    """The check on facts that went the way of the data: out as JSON and in again."""
    facts = fabric.Facts(
        nodes=changes.get("nodes", {name: ObservedHcas(value) for name, value in NODES.items()}),
        subnets=changes.get("subnets", {name: ObservedSubnets(value) for name, value in SUBNETS.items()}),
        topologies=changes.get(
            "topologies", {"worker-1": ObservedTopologies(world.seen_topologies()), "worker-2": ObservedTopologies(())}
        ),
    )
    return fabric.check(intent or world.intent(), load(fabric.Facts, to_data(facts), "facts"))


def seen(topology: typing.Optional[Topology] = None, **changes: typing.Any) -> Findings:
    """Worker-1 sees something else of fabric 1."""
    return fabrics(topologies={"worker-1": ObservedTopologies(world.seen_topologies(topology, **changes))})


def both(**ports: SeenSubnet) -> dict[str, ObservedSubnets]:
    return {"worker-1": ObservedSubnets(world.subnets(**ports)), "worker-2": ObservedSubnets(world.subnets(**ports))}


def every(**change: typing.Any) -> dict[str, ObservedSubnets]:
    """All ports of fabric 1 see something else."""
    return both(
        **{
            item.rdma_device: dataclasses.replace(item, **change)
            for item in world.subnets()
            if item.master == world.MASTERS[1]
        }
    )


def test_fabric_passes_and_names_each_place() -> None:
    findings = fabrics()
    assert statuses(findings) == {"pass"} and judge(findings).open
    assert world.MASTERS[1].guid in one(findings, "fabric.membership", "compute").measured
    assert "by the selectors" in one(findings, "fabric.membership", "storage").measured
    assert one(findings, "fabric.activity").measured == "activity count +20 in 10 s"
    assert (
        "rail 3 mlx5_5: MF0;leaf00:MQM9700/U1 port 8, 4xNDR" in one(findings, "fabric.hca", "worker-2 compute").measured
    )
    assert one(findings, "fabric.topology").measured == "1 switch, 8 HCAs, 8 links"


# subnet managers


def test_no_subnet_manager() -> None:
    silent = {
        name: ObservedSubnets(
            tuple(
                SeenSubnet(item.rdma_device, 1, error="sminfo ended with 255", silent=True) for item in world.subnets()
            )
        )
        for name in NODES
    }
    findings = fabrics(subnets=silent)
    master = one(findings, "fabric.one_master")
    assert (master.status, master.measured) == ("fail", "no subnet manager") and "ended with 255" in master.why
    assert one(findings, "fabric.membership", "compute").status == "fail"


def test_no_subnet_manager_on_one_of_two_fabrics() -> None:
    silent = {
        item.rdma_device: SeenSubnet(item.rdma_device, 1, error="query", silent=True)
        for item in world.subnets()
        if item.master == world.MASTERS[1]
    }
    master = one(fabrics(subnets=both(**silent)), "fabric.one_master")
    assert (master.status, master.measured) == ("fail", "no subnet manager")
    assert "worker-1 mlx5_0, mlx5_1, mlx5_4, mlx5_5" in master.why


@pytest.mark.parametrize(
    ("lost", "measured"),
    [
        (LostManager(7, "sm-1 mlx5_0", True), "the subnet manager hangs: sm-1 mlx5_0 (LID 7)"),
        (
            LostManager(7, "sm-1 mlx5_0", False),
            "no subnet manager: the subnet manager of sm-1 mlx5_0 (LID 7) has ended",
        ),
        (LostManager(7), "the subnet manager is unreachable: LID 7"),
        (None, "no subnet manager"),
    ],
)
def test_a_manager_that_hangs_has_ended_or_is_unreachable(lost: typing.Optional[LostManager], measured: str) -> None:
    finding = one(fabrics(subnets=every(master=None, error="query", silent=True, lost=lost)), "fabric.one_master")
    assert (finding.status, finding.subject, finding.measured) == ("fail", "compute", measured)


def test_ports_that_can_not_be_asked_do_not_prove_that_there_is_no_manager() -> None:
    mute = {
        name: ObservedSubnets(
            tuple(SeenSubnet(item.rdma_device, 1, error="Failed to open") for item in world.subnets())
        )
        for name in NODES
    }
    master = one(fabrics(subnets=mute), "fabric.one_master")
    assert master.status == "unknown" and "Failed to open" in master.why


def test_no_tool_is_unknown_and_names_it() -> None:
    error = "failed: sminfo is not installed. Install the package infiniband-diags on the node"
    findings = fabrics(subnets={name: ObservedSubnets(error=error) for name in NODES})
    assert (
        one(findings, "fabric.node", "worker-1").status == "unknown"
        and "infiniband-diags" in one(findings, "fabric.node", "worker-1").why
    )
    assert one(findings, "fabric.one_master").status == "unknown"
    assert not judge(findings).open


@pytest.mark.parametrize(
    ("barrier", "layer", "command"),
    [
        ("module", "ib_umad is not loaded", "modprobe ib_umad"),
        ("port", "has not registered the port", "modprobe -r mlx5_ib"),
        ("device", "no device node /dev/infiniband/umad*", "udevadm trigger"),
        ("right", "has no permission to open", "ansible_become: true"),
        (None, "Failed to open", "Run sminfo as root on worker-2"),
    ],
)
def test_a_port_that_can_not_be_asked_is_not_known_and_names_the_layer(
    barrier: typing.Any, layer: str, command: str
) -> None:
    mute = ObservedSubnets(
        tuple(SeenSubnet(item.rdma_device, 1, error="Failed to open", barrier=barrier) for item in world.subnets())
    )
    findings = fabrics(subnets={"worker-1": ObservedSubnets(world.subnets()), "worker-2": mute})
    hcas = one(findings, "fabric.hcas", "worker-2 compute")
    assert (hcas.status, hcas.measured, hcas.expected) == (
        "unknown",
        "0 HCAs; 6 HCAs not queried",
        "4 HCAs",
    )
    assert layer in hcas.why and command in hcas.remedy
    findings = fabrics(subnets={"worker-1": mute, "worker-2": mute})
    membership = one(findings, "fabric.membership", "compute")
    assert (membership.status, membership.measured) == (
        "unknown",
        "no port could be queried",
    ) and layer in membership.why
    # one port of six, of an HCA of the other fabric: nothing is missing
    one_mute = world.subnets(mlx5_2=SeenSubnet("mlx5_2", 1, error="Failed to open", barrier=barrier))
    assert one(fabrics(subnets=both_of(one_mute)), "fabric.hcas", "worker-1 compute").status == "pass"


def test_a_node_without_the_tool_is_not_known_and_names_the_package() -> None:
    error = (
        "failed: sminfo is not installed. Install the package infiniband-diags on the node: 'dnf install"
        " infiniband-diags'"
    )
    findings = fabrics(subnets={"worker-1": ObservedSubnets(world.subnets()), "worker-2": ObservedSubnets(error=error)})
    hcas = one(findings, "fabric.hcas", "worker-2 compute")
    assert hcas.status == "unknown" and "worker-2" in hcas.why and "finding fabric.node" in hcas.remedy
    assert "dnf install infiniband-diags" in one(findings, "fabric.node", "worker-2").why


def test_of_a_node_without_an_answer_a_port_without_a_link_could_not_have_been_asked() -> None:
    down = ObservedHcas(world.node(2, mlx5_0=world.hca(2, 0, state="DOWN", physical_state="Polling")))
    findings = fabrics(
        nodes={"worker-1": ObservedHcas(world.node(1)), "worker-2": down},
        subnets={"worker-1": ObservedSubnets(world.subnets())},
    )
    hcas = one(findings, "fabric.hcas", "worker-2 compute")
    assert (hcas.status, hcas.measured) == ("unknown", "0 HCAs; 5 HCAs not queried")
    assert hcas.why.startswith("The module subnet_manager_info could not read the ports of worker-2")


def test_a_port_that_is_down_is_missing_whoever_could_be_asked() -> None:
    down = {f"mlx5_{index}": world.hca(2, index, state="DOWN", physical_state="Polling") for index in (0, 1)}
    nodes = {"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(world.node(2, **down))}
    why = "the port is DOWN, its link is Polling: the subnet manager could not be queried through it"
    seen_by = world.subnets(**{name: SeenSubnet(name, 1, error=why, linked=False) for name in down})
    finding = one(
        fabrics(
            nodes=nodes, subnets={"worker-1": ObservedSubnets(world.subnets()), "worker-2": ObservedSubnets(seen_by)}
        ),
        "fabric.hcas",
        "worker-2 compute",
    )
    assert (finding.status, finding.measured) == (
        "fail",
        "2 HCAs: mlx5_4, mlx5_5",
    ) and "Run ibstat on the node, and check the cable" in finding.remedy


def both_of(subnets: tuple[SeenSubnet, ...]) -> dict[str, ObservedSubnets]:
    return {name: ObservedSubnets(subnets) for name in NODES}


RIVAL = SubnetManager(9, plain_guid(1, 0, 1), "MASTER", 0, 5)


def rivals(rival: SubnetManager = RIVAL) -> typing.Any:
    return world.managers(
        ports=tuple(ManagerPort(item.lid, item) for item in (world.MASTERS[1], world.STANDBYS[1], rival))
    )


def test_two_masters_and_where_each_runs() -> None:
    finding = one(seen(managers=rivals()), "fabric.one_master")
    assert (
        finding.status == "fail"
        and "2 masters" in finding.measured
        and "worker-1 mlx5_0" in finding.measured
        and "on a host" in finding.measured
    )
    tie = one(seen(managers=rivals(dataclasses.replace(RIVAL, priority=15))), "fabric.one_master")
    assert "same priority" in tie.why and "same priority" not in finding.why


def test_two_masters_between_which_the_ports_are_split() -> None:
    """Then it looks like two fabrics, none of which has four HCAs on a node."""
    split = {
        item.rdma_device: dataclasses.replace(item, master=RIVAL)
        for item in world.subnets()
        if item.rdma_device in ("mlx5_1", "mlx5_5")
    }
    facts = {"worker-1": ObservedTopologies(world.seen_topologies(managers=rivals()))}
    findings = fabrics(subnets=both(**split), topologies=facts)
    finding = one(findings, "fabric.one_master")
    assert (
        (finding.status, finding.subject) == ("fail", "compute")
        and "2 masters" in finding.measured
        and RIVAL.guid in finding.measured
    )
    assert one(findings, "fabric.membership", "compute").status == "fail"


def test_two_masters_that_only_different_ports_see() -> None:
    """Half of the ports of one topology see another master, and no record tells of it."""
    rival = dataclasses.replace(world.MASTERS[1], guid="0x00000000000000bb")
    split = world.subnets(mlx5_5=SeenSubnet("mlx5_5", 1, rival))
    findings = fabrics(subnets={"worker-1": ObservedSubnets(split), "worker-2": ObservedSubnets(world.subnets())})
    assert (
        one(findings, "fabric.one_master").status == "fail"
        and rival.guid in one(findings, "fabric.one_master").measured
    )
    assert (
        "mlx5_5 port 1 sees the subnet manager 0x00000000000000bb"
        in one(findings, "fabric.hcas", "worker-1 compute").why
    )


def test_port_with_unknown_guid_of_its_manager_has_the_command_that_shows_it() -> None:
    nameless = world.subnets(mlx5_5=SeenSubnet("mlx5_5", 1, dataclasses.replace(world.MASTERS[1], guid="")))
    subnets = {"worker-1": ObservedSubnets(nameless), "worker-2": ObservedSubnets(world.subnets())}
    finding = one(fabrics(subnets=subnets), "fabric.hcas", "worker-1 compute")
    assert "mlx5_5 port 1 sees a subnet manager whose GUID is unknown." in finding.why
    assert "run sminfo -C DEVICE -P PORT as root on the node" in finding.remedy


def test_a_manager_that_is_no_master() -> None:
    starting = dataclasses.replace(world.MASTERS[1], state="DISCOVER")
    topologies = {
        "worker-1": ObservedTopologies(
            world.seen_topologies(managers=world.managers(ports=(ManagerPort(1, starting),)))
        )
    }
    finding = one(fabrics(subnets=every(master=starting), topologies=topologies), "fabric.one_master")
    assert (finding.status, finding.measured) == ("fail", "0 masters")


def test_a_manager_port_that_does_not_answer() -> None:
    hung = ManagerPort(16 * 2 + 1, error="sminfo -C mlx5_0 -P 1 33 ended with 255")
    findings = seen(managers=world.managers(ports=(ManagerPort(1, world.MASTERS[1]), hung)))
    finding = one(findings, "fabric.manager")
    assert (finding.status, finding.subject) == (
        "fail",
        "compute worker-2 mlx5_1 (LID 33)",
    ) and "the subnet manager hangs" in finding.why
    assert one(findings, "fabric.one_master").status == "pass" and one(findings, "fabric.standby").status == "warn"


def test_manager_port_without_an_error_message_announces_no_reason() -> None:
    silent = ManagerPort(16 * 2 + 1, error="")
    finding = one(seen(managers=world.managers(ports=(ManagerPort(1, world.MASTERS[1]), silent))), "fabric.manager")
    assert "sminfo received no response and printed no error message." in finding.why


@pytest.mark.parametrize(
    ("described", "node", "host"),
    [
        (("sm-1 mlx5_0", "sm-1 mlx5_1"), 0, "sm-1"),
        (("sm-1 mlx5_0", "sm-2 mlx5_0"), 0, ""),
        # what rdma-ndd has not written names no host
        (("MT4123 ConnectX6 Mellanox Technologies",) * 2, 0, ""),
        # a node of the fleet, by the GUIDs of its ports
        (("a b", "c d"), 2, "worker-2"),
    ],
)
def test_a_standby_on_the_machine_of_the_master_is_none(described: tuple[str, str], node: int, host: str) -> None:
    guids = [plain_guid(node, index, 1) if node else f"0x{index:016x}" for index in (1, 2)]
    pair = [
        dataclasses.replace(manager, guid=guid) for manager, guid in zip((world.MASTERS[1], world.STANDBYS[1]), guids)
    ]
    ports = tuple(ManagerPort(manager.lid, manager) for manager in pair)
    more = [] if node else [FabricNode("Ca", guid, text, 1) for guid, text in zip(guids, described)]
    topologies = world.seen_topologies(world.topology(more=more), managers=world.managers(ports=ports, master=guids[0]))
    findings = fabrics(subnets=every(master=pair[0]), topologies={"worker-1": ObservedTopologies(topologies)})
    finding = one(findings, "fabric.standby")
    assert (finding.status, f"one machine, {host}." in finding.why) == (("warn", True) if host else ("pass", False))


def test_no_standby_warns_and_no_answer_is_unknown() -> None:
    alone = world.managers(ports=(ManagerPort(1, world.MASTERS[1]),), others_refreshed=None)
    assert (
        one(seen(managers=alone), "fabric.standby").status == "warn"
        and one(seen(managers=alone), "fabric.activity").status == "pass"
    )
    findings = seen(
        managers=world.managers(ports=(), activity_first=None, activity_later=None, error="Query SA failed")
    )
    assert {one(findings, check).status for check in ("fabric.manager", "fabric.standby", "fabric.activity")} == {
        "unknown"
    }
    assert "Query SA failed" in one(findings, "fabric.activity").why
    assert one(fabrics(topologies={}), "fabric.activity").status == "unknown"


def test_managers_of_one_priority_are_named() -> None:
    tied = tuple(
        ManagerPort(item.lid, dataclasses.replace(item, priority=7)) for item in (world.MASTERS[1], world.STANDBYS[1])
    )
    finding = one(seen(managers=world.managers(ports=tied)), "fabric.priority")
    assert (
        finding.status == "warn"
        and world.MASTERS[1].guid in finding.why
        and world.STANDBYS[1].guid in finding.why
        and "lowest GUID becomes the master" in finding.why
    )


@pytest.mark.parametrize(("later", "status"), [(101, "pass"), (100, "fail"), (7, "warn"), (None, "unknown")])
def test_the_activity_count_must_rise(later: typing.Optional[int], status: str) -> None:
    assert one(seen(managers=world.managers(activity_later=later)), "fabric.activity").status == status


def test_a_count_that_only_a_polling_standby_raises_proves_no_sweep() -> None:
    finding = one(seen(managers=world.managers(others_refreshed=False)), "fabric.activity")
    assert finding.status == "unknown" and "Polls of a standby raise the activity count" in finding.why
    assert "log of the master 0x" in finding.remedy and "If it has none, restart this" in finding.remedy


# who is there


def test_one_port_down_is_missed_by_name() -> None:
    down = world.subnets(mlx5_4=SeenSubnet("mlx5_4", 1, error="the port is DOWN, its link is Polling", linked=False))
    findings = fabrics(
        subnets={"worker-1": ObservedSubnets(down), "worker-2": ObservedSubnets(world.subnets())},
        topologies={
            "worker-1": ObservedTopologies(world.seen_topologies(world.topology(1, without=[plain_guid(1, 4, 1)])))
        },
    )
    finding = one(findings, "fabric.hcas", "worker-1 compute")
    assert finding.status == "fail" and "mlx5_4 port 1: the port is DOWN, its link is Polling" in finding.why
    assert one(findings, "fabric.hcas", "worker-2 compute").status == "pass"


def test_an_hca_that_the_topology_does_not_show() -> None:
    topologies = {
        "worker-1": ObservedTopologies(world.seen_topologies(world.topology(1, without=[plain_guid(2, 1, 1)])))
    }
    assert one(fabrics(topologies=topologies), "fabric.hca", "worker-2 mlx5_1").status == "fail"


def test_an_hca_under_a_nodes_name_that_the_node_does_not_have() -> None:
    more = [
        FabricNode("Ca", "0x00000000000000aa", "worker-2 mlx5_6", 1),
        FabricNode("Ca", "0x00000000000000ab", "ufm-1 mlx5_0", 1),
    ]
    topologies = {"worker-1": ObservedTopologies(world.seen_topologies(world.topology(1, more=more)))}
    lost = {"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(world.node(2, mlx5_0=None))}
    finding = one(fabrics(nodes=lost, topologies=topologies), "fabric.foreign", "aa")
    assert (finding.status, finding.subject) == (
        "fail",
        "worker-2 0x00000000000000aa",
    ) and "The driver on worker-2 lost the HCA" in finding.why
    only_others = {"worker-1": ObservedTopologies(world.seen_topologies(world.topology(1, more=more[1:])))}
    assert one(fabrics(topologies=only_others), "fabric.foreign").measured == "1 HCA of other machines"


def test_another_machine_of_a_nodes_name_fails_nothing_where_the_node_has_all_its_hcas() -> None:
    """Another cluster on a shared fabric has a worker-2 as well."""
    more = [FabricNode("Ca", "0x00000000000000aa", "worker-2 mlx5_0", 1)]
    whole = world.topology(1, more=more)
    finding = one(fabrics(topologies={"worker-1": ObservedTopologies(world.seen_topologies(whole))}), "fabric.foreign")
    assert (finding.status, finding.subject, finding.measured) == (
        "warn",
        "worker-2 0x00000000000000aa",
        "the topology shows an HCA 'worker-2 mlx5_0' that worker-2 does not have",
    )
    assert (
        "the 4 HCAs that the intent requires on worker-2" in finding.why
        and "another machine uses the name of worker-2" in finding.why
    )
    assert finding.remedy is not None and "search its output for 0x00000000000000aa" in finding.remedy
    # one of its own is not in the topology: it may be the one that is seen
    cut = world.topology(1, without=[plain_guid(2, 0, 1)], more=more)
    finding = one(fabrics(topologies={"worker-1": ObservedTopologies(world.seen_topologies(cut))}), "fabric.foreign")
    assert (finding.status, "The driver on worker-2 lost the HCA" in finding.why) == ("fail", True)
    # its port has no GUID
    blind = {
        "worker-1": ObservedHcas(world.node(1)),
        "worker-2": ObservedHcas(world.node(2, mlx5_0=world.hca(2, 0, guid=None))),
    }
    assert (
        one(
            fabrics(nodes=blind, topologies={"worker-1": ObservedTopologies(world.seen_topologies(whole))}),
            "fabric.foreign",
        ).status
        == "fail"
    )


@pytest.mark.parametrize(("lost", "failed", "warned"), [(False, 0, 65), (True, 65, 0)])
def test_of_thousands_of_hcas_under_a_nodes_name_the_first_have_a_finding(lost: bool, failed: int, warned: int) -> None:
    more = [FabricNode("Ca", f"0x{0xA0000 + number:016x}", "worker-2 mlx5_0", 1) for number in range(3000)]
    whole = world.topology(1, without=[plain_guid(2, 0, 1)] if lost else (), more=more)
    topologies = {"worker-1": ObservedTopologies(world.seen_topologies(whole))}
    found = [item for item in fabrics(topologies=topologies) if item.check == "fabric.foreign"]
    assert [item.status for item in found] == ["fail"] * failed + ["warn"] * warned
    assert (found[-1].subject, found[-1].measured) == (
        "compute",
        "2936 HCAs in addition to the 64 with a finding: each has the name of a node that does not have it",
    )
    assert "Run ibnetdiscover as root on another node." in (found[-1].remedy or "")


def test_a_host_is_known_by_its_short_name_and_by_what_its_own_hcas_bear() -> None:
    """An inventory has names with a domain, or addresses; rdma-ndd writes the host without its domain, older tools with
    it."""
    for inventory, description, named in (
        ("worker-2.pod1.example.com", "worker-2 mlx5_6", True),
        ("worker-2", "worker-2.pod1.example.com mlx5_6", True),
        ("Worker-2.Example.com", "WORKER-2 HCA-7", True),
        # its own HCAs bear the name worker-2
        ("192.168.7.12", "worker-2 mlx5_6", True),
        ("fd00::12", "worker-2 mlx5_6", True),
        ("192.168.7.12", "192 mlx5_0", False),
        ("worker-2.example.com", "worker-20 mlx5_6", False),
        ("worker-2.example.com", "", False),
    ):
        nodes = {"worker-1": ObservedHcas(world.node(1)), inventory: ObservedHcas(world.node(2))}
        topology = world.topology(1, more=[FabricNode("Ca", "0x00000000000000aa", description, 1)])
        subnets = {"worker-1": ObservedSubnets(world.subnets()), inventory: ObservedSubnets(world.subnets())}
        finding = one(
            fabrics(
                nodes=nodes,
                subnets=subnets,
                topologies={"worker-1": ObservedTopologies(world.seen_topologies(topology))},
            ),
            "fabric.foreign",
        )
        assert (finding.status, inventory in finding.subject) == (("warn", True) if named else ("pass", False)), (
            inventory,
            description,
        )


def test_a_first_word_that_hcas_of_several_nodes_bear_is_no_host() -> None:
    """What the firmware has before rdma-ndd writes another."""
    default = "MT4129 ConnectX7   Mellanox Technologies"
    plain = {name: world.hca(number, 0) for number, name in ((1, "worker-1"), (2, "worker-2"))}
    nodes = {
        name: ObservedHcas(world.node(number, mlx5_0=dataclasses.replace(plain[name], node_description=default)))
        for number, name in ((1, "worker-1"), (2, "worker-2"))
    }
    topology = world.topology(1, more=[FabricNode("Ca", "0x00000000000000aa", default, 1)])
    finding = one(
        fabrics(nodes=nodes, topologies={"worker-1": ObservedTopologies(world.seen_topologies(topology))}),
        "fabric.foreign",
    )
    assert (finding.status, finding.measured) == ("pass", "1 HCA of other machines")


def test_an_aggregation_node_is_nobodys_hca() -> None:
    more = [
        FabricNode("Ca", "0x00000000000000ac", "worker-1 Mellanox Technologies Aggregation Node", 1, aggregation=True)
    ]
    findings = seen(world.topology(1, more=more))
    assert statuses(findings) == {"pass"} and "8 HCAs" in one(findings, "fabric.topology").measured


def test_no_topology_is_unknown() -> None:
    findings = fabrics(
        topologies={
            "worker-1": ObservedTopologies(world.seen_topologies(error="ibnetdiscover did not end within 120 s"))
        }
    )
    finding = one(findings, "fabric.topology")
    assert finding.status == "unknown" and "did not end" in finding.why
    assert one(fabrics(topologies={}), "fabric.topology").status == "unknown"


def test_a_listed_address_whose_port_is_on_another_fabric() -> None:
    listed = tuple(item.pci.address for item in NODES["worker-1"].hcas[:2] if item.pci)
    astray = world.subnets(mlx5_1=SeenSubnet("mlx5_1", 1, world.MASTERS[2]))
    subnets = {"worker-1": ObservedSubnets(astray), "worker-2": ObservedSubnets(world.subnets())}
    intent = world.intent(world.fabric(pci=listed, hcas_per_node=2))
    finding = one(fabrics(intent, subnets=subnets), "fabric.select")
    assert (finding.status, finding.subject, finding.measured) == (
        "fail",
        "worker-1 mlx5_1",
        f"subnet manager {world.MASTERS[2].guid}",
    )
    assert one(fabrics(intent), "fabric.select").status == "pass"
    apart = fabrics(intent, subnets={"worker-1": ObservedSubnets(astray), "worker-2": ObservedSubnets(astray)})
    assert (one(apart, "fabric.select").status, one(apart, "fabric.select").subject) == ("fail", "compute")


def test_a_leaf_that_was_cut_off_is_named() -> None:
    """Each node misses the same HCA: from such a port one sees the leaf, the two HCAs, and no way on."""
    lost = SeenSubnet("mlx5_1", 1, error="query", silent=True, lost=LostManager(7))
    leaf, ca = (
        FabricNode("Switch", "0x0000000000000200", "leaf01", 65, 2),
        FabricNode("Ca", plain_guid(1, 1), "worker-1 mlx5_1", 1),
    )
    link = dataclasses.replace(
        world.topology().links[0],
        a=LinkEnd("Switch", leaf.guid, 4, 2),
        b=LinkEnd("Ca", ca.guid, 1, 17, plain_guid(1, 1, 1)),
    )
    rest = world.topology(1, without=[plain_guid(1, 1, 1), plain_guid(2, 1, 1)])
    island = SeenTopology("mlx5_1", 1, Topology((leaf, ca), (link,)))
    findings = fabrics(
        subnets=both(mlx5_1=lost), topologies={"worker-1": ObservedTopologies((*world.seen_topologies(rest), island))}
    )
    finding = one(findings, "fabric.island")
    assert (finding.status, finding.subject) == ("fail", "leaf01")
    assert "shows only 1 switch (leaf01) and 1 HCA (worker-1 mlx5_1)" in finding.why
    assert "On the switch leaf01, or with ibportstate as root on worker-1" in finding.remedy
    alone = SeenTopology("mlx5_1", 1, Topology((ca,), ()))
    topologies = {"worker-1": ObservedTopologies((*world.seen_topologies(rest), alone))}
    assert one(fabrics(subnets=both(mlx5_1=lost), topologies=topologies), "fabric.island").subject == "worker-1 mlx5_1"
    blind = fabrics(subnets=both(mlx5_1=lost), topologies={"worker-1": ObservedTopologies(world.seen_topologies(rest))})
    assert (one(blind, "fabric.island").subject, one(blind, "fabric.island").status) == ("compute", "fail")


def test_guids_that_two_devices_have() -> None:
    topology = world.topology()
    second = dataclasses.replace(topology.links[0], a=dataclasses.replace(topology.links[0].a, port=40))
    finding = one(seen(dataclasses.replace(topology, links=(*topology.links, second))), "fabric.guids")
    assert (
        (finding.status, finding.subject) == ("fail", "worker-1 mlx5_0")
        and "port 1" in finding.why
        and "port 40" in finding.why
    )
    twin = world.node(2, mlx5_1=dataclasses.replace(world.hca(2, 1), node_guid=plain_guid(1, 0)))
    finding = one(
        fabrics(nodes={"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(twin)}), "fabric.guids"
    )
    assert (finding.status, finding.subject) == ("fail", "worker-1 mlx5_0, worker-2 mlx5_1")


# rails and links


def recabled(nodes: int, swapped: typing.Sequence[int], spines: int = 2) -> tuple[typing.Any, ...]:
    """Nodes with four HCAs, HCA k on leaf k, but on ``swapped`` nodes the first two change places. Gives nodes, subnets
    and the topology."""
    places = {name: index for index, name in enumerate(("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"))}
    leaves = [
        FabricNode("Switch", f"0x{0x200 + index:016x}", f"leaf-{index + 1}", 65, 200 + index) for index in range(4)
    ]
    tops = [
        FabricNode("Switch", f"0x{0x300 + index:016x}", f"spine-{index + 1}", 65, 300 + index)
        for index in range(spines)
    ]
    some_link = world.topology().links[0]
    links = [
        dataclasses.replace(
            some_link,
            a=LinkEnd("Switch", leaf.guid, 60 + index, leaf.lid),
            b=LinkEnd("Switch", top.guid, place + 1, top.lid),
        )
        for place, leaf in enumerate(leaves)
        for index, top in enumerate(tops)
    ]
    hcas = []
    for number in range(1, nodes + 1):
        for item in world.node(number).hcas:
            if item.name in places and item.node_guid:
                place = places[item.name]
                leaf = leaves[1 - place if number in swapped and place < 2 else place]
                hcas.append(FabricNode("Ca", item.node_guid, f"worker-{number} {item.name}", 1))
                end = LinkEnd("Ca", item.node_guid, 1, item.ports[0].lid, item.ports[0].guid)
                links.append(dataclasses.replace(some_link, a=LinkEnd("Switch", leaf.guid, number, leaf.lid), b=end))
    world_nodes = {f"worker-{number}": ObservedHcas(world.node(number)) for number in range(1, nodes + 1)}
    return (
        world_nodes,
        {name: ObservedSubnets(world.subnets()) for name in world_nodes},
        Topology((*leaves, *tops, *hcas), tuple(links)),
    )


def cabled(
    nodes: int,
    swapped: typing.Sequence[int] = (),
    change: typing.Callable[[Topology], Topology] = lambda item: item,
    **seen: typing.Any,
) -> Findings:
    world_nodes, subnets, topology = recabled(nodes, swapped)
    ends = 2 * len(topology.links)
    whole = {
        "capabilities": SeenCapabilities(links=ends),
        "errors": SeenErrors(ErrorReport((), ends), ErrorReport((), ends), 10.0),
    }
    topologies = {"worker-1": ObservedTopologies(world.seen_topologies(change(topology), **{**whole, **seen}))}
    return fabrics(world.intent(world.fabric()), nodes=world_nodes, subnets=subnets, topologies=topologies)


def test_rails_on_leaves_of_their_own_pass() -> None:
    findings = cabled(3)
    assert statuses(findings) == {"pass"} and one(findings, "fabric.rails").measured == "3 nodes on 4 leaves"


def test_swapped_cables_are_named_with_both_ends() -> None:
    finding = one(cabled(4, swapped=[3]), "fabric.rails")
    assert (finding.status, finding.subject) == ("fail", "worker-3 compute")
    assert finding.measured == "worker-3: rail 0 (mlx5_0) on leaf-2 port 3, rail 1 (mlx5_1) on leaf-1 port 3"
    assert finding.expected == "rail 0 on leaf-1, rail 1 on leaf-2" and "rail 0 and rail 1 are swapped" in finding.why


def test_of_two_nodes_none_is_accused_alone() -> None:
    finding = one(cabled(2, swapped=[1]), "fabric.rails")
    assert (finding.status, finding.subject) == ("fail", "compute") and "cabling plan" in finding.why
    assert (
        finding.measured == "worker-1: rail 0 (mlx5_0) on leaf-2 port 1, rail 1 (mlx5_1) on leaf-1 port 1;"
        " worker-2: rail 0 (mlx5_0) on leaf-1 port 2, rail 1 (mlx5_1) on leaf-2 port 2"
    )


def of_another_model(
    names: typing.Sequence[str], swapped: typing.Sequence[str] = (), count: int = 4, **fabric_of: typing.Any
) -> Findings:
    """Nodes of two models. In the second one the slots are in the reverse order, and the cables are right: rail k is on
    leaf k + 1."""
    world_nodes, subnets, topology = recabled(count, [int(name[-1]) for name in swapped])
    for name in names:
        value = world_nodes[name].value
        assert value is not None
        hcas = [
            (
                dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, address=f"0000:{0xF0 - place:02x}:00.0"))
                if hca.pci and hca.rdma_device
                else hca
            )
            for place, hca in enumerate(value.hcas)
        ]
        # the kernel counts by the slots
        order = sorted(
            (hca for hca in hcas if hca.rdma_device and hca.pci), key=lambda hca: hca.pci.address if hca.pci else ""
        )
        for place, hca in enumerate(order):
            hcas[hcas.index(hca)] = dataclasses.replace(hca, name=f"mlx5_{place}", rdma_device=f"mlx5_{place}")
        world_nodes[name] = ObservedHcas(dataclasses.replace(value, hcas=tuple(hcas)))
        masters = {item.rdma_device: item for item in world.subnets()}
        pairs = [(new, old) for old, new in zip(value.hcas, hcas) if old.rdma_device]
        subnets[name] = ObservedSubnets(
            tuple(
                dataclasses.replace(masters[old.rdma_device or ""], rdma_device=new.rdma_device or "")
                for new, old in pairs
            )
        )
    topologies = {"worker-1": ObservedTopologies(world.seen_topologies(topology))}
    return fabrics(
        world.intent(dataclasses.replace(world.fabric(), **fabric_of)),
        nodes=world_nodes,
        subnets=subnets,
        topologies=topologies,
    )


def test_servers_of_another_model_are_not_swapped() -> None:
    """Their slots are in another order; the leaf says which rail an HCA is on."""
    for names in (["worker-4"], ["worker-3", "worker-4"]):
        findings = of_another_model(names)
        assert one(findings, "fabric.rails").status == "pass"
        places = one(findings, "fabric.hca", "worker-4 compute").measured
        assert [
            f"rail {rail} " in part and f"leaf-{rail + 1} " in part for rail, part in enumerate(places.split("; "))
        ] == [True] * 4, places


def test_a_swapped_cable_is_seen_among_servers_of_its_model() -> None:
    finding = one(of_another_model(["worker-4", "worker-5", "worker-6"], swapped=["worker-5"], count=6), "fabric.rails")
    assert (finding.status, finding.subject) == (
        "fail",
        "worker-5 compute",
    ) and "rail 0 and rail 1 are swapped" in finding.why


def test_an_hca_that_is_down_shifts_no_rail_of_its_model() -> None:
    """Node 3 is the only one of its model, and its first port is down."""
    world_nodes, subnets, topology = recabled(3, ())
    value = world_nodes["worker-3"].value
    assert value is not None
    hcas = [
        (
            dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, address=f"0001{hca.pci.address[4:]}"))
            if hca.pci
            else hca
        )
        for hca in value.hcas
    ]
    world_nodes["worker-3"] = ObservedHcas(dataclasses.replace(value, hcas=tuple(hcas)))
    subnets["worker-3"] = ObservedSubnets(
        world.subnets(mlx5_0=SeenSubnet("mlx5_0", 1, error="the port is DOWN", linked=False))
    )
    cut = dataclasses.replace(topology, links=tuple(link for link in topology.links if link.b.guid != plain_guid(3, 0)))
    findings = fabrics(
        world.intent(world.fabric()),
        nodes=world_nodes,
        subnets=subnets,
        topologies={"worker-1": ObservedTopologies(world.seen_topologies(cut))},
    )
    assert one(findings, "fabric.rails").status == "pass"
    assert one(findings, "fabric.hca", "worker-3 compute").measured.startswith("rail 1 mlx5_1: leaf-2")


def test_where_no_rails_are_planned_no_cable_is_swapped() -> None:
    finding = one(of_another_model([], swapped=["worker-3"], rails="none"), "fabric.rails")
    assert (finding.status, finding.measured) == ("pass", "not compared: the intent has rails: none")
    assert one(of_another_model([], swapped=["worker-3"]), "fabric.rails").status == "fail"


def test_a_missing_cable_contradicts_nothing() -> None:
    def unplugged(topology: Topology) -> Topology:
        return dataclasses.replace(
            topology, links=tuple(link for link in topology.links if link.b.guid != plain_guid(2, 1))
        )

    findings = cabled(3, change=unplugged)
    assert (
        one(findings, "fabric.rails").status == "pass"
        and one(findings, "fabric.hca", "worker-2 mlx5_1").status == "fail"
    )


def test_a_leaf_with_fewer_uplinks_than_those_beside_it() -> None:
    def cut(topology: Topology) -> Topology:
        return dataclasses.replace(topology, links=topology.links[:2] + topology.links[3:])

    finding = one(cabled(2, change=cut), "fabric.uplinks")
    assert (finding.status, finding.subject, finding.measured, finding.expected) == (
        "fail",
        "leaf-2",
        "1 link to other switches",
        "2 links to other switches",
    )
    assert "Links to these switches are missing: spine-1 (0 of 1)." in finding.why


@pytest.mark.parametrize(
    ("uplinks", "lost", "status"), [(4, 0, "pass"), (3, 1, "pass"), (4, 1, "fail"), (None, 1, "pass")]
)
def test_a_spine_that_all_leaves_lack_is_told_by_the_number_of_uplinks_in_the_intent(
    uplinks: typing.Optional[int], lost: int, status: str
) -> None:
    world_nodes, subnets, topology = recabled(2, (), 4)
    dead = [node.guid for node in topology.nodes if node.description.startswith("spine-")][:lost]
    links = tuple(link for link in topology.links if link.b.guid not in dead)
    left = Topology(tuple(node for node in topology.nodes if node.guid not in dead), links)
    seen_of = world.seen_topologies(left, capabilities=SeenCapabilities(links=2 * len(links)))
    wanted = world.intent(dataclasses.replace(world.fabric(), uplinks=uplinks))
    found = [
        finding
        for finding in fabrics(
            wanted, nodes=world_nodes, subnets=subnets, topologies={"worker-1": ObservedTopologies(seen_of)}
        )
        if finding.check == "fabric.uplinks"
    ]
    assert {finding.status for finding in found} == {status}
    if status == "fail":
        assert [finding.subject for finding in found] == ["leaf-1", "leaf-2", "leaf-3", "leaf-4"]
        assert (found[0].measured, found[0].expected) == (
            "3 links to other switches",
            "at least 4 links to other switches",
        ) and "spine-4 (1)" in found[0].why
    elif uplinks is None:
        assert "set uplinks to also find links that all leaves lack" in found[0].expected


def of_the_last_leaf(hosts: int, uplinks: int, wanted: typing.Optional[int] = None) -> Finding:
    """fabric.uplinks where three leaves have four HCAs and four spines each, and the last one has so many."""
    world_nodes, subnets, topology = recabled(4, (), 4)
    last = topology.nodes[3]
    unplugged = [f"worker-{number}" for number in range(hosts + 1, 5)]
    for name in unplugged:
        value = world_nodes[name].value
        world_nodes[name] = ObservedHcas(
            dataclasses.replace(value, hcas=tuple(hca for hca in value.hcas if hca.name != "mlx5_5"))
        )
        subnets[name] = ObservedSubnets(tuple(seen for seen in world.subnets() if seen.rdma_device != "mlx5_5"))
    gone = {node.guid for node in topology.nodes if node.description in {f"{name} mlx5_5" for name in unplugged}}
    gone |= {
        node.guid
        for node in topology.nodes
        if node.description in {f"spine-{number}" for number in range(uplinks + 1, 5)}
    }
    links = tuple(link for link in topology.links if not (link.a.guid == last.guid and link.b.guid in gone))
    seen_of = world.seen_topologies(
        dataclasses.replace(topology, links=links), capabilities=SeenCapabilities(links=2 * len(links))
    )
    wishes = world.intent(dataclasses.replace(world.fabric(), uplinks=wanted))
    return one(
        fabrics(wishes, nodes=world_nodes, subnets=subnets, topologies={"worker-1": ObservedTopologies(seen_of)}),
        "fabric.uplinks",
    )


@pytest.mark.parametrize(("hosts", "uplinks"), [(2, 2), (1, 1), (1, 3), (2, 3), (3, 3)])
def test_a_leaf_with_fewer_hcas_needs_fewer_uplinks(hosts: int, uplinks: int) -> None:
    finding = of_the_last_leaf(hosts, uplinks)
    assert (finding.status, finding.subject) == ("warn", "leaf-4")
    assert finding.measured == f"{count_of(uplinks, 'link')} to other switches"
    assert finding.expected == "4 links to other switches, as at the neighboring leaves"
    assert (
        f"fewer HCAs ({hosts}, the neighboring leaves 4)" in finding.why
        and finding.remedy is not None
        and "iblinkinfo --down" in finding.remedy
    )


@pytest.mark.parametrize(
    ("hosts", "uplinks", "wanted"), [(4, 3, None), (4, 2, None), (3, 2, None), (2, 1, None), (2, 2, 4)]
)
def test_a_leaf_whose_hcas_share_fewer_uplinks_than_those_of_others_fails(
    hosts: int, uplinks: int, wanted: typing.Optional[int]
) -> None:
    finding = of_the_last_leaf(hosts, uplinks, wanted)
    expected = ("at least " if wanted else "") + "4 links to other switches"
    assert (finding.status, finding.subject, finding.expected) == ("fail", "leaf-4", expected)
    assert finding.measured == f"{count_of(uplinks, 'link')} to other switches"


def test_two_leaves_tell_a_cut_uplink_of_one() -> None:
    """The largest of what the others have: what is missing can't be more than there was."""
    world_nodes, subnets, topology = recabled(2, ())
    kept = {leaf.guid for leaf in topology.nodes if leaf.description in ("leaf-1", "leaf-2")}
    links = [link for link in topology.links if link.a.guid in kept]
    seen_of = world.seen_topologies(
        dataclasses.replace(topology, links=tuple(links[:3] + links[4:])),
        capabilities=SeenCapabilities(links=2 * len(links)),
    )
    findings = fabrics(
        world.intent(world.fabric()),
        nodes=world_nodes,
        subnets=subnets,
        topologies={"worker-1": ObservedTopologies(seen_of)},
    )
    assert (one(findings, "fabric.uplinks").status, one(findings, "fabric.uplinks").subject) == ("fail", "leaf-2")


@pytest.mark.parametrize("spines", [("spine-1",), ("spine-1", "spine-2")])
def test_errors_of_our_links_fail_also_where_a_storage_node_is_cabled_to_the_spine(
    spines: typing.Sequence[str],
) -> None:
    def storage(topology: Topology) -> Topology:
        nodes, links = list(topology.nodes), list(topology.links)
        for place, top in enumerate(node for node in topology.nodes if node.description in spines):
            host = f"0x{0x900 + place:016x}"
            nodes.append(FabricNode("Ca", host, f"storage-{place} mlx5_0", 1))
            links.append(
                dataclasses.replace(
                    links[0], a=LinkEnd("Switch", top.guid, 40, top.lid), b=LinkEnd("Ca", host, 1, 901 + place, host)
                )
            )
        return Topology(tuple(nodes), tuple(links))

    ends = 64
    bad = PortErrors("0x0000000000000200", 60, {"SymbolErrorCounter": 90000}, True)
    errors = SeenErrors(ErrorReport((), ends), ErrorReport((bad,), ends), 10.0)
    finding = one(
        cabled(2, change=storage, errors=errors, capabilities=SeenCapabilities(links=ends)), "fabric.errors_growing"
    )
    assert (finding.status, finding.subject) == ("fail", "leaf-1 port 60")


def test_a_leaf_for_storage_has_as_many_uplinks_as_it_was_given() -> None:
    """No HCA of the fabric is behind it, so neither its uplinks nor their rate are any of the run's business."""

    def storage_leaf(topology: Topology) -> Topology:
        leaf, host = (
            FabricNode("Switch", "0x0000000000000900", "storage-leaf", 65, 900),
            FabricNode("Ca", "0x0000000000000901", "storage-1 mlx5_0", 1),
        )
        uplink = dataclasses.replace(
            topology.links[0],
            a=LinkEnd("Switch", leaf.guid, 60, leaf.lid),
            b=dataclasses.replace(topology.links[0].b, port=40),
        )
        down = dataclasses.replace(
            uplink, a=LinkEnd("Switch", leaf.guid, 1, leaf.lid), b=LinkEnd("Ca", host.guid, 1, 901, host.guid)
        )
        return Topology(
            (*topology.nodes, leaf, host), (*topology.links, dataclasses.replace(uplink, speed="EDR"), down)
        )

    findings = [
        finding for finding in cabled(2, change=storage_leaf) if finding.check in ("fabric.uplinks", "fabric.rate")
    ]
    assert {finding.status for finding in findings} == {"pass"}


#: all ends of the links were compared, and none could be more
WHOLE = SeenCapabilities(links=16)


def rates(capabilities: typing.Optional[SeenCapabilities], **port: typing.Any) -> Findings:
    """HCA mlx5_1 of worker-2 has another port."""
    nodes = {
        "worker-1": ObservedHcas(world.node(1)),
        "worker-2": ObservedHcas(world.node(2, mlx5_1=world.hca(2, 1, **port))),
    }
    return fabrics(
        nodes=nodes, topologies={"worker-1": ObservedTopologies(world.seen_topologies(capabilities=capabilities))}
    )


def test_a_link_of_an_hca_is_judged_by_what_both_of_its_ends_can_do() -> None:
    """The tool names the end at the switch or that at the HCA; the rate that the port trained to is what is
    measured."""
    link = next(link for link in world.topology(1).links if link.b.port_guid == plain_guid(2, 1, 1))
    for end in ((link.a.guid, link.a.port), (plain_guid(2, 1, 1), 1)):
        slow = SeenCapabilities((SlowPort(*end, "106.25 Gbps"),), 16)
        finding = one(rates(capabilities=slow, rate_gbps=200.0), "fabric.rate", "worker-2")
        assert (finding.status, finding.subject, finding.measured, finding.expected) == (
            "fail",
            "worker-2 mlx5_1",
            "200 Gb/s (4X, 50 Gb/s per lane)",
            "100 Gb/s per lane (NDR), the highest that both ports support",
        )
    # one lane of four, on every port: no sibling tells, what the ends can do tells
    for capabilities, status in ((WHOLE, "unknown"), (SeenCapabilities(error="ended with 1"), "fail"), (None, "fail")):
        finding = one(rates(capabilities=capabilities, rate_gbps=200.0), "fabric.rate", "worker-2")
        assert (finding.status, finding.measured, finding.expected) == (status, "200 Gb/s", "400 Gb/s")


def test_an_hca_of_another_model_is_not_slow_beside_faster_ones() -> None:
    older = world.hca(2, 1, rate_gbps=200.0, speed="HDR")
    assert older.pci is not None
    older = dataclasses.replace(older, pci=dataclasses.replace(older.pci, device="101b"))
    for capabilities in (WHOLE, None):
        seen_by = {"worker-1": ObservedTopologies(world.seen_topologies(capabilities=capabilities))}
        findings = fabrics(
            nodes={"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(world.node(2, mlx5_1=older))},
            topologies=seen_by,
        )
        finding = one(findings, "fabric.rate", "compute")
        assert (finding.status, finding.measured) == ("pass", "links of HCAs: 1 of 200 Gb/s, 7 of 400 Gb/s")


def test_a_rate_that_was_not_read_is_unknown_by_name() -> None:
    finding = one(rates(WHOLE, rate_gbps=None), "fabric.rate", "worker-2 mlx5_1")
    assert (finding.status, finding.measured) == ("unknown", "rate not read")
    mute = {f"mlx5_{index}": world.hca(2, index, rate_gbps=None) for index in range(6)}
    unread = {"worker-1": ObservedHcas(world.node(1)), "worker-2": ObservedHcas(world.node(2, **mute))}
    subjects = {
        finding.subject
        for finding in fabrics(nodes=unread)
        if finding.check == "fabric.rate" and finding.status == "unknown"
    }
    assert subjects == {f"worker-2 mlx5_{index}" for index in (0, 1, 4, 5)}


SLOW = SeenCapabilities(
    (SlowPort("0x0000000000000200", 60, "106.25 Gbps"), SlowPort("0x0000000000000300", 1, "106.25 Gbps")), 1000
)


@pytest.mark.parametrize(
    ("capabilities", "status"),
    [
        (SLOW, "fail"),
        (SeenCapabilities(links=1000), "pass"),
        (SeenCapabilities(error="ended with 1"), "fail"),
        (None, "fail"),
    ],
)
def test_a_link_between_switches_below_the_others(capabilities: typing.Optional[SeenCapabilities], status: str) -> None:
    """Unless its ends can't do more: then it was bought that way."""

    def slower(topology: Topology) -> Topology:
        return dataclasses.replace(
            topology, links=(dataclasses.replace(topology.links[0], speed="HDR"), *topology.links[1:])
        )

    findings = cabled(2, change=slower, capabilities=capabilities)
    finding = one(
        findings, "fabric.rate", "leaf-1 port 60 - spine-1 port 1" if status == "fail" else "compute switches"
    )
    assert (finding.status == status and "200 Gb/s" in finding.measured) or status == "pass"


def test_a_link_between_switches_whose_speed_is_not_shown_is_unknown_by_name() -> None:
    """ibnetdiscover of rdma-core before 48 shows XDR as ``????``."""

    def odd(topology: Topology, width: typing.Optional[int] = 4) -> Topology:
        return dataclasses.replace(
            topology, links=(dataclasses.replace(topology.links[0], speed="????", width=width), *topology.links[1:])
        )

    finding = one(cabled(2, change=odd), "fabric.rate", "leaf-1 port 60 - spine-1 port 1")
    assert (finding.status, finding.measured) == ("unknown", "width 4x, speed unknown")
    finding = one(cabled(2, change=lambda topology: odd(topology, None)), "fabric.rate", "leaf-1 port 60")
    assert (finding.status, finding.measured) == ("unknown", "width unknown, speed unknown")


def test_links_below_their_capability_warn() -> None:
    finding = one(cabled(2, capabilities=SLOW), "fabric.capability")
    assert finding.status == "warn" and "leaf-1 port 60 could have 100 Gb/s per lane (NDR)" in finding.why
    assert (
        one(cabled(2, capabilities=SeenCapabilities(error="iblinkinfo ended with 1")), "fabric.capability").status
        == "unknown"
    )


# error counters


def counted(**counters: int) -> PortErrors:
    return PortErrors(plain_guid(1, 0, 1), 1, counters)


MAXIMA = {name: value for group in CLASSES if group.closes for name, value in group.maximum.items()}
AT_ONCE = ("LinkErrorRecoveryCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors")


@pytest.mark.parametrize(
    ("first", "later", "status"),
    [
        ({"SymbolErrorCounter": 5}, {"SymbolErrorCounter": 5}, "pass"),
        ({"SymbolErrorCounter": 5}, {"SymbolErrorCounter": 8}, "warn"),
        ({"SymbolErrorCounter": 5}, {"SymbolErrorCounter": 80}, "fail"),
        ({}, {"SymbolErrorCounter": 80}, "fail"),
        ({"SymbolErrorCounter": 900}, {"SymbolErrorCounter": 80}, "fail"),
        ({}, {"LinkDownedCounter": 1}, "fail"),
        ({}, {"PortXmitDiscards": 80000}, "fail"),
        ({}, {"PortXmitDiscards": 4}, "warn"),
        ({"PortXmitDiscards": 80000}, {"PortXmitDiscards": 80000}, "unknown"),
        ({"VL15Dropped": 1}, {"VL15Dropped": 10000}, "warn"),
        ({}, {"PortXmitConstraintErrors": 200}, "fail"),
        ({}, {"PortRcvConstraintErrors": 200}, "fail"),
        ({}, {"PortRcvRemotePhysicalErrors": 200}, "fail"),
        ({}, {"PortRcvSwitchRelayErrors": 200}, "warn"),
        ({"PortRcvSwitchRelayErrors": 65535}, {"PortRcvSwitchRelayErrors": 65535}, "pass"),
        ({}, {"PortOfTomorrowErrors": 1}, "warn"),
        *(({name: value}, {name: value}, "unknown") for name, value in MAXIMA.items()),
        *(({name: value - 1}, {name: value}, "fail" if name in AT_ONCE else "warn") for name, value in MAXIMA.items()),
        ({"SymbolErrorCounter": 65535}, {"SymbolErrorCounter": 65535, "LinkDownedCounter": 1}, "fail"),
    ],
)
def test_errors_that_grow_while_one_looks(first: dict[str, int], later: dict[str, int], status: str) -> None:
    finding = one(seen(errors=world.errors([counted(**first)], [counted(**later)])), "fabric.errors_growing")
    assert finding.status == status
    if status != "pass":
        assert finding.subject == "worker-1 mlx5_0" and "MF0;leaf00:MQM9700/U1 port 1" in finding.why
        assert ("at the maximum" if status == "unknown" else "per second") in finding.measured


def test_physical_errors_are_read_again_before_a_part_is_replaced() -> None:
    errors = world.errors([counted()], [counted(SymbolErrorCounter=200)])
    assert one(seen(errors=errors), "fabric.errors_growing").remedy.startswith(
        "While no job uses the link, clean and reseat the cable at both ends. If a later run still finds new errors,"
    )


def test_dropped_management_packets_are_no_slow_receiver() -> None:
    finding = one(seen(errors=world.errors([], [counted(VL15Dropped=50)])), "fabric.errors_growing")
    assert finding.status == "warn" and "No data is lost" in finding.why
    assert "receiver" not in finding.why + finding.remedy and "UFM telemetry" in finding.remedy


def test_each_class_of_counters_has_its_own_remedy() -> None:
    remedies = set()
    for name in (
        "SymbolErrorCounter",
        "PortRcvRemotePhysicalErrors",
        "PortXmitDiscards",
        "PortRcvConstraintErrors",
        "PortRcvSwitchRelayErrors",
    ):
        finding = one(seen(errors=world.errors([counted()], [counted(**{name: 200})])), "fabric.errors_growing")
        assert f"{name} +200 in 10 s (20 per second)" in finding.measured
        remedies.add(finding.remedy)
    assert len(remedies) == 5


def test_a_64_bit_counter_has_no_maximum_here() -> None:
    wide = PortErrors(plain_guid(1, 0, 1), 1, {"SymbolErrorCounter": 65535, "LinkDownedCounter": 255}, wide=True)
    assert one(seen(errors=world.errors([wide], [wide])), "fabric.errors_growing").status == "pass"


def test_errors_of_the_past_warn_once_for_the_fabric() -> None:
    old = [PortErrors(LEAF, port, {"SymbolErrorCounter": 65534, "PortXmitDiscards": 9}) for port in range(1, 13)]
    findings = seen(errors=world.errors(old, old))
    finding = one(findings, "fabric.errors")
    assert (finding.status, finding.measured) == (
        "warn",
        "12 of 65 ports above 10 in a link error counter",
    ) and "and 4 more" in finding.why
    assert one(findings, "fabric.errors_growing").status == "pass"


def test_counters_that_were_not_read_are_unknown() -> None:
    for missing in (None, SeenErrors(error="Query SA failed")):
        findings = seen(errors=missing)
        assert {one(findings, check).status for check in ("fabric.errors", "fabric.errors_growing")} == {"unknown"}
    assert one(seen(errors=world.errors(failures=3)), "fabric.errors", "compute queries").status == "unknown"


def test_a_short_look_at_the_counters_shows_no_growth() -> None:
    for seconds in (0.0, 0.001, 9.9):
        errors = dataclasses.replace(world.errors(), seconds=seconds)
        finding = one(seen(errors=errors), "fabric.errors_growing")
        assert (finding.status, finding.measured) == ("unknown", f"{seconds:g} s between the readings")
        assert "fabric_error_seconds" in finding.remedy
    assert one(seen(errors=world.errors()), "fabric.errors_growing").status == "pass"


def test_a_report_about_fewer_ports_than_the_topology_has_is_unknown() -> None:
    """8 links: 16 ends, of which a reading of 1 port, or of 15, says nothing."""
    for first, later in ((1, 65), (65, 1), (15, 16), (0, 0)):
        errors = SeenErrors(ErrorReport((), first), ErrorReport((), later), 10.0)
        finding = one(seen(errors=errors), "fabric.errors", "compute ports")
        assert (finding.status, finding.measured, finding.expected) == (
            "unknown",
            f"{count_of(min(first, later), 'port')} read",
            "at least 16 ports read",
        )
    for links in (0, 1, 15):
        assert one(seen(capabilities=SeenCapabilities(links=links)), "fabric.capability", "compute").status == "unknown"
    odd = one(seen(capabilities=SeenCapabilities(links=15, unread=("0x1 odd",))), "fabric.capability", "compute")
    assert odd.status == "unknown" and "0x1 odd" in odd.why


# links of others


def beside(topology: Topology) -> Topology:
    """Besides our leaf, one with a storage host alone, under a common spine."""
    ours, spine, leaf = (
        topology.nodes[0],
        FabricNode("Switch", "0x0000000000000900", "spine", 65, 90),
        FabricNode("Switch", "0x0000000000000901", "leaf-9", 65, 91),
    )
    host = FabricNode("Ca", "0x0000000000000909", "store-1 mlx5_0", 1)
    links = (
        Link(LinkEnd("Switch", spine.guid, 1, 90), LinkEnd("Switch", ours.guid, 60, 1), 4, "NDR"),
        Link(LinkEnd("Switch", spine.guid, 2, 90), LinkEnd("Switch", leaf.guid, 60, 91), 4, "NDR"),
        Link(LinkEnd("Switch", leaf.guid, 1, 91), LinkEnd("Ca", host.guid, 1, 99, "0x000000000000090a"), 4, "NDR"),
    )
    return Topology((*topology.nodes, spine, leaf, host), (*topology.links, *links))


STORE, SPINE = "0x000000000000090a", "0x0000000000000900"


def with_storage(errors: SeenErrors) -> Findings:
    return seen(beside(world.topology(1)), errors=errors, capabilities=SeenCapabilities(links=22))


def test_errors_of_others_warn_and_those_on_our_way_fail() -> None:
    for guid, port, status, subject in (
        (STORE, 1, "warn", "compute others"),
        ("0x0000000000000901", 1, "warn", "compute others"),
        # the uplink of the leaf of others, at both of its ends
        ("0x0000000000000901", 60, "warn", "compute others"),
        (SPINE, 2, "warn", "compute others"),
        # the uplink of our leaf, at both of its ends; our leaf; our HCA
        (SPINE, 1, "fail", "spine port 1"),
        (LEAF, 60, "fail", "MF0;leaf00:MQM9700/U1 port 60"),
        (LEAF, 1, "fail", "MF0;leaf00:MQM9700/U1 port 1"),
        (plain_guid(1, 0, 1), 1, "fail", "worker-1 mlx5_0"),
    ):
        finding = one(
            with_storage(world.errors([], [PortErrors(guid, port, {"LinkDownedCounter": 1})])), "fabric.errors_growing"
        )
        assert (finding.status, finding.subject) == (status, subject)
        assert status == "fail" or "LinkDownedCounter +1" in finding.why


def test_a_port_that_does_not_answer_matters_where_it_is_on_our_way() -> None:
    for port, status, says in (
        (UnreadPort(99, 1), "warn", "store-1 mlx5_0 (LID 99) port 1"),
        # no link of that leaf carries anything of ours
        (UnreadPort(91, 255), "warn", "leaf-9 (LID 91) all ports"),
        (UnreadPort(90, 2), "warn", "spine (LID 90) port 2"),
        (UnreadPort(90, 1), "unknown", "spine (LID 90) port 1"),
        (UnreadPort(1, 255), "unknown", "MF0;leaf00:MQM9700/U1 (LID 1) all ports"),
        # a LID that the topology does not have
        (UnreadPort(777, 1), "unknown", "LID 777"),
    ):
        report = ErrorReport((), 65, 1, (port,))
        for errors in (SeenErrors(report, ErrorReport((), 65), 10.0), SeenErrors(ErrorReport((), 65), report, 10.0)):
            finding = one(with_storage(errors), "fabric.errors", "compute queries")
            assert finding.status == status and says in finding.measured


def test_only_what_was_read_twice_is_compared() -> None:
    old = PortErrors(plain_guid(1, 0, 1), 1, {"SymbolErrorCounter": 500})
    lid = next(link.b.lid for link in world.topology(1).links if link.b.port_guid == plain_guid(1, 0, 1))
    named = SeenErrors(ErrorReport((), 65, 1, (UnreadPort(lid or 0, 1),)), ErrorReport((old,), 65), 10.0)
    findings = seen(errors=named)
    assert (
        one(findings, "fabric.errors_growing").status == "pass"
        and one(findings, "fabric.errors", "compute queries").status == "unknown"
    )
    nameless = SeenErrors(ErrorReport((), 65, 1), ErrorReport((old,), 65), 10.0)
    finding = one(seen(errors=nameless), "fabric.errors_growing")
    assert (finding.status, finding.subject) == (
        "unknown",
        "worker-1 mlx5_0",
    ) and "It is unknown whether the errors are new" in finding.why


# any fabric


def test_an_intent_of_ethernet_alone_needs_no_manager() -> None:
    findings = fabrics(world.intent(world.storage()), subnets={}, topologies={})
    assert statuses(findings) == {"pass"} and not any(finding.check == "fabric.one_master" for finding in findings)


def test_fabric_without_nodes_is_unknown() -> None:
    findings = fabrics(nodes={}, subnets={}, topologies={})
    assert one(findings, "fabric.node").status == "unknown" and not judge(findings).open


def test_of_thousands_of_invented_links_the_first_have_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_OF_PORTS", 8)

    def invented(topology: Topology) -> Topology:
        like = next(link for link in topology.links if link.a.kind == link.b.kind == "Switch")
        more = [
            dataclasses.replace(
                like,
                a=dataclasses.replace(like.a, port=100 + number),
                b=dataclasses.replace(like.b, port=100 + number),
                speed="EDR",
            )
            for number in range(60)
        ]
        return Topology(topology.nodes, (*topology.links, *more))

    ports = tuple(
        PortErrors("0x0000000000000200", 100 + number, {"PortRcvSwitchRelayErrors": 90000}, True)
        for number in range(60)
    )
    errors = SeenErrors(ErrorReport((), 300), ErrorReport(ports, 300), 10.0)
    slow = tuple(SlowPort("0x0000000000000200", 100 + number, "106.25 Gbps") for number in range(60))
    findings = cabled(2, change=invented, errors=errors, capabilities=SeenCapabilities(slow, 300))
    for check, rest in (
        ("fabric.errors_growing", "52 more ports with this fault"),
        ("fabric.rate", "52 more links with this fault"),
    ):
        found = [item for item in findings if item.check == check and item.status != "pass"]
        assert (len(found), found[-1].measured) == (9, rest)
        assert "Run ibnetdiscover as root on another node." in (found[-1].remedy or "")
