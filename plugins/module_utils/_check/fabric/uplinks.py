# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparison of the number of links between leaves and spines. Check id: ``fabric.uplinks``."""

from __future__ import annotations

import collections
import functools
import operator
import typing

from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import Link, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .links_in_scope import LinksInScope
from .names import Names, join_some

#: at each link of a leaf, when leaves are compared; that of a fabric in pods is looked at once
_MOST_LOOKS = 20


# links


def list_switch_links(topology: Topology) -> list[Link]:
    return [link for link in topology.links if link.a.kind == "Switch" and link.b.kind == "Switch"]


def check_uplinks(fabric: Fabric, topology: Topology, names: Names, way: LinksInScope) -> list[Finding]:
    """Report leaves with fewer links to other switches than ``uplinks`` of the intent requires.

    If the intent does not set it, report leaves with fewer links than most leaves that share a switch with them.

    Only leaves with HCAs of the fabric are compared, since leaves for storage are built differently. Links that all
    leaves lack, such as those to a failed spine, are found only if the intent sets the number. A leaf with fewer HCAs
    than its neighbors needs fewer links: its finding is a warning if each of its HCAs has at least the usual share of
    the links.

    :param names: names of the switches and HCAs of the topology, for texts
    :param way: ports and leaves of the fabric, and the links that its traffic may use
    """
    uplinks: dict[str, typing.Counter[str]] = {leaf: collections.Counter() for leaf in sorted(way.leaves)}
    for link in list_switch_links(topology):
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.guid in uplinks:
                uplinks[near.guid][far.guid] += 1
    most = max((sum(count.values()) for count in uplinks.values()), default=0)
    expected = (
        "as many links to other switches as the neighboring leaves (set uplinks to also find links that all"
        " leaves lack)"
    )
    if fabric.uplinks is not None:
        expected = f"at least {count_of(fabric.uplinks, 'link')} to other switches"
        findings = _check_wanted_uplinks(fabric.uplinks, uplinks, names)
    else:
        findings = list(_compare_uplinks(fabric, uplinks, _group_hcas_by_leaf(topology), names, expected))
    return findings or [
        build_pass(
            "fabric.uplinks",
            fabric.name,
            f"{count_of(len(uplinks), 'leaf', 'leaves')}, at most {count_of(most, 'link')} to other switches each",
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
            has = join_some([f"{names.node(guid)} ({count[guid]})" for guid in sorted(count)]) or "none"
            why = (
                "The leaf has fewer links than the setting uplinks of the fabric requires. Its links lead to these"
                f" switches: {has}."
            )
            findings.append(
                Finding(
                    "fabric.uplinks",
                    names.node(leaf),
                    FAIL,
                    f"{count_of(own, 'link')} to other switches",
                    f"at least {count_of(wanted, 'link')} to other switches",
                    why,
                    _OF_UPLINKS,
                )
            )
    return findings


def _compare_uplinks(
    fabric: Fabric, uplinks: typing.Mapping[str, _Uplinks], hcas: typing.Mapping[str, int], names: Names, expected: str
) -> typing.Iterator[Finding]:
    """Yield findings on leaves with fewer links than the leaves that share a switch with them. If the comparison would
    need too many steps, yield a finding of status unknown and stop.

    All leaves of a pod have the same neighbors, so each pod is compared once. A topology in which each leaf has
    different neighbors is not plausible.

    :param uplinks: number of links from each leaf to each other switch, by GUID of the leaf and then of the switch
    :param hcas: number of HCA ports on each switch, by its GUID
    :param names: names of the switches of the topology, for texts
    :param expected: expected value, as text for the findings
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
                "The run compares a leaf with the leaves that share a switch with it. Almost every leaf shares"
                " switches with other leaves, so the comparison would take too long, and missing links are"
                " unknown."
            )
            remedy = (
                "Set the number of links from each leaf to other switches in the intent, as uplinks: NUMBER of the"
                f" fabric '{fabric.name}'. Then run stage fabric again."
            )
            yield Finding(
                "fabric.uplinks",
                fabric.name,
                UNKNOWN,
                f"{count_of(len(uplinks), 'leaf', 'leaves')}, not all compared",
                expected,
                why,
                remedy,
            )
            return
        yield from _compare_leaves(short, {leaf: uplinks[leaf] for leaf in beside}, hcas, names)


def _leaves_by_neighbours(uplinks: typing.Mapping[str, _Uplinks]) -> dict[int, list[str]]:
    """Return the GUIDs of the leaves, grouped by the set of leaves that share a switch with them, including themselves.

    The key of a group is that set as an integer with one bit for each leaf, in the order of the leaves.

    :param uplinks: number of links from each leaf to each other switch, by GUID of the leaf and then of the switch
    """
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
    """Compare the number of links of each leaf to other switches with the number that is usual in its pod, which is the
    leaf and the leaves that share a switch with it. Yield a failed finding for each leaf that has fewer links, or a
    warning if the leaf also has fewer HCAs, so that its links suffice.

    :param short: GUIDs of the leaves to judge
    :param pod: links of these leaves and of their neighbors, at least two leaves, by GUID
    :param hcas: number of HCA ports on each leaf
    :param names: names of the switches and HCAs of the topology, for texts
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
        usual = _find_usual_beside(by_total, own)
        if own >= usual:
            continue
        if usual not in crowds:
            crowds[usual] = _find_usual(hcas[name] for name, total in totals.items() if total >= usual)
        crowd = crowds[usual]
        if hcas[leaf] < crowd and (own >= hcas[leaf] or own * crowd >= usual * hcas[leaf]):
            measured, expected = (
                f"{count_of(own, 'link')} to other switches",
                f"{count_of(usual, 'link')} to other switches, as at the neighboring leaves",
            )
            why = (
                f"The leaf also has fewer HCAs ({hcas[leaf]}, the neighboring leaves {crowd}), for which its links"
                " suffice. Only the cabling plan shows whether the leaf was built this way or has lost links."
            )
            yield Finding("fabric.uplinks", names.node(leaf), WARN, measured, expected, why, _OF_FEWER_HCAS)
            continue
        usually = {guid: _find_usual_beside(told, count[guid]) for guid, told in common.items()}
        missing = [
            f"{names.node(guid)} ({count[guid]} of {links})" for guid, links in usually.items() if count[guid] < links
        ]
        lacks = (
            f"Links to these switches are missing: {join_some(missing)}."
            if missing
            else "The missing links do not lead to one particular switch."
        )
        why = f"Most leaves that share a switch with this leaf have more links. {lacks}"
        yield Finding(
            "fabric.uplinks",
            names.node(leaf),
            FAIL,
            f"{count_of(own, 'link')} to other switches",
            f"{count_of(usual, 'link')} to other switches",
            why,
            _OF_UPLINKS,
        )


_OF_UPLINKS = (
    "Run iblinkinfo --down as root on a node of the fabric, and find the ports of this leaf and of the switches"
    " under 'why' that are down. Enable them, and reseat or replace their cables. Then run stage fabric again."
)
_OF_FEWER_HCAS = (
    "Compare the leaf with the cabling plan. If the leaf was built this way, waive this finding. Otherwise run"
    " iblinkinfo --down as root on a node of the fabric, and reseat or replace the cables of the ports of this leaf"
    " that are down. Then run stage fabric again."
)


def _group_hcas_by_leaf(topology: Topology) -> typing.Counter[str]:
    """Count the HCA ports on each switch, including those of other tenants. Aggregation nodes of SHARP are inside
    switches and do not count.
    """
    inside = {node.guid for node in topology.nodes if node.aggregation}
    ends = ((near, far) for link in topology.links for near, far in ((link.a, link.b), (link.b, link.a)))
    return collections.Counter(
        near.guid for near, far in ends if near.kind == "Switch" and far.kind == "Ca" and far.guid not in inside
    )


def _find_usual(numbers: typing.Iterable[int]) -> int:
    """Return the most frequent number.

    If several numbers are equally frequent, return the largest of them, since links may be missing but not added.

    :param numbers: number of links, or of HCAs, of each leaf; at least one
    """
    return _find_most_frequent(collections.Counter(numbers))


def _find_usual_beside(numbers: typing.Mapping[int, int], own: int) -> int:
    """Return the number of links that is the most frequent among the neighbors of a leaf.

    If several numbers are equally frequent, return the largest of them.

    :param numbers: number of leaves that have a number of links, by that number of links, including the leaf itself
    :param own: number of links of the leaf itself
    """
    return _find_most_frequent({number: leaves - (number == own) for number, leaves in numbers.items()})


def _find_most_frequent(numbers: typing.Mapping[int, int]) -> int:
    return max(numbers.items(), key=lambda item: (item[1], item[0]))[0]
