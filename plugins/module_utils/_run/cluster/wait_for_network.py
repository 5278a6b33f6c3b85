# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until the fabric networks of the nodes are ready. It evaluates changes of Kubernetes objects as they arrive
from a watch.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.readiness.grace import SuspectTimer
from ..._analysis.readiness.readiness_cache import ReadinessCache
from ..._analysis.readiness.sriov import judge, judge_release
from ..._analysis.readiness.state import ClusterState, Judgement, Target
from ..._model.kubernetes.wait import SyncFacts, SyncNode
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.resource import name_of
from .cluster_state import SELECTORS, list_kinds, merge_kind_updates, only_of, take
from .state_lines import StateLines
from .watch import REQUIRED, Feed, KindUpdate

#: in lines of progress
_API = "the API server"
#: how long the first answers may take without a word
QUIET_SECONDS = 5.0
#: news of this time is judged in one step: at 1,000 nodes a judgement for each event would be 1,000,000
SETTLE_SECONDS = 0.1
#: so many times as long while it can't be the end: each judgement looks at all nodes
PATIENT = 10
#: kinds whose objects are each about the node of their name
OF_ONE_NODE = ("Node", "SriovNetworkNodeState")
#: for which a node must stay ready that became so while we looked. The config daemon ends the device plugin before it
#: says Succeeded, and the kubelet tells every 10 s only what the node offers: until then it may be what the plugin
#: offered that is gone
STEADY_SECONDS = 12.0
#: the same of nodes that have just been rolled, from the first look on. What they show may be from before they booted:
#: the config daemon of a node that is Ready again has not started yet, and until then its report and what the kubelet
#: offers are the old ones
ROLLED_SECONDS = 45.0
#: how old the pods of a node whose drain takes long, and the log of a daemon that takes long, may get
LOOK_SECONDS = 30.0


def wait(
    feed: Feed,
    targets: typing.Sequence[Target],
    limit: float,
    clock: Clock,
    say: typing.Callable[[str], None],
    release: bool = False,
    grace: typing.Optional[typing.Mapping[str, float]] = None,
    settle: float = SETTLE_SECONDS,
    steady: float = STEADY_SECONDS,
    rolled: bool = False,
) -> SyncFacts:
    """Wait until each node of each target is ready or has failed, at most ``limit`` seconds. Return the state of each
    node, and whether the limit was reached.

    :param feed: source of the changes of objects
    :param targets: fabrics with their nodes and objects
    :param limit: maximum duration of the wait, in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param say: function that shows a line of progress to the user. It is called whenever the state of a node changes
    :param release: whether to wait until the network is removed, instead of ready
    :param grace: seconds for which a suspect state may last before it counts as a failure, by name of the state. The
        values replace those of ``GRACE``; None: no value is replaced
    :param settle: seconds for which changes are collected before they are evaluated
    :param steady: seconds for which a node with virtual functions must stay ready, unless it was ready from the
        beginning
    :param rolled: whether the nodes have just booted, so that their first reports may be outdated
    """
    start = clock()
    observed = ClusterState(unread=dict.fromkeys(list_kinds(targets), "no response yet"))
    patience, lines = SuspectTimer(grace), StateLines(say)
    diagnostics = Diagnostics(feed, (target.resource.partition("/")[0] for target in targets))
    lines.expect(_API, f"{_API} responds again")
    judges = ReadinessCache(targets)
    of_functions = {target.fabric for target in targets if target.functions and not release}
    timer = SteadyTimer(of_functions, ROLLED_SECONDS, 0.0) if rolled else SteadyTimer(of_functions, steady, steady)
    while True:
        now = clock()
        judgements = judge_release(targets, observed) if release else judges.judge(observed)
        nodes = patience.apply(judgements, now)
        finished = all(node.phase != "waiting" for node in nodes)
        left = 0.0 if observed.unread else timer.left(nodes, now)
        ends = (finished and left <= 0.0) or now - start >= limit
        if not observed.unread or now - start >= QUIET_SECONDS:
            for node in nodes:
                line = f"{node.fabric} {node.node} {node.phase}: {node.detail}"
                lines.tell((node.fabric, node.node), line, now - start, ends)
        answers = (
            ("does not respond; its last response is kept, and the requests are repeated")
            if observed.stale
            else "responds again"
        )
        lines.tell(_API, f"{_API} {answers}", now - start)
        if ends:
            return SyncFacts(
                finished,
                not finished,
                round(now - start, 1),
                nodes if finished else _add_stale_details(nodes, observed),
            )
        explained = diagnostics.at(judgements, observed, now)
        if explained is not observed:
            observed = explained
            continue
        pauses = [
            pause
            for pause in (patience.wake(now), diagnostics.wake(now), start + limit - now, left or None)
            if pause is not None
        ]
        first = feed.get(min(pauses))
        news = [first] if first is not None else []
        if news:
            _gather_following_updates(
                feed, news, {node.node for node in nodes if node.phase == "waiting"}, clock, settle, now + min(pauses)
            )
        for change in merge_kind_updates(news):
            observed = take(observed, change)


