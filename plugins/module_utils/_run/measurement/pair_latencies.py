# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure the latency of small messages between pods, after the bandwidth of all pairs of a fabric."""

from __future__ import annotations

import concurrent.futures
import typing

from ..._analysis.schedule.measurements import (
    SERVER_LIMIT,
    SLACK,
    Step,
    Task,
    iterate_steps,
)
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_rdma
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.measurement.bandwidth import (
    PairLatency,
    RdmaPod,
)
from .measure_pair import PairMeasurement
from .measuring_plan import Plan


class PairLatencies:
    """The latency measurements of pairs of pods, made for each fabric whose intent requests them."""

    def __init__(self, plan: Plan, pair: PairMeasurement) -> None:
        """Prepare the measurements.

        :param plan: fabrics, nodes and settings of the measurement
        :param pair: measurement of one pair of pods
        """
        self._plan = plan
        self._pair = pair

    def _list_steps(self, fabric: Fabric, rails: typing.Mapping[int, typing.Sequence[str]]) -> list[Step]:
        """Return the pairs for the measurement of latency, grouped into steps of pairs that are measured at the same
        time. There is one round, or two if a rail has an odd number of nodes, so that each port occurs at least once.
        Return an empty list if the latency of the fabric is not measured.

        :param rails: names of the nodes of each rail, by number of the rail
        """
        if not fabric.bandwidth.latency or not carries_rdma(fabric):
            return []
        odd = any(len(nodes) % 2 for nodes in rails.values())
        return [step for step in iterate_steps(rails, fabric.bandwidth, 2 if odd else 1) if step]

    def compute_seconds(self, fabric: Fabric) -> float:
        """Return the longest duration of the latency measurements of a fabric in seconds. Return 0 if its latency is
        not measured.
        """
        rails = dict.fromkeys(fabric_rails(fabric), self._plan.nodes)
        waves = sum(-(-len(step) // self._plan.parallel) for step in self._list_steps(fabric, rails))
        return float(waves * (fabric.pods.limit_seconds + SERVER_LIMIT + SLACK))

    def measure(
        self,
        pool: concurrent.futures.Executor,
        fabric: Fabric,
        pods: typing.Sequence[RdmaPod],
        is_left_out: typing.Callable[[Task], bool],
    ) -> list[PairLatency]:
        """Return the latency of small messages of pairs of pods. Call this after all bandwidth measurements of the
        fabric, whose traffic would increase the latency. Pairs with an excluded pod are not measured.

        :param pool: threads in which pairs are measured
        :param pods: pods of the fabric; those with an error or without an RDMA device are left out
        :param is_left_out: function that gets a pair and returns whether one of its pods is excluded from further
            measurements
        """
        usable = {(item.rail, item.node): item for item in pods if not item.error and item.device is not None}
        rails = {rail: [node for number, node in usable if number == rail] for rail in fabric_rails(fabric)}
        found: list[PairLatency] = []
        for step in self._list_steps(fabric, rails):
            tasks = [task for task in step if not is_left_out(task)]
            found += pool.map(
                lambda task: self._pair.measure_latency(fabric, task, usable[task.client_end], usable[task.server_end]),
                tasks,
            )
        return found
