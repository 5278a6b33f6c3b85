# SPDX-License-Identifier: GPL-3.0-or-later

"""The physical functions that a node itself uses."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.nics_in_use import (
    UPLINK,
    find_nics_in_use,
    is_needed,
    is_network,
    is_unread,
    list_node_addresses,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, PciFunction
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    InterfaceNetwork,
    NodePlatform,
    ObservedPlatform,
)

PF, VF = "0000:01:00.0", "0000:01:00.2"


def hca(
    address: str,
    netdev: str,
    bond: typing.Optional[str] = None,
    of: typing.Optional[str] = None,
    bridge: typing.Optional[str] = None,
) -> Hca:
    function = PciFunction(address, "15b3", "101d", "0200", "mlx5_core")
    return Hca(
        netdev,
        pci=function,
        netdevs=(Netdev(netdev, "aa", 1500, "up", bond=bond, bridge=bridge),),
        physical_function=of,
    )


def platform(*uplinks: str) -> ObservedPlatform:
    value = NodePlatform(kernel="6.8.0", machine="x86_64", functions=(), uplinks=uplinks, networks=())
    return ObservedPlatform(value, None)


@pytest.mark.parametrize(
    ("hcas", "uplinks", "used"),
    [
        ((hca(PF, "eth1"),), ("eth1",), {"eth1": UPLINK, PF: UPLINK}),
        ((hca(PF, "eth1"),), ("eth0",), {"eth0": UPLINK}),
        ((hca(PF, "eth1", "bond0"),), ("bond0", "eth1"), {"bond0": UPLINK, "eth1": UPLINK, PF: UPLINK}),
        ((hca(PF, "eth1", "bond1"),), (), {"eth1": "the bond bond1", PF: "the bond bond1"}),
        ((hca(PF, "eth1"), hca(VF, "eth1v0", of=PF)), ("eth1v0",), {"eth1v0": UPLINK, PF: UPLINK}),
        ((hca(PF, "eth1", bridge="br1"),), (), {"eth1": "the bridge br1", PF: "the bridge br1"}),
        ((hca(PF, "eth1", bridge="br1"),), ("br1", "eth1"), {"br1": UPLINK, "eth1": UPLINK, PF: UPLINK}),
        ((hca(VF, "eth1v0", of=PF), hca(PF, "eth1", "bond1")), ("eth1v0",), {"eth1v0": UPLINK, PF: UPLINK}),
    ],
    ids=[
        "its interface",
        "another interface",
        "a bond with the route",
        "a bond",
        "a virtual function",
        "a bridge",
        "a bridge with the route",
        "both",
    ],
)
def test_functions_of_the_default_route_and_of_bonds_are_in_use(
    hcas: tuple[Hca, ...], uplinks: tuple[str, ...], used: dict[str, str]
) -> None:
    assert find_nics_in_use(NodeHcas(hcas), platform(*uplinks)) == used


def test_default_routes_that_were_not_read_are_unknown() -> None:
    assert find_nics_in_use(NodeHcas((hca(PF, "eth1"),)), None) is None
    assert find_nics_in_use(NodeHcas((hca(PF, "eth1"),)), ObservedPlatform(None, "no answer")) is None
    assert find_nics_in_use(None, platform("eth1")) == {"eth1": UPLINK}


@pytest.mark.parametrize(
    ("bond", "bridge", "uplink", "use"),
    [
        (None, None, "eno1", "networks that were not read"),
        ("bond0", None, "eno1", "the bond bond0"),
        (None, "br0", "eno1", "the bridge br0"),
        (None, None, "eth1", UPLINK),
    ],
)
def test_functions_whose_networks_were_not_read_may_have_networks(
    bond: typing.Optional[str], bridge: typing.Optional[str], uplink: str, use: str
) -> None:
    seen = platform(uplink)
    assert seen.value is not None
    value = dataclasses.replace(seen.value, networks=None)
    found = find_nics_in_use(
        NodeHcas((hca(PF, "eth1", bond, None, bridge),)), ObservedPlatform(value, None), ("10.0.0.5",)
    )
    assert found is not None and (found["eth1"], found[PF]) == (use, use)
    assert is_unread(use) is (use == "networks that were not read")


@pytest.mark.parametrize(
    ("networks", "addresses", "use"),
    [
        ((("eth1", "10.0.0.0/24"), ("eno1", "192.0.2.0/24")), ("10.0.0.5",), "the address of the node 10.0.0.5"),
        ((("eth1", "10.0.0.0/8"), ("eno1", "10.0.0.0/24")), ("10.0.0.5",), "the network 10.0.0.0/8"),
        ((("eth1", "10.0.0.0/24"), ("eno1", "10.0.0.0/24")), ("10.0.0.5",), "the network 10.0.0.0/24"),
        ((("eth1", "2001:db8::/64"),), ("10.0.0.5", "2001:db8::5"), "the address of the node 2001:db8::5"),
        ((("eth1", "10.9.0.0/16"),), ("192.0.2.5",), "the network 10.9.0.0/16"),
        ((("eth1", "169.254.0.0/16"), ("eno1", "10.9.0.0/16")), ("10.9.0.5",), None),
        ((("eth1", ""),), ("10.9.0.5",), None),
        ((("eth1", ""), ("eth1", "10.9.0.0/16")), (), "the network 10.9.0.0/16"),
    ],
    ids=[
        "its address",
        "a longer network",
        "beside the default route",
        "IPv6",
        "storage",
        "link-local",
        "empty",
        "two",
    ],
)
def test_functions_with_an_address_of_the_node_or_a_network_are_in_use(
    networks: typing.Any, addresses: tuple[str, ...], use: typing.Optional[str]
) -> None:
    """The default route is on another NIC."""
    seen = platform("eno1")
    assert seen.value is not None
    value = dataclasses.replace(seen.value, networks=tuple(InterfaceNetwork(*item) for item in networks))
    found = find_nics_in_use(NodeHcas((hca(PF, "eth1"),)), ObservedPlatform(value, None), addresses)
    assert found is not None
    assert (found.get(PF), found.get("eth1"), found["eno1"]) == (use, use, UPLINK)
    assert use is None or is_needed(use) is not is_network(use)


def test_addresses_of_nodes_come_from_the_node_objects() -> None:
    taken = (
        UsedNetwork("node", "10.0.0.5/32", "node a", node="a"),
        UsedNetwork("node", "2001:db8::5/128", "node a", node="a"),
        UsedNetwork("pods", "10.244.0.0/24", "pods of node a", node="a"),
    )
    assert list_node_addresses(AddressFacts(taken)) == {"a": ("10.0.0.5", "2001:db8::5")}
