# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures between pods: rping and ib_write_bw for each scheduled pair, or iperf3 if they have no RDMA device.

Results are judged only to choose pairs that are measured again. A failure is stored with its kind and the line of
output that shows it.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import itertools
import typing

from ..._analysis.schedule.left_out import LostPairs
from ..._analysis.schedule.link_coverage_rounds import OccupiedLinks, Round, cover_links
from ..._analysis.schedule.measurements import (
    LOOKS,
    Step,
    Task,
    compute_seconds_of_wider,
    compute_usual_seconds_of_a_pair,
    iterate_steps,
    list_orders,
    plan_retests,
    turn_steps,
)
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.suspect_rounds import SuspectRoundPlanner
from ..._check.bandwidth.facts import NOTHING, Facts, find_limits
from ..._check.bandwidth.results import collect_evidence, find_paths_between, list_figures, split_verdicts, too_slow
from ..._check.bandwidth.rounds import describe_cover
from ..._check.bandwidth.too_slow import TooSlow
from ..._model.base.phrases import format_duration, format_estimate
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import (
    LEFT_OUT,
    BandwidthFacts,
    CountedPair,
    PairLatency,
    PairLayers,
    RdmaPod,
    RoundPlan,
)
from ..._model.measurement.pairs import PairResult
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.shell import Clock
from .counted_pairs import CountedPairs
from .layered_pairs import LayeredPairs
from .measure_pair import PairMeasurement, fail_pair
from .measuring_plan import Measurement, Plan, Say, Usable, start_workers
from .pair_counters import PairCounters
from .pair_latencies import PairLatencies
from .pods.measuring_pods import MeasuringPods
from .round_plans import plan_rounds
from .soak_counters import list_physical

#: slow flows that are measured once more as other flows, at most
OTHER_FLOWS = 32


