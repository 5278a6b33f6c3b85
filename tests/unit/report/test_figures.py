# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page draws of a cluster, and that it stays readable and harmless whatever the cluster is called and however
large it is."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    NodePlan,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, build_pass, judge
from ansible_collections.linerate.rdma.plugins.module_utils._report.content import pair_matrices
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.exhibits import (
    Undrawable,
    collect_charts,
    collect_versions,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.inputs import ReportFacts, no_facts
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.matrix import (
    Cell,
    Matrix,
    fold_matrix,
    group_by_number,
    list_rows_of_nodes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.pair_matrices import list_matrices
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.report.report_world import Made, World, records
from ansible_collections.linerate.rdma.tests.unit.report.test_report import Page

SMALL = World(nodes=4, rails=2, on_leaf=2, rounds=3)


def page(made: Made) -> str:
    return render_html(build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=made.source))


def drawn(made: Made, stage: str) -> tuple[Matrix, ...]:
    return list_matrices(made.records[stage], made.seen, collect_charts(made.records["fabric"], made.seen))


@pytest.mark.parametrize("stage", ["reachability", "bandwidth"])
def test_each_rail_has_its_matrix_with_all_that_was_asked(stage: str) -> None:
    made = drawn(records(SMALL), stage)
    assert [matrix.title for matrix in made] == ["compute, rail 0", "compute, rail 1"]
    for matrix in made:
        assert matrix.names == SMALL.names
        assert set(matrix.cells) == {
            (client, server) for client in SMALL.names for server in SMALL.names if client != server
        }
        assert {cell.level for cell in matrix.cells.values()} == {"pass"}
        leaf = f"leaf-{matrix.title[-1]}"
        assert matrix.leaves == {
            "node-1": f"{leaf}-1",
            "node-2": f"{leaf}-1",
            "node-3": f"{leaf}-2",
            "node-4": f"{leaf}-2",
        }


def test_what_hosts_measure_between_their_rails_has_a_matrix_of_its_own_behind_the_others() -> None:
    made = records(dataclasses.replace(SMALL, across=True))
    *within, between = drawn(made, "bandwidth")
    assert [matrix.title for matrix in within] == [
        "compute, rail 0",
        "compute, rail 1",
    ] and between.title == "compute, between rails"
    assert set(between.cells) == {(name, name) for name in SMALL.names} and {
        cell.level for cell in between.cells.values()
    } == {"pass"}
    cell = between.cells["node-2", "node-2"]
    assert (
        cell.value == 380.0
        and "rail 0 \u2192 1: average 380" in cell.words
        and "rail 1 \u2192 0: average 381" in cell.words
    )
    assert "of the best pair between rails" in cell.words and "compute, between rails: average in Gb/s" in page(made)


def test_slow_node_and_cut_leaf_are_seen() -> None:
    made = records(dataclasses.replace(SMALL, slow=3, cut=(0, 1)))
    lost = {pair for pair, cell in drawn(made, "reachability")[0].cells.items() if cell.level == "fail"}
    assert lost == {
        (client, server)
        for client in SMALL.names
        for server in SMALL.names
        if (client > "node-2") != (server > "node-2")
    }
    cut, slow = drawn(made, "bandwidth")
    assert {pair for pair, cell in cut.cells.items() if cell.level == "fail"} == lost
    assert {pair for pair, cell in slow.cells.items() if cell.level == "fail"} == {
        pair for pair in slow.cells if "node-3" in pair
    }
    assert list_rows_of_nodes(slow)[0].name == "node-3"
    words = slow.cells["node-3", "node-1"].words
    for said in (
        "node-3 \u2192 node-1",
        "average 19",
        "peak",
        "0.92 x 400 Gb/s",
        "PCIe of node-3 414.82",
        "0.93 of the best pair",
    ):
        assert said in words, said


@pytest.mark.parametrize(
    ("figure", "why", "said"),
    [
        (391.5, "", "average 391.5 Gb/s"),
        (None, "memlock: Couldn't allocate MR", "not measured: memlock: Couldn't allocate MR"),
    ],
)
def test_a_pair_that_was_measured_once_more_shows_both_figures(
    figure: typing.Optional[float], why: str, said: str
) -> None:
    made = records(SMALL)
    facts = made.facts["bandwidth"]
    wider = {"queue_pairs": 16, "message_bytes": 4194304, "average_gbps": figure, "why": why}
    first, *others = facts["bandwidth"]["pairs"]
    given = {**facts, "bandwidth": {**facts["bandwidth"], "pairs": [{**first, "wider": wider}, *others]}}
    cell = next(matrix for matrix in drawn(made.change("bandwidth", given), "bandwidth")).cells[
        first["client"], first["server"]
    ]
    assert (
        f"average {first['average_gbps']:g}" in cell.words
        and f"with 16 queue pairs of 4194304 bytes: {said}" in cell.words
    )


def test_waived_and_unmeasured_pairs_are_no_passes() -> None:
    waiver = {"check": "reachability.*", "subject": "*", "reason": "the leaf is being replaced"}
    made = records(dataclasses.replace(SMALL, cut=(0, 1)), [waiver])
    assert {cell.level for cell in drawn(made, "reachability")[0].cells.values()} == {"pass", "waived"}
    silent = drawn(made.change("reachability", {**made.facts["reachability"], "pings": {}}, judged=()), "reachability")
    assert {cell.level for matrix in silent for cell in matrix.cells.values()} == {"unknown"}
    unjudged = drawn(made.change("bandwidth", judged=()), "bandwidth")
    assert {cell.level for matrix in unjudged for cell in matrix.cells.values()} == {"seen"}, (
        "without a finding nothing is a pass"
    )


def test_a_pair_that_is_there_many_times_has_each_finding_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's folder of 4 MB took 2.3 GiB: as many findings as the square of the pairs."""
    counts: list[tuple[int, int]] = []
    draw = pair_matrices._make_bandwidth_cell

    def count(measured: typing.Sequence[typing.Any], judged: typing.Sequence[typing.Any]) -> Cell:
        counts.append((len(measured), len(judged)))
        return draw(measured, judged)

    monkeypatch.setattr(pair_matrices, "_make_bandwidth_cell", count)
    made = records(SMALL)
    facts = made.facts["bandwidth"]
    pairs = facts["bandwidth"]["pairs"]
    for often in (1, 50):
        repeated = {**facts, "bandwidth": {**facts["bandwidth"], "pairs": pairs[:1] * often}}
        drawn(made.change("bandwidth", repeated), "bandwidth")
    (once, found), (many, of_many) = counts
    assert (once, many) == (1, 50) and found == of_many > 0


def test_facts_that_do_not_load_are_not_drawn_and_the_page_says_so() -> None:
    made = records(SMALL)
    broken = made.change("bandwidth", {"bandwidth": {"pods": 7}})
    with pytest.raises(Undrawable, match="pods"):
        list_matrices(broken.records["bandwidth"], broken.seen, {})
    assert "The facts of this stage could not be shown: bandwidth_facts.bandwidth" in page(broken)
    assert "GREEN" in page(made.change("fabric", {"nodes": []}))
    assert drawn(made.change("bandwidth", facts={"bandwidth": None}), "bandwidth") == ()
    assert list_matrices(dataclasses.replace(made.records["bandwidth"], facts=()), made.seen, {}) == ()
    assert list_matrices(dataclasses.replace(made.records["bandwidth"], intent=None), made.seen, {}) == ()


def test_facts_that_nobody_can_read_are_not_drawn_and_the_page_says_so() -> None:
    made = records(SMALL)

    def torn(stage: str, parts: typing.Sequence[str]) -> typing.Mapping[str, typing.Any]:
        raise FileError(f"facts/{stage}.json: torn", "Remove the file")

    with pytest.raises(Undrawable, match=r"bandwidth\.json: torn"):
        list_matrices(made.records["bandwidth"], ReportFacts(torn), {})
    text = render_html(build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=torn))
    assert "The facts of this stage could not be shown: facts/reachability.json: torn" in text and "GREEN" in text


