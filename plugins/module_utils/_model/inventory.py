# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the cluster as an inventory wants it."""

from __future__ import annotations

import dataclasses
import typing

from .boundary.addresses import HostAddress
from .boundary.kubernetes import GroupWord, LabelKey, LabelValue, Subdomain


@dataclasses.dataclass(frozen=True)
class InventoryNode:
    """A node, with what of its own words was taken.

    :ivar address: internal IP address; empty where the node tells none, or tells what is none (see ``error``)
    :ivar groups: what it is and where it stands, by the first part of the group's name (``os``, ``model``, ``pool``, ``zone``, ``leaf``)
    :ivar error: which of the texts of the node were refused, and what they must be; empty when none was. The node must not be reached by ssh then
    :ivar claimed: all addresses that the kubelet writes, internal and external
    """

    name: Subdomain
    address: HostAddress
    labels: typing.Dict[LabelKey, LabelValue] = dataclasses.field(default_factory=dict)
    groups: typing.Dict[str, GroupWord] = dataclasses.field(default_factory=dict)
    error: str = ""
    claimed: typing.Tuple[HostAddress, ...] = ()


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The nodes of a cluster.

    :ivar refused: why what the API server listed as a node is none, one text for each
    """

    nodes: typing.Tuple[InventoryNode, ...]
    refused: typing.Tuple[str, ...] = ()
