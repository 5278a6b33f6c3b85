#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ping_plan
short_description: Plans who pings whom over the InfiniBand fabrics of the intent
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Every port of a fabric serves, and pings its partners. They are the ports of the same rail on the other nodes, met in rounds of disjoint pairs.
  - Which port belongs to which fabric comes from the subnet manager that it sees. A fabric that can't be made out is not in the plan; stage
    reachability reports it as not measured.
  - Reads what M(linerate.rdma.node_info) and M(linerate.rdma.subnet_manager_info) saw. M(linerate.rdma.ibping) takes each node's part from the folder.
    Runs on the controller.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  most_rounds:
    description: Most partners for each port. Without it every port meets every other one of its rail.
    type: int
  parallel:
    description: Destinations that a node pings at the same time.
    type: int
    default: 8
  limit:
    description: Most seconds for one destination.
    type: int
    default: 10
  forks:
    description: Nodes that Ansible works on at the same time.
    type: int
    default: 5
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.ibping
"""

EXAMPLES = r"""
- name: Plan who pings whom
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
  description: Whether the intent has an InfiniBand fabric. Without one there is nothing to ping.
  type: bool
  returned: success
nodes:
  description: Nodes that could be asked, and so have a part in the plan.
  type: int
  returned: success
pairs:
  description: Directions between two ports.
  type: int
  returned: success
seconds:
  description: How long it takes when nothing is lost, roughly.
  type: int
  returned: success
most_seconds:
  description: How long it takes when everything is lost. So long the servers must live.
  type: int
  returned: success
"""
