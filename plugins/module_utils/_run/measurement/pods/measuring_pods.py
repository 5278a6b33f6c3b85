# SPDX-License-Identifier: GPL-3.0-or-later

"""The lifecycle of the measuring pods: start, wait, inspect, assign to rails, and remove."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
import typing

from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import list_rails as fabric_rails
from ...._model.intent.profiles import resource_of
from ...._model.kubernetes.measuring import NAMESPACE
from ...._model.kubernetes.objects import ClusterNode
from ...._model.measurement.bandwidth import RdmaPod
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.errors import ApiError
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.shell import Clock, Shell
from ...._parse.kubernetes import core as kubernetes
from ...._parse.kubernetes.foreign import is_made_pod
from ...._parse.kubernetes.pod_state import state_of_pod
from ...._parse.kubernetes.resource import name_of
from ...._parse.pods.failure import Failure
from ...._render.measurement import commands
from ...._render.measurement.pods import CONTAINER, LIFETIME_SECONDS, render_measuring_pod
from ...cluster.watch import WatchFeed
from ..measuring_plan import Measurement, Plan, PodOfNode, Say, explain_lacking, list_unstarted, may_return
from .creation import create_or_adopt_pod, explain_taken
from .inspection import PodInspector
from .loss import DELETED, explain_loss, make_failure
from .priority import PodPriority
from .rail_draw import RailDraw
from .readiness import ReadinessWait, explain_unready
from .removal import SELECTOR, PodRemoval, name_with_namespace


class MeasuringPods:
    """A client that creates, inspects and removes the measuring pods of one run, and runs commands in them.

    The caller must hold the Lease of the cluster (_ansible/lease.py). Therefore no other run is active, and pods of
    other runs are leftovers.
    """

    def __init__(
        self, cluster: Cluster, plan: Plan, clock: Clock, pause: typing.Callable[[float], None], say: Say
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._priority = PodPriority(say)
        self._say = say
        #: the threads of an interrupted run open no further connection
        self._over = False
        #: by the pod's name; a pod is in one measurement at a time, so that no two threads share one
        self._shells: dict[str, Shell] = {}
        #: by the pod's name: a pod of that name with another uid is not ours to delete
        self._uids: dict[str, str] = {}
        #: one thread asks for all whether the API server is back, and when it last was
        self._asking = threading.Lock()
        self._answered = 0.0
        #: names of pods of all rails of a node that were ready
        self._whole: set[str] = set()
        #: why a pod is ready no more that was, by its name; and where that is heard
        self._gone: dict[str, str] = {}
        self._heard: typing.Optional[WatchFeed] = None
        self._removal = PodRemoval(cluster, plan, clock, pause, say)
        self._readiness = ReadinessWait(Measurement(cluster, plan, clock, say), self._open_feed, self._is_ours)
        self._inspector = PodInspector(plan, clock, self.shell, self.await_api, self.fate)
        self._draw = RailDraw(plan, self._create, self._readiness, self._inspector, self.discard)

    @functools.cached_property
    def _nodes(self) -> typing.Mapping[str, ClusterNode]:
        """Return the nodes of the cluster by name. They are read once for all fabrics, at the first use."""
        return {node.name: node for node in map(kubernetes.parse_node, self._cluster.list("Node").items)}

    def start(self, pool: concurrent.futures.Executor, fabric: Fabric, seconds: float = 0.0) -> tuple[RdmaPod, ...]:
        """Start one pod for each node and rail of the fabric, and wait until the pods are ready.

        :param pool: threads in which pods are created and inspected
        :param seconds: maximum duration of the measurements in the pods, in seconds
        :returns: one pod for each node and rail. A pod that cannot be used has the reason as its error
        :raises ApiError: the API server cannot be reached
        """
        refusal = self._plan.refused.get(fabric.name)
        if refusal is not None:
            return tuple(list_unstarted(self._plan, fabric, refusal.text, refusal.cause))
        self._priority.announce(fabric)
        known = self._nodes
        pods: list[RdmaPod] = []
        wanted = resource_of(fabric, self._plan.cluster)
        offered = {}
        for name in self._plan.nodes:
            # pods that ask for nothing are taken by any node
            offered[name] = (
                (known[name].allocatable.get(wanted, 0) if wanted else fabric_rails(fabric).stop)
                if name in known
                else 0
            )
            if offered[name] < 1:
                error = explain_lacking(wanted, name, known)
                pods += [
                    RdmaPod(fabric.name, name, "", fabric.network.namespace, error=error, rail=rail)
                    for rail in fabric_rails(fabric)
                ]
        pods += self._draw.draw(pool, fabric, {name: number for name, number in offered.items() if number}, seconds)
        self._start_loss_watcher()
        return tuple(pods)

    def _start_loss_watcher(self) -> None:
        """Start the thread that detects lost pods, if it does not run yet."""
        if self._heard is None:
            self._heard = self._open_feed()
            self._heard.start()
            threading.Thread(target=self._watch_lost_pods, args=(self._heard,), daemon=True).start()

    def _open_feed(self) -> WatchFeed:
        """Return a feed of changes of the measuring pods. It covers only the namespace of the measurement, because
        tenants choose names and labels freely in all other namespaces.
        """
        return WatchFeed(self._cluster, {"Pod": NAMESPACE}, ("Pod",), SELECTOR, only={"Pod": is_made_pod})

    def _is_ours(self, found: Resource) -> bool:
        """Return whether this run created a pod. A pod of another client or run may have the same name.

        :param found: object of the pod
        """
        uid = found["metadata"].get("uid")
        return uid is not None and uid == self._uids.get(name_of(found))

    def _watch_lost_pods(self, feed: WatchFeed) -> None:
        """Record the pods that are lost during the measurement, until the run ends. This method runs in a thread of its
        own.

        The record is needed because the connection to a pod on a dead node is not closed, so each command in it would
        wait until its time limit.

        :param feed: source of the changes of pods
        """
        while not self._over:
            change = feed.get(1.0)
            for item in change.items if change is not None and change.action in ("replace", "put", "drop") else ():
                if not self._is_ours(item):
                    continue
                name, detail = name_of(item), explain_loss(item, change is not None and change.action == "drop")
                if detail and (name in self._shells or name in self._whole):
                    self._gone[name] = detail
                elif not detail:
                    self._gone.pop(name, None)
        feed.stop()

    def gone(self, *pods: RdmaPod) -> typing.Optional[Failure]:
        """Return the failure of the first of some pods that was ready and, as the watch reported, no longer is. Return
        None if all are still ready. Unlike ``fate``, this does not ask the API server.

        :param pods: pods of this run
        """
        found = next(((item, self._gone[item.name]) for item in pods if item.name in self._gone), None)
        return make_failure(*found) if found is not None else None

    def discard(self, pool: concurrent.futures.Executor, pods: typing.Iterable[RdmaPod]) -> None:
        """Delete pods that are no longer needed, without waiting for their end. A pod that cannot be deleted now is
        deleted at the end of the run.

        :param pool: threads in which pods are deleted
        :param pods: pods of this run
        """
        list(pool.map(self._discard_pod, [item for item in pods if item.name]))

    def start_whole(
        self, pool: concurrent.futures.Executor, fabric: Fabric, wanted: typing.Mapping[str, Resource]
    ) -> list[PodOfNode]:
        """Start one pod on each node that takes all of the node's rails, and wait until the pods are ready. Return each
        pod with its object of the API, which is empty if it is not known. A pod that cannot be used has the reason as
        its error.

        :param pool: threads in which pods are created
        :param wanted: object of the pod, as the collection renders it, by node
        """
        refusal = self._plan.refused.get(fabric.name)
        if refusal is not None:
            return [
                (RdmaPod(fabric.name, node, "", NAMESPACE, error=refusal.text, cause=refusal.cause), {})
                for node in wanted
            ]
        self._priority.announce(fabric)
        made = list(pool.map(lambda node: self._create_until_known(fabric, node, wanted[node]), wanted))
        ready = self._readiness.wait([item for item in made if not item.error], together=True)
        self._whole.update(name for name, (item, _found) in ready.items() if not item.error)
        self._start_loss_watcher()
        return [ready.get(item.name, (item, {})) for item in made]

    def _create(self, fabric: Fabric, node: str, number: int, seconds: float) -> RdmaPod:
        """Create a pod that measures one rail of a node, and return it. If the API server refuses it, the pod has this
        error.

        :param node: name of the node
        :param number: number that distinguishes the pods of the fabric on the node
        :param seconds: maximum duration of the measurements in the pod, in seconds
        """
        lifetime = max(LIFETIME_SECONDS, int(seconds + self._plan.pod_seconds))
        return self._create_until_known(
            fabric, node, render_measuring_pod(fabric, self._plan.cluster, node, number, self._plan.run, lifetime)
        )

    def _create_until_known(self, fabric: Fabric, node: str, wanted: Resource) -> RdmaPod:
        """Create a pod, and return it. If the API server refuses it, the pod has this error. While it is not known
        whether the API server created the pod, retry for up to ``pod_seconds`` of the plan.

        :param node: name of the node
        :param wanted: object of the pod, as the collection renders it
        :raises ApiError: the API server cannot be reached
        """
        result = RdmaPod(fabric.name, node, name_of(wanted), fabric.network.namespace)
        end, lost = self._clock() + self._plan.pod_seconds, False
        while True:
            try:
                made = create_or_adopt_pod(self._cluster, wanted, lost)
                self._uids[result.name] = made["metadata"]["uid"]
                self._priority.report_policy(fabric, made)
                return result
            except ApiError as error:
                # a webhook that does not answer is a cause, which is reported at once
                if not may_return(error) or "webhook" in error.text or self._over or self._clock() >= end:
                    if error.status == 0:
                        raise
                    if error.reason == "AlreadyExists":
                        return explain_taken(self._cluster, result, error)
                    return dataclasses.replace(result, error=error.text, cause="refused")
            lost = True
            self._pause(1.0)
            self.await_api()

    def shell(self, item: RdmaPod, pci: str = "") -> Shell:
        """Return the connection to a pod. It is opened by the first call, and again if it is broken.

        :param pci: PCI address of the pod's function; empty if unknown
        :raises ApiError: the pod does not exist or does not run, or the run has ended
        """
        if self._over:
            raise ApiError(0, "Interrupted", "the run has ended", f"exec in pod {item.name}")
        shell = self._shells.get(item.name)
        if shell is None or not shell.open:
            shell = self._shells[item.name] = self._cluster.shell(
                item.namespace, item.name, CONTAINER, commands.render_shell(pci), self._clock
            )
        return shell

    def _discard_pod(self, item: RdmaPod) -> None:
        shell = self._shells.pop(item.name, None)
        if shell is not None:
            shell.close()
        uid = self._uids.get(item.name)
        # without a uid it could not be made, and what has its name is not ours
        if uid is not None:
            with contextlib.suppress(ApiError):
                self._cluster.delete("Pod", item.namespace, item.name, grace_seconds=1, only={"uid": uid})

    def remove(self) -> tuple[str, ...]:
        """Delete all pods of this run and of interrupted runs, and return a text about each pod that existed: its
        namespace/name or, if its node did not confirm its end, a sentence.

        :raises ApiError: the API server cannot be reached, or refuses
        """
        return self._removal.remove()

    def await_api(self) -> None:
        """Wait until the API server answers, at most ``pod_seconds`` of the plan. Call this before a measurement is
        repeated: without the API server, it would fail even on a good fabric.
        """
        since = self._clock()
        with self._asking:
            while self._answered < since and not self._over and self._clock() < since + self._plan.pod_seconds:
                try:
                    self._cluster.version()
                except ApiError as error:
                    if may_return(error):
                        self._pause(1.0)
                        continue
                self._answered = self._clock()

    def leave(self) -> None:
        """Close the connections to the pods, and open no further ones. The pods remain."""
        self._over = True
        for shell in list(self._shells.values()):
            shell.close()

    def end(self) -> tuple[str, ...]:
        """Close the connections, remove the pods, and return a text about each pod that may still run: its
        namespace/name, or a sentence. An error of the API server is returned as such a text instead of being raised, so
        that it does not hide the results.
        """
        self.leave()
        end = self._clock() + self._plan.pod_seconds
        while True:
            try:
                self.remove()
                return tuple(sorted((*self._removal.forced, *map(name_with_namespace, self._removal.list_pods()))))
            except ApiError as error:
                if not may_return(error) or self._clock() >= end:
                    return (f"unknown: {error}",)
            self._pause(1.0)

    def fate(self, *pods: RdmaPod) -> typing.Optional[Failure]:
        """Read the current state of some pods from the API server. Return the failure of the first pod that is gone or
        no longer ready, because it was evicted or deleted, or its node is lost. Return None otherwise. A pod that
        cannot be read is skipped.

        :param pods: pods of this run
        """
        for item in pods:
            try:
                found = self._cluster.get("Pod", item.namespace, item.name)
                if not self._is_ours(found):
                    return make_failure(item, DELETED)
                stand = state_of_pod(found)
            except ApiError as error:
                if error.absent:
                    return make_failure(item, DELETED)
                continue
            detail = explain_unready(stand)
            if detail:
                return make_failure(item, detail)
        return None
