# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, error counters of all links: their values and, more important, their growth between two readings.

Ports of the fabric's HCAs and of the links between them can close the gate. Errors on links of other tenants are only
reported.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.hca_locations import End
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._model.infiniband.fabric import ErrorReport, PortErrors, SeenErrors, Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from .links_in_scope import ALL_PORTS, LinksInScope
from .names import Names, some


@dataclasses.dataclass(frozen=True)
class CounterClass:
    """A class of error counters that have the same cause and remedy.

    :ivar maximum: largest value of each counter in PortCounters (InfiniBand Architecture Specification 1.3, table 247),
        at which it stops
    :ivar closes: whether growth closes the gate
    """

    name: str
    maximum: typing.Mapping[str, int]
    why: str
    remedy: str
    closes: bool = True


PHYSICAL = CounterClass(
    "physical",
    {
        "SymbolErrorCounter": 65535,
        "LinkErrorRecoveryCounter": 255,
        "LinkDownedCounter": 255,
        "PortRcvErrors": 65535,
        "LocalLinkIntegrityErrors": 15,
        "ExcessiveBufferOverrunErrors": 15,
    },
    "The receiver at this port counts errors of the link. Each costs a retransmission, for which a whole collective"
    " waits.",
    "Clean and seat the cable at both ends, then replace cable or transceiver; when the errors stay, the port.",
)
CLASSES = (
    PHYSICAL,
    CounterClass(
        "physical, further up",
        {"PortRcvRemotePhysicalErrors": 65535},
        "Packets arrive here that another switch has already marked as damaged: the bad link is on their way.",
        "Follow the ports with PortRcvErrors or SymbolErrorCounter (ibqueryerrors) against the traffic, and mend the"
        " first link that has them.",
    ),
    CounterClass(
        "congestion",
        {"PortXmitDiscards": 65535, "VL15Dropped": 65535},
        "The port drops packets. They waited too long for a slow receiver (PortXmitDiscards), or it had no room for"
        " management packets (VL15Dropped).",
        "See what waits with ibqueryerrors --details, and look for the slow receiver behind the port: an HCA with a"
        " slow PCIe link, or a host that hangs.",
    ),
    CounterClass(
        "configuration",
        {"PortXmitConstraintErrors": 255, "PortRcvConstraintErrors": 255},
        "The port refuses packets whose P_Key or raw type its partition does not allow.",
        "Compare the P_Keys of both ends (smpquery pkeys LID) with the partitions of the subnet manager"
        " (partitions.conf).",
    ),
    CounterClass(
        "relay",
        {"PortRcvSwitchRelayErrors": 65535},
        "The switch could not forward packets; most of them are multicast that came back to the port it came from,"
        " which is harmless.",
        "Nothing, unless pings fail on this way: then run ibtracert SOURCE-LID DESTINATION-LID.",
        closes=False,
    ),
)
_OF = {name: group for group in CLASSES for name in group.maximum}
#: what physical counters may have counted before they are worth a word: the value that infiniband-diags proposes
_COUNTED = 10
#: these tell of a link that went away or was trained anew: once while one looks is too often
_AT_ONCE = ("LinkErrorRecoveryCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors")
#: errors a second that the bit error rate of 1e-12, which the standard allows, makes on a link of 400 Gb/s, rounded up
_PER_SECOND = 1.0
#: seconds between two readings of which absence of growth tells something: the default of fabric_error_seconds
LEAST_SECONDS = 10.0
_GROWING, _COUNT = "fabric.errors_growing", "fabric.errors"
_BY_HAND = "Run ibqueryerrors by hand on a node of the fabric, as root."


