# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, topology: check that it shows the HCAs of the nodes, their leaves and rails, the links between switches
and their rates, and that GUIDs are unique. Check ids: ``fabric.topology``, ``fabric.hca``, ``fabric.capability``,
``fabric.foreign``, ``fabric.guids``; the other checks are in the modules that ``check_topology`` calls.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hca_locations import Ends, collect_far_ends
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.host_names import collect_owners, host_of
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.cables import ANY, take_cables
from ..._model.infiniband.fabric import SeenCapabilities, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from .cabling import check_rails
from .link_rates import check_hca_rates, check_switch_rates
from .links_in_scope import LinksInScope
from .names import FabricFacts, Names, join_some
from .uplinks import check_uplinks

#: ports with several cables that have a finding each
_MOST_DOUBLED = 32
#: HCAs by the names of nodes that have none of their GUIDs, of one status, that have a finding each
_MOST_FOREIGN = 64
#: HCAs of a node, in the words of a finding
_MOST_HCAS = 16


def check_topology(
    fabric: Fabric,
    membership: Membership,
    topology: Topology,
    capabilities: typing.Optional[SeenCapabilities],
    world: FabricFacts,
) -> list[Finding]:
    """Return all findings on the topology of a fabric. Passed findings are summarized by node or by fabric, so that a
    report on ten thousand hosts stays readable.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    names, ends, way = Names(topology), collect_far_ends(topology), LinksInScope(membership, topology)
    return [
        _make_topology_finding(fabric, topology),
        *_check_hcas(fabric, membership, ends, names),
        *check_rails(fabric, membership, ends, names),
        *check_uplinks(fabric, topology, names, way),
        *check_hca_rates(fabric, membership, ends, capabilities),
        *check_switch_rates(fabric, topology, capabilities, names, way),
        _check_capabilities(fabric, topology, capabilities, names),
        *_check_foreign(fabric, membership, topology, world, ends),
        *_check_guids(fabric, membership, topology, names),
    ]


def _make_topology_finding(fabric: Fabric, topology: Topology) -> Finding:
    """Return a passed finding with the number of switches, HCAs and links. The aggregation nodes of SHARP, which are
    inside of switches, are not HCAs.
    """
    switches = sum(node.kind == "Switch" for node in topology.nodes)
    hcas = sum(node.kind == "Ca" and not node.aggregation for node in topology.nodes)
    return build_pass(
        "fabric.topology",
        fabric.name,
        f"{count_of(switches, 'switch', 'switches')}, {count_of(hcas, 'HCA')}, {count_of(len(topology.links), 'link')}",
        "the topology, read from one port",
    )


def _check_hcas(fabric: Fabric, membership: Membership, ends: Ends, names: Names) -> list[Finding]:
    """Check that each HCA of the fabric has a link in the topology.

    Return one passed finding for each node that has such HCAs, and one finding for each missing HCA.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param names: names of the switches and HCAs of the topology, for texts
    """
    expected = f"a link in the topology of {fabric.name}"
    findings = []
    for name, members in membership.members.items():
        places = []
        for member in members:
            guid = member.port.guid if member.port else None
            subject = f"{name} {member.hca.name}"
            if guid is None:
                device = member.hca.rdma_device or member.hca.name
                why = "sysfs shows no GUID of the port, so the port cannot be found in the topology."
                findings.append(
                    Finding(
                        "fabric.hca",
                        subject,
                        UNKNOWN,
                        "port GUID not read",
                        expected,
                        why,
                        f"Run cat /sys/class/infiniband/{device}/ports/*/gids/0 as root on {name}. If it prints an"
                        " error, drain the node and reload the driver of the HCA. Then run stage fabric again.",
                    )
                )
            elif guid in ends:
                far, link = ends[guid]
                places.append(
                    f"rail {member.rail} {member.hca.name}: {names.port(far.guid, far.port)},"
                    f" {link.width or '?'}x{link.speed or '?'}"
                )
            else:
                device = member.hca.rdma_device or member.hca.name
                why = (
                    f"ibnetdiscover did not find the port GUID {guid} of this HCA. Either a link on the path to the"
                    f" port is down, or the port is on another fabric: the switches that ibnetdiscover -C {device}"
                    " lists show which."
                )
                remedy = (
                    f"Run ibnetdiscover -C {device} as root on {name}. If it lists switches of this fabric, repair"
                    " their links to the other switches. If it lists other switches, move the cable of the HCA. Then"
                    " run stage fabric again."
                )
                findings.append(Finding("fabric.hca", subject, FAIL, "not in the topology", expected, why, remedy))
        if places:
            findings.append(
                build_pass("fabric.hca", f"{name} {fabric.name}", join_first(places, _MOST_HCAS, "; "), expected)
            )
    return findings


def _check_capabilities(
    fabric: Fabric, topology: Topology, capabilities: typing.Optional[SeenCapabilities], names: Names
) -> Finding:
    """Return the finding that sums up the slow links of the whole fabric, including those of other tenants.

    It is a warning if there are any. If the supported rates are not known, the status is ``unknown``.

    The check ``fabric.rate`` reports the slow links that carry traffic of the fabric.

    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    :param names: names of the switches and HCAs of the topology, for texts
    """
    expected = "each link as wide and fast as both of its ports support"
    if capabilities is None or capabilities.error is not None:
        why = (
            f"iblinkinfo failed: {format_clause(capabilities.error)}."
            if capabilities
            else "iblinkinfo was not run, because no subnet manager responded at the port through which the topology"
            " was read."
        )
        remedy = (
            "Run time iblinkinfo --line as root on a node of the fabric. If it prints an error, check the device or the"
            " LID that it names. If it takes longer than fabric_discovery_seconds, raise this setting. Then run stage"
            " fabric again."
            if capabilities
            else "Follow the remedy of the finding fabric.one_master of this fabric, then run stage fabric again."
        )
        return Finding("fabric.capability", fabric.name, UNKNOWN, "supported rates not read", expected, why, remedy)
    ends = 2 * len(topology.links)
    if capabilities.links < ends:
        why = "iblinkinfo reports fewer ports than ibnetdiscover: links came up or went down between the two tools."
        remedy = (
            "Run stage fabric again. If the finding remains, compare the output of iblinkinfo --line with that of"
            " ibnetdiscover, both as root on a node of the fabric, to find the missing ports."
        )
        if capabilities.unread:
            why = f"These lines of iblinkinfo could not be parsed: {join_some(capabilities.unread)}."
            remedy = (
                "Install infiniband-diags of rdma-core 48 or newer on the nodes, and run stage fabric again. If the"
                " finding remains, report it as a defect of linerate.rdma, with the output of iblinkinfo --line."
            )
        return Finding(
            "fabric.capability",
            fabric.name,
            UNKNOWN,
            f"supported rate read of {count_of(capabilities.links, 'port')}",
            f"supported rate of all {count_of(ends, 'port')} with a link",
            why,
            remedy,
        )
    if not capabilities.slow:
        return build_pass("fabric.capability", fabric.name, count_of(capabilities.links, "link port"), expected)
    ports = [f"{names.port(port.guid, port.port)} could be {port.could_be}" for port in capabilities.slow]
    why = f"A cable, a transceiver or a setting limits these links: {join_some(ports)}."
    remedy = (
        "Replace the cables if they limit the links. Otherwise check the speeds that are enabled at both ports"
        " (ibportstate LID PORT query). Then run stage fabric again."
    )
    return Finding(
        "fabric.capability",
        fabric.name,
        WARN,
        f"{len(ports)} of {capabilities.links} link ports below the supported rate",
        expected,
        why,
        remedy,
    )


# who is there


def _check_foreign(
    fabric: Fabric, membership: Membership, topology: Topology, world: FabricFacts, ends: Ends
) -> list[Finding]:
    """Report HCAs in the topology that carry the name of a node of the intent, although the node does not report such
    an HCA. HCAs of other servers are ignored.

    The finding is a failure, because the node may have lost the HCA. It is a warning if the topology has all HCAs that
    the intent requires of the node, because then another machine has the same name.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    known = {hca.node_guid for node in world.nodes.values() for hca in node.hcas} | {
        port.guid for node in world.nodes.values() for hca in node.hcas for port in hca.ports
    }
    ports: dict[str, set[str]] = {}
    for link in topology.links:
        for end in (link.a, link.b):
            ports.setdefault(end.guid, set()).update([end.port_guid] if end.port_guid else [])
    foreign = [
        node
        for node in topology.nodes
        if node.kind == "Ca"
        and not node.aggregation
        and node.guid not in known
        and not ports.get(node.guid, set()) & known
    ]
    findings = []
    hosts = collect_owners(world.nodes)
    wanted = fabric.select.hcas_per_node
    for node in foreign:
        named = hosts.get(host_of(node.description), ())
        if not named:
            continue
        owner, subject, measured = (
            " or ".join(named),
            f"{' or '.join(named)} {node.guid}".strip(),
            f"an HCA with the name '{node.called}' in the topology, and not on {' or '.join(named)}",
        )
        members = {name: membership.members.get(name, ()) for name in named}
        if all(
            len(found) == wanted and all(member.port is not None and member.port.guid in ends for member in found)
            for found in members.values()
        ):
            why = (
                f"The topology also shows the {count_of(wanted, 'HCA')} that the intent requires on {owner}, so"
                " another machine uses this name."
            )
            remedy = (
                f"Find the other machine by its switch port (ibnetdiscover, GUID {node.guid or 'not reported'}), and"
                " give its HCA a different node description. Then run stage fabric again."
            )
            findings.append(
                Finding("fabric.foreign", subject, WARN, measured, f"only HCAs of {owner} with this name", why, remedy)
            )
            continue
        why = (
            f"The driver on {owner} lost the HCA, or another machine uses this name. The switch port at which"
            f" ibnetdiscover shows {node.guid} tells to which machine the cable leads."
        )
        remedy = (
            f"Follow the cable of this switch port. If it leads to {owner}, read dmesg there, drain the node and"
            " reload the driver of the HCA. If it leads to another machine, correct the node description of that"
            " machine (rdma-ndd). Then"
            " run stage fabric again."
        )
        findings.append(
            Finding("fabric.foreign", subject, FAIL, measured, f"only HCAs of {owner} with this name", why, remedy)
        )
    if len(findings) > _MOST_FOREIGN:
        findings = [item for status in (FAIL, WARN) for item in _limit_foreign(fabric, status, findings)]
    return findings or [
        build_pass(
            "fabric.foreign",
            fabric.name,
            f"{count_of(len(foreign), 'HCA')} of other machines",
            "no HCA with the name of a node",
        )
    ]


