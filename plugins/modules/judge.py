#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: judge
short_description: Judge a run again from its report folder
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the facts and records of the run in O(report_dir) and runs the checks again. Writes new records and a new
    report to O(judged_dir).
  - Runs on the controller. It needs no inventory, no nodes and no cluster. It changes nothing in the folders C(facts)
    and C(stages) of the run.
  - With the intent and the waivers of the run, the verdict is the same as before. With others, you see what the verdict
    would have been.
  - A stage whose role failed keeps its error. A stage that did not run still has no result.
options:
  report_dir:
    description: Report folder of the run, on the controller. It contains C(run.json) and the folders C(facts) and
      C(stages).
    type: path
    required: true
  judged_dir:
    description: Folder for the new records and the new report. The default is the folder C(judged) in O(report_dir).
    type: path
    default: ""
  fabrics:
    description: Another value for the variable C(rdma_fabrics). The default is the value of the run.
    type: raw
  waivers:
    description: Another value for the variable C(rdma_waivers). The default is the value of the run.
    type: raw
  cluster:
    description: Another value for the variable C(rdma_cluster). The default is the value of the run.
    type: raw
  applied:
    description:
      - Set V(false) to test an intent before it is applied. The facts of the stage C(network) and of all later stages
        then belong to another intent.
      - The module then judges as in check mode. The stages before C(network) decide, even if the run has no other
        stages. The others are pending.
    type: bool
    default: true
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
  - module: linerate.rdma.report
"""

EXAMPLES = r"""
- name: Judge a run without any waivers
  linerate.rdma.judge:
    report_dir: /srv/evidence/run-17
    waivers: []
  register: judge_result

- name: Test another intent before it is applied
  linerate.rdma.judge:
    report_dir: /srv/evidence/run-17
    fabrics: "{{ rdma_fabrics }}"
    cluster: "{{ rdma_cluster }}"
    applied: false
  register: judge_result

- name: Fail if the run is not green
  ansible.builtin.assert:
    that: judge_result.success
    fail_msg: "{{ judge_result.line }}"
"""

RETURN = r"""
run:
  description: ID of the run.
  type: str
  returned: success
verdict:
  description: V(GREEN), V(NOT GREEN) or V(CHECK MODE).
  type: str
  returned: success
success:
  description: Whether the run would end with success. This is the case if it is green, or if check mode found nothing
    wrong.
  type: bool
  returned: success
line:
  description: The verdict and the path of the report in one line.
  type: str
  returned: success
same:
  description: Whether all gates and findings that RV(lines) is about are the same as in the run.
  type: bool
  returned: success
lines:
  description: Gates and findings that differ from the run, as text for a terminal. With O(applied=false), only those of
    stages before C(network).
  type: list
  elements: str
  returned: success
  sample: ["stage fabric: fabric.one_master on compute: fail, waived -> fail"]
stages:
  description: What a run would say of each stage, in order.
  type: list
  elements: dict
  returned: success
  contains:
    stage:
      description: Name of the stage.
      type: str
      sample: fabric
    gate:
      description: V(open), V(closed) or V(pending).
      type: str
      sample: closed
    lines:
      description: The judgement as text for a terminal. A stage that did not run because of an earlier gate has one
        line.
      type: list
      elements: str
counts:
  description: Number of findings by status. Waived findings count only as C(waived).
  type: dict
  returned: success
changes:
  description: Changes that the stages of the run made, or would have made in check mode.
  type: list
  elements: str
  returned: success
stats:
  description: What a job that follows needs of the judgement. See RV(linerate.rdma.report#module:stats).
  type: dict
  returned: success
paths:
  description: Paths of the report files, by format.
  type: dict
  returned: success
report_dir:
  description: Absolute path of the folder with the new records and the new report.
  type: str
  returned: success
"""
