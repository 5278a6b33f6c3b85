# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of collectives over a fabric, one run of one of them, and what runs showed. Bandwidths in GB/s, sizes
in bytes, times in seconds."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import RdmaDevice
from ..boundary.fabric import BusGbs
from ..boundary.form import Bound
from ..boundary.kubernetes import Subdomain
from ..boundary.numbers import Count, Counter, NumaNode, Rail, Seconds
from ..boundary.words import Word
from ..job.kept_log import KeptLog
from ..job.nccl_tests import NcclTests

#: programs of nccl-tests whose transport NCCL's log can prove
TestName = typing.Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall"]
#: collective, kind, nodes and rail of a test, and what it changes
TestKey = tuple[str, str, tuple[str, ...], typing.Optional[int], str]
#: variables that a run sets; None takes one out that the image sets
Variables = tuple[tuple[str, typing.Optional[str]], ...]

#: of a message that tells the latency
SMALL_BYTES = 8
#: of a pod: functions that it may show; of one: error counters
MOST_HCAS, MOST_COUNTERS = 256, 64


@dataclasses.dataclass(frozen=True)
class ExpectedBusbw:
    """A floor of somebody's own in the place of the one that is derived from the rails.

    :ivar test: of which
    :ivar gbs: bus bandwidth, in GB/s
    :ivar reason: why, printed in the report
    :ivar nodes: of groups of so many nodes alone; None: of all groups of several nodes
    """

    test: TestName
    gbs: float
    reason: str
    nodes: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Collectives:
    """The intent for collectives.

    :ivar image: has the programs of nccl-tests, built with MPI=1, and Open MPI
    :ivar cpu: of a node's pod, request and limit, as Kubernetes writes it
    :ivar memory: likewise
    :ivar fabric: over which; None is right where there is one alone
    :ivar leaves: names of the nodes of each leaf or scalable unit, where neither a topology nor LLDP shows them
    :ivar tests: in this order
    :ivar gpus_per_node: GPUs and ranks of a node: as many as rails, or a multiple of them
    :ivar least_bytes: smallest message; the figure of any is held against the floor
    :ivar most_bytes: largest message
    :ivar gpu_direct: each channel over the network must be GPUDirect RDMA
    :ivar shared_memory: GPUs of a node may exchange data through the host's memory: there is neither NVLink nor PCIe
        between them that they may use
    :ivar latency: small all_reduce of pairs of nodes run as well, and pairs that are slower than the others are named
    :ivar most_latency_us: that a small all_reduce of two nodes may take, in us; None: the pairs are compared alone
    :ivar latency_ratio: times the median of the pairs, from which on a pair is named
    :ivar soak_minutes: that the largest proven group runs without a pause, with the error counters of its HCAs read
        before and after; 0: it does not
    :ivar share: of what the rails allow, that a run must reach; None takes that of published runs
    :ivar expected_busbw: floors of somebody's own
    :ivar program_folder: of the programs in the image
    :ivar gpu_resource: extended resource of the GPUs
    :ivar seconds: after which a run is ended
    """

    image: str
    cpu: str
    memory: str
    fabric: typing.Optional[str] = None
    tests: tuple[TestName, ...] = ("all_reduce",)
    gpus_per_node: int = 8
    least_bytes: int = 1 << 30
    most_bytes: int = 1 << 33
    gpu_direct: bool = True
    shared_memory: bool = False
    latency: bool = False
    most_latency_us: typing.Optional[float] = None
    latency_ratio: float = 1.5
    soak_minutes: int = 0
    share: typing.Optional[float] = None
    expected_busbw: tuple[ExpectedBusbw, ...] = ()
    program_folder: str = "/opt/nccl-tests/build"
    gpu_resource: str = "nvidia.com/gpu"
    seconds: int = 300
    leaves: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class CollectiveRun:
    """One run.

    :ivar name: of the run, in the names of its objects
    :ivar nodes: that take part, as Kubernetes names them
    :ivar by_rail: the GPUs of one rail of all nodes make a group each, all at the same time (NCCL_TESTS_SPLIT)
    :ivar gpu: the only GPU of each node, by its number; None: all of them
    :ivar variables: beside those of each run
    :ivar small: messages of 8 bytes, with the time of each iteration
    :ivar iterations: of the largest message alone, for a soak; None: as many as a test has
    """

    name: str
    test: TestName
    nodes: tuple[str, ...]
    by_rail: bool = False
    gpu: typing.Optional[int] = None
    variables: Variables = ()
    small: bool = False
    iterations: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class CollectiveHca:
    """An HCA, or a function of one, that a pod got.

    :ivar device: RDMA device, as the pod sees it
    :ivar numa_node: None where sysfs names none
    """

    device: RdmaDevice
    rail: Rail
    numa_node: typing.Optional[NumaNode] = None


