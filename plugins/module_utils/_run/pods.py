# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole life of the pods that measure: started, awaited, looked into, told apart by rail, and removed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
import typing

from .._check.bandwidth.addresses import find_announced_twice, why_outside
from .._check.controllers.image_pull import names_cause
from .._check.network.wait.sriov import GRACE
from .._model.bandwidth import RdmaPod
from .._model.boundary.form import shown
from .._model.errors import wrap_unforeseen
from .._model.intent import ClusterIntent, Fabric
from .._model.kubernetes import ClusterNode, CommandResult
from .._model.measuring import NAMESPACE, Refusal
from .._model.operand import OperandError, operand
from .._model.profiles import carries_rdma, resource_of
from .._model.profiles import list_rails as fabric_rails
from .._model.text import both_ends, folded
from .._observe.kubernetes import ApiError, Clock, Cluster, Resource, Shell
from .._parse.kubernetes import core as kubernetes
from .._parse.kubernetes import multus
from .._parse.kubernetes.foreign import is_made_pod
from .._parse.kubernetes.pod_state import PodState, state_of_pod
from .._parse.kubernetes.resource import ResourceError, name_of
from .._parse.pods import probe as pod_probe
from .._parse.pods.failure import Failure, classify
from .._plan.observed import Rails
from .._render import commands
from .._render.names import FABRIC_LABEL, MANAGED_BY, RUN_LABEL
from .._render.pods import CONTAINER, LIFETIME_SECONDS, pod
from .client_server import find_failure
from .finalizers import take_off
from .watch import Change, WatchFeed

Say = typing.Callable[[str], None]

#: a pod with its resource, which is empty where it is not known
PodOfNode = tuple[RdmaPod, Resource]

SELECTOR = ",".join([*(f"{key}={value}" for key, value in MANAGED_BY.items()), FABRIC_LABEL])
#: seconds of the look into a pod, at least
PROBE_LIMIT = 30
#: the part of ``pod_seconds`` that the look into a pod may take: who waits longer for pods has slower nodes
_LOOK_PART = 0.2
#: how many times ``pod_seconds`` the pods of one node may take, over all rounds in which its rails are looked for
_DRAWS = 2
#: the part of ``pod_seconds`` for which whole nodes are awaited once the pods of more than half of them are ready, and
#: how many times the seconds that these took
_LATE_PART, _LATE_TIMES = 1 / 3, 2
#: seconds after which a pod that does not go is looked at: does its node live
LOST_SECONDS = 15.0
#: seconds that pods have to go, at most: they get one second to end, and the rest is the work of their node
GONE_SECONDS = 120.0
#: seconds between two messages of the wait for pods
TOLD_SECONDS = 60.0
#: nodes that such a message names
_TOLD_NODES = 8
#: attempts of that look whose connection broke: the node may be lost, and not the API server
_LOOKS = 3
#: finalizers of one pod that are named
_FINALIZERS = 3
#: events of one pod that are read: the API server joins those that repeat
_EVENTS = 200
#: reason of a pod that the kubelet ended after its activeDeadlineSeconds
_OVERDUE = "DeadlineExceeded"
#: why a run in check mode has no pods
NOT_CHECKED = "in check mode no pod is started"


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is measured.

    :ivar nodes: names of the nodes
    :ivar rails: which HCA is on which rail. A node that is missing has one rail, of whatever HCA
    :ivar parallel: pairs that are measured at once, at most
    :ivar pod_seconds: limit of the wait for the pods. Their removal takes as long at most, and ``GONE_SECONDS``
    :ivar run: who owns the pods
    :ivar refused: fabrics on which no pod may measure, by name
    """

    fabrics: tuple[Fabric, ...]
    cluster: ClusterIntent
    nodes: tuple[str, ...]
    rails: Rails = dataclasses.field(default_factory=dict)
    parallel: int = 512
    pod_seconds: float = 300.0
    run: str = ""
    refused: typing.Mapping[str, Refusal] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def workers(parallel: int) -> typing.Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Threads for work on so many pods at once."""
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(1, parallel))
    try:
        yield pool
    except BaseException:
        # an interrupt: do not wait for what runs, it ends with its pods
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def lacking(resource: str, node: str, known: typing.Mapping[str, ClusterNode]) -> str:
    """Why a node can have no pod that asks for a resource."""
    if node not in known:
        return "the cluster knows no such node"
    why = known[node].not_ready
    return f"the node offers no {resource}{f'; it is not ready: {why}' if why else ''}"


