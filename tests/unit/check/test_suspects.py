# SPDX-License-Identifier: GPL-3.0-or-later

"""From failing pairs to what they have in common. Each test breaks one thing of a small fabric, tries all pairs, and
wants that thing named."""

from __future__ import annotations

import itertools
import random
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.suspects import (
    MOST_SUSPECTS,
    Element,
    Trial,
    find_suspects,
    links_of,
    make_trial,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Place,
    Topology,
)

Fails = typing.Callable[[Place, Place], bool]


def fabric(nodes: int, rails: int, nodes_a_leaf: int = 4) -> list[Place]:
    """Rail k of every group of nodes on a leaf of its own, as in a rail-optimised fabric."""
    return [
        Place(f"node-{node}", f"mlx5_{rail}", rail, f"leaf-{rail}-{node // nodes_a_leaf}", node % nodes_a_leaf + 1)
        for node in range(nodes)
        for rail in range(rails)
    ]


def trials(fails: Fails, nodes: int = 8, rails: int = 4) -> list[Trial]:
    """Every pair of a rail, both ways."""
    pairs = itertools.permutations(fabric(nodes, rails), 2)
    return [
        make_trial("compute", client, server, not fails(client, server))
        for client, server in pairs
        if client.rail == server.rail
    ]


def found(fails: Fails, nodes: int = 8, rails: int = 4) -> list[set[tuple[str, str]]]:
    found = find_suspects(trials(fails, nodes, rails))
    return [{tuple(element) for element in suspect.elements} for suspect in found]  # type: ignore[misc]


def at(**wanted: typing.Any) -> Fails:
    """Fails when one of the two ends is there."""
    return lambda *ends: any(all(getattr(end, key) == value for key, value in wanted.items()) for end in ends)


def either(*broken: Fails) -> Fails:
    return lambda client, server: any(fails(client, server) for fails in broken)


def test_nothing_failed_nothing_is_suspected() -> None:
    assert find_suspects(trials(lambda _client, _server: False)) == () and find_suspects([]) == ()


def between(one: str, other: str) -> Fails:
    return lambda client, server: {client.leaf, server.leaf} == {one, other}


def crossing(leaf: str) -> Fails:
    return lambda client, server: client.leaf != server.leaf and leaf in (client.leaf, server.leaf)


@pytest.mark.parametrize(
    ("fails", "named"),
    [
        (at(node="node-2", hca="mlx5_1"), ("hca", "node-2 mlx5_1")),
        (at(node="node-2"), ("node", "node-2")),
        (at(leaf="leaf-1-0"), ("leaf", "leaf-1-0")),
        (crossing("leaf-1-0"), ("uplinks", "leaf-1-0")),
        (between("leaf-1-0", "leaf-1-2"), ("leaves", "leaf-1-0 <-> leaf-1-2")),
        (lambda _client, server: (server.node, server.rail) == ("node-2", 1), ("server", "node-2 mlx5_1")),
        (lambda client, _server: (client.node, client.rail) == ("node-2", 1), ("client", "node-2 mlx5_1")),
        (
            lambda *ends: {(end.node, end.rail) for end in ends} == {("node-2", 1), ("node-3", 1)},
            ("path", "node-2 mlx5_1 <-> node-3 mlx5_1"),
        ),
        (lambda _client, _server: True, ("fabric", "compute")),
    ],
)
def test_one_fault_is_named(fails: Fails, named: tuple[str, str]) -> None:
    assert found(fails, nodes=12) == [{named}]


def test_two_faults_at_once_are_two_suspects() -> None:
    fails = either(at(node="node-2"), at(node="node-7", hca="mlx5_3"))
    assert found(fails) == [{("node", "node-2")}, {("hca", "node-7 mlx5_3")}]


def test_two_bad_hcas_of_a_node_are_not_a_bad_node() -> None:
    fails = either(at(node="node-2", hca="mlx5_0"), at(node="node-2", hca="mlx5_1"))
    assert found(fails) == [{("hca", "node-2 mlx5_0")}, {("hca", "node-2 mlx5_1")}]


def test_a_pair_between_two_bad_hcas_is_explained_once() -> None:
    first, second = find_suspects(trials(either(at(node="node-2", hca="mlx5_0"), at(node="node-3", hca="mlx5_0"))))
    assert (len(first.explained), len(second.explained)) == (14, 12)
    assert (second.failed, second.trials) == (14, 14)


def test_an_hca_that_loses_now_and_then_is_named_all_the_same() -> None:
    chance = random.Random(1)
    bad = at(node="node-2", hca="mlx5_1")
    (suspect,) = find_suspects(trials(lambda *ends: bad(*ends) and chance.random() < 0.4, nodes=16))
    assert suspect.elements == (Element("hca", "node-2 mlx5_1"),) and 0 < suspect.failed < suspect.trials == 30


def test_two_nodes_cannot_tell_the_ends_apart() -> None:
    assert found(at(node="node-0", hca="mlx5_1"), nodes=2) == [
        {("hca", "node-0 mlx5_1"), ("hca", "node-1 mlx5_1"), ("leaf", "leaf-1-0")}
    ]


def test_two_nodes_tell_a_server_from_a_link() -> None:
    fails = either(lambda _client, server: (server.node, server.rail) == ("node-1", 2))
    assert found(fails, nodes=2) == [{("client", "node-0 mlx5_2"), ("server", "node-1 mlx5_2")}]


