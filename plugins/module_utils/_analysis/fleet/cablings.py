# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the cablings of nodes: HCA k of each node must be on the same leaf as HCA k of the nodes that share leaves
with it.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import join_first
from .hca_locations import group_nodes_by_layout
from .hcas_of_fabric import Membership

#: the leaves of a node by rail; None where the leaf is not known
Cabling = tuple[typing.Optional[str], ...]
#: of the nodes: when more are cabled in a way of their own, the fabric has no rails at all
_NO_RAILS = 0.25
#: rails in one text, at most
_MOST_RAILS = 5


@dataclasses.dataclass(frozen=True)
class Cablings:
    """The cablings of the servers of one model. A cabling is a tuple with the leaf of each rail of a node, None for a
    rail whose leaf is unknown. Two cablings agree if they share a leaf and have different leaves on no rail. They
    contradict each other if they share a leaf and have different leaves on a rail. A rail whose leaf is unknown in one
    of them does not count.

    :ivar nodes: names of the nodes by cabling
    :ivar alike: for each cabling, the cablings that agree with it, beginning with the cabling itself
    :ivar odd: pairs of a cabling and a contradicting cabling with which more nodes agree
    :ivar tied: pairs of a cabling and a contradicting cabling with which as many nodes agree
    """

    nodes: typing.Mapping[Cabling, typing.Sequence[str]]
    alike: typing.Mapping[Cabling, typing.Sequence[Cabling]]
    odd: typing.Sequence[tuple[Cabling, Cabling]]
    tied: typing.Sequence[tuple[Cabling, Cabling]]

    @classmethod
    def of(cls, cablings: typing.Mapping[str, Cabling]) -> Cablings:
        """Group nodes by their cabling, and find the cablings that differ from those of more nodes, or of as many.

        :param cablings: cabling of each node, by name of the node
        """
        nodes: dict[Cabling, list[str]] = {}
        for name, cabling in cablings.items():
            nodes.setdefault(cabling, []).append(name)
        alike = _group_agreeing_cablings(nodes)
        count = {cabling: sum(len(nodes[other]) for other in others) for cabling, others in alike.items()}
        rivals = _find_rivals(count)
        odd = [(cabling, rival) for cabling, rival in rivals.items() if count[rival] > count[cabling]]
        return cls(
            nodes, alike, odd, [(cabling, rival) for cabling, rival in rivals.items() if count[rival] == count[cabling]]
        )

    def having(self, cabling: Cabling, rails: typing.Sequence[int]) -> list[str]:
        """Return the names of the nodes whose cabling agrees with the given cabling and has the same leaf on at least
        one of the given rails.

        :param cabling: leaf of each rail
        :param rails: numbers of the rails
        """
        return [
            name
            for other in self.alike[cabling]
            if any(cabling[rail] == other[rail] for rail in rails)
            for name in self.nodes[other]
        ]


def compare_cablings(cablings: typing.Mapping[str, Cabling], membership: Membership) -> list[Cablings]:
    """Return the cablings of the servers of each model. Only servers of one model are compared, because the order of
    the slots has no meaning across models.

    :param cablings: leaf of each rail, by node
    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    return [
        Cablings.of({name: cablings[name] for name in group if name in cablings})
        for group in group_nodes_by_layout(membership)
    ]


def lacks_rails(models: typing.Iterable[Cablings], nodes: int) -> bool:
    """Return whether more than a quarter of the nodes are cabled differently from most nodes on their leaves. The
    fabric may then have no rails at all.

    :param models: cablings of the servers of each model
    :param nodes: number of nodes with a cabling
    """
    odd = sum(len(model.nodes[cabling]) for model in models for cabling, _rival in model.odd)
    return odd > _NO_RAILS * nodes


def _group_by_leaf(cablings: typing.Collection[Cabling]) -> dict[str, list[Cabling]]:
    """Return the cablings that contain a leaf on any rail, by leaf.

    :param cablings: cablings of the servers of one model, each with the leaf of each rail
    """
    by_leaf: dict[str, list[Cabling]] = {}
    for cabling in cablings:
        for leaf in {leaf for leaf in cabling if leaf}:
            by_leaf.setdefault(leaf, []).append(cabling)
    return by_leaf


def _group_agreeing_cablings(cablings: typing.Collection[Cabling]) -> dict[Cabling, list[Cabling]]:
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
                if _count_common_leaves(cabling, other) and not list_differing_rails(cabling, other)
            ),
        ]
    return result


def _find_rivals(count: typing.Mapping[Cabling, int]) -> dict[Cabling, Cabling]:
    """Return the rival of each cabling that contradicts another one: the contradicting cabling with which it is
    compared.

    The rival is the most similar contradicting cabling; of equally similar ones, that with which most nodes agree. The
    most similar one may itself be wrong. If more nodes agree with another contradicting cabling that shares as many
    leaves, this one is chosen instead. Otherwise a single wrong cable would accuse all neighbors of its node.

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
            if other != cabling and list_differing_rails(cabling, other)
        }
        if near:
            rival = _choose_most_similar(cabling, near, count)
            more = [other for other in near if count[other] > count[cabling] >= count[rival]]
            same = [other for other in more if _count_shared(cabling, other) >= _count_shared(cabling, rival)]
            likely = same or (more if count[rival] < count[cabling] else [])
            result[cabling] = _choose_most_similar(cabling, likely, count) if likely else rival
    return result


def _choose_most_similar(
    cabling: Cabling, others: typing.Iterable[Cabling], count: typing.Mapping[Cabling, int]
) -> Cabling:
    """Return the cabling that has the most leaves in common with another one. Of several, it is the one that more nodes
    have.

    :param others: cablings to choose from, at least one
    :param count: number of nodes that agree with each cabling
    """
    return max(
        others,
        key=lambda other: (_count_common_leaves(cabling, other), count[other], tuple(leaf or "" for leaf in other)),
    )


def _count_shared(one: Cabling, other: Cabling) -> int:
    """Return the number of leaves that two cablings have in common, on any rail.

    :param one: leaf of each rail
    :param other: leaf of each rail
    """
    return len({leaf for leaf in one if leaf} & {leaf for leaf in other if leaf})


def list_differing_rails(one: Cabling, other: Cabling) -> list[int]:
    """Return the rails on which two cablings have different leaves. Rails on which one of them has no leaf are left
    out.

    :param one: leaf of each rail
    :param other: leaf of each rail
    """
    return [rail for rail, (first, second) in enumerate(zip(one, other)) if first and second and first != second]


def _count_common_leaves(one: Cabling, other: Cabling) -> int:
    return sum(first == second for first, second in zip(one, other) if first)


def describe_miscabling(cabling: Cabling, rival: Cabling, rails: typing.Sequence[int]) -> str:
    """Return a sentence on the difference between two cablings.

    :param cabling: leaf of each rail
    :param rival: leaf of each rail of the cabling with which it is compared
    :param rails: numbers of the rails that differ
    """
    swapped = len(rails) == 2 and cabling[rails[0]] == rival[rails[1]] and cabling[rails[1]] == rival[rails[0]]
    return (
        f"The cables of rail {rails[0]} and rail {rails[1]} are swapped."
        if swapped
        else f"The leaf of rail {join_first(list(map(str, rails)), _MOST_RAILS)} differs."
    )
