# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds that use each link of a fabric in both directions: what they measure, and what stage bandwidth then says of
the links."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import SeenForwarding
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from tests.unit.fat_tree import Parts, guid, parts, rail_parts
from tests.unit.run.test_pairs import Api, Clock

LEAVES, SPINES, HOSTS = 4, 6, 6
NAMES = tuple(f"node-{number}" for number in range(1, LEAVES * HOSTS + 1))
LINE = 390.0
TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      100           {figure:.2f}            {figure:.2f}            0.7\n"
)
WIDE = PcieLink(32.0, 16, 32.0, 16)
FABRIC: dict[str, typing.Any] = {
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

Shares = dict[tuple[str, str], float]


def address(rail: int) -> str:
    """Of an HCA."""
    return f"0000:{0x3C + rail:02x}:00.0"


class World:
    """A fat tree whose links carry what they carry. ``shares``: of the line rate, by the two ends of a link, in this
    direction."""

    def __init__(
        self,
        shares: Shares,
        pcie: typing.Optional[typing.Mapping[str, PcieLink]] = None,
        built: typing.Optional[Parts] = None,
        **changes: typing.Any,
    ) -> None:
        """:param built: None: one HCA a node"""
        topology, tables, ends = built or parts([HOSTS] * LEAVES, SPINES)
        rails = 1 + max(end.rail for end in ends)
        self.ways = PathTable(topology, tables, ends)
        self.intent = parse_intent([{**FABRIC, "select": {"hcas_per_node": rails}, **changes}])
        self.names = tuple(dict.fromkeys(end.node for end in ends))
        self._shares = shares
        self._number = {(end.node, end.rail): number for number, end in enumerate(ends)}
        master = SubnetManager(1, guid(9, 1), "MASTER", 15, 100)
        hcas: dict[str, tuple[Hca, ...]] = dict.fromkeys(self.names, ())
        for end in ends:
            port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", end.lid, 1, end.guid)
            function = PciFunction(
                address(end.rail), "15b3", "1021", "0207", "mlx5_core", 0, (pcie or {}).get(end.node, WIDE)
            )
            hcas[end.node] += (Hca(f"mlx5_{end.rail}", f"mlx5_{end.rail}", pci=function, ports=(port,)),)
        sound = SeenCapabilities(links=2 * len(topology.links))
        seen = SeenTopology("mlx5_0", 1, topology, capabilities=sound, forwarding=SeenForwarding(tuple(tables)))
        managers = tuple(SeenSubnet(f"mlx5_{rail}", 1, master) for rail in range(rails))
        self.rails = (
            {"compute": {name: {address(rail): rail for rail in range(rails)} for name in self.names}}
            if rails > 1
            else {}
        )
        self.facts = Facts(
            nodes=self.names,
            hcas={name: ObservedHcas(NodeHcas(its)) for name, its in hcas.items()},
            subnets=dict.fromkeys(self.names, ObservedSubnets(managers)),
            topologies={self.names[0]: ObservedTopologies((seen,))},
        )
        self.lines: list[str] = []
        self.api = _Api(self)

    def figure(self, source: str, target: str, source_rail: int = 0, target_rail: int = 0) -> float:
        way = self.ways.way(self._number[source, source_rail], self._number[target, target_rail]) or ()
        directions = [self.ways.directions[number] for number in way]
        return LINE * min(self._shares.get((self._name(one.source), self._name(one.target)), 1.0) for one in directions)

    def _name(self, guid: str) -> str:
        name = self.ways.name_of(guid)
        return name if self.rails else name.partition(" ")[0]

    def run(self) -> BandwidthFacts:
        plan = Plan(self.intent.fabrics, self.intent.cluster, self.names, self.rails, parallel=1, pod_seconds=60.0)
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
        super().__init__(
            world.names, offered="8", resource="openshift.io/ib", answers={("ib_write_bw", "client"): self.bandwidth}
        )
        self.world = world
        self.tests: list[tuple[str, str]] = []

    def greeting(self, pod: str, node: str) -> CommandResult:
        rail = self.rail_of(pod)
        text = f'rdma [{{"ifname":"mlx5_1{rail}","netdev":"net1"}}]\nrate mlx5_1{rail} 400 Gb/sec (4X NDR)\n'
        if self.world.rails:
            function = address(rail).replace(".0", ".2")
            text += f"env PCIDEVICE_X={function}\nphysfn {function} {address(rail)}\n"
        return CommandResult("shell", 0, text)

    def ran_by(self, node: str, command: tuple[str, ...]) -> CommandResult:
        # a look at the pod, of which nothing is told here
        return CommandResult("sh", 0, "") if command[0] == "sh" else super().ran_by(node, command)

    def rail_of(self, pod: str) -> int:
        """Of the pods of a node each gets the next one."""
        node = self.pods[pod]["node"]
        return [name for name in self.made if self.pods[name]["node"] == node].index(pod)

    def bandwidth(self, node: str, command: tuple[str, ...]) -> CommandResult:
        pod = next(name for number, name in enumerate(self.made, 1) if f"10.0.0.{number}" == command[-1])
        self.tests.append((node, self.pods[pod]["node"]))
        own = int(command[command.index("-d") + 1][len("mlx5_1") :])
        return CommandResult(
            "ib_write_bw", 0, TABLE.format(figure=self.world.figure(*self.tests[-1], own, self.rail_of(pod)))
        )


def test_a_sound_fabric_is_proven_by_each_of_its_links_in_three_rounds_at_most() -> None:
    world = World({})
    measured = world.run()
    (plan,) = measured.plans
    assert (
        plan.cover is not None
        and plan.rounds <= 3
        and plan.cover.covered == plan.cover.directions == 2 * (LEAVES * HOSTS + LEAVES * SPINES)
    )
    assert plan.cover.tests == len(measured.pairs) == len(world.api.tests) < 4 * len(NAMES) and not any(
        pair.again for pair in measured.pairs
    )
    assert world.lines[0].startswith(
        f"compute: {plan.rounds} rounds of {plan.cover.tests} tests over 100 % of 48 links in both directions, about "
    )
    assert [
        finding.status for name in ("rounds", "coverage", "suspect") for finding in world.findings(measured, name)
    ] == ["pass"] * 3
    assert world.api.pods == {}


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({("node-8", "leaf-1"): 0.5, ("leaf-1", "node-8"): 0.5}, ["compute node-8 rail 0 <-> leaf-1 port 2"]),
        ({("leaf-1", "node-8"): 0.5}, ["compute leaf-1 port 2 to node-8 rail 0"]),
        ({("leaf-0", "spine-3"): 0.5}, ["compute leaf-0 port 10 to spine-3 port 1"]),
        (
            {("spine-2", "leaf-3"): 0.4, ("node-1", "leaf-0"): 0.7},
            ["compute node-1 rail 0 to leaf-0 port 1", "compute spine-2 port 4 to leaf-3 port 9"],
        ),
        (
            {
                (one, other): 0.5
                for leaf in range(LEAVES)
                for one, other in (("spine-1", f"leaf-{leaf}"), (f"leaf-{leaf}", "spine-1"))
            },
            ["compute switch spine-1"],
        ),
    ],
)
def test_what_is_slow_is_named_and_nothing_else(shares: Shares, said: list[str]) -> None:
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
    assert "of this HCA runs at" in finding.why and "Reseat the HCA mlx5_0 of node-8" in finding.remedy


