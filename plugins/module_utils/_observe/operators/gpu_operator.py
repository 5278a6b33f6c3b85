# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the ClusterPolicy of the GPU operator, and patch it if nvidia-peermem is requested. A ClusterPolicy is never
created.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.host import ClusterPolicies
from ..._parse.kubernetes.core import parse_node
from ..._parse.kubernetes.resource import ResourceError, name_of
from ..._parse.operators.gpu_driver import parse_gpu_driver
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Resource
from ..kubernetes.outcome import FIELD_MANAGER

Render = typing.Callable[[str], Resource]


def enable_rdma(cluster: Cluster, render: Render, check_mode: bool) -> ClusterPolicies:
    """Set driver.rdma.enabled to true in the ClusterPolicy, and return the policies as they were found, with the
    change. Nothing is changed if the value is true already, or if there is not exactly one ClusterPolicy. A refusal is
    stored in ``error``.

    If objects of kind NVIDIADriver configure the driver instead of the ClusterPolicy, their settings are returned, and
    nothing is changed.

    :param render: function that gets the name of the ClusterPolicy and returns the patch for it
    :param check_mode: whether the API server only checks the change
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
    driver = spec.get("driver") or {}
    rdma = (driver.get("rdma") or {}).get("enabled") is True
    seen = ClusterPolicies(names, str(status.get("state") or ""), rdma)
    if driver.get("useNvidiaDriverCRD") is True:
        return _read_drivers(cluster, seen)
    if rdma:
        return seen
    try:
        cluster.apply(render(names[0]), FIELD_MANAGER, dry_run=check_mode)
    except ApiError as error:
        if error.status == 0:
            raise
        return dataclasses.replace(seen, error=error.text)
    return dataclasses.replace(seen, rdma=not check_mode, changed=True)


def _read_drivers(cluster: Cluster, seen: ClusterPolicies) -> ClusterPolicies:
    """Return the result for a ClusterPolicy that leaves the driver to objects of kind NVIDIADriver, with these objects
    and the nodes that each selects. If the nodes cannot be read, the objects have no nodes. A refusal or a malformed
    object is stored in ``error``.

    :param seen: the ClusterPolicy as it was found
    :raises ApiError: the server cannot be reached
    """
    seen = dataclasses.replace(seen, rdma=False, delegated=True)
    try:
        found = cluster.list("NVIDIADriver").items
        drivers = tuple(map(parse_gpu_driver, found))
    except ApiError as error:
        if error.status == 0:
            raise
        return dataclasses.replace(seen, error=error.text)
    except ResourceError as error:
        return dataclasses.replace(seen, error=str(error))
    try:
        labels = {node.name: node.labels for node in map(parse_node, cluster.list("Node").items)}
    except ApiError as error:
        if error.status == 0:
            raise
        return dataclasses.replace(seen, drivers=tuple(driver for driver, _selector in drivers))
    return dataclasses.replace(
        seen,
        drivers=tuple(
            dataclasses.replace(
                driver,
                nodes=tuple(node for node, there in labels.items() if selector.items() <= there.items()),
            )
            for driver, selector in drivers
        ),
    )
