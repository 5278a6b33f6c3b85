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
    """Set driver.rdma.enabled to true in the ClusterPolicy. Do nothing if it is true already, or if there is not
    exactly one ClusterPolicy. If objects of kind NVIDIADriver configure the driver, their setting counts, and none of
    them is changed. A refusal is stored in ``error``.

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
    """Return the result for a ClusterPolicy that leaves the driver to objects of kind NVIDIADriver.

    :param seen: the ClusterPolicy
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
