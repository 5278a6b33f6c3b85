# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of links over the kept runs: what grew is drawn, what was cleared or replaced is no negative growth, and what
nobody read is not known."""

from __future__ import annotations

import dataclasses
import html
import os
import pathlib
import re
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
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
    SeenTopology,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.link_errors import (
    EarlierErrors,
    ErrorReading,
    collect_readings,
    compute_growth,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.link_errors import (
    ErrorHistory,
    LinkErrors,
    collect_history,
    render_figure,
    render_picture,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import find_folder, keep_run
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import write_record
from ansible_collections.linerate.rdma.plugins.modules.report import write_report
from ansible_collections.linerate.rdma.tests.unit.limit import limited
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, fabrics, records, seen

WORLD = World(nodes=2, rails=1, on_leaf=2, rounds=1)
_HCAS, _SUBNETS, _TOPOLOGIES = seen(WORLD)
SEEN: SeenTopology = (_TOPOLOGIES[WORLD.names[0]].value or ())[0]
TOPOLOGY: Topology = SEEN.topology or Topology((), ())
LINK = next(link for link in TOPOLOGY.links if "Ca" in (link.a.kind, link.b.kind))
LEAF, HCA = sorted((LINK.a, LINK.b), key=lambda end: end.kind != "Switch")
SYMBOLS = "SymbolErrorCounter"


def shown(
    counters: typing.Mapping[str, int], place: tuple[str, int] = LEAF.place, **report: typing.Any
) -> SeenTopology:
    """What a run saw whose port counted this."""
    assert SEEN.errors is not None
    later = ErrorReport(
        (PortErrors(*place, dict(counters), True),) if counters else (), 2 * len(TOPOLOGY.links), **report
    )
    return dataclasses.replace(SEEN, errors=dataclasses.replace(SEEN.errors, later=later))


def name(number: int) -> str:
    return f"2026010{number}T030405Z-aaaaaa"


def over(*runs: typing.Union[int, SeenTopology]) -> ErrorHistory:
    """Symbol errors of the port of the leaf, run by run; the last one is this run."""
    seen_by = [shown({SYMBOLS: run}) if isinstance(run, int) else run for run in runs]
    before = tuple(collect_readings(name(number), (one,)) for number, one in enumerate(seen_by[:-1], 1))
    return collect_history(name(len(runs)), seen_by[-1:], EarlierErrors(before))


def test_only_what_grew_between_runs_is_an_error() -> None:
    found = over(100, 100, 107, 107)
    (link,) = found.links
    assert link.steps == (0, 7, 0) and link.name == "node-1 mlx5_0 - leaf-0-1 port 1"
    assert found.quiet == len(TOPOLOGY.links) - 1 and found.runs == 3


def test_counters_that_were_there_before_are_nobodys_growth() -> None:
    assert over(100, 100).links == () and over(5).runs == 0, "one run alone shows no growth"


def test_a_counter_that_was_cleared_counts_from_nothing() -> None:
    assert over(100, 3, 5).links[0].steps == (3, 2) and over(100, 0).links == ()


def test_both_ends_of_a_link_count() -> None:
    both = dataclasses.replace(shown({}), errors=None)
    report = ErrorReport((PortErrors(*LEAF.place, {SYMBOLS: 2}), PortErrors(*HCA.place, {"LinkDownedCounter": 3})), 99)
    assert SEEN.errors is not None
    both = dataclasses.replace(both, errors=dataclasses.replace(SEEN.errors, later=report))
    assert over(0, both).links[0].steps == (5,)


def test_congestion_and_multicast_are_no_errors_of_a_link() -> None:
    assert over(0, shown({"PortXmitDiscards": 70, "PortRcvSwitchRelayErrors": 9, "PortXmitWait": 8})).links == ()


def test_an_hca_that_replaced_another_begins_without_errors() -> None:
    other = dataclasses.replace(HCA, port_guid="0x00000000000000aa", guid="0x00000000000000a9")
    links = [
        dataclasses.replace(link, a=other if link.a == HCA else link.a, b=other if link.b == HCA else link.b)
        for link in TOPOLOGY.links
    ]
    new = dataclasses.replace(
        shown({SYMBOLS: 900}, other.place), topology=dataclasses.replace(TOPOLOGY, links=tuple(links))
    )
    assert over(5, new).links == ()
    more = dataclasses.replace(shown({SYMBOLS: 901}, other.place), topology=new.topology)
    assert over(5, new, more).links[0].steps == (None, 1)


@pytest.mark.parametrize(
    "silent",
    [
        {"failures": 1, "unread": (UnreadPort(HCA.lid or 0, 1),)},
        {"failures": 1, "unread": (UnreadPort(HCA.lid or 0, 255),)},
        {
            "failures": 2,
            "unread": (
                UnreadPort(next(node.lid or 0 for node in TOPOLOGY.nodes if node.guid == LEAF.guid), 255),
                UnreadPort(9, 9),
            ),
        },
        {"failures": 2},
    ],
)
def test_what_gave_no_answer_is_not_known_and_counts_when_it_does(silent: typing.Any) -> None:
    # the tool prints nothing of a port that did not answer
    found = over(4, shown({} if silent["failures"] > 1 else {SYMBOLS: 4}, **silent), 10).links
    assert [link.steps for link in found] == [(None, 6)]


def test_errors_at_one_end_count_where_nobody_read_the_other() -> None:
    found = over(4, shown({SYMBOLS: 6}, failures=1, unread=(UnreadPort(HCA.lid or 0, 1),)), 6).links
    assert [link.steps for link in found] == [(2, 0)]


def test_a_fabric_that_two_ports_see_has_its_links_once() -> None:
    one = shown({SYMBOLS: 1})
    before = EarlierErrors((collect_readings(name(1), (shown({}),)),))
    twice = collect_history(name(2), (one, dataclasses.replace(one, rdma_device="mlx5_1")), before)
    assert len(twice.links) == 1 and twice.quiet == len(TOPOLOGY.links) - 1


@given(
    some.dictionaries(some.sampled_from("ab"), some.integers(0, 99)),
    some.dictionaries(some.sampled_from("ab"), some.integers(0, 99)),
)
def test_growth_is_never_below_nothing_nor_above_what_is_counted(before: dict[str, int], later: dict[str, int]) -> None:
    found = compute_growth(before, later, "ab")
    assert 0 <= found <= sum(later.values()) and compute_growth(before, before, "ab") == 0


def test_a_picture_has_a_bar_for_each_step_and_says_it_in_words() -> None:
    drawn = render_picture(LinkErrors("link", (0, 4, None, 1_000_000)))
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', drawn)]
    assert heights[0] < heights[1] < heights[3] <= 26.0 and 'aria-label="0, 4, unknown, 1000000 errors"' in drawn
    assert re.findall(r'<rect [^>]*class="(\w+)"', drawn) == ["some", "gap", "some"]


def test_it_is_open_only_where_a_link_counted_errors_since_the_run_before() -> None:
    assert render_figure(over(1, 2, 3)).startswith("<figure") and "1 other" not in render_figure(over(1, 2, 3))
    assert render_figure(over(1, 2, 2)).startswith("<details") and "none since the previous run" in render_figure(
        over(1, 2, 2)
    )
    assert f"none of {len(TOPOLOGY.links)} links counted errors" in render_figure(over(2, 2))


def test_many_links_are_counted_and_the_worst_shown() -> None:
    many = ErrorHistory(tuple(LinkErrors(f"link-{number}", (number,)) for number in range(40, 0, -1)), 0, 1)
    drawn = render_figure(many)
    assert (
        drawn.count("<svg") == 12 and "and 28 more links" in drawn and "link-29<" in drawn and "link-28<" not in drawn
    )


def test_names_of_a_topology_are_made_once() -> None:
    count = 16_000
    nodes = tuple(FabricNode("Switch", f"0x{number:016x}", f"S{number}", 64, 1 + number) for number in range(count + 1))
    first = nodes[0].guid
    ends = [
        (LinkEnd("Switch", first, 1 + number, 1), LinkEnd("Switch", node.guid, 1, 2 + number))
        for number, node in enumerate(nodes[1:])
    ]
    topology = Topology(nodes, tuple(Link(one, other, 4, "NDR") for one, other in ends), 0)

    def at(counted: int) -> tuple[SeenTopology, ...]:
        reports = ErrorReport(tuple(PortErrors(node.guid, 1, {SYMBOLS: counted}) for node in nodes[1:]), 2 * count)
        return (SeenTopology("mlx5_0", 1, topology, errors=SeenErrors(reports, reports, 1.0)),)

    before, now = at(1), at(3)
    with limited("the errors of links"):
        made = collect_history(name(2), now, EarlierErrors((collect_readings(name(1), before),)))
    assert len(made.links) == count and {one.steps for one in made.links} == {(2,)}
    assert made.links[0].name == "S0 port 1 - S1 port 1"


def a_run(path: pathlib.Path, number: int, symbols: int) -> str:
    """A run in the folder of the report, up to its report; its page."""
    made, run = records(WORLD), name(number)
    folder = FactFolder(str(path), run)
    folder.begin(RunStart(run, "2026-01-02T03:04:05+00:00", False, WORLD.names, fabrics=fabrics(WORLD)))
    os.utime(path / "run.json", (1_700_000_000 + number, 1_700_000_000 + number))
    for node in WORLD.names:
        folder.write("hcas", node, _HCAS[node].value)
        folder.write("subnets", node, _SUBNETS[node].value)
    folder.write("vantage_points", value={WORLD.names[0]: [{"rdma_device": "mlx5_0", "port": 1}]})
    folder.write("topologies", WORLD.names[0], to_data([shown({SYMBOLS: symbols})]))
    for stage, record in made.records.items():
        write_record(str(path / "stages"), dataclasses.replace(record, run=run, stage=stage))
    write_report({"run": run, "report_dir": str(path), "keep": 9}, "2.19.4")
    return (path / "report.html").read_text(encoding="utf-8").partition('id="fabric"')[2].partition("</section>")[0]


def test_the_page_shows_what_the_kept_runs_counted_and_names_a_torn_one(tmp_path: pathlib.Path) -> None:
    assert "Errors of links" not in a_run(tmp_path, 1, 3)
    assert "Errors of links from run to run, 1 runs before this run: none</summary>" in a_run(tmp_path, 2, 3)
    page = a_run(tmp_path, 3, 8)
    assert (
        "node-1 mlx5_0 - leaf-0-1 port 1" in page
        and 'aria-label="0, 5 errors"' in page
        and "Kept runs that could not be read" not in page
    )
    torn = pathlib.Path(FactFolder(find_folder(str(tmp_path), name(2)), name(2)).path("topologies", WORLD.names[0]))
    torn.unlink()
    torn.write_text("{", encoding="utf-8")
    page = a_run(tmp_path, 4, 9)
    assert 'aria-label="5, 1 errors"' in page and f"Kept runs that could not be read: {name(2)}" in html.unescape(page)
    keep_run(str(tmp_path), name(4), 1)
    assert "Errors of links" in a_run(tmp_path, 5, 9)


def test_a_reading_without_counters_is_none() -> None:
    assert collect_readings(
        "run", (dataclasses.replace(SEEN, errors=None), dataclasses.replace(SEEN, topology=None))
    ) == ErrorReading("run", {})
