# SPDX-License-Identifier: GPL-3.0-or-later

"""Where each HCA of a fabric is: node, rail, and the leaf that the topology shows at the other end of its cable. For every stage that names a suspect."""

from __future__ import annotations

import typing

from ..._model.fabric import Link, LinkEnd, ObservedTopologies, Place, SeenTopology, Topology
from .hcas_of_fabric import Member, Membership

__all__ = ("Place", "far_ends", "places", "seen_from", "topology_of")

Topologies = typing.Mapping[str, ObservedTopologies]


def places(membership: Membership, topologies: Topologies) -> typing.Dict[typing.Tuple[str, str], Place]:
    """The place of each member of a fabric, by node and name of the HCA (its RDMA device where there is one).

    :param topologies: answer of fabric_info of each node; empty where none was asked for, as on Ethernet: then no leaf is known
    """
    topology = topology_of(membership, topologies)[0]
    if topology is None:
        return {(name, member.hca.name): Place(name, member.hca.name, member.rail) for name, members in membership.members.items() for member in members}
    ends = far_ends(topology)
    names = {node.guid: node.description.strip() or node.guid for node in topology.nodes}
    return {(name, member.hca.name): _place(name, member, ends, names) for name, members in membership.members.items() for member in members}


def _place(node: str, member: Member, ends: typing.Mapping[str, typing.Tuple[LinkEnd, Link]], names: typing.Mapping[str, str]) -> Place:
    far = ends.get(member.port.guid or "") if member.port else None
    # a CA may be cabled to another CA, or to a router: neither is a leaf
    if far is None or far[0].kind != "Switch":
        return Place(node, member.hca.name, member.rail)
    return Place(node, member.hca.name, member.rail, names[far[0].guid], far[0].port)


def far_ends(topology: Topology) -> typing.Dict[str, typing.Tuple[LinkEnd, Link]]:
    """For each port with a GUID, which those of CAs have, the other end of its link and the link."""
    result = {}
    for link in topology.links:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.port_guid:
                result[near.port_guid] = (far, link)
    return result


def topology_of(membership: Membership, topologies: Topologies) -> typing.Tuple[typing.Optional[Topology], str]:
    """The topology that was seen from a member of the fabric, or None and why there is none."""
    seen, why = seen_from(membership, topologies)
    return (seen.topology, why) if seen else (None, why)


def seen_from(membership: Membership, topologies: Topologies) -> typing.Tuple[typing.Optional[SeenTopology], str]:
    """What a member of the fabric shows of it: the first with a topology, else the first at all; and why there is no topology."""
    words = []
    without: typing.Optional[SeenTopology] = None
    for name, members in membership.members.items():
        ports = {(member.hca.rdma_device, member.port.number) for member in members if member.port}
        observed = topologies.get(name)
        if observed is None or observed.value is None:
            words.append(f"{name}: {observed.error if observed and observed.error else 'was not asked'}")
            continue
        for seen in observed.value:
            if (seen.rdma_device, seen.port) in ports:
                if seen.topology is not None:
                    return seen, ""
                without = without or seen
                words.append(f"{name} {seen.rdma_device}: {seen.error}")
    return without, f"No topology was read from a port of this fabric{': ' if words else ''}{'; '.join(words[:6])}."
