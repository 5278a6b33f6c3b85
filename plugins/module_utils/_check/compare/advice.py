# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that recommend a network for a training job. Each rule applies only because of measured figures, and reports
these figures and its reason.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.comparison import RDMA, Kind, Measure
from .scaling import CLOSE, ScalingRow, figure_of

#: with a NIC of the pod's own, by TCP
_TCP: tuple[Kind, ...] = ("sriov", "macvlan")

Rows = typing.Sequence[ScalingRow]


@dataclasses.dataclass(frozen=True)
class Advice:
    """A recommendation for or against a network, with the measured figures on which it is based.

    :ivar rule: name of the rule
    :ivar text: recommendation, as sentences
    :ivar reason: reason for the recommendation
    :ivar figures: figures that triggered it
    :ivar against: networks that it advises against
    """

    rule: str
    text: str
    reason: str
    figures: str
    against: tuple[str, ...] = ()


def list_measure_advice(measure: Measure, rows: Rows) -> tuple[Advice, ...]:
    """Return the recommendations that the figures of one job or test justify, in the order of the rules.

    :param measure: job or test of which several networks have figures
    :param rows: figures of that job or test, one for each number of nodes, with speed-up and efficiency
    """
    return tuple(advice for rule in _RULES for advice in rule(measure, rows))


def _pod_network(measure: Measure, rows: Rows) -> typing.Iterator[Advice]:
    slow = [row for row in rows if row.kind == "pod_network" and row.of_best < CLOSE]
    if slow:
        yield Advice(
            "pod network",
            "Do not use the pod network for training on several nodes.",
            "The overlay of the pod network sends each packet through the kernels of both hosts, over links that also"
            " carry all other traffic. In a collective, one late packet makes every GPU wait.",
            _format_comparison(measure, slow, [row for row in rows if row.of_best == 1.0]),
            _list_networks(slow),
        )


def _list_scaling_advice(measure: Measure, rows: Rows) -> typing.Iterator[Advice]:
    slow = [row for row in rows if row.slower_than is not None]
    if slow:
        single = "" if measure.single_node is None else f"; one node: {measure.single_node:.4g} {measure.unit}"
        yield Advice(
            "negative scaling",
            f"Do not add nodes to this job on {_join_names(_list_networks(slow))}: the job is faster on fewer nodes"
            " there.",
            "With more nodes, the nodes lose more time in waiting for each other than they save in computation.",
            f"{_format_rows(measure, slow)}{single}",
            _list_networks(slow),
        )


def _list_vnic_advice(measure: Measure, rows: Rows) -> typing.Iterator[Advice]:
    """Yield one recommendation on the vNIC, if it has figures.

    It advises virtual functions if the vNIC is much slower than virtual functions on the same number of nodes, and a
    measurement of virtual functions if the vNIC scales much worse than linearly. Otherwise it reports that a vNIC is
    sufficient, unless there are no figures to compare it with.

    :param measure: job or test of which several networks have figures
    :param rows: figures of that job or test, one for each number of nodes, with speed-up and efficiency
    """
    mine = [row for row in rows if row.kind == "vnic"]
    functions = [
        row for row in rows if row.kind in ("sriov", "sriov_rdma") and any(row.nodes == other.nodes for other in mine)
    ]
    held_back = [
        row
        for row in mine
        if any(row.nodes == other.nodes and row.of_best < CLOSE * other.of_best for other in functions)
    ]
    slow = [row for row in mine if row.efficiency is not None and row.efficiency < measure.enough]
    if held_back:
        yield Advice(
            "virtual functions",
            f"Use virtual functions (SR-IOV) for {_name_jobs(measure)} instead of a vNIC.",
            "These GPUs, like those of the H100 class, produce gradients faster than a vNIC transfers them. A virtual"
            " function gives the pod direct access to the NIC.",
            _format_comparison(measure, held_back, functions),
            _list_networks(held_back),
        )
    elif slow:
        yield Advice(
            "vNIC",
            "Measure this job on virtual functions (SR-IOV) as well: the vNIC limits the job.",
            f"On the vNIC, the job reaches less than {100 * measure.enough:g} % of linear scaling.",
            _format_rows(measure, slow),
            _list_networks(slow),
        )
    elif mine and (functions or all(row.efficiency is not None for row in mine)):
        yield Advice(
            "vNIC",
            f"A vNIC is sufficient for {_name_jobs(measure)}.",
            "Mid-range GPUs produce gradients more slowly than a vNIC transfers them.",
            _format_comparison(measure, mine, functions),
        )


def _list_rdma_advice(measure: Measure, rows: Rows) -> typing.Iterator[Advice]:
    """Yield a recommendation from the comparison of RDMA with TCP over a NIC of the pod's own, on the largest number of
    nodes for which both have a figure. Yield nothing if there is no such number.

    :param measure: job or test of which several networks have figures
    :param rows: figures of that job or test, one for each number of nodes, with speed-up and efficiency
    """
    for nodes in sorted({row.nodes for row in rows}, reverse=True):
        tcp = max(
            (row for row in rows if row.nodes == nodes and row.kind in _TCP), key=lambda row: row.of_best, default=None
        )
        rdma = max(
            (row for row in rows if row.nodes == nodes and row.kind in RDMA), key=lambda row: row.of_best, default=None
        )
        if tcp is None or rdma is None:
            continue
        figures = f"{_format_rows(measure, [rdma])} compared with {_format_rows(measure, [tcp])}"
        if tcp.of_best < CLOSE * rdma.of_best:
            reason = (
                "With RDMA, the NIC reads and writes the memory of the job itself. With TCP, a CPU copies each message"
                " through the kernel."
            )
            yield Advice("RDMA", f"Use RDMA for {_name_jobs(measure)}.", reason, figures, (tcp.network,))
        elif not measure.per_node:
            reason = (
                "TCP is still fast enough for the data that this model exchanges. A larger model exchanges more data"
                " in each step."
            )
            yield Advice("RDMA", "Plan RDMA for larger models. This model does not need it yet.", reason, figures)
        return


_RULES: tuple[typing.Callable[[Measure, Rows], typing.Iterator[Advice]], ...] = (
    _pod_network,
    _list_scaling_advice,
    _list_vnic_advice,
    _list_rdma_advice,
)


def _name_jobs(measure: Measure) -> str:
    """Return the noun for the jobs to which a recommendation applies: a test of the network is not a job itself."""
    return "jobs" if measure.per_node else "this job"


def _format_rows(measure: Measure, rows: Rows) -> str:
    return ", ".join(
        f"{row.network} {figure_of(measure, row)}"
        + ("" if row.efficiency is None else f" ({100 * row.efficiency:.1f} % of linear)")
        for row in rows
    )


def _format_comparison(measure: Measure, rows: Rows, others: Rows) -> str:
    return (
        f"{_format_rows(measure, rows)} compared with {_format_rows(measure, others)}"
        if others
        else _format_rows(measure, rows)
    )


def _list_networks(rows: Rows) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.network for row in rows))


def _join_names(names: typing.Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
