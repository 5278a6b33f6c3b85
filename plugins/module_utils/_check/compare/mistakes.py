# SPDX-License-Identifier: GPL-3.0-or-later

"""Find mistakes in ``rdma_cluster.measures``, for stage validate."""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.comparison import Figure, Kind, Measure
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_kind
from .scaling import is_usable

#: path, what is there and what should be
Mistake = tuple[str, str, str]


def report_mistakes(intent: Intent) -> typing.Iterator[Mistake]:
    """Yield the mistakes in ``rdma_cluster.measures``, each as path, actual value and expected value."""
    kinds = next(iter(run_rule(_list_network_kinds, intent)), None)
    seen: set[str] = set()
    for index, measure in enumerate(intent.cluster.measures):
        path = f"rdma_cluster.measures[{index}]"
        yield from run_rule(_same_measure, measure, path, seen)
        yield from run_rules(
            (_no_figure, _single_node, _check_efficiency_limit, _check_collective_measure), measure, path
        )
        yield from run_rule(_figure_mistakes, measure, path, kinds)


def _list_network_kinds(intent: Intent) -> typing.Iterator[typing.Mapping[str, Kind]]:
    """Yield one mapping from the name of each fabric to its kind of network, or nothing if a fabric could not be
    loaded.
    """
    yield {fabric.name: find_kind(fabric) for fabric in intent.fabrics}


def _same_measure(measure: Measure, path: str, seen: set[str]) -> typing.Iterator[Mistake]:
    if measure.name in seen:
        yield f"{path}.name", f"'{measure.name}', already the name of another measure", "a unique name"
    seen.add(measure.name)


def _no_figure(measure: Measure, path: str) -> typing.Iterator[Mistake]:
    if not measure.figures and measure.collective is None:
        yield f"{path}.figures", "no figure", "at least one figure"


def _single_node(measure: Measure, path: str) -> typing.Iterator[Mistake]:
    if measure.single_node is not None and (measure.per_node or not is_usable(measure.single_node)):
        yield (
            f"{path}.single_node",
            f"{measure.single_node:g}",
            "no single_node together with per_node" if measure.per_node else "a figure above 0",
        )


def _check_collective_measure(measure: Measure, path: str) -> typing.Iterator[Mistake]:
    """Yield the settings of an entry of ``rdma_cluster.measures`` that contradict its key ``collective``. Stage
    collectives measures the bus bandwidth in GB/s, and more is better.

    :param measure: entry of ``rdma_cluster.measures``
    :param path: path of the entry in the intent
    """
    if measure.collective is None:
        return
    if measure.unit != "GB/s" or measure.better != "more":
        yield (
            f"{path}.unit",
            f"{measure.unit}, {measure.better} is better",
            "GB/s, more is better (required with collective)",
        )
    if not measure.per_node:
        yield f"{path}.per_node", "false", "true (required with collective: more nodes do not raise a bus bandwidth)"


def _check_efficiency_limit(measure: Measure, path: str) -> typing.Iterator[Mistake]:
    if not 0 < measure.enough <= 1:
        yield f"{path}.enough", f"{measure.enough:g}", "more than 0, at most 1"


def _figure_mistakes(
    measure: Measure, path: str, kinds: typing.Optional[typing.Mapping[str, Kind]]
) -> typing.Iterator[Mistake]:
    """Yield the mistakes in the figures of an entry of ``rdma_cluster.measures``.

    :param measure: entry of ``rdma_cluster.measures``
    :param path: path of the entry in the intent
    :param kinds: kind of network of each fabric; None if unknown
    """
    seen: set[tuple[str, int]] = set()
    others: dict[str, typing.Optional[Kind]] = {}
    for index, figure in enumerate(measure.figures):
        where = f"{path}.figures[{index}]"
        yield from run_rules((_too_few_nodes, _unusable_value), figure, where)
        yield from run_rule(_figure_again, figure, where, seen)
        yield from run_rule(_figure_kind, figure, where, kinds, others)


def _too_few_nodes(figure: Figure, where: str) -> typing.Iterator[Mistake]:
    if figure.nodes < 2:
        yield f"{where}.nodes", str(figure.nodes), "at least 2 nodes; the key for the figure of one node is single_node"


def _unusable_value(figure: Figure, where: str) -> typing.Iterator[Mistake]:
    if not is_usable(figure.value):
        yield f"{where}.value", f"{figure.value:g}", "a figure above 0"


def _figure_again(figure: Figure, where: str, seen: set[tuple[str, int]]) -> typing.Iterator[Mistake]:
    if (figure.network, figure.nodes) in seen:
        yield (
            where,
            f"a second figure for {figure.network} on {count_of(figure.nodes, 'node')}",
            "one figure for each network and number of nodes",
        )
    seen.add((figure.network, figure.nodes))


def _figure_kind(
    figure: Figure,
    where: str,
    kinds: typing.Optional[typing.Mapping[str, Kind]],
    others: dict[str, typing.Optional[Kind]],
) -> typing.Iterator[Mistake]:
    if kinds is not None and figure.network in kinds and figure.kind not in (None, kinds[figure.network]):
        yield (
            f"{where}.kind",
            str(figure.kind),
            f"{kinds[figure.network]}, the kind of this fabric's profile, or no kind",
        )
    if kinds is not None and figure.network not in kinds and figure.kind is None:
        yield (
            f"{where}.kind",
            "missing",
            f"the kind of network of '{figure.network}', because it is not a fabric of the intent",
        )
    if others.setdefault(figure.network, figure.kind) != figure.kind:
        yield f"{where}.kind", str(figure.kind), f"{others[figure.network]}, as in the first figure of this network"
