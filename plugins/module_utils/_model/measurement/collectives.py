# SPDX-License-Identifier: GPL-3.0-or-later

"""Collectives over a fabric: the requirements, the runs and their results. Bandwidths in GB/s, sizes in bytes, times in
seconds.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import RdmaDevice
from ..boundary.fabric import BusGbs
from ..boundary.form import Bound
from ..boundary.kubernetes import Subdomain
from ..boundary.numbers import Count, Latency, NumaNode, Rail, Seconds
from ..boundary.words import Word
from ..job.kept_log import KeptLog
from ..job.nccl_tests import NcclTests
from .hca_counters import HcaErrors

#: programs of nccl-tests whose transport NCCL's log can prove
TestName = typing.Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall"]
#: collective, kind, nodes and rail of a test, and what it changes
TestKey = tuple[str, str, tuple[str, ...], typing.Optional[int], str]
#: variables that a run sets; None takes one out that the image sets
Variables = tuple[tuple[str, typing.Optional[str]], ...]

#: of a message that tells the latency
SMALL_BYTES = 8
#: of a pod: functions that it may show
MOST_HCAS = 256


@dataclasses.dataclass(frozen=True)
class ExpectedBusbw:
    """A user-defined floor that replaces the one derived from the rails.

    :ivar test: collective to which it applies
    :ivar gbs: bus bandwidth, in GB/s
    :ivar reason: reason, printed in the report
    :ivar nodes: size of the groups to which it applies; None for all groups of several nodes
    """

    test: TestName
    gbs: float
    reason: str
    nodes: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Collectives:
    """The intent for collectives.

    :ivar image: image with the programs of nccl-tests, built with MPI=1, and Open MPI
    :ivar cpu: CPU request and limit of a node's pod, as Kubernetes writes it
    :ivar memory: memory request and limit of a node's pod, as Kubernetes writes it
    :ivar fabric: name of the fabric; None if the intent has only one
    :ivar tests: collectives, in this order
    :ivar gpus_per_node: number of GPUs and ranks of a node: the number of rails or a multiple of it
    :ivar least_bytes: smallest message size; the figure of each size is compared with the lowest bandwidth that passes
    :ivar most_bytes: largest message size
    :ivar gpu_direct: whether each channel over the network must use GPUDirect RDMA
    :ivar shared_memory: whether GPUs of a node may exchange data through host memory, if they can use neither NVLink
        nor PCIe between them
    :ivar latency: whether to run small all_reduce tests on pairs of nodes, and report pairs that are slower than most
    :ivar most_latency_us: highest allowed time of a small all_reduce of two nodes, in us; None: the pairs are compared
        with each other only
    :ivar latency_ratio: a pair is reported if its latency exceeds this multiple of the median of all pairs
    :ivar soak_minutes: continuous run time of the largest proven group, with the error counters of its HCAs read before
        and after; 0 for none
    :ivar share: required share of the bandwidth that the rails allow; None for that of published runs
    :ivar share_reason: reason for a share below that of published runs
    :ivar expected_busbw: lowest bus bandwidths that the user requires, by test and number of nodes
    :ivar program_folder: folder of the programs in the image
    :ivar gpu_resource: extended resource of the GPUs
    :ivar seconds: time limit of a run
    :ivar leaves: names of the nodes of each leaf or scalable unit, if neither a topology nor LLDP shows them
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
    share_reason: typing.Optional[str] = None
    expected_busbw: tuple[ExpectedBusbw, ...] = ()
    program_folder: str = "/opt/nccl-tests/build"
    gpu_resource: str = "nvidia.com/gpu"
    seconds: int = 300
    leaves: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class CollectiveRun:
    """A planned run of one collective of nccl-tests on a group of nodes.

    :ivar name: name of the run, part of the names of its objects
    :ivar test: name of the collective
    :ivar nodes: Kubernetes names of its nodes
    :ivar by_rail: whether the GPUs of one rail of all nodes form a group each, all at the same time (NCCL_TESTS_SPLIT)
    :ivar gpu: index of the only GPU that each node uses; None if it uses all GPUs
    :ivar variables: environment variables in addition to those of each run
    :ivar small: whether it sends messages of 8 bytes and prints the time of each iteration
    :ivar iterations: iterations of the largest message alone, for a soak; None for the default
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
    """An HCA, or a function of one, in a pod.

    :ivar device: name of the RDMA device in the pod
    :ivar rail: number of the rail that the HCA is on
    :ivar numa_node: NUMA node of the HCA; None if sysfs does not have it
    :ivar physical: RDMA device of the physical function of which this is a virtual function; empty if the pod has the
        HCA itself, or if the name is unknown
    """

    device: RdmaDevice
    rail: Rail
    numa_node: typing.Optional[NumaNode] = None
    physical: RdmaDevice = ""


@dataclasses.dataclass(frozen=True)
class CollectivePod:
    """The pod of a node in which collectives run, with its HCAs.

    :ivar node: name of the node
    :ivar name: name of the pod
    :ivar host: host name of the pod up to the first dot, as NCCL writes it
    :ivar hcas: HCAs of the pod, each with its rail
    :ivar error: why the pod cannot be used; empty if it can be used
    :ivar cause: keyword for the kind of that error; empty for none
    """

    ONCE = ("node",)

    node: Subdomain
    name: Subdomain = ""
    host: Word = ""
    hcas: typing.Annotated[tuple[CollectiveHca, ...], Bound("HCAs of a pod", MOST_HCAS)] = ()
    error: str = ""
    cause: Word = ""


@dataclasses.dataclass(frozen=True)
class RanTest:
    """A completed test of a collective: on a group of nodes over all rails, on one rail of a part of a slow group
    (halving), or on the same group again with one change.

    :ivar test: name of the collective
    :ivar kind: kind of the group, or of the trial of a halving
    :ivar nodes: names of the nodes that took part
    :ivar rail: the only rail; None for all rails
    :ivar change: name of the change; empty for none
    :ivar seconds: time from its start to its last log line
    :ivar failure: kind of failure that ended it; empty if it ended normally
    :ivar evidence: the line that shows the failure
    :ivar command: command that started its ranks, and its exit status
    :ivar figures: figures that the program printed; None if it printed none
    :ivar log: NCCL log of all ranks whose log could be read
    :ivar errors: error counters during a soak, by HCA
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
        """Return the key that identifies the test within its run: collective, kind, nodes, rail and change."""
        return self.test, self.kind, self.nodes, self.rail, self.change


