#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Write the report of a run and return its verdict
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages. The role P(linerate.rdma.report#role) uses it. Runs on the controller and does
    not contact any host.
  - Combines the records of one run into C(report.html), C(report.json), C(report.xml) (JUnit), C(report.prom)
    (OpenMetrics) and C(report.md), which has 20 lines at most.
  - C(report.html) has a sheet for each node, or in large fleets for each sort of nodes, and a table of groups with the
    odd ones.
  - The run is green only if every stage has a record of this run with an open gate. The report lists records of older
    runs, but does not count them.
options:
  run:
    description:
      - ID of the run, as returned by M(linerate.rdma.stage_begin).
      - The default, also if the value is empty, is the newest run with a record.
    type: str
  report_dir:
    description: Report folder on the controller.
    type: path
    required: true
  keep:
    description:
      - Number of runs that stay, this one included, each under its own name in the folder C(runs) of O(report_dir).
        C(runs/latest) leads to the newest.
      - The oldest are removed. With V(0) no run is kept, and none is removed.
      - The page says what changed since the newest of them that is of this kind. Runs in check mode are compared with
        each other only.
    type: int
    default: 0
  pages:
    description:
      - Address of the page that explains a finding, with C({page}) in place of its name. The report leads there.
      - The default is the documentation of the collection. A disconnected site names its own, such as
        C(https://docs.example/findings/{page}.html).
    type: str
    default: ""
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Write the report of the newest run
  linerate.rdma.report:
    report_dir: build/report
  register: report_result

- name: Fail if the run is not green
  ansible.builtin.assert:
    that: report_result.success
    fail_msg: "{{ report_result.line }}"
"""

RETURN = r"""
verdict:
  description: V(GREEN), V(NOT GREEN) or V(CHECK MODE). V(GREEN) is followed by the number of waived findings, if there
    are any.
  type: str
  returned: always
  sample: GREEN, 39 WAIVED
green:
  description: Whether every gate is open, with or without waivers.
  type: bool
  returned: always
waived:
  description: Number of waived findings.
  type: int
  returned: always
success:
  description: Whether the run should end with success. This is the case if it is green, or if check mode found nothing
    wrong.
  type: bool
  returned: always
line:
  description: The verdict and the path of the report in one line.
  type: str
  returned: always
  sample: "linerate.rdma: NOT GREEN - stage fabric: 1 fail (fabric.one_master on compute) - report:
    /srv/build/report/report.html"
stats:
  description: What a job that follows needs of the run. The role P(linerate.rdma.report#role) hands it over as
    C(linerate_rdma).
  type: dict
  returned: always
  contains:
    verdict:
      description: As RV(verdict).
      type: str
    green:
      description: As RV(green).
      type: bool
    run:
      description: ID of the run.
      type: str
    counts:
      description: As RV(counts).
      type: dict
    changes:
      description: Number of changes that the stages made, or would make in check mode.
      type: int
    summary:
      description: The verdict and its first reason in one line.
      type: str
    first:
      description: >-
        The first finding that closes a gate, as C(check), C(subject), C(status), C(why) and C(remedy).
        C(null) if no finding does.
      type: dict
    plan:
      description: In check mode, which nodes would be disturbed and what would be made, as text for whoever approves
        it. Empty otherwise.
      type: str
    report:
      description: Path of the page.
      type: str
times:
  description: Duration of each stage that ran, one line per stage, and their sum.
  type: list
  elements: str
  returned: always
  sample: ["bandwidth                112.4 s", "total                    112.4 s"]
counts:
  description: Number of findings by status. Waived findings count only as C(waived).
  type: dict
  returned: always
  sample: {pass: 120, fail: 1, unknown: 0, skipped: 4, warn: 0, waived: 3}
changes:
  description: Changes that the stages made, or would make in check mode.
  type: list
  elements: str
  returned: always
removed:
  description: Runs that are not kept any more.
  type: list
  elements: str
  returned: always
paths:
  description: Paths of the written files, by format.
  type: dict
  returned: always
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._app.again import compare_with_kept
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import records_dir
from ansible_collections.linerate.rdma.plugins.module_utils._app.publish import publish
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import PAGES
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import find_newest_run
from ansible_collections.linerate.rdma.plugins.module_utils._store.earlier_errors import read_earlier_errors
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import find_before, keep_run
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records


def write_report(params: dict[str, typing.Any], ansible_version: str) -> dict[str, typing.Any]:
    folder = params["report_dir"]
    records, unreadable = read_records(records_dir(folder))
    facts = FactFolder(folder, params["run"] or find_newest_run(records))
    earlier = find_before(folder, facts.run) if params["keep"] else None
    compared = compare_with_kept(earlier, folder) if earlier else None
    errors = read_earlier_errors(folder, facts.run) if params["keep"] else None
    answer = publish(
        facts,
        folder,
        records,
        unreadable,
        {"ansible-core": ansible_version},
        compared,
        params.get("pages") or PAGES,
        errors,
    )
    return {**answer, "removed": keep_run(folder, facts.run, params["keep"])}


def main() -> None:
    spec = {
        "run": {"type": "str"},
        "report_dir": {"type": "path", "required": True},
        "keep": {"type": "int", "default": 0},
        "pages": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    run(module, lambda: write_report(module.params, module.ansible_version))


if __name__ == "__main__":
    main()
