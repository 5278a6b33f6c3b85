# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed-up, scaling efficiency, alarms and advice; with the published figures of two clusters, one with mid-range GPUs
and one with H100s."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.compare import check as compare
from ansible_collections.linerate.rdma.plugins.module_utils._check.compare import mistakes
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.comparison import (
    FabricBandwidth,
    Figure,
    Kind,
    Measure,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    Fabric,
    Intent,
    Profile,
    Select,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import find_kind
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    LatencyFigures,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.modules import rdma_bandwidth

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
)
TCP = dataclasses.replace(FABRIC, name="tcp", profile="sriov_ethernet", rdma=False)
H100 = Measure(
    "fine-tuning on H100",
    "samples/s",
    (
        Figure("pod network", 2, 3.46, "pod_network"),
        Figure("vNIC", 2, 12.28, "vnic"),
        Figure("SR-IOV", 2, 40.36, "sriov"),
        Figure("compute", 2, 40.58),
    ),
    single_node=21.34,
)
L40S_FIGURES: tuple[tuple[str, Kind, tuple[float, ...]], ...] = (
    ("pod network", "pod_network", (2.91, 3.73, 5.46)),
    ("vNIC", "vnic", (3.98, 7.16, 12.68)),
)
L40S = Measure(
    "fine-tuning on L40S",
    "samples/s",
    tuple(
        Figure(network, nodes, value, kind)
        for network, kind, values in L40S_FIGURES
        for nodes, value in zip((2, 4, 8), values)
    ),
    single_node=2.04,
)


def intent(*measures: Measure, fabrics: tuple[Fabric, ...] = (FABRIC,)) -> Intent:
    return Intent(fabrics, cluster=ClusterIntent(measures=measures))


def judged(*measures: Measure, **rest: typing.Any) -> dict[str, Finding]:
    facts = compare.Facts(
        (FabricBandwidth("compute", 2, 370.0, 371.5, 373.0), FabricBandwidth("tcp", 1, 90.0, 90.0, 90.0))
    )
    return {
        f"{finding.check} on {finding.subject}": finding for finding in compare.check(intent(*measures, **rest), facts)
    }


def statuses(found: typing.Mapping[str, Finding], check: str) -> dict[str, str]:
    return {finding.subject: finding.status for finding in found.values() if finding.check == f"compare.{check}"}


def advice(measure: Measure, **rest: typing.Any) -> dict[str, str]:
    (only,) = [
        item for item in compare.compare_measures(intent(measure, **rest), compare.Facts()) if item.measure == measure
    ]
    return {item.rule: f"{item.text} | {item.reason} | {item.figures}" for item in only.advice}


def test_published_figures_give_their_efficiencies_and_their_alarm() -> None:
    found = judged(H100)
    told = {subject: finding.measured for subject, finding in found.items() if finding.check == "compare.scaling"}
    assert [text.rpartition(": ")[2] for text in told.values()] == [
        "0.16 times the speed of one node, 8.1 % of linear scaling",
        "0.58 times the speed of one node, 28.8 % of linear scaling",
        "1.89 times the speed of one node, 94.6 % of linear scaling",
        "1.90 times the speed of one node, 95.1 % of linear scaling",
    ]
    alarm = found["compare.scaling on fine-tuning on H100: pod network on 2 nodes"]
    assert alarm.status == "warn" and alarm.why.startswith("On this network, the job is faster on 1 node:")
    # 12.28 of two nodes is less than 21.34 of one, too
    assert list(statuses(found, "scaling").values()) == ["warn", "warn", "pass", "pass"]
    assert statuses(found, "choice")["fine-tuning on H100"] == "pass"
    assert found["compare.choice on fine-tuning on H100"].measured.startswith(
        "compute; compared: compute 40.58 samples/s on 2 nodes (100.0 % of the best); SR-IOV"
    )


def test_advice_for_fast_gpus_says_the_figures_that_triggered_it() -> None:
    said = advice(H100)
    assert list(said) == ["pod network", "negative scaling", "virtual functions", "RDMA"]
    assert (
        "pod network 3.46 samples/s on 2 nodes (8.1 % of linear) compared with compute 40.58 samples/s on 2 nodes"
        " (95.1 % of linear)" in said["pod network"]
    )
    assert (
        "on pod network and vNIC" in said["negative scaling"]
        and "one node: 21.34 samples/s" in said["negative scaling"]
    )
    assert "vNIC 12.28" in said["virtual functions"] and "SR-IOV 40.36" in said["virtual functions"]
    assert said["RDMA"].startswith("Plan RDMA for larger models")


