# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that claims a faster port or a wider PCIe link than it has: the floors of the other nodes stay, and the node
is named. What two nodes report counts for all."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.line_rates import HcaRates, find_line_rates
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.links import check_links
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

FABRIC = parse_intent(
    [
        {
            "name": "roce",
            "profile": "sriov_ethernet",
            "rdma": True,
            "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
            "virtual_functions": 4,
            "resource_name": "r",
            "network": {"namespace": "t", "name": "n"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
        }
    ]
).fabrics[0]
Nodes = dict[str, NodeHcas]


def node(speed: float, supported: typing.Optional[float], card: float = 32.0) -> NodeHcas:
    """A node with one NIC.

    :param speed: rate of its port in Gb/s
    :param supported: highest rate that the port supports
    :param card: highest speed of its PCIe link in GT/s
    """
    link = PcieLink(current_speed=32.0, current_width=16, max_speed=card, max_width=16, slot_speed=64.0, slot_width=16)
    pci = PciFunction("0000:3b:00.0", "15b3", "1021", "0200", driver="mlx5_core", link=link)
    netdev = Netdev("ens1", hardware_address="", state="up", speed_gbps=speed, supported_gbps=supported)
    return NodeHcas((Hca("mlx5_0", rdma_device="mlx5_0", board="MT_0000000838", pci=pci, netdevs=(netdev,)),))


def rates(nodes: Nodes) -> dict[str, HcaRates]:
    return {name: found for (name, _address), found in find_line_rates(FABRIC, nodes, {}, {}, {})[0].items()}


def findings(nodes: Nodes) -> dict[str, Finding]:
    found, why = find_line_rates(FABRIC, nodes, {}, {}, {})
    seen = {name: ObservedHcas(hcas) for name, hcas in nodes.items()}
    return {item.subject.split()[1]: item for item in check_links(FABRIC, tuple(nodes), found, why, seen, True)}


#: NICs of 200 Gb/s at switches of 100
HONEST = {f"n{number:02}": node(100.0, 200.0) for number in range(63)}


def test_the_rate_of_one_port_is_not_that_of_all() -> None:
    found = rates({**HONEST, "w": node(200.0, 200.0)})
    assert all(found[name].could is None for name in HONEST)
    assert all("w alone reports a faster port of its kind (200 Gb/s)" in found[name].why for name in HONEST)


def test_the_rate_of_one_port_whose_kind_is_unknown_is_not_that_of_all() -> None:
    found = rates({**{name: node(100.0, None) for name in HONEST}, "w": node(800.0, None)})
    assert all(found[name].could is None and "w alone reports" in found[name].why for name in HONEST)


def test_the_rate_of_two_ports_is_that_of_all_with_their_names() -> None:
    found = rates({**HONEST, "v": node(200.0, 200.0), "w": node(200.0, 200.0)})
    assert all(found[name].could == 200.0 for name in HONEST)
    assert found["n00"].why == "other ports of its kind on this fabric (v, w)"


def test_of_two_nodes_one_is_enough_and_named() -> None:
    found = rates({"n00": node(100.0, 200.0), "w": node(200.0, 200.0)})
    assert (found["n00"].could, found["n00"].why) == (200.0, "other ports of its kind on this fabric (w)")


@pytest.mark.parametrize("liars", [1, 2])
def test_the_pcie_maximum_of_one_card_is_not_that_of_its_board(liars: int) -> None:
    named = {f"w{number}": node(200.0, 200.0, card=64.0) for number in range(liars)}
    honest = {name: node(200.0, 200.0) for name in HONEST}
    found = findings({**honest, **named})
    expected = "pass" if liars == 1 else "fail"
    assert {found[name].status for name in honest} == {expected}
    if liars == 1:
        assert found["w0"].status != "pass"
        assert "This node alone reports this PCIe maximum" in found["w0"].why
        assert "64 GT/s x16, and other nodes at most 32 GT/s x16" in found["w0"].why


def test_a_card_that_reports_too_little_is_compared_with_two_others() -> None:
    nodes = {"a": node(200.0, 200.0), "b": node(200.0, 200.0), "low": node(200.0, 200.0, card=16.0)}
    found = rates(nodes)
    assert found["low"].pcie == found["a"].pcie and found["a"].pcie is not None and not found["a"].pcie.alone
