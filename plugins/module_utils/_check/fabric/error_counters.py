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
from ..._model.base.phrases import count_of, format_clause
from ..._model.infiniband.error_counters import ErrorReport, PortErrors, SeenErrors
from ..._model.infiniband.fabric import Topology
from ..._model.intent.intent import Fabric
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .bounded import limit_findings
from .counter_classes import CLASS_OF, PHYSICAL
from .links_in_scope import ALL_PORTS, LinksInScope
from .names import Names, join_some

#: what physical counters may have counted before they are worth a word: the value that infiniband-diags proposes
_COUNTED = 10
#: these tell of a link that went away or was trained anew: once while one looks is too often
_AT_ONCE = ("LinkErrorRecoveryCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors")
#: errors a second that the bit error rate of 1e-12, which the standard allows, makes on a link of 400 Gb/s, rounded up
_PER_SECOND = 1.0
#: seconds between two readings of which absence of growth tells something: the default of fabric_error_seconds
LEAST_SECONDS = 10.0
_GROWING, _COUNT = "fabric.errors_growing", "fabric.errors"
_FIND_SILENT = (
    "Run ibqueryerrors as root on a node of the fabric: it prints the LID of each port that does not respond. Run"
    " smpquery nodeinfo LID: if it fails too, restart the host or the switch with this LID. Then run stage fabric"
    " again."
)
_FEW = f"at most {_COUNTED} in each link error counter"


def check_errors(
    fabric: Fabric, membership: Membership, topology: Topology, errors: typing.Optional[SeenErrors]
) -> list[Finding]:
    """Judge the error counters of the ports of a fabric. Growth between the two readings may fail. Errors from before
    the first reading only warn, since their time is unknown. The findings are unknown if the counters were not read
    twice.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param topology: topology of the fabric
    :param errors: two readings of the error counters; None if they were not read
    """
    if errors is None or errors.later is None or errors.first is None:
        measured, why, remedy = _explain_missing_reading(errors)
        return [
            Finding(check, fabric.name, UNKNOWN, measured, "2 readings of the error counters", why, remedy)
            for check in (_COUNT, _GROWING)
        ]
    names, way, readings = (
        Names(topology),
        LinksInScope(membership, topology),
        _Readings(errors.first, errors.later, errors.seconds),
    )
    unread = way.ends_of((*readings.first.unread, *readings.later.unread))
    findings = _check_growth(fabric, readings, names, way, unread)
    measured = f"{count_of(readings.later.checked, 'port')} in {readings.seconds:g} s"
    if readings.seconds < LEAST_SECONDS:
        why = (
            "The setting fabric_error_seconds makes the time between the two readings so short that a bad link may"
            " count no error."
        )
        remedy = (
            f"Set fabric_error_seconds to at least {LEAST_SECONDS:g}, then run ansible-playbook linerate.rdma.site"
            " --tags validate,discover,fabric."
        )
        expected = f"at least {LEAST_SECONDS:g} s between the readings"
        findings.append(
            Finding(
                _GROWING,
                f"{fabric.name} time between readings",
                UNKNOWN,
                f"{readings.seconds:g} s between the readings",
                expected,
                why,
                remedy,
            )
        )
    if not findings:
        findings = [
            build_pass(_GROWING, fabric.name, measured, "no new errors between the 2 readings between two readings")
        ]
    findings.append(_check_counted(fabric, readings.later, names))
    return [*findings, *_check_complete(fabric, readings, topology, names, way)]


def _explain_missing_reading(errors: typing.Optional[SeenErrors]) -> tuple[str, str, str]:
    """Return three texts: which of the two readings of the error counters is missing, the cause, and the remedy.

    :param errors: the readings, of which at least one is missing; None if the counters were not queried
    """
    if errors is None:
        return (
            "0 readings",
            "ibqueryerrors was not run, because no subnet manager responded at the port through which the topology was"
            " read.",
            "Follow the remedy of the finding fabric.one_master of this fabric, then run stage fabric again.",
        )
    if errors.first is None and errors.later is None:
        measured, which = "0 readings", "Both readings"
    elif errors.first is None:
        measured, which = "1 reading: the first one is missing", "The first reading"
    else:
        measured, which = "1 reading: the second one is missing", "The second reading"
    return (
        measured,
        f"{which} with ibqueryerrors failed: {format_clause(errors.error)}.",
        "Run time ibqueryerrors as root on a node of the fabric. If it prints an error, check the device or the LID"
        " that it names. If it takes longer than fabric_discovery_seconds, raise this setting. Then run stage fabric"
        " again.",
    )


