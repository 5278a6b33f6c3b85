# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab's stand-in for nccl-tests printed between virtual functions of two namespaces: a run over verbs is
proven, one over TCP is refused."""

from __future__ import annotations

import io
import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import CollectiveGroup
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.halving import RailTrial
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.channel_verdicts import RequiredProof
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.hardware import (
    NodesHardware,
    learn_gpus,
    plan_proof,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.judge import pick_figure
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.proof import Proof, prove_run
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.surroundings import UsedHca
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclLog
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import NcclTests
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
    TestName,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, PASS
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import tests as nccl_tests

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/collectives"
NODES = ("worker-1", "worker-2")
LEAST = 65536
WANTED = Collectives(
    "image", "1", "1Gi", gpus_per_node=2, gpu_direct=False, shared_memory=True, least_bytes=LEAST, most_bytes=4 * LEAST
)
GROUND = NodesHardware(
    {node: node for node in NODES},
    {
        "worker-1": {"mlx5_6": UsedHca(0, 0), "mlx5_8": UsedHca(1, 0)},
        "worker-2": {"mlx5_7": UsedHca(0, 0), "mlx5_9": UsedHca(1, 0)},
    },
    {0: 0, 1: 1},
)
#: runs that went over verbs: what was run, as the stage plans it
RUNS: dict[str, tuple[TestName, typing.Union[CollectiveGroup, RailTrial]]] = {
    "rail": ("all_reduce", CollectiveGroup("two nodes", NODES)),
    "all": ("all_reduce", CollectiveGroup("all", NODES)),
    "gather": ("all_gather", CollectiveGroup("all", NODES)),
    "scatter": ("reduce_scatter", CollectiveGroup("all", NODES)),
    "gpu1": ("all_reduce", RailTrial(1, "part", NODES, NODES)),
}


def wanted(name: str) -> RequiredProof:
    test_name, test = RUNS["all" if name == "tcp" else name]
    run = CollectiveRun(name, test_name, NODES, by_rail=name == "rail", gpu=1 if name == "gpu1" else None)
    return plan_proof(run, test, WANTED, GROUND)


def read(name: str) -> tuple[NcclLog, NcclTests]:
    (run,) = nccl_tests.parse_text((FIXTURES / f"{name}.txt").read_text(encoding="utf-8"))
    files = sorted(FIXTURES.glob(f"{name}.worker-*.txt"))
    return nccl_log.parse_files((path.name, io.StringIO(path.read_text(encoding="utf-8"))) for path in files), run


def bad(proof: Proof) -> list[tuple[str, str]]:
    return [(item.check, item.why) for item in proof.findings if item.status != PASS]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_over_verbs_is_proven_and_its_figure_counts(name: str) -> None:
    log, run = read(name)
    proof = prove_run(log, run, wanted(name))
    assert (proof.status, bad(proof)) == (PASS, [])
    assert {verdict.ways[0].partition("/")[0] for verdict in proof.channels} <= {"NET", "SHM"}
    figure = pick_figure(log, run, proof, LEAST)
    # the table has 0.01 GB/s at most
    assert (
        figure is not None
        and 0.001 < figure.bus_gbs < 0.05
        and figure.choice is not None
        and figure.choice.algorithm == "RING"
    )
    # no figure of such a message counts without a word of the intent
    assert pick_figure(log, run, proof) is None


def test_a_figure_of_a_slow_network_has_the_digits_of_its_time() -> None:
    log, run = read("rail")
    figure = pick_figure(log, run, prove_run(log, run, wanted("rail")), LEAST)
    assert figure is not None
    (row,) = (row for row in run.rows if row.size_bytes == figure.size_bytes)
    assert figure.bus_gbs == pytest.approx(sum(row.size_bytes / item.time_us / 1000 for item in row.figures) / 2)


def test_rail_by_rail_shows_which_gpu_is_beside_which_hca() -> None:
    log, _run = read("rail")
    assert learn_gpus(log, GROUND, 2) == {0: 0, 1: 1}


def test_ranks_of_one_node_are_proven_where_they_may_use_its_memory() -> None:
    log, run = read("one")
    (one,) = (CollectiveGroup("one node", NODES[:1]),)
    plan = plan_proof(CollectiveRun("one", "all_reduce", NODES[:1]), one, WANTED, GROUND)
    assert bad(prove_run(log, run, plan)) == []


def test_a_node_that_fell_back_to_tcp_is_named_and_no_figure_counts() -> None:
    log, run = read("tcp")
    proof = prove_run(log, run, wanted("tcp"))
    assert proof.status == FAIL and pick_figure(log, run, proof, LEAST) is None
    named = {
        item.subject
        for item in proof.findings
        if item.check == "collectives.transport" and item.status == FAIL and "NCCL_IB_DISABLE" in item.why
    }
    assert named and all(subject.startswith("worker-2 ") for subject in named)


def test_the_same_run_without_gpu_direct_is_refused_where_the_intent_wants_it() -> None:
    log, run = read("all")
    plan = wanted("all")
    proof = prove_run(
        log, run, RequiredProof(plan.nodes, plan.hcas, plan.rails, plan.ranks, gpu_direct=True, shared_memory=True)
    )
    assert proof.status == FAIL and "collectives.gpu_direct" in {
        item.check for item in proof.findings if item.status == FAIL
    }


def test_a_log_that_was_cut_off_proves_nothing() -> None:
    _log, run = read("all")
    texts = {path.name: path.read_text(encoding="utf-8") for path in FIXTURES.glob("all.worker-*.txt")}
    cut = texts["all.worker-2.txt"]
    texts["all.worker-2.txt"] = cut[: re.search(r"via NET", cut).start()]  # type: ignore[union-attr]
    log = nccl_log.parse_files((name, io.StringIO(text)) for name, text in texts.items())
    proof = prove_run(log, run, wanted("all"))
    assert proof.status != PASS and pick_figure(log, run, proof, LEAST) is None
