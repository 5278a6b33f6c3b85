# SPDX-License-Identifier: GPL-3.0-or-later

"""The share of a test's data that each uplink of a leaf carried, by the counters of its ports."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.port_counters import Port, list_uplinks
from ..._model.infiniband.counters import RCV_DATA, XMIT_DATA, PortGrowth
from ..._model.measurement.bandwidth import CountedPair

#: parts of a test's data: an uplink with this part carried all of it, since other traffic counts too; an uplink with
#: less than the second part is not named
_ALL, _NAMED = 0.80, 0.10
#: units of 4 octets: less than 40 MB show nothing, since other traffic may be as much
_LEAST_DATA = 10_000_000


@dataclasses.dataclass(frozen=True)
class UplinkShare:
    """The share of a test's data that the uplinks of a leaf carried: by direction, out of the leaf or into it."""

    shares: dict[int, float]

    @property
    def alone(self) -> typing.Optional[int]:
        """Return the uplink that carried all data; None where none did."""
        number = max(self.shares, key=lambda one: self.shares[one], default=None)
        return number if number is not None and self.shares[number] >= _ALL else None

    @property
    def spread(self) -> bool:
        """Return whether several uplinks together carried all data."""
        return self.alone is None and sum(self.shares.values()) >= _ALL

    def text(self, name: typing.Callable[[int], str]) -> str:
        """Describe the shares.

        :param name: returns the name of a direction
        """
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


def compute_shares(ways: PathTable, test: Test, pair: CountedPair, end: int) -> typing.Optional[UplinkShare]:
    """Return the shares of the uplinks at the leaf of one end; None where the counters do not show them.

    :param end: 0: the uplinks out of the client's leaf; 1: those into the server's leaf. The two directions of a link
        are an even number and the next one
    """
    leaf = ways.leaf(test[end])
    if pair.why or leaf is None or ways.leaf(test[0]) == ways.leaf(test[1]):
        return None
    ports = {(port.guid, port.port): port for port in pair.ports}
    cable = ways.directions[ways.up(test[0]) if end == 0 else ways.down(test[1])]
    sent = _find_rise(ports, cable, end == 0)
    if sent is None or sent < _LEAST_DATA:
        return None
    shares = {}
    for number in (up ^ end for up in list_uplinks(ways, leaf)):
        rise = _find_rise(ports, ways.directions[number], end == 1)
        if rise is None:
            return None
        shares[number] = rise / sent
    return UplinkShare(shares)


def _find_rise(ports: typing.Mapping[Port, PortGrowth], direction: typing.Any, into: bool) -> typing.Optional[int]:
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