def test_a_vnic_is_enough_for_mid_range_gpus() -> None:
    found = judged(L40S)
    assert [
        finding.measured.rpartition(", ")[2] for finding in found.values() if finding.check == "compare.scaling"
    ] == [f"{value} % of linear scaling" for value in ("71.3", "45.7", "33.5", "97.5", "87.7", "77.7")]
    said = advice(L40S)
    assert list(said) == ["pod network", "vNIC"]
    assert (
        said["vNIC"].startswith("A vNIC is sufficient")
        and "12.68 samples/s on 8 nodes (77.7 % of linear)" in said["vNIC"]
    )
    assert "measure this job on virtual functions" in advice(dataclasses.replace(L40S, enough=0.9))["vNIC"].lower()


def test_times_are_better_when_they_are_less() -> None:
    figures = (Figure("OVN", 2, 5.0, "pod_network"), Figure("tcp", 2, 2.5), Figure("compute", 2, 1 + 40 / 60))
    measure = Measure("fine-tuning", "h", figures, better="less", single_node=3.0)
    found = judged(measure, fabrics=(FABRIC, TCP))
    assert found["compare.choice on fine-tuning"].measured.startswith("compute; compared: compute 1.667 h")
    assert statuses(found, "scaling") == {
        "fine-tuning: OVN on 2 nodes": "warn",
        "fine-tuning: tcp on 2 nodes": "warn",
        "fine-tuning: compute on 2 nodes": "pass",
    }
    assert advice(measure, fabrics=(FABRIC, TCP))["RDMA"].startswith("Use RDMA for this job.")


def test_negative_scaling_of_a_fabric_of_the_intent_fails() -> None:
    figures = (Figure("compute", 2, 18.0), Figure("compute", 4, 17.0))
    found = judged(Measure("job", "samples/s", figures, single_node=10.0))
    assert statuses(found, "scaling") == {"job: compute on 2 nodes": "pass", "job: compute on 4 nodes": "fail"}
    assert "the job is faster on 2 nodes:" in found["compare.scaling on job: compute on 4 nodes"].why
    assert found["compare.advice on job: negative scaling"].status == "warn"
    low = judged(Measure("job", "samples/s", (Figure("compute", 2, 12.0),), single_node=10.0))
    assert statuses(low, "scaling") == {"job: compute on 2 nodes": "warn"}


def test_rates_of_a_node_are_compared_between_networks_alone() -> None:
    figures = (Figure("sockets", 2, 1.39, "pod_network"), Figure("compute", 2, 187.06), Figure("compute", 4, 185.0))
    found = judged(Measure("all_reduce_perf", "GB/s busbw", figures, per_node=True))
    assert statuses(found, "scaling") == {}
    assert found["compare.choice on all_reduce_perf"].measured.startswith(
        "compute; compared: compute 187.1 GB/s busbw on 2 nodes"
    )
    assert list(advice(Measure("all_reduce_perf", "GB/s", figures, per_node=True))) == ["pod network"]


@pytest.mark.parametrize(
    ("other", "status"),
    [
        (Figure("OVN", 2, 30.0, "pod_network"), "fail"),
        (Figure("new NIC", 2, 30.0, "sriov"), "warn"),
        (Figure("OVN", 2, 20.5, "pod_network"), "pass"),
    ],
)
def test_what_is_faster_than_the_intent_is_said(other: Figure, status: str) -> None:
    found = judged(Measure("job", "samples/s", (Figure("compute", 2, 20.0), other), single_node=11.0))
    assert statuses(found, "choice")["job"] == status


PODS = dataclasses.replace(FABRIC, name="pods", profile="pod_network", rdma=False)


def choose(mine: FabricBandwidth, pods: FabricBandwidth) -> Finding:
    fabrics = (FABRIC if mine.transport == "RDMA" else TCP, PODS)
    found = compare.check(intent(fabrics=fabrics), compare.Facts((mine, pods)))
    (choice,) = (item for item in found if item.check == "compare.choice")
    return choice


