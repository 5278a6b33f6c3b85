# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the pods that must not be lost, or cannot be evicted, before an operator drains nodes. The operator does not
ask: it deletes the pods, or waits for a PodDisruptionBudget without end.
"""

from __future__ import annotations

import collections
import functools
import typing

from ..._analysis.controllers.drains.budgets import BudgetIndex, find_held_pods
from ..._analysis.controllers.drains.drain import list_drain_blockers
from ..._analysis.controllers.sriov.drains import is_evicted
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import ClusterPod
from ..._observe.kubernetes.client import Cluster
from .drained_pods import find_nodes, keep_budgets, keep_pods, may_leave


def read_drain_blockers(
    cluster: Cluster, nodes: typing.Mapping[str, bool], intent: ClusterIntent
) -> typing.Iterator[str]:
    """Yield the reasons why an operator must not drain nodes now, each with its node and its remedy: a
    PodDisruptionBudget holds a pod, or the drain would delete a pod or its data for good and the intent does not permit
    this.

    :param nodes: whether the drain of each node evicts all pods (True) or only those with a resource of the SR-IOV
        device plugin (False), by name of the node
    :param intent: settings of the intent that all fabrics share
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    if not nodes:
        return
    budgets, prefix = keep_budgets(cluster.pages("PodDisruptionBudget")), intent.resource_prefix
    index = BudgetIndex(budgets)
    pods = keep_pods(
        cluster.pages("Pod", only=may_leave, partial=True),
        budgets,
        (prefix,),
        functools.partial(find_nodes, cluster, nodes),
    )
    here: dict[str, list[ClusterPod]] = collections.defaultdict(list)
    for pod in pods:
        here[pod.node].append(pod)
    for node, full in nodes.items():
        going = [pod for pod in here.get(node, ()) if pod.unread or is_evicted(pod, full, prefix)]
        for held in find_held_pods(going, full, prefix, index):
            yield f"{node}: {held}. Allow an eviction, for example with one more replica."
        for why in list_drain_blockers(going, intent.drain, ""):
            yield f"{node}: {why}"
