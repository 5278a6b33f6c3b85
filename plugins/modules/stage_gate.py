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
  - Runs the check of the stage over O(facts) and the intent, judges the findings against the waivers, and writes the record.
  - A closed gate does not fail the module, since the run may still have a report to write; see RV(gate).
options:
  run:
    description: Identity of the run, as M(linerate.rdma.stage_begin) returned it.
    type: str
  started:
    description: When the stage was begun, as M(linerate.rdma.stage_begin) returned it.
    type: str
  facts:
    description: What the stage observed; the data of its check's C(Facts).
    type: raw
  changes:
    description:
      - What the stage changed, or in check mode what it would change; one line of text each.
      - In check mode, a stage that would change something leaves its gate V(pending), and so do the stages after it.
    type: list
    elements: str
    default: []
  error:
    description: Text of the failure, when the role of the stage failed. Then O(facts) are recorded, not judged.
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
    facts: "{{ fabric_facts }}"
    record_dir: build/report/stages
  register: stage_result
"""

RETURN = r"""
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
findings:
  description: Findings with the waivers that cover them.
  type: list
  elements: dict
  returned: always
path:
  description: The record that was written.
  type: str
  returned: always
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import judge_error, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._frame import FRAME_SPEC, conclude, context_of, raw_intent_of


def judge(params: typing.Dict[str, typing.Any], check_mode: bool) -> typing.Dict[str, typing.Any]:
    context, raw = context_of(params, check_mode), raw_intent_of(params)
    if params["error"] is not None:
        record = judge_error(context, raw, params["error"], params["facts"])
    else:
        record = judge_stage(context, raw, params["facts"], params["changes"])
    return conclude(context, record, params["record_dir"])


def main() -> None:
    spec = dict(
        FRAME_SPEC,
        started={"type": "str"},
        facts={"type": "raw"},
        changes={"type": "list", "elements": "str", "default": []},
        error={"type": "str"},
    )
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    run(module, lambda: judge(module.params, module.check_mode))


if __name__ == "__main__":
    main()
