# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods and PodDisruptionBudgets of tenants, in any number and size: what a drain asks for is kept, in bounded memory
and time."""

from __future__ import annotations

import json
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.budgets import (
    MOST_BUDGETS,
    BudgetIndex,
    find_held_pods,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.drain import (
    list_drain_blockers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.live_state import Live
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import ClusterState
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import ClusterPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import NOT_READ
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import take
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate, WatchFeed
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import drained_pods
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drained_pods import (
    keep_budgets,
    keep_pods,
)
from ansible_collections.linerate.rdma.tests.unit.hostile.streamed_answer import StreamedAnswer
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

Item = dict[str, typing.Any]
LARGE = 20_000


def pod(name: str, labels: typing.Mapping[str, str], requests: typing.Iterable[str] = (), **spec: typing.Any) -> Item:
    uid = f"{abs(hash(name)) % 16**8:08x}-0000-4000-8000-000000000000"
    container = {"name": "c", "resources": {"requests": dict.fromkeys(requests, "1")}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "tenant", "uid": uid, "labels": dict(labels)},
        "spec": {"nodeName": "worker-1", "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def budget(name: str, selector: Item, allowed: int = 0) -> Item:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "tenant"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }


def held(pods: typing.Iterable[Item], budgets: typing.Iterable[Item]) -> tuple[str, ...]:
    kept = keep_budgets(budgets)
    return find_held_pods(keep_pods(pods, kept), True, "", BudgetIndex(kept))


def test_labels_that_no_budget_names_and_requests_of_other_resources_are_not_kept() -> None:
    budgets = keep_budgets([budget("b", {"matchLabels": {"app": "db"}})])

    def pods() -> typing.Iterator[Item]:
        for number in range(20):
            labels = {f"k{item}": f"{number}" for item in range(LARGE)}
            yield pod(f"p{number}", {"app": f"{number}", **labels}, (f"x.org/r{item}" for item in range(LARGE)))

    tracemalloc.start()
    kept = keep_pods(pods(), budgets, ("nvidia.com",))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 20 and used < 100_000
    (one,) = keep_pods([pod("p", {"app": "db", "x": "y"}, ("nvidia.com/vf", "cpu"))], budgets, ("nvidia.com",))
    assert (one.labels, one.requests) == ({"app": "db"}, ("nvidia.com/vf",))


@pytest.mark.parametrize(
    ("selector", "labels", "holds"),
    [
        ({"matchLabels": {"app": "db"}}, {"app": "db"}, True),
        ({"matchLabels": {"app": "db"}}, {"app": "web"}, False),
        ({"matchLabels": {"app": "db"}}, {}, False),
        ({}, {"any": "label"}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}, {"app": "web"}, False),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, {"app": "web"}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"app": "web"}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {"app": "web"}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {"tier": "web"}, True),
    ],
)
def test_what_is_kept_of_labels_decides_as_all_of_them(selector: Item, labels: dict[str, str], holds: bool) -> None:
    assert bool(held([pod("p", labels)], [budget("b", selector)])) == holds


def test_a_pod_with_more_labels_than_are_kept_counts_as_held_by_each_budget_of_its_namespace() -> None:
    keys = [f"k{number}" for number in range(drained_pods.MOST_LABELS + 1)]
    budgets = [budget(f"b-{key}", {"matchLabels": {key: "no", "other": "no"}}, allowed=0) for key in keys]
    (found,) = held([pod("p", dict.fromkeys(keys, "yes"))], budgets)
    assert (
        "pod tenant/p cannot be evicted because" in found
        and held([pod("p", dict.fromkeys(keys[1:], "yes"))], budgets) == ()
    )


def test_pods_that_no_drain_takes_are_not_kept() -> None:
    mirror = pod("m", {})
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    daemon = pod("d", {})
    daemon["metadata"]["ownerReferences"] = [{"controller": True, "kind": "DaemonSet", "name": "d"}]
    assert keep_pods([mirror, daemon, pod("pending", {}, nodeName="")], ()) == ()


def test_more_pods_than_a_cluster_has_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drained_pods, "MOST_PODS", 3)
    assert len(keep_pods([pod(f"p{number}", {}) for number in range(3)], ())) == 3
    with pytest.raises(ApiError, match="more than 3 pods"):
        keep_pods((pod(f"p{number}", {}) for number in range(4)), ())


def test_a_pod_that_is_too_large_is_looked_for_on_its_node_and_one_without_a_node_on_none() -> None:
    asked: list[typing.Collection[str]] = []

    def find_nodes(uids: typing.Collection[str]) -> dict[str, str]:
        asked.append(set(uids))
        return {uids_of["large"]: "worker-2"}

    small, *large = [pod(name, {}) for name in ("small", "large", "pending")]
    uids_of = {item["metadata"]["name"]: item["metadata"]["uid"] for item in large}
    not_read = [{"kind": "Pod", "metadata": item["metadata"], NOT_READ: "larger than a page"} for item in large]
    kept = keep_pods([*not_read, small], (), find_nodes=find_nodes)
    assert [(item.name, item.node, item.unread) for item in kept] == [
        ("small", "worker-1", False),
        ("large", "worker-2", True),
    ]
    assert asked == [set(uids_of.values())]
    (why,) = list_drain_blockers(kept[1:], DrainOptions(force=True, delete_empty_dir_data=True))
    assert why.startswith("these pods are too large to be read: tenant/large. Delete them")


def test_pods_are_compared_with_thousands_of_budgets_in_a_bounded_time() -> None:
    """5,000 pods with 10,000 budgets of 64 requirements took 320 s."""
    asked = [
        *({"key": f"k{number}", "operator": "DoesNotExist"} for number in range(14)),
        {"key": "a", "operator": "Exists"},
    ]
    budgets = [core.parse_budget(budget(f"b{number}", {"matchExpressions": asked})) for number in range(MOST_BUDGETS)]
    pods = [ClusterPod(f"p{number}", "tenant", "w", {"b": str(number)}) for number in range(5000)]
    with bounded(20):
        # those that are not compared any more count as held
        assert (
            "more pods are blocked by PodDisruptionBudgets" in find_held_pods(pods, True, "", BudgetIndex(budgets))[-1]
        )
    assert find_held_pods(pods[:50], True, "", BudgetIndex(budgets)) == ()
    # equal pods are compared once
    assert (
        find_held_pods(
            [ClusterPod(f"p{number}", "tenant", "w") for number in range(5000)], True, "", BudgetIndex(budgets)
        )
        == ()
    )


def test_a_namespace_with_more_budgets_than_are_kept_counts_as_held() -> None:
    budgets = [budget(f"b{number}", {"matchLabels": {"app": "no"}}, 1) for number in range(MOST_BUDGETS + 5)]
    kept = keep_budgets([*budgets, budget("last", {"matchLabels": {"app": "no"}}, 1)])
    assert len(kept) == 1
    (found,) = held([pod("p", {})], budgets)
    assert f"tenant/more-than-{MOST_BUDGETS}" in found
    assert held([pod("p", {})], budgets[:MOST_BUDGETS]) == ()


def test_budgets_that_are_watched_have_the_same_bound() -> None:
    """A tenant makes one after the other while the run waits for the network."""
    world = ClusterState()
    every = {"matchLabels": {"app": "no"}}
    other = {**budget("b", every, 1), "metadata": {"name": "b", "namespace": "other"}}
    for begin in range(0, 2 * MOST_BUDGETS + 100, 100):
        made = tuple(budget(f"b{number}", every, 1) for number in range(begin, begin + 100))
        world = take(world, KindUpdate("PodDisruptionBudget", "put", (*made, other)))
        assert len(world.budgets) <= MOST_BUDGETS + 1
    assert set(world.budgets) == {f"tenant/more-than-{MOST_BUDGETS}", "other/b"}
    gone = tuple(budget(f"b{number}", every, 1) for number in range(500))
    world = take(world, KindUpdate("PodDisruptionBudget", "drop", gone))
    assert len(world.budgets) == 2
    (found,) = find_held_pods([core.parse_pod(pod("p", {}))], True, "", BudgetIndex(world.budgets.values()))
    assert f"tenant/more-than-{MOST_BUDGETS}" in found
    world = take(world, KindUpdate("PodDisruptionBudget", "replace", gone))
    assert len(world.budgets) == 500


def test_a_pod_of_two_budgets_is_held_whatever_they_allow() -> None:
    twins = [budget(name, {"matchLabels": {"app": "twin"}}, 1) for name in ("a", "b")]
    (found,) = held([pod("p", {"app": "twin"}), pod("other", {})], twins)
    assert found == (
        "pod tenant/p cannot be evicted because more than one PodDisruptionBudget (tenant/a,"
        " tenant/b) selects it, and the API server does not evict such a pod"
    )
    assert held([pod("p", {"app": "twin"})], twins[:1]) == ()


def test_the_wait_keeps_of_pods_what_a_drain_asks_for() -> None:
    class Server:
        def request(self, method: str, path: str, body: typing.Any, **options: typing.Any) -> StreamedAnswer:
            labels = {f"k{item}": "v" for item in range(LARGE)}
            items = [pod(f"p{number}", {"app": "db", **labels}, ("nvidia.com/vf", "x.org/r")) for number in range(3)]
            return StreamedAnswer(json.dumps({"metadata": {}, "items": items}).encode())

    feed = WatchFeed(Cluster(typing.cast(typing.Any, Server())), {}, ())
    budgets = keep_budgets([budget("b", {"matchLabels": {"app": "db"}})])
    found = feed.pods(["worker-1"], budgets, {"nvidia.com"})["worker-1"]
    assert [(item.labels, item.requests) for item in found] == [({"app": "db"}, ("nvidia.com/vf",))] * 3


def test_a_plan_indexes_the_pods_and_budgets_of_a_cluster_once() -> None:
    """1,000 nodes with 200,000 pods and 10,000 budgets of tenants took 290 s."""
    names = [f"worker-{number}" for number in range(1000)]
    live = Live(
        pods=tuple(
            ClusterPod(f"p{number}", f"tenant-{number % 100}", names[number % 1000]) for number in range(200_000)
        ),
        budgets=tuple(
            core.parse_budget(budget(f"b{number}", {"matchLabels": {"app": str(number)}})) for number in range(10_000)
        ),
    )
    with bounded(20):
        assert [len(live.list_pods(name)) for name in names] == [200] * 1000
        assert not any(find_held_pods(live.list_pods(name), True, "", live.budget_index) for name in names)
