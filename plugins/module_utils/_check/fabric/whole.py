# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric: do the two halves of a topology, its nodes and its links, tell the same. Where they do not, something is missing, and nobody knows what."""

from __future__ import annotations

import typing

from ..._model.fabric import Topology
from ..._model.findings import UNKNOWN, Finding
from ..._model.intent import Fabric
from .names import some


def check_whole(fabric: Fabric, topology: Topology) -> typing.List[Finding]:
    """Nothing where each end of a link is a node of its kind. A node without a link may be anybody's."""
    kinds = {node.guid: node.kind for node in topology.nodes}
    ends = {(end.guid, end.kind) for link in topology.links for end in (link.a, link.b)}
    strange = sorted(f"{kind or 'something'} {guid or 'without a GUID'}" for guid, kind in ends if kinds.get(guid) != kind)
    if not strange:
        return []
    why = f"Links end at what is not among the nodes, or is there as something else: {some(strange)}. What else the discovery has missed is not known."
    remedy = "Run ibnetdiscover by hand on a node of the fabric, as root, and run the stage again."
    measured, expected = f"{len(strange)} ends of links without a node", "a node at each end of a link"
    return [Finding("fabric.topology", f"{fabric.name} links", UNKNOWN, measured, expected, why, remedy)]
