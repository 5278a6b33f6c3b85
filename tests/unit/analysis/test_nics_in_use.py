# SPDX-License-Identifier: GPL-3.0-or-later

"""The physical functions that a node itself uses."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.nics_in_use import UPLINK, find_nics_in_use
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, PciFunction
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import NodePlatform, ObservedPlatform

PF, VF = "0000:01:00.0", "0000:01:00.2"


def hca(address: str, netdev: str, bond: typing.Optional[str] = None, of: typing.Optional[str] = None) -> Hca:
    function = PciFunction(address, "15b3", "101d", "0200", "mlx5_core")
    return Hca(netdev, pci=function, netdevs=(Netdev(netdev, "aa", 1500, "up", bond=bond),), physical_function=of)


def platform(*uplinks: str) -> ObservedPlatform:
    return ObservedPlatform(NodePlatform(kernel="6.8.0", machine="x86_64", functions=(), uplinks=uplinks), None)


@pytest.mark.parametrize(
    ("hcas", "uplinks", "used"),
    [
        ((hca(PF, "eth1"),), ("eth1",), {"eth1": UPLINK, PF: UPLINK}),
        ((hca(PF, "eth1"),), ("eth0",), {"eth0": UPLINK}),
        ((hca(PF, "eth1", "bond0"),), ("bond0", "eth1"), {"bond0": UPLINK, "eth1": UPLINK, PF: UPLINK}),
        ((hca(PF, "eth1", "bond1"),), (), {"eth1": "the bond bond1", PF: "the bond bond1"}),
        ((hca(PF, "eth1"), hca(VF, "eth1v0", of=PF)), ("eth1v0",), {"eth1v0": UPLINK, PF: UPLINK}),
        ((hca(VF, "eth1v0", of=PF), hca(PF, "eth1", "bond1")), ("eth1v0",), {"eth1v0": UPLINK, PF: UPLINK}),
    ],
    ids=["its interface", "another interface", "a bond with the route", "a bond", "a virtual function", "both"],
)
def test_functions_of_the_default_route_and_of_bonds_are_in_use(
    hcas: tuple[Hca, ...], uplinks: tuple[str, ...], used: dict[str, str]
) -> None:
    assert find_nics_in_use(NodeHcas(hcas), platform(*uplinks)) == used


def test_default_routes_that_were_not_read_are_unknown() -> None:
    assert find_nics_in_use(NodeHcas((hca(PF, "eth1"),)), None) is None
    assert find_nics_in_use(NodeHcas((hca(PF, "eth1"),)), ObservedPlatform(None, "no answer")) is None
    assert find_nics_in_use(None, platform("eth1")) == {"eth1": UPLINK}
