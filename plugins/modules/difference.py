#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: difference
short_description: Compare two runs node by node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Compares the report folders of two runs.
  - Reports differences in the intent, the nodes, the facts of the nodes, the cables, the figures of collectives, the
    gates and the findings.
  - Ignores values that differ between any two runs. These are times, error counters, traffic counters and activity
    counts of subnet managers.
  - Writes C(difference.json) and C(difference.html) to O(report_dir). Runs on the controller. It needs no inventory, no
    nodes and no cluster.
options:
  report_dir:
    description: Report folder of the later run, on the controller.
    type: path
    required: true
  before_dir:
    description: Report folder of the earlier run, on the controller.
    type: path
    required: true
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: Compare this run with last week's run
  linerate.rdma.difference:
    report_dir: build/report
    before_dir: /srv/runs/last-week
  register: difference_result
"""

RETURN = r"""
before:
  description: ID of the earlier run.
  type: str
  returned: success
after:
  description: ID of the later run.
  type: str
  returned: success
count:
  description: Number of differences.
  type: int
  returned: success
lines:
  description: The differences as text for a terminal. A long list is shortened here. The files contain all differences.
  type: list
  elements: str
  returned: success
  sample: ["worker-1: mlx5_0 firmware: 28.39.1002 -> 28.41.1000"]
paths:
  description: Paths of the written files, by format.
  type: dict
  returned: success
"""
