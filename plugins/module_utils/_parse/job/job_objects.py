# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of the cluster that a job uses: networks, volume claims, and the devices that multus attached to a
pod.

[k8snetworkplumbingwg multi-network specification 1.3; multus-cni v4 pkg/k8sclient]
"""

from __future__ import annotations

from ..._model.base.text import both_ends
from ..._model.boundary.devices import INTERFACE, RDMA_DEVICE
from ..._model.job.surroundings import (
    JobAttachment,
    PodDevices,
    VolumeClaim,
)
from ..kubernetes.networks.ipam import attachment_plugins
from ..kubernetes.networks.multus import MOST_INTERFACES, STATUS_ANNOTATION
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    full_name_of,
    items_of,
    json_of,
    mapping_at,
    name_of,
    text_at,
    text_of,
    texts_of,
)

#: CNI plugins of an attachment, and characters of a plugin's type or of a resource's name: any tenant can write
#: attachments, and all of them are read
_MOST_PLUGINS, _MOST_NAME = 32, 317
_RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName"


def parse_attachment(resource: Resource) -> JobAttachment:
    """Parse a NetworkAttachmentDefinition. If its CNI configuration is invalid, or is not stored in the object, the
    field ``problem`` of the result contains the reason and most other fields are empty.

    :raises ResourceError: the object has no name
    """
    name = full_name_of(resource)
    wanted = resource_of(resource)
    if len(wanted) > _MOST_NAME:
        return JobAttachment(
            name,
            problem=(
                f"the annotation {_RESOURCE_ANNOTATION} has {len(wanted)} characters; the limit for a name is"
                f" {_MOST_NAME}"
            ),
        )
    try:
        plugins = attachment_plugins(resource, name)
        if len(plugins) > _MOST_PLUGINS or any(len(str(plugin.get("type", ""))) > _MOST_NAME for plugin in plugins):
            raise ResourceError(
                f"{name}: {len(plugins)} CNI plugins; expected at most {_MOST_PLUGINS}, each with a type of at most"
                f" {_MOST_NAME} characters"
            )
        routes = [route for plugin in plugins for route in items_of(mapping_at(plugin, "ipam"), "routes", name)]
    except ResourceError as error:
        return JobAttachment(name, resource=wanted, problem=both_ends(error.seen))
    return JobAttachment(
        name=name,
        kinds=tuple(str(plugin.get("type", "")) for plugin in plugins),
        resource=wanted,
        default_route=any(str(route.get("dst")) in ("0.0.0.0/0", "::/0") for route in routes),
    )


def resource_of(resource: Resource) -> str:
    """Return the name of the extended resource, such as ``nvidia.com/rdma0``, that a pod needs for a
    NetworkAttachmentDefinition. Return an empty string if it needs none.
    """
    return str(mapping_at(resource, "metadata", "annotations").get(_RESOURCE_ANNOTATION) or "")


def parse_claim(resource: Resource) -> VolumeClaim:
    """Return the name, the access modes and the phase of a PersistentVolumeClaim. The phase is empty if the object does
    not have it.

    :raises ResourceError: its name or its access modes have an unexpected form
    """
    name = full_name_of(resource)
    return VolumeClaim(
        name,
        texts_of(mapping_at(resource, "spec"), "accessModes", name),
        str(mapping_at(resource, "status").get("phase") or ""),
    )


def parse_pod_devices(pod: Resource) -> PodDevices:
    """Parse the network status annotation that multus writes on a pod. Return the name of the pod, its secondary
    interfaces and its RDMA devices. A pod without the annotation has none of these.

    :raises ResourceError: the annotation has an unexpected form, too many networks or devices, or an invalid name
    """
    what = f"pod {name_of(pod)}"
    entries = json_of(
        mapping_at(pod, "metadata", "annotations").get(STATUS_ANNOTATION) or "[]",
        f"{what}: the annotation {STATUS_ANNOTATION}",
    )
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is not a list of mappings")
    mine = [entry for entry in entries if not entry.get("default")]
    texts = [str(mapping_at(entry, "device-info", "pci").get("rdma-device") or "") for entry in mine]
    number = max(len(mine), sum(text.count(",") + 1 for text in texts))
    if number > MOST_INTERFACES:
        raise ResourceError(
            f"{what}: the annotation {STATUS_ANNOTATION} has {number} networks or devices; the limit is"
            f" {MOST_INTERFACES}"
        )
    where = f"{what}: the annotation {STATUS_ANNOTATION}"
    return PodDevices(
        name_of(pod),
        tuple(text_at(INTERFACE, entry, "interface", where) for entry in mine),
        tuple(
            text_of(RDMA_DEVICE, name, f"{where}: rdma-device") for text in texts for name in text.split(",") if name
        ),
    )
