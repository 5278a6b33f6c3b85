# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports changes of objects by one list and one watch for each kind, each kind in its own thread. Watches are resumed
after outages of the API server.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import typing

from ..._model.kubernetes.disruption import Budget, ClusterPod
from ..._observe.kubernetes.answers import Choice
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.pod_state import PodState, state_of_pod
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators.config_daemon_log import last_error
from ..node_changes.drained_pods import PodKeeper, may_leave

#: kinds without which nothing can be judged: one that the API server does not know is asked for again
REQUIRED = ("Node", "SriovNetworkNodeState", "SriovNetworkNodePolicy", "NetworkAttachmentDefinition")
#: seconds between two tries: doubled from the first to the second while the API server is away; the third for what it
#: refuses
RETRY_SECONDS = (0.25, 4.0, 30.0)
#: from this number of nodes on, one list of all pods costs less than one for each node
MANY_NODES = 10
#: changes that wait to be taken: of a kind, and of one object, which whoever writes it may change without end
MOST_WAITING, MOST_OF_ONE = 20_000, 8
#: changes that are taken before what they make is judged: whoever changes objects without end must not keep a wait from
#: its limit
MOST_AT_ONCE = 10_000
#: pods of a node whose drain takes long, which only explain it
MOST_PODS = 10_000
#: seconds of a log that are read: a sync that fails is repeated more often than that
LOG_SECONDS = 120


@dataclasses.dataclass(frozen=True)
class KindUpdate:
    """A change of the objects of one kind, or an error of its watch.

    :ivar kind: kind of the objects
    :ivar action: ``replace`` (all objects were listed), ``put`` (objects are new or changed), ``drop`` (objects were
        deleted), or ``error`` (the kind cannot be read)
    :ivar items: all objects for ``replace``, or the new, changed or deleted ones
    :ivar error: reason why the kind cannot be read at present; the known state remains valid. Empty for other actions
    """

    kind: str
    action: typing.Literal["replace", "put", "drop", "error"]
    items: tuple[Resource, ...] = ()
    error: str = ""


#: name and stand of pods
Parts = tuple[tuple[str, PodState], ...]


class Feed(typing.Protocol):
    """The interface of a source that returns changes of Kubernetes objects as they arrive, and reads details of nodes
    on request.
    """

    def get(self, timeout: float) -> typing.Optional[KindUpdate]:
        """Return the next change. Return None if no change arrived within ``timeout`` seconds."""

    def gather(self, seconds: float) -> list[KindUpdate]:
        """Wait ``seconds``, and return the changes that have arrived by then, at most ``MOST_AT_ONCE``."""

    def pods(
        self, nodes: typing.Sequence[str], budgets: typing.Iterable[Budget], prefixes: typing.Iterable[str]
    ) -> typing.Mapping[str, tuple[ClusterPod, ...]]:
        """Return the current pods of some nodes that a drain would evict, by node. Each pod keeps only those labels
        that the budgets name, and its requests of resources with the prefixes. Return an empty mapping if the pods
        cannot be read.

        :param nodes: names of the nodes
        :param budgets: PodDisruptionBudgets of the cluster
        :param prefixes: prefixes of the names of extended resources
        """

    def daemon_error(self, pod: str) -> str:
        """Return the last error in the log of a config daemon. Return an empty text if the log has no error, or if the
        pod or the API server is gone. If the log cannot be read for another reason, return a text that says so.

        :param pod: name of the pod of the daemon
        """

    def parts(self, nodes: typing.Sequence[str]) -> typing.Mapping[str, Parts]:
        """Return the name and the state of the current pods of NVIDIA's network operator on some nodes, by node. Return
        an empty mapping if they cannot be read.

        :param nodes: names of the nodes
        """


def take_following(
    first: typing.Optional[KindUpdate], get: typing.Callable[[], typing.Optional[KindUpdate]]
) -> typing.Iterator[KindUpdate]:
    """Yield a change and the changes that follow it, at most ``MOST_AT_ONCE`` in total.

    :param first: change that was received first; None: nothing is yielded
    :param get: function without arguments that returns the next change; None if no change follows
    """
    change, left = first, MOST_AT_ONCE
    while change is not None:
        yield change
        left -= 1
        change = get() if left else None


def take_settled(
    feed: Feed, first: typing.Optional[KindUpdate], seconds: float, clock: Clock
) -> typing.Iterator[KindUpdate]:
    """Yield a change and the changes that arrive within ``seconds`` after this call, at most ``MOST_AT_ONCE`` in total.

    :param feed: source of the changes
    :param first: change that was received first; None: nothing is yielded
    :param clock: function that returns the time of a monotonic clock, in seconds
    """
    until = clock() + seconds
    return take_following(first, lambda: feed.get(max(0.0, until - clock())))


