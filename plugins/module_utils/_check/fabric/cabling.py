# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the HCAs of each node are cabled to the leaves of their rails. Check id: ``fabric.rails``."""

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
from ..._analysis.fleet.hca_locations import Ends
from ..._analysis.fleet.hcas_of_fabric import Member, Membership
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import LinkEnd
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .names import MOST, Names, join_some


def check_rails(fabric: Fabric, membership: Membership, ends: Ends, names: Names) -> list[Finding]:
    """Return the findings on the cabling of the rails: HCA k of each node must be on the same leaf as HCA k of the
    nodes that share leaves with it.

    Nodes that share a leaf must share all of their leaves. A node that shares only some of them is compared with the
    most similar cabling of more nodes. If the intent does not set ``rails`` and many nodes have different cablings, one
    finding reports that the fabric may have no rails. Only servers of one model are compared, because the order of the
    slots has no meaning across models.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    :param names: names of the switches of the topology, for texts
    """
    expected = "HCAs of the same rail of neighboring nodes on the same leaf"
    if fabric.rails == "none":
        return [build_pass("fabric.rails", fabric.name, "not compared: the intent has rails: none", "any cabling")]
    cablings = _collect_cablings(membership, ends)
    models = compare_cablings(cablings, membership)
    odd = sum(len(model.odd) for model in models)
    if fabric.rails is None and odd > MOST and lacks_rails(models, len(cablings)):
        why = (
            f"More than a quarter of the {len(cablings)} nodes have their HCAs on other leaves than the neighboring"
            " nodes. Either the fabric is not built in rails (the HCAs of the same number of all nodes on one"
            " leaf), or many cables are swapped."
        )
        remedy = (
            f"If the fabric is built in rails, set rails to leaf in the fabric {fabric.name} of the intent, so that"
            " stage fabric names each wrong node and its cables. Otherwise set rails to none. Then run stage fabric"
            " again."
        )
        return [
            Finding("fabric.rails", fabric.name, UNKNOWN, count_of(odd, "different cabling"), expected, why, remedy)
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
    fabric: Fabric, model: Cablings, membership: Membership, ends: Ends, names: Names, expected: str
) -> typing.Iterator[Finding]:
    nodes = model.nodes
    for cabling, rival in model.odd:
        rails = list_differing_rails(cabling, rival)
        for name in nodes[cabling]:
            usual = join_some([f"rail {rail} on {names.node(rival[rail] or '')}" for rail in rails])
            beside = model.having(rival, rails)
            why = (
                f"{describe_miscabling(cabling, rival, rails)}"
                f" {count_of(len(beside), 'neighboring node has', 'neighboring nodes have')} {usual}:"
                f" {join_some(beside)}. The traffic of these rails crosses the spines."
            )
            yield _report_wrong_cable(
                f"{name} {fabric.name}", _describe_cable_ends(name, membership, ends, names, rails), usual, why, _MOVE
            )
    for cabling, rival in model.tied:
        # each pair once, where both are each other's
        if (rival, cabling) not in model.tied or nodes[cabling][0] < nodes[rival][0]:
            rails = list_differing_rails(cabling, rival)
            both = [
                _describe_cable_ends(group[0], membership, ends, names, rails)
                for group in (nodes[cabling], nodes[rival])
            ]
            why = (
                f"{describe_miscabling(cabling, rival, rails)} The nodes {join_some(model.having(cabling, rails))}"
                " have the first cabling, and the same number of nodes has the second:"
                f" {join_some(model.having(rival, rails))}. Only the cabling plan shows which one is right. Until"
                " the cables are equal, the traffic of these rails crosses the spines."
            )
            yield _report_wrong_cable(fabric.name, "; ".join(both), expected, why, _COMPARE)


_MOVE = (
    "Drain the node, and move the cables of the HCAs under 'measured' to the leaves under 'expected'. Then run"
    " stage fabric again."
)
_COMPARE = (
    "Compare the ports under 'measured' with the cabling plan. Drain the nodes that contradict the plan, and move"
    " their cables. Then run stage fabric again."
)


def _report_wrong_cable(subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return Finding("fabric.rails", subject, FAIL, measured, expected, why, remedy)


def _collect_cablings(membership: Membership, ends: Ends) -> dict[str, Cabling]:
    """Return the cabling of each node that is connected to at least one leaf, by node.

    A cabling is the GUID of the leaf of each rail, in the order of the rails, and None for a rail without a known leaf.

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
    """Return the port of the leaf to which an HCA is cabled, or None if the topology shows no switch at the far end of
    its cable.

    :param member: HCA of the fabric
    :param ends: far end of the cable of each HCA port, and the link itself, by the GUID of the HCA port
    """
    far = ends.get(member.port.guid or "") if member.port else None
    return far[0] if far and far[0].kind == "Switch" else None


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
