# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of the ports of an InfiniBand fabric before and after a test, and their growth.

Counters of PortCounters stop at their maximum. PortCountersExtended provides 64-bit versions of those counters that the
port supports (InfiniBand Architecture Specification 1.3, 16.1.3.5 and 16.1.4.11; the widths are those of
libibmad/fields.c in rdma-core). A counter that is lower than before was cleared between the readings.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.fabric import COUNTERS, Guid, SwitchPort
from ..boundary.numbers import Counter
from ..boundary.words import Word

#: counted by the port in 4 octets, and in ticks of a length that is the device's own
XMIT_DATA, RCV_DATA, XMIT_WAIT = "PortXmitData", "PortRcvData", "PortXmitWait"
#: bits of each counter of PortCounters that something is made of here
BITS = {
    "SymbolErrorCounter": 16,
    "LinkErrorRecoveryCounter": 8,
    "LinkDownedCounter": 8,
    "PortRcvErrors": 16,
    "PortRcvRemotePhysicalErrors": 16,
    "PortRcvSwitchRelayErrors": 16,
    "PortXmitDiscards": 16,
    "PortXmitConstraintErrors": 8,
    "PortRcvConstraintErrors": 8,
    "LocalLinkIntegrityErrors": 4,
    "ExcessiveBufferOverrunErrors": 4,
    "QP1Dropped": 16,
    "VL15Dropped": 16,
    XMIT_DATA: 32,
    RCV_DATA: 32,
    XMIT_WAIT: 32,
}
WIDE_BITS = 64


@dataclasses.dataclass(frozen=True)
class PortCounters:
    """One reading of a port's counters.

    :ivar lid: LID of the switch, or of the port of an HCA
    :ivar counters: values by their names in PortCounters, without the counters that the port does not have
    :ivar wide: names of the counters with 64 bits
    """

    lid: int
    port: int
    counters: dict[str, int]
    wide: tuple[str, ...] = ()

    def full(self, name: str) -> bool:
        """Return whether a counter has the largest value that it can count to. It stops there, so further growth is
        invisible.

        :param name: name of the counter
        """
        return self.counters[name] >= (1 << (WIDE_BITS if name in self.wide else BITS[name])) - 1


@dataclasses.dataclass(frozen=True)
class PortGrowth:
    """The growth of a port's counters during a test.

    :ivar guid: GUID of the switch, or of the port of an HCA
    :ivar grown: increase by counter name. For a counter that was cleared, the value since then
    :ivar cleared: counters that are lower than before
    :ivar stuck: counters whose increase is not measurable: at their maximum, or without a comparable first reading
    :ivar lacking: counters that the port does not have
    :ivar why: why the counters were not read; empty if they were read
    """

    guid: Guid
    port: SwitchPort
    grown: typing.Annotated[dict[Word, Counter], COUNTERS] = dataclasses.field(default_factory=dict)
    cleared: typing.Annotated[tuple[Word, ...], COUNTERS] = ()
    stuck: typing.Annotated[tuple[Word, ...], COUNTERS] = ()
    lacking: typing.Annotated[tuple[Word, ...], COUNTERS] = ()
    why: str = ""

    def rise(self, name: str) -> typing.Optional[int]:
        """Return the increase of a counter during the test, or None if it is not known."""
        return None if self.why or name in (*self.cleared, *self.stuck, *self.lacking) else self.grown.get(name, 0)


def compute_growth(
    guid: str, port: int, before: typing.Optional[PortCounters], after: typing.Optional[PortCounters], why: str = ""
) -> PortGrowth:
    """Return the growth of a port's counters between two readings. If a reading is missing, the result contains only
    the reason.

    :param guid: GUID of the switch, or of the port of an HCA
    :param port: number of the port on that device
    :param before: first reading; None if it is missing
    :param after: second reading; None if it is missing
    :param why: reason why a reading is missing; ignored if both exist. If it is empty, the port did not respond
    """
    if before is None or after is None:
        return PortGrowth(guid, port, why=why or "the port did not respond")
    grown, cleared, stuck = {}, [], []
    for name, now in after.counters.items():
        earlier = before.counters.get(name)
        if earlier is None or (name in before.wide) != (name in after.wide):
            stuck.append(name)
        elif now < earlier:
            cleared.append(name)
            grown[name] = now
        else:
            if after.full(name):
                stuck.append(name)
            if now > earlier:
                grown[name] = now - earlier
    lacking = tuple(name for name in BITS if name not in after.counters)
    return PortGrowth(
        guid, port, {name: rise for name, rise in grown.items() if rise}, tuple(cleared), tuple(stuck), lacking
    )
