# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, subnet managers: check that exactly one is the master, that it sweeps the fabric, that a standby
exists, and that each of them answers.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership, find_candidates
from ..._model.base.text import folded
from ..._model.infiniband.fabric import SeenManagers, SeenSubnet, SeenTopology, SubnetManager, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .names import MOST, FabricFacts, Names, some, words_of_ports

_ONE = "exactly 1 master"
_STANDBY = "at least 1 standby"
_SEE_MASTER = "See the log of the master; try saquery -s and saquery SMIR by hand on a node."


def check_managers(
    fabric: Fabric, membership: Membership, seen: typing.Optional[SeenTopology], world: FabricFacts
) -> list[Finding]:
    """Return findings on the subnet managers of a fabric that was identified.

    :param seen: topology and subnet managers as read through a port of the fabric; None if no port was asked
    :param world: facts of the nodes that answered
    """
    names = Names(seen.topology if seen else None)
    managers = (
        seen.managers
        if seen and seen.managers
        else SeenManagers(error=(seen.error if seen else None) or "no port of the fabric was asked")
    )
    known = _of_members(membership, world)
    known.update(_in_topology(seen, world) if seen else {})
    return [
        *_check_one(fabric, known, names),
        *_check_answers(fabric, managers, names),
        _check_standby(fabric, known, managers, names),
        _check_priorities(fabric, known, names),
        _check_activity(fabric, membership, managers),
    ]


def _of_members(membership: Membership, world: FabricFacts) -> dict[str, SubnetManager]:
    """Return the master subnet managers that the ports of the members see, by GUID."""
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
        return [ok("fabric.one_master", fabric.name, f"1 master: {_describe_subnet_manager(masters[0], names)}", _ONE)]
    if not masters:
        answered = some([_describe_subnet_manager(manager, names) for manager in managers.values()])
        why = (
            f"The managers that answer are not master: {answered}. They wait for a master that is gone, or have just"
            " started."
        )
        return [
            Finding(
                "fabric.one_master",
                fabric.name,
                FAIL,
                "0 masters",
                _ONE,
                why,
                "Read again in a minute; then see the logs of these managers.",
            )
        ]
    return [_report_two_masters(fabric, masters, names)]


def _report_two_masters(fabric: Fabric, masters: typing.Sequence[SubnetManager], names: Names) -> Finding:
    measured = f"{len(masters)} masters: {some([_describe_subnet_manager(manager, names) for manager in masters])}"
    tie = " They have the same priority." if len({manager.priority for manager in masters}) < len(masters) else ""
    why = (
        "Several managers rule one fabric: one ignores the others (opensm: ignore_other_sm, or another SM key), or two"
        f" halves were joined. Each may undo the other's routes.{tie}"
    )
    remedy = "Stop all but one of them, see their logs, and give each its own priority."
    return Finding("fabric.one_master", fabric.name, FAIL, measured, _ONE, why, remedy)


def _check_answers(fabric: Fabric, managers: SeenManagers, names: Names) -> list[Finding]:
    """Check that a subnet manager answers on each port with the IsSM bit. A port that announces a manager and does not
    answer may belong to a hung process.
    """
    expected = "every port that says that it has a subnet manager answers for it"
    if not managers.ports:
        why = f"The ports with a subnet manager are not known: {managers.error or 'the answer is empty'}."
        return [Finding("fabric.manager", fabric.name, UNKNOWN, "not known", expected, why, _SEE_MASTER)]
    mute = []
    for port in managers.ports:
        if port.manager is None:
            why = (
                "The port has the IsSM bit and does not answer for its manager: it hangs, or the port can't be"
                f" reached. {port.error}."
            )
            remedy = (
                "See the process and its log on that machine, and restart it: when it wakes up it may believe that it"
                " is still the master."
            )
            mute.append(
                Finding(
                    "fabric.manager", f"{fabric.name} {names.lid(port.lid)}", FAIL, "no answer", expected, why, remedy
                )
            )
    answers = some([_describe_subnet_manager(port.manager, names) for port in managers.ports if port.manager])
    return mute or [ok("fabric.manager", fabric.name, answers, expected)]


def _check_standby(
    fabric: Fabric, known: typing.Mapping[str, SubnetManager], managers: SeenManagers, names: Names
) -> Finding:
    standby = [manager for manager in known.values() if manager.state == "STANDBY"]
    if standby:
        return ok(
            "fabric.standby",
            fabric.name,
            some([_describe_subnet_manager(manager, names) for manager in standby]),
            _STANDBY,
        )
    if not managers.ports:
        why = f"The ports with a subnet manager are not known: {managers.error or 'the answer is empty'}."
        return Finding("fabric.standby", fabric.name, UNKNOWN, "not known", _STANDBY, why, _SEE_MASTER)
    why = "When the only subnet manager stops, ports that come up later stay without a LID."
    return Finding(
        "fabric.standby",
        fabric.name,
        WARN,
        "no standby",
        _STANDBY,
        why,
        "Run a second subnet manager with a lower priority.",
    )


