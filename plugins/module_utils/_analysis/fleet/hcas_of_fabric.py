# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine the HCAs of each node that belong to a fabric of the intent. All stages use this result.

On InfiniBand the subnet manager decides, and not a list in the intent: HCAs are on the same fabric if their ports see
the same subnet manager. Ethernet has no such authority, so the selectors of the intent decide there.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenSubnet
from ..._model.intent.intent import Fabric, Select
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import Hca, NodeHcas, Port
from . import bonds
from .layouts import HcasByNode, address_of, number_rails

#: of the subnet managers that nodes tell of, in the words of a finding
_MOST = 8
#: nodes of a subnet manager that a finding names
_NAMED = 2

Nodes = typing.Mapping[str, NodeHcas]
Subnets = typing.Mapping[str, typing.Sequence[SeenSubnet]]


@dataclasses.dataclass(frozen=True)
class Member:
    """A physical function that belongs to the fabric.

    :ivar rail: number of the rail: 0 for the first HCA of each node, 1 for the second...; the same on every node
    :ivar hca: the physical function
    :ivar port: port of the HCA on this fabric; None for a function without RDMA device
    """

    rail: int
    hca: Hca
    port: typing.Optional[Port] = None


@dataclasses.dataclass(frozen=True)
class Membership:
    """The members of a fabric, or the reason why they are unknown.

    :ivar subnet_managers: GUIDs of the subnet managers that define the fabric: one, except during a failover; empty on
        Ethernet
    :ivar members: members by node, for every node that was read, in the order of the rails; empty for a node without a
        member
    :ivar why: reason why the fabric could not be identified, in which case ``members`` is empty; an empty text if the
        fabric was identified
    :ivar remedy: remedy for ``why``
    :ivar contested: GUIDs of the subnet managers among which the user must choose; empty if there is no such choice
    """

    fabric: str
    subnet_managers: tuple[str, ...]
    members: typing.Mapping[str, tuple[Member, ...]]
    why: str = ""
    remedy: str = ""
    contested: tuple[str, ...] = ()

    @property
    def resolved(self) -> bool:
        """Return whether the HCAs of the fabric are known."""
        return not self.why


def hca_matches(select: Select, hca: Hca, names: typing.Optional[typing.Sequence[str]] = None) -> bool:
    """Return whether an HCA matches all selectors that the intent sets. Virtual functions are never selected.

    :param names: names by which its interfaces may be selected; None for the names of all its interfaces
    """
    if hca.is_virtual:
        return False
    address, vendor, device = (hca.pci.address, hca.pci.vendor, hca.pci.device) if hca.pci else ("", "", "")
    return (
        (not select.pci or address in {item.lower() for item in select.pci})
        and (not select.netdev or any(name in select.netdev for name in (hca.names if names is None else names)))
        and (select.vendor is None or vendor == select.vendor.lower())
        and (select.device is None or device == select.device.lower())
    )


def find_candidates(fabric: Fabric, node: NodeHcas) -> tuple[Hca, ...]:
    """Return the HCAs of a node that can belong to a fabric, whatever subnet manager they see: the HCAs with the link
    layer of the fabric's profile that match the selectors of the intent.
    """
    chosen = [
        hca
        for hca in node.hcas
        if find_traits(fabric).members and hca_matches(fabric.select, hca, bonds.list_usable_names(fabric, hca))
    ]
    if is_infiniband(fabric):
        return tuple(hca for hca in chosen if any(port.link_layer == "InfiniBand" for port in hca.all_ports))
    return bonds.join_bonds(
        fabric,
        [
            hca
            for hca in chosen
            if hca.pci is not None and not any(port.link_layer == "InfiniBand" for port in hca.all_ports)
        ],
    )


