# SPDX-License-Identifier: GPL-3.0-or-later

"""HCA ports, their cables, and the directions of the links between ports and switches."""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class End:
    """An HCA port that takes part in the measurement.

    :ivar node: name of the node
    :ivar rail: rail of the port
    :ivar guid: GUID of the port; on Ethernet the node and its network interface, which are unique as well
    :ivar lid: first LID of the port, which benchmarks use whatever the LMC is; 0 on Ethernet
    """

    node: str
    rail: int
    guid: str
    lid: int


@dataclasses.dataclass(frozen=True)
class Cable:
    """The cable from an HCA port to a switch port on Ethernet, where switch ports have names.

    :ivar interface: network interface of the node
    :ivar port: name of the switch port; empty if unknown
    :ivar gbps: rate of the link in Gb/s; None if unknown
    :ivar unheard: why its switch is unknown; empty if it is known. Each cable without a known switch is modeled with a
        separate switch
    :ivar driver: driver of the PCI function; empty if unknown
    """

    interface: str
    port: str = ""
    gbps: typing.Optional[float] = None
    unheard: str = ""
    driver: str = ""


@dataclasses.dataclass(frozen=True)
class Direction:
    """One direction of a link: the data that its first port sends to its second port.

    :ivar source: GUID of the switch, or of the port of an HCA
    :ivar source_port: port number at the source
    :ivar target: GUID of the switch, or of the port of an HCA, that receives
    :ivar target_port: port number at the target
    :ivar gbps: rate in Gb/s by lanes and speed; None if the tool does not report them
    :ivar between: True for a placeholder that represents all links from one leaf to another, because the link that is
        taken is unknown
    """

    source: str
    source_port: int
    target: str
    target_port: int
    gbps: typing.Optional[float] = None
    between: bool = False
