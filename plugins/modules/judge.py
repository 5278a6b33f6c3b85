#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: judge
short_description: Judges a run again, by its folder alone
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads facts and records of the run in O(report_dir), runs the checks again over them, and writes records and a report into O(judged_dir).
  - Needs no inventory, no node and no cluster. Runs on the controller, and changes nothing in the folders C(facts) and C(stages) of the run.
  - With the intent and the waivers of the run it comes to the same verdict. With others it says what the verdict would have been.
  - A stage whose role failed keeps its error. A stage that was not run stays so, since nothing was looked at.
options:
  report_dir:
    description: Folder of the run, on the controller. It has C(run.json), and the folders C(facts) and C(stages).
    type: path
    required: true
  judged_dir:
    description: Folder for records and report. The default is C(judged) in O(report_dir).
    type: path
    default: ""
  fabrics:
    description: Another intent, as in the variable C(rdma_fabrics). The default is that of the run.
    type: raw
  waivers:
    description: Other waivers, as in the variable C(rdma_waivers). The default is those of the run.
    type: raw
  cluster:
    description: Another C(rdma_cluster). The default is that of the run.
    type: raw
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
  - module: linerate.rdma.report
"""

EXAMPLES = r"""
- name: Judge a run as if nobody had waived anything
  linerate.rdma.judge:
    report_dir: /srv/evidence/run-17
    waivers: []
  register: judge_result

- name: End with the verdict
  ansible.builtin.assert:
    that: judge_result.success
    fail_msg: "{{ judge_result.line }}"
"""

RETURN = r"""
run:
  description: Identity of the run.
  type: str
  returned: success
verdict:
  description: V(GREEN), V(NOT GREEN) or V(CHECK MODE).
  type: str
  returned: success
success:
  description: Whether the run would end well, because it is green, or because check mode found nothing wrong.
  type: bool
  returned: success
line:
  description: The verdict and the path of the report, on one line.
  type: str
  returned: success
same:
  description: Whether each gate and each finding is what it was in the run.
  type: bool
  returned: success
lines:
  description: Gates and findings that differ from those of the run, as text for a terminal.
  type: list
  elements: str
  returned: success
  sample: ["stage fabric: fabric.one_master on compute: fail, waived -> fail"]
counts:
  description: Number of findings by status; those that a waiver covers are counted as C(waived) only.
  type: dict
  returned: success
changes:
  description: What the stages of the run changed, or would have changed in check mode.
  type: list
  elements: str
  returned: success
paths:
  description: The files of the report, by format.
  type: dict
  returned: success
report_dir:
  description: Folder that records and report were written to, as an absolute path.
  type: str
  returned: success
"""
