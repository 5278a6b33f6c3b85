# SPDX-License-Identifier: GPL-3.0-or-later

"""Never a green run that is not true: each fact of a healthy fleet is broken in turn, and the run must not be green, or
the table says why it may."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, judge

from . import page
from .breaks import Case, cases
from .fleet import FEW, LARGE, MIXED, PAIR, ROCE, SHAPES, TWO, Shape, healthy
from .judge import CLOSED, ORDER, Outcome, compared, findings, outcomes, worst
from .site import judge_teardown, site, taken_back
from .site_table import SITE, TEARDOWN
from .table import GAPS, ROWS

ALL = (*ROWS, *GAPS)
DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"


def test_healthy_fleets_are_green() -> None:
    for shape in SHAPES:
        fleet = healthy(shape)
        for stage in TABLE:
            gate = judge(findings(fleet, stage), fleet.intent.waivers)
            assert gate.open, (shape.name, stage)
            assert [
                item.finding for item in gate.judged if item.finding.status != PASS and item.waiver is None
            ] == [], (shape.name, stage)


def test_a_site_that_has_more_is_green_and_so_is_its_teardown() -> None:
    fleet, _hints = site()
    found = {stage: [item for item in findings(fleet, stage) if item.status != PASS] for stage in TABLE}
    assert {stage: items for stage, items in found.items() if items} == {}
    ended, _hints = taken_back()
    assert [item for item in judge_teardown(ended, ended.facts) if item.status != PASS] == []


def test_each_fact_of_a_small_fleet_is_noticed_or_the_table_says_why_not() -> None:
    wrong = compared(small_fleets(), ALL)
    assert not wrong, "correct the check, or the table in tests/unit/truth/table.py:\n" + "\n".join(wrong)


def test_each_fact_of_a_site_that_has_more_is_noticed_or_the_table_says_why_not() -> None:
    fleet, hints = site()
    wrong = compared(outcomes(fleet, cases(fleet, hints=hints)), SITE)
    assert not wrong, "correct the check, or the table in tests/unit/truth/site_table.py:\n" + "\n".join(wrong)


def test_each_fact_of_a_teardown_is_noticed_or_the_table_says_why_not() -> None:
    fleet, hints = taken_back()
    seen = outcomes(
        fleet, cases(fleet, hints=hints), lambda fleet, broken: worst(fleet, [judge_teardown(fleet, broken.facts)])
    )
    wrong = compared(seen, TEARDOWN)
    assert not wrong, "correct the check, or the table in tests/unit/truth/site_table.py:\n" + "\n".join(wrong)


@pytest.mark.parametrize(("shape", "every"), [(MIXED, 8), (LARGE, 20)])
def test_a_large_fleet_hides_nothing(shape: Shape, every: int) -> None:
    """Some of what small fleets notice, each at one place of many."""
    fleet = healthy(shape)
    first = {broken.case: broken for broken in cases(fleet, "one") if not any(row.named(broken.case) for row in ALL)}
    seen = outcomes(fleet, list(first.values())[::every])
    assert len(seen) > 20
    assert {outcome.words: outcome.verdict for outcome in seen.values() if outcome.verdict != CLOSED} == {}


def test_the_page_is_made_of_the_table() -> None:
    assert (DOCS / "truth.md").read_text(encoding="utf-8") == page.page(), (
        "run: python -m tests.unit.truth.page > docs/truth.md"
    )


def small_fleets() -> dict[Case, Outcome]:
    """Of each case what is said at least."""
    seen: dict[Case, Outcome] = {}
    for shape in (PAIR, FEW, ROCE, TWO):
        for case, outcome in outcomes(healthy(shape), cases(healthy(shape))).items():
            if case not in seen or ORDER.index(outcome.verdict) > ORDER.index(seen[case].verdict):
                seen[case] = outcome
    return seen
