#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_begin
short_description: Begin a run that is not a run of stages
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Begins a run, such as a teardown. Facts always belong to a run.
  - Writes the nodes that take part (the inventory group C(rdma_nodes)) and the intent to C(run.json) in O(report_dir).
  - First shows the source of the kubeconfig, its context, and the API server. It does not show secrets, and does not
    fail if the kubeconfig cannot be read.
  - The stages use M(linerate.rdma.stage_begin) instead. Runs on the controller.
options:
  report_dir:
    description: Report folder of the run, on the controller. Facts are in its folder C(facts).
    type: path
    required: true
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  all_nodes:
    description:
      - Whether the run changes all nodes of the inventory, such as a teardown. Then the module fails before it begins
        the run if C(--limit) of C(ansible-playbook) excludes some of them. In check mode it does not.
      - It also fails if the variable C(rdma_disruption) or C(rdma_disruption_of_job) differs from C(disruption) of
        O(cluster).
    type: bool
    default: false
  runs_dir:
    description:
      - Report folder of the stages. The module fails if the run in it used another cluster. It compares the C(uid) of
        the namespace C(kube-system), or the URL of the API server if the C(uid) is not known.
    type: path
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
by_pods:
  description: Whether nodes of the run are reached through observers.
  type: bool
  returned: success
holder:
  description: ID of the C(ansible-playbook) process. Modules that change the cluster need it as the option C(holder).
  type: str
  returned: success
run:
  description: ID of the run.
  type: str
  returned: success
report_dir:
  description: Absolute path of the report folder.
  type: str
  returned: success
"""
