# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the waivers of the intent. Check id: ``validate.waivers``."""

from __future__ import annotations

import typing

from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Intent
from ..._model.run.check_ids import CHECKS
from ..._model.run.findings import MOST_PATTERN, Finding, Waiver, build_pass, never_waived, pattern_matches
from .refusal import refuse_value


def check_waivers(intent: Intent) -> typing.Iterator[Finding]:
    """Check each waiver: its reason, the length of its patterns, and whether it covers known checks of a single stage
    that can be waived.
    """
    hints = Hints()
    for index, waiver in enumerate(intent.waivers):
        yield from run_rule(_check_waiver, waiver, f"rdma_waivers[{index}]", hints)


def _check_waiver(waiver: Waiver, path: str, hints: Hints) -> list[Finding]:
    findings = run_rules((_check_waiver_reason, _check_waiver_length), waiver, path) + run_rule(
        _check_waived, waiver, path, hints
    )
    return findings or [
        build_pass("validate.waivers", path, f"{waiver.check}, because: {waiver.reason}", "a known check and a reason")
    ]


def _check_waiver_reason(waiver: Waiver, path: str) -> typing.Iterator[Finding]:
    if len(waiver.reason.split()) < 2:
        why = "The report prints the reason next to the waived finding, so that its readers know why the run continued."
        yield refuse_value(
            "waivers",
            f"{path}.reason",
            f"'{waiver.reason}'",
            "a reason of at least 2 words",
            why,
            f"Set {path}.reason to a sentence that says why the run may continue in spite of the finding.",
        )


def _check_waiver_length(waiver: Waiver, path: str) -> typing.Iterator[Finding]:
    for name, pattern in (("check", waiver.check), ("subject", waiver.subject), ("measured", waiver.measured)):
        if len(pattern) > MOST_PATTERN:
            why, remedy = (
                "A pattern of this length matches no finding.",
                f"Shorten {path}.{name}: replace a part of it with *.",
            )
            yield refuse_value(
                "waivers",
                f"{path}.{name}",
                count_of(len(pattern), "character"),
                f"at most {MOST_PATTERN} characters",
                why,
                remedy,
            )


def _check_waived(waiver: Waiver, path: str, hints: Hints) -> typing.Iterator[Finding]:
    if len(waiver.check) > MOST_PATTERN:
        return
    covered = [check_id for check_id in CHECKS if pattern_matches(waiver.check, check_id)]
    stages = {check_id.partition(".")[0] for check_id in covered}
    place, seen, remedy = (
        f"{path}.check",
        f"'{waiver.check}'",
        f"Set {path}.check to the ID of a check that the report shows.",
    )
    if not covered:
        expected = f"ID of a check, such as platform.bios; * matches any text{hints.nearest(waiver.check, CHECKS)}"
        why = "No check has this ID, so the waiver would cover no finding."
        yield refuse_value("waivers", place, seen, expected, why, remedy)
    elif len(stages) > 1:
        why = f"The pattern covers checks of the stages {', '.join(sorted(stages))}. A waiver may cover one stage only."
        remedy = "Write one waiver for each stage, such as platform.*, with its own reason."
        yield refuse_value("waivers", place, seen, "checks of one stage", why, remedy)
    elif stages == {"validate"}:
        why = "Errors in the intent must be corrected in the intent and cannot be waived."
        yield refuse_value(
            "waivers",
            place,
            seen,
            "a check of a stage other than validate",
            why,
            "Remove the waiver, and correct the intent.",
        )
    elif all(map(never_waived, covered)):
        why = (
            "This check fails if a stage stops or does not run. Such a stage has verified nothing, so a waiver"
            " would hide all of its missing findings."
        )
        remedy = "Remove the waiver, and correct the cause that prevents the stage from running."
        yield refuse_value(
            "waivers", place, seen, "a check of a property of the cluster, and not of the stage itself", why, remedy
        )
