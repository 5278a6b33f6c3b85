#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: variables_lint
short_description: Refuse misspelt variables of this collection
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - The first task of each playbook of this collection that runs no stage. The stages have the same check in
    M(linerate.rdma.stage_begin).
  - Fails if the name of a variable looks like a misspelt variable C(rdma_*), or like a misspelt option of a role of
    this collection. Ansible itself ignores such a variable.
  - Also fails if a variable has a value that is no truth value or no number where one is needed. The message names the
    variable that the user set, and with ansible-core 2.19 or newer its file and line.
  - Warns of any other variable C(rdma_*) that the collection does not read.
  - Reads the names of the variables of the host of the task, and of the nodes in the group C(rdma_nodes). Variables
    whose names do not look like those of this collection are ignored.
  - Runs on the controller and does not contact any host or cluster.
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
options:
  show_cluster:
    description: Show the source of the kubeconfig, its context and the API server, as the first line of a run that
      contacts the cluster and has no other task that shows them. Secrets are not shown.
    type: bool
    default: false
seealso:
  - module: linerate.rdma.stage_begin
"""

EXAMPLES = r"""
- name: Refuse misspelt variables
  linerate.rdma.variables_lint:
"""

RETURN = r"""
names:
  description: Names of the variables C(rdma_*) that are set, sorted.
  type: list
  elements: str
  returned: success
  sample: [rdma_fabrics, rdma_report_dir]
"""