def _gather_following_updates(
    feed: Feed, news: list[KindUpdate], waiting: set[str], clock: Clock, settle: float, end: float
) -> None:
    """Append the changes that follow the first change within ``settle`` seconds to ``news``. As long as one of the
    waiting nodes has had no change, the wait for the network cannot end, so changes are collected for up to ``PATIENT``
    times as long, at most until ``end``.

    :param feed: source of the changes
    :param news: list with the first change
    :param waiting: names of the nodes that are not ready yet
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param settle: seconds for which changes are collected in one step
    :param end: monotonic time in seconds at which the collection ends at the latest
    """
    late, looked = min(clock() + PATIENT * settle, end), 0
    while True:
        news.extend(feed.gather(settle))
        for change in news[looked:]:
            of_nodes = change.kind in OF_ONE_NODE and change.action == "put"
            waiting = waiting.difference(name_of(item) for item in change.items) if of_nodes else set()
        looked = len(news)
        if not waiting or clock() + settle >= late:
            return


class SteadyTimer:
    """A timer that measures for how long the nodes of fabrics have been ready without interruption."""

    def __init__(self, fabrics: typing.Container[str], steady: float, before: float) -> None:
        """Create a timer; no node is ready yet.

        :param fabrics: names of the fabrics whose nodes must stay ready for ``steady`` seconds. Nodes of other fabrics
            are ignored
        :param steady: seconds for which a node must be ready without interruption
        :param before: seconds for which a node that is ready at the first call is assumed to have been ready already
        """
        self._fabrics = fabrics
        self._steady = steady
        self._before = before
        self._since: typing.Optional[dict[tuple[str, str], float]] = None

    def left(self, nodes: typing.Iterable[SyncNode], now: float) -> float:
        """Return the seconds until all nodes that are ready now have been ready for the required time without
        interruption. Return 0 if they have been, or if no node is ready.

        :param nodes: current states of the nodes
        :param now: monotonic time in seconds
        """
        ready = {(node.fabric, node.node) for node in nodes if node.phase == "ready" and node.fabric in self._fabrics}
        start = now - self._before if self._since is None else now
        self._since = {key: (self._since or {}).get(key, start) for key in ready}
        return max([0.0, *(since + self._steady - now for since in self._since.values())])


