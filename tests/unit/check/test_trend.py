# SPDX-License-Identifier: GPL-3.0-or-later

"""Pairs that become slower from run to run."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.bandwidth.medians import FEWEST_RUNS
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.trend import MOST_DROP
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    Earlier,
    EarlierPair,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.exhibits import over_runs
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.trends import (
    Trend,
    list_trends,
    render_picture,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._store.earlier import read_earlier_figures
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import find_folder, keep_run, list_kept
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, fabrics, records

WORLD = World(nodes=4, rails=2, on_leaf=2, rounds=3)
MADE = records(WORLD)
FACTS: Facts = load(Facts, MADE.facts["bandwidth"], "facts")
INTENT = parse_intent(fabrics(WORLD))
NONE = BandwidthFacts((), ())


def pairs() -> tuple[typing.Any, ...]:
    return (FACTS.bandwidth or NONE).pairs


def before(runs: int, factor: float = 1.0) -> Earlier:
    """Runs in which each pair had its figure of now, and the first pair another one."""
    names = tuple(f"2026010{number}T030405Z-aaaaaa" for number in range(1, runs + 1))
    found = []
    for place, pair in enumerate(pairs()):
        found.append(
            EarlierPair(
                pair.fabric,
                pair.rail,
                pair.client,
                pair.server,
                (pair.average_gbps * (factor if place == 0 else 1.0),) * runs,
            )
        )
    return Earlier(names, (), tuple(found))


def trend(kept_before: Earlier) -> list[Finding]:
    return [
        finding
        for finding in check(INTENT, dataclasses.replace(FACTS, earlier=kept_before))
        if finding.check == "bandwidth.trend"
    ]


def test_a_pair_that_lost_a_few_per_cent_is_warned_of_before_it_is_below_a_floor() -> None:
    slower, others = trend(before(FEWEST_RUNS, 1 / (1 - MOST_DROP - 0.005)))
    first = pairs()[0]
    assert (
        slower.status == "warn"
        and f"{first.client} -> {first.server}" in slower.subject
        and "3.5 % below the median" in slower.measured
    )
    assert f"median of {FEWEST_RUNS} earlier runs" in slower.expected
    assert others.status == "pass" and others.measured.startswith(f"{len(pairs()) - 1} of {len(pairs())} ")
    floors = check(INTENT, FACTS)
    assert all(
        finding.status == "pass" for finding in floors if finding.check in ("bandwidth.floor", "bandwidth.fleet")
    )


def test_less_than_that_is_no_trend() -> None:
    (found,) = trend(before(FEWEST_RUNS, 1 / (1 - MOST_DROP + 0.005)))
    assert found.status == "pass" and found.subject == "compute"


def test_fewer_than_three_runs_judge_nothing() -> None:
    assert trend(before(FEWEST_RUNS - 1, 2.0)) == [] and trend(Earlier()) == []


def test_one_bad_run_before_is_no_median() -> None:
    known = before(FEWEST_RUNS)
    doubled = [dataclasses.replace(pair, figures=(*pair.figures[1:], 2 * pair.figures[0])) for pair in known.pairs]
    assert [finding.status for finding in trend(dataclasses.replace(known, pairs=tuple(doubled)))] == ["pass"]


def test_a_run_that_cannot_be_read_is_named() -> None:
    (found,) = trend(Earlier((), ("20260101T030405Z-aaaaaa: torn",)))
    assert found.status == "warn" and "20260101T030405Z-aaaaaa: torn" in found.why


def a_run(
    path: pathlib.Path, number: int, asked: typing.Any, check_mode: bool = False, measured: typing.Any = None
) -> FactFolder:
    """A kept run with the figures of the world."""
    run = f"2026010{number}T030405Z-aaaaaa"
    folder = FactFolder(str(path), run)
    folder.begin(
        RunStart(run, "2026-01-02T03:04:05+00:00", check_mode, WORLD.names, fabrics=asked, waivers=[{"run": number}])
    )
    os.utime(path / "run.json", (1_700_000_000 + number, 1_700_000_000 + number))
    folder.write("bandwidth", value={"bandwidth": measured or MADE.facts["bandwidth"]["bandwidth"]})
    keep_run(str(path), run, 9)
    return folder


def test_only_runs_that_were_asked_for_the_same_fabrics_count(tmp_path: pathlib.Path) -> None:
    asked = fabrics(WORLD)
    for number, (wanted, check_mode) in enumerate(
        ((asked, False), (fabrics(World(rails=1)), False), (asked, True), (asked, False), (asked, False)), 1
    ):
        folder = a_run(tmp_path, number, wanted, check_mode)
    seen = read_earlier_figures(folder)
    assert [run[:8] for run in seen.runs] == ["20260101", "20260104"] and seen.unread == (), "not this run itself"
    assert {pair.figures for pair in seen.pairs} == {(pair.average_gbps,) * 2 for pair in pairs()}
    assert {pair.places for pair in seen.pairs} == {(0, 1)}
    folder.write("bandwidth", value={"bandwidth": MADE.facts["bandwidth"]["bandwidth"], "earlier": to_data(seen)})
    again: Facts = load(Facts, read_facts(folder, "bandwidth", ("earlier",))[0], "facts")
    assert again.earlier == seen, "judged again, it is held against the same runs"


def test_pairs_of_the_same_nodes_between_rails_are_told_apart_from_run_to_run() -> None:
    made = records(dataclasses.replace(WORLD, across=True))
    seen: Facts = load(Facts, made.facts["bandwidth"], "facts")
    between = [pair for pair in (seen.bandwidth or NONE).pairs if pair.between_rails]
    known = tuple(
        EarlierPair(
            pair.fabric,
            pair.rail,
            pair.client,
            pair.server,
            ((pair.average_gbps or 0.0) * (2 if pair.rail else 1),) * 3,
            pair.server_rail,
        )
        for pair in between
    )
    slower = [
        one
        for one in check(INTENT, dataclasses.replace(seen, earlier=Earlier(("a", "b", "c"), (), known)))
        if one.status == "warn"
    ]
    assert {one.subject for one in slower} == {f"compute {name} rail 1 -> {name} rail 0" for name in WORLD.names}
    names = [item.name for item in list_trends(seen.bandwidth, Earlier(("a", "b", "c"), (), known))]
    assert names[0] == "compute, between rails: median" and "compute node-1 rail 1 -> node-1 rail 0" in names


def test_a_median_over_the_runs_is_of_pairs_that_were_measured_in_the_same_runs() -> None:
    """As many figures are not yet figures of the same runs."""
    fast, slow, *_more = [pair for pair in pairs() if not pair.rail]

    def kept_of(pair: typing.Any, figures: tuple[float, ...], places: tuple[int, ...]) -> EarlierPair:
        return EarlierPair(pair.fabric, pair.rail, pair.client, pair.server, figures, None, places)

    def median_of(*kept: EarlierPair) -> tuple[float, ...]:
        return list_trends(FACTS.bandwidth, Earlier(("a", "b", "c"), (), kept))[0].figures

    # both of the runs a and b, or one of them of b and c
    together = median_of(kept_of(fast, (390.0, 380.0), (0, 1)), kept_of(slow, (200.0, 190.0), (0, 1)))
    assert together[:-1] == (295.0, 285.0)
    apart = median_of(kept_of(fast, (390.0, 380.0), (0, 1)), kept_of(slow, (200.0, 190.0), (1, 2)))
    assert apart == (390.0, 380.0, fast.average_gbps)
    longest = median_of(kept_of(fast, (390.0, 380.0), (0, 1)), kept_of(slow, (200.0, 190.0, 180.0), (0, 1, 2)))
    assert longest == (200.0, 190.0, 180.0, slow.average_gbps)


def test_the_rail_of_a_server_is_kept_from_run_to_run(tmp_path: pathlib.Path) -> None:
    seen = dataclasses.replace(
        FACTS.bandwidth or NONE, pairs=(*pairs(), dataclasses.replace(pairs()[0], server_rail=1))
    )
    for number in (1, 2):
        folder = a_run(tmp_path, number, fabrics(WORLD), measured=to_data(seen))
    assert [pair.server_rail for pair in read_earlier_figures(folder).pairs if pair.key[:4] == pairs()[0].key[:4]] == [
        None,
        1,
    ]


@pytest.mark.parametrize("text", ("{", "[]", '{"bandwidth": 1}'))
def test_a_torn_run_is_named_and_not_counted(tmp_path: pathlib.Path, text: str) -> None:
    for number in (1, 2):
        folder = a_run(tmp_path, number, fabrics(WORLD))
    old = list_kept(str(tmp_path))[0]
    path = pathlib.Path(FactFolder(find_folder(str(tmp_path), old), old).path("bandwidth"))
    path.unlink()
    path.write_text(text, encoding="utf-8")
    seen = read_earlier_figures(folder)
    assert seen.runs == () and len(seen.unread) == 1 and seen.unread[0].startswith(old)


def page(known: Earlier) -> str:
    made = MADE.change("bandwidth", to_data(dataclasses.replace(FACTS, earlier=known)))
    section = render_html(build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=made.source)).partition(
        'id="bandwidth"'
    )[2]
    return section.partition("</section>")[0].partition("Bandwidth from run to run")[2]


def test_the_page_draws_what_became_slower_open_and_first() -> None:
    shown = page(before(FEWEST_RUNS, 1.05))
    first = pairs()[0]
    at = [
        shown.index(f"{name} rail {rail}")
        for name, rail in ((f"{first.client} -&gt; {first.server}", 0), ("node-2 -&gt; node-1", 0))
    ]
    assert at == sorted(at) and shown.count('class="trend bad"') == 1 and "-4.8 %" in shown
    points = [re.findall(r"[\d.]+,[\d.]+", line) for line in re.findall(r'points="([^"]*)"', shown)]
    assert {len(line) for line in points} == {FEWEST_RUNS + 1}


def test_a_picture_falls_where_the_figure_does() -> None:
    drawn = render_picture(Trend("pair", (390.0, 390.0, 390.0, 370.0), 390.0))
    heights = [
        float(point.partition(",")[2])
        for point in re.findall(r"[\d.]+,[\d.]+", drawn.partition("points=")[2].partition(">")[0])
    ]
    assert heights[0] == heights[1] == heights[2] < heights[3] <= 26.0
    assert 'aria-label="390, 390, 390, 370 Gb/s"' in drawn


def test_without_kept_runs_nothing_is_drawn_and_what_is_as_it_was_is_folded() -> None:
    assert page(Earlier()) == ""
    assert page(before(4)).startswith(", 4 runs before this run</summary>")


def test_what_is_no_measurement_is_neither_judged_nor_drawn() -> None:
    """Both take the same pairs: a picture beside a finding that nobody made would be a second opinion."""
    first, second = pairs()[:2]
    wrong = (
        dataclasses.replace(first, average_gbps=2 * first.average_gbps),
        dataclasses.replace(second, failure="timeout"),
    )
    measured = dataclasses.replace(FACTS.bandwidth or NONE, pairs=(*wrong, *pairs()[2:]))
    facts = dataclasses.replace(FACTS, bandwidth=measured, earlier=before(FEWEST_RUNS))
    (found,) = [finding for finding in check(INTENT, facts) if finding.check == "bandwidth.trend"]
    assert found.measured.startswith(f"{len(pairs()) - 2} of {len(pairs()) - 2} ")
    record = MADE.change("bandwidth", to_data(facts))
    drawn, _runs = over_runs(record.records["bandwidth"], record.seen)
    names = [trend.name for trend in drawn]
    assert len(names) > WORLD.rails, "rails, and pairs of them"
    for pair in (first, second):
        assert not any(name.endswith(f"{pair.client} -> {pair.server} rail {pair.rail}") for name in names), names
