# SPDX-License-Identifier: GPL-3.0-or-later

"""Forwarding tables of the switches of an InfiniBand fabric: the port through which a switch sends packets to a LID.

InfiniBand routes by destination. All packets from one switch to one LID take the same path, unless the switches route
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
    """The unicast forwarding table of one switch.

    :ivar guid: GUID of the switch, 0x and 16 hex digits
    :ivar ports: output port number for each LID, one byte each, from LID 0 on. 0 is the switch itself; UNTOLD means not
        known
    :ivar unread: numbers of the blocks of 64 LIDs that the switch did not return; their entries in ``ports`` are UNTOLD
    """

    guid: Guid
    ports: typing.Annotated[bytes, LIDS]
    unread: typing.Annotated[tuple[typing.Annotated[int, BLOCK], ...], BLOCKS] = ()

    def port(self, lid: int) -> typing.Optional[int]:
        """Return the output port of the switch for a LID, or None if it is not known."""
        told = self.ports[lid] if 0 < lid < len(self.ports) else UNTOLD
        return None if told == UNTOLD else told


@dataclasses.dataclass(frozen=True)
class SeenForwarding:
    """The forwarding tables of the switches of a fabric.

    :ivar tables: tables of the switches that could be read
    :ivar error: reason why no table could be read; None if at least one table could be read
    """

    tables: typing.Annotated[tuple[ForwardingTable, ...], SWITCHES] = ()
    error: typing.Optional[str] = None
