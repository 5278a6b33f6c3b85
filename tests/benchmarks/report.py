# SPDX-License-Identifier: GPL-3.0-or-later

"""Time and size of the report of a large fleet: build/venv/bin/python tests/benchmarks/report.py [--nodes 100 1000]

A made-up fleet of nodes with 8 HCAs and 8 GPUs each, one of them slow, a leaf cut off; facts of stages discover,
fabric, reachability, platform, tuning and bandwidth, findings of the real checks. Each format is made of the same
report in memory; seconds are of the processor, the fastest of some rounds. The baseline of the same run is
``json.dumps`` of all findings as plain data, which is C and leaves nothing out.
"""

from __future__ import annotations

import functools
import json
import pathlib
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import Report, build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.data import render_json
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.junit import render_junit
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.page import render_html
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.unit.report.node_world import run
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World

NODES, SMALLEST = (16, 100, 1_000), (8,)
BASELINE = "json.dumps of all findings"
RAILS, ON_LEAF = 8, 32
ROUNDS = 3
FORMATS: dict[str, typing.Callable[[Report], str]] = {"html": render_html, "json": render_json, "junit": render_junit}


def fastest(work: typing.Callable[[], str]) -> tuple[float, float]:
    """Processor seconds, and megabytes of what it makes."""
    times, text = [], ""
    for _round in range(ROUNDS):
        start = time.process_time()
        text = work()
        times.append(time.process_time() - start)
    return min(times), len(text.encode("utf-8")) / 1e6


def report_of(nodes: int) -> Report:
    made = run(World(nodes=nodes, rails=RAILS, on_leaf=min(ON_LEAF, nodes // 4), slow=3, cut=(0, 1)))
    return build_report(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=made.source)


def figures(nodes: int) -> typing.Iterator[Result]:
    """Time and size of each format for a fleet of one size."""
    report = report_of(nodes)
    findings = [to_data(item.finding) for stage in report.stages if stage.record for item in stage.record.judged]
    rows = {BASELINE: fastest(functools.partial(json.dumps, findings))}
    rows.update((name, fastest(functools.partial(render, report))) for name, render in FORMATS.items())
    rows["all three"] = (sum(rows[name][0] for name in FORMATS), sum(rows[name][1] for name in FORMATS))
    size = f"{nodes} nodes, {len(findings)} findings"
    for name, values in rows.items():
        for value, base, unit in zip(values, rows[BASELINE], ("processor s", "MB")):
            yield Result(name, size, value, unit, value / base, BASELINE)


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", nargs="+", type=int, default=NODES, help="4 or more each")
    options = made.parse_args(arguments)
    results = [result for nodes in (SMALLEST if options.smallest else options.nodes) for result in figures(nodes)]
    return show(results, options.json)


if __name__ == "__main__":
    main()
