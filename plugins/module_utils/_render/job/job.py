# SPDX-License-Identifier: GPL-3.0-or-later

"""A training job on a fabric: PyTorchJob of the training operator v1, or TrainJob of Kubeflow Trainer v2.

A TrainJob comes with its own TrainingRuntime, which contains the pod template: not every release of v2 lets a TrainJob
set the volumes and capabilities of its pods. [src kubeflow/trainer v1.9.4
manifests/base/crds/kubeflow.org_pytorchjobs.yaml, pkg/webhooks/pytorch; v2.0.0, v2.3.0 pkg/apis/trainer/v1alpha1]
"""

from __future__ import annotations

import re
import typing

from ..._model.base.marks import DEFAULT_INTENT, INTENT_LABEL, mark_intent
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.mirror import on_mirror
from ..._model.intent.profiles import attachment_name, carries_rdma, find_traits, is_infiniband, resource_of
from ..._model.job.job import Job
from ..cluster.names import MANAGED_BY, RenderError, build_labels
from . import job_start

Object = dict[str, typing.Any]

JOB_LABEL = "linerate.rdma/job"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
_TRAINER = "trainer.kubeflow.org/v1alpha1"


def render(job: Job, fabrics: typing.Sequence[Fabric], cluster: ClusterIntent) -> tuple[Object, ...]:
    """Render the objects of a job, in the order in which they are applied.

    :raises RenderError: the intent does not contain the fabric of the job, the job has no namespace, or an option of
        the job is invalid
    """
    named = next((item for item in fabrics if item.name == job.fabric), None)
    if named is None and job.fabric is not None:
        raise RenderError(
            f"rdma_job.fabric: no fabric has the name '{job.fabric}'; rdma_fabrics contains"
            f" {', '.join(item.name for item in fabrics)}"
        )
    # a fabric of the profile pod_network is no other network than none
    fabric = named if named is not None and attachment_name(named) else None
    _refuse_invalid_job(job, fabric)
    namespace = job.namespace or (named.network.namespace if named else "")
    if not namespace:
        raise RenderError("rdma_job.namespace: missing; a job on the pod network has no fabric that sets the namespace")
    made: tuple[Object, ...]
    if job.kind == "PyTorchJob":
        made = (_render_pytorch_job(job, namespace, _render_template(job, fabric, cluster, "pytorch")),)
    else:
        made = _render_train_job(job, namespace, _render_template(job, fabric, cluster, "node"))
    return tuple(mark_intent(item, cluster.intent_name) for item in made)


def _refuse_invalid_job(job: Job, fabric: typing.Optional[Fabric]) -> None:
    """Raise an error for invalid or contradictory options of a job.

    :param fabric: fabric to whose network the pods are attached; None if they have the pod network only
    :raises RenderError: the message names the key and the allowed values
    """
    most = (
        fabric.select.hcas_per_node * (fabric.virtual_functions if find_traits(fabric).functions else 1)
        if fabric
        else 0
    )
    for wrong, key, seen, allowed in (
        (
            not _NAME.fullmatch(job.name),
            "name",
            f"'{job.name}'",
            "at most 50 lower-case letters, digits and hyphens, beginning with a letter",
        ),
        (job.nodes < 1, "nodes", str(job.nodes), "at least 1"),
        (job.gpus_per_node < 1, "gpus_per_node", str(job.gpus_per_node), "at least 1"),
        (not job.command, "command", "nothing", "the command of a pod, such as [torchrun, train.py]"),
        (
            fabric is not None and not 1 <= count_interfaces(job, fabric) <= most,
            "interfaces",
            str(job.interfaces),
            f"1 to {most}, the number of interfaces of a node",
        ),
        (fabric is None and job.interfaces is not None, "interfaces", str(job.interfaces), "no value without a fabric"),
        (fabric is None and job.nic_map is not None, "nic_map", str(job.nic_map), "no value without a fabric"),
    ):
        if wrong:
            raise RenderError(f"rdma_job.{key}: {seen}; expected {allowed}")


def _render_metadata(job: Job, namespace: str, **more: str) -> Object:
    return {"name": job.name, "namespace": namespace, "labels": {**MANAGED_BY, JOB_LABEL: job.name, **more}}


def _render_pytorch_job(job: Job, namespace: str, template: Object) -> Object:
    replicas = {"Master": 1, "Worker": job.nodes - 1}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": _render_metadata(job, namespace, **_render_queue_label(job)),
        "spec": {
            "nprocPerNode": str(job.gpus_per_node),
            "pytorchReplicaSpecs": {
                role: {"replicas": count, "restartPolicy": "OnFailure", "template": template}
                for role, count in replicas.items()
                if count
            },
        },
    }


def _render_train_job(job: Job, namespace: str, template: Object) -> tuple[Object, Object]:
    pods = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": template},
        },
    }
    runtime = {
        "apiVersion": _TRAINER,
        "kind": "TrainingRuntime",
        "metadata": _render_metadata(job, namespace),
        "spec": {"mlPolicy": {"numNodes": job.nodes, "torch": {}}, "template": {"spec": {"replicatedJobs": [pods]}}},
    }
    train = {
        "apiVersion": _TRAINER,
        "kind": "TrainJob",
        "metadata": _render_metadata(job, namespace, **_render_queue_label(job)),
        "spec": {
            "runtimeRef": {"apiGroup": _TRAINER.partition("/")[0], "kind": "TrainingRuntime", "name": job.name},
            "trainer": {"numNodes": job.nodes, "numProcPerNode": job.gpus_per_node},
        },
    }
    return runtime, train


