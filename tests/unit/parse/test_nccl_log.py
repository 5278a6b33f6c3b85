# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's log: real captures, the texts of each release, ranks that write into each other, and that nothing is seen that
is not there."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import re
import string
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.channels import judge_log
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclChoice, NcclLog, NcclRank
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import PodLogs, parse, parse_text
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.problem import (
    Completion,
    classify,
    parse_completion,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.job_logs import read_lines
from ansible_collections.linerate.rdma.tests.unit.limit import bounded
from ansible_collections.linerate.rdma.tests.unit.nccl_job import RELEASES, Job

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "nccl"
HEAD = "job-worker-0:100:200 [0] NCCL INFO "


def capture(name: str) -> NcclLog:
    return parse(read_lines([str(FIXTURES / f"{name}.txt")]))


def ways(rank: NcclRank) -> dict[str, int]:
    """Each way of a rank, with its connections."""
    found: dict[str, int] = {}
    for route in rank.routes:
        name = f"{route.transport}/{route.via}{'/GDRDMA' if route.gpu_direct else ''} {route.direction}".rstrip()
        found[name] = found.get(name, 0) + route.lines
    return found


def ranks(log: NcclLog) -> list[NcclRank]:
    return [rank for communicator in log.communicators for rank in communicator.ranks]


def said(message: str) -> NcclRank:
    """The one rank of a log with one line."""
    (rank,) = ranks(parse_text(f"{HEAD}{message}\n"))
    return rank


# captures


def test_torchrun() -> None:
    log = capture("2.28.9-torchrun")
    assert log.versions == ("2.28.9+cuda13.0",) and not log.cut and log.problems == ()
    assert [(item.name, item.size, len(item.ranks)) for item in log.communicators] == [
        ("0x3c616b7b0c42dd8b", 2, 2),
        ("0x3c616b7b0c42dd8b split 1 color 2130503744", 2, 2),
    ]
    assert all(
        (rank.complete, rank.channels, rank.point_to_point_channels, rank.trees, rank.unseen) == (True, 24, 32, 24, ())
        for rank in ranks(log)
    )
    assert [ways(rank) for rank in ranks(log)] == [{"P2P/CUMEM": 24}] * 2 + [{"P2P/CUMEM": 56}] * 2
    assert [(process.network, process.oob_interface, process.oob_address) for process in log.processes] == [
        ("Socket", "eth0", "192.0.2.2")
    ] * 2


def test_mpirun_falls_back_to_tcp() -> None:
    log = capture("2.28.9-mpirun-hosts")
    assert [ways(rank) for rank in ranks(log)] == [{"NET/Socket receive": 2, "NET/Socket send": 2}] * 2 + [
        {"NET/Socket receive": 4, "NET/Socket send": 4}
    ] * 2
    assert {(rank.nodes, rank.unseen, rank.unanswered) for rank in ranks(log)} == {(2, (), ())}
    assert {process.without_ib for process in log.processes} == {"no RDMA device found"}


def test_torn_lines_are_lost_and_said() -> None:
    log = capture("2.28.9-hosts-net")
    assert log.torn == 1
    (communicator,) = log.communicators
    first, second = communicator.ranks
    assert ways(first) == {"NET/Socket receive": 4, "NET/Socket send": 4}
    # of the second rank one message was torn in two, and is in neither half
    assert ways(second) == {"NET/Socket receive": 4, "NET/Socket send": 3}
    assert [(device.name, device.gpu_direct) for device in log.processes[0].devices] == [("eth0", False)]


def test_rank_whose_end_is_missing() -> None:
    (communicator,) = capture("2.30.7-hosts").communicators
    first, second = communicator.ranks
    assert (first.complete, first.channels) == (True, 2)
    assert (second.complete, second.channels, second.routes) == (False, None, ())


def test_shared_memory() -> None:
    (first,) = [rank for rank in ranks(capture("2.28.9-shm")) if rank.rank == 0]
    assert ways(first) == {"SHM/direct": 6} and first.unseen == ()


def test_peer_to_peer_of_2_30() -> None:
    first = ranks(capture("2.30.7-p2p"))[0]
    assert set(ways(first)) == {"P2P/CUMEM"} and first.unseen == () and first.channels == 24


@pytest.mark.parametrize(
    ("name", "kind", "count"), [("2.28.9-no-ib", "no_network", 2), ("2.28.9-no-interface", "no_interface", 1)]
)
def test_failures(name: str, kind: str, count: int) -> None:
    log = capture(name)
    assert [(problem.kind, problem.count, problem.hosts) for problem in log.problems] == [(kind, count, ("vm",))]
    assert log.problems[0].place and log.communicators == ()


# releases


@pytest.mark.parametrize("release", RELEASES)
def test_texts_of_each_release(release: tuple[int, int, int]) -> None:
    log = parse(Job(release).lines())
    assert log.versions == (".".join(map(str, release)) + "+cuda12.4",)
    (communicator,) = log.communicators
    assert communicator.size == 4 and [rank.rank for rank in communicator.ranks] == [0, 1, 2, 3]
    assert all(
        (rank.complete, rank.channels, rank.trees, rank.unseen, rank.unanswered) == (True, 4, 4, (), ())
        for rank in communicator.ranks
    )
    assert ways(communicator.ranks[0]) == {"NET/IB/GDRDMA receive": 4, "P2P/CUMEM": 4}
    assert ways(communicator.ranks[1]) == {"NET/IB/GDRDMA send": 4}
    assert communicator.ranks[0].rings == 4
    assert [(device.index, device.name, device.link) for device in log.processes[0].devices] == [
        (0, "mlx5_21", "IB"),
        (1, "mlx5_22", "IB"),
    ]
    assert log.processes[3].oob_address == "10.128.1.17"


@pytest.mark.parametrize("release", RELEASES)
def test_channel_that_is_not_there_is_unseen(release: tuple[int, int, int]) -> None:
    assert {rank.unseen for rank in ranks(parse(Job(release, skip=(1, 3)).lines()))} == {(1, 3)}


@pytest.mark.parametrize(
    "prefix",
    [
        "[pod/job-worker-0/pytorch] ",
        "2026-11-21T14:42:50.123456789Z ",
        "[pod/job-worker-0/pytorch] 2026-11-21T14:42:50.123456789Z ",
        "2026-11-21T14:42:50.123456789Z stdout F ",
        "[default0]:",
        "[rank0]:",
        "[1,0]<stdout>:",
        "job-set-workers-0-0-abcde pytorch ",
        "worker-0 | ",
        " 3: ",
        "[2026-11-21 14:42:50] ",
    ],
)
def test_what_others_put_in_front(prefix: str) -> None:
    job = Job()
    prefixed, plain = parse(prefix + line for line in job.lines()), parse(job.lines())
    assert (prefixed.communicators, prefixed.processes, prefixed.versions) == (
        plain.communicators,
        plain.processes,
        plain.versions,
    )


# lines


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("NET/IB/3/GDRDMA", ("NET", "IB", 3, True, None)),
        ("NET/IB/3", ("NET", "IB", 3, False, None)),
        ("NET/IB/0(3)/GDRDMA", ("NET", "IB", 0, True, 3)),
        ("NET/IB/1/GDRDMA(PCI)", ("NET", "IB", 1, True, None)),
        ("NET/IBext_v8/1/GDRDMA/Shared", ("NET", "IBext_v8", 1, True, None)),
        ("NET/AWS Libfabric/0/GDRDMA", ("NET", "AWS Libfabric", 0, True, None)),
        ("NET/Socket/0/Shared", ("NET", "Socket", 0, False, None)),
    ],
)
def test_network(tail: str, expected: tuple[typing.Any, ...]) -> None:
    (route,) = said(f"Channel 00/1 : 7[7] -> 8[0] [send] via {tail}").routes
    assert (route.transport, route.via, route.device, route.gpu_direct, route.proxy) == expected
    assert (route.direction, route.connection, route.channels) == ("send", 1, (0,))


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("P2P/IPC/read", ("P2P", "IPC")),
        ("P2P/CUMEM/CE", ("P2P", "CUMEM")),
        ("P2P/MNNVL", ("P2P", "MNNVL")),
        ("P2P/direct pointer/read", ("P2P", "direct pointer")),
        ("P2P/indirect/3[3]", ("P2P", "indirect")),
        ("SHM/direct/direct", ("SHM", "direct")),
        ("SHM/CE/direct", ("SHM", "CE")),
        ("SHM/direct", ("SHM", "direct")),
        ("direct shared memory", ("SHM", "direct")),
    ],
)
def test_inside_a_host(tail: str, expected: tuple[str, str]) -> None:
    (route,) = said(f"Channel 01 : 0[1b000] -> 1[1c000] via {tail}").routes
    assert (route.transport, route.via, route.device, route.gpu_direct, route.direction) == (*expected, None, None, "")


