# SPDX-License-Identifier: GPL-3.0-or-later

"""The operators that a run needs as a table: by what, and how each of them stands."""

from __future__ import annotations

import typing

from ..._model.run.findings import Finding
from ..markup.markup import Html
from ..markup.tables import render_row, render_table


def render_figure(findings: typing.Sequence[Finding]) -> Html:
    """:param findings: of operators.needed, in the order of the table"""
    return render_table(
        "Operators that are needed",
        "in the order in which they are installed",
        ("Operator", "Needed by", "Seen", "State"),
        [
            render_row(item.subject, item.expected.partition(", for ")[2], item.measured, item.status)
            for item in findings
        ],
    )