@dataclasses.dataclass(frozen=True)
class CollectivesFacts:
    """The pods and the completed tests of stage collectives (rdma_collectives).

    :ivar fabric: name of the fabric
    :ivar pods: pods of the nodes
    :ivar runs: completed tests, in the order of their start
    :ivar announced: number of tests that were announced before the first one, for each collective if all of them pass
    :ivar ended: why the stage ended before its last test; empty if it did not
    :ivar leftovers: pods of an interrupted earlier run that were removed first
    :ivar remaining: pods that could not be removed afterwards
    :ivar image: image of the pods, as the intent of that run names it
    """

    fabric: str
    pods: tuple[CollectivePod, ...] = ()
    runs: tuple[RanTest, ...] = ()
    announced: Count = 0
    ended: str = ""
    leftovers: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    image: str = ""


#: collective, kind and number of nodes of the groups of a step
StepKey = tuple[str, str, int]


@dataclasses.dataclass(frozen=True)
class StepFigures:
    """The worst, median and best bus bandwidth of a collective, in GB/s, over all groups of nodes of the same kind and
    size. Only groups whose transport is proven count.

    :ivar fabric: name of the fabric
    :ivar test: name of the collective
    :ivar kind: kind of the groups
    :ivar nodes: number of nodes of each group
    :ivar groups: number of proven groups
    :ivar worst: lowest bus bandwidth of the groups
    :ivar median: median of the groups
    :ivar best: highest bus bandwidth of the groups
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
        """Return the key that identifies the step in different runs: collective, kind and number of nodes of its
        groups.
        """
        return self.test, self.kind, self.nodes


@dataclasses.dataclass(frozen=True)
class EarlierStep:
    """The median bus bandwidths of a collective in earlier runs, for one kind and size of groups.

    :ivar test: name of the collective
    :ivar kind: kind of the groups
    :ivar nodes: number of nodes of each group
    :ivar figures: median of each run in GB/s, the oldest first
    """

    ONCE = ("test", "kind", "nodes")

    test: TestName
    kind: Word
    nodes: Count
    figures: tuple[BusGbs, ...]

    @property
    def key(self) -> StepKey:
        """Return the key that identifies the step in different runs: collective, kind and number of nodes of its
        groups.
        """
        return self.test, self.kind, self.nodes


@dataclasses.dataclass(frozen=True)
class LatencyFigures:
    """The lowest, median and highest latency of the small messages of a collective over all pairs of nodes, in
    microseconds. Only pairs whose transport is proven count.

    :ivar fabric: name of the fabric
    :ivar test: name of the collective
    :ivar pairs: number of proven pairs
    :ivar best: lowest latency of the pairs
    :ivar median: median of the pairs
    :ivar worst: highest latency of the pairs
    :ivar p99: highest 99th percentile of the pairs; None if nccl-tests prints none
    """

    ONCE = ("fabric", "test")

    fabric: str
    test: TestName
    pairs: Count
    best: Latency
    median: Latency
    worst: Latency
    p99: typing.Optional[Latency] = None


@dataclasses.dataclass(frozen=True)
class EarlierLatency:
    """The median latencies of the small messages of a collective in earlier runs.

    :ivar test: name of the collective
    :ivar figures: median of each run in microseconds, the oldest first
    """

    ONCE = ("test",)

    test: TestName
    figures: tuple[Latency, ...]

    @property
    def key(self) -> str:
        """Return the name of the collective, which identifies the latencies in different runs."""
        return self.test


@dataclasses.dataclass(frozen=True)
class EarlierCollectives:
    """The figures in those stored earlier runs that have the same collectives and fabrics in their intent.

    :ivar runs: names of the runs with a proven group, the oldest first
    :ivar unread: runs that could not be read, with the reason
    :ivar steps: bandwidths of each step
    :ivar latencies: latencies of each collective
    """

    runs: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    steps: tuple[EarlierStep, ...] = ()
    latencies: tuple[EarlierLatency, ...] = ()
