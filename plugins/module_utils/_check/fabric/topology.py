# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, the topology: HCAs and their leaves, rails, links between switches, rates, GUIDs that are there
twice."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import typing

from ..._model.cables import ANY, take_cables
from ..._model.fabric import LANE_GBPS, Link, LinkEnd, SeenCapabilities, Topology
from ..._model.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..._model.intent import Fabric
from ..._model.text import folded
from ..fleet.hcas_of_fabric import Member, Membership
from ..fleet.host_names import host_of, owners
from ..fleet.places import could_be, end_of, families_of, far_ends
from .names import MOST, FabricFacts, Names, some
from .way import Way

#: of the nodes: when more are cabled in a way of their own, the fabric has no rails at all
_NO_RAILS = 0.25
#: at each link of a leaf, when leaves are compared; that of a fabric in pods is looked at once
_MOST_LOOKS = 20
#: ports with several cables that have a finding each
_MOST_DOUBLED = 32
#: HCAs of a node, in the words of a finding
_MOST_HCAS = 16

_Ends = typing.Mapping[str, tuple[LinkEnd, Link]]


def check_topology(
    fabric: Fabric,
    membership: Membership,
    topology: Topology,
    capabilities: typing.Optional[SeenCapabilities],
    world: FabricFacts,
) -> list[Finding]:
    """All that the topology of a fabric shows. What passes is summed up by node or fabric: ten thousand hosts must stay
    readable."""
    names, ends, way = Names(topology), far_ends(topology), Way(membership, topology)
    return [
        _describe(fabric, topology),
        *_check_hcas(fabric, membership, ends, names),
        *_check_rails(fabric, membership, ends, names),
        *_check_uplinks(fabric, topology, names, way),
        *_check_hca_rates(fabric, membership, ends, capabilities),
        *_check_switch_rates(fabric, topology, capabilities, names, way),
        _check_capabilities(fabric, topology, capabilities, names),
        *_check_foreign(fabric, membership, topology, world, ends),
        *_check_guids(fabric, membership, topology, names),
    ]


def _describe(fabric: Fabric, topology: Topology) -> Finding:
    """Aggregation nodes of SHARP are inside switches: no HCA of anybody."""
    switches = sum(node.kind == "Switch" for node in topology.nodes)
    hcas = sum(node.kind == "Ca" and not node.aggregation for node in topology.nodes)
    return ok(
        "fabric.topology",
        fabric.name,
        f"{switches} switches, {hcas} HCAs, {len(topology.links)} links",
        "a topology from one port",
    )


def _check_hcas(fabric: Fabric, membership: Membership, ends: _Ends, names: Names) -> list[Finding]:
    """Each member must be there in the fabric, and linked. One finding a node, and one for each HCA that is not."""
    expected = f"linked in the topology of {fabric.name}"
    findings = []
    for name, members in membership.members.items():
        places = []
        for member in members:
            guid = member.port.guid if member.port else None
            subject = f"{name} {member.hca.name}"
            if guid is None:
                why = "The port's GUID could not be read, so it can't be looked up in the topology."
                findings.append(
                    Finding(
                        "fabric.hca",
                        subject,
                        UNKNOWN,
                        "no port GUID",
                        expected,
                        why,
                        "See the finding discover.read of this node.",
                    )
                )
            elif guid in ends:
                far, link = ends[guid]
                places.append(
                    f"rail {member.rail} {member.hca.name}: {names.port(far.guid, far.port)},"
                    f" {link.width or '?'}x{link.speed or '?'}"
                )
            else:
                why = (
                    f"The port {guid} is not in the topology, although its node shows it: the discovery did not reach"
                    " it, or it is on another fabric."
                )
                remedy = "Run ibnetdiscover on the node itself and compare; check the cable's far end."
                findings.append(Finding("fabric.hca", subject, FAIL, "not in the topology", expected, why, remedy))
        if places:
            findings.append(ok("fabric.hca", f"{name} {fabric.name}", folded(places, _MOST_HCAS, "; "), expected))
    return findings


# rails

#: the leaves of a node by rail; None where the topology shows none
_Cabling = tuple[typing.Optional[str], ...]