def _check_priorities(fabric: Fabric, known: typing.Mapping[str, SubnetManager], names: Names) -> Finding:
    """Warn about subnet managers with the same priority. The GUID then decides which of them becomes master: the lower
    one wins, so the choice is accidental.
    """
    expected = "a priority of its own for each"
    by_priority: dict[int, list[SubnetManager]] = {}
    for manager in known.values():
        by_priority.setdefault(manager.priority, []).append(manager)
    tied = [sorted(group, key=lambda manager: manager.guid) for group in by_priority.values() if len(group) > 1]
    if not tied:
        return ok(
            "fabric.priority",
            fabric.name,
            some([str(priority) for priority in sorted(by_priority, reverse=True)]),
            expected,
        )
    words = folded(
        [folded([_describe_subnet_manager(manager, names) for manager in group], MOST, " and ") for group in tied],
        MOST,
        "; ",
    )
    why = f"These managers have the same priority, so the lower GUID wins by accident: {words}."
    return Finding(
        "fabric.priority",
        fabric.name,
        WARN,
        f"priority {tied[0][0].priority} twice",
        expected,
        why,
        "Give the one that shall be master a higher sm_priority.",
    )


def _check_activity(fabric: Fabric, membership: Membership, managers: SeenManagers) -> Finding:
    expected = "the activity count rises"
    if managers.activity_first is None or managers.activity_later is None:
        why = f"The count could not be compared: {managers.error or 'it was not read twice'}."
        return Finding("fabric.activity", fabric.name, UNKNOWN, "not known", expected, why, _SEE_MASTER)
    if managers.master not in membership.subnet_managers:
        why = (
            f"The count is that of {managers.master or 'a manager that was not told'}, and the ports see"
            f" {', '.join(membership.subnet_managers)}: it changed."
        )
        return Finding(
            "fabric.activity",
            fabric.name,
            UNKNOWN,
            "not known",
            expected,
            why,
            "Run the stage again; if it changes again, see the managers' logs.",
        )
    rise, seconds = managers.activity_later - managers.activity_first, managers.activity_seconds or 0.0
    if rise > 0 and managers.others_refreshed is False:
        why = (
            "The count rises, but that may be the answers to a standby that polls the master: its record of the standby"
            " was not refreshed, as a sweep does."
        )
        remedy = (
            "See the master's log for sweeps. If it sweeps seldom by intent (sweep_interval), raise"
            " fabric_activity_seconds above twice that."
        )
        return Finding(
            "fabric.activity", fabric.name, UNKNOWN, f"+{rise} in {seconds:g} s, no sweep seen", expected, why, remedy
        )
    others = [
        port.manager for port in managers.ports if port.manager is not None and port.manager.guid != managers.master
    ]
    if rise > 0 and others and managers.others_refreshed is None:
        why = (
            "The count rises, but a standby polls the master, which counts as well, and whether the master looked at"
            " the standby was not read."
        )
        return Finding(
            "fabric.activity",
            fabric.name,
            UNKNOWN,
            f"+{rise} in {seconds:g} s, no sweep seen",
            expected,
            why,
            _SEE_MASTER,
        )
    if rise > 0:
        return ok("fabric.activity", fabric.name, f"+{rise} in {seconds:g} s", expected)
    if rise < 0:
        why = "The count fell between two looks: the manager was started anew meanwhile, or its counter began from 0."
        remedy = "Read again; if it falls again, see the manager's log for restarts."
        return Finding("fabric.activity", fabric.name, WARN, f"{rise} in {seconds:g} s", expected, why, remedy)
    why = (
        "The manager answers and does not sweep: it hangs, or its sweep is switched off. It will not see a port that"
        " comes or goes."
    )
    remedy = (
        "See its log, and restart it. If it sweeps seldom by intent (sweep_interval), raise fabric_activity_seconds"
        " above that."
    )
    return Finding("fabric.activity", fabric.name, FAIL, f"+0 in {seconds:g} s", expected, why, remedy)


