# SPDX-License-Identifier: GPL-3.0-or-later

"""Find HCAs in the topology that carry the name of a node that does not report them. Check id: ``fabric.foreign``."""

from __future__ import annotations

import typing

from ..._analysis.fleet.hca_locations import Ends
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.host_names import collect_owners, host_of
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, WARN, Finding, Status, build_pass
from .names import FabricFacts

#: HCAs by the names of nodes that have none of their GUIDs, of one status, that have a finding each
_MOST_FOREIGN = 64


def check_foreign(
    fabric: Fabric, membership: Membership, topology: Topology, fabric_facts: FabricFacts, ends: Ends
) -> list[Finding]:
    """Report HCAs in the topology that carry the name of a node of the intent, although the node does not report such
    an HCA. HCAs of other servers are ignored.

    The finding is a failure, because the node may have lost the HCA. It is a warning if the topology has all HCAs that
    the intent requires of the node, because then another machine has the same name.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    known = {hca.node_guid for node in fabric_facts.nodes.values() for hca in node.hcas} | {
        port.guid for node in fabric_facts.nodes.values() for hca in node.hcas for port in hca.ports
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
    hosts = collect_owners(fabric_facts.nodes)
    wanted = fabric.select.hcas_per_node
    for node in foreign:
        named = hosts.get(host_of(node.description), ())
        if not named:
            continue
        owner, subject, measured = (
            " or ".join(named),
            f"{' or '.join(named)} {node.guid}".strip(),
            f"the topology shows an HCA '{node.called}' that {' or '.join(named)} does not have",
        )
        members = {name: membership.members.get(name, ()) for name in named}
        if all(
            len(found) == wanted and all(member.port is not None and member.port.guid in ends for member in found)
            for found in members.values()
        ):
            why = (
                f"The topology also shows the {count_of(wanted, 'HCA')} that the intent requires on {owner}, so"
                f" another machine uses the name of {owner} in the node description of its HCA."
            )
            remedy = (
                "Run ibnetdiscover as root on a node of the fabric, and search its output for"
                f" {node.guid or 'an HCA without a GUID'}: it shows the switch port of the other machine. Correct"
                " the host name of that machine and restart rdma-ndd on it, which writes the node description. Then"
                " run stage fabric again."
            )
            findings.append(
                Finding(
                    "fabric.foreign",
                    subject,
                    WARN,
                    measured,
                    f"only HCAs of {owner} with the name of {owner}",
                    why,
                    remedy,
                )
            )
            continue
        why = (
            f"The driver on {owner} lost the HCA, or another machine uses the name of {owner} in the node"
            " description of its HCA."
        )
        remedy = (
            "Run ibnetdiscover as root on a node of the fabric, search its output for"
            f" {node.guid or 'an HCA without a GUID'}, and follow the cable of the switch port that it shows. If the"
            f" cable leads to {owner}, drain the node, correct the error that dmesg shows for the HCA, and reload"
            " the driver of the HCA. If it leads to another machine, correct the host name of that machine and"
            " restart rdma-ndd on it. Then run stage fabric again."
        )
        findings.append(
            Finding(
                "fabric.foreign", subject, FAIL, measured, f"only HCAs of {owner} with the name of {owner}", why, remedy
            )
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
        f"The report has a finding for each of the first {_MOST_FOREIGN} HCAs of this kind, and this finding for the"
        f" rest, of which the first is {found[_MOST_FOREIGN].subject}. So many are not plausible: the node that ran"
        " ibnetdiscover may report HCAs that do not exist."
    )
    remedy = (
        "Run ibnetdiscover as root on another node. If its output does not have these HCAs, put that node first in the"
        " inventory. Otherwise correct the node descriptions of these HCAs. Then run stage fabric again."
    )
    rest = Finding(
        "fabric.foreign",
        fabric.name,
        status,
        f"{count_of(more, 'HCA')} in addition to the {_MOST_FOREIGN} with a finding: each has the name of a node that"
        " does not have it",
        "0 HCAs with the name of a node that does not have them",
        why,
        remedy,
    )
    return [*found[:_MOST_FOREIGN], rest]
