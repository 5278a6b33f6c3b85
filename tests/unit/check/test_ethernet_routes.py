# SPDX-License-Identifier: GPL-3.0-or-later

"""From what nodes hear by LLDP to the ways between their ports."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import (
    Membership,
    resolve_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.paths.routes import find_paths
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.ethernet import (
    report_ports_without_lldp,
    report_uncrossed_leaves,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import ObservedNeighbours, SwitchPort
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.fat_tree import fat_tree
from tests.unit import roce_fabric as world

ROCE: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1},
    "virtual_functions": 4,
    "resource_name": "roce",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}
(FABRIC,) = parse_intent([ROCE]).fabrics


def members(hcas: typing.Mapping[str, ObservedHcas]) -> Membership:
    nodes: dict[str, NodeHcas] = {name: item.value for name, item in hcas.items() if item.value is not None}
    return resolve_members(FABRIC, nodes, {})


def made(
    seen: world.Fabric, only: typing.Optional[typing.Container[tuple[int, str]]] = None, fabric: Fabric = FABRIC
) -> tuple[typing.Optional[PathTable], str]:
    return find_paths(fabric, members(seen.hcas), {}, only, seen.neighbours)


def of(seen: world.Fabric) -> PathTable:
    ways, why = made(seen)
    assert ways is not None, why
    return ways


def without(seen: world.Fabric, changes: dict[str, typing.Optional[ObservedNeighbours]]) -> world.Fabric:
    known = {name: changes.get(name, item) for name, item in seen.neighbours.items()}
    return seen._replace(neighbours={name: item for name, item in known.items() if item is not None})


def test_leaves_are_the_switches_that_ports_hear_and_cables_have_their_names_and_rates() -> None:
    ways = of(world.fabric(4, 8))
    assert sorted(ways.name_of(leaf) for leaf in ways.leaves) == [f"leaf-{number}" for number in range(4)]
    assert (
        [len(ends) for ends in ways.leaves.values()] == [8] * 4
        and len(ways.ends) == 32
        and not any(cable.unheard for cable in ways.cables.values())
    )
    inside, across = ways.test(0, "node-1", "node-3"), ways.test(0, "node-1", "node-12")
    assert inside is not None and across is not None
    assert [ways.name(number) for number in ways.way(*inside) or ()] == [
        "node-1 rail 0 to leaf-0 port Ethernet1/1",
        "leaf-0 port Ethernet1/3 to node-3 rail 0",
    ]
    assert [ways.name(number) for number in ways.way(*across) or ()] == [
        "node-1 rail 0 to leaf-0 port Ethernet1/1",
        "from leaf-0 to leaf-1, over an unknown link",
        "leaf-1 port Ethernet1/4 to node-12 rail 0",
    ]
    assert {ways.directions[number].gbps for number in range(ways.real)} == {400.0}


def test_each_flow_has_a_link_of_its_own_between_leaves() -> None:
    ways = of(world.fabric(2, 4))
    one, other = (
        ways.way(*(ways.test(0, *pair) or (0, 0))) or () for pair in (("node-1", "node-5"), ("node-2", "node-6"))
    )
    assert one[1] != other[1] and ways.directions[one[1]] == ways.directions[other[1]]
    assert list(ways.over(one[1])) == [ways.test(0, "node-1", "node-5")]
    assert ways.way(*(ways.test(0, "node-1", "node-5") or (0, 0))) == one


def test_two_switches_of_one_name_are_two_and_called_by_their_chassis() -> None:
    seen = world.fabric(2, 4)
    same = {
        f"node-{number}": world.neighbours(world.heard("9c:05:91:00:00:07", f"Ethernet1/{number}", "leaf-0"))
        for number in range(5, 9)
    }
    ways = of(without(seen, {**same}))
    assert sorted(ways.name_of(leaf) for leaf in ways.leaves) == [
        "leaf-0 (9c:05:91:00:00:00)",
        "leaf-0 (9c:05:91:00:00:07)",
    ]
    test = ways.test(0, "node-1", "node-5")
    assert test is not None and len(ways.way(*test) or ()) == 3


def test_two_switches_of_one_chassis_are_two_by_their_names() -> None:
    seen = world.fabric(2, 2)
    twin = {
        f"node-{number}": world.neighbours(world.heard("9c:05:91:00:00:00", f"Ethernet1/{number}", "leaf-1"))
        for number in (3, 4)
    }
    assert sorted(map(len, of(without(seen, {**twin})).leaves.values())) == [2, 2]


SEVERAL = (world.leaf_port(0, 7), world.leaf_port(1, 3))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (world.neighbours(), "ens1 received LLDP from no switch"),
        (
            world.neighbours(errors=("LLDP on ens1: Operation not permitted", "LLDP on ens9: no")),
            "ens1 received LLDP from no switch (LLDP on ens1: Operation not permitted)",
        ),
        (
            world.neighbours(*SEVERAL),
            (
                "ens1 received LLDP from leaf-0 port Ethernet1/8, leaf-1 port Ethernet1/4, which contradict each other:"
                " a bridge or a switch without LLDP is in between, or another device on the link sends LLDP"
            ),
        ),
        (
            ObservedNeighbours(error="unreachable: no route to host"),
            "LLDP was not read on the node: unreachable: no route to host",
        ),
        (None, "LLDP was not read on the node: no data from the node"),
    ],
)
def test_a_port_that_does_not_tell_its_switch_is_named_and_measured(
    what: typing.Optional[ObservedNeighbours], words: str
) -> None:
    ways = of(without(world.fabric(2, 4), {"node-8": what}))
    seen = without(world.fabric(2, 4), {"node-8": what})
    (finding,) = report_ports_without_lldp("bandwidth.coverage", FABRIC, members(seen.hcas), seen.neighbours, True)
    assert (
        finding.status == "warn"
        and finding.measured == "switch unknown for 1 of 8 ports"
        and f"node-8 rail 0: {words}" in finding.why
    )
    assert "LLDP" in finding.remedy and "tcpdump" in finding.remedy
    test = ways.test(0, "node-8", "node-7")
    assert test is not None and [ways.name(number) for number in ways.way(*test) or ()][:2] == [
        "node-8 rail 0 to the switch of node-8 rail 0",
        "from the switch of node-8 rail 0 to leaf-1, over an unknown link",
    ]


def test_who_hears_many_switches_of_long_names_is_told_in_a_line() -> None:
    many = tuple(
        world.heard(f"9c:05:91:00:00:{number:02x}", "p" * 255, f"leaf-{number:02}-{'n' * 247}") for number in range(64)
    )
    seen = without(world.fabric(2, 4), {"node-8": world.neighbours(*many)})
    (finding,) = report_ports_without_lldp("bandwidth.coverage", FABRIC, members(seen.hcas), seen.neighbours, True)
    assert (
        finding.status == "warn"
        and "ens1 received LLDP from leaf-00-n" in finding.why
        and "leaf-03-n" in finding.why
        and "leaf-04-n" not in finding.why
    )
    assert (
        "n... (255 characters) port p" in finding.why
        and "and 60 more, which contradict each other: a bridge or a switch without LLDP is in between" in finding.why
    )
    assert len(finding.why) < 1500 and "tcpdump" in finding.remedy


def test_what_a_node_says_of_its_sockets_is_cut() -> None:
    seen = without(world.fabric(2, 4), {"node-8": world.neighbours(errors=(f"LLDP on ens1: {'e' * 100_000}",))})
    (finding,) = report_ports_without_lldp("bandwidth.coverage", FABRIC, members(seen.hcas), seen.neighbours, True)
    assert "ens1 received LLDP from no switch (LLDP on ens1: eee" in finding.why and len(finding.why) < 1000
    seen = without(world.fabric(2, 4), {"node-8": ObservedNeighbours(error="e" * 100_000)})
    (finding,) = report_ports_without_lldp("bandwidth.coverage", FABRIC, members(seen.hcas), seen.neighbours, True)
    assert "LLDP was not read on the node: eee" in finding.why and len(finding.why) < 1000


def test_who_hears_all_their_switches_is_not_named() -> None:
    seen = world.fabric(2, 4)
    assert report_ports_without_lldp("bandwidth.coverage", FABRIC, members(seen.hcas), seen.neighbours, True) == []


def test_a_bridge_that_passes_frames_on_shows_one_port_to_two() -> None:
    ways = of(without(world.fabric(2, 4), {"node-2": world.neighbours(world.leaf_port(0, 0))}))
    assert {end.node for end in ways.ends if ways.cables[end.guid].unheard} == {"node-1", "node-2"}
    assert "2 ports received LLDP from leaf-0 port Ethernet1/1: a bridge" in ways.cables["node-1 ens1"].unheard


def test_frames_of_one_port_that_differ_in_their_vlan_are_of_one_port() -> None:
    port = world.leaf_port(0, 0)
    twice = world.neighbours(port, SwitchPort(port.chassis, port.port, port.system, 7))
    assert not of(without(world.fabric(2, 4), {"node-1": twice})).cables["node-1 ens1"].unheard


def test_a_port_of_a_bond_takes_either_cable() -> None:
    seen = world.fabric(2, 4)
    ways = of(seen._replace(hcas={**seen.hcas, "node-3": world.node(bond="bond0")}))
    assert (
        ways.cables["node-3 ens1"].unheard
        == "ens1 is part of bond0, and the cable of the bond that a flow takes is unknown"
    )
    ways_, why = made(seen._replace(hcas={name: world.node(bond="bond0") for name in seen.hcas}))
    assert ways_ is None and why.startswith("LLDP shows the switch for 0 of 8 ports (ens1 is part of bond0")


def test_without_lldp_there_are_no_ways_and_the_words_say_how_to_get_them() -> None:
    seen = world.fabric(2, 4)
    silent = seen._replace(neighbours={name: world.neighbours() for name in seen.neighbours})
    ways, why = made(silent)
    assert ways is None and why.startswith(
        "LLDP shows the switch for 0 of 8 ports (ens1 received LLDP from no switch). Enable LLDP on"
    )
    ways, why = made(seen._replace(neighbours={}))
    assert ways is None and why == "this run did not read which switches the ports are cabled to (LLDP)"
    ways, why = made(seen, fabric=parse_intent([{**ROCE, "rdma": False}]).fabrics[0])
    assert ways is None and why.startswith("Ethernet switches choose paths by their own hash")


def test_where_fewer_than_half_of_the_ports_tell_their_switch_there_are_no_ways() -> None:
    seen = world.fabric(2, 4)
    ways, why = made(without(seen, {f"node-{number}": None for number in range(4, 9)}))
    assert ways is None and why.startswith("LLDP shows the switch for 3 of 8 ports")
    assert made(without(seen, {f"node-{number}": None for number in range(5, 9)}))[0] is not None


def test_only_ports_with_a_pod_take_part() -> None:
    ways, _why = made(world.fabric(2, 4), only={(0, f"node-{number}") for number in range(1, 7)})
    assert ways is not None and [end.node for end in ways.ends] == [f"node-{number}" for number in range(1, 7)]


def test_leaves_between_which_no_test_ran_are_named() -> None:
    ways = of(world.fabric(3, 2))
    tests = [test for pair in (("node-1", "node-3"), ("node-6", "node-4")) for test in [ways.test(0, *pair)] if test]
    (finding,) = report_uncrossed_leaves(FABRIC, ways, tests)
    assert (finding.subject, finding.status) == (f"{FABRIC.name} leaves", "warn")
    assert finding.measured == "2 of 3 pairs of leaves exchanged data"
    assert "between these leaves: leaf-0 and leaf-2." in finding.why
    further = ways.test(0, "node-2", "node-5")
    assert further is not None and report_uncrossed_leaves(FABRIC, ways, [*tests, further]) == []


def test_leaves_of_infiniband_are_compared_by_their_links_alone() -> None:
    assert report_uncrossed_leaves(FABRIC, fat_tree(3, 2, 2, spread="adaptive routing is on"), []) == []