class _Waiting(typing.NamedTuple):
    """A change in the queue. A newer change of the same object can replace it.

    :ivar of: kind, namespace and name of the changed object; only the kind for a change of several objects
    :ivar change: list of exactly one change, whose item can be replaced
    """

    of: tuple[str, ...]
    change: list[KindUpdate]


class _Changes:
    """A bounded queue of changes in the order of arrival. If an object has ``MOST_OF_ONE`` queued changes, a newer one
    replaces the last of them. If a kind has ``MOST_WAITING`` queued changes, all of them are dropped, and the kind must
    be listed again.
    """

    def __init__(self) -> None:
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._of_object: dict[tuple[str, ...], list[_Waiting]] = {}
        self._of_kind: collections.Counter[str] = collections.Counter()
        self._news = threading.Condition()

    def put(self, change: KindUpdate) -> bool:
        """Add a change. Return False if its kind has too many queued changes: these and the new change are then
        dropped.
        """
        with self._news:
            kind, single = change.kind, change.action in ("put", "drop") and len(change.items) == 1
            metadata = change.items[0].get("metadata", {}) if single else {}
            of = (kind, *(str(metadata.get(key, "")) for key in ("namespace", "name"))) if single else (kind,)
            before = self._of_object.setdefault(of, [])
            if single and len(before) >= MOST_OF_ONE:
                before[-1].change[0] = change
                return True
            if self._of_kind[kind] >= MOST_WAITING:
                kept = [item for item in self._waiting if item.of[0] != kind]
                self._of_object = {key: items for key, items in self._of_object.items() if key[0] != kind}
                self._waiting, self._of_kind[kind] = collections.deque(kept), 0
                return False
            before.append(_Waiting(of, [change]))
            self._waiting.append(before[-1])
            self._of_kind[kind] += 1
            self._news.notify()
            return True

    def get(self, timeout: float) -> typing.Optional[KindUpdate]:
        """Remove the first change from the queue and return it. Return None if no change arrived within ``timeout``
        seconds.
        """
        with self._news:
            if not self._news.wait_for(lambda: self._waiting, timeout=max(0.0, timeout)):
                return None
            found = self._waiting.popleft()
            self._of_kind[found.of[0]] -= 1
            del self._of_object[found.of][0]
            if not self._of_object[found.of]:
                del self._of_object[found.of]
            return found.change[0]