class Diagnostics:
    """A reader of details that explain why a node is not ready yet: the pods that a drain waits for, the pods of
    NVIDIA's operator, and the log of a config daemon. Each detail is read at most once in ``LOOK_SECONDS``.
    """

    #: what may pass by itself before its log says anything
    _LATER = ("sync_stuck", "sync_failing")
    _SOURCES: typing.ClassVar[dict[str, str]] = {
        **dict.fromkeys(("drain_blocked", "drain_held"), "pods"),
        **dict.fromkeys(("sync_stuck", "sync_failing", "sync_failed"), "log"),
        **dict.fromkeys(("part", "part_image", "part_container", "part_unschedulable"), "parts"),
    }

    def __init__(self, feed: Feed, prefixes: typing.Iterable[str] = ()) -> None:
        """Prepare the reading of explanations; nothing is read yet.

        :param feed: feed of the changes that the wait follows
        :param prefixes: prefixes of the names of the extended resources of the targets
        """
        self._feed, self._prefixes = feed, frozenset(prefixes)
        #: (node, what): when it became suspect, or was looked at last
        self._since: dict[tuple[str, str], float] = {}

    def at(self, judgements: typing.Iterable[Judgement], observed: ClusterState, now: float) -> ClusterState:
        """Return the state of the cluster, completed with the details that are due, or the same object if none is due.
        Pods, and the log of a sync that has failed, are read at once. The log of a sync that is stuck or failing is
        read after ``LOOK_SECONDS``, because the sync may recover by itself.

        :param judgements: current state of the nodes
        :param observed: state of the cluster
        :param now: monotonic time in seconds
        """
        suspect = {
            (item.node.node, self._SOURCES[item.suspect]): item.suspect
            for item in judgements
            if item.suspect in self._SOURCES
        }
        suspects = suspect.keys()
        # pods are looked at at once: a drain that is held is seen on the first look; and the log of a sync that has
        # failed, which soon ends the wait
        self._since = {
            key: self._since.get(key, now if why in self._LATER else now - LOOK_SECONDS) for key, why in suspect.items()
        }
        due = [key for key, since in self._since.items() if now - since >= LOOK_SECONDS]
        # a log that was read for an earlier trouble says nothing about a later one
        logs = {node: text for node, text in observed.logs.items() if (node, "log") in suspects}
        if not due and len(logs) == len(observed.logs):
            return observed
        self._since.update(dict.fromkeys(due, now))
        nodes = [node for node, what in due if what == "pods"]
        budgets = tuple(observed.budgets.values())
        pods = {**observed.pods, **self._feed.pods(nodes, budgets, self._prefixes)} if nodes else observed.pods
        nodes = [node for node, what in due if what == "parts"]
        parts = {**observed.parts, **self._feed.parts(nodes)} if nodes else observed.parts
        for node in (node for node, what in due if what == "log"):
            name, _stand = (observed.daemons or {}).get(node, ("", None))
            logs[node] = self._feed.daemon_error(name) if name else ""
        return dataclasses.replace(observed, pods=pods, logs=logs, parts=parts)

    def wake(self, now: float) -> typing.Optional[float]:
        """Return the seconds until the next detail is due. Return None if no node needs an explanation.

        :param now: monotonic time in seconds
        """
        return max(0.0, min(self._since.values()) + LOOK_SECONDS - now) if self._since else None


def judge_once(
    cluster: Cluster, namespaces: typing.Mapping[str, str], targets: typing.Sequence[Target], release: bool = False
) -> SyncFacts:
    """Return the state of each node of the targets, read once without a wait. A kind that the API server does not serve
    yet has no objects.

    :param namespaces: namespace in which a kind is read, by kind; other kinds are read in all namespaces
    :param targets: fabrics with their nodes and objects
    :param release: whether to judge if the network of the targets is removed, instead of ready
    :raises ApiError: a required kind cannot be read
    """
    observed, only = ClusterState(), only_of(targets)
    for kind in list_kinds(targets):
        try:
            items = cluster.list(kind, namespaces.get(kind, ""), SELECTORS.get(kind, ""), only=only.get(kind)).items
        except ApiError as error:
            if not error.absent and kind in REQUIRED:
                raise
            items = ()
        observed = take(observed, KindUpdate(kind, "replace", items))
    judgements = judge_release(targets, observed) if release else judge(targets, observed)
    nodes = tuple(judgement.node for judgement in judgements)
    return SyncFacts(all(node.phase != "waiting" for node in nodes), False, 0.0, nodes)


def _add_stale_details(nodes: tuple[SyncNode, ...], observed: ClusterState) -> tuple[SyncNode, ...]:
    """Return the nodes at the end of the wait. If the watch of a kind is broken, its error is added to the detail of
    each node that is not ready yet.

    :param nodes: states of the nodes
    :param observed: state of the cluster at the end of the wait
    """
    if not observed.stale:
        return nodes
    away = (
        "; this is the last known state:"
        f" {'; '.join(f'{kind}: {error}' for kind, error in sorted(observed.stale.items())[:1])}"
    )
    return tuple(
        dataclasses.replace(node, detail=node.detail + away) if node.phase == "waiting" else node for node in nodes
    )
