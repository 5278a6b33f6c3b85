# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide whether two fabrics of an intent may share an HCA, and explain why not."""

from __future__ import annotations

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, may_share


def why_apart(one: Fabric, other: Fabric) -> str:
    """Return why two fabrics can't have one HCA; empty where they can."""
    if may_share(one, other):
        return ""
    if find_traits(one).functions and find_traits(other).functions:
        return "Both fabrics would make virtual functions on the same HCA, and each policy undoes what the other did."
    for fabric in (one, other):
        if fabric.profile == "host_device":
            return (
                f"A pod of '{fabric.name}' takes the interface out of the node, and what the other fabric has on it is"
                " gone."
            )
        if fabric.network.mode == "passthru":
            return f"In mode passthru the interface belongs to '{fabric.name}' alone."
    return "Both fabrics would hand out the same device, each as if it were its own."