def test_plan_of_the_network_is_a_table() -> None:
    made = records(SMALL)
    same = [NodePlan(f"node-{number}", "drain", ("numVfs 0 -> 8",), pool="gpu") for number in range(1, 41)]
    nodes = (
        NodePlan("node-0", "nothing"),
        *same,
        NodePlan("node-99", "reboot", ("firmware",), blockers=("PodDisruptionBudget a/b",)),
    )
    pools = (
        PoolPlan("gpu", tuple(node.node for node in same), 2, 20, "maxUnavailable 2"),
        PoolPlan("", ("node-99",), 0, None, "maxUnavailable 5%"),
    )
    facts = {"plan": to_data(DisruptionPlan(nodes, pools))}
    made = made.change("network", facts, intent=made.records["fabric"].intent)
    said = " ".join(Page(page(made)).text)
    assert "40   node-1, node-2" in said and "and 28 more" in said and "PodDisruptionBudget a/b" in said
    assert "40 nodes, 2 at once (maxUnavailable 2), 20 waves" in said
    assert "the operator's default pool : 1 node, 0 at once (maxUnavailable 5%), never completes" in said
    assert said.index("reboot") < said.index("drain")
    undrained = made.change("network", {"plan": to_data(DisruptionPlan(nodes, pools, drains=False))})
    assert "changed without a drain" in page(undrained) and "changed without a drain" not in said
    assert "The facts of this stage could not be shown: network_facts.plan" in page(
        made.change("network", {"plan": [1]})
    )


