# SPDX-License-Identifier: GPL-3.0-or-later

"""A node whose pods take their time in each round in which its rails are looked for: its draw ends, and the others have
theirs."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.pods import Plan, Pods, workers
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
    pods = Pods(typing.cast(Cluster, api), plan, clock, lambda _seconds: None, lambda _line: None)
    with workers(1) as pool:
        found = pods.start(pool, intent.fabrics[0])
    pods.leave()
    assert [(pod.node, pod.rail, not pod.error) for pod in found] == [
        ("a", 0, True),
        ("a", 1, True),
        ("b", 0, True),
        ("b", 1, False),
    ]
    assert "no more were started, since its pods took 1" in found[3].error
    # 65 pods would have both rails; those of three rounds are 120 s
    assert sum("-b" in name for name in api.made) == 6 and clock.now < 6 * 60