def _check_rails(fabric: Fabric, membership: Membership, ends: _Ends, names: Names) -> list[Finding]:
    """HCA k of each node must be on the leaf of the k-th HCAs of the nodes beside it.

    Nodes that share a leaf must share all of them. One that does not is compared with the most similar cabling that
    more nodes have. Only servers of one model are compared: the order of the slots means nothing beside another one.
    """
    expected = "HCA k of nodes side by side on one leaf"
    if fabric.rails == "none":
        return [ok("fabric.rails", fabric.name, "not compared: the intent says rails: none", "any cabling")]
    cablings = _cablings(membership, ends)
    models = [
        _Cablings.of({name: cablings[name] for name in group if name in cablings}) for group in families_of(membership)
    ]
    odd = sum(len(model.odd) for model in models)
    if odd > MOST and sum(
        len(model.nodes[cabling]) for model in models for cabling, _rival in model.odd
    ) > _NO_RAILS * len(cablings):
        why = (
            f"{odd} ways of cabling are found among {len(cablings)} nodes: this fabric is not built in rails, or many"
            " cables are swapped."
        )
        remedy = (
            "If it shall have rails, compare the nodes' findings fabric.hca with the cabling plan; if not, write"
            " 'rails: none' into the fabric."
        )
        return [Finding("fabric.rails", fabric.name, WARN, f"{odd} ways of cabling", expected, why, remedy)]
    findings = [
        finding for model in models for finding in _check_model(fabric, model, membership, ends, names, expected)
    ]
    leaves = len({leaf for cabling in cablings.values() for leaf in cabling if leaf})
    return findings or [ok("fabric.rails", fabric.name, f"{len(cablings)} nodes on {leaves} leaves", expected)]


def _check_model(
    fabric: Fabric, model: _Cablings, membership: Membership, ends: _Ends, names: Names, expected: str
) -> typing.Iterator[Finding]:
    nodes = model.nodes
    for cabling, rival in model.odd:
        rails = _differing(cabling, rival)
        for name in nodes[cabling]:
            usual = some([f"rail {rail} on {names.node(rival[rail] or '')}" for rail in rails])
            beside = model.having(rival, rails)
            why = f"{_how(cabling, rival, rails)} {len(beside)} nodes beside it have {usual}: {some(beside)}."
            yield _wrong_cable(f"{name} {fabric.name}", _where(name, membership, ends, names, rails), usual, why)
    for cabling, rival in model.tied:
        # each pair once
        if nodes[cabling][0] < nodes[rival][0]:
            rails = _differing(cabling, rival)
            both = [_where(group[0], membership, ends, names, rails) for group in (nodes[cabling], nodes[rival])]
            why = (
                f"{_how(cabling, rival, rails)} As many nodes are cabled one way as the other, so the cabling plan must"
                f" tell which is right: {some(model.having(cabling, rails))} against"
                f" {some(model.having(rival, rails))}."
            )
            yield _wrong_cable(fabric.name, "; ".join(both), expected, why)


@dataclasses.dataclass(frozen=True)
class _Cablings:
    """How the servers of one model are cabled.

    :ivar nodes: by cabling
    :ivar alike: by cabling those that agree with it, itself first
    :ivar odd: a cabling, and the one with which more nodes agree and that it contradicts
    :ivar tied: the same, where as many agree with the other one
    """

    nodes: typing.Mapping[_Cabling, typing.Sequence[str]]
    alike: typing.Mapping[_Cabling, typing.Sequence[_Cabling]]
    odd: typing.Sequence[tuple[_Cabling, _Cabling]]
    tied: typing.Sequence[tuple[_Cabling, _Cabling]]

    @classmethod
    def of(cls, cablings: typing.Mapping[str, _Cabling]) -> _Cablings:
        nodes: dict[_Cabling, list[str]] = {}
        for name, cabling in cablings.items():
            nodes.setdefault(cabling, []).append(name)
        alike = _agreeing(nodes)
        count = {cabling: sum(len(nodes[other]) for other in others) for cabling, others in alike.items()}
        rivals = _rivals(count)
        odd = [(cabling, rival) for cabling, rival in rivals.items() if count[rival] > count[cabling]]
        return cls(
            nodes, alike, odd, [(cabling, rival) for cabling, rival in rivals.items() if count[rival] == count[cabling]]
        )

    def having(self, cabling: _Cabling, rails: typing.Sequence[int]) -> list[str]:
        """The nodes that agree with a cabling and have one of its leaves on these rails at least."""
        return [
            name
            for other in self.alike[cabling]
            if any(cabling[rail] == other[rail] for rail in rails)
            for name in self.nodes[other]
        ]


