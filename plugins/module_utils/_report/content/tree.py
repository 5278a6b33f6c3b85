# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the PCI tree of a node as SVG, with a box for each NUMA node. Signs and words repeat the meaning of the
colors, and the tables of the sheet contain the same data as text.
"""

from __future__ import annotations

import typing

from ..markup.markup import Html, join_content, render_element
from ..markup.text import one_line
from .sheet_parts import Block, Sheet, SheetItem, Statement, Tone, find_worst

_WIDTH, _GAP = 1100, 12
_COLUMN = (_WIDTH - _GAP) // 2
_LINE, _TOP, _LEFT, _STEP = 18, 30, 12, 14
#: width of a letter, in the drawing's units
_LETTER = 6.1
#: so that nobody needs the colours
SIGNS: dict[Tone, str] = {"bad": "\u2715 ", "unknown": "? ", "": ""}
#: lines of a box, and of all boxes; what is beyond is in the tables
_MOST, _MOST_OF_ALL = 400, 4000
#: NUMA nodes that have a box, where the largest machines have some 130, and steps from the root down, where a box has
#: no more room
_MOST_BOXES, _MOST_DEPTH = 256, 24


class _Row(typing.NamedTuple):
    """A line of text in a box of the drawing: the name of an item, or a statement about it.

    :ivar depth: number of items above it in the PCI tree
    :ivar text: text of the line
    :ivar tone: ``bad``, ``unknown`` or empty
    :ivar kind: kind of the item, or ``said`` for a statement
    """

    depth: int
    text: str
    tone: Tone
    kind: str


def render_picture(sheet: Sheet) -> typing.Optional[Html]:
    """Draw the PCI tree of a node as an SVG. Return None if the sheet has no NUMA nodes, such as for a node without
    facts. Boxes and lines beyond the limits are replaced by a note with their number.
    """
    if not sheet.blocks:
        return None
    heights, boxes = [0, 0], []
    wide = _WIDTH if len(sheet.blocks) == 1 else _COLUMN
    left = _MOST_OF_ALL
    for block in sheet.blocks[:_MOST_BOXES]:
        most = min(_MOST, left)
        rows = _limit_rows(_list_rows(block), most)
        left -= min(most, len(rows))
        column = heights.index(min(heights))
        height = _TOP + _LINE * len(rows) + 8
        boxes.append(_render_box(block, rows, column * (_COLUMN + _GAP), heights[column], wide, height))
        heights[column] += height + _GAP
    beyond = len(sheet.blocks) - _MOST_BOXES
    if beyond > 0:
        boxes.append(
            render_element(
                "text", f"and {beyond} more NUMA nodes; the tables contain all of them", x=10, y=max(heights) + _LINE
            )
        )
        heights = [max(heights) + 2 * _LINE]
    title = (
        f"{sheet.node}: HCAs and GPUs on PCI by NUMA node; problems: {len(sheet.wrong)}, unknown: {len(sheet.unknown)}"
    )
    return render_element(
        "svg", render_element("title", title), *boxes, viewBox=f"0 0 {_WIDTH} {max(heights)}", role="img", class_="tree"
    )


def _limit_rows(rows: typing.Iterable[_Row], most: int) -> list[_Row]:
    """Return at most ``most`` lines. If there are more, add one line with the number of omitted lines and with the
    worst of their tones.
    """
    kept: list[_Row] = []
    more, tones = 0, set()
    for row in rows:
        if len(kept) < most:
            kept.append(row)
        else:
            more += 1
            tones.add(row.tone)
    tone = find_worst(Statement("", one) for one in tones)
    return (
        [*kept, _Row(0, f"{SIGNS[tone]}and {more} more lines; the tables contain all of them", tone, "said")]
        if more
        else kept
    )


def _list_rows(block: Block) -> typing.Iterator[_Row]:
    for depth, item in _walk_items(block.items, 0):
        plain = ", ".join(one.text for one in item.said if not one.tone)
        yield _Row(depth, f"{item.name}: {plain}" if plain else item.name, item.tone, item.kind)
        for one in item.said:
            if one.tone:
                yield _Row(depth + 1, f"{SIGNS[one.tone]}{one.text}", one.tone, "said")
        if item.below and depth + 1 == _MOST_DEPTH:
            tone = _tone_of(item.below)
            yield _Row(depth + 1, f"{SIGNS[tone]}and the devices below; the tables contain all of them", tone, "said")


def _tone_of(items: typing.Sequence[SheetItem]) -> Tone:
    """Return the worst tone of the items and of all items below them in the PCI tree."""
    tones, waiting = [], list(items)
    while waiting:
        item = waiting.pop()
        tones.append(Statement("", item.tone))
        waiting += item.below
    return find_worst(tones)


def _walk_items(items: typing.Iterable[SheetItem], depth: int) -> typing.Iterator[tuple[int, SheetItem]]:
    for item in items:
        yield depth, item
        if depth + 1 < _MOST_DEPTH:
            yield from _walk_items(item.below, depth + 1)


def _render_box(block: Block, rows: typing.Sequence[_Row], x: int, y: int, width: int, height: int) -> Html:
    head = Statement(
        f"{block.name}, {block.cpus.text}", find_worst([block.cpus, *(Statement("", row.tone) for row in rows)])
    )
    lines = [_render_line(row, _TOP + _LINE * place, width) for place, row in enumerate(rows)]
    return render_element(
        "svg",
        render_element("title", head.text),
        render_element("rect", x="0.5", y="0.5", width=width - 1, height=height - 1, rx=6, class_="numa"),
        render_element(
            "text",
            _shorten_to_width(f"{SIGNS[head.tone]}{head.text}", width - 20),
            x=10,
            y=20,
            class_=_format_css_class("head", block.cpus.tone),
        ),
        *_render_ways(rows),
        *lines,
        x=x,
        y=y,
        width=width,
        height=height,
    )


def _render_ways(rows: typing.Sequence[_Row]) -> typing.Iterator[Html]:
    """Yield, for each item, a path that connects the item with its parent in the PCI tree.

    :param rows: lines of the box
    """
    above: dict[int, int] = {}
    for place, row in enumerate(rows):
        if row.kind == "said":
            continue
        above[row.depth] = place
        if row.depth:
            left = _LEFT + _STEP * row.depth
            yield render_element(
                "path",
                d=f"M{left - _STEP + 4} {_TOP + _LINE * above[row.depth - 1] + 12}V{_TOP + _LINE * place + 7}H{left}",
            )


def _render_line(row: _Row, top: int, width: int) -> Html:
    left = _LEFT + _STEP * row.depth
    icon = (
        None
        if row.kind == "said"
        else render_element("rect", x=left, y=top + 3, width=9, height=9, class_=_format_css_class(row.kind, row.tone))
    )
    text = left + (0 if icon is None else 15)
    fitting = _shorten_to_width(row.text, width - text - 6)
    # the pointer shows what has no room; a page has thousands of lines
    whole = render_element("title", row.text) if fitting != row.text else None
    return join_content(
        icon,
        render_element(
            "text", whole, fitting, x=text, y=top + 12, class_=row.tone if row.kind == "said" and row.tone else None
        ),
    )


def _format_css_class(kind: str, tone: Tone) -> str:
    return f"{kind} {tone}" if tone else kind


def _shorten_to_width(text: str, width: int) -> str:
    """Return a text, cut so that it fits into a width of the drawing.

    :param width: width in the units of the drawing
    """
    text, most = one_line(text), max(3, int(width / _LETTER))
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"
