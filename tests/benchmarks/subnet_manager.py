# SPDX-License-Identifier: GPL-3.0-or-later

"""From a fabric that a real opensm has swept to the rounds that use all of its links: build/venv/bin/python
tests/benchmarks/subnet_manager.py [--write docs]

1,024 HCAs on 32 leaves and 32 spines in the lab's simulator, as 1,024 hosts with one rail and as 128 hosts with 8,
routed by opensm's fat tree and by its min hop. The tools read topology and tables from the simulated switches, as an
observer does, and the product's own parsers take them. Seconds are those of a clock, and their baseline is the sweep of
opensm in the same run. The lab's programs are built by the first run, and it need not run.

At its smallest size nothing is started: it takes what the tools have once printed of a small fabric.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.coverage import (
    Coverage,
    compute_coverage,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import (
    Cover,
    cover_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import subnet
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import dump_fts, ibnetdiscover
from ansible_collections.linerate.rdma.tests.benchmarks.support import simulated_fabric
from ansible_collections.linerate.rdma.tests.benchmarks.support.marked import replace
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.benchmarks.support.simulated_fabric import ENGINES, Read, Shape

SHAPES = (Shape(32, 32, 32), Shape(32, 32, 32, rails=8))
CAPTURES = pathlib.Path(__file__).parents[1] / "unit/fixtures/infiniband-diags"
#: seconds that discovery, tables, schedule and coverage may take, beside the sweep
LIMIT = 60.0
#: of read_fabric: a walk of the fabric, and what it waits for that takes no work
_LIMITS = subnet.SubnetLimits(discovery=120.0, activity=0.0, errors=0.0)
NAME = "subnet_manager"


@dataclasses.dataclass(frozen=True)
class Run:
    """Of one fabric and routing engine.

    :ivar seconds: by what was done, in its order
    :ivar lacks: what the fabric did not tell, in words
    """

    name: str
    engine: str
    seconds: dict[str, float]
    first: Cover
    used: Coverage
    lacks: str = ""

    @property
    def beside(self) -> float:
        """All but the sweep, and what is no part of it."""
        return sum(value for what, value in self.seconds.items() if what not in (SWEEP, ASKED))


SWEEP, WALK, TABLES, PARSE, SCHEDULE, COVERAGE = (
    "sweep of opensm",
    "ibnetdiscover",
    "dump_fts",
    "parse both",
    "ways and schedule",
    "coverage",
)
ASKED = "all that fabric_info asks"


def worked_out(name: str, engine: str, topology: str, tables: str, seconds: dict[str, float], lacks: str = "") -> Run:
    """What the product makes of the tools' output, timed."""
    start = time.monotonic()
    seen, forwarding = ibnetdiscover.parse(topology), dump_fts.parse(tables)
    parsed = time.monotonic()
    ways = PathTable(seen, forwarding, simulated_fabric.ends_of(seen), across=True)
    first = cover_links(ways)
    scheduled = time.monotonic()
    used = compute_coverage(ways, [test for item in first.rounds for test in item.tests])
    more = {PARSE: parsed - start, SCHEDULE: scheduled - parsed, COVERAGE: time.monotonic() - scheduled}
    return Run(name, engine, {**seconds, **more}, first, used, lacks)


def real(shape: Shape, engine: str) -> Run:
    """:raises NotStarted: there is no simulator, or no opensm, to be had"""
    with (
        tempfile.TemporaryDirectory(prefix="fabric-") as folder,
        simulated_fabric.running(shape, engine, pathlib.Path(folder)) as sweep,
    ):
        read: Read = simulated_fabric.read_now(sweep)
        start = time.monotonic()
        seen = subnet.read_fabric(PortName(simulated_fabric.DEVICE, 1), _LIMITS)
        asked = time.monotonic() - start
    parts = (seen, seen.errors, seen.capabilities, seen.forwarding)
    lacks = "; ".join(part.error for part in parts if part is not None and part.error)
    seconds = {SWEEP: sweep, WALK: read.topology_seconds, TABLES: read.tables_seconds, ASKED: asked}
    return worked_out(str(shape), engine, read.topology, read.tables, seconds, lacks)


def captured() -> Run:
    """Of a fabric whose output is kept for the tests of the parsers."""
    start = time.monotonic()
    topology, tables = (
        (CAPTURES / f"{name}.txt").read_text(encoding="utf-8") for name in ("ibnetdiscover_lft", "dump_fts_brief")
    )
    return worked_out("as captured", "minhop", topology, tables, {WALK: time.monotonic() - start})


def table(runs: typing.Sequence[Run]) -> str:
    """Markdown."""
    columns = (SWEEP, WALK, TABLES, PARSE, SCHEDULE, COVERAGE)
    head = ["fleet", "engine", *columns, "beside the sweep", ASKED, "rounds", "directions covered"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for run in runs:
        row = [
            run.name,
            f"`{run.engine}`",
            *(f"{run.seconds.get(name, 0.0):.1f} s" for name in columns),
            f"{run.beside:.1f} s",
        ]
        row += [
            f"{run.seconds.get(ASKED, 0.0):.1f} s",
            str(len(run.first.rounds)),
            f"{len(run.used.covered):,} of {run.used.usable:,}",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def results(runs: typing.Sequence[Run]) -> typing.Iterator[Result]:
    for run in runs:
        size = f"{run.name}, {run.engine}"
        baseline = SWEEP if SWEEP in run.seconds else PARSE
        told = f"{len(run.first.rounds)} rounds cover {len(run.used.covered)} of {run.used.usable} directions"
        for what, seconds in run.seconds.items():
            note = {SCHEDULE: told, ASKED: run.lacks}.get(what, "")
            yield Result(what, size, seconds, "s", seconds / run.seconds[baseline], baseline, note)
        note = "" if run.beside <= LIMIT else f"more than {LIMIT:g} s"
        yield Result("beside the sweep", size, run.beside, "s", run.beside / run.seconds[baseline], baseline, note)


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument(
        "--write", type=pathlib.Path, metavar="FOLDER", help="write the table into scale.md of this folder"
    )
    options = made.parse_args(arguments)
    try:
        runs = [captured()] if options.smallest else [real(shape, engine) for shape in SHAPES for engine in ENGINES]
    except simulated_fabric.NotStarted as error:
        raise SystemExit(str(error)) from error
    if options.write:
        replace(options.write / "scale.md", NAME, f"\n{table(runs)}\n")
    return show(results(runs), options.json)


if __name__ == "__main__":
    main()
