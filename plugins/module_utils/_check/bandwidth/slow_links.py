# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, slow links: they are found by the paths of the tests, if the rounds used each link in both
directions.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.line_rates import LineRates
from ..._analysis.fleet.paths.routes import join_names
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.localization import Evidence
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.rate_shares import SLOW, Reading
from ..._model.base.phrases import count_of
from ..._model.infiniband.fabric import Place
from ..._model.intent.intent import Fabric
from ..._model.measurement.pairs import End, PairResult
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from . import ethernet
from .causes import add_stage
from .port_counters import Counted, CounterEvidence
from .suspects import report_unmeasured

_EXPECTED = f"at least {SLOW:.0%} of the usual rate of paths with the same link rate and length"


def list_readings(ways: PathTable, pairs: typing.Iterable[PairResult]) -> tuple[Reading, ...]:
    """Return the measurements that prove something about links, with their paths.

    Measurements without a figure and measurements with another flow label than that of the rounds are left out.

    :param ways: paths between the ports
    :param pairs: pairs whose figures are valid measurements
    """
    tests = [
        (ways.test(pair.rail, pair.client, pair.server, pair.server_rail), pair.average_gbps)
        for pair in pairs
        if not ethernet.is_other_flow(pair)
    ]
    return tuple(Reading(test, gbps) for test, gbps in tests if test is not None and gbps is not None)


def compute_least_share(
    ways: PathTable, pairs: typing.Iterable[PairResult], floor: typing.Callable[[PairResult], typing.Optional[float]]
) -> typing.Optional[float]:
    """Return the share of the rate of its slower host cable that each path should carry at least.

    Return None without pairs, or if the lowest acceptable bandwidth or the rate of a host cable of any pair is unknown.

    The share is computed from the floors of the pairs, because the HCA or PCIe link behind a cable may be slower than
    the cable by design.

    :param ways: paths between the ports
    :param pairs: measured pairs
    :param floor: function that returns the lowest acceptable bandwidth of a pair in Gb/s, or None if it is unknown
    """
    shares = []
    for pair in pairs:
        test = ways.test(pair.rail, pair.client, pair.server, pair.server_rail)
        way = ways.way(*test) if test is not None else None
        least, rates = (
            floor(pair),
            [ways.directions[number].gbps for number in way or () if not ways.directions[number].between],
        )
        known = [rate for rate in rates if rate]
        if least is None or not rates or len(known) < len(rates):
            return None
        shares.append(least / min(known))
    return min(shares, default=None)


def check_slow_links(
    fabric: Fabric,
    ways: PathTable,
    evidence: Evidence,
    where: typing.Mapping[End, Place],
    rates: LineRates,
    pairs: typing.Sequence[PairResult] = (),
    counted: typing.Optional[Counted] = None,
) -> list[Finding]:
    """Return a finding for each slow link, switch or pair, and for each small set of links of which at least one is
    slow. Return one passed finding if nothing is slow.

    :param ways: paths between the ports
    :param evidence: conclusions about the links from all readings
    :param where: leaf and leaf port of each HCA port, by rail and node, as far as known
    :param rates: rates that the links of the HCAs can carry
    :param pairs: measured pairs, including other flows on Ethernet
    :param counted: port counters, used if the figures alone do not identify a link; None if there are none
    """
    if not evidence.measured:
        return [report_unmeasured(fabric, "link", _EXPECTED)]
    known = _SlowLinkReporter(fabric, ways, evidence, where, rates, counted)
    flows = ethernet.report_between_leaves(fabric, ways, evidence, pairs, _EXPECTED)
    findings = [*known.switches(), *known.links(), *flows, *known.sets(), *known.pairs(), *known.doubtful()]
    if findings:
        return findings
    text = (
        f"{count_of(len(evidence.measured), 'path')}, none is slow; figures of the same path differ by"
        f" {evidence.noise:.1%}"
        " (standard deviation)"
    )
    return [build_pass("bandwidth.suspect", fabric.name, text, _EXPECTED)]


