# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether two fabrics of an intent may share an HCA, and explain why not."""

from __future__ import annotations

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, may_share


def why_apart(one: Fabric, other: Fabric) -> str:
    """Return why two fabrics must not share an HCA, as a sentence. Return an empty text if they may share it."""
    if may_share(one, other):
        return ""
    if find_traits(one).functions and find_traits(other).functions:
        return (
            "Both fabrics would create virtual functions on the same HCA, and each policy would undo the changes of the"
            " other policy."
        )
    for fabric in (one, other):
        if fabric.profile == "host_device":
            return (
                f"A pod of '{fabric.name}' moves the interface out of the node, so the other fabric loses its"
                " interface."
            )
        if fabric.network.mode == "passthru":
            return f"In mode passthru, only '{fabric.name}' can use the interface."
    return "Both fabrics would allocate the same device to pods, independently of each other."
