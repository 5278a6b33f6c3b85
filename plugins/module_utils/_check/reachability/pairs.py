# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings on the pings from one port to another."""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.partitions import Apart
from ..._analysis.fleet.suspects import Suspect
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.measurement.reachability import ObservedServers, Ping
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .partitions import find_status, remedy_of
from .ping_results import Pair, PingPort

#: above this many, passing pairs are told by their ports only, and of the failing ones some of each suspect
_MOST_PAIRS = 1000

#: at the server of a pair; the subject of the finding has its node and device
_START_SERVER = (
    "On the node of the server (the port after '->'), run ibping -S -C DEVICE -P PORT as root. If it cannot open the"
    " port, run modprobe ib_umad. If it starts, stop the program that ended the earlier server (journalctl -k shows"
    " it). Then run stage reachability again."
)
#: for a pair without a result; it names no port, so that the report can list all pairs of one cause together
_BY_HAND = (
    "As root, run ibping -S -C DEVICE on the node of the server (the port after '->'), and then ibping -C DEVICE -c 10"
    " -L LID on the node of the client (the port before '->'), with the second LID under 'measured'. If one of them"
    " cannot open the port, run modprobe ib_umad on its node. Then run stage reachability again."
)
_TRACE = "ibtracert with the two LIDs under 'measured'"
#: answer of ibping, mode serve, of each node
_Servers = typing.Mapping[str, ObservedServers]


def find_gone_servers(ports: typing.Iterable[PingPort], servers: _Servers, stopped: _Servers) -> set[PingPort]:
    """Return the ports whose ping server started, but no longer ran when the stage stopped the servers.

    Ports of nodes whose answer to the stop is missing are left out.

    :param ports: ports that take part
    :param servers: LIDs on which ibping answers (mode serve), or the error, by node
    :param stopped: answer of ibping, mode stop, of each node
    """
    left = {
        (name, server.rdma_device, server.port)
        for name, observed in stopped.items()
        if observed.value is not None and observed.error is None
        for server in observed.value
    }
    told = {name for name, observed in stopped.items() if observed.value is not None and observed.error is None}
    return {
        port
        for port in ports
        if port.node in told and not _why_no_server(port, servers) and (port.node, port.device, port.number) not in left
    }


def lose_some_each(pairs: typing.Sequence[Pair]) -> bool:
    """Return whether every measured pair loses some messages, none loses all, and no port is common to all pairs. The
    cause is then not a single HCA or cable.

    :param pairs: pairs of the fabric with their results
    """
    measured = [pair for pair in pairs if pair.ping is not None]
    partial = [pair for pair in measured if pair.ping and not pair.passed and pair.ping.received > 0]
    if not partial or len(partial) < len(measured):
        return False
    shared = set.intersection(*({pair.client.key, pair.server.key} for pair in partial))
    return not shared


