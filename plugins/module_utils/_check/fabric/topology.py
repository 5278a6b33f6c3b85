# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, topology: check that it shows the HCAs of the nodes, their leaves and rails, the links between switches
and their rates. Check ids: ``fabric.topology``, ``fabric.hca``, ``fabric.capability``. The modules that
``check_topology`` calls have the other ids.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hca_locations import Ends, collect_far_ends
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenCapabilities, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .cabling import check_rails
from .foreign_hcas import check_foreign
from .guids import check_guids
from .link_rates import ENABLE_RATE, check_hca_rates, check_switch_rates, describe_possible
from .links_in_scope import LinksInScope
from .names import FabricFacts, Names, join_some
from .uplinks import check_uplinks

#: HCAs of a node, in the words of a finding
_MOST_HCAS = 16


def check_topology(
    fabric: Fabric,
    membership: Membership,
    topology: Topology,
    capabilities: typing.Optional[SeenCapabilities],
    fabric_facts: FabricFacts,
) -> list[Finding]:
    """Return all findings on the topology of a fabric. Passed findings are summarized by node or by fabric, so that a
    report on ten thousand hosts stays readable.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param capabilities: links that run below their capability, as iblinkinfo reports them; None if it was not run
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
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
        *check_foreign(fabric, membership, topology, fabric_facts, ends),
        *check_guids(fabric, membership, topology, names),
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
                why = "sysfs shows no GUID of the port, so it is unknown whether the port has a link in the topology."
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
                    f"ibnetdiscover, run on another port of the fabric, did not find the port GUID {guid} of this"
                    " HCA. Either a link on the path to the port is down, or the port is on another fabric."
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
            "Compare the output of iblinkinfo --line with that of ibnetdiscover, both as root on a node of the"
            " fabric, to find the missing ports, and repair their links. If no port is missing now, the change was"
            " temporary. Then run stage fabric again."
        )
        if capabilities.unread:
            why = f"These lines of iblinkinfo could not be parsed: {join_some(capabilities.unread)}."
            remedy = (
                "Install infiniband-diags of rdma-core 48 or newer on the nodes. If they have it already, report a"
                " defect of linerate.rdma, with the output of iblinkinfo --line. Then run stage fabric again."
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
    ports = [
        f"{names.port(port.guid, port.port)} could have {describe_possible(port.could_be)}"
        for port in capabilities.slow
    ]
    why = f"A cable, a transceiver or a setting limits these links: {join_some(ports)}."
    remedy = (
        f"Do this for each of these links. {ENABLE_RATE} Otherwise replace the cable or the transceiver while no job"
        " uses the link. Then run stage fabric again."
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
