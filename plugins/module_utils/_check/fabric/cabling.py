# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the HCAs of each node are cabled to the leaves of their rails. Check id: ``fabric.rails``."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.hca_locations import Ends, group_nodes_by_layout
from ..._analysis.fleet.hcas_of_fabric import Member, Membership
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import LinkEnd
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .names import MOST, Names, join_some

#: of the nodes: when more are cabled in a way of their own, the fabric has no rails at all
_NO_RAILS = 0.25


# rails

#: the leaves of a node by rail; None where the topology shows none
_Cabling = tuple[typing.Optional[str], ...]


def check_rails(fabric: Fabric, membership: Membership, ends: Ends, names: Names) -> list[Finding]:
    """Return the findings on the cabling of the rails: HCA k of each node must be on the same leaf as HCA k of the
    nodes that share leaves with it.

    Nodes that share a leaf must share all of their leaves. A node that does not is compared with the most similar
    cabling of more nodes. If the intent does not set ``rails`` and many nodes have different cablings, one finding
    reports that the fabric may have no rails. Only servers of one model are compared, because the order of the slots
    has no meaning across models.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param names: names of the switches of the topology, for texts
    """
    expected = "on neighboring nodes, HCAs of the same rail on the same leaf"
    if fabric.rails == "none":
        return [build_pass("fabric.rails", fabric.name, "not compared: the intent has rails: none", "any cabling")]
    cablings = _collect_cablings(membership, ends)
    models = [
        _Cablings.of({name: cablings[name] for name in group if name in cablings})
        for group in group_nodes_by_layout(membership)
    ]
    odd = sum(len(model.odd) for model in models)
    if (
        fabric.rails is None
        and odd > MOST
        and sum(len(model.nodes[cabling]) for model in models for cabling, _rival in model.odd)
        > _NO_RAILS * len(cablings)
    ):
        why = (
            f"More than a quarter of the {len(cablings)} nodes are cabled differently from the nodes on the same"
            " leaves. The fabric is not built in rails, or many cables are swapped."
        )
        remedy = (
            "If the fabric is built in rails, set rails: leaf of the fabric in the intent, so that stage fabric names"
            " each wrong node and its cables. Otherwise set rails: none. Then run stage fabric again."
        )
        return [
            Finding("fabric.rails", fabric.name, UNKNOWN, count_of(odd, "contradicting cabling"), expected, why, remedy)
        ]
    findings = [
        finding for model in models for finding in _check_model(fabric, model, membership, ends, names, expected)
    ]
    leaves = len({leaf for cabling in cablings.values() for leaf in cabling if leaf})
    return findings or [
        build_pass(
            "fabric.rails",
            fabric.name,
            f"{count_of(len(cablings), 'node')} on {count_of(leaves, 'leaf', 'leaves')}",
            expected,
        )
    ]


def _check_model(
    fabric: Fabric, model: _Cablings, membership: Membership, ends: Ends, names: Names, expected: str
) -> typing.Iterator[Finding]:
    nodes = model.nodes
    for cabling, rival in model.odd:
        rails = _list_differing_rails(cabling, rival)
        for name in nodes[cabling]:
            usual = join_some([f"rail {rail} on {names.node(rival[rail] or '')}" for rail in rails])
            beside = model.having(rival, rails)
            why = (
                f"{_describe_miscabling(cabling, rival, rails)}"
                f" {count_of(len(beside), 'neighboring node has', 'neighboring nodes have')} {usual}:"
                f" {join_some(beside)}."
            )
            yield _report_wrong_cable(
                f"{name} {fabric.name}", _describe_cable_ends(name, membership, ends, names, rails), usual, why, _MOVE
            )
    for cabling, rival in model.tied:
        # each pair once, where both are each other's
        if (rival, cabling) not in model.tied or nodes[cabling][0] < nodes[rival][0]:
            rails = _list_differing_rails(cabling, rival)
            both = [
                _describe_cable_ends(group[0], membership, ends, names, rails)
                for group in (nodes[cabling], nodes[rival])
            ]
            why = (
                f"{_describe_miscabling(cabling, rival, rails)} The nodes {join_some(model.having(cabling, rails))}"
                f" have the first cabling, and the same number of nodes has the second:"
                f" {join_some(model.having(rival, rails))}."
                " Only the cabling plan shows which is right."
            )
            yield _report_wrong_cable(fabric.name, "; ".join(both), expected, why, _COMPARE)


