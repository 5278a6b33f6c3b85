# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods that a removal would end for good because it reboots their nodes: jobs, and pods without a
controller, of all users.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.scope import Scope
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.resource import items_of, mapping_at
from .removal_pods import SERVICES, find_running_pods


def find_ended_by_reboot(cluster: Cluster, nodes: typing.Container[str], scope: Scope) -> list[str]:
    """Return the pods on some nodes that a reboot ends for good, each with its namespace and node. A pod that is too
    large to be read counts, unless its owners show a controller of a service.

    :param nodes: names of the nodes that reboot
    :param scope: objects of the intent, whose own pods the removal takes and so are left out
    :raises ApiError: the API server refuses the list, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    return find_running_pods(cluster, nodes, scope, lambda pod: not _is_of_service(pod))


def _is_of_service(pod: Resource) -> bool:
    owners = items_of(mapping_at(pod, "metadata"), "ownerReferences", "Pod")
    return any(owner.get("controller") is True and owner.get("kind") in SERVICES for owner in owners)
