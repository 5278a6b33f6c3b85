# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge each port by the pings in which it was the client or the server."""

from __future__ import annotations

import typing

from ..._analysis.fleet.lids import LidClaim
from ..._model.base.phrases import count_of
from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok
from .pairs import Pair, PingPort
from .partitions import find_status, remedy_of


def judge_port(
    fabric: Fabric,
    port: PingPort,
    as_client: typing.Sequence[Pair],
    as_server: typing.Sequence[Pair],
    strays: typing.Sequence[int],
    claim: typing.Optional[LidClaim] = None,
) -> Finding:
    """Return the finding on a port. It passes if the port was client and server at least once and all its pairs passed.

    :param as_client: pairs in which the port was the client
    :param as_server: pairs in which the port was the server
    :param strays: planned destination LIDs that no port of its rail has
    :param claim: set if the port is not proven to have the LID that its node reports
    """
    subject, expected = f"{fabric.name} rail {port.rail} {port}", "tested as client and as server without loss"
    passed = [sum(pair.passed for pair in group) for group in (as_client, as_server)]
    measured = f"{passed[0]} of {len(as_client)} pairs pass as client, {passed[1]} of {len(as_server)} as server"
    if port.lid is None:
        why = "The port has no LID because no subnet manager has configured it. Other ports cannot ping it."
        return Finding(
            "reachability.port",
            subject,
            FAIL,
            "no LID",
            expected,
            why,
            "Check the findings of stage fabric and correct the cause, then run stages fabric and reachability again.",
        )
    if claim is not None:
        why = f"{claim.words} It is therefore not verified that pings to LID {claim.lid} reached this port."
        remedy = (
            f"Check the finding fabric.lids of LID {claim.lid} and correct the cause, then run stages fabric and"
            " reachability again."
        )
        return Finding("reachability.port", subject, FAIL, f"LID {claim.lid} not verified", expected, why, remedy)
    if not as_client or not as_server:
        why = (
            f"No ping {'to' if as_client else 'from'} this port was planned, so only one direction was tested."
            if as_client or as_server
            else "The port has no partner on its rail. The test needs two nodes with a port on this rail."
        )
        return Finding(
            "reachability.port",
            subject,
            UNKNOWN,
            measured,
            expected,
            why,
            "Add a second node to the group rdma_nodes of the inventory, or check the findings of stage fabric on the"
            " other nodes. Then run stages fabric and reachability again.",
        )
    if all(pair.passed for pair in (*as_client, *as_server)):
        if strays:
            why = (
                "The plan contains pings from this port to LIDs that no port on its rail has:"
                f" {', '.join(map(str, strays[:8]))}. LIDs or ports changed after the pings were planned."
            )
            return Finding(
                "reachability.port",
                subject,
                UNKNOWN,
                measured,
                expected,
                why,
                "Run stages fabric and reachability again.",
            )
        return ok("reachability.port", subject, measured, expected)
    bad = [pair for pair in (*as_client, *as_server) if pair.ping is not None and not pair.passed]
    parted = [found for found in (pair.apart for pair in bad) if found]
    if bad and len(parted) == len(bad):
        partners = {pair.server if pair.client == port else pair.client for pair in bad}
        why = (
            f"Partition keys separate this port from {count_of(len(partners), 'partner')}. The keys of this port are"
            f" {folded(port.pkeys, 8)}."
        )
        return Finding("reachability.port", subject, find_status(parted), measured, expected, why, remedy_of(parted))
    if bad:
        why = f"Packets from or to this port are lost.{_explain_asymmetry(passed, as_client, as_server)}"
        return Finding(
            "reachability.port",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Check the findings reachability.pair of this port, correct the causes, then run stage reachability again.",
        )
    return Finding(
        "reachability.port",
        subject,
        UNKNOWN,
        measured,
        expected,
        "Some pairs of this port were not measured.",
        "Check the findings reachability.pair of this port, correct the causes, then run stage reachability again.",
    )


def _explain_asymmetry(
    passed: typing.Sequence[int], as_client: typing.Sequence[Pair], as_server: typing.Sequence[Pair]
) -> str:
    if any(pair.ping and pair.ping.received for pair in (*as_client, *as_server) if not pair.passed):
        # where only part is lost, chance decides in which direction it shows
        return ""
    if passed[0] == len(as_client) and passed[1] < len(as_server):
        return (
            " The port reaches other ports, but other ports do not reach it: the ibping server of this port is the"
            " probable cause, not its link."
        )
    if passed[1] == len(as_server) and passed[0] < len(as_client):
        return (
            " Other ports reach this port, but it does not reach them: the ibping servers of its partners are the"
            " probable cause, not its link."
        )
    if passed[0] == passed[1] == 0:
        return " No ping passes in either direction: the port, its cable or its switch port is the probable cause."
    return ""
