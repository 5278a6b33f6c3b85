# SPDX-License-Identifier: GPL-3.0-or-later

"""torchrun in the pods of a job: pods that train alone, and GPUs without a process."""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check.job_world import WORLD, objects

Resource = dict[str, typing.Any]
_SH = ("sh", "-c")


def with_command(*command: str, env: typing.Sequence[Resource] = ()) -> list[Resource]:
    """Return a PyTorchJob of two pods with eight GPUs each, in which a command is the only difference."""
    made = objects()
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container["command"] = list(command)
        container["env"] += env
    return made


def of_kind(kind: str, spec: Resource, *command: str, env: typing.Sequence[Resource] = ()) -> list[Resource]:
    """Return an object of another kind with the pods of ``with_command``."""
    (job,) = with_command(*command, env=env)
    template = copy.deepcopy(job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"])
    return [{"kind": kind, "metadata": job["metadata"], "spec": {**spec, "template": template}}]


def found_in(made: typing.Sequence[Resource]) -> list[Finding]:
    jobs = [item for item in made if item["kind"] != "TrainingRuntime"]
    found = [item for item in lint(jobs, made, WORLD) if item.status != "pass" and item.check != "job.added"]
    assert {item.check for item in found} <= {"job.framework"}
    return found


def shown(made: typing.Sequence[Resource]) -> set[tuple[str, str]]:
    return {(item.status, item.measured) for item in found_in(made)}


@pytest.mark.parametrize(
    ("command", "measured"),
    [
        (("torchrun", "--standalone", "--nproc_per_node=8", "train.py"), "--standalone"),
        (("torchrun", "--nnodes=1", "--nproc-per-node=8", "train.py"), "--nnodes 1"),
        (("torchrun", "--nnodes", "1:1", "train.py"), "--nnodes 1:1"),
        (("python", "-m", "torch.distributed.run", "--nnodes=1", "train.py"), "--nnodes 1"),
        (("python3", "-m", "torch.distributed.launch", "--use_env", "--nnodes=1", "train.py"), "--nnodes 1"),
        ((*_SH, "cd /x && /opt/conda/bin/torchrun --max-restarts 3 \\\n  --nnodes 1 train.py"), "--nnodes 1"),
        ((*_SH, "N=1; torchrun --nnodes=$N train.py"), "--nnodes 1"),
        ((*_SH, 'torchrun --nnodes="${N:-1}" train.py'), "--nnodes 1"),
        # fewer pods than the job waits for
        (("torchrun", "--nnodes=3", "train.py"), "--nnodes 3"),
        (("torchrun", "--nnodes=3:4", "train.py"), "--nnodes 3:4"),
        (("torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "t.py"), "localhost:0"),
        (("torchrun", "--master_addr", "127.0.0.1", "t.py"), "127.0.0.1"),
        (("torchrun", "--master-addr=[::1]", "t.py"), "[::1]"),
    ],
)
def test_pods_that_train_alone_are_refused(command: tuple[str, ...], measured: str) -> None:
    found = found_in(with_command(*command))
    assert {(item.status, item.measured) for item in found} == {("fail", measured)}
    assert len(found) == 2 and all(item.why and item.remedy for item in found)


@pytest.mark.parametrize(
    "command",
    [
        ("torchrun", "train.py"),
        ("torchrun", "--nnodes=2", "--nproc-per-node=8", "train.py"),
        ("torchrun", "--nnodes=1:2", "train.py"),
        ("torchrun", "--nproc_per_node=gpu", "--rdzv-endpoint=train-master-0:29500", "train.py"),
        (*_SH, "torchrun --nnodes=$PET_NNODES --nproc_per_node=$(PET_NPROC_PER_NODE) train.py"),
        # options of the program, and of a later command
        ("torchrun", "train.py", "--nnodes=1", "--standalone"),
        ("torchrun", "-m", "package.train", "--nnodes=1"),
        (*_SH, "torchrun train.py; echo --standalone"),
        (*_SH, "torchrun train.py\necho --nnodes=1"),
        # a value of an option is not its script
        ("torchrun", "--rdzv-id", "standalone", "--nnodes", "2", "train.py"),
        ("./mytorchrun.sh", "--nnodes=1"),
    ],
)
def test_torchrun_that_uses_all_pods_passes(command: tuple[str, ...]) -> None:
    assert found_in(with_command(*command)) == []


def test_a_number_of_nodes_that_only_a_shell_knows_is_not_a_pass() -> None:
    assert shown(with_command(*_SH, "torchrun --nnodes=$NODES train.py")) == {("warn", "--nnodes $NODES")}


def test_a_job_of_one_pod_may_be_standalone() -> None:
    made = objects(nodes=1)
    (container,) = made[0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    container["command"] = ["torchrun", "--standalone", "--nproc-per-node=8", "train.py"]
    assert found_in(made) == []


@pytest.mark.parametrize(("number", "why"), [("1", "idle"), ("7", "idle"), ("16", "invalid device ordinal")])
def test_processes_that_are_not_the_gpus_of_a_pod(number: str, why: str) -> None:
    found = found_in(with_command("torchrun", f"--nproc_per_node={number}", "train.py"))
    assert {(item.status, item.measured) for item in found} == {("warn", f"--nproc-per-node {number}")}
    assert all(why in item.why for item in found)


def test_processes_that_the_operator_gives_to_torchrun() -> None:
    expected = {("warn", "processes per node in the object of the job: 1")}
    made = with_command("torchrun", "train.py")
    made[0]["spec"]["nprocPerNode"] = "1"
    assert shown(made) == expected
    # an option takes precedence
    made = with_command("torchrun", "--nproc-per-node=8", "train.py")
    made[0]["spec"]["nprocPerNode"] = "1"
    assert shown(made) == set()
    made = objects(kind="TrainJob")
    (train,) = (item for item in made if item["kind"] == "TrainJob")
    train["spec"]["trainer"]["numProcPerNode"] = 1
    assert shown(made) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        ("Job", {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}, "fail"),
        ("StatefulSet", {"replicas": 2, "serviceName": "train"}, "fail"),
        ("Deployment", {"replicas": 2}, "warn"),
    ],
)
def test_without_an_operator_torchrun_needs_the_number_of_nodes(kind: str, spec: Resource, status: str) -> None:
    alone = of_kind(kind, spec, "torchrun", "--nproc-per-node=8", "train.py")
    assert shown(alone) == {(status, "--nnodes not set, so 1")}
    together = ("--nnodes=2", "--nproc-per-node=8", "--rdzv-endpoint=train-0.train:29500", "train.py")
    assert shown(of_kind(kind, spec, "torchrun", *together)) == set()
    environment = [{"name": "PET_NNODES", "value": "2"}, {"name": "PET_NPROC_PER_NODE", "value": "8"}]
    assert shown(of_kind(kind, spec, "torchrun", "train.py", env=environment)) == set()


def test_groups_of_pods_may_be_jobs_of_their_own() -> None:
    command = ("torchrun", "--nnodes=2", "--nproc-per-node=8", "train.py")
    # without a cluster: its two nodes have no room for four such pods
    made = of_kind("StatefulSet", {"replicas": 4}, *command)
    (found,) = (item for item in lint(made, made) if item.check == "job.framework")
    assert (found.status, found.measured) == ("warn", "--nnodes 2")


def test_a_job_runs_no_more_pods_than_its_completions() -> None:
    command = ("torchrun", "--standalone", "--nproc-per-node=8", "train.py")
    made = of_kind("Job", {"parallelism": 2, "completions": 1}, *command)
    assert found_in(made) == []
    (read,) = (item for item in lint(made, made, WORLD) if item.check == "job.read")
    assert read.measured == "1 pod"
