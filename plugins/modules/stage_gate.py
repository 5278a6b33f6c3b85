#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage_gate
short_description: Judges what a stage observed, and opens or closes its gate
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages, used by the role C(linerate.rdma.stage). Runs on the controller and touches no host.
  - Reads the facts of the run, runs the check of the stage over them and the intent, judges the findings against the waivers, and writes the record.
  - A closed gate does not fail the task, since the run may still have a report to write; see RV(gate).
options:
  run:
    description: Identity of the run, as M(linerate.rdma.stage_begin) returned it.
    type: str
    required: true
  started:
    description: When the stage was begun, as M(linerate.rdma.stage_begin) returned it.
    type: str
  changes:
    description:
      - What the stage changed and no fact tells, or in check mode what it would change; one line of text each.
      - In check mode, a stage that would change something leaves its gate V(pending), and so do the stages after it.
    type: list
    elements: str
    default: []
  error:
    description: Text of the failure, when the role of the stage failed. Then nothing is judged.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.frame
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_begin
  - module: linerate.rdma.report
"""

EXAMPLES = r"""
- name: Judge stage fabric
  linerate.rdma.stage_gate:
    stage: fabric
    run: "{{ stage_result.run }}"
    started: "{{ stage_result.started }}"
    fabrics: "{{ rdma_fabrics }}"
    waivers: "{{ rdma_waivers }}"
    report_dir: build/report
  register: stage_result
"""

RETURN = r"""
holder:
  description: Identity of the ansible-playbook that works. Modules that change the cluster take it, so that it is known who holds the cluster.
  type: str
  returned: always
gate:
  description:
    - V(open) when each finding passes or is waived, V(closed) when one does not.
    - V(pending) in check mode, when the stage looks at what would first have to be made.
  type: str
  returned: always
go:
  description: Always V(false); the stage is over.
  type: bool
  returned: always
run:
  description: Identity of the run.
  type: str
  returned: always
  sample: 20260102T030405Z-a1b2c3
stage:
  description: Name of the stage.
  type: str
  returned: always
started:
  description: When the stage was begun, in UTC.
  type: str
  returned: always
lines:
  description: The judgement as text for a terminal; counts first, then each finding that is not a pass.
  type: list
  elements: str
  returned: always
path:
  description: The record that was written.
  type: str
  returned: always
"""