def _wrong_cable(subject: str, measured: str, expected: str, why: str) -> Finding:
    remedy = (
        "Put the cables right at one of the ends named here; until then traffic of one rail takes the way over the"
        " spines."
    )
    return Finding("fabric.rails", subject, FAIL, measured, expected, why, remedy)


def _cablings(membership: Membership, ends: _Ends) -> dict[str, _Cabling]:
    """By node, of those that have a leaf at all."""
    result = {}
    rails = 1 + max((member.rail for members in membership.members.values() for member in members), default=-1)
    for name, members in membership.members.items():
        leaves: list[typing.Optional[str]] = [None] * rails
        for member in members:
            far = _far(member, ends)
            leaves[member.rail] = far.guid if far else None
        if any(leaves):
            result[name] = tuple(leaves)
    return result


def _far(member: Member, ends: _Ends) -> typing.Optional[LinkEnd]:
    """The port of the leaf at the other end of an HCA's cable."""
    far = ends.get(member.port.guid or "") if member.port else None
    return far[0] if far and far[0].kind == "Switch" else None


def _by_leaf(cablings: typing.Collection[_Cabling]) -> dict[str, list[_Cabling]]:
    """The cablings that have a leaf, on whichever rail."""
    by_leaf: dict[str, list[_Cabling]] = {}
    for cabling in cablings:
        for leaf in {leaf for leaf in cabling if leaf}:
            by_leaf.setdefault(leaf, []).append(cabling)
    return by_leaf


def _agreeing(cablings: typing.Collection[_Cabling]) -> dict[_Cabling, list[_Cabling]]:
    """For each cabling itself and those that are the same as far as both show it: one that lacks a cable agrees with
    the whole one."""
    by_leaf = _by_leaf(cablings)
    result = {}
    for cabling in cablings:
        near = dict.fromkeys(other for leaf in cabling if leaf for other in by_leaf[leaf] if other != cabling)
        result[cabling] = [
            cabling,
            *(other for other in near if _alike(cabling, other) and not _differing(cabling, other)),
        ]
    return result


def _rivals(count: typing.Mapping[_Cabling, int]) -> dict[_Cabling, _Cabling]:
    """For each cabling that contradicts another one, the most similar of them, and of several the one with which most
    nodes agree."""
    by_leaf = _by_leaf(count)
    result = {}
    for cabling in count:
        near = {
            other
            for leaf in cabling
            if leaf
            for other in by_leaf[leaf]
            if other != cabling and _differing(cabling, other)
        }
        if near:
            result[cabling] = max(
                near, key=lambda other: (_alike(cabling, other), count[other], tuple(leaf or "" for leaf in other))
            )
    return result


def _differing(one: _Cabling, other: _Cabling) -> list[int]:
    """The rails on which both have a leaf, and not the same."""
    return [rail for rail, (first, second) in enumerate(zip(one, other)) if first and second and first != second]


def _alike(one: _Cabling, other: _Cabling) -> int:
    return sum(first == second for first, second in zip(one, other) if first)


def _how(cabling: _Cabling, rival: _Cabling, rails: typing.Sequence[int]) -> str:
    swapped = len(rails) == 2 and cabling[rails[0]] == rival[rails[1]] and cabling[rails[1]] == rival[rails[0]]
    return (
        f"The cables of rail {rails[0]} and rail {rails[1]} are swapped."
        if swapped
        else f"Cabled another way: rail {some(list(map(str, rails)))}."
    )


def _where(node: str, membership: Membership, ends: _Ends, names: Names, rails: typing.Sequence[int]) -> str:
    """Both ends of each cable."""
    words = []
    for member in membership.members[node]:
        far = _far(member, ends)
        if member.rail in rails and far:
            words.append(f"{member.hca.name} on {names.port(far.guid, far.port)}")
    return f"{node}: {some(words)}"


