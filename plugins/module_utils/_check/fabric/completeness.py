# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric: check that the nodes and the links of a topology agree. If they do not, the discovery missed an unknown
part of the fabric.
"""

from __future__ import annotations

from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import UNKNOWN, Finding
from .names import Names, join_some

#: types of devices in the words of ibnetdiscover
_KINDS = {"Ca": "HCA", "Switch": "switch", "Rt": "router"}


def check_whole(fabric: Fabric, topology: Topology) -> list[Finding]:
    """Return a finding of status ``unknown`` if an end of a link is not in the list of nodes or has another kind in
    that list, or if the links form several separate parts. The list is empty otherwise. Nodes without a link are
    ignored, since they may belong to other tenants.
    """
    kinds = {node.guid: node.kind for node in topology.nodes}
    ends = {(end.guid, end.kind) for link in topology.links for end in (link.a, link.b)}
    strange = sorted(
        f"{_KINDS.get(kind or '', kind or 'device')} {guid or 'without a GUID'}"
        for guid, kind in ends
        if kinds.get(guid) != kind
    )
    subject = f"{fabric.name} links"
    remedy = (
        "Run ibnetdiscover > /dev/null as root on a node of the fabric, which prints only the errors. Repair the"
        " switch or the link that the errors name. Then run stage fabric again."
    )
    if strange:
        why = (
            "ibnetdiscover reports links to these devices, but does not list the devices, or lists them as a different"
            f" type: {join_some(strange)}. The discovery was incomplete, so other devices may be missing as well."
        )
        measured, expected = (
            f"{count_of(len(strange), 'link end')} at unlisted devices",
            "each link end at a listed device",
        )
        return [Finding("fabric.topology", subject, UNKNOWN, measured, expected, why, remedy)]
    parts = sorted(_find_parts(topology), key=len)
    if len(parts) > 1:
        names = Names(topology)
        away = [names.node(guid) for part in parts[:-1] for guid in sorted(part)]
        why = (
            "ibnetdiscover follows links from device to device, but reports no link that leads to these devices:"
            f" {join_some(away)}. The discovery was incomplete, so other devices may be missing as well."
        )
        return [
            Finding(
                "fabric.topology",
                subject,
                UNKNOWN,
                count_of(len(parts), "separate part"),
                "1 connected part",
                why,
                remedy,
            )
        ]
    return []


def _find_parts(topology: Topology) -> list[set[str]]:
    """Return the connected components of the topology, each as a set of GUIDs of nodes."""
    beside: dict[str, set[str]] = {}
    for link in topology.links:
        beside.setdefault(link.a.guid, set()).add(link.b.guid)
        beside.setdefault(link.b.guid, set()).add(link.a.guid)
    parts, left = [], set(beside)
    while left:
        part, edge = set(), {left.pop()}
        while edge:
            part |= edge
            edge = {guid for near in edge for guid in beside[near]} - part
        parts.append(part)
        left -= part
    return parts
