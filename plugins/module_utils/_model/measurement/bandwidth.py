# SPDX-License-Identifier: GPL-3.0-or-later

"""What is measured between pods, and the pods themselves. Filled by _run (pods, pairs), read by _check and _report.

PCI addresses are dddd:bb:dd.f in lower case; bandwidth in Gb/s (decimal); times in seconds.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.addresses import Address
from ..boundary.devices import Interface, PciAddress, RdmaDevice
from ..boundary.fabric import Gbps, LinkGbps
from ..boundary.form import Bound
from ..boundary.kubernetes import Label, Subdomain
from ..boundary.numbers import Bytes, Count, Counter, FlowLabel, Latency, Mtu, Rail, RateMbps, Seconds, VlanQos
from ..boundary.words import Word
from ..infiniband.counters import PortGrowth

#: of a sweep, one for each power of two
ROWS = Bound("message sizes", 64)
#: fabric, rail, client, server of an ordered pair, and the rail of its server
PairKey = tuple[str, int, str, str, int]
#: where a pod measures: its rail and its node
End = tuple[int, str]


@dataclasses.dataclass(frozen=True)
class RdmaPod:
    """A pod of the bandwidth stage, looked at from inside. It has one interface on the fabric, and so stands for one
    rail of its node.

    :ivar name: of the pod; empty where none was made
    :ivar device: RDMA device on its virtual function; None on a network without RDMA, where TCP is measured
    :ivar address: IP address on the network, from the network-status annotation
    :ivar pci: PCI address of the virtual function
    :ivar physical_function: PCI address of its HCA
    :ivar rate_gbps: of the device's port, as sysfs shows it; None when it does not
    :ivar pcie_gbps: speed x width of the function's PCIe link less its encoding, as it runs; None when sysfs does not
        say
    :ivar cpus: that the measurement is bound to, those of the HCA's NUMA node; empty when it is not bound
    :ivar binding: what it is bound to, or why it is not
    :ivar far_cpus: it may run on none of the CPUs of the HCA's NUMA node
    :ivar error: why it cannot be used
    :ivar cause: kind of that error (see _check/bandwidth/causes.py)
    """

    ONCE = ("fabric", "rail", "node")

    fabric: str
    node: str
    name: Subdomain
    namespace: Label
    device: typing.Optional[RdmaDevice] = None
    address: typing.Optional[Address] = None
    pci: typing.Optional[PciAddress] = None
    interface: typing.Optional[Interface] = None
    rate_gbps: typing.Optional[LinkGbps] = None
    pcie_gbps: typing.Optional[LinkGbps] = None
    error: str = ""
    rail: Rail = 0
    physical_function: typing.Optional[PciAddress] = None
    cpus: str = ""
    binding: str = ""
    cause: Word = ""
    far_cpus: bool = False


@dataclasses.dataclass(frozen=True)
class SweepRow:
    """Average in Gb/s of one message size in bytes."""

    message_bytes: Bytes
    average_gbps: Gbps


class OrderedPair:
    """A pair of a client and a server.

    :ivar rail: of the client
    :ivar server_rail: where it is another one than the client's; None: it is the same
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
        """Whoever is the client."""
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
    """A pair that was too slow, measured once more with more queue pairs and, where there is room, larger messages.

    :ivar queue_pairs: that were asked for, at once
    :ivar message_bytes: that were measured; those that were asked for where there is no figure
    :ivar average_gbps: None when there is no figure
    :ivar why: there is none; empty where there is
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
    """One ordered pair of a rail, or of two: the client writes to the server, or each to the other where both
    directions run at once.

    :ivar pings: rping round trips that the client counted; None when it did not run
    :ivar ping_failure: kind of the failure (see _parse/pods/failure.py); empty when it worked
    :ivar average_gbps: average column of ib_write_bw, or what the receiver of iperf3 got; None when there is no
        measurement
    :ivar failure: kind of the failure of ib_write_bw or iperf3; empty when it worked
    :ivar evidence: the line that showed the failure
    :ivar again: in which look after the rounds it was measured, because something on its way was a suspect; 0: in the
        rounds
    :ivar sweep: all message sizes, where the intent asks for them
    :ivar sweep_failure: why there is no sweep, where one was asked for
    :ivar transport: TCP where a pod has no RDMA device, which only networks without RDMA may have
    :ivar streams: of TCP, at once
    :ivar flow_label: by which switches of Ethernet send it over the same links each time, as far as the driver makes a
        UDP source port of it; None where it has none, so that each measurement may go over other links
    :ivar server_rail: of a pair between two rails; None: ``rail``
    :ivar queue_pairs: of ib_write_bw, at once; None: it did not run
    :ivar wider: the same with more of them, where it was too slow; None: it was not, or there was nothing to add
    :ivar packet_bytes: MTU by which the client's queue pairs cut messages, as ib_write_bw says it; None: it did not
    :ivar gid_index: of the client's GID, likewise; None over rdma_cm too, which chooses another one than is printed
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

    @property
    def key(self) -> PairKey:
        """Return the key by which it is known from run to run."""
        return self.fabric, self.rail, self.client, self.server, self.server_end[0]

    @property
    def is_comparable(self) -> bool:
        """Return whether it has a figure by which runs are compared. Whether that figure is valid, the check of the
        stage decides."""
        return self.transport == "RDMA" and not self.failure and bool(self.average_gbps)