# links


def _switch_links(topology: Topology) -> list[Link]:
    return [link for link in topology.links if link.a.kind == "Switch" and link.b.kind == "Switch"]


def _check_uplinks(fabric: Fabric, topology: Topology, names: Names, way: Way) -> list[Finding]:
    """A leaf with fewer links to other switches than the intent says, else than most of the leaves that share a switch
    with it.

    Only leaves with HCAs of the fabric are compared: one for storage is built otherwise. What all of them lack, such as
    one spine, only the intent tells. A leaf with fewer HCAs than the others needs fewer links: one of which no HCA has
    a smaller share is a warning.
    """
    uplinks: dict[str, typing.Counter[str]] = {leaf: collections.Counter() for leaf in sorted(way.leaves)}
    for link in _switch_links(topology):
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.guid in uplinks:
                uplinks[near.guid][far.guid] += 1
    most = max((sum(count.values()) for count in uplinks.values()), default=0)
    expected = "as many as the leaves beside it; what all lack only uplinks of the intent tells"
    if fabric.uplinks is not None:
        expected = f"{fabric.uplinks} at least, as the intent says"
        findings = _check_wanted_uplinks(fabric.uplinks, uplinks, names)
    else:
        findings = list(_compare_uplinks(fabric, uplinks, _hcas_by_leaf(topology), names, expected))
    return findings or [
        ok(
            "fabric.uplinks",
            fabric.name,
            f"{len(uplinks)} leaves, {most} links to other switches each at most",
            expected,
        )
    ]


#: links of a leaf to other switches, by the GUID of these
_Uplinks = typing.Counter[str]


def _check_wanted_uplinks(wanted: int, uplinks: typing.Mapping[str, _Uplinks], names: Names) -> list[Finding]:
    findings = []
    for leaf, count in uplinks.items():
        own = sum(count.values())
        if own < wanted:
            has = some([f"{names.node(guid)} ({count[guid]})" for guid in sorted(count)]) or "none"
            why = (
                f"The intent says that each leaf has {wanted} links to other switches (uplinks). This one has links to:"
                f" {has}."
            )
            findings.append(
                Finding(
                    "fabric.uplinks",
                    names.node(leaf),
                    FAIL,
                    f"{own} links to other switches",
                    f"{wanted} links",
                    why,
                    _OF_UPLINKS,
                )
            )
    return findings


def _compare_uplinks(
    fabric: Fabric, uplinks: typing.Mapping[str, _Uplinks], hcas: typing.Mapping[str, int], names: Names, expected: str
) -> typing.Iterator[Finding]:
    """Leaves with fewer links than those beside them.

    All leaves of a pod have the same leaves beside them, so that a fabric is looked at once. A topology in which each
    leaf has others beside it is made up.
    """
    most = max((sum(count.values()) for count in uplinks.values()), default=0)
    work = _MOST_LOOKS * sum(map(len, uplinks.values()))
    for mask, leaves in _leaves_by_neighbours(uplinks).items():
        short = [leaf for leaf in leaves if sum(uplinks[leaf].values()) < most]
        if not short or mask & (mask - 1) == 0:
            continue
        beside = [leaf for leaf, bit in zip(uplinks, reversed(f"{mask:b}")) if bit == "1"]
        work -= len(uplinks) + sum(len(uplinks[leaf]) for leaf in beside)
        if work < 0:
            why = (
                "Almost each leaf shares switches with other leaves than the leaf beside it, so the leaves can't be"
                " compared."
            )
            remedy = (
                f"Write the number of links that each leaf has to other switches into the fabric '{fabric.name}':"
                " uplinks: NUMBER."
            )
            yield Finding(
                "fabric.uplinks",
                fabric.name,
                UNKNOWN,
                f"{len(uplinks)} leaves, not all compared",
                expected,
                why,
                remedy,
            )
            return
        yield from _compare_leaves(short, {leaf: uplinks[leaf] for leaf in beside}, hcas, names)