def judge_pairs(
    fabric: Fabric, pairs: typing.Sequence[Pair], found: typing.Sequence[Suspect], servers: _Servers
) -> list[Finding]:
    """Check for each pair that its ping lost no messages, and return one finding for each pair.

    If more than ``_MOST_PAIRS`` pairs fail, list some pairs of each suspect and state the number of the remaining
    pairs. If more than ``_MOST_PAIRS`` pairs pass, list none of them.

    :param pairs: all pairs of the fabric with their results
    :param found: suspects, which are common causes of failing pairs
    :param servers: LIDs on which ibping answers (mode serve), or the error, by node
    """
    good = [pair for pair in pairs if pair.passed]
    bad = [pair for pair in pairs if not pair.passed]
    back = {(pair.server, pair.client) for pair in good}
    shown = bad
    if len(shown) > _MOST_PAIRS:
        unmeasured = [pair for pair in bad if pair.ping is None]
        ends = {
            (f"{pair.client.node} {pair.client.device}", f"{pair.server.node} {pair.server.device}"): pair
            for pair in bad
        }
        groups = [unmeasured, *([ends[one.client, one.server] for one in suspect.explained] for suspect in found)]
        shown = [pair for group in groups for pair in group[: _MOST_PAIRS // len(groups)]]
    together = lose_some_each(pairs)
    findings = [_judge_pair(fabric, pair, (pair.client, pair.server) in back, servers, together) for pair in shown]
    if len(bad) > len(shown):
        why = f"The report lists at most {_MOST_PAIRS} failing pairs. The findings reachability.port count every pair."
        remedy = (
            "Follow the remedies of the findings reachability.suspect: they name common causes of the failing pairs."
            " Then run stage reachability again."
        )
        findings.append(
            Finding(
                "reachability.pair",
                f"{fabric.name} further pairs",
                FAIL,
                f"{count_of(len(bad) - len(shown), 'further pair')} with lost messages or without a result",
                "0 % loss on each pair",
                why,
                remedy,
            )
        )
    if len(good) <= _MOST_PAIRS:
        findings += [_judge_pair(fabric, pair, False, servers) for pair in good]
    return findings


def _judge_pair(fabric: Fabric, pair: Pair, back: bool, servers: _Servers, together: bool = False) -> Finding:
    """Check that a ping from a client port to a server port lost no messages.

    :param pair: client and server port with the result of the ping
    :param back: whether the ping in the opposite direction passed
    :param servers: LIDs on which ibping answers (mode serve), or the error, by node
    :param together: whether every pair of the fabric loses some messages, which indicates a common cause
    """
    subject = (
        f"{fabric.name} rail {pair.client.rail} {pair.client.node} {pair.client.device} -> {pair.server.node}"
        f" {pair.server.device}"
    )
    expected = "0 % loss"
    if pair.ping is None:
        why, remedy = (
            f"The ping has no result: {format_clause(pair.why)}.",
            pair.remedy or _BY_HAND,
        )
        return Finding(
            "reachability.pair", subject, UNKNOWN, f"no result of ibping{_format_lids(pair)}", expected, why, remedy
        )
    ping = pair.ping
    measured = f"{ping.lost} of {ping.sent} messages lost, {100 * ping.lost / ping.sent if ping.sent else 100:.3g} %"
    if pair.passed and not ping.late:
        return build_pass("reachability.pair", subject, measured, expected)
    if pair.passed:
        return _judge_late(
            subject, f"{measured}; {count_of(ping.late, 'packet')} repeated in a shorter run before", pair
        )
    server = _why_no_server(pair.server, servers)
    measured += _format_lids(pair)
    if pair.apart and not server:
        return _judge_apart(subject, measured, pair.apart)
    if not ping.lost or ping.received > ping.transmitted:
        return _judge_contradiction(subject, ping, _format_lids(pair))
    why, remedy = _explain_loss(ping, back, server, together)
    return Finding("reachability.pair", subject, FAIL, measured, expected, why, remedy)


def _judge_contradiction(subject: str, ping: Ping, lids: str) -> Finding:
    """Return the finding on a result that shows no loss and proves no connection: it counts no message, or more answers
    than messages.

    :param subject: subject of the finding
    :param lids: LIDs of the pair, as ``_format_lids`` returns them
    """
    return Finding(
        "reachability.pair",
        subject,
        FAIL,
        f"{count_of(ping.received, 'answer')} to {count_of(ping.transmitted, 'message')}{lids}",
        "as many answers as messages, at least 1",
        "ibping cannot report these numbers: it sends at least 1 message, and counts at most one answer to each. So the"
        " stored result was damaged or changed after the run, and it does not show whether messages were lost.",
        "Run stage reachability again, which measures this pair again.",
    )


def _format_lids(pair: Pair) -> str:
    """Return the LIDs of a pair for the measured value. They are not in the cause and the remedy, so that the report
    can list all pairs of one cause together.
    """
    return f" (LID {pair.client.lid} -> LID {pair.server.lid})"


def _explain_loss(ping: Ping, back: bool, server: str, together: bool) -> tuple[str, str]:
    """Return the cause and the remedy of lost messages.

    Both texts name no port, so that they are equal for all pairs of one cause.

    :param ping: result of the ping, with lost messages
    :param back: whether the other direction passes
    :param server: why the ibping server did not run; empty if it ran
    :param together: whether all pairs lose some messages, and have one cause
    """
    if server:
        return f"The ibping server did not run: {format_clause(server)}.", _START_SERVER
    if back and ping.received == 0:
        why = (
            "The other direction passes over the same links. In this direction, the ibping server does not answer, or"
            " answers too late."
        )
        return why, _START_SERVER
    if together:
        why = "Each pair of the fabric loses some messages, but no pair loses all messages."
        return why, (
            "Follow the remedy of the finding reachability.suspect, which names one cause for all pairs. Then run stage"
            " reachability again."
        )
    if ping.received == 0:
        why = (
            "No answer came back: a switch on the path has no route to the port, a link on the path is down, or the"
            " ibping server does not answer."
        )
        remedy = (
            f"Follow the remedy of the finding reachability.suspect. Without one, run {_TRACE} as root on a node of"
            " the fabric. If it stops at a switch, repair the link or the routes of that switch. If it prints the"
            " whole path, run ibping -S as root on the node of the server (the port after '->'), and correct the"
            " error that it prints. Then run stage reachability again."
        )
        return why, remedy
    why = (
        "Messages are lost on the path: a cable or transceiver is faulty, or a link is congested or failing. If most"
        " pairs lose some messages, the nodes may be too busy to answer in time, and a late answer counts as lost."
    )
    remedy = (
        f"Follow the remedy of the finding reachability.suspect. Without one, run {_TRACE} and then ibqueryerrors,"
        " as root on a node of the fabric. Repair the link on the path whose error counters increase. If no counter"
        " increases, set reachability_timeout_ms to 1000. Then run stage reachability again."
    )
    return why, remedy


def _judge_late(subject: str, measured: str, pair: Pair) -> Finding:
    """Return the warning on a pair whose first run needed retransmissions, although a second, longer run passed without
    any.

    :param subject: subject of the finding
    :param measured: result as text
    :param pair: client and server port with the results of both runs
    """
    return Finding(
        "reachability.pair",
        subject,
        WARN,
        f"{measured}{_format_lids(pair)}",
        "0 % loss, without repeated packets",
        "One of the two nodes was probably busy for a moment. The link is not the cause: a faulty link would also"
        " have lost packets in the longer run.",
        f"Run {_TRACE} and then ibqueryerrors, as root on a node of the fabric, for the error counters on the path."
        " If the counters do not increase, no action is needed. Otherwise repair the link, then run stage"
        " reachability again.",
    )


def _judge_apart(subject: str, measured: str, found: Apart) -> Finding:
    """Return the finding on a pair whose ports cannot communicate because of their partition keys.

    :param subject: subject of the finding
    :param measured: result as text
    :param found: partition keys of both ports and the keys that they share
    """
    shared = (
        f" They share {join_first(found.shared, 8)}, which ibping does not use, so this path could not be verified."
        if found.shared
        else ""
    )
    return Finding(
        "reachability.pair", subject, find_status([found]), measured, "0 % loss", found.why + shared, remedy_of([found])
    )


def _why_no_server(port: PingPort, servers: _Servers) -> str:
    observed = servers.get(port.node, ObservedServers(error="it was not started"))
    if observed.value is None or observed.error is not None:
        return observed.error or "the node returned an empty result"
    for server in observed.value:
        if (server.rdma_device, server.port) == (port.device, port.number):
            return server.error or ""
    return "it was not started"
