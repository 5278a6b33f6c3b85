# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the cluster as an inventory wants it."""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class InventoryNode:
    """:ivar address: internal IP address; empty where the node tells none
    :ivar groups: what it is and where it stands, by the first part of the group's name (``os``, ``model``, ``pool``, ``zone``, ``leaf``)
    """

    name: str
    address: str
    labels: typing.Dict[str, str] = dataclasses.field(default_factory=dict)
    groups: typing.Dict[str, str] = dataclasses.field(default_factory=dict)