def _leaves_by_neighbours(uplinks: typing.Mapping[str, _Uplinks]) -> dict[int, list[str]]:
    """The leaves, by those that share a switch with them, themselves among these: one bit for each, in the order of the
    leaves."""
    below: dict[str, int] = {}
    for number, leaf in enumerate(uplinks):
        for guid in uplinks[leaf]:
            below[guid] = below.get(guid, 0) | 1 << number
    masks: dict[int, list[str]] = {}
    for number, leaf in enumerate(uplinks):
        masks.setdefault(
            functools.reduce(operator.or_, (below[guid] for guid in uplinks[leaf]), 1 << number), []
        ).append(leaf)
    return masks


def _compare_leaves(
    short: typing.Iterable[str], pod: typing.Mapping[str, _Uplinks], hcas: typing.Mapping[str, int], names: Names
) -> typing.Iterator[Finding]:
    """:param short: the leaves that may have too few links
    :param pod: these leaves and those beside them, two at least
    """
    totals = {leaf: sum(count.values()) for leaf, count in pod.items()}
    by_total = collections.Counter(totals.values())
    by_switch: dict[str, typing.Counter[int]] = {}
    for count in pod.values():
        for guid, links in count.items():
            by_switch.setdefault(guid, collections.Counter())[links] += 1
    for told in by_switch.values():
        told[0] = len(pod) - sum(told.values())
    # where fewer than half of the leaves have a link to it, to have none is usual
    common = {guid: told for guid, told in sorted(by_switch.items()) if 2 * told[0] <= len(pod) + 1}
    crowds: dict[int, int] = {}
    for leaf in short:
        own, count = totals[leaf], pod[leaf]
        usual = _usual_beside(by_total, own)
        if own >= usual:
            continue
        if usual not in crowds:
            crowds[usual] = _usual(hcas[name] for name, total in totals.items() if total >= usual)
        crowd = crowds[usual]
        if hcas[leaf] < crowd and (own >= hcas[leaf] or own * crowd >= usual * hcas[leaf]):
            measured, expected = (
                f"{own} links to other switches for {hcas[leaf]} HCAs",
                f"{usual} links for {crowd} HCAs, or as many for each HCA",
            )
            why = (
                "The leaf has fewer links than those beside it, and fewer HCAs: it may be built so, or it has lost"
                " links that its HCAs don't need yet."
            )
            yield Finding("fabric.uplinks", names.node(leaf), WARN, measured, expected, why, _OF_FEWER_HCAS)
            continue
        usually = {guid: _usual_beside(told, count[guid]) for guid, told in common.items()}
        missing = [
            f"{names.node(guid)} ({count[guid]} of {links})" for guid, links in usually.items() if count[guid] < links
        ]
        why = (
            f"Most leaves beside it have {usual} links to other switches. Fewer than the others has it to:"
            f" {some(missing) or 'no one switch'}."
        )
        yield Finding(
            "fabric.uplinks",
            names.node(leaf),
            FAIL,
            f"{own} links to other switches",
            f"{usual} links",
            why,
            _OF_UPLINKS,
        )


_OF_UPLINKS = "See the ports of both switches (iblinkinfo --down), and seat or replace the cable."
_OF_FEWER_HCAS = (
    "Compare the leaf with the cabling plan. If it has lost links, see its ports that are down (iblinkinfo --down), and"
    " seat or replace the cables."
)


def _hcas_by_leaf(topology: Topology) -> typing.Counter[str]:
    """Ports of HCAs, of whomever, by the switch to which they are cabled. Aggregation nodes of SHARP are inside of
    switches."""
    inside = {node.guid for node in topology.nodes if node.aggregation}
    ends = ((near, far) for link in topology.links for near, far in ((link.a, link.b), (link.b, link.a)))
    return collections.Counter(
        near.guid for near, far in ends if near.kind == "Switch" and far.kind == "Ca" and far.guid not in inside
    )


def _usual(numbers: typing.Iterable[int]) -> int:
    """The most frequent one; of several the largest, since what is missing can't be more than there was."""
    return _most_frequent(collections.Counter(numbers))


def _usual_beside(numbers: typing.Mapping[int, int], own: int) -> int:
    """The most frequent one of those beside a leaf.

    :param numbers: how many leaves have each number, the leaf itself among them
    :param own: of the leaf
    """
    return _most_frequent({number: leaves - (number == own) for number, leaves in numbers.items()})


