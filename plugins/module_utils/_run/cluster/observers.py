# SPDX-License-Identifier: GPL-3.0-or-later

"""Observers come and go: leftovers are swept, the objects applied, and each node awaited until it has one or cannot
have one."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import typing

from ..._analysis.controllers.observers import Patience, absence, judge, selected
from ..._model.base.errors import RdmaError
from ..._model.kubernetes.apply import AppliedObject
from ..._model.kubernetes.objects import Container
from ..._model.kubernetes.observers import (
    DAEMON_SET,
    LABEL,
    PREPARED,
    ClusterEvent,
    Observer,
    ObserversFacts,
    ObserversSeen,
    Wanted,
)
from ..._observe.kubernetes.apply import Outcome, apply_all, ours, stable
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.foreign import Kept, objects_of_others
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes import core
from ..._parse.kubernetes import observers as parse
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of
from ..._parse.kubernetes.tenancy import adds_to, strangers
from ..._render.cluster.names import RUN_LABEL, owner
from ..._render.cluster.observers import POD_LABELS, objects
from .finalizers import FinalizerSweep, end_mirror_pods, take_off
from .watch import Feed, WatchFeed

Say = typing.Callable[[str], None]

#: what the wait looks at; without the events it goes on
KINDS = ("DaemonSet", "Pod", "Node", "Event")
SELECTOR = ",".join(f"{key}={value}" for key, value in POD_LABELS.items())
#: Events that are listed and kept, and of them those of one object: any kubelet writes as many as it likes
MOST_EVENTS, MOST_OF_OBJECT = 20_000, 2_000
#: seconds between two looks at what is to go; for which news is gathered before it is judged
LOOK, SETTLE = 1.0, 0.2
#: whom to ask for what the user may not do
RIGHTS = (
    "Have an admin of the cluster prepare the namespace: kubectl apply -f docs/rbac/observers.yml; docs/observers.md"
    " says what that gives"
)


class ForeignNamespace(RdmaError):
    """A namespace of the observers' name is somebody else's."""

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} is there, and not the collection's: it has no label {LABEL}. Nothing was"
            " changed"
        )
        remedy = (
            f"Give the observers another namespace; or, if it is for them: kubectl label namespace {namespace}"
            f" {LABEL}={PREPARED}"
        )
        super().__init__(seen, remedy)


class TakenNamespace(RdmaError):
    """Somebody else made a namespace of the observers' name while a run was about to."""

    def __init__(self, namespace: str) -> None:
        seen = (
            f"the namespace {namespace} is not the one that this run made or looked at: somebody else made one since."
            " No observer was started in it"
        )
        remedy = (
            f"See who made it: kubectl get namespace {namespace} -o yaml; kubectl get rolebindings -n {namespace} -o"
            " wide. Delete it and run again; or have an admin prepare it: kubectl apply -f docs/rbac/observers.yml"
        )
        super().__init__(seen, remedy)


@dataclasses.dataclass(frozen=True)
class Stand:
    """What there is before anything is changed.

    :ivar namespace: None when it is not there
    :ivar whose: of the namespace; ``none`` when it is not there
    :ivar run: that owns the observers; empty: nobody's
    :ivar daemon: None when it is not there
    """

    namespace: typing.Optional[Resource]
    whose: typing.Literal["own", "prepared", "none"]
    run: str = ""
    daemon: typing.Optional[Resource] = None

    @property
    def going(self) -> bool:
        """Whether the namespace is being deleted."""
        return bool(self.namespace is not None and self.namespace["metadata"].get("deletionTimestamp"))


class NamespaceStays(RdmaError):
    """The namespace of the observers has objects that the collection did not make, or nobody knows."""

    def __init__(self, namespace: str, kept: Kept) -> None:
        right = (
            "Give the user of the kubeconfig the right to list all resources in this namespace. " if kept.unread else ""
        )
        remedy = f"{right}Move or delete what others have there, then delete it: kubectl delete namespace {namespace}"
        super().__init__(f"the observers are gone, and their namespace {namespace} stays: {kept}", remedy)


