# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the rates that the link and the PCIe link of each HCA could carry, whatever the rates to which they trained
down. All stages that need a floor use them.

The capability of a link is the highest rate that both of its ends support. On InfiniBand iblinkinfo reports it. On
Ethernet it comes from the port (ethtool) and, with autonegotiation, from its link partner, else from the other ports of
the fabric. ``line_rate.expected_gbps`` of the intent takes precedence on both. The capability of a PCIe link is the
highest rate that both the card and the port above it (its slot) support. A rate that other nodes are compared with
needs two nodes that report it. If only two nodes have such a port or card, the report of one is enough.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import LANE_GBPS, ObservedTopologies, SeenTopology
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import Hca, NodeHcas
from ..bandwidth.pcie_rates import Pcie, find_pcie
from .bonds import count_links, list_other_parts
from .hca_locations import collect_far_ends, collect_possible_rates, end_of, find_topology_or_first_view, number_by_leaf
from .hcas_of_fabric import Member, Subnets, resolve_members
from .witnesses import Boards, find_witnessed

_WIDTH = re.compile(r"\b([0-9]{1,2})X\b", re.ASCII)
_SPEED = re.compile(r"\b([0-9]{1,4}(?:\.[0-9]{1,6})?) Gbps\b", re.ASCII)

#: speeds of InfiniBand whose rate the kernel tells with its encoding, 8b/10b, and what of it is data
_OLD, _DATA_OF_OLD = ("SDR", "DDR", "QDR"), 0.8
#: of FDR the kernel tells 56 Gb/s, of which 54.3 are data (64b/66b)
_DATA_OF_FDR = 0.96
#: drivers of devices that a hypervisor makes up: memory, with a rate that means nothing
_HYPERVISORS = ("virtio-pci", "vmxnet3", "e1000")

#: node and PCI address of the function
Function = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class HcaRates:
    """The rates of the links of one HCA.

    :ivar hca: name of the HCA
    :ivar rail: rail of the HCA
    :ivar now: present rate of its port in Gb/s; None without a link, or if no source reports it
    :ivar could: rate in Gb/s that both ends of its link support; None if unknown
    :ivar why: source of ``could``, or the reason why it is unknown
    :ivar pcie: PCIe link of the HCA; None for a virtual device of a hypervisor
    :ivar data: share of ``could`` that carries data after the encoding of old speeds
    :ivar told_share: smallest share of the rate of the kernel by which a user may name the same link. It is below 1.0
        for old speeds, which are also named by their rate after encoding
    :ivar slower_than: text on other ports of the same kind on the fabric that run faster, if the far end of the cable
        of this port offers less than their rate; empty otherwise
    :ivar links: number of links that can carry the data of the HCA: those of its bond, otherwise 1. The floor counts
        one of them
    :ivar card: highest rate in Gb/s that its own Ethernet port supports, if the port at the other end limits the link
        to less and the intent expects no rate; otherwise None
    :ivar parts: rates of the other functions of its bond, which carry a part of the data; empty without a bond
    """

    hca: str
    rail: int
    now: typing.Optional[float]
    could: typing.Optional[float]
    why: str
    pcie: typing.Optional[Pcie] = None
    data: float = 1.0
    told_share: float = 1.0
    slower_than: str = ""
    links: int = 1
    card: typing.Optional[float] = None
    parts: tuple[HcaRates, ...] = ()


#: by node and PCI address
LineRates = typing.Mapping[Function, HcaRates]


def find_line_rates(
    fabric: Fabric,
    nodes: typing.Mapping[str, NodeHcas],
    subnets: Subnets,
    topologies: typing.Mapping[str, ObservedTopologies],
    in_pods: typing.Mapping[Function, float],
) -> tuple[LineRates, str]:
    """Return the rates of the HCAs of a fabric, by node and PCI address, and an empty text. If the fabric could not be
    identified, the rates are empty and the text is the reason.

    :param nodes: HCAs of each node that could be read
    :param subnets: subnets that the ports of each node see
    :param topologies: topologies that fabric_info read, or the error, by node
    :param in_pods: rates in Gb/s that were read in the pods. An interface that moved into a pod shows no rate on its
        node
    """
    membership = number_by_leaf(resolve_members(fabric, nodes, subnets), topologies)
    members = [
        (name, member, member.hca.pci)
        for name, members in membership.members.items()
        for member in members
        if member.hca.pci
    ]
    # in the order of the members, as a bond carries their data through other functions as well
    parts = [
        (place, name, part)
        for place, (name, member, _pci) in enumerate(members)
        for part in list_other_parts(fabric, nodes[name], member.hca)
    ]
    slower = [""] * len(members)
    if is_infiniband(fabric):
        seen, why = find_topology_or_first_view(membership, topologies)
        links = _find_infiniband(seen, why, [member for _name, member, _pci in members])
    else:
        links, slower = _find_ethernet(
            [
                *((name, member.hca, in_pods.get((name, pci.address))) for name, member, pci in members),
                *((name, part, None) for _place, name, part in parts),
            ]
        )
    boards = Boards(
        [*((name, member.hca) for name, member, _pci in members), *((name, part) for _place, name, part in parts)]
    )
    of_bonds: list[list[HcaRates]] = [[] for _member in members]
    for (place, name, part), link, slower_than in zip(parts, links[len(members) :], slower[len(members) :]):
        other = Member(members[place][1].rail, part)
        of_bonds[place].append(_build_rates(fabric, boards, name, other, link, slower_than))
    result = {}
    for (name, member, pci), link, slower_than, of_bond in zip(members, links, slower, of_bonds):
        found = _build_rates(fabric, boards, name, member, link, slower_than)
        bonded = 1 if found.pcie is None else count_links(fabric, nodes[name], member.hca)
        result[name, pci.address] = dataclasses.replace(found, links=bonded, parts=tuple(of_bond))
    return result, membership.why


