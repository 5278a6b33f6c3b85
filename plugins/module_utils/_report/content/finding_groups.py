# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups findings for a reader: one group for each cause, with all of its subjects. A thousand nodes without a BMC are
one group.
"""

from __future__ import annotations

import typing

from ..._model.run.findings import Finding, Judged
from .first_cause import is_behind
from .verdict import Report, label_finding

#: the order in which a reader wants them
LABELS = ("fail", "unknown", "skipped", "warn", "waived", "pass")


class FindingGroup(typing.NamedTuple):
    """The findings of one check with the same cause and the same remedy.

    :ivar label: status of the findings, or ``waived``
    :ivar check: ID of the check
    :ivar why: cause of the findings
    :ivar remedy: remedy of the findings
    :ivar waived: reason of the waiver; empty if not waived
    :ivar findings: the findings, at least one
    """

    label: str
    check: str
    why: str
    remedy: str
    waived: str
    findings: tuple[Finding, ...]


def make_groups(judged: typing.Iterable[Judged]) -> tuple[FindingGroup, ...]:
    """Group the findings that did not pass by status, check, cause and remedy, and sort the groups by label, failures
    first. Within a label, causes of other findings come first, as in the verdict: suspects, an API server that does not
    answer, a missing library.

    Causes and remedies that differ only by the names in the subjects of their findings are the same.
    """
    found: dict[tuple[str, str, str, str, str], list[Finding]] = {}
    for item in judged:
        finding = item.finding
        if label_finding(item) != "pass":
            key = (
                label_finding(item),
                finding.check,
                _mask_names(finding.why, finding.subject),
                _mask_names(finding.remedy, finding.subject),
                item.waiver.reason if item.waiver else "",
            )
            found.setdefault(key, []).append(finding)
    result = (
        FindingGroup(name, check, same[0].why, _join_remedies(same), waived, tuple(same))
        for (name, check, _why, _remedy, waived), same in found.items()
    )
    return tuple(sorted(result, key=lambda group: (LABELS.index(group.label), not is_behind(group.findings[0]))))


def _mask_names(text: str, subject: str) -> str:
    """Return a text with a mark in place of each word of the subject of its finding, such as the name of a node.

    :param subject: subject of the finding
    """
    for word in sorted({word for word in subject.split() if len(word) > 1}, key=len, reverse=True):
        text = text.replace(word, "\0")
    return text


def _join_remedies(findings: typing.Sequence[Finding]) -> str:
    """Return the remedy of the first finding of a group, with the instruction to do the same for the other subjects if
    their remedies have other names.

    :param findings: findings of the group, at least one
    """
    first = findings[0].remedy
    if all(finding.remedy == first for finding in findings):
        return first
    return f"{first} Do the same for the other subjects of this cause, with their names."


def collect_closing_groups(report: Report) -> dict[str, tuple[FindingGroup, ...]]:
    """Return the groups of findings that close the gate of a stage, for each stage that ran, by name of the stage."""
    ran = (stage for stage in report.stages if stage.record and stage.state != "skipped")
    return {
        stage.name: make_groups(item for item in (stage.record.judged if stage.record else ()) if item.closes)
        for stage in ran
    }
