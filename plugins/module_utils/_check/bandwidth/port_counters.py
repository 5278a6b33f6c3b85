# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe the counters of the ports on the path of a slow test: errors, wait times, and the uplinks that carried the
data. They are read if the bandwidth alone does not identify a slow link.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.bandwidth.floors import format_gbps
from ..._analysis.fleet.paths.routes import join_names
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.port_counters import Port, list_uplinks
from ..._model.base.phrases import format_clause
from ..._model.infiniband.counters import BITS, RCV_DATA, XMIT_DATA, XMIT_WAIT, PortGrowth
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import CountedPair
from ..._model.run.findings import Finding
from .routing import check_routing
from .uplink_shares import compute_shares

#: counters of management datagrams, which are not measured, and of multicast that came back, which is harmless
_OTHERS = ("QP1Dropped", "VL15Dropped", "PortRcvSwitchRelayErrors")
_ERRORS = tuple(name for name in BITS if name not in (XMIT_DATA, RCV_DATA, XMIT_WAIT, *_OTHERS))
#: counters of the receiver for the link into its port
_OF_LINK = (
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
)
#: part of all ticks in which ports waited; a port with less is not named
_WAITED = 0.10
#: ports that are named of each kind
_MOST = 4


@dataclasses.dataclass(frozen=True)
class CounterEvidence:
    """The conclusion from the port counters of a test.

    :ivar text: conclusion, as text for a finding
    :ivar remedy: next step of the user; empty if the counters identify no port
    """

    text: str = ""
    remedy: str = ""