class _Readings(typing.NamedTuple):
    """The two readings of the error counters of a fabric.

    :ivar first: first reading
    :ivar later: second reading
    :ivar seconds: time between the readings
    """

    first: ErrorReport
    later: ErrorReport
    seconds: float


def _check_growth(
    fabric: Fabric, errors: _Readings, names: Names, way: LinksInScope, unread: set[End]
) -> list[Finding]:
    """Return a finding for each port whose errors grow between the readings, or whose growth cannot be determined.
    Ports whose links carry no traffic of the fabric get one warning together.

    :param errors: the two readings
    :param names: names of the switches and HCAs
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
                "The first reading has no value for this port, and"
                f" {count_of(errors.first.failures, 'query', 'queries')} of the first"
                " reading failed. It is unknown whether the errors are new."
            )
            finding = dataclasses.replace(finding, status=UNKNOWN, why=why, remedy=_FIND_SILENT)
        if finding is not None:
            (findings if end in way.ours else others).append(finding)
    findings = limit_findings(fabric, findings, "ports")
    if others:
        words = join_some([f"{finding.subject}: {finding.measured}" for finding in others])
        why = (
            f"These ports count errors, or their counters are at the maximum: {words}. Links without traffic of"
            f" {fabric.name} are usually links of other hosts."
        )
        measured = f"errors at {count_of(len(others), 'port')} without traffic of {fabric.name}"
        findings.append(
            Finding(
                _GROWING,
                f"{fabric.name} others",
                WARN,
                measured,
                "no new errors between the 2 readings",
                why,
                "No action is needed for this fabric. Report the errors to the owners of these hosts and switches.",
            )
        )
    return findings


def _format_rate(rate: float) -> str:
    """Return a number of errors per second as text, without an exponent."""
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def _check_port(
    subject: str, before: typing.Optional[PortErrors], later: PortErrors, seconds: float, far: str
) -> typing.Optional[Finding]:
    """Return the finding on the growth of a port's counters between two readings, or None if no counter grew or is at
    its maximum.

    The status is ``fail`` if an error counter grew faster than is accepted, ``unknown`` if a counter is at its maximum,
    so that it cannot show growth, and ``warn`` otherwise. A counter that was cleared between the readings starts at 0.

    :param subject: subject of the finding
    :param before: first reading of the port; None if it does not contain the port
    :param later: second reading of the port
    :param seconds: time between the readings
    :param far: end of a sentence that names the port at the other end of the link; empty if that port is unknown
    """
    earlier = before.counters if before else {}
    rises, stuck = {}, []
    for name, value in later.counters.items():
        rise = value - (earlier.get(name, 0) if earlier.get(name, 0) <= value else 0)
        if rise > 0:
            rises[name] = rise
        elif not later.wide and name in CLASS_OF and CLASS_OF[name].closes and value >= CLASS_OF[name].maximum[name]:
            stuck.append(f"{name} {value}")
    groups = list({CLASS_OF[name].name: CLASS_OF[name] for name in rises if name in CLASS_OF}.values())
    bad = any(
        name in CLASS_OF and CLASS_OF[name].closes and (name in _AT_ONCE or rise > _PER_SECOND * seconds)
        for name, rise in rises.items()
    )
    measured = [
        f"{name} +{rise} in {seconds:g} s ({_format_rate(rise / max(seconds, 1.0))} per second)"
        for name, rise in rises.items()
    ]
    why = [group.why for group in groups]
    remedy = [group.remedy for group in groups]
    unknown = [name for name in rises if name not in CLASS_OF]
    if unknown:
        why.append(f"This version of linerate.rdma does not know the meaning of {join_some(unknown)}.")
        remedy.append("Follow the remedy for this counter in the documentation of the switch or the HCA.")
    if stuck:
        measured.append(f"at the maximum: {join_some(stuck)}")
        why.append("A counter at its maximum does not count further, so new errors cannot be detected.")
        remedy.append("Clear the counters as root on a node of the fabric (ibqueryerrors --clear-errors).")
    if not measured:
        return None
    status: typing.Literal["fail", "unknown", "warn"] = FAIL if bad else UNKNOWN if stuck else WARN
    return Finding(
        _GROWING,
        subject,
        status,
        "; ".join(measured),
        "no new errors between the 2 readings",
        " ".join(why) + (f" The errors were read at {subject}{far}." if far else ""),
        f"{' '.join(remedy)} Then run stage fabric again.",
    )


def _check_counted(fabric: Fabric, later: ErrorReport, names: Names) -> Finding:
    """Return one finding on the link errors of the whole fabric since the counters were cleared.

    Separate findings for each port would be too many, because after a year without clearing most ports have errors.

    :param later: second reading
    :param names: names of the switches and HCAs of the topology, for texts
    """
    above = []
    for port in later.ports:
        high = [
            f"{name} {value}" for name, value in port.counters.items() if name in PHYSICAL.maximum and value > _COUNTED
        ]
        if high:
            above.append(f"{names.port(port.guid, port.port)}: {', '.join(high)}")
    if not above:
        return build_pass(
            _COUNT,
            fabric.name,
            f"{count_of(later.checked, 'port')}, none above {_COUNTED} in a link error counter",
            _FEW,
        )
    why = (
        f"These ports have counted link errors since their counters were cleared, possibly long ago:"
        f" {join_some(above)}."
    )
    remedy = (
        "Clear the counters as root on a node of the fabric (ibqueryerrors --clear-errors), then run stage fabric"
        " again after a day of load."
    )
    measured = f"{len(above)} of {count_of(later.checked, 'port')} above {_COUNTED} in a link error counter"
    return Finding(_COUNT, fabric.name, WARN, measured, _FEW, why, remedy)


def _check_complete(
    fabric: Fabric, errors: _Readings, topology: Topology, names: Names, way: LinksInScope
) -> list[Finding]:
    """Check that both readings have the error counters of the ports at all ends of links. The status of a finding on
    missing ports is ``unknown``, or ``warn`` if all of these ports belong to other hosts.

    :param errors: both readings of the error counters
    :param names: names of the switches and HCAs of the topology, for texts
    :param way: links that carry traffic of the fabric
    """
    findings, ends = [], 2 * len(topology.links)
    checked = min(errors.first.checked, errors.later.checked)
    if checked < ends:
        why = (
            "ibqueryerrors reports fewer ports than ibnetdiscover found at the ends of links, so the errors of the"
            " other ports are unknown."
        )
        findings.append(
            Finding(
                _COUNT,
                f"{fabric.name} ports",
                UNKNOWN,
                f"{count_of(checked, 'port')} read",
                f"at least {count_of(ends, 'port')} read",
                why,
                "Run ibqueryerrors --details as root on a node of the fabric, and repair the link of a port that"
                " only one of ibqueryerrors and ibnetdiscover shows. Without such a port, a link came up or went"
                " down during the stage. Then run stage fabric again.",
            )
        )
    unread = tuple(dict.fromkeys((*errors.first.unread, *errors.later.unread)))
    failures = max(errors.first.failures, errors.later.failures, len(unread))
    if not failures:
        return findings
    measured, expected = f"{count_of(failures, 'query', 'queries')} without a response", "a response from each port"
    nameless = any(report.failures > len(report.unread) for report in (errors.first, errors.later)) or not all(
        map(way.knows, unread)
    )
    words = join_some(
        [f"{names.lid(port.lid)} {'all ports' if port.port == ALL_PORTS else f'port {port.port}'}" for port in unread]
    )
    asked = (
        "These ports did not answer the query for their error counters."
        if words
        else "ibqueryerrors counted queries without a response, and did not name the ports."
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
                f"{asked} Their errors are unknown. A typical cause is a host or a switch that restarts.",
                "Run smpquery nodeinfo LID as root on a node of the fabric for each port under 'measured'. If it"
                " fails, restart the host or the switch of the port. Then run stage fabric again."
                if words
                else _FIND_SILENT,
            )
        )
    else:
        why = f"{asked} None of these ports carries traffic of {fabric.name}. A typical cause is a host that restarts."
        findings.append(
            Finding(
                _COUNT,
                f"{fabric.name} queries",
                WARN,
                measured,
                expected,
                why,
                "No action is needed if these hosts do not belong to you. Otherwise check whether the hosts are"
                " running, then run stage fabric again.",
            )
        )
    return findings
