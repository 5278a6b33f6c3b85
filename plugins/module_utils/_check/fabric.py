# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stage fabric: who manages each fabric, which HCA is on which, and does the fabric show what the nodes have. Check ids: ``fabric.*``."""

from __future__ import annotations

import dataclasses
import typing

from .._model.facts import FabricNode, Link, LinkEnd, NodeHcas, ObservedHcas, ObservedSubnets, ObservedTopologies, SeenSubnet, SubnetManager, Topology
from .._model.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .._model.intent import Fabric, Intent
from .membership import Member, Membership, candidates, is_infiniband, resolve
from .places import far_ends, topology_of

_TOOLS = "sminfo, saquery and ibnetdiscover of the package infiniband-diags"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: answer of hca_info of each node
    :ivar subnets: answer of subnet_manager_info of each node
    :ivar topologies: answer of fabric_info of each node; most nodes were asked for nothing
    """

    nodes: typing.Dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: typing.Dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: typing.Dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _World:
    """The facts of the nodes that answered."""

    nodes: typing.Dict[str, NodeHcas]
    subnets: typing.Dict[str, typing.Tuple[SeenSubnet, ...]]


def check(intent: Intent, facts: Facts) -> typing.Tuple[Finding, ...]:
    """One finding at least for each node, each fabric, each fabric on each node, and each HCA of an InfiniBand fabric."""
    world = _World(
        {name: observed.value for name, observed in facts.nodes.items() if observed.value is not None and observed.error is None},
        {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None and observed.error is None},
    )
    infiniband = any(is_infiniband(fabric) for fabric in intent.fabrics)
    findings = _check_nodes(facts, infiniband)
    for fabric in intent.fabrics:
        membership = resolve(fabric, world.nodes, world.subnets)
        findings += _check_membership(fabric, membership, world)
        if is_infiniband(fabric):
            findings += _check_infiniband(fabric, membership, facts, world)
    return tuple(findings)


def _check_nodes(facts: Facts, infiniband: bool) -> typing.List[Finding]:
    if not facts.nodes:
        why = "No node was asked, so nothing is known."
        return [Finding("fabric.node", "inventory", UNKNOWN, "no node", "at least 1 node", why, "Put the nodes into the inventory's group rdma_nodes.")]
    findings = []
    for name, hcas in facts.nodes.items():
        expected = "answers of hca_info and subnet_manager_info" if infiniband else "an answer of hca_info"
        seen = facts.subnets.get(name, ObservedSubnets(error="was not asked"))
        errors = [f"hca_info: {hcas.error or 'empty answer'}"] if hcas.value is None or hcas.error is not None else []
        if infiniband and (seen.value is None or seen.error is not None):
            errors.append(f"subnet_manager_info: {seen.error or 'empty answer'}")
        if errors:
            remedy = f"Make {name} answer (ssh as root), with {_TOOLS}, or take it out of the group rdma_nodes."
            findings.append(Finding("fabric.node", name, UNKNOWN, "no answer", expected, f"{'; '.join(errors)}.", remedy))
        else:
            findings.append(ok("fabric.node", name, f"{len(seen.value or ())} InfiniBand ports", expected))
    return findings


def _check_membership(fabric: Fabric, membership: Membership, world: _World) -> typing.List[Finding]:
    """Whether the fabric could be made out, and what each node has on it."""
    wanted = fabric.select.hcas_per_node
    expected = f"{wanted} HCAs on each node" + (", on one subnet manager" if is_infiniband(fabric) else "")
    if not membership.resolved:
        why = f"{membership.why}.{_words_of_tools(fabric, world)}"
        return [Finding("fabric.membership", fabric.name, FAIL, "not made out", expected, why, f"{membership.remedy}.")]
    by = f"by subnet manager {membership.subnet_manager}" if membership.subnet_manager else "by the selectors of the intent"
    count = sum(len(members) for members in membership.members.values())
    findings = [ok("fabric.membership", fabric.name, f"{count} HCAs on {len(membership.members)} nodes, {by}", expected)]
    for name, members in membership.members.items():
        subject = f"{name} {fabric.name}"
        measured = f"{len(members)} HCAs" + (f": {', '.join(member.hca.name for member in members)}" if members else "")
        if len(members) == wanted:
            findings.append(ok("fabric.hcas", subject, measured, f"{wanted} HCAs"))
            continue
        why = _why_not(fabric, membership, name, world)
        remedy = f"Bring up the ports and cables named here, or correct hcas_per_node of the fabric '{fabric.name}'."
        if len(members) > wanted:
            remedy = f"Look for a cable in the wrong fabric, or correct hcas_per_node of the fabric '{fabric.name}'."
        findings.append(Finding("fabric.hcas", subject, FAIL, measured, f"{wanted} HCAs", why, remedy))
    return findings


def _why_not(fabric: Fabric, membership: Membership, name: str, world: _World) -> str:
    """What the other HCAs of a node see, each by name."""
    members = {member.hca.name for member in membership.members[name]}
    others = [hca for hca in candidates(fabric, world.nodes[name]) if hca.name not in members]
    if not is_infiniband(fabric):
        return "The selectors of the fabric fit just these physical functions of the node."
    if not others:
        return "The node has no further InfiniBand HCA that the intent's selectors allow."
    seen = {(item.rdma_device, item.port): item for item in world.subnets.get(name, ())}
    words = []
    for hca in others:
        for port in hca.ports:
            answer = seen.get((hca.rdma_device or "", port.number))
            if answer is None:
                words.append(f"{hca.name} port {port.number} was not asked")
            elif answer.master is not None:
                words.append(f"{hca.name} port {port.number} sees the manager {answer.master.guid}")
            else:
                words.append(f"{hca.name} port {port.number}: {answer.error}")
    return f"Not on this fabric: {'; '.join(words)}."


def _words_of_tools(fabric: Fabric, world: _World) -> str:
    """The first few errors of the ports, so that the reader needs no second run to see them."""
    if not is_infiniband(fabric):
        return ""
    words = [f"{name} {seen.rdma_device}: {seen.error}" for name, subnets in world.subnets.items() for seen in subnets if seen.error]
    return f" Ports say: {' | '.join(words[:6])}." if words else ""


def _check_infiniband(fabric: Fabric, membership: Membership, facts: Facts, world: _World) -> typing.List[Finding]:
    if not membership.resolved:
        return _check_no_manager(fabric, membership, world)
    topology, why_none = topology_of(membership, facts.topologies)
    seen = _seen_by_members(membership, world)
    findings = _check_managers(fabric, seen, _managers_in(topology, world))
    findings.append(_check_activity(fabric, seen))
    if topology is None:
        remedy = f"Run ibnetdiscover by hand on a node of the fabric, as root; {_TOOLS} must be there."
        findings.append(Finding("fabric.topology", fabric.name, UNKNOWN, "no topology", "a topology from one port", why_none, remedy))
        return findings
    findings.append(_describe_topology(fabric, topology))
    findings += _check_hcas(fabric, membership, topology)
    findings += _check_foreign(fabric, topology, world)
    findings += _check_rates(fabric, membership)
    return findings


def _check_no_manager(fabric: Fabric, membership: Membership, world: _World) -> typing.List[Finding]:
    """An unresolved fabric has no manager that could be judged. When enough ports ask and nobody answers, that is the cause and has its own name."""
    expected = "exactly 1 master"
    silent = {
        name: [
            seen.rdma_device
            for seen in world.subnets.get(name, ())
            if seen.silent and seen.rdma_device in {hca.rdma_device for hca in candidates(fabric, node)}
        ]
        for name, node in world.nodes.items()
    }
    if any(len(devices) >= fabric.select.hcas_per_node for devices in silent.values()):
        ports = "; ".join(f"{name} {', '.join(devices)}" for name, devices in silent.items() if devices)
        why = f"These ports ask and no subnet manager answers: {ports}.{_words_of_tools(fabric, world)}"
        remedy = "Start a subnet manager: opensm on a server, UFM, or the switch's own; if one should run, see its log."
        return [Finding("fabric.one_master", fabric.name, FAIL, "no subnet manager", expected, why, remedy)]
    if any(seen.master for subnets in world.subnets.values() for seen in subnets):
        why = f"Which subnet manager is that of the fabric is open: {membership.why}."
        return [Finding("fabric.one_master", fabric.name, UNKNOWN, "not known", expected, why, "See the finding fabric.membership.")]
    if not any(world.subnets.values()):
        why = "No port was asked: no node answered, or none has an InfiniBand port."
        return [Finding("fabric.one_master", fabric.name, UNKNOWN, "not known", expected, why, "See the findings fabric.node and stage discover.")]
    why = f"Not enough ports could be asked, so it is not known whether there is a subnet manager.{_words_of_tools(fabric, world)}"
    remedy = "Correct what the ports say first; run sminfo by hand on a node, as root."
    return [Finding("fabric.one_master", fabric.name, UNKNOWN, "not known", expected, why, remedy)]


def _seen_by_members(membership: Membership, world: _World) -> typing.List[SeenSubnet]:
    ports = {(name, member.hca.rdma_device, member.port.number) for name, members in membership.members.items() for member in members if member.port}
    return [seen for name, subnets in world.subnets.items() for seen in subnets if (name, seen.rdma_device, seen.port) in ports and seen.master]


def _managers_in(topology: typing.Optional[Topology], world: _World) -> typing.Dict[str, SubnetManager]:
    """Managers that ports of the same topology see: after a split two halves may each have kept or made a master of their own."""
    if topology is None:
        return {}
    ends = {end.port_guid for link in topology.links for end in (link.a, link.b) if end.port_guid}
    result = {}
    for name, node in world.nodes.items():
        guids = {(hca.rdma_device, port.number): port.guid for hca in node.hcas for port in hca.ports}
        for seen in world.subnets.get(name, ()):
            if seen.master is not None and guids.get((seen.rdma_device, seen.port)) in ends:
                result[seen.master.guid] = seen.master
    return result


def _check_managers(fabric: Fabric, seen: typing.Sequence[SeenSubnet], in_topology: typing.Mapping[str, SubnetManager]) -> typing.List[Finding]:
    managers = dict(in_topology)
    for subnet in seen:
        # one's own answer is newer than what the administration has on record
        managers.update({other.guid: other for other in subnet.others if other.guid not in managers})
        if subnet.master is not None:
            managers[subnet.master.guid] = subnet.master
    masters = sorted((manager for manager in managers.values() if manager.state == "MASTER"), key=lambda manager: manager.guid)
    expected, measured = "exactly 1 master", f"{len(masters)} masters: {', '.join(map(_describe, masters))}"
    if len(masters) == 1:
        findings = [ok("fabric.one_master", fabric.name, f"1 master: {_describe(masters[0])}", expected)]
    elif not masters:
        answered = ", ".join(_describe(manager) for manager in managers.values())
        why = f"The managers that answer are not master: {answered}. They wait for a master that is gone, or have just started."
        findings = [Finding("fabric.one_master", fabric.name, FAIL, "0 masters", expected, why, "Read again in a minute; then see the logs of these managers.")]
    else:
        tie = " They have the same priority." if len({manager.priority for manager in masters}) < len(masters) else ""
        why = f"Two managers rule one fabric, as after a split that was joined again; each may undo the other's routes.{tie}"
        remedy = "Stop all but one of them, see their logs, and give each its own priority."
        findings = [Finding("fabric.one_master", fabric.name, FAIL, measured, expected, why, remedy)]
    return [*findings, _check_standby(fabric, seen, managers)]


def _check_standby(fabric: Fabric, seen: typing.Sequence[SeenSubnet], managers: typing.Mapping[str, SubnetManager]) -> Finding:
    standby = [manager for manager in managers.values() if manager.state == "STANDBY"]
    if standby:
        return ok("fabric.standby", fabric.name, ", ".join(map(_describe, standby)), "at least 1 standby")
    errors = sorted({subnet.records_error for subnet in seen if subnet.records_error})
    if errors:
        why = f"The subnet administration gives no records: {'; '.join(errors[:3])}."
        return Finding(
            "fabric.standby", fabric.name, UNKNOWN, "not known", "at least 1 standby", why, "See the log of the master; try saquery SMIR by hand on a node."
        )
    why = "When the only subnet manager stops, ports that come up later stay without a LID."
    return Finding("fabric.standby", fabric.name, WARN, "no standby", "at least 1 standby", why, "Run a second subnet manager with a lower priority.")


def _check_activity(fabric: Fabric, seen: typing.Sequence[SeenSubnet]) -> Finding:
    """The least rise counts. Queries of other nodes may raise the count in one node's interval; a sweep raises it in everybody's."""
    expected = "the activity count rises"
    rises = [
        (subnet.activity_later - subnet.activity_first, subnet.activity_seconds or 0.0)
        for subnet in seen
        if subnet.activity_first is not None and subnet.activity_later is not None
    ]
    if not rises:
        errors = sorted({subnet.records_error for subnet in seen if subnet.records_error}) or ["it was not read twice"]
        why = f"The count could not be compared: {'; '.join(errors[:3])}."
        return Finding("fabric.activity", fabric.name, UNKNOWN, "not known", expected, why, "See the log of the master; try saquery SMIR by hand on a node.")
    rise, seconds = min(rises)
    if rise > 0 and any(subnet.others_refreshed is False for subnet in seen):
        why = "The count rises, but that may be the answers to a standby that polls the master: its record of the standby was not refreshed, as a sweep does."
        remedy = "See the master's log for sweeps. If it sweeps seldom by intent (sweep_interval), raise fabric_activity_seconds above twice that."
        return Finding("fabric.activity", fabric.name, UNKNOWN, f"+{rise} in {seconds:g} s, no sweep seen", expected, why, remedy)
    if rise > 0:
        return ok("fabric.activity", fabric.name, f"+{rise} in {seconds:g} s", expected)
    if rise < 0:
        why = "The count fell between two looks: the manager was started anew meanwhile, or its counter began from 0."
        return Finding(
            "fabric.activity",
            fabric.name,
            WARN,
            f"{rise} in {seconds:g} s",
            expected,
            why,
            "Read again; if it falls again, see the manager's log for restarts.",
        )
    why = "The manager answers and does not sweep: it hangs, or its sweep is switched off. It will not see a port that comes or goes."
    remedy = "See its log, and restart it. If it sweeps seldom by intent (sweep_interval), raise fabric_activity_seconds above that."
    return Finding("fabric.activity", fabric.name, FAIL, f"+0 in {seconds:g} s", expected, why, remedy)


def _describe_topology(fabric: Fabric, topology: Topology) -> Finding:
    switches = sum(node.kind == "Switch" for node in topology.nodes)
    hcas = sum(node.kind == "Ca" and not node.aggregation for node in topology.nodes)
    return ok("fabric.topology", fabric.name, f"{switches} switches, {hcas} HCAs, {len(topology.links)} links", "a topology from one port")


def _check_hcas(fabric: Fabric, membership: Membership, topology: Topology) -> typing.List[Finding]:
    """Each member must be there in the fabric, and linked."""
    nodes = {node.guid: node for node in topology.nodes}
    ends = far_ends(topology)
    findings = []
    for name, members in membership.members.items():
        for member in members:
            findings.append(_check_hca(f"{name} {member.hca.name}", fabric, member, nodes, ends))
    return findings


def _check_hca(
    subject: str,
    fabric: Fabric,
    member: Member,
    nodes: typing.Mapping[str, FabricNode],
    ends: typing.Mapping[str, typing.Tuple[LinkEnd, Link]],
) -> Finding:
    expected = f"linked in the topology of {fabric.name}"
    guid = member.port.guid if member.port else None
    if guid is None:
        why = "The port's GUID could not be read, so it can't be looked up in the topology."
        return Finding("fabric.hca", subject, UNKNOWN, "no port GUID", expected, why, "See the finding discover.read of this node.")
    if guid in ends:
        far, link = ends[guid]
        place = nodes[far.guid].description or far.guid
        return ok("fabric.hca", subject, f"rail {member.rail}, {place} port {far.port}, {link.width or '?'}x{link.speed or '?'}", expected)
    why = f"The port {guid} is not in the topology, although its node shows it: the discovery did not reach it, or it is on another fabric."
    return Finding(
        "fabric.hca", subject, FAIL, "not in the topology", expected, why, "Run ibnetdiscover on the node itself and compare; check the cable's far end."
    )


def _check_foreign(fabric: Fabric, topology: Topology, world: _World) -> typing.List[Finding]:
    """HCAs that the fabric shows and no node has. Other servers are no one's fault; one that calls itself like a node of ours is."""
    known = {hca.node_guid for node in world.nodes.values() for hca in node.hcas} | {
        port.guid for node in world.nodes.values() for hca in node.hcas for port in hca.ports
    }
    ports: typing.Dict[str, typing.Set[str]] = {}
    for link in topology.links:
        for end in (link.a, link.b):
            ports.setdefault(end.guid, set()).update([end.port_guid] if end.port_guid else [])
    foreign = [
        node for node in topology.nodes if node.kind == "Ca" and not node.aggregation and node.guid not in known and not ports.get(node.guid, set()) & known
    ]
    findings = []
    for node in foreign:
        owner = next(iter(node.description.split()), "")
        if owner in world.nodes:
            why = (
                f"The fabric shows this HCA by the name of {owner}, and {owner} has no HCA of this GUID: its driver lost it, or another machine has that name."
            )
            remedy = f"Look for the HCA with lspci and dmesg on {owner}; if it is another machine's, correct that machine's node description."
            findings.append(Finding("fabric.foreign", f"{owner} {node.guid}", FAIL, f"'{node.description}' in the topology", f"an HCA of {owner}", why, remedy))
    if not findings:
        findings.append(ok("fabric.foreign", fabric.name, f"{len(foreign)} HCAs of other machines", "none that bears a node's name"))
    return findings


def _check_rates(fabric: Fabric, membership: Membership) -> typing.List[Finding]:
    """A link below its siblings: the whole collective waits for the slowest."""
    rates = {
        f"{name} {member.hca.name}": member.port.rate_gbps
        for name, members in membership.members.items()
        for member in members
        if member.port is not None and member.port.rate_gbps is not None
    }
    if not rates:
        return []
    best = max(rates.values())
    findings = [
        Finding(
            "fabric.rate",
            subject,
            FAIL,
            f"{rate:g} Gb/s",
            f"{best:g} Gb/s",
            "The link runs below the other links of this fabric: it trained down in width or speed.",
            "Seat or replace the cable or transceiver, and see the switch port's settings.",
        )
        for subject, rate in rates.items()
        if rate < best
    ]
    return findings or [ok("fabric.rate", fabric.name, f"{len(rates)} links of {best:g} Gb/s", "the same rate on all links")]


def _describe(manager: SubnetManager) -> str:
    return f"{manager.guid} (LID {manager.lid}, priority {manager.priority}, {manager.state})"
