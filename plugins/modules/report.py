#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Writes the report of a run and says its verdict
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages, used by the role C(linerate.rdma.report). Runs on the controller and touches no host.
  - Puts the records of one run together and writes C(report.html), C(report.json) and C(report.xml) (JUnit).
  - The run is green only when each stage has a record of this run with an open gate. Records of older runs are named and not counted.
options:
  run:
    description:
      - Identity of the run, as M(linerate.rdma.stage_begin) returned it.
      - Leave it out or empty for the newest run that left a record.
    type: str
  report_dir:
    description: Folder for the report, on the controller.
    type: path
    required: true
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would return without it.
    support: full
    details: The report is written in check mode too, and says so. It is never green.
  diff_mode:
    description: Will return details on what has changed, when in diff mode.
    support: none
    details: It changes nothing of the system; the report is its answer.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Write the report
  linerate.rdma.report:
    run: "{{ stage_result.run }}"
    report_dir: build/report
  register: report_result

- name: End with the verdict
  ansible.builtin.assert:
    that: report_result.success
    fail_msg: "{{ report_result.line }}"
"""

RETURN = r"""
verdict:
  description: V(GREEN), with the number of findings that waivers cover if there are any, V(NOT GREEN) or V(CHECK MODE).
  type: str
  returned: always
  sample: GREEN, 39 WAIVED
green:
  description: Whether each gate is open, be it by waivers.
  type: bool
  returned: always
waived:
  description: How many findings waivers cover.
  type: int
  returned: always
success:
  description: Whether the run should end well, because it is green, or because check mode found nothing wrong.
  type: bool
  returned: always
line:
  description: The verdict and the path of the report, on one line.
  type: str
  returned: always
  sample: "linerate.rdma: NOT GREEN - stage fabric: 1 fail (fabric.one_master on compute) - report: /srv/build/report/report.html"
times:
  description: Where the time went, a line for each stage that ran and one for their sum.
  type: list
  elements: str
  returned: always
  sample: ["bandwidth                112.4 s", "total                    112.4 s"]
counts:
  description: Number of findings by status; those that a waiver covers are counted as C(waived) only.
  type: dict
  returned: always
  sample: {pass: 120, fail: 1, unknown: 0, skipped: 4, warn: 0, waived: 3}
changes:
  description: What the stages changed, or would change in check mode.
  type: list
  elements: str
  returned: always
paths:
  description: The files that were written, by format.
  type: dict
  returned: always
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._frame import records_dir
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._observe.records import read_records
from ansible_collections.linerate.rdma.plugins.module_utils._publish import publish
from ansible_collections.linerate.rdma.plugins.module_utils._report.verdict import newest


def write_report(params: typing.Dict[str, typing.Any], ansible_version: str) -> typing.Dict[str, typing.Any]:
    folder = params["report_dir"]
    records, unreadable = read_records(records_dir(folder))
    facts = FactFolder(folder, params["run"] or newest(records))
    return publish(facts, folder, records, unreadable, {"ansible-core": ansible_version})


def main() -> None:
    spec = {"run": {"type": "str"}, "report_dir": {"type": "path", "required": True}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    run(module, lambda: write_report(module.params, module.ansible_version))


if __name__ == "__main__":
    main()
