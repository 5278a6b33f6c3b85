# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of stage collectives as a table: each group that is proven, with its floor."""

from __future__ import annotations

import typing

from .._check.collectives.course import GroupFigure
from .._model.text import folded
from .markup import Html, element
from .tables import row, table


def figure(found: typing.Sequence[GroupFigure]) -> Html:
    """Return the table: the slow ones first, then in their order."""
    ordered = sorted(found, key=lambda item: not item.slow)
    heads = ("Collective", "Step", "Nodes", "GB/s", "Floor", "Of the floor")
    return table("Collectives that are proven", "bus bandwidth in GB/s", heads, list(map(_row, ordered)))


def _row(item: GroupFigure) -> Html:
    part = f"{100 * item.bus_gbs / item.floor_gbs:.0f} %" if item.floor_gbs else None
    return row(
        item.collective,
        item.kind,
        folded(item.nodes, 4),
        f"{item.bus_gbs:.1f}",
        None if item.floor_gbs is None else f"{item.floor_gbs:.1f}",
        element("b", f"{part}, too slow") if item.slow else part,
    )
