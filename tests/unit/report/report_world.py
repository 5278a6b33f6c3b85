# SPDX-License-Identifier: GPL-3.0-or-later

"""A made-up cluster of any size, as the records that a run on it would leave: rails with leaves and spines, one of them
ill if a test wants it.

The findings are those of the real checks, so a report made of it is one that users could get.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth import facts as bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability import check as reachability
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ManagerPort,
    ObservedSubnets,
    ObservedTopologies,
    SeenCapabilities,
    SeenManagers,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    ObservedPings,
    ObservedServers,
    Ping,
    PingPlan,
    PingServer,
    PingTask,
    PortName,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
    Sriov,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import FactCount
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, build_pass, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.inputs import ReportFacts

RUN = "20260102T030405Z-aaaaaa"
STARTED, FINISHED = "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:25+00:00"
RATE = 400.0
MASTER, STANDBY = (
    SubnetManager(1, "0xe89e491ff5d50001", "MASTER", 15, 100),
    SubnetManager(2, "0xe89e491ff5d50011", "STANDBY", 3, 9),
)


@dataclasses.dataclass(frozen=True)
class World:
    """How large it is, and what is wrong with it.

    :ivar nodes: how many; their names are ``name`` and a number
    :ivar on_leaf: nodes on one leaf; each rail has leaves of its own
    :ivar rounds: partners of each node in each rail
    :ivar slow: number of the node whose HCA of rail 1 runs at half its width; 0 for none
    :ivar cut: rail and leaf whose uplinks are down: nothing crosses them
    :ivar name: of the nodes, as hostile as a test wants it
    :ivar across: each node measures between its rails as well
    """

    nodes: int = 8
    rails: int = 4
    on_leaf: int = 4
    rounds: int = 7
    slow: int = 0
    cut: typing.Optional[tuple[int, int]] = None
    name: str = "node-"
    across: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return _names(self.name, self.nodes)

    def pairs(self) -> typing.Iterator[tuple[int, int]]:
        """Who measures with whom, by number from 0."""
        for step in range(1, min(self.rounds, self.nodes - 1) + 1):
            for client in range(self.nodes):
                yield client, (client + step * max(1, self.nodes // (self.rounds + 1))) % self.nodes

    def lost(self, rail: int, client: int, server: int) -> bool:
        """Whether a cut leaf is between these nodes."""
        leaves = {client // self.on_leaf, server // self.on_leaf}
        return self.cut is not None and rail == self.cut[0] and self.cut[1] in leaves and len(leaves) == 2

    def average(self, rail: int, client: int, server: int) -> float:
        """In Gb/s; some noise that is the same each time."""
        noise = (client * 7919 + server * 104729 + rail * 31) % 97 / 97
        return (192.0 if self.slow - 1 in (client, server) and rail == 1 else 384.0) + 8 * noise


@functools.cache
def _names(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}{number:0{len(str(count))}d}" for number in range(1, count + 1))


def fabrics(world: World) -> list[dict[str, typing.Any]]:
    """The intent for it, as a user would write it."""
    return [
        {
            "name": "compute",
            "profile": "sriov_infiniband",
            "select": {"subnet_manager": "any", "hcas_per_node": world.rails},
            "virtual_functions": 8,
            "resource_name": "mlx_compute",
            "network": {"name": "sriov-ib-compute", "namespace": "training"},
            "ipam": {"type": "whereabouts", "range": "100.64.0.0/15"},
            "bandwidth": {"rounds": world.rounds, "directions": "one"},
        }
    ]


@dataclasses.dataclass(frozen=True)
class Made:
    """What a run left behind.

    :ivar records: by stage
    :ivar facts: by stage, the data of its Facts
    """

    records: typing.Mapping[str, Record]
    facts: typing.Mapping[str, typing.Any]

    def source(self, stage: str, parts: typing.Sequence[str]) -> typing.Mapping[str, typing.Any]:
        """A FactSource: what the folder of the report would give."""
        return {part: self.facts[stage][part] for part in parts if part in self.facts[stage]}

    @property
    def seen(self) -> ReportFacts:
        return ReportFacts(self.source)

    def change(self, stage: str, facts: typing.Any = None, **changes: typing.Any) -> Made:
        """The same with another record of a stage, and other facts if they are given."""
        if facts is not None:
            changes.setdefault("facts", tuple(FactCount(kind, 1, 0) for kind in facts))
        everything = self.facts if facts is None else {**self.facts, stage: facts}
        return Made({**self.records, stage: dataclasses.replace(self.records[stage], **changes)}, everything)


def records(world: World, waivers: typing.Sequence[typing.Mapping[str, str]] = ()) -> Made:
    """Records and facts of a run: fabric, reachability and bandwidth by their checks, the others with one pass each."""
    raw = RawIntent(fabrics(world), list(waivers))
    result = {}
    for stage in STAGES:
        gate = judge([build_pass(f"{stage}.node", name, "read", "read") for name in world.names[:3]])
        result[stage] = Record(stage, RUN, STARTED, FINISHED, False, "open", gate.judged)
    context = StageContext("fabric", RUN, STARTED, FINISHED, False, {})
    hcas, subnets, topologies = _hcas(world), _subnets(world), _topologies(world)
    facts: dict[str, typing.Any] = {
        "fabric": fabric.Facts(hcas, subnets, topologies),
        "reachability": reachability.Facts(hcas, subnets, topologies, **_pings(world)),
        "bandwidth": bandwidth.Facts(world.names, _bandwidth(world), hcas, subnets, topologies),
    }
    data = {stage: to_data(seen) for stage, seen in facts.items()}
    for stage, seen in data.items():
        counts = (FactCount("hcas", world.nodes, 0),)
        result[stage] = judge_stage(dataclasses.replace(context, stage=stage), raw, seen, (), counts)
    return Made(result, data)


def _guid(kind: int, *parts: int) -> str:
    return f"0x{kind:02x}" + "".join(f"{part:04x}" for part in (*parts, 0, 0, 0)[:3]) + "00"


def _lid(world: World, node: int, rail: int) -> int:
    return 100 + node * world.rails + rail


def _hcas(world: World) -> dict[str, ObservedHcas]:
    result = {}
    for node, name in enumerate(world.names):
        hcas = []
        for rail in range(world.rails):
            pci = PciFunction(
                f"0000:{0x10 + rail:02x}:00.0", "15b3", "1021", "0207", "mlx5_core", 0, PcieLink(32.0, 16, 32.0, 16)
            )
            port = Port(
                1, "ACTIVE", "LinkUp", "InfiniBand", RATE, 4, "NDR", _lid(world, node, rail), 1, _guid(2, node, rail)
            )
            device = f"mlx5_{rail}"
            hcas.append(
                Hca(
                    device,
                    device,
                    (),
                    pci,
                    _guid(1, node, rail),
                    f"{name} {device}",
                    "28.43.1014",
                    "MT_0000000838",
                    None,
                    (port,),
                    Sriov(16, 8),
                )
            )
        result[name] = ObservedHcas(NodeHcas(tuple(hcas)))
    return result


def _subnets(world: World) -> dict[str, ObservedSubnets]:
    seen = tuple(SeenSubnet(f"mlx5_{rail}", 1, MASTER) for rail in range(world.rails))
    return dict.fromkeys(world.names, ObservedSubnets(seen))


def _topologies(world: World) -> dict[str, ObservedTopologies]:
    leaves, spines = -(-world.nodes // world.on_leaf), 2
    nodes: list[FabricNode] = []
    links: list[Link] = []
    for rail in range(world.rails):
        for spine in range(spines):
            nodes.append(
                FabricNode("Switch", _guid(4, rail, spine), f"spine-{rail}-{spine + 1}", 65, 2000 + rail * 100 + spine)
            )
        if rail:
            # a discovery walks from link to link
            links.append(
                Link(LinkEnd("Switch", _guid(4, rail - 1, 0), 64), LinkEnd("Switch", _guid(4, rail, 0), 63), 4, "NDR")
            )
        for leaf in range(leaves):
            guid = _guid(3, rail, leaf)
            nodes.append(FabricNode("Switch", guid, f"leaf-{rail}-{leaf + 1}", 65, 3000 + rail * 100 + leaf))
            if (rail, leaf) != world.cut:
                for spine, cable in itertools.product(range(spines), range(2)):
                    end = LinkEnd("Switch", _guid(4, rail, spine), 1 + 2 * leaf + cable)
                    links.append(Link(LinkEnd("Switch", guid, 40 + 2 * spine + cable), end, 4, "NDR"))
        for node, name in enumerate(world.names):
            nodes.append(FabricNode("Ca", _guid(1, node, rail), f"{name} mlx5_{rail}", 1))
            end = LinkEnd("Ca", _guid(1, node, rail), 1, _lid(world, node, rail), _guid(2, node, rail))
            links.append(
                Link(LinkEnd("Switch", _guid(3, rail, node // world.on_leaf), 1 + node % world.on_leaf), end, 4, "NDR")
            )
    managers = SeenManagers((ManagerPort(1, MASTER), ManagerPort(2, STANDBY)), None, MASTER.guid, 100, 120, 10.0, True)
    counters = ErrorReport((), 2 * len(links))
    errors = SeenErrors(counters, counters, 10.0)
    seen = SeenTopology(
        "mlx5_0",
        1,
        Topology(tuple(nodes), tuple(links)),
        None,
        managers,
        SeenCapabilities(links=2 * len(links)),
        errors,
    )
    return {name: ObservedTopologies((seen,) if node == 0 else ()) for node, name in enumerate(world.names)}


def seen(world: World) -> tuple[dict[str, ObservedHcas], dict[str, ObservedSubnets], dict[str, ObservedTopologies]]:
    """What the nodes, their ports and the fabric show."""
    return _hcas(world), _subnets(world), _topologies(world)


def _pings(world: World) -> dict[str, typing.Any]:
    partners: dict[int, list[int]] = {}
    for client, server in world.pairs():
        partners.setdefault(client, []).append(server)
    plan, pings = {}, {}
    for node, name in enumerate(world.names):
        asked = {
            rail: tuple(_lid(world, server, rail) for server in partners.get(node, ())) for rail in range(world.rails)
        }
        servers = tuple(PortName(f"mlx5_{rail}", 1) for rail in asked)
        plan[name] = PingPlan(servers, tuple(PingTask(f"mlx5_{rail}", 1, lids) for rail, lids in asked.items()))
        answers = [
            Ping(f"mlx5_{rail}", 1, _lid(world, server, rail), 20, 0 if world.lost(rail, node, server) else 20)
            for rail in asked
            for server in partners.get(node, ())
        ]
        pings[name] = ObservedPings(tuple(answers))
    serving = ObservedServers(tuple(PingServer(f"mlx5_{rail}", 1) for rail in range(world.rails)))
    serving_all = dict.fromkeys(world.names, serving)
    return {"plan": plan, "servers": serving_all, "pings": pings, "stopped": serving_all}


def _bandwidth(world: World) -> BandwidthFacts:
    pods, pairs = [], []
    for rail in range(world.rails):
        for node, name in enumerate(world.names):
            address, function = f"100.64.{rail}.{node % 250 + 1}", f"0000:{0x10 + rail:02x}:00.0"
            pod = RdmaPod(
                "compute",
                name,
                f"linerate-{node}-{rail}",
                "training",
                f"mlx5_{8 + rail}",
                address,
                rate_gbps=RATE,
                pcie_gbps=504.1,
            )
            pods.append(dataclasses.replace(pod, rail=rail, interface="net1", physical_function=function))
        for client, server in world.pairs():
            names = world.names[client], world.names[server]
            if world.lost(rail, client, server):
                lost = "rdma_resolve_addr: error -19"
                pairs.append(
                    PairResult("compute", *names, 0, "no_address", lost, failure="ping", evidence=lost, rail=rail)
                )
            else:
                average = world.average(rail, client, server)
                pairs.append(PairResult("compute", *names, 5, "", "", average, average + 3.5, 1048576, 5000, rail=rail))
    for name in world.names if world.across else ():
        for rail in range(world.rails):
            other = (rail + 1) % world.rails
            pairs.append(
                PairResult(
                    "compute", name, name, 5, "", "", 380.0 + rail, 384.0, 1048576, 5000, rail=rail, server_rail=other
                )
            )
    return BandwidthFacts(tuple(pods), tuple(pairs))
