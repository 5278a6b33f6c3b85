# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, subnet managers: check that exactly one is the master, that it sweeps the fabric, that a standby
exists, and that each of them answers.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership, find_candidates
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenManagers, SeenSubnet, SeenTopology, SubnetManager, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .names import MOST, FabricFacts, Names, join_some, words_of_ports

_ONE = "exactly 1 master"
_STANDBY = "at least 1 standby"
_SEE_MASTER = (
    "Run saquery -s and saquery SMIR as root on a node of the fabric. If they time out, restart the master subnet"
    " manager after reading its log (opensm: journalctl -u opensm). If they cannot open the port, let Ansible read the"
    " node as root (ansible_become: true). Then run stage fabric again."
)
_NO_PORT = "Follow the remedy of the finding fabric.topology of this fabric, then run stage fabric again."
_NOT_READ = "saquery did not return the ports that have a subnet manager: {error}."
_NO_ANSWER = "the answer is empty"


def check_managers(
    fabric: Fabric, membership: Membership, seen: typing.Optional[SeenTopology], world: FabricFacts
) -> list[Finding]:
    """Check the subnet managers of a fabric: exactly one is master, a standby exists, and they answer. The fabric must
    have been identified.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param seen: topology and subnet managers as read through a port of the fabric; None if no port was used
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    names = Names(seen.topology if seen else None)
    managers = (
        seen.managers
        if seen and seen.managers
        else SeenManagers(error=(seen.error if seen else None) or "no port of the fabric was queried")
    )
    remedy = _SEE_MASTER if seen is not None else _NO_PORT
    known = _of_members(membership, world)
    known.update(_in_topology(seen, world) if seen else {})
    return [
        *_check_one(fabric, known, names),
        *_check_answers(fabric, managers, names, remedy),
        _check_standby(fabric, known, managers, names, remedy),
        _check_priorities(fabric, known, names),
        _check_activity(fabric, membership, managers, remedy),
    ]


def _of_members(membership: Membership, world: FabricFacts) -> dict[str, SubnetManager]:
    """Return the master subnet managers that the ports of the members see, by GUID.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    ports = {
        (name, member.hca.rdma_device, member.port.number)
        for name, members in membership.members.items()
        for member in members
        if member.port
    }
    seen = [
        item
        for name, subnets in world.subnets.items()
        for item in subnets
        if (name, item.rdma_device, item.port) in ports
    ]
    return {item.master.guid: item.master for item in seen if item.master}