def _render_queue_label(job: Job) -> dict[str, str]:
    return {QUEUE_LABEL: job.queue} if job.queue else {}


def _render_template(job: Job, fabric: typing.Optional[Fabric], cluster: ClusterIntent, name: str) -> Object:
    """Render the pod template of the job, which creates one pod on each node. Requests equal limits (QoS class
    Guaranteed).

    :param fabric: fabric to whose network the pods are attached; None if they have the pod network only
    :param name: name of the container, by which the training operator recognizes it
    """
    mounts, volumes = _render_volumes(job)
    amounts = {"cpu": job.cpu, "memory": job.memory, job.gpu_resource: str(job.gpus_per_node)}
    container: Object = {
        "name": name,
        "image": on_mirror(job.image, cluster.mirror),
        "command": list(job.command),
        "env": [{"name": key, "value": value} for key, value in render_environment(job, fabric).items()],
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    of_fabric = build_labels(fabric.name) if fabric else MANAGED_BY
    metadata: Object = {
        "labels": {**of_fabric, JOB_LABEL: job.name, INTENT_LABEL: cluster.intent_name or DEFAULT_INTENT}
    }
    spec: Object = {
        "affinity": _render_anti_affinity(job),
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": volumes,
    }
    if fabric is not None:
        count, device = count_interfaces(job, fabric), resource_of(fabric, cluster)
        if device:
            # a plugin that shares devices puts all of them into the pod at once
            amounts[device] = "1" if find_traits(fabric).shared else str(count)
        metadata["annotations"] = {"k8s.v1.cni.cncf.io/networks": ",".join([attachment_name(fabric)] * count)}
        if carries_rdma(fabric):
            # RoCE needs the index of a GID, InfiniBand does not
            container["command"] = list(
                job_start.render_start_command(
                    device or attachment_name(fabric), not is_infiniband(fabric), job.command
                )
            )
            container["securityContext"]["capabilities"]["add"] = ["IPC_LOCK"]
        if job.nic_map is not None:
            volumes.append({"name": "nic-map", "configMap": {"name": job.nic_map}})
            spec["initContainers"] = [_list_addresses(fabric)]
    container["resources"] = {"requests": dict(amounts), "limits": dict(amounts)}
    for key, value in (
        ("tolerations", [dict(item) for item in job.tolerations]),
        ("serviceAccountName", job.service_account),
        ("imagePullSecrets", [{"name": secret} for secret in job.image_pull_secrets]),
    ):
        if value:
            spec[key] = value
    return {"metadata": metadata, "spec": spec}


def _render_volumes(job: Job) -> tuple[list[Object], list[Object]]:
    mounts: list[Object] = [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    volumes: list[Object] = [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": job.shared_memory}}
    ]
    if job.claim is not None:
        mounts.append({"name": "claim", "mountPath": job.claim.path})
        volumes.append({"name": "claim", "persistentVolumeClaim": {"claimName": job.claim.name}})
    if job.config is not None:
        mounts.append({"name": "config", "mountPath": job.config.path})
        volumes.append({"name": "config", "configMap": {"name": job.config.name}})
    return mounts, volumes


def _render_anti_affinity(job: Job) -> Object:
    """Render the rule that puts the pods of the job on different nodes. Traffic between pods of one node would not
    leave it.
    """
    term = {"labelSelector": {"matchLabels": {JOB_LABEL: job.name}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _list_addresses(fabric: Fabric) -> Object:
    amounts = {"cpu": "100m", "memory": "64Mi"}
    return {
        "name": "addresses",
        "image": fabric.pods.image,
        "imagePullPolicy": fabric.pods.image_pull_policy,
        "command": list(job_start.render_address_command()),
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "volumeMounts": [{"name": "nic-map", "mountPath": job_start.MAP_FOLDER}],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}},
    }


def count_interfaces(job: Job, fabric: Fabric) -> int:
    """Return the number of a pod's interfaces on the fabric, named ``net1`` to ``net<n>``. Without a setting in the job
    it is the number of HCAs of a node.
    """
    return fabric.select.hcas_per_node if job.interfaces is None else job.interfaces


def render_environment(job: Job, fabric: typing.Optional[Fabric]) -> dict[str, str]:
    """Return the environment variables of a job's pods: the settings of NCCL that are equal in all pods, and the user's
    own variables, which override them.

    :param fabric: fabric of the job; None for a job on the pod network
    """
    if fabric is None:
        network = {"NCCL_SOCKET_IFNAME": "=eth0", "NCCL_IB_DISABLE": "1"}
    else:
        network = {
            "NCCL_SOCKET_IFNAME": "="
            + ",".join(f"net{number}" for number in range(1, count_interfaces(job, fabric) + 1))
        }
        if not carries_rdma(fabric):
            network["NCCL_IB_DISABLE"] = "1"
    # NET says for each HCA whether GPUDirect is on
    variables = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", **network}
    if job.topology_file:
        variables["NCCL_TOPO_FILE"] = job.topology_file
    return {**variables, **job.environment}
