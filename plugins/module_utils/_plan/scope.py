# SPDX-License-Identifier: GPL-3.0-or-later

"""Derive from an intent which objects of the cluster belong to it."""

from __future__ import annotations

import typing

from .._model.base.marks import DEFAULT_INTENT
from .._model.intent.intent import ClusterIntent, Fabric
from .._model.intent.profiles import attachment_kind, find_traits
from .._model.kubernetes.nic_policy import list_components
from .._model.kubernetes.scope import Scope
from .._model.node.node_tuning import TUNED
from .._render.cluster.names import FABRIC_LABEL, build_labels, policy_name
from .._render.network.network import build_record
from .._render.network.nvidia import render_nic_policy
from .._render.network.sriov import render_node_pools
from .._render.node.host import render_host_configs


def build_scope(fabrics: typing.Sequence[Fabric], cluster: ClusterIntent, nodes: typing.Iterable[str] = ()) -> Scope:
    """Return the scope of an intent: the names and labels by which the objects of the collection that belong to this
    intent are recognized.

    :param fabrics: fabrics of the intent; empty if only the objects that all fabrics share are needed
    :param nodes: names of the nodes of the inventory, which may not have the labels of the node selector yet
    """
    labels = {fabric.name: build_labels(fabric.name)[FABRIC_LABEL] for fabric in fabrics}
    names = {(attachment_kind(fabric), fabric.network.name, labels[fabric.name]) for fabric in fabrics}
    names |= {(fabric.pool.kind, fabric.pool.name, labels[fabric.name]) for fabric in fabrics if fabric.pool}
    shared = (*render_node_pools(cluster), *render_host_configs(cluster.host, cluster.intent_name))
    names |= {(str(item["kind"]), str(item["metadata"]["name"]), "") for item in shared}
    return Scope(
        cluster.intent_name or DEFAULT_INTENT,
        frozenset({*names, ("Tuned", TUNED, "")}),
        {labels[fabric.name]: policy_name(fabric.name) for fabric in fabrics},
        frozenset(fabric.network.namespace for fabric in fabrics),
        frozenset(fabric.resource_name for fabric in fabrics if fabric.resource_name),
        dict(cluster.node_selector),
        nodes=frozenset(nodes),
        records={
            labels[fabric.name]: build_record(fabric, cluster)
            for fabric in fabrics
            if cluster.intent_name in ("", DEFAULT_INTENT) and not find_traits(fabric).functions
        },
        components=frozenset(
            part for policy in render_nic_policy(fabrics, cluster) for part in list_components(policy)
        ),
        operator=cluster.operator_namespace or "",
    )