@pytest.mark.parametrize(
    ("worst", "median", "best", "status"),
    [(9.0, 9.1, 9.2, "warn"), (4.0, 5.1, 5.2, "warn"), (4.0, 4.9, 5.0, "fail"), (9.5, 9.6, 9.7, "pass")],
)
def test_tcp_that_is_slower_by_what_cpus_explain_is_no_fault(
    worst: float, median: float, best: float, status: str
) -> None:
    choice = choose(
        FabricBandwidth("tcp", 2, worst, median, best, "TCP"), FabricBandwidth("pods", 2, 9.9, 10.0, 10.1, "TCP")
    )
    assert choice.status == status
    assert "NCCL" not in choice.remedy and "job does" not in choice.why, "no job was measured"
    assert status == "pass" or "stages bandwidth and compare again" in choice.remedy
    assert ("up to 50 %" in choice.why) == (status == "warn")


@pytest.mark.parametrize(("best", "status"), [(8.9, "fail"), (9.9, "warn")])
def test_rdma_fails_where_the_figures_of_no_pair_overlap(best: float, status: str) -> None:
    choice = choose(
        FabricBandwidth("compute", 4, 7.0, 8.8, best, "RDMA"), FabricBandwidth("pods", 4, 9.9, 10.0, 10.1, "TCP")
    )
    assert choice.status == status and ("overlap" in choice.why) == (status == "warn")


@pytest.mark.parametrize(("mine", "status"), [(18.0, "warn"), (17.9, "fail")])
def test_one_figure_of_a_job_proves_no_small_difference(mine: float, status: str) -> None:
    figures = (Figure("compute", 2, mine), Figure("OVN", 2, 20.0, "pod_network"))
    found = judged(Measure("job", "samples/s", figures, single_node=11.0))["compare.choice on job"]
    assert found.status == status and "the job again" in found.remedy


def test_what_is_missing_is_unknown() -> None:
    found = judged(Measure("job", "samples/s", (Figure("OVN", 2, 30.0, "pod_network"),)))
    assert found["compare.scaling on job"].status == "unknown"
    assert found["compare.figures on compute: job"].status == "unknown"
    for facts, remedy in (
        (compare.Facts(), "--tags bandwidth,compare"),
        (compare.Facts(()), "findings of stage bandwidth for this fabric"),
    ):
        (missing,) = compare.check(intent(), facts)
        assert missing.status == "unknown" and remedy in missing.remedy


def test_rdma_and_tcp_between_pods_are_one_measure_and_each_says_what_it_is() -> None:
    seen = (FabricBandwidth("compute", 2, 370.0, 371.5, 373.0), FabricBandwidth("tcp", 2, 38.0, 40.0, 42.0, "TCP"))
    found = compare.check(intent(fabrics=(FABRIC, TCP)), compare.Facts(seen))
    said = {item.subject: item.measured for item in found if item.check == "compare.figures"}
    assert said["tcp"] == "median 40 Gb/s over TCP in 2 measurements (38 to 42 Gb/s)"
    (choice,) = (item for item in found if item.check == "compare.choice")
    assert (choice.status, choice.measured.split(";")[0]) == ("pass", "compute")
    unmeasured = compare.check(intent(fabrics=(FABRIC, TCP)), compare.Facts(seen[:1]))
    assert [(item.subject, item.status) for item in unmeasured if item.check == "compare.figures"] == [
        ("compute", "pass"),
        ("tcp", "unknown"),
    ]


def test_each_profile_has_a_kind() -> None:
    assert {find_kind(dataclasses.replace(FABRIC, profile=profile)) for profile in typing.get_args(Profile)} >= {
        "sriov_rdma",
        "rdma_shared",
        "ipoib",
    }


def test_bandwidths_of_the_fabrics_are_a_measure_of_their_own() -> None:
    found = judged(fabrics=(FABRIC, TCP))
    assert (
        found["compare.figures on compute"].measured
        == "median 371.5 Gb/s over RDMA in 2 measurements (370 to 373 Gb/s)"
    )
    assert found["compare.choice on bandwidth of a pair of pods"].measured.startswith(
        "compute; compared: compute 371.5 Gb/s on 2 nodes"
    )
    assert found["compare.advice on bandwidth of a pair of pods: RDMA"].status == "warn", "the intent still offers TCP"
    both = dataclasses.replace(TCP, bandwidth=dataclasses.replace(TCP.bandwidth, directions="at_once"))
    assert set(statuses(judged(fabrics=(FABRIC, both)), "choice")) == {
        "bandwidth of a pair of pods",
        "bandwidth of a pair of pods, both directions at once",
    }


