# SPDX-License-Identifier: GPL-3.0-or-later

"""The priority of measuring pods: the class of the intent is set on each of them, and a run says before its first pod
that they may preempt others."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import collectives
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.memlock import render_memlock_pod
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod

from .test_pairs import FABRIC, Api, run

MAY = "may preempt pods of lower priority"


def intent(**pods: str) -> Intent:
    cluster = {"collectives": {"image": "registry.example/tests:1", "gpus_per_node": 8, "cpu": "64", "memory": "512Gi"}}
    return parse_intent([{**FABRIC, "pods": {**FABRIC.get("pods", {}), **pods}}], None, cluster)


@pytest.mark.parametrize("name", [None, "measuring"])
def test_each_pod_that_measures_has_the_class_of_the_intent(name: typing.Optional[str]) -> None:
    found = intent(**({"priority_class": name} if name else {}))
    (fabric,), cluster = found.fabrics, found.cluster
    assert cluster.collectives is not None
    for pod in (
        render_measuring_pod(fabric, cluster, "n1"),
        render_memlock_pod(fabric, cluster, "n1", Memlock("containerd")),
        collectives.render_pod("n1", cluster.collectives, fabric, cluster),
    ):
        assert pod["spec"].get("priorityClassName") == name
        # the API server refuses a policy that is not that of the class
        assert "preemptionPolicy" not in pod["spec"]


class Admitting(Api):
    """Its admission sets the policy of the class.

    :ivar policy: preemptionPolicy of the class
    """

    policy = "PreemptLowerPriority"

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        made = super().create(definition, manager)
        made["spec"] = {**definition["spec"], "preemptionPolicy": self.policy}
        return made


def test_a_run_without_a_class_says_that_its_pods_may_preempt_others() -> None:
    _facts, lines = run(Admitting())
    (place,) = [number for number, line in enumerate(lines) if MAY in line]
    assert "storage: pods.priority_class is not set" in lines[place]
    assert not any("pings" in line for line in lines[:place])


@pytest.mark.parametrize(("policy", "said"), [("Never", 0), ("PreemptLowerPriority", 1)])
def test_a_run_says_that_its_class_preempts_others(policy: str, said: int) -> None:
    api = Admitting()
    api.policy = policy
    pods = {**FABRIC.get("pods", {}), "priority_class": "measuring"}
    _facts, lines = run(api, pods=pods)
    assert [line for line in lines if MAY in line] == [
        f"storage: the PriorityClass measuring does not have preemptionPolicy Never, so the measuring pods {MAY}"
    ] * said