@pytest.mark.parametrize(
    "line", ["CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA", "Coll 00 : 3 [receive] via COLLNET/SHARP/0/GDRDMA"]
)
def test_collnet(line: str) -> None:
    rank = said(line)
    assert rank.rank == 3 and [(route.transport, route.via, route.gpu_direct) for route in rank.routes] == [
        ("COLLNET", "SHARP", True)
    ]


@pytest.mark.parametrize(
    "message",
    [
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRD",
        "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA and more",
        "Channel 00/0 : 0[0] -> 8[0] via NET/IB/0/GDRDMA",
        "Channel 00/0 : 0[0] -> 8[0] [send] via P2P/CUMEM",
        "Channel 00/02 :    0   1",
        "Ring 00 : 0 -> 1 -> 2",
    ],
)
def test_what_is_no_channel(message: str) -> None:
    assert ranks(parse_text(f"{HEAD}{message}\n")) == []


def test_last_line_without_an_end_is_not_believed() -> None:
    """NET/IB/0 may have wanted to become NET/IB/0/GDRDMA."""
    log = parse_text(f"{HEAD}Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0")
    assert log.cut and ranks(log) == []


def test_devices() -> None:
    more = (
        "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_21'",
        "GPU Direct RDMA Disabled for GPU 1 / HCA 1 (distance 6 > 5)",
        "GPU Direct RDMA Enabled for GPU 0 / HCA 1 (distance 4 <= 5), read 0 mode Default",
        "NET/IB : Made virtual device [2] name=mlx5_21+mlx5_22 speed=800000 ndevs=2",
        "DMA-BUF is available on GPU device 0",
        "NCCL_IB_HCA set to =mlx5_21,mlx5_22",
        "NCCL_IB_TIMEOUT set by environment to 22.",
    )
    process = parse(Job(more=more).lines()).processes[0]
    first, second, merged = process.devices
    assert (first.gpu_direct, first.reasons) == (
        False,
        ("the device does not support DMA-BUF, and nvidia-peermem is not loaded",),
    )
    assert (second.gpu_direct, second.reasons) == (None, ("too far from a GPU: distance 6 > 5",))
    assert merged.name == "mlx5_21+mlx5_22"
    assert process.dma_buf and process.environment == {"NCCL_IB_HCA": "=mlx5_21,mlx5_22", "NCCL_IB_TIMEOUT": "22"}


