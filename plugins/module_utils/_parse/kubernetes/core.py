# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes' own kinds to facts: nodes, pods, budgets, workloads."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import ParseError
from ..._model.base.marks import RUN_LABEL, is_ours
from ..._model.boundary.addresses import HOST_ADDRESS, HostAddress
from ..._model.boundary.kubernetes import LABEL, LABEL_KEY, RESOURCE, SUBDOMAIN, UID
from ..._model.boundary.words import IMAGE, WORD
from ..._model.kubernetes.disruption import Budget, ClusterPod, LabelSelector
from ..._model.kubernetes.objects import ClusterNode, Workload
from ..._model.node.identity import Boot, uuid_of
from ..limits import MIB, decode_json
from .foreign import is_mirror_pod
from .quantity import whole
from .resource import (
    Resource,
    ResourceError,
    excerpt_of,
    items_of,
    known,
    labels_of,
    mapping_at,
    name_of,
    number_of,
    selector_of,
    text_at,
    text_of,
    title_of,
    why_not_read,
)

#: labels, expressions and their values of a budget's selector; real ones have one or two
MOST_ASKED = 16


def node(resource: Resource) -> ClusterNode:
    """Parse a v1 Node. A number of somebody else's resource that can't be read is no error: only who needs the resource
    looks at it. What the node says of itself and is not of its type is not known. One that was not read is not ready.

    :raises ResourceError: no Node
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
        boot_id=known(UID, mapping_at(status, "nodeInfo").get("bootID")),
        not_ready="" if ready.get("status") == "True" else excerpt_of(ready.get("message") or ready.get("reason")),
    )


def system_uuid(resource: Resource) -> str:
    """Return the UUID that the kubelet of a v1 Node reports of its machine; empty where it reports none."""
    if why_not_read(resource):
        return ""
    return str(mapping_at(resource, "status", "nodeInfo").get("systemUUID") or "")


def boot_of(resource: Resource) -> Boot:
    """Return the boot and the machine that the kubelet of a v1 Node reports, without invalid and unset UUIDs.

    :raises ResourceError: no Node
    """
    told = mapping_at(resource, "status", "nodeInfo")
    return Boot(uuid_of(told.get("bootID")), uuid_of(told.get("systemUUID")))


def internal_address(resource: Resource) -> typing.Optional[HostAddress]:
    """Return the address of a v1 Node among nodes, IPv4 if it has both; None where it tells none.

    :raises ResourceError: see ``internal_addresses``
    """
    return next(iter(sorted(internal_addresses(resource), key=lambda address: ":" in address)), None)


def internal_addresses(resource: Resource) -> tuple[HostAddress, ...]:
    """Return all addresses of a v1 Node among nodes, the kubelet's first one first.

    The kubelet writes them, and the API server takes any text.

    :raises ResourceError: no Node, or one of them is no address that another machine reaches
    """
    what = title_of(resource)
    found = items_of(mapping_at(resource, "status"), "addresses", what)
    own = [item.get("address") for item in found if item.get("type") == "InternalIP" and item.get("address")]
    return tuple(text_of(HOST_ADDRESS, address, f"{what}: its InternalIP") for address in own)


def _machine_config(annotations: Resource) -> str:
    """[machine-config-operator pkg/controller/common/layered_node_state.go IsNodeDone]"""
    has, wanted, state = (
        annotations.get(f"machineconfiguration.openshift.io/{name}")
        for name in ("currentConfig", "desiredConfig", "state")
    )
    return known(SUBDOMAIN, has) if has and has == wanted and state == "Done" else ""


def _parse_extended_resources(offered: Resource) -> tuple[dict[str, int], dict[str, str]]:
    """Extended resources in pieces; and those that are no number of pieces, as they are written. They have a domain in
    the name; cpu and memory have none."""
    pieces, unread = {}, {}
    for key, value in offered.items():
        if RESOURCE.fits(key):
            try:
                pieces[str(key)] = whole(value, str(key))
            except ResourceError:
                unread[str(key)] = str(value)[:100]
    return pieces, unread


def pod(resource: Resource) -> ClusterPod:
    """Parse a v1 Pod, as far as a drain cares.

    :raises ResourceError: none
    """
    name, metadata, spec = (
        text_of(SUBDOMAIN, name_of(resource), "Pod"),
        mapping_at(resource, "metadata"),
        mapping_at(resource, "spec"),
    )
    what = f"Pod {name}"
    containers = items_of(spec, "containers", what)
    labels = {str(key): str(value) for key, value in mapping_at(metadata, "labels").items()}
    return ClusterPod(
        name=name,
        namespace=text_at(LABEL, metadata, "namespace", what),
        node=text_at(SUBDOMAIN, spec, "nodeName", what),
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
        owner=known(WORD, controller(resource)[0]),
        mirror=is_mirror_pod("Pod", resource),
        ended=mapping_at(resource, "status").get("phase") in ("Succeeded", "Failed"),
        uid=text_at(UID, metadata, "uid", what),
        # an empty mapping is one, too
        empty_dir=any(volume.get("emptyDir") is not None for volume in items_of(spec, "volumes", what)),
        of_run=is_ours(labels) and RUN_LABEL in labels,
        controller=controller_uid(resource),
        tolerates_cordon=any(map(_tolerates_cordon, items_of(spec, "tolerations", what))),
    )


def unread_pod(resource: Resource) -> ClusterPod:
    """Parse the metadata of a pod that is too large to be read. Its node is not in there.

    :raises ResourceError: it has no name, namespace or uid
    """
    name, metadata = text_of(SUBDOMAIN, name_of(resource), "Pod"), mapping_at(resource, "metadata")
    return ClusterPod(
        name=name,
        namespace=text_at(LABEL, metadata, "namespace", f"Pod {name}"),
        node="",
        uid=text_at(UID, metadata, "uid", f"Pod {name}"),
        unread=True,
    )


def _tolerates_cordon(toleration: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether it covers the taint of a cordoned node, which has no value. [k8s.io/component-helpers
    scheduling/corev1 ToleratesTaint]"""
    if toleration.get("effect") not in (None, "", "NoSchedule"):
        return False
    key, exists = toleration.get("key") or "", toleration.get("operator") == "Exists"
    return (exists and not key) or (
        key == "node.kubernetes.io/unschedulable" and (exists or not toleration.get("value"))
    )


