#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stage_begin
short_description: Decide whether a stage can start
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the frame around the stages. The role P(linerate.rdma.stage#role) uses it. Runs on the controller and does
    not contact any host.
  - A stage can start if no earlier stage of the run closed its gate and the intent is valid.
  - If it cannot start, the module writes a record with the reason to the folder C(stages) in O(report_dir).
  - Without O(run), begins a new run. It then writes the nodes that take part (the inventory group C(rdma_nodes)) and
    the intent to C(run.json) in O(report_dir).
  - A new or resumed run first shows the source of the kubeconfig, its context, and the API server. It does not show
    secrets, and does not fail if the kubeconfig cannot be read.
options:
  run:
    description:
      - ID of the run, as the first stage of the run returned it in RV(run).
      - Leave it out or empty to begin a new run.
    type: str
  resume_from:
    description:
      - Resume the run in O(report_dir) at this stage, instead of beginning a new run. Earlier stages do not run again,
        and their records count. Used without O(run).
      - The module fails if there is no such run, if the gate of an earlier stage is not open, or if a record is missing
        or too old. It also fails if the intent, the waivers or the nodes have changed, or the cluster is another one.
      - The cluster is compared by the URL of its API server, and by the C(uid) of its namespace C(kube-system), which
        M(linerate.rdma.access_info) has read in the run. If the C(uid) is not known, the module warns.
    type: str
    default: ""
  facts_max_age:
    description: With O(resume_from), the maximum age in seconds of the records of the earlier stages, measured from the
      beginning of each stage.
    type: int
    default: 3600
  later:
    description:
      - Write a record for each later stage that the tags of the run name, instead of starting O(stage). Use it if the
        gate of O(stage) is closed.
      - Requires O(run). The result then has only RV(stages) and RV(lines).
    type: bool
    default: false
  started:
    description:
      - Time when the stage began, as RV(started) of an earlier answer for the same stage. Give it if the module is used
        again in a stage that has begun.
      - Requires O(run). Without it, the stage begins now.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.frame
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Check whether the stage fabric can start
  linerate.rdma.stage_begin:
    stage: fabric
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
go:
  description: Whether the stage can start.
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
gate:
  description: V(open), or V(closed) if the stage cannot start. V(open) with RV(go=false) if a resumed run keeps the
    earlier result of the stage.
  type: str
  returned: always
lines:
  description: Why the stage cannot start, as text for a terminal.
  type: list
  elements: str
  returned: always
path:
  description: Path of the record.
  type: str
  returned: if the stage cannot start
stats:
  description:
    - What a job that follows needs of the stage, if no report follows. It has the keys of
      RV(linerate.rdma.report#module:stats).
    - C(verdict) is V(PASSED), V(NOT GREEN) or V(CHECK MODE). V(PASSED) is followed by the number of waived findings, if
      there are any. C(green) is never true.
    - C(report) is the path of the record.
  type: dict
  returned: if the stage cannot start
stages:
  description: The later stages that do not run.
  type: list
  elements: str
  returned: with O(later)
observers:
  description: Whether the stage looks at nodes that are reached by observers, so that these must be there.
  type: bool
  returned: always
usual_seconds:
  description: How many seconds this stage took in the runs that the report has kept and in which it ran to its end. The
    median of them.
  type: float
  returned: if a run is kept in which it did, and the stage can start
usual_runs:
  description: Number of these runs.
  type: int
  returned: with RV(usual_seconds)
look:
  description: Kinds of facts about nodes that the stage needs and that this run does not have yet.
  type: list
  elements: str
  returned: always
  sample: [hcas, subnets]
look_at:
  description: The places at which these kinds are read.
  type: list
  elements: str
  returned: always
  sample: [node, fabric]
look_after_roll:
  description: Nodes whose platform and tuning the stage reads again, because a MachineConfigPool rolled them in this
    run.
  type: list
  elements: str
  returned: always
  sample: [worker-1]
look_by_observers:
  description: Kinds of facts that the observers read for them.
  type: list
  elements: str
  returned: always
  sample: [hcas, platform, firmware, clock, tuning, subnets]
"""
