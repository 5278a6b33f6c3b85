# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts beyond NCCL's log by which the cause of a slow collective is sought: HCAs, settings of the nodes, and
settings of the fabric.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import join_first
from ..._model.node.tuning import NodeTuning, Roce
from ..._model.run.findings import WARN, Finding

#: part of the usual rate of a rail below which a rail is weak
WEAK = 0.9
NAMED = 4


@dataclasses.dataclass(frozen=True)
class UsedHca:
    """An HCA that a run may use, with its rail, NUMA node and measured rate.

    :ivar rail: rail of the HCA; None if unknown
    :ivar numa_node: NUMA node of the HCA; None if unknown
    :ivar rate_gbps: rate that stage bandwidth measured, in Gb/s; None if it was not measured
    :ivar physical: RDMA device of the physical function, if the pod has a virtual function of it; empty otherwise
    """

    rail: typing.Optional[int] = None
    numa_node: typing.Optional[int] = None
    rate_gbps: typing.Optional[float] = None
    physical: str = ""


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The facts beyond NCCL's log by which the cause of a slow collective is sought.

    :ivar hcas: HCAs by host, as NCCL writes it, and by RDMA device
    :ivar tunings: tuning of the nodes, by host
    :ivar roce: RoCE settings of the fabric; None on InfiniBand
    :ivar several_leaves: whether the run uses links between switches
    :ivar adaptive_routing: whether the switches spread packets of one flow over several links; None if unknown
    :ivar from_gpu_memory: whether the rates of the rails were measured from the GPUs' memory; None if they were not
        measured
    :ivar rails_gbs: bus bandwidth of each rail alone in GB/s, if the rails were measured one by one
    :ivar set_by_run: environment variables that the run sets itself
    """

    hcas: typing.Mapping[str, typing.Mapping[str, UsedHca]] = dataclasses.field(default_factory=dict)
    tunings: typing.Mapping[str, NodeTuning] = dataclasses.field(default_factory=dict)
    roce: typing.Optional[Roce] = None
    several_leaves: bool = False
    adaptive_routing: typing.Optional[bool] = None
    from_gpu_memory: typing.Optional[bool] = None
    rails_gbs: typing.Mapping[int, float] = dataclasses.field(default_factory=dict)
    set_by_run: frozenset[str] = frozenset()


def make_cause(subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    """Return a warning ``collectives.cause`` on a possible cause of a slow collective.

    :param subject: subject of the finding
    :param measured: observed value, as text
    :param expected: value that would not slow down the collective, as text
    :param why: how the cause slows down the collective
    :param remedy: instruction to the user that resolves the cause
    """
    return Finding("collectives.cause", subject, WARN, measured, expected, why, remedy)


def fold_names(names: typing.Iterable[str]) -> str:
    """Join distinct names for a finding, and add the number of omitted names."""
    return join_first(list(dict.fromkeys(names)), NAMED)
