# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The pods of the bandwidth stage (row S1.10): one a node and fabric, with one virtual function as a secondary interface."""

from __future__ import annotations

import typing

from .._model.intent import Cluster, Fabric
from .names import labels, object_name, resource

Object = typing.Dict[str, typing.Any]

CONTAINER = "rdma"
#: a pod that nobody took back frees its virtual function after this time, in seconds
LIFETIME_SECONDS = 14400


def pod_name(fabric: str, node: str) -> str:
    """Of the pod of one fabric on one node."""
    return object_name("linerate", fabric, node)


def pod(fabric: Fabric, cluster: Cluster, node: str) -> Object:
    """The pod of ``fabric`` on ``node``. Requests equal limits (QoS class Guaranteed); nothing is privileged."""
    wanted = fabric.pods
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory, resource(cluster.resource_prefix, fabric.resource_name): "1"}
    container: typing.Dict[str, typing.Any] = {
        "name": CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": wanted.image_pull_policy,
        "command": ["sleep", "infinity"],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        # pinned memory of the queue pairs
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
    }
    spec: typing.Dict[str, typing.Any] = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_on(node)]}}},
        "activeDeadlineSeconds": LIFETIME_SECONDS,
        "automountServiceAccountToken": False,
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
    }
    if wanted.runtime_class:
        spec["runtimeClassName"] = wanted.runtime_class
    if wanted.mount_infiniband:
        container["volumeMounts"] = [{"name": "infiniband", "mountPath": "/dev/infiniband"}]
        spec["volumes"] = [{"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(fabric.name, node),
            "namespace": fabric.network.namespace,
            "labels": labels(fabric.name),
            "annotations": {"k8s.v1.cni.cncf.io/networks": f"{fabric.network.namespace}/{fabric.network.name}"},
        },
        "spec": spec,
    }


def _on(node: str) -> Object:
    # by the node's own name: the label kubernetes.io/hostname may differ from it
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
