# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods that a removal would end for good because it reboots their nodes: jobs, and pods without a
controller, of all users.
"""

from __future__ import annotations

import itertools
import typing

from ..._model.base.marks import is_ours
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._model.kubernetes.scope import Scope
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.foreign import is_mirror_pod
from ..._parse.kubernetes.resource import items_of, labels_of, mapping_at, name_of, read_namespace, why_not_read

#: controllers whose pods a drain ends without a loss: they run again on another node, or on this one after its reboot
_SERVICES = ("DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet")
#: pods that are returned; any tenant can create pods
_MOST_PODS = 1_000


def find_ended_by_reboot(cluster: Cluster, nodes: typing.Container[str], scope: Scope) -> list[str]:
    """Return the pods on some nodes that a reboot ends for good, each with its namespace and node. A pod that is too
    large to be read counts.

    :param nodes: names of the nodes that reboot
    :param scope: objects of the intent, whose own pods the removal takes and so are left out
    :raises ApiError: the API server refuses the list, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    return list(itertools.islice(_find_ended(cluster, nodes, scope), _MOST_PODS))


def _find_ended(cluster: Cluster, nodes: typing.Container[str], scope: Scope) -> typing.Iterator[str]:
    for pod in cluster.pages("Pod", partial=True):
        namespace, node = read_namespace(pod), mapping_at(pod, "spec").get("nodeName")
        taken = namespace == MEASURING or (is_ours(labels_of(pod)) and namespace in scope.namespaces)
        if taken or is_mirror_pod("Pod", pod) or _is_of_service(pod):
            continue
        if why_not_read(pod):
            yield f"Pod {namespace}/{name_of(pod)}"
        elif node in nodes and mapping_at(pod, "status").get("phase") not in ("Succeeded", "Failed"):
            yield f"Pod {namespace}/{name_of(pod)} on {node}"


def _is_of_service(pod: Resource) -> bool:
    owners = items_of(mapping_at(pod, "metadata"), "ownerReferences", "Pod")
    return any(owner.get("controller") is True and owner.get("kind") in _SERVICES for owner in owners)
