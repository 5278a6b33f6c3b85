# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, subnet managers: report why the subnet manager of a fabric could not be identified, and the islands
that have no path to a subnet manager. Check ids: ``fabric.one_master``, ``fabric.island``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership, find_candidates
from ..._model.base.phrases import count_of, format_clause
from ..._model.infiniband.fabric import SeenSubnet, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding
from .names import FabricFacts, Names, join_some, words_of_ports
from .subnet_managers import ONE, in_topology, report_two_masters


def check_no_manager(fabric: Fabric, membership: Membership, fabric_facts: FabricFacts) -> list[Finding]:
    """Report why the subnet manager of a fabric could not be identified.

    The status is fail if the manager itself is the cause: no manager answers, or one topology has two masters. In all
    other cases it is unknown.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    asking = {
        (name, hca.rdma_device) for name, node in fabric_facts.nodes.items() for hca in find_candidates(fabric, node)
    }
    rivals = _find_rivals(fabric, asking, fabric_facts)
    if rivals:
        return [rivals]
    silent: dict[str, list[SeenSubnet]] = {
        name: [seen for seen in subnets if seen.silent and (name, seen.rdma_device) in asking]
        for name, subnets in fabric_facts.subnets.items()
    }
    if any(len(subnets) >= fabric.select.hcas_per_node for subnets in silent.values()):
        return [_report_nobody_answers(fabric, silent, fabric_facts)]
    if any(seen.master for subnets in fabric_facts.subnets.values() for seen in subnets):
        why = f"It is unknown which subnet manager manages this fabric: {format_clause(membership.why)}."
        return [_report_unknown_master(fabric, why, f"{membership.remedy}. Then run stage fabric again.")]
    if not any(fabric_facts.subnets.values()):
        why = "No port was queried: no node responded, or no node has an InfiniBand port."
        remedy = (
            "Correct the errors in the findings fabric.node. Without such findings, check with rdma link whether the"
            " nodes have InfiniBand ports. Then run stage fabric again."
        )
        return [_report_unknown_master(fabric, why, remedy)]
    why = (
        "Too few ports could be queried for their subnet manager, so the master of the fabric is"
        f" unknown.{words_of_ports(fabric_facts)}"
    )
    remedy = (
        "Run sminfo -C DEVICE -P PORT as root on the node, for each of these ports. If it cannot open the port, run"
        " modprobe ib_umad. If it times out, check the link of the port with ibstat. Then run stage fabric again."
    )
    return [_report_unknown_master(fabric, why, remedy)]


def _report_unknown_master(fabric: Fabric, why: str, remedy: str) -> Finding:
    return Finding("fabric.one_master", fabric.name, UNKNOWN, "master not identified", ONE, why, remedy)


def check_islands(fabric: Fabric, fabric_facts: FabricFacts) -> list[Finding]:
    """Return a failed finding for each island: switches and HCAs that are connected with each other, but have no path
    to a subnet manager. If no topology shows the islands, return one failed finding with their ports.

    The list is empty without islands, and if no port at all sees a subnet manager.

    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    expected = "a path to a subnet manager from each port with a link"
    asking = {
        (name, hca.rdma_device) for name, node in fabric_facts.nodes.items() for hca in find_candidates(fabric, node)
    }
    lost = {
        (name, seen.rdma_device) for name, subnets in fabric_facts.subnets.items() for seen in subnets if seen.cut_off
    } & asking
    # the topologies from ports that see a manager
    rest = {
        node.guid
        for name, topologies in fabric_facts.topologies.items()
        for seen in topologies
        if seen.topology is not None and (name, seen.rdma_device) not in lost
        for node in seen.topology.nodes
    }
    if not lost or not (rest or any(seen.master for subnets in fabric_facts.subnets.values() for seen in subnets)):
        # no port sees a manager: then the manager is gone, which check_no_manager reports
        return []
    findings = []
    for name, topologies in fabric_facts.topologies.items():
        for seen in topologies:
            if (
                (name, seen.rdma_device) in lost
                and seen.topology is not None
                and rest
                and not rest & {node.guid for node in seen.topology.nodes}
            ):
                findings.append(_report_island(f"{name} {seen.rdma_device}", seen.topology, expected))
    if findings:
        return findings
    why = (
        "The links of these ports are up, but queries to the subnet manager get no response:"
        f" {join_some([f'{name} {device}' for name, device in sorted(lost, key=str)])}."
    )
    remedy = (
        "Run ibnetdiscover as root on one of these nodes and on another node. Repair the links that only the other"
        " node shows. Then run stage fabric again."
    )
    return [
        Finding(
            "fabric.island",
            fabric.name,
            FAIL,
            f"{count_of(len(lost), 'port')} without a path to a subnet manager",
            expected,
            why,
            remedy,
        )
    ]


