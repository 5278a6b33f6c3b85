# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as of_node_exporter

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES, Finding, Waiver, judge
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import Report, build_report
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats.metrics import render_metrics
from ansible_collections.linerate.rdma.tests.unit.report.report_world import RUN, Made, World, records

SMALL = World(nodes=4, rails=2, on_leaf=2, rounds=3)
Sample = tuple[str, frozenset[tuple[str, str]]]


def report(made: Made, run: str = RUN) -> Report:
    return build_report(
        made.records,
        {},
        run,
        "2026-01-02T03:10:00+00:00",
        {"linerate.rdma": "1.0.0", "ansible-core": "2.19.0"},
        made.source,
    )


def samples(
    text: str, parse: typing.Callable[[str], typing.Iterable[typing.Any]] = text_string_to_metric_families
) -> dict[Sample, float]:
    """As a reader of its own sees it."""
    return {
        (item.name, frozenset(item.labels.items())): item.value for family in parse(text) for item in family.samples
    }


def key(name: str, **labels: str) -> Sample:
    return f"linerate_rdma_{name}", frozenset(labels.items())


def test_what_a_run_came_to() -> None:
    found = samples(render_metrics(report(records(SMALL))))
    assert found[key("green")] == 1 and found[key("check_mode")] == 0
    assert {name: found[key("gate_open", stage=name)] for name in STAGES} == dict.fromkeys(STAGES, 1)
    assert found[key("stage_seconds", stage="fabric")] == 20
    # 2026-01-02T03:04:25 UTC
    assert found[key("finished_seconds")] == 1767323065
    passed = sum(item.finding.status == "pass" for item in records(SMALL).records["fabric"].judged)
    assert found[key("findings", stage="fabric", status="pass")] == passed > 0
    assert found[key("run_info", run=RUN, verdict="GREEN", linerate_rdma="1.0.0", ansible_core="2.19.0")] == 1


def test_the_figures_of_each_rail() -> None:
    found = samples(render_metrics(report(records(dataclasses.replace(SMALL, slow=3)))))
    assert found[key("green")] == 0 and found[key("gate_open", stage="bandwidth")] == 0
    lowest, median, best = (
        [found[key("bandwidth_bits_per_second", fabric="compute", rail=rail, figure=figure)] for rail in "01"]
        for figure in ("lowest", "median", "best")
    )
    assert lowest[1] < 2.0e11 < 3.8e11 < lowest[0]
    assert all(low <= middle <= high < 4.0e11 for low, middle, high in zip(lowest, median, best))
    assert found[key("pairs", fabric="compute", rail="0", measured="yes")] == SMALL.nodes * SMALL.rounds
    assert found[key("pairs", fabric="compute", rail="0", measured="no")] == 0


def test_pairs_between_rails_are_of_no_rail() -> None:
    found, plain = (
        samples(render_metrics(report(records(dataclasses.replace(SMALL, across=across))))) for across in (True, False)
    )
    assert found[key("pairs", fabric="compute", rail="between", measured="yes")] == SMALL.nodes * SMALL.rails
    assert found[key("bandwidth_bits_per_second", fabric="compute", rail="between", figure="best")] == 3.81e11
    assert {
        name: value
        for name, value in found.items()
        if ("rail", "between") not in name[1] and name[0].endswith(("pairs", "second"))
    } == {name: value for name, value in plain.items() if name[0].endswith(("pairs", "second"))}


def test_a_pair_without_a_figure_is_no_figure_of_zero() -> None:
    found = samples(render_metrics(report(records(dataclasses.replace(SMALL, cut=(0, 1))))))
    assert found[key("pairs", fabric="compute", rail="0", measured="no")] > 0
    assert found[key("bandwidth_bits_per_second", fabric="compute", rail="0", figure="lowest")] > 3.8e11


def test_a_stage_that_did_not_run_is_not_open_and_has_no_figures() -> None:
    whole = records(SMALL)
    found = samples(
        render_metrics(
            report(
                dataclasses.replace(
                    whole, records={name: item for name, item in whole.records.items() if name != "bandwidth"}
                )
            )
        )
    )
    assert found[key("green")] == 0 and found[key("gate_open", stage="bandwidth")] == 0
    assert not [
        name for name, labels in found if name in ("linerate_rdma_pairs", "linerate_rdma_bandwidth_bits_per_second")
    ]
    assert key("findings", stage="bandwidth", status="pass") not in found


def test_no_run_at_all() -> None:
    found = samples(render_metrics(build_report({}, {}, "", "2026-01-02T03:10:00+00:00")))
    assert found[key("green")] == 0 and key("finished_seconds") not in found


def test_facts_that_do_not_load_give_no_figures() -> None:
    made = records(SMALL).change("bandwidth", {"bandwidth": {"pairs": 3}})
    found = samples(render_metrics(report(made)))
    assert found[key("green")] == 1 and not [name for name, labels in found if name == "linerate_rdma_pairs"]


def test_check_mode_is_never_green() -> None:
    made = records(SMALL)
    found = samples(render_metrics(report(made.change("network", check_mode=True))))
    assert found[key("green")] == 0 and found[key("check_mode")] == 1


def test_the_collector_of_the_node_exporter_takes_it_as_well() -> None:
    text = render_metrics(report(records(SMALL)))
    assert samples(text, of_node_exporter) == samples(text)


def test_waived_findings_count_as_waived() -> None:
    finding = Finding("platform.bios", "worker-1", "unknown", "not read", "on", "No BMC.", "Ask the BMC.")
    made = records(SMALL)
    judged = judge([finding], [Waiver("platform.bios", "no BMC")]).judged
    found = samples(render_metrics(report(made.change("platform", judged=judged))))
    assert (
        found[key("findings", stage="platform", status="waived")],
        found[key("findings", stage="platform", status="unknown")],
    ) == (1, 0)


@hypothesis.given(some.text(max_size=40))
def test_any_text_stays_text(text: str) -> None:
    made = build_report({}, {}, "run", "2026-01-02T03:10:00+00:00", {"linerate.rdma": text})
    harmless = build_report({}, {}, "run", "2026-01-02T03:10:00+00:00", {"linerate.rdma": "1.0.0"})
    assert [name for name, _labels in samples(render_metrics(made))] == [
        name for name, _labels in samples(render_metrics(harmless))
    ]


def test_it_ends_as_the_format_wants_it() -> None:
    text = render_metrics(report(records(SMALL)))
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
