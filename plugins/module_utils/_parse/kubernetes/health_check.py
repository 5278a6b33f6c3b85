# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse MachineHealthChecks of OpenShift and of Cluster API, NodeHealthChecks of Medik8s, and Machines."""

from __future__ import annotations

from ..._model.base.marks import MANAGER
from ..._model.kubernetes.control_plane import HealthCheck, Machine
from .resource import Resource, items_of, labels_of, mapping_at, name_of, selector_of, texts_of

#: annotation that pauses a MachineHealthCheck, whatever its value. The value of the collection is its name, a slash and
#: the name of the intent, so that a later run knows whose it is. Earlier releases wrote the collection's name alone.
#: [OpenShift: Updating clusters, Pausing a MachineHealthCheck resource; Cluster API: api/core/v1beta1 PausedAnnotation,
#: util/annotations HasPaused]
PAUSED = "cluster.x-k8s.io/paused"
#: our entry of spec.pauseRequests of a NodeHealthCheck: texts, and while there is any, no new remediation begins
#: [medik8s.io, NodeHealthCheck configuration]. The name of the intent follows BY_INTENT, except in earlier releases
PAUSE_REQUEST = "linerate.rdma: its nodes are being reset"
BY_INTENT = ", intent "


def parse_machine(resource: Resource) -> Machine:
    """Parse a Machine, the object that represents the machine of a node. The name of the node is empty if the machine
    has no node yet.

    :raises ResourceError: the object is not a valid Machine
    """
    node = mapping_at(resource, "status", "nodeRef").get("name")
    return Machine(
        str(mapping_at(resource, "metadata").get("namespace", "")),
        name_of(resource),
        labels_of(resource),
        str(node or ""),
    )


def list_versions(group: Resource) -> tuple[str, ...]:
    """Return the versions of an API group that the API server serves, such as v1beta2; the preferred one first.

    :param group: the APIGroup, as the API server returns it
    :raises ResourceError: the object is not a valid APIGroup
    """
    name = str(mapping_at(group).get("name") or "APIGroup")
    found = [str(item.get("version") or "") for item in items_of(group, "versions", name)]
    preferred = str(mapping_at(group, "preferredVersion").get("version") or "")
    return tuple(sorted(filter(None, found), key=lambda version: version != preferred))


def machine_health_check(resource: Resource, kind: str) -> HealthCheck:
    """Parse a MachineHealthCheck: its selector, whether it is paused, and whether an intent of linerate.rdma paused it.
    The nodes that it watches are not part of the object and remain empty.

    :param kind: kind of the object, which differs between OpenShift and Cluster API
    :raises ResourceError: the object is not a valid MachineHealthCheck
    """
    name, annotations = name_of(resource), mapping_at(resource, "metadata", "annotations")
    selector = selector_of(mapping_at(resource, "spec"), "selector", f"MachineHealthCheck {name}")
    namespace = str(mapping_at(resource, "metadata").get("namespace", ""))
    value = str(annotations.get(PAUSED) or "")
    ours, intent = value == MANAGER or value.startswith(f"{MANAGER}/"), value.partition("/")[2]
    return HealthCheck(
        kind, namespace, name, selector, paused=PAUSED in annotations, ours=ours, intent=intent if ours else ""
    )


def node_health_check(resource: Resource) -> HealthCheck:
    """Parse a NodeHealthCheck: its selector, whether it is paused, and whether an intent of linerate.rdma paused it.
    The nodes that it watches are not part of the object and remain empty.

    :raises ResourceError: the object is not a valid NodeHealthCheck
    """
    name, spec = name_of(resource), mapping_at(resource, "spec")
    requests = texts_of(spec, "pauseRequests", f"NodeHealthCheck {name}")
    selector = selector_of(spec, "selector", f"NodeHealthCheck {name}")
    own = [text for text in requests if text.startswith(PAUSE_REQUEST)]
    intent = own[0].partition(BY_INTENT)[2] if own else ""
    return HealthCheck("NodeHealthCheck", "", name, selector, paused=bool(requests), ours=bool(own), intent=intent)
