# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a fabric as an SVG drawing, with a list of the marked nodes and switches for readers who cannot see the
drawing.
"""

from __future__ import annotations

import re
import typing

from ..markup.markup import Html, render_element
from ..markup.text import one_line
from .topology import Drawing, Edge, TierItem

_WIDTH = 1100
_ROW = 118
_BOX = 44
_SQUARE = 9
# of the text in a box, in the drawing's units
_LETTER = 5.8
# what a managed switch calls itself: MF0;leaf01:MQM9700/U1. Its name is what there is room for
_SWITCH = re.compile(r"\AMF0;(.+):[^:]+\Z")


def render_figure(shown: Drawing) -> Html:
    """Render the drawing with its legend and the list of marked nodes and switches. If the fabric is too large to draw,
    render the reason instead.
    """
    if shown.why_not:
        caption = render_element(
            "figcaption", render_element("b", f"{shown.name}: topology"), render_element("span", shown.words)
        )
        return render_element("figure", caption, render_element("p", shown.why_not, class_="more"), class_="wide")
    places = _collect_places(shown)
    boxes = [_render_box(item, *places[item.key]) for row in shown.rows for item in row]
    lines = [_render_line(edge, shown, places) for edge in sorted(shown.edges, key=lambda edge: edge.bad)]
    marked = [item for row in shown.rows for item in row if item.marks]
    height = _ROW * (len(shown.rows) - 1) + _BOX + 24
    title = f"{shown.name}: switches above, nodes below"
    picture = render_element(
        "svg",
        render_element("title", title),
        *lines,
        *boxes,
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        class_="map",
    )
    return render_element(
        "figure",
        render_element(
            "figcaption",
            render_element("b", f"{shown.name}: topology"),
            render_element("span", f"{shown.words}; {len(marked)} marked"),
        ),
        render_element("div", picture, class_="scroll", tabindex=0, role="region", aria_label=title),
        render_element("ul", *map(_render_entry, _list_legend_entries(marked)), class_="legend"),
        (
            render_element(
                "ul",
                *[
                    render_element("li", render_element("b", item.name), ": ", "; ".join(item.marks[:3]))
                    for item in marked
                ],
                class_="marked",
            )
            if marked
            else None
        ),
        class_="wide",
    )


def _collect_places(shown: Drawing) -> dict[str, tuple[float, float, float]]:
    """Return the position of each box by the key of its item: horizontal center, upper edge and width, in SVG units."""
    result = {}
    for number, row in enumerate(shown.rows):
        step = _WIDTH / max(1, len(row))
        for place, item in enumerate(row):
            result[item.key] = ((place + 0.5) * step, 12.0 + number * _ROW, min(150.0, step - 8))
    return result


def _render_box(item: TierItem, middle: float, top: float, width: float) -> Html:
    tone = "bad" if item.marks else "group" if item.size > 1 else "plain"
    words = "\n".join((item.name, *item.marks))
    sign = (
        render_element(
            "text",
            "\u2715",
            x=_format_coordinate(middle + width / 2 - 8),
            y=_format_coordinate(top + 13),
            class_="sign",
        )
        if item.marks
        else None
    )
    squares = [
        render_element(
            "rect",
            x=_format_coordinate(x - _SQUARE / 2),
            y=_format_coordinate(top - _SQUARE / 2),
            width=_SQUARE,
            height=_SQUARE,
            class_="hca bad" if bad else "hca",
        )
        for (_rail, bad), x in zip(item.rails, _place_ends(item, middle, width))
    ]
    return render_element(
        "g",
        render_element("title", words),
        render_element(
            "rect",
            x=_format_coordinate(middle - width / 2),
            y=_format_coordinate(top),
            width=_format_coordinate(width),
            height=_BOX,
            rx=6,
        ),
        *squares,
        # a drawing in the drawing clips what is wider than its letters were taken for
        render_element(
            "svg",
            render_element("text", _shorten_name(item.name, width), x="50%", y=_format_coordinate(_BOX / 2 + 5)),
            x=_format_coordinate(middle - width / 2),
            y=_format_coordinate(top),
            width=_format_coordinate(width),
            height=_BOX,
        ),
        sign,
        class_=f"box {tone}",
    )


def _render_line(edge: Edge, shown: Drawing, places: typing.Mapping[str, tuple[float, float, float]]) -> Html:
    x1, y1, width = places[edge.below]
    x2, y2, _width = places[edge.above]
    if edge.rail is not None:
        below = next(item for row in shown.rows for item in row if item.key == edge.below)
        x1 = next((x for (rail, _bad), x in zip(below.rails, _place_ends(below, x1, width)) if rail == edge.rail), x1)
    words = f"{edge.links} link{'' if edge.links == 1 else 's'}" + (
        f", rail {edge.rail}" if edge.rail is not None else ""
    )
    tone = f"rail{edge.rail % 4}" if edge.rail is not None else "between"
    ends = {
        "x1": _format_coordinate(x1),
        "y1": _format_coordinate(y1),
        "x2": _format_coordinate(x2),
        "y2": _format_coordinate(y2 + _BOX),
    }
    return render_element("line", render_element("title", words), class_=f"{tone} bad" if edge.bad else tone, **ends)


def _place_ends(item: TierItem, middle: float, width: float) -> list[float]:
    """Return the horizontal positions at which the links of a node begin, one for each of its HCAs, from left to right,
    in SVG units.

    :param item: node of the drawing
    :param middle: horizontal center of the node's box
    :param width: width of the node's box
    """
    count = len(item.rails)
    return [middle - width / 2 + (place + 1) * width / (count + 1) for place in range(count)]


def _shorten_name(name: str, width: float) -> str:
    """Return a name on one line, cut to the width of a box and then ended by an ellipsis. The tooltip of the box shows
    the whole name.

    :param width: width of the box, in SVG units
    """
    name, most = one_line(_SWITCH.sub(r"\1", name)), max(3, int((width - 6) / _LETTER))
    return name if len(name) <= most else f"{name[: most - 1]}\u2026"


def _list_legend_entries(marked: typing.Sequence[TierItem]) -> typing.Iterator[tuple[str, str, str]]:
    if marked:
        yield "fail", "\u2715", "named by a finding; dashed red: links of such a node or switch"
    yield "hca", "\u25aa", "HCA, one for each rail"
    yield "", "", "dashed box: a group without findings"


def _render_entry(entry: tuple[str, str, str]) -> Html:
    name, sign, text = entry
    return render_element("li", render_element("i", sign, class_=f"key {name}", aria_hidden="true"), text)


def _format_coordinate(value: float) -> str:
    return f"{value:.1f}"
