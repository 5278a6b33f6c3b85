# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an HCA is, as suspects are named."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hca_locations import (
    Place,
    collect_places,
    find_topology,
    find_topology_or_first_view,
    number_by_leaf,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import (
    Member,
    Membership,
    resolve_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ObservedTopologies,
    SeenTopology,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, PciFunction, Port
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

NODES = {"worker-1": world.node(1), "worker-2": world.node(2)}
MEMBERSHIP = resolve_members(world.fabric(), NODES, {name: world.subnets() for name in NODES})


def seen(topology: Topology) -> dict[str, typing.Any]:
    return {"worker-1": ObservedTopologies(world.seen_topologies(topology)), "worker-2": ObservedTopologies(())}


def test_each_hca_has_its_leaf_and_port() -> None:
    found = collect_places(MEMBERSHIP, seen(world.topology()))
    assert list(found) == [(name, f"mlx5_{index}") for name in NODES for index in (0, 1, 4, 5)]
    assert found["worker-2", "mlx5_4"] == Place("worker-2", "mlx5_4", 2, "MF0;leaf00:MQM9700/U1", 7)


def test_a_nameless_leaf_has_its_guid() -> None:
    topology = world.topology()
    nameless = dataclasses.replace(
        topology, nodes=(dataclasses.replace(topology.nodes[0], description=" "), *topology.nodes[1:])
    )
    assert collect_places(MEMBERSHIP, seen(nameless))["worker-1", "mlx5_0"].leaf == topology.nodes[0].guid


def test_what_the_topology_does_not_show_has_no_leaf() -> None:
    found = collect_places(MEMBERSHIP, seen(world.topology(without=[plain_guid(2, 1, 1)])))
    assert (
        found["worker-2", "mlx5_1"] == Place("worker-2", "mlx5_1", 1) and found["worker-1", "mlx5_1"].leaf is not None
    )
    topology = world.topology()
    first = topology.links[0]
    back_to_back = dataclasses.replace(first, a=LinkEnd("Ca", topology.nodes[2].guid, 1, 9, "0x00000000000000aa"))
    assert (
        collect_places(MEMBERSHIP, seen(dataclasses.replace(topology, links=(back_to_back, *topology.links[1:]))))[
            "worker-1", "mlx5_0"
        ].leaf
        is None
    )


@pytest.mark.parametrize(
    ("topologies", "why"),
    [
        ({}, "worker-1: the node was not queried"),
        ({"worker-1": ObservedTopologies(error="unreachable: timed out")}, "unreachable: timed out"),
        (
            {"worker-1": ObservedTopologies(world.seen_topologies(error="ibnetdiscover did not end"))},
            "worker-1 mlx5_0: ibnetdiscover did not end",
        ),
    ],
)
def test_without_a_topology_node_and_rail_are_known_and_the_cause_is(
    topologies: dict[str, typing.Any], why: str
) -> None:
    assert collect_places(MEMBERSHIP, topologies)["worker-2", "mlx5_5"] == Place("worker-2", "mlx5_5", 3)
    topology, words = find_topology(MEMBERSHIP, topologies)
    assert topology is None and why in words


def test_an_ethernet_nic_is_placed_by_its_name() -> None:
    assert collect_places(resolve_members(world.storage(), NODES, {}), {}) == {
        (name, "eth1"): Place(name, "eth1", 0) for name in NODES
    }


def test_the_first_vantage_point_with_a_topology_shows_the_fabric() -> None:
    topology, why = find_topology(MEMBERSHIP, {"worker-2": ObservedTopologies(world.seen_topologies())})
    assert topology == world.topology() and why == ""
    without = ObservedTopologies(world.seen_topologies(error="ibnetdiscover did not end"))
    assert without.value is not None
    shown, why = find_topology_or_first_view(MEMBERSHIP, {"worker-1": without})
    assert shown == without.value[0] and "did not end" in why
    assert (
        find_topology_or_first_view(
            MEMBERSHIP, {"worker-1": without, "worker-2": ObservedTopologies(world.seen_topologies())}
        )[1]
        == ""
    )


Cables = typing.Mapping[str, typing.Sequence[typing.Optional[str]]]


def rails_of(first: Cables, other: Cables, without_pci: bool = False) -> dict[str, list[int]]:
    """The rails that two models of servers have by their leaves, in the order of their slots.

    :param first: of each node of the most frequent model, the leaf of each HCA; None where the topology does not show
        it
    :param without_pci: node z of the most frequent model has one HCA more, without a PCI address and without a port
    """
    members, nodes = {}, []
    links: list[Link] = []
    for model, cables in ((1, first), (2, other)):
        for node, leaves in cables.items():
            made = []
            for slot, leaf in enumerate(leaves):
                guid = f"0x{ord(node):x}{slot:x}"
                port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", 1, 1, guid)
                hca = Hca(
                    f"mlx5_{slot}",
                    f"mlx5_{slot}",
                    (),
                    PciFunction(f"000{model}:{slot}c:00.0", "15b3", "1021", "0207", "mlx5_core"),
                    guid,
                    ports=(port,),
                )
                made.append(Member(slot, hca, port))
                if leaf is not None:
                    links.append(
                        Link(LinkEnd("Switch", leaf, len(links) + 1), LinkEnd("Ca", guid, 1, None, guid), 4, "NDR")
                    )
            if node == "z" and without_pci:
                made.append(Member(len(made), Hca("odd", "odd")))
            members[node] = tuple(made)
    nodes = [FabricNode("Switch", guid, guid, 64) for guid in sorted({link.a.guid for link in links})]
    membership = Membership("compute", ("0xaa",), members)
    seen = {next(iter(first)): ObservedTopologies((SeenTopology("mlx5_0", 1, Topology(tuple(nodes), tuple(links))),))}
    found = number_by_leaf(membership, seen)
    return {
        node: [rail for _name, rail in sorted((member.hca.name, member.rail) for member in found.members[node])]
        for node in members
    }


TWO, TURNED = ("0x1", "0x2"), ("0x2", "0x1")


def test_servers_of_another_model_have_the_rails_of_their_leaves() -> None:
    assert rails_of({"a": TWO, "b": TWO}, {"c": TURNED}) == {"a": [0, 1], "b": [0, 1], "c": [1, 0]}
    # and whatever has no port, or no address, is in nobody's way
    assert rails_of({"a": TWO, "b": TWO, "z": TWO}, {"c": TURNED}, without_pci=True)["c"] == [1, 0]


def test_one_swapped_cable_is_outvoted() -> None:
    assert rails_of({"a": TURNED, "b": TWO, "d": TWO, "e": TWO}, {"c": TURNED})["c"] == [1, 0]
    assert rails_of({"a": TWO, "b": TWO, "d": TWO, "e": TWO}, {"c": TWO, "f": TURNED, "g": TURNED}) == {
        **{node: [0, 1] for node in "abde"},
        **{node: [1, 0] for node in "cfg"},
    }


@pytest.mark.parametrize(
    "first",
    [{"a": ("0x1", "0x1"), "b": ("0x1", "0x1")}, {"a": ("0x1", "0x1", "0x1"), "b": ("0x1", "0x1", "0x1")}],
    ids=["two rails", "three rails"],
)
def test_a_leaf_with_several_rails_tells_none(first: Cables) -> None:
    # its second HCA is alone on that leaf
    assert rails_of(first, {"c": ("0x9", "0x1")})["c"] == [0, 1]


def test_most_of_a_leaf_is_more_than_a_half() -> None:
    first = {
        "a": ("0x1", "0x2", "0x3"),
        "b": ("0x1", "0x2", "0x3"),
        "d": ("0x2", "0x1", "0x3"),
        "e": ("0x2", "0x3", "0x1"),
    }
    # two of four HCAs of leaf 1 are of rail 0
    assert rails_of(first, {"c": ("0x9", "0x1", "0x3")})["c"] == [0, 1, 2]


def test_hcas_on_leaves_of_their_own_take_the_rails_that_are_left() -> None:
    first = {"a": ("0x1", "0x2", "0x3"), "b": ("0x1", "0x2", "0x3")}
    assert rails_of(first, {"c": ("0x2", "0x8", "0x9")})["c"] == [1, 0, 2]
    # a port that the topology does not show has none
    assert rails_of(first, {"c": ("0x2", None, "0x1")})["c"] == [1, 2, 0]


def test_a_model_whose_leaves_do_not_tell_its_rails_apart_keeps_them() -> None:
    assert rails_of({"a": TWO, "b": TWO}, {"c": ("0x2", "0x2")})["c"] == [0, 1]
