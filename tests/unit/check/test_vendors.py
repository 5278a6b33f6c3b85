# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies on NICs: each names the modules, tools and packages of the NIC's own vendor, and of no other one."""

from __future__ import annotations

import dataclasses
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet import vendors, why_no_sriov
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.vendors import VENDORS, Vendor
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.policy_context import ClusterBefore
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.sriov_policy import find_objections
from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions import check as virtual_functions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
    Sriov,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    Policy,
    StateInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

#: modules, tools and packages that are of one vendor alone
WORDS = {
    "NVIDIA": r"mlx|mst|mlnx|SRIOV_EN|NUM_OF_VFS|LINK_TYPE|DOCA|OFED|NVIDIA",
    "Broadcom": r"bnxt|niccli|Broadcom|_vfs_per_pf",
    "Intel": r"irdma|nvmupdate|Intel|\bice\b|i40e|iavf",
    "AMD": r"ionic|nicctl|AMD",
}
PF, VFS = "0000:17:00.0", ("0000:17:01.0", "0000:17:01.1")


def nic(vendor: Vendor, **changes: typing.Any) -> Hca:
    """A physical function without an RDMA device."""
    pci = PciFunction(PF, vendor.pci, "1593", "0200", vendor.drivers[0])
    whole = Hca("ens1f0", netdevs=(Netdev("ens1f0", "00:11:22:33:44:55", 9000, "up"),), pci=pci, sriov=Sriov(8, 2))
    return dataclasses.replace(whole, **changes)


def fabric_of(vendor: Vendor, **changes: typing.Any) -> typing.Any:
    fabric = {
        "name": "compute",
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 1, "vendor": vendor.pci},
        "virtual_functions": 2,
        "resource_name": "compute",
        "network": {"name": "net", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    }
    return parse_intent([{**fabric, **changes}])


def remedy(findings: typing.Iterable[Finding], check: str) -> str:
    (found,) = {finding.remedy for finding in findings if finding.check == check and finding.status != "pass"}
    return found


def found_by_discover(vendor: Vendor, check: str, **changes: typing.Any) -> str:
    hcas = {name: ObservedHcas(NodeHcas((nic(vendor, **changes),))) for name in ("worker-1", "worker-2")}
    return remedy(discover.check(fabric_of(vendor), discover.Facts(hcas)), check)


def without_driver(vendor: Vendor) -> str:
    pci = PciFunction(PF, vendor.pci, "1593", "0200", None)
    return found_by_discover(vendor, "discover.driver", pci=pci)


def without_rdma_device(vendor: Vendor) -> str:
    return found_by_discover(vendor, "discover.driver")


def without_sriov(vendor: Vendor) -> str:
    return found_by_discover(
        vendor,
        "discover.sriov",
        sriov=None,
        sriov_absence="off",
        rdma_device="rdma0",
        ports=(Port(1, link_layer="Ethernet"),),
    )


def without_functions(vendor: Vendor) -> str:
    return found_by_discover(vendor, "discover.sriov", sriov=Sriov(0, 0))


def of_functions(vendor: Vendor, check: str, sriov: Sriov, driver: typing.Optional[str], **changes: typing.Any) -> str:
    virtual = [
        Hca(address, pci=PciFunction(address, vendor.pci, "1889", "0200", driver), physical_function=PF, vf_index=index)
        for index, address in enumerate(VFS)
    ]
    seen = NodeHcas((nic(vendor, rdma_device="rdma0", sriov=sriov), *virtual[: sriov.current]))
    facts = virtual_functions.Facts({"worker-1": ObservedHcas(seen)}, {}, None)
    return remedy(virtual_functions.check(fabric_of(vendor, **changes), facts), check)


def functions_without_rdma_device(vendor: Vendor) -> str:
    return of_functions(vendor, "virtual_functions.rdma_device", Sriov(8, 2), vendor.drivers[0])


def functions_without_driver(vendor: Vendor) -> str:
    return of_functions(vendor, "virtual_functions.driver", Sriov(8, 2), None)


