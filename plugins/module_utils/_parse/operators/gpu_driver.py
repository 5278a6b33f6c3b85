# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effect of nvidia-peermem (spec.driver.rdma.enabled) in the ClusterPolicy of the GPU operator.

The operator runs the driver of GPUs in a DaemonSet on each node with a GPU, in the inventory or not, and recreates its
pods if the setting changes. Before that, it evicts the pods that use GPUs. [src NVIDIA/gpu-operator
controllers/object_controls.go TransformDriver, controllers/upgrade_controller.go; NVIDIA/k8s-driver-manager]
"""

from __future__ import annotations

import typing

from ..._model.base.marks import MANAGER
from ..._model.operators.drivers import DriverChange
from ..kubernetes.resource import Resource, items_of, mapping_at, name_of, number_of, title_of


def parse_gpu_driver_change(policy: Resource) -> typing.Optional[DriverChange]:
    """Return the change of the GPU driver if nvidia-peermem is enabled in a ClusterPolicy. Return None if it is enabled
    already, if the operator runs no driver, if objects of kind NVIDIADriver configure the driver instead, or if another
    field manager owns the field: then the API server refuses the change.

    :param policy: the ClusterPolicy in the cluster
    :raises ResourceError: the object does not have the form of its kind
    """
    driver = mapping_at(policy, "spec", "driver")
    if driver.get("enabled") is False or driver.get("useNvidiaDriverCRD") is True:
        return None
    if mapping_at(driver, "rdma").get("enabled") is True or _is_owned(policy):
        return None
    upgrade, name = mapping_at(driver, "upgradePolicy"), name_of(policy)
    most = number_of(upgrade.get("maxParallelUpgrades", 1), "ClusterPolicy: maxParallelUpgrades")
    return DriverChange(
        name,
        "reload",
        f"the GPU operator restarts its driver (ClusterPolicy {name}, spec.driver.rdma.enabled false -> true)",
        (most or None) if upgrade.get("autoUpgrade") is True else None,
        all_pods=mapping_at(upgrade, "drain").get("enable") is True,
    )


def _is_owned(policy: Resource) -> bool:
    """Return whether a field manager other than the collection set the field."""
    return any(
        "f:enabled" in mapping_at(entry, "fieldsV1", "f:spec", "f:driver", "f:rdma")
        for entry in items_of(mapping_at(policy, "metadata"), "managedFields", title_of(policy))
        if entry.get("manager") != MANAGER and not entry.get("subresource")
    )
