# SPDX-License-Identifier: GPL-3.0-or-later

"""Two nodes with eight GPUs and four rails, two fabrics, and a job on one of them."""

from __future__ import annotations

import json
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    JobSurroundings,
    VolumeClaim,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.job_objects import parse_attachment
from ansible_collections.linerate.rdma.plugins.module_utils._render.job.job import render

COMPUTE = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": ["any"], "hcas_per_node": 4, "vendor": "15b3", "device": "1021"},
    "virtual_functions": 8,
    "resource_name": "mlx_compute",
    "network": {"name": "sriov-ib-compute", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "100.100.0.0/22"},
}
ROCE = {
    **COMPUTE,
    "name": "roce",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3", "device": "1021"},
    "resource_name": "mlx_roce",
    "network": {"name": "sriov-roce", "namespace": "training"},
    "ipam": {"type": "whereabouts", "range": "100.101.0.0/22"},
}
FABRICS = tuple(load(Fabric, item, "rdma_fabrics") for item in (COMPUTE, ROCE))
JOB = {
    "name": "train",
    "nodes": 2,
    "gpus_per_node": 8,
    "image": "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
    "command": ["torchrun", "/etc/training/train.py"],
    "cpu": "64",
    "memory": "512Gi",
    "fabric": "compute",
    "claim": {"name": "models", "path": "/models"},
    "config": {"name": "training", "path": "/etc/training"},
}


def job(**changes: typing.Any) -> Job:
    answer: Job = load(Job, {**JOB, **changes}, "rdma_job")
    return answer


def objects(**changes: typing.Any) -> list[dict[str, typing.Any]]:
    """What is rendered, as the API server would give it back: no two parts of it are one."""
    answer: list[dict[str, typing.Any]] = json.loads(json.dumps(render(job(**changes), FABRICS, ClusterIntent())))
    return answer


def definition(name: str, kind: str, resource: str = "", **ipam: typing.Any) -> dict[str, typing.Any]:
    """A NetworkAttachmentDefinition."""
    annotations = {"k8s.v1.cni.cncf.io/resourceName": resource} if resource else {}
    config = {"cniVersion": "1.0.0", "name": name, "type": kind, "ipam": {"type": "whereabouts", **ipam}}
    return {
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "training", "annotations": annotations},
        "spec": {"config": json.dumps(config)},
    }


def node(name: str, **more: int) -> ClusterNode:
    return ClusterNode(
        name,
        {},
        True,
        allocatable={"nvidia.com/gpu": 8, "openshift.io/mlx_compute": 32, "openshift.io/mlx_roce": 8, **more},
    )


ATTACHMENTS = tuple(
    parse_attachment(item)
    for item in (
        definition("sriov-ib-compute", "ib-sriov", "openshift.io/mlx_compute"),
        definition("sriov-roce", "sriov", "openshift.io/mlx_roce"),
        definition("rdmashared-net", "macvlan"),
    )
)
WORLD = JobSurroundings(
    nodes=(node("worker-1"), node("worker-2")),
    attachments=ATTACHMENTS,
    claims=(
        VolumeClaim("training/models", ("ReadWriteMany",), "Bound"),
        VolumeClaim("training/scratch", ("ReadWriteOnce",), "Bound"),
    ),
)
