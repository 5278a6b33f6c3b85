# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCI tree of a node as SVG, a box for each NUMA node. A sign and words say what the colours say; the tables of the sheet have all of it as text."""

from __future__ import annotations

import typing

from .markup import Html, element, join
from .sheet import Block, Item, Said, Sheet, Tone, worst
from .text import one_line

_WIDTH, _GAP = 1100, 12
_COLUMN = (_WIDTH - _GAP) // 2
_LINE, _TOP, _LEFT, _STEP = 18, 30, 12, 14
#: width of a letter, in the drawing's units
_LETTER = 6.1
#: so that nobody needs the colours
SIGNS: typing.Dict[Tone, str] = {"bad": "\u2715 ", "unknown": "? ", "": ""}
#: lines of a picture; what is beyond is in the tables
_MOST = 400


class _Row(typing.NamedTuple):
    """A line of a box: the name of an item, or one of the things said of it."""

    depth: int
    text: str
    tone: Tone
    kind: str


def picture(sheet: Sheet) -> typing.Optional[Html]:
    """None of a node of which nothing is known: there is nothing to draw."""
    if not sheet.blocks:
        return None
    heights, boxes = [0, 0], []
    wide = _WIDTH if len(sheet.blocks) == 1 else _COLUMN
    for block in sheet.blocks:
        rows = list(_rows(block))
        if len(rows) > _MOST:
            rows = [*rows[:_MOST], _Row(0, f"and {len(rows) - _MOST} more lines; the tables have all", "", "said")]
        column = heights.index(min(heights))
        height = _TOP + _LINE * len(rows) + 8
        boxes.append(_box(block, rows, column * (_COLUMN + _GAP), heights[column], wide, height))
        heights[column] += height + _GAP
    title = f"{sheet.node}: HCAs and GPUs on PCI by NUMA node; {len(sheet.wrong)} in the way, {len(sheet.unknown)} unknown"
    return element("svg", element("title", title), *boxes, viewBox=f"0 0 {_WIDTH} {max(heights)}", role="img", class_="tree")


def _rows(block: Block) -> typing.Iterator[_Row]:
    for depth, item in _walk(block.items, 0):
        plain = ", ".join(one.text for one in item.said if not one.tone)
        yield _Row(depth, f"{item.name}: {plain}" if plain else item.name, item.tone, item.kind)
        for one in item.said:
            if one.tone:
                yield _Row(depth + 1, f"{SIGNS[one.tone]}{one.text}", one.tone, "said")


def _walk(items: typing.Iterable[Item], depth: int) -> typing.Iterator[typing.Tuple[int, Item]]:
    for item in items:
        yield depth, item
        yield from _walk(item.below, depth + 1)


def _box(block: Block, rows: typing.Sequence[_Row], x: int, y: int, width: int, height: int) -> Html:
    head = Said(f"{block.name}, {block.cpus.text}", worst([block.cpus, *(Said("", row.tone) for row in rows)]))
    lines = [_line(row, _TOP + _LINE * place, width) for place, row in enumerate(rows)]
    return element(
        "svg",
        element("title", head.text),
        element("rect", x="0.5", y="0.5", width=width - 1, height=height - 1, rx=6, class_="numa"),
        element("text", _fitting(f"{SIGNS[head.tone]}{head.text}", width - 20), x=10, y=20, class_=_class("head", block.cpus.tone)),
        *_ways(rows),
        *lines,
        x=x,
        y=y,
        width=width,
        height=height,
    )


def _ways(rows: typing.Sequence[_Row]) -> typing.Iterator[Html]:
    """Lines from each item to what it hangs on."""
    above: typing.Dict[int, int] = {}
    for place, row in enumerate(rows):
        if row.kind == "said":
            continue
        above[row.depth] = place
        if row.depth:
            left = _LEFT + _STEP * row.depth
            yield element("path", d=f"M{left - _STEP + 4} {_TOP + _LINE * above[row.depth - 1] + 12}V{_TOP + _LINE * place + 7}H{left}")


def _line(row: _Row, top: int, width: int) -> Html:
    left = _LEFT + _STEP * row.depth
    icon = None if row.kind == "said" else element("rect", x=left, y=top + 3, width=9, height=9, class_=_class(row.kind, row.tone))
    text = left + (0 if icon is None else 15)
    fitting = _fitting(row.text, width - text - 6)
    # the pointer shows what has no room; a page has thousands of lines
    whole = element("title", row.text) if fitting != row.text else None
    return join(icon, element("text", whole, fitting, x=text, y=top + 12, class_=row.tone if row.kind == "said" and row.tone else None))


def _class(kind: str, tone: Tone) -> str:
    return f"{kind} {tone}" if tone else kind


def _fitting(text: str, width: int) -> str:
    """As much as there is room for."""
    text, most = one_line(text), max(3, int(width / _LETTER))
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"
