# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage fabric: which subnet manager manages each fabric, which HCA is on which fabric, and whether the
topology of the fabric shows the HCAs of the nodes. Check ids: ``fabric.*``.

The checks of subnet managers, topology and error counters are in separate modules.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._analysis.fleet.claims import why_apart
from ..._analysis.fleet.hca_locations import find_topology_or_first_view, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import Member, Membership, find_candidates, hca_matches, resolve_members
from ..._analysis.fleet.unreachable_nodes import NOT_QUERIED
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, SeenSubnet
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import Hca, ObservedHcas
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .completeness import check_whole
from .error_counters import check_errors
from .lids import check_lids
from .names import MOST, TOOLS, FabricFacts, words_of_ports
from .partitions import check_partitions
from .subnet_managers import check_managers
from .topology import check_topology
from .unmanaged import check_islands, check_no_manager
from .unqueryable_ports import explain_cause, find_unasked

#: of the HCAs that a node has on a fabric, in the words of a finding
_MOST_HCAS = 16


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
    world = FabricFacts(
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
        fabric.name: number_by_leaf(resolve_members(fabric, world.nodes, world.subnets), facts.topologies)
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
        findings += _check_membership(fabric, membership, world, memberships)
        for other, its in known:
            findings += _check_claims(other, its, fabric, membership)
        known.append((fabric, membership))
        if is_infiniband(fabric):
            findings += _check_infiniband(fabric, membership, facts, world)
    return tuple(findings)


def _check_nodes(facts: Facts, infiniband: bool) -> list[Finding]:
    if not facts.nodes:
        why = "No node was queried, so the state of the fabrics is unknown."
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
    """Compare the HCAs of two fabrics whose profiles cannot share an HCA. Return a failed finding for each node on
    which both fabrics select the same HCA or port; empty if the profiles can share one.

    :param its: HCAs of the first fabric
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
            why = f"Both fabrics select {join_first(both, _MOST_HCAS)}. {apart}"
            remedy = (
                f"Change select of '{one.name}' or of '{other.name}' in the intent so that each HCA belongs to one"
                " fabric, then run stage fabric again."
            )
            subject = f"{one.name} and {other.name} {node}"
            measured = f"{count_of(len(both), 'HCA')} on both fabrics"
            findings.append(Finding("fabric.hcas", subject, FAIL, measured, "each HCA on one fabric", why, remedy))
    return findings


def _key_of(member: Member) -> tuple[str, typing.Optional[int]]:
    """Return a key that identifies a port on its node: the PCI address of the HCA (or its name without one) and the
    port number. An HCA may have two ports on different fabrics.

    :param member: HCA of the fabric
    """
    name = member.hca.pci.address if member.hca.pci else member.hca.name
    return name, member.port.number if member.port else None


def _check_membership(
    fabric: Fabric, membership: Membership, world: FabricFacts, memberships: typing.Mapping[str, Membership]
) -> list[Finding]:
    """Check that the HCAs of the fabric could be identified, and that each node has the expected number of them.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param memberships: HCAs that belong to each fabric of the intent, by the name of the fabric
    """
    wanted = fabric.select.hcas_per_node
    expected = f"{count_of(wanted, 'HCA')} on each node" + (
        ", all with the same subnet manager" if is_infiniband(fabric) else ""
    )
    if not membership.resolved:
        unasked = [name for name in world.nodes if is_infiniband(fabric) and find_unasked(fabric, name, world)]
        if unasked and not any(seen.master or seen.silent for subnets in world.subnets.values() for seen in subnets):
            why, remedy = explain_cause(unasked, world)
            return [
                Finding("fabric.membership", fabric.name, UNKNOWN, "no port could be queried", expected, why, remedy)
            ]
        reason = format_clause(membership.why)
        why = f"{reason[0].upper()}{reason[1:]}." + (words_of_ports(world) if is_infiniband(fabric) else "")
        return [
            Finding(
                "fabric.membership",
                fabric.name,
                FAIL,
                "HCAs not identified",
                expected,
                why,
                f"{membership.remedy}. Then run stage fabric again.",
            )
        ]
    by = (
        f"identified by subnet manager {' and '.join(membership.subnet_managers)}"
        if membership.subnet_managers
        else "identified by the selectors of the intent"
    )
    count = sum(len(members) for members in membership.members.values())
    findings = [
        build_pass(
            "fabric.membership",
            fabric.name,
            f"{count_of(count, 'HCA')} on {count_of(len(membership.members), 'node')}, {by}",
            expected,
        )
    ]
    for name, members in membership.members.items():
        subject = f"{name} {fabric.name}"
        measured = count_of(len(members), "HCA") + (
            f": {join_first([member.hca.name for member in members], _MOST_HCAS)}" if members else ""
        )
        if len(members) == wanted:
            findings.append(build_pass("fabric.hcas", subject, measured, count_of(wanted, "HCA")))
            continue
        mute = find_unasked(fabric, name, world) if is_infiniband(fabric) else ()
        if len(members) < wanted <= len(members) + len(mute):
            why, remedy = explain_cause([name], world, mute)
            findings.append(
                Finding(
                    "fabric.hcas",
                    subject,
                    UNKNOWN,
                    f"{measured}; {count_of(len(mute), 'HCA')} not queried",
                    count_of(wanted, "HCA"),
                    why,
                    remedy,
                )
            )
            continue
        why, step = _explain_count(fabric, membership, name, world, memberships)
        remedy = (
            f"{f'{step} Or correct' if step else 'Correct'} select or hcas_per_node of the fabric '{fabric.name}' in"
            " the intent. Then run stage fabric again."
        )
        findings.append(Finding("fabric.hcas", subject, FAIL, measured, count_of(wanted, "HCA"), why, remedy))
    return findings


def _explain_count(
    fabric: Fabric,
    membership: Membership,
    name: str,
    world: FabricFacts,
    memberships: typing.Mapping[str, Membership],
) -> tuple[str, str]:
    """Return why a node has a different number of HCAs on the fabric than the intent requires, and the instruction
    for its ports and cables. The instruction is empty if only the intent can be wrong.

    :param name: name of the node
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param memberships: HCAs that belong to each fabric of the intent, by the name of the fabric
    """
    members = {member.hca.name for member in membership.members[name]}
    elsewhere = {
        member.hca.name: other
        for other, its in memberships.items()
        for member in its.members.get(name, ())
        if member.hca.name not in members
    }
    more = len(membership.members[name]) > fabric.select.hcas_per_node
    others = [hca for hca in find_candidates(fabric, world.nodes[name]) if hca.name not in members]
    if not is_infiniband(fabric):
        why = f"The selectors of the fabric match {'all' if more else 'only'} these physical functions of the node."
        return why, ""
    if more:
        why = "The ports of all these HCAs see the subnet manager of this fabric."
        return why, "Move the cables that belong to a different fabric."
    free = [hca for hca in others if hca.name not in elsewhere]
    if not free:
        why = "The node has no further InfiniBand HCA that matches the selectors of the intent." + "".join(
            f" {join_first([hca.name for hca in others if elsewhere[hca.name] == other], MOST)} belong"
            f"{'s' if sum(elsewhere[hca.name] == other for hca in others) == 1 else ''} to the fabric {other}."
            for other in dict.fromkeys(elsewhere[hca.name] for hca in others)
        )
        return why, (
            f"If {name} has a finding discover.hcas, discover.driver or discover.fleet, follow its remedy: it names an"
            " HCA that is missing or not usable. Otherwise look for the missing HCA with lspci and dmesg on the node."
        )
    words, steps = _explain_ports(free, {(item.rdma_device, item.port): item for item in world.subnets.get(name, ())})
    which = "This port was" if len(words) == 1 else "These ports were"
    return f"{which} not assigned to a fabric of the intent: {join_first(words, MOST, '; ')}.", " ".join(steps)


def _explain_ports(
    hcas: typing.Sequence[Hca], seen: typing.Mapping[tuple[str, int], SeenSubnet]
) -> tuple[list[str], list[str]]:
    """Return the subnet manager or the error that each port reports, and the instructions for these ports.

    :param hcas: HCAs that are not on the fabric
    :param seen: answer of each port, by RDMA device and number
    """
    words = []
    steps: dict[str, None] = {}
    for hca in hcas:
        for port in hca.ports:
            answer = seen.get((hca.rdma_device or "", port.number))
            if answer is None:
                words.append(f"{hca.name} port {port.number} was not queried")
                steps["Check with rdma link and lspci whether the ports that were not queried exist."] = None
            elif answer.master is not None:
                manager = (
                    f"the subnet manager {answer.master.guid}"
                    if answer.master.guid
                    else "a subnet manager whose GUID is unknown"
                )
                words.append(f"{hca.name} port {port.number} sees {manager}")
                if not answer.master.guid:
                    steps[
                        "For each port with an unknown GUID, run sminfo -C DEVICE -P PORT as root on the node: it shows"
                        " the GUID of the subnet manager. If it fails, correct the error that it prints."
                    ] = None
                steps["If a port that sees a different subnet manager belongs to this fabric, move its cable."] = None
            else:
                words.append(f"{hca.name} port {port.number}: {format_clause(answer.error)}")
                steps[
                    "Bring up the missing ports: check the cable of each port that ibstat on the node does not show as"
                    " Active."
                ] = None
    return words, list(steps)


def _check_infiniband(fabric: Fabric, membership: Membership, facts: Facts, world: FabricFacts) -> list[Finding]:
    findings = [*_check_select(fabric, membership, world), *check_islands(fabric, world)]
    if not membership.resolved:
        return findings + check_no_manager(fabric, membership, world)
    seen, why_none = find_topology_or_first_view(membership, facts.topologies)
    findings += check_managers(fabric, membership, seen, world)
    findings += check_partitions(fabric, membership)
    findings += check_lids(fabric, membership, facts.topologies, world)
    if seen is None or seen.topology is None:
        remedy = (
            "Follow the remedy of the finding fabric.node of these nodes if it is not a pass. Otherwise run"
            " ibnetdiscover -C DEVICE as root on one of them: if it cannot open the port, run modprobe ib_umad there;"
            " if it takes longer than fabric_discovery_seconds, raise this setting. Then run stage fabric again."
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
    findings += check_topology(fabric, membership, seen.topology, seen.capabilities, world)
    return findings + check_errors(fabric, membership, seen.topology, seen.errors)


def _check_select(fabric: Fabric, membership: Membership, world: FabricFacts) -> list[Finding]:
    """Return findings on the HCAs that the intent lists by PCI address: their ports must see the subnet manager of the
    fabric. The list is empty if the intent lists none.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    if not fabric.select.pci:
        return []
    seen: dict[str, str] = {}
    for name, node in world.nodes.items():
        managers = {
            (item.rdma_device, item.port): item.master.guid for item in world.subnets.get(name, ()) if item.master
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
                "all listed HCAs with the same subnet manager",
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
            "fabric.select", fabric.name, FAIL, measured, "all listed HCAs with the same subnet manager", why, remedy
        )
    ]