class Observers:
    """Works on the observers of one cluster, in their namespace alone.

    Whoever changes them holds the Lease of the cluster (_ansible/lease.py). So no other run is alive, and the observers
    of others are those of dead ones.
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
        """:param limit: seconds, of each wait"""
        self._cluster = cluster
        self._namespace = namespace
        self._limit = limit
        self._clock = clock
        self._pause = pause
        self._say = say
        #: uid of the namespace that this call has made, or has taken as it is
        self._uid = ""

    def look(self) -> Stand:
        """What there is.

        :raises ForeignNamespace: the namespace is somebody else's
        :raises ApiError: the server cannot be reached, or does not let us read
        """
        namespace = self._find("Namespace", "", self._namespace)
        if namespace is None:
            return Stand(None, "none")
        whose, run = parse.owned_namespace(namespace)
        if whose == "foreign":
            raise ForeignNamespace(self._namespace)
        daemon = self._find("DaemonSet", self._namespace, DAEMON_SET)
        if daemon is not None and whose == "prepared":
            run = parse.observer_set(daemon).run
        return Stand(namespace, whose, run, daemon)

    def present(
        self,
        wanted: Wanted,
        mine: str,
        nodes: typing.Sequence[str],
        check_mode: bool,
        feed: typing.Optional[Feed] = None,
    ) -> tuple[tuple[Outcome, ...], ObserversFacts]:
        """Sweep what a dead run has left, apply what is asked for, and wait. Whoever is refused or interrupted leaves
        nothing that was not there.

        :param mine: identity of this run; empty for a module that belongs to none
        :param nodes: that are to have one
        :param feed: of a test
        :raises RdmaError: the API server or a webhook refuses an object, the namespace is somebody else's, or what is
            left does not go
        """
        stand, swept = self.look(), typing.cast(list[Outcome], [])
        definitions = objects(wanted, stand.whose == "prepared")
        why = self._why_sweep(stand, mine, definitions)
        if why:
            self._say(f"observers: sweeping the namespace {self._namespace}: {why}")
            swept = self._remove(stand, check_mode)
            stand = dataclasses.replace(stand, daemon=None) if stand.whose == "prepared" else Stand(None, "none")
        if check_mode and swept:
            # nobody can judge what comes in the place of what is still there
            made = [Outcome(_applied(item, "unjudged"), None, stable(item)) for item in definitions]
            return (*swept, *made), self._not_started(wanted, nodes)
        try:
            applied = self._apply(definitions, stand, check_mode)
            if check_mode and any(item.changed for item in applied):
                return applied, self._not_started(wanted, nodes)
            facts = (
                ObserversFacts(wanted.namespace, wanted.image, judge(nodes, seen_in(self._cluster, self._namespace)))
                if check_mode
                else self._wait(wanted, nodes, feed)
            )
        except BaseException:
            if not check_mode and stand.daemon is None:
                self._undo()
            raise
        return (*swept, *applied), facts

    def _why_sweep(self, stand: Stand, mine: str, definitions: typing.Sequence[Resource]) -> str:
        """Why what is there is removed before anything is made; empty where there is nothing, or it is used as it is.

        Labels are no proof: whoever makes a namespace chooses them. A namespace of ours that is there is used where
        that gives it nothing that it has not already, and nobody else has rights in it. Else it is removed, and made
        anew.
        """
        if stand.going:
            return "it is being deleted"
        if stand.run and stand.run != owner(mine).get(RUN_LABEL):
            return f"run {stand.run} has left observers in it"
        if stand.namespace is None or stand.whose != "own":
            return ""
        # one at a time: a kind of which there is none is not asked for
        for definition in (item for item in definitions if item["kind"] in ("Namespace", "Role", "RoleBinding")):
            kind = definition["kind"]
            found = stand.namespace if kind == "Namespace" else self._find(kind, self._namespace, name_of(definition))
            added = adds_to(found, definition, RUN_LABEL)
            if added:
                return f"the collection did not make it: {added}"
        ours_there = {name_of(item) for item in definitions if item["kind"] == "RoleBinding"}
        bindings = [
            item for item in self._cluster.list("RoleBinding", self._namespace).items if name_of(item) not in ours_there
        ]
        others = strangers(bindings, self._namespace)
        return f"others have rights in it: {'; '.join(others[:5])}" if others else ""

    def _apply(self, definitions: typing.Sequence[Resource], stand: Stand, check_mode: bool) -> tuple[Outcome, ...]:
        """The DaemonSet last, and only in the namespace that this call has made or taken.

        :raises TakenNamespace: it is another one
        """
        if check_mode and stand.namespace is None:
            return self._accepted(definitions, check_mode)
        around = [self._hold(item, stand, check_mode) for item in definitions if item["kind"] == "Namespace"]
        if stand.namespace is not None:
            self._uid = str(stand.namespace["metadata"].get("uid"))
        inside = [item for item in definitions if item["kind"] != "Namespace"]
        made = self._accepted(inside[:-1], check_mode)
        if not check_mode:
            found = self._find("Namespace", "", self._namespace)
            if found is None or found["metadata"].get("uid") != self._uid or found["metadata"].get("deletionTimestamp"):
                raise TakenNamespace(self._namespace)
        return (*around, *made, *self._accepted(inside[-1:], check_mode))

    def _hold(self, definition: Resource, stand: Stand, check_mode: bool) -> Outcome:
        """Make the namespace, which fails where there is one; or write into the own one that is there which run owns
        it.

        :raises TakenNamespace: somebody made one, or made it anew
        """
        try:
            if stand.namespace is None:
                made = {"kind": "Namespace", **self._cluster.create(definition)}
                self._uid = str(made["metadata"].get("uid"))
                return Outcome(_applied(made, "created"), None, stable(made))
            before = stand.namespace
            run = definition["metadata"]["labels"].get(RUN_LABEL)
            if (before["metadata"].get("labels") or {}).get(RUN_LABEL) == run:
                return Outcome(_applied(before, "unchanged"), stable(before), stable(before))
            after = {
                **before,
                "metadata": {**before["metadata"], "labels": {**before["metadata"]["labels"], RUN_LABEL: run}},
            }
            if not check_mode:
                # the uid has the server refuse it for another namespace of this name
                change = {"metadata": {"uid": before["metadata"]["uid"], "labels": {RUN_LABEL: run}}}
                after = {"kind": "Namespace", **self._cluster.patch("Namespace", "", self._namespace, change)}
            return Outcome(_applied(before, "changed"), stable(before), stable(after))
        except ApiError as error:
            if error.status == 409:
                raise TakenNamespace(self._namespace) from error
            if error.status == 0:
                raise
            seen = f"the API server refuses the observers: Namespace {self._namespace}: {error.text}"
            raise RdmaError(
                seen, RIGHTS if error.status == 403 else "Correct what it names, and run the task again"
            ) from error

    def _accepted(self, definitions: typing.Iterable[Resource], check_mode: bool) -> tuple[Outcome, ...]:
        """:raises RdmaError: the API server refuses one"""
        applied = apply_all(self._cluster, [("", item) for item in definitions], check_mode, self._clock, self._pause)
        refused = [item.applied for item in applied if item.applied.action == "refused"]
        if refused:
            words = "; ".join(f"{item.kind} {item.name}: {item.refusal}" for item in refused)
            forbidden = any(item.reason == "Forbidden" for item in refused)
            raise RdmaError(
                f"the API server refuses the observers: {words}",
                RIGHTS if forbidden else "Correct what it names, and run the task again",
            )
        return applied

    def _undo(self) -> None:
        """Ask for the deletion of what this call has made, and wait for nothing: the run is at its end."""
        with contextlib.suppress(RdmaError):
            stand = self.look()
            if stand.namespace is None or stand.namespace["metadata"].get("uid") != self._uid:
                return
            if self._kept(stand, 0.0) is not None:
                stand = dataclasses.replace(stand, whose="prepared")
            for kind, namespace, found in self._removable(stand):
                self._cluster.delete(kind, namespace, name_of(found), only={"uid": found["metadata"]["uid"]})

    @staticmethod
    def _not_started(wanted: Wanted, nodes: typing.Iterable[str]) -> ObserversFacts:
        found = tuple(
            Observer(node, "waiting", "check_mode", "in check mode no observer is started", "Run without --check")
            for node in nodes
        )
        return ObserversFacts(wanted.namespace, wanted.image, found)

    def absent(self, check_mode: bool) -> tuple[Outcome, ...]:
        """Remove them, whosever they are, and wait until they are gone.

        :raises RdmaError: the namespace is somebody else's, or does not go
        """
        return tuple(self._remove(self.look(), check_mode))

    def _wait(self, wanted: Wanted, nodes: typing.Sequence[str], feed: typing.Optional[Feed]) -> ObserversFacts:
        """Until each node has an observer, or waiting does not help those any more that have none."""
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
        start, view, patience, told = self._clock(), _View(self._namespace), Patience(), ""
        while True:
            now = self._clock()
            observers: tuple[Observer, ...] = ()
            if view.complete:
                observers = patience.apply(judge(nodes, view.seen()), now)
                text = tally(observers)
                if view.dropped:
                    text += f"; Events left out, since there are more than {MOST_EVENTS}: {view.dropped}"
                if text != told:
                    told = text
                    self._say(f"{now - start:5.0f} s  {text}")
            finished = view.complete and all(item.phase != "waiting" for item in observers)
            if finished or now - start >= self._limit:
                return ObserversFacts(
                    wanted.namespace,
                    wanted.image,
                    observers or _unseen(nodes, view),
                    not finished,
                    round(now - start, 1),
                )
            pauses = [pause for pause in (patience.wake(now), start + self._limit - now) if pause is not None]
            change = feed.get(max(0.0, min(pauses)))
            settled = self._clock() + SETTLE
            while change is not None:
                if change.action == "replace":
                    view.replace(change.kind, change.items)
                elif change.action == "error":
                    view.fail(change.kind, change.error)
                else:
                    view.change(change.kind, change.items, change.action == "drop")
                change = feed.get(max(0.0, settled - self._clock()))

    def _remove(self, stand: Stand, check_mode: bool) -> list[Outcome]:
        """:raises NamespaceStays: objects of others are in it. The observers are gone all the same"""
        outcomes = []
        kept = None if check_mode else self._kept(stand, self._limit)
        stand = dataclasses.replace(stand, whose="prepared") if kept is not None else stand
        for kind, namespace, found in self._removable(stand):
            there = self._cluster.delete(
                kind, namespace, name_of(found), dry_run=check_mode, only={"uid": found["metadata"]["uid"]}
            )
            outcomes.append(Outcome(_applied(found, "deleted" if there else "absent", kind), stable(found)))
        if outcomes and not check_mode:
            self._await_gone(stand)
        if kept is not None:
            raise NamespaceStays(self._namespace, kept)
        return outcomes

    def _kept(self, stand: Stand, limit: float) -> typing.Optional[Kept]:
        """What keeps a namespace of ours; None where nothing does, and where it is deleted already."""
        if stand.namespace is None or stand.whose != "own" or stand.going:
            return None
        return objects_of_others(self._cluster, self._namespace, limit, self._clock, self._pause)

    def _removable(self, stand: Stand) -> typing.Iterator[tuple[str, str, Resource]]:
        """What goes: the namespace with all that is in it, or in one that an admin has prepared what the collection has
        made there."""
        if stand.namespace is not None and stand.whose == "own":
            yield "Namespace", "", stand.namespace
        elif stand.namespace is not None:
            account = self._find("ServiceAccount", self._namespace, DAEMON_SET)
            for kind, found in (("DaemonSet", stand.daemon), ("ServiceAccount", account)):
                if found is not None and ours(found):
                    yield kind, self._namespace, found

    def _await_gone(self, stand: Stand) -> None:
        """:raises RdmaError: it is still there"""
        daemon = stand.daemon["metadata"].get("uid") if stand.daemon is not None else None

        def made(pod: Resource) -> bool:
            if daemon is None:
                return stand.whose == "own" and core.controller(pod) == ("DaemonSet", DAEMON_SET)
            return core.controller_uid(pod) == str(daemon)

        end = self._clock() + self._limit
        works: list[typing.Callable[[], object]] = [lambda: take_off(self._cluster, self._namespace, SELECTOR, made)]
        if stand.namespace is not None and stand.whose == "own":
            works.append(lambda: end_mirror_pods(self._cluster, self._namespace))
        sweep = FinalizerSweep(self._clock, *works)
        while True:
            sweep.look()
            left = self._left_over(stand)
            if left is None:
                return
            if self._clock() >= end:
                what, show = left
                raise RdmaError(
                    f"{what} is still there {self._limit:.0f} s after its deletion", f"See what keeps it: {show}"
                )
            self._pause(LOOK)

    def _left_over(self, stand: Stand) -> typing.Optional[tuple[str, str]]:
        """What is still there, and the command that shows it."""
        if stand.namespace is not None and stand.whose == "own":
            found = self._find("Namespace", "", self._namespace)
            # another one of its name is not what was deleted
            if found is None or found["metadata"].get("uid") != stand.namespace["metadata"].get("uid"):
                return None
            why = parse.holds_back(found)
            return (
                f"the namespace {self._namespace}{f' ({why})' if why else ''}",
                f"kubectl get namespace {self._namespace} -o yaml",
            )
        every = self._cluster.list("Pod", self._namespace, SELECTOR, only=is_made_pod).items
        pods = [name_of(pod) for pod in every if core.controller(pod) == ("DaemonSet", DAEMON_SET)]
        return (
            (f"pod {pods[0]}, of {len(pods)} in {self._namespace},", f"kubectl get pods -n {self._namespace} -o wide")
            if pods
            else None
        )

    def _find(self, kind: str, namespace: str, name: str) -> typing.Optional[Resource]:
        try:
            return {"kind": kind, **self._cluster.get(kind, namespace, name)}
        except ApiError as error:
            if error.absent:
                return None
            raise


def nodes_to_observe(cluster: Cluster, wanted: Wanted) -> tuple[str, ...]:
    """The nodes that are asked for by name, else all that the selector takes.

    :raises RdmaError: it takes none, or the server does not tell
    """
    found = wanted.nodes or selected(map(core.node, cluster.list("Node").items), wanted.node_selector)
    if not found:
        labels = ", ".join(f"{key}={value}" for key, value in wanted.node_selector.items()) or "kubernetes.io/os=linux"
        raise RdmaError(
            f"no node of the cluster has the label {labels}",
            "Correct the node selector; kubectl get nodes --show-labels lists what there is",
        )
    return found


def is_about_observers(event: Resource) -> bool:
    """Return whether an Event may be about the DaemonSet or its pods: its name begins with theirs [client-go
    tools/record/event.go, makeEvent]. Others, of which any kubelet writes as many as it likes, are not held."""
    return name_of(event).startswith(DAEMON_SET)


def seen_in(cluster: Cluster, namespace: str) -> ObserversSeen:
    """One look, for whoever does not wait.

    :raises ApiError: the server cannot be reached
    """
    view = _View(namespace)
    for kind in KINDS:
        try:
            where = ("" if kind == "Node" else namespace, SELECTOR if kind == "Pod" else "")
            only = {"Pod": is_made_pod, "Event": is_about_observers}.get(kind)
            most = MOST_EVENTS if kind == "Event" else 0
            view.replace(kind, cluster.list(kind, *where, most=most, only=only).items)
        except ApiError as error:
            if error.status == 0:
                raise
            view.fail(kind, str(error))
    return view.seen()


def container_on(cluster: Cluster, namespace: str, node: str) -> Container:
    """The observer of a node, as it is now: a pod that the DaemonSet controls. A tenant or a kubelet may have given
    another pod its labels.

    :raises RdmaError: it has none, and why
    """
    daemons = map(parse.observer_set, cluster.list("DaemonSet", namespace, fields=f"metadata.name={DAEMON_SET}").items)
    daemon = next((daemon for daemon in daemons if daemon.name == DAEMON_SET), None)
    there = cluster.list("Pod", namespace, SELECTOR, f"spec.nodeName={node}", only=is_made_pod)
    found = map(parse.observer_pod, there.items)
    pod = next(
        (
            pod
            for pod in found
            if daemon is not None and daemon.controls(pod) and pod.phase == "ready" and not pod.deleting
        ),
        None,
    )
    if pod is not None:
        return Container(namespace, pod.name, pod.container)
    (observer,) = judge([node], seen_in(cluster, namespace))
    if observer.phase == "ready":
        # between the two looks
        observer = dataclasses.replace(observer, reason="starting", detail="its pod has just become ready")
    raise RdmaError(absence(observer), observer.remedy)


def own_image(cluster: Cluster, openshift: bool) -> str:
    """The cluster's own image of tools, with its digest: OpenShift has it in every release, and on every mirror of one.

    :raises RdmaError: it is not there, or may not be read
    """
    remedy = (
        "Build the image of docs/observers.md, and name it with its digest: -e"
        " rdma_observers_image=registry.example/rdma-tools@sha256:<digest>"
    )
    if not openshift:
        raise RdmaError(
            "rdma_observers_image is not set, and the cluster is no OpenShift, which has an image of its own", remedy
        )
    try:
        return parse.image_of_tag(cluster.get("ImageStreamTag", "openshift", "tools:latest"))
    except ApiError as error:
        if error.status == 0:
            raise
        raise RdmaError(f"the cluster's own image is not known: {error.seen}", remedy) from error


def tally(observers: typing.Sequence[Observer]) -> str:
    """How all stand, in a line: how many have one, and for each reason how many have none, with the words of the first
    one."""
    reasons = collections.Counter(item.reason for item in observers if item.phase != "ready")
    words = {item.reason: " ".join(item.detail.split()) for item in reversed(observers)}
    ready = sum(item.phase == "ready" for item in observers)
    told = [f"{number} {reason} ({words[reason][:160]})" for reason, number in sorted(reasons.items())]
    return "; ".join([f"{ready} of {len(observers)} nodes have an observer", *told])


def _applied(item: Resource, action: typing.Any, kind: str = "") -> AppliedObject:
    metadata = item["metadata"]
    return AppliedObject(kind or item["kind"], metadata["name"], metadata.get("namespace", ""), action=action)


def _unseen(nodes: typing.Iterable[str], view: _View) -> tuple[Observer, ...]:
    """Of a wait that ended before there was anything to judge."""
    return judge(
        nodes, dataclasses.replace(view.seen(), unread=view.seen().unread or ("the API server gave no answer",))
    )


class _View:
    """What is known by now, read from the API's objects once each."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._parsed: dict[str, dict[str, typing.Any]] = {}
        self._errors: dict[str, str] = {}
        #: Events that are kept no longer
        self.dropped = 0
        self._parsers: dict[str, typing.Callable[[Resource], typing.Any]] = {
            "DaemonSet": parse.observer_set,
            "Pod": parse.observer_pod,
            "Node": core.node,
            "Event": parse.event,
        }

    @property
    def complete(self) -> bool:
        """Whether each kind was read, or cannot be."""
        return set(self._parsed) | set(self._errors) >= set(KINDS)

    def replace(self, kind: str, items: typing.Iterable[Resource]) -> None:
        self._parsed[kind] = {}
        self._errors.pop(kind, None)
        self.change(kind, items, False)

    def change(self, kind: str, items: typing.Iterable[Resource], gone: bool) -> None:
        known = self._parsed.setdefault(kind, {})
        self._errors.pop(kind, None)
        for item in items:
            if gone:
                known.pop(name_of(item), None)
            else:
                known[name_of(item)] = self._parsers[kind](item)
        if kind == "Event" and len(known) > MOST_EVENTS:
            self._parsed[kind] = self._telling(known)
            self.dropped += len(known) - len(self._parsed[kind])

    def _telling(self, events: typing.Mapping[str, ClusterEvent]) -> dict[str, ClusterEvent]:
        """The half of the Events that tells most: those of the observers and their DaemonSet before all others, of each
        object so many, and the newest."""
        seen, kept = self.seen(), typing.cast(dict[str, ClusterEvent], {})
        ours = {pod.uid for pod in seen.pods} | ({seen.daemon.uid} if seen.daemon is not None else set())
        numbers: collections.Counter[str] = collections.Counter()
        for name, event in sorted(events.items(), key=lambda one: (one[1].uid in ours, one[1].time), reverse=True):
            numbers[event.uid] += 1
            if numbers[event.uid] <= MOST_OF_OBJECT and len(kept) < MOST_EVENTS // 2:
                kept[name] = event
        return kept

    def fail(self, kind: str, error: str) -> None:
        """What was known stays, and counts: an API server that is away for a moment has changed nothing."""
        self._errors[kind] = error

    def seen(self) -> ObserversSeen:
        return ObserversSeen(
            self._namespace,
            self._parsed.get("DaemonSet", {}).get(DAEMON_SET),
            tuple(self._parsed.get("Pod", {}).values()),
            self._parsed.get("Node", {}),
            tuple(self._parsed.get("Event", {}).values()),
            # events only explain
            tuple(error for kind, error in self._errors.items() if kind != "Event" and kind not in self._parsed),
        )
