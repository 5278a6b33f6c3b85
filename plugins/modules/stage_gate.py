#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage_gate
short_description: Judge the facts of a stage, and open or close its gate
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages. The role P(linerate.rdma.stage#role) uses it. Runs on the controller and does
    not contact any host.
  - Reads the facts of the run and runs the check of the stage on them. Judges the findings, with the waivers, and
    writes the record.
  - The task does not fail if the gate is closed, so that the run can still write a report. See RV(gate).
options:
  run:
    description: ID of the run, as returned by M(linerate.rdma.stage_begin).
    type: str
    required: true
  started:
    description: Time when the stage began, as returned by M(linerate.rdma.stage_begin).
    type: str
  changes:
    description:
      - Changes of the stage that are not in a fact, one line of text each. In check mode, the changes that the stage
        would make.
      - If a stage would change something in check mode, its gate and the gates of all later stages are V(pending).
    type: list
    elements: str
    default: []
  error:
    description: Error message, if the role of the stage failed. The module then judges nothing, and the gate is closed.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.frame
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_begin
  - module: linerate.rdma.report
"""

EXAMPLES = r"""
- name: Begin the stage validate
  linerate.rdma.stage_begin:
    stage: validate
    fabrics: "{{ rdma_fabrics }}"
    report_dir: build/report
  register: stage_result

- name: Judge the stage validate
  linerate.rdma.stage_gate:
    stage: validate
    run: "{{ stage_result.run }}"
    started: "{{ stage_result.started }}"
    fabrics: "{{ rdma_fabrics }}"
    report_dir: build/report
  register: stage_result
"""

RETURN = r"""
by_pods:
  description: Whether nodes of the run are reached by observers, which are pods.
  type: bool
  returned: always
holder:
  description: ID of the C(ansible-playbook) process. Modules that change the cluster need it as the option C(holder).
  type: str
  returned: always
gate:
  description:
    - V(open) if every finding is a pass, a warning or waived, otherwise V(closed).
    - V(pending) in check mode, if the stage depends on something that does not exist yet.
  type: str
  returned: always
go:
  description: Always V(false), because the stage has ended.
  type: bool
  returned: always
run:
  description: ID of the run.
  type: str
  returned: always
  sample: 20260102T030405Z-a1b2c3
stage:
  description: Name of the stage.
  type: str
  returned: always
started:
  description: Time when the stage began, in UTC.
  type: str
  returned: always
lines:
  description: The result as text for a terminal. The counts come first, then each finding that did not pass.
  type: list
  elements: str
  returned: always
path:
  description: Path of the record.
  type: str
  returned: always
stats:
  description:
    - What a job that follows needs of the stage, if no report follows. It has the keys of
      RV(linerate.rdma.report#module:stats).
    - C(verdict) is V(PASSED), V(NOT GREEN) or V(CHECK MODE). V(PASSED) is followed by the number of waived findings, if
      there are any. C(green) is never true.
    - C(report) is the path of the record.
  type: dict
  returned: always
"""
