# SPDX-License-Identifier: GPL-3.0-or-later

"""Templates for NVIDIA's NIC configuration operator: each card has one at most, and it says what the intent does."""

from __future__ import annotations

import typing

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.filter.nic_configuration import render_nic_configuration

FABRIC: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 4},
    "virtual_functions": 8,
    "resource_name": "mlx_compute",
    "network": {"name": "sriov-ib-compute", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "100.100.0.0/22"},
}
ETHERNET = {
    **FABRIC,
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"vendor": "15b3", "device": "101D", "hcas_per_node": 1},
    "virtual_functions": 4,
    "resource_name": "mlx_storage",
}
PLAIN = {
    "name": "fast",
    "profile": "macvlan",
    "select": {"hcas_per_node": 1, "netdev": ["eth1"]},
    "network": {"name": "fast", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.83.0.0/24"},
}
TYPES = {"compute": ["1021", "1023"]}


def rendered(*fabrics: typing.Any, **more: typing.Any) -> list[dict[str, typing.Any]]:
    return [item["object"] for item in render_nic_configuration(list(fabrics), **more)]


def with_pci(fabric: dict[str, typing.Any], *addresses: str) -> dict[str, typing.Any]:
    return {**fabric, "select": {**fabric["select"], "pci": list(addresses)}}


def test_a_template_for_each_fabric_and_model() -> None:
    cluster = {
        "firmware": {
            "num_of_vfs": 6,
            "advanced_pci_settings": True,
            "ats_enabled": False,
            "pci_wr_ordering": "force_relax",
            "max_acc_out_read": 0,
        }
    }
    first, second, ethernet = rendered(FABRIC, ETHERNET, PLAIN, cluster=cluster, nic_types=TYPES, namespace="nic")
    assert (
        first["metadata"]["namespace"] == "nic"
        and first["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "linerate.rdma"
    )
    raw = [
        ("ADVANCED_PCI_SETTINGS", "1"),
        ("ATS_ENABLED", "0"),
        ("PCI_WR_ORDERING", "force_relax"),
        ("MAX_ACC_OUT_READ", "0"),
    ]
    assert first["spec"] == {
        "nodeSelector": {"feature.node.kubernetes.io/network-sriov.capable": "true"},
        "nicSelector": {"nicType": "1021"},
        "template": {
            "numVfs": 8,
            "linkType": "Infiniband",
            "rawNvConfig": [{"name": name, "value": value} for name, value in raw],
        },
    }
    assert (
        second["spec"]["nicSelector"] == {"nicType": "1023"} and second["metadata"]["name"] != first["metadata"]["name"]
    )
    # the intent asks for more than this fabric needs
    assert ethernet["spec"]["template"]["numVfs"] == 6 and ethernet["spec"]["template"]["linkType"] == "Ethernet"
    assert ethernet["spec"]["nicSelector"] == {"nicType": "101d"}


def test_without_wishes_the_fabric_decides() -> None:
    (only,) = rendered(with_pci(FABRIC, "0000:3C:00.0"), nic_types={"compute": ["1021"]})
    assert only["spec"]["template"] == {"numVfs": 8, "linkType": "Infiniband"}
    assert only["spec"]["nicSelector"] == {"nicType": "1021", "pciAddresses": ["0000:3c:00.0"]}
    assert only["metadata"]["namespace"] == "nvidia-network-operator"


@pytest.mark.parametrize("nic_types", [None, {"compute": []}, {"compute": ["ConnectX7"]}])
def test_a_model_that_is_not_known_is_refused(nic_types: typing.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="set the IDs of its HCAs in nic_types"):
        rendered(FABRIC, nic_types=nic_types)


def test_no_card_has_two_templates() -> None:
    types = {"compute": ["1021"], "storage": ["1021"]}
    for pair in (
        (FABRIC, ETHERNET),
        (with_pci(FABRIC, "0000:3c:00.0"), ETHERNET),
        (with_pci(FABRIC, "0000:3c:00.0"), with_pci(ETHERNET, "0000:3C:00.0")),
    ):
        with pytest.raises(AnsibleFilterError, match="both have HCAs of type 1021"):
            rendered(*pair, nic_types=types)
    assert len(rendered(with_pci(FABRIC, "0000:3c:00.0"), with_pci(ETHERNET, "0000:3d:00.0"), nic_types=types)) == 2
