# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPU operator's ClusterPolicy: read, and patched where nvidia-peermem is asked for. It is never made here."""

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
    """Switch driver.rdma.enabled on in the one ClusterPolicy that there is; nothing where it is on, or there is not
    exactly one.

    :param render: makes the patch for a ClusterPolicy of a name
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
