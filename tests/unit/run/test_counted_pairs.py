# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the figures name no link, the counters of the ports are read before and after a test: what is asked through the
observer, and what is made of it. The fabric is played, with counters that rise by what each test sends over each of its
links."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.port_counters import PROBES, list_ports
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.port_counters import Counted
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.results import find_vantage_port
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import SeenCapabilities, SlowPort
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband.perfquery import ASKED
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement import counted_pairs
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.port_counters import NO_COUNTERS, Counters
from tests.unit.fat_tree import guid
from tests.unit.run.test_pairs import Clock, Shell
from tests.unit.run.test_pairs_by_links import HOSTS, LINE, NAMES, SPINES, World

OBSERVERS = ObserversFacts(
    "linerate-observers",
    "registry.example/tools",
    (Observer(NAMES[0], "ready", pod="observer-1", container="observer"),),
)
#: of a test, in units of 4 octets
SENT = 1_000_000_000
Port = tuple[int, int]
ERRORS = (
    "SymbolErrorCounter LinkErrorRecoveryCounter LinkDownedCounter PortRcvErrors PortRcvRemotePhysicalErrors"
    " PortRcvSwitchRelayErrors PortXmitDiscards PortXmitConstraintErrors PortRcvConstraintErrors"
    " LocalLinkIntegrityErrors ExcessiveBufferOverrunErrors QP1Dropped VL15Dropped"
).split()


class Counting(World):
    """With counters, by LID and port. Leaves have the LIDs from 101 on, spines those from 201 on.

    :ivar rises: what a port counts more in each test, beside data
    :ivar before: counters of ports at the first of two readings: somebody clears them then
    :ivar mute: LIDs that do not answer
    :ivar takes: by which spines the data goes, and its share; empty: by the tables
    """

    def __init__(self, shares: dict[tuple[str, str], float], **changes: typing.Any) -> None:
        super().__init__(shares, **{"bandwidth": {"layers": "none"}, **changes})
        self.counters: dict[Port, dict[str, int]] = {}
        self.rises: dict[Port, dict[str, int]] = {}
        self.before: dict[Port, dict[str, int]] = {}
        self.mute: set[int] = set()
        self.takes: dict[int, float] = {}
        self.asked: list[tuple[str, ...]] = []
        self.observers: typing.Optional[ObserversFacts] = OBSERVERS
        self.opened: list[Shell] = []
        (seen,) = self.facts.topologies[NAMES[0]].value or ()
        assert seen.topology is not None
        lids = {1: 101, 2: 201}
        nodes = tuple(
            (
                dataclasses.replace(node, lid=lids[int(node.guid[2:10], 16)] + int(node.guid[10:], 16))
                if node.kind == "Switch"
                else node
            )
            for node in seen.topology.nodes
        )
        self.lids = {node.guid: node.lid for node in nodes}
        self.seen(capabilities=seen.capabilities, topology=dataclasses.replace(seen.topology, nodes=nodes))
        self.api.shell, self._shell = self._open, self.api.shell  # type: ignore[method-assign]
        self.api.answers[("ib_write_bw", "client")], self._bandwidth = self._send, self.api.bandwidth

    def seen(self, **changes: typing.Any) -> None:
        (seen,) = self.facts.topologies[NAMES[0]].value or ()
        observed = dataclasses.replace(self.facts.topologies[NAMES[0]], value=(dataclasses.replace(seen, **changes),))
        self.facts = dataclasses.replace(self.facts, topologies={NAMES[0]: observed})

    def run(self) -> BandwidthFacts:
        plan = Plan(self.intent.fabrics, self.intent.cluster, self.names, self.rails, parallel=1, pod_seconds=60.0)
        bench = BandwidthRun(
            typing.cast(Cluster, self.api),
            plan,
            Clock(),
            lambda seconds: None,
            self.lines.append,
            self.facts,
            self.observers,
        )
        facts = bench.run()
        assert not any(shell.open for shell in self.opened)
        # as it is written and read
        found: BandwidthFacts = load(BandwidthFacts, to_data(facts), "bandwidth")
        return found

    def suspect(self) -> Finding:
        found, *_more = self.findings(self.run(), "suspect")
        assert found.status == "fail"
        return found

    def _open(self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: Clock) -> Shell:
        if namespace != OBSERVERS.namespace:
            return self._shell(namespace, pod, container, command, clock)
        assert (pod, container) == ("observer-1", "observer")
        self.opened.append(Shell(CommandResult("shell", 0, "allowed 0-3"), self._perfquery))
        return self.opened[-1]

    def _perfquery(self, command: tuple[str, ...]) -> CommandResult:
        assert "\n" not in " ".join(command) and command[:4] == ("timeout", "--kill-after=5", "120", "sh")
        name, device, port, _limit, *nodes = command[6:]
        assert (name, device, port) == ("counters", "mlx5_0", "1")
        self.asked.append(tuple(nodes))
        said = ""
        for node in nodes:
            lid, ports = int(node.split(":")[0]), [int(one) for one in node.split(":")[1].split(",")]
            said += f"{ASKED} {lid}\n"
            said += (
                "perfquery: iberror: failed: classportinfo query\n"
                if lid in self.mute
                else "".join(self._print(lid, port) for port in ports)
            )
        return CommandResult("perfquery", 0, said)

    def _print(self, lid: int, port: int) -> str:
        has = (self.before if len(self.asked) % 2 else {}).get((lid, port)) or self.counters.get((lid, port), {})
        narrow = [f"{name}:....{has.get(name, 0)}" for name in (*ERRORS, "PortXmitWait")]
        data = [
            f"{name}:....{has.get(name, 0)}" for name in ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")
        ]
        first = f"PortSelect:....{port}"
        return "\n".join(
            (
                f"# Port counters: Lid {lid} port {port} (CapMask: 0x1300)",
                first,
                *narrow,
                f"# Port extended counters: Lid {lid} port {port} (CapMask: 0x1300 CapMask2: 0x0000000)",
                first,
                *data,
                "",
            )
        )

    def _send(self, node: str, command: tuple[str, ...]) -> CommandResult:
        result = self._bandwidth(node, command)
        source, target = (self._number[name, 0] for name in self.api.tests[-1][:2])
        near, far = self.ways.leaf(source), self.ways.leaf(target)
        for number in self.ways.way(source, target) or ():
            it = self.ways.directions[number]
            if self.takes and it.source in self.ways.switches and it.target in self.ways.switches:
                continue
            self._count(it.source, it.source_port, "PortXmitData", SENT)
            self._count(it.target, it.target_port, "PortRcvData", SENT)
        for spine, share in self.takes.items() if near != far else ():
            for it in self.ways.directions:
                if (it.source, it.target) in ((near, guid(2, spine)), (guid(2, spine), far)):
                    self._count(it.source, it.source_port, "PortXmitData", round(share * SENT))
                    self._count(it.target, it.target_port, "PortRcvData", round(share * SENT))
        for port, rises in self.rises.items():
            for name, rise in rises.items():
                self.counters.setdefault(port, {})[name] = self.counters.get(port, {}).get(name, 0) + rise
        return result

    def _count(self, node: str, port: int, name: str, rise: int) -> None:
        lid = self.lids.get(node) or next(end.lid for end in self.ways.ends if end.guid == node)
        has = self.counters.setdefault((lid, port), {})
        has[name] = has.get(name, 0) + rise


