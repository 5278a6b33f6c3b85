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


def intent(**ipam: typing.Any) -> list[dict[str, typing.Any]]:
    """The lab's fabrics; keys of the addresses of ``storage`` replaced."""
    return [
        {**fabric, "ipam": {"type": "whereabouts", **ipam}} if fabric["name"] == "storage" else fabric
        for fabric in SETTINGS["rdma_fabrics"]
    ]


#: an RDMA network and one of TCP
SIXES = {"storage": "fd00:79::/112", "fast": "fd00:86::/112"}


@pytest.mark.thorough
def test_networks_of_ipv6_are_made_and_measured(lab: Lab) -> None:
    """Pods have IPv6 addresses alone on both networks: rping, ib_write_bw and the TCP tool must find each other by
    these."""
    fabrics = [
        (
            {**fabric, "ipam": {"type": "whereabouts", "range": SIXES[fabric["name"]]}}
            if fabric["name"] in SIXES
            else fabric
        )
        for fabric in SETTINGS["rdma_fabrics"]
    ]
    made = lab.playbook("playbooks/network.yml", variables={"rdma_fabrics": fabrics})
    try:
        assert made.code == 0, made.end
        run = lab.playbook("playbooks/bandwidth.yml", variables={"rdma_fabrics": fabrics})
    finally:
        restored = lab.playbook("playbooks/network.yml")
    assert run.code == 0, run.end
    pods = run.fact("bandwidth")["bandwidth"]["pods"]
    addresses = {fabric: {pod["address"] for pod in pods if pod["fabric"] == fabric} for fabric in SIXES}
    assert all(
        len(found) == 2 and all(address.startswith(SIXES[fabric][:7]) for address in found)
        for fabric, found in addresses.items()
    ), addresses
    proven = {(finding["check"], finding["subject"].split()[0]) for finding in run.findings("bandwidth", "pass")}
    assert {("bandwidth.rping", "storage"), ("bandwidth.measured", "storage"), ("bandwidth.measured", "fast")} <= proven
    assert restored.code == 0, restored.end


def test_too_small_a_range_is_refused_by_arithmetic(lab: Lab) -> None:
    run = lab.playbook("playbooks/validate.yml", variables={"rdma_fabrics": intent(range="10.79.0.0/29")})
    assert run.code != 0
    finding = run.finding("validate", "validate.addresses", "rdma_fabrics[1].ipam.range")
    assert (finding["status"], finding["measured"], finding["expected"]) == (
        "fail",
        "6 addresses",
        "8 addresses: 2 nodes x 1 HCAs x 4 VFs",
    )


@pytest.mark.thorough
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
