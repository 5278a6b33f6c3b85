# SPDX-License-Identifier: GPL-3.0-or-later

"""One node decides neither on which network the Ethernet NICs of the others are, nor whether what these have is
proposed."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    SeenSubnet,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import Proposal
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import (
    NetdevNeighbours,
    NodeNeighbours,
    ObservedNeighbours,
    SwitchPort,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.ethernet import group_ethernet
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.groups import HcaGroup, Out
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.inputs import ProposalInputs
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.propose import MOST_HCAS, propose
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

Nic = tuple[int, int]
#: how many nodes the small fleets here have; the last one is the hostile one
COUNT = 20
EVIL = COUNT - 1
GATEWAY = "02:ff:00:00:00:01"


def address(nic: Nic) -> str:
    return f"02:00:{nic[0] >> 8:02x}:{nic[0] & 255:02x}:00:{nic[1]:02x}"


def nic_of(number: int, link_layer: str = "Ethernet", mac: str = "") -> Hca:
    pci = PciFunction(
        f"0000:{0x10 + number:02x}:00.0", "15b3", "101d", "0207" if link_layer == "InfiniBand" else "0200"
    )
    netdevs = (Netdev(f"eth{number}", mac),) if mac else ()
    return Hca(pci.address, f"mlx5_{number}", netdevs, pci, ports=(Port(1, "ACTIVE", "LinkUp", link_layer, 100.0),))


@dataclasses.dataclass
class Fleet:
    """NICs of nodes, the switches that each of them hears, and the hardware addresses that it sees."""

    rails: int = 2
    count: int = COUNT
    heard: dict[Nic, typing.Sequence[str]] = dataclasses.field(default_factory=dict)
    seen: dict[Nic, typing.Sequence[str]] = dataclasses.field(default_factory=dict)
    own: dict[Nic, str] = dataclasses.field(default_factory=dict)

    @property
    def nics(self) -> list[Nic]:
        return [(node, rail) for node in range(self.count) for rail in range(self.rails)]

    def nodes(self) -> dict[str, tuple[Hca, ...]]:
        return {
            f"n{node}": tuple(
                nic_of(rail, mac=self.own.get((node, rail), address((node, rail)))) for rail in range(self.rails)
            )
            for node in range(self.count)
        }

    def neighbours(self) -> dict[str, ObservedNeighbours]:
        return {
            f"n{node}": ObservedNeighbours(NodeNeighbours(tuple(self._netdevs(node)), ("mgmt0",)))
            for node in range(self.count)
        }

    def _netdevs(self, node: int) -> typing.Iterator[NetdevNeighbours]:
        for rail in range(self.rails):
            nic = (node, rail)
            ports = tuple(SwitchPort(name, f"p{node}", name) for name in self.heard.get(nic, ()))
            yield NetdevNeighbours(f"eth{rail}", self.own.get(nic, address(nic)), ports, tuple(self.seen.get(nic, ())))

    def groups(self) -> tuple[list[HcaGroup], str]:
        """The proposed fabrics, and who is left out."""
        nodes = self.nodes()
        out = Out(nodes)
        groups = group_ethernet(nodes, self.neighbours(), out)
        return groups, "\n".join(f"{item.what}: {item.why}" for item in out.told())


def railed(**changes: typing.Any) -> Fleet:
    """A switch for each NIC of a node: two networks."""
    fleet = Fleet(**changes)
    fleet.heard = {nic: (f"switch-{nic[1]}",) for nic in fleet.nics}
    return fleet


def members(group: HcaGroup) -> set[Nic]:
    return {(int(node[1:]), int((hca.rdma_device or "")[-1])) for node, hcas in group.members.items() for hca in hcas}


def by_rail(groups: typing.Sequence[HcaGroup]) -> list[set[Nic]]:
    """The NICs of each group, those of the first rail first."""
    return sorted(map(members, groups), key=lambda nics: min(number for _node, number in nics))


def rail(number: int, without: typing.Sequence[Nic] = ()) -> set[Nic]:
    return {(node, number) for node in range(COUNT)} - set(without)


def test_the_fleet_is_two_fabrics() -> None:
    groups, left_out = railed().groups()
    assert by_rail(groups) == [rail(0), rail(1)] and not left_out


@pytest.mark.parametrize("liars", [1, 2])
def test_a_node_whose_nics_hear_both_switches_joins_no_networks(liars: int) -> None:
    fleet = railed()
    lies = [(EVIL, number) for number in range(liars)]
    fleet.heard.update(dict.fromkeys(lies, ("switch-0", "switch-1")))
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0, lies), rail(1, lies)]
    said = (
        "according to LLDP and the neighbor tables, the NIC is on the networks of switch-0 and"
        " switch-1 at the same time, but the other nodes show these networks as separate."
    )
    assert (
        left_out.count(said) == 1
        and "Check the cables of the NIC and its switch, or add the NIC to the intent manually." in left_out
    )
    assert all(f"{address_of(number)}" in left_out for _node, number in lies) and left_out.startswith(f"n{EVIL} ")


def address_of(number: int) -> str:
    return f"0000:{0x10 + number:02x}:00.0"


def test_a_node_that_claims_to_see_all_neighbours_joins_no_networks() -> None:
    """It hears no switch, so that nothing shows where it is."""
    fleet = railed()
    fleet.heard[EVIL, 0] = ()
    fleet.seen[EVIL, 0] = [address(nic) for nic in fleet.nics]
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0, [(EVIL, 0)]), rail(1)]
    assert (
        f"n{EVIL} {address_of(0)} (15b3:101d): according to LLDP and the neighbor tables, the NIC is on the networks of"
        " switch-0 and switch-1 at the same time"
    ) in left_out


def test_a_nic_that_hears_one_switch_is_on_it_whatever_it_claims_to_see() -> None:
    fleet = railed()
    fleet.seen[EVIL, 0] = [address(nic) for nic in fleet.nics]
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0), rail(1)] and not left_out


def test_a_node_that_claims_the_address_of_a_gateway_joins_no_networks() -> None:
    """All nodes see that address, on each of their networks."""
    for heard, without in ((("switch-0",), []), ((), [(EVIL, 0)])):
        fleet = railed()
        fleet.seen = dict.fromkeys(fleet.nics, (GATEWAY,))
        fleet.own, fleet.heard[EVIL, 0] = {(EVIL, 0): GATEWAY}, heard
        groups, _left_out = fleet.groups()
        assert by_rail(groups) == [rail(0, without), rail(1)]


def test_a_node_that_claims_to_see_another_one_leaves_that_one_where_it_is() -> None:
    """Of the other one no switch is heard, and its neighbours are on one network."""
    fleet = railed()
    fleet.heard[3, 0] = ()
    fleet.seen.update(
        {(3, 0): [address((4, 0))], (4, 0): [address((3, 0))], (5, 0): [address((3, 0))], (EVIL, 1): [address((3, 0))]}
    )
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0), rail(1)] and not left_out


def test_a_node_that_claims_to_see_all_joins_no_networks_that_neighbours_alone_show() -> None:
    fleet = Fleet()
    fleet.seen = {
        (node, number): [address((other, number)) for other in range(EVIL) if other != node]
        for node, number in fleet.nics
        if node != EVIL
    }
    fleet.seen[EVIL, 0] = [address(nic) for nic in fleet.nics]
    groups, left_out = fleet.groups()
    apart = [(EVIL, 0), (EVIL, 1)]
    assert [members(group) for group in groups] == [rail(0, apart), rail(1, apart)]
    assert (
        "according to LLDP and the neighbor tables, the NIC is on the networks of n0 0000:10:00.0 and n0 0000:11:00.0"
        " at the same time"
    ) in left_out


def test_what_two_nodes_say_joins_networks() -> None:
    """As behind a switch that passes on the LLDP of others."""
    fleet = railed()
    fleet.heard.update(dict.fromkeys([(3, 0), (4, 0)], ("switch-0", "switch-1")))
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0) | rail(1)] and not left_out
    assert "one network according to LLDP of switch-0, switch-1" in groups[0].why


def test_neighbours_that_several_nodes_see_join_the_networks_of_two_switches() -> None:
    fleet = railed()
    fleet.seen = {(0, 0): [address((1, 1))], (1, 1): [address((0, 0))], (2, 0): [address((3, 1))]}
    (group,), left_out = fleet.groups()
    assert members(group) == rail(0) | rail(1) and not left_out


def test_a_ring_of_neighbours_is_one_network() -> None:
    fleet = Fleet(rails=1)
    fleet.seen = {(node, 0): [address(((node + step) % COUNT, 0)) for step in (1, COUNT - 1)] for node in range(COUNT)}
    (group,), left_out = fleet.groups()
    assert (
        members(group) == rail(0)
        and "one network according to the neighbor tables of the nodes" in group.why
        and not left_out
    )


def test_a_node_whose_neighbours_alone_show_its_network_is_on_it() -> None:
    fleet = railed()
    fleet.heard[3, 0] = ()
    fleet.seen[3, 0] = [address((4, 0)), address((5, 0))]
    groups, left_out = fleet.groups()
    assert by_rail(groups) == [rail(0), rail(1)] and not left_out


def test_a_few_nodes_that_hear_two_switches_are_on_one_network() -> None:
    fleet = Fleet(rails=1, count=2)
    fleet.heard = {(0, 0): ("switch-0", "switch-1"), (1, 0): ("switch-1",)}
    (group,), left_out = fleet.groups()
    assert members(group) == {(0, 0), (1, 0)} and not left_out


def test_networks_of_thousands_of_nodes_are_found_soon() -> None:
    fleet = railed(rails=8, count=5000)
    fleet.heard.update({nic: ("switch-0", "switch-1") for nic in fleet.nics if nic[0] == 4999})
    fleet.seen = {
        (node, number): [address(((node + step) % 5000, number)) for step in range(1, 6)] for node, number in fleet.nics
    }
    nodes, neighbours = fleet.nodes(), fleet.neighbours()
    # what grows with the square takes minutes
    with bounded(40):
        assert len(group_ethernet(nodes, neighbours, Out(nodes))) == 8


MASTER = SubnetManager(1, "0x0002c903000a0001", "MASTER", 3, 1)


def mixed(infiniband: typing.Container[int], master: typing.Optional[SubnetManager] = None) -> Proposal:
    """A RoCE fleet of which some nodes say that their first HCA is InfiniBand."""
    fleet = railed()
    nodes = fleet.nodes()
    nodes.update(
        {
            name: (nic_of(0, "InfiniBand"), *hcas[1:])
            for number, (name, hcas) in enumerate(nodes.items())
            if number in infiniband
        }
    )
    subnets = {
        name: ObservedSubnets((SeenSubnet("mlx5_0", 1, master),))
        for number, name in enumerate(nodes)
        if number in infiniband
    }
    hcas = {name: ObservedHcas(NodeHcas(hcas)) for name, hcas in nodes.items()}
    return propose(ProposalInputs(hcas, subnets, namespace="training", neighbours=fleet.neighbours()))


@pytest.mark.parametrize("link_layer", ["InfiniBand", "Ethernet"])
def test_a_node_with_more_hcas_than_a_machine_has_is_left_out_by_name(link_layer: str) -> None:
    fleet = railed()
    nodes = fleet.nodes()
    many = [
        dataclasses.replace(
            nic_of(0, link_layer),
            name=f"hca-{number}",
            rdma_device=f"mlx5_{number}",
            pci=PciFunction(f"{number >> 8:04x}:{number & 255:02x}:00.0", "15b3", "101d", "0207"),
        )
        for number in range(3000)
    ]
    nodes[f"n{EVIL}"] = tuple(many)
    subnets = {f"n{EVIL}": ObservedSubnets(tuple(SeenSubnet(f"mlx5_{number}", 1, MASTER) for number in range(3000)))}
    with bounded(1):
        proposal = propose(
            ProposalInputs(
                {name: ObservedHcas(NodeHcas(hcas)) for name, hcas in nodes.items()},
                subnets,
                namespace="training",
                neighbours=fleet.neighbours(),
            )
        )
    (said,) = left_out_of(proposal)
    assert said.startswith(
        f"node n{EVIL}: 3000 physical functions of network adapters, but a node has at most {MOST_HCAS}. Compare"
    )
    assert [item.why.endswith(f"on {EVIL} nodes") for item in proposal.fabrics.items] == [True, True]
    nodes[f"n{EVIL}"] = tuple(many[:MOST_HCAS])
    proposal = propose(ProposalInputs({name: ObservedHcas(NodeHcas(hcas)) for name, hcas in nodes.items()}, {}))
    assert "physical functions" not in " ".join(left_out_of(proposal))


def left_out_of(proposal: Proposal) -> list[str]:
    return [f"{item.what}: {item.why}" for item in proposal.left_out]


@pytest.mark.parametrize("master", [None, MASTER])
def test_a_node_that_claims_infiniband_takes_no_ethernet_from_the_others(
    master: typing.Optional[SubnetManager],
) -> None:
    proposal = mixed({EVIL}, master)
    ethernets = [item.why for item in proposal.fabrics.items if "Ethernet" in item.why]
    assert len(ethernets) == 2 and all(why.endswith(f"on {EVIL} nodes") for why in ethernets)
    assert len(proposal.fabrics.items) == (3 if master else 2)
    assert all(f"n{EVIL} " in line for line in left_out_of(proposal)), left_out_of(proposal)
    told = f"n{EVIL} 0000:11:00.0 (15b3:101d): its link is not InfiniBand, but the nodes also have InfiniBand HCAs"
    assert sum(line.startswith(told) for line in left_out_of(proposal)) == 1
    said = "the fastest Ethernet NICs with RDMA"
    assert said in proposal.fabrics.why and ("InfiniBand fabric" in proposal.fabrics.why) == bool(master)


def test_a_node_without_infiniband_takes_it_from_no_other() -> None:
    proposal = mixed(range(EVIL), MASTER)
    (fabric,) = [item for item in proposal.fabrics.items if "subnet manager" in item.why]
    assert fabric.why.endswith(f"on {EVIL} nodes")
    assert not [line for line in left_out_of(proposal) if f"n{EVIL} " in line]


def test_of_nodes_with_and_without_infiniband_is_said_that_a_fabric_is_one_of_all_nodes() -> None:
    (note,) = [note for note in mixed({EVIL, 0}, MASTER).notes if "InfiniBand fabrics" in note]
    assert note.startswith(
        f"InfiniBand fabrics are proposed for 2 nodes (n0, n{EVIL}), and Ethernet fabrics for {COUNT - 2} nodes"
        " without InfiniBand (n1, n2, "
    )
    assert "create a separate inventory for each kind of nodes" in note
    for uniform in (mixed(()), mixed(range(COUNT), MASTER)):
        assert not [note for note in uniform.notes if "InfiniBand fabrics" in note]
