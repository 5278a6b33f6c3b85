# SPDX-License-Identifier: GPL-3.0-or-later

"""The cliques of GPUs whose NVLink joins several nodes (GB200, GB300). Check id: ``tuning.nvlink_domain``."""

from __future__ import annotations

import typing

from ..._model.base.text import folded
from ..._model.run.findings import UNKNOWN, WARN, Finding, ok
from .rows import Nodes, explain_why_unread, names

CHECK = "tuning.nvlink_domain"
_ROW = "gpu_clique"
_SHOWN = 5
_REMEDY = (
    "nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv on each node. Set the NVLink partitions of"
    " the rack with NMX-C, or waive this finding if the partitions are intended."
)


def check(nodes: Nodes) -> typing.Iterator[Finding]:
    """Yield a finding for each NVLink domain: the nodes of one ClusterUUID are in one clique, and all of them report
    it. GPUs in different cliques of a domain cannot use NVLink between them. Yield nothing if no GPU is in such a
    domain.
    """
    domains: dict[str, dict[str, list[str]]] = {}
    for name, node in nodes.items():
        for reading in node.rows.get(_ROW, ()):
            cluster, _point, clique = reading.value.rpartition(".")
            domains.setdefault(cluster, {}).setdefault(clique, []).append(name)
    if not domains:
        return
    unread = [name for name, node in nodes.items() if explain_why_unread(node, _ROW) is not None]
    if unread:
        why = f"Other nodes are in an NVLink domain. {unread[0]}: {explain_why_unread(nodes[unread[0]], _ROW)}."
        expected = "the clique of each GPU"
        yield Finding(CHECK, f"clique of {names(unread)}", UNKNOWN, "not read", expected, why, _REMEDY)
    for cluster, cliques in sorted(domains.items()):
        members = sorted({name for found in cliques.values() for name in found})
        subject, expected = f"NVLink domain {cluster}", "one clique for all nodes of the domain"
        if len(cliques) == 1:
            yield ok(CHECK, subject, f"clique {next(iter(cliques))} on {len(members)} nodes", expected)
            continue
        measured = folded([f"clique {clique} on {names(found)}" for clique, found in sorted(cliques.items())], _SHOWN)
        why = "GPUs of different cliques have no NVLink between them. A job over these nodes uses the network instead."
        yield Finding(CHECK, subject, WARN, measured, expected, why, _REMEDY)
