# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of nccl-tests: the same words whoever starts its ranks, what its proof needs, and pods that get a node's GPUs
and rails and nothing more."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.operand import OperandError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import Roce
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.agent import parse_requests
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import RenderError
from ansible_collections.linerate.rdma.plugins.module_utils._render.job import job_start
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import collectives
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.collectives import (
    LOG_FOLDER,
    host_name,
    read_logs,
    remove_logs,
    render_environment,
    render_mpirun,
    render_pod,
    render_ranks_command,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.measuring import (
    move_fabrics,
    render_policy,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.mpirun_agent import (
    AGENT_FOLDER,
    answer_request,
    place_agent,
    start_daemon,
    take_requests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod
from ansible_collections.linerate.rdma.tests.unit.check.job_world import FABRICS

WANTED = Collectives("registry.example/nccl-tests:1", "32", "256Gi", gpus_per_node=8)
TWO = CollectiveRun("two-nodes-1", "all_reduce", ("worker-1", "worker-2"), by_rail=True)
ALL = CollectiveRun("all", "all_reduce", ("worker-1", "worker-2", "worker-3"))
ONE = CollectiveRun("one-1", "all_reduce", ("worker-1",))
RAIL = CollectiveRun("rail-3", "all_reduce", ("worker-1", "worker-2", "worker-3"), gpu=3)
COMPUTE, CLUSTER = FABRICS[0], ClusterIntent()


def words(run: CollectiveRun, hosts: typing.Sequence[str] = ()) -> tuple[str, ...]:
    return render_mpirun(run, WANTED, COMPUTE, CLUSTER, hosts or [f"pod-{node}" for node in run.nodes])


def test_the_proof_needs_the_log_of_each_process_in_a_file_of_its_own() -> None:
    for run in (ONE, TWO, ALL, RAIL):
        found = render_environment(run, WANTED)
        assert found["NCCL_DEBUG"] == "INFO" and {"INIT", "NET", "ENV", "TUNING"} == set(
            found["NCCL_DEBUG_SUBSYS"].split(",")
        )
        assert found["NCCL_DEBUG_FILE"] == f"{LOG_FOLDER}/{run.name}.%h.%p"
        # NVLS connects no ring, and what is not connected is not in the log
        assert (found["NCCL_ALGO"], found["NCCL_NVLS_ENABLE"]) == ("Ring", "0")
        assert ("NCCL_MNNVL_ENABLE" in found) == (len(run.nodes) > 1)


def test_runs_between_nodes_use_the_traffic_class_of_the_fabric() -> None:
    fabric = dataclasses.replace(COMPUTE, roce=Roce(dscp=24))
    for run in (ONE, TWO, ALL, RAIL):
        found = render_mpirun(run, WANTED, fabric, CLUSTER, [f"pod-{node}" for node in run.nodes])
        assert ("NCCL_IB_TC=98" in found) == (len(run.nodes) > 1)
        assert "NCCL_IB_TC" not in render_environment(run, WANTED)


def test_rail_by_rail_is_a_group_for_each_gpu_and_the_time_of_the_slowest() -> None:
    assert render_environment(TWO, WANTED)[
        "NCCL_TESTS_SPLIT"
    ] == "MOD 8" and "NCCL_TESTS_SPLIT" not in render_environment(ALL, WANTED)
    for run in (ONE, TWO, ALL, RAIL):
        found = render_ranks_command(run, WANTED, COMPUTE, CLUSTER)
        test = found[found.index("/opt/nccl-tests/build/all_reduce_perf") :]
        assert test[test.index("-a") + 1] == "3" and test[test.index("-c") + 1] == "1"
        assert (test[test.index("-b") + 1], test[test.index("-e") + 1]) == (str(1 << 30), str(1 << 33))


def test_small_messages_have_8_bytes_and_the_time_of_each_iteration() -> None:
    found = words(dataclasses.replace(TWO, small=True))
    assert [found[found.index(option) + 1] for option in ("-b", "-e", "-n", "-I")] == ["8", "8", "1000", "1"]
    assert "-I" not in words(TWO)


def test_a_repeat_sets_its_variable_and_takes_others_out() -> None:
    run = dataclasses.replace(ALL, variables=(("NCCL_PXN_DISABLE", "1"), ("NCCL_BUFFSIZE", None)))
    assert render_environment(run, WANTED) == {**render_environment(ALL, WANTED), "NCCL_PXN_DISABLE": "1"}
    found = words(run)
    assert found[found.index("NCCL_PXN_DISABLE=1") - 1] == "-x"
    place = found.index("-u")
    assert found[place - 1 : place + 3] == ("env", "-u", "NCCL_BUFFSIZE", "/opt/nccl-tests/build/all_reduce_perf")
    assert "env" not in words(ALL)


def test_one_node_has_nobody_to_ask_for_and_no_program_for_it() -> None:
    # Open MPI 5 complains of a program that is not there
    assert "plm_rsh_agent" not in words(ONE) and "plm_rsh_agent" in words(TWO) and "plm_rsh_no_tree_spawn" in words(TWO)


def test_the_smallest_message_is_that_of_the_intent() -> None:
    small = dataclasses.replace(WANTED, least_bytes=1 << 16, most_bytes=1 << 17)
    found = render_mpirun(TWO, small, COMPUTE, CLUSTER, ("a", "b"))
    assert (found[found.index("-b") + 1], found[found.index("-e") + 1]) == ("65536", "131072")


def test_ranks_of_a_node_follow_each_other() -> None:
    found = words(TWO, ("pod-1", "pod-2"))
    assert (
        found[found.index("-np") + 1] == "16"
        and found[found.index("--host") + 1] == "pod-1:8,pod-2:8"
        and "ppr:8:node" in found
    )
    assert found[found.index("plm_rsh_agent") + 1] == f"{AGENT_FOLDER}/two-nodes-1"
    found = words(RAIL, ("pod-1", "pod-2", "pod-3"))
    assert (
        found[found.index("-np") + 1] == "3"
        and found[found.index("--host") + 1] == "pod-1:1,pod-2:1,pod-3:1"
        and "CUDA_VISIBLE_DEVICES=3" in found
    )


def test_ranks_over_the_network_find_the_hcas_of_their_pod() -> None:
    assert (
        render_ranks_command(ALL, WANTED, COMPUTE, CLUSTER)[:2] == ("sh", "-c")
        and "NCCL_IB_HCA" in render_ranks_command(ALL, WANTED, COMPUTE, CLUSTER)[4]
    )
    assert render_ranks_command(ONE, WANTED, COMPUTE, CLUSTER)[0] == "/opt/nccl-tests/build/all_reduce_perf"


def test_a_pod_of_each_node_gets_its_gpus_and_rails_and_nothing_more() -> None:
    for node in TWO.nodes:
        item = render_pod(node, WANTED, COMPUTE, CLUSTER, "run-1")
        (term,) = item["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchFields"][0]["values"] == [node]
        assert item["metadata"]["labels"]["linerate.rdma/run"] == "run-1" and item["spec"]["restartPolicy"] == "Never"
        (container,) = item["spec"]["containers"]
        limits = container["resources"]["limits"]
        assert limits == container["resources"]["requests"] and limits["nvidia.com/gpu"] == "8"
        assert limits["openshift.io/mlx_compute"] == str(COMPUTE.select.hcas_per_node)
        assert (
            item["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].count("sriov-ib-compute")
            == COMPUTE.select.hcas_per_node
        )
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
        assert item["spec"]["automountServiceAccountToken"] is False and "hostPath" not in str(item)


def test_wishes_of_the_fabric_for_pods_are_kept() -> None:
    fabric = dataclasses.replace(
        COMPUTE, pods=dataclasses.replace(COMPUTE.pods, service_account="rdma", tolerations=({"operator": "Exists"},))
    )
    pod = render_pod("worker-1", WANTED, fabric, CLUSTER)
    assert (pod["spec"]["containers"][0]["image"], pod["spec"]["containers"][0]["imagePullPolicy"]) == (
        WANTED.image,
        "IfNotPresent",
    )
    assert pod["spec"]["serviceAccountName"] == "rdma" and pod["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (CollectiveRun("x", "all_reduce", ()), "it has no nodes, or contains a node twice"),
        (CollectiveRun("x", "all_reduce", ("a", "a")), "it has no nodes, or contains a node twice"),
        (CollectiveRun("x", "all_reduce", ("a", "b"), gpu=8), "GPU 8 is not one of the 8 GPUs of a node"),
        (CollectiveRun("x", "all_reduce", ("a",), by_rail=True), "at least two nodes"),
        (CollectiveRun("x", "all_reduce", ("a", "b"), by_rail=True, gpu=1), "requires all GPUs"),
        (CollectiveRun("x", "all_reduce", ("a",), gpu=1), "one GPU of one node has no peer to send to"),
    ],
)
def test_runs_that_cannot_be_meant(run: CollectiveRun, said: str) -> None:
    with pytest.raises(RenderError, match=said):
        words(run)


def test_pods_have_host_names_that_stay_apart() -> None:
    assert render_pod("worker-1", WANTED, COMPUTE, CLUSTER)["spec"]["hostname"] == "worker-1"
    names = [
        host_name(name) for name in ("gpu.a", "gpu.b", "gpu-a", "x" * 80 + "1", "x" * 80 + "2", "worker-1.example.com")
    ]
    assert len(set(names)) == len(names) and all(len(name) <= 63 and "." not in name for name in names)


def test_what_goes_to_a_pod_is_one_line() -> None:
    for command in (
        words(TWO),
        words(ONE),
        place_agent(TWO),
        take_requests(TWO),
        answer_request(TWO, 7, 0),
        start_daemon("orted", 300),
        read_logs(TWO, 1),
        remove_logs(TWO),
    ):
        assert all(word.isprintable() for word in command)


def test_the_program_in_the_place_of_ssh_asks_and_waits_for_the_answer(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectives, "AGENT_FOLDER", str(tmp_path))
    assert subprocess.run(place_agent(TWO), check=True, capture_output=True).stdout == b""
    asking = subprocess.Popen([str(tmp_path / "two-nodes-1"), "pod-2", "echo  'a b' \\n;", "exit 3"])
    (request,) = poll(
        lambda: parse_requests(subprocess.run(take_requests(TWO), check=True, capture_output=True, text=True).stdout)
    )
    assert (request.host, request.words) == ("pod-2", "echo  'a b' \\n; exit 3")
    # each is given out once
    assert subprocess.run(take_requests(TWO), check=True, capture_output=True).stdout == b""
    done = subprocess.run(start_daemon(request.words, 300), check=False, capture_output=True, text=True)
    assert done.returncode == 3
    subprocess.run(answer_request(TWO, request.number, done.returncode), check=True)
    assert asking.wait(30) == 3


def test_a_daemon_that_stays_in_the_foreground_goes_on_behind_its_command(tmp_path: pathlib.Path) -> None:
    """As that of Open MPI 5 does: whoever waited for it would hold its pod, and end its run after two minutes."""
    pid, may, ended = (tmp_path / name for name in ("pid", "may", "ended"))
    words = f"echo $$ > {pid}; until [ -e {may} ]; do sleep 0.1; done; echo > {ended}"
    # nobody holds what the command writes to
    done = subprocess.run(start_daemon(words, 300), check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"") and not ended.exists()
    may.touch()
    assert poll(lambda: [path for path in (ended,) if path.exists()]) and pid.exists()


def poll(look: typing.Callable[[], typing.Sequence[typing.Any]]) -> typing.Sequence[typing.Any]:
    """Return the first answer that is not empty, for half a minute at most."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = look()
        if found:
            return found
    return ()


def test_logs_are_read_in_pieces_and_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "LOG_FOLDER", str(tmp_path))
    monkeypatch.setattr(collectives, "LOG_PIECE", 4)
    for name, text in (
        ("two-nodes-1.pod-1.7", "abc\n"),
        ("two-nodes-1.pod-1.8", "de\n"),
        ("two-nodes-11.pod-1.9", "other\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    pieces = [
        subprocess.run(read_logs(TWO, piece), check=True, capture_output=True, text=True).stdout for piece in range(3)
    ]
    assert pieces == ["abc\n", "de\n", ""]
    subprocess.run(remove_logs(TWO), check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["two-nodes-11.pod-1.9"]


def test_ranks_start_with_the_hcas_of_their_pod_behind_one_line() -> None:
    """The script of the start is found again whole."""
    script = render_ranks_command(ALL, WANTED, COMPUTE, CLUSTER)[4]
    found = subprocess.run(["/bin/sh", "-c", 'printf %b "$1"', "x", script], check=True, capture_output=True, text=True)
    assert found.stdout == job_start.render_start_command("openshift.io/mlx_compute", False, ["x"])[2]


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a\nb"])
def test_no_host_is_an_option(host: str) -> None:
    with pytest.raises(OperandError):
        words(TWO, (host, "b"))
    with pytest.raises(OperandError):
        render_ranks_command(ONE, dataclasses.replace(WANTED, program_folder=host), COMPUTE, CLUSTER)


@pytest.mark.parametrize("run", ["run-1", "2026-11-28T10:00:00Z of user@host"])
def test_pods_of_a_run_admit_each_other_and_no_pod_of_another_run(run: str) -> None:
    (fabric,), admitted = move_fabrics([COMPUTE]), render_policy(run)
    ((peer,),) = (rule["from"] for rule in admitted["spec"]["ingress"])
    of_run = peer.pop("podSelector")["matchLabels"].items()
    # no selector of namespaces: pods of the same namespace
    assert not peer and admitted["spec"]["podSelector"] == {}

    def made(owner: str) -> list[dict[str, typing.Any]]:
        return [render_pod("a", WANTED, fabric, CLUSTER, owner), render_measuring_pod(fabric, CLUSTER, "a", run=owner)]

    assert {item["metadata"]["namespace"] for item in made(run)} == {admitted["metadata"]["namespace"]}
    assert all(of_run <= item["metadata"]["labels"].items() for item in made(run))
    assert not any(of_run <= item["metadata"]["labels"].items() for other in ("", "run-2") for item in made(other))
