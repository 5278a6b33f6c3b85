# SPDX-License-Identifier: GPL-3.0-or-later

"""The NIC map: the address of each host interface in the pod that gets it. One line each: ``<node>:<host netdev>:<pod
interface>:<ip>``.
"""

from __future__ import annotations

import dataclasses

from ..boundary.addresses import Address
from ..boundary.devices import Interface
from ..boundary.kubernetes import Subdomain


@dataclasses.dataclass(frozen=True)
class NicLine:
    """One line of the NIC map.

    :ivar node: name of the node
    :ivar netdev: interface of the node
    :ivar interface: interface of the pod
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
    """A NIC map: its valid lines and its invalid ones.

    :ivar broken: invalid lines: line number, text, error
    """

    lines: tuple[NicLine, ...]
    broken: tuple[tuple[int, str, str], ...] = ()
