# SPDX-License-Identifier: GPL-3.0-or-later

"""One key names the mirror of a disconnected site: every image that the collection has pulled, and every chart, is then
on it."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.mirror import on_mirror
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pulled_images import pulled_images
from ansible_collections.linerate.rdma.plugins.module_utils._plan.mirror import (
    collect_values_on_mirror,
    merge,
    place_chart_on_mirror,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.job import job as render_job
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.nvidia import render_nic_policy
from ansible_collections.linerate.rdma.tests.unit.plan.test_pulls import SHARED, SRIOV

M = {"*": "mirror.example:5000/m"}


@pytest.mark.parametrize(
    ("name", "mirror", "found"),
    [
        ("nvcr.io/nvidia/doca:3", M, "mirror.example:5000/m/nvcr.io/nvidia/doca:3"),
        ("nvcr.io/nvidia", M, "mirror.example:5000/m/nvcr.io/nvidia"),
        ("docker.io/alpine:3", M, "mirror.example:5000/m/docker.io/library/alpine:3"),
        ("mirror.example:5000/m/nvcr.io/nvidia/doca:3", M, "mirror.example:5000/m/nvcr.io/nvidia/doca:3"),
        ("mirror.example:5000/more/doca:3", M, "mirror.example:5000/m/mirror.example:5000/more/doca:3"),
        # a name without a registry is the node's to resolve
        ("alpine:3", M, "alpine:3"),
        ("library/alpine", M, "library/alpine"),
        ("nvcr.io/nvidia/doca:3", {}, "nvcr.io/nvidia/doca:3"),
        ("nvcr.io/nvidia/doca:3", {"nvcr.io": "m.example/a", "nvcr.io/nvidia": "m.example/b"}, "m.example/b/doca:3"),
        ("nvcr.io/nvidia/doca@sha256:0", {"nvcr.io/nvidia/doca": "m.example/doca"}, "m.example/doca@sha256:0"),
        ("nvcr.io/nvidiax/doca:3", {"nvcr.io/nvidia": "m.example/b"}, "nvcr.io/nvidiax/doca:3"),
        ("nvcr.io:443/nvidia/doca:3", {"nvcr.io": "m.example/a"}, "nvcr.io:443/nvidia/doca:3"),
        ("quay.io/a/b:1", {"nvcr.io": "m.example/a", "*": "m.example/all"}, "m.example/all/quay.io/a/b:1"),
    ],
)
def test_name_on_the_mirror(name: str, mirror: dict[str, str], found: str) -> None:
    assert on_mirror(name, mirror) == found


@hypothesis.given(some.text("ab.:/@*", max_size=12))
def test_what_is_on_the_mirror_stays_there(name: str) -> None:
    once = on_mirror(name, M)
    assert once == name or once.startswith("mirror.example:5000/m/")
    assert on_mirror(once, M) == once


@pytest.mark.parametrize("mirror", ["mirror.example:5000/m", {"*": "mirror.example:5000/m"}])
def test_all_that_is_rendered_comes_from_the_mirror(mirror: typing.Any) -> None:
    fabrics = [{**SRIOV, "pods": {}}, SHARED]
    intent = parse_intent(fabrics, None, {"mirror": mirror, "network_operator": {"ofed_driver": "doca3.4.0"}})
    assert intent.fabrics[0].pods.image == "mirror.example:5000/m/nvcr.io/nvidia/doca/doca:3.1.0-full-rt-host"
    names = [
        image.name for policy in render_nic_policy(intent.fabrics, intent.cluster) for image in pulled_images(policy)
    ]
    assert len(names) == 2 and all(name.startswith("mirror.example:5000/m/nvcr.io/nvidia/mellanox/") for name in names)
    wanted = {
        "name": "j",
        "fabric": "compute",
        "nodes": 1,
        "gpus_per_node": 1,
        "image": "quay.io/site/train:1",
        "command": ["a"],
        "cpu": "1",
        "memory": "1Gi",
    }
    objects = render_job.render(load(Job, {"kind": "PyTorchJob", **wanted}, "rdma_job"), intent.fabrics, intent.cluster)
    assert [image.name for item in objects for image in pulled_images(item)] == [
        "mirror.example:5000/m/quay.io/site/train:1"
    ]


@pytest.mark.parametrize("mirror", [None, "", {}])
def test_no_mirror_leaves_all_names(mirror: typing.Any) -> None:
    assert parse_intent([SRIOV], None, {"mirror": mirror}) == parse_intent([SRIOV])


@pytest.mark.parametrize("mirror", [5, ["mirror.example"], {"nvcr.io": 5}, {"nvcr.io": None}])
def test_a_mirror_of_another_type_is_refused_by_its_path(mirror: typing.Any) -> None:
    with pytest.raises(IntentError, match=r"rdma_cluster\.mirror"):
        parse_intent([SRIOV], None, {"mirror": mirror})


@pytest.mark.parametrize(
    "mirror",
    [
        "https://mirror.example",
        "mirror.example/",
        "Mirror.example",
        "mirror",
        "mirror.example/a b",
        {"nvcr.io/": "m.example"},
        {"a.b": "*"},
    ],
)
def test_a_mirror_that_is_no_place_is_refused(mirror: typing.Any) -> None:
    findings = validate.check(parse_intent([SRIOV], None, {"mirror": mirror}), validate.Facts(nodes=("a",)))
    assert [item.subject for item in findings if item.status == "fail"] == ["rdma_cluster.mirror"]


@pytest.mark.parametrize(
    "mirror",
    [
        "mirror.example",
        "mirror.example:5000/a/b-c",
        "localhost:5000",
        "registry:5000/x",
        {"nvcr.io": "m.example/x", "*": "m.example"},
    ],
)
def test_a_mirror_that_is_a_place_is_taken(mirror: typing.Any) -> None:
    findings = validate.check(parse_intent([SRIOV], None, {"mirror": mirror}), validate.Facts(nodes=("a",)))
    assert [item for item in findings if item.status == "fail"] == []


def test_charts_are_images_of_the_mirror() -> None:
    chart = OperatorChart("oci://ghcr.io/site/chart", "1", "n", "r")
    assert place_chart_on_mirror(chart, M) == OperatorChart(
        "oci://mirror.example:5000/m/ghcr.io/site/chart", "1", "n", "r"
    )
    of_repository = OperatorChart("gpu-operator", "v26", "n", "r", "https://helm.ngc.nvidia.com/nvidia")
    assert (
        place_chart_on_mirror(of_repository, M).reference
        == "oci://mirror.example:5000/m/helm.ngc.nvidia.com/nvidia/gpu-operator"
    )
    assert place_chart_on_mirror(of_repository, M).repository == ""
    for stays in (OperatorChart("/srv/chart", "", "n", "r"), OperatorChart("./chart.tgz", "", "n", "r")):
        assert place_chart_on_mirror(stays, M) == stays
    assert place_chart_on_mirror(of_repository, {"nvcr.io": "m.example"}) == of_repository


def test_values_of_charts_name_the_images_of_the_mirror() -> None:
    # the shapes of the charts of sriov-network-operator, nvidia, kubeflow and node-feature-discovery
    defaults = {
        "images": {"operator": "ghcr.io/k8s/operator", "proxy": "gcr.io/kubebuilder/kube-rbac-proxy:v0.15.0"},
        "operator": {
            "repository": "nvcr.io/nvidia",
            "image": "gpu-operator",
            "imagePullPolicy": "IfNotPresent",
            "imagePullSecrets": [],
        },
        "image": {"registry": "ghcr.io", "repository": "kubeflow/trainer/manager", "tag": ""},
        "nfd": {"image": {"repository": "registry.k8s.io/nfd/nfd", "tag": ""}},
        "env": [{"name": "A_IMAGE", "image": "quay.io/a/b:1"}, {"name": "B"}],
        "documentation": "quay.io/a/b:1",
        "sources": {"repository": "https://github.com/a/b"},
        "replicas": 1,
    }
    here = "mirror.example:5000/m"
    assert collect_values_on_mirror(defaults, M) == {
        "images": {
            "operator": f"{here}/ghcr.io/k8s/operator",
            "proxy": f"{here}/gcr.io/kubebuilder/kube-rbac-proxy:v0.15.0",
        },
        "operator": {"repository": f"{here}/nvcr.io/nvidia"},
        "image": {"registry": "mirror.example:5000", "repository": "m/ghcr.io/kubeflow/trainer/manager"},
        "nfd": {"image": {"repository": f"{here}/registry.k8s.io/nfd/nfd"}},
        "env": [{"name": "A_IMAGE", "image": f"{here}/quay.io/a/b:1"}, {"name": "B"}],
    }
    assert collect_values_on_mirror(merge(defaults, collect_values_on_mirror(defaults, M)), M) == {}


def test_values_of_the_user_count_before_those_of_the_mirror() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": 3}, "d": [2]}) == {"a": {"b": 1, "c": 3}, "d": [2]}
