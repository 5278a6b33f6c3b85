# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the core kinds of Kubernetes into facts: nodes, pods, disruption budgets, workloads."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import ParseError
from ..._model.base.marks import RUN_LABEL, is_ours
from ..._model.boundary.addresses import HOST_ADDRESS, HostAddress
from ..._model.boundary.kubernetes import LABEL, LABEL_KEY, RESOURCE, SUBDOMAIN, UID
from ..._model.boundary.words import IMAGE, WORD
from ..._model.kubernetes.control_plane import GUARD, is_guard_pod
from ..._model.kubernetes.disruption import Budget, ClusterPod, LabelSelector
from ..._model.kubernetes.objects import ClusterNode, Workload
from ..._model.node.identity import uuid_of
from ..._model.node.shown_boot import Boot
from ..limits import MIB, decode_json
from .foreign import is_mirror_pod
from .quantity import parse_whole
from .resource import (
    Resource,
    ResourceError,
    excerpt_of,
    items_of,
    labels_of,
    list_known,
    mapping_at,
    name_of,
    normalize_known,
    number_of,
    selector_of,
    text_at,
    text_of,
    title_of,
    why_not_read,
)

#: labels, expressions and their values of a budget's selector; real ones have one or two
MOST_ASKED = 16
#: taint of a cordoned node
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
#: annotation of a node with the name of its Machine, which may be in another cluster, the management cluster
#: [cluster-api api/core/v1beta2 MachineAnnotation, set by internal/controllers/machine/machine_controller_noderef.go]
_MACHINE = "cluster.x-k8s.io/machine"


def parse_node(resource: Resource) -> ClusterNode:
    """Parse a v1 Node.

    The amount of an extended resource that is invalid is stored in ``unread`` instead of raising an error, so that only
    a check that needs the resource reports it. An invalid boot ID or name of a machine config becomes empty. A Node of
    which only the metadata could be read counts as not ready.

    :raises ResourceError: the object is not a valid Node
    """
    name = text_of(SUBDOMAIN, name_of(resource), "Node")
    if why_not_read(resource):
        return ClusterNode(name, labels_of(resource), not_ready=f"its object is {why_not_read(resource)}")
    status = mapping_at(resource, "status")
    allocatable, unread = _parse_extended_resources(mapping_at(status, "allocatable"))
    ready = next((item for item in items_of(status, "conditions", f"Node {name}") if item.get("type") == "Ready"), {})
    return ClusterNode(
        name=name,
        labels=labels_of(resource),
        ready=ready.get("status") == "True",
        unschedulable=bool(mapping_at(resource, "spec").get("unschedulable", False)),
        allocatable=allocatable,
        unread=unread,
        machine_config=_machine_config(mapping_at(resource, "metadata", "annotations")),
        boot_id=normalize_known(UID, mapping_at(status, "nodeInfo").get("bootID")),
        not_ready="" if ready.get("status") == "True" else excerpt_of(ready.get("message") or ready.get("reason")),
        machine=normalize_known(SUBDOMAIN, mapping_at(resource, "metadata", "annotations").get(_MACHINE)),
    )


def system_uuid(resource: Resource) -> str:
    """Return the machine UUID that the kubelet reports in a v1 Node. Return an empty string if the kubelet reports
    none, or if the object could not be read.
    """
    if why_not_read(resource):
        return ""
    return str(mapping_at(resource, "status", "nodeInfo").get("systemUUID") or "")


def boot_of(resource: Resource) -> Boot:
    """Return the boot ID and the machine UUID that the kubelet reports in a v1 Node. An ID that is invalid or not set
    is empty.

    :raises ResourceError: the object is not a valid Node
    """
    told = mapping_at(resource, "status", "nodeInfo")
    return Boot(uuid_of(told.get("bootID")), uuid_of(told.get("systemUUID")))


def internal_address(resource: Resource) -> typing.Optional[HostAddress]:
    """Return the address at which other nodes reach a v1 Node. If the Node has addresses of both IP versions, return
    the IPv4 address. Return None if the Node has no address.

    :raises ResourceError: the object is not a valid Node, or an address is invalid or cannot be reached from another
        machine
    """
    return next(iter(sorted(internal_addresses(resource), key=lambda address: ":" in address)), None)


def internal_addresses(resource: Resource) -> tuple[HostAddress, ...]:
    """Return all addresses at which other nodes reach a v1 Node (InternalIP), in the order of the kubelet. The result
    is empty if there are none. The kubelet writes the addresses, and the API server accepts any text, so they are
    validated.

    :raises ResourceError: the object is not a valid Node, or an address is invalid or cannot be reached from another
        machine
    """
    what = title_of(resource)
    found = items_of(mapping_at(resource, "status"), "addresses", what)
    own = [item.get("address") for item in found if item.get("type") == "InternalIP" and item.get("address")]
    return tuple(text_of(HOST_ADDRESS, address, f"{what}: its InternalIP") for address in own)