def _build_rates(fabric: Fabric, boards: Boards, name: str, member: Member, link: _Link, slower_than: str) -> HcaRates:
    """Return the rates of the links of an HCA.

    :param boards: capabilities of the cards of the fabric
    :param name: name of the node
    :param link: present rate of its port, the rate that its link supports, and the source of the latter
    :param slower_than: text on other ports of its kind that run faster; empty without such ports
    """
    (now, could, by), expected, pci = link, fabric.line_rate.expected_gbps, member.hca.pci
    told = (could, by) if expected is None else (expected, "line_rate.expected_gbps")
    if pci is None or pci.driver in _HYPERVISORS:
        return HcaRates(member.hca.name, member.rail, None, *told)
    share = _DATA_OF_OLD if member.port and member.port.speed in _OLD and told[0] == now else 1.0
    pcie = find_pcie(boards.complete_link(name, member.hca, pci.link))
    pcie = dataclasses.replace(pcie, alone=boards.describe_alone(name, member.hca))
    least = _find_told_share(member.port.speed if member.port else None)
    found = HcaRates(member.hca.name, member.rail, now, *told, pcie, share, least)
    if expected is not None:
        # what the intent expects decides, whatever other ports run at
        return found
    card = None if is_infiniband(fabric) else _find_ethernet_port(member.hca, None)[1]
    limited = card is not None and could is not None and could < card
    return dataclasses.replace(found, slower_than=slower_than, card=card if limited else None)


def _find_told_share(speed: typing.Optional[str]) -> float:
    """Return the share of the rate of the kernel that remains after the encoding of an old speed: 0.8 for SDR, DDR and
    QDR, 0.96 for FDR, and 1.0 for other and unknown speeds. A user may name the link by that smaller rate too.

    :param speed: name of the speed; None if unknown
    """
    return _DATA_OF_OLD if speed in _OLD else _DATA_OF_FDR if speed == "FDR" else 1.0


_Link = tuple[typing.Optional[float], typing.Optional[float], str]


def _find_infiniband(seen: typing.Optional[SeenTopology], why: str, members: typing.Sequence[Member]) -> list[_Link]:
    """Return for the port of each member its present rate, the rate that its link supports, and the source of the
    latter.

    :param seen: topology and link capabilities as read through one port; None if nothing was read
    :param why: why there is no topology; empty if there is one
    :param members: members of the fabric
    """
    capabilities, topology = (seen.capabilities, seen.topology) if seen else (None, None)
    if topology is None or capabilities is None or capabilities.error is not None:
        known = (capabilities.error if capabilities else None) or why
        why = (
            f"iblinkinfo returned no rates, because {known[:1].lower()}{format_clause(known)[1:]}"
            if known.startswith("No topology")
            else f"iblinkinfo returned no rates ({format_clause(known)})"
            if known
            else "iblinkinfo was not run"
        )
        return [(member.port.rate_gbps if member.port else None, None, why) for member in members]
    ends = collect_far_ends(topology)
    faster = collect_possible_rates(capabilities)
    complete = capabilities.links >= 2 * len(topology.links)
    result: list[_Link] = []
    for member in members:
        port = member.port
        if port is None or port.rate_gbps is None:
            result.append((None, None, "sysfs shows no rate of the port"))
        elif port.guid not in ends:
            result.append((port.rate_gbps, None, "the topology does not show the link"))
        else:
            far, link = ends[port.guid]
            more = faster.get((port.guid, port.number)) or faster.get(end_of(far))
            shown = (link.width or 0) * LANE_GBPS.get(link.speed or "", 0.0)
            if not more and complete and shown > port.rate_gbps:
                # whatever the node says of its own port, the fabric shows the link
                result.append((port.rate_gbps, shown, f"the topology shows {link.width}X {link.speed}"))
                continue
            could = (
                _parse_possible_rate(port.rate_gbps, port.width, more) if more else port.rate_gbps if complete else None
            )
            result.append(
                (
                    port.rate_gbps,
                    could,
                    (
                        f"iblinkinfo: could be {more}"
                        if more
                        else "iblinkinfo"
                        if complete
                        else "iblinkinfo did not report all ports"
                    ),
                )
            )
    return result


