# SPDX-License-Identifier: GPL-3.0-or-later

"""The figure of a stage that is a table."""

from __future__ import annotations

import typing

from .markup import Content, Html, element

#: of a column that does not apply
NONE = "\u2013"
#: rows of a table
_MOST_ROWS = 40


def render_table(
    title: str, note: str, heads: typing.Sequence[str], rows: typing.Sequence[Html], *after: Content, of: str = ""
) -> Html:
    """:param rows: ``row``s; what is too many is counted
    :param after: what stands below the table
    :param of: whose it is, where a page has several of this title
    """
    head = element("thead", element("tr", *[element("th", name, scope="col") for name in heads]))
    label = f"{title} of {of}" if of else title
    more = (
        element("p", f"and {len(rows) - _MOST_ROWS} more rows, all of them in the facts", class_="more")
        if len(rows) > _MOST_ROWS
        else None
    )
    return element(
        "figure",
        element("figcaption", element("b", title), " ", element("span", note)),
        element(
            "div",
            element("table", head, element("tbody", *rows[:_MOST_ROWS])),
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
    """Render a row; the first cell is its heading."""
    return element("tr", element("th", first, scope="row"), *[element("td", cell or NONE) for cell in cells])
