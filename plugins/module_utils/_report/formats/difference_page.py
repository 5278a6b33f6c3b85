# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences between two runs, as JSON for programs and as one HTML page for people."""

from __future__ import annotations

import json
import typing

from ..._model.base.load import to_data
from ..._model.base.redact import redact
from ..._model.run.facts import RunStart
from ..difference.runs import RunDifference
from ..markup.markup import render_document, render_element
from ..markup.style import STYLE

#: goes up when a key changes its meaning or goes away
DIFFERENCE_SCHEMA = 1
# rows of a page; difference.json has all
_MOST_ROWS = 5000


def difference_json(before: RunStart, after: RunStart, found: typing.Sequence[RunDifference]) -> str:
    runs = {
        name: {"run": start.run, "started": start.started} for name, start in (("before", before), ("after", after))
    }
    data = {"schema": DIFFERENCE_SCHEMA, **runs, "differences": [to_data(item) for item in found]}
    return json.dumps(redact(data), indent=1, sort_keys=True) + "\n"


def difference_html(before: RunStart, after: RunStart, found: typing.Sequence[RunDifference]) -> str:
    title = (
        f"linerate.rdma: {len(found)} difference{'' if len(found) == 1 else 's'}"
        if found
        else "linerate.rdma: no difference"
    )
    words = f"from run {before.run} ({before.started}) to run {after.run} ({after.started})"
    columns = ("Where", "What", "Before", "After")
    head = render_element("thead", render_element("tr", *[render_element("th", name, scope="col") for name in columns]))
    rows = [
        render_element(
            "tr",
            *[
                render_element("td", render_element("bdi", text))
                for text in (item.node, item.what, item.before, item.after)
            ],
        )
        for item in found[:_MOST_ROWS]
    ]
    table = render_element(
        "div",
        render_element("table", head, render_element("tbody", *rows)),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label="Differences",
    )
    more = (
        render_element("p", f"and {len(found) - _MOST_ROWS} more, all of them in difference.json", class_="more")
        if len(found) > _MOST_ROWS
        else None
    )
    return render_document(
        title,
        STYLE,
        render_element(
            "header",
            render_element("p", "linerate.rdma", class_="brand"),
            render_element("h1", title.partition(": ")[2]),
            render_element("p", words, class_="summary"),
        ),
        render_element("main", render_element("section", table if found else None, more, class_="card")),
    )