def test_facts_take_measurements_and_no_failures() -> None:
    pairs = [PairResult("compute", "a", "b", average_gbps=value) for value in (300.0, 373.0, 372.0)]
    pairs += [
        PairResult("compute", "a", "b", average_gbps=1.0, failure="peer_gone"),
        PairResult("compute", "a", "c"),
        PairResult("tcp", "a", "b"),
    ]
    pairs.append(PairResult("compute", "a", "b", average_gbps=310.0, again=True))
    # stage bandwidth leaves them in its fact, for this stage
    kept = rdma_bandwidth.answer(BandwidthFacts((), tuple(pairs)))
    assert load(compare.Facts, {"bandwidth": kept["fabrics"]}) == compare.Facts(
        (FabricBandwidth("compute", 3, 300.0, 372.0, 373.0),)
    )
    assert load(compare.Facts, {}) == compare.Facts()
    with pytest.raises(LoadError, match=r"bandwidth\.pairs"):
        load(BandwidthFacts, {"pods": [], "pairs": 7}, "bandwidth")


@pytest.mark.parametrize(
    ("measure", "path"),
    [
        (dataclasses.replace(H100, figures=()), "figures"),
        (dataclasses.replace(H100, single_node=0.0), "single_node"),
        (dataclasses.replace(H100, per_node=True), "single_node"),
        (dataclasses.replace(H100, enough=75.0), "enough"),
        (dataclasses.replace(H100, figures=(Figure("compute", 1, 1.0),)), "figures[0].nodes"),
        (dataclasses.replace(H100, figures=(Figure("compute", 2, float("nan")),)), "figures[0].value"),
        (dataclasses.replace(H100, figures=(Figure("compute", 2, 1.0), Figure("compute", 2, 2.0))), "figures[1]"),
        (dataclasses.replace(H100, figures=(Figure("compute", 2, 1.0, "vnic"),)), "figures[0].kind"),
        (dataclasses.replace(H100, figures=(Figure("compte", 2, 1.0),)), "figures[0].kind"),
        (
            dataclasses.replace(H100, figures=(Figure("x", 2, 1.0, "vnic"), Figure("x", 4, 1.0, "sriov"))),
            "figures[1].kind",
        ),
    ],
)
def test_figures_that_cannot_be_compared_are_refused_with_their_path(measure: Measure, path: str) -> None:
    found = validate.check(intent(measure), validate.Facts(("a", "b")))
    bad = [finding.subject for finding in found if finding.check == "validate.measures" and finding.status == "fail"]
    assert bad == [f"rdma_cluster.measures[0].{path}"]


def test_one_name_for_one_measure() -> None:
    assert [path for path, _seen, _expected in mistakes.report_mistakes(intent(H100, H100))] == [
        "rdma_cluster.measures[1].name"
    ]
    assert list(mistakes.report_mistakes(intent(H100, L40S))) == []


def test_the_pod_network_may_be_as_bad_as_it_is_also_where_the_intent_names_it() -> None:
    ovn = dataclasses.replace(FABRIC, name="ovn", profile="pod_network", rdma=False)
    found = judged(
        Measure("job", "samples/s", (Figure("ovn", 2, 5.0), Figure("compute", 2, 19.0)), single_node=10.0),
        fabrics=(ovn, FABRIC),
    )
    assert statuses(found, "scaling") == {"job: ovn on 2 nodes": "warn", "job: compute on 2 nodes": "pass"}
    assert set(statuses(found, "advice").values()) == {"pass"}, (
        "the advice against it is nothing to change in the intent"
    )


def test_a_measure_adds_to_the_findings_of_each_fabric() -> None:
    found = judged(Measure("job", "samples/s", (Figure("compute", 2, 19.0),), single_node=10.0), fabrics=(FABRIC, TCP))
    assert statuses(found, "figures") == {
        "compute": "pass",
        "tcp": "pass",
        "compute: job": "pass",
        "tcp: job": "unknown",
    }


def test_bandwidths_are_rates_of_each_node() -> None:
    """Nothing follows from them for larger models where TCP is as fast as RDMA."""
    seen = (FabricBandwidth("compute", 2, 90.0, 90.0, 90.0), FabricBandwidth("tcp", 2, 90.0, 90.0, 90.0, "TCP"))
    found = compare.check(intent(fabrics=(FABRIC, TCP)), compare.Facts(seen))
    assert [item.subject for item in found if item.check == "compare.advice"] == []