def test_comparison_is_a_table_with_its_alarms_and_advice() -> None:
    made = records(SMALL)
    figures = [
        {"network": "pod <network>", "nodes": 2, "value": 3.46, "kind": "pod_network"},
        {"network": "compute", "nodes": 2, "value": 40.58},
    ]
    measures = [{"name": "fine-tuning", "unit": "samples/s", "single_node": 21.34, "figures": figures}]
    wanted = made.records["fabric"].intent
    made = made.change(
        "compare", {"bandwidth": None}, intent={**wanted, "cluster": {**wanted["cluster"], "measures": measures}}
    )
    said = " ".join(Page(page(made)).text)
    assert "pod <network> pod network 2 3.46 0.16 8.1 % 8.5 % negative scaling : slower than 1" in said
    assert "compute sriov rdma 2 40.58 1.90 95.1 % 100.0 % \u2013" in said
    assert "Do not use the pod network for training on several nodes." in said
    assert said.index("one node") < said.index("pod <network> pod") < said.index("compute sriov rdma")
    assert "The facts of this stage could not be shown: compare_facts.bandwidth" in page(
        made.change("compare", {"bandwidth": 7})
    )


def test_fleet_tells_its_versions_and_how_many_have_them() -> None:
    made = records(SMALL)
    seen = [made.facts["fabric"]["nodes"][name] for name in SMALL.names]
    nodes: dict[str, typing.Any] = {
        name: {"value": {"hcas": [dict(hca) for hca in item["value"]["hcas"]], "errors": []}, "error": None}
        for name, item in zip(SMALL.names, seen)
    }
    nodes["node-4"]["value"]["hcas"][0]["firmware"] = "28.39.2048"
    made = made.change("discover", {"nodes": nodes}).change("platform", {"platforms": "broken"})
    # a folder has one fact hcas of a node, and all stages are judged by it
    for stage in ("fabric", "reachability"):
        made = made.change(stage, {**made.facts[stage], "nodes": nodes})
    assert collect_versions(made.records, made.seen) == {"HCA firmware": "28.43.1014 (7), 28.39.2048 (1)"}
    assert "28.43.1014 (7), 28.39.2048 (1)" in page(made)


def test_what_several_stages_were_judged_by_is_read_once() -> None:
    made = records(SMALL)
    asked: list[str] = []

    def source(stage: str, parts: typing.Sequence[str]) -> typing.Mapping[str, typing.Any]:
        asked.extend(parts)
        return made.source(stage, parts)

    text = render_html(build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=source))
    assert text == page(made) and "compute, rail 1: loss in %" in text
    assert sorted(asked) == [
        "bandwidth",
        "earlier",
        "nodes",
        "nodes",
        "pings",
        "plan",
        "subnets",
        "topologies",
    ], "nodes: HCAs, and the names of who takes part"


def test_without_facts_nothing_is_drawn() -> None:
    made = records(SMALL)
    assert (
        collect_charts(made.records["fabric"], ReportFacts(no_facts)) == {}
        and collect_versions(made.records, ReportFacts(no_facts)) == {}
    )


def matrix(nodes: int, leaves: typing.Optional[typing.Mapping[str, str]] = None, **cells: Cell) -> Matrix:
    names = tuple(f"n{number}" for number in range(nodes))
    given = {(client, server): Cell("pass", 390.0, "") for client in names for server in names if client != server}
    given.update({(pair.split("_")[0], pair.split("_")[1]): cell for pair, cell in cells.items()})
    return Matrix("compute", "average", "Gb/s", True, names, given, leaves or {})


def test_small_matrix_is_not_folded() -> None:
    assert fold_matrix(matrix(4), 4) == matrix(4)


