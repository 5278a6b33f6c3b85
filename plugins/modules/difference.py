#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: difference
short_description: Tells what changed between two runs, node by node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Compares the folders of two runs. Says what differs in the intent, the nodes, what they show, the cables, the gates and the findings.
  - Ignores what differs between any two runs, such as times, error and traffic counters, and activity counts of subnet managers.
  - Writes C(difference.json) and C(difference.html) into O(report_dir). Runs on the controller, without an inventory, a node or a cluster.
options:
  report_dir:
    description: Folder of the later run, on the controller.
    type: path
    required: true
  before_dir:
    description: Folder of the earlier run, on the controller.
    type: path
    required: true
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: Ask what changed since last week
  linerate.rdma.difference:
    report_dir: build/report
    before_dir: /srv/runs/last-week
  register: difference_result
"""

RETURN = r"""
before:
  description: Identity of the earlier run.
  type: str
  returned: success
after:
  description: Identity of the later run.
  type: str
  returned: success
count:
  description: How many differences there are.
  type: int
  returned: success
lines:
  description: The differences as text for a terminal; the files have all of them.
  type: list
  elements: str
  returned: success
  sample: ["worker-1: mlx5_0 firmware: 28.39.1002 -> 28.41.1000"]
paths:
  description: The files that were written, by format.
  type: dict
  returned: success
"""
