# SPDX-License-Identifier: GPL-3.0-or-later

"""Render one measured quantity of stage compare as a table: the figure of each network, and the advice that follows
from the figures.
"""

from __future__ import annotations

from ..._check.compare.advice import Advice
from ..._check.compare.check import Compared
from ..._check.compare.scaling import ScalingRow
from ..markup.markup import Html, join_content, render_element
from ..markup.tables import render_row, render_table


def render_figure(item: Compared) -> Html:
    """Render the table of one measured quantity, sorted by the number of nodes and, within each number, from the
    slowest network to the fastest. A measurement on a single node comes first. A list of advice follows the table if
    there is any.
    """
    measure = item.measure
    single = (
        [render_row("one node", "", "1", f"{measure.single_node:.4g}", "1", "100 %", "", "")]
        if measure.single_node is not None
        else []
    )
    ordered = sorted(item.rows, key=lambda found: (found.nodes, found.of_best))
    return render_table(
        measure.name,
        f"{measure.better} is better",
        ("Network", "Kind", "Nodes", measure.unit, "Speed-up", "Scaling efficiency", "Share of the best", "Alarm"),
        [*single, *map(_render_row, ordered)],
        render_element("ul", *map(_render_advice, item.advice), class_="marked") if item.advice else None,
    )


def _render_row(found: ScalingRow) -> Html:
    return render_row(
        found.network,
        found.kind.replace("_", " "),
        str(found.nodes),
        f"{found.value:.4g}",
        None if found.speed_up is None else f"{found.speed_up:.2f}",
        None if found.efficiency is None else f"{100 * found.efficiency:.1f} %",
        f"{100 * found.of_best:.1f} %",
        (
            None
            if found.slower_than is None
            else join_content(render_element("b", "negative scaling"), f": slower than {found.slower_than}")
        ),
    )


def _render_advice(advice: Advice) -> Html:
    return render_element(
        "li", render_element("b", advice.text), f" {advice.reason} ", render_element("span", advice.figures)
    )
