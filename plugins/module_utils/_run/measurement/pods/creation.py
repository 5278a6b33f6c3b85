# SPDX-License-Identifier: GPL-3.0-or-later

"""Create a measuring pod, also if the answer to an earlier request was lost, and explain why its name is in use."""

from __future__ import annotations

import dataclasses

from ...._model.measurement.bandwidth import RdmaPod
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.outcome import FIELD_MANAGER
from ...._parse.kubernetes.foreign import is_made_pod
from ...._render.cluster.names import RUN_LABEL
from .readiness import find_node


def create_or_adopt_pod(cluster: Cluster, wanted: Resource, lost: bool) -> Resource:
    """Create a pod, and return its object of the API. If an earlier request of this run has created the pod, return
    that pod.

    :param wanted: object of the pod, as the collection renders it
    :param lost: whether the answer to an earlier request was lost, so that the pod may exist. The existing pod is
        accepted only if it has the label of this run, is not being deleted and is not a mirror pod, which the kubelet
        of another node could create with that label
    :raises ApiError: the API server refuses the pod, or cannot be reached
    """
    try:
        return cluster.create(wanted, FIELD_MANAGER)
    except ApiError as error:
        if not lost or error.reason != "AlreadyExists":
            raise
        metadata = wanted["metadata"]
        found = cluster.get("Pod", metadata["namespace"], metadata["name"])
        run = metadata["labels"].get(RUN_LABEL)
        labels = found["metadata"].get("labels") or {}
        if (
            run is None
            or labels.get(RUN_LABEL) != run
            or found["metadata"].get("deletionTimestamp")
            or not is_made_pod(found)
        ):
            raise
        return found


def explain_taken(cluster: Cluster, item: RdmaPod, error: ApiError) -> RdmaPod:
    """Return a pod that could not be created, with an error that explains the use of its name: by a pod of an earlier
    run (cause ``stuck``), or by a mirror pod of a kubelet, which no deletion ends (cause ``taken``).

    :param item: the pod that could not be created
    :param error: error of the API server about the creation
    """
    try:
        found = cluster.get("Pod", item.namespace, item.name)
    except ApiError:
        found = {}
    if is_made_pod(found):
        return dataclasses.replace(item, error=error.text, cause="stuck")
    return dataclasses.replace(
        item,
        error=f"the kubelet of node {find_node(found) or 'unknown'} reports a mirror pod {item.name}",
        cause="taken",
    )