@pytest.mark.parametrize(
    "line",
    [
        "GPU Direct RDMA Disabled for GPU 1b000 / HCA 1 (distance 6 > 5)",
        "GPU Direct RDMA Disabled for GPU 3 / HCA 100000000000001 (distance 6 > 5)",
        "GPU Direct RDMA Disabled for GPU/0-1b000 (rank 3) - NET/0-1 (distance 6 > 5)",
    ],
)
def test_distance_in_all_its_forms(line: str) -> None:
    assert parse(Job(more=(line,)).lines()).processes[0].devices[1].reasons == ("too far from a GPU: distance 6 > 5",)


@pytest.mark.parametrize(
    ("using", "expected"),
    [
        (
            " [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB net1:192.168.2.5<0>",
            [(0, "mlx5_0", "RoCE", None), (1, "mlx5_1", "RoCE", None)],
        ),
        (
            " [0]mlx5_0:1:3/IB [1]mlx5_1:1::1/IB [2]mlx5_2:1:4:1/IB ; OOB eth0:fe80::1%eth0<0>",
            [(0, "mlx5_0", "IB", 3), (1, "mlx5_1", "IB", None), (2, "mlx5_2", "IB", 4)],
        ),
        (
            " [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [2]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            [(0, "mlx5_0+mlx5_1", "IB", None), (2, "mlx5_2", "IB", None)],
        ),
    ],
)
def test_list_of_devices(using: str, expected: list[typing.Any]) -> None:
    log = parse_text(f"{HEAD}NET/IB : Using{using}\n{HEAD}Using network IB\n")
    assert [(device.index, device.name, device.link, device.rail) for device in log.processes[0].devices] == expected


def test_list_without_devices() -> None:
    log = parse_text(f"{HEAD}NET/IB : Using [RO]; OOB eth0:192.0.2.2<0>\n{HEAD}Using network Socket\n")
    assert log.processes[0].devices == () and log.processes[0].oob_interface == "eth0"


def test_second_attempt_is_a_communicator_of_its_own() -> None:
    first = Job((2, 12, 12))
    second = (line.replace(":10", ":90") for line in first.lines())
    assert [(item.name, len(item.ranks)) for item in parse([*first.lines(), *second]).communicators] == [
        ("4 ranks", 4),
        ("4 ranks again", 4),
    ]


def test_two_communicators_that_connect_in_any_order() -> None:
    """Since 2.22 channels come at the first collective; here the older communicator is used last."""
    job = Job((2, 24, 3), channels=2)
    lines: list[str] = []
    for rank in range(job.ranks):
        own = list(job.process(rank))
        whole = [line for line in own if " via " not in line]
        again = [line.replace("0x6b99be0cc5a5bfbf", "0x1").replace("comm 0x55", "comm 0x66") for line in whole]
        links = [line for line in own if " via " in line]
        lines += whole + again + links + links
    log = parse(f"{line}\n" for line in lines)
    assert [item.name for item in log.communicators] == ["0x6b99be0cc5a5bfbf", "0x1"]
    assert all(
        (len(item.ranks), rank.unseen, rank.unanswered) == (4, (), ())
        for item in log.communicators
        for rank in item.ranks
    )
    once = parse(f"{line}\n" for index, line in enumerate(lines) if " via " not in line or line not in lines[:index])
    assert {item.name for item in once.communicators if any(rank.unseen for rank in item.ranks)} == {
        "0x6b99be0cc5a5bfbf"
    }