@pytest.mark.parametrize(("value", "status"), [(15.0, "pass"), (14.9, "warn"), (10.0, "warn"), (9.9, "fail")])
def test_limits_of_scaling_belong_to_the_better_side(value: float, status: str) -> None:
    found = judged(Measure("job", "samples/s", (Figure("compute", 2, value),), single_node=10.0, enough=0.75))
    assert statuses(found, "scaling") == {"job: compute on 2 nodes": status}


def test_networks_that_are_close_leave_the_choice_to_the_intent() -> None:
    near = judged(
        Measure("job", "samples/s", (Figure("new NIC", 2, 20.0, "sriov"), Figure("compute", 2, 19.0)), single_node=10.0)
    )
    assert near["compare.choice on job"].status == "pass" and near["compare.choice on job"].measured.startswith(
        "compute; compared: "
    )
    none = judged(
        Measure("job", "samples/s", (Figure("a", 2, 20.0, "sriov"), Figure("b", 2, 5.0, "sriov")), single_node=10.0)
    )
    assert none["compare.choice on job"].status == "pass" and none["compare.choice on job"].measured.startswith(
        "a; compared: "
    )


@pytest.mark.parametrize(("enough", "right"), [(0.0, False), (0.01, True), (1.0, True), (1.5, False)])
def test_what_is_enough_is_a_share_of_linear(enough: float, right: bool) -> None:
    paths = [
        path for path, _seen, _expected in mistakes.report_mistakes(intent(dataclasses.replace(H100, enough=enough)))
    ]
    assert paths == ([] if right else ["rdma_cluster.measures[0].enough"])


def rules(*figures: Figure, **changes: typing.Any) -> dict[str, str]:
    """The first words of each advice on a job that is linear at 20 samples/s on two nodes and 40 on four."""
    said = advice(
        dataclasses.replace(Measure("job", "samples/s", figures, single_node=10.0), **changes), fabrics=(FABRIC, TCP)
    )
    return {rule: text.split(" | ")[0] for rule, text in said.items()}


ENOUGH, HELD_BACK = (
    {"vNIC": "A vNIC is sufficient for this job."},
    {"virtual functions": "Use virtual functions (SR-IOV) for this job instead of a vNIC."},
)
USE, PLAN = (
    {"RDMA": "Use RDMA for this job."},
    {"RDMA": "Plan RDMA for larger models. This model does not need it yet."},
)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        # virtual functions alone show what a vNIC could be, on as many nodes
        ((Figure("v", 2, 16.0, "vnic"), Figure("m", 2, 20.0, "macvlan")), ENOUGH),
        ((Figure("v", 2, 20.0, "vnic"), Figure("s", 2, 20.0, "sriov")), ENOUGH),
        ((Figure("v", 2, 19.0, "vnic"), Figure("s", 2, 20.0, "sriov")), ENOUGH),
        ((Figure("v", 2, 18.9, "vnic"), Figure("s", 2, 20.0, "sriov")), HELD_BACK),
        ((Figure("v", 2, 20.0, "vnic"), Figure("v", 4, 32.0, "vnic"), Figure("s", 4, 40.0, "sriov")), HELD_BACK),
        # both are far from the best, and as good as each other
        ((Figure("v", 2, 16.0, "vnic"), Figure("s", 2, 16.0, "sriov"), Figure("i", 2, 20.0, "ipoib")), ENOUGH),
        # at what is enough
        ((Figure("v", 2, 15.0, "vnic"),), ENOUGH),
        (
            (Figure("v", 2, 14.9, "vnic"),),
            {"vNIC": "Measure this job on virtual functions (SR-IOV) as well: the vNIC limits the job."},
        ),
    ],
)
def test_a_vnic_is_compared_with_what_it_could_be(figures: tuple[Figure, ...], expected: dict[str, str]) -> None:
    assert rules(*figures) == expected


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        # the largest number of nodes that both have a figure of
        ((Figure("compute", 2, 20.0), Figure("tcp", 2, 20.0), Figure("compute", 4, 40.0), Figure("tcp", 4, 21.0)), USE),
        ((Figure("compute", 2, 20.0), Figure("tcp", 2, 11.0), Figure("tcp", 4, 40.0)), USE),
        # the best of each
        ((Figure("compute", 2, 20.0), Figure("tcp", 2, 20.0), Figure("m", 2, 11.0, "macvlan")), PLAN),
        ((Figure("compute", 2, 20.0), Figure("r", 2, 11.0, "rdma_shared"), Figure("tcp", 2, 11.0)), USE),
        # one without the other says nothing
        ((Figure("tcp", 2, 20.0), Figure("m", 2, 11.0, "macvlan")), {}),
        ((Figure("tcp", 2, 11.0), Figure("i", 2, 20.0, "ipoib")), {}),
        ((Figure("compute", 2, 20.0), Figure("i", 2, 11.0, "ipoib")), {}),
        # both are far from the best, and as good as each other
        ((Figure("compute", 2, 16.0), Figure("tcp", 2, 16.0), Figure("i", 2, 20.0, "ipoib")), PLAN),
        ((Figure("compute", 2, 20.0), Figure("tcp", 2, 19.0)), PLAN),
        ((Figure("compute", 2, 20.0), Figure("tcp", 2, 18.9)), USE),
    ],
)
def test_rdma_is_compared_with_tcp(figures: tuple[Figure, ...], expected: dict[str, str]) -> None:
    assert rules(*figures) == expected


