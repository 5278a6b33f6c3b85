# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the driver policies of NVIDIA's operators, and the attributes of a node by which the operators choose the image
of the driver container.

[src Mellanox/network-operator v26.4.1 api/v1alpha1 OFEDDriverSpec, NicNodePolicySpec, pkg/nodeinfo; NVIDIA/gpu-operator
v26.3.3 api/nvidia/v1 DriverSpec, api/nvidia/v1alpha1 NVIDIADriverSpec, internal/state/nodepool.go]
"""

from __future__ import annotations

import typing

from ..._model.boundary.kubernetes import LABEL_VALUE, SUBDOMAIN
from ..._model.boundary.words import VERSION, WORD
from ..._model.operators.drivers import GPU_OF_NODES, OF_NICS, DriverHost, DriverPolicy
from ..kubernetes.resource import (
    Resource,
    excerpt_of,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    normalize_known,
    text_of,
    title_of,
)

_NFD = "feature.node.kubernetes.io/"
_GPU_LABELS = (
    "nvidia.com/gpu.present",
    f"{_NFD}pci-10de.present",
    f"{_NFD}pci-0302_10de.present",
    f"{_NFD}pci-0300_10de.present",
)
_OFED_STATE = "state-OFED"


def driver_policy(resource: Resource) -> DriverPolicy:
    """Parse a policy by which an operator installs drivers on nodes: a NicClusterPolicy, a NicNodePolicy, a
    ClusterPolicy or an NVIDIADriver. A missing value is empty.

    :raises ResourceError: the object has an unexpected form
    """
    kind, name = normalize_known(WORD, mapping_at(resource).get("kind")), name_of(resource)
    if kind in OF_NICS:
        return _of_nics(resource, kind, name)
    return _of_gpu_nodes(resource, kind, name) if kind == GPU_OF_NODES else _of_gpus(resource, kind, name)


def driver_selector(resource: Resource) -> dict[str, str]:
    """Return the labels that a policy requires of its nodes, as values by key. Return an empty mapping if the policy
    selects all nodes.

    :raises ResourceError: the object has an unexpected form
    """
    return {str(key): str(value) for key, value in mapping_at(resource, "spec", "nodeSelector").items()}


def _of_nics(resource: Resource, kind: str, name: str) -> DriverPolicy:
    """Return the driver policy in a NicClusterPolicy or a NicNodePolicy of NVIDIA's network operator: whether it has a
    driver, which one, and whether it is ready.

    :param kind: kind of the object
    :param name: name of the object
    """
    spec, status = mapping_at(resource, "spec", "ofedDriver"), mapping_at(resource, "status")
    part = next(
        (item for item in items_of(status, "appliedStates", title_of(resource)) if item.get("name") == _OFED_STATE), {}
    )
    ready = (part.get("state") or status.get("state")) == "ready"
    return DriverPolicy(
        kind,
        name,
        bool(spec),
        _read_image_name(spec),
        _read_text(spec, "version"),
        spec.get("forcePrecompiled") is True,
        _read_text(mapping_at(spec, "repoConfig"), "name"),
        bool(spec) and ready,
        "" if ready else excerpt_of(_read_text(part, "message") or _read_text({} if part else status, "reason")),
    )


def _of_gpus(resource: Resource, kind: str, name: str) -> DriverPolicy:
    """Parse a ClusterPolicy. If ``enabled`` is missing, the GPU operator runs a driver. With useNvidiaDriverCRD,
    objects of kind NVIDIADriver configure the driver instead of the ClusterPolicy.

    :param kind: kind of the object
    :param name: name of the object
    """
    spec = mapping_at(resource, "spec", "driver")
    container = spec.get("enabled") is not False and spec.get("useNvidiaDriverCRD") is not True
    ready = mapping_at(resource, "status").get("state") == "ready"
    repositories = _read_text(mapping_at(spec, "repoConfig"), "configMapName")
    delegated = spec.get("enabled") is not False and spec.get("useNvidiaDriverCRD") is True
    precompiled = spec.get("usePrecompiled") is True
    return DriverPolicy(
        kind,
        name,
        container,
        _read_image_name(spec),
        _read_text(spec, "version"),
        precompiled,
        repositories,
        container and ready,
        delegated=delegated,
    )


def _of_gpu_nodes(resource: Resource, kind: str, name: str) -> DriverPolicy:
    """Return the driver policy in an NVIDIADriver of the GPU operator.

    :param kind: kind of the object
    :param name: name of the object
    """
    spec, ready = mapping_at(resource, "spec"), mapping_at(resource, "status").get("state") == "ready"
    repositories = _read_text(mapping_at(spec, "repoConfig"), "name")
    return DriverPolicy(
        kind,
        name,
        True,
        _read_image_name(spec),
        _read_text(spec, "version"),
        spec.get("usePrecompiled") is True,
        repositories,
        ready,
    )


def _read_text(parent: typing.Mapping[str, typing.Any], key: str) -> str:
    return str(parent.get(key) or "")


def _read_image_name(spec: typing.Mapping[str, typing.Any]) -> str:
    return "/".join(filter(None, (_read_text(spec, "repository"), _read_text(spec, "image"))))


def driver_host(node: Resource) -> DriverHost:
    """Parse the attributes of a v1 Node by which operators choose the image of the driver container. A missing or
    invalid attribute is empty. If node feature discovery does not report the kernel, use the kernel that the kubelet
    reports.

    :raises ResourceError: the object is not a valid Node
    """
    labels, told = labels_of(node), mapping_at(node, "status", "nodeInfo")
    return DriverHost(
        text_of(SUBDOMAIN, name_of(node), "Node"),
        normalize_known(WORD, labels.get(f"{_NFD}system-os_release.ID")),
        normalize_known(VERSION, labels.get(f"{_NFD}system-os_release.VERSION_ID")),
        normalize_known(VERSION, labels.get(f"{_NFD}kernel-version.full") or told.get("kernelVersion")),
        # it stands in a command
        normalize_known(LABEL_VALUE, told.get("architecture")),
        normalize_known(VERSION, labels.get(f"{_NFD}system-os_release.OSTREE_VERSION")),
        any(labels.get(label) == "true" for label in _GPU_LABELS),
    )