def test_beginning_that_is_missing() -> None:
    """A container's log that was rotated: channels are there, and nobody knows of which communicator."""
    lines = [line for line in Job().lines() if " - Init " not in line]
    (communicator,) = parse(lines).communicators
    assert communicator.size is None and len(communicator.ranks) == 4


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "memlock"),
        ("Call to ibv_create_cq failed with error Cannot allocate memory errno 12", "memlock"),
        ("Call to ibv_reg_mr failed with error Bad address", "peer_memory"),
        ("NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", "completion"),
        (
            "NET/IB: Got completion from peer 10.0.0.1<55921> with status=12 opcode=1 len=0 vendor err 129 (Send)",
            "completion",
        ),
        (
            (
                "NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12)"
                " opcode=IBV_WC_SEND(0) vendor_err=129"
            ),
            "completion",
        ),
        ("NET/IB : Got completion from peer 10.0.0.1<5> with error 4, opcode 8983, len 0, vendor err 81", "completion"),
        ("NET/IB : mlx5_0:1 Got async event : port error", "async_event"),
        ("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1", "queue_pair"),
        ("NET/IB : No IP interface found.", "no_interface"),
        ("Error: network IB not found.", "no_network"),
        ("Net : Connection closed by remote peer job-worker-1<4>", "connection"),
        ("socketProgressOpt: Call to recv from 10.0.0.1<5> failed : Connection reset by peer", "connection"),
        (
            (
                "Error while creating shared memory segment /dev/shm/nccl-a (size 9637888), error: No space left on"
                " device (28)"
            ),
            "shared_memory",
        ),
        ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000", "same_gpu"),
        ("Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22107", "versions"),
        ("Cuda failure 'out of memory'", "gpu_memory"),
        ("Cuda failure 'no CUDA-capable device is detected'", "driver"),
        ("Cuda failure 214 'uncorrectable ECC error encountered'", "gpu_hardware"),
        ("Cuda failure 'uncorrectable ECC error encountered'", "gpu_hardware"),
        ("Cuda failure 220 'uncorrectable NVLink error detected during the execution'", "gpu_hardware"),
        ("Cuda failure 721 'Invalid access of peer GPU memory over nvlink or a hardware error'", "gpu_hardware"),
        ("Cuda failure 714 'hardware stack error'", "gpu_hardware"),
        ("Cuda failure 802 'system not yet initialized'", "fabric_manager"),
        ("Cuda failure 'system not yet initialized'", "fabric_manager"),
        ("Cuda failure 700 'an illegal memory access was encountered'", "gpu_kernel"),
        ("Cuda failure 719 'unspecified launch failure'", "gpu_kernel"),
        ("Cuda failure 801 'operation not supported'", "driver"),
        ("Call to ibv_reg_dmabuf_mr failed with error Operation not supported", "peer_memory"),
        ("Call to ibv_reg_mr_iova2 failed with error Operation not supported", "verbs"),
        ("Call to socket failed: Too many open files", "open_files"),
        ("NET/IB : mlx5_0:1 Got non-fatal async event: client reregistration(17)", "sm_event"),
        ("NET/IB : mlx5_0:1 Got non-fatal async event: SM change(14)", "sm_event"),
        ("NET/IB : mlx5_0:1 Got async event : port active", "sm_event"),
        ("NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)", "async_event"),
        ("NET/IB : mlx5_0:1 async fatal event: local catastrophic error", "async_event"),
        ("NET/IB : mlx5_0:1 GID table changed", "gid_change"),
        ("Call to ibv_create_qp failed with error No space left on device", "verbs"),
        ("Call to ibv_open_device failed", "no_device"),
        (
            "NET/IB: Device 1 marked as failed. Initiating recovery? yes (send comm=0x7f00, outstandingRecovery=1)",
            "failover",
        ),
        (
            (
                "NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE. Try selecting"
                " NICs of only one link type using NCCL_IB_HCA"
            ),
            "link_layers",
        ),
        (
            (
                "Detected mixed local Net device counts across ranks (min 7, max 8). Set NCCL_IGNORE_NET_MISMATCH=1 to"
                " continue."
            ),
            "nic_counts",
        ),
        ("no device found matching NCCL_OOB_NET_IFNAME=net1, ignoring", "ignored_interface"),
        ("no device found matching net1, verify NCCL_OOB_NET_IFNAME", "no_interface"),
        ("Failed to open libgdrapi.so - libgdrapi.so: cannot open shared object file", "gdrcopy"),
        ("socketFinalizeAccept: wrong magic 0 != 5e1", "strange_peer"),
        # of the libraries of 2.31.2 and 2.32.3, whose source is not there
        ("NET/IB: NCCL_IB_PKEY_VALUE=0x8001 not found in PKey table (pkey_tbl_len=128, port=1)", "pkey"),
        ("NET/IB : mlx5_0:1 marking device with fatal error after GID-change event handler failed", "gid_change"),
        (
            "MNNVL busId 0x801000 NVLink fabric health reports DEGRADED_BANDWIDTH (healthMask 0x2)",
            "peer_access",
        ),
        ("Mismatched NCCL git versions detected: rank 0 fingerprint 0x1, rank 3 fingerprint 0x2", "versions"),
        ("minCTAs 64 is larger than #channels upper limit 32, cap it to 32", "hint"),
        (
            (
                "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration"
                " (/dev/nvidia-caps-imex-channels)."
            ),
            "imex",
        ),
        (
            (
                "MNNVL (cliqueSize 72) is available but not working on this system. Check the IMEX configuration"
                " (nvidia-imex-ctl -N)."
            ),
            "imex",
        ),
        ('Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!', "iommu"),
        (
            (
                "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device"
                " /sys/class/infiniband/bnxt_re2"
            ),
            "provider_abi",
        ),
        (
            "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0",
            "provider_missing",
        ),
        ("something new", ""),
    ],
)
def test_known_problems(text: str, kind: str) -> None:
    assert classify(text) == kind


def test_attention_is_a_warning_and_advice_is_none() -> None:
    text = "NET/IB : mlx5_0:1 GID table changed"
    lines = [f"a:1:5 [0] x.cc:1 NCCL {level} {text}\n" for level in ("WARN", "ATTN")]
    lines += [f"a:1:5 [0] x.cc:1 (f) NCCL {level} HINT: To confirm, set it.\n" for level in ("WARN", "ATTN")]
    (problem,) = parse(lines).problems
    assert (problem.kind, problem.count, problem.place) == ("gid_change", 2, "x.cc:1")


