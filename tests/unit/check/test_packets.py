# SPDX-License-Identifier: GPL-3.0-or-later

"""Packets of the queue pairs that were measured: their size against the MTU of the fabric, and RoCE v1."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.bandwidth.floors import PairLimits
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.pairs import list_verdicts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.collectives_world import FABRIC

ROCE = {
    **FABRIC,
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "15b3"},
    "roce": {"dscp": 26, "priority": 3},
    "mtu": 9000,
}
ADDRESS = "0000:10:00.0"
GOOD = PairResult(
    "compute",
    "a",
    "b",
    5,
    average_gbps=390.0,
    message_bytes=1048576,
    iterations=5000,
    packet_bytes=4096,
    gid_index=3,
    traffic_class=106,
)


def judged(
    vendor: str = "15b3", wanted: typing.Optional[typing.Mapping[str, typing.Any]] = None, **changes: typing.Any
) -> list[Finding]:
    hca = Hca("mlx5_0", rdma_device="mlx5_0", pci=PciFunction(ADDRESS, vendor, "101d", "0200"))
    pods = tuple(
        RdmaPod("compute", node, f"pod-{node}", "linerate-measure", "mlx5_2", physical_function=ADDRESS)
        for node in "ab"
    )
    pairs = (GOOD, dataclasses.replace(GOOD, client="b", server="a", **changes))
    facts = Facts(("a", "b"), BandwidthFacts(pods, pairs), hcas={name: ObservedHcas(NodeHcas((hca,))) for name in "ab"})
    return [item for item in check(parse_intent([wanted or ROCE]), facts) if item.check == "bandwidth.packets"]


def test_packets_as_large_as_the_fabric_carries_pass() -> None:
    (found,) = judged()
    assert (found.status, found.subject) == (PASS, "compute")
    assert found.measured == "packets of 4096 bytes in 2 measurements"
    assert found.expected == "packets of at least 4096 bytes, RoCE v2, traffic class 106"


def test_smaller_packets_are_warned_of_with_the_pairs() -> None:
    (found,) = judged(packet_bytes=256)
    assert (found.status, found.measured) == (WARN, "packets of 256 bytes: b -> a")
    assert "allows packets of 4096 bytes" in found.why and "ibv_devinfo" in found.remedy
    assert judged(packet_bytes=1024, wanted={**ROCE, "mtu": 1500})[0].status == PASS


@pytest.mark.parametrize("connection", ["tcp", "rdma_cm"])
def test_figures_of_another_traffic_class_are_warned_of(connection: str) -> None:
    wanted = {**ROCE, "mtu": None, "pods": {**FABRIC.get("pods", {}), "connection": connection}}
    (found,) = judged(traffic_class=None, wanted=wanted)
    assert (found.status, found.measured) == (WARN, "traffic class not set: b -> a")
    assert "queue of best effort" in found.why and "--tclass" in found.remedy
    assert judged(traffic_class=0, wanted=wanted)[0].status == WARN
    assert judged(wanted=wanted)[0].status == PASS
    # without roce of the intent no class is wanted
    assert (
        judged(traffic_class=None, wanted={key: value for key, value in ROCE.items() if key != "roce"})[0].status
        == PASS
    )


@pytest.mark.parametrize("index", [0, 2, 4])
@pytest.mark.parametrize(("vendor", "status"), [("15b3", WARN), ("14e4", WARN), ("8086", PASS), ("1dd8", PASS)])
def test_even_gid_indexes_are_roce_v1_of_devices_that_have_it(vendor: str, status: str, index: int) -> None:
    (found,) = judged(vendor, gid_index=index)
    assert found.status == status
    assert status == PASS or found.measured == "RoCE v1: b -> a"


def test_rdma_cm_chooses_the_gid_itself() -> None:
    (found,) = judged(gid_index=0, wanted={**ROCE, "pods": {"connection": "rdma_cm"}})
    assert (found.status, found.expected) == (PASS, "packets of at least 4096 bytes, traffic class 106")


@pytest.mark.parametrize("changes", [{"packet_bytes": None}, {"gid_index": None}])
def test_what_perftest_does_not_say_is_no_pass(changes: dict[str, typing.Any]) -> None:
    (found,) = judged(**changes)
    assert (found.status, found.measured) == (WARN, "packet size unknown: b -> a")


def test_an_intent_that_names_no_mtu_compares_none() -> None:
    assert judged(packet_bytes=256, wanted={**ROCE, "mtu": None, "roce": None}) == []


def test_another_run_than_was_asked_for_is_unknown_and_accuses_nobody() -> None:
    text = "perftest reports Device mlx5_99, Number of qps 1; requested were Device mlx5_2, Number of qps 1"
    pair = PairResult("compute", "a", "b", 5, failure="other_run", evidence=text)
    pods = tuple(RdmaPod("compute", node, f"pod-{node}", "linerate-measure", "mlx5_2") for node in "ab")
    intent = parse_intent([ROCE])
    found = check(intent, Facts(("a", "b"), BandwidthFacts(pods, (pair,))))
    (measured,) = [item for item in found if item.subject == "compute a -> b" and item.check == "bandwidth.measured"]
    assert (measured.status, measured.measured) == (UNKNOWN, text)
    assert list_verdicts(PairLimits(intent.fabrics[0], {}, {}), [pair]) == [None]