def _in_topology(seen: SeenTopology, world: FabricFacts) -> dict[str, SubnetManager]:
    """Return the subnet managers of one topology by GUID: those that its ports see as the master, and those that
    answered themselves. The answer of a manager itself is newer and takes precedence.

    After a fabric was split, each part may have its own master.

    :param seen: topology and subnet managers as read through one port of the fabric
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    result = {}
    if seen.topology is not None:
        ends = {end.port_guid for link in seen.topology.links for end in (link.a, link.b) if end.port_guid}
        for name, node in world.nodes.items():
            guids = {(hca.rdma_device, port.number): port.guid for hca in node.hcas for port in hca.ports}
            for subnet in world.subnets.get(name, ()):
                if subnet.master is not None and guids.get((subnet.rdma_device, subnet.port)) in ends:
                    result[subnet.master.guid] = subnet.master
    if seen.managers is not None:
        result.update({port.manager.guid: port.manager for port in seen.managers.ports if port.manager})
    return result


def _check_one(fabric: Fabric, managers: typing.Mapping[str, SubnetManager], names: Names) -> list[Finding]:
    masters = sorted(
        (manager for manager in managers.values() if manager.state == "MASTER"), key=lambda manager: manager.guid
    )
    if len(masters) == 1:
        return [
            build_pass(
                "fabric.one_master", fabric.name, f"1 master: {_describe_subnet_manager(masters[0], names)}", _ONE
            )
        ]
    if not masters:
        answered = join_some([_describe_subnet_manager(manager, names) for manager in managers.values()])
        why = (
            f"The subnet managers that respond are not master: {answered}. They wait for a master that no longer"
            " exists, or they have just started."
        )
        return [
            Finding(
                "fabric.one_master",
                fabric.name,
                FAIL,
                "0 masters",
                _ONE,
                why,
                "Run stage fabric again in a minute. If the finding remains, restart one of these subnet managers"
                " (opensm: systemctl restart opensm), then run stage fabric again.",
            )
        ]
    return [_report_two_masters(fabric, masters, names)]


def _report_two_masters(fabric: Fabric, masters: typing.Sequence[SubnetManager], names: Names) -> Finding:
    measured = (
        f"{count_of(len(masters), 'master')}:"
        f" {join_some([_describe_subnet_manager(manager, names) for manager in masters])}"
    )
    tie = (
        " Some of these masters have the same priority."
        if len({manager.priority for manager in masters}) < len(masters)
        else ""
    )
    why = (
        "Several subnet managers manage one fabric. One of them ignores the others (opensm: ignore_other_sm, or a"
        " different SM key), or two separate fabrics were connected. Each master may undo the routes of the"
        f" others.{tie}"
    )
    remedy = (
        "If two separate fabrics were connected by mistake, separate them. Otherwise stop all of these subnet managers"
        " except one, check their logs, and give each its own priority. Then run stage fabric again."
    )
    return Finding("fabric.one_master", fabric.name, FAIL, measured, _ONE, why, remedy)


def _check_answers(fabric: Fabric, managers: SeenManagers, names: Names, unread: str) -> list[Finding]:
    """Check that a subnet manager answers on each port with the IsSM bit. A port that announces a manager and does not
    answer may belong to a hung process.

    :param managers: subnet managers as seen through one port
    :param names: names of the switches and HCAs of the topology, for texts
    :param unread: remedy if the ports with a subnet manager could not be read
    """
    expected = "a response from the subnet manager of each port with the IsSM bit"
    if not managers.ports:
        why = _NOT_READ.format(error=format_clause(managers.error, _NO_ANSWER))
        return [Finding("fabric.manager", fabric.name, UNKNOWN, "not read", expected, why, unread)]
    mute = []
    for port in managers.ports:
        if port.manager is None:
            why = (
                "The IsSM bit shows that a subnet manager has opened the port, but sminfo failed:"
                f" {format_clause(port.error, 'it reported no error')}. If the port answers other queries, the subnet"
                " manager hangs. Otherwise the port cannot be reached."
            )
            remedy = (
                f"Run smpquery nodeinfo {port.lid} as root on a node of the fabric. If it answers, restart the subnet"
                " manager on that machine after reading its log. Otherwise check the link of the port. Then run stage"
                " fabric again."
            )
            mute.append(
                Finding(
                    "fabric.manager",
                    f"{fabric.name} {names.lid(port.lid)}",
                    FAIL,
                    "no response to sminfo",
                    expected,
                    why,
                    remedy,
                )
            )
    answers = join_some([_describe_subnet_manager(port.manager, names) for port in managers.ports if port.manager])
    return mute or [build_pass("fabric.manager", fabric.name, answers, expected)]


def _check_standby(
    fabric: Fabric, known: typing.Mapping[str, SubnetManager], managers: SeenManagers, names: Names, unread: str
) -> Finding:
    standby = [manager for manager in known.values() if manager.state == "STANDBY"]
    if standby:
        return build_pass(
            "fabric.standby",
            fabric.name,
            join_some([_describe_subnet_manager(manager, names) for manager in standby]),
            _STANDBY,
        )
    if not managers.ports:
        why = _NOT_READ.format(error=format_clause(managers.error, _NO_ANSWER))
        return Finding("fabric.standby", fabric.name, UNKNOWN, "not read", _STANDBY, why, unread)
    why = "The fabric has only one subnet manager. If it stops, ports that come up later get no LID."
    return Finding(
        "fabric.standby",
        fabric.name,
        WARN,
        "no standby",
        _STANDBY,
        why,
        "Run a second subnet manager with a lower priority on another machine, then run stage fabric again.",
    )


def _check_priorities(fabric: Fabric, known: typing.Mapping[str, SubnetManager], names: Names) -> Finding:
    """Warn about subnet managers with the same priority. The GUID then decides which of them becomes master: the lower
    one wins, so the choice is accidental.

    :param known: subnet managers by GUID
    :param names: names of the devices
    """
    expected = "a different priority for each subnet manager"
    by_priority: dict[int, list[SubnetManager]] = {}
    for manager in known.values():
        by_priority.setdefault(manager.priority, []).append(manager)
    tied = [sorted(group, key=lambda manager: manager.guid) for group in by_priority.values() if len(group) > 1]
    if not tied:
        return build_pass(
            "fabric.priority",
            fabric.name,
            join_some([str(priority) for priority in sorted(by_priority, reverse=True)]),
            expected,
        )
    words = join_first(
        [join_first([_describe_subnet_manager(manager, names) for manager in group], MOST, " and ") for group in tied],
        MOST,
        "; ",
    )
    why = (
        f"These subnet managers have the same priority: {words}. The lower GUID decides which of them becomes the"
        " master, so the choice is accidental."
    )
    return Finding(
        "fabric.priority",
        fabric.name,
        WARN,
        f"the same priority {tied[0][0].priority} for several subnet managers",
        expected,
        why,
        "Set a higher sm_priority for the intended master (opensm: /etc/opensm/opensm.conf) and restart it, then run"
        " stage fabric again.",
    )


def _check_activity(fabric: Fabric, membership: Membership, managers: SeenManagers, unread: str) -> Finding:
    expected = "activity count of the master rises between 2 readings"
    if managers.activity_first is None:
        why = (
            "The activity count of the master (saquery SMIR) was not read:"
            f" {format_clause(managers.error, 'the query was not sent')}."
        )
        return Finding("fabric.activity", fabric.name, UNKNOWN, "0 readings", expected, why, unread)
    if managers.activity_later is None:
        why = (
            f"The second reading failed: {format_clause(managers.error)}."
            if managers.error
            else "The setting fabric_activity_seconds leaves no time for a second reading."
        )
        remedy = (
            unread
            if managers.error
            else "Set fabric_activity_seconds to 40 (default) or more, then run stage fabric again."
        )
        measured = f"1 reading: activity count {managers.activity_first}"
        return Finding("fabric.activity", fabric.name, UNKNOWN, measured, expected, why, remedy)
    if managers.master not in membership.subnet_managers:
        master = ", ".join(membership.subnet_managers)
        why = (
            f"The ports of the nodes see the subnet manager {master} as the master, but the activity count was read"
            " from a different one: the master changed during the stage."
            if managers.master
            else f"The subnet manager from which the activity count was read did not report its GUID, so it may not be"
            f" the master {master} that the ports of the nodes see."
        )
        return Finding(
            "fabric.activity",
            fabric.name,
            UNKNOWN,
            f"activity count read from {managers.master or 'a subnet manager that did not report its GUID'}",
            f"activity count read from the master {', '.join(membership.subnet_managers)}",
            why,
            "Run stage fabric again. If the finding remains, read the logs of the subnet managers (opensm: journalctl"
            " -u opensm), correct the error there, and run stage fabric again.",
        )
    rise, seconds = managers.activity_later - managers.activity_first, managers.activity_seconds or 0.0
    measured = f"activity count {rise:+d} in {seconds:g} s"
    refreshed = f"{expected}, and its record of the standby is refreshed"
    if rise > 0 and managers.others_refreshed is False:
        why = (
            "Polls of a standby raise the activity count as well. Only a sweep refreshes the record that the master has"
            " of the standby, so perhaps the master no longer sweeps."
        )
        remedy = (
            f"Look for sweeps in the log of the master {managers.master}. If there are none, restart this subnet"
            " manager. If a long sweep_interval is intended, set fabric_activity_seconds to more than twice the"
            " interval. Then run stage fabric again."
        )
        return Finding(
            "fabric.activity",
            fabric.name,
            UNKNOWN,
            f"{measured}, record of the standby not refreshed",
            refreshed,
            why,
            remedy,
        )
    others = [
        port.manager for port in managers.ports if port.manager is not None and port.manager.guid != managers.master
    ]
    if rise > 0 and others and managers.others_refreshed is None:
        why = (
            "Polls of a standby raise the activity count as well. Only the record that the master has of the standby"
            " shows a sweep, and saquery SMIR did not return this record twice."
        )
        return Finding(
            "fabric.activity",
            fabric.name,
            UNKNOWN,
            f"{measured}, record of the standby not read",
            refreshed,
            why,
            _SEE_MASTER,
        )
    if rise > 0:
        return build_pass("fabric.activity", fabric.name, measured, expected)
    if rise < 0:
        why = (
            "The count starts at 0 when a subnet manager starts, so the subnet manager was restarted between the two"
            " readings."
        )
        remedy = (
            "Look in the log of the subnet manager (opensm: journalctl -u opensm) for the reason of the restart, then"
            " run stage fabric again."
        )
        return Finding("fabric.activity", fabric.name, WARN, measured, expected, why, remedy)
    why = (
        "The subnet manager responds but does not sweep, so it does not detect ports that come up or go down. If"
        " sweep_interval is 0 in its configuration, the sweep is switched off. Otherwise the subnet manager hangs."
    )
    remedy = (
        "Read sweep_interval (opensm: /etc/opensm/opensm.conf). If it is 0, set it to 10. Then restart the subnet"
        " manager (systemctl restart opensm). If a long sweep_interval is intended, set fabric_activity_seconds to more"
        " than the interval. Then run stage fabric again."
    )
    return Finding("fabric.activity", fabric.name, FAIL, measured, expected, why, remedy)


def check_no_manager(fabric: Fabric, membership: Membership, world: FabricFacts) -> list[Finding]:
    """Report why the subnet manager of a fabric could not be identified.

    The status is fail if the manager itself is the cause: no manager answers, or one topology has two masters. In all
    other cases it is unknown.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    asking = {(name, hca.rdma_device) for name, node in world.nodes.items() for hca in find_candidates(fabric, node)}
    rivals = _find_rivals(fabric, asking, world)
    if rivals:
        return [rivals]
    silent: dict[str, list[SeenSubnet]] = {
        name: [seen for seen in subnets if seen.silent and (name, seen.rdma_device) in asking]
        for name, subnets in world.subnets.items()
    }
    if any(len(subnets) >= fabric.select.hcas_per_node for subnets in silent.values()):
        return [_report_nobody_answers(fabric, silent, world)]
    if any(seen.master for subnets in world.subnets.values() for seen in subnets):
        why = f"It is unknown which subnet manager manages this fabric: {format_clause(membership.why)}."
        return [_report_unknown_master(fabric, why, f"{membership.remedy}. Then run stage fabric again.")]
    if not any(world.subnets.values()):
        why = "No port was queried: no node responded, or no node has an InfiniBand port."
        remedy = (
            "Correct the errors in the findings fabric.node. Without such findings, check with rdma link whether the"
            " nodes have InfiniBand ports. Then run stage fabric again."
        )
        return [_report_unknown_master(fabric, why, remedy)]
    why = f"Not enough ports could be queried for their subnet manager.{words_of_ports(world)}"
    remedy = (
        "Run sminfo -C DEVICE -P PORT as root on the node, for each of these ports. If it cannot open the port, run"
        " modprobe ib_umad. If it times out, check the link of the port with ibstat. Then run stage fabric again."
    )
    return [_report_unknown_master(fabric, why, remedy)]


