# SPDX-License-Identifier: GPL-3.0-or-later

"""PodDisruptionBudgets that hold pods of a drain. Tenants make both, in any number: what is compared has a bound, and a
namespace beyond it counts as held. Pure."""

from __future__ import annotations

import collections
import functools
import typing

from ..._model.base.text import folded
from ..._model.kubernetes.disruption import Budget, ClusterPod
from .sriov_operator import leaves, matches

#: pods of a node that a drain waits for, and budgets of a pod, in a text
MOST_NAMED = 4
#: budgets of a namespace; from there on each of them counts for each pod of the namespace
MOST_BUDGETS = 1_000
#: requirements of budgets that are compared with pods of a namespace, half a second of CPU time; from there on each
#: budget counts for each pod
MOST_COMPARED = 5_000_000


class BudgetIndex:
    """The budgets of each namespace, by the first label that each requires. Pods with equal labels are compared
    once."""

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
        """Return the budgets that select a pod, or may do so."""
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
            self._known[key] = tuple(budget for budget in candidates if matches(budget.selector, pod.labels))
        return self._known[key]


def _count_requirements(budget: Budget) -> int:
    selector = budget.selector
    return 1 + (len(selector.labels) + len(selector.expressions) if selector is not None else 0)


class PodsOfCluster:
    """The pods and budgets of a cluster, indexed once: a plan asks for those of each node."""

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
        """Return the pods of a node."""
        return self.pods_by_node.get(node, ())


def find_held_pods(pods: typing.Iterable[ClusterPod], full: bool, prefix: str, budgets: BudgetIndex) -> tuple[str, ...]:
    """Return the pods that a drain waits for, each with the PodDisruptionBudgets that hold it, in words. The API server
    evicts no pod that more than one of them selects, whatever they allow. [kubernetes
    pkg/registry/core/pod/storage/eviction.go]

    A tenant may have thousands of either: the first ``MOST_NAMED`` are named, and the others counted.
    """
    going = [pod for pod in pods if not pod.ended and leaves(pod, full, prefix)]
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
        names = folded([f"{budget.namespace}/{budget.name}" for budget in closed or its], MOST_NAMED)
        found.append(
            f"pod {pod.namespace}/{pod.name} is held by PodDisruptionBudget {names}, which allows no eviction now"
            if closed
            else f"pod {pod.namespace}/{pod.name} is held by more than one PodDisruptionBudget ({names}), and the API"
            " server evicts no such pod"
        )
    why = " that allow no eviction now" if not twice else ""
    return (*found, f"{more} more pods are held by PodDisruptionBudgets{why}") if more else tuple(found)
