# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the cluster as a host of the Ansible inventory, and the check that no two nodes claim the same address."""

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
    """A node of the cluster for the Ansible inventory, with validated texts.

    :ivar address: internal IP address; empty if missing or invalid (see ``error``)
    :ivar labels: labels of the node
    :ivar groups: properties and location of the node, by the first part of the group's name (``os``, ``model``,
        ``pool``, ``zone``, ``leaf``)
    :ivar error: rejected texts of the node and their required format; empty if all are valid. With an error the node
        must not be reached by ssh
    :ivar claimed: all addresses in the node's status, internal and external
    """

    name: Subdomain
    address: HostAddress
    labels: dict[LabelKey, LabelValue] = dataclasses.field(default_factory=dict)
    groups: dict[str, GroupWord] = dataclasses.field(default_factory=dict)
    error: str = ""
    claimed: tuple[HostAddress, ...] = ()


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The nodes of a cluster for the Ansible inventory.

    :ivar nodes: valid nodes
    :ivar refused: why an object that the API server listed is not a valid node, one text for each
    """

    nodes: tuple[InventoryNode, ...]
    refused: tuple[str, ...] = ()


def refuse_shared_addresses(found: Inventory, everyone: typing.Iterable[InventoryNode]) -> Inventory:
    """Return the inventory in which each node whose address another node claims has an error instead of the address. If
    Ansible used the address, tasks for one of the nodes would run on the other.

    The API server cannot decide which claim is right, because the kubelet of each node wrote its own claim. A node that
    claims addresses of more than ``_MOST_RIVALS`` other nodes is not trusted: of its claims only its internal address
    counts.

    :param found: nodes of the inventory
    :param everyone: all nodes of the cluster, including those outside of the inventory
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
    words = f"Node {node.name}: its InternalIP {node.address} is also the InternalIP of {', '.join(others[:3])}"
    return dataclasses.replace(node, address="", error="; ".join(filter(None, (node.error, words))))