def test_what_is_spread_evenly_has_no_suspect() -> None:
    chance = random.Random(2)
    made = find_suspects(trials(lambda *_ends: chance.random() < 0.1, nodes=16))
    assert made[-1].elements == () and len(made) <= MOST_SUSPECTS + 1
    assert all(element.kind == "path" for suspect in made for element in suspect.elements)


@pytest.mark.parametrize("seed", range(3))
def test_what_passes_more_often_than_the_rest_is_not_suspected(seed: int) -> None:
    chance = random.Random(seed)
    good = at(node="node-2")
    made = find_suspects(trials(lambda *ends: chance.random() < (0.3 if good(*ends) else 0.9), nodes=12, rails=1))
    assert made
    assert not [
        element for suspect in made for element in suspect.elements if element.name in ("node-2", "node-2 mlx5_0")
    ]


def test_a_node_with_one_hca_is_named_by_it() -> None:
    assert found(at(node="node-2"), rails=1) == [{("hca", "node-2 mlx5_0")}]
    assert found(lambda *_ends: True, nodes=2, rails=1) == [
        {("hca", "node-0 mlx5_0"), ("hca", "node-1 mlx5_0"), ("leaf", "leaf-0-0"), ("fabric", "compute")}
    ]


def test_an_hca_that_was_tried_in_one_role_only_is_named_without_it() -> None:
    ends = fabric(3, 1)
    made = find_suspects(
        [make_trial("compute", one, other, other is not ends[2]) for one, other in itertools.combinations(ends, 2)]
    )
    assert [suspect.elements for suspect in made] == [(Element("hca", "node-2 mlx5_0"),)]


def test_without_a_topology_no_leaf_is_suspected() -> None:
    ends = [Place(f"node-{node}", "mlx5_0", 0) for node in range(3)]
    made = find_suspects(
        [make_trial("compute", client, server, False) for client, server in itertools.permutations(ends, 2)]
    )
    assert [element.kind for suspect in made for element in suspect.elements] == ["fabric"]


def test_more_faults_than_can_be_told_are_counted() -> None:
    bad = [f"node-{number}" for number in range(0, 40, 2)]
    *named, rest = find_suspects(trials(lambda *ends: any(end.node in bad for end in ends), nodes=60, rails=2), most=3)
    assert [suspect.elements[0].kind for suspect in named] == ["node"] * 3
    assert rest.elements == () and rest.failed == len(rest.explained)


@given(some.sets(some.tuples(some.integers(0, 4), some.integers(0, 4), some.integers(0, 1))))
def test_every_failed_trial_is_explained_by_exactly_one_suspect(failing: set[tuple[int, int, int]]) -> None:
    names = {(f"node-{client}", f"node-{server}", rail) for client, server, rail in failing}
    tried = trials(lambda client, server: (client.node, server.node, client.rail) in names, nodes=5, rails=2)
    made = find_suspects(tried)
    explained = [item for suspect in made for item in suspect.explained]
    assert sorted(explained) == sorted(item for item in tried if not item.passed)
    for suspect in made:
        assert 0 < len(suspect.explained) <= suspect.failed <= suspect.trials
        assert all(element in item.elements for element in suspect.elements for item in suspect.explained)


def tree(uplinks: int) -> Topology:
    """Two leaves that have no switch in common: each is linked to a spine of its own."""
    nodes = tuple(
        FabricNode("Switch", f"0x{number}", name, 65)
        for number, name in enumerate(("leaf-a", "leaf-b", "spine-a", "spine-b"))
    )
    ends = [(f"0x{side}", f"0x{side + 2}", port) for side in range(2) for port in range(1, uplinks + 1)]
    return Topology(
        nodes,
        tuple(
            Link(LinkEnd("Switch", leaf, port), LinkEnd("Switch", spine, 30 + port), 4, "NDR")
            for leaf, spine, port in ends
        ),
    )


def test_links_are_named_with_both_their_ports() -> None:
    assert (
        links_of(Element("uplinks", "leaf-a"), tree(2))
        == "leaf-a port 1 - spine-a port 31, leaf-a port 2 - spine-a port 32"
    )


def test_of_many_links_some_are_named() -> None:
    assert links_of(Element("uplinks", "leaf-a"), tree(20)).endswith(" and 12 more")


def test_leaves_without_a_common_switch_accuse_the_uplinks_of_both() -> None:
    said = links_of(Element("leaves", "leaf-a <-> leaf-b"), tree(1))
    assert said == "leaf-a port 1 - spine-a port 31, leaf-b port 1 - spine-b port 31"


@pytest.mark.parametrize(
    ("element", "seen"),
    [
        (Element("leaf", "leaf-a"), tree(1)),
        (Element("uplinks", "leaf-a"), None),
        (Element("uplinks", "a <-> b"), tree(1)),
    ],
)
def test_links_that_are_not_known_are_not_made_up(element: Element, seen: typing.Optional[Topology]) -> None:
    assert links_of(element, seen) == ""


def test_a_link_between_switches_that_the_topology_does_not_describe_is_called_by_its_guids() -> None:
    bare = Link(LinkEnd("Switch", "0xaa", 1, 1), LinkEnd("Switch", "0xbb", 2, 2), 4, "NDR")
    uplink = Link(LinkEnd("Switch", "0x1", 40, 3), LinkEnd("Switch", "0xaa", 3, 1), 4, "NDR")
    topology = Topology((FabricNode("Switch", "0x1", "leaf-1", 64, 3),), (bare, uplink), 0)
    assert links_of(Element("uplinks", "leaf-1"), topology) == "leaf-1 port 40 - 0xaa port 3"
    assert links_of(Element("uplinks", "0xbb"), topology) == "0xbb port 2 - 0xaa port 1"
