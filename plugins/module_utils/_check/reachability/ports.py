# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge each port by the pings in which it was the client or the server."""

from __future__ import annotations

import typing

from ..._analysis.fleet.lids import LidClaim
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
    subject, expected = f"{fabric.name} rail {port.rail} {port}", "proven as client and as server"
    passed = [sum(pair.passed for pair in group) for group in (as_client, as_server)]
    measured = f"as client {passed[0]} of {len(as_client)}, as server {passed[1]} of {len(as_server)}"
    if port.lid is None:
        why = "The port has no LID: no subnet manager has set it up, so nobody can ping it."
        return Finding("reachability.port", subject, FAIL, "no LID", expected, why, "See the findings of stage fabric.")
    if claim is not None:
        why = f"{claim.words} So it is not proven that whoever pinged LID {claim.lid} has reached this port."
        remedy = f"See the finding fabric.lids of LID {claim.lid}; then run the stages fabric and reachability again."
        return Finding("reachability.port", subject, FAIL, f"LID {claim.lid} not proven", expected, why, remedy)
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
            why = (
                f"It was to ping LIDs that no port of its rail has: {', '.join(map(str, strays[:8]))}. LIDs or ports"
                " changed since the pings were planned."
            )
            return Finding(
                "reachability.port",
                subject,
                UNKNOWN,
                measured,
                expected,
                why,
                "Run the stages fabric and reachability again.",
            )
        return ok("reachability.port", subject, measured, expected)
    bad = [pair for pair in (*as_client, *as_server) if pair.ping is not None and not pair.passed]
    parted = [found for found in (pair.apart for pair in bad) if found]
    if bad and len(parted) == len(bad):
        partners = {pair.server if pair.client == port else pair.client for pair in bad}
        why = f"Partition keys keep it from {len(partners)} partners; its own are {folded(port.pkeys, 8)}."
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
            "See the findings reachability.pair of this port.",
        )
    return Finding(
        "reachability.port",
        subject,
        UNKNOWN,
        measured,
        expected,
        "Some of its pairs were not measured.",
        "See the findings reachability.pair of this port.",
    )


def _explain_asymmetry(
    passed: typing.Sequence[int], as_client: typing.Sequence[Pair], as_server: typing.Sequence[Pair]
) -> str:
    if any(pair.ping and pair.ping.received for pair in (*as_client, *as_server) if not pair.passed):
        # where only part is lost, chance decides in which direction it shows
        return ""
    if passed[0] == len(as_client) and passed[1] < len(as_server):
        return " It reaches others and others do not reach it: its server is the suspect, not its link."
    if passed[1] == len(as_server) and passed[0] < len(as_client):
        return (
            " Others reach it and it does not reach others: the servers of its partners are the suspects, not its link."
        )
    if passed[0] == passed[1] == 0:
        return " Nothing works in either direction: the port, its cable or its switch port is the suspect."
    return ""
