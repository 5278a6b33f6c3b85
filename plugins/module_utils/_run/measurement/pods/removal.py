# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes the pods of measurements, even if their node does not confirm their end."""

from __future__ import annotations

import typing

from ...._model.boundary.form import describe_rejected
from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.measuring import NAMESPACE
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.shell import Clock
from ...._parse.kubernetes import core as kubernetes
from ...._parse.kubernetes.foreign import is_made_pod
from ...._parse.kubernetes.resource import name_of
from ...._render.cluster.names import FABRIC_LABEL, MANAGED_BY
from ...cluster.finalizers import remove_finalizers
from ..measuring_plan import Plan, Say

#: label selector of the pods of all measurements
SELECTOR = ",".join([*(f"{key}={value}" for key, value in MANAGED_BY.items()), FABRIC_LABEL])
#: seconds after which a pod that does not go is looked at: does its node live
LOST_SECONDS = 15.0
#: finalizers of one pod that are named
_FINALIZERS = 3


def name_with_namespace(item: Resource) -> str:
    """Return ``namespace/name`` of a namespaced object."""
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _explain_finalizers(item: Resource) -> str:
    """Return a text about the finalizers that block the deletion of a measuring pod, with the command that removes
    them. Return an empty text if there are none. The collection gives pods no finalizer, but the kubelet of a node may.

    :param item: object of the pod
    """
    found = item["metadata"].get("finalizers")
    if not isinstance(found, list) or not found:
        return ""
    names = ", ".join(map(describe_rejected, found[:_FINALIZERS]))
    more = f" and {len(found) - _FINALIZERS} more" if len(found) > _FINALIZERS else ""
    patch = """--type merge -p '{"metadata":{"finalizers":null}}'"""
    command = f"kubectl patch pod {name_of(item)} -n {item['metadata']['namespace']} {patch}"
    return f"; its finalizers {names}{more} prevent the deletion until they are removed: {command}"


class PodRemoval:
    """A client that removes the pods of all measurements in the namespace of the measurement.

    :ivar forced: a sentence about each pod whose object was deleted although it is not known that its containers have
        ended
    """

    def __init__(
        self, cluster: Cluster, plan: Plan, clock: Clock, pause: typing.Callable[[float], None], say: Say
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._say = say
        #: pods whose objects were deleted although nothing says that they ended
        self.forced: list[str] = []

    def list_pods(self) -> tuple[Resource, ...]:
        """Return the pods of all measurements in the namespace of the measurement. Mirror pods are left out, because
        their kubelet creates them again after each deletion.

        Pods with the same labels in other namespaces are not measuring pods of this release: they belong to tenants, or
        to an earlier release, whose pods a teardown finds.

        :raises ApiError: the API server refuses, or cannot be reached
        """
        return self._cluster.list("Pod", NAMESPACE, SELECTOR, only=is_made_pod).items

    def remove(self) -> tuple[str, ...]:
        """Delete all pods of this run and of interrupted runs, and wait until they are gone.

        A pod that does not end in time is deleted without a confirmation by its node, so that no single node blocks the
        measurement.

        :returns: a text about each pod that existed, sorted: its namespace/name or, if its node did not confirm its
            end, a sentence
        :raises ApiError: the API server refuses, or cannot be reached
        """
        found = self.list_pods()
        for item in found:
            # those of the last fabric are on their way already
            if not item["metadata"].get("deletionTimestamp"):
                metadata = item["metadata"]
                self._cluster.delete(
                    "Pod", metadata["namespace"], metadata["name"], grace_seconds=1, only={"uid": metadata["uid"]}
                )
        end, look, left = self._clock() + self._plan.removal_seconds, self._clock() + LOST_SECONDS, found
        while left and self._clock() < end:
            self._pause(1.0)
            left = self.list_pods()
            if left and self._clock() >= look:
                look = self._clock() + LOST_SECONDS
                self._delete_of_lost_nodes(left)
        forced = {item["metadata"]["uid"]: self._force_deletion(item) for item in left}
        return tuple(sorted(forced.get(item["metadata"]["uid"]) or name_with_namespace(item) for item in found))

    def _force_deletion(self, item: Resource) -> str:
        """Delete the object of a pod that does not end, without a confirmation by its node, and remove its finalizers.
        Show a sentence about this to the user, and return it.

        :param item: object of the pod
        """
        metadata, node = item["metadata"], (item.get("spec") or {}).get("nodeName")
        self._cluster.delete(
            "Pod", metadata["namespace"], metadata["name"], grace_seconds=0, only={"uid": metadata["uid"]}
        )
        seconds = f"{self._plan.removal_seconds:.0f} s"
        held = _explain_finalizers(item)
        if held and metadata["uid"] in remove_finalizers(
            self._cluster, NAMESPACE, SELECTOR, lambda found: found["metadata"]["uid"] == metadata["uid"]
        ):
            held = "; its finalizers, which linerate.rdma does not set on pods, were removed"
        sentence = (
            f"{name_with_namespace(item)} (deleted after {seconds} without confirmation by its node {node}, where the"
            f" pod may still run and hold its virtual function{held})"
        )
        self._say(sentence)
        self.forced.append(sentence)
        return sentence

    def _delete_of_lost_nodes(self, left: typing.Iterable[Resource]) -> None:
        """Delete the objects of pods whose nodes are not Ready. No kubelet reports the end of these pods. A kubelet
        that returns later ends the containers of pods that have no object.

        :param left: pods that still exist
        """
        living = {node.name for node in map(kubernetes.parse_node, self._cluster.list("Node").items) if node.ready}
        for item in left:
            metadata, node = item["metadata"], (item.get("spec") or {}).get("nodeName")
            if node and node not in living:
                self._say(f"{node} is lost: its pod {metadata['name']} is deleted without confirmation by the node")
                self._cluster.delete(
                    "Pod", metadata["namespace"], metadata["name"], grace_seconds=0, only={"uid": metadata["uid"]}
                )


def remove_pods(
    cluster: Cluster, seconds: float, clock: Clock, pause: typing.Callable[[float], None], say: Say = lambda line: None
) -> tuple[str, ...]:
    """Remove the pods of an earlier run, even if their nodes are lost. Call this before their namespace is deleted,
    because the deletion of a namespace waits for the pods in it.

    :param seconds: maximum duration of the removal, in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :returns: a text about each pod that existed: its namespace/name or, if its node did not confirm its end, a sentence
    :raises ApiError: the API server refuses, or cannot be reached
    """
    return PodRemoval(cluster, Plan((), ClusterIntent(), (), pod_seconds=seconds), clock, pause, say).remove()