def _report_unknown_master(fabric: Fabric, why: str, remedy: str) -> Finding:
    return Finding("fabric.one_master", fabric.name, UNKNOWN, "master not identified", _ONE, why, remedy)


def check_islands(fabric: Fabric, world: FabricFacts) -> list[Finding]:
    """Return a failed finding for each island: switches and HCAs that are connected with each other, but have no path
    to a subnet manager. If no topology shows the islands, return one failed finding with their ports. The list is empty
    if no port at all sees a subnet manager.

    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    expected = "a path to a subnet manager from each port with a link"
    asking = {(name, hca.rdma_device) for name, node in world.nodes.items() for hca in find_candidates(fabric, node)}
    lost = {
        (name, seen.rdma_device) for name, subnets in world.subnets.items() for seen in subnets if seen.cut_off
    } & asking
    # the topologies from ports that see a manager
    rest = {
        node.guid
        for name, topologies in world.topologies.items()
        for seen in topologies
        if seen.topology is not None and (name, seen.rdma_device) not in lost
        for node in seen.topology.nodes
    }
    if not lost or not (rest or any(seen.master for subnets in world.subnets.values() for seen in subnets)):
        # no port sees a manager: then the manager is gone, which check_no_manager reports
        return []
    findings = []
    for name, topologies in world.topologies.items():
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
        "Run ibnetdiscover as root on one of these nodes and on another node. Check the links that only the other node"
        " shows. Then run stage fabric again."
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
            "Check the port of the switch, reseat the cable, and disable and enable the port. Then run stage fabric"
            " again.",
        )
    why = (
        f"Only the switches {join_some(switches)} and the HCAs {join_some(hcas)} can be reached from {port}: all"
        " links from these switches to the other switches are down."
    )
    remedy = (
        "Check the ports of these switches towards the spines (on the switch, or with ibportstate from one of these"
        " HCAs), and their cables. Then run stage fabric again."
    )
    return Finding("fabric.island", join_some(switches), FAIL, measured, expected, why, remedy)


def _find_rivals(
    fabric: Fabric, asking: set[tuple[str, typing.Optional[str]]], world: FabricFacts
) -> typing.Optional[Finding]:
    """Return a failed finding if one topology contains two master subnet managers, else None. The ports of such a
    fabric report different masters, so it would otherwise count as two fabrics.

    :param asking: ports that may belong to the fabric, each as node name and RDMA device
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    for node, topologies in world.topologies.items():
        for seen in topologies:
            masters = [manager for manager in _in_topology(seen, world).values() if manager.state == "MASTER"]
            if len(masters) > 1 and (node, seen.rdma_device) in asking:
                return _report_two_masters(
                    fabric, sorted(masters, key=lambda manager: manager.guid), Names(seen.topology)
                )
    return None


