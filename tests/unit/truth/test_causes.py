# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of docs/faults.md, as facts of a fleet of 64 nodes: each accuses the element that is broken, and nobody
else."""

from __future__ import annotations

import dataclasses
import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES, Source
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import (
    ErrorReport,
    PortErrors,
    SeenErrors,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    Link,
    LostManager,
    ObservedTopologies,
    SeenCapabilities,
    SeenSubnet,
    SeenTopology,
    SlowPort,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import Denied
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult, Wider
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import Ping
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, Finding, judge

from .breaks import kind_of
from .fleet import LABEL, MIXED, healthy, identity
from .judge import findings

FLEET = healthy(MIXED)
SICK, RAIL = 16, 3
NODE, HCA = MIXED.names[SICK], f"mlx5_{RAIL}"
SUBJECT = f"{NODE} {HCA}"
PORT_GUID = identity(2, SICK, RAIL)
#: the nodes of one leaf of a rail
LEAF, ON_LEAF = "leaf-3-2", MIXED.names[16:32]
#: what is about a pair, and so about a healthy end of it as well; who of the two it is, is told by the suspects
PAIRS = re.compile(r"reachability\.(pair|port)|bandwidth\.(rping|measured|floor|fleet)")
NAMES = re.compile(r"\b(?:node-\d+|(?:leaf|spine)-\d+(?:-\d+)?)\b")

Facts = dict[Source, typing.Any]


class Fault(typing.NamedTuple):
    """One fault.

    :ivar check: of the finding that names it, with its subject and status
    :ivar guilty: nodes and switches that may be accused
    :ivar says: what the finding must say of its cause
    """

    name: str
    facts: Facts
    check: str
    subject: str
    status: str = "fail"
    guilty: tuple[str, ...] = (NODE,)
    says: str = ""


def source(kind: str) -> Source:
    return next(item for sources in SOURCES.values() for item in sources.values() if kind_of(item) == kind)


def with_fact(
    kind: str, change: typing.Callable[[typing.Any], typing.Any], base: typing.Optional[Facts] = None
) -> Facts:
    """All facts, with one kind changed."""
    facts = dict(FLEET.facts if base is None else base)
    facts[source(kind)] = change(facts[source(kind)])
    return facts


def on_node(name: str, change: typing.Callable[[typing.Any], typing.Any]) -> typing.Callable[[typing.Any], typing.Any]:
    """A change of what one node answered."""
    return lambda nodes: {**nodes, name: dataclasses.replace(nodes[name], value=change(nodes[name].value))}


def hca(
    change: typing.Callable[[Hca], typing.Optional[Hca]], node: str = NODE, device: str = HCA
) -> typing.Callable[[typing.Any], typing.Any]:
    """A change of one HCA; None takes it away."""

    def changed(value: typing.Any) -> typing.Any:
        hcas = (change(item) if item.name == device else item for item in value.hcas)
        return dataclasses.replace(value, hcas=tuple(item for item in hcas if item is not None))

    return on_node(node, changed)


def port(**changes: typing.Any) -> typing.Callable[[typing.Any], typing.Any]:
    def changed(item: Hca) -> Hca:
        first: Port = dataclasses.replace(item.ports[0], **changes)
        return dataclasses.replace(item, ports=(first,))

    return hca(changed)


def asked(node: str, **seen: SeenSubnet) -> typing.Callable[[typing.Any], typing.Any]:
    """What ports of a node see of their manager."""
    return on_node(node, lambda value: tuple(seen.get(item.rdma_device, item) for item in value))


def shown(change: typing.Callable[[SeenTopology], SeenTopology]) -> typing.Callable[[typing.Any], typing.Any]:
    """A change of what the fabric shows."""
    return on_node(MIXED.names[0], lambda value: tuple(map(change, value)))


def relinked(change: typing.Callable[[Link], typing.Optional[Link]]) -> typing.Callable[[typing.Any], typing.Any]:
    """A change of links; None cuts one."""

    def changed(seen: SeenTopology) -> SeenTopology:
        assert seen.topology is not None
        links = tuple(link for link in map(change, seen.topology.links) if link is not None)
        return dataclasses.replace(seen, topology=Topology(seen.topology.nodes, links))

    return shown(changed)


def counting(counter: str, later: int) -> typing.Callable[[typing.Any], typing.Any]:
    """Errors of the sick port, none of them at first."""

    def changed(seen: SeenTopology) -> SeenTopology:
        assert seen.errors is not None and seen.errors.first is not None and seen.errors.later is not None
        report = ErrorReport((PortErrors(PORT_GUID, 1, {counter: later}),), seen.errors.later.checked)
        return dataclasses.replace(seen, errors=SeenErrors(seen.errors.first, report, 10.0))

    return shown(changed)


def deaf(lost: LostManager) -> Facts:
    """Nobody gets an answer of a subnet manager."""
    facts = dict(FLEET.facts)
    for name in MIXED.names:
        silent = {
            item.rdma_device: SeenSubnet(item.rdma_device, 1, None, "no answer", True, lost)
            for item in FLEET.facts[source("subnets")][name].value
        }
        facts = with_fact("subnets", asked(name, **silent), facts)
    return facts


def pings(change: typing.Callable[[str, Ping], Ping]) -> Facts:
    return with_fact(
        "pings",
        lambda nodes: {
            name: dataclasses.replace(seen, value=tuple(change(name, item) for item in seen.value))
            for name, seen in nodes.items()
        },
    )


LIDS = {
    item.ports[0].lid: f"{name} {item.name}"
    for name, seen in FLEET.facts[source("hcas")].items()
    for item in seen.value.hcas
    if not item.is_virtual
}


def lossy(client: str, ping: Ping) -> Ping:
    """Nothing passes over the sick HCA."""
    return (
        dataclasses.replace(ping, received=0)
        if SUBJECT in (f"{client} {ping.rdma_device}", LIDS[ping.destination_lid])
        else ping
    )


def pairs(change: typing.Callable[[PairResult], PairResult]) -> Facts:
    return with_fact("bandwidth", lambda seen: dataclasses.replace(seen, pairs=tuple(map(change, seen.pairs))))


def slow(on: typing.Callable[[PairResult], bool]) -> Facts:
    return pairs(lambda pair: dataclasses.replace(pair, average_gbps=190.0) if on(pair) else pair)


def wider(gbps: typing.Optional[float], facts: Facts, why: str = "") -> Facts:
    """Each slow pair was measured once more with more queue pairs."""
    found = Wider(16, 4194304, gbps, gbps and gbps + 1, 5000, why)
    return with_fact(
        "bandwidth",
        lambda seen: dataclasses.replace(
            seen,
            pairs=tuple(
                dataclasses.replace(pair, queue_pairs=8, wider=found if pair.average_gbps == 190.0 else None)
                for pair in seen.pairs
            ),
        ),
        facts,
    )


def one_entry(kind: str, is_it: typing.Callable[[typing.Any], bool], **changes: typing.Any) -> Facts:
    """A change of one entry of a fact that is a list."""
    return with_fact(
        kind, lambda items: tuple(dataclasses.replace(item, **changes) if is_it(item) else item for item in items)
    )


def operators(change: typing.Callable[[typing.Any], typing.Any]) -> Facts:
    """A change of the sick node, as the cluster knows it."""
    return with_fact(
        "operators",
        lambda seen: dataclasses.replace(
            seen, nodes=tuple(change(node) if node.name == NODE else node for node in seen.nodes)
        ),
    )


def of_leaf(link: Link) -> bool:
    """An uplink of the sick leaf."""
    leaf = next(
        node.guid
        for node in FLEET.facts[source("topologies")][MIXED.names[0]].value[0].topology.nodes
        if node.description == LEAF
    )
    return link.a.guid == leaf and link.b.kind == "Switch"


def slow_link() -> Facts:
    """One lane of four, as the node, the fabric and iblinkinfo show it."""
    facts = with_fact("hcas", port(rate_gbps=100.0, width=1))
    facts = with_fact(
        "topologies",
        relinked(lambda link: dataclasses.replace(link, width=1) if link.b.port_guid == PORT_GUID else link),
        facts,
    )
    slow_port = SlowPort(PORT_GUID, 1, "4X")
    return with_fact(
        "topologies",
        shown(lambda seen: dataclasses.replace(seen, capabilities=SeenCapabilities((slow_port,), 10**6))),
        facts,
    )


def unlinked() -> Facts:
    facts = with_fact("hcas", port(state="DOWN", physical_state="Polling", lid=None, sm_lid=None))
    facts = with_fact(
        "subnets", asked(NODE, **{HCA: SeenSubnet(HCA, 1, None, "port is DOWN, Polling", linked=False)}), facts
    )
    return with_fact("topologies", relinked(lambda link: None if link.b.port_guid == PORT_GUID else link), facts)


def gone() -> Facts:
    facts = with_fact("hcas", hca(lambda item: None))
    facts = with_fact(
        "subnets", on_node(NODE, lambda value: tuple(item for item in value if item.rdma_device != HCA)), facts
    )

    def without(seen: SeenTopology) -> SeenTopology:
        assert seen.topology is not None
        own = identity(1, SICK, RAIL)
        nodes = tuple(node for node in seen.topology.nodes if node.guid != own)
        return dataclasses.replace(
            seen, topology=Topology(nodes, tuple(link for link in seen.topology.links if link.b.guid != own))
        )

    return with_fact("topologies", shown(without), facts)


def cut_leaf() -> Facts:
    """All uplinks of a leaf are gone: its nodes see each other on this rail, and no manager."""
    whole = FLEET.facts[source("topologies")][MIXED.names[0]].value[0].topology
    hosts = {identity(1, number, RAIL) for number in range(16, 32)}
    leaf = next(node.guid for node in whole.nodes if node.description == LEAF)
    inside = Topology(
        tuple(node for node in whole.nodes if node.guid in hosts or node.guid == leaf),
        tuple(link for link in whole.links if link.b.guid in hosts),
    )
    outside = Topology(
        tuple(node for node in whole.nodes if node.guid not in hosts and node.guid != leaf),
        tuple(link for link in whole.links if link.a.guid != leaf),
    )
    facts = with_fact("topologies", shown(lambda seen: dataclasses.replace(seen, topology=outside)))
    for name in ON_LEAF:
        facts = with_fact(
            "subnets", asked(name, **{HCA: SeenSubnet(HCA, 1, None, "no answer", True, LostManager(1))}), facts
        )
    return with_fact(
        "topologies", lambda nodes: {**nodes, NODE: ObservedTopologies((SeenTopology(HCA, 1, inside),))}, facts
    )


def swapped() -> Facts:
    """The cables of two HCAs of a node end on each other's leaf."""
    other = identity(2, SICK, RAIL + 1)
    ends = {
        link.b.port_guid: link.a for link in FLEET.facts[source("topologies")][MIXED.names[0]].value[0].topology.links
    }
    to = {PORT_GUID: ends[other], other: ends[PORT_GUID]}
    return with_fact(
        "topologies", relinked(lambda link: dataclasses.replace(link, a=to.get(link.b.port_guid or "", link.a)))
    )


