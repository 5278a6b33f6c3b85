# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines in which UCX writes the transports of its endpoints, in the forms of several releases: openucx/ucx pull
requests 3511 and 8699, issues 9080, 9515 and 10854, and what ucx_perftest 1.21 writes."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.job.kept_log import keep_log
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.ucx import UcxEndpoint
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.transports import parse_endpoint

OLD = "[1624984398.083715] [r39c2t5n1:22453:0]     ucp_worker.c:1720 UCX  INFO  "
NEW = "[1701292112.829711] [a670n1:162239:0]      ucp_worker.c:1855 UCX  INFO    0x100b240 "


@pytest.mark.parametrize(
    ("line", "host", "scope", "lanes"),
    [
        (
            f"{OLD}ep_cfg[1]: tag(rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1);",
            "r39c2t5n1",
            "",
            ("rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"),
        ),
        (f"{OLD}ep_cfg[0]: tag(self/memory cma/memory);", "r39c2t5n1", "", ("cma/memory", "self/memory")),
        (f"{OLD}ep_cfg[2]: rma(rc_mlx5/mlx5_0:1); amo(rc_mlx5/mlx5_0:1); ", "r39c2t5n1", "", ("rc_mlx5/mlx5_0:1",)),
        (
            f"{NEW}inter-node cfg#3 tag(rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_0:1)",
            "a670n1",
            "inter-node",
            ("rc_mlx5/mlx5_0:1",),
        ),
        (
            f"{NEW}self cfg#1 tag(sysv/memory cuda_copy/cuda) rma(sysv/memory)",
            "a670n1",
            "self",
            ("cuda_copy/cuda", "sysv/memory"),
        ),
        (
            f"{NEW}inter-node cfg#2 rma_am(tcp/eth1) amo_am(tcp/eth1) am(tcp/eth1) ka(ud_mlx5/mlx5_0:1)",
            "a670n1",
            "inter-node",
            ("tcp/eth1",),
        ),
        (
            "[1.2] [hostname:3473 :0] ucp_worker.c:1903 UCX  INFO  perftest inter-node cfg#0 tag(rc_verbs/erdma_0:1)",
            "hostname",
            "inter-node",
            ("rc_verbs/erdma_0:1",),
        ),
        (f"{NEW}intra-node cfg#2", "a670n1", "intra-node", ()),
    ],
)
def test_lines_of_several_releases(line: str, host: str, scope: str, lanes: tuple[str, ...]) -> None:
    assert parse_endpoint(line) == (host, scope, lanes)


@pytest.mark.parametrize(
    "line",
    [
        f"{NEW}inter-node cfg#3 tag(rc_mlx5/mlx5_0:1",
        f"{NEW}inter-node cfg#3 tag(rc_mlx5)",
        f"{NEW}| inter-node cfg#2 | put(multi) from cuda/GPU0 to rocm",
        NEW.replace("INFO", "DEBUG") + "inter-node cfg#3 tag(rc_mlx5/mlx5_0:1)",
        f"{NEW}inter-node cfg#3 tag({' '.join(f'rc_mlx5/mlx5_{number}:1' for number in range(65))})",
        "inter-node cfg#3 tag(rc_mlx5/mlx5_0:1)",
    ],
)
def test_what_is_no_whole_line_of_an_endpoint(line: str) -> None:
    assert parse_endpoint(line) is None


def test_a_log_counts_endpoints_that_are_alike() -> None:
    one, other = f"{NEW}inter-node cfg#3 tag(rc_mlx5/mlx5_0:1)\n", f"{NEW}inter-node cfg#4 tag(tcp/eth0)\n"
    log = nccl_log.parse_text(one + "a line of the program\n" + other + one)
    assert log.endpoints == (
        UcxEndpoint("a670n1", "inter-node", ("rc_mlx5/mlx5_0:1",), 2),
        UcxEndpoint("a670n1", "inter-node", ("tcp/eth0",), 1),
    )
    assert (log.nccl_lines, log.more_endpoints) == (0, 0)
    logs = nccl_log.PodLogs()
    assert [logs.add(name, host, one.splitlines(True), 8) for name, host in (("a", "a670n1"), ("b", "b"))] == [
        True,
        True,
    ]
    assert [endpoint.count for endpoint in logs.build_log().endpoints] == [1], (
        "no pod tells of another host than its own"
    )
    many = "".join(f"{NEW}inter-node cfg#3 tag(rc_mlx5/mlx5_{number}:1)\n" for number in range(1010))
    found = nccl_log.parse_text(many)
    assert (len(found.endpoints), found.more_endpoints) == (1000, 10)
    kept = keep_log(found, 8).shared
    assert (kept.endpoints, kept.more_endpoints) == ((), 0), "they fill no fact of stage collectives"


@pytest.mark.parametrize(
    ("lanes", "scope", "over", "devices"),
    [
        (("rc_mlx5/mlx5_0:1", "cuda_ipc/cuda"), "", True, ("mlx5_0",)),
        (("self/memory", "cma/memory", "gdr_copy/cuda"), "", False, ()),
        (("tcp/eth0",), "", True, ()),
        (("tcp/lo", "sysv/memory"), "intra-node", False, ()),
        ((), "inter-node", True, ()),
        (("srd/rdmap0s6:1", "tcp/eth0"), "inter-node", True, ("rdmap0s6",)),
    ],
)
def test_which_endpoints_go_over_a_network(
    lanes: tuple[str, ...], scope: typing.Any, over: bool, devices: tuple[str, ...]
) -> None:
    endpoint = UcxEndpoint("a", scope, lanes)
    assert (endpoint.over_network, endpoint.devices) == (over, devices)


@hypothesis.given(some.text(max_size=200))
@hypothesis.settings(max_examples=60, deadline=None)
def test_no_lane_is_made_up(text: str) -> None:
    found = parse_endpoint(f"{NEW}inter-node cfg#3 tag({text})")
    assert found is None or all(lane in text for lane in found.lanes)
