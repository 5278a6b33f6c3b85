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
  - When it may not, a record that says why is written to O(record_dir).
options:
  run:
    description:
      - Identity of the run, as the first stage of it returned it in RV(run).
      - Leave it out or empty to begin a new run.
    type: str
  nodes:
    description: Names of the hosts that take part.
    type: list
    elements: str
    default: []
  variables:
    description: Names of the variables that start with C(rdma_), to find misspelt ones.
    type: list
    elements: str
    default: []
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
    nodes: "{{ groups['rdma_nodes'] }}"
    record_dir: build/report/stages
  register: stage_result
"""

RETURN = r"""
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
  description: V(open), or V(closed) when the stage may not start.
  type: str
  returned: always
lines:
  description: Why the stage may not start, as text for a terminal.
  type: list
  elements: str
  returned: always
findings:
  description: Findings with the waivers that cover them.
  type: list
  elements: dict
  returned: when the stage may not start
path:
  description: The record that was written.
  type: str
  returned: when the stage may not start
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import may_start
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._frame import FRAME_SPEC, conclude, context_of, raw_intent_of


def begin(params: typing.Dict[str, typing.Any], check_mode: bool) -> typing.Dict[str, typing.Any]:
    context = context_of(params, check_mode)
    facts = Facts(nodes=tuple(params["nodes"]), variables=tuple(params["variables"]))
    return conclude(context, may_start(context, raw_intent_of(params), facts), params["record_dir"])


def main() -> None:
    names = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(argument_spec=dict(FRAME_SPEC, nodes=names, variables=names), supports_check_mode=True)
    run(module, lambda: begin(module.params, module.check_mode))


if __name__ == "__main__":
    main()
