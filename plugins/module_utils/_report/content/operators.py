# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the table of the operators that a run needs: the reasons for each operator, and its state."""

from __future__ import annotations

import typing

from ..._model.run.findings import Finding
from ..markup.markup import Html
from ..markup.tables import render_row, render_table


def render_figure(findings: typing.Sequence[Finding]) -> Html:
    """Render the table of operators that the intent needs: what requires each operator, which installation was found,
    and the status of the finding.

    :param findings: findings of the check operators.needed, in the order of installation
    """
    return render_table(
        "Required operators",
        "in the order of installation",
        ("Operator", "Required by", "Found", "State"),
        [
            render_row(item.subject, item.expected.partition(", for ")[2], item.measured, item.status)
            for item in findings
        ],
    )
