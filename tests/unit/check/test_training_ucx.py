# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage training for jobs whose data go by UCX: a log that shows RDMA by the HCAs of the pods passes, and nothing else
does."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.training.ucx import judge_endpoints
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.cluster import check_cluster
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    Intent,
    Training,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse_text
from ansible_collections.linerate.rdma.tests.unit.check.test_training import ETHERNET, FUNCTIONS, facts, intent, pod

FIRST, SECOND = list(FUNCTIONS)[:2]
LANES = " ".join(f"rc_mlx5/{device}:1" for device in FUNCTIONS)
GOOD = f"inter-node cfg#2 rma({LANES}) am(rc_mlx5/{FIRST}:1) ka(ud_mlx5/{FIRST}:1)"
LOCAL = "intra-node cfg#1 tag(sysv/memory cma/memory)"


def log(*endpoints: str, host: str = "job-worker-0") -> str:
    return "".join(f"[1.2] [{host}:71:0]  ucp_worker.c:1855 UCX  INFO  ucp_context_0 {text}\n" for text in endpoints)


def judged(text: str, library: str = "ucx", **changes: typing.Any) -> list[Finding]:
    return list(check(intent(library=library), facts(log=parse_text(text), **changes)))


def of_hosts(text: str, **changes: typing.Any) -> dict[str, str]:
    return {item.subject: item.status for item in judged(text, **changes) if item.check == "training.ucx"}


def test_rdma_by_the_hcas_of_the_pods_passes_without_a_line_of_nccl() -> None:
    text = log(LOCAL, GOOD) + log(GOOD, host="job-worker-1")
    assert of_hosts(text) == {"job-worker-0": PASS, "job-worker-1": PASS}
    assert {item.status for item in judged(text)} == {PASS}
    assert [item.status for item in judged(text, "nccl") if item.check == "training.log"] == [UNKNOWN]


def test_a_host_that_ucx_writes_with_its_domain_is_that_of_its_pod() -> None:
    text = log(GOOD, host="job-worker-0.job.training.svc.cluster.local") + log(GOOD, host="job-worker-1")
    assert of_hosts(text) == {"job-worker-0": PASS, "job-worker-1": PASS}


@pytest.mark.parametrize(
    ("endpoint", "status", "said"),
    [
        ("inter-node cfg#2 rma_am(tcp/eth0) am(tcp/eth0)", FAIL, "over TCP"),
        (f"inter-node cfg#2 tag(rc_mlx5/{FIRST}:1 tcp/eth0)", WARN, "TCP in addition to RDMA"),
        # idle HCAs are named beside TCP
        (f"inter-node cfg#2 tag(rc_mlx5/{FIRST}:1 tcp/eth0)", WARN, "UCX_MAX_RNDV_RAILS HCAs"),
        ("inter-node cfg#2 tag(rc_mlx5/mlx5_99:1)", FAIL, "did not get mlx5_99 as an HCA of the fabric"),
        ("inter-node cfg#2", UNKNOWN, "its line in the log is incomplete"),
        (
            "inter-node cfg#2 rma(cuda_ipc/cuda) am(cuda_ipc/cuda)",
            UNKNOWN,
            "1 endpoint to other hosts uses only NVLink between nodes",
        ),
        (f"inter-node cfg#2 rma(cuda_ipc/cuda) am(rc_mlx5/{FIRST}:1)", WARN, "in addition to RDMA"),
        ("inter-node cfg#2 rma(cuda_ipc/cuda) am(tcp/eth0)", FAIL, "over TCP"),
        (f"inter-node cfg#2 am(ud_verbs/{FIRST}:1)", WARN, "unreliable datagrams"),
        (LOCAL, UNKNOWN, "did not use the network"),
        (f"inter-node cfg#2 rma(rc_mlx5/{FIRST}:1 rc_mlx5/{SECOND}:1)", WARN, "UCX_MAX_RNDV_RAILS HCAs"),
    ],
)
def test_endpoints_that_prove_nothing(endpoint: str, status: str, said: str) -> None:
    (found,) = [
        item
        for item in judged(log(endpoint) + log(GOOD, host="job-worker-1"))
        if item.check == "training.ucx" and item.status != PASS
    ]
    assert (found.subject, found.status) == ("job-worker-0", status) and said in found.why and found.remedy


@pytest.mark.parametrize("lanes", [f"rc_mlx5/{FIRST}:1", f"rc_mlx5/{FIRST}:1 tcp/eth0"])
def test_tcp_beside_rdma_does_not_hide_that_no_pod_was_read(lanes: str) -> None:
    text = log(f"inter-node cfg#2 tag({lanes})")
    (found,) = judge_endpoints(parse_text(text), {})
    assert (found.status, found.measured.endswith("; HCAs of the pod not read")) == (UNKNOWN, True)


