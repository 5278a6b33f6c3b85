# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules of the stage frame share: their options, the clock, and how a record becomes a result. Sits above all layers, below the modules."""

from __future__ import annotations

import datetime
import secrets
import typing

from ansible.module_utils.basic import AnsibleModule

from ._check.frame import RawIntent, StageContext
from ._model.findings import STAGES, Finding, Waiver, judge
from ._model.records import CLOSED, OPEN, Record, describe, record_data
from ._observe.records import read_records, write_record

FRAME_SPEC: typing.Dict[str, typing.Any] = {
    "stage": {"type": "str", "required": True, "choices": list(STAGES)},
    "run": {"type": "str"},
    # raw: the intent's own loader names the path of what is wrong; Ansible's conversion would hide it
    "fabrics": {"type": "raw"},
    "waivers": {"type": "raw"},
    "cluster": {"type": "raw"},
    "record_dir": {"type": "path", "required": True},
}


def now() -> str:
    """UTC, ISO 8601, with seconds."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def new_run() -> str:
    """Identity of a run: sorts by time, and two runs of one second differ."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def context_of(params: typing.Mapping[str, typing.Any], check_mode: bool) -> StageContext:
    """Where the stage stands. A record that can't be read counts as none: the report says why, and judges it as not run."""
    run = params["run"] or new_run()
    records, _unreadable = read_records(params["record_dir"])
    return StageContext(
        stage=params["stage"],
        run=run,
        started=params.get("started") or now(),
        finished=now(),
        check_mode=check_mode,
        records={stage: record for stage, record in records.items() if record.run == run},
    )


def raw_intent_of(params: typing.Mapping[str, typing.Any]) -> RawIntent:
    return RawIntent(params["fabrics"], params["waivers"], params["cluster"])


def verdict(module: AnsibleModule, subject: str, findings: typing.Iterable[Finding], waivers: typing.Iterable[Waiver]) -> typing.Dict[str, typing.Any]:
    """The result of a module that judges by itself, beside the stages. A closed gate fails the module.

    :param subject: what the findings are about, for the first line
    """
    gate = judge(findings, waivers)
    time = now()
    record = Record(subject, "", time, time, False, OPEN if gate.open else CLOSED, gate.judged)
    result = {"gate": record.gate, "lines": describe(record), "findings": record_data(record)["judged"]}
    if not gate.open:
        module.fail_json(msg="\n".join(result["lines"]), **result)
    return result


def conclude(context: StageContext, record: typing.Optional[Record], record_dir: str) -> typing.Dict[str, typing.Any]:
    """The result of a module of the frame; writes the record, if there is one. Never 'changed': a record is not what the user asked to change.

    :raises RecordError: the record can't be written
    """
    result: typing.Dict[str, typing.Any] = {
        "stage": context.stage,
        "run": context.run,
        "started": context.started,
        "go": record is None,
        "gate": record.gate if record else "open",
        "lines": describe(record) if record else [],
    }
    if record:
        result["path"] = write_record(record_dir, record)
        result["findings"] = record_data(record)["judged"]
    return result
