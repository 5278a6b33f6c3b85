# SPDX-License-Identifier: GPL-3.0-or-later

"""The NIC map: which address each host interface has in the pod that gets it (row S2.2). One line each: ``<node>:<host
netdev>:<pod interface>:<ip>``."""

from __future__ import annotations

import dataclasses

from ..boundary.addresses import Address
from ..boundary.devices import Interface
from ..boundary.kubernetes import Subdomain


@dataclasses.dataclass(frozen=True)
class NicLine:
    """One line.

    :ivar netdev: of the node
    :ivar interface: of the pod
    :ivar address: IPv4 or IPv6, in the short form
    """

    node: Subdomain
    netdev: Interface
    interface: Interface
    address: Address

    @property
    def text(self) -> str:
        return f"{self.node}:{self.netdev}:{self.interface}:{self.address}"


@dataclasses.dataclass(frozen=True)
class NicMap:
    """All lines.

    :ivar broken: lines that are none: number, text, what is wrong
    """

    lines: tuple[NicLine, ...]
    broken: tuple[tuple[int, str, str], ...] = ()
