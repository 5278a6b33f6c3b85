# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes objects of the stack beside a training job.

[src NVIDIA/gpu-operator v26.3.3, Mellanox/network-operator v26.4.1: status.state; kubernetes-sigs/kueue v0.19.2 apis/kueue/v1beta1 and v1beta2, whose cohort is
named cohortName; kubeflow/trainer v1.9.4 and v2.3.0 manifests]
"""

from __future__ import annotations

import re
import typing

from ..._model.stack import ClusterQueue, Controller, LocalQueue, PolicyState, StorageClass
from ..kubernetes.core import workload
from ..kubernetes.quantity import quantity
from ..kubernetes.resource import Resource, ResourceError, full_name_of, items_of, mapping_at, name_of, selector_of, texts_of, title_of

#: operator: name of its image, and names that its Deployment has, where images are mirrored under other names
_NAMES = {
    "gpu-operator": ("gpu-operator",),
    "network-operator": ("network-operator", "nvidia-network-operator-controller-manager"),
    "sriov-network-operator": ("sriov-network-operator",),
    "training-operator": ("training-operator", "kubeflow-training-operator"),
    "trainer": ("trainer-controller-manager", "kubeflow-trainer-controller-manager"),
    "jobset": ("jobset", "jobset-controller-manager"),
    "kueue": ("kueue", "kueue-controller-manager"),
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def controller(deployment: Resource) -> typing.Optional[Controller]:
    """The operator that a Deployment runs; None where it runs none of them.

    :raises ResourceError: no Deployment
    """
    work = workload(deployment)
    images = {re.split(r"[:@]", image.rsplit("/", 1)[-1])[0]: image for image in work.images}
    for operator, names in _NAMES.items():
        image = next((images[name] for name in names if name in images), None)
        if image is not None or work.name in names:
            labels = mapping_at(deployment, "metadata", "labels")
            tag = (image or "").rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
            version = labels.get("app.kubernetes.io/version") or labels.get("olm.owner") or tag
            return Controller(operator, f"{work.namespace}/{work.name}", str(version or ""), work.wanted, work.ready)
    return None


def policy_state(resource: Resource) -> PolicyState:
    """A ClusterPolicy or a NicClusterPolicy.

    :raises ResourceError: none
    """
    return PolicyState(str(mapping_at(resource).get("kind", "")), name_of(resource), str(mapping_at(resource, "status").get("state") or ""))


def _inactive(resource: Resource) -> str:
    """Why a queue is not active, in Kueue's words."""
    if mapping_at(resource, "spec").get("stopPolicy") in ("Hold", "HoldAndDrain"):
        return f"its stopPolicy is {mapping_at(resource, 'spec')['stopPolicy']}"
    active = next((item for item in items_of(mapping_at(resource, "status"), "conditions", title_of(resource)) if item.get("type") == "Active"), {})
    return "" if active.get("status") == "True" else str(active.get("message") or active.get("reason") or "Kueue has not looked at it")


def local_queue(resource: Resource) -> LocalQueue:
    """:raises ResourceError: no LocalQueue"""
    name = full_name_of(resource)
    return LocalQueue(name, str(mapping_at(resource, "spec").get("clusterQueue") or ""), _inactive(resource))


def cluster_queue(resource: Resource) -> ClusterQueue:
    """:raises ResourceError: no ClusterQueue, or a quota is none"""
    name, spec, what = name_of(resource), mapping_at(resource, "spec"), title_of(resource)
    groups = tuple(
        {str(flavor.get("name")): _quotas(flavor, f"{what} flavor {flavor.get('name')}") for flavor in items_of(group, "flavors", what)}
        for group in items_of(spec, "resourceGroups", what)
    )
    cohort = str(spec.get("cohortName") or spec.get("cohort") or "")
    return ClusterQueue(name, groups, cohort, selector_of(spec, "namespaceSelector", what), _inactive(resource))


def _quotas(flavor: Resource, what: str) -> typing.Dict[str, str]:
    found = {str(item.get("name")): str(item.get("nominalQuota", "0")) for item in items_of(flavor, "resources", what)}
    for name, value in found.items():
        quantity(value, f"{what}: {name}")
    return found


def frameworks(data: typing.Any) -> typing.Tuple[str, ...]:
    """integrations.frameworks of Kueue's configuration.

    :param data: loaded
    :raises ResourceError: of another form
    """
    if not isinstance(data, dict):
        raise ResourceError("configuration of Kueue: no mapping")
    return texts_of(mapping_at(data, "integrations"), "frameworks", "configuration of Kueue")


def storage_class(resource: Resource, shared: typing.Container[str]) -> StorageClass:
    """A StorageClass.

    :param shared: names of the classes of volumes that many nodes can write
    :raises ResourceError: none
    """
    name = name_of(resource)
    default = str(mapping_at(resource, "metadata", "annotations").get(_DEFAULT_CLASS, "")) == "true"
    return StorageClass(name, str(mapping_at(resource).get("provisioner", "")), default, name in shared)


def shared_class(volume: Resource) -> str:
    """Class of a PersistentVolume that many nodes can write; empty for all others.

    :raises ResourceError: no PersistentVolume
    """
    spec, name = mapping_at(volume, "spec"), name_of(volume)
    return str(spec.get("storageClassName") or "") if "ReadWriteMany" in texts_of(spec, "accessModes", name) else ""
