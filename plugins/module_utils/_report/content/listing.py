# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the findings of a run for a reader: one entry for each cause, and the next steps of the user."""

from __future__ import annotations

import re
import typing

from ..._model.run.check_ids import PAGES, address_of
from ..._model.run.findings import SKIPPED, Finding, Judged
from ..markup.markup import Html, render_element
from .finding_groups import FindingGroup
from .verdict import label_finding

#: entries of a check in full; what else it found is folded
MOST_IN_FULL = 3
#: entries of a check, subjects of an entry, passes of a check: what is beyond is counted, and is in report.json, passes
#: in the record
MOST_GROUPS = 60
MOST_SUBJECTS = 100
MOST_PASSES = 25

#: the first check that a remedy leads to
_SEE = re.compile(
    r"(?:See (?:the findings? )?|Check the findings? |Follow the remed(?:y|ies) of the findings? |"
    r"Correct the (?:(?:causes?|problem|errors?) (?:in|that) the )?findings? )"
    r"([a-z_0-9]+(?:\.[a-z_0-9]+)+)"
)


def render_listing(found: typing.Sequence[FindingGroup], pages: str = PAGES) -> typing.Iterator[Html]:
    """Yield an article for each cause. If a check has many causes, such as pairs with different LIDs, the first
    MOST_IN_FULL are shown and all further ones are collapsed.

    :param found: findings in groups with the same cause
    :param pages: address of the explanation of a finding, with the placeholder ``{page}`` for the page
    """
    for alike in _group_by_check(found):
        yield from (_render_article(group, pages) for group in alike[:MOST_IN_FULL])
        folded = alike[MOST_IN_FULL:]
        if folded:
            title = render_element("summary", f"{len(folded)} more of ", render_element("code", folded[0].check))
            parts = (
                *[_render_article(group, pages) for group in folded[:MOST_GROUPS]],
                *_render_rest(folded[MOST_GROUPS:]),
            )
            yield render_element("details", title, *parts, class_=f"finding {folded[0].label}")


def _group_by_check(found: typing.Iterable[FindingGroup]) -> list[list[FindingGroup]]:
    together: dict[tuple[str, str], list[FindingGroup]] = {}
    for group in found:
        together.setdefault((group.label, group.check), []).append(group)
    return list(together.values())


class NextStep(typing.NamedTuple):
    """The next action for the user: the remedy of one group of findings.

    :ivar stage: name of the stage whose gate the findings close
    :ivar group: the findings
    :ivar others: groups of the same check that have other causes and are handled later
    """

    stage: str
    group: FindingGroup
    others: typing.Sequence[FindingGroup]


def list_steps(
    found: typing.Mapping[str, typing.Sequence[FindingGroup]],
) -> tuple[list[list[NextStep]], list[NextStep]]:
    """Return the next steps of the user to open all gates. If a check has several causes, only the first one becomes a
    step, except for suspects.

    A step is deferred in two cases: its findings are skipped although other findings close the gate of their stage, or
    its remedy refers to another step of the stage, such as that of a suspect.

    :param found: groups of findings that close a gate, by stage
    :returns: two lists: the necessary steps, grouped by remedy; and the deferred steps, which need no action until the
        necessary steps are done
    """
    by_remedy: dict[str, list[NextStep]] = {}
    left: list[NextStep] = []
    for stage, of_stage in found.items():
        of_this = list(_list_stage_steps(stage, of_stage))
        has_causes = any(step.group.label != SKIPPED for step in of_this)
        ways = _collect_references(of_this)
        for step in of_this:
            if (has_causes and step.group.label == SKIPPED) or _leads_on(step, ways):
                left.append(step)
            else:
                by_remedy.setdefault(step.group.remedy, []).append(step)
    return list(by_remedy.values()), left


