# SPDX-License-Identifier: GPL-3.0-or-later

"""List the operators that the intent needs, before the run reads the cluster. Check id: ``validate.operators``."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.operators.operators import Operator, list_needed_operators
from ..._model.run.findings import Finding, build_pass


def check(intent: Intent) -> typing.Iterator[Finding]:
    """Yield a pass for each operator that the intent needs, in the order of installation. Stage operators reports the
    operators that a job needs in addition, since the intent does not contain the job.
    """
    for row in list_needed_operators(intent):
        yield build_pass(
            "validate.operators",
            row.operator.name,
            f"required by {', '.join(row.why)}",
            _describe_sources(row.operator),
        )


def _describe_sources(operator: Operator) -> str:
    """Return the Helm chart and the OLM package of an operator as text."""
    chart, package = operator.chart, operator.package
    ways = [f"Helm chart {chart.reference} {chart.version} in namespace {chart.namespace}"] if chart else []
    ways += [f"package {package.name} of {package.source} in namespace {package.namespace}"] if package else []
    return ", or ".join(ways)
