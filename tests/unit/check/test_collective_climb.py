# SPDX-License-Identifier: GPL-3.0-or-later

"""From groups to runs, and all of it together: a small fleet climbs from one node to all, by logs and figures of each
run, and what is slow is named."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import (
    CollectiveGroup,
    CollectiveTests,
    Test,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.halving import Named, RailTrial
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.course_findings import report_steps
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.floor import NodeFigure
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.hardware import (
    NodesHardware,
    pick_expected,
    plan_floor,
    plan_proof,
    plan_run,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.judge import judge_figure
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.proof import prove_run
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.surroundings import Surroundings, UsedHca
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import (
    NcclTestFigure,
    NcclTestRank,
    NcclTestRow,
    NcclTests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    Collectives,
    ExpectedBusbw,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

WANTED = Collectives("registry.example/nccl-tests:1", "32", "256Gi", gpus_per_node=2)
DEVICES = ("mlx5_21", "mlx5_22")
LEAVES = {leaf: [f"node-{leaf}{number}" for number in range(4)] for leaf in ("a", "b", "c")}
NODES = [node for nodes in LEAVES.values() for node in nodes]


def ground(**rates: float) -> NodesHardware:
    """:param rates: of the second rail of a node, in Gb/s, by its name with an underscore"""
    hcas = {
        node: {DEVICES[0]: UsedHca(0, 0, 392.0), DEVICES[1]: UsedHca(1, 0, rates.get(node.replace("-", "_"), 392.0))}
        for node in NODES
    }
    return NodesHardware({node: f"pod-{node}" for node in NODES}, hcas, {0: 0, 1: 1})


GROUND = ground()
SEEN = Surroundings({f"pod-{node}": found for node, found in GROUND.hcas.items()}, from_gpu_memory=True)


class Site:
    """Writes the log and the figures of a run as NCCL and nccl-tests do.

    :ivar slow: rails of nodes that give half of their rate
    :ivar lost: nodes whose log is lost
    :ivar tcp: nodes that fall back to TCP
    """

    def __init__(
        self,
        slow: typing.Container[tuple[str, int]] = (),
        lost: typing.Container[str] = (),
        tcp: typing.Container[str] = (),
    ) -> None:
        self.slow, self.lost, self.tcp = slow, lost, tcp
        self.findings: list[Finding] = []

    def jobs(self, test: Test) -> list[tuple[int, Job]]:
        """Each group with its rail."""
        hosts = len(test.nodes)
        if isinstance(test, RailTrial) or test.kind == "two nodes":
            rails = (test.rail,) if isinstance(test, RailTrial) else (0, 1)
            return [(rail, Job(hosts=hosts, gpus=1, hcas=(DEVICES[rail],))) for rail in rails]
        return [(0, Job(hosts=hosts, gpus=2, hcas=DEVICES))]

    def text(self, test: Test) -> str:
        lines = []
        for rail, job in self.jobs(test):
            text = (
                job.text()
                .replace(":100:200 ", f":{100 + 10 * rail}:{200 + 10 * rail} ")
                .replace("0x6b99be0cc5a5bfbf", f"0x6b99be0cc5a5bfb{rail}")
            )
            for line in text.splitlines(keepends=True):
                number = int(line.partition("-worker-")[2].partition(":")[0])
                node = test.nodes[number]
                ways = (
                    [("NET/IB/0/GDRDMA", "NET/Socket/0"), ("NET/IB/1/GDRDMA", "NET/Socket/1")]
                    if node in self.tcp
                    else []
                )
                if node not in self.lost:
                    lines.append(
                        functools.reduce(lambda said, way: said.replace(*way), ways, line).replace(
                            f"job-worker-{number}:", f"pod-{node}:"
                        )
                    )
        return "".join(lines)

    def tests(self, test: Test, bound: float) -> NcclTests:
        ranks = [
            NcclTestRank(0, rail, 100 + 10 * rail + gpu, f"pod-{node}.example", gpu, "x", "H100")
            for rail, job in self.jobs(test)
            for node in test.nodes
            for gpu in range(job.gpus)
        ]
        rails = (test.rail,) if isinstance(test, RailTrial) else (0, 1)
        bus = bound * (0.5 if any((node, rail) in self.slow for node in test.nodes for rail in rails) else 0.96)
        figure = NcclTestFigure(1.0, bus, bus, 0)
        row = NcclTestRow(1 << 33, 1 << 31, "float", "sum", None, figure, figure)
        return NcclTests(
            "all_reduce", ranks=tuple(ranks), rows=(row,), out_of_bounds=0, average_bus_gbs=bus, concluded=True
        )

    def passes(self, test: Test, number: int) -> bool:
        run = plan_run(test, number, "all_reduce", GROUND)
        floor = plan_floor(run, test, WANTED, GROUND)
        tests, log = self.tests(test, floor.bound_gbs if floor else 370.0), nccl_log.parse_text(self.text(test))
        proof = prove_run(log, tests, plan_proof(run, test, WANTED, GROUND))
        if floor is None:
            # one node: nothing but its log speaks
            return proof.status == PASS
        findings = judge_figure(run.name, log, tests, proof, floor, SEEN)
        self.findings += [finding for finding in (*proof.findings, *findings) if finding.status != PASS]
        return findings[0].status == PASS

    def climb(self) -> CollectiveTests:
        made, number = CollectiveTests(LEAVES, sorted(GROUND.gpu_of_rail)), 0
        while tests := made.next():
            results = {}
            for test in tests:
                number += 1
                results[test] = self.passes(test, number)
            made.take(results)
        return made


def test_a_sound_fleet_is_proven_from_one_node_to_all() -> None:
    site = Site()
    made = site.climb()
    assert site.findings == [] and made.unproven == () and made.named == {} and made.left_out == {}
    assert made.proven == ["one node", "two nodes", "a leaf", "across leaves", "all"]


def test_a_slow_port_is_named_and_the_others_are_proven() -> None:
    site = Site(slow={("node-b2", 1)})
    made = site.climb()
    assert (
        made.named == {"two nodes": Named(ports=(("node-b2", 1),))}
        and made.unproven == ()
        and list(made.left_out) == ["node-b2"]
    )
    assert {finding.check for finding in site.findings} == {"collectives.bandwidth", "collectives.cause"}


def test_a_node_that_falls_back_to_tcp_is_named_as_one_that_proves_nothing() -> None:
    site = Site(tcp={"node-c1"})
    made = site.climb()
    assert (
        made.named == {"two nodes": Named(nodes=("node-c1",))}
        and list(made.left_out) == ["node-c1"]
        and made.unproven == ()
    )
    assert any("TCP (NET/Socket)" in finding.why for finding in site.findings)


def test_a_node_without_a_log_is_not_proven_even_alone() -> None:
    made = Site(lost={"node-a0"}).climb()
    assert (
        made.left_out == {"node-a0": "one node"}
        and made.together == [CollectiveGroup("one node", ("node-a0",))]
        and made.unproven == ()
    )


# the parts


def test_runs_of_groups() -> None:
    pair, leaf, trial = (
        CollectiveGroup("two nodes", ("node-a0", "node-a1")),
        CollectiveGroup("a leaf", tuple(LEAVES["a"])),
        RailTrial(1, "part", ("node-a0", "node-b0"), ("node-a0",)),
    )
    tests: tuple[Test, ...] = (pair, leaf, trial)
    runs = [plan_run(test, 7, "all_reduce", GROUND) for test in tests]
    assert [(run.name, run.by_rail, run.gpu) for run in runs] == [
        ("all-reduce-7", True, None),
        ("all-reduce-7", False, None),
        ("all-reduce-7", False, 1),
    ]
    proofs = [plan_proof(run, test, WANTED, GROUND) for run, test in zip(runs, tests)]
    assert [(proof.nodes, proof.rails, proof.ranks, proof.groups) for proof in proofs] == [
        (2, (0, 1), 2, 2),
        (4, (0, 1), 8, 1),
        (2, (1,), 2, 1),
    ]
    assert proofs[0].hcas == {"pod-node-a0": {"mlx5_21": 0, "mlx5_22": 1}, "pod-node-a1": {"mlx5_21": 0, "mlx5_22": 1}}


@pytest.mark.parametrize(
    ("test", "bound"),
    [
        (CollectiveGroup("two nodes", ("node-a0", "node-a1")), 49.0),
        (CollectiveGroup("two nodes", ("node-b0", "node-b1")), 24.5),
        (RailTrial(0, "part", ("node-b0", "node-b1"), ()), 49.0),
        (RailTrial(1, "part", ("node-b0", "node-b1"), ()), 24.5),
        (CollectiveGroup("a leaf", tuple(LEAVES["a"])), 98.0),
        (CollectiveGroup("all", tuple(NODES)), 49.0),
    ],
)
def test_floors_are_those_of_the_slowest_rail_of_the_slowest_node(test: Test, bound: float) -> None:
    slow = ground(node_b0=196.0)
    floor = plan_floor(plan_run(test, 1, "all_reduce", slow), test, WANTED, slow)
    assert (
        floor is not None and floor.bound_gbs == pytest.approx(bound) and floor.floor_gbs == pytest.approx(0.9 * bound)
    )


def test_no_floor_without_the_rate_of_each_rail() -> None:
    hcas = {**GROUND.hcas, "node-a1": {DEVICES[0]: UsedHca(0, 0, 392.0), DEVICES[1]: UsedHca(1)}}
    test, blind = CollectiveGroup("two nodes", ("node-a0", "node-a1")), dataclasses.replace(GROUND, hcas=hcas)
    assert plan_floor(plan_run(test, 1, "all_reduce", blind), test, WANTED, blind) is None
    one = CollectiveGroup("one node", ("node-a0",))
    assert plan_floor(plan_run(one, 1, "all_reduce", GROUND), one, WANTED, GROUND) is None


def test_the_inside_of_a_node_and_the_share_of_the_intent_count() -> None:
    test = CollectiveGroup("a leaf", tuple(LEAVES["a"]))
    floor = plan_floor(
        plan_run(test, 1, "all_reduce", GROUND),
        test,
        dataclasses.replace(WANTED, share=0.7, share_reason="an older NCCL"),
        GROUND,
        node=NodeFigure(90.0, "ring"),
    )
    assert floor is not None and floor.bound_gbs == 90.0 and floor.floor_gbs == pytest.approx(63.0)
    # the finding shows the floor with this text
    assert floor.how.endswith(", because: an older NCCL")


def test_several_hcas_of_a_rail_are_one_rail() -> None:
    hcas = {node: {**found, "mlx5_23": UsedHca(1, 0, 8.0)} for node, found in GROUND.hcas.items()}
    test, two = RailTrial(1, "part", ("node-a0", "node-a1"), ()), dataclasses.replace(GROUND, hcas=hcas)
    floor = plan_floor(plan_run(test, 1, "all_reduce", two), test, WANTED, two)
    assert floor is not None and floor.bound_gbs == pytest.approx(50.0)


def test_the_floor_of_the_intent_is_that_of_the_number_of_nodes() -> None:
    four, all_of_them = (
        ExpectedBusbw("all_reduce", 90.0, "one leaf", 4),
        ExpectedBusbw("all_reduce", 80.0, "over the spines"),
    )
    wanted = dataclasses.replace(WANTED, expected_busbw=(all_of_them, four))
    found = {}
    for test in (
        CollectiveGroup("a leaf", tuple(LEAVES["a"])),
        CollectiveGroup("all", tuple(NODES)),
        CollectiveGroup("two nodes", ("node-a0", "node-a1")),
        CollectiveGroup("one node", ("node-a0",)),
    ):
        found[test.kind] = pick_expected(plan_run(test, 1, "all_reduce", GROUND), wanted)
    assert found == {"a leaf": four, "all": all_of_them, "two nodes": None, "one node": None}
    assert pick_expected(plan_run(CollectiveGroup("all", tuple(NODES)), 1, "all_gather", GROUND), wanted) is None


def test_steps_without_a_verified_test_name_the_step_that_is_missing() -> None:
    climb = types.SimpleNamespace(proven=(), unproven=("two nodes", "all"), left_out={})
    first, later = report_steps("all_reduce", typing.cast(typing.Any, climb), 4)
    assert first.why == (
        "No test of 'two nodes' has both a log of NCCL that shows its transport and a sufficient bandwidth. Tests with"
        " more nodes are only valid after a verified and fast test of 'two nodes'."
    )
    assert "needs a verified and fast test of the smaller size 'two nodes'" in later.why