def render_next_steps(found: typing.Mapping[str, typing.Sequence[FindingGroup]], pages: str = PAGES) -> Html:
    """Render the remedies of the findings that close gates as a numbered list. Each entry links to its stage.

    :param found: groups of findings that close a gate, by stage
    :param pages: address of the explanation of a finding, with the placeholder ``{page}`` for the page
    """
    together, left = list_steps(found)
    return render_element(
        "div",
        render_element("ol", *[_render_step(first, same, pages) for first, *same in together], class_="steps"),
        _render_consequences(left),
    )


def _collect_references(steps: typing.Iterable[NextStep]) -> dict[str, list[set[str]]]:
    """Return, by check, a list with one set for each step of the check. The set contains the checks to which the remedy
    of this step refers.
    """
    found: dict[str, list[set[str]]] = {}
    for step in steps:
        found.setdefault(step.group.check, []).append(_list_referred_checks(step))
    return found


def _leads_on(step: NextStep, ways: typing.Mapping[str, typing.Sequence[set[str]]]) -> bool:
    """Return whether the remedy of a step refers to another check, and the remedy of at least one step of that check
    does not refer back.

    :param ways: for each check, sets of the checks to which the remedies of its steps refer
    """
    own = step.group.check
    return any(own not in seen for check in _list_referred_checks(step) if check != own for seen in ways.get(check, ()))


def _list_referred_checks(step: NextStep) -> set[str]:
    """Return the IDs of the checks to which the remedy of a step refers."""
    return set(_SEE.findall(step.group.remedy))


def _list_stage_steps(stage: str, found: typing.Sequence[FindingGroup]) -> typing.Iterator[NextStep]:
    for alike in _group_by_check(found):
        shown = alike if alike[0].check.endswith(".suspect") else alike[:1]
        yield from (NextStep(stage, group, alike[1:] if len(shown) == 1 else ()) for group in shown[:MOST_GROUPS])


def _render_step(step: NextStep, same: typing.Sequence[NextStep], pages: str) -> Html:
    """Render one remedy with all findings that it corrects.

    :param step: first step with this remedy
    :param same: further steps with the same remedy
    :param pages: address of the explanation of a finding, with the placeholder ``{page}`` for the page
    """
    return render_element(
        "li",
        *[part for one in (step, *same) for part in _render_step_reasons(one, pages)],
        render_element("p", render_element("b", "Do: "), step.group.remedy, class_="remedy"),
    )


def _render_step_reasons(step: NextStep, pages: str) -> typing.Iterator[Html]:
    group, count = step.group, sum(len(other.findings) for other in step.others)
    yield render_element(
        "p",
        _render_badge(group.label),
        " ",
        render_element("a", render_element("code", group.check), href=f"#{step.stage}"),
        " ",
        _render_subjects(group),
    )
    yield from filter(None, (_render_measured(group.findings[0]),))
    yield render_element("p", group.why, " ", _render_meaning(group.check, pages))
    if step.others:
        yield render_element(
            "p",
            render_element("a", f"{count} more findings of this check with different causes", href=f"#{step.stage}"),
            class_="more",
        )


def _render_consequences(left: typing.Sequence[NextStep]) -> typing.Optional[Html]:
    """Render the findings that need no action of their own, because they were skipped or follow from other findings.
    Return None if there are none.

    :param left: steps for the findings that need no action of their own
    """
    if not left:
        return None
    count = sum(len(group.findings) for step in left for group in (step.group, *step.others))
    not_tried = all(step.group.label == SKIPPED for step in left)
    lines = [
        render_element(
            "li",
            render_element("a", render_element("code", step.group.check), href=f"#{step.stage}"),
            " ",
            _render_subjects(step.group),
            f": {step.group.why}",
        )
        for step in left
    ]
    if not_tried:
        cause = "that was skipped because of" if count == 1 else "that were skipped because of"
    else:
        cause = "that follows from" if count == 1 else "that follow from"
    return render_element(
        "details",
        render_element("summary", f"{count} finding{'' if count == 1 else 's'} {cause} these"),
        render_element("ul", *lines),
        class_="more",
    )


