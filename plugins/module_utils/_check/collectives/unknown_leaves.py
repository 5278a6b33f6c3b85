# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose leaf is unknown, so that they take no part in the steps by leaves."""

from __future__ import annotations

import typing

from ..._analysis.fleet.ethernet_ways import HOW
from ..._analysis.schedule.collectives import UnknownLeaf
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.collectives import Collectives

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


def explain_without_leaf(wanted: Collectives, fabric: Fabric) -> tuple[str, str]:
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
