# SPDX-License-Identifier: GPL-3.0-or-later

"""Node feature discovery's worker and OLM's objects: their forms in Helm's chart and in OpenShift, and what is none."""

from __future__ import annotations

import contextlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.feature_discovery import WorkerConfig
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OlmObject
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nfd_and_olm import (
    config_maps,
    is_worker,
    olm_object,
    worker_config,
    worker_text,
)


def daemon(**container: typing.Optional[typing.Union[list[str], str]]) -> dict[str, typing.Any]:
    volumes = [
        {"name": "host-sys", "hostPath": {"path": "/sys"}},
        {"name": "conf", "configMap": {"name": "nfd-worker-conf"}},
    ]
    return {"spec": {"template": {"spec": {"containers": [container], "volumes": volumes}}}}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"command": ["nfd-worker"]}, True),
        ({"command": ["/usr/bin/nfd-worker"], "args": None}, True),
        ({"command": ["nfd-master"]}, False),
        ({"image": "nfd-worker:1"}, False),
    ],
)
def test_a_worker_by_what_it_runs(container: dict[str, typing.Any], expected: bool) -> None:
    assert is_worker(daemon(**container)) is expected


def test_its_configuration_is_in_a_mounted_config_map() -> None:
    assert config_maps(daemon()) == ("nfd-worker-conf",)
    assert config_maps({}) == ()
    assert (
        worker_text({"data": {"nfd-worker.conf": "core: {}"}})
        == worker_text({"data": {"nfd-worker-conf": "core: {}"}})
        == "core: {}"
    )
    assert worker_text({"data": {"ca.crt": "x"}}) == worker_text({}) == ""


def test_worker_config() -> None:
    data = {
        "core": {"labelSources": ["pci"]},
        "sources": {"pci": {"deviceClassWhitelist": ["0200", "0B40"], "deviceLabelFields": ["vendor"]}},
    }
    assert worker_config(data) == WorkerConfig(("0200", "0b40"), ("vendor",), ("pci",))
    # a chart without values writes null, and sections that are commented out are null, too
    assert worker_config(None) == worker_config({"sources": None, "core": None}) == WorkerConfig()


@pytest.mark.parametrize(
    "data",
    ["text", [1], {"sources": []}, {"sources": {"pci": "x"}}, {"sources": {"pci": {"deviceClassWhitelist": "0200"}}}],
)
def test_another_configuration_is_an_error(data: typing.Union[dict[str, typing.Any], list[int], str]) -> None:
    with pytest.raises(ResourceError, match="configuration of nfd-worker"):
        worker_config(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["core", "sources"]), JSON)
def test_any_configuration_is_read_or_refused(
    data: typing.Optional[typing.Union[dict[str, typing.Any], list[typing.Any], int]], key: str, value: typing.Any
) -> None:
    for item in (data, {key: data}, {key: {"pci": value}}):
        with contextlib.suppress(ResourceError):
            assert isinstance(worker_config(item), WorkerConfig)


def csv(name: str = "sriov-network-operator.v4.18.0", **status: str) -> dict[str, typing.Any]:
    metadata = {"name": name, "namespace": "openshift-sriov-network-operator"}
    return {"kind": "ClusterServiceVersion", "metadata": metadata, "spec": {"version": "4.18.0"}, "status": status}


def test_a_cluster_service_version() -> None:
    found = olm_object(
        csv(
            phase="Failed",
            reason="TooManyOperatorGroups",
            message="csv created in namespace with multiple operatorgroups",
        )
    )
    assert found is not None
    assert (found.phase, found.version) == ("Failed", "4.18.0")
    assert found is not None
    assert found.message == "TooManyOperatorGroups: csv created in namespace with multiple operatorgroups"
    assert olm_object(csv("gpu-operator.v1", phase="Succeeded")) is None
    silent = olm_object({**csv(), "status": None})
    assert silent is not None and silent.phase == ""


def test_a_subscription() -> None:
    healthy = {"type": "CatalogSourcesUnhealthy", "status": "False", "reason": "AllCatalogSourcesHealthy"}
    failed = {
        "type": "ResolutionFailed",
        "status": "True",
        "reason": "ConstraintsNotSatisfiable",
        "message": "no operators found",
    }
    resource: dict[str, typing.Any] = {
        "kind": "Subscription",
        "metadata": {"name": "sriov-network-operator-subscription", "namespace": "ops"},
        "spec": {"name": "sriov-network-operator"},
        "status": {"state": "UpgradePending", "conditions": [healthy, failed]},
    }
    assert olm_object(resource) == OlmObject(
        "Subscription",
        resource["metadata"]["name"],
        "ops",
        "UpgradePending",
        "ResolutionFailed: no operators found",
        package="sriov-network-operator",
    )
    assert olm_object({**resource, "spec": {"name": "nfd"}}) is None
    with pytest.raises(ResourceError):
        olm_object({"kind": "Subscription", "metadata": {}})
