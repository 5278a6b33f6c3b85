# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of nccl-tests: the same words whoever starts its ranks, what its proof needs, and pods that get a node's GPUs and rails and nothing more."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.collectives import CollectiveRun, Collectives
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operand import OperandError
from ansible_collections.linerate.rdma.plugins.module_utils._render.collectives import AGENT, LOG_FOLDER, environment, mpirun, ranks_command, render_run
from ansible_collections.linerate.rdma.plugins.module_utils._render.names import RenderError
from ansible_collections.linerate.rdma.tests.unit.check.job_world import FABRICS

WANTED = Collectives("registry.example/nccl-tests:1", "32", "256Gi", gpus_per_node=8)
TWO = CollectiveRun("two-nodes-1", "all_reduce", ("worker-1", "worker-2"), by_rail=True)
ALL = CollectiveRun("all", "all_reduce", ("worker-1", "worker-2", "worker-3"))
ONE = CollectiveRun("one-1", "all_reduce", ("worker-1",))
RAIL = CollectiveRun("rail-3", "all_reduce", ("worker-1", "worker-2", "worker-3"), gpu=3)
COMPUTE, CLUSTER = FABRICS[0], ClusterIntent()


def words(run: CollectiveRun, hosts: typing.Sequence[str] = ()) -> typing.Tuple[str, ...]:
    return mpirun(run, WANTED, COMPUTE, CLUSTER, hosts)


def test_the_proof_needs_the_log_of_each_process_in_a_file_of_its_own() -> None:
    for run in (ONE, TWO, ALL, RAIL):
        found = environment(run, WANTED)
        assert found["NCCL_DEBUG"] == "INFO" and {"INIT", "NET", "ENV", "TUNING"} == set(found["NCCL_DEBUG_SUBSYS"].split(","))
        assert found["NCCL_DEBUG_FILE"] == f"{LOG_FOLDER}/{run.name}.%h.%p"
        # NVLS connects no ring, and what is not connected is not in the log
        assert (found["NCCL_ALGO"], found["NCCL_NVLS_ENABLE"]) == ("Ring", "0")
        assert ("NCCL_MNNVL_ENABLE" in found) == (len(run.nodes) > 1)


def test_rail_by_rail_is_a_group_for_each_gpu_and_the_time_of_the_slowest() -> None:
    assert environment(TWO, WANTED)["NCCL_TESTS_SPLIT"] == "MOD 8" and "NCCL_TESTS_SPLIT" not in environment(ALL, WANTED)
    for run in (ONE, TWO, ALL, RAIL):
        found = ranks_command(run, WANTED, COMPUTE, CLUSTER)
        test = found[found.index("/opt/nccl-tests/build/all_reduce_perf") :]
        assert test[test.index("-a") + 1] == "3" and test[test.index("-c") + 1] == "1"
        assert (test[test.index("-b") + 1], test[test.index("-e") + 1]) == (str(1 << 30), str(1 << 33))


def test_ranks_of_a_node_follow_each_other() -> None:
    found = words(TWO, ("pod-1", "pod-2"))
    assert found[found.index("-np") + 1] == "16" and found[found.index("--host") + 1] == "pod-1:8,pod-2:8" and "ppr:8:node" in found
    assert found[found.index("plm_rsh_agent") + 1] == AGENT
    found = words(RAIL, ("pod-1", "pod-2", "pod-3"))
    assert found[found.index("-np") + 1] == "3" and found[found.index("--host") + 1] == "pod-1:1,pod-2:1,pod-3:1" and "CUDA_VISIBLE_DEVICES=3" in found


def test_ranks_over_the_network_find_the_hcas_of_their_pod() -> None:
    assert ranks_command(ALL, WANTED, COMPUTE, CLUSTER)[:2] == ("sh", "-c") and "NCCL_IB_HCA" in ranks_command(ALL, WANTED, COMPUTE, CLUSTER)[2]
    assert ranks_command(ONE, WANTED, COMPUTE, CLUSTER)[0] == "/opt/nccl-tests/build/all_reduce_perf"


