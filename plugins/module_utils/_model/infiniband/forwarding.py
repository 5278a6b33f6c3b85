# SPDX-License-Identifier: GPL-3.0-or-later

"""Forwarding tables of the switches of an InfiniBand fabric: through which port a switch sends what goes to a LID.

InfiniBand routes by destination: all that goes to one LID from one switch takes one way, unless the switches route
adaptively.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.fabric import SWITCHES, Guid
from ..boundary.form import Bound, Range

#: 16 bits of LIDs, in blocks of 64 [InfiniBand Architecture Specification 1.5, 14.2.5.10]
LIDS, BLOCKS, BLOCK = (
    Bound("LIDs of a table", 1 << 16),
    Bound("blocks of a table", 1 << 10),
    Range("a block of a table", 0, (1 << 10) - 1),
)
#: of a LID of which the table says nothing: no way, or the tool did not tell
UNTOLD = 255


@dataclasses.dataclass(frozen=True)
class ForwardingTable:
    """The unicast table of one switch.

    :ivar guid: of the switch, 0x and 16 hex digits
    :ivar ports: for each LID from 0 on, the number of the port out of the switch; 0 is the switch itself, UNTOLD is not
        known
    :ivar unread: numbers of the blocks of 64 LIDs that the switch did not answer for; what is in ``ports`` for these is
        UNTOLD
    """

    guid: Guid
    ports: typing.Annotated[bytes, LIDS]
    unread: typing.Annotated[tuple[typing.Annotated[int, BLOCK], ...], BLOCKS] = ()

    def port(self, lid: int) -> typing.Optional[int]:
        """Return the port out of the switch to a LID, or None."""
        told = self.ports[lid] if 0 < lid < len(self.ports) else UNTOLD
        return None if told == UNTOLD else told


@dataclasses.dataclass(frozen=True)
class SeenForwarding:
    """The tables of all switches of a fabric, as far as they could be read. error: why there are none."""

    tables: typing.Annotated[tuple[ForwardingTable, ...], SWITCHES] = ()
    error: typing.Optional[str] = None
