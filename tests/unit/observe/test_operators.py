# SPDX-License-Identifier: GPL-3.0-or-later

"""All operators of the table in one look: what is there, what is not read, and whose it is; and the wait until they
serve."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGER
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import (
    MADE_FOR,
    OPERATORS,
    TABLE,
    OperatorsSeen,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operators import (
    by_olm,
    list_examples,
    observe,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_operators import (
    wait_until_all_serve,
)

LABEL = "feature.node.kubernetes.io/network-sriov.capable"
INTENT = parse_intent(
    [
        {
            "name": "a",
            "profile": "sriov_infiniband",
            "select": {"hcas_per_node": 1},
            "network": {"name": "n", "namespace": "t"},
        }
    ]
)
EXAMPLES = '[{"kind": "ClusterPolicy", "spec": {}}, {"kind": "NVIDIADriver"}]'
CSV = {
    "metadata": {
        "name": "gpu-operator-certified.v26.3.3",
        "namespace": "nvidia-gpu-operator",
        "annotations": {"alm-examples": EXAMPLES},
    }
}
OBJECTS: dict[str, list[dict[str, typing.Any]]] = {
    "Deployment": [
        {
            "metadata": {"name": "nfd-master", "namespace": "nfd"},
            "spec": {
                "template": {
                    "spec": {"containers": [{"image": "x/node-feature-discovery:v0.18.3", "command": ["nfd-master"]}]}
                }
            },
            "status": {"availableReplicas": 1, "updatedReplicas": 1},
        },
        {
            "metadata": {"name": "coredns", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [{"image": "coredns:1"}]}}},
        },
    ],
    "ClusterServiceVersion": [
        {**CSV, "spec": {"version": "26.3.3"}, "status": {"phase": "Succeeded"}},
        {"metadata": {"name": "other.v1", "namespace": "o"}},
    ],
    "Subscription": [
        {
            "metadata": {"name": "any", "namespace": "openshift-nfd"},
            "spec": {"name": "nfd"},
            "status": {"state": "UpgradePending"},
        }
    ],
    "ClusterPolicy": [{"metadata": {"name": "gpu-cluster-policy"}, "status": {"state": "notReady"}}],
    "Node": [
        {"metadata": {"name": name, "labels": {LABEL: "true"} if name != "worker-2" else {}}}
        for name in ("worker-1", "worker-2", "other")
    ],
    "Namespace": [
        {"metadata": {"name": "nfd", "labels": {MADE_FOR: "node-feature-discovery"}}},
        {"metadata": {"name": "x", "labels": {MADE_FOR: "x"}}},
    ],
}


class Api:
    """:ivar refusals: by kind"""

    def __init__(
        self, groups: typing.Sequence[str] = (), refusals: typing.Optional[dict[str, ApiError]] = None
    ) -> None:
        self.groups, self.refusals = groups, refusals or {}
        self.selectors: dict[str, str] = {}

    def serves(self, group: str) -> bool:
        return group in self.groups

    def pages(self, kind: str, _namespace: str = "", selector: str = "") -> typing.Iterator[dict[str, typing.Any]]:
        self.selectors[kind] = selector
        if kind in self.refusals:
            raise self.refusals[kind]
        yield from OBJECTS.get(kind, [])

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        assert (kind, namespace, name) == (
            "ClusterServiceVersion",
            CSV["metadata"]["namespace"],
            CSV["metadata"]["name"],
        )
        return {"kind": kind, **CSV}


def look(api: Api) -> OperatorsSeen:
    return observe(typing.cast(Cluster, api), INTENT, None, ("worker-1", "worker-2"), False)


@pytest.mark.parametrize(
    ("labels", "made"),
    [
        ({"app.kubernetes.io/managed-by": "linerate.rdma"}, ("sriov-network-operator",)),
        ({"app.kubernetes.io/managed-by": "argocd"}, ()),
        ({}, ()),
    ],
)
def test_an_sriov_operator_is_ours_by_the_label_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], made: tuple[str, ...]
) -> None:
    name = "sriov-network-operator"
    work = {"spec": {"containers": [{"image": f"{name}:1"}]}}
    deployment = {"metadata": {"name": name, "namespace": name}, "spec": {"replicas": 1, "template": work}}
    namespaces = [{"metadata": {"name": name, "labels": labels}}]
    # another namespace of the collection proves nothing
    namespaces.append({"metadata": {"name": "linerate-measure", "labels": {"app.kubernetes.io/managed-by": MANAGER}}})
    monkeypatch.setitem(OBJECTS, "Deployment", [deployment])
    monkeypatch.setitem(OBJECTS, "Namespace", namespaces)
    seen = look(Api())
    assert [item.operator for item in seen.controllers] == [name] and seen.made == made


def test_facts() -> None:
    api = Api()
    seen = look(api)
    assert seen.controllers == (Controller("node-feature-discovery", "nfd/nfd-master", "v0.18.3", 1, 1),)
    assert [(name, item.phase) for name, items in seen.packages.items() for item in items] == [
        ("gpu-operator", "Succeeded"),
        ("node-feature-discovery", "UpgradePending"),
    ]
    assert [(item.kind, item.name, item.state) for item in seen.configurations] == [
        ("ClusterPolicy", "gpu-cluster-policy", "notReady")
    ]
    assert (seen.labelled, seen.made, seen.errors) == (("worker-1",), ("node-feature-discovery",), ())
    # what OLM copies into each namespace is the same one many times
    assert api.selectors["ClusterServiceVersion"] == "!olm.copiedFrom"
    assert {operator.configuration for operator in TABLE if operator.configuration} <= set(KINDS)


def test_packages_of_other_names_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    owned = {"customresourcedefinitions": {"owned": [{"name": "nodefeaturediscoveries.nfd.kubernetes.io"}]}}
    versions: list[dict[str, typing.Any]] = [
        {"metadata": {"name": "gpu-rhmp.v1", "namespace": "g"}},
        {"metadata": {"name": "nfd-operator.v1", "namespace": "n"}, "spec": owned},
    ]
    subscriptions = [{"metadata": {"name": "s", "namespace": "g"}, "spec": {"name": "gpu-rhmp"}}]
    for kind, items in (("ClusterServiceVersion", versions), ("Subscription", subscriptions)):
        monkeypatch.setitem(OBJECTS, kind, [{"kind": kind, **item} for item in items])

    def packages(named: dict[str, str]) -> dict[str, list[str]]:
        seen = observe(typing.cast(Cluster, Api()), INTENT, None, (), True, named)
        return {name: [item.name for item in items] for name, items in seen.packages.items()}

    assert packages({}) == {"node-feature-discovery": ["nfd-operator.v1"]}
    assert packages({"gpu-operator": "gpu-rhmp"}) == {
        "gpu-operator": ["gpu-rhmp.v1", "s"],
        "node-feature-discovery": ["nfd-operator.v1"],
    }


@pytest.mark.parametrize(
    "kind",
    [
        "Deployment",
        "ClusterServiceVersion",
        "Subscription",
        "Node",
        "Namespace",
        "ClusterPolicy",
        "NodeFeatureDiscovery",
    ],
)
def test_what_may_not_be_read_is_told_and_a_kind_that_is_not_served_has_no_objects(kind: str) -> None:
    assert "forbidden" in look(Api((), {kind: ApiError(403, "Forbidden", "forbidden", f"GET {kind}")})).errors[0]
    assert look(Api((), {kind: ApiError(404, "NotFound", "no such kind", f"GET {kind}")})).errors == ()
    with pytest.raises(ApiError):
        look(Api((), {kind: ApiError(0, "Unreachable", "no answer", f"GET {kind}")}))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (("security.openshift.io", "operators.coreos.com"), True),
        (("operators.coreos.com",), False),
        (("security.openshift.io",), False),
        ((), False),
    ],
)
def test_olm_installs_on_openshift_alone(groups: tuple[str, ...], expected: bool) -> None:
    assert by_olm(typing.cast(Cluster, Api(groups))) is expected


def test_examples_of_the_kind_that_configures() -> None:
    packages = look(Api()).packages["gpu-operator"]
    assert list_examples(typing.cast(Cluster, Api()), OPERATORS["gpu-operator"], packages) == (
        {"kind": "ClusterPolicy", "spec": {}},
    )


def test_the_wait_ends_once_all_serve_and_says_what_is_missing() -> None:
    ready = OperatorsSeen(labelled=("w",), controllers=(Controller("sriov-network-operator", "s/s", "v1", 1, 1),))
    steps, said, now = (
        [OperatorsSeen(labelled=("w",)), OperatorsSeen(labelled=("w",)), ready],
        typing.cast(list[str], []),
        [0.0],
    )

    def pause(seconds: float) -> None:
        now[0] += seconds

    seen = wait_until_all_serve(lambda: steps.pop(0), INTENT, ("w",), 60, lambda: now[0], pause, said.append)
    assert (seen, steps) == (ready, [])
    assert [line.partition("  ")[2] for line in said] == [
        "sriov-network-operator: no Deployment runs the operator",
        "all operators are ready",
    ]
    nothing = OperatorsSeen()
    assert wait_until_all_serve(lambda: nothing, INTENT, ("w",), 12, lambda: now[0], pause, said.append) is nothing
