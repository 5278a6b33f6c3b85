# SPDX-License-Identifier: GPL-3.0-or-later

"""The bandwidth and latency measurements between pods, and the measuring pods. Created by _run (pods, pairs), read by
_check and _report.

PCI addresses are dddd:bb:dd.f in lower case; bandwidth in Gb/s (decimal); times in seconds.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.addresses import Address
from ..boundary.devices import Interface, PciAddress, RdmaDevice
from ..boundary.fabric import Gbps, LinkGbps
from ..boundary.kubernetes import Label, Subdomain
from ..boundary.numbers import Bytes, Count, Counter, Latency, Rail, RateMbps, Seconds, VlanQos
from ..boundary.words import Word
from ..infiniband.counters import PortGrowth
from .pairs import OrderedPair, PairKey, PairResult


@dataclasses.dataclass(frozen=True)
class RdmaPod:
    """A measuring pod of stage bandwidth, as seen from inside the pod. It has one interface on the fabric, and so
    represents one rail of its node.

    :ivar fabric: name of the fabric
    :ivar node: name of the node
    :ivar name: name of the pod; empty if none was created
    :ivar device: RDMA device on its virtual function; None on a network without RDMA, where TCP is measured
    :ivar address: IP address on the network, from the network-status annotation
    :ivar pci: PCI address of the virtual function
    :ivar interface: network interface on the fabric, in the pod
    :ivar rate_gbps: rate of the device's port, from sysfs; None if sysfs does not have it
    :ivar pcie_gbps: current speed x width of the function's PCIe link less its encoding; None if sysfs does not have
        them
    :ivar error: why the pod cannot be used
    :ivar rail: rail of its HCA
    :ivar physical_function: PCI address of its HCA
    :ivar cpus: CPUs to which the measurement is bound, those of the HCA's NUMA node; empty if it is not bound
    :ivar binding: description of the CPU binding, or the reason why the tools are not bound to CPUs
    :ivar cause: kind of that error (see _check/bandwidth/causes.py)
    :ivar far_cpus: whether the pod may not run on any CPU of the HCA's NUMA node
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


#: kinds of failure of a pair that was not measured because its client, or its server, was left out of the rounds by
#: then
LEFT_OUT = ("client_left_out", "server_left_out")

#: what lies between a cable and a program, from the cable up. Each layer adds to the ones before it
LayerName = typing.Literal["pf_host", "vf_host", "vf_pod", "gpu_pod"]


