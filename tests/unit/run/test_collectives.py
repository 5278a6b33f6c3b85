# SPDX-License-Identifier: GPL-3.0-or-later

"""The stage collectives from its pods to its findings: steps, daemons, logs, halving, failures, and that no pod stays.
API server and pods are played."""

from __future__ import annotations

import dataclasses
import sys
import time
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives import check as collectives_check
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.hardware import NodesHardware, learn_gpus
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.surroundings import UsedHca
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import Place
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.kept_log import KeptLog
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclCommunicator
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import Refusal
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    MOST_HCAS,
    CollectivesFacts,
    RanTest,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.collectives import host_name
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.mpirun_agent import AGENT_LIMIT
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement import collective_logs
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collective_logs import LOGS, lines_of
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collective_pods import LOOK, SHORT
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collectives import (
    CollectivesRun,
    make_unstarted_facts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.tests.unit import collectives_world
from ansible_collections.linerate.rdma.tests.unit.collectives_world import (
    CLUSTER,
    COLLECTIVES,
    DEVICES,
    FABRIC,
    Mpirun,
    NcclApi,
    functions_of,
)

from .test_pairs import Clock

Found = tuple[CollectivesFacts, list[str], tuple[Finding, ...]]


def measured(nodes: typing.Sequence[str]) -> BandwidthFacts:
    """Return what stage bandwidth has measured: each rail of each node at 392 Gb/s."""
    pairs = [
        PairResult("compute", one, other, 5, average_gbps=392.0, rail=rail)
        for rail in (0, 1)
        for one, other in zip(nodes, (*nodes[1:], nodes[0]))
    ]
    return BandwidthFacts((), tuple(pairs))


def run(
    api: NcclApi,
    bandwidth: bool = True,
    refused: typing.Optional[Refusal] = None,
    fabric: typing.Optional[typing.Mapping[str, typing.Any]] = None,
    **wishes: typing.Any,
) -> Found:
    """Run the stage, and judge it by its facts as they are kept."""
    lines: list[str] = []
    intent = parse_intent([dict(fabric or FABRIC)], None, {**CLUSTER, "collectives": {**COLLECTIVES, **wishes}})
    rails = {
        "compute": {
            node: {function: rail for rail, (_vf, function, _device) in enumerate(functions_of(0))}
            for node in api.nodes
        }
    }
    plan = Plan(
        intent.fabrics,
        intent.cluster,
        api.nodes,
        rails,
        parallel=8,
        pod_seconds=60.0,
        run="run-1",
        refused={"compute": refused} if refused else {},
    )
    seen = Facts(api.nodes, bandwidth=measured(api.nodes) if bandwidth else None)
    assert intent.cluster.collectives is not None
    api.clock = Clock()
    bench = CollectivesRun(
        typing.cast(Cluster, api), plan, intent.cluster.collectives, api.clock, lambda seconds: None, lines.append, seen
    )
    facts = load(CollectivesFacts, to_data(bench.run()), "collectives")
    return facts, lines, check(intent, dataclasses.replace(seen, collectives=facts))


def of(findings: typing.Iterable[Finding], check_id: str) -> list[tuple[str, str]]:
    return [(item.status, item.subject) for item in findings if item.check == check_id]


def last(facts: CollectivesFacts) -> RanTest:
    """Return the last test of the climb: repeats come after it."""
    return [ran for ran in facts.runs if not ran.change][-1]


def bad(findings: typing.Iterable[Finding]) -> set[str]:
    return {item.check for item in findings if item.status in (FAIL, UNKNOWN)}


def test_a_sound_fleet_is_proven_from_one_node_to_all_and_no_pod_stays() -> None:
    api = NcclApi()
    facts, lines, findings = run(api)
    assert {item.status for item in findings} == {PASS}, [item for item in findings if item.status != PASS]
    assert [(ran.kind, len(ran.nodes)) for ran in facts.runs] == [
        *[("one node", 1)] * 4,
        *[("two nodes", 2)] * 2,
        ("all", 4),
    ]
    assert api.pods == {} and facts.remaining == () and facts.announced == 7
    assert "all_reduce: 4 of one node, 2 of two nodes, 1 of all;" in " ".join(lines)
    assert "all_reduce, all: a, b, c, d: 94.1 GB/s, fast enough" in " ".join(lines)
    # who could run commands in these pods
    assert (
        lines[0].startswith("mpirun accepts commands from every pod that can reach its pod. The NetworkPolicy")
        and "docs/security" in lines[0]
    )
    # the network alone goes before the whole
    assert [run.split for run in api.runs if len(run.hosts) == 2] == [True, True] and not api.runs[-1].split


def test_pods_that_share_the_hcas_of_their_node_are_told_which_they_are() -> None:
    api = NcclApi(("a", "b"))
    api.shared = True
    facts, _lines, findings = run(api)
    assert (
        bad(findings) == set()
        and [[(hca.device, hca.rail, hca.numa_node) for hca in pod.hcas] for pod in facts.pods]
        == [[("mlx5_21", 0, None), ("mlx5_22", 1, None)]] * 2
    )


def test_nodes_with_long_names_stay_apart() -> None:
    nodes = tuple(
        f"gpu-{number}.a-region-of-a-cloud.with-a-rather-long-name.compute.example.com" for number in range(3)
    )
    facts, _lines, findings = run(NcclApi(nodes))
    assert bad(findings) == set() and len({pod.host for pod in facts.pods}) == 3 and facts.runs[-1].nodes == nodes


def test_each_daemon_runs_in_the_pod_of_its_host_and_each_log_is_removed() -> None:
    api = NcclApi()
    run(api)
    started = {pod for pod, _words in api.executed}
    assert started == {
        "linerate-collectives-compute-b",
        "linerate-collectives-compute-c",
        "linerate-collectives-compute-d",
    }
    assert len(api.removed_logs) == 4 + 2 * 2 + 4 and len(set(api.removed_logs)) == 7


def test_leaves_that_name_none_of_the_nodes_are_no_leaves() -> None:
    _facts, _lines, findings = run(NcclApi(), leaves={"su-1": ["node-a", "node-b"], "su-2": ["node-c", "node-d"]})
    (told,) = [item for item in findings if item.status == UNKNOWN]
    assert (told.check, told.subject) == ("collectives.steps", "compute leaves")
    assert told.measured == "0 of 4 nodes assigned to a leaf" and "the node names of the inventory" in told.remedy


@pytest.mark.parametrize("leaf_of_h", ["", "leaf-0"])
def test_a_node_whose_leaf_is_not_known_takes_the_steps_by_leaves_from_no_other_node(
    monkeypatch: pytest.MonkeyPatch, leaf_of_h: str
) -> None:
    """A GUID that no switch has made of all nodes one group, without a word."""
    nodes = tuple("abcdefgh")
    leaves = {**{node: f"leaf-{place // 4}" for place, node in enumerate(nodes)}, "h": leaf_of_h}
    # a switch may have any name
    leaves = {node: leaf.replace("leaf-1", "leaf of h unknown") for node, leaf in leaves.items()}
    seen = {
        (node, device): Place(node, device, rail, leaf)
        for node, leaf in leaves.items()
        for rail, device in enumerate(DEVICES)
    }
    monkeypatch.setattr(collectives_check, "collect_places", lambda membership, topologies: seen)
    facts, _lines, findings = run(NcclApi(nodes))
    by_leaves = [run.nodes for run in facts.runs if run.kind in ("a leaf", "across leaves")]
    assert (
        ("e", "f", "g") in by_leaves
        and ("a", "e") in by_leaves
        and {node for run in facts.runs for node in run.nodes} == set(nodes)
    )
    assert facts.runs[-1].kind == "all" and set(facts.runs[-1].nodes) == set(nodes)
    if leaf_of_h:
        assert bad(findings) == set()
    else:
        assert all("h" not in names for names in by_leaves)
        (found,) = [item for item in findings if item.status != PASS]
        assert (found.check, found.status, found.subject) == (
            "collectives.steps",
            UNKNOWN,
            "compute h",
        ) and "LLDP" in found.why


def test_a_slow_port_whose_leaf_is_not_known_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node runs with that of another leaf, which is left out of no step for it."""
    nodes = tuple("abcdefgh")
    seen = {(node, "mlx5_0"): Place(node, "mlx5_0", 0, f"leaf-{place // 4}") for place, node in enumerate(nodes)}
    both = {
        **seen,
        **{
            (node, "mlx5_1"): dataclasses.replace(place, hca="mlx5_1", rail=1)
            for (node, _hca), place in seen.items()
            if node != "h"
        },
    }
    monkeypatch.setattr(collectives_check, "collect_places", lambda membership, topologies: both)
    api = NcclApi(nodes)
    api.slow = {("h", 1)}
    facts, _lines, findings = run(api)
    assert of(findings, "collectives.suspect") == [(FAIL, "all_reduce, h rail 1")]
    assert last(facts).kind == "all" and set(last(facts).nodes) == set(nodes) - {"h"}


def test_a_pod_of_each_node_has_all_gpus_and_rails() -> None:
    api = NcclApi()
    run(api)
    assert len(api.definitions) == 4
    for item in api.definitions:
        limits = item["spec"]["containers"][0]["resources"]["limits"]
        assert (limits["nvidia.com/gpu"], limits["openshift.io/rails"]) == ("2", "2") and item["metadata"]["labels"][
            "linerate.rdma/run"
        ] == "run-1"


def test_a_slow_port_is_halved_and_named_and_the_others_are_proven() -> None:
    api = NcclApi(("a", "b", "c", "d", "e"))
    api.slow = {("d", 1)}
    facts, _lines, findings = run(api)
    assert (FAIL, "all_reduce, d rail 1") in of(findings, "collectives.suspect")
    assert [item for item in of(findings, "collectives.steps") if item[0] != PASS] == []
    assert last(facts).nodes == ("a", "b", "c", "e")
    slow = [item for item in findings if item.check == "collectives.bandwidth" and item.status == FAIL]
    assert slow and all("of the minimum" in item.why for item in slow)
    # trials of a halving are told by what they name
    assert all("rail" not in item.subject for item in slow)


def test_a_node_that_falls_back_to_tcp_proves_nothing_and_is_named() -> None:
    api = NcclApi()
    api.tcp = {"c"}
    _facts, _lines, findings = run(api)
    assert any(
        item.check == "collectives.way" and item.status == FAIL and "TCP (NET/Socket)" in item.why for item in findings
    )
    assert any("c" in subject for status, subject in of(findings, "collectives.suspect") if status == FAIL)
    assert not any(
        item.status == PASS
        and item.check == "collectives.bandwidth"
        and "c" in item.subject.partition(": ")[2].split(", ")
        for item in findings
    )


def test_a_log_that_is_lost_is_unknown_and_never_a_figure() -> None:
    api = NcclApi()
    api.mute = {"b"}
    _facts, _lines, findings = run(api)
    mine = [item for item in findings if "one node: b" in item.subject]
    assert {item.status for item in mine} <= {UNKNOWN, FAIL} and "collectives.suspect" in {item.check for item in mine}
    (suspect,) = [item for item in mine if item.check == "collectives.suspect"]
    assert suspect.measured == "not verified" and "collectives.way" in suspect.remedy


@pytest.mark.parametrize(
    ("ended", "why"),
    [("", "The stage completed without this test"), ("the time is over", "before this test: the time is over")],
)
def test_a_test_that_did_not_run_has_its_cause(ended: str, why: str) -> None:
    facts, _lines, _findings = run(NcclApi(("a", "b")))
    less = dataclasses.replace(facts, runs=facts.runs[:1], ended=ended)
    intent = parse_intent([FABRIC], None, {**CLUSTER, "collectives": COLLECTIVES})
    findings = check(intent, Facts(("a", "b"), less, measured(("a", "b"))))
    started = [item for item in findings if item.check == "collectives.started" and item.status != PASS]
    assert started and all(why in item.why for item in started)


def test_wrong_values_fail_although_all_is_fast() -> None:
    api = NcclApi(("a", "b"))
    api.wrong = 3
    _facts, _lines, findings = run(api)
    assert any(item.check == "collectives.figures" and item.status == FAIL for item in findings)
    assert not [item for item in findings if item.check == "collectives.bandwidth" and item.status == PASS]


def test_a_program_that_dies_is_told_with_its_last_lines() -> None:
    api = NcclApi(("a", "b"))
    api.dies = {2}
    facts, _lines, findings = run(api)
    assert any("signal 11" in ran.evidence for ran in facts.runs)
    dead, *_more = [item for item in findings if item.check == "collectives.started"]
    assert (
        dead.status == UNKNOWN
        and "signal 11" in dead.why
        and (UNKNOWN, "all_reduce, two nodes") in of(findings, "collectives.steps")
    )
    assert api.pods == {}


def test_a_connection_that_breaks_is_no_fault_of_the_test() -> None:
    api = NcclApi(("a", "b"))
    api.breaks = {2}
    facts, lines, findings = run(api)
    assert len(api.runs) == 4 and len(facts.runs) == 3 and bad(findings) == set()
    assert sum("; the test is repeated" in line for line in lines) == 1


def test_a_connection_that_breaks_again_is_told() -> None:
    api = NcclApi(("a", "b"))
    api.breaks = set(range(2, 99))
    facts, _lines, findings = run(api)
    assert next(
        ran.failure for ran in facts.runs if ran.kind == "two nodes"
    ) == "exec_lost" and "collectives.started" in bad(findings)


def test_a_pod_that_is_lost_meanwhile_ends_its_tests_alone() -> None:
    class Lost(NcclApi):
        def printed(self, ran: Mpirun) -> CommandResult:
            if len(ran.hosts) == 2 and ran.hosts[1] == "b":
                self.pods.pop("linerate-collectives-compute-b", None)
                return CommandResult("mpirun", 1, "ORTE has lost communication with a remote daemon.\n")
            return super().printed(ran)

    api = Lost()
    facts, _lines, findings = run(api)
    assert any(ran.failure and "b" in ran.nodes for ran in facts.runs)
    assert any("the output contains no results of nccl-tests" in ran.evidence for ran in facts.runs)
    assert all(ran.evidence.count("ORTE has lost") < 2 for ran in facts.runs), "the line is shown once"
    assert any(
        status == FAIL and subject.startswith("all_reduce, b")
        for status, subject in of(findings, "collectives.suspect")
    )
    assert facts.runs[-1].nodes == ("a", "c", "d") and not facts.runs[-1].failure


def test_the_inside_of_a_node_that_is_slow_keeps_it_from_the_network() -> None:
    api = NcclApi()
    api.slow = {("b", -1)}
    facts, _lines, findings = run(api)
    assert (FAIL, "all_reduce, b") in of(findings, "collectives.inside")
    assert all("b" not in ran.nodes for ran in facts.runs if len(ran.nodes) > 1) and facts.runs[-1].nodes == (
        "a",
        "c",
        "d",
    )


def test_a_host_that_is_none_of_the_group_gets_no_daemon() -> None:
    api = NcclApi(("a", "b"))
    api.asked_for = "some-other-pod"
    facts, _lines, findings = run(api)
    assert api.executed == [] and any("unable to reliably start" in ran.evidence for ran in facts.runs)
    assert "collectives.started" in bad(findings)


def test_a_pod_without_a_function_of_each_rail_is_named() -> None:
    api = NcclApi()
    api.one_rail = {"c"}
    facts, _lines, findings = run(api)
    (pod,) = [item for item in findings if item.check == "collectives.pod" and item.status != PASS]
    assert (
        (pod.status, pod.subject) == (FAIL, "compute c")
        and "no HCA of rail 1" in pod.why
        and "Give each rail a resource of its own" in pod.remedy
    )
    assert facts.runs[-1].nodes == ("a", "b", "d")


def test_without_the_rates_of_the_rails_nothing_is_a_pass_but_what_the_intent_expects() -> None:
    _facts, _lines, findings = run(NcclApi(), bandwidth=False)
    assert {status for status, _subject in of(findings, "collectives.bandwidth")} == {UNKNOWN}
    wished = [{"test": "all_reduce", "gbs": 90.0, "reason": "measured at hand-over"}]
    _facts, _lines, findings = run(NcclApi(), bandwidth=False, expected_busbw=wished)
    found = {item.subject: item for item in findings if item.check == "collectives.bandwidth"}
    assert (
        found["all_reduce, all: a, b, c, d"].status == PASS
        and "set in the intent: measured at hand-over" in found["all_reduce, all: a, b, c, d"].expected
    )


@pytest.mark.parametrize(
    ("nodes", "of"), [(("a", "b"), None), (("a", "b"), 2), (("a", "b", "c", "d"), 2), (("a", "b", "c", "d"), 3)]
)
def test_a_floor_of_the_intent_that_no_group_is_compared_with_is_unknown(
    nodes: tuple[str, ...], of: typing.Optional[int]
) -> None:
    """Tests of two nodes run each rail by itself, and are not compared with it."""
    floor: dict[str, typing.Any] = {"test": "all_reduce", "gbs": 5000, "reason": "contract of delivery"}
    _facts, _lines, findings = run(NcclApi(nodes), expected_busbw=[{**floor, **({"nodes": of} if of else {})}])
    (found,) = [item for item in findings if item.status != PASS]
    assert (found.check, found.status, found.measured) == (
        "collectives.bandwidth",
        UNKNOWN,
        "not compared with any group",
    )
    assert "contract of delivery" in found.expected and "expected_busbw" in found.remedy


def test_a_floor_of_all_groups_is_not_missed_where_each_group_has_its_own() -> None:
    floor: dict[str, typing.Any] = {"test": "all_reduce", "gbs": 90, "reason": "contract of delivery"}
    _facts, _lines, findings = run(NcclApi(), expected_busbw=[floor, {**floor, "nodes": 4}])
    assert bad(findings) == set()


def again(facts: CollectivesFacts, **wishes: typing.Any) -> list[Finding]:
    """Judge the facts of a run by another intent; return what is no pass."""
    intent = parse_intent([FABRIC], None, {**CLUSTER, "collectives": {**COLLECTIVES, **wishes}})
    nodes = ("a", "b", "c", "d")
    found = check(intent, Facts(nodes, facts, measured(nodes)))
    return [item for item in found if item.status != PASS]


@pytest.mark.parametrize(
    ("wishes", "measured_", "expected"),
    [
        ({"most_bytes": 64 << 30}, "1 GiB to 8 GiB", "1 GiB to 64 GiB"),
        ({"least_bytes": 65536}, "1 GiB to 8 GiB", "64 KiB to 8 GiB"),
        ({"image": "registry.example/other:1"}, "registry.example/nccl-tests:1", "registry.example/other:1"),
    ],
)
def test_a_run_of_other_messages_or_another_image_than_the_intent_asks_for_is_unknown(
    wishes: dict[str, typing.Any], measured_: str, expected: str
) -> None:
    facts, _lines, _findings = run(NcclApi(), soak_minutes=1)
    assert again(facts, soak_minutes=1) == []
    (found,) = again(facts, soak_minutes=1, **wishes)
    assert (found.check, found.status, found.measured, found.expected) == (
        "collectives.wanted",
        UNKNOWN,
        measured_,
        expected,
    )


def test_tests_in_an_unknown_image_verify_no_known_library() -> None:
    facts, _lines, _findings = run(NcclApi(), soak_minutes=1)
    (found,) = again(dataclasses.replace(facts, image=""), soak_minutes=1)
    assert (found.check, found.status, found.measured) == (
        "collectives.wanted",
        UNKNOWN,
        "image of the tests not recorded",
    )
    assert "do not name the image" in found.why


def test_messages_that_the_memory_of_the_gpus_limits_are_a_warning() -> None:
    facts, _lines, _findings = run(NcclApi())
    runs = tuple(
        dataclasses.replace(ran, figures=dataclasses.replace(ran.figures, reduced_bytes=12 << 30))
        for ran in facts.runs
        if ran.figures is not None
    )
    (found,) = again(dataclasses.replace(facts, runs=runs), most_bytes=16 << 30)
    assert (found.status, found.measured) == (WARN, "up to 8 GiB") and "memory" in found.why
    # it would have reached more
    (found,) = again(dataclasses.replace(facts, runs=runs), most_bytes=64 << 30)
    assert found.status == WARN
    less = tuple(
        dataclasses.replace(ran, figures=dataclasses.replace(ran.figures, reduced_bytes=16 << 30))
        for ran in runs
        if ran.figures is not None
    )
    (found,) = again(dataclasses.replace(facts, runs=less), most_bytes=64 << 30)
    assert found.status == UNKNOWN


class Flapping(NcclApi):
    """Pods of which the first run of so many nodes is slow, or dies.

    :ivar of: number of nodes
    :ivar share: of its rate that it gives; 0: it dies
    """

    def __init__(self, of: int, share: float) -> None:
        super().__init__()
        self.of, self.share = of, share
        self.first: typing.Optional[Mpirun] = None

    def printed(self, ran: Mpirun) -> CommandResult:
        if self.first is None and len(ran.hosts) == self.of and ran.gpu is None:
            self.first = ran
        if ran is not self.first:
            return super().printed(ran)
        if not self.share:
            return CommandResult("mpirun", 139, "mpirun noticed that process rank 1 exited on signal 11.\n")
        before = collectives_world.RAIL, collectives_world.INSIDE
        collectives_world.RAIL, collectives_world.INSIDE = (value * self.share for value in before)
        try:
            return super().printed(ran)
        finally:
            collectives_world.RAIL, collectives_world.INSIDE = before


@pytest.mark.parametrize(
    ("of", "share", "status", "said"),
    [
        (4, 0.5, UNKNOWN, "47.0 GB/s, then 94.1 GB/s"),
        (4, 0.1, UNKNOWN, "9.4 GB/s, then 94.1 GB/s"),
        (4, 0.88, UNKNOWN, "82.8 GB/s, then"),
        # below the floor, and nearly as fast as the second time
        (4, 0.93, WARN, "87.5 GB/s, then"),
        (4, 0.0, UNKNOWN, "then 94.1 GB/s"),
        (2, 0.1, UNKNOWN, "then 47"),
        (1, 0.1, UNKNOWN, "then 355"),
    ],
)
def test_a_group_that_passes_when_it_runs_again_is_no_pass(of: int, share: float, status: str, said: str) -> None:
    """Nothing was changed, so a fault that comes and goes may come back."""
    _facts, _lines, findings = run(Flapping(of, share))
    found = [item for item in findings if item.status != PASS]
    (item,) = found
    assert (item.check, item.status) == ("collectives.repeat", status) and said in item.measured
    assert item.subject.endswith(", run again")


def test_collectives_run_one_after_the_other() -> None:
    api = NcclApi(("a", "b", "c"))
    facts, _lines, findings = run(api, tests=["all_gather", "all_reduce"])
    assert [ran.test for ran in facts.runs] == ["all_gather"] * 6 + ["all_reduce"] * 6 and bad(findings) == set()


def test_alltoall_is_proven_by_its_connections_and_has_a_floor_of_its_own() -> None:
    api = NcclApi()
    facts, _lines, findings = run(api, tests=["alltoall"])
    assert bad(findings) == set() and {ran.test for ran in facts.runs} == {"alltoall"}
    (found,) = [item for item in findings if item.subject == "alltoall, all: a, b, c, d" and "bandwidth" in item.check]
    # 98 GB/s x 7 / (2 x 6)
    assert found.expected.startswith("at least 48.6 GB/s (0.85 x 57.2 GB/s") and "point to point" in found.expected


def test_a_slow_port_is_named_by_alltoall() -> None:
    api = NcclApi()
    api.slow = {("b", 1)}
    _facts, _lines, findings = run(api, tests=["alltoall"])
    assert (FAIL, "alltoall, b rail 1") in of(findings, "collectives.suspect")


def test_one_node_alone_proves_no_network() -> None:
    _facts, _lines, findings = run(NcclApi(("a",)))
    assert (UNKNOWN, "all_reduce, two nodes") in of(findings, "collectives.steps")


def test_a_network_that_is_refused_starts_nothing() -> None:
    api = NcclApi()
    facts, _lines, findings = run(
        api, refused=Refusal("no_network", "NetworkAttachmentDefinition test/net is not there.")
    )
    assert (
        api.made == []
        and facts.runs == ()
        and {status for status, _subject in of(findings, "collectives.pod")} == {UNKNOWN}
    )


def test_pods_of_an_interrupted_run_are_removed_first_and_told() -> None:
    api = NcclApi(("a", "b"))
    run(api)
    (old,) = [item for item in api.definitions if item["metadata"]["name"].endswith("-a")]
    api.create({**old, "metadata": {**old["metadata"], "name": "linerate-old"}})
    facts, _lines, findings = run(api)
    assert [name.partition("/")[2] for name in facts.leftovers] == ["linerate-old"] and of(
        findings, "collectives.cleanup"
    ) == [(WARN, "pods")]


def test_an_interrupt_leaves_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi(("a", "b"))

    def interrupted(*_arguments: object) -> typing.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(NcclApi, "printed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(api)
    assert api.made and api.pods == {}


def test_what_check_mode_starts_not() -> None:
    intent = parse_intent([FABRIC], None, CLUSTER)
    facts = make_unstarted_facts(Plan(intent.fabrics, intent.cluster, ("a", "b")), "no pod is started in check mode")
    findings = check(intent, Facts(("a", "b"), facts))
    assert of(findings, "collectives.pod") == [(UNKNOWN, "compute a"), (UNKNOWN, "compute b")]


def test_a_site_that_asks_for_nothing_passes_and_says_that_nothing_is_proven() -> None:
    (finding,) = check(parse_intent([FABRIC]), Facts(("a", "b")))
    assert (finding.check, finding.status) == (
        "collectives.wanted",
        PASS,
    ) and "the performance is not verified" in finding.measured


def test_a_site_that_asks_for_collectives_needs_its_facts() -> None:
    intent = parse_intent([FABRIC], None, CLUSTER)
    (finding,) = check(intent, Facts(("a", "b")))
    assert (finding.check, finding.status, finding.measured) == ("collectives.wanted", UNKNOWN, "no results")
    (finding,) = check(intent, Facts(("a", "b"), CollectivesFacts("storage")))
    assert (finding.check, finding.status) == ("collectives.wanted", UNKNOWN)


def test_facts_of_fewer_tests_than_the_intent_needs_are_unknown() -> None:
    api = NcclApi(("a", "b"))
    facts, _lines, _findings = run(api)
    intent = parse_intent([FABRIC], None, {"collectives": {**COLLECTIVES, "tests": ["all_reduce", "all_gather"]}})
    findings = check(intent, Facts(api.nodes, facts, measured(api.nodes)))
    assert {item.subject for item in findings if item.check == "collectives.started"} >= {
        "all_gather, one node: a",
        "all_gather, one node: b",
    }


def test_a_pod_that_writes_the_lines_of_another_host_proves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first node of a group prints the figures, and can write what it likes into its own log."""
    api = NcclApi(("a", "b"))
    honest = api.log

    def forged(run_: Mpirun, host: str) -> str:
        return "".join(honest(run_, each) for each in run_.hosts) if host == host_name("a") else ""

    monkeypatch.setattr(api, "log", forged)
    _facts, _lines, findings = run(api)
    assert not [
        item
        for item in findings
        if item.status == PASS
        and item.check == "collectives.bandwidth"
        and "b" in item.subject.partition(": ")[2].split(", ")
    ]
    assert any(item.status in (FAIL, UNKNOWN) and "b" in item.subject for item in findings)


@pytest.mark.parametrize("before", ["", "{own}: ", "{own}:1:1 [0] ", "[1,0]<stdout>:{own}:", "{own}:1:1 [0] NCCL "])
def test_what_a_pod_writes_in_the_name_of_another_host_changes_no_finding(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Whatever stands before it: the head that is parsed says whose line it is."""
    nodes = ("a", "b", "c", "d")
    _facts, _lines, honest_findings = run(NcclApi(nodes))
    api = NcclApi(nodes)
    honest = api.log

    def slander(run_: Mpirun, host: str) -> str:
        """In the test of all, where no other group shows who it was."""
        text = honest(run_, host)
        if host != host_name("c") or len(run_.hosts) < 3:
            return text
        other, own = host_name("b"), before.format(own=host)
        forged = [
            f"{own}{line.replace('NET/IB/0/GDRDMA', 'NET/Socket/0')}"
            for line in honest(run_, other).splitlines()
            if " via NET/IB/0" in line
        ]
        assert forged
        head = f"{own}{other}:100:1 [0] NCCL"
        forged.append(
            f"{head} WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 opcode=0 len=0 vendor err 1"
        )
        forged += [f"{head} INFO NCCL_X{number} set by environment to {'y' * 400}." for number in range(400)]
        return "".join(f"{line}\n" for line in (*text.splitlines(), *forged))

    monkeypatch.setattr(api, "log", slander)
    _facts, lines, findings = run(api)
    assert not any("is left out" in line for line in lines)
    found = {(item.check, item.subject): item.status for item in findings}
    assert found == {(item.check, item.subject): item.status for item in honest_findings}
    assert bad(findings) == bad(honest_findings)


def test_lines_of_a_text_are_read_one_by_one() -> None:
    # a list of its lines would be many times as large
    tracemalloc.start()
    assert sum(1 for _line in lines_of("a\n" * 500_000)) == 500_000
    assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    tracemalloc.stop()


def test_a_node_that_lets_each_group_of_three_hang_takes_a_bounded_time_and_ends_with_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alone and in pairs it is sound, so that no halving finds it: 32 nodes took 34 minutes."""
    api, clock = NcclApi(tuple(f"n{number:02d}" for number in range(32))), Clock()
    honest, hung = api.printed, typing.cast(dict[str, float], {})

    def printed(ran: Mpirun) -> CommandResult:
        nodes = [api.node_named(host) for host in ran.hosts]
        if "n02" in nodes and len(nodes) > 2:
            seconds = float(ran.command[ran.command.index("-T") + 1])
            if ran.name not in hung:
                clock.now += seconds
            hung[ran.name] = seconds
            return CommandResult("mpirun", 124, "hangs\n", True)
        return honest(ran)

    monkeypatch.setattr(api, "printed", printed)
    monkeypatch.setattr(sys.modules[__name__], "Clock", lambda: clock)
    facts, _lines, findings = run(api)
    # the first one with the limit of the intent, the others with few times the seconds of a sound test
    assert sorted(hung.values(), reverse=True)[:2] == [300, 120] and sum(hung.values()) < 4 * 330
    assert len(facts.runs) > len(hung) > 1
    assert "n02" in facts.ended and "the node could not be determined" in facts.ended
    assert any(item.status == UNKNOWN and "n02" in f"{item.why} {item.subject}" for item in findings)


def test_a_pod_that_answers_slowly_holds_a_test_for_its_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi()
    made, log = api.shell, api.log

    def shell(namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any) -> typing.Any:
        found = made(namespace, pod, container, command, clock)
        wait = found.wait

        def slow(seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
            if api.node_of(pod) == "c" and found.mpirun is None:
                clock.now += 0.97 * seconds
            return typing.cast(CommandResult, wait(seconds, lost))

        monkeypatch.setattr(found, "wait", slow)
        return found

    monkeypatch.setattr(api, "shell", shell)
    monkeypatch.setattr(api, "log", lambda run_, host: "x\n" * 5_000_000 if host == host_name("c") else log(run_, host))
    facts, _lines, _findings = run(api)
    assert facts.runs and max(ran.seconds for ran in facts.runs) < AGENT_LIMIT + 2 * SHORT + LOGS + LOOK


@pytest.mark.parametrize("number", [3000, 129])
def test_a_pod_whose_log_names_more_ranks_than_its_gpus_explain_loses_its_own_log_alone(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What a pod makes up is not kept, and takes nothing from what the other pods prove."""
    api = NcclApi(("a", "b", "c"))
    honest = api.log

    def flooded(run_: Mpirun, host: str) -> str:
        line = "{0}:{1}:{1} [0] NCCL INFO comm 0x{1:x} rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x{1:x} -"
        forged = (f"{line.format(host, 1000 + made_up)} Init COMPLETE\n" for made_up in range(number))
        # alone it is proven: a node that is not, is tested with no other
        return honest(run_, host) + ("".join(forged) if host == host_name("b") and len(run_.hosts) > 1 else "")

    monkeypatch.setattr(api, "log", flooded)
    facts, _lines, findings = run(api)
    assert all(len(ran.log.communicators) < 40 for ran in facts.runs if ran.log is not None)
    told = {
        place
        for ran in facts.runs
        if ran.log is not None and set(ran.nodes) > {"b"}
        for process in ran.log.processes
        for place in (process.host,)
    }
    assert {host_name("a"), host_name("c")} <= told and host_name("b") not in told
    assert any(item.status in (FAIL, UNKNOWN) for item in findings)


def test_a_pod_whose_log_takes_too_much_of_the_cpu_loses_its_own_log_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly lines are parsed, the pod that wrote them is not proven, and says so."""
    api = NcclApi(("a", "b", "c"))
    honest, read = api.log, collective_logs.lines_of

    def long(run_: Mpirun, host: str) -> str:
        return honest(run_, host) + ("x\n" * 50_000 if host == host_name("b") and len(run_.hosts) > 1 else "")

    def slow(text: str) -> typing.Iterator[str]:
        for line in read(text):
            cpu[0] += 0.0011 if line == "x\n" else 0.0
            yield line

    cpu = [0.0]
    monkeypatch.setattr(api, "log", long)
    monkeypatch.setattr(collective_logs, "lines_of", slow)
    monkeypatch.setattr(time, "thread_time", lambda: cpu[0])
    facts, lines, findings = run(api)
    shared = [ran for ran in facts.runs if set(ran.nodes) > {"b"} and ran.log is not None]
    assert shared
    for ran in shared:
        hosts = {process.host for process in (ran.log or KeptLog()).processes}
        assert hosts == {host_name(node) for node in ran.nodes if node != "b"}
    left_out = [line for line in lines if "is ignored, so its contents could not be verified" in line]
    assert left_out and all("node b" in line and "5 s of CPU time" in line for line in left_out)
    silent = [item for item in findings if item.check == "collectives.ranks" and item.status == UNKNOWN]
    assert silent and all(host_name("b") in item.subject for item in silent)
    # of each of these logs a tenth was parsed
    assert cpu[0] < len(left_out) * 5.1


def test_logs_that_are_not_parsed_in_time_are_left_out_by_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi(("a", "b"))
    clock, honest, read = Clock(), api.log, collective_logs.lines_of

    def slow(text: str) -> typing.Iterator[str]:
        clock.now += LOGS + collective_logs.PARSING if "# both" in text and text.startswith(host_name("a")) else 0.0
        return read(text)

    monkeypatch.setattr(sys.modules[__name__], "Clock", lambda: clock)
    monkeypatch.setattr(api, "log", lambda run_, host: honest(run_, host) + ("# both\n" if len(run_.hosts) > 1 else ""))
    monkeypatch.setattr(collective_logs, "lines_of", slow)
    facts, lines, findings = run(api)
    both = [{item.host for item in (ran.log or KeptLog()).processes} for ran in facts.runs if len(ran.nodes) > 1]
    # of runs at the same time, one may use up the seconds of the other
    assert {host_name("a")} in both and not any(host_name("b") in hosts for hosts in both)
    assert any("the log of node b is ignored, so its contents could not be verified" in line for line in lines)
    assert [item for item in findings if item.status == UNKNOWN and host_name("b") in item.subject]


def test_a_pod_that_tells_more_than_its_gpus_explain_is_not_proven_and_its_log_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = NcclApi(("a", "b"))
    honest = api.log

    def long(run_: Mpirun, host: str) -> str:
        lines = "{0}:1:1 [0] NCCL INFO Channel {1:02d}/0 : 0[0] -> 1[0] [send] via NET/IB/{2}/GDRDMA\n"
        made_up = "".join(lines.format(host, number % 64, number) for number in range(2000))
        return honest(run_, host) + (made_up if host == host_name("b") else "")

    monkeypatch.setattr(api, "log", long)
    facts, _lines, findings = run(api)
    logs = [ran.log for ran in facts.runs if ran.nodes == ("b",)]
    assert logs and all(log is not None and log.processes == () == log.communicators for log in logs)
    assert ("collectives.inside", PASS, "all_reduce, a") in {
        (item.check, item.status, item.subject) for item in findings
    }
    assert not [item for item in findings if item.status == PASS and item.subject == "all_reduce, b"]


def test_a_table_of_more_ranks_than_run_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi(("a", "b"))
    printed = api.printed

    def longer(ran: Mpirun) -> CommandResult:
        told = printed(ran)
        lines = "".join(
            f"#  Rank {number:2d} Group  0 Pid {number:6d} on evil device  0 [0000:06:00] NVIDIA H100\n"
            for number in range(50, 5000)
        )
        return dataclasses.replace(told, output=told.output.replace("# Using devices\n", f"# Using devices\n{lines}"))

    monkeypatch.setattr(api, "printed", longer)
    facts, _lines, _findings = run(api)
    assert facts.runs and all(
        ran.figures is None and ran.failure == "no_measurement" and "ranks" in ran.evidence for ran in facts.runs
    )


def test_a_host_has_one_voice_for_the_gpu_of_a_rail() -> None:
    api = NcclApi()
    facts, _lines, _findings = run(api)
    kept = facts.runs[-1].log
    assert kept is not None
    log = kept.restore()
    hosts = {node: host_name(node) for node in api.nodes}
    ground = NodesHardware(
        hosts, {pod.node: {hca.device: UsedHca(hca.rail) for hca in pod.hcas} for pod in facts.pods}, {}
    )
    (job,) = log.communicators

    def of_rail(rail: int, gpu: int, name: str, hosts_: typing.Container[str]) -> NcclCommunicator:
        """Return what a run of one rail has, with one rank a node."""
        mine = [rank for rank in job.ranks if rank.gpu == rail and rank.host in hosts_]
        routes = {
            rank.rank: tuple(route for route in rank.routes if (route.transport, route.device) == ("NET", rail))
            for rank in mine
        }
        return dataclasses.replace(
            job, name=name, ranks=tuple(dataclasses.replace(rank, gpu=gpu, routes=routes[rank.rank]) for rank in mine)
        )

    honest = tuple(of_rail(rail, 1 - rail, f"0x{rail}", hosts.values()) for rail in (0, 1))
    assert learn_gpus(dataclasses.replace(log, communicators=honest), ground, 2) == {0: 1, 1: 0}
    for gpu in (0, 77):
        forged = tuple(of_rail(0, gpu, f"0x1{number}", (hosts["a"],)) for number in range(80))
        for communicators in ((*honest, *forged), (*forged, *honest)):
            assert learn_gpus(dataclasses.replace(log, communicators=communicators), ground, 2) == {0: 1, 1: 0}


def test_rows_that_another_rank_prints_into_those_of_a_run_are_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks of a job write into one text, of which the summary is the mean."""
    api = NcclApi()
    printed = api.printed

    def forged(run_: Mpirun) -> CommandResult:
        result = printed(run_)
        rows = [line for line in result.output.splitlines() if line.strip() and not line.startswith("#")]
        twice = result.output.replace(rows[-1], "\n".join((rows[-1], *rows)))
        return (
            dataclasses.replace(result, output=twice)
            if host_name("d") in run_.hosts and len(run_.hosts) > 1
            else result
        )

    monkeypatch.setattr(api, "printed", forged)
    facts, _lines, findings = run(api)
    assert any(
        "several rows have the same size" in lack
        for ran in facts.runs
        if ran.figures is not None
        for lack in ran.figures.lacks
    )
    fast = [
        item.subject.partition(": ")[2].split(", ")
        for item in findings
        if item.status == PASS and item.check == "collectives.bandwidth"
    ]
    assert fast and not [names for names in fast if "d" in names and len(names) > 1]


def test_a_pod_that_shows_too_many_functions_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi()
    probe_of = api.probe_of

    def many(node: str, asked: typing.Sequence[str]) -> str:
        names = ",".join(
            f"0000:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}" for number in range(MOST_HCAS + 1)
        )
        return probe_of(node, asked) + (f"env PCIDEVICE_X_Y={names}\n" if node == "c" else "")

    monkeypatch.setattr(api, "probe_of", many)
    facts, _lines, findings = run(api)
    assert ["functions of this fabric" in pod.error for pod in facts.pods] == [pod.node == "c" for pod in facts.pods]
    assert (FAIL, "compute c") in of(findings, "collectives.pod") and (PASS, "compute a") in of(
        findings, "collectives.pod"
    )


def repeats(findings: typing.Iterable[Finding]) -> dict[str, str]:
    """Return the status of each repeat by what it changes."""
    found = (item for item in findings if item.check == "collectives.repeat")
    return {item.subject.rpartition(", ")[2]: item.status for item in found}


#: on which one queue pair for each connection is a plausible cause
ROCE = {**FABRIC, "roce": {}}


def slow_api() -> NcclApi:
    api = NcclApi()
    api.slow = {("b", 1)}
    return api


def test_a_slow_group_is_repeated_with_one_thing_changed_and_its_card_says_what_moved_it() -> None:
    api = slow_api()
    api.cures = {"NCCL_IB_QPS_PER_CONNECTION=4": 0.9}
    facts, lines, findings = run(api, fabric=ROCE)
    assert repeats(findings) == {
        "nothing changed": PASS,
        "NCCL_NET_GDR_LEVEL=LOC": PASS,
        "NCCL_IB_QPS_PER_CONNECTION=4": WARN,
    }
    # the smallest group that is slow
    assert [(ran.nodes, ran.change) for ran in facts.runs if ran.change] == [
        (("a", "b"), "unchanged"),
        (("a", "b"), "gpu_direct_off"),
        (("a", "b"), "queue_pairs"),
    ]
    (card,) = [item for item in findings if item.check == "collectives.bandwidth" and item.status == FAIL]
    assert "With NCCL_IB_QPS_PER_CONNECTION=4, the group reaches 44.1 GB/s, +80%. One queue pair" in card.why
    assert card.remedy == (
        "Set NCCL_IB_QPS_PER_CONNECTION=4 in the jobs and in the image, then run stage collectives again."
    )
    assert any("7 more to distinguish the causes" in line for line in lines)
    assert any(line.startswith("all_reduce, two nodes: a, b, queue pairs: 44.1 GB/s, +80%, faster") for line in lines)


def test_settings_of_the_image_are_taken_out_and_named() -> None:
    api = slow_api()
    api.image_sets = {"NCCL_BUFFSIZE": "65536", "NCCL_IB_QPS_PER_CONNECTION": "8"}
    api.cures = {"-NCCL_BUFFSIZE": 0.9}
    _facts, _lines, findings = run(api, fabric=ROCE)
    assert repeats(findings) == {
        "nothing changed": PASS,
        "without NCCL_BUFFSIZE": WARN,
        "NCCL_NET_GDR_LEVEL=LOC": PASS,
    }


def test_a_change_that_the_log_does_not_show_proves_nothing() -> None:
    api = slow_api()
    api.cures = {"NCCL_IB_QPS_PER_CONNECTION=4": 0.9}
    api.overrides = {"NCCL_IB_QPS_PER_CONNECTION": "1"}
    _facts, _lines, findings = run(api, fabric=ROCE)
    assert repeats(findings)["NCCL_IB_QPS_PER_CONNECTION=4"] == UNKNOWN
    (card,) = [item for item in findings if item.check == "collectives.bandwidth" and item.status == FAIL]
    assert "it reaches" not in card.why


def test_a_group_whose_figure_moves_without_a_change_is_not_repeated_further() -> None:
    api = slow_api()
    api.unsteady = True
    facts, _lines, findings = run(api, fabric=ROCE)
    assert repeats(findings) == {"nothing changed": UNKNOWN}
    assert [ran.change for ran in facts.runs if ran.change] == ["unchanged"]


def test_sound_groups_and_groups_that_are_not_proven_are_not_repeated() -> None:
    for nodes_by_tcp in (set[str](), {"b"}):
        api = NcclApi()
        api.tcp = nodes_by_tcp
        assert repeats(run(api, fabric=ROCE)[2]) == {}


def test_repeats_that_are_missing_in_the_facts_are_unknown() -> None:
    api = slow_api()
    facts, _lines, _findings = run(api, fabric=ROCE)
    cut = dataclasses.replace(facts, runs=tuple(ran for ran in facts.runs if ran.change != "queue_pairs"))
    findings = check(parse_intent([ROCE], None, CLUSTER), Facts(api.nodes, cut, measured(api.nodes)))
    assert repeats(findings)["NCCL_IB_QPS_PER_CONNECTION=4"] == UNKNOWN


def latencies(findings: typing.Iterable[Finding]) -> dict[str, tuple[str, str]]:
    """Return status and measure of each pair."""
    found = (item for item in findings if item.check == "collectives.latency")
    return {item.subject: (item.status, item.measured) for item in found}


def test_small_messages_of_each_pair_are_compared_with_each_other() -> None:
    api = NcclApi(tuple("abcdefgh"))
    api.late = {"c"}
    facts, lines, findings = run(api, latency=True)
    assert latencies(findings) == {
        f"all_reduce, two nodes: {pair}, small messages": (status, measured)
        for pair, status, measured in (
            ("a, b", PASS, "20.0 us, p99 26.0 us"),
            ("c, d", WARN, "60.0 us, p99 78.0 us"),
            ("e, f", PASS, "20.0 us, p99 26.0 us"),
            ("g, h", PASS, "20.0 us, p99 26.0 us"),
        )
    }
    assert bad(findings) == set() and len(facts.runs) == facts.announced == 8 + 4 + 1 + 4
    assert any("4 of small messages" in line for line in lines)


def test_the_latency_of_one_pair_is_held_against_the_intent_alone() -> None:
    for most, status in ((None, PASS), (25.0, PASS), (15.0, FAIL)):
        _facts, _lines, findings = run(NcclApi(("a", "b")), latency=True, most_latency_us=most)
        assert [found for found, _measured in latencies(findings).values()] == [status]


def test_small_messages_whose_path_is_not_proven_have_no_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi()
    log = api.log
    monkeypatch.setattr(api, "log", lambda ran, host: "" if ran.small and host == host_name("a") else log(ran, host))
    _facts, _lines, findings = run(api, latency=True)
    assert [status for status, _measured in latencies(findings).values()] == [UNKNOWN, PASS]


def test_no_small_messages_run_unless_the_intent_asks_for_them() -> None:
    api = NcclApi()
    _facts, _lines, findings = run(api)
    assert latencies(findings) == {} and not any(ran.small for ran in api.runs)
    api = NcclApi()
    run(api, latency=True, tests=["all_reduce", "all_gather"])
    assert {ran.collective for ran in api.runs if ran.small} == {"all_reduce"}


def soaked(findings: typing.Iterable[Finding]) -> dict[str, str]:
    """Return the status of each finding of the soak, by the end of its subject."""
    found = (item for item in findings if item.check == "collectives.soak")
    return {item.subject.rpartition(", soak")[2].strip(": "): item.status for item in found}


def test_the_largest_group_runs_for_long_with_its_counters_before_and_after() -> None:
    api = NcclApi()
    facts, lines, findings = run(api, soak_minutes=30, tests=["all_reduce", "all_gather"])
    assert soaked(findings) == {"": PASS} and bad(findings) == set()
    (ran,) = [item for item in facts.runs if item.change == "soak"]
    assert (ran.test, ran.kind, ran.nodes) == ("all_reduce", "all", ("a", "b", "c", "d"))
    assert len(ran.errors) == 8 and {item.read for item in ran.errors} == {3} and not any(i.why for i in ran.errors)
    assert len(facts.runs) == facts.announced and any("a soak of 30 minutes" in line for line in lines)
    (long,) = [item for item in api.runs if item.command[item.command.index("-n") + 1] not in ("20", "1000")]
    words = dict(zip(long.command, long.command[1:]))
    # 8 GiB x 7/4 at 94.08 GB/s, twice, in 30 minutes; half as long again may pass
    assert words["-b"] == words["-e"] == str(1 << 33) and abs(int(words["-n"]) - 5632) < 10
    assert words["-T"] == str(30 * 90 + 300)
    assert {item["spec"]["activeDeadlineSeconds"] for item in api.definitions} == {14400 + 30 * 90 + 300}
    assert set(api.readings.values()) == {2}
    assert ("pass", "all_reduce, all: a, b, c, d, soak") in of(findings, "collectives.bandwidth")


def test_errors_that_are_counted_during_a_soak_are_named_with_their_hca() -> None:
    api = NcclApi()
    api.grows = {("b", "mlx5_21"): {"packet_seq_err": 12}, ("c", "mlx5_22"): {"link_downed": 1, "packet_seq_err": 2}}
    api.uncounted = {"d"}
    _facts, lines, findings = run(api, soak_minutes=30)
    assert soaked(findings) == {
        "b mlx5_21": WARN,
        "c mlx5_22": FAIL,
        "d mlx5_21": UNKNOWN,
        "d mlx5_22": UNKNOWN,
        "": PASS,
    }
    said = {item.subject: item for item in findings if item.check == "collectives.soak"}
    assert said["all_reduce, all: a, b, c, d, soak: c mlx5_22"].measured == "link_downed +1, packet_seq_err +2"
    assert "packet_seq_err per hour" in said["all_reduce, all: a, b, c, d, soak: b mlx5_21"].why
    assert said["all_reduce, all: a, b, c, d, soak"].measured == "no error counter of 4 of 8 HCAs increased"
    assert any("4 HCAs with errors or unknown error counters" in line for line in lines)


def test_counters_that_are_missing_or_set_back_are_unknown() -> None:
    api = NcclApi()
    facts, _lines, _findings = run(api, soak_minutes=30)
    intent = parse_intent([FABRIC], None, {**CLUSTER, "collectives": {**COLLECTIVES, "soak_minutes": 30}})

    def judged(change: typing.Callable[[RanTest], RanTest]) -> dict[str, str]:
        runs = tuple(change(ran) if ran.change == "soak" else ran for ran in facts.runs)
        seen = Facts(api.nodes, dataclasses.replace(facts, runs=runs), measured(api.nodes))
        return soaked(check(intent, seen))

    def with_first(**changes: typing.Any) -> typing.Callable[[RanTest], RanTest]:
        return lambda ran: dataclasses.replace(
            ran, errors=(dataclasses.replace(ran.errors[0], **changes), *ran.errors[1:])
        )

    assert judged(lambda ran: ran) == {"": PASS}
    assert judged(with_first(lower=("symbol_error",))) == {"a mlx5_21": UNKNOWN, "": PASS}
    assert judged(with_first(read=0)) == judged(with_first(device="mlx5_29")) == {"a mlx5_21": UNKNOWN, "": PASS}
    assert set(judged(lambda ran: dataclasses.replace(ran, errors=())).values()) == {UNKNOWN}


def test_a_soak_that_is_over_before_its_time_is_unknown() -> None:
    api = NcclApi()
    api.hurry = 1.3
    _facts, _lines, findings = run(api, soak_minutes=30)
    assert soaked(findings) == {"duration": UNKNOWN, "": PASS}
    (told,) = [item for item in findings if item.status == UNKNOWN]
    assert (
        told.expected == "at least 1620 s (90% of 30 minutes, set by soak_minutes)"
        and "increase rdma_cluster.collectives.soak_minutes" in told.remedy
    )
    api = NcclApi()
    facts, _lines, findings = run(api, soak_minutes=1)
    assert soaked(findings) == {"": PASS}
    # judged again by an intent that asks for more
    longer = parse_intent([FABRIC], None, {**CLUSTER, "collectives": {**COLLECTIVES, "soak_minutes": 120}})
    found = check(longer, Facts(api.nodes, facts, measured(api.nodes)))
    assert soaked(found) == {"duration": UNKNOWN, "": PASS}


def test_a_soak_that_is_slow_fails_and_one_that_dies_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(ran: Mpirun) -> bool:
        return ran.command[ran.command.index("-n") + 1] not in ("20", "1000")

    api = NcclApi()
    printed = api.printed
    monkeypatch.setattr(
        api,
        "printed",
        lambda ran: (
            dataclasses.replace(printed(ran), output=printed(ran).output.replace(" 94.08", " 80.00"))
            if long(ran)
            else printed(ran)
        ),
    )
    _facts, _lines, findings = run(api, soak_minutes=30)
    assert ("unknown", "all_reduce, all: a, b, c, d, soak") in of(findings, "collectives.bandwidth") or (
        "fail",
        "all_reduce, all: a, b, c, d, soak",
    ) in of(findings, "collectives.bandwidth")
    api = NcclApi()
    printed = api.printed
    monkeypatch.setattr(
        api,
        "printed",
        lambda ran: (
            CommandResult("mpirun", None, "", error="the connection to the pod broke: reset")
            if long(ran)
            else printed(ran)
        ),
    )
    facts, _lines, findings = run(api, soak_minutes=30)
    assert [ran.failure for ran in facts.runs if ran.change == "soak"] == ["exec_lost"]
    assert sum(map(long, api.runs)) == 1 and UNKNOWN in {
        status for status, subject in of(findings, "collectives.started") if subject.endswith("soak")
    }


def test_without_a_proven_group_there_is_no_soak() -> None:
    api = NcclApi(("a", "b"))
    api.tcp = {"a", "b"}
    facts, _lines, findings = run(api, soak_minutes=30)
    assert soaked(findings) == {"": UNKNOWN} and not [ran for ran in facts.runs if ran.change == "soak"]
    assert soaked(run(NcclApi(("a", "b")))[2]) == {}


def test_gpus_of_amd_run_the_same_steps_with_the_share_of_rccl() -> None:
    api = NcclApi()
    api.rccl, api.slow = True, {("d", 1)}
    facts, _lines, findings = run(api, gpu_resource="amd.com/gpu")
    assert {log.versions for log in (ran.log.restore() for ran in facts.runs if ran.log is not None)} == {
        ("RCCL 2.21.5-HEAD:9a0e6a1",)
    }
    assert of(findings, "collectives.suspect") == [(FAIL, "all_reduce, d rail 1")]
    held = [item for item in findings if item.check == "collectives.bandwidth"]
    assert held and all("0.85 x" in item.expected for item in held)
    limits = [item["spec"]["containers"][0]["resources"]["limits"] for item in api.definitions]
    assert all("amd.com/gpu" in found and "nvidia.com/gpu" not in found for found in limits)
    single = [item.variables for item in api.runs if item.gpu is not None]
    assert single and all(item["HIP_VISIBLE_DEVICES"] == item["CUDA_VISIBLE_DEVICES"] for item in single)
    assert "HIP_VISIBLE_DEVICES" not in {name for ran in run_nvidia().runs for name in ran.variables}


def run_nvidia() -> NcclApi:
    """Return a fleet of GPUs of NVIDIA after its stage, with one slow rail."""
    api = NcclApi()
    api.slow = {("d", 1)}
    run(api)
    return api