def _parse_possible_rate(rate: float, width: typing.Optional[int], words: str) -> typing.Optional[float]:
    """Return the rate in Gb/s that a port supports according to iblinkinfo, or None if the text has an unknown form or
    the rate is not above the present one.

    :param rate: present rate in Gb/s
    :param width: present number of lanes
    :param words: text of iblinkinfo, such as ``12X`` or ``106.25 Gbps`` a lane, or both
    """
    lanes, speed = _WIDTH.search(words), _SPEED.search(words)
    if not width or not (lanes or speed):
        return None
    # iblinkinfo prints the signalling rate, which is a little more than the data rate: 106.25 for 100
    lane = (
        max((known for known in LANE_GBPS.values() if known <= float(speed.group(1))), default=0.0)
        if speed
        else rate / width
    )
    could = lane * (int(lanes.group(1)) if lanes else width)
    return could if could > rate else None


def _find_ethernet(
    hcas: typing.Sequence[tuple[str, Hca, typing.Optional[float]]],
) -> tuple[list[_Link], list[str]]:
    """Return two lists with an item for each NIC. The first has the present rate of its port in Gb/s, the rate that its
    link supports, and the source of the latter. The second has a description of the ports of its kind that run faster
    than the port at the other end of its cable offers; empty without such ports.

    The capability of the port does not prove that of the switch. A port of the same kind that runs faster does, on the
    same node, or on two other nodes.

    :param hcas: node of each NIC, the NIC, and the rate in Gb/s that was read in a pod, or None
    """
    ports = [(node, *_find_ethernet_port(hca, in_pod)) for node, hca, in_pod in hcas]
    of_kind: dict[typing.Optional[float], dict[str, float]] = {}
    for node, now, card, _partner in ports:
        known = of_kind.setdefault(card, {})
        known[node] = max(now or 0.0, known.get(node, 0.0))
    kinds = {card: find_witnessed(known) for card, known in of_kind.items()}
    result: list[_Link] = []
    slower: list[str] = []
    for node, now, card, partner in ports:
        seen, own = kinds[card], of_kind[card][node]
        best = max(seen.most, own)
        where = f" ({join_first(seen.nodes, 3)})" if seen.most >= own else ""
        offers_less = card is not None and partner is not None and now is not None and max(now, partner) < best
        slower.append(f"other ports of its kind on this fabric{where} run at {best:g} Gb/s" if offers_less else "")
        note = (
            f"; {seen.alone} alone reports a faster port of its kind ({seen.above:g} Gb/s)"
            if seen.alone not in ("", node)
            else ""
        )
        if card is not None and partner is not None:
            result.append((now, min(card, partner), "ethtool: both ends of its link"))
        elif card is not None and now is not None and now >= card:
            result.append((now, now, "ethtool: the highest rate that its port supports"))
        elif now is not None and now < best:
            result.append((now, best, f"other ports of its kind on this fabric{where}"))
        elif card is not None:
            result.append(
                (
                    now,
                    None,
                    (
                        f"its port supports {card:g} Gb/s, and the capability of the port at the other end of its cable"
                        f" is unknown{note}"
                    ),
                )
            )
        else:
            result.append((now, None, f"its driver does not report the rates that its port supports{note}"))
    return result, slower


def _find_ethernet_port(
    hca: Hca, in_pod: typing.Optional[float]
) -> tuple[typing.Optional[float], typing.Optional[float], typing.Optional[float]]:
    """Return three rates in Gb/s: the present rate of a port, the highest rate that it supports, and the highest rate
    that its link partner supports. An unknown rate is None. Only ports that are up count, because drivers invent a rate
    for a port that is down.

    :param in_pod: rate in Gb/s that was read in a pod; None if no rate was read there
    """
    now = max((netdev.speed_gbps for netdev in hca.netdevs if netdev.speed_gbps), default=None) or in_pod
    now = now or max((port.rate_gbps for port in hca.ports if port.rate_gbps and port.state == "ACTIVE"), default=None)
    card = max((netdev.supported_gbps for netdev in hca.netdevs if netdev.supported_gbps), default=None)
    partner = max((netdev.partner_gbps for netdev in hca.netdevs if netdev.partner_gbps), default=None)
    return (
        now,
        max(card, now or 0.0) if card is not None else None,
        max(partner, now or 0.0) if partner is not None else None,
    )