def _most_frequent(numbers: typing.Mapping[int, int]) -> int:
    return max(numbers.items(), key=lambda item: (item[1], item[0]))[0]


def _check_hca_rates(
    fabric: Fabric, membership: Membership, ends: _Ends, capabilities: typing.Optional[SeenCapabilities]
) -> list[Finding]:
    """A link below what both of its ends can do: the whole collective waits for the slowest.

    Without that knowledge, and among HCAs of one board, the fastest link tells what the others could be.
    """
    known = capabilities is not None and capabilities.error is None
    faster = could_be(capabilities)
    rates = {}
    findings = []
    for name, members in membership.members.items():
        for member in members:
            subject, port = f"{name} {member.hca.name}", member.port
            if port is None:
                continue
            if port.rate_gbps is None:
                why = "The rate of the port could not be read, so whether its link is slow is not known."
                findings.append(
                    Finding(
                        "fabric.rate",
                        subject,
                        UNKNOWN,
                        "not read",
                        "a rate",
                        why,
                        f"See the finding discover.read of {name}.",
                    )
                )
                continue
            rates[subject] = (port.rate_gbps, (member.hca.board, member.hca.pci.device if member.hca.pci else None))
            far = ends.get(port.guid or "")
            more = faster.get((port.guid or "", port.number)) or (faster.get(end_of(far[0])) if far else None)
            if more:
                findings.append(_below(subject, f"{port.rate_gbps:g} Gb/s", more))
    slow = {finding.subject for finding in findings}
    best: dict[typing.Any, float] = {}
    for rate, kind in rates.values():
        best[kind] = max(rate, best.get(kind, 0.0))
    for subject, (rate, kind) in rates.items():
        if rate < best[kind] and subject not in slow:
            findings.append(_slow(subject, rate, best[kind], "HCAs of its kind", known))
    if any(finding.status in (FAIL, UNKNOWN) for finding in findings):
        return findings
    spread = ", ".join(
        f"{count} of {rate:g} Gb/s"
        for rate, count in sorted(collections.Counter(rate for rate, _kind in rates.values()).items())
    )
    return [
        *findings,
        ok(
            "fabric.rate", fabric.name, f"links of HCAs: {spread or 'none'}", "as fast as both ends of each link can be"
        ),
    ]


def _check_switch_rates(
    fabric: Fabric, topology: Topology, capabilities: typing.Optional[SeenCapabilities], names: Names, way: Way
) -> list[Finding]:
    """A link between switches below what its ends can do; without that knowledge, below most of the others. Links of
    others alone are left out."""
    links = [link for link in _switch_links(topology) if end_of(link.a) in way.ours]
    if not links:
        return []
    known = capabilities is not None and capabilities.error is None
    faster = could_be(capabilities)
    rates = {link: link.width * LANE_GBPS[link.speed] for link in links if link.width and link.speed in LANE_GBPS}
    usual = _usual(list(map(int, rates.values()))) if rates else 0
    findings = []
    for link in links:
        subject = f"{names.port(link.a.guid, link.a.port)} - {names.port(link.b.guid, link.b.port)}"
        shown, more = (
            f"{link.width or '?'}x{link.speed or '???'}",
            faster.get(end_of(link.a)) or faster.get(end_of(link.b)),
        )
        if more:
            findings.append(_below(subject, f"{rates[link]:g} Gb/s" if link in rates else shown, more))
        elif link not in rates:
            why = (
                f"The tool shows the link as {shown}: its version does not know this width or speed, or the switch did"
                " not say."
            )
            remedy = "Use infiniband-diags of rdma-core 48 or newer, which know XDR, and run iblinkinfo by hand."
            findings.append(Finding("fabric.rate", subject, UNKNOWN, shown, "a width and a speed", why, remedy))
        elif rates[link] < usual and not known:
            findings.append(_slow(subject, rates[link], usual, "switches", known))
    subject = f"{fabric.name} switches"
    return findings or [
        ok(
            "fabric.rate",
            subject,
            f"{len(rates)} links, most of {usual:g} Gb/s",
            "as fast as both ends of each link can be",
        )
    ]


