# SPDX-License-Identifier: GPL-3.0-or-later

"""The HTML table for the figures of a stage."""

from __future__ import annotations

import typing

from .markup import Content, Html, render_element

#: of a column that does not apply
NONE = "\u2013"
#: rows of a table
_MOST_ROWS = 40


def render_table(
    title: str, note: str, heads: typing.Sequence[str], rows: typing.Sequence[Html], *after: Content, of: str = ""
) -> Html:
    """Render a table as a figure. Rows beyond a limit are not shown, and a line below the table states their number.

    :param title: title of the table
    :param note: text beside the title; empty for none
    :param heads: headings of the columns
    :param rows: lines of the table, as ``render_row`` returns them
    :param after: content below the table
    :param of: subject of the table for its label, if a page has several tables with this title; otherwise empty
    """
    head = render_element("thead", render_element("tr", *[render_element("th", name, scope="col") for name in heads]))
    label = f"{title} of {of}" if of else title
    more = (
        render_element("p", f"and {len(rows) - _MOST_ROWS} more rows, all of them in the facts", class_="more")
        if len(rows) > _MOST_ROWS
        else None
    )
    return render_element(
        "figure",
        render_element("figcaption", render_element("b", title), " ", render_element("span", note)),
        render_element(
            "div",
            render_element("table", head, render_element("tbody", *rows[:_MOST_ROWS])),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=label,
        ),
        more,
        *after,
        class_="wide",
    )


def render_row(first: Content, *cells: Content) -> Html:
    """Render a line of a table. The first cell is a heading.

    :param first: content of the first cell
    :param cells: contents of the other cells. An empty one is shown as a dash
    """
    return render_element(
        "tr", render_element("th", first, scope="row"), *[render_element("td", cell or NONE) for cell in cells]
    )