def managers(state: str) -> Facts:
    """The second manager is in another state, or gone."""

    def changed(seen: SeenTopology) -> SeenTopology:
        assert seen.managers is not None
        first, second = seen.managers.ports
        assert second.manager is not None
        ports = (
            (first, dataclasses.replace(second, manager=dataclasses.replace(second.manager, state=state)))
            if state
            else (first,)
        )
        return dataclasses.replace(
            seen, managers=dataclasses.replace(seen.managers, ports=ports, others_refreshed=True if state else None)
        )

    return with_fact("topologies", shown(changed))


def is_proof(item: typing.Any) -> bool:
    return bool(item.node == NODE)


def touches(pair: PairResult) -> bool:
    return NODE in (pair.client, pair.server)


def crosses(pair: PairResult) -> bool:
    """From the sick leaf to another one, or back."""
    return pair.rail == RAIL and (pair.client in ON_LEAF) != (pair.server in ON_LEAF)


def faults() -> typing.Iterator[Fault]:
    clock = on_node(NODE, lambda value: dataclasses.replace(value, seconds=value.seconds + 10800))
    yield Fault("clock ahead", with_fact("clock", clock), "discover.clock", NODE, says="3.0 h")
    for name, row, value, check, status in (
        ("governor of one node", "governor", "powersave", "tuning.cpu", "warn"),
        ("ACS on the path", "acs", "redirect", "tuning.pci", "warn"),
        ("THP differs", "thp", "never", "tuning.alike", "warn"),
        ("GPU throttled", "gpu_slowed", "hw_thermal", "tuning.gpu", "fail"),
    ):
        subject = f"{NODE} {row}" if status == "fail" else f"{row} of {NODE}"
        yield Fault(name, with_fact("tuning", on_node(NODE, tuned(row, value))), check, subject, status, says=value)
    yield Fault(
        "managers killed",
        deaf(LostManager(1, "sm-1 mlx5_0", False)),
        "fabric.one_master",
        "compute",
        guilty=(),
        says="has ended",
    )
    yield Fault(
        "manager hangs",
        deaf(LostManager(1, "sm-1 mlx5_0", True)),
        "fabric.one_master",
        "compute",
        guilty=(),
        says="the subnet manager hangs",
    )
    yield Fault("standby took over", managers(""), "fabric.standby", "compute", "warn", ())
    yield Fault("two masters", managers("MASTER"), "fabric.one_master", "compute", guilty=(), says="sm-2 mlx5_0")
    yield Fault("leaf cut off", cut_leaf(), "fabric.island", LEAF, guilty=(LEAF, *ON_LEAF))
    yield Fault("swapped cables", swapped(), "fabric.rails", f"{NODE} compute", says="rail 3 and rail 4 are swapped")
    yield Fault("port unlinked", unlinked(), "discover.port", f"{SUBJECT} port 1", says="the cable is missing")
    yield Fault("port unlinked, seen by the fabric", unlinked(), "fabric.hcas", f"{NODE} compute", says=HCA)
    yield Fault("link with one lane", slow_link(), "fabric.rate", SUBJECT, says="100 Gb/s")
    yield Fault(
        "symbol errors",
        with_fact("topologies", counting("SymbolErrorCounter", 500)),
        "fabric.errors_growing",
        SUBJECT,
        says=f"{LEAF} port 1",
    )
    yield Fault(
        "discards",
        with_fact("topologies", counting("PortXmitDiscards", 900)),
        "fabric.errors_growing",
        SUBJECT,
        says="(congestion)",
    )
    yield Fault(
        "another partition",
        with_fact("topologies", counting("PortRcvConstraintErrors", 90)),
        "fabric.errors_growing",
        SUBJECT,
        says="(configuration error)",
    )
    yield Fault("HCA missing", gone(), "discover.hcas", f"{NODE} compute")
    yield Fault("HCA missing, beside others", gone(), "discover.fleet", NODE, "warn", says="0000:13:00.0")
    yield Fault(
        "uplink cut",
        with_fact("topologies", relinked(lambda link: None if of_leaf(link) and link.a.port == 40 else link)),
        "fabric.uplinks",
        LEAF,
        guilty=(LEAF,),
    )
    yield Fault(
        "twin GUID",
        with_fact("hcas", port(guid=identity(2, 40, RAIL))),
        "discover.guids",
        f"port GUID {identity(2, 40, RAIL)}",
        guilty=(NODE, MIXED.names[40]),
    )
    yield Fault(
        "no SR-IOV",
        with_fact("hcas", hca(lambda item: dataclasses.replace(item, sriov=None))),
        "discover.sriov",
        SUBJECT,
    )
    yield Fault("no way for pings", pings(lossy), "reachability.suspect", f"compute HCA {SUBJECT}")
    yield Fault(
        "30 % of the pings lost",
        pings(lambda client, ping: half(lossy(client, ping))),
        "reachability.suspect",
        f"compute HCA {SUBJECT}",
    )
    yield Fault(
        "label absent",
        operators(lambda node: dataclasses.replace(node, labels={})),
        "operators.label",
        NODE,
        says=LABEL[:20],
    )
    yield Fault(
        "node not ready", operators(lambda node: dataclasses.replace(node, ready=False)), "operators.node", NODE
    )
    denied = (Denied("network", "patch sriovnetworks in sriov-network-operator"),)
    yield Fault(
        "no rights",
        with_fact("access.rights", lambda seen: dataclasses.replace(seen, denied=denied)),
        "operators.rights",
        "stage network",
        guilty=(),
    )
    failed = with_fact("sync", lambda seen: dataclasses.replace(seen, nodes=tuple(lost(item) for item in seen.nodes)))
    yield Fault("node lost in the wait", failed, "network.allocatable", f"compute {NODE}", says="NotReady")
    yield Fault(
        "memlock too low",
        one_entry("memlock.proofs", is_proof, soft=8 << 20, registered=0),
        "host.memlock",
        f"compute {NODE}",
    )
    other = on_node(NODE, lambda value: "65536")
    yield Fault("another limit", with_fact("containerd", other), "host.containerd", NODE, says="another drop-in")
    zero = hca(lambda item: dataclasses.replace(item, node_guid="0x0000000000000000"), device=f"mlx5_{8 + RAIL}")
    yield Fault(
        "VF without GUID",
        with_fact("hcas_after_network", zero),
        "virtual_functions.guids",
        f"compute {SUBJECT} 0000:13:00.0",
    )
    yield Fault("slow node", slow(touches), "bandwidth.suspect", f"compute *{NODE}*")
    yield Fault(
        "slow HCA", slow(lambda pair: touches(pair) and pair.rail == RAIL), "bandwidth.suspect", f"compute {SUBJECT}"
    )
    on_rail = slow(lambda pair: touches(pair) and pair.rail == RAIL)
    yield Fault("slow HCA, measured once more", wider(195.0, on_rail), "bandwidth.suspect", f"compute {SUBJECT}")
    yield Fault(
        "slow HCA, twice without a word of the second",
        wider(None, on_rail, "memlock: no"),
        "bandwidth.suspect",
        f"compute {SUBJECT}",
    )
    yield Fault("slow HCA, and too fast to be true", wider(900.0, on_rail), "bandwidth.suspect", f"compute {SUBJECT}")
    yield Fault(
        "slow leaf, measured once more",
        wider(195.0, slow(crosses)),
        "bandwidth.suspect",
        f"compute uplinks {LEAF}",
        guilty=(LEAF,),
    )
    yield Fault("slow leaf", slow(crosses), "bandwidth.suspect", f"compute uplinks {LEAF}", guilty=(LEAF,))


