# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups Ethernet NICs by network, based on the LLDP frames of switches and the neighbor tables of nodes.

Two NICs are on one network if they receive LLDP frames of the same switch with the same VLAN, or if one node has the
hardware address of the other node's NIC in its neighbor table. Networks of racks that are routed to each other have no
node in common, and form one fabric. Networks that have nodes in common form several fabrics. A report of a single node
never merges two networks that several other nodes are on.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.text import join_first
from ..._model.boundary.devices import assigned_address
from ..._model.node.hca import Hca
from ..._model.node.neighbours import NetdevNeighbours, NodeNeighbours, ObservedNeighbours, SwitchPort
from .groups import HcaGroup, Out, compute_rate, explain_unfit, list_proven
from .inputs import Nodes
from .joins import Joins, Nic, Place, Switch

Neighbours = typing.Mapping[str, ObservedNeighbours]
Members = dict[str, tuple[Hca, ...]]


class _Network(typing.NamedTuple):
    """A layer 2 network, with the NICs that are on it.

    :ivar switches: names of the switches whose LLDP frames its NICs received
    """

    nics: frozenset[Nic]
    switches: frozenset[str]


def group_ethernet(nodes: Nodes, neighbours: Neighbours, out: Out) -> list[HcaGroup]:
    """Return the RDMA NICs that are suitable for virtual functions, in one group for each network. NICs with an unusual
    rate are left out: the usual rate is the one that is the highest rate of a node on most nodes.

    :param nodes: HCAs of each node, by node
    :param neighbours: LLDP data and neighbor tables by node
    :param out: collector to which the NICs that are left out are added, each with the reason
    """
    members = _find_usual(
        nodes,
        {name: item.value for name, item in neighbours.items() if item.value is not None and item.error is None},
        out,
    )
    if not members:
        return []
    rate = max(compute_rate(hca) for hcas in members.values() for hca in hcas)
    what = f"Ethernet links of {rate:g} Gb/s with RDMA"
    seen = _collect_nic_neighbours(members, neighbours)
    joins = _join_nics_by_network(seen)
    networks = _list_networks(seen, joins.components())
    rejected = joins.rejected()
    for node, hcas in members.items():
        for hca in hcas:
            if (node, hca.name) in rejected:
                out.add(node, hca, _explain_shared_nic(rejected[node, hca.name], networks, joins))
    everywhere = {nic for nic in seen if nic not in rejected}
    members = _filter_members(members, everywhere)
    silent = everywhere - {nic for network in networks for nic in network.nics}
    fabrics = _merge_rack_networks(networks, members) if len(networks) > 1 else networks
    if len(fabrics) < 2:
        return [
            HcaGroup(
                False,
                (),
                members,
                f"{what}; {_explain_single_fabric(networks, fabrics, silent, len(everywhere), neighbours)}",
            )
        ]
    for node, name in sorted(silent):
        hca = next(hca for hca in members[node] if hca.name == name)
        out.add(
            node,
            hca,
            "neither LLDP nor the neighbor tables show the network to which this NIC is connected. Enable LLDP on its"
            " switch, or add the NIC to the intent manually.",
        )
    return [
        HcaGroup(
            False,
            (),
            _filter_members(members, fabric.nics),
            f"{what}, on one network according to {_collect_evidence(fabric)}",
        )
        for fabric in fabrics
    ]


def _find_usual(nodes: Nodes, seen: typing.Mapping[str, NodeNeighbours], out: Out) -> Members:
    fit: dict[str, list[Hca]] = {}
    proven = list_proven(nodes)
    for name, hcas in nodes.items():
        uplinks = set(seen[name].uplinks) if name in seen else set()
        for hca in hcas:
            if hca.is_virtual:
                continue
            why = explain_unfit(hca, proven) or _not_roce(hca) or _explain_uplink_use(hca, uplinks)
            if why:
                out.add(name, hca, why)
            else:
                fit.setdefault(name, []).append(hca)
    # each node has one voice: a single one, whatever it tells, takes the fabric from no other
    votes = collections.Counter(max(map(compute_rate, some)) for some in fit.values())
    usual = max(votes, key=lambda rate: (votes[rate], rate), default=0.0)
    for name, some in fit.items():
        for hca in some:
            rates = f"its link runs at {compute_rate(hca):g} Gb/s, but the links of most nodes run at {usual:g} Gb/s"
            if compute_rate(hca) < usual:
                out.add(
                    name,
                    hca,
                    f"{rates}: such a NIC usually serves storage or the node itself. If the NIC is for RDMA, add it to"
                    " the intent manually.",
                )
            elif compute_rate(hca) > usual:
                out.add(
                    name,
                    hca,
                    f"{rates}, which is the highest rate on {votes[usual]} of {len(fit)} nodes. Check the link, or"
                    " add a fabric to the intent manually.",
                )
    members = {name: tuple(hca for hca in some if compute_rate(hca) == usual) for name, some in fit.items()}
    return {name: hcas for name, hcas in members.items() if hcas}