def check_errors(
    fabric: Fabric, membership: Membership, topology: Topology, errors: typing.Optional[SeenErrors]
) -> list[Finding]:
    """Return findings on the error counters. Growth between the two readings may fail. Errors that were counted before
    only warn, since their time is unknown. The findings are unknown if the counters were not read twice.

    :param errors: error counters as read; None if they were not read
    """
    if errors is None or errors.later is None or errors.first is None:
        why = f"The error counters were not read twice: {(errors.error if errors else None) or 'nobody was asked'}."
        return [Finding(check, fabric.name, UNKNOWN, "not known", "", why, _BY_HAND) for check in (_COUNT, _GROWING)]
    names, way, readings = (
        Names(topology),
        LinksInScope(membership, topology),
        _Readings(errors.first, errors.later, errors.seconds),
    )
    unread = way.ends_of((*readings.first.unread, *readings.later.unread))
    findings = _check_growth(fabric, readings, names, way, unread)
    measured = f"{readings.later.checked} ports in {readings.seconds:g} s"
    if readings.seconds < LEAST_SECONDS:
        why = (
            f"The two readings of the counters are {readings.seconds:g} s apart. A link with errors may count none in"
            " so short a time."
        )
        remedy = (
            f"Set fabric_error_seconds to {LEAST_SECONDS:g} or more, and run: ansible-playbook linerate.rdma.site"
            " --tags validate,discover,fabric."
        )
        expected = f"{LEAST_SECONDS:g} s between the readings at least"
        findings.append(
            Finding(_GROWING, f"{fabric.name} time between readings", UNKNOWN, measured, expected, why, remedy)
        )
    if not findings:
        findings = [ok(_GROWING, fabric.name, measured, "no link counts errors while one looks")]
    findings.append(_check_counted(fabric, readings.later, names))
    return [*findings, *_check_complete(fabric, readings, topology, names, way)]


class _Readings(typing.NamedTuple):
    """The two readings of the error counters, with the seconds between them."""

    first: ErrorReport
    later: ErrorReport
    seconds: float


def _check_growth(
    fabric: Fabric, errors: _Readings, names: Names, way: LinksInScope, unread: set[End]
) -> list[Finding]:
    """Return a finding for each port whose errors grow between the readings, or whose growth cannot be determined.
    Ports whose links carry no traffic of the fabric get one warning together.

    :param errors: the two readings
    :param way: links that carry traffic of the fabric
    :param unread: ports that were not read in both readings
    """
    first = {(port.guid, port.port): port for port in errors.first.ports}
    # without knowing which port did not answer the first time, each that is not in that reading may be it
    doubtful = errors.first.failures > len(errors.first.unread)
    findings: list[Finding] = []
    others: list[Finding] = []
    for port in errors.later.ports:
        end = (port.guid, port.port)
        if end in unread:
            continue
        before = first.get(end)
        finding = _check_port(
            names.port(*end),
            before,
            port,
            errors.seconds,
            f"; the other end of its link is {names.port(*way.far[end])}" if end in way.far else "",
        )
        if finding is not None and finding.status == FAIL and before is None and doubtful:
            why = (
                f"The first reading has no value of this port, and {errors.first.failures} queries of it stayed without"
                " an answer: these errors may be old."
            )
            finding = dataclasses.replace(finding, status=UNKNOWN, why=why, remedy=_BY_HAND)
        if finding is not None:
            (findings if end in way.ours else others).append(finding)
    if others:
        words = some([f"{finding.subject}: {finding.measured}" for finding in others])
        why = (
            f"Links that carry no traffic of {fabric.name}, other hosts' among them, count errors or can't show whether"
            f" they do: {words}."
        )
        measured = f"{len(others)} ports of others"
        findings.append(
            Finding(
                _GROWING,
                f"{fabric.name} others",
                WARN,
                measured,
                "no growth",
                why,
                "Tell who runs these hosts and switches.",
            )
        )
    return findings


def _check_port(
    subject: str, before: typing.Optional[PortErrors], later: PortErrors, seconds: float, far: str
) -> typing.Optional[Finding]:
    """Return the finding on the growth of a port's counters between two readings, or None if none grew. A counter that
    was cleared between the readings starts at 0. A counter at its maximum cannot show growth.

    :param before: first reading; None if the port is not in it
    :param later: second reading
    :param seconds: time between the readings
    :param far: other end of the link, for the text
    """
    earlier = before.counters if before else {}
    rises, stuck = {}, []
    for name, value in later.counters.items():
        rise = value - (earlier.get(name, 0) if earlier.get(name, 0) <= value else 0)
        if rise > 0:
            rises[name] = rise
        elif not later.wide and name in _OF and _OF[name].closes and value >= _OF[name].maximum[name]:
            stuck.append(f"{name} {value}")
    groups = list({_OF[name].name: _OF[name] for name in rises if name in _OF}.values())
    bad = any(
        name in _OF and _OF[name].closes and (name in _AT_ONCE or rise > _PER_SECOND * seconds)
        for name, rise in rises.items()
    )
    measured = [
        f"{name} +{rise} in {seconds:g} s ({rise / max(seconds, 1.0):.3g} a second)" for name, rise in rises.items()
    ]
    why = [f"{group.name.capitalize()}: {group.why}" for group in groups]
    remedy = [group.remedy for group in groups]
    unknown = [name for name in rises if name not in _OF]
    if unknown:
        why.append(f"What {some(unknown)} means is not known to this version.")
        remedy.append("Look the counter up in the documentation of the switch or the HCA.")
    if stuck:
        measured.append(f"at the maximum: {some(stuck)}")
        why.append(
            "A counter of 16, 8 or 4 bits that has reached its maximum stays there, so that growth can't be seen."
        )
        remedy.append("Clear the counters (ibqueryerrors --clear-errors), and run the stage again.")
    if not measured:
        return None
    status: typing.Literal["fail", "unknown", "warn"] = FAIL if bad else UNKNOWN if stuck else WARN
    return Finding(
        _GROWING,
        subject,
        status,
        "; ".join(measured),
        "no growth",
        " ".join(why) + (f" Seen at {subject}{far}." if far else ""),
        " ".join(remedy),
    )


