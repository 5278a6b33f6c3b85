# SPDX-License-Identifier: GPL-3.0-or-later

"""A healthy fleet as the folder that a run on it would leave. The one that molecule judges: ``python -m
tests.unit.truth.folder``."""

from __future__ import annotations

import pathlib
import shutil
import sys
import types
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import start_of
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import records_dir
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import (
    RawIntent,
    StageContext,
    collect_validate_facts,
    judge_stage,
    may_start,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import (
    SHARED,
    SOURCES,
    OfCluster,
    OfListedNodes,
    OfNodes,
    OfNodesThatHaveIt,
    Source,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.version import COLLECTION_VERSION
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import write_record
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import Fleet, Shape, cluster_of, fabrics_of, healthy

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-a1b2c3"
STARTED, FINISHED = "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:25+00:00"
#: the smallest fleet that has a pair on each of two rails
SMALL = Shape("2 nodes of 2 HCAs", 2, 2, functions=1)
#: where the scenario has its facts
SCENARIO = ROOT / "extensions" / "molecule" / "judge" / "run"


def write(
    fleet: Fleet,
    path: pathlib.Path,
    run: str = RUN,
    waivers: typing.Sequence[typing.Mapping[str, str]] = (),
    versions: typing.Mapping[str, str] = types.MappingProxyType({"linerate.rdma": COLLECTION_VERSION}),
) -> None:
    """Write what each stage is judged by, and the records of its judgement. A folder that is there goes first. Behind a
    closed gate nothing is looked at.

    :param versions: that the run names
    """
    shutil.rmtree(path, ignore_errors=True)
    folder, wishes = FactFolder(str(path), run), RawIntent(fabrics_of(fleet.shape), [*waivers], cluster_of(fleet.shape))
    names = {"rdma_fabrics": wishes.fabrics, "rdma_cluster": wishes.cluster}
    start = RunStart(
        run,
        STARTED,
        False,
        fleet.shape.names,
        tuple(names),
        wishes.fabrics,
        wishes.waivers,
        wishes.cluster,
        dict(versions),
    )
    folder.begin(start)
    judged: dict[str, Record] = {}
    for stage in STAGES:
        context = StageContext(stage, run, STARTED, FINISHED, False, dict(judged))
        record = may_start(context, wishes, collect_validate_facts(start))
        if record is None:
            # the first look at a node brings what several stages build on
            for source in {*SOURCES[stage].values(), *(() if stage == "validate" else SHARED)}:
                _write_fact(fleet, folder, source)
            facts, counts = read_facts(folder, stage)
            record = judge_stage(context, wishes, facts, (), counts)
        judged[stage] = record
        write_record(records_dir(str(path)), record)


def _write_fact(fleet: Fleet, folder: FactFolder, source: Source) -> None:
    seen = fleet.facts.get(source)
    if seen is None:
        return
    if isinstance(source, OfCluster):
        of_kind = {
            other.key: value
            for other, value in fleet.facts.items()
            if isinstance(other, OfCluster) and other.kind == source.kind
        }
        folder.write(source.kind, value=of_kind)
    elif isinstance(source, (OfNodes, OfListedNodes)):
        key = source.key if isinstance(source, OfNodes) else ""
        # a topology is asked of few nodes; of the others there is no fact
        asked = [name for name, item in seen.items() if item.value or item.error is not None or not source.listed_by]
        for name in asked:
            if seen[name].error is not None:
                folder.write(source.kind, name, error=seen[name].error)
            elif seen[name].value is None and not key:
                # a fact is a value or an error: of this node there is none
                continue
            else:
                folder.write(source.kind, name, {key: seen[name].value} if key else seen[name].value)
        if source.listed_by:
            folder.write(source.listed_by, value=asked)
    elif isinstance(source, OfNodesThatHaveIt):
        for name, item in seen.items():
            folder.write(source.kind, name, item)


if __name__ == "__main__":
    write(healthy(SMALL), SCENARIO)
    print(f"{SCENARIO.relative_to(ROOT)}: run {start_of(str(SCENARIO)).run}")
