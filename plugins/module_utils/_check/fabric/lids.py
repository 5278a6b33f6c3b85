# SPDX-License-Identifier: GPL-3.0-or-later

"""Check for ports whose node reports the LID of another port. Check id: ``fabric.lids``."""

from __future__ import annotations

from ..._analysis.fleet.hca_locations import Topologies
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.lids import find_false_claims
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, Finding
from .names import FabricFacts

_CHECK = "fabric.lids"
_EXPECTED = "each LID at one port"
#: LIDs that have a finding each
_MOST_LIDS = 32


def check_lids(fabric: Fabric, membership: Membership, topologies: Topologies, world: FabricFacts) -> list[Finding]:
    """Return a finding for each LID that a port reports and that belongs, or may belong, to another port. The list is
    empty where each port has its own LID. At most ``_MOST_LIDS`` LIDs get a finding of their own.
    """
    claims = find_false_claims(membership, world.nodes, world.subnets, topologies)
    findings = []
    for claim in claims[:_MOST_LIDS]:
        why = f"{claim.words} A LID leads to one port, so what answers there proves nothing of another."
        remedy = (
            "Run the stage again: a subnet manager may have given new LIDs meanwhile. If it stays, compare smpquery"
            f" nodeinfo {claim.lid}, asked on another node, with"
            f" /sys/class/infiniband/{claim.ports[0][1]}/ports/{claim.ports[0][2]} on {claim.ports[0][0]}."
        )
        findings.append(
            Finding(
                _CHECK,
                f"{fabric.name} LID {claim.lid}",
                FAIL,
                f"not proven of {_format_port_count(len(claim.ports))}",
                _EXPECTED,
                why,
                remedy,
            )
        )
    if len(claims) > _MOST_LIDS:
        why = (
            f"Of {_MOST_LIDS} of these LIDs there is a finding each. So many are no accident: a node tells what is not"
            " true."
        )
        remedy = "See which node the findings fabric.lids have in common, and take it out until it tells its own LIDs."
        findings.append(
            Finding(_CHECK, f"{fabric.name} LIDs", FAIL, f"{len(claims)} LIDs at several ports", _EXPECTED, why, remedy)
        )
    return findings


def _format_port_count(ports: int) -> str:
    return "1 port" if ports == 1 else f"{ports} ports"
