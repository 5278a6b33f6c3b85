# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the result of a module that judges findings without being part of a stage."""

from __future__ import annotations

import typing

from ansible.module_utils.basic import AnsibleModule

from .._model.base import escape
from .._model.run.findings import Finding, Waiver, judge
from .._model.run.records import CLOSED, OPEN, Record, describe_record, make_record_data
from .._store.fact_file import format_now


def conclude_module_findings(
    module: AnsibleModule, subject: str, findings: typing.Iterable[Finding], waivers: typing.Iterable[Waiver]
) -> dict[str, typing.Any]:
    """Return the verdict on findings as the result of a module that is not part of a stage: ``gate``, ``lines`` and
    ``findings``. Fail the module if a finding that no waiver covers closes the gate.

    :param subject: name of what was judged, with which the first line of the message begins
    """
    gate = judge(findings, waivers)
    moment = format_now()
    record = Record(subject, "", moment, moment, False, OPEN if gate.open else CLOSED, gate.judged)
    # a result that failed is shown as it is: a job and a cluster have chosen some of these words
    result = {
        "gate": record.gate,
        "lines": describe_record(record),
        "findings": escape.escape_data(make_record_data(record)["judged"]),
    }
    if not gate.open:
        module.fail_json(msg="\n".join(result["lines"]), **result)
    return result
