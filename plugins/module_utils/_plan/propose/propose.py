# SPDX-License-Identifier: GPL-3.0-or-later

"""The intent that fits the observed facts. Each value carries the evidence for it. A value without evidence is a blank
for the user to fill in.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import INTENT_LABEL
from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.intent.proposal import Proposal, Sections
from ..._model.node.hca import ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours
from .cluster import propose_cluster_section
from .ethernet import group_ethernet
from .fabric import propose_fabric_section
from .groups import HcaGroup, Out, compute_rate, group_infiniband, leave_out_nodes, link_of, odd_nodes
from .image import propose_image
from .inputs import Nodes, ProposalInputs
from .networks import Networks

#: names of the policies that intents of this collection apply (_render/network/sriov.py)
_OWN_POLICIES = "linerate-"

#: fabrics that are proposed; a site has a few. One node whose ports each see a subnet manager of their own would make
#: thousands
MOST_FABRICS = 32
#: physical functions of the network that a node of a proposal has. Machines with sixteen GPUs have some twenty cards
#: with two ports each; of a node with thousands, the fabrics and the lines of a proposal would be made
MOST_HCAS = 128


def propose(seen: ProposalInputs) -> Proposal:
    """Return the intent that fits the facts. If no fabric can be proposed, the list of fabrics is empty, and
    ``left_out`` has the reasons.

    :param seen: facts of nodes and cluster
    """
    crowded = dict(_count_too_many(seen))
    no_hcas = {name: ObservedHcas(error=f"{number} physical functions") for name, number in crowded.items()}
    seen = dataclasses.replace(seen, hcas={**seen.hcas, **no_hcas})
    nodes = {name: item.value.hcas for name, item in seen.hcas.items() if item.value is not None and item.error is None}
    out = Out(nodes)
    absent = (
        *leave_out_nodes(
            (
                (name, f"{number} physical functions of network adapters, but a node has at most {MOST_HCAS}")
                for name, number in crowded.items()
            ),
            "Compare them with the output of 'lspci -d ::0200' and 'lspci -d ::0207' on {nodes}, or remove {nodes} from"
            " the group rdma_nodes.",
        ),
        *leave_out_nodes(
            (
                (name, f"no data could be read: {format_clause(item.error or 'no data')}")
                for name, item in seen.hcas.items()
                if name not in nodes and name not in crowded
            ),
            "Correct the cause, or remove {nodes} from the group rdma_nodes.",
        ),
    )
    with_infiniband, without = _by_infiniband(nodes)
    groups = group_infiniband(with_infiniband, seen, out)
    groups += group_ethernet(
        without, {name: item for name, item in seen.neighbours.items() if name not in with_infiniband}, out
    )
    why = (
        "its link is not InfiniBand, but the nodes also have InfiniBand HCAs: such a NIC usually serves storage or"
        " the node itself. If the NIC is for RDMA, add a fabric to the intent manually."
    )
    for name, hcas in with_infiniband.items():
        for hca in hcas:
            if not hca.is_virtual and link_of(hca) != "InfiniBand":
                out.add(name, hca, why)
    groups.sort(key=lambda group: (-group.per_node * max(compute_rate(hca) for hca in group.all), group.managers))
    groups = _limit_groups(groups, out)
    networks = Networks(seen.addresses, seen.platforms)
    items, odd = [], []
    for number, group in enumerate(groups, 1):
        alone = sum(other.infiniband == group.infiniband for other in groups) == 1
        items.append(propose_fabric_section(f"fabric-{number}", group, alone, seen, nodes, networks))
        odd += list(odd_nodes(f"fabric-{number}", group))
    fabrics = Sections(tuple(items), _fabrics_why(groups))
    names = {f"linerate-fabric-{number}" for number in range(1, len(groups) + 1)}
    unread = (f"{text}: enter the values that depend on this data." for text in seen.unread)
    image, about_image = propose_image(seen.image, seen.observers)
    notes = (
        *unread,
        *about_image,
        *_list_mixed_layer_notes(groups),
        *_list_partial_facts(seen),
        *_own_nics(groups, nodes, seen),
        *_list_resource_holders(nodes, seen, names),
    )
    section = propose_cluster_section(groups, items, seen, tuple(seen.hcas))
    return Proposal(fabrics, section, (*absent, *odd, *out.told()), notes, image)


def _count_too_many(seen: ProposalInputs) -> typing.Iterator[tuple[str, int]]:
    """Yield the nodes that report more physical functions than a machine can have, each with that number."""
    for name, item in seen.hcas.items():
        number = sum(not hca.is_virtual for hca in item.value.hcas) if item.value is not None else 0
        if number > MOST_HCAS:
            yield name, number


def _by_infiniband(nodes: Nodes) -> tuple[Nodes, Nodes]:
    """Divide the nodes into those with and those without InfiniBand HCAs.

    :param nodes: HCAs of each node, by node
    :returns: the nodes that have InfiniBand HCAs, and the nodes that have none
    """
    found = {
        name: hcas
        for name, hcas in nodes.items()
        if any(link_of(hca) == "InfiniBand" for hca in hcas if not hca.is_virtual)
    }
    return found, {name: hcas for name, hcas in nodes.items() if name not in found}


def _limit_groups(groups: list[HcaGroup], out: Out) -> list[HcaGroup]:
    """Return the ``MOST_FABRICS`` groups with the most nodes, in their original order. Add the HCAs of all other groups
    to ``out``.
    """
    places = sorted(range(len(groups)), key=lambda place: -len(groups[place].members))
    for place in places[MOST_FABRICS:]:
        for name, hcas in groups[place].members.items():
            for hca in hcas:
                out.add(
                    name,
                    hca,
                    f"it belongs to one of {len(groups)} fabrics, but at most {MOST_FABRICS} fabrics are proposed."
                    " Add a fabric to the intent manually.",
                )
    return [groups[place] for place in sorted(places[:MOST_FABRICS])]


def _fabrics_why(groups: typing.Sequence[HcaGroup]) -> str:
    count = sum(group.infiniband for group in groups)
    said = []
    if count:
        said.append(
            f"{count} InfiniBand {'fabric' if count == 1 else 'fabrics'}, distinguished by the subnet managers that"
            " the ports report"
        )
    if count < len(groups):
        whose = "on the nodes without InfiniBand, " if count else ""
        said.append(
            f"{whose}the fastest Ethernet NICs with RDMA, grouped by LLDP and neighbor tables if these show the"
            " networks"
        )
    return "; ".join(said) or "no HCA from which a fabric could be proposed"


def _list_mixed_layer_notes(groups: typing.Sequence[HcaGroup]) -> typing.Iterator[str]:
    """Yield a note if some nodes have InfiniBand and the remaining nodes Ethernet, since a fabric of an intent has to
    span all nodes.

    :param groups: proposed fabrics with their HCAs
    """
    one = [*dict.fromkeys(name for group in groups if group.infiniband for name in group.members)]
    other = [*dict.fromkeys(name for group in groups if not group.infiniband for name in group.members)]
    if one and other:
        of_both = (
            f"InfiniBand fabrics are proposed for {len(one)} nodes ({join_first(one)}), and Ethernet fabrics for"
            f" {len(other)} nodes without InfiniBand ({join_first(other)})"
        )
        yield (
            f"{of_both}. A fabric must include all nodes of the group rdma_nodes, so create a separate inventory for"
            " each kind of nodes, with the fabrics of that kind."
        )


def _list_partial_facts(seen: ProposalInputs) -> typing.Iterator[str]:
    """Yield a note for each fact that could be read only in part."""
    for name, item in seen.hcas.items():
        if item.value is not None and item.value.errors:
            yield f"parts of node {name} could not be read: {'; '.join(item.value.errors)}."
    if seen.operators is not None and seen.operators.errors:
        yield f"parts of the operators could not be read: {'; '.join(seen.operators.errors)}."


def _list_uplinks(seen: ProposalInputs, name: str) -> tuple[str, ...]:
    value = seen.neighbours.get(name, ObservedNeighbours()).value
    return value.uplinks if value else ()


def _own_nics(groups: typing.Sequence[HcaGroup], nodes: Nodes, seen: ProposalInputs) -> typing.Iterator[str]:
    """Yield a note that names the Ethernet nodes for which it is not known which NIC has the IP addresses of the node
    itself. That NIC must not be proposed, because it loses its link while virtual functions are created on it.

    :param groups: proposed fabrics
    :param seen: facts from which the intent is proposed
    """
    on_ethernet = {name for group in groups if not group.infiniband for name in group.members}
    unseen = [name for name in nodes if name in on_ethernet and not _list_uplinks(seen, name)]
    if unseen:
        which = "any node" if len(unseen) == len(nodes) else ", ".join(unseen)
        yield (
            f"it is unknown which NIC has the IP addresses of {which}: verify that none of the proposed NICs has"
            " them, because a NIC loses its link while VFs are created."
        )


def _list_resource_holders(nodes: Nodes, seen: ProposalInputs, ours: typing.Container[str]) -> typing.Iterator[str]:
    """Yield notes about existing SriovNetworkNodePolicies that may select the same HCAs as the proposal, and about pods
    that hold functions of these HCAs.

    :param nodes: HCAs of each node
    :param seen: facts from which the intent is proposed
    :param ours: names of policies that the proposal itself would create
    """
    for policy in seen.operators.policies if seen.operators else ():
        functions = ", ".join(policy.root_devices or policy.pf_names) or policy.vendor or "any NIC"
        what = f"{policy.vfs_count} VFs of {functions} as {policy.resource_name}"
        if policy.name in ours or policy.name.startswith(_OWN_POLICIES):
            yield (
                f"SriovNetworkNodePolicy {policy.name} creates {what}, and an intent of this collection applied it. If"
                " that intent exists, use it instead of this proposal. kubectl get sriovnetworknodepolicies -A -L"
                f" {INTENT_LABEL} shows its intent_name: a run with the same intent_name changes the objects of that"
                " intent, so ask its owner first."
            )
        else:
            yield (
                f"SriovNetworkNodePolicy {policy.name} creates {what}. If this policy selects the same HCAs, ask its"
                " owner to remove it, because the two policies would overwrite each other."
            )
    held = {name: sum(hca.held is not None for hca in hcas) for name, hcas in nodes.items()}
    busy = {name: count for name, count in held.items() if count}
    if busy:
        said = ", ".join(f"{name} {count}" for name, count in busy.items())
        yield f"Pods use virtual functions now ({said}); a drain evicts these pods."