def render_passes(judged: typing.Iterable[Judged], record: str) -> typing.Optional[Html]:
    """Render the passed findings, collapsed, with the first MOST_PASSES of each check. Return None if there are none.

    :param record: path of the file that contains all passed findings, which is named if some are left out
    """
    found: dict[str, list[Finding]] = {}
    for item in judged:
        if label_finding(item) == "pass":
            found.setdefault(item.finding.check, []).append(item.finding)
    if not found:
        return None
    parts = [
        render_element(
            "section",
            render_element("h3", render_element("code", check), f" {len(items)}"),
            _render_table(items, MOST_PASSES, record),
        )
        for check, items in found.items()
    ]
    total = sum(map(len, found.values()))
    return render_element("details", render_element("summary", f"{total} passed"), *parts, class_="finding pass")


def _render_article(group: FindingGroup, pages: str) -> Html:
    first = group.findings[0]
    one = len(group.findings) == 1
    alike = {(finding.measured, finding.expected) for finding in group.findings}
    facts = _render_measured(first) if len(alike) == 1 else None
    waived = (
        render_element("p", render_element("b", "Waived: "), group.waived, class_="remedy") if group.waived else None
    )
    remedy = (
        render_element("p", render_element("b", "Do: "), group.remedy, class_="remedy") if not group.waived else None
    )
    rest = None
    if not one:
        names = f"{len(group.findings)} findings with this cause"
        is_open = len(group.findings) <= 4 and not group.waived
        rest = render_element(
            "details",
            render_element("summary", names),
            _render_table(group.findings, MOST_SUBJECTS, "report.json", with_values=len(alike) > 1),
            open=is_open,
        )
    return render_element(
        "article",
        render_element(
            "h3", _render_badge(group.label), " ", render_element("code", group.check), " ", _render_subjects(group)
        ),
        facts,
        render_element("p", group.why, " ", _render_meaning(group.check, pages)),
        waived,
        remedy,
        rest,
        class_=f"finding {group.label}",
    )


def _render_measured(finding: Finding) -> typing.Optional[Html]:
    pairs = [(name, text) for name, text in (("Measured", finding.measured), ("Expected", finding.expected)) if text]
    return (
        render_element(
            "dl",
            *[render_element("div", render_element("dt", name), render_element("dd", text)) for name, text in pairs],
        )
        if pairs
        else None
    )


def _render_subjects(group: FindingGroup) -> Html:
    names = [finding.subject for finding in group.findings]
    more = f" and {len(names) - 1} more" if len(names) > 1 else None
    return render_element("span", render_element("bdi", names[0]), more, class_="subject")


def _render_table(findings: typing.Sequence[Finding], most: int, where: str, with_values: bool = True) -> Html:
    first = findings[0]
    label = f"{first.check}, {first.status}: {first.subject} and {len(findings) - 1} more"
    names = ("Subject", "Measured", "Expected") if with_values else ("Subject",)
    rows = []
    for finding in findings[:most]:
        values = (finding.measured, finding.expected) if with_values else ()
        rows.append(
            render_element(
                "tr",
                render_element("th", render_element("bdi", finding.subject), scope="row"),
                *[render_element("td", text) for text in values],
            )
        )
    head = render_element("thead", render_element("tr", *[render_element("th", name, scope="col") for name in names]))
    more = (
        render_element("p", f"and {len(findings) - most} more, all of them in {where}", class_="more")
        if len(findings) > most
        else None
    )
    return render_element(
        "div",
        render_element("table", head, render_element("tbody", *rows)),
        more,
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=label,
    )


def _render_rest(left: typing.Sequence[FindingGroup]) -> typing.Iterator[Html]:
    if left:
        count = sum(len(group.findings) for group in left)
        yield render_element(
            "p", f"and {len(left)} more causes with {count} findings, all of them in report.json", class_="more"
        )


def _render_meaning(check: str, pages: str) -> Html:
    return render_element(
        "a", "What it means", href=address_of(check, pages), class_="more", aria_label=f"What {check} means"
    )


def _render_badge(name: str) -> Html:
    return render_element("span", name, class_=f"badge {name}")
