# SPDX-License-Identifier: GPL-3.0-or-later

"""What networks are compared by: figures that a job or nccl-tests gave on each of them (rows S2.5, S2.6, S3.8), and
what stage bandwidth measured."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.fabric import Gbps
from ..boundary.numbers import Count
from ..measurement.collectives import TestName

#: what a network is to a job; vnic: a NIC that the cloud or a hypervisor shares out, handed on by host-device
Kind = typing.Literal["pod_network", "vnic", "macvlan", "ipoib", "sriov", "sriov_rdma", "rdma_shared"]
#: those whose pods have an RDMA device
RDMA: tuple[Kind, ...] = ("sriov_rdma", "rdma_shared")


@dataclasses.dataclass(frozen=True)
class Figure:
    """The figure of one network.

    :ivar network: a fabric of the intent, or another network by a name of its own
    :ivar nodes: how many worked together, 2 at least
    :ivar value: in the unit of the measure
    :ivar kind: of a network that is no fabric of the intent
    """

    network: str
    nodes: int
    value: float
    kind: typing.Optional[Kind] = None


@dataclasses.dataclass(frozen=True)
class Measure:
    """One job, or one test, run in the same way on several networks.

    :ivar unit: of its figures, for the reader: samples/s, GB/s, h
    :ivar better: whether more is better, or less: a time
    :ivar single_node: the figure of one node, which needs no network; speed-up and scaling efficiency are told against
        it
    :ivar per_node: a rate that each node has, such as the bus bandwidth of nccl-tests: more nodes do not raise it, so
        no scaling is told
    :ivar enough: scaling efficiency with which a network is good enough for this job
    :ivar collective: of nccl-tests, whose bus bandwidth it is: stage collectives measures the figures of its fabric
    """

    name: str
    unit: str
    figures: tuple[Figure, ...] = ()
    better: typing.Literal["more", "less"] = "more"
    single_node: typing.Optional[float] = None
    per_node: bool = False
    enough: float = 0.75
    collective: typing.Optional[TestName] = None


@dataclasses.dataclass(frozen=True)
class FabricBandwidth:
    """The bandwidth between the pods of a fabric that stage bandwidth measured, in Gb/s.

    :ivar measured: measurements that gave a figure; of those that did not, see the stage
    """

    ONCE = ("fabric",)

    fabric: str
    measured: Count
    worst: Gbps
    median: Gbps
    best: Gbps
    transport: typing.Literal["RDMA", "TCP"] = "RDMA"
