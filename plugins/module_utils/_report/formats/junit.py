# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as JUnit XML, for CI systems. A stage is a test suite. A finding is a test case, and all passes of a check
together are one.

``fail`` is a failure, ``unknown`` is an error, ``skipped`` and waived findings are skipped (with the reason), and
``warn`` passes with a text. A stage without a record of this run is a suite with one error, so that no CI system counts
it as passed. Attributes and elements are those that Jenkins allows, which is the strictest consumer [xunit-plugin
junit-10.xsd].
"""

from __future__ import annotations

import typing
from xml.etree import ElementTree

from ..._model.run.findings import PASS, Finding, Judged
from ..._model.run.records import count_passes
from ..content.verdict import Report, StageReport
from ..markup.text import escape_plain
from .data import record_path


def render_junit(report: Report) -> str:
    properties = {"run": report.run, "verdict": report.verdict, **report.versions}
    suites = [_make_suite(stage, properties) for stage in report.stages]
    attributes = {"name": _escape_controls(f"linerate.rdma {report.run}"), "time": f"{report.seconds:.3f}"}
    for name in ("tests", "failures", "errors"):
        attributes[name] = str(sum(int(suite.attrib[name]) for suite in suites))
    root = ElementTree.Element("testsuites", attributes)
    root.extend(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _make_suite(stage: StageReport, properties: typing.Mapping[str, str]) -> ElementTree.Element:
    judged = stage.record.judged if stage.record else ()
    passed = [_build_passed_case(stage.name, check, number) for check, number in count_passes(judged).items()]
    cases = [*passed, *(_make_case(stage.name, item) for item in judged if item.finding.status != PASS)] or [
        _build_missing_case(stage)
    ]
    attributes = {
        "name": stage.name,
        "tests": str(len(cases)),
        "failures": str(_count_cases(cases, "failure")),
        "errors": str(_count_cases(cases, "error")),
        "skipped": str(_count_cases(cases, "skipped")),
        "time": f"{stage.seconds or 0.0:.3f}",
    }
    if stage.record:
        # the schema that most readers use knows no time zone
        attributes["timestamp"] = _escape_controls(stage.record.started[:19])
    suite = ElementTree.Element("testsuite", attributes)
    listed = ElementTree.SubElement(suite, "properties")
    for name, value in {**properties, "waived": str(stage.counts["waived"])}.items():
        ElementTree.SubElement(listed, "property", {"name": _escape_controls(name), "value": _escape_controls(value)})
    suite.extend(cases)
    return suite


def _build_passed_case(stage: str, check: str, number: int) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", {"classname": f"linerate.rdma.{stage}", "name": _escape_controls(check), "time": "0"}
    )
    ElementTree.SubElement(case, "system-out").text = f"{number} passed; {record_path(stage)} contains all of them"
    return case


def _make_case(stage: str, item: Judged) -> ElementTree.Element:
    finding = item.finding
    case = ElementTree.Element(
        "testcase",
        {
            "classname": f"linerate.rdma.{stage}",
            "name": _escape_controls(f"{finding.check} on {finding.subject}"),
            "time": "0",
        },
    )
    if item.waiver:
        ElementTree.SubElement(
            case, "skipped", {"message": _escape_controls(f"waived ({finding.status}): {item.waiver.reason}")}
        ).text = _describe_finding(finding)
    elif finding.status == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": _escape_controls(finding.why)}).text = _describe_finding(
            finding
        )
    elif finding.status in ("fail", "unknown"):
        tag = "failure" if finding.status == "fail" else "error"
        ElementTree.SubElement(
            case, tag, {"type": finding.status, "message": _escape_controls(finding.why)}
        ).text = _describe_finding(finding)
    elif finding.status == "warn":
        ElementTree.SubElement(case, "system-out").text = _describe_finding(finding)
    return case


def _build_missing_case(stage: StageReport) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        {"classname": f"linerate.rdma.{stage.name}", "name": f"{stage.name}.run on stage {stage.name}", "time": "0"},
    )
    ElementTree.SubElement(
        case, "error", {"type": stage.state, "message": _escape_controls(stage.note or "Nothing was checked.")}
    )
    return case


def _describe_finding(finding: Finding) -> str:
    return _escape_controls(
        f"measured: {finding.measured}\nexpected: {finding.expected}\nwhy: {finding.why}\nremedy: {finding.remedy}"
    )


def _count_cases(cases: typing.Iterable[ElementTree.Element], tag: str) -> int:
    return sum(1 for case in cases if case.find(tag) is not None)


def _escape_controls(text: str) -> str:
    """Return a text with visible escapes in place of control characters. XML 1.0 does not allow some of these
    characters even as character references.
    """
    return escape_plain(text)