#: all that goes from leaf 1 to leaf 3 is slow, and switches may choose: no link can be named
BETWEEN = {("leaf-1", f"spine-{spine}"): 0.5 for spine in range(SPINES)}


def between(**changes: typing.Any) -> Counting:
    """A world in which nobody knows how the switches route, with one slow pair of leaves."""
    return Counting(BETWEEN, **{"routing": None, **changes})


def test_the_answer_that_stops_at_two_leaves_is_measured_once_more_between_two_readings() -> None:
    world = between()
    world.rises = {(102, HOSTS + 3): {"PortXmitWait": 5000}}
    measured = world.run()
    # the suspect, and a good one to see how the switches route
    assert [pair.average_gbps for pair in measured.counted] == [195.0, LINE] and {
        pair.node for pair in measured.counted
    } == {NAMES[0]}
    # one shell for all, and each is read twice
    assert len(world.opened) == 1 and len(world.asked) == 2 * len(measured.counted)
    first = measured.counted[0]
    # two cables, and the uplinks of two leaves, each with both ends
    assert (
        len(first.ports) == 2 * (2 + 2 * SPINES)
        and world.asked[0] == world.asked[1]
        and not any(port.why for port in first.ports)
    )
    found = next(one for one in world.findings(measured, "suspect") if "from leaf-1 to" in one.subject)
    assert f"counters of {len(first.ports)} ports were read before and after the test" in found.why
    assert "leaf-1 port 9 (to spine-2 port 2) +5000, 100 % of all" in found.why.replace("100%", "100 %")
    assert found.remedy.startswith("Check the path beyond leaf-1 port 9 (to spine-2 port 2)")
    assert any("counters: 28 of 28 ports read before and after" in line for line in world.lines)


