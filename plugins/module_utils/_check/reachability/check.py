# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage reachability: on each rail of an InfiniBand fabric, the ports of all nodes reach each other, in
both directions. Check ids: ``reachability.*``.

The partners of a port are the ports of the same rail on the other nodes. Only packet counts are evidence, not the exit
code and the times of ibping. Any loss fails. A common cause of failing pairs is derived from the pairs that pass and
fail, and from the positions of the HCAs in the topology.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet import unreachable_nodes
from ..._analysis.fleet.hca_locations import collect_places, number_by_leaf
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from ..._analysis.fleet.paths.lids import Key, LidClaim, find_false_claims
from ..._analysis.fleet.paths.routes import find_paths, report_coverage
from ..._analysis.fleet.suspects import find_suspects, make_trial
from ..._analysis.schedule.coverage import compute_coverage
from ..._model.base.phrases import count_of, format_clause
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.reachability import ObservedPings, ObservedServers, PingPlan
from ..._model.node.hca import ObservedHcas
from ..._model.run.findings import UNKNOWN, Finding, build_pass
from .common_causes import check_suspects
from .pairs import find_gone_servers, judge_pairs
from .ping_results import Pair, PingPort, find_pairs
from .ports import judge_port

_HCAS, _SUBNET_MANAGERS = "HCAs", "subnet managers of the ports"
#: modules without options that return the data of a node, by this data
_MODULES = {_HCAS: "node_info", _SUBNET_MANAGERS: "subnet_manager_info"}
#: of which a finding says with which probability it would have been seen
_SMALL_LOSS = 0.01
#: packets to a partner, below which a pair without a loss proves nothing
LEAST_PACKETS = 20


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage reachability is judged, besides the intent.

    :ivar nodes: HCAs of each node (node_info)
    :ivar subnets: subnet manager of each port of each node (subnet_manager_info)
    :ivar topologies: topology of the fabric from a few nodes (fabric_info). Most nodes were not asked for it
    :ivar plan: planned servers and pings, by node
    :ivar servers: LIDs on which ibping answers (mode serve), or the error, by node
    :ivar pings: answer of ibping, mode ping, of each node
    :ivar stopped: answer of ibping, mode stop, of each node
    :ivar by_pods: names of the nodes that are read by observers (pods) instead of ssh
    """

    nodes: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    plan: dict[str, PingPlan] = dataclasses.field(default_factory=dict)
    servers: dict[str, ObservedServers] = dataclasses.field(default_factory=dict)
    pings: dict[str, ObservedPings] = dataclasses.field(default_factory=dict)
    stopped: dict[str, ObservedServers] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage reachability, at least one for each fabric. If a fabric is InfiniBand, each node and
    each of its ports has at least one too.
    """
    nodes = {
        name: observed.value
        for name, observed in facts.nodes.items()
        if observed.value is not None and observed.error is None
    }
    subnets = {
        name: observed.value
        for name, observed in facts.subnets.items()
        if observed.value is not None and observed.error is None
    }
    findings: list[Finding] = []
    if any(is_infiniband(fabric) for fabric in intent.fabrics):
        findings += _check_nodes(facts)
    for fabric in intent.fabrics:
        if not is_infiniband(fabric):
            # says what this stage does not cover, and claims nothing else
            findings.append(
                build_pass(
                    "reachability.scope",
                    fabric.name,
                    "Ethernet: ibping does not apply, and stage bandwidth measures the paths",
                    "InfiniBand only",
                )
            )
            continue
        membership = number_by_leaf(resolve_members(fabric, nodes, subnets), facts.topologies)
        if not membership.resolved:
            why = f"It is unknown which ports belong to the fabric: {format_clause(membership.why)}."
            findings.append(
                Finding(
                    "reachability.scope",
                    fabric.name,
                    UNKNOWN,
                    "not measured",
                    "every port tested as client and as server",
                    why,
                    f"{membership.remedy}. Then run stages fabric and reachability again.",
                )
            )
            continue
        claims = find_false_claims(membership, nodes, subnets, facts.topologies)
        findings += _check_fabric(fabric, membership, facts, {key: claim for claim in claims for key in claim.ports})
    return tuple(findings)


