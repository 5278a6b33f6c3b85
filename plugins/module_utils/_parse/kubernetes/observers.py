# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the API objects of the observers, the pods that read facts on nodes: their namespace, DaemonSet and pods, and
the events about them.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.marks import is_ours
from ..._model.base.text import both_ends
from ..._model.boundary.kubernetes import OBJECT_NAME, SUBDOMAIN, UID
from ..._model.boundary.words import IMAGE, WORD
from ..._model.kubernetes.observers import (
    CONTAINER,
    LABEL,
    OWN,
    PREPARED,
    TEMPLATE,
    ClusterEvent,
    ObserverPod,
    ObserverSet,
)
from .core import controller_uid
from .pod_state import state_of_pod
from .resource import (
    Resource,
    ResourceError,
    excerpt_of,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    normalize_known,
    number_of,
    text_of,
    texts_of,
    title_of,
)

_RUN = "linerate.rdma/run"

#: characters of the message of an Event, which any kubelet may write
MOST_MESSAGE = 4096


def owned_namespace(resource: Resource, label: str = LABEL) -> tuple[typing.Literal["own", "prepared", "foreign"], str]:
    """Return the owner of a v1 Namespace, and the ID of the run that created it. The owner is ``own`` if linerate.rdma
    created the Namespace, ``prepared`` if an administrator created it for linerate.rdma, otherwise ``foreign``. The ID
    is empty unless the owner is ``own``.

    :param label: name of the label whose value marks the owner
    :raises ResourceError: the object is not a valid Namespace
    """
    labels = labels_of(resource)
    if is_ours(labels) and labels.get(label) == OWN:
        return "own", labels.get(_RUN, "")
    return ("prepared" if labels.get(label) == PREPARED else "foreign"), ""


def explain_remaining_namespace(resource: Resource) -> str:
    """Return the reason why a Namespace that is being deleted still exists: the messages of the conditions of its
    status that are true, separated by semicolons. Return an empty string if there are no such messages.

    :raises ResourceError: the conditions have an unexpected form
    """
    conditions = items_of(mapping_at(resource, "status"), "conditions", "Namespace")
    return excerpt_of(
        "; ".join(
            excerpt_of(item.get("message"))
            for item in conditions
            if item.get("status") == "True" and item.get("message")
        )
    )


def observer_set(resource: Resource) -> ObserverSet:
    """Parse the apps/v1 DaemonSet of the observers. A list or text that the object does not have is empty.

    :raises ResourceError: the object is not a valid DaemonSet
    """
    title, metadata = title_of(resource), mapping_at(resource, "metadata")
    seen = number_of(mapping_at(resource, "status").get("observedGeneration", 0), f"{title}: observedGeneration")
    template = mapping_at(resource, "spec", "template")
    selector = mapping_at(template, "spec", "nodeSelector")
    containers = items_of(mapping_at(template, "spec"), "containers", title)
    return ObserverSet(
        name=text_of(SUBDOMAIN, name_of(resource), title),
        uid=normalize_known(UID, metadata.get("uid")),
        seen=seen >= number_of(metadata.get("generation", 0), f"{title}: generation"),
        template=str(mapping_at(template, "metadata", "annotations").get(TEMPLATE) or ""),
        node_selector={str(key): str(value) for key, value in selector.items()},
        nodes=_list_affinity_nodes(mapping_at(template, "spec"), title),
        run=labels_of(resource).get(_RUN, ""),
        image=next((normalize_known(IMAGE, item.get("image")) for item in containers), ""),
    )


def observer_pod(resource: Resource) -> ObserverPod:
    """Parse a v1 Pod of the observers' DaemonSet. For a Pod that is not scheduled yet, the node is taken from its
    affinity, where the DaemonSet controller writes it. The node is empty if the affinity does not select exactly one
    node.

    :raises ResourceError: the object is not a valid Pod
    """
    title, metadata, state = title_of(resource), mapping_at(resource, "metadata"), state_of_pod(resource)
    planned = _list_affinity_nodes(mapping_at(resource, "spec"), title)
    statuses = items_of(mapping_at(resource, "status"), "containerStatuses", title)
    status: Resource = next((item for item in statuses if item.get("name") == CONTAINER), {})
    return ObserverPod(
        name=text_of(SUBDOMAIN, name_of(resource), title),
        uid=normalize_known(UID, metadata.get("uid")),
        node=normalize_known(
            SUBDOMAIN, mapping_at(resource, "spec").get("nodeName") or (planned[0] if len(planned) == 1 else "")
        ),
        phase=state.phase,
        detail=state.detail,
        suspect=state.suspect,
        image_id=excerpt_of(status.get("imageID")),
        template=str(mapping_at(metadata, "annotations").get(TEMPLATE) or ""),
        restarts=number_of(status.get("restartCount", 0), f"{title}: restartCount"),
        controller=controller_uid(resource),
        deleting=bool(metadata.get("deletionTimestamp")),
    )


def parse_event(resource: Resource) -> ClusterEvent:
    """Parse a v1 Event: the object it is about, the reason, the message and the time as text. An invalid value is
    empty. An Event of the newer API has its time in ``series``.

    :raises ResourceError: the object is not a valid Event
    """
    about = mapping_at(resource, "involvedObject")
    time = (
        mapping_at(resource, "series").get("lastObservedTime")
        or resource.get("lastTimestamp")
        or resource.get("eventTime")
    )
    return ClusterEvent(
        kind=normalize_known(WORD, about.get("kind")),
        name=normalize_known(OBJECT_NAME, about.get("name")),
        uid=normalize_known(UID, about.get("uid")),
        reason=excerpt_of(resource.get("reason")),
        message=both_ends(str(resource.get("message") or "").strip(), MOST_MESSAGE),
        warning=resource.get("type") == "Warning",
        time=str(time or mapping_at(resource, "metadata").get("creationTimestamp") or ""),
    )


def image_of_tag(resource: Resource) -> str:
    """Return the name of the image of an ImageStreamTag (image.openshift.io/v1), with its digest.

    :raises ResourceError: the ImageStreamTag has no image reference
    """
    image = mapping_at(resource, "image").get("dockerImageReference")
    if not isinstance(image, str) or not image:
        raise ResourceError(f"{title_of(resource)}: image.dockerImageReference is missing")
    return image


def knows_recursive_read_only(version: str) -> bool:
    """Return whether an API server supports the field ``recursiveReadOnly`` of a mount. Servers support it from v1.31
    on. An older server rejects the unknown field in a server-side apply. Return False for a version of another form.

    :param version: gitVersion of the API server, such as v1.34.4
    """
    found = re.match(r"v(\d{1,3})\.(\d{1,3})\.", version, re.ASCII)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 31)


def _list_affinity_nodes(spec: Resource, title: str) -> tuple[str, ...]:
    """Return the node names in the required node affinity of a pod. Return an empty tuple if the affinity does not
    select nodes by name.

    :param spec: spec of the pod
    :param title: kind and name of the object, for messages
    """
    required = mapping_at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = items_of(required, "nodeSelectorTerms", title)
    fields = [field for term in terms for field in items_of(term, "matchFields", title)]
    return tuple(
        name for field in fields if field.get("key") == "metadata.name" for name in texts_of(field, "values", title)
    )
