# SPDX-License-Identifier: GPL-3.0-or-later

"""Creates and removes the observers: remove leftovers, apply the objects, and wait until each node has an observer or
cannot get one.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import typing

from ..._analysis.controllers.observers import Patience, judge
from ..._model.base.errors import RdmaError
from ..._model.base.marks import replace_labels
from ..._model.kubernetes.observers import Observer, ObserversFacts, Wanted
from ..._observe.kubernetes.apply import apply_all
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.outcome import FIELD_MANAGER, Outcome, strip_volatile
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of
from ..._parse.kubernetes.tenancy import describe_missing_part, list_strangers
from ..._render.cluster.names import RUN_LABEL, build_owner_label
from ..._render.cluster.observers import render_objects
from .observer_view import KINDS, MOST_EVENTS, SELECTOR, ObserverView, is_about_observers, seen_in
from .observers_namespace import (
    RIGHTS,
    ObserverResources,
    TakenNamespace,
    find_object,
    read_resources,
)
from .observers_removal import ObserversRemoval, describe_object
from .state_lines import StateLines
from .watch import Feed, WatchFeed, take_settled

Say = typing.Callable[[str], None]

#: seconds in which changes are gathered before they are judged
SETTLE = 0.2
#: seconds between two lines of progress after the first ones: each pod that starts changes their numbers
LINE_SECONDS = 5.0


class Observers:
    """A client that creates and removes the observers of one cluster. It changes objects in their namespace alone.

    The caller must hold the Lease of the cluster (_ansible/lease.py). Therefore no other run is active, and observers
    of another run are leftovers.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        limit: float,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
    ) -> None:
        """Create a client for the observers of one namespace; nothing is read or written yet.

        :param cluster: client of the API server
        :param namespace: namespace of the observers
        :param limit: maximum duration of each wait, in seconds
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param pause: function that sleeps for a number of seconds
        :param say: function that shows a line of progress to the user
        """
        self._cluster = cluster
        self._namespace = namespace
        self._limit = limit
        self._clock = clock
        self._pause = pause
        self._say = say
        self._removal = ObserversRemoval(cluster, namespace, limit, clock, pause)
        #: uid of the namespace that this call has made or claimed
        self._uid = ""

    def _read_resources(self) -> ObserverResources:
        return read_resources(self._cluster, self._namespace)

    def present(
        self,
        wanted: Wanted,
        mine: str,
        nodes: typing.Sequence[str],
        check_mode: bool,
        feed: typing.Optional[Feed] = None,
    ) -> tuple[tuple[Outcome, ...], ObserversFacts]:
        """Remove leftover observers of an earlier run, apply the new ones, and wait for them. A call that fails or is
        interrupted removes the objects that it has created.

        :param wanted: settings of the observers
        :param mine: id of this run; empty for a module that belongs to no run
        :param nodes: nodes that need an observer
        :param check_mode: whether nothing is changed. The changes are then predicted
        :param feed: source of changes; None: a watch of the API server
        :returns: the changes of objects, and the state of the observer of each node
        :raises RdmaError: the API server or a webhook refuses an object, the namespace is not for the observers, or the
            old observers cannot be removed
        """
        resources, swept = self._read_resources(), typing.cast(list[Outcome], [])
        definitions = render_objects(wanted, resources.whose == "prepared")
        why = self._why_sweep(resources, mine, definitions)
        if why:
            self._say(f"observers: cleaning up the namespace {self._namespace}: {why}")
            swept = self._removal.remove(resources, check_mode)
            resources = (
                dataclasses.replace(resources, daemon=None)
                if resources.whose == "prepared"
                else ObserverResources(None, "none")
            )
        if check_mode and swept:
            # the new objects cannot be judged while the old ones exist
            made = [Outcome(describe_object(item, "unjudged"), None, strip_volatile(item)) for item in definitions]
            return (*swept, *made), self._not_started(wanted, nodes)
        try:
            applied = self._apply_all(definitions, resources, check_mode)
            if check_mode and any(item.changed for item in applied):
                return applied, self._not_started(wanted, nodes)
            facts = (
                ObserversFacts(wanted.namespace, wanted.image, judge(nodes, seen_in(self._cluster, self._namespace)))
                if check_mode
                else self._wait(wanted, nodes, feed)
            )
        except BaseException:
            if not check_mode and resources.daemon is None:
                self._delete_created_objects()
            raise
        return (*swept, *applied), facts

    def _why_sweep(self, resources: ObserverResources, mine: str, definitions: typing.Sequence[Resource]) -> str:
        """Return the reason for removing the namespace of the observers before any object is created. Return an empty
        text if the namespace does not exist, was prepared by an admin, or can be used as it is.

        Labels do not prove that the collection created a namespace, because any client that creates one chooses its
        labels. A namespace with the label of the collection is reused only if the new definitions add nothing to its
        objects and no other subject has rights in it. Otherwise it is removed and created again.

        :param resources: existing namespace and DaemonSet of the observers
        :param mine: id of this run; empty for a module that belongs to no run
        :param definitions: objects that would be applied
        :raises ApiError: the API server refuses, or cannot be reached
        """
        if resources.going:
            return "the namespace is being deleted"
        if resources.run and resources.run != build_owner_label(mine).get(RUN_LABEL):
            return f"run {resources.run} left observers in the namespace"
        if resources.namespace is None or resources.whose != "own":
            return ""
        # kind after kind: a kind without a definition is not requested
        for definition in (item for item in definitions if item["kind"] in ("Namespace", "Role", "RoleBinding")):
            kind = definition["kind"]
            found = (
                resources.namespace
                if kind == "Namespace"
                else find_object(self._cluster, kind, self._namespace, name_of(definition))
            )
            added = describe_missing_part(found, definition, RUN_LABEL)
            if added:
                return f"this collection did not create the namespace or an object in it: {added}"
        ours_there = {name_of(item) for item in definitions if item["kind"] == "RoleBinding"}
        bindings = [
            item for item in self._cluster.list("RoleBinding", self._namespace).items if name_of(item) not in ours_there
        ]
        others = list_strangers(bindings, self._namespace)
        return f"other subjects have rights in the namespace: {'; '.join(others[:5])}" if others else ""

    def _apply_all(
        self, definitions: typing.Sequence[Resource], resources: ObserverResources, check_mode: bool
    ) -> tuple[Outcome, ...]:
        """Apply all definitions, and return the outcome of each object. The DaemonSet comes last, and is applied only
        if the namespace is still the one that this call has created or claimed.

        :param definitions: objects to apply, with the DaemonSet last
        :param resources: namespace and DaemonSet as they were before this call
        :param check_mode: whether nothing is changed
        :raises TakenNamespace: the namespace was replaced by another one of this name
        :raises RdmaError: the API server refuses an object
        """
        if check_mode and resources.namespace is None:
            return self._apply_definitions(definitions, check_mode)
        around = [
            self._claim_namespace(item, resources, check_mode) for item in definitions if item["kind"] == "Namespace"
        ]
        if resources.namespace is not None:
            self._uid = str(resources.namespace["metadata"].get("uid"))
        inside = [item for item in definitions if item["kind"] != "Namespace"]
        made = self._apply_definitions(inside[:-1], check_mode)
        if not check_mode:
            found = find_object(self._cluster, "Namespace", "", self._namespace)
            if found is None or found["metadata"].get("uid") != self._uid or found["metadata"].get("deletionTimestamp"):
                raise TakenNamespace(self._namespace)
        return (*around, *made, *self._apply_definitions(inside[-1:], check_mode))

    def _claim_namespace(self, definition: Resource, resources: ObserverResources, check_mode: bool) -> Outcome:
        """Create the namespace, or write the id of this run into the label of the existing one. Return the outcome.

        :param definition: the rendered Namespace
        :param resources: namespace and DaemonSet as they were before this call
        :param check_mode: whether an existing namespace is not changed
        :raises TakenNamespace: another client created or replaced the namespace
        :raises RdmaError: the API server refuses the namespace
        """
        try:
            if resources.namespace is None:
                made = {"kind": "Namespace", **self._cluster.create(definition, FIELD_MANAGER)}
                self._uid = str(made["metadata"].get("uid"))
                return Outcome(describe_object(made, "created"), None, strip_volatile(made))
            before = resources.namespace
            run = definition["metadata"]["labels"].get(RUN_LABEL)
            if (before["metadata"].get("labels") or {}).get(RUN_LABEL) == run:
                return Outcome(describe_object(before, "unchanged"), strip_volatile(before), strip_volatile(before))
            after = replace_labels(before, {**before["metadata"]["labels"], RUN_LABEL: run})
            if not check_mode:
                # with the uid the server refuses the change of another namespace of this name
                change = {"metadata": {"uid": before["metadata"]["uid"], "labels": {RUN_LABEL: run}}}
                after = {"kind": "Namespace", **self._cluster.patch("Namespace", "", self._namespace, change)}
            return Outcome(describe_object(before, "changed"), strip_volatile(before), strip_volatile(after))
        except ApiError as error:
            if error.status == 409:
                raise TakenNamespace(self._namespace) from error
            if error.status == 0:
                raise
            seen = f"the API server rejected the observers: Namespace {self._namespace}: {error.text}"
            raise RdmaError(
                seen, RIGHTS if error.status == 403 else "Correct the error in this message, then rerun"
            ) from error

    def _apply_definitions(self, definitions: typing.Iterable[Resource], check_mode: bool) -> tuple[Outcome, ...]:
        """Apply the definitions of the objects, and return the outcome of each of them.

        :param definitions: objects to apply
        :param check_mode: whether nothing is changed
        :raises RdmaError: the API server refuses an object
        """
        applied = apply_all(self._cluster, [("", item) for item in definitions], check_mode, self._clock, self._pause)
        refused = [item.applied for item in applied if item.applied.action == "refused"]
        if refused:
            words = "; ".join(f"{item.kind} {item.name}: {item.refusal}" for item in refused)
            forbidden = any(item.reason == "Forbidden" for item in refused)
            raise RdmaError(
                f"the API server rejected the observers: {words}",
                RIGHTS if forbidden else "Correct the error in this message, then rerun",
            )
        return applied

    def _delete_created_objects(self) -> None:
        """Begin the deletion of the objects that this call has created, without waiting for its end. Errors are
        ignored, because the run ends with another error.
        """
        with contextlib.suppress(RdmaError):
            resources = self._read_resources()
            if resources.namespace is None or resources.namespace["metadata"].get("uid") != self._uid:
                return
            self._removal.begin_deletion(resources)

    @staticmethod
    def _not_started(wanted: Wanted, nodes: typing.Iterable[str]) -> ObserversFacts:
        found = tuple(
            Observer(node, "waiting", "check_mode", "no observer is started in check mode", "Rerun without --check")
            for node in nodes
        )
        return ObserversFacts(wanted.namespace, wanted.image, found)

    def absent(self, check_mode: bool) -> tuple[Outcome, ...]:
        """Remove the observers, whichever run created them, and wait until they are gone. Return the outcome of each
        object.

        :param check_mode: whether nothing is deleted
        :raises RdmaError: the namespace is not for the observers, or is not removed in time
        :raises NamespaceStays: the namespace contains objects of other users
        """
        return tuple(self._removal.remove(self._read_resources(), check_mode))

    def _wait(self, wanted: Wanted, nodes: typing.Sequence[str], feed: typing.Optional[Feed]) -> ObserversFacts:
        """Wait until each node has an observer, or cannot get one, or the limit is reached. Return the state of all
        observers.

        :param wanted: settings of the observers
        :param nodes: names of the nodes
        :param feed: source of changes; None: a watch of the API server
        """
        if feed is not None:
            return self._follow(feed, wanted, nodes)
        in_namespace = {kind: self._namespace for kind in KINDS if kind != "Node"}
        only, most = {"Pod": is_made_pod, "Event": is_about_observers}, {"Event": MOST_EVENTS}
        watch = WatchFeed(self._cluster, in_namespace, KINDS, selectors={"Pod": SELECTOR}, only=only, most=most)
        watch.start()
        try:
            return self._follow(watch, wanted, nodes)
        finally:
            watch.stop()

    def _follow(self, feed: Feed, wanted: Wanted, nodes: typing.Sequence[str]) -> ObserversFacts:
        start, view, patience = self._clock(), ObserverView(self._namespace), Patience()
        lines = StateLines(self._say, LINE_SECONDS)
        while True:
            now = self._clock()
            observers: tuple[Observer, ...] = ()
            text = ""
            if view.complete:
                observers = patience.apply(judge(nodes, view.seen()), now)
                text = summarize_observers(observers)
                if view.dropped:
                    text += f"; {view.dropped} Events were ignored, because there are more than {MOST_EVENTS}"
            finished = view.complete and all(item.phase != "waiting" for item in observers)
            ends = finished or now - start >= self._limit
            if text:
                lines.tell("", text, now - start, ends)
            if ends:
                return ObserversFacts(
                    wanted.namespace,
                    wanted.image,
                    observers or _judge_unseen(nodes, view),
                    not finished,
                    round(now - start, 1),
                )
            pauses = [pause for pause in (patience.wake(now), start + self._limit - now) if pause is not None]
            first = feed.get(max(0.0, min(pauses)))
            for change in take_settled(feed, first, SETTLE, self._clock):
                if change.action == "replace":
                    view.replace(change.kind, change.items)
                elif change.action == "error":
                    view.fail(change.kind, change.error)
                else:
                    view.change(change.kind, change.items, change.action == "drop")


def summarize_observers(observers: typing.Sequence[Observer]) -> str:
    """Return one line about the observers: the number of nodes with an observer, and for each reason the number of
    nodes without an observer, with the detail of the first of these nodes.

    :param observers: state of the observer on each node
    """
    reasons = collections.Counter(item.reason for item in observers if item.phase != "ready")
    words = {item.reason: " ".join(item.detail.split()) for item in reversed(observers)}
    ready = sum(item.phase == "ready" for item in observers)
    told = [f"{number} {reason} ({words[reason][:160]})" for reason, number in sorted(reasons.items())]
    return "; ".join([f"{ready} of {len(observers)} nodes have an observer", *told])


def _judge_unseen(nodes: typing.Iterable[str], view: ObserverView) -> tuple[Observer, ...]:
    """Return the observers of the nodes after a wait that ended before the API server had answered for all kinds of
    objects. A node without a ready observer gets the missing answer as the reason.

    :param nodes: names of the nodes
    :param view: state of the observers, as far as it was received
    """
    return judge(
        nodes, dataclasses.replace(view.seen(), unread=view.seen().unread or ("the API server did not respond",))
    )
