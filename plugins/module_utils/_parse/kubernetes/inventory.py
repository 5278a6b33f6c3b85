# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the parts of a v1 Node that an Ansible inventory needs: the name, the addresses, and the groups, which come
from the labels, the annotations and the report of the kubelet.
"""

from __future__ import annotations

import re
import typing

from ..._model.boundary.addresses import HOST_ADDRESS
from ..._model.boundary.kubernetes import GROUP_WORD, LABEL_KEY, LABEL_VALUE, SUBDOMAIN
from ..._model.kubernetes.inventory import Inventory, InventoryNode
from ..._model.run.facts import CLUSTER
from .core import internal_addresses
from .resource import (
    Resource,
    ResourceError,
    format_refusal,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    text_of,
    title_of,
    why_not_read,
)

#: labels that tell a group, the first that a node has. Models: NVIDIA's GPU feature discovery, Kubernetes. Leaves:
#: topograph 1.0, and before
_LABELS: dict[str, tuple[str, ...]] = {
    "model": ("nvidia.com/gpu.machine", "node.kubernetes.io/instance-type"),
    "zone": ("topology.kubernetes.io/zone",),
    "leaf": ("fabric.topograph.run/tier-0", "network.topology.nvidia.com/leaf"),
}
_NFD_OS = ("feature.node.kubernetes.io/system-os_release.ID", "feature.node.kubernetes.io/system-os_release.VERSION_ID")
#: rendered-<pool>-<hash> [machine-config-operator pkg/controller/render/render_controller.go]
_RENDERED = re.compile(r"rendered-(.+)-[0-9a-f]{32}")
_LONGEST_IMAGE = 200
#: what Ansible takes for the controller, whatever an inventory says of it [ansible lib/ansible/constants.py LOCALHOST]
_CONTROLLER = ("localhost", "127.0.0.1")
#: from the version on, with all blanks before it, in an image's name: "Ubuntu 22.04.4 LTS", "Talos (v1.9.1)",
#: "Bottlerocket OS 1.20.3 (aws-k8s-1.29)"
_VERSION = re.compile(r"(?<![\s(])[\s(]+v?\d.*")


def parse_inventory(resources: typing.Iterable[Resource]) -> Inventory:
    """Return the nodes for the inventory. An object that is not a valid Node is left out, and its error is part of the
    result. This function never raises an error.
    """
    nodes, refused = [], []
    for resource in resources:
        try:
            nodes.append(inventory_node(resource))
        except ResourceError as error:
            refused.append(str(error))
    return Inventory(tuple(nodes), tuple(refused))


def inventory_node(resource: Resource) -> InventoryNode:
    """Parse a Node. The kubelet writes the addresses, the labels and the name of the operating system. If one of these
    values is invalid, it is left out, and the reason is added to the field ``error``.

    :raises ResourceError: the object is not a valid Node, or its name is invalid or reserved. Reserved names are those
        of the controller in Ansible, because tasks for the controller would run on the node, and the name under which a
        run stores facts of the cluster
    """
    name = text_of(SUBDOMAIN, name_of(resource), f"{title_of(resource)}: metadata.name")
    if name == CLUSTER:
        raise ResourceError(
            f"Node {name} has the name that a run reserves for the facts of the cluster; set another name in its"
            " kubelet (--hostname-override)"
        )
    if name in _CONTROLLER:
        raise ResourceError(
            f"Node {name} has the name that Ansible reserves for the controller; set another name in its kubelet"
            " (--hostname-override)"
        )
    refused: list[str] = []
    address = ""
    try:
        address = next(iter(internal_addresses(resource)), "")
    except ResourceError as error:
        refused.append(str(error))
    labels = {}
    for key, value in labels_of(resource).items():
        if LABEL_KEY.fits(key) and (not value or LABEL_VALUE.fits(value)):
            labels[key] = value
        else:
            refused.append(format_refusal(f"Node {name}: label", f"{key}: {value}", LABEL_VALUE))
    groups = {}
    for group, text in _collect_group_values(resource, labels).items():
        if GROUP_WORD.fits(text):
            groups[group] = text
        elif text:
            refused.append(format_refusal(f"Node {name}: value of its {group}", text, GROUP_WORD))
    return InventoryNode(name, address, labels, groups, "; ".join(refused), _list_node_addresses(resource))


def _list_node_addresses(resource: Resource) -> tuple[str, ...]:
    """Return the valid addresses of a Node, of all types, each once. The result is empty if the status of the Node has
    an unexpected form.
    """
    try:
        texts = [item.get("address") for item in items_of(mapping_at(resource, "status"), "addresses", "Node")]
    except ResourceError:
        return ()
    return tuple(dict.fromkeys(address for address in map(HOST_ADDRESS.parse, texts) if address is not None))


def _collect_group_values(resource: Resource, labels: typing.Mapping[str, str]) -> dict[str, str]:
    """Return the values from which the inventory groups of a node are made, by kind of group: leaf, model, os, pool and
    zone. A value that the node does not report is empty.

    :param labels: valid labels of the node
    """
    found = {group: next((labels[key] for key in keys if labels.get(key)), "") for group, keys in _LABELS.items()}
    # of one that was not read, its address says so
    kubelet = {} if why_not_read(resource) else mapping_at(resource, "status", "nodeInfo")
    found["os"] = _identify_os_release(labels, str(kubelet.get("osImage") or ""))
    found["pool"] = _read_config_pool(mapping_at(resource, "metadata", "annotations"))
    return dict(sorted(found.items()))


def _identify_os_release(labels: typing.Mapping[str, str], image: str) -> str:
    """Return the ID and the version of the operating system, such as ``ubuntu-24.04``, from the labels of node feature
    discovery. Without these labels, return the name that the kubelet reports, without its version.

    :param labels: labels of the node
    :param image: name of the operating system as the kubelet reports it; empty if unknown
    """
    return "-".join(labels[key] for key in _NFD_OS if labels.get(key)) or (
        _VERSION.sub("", image).strip() if len(image) <= _LONGEST_IMAGE else image
    )


def _read_config_pool(annotations: Resource) -> str:
    """Return the name of the OpenShift MachineConfigPool that the node's desired configuration belongs to. Return an
    empty string if the node belongs to none.

    :param annotations: annotations of the Node
    """
    match = _RENDERED.fullmatch(str(annotations.get("machineconfiguration.openshift.io/desiredConfig") or ""))
    return match[1] if match else ""
