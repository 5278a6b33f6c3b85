# SPDX-License-Identifier: GPL-3.0-or-later

"""What Helm prints of a chart, and the examples of a ClusterServiceVersion."""

from __future__ import annotations

import re
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.stack import parse_controller
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.charts import (
    definitions_text,
    olm_examples,
)

#: of helm 3.19 template --include-crds, shortened: a file with two documents, a chart in the chart, a definition among
#: the templates
PRINTED = """---
# Source: network-operator/crds/mellanox.com_nicclusterpolicies.yaml
# Copyright of somebody
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: nicclusterpolicies.mellanox.com
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: second.mellanox.com
---
# Source: network-operator/charts/sub/crds/a.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a.sub.example
---
# Source: network-operator/crds/nad.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: network-attachment-definitions.k8s.cni.cncf.io
---
# Source: network-operator/templates/crds/b.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: b.templated.example
---
# Source: network-operator/templates/operator.yaml
kind: Deployment
"""


def test_only_what_helm_does_not_upgrade_itself() -> None:
    text = definitions_text(PRINTED)
    assert re.findall(r"name: (.*)", text) == [f"{name}.mellanox.com" for name in ("nicclusterpolicies", "second")] + [
        "a.sub.example",
        "network-attachment-definitions.k8s.cni.cncf.io",
    ]
    assert definitions_text("") == ""


def test_truncated_at_any_place_nothing_of_a_template_is_taken() -> None:
    for end in range(len(PRINTED)):
        assert "templated" not in definitions_text(PRINTED[:end])


@given(st.text())
def test_any_text(text: str) -> None:
    assert isinstance(definitions_text(text), str)
    assert definitions_text(f"---\n# Source: c/templates/x.yaml\n{text.replace('# Source', '')}") == ""


def csv(text: typing.Any) -> dict[str, typing.Any]:
    return {"kind": "ClusterServiceVersion", "metadata": {"name": "gpu.v1", "annotations": {"alm-examples": text}}}


def test_examples() -> None:
    assert olm_examples(csv('[{"kind": "ClusterPolicy"}]')) == ({"kind": "ClusterPolicy"},)
    assert olm_examples(csv("")) == olm_examples({"metadata": {}}) == ()


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '"x"', '[{"kind": '])
def test_examples_of_another_form(text: str) -> None:
    with pytest.raises(ResourceError, match="alm-examples"):
        olm_examples(csv(text))


def deployment(
    namespace: str, name: str, container: dict[str, typing.Any], **metadata: typing.Any
) -> dict[str, typing.Any]:
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": 1, "updatedReplicas": 1},
    }


HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "nfd"}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            deployment(
                "nfd",
                "nfd-node-feature-discovery-master",
                {"image": "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", "command": ["nfd-master"]},
                **HELM,
            ),
            ("node-feature-discovery", "v0.18.3", "helm", "nfd"),
        ),
        (
            deployment("ops", "renamed", {"image": "mirror/x:1", "command": ["sriov-network-operator"]}),
            ("sriov-network-operator", "1", "unknown", ""),
        ),
        (
            deployment(
                "nvidia-network-operator",
                "network-operator",
                {"image": "nvcr.io/nvidia/cloud-native/network-operator:v26.4.1"},
                **HELM,
            ),
            ("network-operator", "v26.4.1", "helm", "nfd"),
        ),
        (
            deployment(
                "nvidia-gpu-operator",
                "gpu-operator",
                {"image": "nvcr.io/nvidia/x@sha256:1"},
                labels={"olm.owner": "gpu-operator-certified.v26.3.3"},
            ),
            ("gpu-operator", "gpu-operator-certified.v26.3.3", "olm", ""),
        ),
        # beside the master, of the same image
        (
            deployment(
                "nfd",
                "nfd-node-feature-discovery-gc",
                {"image": "registry.k8s.io/nfd/node-feature-discovery:v0.18.3", "command": ["nfd-gc"]},
            ),
            None,
        ),
        # OpenShift's own
        (
            deployment(
                "openshift-network-operator", "network-operator", {"image": "quay.io/openshift-release-dev/x@sha256:1"}
            ),
            None,
        ),
        (
            deployment("cert-manager", "cert-manager-webhook", {"image": "quay.io/jetstack/cert-manager-webhook:v1"}),
            None,
        ),
    ],
)
def test_an_operator_by_what_it_runs(found: dict[str, typing.Any], expected: typing.Optional[tuple[str, ...]]) -> None:
    seen = parse_controller(found)
    assert (None if seen is None else (seen.operator, seen.version, seen.origin, seen.release)) == expected
