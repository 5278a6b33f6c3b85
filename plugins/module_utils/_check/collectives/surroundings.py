# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts beside NCCL's log by which the cause of a slow collective is found: the HCAs, the nodes and the fabric."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.node.tuning import NodeTuning, Roce
from ..._model.run.findings import WARN, Finding

#: part of the usual rate of a rail below which a rail is weak
WEAK = 0.9
NAMED = 4


@dataclasses.dataclass(frozen=True)
class UsedHca:
    """An HCA that the run may use.

    :ivar rail: None where it is not known
    :ivar numa_node: None where it is not known
    :ivar rate_gbps: rate that stage bandwidth measured, in Gb/s; None where it did not
    """

    rail: typing.Optional[int] = None
    numa_node: typing.Optional[int] = None
    rate_gbps: typing.Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The facts beside the log.

    :ivar hcas: by host, as NCCL writes it, and RDMA device
    :ivar tunings: tuning of the nodes, by host
    :ivar roce: settings of the fabric for RoCE; None on InfiniBand
    :ivar several_leaves: the run uses links between switches
    :ivar adaptive_routing: the switches spread packets of one flow over their links; None where that is not known
    :ivar from_gpu_memory: the rates of the rails were measured from the GPUs' memory; None where they were not measured
    :ivar rails_gbs: bus bandwidth of each rail alone, where it was run rail by rail, in GB/s
    :ivar set_by_run: variables that the run sets itself
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
    """Return the finding on a possible cause, which is a warning."""
    return Finding("collectives.cause", subject, WARN, measured, expected, why, remedy)


def fold_names(names: typing.Iterable[str]) -> str:
    """Join names for a finding, with the number of those that are left out."""
    return folded(list(dict.fromkeys(names)), NAMED)
