# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds that use each link of a fabric in both directions: what they measure, and what stage bandwidth then says of the links."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import (
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._model.forwarding import SeenForwarding
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import Hca, NodeHcas, ObservedHcas, PcieLink, PciFunction, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measure_pairs import Bench
from ansible_collections.linerate.rdma.plugins.module_utils._run.pods import Plan
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.ways import Ways
from tests.unit.fat_tree import guid, parts
from tests.unit.run.test_pairs import Api, Clock

LEAVES, SPINES, HOSTS = 4, 6, 6
NAMES = tuple(f"node-{number}" for number in range(1, LEAVES * HOSTS + 1))
LINE = 390.0
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      100           {figure:.2f}            {figure:.2f}            0.7\n"
)
WIDE = PcieLink(32.0, 16, 32.0, 16)
FABRIC: typing.Dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"hcas_per_node": 1},
    "routing": "static",
    "virtual_functions": 4,
    "resource_name": "ib",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
    "pods": {"message_bytes": 65536, "iterations": 100},
}

Shares = typing.Dict[typing.Tuple[str, str], float]


class World:
    """A fat tree whose links carry what they carry. ``shares``: of the line rate, by the two ends of a link, in this direction."""

    def __init__(self, shares: Shares, pcie: typing.Optional[typing.Mapping[str, PcieLink]] = None, **changes: typing.Any) -> None:
        topology, tables, ends = parts([HOSTS] * LEAVES, SPINES)
        self.ways = Ways(topology, tables, ends)
        self.intent = parse_intent([{**FABRIC, **changes}])
        self._shares = shares
        self._number = {end.node: number for number, end in enumerate(ends)}
        master = SubnetManager(1, guid(9, 1), "MASTER", 15, 100)
        hcas = {}
        for end in ends:
            port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", end.lid, 1, end.guid)
            function = PciFunction("0000:3c:00.0", "15b3", "1021", "0207", "mlx5_core", 0, (pcie or {}).get(end.node, WIDE))
            hcas[end.node] = ObservedHcas(NodeHcas((Hca("mlx5_0", "mlx5_0", pci=function, ports=(port,)),)))
        sound = SeenCapabilities(links=2 * len(topology.links))
        seen = SeenTopology("mlx5_0", 1, topology, capabilities=sound, forwarding=SeenForwarding(tuple(tables)))
        self.facts = Facts(
            nodes=NAMES,
            hcas=hcas,
            subnets={end.node: ObservedSubnets((SeenSubnet("mlx5_0", 1, master),)) for end in ends},
            topologies={NAMES[0]: ObservedTopologies((seen,))},
        )
        self.lines: typing.List[str] = []
        self.api = _Api(self)

    def figure(self, source: str, target: str) -> float:
        way = self.ways.way(self._number[source], self._number[target]) or ()
        directions = [self.ways.directions[number] for number in way]
        return LINE * min(
            self._shares.get((self.ways.name_of(one.source).partition(" ")[0], self.ways.name_of(one.target).partition(" ")[0]), 1.0) for one in directions
        )

    def run(self, nodes: typing.Tuple[str, ...] = NAMES) -> BandwidthFacts:
        plan = Plan(self.intent.fabrics, self.intent.cluster, nodes, {}, parallel=1, pod_seconds=60.0)
        return Bench(typing.cast(Cluster, self.api), plan, Clock(), lambda seconds: None, self.lines.append, self.facts).run()

    def findings(self, measured: BandwidthFacts, name: str) -> typing.List[Finding]:
        return [one for one in check(self.intent, dataclasses.replace(self.facts, bandwidth=measured)) if one.check == f"bandwidth.{name}"]


