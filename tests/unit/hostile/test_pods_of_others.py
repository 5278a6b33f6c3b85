# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet shows mirror pods of its own under the names of pods that measure on other nodes: it answers for none of
them, and is the one that is named."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.causes import CAUSES
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)

FABRIC: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "rdma_shared",
    "select": {"netdev": ["ens1"], "hcas_per_node": 1},
    "network": {"name": "net", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "10.9.0.0/24"},
    "pods": {"image": f"registry.example/tools@sha256:{'a' * 64}"},
}


class Api:
    """:ivar refusals: of the requests to make a pod, one after the other; the last one stays
    :ivar shown: the pod that is there
    """

    def __init__(self, shown: typing.Callable[[Resource], Resource], *refusals: ApiError) -> None:
        self.shown, self.refusals = shown, list(refusals)
        self.wanted: Resource = {}
        self.deleted: list[str] = []

    def create(self, wanted: Resource, manager: str = "") -> Resource:
        self.wanted = wanted
        raise self.refusals.pop(0) if len(self.refusals) > 1 else self.refusals[0]

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        return self.shown(self.wanted)

    def list(self, kind: str, *arguments: str, only: typing.Callable[[Resource], bool]) -> typing.Any:
        found = filter(only, [self.shown(self.wanted)] if kind == "Pod" else [])
        return type("Listing", (), {"items": tuple(found)})()

    def delete(self, kind: str, namespace: str, name: str, **options: typing.Any) -> bool:
        self.deleted.append(name)
        return True

    def version(self) -> str:
        return "v1.34.4"


def of_evil(wanted: Resource) -> Resource:
    metadata = {**wanted["metadata"], "uid": "of-evil", "annotations": {"kubernetes.io/config.mirror": "5"}}
    return {
        **wanted,
        "metadata": metadata,
        "spec": {**wanted["spec"], "nodeName": "evil"},
        "status": {"phase": "Running"},
    }


def of_ours(wanted: Resource) -> Resource:
    return {
        **wanted,
        "metadata": {**wanted["metadata"], "uid": "ours"},
        "spec": {**wanted["spec"], "nodeName": "victim"},
        "status": {"phase": "Pending"},
    }


def pods(api: Api, now: typing.Optional[list[float]] = None) -> MeasuringPods:
    intent, time = parse_intent([FABRIC]), now or [0.0]
    plan = Plan(intent.fabrics, ClusterIntent(), ("victim",), run="20260102T030405Z-aaaaaa")
    return MeasuringPods(
        typing.cast(Cluster, api),
        plan,
        lambda: time[0],
        lambda seconds: time.__setitem__(0, time[0] + seconds),
        lambda _line: None,
    )


def make(*refusals: ApiError, shown: typing.Callable[[Resource], Resource] = of_evil) -> RdmaPod:
    api = Api(shown, *refusals)
    return pods(api)._create(parse_intent([FABRIC]).fabrics[0], "victim", 0, 10.0)


LOST, TAKEN = (
    ApiError(429, "TooManyRequests", "too many requests", "POST"),
    ApiError(409, "AlreadyExists", "already exists", "POST"),
)


@pytest.mark.parametrize("refusals", [(LOST, TAKEN), (TAKEN,)])
def test_the_kubelet_of_another_node_answers_for_no_pod_and_is_named(refusals: tuple[ApiError, ...]) -> None:
    made = make(*refusals)
    assert (
        made.cause == "taken" and "the kubelet of node evil reports a mirror pod linerate-compute-victim" in made.error
    )
    assert "staticPodPath" in CAUSES[made.cause][1]


def test_a_pod_whose_answer_got_lost_is_the_run_s() -> None:
    made = make(LOST, TAKEN, shown=of_ours)
    assert made.error == "" and made.cause == ""


def test_a_pod_of_an_earlier_run_is_told_as_one() -> None:
    assert make(TAKEN, shown=of_ours).cause == "stuck"


def test_a_pod_on_another_node_is_not_looked_into() -> None:
    made = pods(Api(of_ours, TAKEN))
    found = {"metadata": {"name": "p"}, "spec": {"nodeName": "evil"}, "status": {"phase": "Running"}}
    judged = made._readiness._judge_pod(
        RdmaPod("compute", "victim", "p", "linerate-measure"), found, {}, (), 0.0, False
    )
    assert judged is not None
    assert judged[0].cause == "taken" and judged[0].error == "the pod is on node evil; expected victim"


def test_mirror_pods_are_not_waited_for() -> None:
    api, now = Api(of_evil, TAKEN), [0.0]
    api.wanted = {"metadata": {"name": "planted", "namespace": "linerate-measure"}, "spec": {}}
    assert pods(api, now).remove() == () and api.deleted == [] and now[0] == 0.0
