# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the tuning of nodes with the same hardware with each other, independently of the expected values. Check id:
``tuning.alike``.

Nodes are comparable if their CPUs, GPUs and HCAs are of the same models. The value of most of them is the usual value.
If the two most frequent values are on equally many nodes, no value is usual.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.node.tuning import NodeTuning
from ..._model.node.tuning_rows.row import TuningRow
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import WARN, Finding, build_pass
from .absent import explain_absent
from .rows import (
    ABSENT,
    Nodes,
    Strangers,
    choose_remedy,
    describe_readings,
    describe_value,
    explain_why_unread,
    join_node_names,
    name_source,
)

CHECK = "tuning.alike"
_KIND = ("cpu_model", "gpu_model", "hca_model")
_Values = frozenset[str]
_Kind = tuple[_Values, ...]


@dataclasses.dataclass(frozen=True)
class DifferingRow:
    """A tuning row (one observable property) in which comparable nodes have different values.

    :ivar row: tuning row in which the nodes differ
    :ivar nodes: names of the nodes with a value that is not usual; all comparable nodes if no value is usual
    :ivar value: value that these nodes have
    :ivar usual: value of most nodes; None if the most frequent values are on equally many nodes
    :ivar most: number of nodes with the most frequent value
    :ivar known: number of nodes that were compared
    """

    row: TuningRow
    nodes: tuple[str, ...]
    value: str
    usual: typing.Optional[str]
    most: int
    known: int


@dataclasses.dataclass(frozen=True)
class NodeGroup:
    """A group of comparable nodes, and the tuning rows in which they differ.

    :ivar kind: models of the CPUs, GPUs and HCAs of the nodes, as text
    :ivar nodes: names of the nodes
    :ivar odd: tuning rows with different values, one item for each differing value
    """

    kind: str
    nodes: tuple[str, ...]
    odd: tuple[DifferingRow, ...]


def check(
    nodes: Nodes, told: typing.Mapping[str, typing.Collection[str]], strangers: Strangers
) -> typing.Iterator[Finding]:
    """Compare the tuning rows of comparable nodes with each other.

    Yield a finding for each value that differs from the usual value, or a pass for a group without differences.

    :param nodes: tuning of each node
    :param told: names of the nodes that are left out, by name of the tuning row, because another finding already
        reports that the value is wrong or unread
    :param strangers: HCAs of other vendors than NVIDIA, by node
    """
    for group in make_groups(nodes, told):
        for odd in group.odd:
            remedy = choose_remedy(
                odd.row, {name: nodes[name].rows.get(odd.row.name, ()) for name in odd.nodes}, strangers
            )
            why, remedy = (
                explain_absent(odd.row, _choose_node_without(odd, nodes))
                if ABSENT in odd.value
                else (odd.row.harm, remedy)
            )
            yield _make_differing_finding(odd, _measure(odd, nodes), why, remedy)
        if not group.odd:
            members = group.nodes
            alone = (
                "1 node: no comparable node"
                if len(members) == 1
                else f"{count_of(len(members), 'node')} with the same values"
            )
            yield build_pass(CHECK, join_node_names(members), alone, f"same values on comparable nodes: {group.kind}")


def make_groups(nodes: Nodes, told: typing.Mapping[str, typing.Collection[str]]) -> tuple[NodeGroup, ...]:
    """Return the groups of comparable nodes, with the tuning rows in which their nodes differ.

    :param nodes: tuning of each node
    :param told: names of the nodes that are left out of the comparison, by name of the tuning row
    """
    kinds: dict[_Kind, list[str]] = {}
    for name, node in nodes.items():
        kinds.setdefault(tuple(_collect_row_values(node, row) for row in _KIND), []).append(name)
    return tuple(
        NodeGroup(
            _describe_node_kind(kind),
            tuple(members),
            tuple(
                odd
                for row in ROWS
                if row.alike
                for odd in _list_differing_rows(row, {name: nodes[name] for name in members}, told.get(row.name, ()))
            ),
        )
        for kind, members in kinds.items()
    )


def _measure(odd: DifferingRow, nodes: Nodes) -> str:
    """Return the value of the nodes that differ as text. If it is a single node, add the devices with this value.

    :param odd: tuning row in which the nodes differ, with their value
    :param nodes: tuning of each node
    """
    readings = nodes[odd.nodes[0]].rows.get(odd.row.name, ())
    return describe_readings(readings) if len(odd.nodes) == 1 and odd.usual is not None and readings else odd.value


def _make_differing_finding(odd: DifferingRow, measured: str, reason: str, remedy: str) -> Finding:
    row, subject = odd.row, f"{odd.row.name} of {join_node_names(odd.nodes)}"
    harm = f"{reason}{name_source(len(odd.nodes))}"
    if odd.usual is None:
        why = (
            f"The values differ between {odd.known} comparable nodes, and no value is the most frequent, so the usual"
            f" value is unknown. {harm}"
        )
        return Finding(CHECK, subject, WARN, measured, f"{row.what}: the same on comparable nodes", why, remedy)
    usual = f"do not have {row.name}" if odd.usual == ABSENT else f"have the value {odd.usual}"
    why = f"{odd.most} of {odd.known} comparable nodes {usual}. {harm}"
    expected = f"{row.what}: {_name_usual(odd.usual)}, as on comparable nodes"
    return Finding(CHECK, subject, WARN, measured, expected, why, remedy)


def _name_usual(usual: str) -> str:
    """Return the usual value as text. The text of the value ``none`` shows that it is a value."""
    return "the value none" if usual == "none" else usual


def _choose_node_without(odd: DifferingRow, nodes: Nodes) -> str:
    """Return the first of the differing nodes that does not have the value at all.

    If all of them have it, return the first node.

    :param nodes: tuning of each node
    """
    return next((name for name in odd.nodes if not nodes[name].rows.get(odd.row.name)), odd.nodes[0])


def _list_differing_rows(row: TuningRow, nodes: Nodes, told: typing.Collection[str]) -> typing.Iterator[DifferingRow]:
    """Yield the values of a tuning row that differ from the usual value of comparable nodes.

    If no value is usual, yield one item with all values. Nodes whose value is unread or already reported are left out.

    :param nodes: tuning of the comparable nodes
    :param told: names of the nodes that are left out
    """
    by_values: dict[_Values, list[str]] = {}
    for name, node in nodes.items():
        if name not in told and explain_why_unread(node, row.name) is None:
            by_values.setdefault(_collect_row_values(node, row.name), []).append(name)
    if len(by_values) < 2:
        return
    known = sum(map(len, by_values.values()))
    (usual, most), (_second, next_most) = collections.Counter(
        {values: len(members) for values, members in by_values.items()}
    ).most_common(2)
    if most == next_most:
        measured = join_first(
            [f"{join_node_names(members)}: {_format_values(values)}" for values, members in by_values.items()], 8
        )
        yield DifferingRow(row, tuple(nodes), measured, None, most, known)
        return
    for values, members in by_values.items():
        if values != usual:
            yield DifferingRow(row, tuple(members), _format_values(values), _format_values(usual), most, known)


def _collect_row_values(node: NodeTuning, row: str) -> _Values:
    return frozenset(reading.value for reading in node.rows.get(row, ()))


def _format_values(values: _Values) -> str:
    return " and ".join(map(describe_value, sorted(values))) or ABSENT


def _describe_node_kind(kind: _Kind) -> str:
    cpus, gpus, hcas = kind
    return ", ".join(
        f"{noun} {' and '.join(sorted(values)) or 'none'}"
        for noun, values in (("CPUs", cpus), ("GPUs", gpus), ("HCAs", hcas))
    )
