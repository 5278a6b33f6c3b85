# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the CPU and the memory of each node, and how much of them pods request."""

from __future__ import annotations

from ..._model.base.marks import is_ours
from ..._model.kubernetes.controller import NodeRoom
from ..._parse.kubernetes.core import parse_controller
from ..._parse.kubernetes.foreign import is_mirror_pod
from ..._parse.kubernetes.pod_requests import Amounts, parse_allocatable, parse_pod_amounts
from ..._parse.kubernetes.resource import ResourceError, labels_of, mapping_at, name_of, why_not_read
from .client import Cluster

#: pods that have ended request nothing any more
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


def observe(cluster: Cluster) -> tuple[NodeRoom, ...]:
    """Return the room of each node of the cluster. Pods of the collection do not count: they end with their run.

    :raises ApiError: the API server refuses the nodes or the pods, or cannot be reached
    """
    kept: dict[str, Amounts] = {}
    moving: dict[str, Amounts] = {}
    for pod in cluster.pages("Pod", fields=_NOT_ENDED, partial=True):
        try:
            node = mapping_at(pod, "spec").get("nodeName")
            if why_not_read(pod) or not isinstance(node, str) or is_ours(labels_of(pod)):
                continue
            stays = is_mirror_pod("Pod", pod) or parse_controller(pod)[0] == "DaemonSet"
            of_kind = kept if stays else moving
            of_kind[node] = of_kind.get(node, Amounts()).plus(parse_pod_amounts(pod))
        except ResourceError:
            # a tenant may write a pod of another form, which must not hide what the others request
            continue
    found = []
    for item in cluster.pages("Node", partial=True):
        name = name_of(item)
        cpu, memory = (None, None) if why_not_read(item) else parse_allocatable(item)
        held, other = kept.get(name, Amounts()), moving.get(name, Amounts())
        found.append(NodeRoom(name, cpu, memory, held.cpu, held.memory, other.cpu, other.memory))
    return tuple(found)
