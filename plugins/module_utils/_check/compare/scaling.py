# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the speed-up and the scaling efficiency of the figures of a job or test. Pure arithmetic without verdicts."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.intent.comparison import Kind, Measure

#: networks whose figures differ by less than this are as good as each other
CLOSE = 0.95


@dataclasses.dataclass(frozen=True)
class ScalingRow:
    """A figure of a job or test, for one network and number of nodes, with its speed-up and efficiency.

    :ivar network: name of the network
    :ivar kind: kind of the network
    :ivar nodes: number of nodes
    :ivar value: the figure, in the unit of the job or test
    :ivar of_best: speed divided by that of the fastest network with as many nodes; 1.0 is the fastest
    :ivar speed_up: speed divided by that of one node; None without the figure of one node
    :ivar efficiency: speed-up divided by the number of nodes; 1.0 is linear. None without the figure of one node
    :ivar slower_than: smallest number of nodes for which this network has a better figure (negative scaling); None if
        there is none
    """

    network: str
    kind: Kind
    nodes: int
    value: float
    of_best: float
    speed_up: typing.Optional[float] = None
    efficiency: typing.Optional[float] = None
    slower_than: typing.Optional[int] = None


def is_usable(value: float) -> bool:
    """Return whether a figure is plausible, that is between 1e-12 and 1e12. A figure outside of these limits is a
    typing error, and ratios of it are meaningless.

    :param value: figure of a job or test
    """
    return 1e-12 < value < 1e12


def list_rows(measure: Measure, kinds: typing.Mapping[str, Kind]) -> tuple[ScalingRow, ...]:
    """Return each usable figure of a job or test with its speed-up and efficiency, in the order of the figures.

    :param measure: the job or test
    :param kinds: kind of each network that is a fabric of the intent
    """

    def rate(value: float) -> float:
        return value if measure.better == "more" else 1 / value

    single = (
        None
        if measure.single_node is None or measure.per_node or not is_usable(measure.single_node)
        else rate(measure.single_node)
    )
    figures = [figure for figure in measure.figures if is_usable(figure.value)]
    best: dict[int, float] = {}
    reached: dict[str, dict[int, float]] = {}
    for figure in figures:
        best[figure.nodes] = max(best.get(figure.nodes, 0.0), rate(figure.value))
        reached.setdefault(figure.network, {} if single is None else {1: single})[figure.nodes] = rate(figure.value)
    result = []
    for figure in figures:
        speed = rate(figure.value)
        faster = (
            []
            if measure.per_node
            else [nodes for nodes, other in reached[figure.network].items() if nodes < figure.nodes and other > speed]
        )
        result.append(
            ScalingRow(
                network=figure.network,
                kind=figure.kind or kinds[figure.network],
                nodes=figure.nodes,
                value=figure.value,
                of_best=speed / best[figure.nodes],
                speed_up=None if single is None else speed / single,
                efficiency=None if single is None else speed / single / figure.nodes,
                slower_than=min(faster, default=None),
            )
        )
    return tuple(result)


def figure_of(measure: Measure, row: ScalingRow) -> str:
    """Return a figure as text, with its unit and number of nodes, such as ``380 GB/s on 4 nodes``.

    :param measure: job or test that the figure belongs to
    :param row: figure on one network and one number of nodes
    """
    return f"{row.value:.4g} {measure.unit} on {count_of(row.nodes, 'node')}"
