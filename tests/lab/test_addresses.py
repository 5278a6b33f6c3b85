# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that somebody else uses, are too few, or were never given back: said before anything is made."""

from __future__ import annotations

import typing

import pytest

from .conftest import SETTINGS, Lab

POLICIES = "sriovnetwork.openshift.io/v1/SriovNetworkNodePolicy"
LEAK = {
    "apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
    "kind": "IPPool",
    "metadata": {"name": "leak", "namespace": "kube-system"},
    "spec": {"range": "10.79.0.0/24", "allocations": {"77": {"id": "none", "podref": "training/long-gone"}}},
}


def intent(**ipam: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """The lab's fabrics; keys of the addresses of ``storage`` replaced."""
    return [{**fabric, "ipam": {"type": "whereabouts", **ipam}} if fabric["name"] == "storage" else fabric for fabric in SETTINGS["rdma_fabrics"]]


def test_too_small_a_range_is_refused_by_arithmetic(lab: Lab) -> None:
    run = lab.playbook("playbooks/validate.yml", variables={"rdma_fabrics": intent(range="10.79.0.0/29")})
    assert run.code != 0
    finding = run.finding("validate", "validate.addresses", "rdma_fabrics[1].ipam.range")
    assert (finding["status"], finding["measured"], finding["expected"]) == ("fail", "6 addresses", "8 addresses: 2 nodes x 1 HCAs x 4 VFs")


def test_a_range_in_the_network_of_the_services_is_refused_before_anything_is_made(lab: Lab) -> None:
    before = lab.objects(POLICIES)
    run = lab.playbook("playbooks/network.yml", variables={"rdma_fabrics": intent(range="10.96.128.0/24")})
    assert run.code != 0
    finding = run.finding("network", "network.address_overlap", "storage")
    assert finding["status"] == "fail" and "ServiceCIDR kubernetes" in finding["measured"]
    assert lab.objects(POLICIES) == before


@pytest.mark.thorough
def test_an_address_of_a_pod_that_is_gone_is_warned_of(lab: Lab) -> None:
    with lab.present(LEAK):
        run = lab.playbook("playbooks/network.yml", "--check")
    finding = run.finding("network", "network.addresses", "storage")
    assert finding["status"] == "warn" and "training/long-gone" in finding["measured"]