def _machine_config(annotations: Resource) -> str:
    """Return the name of the machine config with which a node runs. Return an empty string if the node has none, or if
    the machine config operator is changing it. [machine-config-operator pkg/controller/common/layered_node_state.go
    IsNodeDone]

    :param annotations: annotations of the Node
    """
    has, wanted, state, image, wanted_image = (
        annotations.get(f"machineconfiguration.openshift.io/{name}")
        for name in ("currentConfig", "desiredConfig", "state", "currentImage", "desiredImage")
    )
    done = has and has == wanted and image == wanted_image and state == "Done"
    return normalize_known(SUBDOMAIN, has) if done else ""


def _parse_extended_resources(offered: Resource) -> tuple[dict[str, int], dict[str, str]]:
    """Return two results, both by resource name: the amounts of the extended resources, and the texts of the amounts
    that are not whole numbers. An extended resource has a domain in its name. Other resources, such as cpu and memory,
    are ignored.

    :param offered: ``status.allocatable`` of the Node, amounts by resource
    """
    pieces, unread = {}, {}
    for key, value in offered.items():
        if RESOURCE.fits(key):
            try:
                pieces[str(key)] = parse_whole(value, str(key))
            except ResourceError:
                unread[str(key)] = str(value)[:100]
    return pieces, unread


def parse_pod(resource: Resource) -> ClusterPod:
    """Return the properties of a v1 Pod that a drain depends on: node, owner, phase, labels and requests.

    :raises ResourceError: the object is not a valid Pod
    """
    name, metadata, spec = (
        text_of(SUBDOMAIN, name_of(resource), "Pod"),
        mapping_at(resource, "metadata"),
        mapping_at(resource, "spec"),
    )
    what = f"Pod {name}"
    containers = items_of(spec, "containers", what)
    labels = {str(key): str(value) for key, value in mapping_at(metadata, "labels").items()}
    namespace, node = text_at(LABEL, metadata, "namespace", what), text_at(SUBDOMAIN, spec, "nodeName", what)
    guard = GUARD if is_guard_pod(namespace, name, node) else ""
    return ClusterPod(
        name=name,
        namespace=namespace,
        node=node,
        labels=labels,
        requests=tuple(
            sorted(
                {
                    key
                    for container in containers
                    for key in mapping_at(container, "resources", "requests")
                    if LABEL_KEY.fits(key)
                }
            )
        ),
        owner=normalize_known(WORD, parse_controller(resource)[0]) or guard,
        mirror=is_mirror_pod("Pod", resource),
        ended=mapping_at(resource, "status").get("phase") in ("Succeeded", "Failed"),
        uid=text_at(UID, metadata, "uid", what),
        # an empty mapping is one, too
        empty_dir=any(volume.get("emptyDir") is not None for volume in items_of(spec, "volumes", what)),
        of_run=is_ours(labels) and RUN_LABEL in labels,
        controller=controller_uid(resource),
        tolerates_cordon=any(tolerates_taint(item, _CORDON) for item in items_of(spec, "tolerations", what)),
    )


def unread_pod(resource: Resource) -> ClusterPod:
    """Return the parts of a Pod that a drain depends on, from its metadata only. It is used if the whole object is too
    large to read. The field ``node`` is empty, because the metadata does not contain the node.

    :raises ResourceError: the pod has no valid name, namespace or uid
    """
    name, metadata = text_of(SUBDOMAIN, name_of(resource), "Pod"), mapping_at(resource, "metadata")
    return ClusterPod(
        name=name,
        namespace=text_at(LABEL, metadata, "namespace", f"Pod {name}"),
        node="",
        uid=text_at(UID, metadata, "uid", f"Pod {name}"),
        unread=True,
    )


