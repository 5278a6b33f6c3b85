# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric, the error counters of all links: what they count by now, and above all what they count while one looks."""

from __future__ import annotations

import typing

from ..._model.fabric import ErrorReport, SeenErrors, Topology
from ..._model.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..._model.intent import Fabric
from .names import Names, some

#: counters of a link that is physically bad, and what they may be at least before they are worth a word: the values that infiniband-diags proposes
PHYSICAL = {
    "SymbolErrorCounter": 10,
    "LinkErrorRecoveryCounter": 10,
    "LinkDownedCounter": 10,
    "PortRcvErrors": 10,
    "LocalLinkIntegrityErrors": 10,
    "ExcessiveBufferOverrunErrors": 10,
}
#: these tell of a link that went away or was trained anew: once while one looks is too often
_AT_ONCE = ("LinkErrorRecoveryCounter", "LinkDownedCounter", "LocalLinkIntegrityErrors")
#: errors a second that the bit error rate of 1e-12, which the standard allows, makes on a link of 400 Gb/s, rounded up
_PER_SECOND = 1.0
#: counters of a port by name and number of the port
_Counts = typing.Dict[typing.Tuple[str, int], typing.Dict[str, int]]


def check_errors(fabric: Fabric, topology: Topology, errors: typing.Optional[SeenErrors]) -> typing.List[Finding]:
    """Growth between the two readings fails; what was counted before warns, since nobody knows when."""
    growing, counted = "no link counts errors while one looks", "few errors counted since the counters were cleared"
    remedy = "Run ibqueryerrors by hand on a node of the fabric, as root."
    if errors is None or errors.later is None or errors.first is None:
        why = f"The error counters were not read twice: {(errors.error if errors else None) or 'nobody was asked'}."
        return [Finding(check, fabric.name, UNKNOWN, "not known", "", why, remedy) for check in ("fabric.errors", "fabric.errors_growing")]
    names = Names(topology)
    first, later = _counts(errors.first), _counts(errors.later)
    findings = _check_growth(first, later, errors.seconds, names, links_of(topology))
    if not findings:
        findings = [ok("fabric.errors_growing", fabric.name, f"{errors.later.checked} ports in {errors.seconds:g} s", growing)]
    findings.append(_check_counted(fabric, later, errors.later.checked, names, counted))
    failures = max(errors.first.failures, errors.later.failures)
    if failures:
        why = f"{failures} queries for error counters stayed without an answer, so the counters of some ports are not known."
        findings.append(Finding("fabric.errors", f"{fabric.name} queries", UNKNOWN, f"{failures} without an answer", "an answer of each port", why, remedy))
    return findings


def _counts(report: ErrorReport) -> _Counts:
    return {(port.guid, port.port): port.counters for port in report.ports}


def links_of(topology: Topology) -> typing.Dict[typing.Tuple[str, int], typing.Tuple[str, int]]:
    """For each end of a link the other one; ends as ibqueryerrors names them: GUID of the switch, or of the port of a CA, and number of the port."""
    result = {}
    for link in topology.links:
        a, b = (link.a.port_guid or link.a.guid, link.a.port), (link.b.port_guid or link.b.guid, link.b.port)
        result[a], result[b] = b, a
    return result


def _check_growth(
    first: _Counts,
    later: _Counts,
    seconds: float,
    names: Names,
    far_ends: typing.Mapping[typing.Tuple[str, int], typing.Tuple[str, int]],
) -> typing.List[Finding]:
    """One finding a port that counts errors now. A counter that was cleared meanwhile begins at 0."""
    findings = []
    for port, counters in later.items():
        before = first.get(port, {})
        rises = {name: value - (before.get(name, 0) if before.get(name, 0) <= value else 0) for name, value in counters.items() if name in PHYSICAL}
        rises = {name: rise for name, rise in rises.items() if rise > 0}
        if not rises:
            continue
        bad = any(name in _AT_ONCE or rise > _PER_SECOND * seconds for name, rise in rises.items())
        far = f"; the other end of its link is {names.port(*far_ends[port])}" if port in far_ends else ""
        measured = ", ".join(f"{name} +{rise} in {seconds:g} s ({rise / max(seconds, 1.0):.3g} a second)" for name, rise in rises.items())
        why = f"The receiver at this port counts errors while one looks{far}. Each costs a retransmission, for which a whole collective waits."
        remedy = "Clean and seat the cable at both ends, then replace cable or transceiver; when the errors stay, the port."
        findings.append(Finding("fabric.errors_growing", names.port(*port), FAIL if bad else WARN, measured, "no growth", why, remedy))
    return findings


def _check_counted(fabric: Fabric, later: _Counts, checked: int, names: Names, expected: str) -> Finding:
    """One finding for the whole fabric: after a year without clearing, most ports would have one."""
    above = []
    for port, counters in later.items():
        high = [f"{name} {value}" for name, value in counters.items() if name in PHYSICAL and value > PHYSICAL[name]]
        if high:
            above.append(f"{names.port(*port)}: {', '.join(high)}")
    if not above:
        return ok("fabric.errors", fabric.name, f"{checked} ports", expected)
    why = f"Since the counters were cleared, which may be long ago, these ports counted errors of the link: {some(above)}."
    remedy = "Clear them (ibqueryerrors --clear-errors) and look again after a day of load. A counter at its maximum can't show growth."
    return Finding("fabric.errors", fabric.name, WARN, f"{len(above)} of {checked} ports above the threshold", expected, why, remedy)
