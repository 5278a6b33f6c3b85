# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: the figures of row S1.12 against the floors, and what is no measurement."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check import bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth import CAUSES, Facts, check, floor_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.cluster import BandwidthFacts, PairResult, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse import rdma_failure
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent


def intent(**line_rate):
    fabric = {
        "name": "compute",
        "profile": "sriov_infiniband",
        "select": {"hcas_per_node": 1},
        "virtual_functions": 8,
        "resource_name": "mlx",
        "network": {"name": "ib", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    }
    return parse_intent([{**fabric, "line_rate": line_rate}])


# NDR 400, PCIe generation 5 x16 less its encoding: row S1
PODS = tuple(
    RdmaPod("compute", node, f"linerate-compute-{node}", "test", "mlx5_16", address, "0000:3c:00.2", "net1", 400.0, 504.12)
    for node, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
)


def pair(client, server, average=373.64, **changes):
    return dataclasses.replace(
        PairResult("compute", client, server, 5, average_gbps=average, peak_gbps=373.98, message_bytes=8388608, iterations=5000), **changes
    )


def facts(*pairs, pods=PODS, **changes):
    return Facts(("a", "b"), BandwidthFacts(pods, pairs or (pair("a", "b"), pair("b", "a")), **changes))


def statuses(given, wanted=None):
    return {(finding.check.split(".")[1], finding.subject): finding.status for finding in check(wanted or intent(), given)}


def found(given, name, subject, wanted=None):
    (finding,) = [finding for finding in check(wanted or intent(), given) if finding.check == f"bandwidth.{name}" and finding.subject == subject]
    return finding


AB = "compute a -> b"


def test_row_s1_12_passes_at_its_line_rate():
    assert set(statuses(facts()).values()) == {"pass"}
    floor = found(facts(), "floor", AB)
    assert (floor.measured, floor.expected) == (
        "373.64 Gb/s",
        ">= 368.00 Gb/s (0.92 x 400 Gb/s, the slowest of: port of a 400, PCIe of a 504.12, port of b 400, PCIe of b 504.12 Gb/s)",
    )


def test_facts_survive_the_way_through_ansible():
    assert load(Facts, to_data(facts()), "facts") == facts()


@pytest.mark.parametrize(
    ("average", "rule", "status"),
    [
        (373.64, {"fraction": 0.92}, "pass"),
        (373.64, {"fraction": 0.95}, "fail"),
        (368.0, {"fraction": 0.92}, "pass"),
        (367.99, {"fraction": 0.92}, "fail"),
        (373.64, {"floor_gbps": 370.0, "reason": "acceptance line of the site"}, "pass"),
        (369.9, {"floor_gbps": 370.0, "reason": "acceptance line of the site"}, "fail"),
        (0.031, {"floor_gbps": 0.005, "reason": "software RDMA"}, "pass"),
        (0.0048, {"floor_gbps": 0.005, "reason": "software RDMA"}, "fail"),
    ],
)
def test_floor(average, rule, status):
    given = facts(pair("a", "b", average), pair("b", "a", average))
    finding = found(given, "floor", AB, intent(**rule))
    assert finding.status == status
    assert rule.get("reason", "0.9") in finding.expected


def test_the_slowest_link_sets_the_floor():
    # the card of b sits in a generation 4 slot: 252 Gb/s are all that it can
    slow = (PODS[0], dataclasses.replace(PODS[1], pcie_gbps=252.06))
    floor, text = floor_of(intent().fabrics[0], slow)
    assert floor == pytest.approx(0.92 * 252.06)
    assert "PCIe of b 252.06" in text


def test_without_the_rate_of_a_port_there_is_no_floor():
    given = facts(pods=(PODS[0], dataclasses.replace(PODS[1], rate_gbps=None)))
    assert found(given, "floor", AB).status == "unknown"


def test_the_fleet_catches_the_slow_direction():
    given = facts(pair("a", "b", 373.64), pair("b", "a", 340.0))
    assert found(given, "fleet", AB).status == "pass"
    slow = found(given, "fleet", "compute b -> a")
    assert (slow.status, slow.expected) == ("fail", ">= 347.49 Gb/s (0.93 of the fabric's best pair, 373.64 Gb/s)")


def test_a_figure_beside_a_failure_is_none():
    # a killed server leaves a perfect table and exit code 1
    given = facts(pair("a", "b", failure="peer_gone", evidence="ethernet_read_keys: Couldn't read remote address"), pair("b", "a"))
    finding = found(given, "measured", AB)
    assert finding.status == "fail"
    assert "Couldn't read remote address" in finding.measured


@pytest.mark.parametrize("average", [None, 0.0, -1.0])
def test_no_figure_is_no_pass(average):
    assert found(facts(pair("a", "b", average), pair("b", "a")), "measured", AB).status == "fail"


@pytest.mark.parametrize(
    ("pings", "failure", "status"), [(5, "", "pass"), (4, "", "fail"), (0, "no_address", "fail"), (None, "", "unknown"), (5, "hang", "fail")]
)
def test_rping(pings, failure, status):
    assert found(facts(pair("a", "b", pings=pings, ping_failure=failure), pair("b", "a")), "rping", AB).status == status


def test_a_failed_ping_leaves_the_bandwidth_unknown():
    given = facts(pair("a", "b", None, pings=0, ping_failure="no_address", failure="ping", evidence="ADDR_ERROR"), pair("b", "a"))
    assert found(given, "measured", AB).status == "unknown"


def test_a_pair_that_was_not_measured_is_unknown_with_the_pod_s_cause():
    missing = RdmaPod("compute", "b", "", "test", error="the node offers no openshift.io/mlx")
    given = Facts(("a", "b"), BandwidthFacts((PODS[0], missing), ()))
    finding = found(given, "measured", AB)
    assert (finding.status, "b: the node offers no openshift.io/mlx" in finding.why) == ("unknown", True)
    assert found(given, "pod", "compute b").status == "unknown"
    # a pod that was started and is broken is a failure, not an open question
    broken = dataclasses.replace(PODS[1], error="no RDMA device on net1")
    assert found(Facts(("a", "b"), BandwidthFacts((PODS[0], broken), ())), "pod", "compute b").status == "fail"


@pytest.mark.parametrize("given", [Facts(("a", "b"), None), Facts(("a",), BandwidthFacts((), ())), Facts()])
def test_nothing_measured_is_never_good_news(given):
    found_statuses = [finding.status for finding in check(intent(), given) if finding.check == "bandwidth.measured"]
    assert found_statuses
    assert set(found_statuses) == {"unknown"}


def test_what_was_left_behind():
    assert found(facts(remaining=("test/x",)), "cleanup", "pods").status == "fail"
    assert found(facts(leftovers=("test/x",)), "cleanup", "pods").status == "warn"


def test_every_kind_of_failure_has_a_cause_and_a_remedy():
    assert set(rdma_failure.Kind.__args__) <= set(CAUSES)
    assert all(why and remedy for why, remedy in CAUSES.values())
    assert bandwidth.PINGS == 5