def test_pods_of_the_nodes_and_what_starts_the_ranks() -> None:
    launch = render_run(TWO, WANTED, COMPUTE, CLUSTER, "run-1")
    assert [item["kind"] for item in launch.objects] == ["Pod", "Pod"] and launch.command is not None
    names = [item["metadata"]["name"] for item in launch.objects]
    assert launch.command[launch.command.index("--host") + 1] == ",".join(f"{name}:8" for name in names) and len(set(names)) == 2
    for node, item in zip(TWO.nodes, launch.objects):
        (term,) = item["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [node]
        assert item["metadata"]["labels"]["linerate.rdma/run"] == "run-1" and item["spec"]["restartPolicy"] == "Never"
        (container,) = item["spec"]["containers"]
        limits = container["resources"]["limits"]
        assert limits == container["resources"]["requests"] and limits["nvidia.com/gpu"] == "8"
        assert limits["openshift.io/mlx_compute"] == str(COMPUTE.select.hcas_per_node)
        assert item["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].count("sriov-ib-compute") == COMPUTE.select.hcas_per_node
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
        assert item["spec"]["automountServiceAccountToken"] is False and "hostPath" not in str(item)


def test_a_job_of_the_mpi_operator_has_the_same_words() -> None:
    launch = render_run(ALL, dataclasses.replace(WANTED, launcher="MPIJob"), COMPUTE, CLUSTER)
    (job,) = launch.objects
    assert launch.command is None and (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    launcher, workers = (job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
    assert launcher["template"]["spec"]["containers"][0]["command"] == list(words(ALL)) and not {"--host", AGENT} & set(words(ALL))
    assert workers["replicas"] == 3 and job["spec"]["slotsPerWorker"] == 8 and job["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
    # a run that failed is not tried again, and its logs stay until they are read
    assert job["spec"]["runPolicy"]["backoffLimit"] == 0 and job["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    affinity = workers["template"]["spec"]["affinity"]
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == list(ALL.nodes)
    (apart,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"].items() <= workers["template"]["metadata"]["labels"].items()


def test_images_come_from_the_mirror_and_wishes_of_the_fabric_are_kept() -> None:
    fabric = dataclasses.replace(COMPUTE, pods=dataclasses.replace(COMPUTE.pods, service_account="rdma", tolerations=({"operator": "Exists"},)))
    cluster = ClusterIntent(mirror={"registry.example": "mirror.example/all"})
    (pod, _other), _command = render_run(TWO, WANTED, fabric, cluster)
    assert pod["spec"]["containers"][0]["image"].startswith("mirror.example/")
    assert pod["spec"]["serviceAccountName"] == "rdma" and pod["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (CollectiveRun("x", "all_reduce", ()), "its nodes are none"),
        (CollectiveRun("x", "all_reduce", ("a", "a")), "there twice"),
        (CollectiveRun("x", "all_reduce", ("a", "b"), gpu=8), "GPU 8 is none of the 8"),
        (CollectiveRun("x", "all_reduce", ("a",), by_rail=True), "two nodes at least"),
        (CollectiveRun("x", "all_reduce", ("a", "b"), by_rail=True, gpu=1), "takes all GPUs"),
        (CollectiveRun("x", "all_reduce", ("a",), gpu=1), "sends nothing"),
    ],
)
def test_runs_that_cannot_be_meant(run: CollectiveRun, said: str) -> None:
    with pytest.raises(RenderError, match=said):
        render_run(run, WANTED, COMPUTE, CLUSTER)


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a\nb"])
def test_no_host_is_an_option(host: str) -> None:
    with pytest.raises(OperandError):
        words(TWO, (host, "b"))
    with pytest.raises(OperandError):
        ranks_command(ONE, dataclasses.replace(WANTED, program_folder=host), COMPUTE, CLUSTER)
