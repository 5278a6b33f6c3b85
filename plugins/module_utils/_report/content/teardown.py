# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a teardown, in the same format as the result of a run."""

from __future__ import annotations

import typing

from ..._model.run.findings import FAIL, SKIPPED, UNKNOWN, Gate
from ..._model.run.records import count_findings
from ..markup.text import one_line
from .first_cause import find_first_cause
from .verdict import CHECK_MODE

COMPLETE = "COMPLETE"
NOT_COMPLETE = "NOT COMPLETE"


def make_teardown_stats(gate: Gate, run: str, check_mode: bool, changes: int, path: str) -> dict[str, typing.Any]:
    """Return the result of a teardown as data for later jobs, with the same keys as the result of a run. Its verdict is
    never green, since only a measured fabric can be green.

    :param gate: judged findings of the teardown
    :param run: ID of the teardown's run
    :param check_mode: whether the teardown ran in check mode
    :param changes: number of removed objects
    :param path: path of the folder with the facts of the teardown
    """
    verdict = NOT_COMPLETE if not gate.open else CHECK_MODE if check_mode else COMPLETE
    closing = gate.closing()
    number = count_findings(gate.judged)
    shown = (FAIL, UNKNOWN, SKIPPED) if closing else tuple(number)
    words = ", ".join(f"{number[status]} {status}" for status in shown if number[status]) or "nothing was checked"
    more = f" and {len(closing) - 1} more" if len(closing) > 1 else ""
    cause = f" ({closing[0].check} on {closing[0].subject}{more})" if closing else ""
    return {
        "verdict": verdict,
        "green": False,
        "run": run,
        "counts": number,
        "changes": changes,
        "summary": one_line(f"{verdict} - teardown: {words}{cause}"),
        "first": find_first_cause(closing),
        "plan": "",
        "report": path,
    }
