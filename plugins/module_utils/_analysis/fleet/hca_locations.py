# SPDX-License-Identifier: GPL-3.0-or-later

"""Locate each HCA of a fabric: its node, its rail, and the leaf to which the topology shows it cabled. All stages that
name a suspect use these locations.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import format_clause
from ..._model.infiniband.cables import take_cables
from ..._model.infiniband.fabric import (
    Link,
    LinkEnd,
    ObservedTopologies,
    Place,
    SeenCapabilities,
    SeenTopology,
    Topology,
)
from .hcas_of_fabric import Member, Membership
from .layouts import group_families
from .unreachable_nodes import NOT_QUERIED

__all__ = (
    "End",
    "Place",
    "collect_far_ends",
    "collect_places",
    "collect_possible_rates",
    "end_of",
    "find_topology",
    "find_topology_or_first_view",
    "find_topology_with_source",
    "group_nodes_by_layout",
    "number_by_leaf",
)

Topologies = typing.Mapping[str, ObservedTopologies]
#: GUID of the switch, or of the port of a CA, and number of the port
End = tuple[str, int]


def end_of(end: LinkEnd) -> End:
    """Return the GUID and the port number of an end of a link, as ibqueryerrors and iblinkinfo print them."""
    return end.place


def collect_possible_rates(capabilities: typing.Optional[SeenCapabilities]) -> dict[End, str]:
    """Return the possible rate of each link that runs below its capability, as iblinkinfo prints it, by GUID and port
    number. The result is empty if iblinkinfo gave no answer.

    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    """
    slow = capabilities.slow if capabilities is not None and capabilities.error is None else ()
    return {(port.guid, port.port): port.could_be for port in slow}


def collect_places(membership: Membership, topologies: Topologies) -> dict[tuple[str, str], Place]:
    """Return the location of each HCA of a fabric, by node and name of the HCA (its RDMA device if it has one).

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: answer of fabric_info of each node; empty if it was not requested, as on Ethernet. The leaves are
        then unknown
    """
    topology = find_topology(membership, topologies)[0]
    if topology is None:
        return {
            (name, member.hca.name): Place(name, member.hca.name, member.rail)
            for name, members in membership.members.items()
            for member in members
        }
    ends = collect_far_ends(topology)
    names = {node.guid: node.called for node in topology.nodes}
    return {
        (name, member.hca.name): _locate_hca(name, member, ends, names)
        for name, members in membership.members.items()
        for member in members
    }


def _locate_hca(
    node: str, member: Member, ends: typing.Mapping[str, tuple[LinkEnd, Link]], names: typing.Mapping[str, str]
) -> Place:
    """Return the position of an HCA's port. Its leaf is None if the topology does not show the port, or shows no switch
    at the other end of its cable.

    :param ends: far end and link of each port, by port GUID
    :param names: names of switches, by GUID
    """
    far = ends.get(member.port.guid or "") if member.port else None
    # a CA may be cabled to another CA, or to a router: neither is a leaf
    if far is None or far[0].kind != "Switch":
        return Place(node, member.hca.name, member.rail)
    return Place(node, member.hca.name, member.rail, names.get(far[0].guid, far[0].guid), far[0].port)


#: by GUID of a port: the other end of its link, and the link
Ends = typing.Mapping[str, tuple[LinkEnd, Link]]


def collect_far_ends(topology: Topology) -> dict[str, tuple[LinkEnd, Link]]:
    """Return the link of each port of an HCA, by the GUID of the port: the far end of the link, and the link itself."""
    result = {}
    for link in take_cables(topology).links:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.port_guid:
                result[near.port_guid] = (far, link)
    return result


def find_topology(membership: Membership, topologies: Topologies) -> tuple[typing.Optional[Topology], str]:
    """Return the topology as read through a port of the fabric, and an empty text. If no port read it, return None and
    the reason.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    seen, why = find_topology_or_first_view(membership, topologies)
    return (seen.topology, why) if seen else (None, why)


def find_topology_or_first_view(
    membership: Membership, topologies: Topologies
) -> tuple[typing.Optional[SeenTopology], str]:
    """Return a view of the fabric from one of its members, and an empty text. The view is the first one with a
    topology. If no view has a topology, return the first view (or None) and the reason.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    _node, seen, why = find_topology_with_source(membership, topologies)
    return seen, why


def find_topology_with_source(
    membership: Membership, topologies: Topologies
) -> tuple[str, typing.Optional[SeenTopology], str]:
    """Return a view of the fabric from one of its members: the name of the node, the view, and an empty text. The view
    is the first one with a topology. If no view has a topology, return the first node with a view (or an empty name and
    None) and the reason.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    words = []
    without: tuple[str, typing.Optional[SeenTopology]] = ("", None)
    for name, members in membership.members.items():
        ports = {(member.hca.rdma_device, member.port.number) for member in members if member.port}
        observed = topologies.get(name)
        if observed is None or observed.value is None:
            words.append(f"{name}: {format_clause(observed.error if observed else None, NOT_QUERIED)}")
            continue
        for seen in observed.value:
            if (seen.rdma_device, seen.port) in ports:
                if seen.topology is not None:
                    return name, seen, ""
                without = without if without[1] is not None else (name, seen)
                words.append(f"{name} {seen.rdma_device}: {format_clause(seen.error)}")
    if not words:
        return (*without, "No topology was read, because stage fabric queried no port of this fabric.")
    return (*without, f"No topology was read from a port of this fabric: {'; '.join(words[:6])}.")