def controller(resource: Resource) -> tuple[str, str]:
    """Return the kind and name of what controls an object; empty when nothing does.

    :raises ResourceError: none
    """
    one = _find_controller(resource)
    return str(one.get("kind") or ""), str(one.get("name") or "")


def controller_uid(resource: Resource) -> str:
    """Return the uid of what controls an object; empty when nothing does, or the text is no uid: whoever makes a pod
    writes it, and the API server takes any text.

    :raises ResourceError: none
    """
    return known(UID, _find_controller(resource).get("uid"))


def _find_controller(resource: Resource) -> typing.Mapping[str, typing.Any]:
    owners = items_of(mapping_at(resource, "metadata"), "ownerReferences", name_of(resource))
    return next((owner for owner in owners if owner.get("controller")), {})


def budget(resource: Resource) -> Budget:
    """Parse a policy/v1 PodDisruptionBudget. One whose state is not known yet allows nothing, as the API server takes
    it.

    A tenant writes its selector, and each of the namespace's pods is held against it: one that asks more than
    ``MOST_ASKED`` is taken for one of all pods.

    :raises ResourceError: none
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


def workload(resource: Resource) -> Workload:
    """Parse a Deployment or a DaemonSet; ready counts only pods of the current generation.

    A Deployment tells how many pods are available and how many are of the current generation, and never how many are
    both. So each pod of an earlier generation is taken for one that is available.

    :raises ResourceError: neither
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
        wanted=number_of(wanted, f"{title_of(resource)}: wanted pods"),
        ready=ready if current else 0,
        images=tuple(known(IMAGE, container.get("image")) for container in containers),
    )


@dataclasses.dataclass(frozen=True)
class Status:
    """A v1 Status, which is what the error channel of exec holds. Empty, and 0, where it says nothing.

    :ivar status: Success or Failure
    :ivar code: as of HTTP
    """

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


def status(channel: str) -> Status:
    """Parse the error channel; the text itself is the message where it is not a Status. Never raises."""
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
    """Return the words of a v1 Status; the text itself where it has none."""
    return status(channel).message or channel.strip()
