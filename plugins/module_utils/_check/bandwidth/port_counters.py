# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, what the counters of the ports say where the figures alone name no link: which port counted errors,
which waited, and which uplinks the data took. That last is seen also of switches whose routing nobody knows.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.bandwidth.floors import gbps
from ..._analysis.fleet.routes import listed
from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.port_counters import Port, list_uplinks
from ..._model.infiniband.counters import BITS, RCV_DATA, XMIT_DATA, XMIT_WAIT, PortGrowth
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.bandwidth import CountedPair
from ..._model.run.findings import FAIL, WARN, Finding, ok

#: of management datagrams, not of what was measured; and of multicast that came back, which is harmless
_OTHERS = ("QP1Dropped", "VL15Dropped", "PortRcvSwitchRelayErrors")
_ERRORS = tuple(name for name in BITS if name not in (XMIT_DATA, RCV_DATA, XMIT_WAIT, *_OTHERS))
#: counted by the receiver, of the link into its port
_OF_LINK = (
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
)
#: of all ticks in which the ports in question waited: one with less is not named
_WAITED = 0.10
#: of the data that a test sent: one uplink that carried so much took all of it, and others may have sent more; and less
#: than this is not named
_ALL, _NAMED = 0.80, 0.10
#: in units of 4 octets: of less than 40 MB nothing is told, since others may send as much
_LEAST_DATA = 10_000_000
#: what says how an NVIDIA subnet manager routes; adaptively, unless somebody changed it (docs.nvidia.com, InfiniBand
#: Cluster Bring-up Procedure)
_CONFIGURATION = (
    "routing_engine (ar_updn and the like are adaptive), ar_mode and ar_sl_mask in the subnet manager's opensm.conf,"
    " or UFM"
)
#: ports that are named of each kind
_MOST = 4


@dataclasses.dataclass(frozen=True)
class CounterEvidence:
    """For a finding. remedy: empty where the counters name no port."""

    text: str = ""
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class UplinkShare:
    """The share of a test's data that the uplinks of a leaf carried: by direction, out of the leaf or into it."""

    shares: dict[int, float]

    @property
    def alone(self) -> typing.Optional[int]:
        """Return the one that took all of it."""
        number = max(self.shares, key=lambda one: self.shares[one], default=None)
        return number if number is not None and self.shares[number] >= _ALL else None

    @property
    def spread(self) -> bool:
        """No uplink took all, and all of them did."""
        return self.alone is None and sum(self.shares.values()) >= _ALL

    def text(self, name: typing.Callable[[int], str]) -> str:
        """:param name: of a direction"""
        named = sorted(
            (number for number, share in self.shares.items() if share >= _NAMED),
            key=lambda number: -self.shares[number],
        )
        if not named:
            return (
                f"{sum(share > 0.01 for share in self.shares.values())} uplinks, none with more than"
                f" {max(self.shares.values(), default=0):.0%}"
            )
        return ", ".join(f"{name(number)} ({self.shares[number]:.0%})" for number in named)