def tolerates_taint(toleration: typing.Mapping[str, typing.Any], taint: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether a toleration of a pod matches a taint of a node, so that the taint does not keep the pod away.
    [k8s.io/component-helpers scheduling/corev1 ToleratesTaint]

    :param toleration: toleration as in the spec of a pod
    :param taint: taint as in the spec of a Node
    """
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, exists = toleration.get("key") or "", toleration.get("operator") == "Exists"
    if not key:
        return exists
    return bool(key == taint.get("key") and (exists or (toleration.get("value") or "") == (taint.get("value") or "")))


def parse_controller(resource: Resource) -> tuple[str, str]:
    """Return the kind and the name of the controller of an object. Both are empty if it has no controller.

    :raises ResourceError: the owner references have an unexpected form
    """
    one = _find_controller(resource)
    return str(one.get("kind") or ""), str(one.get("name") or "")


def controller_uid(resource: Resource) -> str:
    """Return the uid of the controller of an object. Return an empty string if the object has no controller, or if the
    uid is invalid. The uid can be any text, because the API server does not validate it and the creator of a pod can
    write it.

    :raises ResourceError: the owner references have an unexpected form
    """
    return normalize_known(UID, _find_controller(resource).get("uid"))


def _find_controller(resource: Resource) -> typing.Mapping[str, typing.Any]:
    owners = items_of(mapping_at(resource, "metadata"), "ownerReferences", name_of(resource))
    return next((owner for owner in owners if owner.get("controller")), {})


def parse_budget(resource: Resource) -> Budget:
    """Parse a policy/v1 PodDisruptionBudget. A budget without a status allows no disruption, as in the API server.

    A tenant writes the selector, and each pod of the namespace is compared with it. To limit this work, a selector with
    more than ``MOST_ASKED`` labels, expressions and values is treated as one that selects all pods.

    :raises ResourceError: the object is not a valid PodDisruptionBudget
    """
    name = name_of(resource)
    what = f"PodDisruptionBudget {name}"
    selector = selector_of(mapping_at(resource, "spec"), "selector", what)
    if (
        selector is not None
        and len(selector.labels) + sum(1 + len(item.values) for item in selector.expressions) > MOST_ASKED
    ):
        selector = LabelSelector()
    return Budget(
        name=name,
        namespace=text_at(LABEL, mapping_at(resource, "metadata"), "namespace", what),
        allowed=number_of(mapping_at(resource, "status").get("disruptionsAllowed", 0), f"{what}: disruptionsAllowed"),
        selector=selector,
    )


def parse_workload(resource: Resource) -> Workload:
    """Parse a Deployment or a DaemonSet. The number of ready pods includes only pods of the current generation, and is
    0 if the controller has not seen this generation yet.

    A Deployment reports the number of available pods and the number of pods of the current generation, but not the
    number of pods that are both. Each pod of an earlier generation is therefore assumed to be available, which gives
    the lowest possible number.

    :raises ResourceError: the object is not a valid Deployment or DaemonSet
    """
    name = name_of(resource)
    kind = resource.get("kind")
    status = mapping_at(resource, "status")
    containers = items_of(mapping_at(resource, "spec", "template", "spec"), "containers", title_of(resource))
    seen = number_of(status.get("observedGeneration", 0), f"{title_of(resource)}: observedGeneration")
    current = seen >= number_of(
        mapping_at(resource, "metadata").get("generation", 0), f"{title_of(resource)}: generation"
    )
    if kind == "DaemonSet":
        wanted, keys = status.get("desiredNumberScheduled", 0), ("numberReady", "updatedNumberScheduled")
    else:
        wanted, keys = mapping_at(resource, "spec").get("replicas", 1), ("availableReplicas", "updatedReplicas")
    good, updated = (number_of(status.get(key, 0), f"{title_of(resource)}: ready pods") for key in keys)
    pods = number_of(status.get("replicas", 0), f"{title_of(resource)}: pods") if kind != "DaemonSet" else 0
    ready = min(updated, max(0, good - max(0, pods - updated)))
    return Workload(
        name=name,
        namespace=text_at(LABEL, mapping_at(resource, "metadata"), "namespace", title_of(resource)),
        wanted=number_of(wanted, f"{title_of(resource)}: desired pods"),
        ready=ready if current else 0,
        images=list_known(IMAGE, (container.get("image") for container in containers)),
    )


@dataclasses.dataclass(frozen=True)
class Status:
    """A v1 Status, as the error channel of exec returns it. A missing text is empty, and a missing code is 0.

    :ivar status: ``Success`` or ``Failure``
    :ivar message: message of the API server
    :ivar reason: reason as one word, such as ``NonZeroExitCode``
    :ivar code: HTTP status code
    """

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


def parse_status(channel: str) -> Status:
    """Parse the text of the error channel of exec into a Status. A text that is not a JSON mapping becomes the message
    of the Status, whose other fields are empty. This function never raises an error.
    """
    try:
        found = decode_json(channel, "error channel", most_bytes=MIB, unique=False)
    except ParseError:
        found = None
    if not isinstance(found, dict):
        return Status(message=channel.strip())
    kind, message, reason = (str(found.get(key) or "").strip() for key in ("status", "message", "reason"))
    code = found.get("code")
    return Status(kind, message, reason, code if isinstance(code, int) else 0)


def status_message(channel: str) -> str:
    """Return the message of the v1 Status on the error channel of exec. If the Status has no message, return the whole
    text of the channel without surrounding blanks.
    """
    return parse_status(channel).message or channel.strip()
