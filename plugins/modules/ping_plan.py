#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ping_plan
short_description: Plan which InfiniBand ports ping each other
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Every port of a fabric runs a server and pings its partners. Its partners are the ports of the same rail on other
    nodes. The pairs meet in rounds, and in each round a port has at most one partner.
  - The subnet manager that a port sees decides to which fabric the port belongs. If a fabric cannot be identified, it
    is not in the plan, and the stage C(reachability) reports it as not measured.
  - Reads the facts of M(linerate.rdma.node_info) and M(linerate.rdma.subnet_manager_info). M(linerate.rdma.ibping) then
    reads the tasks of its node from the report folder.
  - Runs on the controller.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  most_rounds:
    description: Maximum number of partners per port. By default, a port has all other ports of its rail as partners.
    type: int
  parallel:
    description: Number of destinations that a node pings at the same time.
    type: int
    default: 8
  limit:
    description: Maximum time in seconds for one destination.
    type: int
    default: 10
  forks:
    description: Number of nodes on which Ansible works at the same time.
    type: int
    default: 5
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.ibping
"""

EXAMPLES = r"""
- name: Plan the pings
  linerate.rdma.ping_plan:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    fabrics: "{{ rdma_fabrics }}"
    most_rounds: 31
    forks: "{{ ansible_forks }}"
  register: plan
"""

RETURN = r"""
applies:
  description: Whether the intent has an InfiniBand fabric. If not, there is nothing to ping.
  type: bool
  returned: success
nodes:
  description: Number of nodes in the plan. Nodes without facts are not in it.
  type: int
  returned: success
pairs:
  description: Number of pings, one per direction between two ports.
  type: int
  returned: success
seconds:
  description: Approximate duration in seconds if no packet is lost.
  type: int
  returned: success
most_seconds:
  description: Duration in seconds if every packet is lost.
  type: int
  returned: success
lifetime:
  description: Time in seconds after which the servers end by themselves. It is longer than RV(most_seconds), because a
    slow node starts them late.
  type: int
  returned: success
"""
