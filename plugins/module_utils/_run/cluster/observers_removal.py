# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes the observers: their namespace, or only their objects in a namespace that an admin prepared."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.apply import AppliedObject
from ..._model.kubernetes.observers import DAEMON_SET
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.outcome import Outcome, has_our_label, strip_volatile
from ..._observe.kubernetes.removal.foreign import Kept, objects_of_others
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes import core
from ..._parse.kubernetes import observers as parse
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of
from .finalizers import FinalizerSweep, end_mirror_pods, remove_finalizers
from .observer_view import SELECTOR
from .observers_namespace import NamespaceStays, ObserverResources, find_object

#: seconds between two reads of the objects whose end is awaited
LOOK = 1.0


class ObserversRemoval:
    """A client that removes the observers of one cluster, whichever run created them. It deletes objects in their
    namespace, and the namespace itself if the collection owns it.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, limit: float, clock: Clock, pause: typing.Callable[[float], None]
    ) -> None:
        """Create a client for the removal; nothing is deleted yet.

        :param cluster: client of the API server
        :param namespace: namespace of the observers
        :param limit: maximum duration of each wait, in seconds
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param pause: function that sleeps for a number of seconds
        """
        self._cluster = cluster
        self._namespace = namespace
        self._limit = limit
        self._clock = clock
        self._pause = pause

    def remove(self, resources: ObserverResources, check_mode: bool) -> list[Outcome]:
        """Delete the observers, and wait until the API server has removed them. Return the outcome of each object.

        :param resources: namespace and DaemonSet of the observers
        :param check_mode: whether nothing is deleted
        :raises NamespaceStays: the namespace contains objects of other users. The observers are removed nevertheless
        :raises RdmaError: an object was not removed in time
        """
        outcomes = []
        kept = None if check_mode else self._find_kept(resources, self._limit)
        resources = dataclasses.replace(resources, whose="prepared") if kept is not None else resources
        for kind, namespace, found in self._list_removable(resources):
            there = self._cluster.delete(
                kind, namespace, name_of(found), dry_run=check_mode, only={"uid": found["metadata"]["uid"]}
            )
            outcomes.append(
                Outcome(describe_object(found, "deleted" if there else "absent", kind), strip_volatile(found))
            )
        if outcomes and not check_mode:
            self._await_gone(resources)
        if kept is not None:
            raise NamespaceStays(self._namespace, kept)
        return outcomes

    def begin_deletion(self, resources: ObserverResources) -> None:
        """Request the deletion of the observers without waiting for its end. Unlike ``remove``, this raises no error
        about objects of other users.

        :param resources: namespace and DaemonSet of the observers
        :raises ApiError: the API server refuses, or cannot be reached
        """
        if self._find_kept(resources, 0.0) is not None:
            resources = dataclasses.replace(resources, whose="prepared")
        for kind, namespace, found in self._list_removable(resources):
            self._cluster.delete(kind, namespace, name_of(found), only={"uid": found["metadata"]["uid"]})

    def _find_kept(self, resources: ObserverResources, limit: float) -> typing.Optional[Kept]:
        """Return the objects of other users in the collection's namespace, because of which the namespace must remain.
        Return None if there are no such objects, if the namespace is being deleted, or if the collection does not own
        it.

        :param resources: namespace and DaemonSet of the observers
        :param limit: longest wait in seconds for objects that are being deleted
        """
        if resources.namespace is None or resources.whose != "own" or resources.going:
            return None
        return objects_of_others(self._cluster, self._namespace, limit, self._clock, self._pause)

    def _list_removable(self, resources: ObserverResources) -> typing.Iterator[tuple[str, str, Resource]]:
        """Yield the objects to delete, each with its kind and namespace: the whole namespace if the collection owns it,
        otherwise the DaemonSet and the ServiceAccount of the observers.

        :param resources: namespace and DaemonSet of the observers
        """
        if resources.namespace is not None and resources.whose == "own":
            yield "Namespace", "", resources.namespace
        elif resources.namespace is not None:
            account = find_object(self._cluster, "ServiceAccount", self._namespace, DAEMON_SET)
            for kind, found in (("DaemonSet", resources.daemon), ("ServiceAccount", account)):
                if found is not None and has_our_label(found):
                    yield kind, self._namespace, found

    def _await_gone(self, resources: ObserverResources) -> None:
        """Wait until the deleted objects and their pods are gone. Meanwhile, remove finalizers that prevent it.

        :param resources: namespace and DaemonSet of the observers, as they were before the deletion
        :raises RdmaError: an object still exists after the limit
        """
        daemon = resources.daemon["metadata"].get("uid") if resources.daemon is not None else None

        def made(pod: Resource) -> bool:
            if daemon is None:
                return resources.whose == "own" and core.parse_controller(pod) == ("DaemonSet", DAEMON_SET)
            return core.controller_uid(pod) == str(daemon)

        end = self._clock() + self._limit
        works: list[typing.Callable[[], object]] = [
            lambda: remove_finalizers(self._cluster, self._namespace, SELECTOR, made)
        ]
        if resources.namespace is not None and resources.whose == "own":
            works.append(lambda: end_mirror_pods(self._cluster, self._namespace))
        sweep = FinalizerSweep(self._clock, *works)
        while True:
            sweep.look()
            left = self._find_remaining(resources)
            if left is None:
                return
            if self._clock() >= end:
                what, show = left
                raise RdmaError(
                    f"{what} still exists {self._limit:.0f} s after its deletion", f"Find the reason: {show}"
                )
            self._pause(LOOK)

    def _find_remaining(self, resources: ObserverResources) -> typing.Optional[tuple[str, str]]:
        """Return an object that still exists as text, and the command that shows it. Return None if all objects are
        gone.

        :param resources: namespace and DaemonSet of the observers, as they were before the deletion
        """
        if resources.namespace is not None and resources.whose == "own":
            found = find_object(self._cluster, "Namespace", "", self._namespace)
            # a namespace with another uid was made after the deletion
            if found is None or found["metadata"].get("uid") != resources.namespace["metadata"].get("uid"):
                return None
            why = parse.explain_remaining_namespace(found)
            return (
                f"the namespace {self._namespace}{f' ({why})' if why else ''}",
                f"kubectl get namespace {self._namespace} -o yaml",
            )
        every = self._cluster.list("Pod", self._namespace, SELECTOR, only=is_made_pod).items
        pods = [name_of(pod) for pod in every if core.parse_controller(pod) == ("DaemonSet", DAEMON_SET)]
        return (
            (
                f"pod {pods[0]} (one of {len(pods)} in {self._namespace})",
                f"kubectl get pods -n {self._namespace} -o wide",
            )
            if pods
            else None
        )


def describe_object(item: Resource, action: typing.Any, kind: str = "") -> AppliedObject:
    """Return the identity of an object (kind, name and namespace) with the action on it, for the list of changed
    objects.

    :param item: object as the API server returned it
    :param action: change of the object, such as ``created``, ``changed`` or ``unchanged``
    :param kind: kind of the object; empty if ``item`` contains it
    """
    metadata = item["metadata"]
    return AppliedObject(kind or item["kind"], metadata["name"], metadata.get("namespace", ""), action=action)
