# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the cluster as an inventory wants it."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.addresses import HostAddress
from ..boundary.kubernetes import GroupWord, LabelKey, LabelValue, Subdomain

#: variable that the inventory plugin sets on each host: one without its Node is no node any more
LISTED = "rdma_listed_by_cluster"
#: nodes of which a node may claim an address before its claims count for nothing. So many must lie together to make a
#: node of good faith look so
_MOST_RIVALS = 4


@dataclasses.dataclass(frozen=True)
class InventoryNode:
    """A node, with what of its own words was taken.

    :ivar address: internal IP address; empty where the node tells none, or tells what is none (see ``error``)
    :ivar groups: what it is and where it stands, by the first part of the group's name (``os``, ``model``, ``pool``,
        ``zone``, ``leaf``)
    :ivar error: which of the texts of the node were refused, and what they must be; empty when none was. The node must
        not be reached by ssh then
    :ivar claimed: all addresses that the kubelet writes, internal and external
    """

    name: Subdomain
    address: HostAddress
    labels: dict[LabelKey, LabelValue] = dataclasses.field(default_factory=dict)
    groups: dict[str, GroupWord] = dataclasses.field(default_factory=dict)
    error: str = ""
    claimed: tuple[HostAddress, ...] = ()


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The nodes of a cluster.

    :ivar refused: why what the API server listed as a node is none, one text for each
    """

    nodes: tuple[InventoryNode, ...]
    refused: tuple[str, ...] = ()


def refuse_shared_addresses(found: Inventory, everyone: typing.Iterable[InventoryNode]) -> Inventory:
    """Take the address from each node that claims the one of another node: by ssh, the tasks of one node would run on
    the other.

    Which of them is right, the API server does not know: the kubelet of each has written it. But one that claims
    addresses of many nodes beside its own takes theirs from none of them.

    :param everyone: all nodes of the cluster, also those outside of the inventory
    """
    owners: dict[str, list[str]] = {}
    known = {node.name: node for node in everyone}
    for node in known.values():
        for address in {node.address, *node.claimed} - {""}:
            owners.setdefault(address, []).append(node.name)
    greedy = {
        name
        for name, node in known.items()
        if len({other for address in node.claimed for other in owners[address]} - {name}) > _MOST_RIVALS
    }

    def rivals(node: InventoryNode) -> list[str]:
        others = [name for name in owners.get(node.address, ()) if name != node.name]
        return [
            name for name in others if name not in greedy or node.name in greedy or known[name].address == node.address
        ]

    return dataclasses.replace(found, nodes=tuple(_remove_shared(node, rivals(node)) for node in found.nodes))


def _remove_shared(node: InventoryNode, others: typing.Sequence[str]) -> InventoryNode:
    if not node.address or not others:
        return node
    words = f"Node {node.name}: its InternalIP {node.address} is also that of {', '.join(others[:3])}"
    return dataclasses.replace(node, address="", error="; ".join(filter(None, (node.error, words))))
