# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of the ports of an InfiniBand fabric, and two readings of them. Times are in seconds. GUIDs are 0x
and 16 hex digits in lower case.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.fabric import COUNTERS, FABRIC_PORTS, AnyLid, Guid, SwitchPort
from ..boundary.numbers import Count, Counter, Seconds
from ..boundary.words import Word


@dataclasses.dataclass(frozen=True)
class PortErrors:
    """Error counters of a port that are not 0.

    :ivar guid: GUID of the switch, or of the port of an HCA
    :ivar port: port number
    :ivar counters: values by their names in PortCounters, such as SymbolErrorCounter
    :ivar wide: whether the counters have 64 bits. The older ones have 16, 8 or 4 bits and stop at their maximum
    """

    guid: Guid
    port: SwitchPort
    counters: typing.Annotated[dict[Word, Counter], COUNTERS]
    wide: bool = False


@dataclasses.dataclass(frozen=True)
class UnreadPort:
    """A port that did not answer a query for its counters.

    :ivar lid: LID of the switch, or of the port of an HCA
    :ivar port: port number; 255 means all ports of the node
    """

    lid: AnyLid
    port: SwitchPort


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """One reading of the error counters of a whole fabric.

    :ivar ports: ports with an error counter that is not 0
    :ivar checked: number of ports that were read
    :ivar failures: number of queries without an answer
    :ivar unread: ports whose queries failed, if the tool named them
    """

    ports: typing.Annotated[tuple[PortErrors, ...], FABRIC_PORTS]
    checked: Count
    failures: Count = 0
    unread: typing.Annotated[tuple[UnreadPort, ...], FABRIC_PORTS] = ()


@dataclasses.dataclass(frozen=True)
class SeenErrors:
    """Two readings of the error counters of all ports of a fabric, from which their growth is computed.

    :ivar first: first reading; None if it is missing
    :ivar later: second reading; None if it is missing
    :ivar seconds: time between the readings
    :ivar error: why a reading is missing; None if both exist
    """

    EITHER = (("first", "later"), ("error",))

    first: typing.Optional[ErrorReport] = None
    later: typing.Optional[ErrorReport] = None
    seconds: Seconds = 0.0
    error: typing.Optional[str] = None
