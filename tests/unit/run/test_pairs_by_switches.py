# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds on an Ethernet fabric whose leaves are known by LLDP, and whose switches send each flow over one of their
links by a hash."""

from __future__ import annotations

import dataclasses
import re
import typing
import zlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.flows import (
    compute_flow_label,
    compute_udp_port,
    not_of_label,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import cover_links
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.results import find_paths_between
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from tests.unit import roce_fabric
from tests.unit.check.test_ethernet_routes import ROCE
from tests.unit.run.test_pairs import Api, Clock

LEAVES, SPINES, HOSTS = 4, 4, 6
NAMES = tuple(f"node-{number}" for number in range(1, LEAVES * HOSTS + 1))
LINE = 390.0
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      100           {figure:.2f}            {figure:.2f}            0.7\n"
)
Shares = dict[tuple[str, str], float]
PODS = {"message_bytes": 65536, "iterations": 100}


class World:
    """Leaves and spines, each leaf with a link to each spine. ``shares``: of the line rate, by the two ends of a link,
    in this direction.

    :ivar labels: whether perftest in the pods knows --flow_label
    """

    def __init__(self, shares: Shares, labels: bool = True, **changes: typing.Any) -> None:
        self.intent = parse_intent([{**ROCE, "pods": PODS, **changes}])
        self.shares, self.labels = shares, labels
        seen = roce_fabric.fabric(LEAVES, HOSTS)
        self.facts = Facts(nodes=NAMES, hcas=seen.hcas, neighbours=seen.neighbours)
        self.lines: list[str] = []
        self.api = _Api(self)
        self.number = 0

    def spine(self, key: str) -> str:
        """The hash of all switches: without a flow label each queue pair has another port."""
        return f"spine-{zlib.crc32(key.encode()) % SPINES}"

    def way(self, source: str, target: str, label: typing.Optional[int]) -> list[tuple[str, str]]:
        near, far = (f"leaf-{NAMES.index(name) // HOSTS}" for name in (source, target))
        self.number += 1
        spine = self.spine(f"{source} {target} {compute_udp_port(label) if label is not None else self.number}")
        stops = [source, near, target] if near == far else [source, near, spine, far, target]
        return list(zip(stops, stops[1:]))

    def run(self) -> BandwidthFacts:
        plan = Plan(self.intent.fabrics, self.intent.cluster, NAMES, {}, parallel=1, pod_seconds=60.0)
        return BandwidthRun(
            typing.cast(Cluster, self.api), plan, Clock(), lambda seconds: None, self.lines.append, self.facts
        ).run()

    def findings(self, measured: BandwidthFacts, name: str) -> list[Finding]:
        return [
            one
            for one in check(self.intent, dataclasses.replace(self.facts, bandwidth=measured))
            if one.check == f"bandwidth.{name}"
        ]


class _Api(Api):
    def __init__(self, world: World) -> None:
        super().__init__(NAMES, resource="openshift.io/roce", answers={("ib_write_bw", "client"): self.bandwidth})
        self.world = world
        self.tests: list[tuple[str, str, typing.Optional[int]]] = []

    def greeting(self, pod: str, node: str) -> CommandResult:
        return CommandResult(
            "shell", 0, 'rdma [{"ifname":"mlx5_2","netdev":"net1"}]\nrate mlx5_2 400 Gb/sec (4X NDR)\n'
        )

    def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
        if any("--help" in word for word in command):
            return CommandResult("", 0, "label\n" if self.world.labels else "")
        return super().ran_by(node, command)

    def bandwidth(self, node: str, command: tuple[str, ...]) -> CommandResult:
        nodes = {f"10.0.0.{number}": self.pods[name]["node"] for number, name in enumerate(self.made, 1)}
        label = next((int(word.partition("=")[2]) for word in command if word.startswith("--flow_label=")), None)
        self.tests.append((node, nodes[command[-1]], label))
        share = min(self.world.shares.get(link, 1.0) for link in self.world.way(*self.tests[-1]))
        return CommandResult("ib_write_bw", 0, TABLE.format(figure=LINE * share))


def test_a_sound_fabric_is_proven_by_the_cables_of_its_nodes() -> None:
    world = World({})
    measured = world.run()
    (plan,) = measured.plans
    assert (
        plan.cover is not None
        and plan.cover.covered == plan.cover.directions == 2 * len(NAMES)
        and "by their own hash" in plan.cover.spread
    )
    assert [
        finding.status for name in ("rounds", "coverage", "suspect") for finding in world.findings(measured, name)
    ] == ["pass"] * 3
    (coverage,) = world.findings(measured, "coverage")
    assert "measurements used 100 % of 48 link directions between nodes and leaves" in coverage.measured
    assert "the same UDP source port and the same path in each measurement" in coverage.measured
    assert plan.cover.tests == len(world.api.tests) < 3 * len(NAMES) and world.api.pods == {}


def test_no_two_flows_leave_a_leaf_at_once_and_each_end_has_one_out_of_it() -> None:
    """A hash may send two flows over one link, and both would be slow."""
    world = World({})
    measured = world.run()
    crossing = [
        (pair.client, pair.server)
        for pair in measured.pairs
        if NAMES.index(pair.client) // HOSTS != NAMES.index(pair.server) // HOSTS
    ]
    assert {one for one, _other in crossing} == {other for _one, other in crossing} == set(NAMES)
    assert f"storage: between leaves, {len(NAMES)} tests" in world.lines
    # leaf-0 and leaf-2, leaf-1 and leaf-3 have met then; each leaf meets two others
    assert f"storage: each leaf with each other leaf, {2 * LEAVES} tests" in world.lines
    ways, why = find_paths_between(world.intent.fabrics[0], world.facts)
    assert ways is not None, why
    turns = [[ways.way(*test) or () for test in turn] for item in cover_links(ways).rounds for turn in item.turns]
    for turn in turns:
        between = [ways.directions[way[1]] for way in turn if len(way) == 3]
        assert len({one.source for one in between}) == len({one.target for one in between}) == len(between)
    assert len(turns) == 2 + 2 * HOSTS + 2 * (LEAVES - 2)


def test_a_slow_cable_of_a_node_is_named_and_nothing_else() -> None:
    world = World({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5})
    (finding,) = world.findings(world.run(), "suspect")
    assert finding.subject == "storage node-8 rail 0 <-> leaf-1 port Ethernet1/2" and finding.status == "fail"
    assert "ethtool -S ens1" in finding.remedy and "port Ethernet1/2 of leaf-1" in finding.remedy
    assert not re.search("ibqueryerrors|iblinkinfo|ibtracert", finding.remedy + finding.why)


def test_a_slow_uplink_ends_at_the_two_leaves_and_nobody_else_is_accused() -> None:
    for spine in range(SPINES):
        world = World({("leaf-0", f"spine-{spine}"): 0.5})
        measured = world.run()
        found = world.findings(measured, "suspect")
        slow: dict[str, set[str]] = {}
        for pair in measured.pairs:
            if not pair.again and pair.average_gbps is not None and pair.average_gbps < 0.9 * LINE:
                slow.setdefault(f"leaf-{NAMES.index(pair.server) // HOSTS}", set()).add(pair.server)
        subjects = {f"storage from leaf-0 to {leaf}, over an unknown link": leaf for leaf in slow}
        assert {finding.subject for finding in found} == {*subjects}, spine
        for finding in found:
            leaf = subjects[finding.subject]
            # the other leaves than its partner have one flow from it
            flows = HOSTS if leaf == "leaf-2" else 1
            assert f"{len(slow[leaf])} of {flows} flows between these leaves carry 50% of the" in finding.measured
            assert (
                "One or several of the links between these leaves are slow" in finding.why
                and "UDP source port" in finding.why
            )
            assert re.search(
                r"With a different flow label, [0-9] of [0-9] of these pairs reach the usual rate", finding.why
            )
            assert f"Check the ports between leaf-0 and {leaf}" in finding.remedy and "ib" not in re.findall(
                r"\bib\w*", finding.remedy
            )


def test_at_least_one_of_the_uplinks_is_found() -> None:
    """Six flows over four links: the test above would say nothing if none of them was ever taken."""
    slow = [spine for spine in range(SPINES) if World({("leaf-0", f"spine-{spine}"): 0.5}).run().pairs[-1].again]
    assert len(slow) >= 2


def test_where_all_uplinks_of_a_leaf_are_slow_each_flow_is() -> None:
    world = World({("leaf-0", f"spine-{spine}"): 0.5 for spine in range(SPINES)})
    found = world.findings(world.run(), "suspect")
    by_leaf = {finding.subject.partition(" to ")[2].partition(",")[0]: finding for finding in found}
    assert set(by_leaf) == {"leaf-1", "leaf-2", "leaf-3"} and len(found) == 3
    for leaf, finding in by_leaf.items():
        flows = HOSTS if leaf == "leaf-2" else 1
        assert f"{flows} of {flows} flows" in finding.measured
        assert ("Each flow between these leaves is slow" in finding.why) == (leaf == "leaf-2")
        words = (
            f"0 of {flows} of these pairs reach the usual rate, so the other links between these leaves are no better"
        )
        assert words in finding.why


def test_a_suspect_is_measured_again_over_the_way_that_it_took() -> None:
    world = World({("leaf-0", f"spine-{spine}"): 0.5 for spine in range(SPINES)})
    measured = world.run()
    again = [pair for pair in measured.pairs if pair.again]
    assert again
    own = [pair for pair in again if pair.flow_label == compute_flow_label(0, pair.client, pair.server)]
    other = [pair for pair in again if pair.flow_label == compute_flow_label(0, pair.client, pair.server, 1)]
    assert own and other and len(own) + len(other) == len(again)
    assert all(label is not None for _one, _other, label in world.api.tests)


@pytest.mark.parametrize(
    ("labels", "changes", "words"),
    [
        (
            False,
            {},
            (
                "flows are not pinned to a path because perftest in the pods does not support --flow_label"
                " (supported since 23.10)"
            ),
        ),
        (
            True,
            {"pods": {**PODS, "connection": "rdma_cm"}},
            "flows are not pinned to a path because rdma_cm (pods.connection) does not support flow labels",
        ),
    ],
)
def test_where_flows_can_not_be_pinned_the_finding_says_so(
    labels: bool, changes: dict[str, typing.Any], words: str
) -> None:
    world = World({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5}, labels, **changes)
    measured = world.run()
    assert not any(label is not None for _one, _other, label in world.api.tests) and not any(
        pair.flow_label for pair in measured.pairs
    )
    (coverage,) = world.findings(measured, "coverage")
    assert words in coverage.measured and "may miss a slow link between leaves" in coverage.measured
    assert [finding.subject for finding in world.findings(measured, "suspect")] == [
        "storage node-8 rail 0 <-> leaf-1 port Ethernet1/2"
    ]


def test_of_a_driver_that_is_not_known_nothing_is_claimed() -> None:
    world = World({})
    world.facts = dataclasses.replace(
        world.facts, hcas={**world.facts.hcas, "node-3": roce_fabric.node(driver="bnxt_en")}
    )
    (coverage,) = world.findings(world.run(), "coverage")
    assert "it is unknown whether the driver bnxt_en derives the UDP source port from the label" in coverage.measured


@pytest.mark.parametrize("deaf", [0, 1, 5, 12, 13, 24])
def test_ports_without_lldp_are_told_by_name_whether_few_or_all_and_nobody_is_accused(deaf: int) -> None:
    """To know less is never better: with all of them deaf the gate is no more open than with one."""
    world = World({})
    silent = dict.fromkeys(NAMES[len(NAMES) - deaf :], roce_fabric.neighbours())
    world.facts = dataclasses.replace(world.facts, neighbours={**world.facts.neighbours, **silent})
    measured = world.run()
    switches = [finding for finding in world.findings(measured, "coverage") if finding.subject == "storage switches"]
    assert [finding.status for finding in switches] == ["warn"] * bool(deaf)
    for finding in switches:
        assert (
            finding.measured == f"switch unknown for {deaf} of 24 ports"
            and f"{NAMES[-deaf]} rail 0: ens1 received LLDP from no switch" in finding.why
        )
        assert (
            finding.remedy is not None
            and "Enable LLDP on" in finding.remedy
            and "tcpdump -e -nn -i ens1 ether proto 0x88cc" in finding.remedy
        )
        assert ("rounds were therefore planned by pairs of nodes" in finding.why) == (measured.plans[0].cover is None)
    assert {finding.status for finding in world.findings(measured, "coverage")} <= {"pass", "warn"}
    assert {pair.client for pair in measured.pairs} <= set(NAMES) and {
        finding.status for finding in world.findings(measured, "suspect")
    } == {"pass"}


def test_who_asks_for_no_rounds_by_links_is_not_told_of_switches() -> None:
    world = World({}, bandwidth={"rounds": "all"})
    world.facts = dataclasses.replace(world.facts, neighbours={})
    assert world.findings(world.run(), "coverage") == []


def test_without_lldp_there_are_rounds_of_pairs_and_the_plan_says_why() -> None:
    world = World({})
    world.facts = dataclasses.replace(world.facts, neighbours={name: roce_fabric.neighbours() for name in NAMES})
    measured = world.run()
    (plan,) = measured.plans
    assert plan.cover is None and plan.rounds == 23 and "Enable LLDP on" in plan.why
    assert not any(label is not None for _one, _other, label in world.api.tests)


def test_few_nodes_meet_everybody_as_before() -> None:
    world = World({}, bandwidth={"rounds": "all"})
    (plan,) = world.run().plans
    assert (plan.cover, plan.rounds) == (None, 23) and not any(
        label is not None for _one, _other, label in world.api.tests
    )


def test_labels_make_the_ports_that_linux_makes_of_them() -> None:
    """rdma_flow_label_to_udp_sport: the low 14 bits with the high 6 exclusive or, above 0xc000."""
    assert [compute_udp_port(label) for label in (1, 0x3FFF, 0x4000, 0xFFFFF)] == [
        0xC001,
        0xFFFF,
        0xC001,
        0xC000 | (0x3FFF ^ 0x3F),
    ]
    labels = {
        compute_flow_label(rail, one, other, flow)
        for rail in (0, 1)
        for flow in (0, 1)
        for one in NAMES
        for other in NAMES
    }
    assert all(0 < label < 1 << 20 for label in labels) and len(labels) > 0.99 * 4 * len(NAMES) ** 2
    assert not_of_label(["mlx5_core", "bnxt_en", "ice"]) == ["bnxt_en"]
