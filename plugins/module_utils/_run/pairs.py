# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Measurements between pods: the pods' whole life, and rping and ib_write_bw between each two of them, or iperf3 where they have no RDMA device.

Nothing of it is judged here but who is worth a second look; a failure is kept with its kind and the line that shows it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
import typing

from .._check.bandwidth import verdicts
from .._check.readiness import GRACE
from .._model.cluster import BandwidthFacts, CommandResult, PairResult, RdmaPod, SweepRow
from .._model.intent import Cluster as ClusterIntent
from .._model.intent import Fabric
from .._model.profiles import carries_rdma, resource_of
from .._model.profiles import rails as fabric_rails
from .._model.text import both_ends
from .._observe.kubernetes import ApiError, Clock, Cluster, Resource, Shell
from .._parse import iperf3, perftest, pod_probe, rping
from .._parse import kubernetes as parse
from .._parse.pod_stand import stand_of_pod
from .._parse.rdma_failure import RETRIED, Failure, classify
from .._render import commands
from .._render.names import FABRIC_LABEL, MANAGED_BY
from .._render.pods import CONTAINER, pod, pod_name
from .._schedule.measurements import Step, Task, again, orders, steps
from .sync import WatchFeed

Say = typing.Callable[[str], None]
Judge = typing.Callable[[CommandResult], typing.Optional[Failure]]

SELECTOR = ",".join([*(f"{key}={value}" for key, value in MANAGED_BY.items()), FABRIC_LABEL])
#: how often a client is tried while its server is not reached yet, and a pair whose connection was lost although its pods live
TRIES, ATTEMPTS = 5, 2
#: seconds of a ping, of the look into a pod, of a server's start
PING_LIMIT, PROBE_LIMIT, SERVER_LIMIT = 30, 30, 20
#: seconds that the limit outside a pod is longer than the one inside
SLACK = 20
#: seconds that the server of a failed client has to end by itself; text that it never prints; exit codes of a process that was killed
SETTLE, NEVER, KILLED = 2.0, "\0", (137, 143)
#: looks at the suspects after the rounds, at most
LOOKS = 3
#: each measurement takes the next ones: ping, bandwidth, sweep. Pods have ports of their own, so that few are enough for all
FIRST_PORT, PORTS, PORT_BLOCKS = 18600, 3, 3000

