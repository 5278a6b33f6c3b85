# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage virtual_functions: each disagreement names the layer that is wrong."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.cluster import (
    ClusterNode,
    NodeState,
    OperatorFacts,
    StateInterface,
    StateVf,
    VfGroup,
    WantedInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import Hca, NodeHcas, ObservedHcas, PciFunction, Sriov
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRIC = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9"},
    "virtual_functions": 2,
    "resource_name": "igb",
    "rdma": False,
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
INTENT = parse_intent([FABRIC])
PF = "0000:01:00.0"
ADDRESSES = ("0000:01:10.0", "0000:01:10.2")
PHYSICAL = Hca("eth1", pci=PciFunction(PF, "8086", "10c9", "0200", "igb"), sriov=Sriov(7, 2))


def virtual(address, driver="igbvf", rdma=None):
    return Hca(address, rdma_device=rdma, pci=PciFunction(address, "8086", "10ca", "0200", driver), physical_function=PF)


VIRTUAL = tuple(virtual(address) for address in ADDRESSES)
STATE = NodeState(
    "worker-1",
    (WantedInterface(PF, 2, "eth1", (VfGroup("linerate-storage", "igb", last=1),)),),
    (StateInterface("eth1", PF, "8086", "10c9", "igb", "ETH", 1500, 7, 2, tuple(StateVf(index, address, "igbvf") for index, address in enumerate(ADDRESSES))),),
    "Succeeded",
)


def facts(physical=PHYSICAL, vfs=VIRTUAL, state=STATE, offered=2):
    node = ClusterNode("worker-1", {}, True, False, {"openshift.io/igb": offered} if offered is not None else {})
    operators = OperatorFacts((), (), (), (node,), (state,) if state else ())
    return Facts({"worker-1": ObservedHcas(NodeHcas((physical, *vfs)))}, {}, operators)


def found(given, name, intent=INTENT):
    (finding,) = [finding for finding in check(intent, given) if finding.check == f"virtual_functions.{name}"]
    return finding


def interface(**changes):
    return dataclasses.replace(STATE, interfaces=(dataclasses.replace(STATE.interfaces[0], **changes),))


def wanted(**changes):
    return dataclasses.replace(STATE, wanted=(dataclasses.replace(STATE.wanted[0], **changes),))


def test_all_agree():
    findings = check(INTENT, facts())
    assert {finding.status for finding in findings} == {"pass"}
    assert [finding.check.split(".")[1] for finding in findings] == ["members", "count", "driver", "report", "allocatable"]


def test_facts_survive_the_way_through_ansible():
    assert load(Facts, to_data(facts()), "facts") == facts()


@pytest.mark.parametrize(
    ("given", "layer"),
    [
        (facts(dataclasses.replace(PHYSICAL, sriov=Sriov(None, None)), ()), "Firmware or BIOS"),
        (facts(dataclasses.replace(PHYSICAL, sriov=None), ()), "Firmware or BIOS"),
        (facts(dataclasses.replace(PHYSICAL, sriov=Sriov(1, 0)), ()), "Firmware: the function has 1 virtual functions at most"),
        (facts(vfs=(), state=None), "Operator: it has no SriovNetworkNodeState"),
        (facts(vfs=(), state=dataclasses.replace(STATE, interfaces=())), "Config daemon: it does not report this function"),
        (facts(vfs=(), state=dataclasses.replace(interface(vfs_count=0, vfs=()), wanted=())), "Operator: no policy reaches this function"),
        (facts(vfs=VIRTUAL[:1], state=wanted(vfs_count=1)), "Operator: it wants 1 on this function"),
        # the daemon says Succeeded and 2, the kernel has none
        (facts(vfs=()), "Config daemon: its report is not what the kernel shows"),
        (facts(vfs=(), state=interface(vfs_count=0, vfs=())), "Config daemon: it was told 2 and has not made them"),
        (facts(state=interface(vfs_count=0, vfs=())), "Config daemon: the kernel has them, its report is old"),
    ],
)
def test_the_wrong_layer_is_named(given, layer):
    finding = found(given, "count")
    assert finding.status == "fail"
    assert finding.why.startswith(layer)


@pytest.mark.parametrize("driver", [None, "vfio-pci"])
def test_driver(driver):
    finding = found(facts(vfs=(VIRTUAL[0], virtual(ADDRESSES[1], driver))), "driver")
    assert finding.status == "fail"
    assert ADDRESSES[1] in finding.why


def test_same_number_but_not_the_same_functions():
    other = dataclasses.replace(STATE.interfaces[0].vfs[1], address="0000:01:11.0")
    finding = found(facts(state=interface(vfs=(STATE.interfaces[0].vfs[0], other))), "report")
    assert finding.status == "fail"
    assert "0000:01:10.2, 0000:01:11.0" in finding.why


@pytest.mark.parametrize("offered", [None, 0, 1, 3])
def test_allocatable(offered):
    assert found(facts(offered=offered), "allocatable").status == "fail"


def test_rdma_device_where_the_fabric_asks_for_one():
    intent = parse_intent([{**FABRIC, "rdma": True}])
    assert found(facts(), "rdma_device", intent).status == "fail"
    given = facts(vfs=tuple(virtual(address, rdma=f"mlx5_{index}") for index, address in enumerate(ADDRESSES)))
    assert found(given, "rdma_device", intent).status == "pass"


def test_another_number_of_physical_functions():
    intent = parse_intent([{**FABRIC, "select": {**FABRIC["select"], "hcas_per_node": 2}}])
    finding = found(facts(), "members", intent)
    assert (finding.status, finding.measured, finding.expected) == ("fail", "eth1", "2 physical functions")


def test_an_infiniband_fabric_that_is_not_known_is_unknown():
    intent = parse_intent([{**FABRIC, "profile": "sriov_infiniband"}])
    assert found(facts(), "members", intent).status == "unknown"


def test_a_silent_node_and_no_node_are_unknown():
    silent = dataclasses.replace(facts(), nodes={"worker-1": ObservedHcas(error="unreachable")})
    assert found(silent, "node").status == "unknown"
    assert "unreachable" in found(silent, "node").why
    assert found(dataclasses.replace(facts(), nodes={}), "node").status == "unknown"


def test_an_api_server_that_was_not_asked_is_unknown():
    assert found(dataclasses.replace(facts(), operators=None), "allocatable").status == "unknown"
