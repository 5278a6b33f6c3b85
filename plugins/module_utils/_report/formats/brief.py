# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the report in at most twenty lines of Markdown, for chat and mail: the verdict, its subject, and the first
causes with their remedies.
"""

from __future__ import annotations

import re
import typing

from ..._model.run.findings import PASS
from ..content.finding_groups import FindingGroup, collect_closing_groups
from ..content.listing import NextStep, list_steps
from ..content.verdict import Report
from ..markup.text import one_line

#: causes that are named, and characters of a text: with them the whole has twenty lines at most, and some chats cut
#: what is longer
MOST_CAUSES, MOST_TEXT = 3, 300
#: what begins a format, a link or a name that is called; inside of a word ``_`` and ``@`` are letters
_MARKS = re.compile(r"[\\`*\[\]<|~&]|(?<![^\W_])_|_(?![^\W_])")
_CALLS = re.compile(r"(?<!\w)@")
#: text without blanks and without signs that mean something in code as well: ``<`` calls and ``|`` ends a cell in some
#: readers
_PIECE = re.compile(r"[^\s`<>|]+")
#: what readers make a link, a reference, a picture or a formula of, escaped or not: GitHub and GitLab look for it in
#: what was rendered, outside of code
#: [GFM 6.9, docs.github.com/en/get-started/writing-on-github, docs.gitlab.com/user/markdown]
_LINKED = re.compile(
    r"://|(?i:www\.|mailto:|xmpp:)|[\w.+-]@[\w-]+\.\w"  # addresses and mails
    r"|[#!%~&]\d|(?i:\bgh-\d)|\$"  # issues and the like; formulas, and snippets
    r"|:[a-z+-][a-z0-9_+-]*:|:[0-9]{3,}:"  # pictures: :tada:, :de:, :100:
)


def render_markdown(report: Report) -> str:
    together, left = list_steps(collect_closing_groups(report))
    # the summary begins with the verdict, which is said already
    summary = report.summary.partition(" - ")[2] or report.summary
    lines = [f"**linerate.rdma: {_escape_markdown(report.verdict)}** - {_escape_markdown(summary)}", ""]
    lines += [
        *[f"- {_escape_markdown(name)}: {_escape_markdown(value)}" for name, value in report.head().items()],
        _describe_counts(report),
        _describe_stages(report),
    ]
    if together:
        lines += [
            "",
            "What to do next:",
            *[
                line
                for number, same in enumerate(together[:MOST_CAUSES], 1)
                for line in _list_cause_lines(number, same)
            ],
        ]
    more = _describe_remainder(len(together) - MOST_CAUSES, sum(len(step.group.findings) for step in left))
    return "\n".join([*lines, *(["", more] if more else [])]) + "\n"


def _list_cause_lines(number: int, same: typing.Sequence[NextStep]) -> typing.Iterator[str]:
    """Yield two lines for a remedy: the first finding that needs it with the number of further findings, and the remedy
    itself.

    :param number: number of the remedy in the list
    :param same: steps with this remedy, at least one
    """
    group = same[0].group
    others = len(group.findings) - 1 + sum(len(step.group.findings) for step in same[1:])
    subject = f"{_escape_markdown(group.findings[0].subject)}{f' and {others} more' if others else ''}"
    head = f"{number}. {group.label} {_escape_markdown(group.check)} on {subject}"
    yield f"{head}{_describe_measurement(group)} {_escape_markdown(group.why)}"
    yield f"   Do: {_escape_markdown(group.remedy)}"


def _describe_measurement(group: FindingGroup) -> str:
    first = group.findings[0]
    if not first.measured and not first.expected:
        return "."
    return f": measured {_escape_markdown(first.measured or '-')}; expected {_escape_markdown(first.expected or '-')}."


def _describe_counts(report: Report) -> str:
    number = ", ".join(f"{count} {name}" for name, count in report.counts.items() if count or name == PASS)
    return f"- Findings: {number}"


def _describe_stages(report: Report) -> str:
    """Return one line about the stages: the number of passed stages, the names of the stages with a closed gate, the
    number of stages that wait for objects which check mode does not create, and the number of stages that did not run.
    """
    passed = sum(stage.state == "open" for stage in report.stages)
    stopped = [stage.name for stage in report.stages if stage.state == "closed"]
    words = [f"{passed} passed", *([f"stopped at {', '.join(map(_escape_markdown, stopped))}"] if stopped else [])]
    pending = sum(stage.state == "pending" for stage in report.stages)
    words += [f"{pending} wait for objects that would be created"] if pending else []
    rest = len(report.stages) - passed - len(stopped) - pending
    return f"- Stages: {', '.join([*words, *([f'{rest} not run'] if rest else [])])}"


def _describe_remainder(causes: int, following: int) -> str:
    words = [f"{causes} more cause{'' if causes == 1 else 's'}"] if causes > 0 else []
    words += (
        [f"{following} finding{'' if following == 1 else 's'} that follow{'s' if following == 1 else ''} from these"]
        if following
        else []
    )
    return f"{' and '.join(words)} {'is' if causes + following == 1 else 'are'} in report.html." if words else ""


def _escape_markdown(text: str) -> str:
    """Return untrusted text escaped for one line of Markdown, so that it contains no formatting, link or mention. It is
    cut to MOST_TEXT characters.

    A backslash does not prevent renderers from linking addresses, mail addresses and references. Words that resemble
    these are therefore written as code, which no renderer changes.
    """
    cut = one_line(text)
    cut = _CALLS.sub("(at)", cut if len(cut) <= MOST_TEXT else f"{cut[:MOST_TEXT]}\u2026")
    made, end = "", 0
    for piece in _PIECE.finditer(cut):
        # a colon may follow the whole
        if _LINKED.search(f"{piece[0]}:" if piece.end() == len(cut) else piece[0]):
            made += f"{_escape_marks(cut[end : piece.start()])}`{piece[0]}`"
            end = piece.end()
    return made + _escape_marks(cut[end:])


def _escape_marks(text: str) -> str:
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", text)
