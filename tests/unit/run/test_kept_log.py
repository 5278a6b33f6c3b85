# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's log as facts of stage collectives keep it: all of it can be made again, a large fleet fits, and no pod fills
it."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives import check as collectives_check
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives import unevaluated
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.channel_verdicts import RequiredProof
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.proof import prove_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.kept_log import (
    MOST_PROBLEMS,
    KeptLog,
    KeptProcess,
    KeptRank,
    keep_log,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclLog, NcclProblem, NcclRoute
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import NcclTests
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectivesFacts,
    RanTest,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import UNKNOWN
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse, parse_text
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import BYTES_A_VALUE, count_values
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import MOST_BYTES, json_of
from ansible_collections.linerate.rdma.tests.unit.collectives_world import CLUSTER, FABRIC
from ansible_collections.linerate.rdma.tests.unit.nccl_job import RELEASES, Job

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "nccl"
HCAS = tuple(f"mlx5_{number}" for number in range(8))


def job(hosts: int) -> NcclLog:
    return parse(
        Job(
            hosts=hosts, gpus=8, hcas=HCAS, channels=16, more=("NCCL_IB_HCA set by environment to =mlx5_0,mlx5_1",)
        ).lines()
    )


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("*.txt")))
def test_a_captured_log_is_made_again_of_what_is_kept(name: str) -> None:
    log = parse_text((FIXTURES / name).read_text(encoding="utf-8"))
    kept = keep_log(log, 8)
    assert kept.restore() == log and load(KeptLog, to_data(kept), "log") == kept


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_of_each_release_is_made_again_of_what_is_kept(release: tuple[int, int, int]) -> None:
    log = parse(Job(release=release, hosts=3).lines())
    assert keep_log(log, 2).restore() == log


def test_ranks_that_send_through_another_one_of_their_node_are_alike() -> None:
    def through(route: NcclRoute, rank: int) -> NcclRoute:
        return dataclasses.replace(route, proxy=rank + 1 if route.transport == "NET" else None)

    log = job(4)
    (whole,) = log.communicators
    ranks = tuple(
        dataclasses.replace(rank, routes=tuple(through(route, rank.rank) for route in rank.routes))
        for rank in whole.ranks
    )
    log = dataclasses.replace(log, communicators=(dataclasses.replace(whole, ranks=ranks),))
    kept = keep_log(log, 8)
    assert kept.restore() == log and len(kept.rank_kinds) == len(keep_log(job(4), 8).rank_kinds)


def test_the_logs_of_1024_nodes_with_three_collectives_fit_into_a_fact() -> None:
    """Each node takes part in five runs of each collective. Rank by rank 400 nodes were the most."""
    small, large = (json_of(to_data(keep_log(job(hosts), 8))) for hosts in (16, 32))
    ranks = 1024 * 8 * 5 * 3
    for size, most in ((len, MOST_BYTES), (count_values, MOST_BYTES // BYTES_A_VALUE)):
        each = (size(large) - size(small)) / (16 * 8)
        assert ranks * each < most / 2


def test_warnings_beyond_a_number_are_told_by_it_those_of_known_kinds_last() -> None:
    made = [
        NcclProblem(kind, f"warning {number}", "", ("a",), 1, number)
        for number, kind in enumerate([""] * 500 + ["memlock"])
    ]
    kept = keep_log(NcclLog(problems=tuple(made), untold=3), 8)
    assert len(kept.shared.problems) == MOST_PROBLEMS and kept.shared.untold == 3 + 501 - MOST_PROBLEMS
    assert "memlock" in {item.kind for item in kept.shared.problems}


def test_numbers_of_nothing_leave_a_rank_unknown() -> None:
    kept = keep_log(job(2), 8)
    (whole,) = kept.communicators
    wrong = (KeptRank(0, 999, 0, "", 0), KeptRank(1, 0, 0, "", 999), *whole.ranks[2:])
    processes = (dataclasses.replace(kept.processes[0], kind=999), *kept.processes[1:])
    log = dataclasses.replace(
        kept, processes=processes, communicators=(dataclasses.replace(whole, ranks=wrong),)
    ).restore()
    assert [rank.rank for rank in log.communicators[0].ranks] == list(range(2, 16)) and len(log.processes) == 15


def test_a_folder_that_makes_much_of_little_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of ranks may name one kind with thousands of ways, in a folder of another one."""
    monkeypatch.setattr(collectives_check, "MOST_PARTS", 1000)
    intent = parse_intent([FABRIC], None, CLUSTER)
    kept = keep_log(job(1), 8)
    (whole,) = kept.communicators
    many = dataclasses.replace(kept, communicators=(dataclasses.replace(whole, ranks=whole.ranks * 20),))
    deep = dataclasses.replace(
        kept, rank_kinds=tuple(dataclasses.replace(kind, channels=10**9) for kind in kept.rank_kinds)
    )
    wide = dataclasses.replace(
        kept, processes=(*kept.processes, *(KeptProcess("a", number, "", 0) for number in range(1000)))
    )
    for log, judged in ((kept, True), (many, False), (deep, False), (wide, False)):
        facts = Facts(("a",), CollectivesFacts("compute", runs=(RanTest("all_reduce", "one node", ("a",), log=log),)))
        findings = [item for item in check(intent, facts) if item.check == "collectives.log"]
        assert [item.status for item in findings] == ([] if judged else [UNKNOWN])


def with_ranks(kept: KeptLog, times: int, channels: int = 64) -> KeptLog:
    """Return a log whose ranks are there several times, all of one kind with many channels."""
    (whole,) = kept.communicators
    kind = dataclasses.replace(kept.rank_kinds[0], channels=channels)
    ranks = tuple(dataclasses.replace(rank, kind=0) for rank in whole.ranks * times)
    return dataclasses.replace(kept, rank_kinds=(kind,), communicators=(dataclasses.replace(whole, ranks=ranks),))


@pytest.mark.parametrize(
    ("nodes", "times", "channels", "measured", "expected"),
    [
        (1, 1, 64, "", ""),
        (1, 2, 64, "16 ranks of job-worker-0", "at most 8 ranks per host"),
        (2, 1, 64, "ranks of 2 hosts", "at most 1 host"),
        (1, 1, 10_000, "a rank with 10000 channels", "at most 9999 channels"),
        (1, 1, 9_000, "log entries", "at most 50000 log entries"),
    ],
)
def test_a_log_of_more_than_the_nodes_of_its_run_can_have_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, nodes: int, times: int, channels: int, measured: str, expected: str
) -> None:
    """A rank is 50 bytes of a fact, and a verdict on each of its channels many times that."""
    monkeypatch.setattr(unevaluated, "MOST_PARTS_OF_LOG", 50_000)
    intent = parse_intent([FABRIC], None, CLUSTER)
    log = with_ranks(keep_log(job(nodes), 8), times, channels)
    runs = (RanTest("all_reduce", "one node", ("a",), log=log),)
    found = [
        item
        for item in check(intent, Facts(("a",), CollectivesFacts("compute", runs=runs)))
        if item.check == "collectives.log"
    ]
    if not expected:
        assert found == []
        return
    (finding,) = found
    assert (finding.status, finding.subject) == (UNKNOWN, "all_reduce, one node: a")
    assert measured in finding.measured and finding.expected == expected


def test_verdicts_of_a_rank_grow_with_their_causes_and_not_with_its_channels() -> None:
    log = with_ranks(keep_log(job(1), 8), 1, 9_000).restore()
    proof = prove_run(log, NcclTests(), RequiredProof(1, {}, ()))
    assert len(proof.channels) <= 2 * 8 and proof.count >= 8 * 9_000
