# SPDX-License-Identifier: GPL-3.0-or-later

"""A v1 Node to what an inventory needs of it: name, address, and the groups that its labels, annotations and kubelet tell."""

from __future__ import annotations

import re
import typing

from ..._model.inventory import InventoryNode
from .resource import Resource, items_of, labels_of, mapping_at, name_of

#: labels that tell a group, the first that a node has. Models: NVIDIA's GPU feature discovery, Kubernetes. Leaves: topograph 1.0, and before
_LABELS: typing.Dict[str, typing.Tuple[str, ...]] = {
    "model": ("nvidia.com/gpu.machine", "node.kubernetes.io/instance-type"),
    "zone": ("topology.kubernetes.io/zone",),
    "leaf": ("fabric.topograph.run/tier-0", "network.topology.nvidia.com/leaf"),
}
_NFD_OS = ("feature.node.kubernetes.io/system-os_release.ID", "feature.node.kubernetes.io/system-os_release.VERSION_ID")
#: rendered-<pool>-<hash> [machine-config-operator pkg/controller/render/render_controller.go]
_RENDERED = re.compile(r"rendered-(.+)-[0-9a-f]{32}")
#: from the version on, with all blanks before it, in an image's name: "Ubuntu 22.04.4 LTS", "Talos (v1.9.1)", "Bottlerocket OS 1.20.3 (aws-k8s-1.29)"
_VERSION = re.compile(r"(?<![\s(])[\s(]+v?\d.*")


def inventory_node(resource: Resource) -> InventoryNode:
    """:raises ResourceError: no Node"""
    name, labels = name_of(resource), labels_of(resource)
    addresses = items_of(mapping_at(resource, "status"), "addresses", f"Node {name}")
    address = next((str(item.get("address") or "") for item in addresses if item.get("type") == "InternalIP"), "")
    found = {group: next((labels[key] for key in keys if labels.get(key)), "") for group, keys in _LABELS.items()}
    found["os"] = _os(labels, str(mapping_at(resource, "status", "nodeInfo").get("osImage") or ""))
    found["pool"] = _pool(mapping_at(resource, "metadata", "annotations"))
    return InventoryNode(name, address, labels, {group: value for group, value in sorted(found.items()) if value})


def _os(labels: typing.Mapping[str, str], image: str) -> str:
    """By node feature discovery with its version, as the os-release file has them; else the name that the kubelet tells, without one."""
    return "-".join(labels[key] for key in _NFD_OS if labels.get(key)) or _VERSION.sub("", image).strip()


def _pool(annotations: Resource) -> str:
    """The MachineConfigPool of OpenShift that the node's configuration is of."""
    match = _RENDERED.fullmatch(str(annotations.get("machineconfiguration.openshift.io/desiredConfig") or ""))
    return match[1] if match else ""