class _Api(Api):
    def __init__(self, world: World) -> None:
        super().__init__(NAMES, resource="openshift.io/ib", answers={("ib_write_bw", "client"): self.bandwidth})
        self.world = world
        self.tests: typing.List[typing.Tuple[str, str]] = []

    def greeting(self, pod: str, node: str) -> CommandResult:
        return CommandResult("shell", 0, 'rdma [{"ifname":"mlx5_2","netdev":"net1"}]\nrate mlx5_2 400 Gb/sec (4X NDR)\n')

    def bandwidth(self, node: str, command: typing.Tuple[str, ...]) -> CommandResult:
        nodes = {f"10.0.0.{number}": self.pods[name]["node"] for number, name in enumerate(self.made, 1)}
        self.tests.append((node, nodes[command[-1]]))
        return CommandResult("ib_write_bw", 0, TABLE.format(figure=self.world.figure(*self.tests[-1])))


def test_a_sound_fabric_is_proven_by_each_of_its_links_in_three_rounds_at_most() -> None:
    world = World({})
    measured = world.run()
    (plan,) = measured.plans
    assert plan.cover is not None and plan.rounds <= 3 and plan.cover.covered == plan.cover.directions == 2 * (LEAVES * HOSTS + LEAVES * SPINES)
    assert plan.cover.tests == len(measured.pairs) == len(world.api.tests) < 4 * len(NAMES) and not any(pair.again for pair in measured.pairs)
    assert world.lines[0].startswith(f"compute: {plan.rounds} rounds of {plan.cover.tests} tests over 100 % of 48 links in both directions, about ")
    assert [finding.status for name in ("rounds", "coverage", "suspect") for finding in world.findings(measured, name)] == ["pass"] * 3
    assert world.api.pods == {}


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5}, ["compute node-8 rail 0 <-> leaf-1 port 2"]),
        ({("leaf-1", "node-8"): 0.5}, ["compute leaf-1 port 2 to node-8 rail 0"]),
        ({("leaf-0", "spine-3"): 0.5}, ["compute leaf-0 port 10 to spine-3 port 1"]),
        ({("spine-2", "leaf-3"): 0.4, ("node-1", "leaf-0"): 0.7}, ["compute node-1 rail 0 to leaf-0 port 1", "compute spine-2 port 4 to leaf-3 port 9"]),
        (
            {(one, other): 0.5 for leaf in range(LEAVES) for one, other in (("spine-1", f"leaf-{leaf}"), (f"leaf-{leaf}", "spine-1"))},
            ["compute switch spine-1"],
        ),
    ],
)
def test_what_is_slow_is_named_and_nothing_else(shares: Shares, said: typing.List[str]) -> None:
    world = World(shares)
    measured = world.run()
    found = world.findings(measured, "suspect")
    assert sorted(finding.subject for finding in found) == said and {finding.status for finding in found} == {"fail"}
    more = [pair for pair in measured.pairs if pair.again]
    assert len(more) <= 3 * len(NAMES) and all(pair.again <= 14 for pair in more)
    assert [finding.status for finding in world.findings(measured, "coverage")] == ["pass"]


def test_each_finding_has_a_subject_of_its_own() -> None:
    world = World({("leaf-0", "spine-3"): 0.5})
    findings = check(world.intent, dataclasses.replace(world.facts, bandwidth=world.run()))
    subjects = [(finding.check, finding.subject) for finding in findings]
    assert len(subjects) == len(set(subjects))


def test_a_slot_that_trained_down_is_named_as_what_it_is() -> None:
    world = World({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5}, pcie={"node-8": PcieLink(32.0, 8, 32.0, 16)})
    (finding,) = world.findings(world.run(), "suspect")
    assert "The PCIe link of that HCA runs at" in finding.why and "Reseat the HCA mlx5_0 of node-8" in finding.remedy


def test_a_node_without_a_pod_leaves_its_links_unknown_by_name() -> None:
    world = World({})
    world.facts = dataclasses.replace(world.facts, nodes=NAMES)
    world.api.nodes = tuple(name for name in NAMES if name != "node-8")
    measured = world.run()
    (coverage,) = world.findings(measured, "coverage")
    # who measures knows that the node has no pod, and what its cable carries stays open
    assert [finding.subject for finding in world.findings(measured, "measured") if finding.status == "unknown"] == ["compute node-8"]
    assert coverage.status == "unknown" and "node-8 rail 0 to leaf-1 port 2" in coverage.why and "leaf-1 port 2 to node-8 rail 0" in coverage.why


