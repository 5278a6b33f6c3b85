# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a matrix of measured pairs as an HTML table: numbers for screen readers, colors and signs for a quick
overview, and details in tooltips.
"""

from __future__ import annotations

import statistics
import typing

from ..markup.markup import Html, render_element
from .matrix import (
    MOST_SLOW_NODES,
    Cell,
    Matrix,
    NodeRow,
    compute_median,
    fold_matrix,
    format_number,
    list_rows_of_nodes,
)

# a sign for each level, so that nobody needs the colours
_SIGNS = {"fail": "\u2715", "unknown": "?", "waived": "w", "seen": "", "pass": ""}
#: share of the best value: class of the cell
_SHADES = ((0.98, "best"), (0.95, "near"), (0.0, "less"))


def render_figure(whole: Matrix) -> Html:
    """Render the matrix with its legend. A matrix of many nodes shows groups of nodes, followed by a table of the nodes
    with the worst figures. If all directions of all pairs passed, the matrix is collapsed.
    """
    shown = fold_matrix(whole)
    wrong = sum(cell.wrong for cell in whole.cells.values())
    words = f"{len(whole.names)} nodes, {len(whole.cells)} directions measured or attempted, {wrong} not verified"
    if shown.folded:
        words += f"; combined into {len(shown.names)} groups of nodes; each cell shows the worst direction of its group"
    words += _describe_range(whole)
    caption = (render_element("b", f"{whole.title}: {whole.what} in {whole.unit}"), " ", render_element("span", words))
    parts = (
        render_element(
            "div",
            _render_grid(shown),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=f"{whole.title}: {whole.what}, matrix of clients and servers",
        ),
        _render_legend(shown),
        _render_slow_nodes(whole) if shown.folded else None,
    )
    if is_well(whole):
        # nothing in it that a reader must see, and its figures are in the words
        return render_element(
            "figure",
            render_element(
                "details", render_element("summary", render_element("span", *caption, class_="caption")), *parts
            ),
        )
    return render_element("figure", render_element("figcaption", *caption), *parts)


def is_well(whole: Matrix) -> bool:
    """Return whether all directions of all pairs passed. A direction that is waived, or that has no finding of its own,
    does not count as passed.
    """
    return {cell.level for cell in whole.cells.values()} == {"pass"}


def _describe_range(whole: Matrix) -> str:
    """Return a text with the lowest, median and best figure of all directions, which begins with a semicolon. Return an
    empty text if there are no figures, or if a lower figure is better.
    """
    values = [cell.value for cell in whole.cells.values() if cell.value is not None]
    if not whole.more_is_better or not values:
        return ""
    return (
        f"; lowest {format_number(min(values))}, median {format_number(statistics.median(values))}, best"
        f" {format_number(max(values))}"
    )


def _render_grid(shown: Matrix) -> Html:
    # the middle of a row or a column tells a slow node at a glance; of groups it would be one of their worst
    with_middle = not shown.folded
    top = [render_element("th", render_element("span", "client \u2193 server \u2192"), class_="corner", scope="col")]
    top += [
        render_element("th", render_element("span", name, title=_describe_group(shown, name)), scope="col")
        for name in shown.names
    ]
    best = shown.best
    rows = []
    for client in shown.names:
        cells = [
            _make_cell(shown.cells.get((client, server)), best, shown, same=client == server) for server in shown.names
        ]
        head = render_element("th", render_element("span", client, title=_describe_group(shown, client)), scope="row")
        middle = (
            compute_median(cell for (name, _server), cell in shown.cells.items() if name == client)
            if with_middle
            else None
        )
        rows.append(
            render_element(
                "tr",
                head,
                *cells,
                render_element("td", format_number(middle), class_="middle") if with_middle else None,
            )
        )
    foot = None
    if with_middle:
        top.append(render_element("th", render_element("span", "median"), scope="col"))
        middles = (
            compute_median(cell for (_client, name), cell in shown.cells.items() if name == server)
            for server in shown.names
        )
        foot = render_element(
            "tfoot",
            render_element(
                "tr",
                render_element("th", render_element("span", "median"), scope="row"),
                *[_render_middle(value) for value in middles],
                render_element("td"),
            ),
        )
    return render_element(
        "table",
        render_element("thead", render_element("tr", *top)),
        render_element("tbody", *rows),
        foot,
        class_="grid",
    )


def _render_middle(value: typing.Optional[float]) -> Html:
    return render_element("td", format_number(value), class_="middle")


def _make_cell(cell: typing.Optional[Cell], best: typing.Optional[float], shown: Matrix, same: bool) -> Html:
    if cell is None:
        return render_element("td", class_="self" if same and not shown.folded else None)
    # seen by all in a small matrix, and told by the sign in a large one
    text = f"{_SIGNS[cell.level]}{format_number(cell.value) if cell.value is not None else ''}"
    return render_element("td", text, class_=_choose_shade(cell, best, shown.more_is_better), title=cell.words)


def _choose_shade(cell: Cell, best: typing.Optional[float], more_is_better: bool) -> str:
    if cell.level != "pass":
        return cell.level
    share = cell.value / best if more_is_better and best and cell.value is not None else 1.0
    return next((f"pass {name}" for least, name in _SHADES if share >= least), "pass less")


def _render_legend(shown: Matrix) -> Html:
    levels = {cell.level for cell in shown.cells.values()}
    entries = []
    if "pass" in levels and shown.more_is_better:
        entries += [
            ("pass best", "98", "passes, at least 98 % of the best"),
            ("pass near", "95", "passes, at least 95 %"),
            ("pass less", "93", "less"),
        ]
    elif "pass" in levels:
        entries.append(("pass best", "0", "passes"))
    words = {
        "fail": "fails",
        "unknown": "could not be measured",
        "waived": "waived",
        "seen": "measured, without a finding of its own",
    }
    entries += [(level, _SIGNS[level], text) for level, text in words.items() if level in levels]
    entries.append(("", "", "not requested"))
    return render_element(
        "ul",
        *[
            render_element("li", render_element("i", sign, class_=f"key {name}", aria_hidden="true"), text)
            for name, sign, text in entries
        ],
        class_="legend",
    )


def _render_slow_nodes(whole: Matrix) -> Html:
    rows = list_rows_of_nodes(whole)
    names = ("Node", "Leaf", f"Worst, {whole.unit}", "Median as client", "Median as server", "Not verified")
    title = f"The {min(MOST_SLOW_NODES, len(rows))} nodes to check first, of {len(rows)}"
    head = render_element("thead", render_element("tr", *[render_element("th", name, scope="col") for name in names]))
    body = render_element("tbody", *[_render_slow_node(row) for row in rows[:MOST_SLOW_NODES]])
    table = render_element("table", render_element("caption", title), head, body, class_="numbers")
    return render_element(
        "div", table, class_="scroll", tabindex=0, role="region", aria_label=f"{whole.title}, {whole.what}: {title}"
    )


def _render_slow_node(row: NodeRow) -> Html:
    values = [format_number(row.worst), format_number(row.as_client), format_number(row.as_server)]
    return render_element(
        "tr",
        render_element("th", render_element("bdi", row.name), scope="row"),
        render_element("td", row.leaf or "\u2013"),
        *[render_element("td", value, class_="number") for value in values],
        render_element("td", f"{row.wrong} of {row.count}", class_="number"),
    )


def _describe_group(shown: Matrix, name: str) -> str:
    return f"{name}: {shown.folded[name]} nodes" if name in shown.folded else name
