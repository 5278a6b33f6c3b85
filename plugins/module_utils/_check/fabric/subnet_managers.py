# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, subnet managers: check that exactly one is the master, that it sweeps the fabric, that a standby
exists, and that each of them answers. unmanaged.py reports a fabric whose subnet manager is not known.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenManagers, SeenTopology, SubnetManager
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .names import MOST, FabricFacts, Names, find_host, join_some

#: expected value of fabric.one_master
ONE = "exactly 1 master"
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
    fabric: Fabric, membership: Membership, seen: typing.Optional[SeenTopology], fabric_facts: FabricFacts
) -> list[Finding]:
    """Check the subnet managers of a fabric whose HCAs are known: exactly one is master, a standby exists, and they
    answer.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param seen: topology and subnet managers as read through a port of the fabric; None if no port was used
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    names = Names(seen.topology if seen else None)
    managers = (
        seen.managers
        if seen and seen.managers
        else SeenManagers(error=(seen.error if seen else None) or "no port of the fabric was queried")
    )
    remedy = _SEE_MASTER if seen is not None else _NO_PORT
    known = _of_members(membership, fabric_facts)
    known.update(in_topology(seen, fabric_facts) if seen else {})
    return [
        *_check_one(fabric, known, names),
        *_check_answers(fabric, managers, names, remedy),
        _check_standby(fabric, known, managers, names, fabric_facts, remedy),
        _check_priorities(fabric, known, names),
        _check_activity(fabric, membership, managers, remedy),
    ]


def _of_members(membership: Membership, fabric_facts: FabricFacts) -> dict[str, SubnetManager]:
    """Return the master subnet managers that the ports of the members see, by GUID.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    ports = {
        (name, member.hca.rdma_device, member.port.number)
        for name, members in membership.members.items()
        for member in members
        if member.port
    }
    seen = [
        item
        for name, subnets in fabric_facts.subnets.items()
        for item in subnets
        if (name, item.rdma_device, item.port) in ports
    ]
    return {item.master.guid: item.master for item in seen if item.master}


