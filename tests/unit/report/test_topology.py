# SPDX-License-Identifier: GPL-3.0-or-later

"""The drawing of a fabric: what stands above what, what findings accuse, and what is folded."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Judged, Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.drawing import render_figure
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.exhibits import FabricChart, collect_charts
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.mentions import Mentions
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.topology import (
    MOST_SWITCHES,
    Drawing,
    Edge,
    make_drawing,
)
from ansible_collections.linerate.rdma.tests.unit.limit import limited
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, records
from ansible_collections.linerate.rdma.tests.unit.report.test_report import Page

SMALL = World(nodes=4, rails=2, on_leaf=2, rounds=3)


def chart(world: World = SMALL) -> FabricChart:
    made = records(dataclasses.replace(world, rounds=1))
    return collect_charts(made.records["fabric"], made.seen)["compute"]


def says(check: str, subject: str, status: str = "fail") -> Judged:
    return Judged(Finding(check, subject, status, "bad", "good", "why", "remedy"))  # type: ignore[arg-type]


def bad(shown: Drawing) -> list[Edge]:
    return [edge for edge in shown.edges if edge.bad]


def marked(shown: Drawing) -> list[str]:
    return [item.name for row in shown.rows for item in row if item.marks]


def test_switches_are_above_the_nodes_and_every_link_counts() -> None:
    shown = make_drawing(chart(), ())
    assert [[item.name for item in row] for row in shown.rows] == [
        ["spine-0-1", "spine-0-2", "spine-1-1", "spine-1-2"],
        ["leaf-0-1", "leaf-0-2", "leaf-1-1", "leaf-1-2"],
        ["node-1", "node-2", "node-3", "node-4"],
    ]
    # 8 HCAs, 4 leaves with 2 cables to each of 2 spines, and a cable from rail to rail
    assert sum(edge.links for edge in shown.edges) == 8 + 16 + 1
    assert {edge.links for edge in shown.edges if edge.rail is None} == {1, 2}
    assert shown.words == "4 nodes, 4 leaves, 4 switches above, 25 links"
    assert marked(shown) == [] and bad(shown) == []


@pytest.mark.parametrize(
    ("judged", "names", "edges"),
    [
        (says("fabric.hcas", "node-2 compute"), ["node-2"], 0),
        (says("bandwidth.suspect", "compute node-2 mlx5_1"), ["node-2"], 1),
        (says("fabric.rate", "leaf-0-1 port 40 - spine-0-1 port 1"), ["spine-0-1", "leaf-0-1"], 1),
        (says("reachability.suspect", "compute uplinks of leaf-1-2"), ["leaf-1-2"], 2),
        (says("reachability.suspect", "compute leaf leaf-1-2"), ["leaf-1-2"], 0),
        # a pair accuses all that lies between its ends, so it points at nothing
        (says("bandwidth.floor", "compute node-1 -> node-2 rail 0"), [], 0),
        (says("fabric.hcas", "node-1 compute", "pass"), [], 0),
        (says("fabric.hcas", "node-12 compute"), [], 0),
    ],
)
def test_what_a_finding_points_at_is_marked(judged: Judged, names: list[str], edges: int) -> None:
    shown = make_drawing(chart(), [judged])
    assert marked(shown) == names and len(bad(shown)) == edges


def test_waived_findings_mark_nothing() -> None:
    item = says("fabric.hcas", "node-2 compute")
    assert marked(make_drawing(chart(), [Judged(item.finding, Waiver("fabric.*", "known"))])) == []


def test_cut_leaf_and_slow_hca_of_a_run_are_marked() -> None:
    made = records(World(nodes=8, rails=2, on_leaf=2, rounds=7, slow=6, cut=(0, 1)))
    shown = make_drawing(
        collect_charts(made.records["fabric"], made.seen)["compute"],
        [item for record in made.records.values() for item in record.judged],
    )
    assert marked(shown) == ["leaf-0-2", "node-6"]
    assert [edge.below for edge in bad(shown) if edge.rail is not None] == ["node-6"]


def test_large_fabric_is_folded_and_what_is_marked_stands_alone() -> None:
    shown = make_drawing(
        chart(World(nodes=72, rails=2, on_leaf=4)),
        [says("bandwidth.suspect", "compute node-07 mlx5_0"), says("fabric.uplinks", "leaf-1-3")],
    )
    assert [[item.name for item in row] for row in shown.rows[1:]] == [
        ["18 switches", "17 switches", "leaf-1-3"],
        ["71 nodes", "node-07"],
    ]
    assert sum(edge.links for edge in shown.edges) == 2 * 72 + 36 * 4 + 1, "folded links are still counted"
    assert len(render_figure(shown)) < 8000


def test_switches_without_a_way_to_a_node_are_drawn() -> None:
    whole = chart()
    alone = Topology(
        whole.topology.nodes, tuple(link for link in whole.topology.links if "Ca" in (link.a.kind, link.b.kind))
    )
    shown = make_drawing(dataclasses.replace(whole, topology=alone), ())
    assert [len(row) for row in shown.rows] == [4, 4, 4]


def test_fabric_without_a_switch_has_its_nodes() -> None:
    empty = make_drawing(dataclasses.replace(chart(), topology=Topology((), ())), ())
    assert [len(row) for row in empty.rows] == [4] and "no switch" in empty.words
    assert "node-1" in render_figure(empty)


@pytest.mark.parametrize(
    ("subject", "name", "expected"),
    [
        ("worker-10 mlx5_0", "worker-1", False),
        ("worker-1 mlx5_0", "worker-1", True),
        ("my-worker-1", "worker-1", False),
        ("leaf [a]", "[a]", True),
        ("anything", "", False),
        (" - ", "-", False),
    ],
)
def test_names_are_found_as_a_whole(subject: str, name: str, expected: bool) -> None:
    assert (name in Mentions([name]).of(subject)) is expected


_PIECES = st.lists(
    st.sampled_from(["a", "b", "a-1", "a-10", "a.b", "MF0;a:b/U1", "[a]", " ", ", ", " - ", "#"]), max_size=6
).map("".join)


@given(_PIECES, st.lists(_PIECES, max_size=6))
def test_names_are_found_as_a_reader_finds_them(subject: str, names: list[str]) -> None:
    def mentions(name: str) -> bool:
        return (
            bool(re.search(r"\w", name)) and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", subject) is not None
        )

    sought = [name.strip() for name in names]
    assert Mentions(sought).of(subject) == {name for name in sought if mentions(name)}


def made_up(switches: int, name: str = "S{:06d}", chained: bool = False) -> FabricChart:
    """A fabric in which a node claims many switches: all on one leaf, or one on the other."""
    whole = chart()
    leaf = next(node for node in whole.topology.nodes if node.description == "leaf-0-1")
    nodes = [
        FabricNode("Switch", f"0x{0xABC << 52 | number:016x}", name.format(number), 64, 5000 + number)
        for number in range(switches)
    ]
    places = [(leaf, node) for node in nodes] if not chained else [*zip([leaf, *nodes], nodes)]
    cables = [
        Link(LinkEnd("Switch", one.guid, 1000 + number, 1), LinkEnd("Switch", other.guid, 1, 2), 4, None)
        for number, (one, other) in enumerate(places)
    ]
    topology = dataclasses.replace(
        whole.topology, nodes=(*whole.topology.nodes, *nodes), links=(*whole.topology.links, *cables)
    )
    return dataclasses.replace(whole, topology=topology)


@pytest.mark.parametrize("name", ["S{:06d}", "S {}", "S"])
def test_findings_about_each_of_many_switches_cost_no_more_than_there_are(name: str) -> None:
    count = MOST_SWITCHES - 8
    judged = [
        says("fabric.rate", f"leaf-0-1 port {1000 + number} - {name.format(number)} port 1")
        for number in range(0, count, 2)
    ]
    with limited("the drawing"):
        shown = make_drawing(made_up(count, name), [*judged, says("fabric.uplinks", "leaf-0-1")])
    assert marked(shown) and sum(edge.links for edge in shown.edges) == 25 + count
    leaf = next(item for row in shown.rows for item in row if item.name == "leaf-0-1")
    assert leaf.marks[0] == "fabric.rate: bad; leaf-0-1 port 1000 - " + name.format(0) + " port 1"
    assert leaf.marks[8:] == (f"{count // 2 + 1 - 8} more findings in the list of findings",)
    assert {edge.below for edge in bad(shown)} == {leaf.key} and sum(edge.links for edge in bad(shown)) >= count // 2
    assert len(render_figure(shown)) < 20000


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (made_up(MOST_SWITCHES - 7), f"it has more than {MOST_SWITCHES} switches"),
        (made_up(11, chained=True), "its nodes and switches form more than 12 tiers"),
    ],
)
def test_a_fabric_that_no_drawing_shows_is_told_in_words(made: FabricChart, why: str) -> None:
    shown = make_drawing(made, [says("fabric.uplinks", "leaf-0-1")])
    switches = len(made.topology.nodes) - 8
    assert (shown.rows, shown.edges, shown.why_not) == (
        (),
        (),
        f"Not drawn: {why}. The whole topology is in facts/topologies.",
    )
    text = render_figure(shown)
    assert (
        shown.why_not in text
        and f"4 nodes, {switches} switches, {len(made.topology.links)} links" in text
        and "<svg" not in text
    )


def test_a_long_text_of_a_finding_is_cut() -> None:
    item = says("fabric.hcas", "node-2 compute")
    shown = make_drawing(chart(), [Judged(dataclasses.replace(item.finding, measured="x" * 5000))])
    (mark,) = [mark for row in shown.rows for item in row for mark in item.marks]
    assert len(mark) == 300 and mark.endswith("\u2026")


def test_name_of_a_managed_switch_is_what_a_box_shows() -> None:
    whole = chart()
    nodes = tuple(
        dataclasses.replace(node, description=f"MF0;{node.description}:MQM9700/U1") for node in whole.topology.nodes
    )
    text = render_figure(make_drawing(dataclasses.replace(whole, topology=Topology(nodes, whole.topology.links)), ()))
    assert ">leaf-0-1</text>" in text and "<title>MF0;leaf-0-1:MQM9700/U1</title>" in text


def test_drawing_tells_its_marks_in_words() -> None:
    page = Page(render_figure(make_drawing(chart(), [says("fabric.hcas", "node-2 compute")])))
    assert page.open == [] and "fabric.hcas: bad; node-2 compute" in " ".join(page.text)