def tuned(row: str, value: str) -> typing.Callable[[typing.Any], typing.Any]:
    """A node whose row has another value, wherever on it."""

    def change(seen: typing.Any) -> typing.Any:
        return dataclasses.replace(
            seen,
            rows={**seen.rows, row: tuple(dataclasses.replace(reading, value=value) for reading in seen.rows[row])},
        )

    return change


def half(ping: Ping) -> Ping:
    return dataclasses.replace(ping, received=ping.transmitted - 300) if not ping.received else ping


def lost(item: typing.Any) -> typing.Any:
    return (
        dataclasses.replace(item, phase="failed", detail="the node is NotReady", allocatable=None)
        if item.node == NODE
        else item
    )


def test_each_fault_accuses_its_element_and_nobody_else() -> None:
    wrong: list[str] = []
    for fault in faults():
        stage = fault.check.partition(".")[0]
        gate = judge(findings(FLEET, stage, fault.facts), FLEET.intent.waivers)
        bad = [item.finding for item in gate.judged if item.finding.status != PASS and item.waiver is None]
        pattern = re.compile(re.escape(fault.subject).replace(r"\*", ".*"))
        named = [
            item
            for item in bad
            if item.check == fault.check and pattern.fullmatch(item.subject) and item.status == fault.status
        ]
        if not any(fault.says in f"{item.measured} {item.why}" for item in named):
            wrong.append(f"{fault.name}: no finding names it: {told(bad)}")
        wrong += [
            f"{fault.name}: {item.check} {item.subject} accuses others: {item.why}"
            for item in bad
            if accused(item) - set(fault.guilty)
        ]
    assert not wrong, "\n".join(wrong)


