# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the PodDisruptionBudgets that block the eviction of pods by a drain. Pure.

Tenants can create any number of pods and budgets, so the number of comparisons is limited. Beyond the limit, each
budget of a namespace counts for each pod of the namespace.
"""

from __future__ import annotations

import collections
import functools
import typing

from ...._model.base.text import join_first
from ...._model.kubernetes.disruption import Budget, ClusterPod
from ..label_selectors import labels_match
from ..sriov.drains import is_evicted

#: pods of a node that a drain waits for, and budgets of a pod, in a text
MOST_NAMED = 4
#: parts of the reasons, by which their remedy is chosen
_HELD = "cannot be evicted because PodDisruptionBudget"
_HELD_TWICE = "cannot be evicted because more than one PodDisruptionBudget"
_MORE_HELD = "more pods are blocked by PodDisruptionBudgets"
#: budgets of a namespace; from there on each of them counts for each pod of the namespace
MOST_BUDGETS = 1_000
#: requirements of budgets that are compared with pods of a namespace, half a second of CPU time; from there on each
#: budget counts for each pod
MOST_COMPARED = 5_000_000


class BudgetIndex:
    """An index of PodDisruptionBudgets by namespace and by the first label that each of them requires. Pods with equal
    labels are compared only once.
    """

    def __init__(self, budgets: typing.Iterable[Budget]) -> None:
        self._every: dict[str, list[Budget]] = collections.defaultdict(list)
        #: namespace, and key and value of a label; of budgets that require none, the namespace alone
        self._by_label: dict[tuple[str, ...], list[Budget]] = collections.defaultdict(list)
        self._compared: collections.Counter[str] = collections.Counter()
        self._known: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Budget, ...]] = {}
        for budget in budgets:
            if budget.selector is not None:
                self._every[budget.namespace].append(budget)
                label = next(iter(budget.selector.labels.items()), ())
                key = (budget.namespace, *label)
                self._by_label[key].append(budget)

    def find(self, pod: ClusterPod) -> tuple[Budget, ...]:
        """Return the budgets that select a pod, or possibly select it.

        Every budget of the namespace counts beyond the limit of comparisons, and for a pod of which only some labels
        were kept.
        """
        namespace, every = pod.namespace, self._every.get(pod.namespace, ())
        if not every:
            return ()
        if pod.any_budget or len(every) > MOST_BUDGETS or self._compared[namespace] > MOST_COMPARED:
            return tuple(every)
        key = namespace, frozenset(pod.labels.items())
        if key not in self._known:
            candidates = [*self._by_label.get((namespace,), ())]
            for label in pod.labels.items():
                candidates += self._by_label.get((namespace, *label), ())
            self._compared[namespace] += sum(map(_count_requirements, candidates))
            self._known[key] = tuple(budget for budget in candidates if labels_match(budget.selector, pod.labels))
        return self._known[key]


def _count_requirements(budget: Budget) -> int:
    selector = budget.selector
    return 1 + (len(selector.labels) + len(selector.expressions) if selector is not None else 0)


class PodsOfCluster:
    """The pods and PodDisruptionBudgets of a cluster, with indexes by node and by label.

    :ivar pods: pods of all namespaces
    :ivar budgets: PodDisruptionBudgets of all namespaces
    """

    pods: tuple[ClusterPod, ...]
    budgets: tuple[Budget, ...]

    @functools.cached_property
    def budget_index(self) -> BudgetIndex:
        """The budgets by namespace and label."""
        return BudgetIndex(self.budgets)

    @functools.cached_property
    def pods_by_node(self) -> typing.Mapping[str, typing.Sequence[ClusterPod]]:
        """The pods by the name of their node."""
        found: collections.defaultdict[str, list[ClusterPod]] = collections.defaultdict(list)
        for pod in self.pods:
            found[pod.node].append(pod)
        return found

    def list_pods(self, node: str) -> typing.Sequence[ClusterPod]:
        """Return the pods that run on a node; empty if the node has none."""
        return self.pods_by_node.get(node, ())


def find_held_pods(pods: typing.Iterable[ClusterPod], full: bool, prefix: str, budgets: BudgetIndex) -> tuple[str, ...]:
    """Return a text for each pod that a drain cannot evict now, with the PodDisruptionBudgets that block its eviction.
    The API server evicts no pod that more than one budget selects, whatever the budgets allow. [kubernetes
    pkg/registry/core/pod/storage/eviction.go] After the first ``MOST_NAMED`` pods, one text has the number of the
    remaining ones, because a tenant may have thousands of pods and budgets.

    :param pods: pods of the node
    :param full: whether the drain evicts all pods; otherwise only those with a resource of ``prefix``
    :param prefix: prefix of the resources of virtual functions
    :param budgets: PodDisruptionBudgets of the cluster
    """
    going = [pod for pod in pods if not pod.ended and is_evicted(pod, full, prefix)]
    found, more, twice = typing.cast(list[str], []), 0, 0
    for pod in going:
        its = budgets.find(pod)
        closed = [budget for budget in its if budget.allowed < 1]
        if not closed and len(its) < 2:
            continue
        if len(found) >= MOST_NAMED:
            more += 1
            twice += not closed
            continue
        names = join_first([f"{budget.namespace}/{budget.name}" for budget in closed or its], MOST_NAMED)
        several = len(closed) > 1
        found.append(
            (
                f"pod {pod.namespace}/{pod.name} {_HELD}{'s' * several} {names}"
                f" currently {'allow' if several else 'allows'} no eviction"
            )
            if closed
            else (
                f"pod {pod.namespace}/{pod.name} {_HELD_TWICE} ({names})"
                " selects it, and the API server does not evict such a pod"
            )
        )
    why = " that currently allow no eviction" if not twice else ""
    return (*found, f"{more} {_MORE_HELD}{why}") if more else tuple(found)


def is_held_once(blocker: str) -> bool:
    """Return whether a reason against a drain is a PodDisruptionBudget that allows no eviction.

    :param blocker: the reason, as ``find_held_pods`` returned it
    """
    return _HELD in blocker or _MORE_HELD in blocker


def is_held_twice(blocker: str) -> bool:
    """Return whether a reason against a drain is a pod that more than one PodDisruptionBudget selects.

    :param blocker: the reason, as ``find_held_pods`` returned it
    """
    return _HELD_TWICE in blocker
