# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of collectives over a fabric, and one run of one of them. Bandwidths of collectives in GB/s, sizes in bytes, times in seconds."""

from __future__ import annotations

import dataclasses
import typing

#: programs of nccl-tests whose transport NCCL's log can prove
TestName = typing.Literal["all_reduce", "all_gather", "reduce_scatter"]


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
    """What is wanted of collectives.

    :ivar image: has the programs of nccl-tests, built with MPI=1, and Open MPI
    :ivar cpu: of a node's pod, request and limit, as Kubernetes writes it
    :ivar memory: likewise
    :ivar fabric: over which; None is right where there is one alone
    :ivar tests: in this order
    :ivar gpus_per_node: GPUs and ranks of a node: as many as rails, or a multiple of them
    :ivar most_bytes: largest message
    :ivar gpu_direct: each channel over the network must be GPUDirect RDMA
    :ivar shared_memory: GPUs of a node may exchange data through the host's memory: there is neither NVLink nor PCIe between them that they may use
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
    tests: typing.Tuple[TestName, ...] = ("all_reduce",)
    gpus_per_node: int = 8
    most_bytes: int = 1 << 33
    gpu_direct: bool = True
    shared_memory: bool = False
    share: typing.Optional[float] = None
    expected_busbw: typing.Tuple[ExpectedBusbw, ...] = ()
    program_folder: str = "/opt/nccl-tests/build"
    gpu_resource: str = "nvidia.com/gpu"
    seconds: int = 300


@dataclasses.dataclass(frozen=True)
class CollectiveRun:
    """One run.

    :ivar name: of the run, in the names of its objects
    :ivar nodes: that take part, as Kubernetes names them
    :ivar by_rail: the GPUs of one rail of all nodes make a group each, all at the same time (NCCL_TESTS_SPLIT)
    :ivar gpu: the only GPU of each node, by its number; None: all of them
    """

    name: str
    test: TestName
    nodes: typing.Tuple[str, ...]
    by_rail: bool = False
    gpu: typing.Optional[int] = None