class Counted:
    """The pairs of a fabric that were measured while port counters were read, with the conclusions from the
    counters.
    """

    def __init__(
        self, fabric: Fabric, ways: PathTable, pairs: typing.Iterable[CountedPair], could_be: typing.Mapping[Port, str]
    ) -> None:
        """Assign each pair to its test. Pairs that match no test are ignored.

        :param ways: paths between the ports
        :param pairs: pairs that were measured with counters
        :param could_be: possible rate of each link that runs below its capability, by the port that reports it
        """
        self._fabric, self._ways, self._could_be = fabric, ways, could_be
        self._pairs: dict[Test, CountedPair] = {}
        for pair in pairs:
            test = ways.test(pair.rail, pair.client, pair.server, pair.server_rail)
            if test is not None:
                self._pairs[test] = pair
        self._links: dict[Port, int] = {
            (it.source, it.source_port): number for number, it in enumerate(ways.directions[: ways.real])
        }

    def collect_of(self, numbers: typing.AbstractSet[int]) -> CounterEvidence:
        """Describe the counters of the ports on the path of a test that uses all of these directions.

        If no such test was measured with counters, the result says so. The result is empty if no pair of the fabric was
        measured with counters.

        :param numbers: directions of links, as indices in ``PathTable.directions``
        """
        if not self._pairs:
            return CounterEvidence()
        for test, pair in self._pairs.items():
            if numbers and numbers <= set(self._ways.way(*test) or ()):
                return self._describe_pair(test, pair)
        return CounterEvidence(
            "The counters of its ports were not read before and after a test: they are read only for the slowest tests."
        )

    def check_routing(self) -> list[Finding]:
        """Return the finding that compares the routing in the intent with the uplinks that the tests used.

        The list is empty if the uplinks prove nothing.
        """
        return check_routing(self._fabric, self._ways, self._pairs)

    def describe_test(self, test: Test) -> CounterEvidence:
        """Describe the counters of the ports on the path of a test. The result is empty if the test was not measured
        with counters.

        :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
        """
        return self._describe_pair(test, self._pairs[test]) if test in self._pairs else CounterEvidence()

    def _describe_pair(self, test: Test, pair: CountedPair) -> CounterEvidence:
        slower = self._list_slow_links(test, pair)
        if not pair.ports:
            by_hand = (
                "Read the counters by hand before and after a test: run perfquery -l LID PORTS and perfquery -xl LID"
                " PORTS as root on a node of the fabric."
            )
            return CounterEvidence(
                " ".join(
                    [
                        f"The counters of its ports were not read before and after a test: {format_clause(pair.why)}.",
                        *slower,
                    ]
                ),
                by_hand if is_infiniband(self._fabric) else "",
            )
        read = [port for port in pair.ports if not port.why]
        again = (
            f"carried {format_gbps(pair.average_gbps)}"
            if pair.average_gbps is not None and not pair.why
            else f"reported no figure ({pair.why})"
        )
        words = [
            f"In a repeated test, {pair.client} -> {pair.server} {again}. The counters of {len(read)} ports were read"
            f" before and after the test ({pair.seconds:g} s)."
        ]
        errors, waits = self._describe_errors(read), self._describe_waits(read)
        words += [*errors[0], *waits[0], *slower, *self._describe_uplinks(test, pair)]
        if not errors[0] and not waits[0] and read:
            words.append("No error counter of these ports increased, and none of the ports waited to send.")
        words += self._list_unknown(pair)
        return CounterEvidence(
            " ".join(words), next((remedy for remedy in (errors[1], self._find_remedy(slower), waits[1]) if remedy), "")
        )

    def _name_port(self, port: PortGrowth) -> str:
        """Return the name of a port, with the other end of its link if it is known."""
        at = (port.guid, port.port)
        if at not in self._links:
            return f"{self._ways.name_of(port.guid)} port {port.port}"
        near, far = self._ways.name(self._links[at]).split(" to ", 1)
        return f"{near} (to {far})"

    def _describe_errors(self, ports: typing.Sequence[PortGrowth]) -> tuple[list[str], str]:
        found = [(port, [name for name in _ERRORS if port.grown.get(name)]) for port in ports]
        found = [(port, names) for port, names in found if names]
        if not found:
            return [], ""
        found.sort(
            key=lambda item: (
                not any(name in _OF_LINK for name in item[1]),
                -sum(item[0].grown[name] for name in item[1]),
            )
        )
        said = [
            f"{self._name_port(port)}: {', '.join(f'{name} +{port.grown[name]}' for name in names)}"
            for port, names in found
        ]
        more = f" and {len(said) - _MOST} more" if len(said) > _MOST else ""
        port, names = found[0]
        name = self._name_port(port)
        if any(one in _OF_LINK for one in names):
            remedy = (
                f"Clean and reseat the cable at {name} at both ends, then swap the cable. If the errors continue, the"
                " port is faulty."
            )
        elif "PortXmitDiscards" in names:
            remedy = (
                f"Check the port at the other end of the link of {name}: {name} drops packets that the other end does"
                " not accept. Read the counters of that other port and of its node with ibqueryerrors --details, and"
                " correct the cause that they name."
            )
        else:
            remedy = (
                f"Read the counters of {name} with ibqueryerrors --details, trace these errors against the direction"
                " of the traffic, and repair the first link with such errors."
            )
        return [f"These error counters increased during the test: {'; '.join(said[:_MOST])}{more}."], remedy

    def _describe_waits(self, ports: typing.Sequence[PortGrowth]) -> tuple[list[str], str]:
        known = [(port.rise(XMIT_WAIT) or 0, port) for port in ports]
        total = sum(rise for rise, _port in known)
        found = sorted(
            ((rise, port) for rise, port in known if total and rise >= _WAITED * total), key=lambda item: -item[0]
        )[:_MOST]
        if not found:
            return [], ""
        said = [f"{self._name_port(port)} +{rise}, {rise / total:.0%} of all" for rise, port in found]
        text = (
            f"These ports had data but could not send it (ticks of PortXmitWait): {'; '.join(said)}. The cause is at"
            " the other end of their links, or further on."
        )
        return (
            [text],
            (
                f"Check the path beyond {self._name_port(found[0][1])}: the port at the other end of that link, or a"
                " port further on, accepts data too slowly. Repair the HCA or the link of this port."
            ),
        )

    def _list_slow_links(self, test: Test, pair: CountedPair) -> list[str]:
        """Return sentences with the links on the path that are slower than the other uplinks of their leaf, or slower
        than both of their ends support. The list is empty if there are no such links.

        :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
        :param pair: pair that was measured with counters
        """
        words = []
        for leaf in dict.fromkeys(
            leaf
            for leaf in map(self._ways.leaf, test)
            if leaf is not None and self._ways.leaf(test[0]) != self._ways.leaf(test[1])
        ):
            rates = {number: self._ways.directions[number].gbps for number in list_uplinks(self._ways, leaf)}
            most = max((rate for rate in rates.values() if rate), default=None)
            slow = [
                f"{self._ways.name(number)} at {rate:g} Gb/s"
                for number, rate in rates.items()
                if rate and most and rate < most
            ]
            if slow:
                words.append(
                    f"The uplinks of {self._ways.name_of(leaf)} run at {most:g} Gb/s, but these uplinks run at a lower"
                    f" rate: {join_names(slow, ', ')}."
                )
        below = [(port.guid, port.port) for port in pair.ports if (port.guid, port.port) in self._could_be]
        if below:
            said = [
                f"{self._ways.name(self._links[at]) if at in self._links else self._ways.name_of(at[0])}, could be"
                f" {self._could_be[at]}"
                for at in below
            ]
            words.append(f"These links run below the rate that both of their ends support: {join_names(said, '; ')}.")
        return words

    @staticmethod
    def _find_remedy(slower: typing.Sequence[str]) -> str:
        return (
            (
                "Run iblinkinfo, and set a limit of the rate or the width at these ports back to the rate that they"
                " support. Reseat their cables, then swap the cables."
            )
            if slower
            else ""
        )

    def _describe_uplinks(self, test: Test, pair: CountedPair) -> list[str]:
        """Return one text with the share of a test's data that each uplink of the two leaves carried. Return an empty
        list if the counters do not show it.

        :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
        """
        words = []
        for end, verb in ((0, "left"), (1, "came to")):
            carried = compute_shares(self._ways, test, pair, end)
            leaf = self._ways.leaf(test[end])
            if carried is None or leaf is None or not (carried.spread or carried.alone is not None):
                continue
            ports = carried.text(self._near_port if end == 0 else self._far_port)
            words.append(f"{verb} {self._ways.name_of(leaf)} through {ports}")
        if not words:
            return []
        text = f"The data {' and '.join(words)}."
        carried = compute_shares(self._ways, test, pair, 0)
        if self._ways.spread and carried is not None and carried.alone is not None and self._fabric.routing is None:
            text += (
                " One uplink carried all data, as with static routing. If the switches route statically, set routing:"
                " static in the intent, so that stage bandwidth can name the link."
            )
        return [text]

    def _list_unknown(self, pair: CountedPair) -> list[str]:
        """Return a sentence for each reason why counters of ports are not fully known, with these ports: not read,
        cleared meanwhile, at their maximum, or without a wait counter.
        """
        words = []
        unread = [f"{self._name_port(port)} ({port.why})" for port in pair.ports if port.why]
        cleared = [
            self._name_port(port)
            for port in pair.ports
            if any(name in (*_ERRORS, XMIT_WAIT, XMIT_DATA) for name in port.cleared)
        ]
        stuck = [
            f"{self._name_port(port)} {', '.join(its)}"
            for port in pair.ports
            for its in [[one for one in port.stuck if one in (*_ERRORS, XMIT_WAIT)]]
            if its
        ]
        mute = [self._name_port(port) for port in pair.ports if not port.why and XMIT_WAIT in port.lacking]
        if unread:
            words.append(f"The counters of these ports could not be read: {join_names(unread, '; ')}.")
        if cleared:
            words.append(
                "Counters of these ports were cleared during the test, so their values before that are unknown:"
                f" {join_names(cleared, '; ')}."
            )
        if stuck:
            words.append(
                "These counters are at their maximum and cannot increase (ibqueryerrors --clear-errors clears them):"
                f" {join_names(stuck, '; ')}."
            )
        if mute:
            words.append(f"These ports do not report how long they wait (PortXmitWait): {join_names(mute, '; ')}.")
        return words

    def _near_port(self, number: int) -> str:
        return f"port {self._ways.directions[number].source_port}"

    def _far_port(self, number: int) -> str:
        return f"port {self._ways.directions[number].target_port}"
