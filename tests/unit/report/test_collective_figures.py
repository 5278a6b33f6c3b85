# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage collectives has proven, in the report: a table with pictures, metrics, the sheet to sign; and a site that
asks for nothing."""

from __future__ import annotations

import dataclasses
import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.group_verdict import GroupFigure
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    EarlierCollectives,
    EarlierLatency,
    EarlierStep,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import describe_record
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.collective_figures import (
    render_bar,
    render_picture,
)
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.metrics import render_metrics
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.signature import render_signature
from ansible_collections.linerate.rdma.tests.unit.collectives_world import CLUSTER, COLLECTIVES, FABRIC, NcclApi
from ansible_collections.linerate.rdma.tests.unit.report.report_world import (
    FINISHED,
    RUN,
    STARTED,
    Made,
    World,
    records,
)
from ansible_collections.linerate.rdma.tests.unit.report.test_metrics import key, report, samples
from ansible_collections.linerate.rdma.tests.unit.report.test_signature import EVIDENCE, words
from ansible_collections.linerate.rdma.tests.unit.run.test_collectives import measured, run

CONTEXT = StageContext("collectives", RUN, STARTED, FINISHED, False, {})
SMALL = World(nodes=4, rails=2, on_leaf=2, rounds=3)


def made(slow: typing.Collection[tuple[str, int]] = (), cluster: typing.Any = None, **wishes: typing.Any) -> Made:
    """Return a run whose stage collectives is that of a fleet that is played."""
    api = NcclApi()
    api.slow = set(slow)
    facts = to_data(Facts(api.nodes, run(api, **wishes)[0], measured(api.nodes)))
    asked = {**CLUSTER, "collectives": {**COLLECTIVES, **wishes}} if cluster is None else cluster
    record = judge_stage(CONTEXT, RawIntent([FABRIC], None, asked), facts)
    # a folder has one fact of the bandwidth, and both stages are judged by it
    whole = records(SMALL)
    whole = whole.change("bandwidth", {**whole.facts["bandwidth"], "bandwidth": facts["bandwidth"]})
    return whole.change("collectives", facts, judged=record.judged, gate=record.gate, intent=record.intent)


def test_the_page_has_each_group_with_its_floor_and_its_sizes() -> None:
    text = render_html(build_report(made().records, {}, RUN, "2026-01-02T03:10:00+00:00", facts=made().source))
    assert "Verified collectives" in text and "a, b, c, d" in text
    sizes = "1 GiB 94.1 GB/s, 2 GiB 94.1 GB/s, 4 GiB 94.1 GB/s, 8 GiB 94.1 GB/s"
    assert f'aria-label="{sizes}; floor 88.2 GB/s, upper bound of the links 98.0 GB/s"' in text


def test_a_slow_group_comes_first_and_says_so() -> None:
    text = render_html(
        build_report(made({("d", 1)}).records, {}, RUN, "2026-01-02T03:10:00+00:00", facts=made({("d", 1)}).source)
    )
    table = text[text.index("Verified collectives") :]
    assert "too slow" in table and table.index("c, d") < table.index("a, b")


def test_a_picture_of_one_size_without_a_floor() -> None:
    shown = str(render_picture(GroupFigure("all_reduce", "one node", ("a",), 370.0, None, ((1 << 30, 370.0),))))
    assert "<line" not in shown and "<circle" in shown


def test_a_band_reaches_from_the_floor_to_what_the_links_allow() -> None:
    shown = str(render_picture(GroupFigure("all_reduce", "all", ("a", "b"), 94.0, 88.2, ((1 << 30, 94.0),), 98.0)))
    found = re.search(r'<rect class="band" x="0" width="132" y="([\d.]+)" height="([\d.]+)">', shown)
    line, dot = re.search(r'<line[^>]* y1="([\d.]+)"', shown), re.search(r'cy="([\d.]+)"', shown)
    assert found is not None and line is not None and dot is not None
    top, height, floor, figure = (float(text) for text in (*found.groups(), line.group(1), dot.group(1)))
    assert top == 3.0 and top < figure < floor and abs(top + height - floor) < 0.11


def test_the_page_draws_steps_from_run_to_run() -> None:
    earlier = EarlierCollectives(
        ("run-1", "run-2", "run-3"),
        (),
        (
            EarlierStep("all_reduce", "all", 4, (120.0, 121.0, 122.0)),
            EarlierStep("all_reduce", "one node", 1, (370.0,) * 3),
        ),
    )
    shown = page(made(), earlier).partition("Collectives from run to run")[2]
    assert "over 3 kept runs" in shown and 'aria-label="120, 121, 122, 94.1 GB/s"' in shown and "-22.2 %" in shown
    assert shown.index("all_reduce, all: 4 nodes") < shown.index("all_reduce, one node")
    folded = dataclasses.replace(earlier, steps=earlier.steps[1:])
    assert "Collectives from run to run, 3 runs before this run</summary>" in page(made(), folded)
    assert "Collectives from run to run" not in page(made(), EarlierCollectives())


def page(whole: Made, earlier: EarlierCollectives) -> str:
    """Return the page of a run with kept runs before it."""
    whole = whole.change("collectives", {**whole.facts["collectives"], "earlier": to_data(earlier)})
    return render_html(build_report(whole.records, {}, RUN, "2026-01-02T03:10:00+00:00", facts=whole.source))


def test_metrics_of_each_step() -> None:
    found = samples(render_metrics(report(made())))
    name = "collective_bytes_per_second"
    assert abs(found[key(name, collective="all_reduce", step="all", figure="lowest")] - 94.08e9) < 1e7
    assert found[key(name, collective="all_reduce", step="two nodes", figure="best")] > 46e9


def test_a_soak_is_a_step_of_its_own_in_the_page_the_metrics_the_sheet_and_the_trend() -> None:
    whole = made(soak_minutes=30)
    found = samples(render_metrics(report(whole)))
    lowest = found[key("collective_bytes_per_second", collective="all_reduce", step="soak", figure="lowest")]
    assert abs(lowest - 94.08e9) < 1e7
    assert "all_reduce, soak 1 94.1 94.1 88.2" in words(render_signature(report(whole), EVIDENCE))
    earlier = EarlierCollectives(("1", "2", "3"), (), (EarlierStep("all_reduce", "soak", 4, (99.0, 101.0, 100.0)),))
    shown = page(whole, earlier)
    assert "<td>soak</td>" in shown[shown.index("Verified collectives") :]
    assert 'aria-label="99, 101, 100, 94.1 GB/s"' in shown.partition("Collectives from run to run")[2]
    assert not [item for item in samples(render_metrics(report(made()))) if "soak" in str(item)]


def test_latencies_of_pairs_are_in_the_page_the_metrics_and_the_trend() -> None:
    whole = made(latency=True)
    found = samples(render_metrics(report(whole)))
    name = "collective_latency_seconds"
    assert abs(found[key(name, collective="all_reduce", figure="median")] - 20e-6) < 1e-9
    assert abs(found[key(name, collective="all_reduce", figure="p99")] - 26e-6) < 1e-9
    sheet = words(render_signature(report(whole), EVIDENCE))
    assert "Latency of small messages between two nodes, us" in sheet and "all_reduce 2 20.0 20.0 20.0 26.0" in sheet
    shown = page(whole, EarlierCollectives()).partition("Latency of small messages between two nodes")[2]
    assert "a, b" in shown and 'aria-label="mean 20.0 us, p99 26.0 us"' in shown
    earlier = EarlierCollectives(("1", "2", "3"), (), (), (EarlierLatency("all_reduce", (10.0, 11.0, 12.0)),))
    shown = page(whole, earlier).partition("Latency of small messages from run to run")[2]
    assert 'aria-label="10, 11, 12, 20 us"' in shown and "? +81.8 %" in shown
    steady = dataclasses.replace(earlier, latencies=(EarlierLatency("all_reduce", (20.0, 21.0, 22.0)),))
    assert "Latency of small messages from run to run, 3 runs before this run</summary>" in page(whole, steady)
    without = made()
    assert "Latency of small messages" not in page(without, earlier)
    assert not [item for item in samples(render_metrics(report(without))) if item[0] == name]


def test_a_latency_is_drawn_from_0_with_a_band_to_its_p99() -> None:
    shown = str(render_bar(20.0, 40.0, 40.0))
    assert '<circle cx="66.0"' in shown and '<rect class="band" x="66.0" width="63.0"' in shown
    assert "rect" not in str(render_bar(20.0, None, 20.0)) and 'aria-label="mean 20.0 us"' in str(
        render_bar(20.0, None, 20.0)
    )


def test_the_sheet_has_the_steps_with_their_floors() -> None:
    shown = words(render_signature(report(made()), EVIDENCE))
    assert "Verified collectives, GB/s" in shown and "all_reduce, all 1 94.1 94.1 88.2" in shown


def test_a_site_that_asks_for_nothing_is_told_by_name_and_not_counted() -> None:
    record = judge_stage(CONTEXT, RawIntent([FABRIC]), to_data(Facts(("a", "b"))))
    assert record.gate == "open" and record.is_unasked
    assert describe_record(record)[0] == "collectives: nothing was checked - not asked for"
    whole = records(SMALL)
    unasked = dataclasses.replace(whole, records={**whole.records, "collectives": record})
    shown = report(unasked)
    assert (
        shown.green
        and len(shown.asked) == len(shown.stages) - 1
        and shown.summary.startswith(f"GREEN - {len(shown.stages) - 1} stages")
    )
    text = render_html(build_report(unasked.records, {}, RUN, "2026-01-02T03:10:00+00:00", facts=unasked.source))
    assert "not asked for" in text and "Verified collectives" not in text
    assert not [name for name, _labels in samples(render_metrics(shown)) if "collective" in name]
    assert "Verified collectives" not in words(render_signature(shown, EVIDENCE))


def test_a_stage_that_is_asked_for_is_counted() -> None:
    assert not made().records["collectives"].is_unasked