def group_nodes_by_layout(membership: Membership) -> tuple[tuple[str, ...], ...]:
    """Return groups of nodes whose HCAs on the fabric are in the same slots, with the largest group first.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    seats = {
        name: {member.hca.pci.address for member in members if member.hca.pci}
        for name, members in membership.members.items()
    }
    return tuple(sorted(group_families(seats).values(), key=lambda nodes: (-len(nodes), nodes)))


def number_by_leaf(membership: Membership, topologies: Topologies) -> Membership:
    """Return the members with rails numbered by their cabling. Servers of another model have their HCAs in another
    order, and the leaf then identifies the rail of each.

    The most frequent model keeps its rails. The rails of another model get the numbers of the leaves that most of its
    nodes share with it. A leaf identifies a rail only if more than half of its HCAs belong to this rail. Without a
    topology the rails remain unchanged. Nodes of one model are renumbered together, so that a swapped cable on one of
    them remains visible.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    groups = group_nodes_by_layout(membership)
    topology = find_topology(membership, topologies)[0] if len(groups) > 1 else None
    if topology is None:
        return membership
    ends = collect_far_ends(topology)
    known = _find_rails_of_leaves([membership.members[name] for name in groups[0]], ends)
    members = dict(membership.members)
    for group in groups[1:]:
        rails = _renumber_rails([members[name] for name in group], ends, known)
        for name in group:
            renamed = (
                dataclasses.replace(member, rail=rails.get(member.rail, member.rail)) for member in members[name]
            )
            members[name] = tuple(sorted(renamed, key=lambda member: member.rail))
        for leaf, rail in _find_rails_of_leaves([members[name] for name in group], ends).items():
            known.setdefault(leaf, rail)
    return dataclasses.replace(membership, members=members)


_Ends = typing.Mapping[str, tuple[LinkEnd, Link]]


def _find_rails_of_leaves(nodes: typing.Iterable[typing.Sequence[Member]], ends: _Ends) -> dict[str, int]:
    """Return the rail to which more than half of the HCAs on each leaf belong, by the GUID of the leaf. A leaf without
    such a majority is left out.

    :param nodes: members of each node
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    count: dict[str, typing.Counter[int]] = {}
    for rail, leaf in _group_by_leaf(nodes, ends):
        count.setdefault(leaf, collections.Counter())[rail] += 1
    return {
        leaf: rail
        for leaf, rails in count.items()
        for rail, most in rails.most_common(1)
        if 2 * most > sum(rails.values())
    }


def _renumber_rails(
    nodes: typing.Sequence[typing.Sequence[Member]], ends: _Ends, known: typing.Mapping[str, int]
) -> dict[int, int]:
    """Return the number that each rail of a server model gets, by its old number, so that equal rails of different
    models are on the same leaf. The result is empty if the leaves do not distinguish the rails.

    :param nodes: members of each node of this model
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param known: rail that each leaf serves, by the GUID of the leaf, as far as other models have determined it
    """
    votes: dict[int, typing.Counter[int]] = {}
    for rail, leaf in _group_by_leaf(nodes, ends):
        if leaf in known:
            votes.setdefault(rail, collections.Counter())[known[leaf]] += 1
    new = {rail: count.most_common(1)[0][0] for rail, count in votes.items()}
    if len(set(new.values())) < len(new):
        return {}
    rails = sorted({member.rail for members in nodes for member in members})
    free = [rail for rail in rails if rail not in new.values()]
    return {**new, **dict(zip((rail for rail in rails if rail not in new), free))}


def _group_by_leaf(nodes: typing.Iterable[typing.Sequence[Member]], ends: _Ends) -> typing.Iterator[tuple[int, str]]:
    """Yield a pair for each HCA whose leaf is known: the rail of the HCA, and the GUID of the leaf.

    :param nodes: HCAs of a fabric with their rails, one sequence for each node
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    for members in nodes:
        for member in members:
            far = ends.get(member.port.guid or "") if member.port else None
            if far is not None and far[0].kind == "Switch":
                yield member.rail, far[0].guid