def test_line_with_two_levels_is_torn() -> None:
    log = parse([f"{HEAD}comm a:1:5 [0] x.cc:1 NCCL ATTN something\n", "a:1:5 [0] NCCL ATTN b c:1:5 NCCL WARN d\n"])
    assert log.problems == () and log.torn == 2


PUBLIC = pathlib.Path(__file__).parent.parent / "fixtures/public"


def test_a_log_of_rccl_is_read_and_named() -> None:
    log = parse_text((PUBLIC / "rccl.txt").read_text())
    assert (log.versions, log.library, log.torn) == (("RCCL 2.21.5-HEAD:9a0e6a1",), "RCCL", 0)
    (communicator,) = log.communicators
    assert (communicator.name, communicator.size, [rank.complete for rank in communicator.ranks]) == (
        "0x5d1",
        2,
        [True, True],
    )
    assert [ways(rank) for rank in communicator.ranks] == [{"NET/IB send": 1, "NET/IB receive": 1}] * 2
    assert [device.name for process in log.processes for device in process.devices] == ["bnxt_re0", "bnxt_re1"] * 2


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("RCCL version : 2.21.5-HEAD:9a0e6a1", "RCCL 2.21.5-HEAD:9a0e6a1"),
        ("RCCL version 2.18.3+hip6.0 HEAD:2f6d59e", "RCCL 2.18.3+hip6.0"),
        (f"{HEAD}RCCL version : 2.22.3-develop:abc", "RCCL 2.22.3-develop:abc"),
        ("NCCL version 2.18.6+hip6.0", "2.18.6+hip6.0"),
    ],
)
def test_versions_of_rccl(line: str, version: str) -> None:
    log = parse_text(f"{line}\n")
    assert (log.versions, log.library) == ((version,), "RCCL")


@pytest.mark.parametrize(
    "tail", ["comm 0xa1", "comm 0xa1 nRanks", "comm 0xa1 nRanks 02 more", "comm xyz nRanks 02", "com 0xa1 nRanks 02"]
)
def test_a_channel_of_rccl_that_is_torn_is_not_there(tail: str) -> None:
    text = (PUBLIC / "rccl.txt").read_text().replace("comm 0xa1 nRanks 02", tail)
    first, second = parse_text(text).communicators[0].ranks
    assert (first.routes, ways(second)) == ((), {"NET/IB send": 1, "NET/IB receive": 1})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", Completion(12)),
        (
            "NET/IB : Got completion from peer 10.0.0.1<5> with error 4, opcode 8983, len 0, vendor err 81",
            Completion(4, "10.0.0.1"),
        ),
        (
            (
                "NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12)"
                " opcode=IBV_WC_SEND(0) vendor_err=129"
            ),
            Completion(12, "10.0.0.1"),
        ),
        (
            (
                "NET/IB: Got completion from peer fd00::1<5> with status=13 opcode=1 len=0 vendor err 129 (Send) hca"
                " mlx5_0"
            ),
            Completion(13, "fd00::1", device="mlx5_0"),
        ),
        ("NET/IB : Got completion of something", None),
        ("Call to ibv_modify_qp failed", None),
    ],
)
def test_failed_completions(text: str, found: typing.Optional[Completion]) -> None:
    assert parse_completion(text) == found


def test_failed_completions_of_public_reports_name_both_ends() -> None:
    problems = parse_text((PUBLIC / "nccl-two-nodes.txt").read_text()).problems
    ends = ("192.0.2.5", "::ffff:198.51.100.3", "::ffff:198.51.100.5", "mlx5_10")
    assert [parse_completion(problem.text) for problem in problems] == [Completion(12, *ends), Completion(5, *ends)]
    problems = parse_text((PUBLIC / "nccl-one-pod.txt").read_text()).problems
    first = Completion(12, "10.0.0.36", "fd00:0:9000:5000:4:200:3:ff22", "fd00:0:9000:5000:4:200:3:ff1f")
    # those of one status and one cause are alike
    assert [(parse_completion(problem.text), problem.count) for problem in problems] == [
        (first, 2),
        (
            first._replace(
                status=5, local_gid="fd00:0:9000:5000:4:200:3:ff21", remote_gid="fd00:0:9000:5000:4:200:3:ff20"
            ),
            1,
        ),
    ]


@pytest.mark.parametrize(
    ("local", "remote", "crosses"),
    [
        ("::ffff:10.0.1.3", "::ffff:10.0.2.3", True),
        ("::ffff:10.0.1.3", "::ffff:10.0.1.4", False),
        ("fd00:0:0:1::3", "fd00:0:0:2::3", True),
        ("fd00:0:0:1::3", "fd00:0:0:1::4", False),
        ("fe80::1", "::ffff:10.0.1.3", True),
        ("", "::ffff:10.0.1.3", False),
        ("::ffff:10.0.1.3", "", False),
        ("no GID", "::ffff:10.0.1.3", False),
    ],
)
def test_two_gids_of_two_subnets(local: str, remote: str, crosses: bool) -> None:
    assert Completion(12, "10.0.0.1", local, remote).crosses_subnets is crosses


def test_warnings_of_libibverbs_are_problems_only_where_a_device_is_lost_by_them() -> None:
    lost = (PUBLIC / "libibverbs-abi.txt").read_text()
    others = (
        "libibverbs: Warning: couldn't load driver 'libmana-rdmav34.so': libmana-rdmav34.so: cannot open shared object"
        " file\n"
    )
    assert [(problem.kind, problem.count) for problem in parse_text(others + lost).problems] == [("provider_abi", 2)]


