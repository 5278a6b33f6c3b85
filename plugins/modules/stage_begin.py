#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage_begin
short_description: Decides whether a stage may start
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages, used by the role C(linerate.rdma.stage). Runs on the controller and touches no host.
  - A stage may start when no earlier stage of the same run has closed its gate, and when the intent is right.
  - When it may not, a record that says why is written to the folder C(stages) in O(report_dir).
  - Without O(run) it begins a run. Who takes part (the inventory's group C(rdma_nodes)) and what the intent says is kept in C(run.json) in O(report_dir).
options:
  run:
    description:
      - Identity of the run, as the first stage of it returned it in RV(run).
      - Leave it out or empty to begin a new run.
    type: str
  resume_from:
    description:
      - Without O(run), go on with the run in O(report_dir) at this stage, in place of a new one. Those before it are not run again, and their records count.
      - Fails when there is no such run, a gate before the stage is not open, a record is missing or too old, or intent, waivers or nodes have changed.
    type: str
    default: ""
  facts_max_age:
    description: With O(resume_from), how many seconds ago the stages before it may have been begun.
    type: int
    default: 3600
extends_documentation_fragment:
  - linerate.rdma._options.frame
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Ask whether stage fabric may start
  linerate.rdma.stage_begin:
    stage: fabric
    fabrics: "{{ rdma_fabrics }}"
    report_dir: build/report
  register: stage_result
"""

RETURN = r"""
holder:
  description: Identity of the ansible-playbook that works. Modules that change the cluster take it, so that it is known who holds the cluster.
  type: str
  returned: always
go:
  description: Whether the stage may start.
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
  description: When it was asked, in UTC.
  type: str
  returned: always
gate:
  description: V(open), or V(closed) when the stage may not start. V(open) without RV(go) when a resumed run keeps it.
  type: str
  returned: always
lines:
  description: Why the stage may not start, as text for a terminal.
  type: list
  elements: str
  returned: always
path:
  description: The record that was written.
  type: str
  returned: when the stage may not start
look:
  description: Kinds of facts about nodes that the stage needs and this run has not looked at yet.
  type: list
  elements: str
  returned: always
  sample: [hcas, subnets]
"""