def _limit_foreign(fabric: Fabric, status: Status, findings: typing.Iterable[Finding]) -> list[Finding]:
    """Return at most ``_MOST_FOREIGN`` findings of a status, and one finding that states the number of the remaining
    findings. The limit protects the report, since the topology is read through the port of one node, which could invent
    any number of HCAs.

    :param status: status of the findings to return
    :param findings: findings on HCAs with the names of other nodes, of any status
    """
    found = [item for item in findings if item.status == status]
    if len(found) <= _MOST_FOREIGN:
        return found
    more = len(found) - _MOST_FOREIGN
    why = (
        f"Only the first {_MOST_FOREIGN} of these HCAs have a finding of their own. The first of the others is"
        f" {found[_MOST_FOREIGN].subject}. So many are not plausible: the topology may be wrong."
    )
    remedy = (
        "Run ibnetdiscover as root on another node. If its output does not have these HCAs, put that node first in the"
        " inventory. Otherwise correct the node descriptions of these HCAs. Then run stage fabric again."
    )
    rest = Finding(
        "fabric.foreign",
        fabric.name,
        status,
        f"{count_of(more, 'more HCA')} with names of nodes that do not have them",
        "no such HCA",
        why,
        remedy,
    )
    return [*found[:_MOST_FOREIGN], rest]


