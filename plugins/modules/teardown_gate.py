#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: teardown_gate
short_description: Judges whether a teardown left anything behind
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Turns the facts that the role P(linerate.rdma.teardown#role) left into findings, and fails when one of them does not pass.
  - Nothing can be waived here. Runs on the controller.
options:
  operator_removed:
    description: Whether the operator was to be taken back as well.
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
- name: Judge the teardown
  linerate.rdma.teardown_gate:
    facts_dir: build/report/teardown
    run: "{{ teardown_begun.run }}"
    fabrics: "{{ rdma_fabrics }}"
"""

RETURN = r"""
findings:
  description: How many findings there are of each status.
  returned: always
  type: dict
"""
