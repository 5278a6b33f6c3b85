# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine how far a pod is on its way to Ready, with the cause of a delay if the kubelet or the scheduler reports
one.
"""

from __future__ import annotations

import dataclasses
import typing

from .resource import Resource, excerpt_of, items_of, mapping_at


@dataclasses.dataclass(frozen=True)
class PodState:
    """The progress of a pod towards Ready.

    :ivar phase: ready, waiting or failed
    :ivar detail: description of the state, with the cause that the kubelet or the scheduler reports
    :ivar suspect: ``unschedulable``, ``image`` or ``container`` if the pod waits for a reason that may disappear by
        itself, but that is a failure if it lasts; otherwise empty
    """

    phase: typing.Literal["ready", "waiting", "failed"]
    detail: str
    suspect: str = ""


#: why a container waits for its image
IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_CONTAINER = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")


def _list_container_exits(status: Resource) -> typing.Iterator[str]:
    """Yield a text about each terminated container: the reason, such as StartError, and the message of the runtime. A
    container without both is left out.

    :param status: status of a Pod
    """
    for container in items_of(status, "containerStatuses", "Pod"):
        ended = mapping_at(container, "state", "terminated")
        if ended.get("reason") or ended.get("message"):
            yield f"{excerpt_of(ended.get('reason')) or 'container'}: {excerpt_of(ended.get('message')) or 'no text'}"


def state_of_pod(pod: Resource) -> PodState:
    """Return how far a v1 Pod is on its way to Ready, from its phase, its conditions and the statuses of its
    containers. A Pod that has ended or is being deleted has failed.

    :raises ResourceError: the object is not a valid Pod
    """
    status = mapping_at(pod, "status")
    conditions = {str(item.get("type")): item for item in items_of(status, "conditions", "Pod")}
    if mapping_at(pod, "metadata").get("deletionTimestamp"):
        return PodState("failed", "it is being deleted")
    if status.get("phase") in ("Failed", "Succeeded"):
        ended = (
            f"it ended: {excerpt_of(status.get('reason') or status.get('phase'))} {excerpt_of(status.get('message'))}"
        )
        return PodState("failed", excerpt_of("; ".join((ended.strip(), *_list_container_exits(status)))))
    if conditions.get("Ready", {}).get("status") == "True":
        return PodState("ready", "Ready")
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return PodState(
            "waiting",
            f"not scheduled: {excerpt_of(scheduled.get('message') or scheduled.get('reason')) or 'no reason given'}",
            "unschedulable",
        )
    for container in (*items_of(status, "initContainerStatuses", "Pod"), *items_of(status, "containerStatuses", "Pod")):
        waiting = mapping_at(container, "state", "waiting")
        reason = waiting.get("reason", "")
        if reason in IMAGE_REASONS or reason in _CONTAINER:
            return PodState(
                "waiting",
                f"{reason}: {excerpt_of(waiting.get('message')) or 'no text'}",
                "image" if reason in IMAGE_REASONS else "container",
            )
    return PodState(
        "waiting", "its container is being created" if scheduled else "the scheduler has not processed the pod yet"
    )