def _below(subject: str, measured: str, could_be: str) -> Finding:
    why = (
        f"Both ends of the link support {could_be}, and it trained down: a cable or transceiver that is bad or too old,"
        " or a setting of a port."
    )
    remedy = "Seat or replace the cable or transceiver, and see the speeds enabled at both ports (ibportstate)."
    return Finding("fabric.rate", subject, FAIL, measured, could_be, why, remedy)


def _slow(subject: str, rate: float, best: float, kind: str, known: bool) -> Finding:
    """:param known: both ends are known to support no more, so that it may be meant so"""
    if known:
        why = (
            f"The link runs below other links of {kind}. The port at its other end supports no more: a slower or a"
            " split port of the switch."
        )
        return Finding(
            "fabric.rate",
            subject,
            WARN,
            f"{rate:g} Gb/s",
            f"{best:g} Gb/s",
            why,
            "If it is not meant so, move the cable to a port of full speed.",
        )
    why = (
        f"The link runs below the other links of {kind} in this fabric, and what its ends can do is not known: it may"
        " have trained down in width or speed."
    )
    remedy = "Seat or replace the cable or transceiver, and see the switch port's settings."
    return Finding("fabric.rate", subject, FAIL, f"{rate:g} Gb/s", f"{best:g} Gb/s", why, remedy)


def _check_capabilities(
    fabric: Fabric, topology: Topology, capabilities: typing.Optional[SeenCapabilities], names: Names
) -> Finding:
    """A warning that sums up the whole fabric, others' links among it; fabric.rate fails for each of ours."""
    expected = "each link as wide and fast as both of its ends support"
    if capabilities is None or capabilities.error is not None:
        why = (
            "What the ends of the links support is not known:"
            f" {(capabilities.error if capabilities else None) or 'nobody was asked'}."
        )
        remedy = "Run iblinkinfo by hand on a node of the fabric, as root."
        return Finding("fabric.capability", fabric.name, UNKNOWN, "not known", expected, why, remedy)
    ends = 2 * len(topology.links)
    if capabilities.links < ends:
        why = f"The topology has {ends} ends of links, and what {capabilities.links} of them support was read."
        if capabilities.unread:
            why += f" These lines of iblinkinfo could not be read: {some(capabilities.unread)}."
        remedy = "Run iblinkinfo --line by hand on a node of the fabric, as root, and compare it with ibnetdiscover."
        return Finding(
            "fabric.capability",
            fabric.name,
            UNKNOWN,
            f"{capabilities.links} ends of links",
            f"{ends} ends of links",
            why,
            remedy,
        )
    if not capabilities.slow:
        return ok("fabric.capability", fabric.name, f"{capabilities.links} ends of links", expected)
    ports = [f"{names.port(port.guid, port.port)} could be {port.could_be}" for port in capabilities.slow]
    why = f"Cable, transceiver or a setting holds these links below what both of their ends support: {some(ports)}."
    remedy = "Replace the cables if they are the limit; else see the speeds enabled at both ports (ibportstate)."
    return Finding(
        "fabric.capability",
        fabric.name,
        WARN,
        f"{len(ports)} of {capabilities.links} ends below",
        expected,
        why,
        remedy,
    )


# who is there