class _SlowLinkReporter:
    """The conclusions about the links of a fabric, with methods that return the findings on slow links, switches and
    pairs.
    """

    def __init__(
        self,
        fabric: Fabric,
        ways: PathTable,
        evidence: Evidence,
        where: typing.Mapping[End, Place],
        rates: LineRates,
        counted: typing.Optional[Counted],
    ) -> None:
        self._counted = counted
        self._fabric, self._ways, self._evidence, self._where = fabric, ways, evidence, where
        self._rates = {(found.rail, node): found for (node, _address), found in rates.items()}

    def _build_suspect_finding(self, subject: str, measured: str, why: str, remedy: str) -> Finding:
        return Finding(
            "bandwidth.suspect", f"{self._fabric.name} {subject}", FAIL, measured, _EXPECTED, why, add_stage(remedy)
        )

    def switches(self) -> typing.Iterator[Finding]:
        for guid in self._evidence.switches:
            name = self._ways.name_of(guid)
            shares = [
                item.share
                for item in self._evidence.measured.values()
                if item.slow and any(guid in self._list_direction_ends(number) for number in item.way)
            ]
            measured = (
                f"paths over this switch carry {min(shares, default=0):.0%} to {max(shares, default=0):.0%} of the"
                " usual rate"
            )
            why = (
                "Paths over many links of this switch are slow. The other links of these paths are good on other paths,"
                " so the cause is the switch, not a cable."
            )
            remedy = (
                f"Check the switch {name}: its power, temperature and firmware. Read the rate of its ports with"
                " iblinkinfo. Repair the switch if a port runs below its rate."
            )
            remedy = ethernet.describe_switch_step(name) if self._ways.hashed else remedy
            yield self._build_suspect_finding(f"switch {name}", measured, why, remedy)

    def links(self) -> typing.Iterator[Finding]:
        slow = self._evidence.slow
        for number in sorted(slow):
            if number in self._ways.flows:
                # told for all flows between two leaves together
                continue
            back = number ^ 1 if number < self._ways.real else number
            if back in slow and back < number:
                continue
            both = back in slow and back != number
            shares = f"{slow[number]:.0%}" + (f" in one direction and {slow[back]:.0%} in the other" if both else "")
            # a cable of a node is called by the node first
            first = min(number, back, key=lambda one: self._ways.directions[one].source in self._ways.switches)
            name = self._ways.name(first).replace(" to ", " <-> ", 1) if both else self._ways.name(number)
            counted = self._by_counters({number}) if self._ways.directions[number].between else CounterEvidence()
            why = f"Each path over this link is slow. {self._describe_cable_hca(number)} {counted.text}".strip()
            yield self._build_suspect_finding(
                name, f"carries {shares} of the usual rate", why, counted.remedy or self._suggest_remedy(number)
            )

    def sets(self) -> typing.Iterator[Finding]:
        for numbers in self._evidence.sets:
            names = join_names([self._ways.name(number) for number in sorted(numbers)], " or ")
            items = [item for item in self._evidence.measured.values() if item.slow and numbers <= set(item.way)]
            measured = (
                f"paths over these links carry {min((item.share for item in items), default=0):.0%} of the usual rate"
            )
            why = (
                "One of these links is slow. The tests cannot distinguish the links: no test between these nodes uses"
                " one of them and otherwise only good links."
            )
            remedy = (
                "Read the error counters and the rate of their ports with ibqueryerrors and iblinkinfo. Swap one cable,"
                " then run stage bandwidth again."
            )
            remedy = ethernet.set_step() if self._ways.hashed else remedy
            counted = self._by_counters(numbers)
            yield self._build_suspect_finding(
                names, measured, f"{why} {counted.text}".strip(), counted.remedy or remedy
            )

    def pairs(self) -> typing.Iterator[Finding]:
        for source, target in self._evidence.pairs:
            one, other = self._ways.ends[source], self._ways.ends[target]
            item = self._evidence.measured[source, target]
            why = (
                "Each link of this path is good on other paths, so no cable is at fault. The cause is the traffic"
                " between these two ends, or a temporary event during the test."
            )
            remedy = (
                "Run stage bandwidth again while the nodes and the fabric are idle. If the pair is still slow, trace"
                f" the path with ibtracert {one.lid} {other.lid} and repair the port whose counters increase."
            )
            remedy = ethernet.pair_step(self._ways, (source, target)) if self._ways.hashed else remedy
            counted = self._counted.describe_test((source, target)) if self._counted else CounterEvidence()
            measured = f"carries {item.share:.0%} of the usual rate"
            yield self._build_suspect_finding(
                self._format_test_ends((source, target)),
                measured,
                f"{why} {counted.text}".strip(),
                counted.remedy or remedy,
            )

    def doubtful(self) -> typing.Iterator[Finding]:
        tests = self._evidence.doubtful
        if not tests:
            return
        names = [self._format_test_ends(test) for test in tests]
        why = (
            f"These paths were slow, but were not measured often enough to determine the cause:"
            f" {join_names(names, ', ')}."
        )
        subject, measured = f"{self._fabric.name} further paths", count_of(len(tests), "slow path")
        yield Finding(
            "bandwidth.suspect",
            subject,
            UNKNOWN,
            measured,
            _EXPECTED,
            why,
            "Follow the remedies of the other findings bandwidth.suspect, then run stage bandwidth again.",
        )

    def _format_test_ends(self, test: Test) -> str:
        one, other = (self._ways.ends[end] for end in test)
        if one.rail == other.rail:
            return f"{one.node} -> {other.node} rail {one.rail}"
        return f"{one.node} rail {one.rail} -> {other.node} rail {other.rail}"

    def _by_counters(self, numbers: typing.AbstractSet[int]) -> CounterEvidence:
        """Return the conclusion from the port counters on a path over these directions; empty without counters.

        :param numbers: directions of links, as indices in ``PathTable.directions``
        """
        return self._counted.collect_of(numbers) if self._counted else CounterEvidence()

    def _list_direction_ends(self, number: int) -> tuple[str, str]:
        direction = self._ways.directions[number]
        return direction.source, direction.target

    def _find_cable_end(self, number: int) -> typing.Optional[End]:
        """Return the rail and the node of the HCA port at one end of a link, or None for a link between two switches.

        :param number: index in ``PathTable.directions`` of one direction of the link
        """
        found = self._ways.end_of(number)
        return None if found is None else (found.rail, found.node)

    def _describe_cable_hca(self, number: int) -> str:
        """Describe the HCA at a slow cable and its PCIe link, as far as they are known. For a link between switches,
        report that the other links on the slow paths are good.

        :param number: index in ``PathTable.directions`` of one direction of the slow link
        """
        end = self._find_cable_end(number)
        if end is None:
            return "The other links of these paths are good on other paths."
        words = []
        place, found = self._where.get(end), self._rates.get(end)
        if place is not None:
            words.append(f"The cause is the cable of {place.node} {place.hca}, or a component behind the cable.")
        pcie = found.pcie if found is not None else None
        if pcie is not None and pcie.trained_down:
            words.append(
                f"The PCIe link of this HCA runs at {pcie.trained} but supports {pcie.text}, which explains the loss."
            )
        elif pcie is not None and pcie.now is not None:
            words.append(
                f"The PCIe link of this HCA runs at the highest rate that it supports ({pcie.trained}), so it does not"
                " explain the loss."
            )
        return " ".join(words)

    def _suggest_remedy(self, number: int) -> str:
        end = self._find_cable_end(number)
        if self._ways.directions[number].between:
            return (
                "Check the uplinks of both leaves with iblinkinfo and ibqueryerrors, and repair an uplink that is"
                " slow or down. If all are good, too many flows share an uplink: enable adaptive routing in the"
                " subnet manager."
            )
        if end is None:
            return "Check both ports with ibqueryerrors and iblinkinfo. Reseat the cable, then swap the cable."
        found = self._rates.get(end)
        if found is not None and found.pcie is not None and found.pcie.trained_down:
            return (
                f"Reseat the HCA {found.hca} of {end[1]}, or move it to another slot, as the finding bandwidth.link of"
                " this HCA describes."
            )
        if self._ways.hashed:
            return ethernet.describe_cable_step(self._ways, number)
        return (
            f"On {end[1]}, check the counters of the port and the NUMA node of the pod. Reseat the cable. If the link"
            " is still slow, swap the cable, then the HCA."
        )
