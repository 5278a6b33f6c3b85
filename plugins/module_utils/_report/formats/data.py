# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as JSON, for programs."""

from __future__ import annotations

import json
import typing

from ..._model.base.load import to_data
from ..._model.base.redact import redact
from ..._model.run.check_ids import address_of
from ..._model.run.findings import PASS
from ..._model.run.records import Record, count_passes
from ..content.alike import group_alike
from ..content.verdict import Report, StageReport, UsedWaiver

#: goes up when a key changes its meaning or goes away; new keys don't raise it. docs/report.schema.json is its text
JSON_SCHEMA = 2
#: findings under a waiver that it covers; what is beyond is counted, and is among the findings of its stage
MOST_COVERED = 100


def render_json(report: Report) -> str:
    found = group_alike(report.records, report.seen)
    data = {
        "schema": JSON_SCHEMA,
        "verdict": report.verdict,
        "green": report.green,
        "waived": report.waived,
        "success": report.success,
        "summary": report.summary,
        "run": report.run,
        "created": report.created,
        "versions": dict(report.versions),
        "check_mode": report.check_mode,
        "counts": report.counts,
        "changes": len(report.changes),
        "seconds": report.seconds,
        "stages": [_render_stage(stage) for stage in report.stages],
        "waivers": [_render_waiver(used) for used in report.waivers],
        "since": to_data(report.since),
        "pages": {check: address_of(check, report.pages) for check in sorted(_collect_reported_checks(report))},
        "groups": to_data(found.groups),
        "groups_unknown": list(found.notes),
    }
    return json.dumps(redact(data), indent=2, sort_keys=True) + "\n"


def _collect_reported_checks(report: Report) -> set[str]:
    """Return the IDs of the checks with at least one finding that did not pass. Only the findings of these checks are
    part of the JSON.
    """
    return {
        item.finding.check
        for stage in report.stages
        if stage.record
        for item in stage.record.judged
        if item.finding.status != PASS
    }


def _render_stage(stage: StageReport) -> dict[str, typing.Any]:
    data: dict[str, typing.Any] = {
        "name": stage.name,
        "state": stage.state,
        "note": stage.note,
        "counts": stage.counts,
        "passes": {},
        "findings": [],
    }
    if stage.record:
        data.update(_of_record(stage.record, stage.seconds))
    return data


def record_path(stage: str) -> str:
    """Return the path of a stage's record, relative to the report. Unlike the report, the record contains all findings,
    including each passed one.
    """
    return f"stages/{stage}.jsonl"


def _of_record(record: Record, seconds: typing.Optional[float]) -> dict[str, typing.Any]:
    findings = []
    for item in record.judged:
        if item.finding.status == PASS:
            continue
        finding = to_data(item.finding)
        finding["waived"] = item.waiver.reason if item.waiver else None
        findings.append(finding)
    return {
        "started": record.started,
        "finished": record.finished,
        "seconds": seconds,
        "closed_by": record.closed_by,
        "changes": list(record.changes),
        "passes": count_passes(record.judged),
        "findings": findings,
        "record": record_path(record.stage),
    }


def _render_waiver(used: UsedWaiver) -> dict[str, typing.Any]:
    covered = [
        {"check": finding.check, "subject": finding.subject, "status": finding.status}
        for finding in used.covered[:MOST_COVERED]
    ]
    waiver = used.waiver
    return {
        "check": waiver.check,
        "subject": waiver.subject,
        "measured": waiver.measured,
        "reason": waiver.reason,
        "covers": len(used.covered),
        "covered": covered,
        "idle": list(used.idle),
    }
