# SPDX-License-Identifier: GPL-3.0-or-later

"""Time and size of the report of a large fleet: build/venv/bin/python tests/benchmarks/report.py [NODES ...]

A made-up fleet of nodes with 8 HCAs each, one of them slow, a leaf cut off; facts of stages fabric, reachability and bandwidth, findings of the real
checks. Each format is made of the same report in memory; seconds are of the processor, the fastest of some rounds. The baseline of the same run is
``json.dumps`` of all findings as plain data, which is C and leaves nothing out.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._report.data import render_json
from ansible_collections.linerate.rdma.plugins.module_utils._report.junit import render_junit
from ansible_collections.linerate.rdma.plugins.module_utils._report.page import render_html
from ansible_collections.linerate.rdma.plugins.module_utils._report.verdict import Report, build
from ansible_collections.linerate.rdma.tests.unit.report.report_world import World, records

NODES = (16, 100, 1_000)
RAILS, ON_LEAF = 8, 32
ROUNDS = 3
FORMATS: typing.Dict[str, typing.Callable[[Report], str]] = {"html": render_html, "json": render_json, "junit": render_junit}


def fastest(work: typing.Callable[[], str]) -> typing.Tuple[float, float]:
    """Processor seconds, and megabytes of what it makes."""
    times, text = [], ""
    for _round in range(ROUNDS):
        start = time.process_time()
        text = work()
        times.append(time.process_time() - start)
    return min(times), len(text.encode("utf-8")) / 1e6


def report_of(nodes: int) -> Report:
    made = records(World(nodes=nodes, rails=RAILS, on_leaf=min(ON_LEAF, nodes // 4), slow=3, cut=(0, 1)))
    return build(made.records, {}, "", "2026-01-02T03:10:00+00:00", facts=made.source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=NODES)
    options = parser.parse_args()
    if min(options.nodes) < 4:
        parser.error("a fleet has 4 nodes at least")
    print("nodes    findings  what        seconds       MB   ratio to the baseline: seconds, size")
    for nodes in options.nodes:
        report = report_of(nodes)
        findings = [to_data(item.finding) for stage in report.stages if stage.record for item in stage.record.judged]
        base_seconds, base_size = fastest(lambda findings=findings: json.dumps(findings))
        rows = {"baseline": (base_seconds, base_size)}
        rows.update((name, fastest(lambda render=render, report=report: render(report))) for name, render in FORMATS.items())
        rows["all three"] = (sum(rows[name][0] for name in FORMATS), sum(rows[name][1] for name in FORMATS))
        for name, (seconds, size) in rows.items():
            ratios = f"{seconds / base_seconds:7.2f}  {size / base_size:7.3f}"
            print(f"{nodes:<8} {len(findings):>8}  {name:<10} {seconds:8.2f} {size:8.2f}   {ratios}")


if __name__ == "__main__":
    main()
