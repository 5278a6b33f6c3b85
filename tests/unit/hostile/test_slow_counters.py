# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that reports its error counters late, again and again: the readings around a pair take no longer than the plan
counts for them, and such a node is soon asked no more."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import (
    READING_LIMIT,
    compute_seconds_of_counters,
    round_plan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pair_counters import PairCounters
from ansible_collections.linerate.rdma.tests.unit.run.test_pair_counters import FUNCTION, OBSERVED, PHYSICAL
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC

ROCE = parse_intent([FABRIC]).fabrics[0]
LATE, GOOD = (
    RdmaPod(
        ROCE.name,
        node,
        f"p-{node}",
        "ns",
        device="mlx5_4",
        pci=FUNCTION,
        physical_function=PHYSICAL,
        address="10.0.0.1",
    )
    for node in "ab"
)
#: of a pair without its readings
USUAL = 12.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Late:
    """A shell that answers after some seconds."""

    open = True

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def start(self, command: typing.Sequence[str]) -> None:
        pass

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        self.clock.now += min(self.seconds, seconds)
        if self.seconds > seconds:
            return CommandResult("counters", None, "", True)
        return CommandResult("counters", 0, "count mlx5_4 packet_seq_err 3\ncount mlx5_0 packet_seq_err 3\n")

    def close(self) -> None:
        pass


class Api:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def shell(self, _namespace: str, pod: str, _container: str, _command: object, _clock: object) -> Late:
        return Late(self.clock, self.seconds if pod.endswith("-a") else 0.0)


def measure(seconds: float, pairs: int) -> tuple[list[float], list[dict[tuple[str, str], str]]]:
    """Return the seconds of the readings of each pair, and why errors of each pair are unknown, by node and device."""
    clock = Clock()
    pods = {"p-a": Late(clock, seconds), "p-b": Late(clock, 0.0)}
    counters = PairCounters(
        typing.cast(Cluster, Api(clock, seconds)),
        OBSERVED,
        clock,
        lambda end: typing.cast(Shell, pods[end.name]),
        {node: {PHYSICAL: "mlx5_0"} for node in "ab"},
    )

    def one() -> PairResult:
        clock.now += USUAL
        return PairResult(ROCE.name, "a", "b", average_gbps=390.0, transport="RDMA")

    took, why = [], []
    for _number in range(pairs):
        since = clock.now
        result = counters.measure(ROCE, LATE, GOOD, one)
        assert result.average_gbps == 390.0 and not result.failure
        took.append(clock.now - since - USUAL)
        why.append({(item.node, item.device): item.why for item in result.errors})
    return took, why


@pytest.mark.parametrize("seconds", [19.9, 600.0])
def test_a_node_whose_first_reading_is_late_is_asked_no_more(seconds: float) -> None:
    took, why = measure(seconds, 4)
    assert took == [READING_LIMIT, 0.0, 0.0, 0.0]
    for found in why:
        assert "the pod p-a did not report its counters within 10 s" in found["a", "mlx5_4"]
        assert "the pod p-a did not report its counters within 10 s" in found["a", "mlx5_0"]
        assert (found["b", "mlx5_4"], found["b", "mlx5_0"]) == ("", "")


def test_a_node_that_always_answers_just_in_time_is_soon_asked_no_more() -> None:
    # the first time, its observer is opened too
    took, why = measure(READING_LIMIT / 3 - 0.1, 60)
    most = compute_seconds_of_counters(ROCE)[1]
    assert all(seconds <= most for seconds in took) and sum(took) < 200.0
    assert why[0]["a", "mlx5_4"] == "" and took[-1] == 0.0
    assert "took 60 s longer than usual" in why[-1]["a", "mlx5_4"] and why[-1]["b", "mlx5_4"] == ""


def test_a_node_that_answers_at_once_is_asked_for_each_pair() -> None:
    _took, why = measure(0.5, 200)
    assert not any(text for found in why for text in found.values())


def test_the_plan_counts_the_readings() -> None:
    usual, most = compute_seconds_of_counters(ROCE)
    assert (usual, most) == (1, 4 * READING_LIMIT)
    plain = dataclasses.replace(ROCE, rdma=False)
    assert compute_seconds_of_counters(plain) == (0, 0)
    infiniband = dataclasses.replace(ROCE, profile="sriov_infiniband")
    with_readings, without = round_plan(ROCE, 2, 1), round_plan(infiniband, 2, 1)
    assert with_readings.seconds - without.seconds == usual * 2
    # the first round and the looks at the suspects
    assert with_readings.most_seconds - without.most_seconds == most * 2 * 4
