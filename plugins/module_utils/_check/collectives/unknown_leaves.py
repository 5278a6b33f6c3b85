# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose leaf is unknown, so that they take no part in the steps by leaves."""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.ethernet_routes import HOW
from ..._analysis.schedule.collectives import UnknownLeaf
from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.collectives import Collectives
from ..._model.run.findings import UNKNOWN, WARN, Finding

#: leaf of all nodes, where the leaf of none of them is known
UNKNOWN_LEAF = UnknownLeaf("leaf unknown")


def add_unknown_leaves(
    grouped: typing.Mapping[str, tuple[str, ...]], nodes: typing.Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return the nodes by leaf, with an unknown leaf of its own added for each node that is on no leaf.

    :param grouped: nodes by leaf
    :param nodes: names of all nodes
    """
    found, placed = dict(grouped), {node for members in grouped.values() for node in members}
    for node in (node for node in nodes if node not in placed):
        name = f"leaf of {node} unknown"
        while name in found:
            # a switch has this name
            name += "'"
        found[UnknownLeaf(name)] = (node,)
    return found


def _explain_without_leaf(wanted: Collectives, fabric: Fabric) -> tuple[str, str]:
    """Return the reason why the leaf of a node is unknown, so that it took no part in the steps by leaves, and the
    remedy.

    :param wanted: settings of the collectives in the intent
    """
    without = "so the tests within a leaf and across leaves ran without this node."
    if wanted.leaves:
        why = f"The intent assigns this node to no leaf, {without}"
        return why, "Add the node to rdma_cluster.collectives.leaves, then run stage collectives again."
    if not is_infiniband(fabric):
        return (
            f"This node did not receive LLDP from exactly one switch on each of its ports, {without}",
            f"{HOW}. Then run: ansible-playbook linerate.rdma.site --tags fabric,bandwidth,collectives.",
        )
    why = f"The topology does not show a switch at each HCA of this node, {without}"
    remedy = (
        "Follow the remedy of the finding fabric.hca of this node (cables and GUIDs of its HCAs), then run:"
        " ansible-playbook linerate.rdma.site --tags fabric,bandwidth,collectives."
    )
    return why, remedy


def report_without_leaf(
    wanted: Collectives,
    fabric: Fabric,
    leaves: typing.Mapping[str, typing.Sequence[str]],
    usable: typing.Sequence[str],
    has_lldp: bool,
) -> typing.Iterator[Finding]:
    """Report the nodes that took no part in the steps by leaves, because their leaf is unknown.

    If no leaf is known, there are no steps by leaves. This is one finding of status ``unknown`` if the intent names
    leaves, and one warning if it names none, LLDP was read, and there are more than two usable pods.

    :param wanted: settings of the collectives in the intent
    :param leaves: nodes of each leaf; the key of an unknown leaf is an ``UnknownLeaf``
    :param usable: names of the nodes with a usable pod
    :param has_lldp: whether LLDP was read on a node
    """
    expected = f"leaf known on {count_of(fabric.select.hcas_per_node, 'rail')}"
    if all(isinstance(leaf, UnknownLeaf) for leaf in leaves):
        if len(usable) > 2 and has_lldp and not wanted.leaves:
            why = (
                "No node received LLDP from a switch on each of its ports, so the tests within a leaf and across leaves"
                " were skipped."
            )
            remedy = (
                f"{HOW}. Or set the leaves in the intent: rdma_cluster.collectives.leaves. Then run: ansible-playbook"
                " linerate.rdma.site --tags fabric,bandwidth,collectives."
            )
            yield Finding(
                "collectives.steps", f"{fabric.name} leaves", WARN, "leaf unknown on all nodes", expected, why, remedy
            )
        if len(usable) > 1 and wanted.leaves:
            why = (
                "No node with a pod is in rdma_cluster.collectives.leaves, so the tests within a leaf and across"
                " leaves were skipped."
            )
            remedy = (
                "In rdma_cluster.collectives.leaves, use the node names of the inventory, or remove leaves. Then run"
                " stage collectives again."
            )
            measured = f"0 of {count_of(len(usable), 'node')} assigned to a leaf"
            expected = f"{len(usable)} of {count_of(len(usable), 'node')} assigned to a leaf"
            yield Finding("collectives.steps", f"{fabric.name} leaves", UNKNOWN, measured, expected, why, remedy)
        return
    for leaf, nodes in leaves.items():
        for node in nodes if isinstance(leaf, UnknownLeaf) else ():
            why, remedy = _explain_without_leaf(wanted, fabric)
            yield Finding(
                "collectives.steps",
                f"{fabric.name} {node or 'node without a name'}",
                UNKNOWN,
                "leaf unknown",
                expected,
                why,
                remedy,
            )