def test_errors_that_rise_name_the_port_before_one_that_waits() -> None:
    world = between()
    world.rises = {
        (202, 2): {"SymbolErrorCounter": 7, "PortRcvErrors": 2},
        (102, HOSTS + 2): {"PortXmitWait": 900},
        (101, 1): {"SymbolErrorCounter": 50},
    }
    found = world.suspect()
    assert (
        "These error counters increased during the test: spine-1 port 2 (to leaf-1 port 8):"
        " SymbolErrorCounter +7, PortRcvErrors +2."
    ) in found.why
    assert "leaf-1 port 8 (to spine-1 port 2) +900" in found.why and "+50" not in found.why
    assert found.remedy == (
        "Clean and reseat the cable at spine-1 port 2 (to leaf-1 port 8) at both ends, then swap"
        " the cable. If the errors continue, the port is faulty. Then run stage bandwidth again."
    )


def test_ports_that_count_nothing_are_told_and_the_usual_step_stays() -> None:
    found = between().suspect()
    assert "No error counter of these ports increased, and none of the ports waited to send." in found.why
    assert found.remedy.startswith("Check the uplinks of both leaves with iblinkinfo and ibqueryerrors")


def test_what_does_not_concern_the_data_is_not_named() -> None:
    world = between()
    world.rises = {(202, 2): {"VL15Dropped": 3, "PortRcvSwitchRelayErrors": 9, "QP1Dropped": 1}}
    assert "No error counter of these ports increased" in world.suspect().why


def test_counters_that_somebody_clears_meanwhile_are_told() -> None:
    world = between()
    world.before = {
        (102, HOSTS + spine + 1): {"SymbolErrorCounter": 500, "PortXmitWait": 10_000, "PortXmitData": 10**13}
        for spine in range(SPINES)
    }
    world.rises = {(102, HOSTS + 1): {"SymbolErrorCounter": 1}}
    world.mute = set(range(201, 201 + SPINES))
    found = world.suspect()
    assert (
        "Counters of these ports were cleared during the test" in found.why
        and "leaf-1 port 7 (to spine-0 port 2)" in found.why.partition("were cleared")[2]
    )
    # how much the uplinks carried is not known, so nothing is said of the way; what they counted since is
    assert "The data left" not in found.why and "leaf-1 port 7 (to spine-0 port 2): SymbolErrorCounter +" in found.why


def test_a_counter_at_its_maximum_is_no_proof_that_nothing_rose() -> None:
    world = between()
    world.counters[202, 2] = {"SymbolErrorCounter": 65535}
    assert "These counters are at their maximum and cannot increase" in world.suspect().why


def test_a_port_that_can_t_be_read_is_told_by_name() -> None:
    world = between()
    world.mute = {202}
    found = world.suspect()
    assert (
        "The counters of these ports could not be read: spine-1 port 2 (to leaf-1 port 8)"
        " (perfquery: iberror: failed: classportinfo query)"
    ) in found.why
    world = between()
    (seen,) = world.facts.topologies[NAMES[0]].value or ()
    assert seen.topology is not None
    nodes = tuple(
        dataclasses.replace(node, lid=None) if node.guid == guid(2, 1) else node for node in seen.topology.nodes
    )
    world.seen(topology=dataclasses.replace(seen.topology, nodes=nodes))
    assert "spine-1 port 2 (to leaf-1 port 8) (the topology has no LID for this port)" in world.suspect().why


def test_a_link_at_less_than_its_peers_or_than_it_could_is_named() -> None:
    world = between()
    (seen,) = world.facts.topologies[NAMES[0]].value or ()
    assert seen.topology is not None
    links = tuple(
        dataclasses.replace(link, width=2) if (link.a.guid, link.a.port) == (guid(1, 1), HOSTS + 4) else link
        for link in seen.topology.links
    )
    world.seen(
        topology=dataclasses.replace(seen.topology, links=links),
        capabilities=SeenCapabilities((SlowPort(guid(1, 1), HOSTS + 4, "4X"),), 96),
    )
    found = world.suspect()
    assert (
        "The uplinks of leaf-1 run at 400 Gb/s, but these uplinks run at a lower rate: leaf-1"
        " port 10 to spine-3 port 2 at 200 Gb/s."
    ) in found.why
    assert (
        "These links run below the rate that both of their ends support: leaf-1 port 10 to spine-3 port 2, could be 4X."
    ) in found.why
    assert found.remedy.startswith(
        "Run iblinkinfo, and set a limit of the rate or the width at these ports back to the rate that they support."
    )