def test_hcas_of_all_processes_of_a_host_count_together() -> None:
    each = [f"inter-node cfg#2 rma(rc_mlx5/{device}:1)" for device in FUNCTIONS]
    assert set(of_hosts(log(*each) + log(*each, host="job-worker-1")).values()) == {PASS}
    (found,) = [item for item in judged(log(*each[:-1]) + log(GOOD, host="job-worker-1")) if item.status != PASS]
    last = list(FUNCTIONS)[-1]
    assert (found.status, found.measured.partition(":")[0]) == (WARN, "3 of 4 HCAs used")
    assert f"uses {last}," in found.why and "UCX_MAX_RNDV_RAILS=4" in found.remedy


def test_gpus_of_one_node_may_use_what_they_like() -> None:
    text = log("intra-node cfg#1 rma(cuda_ipc/cuda) am(sysv/memory)", GOOD) + log(GOOD, host="job-worker-1")
    assert of_hosts(text) == {"job-worker-0": PASS, "job-worker-1": PASS}


def test_nvlink_between_nodes_without_known_hcas_stays_unknown() -> None:
    text = log(f"inter-node cfg#2 rma(cuda_ipc/cuda) am(rc_mlx5/{FIRST}:1)")
    assert of_hosts(text, pods=None) == {"job-worker-0": UNKNOWN}


def test_one_endpoint_over_tcp_among_many_fails() -> None:
    text = log(*[GOOD] * 7, "inter-node cfg#3 tag(tcp/eth0)") + log(GOOD, host="job-worker-1")
    assert of_hosts(text) == {"job-worker-0": FAIL, "job-worker-1": PASS}


def test_a_pod_of_the_job_that_wrote_no_line_is_missed() -> None:
    assert of_hosts(log(GOOD)) == {"job-worker-0": PASS, "job-worker-1": UNKNOWN}
    (found,) = [item for item in judged(log(GOOD)) if item.status == UNKNOWN]
    assert found.measured == "no line about an endpoint" and "UCX_LOG_LEVEL=info" in found.remedy
    # a launcher without the network, and a pod of another job, need none; one whose networks are not known does
    apart = dataclasses.replace(pod(*ETHERNET[0]), name="other", host="other-0", job="another")
    launcher = dataclasses.replace(pod(*ETHERNET[0]), name="launcher", host="launcher", functions=())
    unread = dataclasses.replace(launcher, name="unread", host="unread", functions=None, error="no annotation")
    both = log(GOOD) + log(GOOD, host="job-worker-1")
    pods = tuple(pod(*names) for names in ETHERNET)
    assert set(of_hosts(both, pods=(*pods, apart, launcher)).values()) == {PASS}
    assert of_hosts(both, pods=(*pods, unread))["unread"] == UNKNOWN


@pytest.mark.parametrize(
    "torn",
    [
        "inter-node cfg#2 rma(tcp/eth0) am(tcp/e",
        "inter-node cfg#",
        "ep_cfg[2]: tag(tcp/eth0",
        "self cfg#0 tag(self/memory0 cma/memory",
    ],
)
def test_a_line_of_an_endpoint_that_is_torn_is_not_lost_in_silence(torn: str) -> None:
    both = log(GOOD) + log(GOOD, host="job-worker-1")
    for text in (both + log(torn), log(torn) + both, both + log(torn).rstrip("\n")):
        assert of_hosts(text) == {"job-worker-0": PASS, "job-worker-1": PASS, "other endpoints": UNKNOWN}


def test_ranks_are_not_asked_of_a_library_that_writes_none() -> None:
    wanted = Training(ranks=64, library="ucx")
    refused = [
        item
        for item in check_cluster(Intent((), cluster=ClusterIntent(training=wanted)))
        if "training.ranks" in item.subject
    ]
    assert [item.status for item in refused] == [FAIL] and "The UCX log does not contain ranks" in refused[0].why


def test_no_endpoint_and_no_pod_are_unknown() -> None:
    assert of_hosts("a line of the program\n") == {"job": UNKNOWN}
    assert of_hosts(log(GOOD), pods=None) == {"job-worker-0": UNKNOWN}
    assert of_hosts(log(GOOD), pods=(pod(*ETHERNET[0], functions=None, error="no annotation"),)) == {
        "job-worker-0": UNKNOWN
    }
    twice = (pod(*ETHERNET[0]), pod("job-worker-0", "worker-2"))
    assert of_hosts(log(GOOD), pods=twice) == {"job-worker-0": UNKNOWN}
    many = "".join(log(f"inter-node cfg#3 tag(rc_mlx5/mlx5_{number}:1)") for number in range(1010))
    assert of_hosts(many)["other endpoints"] == UNKNOWN


def test_errors_of_ucx_are_told_as_well() -> None:
    text = log(GOOD) + "[1.2] [job-worker-0:71:0] ib_md.c:2  UCX  ERROR ibv_reg_mr failed: Cannot allocate memory\n"
    assert [item.status for item in judged(text) if item.check == "training.problem"] == [FAIL]
    assert [item.status for item in check(intent(library="ucx"), Facts())] == [UNKNOWN], "a log is asked for"