def _check_counted(fabric: Fabric, later: ErrorReport, names: Names) -> Finding:
    """Return one finding on the errors of the whole fabric since the counters were cleared. Separate findings would be
    too many, because after a year without clearing most ports have errors.

    :param later: second reading
    """
    above = []
    for port in later.ports:
        high = [
            f"{name} {value}" for name, value in port.counters.items() if name in PHYSICAL.maximum and value > _COUNTED
        ]
        if high:
            above.append(f"{names.port(port.guid, port.port)}: {', '.join(high)}")
    if not above:
        return ok(_COUNT, fabric.name, f"{later.checked} ports", "few errors counted since the counters were cleared")
    why = (
        "Since the counters were cleared, which may be long ago, these ports counted errors of the link:"
        f" {some(above)}."
    )
    remedy = (
        "Clear them (ibqueryerrors --clear-errors) and look again after a day of load. A counter at its maximum can't"
        " show growth."
    )
    measured = f"{len(above)} of {later.checked} ports above the threshold"
    return Finding(
        _COUNT, fabric.name, WARN, measured, "few errors counted since the counters were cleared", why, remedy
    )


def _check_complete(
    fabric: Fabric, errors: _Readings, topology: Topology, names: Names, way: LinksInScope
) -> list[Finding]:
    """Return findings on ports at the ends of links that were not read in both readings.

    :param errors: the two readings
    :param way: links that carry traffic of the fabric
    """
    findings, ends = [], 2 * len(topology.links)
    checked = min(errors.first.checked, errors.later.checked)
    if checked < ends:
        why = (
            f"The topology has {ends} ends of links, and the counters of {checked} ports were read: what the others"
            " count is not known."
        )
        findings.append(
            Finding(_COUNT, f"{fabric.name} ports", UNKNOWN, f"{checked} ports", f"{ends} at least", why, _BY_HAND)
        )
    unread = tuple(dict.fromkeys((*errors.first.unread, *errors.later.unread)))
    failures = max(errors.first.failures, errors.later.failures, len(unread))
    if not failures:
        return findings
    measured, expected = f"{failures} without an answer", "an answer of each port"
    nameless = any(report.failures > len(report.unread) for report in (errors.first, errors.later)) or not all(
        map(way.knows, unread)
    )
    words = some(
        [f"{names.lid(port.lid)} {'all ports' if port.port == ALL_PORTS else f'port {port.port}'}" for port in unread]
    )
    asked = (
        "Queries for error counters stayed without an answer:"
        f" {words or f'{failures}, of ports that the tool did not name'}."
    )
    # a waiver of one port is none of another one
    measured += f": {words}" if words else ""
    if nameless or way.ends_of(unread) & way.ours:
        findings.append(
            Finding(
                _COUNT,
                f"{fabric.name} queries",
                UNKNOWN,
                measured,
                expected,
                f"{asked} What these ports count is not known.",
                _BY_HAND,
            )
        )
    else:
        why = f"{asked} None of them carries traffic of {fabric.name}: a host that restarts, say."
        findings.append(
            Finding(
                _COUNT,
                f"{fabric.name} queries",
                WARN,
                measured,
                expected,
                why,
                "Nothing, if these hosts are somebody else's.",
            )
        )
    return findings