def resolve_members(fabric: Fabric, nodes: Nodes, subnets: Subnets) -> Membership:
    """Return the members of one fabric, or the reason why they cannot be determined.

    On Ethernet, the selectors of the intent select the members. On InfiniBand, HCAs that see the same subnet manager
    form a group. GUIDs in ``select.subnet_manager`` select the groups explicitly; several GUIDs are possible, because
    after a failover another manager is the master. Without GUIDs, the fabric is the group with ``hcas_per_node`` HCAs
    on every node. If there is no such group, it is the only group with that number of HCAs on at least one node, so
    that the fabric is still identified while a port is down. A single node that reports another subnet manager than the
    others does not hide the fabric: see ``_select_clear_groups``.

    :param nodes: HCAs of each node that could be read
    :param subnets: subnets that the ports of each node see; a node that could not be read may be missing
    """
    if not is_infiniband(fabric):
        seats = {name: find_candidates(fabric, node) for name, node in nodes.items()}
        return _build_membership(
            fabric, (), {name: tuple((hca, None) for hca in hcas) for name, hcas in seats.items()}, seats
        )
    groups = _make_groups(fabric, nodes, subnets)
    wanted = tuple(_normalize_guid(guid) for guid in fabric.select.subnet_manager if guid.lower() != "any")
    if wanted:
        seen = tuple(guid for guid in groups if guid in wanted)
        if not seen:
            names = (
                f"the subnet manager {wanted[0]}"
                if len(wanted) == 1
                else f"any of the subnet managers {', '.join(wanted)}"
            )
            return _make_unresolved_membership(
                fabric,
                f"no port sees {names}; the ports see: {_describe_manager_groups(groups) or 'none'}",
                (
                    "Start that subnet manager, or list all subnet managers that can be the master in"
                    f" select.subnet_manager of the fabric '{fabric.name}'"
                ),
            )
        chosen = {name: _merge_manager_pairs([groups[guid].get(name, ()) for guid in seen]) for name in nodes}
        return _build_membership(fabric, seen, chosen, _find_possible(fabric, nodes, chosen, groups))
    count = fabric.select.hcas_per_node
    exact = [guid for guid, group in groups.items() if all(len(group.get(name, ())) == count for name in nodes)]
    partly = [guid for guid, group in groups.items() if any(len(members) == count for members in group.values())]
    choice = exact or _select_clear_groups(groups, partly, count, len(nodes))
    if len(choice) == 1:
        chosen = {name: groups[choice[0]].get(name, ()) for name in nodes}
        return _build_membership(fabric, (choice[0],), chosen, _find_possible(fabric, nodes, chosen, groups))
    seen_by = _describe_manager_groups(groups, "; ") or "no port sees a subnet manager"
    if not choice:
        return _make_unresolved_membership(
            fabric,
            f"no node has {count_of(count, 'HCA')} that see the same subnet manager ({seen_by})",
            f"Bring up the ports and the subnet manager of the fabric '{fabric.name}', or correct its"
            " select.hcas_per_node",
        )
    return _make_unresolved_membership(
        fabric,
        f"each of {len(choice)} subnet managers is seen by {count_of(count, 'HCA')} of a node: {seen_by}",
        f"Set select.subnet_manager of the fabric '{fabric.name}' to the GUID of its subnet manager: "
        + join_first(sorted(choice), _MOST, " or "),
        tuple(sorted(choice)),
    )


Pair = tuple[Hca, typing.Optional[Port]]
Pairs = tuple[Pair, ...]
Group = dict[str, Pairs]


def _make_groups(fabric: Fabric, nodes: Nodes, subnets: Subnets) -> dict[str, Group]:
    """Return the candidate HCAs of the fabric, each with its port, by the GUID of the subnet manager that they see, and
    then by node. An HCA with two ports on one fabric is listed once, with its first port.

    :param nodes: HCAs of each node that could be read
    :param subnets: subnets that the ports of each node see
    """
    groups: dict[str, dict[str, list[Pair]]] = {}
    for name, node in nodes.items():
        masters = find_masters(subnets.get(name, ()))
        for hca in find_candidates(fabric, node):
            counted = set()
            for port in hca.ports:
                guid = masters.get((hca.rdma_device or "", port.number))
                if guid is not None and guid not in counted:
                    counted.add(guid)
                    groups.setdefault(guid, {}).setdefault(name, []).append((hca, port))
    return {guid: {name: tuple(pairs) for name, pairs in groups[guid].items()} for guid in sorted(groups)}


def _select_clear_groups(
    groups: typing.Mapping[str, Group], partly: typing.Sequence[str], count: int, nodes: int
) -> typing.Sequence[str]:
    """Return the groups that may be the fabric. A node witnesses a group if it has the expected number of HCAs in it. A
    single node that reports a wrong subnet manager must not hide the fabric. A group is therefore the only candidate if
    more than half of all witnesses, and at least two, witness it, and if in addition each other group has a single
    witness, or all nodes but one witness this group. Otherwise all groups in ``partly`` are returned.

    :param groups: HCAs by the GUID of the subnet manager, and then by node
    :param partly: GUIDs of the groups with at least one witness
    :param count: number of HCAs of the fabric on a node
    :param nodes: number of nodes
    :returns: GUIDs of the candidates: one, if the fabric is clear
    """
    witnesses = {guid: {name for name, members in groups[guid].items() if len(members) == count} for guid in partly}
    several = [guid for guid in partly if len(witnesses[guid]) > 1]
    almost_all = [guid for guid in several if len(witnesses[guid]) >= nodes - 1]
    everyone = set().union(*witnesses.values())
    for clear in (several, almost_all):
        if len(clear) == 1 and 2 * len(witnesses[clear[0]]) > len(everyone):
            return clear
    return partly