@pytest.mark.parametrize(("routing", "words"), [(None, "the intent does not say it (routing)"), ("adaptive", "route adaptively, says the intent")])
def test_where_switches_may_choose_the_answer_ends_at_the_leaves(routing: typing.Optional[str], words: str) -> None:
    world = World({("leaf-0", "spine-3"): 0.5}, routing=routing)
    measured = world.run()
    (plan,) = measured.plans
    assert plan.cover is not None and words in plan.cover.spread
    (coverage,) = world.findings(measured, "coverage")
    assert coverage.status == "pass" and words in coverage.measured
    for finding in world.findings(measured, "suspect"):
        assert "spine" not in finding.subject and "port 1 " not in finding.subject, finding.subject


def test_a_slow_cable_of_a_node_is_told_without_tables_as_well() -> None:
    world = World({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5}, routing=None)
    assert [finding.subject for finding in world.findings(world.run(), "suspect")] == ["compute node-8 rail 0 <-> leaf-1 port 2"]


def test_pairs_that_give_no_figure_accuse_no_link() -> None:
    world = World({})
    real = world.api.bandwidth

    def broken(node: str, command: typing.Tuple[str, ...]) -> CommandResult:
        answer = real(node, command)
        return CommandResult("", 1, "Couldn't connect to 10.0.0.8:18603\n") if "node-8" in world.api.tests[-1] else answer

    world.api.answers = {("ib_write_bw", "client"): broken}
    measured = world.run()
    assert {finding.subject for finding in world.findings(measured, "suspect") if finding.status == "fail"} == {"compute node-8 mlx5_0"}
    assert [finding.status for finding in world.findings(measured, "coverage")] == ["unknown"]


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [({"bandwidth": {"rounds": "all"}}, 23), ({"bandwidth": {"rounds": 2}}, 2), ({"bandwidth": {"directions": "at_once"}}, 23)],
)
def test_who_asks_for_rounds_of_pairs_gets_them(changes: typing.Dict[str, typing.Any], rounds: int) -> None:
    (plan,) = World({}, **changes).run().plans
    assert (plan.cover, plan.rounds) == (None, rounds)


def test_without_a_topology_there_are_rounds_of_pairs_and_the_plan_says_why() -> None:
    world = World({}, bandwidth={"rounds": "auto"})
    world.facts = dataclasses.replace(world.facts, topologies={})
    (plan,) = world.run().plans
    assert plan.cover is None and plan.rounds == 23 and "No topology was read" in plan.why


class Everything(typing.Dict[typing.Tuple[str, str], float]):
    """Each link carries the same."""

    def get(self, key: typing.Any, default: typing.Any = None) -> typing.Any:
        return 0.5


def test_a_fabric_that_is_slow_everywhere_is_not_called_sound_and_no_link_is_accused() -> None:
    world = World(Everything())
    measured = world.run()
    found = world.findings(measured, "suspect")
    assert found and "pass" not in {finding.status for finding in found}
    # a link alone is no suspect where all are slow; each pair is below its floor
    assert not any("carries 50%" in finding.measured and " or " not in finding.subject for finding in found), [finding.subject for finding in found]
    assert {finding.status for finding in world.findings(measured, "floor")} == {"fail"}


def test_slower_hcas_than_the_fabric_are_no_slow_links() -> None:
    """PCIe 4.0 x16 carries half of NDR: meant so, and the floor knows it."""
    gen4 = PcieLink(16.0, 16, 16.0, 16)
    world = World(Everything(), pcie=dict.fromkeys(NAMES, gen4))
    measured = world.run()
    assert [finding.status for finding in world.findings(measured, "suspect")] == ["pass"]
    assert {finding.status for finding in world.findings(measured, "floor")} == {"pass"}
