# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure pairs of pods again, with the port counters of the switches from before and after each measurement."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._analysis.schedule.measurements import (
    SLACK,
    Task,
    compute_most_seconds_of_a_pair,
)
from ..._analysis.schedule.port_counters import MOST_TESTS, PROBES, choose_tests_to_count, list_ports, list_probes
from ..._check.bandwidth.facts import Facts
from ..._check.bandwidth.results import (
    collect_evidence,
    find_paths_between,
    find_vantage_port,
)
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import (
    CountedPair,
    RdmaPod,
    RoundPlan,
)
from ..._model.measurement.pairs import PairResult
from ..._render.measurement.counters import LIMIT as COUNTERS_LIMIT
from .measure_pair import PairMeasurement
from .measuring_plan import Measurement
from .port_counters import NO_COUNTERS, Counters


class CountedPairs:
    """The repeated measurements of pairs with port counters of switches. They are made for the pairs of each fabric
    whose bandwidth figures alone do not identify the slow link.
    """

    def __init__(
        self,
        measurement: Measurement,
        pair: PairMeasurement,
        seen: Facts,
        observers: typing.Optional[ObserversFacts],
    ) -> None:
        """Prepare the measurements.

        :param measurement: plan, client of the API server and clock of the measurement
        :param pair: measurement of one pair of pods
        :param seen: facts about the links of the HCAs
        :param observers: observers of the run, which read the counters; None if the run has no observers
        """
        self._measurement = measurement
        self._pair = pair
        self._seen = seen
        self._observers = observers

    def compute_seconds(self, fabric: Fabric, planned: RoundPlan) -> float:
        """Return the longest duration of the measurements with counters in seconds. Return 0 if there will be none.

        :param planned: planned measurement rounds of the fabric
        """
        if planned.cover is None or self._observers is None:
            return 0.0
        return float((MOST_TESTS + PROBES) * (compute_most_seconds_of_a_pair(fabric) + 2 * (COUNTERS_LIMIT + SLACK)))

    def measure(
        self, fabric: Fabric, pods: typing.Sequence[RdmaPod], measured: typing.Sequence[PairResult], planned: RoundPlan
    ) -> list[CountedPair]:
        """Measure pairs again, and return their figures with the port counters from before and after. This is done for
        pairs whose figures alone do not identify the slow link, and to find out how the switches route. If no HCA of
        the fabric can read counters, the pairs are returned with this reason instead. Return an empty list if the plan
        does not cover the links, or the paths between the pods are not known.

        The measurements run one after the other, because the counters would include the data of a simultaneous one.

        :param fabric: fabric of the pods
        :param pods: pods of the fabric; those with an error are not used
        :param measured: results of the pairs so far
        :param planned: planned measurement rounds of the fabric
        """
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
        counters = Counters(self._measurement.cluster, seat, self._observers, self._measurement.clock)
        results: list[CountedPair] = []
        try:
            for source, target in tests:
                one, other = ways.ends[source], ways.ends[target]
                task = Task.between((one.rail, one.node), (other.rail, other.node))
                measure = functools.partial(
                    self._pair.measure, one_way, task, usable[task.client_end], usable[task.server_end], 0
                )
                pair = PairResult(fabric.name, one.node, other.node, rail=one.rail, server_rail=task.server_rail)
                found = counters.measure(pair, list_ports(ways, (source, target)), measure)
                said = (
                    found.why
                    or f"{sum(not port.why for port in found.ports)} of {len(found.ports)} ports read before and after"
                )
                self._measurement.say(f"{fabric.name} {one.node} -> {other.node}, counters: {said}")
                results.append(found)
        finally:
            # also when the run is interrupted
            counters.close()
        return results
