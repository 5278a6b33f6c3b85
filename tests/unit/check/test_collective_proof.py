# SPDX-License-Identifier: GPL-3.0-or-later

"""Which figures of nccl-tests count: real captures are refused by name, and a run over the HCAs counts only when each
channel of each rank is proven."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.channel_verdicts import RequiredProof
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.proof import Proof, count_rows, prove_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import (
    NcclTestFigure,
    NcclTestRank,
    NcclTestRow,
    NcclTests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, PASS, UNKNOWN, Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import tests as nccl_tests
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "nccl-tests"
ONE_NODE = RequiredProof(1, {}, ())
TWO_NODES = RequiredProof(2, {f"job-worker-{host}": {"mlx5_21": 0, "mlx5_22": 1} for host in (0, 1)}, (0, 1))
WHOLE = NcclTests(
    "all_reduce",
    rows=(
        NcclTestRow(
            1 << 30,
            1 << 28,
            "float",
            "sum",
            None,
            NcclTestFigure(5000.0, 214.7, 375.8, 0),
            NcclTestFigure(5000.0, 214.7, 375.8, 0),
        ),
    ),
    out_of_bounds=0,
    average_bus_gbs=375.8,
    concluded=True,
)


#: releases of NCCL beside 2.28.9 whose output was captured
RELEASES = ("2.27.7", "2.31.2", "2.32.3")


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")


def prove_text(text: str, wanted: RequiredProof) -> tuple[NcclTests, Proof]:
    (run,) = nccl_tests.parse_text(text)
    return run, prove_run(nccl_log.parse_text(text), run, wanted)


def not_passed(proof: Proof) -> list[Finding]:
    return [finding for finding in proof.findings if finding.status != PASS]


def named(proof: Proof, check: str) -> list[Finding]:
    return [finding for finding in not_passed(proof) if finding.check == f"collectives.{check}"]


# captures


@pytest.mark.parametrize(
    "name",
    [
        "all_reduce-socket",
        "mpi-hosts",
        "mpi-tagged",
        "mpi-dies",
        *(f"{release}/{name}" for release in RELEASES for name in ("all_reduce-socket", "mpi-hosts")),
    ],
)
def test_figures_over_tcp_are_refused_by_name(name: str) -> None:
    run, proof = prove_text(text_of(name), RequiredProof(2, {"vm": {"mlx5_0": 0}}, (0,)))
    assert proof.status == FAIL and count_rows(run, proof) == ()
    ways = named(proof, "way")
    assert [finding.measured for finding in ways] == ["channel 0-1: NET/Socket"] * 2
    assert {finding.why for finding in ways} == {"The data passes over TCP (NET/Socket)."}
    first, _second = named(proof, "transport")
    assert "fell back to TCP without an error" in first.why and "ibv_devinfo" in first.remedy


def test_a_rank_that_dies_is_named_beside_the_transport() -> None:
    _run, proof = prove_text(text_of("mpi-dies"), RequiredProof(2, {"vm": {}}, ()))
    (figures,) = named(proof, "figures")
    assert figures.status == UNKNOWN and "the row of 67108864 bytes is incomplete" in figures.why


@pytest.mark.parametrize("name", ["all_reduce-shm", "2.27.7/all_reduce-shm", "2.32.3/all_reduce-shm"])
def test_shared_memory_is_refused_by_name(name: str) -> None:
    run, proof = prove_text(text_of(name), ONE_NODE)
    assert proof.status == FAIL and count_rows(run, proof) == ()
    assert {(finding.check, finding.status) for finding in not_passed(proof)} == {("collectives.way", FAIL)}
    way, _other = named(proof, "way")
    assert (
        way.measured == "channel 0-3: SHM/direct"
        and "host memory (SHM)" in way.why
        and "NCCL_P2P_DISABLE" in way.remedy
    )


def test_shared_memory_that_the_intent_allows_is_proven() -> None:
    run, proof = prove_text(text_of("all_reduce-shm"), dataclasses.replace(ONE_NODE, shared_memory=True))
    assert not_passed(proof) == [] and count_rows(run, proof) == run.rows


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("all_reduce-info", 48),
        ("2.27.7/all_reduce-info", 48),
        ("2.32.3/all_reduce-info", 48),
        # sends and receives have connections of their own, without rings
        ("2.31.2/alltoall", 2),
    ],
)
def test_one_node_over_nvlink_is_proven(name: str, count: int) -> None:
    run, proof = prove_text(text_of(name), ONE_NODE)
    assert not_passed(proof) == [] and proof.status == PASS and count_rows(run, proof) == run.rows and run.rows
    assert proof.count == count and {verdict.ways for verdict in proof.channels} == {("P2P/direct pointer",)}


def test_one_node_is_not_two() -> None:
    _run, proof = prove_text(text_of("all_reduce-info"), RequiredProof(2, {"vm": {"mlx5_0": 0}}, (0,)))
    assert [finding.measured for finding in named(proof, "nodes")] == ["1 node"] and proof.status == FAIL
    assert all("A possible cause is the variable NCCL_HOSTID" in finding.why for finding in named(proof, "nodes"))


@pytest.mark.parametrize("name", ["all_reduce-ib", *(f"{release}/all_reduce-ib" for release in RELEASES)])
def test_a_network_that_does_not_start_is_refused(name: str) -> None:
    _run, proof = prove_text(text_of(name), TWO_NODES)
    assert proof.status == FAIL and [finding.status for finding in named(proof, "figures")] == [FAIL]
    assert "NCCL_NET" in named(proof, "problem")[0].remedy


@pytest.mark.parametrize("name", ["all_reduce", "mpi", "all_reduce-threads"])
def test_figures_without_a_log_are_unknown(name: str) -> None:
    run, proof = prove_text(text_of(name), ONE_NODE)
    assert (
        proof.status == UNKNOWN
        and count_rows(run, proof) == ()
        and named(proof, "log")[0].why == "NCCL writes no log unless NCCL_DEBUG is set."
    )


def test_point_to_point_is_never_proven_by_a_log() -> None:
    _run, proof = prove_text(text_of("sendrecv"), ONE_NODE)
    (channels,) = named(proof, "channels")
    assert proof.status == UNKNOWN and "first use" in channels.why and "all_reduce" in channels.remedy


def test_values_that_nobody_checked_do_not_count() -> None:
    _run, proof = prove_text(text_of("all_reduce-nocheck"), ONE_NODE)
    assert [(finding.status, finding.measured) for finding in named(proof, "figures")] == [
        (UNKNOWN, "values not verified")
    ]


def test_ranks_that_are_alone_have_no_figure() -> None:
    _run, proof = prove_text(text_of("mpi-split"), ONE_NODE)
    (groups,) = named(proof, "groups")
    assert (
        (groups.status, groups.measured) == (UNKNOWN, "2 groups")
        and "-a 3" in groups.remedy
        and proof.status == UNKNOWN
    )


@pytest.mark.parametrize("place", range(0, 100, 9))
@pytest.mark.parametrize("name", ["all_reduce-info", "all_reduce-shm", "mpi-hosts"])
def test_a_log_that_is_cut_anywhere_is_not_proven(name: str, place: int) -> None:
    text = text_of(name)
    runs = nccl_tests.parse_text(text[: len(text) * place // 100])
    log = nccl_log.parse_text(text[: len(text) * place // 100])
    proofs = [prove_run(log, run, ONE_NODE) for run in runs]
    assert all(proof.status != PASS for proof in proofs)
    # the stage reads the logs itself, so its user cannot give it another one
    assert not any("training_logs" in finding.remedy for proof in proofs for finding in proof.findings)


# over the HCAs: written by the forms of NCCL's source


def run_of(job: Job, **fields: typing.Any) -> NcclTests:
    ranks = tuple(
        NcclTestRank(host * job.gpus + gpu, 0, 100 + gpu, f"job-worker-{host}", gpu, "0000:1b:00", "NVIDIA H100")
        for host in range(job.hosts)
        for gpu in range(job.gpus)
    )
    return dataclasses.replace(WHOLE, **{"ranks": ranks, **fields})


def prove(job: Job, wanted: RequiredProof = TWO_NODES, **fields: typing.Any) -> Proof:
    return prove_run(nccl_log.parse(job.lines()), run_of(job, **fields), wanted)


JOB = Job()


def test_a_run_over_the_hcas_is_proven() -> None:
    proof = prove(JOB)
    assert not_passed(proof) == [] and count_rows(run_of(JOB), proof) == WHOLE.rows
    assert {verdict.ways for verdict in proof.channels} == {("NET/IB/GDRDMA", "P2P/CUMEM"), ("NET/IB/GDRDMA",)}
    assert {finding.check.partition(".")[2] for finding in proof.findings} == {
        "figures",
        "groups",
        "nodes",
        "way",
        "rails",
    }


def test_wrong_values_fail() -> None:
    row = dataclasses.replace(WHOLE.rows[0], in_place=NcclTestFigure(5000.0, 214.7, 375.8, 3))
    (figures,) = named(prove(JOB, rows=(row,)), "figures")
    assert (figures.status, figures.measured) == (FAIL, "3 wrong values") and "Xid" in figures.remedy
    (figures,) = named(prove(JOB, out_of_bounds=2), "figures")
    assert (figures.status, figures.measured) == (FAIL, "2 wrong values")


def test_wrong_values_name_the_size_of_chunks() -> None:
    job = dataclasses.replace(JOB, more=("NCCL_CHUNK_SIZE set by environment to 1048576.",))
    (figures,) = named(prove(job, out_of_bounds=2), "figures")
    assert "NCCL_CHUNK_SIZE is set" in figures.why and figures.remedy.startswith(
        "Remove NCCL_CHUNK_SIZE from the image"
    )


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"errors": ("Test timeout (60s) Pid 1",)}, FAIL, "ended with an error"),
        (
            {"lacks": ("the end of the output is missing",)},
            UNKNOWN,
            "The output of the test is not complete: the end of the output is missing",
        ),
        ({"cpu_time": True}, UNKNOWN, "option -C"),
    ],
)
def test_a_run_that_is_not_whole_does_not_count(fields: dict[str, typing.Any], status: str, said: str) -> None:
    proof = prove(JOB, **fields)
    (figures,) = named(proof, "figures")
    assert figures.status == status and said in figures.why and proof.status == status


def test_without_gpu_direct_it_fails_unless_nobody_asks_for_it() -> None:
    job = dataclasses.replace(JOB, gpu_direct=False)
    proof = prove(job)
    assert (
        proof.status == FAIL
        and all("without GPUDirect RDMA" in finding.why for finding in named(proof, "way"))
        and named(proof, "gpu_direct")
    )
    assert not_passed(prove(job, dataclasses.replace(TWO_NODES, gpu_direct=False))) == []


def test_an_hca_of_another_fabric_fails() -> None:
    proof = prove(dataclasses.replace(JOB, hcas=("mlx5_21", "mlx5_9")))
    assert {finding.why for finding in named(proof, "way")} == {"The rank uses mlx5_9, which is not on the fabric."}
    assert [(finding.subject, finding.status, finding.measured) for finding in named(proof, "rails")] == [
        ("job-worker-0", FAIL, "rail 0"),
        ("job-worker-1", FAIL, "rail 0"),
    ]


def test_a_rail_that_nothing_uses_fails() -> None:
    proof = prove(dataclasses.replace(JOB, hcas=("mlx5_21",)))
    assert {finding.why for finding in named(proof, "rails")} == {
        (
            "No channel uses rail 1. Possible causes: NCCL_IB_HCA excludes the HCA of the rail, its port is down, or no"
            " GPU of the test is near the HCA."
        )
    } and proof.status == FAIL


def test_a_rail_that_is_not_known_is_unknown() -> None:
    hcas = {host: {"mlx5_21": 0, "mlx5_22": None} for host in TWO_NODES.hcas}
    proof = prove(JOB, dataclasses.replace(TWO_NODES, hcas=hcas))
    assert {(finding.status, finding.why) for finding in not_passed(proof)} == {
        (UNKNOWN, "The rail of mlx5_22 is unknown.")
    }


def test_a_host_whose_hcas_are_not_known_is_unknown() -> None:
    proof = prove(JOB, dataclasses.replace(TWO_NODES, hcas={"job-worker-0": TWO_NODES.hcas["job-worker-0"]}))
    assert proof.status == UNKNOWN and any(
        "The HCAs of host job-worker-1" in finding.why for finding in named(proof, "way")
    )


@pytest.mark.parametrize("network", ["AWS Libfabric", "Spectrum-X"])
def test_a_network_of_a_plugin_is_unknown(network: str) -> None:
    assert prove(dataclasses.replace(JOB, network=network)).status == UNKNOWN


def test_nvlink_between_nodes_is_not_the_network() -> None:
    proof = prove(dataclasses.replace(JOB, inside="P2P/MNNVL"))
    assert "NCCL_MNNVL_ENABLE=0" in named(proof, "way")[0].remedy and proof.status == FAIL


def test_a_network_within_a_node_fails() -> None:
    proof = prove(JOB, RequiredProof(1, TWO_NODES.hcas, ()))
    assert (
        any("between the GPUs of one node passes over the network" in finding.why for finding in named(proof, "way"))
        and proof.status == FAIL
    )


@pytest.mark.parametrize(
    "line", [" : 1[1] -> 2[0] [send]", " : 3[1] -> 0[0] [send]", " : 1[1] -> 2[0] [receive]", " : 0[0] -> 1[1] via"]
)
def test_a_line_that_is_lost_leaves_it_unproven(line: str) -> None:
    lines = [text for text in JOB.lines() if f"Channel 02/0{line}" not in text]
    assert len(lines) == len(list(JOB.lines())) - 1
    assert prove_run(nccl_log.parse(lines), run_of(JOB), TWO_NODES).status == UNKNOWN


def test_a_channel_that_stays_within_the_nodes_is_unknown() -> None:
    text = JOB.text().replace(
        "Channel 03/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA", "Channel 03/0 : 1[1] -> 2[0] via P2P/CUMEM"
    )
    lines = [line for line in text.splitlines(keepends=True) if "Channel 03/0 : 1[1] -> 2[0] [receive]" not in line]
    proof = prove_run(nccl_log.parse(lines), run_of(JOB), TWO_NODES)
    assert [finding.measured for finding in named(proof, "network")] == [
        "3 of 4 channels leave each node over the network"
    ] and proof.status == UNKNOWN


def test_a_process_without_a_log_is_unknown() -> None:
    lines = [line for line in JOB.lines() if not line.startswith("job-worker-1:101:")]
    proof = prove_run(nccl_log.parse(lines), run_of(JOB), TWO_NODES)
    assert proof.status == UNKNOWN and named(proof, "ranks")[0].subject == "job-worker-1 process 101"


EACH = dataclasses.replace(JOB, each_to_each=True)


def prove_each(text: str, job: Job = EACH) -> Proof:
    return prove_run(nccl_log.parse_text(text), run_of(job, collective="alltoall"), TWO_NODES)


def test_a_test_of_each_to_each_is_proven_by_its_connections() -> None:
    proof = prove_each(EACH.text())
    assert not_passed(proof) == [] and proof.status == PASS and proof.count == 4
    assert prove_text(text_of("alltoall"), ONE_NODE)[1].status == UNKNOWN
    # by the GPU on the rail of the target (PXN)
    assert prove_each(EACH.text().replace("via NET/IB/1/GDRDMA", "via NET/IB/1(0)/GDRDMA")).status == PASS
    # a ring alone says nothing of it
    assert prove_each(JOB.text()).status == UNKNOWN


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1[1] -> 2[0] [send]", "1 connection to ranks on other nodes, but there are 2"),
        ("1[1] -> 2[0] [receive]", "1 connection from ranks on other nodes, but there are 2"),
        ("0[0] -> 1[1] via", "0 connections to ranks on the same node, but there are 1"),
    ],
)
def test_a_connection_that_is_lost_leaves_a_test_of_each_to_each_unproven(line: str, said: str) -> None:
    text = "".join(each for each in EACH.lines() if f"Channel 00/1 : {line}" not in each)
    proof = prove_each(text)
    assert proof.status == UNKNOWN and any(said in finding.why for finding in named(proof, "way"))


@pytest.mark.parametrize(
    "job",
    [
        dataclasses.replace(EACH, network="Socket", hcas=()),
        dataclasses.replace(EACH, inside="SHM/direct"),
        dataclasses.replace(EACH, gpu_direct=False),
        dataclasses.replace(EACH, hcas=("mlx5_21", "mlx5_9")),
    ],
    ids=("TCP", "shared memory", "without GPUDirect", "another HCA"),
)
def test_a_test_of_each_to_each_by_another_path_fails(job: Job) -> None:
    assert prove_each(job.text(), job).status == FAIL


def rail_by_rail() -> tuple[str, NcclTests]:
    """Two groups of NCCL_TESTS_SPLIT, each with one GPU and one HCA of each node."""
    text, ranks = "", []
    for rail, name in enumerate(("mlx5_21", "mlx5_22")):
        one = Job(gpus=1, hcas=(name,)).text()
        text += one.replace(":100:200 ", f":{100 + rail}:{200 + rail} ").replace(
            "0x6b99be0cc5a5bfbf", f"0x6b99be0cc5a5bfb{rail}"
        )
        ranks += [
            NcclTestRank(2 * host + rail, rail, 100 + rail, f"job-worker-{host}", rail, "0000:1b:00", "NVIDIA H100")
            for host in (0, 1)
        ]
    return text, dataclasses.replace(WHOLE, ranks=tuple(ranks))


def test_rail_by_rail_is_proven_by_the_slowest_group() -> None:
    text, run = rail_by_rail()
    wanted = dataclasses.replace(TWO_NODES, slowest_group=True, groups=2, ranks=2)
    proof = prove_run(nccl_log.parse_text(text), run, wanted)
    assert not_passed(proof) == [] and proof.count == 16
    assert [finding.check for finding in not_passed(prove_run(nccl_log.parse_text(text), run, TWO_NODES))] == [
        "collectives.groups"
    ]
    # a list of ranks that is cut off does not say that there is another group
    lines = [line for line in text.splitlines(keepends=True) if ":101:" not in line]
    cut = dataclasses.replace(run, ranks=run.ranks[:1])
    assert "1 group in the log" in {
        finding.measured for finding in not_passed(prove_run(nccl_log.parse(lines), cut, wanted))
    }