def _report_nobody_answers(
    fabric: Fabric, silent: typing.Mapping[str, typing.Sequence[SeenSubnet]], world: FabricFacts
) -> Finding:
    """Return the failed finding that no subnet manager answers, with the state of the last known manager: hung, ended
    or unreachable.

    :param silent: ports whose query of their subnet manager got no answer, by node
    :param world: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    ports = "; ".join(
        f"{name} {join_some([seen.rdma_device for seen in subnets])}"
        for name, subnets in list(silent.items())[:6]
        if subnets
    )
    lost = {seen.lost.lid: seen.lost for subnets in silent.values() for seen in subnets if seen.lost}
    asked = f"No subnet manager responded to the queries of these ports: {ports}."
    hung = [f"{item.description or '?'} (LID {item.lid})" for item in lost.values() if item.is_manager]
    ended = [f"{item.description or '?'} (LID {item.lid})" for item in lost.values() if item.is_manager is False]
    if hung:
        why = (
            f"{asked} The port of {join_some(hung)} still reports a subnet manager (IsSM bit), so this subnet manager"
            " hangs."
        )
        remedy = (
            "Check the process of the subnet manager and its log on that machine, and restart it. Run a second subnet"
            " manager on another machine: a standby would have taken over. Then run stage fabric again."
        )
        return Finding(
            "fabric.one_master", fabric.name, FAIL, f"the subnet manager hangs: {join_some(hung)}", _ONE, why, remedy
        )
    if ended:
        why = (
            f"{asked} The last subnet manager was on {join_some(ended)}. That port responds but no longer reports a"
            " subnet manager, so the subnet manager has ended."
        )
        remedy = (
            "Start the subnet manager again, look in its log for the reason why it ended, and run a second subnet"
            " manager as standby. Then run stage fabric again."
        )
        return Finding(
            "fabric.one_master",
            fabric.name,
            FAIL,
            f"no subnet manager: the subnet manager of {join_some(ended)} has ended",
            _ONE,
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
            "fabric.one_master", fabric.name, FAIL, f"the subnet manager is unreachable: {lids}", _ONE, why, remedy
        )
    return Finding(
        "fabric.one_master", fabric.name, FAIL, "no subnet manager", _ONE, f"{asked}{words_of_ports(world)}", remedy
    )


def _describe_subnet_manager(manager: SubnetManager, names: Names) -> str:
    """Return a subnet manager as a text: ``sm-1 mlx5_0 (on a host, LID 7, priority 15, MASTER)``. It is named by its
    GUID where no topology shows it.

    :param names: names of the switches and HCAs of the topology, for texts
    """
    words = [names.kind(manager.guid), f"LID {manager.lid}", f"priority {manager.priority}", manager.state]
    name = names.node(manager.guid)
    named = name if name.endswith(manager.guid) else f"{name} {manager.guid}"
    named = named.strip() or "a subnet manager without a GUID"
    return f"{named} ({', '.join(word for word in words if word)})"