@pytest.mark.parametrize(("value", "expected"), [(19.0, False), (18.9, True)])
def test_a_pod_network_that_is_as_good_is_not_spoken_against(value: float, expected: bool) -> None:
    assert ("pod network" in rules(Figure("OVN", 2, value, "pod_network"), Figure("compute", 2, 20.0))) is expected


FIGURES = some.builds(
    Figure,
    some.sampled_from(["compute", "a", "b"]),
    some.integers(2, 64),
    some.floats(1e-9, 1e9),
    some.sampled_from(["pod_network", "vnic", "sriov", "rdma_shared"]),
)


@hypothesis.given(
    some.lists(FIGURES, min_size=1, max_size=12),
    some.none() | some.floats(1e-9, 1e9),
    some.booleans(),
    some.sampled_from(["more", "less"]),
)
def test_any_figures_are_judged_and_each_verdict_is_consistent(
    figures: list[Figure], single: typing.Optional[float], per_node: bool, better: typing.Any
) -> None:
    measure = Measure("job", "x", tuple(figures), better, single, per_node)
    found = judged(measure)
    assert all(finding.measured for finding in found.values())
    (worked_out,) = [
        item for item in compare.compare_measures(intent(measure), compare.Facts()) if item.measure == measure
    ]
    assert max(row.of_best for row in worked_out.rows) == 1.0
    for row in worked_out.rows:
        assert 0 < row.of_best <= 1.0
        if row.efficiency is not None and row.speed_up is not None:
            assert row.efficiency == pytest.approx(row.speed_up / row.nodes)
            assert row.speed_up >= 1 or row.slower_than == 1


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), 1e300, 5e-324])
def test_a_figure_that_means_nothing_is_none(value: float) -> None:
    """A waiver may cover what stage validate or stage bandwidth says of it."""
    job = Measure("job", "s", (Figure("tcp", 2, value), Figure("compute", 2, 10.0)), "less", single_node=value)
    empty = Measure("empty", "s", (Figure("compute", 2, value),), per_node=True)
    found = judged(job, empty, fabrics=(FABRIC, TCP))
    assert found["compare.figures on tcp: job"].status == "unknown"
    assert found["compare.choice on empty"].status == "unknown"
    assert found["compare.scaling on job"].status == "unknown"
    pair = PairResult("compute", "a", "b", average_gbps=value)
    assert compare.list_bandwidths(BandwidthFacts((), (pair,))) == ()


STEPS = (
    StepFigures("compute", "all_reduce", "one node", 1, 4, 360.0, 370.0, 371.0),
    StepFigures("compute", "all_reduce", "two nodes", 2, 2, 46.0, 47.0, 48.0),
    StepFigures("compute", "all_reduce", "a leaf", 4, 2, 90.0, 93.0, 96.0),
    StepFigures("compute", "all_reduce", "across leaves", 4, 2, 88.0, 89.0, 90.0),
    StepFigures("compute", "all_reduce", "all", 8, 1, 91.0, 91.0, 91.0),
    StepFigures("removed", "all_reduce", "all", 8, 1, 300.0, 300.0, 300.0),
)
BUS = Measure(
    "nccl-tests", "GB/s", (Figure("pod network", 8, 2.9, "pod_network"),), per_node=True, collective="all_reduce"
)


