# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage fabric: which subnet manager manages each fabric, which HCA is on which fabric, and whether the
topology of the fabric shows the HCAs of the nodes. Check ids: ``fabric.*``.

The checks of membership, subnet managers, topology and error counters are in separate modules.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._analysis.fleet.claims import why_apart
from ..._analysis.fleet.hca_locations import find_topology_or_first_view, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import Member, Membership, hca_matches, resolve_members
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import ObservedHcas
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .completeness import check_whole
from .crossed_cables import check_crossed_cables
from .error_counters import check_errors
from .lids import check_lids
from .membership import MOST_HCAS, check_membership
from .names import TOOLS, FabricFacts
from .partitions import check_partitions
from .routes import check_routes
from .subnet_managers import check_managers
from .topology import check_topology
from .unmanaged import check_islands, check_no_manager


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: answer of node_info of each node
    :ivar subnets: subnet managers that the ports of a node see, or the error, by node
    :ivar topologies: answer of fabric_info of each node; empty for most nodes, since only a few read the topology
    :ivar by_pods: names of the nodes that are reached by observers
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Check the network of each fabric: subnet managers, topology, link rates, LIDs, partitions and error counters.
    Return at least one finding for each node, each fabric, each fabric on each node, and each HCA of an InfiniBand
    fabric.
    """
    fabric_facts = FabricFacts(
        {
            name: observed.value
            for name, observed in facts.nodes.items()
            if observed.value is not None and observed.error is None
        },
        {
            name: observed.value
            for name, observed in facts.subnets.items()
            if observed.value is not None and observed.error is None
        },
        {
            name: observed.value
            for name, observed in facts.topologies.items()
            if observed.value is not None and observed.error is None
        },
    )
    infiniband = any(is_infiniband(fabric) for fabric in intent.fabrics)
    findings = _check_nodes(facts, infiniband)
    known: list[tuple[Fabric, Membership]] = []
    memberships = {
        fabric.name: number_by_leaf(resolve_members(fabric, fabric_facts.nodes, fabric_facts.subnets), facts.topologies)
        for fabric in intent.fabrics
        if find_traits(fabric).members
    }
    for fabric in intent.fabrics:
        if not find_traits(fabric).members:
            # says what this stage does not cover, and claims nothing else
            findings.append(
                build_pass(
                    "fabric.membership",
                    fabric.name,
                    f"profile {fabric.profile}: the fabric has no HCAs of its own",
                    "a check only for profiles with HCAs",
                )
            )
            continue
        membership = memberships[fabric.name]
        findings += check_membership(fabric, membership, fabric_facts, memberships)
        for other, its in known:
            findings += _check_claims(other, its, fabric, membership)
        known.append((fabric, membership))
        if is_infiniband(fabric):
            findings += _check_infiniband(fabric, membership, facts, fabric_facts)
    return (*findings, *check_crossed_cables(intent.fabrics, memberships))


def _check_nodes(facts: Facts, infiniband: bool) -> list[Finding]:
    if not facts.nodes:
        why = (
            "The group rdma_nodes of the inventory is empty, so no node was queried, and the state of the"
            " fabrics is unknown."
        )
        return [
            Finding(
                "fabric.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 1 node",
                why,
                "Add the nodes to the group rdma_nodes of the inventory, then run stage fabric again.",
            )
        ]
    findings = []
    for name, hcas in facts.nodes.items():
        expected = "HCAs and the subnet managers of their ports" if infiniband else "HCAs"
        seen = facts.subnets.get(name, ObservedSubnets(error=NOT_QUERIED))
        unread = []
        errors = []
        if hcas.value is None or hcas.error is not None:
            unread.append("HCAs")
            errors.append(
                f"The module node_info gave no result on {name}: {format_clause(hcas.error, 'it returned no data')}."
            )
        if infiniband and (seen.value is None or seen.error is not None):
            unread.append("subnet managers of the ports")
            errors.append(
                f"The module subnet_manager_info gave no result on {name}:"
                f" {format_clause(seen.error, 'it returned no data')}."
            )
        if errors:
            remedy = (
                unreachable_nodes.get_remedy(name, facts.by_pods, "Python 3.9 or later", "node_info")
                if "HCAs" in unread
                else unreachable_nodes.get_remedy(name, facts.by_pods, TOOLS, "subnet_manager_info")
            )
            findings.append(
                Finding(
                    "fabric.node",
                    name,
                    UNKNOWN,
                    f"not read: {' and '.join(unread)}",
                    expected,
                    " ".join(errors),
                    remedy,
                )
            )
        else:
            findings.append(
                build_pass("fabric.node", name, count_of(len(seen.value or ()), "InfiniBand port"), expected)
            )
    return findings


def _check_claims(one: Fabric, its: Membership, other: Fabric, others: Membership) -> list[Finding]:
    """Compare the HCAs of two fabrics whose profiles cannot share an HCA.

    Return a failed finding for each node on which both fabrics select the same HCA or port. The list is empty if the
    profiles can share an HCA.

    :param one: first fabric
    :param its: HCAs of the first fabric
    :param other: second fabric
    :param others: HCAs of the second fabric
    """
    apart = why_apart(one, other)
    if not apart:
        return []
    findings = []
    for node, members in its.members.items():
        theirs = {_key_of(member) for member in others.members.get(node, ())}
        both = [member.hca.name for member in members if _key_of(member) in theirs]
        if both:
            why = f"Both fabrics select {join_first(both, MOST_HCAS)}. {apart}"
            remedy = (
                f"Change select of '{one.name}' or of '{other.name}' in the intent so that each HCA belongs to one"
                " fabric, then run stage fabric again."
            )
            subject = f"{one.name} and {other.name} {node}"
            measured = f"{count_of(len(both), 'HCA')} on both fabrics"
            findings.append(Finding("fabric.hcas", subject, FAIL, measured, "each HCA on one fabric", why, remedy))
    return findings


def _key_of(member: Member) -> tuple[str, typing.Optional[int]]:
    """Return a key that identifies a port on its node, since an HCA may have two ports on different fabrics.

    The key is the PCI address of the HCA (its name if it has no address) and the port number, or None if no port is
    known.

    :param member: HCA of the fabric
    """
    name = member.hca.pci.address if member.hca.pci else member.hca.name
    return name, member.port.number if member.port else None


def _check_infiniband(fabric: Fabric, membership: Membership, facts: Facts, fabric_facts: FabricFacts) -> list[Finding]:
    findings = [*_check_select(fabric, membership, fabric_facts), *check_islands(fabric, fabric_facts)]
    if not membership.resolved:
        return findings + check_no_manager(fabric, membership, fabric_facts)
    seen, why_none = find_topology_or_first_view(membership, facts.topologies)
    findings += check_managers(fabric, membership, seen, fabric_facts)
    findings += check_partitions(fabric, membership)
    findings += check_lids(fabric, membership, facts.topologies, fabric_facts)
    if seen is None or seen.topology is None:
        remedy = (
            "If one of these nodes has a finding fabric.node, follow its remedy. Otherwise run time ibnetdiscover"
            " -C DEVICE as root on one of them. If it cannot open the port, run modprobe ib_umad there. If it takes"
            " longer than fabric_discovery_seconds, raise this setting. Then run stage fabric again."
        )
        return [
            *findings,
            Finding(
                "fabric.topology",
                fabric.name,
                UNKNOWN,
                "topology not read",
                "the topology, read from one port",
                why_none,
                remedy,
            ),
        ]
    findings += check_whole(fabric, seen.topology)
    findings += check_topology(fabric, membership, seen.topology, seen.capabilities, fabric_facts)
    findings += check_routes(fabric, membership, seen.topology, seen.forwarding)
    return findings + check_errors(fabric, membership, seen.topology, seen.errors)


def _check_select(fabric: Fabric, membership: Membership, fabric_facts: FabricFacts) -> list[Finding]:
    """Return findings on the HCAs that the intent lists by PCI address: their ports must see the subnet manager of the
    fabric. If that subnet manager is unknown, return a failed finding if the listed HCAs see different subnet managers.
    The list is empty if the intent lists no PCI address.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    if not fabric.select.pci:
        return []
    seen: dict[str, str] = {}
    for name, node in fabric_facts.nodes.items():
        managers = {
            (item.rdma_device, item.port): item.master.guid
            for item in fabric_facts.subnets.get(name, ())
            if item.master
        }
        for hca in (hca for hca in node.hcas if hca_matches(fabric.select, hca)):
            guids = [
                managers[key] for key in ((hca.rdma_device or "", port.number) for port in hca.ports) if key in managers
            ]
            # one port of two may be on another fabric
            if guids and not set(guids) & set(membership.subnet_managers):
                seen[f"{name} {hca.name}"] = guids[0]
    remedy = (
        f"Correct select.pci of the fabric '{fabric.name}' in the intent, or move the cable of the HCA to this fabric."
        " Then run stage fabric again."
    )
    if membership.resolved:
        expected = f"subnet manager {' and '.join(membership.subnet_managers)}"
        why = (
            "The intent lists the PCI address of this HCA for the fabric, but the port of the HCA sees a different"
            " subnet manager."
        )
        wrong = [
            Finding("fabric.select", subject, FAIL, f"subnet manager {guid}", expected, why, remedy)
            for subject, guid in seen.items()
        ]
        return wrong or [
            build_pass(
                "fabric.select",
                fabric.name,
                count_of(len(fabric.select.pci), "address", "addresses"),
                "1 subnet manager for all HCAs in select.pci",
            )
        ]
    if len(set(seen.values())) < 2:
        # the finding fabric.membership says what is missing; the list contradicts nothing
        return []
    why = (
        "The HCAs at the PCI addresses in select.pci are on several fabrics: "
        + "; ".join(f"{subject} sees the subnet manager {guid}" for subject, guid in list(seen.items())[:8])
        + "."
    )
    measured = count_of(len(set(seen.values())), "subnet manager")
    return [
        Finding(
            "fabric.select", fabric.name, FAIL, measured, "1 subnet manager for all HCAs in select.pci", why, remedy
        )
    ]
