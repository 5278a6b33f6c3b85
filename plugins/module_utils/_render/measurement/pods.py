# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of stage bandwidth, each with one interface on the fabric beside its default interface.

There is one pod for each node and fabric, or one for each rail if nodes have several HCAs on the fabric. Rails have
separate pods for two reasons. Interfaces of one pod on one IP network answer ARP requests for each other. A topology
manager with the policy single-numa-node admits no pod with HCAs of two NUMA nodes.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import attachment_name, resource_of
from ..cluster.names import Object, build_labels, object_name

CONTAINER = "rdma"
#: a pod that nobody took back frees its virtual function after this time, in seconds, unless its work is planned to
#: take longer
LIFETIME_SECONDS = 14400


def name_pod(fabric: str, node: str, number: int = 0) -> str:
    """Return the name of a pod of one fabric on one node.

    :param number: number of the pod among those of the fabric on the node. 0 means the first pod, whose name contains
        no number
    """
    return object_name("linerate", fabric, node, str(number) if number else "")


def render_measuring_pod(
    fabric: Fabric, cluster: ClusterIntent, node: str, number: int = 0, run: str = "", lifetime: int = LIFETIME_SECONDS
) -> Object:
    """Render a pod of ``fabric`` on ``node``, owned by a run. Requests equal limits (QoS class Guaranteed). The pod is
    not privileged.

    Its security context is that of a restricted namespace with two exceptions: IPC_LOCK, without which memory cannot be
    pinned, and the user of the image, because an added capability is effective for root only.

    :param node: name of the node
    :param number: number that distinguishes several pods of the fabric on the node
    :param run: id of the run that owns the pod; empty for none
    :param lifetime: seconds after which the kubelet ends the pod
    """
    wanted = fabric.pods
    resource, attachment = resource_of(fabric, cluster), attachment_name(fabric)
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory, **({resource: "1"} if resource else {})}
    container: dict[str, typing.Any] = {
        "name": CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": wanted.image_pull_policy,
        "command": ["sleep", "infinity"],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec: dict[str, typing.Any] = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_render_node_term(node)]}
            }
        },
        "activeDeadlineSeconds": lifetime,
        "automountServiceAccountToken": False,
        "containers": [container],
        # all that they talk to are addresses
        "dnsPolicy": "Default",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
    }
    if wanted.runtime_class:
        spec["runtimeClassName"] = wanted.runtime_class
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    if wanted.tolerations:
        spec["tolerations"] = [dict(item) for item in wanted.tolerations]
    if wanted.service_account:
        spec["serviceAccountName"] = wanted.service_account
    if wanted.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.image_pull_secrets]
    if wanted.mount_infiniband:
        container["volumeMounts"] = [{"name": "infiniband", "mountPath": "/dev/infiniband"}]
        spec["volumes"] = [{"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_pod(fabric.name, node, number),
            "namespace": fabric.network.namespace,
            "labels": build_labels(fabric.name, run),
            "annotations": {"k8s.v1.cni.cncf.io/networks": attachment} if attachment else {},
        },
        "spec": spec,
    }


def _render_node_term(node: str) -> Object:
    # by the node's own name: the label kubernetes.io/hostname may differ from it
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
