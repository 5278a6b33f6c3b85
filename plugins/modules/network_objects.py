#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_objects
short_description: Writes the objects that the fabrics need, and lints them
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Writes the namespaces of the pods, and for each fabric what its profile needs, such as C(SriovNetworkNodePolicy) and C(SriovNetwork),
    C(MacvlanNetwork) or a C(NetworkAttachmentDefinition); and one C(NicClusterPolicy) with what all of them need of it.
  - Where C(rdma_cluster.node_pool) asks for it, a C(SriovNetworkPoolConfig) of the nodes that take part. Where C(rdma_cluster.host) asks for it,
    C(MachineConfigs) and a C(KubeletConfig).
  - Where nodes have the physical functions at different addresses, each node gets a policy of its own.
  - Nothing is written for a fabric whose addresses somebody else uses, or against which the linter speaks, unless O(waivers) cover it.
  - Reads the facts of the nodes, those of M(linerate.rdma.address_info) (C(addresses)) and of M(linerate.rdma.sriov_operator_info)
    (C(operators_before_network)), and leaves the fact C(network_objects) for M(linerate.rdma.sriov_plan) and M(linerate.rdma.custom_resources).
    Runs on the controller and applies nothing.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.sriov_plan
  - module: linerate.rdma.custom_resources
"""

EXAMPLES = r"""
- name: Write the objects
  linerate.rdma.network_objects:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    fabrics: "{{ rdma_fabrics }}"
  register: written
"""

RETURN = r"""
objects:
  description: Objects of the fabrics that may be applied.
  type: int
  returned: success
hosts:
  description: C(MachineConfigs) and C(KubeletConfigs).
  type: int
  returned: success
held:
  description: Fabrics that the linter holds back.
  type: list
  elements: str
  returned: success
unmade:
  description: Fabrics whose objects could not be written.
  type: list
  elements: str
  returned: success
"""
