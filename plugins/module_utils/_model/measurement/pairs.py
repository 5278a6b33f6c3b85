# SPDX-License-Identifier: GPL-3.0-or-later

"""Ordered pairs of pods, and the bandwidth that was measured between them.

PCI addresses are dddd:bb:dd.f in lower case; bandwidth in Gb/s (decimal); times in seconds.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.fabric import Gbps
from ..boundary.form import Bound
from ..boundary.numbers import Bytes, Count, Counter, FlowLabel, Mtu, Rail, Seconds, TrafficClass
from ..boundary.words import Word
from .hca_counters import HcaErrors

#: of a sweep, one for each power of two
ROWS = Bound("message sizes", 64)
#: of a pair: its two devices, and their physical functions
ENDS = Bound("devices of a pair", 4)
#: of a pair: three measurements, each with up to five clients of each of its tools
RETRIES = Bound("failed attempts of a pair", 64)
#: fabric, rail, client, server of an ordered pair, and the rail of its server
PairKey = tuple[str, int, str, str, int]
#: where a pod measures: its rail and its node
End = tuple[int, str]


@dataclasses.dataclass(frozen=True)
class SweepRow:
    """The bandwidth for one message size of a sweep.

    :ivar message_bytes: size of a message in bytes
    :ivar average_gbps: average bandwidth in Gb/s
    """

    message_bytes: Bytes
    average_gbps: Gbps


class OrderedPair:
    """A pair of a client node and a server node, on one rail or between two rails.

    :ivar rail: rail of the client
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar server_rail: rail of the server if it differs from the client's, else None
    """

    rail: int
    client: str
    server: str
    server_rail: typing.Optional[int]

    @property
    def client_end(self) -> End:
        return self.rail, self.client

    @property
    def server_end(self) -> End:
        return self.rail if self.server_rail is None else self.server_rail, self.server

    @property
    def pair(self) -> frozenset[End]:
        """Return both ends of the pair as a set, so that two pairs in opposite directions are equal."""
        return frozenset((self.client_end, self.server_end))

    @property
    def between_rails(self) -> bool:
        return self.server_end[0] != self.rail


#: of ib_write_bw, at once, by the least rate of a port in Gb/s: one does not fill a fast link on each host, so that its
#: cable looks slow
#: [linux-rdma/perftest issue 252: 4 for 200 Gb/s; NVIDIA/nccl issue 2409: at 400 Gb/s one carries 284 Gb/s, and eight
#: 391]
QUEUE_PAIRS = ((400.0, 8), (200.0, 4))


@dataclasses.dataclass(frozen=True)
class Wider:
    """A repeated measurement of a slow pair, with more queue pairs and, if possible, larger messages.

    :ivar queue_pairs: number of concurrent queue pairs requested
    :ivar message_bytes: measured message size in bytes; without a figure the requested one
    :ivar average_gbps: average bandwidth in Gb/s; None without a figure
    :ivar peak_gbps: peak bandwidth in Gb/s; None without a figure
    :ivar iterations: number of messages of each queue pair; None without a figure
    :ivar why: why there is no figure; empty if there is one
    :ivar commands: command lines of server and client
    """

    queue_pairs: Count
    message_bytes: Bytes
    average_gbps: typing.Optional[Gbps] = None
    peak_gbps: typing.Optional[Gbps] = None
    iterations: typing.Optional[Counter] = None
    why: str = ""
    commands: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PairResult(OrderedPair):
    """The measurement of an ordered pair of nodes, on one rail or between two rails. The client writes to the server;
    if both directions are measured at once, each writes to the other.

    :ivar fabric: name of the fabric
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar pings: number of rping round trips that the client completed; None if rping did not run
    :ivar ping_failure: kind of the failure of rping (see _parse/pods/failure.py); empty if it succeeded
    :ivar ping_evidence: line of its output that shows the failure
    :ivar average_gbps: average bandwidth in Gb/s: BW average of ib_write_bw, or the rate at the receiver of iperf3;
        None without a measurement
    :ivar peak_gbps: peak bandwidth in Gb/s; None if not printed
    :ivar message_bytes: size of a message in bytes; None without a measurement
    :ivar iterations: number of measured messages: ``pods.iterations`` of each queue pair or of all together, or without
        it those between the margins of a measurement by time (3 s of ``-D 5``, 6 s of ``-D 10``), so that each
        measurement has another number
    :ivar failure: kind of the failure of ib_write_bw or iperf3; empty if it succeeded
    :ivar evidence: line of the output that shows the failure
    :ivar seconds: duration of all commands
    :ivar commands: command lines that ran
    :ivar rail: rail of the client
    :ivar again: number of the round of repetitions in which the pair was measured, because an end or a link on its path
        was a suspect; 0 in the first rounds
    :ivar sweep: bandwidth for each message size, if the intent requests that
    :ivar sweep_failure: why a requested sweep is missing; empty otherwise
    :ivar transport: RDMA, or TCP if a pod has no RDMA device. TCP is allowed only on networks without RDMA
    :ivar streams: number of concurrent TCP streams; None for RDMA
    :ivar flow_label: flow label of the queue pairs, by which Ethernet switches send repeated measurements over the same
        links if the driver derives the UDP source port from it; None if it was not set
    :ivar server_rail: rail of the server if it differs from the client's, else None
    :ivar queue_pairs: number of concurrent queue pairs of ib_write_bw; None if it did not run
    :ivar wider: repetition of a slow pair with more queue pairs; None if the pair was not slow, or no larger
        measurement is possible
    :ivar packet_bytes: MTU of the client's queue pairs in bytes; None if ib_write_bw did not print it
    :ivar gid_index: index of the client's GID; None if not printed, and with rdma_cm, which may use another GID than
        the printed one
    :ivar errors: error counters of both devices before and after, and of their physical functions where an observer
        reads them; empty on InfiniBand, whose ports stage fabric reads, and without RDMA
    :ivar retried: kinds of the failures of earlier attempts, in order; this result is that of the last attempt
    :ivar traffic_class: traffic class that ib_write_bw set, which is that of ``roce`` of the fabric; None if it set
        none, so that the node or the driver chose it
    """

    fabric: str
    client: str
    server: str
    pings: typing.Optional[Count] = None
    ping_failure: Word = ""
    ping_evidence: str = ""
    average_gbps: typing.Optional[Gbps] = None
    peak_gbps: typing.Optional[Gbps] = None
    message_bytes: typing.Optional[Bytes] = None
    iterations: typing.Optional[Counter] = None
    failure: Word = ""
    evidence: str = ""
    seconds: Seconds = 0.0
    commands: tuple[str, ...] = ()
    rail: Rail = 0
    again: Count = 0
    sweep: typing.Annotated[tuple[SweepRow, ...], ROWS] = ()
    sweep_failure: str = ""
    transport: typing.Literal["RDMA", "TCP"] = "RDMA"
    streams: typing.Optional[Count] = None
    flow_label: typing.Optional[FlowLabel] = None
    server_rail: typing.Optional[Rail] = None
    queue_pairs: typing.Optional[Count] = None
    wider: typing.Optional[Wider] = None
    packet_bytes: typing.Optional[Mtu] = None
    gid_index: typing.Optional[Count] = None
    errors: typing.Annotated[tuple[HcaErrors, ...], ENDS] = ()
    retried: typing.Annotated[tuple[Word, ...], RETRIES] = ()
    traffic_class: typing.Optional[TrafficClass] = None

    @property
    def key(self) -> PairKey:
        """Return the key that identifies the pair in different runs: fabric, rail and node of the client, node and rail
        of the server.
        """
        return self.fabric, self.rail, self.client, self.server, self.server_end[0]

    @property
    def is_comparable(self) -> bool:
        """Return whether the result has an RDMA figure that can be compared across runs. The check of the stage decides
        whether that figure is valid.
        """
        return self.transport == "RDMA" and not self.failure and bool(self.average_gbps)