class WatchFeed:
    """A feed that lists and watches each kind in its own thread, and resumes after outages of the API server."""

    def __init__(
        self,
        cluster: Cluster,
        namespaces: typing.Mapping[str, str],
        kinds: typing.Sequence[str],
        selector: str = "",
        selectors: typing.Optional[typing.Mapping[str, str]] = None,
        needed: typing.Container[str] = REQUIRED,
        only: typing.Optional[typing.Mapping[str, Choice]] = None,
        most: typing.Optional[typing.Mapping[str, int]] = None,
    ) -> None:
        """Create a source of changes. Nothing is read before ``start`` is called.

        :param namespaces: namespace of each kind; a kind without an entry is read in all namespaces
        :param kinds: kinds to list and watch
        :param selector: label selector for all kinds without an entry in ``selectors``; empty for all objects
        :param selectors: label selectors by kind, which replace ``selector``; None for no entries
        :param needed: kinds that are requested again until the API server serves them. Any other kind that it does not
            serve counts as a kind without objects
        :param only: function that gets an object and returns whether to report it, by kind; None: all objects are
            reported
        :param most: maximum number of objects to list, by kind; a kind without an entry, or None, has no limit
        """
        self._cluster = cluster
        self._namespaces = namespaces
        self._kinds = kinds
        self._selectors = {kind: (selectors or {}).get(kind, selector) for kind in kinds}
        self._needed = needed
        self._only = only or {}
        self._most = most or {}
        self._changes = _Changes()
        self._stop = threading.Event()

    def start(self) -> None:
        for kind in self._kinds:
            # daemons: a thread that sits in a read must not keep the module alive
            threading.Thread(target=self._follow, args=(kind,), daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def get(self, timeout: float) -> typing.Optional[KindUpdate]:
        return self._changes.get(timeout)

    def gather(self, seconds: float) -> list[KindUpdate]:
        # who waits for each of them wakes up for each of them, and at 1,000 nodes that costs more than their judgement
        self._stop.wait(seconds)
        return list(take_following(self._changes.get(0.0), lambda: self._changes.get(0.0)))

    def pods(
        self, nodes: typing.Sequence[str], budgets: typing.Iterable[Budget], prefixes: typing.Iterable[str]
    ) -> typing.Mapping[str, tuple[ClusterPod, ...]]:
        keeper = PodKeeper(budgets, prefixes)
        found: dict[str, list[ClusterPod]] = {node: [] for node in nodes}
        fields = [f"spec.nodeName={node}" for node in nodes] if len(nodes) < MANY_NODES else [""]
        try:
            for field in fields:
                # of a few nodes as many as they have, of many all that there are
                for item in self._cluster.pages("Pod", fields=field, only=may_leave):
                    pod = keeper.keep(item)
                    if pod is not None and pod.node in found and len(found[pod.node]) < MOST_PODS:
                        found[pod.node].append(pod)
        except ApiError:
            # they only explain a drain that takes long; that it does is seen without them
            return {}
        return {node: tuple(pods) for node, pods in found.items()}

    def daemon_error(self, pod: str) -> str:
        try:
            return last_error(self._cluster.log(self._namespaces.get("Pod", ""), pod, LOG_SECONDS))
        except ApiError as error:
            return "" if error.status in (0, 404) else f"(the log could not be read: {error.text})"

    def parts(self, nodes: typing.Sequence[str]) -> typing.Mapping[str, Parts]:
        found: dict[str, list[tuple[str, PodState]]] = {node: [] for node in nodes}
        try:
            daemons = {
                (str(item["metadata"].get("namespace")), name_of(item))
                for item in self._cluster.pages("DaemonSet")
                if _of_policy(item)
            }
            for namespace in sorted({namespace for namespace, _name in daemons}):
                for item in self._cluster.pages("Pod", namespace, only=is_made_pod):
                    pod = kubernetes.parse_pod(item)
                    if pod.node in found and (namespace, kubernetes.parse_controller(item)[1]) in daemons:
                        found[pod.node].append((pod.name, state_of_pod(item)))
        except ApiError:
            # they only explain what takes long
            return {}
        return {node: tuple(sorted(pods, key=lambda one: one[0])) for node, pods in found.items()}

    def _follow(self, kind: str) -> None:
        version, failures, away = "", 0, False
        while not self._stop.is_set():
            try:
                if not version:
                    version = self._list_objects(kind)
                events = self._cluster.watch(kind, version, self._namespaces.get(kind, ""), self._selectors[kind])
                if away:
                    # the watch goes on where it was: what is known is true again
                    self._changes.put(KindUpdate(kind, "put"))
                quiet, away = True, False
                for event in events:
                    version, failures, quiet = self._report_event(kind, event, version), 0, False
                if quiet:
                    # a server, or a proxy, that ends watches at once must not be asked without a pause
                    self._stop.wait(RETRY_SECONDS[1])
            except ApiError as error:
                if error.absent and kind not in self._needed and not version:
                    # a kind of another cluster: there are none, and there will be none
                    self._changes.put(KindUpdate(kind, "replace"))
                    return
                # what the server itself refuses (a version that is too old, 410) is not asked again: list anew
                version = version if error.status == 0 else ""
                failures += 1
                if error.status == 410 and failures == 1:
                    continue
                away = True
                self._changes.put(KindUpdate(kind, "error", error=str(error)))
                first, most, refused = RETRY_SECONDS
                passing = error.status in (0, 410, 429) or error.status >= 500
                self._stop.wait(min(first * 2 ** min(failures - 1, 10), most) if passing else refused)

    def _list_objects(self, kind: str) -> str:
        """Report all objects of a kind as one change, and return the resourceVersion from which to watch the kind.

        :raises ApiError: the kind cannot be listed, or the list has no resourceVersion
        """
        where = (kind, self._namespaces.get(kind, ""), self._selectors[kind])
        listing = self._cluster.list(*where, most=self._most.get(kind, 0), only=self._only.get(kind))
        if not listing.version:
            raise ApiError(
                200, "Unreadable", "the list has no resourceVersion, so its changes cannot be watched", f"GET {kind}"
            )
        self._changes.put(KindUpdate(kind, "replace", listing.items))
        return listing.version

    def _report_event(self, kind: str, event: Resource, version: str) -> str:
        """Report an event of a watch as a change, unless it is a bookmark or the filter of the kind rejects its object.
        Return the resourceVersion from which the watch would continue.

        :param event: event as the API server sends it
        :param version: resourceVersion so far, for an event without one
        :raises ApiError: the queue is full. The error has the status 410, as for a version that is too old, so that the
            kind is listed again
        """
        item, only = event.get("object", {}), self._only.get(kind)
        if event.get("type") != "BOOKMARK" and (only is None or only(item)):
            change = KindUpdate(kind, "drop" if event.get("type") == "DELETED" else "put", ({"kind": kind, **item},))
            if not self._changes.put(change):
                seen = f"more than {MOST_WAITING} changes are pending, so the list is read again"
                raise ApiError(410, "TooMany", seen, f"WATCH {kind}")
        return str(item.get("metadata", {}).get("resourceVersion", version))


def _of_policy(daemon: Resource) -> bool:
    return kubernetes.parse_controller(daemon)[0] == "NicClusterPolicy"