@pytest.mark.parametrize(
    ("observers", "said"),
    [
        (
            None,
            "no pod inspects the nodes in this run (rdma_observers), so a host cannot be measured",
        ),
        (
            dataclasses.replace(OBSERVERS, nodes=()),
            "node-1 has no pod that inspects it (rdma_observers): the node is accessed through SSH",
        ),
        (
            dataclasses.replace(OBSERVERS, nodes=(Observer(NAMES[0], "failed", reason="ImagePull", detail="denied"),)),
            "no pod that inspects it (rdma_observers): ImagePull: denied",
        ),
    ],
)
def test_without_an_observer_where_the_fabric_was_seen_nothing_is_measured_and_the_reason_is_told(
    observers: typing.Optional[ObserversFacts], said: str
) -> None:
    world = between()
    world.observers = observers
    measured = world.run()
    number = len(world.api.tests)
    once_more = sum(pair.wider is not None and bool(pair.wider.commands) for pair in measured.pairs)
    assert (
        number == sum(not pair.why for pair in measured.counted) + len(measured.pairs) + once_more and not world.asked
    )
    found = next(one for one in world.findings(measured, "suspect") if "from leaf-1 to" in one.subject)
    assert said in found.why and found.remedy.startswith(
        "Read the counters by hand before and after a test: run perfquery -l LID PORTS"
    )


def test_switches_that_no_node_can_ask_are_told_with_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    world = between()
    monkeypatch.setattr(counted_pairs, "find_vantage_port", lambda *_given: None)
    measured = world.run()
    assert [(pair.client, pair.server, pair.why) for pair in measured.counted] == [
        ("node-7", "node-20", NO_COUNTERS)
    ] and not world.asked
    (fabric,) = world.intent.fabrics
    test = world.ways.test(0, "node-7", "node-20")
    assert test is not None
    # those of Ethernet have steps of their own, by the names that LLDP tells
    for profile, step in (
        ("sriov_infiniband", "Read the counters by hand before and after a test: run perfquery -l LID PORTS"),
        ("sriov_ethernet", ""),
    ):
        told = Counted(
            dataclasses.replace(fabric, profile=typing.cast(typing.Any, profile)), world.ways, measured.counted, {}
        ).describe_test(test)
        assert NO_COUNTERS in told.text and told.remedy.startswith(step) and bool(told.remedy) == bool(step)


def test_where_the_figures_name_the_link_two_good_tests_show_how_the_switches_route_and_no_more() -> None:
    world = Counting({("leaf-0", "spine-3"): 0.5})
    measured = world.run()
    assert [one.subject for one in world.findings(measured, "suspect")] == ["compute leaf-0 port 10 to spine-3 port 1"]
    assert (
        len(measured.counted) == PROBES
        and all(pair.average_gbps == LINE for pair in measured.counted)
        and len(world.asked) == 2 * PROBES
    )
    (found,) = world.findings(measured, "routing")
    assert (found.status, found.measured, found.expected) == (
        "pass",
        "2 tests used one uplink each",
        "routing: static, as in the intent",
    )


def test_without_observers_nothing_is_measured_to_see_how_the_switches_route() -> None:
    world = Counting({})
    world.observers = None
    measured = world.run()
    assert not measured.counted and not world.findings(measured, "routing")


# what carried the data


def test_the_uplink_that_took_all_is_told_and_how_to_have_the_link_named() -> None:
    found = between().suspect()
    assert "The data left leaf-1 through port" in found.why and "(100%)" in found.why and "came to leaf-" in found.why
    assert "set routing: static in the intent, so that stage bandwidth can name the link" in found.why


def test_uplinks_that_share_the_data_are_told_and_nobody_is_asked_to_call_that_static() -> None:
    world = between()
    world.takes = {0: 0.5, 4: 0.3, 5: 0.2}
    found = world.suspect()
    assert (
        "left leaf-1 through port 7 (50%), port 11 (30%), port 12 (20%)" in found.why
        and "routing: static" not in found.why
    )
    (seen,) = world.findings(world.run(), "routing")
    assert (
        seen.status == "pass"
        and "tests used several uplinks" in seen.measured
        and "the intent does not set routing" in seen.expected
    )