def compute_chance_to_see(loss: float, packets: int) -> float:
    """Return the probability, 0 to 1, that a test notices the loss of a link: that at least one of the packets is lost.

    :param loss: fraction of the round trips that are lost, 0 to 1
    :param packets: number of packets sent
    """
    return 1 - (1 - loss) ** packets


def _check_nodes(facts: Facts) -> list[Finding]:
    if not facts.nodes:
        why = (
            "The group rdma_nodes of the inventory is empty, so no node was queried, and it is unknown which"
            " nodes reach each other."
        )
        return [
            Finding(
                "reachability.node",
                "inventory",
                UNKNOWN,
                "0 nodes",
                "at least 2 nodes",
                why,
                "Put the nodes into the group rdma_nodes of the inventory, then run stage reachability again.",
            )
        ]
    findings = []
    for name, hcas in facts.nodes.items():
        given: dict[str, typing.Any] = {
            _HCAS: hcas,
            _SUBNET_MANAGERS: facts.subnets.get(
                name, ObservedSubnets(error="the module subnet_manager_info did not run on the node")
            ),
            "start of ibping servers": facts.servers.get(
                name, ObservedServers(error="the module ibping did not run on the node")
            ),
            "pings of ibping": facts.pings.get(name, ObservedPings(error="the module ibping did not run on the node")),
            "stop of ibping servers": facts.stopped.get(
                name, ObservedServers(error="the module ibping did not run on the node")
            ),
        }
        missing = {
            what: format_clause(answer.error, "the node returned no data")
            for what, answer in given.items()
            if answer.value is None or answer.error is not None
        }
        # one error for all, where one cause made all of them missing
        errors = (
            list(dict.fromkeys(missing.values()))
            if len({*missing.values()}) == 1
            else [f"{what}: {error}" for what, error in missing.items()]
        )
        expected = "HCAs, subnet managers of the ports, and start, pings and stop of ibping read"
        if errors:
            remedy = unreachable_nodes.get_remedy(
                name,
                facts.by_pods,
                "ibping of the package infiniband-diags",
                next((module for what, module in _MODULES.items() if what in missing), ""),
            )
            findings.append(
                Finding(
                    "reachability.node",
                    name,
                    UNKNOWN,
                    f"not read: {', '.join(missing)}",
                    expected,
                    f"Without {'this result' if len(missing) == 1 else 'these results'}, the stage cannot judge the"
                    f" pings of the node. The error is: {format_clause('; '.join(errors))}.",
                    remedy,
                )
            )
        else:
            count = len(facts.pings[name].value or ())
            findings.append(
                build_pass(
                    "reachability.node",
                    name,
                    f"{count_of(len(facts.servers[name].value or ()), 'server')},"
                    f" {count_of(count, 'destination')} pinged",
                    expected,
                )
            )
    return findings


def _check_fabric(
    fabric: Fabric, membership: Membership, facts: Facts, claims: typing.Mapping[Key, LidClaim]
) -> list[Finding]:
    """Judge the pings of an InfiniBand fabric: each planned pair, each port as client and server, and the common causes
    of failures.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param facts: facts of the stage: pings, topologies and subnet managers
    :param claims: LIDs that are not proven, by the port whose node reports them
    """
    ports = _list_ports(membership, facts)
    if not ports:
        nodes = count_of(len(membership.members), "node")
        why = f"No port of the {nodes} that were read sees the subnet manager of the fabric."
        return [
            Finding(
                "reachability.scope",
                fabric.name,
                UNKNOWN,
                "0 ports",
                "every port tested as client and as server",
                why,
                "Follow the remedy of the findings fabric.hcas, then run stages fabric and reachability again.",
            )
        ]
    strays: dict[PingPort, list[int]] = {}
    pairs = find_pairs(
        ports, facts.plan, facts.pings, find_gone_servers(ports, facts.servers, facts.stopped), strays, claims
    )
    as_client: dict[PingPort, list[Pair]] = {port: [] for port in ports}
    as_server: dict[PingPort, list[Pair]] = {port: [] for port in ports}
    for pair in pairs:
        as_client[pair.client].append(pair)
        as_server[pair.server].append(pair)
    measured = [pair for pair in pairs if pair.ping is not None]
    # partitions are no fault of an element: no cable is to be accused for them
    trials = [pair for pair in measured if not pair.apart]
    failed = any(not pair.passed for pair in trials)
    found = (
        find_suspects([make_trial(fabric.name, pair.client.place, pair.server.place, pair.passed) for pair in trials])
        if failed
        else ()
    )
    return [
        *judge_pairs(fabric, pairs, found, facts.servers),
        *(
            judge_port(fabric, port, as_client[port], as_server[port], strays.get(port, ()), claims.get(port.key))
            for port in ports
        ),
        *check_suspects(fabric, pairs, found, membership, facts.topologies),
        _judge_scope(fabric, ports, as_client),
        *_judge_links(fabric, pairs, membership, facts),
    ]