def check_no_manager(fabric: Fabric, membership: Membership, world: FabricFacts) -> list[Finding]:
    """Return findings on a fabric whose subnet manager could not be identified.

    The status is fail if the manager itself is the cause: no manager answers, or one topology has two masters. In all
    other cases it is unknown.
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
        why = f"Which subnet manager is that of the fabric is open: {membership.why}."
        return [
            Finding(
                "fabric.one_master", fabric.name, UNKNOWN, "not known", _ONE, why, "See the finding fabric.membership."
            )
        ]
    if not any(world.subnets.values()):
        why = "No port was asked: no node answered, or none has an InfiniBand port."
        return [
            Finding(
                "fabric.one_master",
                fabric.name,
                UNKNOWN,
                "not known",
                _ONE,
                why,
                "See the findings fabric.node and stage discover.",
            )
        ]
    why = (
        f"Not enough ports could be asked, so it is not known whether there is a subnet manager.{words_of_ports(world)}"
    )
    remedy = "Correct what the ports say first; run sminfo by hand on a node, as root."
    return [Finding("fabric.one_master", fabric.name, UNKNOWN, "not known", _ONE, why, remedy)]


def check_islands(fabric: Fabric, world: FabricFacts) -> list[Finding]:
    """Report islands: switches and HCAs that are connected with each other, but have no path to a subnet manager.
    Return no finding if no port at all sees a subnet manager; ``check_no_manager`` reports that.
    """
    expected = "a way to a subnet manager from each port with a link"
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
        "These ports have a link and no way to a subnet manager:"
        f" {some([f'{name} {device}' for name, device in sorted(lost, key=str)])}."
    )
    remedy = "Run ibnetdiscover and sminfo by hand on such a node, as root, and compare with another node."
    return [Finding("fabric.island", fabric.name, FAIL, f"{len(lost)} ports", expected, why, remedy)]


def _report_island(port: str, topology: Topology, expected: str) -> Finding:
    switches = [node.called for node in topology.nodes if node.kind == "Switch"]
    hcas = [node.called for node in topology.nodes if node.kind == "Ca" and not node.aggregation]
    measured = f"{len(switches)} switches and {len(hcas)} HCAs cut off"
    if not switches:
        why = (
            f"From {port}, whose own link is up, one sees no switch: the switch's port at the other end of the cable is"
            " not up."
        )
        return Finding(
            "fabric.island",
            port,
            FAIL,
            measured,
            expected,
            why,
            "See that port on the switch itself, seat the cable, and switch the port off and on.",
        )
    why = (
        f"From {port} one sees the switches {some(switches)} and the HCAs {some(hcas)}, and nothing else of the fabric:"
        " all links from these switches to the others are down."
    )
    remedy = (
        "See the ports of these switches towards the spines (on the switch itself, or with ibportstate from one of"
        " these HCAs), and their cables."
    )
    return Finding("fabric.island", some(switches), FAIL, measured, expected, why, remedy)


def _find_rivals(
    fabric: Fabric, asking: set[tuple[str, typing.Optional[str]]], world: FabricFacts
) -> typing.Optional[Finding]:
    """Return a finding if one topology contains two master subnet managers, else None. Their ports report different
    masters, so one fabric looks like two.

    :param asking: ports that may belong to the fabric, each as node name and RDMA device
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
    """Report that no subnet manager answers, and the state of the last known manager: hung, ended or unreachable.

    :param silent: by node, the ports whose query of their subnet manager got no answer
    """
    ports = "; ".join(
        f"{name} {some([seen.rdma_device for seen in subnets])}"
        for name, subnets in list(silent.items())[:6]
        if subnets
    )
    lost = {seen.lost.lid: seen.lost for subnets in silent.values() for seen in subnets if seen.lost}
    asked = f"These ports ask and no subnet manager answers: {ports}."
    hung = [f"{item.description or '?'} (LID {item.lid})" for item in lost.values() if item.is_manager]
    ended = [f"{item.description or '?'} (LID {item.lid})" for item in lost.values() if item.is_manager is False]
    if hung:
        why = f"{asked} The port of {some(hung)} still says that a manager runs on it (IsSM bit): it hangs."
        remedy = (
            "See the process and its log on that machine, and restart it. A standby elsewhere would have taken over."
        )
        return Finding(
            "fabric.one_master", fabric.name, FAIL, f"the subnet manager hangs: {some(hung)}", _ONE, why, remedy
        )
    if ended:
        why = (
            f"{asked} The last one was on {some(ended)}; that port answers and says that no manager runs on it any"
            " more: it has ended."
        )
        remedy = "Start it again, see its log for why it ended, and run a second one as standby."
        return Finding(
            "fabric.one_master",
            fabric.name,
            FAIL,
            f"no subnet manager: that of {some(ended)} has ended",
            _ONE,
            why,
            remedy,
        )
    remedy = "Start a subnet manager: opensm on a server, UFM, or the switch's own; if one should run, see its log."
    if lost:
        lids = some([f"LID {lid}" for lid in lost])
        why = (
            f"{asked} The last one was at {lids}, and that port does not answer either: its machine or a link on the"
            " way is down."
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
    """
    words = [names.kind(manager.guid), f"LID {manager.lid}", f"priority {manager.priority}", manager.state]
    name = names.node(manager.guid)
    return f"{name if name == manager.guid else f'{name} {manager.guid}'} ({', '.join(word for word in words if word)})"
