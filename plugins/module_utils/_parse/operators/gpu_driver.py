# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the restart of the GPU driver by nvidia-peermem (spec.driver.rdma.enabled in the ClusterPolicy of the GPU
operator), or by an upgrade of the operator.

The operator runs the driver of GPUs in a DaemonSet on each node with a GPU, in the inventory or not, and recreates its
pods if the setting changes. Before that, it evicts the pods that use GPUs. [src NVIDIA/gpu-operator
controllers/object_controls.go TransformDriver, controllers/upgrade_controller.go; NVIDIA/k8s-driver-manager]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.marks import MANAGER
from ..._model.kubernetes.host import DriverOfNodes
from ..._model.operators.drivers import DriverChange, OperatorUpgrade
from ..._model.operators.operators import GPU_DRIVER_LABEL, GPU_LABEL, GPU_RESOURCES
from ..kubernetes.resource import Resource, items_of, labels_of, mapping_at, name_of, number_of, title_of


def parse_gpu_driver_upgrade(policy: Resource, upgrade: OperatorUpgrade) -> typing.Optional[DriverChange]:
    """Return the change of the GPU driver that an upgrade of the operator causes: a restart, or the end of the driver
    on all nodes at the same time where the upgrade disables it. Return None if the operator runs no driver before and
    after it. A driver of objects of kind NVIDIADriver counts, because the operator rolls it out in the same way.

    :param policy: the ClusterPolicy in the cluster
    :param upgrade: the upgrade; its fields of ``spec.driver`` replace those of the policy
    :raises ResourceError: the object does not have the form of its kind
    """
    there, name = mapping_at(policy, "spec", "driver"), name_of(policy)
    runs, goes = there.get("enabled") is not False, upgrade.driver.get("enabled") is False
    if not runs and upgrade.driver.get("enabled") is not True:
        return None
    new = upgrade.driver.get("upgradePolicy")
    policies = {**mapping_at(there, "upgradePolicy"), **(new if isinstance(new, dict) else {})}
    reason = f"an upgrade of the GPU operator restarts its driver (ClusterPolicy {name}; {upgrade.text})"
    return _make_reload(name, reason, {**policies, "autoUpgrade": policies.get("autoUpgrade") is True and not goes})


def parse_gpu_driver_creation(
    nodes: typing.Iterable[Resource], upgrade: OperatorUpgrade
) -> typing.Optional[DriverChange]:
    """Return the change of the GPU driver that a new ClusterPolicy causes: the operator loads its driver on all nodes
    with a GPU at the same time, and evicts the pods that use GPUs before. Return None if the policy deploys no driver.

    Only nodes whose GPUs pods can already request, by the driver of another installation, are disturbed. On other nodes
    no pod uses a GPU. [src NVIDIA/gpu-operator controllers/state_manager.go gpuNodeLabels]

    :param nodes: nodes of the cluster
    :param upgrade: the creation, with ``spec.driver`` of the new policy
    :raises ResourceError: an object does not have the form of its kind
    """
    if upgrade.driver.get("enabled") is False:
        return None
    served = tuple(
        name_of(node)
        for node in nodes
        if labels_of(node).get(GPU_DRIVER_LABEL) != "false"
        and any(
            key.startswith(GPU_RESOURCES) and str(amount) != "0"
            for part in ("capacity", "allocatable")
            for key, amount in mapping_at(node, "status", part).items()
        )
    )
    reason = f"the GPU operator loads its driver (ClusterPolicy {upgrade.creates} is created)"
    drains = mapping_at(dict(upgrade.driver), "upgradePolicy")
    return dataclasses.replace(_make_reload(upgrade.creates, reason, {**drains, "autoUpgrade": False}), nodes=served)


def _make_reload(name: str, reason: str, upgrade: typing.Mapping[str, typing.Any]) -> DriverChange:
    """Return a restart of the driver.

    :param name: name of the ClusterPolicy
    :param upgrade: the upgradePolicy by which the operator restarts the driver
    :raises ResourceError: the limit is not a number
    """
    most = number_of(upgrade.get("maxParallelUpgrades", 1), "ClusterPolicy: maxParallelUpgrades")
    return DriverChange(
        name,
        "reload",
        reason,
        (most or None) if upgrade.get("autoUpgrade") is True else None,
        all_pods=mapping_at(upgrade, "drain").get("enable") is True,
    )


def parse_gpu_driver_change(policy: Resource) -> typing.Optional[DriverChange]:
    """Return the change of the GPU driver that happens when nvidia-peermem is enabled in a ClusterPolicy. Return None
    if it is enabled already, if the operator runs no driver, or if objects of kind NVIDIADriver configure the driver
    instead. Return None as well if another field manager owns the field, because the API server then refuses the
    change.

    :param policy: the ClusterPolicy in the cluster
    :raises ResourceError: the object does not have the form of its kind
    """
    driver = mapping_at(policy, "spec", "driver")
    if driver.get("enabled") is False or driver.get("useNvidiaDriverCRD") is True:
        return None
    if mapping_at(driver, "rdma").get("enabled") is True or _is_owned(policy):
        return None
    name = name_of(policy)
    reason = f"the GPU operator restarts its driver (ClusterPolicy {name}, spec.driver.rdma.enabled false -> true)"
    return _make_reload(name, reason, mapping_at(driver, "upgradePolicy"))


def parse_gpu_driver(resource: Resource) -> tuple[DriverOfNodes, dict[str, str]]:
    """Return an NVIDIADriver without its nodes, and the labels that it requires of its nodes. Without a nodeSelector,
    it selects each node with a GPU. Its nodeAffinity, which can only exclude some of these nodes, is not evaluated.
    [src NVIDIA/gpu-operator v26.3.3 api/nvidia/v1alpha1/nvidiadriver_types.go GPUDirectRDMASpec, GetNodeSelector]

    :raises ResourceError: the object does not have the form of its kind
    """
    spec, name = mapping_at(resource, "spec"), name_of(resource)
    state = str(mapping_at(resource, "status").get("state") or "")
    selector = {str(key): str(value) for key, value in mapping_at(spec, "nodeSelector").items()}
    if spec.get("nodeSelector") is None:
        selector = {GPU_LABEL: "true"}
    return DriverOfNodes(name, state, mapping_at(spec, "rdma").get("enabled") is True), selector


def _is_owned(policy: Resource) -> bool:
    """Return whether a field manager other than the collection has set the field ``spec.driver.rdma.enabled`` of a
    ClusterPolicy.
    """
    return any(
        "f:enabled" in mapping_at(entry, "fieldsV1", "f:spec", "f:driver", "f:rdma")
        for entry in items_of(mapping_at(policy, "metadata"), "managedFields", title_of(policy))
        if entry.get("manager") != MANAGER and not entry.get("subresource")
    )
