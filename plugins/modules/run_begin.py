#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_begin
short_description: Begins a run that is not one of stages
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Keeps who takes part (the inventory's group C(rdma_nodes)) and what the intent says in C(run.json) in O(report_dir). Facts belong to a run.
  - The stages begin theirs by M(linerate.rdma.stage_begin). Runs on the controller.
options:
  report_dir:
    description: Folder of the run, on the controller. Facts are in its folder C(facts).
    type: path
    required: true
  fabrics:
    description: The variable C(rdma_fabrics), as the user wrote it.
    type: raw
  waivers:
    description: The variable C(rdma_waivers), as the user wrote it.
    type: raw
  cluster:
    description: The variable C(rdma_cluster), as the user wrote it.
    type: raw
extends_documentation_fragment:
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_begin
"""

EXAMPLES = r"""
- name: Begin the teardown
  linerate.rdma.run_begin:
    report_dir: build/report/teardown
    fabrics: "{{ rdma_fabrics }}"
  register: teardown_begun
"""

RETURN = r"""
holder:
  description: Identity of the ansible-playbook that works. Modules that change the cluster take it, so that it is known who holds the cluster.
  type: str
  returned: success
run:
  description: Identity of the run.
  type: str
  returned: success
report_dir:
  description: Folder of the run, as an absolute path.
  type: str
  returned: success
"""