def in_topology(seen: SeenTopology, fabric_facts: FabricFacts) -> dict[str, SubnetManager]:
    """Return the subnet managers of one topology by GUID: those that its ports see as the master, and those that
    answered themselves. The answer of a manager itself is newer and takes precedence.

    After a fabric was split, each part may have its own master.

    :param seen: topology and subnet managers as read through one port of the fabric
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    result = {}
    if seen.topology is not None:
        ends = {end.port_guid for link in seen.topology.links for end in (link.a, link.b) if end.port_guid}
        for name, node in fabric_facts.nodes.items():
            guids = {(hca.rdma_device, port.number): port.guid for hca in node.hcas for port in hca.ports}
            for subnet in fabric_facts.subnets.get(name, ()):
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
                "fabric.one_master", fabric.name, f"1 master: {_describe_subnet_manager(masters[0], names)}", ONE
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
                ONE,
                why,
                "Wait a minute: a subnet manager that has just started becomes the master. If sminfo, run as root"
                " on a node of the fabric, then still shows no master, restart one of these subnet managers"
                " (opensm: systemctl restart opensm). Then run stage fabric again.",
            )
        ]
    return [report_two_masters(fabric, masters, names)]


def report_two_masters(fabric: Fabric, masters: typing.Sequence[SubnetManager], names: Names) -> Finding:
    """Return the failed finding that a fabric has several master subnet managers.

    :param masters: master subnet managers of the fabric
    :param names: names of the nodes of the topology
    """
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
    return Finding("fabric.one_master", fabric.name, FAIL, measured, ONE, why, remedy)


def _check_answers(fabric: Fabric, managers: SeenManagers, names: Names, unread: str) -> list[Finding]:
    """Check that a subnet manager answers on each port with the IsSM bit. A port that announces a manager and does not
    answer may belong to a hung process.

    :param managers: subnet managers as seen through one port
    :param names: names of the switches and HCAs of the topology, for texts
    :param unread: remedy if the ports with a subnet manager could not be read
    """
    expected = "a response to sminfo from each port with a subnet manager (IsSM bit)"
    if not managers.ports:
        why = _NOT_READ.format(error=format_clause(managers.error, _NO_ANSWER))
        return [Finding("fabric.manager", fabric.name, UNKNOWN, "not read", expected, why, unread)]
    mute = []
    for port in managers.ports:
        if port.manager is None:
            failure = (
                f"sminfo failed: {format_clause(port.error)}"
                if port.error
                else "sminfo received no response and printed no error message"
            )
            why = (
                f"The IsSM bit shows that a subnet manager has opened the port, but {failure}. If the port answers"
                " other queries, the subnet manager hangs. Otherwise the port cannot be reached."
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
    fabric: Fabric,
    known: typing.Mapping[str, SubnetManager],
    managers: SeenManagers,
    names: Names,
    fabric_facts: FabricFacts,
    unread: str,
) -> Finding:
    standby = [manager for manager in known.values() if manager.state == "STANDBY"]
    if standby:
        measured = join_some([_describe_subnet_manager(manager, names) for manager in standby])
        hosts = {
            find_host(item.guid, names, fabric_facts) for item in known.values() if item.state in ("MASTER", "STANDBY")
        }
        if len(hosts) == 1 and None not in hosts:
            why = (
                f"Master and standby run on one machine, {hosts.pop()}. If it stops, the fabric has no subnet manager."
            )
            remedy = (
                "Stop the standby on this machine, and start a subnet manager with a lower priority on another"
                " machine (opensm: sm_priority in /etc/opensm/opensm.conf, systemctl enable --now opensm). Then"
                " run stage fabric again."
            )
            return Finding("fabric.standby", fabric.name, WARN, measured, f"{_STANDBY} on another machine", why, remedy)
        return build_pass("fabric.standby", fabric.name, measured, _STANDBY)
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
        "Start a second subnet manager with a lower priority on another machine (opensm: sm_priority in"
        " /etc/opensm/opensm.conf, systemctl enable --now opensm). Then run stage fabric again.",
    )


def _check_priorities(fabric: Fabric, known: typing.Mapping[str, SubnetManager], names: Names) -> Finding:
    """Warn about subnet managers with the same priority.

    The lower GUID then decides which of them becomes master, so the choice is accidental.

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
        f"These subnet managers have the same priority: {words}. The one with the lowest GUID becomes the master,"
        " which is not a choice of the admin."
    )
    return Finding(
        "fabric.priority",
        fabric.name,
        WARN,
        f"priority {tied[0][0].priority} for {len(tied[0])} subnet managers",
        expected,
        why,
        "Set a higher sm_priority for the intended master (opensm: /etc/opensm/opensm.conf) and restart it, then run"
        " stage fabric again.",
    )


def _check_activity(fabric: Fabric, membership: Membership, managers: SeenManagers, unread: str) -> Finding:
    expected = "an activity count of the master subnet manager that rises between 2 readings"
    if managers.activity_first is None:
        why = (
            "The activity count of the master subnet manager (saquery SMIR) was not read:"
            f" {format_clause(managers.error, 'the query was not sent')}."
        )
        return Finding("fabric.activity", fabric.name, UNKNOWN, "0 readings", expected, why, unread)
    if managers.activity_later is None:
        why = (
            f"The second reading failed: {format_clause(managers.error)}."
            if managers.error
            else "The setting fabric_activity_seconds leaves no time for a second reading. If the count does not rise"
            " between two readings, the subnet manager no longer sweeps the fabric."
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
            "Read the logs of the subnet managers (opensm: journalctl -u opensm), and correct the cause for which"
            " the master changed or restarted. Then run stage fabric again.",
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
            f"Search the log of the master {managers.master} for sweeps (opensm: journalctl -u opensm). If it has"
            " none, restart this subnet manager. If a long sweep_interval is intended, set fabric_activity_seconds"
            " to more than twice the interval. Then run stage fabric again."
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
            "Read the log of the subnet manager (opensm: journalctl -u opensm), and correct the cause of its"
            " restart. Then run stage fabric again."
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
