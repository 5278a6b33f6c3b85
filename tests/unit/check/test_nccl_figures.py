# SPDX-License-Identifier: GPL-3.0-or-later

"""By which transport the figures of nccl-tests went, by the log of the same run; and stage training on these logs."""

from __future__ import annotations

import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.channels import judge_log
from ansible_collections.linerate.rdma.plugins.module_utils._check.training import figures
from ansible_collections.linerate.rdma.plugins.module_utils._check.training.figures import judge_tests
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import (
    NcclTestRank,
    NcclTests,
    NcclTestTransport,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, PASS, UNKNOWN, WARN
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import tests as nccl_tests
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "nccl-tests"
FALLBACK = "NCCL found no RDMA device in the pod that it may use, and fell back to TCP without an error."


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def transport_of(text: str) -> NcclTestTransport:
    (run,) = judge_tests(nccl_log.parse_text(text), nccl_tests.parse_text(text))
    assert run.transport is not None
    return run.transport


@pytest.mark.parametrize("name", ["all_reduce-socket", "mpi-hosts", "mpi-tagged", "mpi-dies"])
def test_figures_over_tcp_are_not_proven(name: str) -> None:
    transport = transport_of(text_of(name))
    assert not transport.proven and transport.transports == ("NET/Socket",)
    assert transport.reasons == tuple(f"vm rank {rank}: connections: NET/Socket 4. {FALLBACK}" for rank in (0, 1))


@pytest.mark.parametrize("name", ["all_reduce-socket", "mpi-hosts", "mpi-tagged", "mpi-dies"])
def test_stage_training_refuses_tcp_by_name(name: str) -> None:
    found = [
        finding
        for finding in judge_log(nccl_log.parse_text(text_of(name)), 2, True)
        if finding.check == "training.transport"
    ]
    assert [(finding.subject, finding.status, finding.measured) for finding in found] == [
        (f"vm rank {rank}", FAIL, "connections: NET/Socket 4") for rank in (0, 1)
    ]
    assert all(finding.why == FALLBACK and "ibv_devinfo" in finding.remedy for finding in found)


@pytest.mark.parametrize(("name", "way"), [("all_reduce-info", "P2P/direct pointer"), ("all_reduce-shm", "SHM/direct")])
def test_figures_within_a_host_name_their_transport(name: str, way: str) -> None:
    assert transport_of(text_of(name)) == NcclTestTransport(True, (way,))
    findings = judge_log(nccl_log.parse_text(text_of(name)), 2, True)
    assert {finding.status for finding in findings} <= {PASS, WARN}
    of_ranks = [finding for finding in findings if finding.check == "training.transport"]
    assert {finding.status for finding in of_ranks} == {WARN if way.startswith("SHM") else PASS}
    assert {finding.measured.removeprefix("connections: ").rpartition(" ")[0] for finding in of_ranks} == {way}


def test_a_network_that_does_not_start_proves_nothing_and_is_named() -> None:
    text = text_of("all_reduce-ib")
    transport = transport_of(text)
    assert not transport.proven and transport.transports == ()
    assert transport.reasons[0] == "vm process 1725: the log contains no communicator of this process"
    (finding,) = [item for item in judge_log(nccl_log.parse_text(text), 2, True) if item.check == "training.problem"]
    assert (finding.status, finding.measured) == (
        FAIL,
        "Failed to initialize any NET plugin (2 times)",
    ) and "NCCL_NET" in finding.remedy


def test_figures_without_a_log_are_not_proven() -> None:
    transport = transport_of(text_of("mpi"))
    assert not transport.proven and transport.transports == () and "none of NCCL" in transport.reasons[-1]


def test_a_channel_whose_line_is_lost_leaves_it_unproven() -> None:
    lines = text_of("all_reduce-info").splitlines(keepends=True)
    transport = transport_of("".join(line for line in lines if "Channel 07/0 : 1[1] -> 0[0]" not in line))
    assert not transport.proven and transport.reasons[0].startswith(
        "vm rank 1: 23 of 24 channels with a connection. The log has no outgoing connection of this rank on channel 7"
    )


# over the network: logs that are written by the forms of NCCL's source, as the captures are of a machine without an HCA

JOB = Job()


def run_of(job: Job, ranks: typing.Sequence[int]) -> NcclTests:
    log = nccl_log.parse(job.lines())
    processes = {rank.rank: (rank.host, rank.pid) for item in log.communicators for rank in item.ranks}
    listed = tuple(
        NcclTestRank(rank, 0, processes[rank][1], f"{processes[rank][0]}.example.com", 0, "0000:1b:00", "NVIDIA H100")
        for rank in ranks
    )
    (run,) = judge_tests(log, (NcclTests(ranks=listed),))
    return run


def test_figures_over_the_hcas_are_proven() -> None:
    transport = run_of(JOB, range(4)).transport
    assert transport == NcclTestTransport(True, ("NET/IB/GDRDMA", "P2P/CUMEM"))


def test_a_long_list_that_is_cut_off_is_found_by_its_first_rank() -> None:
    assert run_of(JOB, (0,)).transport == NcclTestTransport(True, ("NET/IB/GDRDMA", "P2P/CUMEM"))


def test_without_gpu_direct_the_transport_says_so() -> None:
    transport = run_of(Job(gpu_direct=False), range(4)).transport
    assert transport is not None and transport.transports == ("NET/IB", "P2P/CUMEM")


def test_a_log_of_another_job_proves_nothing() -> None:
    other = NcclTests(ranks=(NcclTestRank(0, 0, 7, "elsewhere", 0, "0x00", "x"),))
    (run,) = judge_tests(nccl_log.parse(JOB.lines()), (other,))
    assert run.transport is not None and not run.transport.proven and run.transport.transports == ()
    assert run.transport.reasons[0] == "elsewhere process 7: the log contains no communicator of this process"


def test_a_version_that_lists_no_ranks_is_judged_by_the_whole_log() -> None:
    (run,) = judge_tests(nccl_log.parse(JOB.lines()), (NcclTests(),))
    assert run.transport is not None and run.transport.proven


def test_runs_of_the_same_processes_are_judged_once_and_of_many_groups_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[int] = []

    def counted(log: typing.Any, *options: typing.Any) -> typing.Any:
        judged.append(len(log.communicators))
        return judge_log(log, *options)

    monkeypatch.setattr(figures, "judge_log", counted)
    log = nccl_log.parse(JOB.lines())
    runs = judge_tests(log, (NcclTests(),) * 300)
    assert len(judged) == 1 and all(run.transport is not None and run.transport.proven for run in runs)
    judged.clear()
    others = [NcclTests(ranks=(NcclTestRank(0, 0, number, "elsewhere", 0, "0x00", "x"),)) for number in range(2000)]
    last = judge_tests(log, others)[-1]
    assert len(judged) < 200
    assert last.transport == NcclTestTransport(
        False,
        (),
        (("the log contains runs of too many different process groups: provide a separate log for each run"),),
    )


def test_ranks_that_are_alone_prove_nothing() -> None:
    line = "vm:1:1 [0] NCCL INFO {}comm 0x1 rank 0 nranks 1 cudaDev 0 busId 60 commId 0xfb - Init COMPLETE\n"
    log = nccl_log.parse([line.format(""), "vm:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"])
    (run,) = judge_tests(log, (NcclTests(ranks=(NcclTestRank(0, 0, 1, "vm", 0, "0x00", "x"),)),))
    assert run.transport == NcclTestTransport(
        False, (), ("no rank has a channel, because each rank is alone in its communicator",)
    )
    assert UNKNOWN not in {finding.status for finding in judge_log(log, None, False)}