def test_large_matrix_is_folded_by_leaf_and_shows_its_worst() -> None:
    bad = Cell("fail", 190.0, "", 1, 1)
    folded = fold_matrix(matrix(8, {f"n{number}": f"leaf{number // 4}" for number in range(8)}, n1_n6=bad), 4)
    assert folded.folded == {"leaf0": 4, "leaf1": 4} and set(folded.cells) == {
        (a, b) for a in folded.names for b in folded.names
    }
    cell = folded.cells["leaf0", "leaf1"]
    assert cell == Cell(
        "fail",
        190.0,
        "16 directions, 1 not verified; median average 390 Gb/s\nworst: n1 → n6, 190 Gb/s",
        16,
        1,
    )
    assert folded.cells["leaf1", "leaf0"].level == "pass"


@pytest.mark.parametrize("leaves", [{}, {"n1": "leaf0"}, {f"n{number}": "the only leaf" for number in range(9)}])
def test_without_leaves_that_help_it_is_folded_in_order(leaves: dict[str, str]) -> None:
    folded = fold_matrix(matrix(9, leaves), 4)
    assert list(folded.folded.items()) == [("n0 \u2026 n2", 3), ("n3 \u2026 n5", 3), ("n6 \u2026 n8", 3)]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["n10", "n9", "a", "n", "9", "n9b", "\u0663"], key=group_by_number)[:4] == ["9", "a", "n", "n9"]


@hypothesis.given(some.lists(some.text(max_size=30), max_size=8))
def test_any_name_has_a_place_in_the_order(names: list[str]) -> None:
    assert sorted(sorted(names, key=group_by_number)) == sorted(names)


def test_matrix_without_a_fault_is_folded_away_and_one_with_a_fault_is_not() -> None:
    made = records(dataclasses.replace(SMALL, cut=(0, 1)))
    text = page(made)
    reachability = text[text.index('id="reachability"') : text.index('id="platform"')]
    assert "<figcaption><b>compute, rail 0: loss in %</b>" in reachability
    assert '<details><summary><span class="caption"><b>compute, rail 1: loss in %</b>' in reachability


def test_page_of_a_large_cluster_is_small() -> None:
    text = page(records(World(nodes=72, rails=2, on_leaf=8, rounds=6, slow=13, cut=(0, 3))))
    assert len(text) < 400_000
    assert "combined into 9 groups of nodes" in text and "The 12 nodes to check first, of 72" in text
    assert len(Page(text).open) == 0


# each as a node's name: into the page, its attributes, its drawings
HOSTILE = (
    "</title><script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "a\u202eb\u2066c",
    "two\nlines\x00\x1b[2J",
    "x" * 300,
    "]]>&lt;&#60;",
    "\ud800",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_change_no_element(name: str) -> None:
    world = dataclasses.replace(SMALL, slow=3, cut=(0, 1))
    hostile, harmless = (page(records(dataclasses.replace(world, name=text))) for text in (name, "node-"))
    assert Page(hostile).tags == Page(harmless).tags
    assert not {"\u202e", "\u2066", "\x00", "\x1b", "\ud800"} & set(hostile)


# a name with more signs before its first letter than any is marked in no drawing
@hypothesis.given(some.text(max_size=20).map("n{}".format))
@hypothesis.settings(max_examples=examples(25))
def test_any_name_changes_no_element(name: str) -> None:
    world = World(nodes=2, rails=1, on_leaf=1, rounds=1, cut=(0, 1))
    assert Page(page(records(dataclasses.replace(world, name=name)))).tags == Page(page(records(world))).tags


def test_the_operators_that_are_needed_stand_in_their_order() -> None:
    made = records(SMALL)
    found = (
        build_pass(
            "operators.needed",
            "node-feature-discovery",
            "nfd/nfd-master v0.18.3",
            "one installation that is ready, for label x",
        ),
        Finding(
            "operators.needed",
            "gpu-operator",
            "fail",
            "no <Deployment> runs it",
            "one installation that is ready, for rdma_job",
            "Nobody does.",
            "Install it.",
        ),
        build_pass("operators.read", "cluster", "all objects read", "everything"),
    )
    record = dataclasses.replace(made.records["fabric"], stage="operators", judged=judge(found).judged)
    shown = render_html(build_report({"operators": record}, {}, "", "2026-01-02T03:10:00+00:00", facts=no_facts))
    table = shown.partition("Required operators")[2].partition("</table>")[0]
    assert table.index("node-feature-discovery") < table.index("gpu-operator")
    assert "rdma_job" in table and "no &lt;Deployment&gt; runs it" in table and "all objects read" not in table
    without = dataclasses.replace(record, judged=judge(found[2:]).judged)
    assert "Required operators" not in render_html(
        build_report({"operators": without}, {}, "", "2026-01-02T03:10:00+00:00", facts=no_facts)
    )