def _list_ports(membership: Membership, facts: Facts) -> list[PingPort]:
    where = collect_places(membership, facts.topologies)
    return [
        PingPort(
            name,
            member.hca.rdma_device or "",
            member.port.number,
            member.rail,
            member.port.lid,
            where[name, member.hca.name],
            member.port.pkeys,
        )
        for name, members in membership.members.items()
        for member in members
        if member.port is not None
    ]


def _judge_scope(
    fabric: Fabric, ports: typing.Sequence[PingPort], as_client: typing.Mapping[PingPort, typing.Sequence[Pair]]
) -> Finding:
    """Report the coverage of the test: how many partners each port pinged, with how many packets.

    The finding passes unless so few packets were sent that they cannot show a loss; its status is then ``unknown``.
    Other findings judge the pairs.

    :param ports: ports that take part
    :param as_client: pairs in which each port was the client
    """
    partners = max(len(asked) for asked in as_client.values())
    most = len({port.node for port in ports}) - 1
    packets = [pair.ping.transmitted for asked in as_client.values() for pair in asked if pair.ping and pair.passed]
    measured = f"each port tested with up to {partners} of {most} partners on its rail"
    if packets and min(packets) < LEAST_PACKETS:
        why = (
            f"The setting reachability_count is too low to show a loss of a few percent: {LEAST_PACKETS} packets"
            f" show a loss of 5 % with a probability of {100 * compute_chance_to_see(0.05, LEAST_PACKETS):.0f} %."
        )
        remedy = (
            f"Set reachability_count to at least {LEAST_PACKETS} (default: 500), then run ansible-playbook"
            " linerate.rdma.site --tags validate,discover,fabric,reachability."
        )
        return Finding(
            "reachability.scope",
            fabric.name,
            UNKNOWN,
            f"{measured}, {count_of(min(packets), 'packet')} to each",
            f"at least {LEAST_PACKETS} packets to each partner",
            why,
            remedy,
        )
    if packets:
        measured += (
            f", {count_of(min(packets), 'packet')} to each: the test detects a loss of {_SMALL_LOSS:.0%} with"
            " a probability of"
            f" {compute_chance_to_see(_SMALL_LOSS, min(packets)):.1%}"
        )
    return build_pass("reachability.scope", fabric.name, measured, "every port tested as client and as server")


def _judge_links(fabric: Fabric, pairs: typing.Sequence[Pair], membership: Membership, facts: Facts) -> list[Finding]:
    """Report which links of the fabric the pings used, in both directions. Return no finding without a topology, since
    stage fabric reports the cause.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    """
    ways, _why = find_paths(fabric, membership, facts.topologies)
    if ways is None:
        return []
    there = [ways.test(pair.client.rail, pair.client.node, pair.server.node) for pair in pairs if pair.ping is not None]
    used = compute_coverage(ways, [test for pair in there if pair is not None for test in (pair, pair[::-1])])
    return [
        report_coverage(
            "reachability.coverage",
            fabric,
            ways,
            used,
            "Follow the remedies of the findings reachability.node and reachability.pair of the nodes at these links."
            " If there are none, set reachability_rounds to a higher number.",
        )
    ]