def unstarted(plan: Plan, reason: str) -> tuple[RdmaPod, ...]:
    """The pods of a run that starts none."""
    return tuple(item for fabric in plan.fabrics for item in _unstarted(plan, fabric, reason))


def _unstarted(plan: Plan, fabric: Fabric, reason: str, cause: str = "") -> typing.Iterator[RdmaPod]:
    for node in plan.nodes:
        for rail in fabric_rails(fabric):
            yield RdmaPod(fabric.name, node, "", NAMESPACE, error=reason, rail=rail, cause=cause)


def away(error: ApiError) -> bool:
    """Whether the API server may be back in a moment."""
    return error.status == 0 or error.passing


#: of a pod that is not there
_DELETED = "was deleted"


def _unready(stand: PodState) -> str:
    """Of a pod that was ready before; empty where it still is."""
    if stand.phase == "ready":
        return ""
    return "it is ready no more, as when its node is lost" if stand.phase == "waiting" else stand.detail


def _lost(item: Resource, dropped: bool) -> str:
    try:
        return _DELETED if dropped else _unready(state_of_pod(item))
    except Exception as error:
        # one thread hears of all pods, and the kubelet of one node wrote this
        return str(wrap_unforeseen(error, "the status of the pod"))


def _node_of(item: Resource) -> str:
    """Name of the node of a pod; empty until it has one."""
    return str((item.get("spec") or {}).get("nodeName") or "")


def _note_leaving(leaving: dict[str, str], change: Change) -> None:
    """Keep the nodes of pods that were deleted and have not ended yet, by their uid."""
    for item in change.items:
        uid = str(item["metadata"].get("uid"))
        if change.action != "drop" and item["metadata"].get("deletionTimestamp"):
            leaving[uid] = _node_of(item)
        else:
            leaving.pop(uid, None)


def _title(item: Resource) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _held_by_finalizers(item: Resource) -> str:
    """What keeps the object of a pod of ours, and what helps: this collection gives pods no finalizer, and the kubelet
    of its node may have."""
    found = item["metadata"].get("finalizers")
    if not isinstance(found, list) or not found:
        return ""
    names = ", ".join(map(shown, found[:_FINALIZERS]))
    more = f" and {len(found) - _FINALIZERS} more" if len(found) > _FINALIZERS else ""
    patch = """--type merge -p '{"metadata":{"finalizers":null}}'"""
    command = f"kubectl patch pod {name_of(item)} -n {item['metadata']['namespace']} {patch}"
    return f"; its finalizers {names}{more} keep it, until: {command}"


def _host_of(event: Resource) -> str:
    """The node of who wrote an Event; empty where it does not say, as those of the scheduler and of multus. Who may
    write one chooses all of it."""
    source = event.get("source")
    host = source.get("host") if isinstance(source, dict) else ""
    if not host and event.get("reportingComponent") == "kubelet":
        host = event.get("reportingInstance")
    return str(host or "")


def _gone(item: RdmaPod, detail: str) -> Failure:
    joint = " " if detail == _DELETED else ": "
    return Failure(
        "deadline" if _OVERDUE in detail else "pod_gone", f"the pod {item.name} on {item.node}{joint}{detail}"[:300]
    )