class BandwidthRun:
    """A run of stage bandwidth: for each fabric it starts the pods, measures, and removes the pods in all cases."""

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
        """Prepare a run of stage bandwidth; no pod is started yet.

        :param plan: fabrics, nodes and settings of the measurement
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param pause: function that sleeps for a number of seconds
        :param say: function that shows a line of progress to the user
        :param seen: facts about the links of the HCAs, from which suspects are found
        :param observers: observers of the run, through which hosts are measured; None if the run has no observers
        """
        measurement = Measurement(cluster, plan, clock, say)
        self._plan = plan
        self._seen = seen
        self._say = say
        self._pods = MeasuringPods(cluster, plan, clock, pause, say)
        self._pair = PairMeasurement(self._pods, clock, say)
        self._errors = PairCounters(cluster, observers, clock, self._pods.shell, list_physical(seen.hcas))
        self._latencies = PairLatencies(plan, self._pair)
        self._counted = CountedPairs(measurement, self._pair, seen, observers)
        self._layered = LayeredPairs(measurement, self._pods, seen, observers)
        #: names of the pods of the fabric that is measured whose perftest can give packets a flow label
        self._labelled: frozenset[str] = frozenset()
        #: of the fabric that is measured
        self._too_slow: typing.Optional[TooSlow] = None
        self._lost = LostPairs()

    def run(self) -> BandwidthFacts:
        """Measure one fabric after the other: start its pods, measure, and remove the pods. Return all results. The
        fabrics do not run at the same time, because the pods of all of them together could request more than the nodes
        offer.

        :raises ApiError: the API server cannot be reached before a pod was created
        """
        leftovers = self._pods.remove()
        if leftovers:
            self._say(f"removed the pods of an interrupted earlier run: {', '.join(leftovers)}")
        pods: list[RdmaPod] = []
        pairs: list[PairResult] = []
        layers: list[PairLayers] = []
        counted: list[CountedPair] = []
        latencies: list[PairLatency] = []
        plans = plan_rounds(self._plan, self._seen)
        for planned in plans:
            hours = f"{format_estimate(planned.seconds)}, at most {format_duration(planned.most_seconds)}"
            rounds = (
                describe_cover(planned)
                if planned.cover is not None
                else f"{planned.rounds} of {planned.all_rounds} rounds of pairs"
            )
            self._say(f"{planned.fabric}: {rounds}, {hours}")
        for fabric in self._plan.fabrics:
            seconds = compute_seconds_of_wider(fabric)[0]
            if seconds:
                self._say(
                    f"{fabric.name}: a pair that is too slow is measured again with more queue pairs, which takes"
                    f" about {seconds} s"
                )
        try:
            with start_workers(self._plan.parallel) as pool:
                for fabric, planned in zip(self._plan.fabrics, plans):
                    mine = self._pods.start(
                        pool,
                        fabric,
                        planned.most_seconds
                        + self._counted.compute_seconds(fabric, planned)
                        + self._layered.compute_seconds(fabric)
                        + self._latencies.compute_seconds(fabric),
                    )
                    pods += mine
                    measured = self._measure(pool, fabric, mine, planned)
                    pairs += measured
                    latencies += self._latencies.measure(pool, fabric, mine, self._is_left_out)
                    counted += self._counted.measure(fabric, mine, measured, planned)
                    layers += self._layered.measure(fabric, mine, measured)
                    self._pods.discard(pool, mine)
        finally:
            # also when the run is interrupted: a pod that stays holds a virtual function
            self._errors.close()
            remaining = self._pods.end()
        order = {name: place for place, name in enumerate(self._plan.nodes)}
        # sorted is stable: the fabrics stay in their order
        ordered = tuple(sorted(pods, key=lambda item: (order[item.node], item.rail)))
        return BandwidthFacts(
            ordered, tuple(pairs), leftovers, remaining, plans, tuple(layers), tuple(counted), tuple(latencies)
        )

    def _measure(
        self, pool: concurrent.futures.Executor, fabric: Fabric, pods: typing.Sequence[RdmaPod], planned: RoundPlan
    ) -> list[PairResult]:
        usable = {(item.rail, item.node): item for item in pods if not item.error}
        ways = find_paths_between(fabric, self._seen, usable.values())[0] if planned.cover is not None else None
        hashed = ways is not None and ways.hashed
        self._labelled = self._pair.packets.find_labelled(pool, fabric, usable.values() if hashed else ())
        self._pair.packets.find_classed(pool, fabric, usable.values())
        self._too_slow = too_slow(fabric, tuple(usable.values()), self._seen)
        self._lost = LostPairs()
        if ways is not None:
            return self._measure_by_links(pool, fabric, usable, ways)
        rails = {rail: [node for number, node in usable if number == rail] for rail in fabric_rails(fabric)}
        results: list[PairResult] = []
        # a pair shows what its slower end carries
        rates = find_limits(fabric, self._seen, usable.values()).own_rates()
        for step in iterate_steps(rails, fabric.bandwidth, planned.rounds, rates):
            results += self._measure_step(pool, fabric, usable, step)
        return results + self._retest_failed_ends(pool, fabric, usable, results, False)

    def _measure_by_links(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, ways: PathTable
    ) -> list[PairResult]:
        """Measure rounds of pairs whose paths together use each link in both directions. Then measure slow pairs again
        over paths whose other links are known to be good, until a further round would not reduce the number of
        suspected links. Then measure slow pairs with other flow labels, and failed pods with other partners. Return all
        results.

        :param pool: threads in which pairs are measured
        :param usable: usable pods by rail and node
        :param ways: paths between the ports of the fabric
        """
        one_way = dataclasses.replace(fabric, bandwidth=dataclasses.replace(fabric.bandwidth, directions="one"))
        results: list[PairResult] = []

        def measure(item: Round, attempt: int) -> None:
            self._say(f"{fabric.name}: {item.why}, {len(item.tests)} tests")
            for turn in item.turns:
                for step in turn_steps(ways, turn, fabric.bandwidth):
                    results.extend(
                        dataclasses.replace(result, again=attempt)
                        for result in self._measure_step(pool, one_way, usable, step)
                    )

        rates = find_limits(fabric, self._seen, usable.values()).own_rates()
        for item in cover_links(ways, rates).rounds:
            measure(item, 0)
        narrowing = SuspectRoundPlanner(ways)
        for attempt in itertools.count(1):
            found = narrowing.next(collect_evidence(fabric, ways, tuple(usable.values()), results, self._seen))
            if found is None:
                break
            measure(found, attempt)
        results += self._measure_other_flows(pool, one_way, usable, ways, results)
        return results + self._retest_failed_ends(pool, one_way, usable, results, True)

    def _measure_other_flows(
        self,
        pool: concurrent.futures.Executor,
        fabric: Fabric,
        usable: Usable,
        ways: PathTable,
        measured: typing.Sequence[PairResult],
    ) -> list[PairResult]:
        """Measure slow pairs of nodes on different leaves, at most ``OTHER_FLOWS``, again with other flow labels, and
        return the new results. The switches choose links by a hash of the label, so these packets take other links.
        Return an empty list if no pod can set flow labels.

        :param pool: threads in which pairs are measured
        :param fabric: fabric to measure, with one direction at a time
        :param usable: usable pods by rail and node
        :param ways: paths between the ports of the fabric
        :param measured: results of the pairs so far
        """
        if not self._labelled:
            return []
        slow = collect_evidence(fabric, ways, tuple(usable.values()), measured, self._seen).slow
        left = [ways.flows[number] for number in sorted(slow) if number in ways.flows][:OTHER_FLOWS]
        attempt = max((pair.again for pair in measured), default=0) + 1
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
                    f"{fabric.name}: {', '.join(f'{task.client} -> {task.server}' for task in step)} repeated as"
                    " different flows"
                )
                results += [
                    dataclasses.replace(result, again=attempt)
                    for result in self._measure_step(pool, fabric, usable, step, 1)
                ]
        return results

    def _retest_failed_ends(
        self,
        pool: concurrent.futures.Executor,
        fabric: Fabric,
        usable: Usable,
        measured: typing.Sequence[PairResult],
        with_figure_passes: bool,
    ) -> list[PairResult]:
        """Measure pods that failed and never passed with partners that passed, to find which end of a pair fails.
        Return only these new results.

        :param pool: threads in which pairs are measured
        :param usable: usable pods by rail and node
        :param measured: results so far
        :param with_figure_passes: whether a pair with a figure counts as passed even if the figure is too low. Such a
            figure indicates a slow link, which has a finding of its own, and not a faulty pod
        """
        results = list(measured)
        for attempt in range(1, LOOKS + 1):
            passed, failed = split_verdicts(fabric, tuple(usable.values()), results, self._seen)
            if with_figure_passes:
                figures = list_figures(fabric, tuple(usable.values()), results, self._seen)
                slow = {pair.pair for pair, figure in zip(results, figures) if figure}
                passed, failed = passed | slow, failed - slow
            retests = plan_retests(passed, failed, fabric.bandwidth)
            if not retests:
                break
            for step in retests:
                self._say(
                    f"{fabric.name}: {', '.join(f'{task.client} -> {task.server}' for task in step)} repeated, to"
                    " distinguish the ends"
                )
                results += [
                    dataclasses.replace(result, again=attempt)
                    for result in self._measure_step(pool, fabric, usable, step)
                ]
        return results[len(measured) :]

    def _measure_step(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, step: Step, flow: int = 0
    ) -> list[PairResult]:
        """Measure the pairs of a step at the same time, and return their results. Then measure those that are too slow
        again with more queue pairs. A pair with an excluded pod gets a failure without a measurement.

        :param pool: threads in which pairs are measured
        :param usable: usable pods by rail and node
        :param step: pairs that have no pod in common
        :param flow: number from which the flow label of each pair is computed, if both pods support flow labels
        """

        def both(task: Task) -> list[PairResult]:
            its = list_orders(task, fabric.bandwidth)
            return [
                self._measure_pair(fabric, one, usable[one.client_end], usable[one.server_end], flow) for one in its
            ]

        left_out = [one for task in step if self._is_left_out(task) for one in list_orders(task, fabric.bandwidth)]
        measured = [task for task in step if not self._is_left_out(task)]
        results = self._measure_wider(
            pool, fabric, usable, [result for results in pool.map(both, measured) for result in results]
        )
        for end in self._lost.note(results, compute_usual_seconds_of_a_pair(fabric)):
            self._say(f"{fabric.name}: {self._explain_left_out(end)}")
        return results + [self._fail_left_out(fabric, task) for task in left_out]

    def _measure_pair(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, flow: int) -> PairResult:
        """Measure a pair, and return the result with the error counters of its HCAs from before and after.

        :param task: nodes and rails of the pair
        :param client: pod that sends
        :param server: pod that receives
        :param flow: number from which the flow label of the pair's packets is computed
        """
        measure = functools.partial(self._pair.measure, fabric, task, client, server, flow)
        return self._errors.measure(fabric, client, server, measure)

    def _is_left_out(self, task: Task) -> bool:
        return task.client_end in self._lost.out or task.server_end in self._lost.out

    def _explain_left_out(self, end: tuple[int, str]) -> str:
        return (
            f"{end[1]} rail {end[0]} is excluded because its pairs with {join_first(self._lost.out[end], 4)} were lost"
        )

    def _fail_left_out(self, fabric: Fabric, task: Task) -> PairResult:
        """Return the failed result of a pair with a pod that is excluded from further measurements.

        :param task: nodes and rails of the pair
        """
        client = task.client_end in self._lost.out
        kind, why = LEFT_OUT[0 if client else 1], self._explain_left_out(task.client_end if client else task.server_end)
        return fail_pair(fabric, task, kind, why)

    def _measure_wider(
        self, pool: concurrent.futures.Executor, fabric: Fabric, usable: Usable, measured: typing.Sequence[PairResult]
    ) -> list[PairResult]:
        """Measure those pairs of a step that are too slow a second time with more queue pairs. Return the results of
        all pairs of the step, in their order. The two directions of a pair run one after the other.

        :param pool: threads in which pairs are measured
        :param usable: usable pods by rail and node
        :param measured: results of the step so far
        """
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
            return [
                self._pair.measure_wider(fabric, pair, usable[pair.client_end], usable[pair.server_end], amount)
                for pair, amount in (found[number] for number in its)
                if amount is not None
            ]

        for its, pairs in zip(numbers.values(), pool.map(once_more, numbers.values())):
            for number, pair in zip(its, pairs):
                results[number] = pair
        self._too_slow.note([results[number] for its in numbers.values() for number in its])
        return results