class Counted:
    """The pairs of a fabric that were measured with counters."""

    def __init__(
        self, fabric: Fabric, ways: PathTable, pairs: typing.Iterable[CountedPair], could_be: typing.Mapping[Port, str]
    ) -> None:
        """:param could_be: what links below their capability could be, by the port that says so"""
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
        """Describe the counters of the ports on the path of the slowest test of these directions."""
        if not self._pairs:
            return CounterEvidence()
        for test, pair in self._pairs.items():
            if numbers and numbers <= set(self._ways.way(*test) or ()):
                return self._explain(test, pair)
        return CounterEvidence(
            "The counters of its ports were not read before and after: this is done for the slowest answers alone."
        )

    def of_test(self, test: Test) -> CounterEvidence:
        """Describe the counters of the ports on the path of a test."""
        return self._explain(test, self._pairs[test]) if test in self._pairs else CounterEvidence()

    # what one pair shows

    def _explain(self, test: Test, pair: CountedPair) -> CounterEvidence:
        slower = self._slower(test, pair)
        if not pair.ports:
            by_hand = (
                "Read them by hand before and after a test: perfquery -l LID PORTS and perfquery -xl LID PORTS, on a"
                " node of the fabric, as root."
            )
            return CounterEvidence(
                " ".join([f"The counters of its ports were not read before and after: {pair.why}.", *slower]),
                by_hand if is_infiniband(self._fabric) else "",
            )
        read = [port for port in pair.ports if not port.why]
        again = (
            f"carried {gbps(pair.average_gbps)}"
            if pair.average_gbps is not None and not pair.why
            else f"gave no figure ({pair.why})"
        )
        words = [
            f"Measured once more, {pair.client} -> {pair.server} {again}, with the counters of {len(read)} ports read"
            f" before and after ({pair.seconds:g} s)."
        ]
        errors, waits = self._errors(read), self._waits(read)
        words += [*errors[0], *waits[0], *slower, *self._way(test, pair)]
        if not errors[0] and not waits[0] and read:
            words.append("No error counter of these ports rose, and none of them waited to send.")
        words += self._doubts(pair)
        return CounterEvidence(
            " ".join(words), next((remedy for remedy in (errors[1], self._mend(slower), waits[1]) if remedy), "")
        )

    def _name(self, port: PortGrowth) -> str:
        """Name a port, with the other end of its link."""
        at = (port.guid, port.port)
        if at not in self._links:
            return f"{self._ways.name_of(port.guid)} port {port.port}"
        near, far = self._ways.name(self._links[at]).split(" to ", 1)
        return f"{near} (to {far})"

    def _errors(self, ports: typing.Sequence[PortGrowth]) -> tuple[list[str], str]:
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
            f"{self._name(port)}: {', '.join(f'{name} +{port.grown[name]}' for name in names)}" for port, names in found
        ]
        more = f" and {len(said) - _MOST} more" if len(said) > _MOST else ""
        port, names = found[0]
        name = self._name(port)
        if any(one in _OF_LINK for one in names):
            remedy = (
                f"Clean and seat the cable at {name} at both ends, then swap it; if the errors stay, it is the port."
            )
        elif "PortXmitDiscards" in names:
            remedy = (
                f"Look behind {name}: it drops what the other end does not take. See that port and its node with"
                " ibqueryerrors --details."
            )
        else:
            remedy = f"Look at {name} with ibqueryerrors --details, and follow these errors against the traffic."
        return [f"Errors were counted meanwhile: {'; '.join(said[:_MOST])}{more}."], remedy

    def _waits(self, ports: typing.Sequence[PortGrowth]) -> tuple[list[str], str]:
        known = [(port.rise(XMIT_WAIT) or 0, port) for port in ports]
        total = sum(rise for rise, _port in known)
        found = sorted(
            ((rise, port) for rise, port in known if total and rise >= _WAITED * total), key=lambda item: -item[0]
        )[:_MOST]
        if not found:
            return [], ""
        said = [f"{self._name(port)} +{rise}, {rise / total:.0%} of all" for rise, port in found]
        text = (
            f"Ports that had data and could not send it (ticks of PortXmitWait): {'; '.join(said)}. What such a port"
            " waits for is behind it."
        )
        return (
            [text],
            (
                f"Look behind {self._name(found[0][1])}: the port at the other end of that link took too little, or a"
                " port further on did."
            ),
        )

    def _slower(self, test: Test, pair: CountedPair) -> list[str]:
        """Links in question that run at less than their peers, or than they could."""
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
                    f"Of the uplinks of {self._ways.name_of(leaf)}, which run at {most:g} Gb/s, these run at less:"
                    f" {listed(slow, ', ')}."
                )
        below = [(port.guid, port.port) for port in pair.ports if (port.guid, port.port) in self._could_be]
        if below:
            said = [
                f"{self._ways.name(self._links[at]) if at in self._links else self._ways.name_of(at[0])}, could be"
                f" {self._could_be[at]}"
                for at in below
            ]
            words.append(f"Below what both of its ends can: {listed(said, '; ')}.")
        return words

    @staticmethod
    def _mend(slower: typing.Sequence[str]) -> str:
        return (
            "See with iblinkinfo why these links run at less than they could; seat their cables anew, then swap them."
            if slower
            else ""
        )

    def _way(self, test: Test, pair: CountedPair) -> list[str]:
        """Describe the uplinks that the data took."""
        words = []
        for end, verb in ((0, "left"), (1, "came to")):
            carried = self.carried(test, pair, end)
            leaf = self._ways.leaf(test[end])
            if carried is None or leaf is None or not (carried.spread or carried.alone is not None):
                continue
            ports = carried.text(self._near_port if end == 0 else self._far_port)
            words.append(f"{verb} {self._ways.name_of(leaf)} by {ports}")
        if not words:
            return []
        text = f"The data {' and '.join(words)}."
        carried = self.carried(test, pair, 0)
        if self._ways.spread and carried is not None and carried.alone is not None and self._fabric.routing is None:
            text += (
                " One uplink took it all, as where switches do not choose: if they don't, say routing: static in the"
                " intent, and the link can be named."
            )
        return [text]

    def carried(self, test: Test, pair: CountedPair, end: int) -> typing.Optional[UplinkShare]:
        """Return the uplinks of the leaf of one end that took what was sent; None where that can't be told.

        :param end: 0: of the client's leaf, out of it; 1: of the server's, into it. The two directions of a link are an
            even number and the next one
        """
        leaf = self._ways.leaf(test[end])
        if pair.why or leaf is None or self._ways.leaf(test[0]) == self._ways.leaf(test[1]):
            return None
        ports = {(port.guid, port.port): port for port in pair.ports}
        cable = self._ways.directions[self._ways.up(test[0]) if end == 0 else self._ways.down(test[1])]
        sent = self._rise(ports, cable, end == 0)
        if sent is None or sent < _LEAST_DATA:
            return None
        shares = {}
        for number in (up ^ end for up in list_uplinks(self._ways, leaf)):
            rise = self._rise(ports, self._ways.directions[number], end == 1)
            if rise is None:
                return None
            shares[number] = rise / sent
        return UplinkShare(shares)

    @staticmethod
    def _rise(ports: typing.Mapping[Port, PortGrowth], direction: typing.Any, into: bool) -> typing.Optional[int]:
        """Return the data that went over a direction, by the port that received it or that sent it: the one on the
        leaf's side first.

        :param into: the leaf is its target
        """
        ends = [
            ((direction.source, direction.source_port), XMIT_DATA),
            ((direction.target, direction.target_port), RCV_DATA),
        ]
        for at, name in reversed(ends) if into else ends:
            rise = ports[at].rise(name) if at in ports else None
            if rise is not None:
                return rise
        return None

    def _doubts(self, pair: CountedPair) -> list[str]:
        """Ports of which not all is known."""
        words = []
        unread = [f"{self._name(port)} ({port.why})" for port in pair.ports if port.why]
        cleared = [
            self._name(port)
            for port in pair.ports
            if any(name in (*_ERRORS, XMIT_WAIT, XMIT_DATA) for name in port.cleared)
        ]
        stuck = [
            f"{self._name(port)} {', '.join(its)}"
            for port in pair.ports
            for its in [[one for one in port.stuck if one in (*_ERRORS, XMIT_WAIT)]]
            if its
        ]
        mute = [self._name(port) for port in pair.ports if not port.why and XMIT_WAIT in port.lacking]
        if unread:
            words.append(f"Not read, so not known: {listed(unread, '; ')}.")
        if cleared:
            words.append(
                "Somebody cleared these counters meanwhile, so that what they counted before that is not known:"
                f" {listed(cleared, '; ')}."
            )
        if stuck:
            words.append(
                "At their maximum, where they can't rise (ibqueryerrors --clear-errors clears them):"
                f" {listed(stuck, '; ')}."
            )
        if mute:
            words.append(f"These do not count how long they wait: {listed(mute, '; ')}.")
        return words

    # what all of them show of the routing

    def routing(self) -> list[Finding]:
        """Compare the routing of the intent with the counters."""
        out = [
            (test, pair, carried)
            for test, pair in self._pairs.items()
            for carried in [self.carried(test, pair, 0)]
            if carried is not None
        ]
        alone = [(test, pair, carried) for test, pair, carried in out if carried.alone is not None]
        said = f"The intent says routing: {self._fabric.routing}"
        if self._fabric.routing == "static":
            spread = [(pair, carried) for _test, pair, carried in out if carried.spread]
            if spread:
                why = (
                    f"{said}, and what one test sent left its leaf over several uplinks: {self._list_shares(spread)}."
                    " So links that are named may not be those in use."
                )
                remedy = (
                    f"See {_CONFIGURATION}. If it routes adaptively, say routing: adaptive. Then run the stage again."
                )
                return [
                    self._finding(
                        FAIL,
                        f"several uplinks in {len(spread)} of {len(out)} tests",
                        "one uplink, by the tables",
                        why,
                        remedy,
                    )
                ]
            others = [
                (pair, carried)
                for test, pair, carried in alone
                if not self._ways.spread and carried.alone not in (self._ways.way(*test) or ())
            ]
            if others:
                why = (
                    f"{said}, and data took other uplinks than the tables have that were read:"
                    f" {self._list_shares(others)}. The switches were given others since."
                )
                remedy = (
                    "Run the stages fabric and bandwidth again, in one run; if it stays, compare with ibtracert"
                    " SOURCE-LID DESTINATION-LID."
                )
                return [
                    self._finding(
                        FAIL,
                        f"another uplink in {len(others)} of {len(out)} tests",
                        "one uplink, by the tables",
                        why,
                        remedy,
                    )
                ]
        if self._fabric.routing == "adaptive" and len(alone) > 1 and len(alone) == len(out):
            why = (
                f"{said}, and what each test sent left its leaf over one uplink alone, as with static routing:"
                f" {self._list_shares(item[1:] for item in alone)}."
            )
            remedy = (
                f"See {_CONFIGURATION}. If it does not route adaptively, say routing: static. No action if its switches"
                " keep a burst of packets on one port (bounded), or if service level 0, on which tests run, is not"
                " routed so."
            )
            return [self._finding(WARN, f"one uplink in {len(alone)} tests", "several uplinks", why, remedy)]
        several = sum(carried.spread for _test, _pair, carried in out)
        # of one that can't be told there is no proof
        if not out or len(alone) + several < len(out) or (self._fabric.routing == "adaptive" and not several):
            return []
        text = (
            f"{several} of {len(out)} tests took several uplinks"
            if several
            else f"{len(out)} tests took one uplink each"
        )
        said = (
            f"routing: {self._fabric.routing}, as the intent says"
            if self._fabric.routing
            else "anything: the intent does not say it (routing)"
        )
        return [ok("bandwidth.routing", self._fabric.name, text, said)]

    def other_lids(self, lmc: typing.Optional[int]) -> list[Finding]:
        """Report ports with several LIDs: the tests take the path to the first one only.

        :param lmc: of the ports; None: not known
        """
        if not lmc or self._ways.spread:
            return []
        measured, expected = (
            f"LMC {lmc}: {2**lmc} LIDs a port, of which tests use the first",
            "one LID a port, or traffic to the first",
        )
        why = (
            "Each LID has ways of its own in the forwarding tables. perftest and NCCL take the first one, so what is"
            " said of links holds for that."
        )
        remedy = (
            "No action if nothing takes others. MPI with UCX does where UCX_IB_LID_PATH_BITS is set: those links were"
            " not measured on these ways."
        )
        return [Finding("bandwidth.routing", f"{self._fabric.name} LMC", WARN, measured, expected, why, remedy)]

    def _list_shares(self, found: typing.Iterable[tuple[CountedPair, UplinkShare]]) -> str:
        return listed(
            [f"{pair.client} -> {pair.server} by {carried.text(self._leaf_port)}" for pair, carried in found], "; "
        )

    def _near_port(self, number: int) -> str:
        return f"port {self._ways.directions[number].source_port}"

    def _far_port(self, number: int) -> str:
        return f"port {self._ways.directions[number].target_port}"

    def _leaf_port(self, number: int) -> str:
        return self._ways.name(number).split(" to ", 1)[0]

    def _finding(
        self, status: typing.Literal["fail", "warn"], measured: str, expected: str, why: str, remedy: str
    ) -> Finding:
        return Finding("bandwidth.routing", self._fabric.name, status, measured, expected, why, remedy)
