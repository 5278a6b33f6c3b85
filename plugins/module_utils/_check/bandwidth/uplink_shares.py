# SPDX-License-Identifier: GPL-3.0-or-later

"""The share of a test's data that each uplink of a leaf carried, from the counters of its ports."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.link_coverage_rounds import Test
from ..._analysis.schedule.paths import PathTable
from ..._analysis.schedule.port_counters import Port, list_uplinks
from ..._model.base.phrases import count_of
from ..._model.infiniband.counters import RCV_DATA, XMIT_DATA, PortGrowth
from ..._model.measurement.bandwidth import CountedPair

#: parts of a test's data: an uplink with this part carried all of it, since other traffic counts too; an uplink with
#: less than the second part is not named
_ALL, _NAMED = 0.80, 0.10
#: units of 4 octets: less than 40 MB show nothing, since other traffic may be as much
_LEAST_DATA = 10_000_000


@dataclasses.dataclass(frozen=True)
class UplinkShare:
    """The share of a test's data that each uplink of a leaf carried in one direction.

    :ivar shares: share from 0.0 to 1.0, by the index of the link direction in ``PathTable.directions``
    """

    shares: dict[int, float]

    @property
    def alone(self) -> typing.Optional[int]:
        """Return the index of the link direction that alone carried the data (at least 80 %), or None if no direction
        did.
        """
        number = max(self.shares, key=lambda one: self.shares[one], default=None)
        return number if number is not None and self.shares[number] >= _ALL else None

    @property
    def spread(self) -> bool:
        """Return whether the uplinks carried the data (at least 80 %) only together, and none of them alone."""
        return self.alone is None and sum(self.shares.values()) >= _ALL

    def text(self, name: typing.Callable[[int], str]) -> str:
        """Return the share of each uplink as text, the largest first.

        Uplinks with less than 10 % are left out; if all are, the text has their number and the largest share.

        :param name: function that returns the name of a link direction by its index
        """
        named = sorted(
            (number for number, share in self.shares.items() if share >= _NAMED),
            key=lambda number: -self.shares[number],
        )
        if not named:
            return (
                f"{count_of(sum(share > 0.01 for share in self.shares.values()), 'uplink')}, none with more than"
                f" {max(self.shares.values(), default=0):.0%}"
            )
        return ", ".join(f"{name(number)} ({self.shares[number]:.0%})" for number in named)


def compute_shares(ways: PathTable, test: Test, pair: CountedPair, end: int) -> typing.Optional[UplinkShare]:
    """Return the shares of the uplinks at the leaf of one end, or None if the counters do not show them or both ends
    are on one leaf.

    :param ways: paths between the ports
    :param test: indices in ``PathTable.ends`` of the sending and the receiving HCA port
    :param pair: pair that was measured with counters
    :param end: 0 for the uplinks out of the client's leaf, 1 for the uplinks into the server's leaf
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
    """Return the data that passed over a link in one direction during the test, in units of 4 octets.

    Return None if it is unknown. The counter of the port on the leaf is preferred to that of the port at the other end
    of the link.

    :param ports: changes of the counters during the test, by GUID and number of the port
    :param direction: direction of a link (``Direction`` of link_directions.py)
    :param into: whether the leaf is the target of the direction
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