def _not_roce(hca: Hca) -> str:
    if not hca.rdma_device:
        return "it has no RDMA device."
    if not any(port.state == "ACTIVE" for port in hca.all_ports):
        return "its port has no link. If the NIC belongs to the fabric, bring up the port."
    bonds = sorted({netdev.bond for netdev in hca.all_netdevs if netdev.bond})
    return (
        f"it is part of the bond {', '.join(bonds)}, which usually serves storage or the node itself. If the bond is"
        " for RDMA, add a fabric to the intent manually."
        if bonds
        else ""
    )


def _explain_uplink_use(hca: Hca, uplinks: typing.AbstractSet[str]) -> str:
    names = sorted(uplinks & {netdev.name for netdev in hca.netdevs})
    return (
        f"the default route of the node uses {names[0]}, which loses its link while VFs are created. If that is"
        " acceptable, add the NIC to the intent manually."
        if names
        else ""
    )


def _collect_nic_neighbours(members: Members, neighbours: Neighbours) -> dict[Nic, tuple[NetdevNeighbours, ...]]:
    """Return for each NIC the LLDP data and neighbor tables of its interfaces.

    :param members: NICs of each node, by node
    :param neighbours: LLDP data and neighbor tables that node_info read, or the error, by node
    """
    found: dict[Nic, tuple[NetdevNeighbours, ...]] = {}
    for node, hcas in members.items():
        value = neighbours.get(node, ObservedNeighbours()).value
        by_name = {item.name: item for item in value.netdevs} if value else {}
        for hca in hcas:
            found[(node, hca.name)] = tuple(by_name[netdev.name] for netdev in hca.netdevs if netdev.name in by_name)
    return found


def _join_nics_by_network(seen: typing.Mapping[Nic, typing.Sequence[NetdevNeighbours]]) -> Joins:
    """Join the NICs that are on one network. A NIC that has no neighbors, and is the neighbor of no other NIC, is not
    joined.

    :param seen: LLDP data and neighbor tables of the interfaces of each NIC
    """
    owners: dict[str, set[Nic]] = collections.defaultdict(set)
    for nic, items in seen.items():
        for item in items:
            owners[assigned_address(item.hardware_address)].add(nic)
    owners.pop("", None)
    # a hardware address that two NICs have tells nothing
    owner = {address: next(iter(nics)) for address, nics in owners.items() if len(nics) == 1}
    heard: dict[Nic, dict[Switch, None]] = {}
    met: dict[Nic, dict[Nic, None]] = {}
    for nic, items in seen.items():
        for item in items:
            for port in item.switch_ports:
                heard.setdefault(nic, {})[_network_of(port)] = None
            for address in item.hardware_addresses:
                other = owner.get(address)
                if other is not None and other[0] != nic[0]:
                    met.setdefault(nic, {})[other] = None
    return Joins(heard, met)


def _network_of(port: SwitchPort) -> Switch:
    """Return the network of a switch port: the text ``switch``, the chassis ID of the switch, and the VLAN of
    the port.
    """
    return ("switch", port.chassis, port.vlan)


def _list_networks(
    seen: typing.Mapping[Nic, typing.Sequence[NetdevNeighbours]], components: typing.Iterable[typing.Iterable[Place]]
) -> list[_Network]:
    names = {
        _network_of(port): port.system or port.chassis
        for items in seen.values()
        for item in items
        for port in item.switch_ports
    }
    found = []
    for places in components:
        nics = frozenset((place[0], place[1]) for place in places if len(place) == 2)
        if nics:
            found.append(_Network(nics, frozenset(names[place] for place in places if len(place) == 3)))
    return sorted(found, key=lambda network: (-len(network.nics), sorted(network.nics)))