def routing(world: Counting, pairs: typing.Sequence[tuple[str, str]]) -> list[Finding]:
    """What is said of the routing where these pairs were counted."""
    (fabric,) = world.intent.fabrics
    seat = find_vantage_port(fabric, world.ways, world.facts)
    assert seat is not None
    counters = Counters(typing.cast(Cluster, world.api), seat, OBSERVERS, Clock())
    counted = []
    for client, server in pairs:
        test = world.ways.test(0, client, server)
        assert test is not None

        def send(client: str = client, server: str = server) -> PairResult:
            world.api.made, world.api.pods = ["one"], {"one": {"node": server}}
            world._send(client, ("ib_write_bw", "-d", "mlx5_10", "10.0.0.1"))
            return PairResult("compute", client, server, average_gbps=195.0)

        counted.append(counters.measure(PairResult("compute", client, server), list_ports(world.ways, test), send))
    counters.close()
    return Counted(fabric, world.ways, counted, {}).check_routing()


FAR = (("node-1", "node-10"), ("node-2", "node-15"))


def test_data_over_several_uplinks_is_not_the_static_routing_of_the_intent() -> None:
    world = Counting({}, routing="static")
    assert [one.status for one in routing(world, FAR)] == ["pass"]
    world.takes = {0: 0.5, 1: 0.45}
    (found,) = routing(world, FAR)
    assert (found.check, found.status, found.subject) == ("bandwidth.routing", "fail", "compute")
    assert (
        "The intent sets routing: static" in found.why
        and "node-1 -> node-10 by leaf-0 port 7 (50%), leaf-0 port 8 (45%)" in found.why
    )
    world.takes = dict.fromkeys(range(SPINES), 1 / SPINES)
    assert routing(world, FAR)[0].status == "fail"
    # what somebody else sends beside a test that took one uplink
    world.takes = {0: 1.0, 1: 0.6}
    assert all("different uplink" in one.measured for one in routing(world, FAR))


def test_data_over_another_uplink_than_the_tables_have_means_that_they_are_old() -> None:
    world = Counting({}, routing="static")
    world.takes = {4: 1.0}
    (found,) = routing(world, FAR)
    assert (
        found.measured == "different uplink in 2 of 2 tests"
        and "used other uplinks than those in the forwarding tables" in found.why
    )


def test_data_over_one_uplink_alone_is_not_the_adaptive_routing_of_the_intent() -> None:
    world = Counting({}, routing="adaptive")
    (found,) = routing(world, FAR)
    assert (found.status, found.measured) == (
        "warn",
        "one uplink in 2 tests",
    ) and "The intent sets routing: adaptive" in found.why
    # one test may have had one way by chance
    assert routing(world, FAR[:1]) == []
    world.takes = {0: 0.5, 1: 0.5}
    assert [(one.status, one.measured) for one in routing(world, FAR)] == [
        ("pass", "2 of 2 tests used several uplinks")
    ]
    # where less arrived than was sent, nothing is proven
    world.takes = {0: 0.3, 1: 0.1}
    assert routing(world, FAR) == []


def test_of_pairs_of_one_leaf_and_of_little_data_nothing_is_told() -> None:
    world = Counting({}, routing="adaptive")
    assert routing(world, (("node-1", "node-2"), ("node-3", "node-4"))) == []
    world.mute = {101}
    # what the switch does not tell, the other ends of its links do
    assert len(routing(world, FAR)) == 1
    world.mute = {101, *range(201, 201 + SPINES)}
    assert routing(world, FAR) == []


def test_ports_with_several_lids_are_told_and_the_tables_stay_trusted() -> None:
    world = Counting({("leaf-0", "spine-3"): 0.5})
    (seen,) = world.facts.topologies[NAMES[0]].value or ()
    assert seen.topology is not None
    world.seen(topology=dataclasses.replace(seen.topology, lmc=2))
    measured = world.run()
    found = world.findings(measured, "routing")[-1]
    assert (found.status, found.subject) == ("warn", "compute LMC") and found.measured.startswith(
        "LMC 2: 4 LIDs per port"
    )
    assert [one.subject for one in world.findings(measured, "suspect")] == ["compute leaf-0 port 10 to spine-3 port 1"]
    for lmc in (0, None):
        world.seen(topology=dataclasses.replace(seen.topology, lmc=lmc))
        assert [one.status for one in world.findings(measured, "routing")] == ["pass"]
