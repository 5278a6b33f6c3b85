# SPDX-License-Identifier: GPL-3.0-or-later

"""Waits until pods are ready, or finds the reason why a pod cannot become ready."""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.controllers.image_pull import names_cause
from ...._analysis.readiness.grace import GRACE
from ...._model.base.errors import wrap_unforeseen
from ...._model.base.text import both_ends, join_first
from ...._model.measurement.bandwidth import RdmaPod
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._parse.kubernetes.pod_state import PodState, state_of_pod
from ...._parse.kubernetes.resource import name_of
from ...._parse.pods.failure import classify
from ...cluster.watch import KindUpdate, WatchFeed, take_following
from ..measuring_plan import Measurement, PodOfNode

#: the part of ``pod_seconds`` for which whole nodes are awaited once the pods of more than half of them are ready, and
#: how many times the seconds that these took
_LATE_PART, _LATE_TIMES = 1 / 3, 2
#: seconds between two messages of the wait
TOLD_SECONDS = 60.0
#: nodes that such a message names
_TOLD_NODES = 8
#: events of one pod that are read: the API server joins those that repeat
_EVENTS = 200


def explain_unready(stand: PodState) -> str:
    """Return the reason why a pod that was ready is no longer ready. Return an empty text if it still is.

    :param stand: current state of the pod
    """
    if stand.phase == "ready":
        return ""
    return "it is no longer ready, for example because its node is lost" if stand.phase == "waiting" else stand.detail


def find_node(item: Resource) -> str:
    """Return the name of the node of a pod. Return an empty text until the pod is assigned to a node."""
    return str((item.get("spec") or {}).get("nodeName") or "")


def _note_leaving(leaving: dict[str, str], change: KindUpdate) -> None:
    """Update the record of pods that are being deleted but have not ended.

    :param leaving: name of the node of each such pod, by uid of the pod; changed by this function
    :param change: change of the objects of pods
    """
    for item in change.items:
        uid = str(item["metadata"].get("uid"))
        if change.action != "drop" and item["metadata"].get("deletionTimestamp"):
            leaving[uid] = find_node(item)
        else:
            leaving.pop(uid, None)


def _find_host(event: Resource) -> str:
    """Return the node of the component that wrote an Event. Return an empty text if the Event does not name a node,
    such as an Event of the scheduler or of multus. The name is not reliable, because the writer of an Event can set any
    value.
    """
    source = event.get("source")
    host = source.get("host") if isinstance(source, dict) else ""
    if not host and event.get("reportingComponent") == "kubelet":
        host = event.get("reportingInstance")
    return str(host or "")


