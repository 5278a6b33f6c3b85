# SPDX-License-Identifier: GPL-3.0-or-later

"""Are nodes of one kind alike, whatever is expected of them. Check id: ``tuning.alike``.

Of one kind are nodes whose CPUs, GPUs and HCAs are of the same models. What most of them show is usual; where as many
show another thing, neither is.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.node.tuning import NodeTuning
from ..._model.node.tuning_rows.row import TuningRow
from ..._model.node.tuning_rows.table import ROWS
from ..._model.run.findings import WARN, Finding, ok
from .rows import Nodes, Strangers, choose_remedy, explain_why_unread, names

CHECK = "tuning.alike"
_KIND = ("cpu_model", "gpu_model", "hca_model")
_Values = frozenset[str]
_Kind = tuple[_Values, ...]


@dataclasses.dataclass(frozen=True)
class DifferingRow:
    """A row of which nodes of one kind show different things.

    :ivar nodes: that show what is not usual; all of the kind where nothing is
    :ivar value: that they show
    :ivar usual: that most show; None where as many show one thing as another
    :ivar most: nodes that show what is usual, and ``known``, those that were compared
    """

    row: TuningRow
    nodes: tuple[str, ...]
    value: str
    usual: typing.Optional[str]
    most: int
    known: int


@dataclasses.dataclass(frozen=True)
class NodeGroup:
    """Nodes of one kind.

    :ivar kind: CPUs, GPUs and HCAs in words
    """

    kind: str
    nodes: tuple[str, ...]
    odd: tuple[DifferingRow, ...]


def check(
    nodes: Nodes, told: typing.Mapping[str, typing.Collection[str]], strangers: Strangers
) -> typing.Iterator[Finding]:
    """:param told: by row the nodes of which was said already that it is wrong or unread: each cause is told once"""
    for group in make_groups(nodes, told):
        for odd in group.odd:
            remedy = choose_remedy(
                odd.row, {name: nodes[name].rows.get(odd.row.name, ()) for name in odd.nodes}, strangers
            )
            yield _make_differing_finding(odd, remedy)
        if not group.odd:
            members = group.nodes
            alone = (
                "1 node: there is none to compare it with"
                if len(members) == 1
                else f"{len(members)} nodes show the same"
            )
            yield ok(CHECK, names(members), alone, f"nodes of one kind are alike: {group.kind}")


def make_groups(nodes: Nodes, told: typing.Mapping[str, typing.Collection[str]]) -> tuple[NodeGroup, ...]:
    """Return the nodes of one kind, and what is odd on whom.

    :param told: by row the nodes that are left out of the comparison of this row
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


def _make_differing_finding(odd: DifferingRow, remedy: str) -> Finding:
    row, subject = odd.row, f"{odd.row.name} of {names(odd.nodes)}"
    if odd.usual is None:
        why = f"As many of {odd.known} nodes of one kind show the one as the other, so neither is usual. {row.harm}"
        return Finding(CHECK, subject, WARN, odd.value, f"{row.what}: the same on nodes of one kind", why, remedy)
    why = f"{odd.most} of {odd.known} nodes of its kind show {odd.usual}. {row.harm}"
    return Finding(CHECK, subject, WARN, odd.value, f"{row.what}: {odd.usual}, as its like", why, remedy)


def _list_differing_rows(row: TuningRow, nodes: Nodes, told: typing.Collection[str]) -> typing.Iterator[DifferingRow]:
    """Yield the nodes of which more is known than what was told are held against each other."""
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
        measured = folded([f"{_format_values(values)} on {names(members)}" for values, members in by_values.items()], 8)
        yield DifferingRow(row, tuple(nodes), measured, None, most, known)
        return
    for values, members in by_values.items():
        if values != usual:
            yield DifferingRow(row, tuple(members), _format_values(values), _format_values(usual), most, known)


def _collect_row_values(node: NodeTuning, row: str) -> _Values:
    return frozenset(reading.value for reading in node.rows.get(row, ()))


def _format_values(values: _Values) -> str:
    return " and ".join(sorted(values)) or "nothing"


def _describe_node_kind(kind: _Kind) -> str:
    cpus, gpus, hcas = kind
    return f"CPUs {_format_values(cpus)}, GPUs {_format_values(gpus)}, HCAs {_format_values(hcas)}"
