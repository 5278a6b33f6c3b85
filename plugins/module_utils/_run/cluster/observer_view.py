# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the observers, read from objects of the API: the DaemonSet, its pods, the nodes, and their Events."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.controllers.observers import explain_absence, judge
from ..._model.base.errors import RdmaError
from ..._model.kubernetes.objects import Container
from ..._model.kubernetes.observers import (
    DAEMON_SET,
    ClusterEvent,
    ObserversSeen,
)
from ..._observe.kubernetes.answers import Choice
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core
from ..._parse.kubernetes import observers as parse
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of
from ..._render.cluster.observers import POD_LABELS

#: kinds that the wait reads; Events may be unreadable
KINDS = ("DaemonSet", "Pod", "Node", "Event")
SELECTOR = ",".join(f"{key}={value}" for key, value in POD_LABELS.items())
#: Events that are listed and kept, and of them those of one object: a kubelet can write any number of them
MOST_EVENTS, MOST_OF_OBJECT = 20_000, 2_000


def is_about_observers(event: Resource) -> bool:
    """Return whether the name of an Event begins with that of the DaemonSet, so that the Event may be about the
    DaemonSet or its pods [client-go tools/record/event.go, makeEvent]. Other Events are not kept, because a kubelet can
    write any number of them.
    """
    return name_of(event).startswith(DAEMON_SET)


