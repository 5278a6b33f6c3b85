# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage fabric at its edges: torn answers, ties, thresholds, and several things at once. Each must say
what it says alone."""

from __future__ import annotations

import dataclasses
import itertools
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.names import Names
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
    UnreadPort,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    LostManager,
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SlowPort,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.check.test_check_fabric import (
    LEAF,
    both,
    cabled,
    counted,
    every,
    fabrics,
    one,
    recabled,
    seen,
    with_storage,
)
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

Findings = tuple[Finding, ...]
MUTE = {
    name: SeenSubnet(name, 1, error="Failed to open")
    for name in ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5")
}


def two(first: typing.Any, second: typing.Any) -> dict[str, typing.Any]:
    return {"worker-1": first, "worker-2": second}


def of(findings: Findings, check: str) -> dict[str, str]:
    """The status of each subject of a check."""
    found = [finding for finding in findings if finding.check == check]
    assert len({finding.subject for finding in found}) == len(found)
    return {finding.subject: finding.status for finding in found}


# answers


@pytest.mark.parametrize(
    ("error", "torn"), [("did not end within 60 s", False), ("did not end within 60 s", True), (None, False)]
)
def test_a_node_without_a_whole_answer_is_unknown_and_has_no_hcas(error: typing.Optional[str], torn: bool) -> None:
    findings = fabrics(nodes=two(ObservedHcas(world.node(1)), ObservedHcas(world.node(2) if torn else None, error)))
    assert of(findings, "fabric.node") == two("pass", "unknown")
    assert of(findings, "fabric.hcas") == {"worker-1 compute": "pass", "worker-1 storage": "pass"}
    findings = fabrics(
        subnets=two(ObservedSubnets(world.subnets()), ObservedSubnets(world.subnets() if torn else None, error))
    )
    assert of(findings, "fabric.node") == two("pass", "unknown")
    assert one(findings, "fabric.hcas", "worker-2 compute").status == "unknown"


def test_a_node_without_a_topology_says_nothing_against_those_of_others() -> None:
    for nothing in (ObservedTopologies(error="ibnetdiscover did not end"), ObservedTopologies()):
        findings = fabrics(topologies=two(ObservedTopologies(world.seen_topologies()), nothing))
        assert {finding.status for finding in findings} == {"pass"}


def test_a_topology_of_a_torn_answer_tells_of_no_second_master() -> None:
    """The ports are split between two masters; the only topology that joins them is half an answer."""
    rival = dataclasses.replace(world.MASTERS[1], guid="0x00000000000000bb")
    split = both(mlx5_1=SeenSubnet("mlx5_1", 1, rival), mlx5_5=SeenSubnet("mlx5_5", 1, rival))
    whole, torn = (ObservedTopologies(world.seen_topologies(), error) for error in (None, "the connection broke"))
    assert one(fabrics(subnets=split, topologies={"worker-1": whole}), "fabric.one_master").status == "fail"
    assert one(fabrics(subnets=split, topologies={"worker-1": torn}), "fabric.one_master").status == "unknown"


def test_a_fabric_without_hcas_hides_none_of_those_behind_it() -> None:
    findings = fabrics(world.intent(world.fabric("baseline", "pod_network"), world.fabric()))
    assert of(findings, "fabric.membership") == {"baseline": "pass", "compute": "pass"}


# who is there


def test_ports_without_a_link_are_missing_and_not_unknown() -> None:
    down = {name: dataclasses.replace(item, error="the port is DOWN", linked=False) for name, item in MUTE.items()}
    assert one(fabrics(subnets=both(**down)), "fabric.membership", "compute").status == "fail"


def test_one_port_that_was_asked_in_vain_is_more_than_none() -> None:
    asked = {**MUTE, "mlx5_0": SeenSubnet("mlx5_0", 1, error="query", silent=True)}
    assert one(fabrics(subnets=both(**asked)), "fabric.membership", "compute").status == "fail"
    assert one(fabrics(subnets=both(**MUTE)), "fabric.membership", "compute").status == "unknown"


def test_an_ethernet_fabric_needs_no_port_that_can_be_asked() -> None:
    findings = fabrics(world.intent(world.storage(hcas_per_node=2)))
    assert of(findings, "fabric.hcas") == {"worker-1 storage": "fail", "worker-2 storage": "fail"}


def test_each_node_with_a_port_that_could_not_be_asked_is_named() -> None:
    """Of each node one of four: with it there are as many as the intent says."""
    findings = fabrics(
        nodes={f"worker-{number}": ObservedHcas(world.node(number)) for number in (1, 2, 3)},
        subnets={
            **{f"worker-{number}": ObservedSubnets(world.subnets(mlx5_0=MUTE["mlx5_0"])) for number in (1, 2)},
            "worker-3": ObservedSubnets(world.subnets()),
        },
    )
    assert of(findings, "fabric.hcas") == {
        **{f"worker-{number} storage": "pass" for number in (1, 2, 3)},
        **{f"worker-{number} compute": "unknown" for number in (1, 2)},
        "worker-3 compute": "pass",
    }


def test_a_listed_address_whose_port_sees_no_manager_contradicts_no_list() -> None:
    listed = tuple(item.pci.address for item in world.node(1).hcas[:2] if item.pci)
    down = world.subnets(mlx5_1=SeenSubnet("mlx5_1", 1, error="the port is DOWN", linked=False))
    findings = fabrics(
        world.intent(world.fabric(pci=listed, hcas_per_node=2)),
        subnets=two(ObservedSubnets(down), ObservedSubnets(world.subnets())),
    )
    assert (
        of(findings, "fabric.select") == {"compute": "pass"}
        and one(findings, "fabric.hcas", "worker-1").status == "fail"
    )


def with_two_ports(second: SeenSubnet, first: SeenSubnet, **port: typing.Any) -> Findings:
    """HCA mlx5_0 of worker-2 has a second port; what each of the two sees."""
    two_ports = world.hca(2, 0)
    two_ports = dataclasses.replace(
        two_ports,
        ports=(
            two_ports.ports[0],
            dataclasses.replace(two_ports.ports[0], number=2, guid="0x00000000000000cc", **port),
        ),
    )
    seen_by = (*world.subnets(mlx5_0=first), second)
    return fabrics(
        nodes=two(ObservedHcas(world.node(1)), ObservedHcas(world.node(2, mlx5_0=two_ports))),
        subnets=two(ObservedSubnets(world.subnets()), ObservedSubnets(seen_by)),
    )


def test_an_hca_with_two_ports_is_as_well_known_as_the_better_of_them() -> None:
    elsewhere, mute = SeenSubnet("mlx5_0", 1, world.MASTERS[2]), MUTE["mlx5_0"]
    down = SeenSubnet("mlx5_0", 1, error="the port is DOWN", linked=False)
    for first, second, status in (
        (elsewhere, mute, "fail"),
        (mute, down, "unknown"),
        (down, mute, "unknown"),
        (down, down, "fail"),
    ):
        findings = with_two_ports(dataclasses.replace(second, port=2), first)
        assert of(findings, "fabric.hcas")["worker-2 compute"] == status, (first, second)


def test_of_a_node_without_an_answer_an_hca_with_one_link_of_two_was_not_asked() -> None:
    nodes = dict.fromkeys(("worker-1", "worker-2"), ObservedHcas(world.node(1)))
    dual = {
        item.name: dataclasses.replace(
            item,
            ports=(*item.ports, dataclasses.replace(item.ports[0], number=2, state="DOWN", physical_state="Polling")),
        )
        for item in world.node(2).hcas
        if item.ports
    }
    nodes["worker-2"] = ObservedHcas(world.node(2, **dual))
    finding = one(
        fabrics(nodes=nodes, subnets={"worker-1": ObservedSubnets(world.subnets())}), "fabric.hcas", "worker-2 compute"
    )
    assert (finding.status, finding.measured) == ("unknown", "0 HCAs; 6 HCAs not queried")


def test_a_topology_whose_links_end_at_no_node_of_it_is_not_whole() -> None:
    assert of(fabrics(), "fabric.topology") == {"compute": "pass"}
    topology = world.topology()
    lost = dataclasses.replace(topology, nodes=topology.nodes[:-1])
    other = dataclasses.replace(
        topology, nodes=(*topology.nodes[:-1], dataclasses.replace(topology.nodes[-1], kind="Router"))
    )
    for torn in (lost, other):
        finding = one(seen(torn), "fabric.topology", "links")
        assert (finding.status, finding.subject, finding.measured) == (
            "unknown",
            "compute links",
            "1 link end at unlisted devices",
        )


def test_a_topology_that_does_not_hang_together_is_no_walk() -> None:
    topology = world.topology()
    island = (
        FabricNode("Switch", "0x0000000000000f01", "leaf-9", 65, 901),
        FabricNode("Ca", "0x0000000000000f02", "other-1 mlx5_0", 1),
    )
    link = Link(
        LinkEnd("Switch", island[0].guid, 1, 901), LinkEnd("Ca", island[1].guid, 1, 902, island[1].guid), 4, "NDR"
    )
    finding = one(
        seen(dataclasses.replace(topology, nodes=(*topology.nodes, *island), links=(*topology.links, link))),
        "fabric.topology",
        "links",
    )
    assert (finding.status, finding.subject, finding.measured) == (
        "unknown",
        "compute links",
        "2 separate parts",
    )
    assert "leaf-9, other-1 mlx5_0" in finding.why


def test_a_port_without_a_guid_is_not_looked_up() -> None:
    findings = fabrics(
        nodes=two(ObservedHcas(world.node(1)), ObservedHcas(world.node(2, mlx5_0=world.hca(2, 0, guid=None))))
    )
    assert of(findings, "fabric.hca") == {
        "worker-2 mlx5_0": "unknown",
        "worker-1 compute": "pass",
        "worker-2 compute": "pass",
    }


def test_an_hca_is_known_by_either_of_its_guids() -> None:
    """Its node GUID was not read: then that of its port tells. One whose port GUID nobody shows is not known by
    that."""
    nodes = two(
        ObservedHcas(world.node(1)),
        ObservedHcas(world.node(2, mlx5_0=dataclasses.replace(world.hca(2, 0), node_guid=None))),
    )
    assert of(fabrics(nodes=nodes), "fabric.foreign") == {"compute": "pass"}
    stranger = FabricNode("Ca", "0x00000000000000aa", "worker-2 mlx5_6", 1)
    topology = world.topology()
    link = dataclasses.replace(
        topology.links[0], a=dataclasses.replace(topology.links[0].a, port=40), b=LinkEnd("Ca", stranger.guid, 1, 99)
    )
    assert of(seen(Topology((*topology.nodes, stranger), (*topology.links, link))), "fabric.foreign") == {
        f"worker-2 {stranger.guid}": "warn"
    }


# subnet managers


def test_what_the_ports_see_tells_of_the_masters_where_no_topology_does() -> None:
    assert of(fabrics(topologies={}), "fabric.one_master") == {"compute": "pass"}
    rival = dataclasses.replace(world.MASTERS[1], guid="0x00000000000000bb")
    split = both(mlx5_1=SeenSubnet("mlx5_1", 1, rival), mlx5_5=SeenSubnet("mlx5_5", 1, rival))
    named = world.intent(world.fabric(subnet_manager=(world.MASTERS[1].guid, rival.guid)))
    assert of(fabrics(named, subnets=split, topologies={}), "fabric.one_master") == {"compute": "fail"}


def test_a_port_whose_guid_was_not_read_is_in_no_topology() -> None:
    """It sees the manager of another fabric, which rules nothing here."""
    nodes = two(ObservedHcas(world.node(1, mlx5_2=world.hca(1, 2, guid=None))), ObservedHcas(world.node(2)))
    assert of(fabrics(nodes=nodes), "fabric.one_master") == {"compute": "pass"}


@pytest.mark.parametrize(
    ("later", "refreshed", "status"),
    [
        (100, False, "fail"),
        (100, None, "fail"),
        (101, False, "unknown"),
        (101, None, "unknown"),
        (120, None, "unknown"),
        (99, False, "warn"),
        (101, True, "pass"),
    ],
)
def test_a_count_is_proof_of_a_sweep_only_where_nobody_else_can_raise_it(
    later: int, refreshed: typing.Optional[bool], status: str
) -> None:
    assert (
        one(seen(managers=world.managers(activity_later=later, others_refreshed=refreshed)), "fabric.activity").status
        == status
    )


def test_a_count_of_another_manager_than_the_fabrics_is_unknown() -> None:
    for other in (world.MASTERS[2].guid, None):
        assert one(seen(managers=world.managers(master=other)), "fabric.activity").status == "unknown"


def test_a_count_that_was_read_once_is_unknown() -> None:
    assert one(seen(managers=world.managers(activity_first=None)), "fabric.activity").status == "unknown"


def test_of_a_fabric_that_is_open_no_manager_is_judged() -> None:
    """Both fabrics have three HCAs on each node."""
    split = both(mlx5_1=SeenSubnet("mlx5_1", 1, world.MASTERS[2]))
    findings = fabrics(world.intent(world.fabric(hcas_per_node=3)), subnets=split, topologies={})
    assert of(findings, "fabric.membership") == {"compute": "fail"} and of(findings, "fabric.one_master") == {
        "compute": "unknown"
    }


LOST = SeenSubnet("mlx5_1", 1, error="query", silent=True, lost=LostManager(7))


def test_of_several_answers_that_alone_of_the_port_that_was_cut_off_is_an_island() -> None:
    ca = FabricNode("Ca", plain_guid(1, 1), "worker-1 mlx5_1", 1)
    rest = world.topology(1, without=[plain_guid(1, 1, 1), plain_guid(2, 1, 1)])
    alone, blind = (
        SeenTopology("mlx5_1", 1, Topology((ca,), ())),
        SeenTopology("mlx5_4", 1, error="ibnetdiscover ended with 1"),
    )
    facts = two(
        ObservedTopologies((*world.seen_topologies(rest), alone, blind)),
        ObservedTopologies((dataclasses.replace(blind, rdma_device="mlx5_1"),)),
    )
    assert of(fabrics(subnets=both(mlx5_1=LOST), topologies=facts), "fabric.island") == {"worker-1 mlx5_1": "fail"}


# rails and links


def cabled_as(
    nodes: int, leaves: typing.Mapping[int, typing.Sequence[typing.Optional[int]]], **wishes: typing.Any
) -> Findings:
    """Rail k of each node on leaf k, but of the nodes that are named on those leaves, and on none where it is None."""
    world_nodes, subnets, topology = recabled(nodes, ())
    place = {plain_guid(number, index): (number, rail) for number in leaves for rail, index in enumerate((0, 1, 4, 5))}
    links = []
    for link in topology.links:
        number, rail = place.get(link.b.guid, (0, 0))
        leaf = leaves[number][rail] if number else rail
        if number and leaf is not None:
            # a port has one cable
            port = link.a.port if leaf == rail else link.a.port + 100 * (rail + 1)
            links.append(
                dataclasses.replace(
                    link, a=LinkEnd("Switch", topology.nodes[leaf].guid, port, topology.nodes[leaf].lid)
                )
            )
        elif not number:
            links.append(link)
    topologies = {
        "worker-1": ObservedTopologies(world.seen_topologies(dataclasses.replace(topology, links=tuple(links))))
    }
    wanted = dataclasses.replace(world.fabric(), **wishes)
    return fabrics(world.intent(wanted), nodes=world_nodes, subnets=subnets, topologies=topologies)


#: one HCA on a wrong leaf: twelve ways
ASTRAY = [
    tuple(leaf if rail == astray else rail for rail in range(4))
    for astray in range(4)
    for leaf in range(4)
    if leaf != astray
]


@pytest.mark.parametrize(("nodes", "odd", "together"), [(20, 9, True), (20, 8, False), (36, 9, False), (40, 9, False)])
def test_a_fabric_without_rails_is_told_from_one_with_many_wrong_cables(nodes: int, odd: int, together: bool) -> None:
    """More than eight ways of cabling, of more than a quarter of the nodes."""
    found = of(cabled_as(nodes, {nodes - place: ASTRAY[place] for place in range(odd)}), "fabric.rails")
    assert found == (
        {"compute": "unknown"} if together else {f"worker-{nodes - place} compute": "fail" for place in range(odd)}
    )


@pytest.mark.parametrize("odd", [1, 8, 9, 12])
def test_a_fabric_that_is_to_have_rails_fails_however_many_cables_are_wrong(odd: int) -> None:
    found = of(cabled_as(20, {20 - place: ASTRAY[place] for place in range(odd)}, rails="leaf"), "fabric.rails")
    assert found == {f"worker-{20 - place} compute": "fail" for place in range(odd)}


@pytest.mark.parametrize("swapped", [2, 3, 5, 8])
def test_each_node_with_swapped_cables_is_named_whoever_else_has_some(swapped: int) -> None:
    """Its cabling may be most like that of another such node, which as many nodes have."""
    ways = [way for way in itertools.permutations(range(4)) if way != (0, 1, 2, 3)]
    for first in range(len(ways)):
        wrong = {20 - place: ways[(first + 5 * place) % len(ways)] for place in range(swapped)}
        found = of(cabled_as(20, wrong), "fabric.rails")
        assert found == {f"worker-{number} compute": "fail" for number in wrong}, wrong


def test_a_wrong_cabling_of_two_nodes_is_named_beside_one_that_is_more_like_it() -> None:
    found = of(cabled_as(20, {18: (1, 2, 0, 3), 19: (1, 2, 0, 3), 20: (1, 2, 3, 0)}), "fabric.rails")
    assert found == {f"worker-{number} compute": "fail" for number in (18, 19, 20)}


def test_swapped_cables_are_seen_on_a_node_that_lacks_another_one() -> None:
    assert of(cabled_as(4, {3: (1, 0, 2, None)}), "fabric.rails") == {"worker-3 compute": "fail"}


def test_a_cabling_is_compared_with_the_most_similar_one() -> None:
    found = cabled_as(5, {4: (1, 0, 2, 3), 5: (0, 1, 3, 2)})
    assert of(found, "fabric.rails") == {"worker-4 compute": "fail", "worker-5 compute": "fail"}
    # three nodes have all rails elsewhere: more, and less alike
    found = cabled_as(6, {3: (1, 0, 2, 3), 4: (2, 3, 0, 1), 5: (2, 3, 0, 1), 6: (2, 3, 0, 1)})
    assert one(found, "fabric.rails", "worker-3").expected == "rail 0 on leaf-1, rail 1 on leaf-2"


def test_a_node_that_lacks_a_cable_counts_with_those_whose_cabling_it_has() -> None:
    """What it has on the other rails is what most nodes have, so neither is it accused, nor is it open who is right."""
    found = of(cabled_as(6, {1: (0, 1, 2, None), 4: (1, 0, 2, 3), 5: (1, 0, 2, 3)}), "fabric.rails")
    assert found == {"worker-4 compute": "fail", "worker-5 compute": "fail"}
    found = of(cabled_as(4, {1: (0, 1, None, 3), 4: (1, 0, 2, 3)}), "fabric.rails")
    assert found == {"worker-4 compute": "fail"}
    # it tells which of two ways is the usual one
    finding = one(cabled_as(3, {2: (1, 0, 2, 3), 3: (0, None, 2, 3)}), "fabric.rails")
    assert (
        (finding.status, finding.subject) == ("fail", "worker-2 compute")
        and "2 neighboring nodes" in finding.why
        and "worker-1, worker-3" in finding.why
    )
    # where it has both of them it tells nothing
    finding = one(cabled_as(5, {3: (1, 0, 2, 3), 4: (1, 0, 2, 3), 5: (None, None, 2, 3)}), "fabric.rails")
    assert (finding.status, finding.subject) == (
        "fail",
        "compute",
    ) and (
        "The nodes worker-1, worker-2 have the first cabling, and the same number of nodes has the second:"
        " worker-3, worker-4."
    ) in finding.why


def test_a_leaf_on_another_rail_is_no_agreement() -> None:
    """Of worker-3 one HCA is on a leaf that worker-1 has on another rail; nothing that both show is the same."""
    finding = one(
        cabled_as(3, {1: (0, 1, None, None), 2: (2, 0, None, None), 3: (None, None, 1, None)}), "fabric.rails"
    )
    assert (
        (finding.status, finding.subject) == ("fail", "compute")
        and "The nodes worker-1 have the first cabling, and the same number of nodes has the second: worker-2."
        in finding.why
    )


def up(leaf: FabricNode, spine: FabricNode, port: int, speed: str = "NDR") -> Link:
    return Link(
        LinkEnd("Switch", leaf.guid, port, leaf.lid),
        LinkEnd("Switch", spine.guid, 7 * ((leaf.lid or 0) % 100) + port, spine.lid),
        4,
        speed,
    )


def with_uplinks(uplinks: typing.Sequence[tuple[int, int]], **seen_of: typing.Any) -> Findings:
    """The leaves of two nodes with these links, each to a spine; a spine is there from its first link on."""
    spines = [
        FabricNode("Switch", f"0x{0x700 + number:016x}", f"top-{number}", 65, 700 + number) for number in range(4)
    ]

    def change(topology: Topology) -> Topology:
        leaves, hcas = topology.nodes[:4], [node for node in topology.nodes if node.kind == "Ca"]
        links = [link for link in topology.links if link.b.kind == "Ca"]
        links += [up(leaves[leaf], spines[spine], 40 + number) for number, (leaf, spine) in enumerate(uplinks)]
        return Topology((*leaves, *spines, *hcas), tuple(links))

    return cabled(2, change=change, **seen_of)


def test_leaves_are_compared_with_those_that_share_a_spine() -> None:
    apart = [(0, 0), (1, 0), *((leaf, spine) for leaf in (2, 3) for spine in (1, 2))]
    assert of(with_uplinks(apart), "fabric.uplinks") == {"compute": "pass"}
    assert of(with_uplinks([*apart, (1, 0)]), "fabric.uplinks") == {"leaf-1": "fail"}


def test_each_of_several_links_to_one_spine_counts() -> None:
    double = [(leaf, 0) for leaf in range(4) for _link in range(2)]
    assert of(with_uplinks(double), "fabric.uplinks") == {"compute": "pass"}
    missing = one(with_uplinks(double[1:]), "fabric.uplinks")
    assert (missing.status, missing.subject, missing.measured) == ("fail", "leaf-1", "1 link to other switches")


def test_where_leaves_differ_the_most_links_are_usual() -> None:
    uplinks = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    found = {
        finding.subject: finding.expected for finding in with_uplinks(uplinks) if finding.check == "fabric.uplinks"
    }
    assert found["leaf-1"] == "3 links to other switches"


def test_without_a_way_to_know_better_the_fastest_of_two_links_is_usual() -> None:
    def slower(topology: Topology) -> Topology:
        others = [link for link in topology.links if link.b.kind == "Ca"]
        uplinks = [link for link in topology.links if link.b.kind == "Switch"]
        return dataclasses.replace(topology, links=(dataclasses.replace(uplinks[0], speed="HDR"), uplinks[1], *others))

    assert of(cabled(2, change=slower, capabilities=None), "fabric.rate")["leaf-1 port 60 - spine-1 port 1"] == "fail"


def test_links_of_one_rate_pass_whatever_is_known() -> None:
    for capabilities in (None, SeenCapabilities(error="ended with 1"), SeenCapabilities(links=1000)):
        assert of(cabled(2, capabilities=capabilities), "fabric.rate") == {
            "compute": "pass",
            "compute switches": "pass",
        }


def uplinks_of(speed: str, all_of_them: bool = False) -> typing.Callable[[Topology], Topology]:
    """The first link between switches, or each of them, with another speed."""

    def change(topology: Topology) -> Topology:
        first = topology.links[0]
        links = [
            (
                dataclasses.replace(link, speed=speed)
                if link == first or (all_of_them and link.b.kind == "Switch")
                else link
            )
            for link in topology.links
        ]
        return dataclasses.replace(topology, links=tuple(links))

    return change


@pytest.mark.parametrize("end", [("0x0000000000000200", 60), ("0x0000000000000300", 1)])
def test_one_end_tells_that_a_link_between_switches_could_be_more(end: tuple[str, int]) -> None:
    slow = SeenCapabilities((SlowPort(*end, "106.25 Gbps"),), 1000)
    for speed, measured in (("HDR", "200 Gb/s (4X, 50 Gb/s per lane)"), ("????", "width 4x, speed unknown")):
        finding = one(
            cabled(2, change=uplinks_of(speed), capabilities=slow), "fabric.rate", "leaf-1 port 60 - spine-1 port 1"
        )
        assert (finding.status, finding.measured, finding.expected) == (
            "fail",
            measured,
            "100 Gb/s per lane (NDR), the highest that both ports support",
        )


def test_links_of_which_no_speed_is_shown_are_all_unknown() -> None:
    found = of(cabled(2, change=uplinks_of("????", all_of_them=True)), "fabric.rate")
    assert found.pop("compute") == "pass" and set(found.values()) == {"unknown"} and len(found) == 8


def test_a_slow_link_of_others_is_no_business_of_ours() -> None:
    def of_others(topology: Topology) -> Topology:
        leaf, host = (
            FabricNode("Switch", "0x0000000000000900", "leaf-9", 65, 900),
            FabricNode("Ca", "0x0000000000000901", "store-1 mlx5_0", 1),
        )
        spine = topology.links[0].b
        uplink = Link(LinkEnd("Switch", leaf.guid, 60, leaf.lid), dataclasses.replace(spine, port=40), 4, "EDR")
        down = Link(LinkEnd("Switch", leaf.guid, 1, leaf.lid), LinkEnd("Ca", host.guid, 1, 901, host.guid), 4, "EDR")
        return Topology((*topology.nodes, leaf, host), (*topology.links, uplink, down))

    assert of(cabled(2, change=of_others, capabilities=None), "fabric.rate") == {
        "compute": "pass",
        "compute switches": "pass",
    }


@pytest.mark.parametrize(
    ("port", "capabilities", "expected"),
    [
        # a slow link fails, and what is not known is not known: neither passes for the others
        ({"rate_gbps": 200.0}, None, {"worker-2 mlx5_1": "fail"}),
        ({"rate_gbps": None}, SeenCapabilities(links=16), {"worker-2 mlx5_1": "unknown"}),
        # other ports of its node are faster: whether this one is meant to be slower is not known
        ({"rate_gbps": 200.0}, SeenCapabilities(links=16), {"worker-2 mlx5_1": "unknown"}),
    ],
)
def test_links_of_hcas_pass_together_where_none_is_wrong(
    port: dict[str, typing.Any], capabilities: typing.Optional[SeenCapabilities], expected: dict[str, str]
) -> None:
    nodes = two(ObservedHcas(world.node(1)), ObservedHcas(world.node(2, mlx5_1=world.hca(2, 1, **port))))
    assert (
        of(
            fabrics(
                nodes=nodes,
                topologies={"worker-1": ObservedTopologies(world.seen_topologies(capabilities=capabilities))},
            ),
            "fabric.rate",
        )
        == expected
    )


def test_an_hca_that_is_on_no_pci_bus_has_a_rate_all_the_same() -> None:
    nodes = two(
        ObservedHcas(world.node(1)), ObservedHcas(world.node(2, mlx5_1=dataclasses.replace(world.hca(2, 1), pci=None)))
    )
    assert of(fabrics(world.intent(world.fabric()), nodes=nodes), "fabric.rate") == {"compute": "pass"}


# error counters


def growing(first: dict[str, int], later: dict[str, int]) -> str:
    return one(seen(errors=world.errors([counted(**first)], [counted(**later)])), "fabric.errors_growing").status


def test_one_error_a_second_is_what_the_standard_allows() -> None:
    assert growing({}, {"SymbolErrorCounter": 10}) == "warn" and growing({}, {"SymbolErrorCounter": 11}) == "fail"


def test_a_counter_that_was_cleared_meanwhile_began_at_0() -> None:
    assert growing({"LinkDownedCounter": 5}, {"LinkDownedCounter": 1}) == "fail"


def test_counters_that_were_read_once_tell_nothing() -> None:
    for errors in (SeenErrors(ErrorReport((), 65), None, 10.0), SeenErrors(None, ErrorReport((), 65), 10.0)):
        findings = seen(errors=errors)
        assert (of(findings, "fabric.errors"), of(findings, "fabric.errors_growing")) == (
            {"compute": "unknown"},
            {"compute": "unknown"},
        )


def test_a_port_that_did_not_answer_hides_none_behind_it() -> None:
    ours = next(link.b for link in world.topology(1).links if link.b.port_guid == plain_guid(1, 0, 1))
    later = ErrorReport((counted(SymbolErrorCounter=500), PortErrors(LEAF, 2, {"LinkDownedCounter": 1})), 65)
    findings = seen(errors=SeenErrors(ErrorReport((), 65, 1, (UnreadPort(ours.lid or 0, 1),)), later, 10.0))
    assert of(findings, "fabric.errors_growing") == {"MF0;leaf00:MQM9700/U1 port 2": "fail"}


@pytest.mark.parametrize(
    ("counters", "status"),
    [
        ({"SymbolErrorCounter": 10}, "pass"),
        ({"SymbolErrorCounter": 11}, "warn"),
        ({"PortXmitDiscards": 900}, "pass"),
        ({"PortOfTomorrowErrors": 900}, "pass"),
    ],
)
def test_only_errors_of_the_link_count_for_the_past(counters: dict[str, int], status: str) -> None:
    old = [counted(**counters)]
    assert of(seen(errors=world.errors(old, old)), "fabric.errors") == {"compute": status}


def test_of_several_ports_without_an_answer_each_must_be_known_as_anothers() -> None:
    for other, status in ((UnreadPort(91, 1), "warn"), (UnreadPort(777, 1), "unknown")):
        report = ErrorReport((), 65, 2, (UnreadPort(99, 1), other))
        assert (
            one(with_storage(SeenErrors(report, ErrorReport((), 65), 10.0)), "fabric.errors", "compute queries").status
            == status
        )


def test_a_manager_at_a_lid_that_no_topology_shows_is_called_by_it() -> None:
    hung = ManagerPort(777, error="sminfo ended with 255")
    assert of(seen(managers=world.managers(ports=(ManagerPort(1, world.MASTERS[1]), hung))), "fabric.manager") == {
        "compute LID 777": "fail"
    }


def test_two_managers_that_both_stand_by_are_no_master() -> None:
    waiting = tuple(
        ManagerPort(item.lid, dataclasses.replace(item, state="STANDBY"))
        for item in (world.MASTERS[1], world.STANDBYS[1])
    )
    findings = fabrics(
        subnets=every(master=dataclasses.replace(world.MASTERS[1], state="STANDBY")),
        topologies={"worker-1": ObservedTopologies(world.seen_topologies(managers=world.managers(ports=waiting)))},
    )
    assert of(findings, "fabric.one_master") == {"compute": "fail"} and of(findings, "fabric.standby") == {
        "compute": "pass"
    }


def test_a_name_is_of_one_device_and_of_one_port() -> None:
    described = ("leaf-1", "leaf-2", "Quantum", "Quantum", "leaf-1 port 5", "leaf-2 port 1 - leaf-1", "x 0x03", "")
    nodes = tuple(
        FabricNode("Switch" if number < 4 else "Ca", f"0x{number:02}", text, 40)
        for number, text in enumerate(described)
    )
    names = Names(Topology(nodes, ()))
    assert [names.node(node.guid) for node in nodes] == [
        "leaf-1",
        "leaf-2",
        "Quantum 0x02",
        "Quantum 0x03",
        "leaf-1 port 5 0x04",
        "leaf-2 port 1 - leaf-1 0x05",
        "x 0x03 0x06",
        "0x07",
    ]
    ports = [names.port(node.guid, number) for node in nodes for number in range(1, 41)]
    assert len(set(ports)) == len(ports) and "leaf-1 port 5" in ports and "Quantum 0x02 port 7" in ports
