# SPDX-License-Identifier: GPL-3.0-or-later

"""A healthy fleet as the folder that a run on it would leave. The one that molecule judges: ``python -m tests.unit.truth.folder``."""

from __future__ import annotations

import pathlib
import shutil
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._again import start_of
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import Chosen, OfCluster, OfNodes, Planned
from ansible_collections.linerate.rdma.plugins.module_utils._folder import facts_of
from ansible_collections.linerate.rdma.plugins.module_utils._frame import records_dir
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._model.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._model.version import COLLECTION_VERSION
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._observe.records import write_record
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import Fleet, Shape, cluster_of, fabrics_of, healthy

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-a1b2c3"
STARTED, FINISHED = "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:25+00:00"
#: the smallest fleet that has a pair on each of two rails
SMALL = Shape("2 nodes of 2 HCAs", 2, 2, functions=1)
#: where the scenario has its facts
SCENARIO = ROOT / "extensions" / "molecule" / "judge" / "run"


def write(fleet: Fleet, path: pathlib.Path) -> None:
    """Write what each stage is judged by, and the records of its judgement. A folder that is there goes first."""
    shutil.rmtree(path, ignore_errors=True)
    folder, wishes = FactFolder(str(path), RUN), RawIntent(fabrics_of(fleet.shape), [], cluster_of(fleet.shape))
    names = {"rdma_fabrics": wishes.fabrics, "rdma_cluster": wishes.cluster}
    versions = {"linerate.rdma": COLLECTION_VERSION}
    folder.begin(RunStart(RUN, STARTED, False, fleet.shape.names, tuple(names), wishes.fabrics, wishes.waivers, wishes.cluster, versions))
    of_cluster: typing.Dict[str, typing.Dict[str, typing.Any]] = {}
    for source, seen in fleet.facts.items():
        if isinstance(source, OfCluster):
            of_cluster.setdefault(source.kind, {})[source.key] = seen
        elif isinstance(source, (OfNodes, Chosen)):
            key = source.key if isinstance(source, OfNodes) else ""
            # a topology is asked of few nodes; of the others there is no fact
            asked = [name for name, item in seen.items() if item.value or not source.chosen]
            for name in asked:
                folder.write(source.kind, name, {key: seen[name].value} if key else seen[name].value)
            if source.chosen:
                folder.write(source.chosen, value=asked)
        elif isinstance(source, Planned):
            for name, item in seen.items():
                folder.write(source.kind, name, item)
    for kind, value in of_cluster.items():
        folder.write(kind, value=value)
    judged: typing.Dict[str, Record] = {}
    for stage in STAGES:
        facts, counts = facts_of(folder, stage)
        judged[stage] = judge_stage(StageContext(stage, RUN, STARTED, FINISHED, False, dict(judged)), wishes, facts, (), counts)
        write_record(records_dir(str(path)), judged[stage])


if __name__ == "__main__":
    write(healthy(SMALL), SCENARIO)
    print(f"{SCENARIO.relative_to(ROOT)}: run {start_of(str(SCENARIO)).run}")
