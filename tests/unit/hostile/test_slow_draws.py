# SPDX-License-Identifier: GPL-3.0-or-later

"""A node whose pods take their time until they are ready: it is left out, and the others go on."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import (
    Plan,
    PodOfNode,
    start_workers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC, RAILS, TWO_RAILS, Api, Clock


class Drawing(Api):
    """Node ``a`` gets a function of its second HCA with its fourth pod, node ``b`` never, and each of its pods answers
    after 59 s of the 60 s that it has."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(offered="200")
        self.clock = clock

    def greeting(self, pod: str, node: str) -> CommandResult:
        mine = [name for name in self.made if self.pods.get(name, {}).get("node") == node]
        hca = 2 if node == "a" and mine.index(pod) == 3 else 1
        self.clock.now += 59.0 if node == "b" else 0.0
        text = f"env PCIDEVICE_X=0000:0{hca}:10.0\nphysfn 0000:0{hca}:10.0 0000:0{hca}:00.0\n"
        return CommandResult("shell", 0, super().greeting(pod, node).output + text)


def test_a_node_whose_pods_are_slow_in_each_round_ends_its_own_draw_alone() -> None:
    clock = Clock()
    api = Drawing(clock)
    intent = parse_intent([{**FABRIC, **TWO_RAILS, "virtual_functions": 64}])
    plan = Plan(intent.fabrics, intent.cluster, ("a", "b"), RAILS, parallel=1, pod_seconds=60.0)
    pods = MeasuringPods(typing.cast(Cluster, api), plan, clock, lambda _seconds: None, lambda _line: None)
    with start_workers(1) as pool:
        found = pods.start(pool, intent.fabrics[0])
    pods.leave()
    assert [(pod.node, pod.rail, not pod.error) for pod in found] == [
        ("a", 0, True),
        ("a", 1, True),
        ("b", 0, True),
        ("b", 1, False),
    ]
    assert "no more pods were started because the pods took 1" in found[3].error
    # 65 pods would have both rails; those of three rounds are 120 s
    assert sum("-b" in name for name in api.made) == 6 and clock.now < 6 * 60


class Feed:
    """Tells of pods in the moments in which they are ready.

    :ivar ready: seconds by node; of others never
    """

    def __init__(self, api: Api, clock: Clock, ready: typing.Mapping[str, float]) -> None:
        self.api, self.clock, self.ready = api, clock, ready
        self.told: set[str] = set()

    def start(self) -> None:
        """Nothing has to be asked for."""

    stop = start

    def get(self, timeout: float) -> typing.Optional[KindUpdate]:
        for name, item in self.api.pods.items():
            state = "True" if self.clock.now >= self.ready.get(item["node"], 1e9) else "False"
            if state == "True" and name not in self.told:
                self.told.add(name)
                return KindUpdate("Pod", "put", (item,))
        self.clock.now += timeout
        return None


def whole(ready: typing.Mapping[str, float], nodes: str = "abc") -> tuple[list[PodOfNode], float]:
    """Pods of whole nodes with their errors, and the seconds that the start took."""
    clock, api = Clock(), Api(tuple(nodes))
    intent = parse_intent([FABRIC])
    plan = Plan(intent.fabrics, intent.cluster, tuple(nodes), pod_seconds=900.0)

    class Told(MeasuringPods):
        def _open_feed(self) -> typing.Any:
            return Feed(api, clock, ready)

        def _start_loss_watcher(self) -> None:
            """Nothing is heard afterwards."""

    pods = Told(typing.cast(Cluster, api), plan, clock, lambda _seconds: None, lambda _line: None)
    (fabric,) = intent.fabrics
    with start_workers(1) as pool:
        found = pods.start_whole(
            pool, fabric, {node: render_measuring_pod(fabric, intent.cluster, node, 0, "r", 900) for node in nodes}
        )
    return found, clock.now


@pytest.mark.parametrize(
    ("ready", "late", "seconds"),
    [
        # a third of the 900 s after most are ready
        ({"a": 10.0, "b": 20.0}, ["c"], 320.0),
        ({"a": 10.0, "b": 20.0, "c": 300.0}, [], 300.0),
        # where images take long on all nodes, those that take longer have as long again, twice
        ({"a": 200.0, "b": 250.0}, ["c"], 750.0),
        ({"a": 10.0}, ["b", "c"], 900.0),
    ],
)
def test_a_whole_node_that_is_late_is_named_and_the_others_go_on(
    ready: dict[str, float], late: list[str], seconds: float
) -> None:
    found, took = whole(ready)
    assert [item.node for item, _found in found if item.error] == late
    assert all(
        "did not become ready" in item.error or item.error == "the API server does not report the pod"
        for item, _found in found
        if item.error
    )
    assert seconds - 5 <= took <= seconds + 10
