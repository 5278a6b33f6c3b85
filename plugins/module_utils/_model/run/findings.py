# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings, waivers, and the gate of a stage. The run continues after a stage only if the findings, after waivers,
leave its gate open.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import re
import typing

PASS: typing.Final = "pass"
FAIL: typing.Final = "fail"
WARN: typing.Final = "warn"
UNKNOWN: typing.Final = "unknown"
SKIPPED: typing.Final = "skipped"

#: Order of the pipeline; a stage is a playbook, a role and a tag of this name.
STAGES = (
    "validate",
    "discover",
    "fabric",
    "reachability",
    "platform",
    "tuning",
    "operators",
    "network",
    "virtual_functions",
    "host",
    "bandwidth",
    "collectives",
    "compare",
    "training",
)

#: what no waiver covers: a wrong intent, and findings of the frame that stand for a stage that has proven nothing
NEVER_WAIVED = ("validate.*", "*.intent", "*.error", "*.run")

#: waivers of an intent, and characters of a pattern of one. The intent may be that of a stranger's folder, and each
#: waiver is held against each finding
MOST_WAIVERS, MOST_PATTERN = 1000, 300

Status = typing.Literal["pass", "fail", "warn", "unknown", "skipped"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a check for one subject.

    :ivar check: stable id, ``<stage>.<what>``: ``fabric.one_master``
    :ivar subject: object of the finding, in terms of the field: ``worker-1 mlx5_0 port 1``, ``fabric 0xb83f... ``,
        ``worker-1 -> worker-2 rail 0``
    :ivar status: pass, fail, warn, unknown or skipped
    :ivar measured: observed value, with its unit
    :ivar expected: expected value, with its unit
    :ivar why: cause, as far as it is known; for ``unknown`` and ``skipped`` why nothing was proven. Required except for
        ``pass``
    :ivar remedy: next step of the user. Required except for ``pass``
    """

    check: str
    subject: str
    status: Status
    measured: str = ""
    expected: str = ""
    why: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.status != PASS and not (self.why and self.remedy):
            raise ValueError(f"finding {self.check} on {self.subject} is '{self.status}' but has no cause or no remedy")


@functools.lru_cache(maxsize=4 * MOST_WAIVERS)
def _build_pattern(text: str) -> typing.Pattern[str]:
    """Return the compiled form of a shell pattern. It is cached here, since the cache of fnmatch is too small for many
    patterns.
    """
    return re.compile(fnmatch.translate(text))


def pattern_matches(pattern: str, text: str) -> bool:
    """Return whether a shell pattern matches a text. A pattern of more than ``MOST_PATTERN`` characters matches
    nothing.
    """
    return len(pattern) <= MOST_PATTERN and _build_pattern(pattern).match(text) is not None


def never_waived(check: str) -> bool:
    """Return whether findings of a check cannot be waived.

    :param check: id of the check
    """
    return any(pattern_matches(pattern, check) for pattern in NEVER_WAIVED)


@dataclasses.dataclass(frozen=True)
class Waiver:
    """A user's decision that findings do not close a gate, with the reason. A waiver cannot cover the finding that a
    stage did not run, nor findings on an invalid intent.

    :ivar check: id of the check, with shell wildcards, at most MOST_PATTERN characters. The ids of NEVER_WAIVED are not
        covered
    :ivar reason: reason, printed in the report beside each finding that the waiver covers
    :ivar subject: subject of the finding, with shell wildcards, at most MOST_PATTERN characters
    :ivar measured: measured value of the finding, with shell wildcards, at most MOST_PATTERN characters. It selects
        among the findings on the same subject
    """

    check: str
    reason: str
    subject: str = "*"
    measured: str = "*"

    def covers(self, finding: Finding) -> bool:
        return self.names(finding.check) and self.fits(finding)

    def fits(self, finding: Finding) -> bool:
        """Return whether the subject and the measured value of a finding match the waiver. The check of the finding is
        ignored.
        """
        return pattern_matches(self.subject, finding.subject) and pattern_matches(self.measured, finding.measured)

    def names(self, check: str) -> bool:
        """Return whether the waiver can cover findings of a check.

        :param check: id of the check
        """
        return pattern_matches(self.check, check) and not never_waived(check)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A finding after the waivers were applied.

    :ivar finding: finding as the check returned it
    :ivar waiver: waiver that covers the finding; None if it passed, or if no waiver covers it
    """

    finding: Finding
    waiver: typing.Optional[Waiver] = None

    @property
    def closes(self) -> bool:
        return self.finding.status in (FAIL, UNKNOWN, SKIPPED) and self.waiver is None


@dataclasses.dataclass(frozen=True)
class Gate:
    """The decision whether the run may continue after a stage, with the findings on which it is based.

    :ivar open: whether the run may continue. Without findings the gate is closed
    :ivar judged: all findings, in order
    """

    open: bool
    judged: tuple[Judged, ...]

    def closing(self) -> tuple[Finding, ...]:
        return tuple(judged.finding for judged in self.judged if judged.closes)


def judge(findings: typing.Iterable[Finding], waivers: typing.Iterable[Waiver] = ()) -> Gate:
    """Judge the findings of a stage. ``fail``, ``unknown`` and ``skipped`` close the gate unless waived. An empty list
    closes it too.

    :param findings: findings of one stage
    :param waivers: waivers of the intent
    """
    waivers = tuple(waivers)
    named: dict[str, list[Waiver]] = {}
    judged = []
    for finding in findings:
        needs = finding.status in (FAIL, UNKNOWN, SKIPPED)
        if needs and finding.check not in named:
            named[finding.check] = [waiver for waiver in waivers if waiver.names(finding.check)]
        waiver = next((waiver for waiver in named[finding.check] if waiver.fits(finding)), None) if needs else None
        judged.append(Judged(finding, waiver))
    return Gate(bool(judged) and not any(item.closes for item in judged), tuple(judged))


def build_pass(check: str, subject: str, measured: str = "", expected: str = "") -> Finding:
    """Return a finding with status ``pass``, which needs no cause and no remedy.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param measured: observed value, as text
    :param expected: expected value, as text
    """
    return Finding(check, subject, PASS, measured, expected)


def add_rerun(findings: typing.Iterable[Finding], step: str, sentence: str) -> tuple[Finding, ...]:
    """Return the findings, each with the step to run again at the end of its remedy, after a period. Passed findings,
    and remedies that name this step already, are not changed.

    :param step: name of the stage or module
    :param sentence: instruction to run the step again
    """
    return tuple(
        finding
        if finding.status == PASS or any(_is_rerun(part, step) for part in finding.remedy.split(". "))
        else dataclasses.replace(finding, remedy=f"{finding.remedy.rstrip('. ')}. {sentence}")
        for finding in findings
    )


def _is_rerun(sentence: str, step: str) -> bool:
    """Return whether a sentence instructs the user to run a step again.

    :param step: name of the step, such as a stage
    """
    words = sentence.rstrip(".").replace(",", " ").replace(":", " ").split()
    return step in words and "again" in words
