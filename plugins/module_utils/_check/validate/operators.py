# SPDX-License-Identifier: GPL-3.0-or-later

"""Which operators the intent needs, told before anybody looks at the cluster. Check id: ``validate.operators``."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.operators.operators import Operator, needed
from ..._model.run.findings import Finding, ok


def check(intent: Intent) -> typing.Iterator[Finding]:
    """Yield a row of the table each, in the order in which they are installed. What a job needs beside it is not in the
    intent; stage operators tells it."""
    for row in needed(intent):
        yield ok(
            "validate.operators", row.operator.name, f"needed by {', '.join(row.why)}", _describe_sources(row.operator)
        )


def _describe_sources(operator: Operator) -> str:
    """Describe the sources of an operator."""
    chart, package = operator.chart, operator.package
    ways = [f"Helm chart {chart.reference} {chart.version} in namespace {chart.namespace}"] if chart else []
    ways += [f"package {package.name} of {package.source} in namespace {package.namespace}"] if package else []
    return ", or ".join(ways)