def test_problems_that_are_alike_are_one() -> None:
    warn = "job-worker-{0}:{1}:9 [0] misc/socket.cc:484 NCCL WARN new trouble {1}\n"
    (problem,) = parse_text("\n".join(warn.format(host, pid) for host in range(2) for pid in range(5))).problems
    assert (problem.count, problem.hosts, problem.text, problem.place) == (
        10,
        ("job-worker-0", "job-worker-1"),
        "new trouble 0",
        "misc/socket.cc:484",
    )


@pytest.mark.parametrize(
    "head",
    [
        "vm:9:9 [0] plugin/net.cc:379",
        "[2026-11-21 14:43:50] vm:9:9 [0] plugin/net.cc:379",
        "[default0]:[2026-11-21 14:43:50] vm:9:9 [0] plugin/net.cc:379 (ncclNetInit)",
    ],
)
def test_heads_of_warnings(head: str) -> None:
    (problem,) = parse_text(f"\n{head} NCCL WARN Failed to initialize any NET plugin\n").problems
    assert (problem.kind, problem.place, problem.hosts, problem.line) == ("no_network", "plugin/net.cc:379", ("vm",), 2)


def test_pytorch_s_watchdog() -> None:
    text = (
        "[rank3]:[E1121 14:42:50 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=1)\n"
    )
    assert [problem.kind for problem in parse_text(text).problems] == ["timeout"]


def test_split_communicators_as_2_31_writes_them() -> None:
    text = (FIXTURES / "2.28.9-torchrun.txt").read_text(encoding="utf-8")
    later = re.sub(
        r"(busId \w+) parent (\S+) splitCount (.*?) ?- Init", r"\1 commId 0x7 parent \2 childCount \3 - Init", text
    )
    assert later.count(" commId 0x7 parent ") == 4
    assert [dataclasses.replace(item, name="") for item in parse_text(later).communicators] == [
        dataclasses.replace(item, name="") for item in parse_text(text).communicators
    ]


# more than any job has


def test_channels_beyond_those_of_nccl_are_none() -> None:
    head = "h:1:1 [0] NCCL INFO "
    who = (
        f"{head}ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init COMPLETE\n"
    )
    text = who + "".join(
        f"{head}Channel {number:02}/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" for number in (3, 127, 128, 9999)
    )
    (rank,) = ranks(parse_text(text))
    assert [route.channels for route in rank.routes] == [(3, 127)]
    (rank,) = ranks(parse_text(f"{who}{head}9999 coll channels, 9999 p2p channels, 9999 p2p channels per peer\n"))
    assert rank.channels is None


def test_a_rank_that_starts_again_and_again_costs_no_square() -> None:
    line = (
        "h:{}:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 -"
        " Init COMPLETE\n"
    )
    # a quadratic one takes half a minute
    with bounded(3):
        names = [item.name for item in parse_text("".join(line.format(pid + 1) for pid in range(6000))).communicators]
    assert names[:3] == ["0x1", "0x1 again", "0x1 again (2)"] and len(set(names)) == 6000 and max(map(len, names)) < 30


# any mixture of the ranks, any cut


@hypothesis.given(data=some.data())
def test_ranks_in_any_mixture(data: some.DataObject) -> None:
    release = data.draw(some.sampled_from(RELEASES))
    job = Job(release, channels=2)
    queues = [list(job.process(rank)) for rank in range(job.ranks)]
    order = data.draw(some.permutations([rank for rank, lines in enumerate(queues) for _line in lines]))
    mixed = parse(f"{queues[rank].pop(0)}\n" for rank in order)
    whole = parse(job.lines())
    assert mixed.communicators == whole.communicators
    assert sorted(mixed.processes, key=repr) == sorted(whole.processes, key=repr)


@hypothesis.given(data=some.data())
def test_a_cut_log_shows_no_more_than_the_whole(data: some.DataObject) -> None:
    job = Job(data.draw(some.sampled_from(RELEASES)), channels=2)
    text = job.text()
    start, end = sorted((data.draw(some.integers(0, len(text))), data.draw(some.integers(0, len(text)))))
    true = {
        (rank.host, rank.rank, dataclasses.replace(route, channels=(), lines=0), channel)
        for rank in ranks(parse_text(text))
        for route in rank.routes
        for channel in route.channels
    }
    for rank in ranks(parse_text(text[start:end])):
        for route in rank.routes:
            # the first line may have lost the beginning of its host's name
            hosts = [f"job-worker-{number}" for number in range(2)]
            host = next((host for host in hosts if host == rank.host), None) or next(
                host for host in hosts if host.endswith(rank.host[-1])
            )
            assert all(
                (host, rank.rank, dataclasses.replace(route, channels=(), lines=0), channel) in true
                for channel in route.channels
            )


# files


def test_files_one_after_the_other(tmp_path: pathlib.Path) -> None:
    job = Job()
    paths = []
    for rank in range(job.ranks):
        path = tmp_path / f"{rank}.log"
        path.write_text("".join(f"{line}\n" for line in job.process(rank)), encoding="utf-8")
        paths.append(str(path))
    assert parse(read_lines(paths)) == parse(job.lines())


def test_file_of_any_bytes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe\x00" + b"x" * 3_000_000 + b"\n" + Job().text().encode())
    assert parse(read_lines([str(path)])).communicators == parse(Job().lines()).communicators
    assert max(len(line) for line in read_lines([str(path)])) < 1_000_000


