# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that keep a virtual function while somebody looks: they are there afterwards, but not when that was
interrupted."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.hold_vfs import hold
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import (
    NOT_CHECKED,
    Plan,
    list_all_unstarted,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC, Api, Clock

INTENT = parse_intent([FABRIC])
PLAN = Plan(INTENT.fabrics, INTENT.cluster, ("a", "b"), parallel=2, pod_seconds=60.0)
PROBE = "env PCIDEVICE_OPENSHIFT_IO_IGB=0000:01:10.{number}\n"


def pods(api: typing.Any) -> MeasuringPods:
    return MeasuringPods(typing.cast(Cluster, api), PLAN, Clock(), lambda seconds: None, lambda line: None)


def test_they_stay_with_a_virtual_function_each_until_they_are_removed() -> None:
    api = Api(probe=PROBE)
    started = hold(pods(api), PLAN)
    assert [(pod.node, pod.pci, pod.error) for pod in started] == [("a", "0000:01:10.0", ""), ("b", "0000:01:10.1", "")]
    assert sorted(api.pods) == ["linerate-storage-a", "linerate-storage-b"]
    assert pods(api).remove() == ("test/linerate-storage-a", "test/linerate-storage-b")
    assert api.pods == {}


def test_an_interrupt_leaves_none() -> None:
    class Interrupted(Api):
        def greeting(self, pod: str, node: str) -> CommandResult:
            if node == "b":
                raise KeyboardInterrupt
            return super().greeting(pod, node)

    api = Interrupted(probe=PROBE)
    with pytest.raises(KeyboardInterrupt):
        hold(pods(api), PLAN)
    assert api.made and api.pods == {}


def test_a_node_without_virtual_functions_has_no_pod() -> None:
    started = hold(pods(Api(offered="0")), PLAN)
    assert [pod.error for pod in started] == ["the node does not offer openshift.io/igb"] * 2


def test_what_check_mode_does_not_start() -> None:
    assert [(pod.fabric, pod.node, pod.error) for pod in list_all_unstarted(PLAN, NOT_CHECKED)] == [
        ("storage", node, NOT_CHECKED) for node in ("a", "b")
    ]