@dataclasses.dataclass(frozen=True)
class _Cablings:
    """The cablings of the servers of one model. A cabling is the leaf of each rail of a node. Two cablings agree if
    they share a leaf and differ on no rail on which both have one; they contradict each other if they share a leaf and
    differ on a rail.

    :ivar nodes: names of the nodes by cabling
    :ivar alike: cablings that agree with a cabling, itself first, by the cabling
    :ivar odd: pairs of a cabling and a contradicting cabling with which more nodes agree
    :ivar tied: pairs of a cabling and a contradicting cabling with which as many nodes agree
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
        alike = _group_agreeing_cablings(nodes)
        count = {cabling: sum(len(nodes[other]) for other in others) for cabling, others in alike.items()}
        rivals = _find_rivals(count)
        odd = [(cabling, rival) for cabling, rival in rivals.items() if count[rival] > count[cabling]]
        return cls(
            nodes, alike, odd, [(cabling, rival) for cabling, rival in rivals.items() if count[rival] == count[cabling]]
        )

    def having(self, cabling: _Cabling, rails: typing.Sequence[int]) -> list[str]:
        """Return the nodes whose cabling agrees with the given one and that share its leaf on at least one of the given
        rails.

        :param cabling: leaf of each rail
        :param rails: numbers of the rails
        """
        return [
            name
            for other in self.alike[cabling]
            if any(cabling[rail] == other[rail] for rail in rails)
            for name in self.nodes[other]
        ]


_MOVE = (
    "Move the cables of the HCAs under 'measured' to the leaves under 'expected', then run stage fabric again. Until"
    " then, the traffic of these rails takes the path over the spines."
)
_COMPARE = (
    "Compare the ports under 'measured' with the cabling plan, and move the cables of the nodes that contradict it."
    " Then run stage fabric again. Until then, the traffic of these rails takes the path over the spines."
)


def _report_wrong_cable(subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return Finding("fabric.rails", subject, FAIL, measured, expected, why, remedy)


def _collect_cablings(membership: Membership, ends: Ends) -> dict[str, _Cabling]:
    """Return the cabling of each node that is connected to at least one leaf.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    result = {}
    rails = 1 + max((member.rail for members in membership.members.values() for member in members), default=-1)
    for name, members in membership.members.items():
        leaves: list[typing.Optional[str]] = [None] * rails
        for member in members:
            far = _find_leaf_port(member, ends)
            leaves[member.rail] = far.guid if far else None
        if any(leaves):
            result[name] = tuple(leaves)
    return result