def _check_foreign(
    fabric: Fabric, membership: Membership, topology: Topology, world: FabricFacts, ends: _Ends
) -> list[Finding]:
    """HCAs that the fabric shows and no node has. Other servers are no one's fault; one that calls itself like a node
    of ours is.

    Where that node has all the HCAs that the intent asks for, each in the topology by its GUID, it is another machine:
    a warning.
    """
    known = {hca.node_guid for node in world.nodes.values() for hca in node.hcas} | {
        port.guid for node in world.nodes.values() for hca in node.hcas for port in hca.ports
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
    hosts = owners(world.nodes)
    wanted = fabric.select.hcas_per_node
    for node in foreign:
        named = hosts.get(host_of(node.description), ())
        if not named:
            continue
        owner, subject, measured = (
            " or ".join(named),
            f"{' or '.join(named)} {node.guid}",
            f"'{node.called}' in the topology",
        )
        members = {name: membership.members.get(name, ()) for name in named}
        if all(
            len(found) == wanted and all(member.port is not None and member.port.guid in ends for member in found)
            for found in members.values()
        ):
            why = (
                f"The fabric shows this HCA by the name of {owner}, and {owner} has no HCA of this GUID. All {wanted}"
                f" HCAs of {owner} that the intent asks for are in the topology by their GUIDs, so another machine has"
                " that name."
            )
            remedy = (
                f"Find that machine by the port of the switch (ibnetdiscover, GUID {node.guid}), and give its HCA a"
                " node description of its own."
            )
            findings.append(
                Finding(
                    "fabric.foreign", subject, WARN, measured, f"no other machine by the name of {owner}", why, remedy
                )
            )
            continue
        why = (
            f"The fabric shows this HCA by the name of {owner}, and {owner} has no HCA of this GUID: its driver lost"
            " it, or another machine has that name."
        )
        remedy = (
            f"Look for the HCA with lspci and dmesg on {owner}; if it is another machine's, correct that machine's node"
            " description."
        )
        findings.append(Finding("fabric.foreign", subject, FAIL, measured, f"an HCA of {owner}", why, remedy))
    return findings or [
        ok("fabric.foreign", fabric.name, f"{len(foreign)} HCAs of other machines", "none that bears a node's name")
    ]


def _check_cables(
    fabric: Fabric, topology: Topology, names: Names, expected: str, remedy: str
) -> typing.Iterator[Finding]:
    """A port with several cables, of which all stages take the one that is told first."""
    # both names of a port tell of the same cables
    doubled = take_cables(topology).doubled
    by_cables: dict[typing.Hashable, tuple[str, int]] = {}
    for key, ends in doubled.items():
        by_cables.setdefault(tuple(map(id, ends)), key)
    remedy += (
        " Where ibnetdiscover on another node shows one cable there, have that node asked first: put it first in the"
        " inventory."
    )
    for guid, number in list(by_cables.values())[:_MOST_DOUBLED]:
        places = [names.port(end.guid, end.port) for end in doubled[guid, number]]
        port, subject = (
            (f"the port {guid}", names.node(guid))
            if number == ANY
            else (f"port {number} of {guid}", names.port(guid, number))
        )
        why = (
            f"One port can't have two cables: {' and '.join(places) if len(places) == 2 else some(places)} each say"
            f" that {port} is at their other end, so two devices have this GUID, or the node that shows the topology"
            " tells of a cable that is not there. The first is taken for the cable."
        )
        yield Finding("fabric.guids", subject, FAIL, f"{len(places)} links", expected, why, remedy)
    if len(by_cables) > _MOST_DOUBLED:
        why = (
            f"Of {_MOST_DOUBLED} of these ports there is a finding each. So many can't be twins: the node that shows"
            " the topology makes cables up."
        )
        yield Finding(
            "fabric.guids",
            f"{fabric.name} cables",
            FAIL,
            f"{len(by_cables)} ports with several cables",
            expected,
            why,
            remedy,
        )


def _check_guids(fabric: Fabric, membership: Membership, topology: Topology, names: Names) -> list[Finding]:
    """A GUID that two devices have: a port with two cables in the topology, or one node GUID at two nodes."""
    expected = "each GUID at one device"
    remedy = "Give one of the two its own GUID back (mstflint -guid), or replace the board; switch it off until then."
    findings = list(_check_cables(fabric, topology, names, expected, remedy))
    owners: dict[str, list[str]] = {}
    for name, members in membership.members.items():
        for member in members:
            if member.hca.node_guid:
                owners.setdefault(member.hca.node_guid, []).append(f"{name} {member.hca.name}")
    for guid, twins in owners.items():
        if len(twins) > 1:
            why = f"{folded(twins, MOST, ' and ')} have the same node GUID: a fabric takes them for one device."
            findings.append(Finding("fabric.guids", some(twins), FAIL, guid, expected, why, remedy))
    return findings or [
        ok("fabric.guids", fabric.name, f"{len(topology.nodes)} nodes of the topology, {len(owners)} HCAs", expected)
    ]
