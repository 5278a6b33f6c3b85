# SPDX-License-Identifier: GPL-3.0-or-later

"""Name the first cause of a closed gate, as the verdict and the results of a run show it."""

from __future__ import annotations

import re
import typing

from ..._model.run.findings import FAIL, SKIPPED, Finding
from ..markup.text import escape_plain, shorten_plain


def find_first_cause(findings: typing.Iterable[Finding]) -> typing.Optional[dict[str, str]]:
    """Return ``check``, ``subject``, ``status``, ``why`` and ``remedy`` of the first finding as shortened texts by
    these names. Return None if there are no findings.

    :param findings: findings that close a gate
    """
    finding = next(iter(findings), None)
    return (
        {name: shorten_plain(getattr(finding, name)) for name in ("check", "subject", "status", "why", "remedy")}
        if finding
        else None
    )


def is_behind(finding: Finding) -> bool:
    """Return whether a finding is the cause of other findings: it reports a suspect, an API server that does not
    answer, or the missing library that is required to query the API server.
    """
    before_all = finding.check in ("validate.api_server", "validate.library") and finding.status != SKIPPED
    return finding.check.endswith(".suspect") or before_all


def is_refusal(finding: Finding) -> bool:
    """Return whether a finding reports an object that stage network did not apply, because another component refused
    it, or because the linter or the plan of drains and reboots prevented it.
    """
    refused = finding.check.endswith("_accepted") or finding.check == "network.disruption"
    return finding.status == FAIL and (refused or finding.check.startswith("network.lint_"))


#: characters of what a failed task said, or of a remedy, that are in the verdict
_MOST_OF_A_TASK = 700
#: characters of a measured value there
_MOST_OF_A_VALUE = 100
_HINT = re.compile(r" \(did you mean '[^']{1,100}'\?\)")


def name_cause(finding: Finding) -> str:
    """Return a finding in the form in which the verdict shows it, usually its check and its subject.

    For a failed task, an API server that does not answer and an inventory without nodes, the cause is shown instead of
    the subject. The remedy is shown for two kinds of findings: those of stage validate, because a new user has no
    report yet, and those on objects that stage network did not apply, because a user of a shared cluster must not work
    around them.
    """
    if finding.check.endswith(".error"):
        return f"{finding.check}: {_shorten_middle(finding.measured)}"
    if is_refusal(finding):
        seen = _shorten_middle(finding.measured.rstrip("."))
        remedy = _shorten_middle(finding.remedy.rstrip("."))
        return f"{finding.check} on {finding.subject}: {seen}. {remedy}"
    if not finding.check.startswith("validate."):
        return f"{finding.check} on {finding.subject}"
    remedy = _shorten_middle(finding.remedy.rstrip("."))
    if finding.check in ("validate.api_server", "validate.nodes"):
        return f"{finding.check}: {_shorten_middle(finding.why.rstrip('.'))}. {remedy}"
    hint = _HINT.search(finding.expected)
    seen = f"{shorten_plain(finding.measured, _MOST_OF_A_VALUE)}{hint[0] if hint else ''}" if finding.measured else ""
    return ": ".join(filter(None, (f"{finding.check} on {finding.subject}", ". ".join(filter(None, (seen, remedy))))))


def _shorten_middle(text: str) -> str:
    """Return a text for the verdict. A text of more than ``_MOST_OF_A_TASK`` characters loses its middle, because it
    begins with the cause and ends with the command of the remedy.
    """
    text = escape_plain(text)
    if len(text) <= _MOST_OF_A_TASK:
        return text
    half = _MOST_OF_A_TASK // 2
    return f"{text[:half]} ... {text[-half:]} ({len(text)} characters; the records contain the whole text)"


def count_statuses(findings: typing.Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings of each status, in the order in which the statuses occur."""
    result: dict[str, int] = {}
    for finding in findings:
        result[finding.status] = result.get(finding.status, 0) + 1
    return result
