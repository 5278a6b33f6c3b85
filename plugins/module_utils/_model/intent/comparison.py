# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of networks by the results of a job or of nccl-tests on each of them, and by the results of stage
bandwidth.
"""

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
    """The result of a job or test on one network.

    :ivar network: name of a fabric of the intent, or a free name for another network
    :ivar nodes: number of nodes that worked together, at least 2
    :ivar value: result, in the ``unit`` of the job or test
    :ivar kind: kind of a network that is not a fabric of the intent; unset for a fabric
    """

    network: str
    nodes: int
    value: float
    kind: typing.Optional[Kind] = None


@dataclasses.dataclass(frozen=True)
class Measure:
    """One job or test that ran in the same way on several networks, with its result on each. It is an item of
    ``rdma_cluster.measures``.

    :ivar name: name of the job or test
    :ivar unit: unit of the figures, for messages: samples/s, GB/s, h
    :ivar figures: result on each network and number of nodes
    :ivar better: whether a higher or a lower figure (such as a time) is better
    :ivar single_node: figure of one node, which needs no network; the reference for speed-up and scaling efficiency.
        Unset if it was not measured
    :ivar per_node: whether the figure is a rate per node, such as the bus bandwidth of nccl-tests. It does not grow
        with the number of nodes, so no scaling is reported
    :ivar enough: lowest scaling efficiency that is sufficient for this job, 0 to 1
    :ivar collective: collective of nccl-tests whose bus bandwidth this is; stage collectives measures it on the fabrics
        of the intent. Unset for any other job or test
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
    """The bandwidth between the pods of a fabric, as measured by stage bandwidth, in Gb/s.

    :ivar fabric: name of the fabric
    :ivar measured: number of measurements that gave a figure; stage bandwidth reports the failed ones
    :ivar worst: lowest bandwidth of all pairs
    :ivar median: median of all pairs
    :ivar best: highest bandwidth of all pairs
    :ivar transport: RDMA, or TCP on a network whose pods have no RDMA devices
    """

    ONCE = ("fabric",)

    fabric: str
    measured: Count
    worst: Gbps
    median: Gbps
    best: Gbps
    transport: typing.Literal["RDMA", "TCP"] = "RDMA"