def test_a_second_figure_that_others_do_not_need_closes_the_gate_and_accuses_nobody() -> None:
    """All other pairs are fast with as few queue pairs, so that theirs explain nothing."""
    facts = wider(391.0, slow(lambda pair: touches(pair) and pair.rail == RAIL))
    bad = [item for item in findings(FLEET, "bandwidth", facts) if item.status != PASS]
    assert {(item.check, item.status) for item in bad} == {
        ("bandwidth.floor", "unknown"),
        ("bandwidth.fleet", "unknown"),
    }, told(bad)
    few, many = "190.00 Gb/s with 8 queue pairs", "391.00 Gb/s with 16 queue pairs and messages of 4194304 bytes"
    assert all(item.measured.startswith(few) and item.measured.endswith(many) for item in bad)
    assert all(
        NODE in item.subject and "Other pairs are fast enough with as few queue pairs" in item.why for item in bad
    )


def test_where_no_pair_is_fast_with_few_queue_pairs_more_of_them_explain_it() -> None:
    bad = [item for item in findings(FLEET, "bandwidth", wider(391.0, slow(lambda pair: True))) if item.status != PASS]
    assert {(item.check, item.status) for item in bad} == {("bandwidth.floor", "warn")}, told(bad)
    assert all(
        "the queue pairs were too few" in item.why and "Set pods.queue_pairs of the fabric to 16" in item.remedy
        for item in bad
    )


def accused(finding: Finding) -> set[str]:
    return set() if PAIRS.match(finding.check) else set(NAMES.findall(finding.subject))


def told(bad: typing.Iterable[Finding]) -> str:
    return (
        "; ".join(
            f"{item.check} {item.subject} [{item.status}] {item.measured} | {item.why}"[:300] for item in list(bad)[:6]
        )
        or "all passes"
    )