#: kinds of failure of a pair that was not measured because its client, or its server, was left out of the rounds by
#: then
LEFT_OUT = ("client_left_out", "server_left_out")

#: what lies between a cable and a program, from the cable up. Each layer adds to the ones before it
LayerName = typing.Literal["pf_host", "vf_host", "vf_pod", "gpu_pod"]


@dataclasses.dataclass(frozen=True)
class LayerEnd:
    """One end of a step, at the time of its measurement. All of it may be unknown.

    :ivar device: RDMA device that the tool used
    :ivar function: PCI address of the function that it is on
    :ivar binding: CPUs that the tool was bound to, or why it was not
    :ivar near: whether these CPUs are of the HCA's NUMA node; None where that is not known
    :ivar max_tx_rate: that the physical function has set for this virtual one, in Mb/s; 0 is no limit, None: nothing
        shows it
    :ivar vlan_qos: priority of its VLAN, likewise
    :ivar throttled: periods in which the kernel held the container back from its CPUs, during the step; None where that
        is not known
    """

    node: str
    device: RdmaDevice = ""
    function: PciAddress = ""
    binding: str = ""
    near: typing.Optional[bool] = None
    max_tx_rate: typing.Optional[RateMbps] = None
    vlan_qos: typing.Optional[VlanQos] = None
    throttled: typing.Optional[Counter] = None


@dataclasses.dataclass(frozen=True)
class LayerStep:
    """A pair measured with one layer more than in the step before.

    :ivar average_gbps: None when there is no measurement
    :ivar why: there is none
    :ivar absent: there is no such layer here, so that it can't lose anything: pods without virtual functions, or
        without a GPU
    """

    layer: LayerName
    client: LayerEnd
    server: LayerEnd
    average_gbps: typing.Optional[Gbps] = None
    peak_gbps: typing.Optional[Gbps] = None
    message_bytes: typing.Optional[Bytes] = None
    iterations: typing.Optional[Counter] = None
    why: str = ""
    absent: bool = False
    commands: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PairLayers(OrderedPair):
    """An ordered pair, layer by layer.

    :ivar suspect: something spoke against its figure; else all pairs were asked for
    :ivar steps: from the cable up
    :ivar why: there are no steps
    :ivar more_than: queue pairs of the pair's first figure, where each layer was measured with more; None: with as many
        as the intent has
    """

    fabric: str
    client: str
    server: str
    rail: Rail = 0
    suspect: bool = True
    steps: tuple[LayerStep, ...] = ()
    why: str = ""
    server_rail: typing.Optional[Rail] = None
    more_than: typing.Optional[Count] = None