def test_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RdmaError, match="none could not be read: No such file"):
        list(read_lines([str(tmp_path / "none")]))


# what NCCL chose


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        (
            "all_reduce-info",
            [
                ("AllReduce", 1 << 20, "RING", "LL", 24),
                ("AllReduce", 1 << 24, "RING", "SIMPLE", 24),
                ("AllReduce", 1 << 28, "RING", "SIMPLE", 24),
            ],
        ),
        (
            "mpi-hosts",
            [
                ("AllReduce", 1 << 20, "RING", "SIMPLE", 2),
                ("AllReduce", 1 << 23, "RING", "SIMPLE", 2),
                ("AllReduce", 1 << 26, "RING", "SIMPLE", 2),
            ],
        ),
    ],
)
def test_algorithms_of_a_test(name: str, choices: list[tuple[str, int, str, str, int]]) -> None:
    log = parse(read_lines([str(FIXTURES.parent / "nccl-tests" / f"{name}.txt")]))
    (writer,) = [process for process in log.processes if process.choices]
    assert [item for item in writer.choices if item.size_bytes in {size for _name, size, *_rest in choices}] == [
        NcclChoice(*choice) for choice in choices
    ]


def test_algorithms_of_one_rank_of_an_all_gather() -> None:
    log = parse(read_lines([str(FIXTURES.parent / "nccl-tests" / "mpi-tagged.txt")]))
    sizes = {item.size_bytes for process in log.processes for item in process.choices}
    # the test prints 1 MiB and 16 MiB for its two ranks
    assert {1 << 19, 1 << 23} <= sizes


@pytest.mark.parametrize(
    "line",
    [
        "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..128}",
        "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={3..2}",
        "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1",
        "AllReduce: 8 Bytes -> Algo ring proto LL channel{Lo..Hi}={0..1}",
        "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1} and more",
        "8 Bytes -> Algo 7 proto 2 time 34.693867",
        "8 Bytes -> Algo 1 proto 3 time 34.693867",
        "8 Bytes -> Algo 1 proto 2",
    ],
)
def test_no_algorithm(line: str) -> None:
    (process,) = parse_text(f"{HEAD}Using network IB\n{HEAD}{line}\n").processes
    assert process.choices == ()


def test_an_algorithm_with_its_communicator() -> None:
    line = "AllReduce: 8589934592 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15} comm 0x55a7a339db50"
    (process,) = parse_text(f"{HEAD}Using network IB\n{HEAD}{line}\n{HEAD}{line}\n").processes
    assert process.choices == (NcclChoice("AllReduce", 1 << 33, "NVLS_TREE", "SIMPLE", 16),)


@pytest.mark.parametrize(
    ("line", "choice"),
    [
        # NVIDIA/nccl issues 1453 and 1595
        ("262144 Bytes -> Algo 0 proto 1 time 54.707825", NcclChoice("", 262144, "TREE", "LL128")),
        # 2.31 and later
        (
            "AllGather: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3} cgaClusterSize 4",
            NcclChoice("AllGather", 4096, "RING", "LL", 4),
        ),
        ("1026048 Bytes -> Algo 1 proto 2 time 34.693867", NcclChoice("", 1026048, "RING", "SIMPLE")),
        (
            "AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008",
            NcclChoice("AllGather", 37756928, "RING", "SIMPLE"),
        ),
    ],
)
def test_algorithms_by_number(line: str, choice: NcclChoice) -> None:
    (process,) = parse_text(f"{HEAD}Using network IB\n{HEAD}{line}\n").processes
    assert process.choices == (choice,)


def test_more_algorithms_than_are_told_apart() -> None:
    lines = [
        f"{HEAD}Using network IB\n",
        *(f"{HEAD}AllReduce: {size} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}}\n" for size in range(1500)),
    ]
    (process,) = parse(lines).processes
    assert len(process.choices) == 1000


@pytest.mark.parametrize(
    ("line", "mtus", "gids"),
    [
        # NVIDIA/nccl issue 1052, and the forms of 2.28 and 2.30
        ("NET/IB: Dev 0 Port 1 qpn 58 mtu 3 GID 3 (0/A10B0A0AFFFF0000)", (1024,), (3,)),
        (
            (
                "NET/IB: NCCL Dev 1 IbDev 1 Port 1 qpn 300 mtu 5 LID 7 subnet-prefix 33022  FLID 0 fifoRkey=0x1"
                " fifoLkey=0x1"
            ),
            (4096,),
            (),
        ),
        (
            (
                "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 300 mtu 5 query_ece={supported=1, vendor_id=0x15b3,"
                " options=0x30000002, comp_mask=0x0} GID 3 (0/A10B0A0AFFFF0000) fifoRkey=0x1 fifoLkey=0x1"
            ),
            (4096,),
            (3,),
        ),
        # the source of 2.30.7
        (
            (
                "NET/IB: ncclIbConnect: NCCL Dev 0 IbDev 0 Port 1 qp_num 300 mtu 5 GID 3 (0/A10B0A0AFFFF0000)"
                " ctsFifoRkey=0x1 ctsFifoLkey=0x1"
            ),
            (4096,),
            (3,),
        ),
        ("NET/IB: Dev 0 Port 1 qpn 58 mtu 9 GID 3 (0/A10B0A0AFFFF0000)", (), ()),
        ("NET/IB: Dev 0 Port 1 qpn 58 mtu 3", (), ()),
    ],
)
def test_queue_pairs(line: str, mtus: tuple[int, ...], gids: tuple[int, ...]) -> None:
    (process,) = parse_text(f"{HEAD}Using network IB\n{HEAD}{line}\n").processes
    assert (process.mtus, process.gid_indexes) == (mtus, gids)