def _explain_shared_nic(places: typing.Iterable[Place], networks: typing.Sequence[_Network], joins: Joins) -> str:
    """Return the reason why a NIC is left out of the proposal: it alone reports that several networks are one, and the
    other nodes on these networks do not confirm this.

    :param places: one NIC or switch of each of these networks
    :param networks: all networks that were found
    :param joins: connected components of NICs and switch networks
    """
    of_root = {joins.find(min(network.nics)): network for network in networks}
    between = sorted(
        (of_root[root] for root in {joins.find(place) for place in places} if root in of_root),
        key=lambda network: min(network.nics),
    )
    names = [join_first(sorted(network.switches), 4) or " ".join(min(network.nics)) for network in between]
    at_once = (
        f"according to LLDP and the neighbor tables, the NIC is on the networks of {join_first(names, 4, ' and ')}"
        " at the same time, but the other nodes show these networks as separate."
    )
    return f"{at_once} Check the cables of the NIC and its switch, or add the NIC to the intent manually."


def _merge_rack_networks(networks: typing.Iterable[_Network], members: Members) -> list[_Network]:
    """Merge networks into one fabric if they have no node in common and their NICs are in the same PCI slots, as in
    racks of equal nodes. Return an empty list if the PCI slots do not tell the fabrics apart: two networks with a
    common node use the same slots, or two fabrics share a slot. All NICs are then proposed as one fabric.

    :param networks: layer 2 networks with their NICs
    :param members: NICs of each node, by node
    """
    by_slots: dict[frozenset[str], _Network] = {}
    for network in networks:
        slots = frozenset(
            hca.pci.address for hcas in _filter_members(members, network.nics).values() for hca in hcas if hca.pci
        )
        other = by_slots.get(slots, _Network(frozenset(), frozenset()))
        if {node for node, _name in network.nics} & {node for node, _name in other.nics}:
            return []
        by_slots[slots] = _Network(network.nics | other.nics, network.switches | other.switches)
    slots_of = list(by_slots)
    if sum(map(len, slots_of)) > len(frozenset().union(*slots_of)):
        return []
    return list(by_slots.values())


def _filter_members(members: Members, nics: typing.Container[Nic]) -> Members:
    found = {node: tuple(hca for hca in hcas if (node, hca.name) in nics) for node, hcas in members.items()}
    return {node: hcas for node, hcas in found.items() if hcas}


def _explain_single_fabric(
    networks: typing.Sequence[_Network],
    fabrics: typing.Sequence[_Network],
    silent: typing.Collection[Nic],
    count: int,
    neighbours: Neighbours,
) -> str:
    """Return the reason why all NICs are proposed as one fabric: the LLDP data and neighbor tables that show it, or the
    lack of them.

    :param networks: layer 2 networks that were found
    :param fabrics: networks after those of different racks were merged
    :param silent: NICs that have no neighbors
    :param count: number of all NICs
    :param neighbours: LLDP data and neighbor tables by node
    """
    if not networks:
        errors = sorted(
            {
                error
                for item in neighbours.values()
                for error in (item.value.errors if item.value else [item.error or "no data"])
            }
        )
        because = (
            f" ({'; '.join(errors[:3])})"
            if errors
            else ", because no switch sends LLDP frames and no neighbor is known"
        )
        return (
            f"the network to which the NICs are connected is unknown{because}; verify that all of them are on one"
            " network"
        )
    rest = f"; {len(silent)} of {count} NICs show no neighbor, so verify their network" if silent else ""
    if len(networks) == 1:
        return f"one network according to {_collect_evidence(networks[0])}{rest}"
    if fabrics:
        racks = f"{len(networks)} networks without a node in common, according to {_collect_evidence(fabrics[0])}"
        return f"{racks}: they are racks of one fabric if the site routes between these networks, so verify this{rest}"
    switches = ", ".join(sorted({name for network in networks for name in network.switches})[:8])
    where = f" ({switches})" if switches else ""
    return (
        f"the NICs are on {len(networks)} networks{where} that do not match their PCI slots, so separate fabrics"
        f" cannot be proposed: check the cables{rest}"
    )


def _collect_evidence(network: _Network) -> str:
    if not network.switches:
        return "the neighbor tables of the nodes"
    return f"LLDP of {join_first(sorted(network.switches), 4)}"
