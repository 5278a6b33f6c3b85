# SPDX-License-Identifier: GPL-3.0-or-later

"""Measurements between pods: rping and ib_write_bw between each two of them, or iperf3 where they have no RDMA device.

Nothing of it is judged here but who is worth a second look; a failure is kept with its kind and the line that shows it.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import itertools
import typing

from .._check.bandwidth.check import (
    NOTHING,
    Facts,
    choose_layer_tests,
    collect_evidence,
    cover_text,
    find_paths_between,
    find_vantage_port,
    list_figures,
    split_verdicts,
    too_slow,
)
from .._check.bandwidth.too_slow import TooSlow
from .._model.bandwidth import (
    LEFT_OUT,
    BandwidthFacts,
    CountedPair,
    PairLayers,
    PairResult,
    RdmaPod,
    RoundPlan,
    SweepRow,
    Wider,
)
from .._model.errors import wrap_unforeseen
from .._model.intent import Fabric
from .._model.kubernetes import CommandResult
from .._model.lease import LeaseLost
from .._model.observers import ObserversFacts
from .._model.operand import OperandError
from .._model.profiles import list_rails as fabric_rails
from .._model.text import folded
from .._observe.kubernetes import ApiError, Clock, Cluster
from .._parse.pods import iperf3, perftest, rping
from .._parse.pods.failure import LOST, Failure, classify
from .._render import commands
from .._render.counters import LIMIT as COUNTERS_LIMIT
from .._schedule.flows import compute_flow_label
from .._schedule.layers import MOST_PAIRS, STEPS
from .._schedule.left_out import LostPairs
from .._schedule.link_coverage_rounds import OccupiedLinks, Round, cover
from .._schedule.measurements import (
    LOOKS,
    PING_LIMIT,
    SERVER_LIMIT,
    SLACK,
    Step,
    Task,
    by_links,
    compute_most_seconds_of_a_pair,
    compute_seconds_of_wider,
    compute_usual_seconds_of_a_pair,
    count_queue_pairs,
    cover_plan,
    list_orders,
    plan_retests,
    round_plan,
    steps,
    turn_steps,
)
from .._schedule.paths import PathTable
from .._schedule.port_counters import MOST_TESTS, PROBES, choose_tests_to_count, list_ports, list_probes
from .._schedule.suspect_rounds import Narrowing
from .._schedule.wider import Amount, widened
from .client_server import Judge, find_failure, line_of, run_pair
from .layers import LayerTests
from .pods import Plan, Pods, Say, workers
from .port_counters import NO_COUNTERS, Counters

#: by rail and node
Usable = typing.Mapping[tuple[int, str], RdmaPod]

#: how often a pair is tried whose measurement got lost on the way although its pods live
ATTEMPTS = 3
#: slow flows that are measured once more as other flows, at most, and seconds in which a pod says whether its perftest
#: can do that
OTHER_FLOWS, LABELS_LIMIT = 32, 20
#: each measurement takes the next ones: ping, bandwidth, sweep. Pods have ports of their own, so that few are enough
#: for all
FIRST_PORT, PORTS, PORT_BLOCKS = 18600, 3, 3000


def plans_of(plan: Plan, seen: Facts = NOTHING) -> tuple[RoundPlan, ...]:
    """Plan the rounds that are measured on each fabric, and their time.

    :param seen: by which the ways between nodes are known
    """
    return tuple(_plan_of(plan, fabric, seen) for fabric in plan.fabrics)


def _plan_of(plan: Plan, fabric: Fabric, seen: Facts) -> RoundPlan:
    why = ""
    if by_links(fabric, len(plan.nodes)):
        ways, why = find_paths_between(fabric, seen)
        if ways is not None:
            return cover_plan(fabric, ways, cover(ways), plan.parallel)
    return round_plan(fabric, len(plan.nodes), plan.parallel, why)


class BandwidthRun:
    """One run: no pod outlives it, whatever happens in between."""

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        seen: Facts = NOTHING,
        observers: typing.Optional[ObserversFacts] = None,
    ) -> None:
        """:param seen: what is known of the links of the HCAs, by which suspects are told
        :param observers: of the run, by which hosts are measured
        """
        self._cluster = cluster
        self._observers = observers
        self._plan = plan
        self._seen = seen
        self._clock = clock
        self._say = say
        self._pods = Pods(cluster, plan, clock, pause, say)
        self._blocks = itertools.count()
        #: names of the pods whose perftest can give packets a flow label
        self._labelled: frozenset[str] = frozenset()
        #: of the fabric that is measured
        self._too_slow: typing.Optional[TooSlow] = None
        self._lost = LostPairs()

    def run(self) -> BandwidthFacts:
        """Pods, measurements, removal: fabric after fabric, since all pods at the same time may ask for more than the
        nodes have.

        :raises ApiError: the server cannot be reached before anything was made
        """
        leftovers = self._pods.remove()
        if leftovers:
            self._say(f"removed the pods of an interrupted earlier run: {', '.join(leftovers)}")
        pods: list[RdmaPod] = []
        pairs: list[PairResult] = []
        layers: list[PairLayers] = []
        counted: list[CountedPair] = []
        plans = plans_of(self._plan, self._seen)
        for planned in plans:
            hours = f"about {planned.seconds / 60:.0f} min, {planned.most_seconds / 60:.0f} at most"
            rounds = (
                cover_text(planned)
                if planned.cover is not None
                else f"{planned.rounds} of {planned.all_rounds} rounds of pairs"
            )
            self._say(f"{planned.fabric}: {rounds}, {hours}")
        for fabric in self._plan.fabrics:
            seconds = compute_seconds_of_wider(fabric)[0]
            if seconds:
                self._say(
                    f"{fabric.name}: a pair that is too slow is measured once more with more queue pairs, which takes"
                    f" about {seconds} s"
                )
        try:
            with workers(self._plan.parallel) as pool:
                for fabric, planned in zip(self._plan.fabrics, plans):
                    mine = self._pods.start(
                        pool,
                        fabric,
                        planned.most_seconds + self._counted_seconds(fabric, planned) + self._layers_seconds(fabric),
                    )
                    pods += mine
                    measured = self._measure(pool, fabric, mine, planned)
                    pairs += measured
                    counted += self._count(fabric, mine, measured, planned)
                    layers += self._by_layers(fabric, mine, measured)
                    self._pods.discard(pool, mine)
        finally:
            # also when the run is interrupted: a pod that stays holds a virtual function
            remaining = self._pods.end()
        order = {name: place for place, name in enumerate(self._plan.nodes)}
        # sorted is stable: the fabrics stay in their order
        ordered = tuple(sorted(pods, key=lambda item: (order[item.node], item.rail)))
        return BandwidthFacts(ordered, tuple(pairs), leftovers, remaining, plans, tuple(layers), tuple(counted))

    def _measure(
        self, pool: concurrent.futures.Executor, fabric: Fabric, pods: typing.Sequence[RdmaPod], planned: RoundPlan
    ) -> list[PairResult]:
        usable = {(item.rail, item.node): item for item in pods if not item.error}
        ways = find_paths_between(fabric, self._seen, usable.values())[0] if planned.cover is not None else None
        self._labelled = self._with_labels(pool, fabric, usable) if ways is not None and ways.hashed else frozenset()
        self._too_slow = too_slow(fabric, tuple(usable.values()), self._seen)
        self._lost = LostPairs()
        if ways is not None:
            return self._by_links(pool, fabric, usable, ways)
        rails = {rail: [node for number, node in usable if number == rail] for rail in fabric_rails(fabric)}
        results: list[PairResult] = []
        for step in steps(rails, fabric.bandwidth, planned.rounds):
            results += self._step(pool, fabric, usable, step)
        return results + self._looks(pool, fabric, usable, results, False)

    def _with_labels(self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable) -> frozenset[str]:
        """Return the pods whose perftest can give packets a flow label. rdma_cm takes one of its own."""

        def can(pod: RdmaPod) -> bool:
            try:
                shell = self._pods.shell(pod)
                shell.start(commands.LABELS)
                return "label" in shell.wait(LABELS_LIMIT).output.split()
            except ApiError:
                return False

        pods = [pod for pod in usable.values() if pod.device is not None and fabric.pods.connection == "tcp"]
        return frozenset(pod.name for pod, found in zip(pods, pool.map(can, pods)) if found)

    def _counted_seconds(self, fabric: Fabric, planned: RoundPlan) -> float:
        """Return the longest time to measure with counters, in seconds."""
        if planned.cover is None or self._observers is None:
            return 0.0
        return float((MOST_TESTS + PROBES) * (compute_most_seconds_of_a_pair(fabric) + 2 * (COUNTERS_LIMIT + SLACK)))

    def _count(
        self, fabric: Fabric, pods: typing.Sequence[RdmaPod], measured: typing.Sequence[PairResult], planned: RoundPlan
    ) -> list[CountedPair]:
        """Measure with counters where the figures name no link, and to see how the switches route: one test after the
        other, since the data of others would be counted as well."""
        usable = {(item.rail, item.node): item for item in pods if not item.error}
        ways = find_paths_between(fabric, self._seen, usable.values())[0] if planned.cover is not None else None
        if ways is None:
            return []
        evidence = collect_evidence(fabric, ways, tuple(usable.values()), measured, self._seen)
        tests = choose_tests_to_count(ways, evidence)
        seat = find_vantage_port(fabric, ways, self._seen)
        if seat is None:
            pairs = [(ways.ends[source], ways.ends[target]) for source, target in tests]
            tasks = [Task.between((one.rail, one.node), (other.rail, other.node)) for one, other in pairs]
            return [
                CountedPair(
                    fabric.name, task.client, task.server, task.rail, why=NO_COUNTERS, server_rail=task.server_rail
                )
                for task in tasks
            ]
        # without observers a suspect's finding says so
        tests += list_probes(ways, evidence, tests) if self._observers is not None else ()
        one_way = dataclasses.replace(
            fabric, bandwidth=dataclasses.replace(fabric.bandwidth, directions="one", sweep=False)
        )
        counters = Counters(self._cluster, seat, self._observers, self._clock)
        results: list[CountedPair] = []
        try:
            for source, target in tests:
                one, other = ways.ends[source], ways.ends[target]
                task = Task.between((one.rail, one.node), (other.rail, other.node))
                measure = functools.partial(
                    self._pair, one_way, task, usable[task.client_end], usable[task.server_end], 0
                )
                pair = PairResult(fabric.name, one.node, other.node, rail=one.rail, server_rail=task.server_rail)
                found = counters.measure(pair, list_ports(ways, (source, target)), measure)
                said = (
                    found.why
                    or f"{sum(not port.why for port in found.ports)} of {len(found.ports)} ports read before and after"
                )
                self._say(f"{fabric.name} {one.node} -> {other.node}, counters: {said}")
                results.append(found)
        finally:
            # also when the run is interrupted
            counters.close()
        return results

    def _wanted_layers(self, fabric: Fabric) -> str:
        """Return which pairs are measured layer by layer: without a value in the intent, suspects, where that starts
        nothing that the run does not have."""
        return fabric.bandwidth.layers or ("suspects" if self._observers is not None else "none")

    def _layers_seconds(self, fabric: Fabric) -> float:
        """Return the longest time that the layers take, in seconds: the pods live as long."""
        wanted, nodes = self._wanted_layers(fabric), len(self._plan.nodes)
        number = {"none": 0, "suspects": MOST_PAIRS}.get(wanted, nodes * (nodes - 1) * len(fabric_rails(fabric)))
        return float(number * STEPS * (fabric.pods.limit_seconds + SERVER_LIMIT + 2 * SLACK))

    def _by_layers(
        self, fabric: Fabric, pods: typing.Sequence[RdmaPod], measured: typing.Sequence[PairResult]
    ) -> list[PairLayers]:
        """One pair after the other, since two of them would share what each is to fill."""
        wanted = self._wanted_layers(fabric)
        if wanted == "none":
            # what all links could carry, by which suspects are told, is not worked out for nobody
            return []
        chosen = choose_layer_tests(fabric, pods, measured, self._seen, wanted)
        if not chosen:
            return []
        usable = {(item.rail, item.node): item for item in pods if not item.error}
        layers = LayerTests(
            self._cluster, self._plan, fabric, self._observers, usable, self._pods, self._clock, self._say
        )
        try:
            return [layers.measure(pair, wanted == "suspects", number) for number, pair in enumerate(chosen)]
        finally:
            # also when the run is interrupted: what runs in an observer ends with its connection
            layers.close()

    def _by_links(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, ways: PathTable
    ) -> list[PairResult]:
        """Rounds that use each link in both directions; then what is slow, over ways that are otherwise good, as long
        as that tells more."""
        one_way = dataclasses.replace(fabric, bandwidth=dataclasses.replace(fabric.bandwidth, directions="one"))
        results: list[PairResult] = []

        def measure(item: Round, look: int) -> None:
            self._say(f"{fabric.name}: {item.why}, {len(item.tests)} tests")
            for turn in item.turns:
                for step in turn_steps(ways, turn, fabric.bandwidth):
                    results.extend(
                        dataclasses.replace(result, again=look) for result in self._step(pool, one_way, usable, step)
                    )

        for item in cover(ways).rounds:
            measure(item, 0)
        narrowing = Narrowing(ways)
        for look in itertools.count(1):
            found = narrowing.next(collect_evidence(fabric, ways, tuple(usable.values()), results, self._seen))
            if found is None:
                break
            measure(found, look)
        results += self._other_flows(pool, one_way, usable, ways, results)
        return results + self._looks(pool, one_way, usable, results, True)

    def _other_flows(
        self,
        pool: concurrent.futures.Executor,
        fabric: Fabric,
        usable: Usable,
        ways: PathTable,
        measured: typing.Sequence[PairResult],
    ) -> list[PairResult]:
        """Flows that are slow between leaves, once more as other flows of the same ends: these go over other links, as
        the hash of the switches has it."""
        if not self._labelled:
            return []
        slow = collect_evidence(fabric, ways, tuple(usable.values()), measured, self._seen).slow
        left = [ways.flows[number] for number in sorted(slow) if number in ways.flows][:OTHER_FLOWS]
        look = max((pair.again for pair in measured), default=0) + 1
        results: list[PairResult] = []
        while left:
            taken = OccupiedLinks(ways)
            for test in left:
                way = ways.way(*test)
                if way is not None and taken.fits(test, way):
                    taken.add(test, way)
            left = [test for test in left if test not in taken.tests]
            for step in turn_steps(ways, tuple(taken.tests), fabric.bandwidth):
                self._say(
                    f"{fabric.name}: {', '.join(f'{task.client} -> {task.server}' for task in step)} as other flows"
                )
                results += [
                    dataclasses.replace(result, again=look) for result in self._step(pool, fabric, usable, step, 1)
                ]
        return results

    def _looks(
        self,
        pool: concurrent.futures.Executor,
        fabric: Fabric,
        usable: Usable,
        measured: typing.Sequence[PairResult],
        with_figure_passes: bool,
    ) -> list[PairResult]:
        """Return the ends that failed and never passed, with partners that passed.

        :param with_figure_passes: a figure that is too low speaks against a link, which is told already, and not
            against an end
        """
        results = list(measured)
        for look in range(1, LOOKS + 1):
            passed, failed = split_verdicts(fabric, tuple(usable.values()), results, self._seen)
            if with_figure_passes:
                figures = list_figures(fabric, tuple(usable.values()), results, self._seen)
                told = {pair.pair for pair, figure in zip(results, figures) if figure}
                passed, failed = passed | told, failed - told
            looks = plan_retests(passed, failed, fabric.bandwidth)
            if not looks:
                break
            for step in looks:
                self._say(
                    f"{fabric.name}: {', '.join(f'{task.client} -> {task.server}' for task in step)} again, to tell the"
                    " ends apart"
                )
                results += [
                    dataclasses.replace(result, again=look) for result in self._step(pool, fabric, usable, step)
                ]
        return results[len(measured) :]

    def _step(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, step: Step, flow: int = 0
    ) -> list[PairResult]:
        """Measure pairs that share no end at the same time, and then those of them that are too slow once more. Those
        with an end that is left out fail.

        :param flow: number of the flow of each pair, where its ends can choose one
        """

        def both(task: Task) -> list[PairResult]:
            its = list_orders(task, fabric.bandwidth)
            return [self._pair(fabric, one, usable[one.client_end], usable[one.server_end], flow) for one in its]

        left_out = [one for task in step if self._out(task) for one in list_orders(task, fabric.bandwidth)]
        measured = [task for task in step if not self._out(task)]
        results = self._wider(
            pool, fabric, usable, [result for results in pool.map(both, measured) for result in results]
        )
        for end in self._lost.note(results, compute_usual_seconds_of_a_pair(fabric)):
            self._say(f"{fabric.name}: {self._why_out(end)}")
        return results + [self._not_made(fabric, task) for task in left_out]

    def _out(self, task: Task) -> bool:
        return task.client_end in self._lost.out or task.server_end in self._lost.out

    def _why_out(self, end: tuple[int, str]) -> str:
        return f"{end[1]} rail {end[0]} is left out, since its pairs with {folded(self._lost.out[end], 4)} were lost"

    def _not_made(self, fabric: Fabric, task: Task) -> PairResult:
        """Return the result of a pair with an end that is left out."""
        client = task.client_end in self._lost.out
        kind, why = LEFT_OUT[0 if client else 1], self._why_out(task.client_end if client else task.server_end)
        return _failed(fabric, task, kind, why)

    def _wider(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, measured: typing.Sequence[PairResult]
    ) -> list[PairResult]:
        """Return the results of a step, with those of a second measurement where a pair is too slow. The orders of a
        pair run one after the other."""
        if self._too_slow is None:
            return list(measured)
        found = self._too_slow.choose(measured)
        results = [pair for pair, _amount in found]
        numbers: dict[frozenset[typing.Any], list[int]] = {}
        for number, (pair, amount) in enumerate(found):
            if amount is not None:
                numbers.setdefault(pair.pair, []).append(number)
        if not numbers:
            return results

        def once_more(its: typing.Sequence[int]) -> list[PairResult]:
            return [self._once_more(fabric, usable, *found[number]) for number in its]

        for its, pairs in zip(numbers.values(), pool.map(once_more, numbers.values())):
            for number, pair in zip(its, pairs):
                results[number] = pair
        self._too_slow.note([results[number] for its in numbers.values() for number in its])
        return results

    def _once_more(
        self, fabric: Fabric, usable: Usable, pair: PairResult, amount: typing.Optional[Amount]
    ) -> PairResult:
        """Return a pair with its figure of more queue pairs, or why there is none."""
        if amount is None:
            return pair
        client, server = usable[pair.client_end], usable[pair.server_end]
        found, wide = Wider(amount.queue_pairs, amount.message_bytes), widened(fabric, amount)
        # all attempts together have the time that the plan counts for a second figure
        end = self._clock() + compute_seconds_of_wider(fabric)[1]
        for left in reversed(range(ATTEMPTS)):
            fresh = dataclasses.replace(pair, commands=())
            try:
                report, fresh, failure = self._bandwidth(
                    wide, client, server, self._next_ports() + 1, fresh, False, end
                )
                why = (
                    f"{failure.kind}: {failure.evidence}"
                    if failure is not None
                    else ""
                    if report is not None
                    else "it did not run"
                )
            except (ApiError, LeaseLost):
                raise
            except Exception as error:
                # nobody foresaw what its ends printed: the others are still to be measured
                report, failure, why = None, None, str(wrap_unforeseen(error, f"{client.node} -> {server.node}"))
            found = dataclasses.replace(found, commands=(*found.commands, *fresh.commands), why=why[:300])
            if failure is None or failure.kind not in LOST or not left or self._clock() + fabric.pods.seconds >= end:
                break
            if failure.kind == "exec_lost":
                since = self._clock()
                self._pods.await_api()
                # an API server that is away is no fault of the pair
                end += self._clock() - since
        if report is not None and not found.why:
            row = report.largest
            found = Wider(
                amount.queue_pairs,
                row.message_bytes,
                row.average_gbps,
                row.peak_gbps,
                row.iterations,
                commands=found.commands,
            )
        figure = f"{found.average_gbps:.4f} Gb/s" if found.average_gbps is not None else found.why
        self._say(
            f"{fabric.name} {client.node} -> {server.node}, once more with {amount.queue_pairs} queue pairs: {figure}"
        )
        return dataclasses.replace(pair, wider=found)

    def _next_ports(self) -> int:
        return FIRST_PORT + PORTS * (next(self._blocks) % PORT_BLOCKS)

    def _pair(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, flow: int) -> PairResult:
        start = self._clock()
        client_rail = f" rail {task.rail}" if task.between_rails else ""
        rail = f" rail {server.rail}" if fabric.select.hcas_per_node > 1 else ""
        ran: tuple[str, ...] = ()
        # all attempts together have the time that the plan counts: no end takes more of it from the pairs after it
        end = start + compute_most_seconds_of_a_pair(fabric)
        earlier: typing.Optional[PairResult] = None
        for left in reversed(range(ATTEMPTS)):
            # an earlier attempt's port may not be free yet
            result = self._attempt_or_not(fabric, task, client, server, flow, end)
            ran += result.commands
            if earlier is not None and result.failure and self._clock() >= end:
                # that the time of the pair was over says less than what took it
                result = earlier
            figure = (
                f"{result.average_gbps:.4f} Gb/s"
                if result.average_gbps is not None
                else f"{result.failure}: {result.evidence}"
            )
            how = "TCP" if result.transport == "TCP" else f"{result.pings or 0} pings"
            again = (
                bool(left)
                and not LOST.isdisjoint((result.failure, result.ping_failure))
                and self._clock() + fabric.pods.seconds < end
            )
            self._say(
                f"{fabric.name} {client.node}{client_rail} -> {server.node}{rail}: {how},"
                f" {figure}{'; once more' if again else ''}"
            )
            if not again:
                break
            earlier = result
            if "exec_lost" in (result.failure, result.ping_failure):
                since = self._clock()
                self._pods.await_api()
                # an API server that is away is no fault of the pair
                end += self._clock() - since
        return dataclasses.replace(result, commands=ran, seconds=round(self._clock() - start, 1))

    def _attempt_or_not(
        self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, flow: int, end: float
    ) -> PairResult:
        """Make an attempt. What nobody foresaw in what its ends printed is a failure of this pair: the others are still
        to be measured."""
        try:
            return self._attempt(fabric, task, client, server, self._next_ports(), flow, end)
        except (ApiError, LeaseLost):
            # these are no fault of the pair
            raise
        except OperandError as error:
            failure, evidence = "not_run", str(error)
        except Exception as error:
            failure, evidence = "no_measurement", str(wrap_unforeseen(error, f"{client.node} -> {server.node}"))
        return _failed(fabric, task, failure, evidence)

    def _attempt(
        self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, port: int, flow: int, end: float
    ) -> PairResult:
        """rping, then ib_write_bw, then the sweep where one is wanted; each only after the one before it worked.
        Without RDMA devices, iperf3 alone."""
        result = PairResult(fabric.name, client.node, server.node, rail=task.rail, server_rail=task.server_rail)
        if client.device is None or server.device is None:
            return self._tcp(
                fabric,
                client,
                server,
                port,
                dataclasses.replace(result, transport="TCP", streams=commands.STREAMS),
                end,
            )
        if {client.name, server.name} <= self._labelled:
            result = dataclasses.replace(
                result, flow_label=compute_flow_label(task.rail, client.node, server.node, flow)
            )
        gone = self._pods.gone(client, server)
        if gone is not None:
            return dataclasses.replace(
                result, ping_failure=gone.kind, ping_evidence=gone.evidence, failure="ping", evidence=gone.evidence
            )
        address = server.address or ""
        limit = min(PING_LIMIT, fabric.pods.limit_seconds)
        there, here = (
            (server, commands.render_ping_server(address, port, limit)),
            (client, commands.render_ping_client(address, port, limit)),
        )
        ran, failure = self._both(there, here, commands.PING_SERVER_UP, limit, False, end, _ping_failure)
        result = dataclasses.replace(
            result, pings=rping.parse(ran.output).count if ran else None, commands=(line_of(ran),) if ran else ()
        )
        if failure is not None:
            return dataclasses.replace(
                result,
                ping_failure=failure.kind,
                ping_evidence=failure.evidence,
                failure="ping",
                evidence=failure.evidence,
            )
        report, result, failure = self._bandwidth(fabric, client, server, port + 1, result, False, end)
        if report is None or failure is not None:
            return dataclasses.replace(
                result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else ""
            )
        row = report.largest
        result = dataclasses.replace(
            result,
            average_gbps=row.average_gbps,
            peak_gbps=row.peak_gbps,
            message_bytes=row.message_bytes,
            iterations=row.iterations,
        )
        if not fabric.bandwidth.sweep:
            return result
        report, result, failure = self._bandwidth(fabric, client, server, port + 2, result, True, end)
        if report is None or failure is not None:
            return dataclasses.replace(
                result, sweep_failure=f"{failure.kind}: {failure.evidence}" if failure else "it did not run"
            )
        return dataclasses.replace(
            result, sweep=tuple(SweepRow(row.message_bytes, row.average_gbps) for row in report.rows)
        )

    def _tcp(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult, end: float
    ) -> PairResult:
        there = (server, commands.render_tcp_bandwidth(fabric, server.address or "", server.cpus, port))
        here = (
            client,
            commands.render_tcp_bandwidth(fabric, client.address or "", client.cpus, port, server.address or ""),
        )
        ran, failure = self._both(
            there, here, commands.TCP_SERVER_UP, fabric.pods.limit_seconds, True, end, _tcp_failure
        )
        result = dataclasses.replace(result, commands=(line_of(ran),) if ran else ())
        if ran is None or failure is not None:
            return dataclasses.replace(
                result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else ""
            )
        try:
            report = iperf3.parse(ran.output)
        except iperf3.Iperf3Error as error:
            return dataclasses.replace(result, failure="no_measurement", evidence=str(error))
        if report.streams != commands.STREAMS:
            evidence = f"{report.streams} streams ran, and {commands.STREAMS} were asked for"
            return dataclasses.replace(result, failure="no_measurement", evidence=evidence)
        return dataclasses.replace(result, average_gbps=report.average_gbps, streams=report.streams)

    def _bandwidth(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult, sweep: bool, until: float
    ) -> tuple[typing.Optional[perftest.PerftestReport], PairResult, typing.Optional[Failure]]:
        """Run ib_write_bw, and return its report, the result with its command, and the failure if there is one."""
        result = dataclasses.replace(
            result, queue_pairs=count_queue_pairs(fabric, (client.rate_gbps, server.rate_gbps))
        )
        how: dict[str, typing.Any] = {"flow_label": result.flow_label, "pairs": result.queue_pairs}
        there, here = (
            (
                end,
                commands.write_bandwidth(
                    fabric, end.device or "", end.cpus, port, server.address or "", end is server, sweep, **how
                ),
            )
            for end in (server, client)
        )
        ran, failure = self._both(there, here, commands.BANDWIDTH_SERVER_UP, fabric.pods.limit_seconds, True, until)
        if ran is None:
            return None, result, failure
        result = dataclasses.replace(result, commands=(*result.commands, line_of(ran)))
        if failure is not None:
            return None, result, failure
        try:
            return perftest.parse(ran.output), result, None
        except perftest.PerftestError as error:
            return None, result, Failure("no_measurement", str(error))

    def _both(
        self,
        there: tuple[RdmaPod, commands.Command],
        here: tuple[RdmaPod, commands.Command],
        up: str,
        limit: int,
        judge_server: bool,
        until: float,
        judge: typing.Optional[Judge] = None,
    ) -> tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        """Run client and server, and return the client's result, and the failure of either end, or of its pod; see
        client_server.

        :param until: time by the clock at which the pair has spent its time
        """
        ends = (there[0], here[0])
        server, client = (functools.partial(self._pods.shell, end) for end in ends)

        def lost() -> str:
            gone = self._pods.gone(*ends)
            return gone.evidence if gone is not None else ""

        ran, failure = run_pair(
            (server, there[1]),
            (client, here[1]),
            up,
            limit,
            judge_server,
            judge or find_failure,
            lost,
            lambda: until - self._clock(),
        )
        if failure is not None:
            failure = self._pods.gone(*ends) or self._pods.fate(*ends) or failure
        return ran, failure


def _ping_failure(result: CommandResult) -> typing.Optional[Failure]:
    """rping's client exits with 0 also where its server left it before a round trip was made."""
    return find_failure(result) or rping.short(result.output, commands.PINGS)


def _tcp_failure(result: CommandResult) -> typing.Optional[Failure]:
    """iperf3 exits with 0 also where its JSON tells of an error."""
    failure, error = find_failure(result), iperf3.error(result.output)
    return (
        classify(result.exit_code or 1, result.timed_out, error)
        if error and (failure is None or failure.kind == "exit_code")
        else failure
    )


def _failed(fabric: Fabric, task: Task, failure: str, evidence: str) -> PairResult:
    """Return the result of a measurement that gave no figure."""
    return PairResult(
        fabric.name,
        task.client,
        task.server,
        rail=task.rail,
        server_rail=task.server_rail,
        failure=failure,
        evidence=evidence,
    )
