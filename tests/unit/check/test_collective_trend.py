# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of collectives from run to run: their figures in the fact, the kept runs, and what became slower."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.bandwidth.medians import FEWEST_RUNS
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.group_verdict import GroupFigure
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.latency import (
    GroupLatency,
    Latency,
    summarize_latencies,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.trend import (
    MOST_DROP,
    check_trend,
    name_step,
    summarize_group_figures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    EarlierCollectives,
    EarlierLatency,
    EarlierStep,
    LatencyFigures,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.earlier_collectives import read_earlier_collectives
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import find_folder, keep_run, list_kept

LEAF = StepFigures("compute", "all_reduce", "a leaf", 4, 3, 90.0, 94.0, 95.0)
ALL = StepFigures("compute", "all_reduce", "all", 12, 1, 92.0, 92.0, 92.0)
WISH: dict[str, typing.Any] = {"image": "registry.example/nccl-tests:1", "gpus_per_node": 8}
FABRICS = [{"name": "compute"}]


def kept(*steps: StepFigures, runs: int = FEWEST_RUNS, factor: float = 1.0) -> EarlierCollectives:
    """Return runs in which each step had its median of now, times a factor."""
    names = tuple(f"2026010{number}T030405Z-aaaaaa" for number in range(1, runs + 1))
    found = (EarlierStep(step.test, step.kind, step.nodes, (factor * step.median,) * runs) for step in steps)
    return EarlierCollectives(names, (), tuple(found))


def test_groups_of_a_step_are_one_figure_and_numbers_of_nodes_stay_apart() -> None:
    groups = [
        GroupFigure("all_reduce", "a leaf", nodes, value, 88.0)
        for nodes, value in ((("a", "b", "c"), 94.0), (("d", "e", "f"), 90.0), (("g", "h", "i"), 95.0))
    ]
    groups.append(GroupFigure("all_reduce", "a leaf", ("j", "k", "l", "m"), 93.0, 88.0))
    assert summarize_group_figures("compute", groups) == (
        StepFigures("compute", "all_reduce", "a leaf", 3, 3, 90.0, 94.0, 95.0),
        StepFigures("compute", "all_reduce", "a leaf", 4, 1, 93.0, 93.0, 93.0),
    )
    assert [name_step(key) for key in (LEAF.key, ("all_gather", "one node", 1))] == [
        "all_reduce, a leaf: 4 nodes",
        "all_gather, one node",
    ]


def test_a_step_that_lost_more_than_its_like_may_is_warned_of() -> None:
    earlier = kept(LEAF, ALL)
    slower = dataclasses.replace(LEAF, median=(1 - MOST_DROP - 0.005) * LEAF.median)
    first, others = check_trend((slower, ALL), earlier)
    assert (first.check, first.subject, first.status) == ("collectives.trend", "all_reduce, a leaf: 4 nodes", "warn")
    assert (
        first.measured == "86.9 GB/s, 7.5% below the median" and "0.93 x the median of 3 earlier runs" in first.expected
    )
    assert (others.status, others.measured) == ("pass", "1 of 2 steps as fast as in the earlier runs")
    less = dataclasses.replace(LEAF, median=(1 - MOST_DROP + 0.005) * LEAF.median)
    assert [item.status for item in check_trend((less, ALL), earlier)] == ["pass"]


def test_few_runs_and_other_steps_judge_nothing() -> None:
    assert check_trend((LEAF,), kept(LEAF, runs=FEWEST_RUNS - 1, factor=2.0)) == []
    assert check_trend((LEAF,), kept(ALL, factor=2.0)) == [] == check_trend((LEAF,), EarlierCollectives())


def test_a_run_that_cannot_be_read_is_named() -> None:
    (found,) = check_trend((), EarlierCollectives((), ("20260101T030405Z-aaaaaa: torn",)))
    assert found.status == "warn" and "20260101T030405Z-aaaaaa: torn" in found.why


@pytest.mark.parametrize(("median", "status"), [(30.0, "pass"), (31.0, "warn")])
def test_latencies_are_held_against_their_median_in_kept_runs(median: float, status: str) -> None:
    earlier = EarlierCollectives(("1", "2", "3"), (), (), (EarlierLatency("all_reduce", (19.0, 20.0, 21.0)),))
    times = LatencyFigures("compute", "all_reduce", 4, 18.0, median, 40.0)
    (found,) = check_trend((), earlier, (times,), 1.5)
    assert (found.subject, found.status) == ("all_reduce, small messages of pairs", status)
    assert found.measured == f"median {median:.1f} us of 4 pairs" and "1.5 x 20.0 us, the median of 3" in found.expected
    few = dataclasses.replace(earlier, latencies=(EarlierLatency("all_reduce", (1.0, 1.0)),))
    assert check_trend((), few, (times,), 1.5) == []


def test_latencies_of_pairs_are_one_figure_without_those_that_measure_nothing() -> None:
    pairs = [
        GroupLatency("all_reduce", nodes, Latency(mean, p99))
        for nodes, mean, p99 in ((("a", "b"), 20.0, 26.0), (("c", "d"), 30.0, None), (("e", "f"), 0.01, 90.0))
    ]
    assert summarize_latencies("compute", pairs) == (
        LatencyFigures("compute", "all_reduce", 2, 20.0, 25.0, 30.0, 26.0),
    )


def test_latencies_of_kept_runs_are_read(tmp_path: pathlib.Path) -> None:
    for number in (1, 2):
        times = LatencyFigures("compute", "all_reduce", 4, 18.0, 20.0 + number, 40.0)
        value = {"steps": to_data((ALL,)), "latencies": to_data((times,))}
        folder = a_run(tmp_path, number, value=value)
    # a run of an earlier release has none
    a_run(tmp_path, 3)
    assert read_earlier_collectives(a_run(tmp_path, 4)).latencies == (EarlierLatency("all_reduce", (21.0, 22.0)),)
    assert folder.run.startswith("20260102")


def a_run(
    path: pathlib.Path,
    number: int,
    wish: typing.Any = None,
    fabrics: typing.Any = None,
    check_mode: bool = False,
    value: typing.Any = None,
) -> FactFolder:
    run = f"2026010{number}T030405Z-aaaaaa"
    folder = FactFolder(str(path), run)
    cluster = {"collectives": WISH if wish is None else wish}
    folder.begin(
        RunStart(run, "2026-01-02T03:04:05+00:00", check_mode, ("a",), fabrics=fabrics or FABRICS, cluster=cluster)
    )
    os.utime(path / "run.json", (1_700_000_000 + number, 1_700_000_000 + number))
    if value is None:
        value = {"steps": to_data((dataclasses.replace(ALL, median=90.0 + number),))}
    folder.write("collectives", value=value)
    keep_run(str(path), run, 9)
    return folder


def test_only_runs_that_were_asked_for_the_same_collectives_count(tmp_path: pathlib.Path) -> None:
    a_run(tmp_path, 1, {**WISH, "image": "registry.example/nccl-tests:0", "latency": True})
    a_run(tmp_path, 2, {**WISH, "gpus_per_node": 4})
    a_run(tmp_path, 3, fabrics=[{"name": "other"}])
    a_run(tmp_path, 4, check_mode=True)
    a_run(tmp_path, 5, value={"collectives": {}})
    a_run(tmp_path, 6)
    folder = a_run(tmp_path, 7)
    seen = read_earlier_collectives(folder)
    assert [run[:8] for run in seen.runs] == ["20260101", "20260106"] and seen.unread == ()
    assert seen.steps == (EarlierStep("all_reduce", "all", 12, (91.0, 96.0)),)
    folder.write("collectives", value={"steps": [], "earlier": to_data(seen)})
    again: Facts = load(Facts, read_facts(folder, "collectives", ("earlier",))[0], "facts")
    assert again.earlier == seen, "judged again, it is held against the same runs"


@pytest.mark.parametrize("text", ("{", "[]", '{"steps": 1}'))
def test_a_torn_run_is_named_and_not_counted(tmp_path: pathlib.Path, text: str) -> None:
    for number in (1, 2):
        folder = a_run(tmp_path, number)
    old = list_kept(str(tmp_path))[0]
    path = pathlib.Path(FactFolder(find_folder(str(tmp_path), old), old).path("collectives"))
    path.unlink()
    path.write_text(text, encoding="utf-8")
    seen = read_earlier_collectives(folder)
    assert seen.runs == () and len(seen.unread) == 1 and seen.unread[0].startswith(old)
