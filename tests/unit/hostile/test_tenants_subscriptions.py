# SPDX-License-Identifier: GPL-3.0-or-later

"""Subscriptions of OLM that a tenant makes in its namespace, of any number and size: they end and fill no list."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import answers, cluster_reader
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import (
    _keep_essential,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.read_olm import read_olm
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.remove_olm import Remover
from ansible_collections.linerate.rdma.tests.unit.hostile.test_objects_not_read import LARGE, Item, Server

OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 20_000)
    monkeypatch.setattr(cluster_reader, "MOST_HELD", 2_000)


def named(namespace: str, name: str, **more: typing.Any) -> Item:
    return {"metadata": {"name": name, "namespace": namespace, "labels": OURS}, "spec": {"name": "nfd"}, **more}


class Olm(Server):
    """OLM with an operator in namespace ``ops``, of which the Subscription comes behind those of a tenant."""

    def __init__(self, *theirs: Item) -> None:
        super().__init__(
            operatorgroups=[named("ops", "group")],
            subscriptions=[*theirs, named("ops", "nfd", status={"installedCSV": "nfd.v1"})],
            clusterserviceversions=[named("ops", "nfd.v1")],
        )

    def request(self, method: str, path: str, body: typing.Any, **options: typing.Any) -> typing.Any:
        if path.endswith("packagemanifests"):
            raise ApiError(404, "NotFound", "no such kind", "GET")
        options["query_params"] = [("limit", "500"), *options["query_params"]]
        return super().request(method, path, body, **options)


THEIRS = [
    named("tenant", "large", status={"conditions": LARGE}),
    *(named("tenant", f"s{number}", status={"conditions": LARGE[:100]}) for number in range(100)),
]


def test_subscriptions_of_a_tenant_neither_end_nor_fill_what_is_seen_of_olm() -> None:
    seen = read_olm(Cluster(Olm(*THEIRS)), [DesiredOperator("nfd", "wished")])
    assert list(seen.subscriptions) == [("ops", "nfd")]


def test_subscriptions_with_our_label_in_a_namespace_without_olm_are_not_taken_back() -> None:
    removed = Remover(Cluster(Olm(*THEIRS)), True, 20.0, lambda: 0.0, lambda _seconds: None).show()
    assert ([item.subject for item in removed.stays], removed.namespaces) == (["Subscription ops/nfd"], ("ops",))


def test_of_an_object_that_is_too_large_a_removal_holds_little() -> None:
    metadata = {
        "name": "map",
        "namespace": "tenant",
        "uid": "u",
        "labels": {**OURS, "linerate.rdma/fabric": "a", **{f"linerate.rdma/{number}": "x" for number in range(9000)}},
        "ownerReferences": [{"uid": "x" * 100_000}] * 9,
    }
    held = _keep_essential("ConfigMap", {"metadata": metadata})
    assert held["metadata"]["labels"] == {**OURS, "linerate.rdma/fabric": "a"} and len(repr(held)) < 4000
