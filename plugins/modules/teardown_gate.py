#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: teardown_gate
short_description: Judge whether a teardown removed everything
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the facts of the role P(linerate.rdma.teardown#role) and turns them into findings. Fails if a finding does not
    pass.
  - Findings of a teardown cannot be waived. Runs on the controller.
options:
  operator_removed:
    description: Whether the teardown was to remove the operator as well.
    type: bool
    default: false
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.run_begin
"""

EXAMPLES = r"""
- name: Begin the teardown
  linerate.rdma.run_begin:
    report_dir: build/report/teardown
    fabrics: "{{ rdma_fabrics }}"
  register: teardown_begun

- name: Judge the teardown
  linerate.rdma.teardown_gate:
    facts_dir: build/report/teardown
    run: "{{ teardown_begun.run }}"
    fabrics: "{{ rdma_fabrics }}"
"""

RETURN = r"""
msg:
  description: The verdict, and each finding that is not a pass if the teardown is not complete.
  returned: always
  type: str
findings:
  description: Number of findings by status.
  returned: always
  type: dict
stats:
  description:
    - What a job that follows needs of the teardown. It has the keys of RV(linerate.rdma.report#module:stats), and is
      never green.
    - C(verdict) is V(COMPLETE), V(NOT COMPLETE) or V(CHECK MODE), C(changes) the number of objects that were removed,
      C(report) the folder of the facts.
    - The role P(linerate.rdma.teardown#role) hands it over as C(linerate_rdma).
  returned: always
  type: dict
"""
