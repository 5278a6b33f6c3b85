# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage reachability: does every port of an InfiniBand fabric reach its partners, as a client and as a server. Check ids: ``reachability.*``.

Partners are the ports of the same rail on the other nodes. Only counted packets are evidence: ibping's exit code and times are not. Any loss
fails. What failing pairs have in common is named from who passed and who failed, and from where the HCAs are.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.fabric import ObservedSubnets, ObservedTopologies, Place, Topology
from .._model.findings import FAIL, UNKNOWN, Finding, ok
from .._model.hca import ObservedHcas
from .._model.intent import Fabric, Intent
from .._model.profiles import is_infiniband
from .._model.reachability import ObservedPings, ObservedServers, Ping, PingPlan
from .fleet.hcas_of_fabric import Membership, resolve
from .fleet.partitions import Apart, apart
from .fleet.places import by_leaf, places, topology_of
from .fleet.suspects import MOST_SUSPECTS, Element, Suspect, links_of, named, suspects, trial

#: above this many, passing pairs are told by their ports only, and of the failing ones some of each suspect
_MOST_PAIRS = 1000
#: of which a finding says with which probability it would have been seen
_SMALL_LOSS = 0.01


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: answer of node_info of each node
    :ivar subnets: answer of subnet_manager_info of each node
    :ivar topologies: answer of fabric_info of each node; most nodes were asked for nothing
    :ivar plan: who was to serve and to ping, by node
    :ivar servers: answer of ibping, mode serve, of each node
    :ivar pings: answer of ibping, mode ping, of each node
    :ivar stopped: answer of ibping, mode stop, of each node
    """

    nodes: typing.Dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: typing.Dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: typing.Dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    plan: typing.Dict[str, PingPlan] = dataclasses.field(default_factory=dict)
    servers: typing.Dict[str, ObservedServers] = dataclasses.field(default_factory=dict)
    pings: typing.Dict[str, ObservedPings] = dataclasses.field(default_factory=dict)
    stopped: typing.Dict[str, ObservedServers] = dataclasses.field(default_factory=dict)


class _Port(typing.NamedTuple):
    """A port that takes part: where it is and what it is called."""

    node: str
    device: str
    number: int
    rail: int
    lid: typing.Optional[int]
    place: Place
    pkeys: typing.Tuple[str, ...]

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
        return self.ping is not None and self.ping.lost == 0 < self.ping.received

    @property
    def apart(self) -> typing.Optional[Apart]:
        """The partitions that keep a pair apart from which nothing came back. What came back proves that none does."""
        return apart(self.client.pkeys, self.server.pkeys) if self.ping is not None and self.ping.received == 0 else None


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
        membership = by_leaf(resolve(fabric, nodes, subnets), facts.topologies)
        if not membership.resolved:
            why = f"Which ports belong to the fabric is not known: {membership.why}."
            findings.append(
                Finding("reachability.scope", fabric.name, UNKNOWN, "not measured", "every port as client and as server", why, f"{membership.remedy}.")
            )
            continue
        findings += _check_fabric(fabric, membership, facts)
    return tuple(findings)


def chance_to_see(loss: float, packets: int) -> float:
    """Probability that at least one of the packets shows a loss.

    :param loss: share of the round trips that get lost, 0 to 1
    """
    return 1 - (1 - loss) ** packets


def _check_nodes(facts: Facts) -> typing.List[Finding]:
    if not facts.nodes:
        why = "No node was asked, so nothing is known."
        return [Finding("reachability.node", "inventory", UNKNOWN, "no node", "at least 2 nodes", why, "Put the nodes into the inventory's group rdma_nodes.")]
    findings = []
    for name, hcas in facts.nodes.items():
        answers: typing.Dict[str, typing.Any] = {
            "node_info": hcas,
            "subnet_manager_info": facts.subnets.get(name, ObservedSubnets(error="was not asked")),
            "ibping servers": facts.servers.get(name, ObservedServers(error="were not started")),
            "ibping clients": facts.pings.get(name, ObservedPings(error="were not started")),
            "end of the ibping servers": facts.stopped.get(name, ObservedServers(error="was not asked for")),
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


def _check_fabric(fabric: Fabric, membership: Membership, facts: Facts) -> typing.List[Finding]:
    ports = _ports(membership, facts)
    if not ports:
        why = f"The fabric has no port on any of the {len(membership.members)} nodes that were read."
        return [Finding("reachability.scope", fabric.name, UNKNOWN, "no port", "every port as client and as server", why, "See the findings of stage fabric.")]
    strays: typing.Dict[_Port, typing.List[int]] = {}
    pairs = _pairs(ports, facts, strays)
    as_client: typing.Dict[_Port, typing.List[_Pair]] = {port: [] for port in ports}
    as_server: typing.Dict[_Port, typing.List[_Pair]] = {port: [] for port in ports}
    for pair in pairs:
        as_client[pair.client].append(pair)
        as_server[pair.server].append(pair)
    measured = [pair for pair in pairs if pair.ping is not None]
    # partitions are no fault of an element: no cable is to be accused for them
    trials = [pair for pair in measured if not pair.apart]
    failed = any(not pair.passed for pair in trials)
    found = suspects([trial(fabric.name, pair.client.place, pair.server.place, pair.passed) for pair in trials]) if failed else ()
    return [
        *_judge_pairs(fabric, pairs, found, facts),
        *(_judge_port(fabric, port, as_client[port], as_server[port], strays.get(port, ())) for port in ports),
        *_judge_suspects(fabric, pairs, found, membership, facts),
        _judge_scope(fabric, ports, as_client),
    ]


def _ports(membership: Membership, facts: Facts) -> typing.List[_Port]:
    where = places(membership, facts.topologies)
    return [
        _Port(name, member.hca.rdma_device or "", member.port.number, member.rail, member.port.lid, where[name, member.hca.name], member.port.pkeys)
        for name, members in membership.members.items()
        for member in members
        if member.port is not None
    ]


def _judge_scope(fabric: Fabric, ports: typing.Sequence[_Port], as_client: typing.Mapping[_Port, typing.Sequence[_Pair]]) -> Finding:
    """How much was looked at. Whether it is good is said elsewhere."""
    partners = max(len(asked) for asked in as_client.values())
    most = len({port.node for port in ports}) - 1
    packets = [pair.ping.transmitted for asked in as_client.values() for pair in asked if pair.ping and pair.passed]
    measured = f"each port with up to {partners} of {most} partners on its rail"
    if packets:
        measured += f", {min(packets)} packets to each: a loss of {_SMALL_LOSS:.0%} is seen with {chance_to_see(_SMALL_LOSS, min(packets)):.1%}"
    return ok("reachability.scope", fabric.name, measured, "every port as client and as server")


def _pairs(ports: typing.Sequence[_Port], facts: Facts, strays: typing.Dict[_Port, typing.List[int]]) -> typing.List[_Pair]:
    """What was planned between these ports, each with its measurement.

    :param strays: gets the LIDs that a client was to ping, and that no port of its rail has
    """
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
                    # the plan was made when another port had this LID, or the port was there
                    strays.setdefault(client, []).append(lid)
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


def _judge_pairs(fabric: Fabric, pairs: typing.Sequence[_Pair], found: typing.Sequence[Suspect], facts: Facts) -> typing.List[Finding]:
    """Each pair, as long as a reader can read them: with a thousand nodes one dead leaf makes as many failing pairs as a book has lines."""
    good = [pair for pair in pairs if pair.passed]
    bad = [pair for pair in pairs if not pair.passed]
    back = {(pair.server, pair.client) for pair in good}
    shown = bad
    if len(shown) > _MOST_PAIRS:
        unmeasured = [pair for pair in bad if pair.ping is None]
        ends = {(f"{pair.client.node} {pair.client.device}", f"{pair.server.node} {pair.server.device}"): pair for pair in bad}
        groups = [unmeasured, *([ends[one.client, one.server] for one in suspect.explained] for suspect in found)]
        shown = [pair for group in groups for pair in group[: _MOST_PAIRS // len(groups)]]
    findings = [_judge_pair(fabric, pair, (pair.client, pair.server) in back, facts) for pair in shown]
    if len(bad) > len(shown):
        why = f"They are too many to list; those that are listed are {_MOST_PAIRS} at most. Each is counted at its two ports."
        remedy = "See the findings reachability.suspect first: they say what the failing pairs have in common."
        findings.append(Finding("reachability.pair", f"{fabric.name} further pairs", FAIL, f"{len(bad) - len(shown)} did not pass", "0 % loss", why, remedy))
    if len(good) <= _MOST_PAIRS:
        findings += [_judge_pair(fabric, pair, False, facts) for pair in good]
    return findings


def _judge_pair(fabric: Fabric, pair: _Pair, back: bool, facts: Facts) -> Finding:
    """One direction. back: the other one passes."""
    subject = f"{fabric.name} rail {pair.client.rail} {pair.client.node} {pair.client.device} -> {pair.server.node} {pair.server.device}"
    expected = "0 % loss"
    if pair.ping is None:
        why, remedy = f"ibping measured nothing: {pair.why}.", f"Run ibping by hand from {pair.client.node}, as root."
        return Finding("reachability.pair", subject, UNKNOWN, "not measured", expected, why, remedy)
    ping = pair.ping
    measured = f"{ping.lost} of {ping.sent} messages lost, {100 * ping.lost / ping.sent if ping.sent else 100:.3g} %"
    if pair.passed:
        return ok("reachability.pair", subject, measured, expected)
    if pair.apart and not _why_no_server(pair.server, facts):
        return _judge_apart(subject, measured, pair.apart)
    trace = f"ibtracert {pair.client.lid} {pair.server.lid}"
    server = _why_no_server(pair.server, facts)
    if server:
        why = f"The server on {pair.server} did not serve: {server}."
        remedy = f"Start ibping -S -C {pair.server.device} -P {pair.server.number} on {pair.server.node} by hand and see what it says."
    elif back and ping.received == 0:
        why = "The other direction passes, over the same links: the server of this one does not answer, or answers late."
        remedy = f"Start ibping -S -C {pair.server.device} -P {pair.server.number} on {pair.server.node} by hand, and ping it from another node."
    elif ping.received == 0:
        why = f"Nothing came back from LID {pair.server.lid}: no route, a port or link that is down, or a server that is gone."
        remedy = f"See reachability.suspect; trace the route with {trace}."
    else:
        why = "Messages are lost on the way: a bad cable or transceiver, or a congested or failing link."
        remedy = f"See reachability.suspect, and the error counters on the path: {trace}, then ibqueryerrors."
    return Finding("reachability.pair", subject, FAIL, measured, expected, why, remedy)


#: for opensm; UFM and the managers of switches have the same partition in their own form
_FULL_MEMBERS = "Make one of them a full member: 'Default=0x7fff, ipoib : ALL=full;' in /etc/opensm/partitions.conf, then 'systemctl restart opensm'."


#: ibping proves nothing of a partition that it does not use
_ANOTHER_PARTITION = "Make the default partition reach all HCAs, or see what stage bandwidth measures, and waive this finding with that reason."


def _judge_apart(subject: str, measured: str, found: Apart) -> Finding:
    """A pair that no cable keeps apart."""
    shared = f" They share {', '.join(found.shared)}, which ibping does not use, so this way is not proven." if found.shared else ""
    return Finding("reachability.pair", subject, _status([found]), measured, "0 % loss", found.why + shared, _remedy([found]))


def _status(parted: typing.Sequence[Apart]) -> typing.Literal["fail", "unknown"]:
    """Where all of them share another partition, nothing is known to be wrong."""
    return UNKNOWN if all(found.shared for found in parted) else FAIL


def _remedy(parted: typing.Sequence[Apart]) -> str:
    return _ANOTHER_PARTITION if all(found.shared for found in parted) else _FULL_MEMBERS


def _judge_suspects(
    fabric: Fabric, pairs: typing.Sequence[_Pair], found: typing.Sequence[Suspect], membership: Membership, facts: Facts
) -> typing.List[Finding]:
    """What the failing pairs have in common."""
    measured = sum(pair.ping is not None for pair in pairs)
    expected = "no pair fails"
    if not measured:
        why, remedy = "No pair was measured, so nothing can be told.", "See the other findings of this stage."
        return [Finding("reachability.suspect", fabric.name, UNKNOWN, "no pair", expected, why, remedy)]
    parted = [found for found in (pair.apart for pair in pairs) if found]
    if parted and not found:
        why = "Partition keys keep these pairs apart, no cable and no HCA: see the cause beside each of them."
        subject = f"{fabric.name} partition keys"
        return [Finding("reachability.suspect", subject, _status(parted), f"{len(parted)} of {measured} pairs fail", expected, why, _remedy(parted))]
    if not found:
        return [ok("reachability.suspect", fabric.name, f"0 of {measured} pairs fail", expected)]
    topology, blind = topology_of(membership, facts.topologies)
    where = {f"{place.node} {place.hca}": place for place in (end.place for pair in pairs for end in (pair.client, pair.server))}
    return [_judge_suspect(fabric, suspect, where, topology, blind) if suspect.elements else _judge_rest(fabric, suspect, len(found) - 1) for suspect in found]


def _judge_rest(fabric: Fabric, rest: Suspect, named_before: int) -> Finding:
    """Failing pairs without a suspect of their own."""
    if named_before == MOST_SUSPECTS:
        why, remedy = f"The {MOST_SUSPECTS} strongest suspects do not explain these: {_some(rest)}.", "Correct those first, then run the stage again."
    else:
        why = f"Nothing that these pairs share stands out, since too many that share it pass: {_some(rest)}."
        remedy = "See the cause beside each pair; with more packets (reachability_count) or more partners (reachability_rounds) a common one may show itself."
    return Finding("reachability.suspect", fabric.name, FAIL, f"{rest.failed} pairs fail", "no pair fails", why, remedy)


def _some(suspect: Suspect) -> str:
    """The first of the pairs that a suspect explains, and how many more there are."""
    more = f" and {len(suspect.explained) - 3} more" if len(suspect.explained) > 3 else ""
    return ", ".join(f"{one.client} -> {one.server}" for one in suspect.explained[:3]) + more


def _judge_suspect(fabric: Fabric, suspect: Suspect, where: typing.Mapping[str, Place], topology: typing.Optional[Topology], blind: str) -> Finding:
    unseen = f" No switch can be suspected: {blind}" if blind else ""
    why = f"All of these failing pairs depend on it: {_some(suspect)}."
    if len(suspect.elements) > 1:
        why = f"These failing pairs depend on all of them, and no passing pair on one of them alone, so which one it is can't be told: {_some(suspect)}."
    remedy = " ".join(_next_step(element, where, topology) for element in suspect.elements)
    subject = f"{fabric.name} {named(suspect.elements)}"
    return Finding("reachability.suspect", subject, FAIL, f"{suspect.failed} of {suspect.trials} pairs fail", "no pair fails", why + unseen, remedy)


def _next_step(element: Element, where: typing.Mapping[str, Place], topology: typing.Optional[Topology]) -> str:
    """What to do about a suspect; of an HCA with both ends of its cable."""
    name = element.name
    if element.kind == "hca":
        place = where[name]
        cable = f"{name} to port {place.leaf_port} of {place.leaf}" if place.leaf else f"{name} to its leaf"
        return f"Look at the cable from {cable}: error counters at both ends (ibqueryerrors), then reseat it or swap it, then the HCA."
    if element.kind in ("uplinks", "leaves"):
        return f"See the error counters of these links with ibqueryerrors, and the forwarding with ibtracert: {links_of(element, topology) or name}."
    steps = {
        "node": f"See what the stages discover and fabric say about {name}: it must be up, and ibping -S must run there.",
        "client": f"Ping by hand from {name}; its link is not the cause, since it answers others.",
        "server": f"Start ibping -S by hand on {name} and ping it; its link is not the cause, since it gets answers from others.",
        "leaf": f"Look at the switch {name}: its power, its firmware, and its ports with iblinkinfo.",
        "path": f"Trace the route both ways with ibtracert, since both ends pass with others: {name}.",
        "fabric": "Look for what all share: subnet manager, partition key, ibping itself.",
    }
    return steps[element.kind]


def _why_no_server(port: _Port, facts: Facts) -> str:
    observed = facts.servers.get(port.node, ObservedServers(error="it was not started"))
    if observed.value is None or observed.error is not None:
        return observed.error or "its node gave an empty answer"
    for server in observed.value:
        if (server.rdma_device, server.port) == (port.device, port.number):
            return server.error or ""
    return "it was not started"


def _judge_port(fabric: Fabric, port: _Port, as_client: typing.Sequence[_Pair], as_server: typing.Sequence[_Pair], strays: typing.Sequence[int]) -> Finding:
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
        if strays:
            why = f"It was to ping LIDs that no port of its rail has: {', '.join(map(str, strays[:8]))}. LIDs or ports changed since the pings were planned."
            return Finding("reachability.port", subject, UNKNOWN, measured, expected, why, "Run the stages fabric and reachability again.")
        return ok("reachability.port", subject, measured, expected)
    bad = [pair for pair in (*as_client, *as_server) if pair.ping is not None and not pair.passed]
    parted = [found for found in (pair.apart for pair in bad) if found]
    if bad and len(parted) == len(bad):
        partners = {pair.server if pair.client == port else pair.client for pair in bad}
        why = f"Partition keys keep it from {len(partners)} partners; its own are {', '.join(port.pkeys)}."
        return Finding("reachability.port", subject, _status(parted), measured, expected, why, _remedy(parted))
    if bad:
        why = f"Packets from or to this port are lost.{_asymmetry(passed, as_client, as_server)}"
        return Finding("reachability.port", subject, FAIL, measured, expected, why, "See the findings reachability.pair of this port.")
    return Finding(
        "reachability.port", subject, UNKNOWN, measured, expected, "Some of its pairs were not measured.", "See the findings reachability.pair of this port."
    )


def _asymmetry(passed: typing.Sequence[int], as_client: typing.Sequence[_Pair], as_server: typing.Sequence[_Pair]) -> str:
    if any(pair.ping and pair.ping.received for pair in (*as_client, *as_server) if not pair.passed):
        # where only part is lost, chance decides in which direction it shows
        return ""
    if passed[0] == len(as_client) and passed[1] < len(as_server):
        return " It reaches others and others do not reach it: its server is the suspect, not its link."
    if passed[1] == len(as_server) and passed[0] < len(as_client):
        return " Others reach it and it does not reach others: the servers of its partners are the suspects, not its link."
    if passed[0] == passed[1] == 0:
        return " Nothing works in either direction: the port, its cable or its switch port is the suspect."
    return ""
