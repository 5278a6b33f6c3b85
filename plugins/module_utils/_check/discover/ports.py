# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the port of each HCA. Check id: ``discover.port``."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.node.hca import Port
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok


@dataclasses.dataclass(frozen=True)
class PortTrouble:
    """The problem because of which a port cannot be used, as the parts of a finding.

    :ivar known: whether the state of the port was read
    """

    measured: str
    why: str
    remedy: str
    known: bool = True


def find_trouble(port: Port) -> typing.Optional[PortTrouble]:
    """Return the problem because of which a port cannot be used, or None if the port is active and has a LID."""
    seen = f"{port.state or 'state unread'}, {port.physical_state or 'link unread'}"
    if port.state is None or port.physical_state is None:
        return PortTrouble(
            seen, "The port's state could not be read.", "See the finding discover.read of this node.", known=False
        )
    if port.physical_state == "Disabled":
        return PortTrouble(
            seen,
            "The port is switched off by hand or by the subnet manager.",
            "Switch it on: ibportstate, or the switch's own tool for the far end.",
        )
    if port.physical_state in ("Polling", "Sleep", "PortConfigurationTraining"):
        return PortTrouble(
            seen,
            "The port looks for a partner and finds none: no cable, a bad cable or transceiver, or the far port is "
            "off.",
            "Check the cable and the switch port at its other end.",
        )
    if port.physical_state != "LinkUp":
        return PortTrouble(
            seen,
            "The link is up and down, or under test.",
            "Replace the cable or transceiver; see the port's error counters.",
        )
    if port.state == "INIT" and port.sm_lid is None:
        return PortTrouble(
            f"{seen}, no subnet manager",
            "The link is up, but no subnet manager has given the port a LID.",
            "Start a subnet manager on this fabric: opensm on a server, UFM, or the switch's own.",
        )
    if port.state != "ACTIVE":
        return PortTrouble(
            seen,
            "A subnet manager knows the port and has not made it active.",
            "See the subnet manager's log for this port.",
        )
    if port.lid is None or port.sm_lid is None:
        return PortTrouble(
            f"{seen}, LID {port.lid or 0}, SM LID {port.sm_lid or 0}",
            "The port is active without a LID.",
            "Read again; see the subnet manager's log.",
        )
    return None


def check_port(subject: str, port: Port) -> Finding:
    expected = "ACTIVE, LinkUp, with a LID"
    wrong = find_trouble(port)
    if wrong is None:
        rate = f"{port.rate_gbps:g} Gb/s ({port.width}X {port.speed})" if port.rate_gbps is not None else "rate unread"
        return ok("discover.port", subject, f"ACTIVE, LinkUp, {rate}, LID {port.lid}", expected)
    return Finding(
        "discover.port", subject, FAIL if wrong.known else UNKNOWN, wrong.measured, expected, wrong.why, wrong.remedy
    )
