# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pod of one node prints of a test ends neither stage collectives nor the report: rows of no time and of no
bytes, and figures of 0."""

from __future__ import annotations

import dataclasses
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, check, judge_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.course import Course
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.group_verdict import GroupFigure
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.trend import summarize_group_figures
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    EarlierCollectives,
    EarlierStep,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import UNKNOWN
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.trends import list_steps
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats import stage_section
from ansible_collections.linerate.rdma.tests.unit.collectives_world import CLUSTER, FABRIC, Mpirun, NcclApi
from ansible_collections.linerate.rdma.tests.unit.run.test_collectives import measured, run

ROW = re.compile(r"^ +\d+ +\d+ +float.*$", re.MULTILINE)
NOTHING = "  {size}   0   float   sum   -1   0.00   {gbs}   {gbs}   0   0.00   {gbs}   {gbs}   0\n"


class Liar(NcclApi):
    """A fleet of which the pod of the first node changes what it prints of each group."""

    added = ""
    zero = False

    def printed(self, ran: Mpirun) -> CommandResult:
        result = super().printed(ran)
        nodes = [self.node_named(host) for host in ran.hosts]
        if nodes[0] != "a" or len(nodes) < 2:
            return result
        text = result.output
        if self.added:
            text = re.sub(r"# nThread.*\n", "", text).replace("# Out of bounds", f"{self.added}# Out of bounds")
            values = [float(word) for row in ROW.findall(text) for word in (row.split()[7], row.split()[11])]
            text = re.sub(r"(Avg bus bandwidth    : )\S+", rf"\g<1>{sum(values) / len(values):.2f}", text)
        if self.zero and len(nodes) > 2:
            text = re.sub(r"(sum +-1) .*", r"\1 0.00 0.00 0.00 0 0.00 0.00 0.00 0", text)
            text = re.sub(r"(Avg bus bandwidth    : )\S+", r"\g<1>0", text)
        return dataclasses.replace(result, output=text)


@pytest.mark.parametrize("added", [NOTHING.format(size=0, gbs="53.76"), NOTHING.format(size=1, gbs="999999999")])
def test_a_row_of_no_time_before_a_soak_costs_no_measurement(added: str) -> None:
    api = Liar()
    api.added = added
    facts, _lines, findings = run(api, soak_minutes=30)
    assert len(facts.runs) >= 7 and not facts.ended
    assert any(ran.figures.torn for ran in facts.runs if ran.figures is not None), "and it is no row"
    assert findings


def test_what_nobody_foresaw_ends_one_course_and_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NcclApi()
    take = Course.take

    def fails(self: Course, tests: typing.Any, results: typing.Any) -> typing.Any:
        if any(test.kind == "all" for test, _run in tests):
            raise ZeroDivisionError("division by zero")
        return take(self, tests, results)

    monkeypatch.setattr(Course, "take", fails)
    facts, _lines, findings = run(api)
    assert facts.runs and "the output of the tests could not be evaluated:" in facts.ended
    assert "ZeroDivisionError" in facts.ended and len(facts.ended) <= 600
    (said,) = [item for item in findings if item.check == "collectives.log" and item.status == UNKNOWN]
    assert "ZeroDivisionError ('division by zero')" in said.why and said.measured == "output of the tests not evaluated"


def test_a_figure_of_nothing_is_nothing_that_later_runs_are_held_against() -> None:
    api = Liar()
    api.zero = True
    facts, _lines, _findings = run(api)
    intent = parse_intent([dict(FABRIC)], None, CLUSTER)
    seen = Facts(api.nodes, bandwidth=measured(api.nodes), collectives=facts)
    steps = summarize_group_figures("compute", judge_facts(intent, seen).figures)
    assert steps and all(step.worst > 0 for step in steps)


@pytest.mark.parametrize("bus_gbs", [0.0, 900_000.0])
def test_a_figure_that_no_group_has_leaves_the_steps_of_the_others(bus_gbs: float) -> None:
    found = [
        GroupFigure("all_reduce", "one node", ("a",), 350.0, None),
        GroupFigure("all_reduce", "two nodes", ("a", "b"), bus_gbs, None),
    ]
    steps = summarize_group_figures("compute", found)
    assert [step.kind for step in steps] == ["one node"]
    assert load(tuple[StepFigures, ...], to_data(steps)) == steps


def test_a_kept_run_with_figures_of_nothing_costs_no_report() -> None:
    """A folder below ``runs/`` may be anybody's."""
    facts, _lines, _findings = run(NcclApi())
    intent = parse_intent([dict(FABRIC)], None, CLUSTER)
    nodes = NcclApi().nodes
    seen = Facts(nodes, bandwidth=measured(nodes), collectives=facts)
    steps = summarize_group_figures("compute", judge_facts(intent, seen).figures)
    earlier = EarlierCollectives(
        ("r1", "r2", "r3"), (), tuple(EarlierStep(step.test, step.kind, step.nodes, (0.0,) * 3) for step in steps)
    )
    assert [trend.change for trend in list_steps(steps, earlier)] == [None] * len(steps)
    assert check(intent, dataclasses.replace(seen, earlier=earlier))


def test_a_figure_that_nobody_foresaw_is_a_line_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: object) -> typing.NoReturn:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(stage_section, "list_matrices", fails)
    stage: typing.Any = type("Stage", (), {"name": "bandwidth", "record": type("Record", (), {"judged": ()})()})()
    (said,) = stage_section._render_figures(stage, typing.cast(typing.Any, None), typing.cast(typing.Any, None), {})
    assert "A figure of this stage could not be drawn: the figures of stage bandwidth: " in str(said)
