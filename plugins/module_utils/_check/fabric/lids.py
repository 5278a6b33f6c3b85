# SPDX-License-Identifier: GPL-3.0-or-later

"""Check for ports whose node reports the LID of another port. Check id: ``fabric.lids``."""

from __future__ import annotations

from ..._analysis.fleet.hca_locations import Topologies
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.paths.lids import find_false_claims
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, Finding
from .names import FabricFacts

_CHECK = "fabric.lids"
#: ports of a LID, in the words of a finding
_MOST_PORTS = 8
#: LIDs that have a finding each
_MOST_LIDS = 32


def check_lids(
    fabric: Fabric, membership: Membership, topologies: Topologies, fabric_facts: FabricFacts
) -> list[Finding]:
    """Return a failed finding for each LID that a port reports and that belongs, or may belong, to another port.

    The list is empty where each port has its own LID. If there are more than ``_MOST_LIDS`` such LIDs, the first ones
    have a finding of their own, and one more finding has the number of all.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topologies: topologies that fabric_info read, or the error, by node
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    claims = find_false_claims(membership, fabric_facts.nodes, fabric_facts.subnets, topologies)
    findings = []
    for claim in claims[:_MOST_LIDS]:
        ports = join_first([f"{node} {device} port {number}" for node, device, number in claim.ports], _MOST_PORTS)
        why = (
            f"{claim.words} The LID in sysfs of {ports} is therefore wrong, or it changed during the stage."
            if len(claim.ports) == 1
            else f"{claim.words} Packets to a LID reach only one port, so at most one of these ports has the LID."
        )
        node, device, number = claim.ports[0]
        remedy = (
            "The subnet manager may have assigned new LIDs during the stage. Wait a minute, then run stage fabric"
            f" again. If the finding remains, run smpquery nodeinfo {claim.lid} as root on another node, and compare"
            f" its PortGuid with the last 8 bytes of /sys/class/infiniband/{device}/ports/{number}/gids/0 on {node}. If"
            f" they differ or smpquery fails, {node} reports a wrong LID: reboot it, or remove it from the group"
            " rdma_nodes. If they are equal, let the subnet manager assign the LIDs again (opensm: pkill -HUP -x opensm"
            " on its host). Then run stage fabric again."
        )
        findings.append(
            Finding(
                _CHECK,
                f"{fabric.name} LID {claim.lid}",
                FAIL,
                f"LID {claim.lid} in sysfs of {ports}",
                "a LID in sysfs of each port that is equal to the LID from the subnet manager",
                why,
                remedy,
            )
        )
    if len(claims) > _MOST_LIDS:
        why = (
            f"So many wrong LIDs are not accidental: a node reports wrong LIDs. Only {_MOST_LIDS} of them have a"
            " finding of their own."
        )
        remedy = (
            "Find the node that all findings fabric.lids have in common. Remove this node from the group rdma_nodes"
            " until it reports its own LIDs, then run stage fabric again."
        )
        findings.append(
            Finding(
                _CHECK,
                f"{fabric.name} LIDs",
                FAIL,
                f"{count_of(len(claims), 'LID')} in sysfs of wrong ports",
                "each LID at one port",
                why,
                remedy,
            )
        )
    return findings
