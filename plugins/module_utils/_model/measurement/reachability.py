# SPDX-License-Identifier: GPL-3.0-or-later

"""Who pings whom with ibping, and what came back. Times in seconds."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import RdmaDevice
from ..boundary.fabric import Lid, Packets, PortNumber
from ..boundary.form import Bound
from ..infiniband.fabric import NODE_PORTS
from ..node.hca import MOST_FUNCTIONS

SERVERS = Bound("servers of a node", MOST_FUNCTIONS)
#: from all ports of a node; 16 of them to all of 4,096 nodes
PINGS = Bound("destinations of a node", 1 << 20)


@dataclasses.dataclass(frozen=True)
class Ping:
    """One ibping run, client side: from a port of this node to a LID.

    :ivar transmitted: packets
    :ivar received: packets; its own exit code and round-trip times say nothing (they are wrong in every version)
    :ivar resent: how often a packet was sent again because nothing had come back in time: a loss that ``received``
        hides
    :ivar late: how often a packet of an earlier, shorter run to the same destination was sent again; in this run, which
        was made for that reason, all went well
    :ivar error: why nothing was measured; then the counts are 0 and mean nothing
    """

    rdma_device: RdmaDevice
    port: PortNumber
    destination_lid: Lid
    transmitted: Packets
    received: Packets
    error: typing.Optional[str] = None
    resent: Packets = 0
    late: Packets = 0

    @property
    def lost(self) -> int:
        """Messages without an answer: each packet that was given up, and each that was sent again. More answers than
        packets make up for none."""
        return max(0, self.transmitted - self.received) + self.resent

    @property
    def sent(self) -> int:
        """Messages, those that were sent again too."""
        return self.transmitted + self.resent


@dataclasses.dataclass(frozen=True)
class PingServer:
    """An ibping server on a port of this node. error: why it does not serve."""

    rdma_device: RdmaDevice
    port: PortNumber
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PortName:
    """A port of a node by its RDMA device, as the modules take it: mlx5_0, 1."""

    device: RdmaDevice
    port: PortNumber


@dataclasses.dataclass(frozen=True)
class PingTask:
    """The pings of one port of a node, as the module ibping takes it."""

    device: RdmaDevice
    port: PortNumber
    lids: typing.Annotated[tuple[Lid, ...], PINGS]


@dataclasses.dataclass(frozen=True)
class PingPlan:
    """The plan of one node in stage reachability."""

    servers: typing.Annotated[tuple[PortName, ...], SERVERS] = ()
    clients: typing.Annotated[tuple[PingTask, ...], NODE_PORTS] = ()


@dataclasses.dataclass(frozen=True)
class PingSchedule:
    """The plans of all nodes in stage reachability, and their time.

    :ivar nodes: by node, for each node that was asked
    :ivar pairs: directions between two ports
    :ivar seconds: when nothing is lost, roughly
    :ivar most_seconds: when as much is lost as can be, with the servers' start
    :ivar lifetime: seconds after which the servers end by themselves
    """

    nodes: dict[str, PingPlan]
    pairs: int = 0
    seconds: int = 0
    most_seconds: int = 0
    lifetime: int = 0


#: ibping servers of one node
ObservedServers = Observed[typing.Annotated[tuple[PingServer, ...], SERVERS]]


#: pings that one node sent
ObservedPings = Observed[typing.Annotated[tuple[Ping, ...], PINGS]]