@dataclasses.dataclass(frozen=True)
class CountedPair(OrderedPair):
    """An ordered pair, measured once more with the counters of the ports on its way, and of the uplinks of both leaves,
    read before and after.

    :ivar node: through which they were read
    :ivar average_gbps: that it carried then; None when there is no measurement
    :ivar seconds: between the two readings
    :ivar ports: of each that was asked
    :ivar why: it was not counted, or not measured then; empty when it was
    """

    fabric: str
    client: str
    server: str
    rail: Rail = 0
    node: str = ""
    average_gbps: typing.Optional[Gbps] = None
    seconds: Seconds = 0.0
    ports: tuple[PortGrowth, ...] = ()
    why: str = ""
    server_rail: typing.Optional[Rail] = None


@dataclasses.dataclass(frozen=True)
class PairLatency(OrderedPair):
    """The latency of small messages of an ordered pair, by ib_write_lat.

    :ivar typical_us: the median, in us; None where there is no measurement
    :ivar p99_us: that 99 % keep
    :ivar failure: kind of the failure; empty when it worked
    :ivar evidence: the line that showed the failure
    """

    fabric: str
    client: str
    server: str
    rail: Rail = 0
    typical_us: typing.Optional[Latency] = None
    p99_us: typing.Optional[Latency] = None
    failure: Word = ""
    evidence: str = ""
    commands: tuple[str, ...] = ()
    server_rail: typing.Optional[Rail] = None


@dataclasses.dataclass(frozen=True)
class CoverPlan:
    """The links of a fabric that the first rounds use.

    :ivar tests: each in one direction
    :ivar directions: of the links that these nodes can use, each link in both; where the ways between leaves are not
        known, of the nodes' cables alone
    :ivar covered: how many of these a test uses
    :ivar unused: further directions over which the forwarding tables send nothing from one of these nodes to another
    :ivar spread: why the ways between leaves are not known; empty where they are
    :ivar between_rails: tests between two rails of one host
    :ivar apart: there are several rails, and nothing leads from one to another
    """

    tests: int
    directions: int
    covered: int
    unused: int = 0
    spread: str = ""
    between_rails: int = 0
    apart: bool = False


@dataclasses.dataclass(frozen=True)
class RoundPlan:
    """The rounds of a fabric and their time, as planned before its pods are started.

    :ivar rounds: of disjoint pairs that are measured
    :ivar all_rounds: in which everybody would meet everybody
    :ivar seconds: that they take when all goes well
    :ivar most_seconds: that they take when each command runs into its limit: the pods live as long
    :ivar cover: what rounds that shall use each link in both directions use; None where they are rounds of pairs
    :ivar why: why they are rounds of pairs although each link was to be used; empty where that was not so
    """

    fabric: str
    rounds: int
    all_rounds: int
    seconds: float
    most_seconds: float
    cover: typing.Optional[CoverPlan] = None
    why: str = ""


@dataclasses.dataclass(frozen=True)
class BandwidthFacts:
    """Answer of rdma_bandwidth.

    :ivar plans: of each fabric
    :ivar leftovers: pods of an interrupted earlier run that were removed first
    :ivar remaining: pods that could not be removed afterwards
    :ivar layers: the pairs that were measured layer by layer
    :ivar counted: the pairs that were measured once more with the counters of the ports on their way
    :ivar latencies: of the pairs whose latency was measured
    """

    pods: tuple[RdmaPod, ...]
    pairs: tuple[PairResult, ...]
    leftovers: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    plans: tuple[RoundPlan, ...] = ()
    layers: tuple[PairLayers, ...] = ()
    counted: tuple[CountedPair, ...] = ()
    latencies: tuple[PairLatency, ...] = ()


@dataclasses.dataclass(frozen=True)
class EarlierPair(OrderedPair):
    """The figures of an ordered pair in kept runs. figures: averages in Gb/s, the oldest first."""

    fabric: str
    rail: Rail
    client: str
    server: str
    figures: tuple[Gbps, ...]
    server_rail: typing.Optional[Rail] = None

    @property
    def key(self) -> PairKey:
        """Return the key of the pair in a run."""
        return self.fabric, self.rail, self.client, self.server, self.server_end[0]


@dataclasses.dataclass(frozen=True)
class Earlier:
    """Kept runs that were asked for the same fabrics.

    :ivar runs: their names, the oldest first; those that measured something
    :ivar unread: those that can't be read, with the reason
    """

    runs: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    pairs: tuple[EarlierPair, ...] = ()