def test_a_node_without_a_pod_leaves_its_links_unknown_by_name() -> None:
    world = World({})
    world.facts = dataclasses.replace(world.facts, nodes=NAMES)
    world.api.nodes = tuple(name for name in NAMES if name != "node-8")
    measured = world.run()
    (coverage,) = world.findings(measured, "coverage")
    # who measures knows that the node has no pod, and what its cable carries stays open
    assert [finding.subject for finding in world.findings(measured, "measured") if finding.status == "unknown"] == [
        "compute node-8"
    ]
    assert (
        coverage.status == "unknown"
        and "node-8 rail 0 to leaf-1 port 2" in coverage.why
        and "leaf-1 port 2 to node-8 rail 0" in coverage.why
    )


@pytest.mark.parametrize(
    ("routing", "words"),
    [(None, "the intent does not set routing"), ("adaptive", "route adaptively according to the intent")],
)
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
    assert [finding.subject for finding in world.findings(world.run(), "suspect")] == [
        "compute node-8 rail 0 <-> leaf-1 port 2"
    ]


def test_pairs_that_give_no_figure_accuse_no_link() -> None:
    world = World({})
    real = world.api.bandwidth

    def broken(node: str, command: tuple[str, ...]) -> CommandResult:
        answer = real(node, command)
        return (
            CommandResult("", 1, "Couldn't connect to 10.0.0.8:18603\n") if "node-8" in world.api.tests[-1] else answer
        )

    world.api.answers = {("ib_write_bw", "client"): broken}
    measured = world.run()
    assert {finding.subject for finding in world.findings(measured, "suspect") if finding.status == "fail"} == {
        "compute node-8 mlx5_0"
    }
    assert [finding.status for finding in world.findings(measured, "coverage")] == ["unknown"]


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [
        ({"bandwidth": {"rounds": "all"}}, 23),
        ({"bandwidth": {"rounds": 2}}, 2),
        ({"bandwidth": {"directions": "at_once"}}, 23),
    ],
)
def test_who_asks_for_rounds_of_pairs_gets_them(changes: dict[str, typing.Any], rounds: int) -> None:
    (plan,) = World({}, **changes).run().plans
    assert (plan.cover, plan.rounds) == (None, rounds)


