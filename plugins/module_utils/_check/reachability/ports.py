# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge each port by the pings in which it was the client or the server."""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.lids import LidClaim
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .partitions import find_status, remedy_of
from .ping_results import Pair, PingPort


def judge_port(
    fabric: Fabric,
    port: PingPort,
    as_client: typing.Sequence[Pair],
    as_server: typing.Sequence[Pair],
    strays: typing.Sequence[int],
    claim: typing.Optional[LidClaim] = None,
) -> Finding:
    """Check that a port was client and server of at least one ping each, and that all its pairs passed.

    :param port: HCA port with its rail and LID
    :param as_client: pairs in which the port was the client
    :param as_server: pairs in which the port was the server
    :param strays: planned destination LIDs that no port of its rail has
    :param claim: LID that the node reports for the port and that is not proven to be the port's; None if the LID is
        proven
    """
    subject, expected = (
        f"{fabric.name} rail {port.rail} {port}",
        "pings from and to this port, all of them without loss",
    )
    passed = [sum(pair.passed for pair in group) for group in (as_client, as_server)]
    measured = f"{_describe_pings('from', as_client)}; {_describe_pings('to', as_server)}"
    if port.lid is None:
        why = "No subnet manager has configured the port, so other ports cannot ping it."
        return Finding(
            "reachability.port",
            subject,
            FAIL,
            "no LID",
            "a LID of the subnet manager",
            why,
            f"Run ibstat on {port.node}. If the port is not Active, check its cable and its switch port. Otherwise"
            " search the log of the subnet manager for the GUID of the port, and correct the error that it shows."
            " Then run stages fabric and reachability again.",
        )
    if claim is not None:
        why = f"{claim.words} So pings to LID {claim.lid} may have reached a different port."
        remedy = (
            f"Follow the remedy of the finding fabric.lids of LID {claim.lid}, then run stages fabric and reachability"
            " again."
        )
        return Finding(
            "reachability.port",
            subject,
            FAIL,
            f"LID {claim.lid} in sysfs of this port",
            "the LID that the topology shows at this port",
            why,
            remedy,
        )
    if not as_client and not as_server:
        return Finding(
            "reachability.port",
            subject,
            UNKNOWN,
            "no ping from or to this port",
            expected,
            "The run found no port of this rail on another node. A ping needs two nodes with a port on the rail.",
            "Add a second node to the group rdma_nodes of the inventory, or follow the remedies of the findings"
            " fabric.hcas of the other nodes. Then run stages fabric and reachability again.",
        )
    if not as_client or not as_server:
        direction = "to" if as_client else "from"
        why = (
            f"The run planned no ping {direction} this port. The LIDs or ports changed after the pings were planned,"
            " for example because a node or the subnet manager restarted."
        )
        return Finding(
            "reachability.port",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "If this node has a finding reachability.node, follow its remedy. Then run stages fabric and reachability"
            " again, which plan the pings with the present ports.",
        )
    if all(pair.passed for pair in (*as_client, *as_server)):
        if strays:
            lids = f"{'LID' if len({*strays}) == 1 else 'LIDs'} {join_first([*dict.fromkeys(map(str, strays))], 8)}"
            why = (
                f"The run planned pings from this port to {lids}, which no port of the rail has any more. The subnet"
                " manager changed the LIDs, or ports disappeared."
            )
            return Finding(
                "reachability.port",
                subject,
                UNKNOWN,
                f"{measured}; {count_of(len(strays), 'ping')} to a LID that no port of the rail has",
                expected,
                why,
                "Run stages fabric and reachability again.",
            )
        return build_pass("reachability.port", subject, measured, expected)
    bad = [pair for pair in (*as_client, *as_server) if pair.ping is not None and not pair.passed]
    parted = [found for found in (pair.apart for pair in bad) if found]
    if bad and len(parted) == len(bad):
        partners = {pair.server if pair.client == port else pair.client for pair in bad}
        why = (
            f"Partition keys separate this port from {count_of(len(partners), 'partner')}. The keys of this port are"
            f" {join_first(port.pkeys, 8)}."
        )
        return Finding("reachability.port", subject, find_status(parted), measured, expected, why, remedy_of(parted))
    if bad:
        why = _explain_asymmetry(passed, as_client, as_server) or (
            "The partners answer some messages, so ibping runs at both ends and messages are lost on the path."
            if any(pair.ping.received for pair in bad if pair.ping is not None)
            else "Pings with some partners pass and with others fail, so the cause is on the path to those that fail."
        )
        return Finding(
            "reachability.port",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Follow the remedy of the finding reachability.suspect that names this port, or else of the findings"
            " reachability.pair of this port. Then run stage reachability again.",
        )
    return Finding(
        "reachability.port",
        subject,
        UNKNOWN,
        measured,
        expected,
        _explain_unmeasured([pair for pair in (*as_client, *as_server) if pair.ping is None]),
        "Follow the remedy of the findings reachability.pair of this port, then run stage reachability again.",
    )


def _describe_pings(direction: str, pairs: typing.Sequence[Pair]) -> str:
    """Return the results of the pings in one direction as text, such as ``pings from this port: 1 of 2 without loss``.

    :param direction: ``from`` or ``to`` the port
    :param pairs: pairs of the port in this direction
    """
    if not pairs:
        return f"no ping {direction} this port"
    unmeasured = sum(pair.ping is None for pair in pairs)
    passed = sum(pair.passed for pair in pairs)
    return f"pings {direction} this port: {passed} of {len(pairs)} without loss" + (
        f", {unmeasured} without a result" if unmeasured else ""
    )


def _explain_unmeasured(pairs: typing.Sequence[Pair]) -> str:
    """Return the sentence with the reasons why pings have no result, without names of ports, so that the report can
    list all ports of one cause together.

    :param pairs: pairs without a result, at least one
    """
    reasons = dict.fromkeys(format_clause(pair.why) for pair in pairs)
    return f"ibping returned no result: {join_first(list(reasons), 3, '; ')}."


def _explain_asymmetry(
    passed: typing.Sequence[int], as_client: typing.Sequence[Pair], as_server: typing.Sequence[Pair]
) -> str:
    if any(pair.ping and pair.ping.received for pair in (*as_client, *as_server) if not pair.passed):
        # where only part is lost, chance decides in which direction it shows
        return ""
    if passed[0] == len(as_client) and passed[1] < len(as_server):
        return (
            "The port reaches other ports, but other ports do not reach it: the ibping server of this port is the"
            " probable cause, not its link."
        )
    if passed[1] == len(as_server) and passed[0] < len(as_client):
        return (
            "Other ports reach this port, but it does not reach them: the ibping servers of its partners are the"
            " probable cause, not its link."
        )
    if passed[0] == passed[1] == 0:
        return "No ping passes in either direction: the port, its cable or its switch port is the probable cause."
    return ""