@dataclasses.dataclass(frozen=True)
class LayerEnd:
    """One end of a layer step, at the time of its measurement. Each field may be unknown.

    :ivar node: name of the node
    :ivar device: RDMA device that the tool used
    :ivar function: PCI address of the device's function
    :ivar binding: CPUs to which the tool was bound, or why it was not bound
    :ivar near: whether these CPUs belong to the HCA's NUMA node; None if not known
    :ivar max_tx_rate: limit that the physical function sets for this VF, in Mb/s; 0 is no limit, None is unknown
    :ivar vlan_qos: priority of its VLAN; None is unknown
    :ivar throttled: number of periods in which the kernel throttled the container's CPU during the step; None if not
        known
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
    """One step of a measurement layer by layer: a pair measured with one more layer than in the previous step, such as
    the VF after the PF.

    :ivar client: end that sends
    :ivar server: end that receives
    :ivar average_gbps: average bandwidth in Gb/s; None without a measurement
    :ivar peak_gbps: peak bandwidth in Gb/s; None if there is no measurement
    :ivar message_bytes: size of a message in bytes; None if there is no measurement
    :ivar iterations: number of messages of each queue pair; None if there is no measurement
    :ivar why: why there is no measurement; empty if there is one
    :ivar absent: whether the pods do not have this layer (no virtual functions, or no GPU), so that it cannot cause a
        loss
    :ivar commands: command lines that ran
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
    """The measurements of a pair layer by layer: PF on the host, VF on the host, VF in the pod, GPU memory in the pod.

    :ivar fabric: name of the fabric
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar rail: rail of the client
    :ivar suspect: whether the pair was chosen because its bandwidth was too low; False if all pairs were requested
    :ivar steps: steps from the cable up
    :ivar why: why there are no steps; empty if there are steps
    :ivar server_rail: rail of the server if it differs from the client's, else None
    :ivar more_than: queue pairs of the pair's first figure if each layer was measured with more; None: with the number
        of the intent
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
    """A repeated measurement of a pair, during which the counters of the ports on its path and of the uplinks of both
    leaves were read before and after.

    :ivar fabric: name of the fabric
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar rail: rail of the client
    :ivar node: node from which the counters were read
    :ivar average_gbps: bandwidth during the measurement, in Gb/s; None if there is none
    :ivar seconds: time between the two readings
    :ivar ports: growth of the counters of each queried port
    :ivar why: why the counters or the bandwidth are missing; empty on success
    :ivar server_rail: rail of the server if it differs from the client's, else None
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
    """The latency of small messages of an ordered pair, measured with ib_write_lat.

    :ivar fabric: name of the fabric
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar rail: rail of the client
    :ivar typical_us: median latency in microseconds; None without a measurement
    :ivar p99_us: the 99th percentile, in us
    :ivar failure: kind of the failure; empty on success
    :ivar evidence: the line that showed the failure
    :ivar commands: command lines that ran
    :ivar server_rail: rail of the server if it differs from the client's, else None
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
    """The number of link directions of a fabric that the planned rounds use.

    :ivar tests: number of tests, each in one direction
    :ivar directions: number of link directions that these nodes can use; if the paths between leaves are not known, of
        the nodes' cables only
    :ivar covered: number of link directions that at least one test uses
    :ivar unused: number of further directions to which the forwarding tables send no traffic between these nodes
    :ivar spread: why the paths between leaves are not known; empty if they are known
    :ivar between_rails: number of tests between two rails of one host
    :ivar apart: whether there are several rails without a path between them
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
    """The number and the duration of a fabric's rounds, as planned before its pods are started. In one round, each node
    takes part in one pair at most.

    :ivar fabric: name of the fabric
    :ivar rounds: number of rounds of disjoint pairs
    :ivar all_rounds: number of rounds in which each node would meet every other node
    :ivar seconds: duration without failures
    :ivar most_seconds: duration if each command reaches its time limit; the lifetime of the pods
    :ivar cover: coverage of rounds that use each link in both directions; None for rounds of pairs
    :ivar why: why there are rounds of pairs although link coverage was requested; empty if it was not
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
    """The plans, pods and measurements of stage bandwidth (rdma_bandwidth).

    :ivar pods: pods that were started
    :ivar pairs: measurements of all pairs, including repetitions
    :ivar plans: plan of each fabric
    :ivar leftovers: pods of an interrupted earlier run that were removed first
    :ivar remaining: pods that could not be removed afterwards
    :ivar layers: pairs that were measured layer by layer
    :ivar counted: pairs that were measured again with the counters of the ports on their path
    :ivar latencies: pairs whose latency was measured
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
    """The bandwidths of a pair in earlier runs.

    :ivar fabric: name of the fabric
    :ivar rail: rail of the client
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar figures: averages in Gb/s, the oldest first
    :ivar server_rail: rail of the server if it differs from the client's, else None
    :ivar places: position of the run of each figure in ``Earlier.runs``; empty in facts of releases without this field
    """

    fabric: str
    rail: Rail
    client: str
    server: str
    figures: tuple[Gbps, ...]
    server_rail: typing.Optional[Rail] = None
    places: tuple[Count, ...] = ()

    @property
    def key(self) -> PairKey:
        """Return the key that identifies the pair in different runs: fabric, rail and node of the client, node and rail
        of the server.
        """
        return self.fabric, self.rail, self.client, self.server, self.server_end[0]


@dataclasses.dataclass(frozen=True)
class Earlier:
    """The bandwidths in those stored earlier runs that have the same fabrics in their intent.

    :ivar runs: names of the runs with a measurement, the oldest first
    :ivar unread: runs that could not be read, with the reason
    :ivar pairs: bandwidths of each pair
    """

    runs: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    pairs: tuple[EarlierPair, ...] = ()