@dataclasses.dataclass(frozen=True)
class CollectivePod:
    """The pod of a node.

    :ivar host: its host name up to the first dot, as NCCL writes it
    :ivar hcas: that it got, each with its rail
    :ivar error: why it can't be used
    :ivar cause: kind of that error
    """

    ONCE = ("node",)

    node: Subdomain
    name: Subdomain = ""
    host: Word = ""
    hcas: typing.Annotated[tuple[CollectiveHca, ...], Bound("HCAs of a pod", MOST_HCAS)] = ()
    error: str = ""
    cause: Word = ""


@dataclasses.dataclass(frozen=True)
class HcaErrors:
    """The error counters of an RDMA device in a pod before and after a soak.

    :ivar seconds: between the two readings
    :ivar read: error counters that it has
    :ivar grown: of these, by how much
    :ivar lower: of these, those that are lower than before: something set them back
    :ivar stuck: of these, those that are at their maximum, where growth can't be seen
    :ivar once: error counters that were read before or after, and not both times
    :ivar why: they are not known; empty where they are
    """

    ONCE = ("node", "device")

    node: Subdomain
    device: RdmaDevice
    seconds: Seconds = 0.0
    read: Count = 0
    grown: typing.Annotated[dict[Word, Counter], Bound("error counters of a device", MOST_COUNTERS)] = (
        dataclasses.field(default_factory=dict)
    )
    lower: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    stuck: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    once: typing.Annotated[tuple[Word, ...], Bound("error counters of a device", MOST_COUNTERS)] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True)
class RanTest:
    """A test that was made: of a group over all rails, of one rail of a halving, or of a group with one thing changed.

    :ivar kind: of the group, or of the trial of a halving
    :ivar rail: the only one; None: all rails
    :ivar change: name of the one thing that it changes; empty of all others
    :ivar seconds: from its start to its last log
    :ivar failure: kind of what ended it; empty where it ended by itself
    :ivar evidence: the line that shows that
    :ivar command: that started its ranks, and how it ended
    :ivar figures: that the program printed; None where it printed none
    :ivar log: of NCCL, of all ranks whose log could be read
    :ivar errors: of a soak, by HCA
    """

    test: TestName
    kind: Word
    nodes: tuple[Subdomain, ...]
    rail: typing.Optional[Rail] = None
    change: Word = ""
    seconds: Seconds = 0.0
    failure: Word = ""
    evidence: str = ""
    command: str = ""
    figures: typing.Optional[NcclTests] = None
    log: typing.Optional[KeptLog] = None
    errors: tuple[HcaErrors, ...] = ()

    @property
    def key(self) -> TestKey:
        """Return by which a test is found again in its climb."""
        return self.test, self.kind, self.nodes, self.rail, self.change


@dataclasses.dataclass(frozen=True)
class CollectivesFacts:
    """Answer of rdma_collectives.

    :ivar fabric: over which
    :ivar runs: in the order in which they were begun
    :ivar announced: tests of each kind of collective where all is proven, as it was said before the first of them
    :ivar ended: why it ended before its last test; empty where it did not
    :ivar leftovers: pods of an interrupted earlier run that were removed first
    :ivar remaining: pods that could not be removed afterwards
    """

    fabric: str
    pods: tuple[CollectivePod, ...] = ()
    runs: tuple[RanTest, ...] = ()
    announced: Count = 0
    ended: str = ""
    leftovers: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()


#: collective, kind and number of nodes of the groups of a step
StepKey = tuple[str, str, int]


@dataclasses.dataclass(frozen=True)
class StepFigures:
    """The bus bandwidths of the proven groups of one step of a collective, in GB/s.

    :ivar fabric: over which
    :ivar kind: of the step
    :ivar nodes: of each group
    :ivar groups: that are proven
    """

    ONCE = ("fabric", "test", "kind", "nodes")

    fabric: str
    test: TestName
    kind: Word
    nodes: Count
    groups: Count
    worst: BusGbs
    median: BusGbs
    best: BusGbs

    @property
    def key(self) -> StepKey:
        """Return by which the step is found again in another run."""
        return self.test, self.kind, self.nodes


@dataclasses.dataclass(frozen=True)
class EarlierStep:
    """The medians of one step of a collective in kept runs, in GB/s, the oldest first."""

    ONCE = ("test", "kind", "nodes")

    test: TestName
    kind: Word
    nodes: Count
    figures: tuple[BusGbs, ...]

    @property
    def key(self) -> StepKey:
        """Return by which the step is found again in another run."""
        return self.test, self.kind, self.nodes


@dataclasses.dataclass(frozen=True)
class EarlierCollectives:
    """Kept runs that were asked for the same collectives over the same fabrics.

    :ivar runs: their names, the oldest first; those that proved something
    :ivar unread: those that can't be read, with the reason
    """

    runs: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    steps: tuple[EarlierStep, ...] = ()
