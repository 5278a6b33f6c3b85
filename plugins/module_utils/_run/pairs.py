# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Measurements between pods: the pods' whole life, and rping and ib_write_bw between each two of them.

Nothing of it is judged here; a failure is kept with its kind and the line that shows it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import typing

from .._check.readiness import GRACE
from .._model.cluster import BandwidthFacts, CommandResult, PairResult, RdmaPod
from .._model.intent import Cluster as ClusterIntent
from .._model.intent import Fabric
from .._observe.kubernetes import ApiError, Clock, Cluster, Resource, Session
from .._parse import kubernetes as parse
from .._parse import perftest, pod_probe, rping
from .._parse.pod_stand import stand_of_pod
from .._parse.rdma_failure import RETRIED, Failure, classify
from .._render import commands
from .._render.names import FABRIC_LABEL, MANAGED_BY, resource
from .._render.pods import CONTAINER, pod, pod_name
from .._schedule.rounds import rounds
from .sync import WatchFeed

Say = typing.Callable[[str], None]

SELECTOR = ",".join([*(f"{key}={value}" for key, value in MANAGED_BY.items()), FABRIC_LABEL])
#: how often a client is tried while its server does not accept yet
TRIES = 5
#: seconds of a ping, of the look into a pod, of a server's start
PING_LIMIT, PROBE_LIMIT, SERVER_LIMIT = 30, 30, 20
#: seconds that the limit outside a pod is longer than the one inside
SLACK = 20
FIRST_PORT = 18600


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is measured.

    :ivar nodes: names of the nodes
    :ivar parallel: pairs of a round that are measured at once
    :ivar pod_seconds: limit of the wait for the pods, and of their removal
    """

    fabrics: typing.Tuple[Fabric, ...]
    cluster: ClusterIntent
    nodes: typing.Tuple[str, ...]
    parallel: int = 8
    pod_seconds: float = 300.0


class Bench:
    """One run: the pods live as long as it does, whatever happens in between."""

    def __init__(self, cluster: Cluster, plan: Plan, clock: Clock, pause: typing.Callable[[float], None], say: Say) -> None:
        self._cluster = cluster
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._say = say
        self._port = FIRST_PORT

    def run(self) -> BandwidthFacts:
        """Pods, measurements, removal.

        :raises ApiError: the server cannot be reached before anything was made
        """
        leftovers = self._remove()
        if leftovers:
            self._say(f"removed the pods of an interrupted earlier run: {', '.join(leftovers)}")
        pods: typing.Tuple[RdmaPod, ...] = ()
        pairs: typing.Tuple[PairResult, ...] = ()
        try:
            pods = self._start()
            pairs = self._measure(pods)
        finally:
            # also when the run is interrupted: a pod that stays holds a virtual function
            remaining = self._remove_quietly()
        return BandwidthFacts(pods, pairs, leftovers, remaining)

    # Pods

    def _start(self) -> typing.Tuple[RdmaPod, ...]:
        known = {node.name: node for node in map(parse.node, self._cluster.list("Node").items)}
        pods: typing.List[RdmaPod] = []
        for fabric in self._plan.fabrics:
            wanted = resource(self._plan.cluster.resource_prefix, fabric.resource_name)
            for name in self._plan.nodes:
                offered = known[name].allocatable.get(wanted, 0) if name in known else 0
                if offered < 1:
                    error = f"the node offers no {wanted}" if name in known else "the cluster knows no such node"
                    pods.append(RdmaPod(fabric.name, name, "", fabric.network.namespace, error=error))
                else:
                    pods.append(self._create(fabric, name))
        ready = self._await_ready([item for item in pods if not item.error])
        with self._pool() as pool:
            looked = dict(zip(ready, pool.map(self._look, ready.values())))
        return tuple(looked.get(item.name, item) if not item.error else item for item in pods)

    def _create(self, fabric: Fabric, node: str) -> RdmaPod:
        result = RdmaPod(fabric.name, node, pod_name(fabric.name, node), fabric.network.namespace)
        try:
            self._cluster.create(pod(fabric, self._plan.cluster, node))
        except ApiError as error:
            if error.status == 0:
                raise
            return dataclasses.replace(result, error=f"the API server refused the pod: {error.text}")
        return result

    def _await_ready(self, pods: typing.Sequence[RdmaPod]) -> typing.Dict[str, typing.Tuple[RdmaPod, Resource]]:
        """Each pod with its resource once it is ready, or with the error that kept it from there."""
        done: typing.Dict[str, typing.Tuple[RdmaPod, Resource]] = {}
        if not pods:
            return done
        seen: typing.Dict[str, Resource] = {}
        since: typing.Dict[str, typing.Tuple[str, float]] = {}
        end = self._clock() + self._plan.pod_seconds
        feed = WatchFeed(self._cluster, {}, ("Pod",), SELECTOR)
        feed.start()
        try:
            while len(done) < len(pods):
                now = self._clock()
                for item in pods:
                    if item.name not in done:
                        self._judge_pod(item, seen.get(item.name), since, now, now >= end, done)
                if len(done) == len(pods):
                    break
                change = feed.get(min(5.0, max(0.0, end - now)))
                if change is not None and change.action != "error":
                    if change.action == "replace":
                        seen = {}
                    for found in change.items:
                        seen[parse.name_of(found)] = found
        finally:
            feed.stop()
        return done

    def _judge_pod(
        self,
        item: RdmaPod,
        found: typing.Optional[Resource],
        since: typing.Dict[str, typing.Tuple[str, float]],
        now: float,
        over: bool,
        done: typing.Dict[str, typing.Tuple[RdmaPod, Resource]],
    ) -> None:
        if found is None:
            if over:
                done[item.name] = (dataclasses.replace(item, error="the API server does not show the pod"), {})
            return
        stand = stand_of_pod(found)
        if stand.phase == "ready":
            self._say(f"{item.fabric} {item.node}: pod is ready")
            done[item.name] = (item, found)
            return
        suspect, start = since.get(item.name, ("", now))
        if suspect != stand.suspect:
            start = now
        since[item.name] = (stand.suspect, start)
        patience_over = bool(stand.suspect) and now - start >= GRACE[stand.suspect][0]
        if stand.phase == "failed" or over or patience_over:
            event = self._last_warning(item)
            error = f"the pod did not become ready: {stand.detail}{'; ' + event if event else ''}"
            self._say(f"{item.fabric} {item.node}: {error}")
            done[item.name] = (dataclasses.replace(item, error=error), found)

    def _last_warning(self, item: RdmaPod) -> str:
        """What the kubelet says of it: a failing CNI shows only in events."""
        try:
            events = self._cluster.list("Event", item.namespace).items
        except ApiError:
            return ""
        mine = [event for event in events if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("name") == item.name]
        last = max(mine, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), default=None)
        return f"{last.get('reason')}: {str(last.get('message'))[:400]}" if last else ""

    def _look(self, entry: typing.Tuple[RdmaPod, Resource]) -> RdmaPod:
        """Find the RDMA device of the pod's virtual function, its address and its rates."""
        item, found = entry
        if item.error:
            return item
        network = (found["metadata"].get("annotations") or {}).get("k8s.v1.cni.cncf.io/networks", "")
        try:
            interface, address, pci = parse.network_interface(found, network)
            result = self._command(item, commands.probe(pci or ""), PROBE_LIMIT)
            probe = pod_probe.parse(result.stdout)
            device = probe.device(interface, pci)
        except (parse.ResourceError, pod_probe.ProbeError, ApiError) as error:
            return dataclasses.replace(item, error=str(error))
        pci = pci or next(iter(probe.addresses), None)
        return dataclasses.replace(
            item, device=device, address=address, pci=pci, interface=interface, rate_gbps=probe.rates.get(device), pcie_gbps=probe.pcie.get(pci or "")
        )

    def _remove(self) -> typing.Tuple[str, ...]:
        """Delete all pods of ours and wait until they are gone; the names of those that were there."""
        found = self._cluster.list("Pod", selector=SELECTOR).items
        for item in found:
            self._cluster.delete("Pod", item["metadata"]["namespace"], item["metadata"]["name"], grace_seconds=1)
        end = self._clock() + self._plan.pod_seconds
        while found and self._clock() < end and self._cluster.list("Pod", selector=SELECTOR).items:
            self._pause(1.0)
        return tuple(sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in found))

    def _remove_quietly(self) -> typing.Tuple[str, ...]:
        """The removal at the end: what is still there afterwards. An API server that is away then must not hide what was measured."""
        try:
            self._remove()
            left = self._cluster.list("Pod", selector=SELECTOR).items
        except ApiError as error:
            return (f"not known: {error}",)
        return tuple(sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in left))

    # Pairs

    def _measure(self, pods: typing.Sequence[RdmaPod]) -> typing.Tuple[PairResult, ...]:
        results: typing.List[PairResult] = []
        for fabric in self._plan.fabrics:
            usable = {item.node: item for item in pods if item.fabric == fabric.name and not item.error}
            with self._pool() as pool:
                for pairs in rounds(sorted(usable)):
                    # one direction after the other: both at once would share what each is asked to fill
                    for turned in (False, True):
                        tasks = [(usable[b], usable[a]) if turned else (usable[a], usable[b]) for a, b in pairs]
                        ports = [self._next_port() for _task in tasks]
                        results.extend(pool.map(lambda task, port, of=fabric: self._pair(of, task[0], task[1], port), tasks, ports))
        return tuple(results)

    @contextlib.contextmanager
    def _pool(self) -> typing.Iterator[concurrent.futures.ThreadPoolExecutor]:
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(1, self._plan.parallel))
        try:
            yield pool
        except BaseException:
            # an interrupt: do not wait for what runs, it ends with its pods
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()

    def _next_port(self) -> int:
        self._port += 2
        return self._port

    def _pair(self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int) -> PairResult:
        start = self._clock()
        result = PairResult(fabric.name, client.node, server.node)
        address = server.address or ""
        limit = min(PING_LIMIT, fabric.pods.limit_seconds)
        ran, failure = self._both(
            (server, commands.ping_server(address, port, limit)), (client, commands.ping_client(address, port, limit)), commands.PING_SERVER_UP, limit, False
        )
        pings = rping.parse(ran.stdout).count if ran else None
        log = (_line(ran),) if ran else ()
        if failure is not None:
            result = dataclasses.replace(
                result, pings=pings, ping_failure=failure.kind, ping_evidence=failure.evidence, failure="ping", evidence=failure.evidence, commands=log
            )
        else:
            result = self._bandwidth(fabric, client, server, port + 1, dataclasses.replace(result, pings=pings, commands=log))
        figure = f"{result.average_gbps:.4f} Gb/s" if result.average_gbps is not None else f"{result.failure}: {result.evidence}"
        self._say(f"{fabric.name} {client.node} -> {server.node}: {pings or 0} pings, {figure}")
        return dataclasses.replace(result, seconds=round(self._clock() - start, 1))

    def _bandwidth(self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult) -> PairResult:
        pods, address = fabric.pods, server.address or ""
        there = (server, commands.write_bandwidth(pods, server.device or "", port))
        here = (client, commands.write_bandwidth(pods, client.device or "", port, address))
        ran, failure = self._both(there, here, commands.BANDWIDTH_SERVER_UP, pods.limit_seconds, True)
        if ran:
            result = dataclasses.replace(result, commands=(*result.commands, _line(ran)))
        if failure is None and ran is not None:
            try:
                row = perftest.parse(ran.stdout).largest
            except perftest.PerftestError as error:
                return dataclasses.replace(result, failure="no_measurement", evidence=str(error))
            return dataclasses.replace(
                result, average_gbps=row.average_gbps, peak_gbps=row.peak_gbps, message_bytes=row.message_bytes, iterations=row.iterations
            )
        return dataclasses.replace(result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else "")

    def _both(
        self,
        there: typing.Tuple[RdmaPod, commands.Command],
        here: typing.Tuple[RdmaPod, commands.Command],
        up: str,
        limit: int,
        judge_server: bool,
    ) -> typing.Tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        """Run a server, and its client once the server is up. What the client did, and the failure of either.

        :param judge_server: whether the server's exit code counts; rping's does not (it fails on success)
        """
        try:
            server = self._session(*there)
            try:
                return self._client(server, here, up, limit, judge_server)
            finally:
                server.close()
        except ApiError as error:
            return None, Failure("exec_lost", str(error)[:300])

    def _client(
        self, server: Session, here: typing.Tuple[RdmaPod, commands.Command], up: str, limit: int, judge_server: bool
    ) -> typing.Tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        if not server.wait_for(up, SERVER_LIMIT) and not server.running:
            ended = server.wait(0)
            return None, classify(ended.exit_code, ended.timed_out, ended.stdout, f"{ended.stderr}{ended.error}") or Failure(
                "peer_gone", "the server ended at once"
            )
        for _number in range(TRIES):
            ran = self._command(*here, limit)
            failure = classify(ran.exit_code, ran.timed_out, ran.stdout, f"{ran.stderr}{ran.error}")
            # it said that it is about to listen: a client that came a moment too early tries again, as long as the server runs
            if failure is None or failure.kind not in RETRIED or not server.running:
                break
        if failure is None and judge_server:
            ended = server.wait(SLACK)
            failure = classify(ended.exit_code, ended.timed_out, ended.stdout, f"{ended.stderr}{ended.error}")
        return ran, failure

    def _session(self, item: RdmaPod, command: commands.Command) -> Session:
        return self._cluster.run(item.namespace, item.name, CONTAINER, command, self._clock)

    def _command(self, item: RdmaPod, command: commands.Command, limit: int) -> CommandResult:
        return self._session(item, command).wait(limit + SLACK)


def _line(result: CommandResult) -> str:
    """For the report: the command, how it ended and how long it took."""
    return f"{result.command} -> {'no exit code' if result.exit_code is None else result.exit_code} in {result.seconds:.1f} s"
