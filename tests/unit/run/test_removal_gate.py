# SPDX-License-Identifier: GPL-3.0-or-later

"""What a teardown refuses before it removes anything: jobs that have not ended, whoever made them."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Disruption, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.remove import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal_gate import refuse_removal
from tests.unit.run.test_intents import KINDS, RUNNING, SELECTOR, A, Api, intent_of, job, objects_of, scope_of

Item = dict[str, typing.Any]
RESTARTING = {
    "conditions": [
        {"type": "Created", "status": "True"},
        {"type": "Running", "status": "False"},
        {"type": "Restarting", "status": "True"},
    ],
    "replicaStatuses": {"Worker": {"active": 7}},
}
SUSPENDED = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Suspended", "status": "True"}]}
SUCCEEDED = {"conditions": [*RUNNING["conditions"], {"type": "Succeeded", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}


def gate(api: Api, intent: Intent = A, permitted: Disruption = "reboot") -> None:
    refuse_removal(typing.cast(Cluster, api), Removal(KINDS, SELECTOR, scope=scope_of(intent)), permitted)


def template(network: str = "", resource: str = "") -> Item:
    annotations = {"k8s.v1.cni.cncf.io/networks": network} if network else {}
    limits = {"nvidia.com/gpu": "8", **({resource: "1"} if resource else {})}
    containers = [{"name": "pytorch", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def foreign(made: Item, **spec: typing.Any) -> Item:
    """A job or a pod that a user made without the collection."""
    metadata = {**made["metadata"], "labels": {}, "managedFields": [{"manager": "kubectl"}]}
    return {**made, "metadata": metadata, "spec": spec}


def pytorch(network: str = "", resource: str = "", namespace: str = "jobs-compute", **status: typing.Any) -> Item:
    replicas = {"Worker": {"replicas": 2, "template": template(network, resource)}}
    return foreign(job("theirs", namespace, **status), pytorchReplicaSpecs=replicas)


@pytest.mark.parametrize("intent", [A, intent_of("compute")])
def test_a_job_of_an_earlier_release_counts(intent: Intent) -> None:
    api = Api(*objects_of(intent, marked=False), job("old", "jobs-compute", "", **RUNNING))
    with pytest.raises(RdmaError, match="have not ended: PyTorchJob jobs-compute/old"):
        gate(api, intent)
    gate(Api(*objects_of(intent, marked=False), job("old", "jobs-storage", "", **RUNNING)), intent)


@pytest.mark.parametrize(
    ("status", "refused"),
    [(RESTARTING, True), (SUSPENDED, True), ({}, True), (SUCCEEDED, False), (FAILED, False)],
)
def test_only_a_job_that_has_ended_passes(status: Item, refused: bool) -> None:
    api = Api(*objects_of(A), job("mine", "jobs-compute", "a", **status))
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="PyTorchJob jobs-compute/mine"):
        gate(api)


@pytest.mark.parametrize(
    ("theirs", "refused"),
    [
        (pytorch(network="net-compute@net1"), True),
        (pytorch(network='[{"name": "net-compute"}]'), True),
        (pytorch(network="other, jobs-compute/net-compute"), True),
        (pytorch(resource="openshift.io/compute"), True),
        (pytorch(network="jobs-storage/net-compute", resource="openshift.io/storage"), False),
        (pytorch(network="net-compute", namespace="elsewhere"), False),
        (pytorch(), False),
        (pytorch(network="net-compute", **SUCCEEDED), False),
    ],
)
def test_a_job_of_a_user_counts_if_it_uses_the_intent(theirs: Item, refused: bool) -> None:
    api = Api(*objects_of(A), theirs)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="PyTorchJob jobs-compute/theirs"):
        gate(api)


@pytest.mark.parametrize(
    ("kind", "resource", "refused"),
    [
        ("TrainingRuntime", "openshift.io/compute", True),
        ("TrainingRuntime", "openshift.io/storage", False),
        # its pods are not known
        ("ClusterTrainingRuntime", "openshift.io/storage", True),
    ],
)
def test_the_runtime_of_a_train_job_says_what_it_uses(kind: str, resource: str, refused: bool) -> None:
    made = foreign(job("train", "jobs-compute"), runtimeRef={"kind": kind, "name": "torch"})
    runtime = foreign(job("torch", "jobs-compute"), template={"spec": {"replicatedJobs": [template("", resource)]}})
    api = Api(*objects_of(A), {**made, "kind": "TrainJob"}, {**runtime, "kind": "TrainingRuntime"})
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="TrainJob jobs-compute/train"):
        gate(api)


@pytest.mark.parametrize(
    ("owner", "phase", "resource", "node", "refused"),
    [
        ("", "Running", "openshift.io/compute", "a0", True),
        ("Job", "Running", "openshift.io/compute", "a0", True),
        ("ReplicaSet", "Running", "openshift.io/compute", "a0", False),
        ("", "Succeeded", "openshift.io/compute", "a0", False),
        ("", "Pending", "openshift.io/compute", "", False),
        ("", "Running", "openshift.io/storage", "a0", False),
    ],
)
def test_a_pod_that_holds_a_resource_counts(owner: str, phase: str, resource: str, node: str, refused: bool) -> None:
    spec = {**template("", resource)["spec"], **({"nodeName": node} if node else {})}
    pod = {**foreign(job("mpi", "jobs-compute", phase=phase), **spec), "kind": "Pod"}
    pod["metadata"]["ownerReferences"] = [{"kind": owner, "name": "o", "uid": "u"}] if owner else []
    api = Api(*objects_of(A), pod)
    if not refused:
        gate(api)
        return
    with pytest.raises(RdmaError, match="Pod jobs-compute/mpi"):
        gate(api)