def _check_cables(fabric: Fabric, topology: Topology, names: Names, remedy: str) -> typing.Iterator[Finding]:
    """Yield a failed finding for each port that has several cables in the topology.

    All stages use the first cable that the topology lists for a port. If there are more than ``_MOST_DOUBLED`` such
    ports, one more finding has their number in place of the further findings.

    :param names: names of the switches and HCAs of the topology, for texts
    :param remedy: beginning of the remedy of the findings
    """
    # both names of a port tell of the same cables
    doubled = take_cables(topology).doubled
    by_cables: dict[typing.Hashable, tuple[str, int]] = {}
    for key, ends in doubled.items():
        by_cables.setdefault(tuple(map(id, ends)), key)
    remedy += (
        " If ibnetdiscover on another node shows one cable at this port, put that node first in the inventory. Then"
        " run stage fabric again."
    )
    for guid, number in list(by_cables.values())[:_MOST_DOUBLED]:
        places = [names.port(end.guid, end.port) for end in doubled[guid, number]]
        port, subject = (
            (f"the port {guid}", names.node(guid))
            if number == ANY
            else (f"port {number} of {guid}", names.port(guid, number))
        )
        why = (
            f"The ports {' and '.join(places) if len(places) == 2 else join_some(places)} each"
            f" report {port} at the other end of their cable. Two devices have this GUID, or the node that reported the"
            " topology reports a cable that does not exist. The stages use the first cable."
        )
        yield Finding(
            "fabric.guids", subject, FAIL, f"{count_of(len(places), 'cable')} at this port", "1 cable", why, remedy
        )
    if len(by_cables) > _MOST_DOUBLED:
        why = (
            "So many duplicate GUIDs are not plausible: the node that reported the topology invents cables. Only"
            f" {_MOST_DOUBLED} of these ports have a finding of their own."
        )
        yield Finding(
            "fabric.guids",
            f"{fabric.name} cables",
            FAIL,
            f"{count_of(len(by_cables), 'port')} with several cables",
            "1 cable at each port",
            why,
            remedy,
        )