def find_masters(subnets: typing.Iterable[SeenSubnet]) -> dict[tuple[str, int], str]:
    """Return the GUID of the master subnet manager that each port of a node sees, by RDMA device and port number.

    :param subnets: answers of the ports of one node about their subnet manager
    """
    return {(seen.rdma_device, seen.port): seen.master.guid for seen in subnets if seen.master}


def _merge_manager_pairs(of_managers: typing.Sequence[Pairs]) -> Pairs:
    """Return the HCAs of a node that see any of several subnet managers, each once.

    :param of_managers: HCAs with their ports, for each subnet manager
    """
    chosen: dict[str, Pair] = {}
    for pairs in of_managers:
        for hca, port in pairs:
            chosen.setdefault(hca.name, (hca, port))
    return tuple(chosen.values())


def _build_membership(fabric: Fabric, guids: tuple[str, ...], chosen: Group, possible: HcasByNode) -> Membership:
    """Return the physical functions that belong to a fabric, each with its rail.

    :param guids: GUIDs of the subnet managers; empty on Ethernet
    :param chosen: HCAs on the fabric, with their ports, by node
    :param possible: members and further HCAs that may be on the fabric, by node
    """
    rails = number_rails(
        {name: [hca for hca, _port in pairs] for name, pairs in chosen.items()}, possible, fabric.select.hcas_per_node
    )
    members = {
        node: tuple(
            sorted((Member(rails[node, hca.name], hca, port) for hca, port in pairs), key=lambda member: member.rail)
        )
        for node, pairs in chosen.items()
    }
    return Membership(fabric.name, guids, members)


def _find_possible(
    fabric: Fabric, nodes: Nodes, chosen: Group, groups: typing.Mapping[str, Group]
) -> dict[str, list[Hca]]:
    """Return the HCAs of each node that are or may be on the fabric: the members, and HCAs that see no subnet manager.

    A PCI address whose HCA is on another fabric is left out on all nodes, since the slot determines the fabric. If
    nodes differ, most nodes decide, because a single node may report anything.

    :param nodes: HCAs of each node that could be read
    :param chosen: HCAs on the fabric, by node
    :param groups: HCAs by subnet manager and node
    """
    mine = {name: {hca.name for hca, _port in pairs} for name, pairs in chosen.items()}
    others: dict[str, dict[str, Hca]] = {}
    for group in groups.values():
        for name, pairs in group.items():
            others.setdefault(name, {}).update({hca.name: hca for hca, _port in pairs if hca.name not in mine[name]})
    here = collections.Counter(address_of(hca) for pairs in chosen.values() for hca, _port in pairs)
    elsewhere = collections.Counter(address_of(hca) for hcas in others.values() for hca in hcas.values())
    return {
        name: [
            hca
            for hca in find_candidates(fabric, node)
            if hca.name in mine[name]
            or (
                hca.name not in others.get(name, ()) and not elsewhere[address_of(hca)] >= max(1, here[address_of(hca)])
            )
        ]
        for name, node in nodes.items()
    }


def _make_unresolved_membership(fabric: Fabric, why: str, remedy: str, contested: tuple[str, ...] = ()) -> Membership:
    return Membership(fabric.name, (), {}, why, remedy, contested)


def _describe_manager_groups(groups: typing.Mapping[str, Group], between: str = ", ") -> str:
    return join_first([_describe_manager_group(groups, guid) for guid in groups], _MOST, between)


def _describe_manager_group(groups: typing.Mapping[str, Group], guid: str) -> str:
    """Return a description of a subnet manager and of the HCAs that see it, such as ``0x... (seen by 2 HCAs on 3 nodes:
    a, b, c)``.

    :param groups: HCAs that see each manager, by its GUID
    :param guid: GUID of the port of the manager
    """
    counts = sorted({len(members) for members in groups[guid].values()})
    span = count_of(counts[0], "HCA") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} HCAs"
    names = sorted(groups[guid])
    named = f": {', '.join(names)}" if len(names) <= _NAMED else ""
    return f"{guid} (seen by {span} on {count_of(len(names), 'node')}{named})"


def _normalize_guid(guid: str) -> str:
    try:
        return f"0x{int(guid, 16):016x}"
    except ValueError:
        return guid