class ReadinessWait:
    """A wait until the pods of one run are ready or have failed."""

    def __init__(
        self,
        measurement: Measurement,
        open_feed: typing.Callable[[], WatchFeed],
        is_ours: typing.Callable[[Resource], bool],
    ) -> None:
        """Prepare the waits of a run; nothing is watched yet.

        :param measurement: plan, client of the API server and clock of the measurement
        :param open_feed: function without arguments that returns a feed of changes of pods
        :param is_ours: function that gets a pod and returns whether this run created it
        """
        self._measurement = measurement
        self._open_feed = open_feed
        self._is_ours = is_ours

    def wait(
        self,
        pods: typing.Sequence[RdmaPod],
        spent: typing.Optional[dict[str, float]] = None,
        together: bool = False,
    ) -> dict[str, PodOfNode]:
        """Wait for pods until each is ready, has failed, or its time is over. Return two values for each pod, by its
        name: the pod, which has an error if it did not become ready, and its object of the API, which is empty if it is
        not known.

        :param pods: pods to wait for
        :param spent: seconds that earlier pods of each node took, by node. They reduce the time of the node, and the
            duration of this wait is added to them. None: only this wait counts
        :param together: whether to shorten the wait for the remaining pods when more than half are ready, so that one
            slow kubelet does not delay the measurement of all nodes
        """
        done: dict[str, PodOfNode] = {}
        if not pods:
            return done
        seen: dict[str, Resource] = {}
        since: dict[str, tuple[str, float]] = {}
        leaving: dict[str, str] = {}
        start, plan = self._measurement.clock(), self._measurement.plan
        before = dict(spent or {})
        ends = {
            item.node: start + min(plan.pod_seconds, plan.draw_seconds - before.get(item.node, 0.0)) for item in pods
        }
        tell, most_ready = start + TOLD_SECONDS, not together
        feed = self._open_feed()
        feed.start()
        try:
            while len(done) < len(pods):
                now = self._measurement.clock()
                for item in pods:
                    if item.name in done:
                        continue
                    judged = self._guard_judge(
                        item, seen.get(item.name), since, leaving.values(), now, now >= ends[item.node]
                    )
                    if judged is not None:
                        done[item.name] = judged
                    if spent is not None:
                        spent[item.node] = before[item.node] + now - start
                if len(done) == len(pods):
                    break
                if not most_ready and 2 * sum(not item.error for item, _found in done.values()) > len(pods):
                    most_ready = True
                    last = now + max(_LATE_PART * plan.pod_seconds, _LATE_TIMES * (now - start))
                    ends = {node: min(last, end) for node, end in ends.items()}
                end = max(ends[item.node] for item in pods if item.name not in done)
                if now >= tell:
                    tell = now + TOLD_SECONDS
                    late = list(dict.fromkeys(item.node for item in pods if item.name not in done))
                    self._measurement.say(
                        f"{pods[0].fabric}: waiting at most {end - now:.0f} s for the pods of"
                        f" {join_first(late, _TOLD_NODES)}"
                    )
                # all that came in the meantime, and then one look: thousands of pods change at the same time
                first = feed.get(min(5.0, max(0.0, end - now)))
                for change in take_following(first, lambda: feed.get(0.0)):
                    if change.action == "replace":
                        seen, leaving = {}, {}
                    if change.action != "error":
                        seen.update((name_of(found), found) for found in change.items if self._is_ours(found))
                        _note_leaving(leaving, change)
        finally:
            feed.stop()
        return done

    def _guard_judge(self, item: RdmaPod, *state: typing.Any) -> typing.Optional[PodOfNode]:
        """Return the pod with its object of the API if it is ready or has failed. Return None while it may still become
        ready. An unexpected exception becomes the error of this pod, because its status was written by the kubelet of a
        single node.

        :param item: pod that is awaited
        :param state: further arguments of ``_judge_pod``
        """
        try:
            return self._judge_pod(item, *state)
        except Exception as error:
            return dataclasses.replace(item, error=str(wrap_unforeseen(error, "the status of the pod"))), {}

    def _judge_pod(
        self,
        item: RdmaPod,
        found: typing.Optional[Resource],
        since: dict[str, tuple[str, float]],
        leaving: typing.Collection[str],
        now: float,
        over: bool,
    ) -> typing.Optional[PodOfNode]:
        """Return a pod with its object of the API if it is ready, or with its error if it cannot become ready. Return
        None while it may still become ready.

        :param item: pod that is awaited
        :param found: object of the pod; None if the API server does not report it
        :param since: suspect state of each pod and the time when it began, by name of the pod; updated by this method
        :param leaving: names of nodes with pods that are being deleted but have not ended
        :param now: monotonic time in seconds
        :param over: whether the time of the pod is over
        """
        if found is None:
            return (dataclasses.replace(item, error="the API server does not report the pod"), {}) if over else None
        stand, node = state_of_pod(found), find_node(found)
        if node not in ("", item.node):
            error = f"the pod is on node {node}; expected {item.node}"
            return dataclasses.replace(item, error=error, cause="taken"), found
        if stand.phase == "ready":
            self._measurement.say(f"{item.fabric} {item.node}: pod is ready")
            return item, found
        suspect, start = since.get(item.name, ("", now))
        # pods of an earlier fabric that are about to go hold its place on the node: a busy node takes its time with
        # them
        if suspect != stand.suspect or (stand.suspect == "unschedulable" and item.node in leaving):
            start = now
        since[item.name] = (stand.suspect, start)
        patience_over = bool(stand.suspect) and now - start >= GRACE[stand.suspect][0]
        if stand.phase != "failed" and not over and not patience_over:
            return None
        event = self._find_last_warning(item, str(found["metadata"].get("uid") or ""))
        error = f"the pod did not become ready: {stand.detail}{'; ' + event if event else ''}"
        self._measurement.say(f"{item.fabric} {item.node}: {error}")
        # a container that cannot even start says so in the runtime's words
        words = classify(None, False, stand.detail)
        cause = stand.suspect or ("no_tool" if words and words.kind == "no_tool" else "")
        return dataclasses.replace(item, error=error, cause=cause), found

    def _find_last_warning(self, item: RdmaPod, uid: str) -> str:
        """Return the last warning Event about a pod as text, preferring one that names a cause. Return an empty text if
        there is none, or if Events cannot be read. Events are read because errors of a CNI plugin appear only in them.

        :param item: the pod
        :param uid: uid of the pod. Events about another uid are ignored: kubelets of other nodes can write any number
            of Events about the name of the pod, but do not know its uid
        """
        try:
            about = f"involvedObject.kind=Pod,involvedObject.name={item.name},involvedObject.uid={uid}"
            fields = f"{about},type=Warning"
            events = self._measurement.cluster.list("Event", item.namespace, fields=fields, most=_EVENTS).items
        except ApiError:
            return ""
        mine = [
            event
            for event in events
            if event.get("type") == "Warning"
            and (event.get("involvedObject") or {}).get("name") == item.name
            and (event.get("involvedObject") or {}).get("uid") == uid
            and _find_host(event) in ("", item.node)
        ]
        with_cause = [event for event in mine if names_cause(str(event.get("message") or ""))]
        last = max(
            with_cause or mine,
            key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""),
            default=None,
        )
        if last is None:
            return ""
        # each kubelet may write an Event about a pod of another node
        who = "" if _find_host(last) else "an Event reports: "
        return f"{who}{last.get('reason')}: {both_ends(str(last.get('message')))}"
