# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the ClusterPolicy of the GPU operator, and patch it if nvidia-peermem is requested. A ClusterPolicy is never
created.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.host import ClusterPolicies
from ..._parse.kubernetes.resource import name_of
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from ..kubernetes.outcome import FIELD_MANAGER

Render = typing.Callable[[str], Resource]


def enable_rdma(cluster: Cluster, render: Render, check_mode: bool) -> ClusterPolicies:
    """Set driver.rdma.enabled to true in the ClusterPolicy. Do nothing if it is true already, or if there is not
    exactly one ClusterPolicy. A refusal is stored in ``error``.

    :param render: function that returns the patch for the ClusterPolicy of the given name
    :raises ApiError: the server cannot be reached
    """
    try:
        found = cluster.list("ClusterPolicy").items
    except ApiError as error:
        if error.status == 0:
            raise
        # a kind that is not served has no objects
        return ClusterPolicies() if error.absent else ClusterPolicies(error=error.text)
    names = tuple(name_of(item) for item in found)
    if len(found) != 1:
        return ClusterPolicies(names)
    spec, status = found[0].get("spec") or {}, found[0].get("status") or {}
    rdma = ((spec.get("driver") or {}).get("rdma") or {}).get("enabled") is True
    seen = ClusterPolicies(names, str(status.get("state") or ""), rdma)
    if rdma:
        return seen
    try:
        cluster.apply(render(names[0]), FIELD_MANAGER, dry_run=check_mode)
    except ApiError as error:
        if error.status == 0:
            raise
        return dataclasses.replace(seen, error=error.text)
    return dataclasses.replace(seen, rdma=not check_mode, changed=True)