def _find_leaf_port(member: Member, ends: Ends) -> typing.Optional[LinkEnd]:
    """Return the port of the leaf to which an HCA is cabled, or None if the topology shows none.

    :param member: HCA of the fabric
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    far = ends.get(member.port.guid or "") if member.port else None
    return far[0] if far and far[0].kind == "Switch" else None


def _group_by_leaf(cablings: typing.Collection[_Cabling]) -> dict[str, list[_Cabling]]:
    """Return the cablings that contain a leaf on any rail, by leaf.

    :param cablings: cablings of the servers of one model, each with the leaf of each rail
    """
    by_leaf: dict[str, list[_Cabling]] = {}
    for cabling in cablings:
        for leaf in {leaf for leaf in cabling if leaf}:
            by_leaf.setdefault(leaf, []).append(cabling)
    return by_leaf


def _group_agreeing_cablings(cablings: typing.Collection[_Cabling]) -> dict[_Cabling, list[_Cabling]]:
    """Return for each cabling the cablings that agree with it, itself first. Two cablings agree if they share a leaf
    and differ on no rail on which both have one, so a cabling with a missing cable agrees with the complete one.

    :param cablings: leaf of each rail, for each cabling
    """
    by_leaf = _group_by_leaf(cablings)
    result = {}
    for cabling in cablings:
        near = dict.fromkeys(other for leaf in cabling if leaf for other in by_leaf[leaf] if other != cabling)
        result[cabling] = [
            cabling,
            *(
                other
                for other in near
                if _count_common_leaves(cabling, other) and not _list_differing_rails(cabling, other)
            ),
        ]
    return result


def _find_rivals(count: typing.Mapping[_Cabling, int]) -> dict[_Cabling, _Cabling]:
    """Return, for each cabling that contradicts another one, the cabling with which it is to be compared.

    This is the most similar contradicting cabling, and of equally similar ones the cabling of most nodes. The most
    similar one may itself be wrong. If another contradicting cabling is that of more nodes and shares as many leaves,
    it is chosen instead: otherwise a single wrong cable would accuse all neighbors of its node.

    :param count: number of nodes that agree with each cabling
    """
    by_leaf = _group_by_leaf(count)
    result = {}
    for cabling in count:
        near = {
            other
            for leaf in cabling
            if leaf
            for other in by_leaf[leaf]
            if other != cabling and _list_differing_rails(cabling, other)
        }
        if near:
            rival = _choose_most_similar(cabling, near, count)
            more = [other for other in near if count[other] > count[cabling] >= count[rival]]
            same = [other for other in more if _count_shared(cabling, other) >= _count_shared(cabling, rival)]
            likely = same or (more if count[rival] < count[cabling] else [])
            result[cabling] = _choose_most_similar(cabling, likely, count) if likely else rival
    return result


def _choose_most_similar(
    cabling: _Cabling, others: typing.Iterable[_Cabling], count: typing.Mapping[_Cabling, int]
) -> _Cabling:
    return max(
        others,
        key=lambda other: (_count_common_leaves(cabling, other), count[other], tuple(leaf or "" for leaf in other)),
    )


def _count_shared(one: _Cabling, other: _Cabling) -> int:
    """Return the number of leaves that two cablings have in common, on any rail.

    :param one: leaf of each rail
    :param other: leaf of each rail
    """
    return len({leaf for leaf in one if leaf} & {leaf for leaf in other if leaf})


def _list_differing_rails(one: _Cabling, other: _Cabling) -> list[int]:
    """Return the rails on which two cablings have different leaves. Rails on which one of them has no leaf are left
    out.

    :param one: leaf of each rail
    :param other: leaf of each rail
    """
    return [rail for rail, (first, second) in enumerate(zip(one, other)) if first and second and first != second]


def _count_common_leaves(one: _Cabling, other: _Cabling) -> int:
    return sum(first == second for first, second in zip(one, other) if first)


def _describe_miscabling(cabling: _Cabling, rival: _Cabling, rails: typing.Sequence[int]) -> str:
    swapped = len(rails) == 2 and cabling[rails[0]] == rival[rails[1]] and cabling[rails[1]] == rival[rails[0]]
    return (
        f"The cables of rail {rails[0]} and rail {rails[1]} are swapped."
        if swapped
        else f"The leaf of rail {join_some(list(map(str, rails)))} differs."
    )


def _describe_cable_ends(
    node: str, membership: Membership, ends: Ends, names: Names, rails: typing.Sequence[int]
) -> str:
    """Return a text with both ends of the cables of a node on these rails.

    :param node: name of the node
    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param names: names of the switches of the topology, for texts
    :param rails: numbers of the rails
    """
    words = []
    for member in membership.members[node]:
        far = _find_leaf_port(member, ends)
        if member.rail in rails and far:
            words.append(f"rail {member.rail} ({member.hca.name}) on {names.port(far.guid, far.port)}")
    return f"{node}: {join_some(words)}"
