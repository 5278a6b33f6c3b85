# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the running pods of other users on nodes that a removal changes."""

from __future__ import annotations

import itertools
import typing

from ...._model.base.marks import is_ours
from ...._model.kubernetes.measuring import NAMESPACE as MEASURING
from ...._model.kubernetes.scope import Scope
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.foreign import is_mirror_pod
from ...._parse.kubernetes.resource import labels_of, mapping_at, name_of, read_namespace, why_not_read

#: controllers of services. Their pods are no jobs: a drain or a reboot ends them without a loss, because they run again
#: on another node, or on this one. removed_functions.py finds those that a drain leaves
SERVICES = ("DaemonSet", "ReplicaSet", "ReplicationController", "StatefulSet")
#: pods that are returned; any tenant can create pods
MOST_PODS = 1_000


class RunningPod(typing.NamedTuple):
    """A pod that has not ended. ``str`` returns its name, with its node if it is known, as text for messages.

    :ivar name: namespace/name of the pod
    :ivar node: name of its node; empty if the pod is too large to be read
    """

    name: str
    node: str

    def __str__(self) -> str:
        return f"Pod {self.name}{f' on {self.node}' if self.node else ''}"


def find_running_pods(
    cluster: Cluster, nodes: typing.Container[str], scope: Scope, counts: typing.Callable[[Resource], bool]
) -> list[RunningPod]:
    """Return the pods on some nodes that have not ended and that ``counts`` accepts, at most ``MOST_PODS``. The node
    and the phase of a pod that is too large to be read are not known, so such a pod may be on any node.

    :param nodes: names of the nodes
    :param scope: objects of the intent. Its own pods are left out, because the removal takes them as well
    :param counts: function that gets a pod, which may have only its metadata, and returns whether it counts
    :raises ApiError: the API server refuses the list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    return list(itertools.islice(_find_running_pods(cluster, nodes, scope, counts), MOST_PODS))


def _find_running_pods(
    cluster: Cluster, nodes: typing.Container[str], scope: Scope, counts: typing.Callable[[Resource], bool]
) -> typing.Iterator[RunningPod]:
    for pod in cluster.pages("Pod", partial=True):
        namespace = read_namespace(pod)
        taken = namespace == MEASURING or (is_ours(labels_of(pod)) and namespace in scope.namespaces)
        if taken or is_mirror_pod("Pod", pod):
            continue
        node, phase = mapping_at(pod, "spec").get("nodeName"), mapping_at(pod, "status").get("phase")
        unread = bool(why_not_read(pod))
        if (unread or (node in nodes and phase not in ("Succeeded", "Failed"))) and counts(pod):
            yield RunningPod(f"{namespace}/{name_of(pod)}", "" if unread else str(node))
