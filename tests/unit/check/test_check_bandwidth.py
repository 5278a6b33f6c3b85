# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: the figures of row S1.12 against the floors, and what is no measurement."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check import bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth import CAUSES, Facts, check, floor_of, shares_of, verdicts
from ansible_collections.linerate.rdma.plugins.module_utils._model.bandwidth import BandwidthFacts, PairResult, RdmaPod, SweepRow
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods import failure as rdma_failure


def intent(fabric_changes=None, **line_rate):
    fabric = {
        "name": "compute",
        "profile": "sriov_infiniband",
        "select": {"hcas_per_node": 1},
        "virtual_functions": 8,
        "resource_name": "mlx",
        "network": {"name": "ib", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
    }
    return parse_intent([{**fabric, "line_rate": line_rate, **(fabric_changes or {})}])


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
    floor, text = floor_of(intent().fabrics[0], slow, {})
    assert floor == pytest.approx(0.92 * 252.06)
    assert "PCIe of b 252.06" in text


def test_without_the_rate_of_a_port_there_is_no_floor():
    given = facts(pods=(PODS[0], dataclasses.replace(PODS[1], rate_gbps=None)))
    assert found(given, "floor", AB).status == "unknown"
    # that is nobody's fault
    assert found(given, "suspect", "compute").status == "pass"


def test_the_fleet_catches_the_slow_direction():
    given = facts(pair("a", "b", 373.64), pair("b", "a", 340.0))
    assert found(given, "fleet", AB).status == "pass"
    slow = found(given, "fleet", "compute b -> a")
    assert (slow.status, slow.expected) == ("fail", ">= 347.49 Gb/s (0.93 of the best pair of the rail, 373.64 Gb/s)")


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
    finding = found(given, "measured", "compute b")
    assert (finding.status, "the node offers no openshift.io/mlx" in finding.why) == ("unknown", True)
    # a has nobody to measure with
    assert found(given, "measured", "compute a").status == "unknown"
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


RAILS = intent({"select": {"hcas_per_node": 2}})


def rail_pods(*nodes, **changes):
    return tuple(
        RdmaPod("compute", node, f"{node}-{rail}", "test", f"mlx5_{rail}", "10.0.0.1", f"0000:{rail}c:00.2", "net1", 400.0, 504.12, rail=rail, **changes)
        for node in nodes
        for rail in (0, 1)
    )


def test_rails_are_judged_by_themselves():
    pairs = [pair(*names, average, rail=rail) for names in (("a", "b"), ("b", "a")) for rail, average in ((0, 373.0), (1, 390.0))]
    given = Facts(("a", "b"), BandwidthFacts(rail_pods("a", "b"), tuple(pairs)))
    assert set(statuses(given, RAILS).values()) == {"pass"}
    assert found(given, "fleet", "compute a -> b rail 0", RAILS).expected.endswith("(0.93 of the best pair of the rail, 373.00 Gb/s)")
    assert found(given, "pod", "compute a rail 1", RAILS).status == "pass"


def test_a_rail_without_a_pod_is_unknown_by_name():
    missing = RdmaPod("compute", "b", "", "test", error="none of the 9 virtual functions is of rail 1", rail=1, cause="rail")
    pods = (*(pod for pod in rail_pods("a", "b") if (pod.node, pod.rail) != ("b", 1)), missing)
    given = Facts(("a", "b"), BandwidthFacts(pods, (pair("a", "b"), pair("b", "a"))))
    assert found(given, "pod", "compute b rail 1", RAILS).status == "unknown"
    assert found(given, "measured", "compute b rail 1", RAILS).status == "unknown"
    assert "compute b rail 0" not in {finding.subject for finding in check(RAILS, given) if finding.status != "pass"}


def test_virtual_functions_that_measure_at_once_share_port_and_card():
    # two ports of one card, in a slot of 504 Gb/s
    pods = tuple(dataclasses.replace(pod, physical_function=f"0000:3c:00.{pod.rail}") for pod in rail_pods("a", "b"))
    fabric = RAILS.fabrics[0]
    ends = [pod for pod in pods if pod.rail == 0]
    floor, text = floor_of(fabric, ends, shares_of(fabric, pods))
    assert floor == pytest.approx(0.92 * 252.06)
    assert "PCIe of a 504.12 / 2 VFs at once" in text
    serial = intent({"select": {"hcas_per_node": 2}, "bandwidth": {"rails": "serial"}}).fabrics[0]
    assert floor_of(serial, ends, shares_of(serial, pods))[0] == pytest.approx(368.0)


def test_both_directions_at_once_have_twice_the_link():
    wanted = intent({"bandwidth": {"directions": "at_once"}})
    given = facts(pair("a", "b", 700.0))
    finding = found(given, "floor", "compute a <-> b", wanted)
    assert (finding.status, finding.expected.split(" (")[0]) == ("fail", ">= 736.00 Gb/s")
    assert {key: status for key, status in statuses(given, wanted).items() if key[0] == "measured"} == {("measured", "compute a <-> b"): "pass"}


def test_an_hca_that_runs_on_the_wrong_cpus_is_said_beside_a_low_figure():
    pods = tuple(dataclasses.replace(pod, binding="on other CPUs (0-3) than those of the HCA's NUMA node 1 (4-7)") for pod in PODS)
    given = facts(pair("a", "b", 200.0), pair("b", "a", 200.0), pods=pods)
    assert "on other CPUs (0-3)" in found(given, "floor", AB).why
    assert "on other CPUs (0-3)" in found(given, "pod", "compute a").measured


def fleet(nodes, bad=(), rounds=None, again=()):
    """Each pair of the nodes, slow where it is in ``bad`` or has a node that is."""
    names = [(one, other) for one in nodes for other in nodes if one != other]
    pods = tuple(dataclasses.replace(PODS[0], node=node, physical_function=f"0000:3c:00.{number}") for number, node in enumerate(nodes))
    pairs = tuple(pair(*both, 200.0 if set(both) & set(bad) or both in bad else 373.64) for both in names)
    return Facts(tuple(nodes), BandwidthFacts(pods, pairs))


def suspected(given):
    return {finding.subject: finding for finding in check(intent(), given) if finding.check == "bandwidth.suspect"}


def test_nobody_is_suspected_where_all_pass():
    assert [finding.status for finding in suspected(fleet("abcd")).values()] == ["pass"]


def test_a_slow_node_is_named_with_its_hca_and_nobody_else():
    ((subject, finding),) = suspected(fleet("abcdef", bad=("d",))).items()
    assert (subject, finding.status) == ("compute d 0000:3c:00.3", "fail")
    assert "0000:3c:00.3, rail 0" in finding.why


def test_a_slow_path_accuses_neither_end():
    ((subject, finding),) = suspected(fleet("abcdef", bad=(("a", "d"), ("d", "a")))).items()
    assert (subject, finding.status) == ("compute path a 0000:3c:00.0 <-> d 0000:3c:00.3", "fail")


def test_of_two_nodes_neither_can_be_accused_alone():
    ((subject, finding),) = suspected(fleet("ab", bad="b")).items()
    assert subject == "compute a 0000:3c:00.0 or b 0000:3c:00.1"
    assert "cannot be told" in finding.why


def test_verdicts_of_a_pair_need_both_directions():
    given = fleet("abc", bad=(("a", "b"),))
    passed, failed = verdicts(intent().fabrics[0], given.bandwidth.pods, given.bandwidth.pairs)
    assert failed == {frozenset(((0, "a"), (0, "b")))}
    assert len(passed) == 2


@pytest.mark.parametrize(("rounds", "met", "status"), [(None, 2, "unknown"), (1, 1, None), (2, 1, "unknown")])
def test_who_met_fewer_than_it_should_is_unknown(rounds, met, status):
    nodes = ("a", "b", "c", "d")
    pairs = [pair(one, other) for one, other in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "c"), ("c", "a"))[: 6 if met == 2 else 4]]
    given = Facts(nodes, BandwidthFacts(tuple(dataclasses.replace(PODS[0], node=node) for node in nodes), tuple(pairs)))
    wanted = intent({"bandwidth": {"rounds": rounds}} if rounds else None)
    assert statuses(given, wanted).get(("measured", "compute d")) == status


@pytest.mark.parametrize(("failure", "rows", "status"), [("", ((2, 0.1), (4, 0.2)), "pass"), ("hang: no end", (), "unknown"), ("", (), "unknown")])
def test_a_sweep_that_was_asked_for(failure, rows, status):
    wanted = intent({"bandwidth": {"sweep": True}})
    swept = pair("a", "b", sweep=tuple(SweepRow(*row) for row in rows), sweep_failure=failure)
    finding = found(facts(swept, pair("b", "a")), "sweep", AB, wanted)
    assert finding.status == status
    assert not rows or "4 bytes: 0.2000 Gb/s" in finding.measured


@pytest.mark.parametrize("cause", ["refused", "stuck", "unschedulable", "image", "container", "rail", "no_tool", "no_device"])
def test_a_pod_s_trouble_has_a_remedy_of_its_own(cause):
    broken = dataclasses.replace(PODS[1], error="the server's words", cause=cause)
    finding = found(Facts(("a", "b"), BandwidthFacts((PODS[0], broken), ())), "pod", "compute b")
    assert (finding.status, finding.remedy) == ("fail", CAUSES[cause][1])
    assert "the server's words" in finding.why