class _Listed:
    """A filter for a list of Events, which is called with an Event and returns whether to keep it. It limits the number
    of Events of each object.

    The limits are needed because the API server lists Events by their names, and a kubelet can write any number of them
    under any name. But the name of an Event begins with that of its object, and a kubelet does not know the names of
    pods on other nodes.

    :param objects: names of the DaemonSet and its pods. Events of all other objects together may be half of the limit
    """

    def __init__(self, objects: typing.Collection[str]) -> None:
        self._objects = objects
        self._numbers: collections.Counter[str] = collections.Counter()

    def __call__(self, event: Resource) -> bool:
        if not is_about_observers(event):
            return False
        name = name_of(event).rpartition(".")[0]
        about = name if name in self._objects else ""
        self._numbers[about] += 1
        most = min(MOST_OF_OBJECT, max(4, MOST_EVENTS // (2 * len(self._objects)))) if about else MOST_EVENTS // 2
        return self._numbers[about] <= most


def seen_in(cluster: Cluster, namespace: str) -> ObserversSeen:
    """Return the state of the observers in a namespace, read once without a watch. If the API server refuses to list a
    kind, the result has the error of this kind, except for Events.

    :raises ApiError: the API server cannot be reached
    """
    view = ObserverView(namespace)
    for kind in KINDS:
        try:
            where = ("" if kind == "Node" else namespace, SELECTOR if kind == "Pod" else "")
            choices: dict[str, Choice] = {"Pod": is_made_pod, "Event": _Listed(view.names)}
            only = choices.get(kind)
            most = MOST_EVENTS if kind == "Event" else 0
            view.replace(kind, cluster.list(kind, *where, most=most, only=only).items)
        except ApiError as error:
            if error.status == 0:
                raise
            view.fail(kind, str(error))
    return view.seen()


def container_on(cluster: Cluster, namespace: str, node: str) -> Container:
    """Return the container of the observer of a node. An observer is a ready pod that the DaemonSet controls. Labels
    are not sufficient, because a tenant or a kubelet may have given them to another pod.

    :param namespace: namespace of the observers
    :param node: name of the node
    :raises RdmaError: the node has no observer; the error contains the reason
    :raises ApiError: the API server refuses, or cannot be reached
    """
    daemons = map(parse.observer_set, cluster.list("DaemonSet", namespace, fields=f"metadata.name={DAEMON_SET}").items)
    daemon = next((daemon for daemon in daemons if daemon.name == DAEMON_SET), None)
    there = cluster.list("Pod", namespace, SELECTOR, f"spec.nodeName={node}", only=is_made_pod)
    found = map(parse.observer_pod, there.items)
    pod = next(
        (
            pod
            for pod in found
            if daemon is not None and daemon.is_controller_of(pod) and pod.phase == "ready" and not pod.deleting
        ),
        None,
    )
    if pod is not None:
        return Container(namespace, pod.name, pod.container)
    (observer,) = judge([node], seen_in(cluster, namespace))
    if observer.phase == "ready":
        # it became ready between the two reads
        observer = dataclasses.replace(observer, reason="starting", detail="its pod has just become ready")
    raise RdmaError(explain_absence(observer), observer.remedy)


class ObserverView:
    """The latest state of all objects that concern the observers. Each object is parsed once.

    :ivar dropped: number of Events that were dropped because there are too many
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._parsed: dict[str, dict[str, typing.Any]] = {}
        self._errors: dict[str, str] = {}
        #: number of Events that were left out
        self.dropped = 0
        self._parsers: dict[str, typing.Callable[[Resource], typing.Any]] = {
            "DaemonSet": parse.observer_set,
            "Pod": parse.observer_pod,
            "Node": core.parse_node,
            "Event": parse.parse_event,
        }

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the DaemonSet of the observers and of its pods."""
        return frozenset((DAEMON_SET, *self._parsed.get("Pod", {})))

    @property
    def complete(self) -> bool:
        """Return whether the API server has answered for each kind at least once, with objects or with an error."""
        return set(self._parsed) | set(self._errors) >= set(KINDS)

    def replace(self, kind: str, items: typing.Iterable[Resource]) -> None:
        """Replace all known objects of a kind with the objects that were just listed.

        :param kind: kind of the objects
        :param items: objects as the API server sends them
        """
        self._parsed[kind] = {}
        self._errors.pop(kind, None)
        self.change(kind, items, False)

    def change(self, kind: str, items: typing.Iterable[Resource], gone: bool) -> None:
        """Add or update objects of a kind, or remove them. If there are more than ``MOST_EVENTS`` Events, some are
        dropped.

        :param kind: kind of the objects
        :param items: objects as the API server sends them
        :param gone: whether the objects were deleted
        """
        known = self._parsed.setdefault(kind, {})
        self._errors.pop(kind, None)
        for item in items:
            if gone:
                known.pop(name_of(item), None)
            else:
                known[name_of(item)] = self._parsers[kind](item)
        if kind == "Event" and len(known) > MOST_EVENTS:
            self._parsed[kind] = self._select_events(known)
            self.dropped += len(known) - len(self._parsed[kind])

    def _select_events(self, events: typing.Mapping[str, ClusterEvent]) -> dict[str, ClusterEvent]:
        """Return at most half of ``MOST_EVENTS`` of the Events, by name. Events of the observers and their DaemonSet
        come before all others, and newer ones before older ones. At most ``MOST_OF_OBJECT`` Events of each object are
        returned.

        :param events: Events by name
        """
        seen, kept = self.seen(), typing.cast(dict[str, ClusterEvent], {})
        ours = {pod.uid for pod in seen.pods} | ({seen.daemon.uid} if seen.daemon is not None else set())
        numbers: collections.Counter[str] = collections.Counter()
        for name, event in sorted(events.items(), key=lambda one: (one[1].uid in ours, one[1].time), reverse=True):
            numbers[event.uid] += 1
            if numbers[event.uid] <= MOST_OF_OBJECT and len(kept) < MOST_EVENTS // 2:
                kept[name] = event
        return kept

    def fail(self, kind: str, error: str) -> None:
        """Record that a kind cannot be read. The objects that were read before stay valid, because the API server may
        only be temporarily unreachable.

        :param kind: kind that cannot be read
        :param error: reason as text
        """
        self._errors[kind] = error

    def seen(self) -> ObserversSeen:
        """Return the current state of the observers, with the errors of those kinds that were never read. An error of
        Events is left out, because Events only serve as explanations.
        """
        return ObserversSeen(
            self._namespace,
            self._parsed.get("DaemonSet", {}).get(DAEMON_SET),
            tuple(self._parsed.get("Pod", {}).values()),
            self._parsed.get("Node", {}),
            tuple(self._parsed.get("Event", {}).values()),
            # events only explain
            tuple(error for kind, error in self._errors.items() if kind != "Event" and kind not in self._parsed),
        )
