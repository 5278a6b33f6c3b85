# SPDX-License-Identifier: GPL-3.0-or-later

"""The measured pairs as a matrix of clients and servers. A thousand nodes would have a million cells, so a large matrix
is folded by leaf and shows its worst values.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
import typing

#: rows and columns that a reader can still take in
MOST_NODES = 32
#: rows of the table of nodes beside a folded matrix
MOST_SLOW_NODES = 12

#: what a cell says, the worst first
LEVELS = ("fail", "unknown", "waived", "seen", "pass")


class Cell(typing.NamedTuple):
    """A cell of a matrix: one direction between two nodes, or all directions between two groups of nodes.

    :ivar level: worst level of the findings on the cell, one of LEVELS; ``seen`` for a direction that was measured but
        has no finding of its own
    :ivar value: measured value in the unit of the matrix, for groups the worst one; None if not measured
    :ivar words: tooltip of the cell, one line of text for each statement
    :ivar directions: number of directions that the cell represents
    :ivar wrong: number of directions in the cell that fail or are unknown
    """

    level: str
    value: typing.Optional[float]
    words: str
    directions: int = 1
    wrong: int = 0


@dataclasses.dataclass(frozen=True)
class Matrix:
    """A matrix of clients and servers: all measured directions of one rail of one fabric.

    :ivar title: title such as 'compute, rail 0'
    :ivar what: measured quantity, such as 'average'
    :ivar unit: Gb/s or %
    :ivar more_is_better: whether a larger value is better
    :ivar names: names of the nodes or groups of nodes, in the order of the lines and of the columns
    :ivar cells: cells by client and server. Pairs that were not to be measured are absent
    :ivar leaves: name of the leaf of each node, by node, as far as it is known
    :ivar folded: number of nodes of each group, by name of the group; empty if each name is a node
    """

    title: str
    what: str
    unit: str
    more_is_better: bool
    names: tuple[str, ...]
    cells: typing.Mapping[tuple[str, str], Cell]
    leaves: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    folded: typing.Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def best(self) -> typing.Optional[float]:
        values = [cell.value for cell in self.cells.values() if cell.value is not None]
        return (max if self.more_is_better else min)(values, default=None)

    def worst(self, values: typing.Iterable[float]) -> typing.Optional[float]:
        """Return the worst of the given values: the smallest if more is better, else the largest. Return None if there
        are no values.
        """
        return (min if self.more_is_better else max)(values, default=None)


@dataclasses.dataclass(frozen=True)
class NodeRow:
    """The summary of all measurements of one node. A value is None if nothing was measured.

    :ivar name: name of the node
    :ivar leaf: name of the node's leaf; None if not known
    :ivar worst: worst value of all directions
    :ivar as_client: median of the directions in which the node is the client
    :ivar as_server: median of the directions in which the node is the server
    :ivar count: number of directions
    :ivar wrong: number of directions that fail or are unknown
    """

    name: str
    leaf: typing.Optional[str]
    worst: typing.Optional[float]
    as_client: typing.Optional[float]
    as_server: typing.Optional[float]
    count: int
    wrong: int


def group_by_number(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key of a name by which the numbers in the name are compared as numbers, so that worker-2 precedes
    worker-10.
    """
    # only the digits of ASCII: isdigit() is true of more than int() reads
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]{1,18})", name)
        if part
    )


def fold_matrix(matrix: Matrix, most: int = MOST_NODES) -> Matrix:
    """Return the matrix unchanged if it has at most ``most`` nodes. Otherwise return a matrix of groups of nodes. The
    nodes are grouped by leaf if all leaves are known and there are at most ``most`` of them, otherwise by their order.
    """
    if len(matrix.names) <= most:
        return matrix
    group_of = _make_groups(matrix, most)
    sizes: dict[str, int] = {}
    for name in matrix.names:
        sizes[group_of[name]] = sizes.get(group_of[name], 0) + 1
    together: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for client, server in matrix.cells:
        together.setdefault((group_of[client], group_of[server]), []).append((client, server))
    cells = {key: _merge_cells(matrix, pairs) for key, pairs in together.items()}
    return dataclasses.replace(matrix, names=tuple(sizes), cells=cells, leaves={}, folded=sizes)


def list_rows_of_nodes(matrix: Matrix) -> tuple[NodeRow, ...]:
    """Return for each measured node its worst direction and its medians, as client and as server. Nodes with the most
    failed or unknown directions come first, then those with the worst value.
    """
    as_client: dict[str, list[Cell]] = {name: [] for name in matrix.names}
    as_server: dict[str, list[Cell]] = {name: [] for name in matrix.names}
    for (client, server), cell in matrix.cells.items():
        as_client[client].append(cell)
        as_server[server].append(cell)
    rows = [
        _make_node_row(matrix, name, as_client[name], as_server[name])
        for name in matrix.names
        if as_client[name] or as_server[name]
    ]
    sign = 1.0 if matrix.more_is_better else -1.0
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                -row.wrong,
                sign * (row.worst if row.worst is not None else 0.0),
                group_by_number(row.name),
            ),
        )
    )


def compute_median(cells: typing.Iterable[Cell]) -> typing.Optional[float]:
    values = [cell.value for cell in cells if cell.value is not None]
    return statistics.median(values) if values else None


def format_number(value: typing.Optional[float]) -> str:
    """Return a measured value as text with three significant digits, and from 1000 on without decimals. Return a dash
    for None.
    """
    return "\u2013" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _make_groups(matrix: Matrix, most: int) -> dict[str, str]:
    leaves = {matrix.leaves.get(name) for name in matrix.names}
    if None not in leaves and 2 <= len(leaves) <= most:
        return {name: matrix.leaves[name] for name in matrix.names}
    size = -(-len(matrix.names) // most)
    result = {}
    for start in range(0, len(matrix.names), size):
        block = matrix.names[start : start + size]
        result.update(dict.fromkeys(block, block[0] if len(block) == 1 else f"{block[0]} \u2026 {block[-1]}"))
    return result


def _merge_cells(matrix: Matrix, pairs: typing.Sequence[tuple[str, str]]) -> Cell:
    cells = [matrix.cells[pair] for pair in pairs]
    level = min((cell.level for cell in cells), key=LEVELS.index)
    values = {pair: cell.value for pair, cell in zip(pairs, cells) if cell.value is not None}
    worst = matrix.worst(values.values())
    wrong = sum(cell.wrong for cell in cells)
    words = (
        f"{len(cells)} directions, {wrong} not verified; median {matrix.what} {format_number(compute_median(cells))}"
        f" {matrix.unit}"
    )
    if worst is not None:
        client, server = next(pair for pair in pairs if values.get(pair) == worst)
        words += f"\nworst: {client} \u2192 {server}, {format_number(worst)} {matrix.unit}"
    return Cell(level, worst, words, len(cells), wrong)


def _make_node_row(
    matrix: Matrix, name: str, as_client: typing.Sequence[Cell], as_server: typing.Sequence[Cell]
) -> NodeRow:
    both = (*as_client, *as_server)
    worst = matrix.worst(cell.value for cell in both if cell.value is not None)
    return NodeRow(
        name,
        matrix.leaves.get(name),
        worst,
        compute_median(as_client),
        compute_median(as_server),
        len(both),
        sum(cell.wrong for cell in both),
    )