def test_without_a_topology_there_are_rounds_of_pairs_and_the_plan_says_why() -> None:
    world = World({}, bandwidth={"rounds": "auto"})
    world.facts = dataclasses.replace(world.facts, topologies={})
    (plan,) = world.run().plans
    assert plan.cover is None and plan.rounds == 23 and "No topology was read" in plan.why


class Everything(dict[tuple[str, str], float]):
    """Each link carries the same."""

    def get(self, key: typing.Any, default: typing.Any = None) -> typing.Any:
        return 0.5


def test_a_fabric_that_is_slow_everywhere_is_not_called_sound_and_no_link_is_accused() -> None:
    world = World(Everything())
    measured = world.run()
    found = world.findings(measured, "suspect")
    assert found and "pass" not in {finding.status for finding in found}
    # a link alone is no suspect where all are slow; each pair is below its floor
    assert not any("carries 50%" in finding.measured and " or " not in finding.subject for finding in found), [
        finding.subject for finding in found
    ]
    assert {finding.status for finding in world.findings(measured, "floor")} == {"fail"}


def test_slower_hcas_than_the_fabric_are_no_slow_links() -> None:
    """PCIe 4.0 x16 carries half of NDR: meant so, and the floor knows it."""
    gen4 = PcieLink(16.0, 16, 16.0, 16)
    world = World(Everything(), pcie=dict.fromkeys(NAMES, gen4))
    measured = world.run()
    assert [finding.status for finding in world.findings(measured, "suspect")] == ["pass"]
    assert {finding.status for finding in world.findings(measured, "floor")} == {"pass"}


def rails_of_hosts(shares: Shares, apart: bool = False, **changes: typing.Any) -> World:
    """Six hosts with four HCAs each, a leaf for each rail, and spines that the rails share: what goes over these is
    between rails."""
    return World(shares, None, rail_parts(6, 4, 6, apart=apart), **{"bandwidth": {"rounds": "auto"}, **changes})


def test_where_rails_share_spines_each_host_measures_between_its_rails() -> None:
    world = rails_of_hosts({})
    measured = world.run()
    (plan,) = measured.plans
    between = [pair for pair in measured.pairs if pair.between_rails]
    assert (
        plan.cover is not None
        and not plan.cover.apart
        and plan.cover.between_rails >= 2 * 2 * 6
        and len(measured.pairs) == plan.cover.tests
    )
    assert {(pair.rail, pair.server_end[0]) for pair in between} >= {(0, 2), (2, 0), (1, 3), (3, 1)} and all(
        pair.average_gbps == LINE for pair in between
    )
    # 24 cables and 24 uplinks, of which no way within a rail takes one
    assert world.lines[0].startswith(
        f"compute: {plan.rounds} rounds of {plan.cover.tests} tests, {plan.cover.between_rails} of them between the"
        " rails of each host, over 100 % of 48 links in both directions, about "
    )
    assert any(
        line.startswith("compute host-1 rail 0 -> host-1 rail 2: 5 pings, 390.0000 Gb/s") for line in world.lines
    )
    assert any(line.startswith("compute: between the rails of each host, 24 tests") for line in world.lines)
    findings = check(world.intent, dataclasses.replace(world.facts, bandwidth=measured))
    assert {finding.status for finding in findings} == {"pass"}
    subjects = [(finding.check, finding.subject) for finding in findings]
    assert (
        len(subjects) == len(set(subjects))
        and ("bandwidth.floor", "compute host-1 rail 0 -> host-1 rail 2") in subjects
    )
    (fleet,) = [
        finding
        for finding in findings
        if (finding.check, finding.subject) == ("bandwidth.fleet", "compute host-1 rail 0 -> host-1 rail 2")
    ]
    assert "of the best pair between rails" in fleet.expected