#: what closes a gate, of three kinds
_FAILURES = (
    "Call to ibv_reg_mr failed with error Cannot allocate memory",
    "NET/IB: Got completion from peer 10.0.0.1<4791> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    "Watchdog caught collective operation timeout",
)


@pytest.mark.parametrize(
    "first",
    [
        _FAILURES[0],
        "NET/IB: Got completion from peer 10.0.0.1<4791> with status={} opcode=0 len=0 vendor err 129 (Recv)",
        "w{}",
    ],
)
def test_no_number_of_other_warnings_hides_a_failure(first: str) -> None:
    """A pod whose log comes first writes as many as it likes."""

    def warn(host: str, texts: typing.Iterable[str]) -> list[str]:
        return [f"{host}:1:5 [0] x.cc:1 NCCL WARN {text}\n" for text in texts]

    names = ("".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=3))
    alone = parse(warn("worker-2", _FAILURES))
    spam = [
        first.format(number) if "status" in first else first.format("") + name
        for number, name in zip(range(3000), names)
    ]
    log = parse(warn("worker-1", spam) + warn("worker-2", _FAILURES))
    kinds = {problem.kind for problem in alone.problems}
    assert len(kinds) == 3 and "" not in kinds
    assert {problem.kind for problem in log.problems if "worker-2" in problem.hosts} == kinds
    assert len(log.problems) <= 2010 and sum(problem.count for problem in log.problems) + log.untold == 3003
    findings = judge_log(log, None, False)
    assert any(
        item.status == "unknown" and "further warnings, not listed" in item.measured for item in findings
    ) == bool(log.untold)


def test_of_a_file_of_one_host_only_lines_with_its_head_count() -> None:
    own = ["pod-a:1:1 [0] NCCL INFO Using network IB\n", "x pod-a:1:2 [0] NCCL INFO Using network IB\n"]
    others = [
        f"{before}{host}:1:1 [0] {rest}\n"
        for before in ("", "pod-a: ", "pod-a:1:1 [0] ", "[1,0]<stdout>:pod-a:")
        for host in ("pod-b", "pod-ab")
        for rest in (
            "NCCL INFO Using network Socket",
            "misc/ibvwrap.cc:1 NCCL WARN NET/IB : Got completion with status=12",
        )
    ]
    logs = PodLogs()
    assert logs.add("a.log", "pod-a", [*own, *others], 1)
    log = logs.build_log()
    assert [(process.host, process.network) for process in log.processes] == [("pod-a", "IB")]
    assert (log.problems, log.torn) == ((), 0)


def test_the_logs_of_pods_are_read_once_and_tell_what_one_log_of_them_tells() -> None:
    pods = {
        f"pod-{name}": [
            f"pod-{name}:{pid}:1 [0] NCCL INFO Using network IB\n",
            f"pod-{name}:{pid}:1 [0] misc/ibvwrap.cc:1 NCCL WARN NET/IB : Got completion with status=12\n",
            "NCCL version 2.28.9+cuda13.0\n",
            "pod-c:1:1 [0] NCCL INFO Using network Socket\n",
            "cut",
        ]
        for name, pid in (("a", 7), ("b", 8))
    }
    taken: list[str] = []

    def lines(name: str) -> typing.Iterator[str]:
        for line in pods[name]:
            taken.append(line)
            yield line

    logs = PodLogs()
    assert logs.add("pod-a", "pod-a", lines("pod-a"), 1)
    assert not logs.add("forged", "pod-b", [f"pod-b:{pid}:1 [0] NCCL INFO Using network IB\n" for pid in range(9)], 8)
    assert logs.add("pod-b", "pod-b", lines("pod-b"), 1)
    found = logs.build_log()
    assert len(taken) == 10
    own = [line for lines in pods.values() for line in lines if "pod-c" not in line]
    alone = parse(own)
    assert [(process.host, process.pid, process.network) for process in found.processes] == [
        ("pod-a", 7, "IB"),
        ("pod-b", 8, "IB"),
    ]
    (problem,) = found.problems
    assert (problem.count, problem.hosts, problem.line) == (2, ("pod-a", "pod-b"), 2) and alone.problems[0].count == 2
    assert (found.versions, found.lines, found.nccl_lines, found.cut) == (("2.28.9+cuda13.0",), 10, 4, True)


def test_what_stops_the_reading_of_one_pods_log_leaves_the_others() -> None:
    def fails() -> typing.Iterator[str]:
        yield "pod-b:1:1 [0] NCCL INFO Using network IB\n"
        raise TimeoutError

    logs = PodLogs()
    assert logs.add("pod-a", "pod-a", ["pod-a:1:1 [0] NCCL INFO Using network IB\n"], 1)
    with pytest.raises(TimeoutError):
        logs.add("pod-b", "pod-b", fails(), 1)
    assert [process.host for process in logs.build_log().processes] == ["pod-a"]
