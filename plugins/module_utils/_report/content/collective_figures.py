# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the figures of stage collectives as tables: for each group of nodes whose test is proven, the bus bandwidth
by message size, its floor (the least accepted value), and the upper bound of its links; and for each pair of nodes the
latency of small messages.
"""

from __future__ import annotations

import typing

from ..._check.collectives.group_verdict import GroupFigure
from ..._check.collectives.latency import GroupLatency
from ..._model.base.text import join_first
from ..markup.markup import Html, render_element
from ..markup.tables import render_row, render_table

_WIDTH, _HEIGHT, _EDGE = 132.0, 26.0, 3.0
#: pairs that have a row of their own
_MOST_PAIRS = 16
_HEADS = ("Collective", "Step", "Nodes", "By size", "GB/s", "Floor", "Share of the floor")


def render_figure(found: typing.Sequence[GroupFigure]) -> Html:
    """Render the table of the bus bandwidths. Groups below their floor come first, and the order is otherwise
    unchanged.

    :param found: bus bandwidth of each group of nodes
    """
    ordered = sorted(found, key=lambda item: not item.slow)
    return render_table(
        "Verified collectives",
        "bus bandwidth in GB/s; the horizontal line is the floor, and the band above it extends to the upper bound of"
        " the links",
        _HEADS,
        list(map(_render_row, ordered)),
    )


def render_latencies(found: typing.Sequence[GroupLatency]) -> Html:
    """Render the table of the latencies of small messages. The slowest ``_MOST_PAIRS`` pairs are listed, the slowest
    first, and the number of the other pairs is stated.

    :param found: latency of each pair of nodes, at least one
    """
    ordered = sorted(found, key=lambda item: -item.latency.mean_us)
    longest = max(item.latency.p99_us or item.latency.mean_us for item in found)
    more = f"; {len(ordered) - _MOST_PAIRS} faster pairs are not shown" if len(ordered) > _MOST_PAIRS else ""
    return render_table(
        "Latency of small messages between two nodes",
        f"mean of the slowest rail, in us; the band reaches to the time that 99 % of the messages keep{more}",
        ("Collective", "Nodes", "Mean and p99", "Mean, us", "p99, us"),
        [
            render_row(
                item.collective,
                join_first(item.nodes, 4),
                render_bar(item.latency.mean_us, item.latency.p99_us, longest),
                f"{item.latency.mean_us:.1f}",
                None if item.latency.p99_us is None else f"{item.latency.p99_us:.1f}",
            )
            for item in ordered[:_MOST_PAIRS]
        ],
    )


def render_bar(mean_us: float, p99_us: typing.Optional[float], longest: float) -> Html:
    """Draw a latency as an SVG on a scale from 0: a line to the mean with a dot, and a band from the mean to the 99th
    percentile.

    :param mean_us: mean latency in microseconds
    :param p99_us: 99th percentile in microseconds; None if not measured
    :param longest: time at the end of the scale, in microseconds
    """

    def x_of(value: float) -> float:
        return _EDGE + value / (longest or 1.0) * (_WIDTH - 2 * _EDGE)

    middle, words = _HEIGHT / 2, f"mean {mean_us:.1f} us"
    band = []
    if p99_us is not None:
        words += f", p99 {p99_us:.1f} us"
        left, right = sorted((x_of(mean_us), x_of(p99_us)))
        band = [
            render_element(
                "rect",
                class_="band",
                x=f"{left:.1f}",
                width=f"{right - left:.1f}",
                y=f"{middle - 5:g}",
                height="10",
            )
        ]
    return render_element(
        "svg",
        *band,
        render_element("polyline", points=f"{_EDGE:g},{middle:g} {x_of(mean_us):.1f},{middle:g}"),
        render_element("circle", cx=f"{x_of(mean_us):.1f}", cy=f"{middle:g}", r="2.5"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        class_="trend",
        role="img",
        aria_label=words,
    )


def _render_row(item: GroupFigure) -> Html:
    part = f"{100 * item.bus_gbs / item.floor_gbs:.0f} %" if item.floor_gbs else None
    return render_row(
        item.collective,
        item.kind,
        join_first(item.nodes, 4),
        render_picture(item) if item.sizes else None,
        f"{item.bus_gbs:.1f}",
        None if item.floor_gbs is None else f"{item.floor_gbs:.1f}",
        render_element("span", f"? {part}, too slow", class_="said unknown") if item.slow else part,
    )


def render_picture(item: GroupFigure) -> Html:
    """Draw the bus bandwidth of a group by message size as an SVG, on a scale from 0. A dot marks the highest
    bandwidth, a line the floor, and a band the range from the floor to the upper bound of the links. A floor or bound
    that is not known is left out.
    """
    most = (item.bus_gbs, item.floor_gbs or 0.0, item.bound_gbs or 0.0, *(value for _size, value in item.sizes))
    high = max(most) or 1.0
    step = (_WIDTH - 2 * _EDGE) / max(1, len(item.sizes) - 1)

    def height_of(value: float) -> float:
        return _HEIGHT - _EDGE - value / high * (_HEIGHT - 2 * _EDGE)

    points = [(_EDGE + place * step, height_of(value)) for place, (_size, value) in enumerate(item.sizes)]
    best = max(range(len(item.sizes)), key=lambda place: item.sizes[place][1])
    floor = []
    words = ", ".join(f"{size / (1 << 30):g} GiB {value:.1f} GB/s" for size, value in item.sizes)
    if item.floor_gbs is not None:
        y = height_of(item.floor_gbs)
        words += f"; floor {item.floor_gbs:.1f} GB/s"
        if item.bound_gbs is not None and item.bound_gbs > item.floor_gbs:
            top = height_of(item.bound_gbs)
            words += f", upper bound of the links {item.bound_gbs:.1f} GB/s"
            floor = [
                render_element(
                    "rect", class_="band", x="0", width=f"{_WIDTH:g}", y=f"{top:.1f}", height=f"{y - top:.1f}"
                )
            ]
        floor.append(render_element("line", x1="0", x2=f"{_WIDTH:g}", y1=f"{y:.1f}", y2=f"{y:.1f}"))
    return render_element(
        "svg",
        *floor,
        render_element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points)),
        render_element("circle", cx=f"{points[best][0]:.1f}", cy=f"{points[best][1]:.1f}", r="2.5"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        class_="trend bad" if item.slow else "trend",
        role="img",
        aria_label=words,
    )
