# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods of tenants that have the names and labels of those that measure: they are neither measured nor heard, and end
nothing."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import KindUpdate, WatchFeed
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource
from ansible_collections.linerate.rdma.tests.unit.run.test_hold import pods
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import Api, run

NAME = "linerate-storage-a"


def foreign(item: Resource, namespace: str) -> Resource:
    """A pod of the same name and labels, which shows another address."""
    shown = json.dumps([{"name": "test/net", "interface": "net1", "ips": ["10.66.6.6"]}])
    annotations = {**item["metadata"]["annotations"], "k8s.v1.cni.cncf.io/network-status": shown}
    return {
        **item,
        "metadata": {**item["metadata"], "namespace": namespace, "uid": "of-a-tenant", "annotations": annotations},
    }


class Shared(Api):
    """A cluster in which each pod has a namesake, in a namespace of a tenant or in that of the measurement."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.looked: set[str] = set()

    def list(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        most: int = 0,
        only: typing.Any = None,
    ) -> Listing:
        found = super().list(kind, namespace, selector)
        if kind != "Pod":
            return found
        self.looked.add(namespace)
        return Listing(
            (*found.items, *(foreign(item, self.where) for item in found.items if namespace in ("", self.where))), "1"
        )


@pytest.mark.parametrize("where", ["training", "linerate-measure"])
def test_what_is_measured_is_the_pod_that_was_made(where: str) -> None:
    api = Shared(where)
    facts, _lines = run(api)
    assert {pod.address for pod in facts.pods} == {"10.0.0.1", "10.0.0.2"}
    assert all(pair.average_gbps for pair in facts.pairs)


class Once:
    """A feed with one change, which then ends the pods that hear it."""

    def __init__(self, heard: MeasuringPods, change: KindUpdate) -> None:
        self.heard, self.changes = heard, [change]

    def get(self, _timeout: float) -> typing.Optional[KindUpdate]:
        if self.changes:
            return self.changes.pop()
        self.heard.leave()
        return None

    def stop(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize(("whose", "gone"), [("ours", True), ("of-a-tenant", False)])
def test_only_the_end_of_the_pod_that_was_made_counts(whose: str, gone: bool) -> None:
    api = Api()
    watched = pods(api)
    watched._uids[NAME] = "ours"
    item = RdmaPod("storage", "a", NAME, "linerate-measure")
    api.made, api.pods[NAME] = [NAME], {"node": "a"}
    watched.shell(item)
    ended = {"kind": "Pod", "metadata": {"name": NAME, "namespace": "training", "uid": whose}}
    watched._watch_lost_pods(typing.cast(WatchFeed, Once(watched, KindUpdate("Pod", "drop", (ended,)))))
    assert (watched.gone(item) is not None) == gone


def test_a_labelled_pod_of_a_tenant_is_not_deleted_and_ends_no_measurement() -> None:
    """Outside of its namespace a measurement may delete nothing (docs/rbac/measuring.yml)."""

    class Strict(Shared):
        def list(
            self,
            kind: str,
            namespace: str = "",
            selector: str = "",
            fields: str = "",
            most: int = 0,
            only: typing.Any = None,
        ) -> Listing:
            labelled = {"kind": "Pod", "metadata": {"name": "bait", "namespace": "training", "uid": "bait"}}
            found = super().list(kind, namespace, selector)
            return Listing((*found.items, labelled), "1") if kind == "Pod" and namespace == "" else found

        def delete(self, kind: str, namespace: str, name: str, *more: typing.Any, **options: typing.Any) -> bool:
            if name == "bait":
                raise ApiError(403, "Forbidden", f'pods "{name}" is forbidden', "DELETE")
            return super().delete(kind, namespace, name, *more, **options)

    api = Strict("training")
    facts, _lines = run(api)
    assert (facts.leftovers, facts.remaining, api.looked) == ((), (), {"linerate-measure"})