def proven(*measures: Measure, steps: typing.Optional[tuple[StepFigures, ...]] = STEPS) -> dict[str, Finding]:
    facts = compare.Facts((FabricBandwidth("compute", 2, 370.0, 371.5, 373.0),), steps)
    return {f"{finding.check} on {finding.subject}": finding for finding in compare.check(intent(*measures), facts)}


def test_collectives_that_are_proven_are_measures_of_their_own() -> None:
    names = {item.measure.name: item for item in compare.compare_measures(intent(), compare.Facts(None, STEPS))}
    assert list(names) == ["bus bandwidth of all_reduce", "bus bandwidth of all_reduce of one rail"]
    rows = [(row.network, row.nodes, row.value) for row in names["bus bandwidth of all_reduce"].rows]
    assert rows == [("compute", 8, 91.0), ("compute", 4, 89.0)], "of as many nodes the later step"
    (rail,) = names["bus bandwidth of all_reduce of one rail"].rows
    assert (rail.nodes, rail.value) == (2, 47.0)
    found = proven()
    assert found["compare.choice on bus bandwidth of all_reduce"].status == "pass"
    soak = StepFigures("compute", "all_reduce", "soak", 8, 1, 90.0, 90.0, 90.0)
    names = {
        item.measure.name: item for item in compare.compare_measures(intent(), compare.Facts(None, (*STEPS, soak)))
    }
    (row,) = names["bus bandwidth of all_reduce in a soak"].rows
    assert (row.nodes, row.value) == (8, 90.0)


def test_latencies_that_are_proven_are_a_measure_of_which_less_is_better() -> None:
    times = (
        LatencyFigures("compute", "all_reduce", 4, 18.0, 20.0, 26.0, 40.0),
        LatencyFigures("removed", "all_reduce", 4, 1.0, 1.0, 1.0),
    )
    facts = compare.Facts(None, STEPS, times)
    names = {item.measure.name: item for item in compare.compare_measures(intent(), facts)}
    found = names["latency of small messages of all_reduce"]
    assert [(row.network, row.nodes, row.value) for row in found.rows] == [("compute", 2, 20.0)]
    choice = {item.subject: item for item in compare.check(intent(), facts)}["latency of small messages of all_reduce"]
    assert choice.status == "pass" and "compute 20 us on 2 nodes" in choice.measured
    assert not any(item.startswith("compare.choice") for item in proven(steps=None) if "bus bandwidth" in item)


def test_measured_collectives_stand_in_the_place_of_written_figures() -> None:
    wrong = dataclasses.replace(BUS, figures=(*BUS.figures, Figure("compute", 8, 400.0)))
    found = proven(wrong)
    choice = found["compare.choice on nccl-tests"]
    assert choice.status == "pass" and "compute 91 GB/s on 8 nodes" in choice.measured and "400" not in choice.measured
    assert found["compare.advice on nccl-tests: pod network"].status == "pass"
    assert found["compare.figures on compute: nccl-tests"].measured == "91 GB/s on 8 nodes, 89 GB/s on 4 nodes"
    assert not [item for item in found if "bus bandwidth of all_reduce" in item and "rail" not in item]
    assert proven(dataclasses.replace(BUS, collective=None))["compare.figures on compute: nccl-tests"].status == (
        "unknown"
    )


@pytest.mark.parametrize("steps", (None, (), STEPS[:2]))
def test_a_collective_that_is_not_proven_has_no_figure(steps: typing.Any) -> None:
    found = proven(BUS, steps=steps)["compare.figures on compute: nccl-tests"]
    assert found.status == "unknown" and "rdma_cluster.collectives.fabric: compute" in found.remedy


@pytest.mark.parametrize(
    ("change", "path"),
    (
        ({"unit": "Gb/s"}, "unit"),
        ({"better": "less"}, "unit"),
        ({"per_node": False}, "per_node"),
    ),
)
def test_what_cannot_be_beside_a_collective_is_named(change: dict[str, typing.Any], path: str) -> None:
    assert [key for key, _seen, _expected in mistakes.report_mistakes(intent(dataclasses.replace(BUS, **change)))] == [
        f"rdma_cluster.measures[0].{path}"
    ]
    assert not list(mistakes.report_mistakes(intent(dataclasses.replace(BUS, figures=()))))
