# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The wait for the network: one list and one watch a kind, judged at every change (see _check/readiness.py)."""

from __future__ import annotations

import dataclasses
import queue
import threading
import typing

from .._check.readiness import Judgement, Patience, Target, World, judge, judge_release
from .._model.cluster import SyncFacts, SyncNode
from .._observe.kubernetes import ApiError, Clock, Cluster, Resource
from .._parse import kubernetes as parse

#: what is watched, and where in World it goes
KINDS = ("Node", "SriovNetworkNodeState", "SriovNetworkNodePolicy", "NetworkAttachmentDefinition")
_FIELDS = {"Node": "nodes", "SriovNetworkNodeState": "states", "SriovNetworkNodePolicy": "policies", "NetworkAttachmentDefinition": "attachments"}
#: seconds between two tries to reach the API server
RETRY_SECONDS = 2.0
#: how long the first answers may take without a word
QUIET_SECONDS = 5.0


@dataclasses.dataclass(frozen=True)
class Change:
    """News of one kind.

    :ivar items: all objects (``replace``), or the one that is new or changed (``put``) or gone (``drop``)
    :ivar error: why the kind cannot be read just now; what was known stays
    """

    kind: str
    action: typing.Literal["replace", "put", "drop", "error"]
    items: typing.Tuple[Resource, ...] = ()
    error: str = ""


class Feed(typing.Protocol):
    """Where changes come from."""

    def get(self, timeout: float) -> typing.Optional[Change]:
        """The next change, None when none came within ``timeout`` seconds."""

    def budgets(self) -> typing.Tuple[str, ...]:
        """PodDisruptionBudgets that allow no eviction now."""


