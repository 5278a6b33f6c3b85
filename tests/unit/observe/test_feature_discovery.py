# SPDX-License-Identifier: GPL-3.0-or-later

"""Node feature discovery's workers: where they run and what they are told; asked for only when a label is absent."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.feature_discovery import WorkerConfig
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OperatorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.feature_discovery import (
    add_discovery,
    observe,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged

SPEC = {
    "containers": [{"image": "nfd:1", "command": ["nfd-worker"]}],
    "volumes": [{"name": "conf", "configMap": {"name": "nfd-worker-conf"}}],
}
WORKER = {
    "kind": "DaemonSet",
    "metadata": {"name": "nfd-worker", "namespace": "nfd", "uid": "u1"},
    "spec": {"template": {"spec": SPEC}},
    "status": {"desiredNumberScheduled": 2, "numberReady": 1, "updatedNumberScheduled": 2},
}
OTHER = {
    **WORKER,
    "metadata": {"name": "kube-proxy", "namespace": "kube-system", "uid": "u2"},
    "spec": {"template": {"spec": {"containers": [{}]}}},
}


def pod(node: str, ready: bool, owner: str = "u1") -> dict[str, typing.Any]:
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}}}]}
    status = {"conditions": [{"type": "Ready", "status": "True"}]} if ready else waiting
    return {
        "metadata": {"name": f"nfd-{node}", "namespace": "nfd", "ownerReferences": [{"uid": owner}]},
        "spec": {"nodeName": node},
        "status": status,
    }


class Api(Paged):
    def __init__(self, config: typing.Union[ApiError, str], pods: typing.Optional[ApiError] = None) -> None:
        self.config = config
        self.pods = [pod("a", True), pod("b", False), pod("c", True, "u9")] if pods is None else pods

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        answer = {"DaemonSet": [OTHER, WORKER], "Pod": self.pods}[kind]
        if isinstance(answer, Exception):
            raise answer
        return Listing(tuple(answer), "1")

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        assert (kind, namespace, name) == ("ConfigMap", "nfd", "nfd-worker-conf")
        if isinstance(self.config, Exception):
            raise self.config
        return {"kind": kind, "metadata": {"name": name}, "data": {"nfd-worker.conf": self.config}}


def test_where_the_workers_are_and_what_they_are_told() -> None:
    (found,) = observe(typing.cast(Cluster, Api("sources: {pci: {deviceClassWhitelist: ['02']}}")))
    assert (found.worker.name, found.worker.nodes) == ("nfd-worker", ("a",))
    assert found.pods == {"b": "ImagePullBackOff: no such host"}
    assert (found.config, found.unread) == (WorkerConfig(("02",)), "")


def test_daemon_sets_that_tenants_name_so_cost_few_questions() -> None:
    """The one with the most ready pods is among those that are asked."""
    asked: list[str] = []

    class Crowded(Api):
        def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
            volumes = [{"name": f"v{number}", "configMap": {"name": f"c{number}"}} for number in range(1000)]
            spec = {"template": {"spec": {**SPEC, "volumes": volumes}}}
            planted = {**WORKER, "spec": spec, "status": {"numberReady": 0}}
            if kind == "DaemonSet":
                return Listing(
                    (
                        *(
                            {**planted, "metadata": {"name": f"nfd-{each}", "namespace": "t", "uid": f"t{each}"}}
                            for each in range(100)
                        ),
                        WORKER,
                    ),
                    "1",
                )
            return super().list(kind, namespace, selector)

        def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
            asked.append(name)
            return {"kind": kind, "metadata": {"name": name}, "data": {}}

    found = observe(typing.cast(Cluster, Crowded("")))
    assert found[0].worker.namespace == "nfd" and len(found) == 4 and len(asked) == 3 * 4 + 1


@pytest.mark.parametrize(
    ("config", "expected", "unread"),
    [
        ("", WorkerConfig(), ""),
        (ApiError(404, "NotFound", "not there", "GET"), WorkerConfig(), ""),
        (ApiError(403, "Forbidden", "configmaps is forbidden", "GET"), None, "configmaps is forbidden"),
        ("{", None, "not valid YAML"),
        ("sources: 1", None, "configuration of nfd-worker"),
    ],
)
def test_a_configuration_that_is_not_known_is_no_default_one(
    config: typing.Union[ApiError, str], expected: typing.Optional[WorkerConfig], unread: str
) -> None:
    (found,) = observe(typing.cast(Cluster, Api(config)))
    assert found.config == expected
    assert unread in found.unread
    assert bool(found.unread) == bool(unread)


FACTS = OperatorFacts((), (), (), (ClusterNode("a", {"rdma": "yes"}), ClusterNode("b")))


def test_nobody_asks_while_the_labels_are_there() -> None:
    assert add_discovery(typing.cast(Cluster, Api("")), FACTS, {"rdma": "yes"}, ["a"]).discovery is None
    discovery = add_discovery(typing.cast(Cluster, Api("")), FACTS, {"rdma": "yes"}, ["a", "b"]).discovery
    assert discovery is not None and len(discovery) == 1


def test_workers_that_may_not_be_listed_are_not_absent_ones() -> None:
    facts = add_discovery(
        typing.cast(Cluster, Api("", ApiError(403, "Forbidden", "pods is forbidden", "GET"))),
        FACTS,
        {"rdma": "yes"},
        ["b"],
    )
    assert (facts.discovery, facts.errors) == (None, ("GET: pods is forbidden",))
    with pytest.raises(ApiError):
        add_discovery(
            typing.cast(Cluster, Api("", ApiError(0, "Unreachable", "refused", "GET"))), FACTS, {"rdma": "yes"}, ["b"]
        )
