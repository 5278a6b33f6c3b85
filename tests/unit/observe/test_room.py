# SPDX-License-Identifier: GPL-3.0-or-later

"""How much CPU and memory nodes have, and what pods request of it, as the scheduler counts."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import NodeRoom
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.room import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_requests import (
    Amounts,
    parse_pod_amounts,
)

Data = dict[str, typing.Any]
MIB = 1 << 20


def container(cpu: str = "", memory: str = "", **rest: typing.Any) -> Data:
    asked = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "c", "resources": {"requests": asked}, **rest}


def pod(name: str, *containers: Data, node: str = "worker-1", owner: str = "", **metadata: typing.Any) -> Data:
    owners = [{"kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "n", "ownerReferences": owners, **metadata},
        "spec": {"nodeName": node, "containers": list(containers)},
    }


class Api:
    def __init__(self, *pods: Data, **allocatable: typing.Any) -> None:
        node = {"metadata": {"name": "worker-1"}, "status": {"allocatable": allocatable}}
        self.objects: dict[str, typing.Sequence[Data]] = {"Pod": pods, "Node": (node,)}

    def pages(self, kind: str, **rest: typing.Any) -> typing.Iterator[Data]:
        assert kind != "Pod" or "phase!=Succeeded" in rest["fields"]
        yield from self.objects[kind]


def room(*pods: Data, **allocatable: typing.Any) -> NodeRoom:
    (found,) = observe(typing.cast(Cluster, Api(*pods, **({"cpu": "4", "memory": "8Gi"} | allocatable))))
    return found


def test_pods_that_stay_and_pods_that_may_go_are_apart() -> None:
    mirror: Data = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    found = room(
        pod("ds", container("100m", "50Mi"), owner="DaemonSet"),
        pod("static", container("250m"), owner="Node", **mirror),
        pod("job", container("1", "1Gi"), container("500m"), owner="Job"),
        pod("elsewhere", container("1"), node="worker-2"),
        pod("ours", container("2"), labels=MANAGED_BY),
        {"metadata": {"name": "pending", "namespace": "n"}, "spec": {"containers": [container("3")]}},
    )
    assert found == NodeRoom("worker-1", 4000, 8192 * MIB, 350, 50 * MIB, 1500, 1024 * MIB)


def test_what_a_node_does_not_tell_is_not_known() -> None:
    found = room(cpu="many", memory=None)
    assert (found.cpu, found.memory) == (None, None)
    assert room(cpu="3920m", memory="15988428Ki").cpu == 3920


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("1"), container("1500m")]}, 2500),
        ({"containers": [container("1")], "initContainers": [container("3")]}, 3000),
        ({"containers": [container("1")], "initContainers": [container("500m", restartPolicy="Always")]}, 1500),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("500m", restartPolicy="Always"), container("2")],
            },
            2500,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("100u")]}, 1),
        ({"containers": [container("x"), container("-1"), container("1")]}, 1000),
        ({"containers": []}, 0),
    ],
)
def test_a_pod_requests_what_the_scheduler_reserves(spec: Data, cpu: int) -> None:
    assert parse_pod_amounts({"metadata": {"name": "p"}, "spec": spec}) == Amounts(cpu, 0)


def test_a_pod_of_another_form_hides_no_other() -> None:
    odd = {"metadata": {"name": "odd", "namespace": "n"}, "spec": {"nodeName": "worker-1", "containers": 5}}
    assert room(odd, pod("job", container("1"))).cpu_moving == 1000