class WatchFeed:
    """Lists and watches each kind in a thread of its own; survives an API server that goes away and comes back."""

    def __init__(self, cluster: Cluster, namespaces: typing.Mapping[str, str], kinds: typing.Sequence[str] = KINDS, selector: str = "") -> None:
        """:param namespaces: of each kind; a kind that is not named is read in all namespaces
        :param selector: label selector for all kinds
        """
        self._cluster = cluster
        self._namespaces = namespaces
        self._kinds = kinds
        self._selector = selector
        self._queue: queue.Queue[Change] = queue.Queue()
        self._stop = threading.Event()

    def start(self) -> None:
        for kind in self._kinds:
            # daemons: a thread that sits in a read must not keep the module alive
            threading.Thread(target=self._follow, args=(kind,), daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def get(self, timeout: float) -> typing.Optional[Change]:
        try:
            return self._queue.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return None

    def budgets(self) -> typing.Tuple[str, ...]:
        try:
            items = self._cluster.list("PodDisruptionBudget").items
        except ApiError:
            # they only explain a blocked drain; the drain itself is seen without them
            return ()
        return tuple(
            f"{item['metadata'].get('namespace')}/{item['metadata'].get('name')}"
            for item in items
            if item.get("status", {}).get("expectedPods") and item.get("status", {}).get("disruptionsAllowed") == 0
        )

    def _follow(self, kind: str) -> None:
        namespace = self._namespaces.get(kind, "")
        while not self._stop.is_set():
            try:
                listing = self._cluster.list(kind, namespace, self._selector)
                self._queue.put(Change(kind, "replace", listing.items))
                version = listing.version
                while version and not self._stop.is_set():
                    version = self._watch(kind, namespace, version)
            except ApiError as error:
                # too old a version is no failure: list again at once
                if error.reason not in ("Expired", "Gone"):
                    self._queue.put(Change(kind, "error", error=str(error)))
                    self._stop.wait(RETRY_SECONDS)

    def _watch(self, kind: str, namespace: str, version: str) -> str:
        """Follow one watch to its end; the version to go on from."""
        for event in self._cluster.watch(kind, version, namespace, self._selector):
            item = event.get("object", {})
            version = str(item.get("metadata", {}).get("resourceVersion", version))
            if event.get("type") != "BOOKMARK":
                self._queue.put(Change(kind, "drop" if event.get("type") == "DELETED" else "put", ({"kind": kind, **item},)))
        return version


_PARSERS: typing.Dict[str, typing.Callable[[Resource], typing.Any]] = {
    "Node": parse.node,
    "SriovNetworkNodeState": parse.node_state,
    "SriovNetworkNodePolicy": parse.policy,
}


def take(world: World, change: Change) -> World:
    """The world after a change.

    :raises ResourceError: an object that is none of its kind
    """
    if change.action == "error":
        # a kind that was read once is still known as it was; the watch goes on by itself
        return dataclasses.replace(world, unread={**world.unread, change.kind: change.error}) if change.kind in world.unread else world
    field = _FIELDS[change.kind]
    unread = {kind: reason for kind, reason in world.unread.items() if kind != change.kind}
    if change.kind == "NetworkAttachmentDefinition":
        names = frozenset(f"{item['metadata'].get('namespace')}/{parse.name_of(item)}" for item in change.items)
        known = world.attachments
        after: typing.Any = names if change.action == "replace" else known | names if change.action == "put" else known - names
    else:
        after = {} if change.action == "replace" else dict(getattr(world, field))
        for item in change.items:
            if change.action == "drop":
                after.pop(parse.name_of(item), None)
            else:
                after[parse.name_of(item)] = _PARSERS[change.kind](item)
    return dataclasses.replace(world, unread=unread, **{field: after})


def wait(
    feed: Feed,
    targets: typing.Sequence[Target],
    limit: float,
    clock: Clock,
    say: typing.Callable[[str], None],
    release: bool = False,
    grace: typing.Optional[typing.Mapping[str, float]] = None,
) -> SyncFacts:
    """Wait until each node of each target is ready or has failed, at most ``limit`` seconds.

    :param clock: monotonic seconds
    :param say: takes a line for the reader whenever a node's state changes
    :param release: wait for the way back instead
    :param grace: see Patience
    """
    start = clock()
    world = World(unread=dict.fromkeys(KINDS, "no answer yet"))
    patience, told = Patience(grace), typing.cast(typing.Dict[typing.Tuple[str, str], str], {})
    while True:
        now = clock()
        judgements = judge_release(targets, world) if release else judge(targets, world)
        nodes = patience.apply(judgements, now)
        if not world.unread or now - start >= QUIET_SECONDS:
            _tell(nodes, told, say, now - start)
        over = now - start >= limit
        if over or all(node.phase != "waiting" for node in nodes):
            finished = all(node.phase != "waiting" for node in nodes)
            return SyncFacts(finished, over and not finished, round(now - start, 1), nodes)
        pauses = [pause for pause in (patience.wake(now), start + limit - now) if pause is not None]
        change = feed.get(min(pauses))
        while change is not None:
            world = take(world, change)
            # what has piled up is one step: at 1,000 nodes a judgement for each event would be 1,000,000
            change = feed.get(0.0)
        world = dataclasses.replace(world, budgets=feed.budgets() if _drains(judgements) else ())


def look(cluster: Cluster, namespaces: typing.Mapping[str, str], targets: typing.Sequence[Target], release: bool = False) -> SyncFacts:
    """One look, without a wait. A kind that the server does not know yet has no objects.

    :raises ApiError: a kind cannot be read
    """
    world = World()
    for kind in KINDS:
        try:
            items = cluster.list(kind, namespaces.get(kind, "")).items
        except ApiError as error:
            if not error.absent:
                raise
            items = ()
        world = take(world, Change(kind, "replace", items))
    judgements = judge_release(targets, world) if release else judge(targets, world)
    nodes = tuple(judgement.node for judgement in judgements)
    return SyncFacts(all(node.phase != "waiting" for node in nodes), False, 0.0, nodes)


def _drains(judgements: typing.Iterable[Judgement]) -> bool:
    return any(judgement.suspect == "drain_blocked" for judgement in judgements)


def _tell(nodes: typing.Iterable[SyncNode], told: typing.Dict[typing.Tuple[str, str], str], say: typing.Callable[[str], None], seconds: float) -> None:
    for node in nodes:
        line = f"{node.phase}: {node.detail}"
        if told.get((node.fabric, node.node)) != line:
            told[(node.fabric, node.node)] = line
            say(f"{seconds:.0f} s  {node.fabric} {node.node} {line}")