def _check_guids(fabric: Fabric, membership: Membership, topology: Topology, names: Names) -> list[Finding]:
    """Check that GUIDs are unique. Return a failed finding for each port GUID with several cables in the topology and
    for each node GUID that two HCAs have, or one pass.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param names: names of the switches and HCAs of the topology, for texts
    """
    expected = "each GUID at one device"
    remedy = (
        "Give one of the two devices its own GUID again (mstflint -d ADDRESS -guid 0x... sg), or replace the board."
        " Switch off the device until then."
    )
    findings = list(_check_cables(fabric, topology, names, remedy))
    remedy += " Then run stage fabric again."
    owners: dict[str, list[str]] = {}
    for name, members in membership.members.items():
        for member in members:
            if member.hca.node_guid:
                owners.setdefault(member.hca.node_guid, []).append(f"{name} {member.hca.name}")
    for guid, twins in owners.items():
        if len(twins) > 1:
            why = (
                "The subnet manager treats HCAs with the same node GUID as one device. A flashed image or a copied"
                " configuration may have duplicated the GUID."
            )
            measured = f"node GUID {guid} at {count_of(len(twins), 'HCA')}"
            findings.append(Finding("fabric.guids", join_some(twins), FAIL, measured, expected, why, remedy))
    return findings or [
        build_pass(
            "fabric.guids",
            fabric.name,
            f"{count_of(len(topology.nodes), 'node')} of the topology, {count_of(len(owners), 'HCA')}",
            expected,
        )
    ]
