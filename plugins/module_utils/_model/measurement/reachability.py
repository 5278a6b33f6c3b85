# SPDX-License-Identifier: GPL-3.0-or-later

"""The schedule and the results of pings with ibping. Times in seconds."""

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
    """The result of one ibping client run, from a port of this node to a LID.

    :ivar rdma_device: RDMA device that sends
    :ivar port: port number of that device
    :ivar destination_lid: LID of the port that is pinged
    :ivar transmitted: number of packets sent
    :ivar received: number of packets answered. The exit code and the round-trip times of ibping are wrong in every
        version and not used
    :ivar resent: number of retransmissions after a timeout: losses that ``received`` hides
    :ivar late: number of retransmissions in an earlier, shorter run to the same destination. This run repeats it, and
        had no loss
    :ivar error: why nothing was measured, in which case the counts are 0 and invalid; None if the counts were measured
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
        """Return the number of messages without an answer: each packet without an answer, and each retransmission.
        Surplus answers do not compensate for lost ones.
        """
        return max(0, self.transmitted - self.received) + self.resent

    @property
    def sent(self) -> int:
        """Return the number of messages sent, including retransmissions."""
        return self.transmitted + self.resent


@dataclasses.dataclass(frozen=True)
class PingServer:
    """An ibping server on a port of this node.

    :ivar rdma_device: RDMA device of the port
    :ivar port: port number
    :ivar error: why the server does not run; None if it runs
    """

    rdma_device: RdmaDevice
    port: PortNumber
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PortName:
    """A port of a node, in the form of the modules' options.

    :ivar device: RDMA device, such as mlx5_0
    :ivar port: port number
    """

    device: RdmaDevice
    port: PortNumber


@dataclasses.dataclass(frozen=True)
class PingTask:
    """The destinations that one port of a node pings, in the form of the module ibping's options.

    :ivar device: RDMA device, such as mlx5_0
    :ivar port: port number
    :ivar lids: LIDs of the destinations
    """

    device: RdmaDevice
    port: PortNumber
    lids: typing.Annotated[tuple[Lid, ...], PINGS]


@dataclasses.dataclass(frozen=True)
class PingPlan:
    """The ping servers and clients of one node in stage reachability.

    :ivar servers: ports on which the node runs a server
    :ivar clients: ports from which the node pings, each with its destinations
    """

    servers: typing.Annotated[tuple[PortName, ...], SERVERS] = ()
    clients: typing.Annotated[tuple[PingTask, ...], NODE_PORTS] = ()


@dataclasses.dataclass(frozen=True)
class PingSchedule:
    """The plans of all nodes in stage reachability, and their duration.

    :ivar nodes: plan of each node
    :ivar pairs: number of pings from one port to another; both directions between two ports count
    :ivar seconds: approximate duration without losses
    :ivar most_seconds: duration with the highest possible losses, including the start of the servers
    :ivar lifetime: seconds after which the servers exit
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
