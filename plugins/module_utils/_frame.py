# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What the modules of the stage frame share: their options, the clock, and how a record becomes a result."""

from __future__ import annotations

import datetime
import secrets
import typing

from ansible.module_utils.basic import AnsibleModule

from ._check.stage import Moment, Wishes
from ._model.findings import STAGES
from ._model.records import Record, describe, record_data
from ._observe.records import RecordError, read_records, write_record

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


def moment_of(module: AnsibleModule) -> Moment:
    """Read where this module stands; ends the module when the records can't be read."""
    run = module.params["run"] or new_run()
    records, unreadable = read_records(module.params["record_dir"])
    for text in unreadable.values():
        module.warn(text)
    return Moment(
        stage=module.params["stage"],
        run=run,
        started=module.params.get("started") or now(),
        finished=now(),
        check_mode=module.check_mode,
        records={stage: record for stage, record in records.items() if record.run == run},
    )


def wishes_of(module: AnsibleModule) -> Wishes:
    return Wishes(module.params["fabrics"], module.params["waivers"], module.params["cluster"])


def exit_with(module: AnsibleModule, moment: Moment, record: typing.Optional[Record]) -> None:
    """End the module: write the record, if there is one, and return the judgement. Never 'changed': a record is not what the user asked to change."""
    result: typing.Dict[str, typing.Any] = {
        "changed": False,
        "stage": moment.stage,
        "run": moment.run,
        "started": moment.started,
        "go": record is None,
        "gate": record.gate if record else "open",
        "lines": describe(record) if record else [],
    }
    if record:
        try:
            result["path"] = write_record(module.params["record_dir"], record)
        except RecordError as error:
            module.fail_json(msg=str(error), **result)
        result["findings"] = record_data(record)["judged"]
    module.exit_json(**result)
