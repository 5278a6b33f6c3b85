# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage network renders for NVIDIA's network operator, before that operator's own controllers.

It makes DaemonSets and NetworkAttachmentDefinitions of it, and its pods never run: their images are in a registry that
the lab does not have. That is what the stage has to say, on each node and with the cause, which the operator itself
does not give.
"""

from __future__ import annotations

import json
import typing

import pytest

from lab.processes import wait_until

from .conftest import SETTINGS, Lab, Run
from .test_definitions import answer, play

pytestmark = pytest.mark.thorough

NAMESPACE, POLICY = "nvidia-network-operator", "mellanox.com/v1alpha1/NicClusterPolicy"
NETWORK: dict[str, typing.Any] = {"namespace": "training"}
SHARED: dict[str, typing.Any] = {
    "name": "shared",
    "profile": "rdma_shared",
    "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
    "resource_name": "rdma_shared_eth",
    "network": {**NETWORK, "name": "shared"},
    "ipam": {"type": "whereabouts", "range": "10.88.0.0/24"},
}
FUNCTION: dict[str, typing.Any] = {
    "name": "function",
    "profile": "host_device",
    "select": {"hcas_per_node": 1, "netdev": ["vnic0"]},
    "rdma": False,
    "resource_name": "whole",
    "network": {**NETWORK, "name": "function"},
    "ipam": {"type": "whereabouts", "range": "10.89.0.0/24"},
}
#: kind of the network of each fabric: the first plugin that must come of it
NETWORKS = {
    "shared": ("MacvlanNetwork", {"type": "macvlan", "master": "eth1", "mode": "bridge"}),
    "function": ("HostDeviceNetwork", {"type": "host-device"}),
}
#: part of the policy: its DaemonSet, and the ConfigMap with its text
DAEMONS = {
    "rdmaSharedDevicePlugin": ("rdma-shared-dp-ds", "rdma-devices"),
    "sriovDevicePlugin": ("sriov-device-plugin", "sriovdp-config"),
}
WORKERS = ("worker-1", "worker-2")
#: as node feature discovery gives it where there is a NIC of NVIDIA's, which no worker has
NIC = {
    "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
    "kind": "NodeFeatureRule",
    "metadata": {"name": "stands-in-for-a-nic-of-nvidia"},
    "spec": {"rules": [{"name": "nic", "labels": {"pci-15b3.present": "true"}}]},
}
VARIABLES = {
    "rdma_fabrics": [SHARED, FUNCTION],
    "rdma_cluster": {**SETTINGS["rdma_cluster"], "wait_seconds": 60},
    "rdma_waivers": [
        {
            "check": "network.lint_*",
            "subject": "*",
            "reason": "the workers' NICs have no RDMA device, and the lab has no nv-ipam",
        }
    ],
}


@pytest.fixture(scope="module", autouse=True)
def operator(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    with Lab(tmp_path_factory.mktemp("nvidia")).running_on_demand("nvidia"):
        yield


def waited(run: Run, fabric: str) -> set[str]:
    """Why the fabric is not there, on all workers."""
    found = [run.finding("network", "network.ready", f"{fabric} {worker}") for worker in WORKERS]
    assert {finding["status"] for finding in found} == {"fail"}, found
    return {finding["why"] for finding in found}


def daemons(lab: Lab) -> dict[str, typing.Any]:
    return {
        item["metadata"]["name"]: item
        for item in lab.objects("apps/v1/DaemonSet")
        if item["metadata"]["namespace"] == NAMESPACE
    }


def test_daemon_sets_and_attachments_come_of_what_is_rendered_and_a_missing_label_is_named(lab: Lab) -> None:
    run = lab.playbook("playbooks/network.yml", variables=VARIABLES)
    assert run.code != 0, run.end
    for fabric in NETWORKS:
        for why in waited(run, fabric):
            assert (
                "NicClusterPolicy nic-cluster-policy is not ready" in why
                and "has no label feature.node.kubernetes.io/pci-15b3.present=true" in why
            )
    (policy,) = lab.objects(POLICY)
    assert policy["status"]["state"] == "notReady"
    found = {
        item["metadata"]["name"]: json.loads(item["spec"]["config"])
        for item in lab.objects("k8s.cni.cncf.io/v1/NetworkAttachmentDefinition")
    }
    for name, (kind, plugin) in NETWORKS.items():
        (network,) = lab.objects(f"mellanox.com/v1alpha1/{kind}")
        assert (network["metadata"]["name"], network["status"]["state"]) == (name, "ready"), network
        first = found[name].get("plugins", [found[name]])[0]
        assert plugin.items() <= first.items() and first["ipam"]["type"] == "whereabouts", first


def test_an_image_that_can_not_be_pulled_is_named_on_the_node(lab: Lab) -> None:
    with lab.present(NIC):
        run = lab.playbook("playbooks/network.yml", variables=VARIABLES)
        assert run.code != 0, run.end
        for fabric in NETWORKS:
            for why in waited(run, fabric):
                assert "its pod " in why and any(reason in why for reason in ("ErrImagePull", "ImagePullBackOff")), why
        (policy,) = lab.objects(POLICY)
        made = daemons(lab)
        assert set(made) == {daemon for daemon, _config in DAEMONS.values()}, made
        configs = {
            item["metadata"]["name"]: item["data"]
            for item in lab.objects("v1/ConfigMap")
            if item["metadata"]["namespace"] == NAMESPACE
        }
        for part, (daemon, config) in DAEMONS.items():
            wanted = policy["spec"][part]
            (container,) = made[daemon]["spec"]["template"]["spec"]["containers"]
            assert container["image"] == f"{wanted['repository']}/{wanted['image']}:{wanted['version']}"
            (text,) = configs[config].values()
            assert json.loads(text) == json.loads(wanted["config"])
            assert made[daemon]["status"]["desiredNumberScheduled"] == len(WORKERS)


def test_what_the_operator_made_goes_with_what_it_was_made_of(lab: Lab) -> None:
    kinds = ["NicClusterPolicy", *(kind for kind, _plugin in NETWORKS.values())]
    run = lab.playbook(
        play(lab.folder, custom_resources={"state": "absent", "kinds": kinds, "namespaces": ["training"]})
    )
    assert run.code == 0, run.end
    assert sorted(item["kind"] for item in answer(lab.folder)["applied"]) == sorted(kinds)
    # the garbage collector of Kubernetes takes what it owns
    assert wait_until(lambda: not daemons(lab), 120), daemons(lab)
    assert not set(NETWORKS) & {
        item["metadata"]["name"] for item in lab.objects("k8s.cni.cncf.io/v1/NetworkAttachmentDefinition")
    }
