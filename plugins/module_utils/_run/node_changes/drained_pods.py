# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the pods that drains of a cluster would evict, and the PodDisruptionBudgets for them. Tenants write both, and a
pod may have labels and requests of a megabyte, so only the fields that a drain needs are kept.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import typing

from ..._analysis.controllers.drains.budgets import MOST_BUDGETS
from ..._analysis.controllers.sriov.drains import is_evicted
from ..._model.kubernetes.disruption import Budget, ClusterPod, LabelSelector
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import mapping_at, why_not_read

#: labels of a pod that budgets of its namespace name; one that has more counts as selected by each of them
MOST_LABELS = 32
#: pods of a cluster that drains may take; Kubernetes is tested with 150,000 pods
MOST_PODS = 200_000
#: stands for a value that no budget names, which no label has
_OTHER = " "


def may_leave(item: Resource) -> bool:
    """Return whether a drain might evict a pod, judged by its metadata alone. Pods of DaemonSets are not evicted.
    Mirror pods are not evicted either, and a kubelet can create any number of them, of any size.
    """
    return is_made_pod(item) and core.parse_controller(item)[0] != "DaemonSet"


def keep_budgets(items: typing.Iterable[Resource]) -> tuple[Budget, ...]:
    """Return parsed PodDisruptionBudgets. If a namespace has more than ``MOST_BUDGETS``, one budget that blocks every
    pod of the namespace replaces all of them.

    :param items: PodDisruptionBudgets as the API server sends them
    :raises ResourceError: an object is malformed
    """
    found: dict[str, list[Budget]] = collections.defaultdict(list)
    beyond: set[str] = set()
    for budget in map(core.parse_budget, items):
        namespace = budget.namespace
        if namespace in beyond:
            continue
        found[namespace].append(budget)
        if len(found[namespace]) > MOST_BUDGETS:
            beyond.add(namespace)
            found[namespace] = [_stand_in(namespace)]
    return tuple(itertools.chain.from_iterable(found.values()))


def bound_budgets(known: typing.Mapping[str, Budget]) -> typing.Mapping[str, Budget]:
    """Return PodDisruptionBudgets from a watch, with at most ``MOST_BUDGETS`` of each namespace. If a namespace has
    more, one budget that blocks every pod of the namespace replaces all of them.

    :param known: budgets by ``namespace/name``
    """
    numbers = collections.Counter(budget.namespace for budget in known.values())
    beyond = {namespace for namespace, number in numbers.items() if number > MOST_BUDGETS}
    beyond |= {budget.namespace for budget in known.values() if budget == _stand_in(budget.namespace)}
    if not beyond:
        return known
    kept = {key: budget for key, budget in known.items() if budget.namespace not in beyond}
    return {**kept, **{f"{one.namespace}/{one.name}": one for one in map(_stand_in, sorted(beyond))}}


def _stand_in(namespace: str) -> Budget:
    return Budget(f"more-than-{MOST_BUDGETS}", namespace, 0, LabelSelector())


class PodKeeper:
    """A parser of pods that keeps only the fields that a drain needs. Labels that no budget names are dropped, and the
    kept label texts are shared between pods.

    :param budgets: PodDisruptionBudgets, whose selectors name the labels to keep
    :param prefixes: prefixes of resource names. For each prefix, the kept pod has one of the requested resources with
        this prefix
    """

    def __init__(self, budgets: typing.Iterable[Budget], prefixes: typing.Iterable[str]) -> None:
        self._prefixes = tuple(prefixes)
        #: by namespace and key of a label: the key, and the values that budgets name
        self._asked: dict[str, dict[str, tuple[str, dict[str, str]]]] = collections.defaultdict(dict)
        for budget in budgets:
            if budget.selector is None:
                continue
            for key, value in budget.selector.labels.items():
                self._record_selector_values(budget.namespace, key, (value,))
            for item in budget.selector.expressions:
                self._record_selector_values(budget.namespace, item.key, item.values)

    def _record_selector_values(self, namespace: str, key: str, values: typing.Iterable[str]) -> None:
        _key, known = self._asked[namespace].setdefault(key, (key, {}))
        known.update((value, value) for value in values)

    def keep(self, resource: Resource) -> typing.Optional[ClusterPod]:
        """Return the fields of a pod that a drain needs, if a drain of its node would evict the pod. Return None for
        any other pod.

        :raises ResourceError: the pod is malformed
        """
        pod = core.parse_pod(resource)
        if not pod.node or not is_evicted(pod, True, ""):
            return None
        asked = self._asked.get(pod.namespace, {})
        labels: dict[str, str] = {}
        for key in pod.labels.keys() & asked.keys():
            name, values = asked[key]
            labels[name] = values.get(pod.labels[key], _OTHER)
        many = len(labels) > MOST_LABELS
        requests = {next((name for name in pod.requests if name.startswith(prefix)), "") for prefix in self._prefixes}
        return dataclasses.replace(
            pod, labels={} if many else labels, any_budget=many, requests=tuple(sorted(requests - {""}))
        )


def keep_pods(
    items: typing.Iterable[Resource],
    budgets: typing.Iterable[Budget],
    prefixes: typing.Iterable[str] = (),
    find_nodes: typing.Callable[[typing.Collection[str]], typing.Mapping[str, str]] = lambda _uids: {},
) -> tuple[ClusterPod, ...]:
    """Return the pods that drains would evict, parsed, with only the fields that a drain needs.

    :param items: pods as the API server sends them, some of them with only their metadata
    :param budgets: budgets that name the labels to keep
    :param prefixes: prefixes of resource names. For each prefix, a pod has one of the requested resources with this
        prefix
    :param find_nodes: function that gets the uids of pods of which only the metadata was read, and returns their nodes
        by uid; called at most once. Pods without a node are left out
    :raises ApiError: there are more than ``MOST_PODS``
    :raises ResourceError: an object is malformed
    """
    keeper, found = PodKeeper(budgets, prefixes), typing.cast(list[ClusterPod], [])
    large: dict[str, ClusterPod] = {}
    for item in items:
        if why_not_read(item):
            pod = core.unread_pod(item)
            large[pod.uid] = pod
        elif (kept := keeper.keep(item)) is not None:
            found.append(kept)
        if len(found) + len(large) > MOST_PODS:
            raise ApiError(
                200, "TooMany", f"the cluster has more than {MOST_PODS} pods that drains may evict", "GET pods"
            )
    nodes = find_nodes(large.keys()) if large else {}
    return (*found, *(dataclasses.replace(pod, node=nodes[uid]) for uid, pod in large.items() if nodes.get(uid)))


def find_nodes(cluster: Cluster, nodes: typing.Iterable[str], uids: typing.Collection[str]) -> dict[str, str]:
    """Return the node of each pod that was not read in full, by uid of the pod, from a list of metadata for each node.
    Pods that are on none of the nodes are left out.

    :param nodes: names of the nodes that are searched
    :param uids: uids of the pods
    :raises ApiError: a list is refused, or larger than a page may be
    """
    return {
        uid: node
        for node in nodes
        for item in cluster.metadata("Pod", "", fields=f"spec.nodeName={node}")
        for uid in [str(mapping_at(item, "metadata").get("uid"))]
        if uid in uids
    }