#: fabric: node: PCI address of each HCA: its rail
Rails = typing.Dict[str, typing.Dict[str, typing.Dict[str, int]]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is measured.

    :ivar nodes: names of the nodes
    :ivar rails: which HCA is on which rail. A node that is missing has one rail, of whatever HCA
    :ivar parallel: pairs that are measured at once, at most
    :ivar pod_seconds: limit of the wait for the pods, and of their removal
    """

    fabrics: typing.Tuple[Fabric, ...]
    cluster: ClusterIntent
    nodes: typing.Tuple[str, ...]
    rails: Rails = dataclasses.field(default_factory=dict)
    parallel: int = 512
    pod_seconds: float = 300.0


class Bench:
    """One run: the pods live as long as it does, whatever happens in between."""

    def __init__(self, cluster: Cluster, plan: Plan, clock: Clock, pause: typing.Callable[[float], None], say: Say) -> None:
        self._cluster = cluster
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._say = say
        self._blocks = itertools.count()
        #: the threads of an interrupted run open no further connection
        self._over = False
        #: by the pod's name; a pod is in one measurement at a time, so that no two threads share one
        self._shells: typing.Dict[str, Shell] = {}

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
        with self._pool() as pool:
            for fabric in self._plan.fabrics:
                wanted = resource_of(fabric, self._plan.cluster)
                offered = {}
                for name in self._plan.nodes:
                    # pods that ask for nothing are taken by any node
                    offered[name] = (known[name].allocatable.get(wanted, 0) if wanted else fabric_rails(fabric).stop) if name in known else 0
                    if offered[name] < 1:
                        error = f"the node offers no {wanted}" if name in known else "the cluster knows no such node"
                        pods += [RdmaPod(fabric.name, name, "", fabric.network.namespace, error=error, rail=rail) for rail in fabric_rails(fabric)]
                pods += self._draw(pool, fabric, {name: number for name, number in offered.items() if number})
        order = {name: place for place, name in enumerate(self._plan.nodes)}
        # sorted is stable: the fabrics stay in their order
        return tuple(sorted(pods, key=lambda item: (order[item.node], item.rail)))

    def _draw(self, pool: concurrent.futures.Executor, fabric: Fabric, offered: typing.Mapping[str, int]) -> typing.List[RdmaPod]:
        """A pod for each rail of each node.

        Whose virtual function a pod gets is the device plugin's choice. So as many pods are started as a node has HCAs, and again as many, until
        each rail has one: with V functions on each of H HCAs, (H - 1) x V + 1 pods have them all. Those that are too many go at once.
        """
        hcas = fabric_rails(fabric).stop
        most = {name: min(number, (hcas - 1) * max(1, fabric.virtual_functions) + 1) for name, number in offered.items()}
        held: typing.Dict[str, typing.List[RdmaPod]] = {name: [] for name in offered}
        while True:
            tasks = [
                (name, len(pods) + number)
                for name, pods in held.items()
                # a pod that cannot be used ends the draw: more of them would fare no better
                if not any(item.error for item in pods) and len({item.rail for item in pods}) < hcas
                for number in range(min(hcas, most[name] - len(pods)))
            ]
            if not tasks:
                break
            made = list(pool.map(lambda task: self._create(fabric, *task), tasks))
            ready = self._await_ready([item for item in made if not item.error])
            looked = dict(zip(ready, pool.map(lambda entry: self._look(fabric, *entry), ready.values())))
            for item in made:
                held[item.node].append(looked.get(item.name, item))
        chosen = [self._choose(fabric, name, rail, pods) for name, pods in held.items() for rail in fabric_rails(fabric)]
        used = {item.name for item in chosen}
        surplus = [item for pods in held.values() for item in pods if item.name not in used]
        list(pool.map(self._discard, surplus))
        return chosen

    def _choose(self, fabric: Fabric, node: str, rail: int, pods: typing.Sequence[RdmaPod]) -> RdmaPod:
        """The pod of one rail, or why there is none."""
        broken = next((item for item in pods if item.error), None)
        mine = next((item for item in pods if item.rail == rail and not item.error), None)
        if mine is not None:
            return mine
        if broken is not None:
            return dataclasses.replace(broken, rail=rail)
        of = ", ".join(address for address, number in self._plan.rails.get(fabric.name, {}).get(node, {}).items() if number == rail)
        error = f"none of the {len(pods)} virtual functions that pods got there is of rail {rail}, HCA {of or 'not known'}"
        return RdmaPod(fabric.name, node, "", fabric.network.namespace, error=error, rail=rail, cause="rail")

    def _create(self, fabric: Fabric, node: str, number: int) -> RdmaPod:
        result = RdmaPod(fabric.name, node, pod_name(fabric.name, node, number), fabric.network.namespace)
        try:
            self._cluster.create(pod(fabric, self._plan.cluster, node, number))
        except ApiError as error:
            if error.status == 0:
                raise
            return dataclasses.replace(result, error=error.text, cause="stuck" if error.reason == "AlreadyExists" else "refused")
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
                # all that came in the meantime, and then one look: thousands of pods change at the same time
                change = feed.get(min(5.0, max(0.0, end - now)))
                while change is not None:
                    if change.action == "replace":
                        seen = {}
                    if change.action != "error":
                        seen.update((parse.name_of(found), found) for found in change.items)
                    change = feed.get(0.0)
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
            # a container that cannot even start says so in the runtime's words
            words = classify(None, False, stand.detail)
            cause = stand.suspect or ("no_tool" if words and words.kind == "no_tool" else "")
            done[item.name] = (dataclasses.replace(item, error=error, cause=cause), found)

    def _last_warning(self, item: RdmaPod) -> str:
        """What the kubelet says of it: a failing CNI shows only in events."""
        try:
            events = self._cluster.list("Event", item.namespace).items
        except ApiError:
            return ""
        mine = [event for event in events if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("name") == item.name]
        last = max(mine, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), default=None)
        return f"{last.get('reason')}: {both_ends(str(last.get('message')))}" if last else ""

    def _look(self, fabric: Fabric, item: RdmaPod, found: Resource) -> RdmaPod:
        """Find the RDMA device of the pod's virtual function, its address, its rail and its rates."""
        if item.error:
            return item
        network = (found["metadata"].get("annotations") or {}).get("k8s.v1.cni.cncf.io/networks", "")
        try:
            interface, address, pci = parse.network_interface(found, network) if network else parse.own_interface(found)
            pci = pci or self._shared_function(fabric, item.node)
            greeting = self._shell(item, pci or "").wait(PROBE_LIMIT)
        except (parse.ResourceError, ApiError) as error:
            return dataclasses.replace(item, error=str(error))
        failure = _failure(greeting)
        if failure is not None:
            failure = self._fate(item) or failure
            return dataclasses.replace(item, error=f"no look into the pod: {failure.evidence}", cause=failure.kind)
        probe = pod_probe.parse(greeting.output)
        device, problem = None, ""
        try:
            device = probe.device(interface, pci)
        except pod_probe.ProbeError as error:
            problem = str(error)
        tcp = device is None and not carries_rdma(fabric)
        lacks = [tool for tool in probe.missing if tool in (commands.TCP_NEEDED if tcp else commands.NEEDED)]
        if lacks:
            return dataclasses.replace(item, error=f"the image {fabric.pods.image} has no {', '.join(lacks)}", cause="no_tool")
        if problem and not tcp:
            return dataclasses.replace(item, error=problem, cause="no_device")
        pci = pci or next(iter(probe.addresses), "")
        cpus, binding = probe.binding(pci)
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
                cpus=cpus,
                binding=binding,
            ),
        )

    def _shared_function(self, fabric: Fabric, node: str) -> typing.Optional[str]:
        """PCI address of the one function whose RDMA device all pods of a node share; the interface in the pod has none of its own."""
        return next(iter(self._plan.rails.get(fabric.name, {}).get(node, {})), None) if fabric.profile == "rdma_shared" else None

    def _on_rail(self, fabric: Fabric, item: RdmaPod) -> RdmaPod:
        """The pod with the rail of its HCA. Where nodes have one HCA it needs no name, but if both are known they must agree."""
        rails = self._plan.rails.get(fabric.name, {}).get(item.node, {})
        if fabric_rails(fabric).stop == 1 and not (rails and item.physical_function):
            return item
        # a function that a pod gets as a whole is the HCA itself
        function = item.physical_function or item.pci
        if function in rails:
            return dataclasses.replace(item, rail=rails[function])
        error = f"its virtual function {item.pci} is of {item.physical_function or 'no HCA that sysfs names'}"
        return dataclasses.replace(item, error=f"{error}; HCAs of this fabric on the node: {', '.join(rails) or 'none known'}", cause="rail")

    def _shell(self, item: RdmaPod, pci: str = "") -> Shell:
        """The connection to a pod; one that broke is made anew.

        :raises ApiError: the pod is not there or does not run
        """
        if self._over:
            raise ApiError(0, "Interrupted", "the run is over", f"exec in pod {item.name}")
        shell = self._shells.get(item.name)
        if shell is None or not shell.open:
            shell = self._shells[item.name] = self._cluster.shell(item.namespace, item.name, CONTAINER, commands.shell(pci), self._clock)
        return shell

    def _discard(self, item: RdmaPod) -> None:
        """A pod that is too many. What cannot be deleted now is deleted with the others at the end."""
        shell = self._shells.pop(item.name, None)
        if shell is not None:
            shell.close()
        with contextlib.suppress(ApiError):
            self._cluster.delete("Pod", item.namespace, item.name, grace_seconds=1)

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
        self._over = True
        for shell in list(self._shells.values()):
            shell.close()
        try:
            self._remove()
            left = self._cluster.list("Pod", selector=SELECTOR).items
        except ApiError as error:
            return (f"not known: {error}",)
        return tuple(sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in left))

    # Pairs

    def _measure(self, pods: typing.Sequence[RdmaPod]) -> typing.Tuple[PairResult, ...]:
        results: typing.List[PairResult] = []
        with self._pool() as pool:
            for fabric in self._plan.fabrics:
                usable = {(item.rail, item.node): item for item in pods if item.fabric == fabric.name and not item.error}
                rails = {rail: [node for number, node in usable if number == rail] for rail in fabric_rails(fabric)}
                mine: typing.List[PairResult] = []
                for step in steps(rails, fabric.bandwidth):
                    mine += self._step(pool, fabric, usable, step)
                for _number in range(LOOKS):
                    looks = again(*verdicts(fabric, tuple(usable.values()), mine), fabric.bandwidth)
                    if not looks:
                        break
                    for step in looks:
                        self._say(f"{fabric.name}: {', '.join(f'{task.client} -> {task.server}' for task in step)} again, to tell the ends apart")
                        mine += [dataclasses.replace(result, again=True) for result in self._step(pool, fabric, usable, step)]
                results += mine
        return tuple(results)

    def _step(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: typing.Mapping[typing.Tuple[int, str], RdmaPod], step: Step
    ) -> typing.List[PairResult]:
        def both(task: Task) -> typing.List[PairResult]:
            its = orders(task, fabric.bandwidth)
            return [self._pair(fabric, one, usable[one.rail, one.client], usable[one.rail, one.server], self._next_ports()) for one in its]

        return [result for results in pool.map(both, step) for result in results]

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

    def _next_ports(self) -> int:
        return FIRST_PORT + PORTS * (next(self._blocks) % PORT_BLOCKS)

    def _pair(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, port: int) -> PairResult:
        start = self._clock()
        for _attempt in range(ATTEMPTS):
            result = self._attempt(fabric, task, client, server, port)
            if "exec_lost" not in (result.failure, result.ping_failure):
                break
        figure = f"{result.average_gbps:.4f} Gb/s" if result.average_gbps is not None else f"{result.failure}: {result.evidence}"
        how = "TCP" if result.transport == "TCP" else f"{result.pings or 0} pings"
        rail = f" rail {task.rail}" if fabric.select.hcas_per_node > 1 else ""
        self._say(f"{fabric.name} {client.node} -> {server.node}{rail}: {how}, {figure}")
        return dataclasses.replace(result, seconds=round(self._clock() - start, 1))

    def _attempt(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, port: int) -> PairResult:
        """rping, then ib_write_bw, then the sweep where one is wanted; each only after the one before it worked. Without RDMA devices, iperf3 alone."""
        result = PairResult(fabric.name, client.node, server.node, rail=task.rail)
        if client.device is None or server.device is None:
            return self._tcp(fabric, client, server, port, dataclasses.replace(result, transport="TCP", streams=commands.STREAMS))
        address = server.address or ""
        limit = min(PING_LIMIT, fabric.pods.limit_seconds)
        ran, failure = self._both(
            (server, commands.ping_server(address, port, limit)), (client, commands.ping_client(address, port, limit)), commands.PING_SERVER_UP, limit, False
        )
        result = dataclasses.replace(result, pings=rping.parse(ran.output).count if ran else None, commands=(_line(ran),) if ran else ())
        if failure is not None:
            return dataclasses.replace(result, ping_failure=failure.kind, ping_evidence=failure.evidence, failure="ping", evidence=failure.evidence)
        report, result, failure = self._bandwidth(fabric, client, server, port + 1, result, False)
        if report is None or failure is not None:
            return dataclasses.replace(result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else "")
        row = report.largest
        result = dataclasses.replace(result, average_gbps=row.average_gbps, peak_gbps=row.peak_gbps, message_bytes=row.message_bytes, iterations=row.iterations)
        if not fabric.bandwidth.sweep:
            return result
        report, result, failure = self._bandwidth(fabric, client, server, port + 2, result, True)
        if report is None or failure is not None:
            return dataclasses.replace(result, sweep_failure=f"{failure.kind}: {failure.evidence}" if failure else "it did not run")
        return dataclasses.replace(result, sweep=tuple(SweepRow(row.message_bytes, row.average_gbps) for row in report.rows))

    def _tcp(self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult) -> PairResult:
        there = (server, commands.tcp_bandwidth(fabric, server.address or "", server.cpus, port))
        here = (client, commands.tcp_bandwidth(fabric, client.address or "", client.cpus, port, server.address or ""))
        ran, failure = self._both(there, here, commands.TCP_SERVER_UP, fabric.pods.limit_seconds, True, _tcp_failure)
        result = dataclasses.replace(result, commands=(_line(ran),) if ran else ())
        if ran is None or failure is not None:
            return dataclasses.replace(result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else "")
        try:
            report = iperf3.parse(ran.output)
        except iperf3.Iperf3Error as error:
            return dataclasses.replace(result, failure="no_measurement", evidence=str(error))
        return dataclasses.replace(result, average_gbps=report.average_gbps, streams=report.streams)

    def _bandwidth(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult, sweep: bool
    ) -> typing.Tuple[typing.Optional[perftest.Report], PairResult, typing.Optional[Failure]]:
        """What ib_write_bw reported, the result with its command, and the failure if there is one."""
        there = (server, commands.write_bandwidth(fabric, server.device or "", server.cpus, port, sweep=sweep))
        here = (client, commands.write_bandwidth(fabric, client.device or "", client.cpus, port, server.address or "", sweep))
        ran, failure = self._both(there, here, commands.BANDWIDTH_SERVER_UP, fabric.pods.limit_seconds, True)
        if ran is None:
            return None, result, failure
        result = dataclasses.replace(result, commands=(*result.commands, _line(ran)))
        if failure is not None:
            return None, result, failure
        try:
            return perftest.parse(ran.output), result, None
        except perftest.PerftestError as error:
            return None, result, Failure("no_measurement", str(error))

    def _both(
        self,
        there: typing.Tuple[RdmaPod, commands.Command],
        here: typing.Tuple[RdmaPod, commands.Command],
        up: str,
        limit: int,
        judge_server: bool,
        judge: typing.Optional[Judge] = None,
    ) -> typing.Tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        """Run a server, and its client once the server is up. What the client did, and the failure of either. A server that is left behind ends by its
        own limit, or when its pod gets its next command.

        :param judge_server: whether the server's exit code counts; rping's does not (it fails on success)
        :param judge: of what the client did; its exit code, unless something else is given
        """
        try:
            server, client = self._shell(there[0]), self._shell(here[0])
            server.start(there[1])
            ran, failure = self._client(server, client, here[1], up, limit, judge_server, judge or _failure)
        except ApiError as error:
            ran, failure = None, Failure("exec_lost", str(error)[:300])
        if failure is not None:
            failure = self._fate(there[0], here[0]) or failure
        return ran, failure

    def _client(
        self, server: Shell, client: Shell, command: commands.Command, up: str, limit: int, judge_server: bool, judge: Judge
    ) -> typing.Tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        if not server.wait_for(up, SERVER_LIMIT) and not server.running:
            ended = server.wait(0)
            return None, _failure(ended) or Failure("peer_gone", "the server ended at once")
        for _number in range(TRIES):
            client.start(command)
            ran = client.wait(limit + SLACK)
            failure = judge(ran)
            # it said that it is about to listen: a client that came a moment too early tries again, as long as the server runs
            if failure is None or failure.kind not in RETRIED or not server.running:
                break
        if failure is None and judge_server:
            failure = _failure(server.wait(SLACK))
        elif failure is not None:
            failure = self._killed(server, limit, failure) or failure
        return ran, failure

    def _killed(self, server: Shell, limit: int, failure: Failure) -> typing.Optional[Failure]:
        """Whether the server was killed, and not by its limit: then what the client says of it is but the consequence."""
        server.wait_for(NEVER, SETTLE)
        if server.running:
            return None
        ended = server.wait(0)
        if ended.exit_code in KILLED and ended.seconds < limit:
            return Failure("peer_gone", f"the server was killed (exit code {ended.exit_code}); the client said: {failure.evidence}"[:300])
        return None

    def _fate(self, *pods: RdmaPod) -> typing.Optional[Failure]:
        """Whether a pod of a failed pair is gone or on its way out: evicted, deleted, its node lost. Then that is the failure."""
        for item in pods:
            try:
                stand = stand_of_pod(self._cluster.get("Pod", item.namespace, item.name))
            except ApiError as error:
                if error.absent:
                    return Failure("pod_gone", f"the pod {item.name} on {item.node} was deleted")
                continue
            if stand.phase != "ready":
                return Failure("pod_gone", f"the pod {item.name} on {item.node}: {stand.detail}"[:300])
        return None


def _failure(result: CommandResult) -> typing.Optional[Failure]:
    return classify(result.exit_code, result.timed_out, f"{result.output}\n{result.error}")


def _tcp_failure(result: CommandResult) -> typing.Optional[Failure]:
    """iperf3 exits with 0 also where its JSON tells of an error."""
    failure, error = _failure(result), iperf3.error(result.output)
    return classify(result.exit_code or 1, result.timed_out, error) if error and (failure is None or failure.kind == "exit_code") else failure


def _line(result: CommandResult) -> str:
    """For the report: the command, how it ended and how long it took."""
    return f"{result.command} -> {'no exit code' if result.exit_code is None else result.exit_code} in {result.seconds:.1f} s"
