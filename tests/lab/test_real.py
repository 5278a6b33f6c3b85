# SPDX-License-Identifier: GPL-3.0-or-later

"""Which operators are real in the lab: who made what the collection looks for, and what runs."""

from __future__ import annotations

import json

from lab import description
from lab.build.images import DISCOVERY_IMAGE, NODE_IMAGE
from lab.fabric.emulated import TOTAL_VFS
from lab.feature_discovery import LABEL

from .conftest import Lab

WORKERS = ("worker-1", "worker-2")
#: of the emulated NIC: the kernel's igb leaves one of eight to the physical function
TOTAL = "7"


def images(lab: Lab, kind: str) -> dict[str, str]:
    """Names of workloads to the image of their first container."""
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]["containers"][0]["image"]
        for item in lab.objects(f"apps/v1/{kind}")
    }


def test_the_label_comes_from_the_nic(lab: Lab) -> None:
    """The worker of node feature discovery saw it on the node, its master wrote it, and nobody else has."""
    told = {item["metadata"]["name"]: item["spec"] for item in lab.objects("nfd.k8s-sigs.io/v1alpha1/NodeFeature")}
    assert set(told) == set(WORKERS)
    for node in lab.objects("v1/Node"):
        metadata = node["metadata"]
        if metadata["name"] not in WORKERS:
            continue
        assert metadata["labels"][LABEL] == told[metadata["name"]]["labels"][LABEL] == "true"
        nics = [
            item["attributes"] for item in told[metadata["name"]]["features"]["instances"]["network.device"]["elements"]
        ]
        able = {nic["name"]: nic["sriov_totalvfs"] for nic in nics if "sriov_totalvfs" in nic}
        assert able == {"eth1": TOTAL, **{hca.netdev: str(TOTAL_VFS) for hca in description.read().hcas}}
        assert {entry["manager"] for entry in metadata["managedFields"] if LABEL in json.dumps(entry)} == {"nfd-master"}


def test_what_runs_is_the_operators_own_program(lab: Lab) -> None:
    """What is compiled from their own sources, at the versions of lab/go, and no stand-in."""
    daemons, deployments = images(lab, "DaemonSet"), images(lab, "Deployment")
    assert daemons["node-feature-discovery-worker"] == deployments["node-feature-discovery-master"] == DISCOVERY_IMAGE
    assert deployments["sriov-network-operator"] == daemons["sriov-network-config-daemon"] == NODE_IMAGE
