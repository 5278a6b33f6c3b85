# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stage reachability: does every port of an InfiniBand fabric reach its partners, as a client and as a server. Check ids: ``reachability.*``.

Partners are the ports of the same rail on the other nodes. Only counted packets are evidence: ibping's exit code and times are not.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.facts import NodeHcas, ObservedHcas, ObservedPings, ObservedServers, ObservedSubnets, Ping, PingPlan
from .._model.findings import FAIL, UNKNOWN, Finding, ok
from .._model.intent import Fabric, Intent
from .membership import is_infiniband, resolve

#: above this many, passing pairs are told by their ports only
_MOST_PAIRS = 1000


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: answer of hca_info of each node
    :ivar subnets: answer of subnet_manager_info of each node
    :ivar plan: who was to serve and to ping, by node
    :ivar servers: answer of ibping, mode serve, of each node
    :ivar pings: answer of ibping, mode ping, of each node
    """

    nodes: typing.Dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: typing.Dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    plan: typing.Dict[str, PingPlan] = dataclasses.field(default_factory=dict)
    servers: typing.Dict[str, ObservedServers] = dataclasses.field(default_factory=dict)
    pings: typing.Dict[str, ObservedPings] = dataclasses.field(default_factory=dict)


class _Port(typing.NamedTuple):
    """A port that takes part: where it is and what it is called."""

    node: str
    device: str
    number: int
    rail: int
    lid: typing.Optional[int]

    def __str__(self) -> str:
        return f"{self.node} {self.device} port {self.number}"


@dataclasses.dataclass(frozen=True)
class _Pair:
    """One direction between two ports. ping: None when it was planned and not measured; then why says why."""

    client: _Port
    server: _Port
    ping: typing.Optional[Ping]
    why: str = ""

    @property
    def passed(self) -> bool:
        return self.ping is not None and self.ping.received == self.ping.transmitted > 0


def check(intent: Intent, facts: Facts) -> typing.Tuple[Finding, ...]:
    """One finding at least for each fabric, each node, and each port of an InfiniBand fabric."""
    nodes = {name: observed.value for name, observed in facts.nodes.items() if observed.value is not None and observed.error is None}
    subnets = {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None and observed.error is None}
    findings: typing.List[Finding] = []
    if any(is_infiniband(fabric) for fabric in intent.fabrics):
        findings += _check_nodes(facts)
    for fabric in intent.fabrics:
        if not is_infiniband(fabric):
            # says what this stage does not cover, and claims nothing else
            findings.append(ok("reachability.scope", fabric.name, "Ethernet: ibping does not apply; stage bandwidth measures its path", "InfiniBand only"))
            continue
        membership = resolve(fabric, nodes, subnets)
        if not membership.resolved:
            why = f"Which ports belong to the fabric is not known: {membership.why}."
            findings.append(
                Finding("reachability.scope", fabric.name, UNKNOWN, "not measured", "every port as client and as server", why, f"{membership.remedy}.")
            )
            continue
        ports = [
            _Port(name, member.hca.rdma_device or "", member.port.number, member.rail, member.port.lid)
            for name, members in membership.members.items()
            for member in members
            if member.port is not None
        ]
        findings += _check_fabric(fabric, ports, facts, nodes)
    return tuple(findings)


def _check_nodes(facts: Facts) -> typing.List[Finding]:
    if not facts.nodes:
        why = "No node was asked, so nothing is known."
        return [Finding("reachability.node", "inventory", UNKNOWN, "no node", "at least 2 nodes", why, "Put the nodes into the inventory's group rdma_nodes.")]
    findings = []
    for name, hcas in facts.nodes.items():
        answers: typing.Dict[str, typing.Any] = {
            "hca_info": hcas,
            "subnet_manager_info": facts.subnets.get(name, ObservedSubnets(error="was not asked")),
            "ibping servers": facts.servers.get(name, ObservedServers(error="were not started")),
            "ibping clients": facts.pings.get(name, ObservedPings(error="were not started")),
        }
        errors = [f"{what}: {answer.error or 'empty answer'}" for what, answer in answers.items() if answer.value is None or answer.error is not None]
        expected = "answers of all observers"
        if errors:
            remedy = f"Make {name} answer (ssh as root), with ibping of the package infiniband-diags, or take it out of the group rdma_nodes."
            findings.append(Finding("reachability.node", name, UNKNOWN, "no answer", expected, f"{'; '.join(errors)}.", remedy))
        else:
            count = len(facts.pings[name].value or ())
            findings.append(ok("reachability.node", name, f"{len(facts.servers[name].value or ())} servers, {count} destinations pinged", expected))
    return findings


def _check_fabric(fabric: Fabric, ports: typing.Sequence[_Port], facts: Facts, nodes: typing.Mapping[str, NodeHcas]) -> typing.List[Finding]:
    pairs = _pairs(ports, facts)
    good = [pair for pair in pairs if pair.passed]
    findings = [_judge_pair(fabric, pair, facts) for pair in pairs if not pair.passed]
    if len(good) <= _MOST_PAIRS:
        findings += [_judge_pair(fabric, pair, facts) for pair in good]
    as_client: typing.Dict[_Port, typing.List[_Pair]] = {port: [] for port in ports}
    as_server: typing.Dict[_Port, typing.List[_Pair]] = {port: [] for port in ports}
    for pair in pairs:
        as_client[pair.client].append(pair)
        as_server[pair.server].append(pair)
    findings += [_judge_port(fabric, port, as_client[port], as_server[port]) for port in ports]
    if not ports:
        why = f"The fabric has no port on any of the {len(nodes)} nodes that were read."
        findings.append(
            Finding("reachability.scope", fabric.name, UNKNOWN, "no port", "every port as client and as server", why, "See the findings of stage fabric.")
        )
    else:
        partners = max(len(asked) for asked in as_client.values())
        most = len({port.node for port in ports}) - 1
        findings.append(
            ok("reachability.scope", fabric.name, f"each port with up to {partners} of {most} partners on its rail", "every port as client and as server")
        )
    return findings


def _pairs(ports: typing.Sequence[_Port], facts: Facts) -> typing.List[_Pair]:
    """What was planned between these ports, each with its measurement."""
    servers = {(port.rail, port.lid): port for port in ports if port.lid is not None}
    measured = {
        (name, ping.rdma_device, ping.port, ping.destination_lid): ping
        for name, observed in facts.pings.items()
        if observed.value is not None and observed.error is None
        for ping in observed.value
    }
    result = []
    for client in ports:
        for task in facts.plan.get(client.node, PingPlan()).clients:
            if (task.device, task.port) != (client.device, client.number):
                continue
            for lid in task.lids:
                server = servers.get((client.rail, lid))
                if server is None:
                    # a plan of older facts: what it measured belongs to no port that is known now
                    continue
                ping = measured.get((client.node, client.device, client.number, lid))
                if ping is None:
                    observed = facts.pings.get(client.node)
                    why = f"the client's node gave no answer: {observed.error if observed and observed.error else 'this destination is missing in it'}"
                    result.append(_Pair(client, server, None, why))
                elif ping.error is not None:
                    result.append(_Pair(client, server, None, ping.error))
                else:
                    result.append(_Pair(client, server, ping))
    return result


def _judge_pair(fabric: Fabric, pair: _Pair, facts: Facts) -> Finding:
    subject = f"{fabric.name} rail {pair.client.rail} {pair.client.node} {pair.client.device} -> {pair.server.node} {pair.server.device}"
    expected = "0 % loss"
    if pair.ping is None:
        return Finding(
            "reachability.pair",
            subject,
            UNKNOWN,
            "not measured",
            expected,
            f"ibping measured nothing: {pair.why}.",
            f"Run ibping by hand from {pair.client.node}, as root.",
        )
    sent, received = pair.ping.transmitted, pair.ping.received
    measured = f"{received} of {sent} received, {100 * (sent - received) / sent if sent else 100:g} % loss"
    if pair.passed:
        return ok("reachability.pair", subject, measured, expected)
    server = _why_no_server(pair.server, facts)
    if server:
        why, remedy = (
            f"The server on {pair.server} did not serve: {server}.",
            f"Start ibping -S -C {pair.server.device} -P {pair.server.number} on {pair.server.node} by hand and see what it says.",
        )
    elif received == 0:
        why = f"Nothing came back from LID {pair.server.lid}: no route, a port or link that is down, or a server that is gone."
        remedy = f"See the other pairs of both ports; trace the route with ibtracert {pair.client.lid} {pair.server.lid}."
    else:
        why = "Packets are lost on the way: a bad cable or transceiver, or a congested or failing link."
        remedy = f"See the error counters on the path: ibtracert {pair.client.lid} {pair.server.lid}, then ibqueryerrors."
    return Finding("reachability.pair", subject, FAIL, measured, expected, why, remedy)


def _why_no_server(port: _Port, facts: Facts) -> str:
    observed = facts.servers.get(port.node, ObservedServers(error="it was not started"))
    if observed.value is None or observed.error is not None:
        return observed.error or "its node gave an empty answer"
    for server in observed.value:
        if (server.rdma_device, server.port) == (port.device, port.number):
            return server.error or ""
    return "it was not started"


def _judge_port(fabric: Fabric, port: _Port, as_client: typing.Sequence[_Pair], as_server: typing.Sequence[_Pair]) -> Finding:
    """A port is proven when it was client and server at least once, and nothing of that failed."""
    subject, expected = f"{fabric.name} rail {port.rail} {port}", "proven as client and as server"
    passed = [sum(pair.passed for pair in group) for group in (as_client, as_server)]
    measured = f"as client {passed[0]} of {len(as_client)}, as server {passed[1]} of {len(as_server)}"
    if port.lid is None:
        why = "The port has no LID: no subnet manager has set it up, so nobody can ping it."
        return Finding("reachability.port", subject, FAIL, "no LID", expected, why, "See the findings of stage fabric.")
    if not as_client or not as_server:
        why = "The port has no partner on its rail that could be asked: it takes two nodes with a port of this rail."
        return Finding(
            "reachability.port",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Put a second node into the group rdma_nodes, or see the findings of stage fabric for the others.",
        )
    if all(pair.passed for pair in (*as_client, *as_server)):
        return ok("reachability.port", subject, measured, expected)
    if any(pair.ping is not None and not pair.passed for pair in (*as_client, *as_server)):
        why = f"Packets from or to this port are lost.{_asymmetry(passed, as_client, as_server)}"
        return Finding("reachability.port", subject, FAIL, measured, expected, why, "See the findings reachability.pair of this port.")
    return Finding(
        "reachability.port", subject, UNKNOWN, measured, expected, "Some of its pairs were not measured.", "See the findings reachability.pair of this port."
    )


def _asymmetry(passed: typing.Sequence[int], as_client: typing.Sequence[_Pair], as_server: typing.Sequence[_Pair]) -> str:
    if passed[0] == len(as_client) and passed[1] < len(as_server):
        return " It reaches others and others do not reach it: its server is the suspect, not its link."
    if passed[1] == len(as_server) and passed[0] < len(as_client):
        return " Others reach it and it does not reach others: the servers of its partners are the suspects, not its link."
    if passed[0] == passed[1] == 0:
        return " Nothing works in either direction: the port, its cable or its switch port is the suspect."
    return ""