def policy_for_rdma(vendor: Vendor) -> str:
    policy = Policy("compute", "compute", node_selector={}, vfs_count=2, rdma=True, vendor=vendor.pci)
    interface = StateInterface("ens1f0", PF, vendor.pci, "1593", vendor.drivers[0], "ETH", 1500, 8, 0)
    node, state = ClusterNode("worker-1", {}, True, False, {}), NodeState("worker-1", interfaces=(interface,))
    before = ClusterBefore({"worker-1": node}, {"worker-1": state}, hcas={"worker-1": NodeHcas((nic(vendor),))})
    (found,) = [objection for objection in find_objections(policy, before) if objection.check == "network.lint_rdma"]
    return found.remedy


PLACES = (
    without_driver,
    without_rdma_device,
    without_sriov,
    without_functions,
    functions_without_rdma_device,
    functions_without_driver,
    policy_for_rdma,
    lambda vendor: why_no_sriov.explain_no_sriov(nic(vendor, sriov=None))[1],
    lambda vendor: vendors.describe_burning(nic(vendor)),
    lambda vendor: vendors.link_command(nic(vendor), PF),
    lambda vendor: vendors.priorities_command(nic(vendor)),
)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
@pytest.mark.parametrize("place", PLACES)
def test_no_remedy_names_another_vendor_s_tool(place: typing.Callable[[Vendor], str], vendor: Vendor) -> None:
    text = place(vendor)
    assert text
    for name, words in WORDS.items():
        assert name == vendor.name or not re.search(words, text), (name, text)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_an_rdma_driver_is_named_by_vendor_with_the_packages_that_have_it(vendor: Vendor) -> None:
    for text in (without_rdma_device(vendor), functions_without_rdma_device(vendor), policy_for_rdma(vendor)):
        assert f"oad the RDMA driver on the node: modprobe {vendor.rdma}." in text
        assert "apt install linux-modules-extra-$(uname -r)" in text and vendor.package in text


@pytest.mark.parametrize(
    ("name", "enable", "more"),
    [
        ("NVIDIA", f"mstconfig -d {PF} set SRIOV_EN=1 NUM_OF_VFS=NUMBER", f"mstconfig -d {PF} set NUM_OF_VFS=NUMBER"),
        (
            "Broadcom",
            "niccli -dev ID nvm -setoption enable_sriov -value 1",
            "number_of_vfs_per_pf -scope PORT -value NUMBER",
        ),
        ("Intel", "Enable SR-IOV in the BIOS", "Request fewer virtual functions"),
        ("AMD", "nicctl update card profile --profile pf1_vf1", "nicctl update card profile --profile NAME"),
    ],
)
def test_virtual_functions_are_made_by_the_tool_of_the_vendor(name: str, enable: str, more: str) -> None:
    vendor = next(vendor for vendor in VENDORS if vendor.name == name)
    assert enable in without_sriov(vendor) and enable in without_functions(vendor)
    assert more in vendors.more_functions(nic(vendor))


def test_a_nic_that_is_not_in_the_table_has_no_tool_of_others() -> None:
    other = dataclasses.replace(nic(VENDORS[0]), pci=PciFunction(PF, "1077", "8070", "0200", "qede"))
    texts = [
        vendors.load_driver([other]),
        vendors.load_rdma([other]),
        vendors.enable_functions(other),
        vendors.more_functions(other),
        vendors.describe_burning(other),
    ]
    texts += [vendors.link_command(other, PF), vendors.priorities_command(other)]
    assert not re.search("|".join(WORDS.values()), " ".join(texts))
    assert f"lspci -k -s {PF}" in texts[0]


def test_an_intel_nic_without_rdma_is_not_told_to_load_irdma() -> None:
    igb = nic(VENDORS[2], pci=PciFunction(PF, "8086", "10c9", "0200", "igb"))
    assert "irdma" not in vendors.load_rdma([igb])


def test_nics_of_two_vendors_have_the_modules_of_both() -> None:
    text = vendors.load_rdma([nic(VENDORS[0]), nic(VENDORS[1])])
    assert "modprobe mlx5_ib and modprobe bnxt_re" in text and "DOCA-OFED or Broadcom's package" in text
