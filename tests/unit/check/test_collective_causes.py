# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a proven figure what it should be, and if not, why: each cause has its own evidence and remedy, and a case like
NVIDIA/nccl#2409 ends with one."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.causes import find_causes
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.channel_verdicts import RequiredProof
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.floor import (
    NodeFigure,
    Shape,
    compute_bandwidth_floor,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.judge import (
    CollectiveFigure,
    find_algorithm,
    judge_figure,
    judge_inside,
    pick_figure,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.network_causes import (
    check_traffic_class,
    has_wrong_traffic_class,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.proof import prove_run
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.surroundings import Surroundings, UsedHca
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclChoice, NcclLog, NcclProcess
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import (
    NcclTestFigure,
    NcclTestRank,
    NcclTestRow,
    NcclTests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import ExpectedBusbw
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import NodeTuning, Roce, RowReading
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

GIB = 1 << 30
HCAS = tuple(f"mlx5_{rail}" for rail in range(8))
HOSTS = ("job-worker-0", "job-worker-1")
CHOICE = "AllReduce: 8589934592 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}"
JOB = Job(gpus=8, hcas=HCAS, channels=16, more=(CHOICE,))
WANTED = RequiredProof(2, {host: {name: rail for rail, name in enumerate(HCAS)} for host in HOSTS}, tuple(range(8)))
SEEN = Surroundings(
    {host: {name: UsedHca(rail, rail // 4, 392.0) for rail, name in enumerate(HCAS)} for host in HOSTS},
    from_gpu_memory=True,
)
FLOOR = compute_bandwidth_floor("all_reduce", Shape(2, 8), [392.0] * 8, "nvls_tree", NodeFigure(480.0, "nvls"))


def row(size: int, bus: float, wrong: int = 0) -> NcclTestRow:
    figure = NcclTestFigure(size / (bus / 1.875) / 1000, bus / 1.875, bus, wrong)
    return NcclTestRow(size, size // 4, "float", "sum", None, figure, figure)


def run_of(*rows: NcclTestRow, job: Job = JOB) -> NcclTests:
    ranks = tuple(
        NcclTestRank(host * job.gpus + gpu, 0, 100 + gpu, f"job-worker-{host}", gpu, "x", "H100")
        for host in range(job.hosts)
        for gpu in range(job.gpus)
    )
    return NcclTests(
        "all_reduce",
        ranks=ranks,
        rows=rows,
        out_of_bounds=0,
        average_bus_gbs=rows[0].figures[0].bus_gbs,
        concluded=True,
    )


def log_of(job: Job = JOB) -> NcclLog:
    return nccl_log.parse(job.lines())


def judge(*rows: NcclTestRow, job: Job = JOB, seen: Surroundings = SEEN, **more: typing.Any) -> tuple[Finding, ...]:
    log, run = log_of(job), run_of(*rows, job=job)
    return judge_figure("two nodes", log, run, prove_run(log, run, WANTED), more.pop("floor", FLOOR), seen, **more)


# the figure


def test_a_figure_above_the_floor_passes() -> None:
    (finding,) = judge(row(GIB, 400.0), row(8 * GIB, 470.0))
    assert (finding.status, finding.measured) == (PASS, "470.0 GB/s with messages of 8 GiB, NVLS_TREE")
    assert (
        finding.expected
        == "at least 462.9 GB/s (0.9 x 514.3 GB/s, from 8 rails x 392 Gb/s, 2 nodes x 8 GPUs, nvls_tree)"
    )


@pytest.mark.parametrize("slow", [(240.0, 120.0, 60.0), (470.0, 470.0, 60.0), (100.0, 470.0, 60.0)])
def test_larger_messages_that_are_slow_fail_although_smaller_ones_are_fast(slow: tuple[float, ...]) -> None:
    found = judge(row(GIB, 470.0), *(row(GIB << step, bus) for step, bus in enumerate(slow, 1)))
    assert found[0].status == FAIL and "470.0 GB/s with messages of" in found[0].measured
    assert found[0].measured.startswith("60.0 GB/s with messages of 8 GiB")
    assert "Larger messages are slower than smaller ones" in found[0].why


def test_messages_that_are_about_as_fast_as_the_fastest_pass() -> None:
    # smaller ones may stay below the floor, and repeated runs differ
    (finding,) = judge(row(GIB, 300.0), row(2 * GIB, 440.0), row(4 * GIB, 470.0), row(8 * GIB, 455.0))
    assert (finding.status, finding.measured) == (PASS, "470.0 GB/s with messages of 4 GiB")


def test_larger_messages_that_are_slow_hide_no_figure_above_the_links() -> None:
    (finding,) = judge(row(4 * GIB, 600.0), row(8 * GIB, 480.0))
    assert finding.status == UNKNOWN and "which the links carry" in finding.expected


def test_larger_messages_that_are_slow_may_reach_the_floor_of_the_intent() -> None:
    wanted = ExpectedBusbw("all_reduce", 240.0, "half of the rails are for storage")
    (finding,) = judge(row(4 * GIB, 400.0), row(8 * GIB, 250.0), wanted=wanted)
    assert finding.status == PASS and finding.measured.startswith("250.0 GB/s with messages of 8 GiB")


@pytest.mark.parametrize(
    ("lines", "rows", "words"),
    [
        (("NCCL_IB_TC set by environment to 106.",), {}, ""),
        (("NCCL_IB_TC set by environment to 0.",), {}, "NCCL_IB_TC=0"),
        ((), {"roce_traffic_class": RowReading("106")}, ""),
        ((), {"roce_traffic_class": RowReading("0")}, "NCCL_IB_TC not set"),
        ((), {}, "the log shows no NCCL_IB_TC"),
    ],
)
def test_a_figure_of_another_traffic_class_warns(
    lines: tuple[str, ...], rows: dict[str, RowReading], words: str
) -> None:
    tuning = NodeTuning({name: (reading,) for name, reading in rows.items()})
    seen = dataclasses.replace(SEEN, roce=Roce(), tunings=dict.fromkeys(HOSTS, tuning))
    (finding,) = judge(row(8 * GIB, 470.0), job=says(*lines), seen=seen)
    assert finding.status == (WARN if words else PASS) and words in finding.measured
    # no class is expected where the fabric has none
    (finding,) = judge(row(8 * GIB, 470.0), job=says(*lines))
    assert finding.status == PASS


def test_one_process_of_a_host_shows_its_traffic_class() -> None:
    """A process that connects no HCA does not log the variable."""
    processes = [NcclProcess("a", 1, environment={"NCCL_IB_TC": "106"}), NcclProcess("a", 2), NcclProcess("b", 3)]
    seen = Surroundings(roce=Roce())
    (finding,) = check_traffic_class(processes, seen)
    assert (finding.subject, finding.status) == ("b", WARN)
    # not shown is no evidence for a repeat with the class
    assert not has_wrong_traffic_class(processes, seen)
    processes.append(NcclProcess("b", 4, environment={"NCCL_IB_TC": "0"}))
    assert has_wrong_traffic_class(processes, seen)


def test_a_floor_that_sinks_with_the_inside_of_the_nodes_warns() -> None:
    """Where all nodes are slow inside for one cause, none is unlike the others, and the floor is low as well."""
    low = compute_bandwidth_floor("all_reduce", Shape(2, 8), [392.0] * 8, "nvls_tree", NodeFigure(20.0, "nvls"))
    assert low is not None and low.floor_gbs < 20 and low.network_gbs == pytest.approx(0.9 * 392)
    (finding,) = judge(row(8 * GIB, 20.0), floor=low)
    assert finding.status == WARN and "352.8 GB/s" in finding.expected and "nvidia-fabricmanager" in finding.remedy
    # the figure of rails that are full needs no more
    (finding,) = judge(row(8 * GIB, 360.0), floor=dataclasses.replace(low, most_gbs=400.0))
    assert finding.status == PASS
    # and the user's word stands for the hardware
    own = ExpectedBusbw("all_reduce", 18.0, "PCIe alone between the GPUs")
    (finding,) = judge(row(8 * GIB, 20.0), floor=low, wanted=own)
    assert finding.status == PASS


def test_the_algorithm_of_the_figure_is_read_from_the_log() -> None:
    log, run = log_of(), run_of(row(8 * GIB, 470.0))
    figure = pick_figure(log, run, prove_run(log, run, WANTED))
    assert (
        figure is not None
        and figure.choice == NcclChoice("AllReduce", 8 * GIB, "NVLS_TREE", "SIMPLE", 16)
        and find_algorithm(figure, log) == "nvls_tree"
    )
    other = run_of(row(4 * GIB, 470.0))
    figure = pick_figure(log, other, prove_run(log, other, WANTED))
    assert figure is not None and figure.choice is None and find_algorithm(figure, log) is None


def test_an_older_release_says_neither_function_nor_channels() -> None:
    job = dataclasses.replace(JOB, more=("8589934592 Bytes -> Algo 5 proto 2 time 34.693867",))
    log, run = log_of(job), run_of(row(8 * GIB, 470.0))
    figure = pick_figure(log, run, prove_run(log, run, WANTED))
    assert (
        figure is not None
        and find_algorithm(figure, log) == "nvls_tree"
        and judge(row(8 * GIB, 470.0), job=job)[0].status == PASS
    )
    assert [cause.measured for cause in causes(job, choice=figure.choice)] == [
        "0 causes found in NCCL's log and in the data of the nodes"
    ]


def test_an_all_gather_is_of_all_ranks_in_the_test_and_of_one_in_the_log() -> None:
    job = dataclasses.replace(
        JOB, more=("AllGather: 536870912 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}",)
    )
    log, run = log_of(job), dataclasses.replace(run_of(row(8 * GIB, 340.0)), collective="all_gather")
    figure = pick_figure(log, run, prove_run(log, run, WANTED))
    assert figure is not None and figure.choice is not None and find_algorithm(figure, log) == "ring"


@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        ((row(1 << 29, 470.0),), {}, "no message of at least 1 GiB"),
        ((row(8 * GIB, 600.0),), {}, "at most 514.3 GB/s, which the links carry"),
        ((row(8 * GIB, 470.0),), {"floor": None}, "No formula is known"),
        (
            (row(8 * GIB, 470.0),),
            {"job": dataclasses.replace(JOB, network="Socket", hcas=())},
            "does not prove over which transport this test ran, so its bandwidth does not count",
        ),
    ],
)
def test_figures_that_tell_nothing_are_unknown(
    rows: tuple[NcclTestRow, ...], more: dict[str, typing.Any], said: str
) -> None:
    (finding,) = judge(*rows, **more)
    assert (
        finding.status == UNKNOWN
        and said in f"{finding.measured}; {finding.expected}; {finding.why}"
        and finding.remedy
    )


def test_a_figure_that_wrong_values_make_is_none() -> None:
    # NVIDIA/nccl#2408: chunks of 1 MiB gave seven times the bandwidth, and wrong values
    log, run = log_of(), run_of(row(8 * GIB, 470.0, wrong=5))
    proof = prove_run(log, run, WANTED)
    (finding,) = judge_figure("two nodes", log, run, proof, FLOOR, SEEN)
    assert proof.status == FAIL and finding.status == UNKNOWN and finding.measured == "not verified"


def test_the_intent_has_its_own_floor_with_a_reason() -> None:
    wanted = ExpectedBusbw("all_reduce", 240.0, "half of the rails are for storage")
    (finding,) = judge(row(8 * GIB, 241.0), wanted=wanted)
    assert (
        finding.status == PASS
        and finding.expected == "at least 240.0 GB/s, set in the intent: half of the rails are for storage"
    )
    assert judge(row(8 * GIB, 239.0), wanted=wanted)[0].status == FAIL
    assert judge(row(8 * GIB, 239.0), wanted=wanted, floor=None)[0].status == FAIL


def test_nodes_are_held_against_their_like() -> None:
    figures = {
        f"node-{number}": CollectiveFigure(8 * GIB, bus) for number, bus in enumerate((370.0, 372.0, 340.0, 371.0))
    }
    findings = judge_inside(figures)
    assert [(finding.subject, finding.status) for finding in findings] == [
        ("node-0", PASS),
        ("node-1", PASS),
        ("node-2", FAIL),
        ("node-3", PASS),
    ]
    assert (
        findings[2].measured == "340.0 GB/s with messages of 8 GiB"
        and findings[2].expected == "at least 344.6 GB/s (0.93 x the median of 4 nodes)"
    )
    assert "nvlink" in findings[2].remedy
    # two nodes are no measure for each other, unless the intent is
    two = {name: figures[name] for name in ("node-0", "node-2")}
    assert {finding.status for finding in judge_inside(two)} == {PASS} and judge_inside({}) == ()
    wanted = ExpectedBusbw("all_reduce", 350.0, "as the first rack")
    assert [finding.status for finding in judge_inside(two, wanted)] == [PASS, FAIL]


# a case like NVIDIA/nccl#2409: 231 GB/s of 470, each rail at line rate by ib_write_bw from the host's memory, GPUDirect
# RDMA on, 8 queue pairs

PUBLIC = dataclasses.replace(
    JOB, more=(CHOICE, "NCCL_IB_QPS_PER_CONNECTION set by environment to 8.", "NCCL_IB_TC set by environment to 106.")
)


def test_the_public_case_is_not_green_and_names_what_was_not_measured() -> None:
    seen = dataclasses.replace(SEEN, from_gpu_memory=False, roce=Roce())
    bandwidth, *causes = judge(row(GIB, 216.5), row(8 * GIB, 231.0), job=PUBLIC, seen=seen)
    assert (bandwidth.status, bandwidth.measured) == (
        FAIL,
        "231.0 GB/s with messages of 8 GiB, NVLS_TREE",
    ) and bandwidth.why.startswith("The bandwidth is 50% of the minimum")
    (cause,) = causes
    assert (
        "rates of the rails from host memory" in cause.why
        and "ACS" in cause.why
        and "bandwidth.layers: all" in cause.remedy
        and cause.why in bandwidth.why
    )


def test_the_public_case_with_what_the_nodes_show() -> None:
    rows: dict[str, tuple[RowReading, ...]] = {
        "acs": (RowReading("redirected", ("0000:15:00.0",)),),
        "governor": (RowReading("powersave"),),
        "gpu_slowed": (RowReading("none"),),
    }
    seen = dataclasses.replace(SEEN, roce=Roce(), tunings={HOSTS[0]: NodeTuning(rows), HOSTS[1]: NodeTuning()})
    bandwidth, acs, governor = judge(row(8 * GIB, 231.0), job=PUBLIC, seen=seen)
    assert (
        bandwidth.status == FAIL
        and "halves the rate of GPUDirect RDMA" in bandwidth.why
        and "More possible causes: 1" in bandwidth.remedy
    )
    assert (
        (acs.subject, acs.status) == (HOSTS[0], WARN)
        and "redirected (0000:15:00.0)" in acs.measured
        and "pci=disable_acs_redir" in acs.remedy
    )
    assert "powersave" in governor.measured


def test_the_public_case_without_any_evidence_is_unknown_and_not_green() -> None:
    bandwidth, cause = judge(row(8 * GIB, 231.0), job=PUBLIC)
    assert (
        bandwidth.status == FAIL
        and (cause.status, cause.measured) == (UNKNOWN, "0 causes found in NCCL's log and in the data of the nodes")
        and "sendrecv_perf" in cause.remedy
    )


# each cause, told apart


def causes(
    job: Job = JOB, seen: Surroundings = SEEN, choice: typing.Optional[NcclChoice] = None
) -> tuple[Finding, ...]:
    return find_causes("two nodes", log_of(job), choice, seen)


def with_rows(**rows: RowReading) -> Surroundings:
    return dataclasses.replace(
        SEEN, tunings={HOSTS[1]: NodeTuning({name: (reading,) for name, reading in rows.items()})}
    )


def weak_hca() -> Surroundings:
    hcas = {host: dict(found) for host, found in SEEN.hcas.items()}
    hcas[HOSTS[1]]["mlx5_5"] = UsedHca(5, 1, 196.0)
    return dataclasses.replace(SEEN, hcas=hcas)


def says(*lines: str) -> Job:
    return dataclasses.replace(JOB, more=(*JOB.more, *lines))


#: GPUs 0 and 1 of the job, on the node of another socket than all HCAs that the last one uses
FAR = with_rows(gpu_numa=RowReading("3", ("0000:8b:00.0",)))
ROCE = dataclasses.replace(SEEN, roce=Roce())

CASES: dict[str, tuple[Job, Surroundings, str, str, str]] = {
    "GPUDirect off": (
        dataclasses.replace(JOB, gpu_direct=False),
        SEEN,
        "4 of 16 ranks without GPUDirect RDMA",
        "passes through host memory",
        "nvidia-peermem",
    ),
    "GPUDirect by a wrong path": (
        dataclasses.replace(says("GPU Direct RDMA Disabled for GPU 8b000 / HCA 0 (distance 7 > 5)"), gpu_direct=False),
        SEEN,
        "4 of 16 ranks without GPUDirect RDMA",
        "mlx5_0: too far from a GPU: distance 7 > 5",
        "NCCL_NET_GDR_LEVEL",
    ),
    "channels limited": (
        says("NCCL_MAX_NCHANNELS set by environment to 4."),
        SEEN,
        "16 channels",
        "The environment sets NCCL_MAX_NCHANNELS=4",
        "Remove NCCL_MAX_NCHANNELS from the image",
    ),
    "rails unevenly used": (
        dataclasses.replace(JOB, channels=12),
        SEEN,
        "mlx5_0: 2 channels, mlx5_4: 1",
        "carries more channels than another HCA",
        "NCCL_MIN_NCHANNELS",
    ),
    "HCA of another NUMA node": (
        JOB,
        FAR,
        "rank 15 (NUMA node 3) uses mlx5_0 (NUMA node 0)",
        "over the link between the CPU sockets",
        "topologyManagerPolicy: single-numa-node",
    ),
    "one weak rail": (JOB, weak_hca(), "196 Gb/s", "wait for the slowest", "stages fabric and bandwidth"),
    "one rail slow alone": (
        JOB,
        dataclasses.replace(SEEN, rails_gbs={0: 48.0, 1: 47.0, 2: 24.0, 3: 48.0}),
        "rail 2 24 GB/s",
        "Rail 2 is slower than the other rails when it is tested alone",
        "check the leaf of the rail",
    ),
    "throttled GPU": (
        JOB,
        with_rows(gpu_slowed=RowReading("hw_thermal", ("0000:1b:00.0",))),
        "hw_thermal",
        "All ranks of a job wait for the slowest GPU.",
        "fans",
    ),
    "ACS": (
        JOB,
        with_rows(acs=RowReading("redirected")),
        "redirected",
        "halves the rate of GPUDirect RDMA",
        "Or disable ACS in the BIOS. A host of virtual machines requires ACS.",
    ),
    "GID": (
        says("NET/IB: Dev 0 Port 1 qpn 58 mtu 5 GID 3 (0/A1)", "NET/IB: Dev 1 Port 1 qpn 59 mtu 5 GID 1 (0/A1)"),
        SEEN,
        "GID indexes 1, 3",
        "several indexes",
        "Remove NCCL_IB_GID_INDEX from the image",
    ),
    "MTU": (
        says("NET/IB: Dev 0 Port 1 qpn 58 mtu 3 GID 3 (0/A1)"),
        SEEN,
        "1024 bytes",
        "less than 4096 bytes",
        "MTU of at least 4200",
    ),
    "traffic class": (
        says("NCCL_IB_TC set by environment to 0.", "NCCL_IB_QPS_PER_CONNECTION set by environment to 4."),
        ROCE,
        "NCCL_IB_TC=0",
        "queue without PFC",
        "NCCL_IB_TC=106",
    ),
    "queue pairs": (
        says("NCCL_IB_TC set by environment to 106."),
        ROCE,
        "queue pairs per connection: 1, the default of NCCL",
        "one flow",
        "NCCL_IB_QPS_PER_CONNECTION=4",
    ),
    "adaptive routing": (
        JOB,
        dataclasses.replace(SEEN, several_leaves=True, adaptive_routing=False),
        "adaptive routing between leaves: off in the switches",
        "Two flows can share one link",
        "enable adaptive routing in the subnet manager",
    ),
    "buffers": (
        says("NCCL_BUFFSIZE set by environment to 65536."),
        SEEN,
        "NCCL_BUFFSIZE=65536",
        "NCCL's own choice of sizes of buffers and chunks",
        "Remove these settings from the image",
    ),
    "algorithm": (
        says("NCCL_PROTO set by environment to LL."),
        SEEN,
        "NCCL_PROTO=LL",
        "NCCL's own choice of path and algorithm",
        "Remove these settings from the image",
    ),
    "from host memory": (
        JOB,
        dataclasses.replace(SEEN, from_gpu_memory=False),
        "rates of the rails measured from host memory",
        "did not measure the path between GPU and HCA",
        "bandwidth.layers",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cause_has_its_evidence_and_its_remedy(name: str) -> None:
    job, seen, measured, why, remedy = CASES[name]
    cause, *others = causes(job, seen)
    assert {other.why for other in others} <= {cause.why}
    assert (cause.check, cause.status) == ("collectives.cause", WARN)
    assert (
        measured in cause.measured and why in cause.why and remedy in cause.remedy and cause.subject and cause.expected
    )


def test_causes_are_told_apart() -> None:
    found = [causes(job, seen)[0] for job, seen, *_rest in CASES.values()]
    assert len({(cause.measured, cause.why) for cause in found}) == len(CASES)


def test_a_way_by_the_gpu_of_another_rank() -> None:
    text = JOB.text().replace("via NET/IB/3/GDRDMA", "via NET/IB/3(4)/GDRDMA")
    (cause,) = find_causes("two nodes", nccl_log.parse_text(text), None, SEEN)
    assert (
        cause.measured == "4 of 16 ranks use the network through another GPU"
        and "PXN" in cause.why
        and "nvidia-smi topo -m" in cause.remedy
    )


def test_a_collective_on_a_part_of_its_channels() -> None:
    (cause,) = causes(choice=NcclChoice("AllReduce", 8 * GIB, "RING", "SIMPLE", 4))
    assert cause.measured == "4 of 16 channels" and "only some of its channels" in cause.why


def test_what_the_run_sets_itself_is_no_cause() -> None:
    job = says("NCCL_ALGO set by environment to Ring.", "NCCL_NVLS_ENABLE set by environment to 0.")
    assert causes(job)[0].measured == "NCCL_ALGO=Ring, NCCL_NVLS_ENABLE=0"
    assert (
        causes(job, dataclasses.replace(SEEN, set_by_run=frozenset({"NCCL_ALGO", "NCCL_NVLS_ENABLE"})))[0].measured
        == "0 causes found in NCCL's log and in the data of the nodes"
    )


def test_sound_runs_have_no_cause() -> None:
    sound = with_rows(
        gpu_slowed=RowReading("none"),
        acs=RowReading("direct"),
        governor=RowReading("performance"),
        gpu_numa=RowReading("0", ("0000:8b:00.0",)),
    )
    near = {
        host: {name: dataclasses.replace(hca, numa_node=0) for name, hca in found.items()}
        for host, found in SEEN.hcas.items()
    }
    roce = says(
        "NCCL_IB_TC set by environment to 106.",
        "NCCL_IB_QPS_PER_CONNECTION set by environment to 8.",
        "NET/IB: Dev 0 Port 1 qpn 58 mtu 5 GID 3 (0/A1)",
    )
    (cause,) = causes(
        roce, dataclasses.replace(sound, hcas=near, roce=Roce(), several_leaves=True, adaptive_routing=True)
    )
    assert (cause.status, cause.measured) == (UNKNOWN, "0 causes found in NCCL's log and in the data of the nodes")
