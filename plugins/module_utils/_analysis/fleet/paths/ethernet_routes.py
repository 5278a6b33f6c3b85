# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the paths between the ports of an Ethernet fabric from LLDP, by which each port learns its leaf. The topology
above the leaves remains unknown.

A switch is identified by its chassis ID and its name together, since neither is necessarily unique. A port that
received LLDP from no switch or from several, or the same LLDP as another port, is assigned to a switch of its own. Such
a port is measured, but its cabling is unknown.
"""

from __future__ import annotations

import collections
import typing

from ...._model.base.text import both_ends, cut_text, join_first
from ...._model.infiniband.fabric import FabricNode, Link, LinkEnd, Topology
from ...._model.node.hca import Netdev
from ...._model.node.neighbours import NodeNeighbours, ObservedNeighbours, SwitchPort
from ...schedule.link_directions import Cable, End
from ...schedule.paths import PathTable
from ..hcas_of_fabric import Member, Membership

Neighbours = typing.Mapping[str, ObservedNeighbours]
#: rail and node
Port = tuple[int, str]
#: chassis ID and name
_Switch = tuple[str, str]
#: a port, its interface, the port of the switch that it heard, and why its switch is not known
_Found = tuple[End, typing.Optional[Netdev], typing.Optional[SwitchPort], str]
SPREAD = "Ethernet switches distribute flows over the links between them by their own hash"
#: reasons in one text, at most
_MOST_REASONS = 3
#: ports of switches that one interface heard, in one text, and characters of a name that a switch has, and of an error,
#: at most
_MOST_HEARD, _MOST_NAME, _MOST_ERROR = 4, 64, 300
HOW = (
    "Enable LLDP on the ports of the leaves (lldp run on EOS, feature lldp on NX-OS, set protocols lldp interface all"
    " on Junos), and disable LLDP in the firmware of the NICs, which otherwise consumes the packets (LLDP_NB_DCBX_P1 in"
    " mstconfig)"
)


class Unheard(typing.NamedTuple):
    """A port whose switch is unknown, because LLDP did not identify it.

    :ivar node: name of the node
    :ivar rail: rail of the port
    :ivar interface: name of its network interface; empty if its HCA has none
    :ivar why: why the switch is unknown
    """

    node: str
    rail: int
    interface: str
    why: str


def find_ethernet_paths(
    membership: Membership, neighbours: Neighbours, only: typing.Optional[typing.Container[Port]] = None
) -> tuple[typing.Optional[PathTable], str]:
    """Return the paths and an empty text, or None and the reason why the paths are unknown: LLDP was not read, or the
    switch is known for fewer than two ports or for less than half of them.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: switches that each node observed by LLDP
    :param only: rail and node of each port that takes part; None for all ports
    """
    if not neighbours:
        return None, "this run did not read which switches the ports are cabled to (LLDP)"
    found = _collect_heard_ports(membership, neighbours, only)
    told = [item for item in found if not item[3]]
    if len(told) < 2 or 2 * len(told) < len(found):
        reasons = list(dict.fromkeys(why for _end, _netdev, _heard, why in found if why))
        more = f" and {len(reasons) - _MOST_REASONS} more reasons" if len(reasons) > _MOST_REASONS else ""
        which = f"LLDP shows the switch for {len(told)} of {len(found)} ports"
        return None, f"{which} ({'; '.join(reasons[:_MOST_REASONS])}{more}). {HOW}"
    names = _list_names(
        {_identify_switch(heard) for _end, _netdev, heard, why in found if heard is not None and not why}
    )
    nodes: dict[str, FabricNode] = {}
    links, cables = [], {}
    numbers: dict[str, int] = collections.Counter()
    for end, netdev, heard, why in found:
        switch = (
            f"switch {' '.join(_identify_switch(heard))}" if heard is not None and not why else f"switch of {end.guid}"
        )
        name = (
            names[_identify_switch(heard)]
            if heard is not None and not why
            else f"the switch of {end.node} rail {end.rail}"
        )
        nodes[switch] = FabricNode("Switch", switch, name, 0)
        nodes[end.guid] = FabricNode("Ca", end.guid, end.node, 1)
        numbers[switch] += 1
        links.append(
            Link(LinkEnd("Ca", end.guid, 1, None, end.guid), LinkEnd("Switch", switch, numbers[switch]), None, None)
        )
        interface, gbps = (netdev.name, netdev.speed_gbps) if netdev is not None else ("", None)
        hca = next(member.hca for member in membership.members[end.node] if member.rail == end.rail)
        gbps = gbps or next((port.rate_gbps for port in hca.all_ports), None)
        driver = (hca.pci.driver if hca.pci is not None else None) or ""
        cables[end.guid] = Cable(interface, heard.port if heard is not None and not why else "", gbps, why, driver)
    return (
        PathTable(
            Topology(tuple(nodes.values()), tuple(links)),
            (),
            [end for end, _netdev, _heard, _why in found],
            SPREAD,
            cables,
        ),
        "",
    )


def find_leaves(membership: Membership, neighbours: Neighbours) -> dict[Port, str]:
    """Return the name of the switch to which each port is cabled, by rail and node. Ports whose switch is unknown are
    left out.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: switches that each node observed by LLDP
    """
    found = [
        (end, _identify_switch(heard))
        for end, _netdev, heard, why in _collect_heard_ports(membership, neighbours, None)
        if heard is not None and not why
    ]
    names = _list_names({switch for _end, switch in found})
    return {(end.rail, end.node): names[switch] for end, switch in found}


def find_ports_without_lldp(membership: Membership, neighbours: Neighbours) -> tuple[Unheard, ...]:
    """Return the ports of which LLDP did not show the switch.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: switches that each node observed by LLDP
    """
    return tuple(
        Unheard(end.node, end.rail, netdev.name if netdev is not None else "", why)
        for end, netdev, _heard, why in _collect_heard_ports(membership, neighbours, None)
        if why
    )


def _collect_heard_ports(
    membership: Membership, neighbours: Neighbours, only: typing.Optional[typing.Container[Port]]
) -> list[_Found]:
    """Return each port that takes part, with its network interface, the switch port to which it is cabled, and the
    reason if the switch port is unknown.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: switches that each node observed by LLDP
    :param only: rail and node of each port that takes part; None for all ports
    """
    ports = [
        (
            End(node, member.rail, f"{node} {_name_interface(member)}", 0),
            *_read_port_neighbour(member, neighbours.get(node)),
        )
        for node, members in membership.members.items()
        for member in members
        if only is None or (member.rail, node) in only
    ]
    counted = collections.Counter(heard for _end, _netdev, heard, _why in ports if heard is not None)
    # VLANs of one port are one port
    return [
        (end, netdev, heard, why or _explain_shared_switch_port(heard, counted)) for end, netdev, heard, why in ports
    ]


def _name_interface(member: Member) -> str:
    """Return the name of a member's network interface, or of its HCA if it has none. The name is unique on the node.

    :param member: HCA of the fabric
    """
    return next((netdev.name for netdev in member.hca.all_netdevs), member.hca.name)


def _read_port_neighbour(
    member: Member, observed: typing.Optional[ObservedNeighbours]
) -> tuple[typing.Optional[Netdev], typing.Optional[SwitchPort], str]:
    """Return the network interface of a member, the switch port to which it is cabled, and the reason if the switch
    port is unknown.

    :param member: HCA of the fabric
    :param observed: LLDP neighbors that the node observed; None if it gave no answer
    """
    netdevs = member.hca.all_netdevs
    if not netdevs:
        return None, None, "its HCA has no network interface"
    if observed is None or observed.value is None:
        error = (observed.error if observed is not None else None) or "no data from the node"
        return netdevs[0], None, f"LLDP was not read on the node: {both_ends(error, _MOST_ERROR)}"
    bonded = next((netdev for netdev in netdevs if netdev.bond), None)
    if bonded is not None:
        return (
            bonded,
            None,
            f"{bonded.name} is part of {bonded.bond}, and the cable of the bond that a flow takes is unknown",
        )
    by_name = {item.name: item for item in observed.value.netdevs}
    listened = [netdev for netdev in netdevs if netdev.name in by_name]
    if not listened:
        return netdevs[0], None, f"{netdevs[0].name} has no link, or LLDP was not read on it"
    ports = list(
        dict.fromkeys(_normalize_switch_port(port) for netdev in listened for port in by_name[netdev.name].switch_ports)
    )
    if len(ports) == 1:
        return next(netdev for netdev in listened if by_name[netdev.name].switch_ports), ports[0], ""
    if ports:
        several = join_first(sorted(_format_switch_port(port) for port in ports), _MOST_HEARD)
        return (
            listened[0],
            None,
            f"{listened[0].name} received LLDP from {several}, which contradict each other: a bridge or a switch"
            " without LLDP is in between, or another device on the link sends LLDP",
        )
    return (
        listened[0],
        None,
        f"{listened[0].name} received LLDP from no switch{_explain_errors(observed.value, listened[0])}",
    )


def _explain_errors(value: NodeNeighbours, netdev: Netdev) -> str:
    """Return the error that prevented the reception of LLDP on an interface, in parentheses; empty if there was
    none.
    """
    mine = [error for error in value.errors if error.startswith(f"LLDP on {netdev.name}:")]
    return f" ({both_ends(mine[0], _MOST_ERROR)})" if mine else ""


def _normalize_switch_port(port: SwitchPort) -> SwitchPort:
    """Return the switch port without its VLAN. A switch port that sends LLDP in several VLANs is thus recognized as one
    port.
    """
    return SwitchPort(port.chassis, port.port, port.system)


def _explain_shared_switch_port(heard: typing.Optional[SwitchPort], counted: typing.Mapping[SwitchPort, int]) -> str:
    """Return the explanation that several ports received the LLDP of one port of a switch. Return an empty text if only
    one port received it.

    :param heard: port of a switch that a port received by LLDP; None if it received none
    :param counted: number of ports that received each port of a switch
    """
    if heard is None or counted[heard] < 2:
        return ""
    return (
        f"{counted[heard]} ports received LLDP from {_format_switch_port(heard)}: a bridge, or a switch that forwards"
        " LLDP, is in between"
    )


def _format_switch_port(port: SwitchPort) -> str:
    return f"{cut_text(port.system or port.chassis, _MOST_NAME)} port {cut_text(port.port, _MOST_NAME)}"


def _identify_switch(port: SwitchPort) -> _Switch:
    return port.chassis, port.system


def _list_names(switches: typing.Iterable[_Switch]) -> dict[_Switch, str]:
    """Return the name of each switch: its system name, with the chassis ID appended if two switches have the same
    system name. A switch without a system name is named by its chassis ID.

    :param switches: chassis ID and system name of each switch
    """
    known = list(switches)
    counted = collections.Counter(system for _chassis, system in known)
    return {
        (chassis, system): chassis if not system else system if counted[system] == 1 else f"{system} ({chassis})"
        for chassis, system in known
    }
