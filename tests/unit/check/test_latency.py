# SPDX-License-Identifier: GPL-3.0-or-later

"""Latencies of pairs of pods: compared with each other, held against the intent, and unknown where there is none."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.latency import Latency, judge_latency
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.measuring_pods import check_pods
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import (
    BandwidthFacts,
    PairLatency,
    RdmaPod,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.collectives_world import FABRIC

NODES = tuple("abcdefgh")
ROCE = {**FABRIC, "select": {"hcas_per_node": 1}}


def pairs(*medians: float) -> tuple[PairLatency, ...]:
    """Return the pairs a, b and c, d and so on."""
    return tuple(
        PairLatency("compute", NODES[2 * place], NODES[2 * place + 1], typical_us=median, p99_us=2 * median)
        for place, median in enumerate(medians)
    )


def judged(latencies: typing.Sequence[PairLatency], nodes: int = 8, **wishes: typing.Any) -> dict[str, Finding]:
    intent = parse_intent([{**ROCE, "bandwidth": {"latency": True, **wishes}}])
    pods = tuple(RdmaPod("compute", node, f"pod-{node}", "linerate-measure", "mlx5_0") for node in NODES[:nodes])
    found = check(intent, Facts(NODES[:nodes], BandwidthFacts(pods, (), latencies=tuple(latencies))))
    return {item.subject: item for item in found if item.check == "bandwidth.latency"}


def statuses(found: typing.Mapping[str, Finding]) -> list[str]:
    return [item.status for item in found.values()]


def test_a_pair_that_is_slower_than_the_others_is_named() -> None:
    found = judged(pairs(1.5, 1.6, 2.5, 1.5))
    assert statuses(found) == [PASS, PASS, WARN, PASS]
    late = found["compute e -> f"]
    assert late.measured == "2.50 us, p99 5.00 us" and late.expected == "at most 1.5 x 1.55 us, the median of 4 pairs"
    assert statuses(judged(pairs(1.5, 1.6, 2.5, 1.5), latency_ratio=2)) == [PASS] * 4
    assert statuses(judged(pairs(1.5, 9.0), nodes=4)) == [PASS, PASS], "two pairs are no measure for each other"


def test_the_intent_alone_has_an_absolute_limit() -> None:
    assert statuses(judged(pairs(1.5, 1.6, 1.7, 1.5), most_latency_us=1.55)) == [PASS, FAIL, FAIL, PASS]
    assert statuses(judged(pairs(5.0), nodes=2, most_latency_us=4.0)) == [FAIL]


@pytest.mark.parametrize(
    ("median", "p99", "status"),
    [
        pytest.param(2.0, 20.0, PASS, id="a tail as of a busy node"),
        pytest.param(2.0, 900_000.0, WARN, id="a message in a hundred is lost"),
        pytest.param(0.001, 0.001, UNKNOWN, id="no link is so fast"),
        pytest.param(5.0, 1.0, UNKNOWN, id="99 of 100 messages are faster than half of them"),
        pytest.param(900.0, 900.0, WARN, id="all are slow alike"),
    ],
)
def test_times_are_judged_by_themselves_too(median: float, p99: float, status: str) -> None:
    told = [dataclasses.replace(pair, p99_us=p99) for pair in pairs(*[median] * 4)]
    assert statuses(judged(told)) == [status] * 4
    found = judge_latency({"a": Latency(median, p99)}, None, 1.5)
    # a mean may be above the 99th percentile
    assert [item.status for item in found] == [WARN if p99 < median else status]
    if p99 == 900_000.0:
        (tail,) = judge_latency({"a": Latency(median, p99)}, None, 1.5)
        assert tail.expected == "p99 at most 20.00 us, 10 times the mean" and "If no counter increases, follow" in (
            tail.remedy
        )
        late = judged(told)["compute a -> b"]
        assert late.expected == "p99 at most 20.00 us, 10 times the median" and "Possible causes are" in late.why
    if p99 < median and p99 >= 1:
        (tail,) = judge_latency({"a": Latency(median, p99)}, None, 1.5)
        assert tail.expected == "p99 at least 5.00 us, the mean"
    assert statuses(judged(told, most_latency_us=1000.0))[0] == (PASS if median == 900 else status)


def test_what_was_not_measured_is_unknown() -> None:
    failed = dataclasses.replace(pairs(1.5)[0], typical_us=None, failure="hang", evidence="it hung")
    found = judged([failed, *pairs(1.5, 1.5, 1.5, 1.5)[1:]])
    assert statuses(found) == [UNKNOWN, PASS, PASS, PASS] and "it hung" in found["compute a -> b"].why
    assert {subject: item.status for subject, item in judged(()).items()} == dict.fromkeys(
        (f"compute {node}" for node in NODES), UNKNOWN
    )
    assert judged((), latency=False) == {}


def refused(**wishes: typing.Any) -> list[str]:
    (fabric,) = parse_intent([{**ROCE, "bandwidth": wishes}]).fabrics
    return [item.subject for item in check_pods(fabric, "rdma_fabrics[0]") if item.status == FAIL]


def test_wishes_that_cannot_be_meant_are_named() -> None:
    assert refused(latency=True, most_latency_us=5.0, latency_ratio=1.2) == []
    for ratio in (1.0, 0.5, 1000):
        assert refused(latency_ratio=ratio) == ["rdma_fabrics[0].bandwidth.latency_ratio"]
    # a comparison that only a broken pair fails needs a limit beside it
    assert refused(latency=True, latency_ratio=4.0) == ["rdma_fabrics[0].bandwidth.latency_ratio"]
    assert refused(latency=True, latency_ratio=4.0, most_latency_us=5.0) == refused(latency_ratio=3.0) == []
    for wish in ({"most_latency_us": 5.0}, {"latency": True, "most_latency_us": 0.0}):
        assert refused(**wish) == ["rdma_fabrics[0].bandwidth.most_latency_us"]
