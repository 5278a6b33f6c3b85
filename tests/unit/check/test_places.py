# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an HCA is, as suspects are named."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.hcas_of_fabric import resolve
from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.places import Place, places, topology_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import LinkEnd, ObservedTopologies, Topology
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

NODES = {"worker-1": world.node(1), "worker-2": world.node(2)}
MEMBERSHIP = resolve(world.fabric(), NODES, {name: world.subnets() for name in NODES})


def seen(topology: Topology) -> dict:
    return {"worker-1": ObservedTopologies(world.seen_topologies(topology)), "worker-2": ObservedTopologies(())}


def test_each_hca_has_its_leaf_and_port() -> None:
    found = places(MEMBERSHIP, seen(world.topology()))
    assert list(found) == [(name, f"mlx5_{index}") for name in NODES for index in (0, 1, 4, 5)]
    assert found["worker-2", "mlx5_4"] == Place("worker-2", "mlx5_4", 2, "MF0;leaf00:MQM9700/U1", 7)


def test_a_nameless_leaf_has_its_guid() -> None:
    topology = world.topology()
    nameless = dataclasses.replace(topology, nodes=(dataclasses.replace(topology.nodes[0], description=" "), *topology.nodes[1:]))
    assert places(MEMBERSHIP, seen(nameless))["worker-1", "mlx5_0"].leaf == topology.nodes[0].guid


def test_what_the_topology_does_not_show_has_no_leaf() -> None:
    found = places(MEMBERSHIP, seen(world.topology(without=[plain_guid(2, 1, 1)])))
    assert found["worker-2", "mlx5_1"] == Place("worker-2", "mlx5_1", 1) and found["worker-1", "mlx5_1"].leaf is not None
    topology = world.topology()
    first = topology.links[0]
    back_to_back = dataclasses.replace(first, a=LinkEnd("Ca", topology.nodes[2].guid, 1, 9, "0x00000000000000aa"))
    assert places(MEMBERSHIP, seen(dataclasses.replace(topology, links=(back_to_back, *topology.links[1:]))))["worker-1", "mlx5_0"].leaf is None


@pytest.mark.parametrize(
    ("topologies", "why"),
    [
        ({}, "worker-1: was not asked"),
        ({"worker-1": ObservedTopologies(error="unreachable: timed out")}, "unreachable: timed out"),
        ({"worker-1": ObservedTopologies(world.seen_topologies(error="ibnetdiscover did not end"))}, "worker-1 mlx5_0: ibnetdiscover did not end"),
    ],
)
def test_without_a_topology_node_and_rail_are_known_and_the_cause_is(topologies: dict, why: str) -> None:
    assert places(MEMBERSHIP, topologies)["worker-2", "mlx5_5"] == Place("worker-2", "mlx5_5", 3)
    topology, words = topology_of(MEMBERSHIP, topologies)
    assert topology is None and why in words


def test_an_ethernet_nic_is_placed_by_its_name() -> None:
    assert places(resolve(world.storage(), NODES, {}), {}) == {(name, "eth1"): Place(name, "eth1", 0) for name in NODES}
