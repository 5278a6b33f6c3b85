# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVLink fabric of the GPUs, compared between nodes: GPUs that do not report it although equal GPUs do, and the
cliques of the domains that join several nodes (GB200, GB300). Check id: ``tuning.nvlink_domain``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.node.tuning import NodeTuning
from ..._model.node.tuning_rows.table import BY_NAME
from ..._model.run.findings import UNKNOWN, WARN, Finding, build_pass
from . import unread as unread_texts
from .rows import Nodes, explain_why_unread, join_node_names

CHECK = "tuning.nvlink_domain"
_MODEL, _REGISTRATION, _CLIQUE = "gpu_model", "gpu_fabric", "gpu_clique"
_SHOWN = 5
_REMEDY = (
    "If the NVLink partitions of the rack are intended, waive this finding. Otherwise run nvidia-smi"
    " --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv on each node, and put its GPUs into one partition"
    " with NMX-C, at a time without jobs. Then run stage tuning again."
)


def check(nodes: Nodes) -> typing.Iterator[Finding]:
    """Check the NVLink domains of the nodes: each GPU of a model with NVLink fabric reports its registration and its
    clique, and all nodes of a domain are in one clique. Yield nothing if no GPU has such a fabric.

    :param nodes: tuning of each node
    """
    for row in (_REGISTRATION, _CLIQUE):
        yield from _report_silent_gpus(nodes, row)
    domains: dict[str, dict[str, list[str]]] = {}
    for name, node in nodes.items():
        for reading in node.rows.get(_CLIQUE, ()):
            cluster, _point, clique = reading.value.rpartition(".")
            if cluster:
                domains.setdefault(cluster, {}).setdefault(clique, []).append(name)
    for cluster, cliques in sorted(domains.items()):
        yield _check_domain(cluster, cliques)


def _report_silent_gpus(nodes: Nodes, row: str) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` on the nodes whose GPUs do not report a value of a tuning row, if a GPU of
    the same model reports one.

    :param nodes: tuning of each node
    :param row: name of the tuning row (one observable property of a GPU)
    """
    models = {
        model.value
        for node in nodes.values()
        for model in node.rows.get(_MODEL, ())
        if _list_showing(node, row) & {*model.where}
    }
    silent: dict[str, str] = {}
    gpus_without: dict[str, list[str]] = {}
    for name, node in nodes.items():
        gpus = {gpu for model in node.rows.get(_MODEL, ()) if model.value in models for gpu in model.where}
        missing = sorted(gpus - _list_showing(node, row))
        if missing:
            gpus_without[name] = missing
            silent[name] = (
                explain_why_unread(node, row) or f"nvidia-smi does not report it for GPU {join_node_names(missing)}"
            )
    if silent:
        (first, reason), *_others = silent.items()
        what = BY_NAME[row].what
        why = f"Other GPUs of the same model report this value. On {first}: {format_clause(reason)}."
        remedy = unread_texts.choose_remedy(reason, first, BY_NAME[row])
        measured = f"not reported by {count_of(sum(map(len, gpus_without.values())), 'GPU')}: " + join_first(
            [f"{gpu} of {name}" for name, gpus in gpus_without.items() for gpu in gpus], _SHOWN
        )
        yield Finding(
            CHECK,
            f"{row} of {join_node_names(silent)}",
            UNKNOWN,
            measured,
            f"{what}: a value from each GPU",
            why,
            remedy,
        )


def _list_showing(node: NodeTuning, row: str) -> set[str]:
    """Return the names of the GPUs of a node that report a value of a tuning row.

    :param row: name of the tuning row (one observable property of a GPU)
    """
    return {gpu for reading in node.rows.get(row, ()) if reading.value for gpu in reading.where}


def _check_domain(cluster: str, cliques: typing.Mapping[str, typing.Sequence[str]]) -> Finding:
    """Check that the GPUs of a domain are in one clique. GPUs of different cliques have no NVLink between them.

    :param cluster: id of the NVLink domain
    :param cliques: nodes by number of the clique
    """
    subject, expected = f"NVLink domain {cluster}", "one clique for all nodes of the domain"
    if len(cliques) == 1:
        ((clique, members),) = cliques.items()
        return build_pass(CHECK, subject, f"clique {clique} on {count_of(len({*members}), 'node')}", expected)
    measured = join_first(
        [f"clique {clique} on {join_node_names(members)}" for clique, members in sorted(cliques.items())], _SHOWN
    )
    why = "GPUs of different cliques have no NVLink between them. A job over these nodes uses the network instead."
    return Finding(CHECK, subject, WARN, measured, expected, why, _REMEDY)
