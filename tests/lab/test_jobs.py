# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that are rendered, before the real training operator and the real Kueue: queued, admitted, made into pods that are on the network, and finished.

GPUs are a number in the nodes' status, and the job is no training: what runs in its pods looks at what they got.
"""

from __future__ import annotations

import json
import typing

import pytest

from lab.processes import wait_until

from .conftest import Lab
from .test_definitions import RENDERED, play

pytestmark = pytest.mark.thorough

#: pods of a network without RDMA devices: on one with RDMA, the job rightly refuses to start without them, and software devices are no part of a job
JOB = {
    "name": "train",
    "fabric": "fast",
    "nodes": 2,
    "gpus_per_node": 1,
    "image": "localhost/rdma-tools:1",
    "command": ["sh", "-c", 'ip -4 -brief address show net1 && test -n "$PET_NNODES" && test "$NCCL_SOCKET_IFNAME" = =net1'],
    "cpu": "250m",
    "memory": "64Mi",
    "shared_memory": "16Mi",
    "queue": "gpu",
}
QUEUES = "kueue.x-k8s.io/v1beta2"
SECONDS = 180


def queue(name: str, gpus: int) -> typing.List[typing.Dict[str, typing.Any]]:
    """A queue for so many GPUs, and its place in the namespace of the pods."""
    quotas = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    flavor = {"name": "gpu-nodes", "resources": [{"name": key, "nominalQuota": value} for key, value in quotas.items()]}
    return [
        {"kind": "ResourceFlavor", "metadata": {"name": "gpu-nodes"}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": list(quotas), "flavors": [flavor]}]},
        },
        {"kind": "LocalQueue", "metadata": {"name": name, "namespace": "training"}, "spec": {"clusterQueue": name}},
    ]


@pytest.fixture(scope="module", autouse=True)
def operators(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[None]:
    here = Lab(tmp_path_factory.mktemp("operators"))
    started = here.command("operators", "on")
    try:
        assert started.returncode == 0, started.stderr
        for item in (*queue("gpu", 2), *queue("small", 1)):
            here.apply({"apiVersion": QUEUES, **item})
        for name in ("worker-1", "worker-2"):
            here.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": {"nvidia.com/gpu": "1"}}}, "status")
        yield
    finally:
        for name in ("worker-1", "worker-2"):
            here.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {}}, "status")
        stopped = here.command("operators", "off")
    assert stopped.returncode == 0, stopped.stderr


def condition(lab: Lab, kind: str, job: str, name: str) -> typing.Dict[str, typing.Any]:
    """A condition of the objects of a job, once it is there; they carry the job's name or begin with it."""

    def items() -> typing.List[typing.Dict[str, typing.Any]]:
        return [item for item in lab.objects(kind) if job in item["metadata"]["name"]]

    def found() -> typing.List[typing.Dict[str, typing.Any]]:
        return [entry for item in items() for entry in (item.get("status") or {}).get("conditions") or [] if entry["type"] == name]

    assert wait_until(lambda: bool(found()), SECONDS, 2), f"{kind} {job} has no condition {name}: {json.dumps([item.get('status') for item in items()])}"
    return found()[0]


def test_a_job_is_admitted_runs_on_its_network_and_ends(lab: Lab) -> None:
    made = lab.playbook(play(lab.folder, custom_resources={"objects": RENDERED}), variables={"rdma_job": JOB})
    assert made.code == 0, made.end
    assert condition(lab, f"{QUEUES}/Workload", "train", "Admitted")["status"] == "True"
    assert condition(lab, "kubeflow.org/v1/PyTorchJob", "train", "Succeeded")["status"] == "True"
    pods = [item for item in lab.objects("v1/Pod", "linerate.rdma/job=train") if item["spec"]["nodeName"]]
    assert {item["spec"]["nodeName"] for item in pods} == {"worker-1", "worker-2"}
    networks = [json.loads(item["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"]) for item in pods]
    addresses = [entry["ips"][0] for status in networks for entry in status if entry["name"] == "training/macvlan-fast"]
    assert len(set(addresses)) == 2 and all(address.startswith("10.86.0.") for address in addresses), networks


def test_a_job_for_which_the_queue_has_no_room_is_named_by_the_linter(lab: Lab) -> None:
    job = {**JOB, "name": "waits", "queue": "small"}
    made = lab.playbook(play(lab.folder, custom_resources={"objects": RENDERED}), variables={"rdma_job": job})
    assert made.code == 0, made.end
    waiting = condition(lab, f"{QUEUES}/Workload", "waits", "QuotaReserved")
    assert waiting["status"] == "False" and "nvidia.com/gpu" in waiting["message"], waiting
    assert lab.objects("v1/Pod", "linerate.rdma/job=waits") == []
    judged = lab.playbook(play(lab.folder, job_lint={"kind": "PyTorchJob", "name": "waits", "namespace": "training"}))
    assert judged.code != 0
    words = " ".join(judged.output.split())
    assert "stack.queue" in words and "The job asks for more than the queue ever has: it stays suspended." in words, judged.end


def test_jobs_are_taken_back_with_their_pods(lab: Lab) -> None:
    gone = lab.playbook(play(lab.folder, custom_resources={"state": "absent", "kinds": ["PyTorchJob"]}))
    assert gone.code == 0, gone.end
    assert lab.objects("kubeflow.org/v1/PyTorchJob") == []
    assert wait_until(lambda: lab.objects("v1/Pod", "linerate.rdma/job") == [], SECONDS, 2), "the pods of a job that is gone are still there"
