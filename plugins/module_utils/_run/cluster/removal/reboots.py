# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods that a removal would end for good because it reboots their nodes: jobs, and pods without a
controller, of all users.
"""

from __future__ import annotations

import typing

from ...._model.intent.intent import DrainOptions
from ...._model.kubernetes.control_plane import is_guard_pod
from ...._model.kubernetes.scope import Scope
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.resource import items_of, mapping_at, name_of, read_namespace, why_not_read
from .pods import SERVICES, RunningPod, find_running_pods


def find_ended_by_reboot(
    cluster: Cluster, nodes: typing.Container[str], scope: Scope, allowed: DrainOptions
) -> list[RunningPod]:
    """Return the pods on some nodes that a reboot ends for good: pods of jobs, and pods without a controller. A pod
    that is too large to be read counts, unless its owners include a controller of a service.

    :param nodes: names of the nodes that reboot
    :param scope: objects of the intent. Its own pods are left out, because the removal takes them as well
    :param allowed: options of drains in the intent. With ``force``, a pod without a controller does not count
    :raises ApiError: the API server refuses the list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    return find_running_pods(cluster, nodes, scope, lambda pod: _is_ended_for_good(pod, allowed))


def _is_ended_for_good(pod: Resource, allowed: DrainOptions) -> bool:
    owners = items_of(mapping_at(pod, "metadata"), "ownerReferences", "Pod")
    controllers = [owner.get("kind") for owner in owners if owner.get("controller") is True]
    if not controllers:
        if is_guard_pod(read_namespace(pod), name_of(pod), str(mapping_at(pod, "spec").get("nodeName") or "")):
            return False
        return not allowed.force or bool(why_not_read(pod))
    return not any(kind in SERVICES for kind in controllers)