def test_rails_that_are_apart_are_measured_by_themselves_and_the_plan_says_so() -> None:
    world = rails_of_hosts({}, apart=True)
    measured = world.run()
    (plan,) = measured.plans
    assert (
        plan.cover is not None
        and plan.cover.apart
        and not plan.cover.between_rails
        and not any(pair.between_rails for pair in measured.pairs)
    )
    assert "over 100 % of 24 links in both directions; its rails are apart, about " in world.lines[0]
    assert {
        finding.status for finding in check(world.intent, dataclasses.replace(world.facts, bandwidth=measured))
    } == {"pass"}


@pytest.mark.parametrize("rails", ["parallel", "serial"])
@pytest.mark.parametrize(
    ("shares", "said"),
    [
        # nothing within a rail goes up
        ({("leaf-0", "spine-3"): 0.5}, ["compute leaf-0 port 10 to spine-3 port 1"]),
        ({("spine-1", "leaf-2"): 0.5, ("leaf-2", "spine-1"): 0.5}, ["compute leaf-2 port 8 <-> spine-1 port 3"]),
        ({("host-2 rail 3", "leaf-3"): 0.5}, ["compute host-2 rail 3 to leaf-3 port 2"]),
        (
            {one: 0.5 for leaf in range(4) for one in ((f"leaf-{leaf}", "spine-4"), ("spine-4", f"leaf-{leaf}"))},
            ["compute switch spine-4"],
        ),
    ],
)
def test_a_slow_link_between_rails_is_named_and_nothing_else(shares: Shares, said: list[str], rails: str) -> None:
    world = rails_of_hosts(shares, bandwidth={"rounds": "auto", "rails": rails})
    measured = world.run()
    found = world.findings(measured, "suspect")
    assert sorted(finding.subject for finding in found) == said and {finding.status for finding in found} == {"fail"}
    assert [finding.status for finding in world.findings(measured, "coverage")] == ["pass"]
    failed = {finding.subject for finding in world.findings(measured, "floor") if finding.status == "fail"}
    assert failed and all("rail" in subject for subject in failed)


def test_suspects_between_rails_are_looked_at_layer_by_layer_with_both_of_their_rails() -> None:
    world = rails_of_hosts({("leaf-0", "spine-3"): 0.5}, bandwidth={"rounds": "auto", "layers": "suspects"})
    measured = world.run()
    looked = [item for item in measured.layers if item.between_rails]
    assert looked and all(item.rail == 0 for item in looked)
    pods = [step for item in looked for step in item.steps if step.layer == "vf_pod"]
    assert [step.average_gbps for step in pods] == [LINE / 2] * len(looked)
    # each through the pod of its own rail
    assert {(step.client.device, step.server.device) for step in pods} == {
        ("mlx5_10", f"mlx5_1{item.server_rail}") for item in looked
    }
    subjects = {finding.subject for finding in world.findings(measured, "layer")}
    assert {f"compute {item.client} rail 0 -> {item.server} rail {item.server_rail}" for item in looked} <= subjects


def test_rails_of_one_host_that_fail_with_each_other_accuse_their_ends() -> None:
    """No figure speaks of no link: what fails is told by whom it passes with."""
    world = rails_of_hosts({})
    real = world.api.bandwidth

    def broken(node: str, command: tuple[str, ...]) -> CommandResult:
        answer = real(node, command)
        mine = node == "host-3" and command[command.index("-d") + 1] == "mlx5_11"
        return CommandResult("", 1, "Couldn't connect to 10.0.0.8:18603\n") if mine else answer

    world.api.answers = {("ib_write_bw", "client"): broken}
    measured = world.run()
    failed = {finding.subject for finding in world.findings(measured, "measured") if finding.status == "fail"}
    assert "compute host-3 rail 1 -> host-3 rail 3" in failed
    assert {finding.subject for finding in world.findings(measured, "suspect") if finding.status == "fail"} == {
        "compute client host-3 mlx5_1"
    }


@pytest.mark.parametrize("rounds", ["all", 2])
def test_rounds_of_pairs_stay_within_rails(rounds: typing.Union[str, int]) -> None:
    measured = rails_of_hosts({}, bandwidth={"rounds": rounds}).run()
    assert measured.plans[0].cover is None and measured.pairs and not any(pair.between_rails for pair in measured.pairs)