class Pods:
    """The pods of one run.

    Whoever works with them holds the Lease of the cluster (_lease.py). So no other run is alive, and the pods of others
    are those of dead ones.
    """

    def __init__(
        self, cluster: Cluster, plan: Plan, clock: Clock, pause: typing.Callable[[float], None], say: Say
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._say = say
        #: the threads of an interrupted run open no further connection
        self._over = False
        #: by the pod's name; a pod is in one measurement at a time, so that no two threads share one
        self._shells: dict[str, Shell] = {}
        #: likewise: what somebody else makes under such a name is not ours to delete
        self._uids: dict[str, str] = {}
        #: one thread asks for all whether the API server is back, and when it last was
        self._asking = threading.Lock()
        self._answered = 0.0
        #: names of pods of all rails of a node that were ready
        self._whole: set[str] = set()
        #: why a pod is ready no more that was, by its name; and where that is heard
        self._gone: dict[str, str] = {}
        self._heard: typing.Optional[WatchFeed] = None
        #: pods whose objects were deleted although nothing says that they ended
        self._forced: list[str] = []

    @property
    def _gone_seconds(self) -> float:
        """Limit of the removal of pods. A long wait for images is no reason to wait as long for a node that doesn't end
        its pod."""
        return min(self._plan.pod_seconds, GONE_SECONDS)

    @functools.cached_property
    def _nodes(self) -> typing.Mapping[str, ClusterNode]:
        """The cluster's nodes by name, read once for all fabrics."""
        return {node.name: node for node in map(kubernetes.node, self._cluster.list("Node").items)}

    def start(self, pool: concurrent.futures.Executor, fabric: Fabric, seconds: float = 0.0) -> tuple[RdmaPod, ...]:
        """One pod a node and rail of the fabric, or why there is none.

        :param seconds: that their work takes at most
        """
        refusal = self._plan.refused.get(fabric.name)
        if refusal is not None:
            return tuple(_unstarted(self._plan, fabric, refusal.text, refusal.cause))
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
                error = lacking(wanted, name, known)
                pods += [
                    RdmaPod(fabric.name, name, "", fabric.network.namespace, error=error, rail=rail)
                    for rail in fabric_rails(fabric)
                ]
        pods += self._draw(pool, fabric, {name: number for name, number in offered.items() if number}, seconds)
        self._listen()
        return tuple(pods)

    def _listen(self) -> None:
        """Begin to hear which pods are lost, once."""
        if self._heard is None:
            self._heard = self._feed()
            self._heard.start()
            threading.Thread(target=self._hear, args=(self._heard,), daemon=True).start()

    def _feed(self) -> WatchFeed:
        """News of pods. In other namespaces tenants give names and labels as they like."""
        return WatchFeed(self._cluster, {"Pod": NAMESPACE}, ("Pod",), SELECTOR, only={"Pod": is_made_pod})

    def _is_ours(self, found: Resource) -> bool:
        """Whether it is a pod that this run has made, and not another one of that name."""
        uid = found["metadata"].get("uid")
        return uid is not None and uid == self._uids.get(name_of(found))

    def _hear(self, feed: WatchFeed) -> None:
        """Which pods are lost in the middle. A node that dies ends no connection, and each command there would be
        awaited to the end of its time."""
        while not self._over:
            change = feed.get(1.0)
            for item in change.items if change is not None and change.action in ("replace", "put", "drop") else ():
                if not self._is_ours(item):
                    continue
                name, detail = name_of(item), _lost(item, change is not None and change.action == "drop")
                if detail and (name in self._shells or name in self._whole):
                    self._gone[name] = detail
                elif not detail:
                    self._gone.pop(name, None)
        feed.stop()

    def gone(self, *pods: RdmaPod) -> typing.Optional[Failure]:
        """Whether one of these pods was ready and is so no more, as far as that was heard."""
        found = next(((item, self._gone[item.name]) for item in pods if item.name in self._gone), None)
        return _gone(*found) if found is not None else None

    def discard(self, pool: concurrent.futures.Executor, pods: typing.Iterable[RdmaPod]) -> None:
        """Have pods go that are of no more use, and wait for none of them. What cannot be deleted now is deleted with
        the others at the end."""
        list(pool.map(self._discard, [item for item in pods if item.name]))

    def _draw(
        self, pool: concurrent.futures.Executor, fabric: Fabric, offered: typing.Mapping[str, int], seconds: float
    ) -> list[RdmaPod]:
        """A pod for each rail of each node.

        Whose virtual function a pod gets is the device plugin's choice. So as many pods are started as a node has HCAs,
        and again as many, until each rail has one: with V functions on each of H HCAs, (H - 1) x V + 1 pods have them
        all. Those that are too many go at once.
        """
        hcas = fabric_rails(fabric).stop
        most = {
            name: min(number, (hcas - 1) * max(1, fabric.virtual_functions) + 1) for name, number in offered.items()
        }
        held: dict[str, list[RdmaPod]] = {name: [] for name in offered}
        # each round waits for the slowest of its nodes: one that takes its time in each of them ends its own draw
        spent = dict.fromkeys(offered, 0.0)
        while True:
            tasks = [
                (name, len(pods) + number)
                for name, pods in held.items()
                # a pod that cannot be used ends the draw: more of them would fare no better
                if not any(item.error for item in pods) and len({item.rail for item in pods}) < hcas
                if spent[name] < self._draw_seconds
                for number in range(min(hcas, most[name] - len(pods)))
            ]
            if not tasks:
                break
            made = list(pool.map(lambda task: self._create(fabric, task[0], task[1], seconds), tasks))
            ready = self._await_ready([item for item in made if not item.error], spent)
            looked = dict(zip(ready, pool.map(lambda entry: self._look_or_not(fabric, *entry), ready.values())))
            slowest: dict[str, float] = {}
            for item, took in looked.values():
                slowest[item.node] = max(took, slowest.get(item.node, 0.0))
            for name, took in slowest.items():
                spent[name] += took
            for item in made:
                held[item.node].append(looked[item.name][0] if item.name in looked else item)
        # whose it is cannot be told, and what goes to it would be measured as if it went to the other
        told = find_announced_twice(item for pods in held.values() for item in pods)
        for name, pods in held.items():
            held[name] = [
                dataclasses.replace(item, error=told[item.name], cause="address") if item.name in told else item
                for item in pods
            ]
        chosen = [
            self._choose(fabric, name, rail, pods, spent[name])
            for name, pods in held.items()
            for rail in fabric_rails(fabric)
        ]
        used = {item.name for item in chosen}
        surplus = [item for pods in held.values() for item in pods if item.name not in used]
        self.discard(pool, surplus)
        return chosen

    @property
    def _draw_seconds(self) -> float:
        """Limit of the pods of one node, over all rounds of a draw."""
        return _DRAWS * self._plan.pod_seconds

    def _choose(self, fabric: Fabric, node: str, rail: int, pods: typing.Sequence[RdmaPod], spent: float) -> RdmaPod:
        """The pod of one rail, or why there is none."""
        broken = next((item for item in pods if item.error), None)
        mine = next((item for item in pods if item.rail == rail and not item.error), None)
        if mine is not None:
            return mine
        if broken is not None:
            return dataclasses.replace(broken, rail=rail)
        of = ", ".join(
            address for address, number in self._plan.rails.get(fabric.name, {}).get(node, {}).items() if number == rail
        )
        error = (
            f"none of the {len(pods)} virtual functions that pods got there is of rail {rail}, HCA {of or 'not known'}"
        )
        if spent >= self._draw_seconds:
            error += f"; no more were started, since its pods took {spent:.0f} s"
        return RdmaPod(fabric.name, node, "", fabric.network.namespace, error=error, rail=rail, cause="rail")

    def start_whole(
        self, pool: concurrent.futures.Executor, fabric: Fabric, wanted: typing.Mapping[str, Resource]
    ) -> list[PodOfNode]:
        """Start a pod on each node that takes all of its rails; return each with its resource, or with the reason why
        it can't be used.

        :param wanted: the pod of each node
        """
        refusal = self._plan.refused.get(fabric.name)
        if refusal is not None:
            return [
                (RdmaPod(fabric.name, node, "", NAMESPACE, error=refusal.text, cause=refusal.cause), {})
                for node in wanted
            ]
        made = list(pool.map(lambda node: self._create_as(fabric, node, wanted[node]), wanted))
        ready = self._await_ready([item for item in made if not item.error], together=True)
        self._whole.update(name for name, (item, _found) in ready.items() if not item.error)
        self._listen()
        return [ready.get(item.name, (item, {})) for item in made]

    def _create(self, fabric: Fabric, node: str, number: int, seconds: float) -> RdmaPod:
        """Make a pod of one rail."""
        lifetime = max(LIFETIME_SECONDS, int(seconds + self._plan.pod_seconds))
        return self._create_as(fabric, node, pod(fabric, self._plan.cluster, node, number, self._plan.run, lifetime))

    def _create_as(self, fabric: Fabric, node: str, wanted: Resource) -> RdmaPod:
        """Make a pod. What an API server that is away says of it counts only when it does not come back in
        ``pod_seconds``."""
        result = RdmaPod(fabric.name, node, name_of(wanted), fabric.network.namespace)
        end, lost = self._clock() + self._plan.pod_seconds, False
        while True:
            try:
                self._uids[result.name] = self._made(wanted, lost)["metadata"]["uid"]
                return result
            except ApiError as error:
                # the API server answers so as long as a webhook does not, which is a cause to be told, and at once
                if not away(error) or "webhook" in error.text or self._over or self._clock() >= end:
                    if error.status == 0:
                        raise
                    if error.reason == "AlreadyExists":
                        return self._taken(result, error)
                    return dataclasses.replace(result, error=error.text, cause="refused")
            lost = True
            self._pause(1.0)
            self.await_api()

    def _taken(self, item: RdmaPod, error: ApiError) -> RdmaPod:
        """Why its name is taken: by a pod of an earlier run, or by what a kubelet shows of its own files, which no
        deletion ends."""
        try:
            found = self._cluster.get("Pod", item.namespace, item.name)
        except ApiError:
            found = {}
        if is_made_pod(found):
            return dataclasses.replace(item, error=error.text, cause="stuck")
        return dataclasses.replace(
            item,
            error=f"the kubelet of node {_node_of(found) or 'unknown'} shows a mirror pod {item.name}",
            cause="taken",
        )

    def _made(self, wanted: Resource, lost: bool) -> Resource:
        """The pod once it is there.

        :param lost: the answer to an earlier request for it got lost, so that it may have been made then: it carries
            the label of this run. So may a mirror pod, by which the kubelet of another node would answer for this one
        """
        try:
            return self._cluster.create(wanted)
        except ApiError as error:
            if not lost or error.reason != "AlreadyExists":
                raise
            metadata = wanted["metadata"]
            found = self._cluster.get("Pod", metadata["namespace"], metadata["name"])
            run = metadata["labels"].get(RUN_LABEL)
            labels = found["metadata"].get("labels") or {}
            if (
                run is None
                or labels.get(RUN_LABEL) != run
                or found["metadata"].get("deletionTimestamp")
                or not is_made_pod(found)
            ):
                raise
            return found

    def _await_ready(
        self,
        pods: typing.Sequence[RdmaPod],
        spent: typing.Optional[dict[str, float]] = None,
        together: bool = False,
    ) -> dict[str, tuple[RdmaPod, Resource]]:
        """Each pod with its resource once it is ready, or with the error that kept it from there.

        :param spent: seconds that the pods of each node took before; what they take now is added
        :param together: once most are ready, the others have little more time: one kubelet holds all up otherwise
        """
        done: dict[str, tuple[RdmaPod, Resource]] = {}
        if not pods:
            return done
        seen: dict[str, Resource] = {}
        since: dict[str, tuple[str, float]] = {}
        leaving: dict[str, str] = {}
        start = self._clock()
        before = dict(spent or {})
        ends = {
            item.node: start + min(self._plan.pod_seconds, self._draw_seconds - before.get(item.node, 0.0))
            for item in pods
        }
        tell, most_ready = start + TOLD_SECONDS, not together
        feed = self._feed()
        feed.start()
        try:
            while len(done) < len(pods):
                now = self._clock()
                for item in pods:
                    if item.name not in done:
                        try:
                            over = now >= ends[item.node]
                            self._judge_pod(item, seen.get(item.name), since, leaving.values(), now, over, done)
                        except Exception as error:
                            # the kubelet of one node wrote it
                            done[item.name] = (
                                dataclasses.replace(item, error=str(wrap_unforeseen(error, "the status of the pod"))),
                                {},
                            )
                        if spent is not None:
                            spent[item.node] = before[item.node] + now - start
                if len(done) == len(pods):
                    break
                if not most_ready and 2 * sum(not item.error for item, _found in done.values()) > len(pods):
                    most_ready = True
                    last = now + max(_LATE_PART * self._plan.pod_seconds, _LATE_TIMES * (now - start))
                    ends = {node: min(last, end) for node, end in ends.items()}
                end = max(ends[item.node] for item in pods if item.name not in done)
                if now >= tell:
                    tell = now + TOLD_SECONDS
                    late = list(dict.fromkeys(item.node for item in pods if item.name not in done))
                    self._say(
                        f"{pods[0].fabric}: waits for the pods of {folded(late, _TOLD_NODES)}, {end - now:.0f} s at"
                        " most"
                    )
                # all that came in the meantime, and then one look: thousands of pods change at the same time
                change = feed.get(min(5.0, max(0.0, end - now)))
                while change is not None:
                    if change.action == "replace":
                        seen, leaving = {}, {}
                    if change.action != "error":
                        seen.update((name_of(found), found) for found in change.items if self._is_ours(found))
                        _note_leaving(leaving, change)
                    change = feed.get(0.0)
        finally:
            feed.stop()
        return done

    def _judge_pod(
        self,
        item: RdmaPod,
        found: typing.Optional[Resource],
        since: dict[str, tuple[str, float]],
        leaving: typing.Collection[str],
        now: float,
        over: bool,
        done: dict[str, tuple[RdmaPod, Resource]],
    ) -> None:
        if found is None:
            if over:
                done[item.name] = (dataclasses.replace(item, error="the API server does not show the pod"), {})
            return
        stand, node = state_of_pod(found), _node_of(found)
        if node not in ("", item.node):
            done[item.name] = (
                dataclasses.replace(item, error=f"the pod is on node {node}; expected {item.node}", cause="taken"),
                found,
            )
            return
        if stand.phase == "ready":
            self._say(f"{item.fabric} {item.node}: pod is ready")
            done[item.name] = (item, found)
            return
        suspect, start = since.get(item.name, ("", now))
        # pods of an earlier fabric that are about to go hold its place on the node: a busy node takes its time with
        # them
        if suspect != stand.suspect or (stand.suspect == "unschedulable" and item.node in leaving):
            start = now
        since[item.name] = (stand.suspect, start)
        patience_over = bool(stand.suspect) and now - start >= GRACE[stand.suspect][0]
        if stand.phase == "failed" or over or patience_over:
            event = self._last_warning(item)
            error = f"the pod did not become ready: {stand.detail}{'; ' + event if event else ''}"
            self._say(f"{item.fabric} {item.node}: {error}")
            # a container that cannot even start says so in the runtime's words
            words = classify(None, False, stand.detail)
            cause = stand.suspect or ("no_tool" if words and words.kind == "no_tool" else "")
            done[item.name] = (dataclasses.replace(item, error=error, cause=cause), found)

    def _last_warning(self, item: RdmaPod) -> str:
        """What the kubelet says of it: a failing CNI shows only in events."""
        try:
            fields = f"involvedObject.kind=Pod,involvedObject.name={item.name},type=Warning"
            events = self._cluster.list("Event", item.namespace, fields=fields, most=_EVENTS).items
        except ApiError:
            return ""
        mine = [
            event
            for event in events
            if event.get("type") == "Warning"
            and (event.get("involvedObject") or {}).get("name") == item.name
            and _host_of(event) in ("", item.node)
        ]
        told = [event for event in mine if names_cause(str(event.get("message") or ""))]
        last = max(
            told or mine,
            key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""),
            default=None,
        )
        if last is None:
            return ""
        # each kubelet may write an Event about a pod of another node
        who = "" if _host_of(last) else "an Event says: "
        return f"{who}{last.get('reason')}: {both_ends(str(last.get('message')))}"

    def _look_or_not(self, fabric: Fabric, item: RdmaPod, found: Resource) -> tuple[RdmaPod, float]:
        """A look, and its seconds. What nobody foresaw in what the pod shows is an error of this pod."""
        begun = self._clock()
        try:
            item = self._look(fabric, item, found)
        except Exception as error:
            item = dataclasses.replace(item, error=str(wrap_unforeseen(error, "the look into the pod")))
        return item, self._clock() - begun

    def _look(self, fabric: Fabric, item: RdmaPod, found: Resource) -> RdmaPod:
        """Find the RDMA device of the pod's virtual function, its address, its rail and its rates."""
        if item.error:
            return item
        network = (found["metadata"].get("annotations") or {}).get("k8s.v1.cni.cncf.io/networks", "")
        try:
            interface, address, pci = (
                multus.network_interface(found, network) if network else multus.own_interface(found)
            )
            address = operand(address, f"pod {item.name}: the address")
            outside = why_outside(fabric, address) if network else ""
            if outside:
                return dataclasses.replace(item, error=outside, cause="address")
            pci = pci or self._shared_function(fabric, item.node)
            greeting = self._greeting(item, pci or "")
        except (ResourceError, ApiError, OperandError) as error:
            return dataclasses.replace(item, error=str(error))
        failure = find_failure(greeting)
        if failure is not None:
            failure = self.fate(item) or failure
            silent = failure.kind == "hang"
            evidence = f"its shell said nothing for {self._look_seconds:.0f} s" if silent else failure.evidence
            return dataclasses.replace(
                item, error=f"no look into the pod: {evidence}", cause="silent" if silent else failure.kind
            )
        probe = pod_probe.parse(greeting.output)
        device, problem = None, ""
        try:
            device = operand(probe.device(interface, pci), f"pod {item.name}: the RDMA device")
        except OperandError as error:
            return dataclasses.replace(item, error=str(error))
        except pod_probe.ProbeError as error:
            problem = str(error)
        tcp = device is None and not carries_rdma(fabric)
        lacks = [tool for tool in probe.missing if tool in (commands.TCP_NEEDED if tcp else commands.NEEDED)]
        if lacks:
            return dataclasses.replace(
                item, error=f"the image {fabric.pods.image} has no {', '.join(lacks)}", cause="no_tool"
            )
        if problem and not tcp:
            return dataclasses.replace(item, error=problem, cause="no_device")
        pci = pci or next(iter(probe.addresses), "")
        bound = probe.binding(pci)
        return self._on_rail(
            fabric,
            dataclasses.replace(
                item,
                device=device,
                address=address,
                pci=pci or None,
                interface=interface,
                rate_gbps=probe.rates.get(device or ""),
                pcie_gbps=probe.pcie.get(pci),
                physical_function=probe.functions.get(pci),
                cpus=bound.cpus,
                binding=bound.text,
                far_cpus=bound.far,
            ),
        )

    def _greeting(self, item: RdmaPod, pci: str) -> CommandResult:
        """What the pod's shell says first. An API server that went away meanwhile is awaited, and the pod asked anew.

        :raises ApiError: the pod is not there or does not run
        """
        for left in reversed(range(_LOOKS)):
            try:
                greeting = self.shell(item, pci).wait(self._look_seconds)
                failure = find_failure(greeting)
                if not left or failure is None or failure.kind != "exec_lost":
                    break
            except ApiError as error:
                if not left or not away(error):
                    raise
            self.await_api()
        return greeting

    @property
    def _look_seconds(self) -> float:
        """Limit of the look into a pod."""
        return max(PROBE_LIMIT, _LOOK_PART * self._plan.pod_seconds)

    def _shared_function(self, fabric: Fabric, node: str) -> typing.Optional[str]:
        """PCI address of the one function whose RDMA device all pods of a node share; the interface in the pod has none
        of its own."""
        return (
            next(iter(self._plan.rails.get(fabric.name, {}).get(node, {})), None)
            if fabric.profile == "rdma_shared"
            else None
        )

    def _on_rail(self, fabric: Fabric, item: RdmaPod) -> RdmaPod:
        """The pod with the rail of its HCA. Where nodes have one HCA it needs no name, but if both are known they must
        agree."""
        rails = self._plan.rails.get(fabric.name, {}).get(item.node, {})
        if fabric_rails(fabric).stop == 1 and not (rails and item.physical_function):
            return item
        # a function that a pod gets as a whole is the HCA itself
        function = item.physical_function or item.pci
        if function in rails:
            return dataclasses.replace(item, rail=rails[function])
        error = f"its virtual function {item.pci} is of {item.physical_function or 'no HCA that sysfs names'}"
        return dataclasses.replace(
            item, error=f"{error}; HCAs of this fabric on the node: {', '.join(rails) or 'none known'}", cause="rail"
        )

    def shell(self, item: RdmaPod, pci: str = "") -> Shell:
        """The connection to a pod; one that broke is made anew.

        :raises ApiError: the pod is not there or does not run
        """
        if self._over:
            raise ApiError(0, "Interrupted", "the run is over", f"exec in pod {item.name}")
        shell = self._shells.get(item.name)
        if shell is None or not shell.open:
            shell = self._shells[item.name] = self._cluster.shell(
                item.namespace, item.name, CONTAINER, commands.render_shell(pci), self._clock
            )
        return shell

    def _discard(self, item: RdmaPod) -> None:
        shell = self._shells.pop(item.name, None)
        if shell is not None:
            shell.close()
        uid = self._uids.get(item.name)
        # one that could not be made, and whatever has its name
        if uid is not None:
            with contextlib.suppress(ApiError):
                self._cluster.delete("Pod", item.namespace, item.name, grace_seconds=1, only={"uid": uid})

    def _there(self) -> tuple[Resource, ...]:
        """All pods of measurements. Pods of other namespaces that have their labels are those of tenants, or of an
        earlier release: a teardown finds these.

        Mirror pods are what a kubelet shows, and makes anew whenever they are deleted.
        """
        return self._cluster.list("Pod", NAMESPACE, SELECTOR, only=is_made_pod).items

    def remove(self) -> tuple[str, ...]:
        """Delete all pods of this run, and of those that are no more, and wait until they are gone; the names of those
        that were there.

        One that does not go in time is deleted without the word of its node, so that no node ends the measurement of
        all others.
        """
        found = self._there()
        for item in found:
            # those of the last fabric are on their way already
            if not item["metadata"].get("deletionTimestamp"):
                metadata = item["metadata"]
                self._cluster.delete(
                    "Pod", metadata["namespace"], metadata["name"], grace_seconds=1, only={"uid": metadata["uid"]}
                )
        end, look, left = self._clock() + self._gone_seconds, self._clock() + LOST_SECONDS, found
        while left and self._clock() < end:
            self._pause(1.0)
            left = self._there()
            if left and self._clock() >= look:
                look = self._clock() + LOST_SECONDS
                self._let_go(left)
        forced = {item["metadata"]["uid"]: self._force(item) for item in left}
        return tuple(sorted(forced.get(item["metadata"]["uid"]) or _title(item) for item in found))

    def _force(self, item: Resource) -> str:
        """Delete the object of a pod that does not go, whatever its node says; what is to be told of it."""
        metadata, node = item["metadata"], (item.get("spec") or {}).get("nodeName")
        self._cluster.delete(
            "Pod", metadata["namespace"], metadata["name"], grace_seconds=0, only={"uid": metadata["uid"]}
        )
        seconds = f"{self._gone_seconds:.0f} s"
        held = _held_by_finalizers(item)
        if held and metadata["uid"] in take_off(
            self._cluster, NAMESPACE, SELECTOR, lambda found: found["metadata"]["uid"] == metadata["uid"]
        ):
            held = "; its finalizers, which this collection gives to no pod, were taken off"
        told = (
            f"{_title(item)} (deleted after {seconds} without the word of its node {node}, where it may still run and"
            f" hold its virtual function{held})"
        )
        self._say(told)
        self._forced.append(told)
        return told

    def _let_go(self, left: typing.Iterable[Resource]) -> None:
        """Delete the objects of pods whose nodes are lost, for nobody is there who says that they ended: a kubelet that
        comes back ends what has no object."""
        living = {node.name for node in map(kubernetes.node, self._cluster.list("Node").items) if node.ready}
        for item in left:
            metadata, node = item["metadata"], (item.get("spec") or {}).get("nodeName")
            if node and node not in living:
                self._say(f"{node} is lost: its pod {metadata['name']} is deleted without its word")
                self._cluster.delete(
                    "Pod", metadata["namespace"], metadata["name"], grace_seconds=0, only={"uid": metadata["uid"]}
                )

    def await_api(self) -> None:
        """Wait until the API server answers, at most ``pod_seconds``: what is tried while it is away would say
        nothing."""
        since = self._clock()
        with self._asking:
            while self._answered < since and not self._over and self._clock() < since + self._plan.pod_seconds:
                try:
                    self._cluster.version()
                except ApiError as error:
                    if away(error):
                        self._pause(1.0)
                        continue
                self._answered = self._clock()

    def leave(self) -> None:
        """Close the connections; the pods stay."""
        self._over = True
        for shell in list(self._shells.values()):
            shell.close()

    def end(self) -> tuple[str, ...]:
        """Close the connections and remove the pods: what is still there afterwards. An API server that is away then
        must not hide what was measured."""
        self.leave()
        end = self._clock() + self._plan.pod_seconds
        while True:
            try:
                self.remove()
                return tuple(sorted((*self._forced, *map(_title, self._there()))))
            except ApiError as error:
                if not away(error) or self._clock() >= end:
                    return (f"not known: {error}",)
            self._pause(1.0)

    def fate(self, *pods: RdmaPod) -> typing.Optional[Failure]:
        """Whether a pod of a failed pair is gone or on its way out: evicted, deleted, its node lost. Then that is the
        failure."""
        for item in pods:
            try:
                found = self._cluster.get("Pod", item.namespace, item.name)
                if not self._is_ours(found):
                    return _gone(item, _DELETED)
                stand = state_of_pod(found)
            except ApiError as error:
                if error.absent:
                    return _gone(item, _DELETED)
                continue
            detail = _unready(stand)
            if detail:
                return _gone(item, detail)
        return None


def sweep(
    cluster: Cluster, seconds: float, clock: Clock, pause: typing.Callable[[float], None], say: Say = lambda line: None
) -> tuple[str, ...]:
    """Remove the pods of an earlier run before its namespace: a namespace does not go before its pods, and their nodes
    may be lost.

    :param seconds: that their removal may take
    :returns: namespace and name of those that were there
    :raises ApiError: the server cannot be reached
    """
    return Pods(cluster, Plan((), ClusterIntent(), (), pod_seconds=seconds), clock, pause, say).remove()
