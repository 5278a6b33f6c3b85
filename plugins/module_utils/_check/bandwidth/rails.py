# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, rails of an Ethernet fabric: check by LLDP that the NICs of each node are cabled to the leaves of
their rails. Check id: ``bandwidth.rails``. Stage fabric checks the rails of InfiniBand.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.cablings import (
    Cabling,
    Cablings,
    compare_cablings,
    describe_miscabling,
    lacks_rails,
    list_differing_rails,
)
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.paths.ethernet_routes import HOW, Neighbours, Port, find_leaves, find_ports_without_lldp
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_roce
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

_EXPECTED = "NICs of the same rail of neighboring nodes on the same leaf"
_MOVE = (
    "Move the cables of the NICs under 'measured' to the leaves of the other nodes, then run stage bandwidth again."
    " Until then, the traffic of these rails takes the path over the spines."
)
_COMPARE = (
    "Compare the ports under 'measured' with the cabling plan, and move the cables of the nodes that contradict it."
    " Then run stage bandwidth again."
)
#: names and reasons in one text, at most
_MOST = 5
_LOOSE = " If the fabric is not built in rails, set rails: none in the fabric of the intent."


def check_rails(fabric: Fabric, membership: Membership, neighbours: Neighbours) -> list[Finding]:
    """Return the findings on the cabling of the rails of an Ethernet fabric with RDMA and several rails: NIC k of each
    node must be on the same leaf as NIC k of the nodes that share leaves with it. The list is empty for other fabrics,
    and if the intent does not set ``rails`` and LLDP shows no leaf.

    Another cabling is a failure only if the intent has ``rails: leaf``: without it, a fabric may have no rails.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param neighbours: LLDP neighbors of each node
    """
    if not carries_roce(fabric) or fabric.select.hcas_per_node < 2:
        return []
    if fabric.rails == "none":
        return [build_pass("bandwidth.rails", fabric.name, "not compared: the intent has rails: none", "any cabling")]
    leaves = find_leaves(membership, neighbours)
    cablings = _collect_cablings(membership, leaves)
    models = compare_cablings(cablings, membership)
    named = fabric.rails == "leaf"
    if not named and lacks_rails(models, len(cablings)):
        why = (
            f"More than a quarter of the {len(cablings)} nodes are cabled differently from the nodes on the same"
            " leaves. The fabric is not built in rails, or many cables are swapped."
        )
        remedy = (
            f"If the fabric is built in rails, set rails to leaf in the fabric {fabric.name} of the intent, so that"
            " stage bandwidth names each wrong node and its cables. Otherwise set rails to none. Then run stage"
            " bandwidth again."
        )
        odd = sum(len(model.odd) for model in models)
        measured = count_of(odd, "contradicting cabling")
        return [Finding("bandwidth.rails", fabric.name, WARN, measured, _EXPECTED, why, remedy)]
    findings = [item for model in models for item in _check_model(fabric, model, membership, leaves)]
    unheard = find_ports_without_lldp(membership, neighbours) if named else ()
    if unheard:
        names = join_first([f"{port.node} rail {port.rail} ({port.why})" for port in unheard], _MOST)
        why = f"The intent sets rails to leaf, but LLDP does not show the leaf of {names}."
        remedy = (
            f"{HOW}. Then run stage bandwidth again. If LLDP cannot show the leaves, as with bonds, compare the ports"
            f" with the cabling plan, and set rails to none in the fabric {fabric.name} of the intent."
        )
        ports = sum(map(len, membership.members.values()))
        measured = f"leaf unknown for {len(unheard)} of {count_of(ports, 'port')}"
        findings.append(Finding("bandwidth.rails", fabric.name, UNKNOWN, measured, _EXPECTED, why, remedy))
    if findings or not leaves:
        return findings
    count = len(set(leaves.values()))
    told = f"{count_of(len(cablings), 'node')} on {count_of(count, 'leaf', 'leaves')}"
    return [build_pass("bandwidth.rails", fabric.name, told, _EXPECTED)]


def _collect_cablings(membership: Membership, leaves: typing.Mapping[Port, str]) -> dict[str, Cabling]:
    """Return the cabling of each node that is connected to at least one known leaf, by node.

    A cabling is the name of the leaf of each rail, in the order of the rails, and None for a rail whose leaf is
    unknown.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param leaves: name of the leaf by rail and node
    """
    rails = range(1 + max((rail for rail, _node in leaves), default=-1))
    cablings = {node: tuple(leaves.get((rail, node)) for rail in rails) for node in membership.members}
    return {node: cabling for node, cabling in cablings.items() if any(cabling)}


def _check_model(
    fabric: Fabric, model: Cablings, membership: Membership, leaves: typing.Mapping[Port, str]
) -> typing.Iterator[Finding]:
    """Yield the findings on the servers of one model: one for each node with a cabling of its own, and one for each
    pair of different cablings that equally many nodes have.

    :param model: cablings of the servers of the model, with the nodes of each cabling
    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param leaves: name of the leaf by rail and node
    """
    loose = "" if fabric.rails else _LOOSE
    for cabling, rival in model.odd:
        rails = list_differing_rails(cabling, rival)
        beside = model.having(rival, rails)
        usual = join_first([f"rail {rail} on {rival[rail]}" for rail in rails], _MOST)
        why = (
            f"{describe_miscabling(cabling, rival, rails)}"
            f" {count_of(len(beside), 'neighboring node has', 'neighboring nodes have')} {usual}:"
            f" {join_first(beside, _MOST)}."
        )
        for name in model.nodes[cabling]:
            told = _describe_cables(name, membership, leaves, rails)
            yield _report(fabric, f"{fabric.name} {name}", told, why, _MOVE + loose)
    for cabling, rival in model.tied:
        # each pair once, where both are each other's
        if (rival, cabling) not in model.tied or model.nodes[cabling][0] < model.nodes[rival][0]:
            rails = list_differing_rails(cabling, rival)
            both = [_describe_cables(model.nodes[of][0], membership, leaves, rails) for of in (cabling, rival)]
            why = (
                f"{describe_miscabling(cabling, rival, rails)} The nodes"
                f" {join_first(model.having(cabling, rails), _MOST)} have the first cabling, and the same number of"
                f" nodes has the second:"
                f" {join_first(model.having(rival, rails), _MOST)}. Only the cabling plan shows which is right."
            )
            yield _report(fabric, fabric.name, "; ".join(both), why, _COMPARE + loose)


def _report(fabric: Fabric, subject: str, measured: str, why: str, remedy: str) -> Finding:
    status: typing.Literal["fail", "warn"] = FAIL if fabric.rails else WARN
    return Finding("bandwidth.rails", subject, status, measured, _EXPECTED, why, remedy)


def _describe_cables(
    node: str, membership: Membership, leaves: typing.Mapping[Port, str], rails: typing.Sequence[int]
) -> str:
    """Return a text with the NICs of a node on these rails and their leaves.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param leaves: name of the leaf by rail and node
    :param rails: numbers of the rails
    """
    words = []
    for member in membership.members[node]:
        leaf = leaves.get((member.rail, node))
        if member.rail in rails and leaf:
            netdev = next((netdev.name for netdev in member.hca.all_netdevs), member.hca.name)
            words.append(f"rail {member.rail} ({netdev}) on {leaf}")
    return f"{node}: {join_first(words, _MOST)}"