def _report_island(port: str, topology: Topology, expected: str) -> Finding:
    switches = [node.called for node in topology.nodes if node.kind == "Switch"]
    hcas = [node.called for node in topology.nodes if node.kind == "Ca" and not node.aggregation]
    measured = (
        f"{count_of(len(switches), 'switch', 'switches')} and {count_of(len(hcas), 'HCA')} without a path to a subnet"
        " manager"
    )
    if not switches:
        why = (
            f"The link of {port} is up, but no switch can be reached through it: the switch port at the other end of"
            " the cable is not up."
        )
        return Finding(
            "fabric.island",
            port,
            FAIL,
            measured,
            expected,
            why,
            "Enable the switch port at the other end of the cable, and reseat the cable. If the port stays down,"
            " disable and enable it at the switch. Then run stage fabric again.",
        )
    noun = "the switch" if len(switches) == 1 else "the switches"
    why = (
        f"ibnetdiscover from {port} shows only {count_of(len(switches), 'switch', 'switches')} ({join_some(switches)})"
        f" and {count_of(len(hcas), 'HCA')} ({join_some(hcas) or 'none'}). They are cut off from the fabric: all links"
        " from these switches to the other switches are down. No subnet manager can configure their ports, so they have"
        " no RDMA connection to the other nodes."
    )
    remedy = (
        f"On {noun} {join_some(switches)}, or with ibportstate as root on {port.partition(' ')[0]}, check the ports"
        " that lead to other switches: enable ports that are disabled, and reseat or replace the cables of ports that"
        " are down. Then run stage fabric again."
    )
    return Finding("fabric.island", join_some(switches), FAIL, measured, expected, why, remedy)


def _find_rivals(
    fabric: Fabric, asking: set[tuple[str, typing.Optional[str]]], fabric_facts: FabricFacts
) -> typing.Optional[Finding]:
    """Return a failed finding if one topology contains two master subnet managers, else None.

    Without this finding, such a fabric would count as two fabrics, since its ports report different masters.

    :param asking: ports that may belong to the fabric, each as node name and RDMA device
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    for node, topologies in fabric_facts.topologies.items():
        for seen in topologies:
            masters = [manager for manager in in_topology(seen, fabric_facts).values() if manager.state == "MASTER"]
            if len(masters) > 1 and (node, seen.rdma_device) in asking:
                return report_two_masters(
                    fabric, sorted(masters, key=lambda manager: manager.guid), Names(seen.topology)
                )
    return None


def _report_nobody_answers(
    fabric: Fabric, silent: typing.Mapping[str, typing.Sequence[SeenSubnet]], fabric_facts: FabricFacts
) -> Finding:
    """Return the failed finding that no subnet manager answers, with the state of the last known manager: hung, ended
    or unreachable.

    :param silent: ports whose query of their subnet manager got no answer, by node
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    ports = "; ".join(
        f"{name} {join_some([seen.rdma_device for seen in subnets])}"
        for name, subnets in list(silent.items())[:6]
        if subnets
    )
    lost = {seen.lost.lid: seen.lost for subnets in silent.values() for seen in subnets if seen.lost}
    asked = f"No subnet manager responded to the queries of these ports: {ports}."
    hung = [
        f"{item.description or 'a device without a name'} (LID {item.lid})" for item in lost.values() if item.is_manager
    ]
    ended = [
        f"{item.description or 'a device without a name'} (LID {item.lid})"
        for item in lost.values()
        if item.is_manager is False
    ]
    if hung:
        why = (
            f"{asked} The port of {join_some(hung)} still reports a subnet manager (IsSM bit), so this subnet manager"
            " hangs."
        )
        remedy = (
            "On that machine, read the log of the subnet manager and restart it (opensm: journalctl -u opensm,"
            " systemctl restart opensm). Start a second subnet manager on another machine, which takes over if the"
            " first one hangs. Then run stage fabric again."
        )
        return Finding(
            "fabric.one_master", fabric.name, FAIL, f"the subnet manager hangs: {join_some(hung)}", ONE, why, remedy
        )
    if ended:
        why = (
            f"{asked} The last subnet manager was on {join_some(ended)}. That port responds but no longer reports a"
            " subnet manager, so the subnet manager has ended."
        )
        remedy = (
            "On that machine, read the log of the subnet manager and start it again (opensm: journalctl -u opensm,"
            " systemctl start opensm). Start a second subnet manager on another machine, which takes over if the"
            " first one ends. Then run stage fabric again."
        )
        return Finding(
            "fabric.one_master",
            fabric.name,
            FAIL,
            f"no subnet manager: the subnet manager of {join_some(ended)} has ended",
            ONE,
            why,
            remedy,
        )
    remedy = (
        "Start a subnet manager: opensm on a server, UFM, or the subnet manager of the switch. If a subnet manager is"
        " supposed to run, check its log. Then run stage fabric again."
    )
    if lost:
        lids = join_some([f"LID {lid}" for lid in lost])
        why = (
            f"{asked} The last subnet manager was at {lids}, and that port does not respond either: its machine or a"
            " link on the path is down."
        )
        return Finding(
            "fabric.one_master", fabric.name, FAIL, f"the subnet manager is unreachable: {lids}", ONE, why, remedy
        )
    return Finding(
        "fabric.one_master",
        fabric.name,
        FAIL,
        "no subnet manager",
        ONE,
        f"{asked}{words_of_ports(fabric_facts)}",
        remedy,
    )
